"""Solve the equations of a convex readout: where to begin, and what has no solution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import AssumptionError
from ....numeric.cache import FileCache
from ....numeric.continuation import solve_with_continuation
from ....numeric.kernel_arrays import KernelArrays, converged_tables
from ....numeric.kernel_code import LoadedKernel
from ....numeric.saddle_point_solver import BatchSolution, refusal
from ....numeric.steep_places import Steep
from ..model import SpikedRandomFeatures
from .derivation import ConvexCase, loaded_kernel
from .labels import Labels
from .losses import ConvexLoss
from .losses import x as prediction

_SMALLEST_OVERLAP = 1e-12
# Margins between which a loss that only rewards certainty still falls.
_FAR_MARGINS = (20, 40)


@dataclass(frozen=True)
class ReadoutSolver:
    """One readout with numbers for all parameters but α and λ.

    Attributes
    ----------
    case : ConvexCase
    loss : ConvexLoss
    channel : Labels
    equivalent : SpikedRandomFeatures
        Features whose teacher has the conditional mean and variance of the labels.
    values : mapping from str to float
        Parameters of the kernel by name.
    cache : FileCache
    """

    case: ConvexCase
    loss: ConvexLoss
    channel: Labels
    equivalent: SpikedRandomFeatures
    values: Mapping[str, float]
    cache: FileCache

    @cached_property
    def kernel(self) -> LoadedKernel:
        """The generated code, loaded."""
        return loaded_kernel(self.case, self.cache)

    @cached_property
    def arrays(self) -> KernelArrays:
        """Its tables."""
        return KernelArrays(self.kernel, self._table_values, steep=self._steep)

    @property
    def _steep(self) -> Steep | None:
        """Where labels jump: averaged over s, a jump at γκ + ρs = z is one of width ρ/γ in κ."""
        alignment, across = self.values["alignment"], self.values["orthogonal_alignment"]
        if self.case.aligned or alignment == 0:
            return None
        noise = self.values["noise_variance"] if self.channel.channel == "probit" else 0.0
        places = tuple(z / alignment for z in self.channel.jumps)
        free = {**self.values, "alignment": 0.0, "orthogonal_alignment": 1.0}
        elsewhere = tuple(np.float64(free[name]) for name in self.kernel.table_parameters)
        width = math.hypot(across, math.sqrt(noise)) / abs(alignment)
        return Steep(places, width, elsewhere) if places else None

    @property
    def _table_values(self) -> list[np.float64]:
        return [np.float64(self.values[name]) for name in self.kernel.table_parameters]

    @cached_property
    def _square(self) -> SpikedRandomFeatures:
        """The ridge readout of the same features and labels, where the iteration starts."""
        given = self.equivalent
        return SpikedRandomFeatures.from_parameters(
            given.student,
            given.teacher,
            spike_strength=self.values["spike_strength"],
            bulk_variance=self.values["bulk_variance"],
            alignment=self.values["alignment"],
            beta=given.beta,
            noise_variance=given.noise_variance,
            cache_folder=given.cache_folder,
        )

    def _start(self, alphas: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
        found = dict(self._square.solve_many(alphas, np.full(len(alphas), ridge)).values)
        found["q1_orthogonal"] = np.maximum(
            found["q1"] - found["psi"] ** 2, _SMALLEST_OVERLAP * (1 + found["q1"])
        )
        nothing = np.zeros(len(alphas))
        return np.stack([found.get(n, nothing) for n in self.kernel.code.unknowns], axis=1)

    def solve(
        self, alphas: NDArray[np.float64], ridge: float, *, rtol: float, workers: int | None
    ) -> BatchSolution:
        """Solve at many sample complexities.

        Raises
        ------
        AssumptionError
            If the mean direction separates the labels, and nothing keeps m finite.
        ConvergenceError
            If a point has no solution that is found; names the first.
        """
        kernel = self.kernel
        self._require_a_minimum()
        columns: dict[str, Any] = {**self.values, "alpha": alphas, "ridge": ridge}
        parameters = np.stack(
            [np.broadcast_to(columns[name], alphas.shape) for name in kernel.parameters], axis=1
        ).astype(float)
        found = solve_with_continuation(
            kernel, self.arrays, parameters, self._start(alphas, ridge), "ridge",
            rtol=rtol, workers=workers,
        )  # fmt: skip
        if not found.converged.all():
            raise refusal(kernel, parameters, found)
        return found

    def _require_a_minimum(self) -> None:
        """Refuse labels that the mean direction separates in the strict limit.

        Labels that are a function of κ and have the sign of ±m μ_0(κ) everywhere are fitted ever
        better by m → ∞, and only at finite width does m cost anything.
        """
        if not self.case.aligned or self.case.finite_width:
            return
        if self.channel.has_noise or self.channel.channel == "logistic":
            return
        if not self.loss.needs_binary_labels:
            return
        loss = self.loss
        near, far = (loss.at_label(1).subs(prediction, margin).evalf() for margin in _FAR_MARGINS)
        if far > near:
            return
        kernel = self.kernel
        assert kernel.tables is not None
        tables = converged_tables(kernel.tables, self._table_values, np.linspace(-6.0, 6.0, 241))
        agreement = tables["label"] * tables.get("mu_0", np.zeros(241))
        if agreement.any() and (np.all(agreement >= 0) or np.all(agreement <= 0)):
            raise AssumptionError(
                f"alignment {self.values['alignment']:g}: the labels are the sign of the mean "
                f"feature mu_0(kappa), and the {loss.name} loss falls as its weight m grows, which "
                "costs nothing in the limit of infinite width: there is no minimum; give width=p, "
                "or labels with noise ('probit', 'logistic')"
            )
