r"""Linear subspaces of :math:`K^r`, exact, by their reduced row echelon form.

K is a field in which zero is decided (:mod:`.exact.fields`): rationals, real algebraic numbers, and
rational functions of powers of π or of exponentials. Two subspaces are equal if and only if their
echelon forms are. Nothing is ever orthonormalised, so no roots come in: the projector on the row
space of B is :math:`B^T (B B^T)^{-1} B`.

Where the field holds π together with e, or expectations as generators, a formal zero is a zero, and
that a pivot is none is left to :func:`.zero_test.is_exactly_zero`: proven by intervals or, for
expectations, by balls of python-flint; without that package by digits of quadrature that agree. So
`U <= V` is proven if it holds; that it does not hold may rest on such digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.rings import PolyElement

from ...errors import ExpressionError, ParameterError, UndecidedError
from ...pages import Typeset
from ..exact.fields import (
    common_field,
    exact_field,
    formal_generators,
    independence_is_proved,
)
from ..expressions.exact_numbers import require_exact
from ..expressions.expression_text import expression_text
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.expansion import read_number
from .cases import Case, CaseEchelon, Values

Number: TypeAlias = sp.Expr | Fraction | int
Element: TypeAlias = Any

MAX_DIMENSION = 1000
"""Of the space; beyond, bases fill the memory."""
"""An element of a SymPy domain."""


@dataclass(frozen=True, eq=False, repr=False)
class Subspace(Typeset):
    """A linear subspace of K^r.

    Make one with `spanned_by`, `zero` or `whole`.

    Attributes
    ----------
    field : Domain
        The SymPy domain K of the entries.
    rows : tuple of tuple
        The basis in reduced row echelon form, entries in `field`.
    ambient_dimension : int
        r.
    case : Case or None
        Where entries are functions of parameters, the values for which the rows are independent;
        they are a basis, reduced as far as pivots vanish nowhere in the case.

    Examples
    --------
    >>> U = Subspace.spanned_by([[1, 1, 1], [1, 2, 3]])
    >>> U, U.dimension, [2, 3, 4] in U
    (Subspace ⟨(1, 0, -1), (0, 1, 2)⟩ of R^3, 2, True)
    >>> U.orthogonal_complement().basis
    ((1, -2, 1),)
    """

    field: Any
    rows: tuple[tuple[Element, ...], ...]
    ambient_dimension: int
    case: Case | None = None

    @classmethod
    def zero(cls, dimension: int) -> Subspace:
        """Return {0} in R^r."""
        return cls(sp.QQ, (), _checked_dimension(dimension))

    @classmethod
    def whole(cls, dimension: int) -> Subspace:
        """Return R^r itself."""
        r = _checked_dimension(dimension)
        return cls(sp.QQ, tuple(tuple(sp.QQ(int(i == j)) for j in range(r)) for i in range(r)), r)

    @classmethod
    def spanned_by(
        cls,
        vectors: Sequence[Sequence[Number]],
        dimension: int | None = None,
        *,
        argument: str = "vectors",
        independent: bool = False,
    ) -> Subspace:
        """Return the span of vectors of exact numbers.

        Parameters
        ----------
        vectors : sequence of sequences
            Rows of r exact real numbers each; see :func:`.exact.fields.exact_field`.
        dimension : int, optional
            r; needed if there are no vectors.
        argument : str
            How the user knows the vectors; error messages name it.
        independent : bool
            Refuse dependent vectors.

        Raises
        ------
        ParameterError
            If they are no rows of one length, hold a floating-point number, or are dependent where
            they must not be.
        UnsupportedExpressionError
            If a number is not of an exact field.
        UndecidedError
            If a pivot holds π together with e and no digits tell it from zero.
        """
        rows = _checked_rows(vectors, dimension, argument)
        length = dimension if dimension is not None else len(rows[0])
        field, entries = exact_field([entry for row in rows for entry in row])
        elements = [tuple(entries[i * length : (i + 1) * length]) for i in range(len(rows))]
        result = cls.from_elements(elements, field, length)
        if independent and result.dimension < len(rows):
            before = Subspace.from_elements([], field, length)
            for number, element in enumerate(elements, 1):
                after = Subspace.from_elements([*before.rows, element], field, length)
                if after.dimension == before.dimension:
                    raise ParameterError(
                        f"{argument} must be linearly independent, but row {number}, "
                        f"({', '.join(map(str, rows[number - 1]))}), is "
                        + ("zero" if not any(element) else "a combination of the rows before it")
                    )
                before = after
        return result

    @classmethod
    def from_elements(
        cls,
        rows: Iterable[Sequence[Element]],
        field: Any,
        dimension: int,
        case: Case | None = None,
    ) -> Subspace:
        """Return the span of rows of elements of a domain."""
        if case is not None:
            return cls.of_echelon(CaseEchelon(field, dimension, case, rows))
        remaining = [list(row) for row in rows if any(row)]
        if not remaining:
            return cls(field, (), dimension)
        matrix = DomainMatrix(remaining, (len(remaining), dimension), field)
        echelon, pivots = matrix.rref()
        if not independence_is_proved(field):
            # Prove that the formal rank is the rank: a minor of that size is not zero.
            dense = matrix.to_dense().rep.to_ddm()
            chosen = matrix.transpose().rref()[1]
            minor = [[dense[i][j] for j in pivots] for i in chosen]
            determinant = DomainMatrix(minor, (len(pivots), len(pivots)), matrix.domain).det()
            if is_exactly_zero(matrix.domain.to_sympy(determinant), "a minor of the vectors"):
                raise ParameterError(
                    "the vectors hold a relation between pi and e that is not known to be one; "
                    "write their entries without it"
                )
        basis = echelon.to_dense().rep.to_ddm()[: len(pivots)]
        return cls(field, tuple(tuple(map(reduced, row)) for row in basis), dimension)

    @classmethod
    def of_echelon(cls, echelon: CaseEchelon) -> Subspace:
        """Return the span of vectors with parameters."""
        if echelon.rank == echelon.width:
            return cls.whole(echelon.width)
        rows = tuple(map(tuple, echelon.rows))
        return cls(echelon.field, rows, echelon.width, echelon.case)

    def with_values(self, values: Values) -> Subspace:
        """Return the subspace at values of the parameters."""
        if self.case is None:
            return self
        rows = [[entry.xreplace(dict(values)) for entry in row] for row in self.basis]
        return Subspace.spanned_by(rows, self.ambient_dimension)

    @property
    def dimension(self) -> int:
        """Dimension of the subspace."""
        return len(self.rows)

    @property
    def is_zero(self) -> bool:
        """Whether it is {0}."""
        return not self.rows

    @property
    def is_whole(self) -> bool:
        """Whether it is all of R^r."""
        return self.dimension == self.ambient_dimension

    @property
    def basis(self) -> tuple[tuple[sp.Expr, ...], ...]:
        """Rows of the reduced row echelon form, as SymPy numbers."""
        return tuple(tuple(self.field.to_sympy(entry) for entry in row) for row in self.rows)

    @property
    def pivots(self) -> tuple[int, ...]:
        """Column of the leading 1 of each row; none for rows with parameters that have no pivot."""
        if self.case is None:
            return tuple(next(j for j, entry in enumerate(row) if entry) for row in self.rows)
        columns = [[bool(row[j]) for row in self.rows] for j in range(self.ambient_dimension)]
        units = [
            next((j for j, entry in enumerate(row) if entry == 1 and sum(columns[j]) == 1), None)
            for row in self.rows
        ]
        return tuple(j for j in units if j is not None)

    @property
    def is_coordinate(self) -> bool:
        """Whether it is spanned by axes."""
        return all(sum(map(bool, row)) == 1 for row in self.rows)

    def over(self, field: Any, embed: Callable[[Element], Element]) -> Subspace:
        """Return the same subspace with entries in a larger field."""
        if field == self.field:
            return self
        rows = tuple(tuple(reduced(embed(entry)) for entry in row) for row in self.rows)
        return Subspace(field, rows, self.ambient_dimension, self.case)

    def __contains__(self, vector: Sequence[Number]) -> bool:
        return Subspace.spanned_by([vector], self.ambient_dimension, argument="vector") <= self

    def __le__(self, other: Subspace) -> bool:
        if not isinstance(other, Subspace):
            return NotImplemented
        return (self + other).dimension == other.dimension

    def __ge__(self, other: Subspace) -> bool:
        return other <= self

    def __lt__(self, other: Subspace) -> bool:
        return self <= other and self.dimension < other.dimension

    def __gt__(self, other: Subspace) -> bool:
        return other < self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subspace):
            return NotImplemented
        if (self.ambient_dimension, self.dimension) != (other.ambient_dimension, other.dimension):
            return False
        if self.case is not None or other.case is not None:
            return self <= other
        if self.pivots != other.pivots:
            return False
        first, second = self._over_one_field(other)
        # By differences: over algebraic fields SymPy does not reduce 3/3, and it differs from 1/1.
        return not any(
            a - b
            for row, other_row in zip(first.rows, second.rows, strict=True)
            for a, b in zip(row, other_row, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # By its numbers: SymPy cannot pickle the elements of all its fields.
        formal = tuple(formal_generators(self.field))
        return _from_basis, (self.basis, self.ambient_dimension, formal, self.case)

    def __hash__(self) -> int:
        # Not of the entries: equal ones may be written in different fields.
        return hash((self.ambient_dimension, self.dimension))

    def __add__(self, other: Subspace) -> Subspace:
        if not isinstance(other, Subspace):
            return NotImplemented
        first, second = self._over_one_field(other)
        rows = (*first.rows, *second.rows)
        case = self.case or other.case
        return Subspace.from_elements(rows, first.field, self.ambient_dimension, case)

    def orthogonal_complement(self) -> Subspace:
        """Return the vectors orthogonal to all of the subspace."""
        if self.is_zero:
            whole = Subspace.whole(self.ambient_dimension)
            return whole.over(self.field, lambda a: self.field.convert_from(a, sp.QQ))
        if len(self.pivots) < self.dimension:
            raise UndecidedError(
                f"the complement of {self} has no basis that holds for all values of the "
                "parameters; give values to them"
            )
        free = [j for j in range(self.ambient_dimension) if j not in self.pivots]
        zero, one = self.field.zero, self.field.one
        result = []
        for j in free:
            vector = [zero] * self.ambient_dimension
            vector[j] = one
            for row, pivot in zip(self.rows, self.pivots, strict=True):
                vector[pivot] = -row[j]
            result.append(vector)
        return Subspace.from_elements(result, self.field, self.ambient_dimension, self.case)

    def intersection(self, other: Subspace) -> Subspace:
        """Return the vectors in both subspaces."""
        orthogonal = self.orthogonal_complement() + other.orthogonal_complement()
        return orthogonal.orthogonal_complement()

    def projector_elements(self) -> list[list[Element]]:
        """Return the rows of the orthogonal projector, entries in `field`."""
        r = self.ambient_dimension
        if self.is_zero:
            return [[self.field.zero] * r for _ in range(r)]
        basis = DomainMatrix([list(row) for row in self.rows], (self.dimension, r), self.field)
        transposed = basis.transpose()
        projector = transposed * (basis * transposed).inv() * basis
        return [list(row) for row in projector.to_dense().rep.to_ddm()]

    def projector(self) -> sp.Matrix:
        """Return the orthogonal projector Bᵀ(BBᵀ)⁻¹B as a matrix of exact numbers."""
        rows = self.projector_elements()
        return sp.Matrix([[self.field.to_sympy(entry) for entry in row] for row in rows])

    def image(self, matrix: sp.MatrixBase) -> Subspace:
        """Return {M u : u ∈ U} for a matrix M of exact numbers with r columns."""
        if matrix.cols != self.ambient_dimension:
            raise ParameterError(
                f"matrix must have {self.ambient_dimension} columns, got {matrix.cols}"
            )
        rows = [list(matrix * sp.Matrix(row)) for row in self.basis]
        return Subspace.spanned_by(rows, matrix.rows)

    def numeric(self) -> list[list[float]]:
        """Return the basis rows as floats, for simulations."""
        return [[float(entry) for entry in row] for row in self.basis]

    def __str__(self) -> str:
        if self.is_whole:
            return f"R^{self.ambient_dimension}"
        if self.is_zero:
            return "{0}"
        return f"⟨{', '.join(map(vector_text, self.basis))}⟩"

    def __repr__(self) -> str:
        return f"Subspace {self} of R^{self.ambient_dimension}"

    def latex(self) -> str:
        r"""Return the span in LaTeX.

        Examples
        --------
        >>> print(Subspace.spanned_by([[0, 1, 1], [1, 0, 0]]).latex())
        \left\langle e_{1},\ (0, 1, 1)\right\rangle
        """
        if self.is_whole:
            return rf"\mathbb{{R}}^{{{self.ambient_dimension}}}"
        if self.is_zero:
            return r"\{0\}"
        rows = r",\ ".join(vector_latex(row) for row in self.basis)
        return rf"\left\langle {rows}\right\rangle"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the dimension r and the rows as texts."""
        rows = [[expression_text(entry) for entry in row] for row in self.basis]
        return {"ambient_dimension": self.ambient_dimension, "basis": rows}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Subspace:
        """Return the subspace that `to_dict` wrote.

        Raises
        ------
        ExpressionError
            If the content is not what `to_dict` writes.

        Examples
        --------
        >>> U = Subspace.spanned_by([[1, sp.sqrt(2)]])
        >>> Subspace.from_dict(U.to_dict()) == U
        True
        """
        try:
            dimension, rows = content["ambient_dimension"], content["basis"]
            texts = [[str(entry) for entry in row] for row in rows]
        except (LookupError, TypeError):
            raise ExpressionError(
                "the content is not that of a subspace; it needs 'ambient_dimension' and 'basis'"
            ) from None
        vectors = [[read_number(entry) for entry in row] for row in texts]
        return cls.spanned_by(vectors, dimension, argument="basis")

    def _over_one_field(self, other: Subspace) -> tuple[Subspace, Subspace]:
        if self.ambient_dimension != other.ambient_dimension:
            raise ParameterError(
                f"the subspaces are of R^{self.ambient_dimension} and R^{other.ambient_dimension}; "
                "they have to be of one space"
            )
        field, first, second = common_field(self.field, other.field)
        return self.over(field, first), other.over(field, second)


