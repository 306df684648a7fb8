"""Laws of labels of a few projections: read, checked, and taken apart into what quadrature needs.

A law is one of three: finitely many labels with probabilities given u; a density given u; or a
label that is certain given u, with finitely many preimages, and intervals on which it is constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import sympy as sp

from ...errors import (
    AssumptionError,
    ExpressionError,
    GiantstepError,
    ParameterError,
    UnsupportedExpressionError,
)
from ...numeric.arguments import is_one_of, nonnegative_number, real_number, whole_number
from ...symbolic.expressions.activations import activation, z
from ...symbolic.expressions.bivariate_normal import normal_cdf
from ...symbolic.expressions.factors import factored
from ...symbolic.expressions.functions import relu, sigmoid
from ...symbolic.expressions.parser import parse_expression
from ...symbolic.expressions.regularity import Parity, analyse
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.targets.target import Target, closed_target as read_target
from . import physics
from .physics import Window, label

LABELS = ("regression", "sign", "probit", "logistic")
MOST_DIRECTIONS = 3
_COORDINATE = re.compile(r"\bx[0-9]+\b")
_CHECKED = tuple(sp.Rational(k, 8) for k in (-29, -11, -3, 1, 5, 14, 27))
_TOLERANCE = 1e-10
_MOST_SIGNS = 8


@dataclass(frozen=True)
class Piece:
    """An interval on which a function of one direction is analytic.

    Attributes
    ----------
    low, high : Expr
        Ends, perhaps infinite.
    expr : Expr
        The function there, in z.
    """

    low: sp.Expr
    high: sp.Expr
    expr: sp.Expr

    @cached_property
    def is_constant(self) -> bool:
        """Whether the function does not depend on z there."""
        return bool(sp.simplify(self.expr.diff(z)) == 0)

    @property
    def slope_sign(self) -> int:
        """Sign of the derivative where it is proven to have one, else 0."""
        t = sp.Symbol("t", positive=True)
        if self.low == 0:
            at = t
        elif self.high == 0:
            at = -t
        elif (self.low, self.high) == (-sp.oo, sp.oo):
            at = sp.Symbol("t", real=True)
        else:
            return 0
        slope = factored(self.expr.diff(z).xreplace({z: at}))
        return 1 if slope.is_positive else -1 if slope.is_negative else 0


@dataclass(frozen=True)
class Channel:
    r"""A law of labels.

    Attributes
    ----------
    name : str
    variables : tuple of Symbol
        The projections u; z alone for one direction.
    function : Expr or None
        f(u), where there is one.
    noise_variance : float
        Δ.
    probabilities : mapping from label to Expr
        Of finitely many labels, given u.
    density : Expr or None
        Of the label y given u.
    label_range : (float, float) or None
        Where a density of one's own is to be integrated.
    """

    name: str
    variables: tuple[sp.Symbol, ...]
    function: sp.Expr | None
    noise_variance: float = 0.0
    probabilities: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    density: sp.Expr | None = None
    label_range: tuple[float, float] | None = None

    @property
    def directions(self) -> int:
        """K."""
        return len(self.variables)

    @property
    def is_certain(self) -> bool:
        """Whether the label follows from u and takes a continuum of values."""
        return not self.probabilities and self.density is None

    @property
    def exact_noise(self) -> sp.Expr:
        """Δ as the decimal number that it prints as."""
        return sp.Rational(str(self.noise_variance))

    @cached_property
    def certain_labels(self) -> dict[sp.Expr, sp.Expr] | None:
        """Indicators of the values of the function, if it takes finitely many."""
        return None if self.function is None else _finitely_many(self.function, self.variables)

    # ------------------------------------------------------------------ one direction

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether −u and u have the same labels, or opposite ones: f is even or odd."""
        parity = Parity.NEITHER if self.function is None else analyse(self.function, z).parity
        return parity is not Parity.NEITHER

    @cached_property
    def breaks(self) -> tuple[sp.Expr, ...]:
        """Points at which the law is not analytic in u."""
        parts = [*self.probabilities.values()] if self.probabilities else [self.function]
        if self.density is not None and self.function is None:
            parts = [self.density.xreplace({label: sp.Integer(c)}) for c in (-3, 0, 2)]
        found: set[sp.Expr] = set()
        for part in parts:
            if part is not None and part.has(z):
                found |= set(analyse(part, z).kinks)
        return tuple(sorted(found, key=float))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The function of one direction, interval by interval."""
        assert self.function is not None
        return _pieces(self.function, self.breaks)

    @property
    def windows(self) -> dict[sp.Expr, list[Window]]:
        """Labels that are certain for u in intervals: all of them, or those of constant pieces."""
        found: dict[sp.Expr, list[Window]] = {}
        if self.probabilities:
            for y, p in self.probabilities.items():
                for piece in _pieces(p, self.breaks):
                    if piece.expr == 1:
                        found.setdefault(y, []).append((piece.low, piece.high))
                    elif piece.expr != 0:
                        return {}
            return found
        for piece in self.pieces:
            if piece.is_constant:
                found.setdefault(piece.expr, []).append((piece.low, piece.high))
        return found

    @property
    def preimages(self) -> tuple[tuple[sp.Expr, ...], sp.Expr] | None:
        """All points with the label of u, in u, and the indicator of where there is a continuum.

        None where they are not known in closed form.
        """
        moving = [p for p in self.pieces if not p.is_constant]
        if len(moving) == 1 and moving[0].slope_sign:
            (piece,) = moving
            region = sp.S.One
            if piece.low == 0 and piece.high == sp.oo:
                region = sp.Heaviside(physics.index)
            elif piece.high == 0 and piece.low == -sp.oo:
                region = sp.Heaviside(-physics.index)
            elif (piece.low, piece.high) != (-sp.oo, sp.oo):
                return None
            return (physics.index,), region
        assert self.function is not None
        if analyse(self.function, z).parity is Parity.EVEN:
            right = _pieces(self.function, (*self.breaks, sp.S.Zero))[-1]
            if right.low == 0 and right.slope_sign:
                return (physics.index, -physics.index), sp.S.One
        signs = {p.slope_sign for p in moving}
        if len(moving) == len(self.pieces) and len(signs) == 1 and 0 not in signs:
            return (physics.index,), sp.S.One
        return None

    def closed_labels(self) -> tuple[dict[sp.Expr, sp.Expr], tuple[sp.Expr, sp.Expr] | None] | None:
        """Return Z of each label in closed form, and log Z with region of certain ones.

        None where Z is an integral.
        """
        if self.density is not None:
            return None
        windows = self.windows
        labels = {y: physics.window_probability(w) for y, w in windows.items()}
        if self.probabilities:
            if not windows:
                labels = {
                    y: physics.smoothed(p.xreplace({z: physics.index}))
                    for y, p in self.probabilities.items()
                }
                if any(Z.has(GaussianExpectation) for Z in labels.values()):
                    return None
            return labels, None
        known = self.preimages
        if known is None:
            return None
        points, region = known
        return labels, (physics.preimage_logarithm(len(points) == 2), region)


def _pieces(expr: sp.Expr, breaks: Sequence[sp.Expr]) -> tuple[Piece, ...]:
    ends = [-sp.oo, *sorted(set(breaks), key=float), sp.oo]
    found = []
    for low, high in pairwise(ends):
        if low == -sp.oo:
            inside = sp.S.Zero if high == sp.oo else sp.floor(high) - 1
        elif high == sp.oo:
            inside = sp.ceiling(low) + 1
        else:
            inside = sp.Rational(str((float(low) + float(high)) / 2))
        found.append(Piece(low, high, _resolved(expr, inside)))
    return tuple(found)


def _resolved(expr: sp.Expr, point: sp.Expr) -> sp.Expr:
    """Return the analytic function that an expression is around a point."""

    def positive(u: sp.Expr) -> bool:
        return bool(u.xreplace({z: point}).evalf() > 0)

    expr = expr.replace(relu, lambda u: u if positive(u) else sp.S.Zero)
    expr = expr.replace(sp.Heaviside, lambda u, *_: sp.Integer(positive(u)))
    expr = expr.replace(sp.Abs, lambda u: u if positive(u) else -u)
    return sp.expand(expr.replace(sp.sign, lambda u: sp.S.One if positive(u) else sp.S.NegativeOne))


# ---------------------------------------------------------------------- reading


def read_channel(
    target: Any, *, noise_variance: object = 0.0, labels: object = "regression",
    flips: object = 0.0, directions: object = None,
) -> Channel:  # fmt: skip
    """Return the law of labels of a target; see :class:`.model.MultiIndex`.

    Raises
    ------
    ParameterError
        If an argument is outside of its range, or the target has more directions than given.
    """
    if not is_one_of(labels, LABELS):
        raise ParameterError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}")
    delta = nonnegative_number("noise_variance", noise_variance)
    require_own_noise(labels, delta)
    share = share_of_flips(flips)
    name, variables, f = _function(target, directions)
    exact = sp.Rational(str(delta))
    if labels in ("sign", "probit") and not delta:
        f = sp.sign(f)
        _check_kinks(f, variables)
    known = _finitely_many(f, variables)
    if labels == "regression" or (labels in ("sign", "probit") and not delta):
        found = Channel(name, variables, f, delta)
        if known is not None and not delta:
            found = Channel(name, variables, f, 0.0, known)
        elif delta:
            density = sp.exp(-((label - f) ** 2) / (2 * exact)) / sp.sqrt(2 * sp.pi * exact)
            found = Channel(name, variables, f, delta, density=density)
    else:
        found = Channel(name, variables, f, delta, law_of_signs(f, labels, exact))
    if not share:
        return found
    return Channel(name, variables, f, delta, flipped(found.probabilities, share))


def require_own_noise(labels: object, noise_variance: float | sp.Expr) -> None:
    """Refuse noise beside that of logistic labels."""
    if labels == "logistic" and noise_variance != 0:
        raise ParameterError(
            f"logistic labels have their own noise: noise_variance must be 0, got {noise_variance}"
        )


def share_of_flips(flips: object) -> sp.Rational:
    """Return the share of wrong labels, a number below 1/2."""
    share = nonnegative_number("flips", flips)
    if share >= 0.5:
        raise ParameterError(f"flips must be below 1/2, the share of wrong labels, got {share:g}")
    return sp.Rational(str(share))


def law_of_signs(f: sp.Expr, labels: object, noise_variance: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Return the probabilities of the labels ±1: logistic, or the sign of f and Gaussian noise."""

    def positive(u: sp.Expr) -> sp.Expr:
        return sigmoid(u) if labels == "logistic" else normal_cdf(u / sp.sqrt(noise_variance))

    return {sp.S.One: positive(f), sp.S.NegativeOne: positive(-f)}


