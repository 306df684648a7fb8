"""Kernels of any system of saddle-point equations: solve, sweep, refine to many digits, write."""
