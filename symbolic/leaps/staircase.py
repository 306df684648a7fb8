r"""The staircase: which subspaces successive giant steps learn, exactly.

With :math:`f_{U,x_U}(x_\perp) = f(x_U + x_\perp)`, Dandi, Krzakala, Loureiro, Pesce, Stephan (arXiv
2305.18270) define :math:`U_0 = \{0\}` and

.. math:: U_{t+1} = U_t \oplus \mathrm{span}\{\mathbb{E}_{x_\perp}\nabla_\perp f_{U_t,x_U}\}
                  = U_t + \mathrm{span}\{\nabla F(\xi) : \xi \in U_t\}

with the symbol :math:`F(\xi) = \mathbb{E} f(x + \xi)`; the second form is derived here. On n = Θ(d)
fresh samples for each step, with a step size of the order of the number of neurons, one step learns
U_1 (theorem), two learn U_2 (theorem in expectation), and t learn U_t (their Conjecture 1).

With n = Θ(d^κ), orders ≤ κ count, :math:`U_{t+1} = \Gamma_\kappa(U_t)` (:mod:`.conditional_spans`);
in the strict variant only the lowest order that adds something. Γ_κ is monotone, so that both end
at the same subspace. For κ ≥ 2 this is an extrapolation, see `CAVEAT`.

A student restricts the Hermite degrees (:mod:`.activation_mask`), few readout values the directions
of the step after the first (:mod:`.readout_clusters`).

Terms of the target are Hermite terms as the parser reads them, ``He(2, x1)*x2``; s1, s2, … are the
coordinates along the rows of the basis that is printed for the subspace before. Long vectors are
printed rounded; the objects hold the exact ones. Lines have at most 120 characters.
"""

from __future__ import annotations

import functools
import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, cast, get_type_hints

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import AssumptionError, ParameterError, UndecidedError
from ...json_document import WritesJson
from ...pages import Table, Typeset, as_html
from ...pictures import Chain, Drawn
from ..expressions.activations import Activation, activation
from ..expressions.expression_text import expression_text, plain_data, plain_fields
from ..expressions.parser import Parameters, parse_expression
from ..expressions.standing import Standing
from ..hermite.expansion import expansion_text
from ..targets.activation_mask import DegreeMask, activation_mask
from ..targets.cases import case_of_numbers
from ..targets.conditional_spans import HIGHEST_DEGREE, SpanRow, SpanSource
from ..targets.formal_fields import in_atoms, read_data, reading
from ..targets.spans import spans_of
from ..targets.subspaces import Number, Subspace
from ..targets.target import Target, target as read_target
from .leap_index import power_of_d
from .readout_clusters import ReadoutClusters, checked_readouts, readout_clusters, short_vector_text

EXACT = "exact"


@dataclass(frozen=True)
class NewDirection:
    """A direction that a step adds, and what of the target produces it.

    Attributes
    ----------
    row : SpanRow
        The vector, its order, and the monomial of ∇F whose coefficient it is.
    term : str
        The Hermite terms of f that contribute.
    """

    row: SpanRow
    term: str

    @property
    def vector(self) -> tuple[sp.Expr, ...]:
        """The vector as it was produced, not reduced modulo the subspace before."""
        return self.row.vector

    @property
    def order(self) -> int:
        """Number of slots of the tensor outside the subspace before."""
        return self.row.order

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**plain_data(self.row), "term": self.term}


