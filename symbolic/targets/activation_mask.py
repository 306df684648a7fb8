r"""Which Hermite degrees of a target a neuron with a given activation can use.

A neuron with overlap u in the learned subspace and residual norm ρ, :math:`\tau^2 = |u|^2+\rho^2`,
has the population gradient

.. math:: \mathbb{E}[f(x)\,\sigma'(\langle w, x\rangle)\,x_\perp]
    = \sum_k \frac{s_{k+1}(\tau)}{k!}\, C_{k+1}[u^k, \cdot],
    \qquad s_j(\tau) = \mathbb{E}\,\sigma^{(j)}(\tau z), \quad s_j(1) = \mu_j(\sigma),

with the Hermite tensors C_k of the target. Degree j of the target drops out

- in the first step, where τ = 1, if :math:`\mu_j(\sigma) = 0`;
- later, where τ takes a continuum of values, if s_j vanishes as a function of τ. By the heat
  equation :math:`s_j(\tau) = \sum_i \mu_{j+2i}(\sigma)(\tau^2-1)^i/(2^i i!)`, so that this is the
  case if :math:`\mu_{j+2i}(\sigma) = 0` for all i ≥ 0.

Hence what counts later is only up to which degree the even and the odd part of σ reach: a part that
is a polynomial of degree m lets degrees ≤ m of its parity pass, another part all of them. Random
biases b with a density mix the parities: :math:`\mathbb{E}\,\sigma^{(j)}(z+b)` vanishes for all b
only if σ is a polynomial of degree below j. (Derived here; probabilists' Hermite polynomials,
:math:`\mu_k = \mathbb{E}[\sigma \mathrm{He}_k]`.)
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import sympy as sp
from sympy.polys.rings import PolyElement

from ...errors import UndecidedError
from ..expressions._singularities import affine_slope, expanded
from ..expressions.activations import Activation, activation, z
from ..expressions.regularity import Parity, reflectable
from ..gaussian.integrand_kernels import group_by_kernel
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.coefficients import hermite_coefficient
from ..hermite.rules import decompose

# Coefficients that are looked at, upwards, for one that is not zero; each that stays undecided
# takes up to a second.
_LOOKED_AT, _MOST_UNDECIDED = 12, 3
_TRANSCENDENTAL = (
    sp.erf, sp.tanh, sp.sin, sp.cos, sp.atan, sp.asinh, sp.sinh, sp.cosh, sp.sech, sp.Abs, sp.sign,
)  # fmt: skip


@dataclass(frozen=True)
class DegreeMask:
    r"""The Hermite degrees of a target that reach the gradient of a neuron.

    Made by :func:`activation_mask`. The default lets all degrees pass, as generic activations do.

    `activation`: that of the neurons; None for one with all :math:`\mu_j \ne 0`. `biases`: whether
    the neurons have random biases with a density. `highest_even`, `highest_odd`: up to which degree
    the even and the odd degrees pass in later steps; None without end, -2 and -1 if none passes.

    Examples
    --------
    >>> mask = activation_mask("relu")
    >>> mask
    DegreeMask(relu: degree 1 and the even degrees)
    >>> [j for j in range(1, 9) if mask.admits(j, step=2)]
    [1, 2, 4, 6, 8]
    >>> mask.parity.name, mask.extra, mask.highest
    ('EVEN', frozenset({1}), None)
    """

    activation: Activation | None = None
    biases: bool = False
    highest_even: int | None = None
    highest_odd: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every degree passes in every step."""
        return self.activation is None and self.highest_even is None and self.highest_odd is None

    @property
    def is_limiting(self) -> bool:
        """Whether some degree does not pass in later steps."""
        return self.highest_even is not None or self.highest_odd is not None

    @property
    def is_finite(self) -> bool:
        """Whether only finitely many degrees pass, because the activation is a polynomial."""
        return self.highest_even is not None and self.highest_odd is not None

    @property
    def highest(self) -> int | None:
        """The highest degree that passes in later steps; None if there is none."""
        if self.highest_even is None or self.highest_odd is None:
            return None
        return max(self.highest_even, self.highest_odd)

    @property
    def parity(self) -> Parity | None:
        """The parity of which all degrees pass later, if it is one parity; else None."""
        if (self.highest_even is None) == (self.highest_odd is None):
            return None
        return Parity.EVEN if self.highest_even is None else Parity.ODD

    @property
    def extra(self) -> frozenset[int]:
        """The degrees ≥ 1 that pass later beside those of a parity that passes without end.

        Empty if all pass; all that pass if they are finitely many.
        """
        bounds = ((self.highest_even, 2), (self.highest_odd, 1))
        return frozenset(
            degree
            for bound, lowest in bounds
            if bound is not None
            for degree in range(lowest, bound + 1, 2)
        )

    def admits(self, degree: int, step: int) -> bool:
        r"""Tell whether a Hermite degree of the target reaches the gradient.

        `degree`: degree j ≥ 0; degree 0, a constant, never does anything and passes. `step`: 1 for
        the step from the initial weights of norm 1, larger for later ones. Raises UndecidedError if
        it cannot be decided whether a coefficient of the activation is zero.
        """
        bound = self.highest_odd if degree % 2 else self.highest_even
        if degree and bound is not None and degree > bound:
            return False
        if degree == 0 or self.activation is None:
            return True
        if step == 1 and not self.biases:
            return not _vanishes(self.activation.expr, degree)
        # Below the degree of a polynomial part nothing has to be looked up.
        return bound is not None or _reaches(self.activation, degree, self.biases)

    def restrict(self, symbol: PolyElement, step: int) -> PolyElement:
        r"""Return the part of a symbol F, with ξ^α for He_α, of the degrees that pass.

        `symbol`: the symbol of a polynomial target. `step`: as in :meth:`admits`.
        """
        if self.is_whole:
            return symbol
        passing = {n for n in set(map(sum, symbol)) if self.admits(n, step)}
        return symbol.ring.from_dict({m: c for m, c in symbol.items() if sum(m) in passing})

    def of_parity(self, parity: Parity) -> DegreeMask:
        """Return the mask that lets only the even or only the odd of its degrees pass.

        Examples
        --------
        >>> DegreeMask().of_parity(Parity.ODD)
        DegreeMask(any activation: the odd degrees)
        """
        if parity is Parity.ODD:
            return replace(self, highest_even=-2)
        return replace(self, highest_odd=-1)

    def keeps_ratios(self, parity: Parity) -> bool:
        r"""Tell whether the s_j(τ), j ≥ 2 of one parity, are only multiplied as τ changes.

        By the heat equation of the module, if :math:`\mu_{j+2}(\sigma) = c\,\mu_j(\sigma)` for all
        of them: the second derivative of the even part of σ, or the third of the odd part, is an
        eigenfunction of d²/dz², made of exp(±az), or of sin(az) and cos(az), or constant, and
        :math:`s_j(\tau) = \mu_j e^{c(\tau^2-1)/2}`.

        Examples
        --------
        >>> activation_mask("exp(2*z) + z").keeps_ratios(Parity.ODD)
        True
        >>> activation_mask("tanh").keeps_ratios(Parity.ODD)
        False
        """
        if self.activation is None or self.biases:
            return False
        return _has_one_exponent(self.activation.expr, int(parity is Parity.ODD))

    @property
    def description(self) -> str:
        """The degrees that pass in later steps, in words."""
        if self.is_finite:
            return _listed(self.extra) if self.extra else "no degree"
        if self.parity is None:
            return "all degrees"
        name = "even" if self.parity is Parity.EVEN else "odd"
        return (f"{_listed(self.extra)} and " if self.extra else "") + f"the {name} degrees"

    def __str__(self) -> str:
        name = "any activation" if self.activation is None else self.activation.name
        biases = " with random biases" if self.biases else ""
        return f"{name}{biases}: {self.description}"

    def __repr__(self) -> str:
        return f"DegreeMask({self})"


