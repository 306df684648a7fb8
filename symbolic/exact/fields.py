"""Fields in which exact real numbers can be computed with, and compared with zero.

:func:`exact_field` takes numbers and returns the smallest SymPy domain that is known to hold them,
with the numbers as its elements: ``QQ``; ``QQ<θ>`` for real algebraic numbers ((nested) roots, sin,
cos and tan of rational multiples of π, real ``CRootOf``); rational functions over these for powers
of π and exponentials of algebraic numbers. Zero is decided exactly in the first two, and in the
third where π and exponentials do not occur together (π is transcendental; Lindemann and Weierstrass
for exponentials). With both, or with generators of which nothing is known, such as an expectation
without closed form, an element that is zero is zero, but that another one is not has to be shown
elsewhere: :func:`independence_is_proved` tells. Algebraic fields grow root by root: the polynomial
of a root α is factored over the field K = QQ(θ) so far (Trager's algorithm, in SymPy), so that no
root is adjoined twice, and K(α) = QQ(α + sθ) for the smallest integer s that works, by linear
algebra in the basis θ^i α^j (Cohen, *A Course in Computational Algebraic Number Theory* (1993),
sections 3.6 and 4.2). Square roots of integers are sorted out beforehand: over pairwise coprime
integers, squares show in the exponents.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.matrices.exceptions import DMNonInvertibleMatrixError

from ...errors import UnsupportedExpressionError
from ...pages import shorten
from ..expressions.exact_numbers import require_exact
from ..expressions.factors import factors_of_polynomial

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
        basis = coprime_base(radicands)
        # Echelon form over GF(2): bit vectors, with the radicands whose product they belong to.
        rows: list[tuple[int, list[int]]] = []
        dependent: list[list[int]] = []
        independent: list[int] = []
        for radicand in dict.fromkeys(radicands):
            vector, members = square_class(radicand, basis), [radicand]
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
        factors = [factor.rep.to_list() for factor, _ in factors_of_polynomial(polynomial)[1]]
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
        while (result := self._primitive(monic, multiple)) is None:
            multiple += 1
        minimal, theta, alpha = result
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
        result = []
        for element in polynomial:
            low_first = _coefficients(self.domain, element)[::-1]
            result += low_first + [sp.QQ(0)] * (self.degree - len(low_first))
        return result


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


def coprime_base(numbers: Iterable[int]) -> list[int]:
    """Return pairwise coprime integers > 1 of which all numbers are products of powers.

    Their logarithms are independent over the rationals, and no number is factored.

    Examples
    --------
    >>> coprime_base([12, 18, 35])
    [2, 3, 35]
    """
    base: list[int] = []
    waiting = [n for n in numbers if n > 1]
    while waiting:
        n = waiting.pop()
        for i, b in enumerate(base):
            common = math.gcd(n, b)
            if common > 1:
                del base[i]
                waiting += [m for m in (common, b // common, n // common) if m > 1]
                break
        else:
            base.append(n)
    return sorted(set(base))


def square_class(number: int, base: Sequence[int]) -> int:
    """Return, as bits, which of a coprime base, squares left out, divide a number an odd time."""
    odd = (sp.multiplicity(b, number) % 2 and math.isqrt(b) ** 2 != b for b in base)
    return sum(1 << i for i, is_odd in enumerate(odd) if is_odd)


def _degree_error(shown: str, degree: int) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"adjoining {shorten(shown)} may lead to a number field of degree {degree}, too large to "
        f"compute in; use fewer roots: fields have degree at most {MAX_DEGREE}, or "
        f"{_HIGHEST_NORM} with nested roots"
    )


# (1 + sqrt(2))**n is stored with all its digits.
_HIGHEST_POWER = 4096
# For the sign of what is known not to be zero.
_HYPERBOLIC = (sp.sinh, sp.cosh, sp.tanh, sp.coth, sp.sech, sp.csch)
_CIRCULAR = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc)


def exact_field(
    numbers: Iterable[sp.Expr | Fraction | int], *, formal: Sequence[sp.Expr] = ()
) -> tuple[Any, list[Any]]:
    """Return a SymPy domain that holds the given exact real numbers, and its elements.

    Parameters
    ----------
    numbers : iterable of Expr
        Built by + - * / and powers from rationals, roots, sin, cos and tan of rational multiples
        of π, real ``CRootOf``, powers of π, exp and hyperbolic functions of algebraic numbers.
    formal : sequence of Expr
        Other real numbers that occur in them, each of which becomes a generator as if it were
        transcendental over all others.

    Returns
    -------
    domain : Domain
        See the module. Its ``to_sympy`` turns elements back into expressions.
    elements : list
        The numbers in `domain`, in their order; zero if and only if the number is (see the module
        for π together with e).

    Raises
    ------
    ParameterError
        If a number holds a floating-point number or is not a SymPy expression.
    UnsupportedExpressionError
        If one is not a finite real number of this kind, holds a symbol, or the field would have
        a degree over QQ beyond `MAX_DEGREE`.

    Examples
    --------
    >>> from sympy import exp, pi, sqrt
    >>> domain, (a, b, c) = exact_field([sqrt(2), sqrt(3), sqrt(5 + 2 * sqrt(6))])
    >>> domain, a + b == c
    (QQ<sqrt(2) + sqrt(3)>, True)
    >>> exact_field([sqrt(2 / pi), 1 / pi])[0]
    QQ<sqrt(2)>(sqrt(pi))
    >>> exact_field([exp(1), exp(-sp.Rational(1, 2))])[0]
    QQ(exp(1/2))
    >>> exact_field([sp.log(2) / 3], formal=[sp.log(2)])[0]
    QQ(log(2))
    """
    # A symbol for each, so that nothing looks for roots and exponentials inside.
    names = {number: sp.Dummy(real=True) for number in formal}
    expressions = [
        number if isinstance(number, sp.Rational) else _prepared(number, names)
        for number in numbers
    ]
    if all(isinstance(number, sp.Rational) for number in expressions):
        return sp.QQ, [sp.QQ(number.p, number.q) for number in expressions]
    return _Field(expressions, {name: number for number, name in names.items()}).build()


def formal_field(
    numbers: Iterable[sp.Expr], *, names: Iterable[sp.Expr] = ()
) -> tuple[Any, list[Any]]:
    """Return a domain that holds all the numbers, and its elements.

    `numbers`: exact finite real numbers; what :func:`.exact.fields.exact_field` does not know
    becomes a generator. `names`: those of the numbers that become generators as they are.

    Examples
    --------
    >>> formal_field([3 * sp.erf(1), sp.Rational(1, 2)])
    (QQ(erf(1)), [3*(erf(1)), 1/2])
    """
    listed = list(numbers)
    formal = dict.fromkeys(names)
    formal |= dict.fromkeys(
        part for number in listed if number not in formal for part in _unknown_parts(number)
    )
    return exact_field(listed, formal=list(formal))


@functools.lru_cache(maxsize=1024)
def _unknown_parts(number: sp.Expr) -> tuple[sp.Expr, ...]:
    """Return the parts of a number that no exact field holds."""
    if number.is_Rational:
        return ()
    if number.is_Add or number.is_Mul:
        return tuple(part for operand in number.args for part in _unknown_parts(operand))
    if number.is_Pow and number.exp.is_Integer:
        return _unknown_parts(number.base)
    try:
        exact_field([number])
    except UnsupportedExpressionError:
        return (number,)
    return ()


def independence_is_proved(domain: Any) -> bool:
    """Tell whether an element of the domain is zero only if the number is.

    Not so for π with e, nor for formal generators.

    Examples
    --------
    >>> from sympy import exp, pi
    >>> independence_is_proved(exact_field([pi])[0])
    True
    >>> independence_is_proved(exact_field([pi, exp(1)])[0])
    False
    """
    if not domain.is_FractionField:
        return True
    bases = {generator.as_base_exp()[0] for generator in domain.symbols}
    return bases in ({sp.pi}, {sp.E}) and all(map(_is_known, domain.symbols))


def common_field(first: Any, second: Any) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    """Return a domain that holds two given ones, and the embeddings of the two into it.

    `first`, `second`: domains as `exact_field` returns them.

    Examples
    --------
    >>> from sympy import sqrt
    >>> first, second = exact_field([sqrt(2)])[0], exact_field([sqrt(3)])[0]
    >>> domain, embed, _ = common_field(first, second)
    >>> domain, domain.to_sympy(embed(first.from_sympy(sqrt(2))))
    (QQ<sqrt(2) + sqrt(3)>, sqrt(2))
    """
    if first == second:
        return first, lambda a: a, lambda a: a
    generators = [_generators(first), _generators(second)]
    formal = [*formal_generators(first), *formal_generators(second)]
    domain, images = exact_field(
        [g for pair in generators for part in pair for g in part], formal=formal
    )
    split = sum(len(part) for part in generators[0])
    return (
        domain,
        _embedding(first, domain, images[:split]),
        _embedding(second, domain, images[split:]),
    )


def formal_generators(domain: Any) -> list[sp.Expr]:
    """Return the generators of a domain about which nothing is known.

    Examples
    --------
    >>> formal_generators(exact_field([sp.pi, sp.log(2)], formal=[sp.log(2)])[0])
    [log(2)]
    """
    return [g for g in _generators(domain)[1] if not _is_known(g)]


def _generators(domain: Any) -> tuple[list[sp.Expr], list[sp.Expr]]:
    """Return the algebraic generator, in a list that may be empty, and the transcendental ones."""
    inner = domain.domain if domain.is_FractionField else domain
    transcendental = list(domain.symbols) if domain.is_FractionField else []
    return ([inner.ext.as_expr()] if inner.is_Algebraic else []), transcendental


def _embedding(source: Any, target: Any, images: Sequence[Any]) -> Callable[[Any], Any]:
    inner = source.domain if source.is_FractionField else source
    theta, others = (images[0], images[1:]) if inner.is_Algebraic else (None, images)

    def algebraic(a: Any) -> Any:
        if theta is None:
            return target.convert_from(a, sp.QQ)
        value = target.zero
        for c in a.to_list():
            value = value * theta + target.convert_from(c, sp.QQ)
        return value

    def polynomial(p: Any) -> Any:
        value = target.zero
        for monomial, c in p.terms():
            term = algebraic(c)
            for image, power in zip(others, monomial, strict=True):
                term *= image**power
            value += term
        return value

    if source.is_FractionField:
        return lambda a: polynomial(a.numer) / polynomial(a.denom)
    return algebraic


def _prepared(number: sp.Expr | Fraction | int, formal: Mapping[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Check a number and write it by roots, cosines and exponentials; denest square roots."""
    value = require_exact(number, "number").xreplace(formal)
    unknown = value.free_symbols.difference(formal.values())
    if unknown:
        names = ", ".join(sorted(symbol.name for symbol in unknown))
        raise UnsupportedExpressionError(
            f"{value} is not a number: it depends on {names}; give values to its symbols first"
        )
    # Tuples are the limits of integrals and sums that are not worked out.
    if value.has(sp.oo, -sp.oo, sp.zoo, sp.nan, sp.I, sp.Tuple):
        raise _refusal(value, value)
    if value.has(*_HYPERBOLIC):
        value = value.rewrite(sp.exp)
    if value.has(sp.Pow):
        nested = {
            power: sp.sqrtdenest(power)
            for power in value.atoms(sp.Pow)
            if power.exp == sp.S.Half and not power.base.is_Rational
        }
        # Only where no nested root is left: else it can bring in roots that are not needed.
        value = value.xreplace(
            {old: new for old, new in nested.items() if not any(map(_is_nested, new.atoms(sp.Pow)))}
        )
        if value.has(sp.zoo, sp.nan):
            raise _division_by_zero(number)
    return value


