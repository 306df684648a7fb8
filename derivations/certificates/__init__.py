"""Proofs by intervals for the solutions of lowered systems."""