def activation_mask(student: str | sp.Expr | Activation | None, biases: bool = False) -> DegreeMask:
    r"""Return which Hermite degrees of a target a student can use.

    `student`: activation of the neurons, as in :func:`.activations.activation`; None for a generic
    one, which lets all degrees pass. `biases`: whether they have random biases, σ(⟨w, x⟩ + b), with
    a density. Raises GiantstepError if `student` is no activation.

    Examples
    --------
    >>> activation_mask("tanh")
    DegreeMask(tanh: the odd degrees)
    >>> activation_mask("tanh", biases=True)
    DegreeMask(tanh with random biases: all degrees)
    >>> activation_mask("He(3, z) + z**2")
    DegreeMask(He(3, z) + z**2: degrees 1, 2, 3)

    In the first step it is the coefficient of the degree itself that counts, and He_3 has none of
    degree 1; later it has, because :math:`\mathbb{E}\,\sigma'(\tau z) = 3(\tau^2 - 1)`.

    >>> [activation_mask("He3").admits(1, step) for step in (1, 2)]
    [False, True]
    """
    if student is None:
        return DegreeMask()
    result = activation(student, argument="student")
    even, odd = (_degree_bound(result, rest) for rest in (0, 1))
    if biases:
        highest = None if even is None or odd is None else max(even, odd)
        if highest is None:
            even = odd = None
        else:
            even, odd = highest - highest % 2, highest - (highest + 1) % 2
    return DegreeMask(result, biases, even, odd)


