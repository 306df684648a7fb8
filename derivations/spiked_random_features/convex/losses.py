r"""Convex losses of a label y and a prediction x.

A loss enters the saddle-point equations through its Moreau envelope only
(:mod:`giantstep.symbolic.losses.proximal`). Two reductions make a loss of two variables one of a
single variable: a *residual* loss depends on x − y, a *margin* loss on y x for labels ±1.

Besides losses: how strongly they are curved, the functions of label and prediction that users
average (metrics), and losses as functions of arrays for simulations.
"""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from ....numeric.arguments import positive_number, real_number
from ....numeric.networks.convex import Loss, proximal_loss, smooth_loss
from ....pages import shorten
from ....symbolic.expressions._singularities import expanded_terms, require_few_kinks
from ....symbolic.expressions.activations import without_declared
from ....symbolic.expressions.arguments import text_of_function
from ....symbolic.expressions.exact_numbers import require_evaluated
from ....symbolic.expressions.functions import relu, softplus, with_softplus
from ....symbolic.expressions.parser import parse_expression
from ....symbolic.losses.convex_losses import (
    is_kinked,
    piecewise_linear_proximal,
    require_convex,
    smooth_pieces,
    without_cases,
)
from ....symbolic.lowering.door import admit
from ....symbolic.printing.compiled import compiled
from ...kernels.arguments import known_names
from ...kernels.kernel import RESERVED
from ..physics import IDENTIFIERS

y, x = sp.symbols("y x", real=True)
"""Label and prediction, in which losses are expressions."""
Numbers = Mapping[sp.Symbol, sp.Rational]


@dataclass(frozen=True)
class LossParameter:
    """A parameter of a loss in the catalogue.

    Attributes
    ----------
    of : str
        The loss, as it is called.
    symbol : Symbol
    domain : str
        Numbers that it may be, as kernels name them.
    example : float
        For messages.
    meaning : str
    """

    of: str
    symbol: sp.Symbol
    domain: str
    example: float
    meaning: str


delta, tau, epsilon = sp.symbols("delta tau epsilon", positive=True)

CATALOGUE: Mapping[str, sp.Expr] = {
    "square": (y - x) ** 2 / 2,
    "huber": (y - x) ** 2 / 2 - relu(y - x - delta) ** 2 / 2 - relu(x - y - delta) ** 2 / 2,
    "absolute": sp.Abs(y - x),
    "quantile": tau * relu(y - x) + (1 - tau) * relu(x - y),
    "insensitive": relu(y - x - epsilon) + relu(x - y - epsilon),
    "logistic": softplus(-y * x),
    "hinge": relu(1 - y * x),
}
"""Losses by name; where an expression has a parameter, so has the name: ``huber(0.5)``."""

_PARAMETERS = {
    "huber": LossParameter("Huber", delta, "positive", 0.5, "where it turns linear"),
    "quantile": LossParameter("quantile", tau, "(0, 1)", 0.9, "the quantile that it fits"),
    "insensitive": LossParameter(
        "ε-insensitive", epsilon, "positive", 0.1, "up to which residuals cost nothing"
    ),
}
# Names of other parameters, of unknowns, of outputs and of arguments of kernels.
_TAKEN = frozenset({
    *RESERVED, *IDENTIFIERS.values(), "q1_orthogonal", "test_error", "test_loss", "training_loss",
    "objective",
})  # fmt: skip
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
_WITH_NUMBER = re.compile(r"([A-Za-z_]{3,})\s*\(([^()]+)\)")
# Sizes of a parameter of a user's loss at which it has to be convex, besides the given one.
_SCALES = (sp.S.One, sp.Rational(1, 100), sp.Rational(3, 4), sp.Rational(7, 2), sp.Integer(100))


