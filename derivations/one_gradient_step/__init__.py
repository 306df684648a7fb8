"""One gradient step on the first layer in the proportional limit (Ba et al., arXiv 2205.01445)."""
