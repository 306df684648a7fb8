r"""Symbols :math:`F(\xi) = \mathbb{E} f(x + \xi)` of sums of products of ridge functions.

For :math:`f = \sum_a c_a x^{\alpha_a} \prod_j g_{aj}(\langle u_{aj}, x\rangle)`
(:mod:`.ridge_terms`),

.. math:: F(\xi) = \sum_a c_a (\xi + \partial)^{\alpha_a}
          \prod_j S_{aj}(\langle u_{aj}, \xi\rangle), \qquad S(t) = \mathbb{E}\, g(z + t).

The rules for Gaussian expectations make of S polynomials, quadratic exponentials, sines and error
functions. Where none applies S stays *open*, known by its derivatives, its parity and its values at
0: tanh and softplus(u) - u/2 have a parity, the derivative of the latter is tanh(u/2)/2, the
logistic function is (1 + tanh(u/2))/2, powers of tanh reduce by tanh' = 1 - tanh², and a power of z
before a kernel κ is an operator, :math:`\mathbb{E}(z+t)^n κ(z+t) = (t + \partial)^n S(t)`. So F is

.. math:: F(\xi) = \sum_m P_m(\xi)\, e^{q_m(\xi)} \cos\text{ or }\sin(\langle k_m, \xi\rangle)
          \prod_i \operatorname{erf}(a_i(\xi))^{n_i} \prod_j S_j^{(k_j)}(l_j(\xi))^{n_j}

with polynomials P, quadratic forms q without constant, affine forms a and linear forms l and k.
Sums, products, derivatives and linear substitutions stay in this class, so that one element serves
for F, its tensors, its parts of one parity and its restrictions to subspaces. Products of sines
become sums, signs are moved out of odd functions: what cancels by these rules cancels here.
Coefficients are elements of one field (:mod:`.formal_fields`). Derived here from Stein's lemma.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp
from sympy.polys.orderings import lex
from sympy.polys.rings import PolyElement, PolyRing

from ...errors import GiantstepError, UnsupportedExpressionError
from ...pages import shorten
from ..exact.fields import formal_field
from ..expressions.activations import z as _z
from ..expressions.averages import Average
from ..expressions.functions import HALF, sigmoid, softplus
from ..expressions.regularity import Parity, analyse
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.integrand_kernels import (
    LONGEST_SUM,
    PRODUCTS_ONLY,
    affine_or_quadratic,
    as_steps_and_exponentials,
    group_by_kernel,
    multiplied_out,
)
from ..hermite.coefficients import hermite_coefficient
from .ridge_terms import RadialFunction, RidgeTerm, T, ridge_terms
from .subspaces import Element


@dataclass(frozen=True)
class OpenKernel:
    """A function κ of one Gaussian variable for whose symbol S no rule gives a closed form.

    `name`: κ as an expression; equal kernels have equal ones. `parity`: 1 if κ is even, -1 if odd,
    0 if neither is known. `moment`: S^{(n)}(0) = μ_n(κ) by n, an exact number. `derivative`: c and
    λ with κ' = c λ, if that is known.
    """

    name: sp.Expr
    parity: int
    moment: Callable[[int], sp.Expr]
    derivative: tuple[sp.Expr, OpenKernel] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenKernel) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Erf(NamedTuple):
    """erf of an affine form."""

    form: PolyElement


class Open(NamedTuple):
    """The derivative of some order of an open symbol, at a linear form, or at a squared length."""

    kernel: OpenKernel
    order: int
    form: PolyElement


Factor = Erf | Open


class Mode(NamedTuple):
    """A product of functions, to be multiplied by a polynomial.

    `exponent`: q, without constant term. `frequency`: k, a linear form; zero for no sine.
    `factors`: functions and their powers.
    """

    exponent: PolyElement
    frequency: PolyElement
    is_sine: bool
    factors: frozenset[tuple[Factor, int]]


class Setting:
    """The ring of the coefficients, and the constants that derivatives bring in.

    `ring`: ξ_1 … ξ_r over the field. `densities`: the element of :math:`2 e^{-b^2}/\\sqrt\\pi` for
    the constant term b of each erf. `scales`: the element of c for each kernel with κ' = c λ.
    """

    def __init__(
        self,
        ring: PolyRing,
        densities: Mapping[Element, Element],
        scales: Mapping[OpenKernel, Element],
    ) -> None:
        self.ring, self.densities, self.scales = ring, dict(densities), dict(scales)
        self.plain = Mode(ring.zero, ring.zero, False, frozenset())

    def moved(self, ring: PolyRing, embed: Callable[[Element], Element]) -> Setting:
        """Return the same over another ring, whose field holds this one."""
        densities = {embed(b): embed(c) for b, c in self.densities.items()}
        return Setting(ring, densities, {k: embed(c) for k, c in self.scales.items()})


class SymbolForm:
    """A function of ξ in normal form: {mode: polynomial}, no polynomial zero."""

    def __init__(self, setting: Setting, terms: dict[Mode, PolyElement]) -> None:
        self.setting = setting
        self.terms = {mode: p for mode, p in terms.items() if p}

    @classmethod
    def polynomial(cls, setting: Setting, element: PolyElement) -> SymbolForm:
        """Return a polynomial."""
        return cls(setting, {setting.plain: element})

    @classmethod
    def product(
        cls,
        setting: Setting,
        *,
        exponent: PolyElement,
        frequency: PolyElement,
        is_sine: bool,
        factors: Sequence[Factor],
        coefficient: PolyElement,
    ) -> SymbolForm:
        """Return one product of functions, brought to normal form."""
        terms: dict[Mode, PolyElement] = {}
        sign = 1
        counted: dict[Factor, int] = {}
        for factor in factors:
            side, factor, scale = _normal_factor(setting, factor)
            sign *= side
            coefficient = coefficient * scale
            counted[factor] = counted.get(factor, 0) + 1
        mode = Mode(exponent, frequency, is_sine, frozenset(counted.items()))
        _add(terms, *_normal_sine(mode, coefficient * sign))
        return cls(setting, terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: SymbolForm) -> SymbolForm:
        terms = dict(self.terms)
        for mode, p in other.terms.items():
            _add(terms, mode, p)
        return SymbolForm(self.setting, terms)

    def scaled(self, factor: Element) -> SymbolForm:
        """Return a multiple, by an element of the field or of the ring."""
        return SymbolForm(self.setting, {mode: p * factor for mode, p in self.terms.items()})

    def __mul__(self, other: SymbolForm) -> SymbolForm:
        terms: dict[Mode, PolyElement] = {}
        for first, p in self.terms.items():
            for second, q in other.terms.items():
                counted = dict(first.factors)
                for factor, n in second.factors:
                    counted[factor] = counted.get(factor, 0) + n
                for weight, is_sine, frequency in _product_of_sines(first, second):
                    mode = Mode(
                        first.exponent + second.exponent,
                        frequency,
                        is_sine,
                        frozenset(counted.items()),
                    )
                    _add(terms, *_normal_sine(mode, p * q * self._rational(weight)))
        return SymbolForm(self.setting, terms)

    def diff(self, i: int) -> SymbolForm:
        """Return the derivative by ξ_i."""
        x = self.setting.ring.gens[i]
        terms: dict[Mode, PolyElement] = {}
        for mode, p in self.terms.items():
            _add(terms, mode, p.diff(x) + p * mode.exponent.diff(x))
            slope = mode.frequency.diff(x)
            if slope:
                turned = mode._replace(is_sine=not mode.is_sine)
                _add(terms, turned, p * slope if mode.is_sine else -p * slope)
            for factor, n in mode.factors:
                slope = factor.form.diff(x)
                if slope:
                    counted = dict(mode.factors)
                    counted[factor] -= 1
                    if not counted[factor]:
                        del counted[factor]
                    rest = mode._replace(factors=frozenset(counted.items()))
                    self._add_derivative(terms, factor, rest, p * slope * n)
        return SymbolForm(self.setting, terms)

    def _add_derivative(
        self, terms: dict[Mode, PolyElement], factor: Factor, rest: Mode, p: PolyElement
    ) -> None:
        """Add p times the derivative of a factor by its argument, times the other functions."""
        if isinstance(factor, Erf):
            constant = factor.form.coeff(1)
            exponent = rest.exponent - factor.form**2 + constant**2
            density = self.setting.densities[constant]
            _add(terms, rest._replace(exponent=exponent), p * density)
            return
        derivative = Open(factor.kernel, factor.order + 1, factor.form)
        sign, raised, scale = _normal_factor(self.setting, derivative)
        counted = dict(rest.factors)
        counted[raised] = counted.get(raised, 0) + 1
        _add(terms, rest._replace(factors=frozenset(counted.items())), p * (sign * scale))

    def moved(
        self, setting: Setting, embed: Callable[[Element], Element], images: Sequence[PolyElement]
    ) -> SymbolForm:
        """Return the function with linear forms of another ring put in for the ξ_i.

        `setting`: that of the result. `embed`: takes elements of this field to the other one.
        `images`: one for each ξ_i.
        """
        cache: dict[tuple[int, int], PolyElement] = {}

        def image(p: PolyElement) -> PolyElement:
            total = setting.ring.zero
            for monomial, c in p.items():
                term = setting.ring.ground_new(embed(c))
                for i, n in enumerate(monomial):
                    if n:
                        key = (i, n)
                        if key not in cache:
                            cache[key] = images[i] ** n
                        term = term * cache[key]
                total = total + term
            return total

        terms: dict[Mode, PolyElement] = {}
        for mode, p in self.terms.items():
            result = SymbolForm.product(
                setting,
                exponent=image(mode.exponent),
                frequency=image(mode.frequency),
                is_sine=mode.is_sine,
                factors=[
                    factor._replace(form=image(factor.form))
                    for factor, n in mode.factors
                    for _ in range(n)
                ],
                coefficient=image(p),
            )
            for key, value in result.terms.items():
                _add(terms, key, value)
        return SymbolForm(setting, terms)

    def reflected(self) -> SymbolForm:
        """Return ξ ↦ F(-ξ)."""
        return self.moved(self.setting, lambda a: a, [-x for x in self.setting.ring.gens])

    def of_parity(self, parity: int) -> SymbolForm:
        """Return the even (1) or odd (-1) part."""
        mirror = self.reflected().scaled(self._rational(Fraction(parity)))
        return (self + mirror).scaled(self._rational(Fraction(1, 2)))

    def _rational(self, number: Fraction) -> Element:
        domain = self.setting.ring.domain
        return domain.convert_from(sp.QQ(number.numerator, number.denominator), sp.QQ)


def _add(terms: dict[Mode, PolyElement], mode: Mode, p: PolyElement) -> None:
    terms[mode] = terms[mode] + p if mode in terms else p


def _normal_factor(setting: Setting, factor: Factor) -> tuple[int, Factor, Any]:
    """Return (sign, factor, scale): parity makes leading coefficients positive, as far as formal.

    Derivatives of kernels with a known derivative are written by that.
    """
    scale: Any = 1
    if isinstance(factor, Erf):
        return (-1, Erf(-factor.form), 1) if _is_negative(factor.form) else (1, factor, 1)
    kernel, order, form = factor
    while order and kernel.derivative is not None:
        scale = scale * setting.scales[kernel]
        kernel, order = kernel.derivative[1], order - 1
    if kernel.parity and _is_negative(form):
        return kernel.parity * (-1) ** order, Open(kernel, order, -form), scale
    return 1, Open(kernel, order, form), scale


def _normal_sine(mode: Mode, p: PolyElement) -> tuple[Mode, PolyElement]:
    if not mode.frequency:
        return mode._replace(is_sine=False), p * 0 if mode.is_sine else p
    if _is_negative(mode.frequency):
        return mode._replace(frequency=-mode.frequency), -p if mode.is_sine else p
    return mode, p


def _is_negative(form: PolyElement) -> bool:
    """Whether the leading coefficient is negative, formally: of a form and its negative, one is."""
    linear = [monomial for monomial in form if sum(monomial)]
    if not linear:
        return False
    element = form[max(linear)]
    while not isinstance(element, int | Fraction) and not sp.QQ.of_type(element):
        if hasattr(element, "numer") and hasattr(element.numer, "LC"):
            element = element.numer.LC
        else:
            element = element.to_list()[0]
    return bool(element < 0)


def _product_of_sines(first: Mode, second: Mode) -> list[tuple[Fraction, bool, PolyElement]]:
    """Return the product of two sines or cosines as terms (weight, is_sine, frequency)."""
    a, b = first.frequency, second.frequency
    if not b:
        return [(Fraction(1), first.is_sine, a)]
    if not a:
        return [(Fraction(1), second.is_sine, b)]
    half = Fraction(1, 2)
    if first.is_sine and second.is_sine:
        return [(half, False, a - b), (-half, False, a + b)]
    if not first.is_sine and not second.is_sine:
        return [(half, False, a - b), (half, False, a + b)]
    if second.is_sine:
        a, b = b, a
    return [(half, True, a + b), (half, True, a - b)]


def binomial_operator(power: int) -> dict[tuple[int, int], int]:
    r"""Return {(k, m): c} with :math:`(t + \partial)^n = \sum c\, t^k \partial^m`.

    Examples
    --------
    >>> binomial_operator(2)
    {(2, 0): 1, (0, 0): 1, (1, 1): 2, (0, 2): 1}
    """
    result = {(0, 0): 1}
    for _ in range(power):
        raised: dict[tuple[int, int], int] = {}
        for (k, m), c in result.items():
            steps = [((k + 1, m), c), ((k, m + 1), c)]
            if k:
                steps.append(((k - 1, m), c * k))
            for key, weight in steps:
                raised[key] = raised.get(key, 0) + weight
        result = raised
    return dict(sorted(result.items(), key=lambda item: (item[0][1], -item[0][0])))


_XI = sp.Dummy("xi", real=True)
_PARITY = {Parity.EVEN: 1, Parity.ODD: -1, Parity.NEITHER: 0}


@dataclass(frozen=True)
class Piece:
    """One term c t^n e^{pt² + qt} cos or sin(kt) Π erf(at + b) Π S^{(m)}(±t) of a symbol.

    `coefficient`: c. `power`: n. `exponent`: q and p. `frequency`: k, 0 if there is no sine.
    `erfs`: a and b of each error function. `kernels`: kernel, order m of the derivative, and sign
    of the argument, of each open symbol.
    """

    coefficient: sp.Expr
    power: int = 0
    exponent: tuple[sp.Expr, sp.Expr] = (sp.S.Zero, sp.S.Zero)
    frequency: sp.Expr = sp.S.Zero
    is_sine: bool = False
    erfs: tuple[tuple[sp.Expr, sp.Expr], ...] = ()
    kernels: tuple[tuple[OpenKernel, int, int], ...] = ()

    def numbers(self) -> Iterator[sp.Expr]:
        """Yield the constants that have to be in the field."""
        yield from (self.coefficient, *self.exponent, self.frequency)
        for a, b in self.erfs:
            yield from (a, b, density(b))
        for kernel, _, _ in self.kernels:
            yield from (scale for scale, _ in derivatives(kernel))


@functools.lru_cache(maxsize=256)
def univariate_symbol(g: sp.Expr) -> tuple[Piece, ...]:
    r"""Return :math:`S(t) = \mathbb{E}\, g(z + t)` as a sum of pieces.

    `g`: function of :data:`.ridge_terms.T`.

    Examples
    --------
    >>> for piece in univariate_symbol(sp.Abs(T)):
    ...     print(piece.coefficient, piece.power, piece.exponent, piece.erfs)
    1 1 (0, 0) ((sqrt(2)/2, 0),)
    sqrt(2)/sqrt(pi) 0 (0, -1/2) ()
    """
    expr = g.replace(sigmoid, lambda u: HALF + sp.tanh(u / 2) / 2)
    terms = multiplied_out(expr)
    if terms is None:
        raise UnsupportedExpressionError(
            f"{shorten(str(g))} has more than {LONGEST_SUM} terms when multiplied out; shorten it"
        )
    result: list[Piece] = []
    for kernel, coefficients in group_by_kernel(terms, T).items():
        inside = kernel * sp.Add(*(c * T**n for n, c in coefficients.items()))
        closed = _closed(inside)
        if closed is not None:
            result += closed
            continue
        for weight, power, open_kernel, order, sign in _open_terms(kernel):
            result += _under_powers(weight, power, open_kernel, order, sign, coefficients)
    return tuple(_merged(result))


def _under_powers(
    weight: sp.Expr,
    power: int,
    kernel: OpenKernel | None,
    order: int,
    sign: int,
    coefficients: dict[int, sp.Expr],
) -> Iterator[Piece]:
    """Yield Σ c_n (t + ∂)^{n + power} of weight times a derivative of an open symbol, or of 1."""
    for n, c in coefficients.items():
        for (k, m), count in binomial_operator(n + power).items():
            if kernel is not None:
                # A derivative of S(-t) changes sign.
                kernels = ((kernel, order + m, sign),)
                yield Piece(c * weight * count * sign**m, k, kernels=kernels)
            elif m == 0:
                yield Piece(c * weight * count, k)


def _closed(inside: sp.Expr) -> list[Piece] | None:
    """Return the symbol of a function by rules, or None."""
    result = GaussianExpectation(inside.xreplace({T: _z + _XI}), _z).doit()
    if result.has(Average, sp.Piecewise):
        return None
    result = as_steps_and_exponentials(result).replace(_is_shifted_sine, _without_shift)
    terms = sp.Add.make_args(result.expand(**PRODUCTS_ONLY))
    pieces = [_classified(term) for term in terms]
    return None if None in pieces else [piece for piece in pieces if piece is not None]


def _is_shifted_sine(node: sp.Basic) -> bool:
    return isinstance(node, sp.sin | sp.cos) and bool(node.has(_XI))


def _without_shift(node: sp.Expr) -> sp.Expr:
    """Write sin(at + b) by sin(at) and cos(at)."""
    b, u = sp.expand(node.args[0]).as_independent(_XI, as_Add=True)
    if isinstance(node, sp.sin):
        return sp.sin(u) * sp.cos(b) + sp.cos(u) * sp.sin(b)
    return sp.cos(u) * sp.cos(b) - sp.sin(u) * sp.sin(b)


def _classified(term: sp.Expr) -> Piece | None:
    """Read one term of a closed form; None if it holds another function."""
    constant, rest = term.as_independent(_XI, as_Add=False)
    power, linear, quadratic = 0, sp.S.Zero, sp.S.Zero
    erfs: list[tuple[sp.Expr, sp.Expr]] = []
    frequency, is_sine = sp.S.Zero, False
    for factor in sp.Mul.make_args(rest):
        if factor == 1:
            continue
        base, exponent = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            affine = affine_or_quadratic(factor.exp, _XI)
            if affine is None:
                return None
            constant *= sp.exp(affine[0])
            linear, quadratic = linear + affine[1], quadratic + affine[2]
            continue
        if not exponent.is_Integer or exponent < 0:
            return None
        if base == _XI:
            power += int(exponent)
            continue
        affine = affine_or_quadratic(base.args[0], _XI) if base.args else None
        if affine is None or affine[2] != 0:
            return None
        if isinstance(base, sp.erf):
            erfs += [(affine[1], affine[0])] * int(exponent)
        elif isinstance(base, sp.sin | sp.cos) and exponent == 1 and affine[0] == 0:
            if frequency != 0:
                return None
            frequency, is_sine = affine[1], isinstance(base, sp.sin)
        else:
            return None
    return Piece(constant, power, (linear, quadratic), frequency, is_sine, tuple(erfs))


def _open_terms(
    kernel: sp.Expr,
) -> Iterator[tuple[sp.Expr, int, OpenKernel | None, int, int]]:
    """Yield (weight, power, κ, order, sign): the kernel is Σ weight t^power ∂^order κ(±t)."""
    base, exponent = kernel.as_base_exp()
    affine = affine_or_quadratic(base.args[0], T) if len(base.args) == 1 else None
    if affine is not None and affine[2] == 0 and affine[1].is_extended_real:
        b, a, _ = affine
        if isinstance(base, sp.tanh) and exponent.is_Integer and exponent > 0:
            for order, weight in _power_of_tanh(int(exponent), a).items():
                if order < 0:
                    yield weight, 0, None, 0, 1
                else:
                    sign, side, result = tanh_kernel(a, b)
                    yield weight * sign * side**order, 0, result, order, side
            return
        if isinstance(base, softplus) and exponent == 1:
            yield a / 2, 1, None, 0, 1
            yield b / 2, 0, None, 0, 1
            side, result = softplus_kernel(a, b)
            yield sp.S.One, 0, result, 0, side
            return
    yield sp.S.One, 0, _generic_kernel(kernel), 0, 1


def _power_of_tanh(n: int, a: sp.Expr) -> dict[int, sp.Expr]:
    """Return {m: c} with tanh(at + b)^n = Σ c ∂^m tanh(at + b), c of 1 at m = -1.

    From (tanh^{n-1})' = (n - 1) a (tanh^{n-2} - tanh^n).
    """
    if n == 0:
        return {-1: sp.S.One}
    if n == 1:
        return {0: sp.S.One}
    result = dict(_power_of_tanh(n - 2, a))
    for m, c in _power_of_tanh(n - 1, a).items():
        if m >= 0:
            result[m + 1] = result.get(m + 1, sp.S.Zero) - c / ((n - 1) * a)
    return result


def tanh_kernel(a: sp.Expr, b: sp.Expr) -> tuple[int, int, OpenKernel]:
    """Return (sign, side, κ) with tanh(at + b) = sign κ(side t), κ = tanh(|a| t + |b|)."""
    sign = side = 1
    if _is_below_zero(a):
        a, b, sign = -a, -b, -1
    if _is_below_zero(b):
        # tanh(at - |b|) = -tanh(a(-t) + |b|).
        b, sign, side = -b, -sign, -1
    return sign, side, _kernel(sp.tanh(a * T + b), -1 if b == 0 else 0)


def softplus_kernel(a: sp.Expr, b: sp.Expr) -> tuple[int, OpenKernel]:
    """Return (side, κ) with softplus(at + b) - (at + b)/2 = κ(side t), even for b = 0."""
    side = 1
    if _is_below_zero(a):
        a, b = -a, -b
    if _is_below_zero(b):
        b, side = -b, -1
    form = a * T + b
    _, _, tanh = tanh_kernel(a / 2, b / 2)
    kernel = _kernel(softplus(form) - form / 2, 1 if b == 0 else 0)
    return side, OpenKernel(kernel.name, kernel.parity, kernel.moment, (a / 2, tanh))


def _radial_kernel(radial: RadialFunction) -> OpenKernel:
    r"""Return the symbol of a function of a length as a function of :math:`|\xi|^2`."""

    def moment(n: int) -> sp.Expr:
        return sp.factorial(n) * radial.coefficient(n)

    return OpenKernel(sp.Tuple(radial.expr, len(radial.axes)), 0, moment)


def _generic_kernel(kernel: sp.Expr) -> OpenKernel:
    try:
        parity = _PARITY[analyse(kernel.xreplace({T: _z}), _z).parity]
    except GiantstepError:
        parity = 0
    return _kernel(kernel, parity)


def _kernel(expr: sp.Expr, parity: int) -> OpenKernel:
    return OpenKernel(expr, parity, functools.partial(_moment, expr, parity))


@functools.lru_cache(maxsize=4096)
def _moment(expr: sp.Expr, parity: int, n: int) -> sp.Expr:
    if parity and parity != (-1) ** n:
        return sp.S.Zero
    return hermite_coefficient(expr.xreplace({T: _z}), n, variable=_z)


def _is_below_zero(number: sp.Expr) -> bool:
    known = number.is_negative
    return bool(number.could_extract_minus_sign()) if known is None else bool(known)


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with equal functions added up."""
    groups: dict[tuple[Any, ...], sp.Expr] = {}
    for p in pieces:
        key = (p.power, p.exponent, p.frequency, p.is_sine, p.erfs, p.kernels)
        groups[key] = groups.get(key, sp.S.Zero) + p.coefficient
    for key, coefficient in groups.items():
        if coefficient != 0:
            yield Piece(coefficient, *key)


