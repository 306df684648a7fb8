r"""Ranks of vectors over fields with formal generators, proven.

Over rationals and algebraic numbers this is elimination. Over rational functions of constants it is
not: elimination brings in quotients whose greatest common divisors take longer than anything else.
There vectors are multiplied by their denominators; that one is independent of others is shown by a
minor that an interval keeps away from zero, that it depends on them by minors that are formally
zero, and the reduced echelon form comes from Cramer's rule at the end.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp

from ...errors import UndecidedError
from ..constant_enclosures import NoEnclosure
from ..subspaces import Element, Subspace
from .formal_fields import Certifier, excludes_zero, formal_field

Vector = Sequence[Element]

# Longer quotients of polynomials become generators themselves: common divisors of such can take
# minutes. Relations with other constants are then lost, which may leave a rank undecided.
_MOST_TERMS, _HIGHEST_DEGREE = 6, 24


class CertifiedRank:
    """Vectors that are proven to be independent.

    Attributes
    ----------
    vectors : list
        The vectors, in the order in which they were added.
    is_unclear : bool
        Whether one was left out that is neither proven to be independent of the others nor the
        contrary.
    """

    def __init__(self, certifier: Certifier, width: int) -> None:
        self.certifier, self.width = certifier, width
        self.vectors: list[Vector] = []
        self.is_unclear = False
        self._pivots: list[int] = []
        # Over numbers the echelon form, over functions the numerators.
        self._rows: list[list[Any]] = []

    @property
    def rank(self) -> int:
        """Number of vectors."""
        return len(self.vectors)

    def start_with(self, rows: Sequence[Vector], pivots: Sequence[int]) -> None:
        """Take the rows of a reduced echelon form, or multiples of them, as they are."""
        self.vectors, self._pivots = list(rows), list(pivots)
        functions = self.certifier.field.is_FractionField
        self._rows = [cleared(row) if functions else list(row) for row in rows]

    def insert(self, vector: Vector) -> bool:
        """Add a vector if it is proven to be independent of those before; tell whether it is."""
        if self.certifier.field.is_FractionField:
            row = cleared(vector)
            pivot = self._pivot_of_functions(row)
        else:
            row = self._reduced(vector)
            pivot = next((j for j, entry in enumerate(row) if entry), None)
        if pivot is None:
            return False
        self.vectors.append(vector)
        self._pivots.append(pivot)
        self._rows.append(row)
        return True

    def _reduced(self, vector: Vector) -> list[Any]:
        reduced = list(vector)
        for pivot, row in zip(self._pivots, self._rows, strict=True):
            factor = reduced[pivot] / row[pivot] if reduced[pivot] else None
            if factor:
                reduced = [a - factor * b if b else a for a, b in zip(reduced, row, strict=True)]
        return reduced

    def _pivot_of_functions(self, row: list[Any]) -> int | None:
        columns = [j for j in range(self.width) if j not in self._pivots]
        if not columns or not any(row):
            return None
        rows = [*self._rows, row]
        if all(self._has_interval(entry) for part in rows for entry in part):
            intervals = [[self.certifier.interval(entry) for entry in part] for part in rows]
            for j in columns:
                if excludes_zero(_minor(intervals, [*self._pivots, j])):
                    self.certifier.used_enclosures |= not self.certifier.is_exact
                    return j
        unclear = False
        for j in columns:
            zero = self.certifier.numerator_vanishes(_minor(rows, [*self._pivots, j]))
            if zero is False:
                return j
            unclear = unclear or zero is None
        self.is_unclear = self.is_unclear or unclear
        return None

    def _has_interval(self, entry: Any) -> bool:
        try:
            self.certifier.interval(entry)
        except NoEnclosure:
            return False
        return True

    def over(self, certifier: Certifier, embed: Callable[[Element], Element]) -> CertifiedRank:
        """Return the same vectors over the larger field of another certifier."""
        found = CertifiedRank(certifier, self.width)
        found.is_unclear, found._pivots = self.is_unclear, list(self._pivots)
        found.vectors = [[embed(entry) for entry in vector] for vector in self.vectors]
        if certifier.field.is_FractionField:
            found._rows = [cleared(vector) for vector in found.vectors]
        else:
            found._rows = [[embed(entry) for entry in row] for row in self._rows]
        return found

    def subspace(self) -> Subspace:
        """Return the span of the vectors, in the smallest field.

        Raises
        ------
        UndecidedError
            If a pivot of the reduced echelon form is neither proven to be zero nor not to be.
        """
        if self.rank == self.width:
            return Subspace.whole(self.width)
        field = self.certifier.field
        if not field.is_FractionField or not self.vectors:
            return Subspace.from_elements(self._rows, field, self.width)
        rows = self._rows
        # The first columns that are independent are the pivots of the reduced form.
        columns = CertifiedRank(self.certifier, self.rank)
        pivots = []
        for j in range(self.width):
            if columns.insert([field(row[j]) for row in rows]):
                pivots.append(j)
            elif columns.is_unclear:
                raise UndecidedError(
                    f"whether coordinate {j + 1} is a pivot of the span cannot be decided"
                )
        determinant = _minor(rows, pivots)
        numbers: list[sp.Expr] = []
        names: list[sp.Expr] = []
        for i, j in itertools.product(range(self.rank), range(self.width)):
            minor = _minor(rows, [*pivots[:i], j, *pivots[i + 1 :]])
            found = _quotient(field, minor, determinant)
            if isinstance(found, sp.Expr):
                names.append(found)
            numbers.append(found if isinstance(found, sp.Expr) else field.to_sympy(found))
        smaller, entries = formal_field(numbers, names=names)
        entries = [_monic(smaller, entry) for entry in entries]
        starts = range(0, len(entries), self.width)
        basis = tuple(tuple(entries[i : i + self.width]) for i in starts)
        return Subspace(smaller, basis, self.width)


def cleared(vector: Vector) -> list[Any]:
    """Return the numerators of a vector over one denominator."""
    denominators = list(dict.fromkeys(entry.denom for entry in vector))
    common = functools.reduce(lambda a, b: a if a == b else _common_multiple(a, b), denominators)
    return [
        entry.numer if entry.denom == common else entry.numer * common.exquo(entry.denom)
        for entry in vector
    ]


def _common_multiple(a: Any, b: Any) -> Any:
    if len(a) == len(b) == 1:
        (first,), (second,) = a.monoms(), b.monoms()
        return a.ring.from_dict({tuple(map(max, first, second)): a.ring.domain.one})
    return a * b


def _minor(rows: Sequence[Sequence[Any]], columns: Sequence[int]) -> Any:
    """Return the determinant of the first rows at some columns, by Laplace expansion."""
    if len(columns) == 1:
        return rows[0][columns[0]]
    # Row by row, each minor of the first rows once.
    minors: dict[tuple[int, ...], Any] = {(c,): rows[0][c] for c in columns}
    for size in range(2, len(columns) + 1):
        row = rows[size - 1]
        larger: dict[tuple[int, ...], Any] = {}
        for chosen in itertools.combinations(columns, size):
            total = None
            for position, c in enumerate(chosen):
                rest = (*chosen[:position], *chosen[position + 1 :])
                term = row[c] * minors[rest]
                if (size - 1 - position) % 2:
                    term = -term
                total = term if total is None else total + term
            larger[chosen] = total
        minors = larger
    return minors[tuple(columns)]


def _quotient(field: Any, numerator: Any, denominator: Any) -> Element | sp.Expr:
    """Return a quotient as an element, or as a number of its own if that is long."""
    if not numerator:
        return field.zero
    if numerator.keys() == denominator.keys():
        ratio = numerator.LC / denominator.LC
        if numerator == denominator * ratio:
            return field(ratio)
    terms = len(numerator) + len(denominator)
    degree = max(sum(monomial) for part in (numerator, denominator) for monomial in part)
    if len(denominator) > 1 and (terms > _MOST_TERMS or degree > _HIGHEST_DEGREE):
        common = tuple(map(min, *numerator, *denominator))
        parts = (
            part.ring.from_dict(
                {tuple(a - b for a, b in zip(m, common, strict=True)): c for m, c in part.items()}
            )
            for part in (numerator, denominator)
        )
        first, second = (field.to_sympy(field(part)) for part in parts)
        return first / second
    return field(numerator) / field(denominator)


def _monic(field: Any, element: Element) -> Element:
    """Return the element with leading coefficient 1 below; SymPy leaves 3/3 over QQ<sqrt(2)>."""
    if not field.is_FractionField or not field.domain.is_Algebraic:
        return element
    inverse = field.domain.one / element.denom.LC
    parts = (part.mul_ground(inverse) for part in (element.numer, element.denom))
    return field.field.raw_new(*parts)
