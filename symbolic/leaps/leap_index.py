r"""The leap index of a target, its leap in given coordinates, and its largest leap in any.

With the Hermite tensors :math:`C_k = \mathbb{E}\nabla^k f`, the leap index, for one direction the
information exponent, is :math:`\ell(f) = \min\{k \ge 1 : C_k \ne 0\}` (Dandi, Krzakala, Loureiro,
Pesce, Stephan, arXiv 2305.18270). In given coordinates, with the support :math:`S(f) = \{\alpha \ne
0 : \mu_\alpha \ne 0\}` and :math:`\mu_\alpha = \mathbb{E}[f\,\mathrm{He}_\alpha]`, divided by
nothing,

.. math:: \mathrm{Leap}(f) = \min_{\alpha^1, \dots, \alpha^m} \max_i \sum
          \{\alpha^i_c : c \notin \mathrm{supp}\,\alpha^1 \cup \dots \cup
          \mathrm{supp}\,\alpha^{i-1}\}

over the orderings of S(f) (Abbe, Boix-Adserà, Misiakiewicz, 2302.11055): new coordinates count with
their Hermite multiplicity. Taking the smallest positive sum next is optimal (derived here): the
first term that leaves the coordinates A seen so far pays at least the smallest sum, and a larger A
makes no sum larger. That sum is the conditional order of f at the subspace of the coordinates A.

The rotation-invariant leap is the largest over all orthonormal bases, without any rotation. With
the conditional order k(U), the lowest degree :math:`j \ge 1` in :math:`x_\perp` of the Hermite
expansion of :math:`x_\perp \mapsto f(x_U + x_\perp)`,

.. math:: \mathrm{isoLeap}(f) = \max_R \mathrm{Leap}(f \circ R)
          = \max_{U \not\supseteq V^*} k(U)
          = \max_t k(U_t), \qquad U_{t+1} = U_t + \text{range of the order-}k(U_t)\text{ tensors}.

The first form is that of Abbe, Boix-Adserà, Misiakiewicz (arXiv 2302.11055); the others are derived
here. In a basis, the leap is the largest k(U) over its coordinate subspaces, by the greedy argument
above, and every U is a coordinate subspace of some basis. If the greedy run with orders up to κ
reaches V*, take for any U that does not hold V* the first step that leaves it: its tensor has a
slot outside U, and no more than κ of them, so :math:`k(U) \le \kappa`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, cast

import sympy as sp

from ...errors import AssumptionError, GiantstepError, UndecidedError
from ...json_document import WritesJson
from ...pages import Typeset
from ..expressions.activations import Activation, activation
from ..expressions.expression_text import expression_text, plain_fields
from ..expressions.parser import Parameters
from ..gaussian.hermite_polynomials import index_factorial
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.coefficients import HIGHEST_OPEN_ORDER, hermite_coefficient
from ..hermite.expansion import expansion_latex, expansion_text
from ..targets.cases import Case, by_cases
from ..targets.conditional_spans import HIGHEST_DEGREE, MultiIndex, SpanRow
from ..targets.spans import spans_of
from ..targets.subspaces import Subspace
from ..targets.target import Target, target as read_target

TargetLike: TypeAlias = str | sp.Expr | Activation | Target

# Coefficients of a target that is no polynomial are looked at up to an order with not more of them.
_MOST_COEFFICIENTS = 500
# A function that is constant is found out here, instead of after all orders.
_SUSPICIOUS_ORDER = 4


T = TypeVar("T")
Answer = TypeVar("Answer", covariant=True)

_ASKED = """    Parameters
    ----------
    target : str, Expr, Activation or Target
        With parameters the answer is a :class:`.CaseTree` of such.
    variables, parameters : optional
        Which symbols are coordinates, and which are parameters; see :func:`.targets.target.target`.

    Raises