def reduced(element: Element) -> Element:
    """Return a fraction over an algebraic field with leading coefficient 1 in its denominator.

    SymPy cancels polynomials there, but no constants: equal fractions may not compare as equal, and
    long computations make the constants very long. Other elements are returned as they are.

    Examples
    --------
    >>> field, (a, b) = exact_field([sp.sqrt(2 / sp.pi), sp.sqrt(2)])
    >>> a * b / (b * a) == field.one, reduced(a * b / (b * a)) == field.one
    (False, True)
    """
    denominator = getattr(element, "denom", None)
    if not isinstance(denominator, PolyElement) or not denominator.ring.domain.is_Algebraic:
        return element
    leading = denominator.LC
    if leading == denominator.ring.domain.one:
        return element
    inverse = denominator.ring.domain.one / leading
    return element.raw_new(element.numer.mul_ground(inverse), denominator.mul_ground(inverse))


def vector_text(vector: Sequence[sp.Expr]) -> str:
    """Write a vector as a text; unit vectors as e1, e2, …

    Examples
    --------
    >>> vector_text([0, 1, 0]), vector_text([1, sp.sqrt(3), 0])
    ('e2', '(1, sqrt(3), 0)')
    """
    axis = _axis(vector)
    if axis is not None:
        return f"e{axis + 1}"
    return f"({', '.join(expression_text(sp.sympify(v, strict=True)) for v in vector)})"