def _refusal(whole: sp.Expr, piece: sp.Expr) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"{shorten(str(piece))} is not a real number that can be computed with exactly"
        + ("" if whole == piece else f", in {shorten(str(whole))}")
        + "; use rationals, roots, sin and cos of rational multiples of pi, powers of pi and "
        "exponentials of algebraic numbers"
    )


def _division_by_zero(shown: sp.Expr) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(f"{shorten(str(shown))} divides by zero; remove the division")


def _is_nested(power: sp.Pow) -> bool:
    return not power.exp.is_Integer and not power.base.is_Rational


class _Field:
    """The numbers on their way into one field."""

    def __init__(self, numbers: Sequence[sp.Expr], formal: Mapping[sp.Symbol, sp.Expr]) -> None:
        self.numbers = numbers
        # What stands for a generator that is no power of π and no exponential.
        self.formal = formal
        self.tower = AlgebraicTower()
        self.domain: Any = sp.QQ
        # Powers of π and exponentials, as elements of the final field.
        self.transcendental: dict[sp.Expr, Any] = {}

    def build(self) -> tuple[Any, list[Any]]:
        nodes = [node for number in self.numbers for node in _parts(number)]
        nodes = list(dict.fromkeys(nodes))
        self.adjoin_algebraic(nodes)
        self.adjoin_transcendental(nodes)
        return self.domain, [self.checked(number, number) for number in self.numbers]

    def adjoin_algebraic(self, nodes: list[sp.Expr]) -> None:
        turns = [turn for node in nodes if isinstance(node, _CIRCULAR) for turn in _turns(node)]
        if turns:
            # One cosine for all: cos(2πk/N) is a polynomial in cos(2π/N).
            self.tower.adjoin_cosine(math.lcm(*(int(turn.q) for turn in turns)))
        roots = [node for node in nodes if _is_root(node)]
        # Square roots of integers first: they need no factoring among themselves.
        self.tower.adjoin_square_roots(
            [int(n.base) for n in roots if n.base.is_Integer and n.base > 0 and n.exp.q == 2]
        )
        self.domain = self.tower.domain
        for node in nodes:
            if isinstance(node, sp.CRootOf):
                if not node.is_real:
                    raise _refusal(node, node)
                self.tower.adjoin_root_of(node)
            elif _is_root(node) and not (_is_power_of_pi(node) or node.base.is_zero):
                base = self.checked(node.base, node)
                if base and not _is_positive(node.base):
                    raise _refusal(node, node)
                self.tower.adjoin_root(node.base, base, int(node.exp.q), node)
            self.domain = self.tower.domain

    def adjoin_transcendental(self, nodes: list[sp.Expr]) -> None:
        field = self.domain
        powers = {node: node.as_base_exp()[1] for node in nodes if _is_power_of_pi(node)}
        exponents = {
            node: self.exponent(node) for node in nodes if node == sp.E or isinstance(node, sp.exp)
        }
        generators: list[sp.Expr] = []
        units: list[tuple[int, sp.Rational]] = []
        if powers:
            units.append((-1, _common_unit(powers.values())))
            generators.append(sp.pi ** units[0][1])
        theta = sp.S.One if field is sp.QQ else field.ext.as_expr()
        for i in range(self.tower.degree):
            used = [e[i] for e in exponents.values() if e[i] != 0]
            if used:
                units.append((i, _common_unit(used)))
                generators.append(sp.exp(units[-1][1] * sp.expand(theta**i)))
        formal = [node for node in nodes if node in self.formal]
        if not generators and not formal:
            return
        self.domain = field.frac_field(*generators, *(self.formal[node] for node in formal))
        variables = self.domain.gens[: len(units)]
        named = self.domain.gens[len(units) :]
        self.transcendental.update(zip(formal, named, strict=True))
        for variable, (i, unit) in zip(variables, units, strict=True):
            if i < 0:
                for node, power in powers.items():
                    self.transcendental[node] = variable ** int(power / unit)
            else:
                for node, exponent in exponents.items():
                    factor = variable ** int(exponent[i] / unit)
                    self.transcendental[node] = self.transcendental.get(node, 1) * factor

    def exponent(self, node: sp.Expr) -> list[sp.Rational]:
        """Return the exponent of e by its coefficients in powers of θ, lowest first."""
        element = self.checked(node.exp if isinstance(node, sp.exp) else sp.S.One, node)
        result = [element] if self.domain is sp.QQ else element.to_list()[::-1]
        rationals = [sp.Rational(int(c.numerator), int(c.denominator)) for c in result]
        return rationals + [sp.S.Zero] * (self.tower.degree - len(rationals))

    def checked(self, number: sp.Expr, shown: sp.Expr) -> Any:
        """Return the element of a number; `shown` names it in messages."""
        try:
            return self.convert(number, shown)
        except ZeroDivisionError:
            raise _division_by_zero(shown) from None

    def convert(self, number: sp.Expr, shown: sp.Expr) -> Any:
        if number in self.transcendental:
            return self.transcendental[number]
        if number.is_Rational:
            return self.domain.convert_from(sp.QQ(number.p, number.q), sp.QQ)
        if number.is_Add or number.is_Mul:
            first, *others = (self.convert(part, shown) for part in number.args)
            for other in others:
                first = first + other if number.is_Add else first * other
            return first
        if isinstance(number, _CIRCULAR):
            return self.circular(number)
        if isinstance(number, sp.CRootOf):
            return self.lifted(self.tower.value(number))
        if number.is_Pow and number.exp.is_Rational:
            return self.power(number, shown)
        raise _refusal(shown, number)

    def power(self, number: sp.Pow, shown: sp.Expr) -> Any:
        numerator, index = int(number.exp.p), int(number.exp.q)
        if abs(numerator) > _HIGHEST_POWER:
            raise UnsupportedExpressionError(
                f"the exponent in {shorten(str(number))} is too large; exponents go up to "
                f"{_HIGHEST_POWER}"
            )
        if index == 1:
            base = self.convert(number.base, shown)
        else:
            root = self.tower.value(number.base ** sp.Rational(1, index))
            if root is None:
                raise _refusal(shown, number)
            base = self.lifted(root)
        if numerator < 0 and not base:
            raise ZeroDivisionError
        return base**numerator

    def circular(self, number: sp.Expr) -> Any:
        cosine, *others = (self.lifted(self.tower.cosine(turn)) for turn in _turns(number))
        if isinstance(number, sp.cos | sp.sin):
            return cosine
        if isinstance(number, sp.sec | sp.csc):
            return self.domain.one / cosine
        (sine,) = others
        return sine / cosine if isinstance(number, sp.tan) else cosine / sine

    def lifted(self, element: Any) -> Any:
        """Return an element of the algebraic field in the final one."""
        if self.transcendental:
            return self.domain.convert_from(element, self.tower.domain)
        return element


