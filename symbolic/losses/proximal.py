r"""Proximal operators and Moreau envelopes of convex losses as SymPy nodes.

For a loss :math:`\ell` that is convex in x, a center c and a step s > 0,

.. math::
    P = \operatorname{prox}_{s\ell}(c) = \arg\min_x \Big[\frac{(x - c)^2}{2s} + \ell(x)\Big],
    \qquad M = \min_x \Big[\frac{(x - c)^2}{2s} + \ell(x)\Big] ,

the point and the value by which a loss enters the saddle-point equations of empirical risk
minimisation. P solves :math:`P - c + s\,\ell'(P) = 0`, whose left-hand side increases in P with a
slope of at least one. Derivatives follow from the implicit function theorem,

.. math::
    \partial_c P = \frac{1}{1 + s\ell''(P)}, \qquad
    \partial_s P = -\frac{\ell'(P)}{1 + s\ell''(P)}, \qquad
    \partial_a P = -\frac{s\,\partial_a\ell'(P)}{1 + s\ell''(P)}

for a parameter a of the loss, and from the envelope theorem: :math:`\partial_c M = (c - P)/s =
\ell'(P)`, :math:`\partial_s M = -(c - P)^2/(2s^2)`, :math:`\partial_a M = \partial_a\ell(P)`.
"""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import ConvergenceError, ParameterError, UnsupportedExpressionError
from ...runtime.roots import bracketed_root
from ..expressions.arguments import as_expression
from ..expressions.averages import Binding
from ..expressions.factors import factored
from ..expressions.functions import with_softplus
from ..gaussian.expectation import ranges_over_the_line
from ..printing.compiled import compiled
from .convex_losses import (
    is_kinked,
    piecewise_linear_proximal,
    require_convex,
    smooth_pieces,
    without_cases,
)

_GUARD_BITS = 30


class _LossNode(Binding):
    """What depends on a loss, a center and a step; its variable is bound in the loss."""

    def __new__(cls, loss: Any, variable: Any, center: Any, step: Any) -> sp.Expr:  # type: ignore[misc]
        loss = as_expression(loss, "loss")
        center, step = as_expression(center, "center"), as_expression(step, "step")
        if not isinstance(variable, sp.Symbol) or not ranges_over_the_line(variable):
            raise ParameterError(
                f"variable must be a SymPy Symbol declared real and nothing else, got {variable!r}"
            )
        if step.is_extended_nonpositive or step.is_extended_real is False:
            raise ParameterError(f"step must be positive, got {step}")
        if center.is_extended_real is False or center.is_finite is False:
            raise ParameterError(f"center must be a real number, got {center}")
        loss = with_softplus(without_cases(loss, variable))
        # Functions that only have a name, such as tables, are parameters.
        named = {f: sp.Symbol(str(f), real=True) for f in loss.atoms(AppliedUndef)}
        require_convex(loss.xreplace(named), variable)
        return sp.Expr.__new__(cls, loss, variable, center, step)

    @property
    def loss(self) -> sp.Expr:
        """The loss, an expression in `variable` and parameters."""
        return self.args[0]

    @property
    def variable(self) -> sp.Symbol:
        """The bound variable x."""
        return self.args[1]

    @property
    def center(self) -> sp.Expr:
        """The center c."""
        return self.args[2]

    @property
    def step(self) -> sp.Expr:
        """The step s."""
        return self.args[3]

    @property
    def proximal(self) -> sp.Expr:
        """The proximal point P of the same loss, center and step."""
        return Proximal(*self.args)

    def _at_proximal(self, expr: sp.Expr) -> sp.Expr:
        return expr.xreplace({self.variable: self.proximal})

    def _done_args(self, hints: dict[str, Any]) -> tuple[sp.Expr, ...]:
        if not hints.get("deep", True):
            return self.args
        loss, variable, center, step = self.args
        return loss.doit(**hints), variable, center.doit(**hints), step.doit(**hints)

    def _eval_is_extended_real(self) -> bool:
        return True

    def _eval_is_finite(self) -> bool | None:
        return True if self.center.is_finite and self.step.is_finite else None

    def _objective_latex(self, printer: Any) -> str:
        x, center, step = (printer._print(e) for e in self.args[1:])
        square = printer._print(sp.Pow(self.variable - self.center, 2, evaluate=False))
        if self.center.is_Symbol:
            square = rf"\left({x} - {center}\right)^{{2}}"
        return rf"\left[\frac{{{square}}}{{2 {step}}} + {printer._print(self.loss)}\right]"


