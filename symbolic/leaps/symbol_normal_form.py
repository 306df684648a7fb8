r"""Symbols in closed form, as combinations of few kinds of functions with polynomial coefficients.

.. math:: F(\xi) = \sum_m P_m(\xi)\, e^{q_m(\xi)} \cos\text{ or }\sin(\langle k_m, \xi\rangle)
          \prod_i \operatorname{erf}(a_i(\xi))^{n_i} \prod_j S_j^{(k_j)}(l_j(\xi))^{n_j}

with polynomials P, quadratic forms q without constant, affine forms a, linear forms l and k, and
open symbols S(t) = E κ(z + t) of functions κ without closed form, known only by their derivatives,
their parity and their values at 0. Sums, products, derivatives and linear substitutions stay in
this class, so that one element of it serves for F, its tensors, its parts of one parity and its
restrictions to subspaces. Products of sines become sums, signs are moved out of odd functions: what
cancels by these rules cancels here. Coefficients are elements of one field
(:mod:`.formal_fields`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import sympy as sp
from sympy.polys.rings import PolyElement, PolyRing

from ..subspaces import Element


@dataclass(frozen=True)
class OpenKernel:
    """A function κ of one Gaussian variable for whose symbol S no rule gives a closed form.

    Attributes
    ----------
    name : Expr
        κ as an expression; equal kernels have equal ones.
    parity : int
        1 if κ is even, -1 if odd, 0 if neither is known.
    moment : callable
        S^{(n)}(0) = μ_n(κ) by n, an exact number.
    derivative : (Expr, OpenKernel) or None
        c and λ with κ' = c λ, if that is known.
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
    """The derivative of some order of an open symbol, at a linear form."""

    kernel: OpenKernel
    order: int
    form: PolyElement


Factor = Erf | Open


class Mode(NamedTuple):
    """A product of functions, to be multiplied by a polynomial.

    Attributes
    ----------
    exponent : PolyElement
        q, without constant term.
    frequency : PolyElement
        k, a linear form; zero for no sine.
    is_sine : bool
    factors : frozenset of (Factor, int)
        Functions and their powers.
    """

    exponent: PolyElement
    frequency: PolyElement
    is_sine: bool
    factors: frozenset[tuple[Factor, int]]


class Setting:
    """The ring of the coefficients, and the constants that derivatives bring in.

    Parameters
    ----------
    ring : PolyRing
        ξ_1 … ξ_r over the field.
    densities : dict
        The element of :math:`2 e^{-b^2}/\\sqrt\\pi` for the constant term b of each erf.
    scales : dict
        The element of c for each kernel with κ' = c λ.
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

        Parameters
        ----------
        setting : Setting
            That of the result.
        embed : callable
            Takes elements of this field to the other one.
        images : sequence of PolyElement
            One for each ξ_i.
        """
        cache: dict[tuple[int, int], PolyElement] = {}

        def image(p: PolyElement) -> PolyElement:
            return _composed(p, setting.ring, embed, images, cache)

        terms: dict[Mode, PolyElement] = {}
        for mode, p in self.terms.items():
            found = SymbolForm.product(
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
            for key, value in found.terms.items():
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


def _composed(
    p: PolyElement,
    ring: PolyRing,
    embed: Callable[[Element], Element],
    images: Sequence[PolyElement],
    cache: dict[tuple[int, int], PolyElement],
) -> PolyElement:
    total = ring.zero
    for monomial, c in p.items():
        term = ring.ground_new(embed(c))
        for i, n in enumerate(monomial):
            if n:
                key = (i, n)
                if key not in cache:
                    cache[key] = images[i] ** n
                term = term * cache[key]
        total = total + term
    return total


def binomial_operator(power: int) -> dict[tuple[int, int], int]:
    r"""Return {(k, m): c} with :math:`(t + \partial)^n = \sum c\, t^k \partial^m`.

    Examples
    --------
    >>> binomial_operator(2)
    {(2, 0): 1, (0, 0): 1, (1, 1): 2, (0, 2): 1}
    """
    found = {(0, 0): 1}
    for _ in range(power):
        raised: dict[tuple[int, int], int] = {}
        for (k, m), c in found.items():
            steps = [((k + 1, m), c), ((k, m + 1), c)]
            if k:
                steps.append(((k - 1, m), c * k))
            for key, weight in steps:
                raised[key] = raised.get(key, 0) + weight
        found = raised
    return dict(sorted(found.items(), key=lambda item: (item[0][1], -item[0][0])))
