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
p neurons on the population loss. Here it runs in floating point, for the sizes of overlaps;
:mod:`.population_ranks` proves ranks. Derived here from Stein's lemma (:mod:`...symbolic.stein`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...symbolic.targets import Target
from ...symbolic.targets import target as read_target

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
        r"""Return :math:`\mathbb{E}[\sigma(\langle w,x\rangle)\sigma(\langle v,x\rangle)]`.

        Parameters
        ----------
        square : Expr
            :math:`|w \pm v|^2` with the sign of the student.
        """
        return self.scale**2 * sp.exp(self.sign * square / 2)


@dataclass(frozen=True)
class PopulationGradient:
    r"""The gradient of :math:`M(w) = \mathbb{E}[f \sigma(\langle w, x\rangle)]`, closed.

    Parameters
    ----------
    target : Target
        A polynomial.
    student : PopulationStudent

    Examples
    --------
    >>> from giantstep.symbolic.targets import target
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
    r"""Return the neurons' overlaps with the coordinates of the target after each step.

    Parameters
    ----------
    target : Target or str
        A polynomial.
    steps : int
    readouts : ndarray, shape (p,)
        Neurons 2i and 2i + 1 form a pair and start equal; their readouts have to be opposite.
    step_size : float
        η in units of p.
    student : PopulationStudent

    Returns
    -------
    list of ndarray, shape (p, r)
        Entry t after t steps, from t = 0; ordinary floating point. Infinite or NaN where the
        network has diverged.

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
