"""Gaussian multi-index models: Bayes-optimal and AMP estimation, weak recovery, other estimators."""