def flipped(probabilities: Mapping[sp.Expr, sp.Expr], share: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Return the probabilities of two labels of which a share is exchanged.

    Raises
    ------
    ParameterError
        If there are not two labels.
    """
    if len(probabilities) != 2:
        raise ParameterError("flips exchange two labels; this law has other labels, leave it out")
    (a, p), (b, q) = probabilities.items()
    return {a: (1 - share) * p + share * q, b: (1 - share) * q + share * p}


def names_coordinates(target: str) -> bool:
    """Whether a text is a function of x1, x2, …, not of z."""
    return _COORDINATE.search(target) is not None


def _function(target: Any, directions: object) -> tuple[str, tuple[sp.Symbol, ...], sp.Expr]:
    if isinstance(target, str) and not names_coordinates(target):
        one = activation(target, argument="target")
        name, variables, f = one.name, (z,), one.expr
    else:
        name, variables, f = _fewest_directions(read_target(target))
    if directions is not None:
        given = whole_number("directions", directions)
        if given < len(variables):
            raise ParameterError(
                f"directions = {given}, but the label law {name!r} depends on "
                f"{', '.join(map(str, variables))}: give {len(variables)}"
            )
    if len(variables) > MOST_DIRECTIONS:
        raise ParameterError(
            f"label laws of at most {MOST_DIRECTIONS} directions are supported, {name!r} has "
            f"{len(variables)}: {', '.join(map(str, variables))}"
        )
    _check_kinks(f, variables)
    return name, variables, f


def _fewest_directions(f: Target) -> tuple[str, tuple[sp.Symbol, ...], sp.Expr]:
    """Return a target as a function of as many orthonormal directions as it depends on."""
    try:
        space = f.relevant_subspace
    except GiantstepError:
        return f.name, f.variables, f.expr
    if space.is_whole or space.is_zero:
        directions, variables = sp.eye(f.dimension), f.variables
    else:
        rows = sp.GramSchmidt([sp.Matrix(v) for v in space.basis], orthonormal=True)
        directions, variables = sp.Matrix.hstack(*rows).T, f.variables[: len(rows)]
    if len(variables) == 1:
        variables = (z,)
    inputs = directions.T * sp.Matrix(variables)
    expr = f.expr.xreplace(dict(zip(f.variables, inputs, strict=True)))
    return f.name, variables, expr.replace(_is_argument, lambda e: e.func(*map(sp.expand, e.args)))


def _is_argument(expr: sp.Expr) -> bool:
    return bool(expr.is_Function or expr.is_Pow) and any(a.is_Add for a in expr.args)


def _check_kinks(f: sp.Expr, variables: Sequence[sp.Symbol]) -> None:
    if len(variables) == 1:
        try:
            analyse(f, z)
        except UnsupportedExpressionError as error:
            raise UnsupportedExpressionError(
                f"the label {f} has preimages that cannot be located, perhaps infinitely many near "
                f"a point: {error}"
            ) from None


def _finitely_many(f: sp.Expr, variables: Sequence[sp.Symbol]) -> dict[sp.Expr, sp.Expr] | None:
    """Return indicators of the labels if f takes finitely many values, else None."""
    if len(variables) == 1:
        pieces = _pieces(f, analyse(f, z).kinks)
        if not all(p.is_constant for p in pieces):
            return None
        found: dict[sp.Expr, sp.Expr] = {}
        for piece in pieces:
            low = sp.S.One if piece.low == -sp.oo else sp.Heaviside(z - piece.low)
            high = sp.S.One if piece.high == sp.oo else sp.Heaviside(piece.high - z)
            found[piece.expr] = found.get(piece.expr, sp.S.Zero) + low * high
        return found
    return labels_by_signs(f, variables)


def labels_by_signs(f: sp.Expr, variables: Sequence[sp.Symbol]) -> dict[sp.Expr, sp.Expr] | None:
    """Return indicators of the labels of a function of signs, else None.

    Examples
    --------
    >>> x1, a = sp.symbols("x1 a", real=True)
    >>> labels_by_signs(sp.sign(x1 - a), [x1])
    {1: sign(-a + x1)/2 + 1/2, -1: 1/2 - sign(-a + x1)/2}
    """
    f = f.replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
    # Signs of products are products of signs.
    f = f.replace(
        lambda e: isinstance(e, sp.sign) and e.args[0].is_Mul,
        lambda e: sp.Mul(*(sp.sign(a) for a in e.args[0].args)),
    )
    signs = sorted(f.atoms(sp.sign), key=str)
    marks = {sign: sp.Dummy() for sign in signs}
    form = f.xreplace(marks)
    if not signs or form.has(*variables) or len(signs) > _MOST_SIGNS:
        return None
    several: dict[sp.Expr, sp.Expr] = {}
    for values in product((1, -1), repeat=len(signs)):
        y = sp.expand(
            form.xreplace(dict(zip(marks.values(), map(sp.Integer, values), strict=True)))
        )
        inside = sp.Mul(*((1 + v * sign) / 2 for v, sign in zip(values, signs, strict=True)))
        several[y] = several.get(y, sp.S.Zero) + inside
    return several


def channel_of_law(
    law: Mapping[Any, Any], *, directions: object = 1, name: str = "label law"
) -> Channel:
    """Return finitely many labels with probabilities given u, as texts or expressions in z.

    For several directions in x1, x2, …

    Raises
    ------
    ParameterError
        If the law is none: empty, not normalised, negative somewhere, or of more directions than
        given.
    """
    if not isinstance(law, Mapping) or len(law) < 2:
        raise ParameterError(
            "law must be a mapping from two or more labels to probabilities given the projections, "
            f"such as {{1: '(1 + erf(z))/2', -1: '(1 - erf(z))/2'}}, got {law!r}"
        )
    variables = _variables(directions)
    probabilities = {}
    for y, text in law.items():
        value = sp.Rational(str(real_number("labels of law", y)))
        probabilities[value] = _read(text, variables, "law")
    _check_normalised(sp.Add(*probabilities.values()), variables)
    for y, p in probabilities.items():
        for value in _CHECKED:
            at = dict.fromkeys(variables, value)
            if p.xreplace(at).evalf() < -_TOLERANCE:
                raise ParameterError(
                    f"law: the probability of label {y} is negative at u = {value}"
                )
    return Channel(name, variables, None, 0.0, probabilities)


def channel_of_density(
    density: Any, label_range: Any, *, directions: object = 1, name: str = "label density"
) -> Channel:
    """Return a density of the label y given u, smooth in y inside of a range that holds it.

    Raises
    ------
    ParameterError
        If it is none: not normalised, or of more directions than given.
    """
    try:
        low, high = (real_number("label_range", x) for x in label_range)
    except TypeError:
        raise ParameterError(
            f"label_range must be two numbers (low, high), got {label_range!r}"
        ) from None
    if not low < high:
        raise ParameterError(f"label_range must increase, got {label_range!r}")
    variables = _variables(directions)
    expr = _read(density, (*variables, label), "density")
    return Channel(name, variables, None, 0.0, density=expr, label_range=(low, high))


def _variables(directions: object) -> tuple[sp.Symbol, ...]:
    count = whole_number("directions", directions, maximum=MOST_DIRECTIONS)
    if count == 1:
        return (z,)
    return tuple(sp.Symbol(f"x{i + 1}", real=True) for i in range(count))


def _read(text: Any, variables: Sequence[sp.Symbol], argument: str) -> sp.Expr:
    names = ", ".join(map(str, variables))
    if isinstance(text, sp.Expr):
        foreign = text.free_symbols - set(variables)
        if foreign:
            raise ParameterError(
                f"{argument} depends on {', '.join(sorted(map(str, foreign)))} beside {names}: "
                "give as many directions as it has"
            )
        return text
    try:
        return parse_expression(str(text), list(variables), argument=argument)
    except ExpressionError as error:
        raise ParameterError(
            f"{argument} must be an expression in {names}, as many directions as are given: {error}"
        ) from None


def _check_normalised(total: sp.Expr, variables: Sequence[sp.Symbol]) -> None:
    if sp.simplify(total - 1) == 0:
        return
    for value in _CHECKED:
        at = dict(zip(variables, (value, value / 3 + 1, -value / 2), strict=False))
        found = total.xreplace(at).evalf()
        if not abs(found - 1) < _TOLERANCE:
            raise ParameterError(
                f"law is not normalised: the probabilities add up to {float(found):.6g} at "
                f"{', '.join(f'{x} = {float(v):g}' for x, v in at.items())}"
            )
    raise AssumptionError(
        "law: that the probabilities add up to 1 could not be proven; write one of them as 1 minus "
        "the others"
    )