class Proximal(_LossNode):
    r"""The proximal point :math:`\arg\min_x [(x - c)^2/(2s) + \ell(x)]` of a convex loss.

    Parameters
    ----------
    loss : Expr
        The loss, convex in `variable`; its other symbols are parameters. Max, Min and Piecewise are
        written by relu where that is possible.
    variable : Symbol
        The bound variable x, declared real.
    center, step : Expr
        c and s > 0.

    Raises
    ------
    ParameterError
        If the step is not positive, or the loss is not convex, where that can be seen.

    Examples
    --------
    >>> x, c, y = sp.symbols("x c y", real=True)
    >>> s = sp.Symbol("s", positive=True)
    >>> Proximal((x - y) ** 2 / 2, x, c, s).doit()
    (c + s*y)/(s + 1)
    >>> Proximal(sp.Max(0, 1 - x), x, c, s).doit()
    relu(c - 1) - relu(-c - s + 1) + 1
    >>> from giantstep.symbolic.expressions.functions import softplus
    >>> p = Proximal(softplus(-x), x, c, s)
    >>> p.diff(c).subs(c, 0).subs(s, 2).evalf(20)
    0.69102160306650704756
    """

    @property
    def slope(self) -> sp.Expr:
        r"""The derivative of P with respect to its center, :math:`1/(1 + s\ell''(P))`."""
        if is_kinked(self.loss, self.variable):
            c = sp.Dummy("c", real=True)
            closed = _closed_form(self.loss, self.variable, c, self.step)
            return closed.diff(c).xreplace({c: self.center})
        return 1 / (1 + self.step * self._at_proximal(self.loss.diff(self.variable, 2)))

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        loss, x, center, step = self.args
        if is_kinked(loss, x):
            return _closed_form(loss, x, center, step).diff(symbol)
        first = loss.diff(x)
        inner = sp.S.Zero if symbol == x else self._at_proximal(first.diff(symbol))
        change = center.diff(symbol) - step.diff(symbol) * self._at_proximal(first) - step * inner
        return change * self.slope if change != 0 else sp.S.Zero

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the closed form for a loss that is quadratic between kinks; else the node."""
        args = self._done_args(hints)
        try:
            result = piecewise_linear_proximal(*args)
        except UnsupportedExpressionError:
            result = None
        return Proximal(*args) if result is None else result

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        value = proximal_value(self, prec)
        return sp.Float._new(value._mpf_, prec)

    def _sympystr(self, printer: Any) -> str:
        loss, x, center, step = (printer._print(e) for e in self.args)
        return f"prox[{loss}, {x}]({center}, {step})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        x = printer._print(self.variable)
        text = rf"\operatorname*{{arg\,min}}_{{{x}}}{self._objective_latex(printer)}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


class MoreauEnvelope(_LossNode):
    r"""The Moreau envelope :math:`\min_x [(x - c)^2/(2s) + \ell(x)]` of a convex loss.

    Parameters
    ----------
    loss, variable, center, step
        As for :class:`Proximal`.

    Examples
    --------
    >>> x, c = sp.symbols("x c", real=True)
    >>> s = sp.Symbol("s", positive=True)
    >>> MoreauEnvelope(x**2 / 2, x, c, s).doit()
    c**2/(2*(s + 1))
    >>> MoreauEnvelope(sp.cosh(x), x, c, s).diff(c)
    sinh(prox[cosh(x), x](c, s))
    """

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        loss, x, center, step = self.args
        if is_kinked(loss, x):
            # The loss has no slope at a kink, where P often is; the envelope has one.
            slope = (center - self.proximal) / step
        else:
            slope = self._at_proximal(loss.diff(x))
        result = center.diff(symbol) * slope - step.diff(symbol) * slope**2 / 2
        if symbol == x or symbol not in loss.free_symbols:
            return result
        if not is_kinked(loss, x):
            return result + self._at_proximal(loss.diff(symbol))
        # A kink that moves with the parameter carries P along.
        c, s = sp.Dummy("c", real=True), sp.Dummy("s", positive=True)
        closed = MoreauEnvelope(loss, x, c, s)._with_proximal(_closed_form(loss, x, c, s))
        return result + closed.diff(symbol).xreplace({c: center, s: step})

    def _eval_rewrite_as_Proximal(self, *args: sp.Expr, **hints: Any) -> sp.Expr:
        loss, x, _, step = args
        if is_kinked(loss, x):
            return self._with_proximal(Proximal(*args))
        # Of c - P, s times the slope at P, no digits are left where s is small.
        return self._at_proximal(loss + step * loss.diff(x) ** 2 / 2)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the value at the proximal point, in closed form for a piecewise quadratic loss."""
        loss, x, center, step = args = self._done_args(hints)
        slope = sp.expand(loss.diff(x))
        if not is_kinked(loss, x) and slope.is_polynomial(x) and sp.degree(slope, x) <= 1:
            at_center = slope.xreplace({x: center})
            curvature = slope.coeff(x, 1)
            gain = step * at_center**2 / (2 * (1 + step * curvature))
            return factored(loss.xreplace({x: center}) - gain)
        return MoreauEnvelope(*args)._with_proximal(Proximal(*args).doit(**hints))

    def _with_proximal(self, proximal: sp.Expr) -> sp.Expr:
        loss, x, center, step = self.args
        return (proximal - center) ** 2 / (2 * step) + loss.xreplace({x: proximal})

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        return None if self.free_symbols else self.rewrite(Proximal)._evalf(prec)

    def _sympystr(self, printer: Any) -> str:
        loss, x, center, step = (printer._print(e) for e in self.args)
        return f"envelope[{loss}, {x}]({center}, {step})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"\min_{{{printer._print(self.variable)}}}{self._objective_latex(printer)}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