@dataclass(frozen=True)
class StaircaseStep:
    """One giant step.

    Attributes
    ----------
    number : int
        t, from 1.
    before, after : Subspace
        U_{t-1} and U_t.
    directions : tuple of NewDirection
        What was added, lowest orders first; none if the step adds nothing.
    standing : Standing
        What the claim that t steps learn U_t rests on.
    remark : str
        The theorem or conjecture.
    decided : bool
        Whether U_t is all that the step learns; else it may be more.
    basis : str
        "exact", "certified" or "undetermined beyond order K".
    """

    number: int
    before: Subspace
    after: Subspace
    directions: tuple[NewDirection, ...]
    standing: Standing
    remark: str
    decided: bool = True
    basis: str = EXACT

    @property
    def orders(self) -> tuple[int, ...]:
        """The conditional orders of the directions that were added, each once, ascending."""
        return tuple(sorted({direction.order for direction in self.directions}))

    @property
    def explanations(self) -> tuple[str, ...]:
        """For each new direction which terms of f produced it, and with which coordinates."""
        return tuple(explanation(direction, self) for direction in self.directions)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        first = ("number", "before", "after", "directions", "explanations")
        return plain_fields(self, *first, "standing", "remark", "decided", "basis")


def _climb(
    f: Target,
    sources: Sequence[SpanSource],
    kappa: int,
    strict: bool,
    limit: int | None,
    standing: Callable[[int, Sequence[NewDirection], Sequence[NewDirection]], tuple[Standing, str]],
) -> tuple[tuple[StaircaseStep, ...], bool, str]:
    """Return the steps, whether the end was reached, and the basis of it all.

    `sources`: that of the first step and that of all later ones. `strict`: whether a step uses only
    the lowest order that adds something. `standing`: of the number of a step, its directions and
    those of the first.
    """
    names = [x.name for x in f.variables]
    symbol = f.expansion.symbol_element if f.is_polynomial else None
    steps: list[StaircaseStep] = []
    here = Subspace.zero(f.dimension)
    bases = []
    while limit is None or len(steps) < limit:
        number = len(steps) + 1
        source = sources[0] if number == 1 else sources[1]
        span = source.grow(here, kappa, strict=strict)
        reached = in_atoms(span.subspace)
        adds = span.subspace.dimension > here.dimension
        bases.append(span.basis)
        # A step that adds nothing still changes the norms of the weights, and with them the
        # coefficients of the activation.
        if not adds and (number > 1 or not sources[1].grow(here, kappa, strict=strict).rows):
            return tuple(steps), True, _weakest(bases)
        new = tuple(NewDirection(row, terms_text(names, symbol, row)) for row in span.rows)
        rests = standing(number, new, steps[0].directions if steps else new)
        steps.append(StaircaseStep(number, here, reached, new, *rests, span.decided, span.basis))
        here = reached
        try:
            if sources[1].relevant_subspace <= here:
                return tuple(steps), True, _weakest(bases)
        except UndecidedError:
            pass
    return tuple(steps), False, _weakest(bases)


def _weakest(bases: Sequence[str]) -> str:
    """Return the basis of a result that rests on several."""
    undetermined = [basis for basis in bases if basis.startswith("undetermined")]
    if undetermined:
        return undetermined[0]
    return next((basis for basis in bases if basis != EXACT), EXACT)


def _standing(
    kappa: int,
    mask: DegreeMask,
    whole: SpanSource,
    number: int,
    directions: Sequence[NewDirection],
    first: Sequence[NewDirection],
) -> tuple[Standing, str]:
    """Return what the claim that giant steps learn the subspace of a step rests on."""
    if kappa > 1:
        # At leap index κ nothing of lower order is there: that is the theorem on one step.
        only = number == 1 and {d.order for d in directions} == {kappa} and not mask.biases
        if only and _order_at(whole, Subspace.zero(whole.dimension)) == kappa:
            return Standing.THEOREM, f"one step, n = Θ(d^{kappa}), leap index {kappa}"
        return Standing.EXTRAPOLATION, f"orders <= {kappa}, n = Θ(d^{kappa})"
    # The network of the theorems has no biases.
    if mask.biases and number <= 2:
        count = "one step" if number == 1 else "two steps"
        return Standing.DERIVED_HERE, f"{count} with random biases"
    if number == 1 and directions:
        return Standing.THEOREM, "one step, n = Θ(d)"
    if number == 1:
        return Standing.DERIVED_HERE, "the student has μ_1 = 0"
    restricted = mask.is_limiting or not first
    if number == 2 and restricted:
        return Standing.DERIVED_HERE, "two steps with the degrees of the student"
    if number == 2:
        return Standing.THEOREM, "in expectation, two steps"
    degrees = " with the degrees of the student" if restricted else ""
    biases = " with random biases" if mask.biases else ""
    return Standing.CONJECTURE, f"Conjecture 1{degrees}{biases}"


