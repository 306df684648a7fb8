"""Targets of a few directions: ridge sums, subspaces, what a target shows, projections."""
