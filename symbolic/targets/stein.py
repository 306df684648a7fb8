r"""The population gradient of one neuron, expanded by Stein's lemma.

For a neuron :math:`\sigma(\langle w, x\rangle)` and a target f,

.. math:: G(w) = \mathbb{E}[f(x)\,\sigma'(\langle w, x\rangle)\,x]
          = \sum_{k \ge 0} \frac{s_{k+1}}{k!}\,C_{k+1}[w^k, \cdot]
          + w \sum_{k \ge 0} \frac{s_{k+2}}{k!}\,C_k[w^k],

where :math:`C_k = \mathbb{E}\nabla^k f` are the Hermite tensors of the target and
:math:`s_j = \mathbb{E}\,\sigma^{(j)}(|w| z) = |w|^{-j} \mathbb{E}[\sigma(|w| z)\,\mathrm{He}_j(z)]`
the coefficients of the student, :math:`s_j = \mu_j` for :math:`|w| = 1`. Both sums are finite for a
polynomial target. In terms of the symbol :math:`F(\xi) = \mathbb{E} f(x + \xi)` with homogeneous
parts :math:`F_k`, the terms are :math:`s_{k+1} \nabla F_{k+1}(w)` and :math:`w\, s_{k+2} F_k(w)`.

The gradient of the loss :math:`\tfrac{1}{2n}\sum (f - \hat f)^2` at zero output is :math:`-a_j G`
with the readout weight :math:`a_j`.

Source: Damian, Lee, Soltanolkotabi, arXiv 2206.15144, proof of Lemma 1 (ReLU, \|w\| = 1); Dandi et
al., arXiv 2305.18270; orders and the general form derived in the tests.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeGuard

import sympy as sp

from ...errors import (
    AssumptionError,
    ExpressionError,
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)
from ...pages import Typeset
from ..expressions.activations import Activation, activation, z
from ..expressions.expression_text import expression_text
from ..expressions.parser import (
    declared_kind,
    declared_symbols,
    named_symbols,
    parse_expression,
)
from ..gaussian.expectation import expect
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.coefficients import hermite_coefficients
from ..hermite.expansion import HermiteExpansion
from ..hermite.heat_flow import gaussian_moment
from .conditional_spans import HIGHEST_DEGREE
from .parameter_functions import numerator
from .ridge_norms import symbol_overlap
from .target import Target, checked_components, target as read_target

DIMENSION = sp.Symbol("d", positive=True)
"""The input dimension d in orders and mean squares."""


class Direction(enum.Enum):
    """Where a term of the gradient points."""

    INSIDE = "inside the relevant space"
    ALONG = "along w"


@dataclass(frozen=True, repr=False)
class GradientTerm(Typeset):
    r"""One term of the expansion.

    Attributes
    ----------
    direction : Direction
        `INSIDE`: :math:`(s_{k+1}/k!)\,C_{k+1}[w^k, \cdot]`, a vector in the relevant space;
        `ALONG`: :math:`w\,(s_{k+2}/k!)\,C_k[w^k]`.
    k : int
        Number of contractions with w.
    student : Expr
        :math:`s_{k+1}` or :math:`s_{k+2}`.
    contraction : Matrix or Expr
        :math:`C_{k+1}[w^k, \cdot]/k!` as a column of r entries, or :math:`C_k[w^k]/k!`, in the
        components w_1..w_r.
    weights : tuple of Symbol
        These components.
    norm : Expr
        \|w\|.
    """

    direction: Direction
    k: int
    student: sp.Expr
    contraction: sp.Expr
    weights: tuple[sp.Symbol, ...]
    norm: sp.Expr

    @property
    def value(self) -> sp.Expr:
        """The vector in the relevant space, or the scalar that multiplies w."""
        return self.student * self.contraction

    @property
    def order(self) -> sp.Rational:
        """Exponent of d in the norm of the term, for w uniform on the sphere: -k/2."""
        return sp.Rational(-self.k, 2)

    @property
    def order_inside(self) -> sp.Rational:
        """Exponent of d in the norm of its projection on the relevant space."""
        return self.order - (sp.S.Half if self.direction is Direction.ALONG else 0)

    @property
    def mean_square(self) -> sp.Expr:
        r"""Mean of the squared norm over w uniform on the sphere of radius \|w\|, exact in d.

        On the unit sphere of R^d, :math:`\mathbb{E}|C[w^k,\cdot]|^2 = \mathbb{E}_{g \sim
        \mathcal{N}(0, I_r)}|C[g^k,\cdot]|^2/(d(d+2)\cdots(d+2k-2))`.
        """
        inside = self.direction is Direction.INSIDE
        entries = self.contraction if inside else [self.contraction]
        mean = sp.Add(*(_mean_of_square(entry, self.weights) for entry in entries))
        length = self.norm ** (2 * self.k if inside else 2 * self.k + 2)
        factors = (DIMENSION + 2 * i for i in range(self.k))
        return self.student**2 * length * mean / sp.Mul(*factors)

    @property
    def name(self) -> str:
        r"""The term in letters, as ``mu_2 C_2[w, .]``; for \|w\| other than 1 with s_j for mu_j."""
        tensor = self.k + (1 if self.direction is Direction.INSIDE else 0)
        coefficient = self.k + (1 if self.direction is Direction.INSIDE else 2)
        slots = ["w" if self.k == 1 else f"w^{self.k}"] if self.k else []
        slots += ["."] if self.direction is Direction.INSIDE and self.k else []
        contraction = f"C_{tensor}" + (f"[{', '.join(slots)}]" if slots else "")
        factorial = f"/{self.k}!" if self.k > 1 else ""
        along = "w " if self.direction is Direction.ALONG else ""
        letter = "mu" if self.norm == 1 else "s"
        return f"{along}{letter}_{coefficient}{factorial} {contraction}"

    def __repr__(self) -> str:
        return f"GradientTerm({self.name}, {self.direction.value}, order d^{self.order})"

    def latex(self, *, full: bool = False) -> str:
        """Return the term in LaTeX; a contraction of many monomials as a tensor unless `full`."""
        contraction = _bracketed(self.contraction) if full or _is_short(self) else _tensor(self)
        along = r"\, w" if self.direction is Direction.ALONG else ""
        return rf"{_bracketed(self.student)}\, {contraction}{along}"


def _mean_of_square(polynomial: sp.Expr, weights: tuple[sp.Symbol, ...]) -> sp.Expr:
    """E P(g)² over independent standard normal g."""
    try:
        named = sorted(polynomial.free_symbols - {*weights}, key=str)
        expansion = HermiteExpansion.from_polynomial(polynomial, weights, parameters=named)
        return expansion.norm_squared
    except (UnsupportedExpressionError, UndecidedError):
        # The coefficients may hold 𝔼 or numbers that no exact field takes.
        square = sp.Poly(polynomial, *weights, domain=sp.EXRAW) ** 2
        return sp.Add(*(c * gaussian_moment(alpha) for alpha, c in square.terms()))


_MOST_MONOMIALS = 30
"""Contractions of more monomials are printed by their name alone, if not asked for in full."""


def describe(term: GradientTerm) -> str:
    """Return what a leading term is, such as ``sqrt(2)/(2*sqrt(pi)) * H w``, and its order."""
    order = f"order {_power(term.order)}"
    factor = _factor(term.student / sp.factorial(term.k))
    if term.k == 0:
        return f"{factor} * C_1, C_1 = E[grad f], {order}"
    if term.k == 1:
        return f"{factor} * H w, H = C_2 = E[hessian f], {order}"
    return f"{factor} * C_{term.k + 1}[w^{term.k}, .], {order}"


def _is_short(term: GradientTerm) -> bool:
    contraction = term.contraction
    entries = list(contraction) if isinstance(contraction, sp.MatrixBase) else [contraction]
    return sum(len(sp.Add.make_args(entry)) for entry in entries) <= _MOST_MONOMIALS


def _tensor(term: GradientTerm) -> str:
    """Write the contraction as one of a tensor: C_3[w^2, .]/2!."""
    inside = term.direction is Direction.INSIDE
    slots = ([] if term.k == 0 else ["w"] if term.k == 1 else [f"w^{{{term.k}}}"]) + (
        [r"\cdot"] if inside and term.k else []
    )
    factorial = rf"\frac{{1}}{{{term.k}!}}\, " if term.k > 1 else ""
    order = f"C_{{{term.k + inside}}}"
    return factorial + order + (rf"\left[{', '.join(slots)}\right]" if slots else "")


def _bracketed(expr: sp.Expr) -> str:
    text: str = sp.latex(expr)
    return rf"\left({text}\right)" if getattr(expr, "is_Add", False) else text


def _value(term: GradientTerm) -> str:
    contraction = term.contraction
    inside = isinstance(contraction, sp.MatrixBase)
    if not _is_short(term):
        entries = "..."
    else:
        entries = ", ".join(map(str, contraction)) if inside else str(contraction)
    return f"{_factor(term.student)} * ({entries})" + ("" if inside else " w")


def _factor(expr: sp.Expr) -> str:
    return f"({expr})" if expr.is_Add else str(expr)


def _power(exponent: sp.Rational) -> str:
    if exponent == 0:
        return "1"
    return f"d^{exponent}" if exponent.is_Integer else f"d^({exponent})"


def _latex_power(exponent: sp.Rational) -> str:
    return "1" if exponent == 0 else f"d^{{{sp.latex(exponent, fold_short_frac=True)}}}"


SAMPLES = sp.Symbol("n", positive=True)
"""The number of samples n in the noise of a finite batch."""

_DEFAULT_ORDER = 4


@dataclass(frozen=True, repr=False)
class GradientExpansion(Typeset):
    r"""The population gradient of a neuron as a sum of terms; made by :func:`gradient_expansion`.

    Attributes
    ----------
    student : Activation or IndexedBase
    target : Target
    norm : Expr
        \|w\|.
    terms : tuple of GradientTerm
        Those that do not vanish identically, by order in d inside the relevant space.
    weights : tuple of Symbol
        Components w_1..w_r of w in the frame of the target.
    order : int
        Largest k included.
    removed : tuple of int
        Hermite degrees that were taken out of the labels.
    exact : bool
        Whether all other terms vanish.

    Examples
    --------
    >>> g = gradient_expansion("relu", "x1*x2 + He(3, x1)")
    >>> g.leading.name, g.inside().T
    ('mu_2 C_2[w, .]', Matrix([[sqrt(2)*w2/(2*sqrt(pi)), sqrt(2)*w1/(2*sqrt(pi))]]))
    >>> g.along()
    -sqrt(2)*w1*w2/(2*sqrt(pi))
    """

    student: Activation | sp.IndexedBase
    target: Target
    norm: sp.Expr
    terms: tuple[GradientTerm, ...]
    weights: tuple[sp.Symbol, ...]
    order: int
    removed: tuple[int, ...]
    exact: bool

    def inside(self, weights: Sequence[sp.Expr] | None = None) -> sp.Matrix:
        """Return the sum of the terms inside the relevant space: r components.

        Parameters
        ----------
        weights : sequence of Expr, optional
            Components w_1..w_r to insert; they belong to a w of the norm of this expansion.
        """
        total = sp.zeros(self.target.dimension, 1)
        for term in self.terms:
            if term.direction is Direction.INSIDE:
                total += term.value
        return total.xreplace(self._rule(weights))

    def along(self, weights: Sequence[sp.Expr] | None = None) -> sp.Expr:
        """Return the scalar that multiplies w."""
        values = (term.value for term in self.terms if term.direction is Direction.ALONG)
        return sp.Add(*values).xreplace(self._rule(weights))

    def vector(self, weights: Sequence[sp.Expr] | None = None) -> sp.Matrix:
        """Return the r components of G inside the relevant space, both sums together.

        The other components of G are those of w times :meth:`along`.
        """
        rule = self._rule(weights)
        direction = sp.Matrix(self.weights).xreplace(rule)
        return self.inside(weights) + self.along(weights) * direction

    def _rule(self, weights: Sequence[sp.Expr] | None) -> dict[sp.Symbol, sp.Expr]:
        if weights is None:
            return {}
        given = checked_components(weights, len(self.weights), "weights")
        return dict(zip(self.weights, given, strict=True))

    @property
    def leading(self) -> GradientTerm | None:
        """The largest of the terms that point into the relevant space; None if all vanish.

        Terms along w are left aside: their projection on the relevant space is that of w itself,
        which was there before the step.
        """
        inside = [term for term in self.terms if term.direction is Direction.INSIDE]
        return max(inside, key=lambda term: term.order_inside, default=None)

    @property
    def remainder_order(self) -> sp.Rational | None:
        """Exponent of d of the norm of all that was left out; None if nothing was."""
        return None if self.exact else sp.Rational(-self.order - 1, 2)

    @property
    def noise(self) -> sp.Expr:
        r"""Leading order of :math:`\mathbb{E}|g - G|^2` for the gradient g on n fresh samples.

        :math:`(d/n)\,\mathbb{E} f^2\,\mathbb{E}\,\sigma'(|w| z)^2`; label noise of variance Δ adds
        Δ to :math:`\mathbb{E} f^2`. Relative corrections are of order :math:`d^{-1/2}` for one w
        and 1/d on average over the sphere. For Hermite degrees taken out of the labels exactly,
        not by their empirical means.

        Raises
        ------
        AssumptionError
            If the student is not weakly differentiable, or is symbolic.
        """
        if isinstance(self.student, sp.IndexedBase):
            raise AssumptionError(
                "the noise needs E[sigma'(z)^2], which a symbolic student does not give; "
                "use a student of the catalogue or an expression in z"
            )
        slope = self.student.derivative.xreplace({z: self.norm * z})
        remaining = self.target.norm_squared
        for k in self.removed:
            coefficients = self.target.he_coefficients(k)
            remaining -= symbol_overlap(coefficients, coefficients)
        return DIMENSION / SAMPLES * sp.expand(remaining) * expect(slope**2, z)

    def __str__(self) -> str:
        lines = [
            f"{self.student} neuron on f = {self.target}, |w| = {self.norm}"
            + (
                f", Hermite degrees {', '.join(map(str, self.removed))} removed"
                if self.removed
                else ""
            ),
            "G(w) = E[f(x) sigma'(w.x) x], orders in d for w uniform on the sphere",
        ]
        for direction in Direction:
            terms = [term for term in self.terms if term.direction is direction]
            lines.append(f"{direction.value}:" if terms else f"{direction.value}: nothing")
            lines += [f"  {_power(term.order):<9}{term.name} = {_value(term)}" for term in terms]
        leading = self.leading
        lines.append(
            "leading inside the relevant space: "
            + ("nothing in these terms" if leading is None else describe(leading))
        )
        rest = self.remainder_order
        lines.append(
            "exact: all other terms vanish" if rest is None else f"left out: O({_power(rest)})"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        leading = f", leading {self.leading.name}" if self.leading else ""
        return (
            f"GradientExpansion({self.student} on {self.target}, {len(self.terms)} terms{leading})"
        )

    def latex(self, *, full: bool = False) -> str:
        """Return the expansion in LaTeX; long contractions are written as tensors unless `full`."""
        parts = [
            rf"\underbrace{{{term.latex(full=full)}}}_{{{_latex_power(term.order)}}}"
            for term in self.terms
        ]
        rest = self.remainder_order
        if rest is not None:
            parts.append(rf"O\left({_latex_power(rest)}\right)")
        return "G(w) = " + (" + ".join(parts) if parts else "0")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that :meth:`from_dict` derives the expansion from again.

        Examples
        --------
        >>> g = gradient_expansion("erf", "x1*x2", order=3)
        >>> GradientExpansion.from_dict(g.to_dict()) == g
        True
        """
        symbolic = isinstance(self.student, sp.IndexedBase)
        named = dict.fromkeys(self.target.parameters)
        if not symbolic:
            named |= dict.fromkeys(self.student.parameters)
        return {
            **({"parameters": {x.name: declared_kind(x) for x in named}} if named else {}),
            "student": None if symbolic else expression_text(self.student.expr),
            "letter": str(self.student) if symbolic else None,
            "target": expression_text(self.target.expr),
            "variables": [x.name for x in self.target.variables],
            "norm": expression_text(self.norm),
            "positive": sorted(x.name for x in self.norm.free_symbols),
            "order": self.order,
            "removed": list(self.removed),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GradientExpansion:
        """Return the expansion that :meth:`to_dict` described; texts go through the parser.

        Raises
        ------
        ExpressionError
            If the content is not what `to_dict` writes.
        """
        try:
            student = content["student"]
            sigma = sp.IndexedBase(str(content["letter"])) if student is None else str(student)
            variables = [sp.Symbol(str(name)) for name in content["variables"]]
            positive = dict.fromkeys(map(str, content["positive"]), "positive")
            f, norm = str(content["target"]), str(content["norm"])
            order, removed = content["order"], content["removed"]
        except (LookupError, TypeError):
            raise ExpressionError(
                "the content is not that of a gradient expansion as to_dict writes it"
            ) from None
        named = named_symbols(content.get("parameters", {}))
        if student is not None:
            sigma = activation(sigma, parameters=list(named.values()), argument="student")
        return gradient_expansion(
            sigma,
            read_target(f, variables, parameters=list(named.values())),
            order,
            norm=parse_expression(norm, declared_symbols(positive), argument="norm"),
            removed=removed,
        )


def gradient_expansion(
    student: str | sp.Expr | Activation | sp.IndexedBase,
    target: str | sp.Expr | Activation | Target,
    order: int | None = None,
    *,
    norm: sp.Expr | int = 1,
    removed: Collection[int] = (),
) -> GradientExpansion:
    r"""Expand the population gradient :math:`\mathbb{E}[f(x)\,\sigma'(\langle w,x\rangle)\,x]`.

    Parameters
    ----------
    student : str, Expr, Activation or IndexedBase
        The activation σ; an ``IndexedBase("mu")`` stands for any σ by its coefficients mu[k],
        which are the :math:`s_k` if `norm` is not 1.
    target : str, Expr, Activation or Target
        The target f.
    order : int, optional
        Largest number k of contractions with w to include; default: all of them for polynomial
        targets, 4 for others.
    norm : Expr or number, optional
        \|w\|: a positive number or a symbol declared positive; 1 by default.
    removed : collection of int, optional
        Hermite degrees taken out of the labels: ``(0, 1)`` is the preprocessing of Damian, Lee and
        Soltanolkotabi.

    Returns
    -------
    GradientExpansion

    Raises
    ------
    ParameterError
        If an order is negative or too large, or the norm is not positive.
    ExpressionError, AssumptionError, UnsupportedExpressionError
        If student or target cannot be read, or lack a finite second moment.

    Examples
    --------
    >>> g = gradient_expansion("relu", "x1 + x1*x2", removed=(0, 1))
    >>> g.leading.name, g.leading.order, g.exact
    ('mu_2 C_2[w, .]', -1/2, True)
    >>> tau = sp.Symbol("tau", positive=True)
    >>> gradient_expansion("erf", "x1", norm=tau).inside()
    Matrix([[2/(sqrt(pi)*sqrt(2*tau**2 + 1))]])
    """
    f = read_target(target)
    sigma = (
        student
        if isinstance(student, sp.IndexedBase)
        else activation(student, parameters=True, argument="student")
    )
    taken_out = _degrees(removed)
    last = _last_contraction(order, f)
    length = _positive(norm)
    weights = sp.symbols(f"w1:{f.dimension + 1}", real=True)
    taken = {w.name for w in weights} & {symbol.name for symbol in length.free_symbols}
    if taken:
        raise ParameterError(
            f"norm {length} holds {', '.join(sorted(taken))}, a component of w; use another name"
        )
    coefficients = _student_coefficients(sigma, length, last + 2)
    terms: list[GradientTerm] = []
    for k in range(last + 1):
        for direction, degree, s in (
            (Direction.INSIDE, k + 1, coefficients[k + 1]),
            (Direction.ALONG, k, coefficients[k + 2]),
        ):
            if degree in taken_out or _part_vanishes(f, degree) or _vanishes(s, sigma):
                continue
            inside = direction is Direction.INSIDE
            part = (f.symbol_gradient if inside else f.symbol_part)(degree, weights)
            terms.append(GradientTerm(direction, k, s, part, weights, length))
    terms.sort(key=lambda term: (-term.order_inside, term.direction is Direction.ALONG))
    exact = f.degree is not None and last >= f.degree
    return GradientExpansion(sigma, f, length, tuple(terms), weights, last, taken_out, exact)


def _degrees(removed: Collection[int]) -> tuple[int, ...]:
    given = list(removed) if isinstance(removed, Iterable) else [removed]
    for value in given:
        if not _is_integer(value) or not 0 <= int(value) <= HIGHEST_DEGREE:
            raise ParameterError(
                "removed must hold Hermite degrees, integers from 0 to "
                f"{HIGHEST_DEGREE}, got {value!r}"
            )
    if not isinstance(removed, Iterable):
        raise ParameterError(f"removed must be a collection such as (0, 1), got {removed!r}")
    return tuple(sorted({int(value) for value in given}))


def _is_integer(value: object) -> TypeGuard[SupportsIndex]:
    """Integers of any kind, those of NumPy included."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _last_contraction(order: int | None, f: Target) -> int:
    if order is None:
        return f.degree if f.degree is not None else _DEFAULT_ORDER
    if not _is_integer(order):
        raise ParameterError(f"order must be an integer, got {order!r}")
    if not 0 <= int(order) < HIGHEST_DEGREE:
        raise ParameterError(f"order must be from 0 to {HIGHEST_DEGREE - 1}, got {order}")
    return int(order)


def _positive(norm: sp.Expr | int) -> sp.Expr:
    try:
        length = sp.sympify(norm, strict=True)
    except sp.SympifyError:
        length = None
    if not isinstance(length, sp.Expr):
        raise ParameterError(f"norm must be a positive number or expression, got {norm!r}")
    if length.has(sp.Float):
        length = length.xreplace({x: sp.Rational(str(x)) for x in length.atoms(sp.Float)})
    if length.is_positive and length.is_finite is not False:
        return length
    if length.is_positive is None and length.free_symbols:
        names = ", ".join(sorted(map(str, length.free_symbols)))
        raise ParameterError(
            f"norm {length} is not known to be positive; declare {names} with positive=True"
        )
    raise ParameterError(f"norm must be positive, got {length}")


def _student_coefficients(
    sigma: Activation | sp.IndexedBase, norm: sp.Expr, last: int
) -> list[sp.Expr]:
    """Return s_0..s_last: s_j = |w|^-j E[σ(|w| z) He_j(z)]."""
    if isinstance(sigma, sp.IndexedBase):
        return [sigma[j] for j in range(last + 1)]
    moments = hermite_coefficients(sigma.expr.xreplace({z: norm * z}), last, variable=z)
    return [moment / norm**j for j, moment in enumerate(moments)]


@functools.lru_cache(maxsize=256)
def _vanishes(s: sp.Expr, sigma: Activation | sp.IndexedBase) -> bool:
    if s == 0:
        return True
    if s.free_symbols:
        return False
    return is_exactly_zero(s, f"a Hermite coefficient of {sigma}")


@functools.lru_cache(maxsize=256)
def _part_vanishes(f: Target, degree: int) -> bool:
    """Whether the Hermite tensor of this order is zero; decided exactly."""
    if degree > HIGHEST_DEGREE or (f.degree is not None and degree > f.degree):
        return True
    if f.parameters:
        # A term that vanishes in some cases stays, with a coefficient that does so there.
        coefficients = list(map(numerator, f.he_coefficients(degree).values()))
        return not any(coefficients) or (f.case is not None and f.case.vanish(coefficients) is True)
    undecided: UndecidedError | None = None
    for alpha, c in f.he_coefficients(degree).items():
        try:
            if not is_exactly_zero(c, f"the coefficient of He_{alpha} in target {f.name!r}"):
                return False
        except UndecidedError as error:
            undecided = error
    if undecided is not None:
        raise undecided
    return True