"""


class AskedOfTarget(Protocol[Answer]):
    """A question on anything that describes a target."""

    def __call__(
        self,
        target: TargetLike,
        *,
        variables: Sequence[sp.Symbol] | None = None,
        parameters: Parameters = True,
    ) -> Answer:
        """Return the answer; with parameters the answers by cases."""
        ...


def asked_of_targets(subject: str) -> Callable[[Callable[[Target], T]], AskedOfTarget[T]]:
    """Make a function of a target without open parameters one of whatever describes a target."""

    def decorated(compute: Callable[[Target], T]) -> AskedOfTarget[T]:
        def asked(
            target: TargetLike,
            *,
            variables: Sequence[sp.Symbol] | None = None,
            parameters: Parameters = True,
        ) -> T:
            f = read_target(target, variables, parameters=parameters)
            return cast(T, f.by_cases(asked, subject)) if f.has_open_parameters else compute(f)

        for name in ("__module__", "__name__", "__qualname__"):
            setattr(asked, name, getattr(compute, name))
        asked.__doc__ = (compute.__doc__ or "").replace("    Raises\n", _ASKED, 1)
        asked.__annotations__["return"] = compute.__annotations__["return"]
        return asked

    return decorated


class ProvenOrder(int):
    """A whole number that carries, as attributes, what proves it; else it behaves like an int."""

    _shown: ClassVar[tuple[str, ...]] = ()
    """Attributes that documents hold."""

    def __new__(cls, value: int, **proof: Any) -> ProvenOrder:
        result = super().__new__(cls, value)
        result.__dict__.update(proof)
        return result

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]:
        return (int(self),), dict(self.__dict__)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed; {name} is given with it")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"value": int(self), **plain_fields(self, *self._shown)}


class Exponent(Typeset, ProvenOrder, WritesJson):
    r"""The leap index, with the coefficient that proves it.

    Attributes
    ----------
    target : str
        Name of the target.
    multi_index : tuple of int
        α, whose degree is the leap index.
    coefficient : Expr
        :math:`\mu_\alpha = \mathbb{E}[f\,\mathrm{He}_\alpha] \ne 0`.
    variables : tuple of Symbol
        Coordinates of the target.
    """

    _shown = ("multi_index", "coefficient")

    target: str
    multi_index: MultiIndex
    coefficient: sp.Expr
    variables: tuple[sp.Symbol, ...]

    @property
    def explanation(self) -> str:
        """The proof in words."""
        degrees = "degree 1" if self == 2 else f"degrees 1 to {self - 1}"
        below = "" if self == 1 else f"; all coefficients of {degrees} vanish"
        return (
            f"E[f {he_text(self.multi_index, self.variables)}] = "
            f"{expression_text(self.coefficient)}{below}"
        )

    def latex(self) -> str:
        """Return the statement in LaTeX, without delimiters."""
        alpha = he_latex(self.multi_index, self.variables)
        return (
            rf"\ell(f) = {int(self)},\quad \mathbb{{E}}\left[f\,{alpha}\right] = "
            rf"{sp.latex(self.coefficient)}"
        )


@asked_of_targets("leap index")
def leap_index(f: Target) -> Exponent:
    r"""Return the lowest k ≥ 1 with :math:`C_k = \mathbb{E}\nabla^k f \ne 0`.

    One giant step learns something of the target from n ≍ d^k samples and nothing from fewer
    (Dandi et al., arXiv 2305.18270, Theorem 1). Scaling, constants and rotations do not change it.

    Returns
    -------
    Exponent
        An int with the attributes `coefficient`, `multi_index` and `explanation`.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If it is no polynomial and all coefficients up to a high order vanish, or whether one does
        cannot be decided.

    Examples
    --------
    >>> leap = leap_index("x1*x2 + He(3, x1)")
    >>> leap, leap.coefficient, leap.multi_index
    (2, 1, (1, 1))
    >>> print(leap_index("erf(x1) - 2*x1/sqrt(3*pi)").explanation)
    E[f He(3, x1)] = -4*sqrt(3)/(9*sqrt(pi)); all coefficients of degrees 1 to 2 vanish
    """
    # A product of functions of all coordinates, as a parity, has at least order r.
    highest = (
        f.degree if f.degree is not None else max(highest_open_order(f.dimension), f.dimension)
    )
    for k in range(1, highest + 1):
        if f.degree is None and k == _SUSPICIOUS_ORDER + 1 and _is_constant(f):
            raise _constant(f)
        try:
            result = first_coefficient(f, k)
        except UndecidedError:
            if f.degree is None and _is_constant(f):
                raise _constant(f) from None
            raise
        if result is not None:
            alpha, moment = result
            return Exponent(
                k, target=f.name, multi_index=alpha, coefficient=moment, variables=f.variables
            )
    if f.degree is not None:
        raise _constant(f)
    raise UndecidedError(
        f"the leap index of target {f.name!r} is undetermined beyond order {highest}: all its "
        f"Hermite coefficients of degrees 1 to {highest} vanish, and it is not seen to be constant"
    )


def information_exponent(f: str | sp.Expr | Activation, *, parameters: Parameters = True) -> int:
    r"""Return the smallest k ≥ 1 with :math:`\mu_k \ne 0`; for one direction also the leap index.

    Parameters
    ----------
    f : str, Expr or Activation
        A name of the catalogue, the text of an expression in z, an expression in one variable, or
        an activation. With parameters the answer is a :class:`.CaseTree`, with conditions that are
        polynomial in them.
    parameters : optional
        Which symbols are parameters; see :func:`.activations.activation`.

    Raises
    ------
    ExpressionError
        If `f` is none of these.
    UndecidedError
        If a coefficient is numerically zero and not provably zero.
    AssumptionError
        If all coefficients up to a high order vanish.

    Notes
    -----
    Coefficients may be any numbers whose zeros are decided; :func:`leap_index`, which works with
    several directions, needs polynomials over an exact field.

    Examples
    --------
    >>> information_exponent("z**2*exp(-z**2)")
    4
    """
    f = activation(f, parameters=parameters, argument="function")
    if f.parameters:
        tree = by_cases(
            Case(f.parameters),
            lambda case: _first_order(f, lambda c, _: case.decide([c])),
            f"information exponent of {f.name}",
        )
        return cast(int, tree)
    return _first_order(f, is_exactly_zero)


def _first_order(f: Activation, vanishes: Callable[[sp.Expr, str], bool]) -> int:
    for k in range(1, HIGHEST_OPEN_ORDER + 1):
        if not vanishes(hermite_coefficient(f, k), f"Hermite coefficient {k} of {f.name}"):
            return k
    raise AssumptionError(
        f"the Hermite coefficients 1 to {HIGHEST_OPEN_ORDER} of {f.name} vanish: as far as can be "
        "seen it is constant"
    )


def first_coefficient(
    f: Target, k: int, counts: Callable[[MultiIndex], bool] = bool
) -> tuple[MultiIndex, sp.Expr] | None:
    r"""Return the first α with \|α\| = k and μ_α ≠ 0, and μ_α; None if all vanish.

    `counts`: which α are looked at; all of them by default. Raises UndecidedError if that of a
    coefficient cannot be decided.
    """
    coefficients = f.he_coefficients(k)
    undecided = None
    if f.case is not None:
        return _first_of_case(f, f.case, {a: c for a, c in coefficients.items() if counts(a)})
    for alpha in sorted(filter(counts, coefficients), reverse=True):
        c = coefficients[alpha]
        try:
            vanishes = is_exactly_zero(
                c, f"the coefficient of {he_text(alpha, f.variables)} in target {f.name!r}"
            )
        except UndecidedError as error:
            undecided = undecided or error
            continue
        if not vanishes:
            return alpha, c * index_factorial(alpha)
    if undecided is not None:
        raise undecided
    return None


def _first_of_case(
    f: Target, case: Case, coefficients: Mapping[MultiIndex, sp.Expr]
) -> tuple[MultiIndex, sp.Expr] | None:
    """Return a coefficient that vanishes nowhere in a case, if there is one the first of these."""
    what = f"a coefficient in target {f.name!r}"
    order = sorted(coefficients, reverse=True)
    if not order or f.vanish(list(coefficients.values()), what):
        return None
    sure = (a for a in order if case.vanish([coefficients[a]]) is False)
    alpha = next(sure, None)
    if alpha is None:
        alpha = next(a for a in order if not f.vanish([coefficients[a]], what))
    return alpha, coefficients[alpha] * index_factorial(alpha)


def highest_open_order(dimension: int) -> int:
    """Return the order up to which coefficients of a target that is no polynomial are looked at.

    Examples
    --------
    >>> highest_open_order(1), highest_open_order(2), highest_open_order(5)
    (40, 30, 6)
    """
    order = 1
    while order < HIGHEST_OPEN_ORDER and math.comb(order + 1 + dimension, dimension) <= (
        _MOST_COEFFICIENTS
    ):
        order += 1
    return order


def he_text(alpha: MultiIndex, variables: Sequence[sp.Symbol]) -> str:
    """Write He_α as the parser reads it.

    Examples
    --------
    >>> he_text((2, 1), sp.symbols("x1:3"))
    'He(2, x1)*x2'
    """
    return expansion_text(sp.ring(list(variables), sp.QQ)[0].from_dict({alpha: sp.QQ(1)}))


def he_latex(alpha: MultiIndex, variables: Sequence[sp.Symbol]) -> str:
    """Write He_α in LaTeX."""
    return expansion_latex(sp.ring(list(variables), sp.QQ)[0].from_dict({alpha: sp.QQ(1)}))


def _constant(f: Target) -> AssumptionError:
    return AssumptionError(
        f"target {f.name!r} is constant: there is nothing to learn; give a function that depends "
        "on x1, x2, ..."
    )


def _is_constant(f: Target) -> bool:
    """Whether f is seen to depend on nothing; not being able to say counts as no."""
    try:
        return spans_of(f).relevant_subspace.is_zero
    except GiantstepError:
        return False


@dataclass(frozen=True)
class CoordinateStep:
    """One term of the witnessing order that brings in new coordinates.

    Attributes
    ----------
    order : int
        Degree of the term in the new coordinates.
    multi_index : tuple of int
        α of the term He_α.
    coefficient : Expr
        μ_α.
    new : tuple of Symbol
        The coordinates that no term before it has.
    """

    order: int
    multi_index: MultiIndex
    coefficient: sp.Expr
    new: tuple[sp.Symbol, ...]


class CoordinateLeap(Typeset, ProvenOrder, WritesJson):
    """The coordinate leap, with an order of the Hermite terms that attains it.

    Attributes
    ----------
    target : str
        Name of the target.
    variables : tuple of Symbol
    steps : tuple of CoordinateStep
        Terms that bring in new coordinates, in order; all others may follow.
    """

    _shown = ("steps",)

    target: str
    variables: tuple[sp.Symbol, ...]
    steps: tuple[CoordinateStep, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """Degree in new coordinates of each step; the leap is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def explanation(self) -> str:
        """The witnessing order in words."""
        return ", then ".join(
            f"{he_text(step.multi_index, self.variables)} (new: "
            f"{', '.join(map(str, step.new))}; {step.order})"
            for step in self.steps
        )

    def latex(self) -> str:
        """Return the statement in LaTeX, without delimiters."""
        chain = r",\ ".join(
            rf"\underbrace{{{he_latex(step.multi_index, self.variables)}}}_{{{step.order}}}"
            for step in self.steps
        )
        return rf"\mathrm{{Leap}}(f) = {int(self)}:\quad {chain}"


