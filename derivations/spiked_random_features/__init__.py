"""Spiked random features: a two-layer network after one giant gradient step (arXiv 2402.04980)."""
