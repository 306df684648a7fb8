"""Risk over the step size: no step, every window of degrees, giant steps, and networks across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from ....errors import ParameterError
from ....numeric.arguments import whole_number
from ...curves import Curve
from ...figures import BLUE, GREEN, GREY, VERMILLION, drawing

if TYPE_CHECKING:
    import xarray as xr

    from .model import StepAtWidth

_EDGE = "step size, "
"""Before the degree, in the attributes of datasets: where it has strength one."""

_LINES = {
    "risk_operator": ("all degrees", BLUE, "-"),
    "risk_letters": ("spiked random features", GREEN, "-"),
    "risk_linear": ("linear spike", GREY, "--"),
    "risk_leading": ("large widths", GREY, ":"),
}


@dataclass(frozen=True, eq=False, repr=False)
class RiskOverSteps(Curve):
    """The risk of every form of the theory over the step size.

    Of :attr:`~Curve.dataset`: ``risk_operator``, ``risk`` (powers), ``risk_letters``,
    ``risk_linear``, ``risk_leading``, ``risk_initial``, ``small`` (θ²/N) and, of networks,
    ``risk_mean`` and ``risk_standard_error``.
    """

    _document = "risk over step sizes"

    @property
    def edges(self) -> dict[str, float]:
        """Step sizes at which a degree has strength one."""
        given = self.dataset.attrs.items()
        return {str(name): value for name, value in given if str(name).startswith(_EDGE)}

    def plot(
        self,
        of: str | Sequence[str] | None = None,
        *,
        simulation: xr.Dataset | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw all forms, solid where they hold, with the edges of the windows and networks.

        With `of` or `simulation` as :meth:`Curve.plot`.
        """
        if of is not None or simulation is not None:
            return super().plot(of, simulation=simulation, ax=ax, **style)
        data = self.dataset
        steps = data["step_size"].to_numpy()
        left_out = data["small"].to_numpy() * float(data.attrs["left_out_per_small"])
        trusted = left_out <= float(data.attrs["trusted"])
        with drawing(ax, style) as (axes, pen):
            for name, (label, colour, dashes) in _LINES.items():
                if name not in data or not np.isfinite(data[name]).any():
                    continue
                values = data[name].to_numpy()
                if name == "risk_operator":
                    # Continued thinly where networks are known to deviate.
                    thin = {"color": pen.colour or colour, "linewidth": 0.8, "alpha": 0.5}
                    axes.plot(steps, values, **thin)
                    values = np.where(trusted, values, np.nan)
                axes.plot(steps, values, **pen(label, several=True, color=colour, linestyle=dashes))
            if "risk_mean" in data:
                axes.errorbar(
                    steps,
                    data["risk_mean"],
                    data["risk_standard_error"],
                    fmt="o",
                    markersize=3.5,
                    color=VERMILLION,
                    label="networks",
                )
            for name, edge in self.edges.items():
                if steps[0] < edge < steps[-1]:
                    axes.axvline(edge, color=GREY, linewidth=0.6)
                    axes.annotate(
                        name.removeprefix(_EDGE),
                        (edge, 1.0),
                        xycoords=("data", "axes fraction"),
                        xytext=(3, -10),
                        textcoords="offset points",
                        fontsize="small",
                        color=GREY,
                    )
            axes.set_xlabel(r"step size $\eta$")
            axes.set_ylabel("risk")
            axes.legend()
        return axes


def risk_over_steps(
    model: StepAtWidth, step_size: object, ridge: object, seeds: int, options: Mapping[str, Any]
) -> RiskOverSteps:
    """Return every form of the risk; see :meth:`.model.StepAtWidth.over_steps`."""
    steps = np.atleast_1d(np.asarray(step_size, dtype=float))
    if steps.ndim != 1 or len(steps) < 2 or not (np.diff(steps) > 0).all() or steps[0] < 0:
        raise ParameterError(f"step_size must be increasing numbers >= 0, got {step_size!r}")
    seeds = whole_number("seeds", seeds, minimum=0)
    if options and not seeds:
        raise ParameterError(f"{next(iter(options))} is for networks; give seeds, too")
    data = model.curve(ridge=ridge, step_size=steps, progress=False).to_dataset()
    letters, runs = [], []
    # A step size takes seconds: shown where that adds up.
    for step in tqdm(steps.tolist(), desc="step sizes", leave=False, delay=1, disable=None):
        at = model.at(step_size=step)
        letters.append(
            at.solve(ridge=ridge, form="letters").risk if step else data["risk_initial"][0]
        )
        if seeds:
            runs.append(at.simulate(ridge=ridge, seeds=seeds, progress=False, **options))
    result: dict[str, Any] = {"risk_letters": ("step_size", np.array(letters, dtype=float))}
    if seeds:
        result |= {
            "risk_mean": ("step_size", np.array([float(r.mean().squeeze()) for r in runs])),
            "risk_standard_error": (
                "step_size",
                np.array([float(r.standard_error().squeeze()) for r in runs]),
            ),
        }
    data = data.assign(result)
    data.attrs["shown"] = "risk_operator risk_letters risk_linear small"
    if model.letters is None:
        data.attrs.update(model.spikes().step_sizes)
    return RiskOverSteps(data)
