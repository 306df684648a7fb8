r"""Real algebraic number fields QQ(θ), built by adjoining one root after the other.

A tower starts at QQ. To adjoin a root α of a polynomial over the field K so far, the polynomial is
factored over K (Trager's algorithm, in SymPy). If the factor that vanishes at α is linear, α is
already in K. Else K(α) = QQ(α + sθ) for all but finitely many integers s; the smallest that works
is found, with its minimal polynomial and with θ and α in terms of the new generator, by linear
algebra over QQ in the basis θ^i α^j. Square roots of integers are sorted out beforehand without
factoring anything: over pairwise coprime integers, squares show in the exponents.

Source: Cohen, *A Course in Computational Algebraic Number Theory* (1993), sections 3.6 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.matrices.exceptions import DMNonInvertibleMatrixError

from ..errors import UnsupportedExpressionError

MAX_DEGREE = 64
"""Highest degree over QQ of a field."""

# Over a field of degree n, a polynomial of degree q is factored by one of degree n q over QQ. From
# here on that takes minutes in pure Python.
_HIGHEST_NORM = 32
_X = sp.Dummy("x")
_FIRST_DIGITS, _MOST_DIGITS = 40, 4000


class AlgebraicTower:
    """A real field QQ(θ) that grows; `domain` is QQ or SymPy's ``QQ<θ>``."""

    def __init__(self) -> None:
        self.domain: Any = sp.QQ
        self._theta: sp.Expr = sp.S.Zero
        # Adjoined numbers, by the expression they were adjoined as, in the present domain.
        self._known: dict[sp.Expr, Any] = {}
        self._order = 1

    @property
    def degree(self) -> int:
        """Degree of the field over QQ."""
        return 1 if self.domain is sp.QQ else int(self.domain.ext.minpoly.degree())

    def value(self, expression: sp.Expr) -> Any | None:
        """Return the element of an adjoined expression, or None."""
        return self._known.get(expression)

    def cosine(self, turn: sp.Rational) -> Any:
        """Return cos(2π·turn), whose order must divide the one adjoined first."""
        k = int(turn * self._order) % self._order
        twice = self._known[_cosine_generator(self._order)] if self._order > 1 else None
        if twice is None or k == 0:
            return self.domain.one
        # 2cos(kt) by Chebyshev's recurrence from 2cos(t).
        previous, current = self.domain.convert(2), twice
        for _ in range(min(k, self._order - k) - 1):
            previous, current = current, twice * current - previous
        return current / self.domain.convert(2)

    def adjoin_cosine(self, order: int) -> None:
        """Adjoin 2cos(2π/order), and with it all cosines of multiples; first of all roots."""
        if sp.totient(order) // 2 > MAX_DEGREE:
            raise _degree_error(f"cos(2*pi/{order})", int(sp.totient(order)) // 2)
        self._order = order
        if order > 1:
            generator = _cosine_generator(order)
            self._adjoin(_cosine_polynomial(order), generator, generator)

    def adjoin_square_roots(self, radicands: Sequence[int]) -> None:
        """Adjoin square roots of positive integers, none twice; before all nested roots."""
        basis = _coprime_basis(radicands)
        # Echelon form over GF(2): bit vectors, with the radicands whose product they belong to.
        rows: list[tuple[int, list[int]]] = []
        dependent: list[list[int]] = []
        independent: list[int] = []
        for radicand in dict.fromkeys(radicands):
            vector, members = _square_class(radicand, basis), [radicand]
            for pivot, made_of in rows:
                if vector ^ pivot < vector:
                    vector, members = vector ^ pivot, members + made_of
            if vector:
                rows = sorted([*rows, (vector, members)], reverse=True)
                independent.append(radicand)
            else:
                # A radicand that occurs twice is a square and does not matter.
                dependent.append([m for m in members if members.count(m) % 2])
        if self.degree == 1 and 2 ** len(independent) > MAX_DEGREE:
            raise _degree_error(f"sqrt({independent[-1]})", 2 ** len(independent))
        for radicand in independent:
            root = sp.sqrt(radicand)
            if self._order > 1:
                # The cosines may hold it already: only factoring tells.
                square = self.domain.convert(radicand)
                self.adjoin_root(sp.Integer(radicand), square, 2, root)
            else:
                self._adjoin([sp.QQ(-radicand), sp.QQ(0)], root, root)
        for members in dependent:
            self._known[sp.sqrt(members[0])] = self._product_of_roots(members)

    def _product_of_roots(self, members: list[int]) -> Any:
        """Return √m_1 from the others, given that the product of all is a square."""
        others = members[1:]
        root = math.isqrt(math.prod(members))
        value = self.domain.convert_from(sp.QQ(root, math.prod(others)), sp.QQ)
        for other in others:
            value *= self._known[sp.sqrt(other)]
        return value

    def adjoin_root(self, radicand: sp.Expr, element: Any, index: int, shown: sp.Expr) -> None:
        """Adjoin the positive `index`-th root of a positive element, whose expression is given."""
        name = radicand ** sp.Rational(1, index)
        if name in self._known:
            return
        self._check(index, shown)
        minus = -element
        one, zero = self.domain.one, self.domain.zero
        self._adjoin_factor([one, *[zero] * (index - 1), minus], name)

    def adjoin_root_of(self, root: sp.CRootOf) -> None:
        """Adjoin a real ``CRootOf``."""
        if root in self._known:
            return
        self._check(root.poly.degree(), root)
        coefficients = [
            self.domain.convert_from(sp.QQ(c.p, c.q), sp.QQ) for c in root.poly.all_coeffs()
        ]
        self._adjoin_factor(coefficients, root)

    def _check(self, index: int, shown: sp.Expr) -> None:
        if self.degree * index > (_HIGHEST_NORM if self.degree > 1 else MAX_DEGREE):
            raise _degree_error(str(shown), self.degree * index)

    def _adjoin_factor(self, coefficients: list[Any], number: sp.Expr) -> None:
        """Adjoin a root, of which a polynomial over the field is known, highest power first."""
        polynomial = sp.Poly.from_list(coefficients, _X, domain=self.domain)
        factors = [factor.rep.to_list() for factor, _ in polynomial.factor_list()[1]]
        factor = self._vanishing(factors, number)
        leading = factor[0]
        monic = [self.domain.convert(c) / leading for c in reversed(factor[1:])]
        if len(monic) == 1:
            self._known[number] = -monic[0]
        else:
            self._adjoin(monic, number, number)

    def _vanishing(self, factors: list[list[Any]], number: sp.Expr) -> list[Any]:
        """Return the one factor that vanishes at `number`: the others stay away from zero."""
        if len(factors) == 1:
            return factors[0]
        digits = _FIRST_DIGITS
        while digits <= _MOST_DIGITS:
            # A larger maxn, because by itself SymPy gives up where more than 100 digits cancel.
            theta, x = (v.evalf(digits, maxn=_MOST_DIGITS) for v in (self._theta, number))
            small = sp.Float(10) ** (-digits // 2)
            sizes = [abs(_evaluated(factor, theta, x)) for factor in factors]
            first, second, *_ = sorted(range(len(factors)), key=sizes.__getitem__)
            if sizes[first] < small and sizes[second] ** 2 > small:
                return factors[first]
            digits *= 2
        raise UnsupportedExpressionError(
            f"{number} cannot be told from the conjugates of its field with {_MOST_DIGITS} digits; "
            "write it by simpler roots"
        )

    def _adjoin(self, monic: list[Any], number: sp.Expr, name: sp.Expr) -> None:
        """Extend by a root of an irreducible y^m + h_{m-1} y^{m-1} + … + h_0, given h_0, …"""
        size = self.degree * len(monic)
        if size > MAX_DEGREE:
            raise _degree_error(str(number), size)
        multiple = 1 if self.degree > 1 else 0
        while (found := self._primitive(monic, multiple)) is None:
            multiple += 1
        minimal, theta, alpha = found
        self._theta = number + multiple * self._theta
        polynomial = sp.Poly.from_list(minimal, _X, domain=sp.QQ)
        old, self.domain = self.domain, sp.QQ.algebraic_field((polynomial, self._theta))
        image = self.domain(theta)
        self._known = {key: self._moved(old, a, image) for key, a in self._known.items()}
        self._known[name] = self.domain(alpha)

    def _moved(self, old: Any, element: Any, image: Any) -> Any:
        value = self.domain.zero
        for c in _coefficients(old, element):
            value = value * image + self.domain.convert_from(c, sp.QQ)
        return value

    def _primitive(
        self, monic: list[Any], multiple: int
    ) -> tuple[list[Any], list[Any], list[Any]] | None:
        """Try γ = α + sθ: its minimal polynomial, θ and α in γ, highest first; None if it fails."""
        field, m = self.domain, len(monic)
        size = self.degree * m
        theta = field.unit if field is not sp.QQ else field.zero
        shift = field.convert(multiple) * theta
        power = [field.one] + [field.zero] * (m - 1)
        columns = []
        for _ in range(size + 1):
            columns.append(self._vector(power))
            raised = [field.zero, *power[:-1]]
            power = [
                r + shift * p - power[-1] * h for r, p, h in zip(raised, power, monic, strict=True)
            ]
        targets = [columns.pop()]
        targets.append(self._vector([theta] + [field.zero] * (m - 1)))
        alpha = [field.zero, field.one, *[field.zero] * (m - 2)] if m > 1 else [-monic[0]]
        targets.append(self._vector(alpha))
        matrix = DomainMatrix(columns, (size, size), sp.QQ).transpose()
        right = DomainMatrix(targets, (3, size), sp.QQ).transpose()
        try:
            solution = matrix.lu_solve(right).transpose().to_list()
        except DMNonInvertibleMatrixError:
            return None
        minimal = [sp.QQ(1), *(-c for c in reversed(solution[0]))]
        return minimal, solution[1][::-1], solution[2][::-1]

    def _vector(self, polynomial: list[Any]) -> list[Any]:
        """Return the coordinates of Σ p_j α^j in the basis θ^i α^j."""
        found = []
        for element in polynomial:
            low_first = _coefficients(self.domain, element)[::-1]
            found += low_first + [sp.QQ(0)] * (self.degree - len(low_first))
        return found


def _coefficients(domain: Any, element: Any) -> list[Any]:
    """Return the coefficients in powers of θ, highest first."""
    return [element] if domain is sp.QQ else list(element.to_list())


def _evaluated(factor: list[Any], theta: sp.Expr, x: sp.Expr) -> sp.Expr:
    value = sp.S.Zero
    for coefficient in factor:
        inner = sp.S.Zero
        for c in [coefficient] if not hasattr(coefficient, "to_list") else coefficient.to_list():
            inner = inner * theta + sp.Rational(int(c.numerator), int(c.denominator))
        value = value * x + inner
    return value


def _cosine_generator(order: int) -> sp.Expr:
    return 2 * sp.cos(2 * sp.pi / order)


def _cosine_polynomial(order: int) -> list[Any]:
    """Return the minimal polynomial of 2cos(2π/order), monic, lowest first, without the 1.

    The cyclotomic polynomial reads the same backwards: z^-n Φ(z) = a_0 + Σ a_j (z^j + z^-j), and
    z^j + z^-j is a polynomial in z + 1/z by Chebyshev's recurrence.
    """
    if order == 2:
        return [sp.QQ(2)]
    cyclotomic = [int(c) for c in sp.cyclotomic_poly(order, _X, polys=True).all_coeffs()]
    half = len(cyclotomic) // 2
    total = [cyclotomic[half]] + [0] * half
    previous, current = [2], [0, 1]
    for j in range(1, half + 1):
        for i, c in enumerate(current):
            total[i] += cyclotomic[half + j] * c
        following = [0, *current]
        for i, c in enumerate(previous):
            following[i] -= c
        previous, current = current, following
    return [sp.QQ(c) for c in total[:-1]]


def _coprime_basis(numbers: Sequence[int]) -> list[int]:
    """Return pairwise coprime integers > 1, of which all numbers are products of powers."""
    basis: list[int] = []
    waiting = [int(n) for n in numbers]
    while waiting:
        n = waiting.pop()
        if n == 1 or n in basis:
            continue
        for b in basis:
            common = math.gcd(n, b)
            if common > 1:
                # Their product shrinks by the common factor each time, so this ends.
                basis.remove(b)
                waiting += [common, b // common, n // common]
                break
        else:
            basis.append(n)
    return basis


def _square_class(number: int, basis: list[int]) -> int:
    """Return, as bits, which basis elements (that are no squares) divide it an odd time."""
    bits = 0
    for i, b in enumerate(basis):
        odd = False
        while number % b == 0:
            number //= b
            odd = not odd
        if odd and math.isqrt(b) ** 2 != b:
            bits |= 1 << i
    return bits


def _degree_error(shown: str, degree: int) -> UnsupportedExpressionError:
    text = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return UnsupportedExpressionError(
        f"adjoining {text} may lead to a number field of degree {degree}, too large to compute in; "
        f"use fewer roots: fields have degree at most {MAX_DEGREE}, or {_HIGHEST_NORM} with "
        "nested roots"
    )
