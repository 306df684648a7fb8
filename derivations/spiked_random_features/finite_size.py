r"""Finite-size studies: simulations at several dimensions, extrapolated to d → ∞, beside theory."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ... import __version__
from ...errors import ParameterError
from ...labelled import NAMES, labelled, meaning
from ...numeric.arguments import checked_seed, positive_array, positive_number, whole_number
from ...numeric.extrapolation import Extrapolation, extrapolate
from ...numeric.seed_store import store_folder
from ...pages import Block, latex_text
from ..dataset_result import DatasetResult
from ..figures import BLUE, GREY, VERMILLION, drawing

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FiniteSizeStudy", "finite_size_study"]

_FIT = (
    "limit", "limit_error", "slope", "slope_error", "chi_squared", "degrees_of_freedom",
)  # fmt: skip
_MEANING = {
    "": "mean over the networks",
    "_standard_error": "standard error of the mean",
    "_limit": "a of the fit a + b/d",
    "_limit_error": "standard error of a",
    "_slope": "b of the fit a + b/d",
    "_slope_error": "standard error of b",
    "_chi_squared": "sum of squared deviations from the fit in standard errors",
    "_degrees_of_freedom": "dimensions minus two",
    "_theory": "theory for infinite dimension",
}


@runtime_checkable
class Simulated(Protocol):
    """What can be studied: a model or a readout with its simulation."""

    @property
    def simulate(self) -> Callable[..., Any]:
        """Return quantities over ``seed`` and ``alpha``."""


@dataclass(frozen=True, repr=False, eq=False)
class FiniteSizeStudy(DatasetResult):
    """Means at several dimensions with their extrapolations.

    Attributes
    ----------
    dataset : xarray.Dataset
        Over ``dimension`` and ``alpha``: for each quantity Q its mean ``Q`` and
        ``Q_standard_error``; over ``alpha``: ``Q_limit``, ``Q_limit_error``, ``Q_slope``,
        ``Q_slope_error``, ``Q_chi_squared``, ``Q_degrees_of_freedom`` of the fit a + b/d, and
        ``Q_theory`` where the theory has this quantity.
    """

    _document = "finite-size study"
    _needed = ("quantities",)

    def _check(self) -> None:
        if self.dataset.attrs.get("kind") != self._document:
            raise ValueError("its attribute kind says something else")

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities."""
        return tuple(str(self.dataset.attrs["quantities"]).split())

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return (
            "simulations; corrections beyond 1/d are left out of the fit, and χ² tells whether "
            "they are seen (measured)"
        )

    def fit(self, quantity: str = "test_error", alpha: float | None = None) -> Extrapolation:
        """Return the extrapolation of a quantity.

        Parameters
        ----------
        quantity : str
        alpha : float, optional
            Which of several sample complexities; default: the first.

        Raises
        ------
        ParameterError
            If there is no such quantity or sample complexity.
        """
        data = self._at(quantity, alpha)
        values = {name: data[f"{quantity}_{name}"].item() for name in _FIT}
        return Extrapolation(**values | {"degrees_of_freedom": int(values["degrees_of_freedom"])})

    def deviation(self, quantity: str = "test_error", alpha: float | None = None) -> float:
        """Return (extrapolated value − theory) in standard errors; nan without a theory.

        Raises
        ------
        ParameterError
            If there is no such quantity or sample complexity.
        """
        data = self._at(quantity, alpha)
        if f"{quantity}_theory" not in data:
            return math.nan
        difference = data[f"{quantity}_limit"] - data[f"{quantity}_theory"]
        return float(difference / data[f"{quantity}_limit_error"])

    def plot(
        self,
        quantity: str = "test_error",
        alpha: float | None = None,
        *,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw means against 1/d with their fit, the extrapolated value and theory."""
        data, found = self._at(quantity, alpha), self.fit(quantity, alpha)
        inverse = 1 / data["dimension"].to_numpy()
        line = np.array([0.0, 1.05 * inverse.max()])
        with drawing(ax, style) as (axes, pen):
            bars: dict[str, Any] = {
                "color": pen.colour or VERMILLION,
                "capsize": 3,
                "elinewidth": 1.4,
            }
            axes.plot(line, found.limit + found.slope * line, color=GREY, linewidth=1.3)
            axes.errorbar(
                inverse, data[quantity], yerr=data[f"{quantity}_standard_error"], fmt="o",
                **pen(r"simulation ($\pm$ s.e.)", markerfacecolor="white", **bars),
            )  # fmt: skip
            axes.errorbar(
                [0.0], [found.limit], yerr=[found.limit_error], fmt="D", label="extrapolated",
                **bars,
            )  # fmt: skip
            if f"{quantity}_theory" in data:
                axes.plot(
                    [0.0], [data[f"{quantity}_theory"].item()], "s", color=BLUE, zorder=5,
                    label=r"theory, $d\to\infty$",
                )  # fmt: skip
            axes.set_xlabel("$1/d$")
            axes.set_ylabel(quantity.replace("_", " "))
            axes.set_title(rf"$\alpha$ = {float(data['alpha']):g}", loc="left")
            axes.legend(frameon=False)
        return axes

    def page(self) -> Iterable[Block]:
        """Return the extrapolations, beside the theory where there is one."""
        data = self.dataset
        yield f"finite-size study, d = {', '.join(map(str, data['dimension'].to_numpy()))}"
        for alpha in data["alpha"].to_numpy():
            for quantity in self.quantities:
                found = self.fit(quantity, float(alpha))
                text = (
                    f"  alpha = {alpha:g}: {quantity} = {found.limit:.6g} ± "
                    f"{found.limit_error:.2g} + ({found.slope:.3g} ± {found.slope_error:.2g})/d, "
                    f"χ² = {found.chi_squared:.3g} for {found.degrees_of_freedom}"
                )
                if f"{quantity}_theory" in data:
                    theory = float(self._at(quantity, float(alpha))[f"{quantity}_theory"])
                    deviation = self.deviation(quantity, float(alpha))
                    text += f"; theory {theory:.6g} ({deviation:+.1f} s.e.)"
                yield text
        yield self.rests_on

    def latex(self) -> str:
        """Return the fits in LaTeX, aligned, without delimiters."""
        rows = [
            rf"{latex_text(q)} &= {found.limit:.6g} \pm {found.limit_error:.2g}"
            for alpha in self.dataset["alpha"].to_numpy()
            for q in self.quantities
            for found in (self.fit(q, float(alpha)),)
        ]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def __repr__(self) -> str:
        sizes = self.dataset.sizes
        return (
            f"FiniteSizeStudy({sizes['dimension']} dimensions, {sizes['alpha']} alpha, "
            f"{', '.join(self.quantities)})"
        )

    def _at(self, quantity: str, alpha: float | None) -> xr.Dataset:
        if quantity not in self.quantities:
            raise ParameterError(f"no quantity {quantity!r}\n  known: {', '.join(self.quantities)}")
        known = self.dataset["alpha"].to_numpy()
        if alpha is None:
            return self.dataset.isel(alpha=0)
        close = np.flatnonzero(np.isclose(known, positive_number("alpha", alpha), rtol=1e-12))
        if not len(close):
            listed = ", ".join(f"{a:g}" for a in known)
            raise ParameterError(f"alpha = {alpha:g} was not studied\n  known: {listed}")
        return self.dataset.isel(alpha=int(close[0]))


def finite_size_study(
    source: Simulated,
    dimensions: Sequence[int] = (100, 200, 400),
    alpha: object = 1.0,
    ridge: float = 0.1,
    *,
    seeds: int | Sequence[int] = 20,
    seed: int = 0,
    quantities: Sequence[str] = ("test_error", "training_error"),
    workers: int | None = None,
    progress: bool = True,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> FiniteSizeStudy:
    """Simulate at several dimensions and extrapolate each quantity by a + b/d.

    Parameters
    ----------
    source : SpikedRandomFeatures or another model or readout
        Has ``simulate(dimension, alpha, ridge, ...)`` and, for comparison, ``solve(alpha, ridge)``.
    dimensions : sequence of int
        At least two different ones. Each has networks of its own, which do not change when others
        are added.
    alpha : float or sequence of float
    ridge : float
    seeds : int or sequence of int
        Networks at each dimension, at least two.
    seed : int
        Entropy.
    quantities : sequence of str
        Names in the simulation, over ``seed`` and ``alpha``.
    workers, progress, store, executor
        As for ``simulate``; with a `store`, which has a folder for each dimension, an interrupted
        study resumes.
    **options
        Further arguments of ``simulate``, such as ``control_variate=True``.

    Returns
    -------
    FiniteSizeStudy

    Raises
    ------
    ParameterError
        If an argument is outside its range, or `source` cannot be simulated.
    KeyboardInterrupt
        If interrupted. Finished networks are in `store`.

    Examples
    --------
    >>> import giantstep as gs
    >>> model = gs.SpikedRandomFeatures("erf", "erf", step_size=1, alpha0=6)
    >>> study = finite_size_study(model, [30, 60], alpha=2, seeds=4, progress=False)
    >>> study
    FiniteSizeStudy(2 dimensions, 1 alpha, test_error, training_error)
    """
    if not isinstance(source, Simulated):
        raise ParameterError(f"source must have a method simulate, got {source!r}")
    sizes, counts = _sizes_and_counts(dimensions, seeds)
    seed = checked_seed(seed)
    alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
    wanted = [quantities] if isinstance(quantities, str) else list(quantities)
    folder, runs = store_folder(store), []
    for size, count in zip(sizes, counts, strict=True):
        found = source.simulate(
            size, alpha=alphas, ridge=ridge, seeds=count, seed=_entropy(seed, size),
            workers=workers, progress=progress, executor=executor,
            store=None if folder is None else folder / f"d{size}", **options,
        )  # fmt: skip
        if found.attrs.get("interrupted"):
            raise KeyboardInterrupt
        for quantity in wanted:
            if quantity not in found or set(found[quantity].dims) != {"seed", "alpha"}:
                known = [str(n) for n, v in found.items() if set(v.dims) == {"seed", "alpha"}]
                raise ParameterError(
                    f"the simulation has no quantity {quantity!r} over seed and alpha\n"
                    f"  known: {', '.join(known)}"
                )
        runs.append(found)
    return _study(source, sizes, alphas, ridge, wanted, runs, seed)


def _sizes_and_counts(
    dimensions: Sequence[int], seeds: int | Sequence[int]
) -> tuple[list[int], list[int]]:
    given = list(np.atleast_1d(np.asarray(dimensions, dtype=object)))
    sizes = [whole_number("dimensions", _plain_number(size)) for size in given]
    if len(set(sizes)) < 2 or len(set(sizes)) < len(sizes):
        raise ParameterError(f"dimensions must be at least two different numbers, got {sizes}")
    numbers = list(np.atleast_1d(np.asarray(seeds, dtype=object)))
    counts = [whole_number("seeds", _plain_number(count), minimum=2) for count in numbers]
    if len(counts) == 1:
        counts *= len(sizes)
    if len(counts) != len(sizes):
        raise ParameterError(
            f"seeds must be one number, or one for each of the {len(sizes)} dimensions"
        )
    order = np.argsort(sizes)
    return [sizes[i] for i in order], [counts[i] for i in order]


def _plain_number(value: object) -> object:
    """Return NumPy's integers as those of Python."""
    return int(value) if isinstance(value, np.integer) else value


def _entropy(seed: int, dimension: int) -> int:
    """Return an entropy for a dimension that does not depend on the others."""
    return int(np.random.SeedSequence([seed, dimension]).generate_state(1, np.uint64)[0])


def _strict_limit(source: Simulated, alphas: Any, ridge: float) -> list[Any]:
    """Return solutions for infinite dimension; none of a source that has no `solve`."""
    at_width = getattr(source, "at_width", None)
    solve = getattr(at_width(None) if callable(at_width) else source, "solve", None)
    if not callable(solve):
        return []
    points = [solve(alpha=float(a), ridge=ridge) for a in alphas]
    # Solutions at a width may hold the one without it.
    return [getattr(point, "strict_limit", None) or point for point in points]


def _study(
    source: Simulated,
    sizes: list[int],
    alphas: Any,
    ridge: float,
    quantities: list[str],
    runs: list[xr.Dataset],
    seed: int,
) -> FiniteSizeStudy:
    theory = _strict_limit(source, alphas, ridge)
    columns: dict[str, Any] = {}
    for quantity in quantities:
        values = [run[quantity].transpose("seed", "alpha").to_numpy() for run in runs]
        means = np.array([v.mean(axis=0) for v in values])
        errors = np.array([v.std(axis=0, ddof=1) / math.sqrt(len(v)) for v in values])
        columns[quantity] = (("dimension", "alpha"), means)
        columns[f"{quantity}_standard_error"] = (("dimension", "alpha"), errors)
        fits = [extrapolate(sizes, means[:, k], errors[:, k]) for k in range(len(alphas))]
        for name in _FIT:
            columns[f"{quantity}_{name}"] = ("alpha", [float(getattr(f, name)) for f in fits])
        predicted = [np.ravel(getattr(point, quantity, ())) for point in theory]
        if predicted and all(value.size == 1 for value in predicted):
            columns[f"{quantity}_theory"] = ("alpha", [float(v[0]) for v in predicted])

    dataset = labelled(
        columns,
        names=NAMES
        | {q + end: f"{meaning(q)}, {x}" for q in quantities for end, x in _MEANING.items()},
        coords={"dimension": np.asarray(sizes), "alpha": alphas},
        attrs={
            "kind": "finite-size study",
            "quantities": " ".join(quantities),
            "source": str(source),
            "ridge": ridge,
            "entropy": seed,
            "networks": [run.sizes["seed"] for run in runs],
            "giantstep_version": __version__,
        },
    )
    return FiniteSizeStudy(dataset)
