"""First gradients by Hermite tensors: what one step learns, and from how many samples."""