def density(b: sp.Expr) -> sp.Expr:
    """Return erf'(b)."""
    return 2 * sp.exp(-(b**2)) / sp.sqrt(sp.pi)


def derivatives(kernel: OpenKernel) -> Iterator[tuple[sp.Expr, OpenKernel]]:
    """Yield (c, λ) with κ' = c λ, then the same for λ, as long as they are known."""
    while kernel.derivative is not None:
        yield kernel.derivative
        kernel = kernel.derivative[1]


def closed_symbol(expr: sp.Expr, variables: tuple[sp.Symbol, ...]) -> SymbolForm:
    r"""Return the symbol of a function, in the ring of its variables over one field.

    `expr`: what :func:`.ridge_terms.ridge_terms` can write as a sum of products of ridge functions.
    `variables`: the coordinates. Raises UnsupportedExpressionError if it cannot.

    Examples
    --------
    >>> x = sp.symbols("x1:3", real=True)
    >>> F = closed_symbol(sp.sin(x[0]) * sp.cos(x[1]), x)
    >>> F.setting.ring.domain, sorted(mode.is_sine for mode in F.terms)
    (QQ(exp(1/2)), [True, True])
    """
    terms = ridge_terms(expr, variables, radial=True)
    pieces = [piece for term in terms for r in term.ridges for piece in univariate_symbol(r.expr)]
    numbers = [number for piece in pieces for number in piece.numbers()]
    numbers += [term.coefficient for term in terms]
    numbers += [entry for term in terms for ridge in term.ridges for entry in ridge.direction]
    domain, elements = formal_field(numbers)
    known = dict(zip(numbers, elements, strict=True))
    ring = PolyRing(variables, domain, lex)
    setting = Setting(ring, _densities(pieces, known, domain), _scales(pieces, known))
    total = SymbolForm(setting, {})
    for term in terms:
        total = total + _of_term(term, setting, known)
    return total


