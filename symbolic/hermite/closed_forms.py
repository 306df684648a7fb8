r"""Hermite moments as expressions in a symbolic order k, and how fast they fall with it.

A :class:`.hermite.rules.Sequence` is written as one SymPy expression in k, or as two, for k = 2m
and k = 2m + 1, where every second moment of a part vanishes; (-1)!! = 1 and (-3)!! = -1. Three laws
give the decay of :math:`|\mu_k|/\sqrt{k!}` along the orders that do not vanish:

- :math:`|\mathrm{He}_k(x)|/\sqrt{k!} \simeq (2/\pi k)^{1/4} e^{x^2/4}` times an oscillation with
  amplitude one (Szegő, *Orthogonal Polynomials*, theorem 8.22.9, in this normalisation), which
  covers erf, Gaussians, kinks and jumps: :math:`k^{-3/4 - m/2}` for a jump in the m-th derivative;
- :math:`A^k/\sqrt{k!}` for exponentials and sines;
- for nearest poles :math:`x_0 \pm iy` of residue ρ,

  .. math:: \frac{|\mu_k|}{\sqrt{k!}} \simeq \Big(\frac{2}{\pi(k + 1/2)}\Big)^{1/4} \sqrt{2\pi}\,
      |\rho|\, e^{(y^2 - x_0^2)/4}\, e^{-y\sqrt{k + 1/2}},

  by the same law for the functions of the second kind, whose ratio to He_k is that exponential.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from ...pages import Block
from ...result import Result
from ..expressions.arguments import as_expression
from ..expressions.factors import factored
from ..expressions.functions import sigmoid, softplus
from ..expressions.regularity import Parity
from ..gaussian.hermite_polynomials import checked_order, hermite_prob
from ..gaussian.integrand_kernels import affine_or_quadratic
from .rules import (
    Base,
    Decomposition,
    Polynomial,
    Sequence,
    Terms,
    divided_by_linear,
    normal,
    polynomial_value,
)

# Inside, so that a parameter called k stays another symbol.
_K = sp.Dummy("k", integer=True, nonnegative=True)
_M = sp.Dummy("m", integer=True, nonnegative=True)


@dataclass(frozen=True)
class ClosedForm(Result):
    r"""The Hermite moments :math:`\mu_k` of a function as an expression in k.

    Attributes
    ----------
    general : Expr or None
        :math:`\mu_k` in the symbol `k`; None where even and odd orders have forms of their own.
    even_orders, odd_orders : Expr
        :math:`\mu_{2m}` and :math:`\mu_{2m+1}` in the symbol `m`.
    exceptions : dict of int to Expr
        The orders at which the forms above do not give the moment, with its value.
    parity : Parity
        That of the function, as far as it can be proved: ODD if all moments of even order vanish.
    k, m : Symbol
        The symbols, integers >= 0; other letters if the function has parameters of these names.

    Examples
    --------
    >>> from giantstep.symbolic.hermite.coefficients import hermite_coefficients
    >>> form = hermite_coefficients("erf(z)", 3).closed_form
    >>> form.odd_orders
    2*(-2/3)**m*sqrt(3)*factorial2(2*m - 1)/(3*sqrt(pi))
    >>> form.at(5), form.parity.name, form.exceptions
    (8*sqrt(3)/(9*sqrt(pi)), 'ODD', {})
    """

    _document = "closed form"

    general: sp.Expr | None
    even_orders: sp.Expr
    odd_orders: sp.Expr
    exceptions: dict[int, sp.Expr]
    parity: Parity
    k: sp.Symbol
    m: sp.Symbol
    # Documents leave it out: it gives the same moments, with fewer roots and angles in them.
    _sequence: ClassVar[Sequence | None] = None

    @property
    def holds_from(self) -> int:
        """The smallest order from which on the forms hold without exception."""
        return max(self.exceptions, default=-1) + 1

    def even(self, m: sp.Expr | int | None = None) -> sp.Expr:
        """Return the form of the moment of order k = 2m, exceptions disregarded."""
        return self.even_orders.xreplace({self.m: self.m if m is None else as_expression(m, "m")})

    def odd(self, m: sp.Expr | int | None = None) -> sp.Expr:
        """Return the form of the moment of order k = 2m + 1, exceptions disregarded."""
        return self.odd_orders.xreplace({self.m: self.m if m is None else as_expression(m, "m")})

    @property
    def expr(self) -> sp.Expr:
        """All of it as one expression in `k`, a Piecewise if there are cases.

        Give `k` its value with ``subs``, which looks at the cases first; ``xreplace`` evaluates
        those that do not apply, too, where double factorials may not exist.
        """
        cases = [(value, sp.Eq(self.k, order)) for order, value in sorted(self.exceptions.items())]
        if self.general is not None:
            return sp.Piecewise(*cases, (self.general, True))
        even, odd = self.even(self.k / 2), self.odd((self.k - 1) / 2)
        return sp.Piecewise(*cases, (even, sp.Eq(sp.Mod(self.k, 2), 0)), (odd, True))

    def at(self, k: int) -> sp.Expr:
        """Return the exact moment of order k >= 0, any exception included."""
        order = checked_order(k)
        if self._sequence is not None:
            return self._sequence.value(order)
        if order in self.exceptions:
            return self.exceptions[order]
        half, rest = divmod(order, 2)
        return self.odd(half) if rest else self.even(half)

    def page(self) -> Iterable[Block]:
        """Return one equation for each case."""
        for order, value in sorted(self.exceptions.items()):
            yield f"mu_{order} = {value}"
        if self.general is not None:
            yield f"mu_{self.k} = {self.general}"
        else:
            yield f"mu_(2{self.m}) = {self.even_orders}"
            yield f"mu_(2{self.m}+1) = {self.odd_orders}"

    def latex(self) -> str:
        """Return LaTeX: one equation for each case, aligned."""
        rows = [(str(order), value) for order, value in sorted(self.exceptions.items())]
        if self.general is not None:
            rows.append((str(self.k), self.general))
        else:
            rows += [(f"2{self.m}", self.even_orders), (f"2{self.m}+1", self.odd_orders)]
        body = r" \\ ".join(rf"\mu_{{{order}}} &= {sp.latex(value)}" for order, value in rows)
        return rf"\begin{{aligned}} {body} \end{{aligned}}"


def closed_form_of(
    sequence: Sequence, taken: Collection[str] = (), parity: Parity = Parity.NEITHER
) -> ClosedForm:
    """Write a sequence of moments in a symbolic order whose name is not among those taken.

    `parity` is what is known of the function otherwise; that of the sequence is seen here.
    """
    if parity is Parity.NEITHER:
        parity = sequence_parity(sequence)
    groups = sequence.groups.items()
    # Elsewhere the forms are the sequence, term by term.
    candidates = set(sequence.single).union(*(range(max(terms)) for _, terms in groups))
    if any(base.splits for (base, _), _ in groups):
        even = sp.Add(*(_group_form(key, terms, 0) for key, terms in groups))
        odd = sp.Add(*(_group_form(key, terms, 1) for key, terms in groups))
        general = None
    else:
        general = sp.Add(*(_group_form(key, terms, None) for key, terms in groups))
        even, odd = (general.xreplace({_K: 2 * _M + rest}) for rest in (0, 1))
    if parity is not Parity.NEITHER and general != 0:
        # As for sinh, whose two exponentials cancel at every second order.
        general = None
        even, odd = (sp.S.Zero, odd) if parity is Parity.ODD else (even, sp.S.Zero)
    exceptions = {}
    for order in sorted(candidates):
        value = sequence.value(order)
        half, rest = divmod(order, 2)
        form = (odd if rest else even).xreplace({_M: sp.Integer(half)})
        leaves = any(_leaves_the_range(base, terms, order) for (base, _), terms in groups)
        if leaves or (form != value and normal(form - value) != 0):
            exceptions[order] = value
    k, m = order_symbol("knjq", taken), order_symbol("mlip", taken)
    general, even, odd = (
        None if form is None else form.xreplace({_K: k, _M: m}) for form in (general, even, odd)
    )
    result = ClosedForm(general, even, odd, exceptions, parity, k, m)
    object.__setattr__(result, "_sequence", sequence)
    return result


def order_symbol(letters: str, taken: Collection[str]) -> sp.Symbol:
    """Return an integer symbol >= 0, named by the first of the letters that is not taken."""
    names = [name for name in (*letters, f"{letters[0]}_order") if name not in taken]
    return sp.Symbol(names[0], integer=True, nonnegative=True)


def _leaves_the_range(base: Base, terms: Terms, k: int) -> bool:
    """Whether the form at order k has a polynomial of negative order with a weight that is not 0.

    Double factorials continue to negative orders, and powers of a base that cannot be 0 do.
    """
    if base.frequency is None and base.argument == 0 and base.variance.is_nonzero:
        return False
    if base.variance == 0 and base.argument.is_nonzero:
        return False
    return any(
        k < j and any(polynomial_value(p, k) != 0 for p in weight) for j, weight in terms.items()
    )


def sequence_parity(sequence: Sequence) -> Parity:
    """Return EVEN or ODD if all moments of the other orders vanish by the closed forms."""
    odd_parts, even_parts = False, False
    for (base, _), terms in sequence.groups.items():
        if not base.splits:
            return Parity.NEITHER
        for j, (c, s) in terms.items():
            if base.frequency is None:
                odd_parts, even_parts = odd_parts or j % 2 == 1, even_parts or j % 2 == 0
            else:
                odd_parts, even_parts = odd_parts or bool(s), even_parts or bool(c)
    odd_parts = odd_parts or any(k % 2 for k in sequence.single)
    even_parts = even_parts or any(k % 2 == 0 for k in sequence.single)
    if odd_parts and even_parts:
        return Parity.NEITHER
    return Parity.ODD if odd_parts else Parity.EVEN


def _group_form(key: tuple[Base, sp.Expr], terms: Terms, rest: int | None) -> sp.Expr:
    """Return one group at k (rest None), at 2m (rest 0) or at 2m + 1 (rest 1)."""
    base, constant = key
    order = _K if rest is None else 2 * _M + rest
    total = []
    for j, (c, s) in sorted(terms.items()):
        cosine, sine = _wave(base, order - j if base.is_complex_power else order, rest)
        for polynomial, wave in ((c, cosine), (s, sine)):
            if polynomial and wave != 0:
                total.append(wave * _term(base, polynomial, j, order, rest))
    return constant * (total[0] if len(total) == 1 else sp.factor_terms(sp.Add(*total)))


def _wave(base: Base, order: sp.Expr, rest: int | None) -> tuple[sp.Expr, sp.Expr]:
    if base.frequency is None:
        return sp.S.One, sp.S.Zero
    if base.splits and rest is not None:
        # cos and sin of (2m + rest) pi/2
        sign = sp.S.NegativeOne**_M
        return (sp.S.Zero, sign) if rest else (sign, sp.S.Zero)
    angle = order * base.angle + base.phase
    return sp.cos(angle), sp.sin(angle)


def _term(base: Base, p: Polynomial, j: int, order: sp.Expr, rest: int | None) -> sp.Expr:
    """Return p(k) h_{k-j} at the given order."""
    if base.variance == 0:
        return _factored(p, order) * base.argument ** (order - j)
    if base.argument == 0 and rest is not None:
        return _paired_term(base.variance, p, j, rest)
    point = sp.expand_mul(base.argument / base.scale)
    sign = sp.S.One
    if point.could_extract_minus_sign():
        point, sign = -point, sp.S.NegativeOne ** (order + j % 2)
    if rest is None:
        powers = base.scale ** (order - j)
    else:
        halves, left = divmod(rest - j, 2)
        powers = _power_of_half_order(base.variance, halves) * base.scale**left
    value = sign * powers * hermite_prob(order - j, point)
    if not sp.denom(point).is_nonzero:
        # A variance of zero is admitted, as in exp(l*z - s*z**2) for s >= 0, and leaves powers.
        power = base.argument ** (order - j)
        value = sp.Piecewise((power, sp.Eq(base.variance, 0)), (value, True))
    return _factored(p, order) * value


def _paired_term(variance: sp.Expr, p: Polynomial, j: int, rest: int) -> sp.Expr:
    """Return p(k) h_{k-j} for A = 0: (-v)^n (2n - 1)!! at k - j = 2n, 0 at odd k - j."""
    if (rest - j) % 2:
        return sp.S.Zero
    back = (j - rest) // 2  # n = m - back
    value = sp.Poly(polynomial_value(p, 2 * _M + rest), _M)
    in_m = tuple(reversed(value.all_coeffs()))
    while variance.is_nonzero:
        quotient = divided_by_linear(in_m, sp.Rational(2 * back - 1, 2))
        if quotient is None:
            break
        # (2n + 1) (2n - 1)!! = (2n + 1)!!, with a power of -v more
        in_m, back = tuple(-c / (2 * variance) for c in quotient), back - 1
    sign = sp.S.NegativeOne ** (_M + back % 2)
    paired = sp.factorial2(2 * (_M - back) - 1)
    return _factored(in_m, _M) * sign * _power_of_half_order(variance, -back) * paired


def _power_of_half_order(v: sp.Expr, more: int) -> sp.Expr:
    """Return v**(m + more), apart if v cannot be 0: SymPy then joins the constants."""
    return v**_M * v**more if v.is_nonzero else v ** (_M + more)


def _factored(p: Polynomial, order: sp.Expr) -> sp.Expr:
    value = polynomial_value(p, order)
    return value if len(p) == 1 else factored(value)


_LARGE_K = sp.Dummy("k", integer=True, positive=True)
_QUARTER = sp.Rational(1, 4)


class DecayKind(enum.Enum):
    """How the orthonormal coefficients fall, from the fastest to the slowest."""

    FINITE = "finitely many coefficients"
    SUPER_EXPONENTIAL = "faster than every geometric sequence"
    GEOMETRIC = "geometric"
    ROOT_EXPONENTIAL = "exponential in the square root of k"
    ALGEBRAIC = "a power of k"


_SLOWEST_LAST = list(DecayKind)


@dataclass(frozen=True, repr=False)
class Decay(Result):
    r"""Asymptotic size of the orthonormal coefficients :math:`|\mu_k|/\sqrt{k!}`.

    Attributes
    ----------
    kind : DecayKind
        The law.
    envelope : Expr
        What :math:`|\mu_k|/\sqrt{k!}` approaches, as an expression in `k`: an upper envelope where
        the coefficients oscillate or every second one vanishes.
    sharp : bool
        Whether the constant is that of the envelope. False if several parts fall alike: the
        envelope is then the sum of theirs, and an upper bound.
    k : Symbol
        The order.

    Examples
    --------
    >>> from giantstep.symbolic.hermite.coefficients import hermite_coefficients
    >>> hermite_coefficients("relu", 2).decay
    Decay(ALGEBRAIC: 2**(3/4)/(2*pi**(3/4)*k**(5/4)))
    >>> hermite_coefficients("tanh", 2).decay.kind.value
    'exponential in the square root of k'
    """

    _document, _entry = "decay", "document"

    kind: DecayKind
    envelope: sp.Expr
    sharp: bool
    k: sp.Symbol

    def __repr__(self) -> str:
        return f"Decay({self.kind.name}: {self.envelope})"

    def page(self) -> Iterable[Block]:
        """Return the asymptotic relation."""
        relation = "~" if self.sharp else "<~"
        yield f"|mu_k|/sqrt(k!) {relation} {self.envelope} ({self.kind.value})"

    def latex(self) -> str:
        """Return LaTeX of the asymptotic relation."""
        relation = r"\simeq" if self.sharp else r"\lesssim"
        return rf"|\mu_k|/\sqrt{{k!}} {relation} {sp.latex(self.envelope)}"


@dataclass(frozen=True)
class _Law:
    """One contribution; `rates` compare lexicographically, larger is slower."""

    kind: DecayKind
    rates: tuple[sp.Expr, ...]
    envelope: sp.Expr


def decay_of(
    parts: Decomposition, variable: sp.Symbol, taken: Collection[str] = ()
) -> Decay | None:
    """Return the decay of the slowest part, or None where no law is known or comparable.

    `variable` is the Gaussian one; other symbols are parameters. The order is a symbol whose name
    is not among those taken.
    """
    laws: list[_Law] = []
    for kernel, coefficients in parts.open_terms.items():
        law = _of_poles(kernel, coefficients, variable)
        if law is None:
            return None
        laws.append(law)
    for (base, constant), terms in parts.sequence.groups.items():
        law = _of_group(base, constant, terms)
        if law is None:
            return None
        laws.append(law)
    k = order_symbol("knjq", taken)
    if not laws:
        return Decay(DecayKind.FINITE, sp.S.Zero, True, k)
    slowest = [laws[0]]
    for law in laws[1:]:
        order = _compare(law, slowest[0])
        if order is None:
            return None
        if order >= 0:
            slowest = [law] if order else [*slowest, law]
    envelope = sp.Add(*(law.envelope for law in slowest))
    return Decay(slowest[0].kind, envelope.xreplace({_LARGE_K: k}), len(slowest) == 1, k)


def _compare(first: _Law, second: _Law) -> int | None:
    """Return 1, 0 or -1 as the first falls slower than, like or faster than the second."""
    difference = _SLOWEST_LAST.index(first.kind) - _SLOWEST_LAST.index(second.kind)
    if difference:
        return 1 if difference > 0 else -1
    for mine, other in zip(first.rates, second.rates, strict=True):
        gap = mine - other
        if gap.is_positive:
            return 1
        if gap.is_negative:
            return -1
        if not gap.is_zero:
            return None
    return 0


def _of_group(base: Base, constant: sp.Expr, terms: Terms) -> _Law | None:
    """The law of C Σ_j p_j(k) h_{k-j}: that of the j with the largest power of k."""
    growth = {}
    for j, (c, s) in terms.items():
        degree = max(len(c), len(s)) - 1
        power = sp.Integer(degree) - (0 if base.variance == 0 else sp.Rational(j, 2))
        growth[power] = (j, degree)
    power = max(growth)
    j, degree = growth[power]
    leading = [p[degree] if len(p) > degree else sp.S.Zero for p in terms[j]]
    amplitude = abs(constant) * (
        abs(leading[0] + leading[1])
        if base.frequency is None or 0 in leading
        else sp.sqrt(leading[0] ** 2 + leading[1] ** 2)
    )
    if base.variance == 0:
        size = abs(base.argument)
        envelope = (
            amplitude * size ** (_LARGE_K - j) * _LARGE_K**degree / sp.sqrt(sp.factorial(_LARGE_K))
        )
        return _Law(DecayKind.SUPER_EXPONENTIAL, (size, power), envelope)
    ratio = abs(base.scale)
    point_squared = base.argument**2 / base.variance
    law = amplitude * (2 / sp.pi) ** _QUARTER * sp.exp(point_squared / 4)
    law *= ratio ** (_LARGE_K - j) * _LARGE_K ** (power - _QUARTER)
    if base.variance.is_positive:
        kind = DecayKind.ALGEBRAIC if base.variance == 1 else DecayKind.GEOMETRIC
        return _Law(kind, (ratio, sp.S.Zero, power), law)
    if not base.variance.is_negative:
        return None
    # He_k(iy) grows like cosh(y sqrt(k)) instead of oscillating.
    height = abs(base.argument) / ratio
    if height != 0:
        law *= sp.exp(height * sp.sqrt(_LARGE_K)) / 2
    return _Law(DecayKind.GEOMETRIC, (ratio, height, power), law)


def _of_poles(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], variable: sp.Symbol
) -> _Law | None:
    """The law of P(z) tanh(az+b), sigmoid(az+b) or softplus(az+b)."""
    height = {sp.tanh: sp.pi / 2, sigmoid: sp.pi, softplus: sp.pi}.get(type(kernel))
    if height is None:
        return None
    affine = affine_or_quadratic(kernel.args[0], variable)
    if affine is None or affine[2] != 0:
        return None
    b, a, _ = affine
    if not (a.is_nonzero and b.is_extended_real):
        return None
    y, x0 = height / abs(a), -b / a
    pole = x0 + sp.I * y
    weight = abs(sp.expand(sp.Add(*(c * pole**n for n, c in coefficients.items()))))
    shifted = _LARGE_K + sp.Rational(1, 2)
    factor: sp.Expr = 1 / abs(a)
    if isinstance(kernel, softplus):
        # Its derivative is a*sigmoid, and that has the order k - 1.
        shifted, factor = _LARGE_K - sp.Rational(1, 2), 1 / sp.sqrt(_LARGE_K)
    size = (2 / (sp.pi * shifted)) ** _QUARTER * sp.sqrt(2 * sp.pi) * factor * weight
    envelope = size * sp.exp((y**2 - x0**2) / 4) * sp.exp(-y * sp.sqrt(shifted))
    power = sp.Rational(-1, 2) if isinstance(kernel, softplus) else sp.S.Zero
    return _Law(DecayKind.ROOT_EXPONENTIAL, (-y, power), envelope)
