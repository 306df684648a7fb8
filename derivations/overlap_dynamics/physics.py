r"""One map of overlaps: population gradient descent, giant steps, online learning.

A narrow network :math:`f(x) = \sum_j a_j\,\sigma(w_j\cdot x)`, p = O(1), learns a function of
:math:`u = \Theta x`, with K orthonormal rows of Θ. With :math:`e = f_* - f` and
:math:`\psi_j = a_j\,\sigma'(w_j\cdot x)\,e`, each step takes n fresh samples,

.. math:: w_j \leftarrow (1 - \omega)\,w_j + \frac{s}{n}\sum_\mu (\psi_j + \text{noise})\,x_\mu,
          \qquad a_j \leftarrow a_j + \frac{s_2}{n}\sum_\mu \sigma(w_j\cdot x_\mu)\,e_\mu .

The fields (h, u), :math:`h = Wx`, are Gaussian with the covariance
:math:`C = \begin{pmatrix} Q & M \\ M^\top & 1\end{pmatrix}`, so that the averages

.. math:: A_{jr} = E[\psi_j r], \quad S_{jl} = E[\psi_j\psi_l] + \Delta\,a_j a_l E[\sigma'\sigma'],
          \quad V_j = E[\sigma(h_j)\,e]

are functions of Q, M and a, and the overlaps after the step are, as d → ∞,

.. math:: M' = (1-\omega) M + s A_u, \quad
          Q' = (1-\omega)^2 Q + (1-\omega)\,s\,(A_h + A_h^\top)
               + s^2\big[(1 - \tfrac{1}{n}) A C^{-1} A^\top + \tfrac{d}{n} S\big],
          \quad a' = a + s_2 V .

:math:`A C^{-1} A^\top` are scalar products of population gradients, because
:math:`E[\psi x] = B^\top C^{-1} A` with the rows (W; Θ) of B; S d/n is the squared length that the
noise of the samples adds. Short steps at fixed :math:`\varepsilon = s\,d/n` are the differential
equation of online learning.

(Saad, Solla, Phys. Rev. E 52 (1995) 4225; Goldt, Advani, Saxe, Krzakala, Zdeborová, arXiv
1906.08632; Veiga, Stephan, Loureiro, Krzakala, Zdeborová, arXiv 2202.00293; Arnaboldi, Stephan,
Krzakala, Loureiro, arXiv 2302.05882; batches: arXiv 2406.02157. The map of giant steps is derived
here.)
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from ...errors import ClosedFormNotFoundError
from ...symbolic.expressions.activations import Activation, z
from ...symbolic.gaussian.expectation import (
    GaussianExpectation,
    GaussianVector,
    JointExpectation,
    expect_joint,
)

SOURCE = (
    "Saad, Solla, Phys. Rev. E 52 (1995) 4225; arXiv 1906.08632, 2202.00293, 2302.05882, "
    "2406.02157; the map of giant steps is derived here"
)

step_size = sp.Symbol("s", real=True)
"""s, of the first layer."""
second_step = sp.Symbol("s_2", real=True)
"""Of the second layer."""
weight_decay = sp.Symbol("omega", real=True)
"""ω, of the first layer in one step."""
sampling = sp.Symbol("kappa", nonnegative=True)
"""d/n, 1/α0 for batches in proportion to the dimension."""
pairs = sp.Symbol("nu", nonnegative=True)
"""1 - 1/n, the share of pairs of different samples."""
noise = sp.Symbol("Delta", nonnegative=True)
"""Variance of the noise of labels."""

overlap, other, gradient, reverse = sp.symbols("X Y A B", real=True)
squares, drift = sp.symbols("S G", real=True)

# Of the differential equation.
sampling_rate = sp.Symbol("epsilon", nonnegative=True)
"""ε = s d/n."""
decay_rate = sp.Symbol("lambda", real=True)
"""ω/s."""
second_rate = sp.Symbol("r", real=True)
"""s_2/s."""


@dataclass(frozen=True)
class Rules:
    """How an overlap with the teacher, a self-overlap and a readout change.

    Attributes
    ----------
    teacher : Expr
        Of an entry X of M with the entry A of :math:`A_u`.
    self : Expr
        Of an entry X of Q with entries A of :math:`A_h`, B of its transpose, G of
        :math:`AC^{-1}A^T` and S.
    readout : Expr
        Of an entry X of a with the entry A of V.
    """

    teacher: sp.Expr
    self: sp.Expr
    readout: sp.Expr


def step_rules() -> Rules:
    """Return the map of one step."""
    shrunk = 1 - weight_decay
    return Rules(
        teacher=shrunk * overlap + step_size * gradient,
        self=shrunk**2 * overlap
        + shrunk * step_size * (gradient + reverse)
        + step_size**2 * (pairs * drift + sampling * squares),
        readout=overlap + second_step * gradient,
    )


@lru_cache(maxsize=1)
def flow_rules() -> Rules:
    """Return the velocities of short steps at a fixed s d/n: limits of the map."""
    short = {
        sampling: sampling_rate / step_size,
        weight_decay: decay_rate * step_size,
        second_step: second_rate * step_size,
    }

    def velocity(value: sp.Expr) -> sp.Expr:
        change = sp.expand((value - overlap).subs(short, simultaneous=True) / step_size)
        return sp.limit(change, step_size, 0)

    rules = step_rules()
    return Rules(*(velocity(value) for value in (rules.teacher, rules.self, rules.readout)))


def squared_gradients() -> sp.Expr:
    r"""Return S from :math:`X = E[\sigma'_j\sigma'_l e^2]`, :math:`Y = E[\sigma'_j\sigma'_l]`.

    A and B are the readouts of both neurons.
    """
    return gradient * reverse * (overlap + noise * other)


# ---------------------------------------------------------------------- averages


@dataclass(frozen=True)
class Factor:
    """A function of some of the fields.

    Attributes
    ----------
    function : Expr
    variables : tuple of Symbol
        Of the function.
    fields : tuple of int
        Which fields these are.
    """

    function: sp.Expr
    variables: tuple[sp.Symbol, ...]
    fields: tuple[int, ...]

    @property
    def kind(self) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
        """The function without its fields."""
        return self.function, self.variables


def of_student(student: Activation, field: int, *, slope: bool = False) -> Factor:
    """Return σ or σ' at a field."""
    return Factor(student.derivative if slope else student.expr, (z,), (field,))


