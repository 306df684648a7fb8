"""The generated equations of a spectrum at given parameters, ready for root tracking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....numeric.cache import FileCache
from ....numeric.contours import AnalyticTables, Nodes
from ....numeric.kernel_arrays import converged_tables
from ....numeric.spectra import Complex, ResolventTransform, SelfConsistency
from ....runtime import quadrature
from .derivation import SpectrumDerivation

# Trapezoidal step at the first level, per unit width of the tables.
_STEP_PER_WIDTH = 0.25
_FINEST = 6
_FINE = 3
# Where the normal density is smaller than this a pole on the line carries no mass.
_MASSLESS = 1e-11
# Steps of the nodes between a contour and the next pole: the error is exp(-2 pi) for each.
_STEPS_TO_POLE = 2.5
# Variance of the noise, relative to that of the features, that is rounding.
_NO_NOISE = 1e-13


@dataclass(frozen=True)
class SpectrumFunctions:
    """The generated functions with their parameters and tables.

    Attributes
    ----------
    module, table_module : module
    values : mapping from str to float
        Of the parameters of the equations and the tables.
    derivation : SpectrumDerivation
    population : bool
        Of the population covariance.
    """

    module: ModuleType
    table_module: ModuleType
    values: Mapping[str, float]
    derivation: SpectrumDerivation
    population: bool = False

    @classmethod
    def load(
        cls, found: SpectrumDerivation, cache: FileCache, values: Mapping[str, float], **given: Any
    ) -> SpectrumFunctions:
        """Load the generated sources."""
        module = cache.load_module("spectrum", found.source)
        tables = cache.load_module("spectrum_tables", found.table_source)
        return cls(module, tables, values, found, **given)

    @cached_property
    def width(self) -> float:
        """Scale in κ over which the tables vary, at most 1."""
        with np.errstate(divide="ignore", over="ignore"):
            return float(self.table_module.outer_scale(np.zeros(1), *self._table_values))

    @property
    def _table_values(self) -> list[np.float64]:
        return [np.float64(self.values[name]) for name in self.derivation.table_parameters]

    def tabulate(self, x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the tables at real nodes."""
        return converged_tables(self.table_module, self._table_values, x)

    def _nodes(self, level: int) -> Nodes:
        x, weight, _ = quadrature.outer_rules(
            _STEP_PER_WIDTH * self.width / 2**level, self.derivation.even
        )[0]
        return Nodes(weight, x, dict(self.tabulate(x)))

    @cached_property
    def fine_nodes(self) -> Nodes:
        """Nodes and tables of a fine rule on the line."""
        return self._nodes(_FINE)

    def call(self, name: str, z: Any, v: Any, nodes: Nodes, **changed: float) -> Any:
        """Call a generated function."""
        function = getattr(self.module, ("population_" if self.population else "") + name)
        parameters = {k: {**self.values, **changed}[k] for k in self.derivation.parameters}
        given = {"weight": nodes.weight, "kappa": nodes.node, **nodes.tables}
        return function(z, v[0], v[1], **parameters, **given)

    def equations(self, nodes: Nodes) -> SelfConsistency:
        """Return the equations of the resolvent as sums over nodes."""

        def evaluate(z: Complex, v: Complex) -> tuple[Complex, Complex, Complex]:
            g1, g2, g11, g12, g21, g22, g1z, g2z = self.call("fixed_point", z, v, nodes)
            return np.array([g1, g2]), np.array([[g11, g12], [g21, g22]]), np.array([g1z, g2z])

        return evaluate

    @cached_property
    def expected(self) -> tuple[float, ...]:
        """Mean and lowest point of the bulk; of the top eigenvalue a p + b both, if there is one.

        The lowest point is zero except for the population covariance.
        """
        one = np.ones(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.call("expected", one, np.stack([one, one]), self.fine_nodes)
        values = tuple(float(f[0]) for f in found)
        # A mean that only vanishes at these parameters, such as that of He_2 at c = 1.
        return values if math.isfinite(values[-1]) else values[:2]

    @property
    def origin(self) -> float:
        """From where logarithmic scales are counted: the lowest point that there can be."""
        return self.expected[1]

    @cached_property
    def ranks(self) -> tuple[bool, bool]:
        """Whether the features have a part along B x, and one of independent noise."""
        tables = self.fine_nodes.tables
        weight = quadrature.normal_density(self.fine_nodes.node)
        parts = [
            float(np.sum(weight * np.asarray(tables[k]) ** power)) if k in tables else 0.0
            for k, power in (("mu_1", 2), ("mu_2_squared", 1))
        ]
        return parts[0] > 0, parts[1] > _NO_NOISE * sum(parts)

    @property
    def mass(self) -> float:
        """Mass of what is not at the origin: the rank divided by p."""
        along, noise = self.ranks
        beta = self.values["beta"]
        rank = min(1.0, 1 / beta) if along else 0.0
        if self.population:
            # Noise alone fills the other directions with its variance, the origin.
            return rank
        return min(self.values["alpha"] / beta, 1.0 if noise else rank)

    def outlier_condition(self, x: Any, v: Any, inverse_width: float) -> NDArray[np.float64]:
        """Return the determinant whose real zeros outside the bulk are outliers."""
        (found,) = self.call("outliers", x, v, self.fine_nodes, inverse_width=inverse_width)
        return np.asarray(found)

    def transform(self) -> ResolventTransform:
        """Return V(z) by root tracking, z counted from the origin."""
        return ResolventTransform(
            levels=self._level,
            scale=(self.expected[0] - self.origin) / self.mass if self.mass else 1.0,
            finest=_FINEST,
            tails=None if self.population else _Tails(self),
        )

    def _level(self, level: int) -> SelfConsistency:
        nodes = self.fine_nodes if level == _FINE else self._nodes(level)
        return self.equations(nodes)


class _Tails:
    """Averages over κ on contours, for densities that nodes on the line do not resolve."""

    def __init__(self, functions: SpectrumFunctions) -> None:
        self._functions = functions

    @cached_property
    def _tables(self) -> AnalyticTables:
        return AnalyticTables(self._functions.tabulate, self._functions.width)

    @cached_property
    def _line(self) -> Nodes:
        nodes = self._functions._nodes(1)
        near = quadrature.normal_density(nodes.node) > _MASSLESS
        tables = {k: np.broadcast_to(t, near.shape)[near] for k, t in nodes.tables.items()}
        return Nodes(nodes.weight[near], nodes.node[near], tables)

    def crossed(self, v: Complex) -> NDArray[np.bool_]:
        """Tell which real V put a zero of the denominator onto the line."""
        columns = v.real[:, :, None]
        values = self._functions.call("denominator", 0.0, columns, self._line)
        return (values.max(axis=1) > 0) & (values.min(axis=1) < 0)

    def around(
        self, v: Complex, shift: float, refinement: int
    ) -> tuple[SelfConsistency, Callable[[Complex], NDArray[np.bool_]]] | None:
        """Return equations on a contour that passes the zeros of the denominator at V."""
        found = self._tables.contour(self._denominator(v), shift, refinement)
        if found is None:
            return None

        def resolved(v: Complex) -> NDArray[np.bool_]:
            values = self._functions.call("denominator", 0.0, v[:, :, None], found)
            with np.errstate(all="ignore"):
                steps = np.abs(values[:, :-1]) / np.abs(np.diff(values, axis=1))
            return np.asarray(np.nan_to_num(steps, posinf=np.inf).min(axis=1) > _STEPS_TO_POLE)

        return self._functions.equations(found), resolved

    def _denominator(self, v: Complex) -> Callable[[Complex, dict[str, Complex]], Complex]:
        def evaluate(node: Complex, tables: dict[str, Complex]) -> Complex:
            nodes = Nodes(np.ones(0, dtype=complex), node, tables)
            return np.asarray(self._functions.call("denominator", 0.0, v, nodes))

        return evaluate
