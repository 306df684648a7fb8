"""Convex losses of readouts: their pieces, proximal operators and Moreau envelopes."""
