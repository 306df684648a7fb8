"""Figures of one gradient step: risk curves, phase diagram, large steps; each with its data."""
