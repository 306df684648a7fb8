"""Gaussian expectations: nodes, closed forms by rules, derivatives, digits, proven enclosures."""
