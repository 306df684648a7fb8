"""Hermite coefficients, sequences, tensors and expansions, and what is read off them."""