@asked_of_targets("coordinate leap")
def coordinate_leap(f: Target) -> CoordinateLeap:
    """Return the leap in the given coordinates, with the order of terms that attains it.

    Returns
    -------
    CoordinateLeap
        An int with the attributes `steps`, `orders` and `explanation`.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and the conditional order at a subspace of coordinates, or
        whether a coefficient vanishes, cannot be decided.

    Examples
    --------
    >>> leap = coordinate_leap("x1 + x2*x3")
    >>> leap, leap.orders
    (2, (1, 2))
    >>> print(leap.explanation)
    x1 (new: x1; 1), then x2*x3 (new: x2, x3; 2)
    >>> coordinate_leap("sign(x1) + abs(x1)*x2")
    1
    """
    seen: set[int] = set()
    steps: list[CoordinateStep] = []
    first = leap_index(f)
    next_term = _next_of_polynomial if f.degree is not None else _next_of_others
    while True:
        result = next_term(f, seen, int(first))
        if result is None:
            break
        order, alpha, moment = result
        new = [i for i, n in enumerate(alpha) if n and i not in seen]
        steps.append(CoordinateStep(order, alpha, moment, tuple(f.variables[i] for i in new)))
        seen.update(new)
    value = max(step.order for step in steps)
    return CoordinateLeap(value, target=f.name, variables=f.variables, steps=tuple(steps))