def _densities(
    pieces: Iterable[Piece], known: dict[sp.Expr, Element], domain: Any
) -> dict[Element, Element]:
    result = {}
    for piece in pieces:
        for _, b in piece.erfs:
            # Signs move out of erf, which turns b round.
            result[known[b]] = result[-known[b]] = known[density(b)]
    return result


def _scales(pieces: Iterable[Piece], known: dict[sp.Expr, Element]) -> dict[OpenKernel, Element]:
    result = {}
    for piece in pieces:
        for kernel, _, _ in piece.kernels:
            for scale, following in derivatives(kernel):
                result[kernel] = known[scale]
                kernel = following
    return result


def _of_term(term: RidgeTerm, setting: Setting, known: dict[sp.Expr, Element]) -> SymbolForm:
    ring = setting.ring
    form = SymbolForm.polynomial(setting, ring.ground_new(known[term.coefficient]))
    for ridge in term.ridges:
        line = ring.zero
        for u, x in zip(ridge.direction, ring.gens, strict=True):
            line = line + x * known[u]
        univariate = SymbolForm(setting, {})
        for piece in univariate_symbol(ridge.expr):
            univariate = univariate + _of_piece(piece, line, setting, known)
        form = form * univariate
    for radial in term.radials:
        square = sum((ring.gens[i] ** 2 for i in radial.axes), ring.zero)
        form = form * SymbolForm.product(
            setting, exponent=ring.zero, frequency=ring.zero, is_sine=False,
            factors=[Open(_radial_kernel(radial), 0, square)], coefficient=ring.one,
        )  # fmt: skip
    for i, exponent in enumerate(term.powers):
        for _ in range(exponent):
            form = form.scaled(ring.gens[i]) + form.diff(i)
    return form


def _of_piece(
    piece: Piece, line: PolyElement, setting: Setting, known: dict[sp.Expr, Element]
) -> SymbolForm:
    linear, quadratic = (known[c] for c in piece.exponent)
    factors: list[Factor] = [Erf(line * known[a] + known[b]) for a, b in piece.erfs]
    factors += [Open(kernel, order, line * side) for kernel, order, side in piece.kernels]
    return SymbolForm.product(
        setting,
        exponent=line**2 * quadratic + line * linear,
        frequency=line * known[piece.frequency],
        is_sine=piece.is_sine,
        factors=factors,
        coefficient=line**piece.power * known[piece.coefficient],
    )