def _parts(number: sp.Expr) -> Iterator[sp.Expr]:
    """Yield all parts of a number, those that others are made of first; angles stay whole."""
    whole = isinstance(number, (*_CIRCULAR, sp.CRootOf)) or _is_power_of_pi(number)
    if not whole:
        for part in number.args:
            yield from _parts(part)
    yield number


def _is_known(generator: sp.Expr) -> bool:
    """Whether a generator of a field is a power of π or an exponential of an algebraic number."""
    if _is_power_of_pi(generator) or generator == sp.E:
        return True
    return isinstance(generator, sp.exp) and not _is_transcendental(generator.exp)


def _is_transcendental(number: sp.Expr) -> bool:
    try:
        return bool(exact_field([number])[0].is_FractionField)
    except UnsupportedExpressionError:
        return True


def _is_power_of_pi(node: sp.Expr) -> bool:
    base, exponent = node.as_base_exp()
    return bool(base == sp.pi and exponent.is_Rational)


def _is_root(node: sp.Expr) -> bool:
    return bool(
        node.is_Pow and node.exp.is_Rational and not node.exp.is_Integer and node.base != sp.pi
    )


def _is_positive(base: sp.Expr) -> bool:
    sign = base.is_positive
    return bool(base.evalf(30, maxn=_MOST_DIGITS) > 0) if sign is None else bool(sign)


def _common_unit(numbers: Iterable[sp.Rational]) -> sp.Rational:
    """Return the largest rational of which all are integer multiples."""
    listed = list(numbers)
    return sp.Rational(math.gcd(*(int(n.p) for n in listed)), math.lcm(*(int(n.q) for n in listed)))


def _turns(node: sp.Expr) -> tuple[sp.Rational, ...]:
    """Return the turns t whose cosines cos(2πt) give the value; a sine is that of 1/4 - t."""
    turn = node.args[0] / (2 * sp.pi)
    if not turn.is_Rational:
        raise _refusal(node, node)
    complement = sp.Rational(1, 4) - turn
    if isinstance(node, sp.cos | sp.sec):
        return (turn,)
    return (complement,) if isinstance(node, sp.sin | sp.csc) else (turn, complement)