@dataclass(frozen=True)
class ConvexLoss:
    """A loss that is convex in the prediction; made by :func:`convex_loss`.

    Attributes
    ----------
    name : str
        In the catalogue, or the text of the expression.
    expr : Expr
        The loss, in y, x and its parameters.
    values : tuple of (str, float)
        Numbers for the parameters. All numbers share one kernel.
    """

    name: str
    expr: sp.Expr
    values: tuple[tuple[str, float], ...] = ()

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """Symbols of the loss besides y and x."""
        return tuple(sorted(self.expr.free_symbols - {y, x}, key=str))

    @property
    def in_catalogue(self) -> bool:
        """Whether the loss has a name."""
        return self.name in CATALOGUE

    @property
    def domains(self) -> dict[str, str]:
        """Numbers that its parameters may be, where their assumptions do not say it."""
        known = _PARAMETERS.get(self.name)
        return {} if known is None else {known.symbol.name: known.domain}

    @property
    def signs(self) -> tuple[tuple[str, bool], ...]:
        """Which of its parameters are positive; the others are negative."""
        return tuple((name, value > 0) for name, value in self.values)

    def at(self, **parameters: float) -> ConvexLoss:
        """Return this loss with other numbers for its parameters.

        Raises
        ------
        ParameterError
            If there is no such parameter, the loss is not convex there, or a number cannot be.
        """
        known = dict(self.values)
        known_names(parameters, known, f"parameter of the loss {self.name}")
        new = {**known, **parameters}
        if self.in_catalogue:
            return convex_loss(f"{self.name}({', '.join(map(repr, new.values()))})")
        values = {name: real_number(name, value) for name, value in new.items()}
        found = replace(self, values=tuple(values.items()))
        if all(values.values()) and found.signs == self.signs:
            # Known to be convex for all numbers of these signs.
            return found
        return convex_loss(self.name, **values)

    @property
    def exact_values(self) -> dict[sp.Symbol, sp.Rational]:
        """The numbers of the parameters, every float read as the decimal that it prints as."""
        numbers = dict(self.values)
        return {p: sp.Rational(repr(numbers[p.name])) for p in self.parameters}

    @property
    def with_numbers(self) -> sp.Expr:
        """The loss in y and x alone."""
        return self.expr.xreplace(self.exact_values)

    @cached_property
    def is_residual(self) -> bool:
        """Whether the loss depends on x − y only."""
        return _is_residual(self.expr)

    @cached_property
    def is_square(self) -> bool:
        """Whether the loss is the square of the residual but for a factor."""
        return self.is_residual and not is_kinked(self.expr, x) and self.expr.diff(x, 3) == 0

    @cached_property
    def is_margin(self) -> bool:
        """Whether, for labels ±1, the loss is one of y x."""
        return sp.simplify(self.at_label(-1) - self.at_label(1).subs(x, -x)) == 0

    @cached_property
    def needs_binary_labels(self) -> bool:
        """Whether the loss is one of the product y x, which means a margin for ±1 only."""
        return not self.is_residual and _is_of_product(self.expr)

    def at_label(self, label: sp.Expr | int) -> sp.Expr:
        """Return the loss of the prediction `x` for one label."""
        return self.expr.xreplace({y: sp.sympify(label, strict=True)}).doit()

    def __str__(self) -> str:
        numbers = [f"{name} = {_short(value)}" for name, value in self.values]
        if self.in_catalogue:
            return self.name + "".join(f"({_short(value)})" for _, value in self.values)
        return f"{self.name} with {', '.join(numbers)}" if numbers else self.name


