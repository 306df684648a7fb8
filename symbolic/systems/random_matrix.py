r"""Averages over the Marchenko–Pastur law, in closed form through its Stieltjes transform.

X is distributed as an eigenvalue of :math:`U U^\top`, U of shape (p, d) with independent entries
of variance 1/d, at aspect ratio :math:`\beta = p/d`: mean 1, support
:math:`(1 \pm \sqrt\beta)^2`, an atom of weight :math:`1 - 1/\beta` at 0 if :math:`\beta > 1`.

The resolvent :math:`G = \mathbb{E}\,1/(a + bX)` (a > 0, b ≥ 0) and the companion
:math:`h = 1/(1 + \beta b G)` satisfy

.. math:: G\,(a + b h) = 1, \qquad h\,(1 + \beta b G) = 1,

(Marchenko and Pastur 1967; Silverstein 1995). All averages of X^j/(a+bX)^k follow by
differentiation. They are brought to a form without subtractions by these two relations, because
differences like :math:`1 - aG` lose all digits when b is small.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from ...errors import ClosedFormNotFoundError, ConvergenceError, ParameterError
from ..expressions.arguments import as_expression
from ..expressions.averages import Average, mathml_leaf
from ..expressions.factors import partial_fractions
from ..expressions.shared_parts import first_derivative
from ..printing.compiled import compiled


class Resolvent(sp.Function):
    r"""The Marchenko–Pastur resolvent :math:`G_\beta(a, b) = \mathbb{E}\,[1/(a + bX)]`.

    ``rewrite(Piecewise)`` gives the root of :math:`a \beta b G^2 + (a + b - \beta b) G - 1 = 0`
    in the form that does not cancel.
    """

    nargs = 3

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr, beta: sp.Expr) -> sp.Expr | None:
        """1/a at b = 0."""
        return 1 / a if b.is_zero else None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """Derivative with respect to a, b or beta, from the quadratic equation."""
        a, b, _ = self.args
        h = companion(self)
        if argindex == 1:
            return -self / (a + b * h**2)
        if argindex == 2:
            return -self * h**2 / (a + b * h**2)
        return (self * b * h) ** 2 / (a + b * h**2)

    def _eval_is_extended_positive(self) -> bool | None:
        return self.args[0].is_extended_positive

    def _eval_rewrite(self, rule: Any, args: tuple[sp.Expr, ...], **hints: Any) -> sp.Expr | None:
        if rule is not sp.Piecewise:
            return None
        a, b, beta = args
        middle = a + b * (1 - beta)
        root = sp.sqrt(middle**2 + 4 * a * b * beta)
        return sp.Piecewise(
            (2 / (middle + root), middle >= 0), ((root - middle) / (2 * a * b * beta), True)
        )

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        return self.rewrite(sp.Piecewise)._evalf(prec)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        a, b, beta = (printer._print(x) for x in self.args)
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"G_{{{beta}}}{power}\left({a}, {b}\right)"


def companion(resolvent: Resolvent) -> sp.Expr:
    """Return h = 1/(1 + beta b G), which lies in (0, 1]."""
    _, b, beta = resolvent.args
    return 1 / (1 + beta * b * resolvent)


class MarchenkoPasturAverage(Average):
    r"""The average :math:`\mathbb{E}_X[f(X)]` over the Marchenko–Pastur law of aspect ratio β.

    Stays unevaluated, differentiates under the average, ``doit()`` gives the closed form of a
    rational function with poles on the negative axis, ``evalf(n)`` integrates the density.

    Examples
    --------
    >>> X, a, b, beta = sp.symbols("X a b beta", positive=True)
    >>> MarchenkoPasturAverage(1 / (a + b * X), X, beta).doit()
    Resolvent(a, b, beta)
    >>> MarchenkoPasturAverage(X**2, X, beta).doit()
    beta + 1
    """

    def __new__(cls, function: Any, variable: sp.Symbol, beta: Any) -> sp.Expr:  # type: ignore[misc]
        return cls._build(
            as_expression(function, "function"), variable, as_expression(beta, "beta")
        )

    @property
    def function(self) -> sp.Expr:
        """The averaged function of the eigenvalue."""
        return self.args[0]

    @property
    def beta(self) -> sp.Expr:
        """The aspect ratio p/d."""
        return self.args[2]

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        if symbol in self.beta.free_symbols:
            return sp.Derivative(self, symbol, evaluate=False)
        return MarchenkoPasturAverage(
            first_derivative(self.function, symbol), self.variable, self.beta
        )

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the closed form.

        Raises
        ------
        ClosedFormNotFoundError
            If the function is not rational with poles at real points that its symbols do not
            place on the positive axis.
        """
        return _average(self.function, self.variable, self.beta)

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        ctx = mpmath.mp.clone()
        ctx.prec = prec + 20
        if not self.beta.is_positive:
            raise ParameterError(f"the aspect ratio beta must be positive, got {self.beta}")
        beta = ctx.mpf(str(self.beta.evalf(ctx.dps)))
        root, gap = ctx.sqrt(beta), 1 - ctx.sqrt(beta)
        function = compiled(self.function, [self.variable], ctx)

        def integrand(angle: Any) -> Any:
            # x = 1 + β - 2√β cos(angle) makes the square-root edges analytic.
            half = ctx.sin(angle / 2) ** 2
            x = gap**2 + 4 * root * half
            if not gap:
                return function(x) * 2 * (1 - half) / ctx.pi
            return function(x) * 2 * ctx.sin(angle) ** 2 / (ctx.pi * x)

        try:
            value, error = ctx.quad(integrand, [0, ctx.pi], error=True)
            if beta > 1:
                value += (1 - 1 / beta) * function(ctx.zero)
            exists = ctx.isfinite(value) and error <= ctx.ldexp(1 + abs(value), -prec)
            if not gap:
                # At beta = 1 the bulk reaches X = 0; a divergence there looks like a large value.
                exists = exists and ctx.eps * abs(integrand(ctx.eps)) <= ctx.eps ** (1 / 4)
        except ZeroDivisionError:
            exists = False
        if not exists:
            raise ConvergenceError(
                f"the average of {self.function} over the Marchenko-Pastur law of beta = "
                f"{self.beta} does not exist, or the rule does not converge"
            )
        return sp.Float._new(value._mpf_, prec)

    def _sympystr(self, printer: Any) -> str:
        law = f"{self.variable}~MP({printer._print(self.beta)})"
        return f"E_{{{law}}}[{printer._print(self.function)}]"

    def _latex(self, printer: Any) -> str:
        x, beta = printer._print(self.variable), printer._print(self.beta)
        inside = printer._print(self.function)
        return rf"\mathbb{{E}}_{{{x}\sim\mathrm{{MP}}_{{{beta}}}}}\left[{inside}\right]"

    def _mathml_law(self, printer: Any) -> Any:
        law = printer.dom.createElement("mrow")
        law.appendChild(printer._print(self.variable))
        law.appendChild(mathml_leaf(printer, "mo", "∼MP"))
        law.appendChild(printer._print(self.beta))
        return law


