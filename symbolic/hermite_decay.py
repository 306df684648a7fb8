r"""How fast Hermite coefficients fall with their order.

The orthonormal coefficients :math:`|\mu_k|/\sqrt{k!}` of a function fall the faster the smoother it
is. Three asymptotic laws give all that is stated here (k → ∞, along the orders that do not vanish):

- :math:`|\mathrm{He}_k(x)|/\sqrt{k!} \simeq (2/\pi k)^{1/4} e^{x^2/4}` times an oscillation with
  amplitude one (Szegő, *Orthogonal Polynomials*, theorem 8.22.9, in this normalisation). With the
  closed forms of :mod:`.hermite_sequences` it covers kinks and jumps, where the result is
  :math:`k^{-3/4 - m/2}` for a jump in the m-th derivative, erf, and Gaussians.
- :math:`A^k/\sqrt{k!}` for exponentials and sines.
- For a function with nearest poles :math:`x_0 \pm iy` of residue ρ,

  .. math:: \frac{|\mu_k|}{\sqrt{k!}} \simeq \Big(\frac{2}{\pi(k + 1/2)}\Big)^{1/4} \sqrt{2\pi}\,
      |\rho|\, e^{(y^2 - x_0^2)/4}\, e^{-y\sqrt{k + 1/2}},

  by the same law for the functions of the second kind, whose ratio to He_k is that exponential.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

import sympy as sp

from ..pages import Typeset
from .functions import sigmoid, softplus
from .gaussian_kernels import affine_or_quadratic
from .hermite_closed_forms import order_symbol
from .hermite_rules import Decomposition
from .hermite_sequences import Base, Terms

_K = sp.Dummy("k", integer=True, positive=True)
_QUARTER = sp.Rational(1, 4)


class DecayKind(enum.Enum):
    """How the orthonormal coefficients fall, from the fastest to the slowest."""

    FINITE = "finitely many coefficients"
    SUPER_EXPONENTIAL = "faster than every geometric sequence"
    GEOMETRIC = "geometric"
    ROOT_EXPONENTIAL = "exponential in the square root of k"
    ALGEBRAIC = "a power of k"


_SLOWEST_LAST = list(DecayKind)


@dataclass(frozen=True)
class Decay(Typeset):
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
    >>> from giantstep.symbolic.hermite import hermite_coefficients
    >>> hermite_coefficients("relu", 2).decay
    Decay(ALGEBRAIC: 2**(3/4)/(2*pi**(3/4)*k**(5/4)))
    >>> hermite_coefficients("tanh", 2).decay.kind.value
    'exponential in the square root of k'
    """

    kind: DecayKind
    envelope: sp.Expr
    sharp: bool
    k: sp.Symbol

    def __repr__(self) -> str:
        return f"Decay({self.kind.name}: {self.envelope})"

    def __str__(self) -> str:
        relation = "~" if self.sharp else "<~"
        return f"|mu_k|/sqrt(k!) {relation} {self.envelope} ({self.kind.value})"

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
    return Decay(slowest[0].kind, envelope.xreplace({_K: k}), len(slowest) == 1, k)


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
        envelope = amplitude * size ** (_K - j) * _K**degree / sp.sqrt(sp.factorial(_K))
        return _Law(DecayKind.SUPER_EXPONENTIAL, (size, power), envelope)
    ratio = abs(base.scale)
    point_squared = base.argument**2 / base.variance
    law = amplitude * (2 / sp.pi) ** _QUARTER * sp.exp(point_squared / 4)
    law *= ratio ** (_K - j) * _K ** (power - _QUARTER)
    if base.variance.is_positive:
        kind = DecayKind.ALGEBRAIC if base.variance == 1 else DecayKind.GEOMETRIC
        return _Law(kind, (ratio, sp.S.Zero, power), law)
    if not base.variance.is_negative:
        return None
    # He_k(iy) grows like cosh(y sqrt(k)) instead of oscillating.
    height = abs(base.argument) / ratio
    if height != 0:
        law *= sp.exp(height * sp.sqrt(_K)) / 2
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
    shifted = _K + sp.Rational(1, 2)
    factor: sp.Expr = 1 / abs(a)
    if isinstance(kernel, softplus):
        # Its derivative is a*sigmoid, and that has the order k - 1.
        shifted, factor = _K - sp.Rational(1, 2), 1 / sp.sqrt(_K)
    size = (2 / (sp.pi * shifted)) ** _QUARTER * sp.sqrt(2 * sp.pi) * factor * weight
    envelope = size * sp.exp((y**2 - x0**2) / 4) * sp.exp(-y * sp.sqrt(shifted))
    power = sp.Rational(-1, 2) if isinstance(kernel, softplus) else sp.S.Zero
    return _Law(DecayKind.ROOT_EXPONENTIAL, (-y, power), envelope)