def convex_loss(loss: object, **parameters: float) -> ConvexLoss:
    """Return the loss that a name, a text, an expression or a loss stands for.

    Parameters
    ----------
    loss : str, Expr or ConvexLoss
        "square" (half the squared residual), "huber(δ)" with a number, "absolute",
        "quantile(τ)" (τ of a residual y − x > 0, 1 − τ of −(y − x) > 0), "insensitive(ε)" (the
        excess of |y − x| over ε), "logistic" (log(1 + exp(−yx))), "hinge", or a text or a SymPy
        expression in y and x.
    **parameters : float
        Numbers for further symbols of the expression. They are parameters of the kernel, which is
        derived once for all their values of the same sign, as `delta` of the Huber loss is.

    Raises
    ------
    ParameterError
        If the loss is unknown, does not depend on x, is not finite, or is not convex in x (at all
        values of its parameters that have the sign of the given ones); the message names the point
        where it fails. If parameters are missing, too many, or named like another one of a
        kernel.
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
    >>> print(convex_loss("log(cosh(a*(x - y)))/a", a=2))
    log(cosh(a*(x - y)))/a with a = 2
    """
    if isinstance(loss, ConvexLoss):
        if parameters:
            raise ParameterError(f"loss {loss.name!r} has its parameters already: {loss}")
        return loss
    symbols = _symbols(parameters)
    if isinstance(loss, str):
        text = without_declared(loss.strip())
        if not text:
            raise ParameterError(f"loss must be one of {_names()} or an expression in y and x")
        if known := _of_the_catalogue(text):
            if parameters:
                raise ParameterError(f"loss {text!r} has its parameters in its name")
            return known
        expr = parse_expression(text, [y, x, *symbols], argument="loss")
    elif isinstance(loss, sp.Expr):
        # As text it is read again, so cases become what the parser knows.
        expr = without_cases(in_label_and_prediction(loss, "loss", symbols), x)
        text = str(expr)
    else:
        raise ParameterError(
            f"loss must be one of {_names()}, or a text or SymPy expression in y and x, got "
            f"{loss!r}{'; ' * callable(loss)}{text_of_function(loss)}"
        )
    values = {symbol.name: float(parameters[symbol.name]) for symbol in symbols}
    if idle := [name for symbol, name in zip(symbols, values, strict=True)
                if symbol not in expr.free_symbols]:  # fmt: skip
        raise ParameterError(f"loss {shorten(text)!r} has no parameter {idle[0]!r}")
    return _checked(text, expr, values)


def loss_family(name: str, signs: tuple[tuple[str, bool], ...]) -> ConvexLoss:
    """Return a loss without numbers for its parameters: what a kernel is derived from.

    Parameters
    ----------
    name : str
        :attr:`ConvexLoss.name` of a loss that was checked.
    signs : tuple of (str, bool)
        Its :attr:`ConvexLoss.signs`.
    """
    if name in CATALOGUE:
        return ConvexLoss(name, CATALOGUE[name])
    symbols = [_signed(parameter, positive) for parameter, positive in signs]
    return ConvexLoss(name, with_softplus(parse_expression(name, [y, x, *symbols])))


def _of_the_catalogue(text: str) -> ConvexLoss | None:
    """Return a loss that is named, with its number; None if the text is an expression."""
    found = _WITH_NUMBER.fullmatch(text)
    name = found[1] if found else text
    known = _PARAMETERS.get(name)
    if known is None:
        if name in CATALOGUE and not found:
            return ConvexLoss(name, CATALOGUE[name])
        if re.fullmatch(r"[A-Za-z_]{3,}", text):
            raise ParameterError(
                f"loss must be one of {_names()} or an expression in y and x, got {shorten(text)!r}"
            )
        return None
    letter = sp.pretty(known.symbol, use_unicode=True)
    if not found:
        raise ParameterError(
            f"loss {name!r} needs its {letter}, {known.meaning}: '{name}({known.example:g})'"
        )
    try:
        value = float(found[2])
    except ValueError:
        raise ParameterError(f"loss '{text}': {letter} must be a number") from None
    what = f"{letter} of the {known.of} loss"
    value = positive_number(what, value)
    if known.domain == "(0, 1)" and not value < 1:
        raise ParameterError(f"{what} must be inside (0, 1), got {value:g}")
    return ConvexLoss(name, CATALOGUE[name], ((known.symbol.name, value),))


def _short(value: float) -> str:
    return text if float(text := f"{value:g}") == value else repr(value)


def _names() -> str:
    return ", ".join(
        repr(f"{name}({_PARAMETERS[name].example:g})" if name in _PARAMETERS else name)
        for name in CATALOGUE
    )


def _symbols(parameters: Mapping[str, float]) -> tuple[sp.Symbol, ...]:
    """Return symbols for the parameters of a loss, with the signs of their values."""
    for name, value in parameters.items():
        if name in (*map(str, (y, x)), *_TAKEN):
            raise ParameterError(
                f"parameter {name!r} of the loss has the name of something else; choose another one"
            )
        if real_number(f"parameter {name!r} of the loss", value) in (0.0, math.inf, -math.inf):
            raise ParameterError(
                f"parameter {name!r} of the loss must be finite and not 0, got {value}; the "
                "equations of a term that vanishes are others: leave it out"
            )
    return tuple(_signed(name, value > 0) for name, value in sorted(parameters.items()))