def _closed_form(loss: sp.Expr, x: sp.Symbol, center: sp.Expr, step: sp.Expr) -> sp.Expr:
    result = piecewise_linear_proximal(loss, x, center, step)
    if result is None:
        raise UnsupportedExpressionError(
            f"the proximal point of {loss} has no derivative by rule: the loss has kinks, and is "
            f"not quadratic in {x} between them; smooth losses and piecewise quadratic ones do"
        )
    return result


def proximal_value(node: Proximal, prec: int) -> mpmath.mpf:
    """Return the proximal point of a loss without parameters to `prec` bits.

    Raises
    ------
    ParameterError
        If center or step are not a finite real number and a positive one.
    ConvergenceError
        If no zero is found where a convex loss has one.
    """
    for bits in (prec + _GUARD_BITS, 2 * prec + 4 * _GUARD_BITS, 8 * prec + 8 * _GUARD_BITS):
        ctx = mpmath.mp.clone()
        ctx.prec = bits
        root, center = _point(node, ctx)
        # Far below the center, the difference of the two has cost digits of the point.
        if root == 0 or ctx.mag(center or root) - ctx.mag(root) <= bits - prec - 8:
            break
    return root


def _point(node: Proximal, ctx: Any) -> tuple[Any, Any]:
    """Return proximal point and center at the precision of the context."""
    x = node.variable
    c, s = (_real(e, name, ctx) for e, name in ((node.center, "center"), (node.step, "step")))
    if s <= 0:
        raise ParameterError(f"step must be positive, got {ctx.nstr(s, 5)}")
    kinks, pieces = smooth_pieces(node.loss, x)
    points = [_real(k, "kink", ctx) for k in kinks]
    slopes = [compiled(piece.diff(x), [x], ctx) for piece in pieces]
    i = 0
    while i < len(points) and points[i] + s * slopes[i + 1](points[i]) < c:
        i += 1
    # c lies left of all that kink i reaches: on the kink, or on the piece before it.
    if i < len(points) and points[i] + s * slopes[i](points[i]) <= c:
        return points[i], c
    slope, curvature = slopes[i], compiled(pieces[i].diff(x, 2), [x], ctx)
    root = _increasing_zero(lambda p: p - c + s * slope(p), lambda p: 1 + s * curvature(p), c, ctx)
    return root, c


def _real(expr: sp.Expr, name: str, ctx: Any) -> Any:
    value = ctx.convert(expr._evalf(ctx.prec)._to_mpmath(ctx.prec))
    if not isinstance(value, ctx.mpf) or not ctx.isfinite(value):
        raise ParameterError(f"{name} must be a finite real number, got {expr}")
    return value


def _increasing_zero(function: Any, derivative: Any, start: Any, ctx: Any) -> Any:
    """Return where a function vanishes that increases with a slope ≥ 1."""
    value = function(start)
    # A slope of one at least puts the root within |value|; twice that is safe from rounding. The
    # value is a difference of terms as large as the start, and rounded like them.
    result = bracketed_root(
        lambda x: (function(x), derivative(x)), (start, start - 2 * value), ctx,
        start=start, size=abs(start),
    )  # fmt: skip
    if result is None:
        raise ConvergenceError("no proximal point was found: is the loss convex?", state=start)
    return result
