r"""Bounds for several letters and biases: distances of the target from spans of functions.

Rows :math:`w_j = \sqrt{c_a}\,u_j + r_a v` with a bias :math:`b_a`, one triple (r, c, b) for each
letter a, realise :math:`\mathrm{span}\{\mu_0^a\}` at no cost, and
:math:`\mathrm{span}\{\mu_0^a, \kappa\mu_1^a\}` with :math:`\mathrm{span}\{\mu_1^a\}` across the
spike at best. With P the projections in :math:`L^2(\kappa)` (Cui et al., arXiv 2402.04980,
appendix on vocabularies; equations (26) and (27) for one letter)

.. math::
    U = \mathbb{E}\,\sigma_*^2 - |P_{\{\mu_0^a\}}T_0|^2, \qquad
    L = \mathbb{E}\,\sigma_*^2 - |P_{\{\mu_0^a,\,\kappa\mu_1^a\}}T_0|^2 - |P_{\{\mu_1^a\}}T_1|^2 .

How often a letter occurs does not matter. With one letter and a bias that is learnt L becomes its
minimum over the bias. Projections are least-squares problems of weighted tables, so that letters
that nearly coincide do no harm, and equal ones count once.

**Bounds of one letter as least-squares problems, for shapes that nearly coincide.** For a small
spike :math:`\kappa\mu_1` is nearly a multiple of :math:`\mu_0`. What tells them apart is of
relative size r², and in averages of its square (:func:`.bounds.bound_system`) of size r⁴; singular
values of tables see r². The error E(k) of the readout is three distances, with a penalty on ϑ and
on ψ; its estimate is the difference of two quadrature rules and what rounding in the tables does to
the spans.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.arguments import positive_number, real_number
from ....numeric.cache import FileCache
from ....numeric.least_squares import Projection, project, squared_distance
from ....numeric.local_minima import local_minima
from ....result import Result, quantity
from ....runtime import quadrature
from ....runtime.levels import Tables
from ....runtime.rules import Rule
from ....symbolic.expressions.activations import Activation, activation
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.hermite.coefficients import hermite_coefficient
from ....symbolic.hermite.equivalence import mean_definition, slope_definition
from ....symbolic.lowering.tables import table_source
from ...derived import derived
from ..physics import (
    IDENTIFIERS,
    T0,
    T1,
    T2,
    c,
    chi,
    conditional_coefficients,
    conditional_mean,
    gamma,
    kappa,
    m,
    mu0,
    mu1,
    mu2_squared,
    norm_overlap,
    norm_response,
    r,
    rho,
    s,
    theta,
)

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures


Array = NDArray[np.float64]

# Trapezoidal step per unit width of the functions, and the panels at kinks, of the finer rule.
_STEP_PER_WIDTH = 0.1
_REFINEMENT = 1
# Functions that hardly vary: the density has a width of its own.
_WIDEST = 3.0
_ROUNDING = 1e-14
_MOST_LETTERS = 64
_LARGEST = 100.0


@dataclass(frozen=True, repr=False)
class LetterBounds(Result):
    """Bounds of the test error for given letters.

    Attributes
    ----------
    lower, upper : float
        L ≤ test error for every α, β, λ; U ≥ test error at the best λ.
    errors : mapping from str to float
        Estimated errors of `lower` and `upper`: differences of two quadrature rules.
    """

    _document = "bounds of letters"

    lower: float = field(metadata=quantity("lower bound", "L"))
    upper: float = field(metadata=quantity("upper bound", "U"))
    errors: Mapping[str, float]

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return f"float with error estimates of at most {max(self.errors.values()):.1e}"


@dataclass(frozen=True, repr=False)
class LearnedBiasBound(Result):
    """The lower bound with a bias that is learnt: L minimised over it.

    Attributes
    ----------
    bias, lower : float
        The best bias and L there.
    minima : tuple of (float, float)
        All local minima in the range: bias and L.
    bounds : (float, float)
        The range that was searched.
    """

    _document = "bound with a learned bias"

    bias: float = field(metadata=quantity("best bias", "b", significant=8))
    lower: float = field(metadata=quantity("lower bound there", "L", significant=10))
    minima: tuple[tuple[float, float], ...] = field(
        metadata=quantity("local minima, bias and bound")
    )
    bounds: tuple[float, float] = field(metadata=quantity("biases searched"))

    rests_on = "local minima of a bound in floating point, on a range that was searched"


def letter_bounds(
    student: str,
    teacher: str,
    spike_strengths: Sequence[float],
    bulk_variances: Sequence[float],
    *,
    alignment: float,
    biases: Sequence[float] | None = None,
    cache_folder: str | os.PathLike[str] | None = None,
) -> LetterBounds:
    """Return the bounds for rows of several letters.

    Parameters
    ----------
    student, teacher : str
        Activations.
    spike_strengths, bulk_variances : sequence of float
        r_a and c_a of each letter.
    alignment : float
        γ in [-1, 1], of all letters.
    biases : sequence of float, optional
        b_a; default 0.
    cache_folder : path, optional

    Raises
    ------
    ParameterError
        If the sequences differ in length or hold something that cannot be.

    Examples
    --------
    >>> found = letter_bounds("tanh", "sin", (1.5, -0.7), (1.2, 1.05), alignment=0.9)
    >>> print(f"{found.lower:.7f} {found.upper:.7f}")
    0.0091414 0.1028606
    """
    strengths = [real_number("spike_strengths", x) for x in spike_strengths]
    variances = [positive_number("bulk_variances", x) for x in bulk_variances]
    offsets = [real_number("biases", x) for x in (biases or [0.0] * len(strengths))]
    if not 1 <= len(strengths) <= _MOST_LETTERS:
        raise ParameterError(f"spike_strengths must hold 1 to {_MOST_LETTERS} letters")
    if not len(strengths) == len(variances) == len(offsets):
        raise ParameterError(
            "spike_strengths, bulk_variances and biases must have one entry for each letter, got "
            f"{len(strengths)}, {len(variances)} and {len(offsets)}"
        )
    for name, values in (("spike_strengths", strengths), ("biases", offsets)):
        if not all(abs(x) <= _LARGEST for x in values):
            raise ParameterError(f"{name} must be of size at most {_LARGEST:g}, got {values}")
    gamma = real_number("alignment", alignment)
    if not -1 <= gamma <= 1:
        raise ParameterError(f"alignment must be between -1 and 1, got {gamma}")
    tables = _Tables.of(student, teacher, gamma, cache_folder)
    letters = list(zip(strengths, variances, offsets, strict=True))
    fine, coarse = (tables.distances(letters, back) for back in (0, 1))
    return LetterBounds(
        lower=fine[0],
        upper=fine[1],
        errors={
            name: abs(a - b) + _ROUNDING
            for name, a, b in zip(("lower", "upper"), fine, coarse, strict=True)
        },
    )


def learned_bias_bound(
    student: str,
    teacher: str,
    *,
    spike_strength: float,
    bulk_variance: float,
    alignment: float,
    bounds: tuple[float, float] = (-5.0, 5.0),
    cache_folder: str | os.PathLike[str] | None = None,
) -> LearnedBiasBound:
    """Return the lower bound for one letter whose bias is learnt.

    Parameters
    ----------
    student, teacher : str
    spike_strength, bulk_variance, alignment : float
        r, c and γ.
    bounds : (float, float)
        Biases that are searched, by 81 points and Brent's method between them.
    cache_folder : path, optional
    """
    low, high = (real_number("bounds", x) for x in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ParameterError(f"bounds must be two biases in ascending order, got {bounds!r}")

    def lower(bias: float) -> float:
        return letter_bounds(
            student, teacher, [spike_strength], [bulk_variance], alignment=alignment,
            biases=[float(bias)], cache_folder=cache_folder,
        ).lower  # fmt: skip

    _, minima = local_minima(lower, np.linspace(low, high, 81), "the bound over the bias")
    bias, least = min(minima, key=lambda pair: pair[1])
    return LearnedBiasBound(bias, least, tuple(minima), (low, high))


@dataclass(frozen=True)
class _Tables:
    module: ModuleType
    alignment: float

    @classmethod
    def of(
        cls, student: str, teacher: str, alignment: float, folder: str | os.PathLike[str] | None
    ) -> _Tables:
        cache = FileCache(folder)
        source = _source(cache, student, teacher, aligned=abs(alignment) == 1)
        return cls(cache.load_module("letter_tables", source), alignment)

    def distances(self, letters: Sequence[tuple[float, ...]], back: int) -> tuple[float, float]:
        """Return L and U on a rule that is `back` times twice as coarse as the finest."""
        rho = math.sqrt((1 - self.alignment) * (1 + self.alignment))
        rows = [
            [np.float64(v) for v in (strength, variance, self.alignment, rho, bias)]
            for strength, variance, bias in letters
        ]
        x, w = span_rule(self.module, rows, back)
        found = [Tables(self.module, row)(x) for row in rows]
        means, along, slopes = (
            np.array([np.broadcast_to(t[name], x.shape) for t in found])
            for name in ("mu_0", "along", "mu_1")
        )
        target, tilt = found[0]["T_0"], found[0].get("T_1", np.zeros_like(x))
        rest = float(w @ found[0].get("tau_2_squared", np.zeros_like(x)))
        everything = rest + squared_distance(tilt, slopes, w)
        lower = everything + squared_distance(target, np.vstack([means, along]), w)
        none = squared_distance(tilt, slopes[:0], w)
        return lower, rest + none + squared_distance(target, means, w)


def span_rule(module: ModuleType, rows: Sequence[Sequence[Any]], back: int) -> Rule:
    """Return nodes and weights for tables at some parameters, `back` times twice as coarse."""
    zero = np.zeros(1)
    with np.errstate(divide="ignore", over="ignore"):
        width = min(float(module.outer_scale(zero, *row)) for row in rows)
    breaks = [b for row in rows for b in module.breaks(zero, *row)]
    if breaks:
        return quadrature.line_rule(breaks, _REFINEMENT - back)
    return quadrature.trapezoidal_rule(_STEP_PER_WIDTH * min(width, _WIDEST) * 2**back)


@derived("spiked_random_features/letters", str)
def _source(student: str, teacher: str, *, aligned: bool) -> str:
    return letter_table_source(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        aligned=aligned,
    )


# ------------------------------------------------------------------ span bounds


_EPSILON = float(np.finfo(float).eps)
# Tables are evaluated again at arguments that differ by rounding, and on inner rules that are
# finer than activations ask for: what changes is rounding. A margin for what happens to agree.
_SHAKE = 1 + 2 * _EPSILON
_INNER_LEVEL = 3
_MARGIN = 4.0
# Relative differences of two rules beyond rounding above which finer rules are worth their time.
_RESOLVED = 1e-11


@dataclass(frozen=True)
class SpanBounds:
    """Bounds of one letter by projections.

    Attributes
    ----------
    values : dict of str to float
        By the names of the outputs of :func:`.bounds.bound_system`.
    errors : dict of str to float
        Estimated errors of ``lower``, ``limit`` and ``upper``.
    resolved : bool
        Whether finer rules would not lower them: the rest is rounding.
    """

    values: dict[str, float]
    errors: dict[str, float]
    resolved: bool


def span_bounds(model: SpikedRandomFeatures, cost: float) -> SpanBounds:
    """Return the bounds of a model with a spike.

    Parameters
    ----------
    cost : float
        k of E_∞ = E(k).
    """
    spike = model.spike
    module = _module(
        model.student,
        model.teacher,
        spike.orthogonal_alignment == 0,
        model._case["correlated_norms"],
        model._cache,
    )
    row = [
        np.float64(v)
        for v in (
            spike.spike_strength, spike.bulk_variance, spike.alignment,
            spike.orthogonal_alignment, spike.norm_overlap,
        )
    ]  # fmt: skip
    fine, coarse = (_SpanTables.of(module, row, back) for back in (0, 1))
    shaken = _SpanTables.of(module, row, 0, shaken=True)
    # k is homogeneous in the mean squares of μ_1 and μ_2 and grows with both.
    change = max(
        abs(a - b) / a if a else 0.0 for a, b in zip(fine.sizes, coarse.sizes, strict=True)
    )
    noise = fine.noise(shaken)
    values: dict[str, float] = {}
    errors: dict[str, float] = {}
    resolved = True
    for name, penalty in (("upper", None), ("lower", 0.0), ("limit", cost)):
        found, other = fine.readout(penalty), coarse.readout(penalty)
        m, along, across = found.coefficients
        difference = abs(found.error - other.error)
        if penalty:
            difference += change * penalty * (along**2 + across**2)
        rounding = found.rounding(noise, fine) + _MARGIN * _EPSILON * fine.target_square
        values[name], errors[name] = found.error, difference + rounding
        resolved &= difference <= max(_RESOLVED * found.error, rounding)
        values[f"m_{name}"] = m
        if penalty is not None:
            values |= {f"theta_{name}": along, f"psi_{name}": across}
    return SpanBounds(values, errors, resolved)


@dataclass(frozen=True)
class _Readout:
    """The best readout at a penalty: a distance along the spike and one across."""

    rest: float
    along: Projection
    across: Projection

    @property
    def error(self) -> float:
        return self.rest + self.along.distance + self.across.distance

    @property
    def coefficients(self) -> tuple[float, float, float]:
        m, theta = (*map(float, self.along.coefficients), 0.0)[:2]
        return m, theta, float((*self.across.coefficients, 0.0)[0])

    def rounding(self, noise: Array, tables: _SpanTables) -> float:
        norms = tables.norms
        shapes, slopes = len(self.along.coefficients), len(self.across.coefficients)
        return self.along.rounding(noise[:shapes], norms[:shapes]) + self.across.rounding(
            noise[2 : 2 + slopes], norms[2 : 2 + slopes]
        )


@dataclass(frozen=True)
class _SpanTables:
    """Functions on a rule; shapes are what m, ϑ and ψ multiply."""

    weights: Array
    shapes: Array
    target: Array
    tilt: Array
    rest: float
    sizes: tuple[float, float]

    @classmethod
    def of(
        cls, module: ModuleType, row: list[Any], back: int, *, shaken: bool = False
    ) -> _SpanTables:
        x, w = span_rule(module, [row], back)
        if shaken:
            inner = {
                slot: quadrature.inner_rule(kind, argument, _INNER_LEVEL)
                for slot, (kind, argument) in module.inner_rules(x, *row).items()
            }
            found = module.tables(_SHAKE * x, *row, inner)
        else:
            found = Tables(module, row)(x)

        def table(name: str) -> Array:
            # Functions that vanish have no table, and constants have one value.
            return np.broadcast_to(np.asarray(found.get(name, 0.0), dtype=float), x.shape)

        return cls(
            weights=w,
            shapes=np.array([table(name) for name in ("mu_0", "along", "mu_1")]),
            target=table("T_0"),
            tilt=table("T_1"),
            rest=float(w @ table("tau_2_squared")),
            sizes=(float(w @ table("mu_1") ** 2), float(w @ table("mu_2_squared"))),
        )

    @property
    def norms(self) -> Array:
        return np.asarray(np.sqrt(self.shapes**2 @ self.weights))

    @property
    def target_square(self) -> float:
        return self.rest + float(self.weights @ (self.target**2 + self.tilt**2))

    def noise(self, shaken: _SpanTables) -> Array:
        """Return norms of the rounding in the shapes."""
        changes = np.sqrt((self.shapes - shaken.shapes) ** 2 @ self.weights)
        return np.asarray(_MARGIN * (changes + _EPSILON * self.norms))

    def readout(self, penalty: float | None) -> _Readout:
        w = self.weights
        if penalty is None:
            along = project(self.target, self.shapes[:1], w)
            return _Readout(self.rest, along, project(self.tilt, self.shapes[:0], w))
        along = project(self.target, self.shapes[:2], w, penalty, penalised=1)
        return _Readout(self.rest, along, project(self.tilt, self.shapes[2:], w, penalty))


def _module(
    student: str, teacher: str, aligned: bool, correlated_norms: bool, cache: FileCache
) -> ModuleType:
    source = _span_source(
        cache, student, teacher, aligned=aligned, correlated_norms=correlated_norms
    )
    return cache.load_module("span_tables", source)


@derived("spiked_random_features/span", str)
def _span_source(student: str, teacher: str, *, aligned: bool, correlated_norms: bool) -> str:
    return span_table_source(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        aligned=aligned,
        correlated_norms=correlated_norms,
    )


# ----------------------------------------------------------------------
# Functions of κ that bounds are made of: their definitions, and the source of their tables.

# What is left of the target given κ after the best affine fit in s.
tau2_squared = sp.Function("tau_2^2", nonnegative=True)(kappa)


bias = sp.Symbol("b_1", real=True)


def bound_definitions(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    curved: bool = False,
) -> dict[sp.Expr, sp.Expr]:
    r"""Return the definitions of μ_0, μ_1, μ_2², T_0, T_1, τ_2²; those that vanish are zero.

    With `curved` also that of χ.
    """
    definitions = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    del definitions[T2]
    label = teacher(gamma * kappa + rho * s)
    left = sp.S.Zero if aligned else GaussianExpectation((label - T0 - s * T1) ** 2, s)
    definitions[tau2_squared] = left
    if curved:
        definitions[chi] = norm_response(student, unspiked=unspiked)
    return definitions


def realised_table_source(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
) -> str:
    """Return the source of the tables ``target``, ``target_variance``, ``linear``, ``realised``.

    Their parameters are r, c, γ, ρ, the norm overlap a, and m and ϑ of the prediction.
    """
    coefficients = conditional_coefficients(student, teacher, unspiked=unspiked, aligned=aligned)
    if correlated_norms:
        coefficients[chi] = norm_response(student, unspiked=unspiked)
    label = teacher(gamma * kappa + rho * s)
    h0, h1 = (hermite_coefficient(teacher, k) for k in range(2))
    target = _function("target")
    spread = sp.S.Zero if aligned else GaussianExpectation((label - target) ** 2, s)
    definitions = {f: coefficients[f] for f in (mu0, mu1, chi) if f in coefficients}
    definitions |= {
        target: coefficients[T0],
        _function("target_variance"): spread,
        _function("linear"): h0 + h1 * gamma * kappa,
        _function("realised"): conditional_mean(correlated_norms=correlated_norms),
    }
    return _shape_source(definitions, (norm_overlap, m, theta))


def letter_table_source(student: Activation, teacher: Activation, *, aligned: bool) -> str:
    r"""Return the source of the tables of one letter, with a bias.

    They are what m, ϑ and ψ multiply, ``mu_0``, ``along`` and ``mu_1``, and the moments ``T_0``,
    ``T_1`` and ``tau_2_squared`` of the target. Parameters: r, c, γ, ρ, b.
    """
    centre, spread = r * kappa + bias, sp.sqrt(c)
    definitions = bound_definitions(student, teacher, aligned=aligned)
    del definitions[mu2_squared]
    definitions[mu0] = mean_definition(student, centre, spread)
    definitions[mu1] = slope_definition(student, centre, spread)
    definitions[_function("along")] = sp.diff(conditional_mean(), theta)
    return _shape_source(definitions, (bias,))


def span_table_source(
    student: Activation,
    teacher: Activation,
    *,
    aligned: bool = False,
    correlated_norms: bool = False,
) -> str:
    r"""Return the source of the tables that the bounds of one letter are made of.

    They are those of :func:`letter_table_source` and ``mu_2_squared``, without a bias; ``along``
    includes aχ with correlated norms. Parameters: r, c, γ, ρ, a.
    """
    definitions = bound_definitions(student, teacher, aligned=aligned, curved=correlated_norms)
    mean = conditional_mean(correlated_norms=correlated_norms)
    definitions[_function("along")] = sp.diff(mean, theta)
    return _shape_source(definitions, (norm_overlap,))


def _function(name: str) -> sp.Expr:
    return sp.Function(name, real=True)(kappa)


def _shape_source(definitions: dict[sp.Expr, sp.Expr], more: tuple[sp.Symbol, ...]) -> str:
    """Print tables; a function that vanishes, but for those that are asked for, is left out."""
    zero = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    return table_source(
        {f: value.xreplace(zero) for f, value in definitions.items() if f not in zero},
        node=kappa,
        identifiers={**IDENTIFIERS, bias: "bias"},
        parameters=(r, c, gamma, rho, *more),
    )
