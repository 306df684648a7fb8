"""Spectrum of the conjugate kernel before and after the step: bulk, edges, outlier, labels."""