def _signed(name: str, positive: bool) -> sp.Symbol:
    return sp.Symbol(name, positive=True) if positive else sp.Symbol(name, negative=True)


def in_label_and_prediction(
    expr: sp.Expr, argument: str, parameters: Sequence[sp.Symbol] = ()
) -> sp.Expr:
    """Return a SymPy expression of users in the symbols `y` and `x`, exact.

    Raises
    ------
    ExpressionError
        If it holds other symbols, or what is not made of arithmetic and known functions.
    """
    names = {s.name: s for s in (y, x, *parameters)}
    foreign = sorted(str(s) for s in expr.free_symbols if s.name not in names)
    if foreign:
        others = "".join(f", {s}" for s in parameters) or " alone"
        raise ExpressionError(
            f"{argument} must be an expression in y and x{others}, but {expr} holds "
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


def _checked(name: str, expr: sp.Expr, values: Mapping[str, float]) -> ConvexLoss:
    if x not in expr.free_symbols:
        raise ParameterError(f"loss must depend on the prediction x, and {name!r} does not")
    require_moderate_size(expr, f"loss {shorten(name)!r}")
    loss = ConvexLoss(name, with_softplus(expr), tuple(values.items()))
    labels = (-1, 1) if loss.needs_binary_labels else (-1, 1, *_LABELS)
    at_labels = [(label, without_cases(loss.at_label(label), x)) for label in labels]
    for numbers in _numbers(loss):
        described = name + "".join(f", {p} = {float(v):g}" for p, v in numbers.items())
        for label, at_label in at_labels:
            _require_convex(described, label, at_label, numbers)
    for _, at_label in at_labels:
        if is_kinked(at_label, x) and not _is_piecewise_quadratic(at_label):
            raise UnsupportedExpressionError(
                f"loss {name!r} has kinks and is not quadratic between them: its proximal point "
                "has no derivative by rule; smooth losses and piecewise quadratic ones do"
            )
    return loss


def _numbers(loss: ConvexLoss) -> Iterator[Numbers]:
    """The parameters of a loss as given, and one after the other elsewhere."""
    given = loss.exact_values
    yield given
    for symbol in given:
        for scale in _SCALES:
            yield {**given, symbol: scale * sp.sign(given[symbol])}


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


def _require_convex(name: str, label: object, at_label: sp.Expr, numbers: Numbers) -> None:
    try:
        require_convex(at_label.xreplace(numbers), x)
    except ParameterError as error:
        raise ParameterError(f"loss {name!r} at y = {label}: {error}") from None
    _require_curved_upwards(name, label, curvatures(at_label, numbers))
    require_slow_growth(at_label, f"loss {name!r} at y = {label}", numbers)
    # Last, for powers of ten are too far out for exp(exp(x)).
    _require_curved_upwards(name, label, _curvatures_far_out(at_label, numbers))


def _require_curved_upwards(name: str, label: object, found: Iterator[tuple[float, float]]) -> None:
    for point, curvature in found:
        if curvature < 0:
            raise ParameterError(
                f"loss {name!r} must be convex in x, but its curvature at y = {label}, "
                f"x = {point:g} is negative"
            )


def curvatures(at_label: sp.Expr, numbers: Numbers) -> Iterator[tuple[float, float]]:
    """Second derivatives on a grid, between kinks; what is rounding counts as zero."""
    second = _second_derivative(at_label)
    if not second.has(x):
        return
    ctx, curvature = _precise(second, numbers)
    for k in range(-_REACH * _PER_UNIT, _REACH * _PER_UNIT + 1):
        # Off the round numbers, where kinks are.
        point = (ctx.mpf(k) + ctx.mpf("0.3")) / _PER_UNIT
        value = curvature(point)
        yield float(point), 0.0 if abs(value) < _ROUNDING else float(value)


def _curvatures_far_out(at_label: sp.Expr, numbers: Numbers) -> Iterator[tuple[float, float]]:
    """Second derivatives at powers of ten, whose signs alone matter."""
    second = _second_derivative(at_label)
    if not second.has(x):
        return
    ctx, curvature = _precise(second, numbers, 2 * _DIGITS)
    for power, side in itertools.product(_FAR_POWERS, (1, -1)):
        point = ctx.mpf(side * 10**power)
        value = curvature(point)
        yield float(point), -1.0 if value < -_ROUNDING else 0.0


@lru_cache(maxsize=64)
def _second_derivative(at_label: sp.Expr) -> sp.Expr:
    """Between kinks."""
    second: sp.Expr = at_label.diff(x, 2).replace(sp.DiracDelta, lambda *_: sp.S.Zero)
    return second


def require_slow_growth(at_label: sp.Expr, described: str, numbers: Numbers) -> None:
    """Refuse what grows like exp(x²) or faster: its mean over a Gaussian need not be finite.

    Parameters
    ----------
    at_label : Expr
        A function of x.
    described : str
        What the message begins with.
    numbers : mapping from Symbol to Expr
        Values of the parameters.

    Raises
    ------
    ParameterError
    """
    ctx, value = _precise(at_label, numbers)
    for side in (1, -1):
        near, far = (ctx.log1p(abs(value(side * ctx.mpf(t)))) for t in _FAR_PREDICTIONS)
        # log exp(x²) grows four times from one to the other, log exp(x) twice.
        if far > _FASTEST * near + 1:
            raise ParameterError(
                f"{described} must grow more slowly than exp(x**2) for large x: predictions are "
                "Gaussian, and its mean is infinite"
            )


def _precise(
    expr: sp.Expr, numbers: Numbers, digits: int = _DIGITS
) -> tuple[Any, Callable[[Any], Any]]:
    """Return numbers of many digits, and a function of x in them."""
    ctx, function = _in_parameters(expr, tuple(numbers), digits)
    values = [ctx.mpf(value.p) / value.q for value in numbers.values()]
    return ctx, lambda point: function(point, *values)


@lru_cache(maxsize=64)
def _in_parameters(expr: sp.Expr, parameters: tuple[sp.Symbol, ...], digits: int) -> Any:
    # Once for all values of the parameters: to differentiate and print takes longer than the grid.
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx, compiled(expr, [x, *parameters], ctx)


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


# ------------------------------------------------------------------ curvature


def largest_curvature(loss: ConvexLoss) -> sp.Expr:
    """Return an upper bound of the second derivative of a loss in the prediction.

    Infinite for a loss with a jump in its slope, and where it varies and has parameters. That of a
    smooth loss is looked up on a grid and rounded up to a power of two, for it is the length of a
    step and not a result.

    Examples
    --------
    >>> from giantstep.derivations.spiked_random_features.convex.losses import convex_loss
    >>> [largest_curvature(convex_loss(name)) for name in ("huber(0.3)", "hinge", "logistic")]
    [1, oo, 1/4]
    """
    found = [_of_one_label(without_cases(loss.at_label(label), x)) for label in (-1, 1)]
    return sp.Max(*found)


def _of_one_label(at_label: sp.Expr) -> sp.Expr:
    if not is_kinked(at_label, x):
        if at_label.diff(x, 2).free_symbols > {x}:
            return sp.oo
        largest = max((value for _, value in curvatures(at_label, {})), default=None)
        if largest is None:
            return at_label.diff(x, 2)
        return sp.Integer(2) ** math.ceil(math.log2(largest))
    kinks, pieces = smooth_pieces(at_label, x)
    for kink, left, right in zip(kinks, pieces[:-1], pieces[1:], strict=True):
        if sp.simplify((right - left).diff(x).xreplace({x: kink})) != 0:
            return sp.oo
    return sp.Max(*(piece.diff(x, 2) for piece in pieces))


# ------------------------------------------------------------------ metrics

_RESULTS = ("error", "loss")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
# Labels and predictions at which a metric is looked at.
_PLACES = (*map(sp.Integer, (-20, -1, 0, 1, 20)), sp.Rational(3, 4), sp.Rational(-5, 8))


def read_metrics(metrics: Mapping[str, object] | None) -> dict[str, sp.Expr]:
    """Return metrics as expressions in y and x.

    Parameters
    ----------
    metrics : mapping from str to str or Expr, optional

    Raises
    ------
    ParameterError
        If a name is no identifier, or a metric is no function of y or x, jumps in x, is not a
        finite real number everywhere, or grows too fast to have a mean.
    ExpressionError
        If a text cannot be read.
    """
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise ParameterError(
            f"metrics must be a mapping from names to expressions, got {metrics!r}"
        )
    found = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or keyword.iskeyword(name):
            raise ParameterError(f"metrics: the name {name!r} is no identifier of ASCII letters")
        if name in _RESULTS:
            raise ParameterError(f"metrics: test_{name} is a result already; use another name")
        argument = f"metrics[{name!r}]"
        if isinstance(value, str):
            expr = parse_expression(value, [y, x], argument=argument)
        elif isinstance(value, sp.Expr):
            expr = in_label_and_prediction(value, argument)
        else:
            raise ParameterError(
                f"{argument} must be a text or a SymPy expression in y and x, got {value!r}"
            )
        if not expr.free_symbols:
            raise ParameterError(f"{argument} must depend on y or x, and {expr} does not")
        require_moderate_size(expr, argument)
        expr = without_cases(expr, x)
        jumps = [a for a in expr.atoms(sp.sign, sp.Heaviside) if x in a.free_symbols]
        if jumps:
            raise ParameterError(
                f"{argument} must be continuous in x, but {jumps[0]} jumps; test_error is "
                "the fraction of wrong signs for labels ±1"
            )
        _require_mean(expr, argument)
        found[name] = expr
    return found


def _require_mean(metric: sp.Expr, argument: str) -> None:
    for label in _PLACES:
        at_label = metric.xreplace({y: label})
        for place in _PLACES:
            value = at_label.xreplace({x: place}).evalf()
            if not (value.is_Number and value.is_finite):
                raise ParameterError(
                    f"{argument} must be a finite real number for all y and x, but {metric} is "
                    f"not at y = {label}, x = {place}"
                )
        if x in at_label.free_symbols:
            require_slow_growth(at_label, f"{argument} {metric}", {})


# ------------------------------------------------------------------ simulation

_z = sp.Symbol("z", real=True)
_step = sp.Symbol("s", positive=True)


def simulated_loss(loss: ConvexLoss) -> Loss:
    """Return what simulations take for a loss.

    Raises
    ------
    UnsupportedExpressionError
        If the loss has kinks whose order depends on the label.
    """
    name, binary = str(loss), loss.needs_binary_labels
    expr = loss.with_numbers
    value = compiled(expr, (y, x))
    if largest_curvature(loss) != sp.oo or not is_kinked(expr, x):
        return smooth_loss(value, compiled(expr.diff(x), (y, x)), name=name, binary=binary)
    point = _proximal_point(loss, expr)
    if point is None:
        raise UnsupportedExpressionError(f"loss {name!r} has no proximal point by rule")
    slope = sp.simplify(point.diff(_z).xreplace({y**2: sp.S.One}))
    return proximal_loss(
        value, compiled(point, (y, _z, _step)), compiled(slope, (y, _z, _step)),
        name=name, binary=binary,
    )  # fmt: skip


def _proximal_point(loss: ConvexLoss, expr: sp.Expr) -> sp.Expr | None:
    """Return the proximal point of z; a margin or residual loss is one of a single variable."""
    if loss.needs_binary_labels:
        found = _at_label(expr, 1, y * _z)
        return None if found is None else y * found
    if loss.is_residual:
        found = _at_label(expr, 0, _z - y)
        return None if found is None else found + y
    return piecewise_linear_proximal(without_cases(expr, x), x, _z, _step)


def _at_label(expr: sp.Expr, label: int, center: sp.Expr) -> sp.Expr | None:
    at_label = expr.xreplace({y: sp.Integer(label)}).doit()
    return piecewise_linear_proximal(without_cases(at_label, x), x, center, _step)
