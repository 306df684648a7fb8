r"""Dual activations: the kernel of an activation as a function of the correlation.

.. math:: \hat{f}_g(\rho) = \mathbb{E}[f(u)\, g(v)], \qquad u, v \sim \mathcal{N}(0, 1),\
          \mathbb{E}uv = \rho

(Daniely, Frostig and Singer, NIPS 29 (2016), for g = f). In closed form where the rules for
Gaussian pairs give one. Else by Mehler's formula, with :math:`\mu_k = \mathbb{E}[f \mathrm{He}_k]`,

.. math:: \hat{f}_g(\rho) = \sum_{k \le K} \mu_k(f)\mu_k(g) \frac{\rho^k}{k!} + R_K, \qquad
   |R_K| \le |\rho|^{K+1} \sqrt{t_K(f)\, t_K(g)}, \quad
   t_K(f) = \mathbb{E}f^2 - \sum_{k \le K} \frac{\mu_k(f)^2}{k!},

the bound by the Cauchy–Schwarz inequality and Parseval's identity. With python-flint installed the
coefficients and second moments are proven intervals, and so is the value; without it they are
quadrature estimates, and the bound is said to rest on them.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field

import sympy as sp

from ...digits import checked_digits
from ...errors import AssumptionError, ParameterError, UnsupportedExpressionError
from ...pages import Typeset
from ...pictures import Drawn, Line, Lines
from ..expressions.activations import Activation, activation, z
from ..expressions.arguments import as_expression
from ..expressions.bivariate_normal import with_far_tails
from ..gaussian.enclosures import enclosed_expectation, enclosed_hermite_coefficients
from ..gaussian.expectation import (
    GaussianExpectation,
    JointExpectation,
    correlated_pair,
    expect,
    expect_joint,
)
from ..gaussian.zero_test import is_exactly_zero
from .coefficients import hermite_coefficient

DEFAULT_ORDER = 20
HIGHEST_ORDER = 60
_DIGITS = 30
# What is left of the digits of a quadrature estimate that is taken to be correct.
_ESTIMATED_ERROR = sp.Rational(1, 10**25)

CLOSED_FORM = "closed form"
EXPECTATION = "expectation without a closed form by rules"
PROVEN = "Hermite series, coefficients and remainder proven by ball arithmetic"
ESTIMATED = "Hermite series, remainder bounded, coefficients and second moments by quadrature"


@dataclass(frozen=True)
class DualValue:
    """A value of a dual activation.

    Attributes
    ----------
    value : Float
    error_bound : Float
        Largest distance of the true number from `value`.
    rests_on : str
        What the bound rests on.
    """

    value: sp.Float
    error_bound: sp.Float
    rests_on: str

    def __str__(self) -> str:
        return f"{self.value} ± {self.error_bound.n(2)} ({self.rests_on})"

    def _repr_latex_(self) -> str:
        bound = sp.latex(self.error_bound.n(2))
        return rf"${sp.latex(self.value)} \pm {bound}$ ({self.rests_on})"


@dataclass(frozen=True, repr=False)
class DualActivation(Typeset, Drawn):
    r"""The function :math:`\rho \mapsto \mathbb{E}[f(u)g(v)]` of the correlation.

    Made by :func:`dual_activation`.

    Attributes
    ----------
    f, g : Activation
    rho : Symbol
        The correlation.
    closed_form : Expr or None
        With parameters, and where no rule applies, the expectation itself.
    coefficients : tuple of pairs of intervals
        (μ_k(f), μ_k(g)) for k = 0, ..., K as (midpoint, radius), rational; none with a closed form.
    tails : pair of Expr
        Upper bounds of t_K(f) and t_K(g).
    rests_on : str
    """

    f: Activation
    g: Activation
    rho: sp.Symbol
    closed_form: sp.Expr | None
    coefficients: tuple[tuple[_Interval, _Interval], ...] = ()
    tails: tuple[sp.Expr, sp.Expr] = (sp.S.Zero, sp.S.Zero)
    rests_on: str = CLOSED_FORM
    order: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", len(self.coefficients) - 1)

    @property
    def expr(self) -> sp.Expr:
        """The closed form; else the truncated series, a polynomial in rho."""
        if self.closed_form is not None:
            return self.closed_form
        terms = (
            (a * b / sp.factorial(k)).evalf(15) * self.rho**k
            for k, ((a, _), (b, _)) in enumerate(self.coefficients)
        )
        return sp.Add(*terms)

    def _sympy_(self) -> sp.Expr:
        """Return the closed form where an expression is asked for; a series is not the function."""
        if self.closed_form is None:
            raise sp.SympifyError(f"{self!r} is a series; its .expr is a polynomial")
        return self.closed_form

    def value(self, rho: sp.Expr | int | float, *, digits: int = 20) -> DualValue:
        """Return the value at a correlation, with a bound of its error.

        `rho`: numbers that are not rational are replaced by a decimal with 30 digits more.
        `digits`: significant digits printed, 1 to 1000; the bound includes rounding. Raises
        ParameterError if `rho` is not a real number in [-1, 1], or `digits` is out of range.
        """
        digits = checked_digits(digits)
        at = as_expression(rho, "rho")
        if not (at.is_number and at.is_real) or (1 - at**2).is_negative:
            raise ParameterError(f"rho has to be a number in [-1, 1], not {rho!r}")
        unit = sp.Rational(1, 10 ** (digits - 1))
        if self.f.parameters or self.g.parameters:
            named = list(dict.fromkeys((*self.f.parameters, *self.g.parameters)))
            raise ParameterError(
                f"the value depends on {', '.join(map(str, named))}; give numbers, as in "
                f"expr.subs({named[0]}, 2)"
            )
        if self.closed_form is not None:
            number = with_far_tails(self.closed_form.subs(self.rho, at)).evalf(digits)
            if not (number.is_real and number.is_finite):
                number = self._on_the_boundary(at).evalf(digits)
            return DualValue(number, (abs(number) * unit).evalf(5), self.rests_on)
        # An irrational rho is rounded to 30 digits more; five of them are left for its evaluation.
        rounding = sp.S.Zero if at.is_Rational else sp.Rational(1, 10 ** (digits + 25))
        at = at if at.is_Rational else sp.Rational(at.evalf(digits + 30))
        total = error = sp.S.Zero
        for k, ((a, da), (b, db)) in enumerate(self.coefficients):
            weight = at**k / sp.factorial(k)
            total += weight * a * b
            error += abs(weight) * (abs(a) * db + abs(b) * da + da * db)
            if k and rounding:
                error += rounding * abs(at) ** (k - 1) / sp.factorial(k - 1) * abs(a * b)
        error += abs(at) ** (self.order + 1) * sp.sqrt(self.tails[0] * self.tails[1])
        number = total.evalf(digits)
        # Upwards, as bounds are: a thousandth covers the five digits that are kept.
        bound = (sp.Rational(1001, 1000) * (error + abs(total) * unit)).evalf(5)
        return DualValue(number, bound, self.rests_on)

    def _on_the_boundary(self, rho: sp.Expr) -> sp.Expr:
        """E[f(z) g(±z)]: closed forms of steps that are not centred divide by sqrt(1 - rho²)."""
        if not is_exactly_zero(1 - rho**2, "1 - rho**2"):
            raise ParameterError(f"the closed form has no digits at rho = {rho}; round rho")
        line = z if rho.is_positive else -z
        return expect(self.f.expr * self.g.expr.xreplace({z: line}), z)

    def derivative(self) -> DualActivation:
        r"""Return the dual of the derivatives, :math:`d\hat{f}_g/d\rho = \mathbb{E}[f'(u)g'(v)]`.

        Raises AssumptionError if f or g jumps.
        """
        first, second = (Activation(f"d/dz {s.name}", s.derivative) for s in (self.f, self.g))
        return _dual(first, second, self.rho, None if self.order < 0 else max(self.order - 1, 0))

    def picture(self) -> Lines:
        """Return the function over all correlations.

        Raises ParameterError if the closed form has parameters.
        """
        if open_symbols := self.expr.free_symbols - {self.rho}:
            names = ", ".join(sorted(map(str, open_symbols)))
            raise ParameterError(f"a figure needs numbers for {names}; give them in the functions")
        places = [sp.Rational(k, _HALF_POINTS) for k in range(-_HALF_POINTS, _HALF_POINTS + 1)]
        values = [float(self.value(place, digits=15).value) for place in places]
        same = self.f.name == self.g.name
        label = self.f.name if same else f"{self.f.name}, {self.g.name}"
        g = "f" if same else "g"
        left = rf"$\mathbb{{E}}[f(u)\,{g}(v)]$"
        return Lines([Line([float(p) for p in places], values, label)], r"$\rho$", left)

    def latex(self) -> str:
        """LaTeX of the equation."""
        left = rf"\mathbb{{E}}\left[f(u)\,g(v)\right] = {sp.latex(self.expr)}"
        if self.closed_form is not None:
            return left
        return rf"{left} + O\left({sp.latex(self.rho)}^{{{self.order + 1}}}\right)"

    def __repr__(self) -> str:
        if self.closed_form is not None:
            what = str(self.closed_form)
        else:
            what = f"Hermite series to order {self.order}"
        return f"DualActivation(E[{self.f.name}(u) {self.g.name}(v)] = {what})"


_Interval = tuple[sp.Rational, sp.Rational]
# Points of a figure on each side of zero.
_HALF_POINTS = 40


def dual_activation(
    f: str | sp.Expr | Activation,
    rho: sp.Symbol,
    g: str | sp.Expr | Activation | None = None,
    *,
    order: int | None = None,
) -> DualActivation:
    r"""Return :math:`\mathbb{E}[f(u) g(v)]` for standard normal u, v of correlation `rho`.

    Parameters
    ----------
    f, g : str, Expr or Activation
        As :func:`.activations.activation` takes them; g = f if not given. Parameters stay in the
        closed form, or in the expectation where there is none.
    rho : Symbol
        The correlation, declared real.
    order : int, optional
        Order K of the Hermite series, up to 60; given, the series is used even if there is a closed
        form. 20 where there is none.

    Raises
    ------
    ParameterError
        If `rho` is not a symbol declared real, or `order` is out of range.

    Examples
    --------
    >>> rho = sp.Symbol("rho", real=True)
    >>> dual_activation("erf", rho)
    DualActivation(E[erf(u) erf(v)] = 2*asin(2*rho/3)/pi)
    >>> dual_activation("relu", rho).derivative().closed_form
    asin(rho)/(2*pi) + 1/4
    >>> dual = dual_activation("tanh", rho)
    >>> dual, dual.value(sp.Rational(1, 2), digits=9).value
    (DualActivation(E[tanh(u) tanh(v)] = Hermite series to order 20), 0.186324413)
    >>> dual = dual_activation(activation("tanh(a*z)", parameters="a"), rho)
    >>> dual.expr, dual.rests_on
    (E_{u,v}[tanh(a*u)*tanh(a*v)], 'expectation without a closed form by rules')
    """
    if not isinstance(rho, sp.Symbol) or not rho.is_real:
        raise ParameterError(f"rho has to be a Symbol declared real, not {rho!r}")
    if order is not None and (type(order) is not int or not 0 <= order <= HIGHEST_ORDER):
        raise ParameterError(f"order has to be an integer from 0 to {HIGHEST_ORDER}, not {order!r}")
    first = activation(f, parameters=True, argument="f")
    second = first if g is None else activation(g, parameters=True, argument="g")
    named = {*first.parameters, *second.parameters}
    if rho in named:
        raise ParameterError(f"rho {rho} is a parameter of a function, too; use another symbol")
    return _dual(first, second, rho, order)


def _dual(f: Activation, g: Activation, rho: sp.Symbol, order: int | None) -> DualActivation:
    named = list(dict.fromkeys((*f.parameters, *g.parameters)))
    if order is None:
        u, v = sp.symbols("u v", real=True)
        if {"u", "v"} & {x.name for x in (rho, *named)}:
            u, v = sp.symbols("u v", cls=sp.Dummy, real=True)
        result = expect_joint(f(u) * g(v), correlated_pair(u, v, rho))
        if not result.has(JointExpectation, GaussianExpectation):
            return DualActivation(f, g, rho, result)
        if named:
            return DualActivation(f, g, rho, result, rests_on=EXPECTATION)
        order = DEFAULT_ORDER
    if named:
        raise UnsupportedExpressionError(
            f"the Hermite series of E[{f.name}(u) {g.name}(v)] needs numbers: give values to "
            f"{', '.join(map(str, named))}, or leave out order for the expectation itself"
        )
    if importlib.util.find_spec("flint") is not None:
        moments, rests_on = _proven_moments, PROVEN
    else:
        moments, rests_on = _estimated_moments, ESTIMATED
    mine, tail = moments(f, order)
    others, other_tail = (mine, tail) if g == f else moments(g, order)
    pairs = tuple(zip(mine, others, strict=True))
    return DualActivation(f, g, rho, None, pairs, (tail, other_tail), rests_on)


def _proven_moments(f: Activation, order: int) -> tuple[list[_Interval], sp.Expr]:
    """Proven μ_0, ..., μ_K, and an upper bound of t_K."""
    coefficients = [
        (ball.midpoint, ball.radius)
        for ball in enclosed_hermite_coefficients(f, order, digits=_DIGITS)
    ]
    square = enclosed_expectation(f.expr**2, z, digits=_DIGITS)
    return coefficients, _tail(coefficients, square.midpoint + square.radius)


def _estimated_moments(f: Activation, order: int) -> tuple[list[_Interval], sp.Expr]:
    """The same by quadrature to 30 digits, of which 25 are taken to be correct."""

    def estimate(value: sp.Expr) -> _Interval:
        if value.is_Rational:
            return value, sp.S.Zero
        number = sp.Rational(value.evalf(_DIGITS))
        return number, _ESTIMATED_ERROR * max(1, abs(number))

    coefficients = []
    for k in range(order + 1):
        coefficients.append(estimate(hermite_coefficient(f, k)))
    middle, error = estimate(expect(f.expr**2, z))
    return coefficients, _tail(coefficients, middle + error)


def _tail(coefficients: list[_Interval], square: sp.Rational) -> sp.Rational:
    """Largest possible Σ_{k>K} μ_k²/k!."""
    total = square
    for k, (middle, radius) in enumerate(coefficients):
        total -= max(sp.S.Zero, abs(middle) - radius) ** 2 / sp.factorial(k)
    if total < 0:
        raise AssumptionError(
            "the Hermite coefficients found exceed the second moment; use fewer of them"
        )
    return total
