r"""Which directions labels show, and from how many samples: decided exactly, valued where possible.

:math:`T_1(y) = \mathbb{E}[u\mid y]` shows the *trivial* subspace, learned for every α > 0. Where it
vanishes, :math:`G(y) = \mathbb{E}[uu^\top - 1\mid y]` decides: the linearisation
:math:`F(M) = \mathbb{E}[GMG]` of state evolution has its largest eigenvalue at a positive
semi-definite matrix, and α_c is its inverse; infinite if G vanishes. These are the orders 1, 2 and
≥ 3 of the generative leap. Troiani et al., arXiv 2405.15480; Mondelli and Montanari, arXiv
1708.05932; Damian et al., arXiv 2403.05529. That a quantity vanishes is decided by parity and
algebra, never by its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import sympy as sp

from ...errors import UndecidedError, UnsupportedExpressionError
from ...numeric.cache import FileCache
from ...symbolic.expressions.activations import z
from ...symbolic.expressions.factors import factored
from ...symbolic.expressions.regularity import Parity, analyse
from ...symbolic.gaussian.expectation import GaussianExpectation, GaussianVector, JointExpectation
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.leaps.generative_leap import generative_leap
from ...symbolic.targets.target import Target
from . import physics
from .channels import Channel
from .line_averages import PANELS, LineAverages
from .plane_averages import PlaneAverages

TRIVIAL, EASY, HARD = "trivial", "easy", "hard"


@dataclass(frozen=True)
class Threshold:
    """Where weak recovery begins.

    Attributes
    ----------
    kind : {"trivial", "easy", "hard"}
        Learned for every α, above α_c, or not with samples proportional to d.
    exact : Expr or None
        α_c in closed form or as an integral.
    value : float
        α_c: 0 if trivial, infinite if hard.
    error : float
        Of the value; 0 if it is exact.
    reason : str
        How the kind was decided, and what the value rests on.
    """

    kind: str
    exact: sp.Expr | None
    value: float
    error: float
    reason: str


def weak_recovery(channel: Channel) -> Threshold:
    """Return the kind of a law of labels and its threshold.

    Raises
    ------
    UndecidedError
        If whether a conditional mean vanishes cannot be decided.
    UnsupportedExpressionError
        If α_c of several directions is neither known in closed form nor finite labels.
    """
    if channel.probabilities:
        return _of_finitely_many(channel)
    if channel.directions == 1:
        LineAverages(channel).require_preimages()
    order, reason = _order(channel)
    if order == 1:
        return Threshold(TRIVIAL, sp.S.Zero, 0.0, 0.0, reason)
    if order > 2:
        return Threshold(HARD, sp.oo, float("inf"), 0.0, reason)
    exact = _exact_value(channel)
    if exact is not None:
        if exact.has(sp.Integral):
            value = float(physics.half_line_value(FileCache(), exact))
            return Threshold(EASY, exact, value, 0.0, f"{reason}; α_c: an integral")
        return Threshold(EASY, exact, float(exact.evalf(30)), 0.0, f"{reason}; α_c: closed form")
    if channel.directions > 1:
        none, known = np.zeros((channel.directions,) * 2), np.zeros((channel.directions, 0))
        values = [
            1 / float(np.linalg.eigvalsh(PlaneAverages(channel, level).operator(none, known)).max())
            for level in (1, 2)
        ]
        value, error = values[0], abs(values[0] - values[1])
    else:
        fine, coarse = (LineAverages(channel, k).second_information() for k in (-1, -2))
        value, error = 1 / fine, abs(1 / fine - 1 / coarse)
    return Threshold(
        EASY, None, value, error, f"{reason}; α_c: quadrature, {len(PANELS)} levels compared"
    )


# ---------------------------------------------------------------------- which order


def _order(channel: Channel) -> tuple[int, str]:
    """Return the generative order of the first directions, and how it is known.

    Gaussian noise does not change it: the measure E[He_k(u)|y]P(dy) is convolved, and a convolution
    with a Gaussian vanishes only if the measure does.
    """
    f = channel.function
    if f is None:
        return _order_of_density(channel)
    if channel.directions == 1:
        one = sp.Symbol("x1", real=True)
        target = Target(channel.name, f.xreplace({z: one}), (one,))
        even = analyse(f, z).parity is Parity.EVEN
        if not even and _shown(f * z, f"E[u f(u)] of {channel.name}"):
            return 1, "E[u f(u)] is not zero, decided exactly"
    else:
        target = Target(channel.name, f, channel.variables)
        even = False
    try:
        leap = generative_leap(target)
    except UndecidedError:
        if even:
            return 2, "the label is even in u"
        raise
    orders = leap.orders
    if orders and (orders[0] == leap.lower or orders[0] == 1):
        return orders[0], f"generative leap: {leap.steps[0].witness}"
    if leap.is_exact:
        return int(leap), f"generative leap {leap}"
    if even and leap.lower < 3:
        return 2, "the label is even in u"
    raise UndecidedError(
        f"whether labels {channel.name!r} show a direction at first or second order is not known: "
        f"generative leap {leap.bounds}"
    )


def _order_of_density(channel: Channel) -> tuple[int, str]:
    assert channel.density is not None
    if channel.directions > 1:
        raise UnsupportedExpressionError(
            "the order at which a density of several directions shows them is not decided; use "
            "finitely many labels or a function with noise"
        )
    if analyse(channel.density, z).parity is Parity.EVEN:
        return 2, "the law is even in u"
    for value in (sp.Rational(1, 3), sp.S.One, sp.Rational(-7, 5)):
        first = channel.density.xreplace({physics.label: value}) * z
        if _shown(first, f"E[u P(y|u)] at y = {value}"):
            return 1, f"E[u P(y|u)] is not zero at y = {value}, decided exactly"
    raise UndecidedError(
        f"whether E[u|y] of {channel.name!r} vanishes could not be decided: the law is not seen to "
        "be even, and no label was found that shows u"
    )


def _shown(integrand: sp.Expr, name: str) -> bool:
    value = GaussianExpectation(integrand, z).doit()
    return not is_exactly_zero(value, name)


# ---------------------------------------------------------------------- finitely many labels


def label_moments(channel: Channel) -> list[tuple[sp.Expr, sp.Matrix, sp.Matrix]]:
    """Return of each label its probability, E[1_y u] and E[1_y (uuᵀ − 1)], exactly."""
    size = channel.directions
    law = None
    if size > 1:
        law = GaussianVector(channel.variables, covariance=sp.eye(size))

    def average(integrand: sp.Expr) -> sp.Expr:
        if law is None:
            node = GaussianExpectation(integrand, z)
            return node.doit() if isinstance(node, GaussianExpectation) else node
        total = sp.S.Zero
        for term in sp.Add.make_args(sp.expand(integrand)):
            node = JointExpectation(term, law)
            total += node.doit()
        return total

    found = []
    for p in channel.probabilities.values():
        u = sp.Matrix(channel.variables)
        first = u.applyfunc(lambda x, p=p: sp.simplify(average(p * x)))
        second = (u * u.T - sp.eye(size)).applyfunc(lambda x, p=p: sp.simplify(average(p * x)))
        found.append((sp.simplify(average(p)), first, second))
    return found


def _of_finitely_many(channel: Channel) -> Threshold:
    moments = label_moments(channel)
    shown = sp.Matrix.hstack(*(first for _, first, _ in moments))
    if not _vanishes(shown, channel):
        rank = shown.rank(iszerofunc=lambda e: is_exactly_zero(e, "a conditional mean"))
        every = "E[u|y] is not zero, decided exactly"
        if rank < channel.directions:
            every += f"; it spans {rank} of {channel.directions} directions"
        return Threshold(TRIVIAL, sp.S.Zero, 0.0, 0.0, every)
    if all(_vanishes(second, channel) for _, _, second in moments):
        return Threshold(HARD, sp.oo, float("inf"), 0.0, "E[uu^T - 1|y] is zero exactly")
    matrix = physics.operator_matrix([(p, second) for p, _, second in moments])
    values = list(matrix.eigenvals())
    largest = max(values, key=lambda v: float(sp.re(v.evalf(20))))
    exact = sp.simplify(1 / largest)
    return Threshold(
        EASY, exact, float(exact.evalf(30)), 0.0,
        "E[u|y] is zero exactly and E[uu^T - 1|y] is not; α_c: closed form"
        + (" of averages" if exact.has(GaussianExpectation, JointExpectation) else ""),
    )  # fmt: skip


def specialising(channel: Channel) -> sp.Matrix | None:
    """Return the directions that are learned for every α, if the others show at second order only.

    Exact orthonormal columns; None if there are no others, or they are learned as soon as those
    are, or at a higher order. Of a function its generative leap decides; of other laws, that they
    do not change where the others are reflected.
    """
    certain = channel.certain_labels if channel.probabilities else None
    if channel.function is not None and (not channel.probabilities or certain is not None):
        steps = generative_leap(Target(channel.name, channel.function, channel.variables)).steps
        trivial = [step.subspace for step in steps if step.order == 1]
        later = [step.order for step in steps if step.order > 1]
        if not trivial or later[:1] != [2]:
            return None
        basis = [sp.Matrix(v) for v in trivial[-1].basis]
    else:
        moments = label_moments(channel)
        basis = sp.Matrix.hstack(*(first for _, first, _ in moments)).columnspace()
        if not basis or len(basis) == channel.directions:
            return None
    known = sp.Matrix.hstack(*sp.GramSchmidt(basis, orthonormal=True))
    if certain is None and channel.probabilities:
        u = sp.Matrix(channel.variables)
        inside = known * known.T * u

        def unchanged(by: sp.Matrix) -> bool:
            at = dict(zip(u, by, strict=True))
            return all(sp.simplify(p.xreplace(at) - p) == 0 for p in channel.probabilities.values())

        if unchanged(inside) or not unchanged(2 * inside - u):
            return None
    return known


def _vanishes(matrix: sp.Matrix, channel: Channel) -> bool:
    return all(is_exactly_zero(e, f"a moment of {channel.name}") for e in matrix)


# ---------------------------------------------------------------------- values


def _exact_value(channel: Channel) -> sp.Expr | None:
    """Return α_c of labels without noise where it is known."""
    if not channel.is_certain:
        return None
    assert channel.function is not None
    if channel.directions == 1:
        known = channel.preimages
        # With ±u alone behind a label, G(y) = u² − 1, whose mean square is 2.
        return sp.Rational(1, 2) if known is not None and len(known[0]) == 2 else None
    f, x = channel.function, channel.variables
    if _is_radial(f, x):
        return sp.Rational(len(x), 2)
    if len(x) == 2 and f.is_polynomial(*x):
        # A quadratic form without trace is a multiple of u1 u2 in other coordinates.
        form = sp.hessian(f, x)
        rest = sp.expand(f - (sp.Matrix(x).T * form * sp.Matrix(x))[0] / 2)
        if not (form.free_symbols | rest.free_symbols) & set(x) and form.trace() == 0:
            return physics.product_threshold()
    raise UnsupportedExpressionError(
        f"α_c of the label {channel.name!r} of {len(x)} directions without noise is not known in "
        "closed form: give noise_variance, or a label with finitely many values"
    )


def _is_radial(f: sp.Expr, x: tuple[sp.Symbol, ...]) -> bool:
    """Whether a label determines |u| and nothing else: then G = (|u|²/K − 1)·1."""
    for i in range(1, len(x)):
        if sp.simplify(x[0] * f.diff(x[i]) - x[i] * f.diff(x[0])) != 0:
            return False
    r = sp.Symbol("r", positive=True)
    slope = factored(f.xreplace({x[0]: r, **dict.fromkeys(x[1:], sp.S.Zero)}).diff(r))
    return bool(slope.is_positive or slope.is_negative)
