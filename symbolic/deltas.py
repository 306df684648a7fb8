"""Do the delta functions that differentiating a jump leaves behind.

Where an integrand jumps at a place that moves with the unknowns, the Jacobian holds 𝔼 of a delta
function: the derivative of the place of the jump. It is a number, the integrand at that place
times the normal density there, and it is put in instead of the delta function.
"""

from __future__ import annotations

import sympy as sp
from sympy.core.function import AppliedUndef

from ..errors import EmissionError
from .cases import single_comparisons
from .gaussian import GaussianExpectation


def integrate_deltas(value: sp.Expr) -> sp.Expr:
    r"""Replace :math:`\mathbb{E}_z[g(z)\,\delta(s z + c)]` by :math:`g(z_0)\varphi(z_0)/|s|`.

    Here :math:`z_0 = -c/s` and φ is the normal density; a slope s of zero means that there is no
    jump, and gives zero.

    Parameters
    ----------
    value : Expr
        An expression with 𝔼 nodes.

    Raises
    ------
    EmissionError
        For a delta function outside of an expectation, of an argument that is not affine in the
        variable, with a derivative, or with a table as a factor.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> q = sp.Symbol("q", positive=True)
    >>> jump = GaussianExpectation(sp.Heaviside(q * z - 1) * z, z)
    >>> integrate_deltas(jump.diff(q))
    sqrt(2)*exp(-1/(2*q**2))/(2*sqrt(pi)*q**3)
    """
    nodes = [n for n in value.atoms(GaussianExpectation) if n.integrand.has(sp.DiracDelta)]
    value = value.xreplace({n: _integrated(n) for n in nodes})
    if value.has(sp.DiracDelta):
        delta = next(iter(value.atoms(sp.DiracDelta)))
        raise EmissionError(
            f"the Jacobian holds {delta} outside of an expectation: an equation jumps where "
            f"{delta.args[0]} = 0, so Newton's method has no derivative there; smooth the jump"
        )
    return value


def _integrated(node: GaussianExpectation) -> sp.Expr:
    z, integrand = node.variable, node.integrand
    deltas = sorted(integrand.atoms(sp.DiracDelta), key=sp.default_sort_key)
    marks = {d: sp.Dummy(real=True) for d in deltas}
    marked = integrand.xreplace(marks)
    none = dict.fromkeys(marks.values(), sp.S.Zero)
    total = GaussianExpectation(marked.xreplace(none), z)
    for delta, mark in marks.items():
        factor = marked.diff(mark)
        if set(marks.values()) & factor.free_symbols or len(delta.args) > 1:
            raise EmissionError(
                f"the Jacobian holds a product or a derivative of delta functions, {integrand}; "
                "bring the expectation to closed form first, or smooth the jump"
            )
        total += _at_the_jump(factor, delta.args[0], z)
    return total


def _at_the_jump(factor: sp.Expr, argument: sp.Expr, z: sp.Symbol) -> sp.Expr:
    slope = argument.diff(z)
    if slope.has(z) or factor.atoms(AppliedUndef):
        raise EmissionError(
            f"an integrand jumps where {argument} = 0, and the derivative of that place cannot be "
            "computed (it is not affine in the variable, or the integrand reads a table); bring "
            "the expectation to closed form first, or integrate by parts (Stein's lemma)"
        )
    if slope == 0:
        raise EmissionError(
            f"an integrand jumps where {argument} = 0, at all {z} at once; smooth the jump"
        )
    place = -argument.xreplace({z: sp.S.Zero}) / slope
    density = sp.exp(-(place**2) / 2) / sp.sqrt(2 * sp.pi)
    value = factor.xreplace({z: place}) * density / sp.Abs(slope)
    if slope.is_nonzero:
        return value
    jump = sp.Piecewise((value, slope > 0), (value, slope < 0), (sp.S.Zero, True))
    return single_comparisons(jump)