def _next_of_polynomial(
    f: Target, seen: Collection[int], _: int
) -> tuple[int, MultiIndex, sp.Expr] | None:
    coefficients = f.expansion.he_coefficients()
    first = (
        term
        for term in _by_order(coefficients, seen)
        if f.case is None or not f.vanish([coefficients[term[1]]], "a coefficient")
    )
    if (term := next(first, None)) is None:
        return None
    order, alpha = term
    return order, alpha, f.expansion.he_coefficient(alpha) * index_factorial(alpha)


def _by_order(
    coefficients: Iterable[MultiIndex], seen: Collection[int]
) -> Iterator[tuple[int, MultiIndex]]:
    """Yield the terms with new coordinates, after the degree in these, smallest first."""
    candidates = [
        (sum(n for i, n in enumerate(alpha) if i not in seen), sum(alpha), [-n for n in alpha])
        for alpha in coefficients
    ]
    for order, _, alpha in sorted(candidate for candidate in candidates if candidate[0]):
        yield order, tuple(-n for n in alpha)


def _next_of_others(
    f: Target, seen: Collection[int], first: int
) -> tuple[int, MultiIndex, sp.Expr] | None:
    """The conditional order at the coordinates seen, and the first term of the series with it."""
    order = first
    if seen:
        axes = [[int(i == j) for j in range(f.dimension)] for i in sorted(seen)]
        conditional = spans_of(f).conditional_order(Subspace.spanned_by(axes, f.dimension))
        if conditional is None:
            return None
        order = conditional
    highest = min(max(2 * highest_open_order(f.dimension), order), HIGHEST_DEGREE)

    def counts(alpha: MultiIndex) -> bool:
        return sum(n for i, n in enumerate(alpha) if i not in seen) == order

    for degree in range(order, highest + 1):
        result = first_coefficient(f, degree, counts)
        if result is not None:
            return order, *result
    raise UndecidedError(
        f"the coordinate leap of target {f.name!r} is undetermined: no Hermite term up to degree "
        f"{highest} has degree {order} in the coordinates other than "
        f"{', '.join(f.variables[i].name for i in sorted(seen)) or 'none'}"
    )


