r"""Convex losses of a label y and a prediction x.

A loss enters the saddle-point equations through its Moreau envelope only
(:mod:`giantstep.symbolic.proximal`). Two reductions make a loss of two variables one of a single
variable: a *residual* loss depends on x − y, a *margin* loss on y x for labels ±1.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from ....errors import (
    EmissionError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from ....numeric.arguments import positive_number
from ....symbolic._singularities import expanded_terms, require_few_kinks
from ....symbolic._tokens import shorten
from ....symbolic.convex_losses import (
    is_kinked,
    piecewise_linear_proximal,
    require_convex,
    without_cases,
)
from ....symbolic.exact_numbers import require_evaluated
from ....symbolic.functions import relu, softplus, with_softplus
from ....symbolic.lowering.door import admit
from ....symbolic.parser import parse_expression
from ....symbolic.printing.compiled import compiled

y, x = sp.symbols("y x", real=True)
"""Label and prediction, in which losses are expressions."""

delta = sp.Symbol("delta", positive=True)
"""Where the Huber loss turns from quadratic to linear."""

CATALOGUE = {
    "square": (y - x) ** 2 / 2,
    "huber": (y - x) ** 2 / 2 - relu(y - x - delta) ** 2 / 2 - relu(x - y - delta) ** 2 / 2,
    "absolute": sp.Abs(y - x),
    "logistic": softplus(-y * x),
    "hinge": relu(1 - y * x),
}
# Labels at which convexity is looked at, besides ±1.
_LABELS = (-3, sp.Rational(-1, 2), 0, sp.Rational(3, 4), 2)
# Predictions at which the curvature is looked at: up to there, and how many in a unit.
_REACH, _PER_UNIT = 24, 16
_DIGITS, _ROUNDING = 40, 1e-25
# Where to look farther out, at the curvature and at the growth.
_FAR_POWERS = (2, 3, 4, 6)
_FAR_PREDICTIONS, _FASTEST = (2**12, 2**13), 3.5
# What a loss or a metric may hold, and the places where the arguments of functions that cost the
# more the larger they are have to have moderate exponents.
_MOST_FACTORS, _MOST_TERMS, _LARGEST_MAGNITUDE = 12, 2000, 2**16
_OF_LARGE_ARGUMENTS = (sp.exp, sp.cosh, sp.sinh, sp.sech, sp.sin, sp.cos, sp.tan)
_CORNERS = tuple({y: sp.Integer(b), x: sp.Integer(a)} for a in (-100, 100) for b in (-3, 3))
_HUBER = re.compile(r"huber\s*\(\s*([^()]+)\s*\)")


@dataclass(frozen=True)
class ConvexLoss:
    """A loss that is convex in the prediction; made by :func:`convex_loss`.

    Attributes
    ----------
    name : str
        In the catalogue, or the text of the expression.
    expr : Expr
        The loss, with the parameter δ for the Huber loss.
    delta : float or None
        δ of the Huber loss.
    """

    name: str
    expr: sp.Expr
    delta: float | None = None

    @cached_property
    def is_residual(self) -> bool:
        """Whether the loss depends on x − y only."""
        return _is_residual(self.expr)

    @cached_property
    def is_margin(self) -> bool:
        """Whether, for labels ±1, the loss is one of y x."""
        return sp.simplify(self.at_label(-1) - self.at_label(1).subs(x, -x)) == 0

    @cached_property
    def needs_binary_labels(self) -> bool:
        """Whether the loss is one of the product y x, which means a margin for ±1 only."""
        return _is_of_product(self.expr) and not self.is_residual

    def at_label(self, label: sp.Expr | int) -> sp.Expr:
        """Return the loss of the prediction `x` for one label."""
        return self.expr.xreplace({y: sp.sympify(label, strict=True)}).doit()

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """Symbols of the loss besides y and x."""
        return tuple(sorted(self.expr.free_symbols - {y, x}, key=str))

    def __str__(self) -> str:
        return self.name if self.delta is None else f"{self.name}({self.delta:g})"


def convex_loss(loss: object) -> ConvexLoss:
    """Return the loss that a name, a text, an expression or a loss stands for.

    Parameters
    ----------
    loss : str, Expr or ConvexLoss
        "square" (half the squared residual), "huber(δ)" with a number, "absolute", "logistic"
        (log(1 + exp(−yx))), "hinge", or a text or a SymPy expression in y and x.

    Raises
    ------
    ParameterError
        If the loss is unknown, does not depend on x, is not finite, or is not convex in x; the
        message names the point where it fails.
    ExpressionError
        If a text cannot be read.
    UnsupportedExpressionError
        If the loss has kinks and is not quadratic between them.

    Examples
    --------
    >>> convex_loss("hinge").is_margin, convex_loss("huber(0.3)").is_residual
    (True, True)
    >>> print(convex_loss("exp(x - y) - x"))
    exp(x - y) - x
    """
    if isinstance(loss, ConvexLoss):
        return loss
    if isinstance(loss, str):
        text = loss.strip()
        if not text:
            raise ParameterError(f"loss must be one of {_names()} or an expression in y and x")
        if text == "huber":
            raise ParameterError("loss 'huber' needs its δ, where it turns linear: 'huber(0.5)'")
        if found := _HUBER.fullmatch(text):
            return ConvexLoss("huber", CATALOGUE["huber"], _positive(found[1]))
        if text in CATALOGUE:
            return ConvexLoss(text, CATALOGUE[text])
        if re.fullmatch(r"[A-Za-z_]{3,}", text):
            raise ParameterError(
                f"loss must be one of {_names()} or an expression in y and x, got {shorten(text)!r}"
            )
        expr = parse_expression(text, [y, x], argument="loss")
    elif isinstance(loss, sp.Expr):
        # As text it is read again, so cases become what the parser knows.
        expr = without_cases(in_label_and_prediction(loss, "loss"), x)
        text = str(expr)
    else:
        raise ParameterError(
            f"loss must be one of {_names()}, or a text or SymPy expression in y and x, got "
            f"{loss!r}"
        )
    return _checked(text, expr)


def _names() -> str:
    return ", ".join(repr("huber(0.5)" if n == "huber" else n) for n in CATALOGUE)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(f"loss 'huber({text})': δ must be a number") from None
    return positive_number("δ of the Huber loss", value)


def in_label_and_prediction(expr: sp.Expr, argument: str) -> sp.Expr:
    """Return a SymPy expression of users in the symbols `y` and `x`, exact.

    Raises
    ------
    ExpressionError
        If it holds other symbols, or what is not made of arithmetic and known functions.
    """
    names = {"y": y, "x": x}
    foreign = sorted(str(s) for s in expr.free_symbols if s.name not in names)
    if foreign:
        raise ExpressionError(
            f"{argument} must be an expression in y and x alone, but {expr} holds "
            f"{', '.join(foreign)}"
        )
    require_evaluated(expr, argument)
    if unknown := sorted(map(str, expr.atoms(AppliedUndef))):
        raise ExpressionError(f"{argument} holds {unknown[0]}, a function without a definition")
    renamed = expr.xreplace({s: names[s.name] for s in expr.free_symbols})
    try:
        return admit(renamed, argument)
    except EmissionError as error:
        raise ExpressionError(str(error)) from None


def _checked(name: str, expr: sp.Expr) -> ConvexLoss:
    if x not in expr.free_symbols:
        raise ParameterError(f"loss must depend on the prediction x, and {name!r} does not")
    require_moderate_size(expr, f"loss {shorten(name)!r}")
    expr = with_softplus(expr)
    loss = ConvexLoss(name, expr)
    labels = (-1, 1) if loss.needs_binary_labels else (-1, 1, *_LABELS)
    reduced = [(label, without_cases(loss.at_label(label), x)) for label in labels]
    for label, at_label in reduced:
        _require_convex(name, label, at_label)
    for _, at_label in reduced:
        if is_kinked(at_label, x) and not _is_piecewise_quadratic(at_label):
            raise UnsupportedExpressionError(
                f"loss {name!r} has kinks and is not quadratic between them: its proximal point "
                "has no derivative by rule; smooth losses and piecewise quadratic ones do"
            )
    return loss


def require_moderate_size(expr: sp.Expr, described: str) -> None:
    """Refuse what could not be looked at in moderate time, by counts.

    Parameters
    ----------
    expr : Expr
        In x and y.
    described : str
        What the message begins with.

    Raises
    ------
    UnsupportedExpressionError
        If there are too many kinks, factors, or terms after multiplying out; or a function such as
        exp is taken of numbers with very many digits before the point, as in exp(exp(exp(x))).
    """
    require_few_kinks(expr, x)
    factors = max((sum(x in f.free_symbols for f in m.args) for m in expr.atoms(sp.Mul)), default=0)
    if factors > _MOST_FACTORS:
        raise UnsupportedExpressionError(
            f"{described} holds a product of {factors} functions of x; use at most {_MOST_FACTORS}"
        )
    if expanded_terms(expr) > _MOST_TERMS:
        raise UnsupportedExpressionError(
            f"{described} has more than {_MOST_TERMS} terms when multiplied out; use fewer factors"
        )
    grown = [f for f in expr.atoms(*_OF_LARGE_ARGUMENTS, sp.Pow) if f.free_symbols]
    # Inner ones first, so that the arguments of the others can be computed.
    for node in sorted(grown, key=sp.count_ops):
        argument = node.exp if node.is_Pow else node.args[0]
        for at in _CORNERS if argument.free_symbols else ():
            value = argument.xreplace(at).evalf(15)
            if value.is_Float and mpmath.mag(mpmath.mpf(value._mpf_)) > _LARGEST_MAGNITUDE:
                place = ", ".join(f"{symbol} = {number}" for symbol, number in at.items())
                raise UnsupportedExpressionError(
                    f"{described} holds {node} of a number beyond 2**{_LARGEST_MAGNITUDE} at "
                    f"{place}; let it grow more slowly"
                )


def _require_convex(name: str, label: object, at_label: sp.Expr) -> None:
    try:
        require_convex(at_label, x)
    except ParameterError as error:
        raise ParameterError(f"loss {name!r} at y = {label}: {error}") from None
    _require_curved_upwards(name, label, curvatures(at_label))
    require_slow_growth(at_label, f"loss {name!r} at y = {label}")
    # Last, for powers of ten are too far out for exp(exp(x)).
    _require_curved_upwards(name, label, _curvatures_far_out(at_label))


def _require_curved_upwards(name: str, label: object, found: Iterator[tuple[float, float]]) -> None:
    for point, curvature in found:
        if curvature < 0:
            raise ParameterError(
                f"loss {name!r} must be convex in x, but its curvature at y = {label}, "
                f"x = {point:g} is negative"
            )


def curvatures(at_label: sp.Expr) -> Iterator[tuple[float, float]]:
    """Second derivatives on a grid, between kinks; what is rounding counts as zero."""
    second = at_label.diff(x, 2).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    if not second.has(x):
        return
    ctx = _precise()
    curvature = compiled(second, [x], ctx)
    for k in range(-_REACH * _PER_UNIT, _REACH * _PER_UNIT + 1):
        # Off the round numbers, where kinks are.
        point = (ctx.mpf(k) + ctx.mpf("0.3")) / _PER_UNIT
        value = curvature(point)
        yield float(point), 0.0 if abs(value) < _ROUNDING else float(value)


def _curvatures_far_out(at_label: sp.Expr) -> Iterator[tuple[float, float]]:
    """Second derivatives at powers of ten, whose signs alone matter."""
    second = at_label.diff(x, 2).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    if not second.has(x):
        return
    ctx = _precise(2 * _DIGITS)
    curvature = compiled(second, [x], ctx)
    for power, side in itertools.product(_FAR_POWERS, (1, -1)):
        point = ctx.mpf(side * 10**power)
        value = curvature(point)
        yield float(point), -1.0 if value < -_ROUNDING else 0.0


def require_slow_growth(at_label: sp.Expr, described: str) -> None:
    """Refuse what grows like exp(x²) or faster: its mean over a Gaussian need not be finite.

    Parameters
    ----------
    at_label : Expr
        A function of x.
    described : str
        What the message begins with.

    Raises
    ------
    ParameterError
    """
    value = compiled(at_label, [x], ctx := _precise())
    for side in (1, -1):
        near, far = (ctx.log1p(abs(value(side * ctx.mpf(t)))) for t in _FAR_PREDICTIONS)
        # log exp(x²) grows four times from one to the other, log exp(x) twice.
        if far > _FASTEST * near + 1:
            raise ParameterError(
                f"{described} must grow more slowly than exp(x**2) for large x: predictions are "
                "Gaussian, and its mean is infinite"
            )


def _precise(digits: int = _DIGITS) -> Any:
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx


def _is_piecewise_quadratic(at_label: sp.Expr) -> bool:
    center, step = sp.Dummy("c", real=True), sp.Dummy("s", positive=True)
    try:
        return piecewise_linear_proximal(at_label, x, center, step) is not None
    except UnsupportedExpressionError:
        return False


# Once for all readouts with the same loss: SymPy takes its time to simplify.
@lru_cache(maxsize=64)
def _is_residual(expr: sp.Expr) -> bool:
    return _free_of_label(expr.subs(x, x + y))


@lru_cache(maxsize=64)
def _is_of_product(expr: sp.Expr) -> bool:
    u = sp.Symbol("u", real=True)
    return y in expr.free_symbols and _free_of_label(expr.subs(x, u / y))


def _free_of_label(expr: sp.Expr) -> bool:
    return y not in sp.simplify(sp.expand(expr)).free_symbols