def field_itself(field: int) -> Factor:
    """Return a field as a factor."""
    return Factor(z, (z,), (field,))


def covariance(i: int, j: int) -> sp.Symbol:
    """Return the symbol of an entry of the covariance of an average's fields."""
    i, j = min(i, j), max(i, j)
    return sp.Symbol(f"c{i}_{j}", positive=True) if i == j else sp.Symbol(f"c{i}_{j}", real=True)


def is_smooth(functions: Sequence[sp.Expr]) -> bool:
    """Tell whether averages of functions are analytic where fields coincide, too."""
    entire = (sp.Add, sp.Mul, sp.Symbol, sp.Number, sp.NumberSymbol, sp.erf, sp.exp)
    return all(
        isinstance(node, entire)
        or (isinstance(node, sp.Pow) and (not node.base.free_symbols or node.exp.is_Integer))
        for f in functions
        for node in sp.preorder_traversal(f)
    )


def pattern(
    factors: Sequence[Factor], together: Container[int]
) -> tuple[tuple[int, ...], list[int]]:
    """Return numbers of the fields of factors in order of appearance, and which fields they are.

    Parameters
    ----------
    factors : sequence of Factor
    together : container of int
        Fields that are one where they appear twice; others are two, at a singular covariance, so
        that one formula holds for all.
    """
    order: list[int] = []
    numbers = []
    for place in (f for factor in factors for f in factor.fields):
        if place not in together or place not in order:
            order.append(place)
            numbers.append(len(order) - 1)
        else:
            numbers.append(order.index(place))
    return tuple(numbers), order


