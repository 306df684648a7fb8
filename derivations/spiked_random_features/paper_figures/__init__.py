"""The figures of Cui et al., arXiv 2402.04980, as functions that return figure and data."""
