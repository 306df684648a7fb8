r"""Giant steps on infinitely many samples: population gradients that are closed.

For a student with :math:`\mathbb{E}\,\sigma^{(k)}(\tau z) = c\,\varepsilon_k e^{\pm\tau^2/2}`
everything is closed. With :math:`H = \sum_k \varepsilon_k F_k`, F_k the homogeneous parts of the
symbol of the target, and u the part of w inside the relevant space,

.. math:: M(w) = \mathbb{E}[f\,\sigma(\langle w, x\rangle)] = c\,e^{\pm|w|^2/2} H(u), \qquad
          K(w, v) = \mathbb{E}[\sigma(\langle w, x\rangle)\,\sigma(\langle v, x\rangle)]
          = c^2 e^{\pm|w \pm v|^2/2},

and the step of a neuron is :math:`w_i \leftarrow w_i + \lambda_i\,[\nabla M(w_i) - \frac1p \sum_j
a_j \nabla_1 K(w_i, w_j)]`, :math:`\lambda_i = \eta a_i/p`. Two students are of this kind:
:math:`e^z` (upper sign, :math:`\varepsilon_k = 1`, c = 1; then :math:`\nabla M =
e^{|w|^2/2}[\nabla F(u) + w F(u)]`), and :math:`\sin(z + \pi/4)` (lower sign, :math:`\varepsilon =
+,+,-,-,\dots`, :math:`c = 1/\sqrt2`), which is bounded, fit for samples, and has Hermite
coefficients of one and the same size. Neither misses a degree at any length of w.

Neurons start as paired unit vectors without any part in the relevant space, the limit of many
dimensions, and otherwise orthogonal; nothing else is a limit: this is the training of a network of
p neurons on the population loss. In floating point it gives the sizes of overlaps. With exponential
neurons and all numbers in intervals the rank of the overlaps with the relevant space is bounded
from below by elimination, a check of staircases that knows none: by Conjecture 1 of Dandi et al.
(arXiv 2305.18270) it is dim U_t after t steps. Derived here from Stein's lemma
(:mod:`.symbolic.targets.stein`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from mpmath.ctx_iv import MPIntervalContext
from numpy.typing import NDArray

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...symbolic.targets.target import Target, closed_target as read_target

Array = NDArray[np.float64]


class PopulationStudent(Enum):
    """A student whose population gradient is closed: name, sign in the exponent, signs by degree.

    Examples
    --------
    >>> PopulationStudent.SHIFTED_SINE.coefficient(3, sp.Symbol("tau"))
    -sqrt(2)*exp(-tau**2/2)/2
    """

    EXPONENTIAL = ("exp(z)", 1, (1, 1, 1, 1))
    SHIFTED_SINE = ("sin(z + pi/4)", -1, (1, 1, -1, -1))

    def __init__(self, text: str, sign: int, signs: tuple[int, int, int, int]) -> None:
        self.text = text
        self.sign = sign
        self.signs = signs
        self.scale = sp.S.One if sign > 0 else 1 / sp.sqrt(2)

    def coefficient(self, k: int, norm: sp.Expr) -> sp.Expr:
        r"""Return :math:`s_k = \mathbb{E}\,\sigma^{(k)}(\tau z)`, never zero."""
        return self.scale * self.signs[k % 4] * sp.exp(self.sign * norm**2 / 2)

    def mean_product(self, square: sp.Expr) -> sp.Expr:
        r"""Return :math:`\mathbb{E}[\sigma(\langle w,x\rangle)\sigma(\langle v,x\rangle)]`."""
        return self.scale**2 * sp.exp(self.sign * square / 2)


@dataclass(frozen=True)
class PopulationGradient:
    r"""The gradient of :math:`M(w) = \mathbb{E}[f \sigma(\langle w, x\rangle)]`, closed.

    Parameters
    ----------
    target : Target
        A polynomial.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
    >>> found = PopulationGradient(target("x1 + x1*x2"), PopulationStudent.EXPONENTIAL)
    >>> found.potential
    (u1*u2 + u1)*exp(rest/2 + u1**2/2 + u2**2/2)
    """

    target: Target
    student: PopulationStudent

    @cached_property
    def own(self) -> tuple[sp.Symbol, ...]:
        """The components u of w inside the relevant space."""
        return sp.symbols(f"u1:{self.target.dimension + 1}", real=True)

    @property
    def rest(self) -> sp.Symbol:
        """The squared length of the part of w outside the relevant space."""
        return sp.Symbol("rest", nonnegative=True)

    @cached_property
    def potential(self) -> sp.Expr:
        """M(w) in the components u and `rest`."""
        return self._signed_symbol * self._factor

    @cached_property
    def inside(self) -> tuple[sp.Expr, ...]:
        """Polynomials: the components of the gradient along u, over :attr:`factor`."""
        return tuple(self._over_factor(sp.diff(self.potential, u)) for u in self.own)

    @cached_property
    def along(self) -> sp.Expr:
        """Polynomial: what multiplies the part of w outside, over :attr:`factor`."""
        # M depends on that part through its squared length only.
        return self._over_factor(2 * sp.diff(self.potential, self.rest))

    @property
    def factor(self) -> sp.Expr:
        r"""The common factor :math:`c\,e^{\pm|w|^2/2}`, never zero."""
        return self._factor

    @cached_property
    def _factor(self) -> sp.Expr:
        length = sp.Add(*(u**2 for u in self.own), self.rest)
        return self.student.coefficient(0, sp.Symbol("tau")).subs(sp.Symbol("tau") ** 2, length)

    @cached_property
    def _signed_symbol(self) -> sp.Expr:
        signs = self.student.signs
        expansion = self.target.expansion
        return sp.Add(
            *(
                signs[k % 4] * expansion.part(k).symbol(self.own)
                for k in range(expansion.degree + 1)
            )
        )

    def _over_factor(self, derivative: sp.Expr) -> sp.Expr:
        return sp.expand(sp.expand(derivative) / self._factor)


def gaussian_readouts(width: int) -> Array:
    """Return paired readouts at the quantiles of a Gaussian, without any randomness.

    Examples
    --------
    >>> gaussian_readouts(4).round(3).tolist()
    [1.15, -1.15, 0.319, -0.319]
    """
    from scipy.special import ndtri

    count = whole_number("width", width, 2)
    if count % 2:
        raise ParameterError(f"width must be even, neurons come in pairs; got {count}")
    sizes = ndtri(1 - (np.arange(count // 2) + 0.5) / count)
    return np.stack([sizes, -sizes], axis=1).ravel()


def population_overlaps(
    target: Target | str,
    steps: int,
    *,
    readouts: Array,
    step_size: float,
    student: PopulationStudent = PopulationStudent.SHIFTED_SINE,
) -> list[Array]:
    r"""Return the neurons' overlaps with the coordinates of the target after each step, in floats.

    The target is a polynomial. Neurons 2i and 2i + 1 form a pair and start equal; their readouts
    have to be opposite. η is in units of p. Infinite or NaN where the network has diverged.

    Examples
    --------
    >>> last = population_overlaps("x1 + x1*x2", 2, readouts=gaussian_readouts(8), step_size=2)[-1]
    >>> bool(np.linalg.svd(last, compute_uv=False)[1] > 0.1)
    True
    """
    f = read_target(target)
    a = np.asarray(readouts, dtype=float)
    if a.ndim != 1 or len(a) % 2 or not np.array_equal(a[::2], -a[1::2]):
        raise ParameterError("readouts must come in pairs a, -a, one behind the other")
    rate = positive_number("step_size", step_size)
    gradient = PopulationGradient(f, student)
    own = gradient.own
    inside = [_terms(entry, own) for entry in gradient.inside]
    along = _terms(gradient.along, own)
    r, width, sign, scale = f.dimension, len(a), student.sign, float(student.scale)
    rows = np.zeros((width, r + width // 2))
    rows[np.arange(width), r + np.arange(width) // 2] = 1
    history = [rows[:, :r].copy()]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(whole_number("steps", steps)):
            u = rows[:, :r]
            factor = scale * np.exp(sign * (rows**2).sum(axis=1) / 2)
            total = np.empty_like(rows)
            for i, terms in enumerate(inside):
                total[:, i] = factor * _value(terms, u)
            total[:, r:] = (factor * _value(along, u))[:, None] * rows[:, r:]
            products = rows @ rows.T
            lengths = np.diag(products)
            squares = lengths[:, None] + 2 * sign * products + lengths[None, :]
            # The gradient of K in its first slot is sign (w + sign v) K.
            weights = scale**2 * np.exp(sign * squares / 2) * a[None, :] / width
            total -= sign * weights.sum(axis=1)[:, None] * rows + weights @ rows
            rows = rows + rate * a[:, None] * total
            history.append(rows[:, :r].copy())
    return history


def _terms(expr: sp.Expr, own: Sequence[sp.Symbol]) -> list[tuple[float, tuple[int, ...]]]:
    return [(float(c), powers) for powers, c in sp.Poly(expr, *own).terms() if c]


def _value(terms: list[tuple[float, tuple[int, ...]]], u: Array) -> Array:
    total = np.zeros(len(u))
    for c, powers in terms:
        part = np.full(len(u), c)
        for i, n in enumerate(powers):
            if n:
                part *= u[:, i] ** n
        total += part
    return total


_LARGEST_EXPONENT = 10**6
"""Exponentials of exponentials soon have no digits at all."""


@dataclass(frozen=True)
class PopulationRanks:
    r"""Ranks of the neurons' overlaps with the relevant space after each step.

    Attributes
    ----------
    ranks : tuple of int
        Entry t: rank after t steps, from t = 0. A minor of that size is proved not to vanish.
    remainders : tuple of float
        Largest entry, at most, that is left when that minor has been eliminated, if every neuron's
        largest overlap counts as 1; larger minors vanish to this accuracy.
    digits : int
        Working precision.
    overlaps : tuple
        The overlaps, one row of floats for each neuron, after each step.
    """

    target: Target
    ranks: tuple[int, ...]
    remainders: tuple[float, ...]
    digits: int
    overlaps: tuple[tuple[tuple[float, ...], ...], ...]

    @property
    def basis(self) -> str:
        """What the ranks rest on."""
        worst = max(self.remainders)
        left = "nothing at all" if worst == 0 else f"at most {worst:.0e} of a neuron's overlap"
        return (
            f"minors of these sizes are proved not to vanish by interval arithmetic with "
            f"{self.digits} digits; {left} remains beyond them"
        )


def population_ranks(
    target: Target | str, steps: int, *, digits: int = 150, step_size: Fraction = Fraction(1, 4)
) -> PopulationRanks:
    r"""Train an exponential network on the population loss, and return the ranks it reaches.

    All arithmetic is in intervals, so that a rank is a proved lower bound; the true rank is larger
    only if a minor vanishes to some hundred digits without vanishing.

    Parameters
    ----------
    target : Target or str
        A polynomial that is not constant.
    steps : int
        Number of steps, 1 to 8.
    digits : int
        Working precision, at least 30.
    step_size : Fraction
        η in units of p and of 1/‖f‖.

    Raises
    ------
    ParameterError
        If an argument is out of range, or the precision is used up before the last step.
    AssumptionError
        If the target is not a polynomial, or constant.

    Notes
    -----
    Readouts are :math:`a = \pm 1/2, \pm 1, \pm 3/2, \dots`, two pairs more than coordinates:
    different sizes, as generic readouts have. With a = ±1 alone fewer directions are reached.

    Examples
    --------
    >>> population_ranks("x1 + x1*x2 + x1*x2*x3", 3).ranks
    (0, 1, 2, 3)
    >>> population_ranks("x1*x2 + x3", 3).ranks
    (0, 1, 1, 1)
    """
    f = read_target(target)
    if f.expansion.degree < 1:
        raise AssumptionError(f"target {f.name!r} is constant: there is nothing to learn")
    count = whole_number("steps", steps)
    if count > 8:
        raise ParameterError(f"steps must be at most 8, got {count}")
    ctx = MPIntervalContext()
    ctx.dps = whole_number("digits", digits, 30)
    gradient = PopulationGradient(f, PopulationStudent.EXPONENTIAL)
    network = _IntervalNetwork(ctx, gradient, _rational(step_size))
    ranks, remainders, overlaps = [], [], []
    for t in range(count + 1):
        if t:
            network.step()
        rows = network.overlaps()
        rank, remainder = interval_rank(rows, ctx)
        # Comparing intervals that overlap says nothing: upper ends are compared.
        if float(remainder.b) > 10.0 ** (-ctx.dps // 3):
            raise ParameterError(
                f"digits={digits} are used up after {t} steps: entries are known to "
                f"{float(remainder.b):.1e} of the largest only\n  use more digits or fewer steps"
            )
        ranks.append(rank)
        remainders.append(float(remainder.b))
        overlaps.append(tuple(tuple(float(v.mid) for v in row) for row in rows))
    return PopulationRanks(f, tuple(ranks), tuple(remainders), ctx.dps, tuple(overlaps))


def interval_rank(rows: Sequence[Sequence[Any]], ctx: Any) -> tuple[int, Any]:
    """Return a proved lower bound of the rank, and the largest entry that may remain beyond it.

    Gaussian elimination with the pivot whose distance from zero is largest, of rows that are
    divided by their largest entries: one neuron far ahead must not hide the others.
    """
    left = []
    for row in rows:
        size = max(abs(v).b for v in row)
        left.append([v / ctx.mpf(size) for v in row] if size > 0 else list(row))
    rank = 0
    while left:
        place = max(
            ((i, j) for i, row in enumerate(left) for j in range(len(row))),
            key=lambda at: abs(left[at[0]][at[1]]).a,
            default=None,
        )
        if place is None or not abs(left[place[0]][place[1]]).a > 0:
            break
        i, j = place
        pivot = left.pop(i)
        rank += 1
        for row in left:
            ratio = row[j] / pivot[j]
            row[:] = [
                v - ratio * q for k, (v, q) in enumerate(zip(row, pivot, strict=True)) if k != j
            ]
        if not left or not left[0]:
            return rank, ctx.mpf(0)
    return rank, ctx.mpf(max((abs(v).b for row in left for v in row), default=0))


class _IntervalNetwork:
    """Rows (u, outside) of the first of each pair of neurons and of the second, in intervals."""

    def __init__(self, ctx: Any, gradient: PopulationGradient, step_size: Fraction) -> None:
        self.ctx = ctx
        self.student = gradient.student
        self.r = gradient.target.dimension
        pairs = self.r + 2
        sizes = [Fraction(k, 2) for k in range(1, pairs + 1)]
        self.readouts = [ctx.mpf(s * a.numerator) / a.denominator for a in sizes for s in (1, -1)]
        self.width = len(self.readouts)
        norm = sp.sqrt(gradient.target.norm_squared)
        self.rates = [
            a * step_size.numerator / step_size.denominator / self._enclosed(norm)
            for a in self.readouts
        ]
        self.inside = [self._terms(entry, gradient.own) for entry in gradient.inside]
        self.along = self._terms(gradient.along, gradient.own)
        self.rows = [
            [ctx.mpf(0)] * self.r + [ctx.mpf(int(i // 2 == k)) for k in range(pairs)]
            for i in range(self.width)
        ]

    def overlaps(self) -> list[list[Any]]:
        return [row[: self.r] for row in self.rows]

    def step(self) -> None:
        self.rows = [self._moved(i) for i in range(self.width)]

    def _moved(self, i: int) -> list[Any]:
        row = self.rows[i]
        factor = self._exponential(row)
        along = self._value(self.along, row)
        gradient = [factor * self._value(entry, row) for entry in self.inside]
        gradient += [factor * along * v for v in row[self.r :]]
        for a, other in zip(self.readouts, self.rows, strict=True):
            both = [v + w for v, w in zip(row, other, strict=True)]
            weight = a / self.width * self._exponential(both)
            gradient = [g - weight * v for g, v in zip(gradient, both, strict=True)]
        return [v + self.rates[i] * g for v, g in zip(row, gradient, strict=True)]

    def _exponential(self, row: list[Any]) -> Any:
        exponent = self.ctx.fsum(v * v for v in row) / 2
        if not exponent.b < _LARGEST_EXPONENT:
            raise ParameterError(
                f"the overlaps explode: exp({float(exponent.b):.1g}) occurs\n"
                "  use a smaller step_size or fewer steps"
            )
        return self.ctx.exp(exponent)

    def _terms(self, expr: sp.Expr, own: Sequence[sp.Symbol]) -> list[tuple[Any, tuple[int, ...]]]:
        return [(self._enclosed(c), powers) for powers, c in sp.Poly(expr, *own).terms() if c]

    def _value(self, terms: list[tuple[Any, tuple[int, ...]]], row: list[Any]) -> Any:
        total = self.ctx.mpf(0)
        for c, powers in terms:
            for n, v in zip(powers, row, strict=False):
                if n:
                    c = c * v**n
            total += c
        return total

    def _enclosed(self, number: sp.Expr) -> Any:
        """An interval around an exact number."""
        if number.is_Rational:
            return self.ctx.mpf(number.p) / number.q
        digits = self.ctx.dps
        value = self.ctx.mpf(str(sp.N(number, digits + 10)))
        # SymPy's digits are right to the last one.
        return value * (1 + self.ctx.mpf([-1, 1]) * self.ctx.mpf(10) ** (-digits))


def _rational(value: Fraction | int) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, Fraction | int) or value <= 0:
        raise ParameterError(f"step_size must be a positive Fraction or int, got {value!r}")
    return Fraction(value)
