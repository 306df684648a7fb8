"""Evidence by proven intervals for giant steps; it needs python-flint."""

from __future__ import annotations

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.equivalence import CENTRE, SPREAD
from ...symbolic.gaussian import GaussianExpectation
from ...symbolic.hermite import hermite_coefficients
from ..certificates.agreement import decided, overlap
from ..claims import Finding
from .evidence_equivalence import PLACES, written_out

_DIGITS = 20
# Students with the degrees, of the first five, that vanish.
_MASKED = {"relu": {3, 5}, "softplus": {3, 5}, "erf": {2, 4}, "tanh": {2, 4}}
_LENGTHS = (sp.Rational(1, 2), sp.Integer(2))


def closed_forms(
    students: tuple[str, ...] = ("relu", "erf", "Phi", "gelu", "abs", "sin", "exp"),
) -> Finding:
    """μ, β and E σ² written out by hand lie in proven intervals of their integrals.

    Parameters
    ----------
    students : tuple of str
    """
    require_flint()
    formulas = FormulaBalls({})
    results: dict[str, bool] = {}
    for name in students:
        sigma = activation(name)
        written = written_out(name)
        for centre, spread in PLACES:
            f = sigma.expr.xreplace({variable: centre + spread * variable})
            # E σ' by Stein's lemma, so that no derivative is taken.
            integrals = (f, variable * f / spread, f**2)
            for symbol, integrand, formula in zip("μβE", integrals, written, strict=True):
                if formula is None:
                    continue
                proven = formulas.enclosure(GaussianExpectation(integrand, variable), _DIGITS)
                value = formulas.enclosure(
                    formula.xreplace({CENTRE: centre, SPREAD: spread}), _DIGITS
                )
                results[f"{symbol} of {name} at c = {centre}, ρ = {spread}"] = (
                    overlap(proven, value) and min(proven.digits, value.digits) >= _DIGITS
                )
    return decided(results, "closed forms and integrals meet")


def masks(students: tuple[str, ...] = tuple(_MASKED)) -> Finding:
    """Coefficients at lengths other than one: exactly zero, or proven not to be.

    Parameters
    ----------
    students : tuple of str
    """
    require_flint()
    results: dict[str, bool] = {}
    for name in students:
        sigma = activation(name)
        for tau in _LENGTHS:
            scaled = sigma.expr.xreplace({variable: tau * variable})
            found = hermite_coefficients(scaled, 5).enclosures(_DIGITS)
            for k, value in enumerate(found[1:], start=1):
                if k in _MASKED[name]:
                    held = value.is_exact and value.midpoint == 0
                else:
                    held = not value.contains_zero
                results[f"degree {k} of {name} at τ = {tau}"] = held
    return decided(results, "degrees vanish exactly, or are proven not to")
