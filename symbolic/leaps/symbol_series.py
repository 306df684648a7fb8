r"""Taylor polynomials of symbols at 0, and the constants that they need.

:math:`F(\xi) = \sum_\alpha (\mu_\alpha/\alpha!)\,\xi^\alpha`, so that these are the Hermite
coefficients of f, here along a subspace: exact elements of a field that holds the values at 0 of
all error functions and open symbols in F.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sympy as sp
from sympy.polys.rings import PolyElement, PolyRing

from ..subspaces import Element
from .symbol_normal_form import Erf, Factor, Mode, Open, OpenKernel, Setting, SymbolForm

Place = tuple[OpenKernel, int] | Element
"""What has a value: a derivative of an open symbol at 0, or the constant b of erf(b)."""


def places(forms: Iterable[SymbolForm], degree: int) -> dict[Place, sp.Expr]:
    """Return the constants in Taylor polynomials up to a degree, as exact numbers.

    Parameters
    ----------
    forms : iterable of SymbolForm
    degree : int
        0 for the values of functions of nothing, which restriction to a subspace leaves.
    """
    found: dict[Place, sp.Expr] = {}
    for form in forms:
        to_sympy = form.setting.ring.domain.to_sympy
        for factor in {factor for mode in form.terms for factor, _ in mode.factors}:
            if isinstance(factor, Erf):
                b = factor.form.coeff(1)
                if b and b not in found:
                    found[b] = sp.erf(to_sympy(b))
                continue
            highest = factor.order + (degree if factor.form else 0)
            for n in range(factor.order, highest + 1):
                if (factor.kernel, n) not in found:
                    found[factor.kernel, n] = factor.kernel.moment(n)
    return found


class Expander:
    """Taylor polynomials over a field that holds all constants.

    Parameters
    ----------
    setting : Setting
        That of the forms to be expanded.
    ring : PolyRing
        Ring of the results: the same variables over the larger field.
    embed : callable
        Takes elements of the smaller field to the larger one.
    values : dict
        Elements by place.
    degree : int
        Up to which terms are kept.
    """

    def __init__(
        self,
        setting: Setting,
        ring: PolyRing,
        embed: Callable[[Element], Element],
        values: Mapping[Place, Element],
        degree: int,
    ) -> None:
        self.setting, self.ring, self.embed = setting, ring, embed
        self.values, self.degree = values, degree
        self._series: dict[Any, PolyElement] = {}

    def polynomial(self, form: SymbolForm) -> PolyElement:
        """Return the Taylor polynomial."""
        total = self.ring.zero
        for mode, p in form.terms.items():
            total = total + self.product(self.lifted(p), self.of_mode(mode))
        return total

    def split(self, mode: Mode) -> tuple[Mode, Element]:
        """Return a mode without its factors that are constant, and the value of these."""
        value = self.ring.domain.one
        left = []
        for factor, n in mode.factors:
            if any(sum(monomial) for monomial in factor.form):
                left.append((factor, n))
            else:
                value = value * self.value(factor) ** n
        return mode._replace(factors=frozenset(left)), value

    def value(self, factor: Factor, raised: int = 0) -> Element:
        """Return the value of a factor, or of a derivative of an open one, where its form is b."""
        if isinstance(factor, Open):
            return self.values[factor.kernel, factor.order + raised]
        b = factor.form.coeff(1)
        return self.values[b] if b else self.ring.domain.zero

    def of_mode(self, mode: Mode) -> PolyElement:
        """Return the Taylor polynomial of a mode."""
        if mode not in self._series:
            series = self.ring.one
            if mode.exponent:
                series = self.exponential(self.lifted(mode.exponent))
            if mode.frequency:
                sine = self.sine(self.lifted(mode.frequency), mode.is_sine)
                series = self.product(series, sine)
            for factor, n in mode.factors:
                power = self.of_factor(factor)
                for _ in range(n):
                    series = self.product(series, power)
            self._series[mode] = series
        return self._series[mode]

    def of_factor(self, factor: Factor) -> PolyElement:
        """Return the Taylor polynomial of an error function or an open symbol."""
        if factor not in self._series:
            b = factor.form.coeff(1)
            line = self.lifted(factor.form - b)
            coefficients: Iterable[Element]
            if isinstance(factor, Open):
                coefficients = (self.value(factor, k) for k in range(self.degree + 1))
            else:
                coefficients = self._of_erf(factor, self.embed(b))
            self._series[factor] = self.along(line, coefficients)
        return self._series[factor]

    def _of_erf(self, factor: Erf, b: Element) -> Iterator[Element]:
        """Yield the derivatives of erf at b: -density (-1)^n H_{n-1}(b), H the physicists'."""
        yield self.value(factor)
        density = self.embed(self.setting.densities[factor.form.coeff(1)])
        before, polynomial = self.ring.domain.zero, self.ring.domain.one
        sign = 1
        for n in range(self.degree):
            yield density * polynomial * sign
            before, polynomial = polynomial, b * polynomial * 2 - before * (2 * n)
            sign = -sign

    def along(self, line: PolyElement, derivatives: Iterable[Element]) -> PolyElement:
        """Return Σ c_n line^n/n!."""
        total, power = self.ring.zero, self.ring.one
        for n, c in enumerate(derivatives):
            if c:
                total = total + power * c
            if not line:
                break
            power = power * line * self._inverse(n + 1)
        return total

    def exponential(self, exponent: PolyElement) -> PolyElement:
        """Return e to a polynomial without constant term."""
        total = term = self.ring.one
        n = 0
        while term:
            n += 1
            term = self.product(term, exponent) * self._inverse(n)
            total = total + term
        return total

    def sine(self, frequency: PolyElement, is_sine: bool) -> PolyElement:
        """Return the sine or cosine of a linear form."""
        one = self.ring.domain.one
        start = 1 if is_sine else 0
        signs = ((n - start) % 4 for n in range(self.degree + 1))
        return self.along(frequency, ({0: one, 2: -one}.get(n, one * 0) for n in signs))

    def product(self, first: PolyElement, second: PolyElement) -> PolyElement:
        """Return the product without the terms beyond the degree."""
        if len(first) > len(second):
            first, second = second, first
        by_degree: dict[int, list[Any]] = {}
        for monomial, c in second.items():
            by_degree.setdefault(sum(monomial), []).append((monomial, c))
        terms: dict[tuple[int, ...], Element] = {}
        for monomial, c in first.items():
            room = self.degree - sum(monomial)
            for degree, others in by_degree.items():
                if degree <= room:
                    for other, d in others:
                        key = tuple(map(int.__add__, monomial, other))
                        terms[key] = terms[key] + c * d if key in terms else c * d
        return self.ring.from_dict({key: c for key, c in terms.items() if c})

    def lifted(self, p: PolyElement) -> PolyElement:
        """Return a polynomial over the larger field, without the terms beyond the degree."""
        kept = {m: self.embed(c) for m, c in p.items() if sum(m) <= self.degree}
        return self.ring.from_dict(kept)

    def _inverse(self, n: int) -> Element:
        return self.ring.domain.convert_from(sp.QQ(1, n), sp.QQ)