SOURCE = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"

CAVEAT = (
    "orders >= 2 together with lower ones: a step size large enough for order κ blows up the part "
    "of the gradient of lower orders by d^((κ-1)/2), and directions of order κ show only after the "
    "lower orders are taken out of the labels"
)


class Variant(StrEnum):
    """Which of the orders ≤ κ a step uses."""

    ALL_ORDERS = "all-orders"
    STRICT = "strict"


@dataclass(frozen=True, repr=False)
class Staircase(Typeset, Drawn, WritesJson):
    r"""The subspaces U_0 ⊂ U_1 ⊂ … that giant steps on a target learn.

    Made by :func:`staircase`.

    Attributes
    ----------
    target : Target
    order : int
        κ, the highest order that a step uses, for n = Θ(d^κ).
    variant : Variant
    mask : DegreeMask
        What the activation of the student lets pass.
    relevant_subspace : Subspace
        V*, the directions that f depends on.
    steps : tuple of StaircaseStep
    has_ended : bool
        Whether a further step adds nothing, or if not `decided`, nothing that is seen; False if
        `max_steps` came first.
    stuck_order : int or None
        k(U) at the last subspace, the lowest order that would lead on with all degrees; None if
        there is none.
    student_order : int or None
        The same with the degrees that the student uses.
    basis : str
        "exact", "certified" or "undetermined beyond order K".
    clusters : ReadoutClusters or None
        What few values of the readout change.
    """

    target: Target
    order: int
    variant: Variant
    mask: DegreeMask
    relevant_subspace: Subspace
    steps: tuple[StaircaseStep, ...]
    has_ended: bool
    stuck_order: int | None
    student_order: int | None
    basis: str = EXACT
    clusters: ReadoutClusters | None = None

    @property
    def subspaces(self) -> tuple[Subspace, ...]:
        """U_0 = {0}, U_1, …"""
        start = Subspace.zero(self.target.dimension)
        return (start, *(step.after for step in self.steps))

    @property
    def final(self) -> Subspace:
        """The last subspace."""
        return self.subspaces[-1]

    @property
    def saturates(self) -> bool:
        """Whether the last subspace holds V*: nothing of f is left to learn."""
        return self.relevant_subspace <= self.final

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """The conditional orders that each step met."""
        return tuple(step.orders for step in self.steps)

    @property
    def decided(self) -> bool:
        """Whether the subspaces are exactly those of the definition; else they are contained."""
        return all(step.decided for step in self.steps) and not self.basis.startswith(
            "undetermined"
        )

    @property
    def dimensions_at_most(self) -> tuple[int, ...]:
        """Dimension of the span of all moves up to each step: exact, or bounds, see `clusters`."""
        if self.clusters is None:
            return tuple(step.after.dimension for step in self.steps)
        return tuple(
            self.clusters.dimension_at_most(step.number, step.after) for step in self.steps
        )

    @property
    def summary(self) -> str:
        """The chain of subspaces and how it ends."""
        chain = " ⊂ ".join(map(subspace_text, dict.fromkeys(self.subspaces)))
        if self.saturates:
            end = "saturates"
        elif not self.has_ended:
            end = "not at its end"
        else:
            end = "stops" if self.decided else "not seen to go on"
        return f"{chain}, {end}"

    def __repr__(self) -> str:
        return f"Staircase({name_text(self.target.name)}: {self.summary})"

    def __str__(self) -> str:
        rows = []
        for step in self.steps:
            cells = [
                f"U_{step.number}",
                _learned(step),
                _orders(step),
                _standing_of_step(step),
            ]
            details = step.explanations or ("nothing new",)
            rows += [[*cells, details[0]], *(["", "", "", "", more] for more in details[1:])]
        lines = _wrapped([_headline(self)])
        if rows:
            lines += ["", *_table(_HEADINGS, rows)]
        lines += [*_wrapped(_legend(self)), "", *_wrapped(_statements(self))]
        return "\n".join(lines)

    def latex(self) -> str:
        r"""Return the chain of subspaces in LaTeX.

        Examples
        --------
        >>> from giantstep.symbolic.leaps.staircase import staircase
        >>> print(staircase("x1*x2").latex())
        U_{0} = \{0\} \subsetneq V^* = \mathbb{R}^{2}
        """
        chain = ""
        for t, subspace in enumerate(self.subspaces):
            if t:
                chain += r" \subset " if self.steps[t - 1].directions else " = "
            equal = "=" if t == 0 or self.steps[t - 1].decided else r"\supseteq"
            chain += f"U_{{{t}}} {equal} {subspace.latex()}"
        if self.saturates:
            return chain + " = V^*"
        if not self.decided:
            return chain + rf", \quad V^* = {self.relevant_subspace.latex()}"
        return chain + rf" \subsetneq V^* = {self.relevant_subspace.latex()}"

    def _repr_html_(self) -> str:
        learned = ["{0}", *map(_learned, self.steps)]
        chain = " ⊂ ".join(
            f"U{str(t).translate(_SUBSCRIPTS)} = {text}" for t, text in enumerate(learned)
        )
        rows = [
            (str(step.number), _learned(step), _orders(step), _standing_of_step(step),
             "; ".join(step.explanations) or "nothing new")
            for step in self.steps
        ]  # fmt: skip
        table = [Table(rows, _HEADINGS)] if rows else []
        return as_html([_headline(self), chain, *table, *_statements(self)])

    def picture(self) -> Chain:
        """Return the chain of subspaces, each with the terms of f that made it."""
        return Chain(
            links=["{0}", *map(_learned, self.steps)],
            heights=[subspace.dimension for subspace in self.subspaces],
            reasons=["; ".join(step.explanations) or "nothing new" for step in self.steps],
            title=f"f = {name_text(self.target.name)}",
            end=self.summary.rpartition(", ")[2],
            highest=self.relevant_subspace.dimension,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; `from_dict` reads it back."""
        f, student = self.target, self.mask.activation
        middle = ("relevant_subspace", "steps", "has_ended", "saturates", "stuck_order")
        return {
            "target": {
                "name": f.name,
                # In parts: texts that are read have a limited length.
                "summands": [expression_text(part) for part in sp.Add.make_args(f.expr)],
                "variables": [x.name for x in f.variables],
            },
            "order": self.order,
            "variant": self.variant.value,
            "student": None
            if student is None
            else {
                "name": student.name,
                "expression": expression_text(student.expr),
                "biases": self.mask.biases,
            },
            **plain_fields(self, *middle, "student_order", "basis", "clusters"),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Staircase:
        """Return the staircase that `to_dict` wrote.

        Raises
        ------
        ExpressionError
            If the content is not what `to_dict` writes.

        Examples
        --------
        >>> found = staircase("x1 + x1*x2")
        >>> Staircase.from_dict(found.to_dict()) == found
        True
        """

        def read() -> Staircase:
            hints = get_type_hints(cls)
            names = [f.name for f in fields(cls) if f.name not in ("target", "mask")]
            rest = {name: read_data(hints[name], content[name]) for name in names}
            return cls(_target(content["target"]), mask=_mask(content["student"]), **rest)

        return reading("a staircase", read)


def staircase(
    target: str | sp.Expr | Activation | Target,
    order: int = 1,
    *,
    variables: Sequence[sp.Symbol] | None = None,
    parameters: Parameters = True,
    variant: str = Variant.ALL_ORDERS,
    student: str | sp.Expr | Activation | None = None,
    biases: bool = False,
    readout: Sequence[Number] | None = None,
    max_steps: int | None = None,
) -> Staircase:
    r"""Return the subspaces that successive giant steps learn of a target.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        See :func:`.targets.target.target`. With parameters the answer is a :class:`.CaseTree` of
        staircases, for generic values of the parameters and for the exceptional ones.
    variables, parameters : optional
        Which symbols are coordinates, and which are parameters, as there.
    order : int
        κ: each step sees n = Θ(d^κ) fresh samples, and Hermite orders ≤ κ outside the subspace
        that is learned already.
    variant : str
        "all-orders": a step adds all orders ≤ κ; "strict": only the lowest that adds anything.
        Both end at the same subspace.
    student : str, Expr or Activation, optional
        Activation of the neurons, which may not use all Hermite degrees; a generic one by default.
    biases : bool
        Whether the neurons have random biases, which remove that obstruction.
    readout : sequence of exact numbers, optional
        The values that the readouts take, such as [1, -1]; a continuum of them by default. For
        order 1 only.
    max_steps : int, optional
        Stop after so many steps; by default when a further one adds nothing, which takes no more
        steps than f has directions, and one.

    Returns
    -------
    Staircase

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the target is constant.
    ExpressionError, UnsupportedExpressionError
        If target or student cannot be read.
    UndecidedError
        If whether a coefficient vanishes cannot be decided.

    Notes
    -----
    Exact for polynomials, over the field of their coefficients. For other targets ranks are
    certified from both sides, or stated to be undetermined beyond an order.

    References
    ----------
    Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270, section 4.

    Examples
    --------
    >>> found = staircase("x1 + x1*x2 + x1*x2*x3")
    >>> found
    Staircase(x1 + x1*x2 + x1*x2*x3: {0} ⊂ ⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R^3, saturates)
    >>> found.steps[1].explanations
    ('x1*x2: moves along e2 with the coordinate s1 of U_1',)
    >>> stuck = staircase("x1*x2 + x3")
    >>> stuck, stuck.stuck_order
    (Staircase(x1*x2 + x3: {0} ⊂ ⟨e3⟩, stops), 2)
    >>> staircase("x1 + He(2, x1)*x2", student="relu").final
    Subspace ⟨e1⟩ of R^2
    """
    f = read_target(target, variables, parameters=parameters)
    kappa = _checked_count(order, "order", HIGHEST_DEGREE)
    limit = None if max_steps is None else _checked_count(max_steps, "max_steps", None)
    chosen = _checked_variant(variant)
    mask = _checked_mask(student, biases)
    values = None if readout is None else checked_readouts(readout)
    if values is not None and kappa > 1:
        raise ParameterError(
            f"readout is understood for order 1 only, got order {kappa}: beyond it the overlaps "
            "of the neurons depend on their initial weights as well"
        )
    if values is not None and biases:
        raise ParameterError(
            "readout and biases exclude each other: random biases spread the neurons of one "
            "readout; leave out one of the two"
        )
    if f.has_open_parameters:
        options: dict[str, Any] = {
            "variant": chosen, "student": student, "biases": biases, "max_steps": limit,
            "readout": values,
        }  # fmt: skip
        tree = f.by_cases(lambda g: staircase(g, kappa, **options), "staircase")
        return cast(Staircase, tree)
    whole = spans_of(f)
    if whole.relevant_subspace.is_zero:
        raise AssumptionError(
            f"the target {f.name!r} is constant: there is no direction to learn; give a function "
            "that depends on a coordinate"
        )
    # The first step is another one than the later ones: all weights have norm 1.
    sources = [whole] * 2 if mask.is_whole else [spans_of(f, mask, step=t) for t in (1, 2)]
    standing = functools.partial(_standing, kappa, mask, whole)
    steps, ended, basis = _climb(f, sources, kappa, chosen is Variant.STRICT, limit, standing)
    last = steps[-1].after if steps else Subspace.zero(f.dimension)
    saturated = whole.relevant_subspace <= last
    stuck = None if saturated else _order_at(whole, last)
    result = Staircase(
        target=f,
        order=kappa,
        variant=chosen,
        mask=mask,
        relevant_subspace=whole.relevant_subspace,
        steps=steps,
        has_ended=ended or saturated,
        stuck_order=stuck,
        student_order=stuck if mask.is_whole or saturated else _order_at(sources[1], last),
        basis=basis,
    )
    return result if values is None else replace(result, clusters=_clusters(result, values))


def _order_at(source: SpanSource, subspace: Subspace) -> int | None:
    try:
        return source.conditional_order(subspace)
    except UndecidedError:
        return None


def _clusters(result: Staircase, values: tuple[sp.Expr, ...]) -> ReadoutClusters | None:
    """Return what happens at the step after the first direction; None if there is no such step."""
    for step in result.steps:
        if step.before.is_zero and step.after.dimension == 1:
            return readout_clusters(result.target, result.mask, step.after, step.number + 1, values)
    return None


def _checked_count(value: int, argument: str, highest: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | sp.Integer):
        raise ParameterError(f"{argument} must be a whole number, got {value!r}")
    if value < 1 or (highest is not None and value > highest):
        bound = "at least 1" if highest is None else f"from 1 to {highest}"
        raise ParameterError(f"{argument} must be {bound}, got {value}")
    return int(value)


def _checked_variant(variant: str) -> Variant:
    try:
        return Variant(variant)
    except ValueError:
        names = " or ".join(repr(v.value) for v in Variant)
        raise ParameterError(f"variant must be {names}, got {variant!r}") from None


def _checked_mask(student: str | sp.Expr | Activation | None, biases: bool) -> DegreeMask:
    if not isinstance(biases, bool):
        raise ParameterError(f"biases must be True or False, got {biases!r}")
    if biases and student is None:
        raise ParameterError(
            "biases matter for a given student only; name its activation, as in student='relu'"
        )
    return activation_mask(student, biases)


def _target(content: Mapping[str, Any]) -> Target:
    variables = [sp.Symbol(str(name), real=True) for name in content["variables"]]
    case = case_of_numbers()
    known = variables if case is None else [*variables, *case.parameters]
    parts = [parse_expression(text, known, argument="target") for text in content["summands"]]
    read = replace(read_target(sp.Add(*parts), variables), name=str(content["name"]))
    return read if case is None else replace(read, parameters=case.parameters, case=case)


def _mask(content: Mapping[str, Any] | None) -> DegreeMask:
    if content is None:
        return DegreeMask()
    read = activation(str(content["expression"]), argument="student")
    return activation_mask(Activation(str(content["name"]), read.expr), bool(content["biases"]))


_MOST_TERMS = 4
_WIDTH = 120
# Longer vectors, subspaces and names of targets are rounded or cut.
_LONG_SUBSPACE, _LONG_NAME = 72, 70
_HEADINGS = ("step", "learned", "orders", "rests on", "because")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def terms_text(names: Sequence[str], symbol: PolyElement | None, row: SpanRow) -> str:
    """Return the Hermite terms of a target that contribute to a vector.

    `names`: those of the coordinates. `symbol`: the symbol of a polynomial target, which gives the
    terms their coefficients. Of other targets the multi-indices are those of the expansion of the
    symbol, whose coefficients are numbers without a short form. `row`: the vector.
    """
    sources = row.sources[:_MOST_TERMS]
    left_out = len(row.sources) - len(sources)
    more = f"... ({left_out} more)"
    if symbol is not None:
        text = expansion_text(symbol.ring.from_dict({m: symbol[m] for m in sources}))
        return text + (f" + {more}" if left_out else "")
    ring = sp.ring(list(names), sp.QQ)[0]
    texts = [expansion_text(ring.from_dict({m: sp.QQ(1)})) for m in sources]
    noun = "term" if len(row.sources) == 1 else "terms"
    return f"{noun} {', '.join([*texts, *([more] if left_out else [])])}"


def explanation(direction: NewDirection, step: StaircaseStep) -> str:
    """Return in words which terms of the target move the weights where, and by what."""
    row = direction.row
    moves = f"{direction.term}: moves along {_direction(row.vector)}"
    parts = []
    factors = [_power(f"s{i}", n) for i, n in enumerate(row.inside, 1) if n]
    if factors:
        noun = "the coordinate " if len(factors) == 1 and sum(row.inside) == 1 else ""
        parts.append(f"{noun}{'*'.join(factors)} of U_{step.number - 1}")
    outside = [_power(f"q{i}", n) for i, n in enumerate(row.outside, 1) if n]
    if outside:
        parts.append(f"{'*'.join(outside)} outside")
    words = f" with {' and '.join(parts)}" if parts else " by its mean gradient"
    return moves + words + (f", at order {row.order}" if row.order > 1 else "")


def _direction(vector: Sequence[sp.Expr]) -> str:
    """Write what a vector spans: an axis by its name, a long one rounded."""
    used = [i for i, entry in enumerate(vector) if entry != 0]
    if len(used) == 1:
        return f"e{used[0] + 1}"
    return short_vector_text(vector)


def subspace_text(subspace: Subspace) -> str:
    """Write a subspace, with long basis vectors rounded.

    Examples
    --------
    >>> long = sp.Rational(7**60, 10**50)
    >>> subspace_text(Subspace.spanned_by([[1, long, 1 / long], [0, 0, 0]]))
    '⟨≈(1, 5.080, 0.1968)⟩'
    """
    text = str(subspace)
    if len(text) <= _LONG_SUBSPACE:
        return text
    return f"⟨{', '.join(map(short_vector_text, subspace.basis))}⟩"


def name_text(name: str) -> str:
    """Cut the name of a long target."""
    return name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME - 4]} ..."


def _power(name: str, n: int) -> str:
    return name if n == 1 else f"{name}**{n}"


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [
        part for line in lines for part in textwrap.wrap(line, _WIDTH, subsequent_indent="    ")
    ]


def _learned(step: StaircaseStep) -> str:
    return ("" if step.decided else "at least ") + subspace_text(step.after)


def _legend(result: Staircase) -> list[str]:
    rows = [direction.row for step in result.steps for direction in step.directions]
    parts = []
    if any(any(row.inside) for row in rows):
        parts.append("s1, s2, ...: coordinates along the basis of the subspace before")
    if any(any(row.outside) for row in rows):
        parts.append("q1, q2, ...: coordinates along e1, e2, ... outside it")
    return [f"({'; '.join(parts)})"] if parts else []


def _headline(result: Staircase) -> str:
    samples = "Θ(d)" if result.order == 1 else f"Θ(d^{result.order})"
    orders = "order 1" if result.order == 1 else f"orders <= {result.order}, {result.variant.value}"
    student = "" if result.mask.is_whole else f", student {result.mask}"
    case = "" if result.target.case is None else f", where {result.target.case.tidied()}"
    return (
        f"staircase of {name_text(result.target.name)}: {orders}, n = {samples} samples "
        f"a step{student}{case}"
    )


def _orders(step: StaircaseStep) -> str:
    return ", ".join(map(str, step.orders)) or "–"


def _standing_of_step(step: StaircaseStep) -> str:
    return f"{step.standing.value}: {step.remark}"


def _statements(result: Staircase) -> list[str]:

    spread = "" if result.clusters is None else "with a continuum of readouts: "
    lines = [spread + _end(result)]
    if not result.saturates and result.has_ended:
        lines += _needs(result)
    if result.clusters is not None:
        lines += _cluster_lines(result, result.clusters)
    lines += [f"subspaces: {result.basis}", f"source of the claim on giant steps: {SOURCE}"]
    if any(step.standing is Standing.EXTRAPOLATION for step in result.steps):
        lines.append(f"caveat: {CAVEAT}")
    return lines


def _end(result: Staircase) -> str:
    count = len(result.steps)
    steps = f"{count} step" if count == 1 else f"{count} steps"
    relevant = result.relevant_subspace
    whole = f"V* = {subspace_text(relevant)}"
    if result.saturates:
        return f"saturates: {whole} after {steps}"
    if not result.has_ended:
        return f"not at its end after {steps}: max_steps came first; {whole}"
    where = f"U_{count} = {subspace_text(result.final)}" if count else "{0}"
    if not result.decided:
        return f"not seen to go on after {steps}; {whole}, of dimension {relevant.dimension}"
    return f"stops at {where}, before {whole} of dimension {relevant.dimension}"


def _needs(result: Staircase) -> list[str]:
    if result.basis.startswith("undetermined"):
        return [f"whether a further step adds a direction is {result.basis}"]
    order = result.stuck_order
    if result.student_order is None and order is not None and not result.mask.is_whole:
        more = " or random biases" if not result.mask.biases else ""
        return [
            f"no order leads on with the degrees of the student; another activation{more} would, "
            f"at order {order}, n = Θ({power_of_d(order)}) samples a step"
        ]
    lines = []
    if result.student_order is not None:
        lines.append(
            f"k(U) = {result.student_order}: needs order {result.student_order}, "
            f"n = Θ({power_of_d(result.student_order)}) samples a step"
        )
    if result.student_order is not None and order is not None and order < result.student_order:
        lines.append(f"with all degrees, order {order} would do: another activation or biases")
    return lines or ["which order would lead on is not decided"]


def _cluster_lines(result: Staircase, clusters: ReadoutClusters) -> list[str]:
    values = ", ".join(map(expression_text, clusters.readouts))
    size, t = len(clusters.readouts), clusters.step
    noun = "cluster" if size == 1 else "clusters"
    lines = [
        f"readouts {values}: neurons move in {size} {noun}, at most {size} new directions a step, "
        f"and their overlaps with V* have rank {size} at most (derived here)"
    ]
    bound = "" if clusters.decided else "at least "
    reachable = subspace_text(clusters.reachable)
    rank, dimension = clusters.rank_at_most, clusters.dimension
    after = f", but with overlaps of rank {rank} at most" if rank < dimension else ""
    if not clusters.is_limiting:
        lines.append(f"step {t}: the moves so far span all of {reachable}{after}")
    else:
        lines.append(
            f"step {t}: the moves so far span {bound}dimension {dimension} instead of "
            f"{clusters.reachable.dimension}, for step sizes and coefficients in general position"
            f"{after}; what they span holds {subspace_text(clusters.certain)} and lies in "
            f"{reachable}"
        )
    if not clusters.equal_norms and size > 1:
        paired = any(direction.paired for direction in clusters.directions)
        factor = ", for this student no more than a factor" if paired else ""
        lines.append(
            f"  (the mean of the target gives readouts ±a weights of different norms{factor})"
        )
    for direction in clusters.directions:
        a = expression_text(direction.readout)
        who = f"readouts ±{a}" if direction.paired else f"readout {a}"
        lines.append(f"  {who}: {direction}")
    if clusters.directions:
        lines.append(
            f"  u: overlap for readout 1 along {short_vector_text(clusters.line.basis[0])}; "
            "s_j = E σ^(j)(τz), τ the norm of the neurons"
        )
    last = max((step.number for step in result.steps), default=0)
    if last > t:
        later = ", ".join(f"{n}" for n in result.dimensions_at_most[t:])
        lines.append(f"later steps: dimension at most {later} (an upper bound)")
    return lines


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; where it is too wide, its texts are wrapped."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    room = _WIDTH - 3 * (len(widths) - 1)
    if sum(widths) > room:
        step, learned, orders, standing, _ = widths
        learned, standing = min(learned, 34), min(standing, 24)
        widths = [step, learned, orders, standing, room - step - learned - orders - standing]
    lines = ["─┼─".join("─" * width for width in widths)]
    for row in rows:
        lines += _table_row(row, widths)
    return [*_table_row(headings, widths), *lines]


def _table_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [
        textwrap.wrap(cell, width, subsequent_indent="  ", break_on_hyphens=False)
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        " │ ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in itertools.zip_longest(*cells, fillvalue="")
    ]