@functools.lru_cache(maxsize=256)
def _parity_part(expr: sp.Expr, rest: int) -> sp.Expr:
    """Return the even (rest 0) or odd (rest 1) part of a function of z."""
    written = reflectable(expr)
    reflected = written.xreplace({z: -z})
    # xreplace does not let functions move the sign out of their arguments.
    reflected = reflected.doit(deep=True)
    return expanded((written - reflected if rest else written + reflected) / 2)


def _degree_bound(result: Activation, rest: int) -> int | None:
    """Return the degree of the even or odd part; None if it is not seen to be a polynomial."""
    part = _parity_part(result.expr, rest)
    none = rest - 2
    if result.parity is (Parity.EVEN if rest else Parity.ODD):
        return none
    if not part.is_polynomial(z):
        # As for sin(z)**2 + cos(z)**2, which closed forms of the moments see through.
        parts = decompose(part, z)
        if parts.open_terms or parts.sequence.groups:
            return None
        orders = sorted(parts.sequence.single, reverse=True)
        return next((k for k in orders if not _vanishes(result.expr, k)), none)
    for (degree,), c in sp.Poly(part, z).terms():
        if not is_exactly_zero(c, f"the coefficient of z**{degree} in {result.name}"):
            return int(degree)
    return none


@functools.lru_cache(maxsize=256)
def _has_one_exponent(expr: sp.Expr, rest: int) -> bool:
    """Whether a part is, up to degree 1, a sum of exp(bz) with one b², b complex."""
    derivative = sp.expand(_parity_part(expr, rest).diff(z, 2 + rest).rewrite(sp.exp))
    terms = [term for term in sp.Add.make_args(derivative) if term != 0]
    slopes = [sp.cancel(term.diff(z) / term) for term in terms]
    if not terms or any(b.has(z) for b in slopes):
        return False
    squares = [sp.expand(b**2) for b in slopes]
    return all(is_exactly_zero(b - squares[0], "a difference of rates") for b in squares[1:])


@functools.lru_cache(maxsize=256)
def _is_transcendental(expr: sp.Expr, rest: int) -> bool:
    """Whether a part is P(z) + Q(z) g(az + b) with Q ≠ 0 and g no polynomial."""
    kernels = group_by_kernel(sp.Add.make_args(_parity_part(expr, rest)), z)
    kernels.pop(sp.S.One, None)
    if len(kernels) != 1:
        return False
    ((kernel, coefficients),) = kernels.items()
    if isinstance(kernel, sp.exp):
        # The exponential of a polynomial, or the density of a Gaussian.
        known = kernel.args[0].is_polynomial(z)
    elif isinstance(kernel, sp.log):
        # log(2 cosh(u)), the even part of softplus.
        inner = kernel.args[0].as_independent(z, as_Add=False)[1]
        known = isinstance(inner, sp.cosh) and affine_slope(inner.args[0], z) is not None
    else:
        known = isinstance(kernel, _TRANSCENDENTAL) and affine_slope(kernel.args[0], z) is not None
    return known and any(not is_exactly_zero(c, "a coefficient") for c in coefficients.values())


@functools.lru_cache(maxsize=1024)
def _vanishes(expr: sp.Expr, degree: int) -> bool:
    name = f"the Hermite coefficient of order {degree} of the student {expr}"
    return is_exactly_zero(hermite_coefficient(expr, degree), name)


@functools.lru_cache(maxsize=1024)
def _reaches(result: Activation, degree: int, biases: bool) -> bool:
    """Whether a coefficient of an order ≥ degree, of its parity or with biases of any, is not 0.

    It is asked only of what is not seen to be a polynomial: a proof that none is there is missing.
    """
    rests = (0, 1) if biases else (degree % 2,)
    if any(_is_transcendental(result.expr, rest) for rest in rests):
        return True
    step = 1 if biases else 2
    undecided = 0
    for order in range(degree, degree + step * _LOOKED_AT, step):
        try:
            if not _vanishes(result.expr, order):
                return True
        except UndecidedError:
            undecided += 1
            if undecided == _MOST_UNDECIDED:
                break
    raise UndecidedError(
        f"whether degree {degree} of the target reaches the gradient of the student {result.name} "
        f"cannot be decided: its Hermite coefficients from order {degree} on, up to {order}, "
        "are zero or undecided, and it is not seen to be a polynomial; write the student in "
        "simpler terms"
    )


def _listed(degrees: Iterable[int]) -> str:
    ordered = sorted(degrees)
    noun = "degree" if len(ordered) == 1 else "degrees"
    return f"{noun} {', '.join(map(str, ordered))}"