def resolvent_moment(power: int, order: int, a: sp.Expr, b: sp.Expr, beta: sp.Expr) -> sp.Expr:
    r"""Return :math:`\mathbb{E}[X^j/(a + bX)^k]` for 0 ≤ j ≤ k, free of cancellation for k ≤ 2.

    Parameters
    ----------
    power, order : int
        j and k.
    a, b, beta : Expr
        a > 0, b ≥ 0 and the aspect ratio.

    Notes
    -----
    With G and h of the module docstring: k = 1 gives G and G h; k = 2 gives G/(a + b h²),
    G h²/(a + b h²) and, using 1 − h = β b G h, G h² (h + a β G)/(a + b h²), all sums of positive
    terms. Higher k follow by differentiation: d/da of the average is −k times the next order.
    """
    if not 0 <= power <= order or order < 1:
        raise ValueError(f"need 0 <= power <= order and order >= 1, got {power}, {order}")
    g = Resolvent(a, b, beta)
    h = companion(g) if b != 0 else sp.S.One
    if order == 1:
        return g if power == 0 else g * h
    if order == 2:
        denominator = a + b * h**2
        return (g, g * h**2, g * h**2 * (h + a * beta * g))[power] / denominator
    # d/da lowers nothing in the numerator, d/db raises both powers by one.
    if power < order:
        return _derivative(power, order - 1, a, b, beta, 0)
    return _derivative(power - 1, order - 1, a, b, beta, 1)


