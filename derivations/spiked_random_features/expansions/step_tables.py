r"""Tables as power series in the step size s, at the nodes of a Gauss–Hermite rule.

After a step the argument of a neuron is :math:`u = r\kappa + \sqrt c\,z` with r proportional to s
and c → 1. For any function F of u,

.. math::
    \mathbb{E}_z[F(u)\,\mathrm{He}_j(z)] = c^{j/2} \sum_k \frac{f_{k+j}}{k!}
    H_k(r\kappa, 1 - c), \qquad f_k = \mathbb{E}[F\,\mathrm{He}_k],

where :math:`\sum_k t^k H_k(x, b)/k! = \exp(tx - bt^2/2)`: the Hermite expansion of F, smoothed.
:math:`H_k` is a polynomial of degree k in κ that is of order :math:`s^k` if c − 1 is of order s²,
and of order :math:`s^{k/2}` if it is of order s, so that finitely many terms count. Kinks and jumps
of F do no harm. The teacher's tables do not depend on s. They occur linearly, next to polynomials
in κ, so that their projections on these are all that counts, and with
:math:`\gamma\kappa + \rho s` of unit variance
:math:`\mathbb{E}[F(\gamma\kappa + \rho s)\,\mathrm{He}_j(\kappa)\,\mathrm{He}_i(s)] =
\gamma^j \rho^i f_{i+j}`. Derived here (Mehler 1866 for the smoothing of Hermite polynomials).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sp

from ....runtime.roots import newton
from ....symbolic.activations import z as variable
from ....symbolic.asymptotic_series import Series
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.hermite import hermite_coefficients
from .. import physics as fe

Number = Any

# The argument of a neuron or of the teacher, and the standard deviation √c.
_ARGUMENT = sp.Symbol("u", real=True)
_SPREAD = sp.Symbol("B", positive=True)


class HermiteNumbers:
    """Hermite coefficients of functions of one variable, as numbers of a context."""

    def __init__(self, ctx: Any, last: int) -> None:
        self._ctx, self._last = ctx, last
        self._known: dict[sp.Expr, list[Any]] = {}

    def __call__(self, function: sp.Expr) -> list[Number]:
        """Return the coefficients 0, …, last of a function of the standard variable."""
        if function not in self._known:
            self._known[function] = self._compute(function)
        return self._known[function]

    def _compute(self, function: sp.Expr) -> list[Number]:
        if variable not in function.free_symbols:
            return [self.convert(function)] + [self._ctx.zero] * self._last
        found = hermite_coefficients(function, self._last, variable=variable)
        return [self.convert(value) for value in found.evalf(self._ctx.dps + 5)]

    def convert(self, value: sp.Expr) -> Number:
        """Return an exact number as a number of the context."""
        return self._ctx.mpf(str(sp.N(value, self._ctx.dps + 5)))


def student_table(
    definition: sp.Expr,
    known: Mapping[sp.Expr, Any],
    numbers: HermiteNumbers,
    *,
    strength: Series,
    variance: Series,
    nodes: Any,
    highest: int,
) -> Series:
    """Return a table of the student, defined by an average over z, as a series of arrays.

    Parameters
    ----------
    definition : Expr
        𝔼_z of a polynomial in z and other tables, with functions of :math:`rκ + sqrt(c) z`.
    known : mapping
        Tables that it refers to.
    numbers : HermiteNumbers
    strength, variance : Series
        r and c, as series of numbers.
    nodes : array
        Values of κ.
    highest : int
        Terms of the Hermite expansion that are kept.
    """
    spread = variance.power(sp.S.Half, numbers.convert)
    x, zero = strength * nodes, Series((), strength.end)
    smooth = _smoothed_powers(x, 1 - variance, highest)
    values = {**known, fe.r: strength, fe.kappa: nodes, _SPREAD: spread}
    total = zero
    for term in sp.Add.make_args(sp.expand(definition.xreplace({fe.c: _SPREAD**2}), deep=False)):
        outer, node = term.as_independent(GaussianExpectation, as_Add=False)
        # The slope of a linear student is a number, no average.
        inside = node
        if isinstance(node, GaussianExpectation):
            centre = fe.r * fe.kappa if node.has(fe.r) else sp.S.Zero
            argument = (_ARGUMENT - centre) / _SPREAD
            inside = _tidied(node.integrand.xreplace({node.variable: argument}))
        for part in sp.Add.make_args(sp.expand(inside)):
            factor, function = part.as_independent(_ARGUMENT, as_Add=False)
            f = numbers(function.xreplace({_ARGUMENT: variable}))
            mean = zero
            for k, h in enumerate(smooth):
                if f[k]:
                    mean = mean + h * (f[k] / math.factorial(k))
            number, symbols = (outer * factor).as_independent(*values, as_Add=False)
            for base, power in symbols.as_powers_dict().items():
                if base != 1:
                    mean = mean * values[base] ** int(power)
            total = total + mean * numbers.convert(number)
    return total


def _tidied(expr: sp.Expr) -> sp.Expr:
    """Multiply out the arguments of functions, so that what cancels in them does."""
    return expr.replace(
        lambda e: e.is_Function or e.is_Relational,
        lambda e: e.func(*(sp.expand(a) if isinstance(a, sp.Expr) else a for a in e.args)),
    )


def _smoothed_powers(x: Series, b: Series, highest: int) -> list[Series]:
    """Return H_0, …, H_highest: H_{k+1} = x H_k − k b H_{k−1}."""
    one = Series.monomial(0, x.end)
    found = [one, x]
    for k in range(1, highest):
        found.append(x * found[k] - b * found[k - 1] * k)
    return found[: highest + 1]


def teacher_table(
    definition: sp.Expr,
    numbers: HermiteNumbers,
    *,
    alignment: Number,
    orthogonal: Number,
    noise: Number,
    nodes: Any,
    highest: int,
) -> Any:
    r"""Return the projection of a table of the teacher on polynomials in κ, at the nodes.

    Parameters
    ----------
    definition : Expr
        The average over s of the label, of its square or of s times the label, or functions of
        γκ.
    numbers : HermiteNumbers
    alignment, orthogonal, noise : number
        γ, ρ and Δ.
    nodes : array
        Values of κ.
    highest : int
        Degree of the polynomials.
    """
    total = nodes * 0
    polynomials = _hermite_arrays(nodes, highest)
    for term in sp.Add.make_args(definition):
        if term == fe.noise:
            total = total + noise
            continue
        outer, node = term.as_independent(GaussianExpectation, as_Add=False)
        inside, across = node, 0
        if isinstance(node, GaussianExpectation):
            inside = node.integrand
            if fe.s in sp.Mul.make_args(inside):
                inside, across = inside / fe.s, 1
            # γκ + ρs is one standard variable.
            inside = inside.xreplace({fe.s: (_ARGUMENT - fe.gamma * fe.kappa) / fe.rho})
        else:
            # So is γκ where γ = ±1.
            inside, outer = term.xreplace({fe.kappa: _ARGUMENT / fe.gamma}), sp.S.One
        inside = sp.expand(_tidied(outer * inside)).xreplace({_ARGUMENT: variable})
        f = numbers(inside)
        for j, he in enumerate(polynomials):
            if f[across + j]:
                weight = f[across + j] / math.factorial(j)
                total = total + he * (alignment**j * orthogonal**across * weight)
    return total


def _hermite_arrays(nodes: Any, highest: int) -> list[Any]:
    found = [nodes * 0 + 1, nodes]
    for k in range(1, highest):
        found.append(nodes * found[k] - k * found[k - 1])
    return found[: highest + 1]


def gauss_hermite(ctx: Any, count: int) -> tuple[Any, Any]:
    """Return nodes and weights of the rule for the normal law that is exact to degree 2n − 1."""
    start, _ = np.polynomial.hermite_e.hermegauss(count)
    nodes, weights = [], []

    def move(x: Any) -> Any:
        last, before = _last_two(x, count, ctx)
        return last / (count * before)

    for guess in start:
        x = newton(move, ctx.mpf(float(guess)), ctx.sqrt(ctx.eps), "a node", size=1)
        _, before = _last_two(x, count, ctx)
        nodes.append(x)
        weights.append(ctx.factorial(count) / (count * before) ** 2)
    return np.array(nodes, dtype=object), np.array(weights, dtype=object)


def _last_two(x: Any, count: int, ctx: Any) -> tuple[Any, Any]:
    before, last = ctx.zero, ctx.one
    for k in range(count):
        before, last = last, x * last - k * before
    return last, before
