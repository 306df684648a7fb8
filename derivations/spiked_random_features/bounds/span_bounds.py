r"""Bounds of one letter as least-squares problems, for shapes that nearly coincide.

For a small spike :math:`\kappa\mu_1` is nearly a multiple of :math:`\mu_0`. What tells them apart
is of relative size r², and in averages of its square (:mod:`.bound_system`) of size r⁴; singular
values of tables see r². The error E(k) of the readout is three distances, with a penalty on ϑ
and on ψ; its estimate is the difference of two quadrature rules and what rounding in the tables
does to the spans.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....numeric.cache import FileCache
from ....numeric.kernel_arrays import converged_tables
from ....numeric.least_squares import Projection, project
from ....runtime import quadrature
from ...derived import derived
from .letter_bounds import span_rule

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures

Array = NDArray[np.float64]

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
        By the names of the outputs of :func:`.bound_system.bound_system`.
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
    model : SpikedRandomFeatures
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
    fine, coarse = (_Tables.of(module, row, back) for back in (0, 1))
    shaken = _Tables.of(module, row, 0, shaken=True)
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

    def rounding(self, noise: Array, tables: _Tables) -> float:
        norms = tables.norms
        shapes, slopes = len(self.along.coefficients), len(self.across.coefficients)
        return self.along.rounding(noise[:shapes], norms[:shapes]) + self.across.rounding(
            noise[2 : 2 + slopes], norms[2 : 2 + slopes]
        )


@dataclass(frozen=True)
class _Tables:
    """Functions on a rule; shapes are what m, ϑ and ψ multiply."""

    weights: Array
    shapes: Array
    target: Array
    tilt: Array
    rest: float
    sizes: tuple[float, float]

    @classmethod
    def of(cls, module: ModuleType, row: list[Any], back: int, *, shaken: bool = False) -> _Tables:
        x, w = span_rule(module, [row], back)
        if shaken:
            inner = {
                slot: quadrature.inner_rule(kind, argument, _INNER_LEVEL)
                for slot, (kind, argument) in module.inner_rules(x, *row).items()
            }
            found = module.tables(_SHAKE * x, *row, inner)
        else:
            found = converged_tables(module, row, x)

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

    def noise(self, shaken: _Tables) -> Array:
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
    source = _source(cache, student, teacher, aligned=aligned, correlated_norms=correlated_norms)
    return cache.load_module("span_tables", source)


@derived("spiked_random_features/span", str)
def _source(student: str, teacher: str, *, aligned: bool, correlated_norms: bool) -> str:
    from ....symbolic.activations import activation
    from .shape_tables import span_table_source

    return span_table_source(
        activation(student, argument="student"),
        activation(teacher, argument="teacher"),
        aligned=aligned,
        correlated_norms=correlated_norms,
    )
