"""Conjectures about anything that an expression can state: proved, refuted or supported."""
