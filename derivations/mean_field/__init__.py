"""Mean-field models of the literature, stated for the lowering: equations in, kernels out."""
