r"""Orthogonal maps that leave a target invariant, and what they hide.

If a non-trivial orthogonal map g of the relevant space V* has f∘g = f, the rotation-invariant and
the generative leap are at least 2 (derived here): at U = Fix g the first-order signal
:math:`\mathbb{E}[x_\perp \mid y, x_U]` is in U^⊥ and invariant under g, hence 0.

For polynomials, f∘g = f if and only if F∘g = F for the symbol. Looked for are, in this order,

- sign changes of coordinates, by linear algebra modulo 2 on the exponents;
- signed permutations of coordinates;
- reflections in sums of eigenspaces of :math:`M = \sum_k w_k \langle \nabla F_k, \nabla
  F_k\rangle`, with which every such g commutes, so that it keeps them;
- rotations: antisymmetric A with :math:`\langle \nabla F(\xi), A\xi\rangle = 0`, a linear system.

Each map that is returned is proven; that none is found proves nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.rings import PolyElement

from ..exact.fields import common_field, exact_field
from ..expressions._singularities import expanded
from ..expressions.factors import factors_of_polynomial
from ..expressions.regularity import reflectable
from ..gaussian.hermite_polynomials import index_factorial
from ..hermite.tensors import rotated
from ..targets.conditional_spans import MultiIndex
from ..targets.subspaces import Element, Subspace
from ..targets.target import Target

_MOST_PERMUTATIONS = 2000
_MOST_BLOCKS = 6
_LARGEST_ROTATED = 12
_MOST_SIGNS = 6
_MOST_PERMUTED = 4

Terms = dict[MultiIndex, Element]


@dataclass(frozen=True)
class Symmetry:
    """A non-trivial orthogonal map g of the relevant space with f∘g = f.

    `kind`: "sign change", "signed permutation", "reflection" or "rotations". `description`: what
    the map does, as a text. `matrix`: g; of a group of rotations exp(tA) the antisymmetric
    generator A, Matrix of shape (r, r). `fixed`: the vectors that g leaves where they are.
    """

    kind: str
    description: str
    matrix: sp.ImmutableMatrix
    fixed: Subspace

    def __str__(self) -> str:
        return f"{self.kind} {self.description}"


def find_symmetry(target: Target, relevant: Subspace) -> Symmetry | None:
    """Return an orthogonal map that leaves a target invariant and moves its relevant space.

    `relevant`: V*, or a subspace of it that is certain. Returns None if none of the kinds that are
    looked for exists.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
    >>> print(find_symmetry(target("x1 + x2*x3"), Subspace.whole(3)))
    sign change x2 → -x2, x3 → -x3
    >>> print(find_symmetry(target("erf(x1) + erf(x2)"), Subspace.whole(2)))
    signed permutation x1 → x2, x2 → x1
    """
    if target.is_polynomial:
        searches = (_sign_change, _permutation, _block_reflection, _rotation)
        symbol = target.expansion.symbol_element
        return next((result for s in searches if (result := s(symbol, relevant))), None)
    return _of_expression(target, relevant)


def reflection_in(target: Target, moved: Subspace) -> Symmetry | None:
    """Return the map that is -1 on a subspace and 1 on its complement, if f is invariant under it.

    `moved`: part of the relevant space.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
    >>> line = Subspace.spanned_by([[1, -1]])
    >>> reflection_in(target("x1 + x2 + x1*x2"), line).fixed
    Subspace ⟨(1, 1)⟩ of R^2
    """
    matrix = _reflection_matrix(moved)
    if target.is_polynomial:
        invariant = _is_invariant(target.expansion.symbol_element, matrix)
    else:
        invariant = _is_invariant_form(_canonical(target.expr), target.variables, matrix)
    if moved.is_zero or not invariant:
        return None
    text = f"x → -x on {moved}"
    return Symmetry("reflection", text, matrix, moved.orthogonal_complement())


def is_invariant_in(target: Target, moved: Subspace) -> bool:
    """Whether a target is invariant under -1 on a subspace; its case answers for parameters.

    Of a function that is no polynomial, whether that is seen.
    """
    if target.case is None or not target.is_polynomial:
        return reflection_in(target, moved) is not None
    left = _moved_part(target.expansion.symbol_element, _reflection_matrix(moved))
    return target.vanish(list(map(left.ring.domain.to_sympy, left.values())), "an odd part")


def _moved_part(symbol: PolyElement, matrix: sp.MatrixBase) -> PolyElement:
    """Return F∘g - F."""
    image = rotated(symbol, matrix)
    of_symbol = common_field(symbol.ring.domain, image.ring.domain)[1]
    return image - image.ring.from_dict({alpha: of_symbol(c) for alpha, c in symbol.items()})


def _reflection_matrix(moved: Subspace) -> sp.ImmutableMatrix:
    return sp.ImmutableMatrix(sp.eye(moved.ambient_dimension) - 2 * moved.projector())


def _is_invariant(symbol: PolyElement, matrix: sp.MatrixBase) -> bool:
    """Whether F∘g = F: points refute it quickly, substitution proves it."""
    r = symbol.ring.ngens
    number_field, entries = exact_field(list(matrix), formal=sorted(matrix.free_symbols, key=str))
    field, of_symbol, of_matrix = common_field(symbol.ring.domain, number_field)
    rows = [[of_matrix(c) for c in entries[i * r : (i + 1) * r]] for i in range(r)]
    terms = {alpha: of_symbol(c) for alpha, c in symbol.items()}
    for shift in (2, 5):
        point = [field.convert((-1) ** i * (i * i + shift)) for i in range(r)]
        pairs = [zip(row, point, strict=True) for row in rows]
        image = [sum((a * x for a, x in pair if a), field.zero) for pair in pairs]
        # Differences, because fractions over an algebraic field need not compare as equal.
        if _value(terms, point, field) - _value(terms, image, field):
            return False
    return not _moved_part(symbol, matrix)


def _value(terms: Terms, point: Sequence[Element], field: Any) -> Element:
    total = field.zero
    for alpha, c in terms.items():
        for x, n in zip(point, alpha, strict=True):
            if n:
                c = c * x**n
        total += c
    return total


def _moves(matrix: sp.MatrixBase, relevant: Subspace) -> bool:
    """Whether a map is not the identity on the relevant space."""
    return not relevant <= _fixed(matrix)


def _fixed(matrix: sp.MatrixBase) -> Subspace:
    r = matrix.rows
    rows = (matrix - sp.eye(r)).tolist()
    return Subspace.spanned_by(rows, r).orthogonal_complement()


def _sign_change(symbol: PolyElement, relevant: Subspace) -> Symmetry | None:
    used = _used(symbol)
    parities = _modulo_2(([alpha[i] for i in used] for alpha in symbol), len(used))
    solutions = [[int(n) % 2 for n in row] for row in parities.nullspace().to_list()]
    if not solutions:
        return None
    # Few signs are easiest to read.
    best = min(solutions, key=lambda signs: (sum(signs), [-s for s in signs]))
    turned = {used[i] for i, sign in enumerate(best) if sign}
    names = symbol.ring.symbols
    signs = [-1 if i in turned else 1 for i in range(len(names))]
    return _signed_permutation(range(len(names)), signs, names, relevant)


def _used(symbol: PolyElement) -> list[int]:
    """Return the coordinates that occur; all of them are seen by the relevant space."""
    return sorted({i for alpha in symbol for i, n in enumerate(alpha) if n})


def _modulo_2(rows: Iterable[Sequence[int]], width: int) -> DomainMatrix:
    """Return a matrix over the field of two elements."""
    two = sp.GF(2)
    listed = [[two(n) for n in row] for row in rows]
    return DomainMatrix(listed, (len(listed), width), two)


def _signed_permutation(
    images: Sequence[int],
    signs: Sequence[int],
    variables: Sequence[sp.Symbol],
    relevant: Subspace,
) -> Symmetry | None:
    """Return the map x_i → ± x_{images[i]}, if it moves the relevant space."""
    r = len(variables)
    matrix = sp.ImmutableMatrix(r, r, lambda i, j: signs[i] if images[i] == j else 0)
    if not _moves(matrix, relevant):
        return None
    changed = [i for i in range(r) if images[i] != i or signs[i] < 0]
    text = ", ".join(
        f"{variables[i]} → {'-' if signs[i] < 0 else ''}{variables[images[i]]}" for i in changed
    )
    kind = "sign change" if list(images) == list(range(r)) else "signed permutation"
    return Symmetry(kind, text, matrix, _fixed(matrix))


def _permutation(symbol: PolyElement, relevant: Subspace) -> Symmetry | None:
    terms = dict(symbol)
    for images in itertools.islice(_permutations(symbol), _MOST_PERMUTATIONS):
        signs = _signs_for(terms, images)
        if signs is not None:
            result = _signed_permutation(images, signs, symbol.ring.symbols, relevant)
            if result is not None:
                return result
    return None


def _permutations(symbol: PolyElement) -> Iterator[tuple[int, ...]]:
    """Yield permutations of coordinates that look alike: transpositions first."""
    r = symbol.ring.ngens
    alike: dict[Any, list[int]] = {}
    for i in _used(symbol):
        seen = sorted((alpha[i], tuple(sorted(alpha))) for alpha in symbol if alpha[i])
        alike.setdefault(tuple(seen), []).append(i)
    identity = tuple(range(r))
    for group in alike.values():
        for i, j in itertools.combinations(group, 2):
            yield tuple(j if n == i else i if n == j else n for n in identity)
    groups = [group for group in alike.values() if len(group) > 1]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        images = list(identity)
        for group, order in zip(groups, orders, strict=True):
            for i, j in zip(group, order, strict=True):
                images[i] = j
        if sum(i != j for i, j in enumerate(images)) > 2:
            yield tuple(images)


def _signs_for(terms: Terms, images: Sequence[int]) -> list[int] | None:
    """Return signs with which the permutation leaves F invariant, or None."""
    r = len(images)
    equations = []
    for alpha, c in terms.items():
        image = [0] * r
        for i, n in enumerate(alpha):
            image[images[i]] = n
        other = terms.get(tuple(image))
        if other is None or ((other - c) and (other + c)):
            return None
        # The last entry is the right-hand side.
        equations.append([*alpha, int(bool(other - c))])
    echelon, pivots = _modulo_2(equations, r + 1).rref()
    if r in pivots:
        return None
    signs = [1] * r
    for pivot, row in zip(pivots, echelon.to_list(), strict=False):
        signs[pivot] = -1 if row[r] else 1
    return signs


def _block_reflection(symbol: PolyElement, relevant: Subspace) -> Symmetry | None:
    blocks = _blocks(symbol)
    if not 2 <= len(blocks) <= _MOST_BLOCKS:
        return None
    for count in range(1, len(blocks)):
        for chosen in itertools.combinations(blocks, count):
            moved = sum(chosen[1:], chosen[0])
            matrix = _reflection_matrix(moved)
            if _moves(matrix, relevant) and _is_invariant(symbol, matrix):
                return Symmetry(
                    "reflection", f"x → -x on {moved}", matrix, moved.orthogonal_complement()
                )
    return None


def _blocks(symbol: PolyElement) -> list[Subspace]:
    """Return the kernels of the irreducible factors of M on V*, for rational coefficients."""
    ring = symbol.ring
    if not ring.domain.is_QQ or ring.ngens > _LARGEST_ROTATED:
        return []
    r = ring.ngens
    matrix = DomainMatrix(_gram(symbol), (r, r), sp.QQ)
    variable = sp.Dummy("t")
    characteristic = sp.Poly(matrix.charpoly(), variable, domain=sp.QQ)
    result = []
    for factor, _ in factors_of_polynomial(characteristic)[1]:
        coefficients = factor.rep.to_list()
        if coefficients == [sp.QQ(1), sp.QQ(0)]:  # M vanishes on the complement of V*.
            continue
        value = DomainMatrix.zeros((r, r), sp.QQ)
        for c in coefficients:
            value = value * matrix + DomainMatrix.eye(r, sp.QQ) * c
        kernel = [list(row) for row in value.to_dense().nullspace().rep.to_ddm()]
        result.append(Subspace.from_elements(kernel, sp.QQ, r))
    return result


def _gram(symbol: PolyElement) -> list[list[Element]]:
    """Return Σ_k w_k ⟨∂_i F_k, ∂_j F_k⟩ with different weights and the product of Fischer."""
    r, domain = symbol.ring.ngens, symbol.ring.domain
    derivatives = [dict(symbol.diff(i)) for i in range(r)]
    matrix = [[domain.zero] * r for _ in range(r)]
    for i in range(r):
        for j in range(i + 1):
            total = domain.zero
            for beta in derivatives[i].keys() & derivatives[j].keys():
                degree = sum(beta)
                weight = index_factorial(beta) * (2 * degree * degree + 3)
                total += derivatives[i][beta] * derivatives[j][beta] * weight
            matrix[i][j] = matrix[j][i] = total
    return matrix


def _rotation(symbol: PolyElement, relevant: Subspace) -> Symmetry | None:
    ring = symbol.ring
    r = ring.ngens
    if r > _LARGEST_ROTATED:
        return None
    pairs = list(itertools.combinations(range(r), 2))
    images = [dict(ring.gens[j] * symbol.diff(i) - ring.gens[i] * symbol.diff(j)) for i, j in pairs]
    for weights in _relations(images, ring.domain):
        matrix = sp.zeros(r, r)
        for (i, j), weight in zip(pairs, weights, strict=True):
            value = ring.domain.to_sympy(weight)
            matrix[i, j], matrix[j, i] = value, -value
        fixed = Subspace.spanned_by(matrix.tolist(), r).orthogonal_complement()
        if not relevant <= fixed:
            text = f"about {fixed}" if not fixed.is_zero else "without an axis"
            return Symmetry("rotations", text, sp.ImmutableMatrix(matrix), fixed)
    return None


def _relations(vectors: Sequence[Terms], domain: Any) -> Iterator[list[Element]]:
    """Yield a basis of the linear relations between sparse vectors."""
    monomials = list(dict.fromkeys(monomial for vector in vectors for monomial in vector))
    few = 2 * len(vectors)
    if len(monomials) > 2 * few:
        # Elimination in all of them takes gigabytes over large fields, and few mostly show that
        # the vectors are independent.
        remaining = set(monomials[:: len(monomials) // few])
        parts = [{m: c for m, c in v.items() if m in remaining} for v in vectors]
        if not any(True for _ in _relations(parts, domain)):
            return
    echelon: dict[MultiIndex, tuple[Terms, list[Element]]] = {}
    for number, vector in enumerate(vectors):
        rest = dict(vector)
        weights = [domain.one if i == number else domain.zero for i in range(len(vectors))]
        for pivot, (row, combination) in echelon.items():
            factor = rest.get(pivot)
            if not factor:
                continue
            for monomial, c in row.items():
                rest[monomial] = rest.get(monomial, domain.zero) - factor * c
            weights = [w - factor * c for w, c in zip(weights, combination, strict=True)]
        rest = {monomial: c for monomial, c in rest.items() if c}
        if not rest:
            yield weights
            continue
        leading = next(iter(rest))
        inverse = domain.one / rest[leading]
        scaled = {monomial: c * inverse for monomial, c in rest.items()}
        echelon[leading] = (scaled, [w * inverse for w in weights])


def _of_expression(target: Target, relevant: Subspace) -> Symmetry | None:
    """Signed permutations of coordinates of a function that is no polynomial, by its form."""
    variables = target.variables
    used = [i for i, x in enumerate(variables) if target.expr.has(x)]
    form = _canonical(target.expr)
    for images, signs in _candidates(used, len(variables)):
        result = _signed_permutation(images, signs, variables, relevant)
        if result is not None and _is_invariant_form(form, variables, result.matrix):
            return result
    return None


def _is_invariant_form(
    form: sp.Expr, variables: Sequence[sp.Symbol], matrix: sp.MatrixBase
) -> bool:
    """Whether a map is seen to leave an expression invariant."""
    image = sp.Matrix(matrix) * sp.Matrix(variables)
    rule = dict(zip(variables, image, strict=True))
    moved = _canonical(form.subs(rule, simultaneous=True))
    return bool(moved == form or expanded(moved - form) == 0)


def _canonical(expr: sp.Expr) -> sp.Expr:
    """Expand, and move minus signs out of sign, which SymPy leaves there."""
    expr = reflectable(expr).replace(
        sp.sign, lambda u: -sp.sign(-u) if u.could_extract_minus_sign() else sp.sign(u)
    )
    return expanded(expr)


def _candidates(used: Sequence[int], r: int) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield sign changes, signed transpositions and, of few coordinates, permutations."""
    identity = tuple(range(r))
    largest = len(used) if len(used) <= _MOST_SIGNS else 1
    for count in range(1, largest + 1):
        for turned in itertools.combinations(used, count):
            yield identity, [-1 if i in turned else 1 for i in identity]
    for i, j in itertools.combinations(used, 2):
        images = tuple(j if n == i else i if n == j else n for n in identity)
        for sign in (1, -1):
            yield images, [sign if n in (i, j) else 1 for n in identity]
    if len(used) <= _MOST_PERMUTED:
        for order in itertools.permutations(used):
            places = dict(zip(used, order, strict=True))
            images = tuple(places.get(n, n) for n in identity)
            if sum(n != m for n, m in enumerate(images)) > 2:
                yield images, [1] * r