@dataclass(frozen=True)
class IsotropicStep:
    """One step of the greedy run.

    Attributes
    ----------
    order : int
        k(U) at the subspace before.
    subspace : Subspace
        U with the range of the tensors of that order.
    rows : tuple of SpanRow
        The vectors that were added.
    """

    order: int
    subspace: Subspace
    rows: tuple[SpanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return plain_fields(self, "order", "subspace")


class IsotropicLeap(Typeset, ProvenOrder, WritesJson):
    """The rotation-invariant leap, with the run of orders and subspaces that proves it.

    Attributes
    ----------
    target : str
        Name of the target.
    steps : tuple of IsotropicStep
        From {0} to V*.
    """

    _shown = ("steps",)

    target: str
    steps: tuple[IsotropicStep, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders met by the greedy run; the leap is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def stuck_at(self) -> Subspace:
        """A subspace U with k(U) = isoLeap, where every lower order is blind."""
        before = Subspace.zero(self.steps[0].subspace.ambient_dimension)
        for step in self.steps:
            if step.order == self:
                return before
            before = step.subspace
        raise AssertionError("the leap is the order of one of its steps")

    @property
    def explanation(self) -> str:
        """The greedy run in words."""
        return "{0}" + "".join(f" –{step.order}→ {step.subspace}" for step in self.steps)

    def latex(self) -> str:
        """Return the statement in LaTeX, without delimiters."""
        chain = r"\{0\}" + "".join(
            rf" \xrightarrow{{{step.order}}} {step.subspace.latex()}" for step in self.steps
        )
        return rf"\mathrm{{isoLeap}}(f) = {int(self)}:\quad {chain}"


@asked_of_targets("rotation-invariant leap")
def isotropic_leap(f: Target) -> IsotropicLeap:
    """Return the rotation-invariant leap, with the greedy run that proves it.

    Returns
    -------
    IsotropicLeap
        An int with the attributes `steps`, `orders`, `stuck_at` and `explanation`.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and a conditional order cannot be decided.

    Examples
    --------
    >>> leap = isotropic_leap("x1 + x2 + x1*x2")
    >>> leap, leap.orders, leap.stuck_at
    (2, (1, 2), Subspace ⟨(1, 1)⟩ of R^2)
    >>> print(leap.explanation)
    {0} –1→ ⟨(1, 1)⟩ –2→ R^2
    """
    leap_index(f)  # A constant target is refused in words.
    source = spans_of(f)
    subspace = Subspace.zero(f.dimension)
    steps: list[IsotropicStep] = []
    while (order := source.conditional_order(subspace)) is not None:
        span = source.grow(subspace, order, strict=True)
        if span.subspace.dimension == subspace.dimension:
            raise UndecidedError(
                f"the rotation-invariant leap of target {f.name!r} is undetermined: its tensors "
                f"of order {order} at {subspace} cannot be told from zero"
            )
        subspace = span.subspace
        steps.append(IsotropicStep(order, subspace, span.rows))
    value = max(step.order for step in steps)
    return IsotropicLeap(value, target=f.name, steps=tuple(steps))


def power_of_d(order: int) -> str:
    """Write d to an order, as samples are counted."""
    return "d" if order == 1 else f"d^{int(order)}"