def vector_latex(vector: Sequence[sp.Expr]) -> str:
    """Write a vector in LaTeX; unit vectors as e_1, e_2, …"""
    axis = _axis(vector)
    return f"e_{{{axis + 1}}}" if axis is not None else f"({', '.join(map(sp.latex, vector))})"


def _from_basis(
    basis: Sequence[Sequence[sp.Expr]],
    dimension: int,
    formal: Sequence[sp.Expr],
    case: Case | None = None,
) -> Subspace:
    """Return the subspace with a basis in reduced row echelon form."""
    field, entries = exact_field([entry for row in basis for entry in row], formal=formal)
    elements = iter(map(reduced, entries))
    rows = tuple(tuple(next(elements) for _ in row) for row in basis)
    return Subspace(field, rows, dimension, case)


def _axis(vector: Sequence[sp.Expr]) -> int | None:
    used = [i for i, entry in enumerate(vector) if entry != 0]
    return used[0] if len(used) == 1 and vector[used[0]] == 1 else None


def _checked_dimension(dimension: int) -> int:
    if isinstance(dimension, bool) or not isinstance(dimension, int | sp.Integer) or dimension < 1:
        raise ParameterError(f"dimension must be a whole number >= 1, got {dimension!r}")
    if dimension > MAX_DIMENSION:
        raise ParameterError(
            f"dimension must be at most {MAX_DIMENSION}; take coordinates in a frame of the span "
            "of the directions that matter"
        )
    return int(dimension)


def _checked_rows(
    vectors: Sequence[Sequence[Number]], dimension: int | None, argument: str
) -> list[list[sp.Expr]]:
    expected = f"{argument} must be rows of exact numbers, such as [[1, 0], [0, 1]]"
    if isinstance(vectors, str):
        raise ParameterError(f"{expected}, got the text {vectors!r}")
    if isinstance(vectors, sp.MatrixBase):
        vectors = vectors.tolist()
    try:
        rows = [list(row) for row in vectors]
    except TypeError:
        raise ParameterError(f"{expected}, got {vectors!r}") from None
    if dimension is not None:
        dimension = _checked_dimension(dimension)
    elif not rows:
        raise ParameterError(f"{argument} are empty; give at least one row, or the dimension")
    length = dimension if dimension is not None else len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != length or not row:
            raise ParameterError(
                f"{argument} must be rows of {length} numbers each, but row {number} has {len(row)}"
            )
    return [
        [require_exact(entry, f"{argument}[{i}][{j}]") for j, entry in enumerate(row)]
        for i, row in enumerate(rows)
    ]
