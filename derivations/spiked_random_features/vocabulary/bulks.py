"""Names that both the formulas and the checks of arguments use."""

BULKS = ("iid", "orthonormal")
"""How bulk rows are drawn: independent, or an orthonormal frame."""
