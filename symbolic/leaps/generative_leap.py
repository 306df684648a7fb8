r"""The generative leap: the lowest order at which some transform of the label shows a direction.

One index (Damian, Pillaud-Vivien, Lee, Bruna, arXiv 2403.05529): the generative exponent is
:math:`k^* = \min\{k \ge 1 : \mathbb{E}[\mathrm{He}_k(z) \mid y] \not\equiv 0\}`, the lowest
information exponent of any T(y). Several (Damian, Lee, Bruna, arXiv 2506.05500): the greedy run of
:mod:`.isotropic_leap` with :math:`\mathbb{E}[\text{order-}k\text{ tensor in } U^\perp \mid y,
x_U]`. It is at most the rotation-invariant leap, which only uses T(y) = y.

What is computed are bounds with certificates (derived here).

- Above: a greedy run in which each step names its transform: y itself; y² to y⁴ at points of U
  (:mod:`.label_moments`); or the indicator of y > M. The latter decides one missing direction n of
  a polynomial: given x_U, y is a polynomial of one variable, and if it is not even, the order is 1.
  (Else the odd measure zφ(z)dz would be mapped to 0 by y. For large \|y\| an odd degree has one
  preimage; an even degree has two, and φ(z_+) = φ(z_-), so that y is even.)
- Below: 1 always; 2 if a non-trivial orthogonal map of V* leaves f invariant (:mod:`.symmetries`);
  the rotation-invariant leap if y has two values, as every T is then affine.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import AssumptionError, GiantstepError, UndecidedError
from ...pages import Typeset
from ..subspaces import Subspace, vector_text
from ..targets import Target
from ..targets import target as read_target
from .conditional_spans import SpanRow, SpanSource
from .generative_certificates import (
    has_two_values,
    is_blind_to_order_two,
    label_power,
    one_sided_infinity,
    own_part,
)
from .isotropic_leap import isotropic_leap
from .label_moments import HIGHEST_POWER, LabelMoments
from .leap_index import TargetLike, leap_index
from .spans import spans_of
from .symmetries import find_symmetry, reflection_in

_POWERS_OF_OTHERS = (2, 3)
_HIGHEST_ORDER_OF_OTHERS = 12


@dataclass(frozen=True)
class GenerativeStep:
    """One step of the run that proves the upper bound.

    Attributes
    ----------
    order : int
        Order of the tensor that does not vanish.
    transform : str
        T(y).
    witness : str
        What it shows, and how that is known.
    subspace : Subspace
        The directions that are known after the step.
    coefficients : tuple of tuple of Expr
        Vectors that are not zero: of the tensor of this order for T(y) = y, expectations for powers
        of y of a polynomial; empty for an indicator.
    """

    order: int
    transform: str
    witness: str
    subspace: Subspace
    coefficients: tuple[tuple[sp.Expr, ...], ...] = ()


@dataclass(frozen=True)
class GenerativeLeap(Typeset):
    """Bounds of the generative leap, with their certificates.

    Attributes
    ----------
    target : str
        Name of the target.
    lower : int
        A proven lower bound.
    upper : int or None
        A proven upper bound; None if the run did not reach all relevant directions.
    lower_certificate : str
        Why it is not less.
    steps : tuple of GenerativeStep
        The run that proves the upper bound.

    Examples
    --------
    >>> leap = generative_leap("x1*x2*x3")
    >>> int(leap), leap.standing, [step.transform for step in leap.steps]
    (2, 'exact', ['y^2'])
    >>> print(leap.lower_certificate)
    sign change x1 → -x1, x2 → -x2 leaves f invariant
    """

    target: str
    lower: int
    upper: int | None
    lower_certificate: str
    steps: tuple[GenerativeStep, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    @property
    def value(self) -> int | None:
        """The generative leap if it is exact, else None."""
        return self.lower if self.is_exact else None

    @property
    def orders(self) -> tuple[int, ...]:
        """Orders of the run; the upper bound is the largest."""
        return tuple(step.order for step in self.steps)

    @property
    def standing(self) -> str:
        """ "exact", "upper bound only" or "lower bound only"."""
        if self.is_exact:
            return "exact"
        return "lower bound only" if self.upper is None else "upper bound only"

    @property
    def upper_certificate(self) -> str:
        """The run in words."""
        if self.upper is None:
            return "no transform was found that shows all directions"
        return "; then ".join(step.witness for step in self.steps)

    @property
    def bounds(self) -> str:
        """The value or the bounds, as a text."""
        if self.is_exact:
            return str(self.lower)
        return f"{self.lower} or more" if self.upper is None else f"{self.lower} to {self.upper}"

    def __index__(self) -> int:
        if not self.is_exact:
            raise AssumptionError(
                f"the generative leap of {self.target!r} is not known exactly: {self.bounds}; use "
                "lower and upper"
            )
        return self.lower

    __int__ = __index__

    def __str__(self) -> str:
        return (
            f"{self.bounds} ({self.standing}: {self.upper_certificate}; not less: "
            f"{self.lower_certificate})"
        )

    def latex(self) -> str:
        """Return the bounds in LaTeX, without delimiters."""
        if self.is_exact:
            relation = f"= {self.lower}"
        elif self.upper is None:
            relation = rf"\ge {self.lower}"
        else:
            relation = rf"\in [{self.lower}, {self.upper}]"
        chain = r"\{0\}" + "".join(
            rf" \xrightarrow{{{step.order}}} {step.subspace.latex()}" for step in self.steps
        )
        return rf"\mathrm{{genLeap}}(f) {relation}:\quad {chain}"

    def _repr_html_(self) -> str:
        return f"<p>generative leap {html.escape(str(self))}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "target": self.target,
            "lower": self.lower,
            "upper": self.upper,
            "standing": self.standing,
            "lower_certificate": self.lower_certificate,
            "steps": [
                {
                    "order": step.order,
                    "transform": step.transform,
                    "witness": step.witness,
                    "subspace": step.subspace.to_dict(),
                    "coefficients": [list(map(str, vector)) for vector in step.coefficients],
                }
                for step in self.steps
            ],
        }


def generative_leap(target: TargetLike) -> GenerativeLeap:
    """Return the generative leap, or bounds of it, with certificates.

    Parameters
    ----------
    target : str, Expr, Activation or Target

    Returns
    -------
    GenerativeLeap
        Converts to an int only if it is exact.

    Raises
    ------
    AssumptionError
        If the target is constant.
    UndecidedError
        If the target is no polynomial and its relevant directions cannot be decided.

    Notes
    -----
    Without noise in the labels. Samples n ≍ d^{max(1, k/2)} are then enough in theory, by other
    algorithms than gradient steps on the squared error (Damian et al., arXiv 2403.05529).

    Examples
    --------
    >>> print(generative_leap("He(3, x1)").steps[0].witness)
    y^3 shows R^1 at order 1: E[y^3 x⊥] = (324)
    """
    f = read_target(target)
    # A constant target is refused in words.
    return _Run(f, int(leap_index(f))).result()


class _Run:
    """The greedy run of one target, and its lower bound."""

    def __init__(self, f: Target, first: int) -> None:
        self.f, self.first = f, first
        self.source: SpanSource = spans_of(f)
        self.relevant = self.source.relevant_subspace
        self.lower, self.lower_certificate = 1, "every exponent is at least 1"
        self.steps: list[GenerativeStep] = []
        self.subspace = Subspace.zero(f.dimension)
        self.moments = None
        if f.is_polynomial:
            self.moments = LabelMoments(f.expansion.symbol_element, self.relevant)
        self._powers: dict[int, SpanSource | None] = {}
        self._even_in: dict[Subspace, bool] = {}

    def result(self) -> GenerativeLeap:
        if self.moments is None and has_two_values(self.f):
            return self._of_two_values()
        symmetry = find_symmetry(self.f, self.relevant)
        if symmetry is not None:
            self._raise_lower(2, f"{symmetry} leaves f invariant")
        self._single_index_bound()
        upper = self._climb()
        return GenerativeLeap(
            self.f.name, self.lower, upper, self.lower_certificate, tuple(self.steps)
        )

    def _raise_lower(self, bound: int, certificate: str) -> None:
        if bound > self.lower:
            self.lower, self.lower_certificate = bound, certificate

    def _of_two_values(self) -> GenerativeLeap:
        leap = isotropic_leap(self.f)
        steps = tuple(_by_y(step.order, step.subspace, step.rows) for step in leap.steps)
        certificate = "y has two values, so every T(y) is affine in y"
        return GenerativeLeap(self.f.name, int(leap), int(leap), certificate, steps)

    def _single_index_bound(self) -> None:
        if self.moments is not None or self.relevant.dimension != 1:
            return
        own, variable, name = self._along_the_line()
        if is_blind_to_order_two(own, variable):
            text = f"y is even and a function of |{variable}| phi({variable}) alone{name}"
            self._raise_lower(4, f"{text}: no T(y) has He_2")

    def _along_the_line(self) -> tuple[sp.Expr, sp.Symbol, str]:
        """Return f as a function of its one direction, a standard normal variable."""
        direction = self.relevant.basis[0]
        t, name = sp.Symbol("t", real=True), f" with t along {vector_text(direction)}"
        if self.relevant.is_coordinate:
            t, name = self.f.variables[self.relevant.pivots[0]], ""
        length = sp.sqrt(sp.Add(*(v**2 for v in direction)))
        rule = {x: t * v / length for x, v in zip(self.f.variables, direction, strict=True)}
        return self.f.expr.xreplace(rule), t, name

    def _climb(self) -> int | None:
        """Run up to V*, always by the lowest order for which a transform is found."""
        order = self.lower
        degree = self.f.degree
        highest = max(_HIGHEST_ORDER_OF_OTHERS, self.first) if degree is None else degree
        while not self.relevant <= self.subspace:
            step = None
            while step is None and order <= max(highest, self.lower):
                # The lower bound may rise on the way, and lower orders need not be tried then.
                order = max(order, self.lower)
                step = next(self._candidates(order), None)
                order += step is None
            if step is None:
                return None
            self.steps.append(step)
            self.subspace = step.subspace
        return max(step.order for step in self.steps)

    def _candidates(self, order: int) -> Iterator[GenerativeStep]:
        """Yield steps of at most the order; y itself first, then transforms with a number."""
        yield from self._by_label(order)
        missing = self.relevant.intersection(self.subspace.orthogonal_complement())
        is_even = self._is_even_in(missing)
        if order < self.lower:
            return
        if self.moments is None:
            yield from self._by_half_line()
            yield from self._by_powers_of_others(order)
            return
        yield from self._by_powers(order)
        if missing.dimension == 1 and not is_even:
            name = vector_text(missing.basis[0])
            yield GenerativeStep(
                1,
                "1{y > M} or 1{y < -M}",
                f"1{{y > M}} or 1{{y < -M}} shows {name} at order 1 for large M: {self._given()}y "
                "is a polynomial of one variable and not even",
                self.relevant,
            )

    def _is_even_in(self, missing: Subspace) -> bool:
        """Whether f is seen to be even in the missing directions, which raises the lower bound."""
        if missing not in self._even_in:
            symmetry = reflection_in(self.f, missing)
            self._even_in[missing] = symmetry is not None
            if symmetry is not None:
                self._raise_lower(2, f"{symmetry} leaves f invariant")
        return self._even_in[missing]

    def _given(self) -> str:
        return "" if self.subspace.is_zero else f"given x on {self.subspace}, "

    def _by_label(self, order: int) -> Iterator[GenerativeStep]:
        try:
            span = self.source.grow(self.subspace, order, strict=True)
        except UndecidedError:
            return
        if span.rows and span.subspace.dimension > self.subspace.dimension:
            yield _by_y(span.rows[0].order, span.subspace, span.rows)

    def _by_powers(self, order: int) -> Iterator[GenerativeStep]:
        assert self.moments is not None
        for tensor_order in range(1, min(order, 2) + 1):
            for power in range(2, HIGHEST_POWER + 1):
                step = self._by_power(power, tensor_order)
                if step is not None:
                    yield step

    def _by_power(self, power: int, order: int) -> GenerativeStep | None:
        assert self.moments is not None
        span, first = self.subspace, None
        for signal in self.moments.signals(self.subspace, power, order):
            span = span + Subspace.spanned_by(signal.vectors, self.f.dimension)
            first = first or signal
            if self.relevant <= span:
                break
        if first is None or span.dimension == self.subspace.dimension:
            return None
        what = "x⊥" if order == 1 else "(x⊥ x⊥^T - P)"
        if not self.subspace.is_zero:
            what += f" | x_U = {_vector(first.point)}"
        value = ", ".join(map(_vector, first.vectors))
        return GenerativeStep(
            order,
            f"y^{power}",
            f"y^{power} shows {span} at order {order}: E[y^{power} {what}] = {value}",
            span,
            first.vectors,
        )

    def _by_half_line(self) -> Iterator[GenerativeStep]:
        """One missing direction, on which the label is a function of one variable by itself."""
        if self.lower > 1 or self.relevant.dimension != self.subspace.dimension + 1:
            return
        for own, variable, name in self._single_functions():
            transform = one_sided_infinity(own, variable)
            if transform is not None:
                text = f"{transform}{name}, shows {self.relevant} at order 1"
                yield GenerativeStep(1, transform.partition(" ")[0], text, self.relevant)

    def _single_functions(self) -> Iterator[tuple[sp.Expr, sp.Symbol, str]]:
        if self.subspace.is_zero:
            yield self._along_the_line()
            return
        variables = self.f.variables
        for i, x in enumerate(variables):
            axis = Subspace.spanned_by([[int(i == j) for j in range(len(variables))]])
            own = own_part(self.f, x)
            if own is not None and axis <= self.subspace.orthogonal_complement():
                yield own, x, ""

    def _by_powers_of_others(self, order: int) -> Iterator[GenerativeStep]:
        for power in _POWERS_OF_OTHERS:
            source = self._source_of_power(power)
            if source is None:
                continue
            try:
                span = source.grow(self.subspace, order, strict=True)
            except GiantstepError:
                continue
            if span.rows and span.subspace.dimension > self.subspace.dimension:
                found, vectors = span.rows[0].order, tuple(row.vector for row in span.rows)
                text = f"y^{power} shows {span.subspace} at order {found}"
                yield GenerativeStep(found, f"y^{power}", text, span.subspace, vectors)

    def _source_of_power(self, power: int) -> SpanSource | None:
        if power not in self._powers:
            made = label_power(self.f, power)
            self._powers[power] = None if made is None else spans_of(made)
        return self._powers[power]


def _by_y(order: int, subspace: Subspace, rows: Sequence[SpanRow]) -> GenerativeStep:
    text = f"y shows {subspace} at order {order}"
    return GenerativeStep(order, "y", text, subspace, tuple(row.vector for row in rows))


def _vector(entries: Sequence[sp.Expr]) -> str:
    return f"({', '.join(map(str, entries))})"