@lru_cache(maxsize=512)
def closed_average(
    kinds: tuple[tuple[sp.Expr, tuple[sp.Symbol, ...]], ...], numbers: tuple[int, ...]
) -> sp.Expr:
    """Return the average of a product of functions, in the entries of :func:`covariance`.

    Parameters
    ----------
    kinds : tuple of (function, variables)
    numbers : tuple of int
        Of their fields, as :func:`pattern` gives them.

    Raises
    ------
    ClosedFormNotFoundError
        If no rule gives it.
    """
    count = max(numbers, default=-1) + 1
    fields = sp.symbols(f"x0:{count}", cls=sp.Dummy, real=True)
    integrand, used = sp.S.One, 0
    for function, variables in kinds:
        places = numbers[used : used + len(variables)]
        used += len(variables)
        integrand *= function.xreplace(
            dict(zip(variables, (fields[k] for k in places), strict=True))
        )
    if not count:
        return integrand
    law = GaussianVector(fields, covariance=sp.Matrix(count, count, covariance))
    found = expect_joint(integrand, law)
    if found.has(JointExpectation, GaussianExpectation):
        raise ClosedFormNotFoundError(
            f"no rule gives the average of {sp.Mul(*(f for f, _ in kinds), evaluate=False)} in "
            "closed form"
        )
    return found


# ---------------------------------------------------------------------- a batch that is used again


@dataclass(frozen=True)
class ReusedBatch:
    r"""Two steps on one batch, as averages over the fields of one of its samples.

    The first step moves :math:`w_j` along every sample that it has seen. In the second step the
    field of such a sample is therefore

    .. math:: h'_j = g_j + s\,\kappa\,\psi_j, \qquad \kappa = d/n,

    where :math:`g_j` is the field of the row that all other samples have made: (h, g, u) are
    Gaussian, g has the covariances Q' and M' of the map, and
    :math:`E[g_j h_l] = (1-\omega)Q_{jl} + s E[\psi_j h_l]`. The label is the same, with its noise.
    Then :math:`M'' = (1-\omega)M' + s E[\psi'_j u_k]`, ψ' at h'. What a fresh batch hides at first
    order ψ' shows as long as a function of the label does: directions of a larger information
    exponent are learned in the second step.

    Attributes
    ----------
    before, between, directions : tuple of Symbol
        Fields h, g and u.
    disturbance : Symbol
        Noise of the label.
    readout, later : tuple of Symbol
        Second layers in the first and in the second step.
    first, second : tuple of Expr
        ψ and ψ' of every neuron.
    """

    before: tuple[sp.Symbol, ...]
    between: tuple[sp.Symbol, ...]
    directions: tuple[sp.Symbol, ...]
    disturbance: sp.Symbol
    readout: tuple[sp.Symbol, ...]
    later: tuple[sp.Symbol, ...]
    first: tuple[sp.Expr, ...]
    second: tuple[sp.Expr, ...]


def reused_batch(
    student: Activation, terms: Sequence[tuple[Factor, float]], neurons: int, directions: int
) -> ReusedBatch:
    """Return ψ of the first and of the second step on one batch.

    Parameters
    ----------
    student : Activation
    terms : sequence of (Factor, float)
        Of the teacher; fields are numbers of its directions.
    neurons, directions : int
    """
    h, g, a, b = (sp.symbols(f"{letter}0:{neurons}", cls=sp.Dummy, real=True) for letter in "hgab")
    u = sp.symbols(f"u0:{directions}", cls=sp.Dummy, real=True)
    xi = sp.Dummy("xi", real=True)
    label = xi + sum(
        c * f.function.xreplace(dict(zip(f.variables, (u[k] for k in f.fields), strict=True)))
        for f, c in terms
    )

    def gradients(at: Sequence[sp.Expr], weights: Sequence[sp.Symbol]) -> tuple[sp.Expr, ...]:
        outputs = (w * student.expr.xreplace({z: x}) for w, x in zip(weights, at, strict=True))
        rest = label - sp.Add(*outputs)
        return tuple(
            w * student.derivative.xreplace({z: x}) * rest for w, x in zip(weights, at, strict=True)
        )

    first = gradients(h, a)
    moved = [x + step_size * sampling * p for x, p in zip(g, first, strict=True)]
    return ReusedBatch(h, g, u, xi, a, b, first, gradients(moved, b))