# Stand for the arguments in derivatives, which are thus computed once.
_A, _B, _BETA = (sp.Dummy(name, positive=True) for name in ("a", "b", "beta"))


def _derivative(
    power: int, order: int, a: sp.Expr, b: sp.Expr, beta: sp.Expr, which: int
) -> sp.Expr:
    result = _generic_derivative(power, order, which)
    return result.xreplace({_A: a, _B: b, _BETA: beta})


@lru_cache(maxsize=64)
def _generic_derivative(power: int, order: int, which: int) -> sp.Expr:
    lower = resolvent_moment(power, order, _A, _B, _BETA)
    return -lower.diff((_A, _B)[which]) / order


def moment(order: int, beta: sp.Expr) -> sp.Expr:
    """Return E[X^k], the Narayana polynomial in beta."""
    if order == 0:
        return sp.S.One
    return sp.Add(
        *(
            sp.binomial(order, i) * sp.binomial(order, i - 1) * beta ** (i - 1) / order
            for i in range(1, order + 1)
        )
    )


def _average(function: sp.Expr, x: sp.Symbol, beta: sp.Expr) -> sp.Expr:
    simple = _single_pole(function, x)
    if simple is not None:
        factor, power, order, a, b = simple
        if power <= order:
            return factor * resolvent_moment(power, order, a, b, beta)
    if not function.is_rational_function(x):
        raise ClosedFormNotFoundError(
            f"the Marchenko-Pastur average of {function} has no closed form by rule: it is not a "
            "rational function of the eigenvalue; evalf(n) integrates it numerically"
        )
    total: sp.Expr = sp.S.Zero
    for term in sp.Add.make_args(partial_fractions(sp.together(function), x)):
        if term.is_polynomial(x):
            for (order,), coefficient in sp.Poly(term, x).terms():
                total += coefficient * moment(order, beta)
            continue
        result = _single_pole(term, x)
        if result is None or result[1] > result[2]:
            raise ClosedFormNotFoundError(
                f"the Marchenko-Pastur average of {term} has no closed form by rule: "
                "it needs the form x**j / (a + b*x)**k with a > 0 and b >= 0 (declare the symbols "
                "positive); evalf(n) integrates it numerically"
            )
        factor, power, order, a, b = result
        total += factor * resolvent_moment(power, order, a, b, beta)
    return total


def _single_pole(term: sp.Expr, x: sp.Symbol) -> tuple[sp.Expr, int, int, sp.Expr, sp.Expr] | None:
    """Read ``f x**j / (a + b x)**k`` as (f, j, k, a, b)."""
    factor, rest = term.as_independent(x, as_Add=False)
    power, order, a, b = 0, 0, sp.S.One, sp.S.Zero
    for piece in sp.Mul.make_args(rest):
        base, exponent = piece.as_base_exp()
        if not exponent.is_Integer:
            return None
        if base == x and exponent > 0:
            power += int(exponent)
        elif exponent < 0 and order == 0:
            slope = base.diff(x)
            if slope.has(x):
                return None
            order, a, b = -int(exponent), base.xreplace({x: sp.S.Zero}), slope
        else:
            return None
    if order == 0:
        return None
    if a.is_extended_negative and b.is_extended_nonpositive:
        factor, a, b = (-1) ** order * factor, -a, -b
    # Off the negative axis the resolvent's root is another one (or the average diverges).
    if not (a.is_extended_positive and b.is_extended_nonnegative):
        return None
    return factor, power, order, a, b
