"""Readout vocabularies, biases and spikes of larger rank (Cui et al., arXiv 2402.04980, C.8, D)."""
