"""Gaussian multi-index models: what Bayes, AMP and the estimators beside them learn."""
