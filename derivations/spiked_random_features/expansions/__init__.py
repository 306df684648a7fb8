"""Asymptotic expansions of the model: many samples, a vanishing ridge penalty, small steps."""
