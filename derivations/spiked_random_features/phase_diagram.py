"""Test error, or the best ridge penalty, over two parameters of a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...labelled import labelled
from ...numeric.arguments import positive_number, real_number
from ..figures import drawing, legend_on_map, plain_text

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures

AXES = {
    "alpha": r"sample complexity $\alpha = n/d$",
    "beta": r"aspect ratio $\beta = p/d$",
    "step_size": r"step size $s$",
    "alpha0": r"sample complexity of the step $\alpha_0 = n_0/d$",
    "ridge": r"ridge penalty $\lambda$",
    "noise_variance": r"noise variance $\Delta$",
}
"""Parameters that a phase diagram may have as an axis, with their labels."""
QUANTITIES = ("test_error", "optimal_ridge")
_OF_STEP = ("step_size", "alpha0")
_READOUT = ("alpha", "ridge")


def phase_diagram(
    model: SpikedRandomFeatures,
    x: str,
    x_values: object,
    y: str,
    y_values: object,
    *,
    quantity: str = "test_error",
    alpha: float = 2.0,
    ridge: float = 0.1,
    progress: bool = True,
) -> xr.Dataset:
    """Return a quantity on a grid of two parameters.

    Parameters
    ----------
    model : SpikedRandomFeatures
        Has the other parameters.
    x, y : str
        Two different of "alpha", "beta", "step_size", "alpha0", "ridge", "noise_variance".
    x_values, y_values : sequence of float
        Ascending.
    quantity : {"test_error", "optimal_ridge"}
        The second comes with the test error there; `ridge` is no axis then.
    alpha, ridge : float
        Where they are no axis.
    progress : bool
        Show a bar if it takes longer than a second.

    Returns
    -------
    xarray.Dataset
        Over `y` and `x`: ``test_error``, ``optimal_ridge`` if asked for, and ``linear_bound``.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range.
    """
    from tqdm.auto import tqdm

    _check(model, x, y, quantity)
    axes = {y: _ascending(y, y_values), x: _ascending(x, x_values)}
    given = {"alpha": positive_number("alpha", alpha), "ridge": positive_number("ridge", ridge)}
    shape = tuple(len(values) for values in axes.values())
    errors, penalties = np.empty(shape), np.empty(shape)
    # What belongs to the readout is solved for in one call, for each model.
    slow = {name: values for name, values in axes.items() if name not in _READOUT}
    fast = {name: values for name, values in axes.items() if name in _READOUT}
    with tqdm(
        total=math.prod(map(len, slow.values())), delay=1, leave=False, disable=not progress,
        unit="model",
    ) as bar:  # fmt: skip
        for index in np.ndindex(*(len(values) for values in slow.values())):
            changed: dict[str, Any] = {
                n: float(v[i]) for (n, v), i in zip(slow.items(), index, strict=True)
            }
            here = replace(model, **changed) if changed else model
            place = tuple(
                index[list(slow).index(name)] if name in slow else slice(None) for name in axes
            )
            points = _points(fast, given)
            if quantity == "optimal_ridge":
                best = [here.optimum(over="ridge", alpha=float(a)) for a in points["alpha"].ravel()]
                errors[place] = np.reshape([b.test_error for b in best], points["alpha"].shape)
                penalties[place] = np.reshape([b.ridge for b in best], points["alpha"].shape)
            else:
                flat = here.solve_many(alpha=points["alpha"].ravel(), ridge=points["ridge"].ravel())
                errors[place] = flat.values["test_error"].reshape(points["alpha"].shape)
            bar.update()
    columns: dict[str, Any] = {
        "test_error": ((y, x), errors), "linear_bound": model.best_linear_error
    }  # fmt: skip
    if quantity == "optimal_ridge":
        columns["optimal_ridge"] = ((y, x), penalties)
    fixed = {k: v for k, v in given.items() if k not in axes}
    if quantity == "optimal_ridge":
        fixed.pop("ridge", None)
    return labelled(
        columns, dict(axes), {"student": model.student, "teacher": model.teacher, **fixed}
    )


def _points(fast: Mapping[str, Any], given: Mapping[str, float]) -> dict[str, Any]:
    names = list(fast) or ["alpha"]
    grids = np.meshgrid(*(fast.get(n, np.array([given[n]])) for n in names), indexing="ij")
    found = dict(zip(names, grids, strict=True))
    shape = grids[0].shape if fast else ()
    full = {n: found.get(n, np.full(grids[0].shape, given[n])) for n in _READOUT}
    return {n: values.reshape(shape) for n, values in full.items()}


def _check(model: SpikedRandomFeatures, x: str, y: str, quantity: str) -> None:
    for name in (x, y):
        if name not in AXES:
            raise ParameterError(f"no axis is named {name!r}; there are: {', '.join(AXES)}")
        if model.direct_parameters is not None and name in _OF_STEP:
            raise ParameterError(
                f"a model that is given by its spike takes no step: {name} is no axis of it"
            )
    if x == y:
        raise ParameterError(f"the two axes must differ, got {x!r} twice")
    if quantity not in QUANTITIES:
        raise ParameterError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}")
    if quantity == "optimal_ridge" and "ridge" in (x, y):
        raise ParameterError("ridge is what is optimised; take another axis")


def _ascending(name: str, values: object) -> np.ndarray[Any, Any]:
    items = list(values) if hasattr(values, "__iter__") else [values]
    found = np.array([real_number(name, v) for v in items])
    if not len(found) or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        raise ParameterError(f"values of {name} must be finite and in ascending order")
    return found


def plot_phase_diagram(data: xr.Dataset, *, ax: Any = None) -> Any:
    """Draw a phase diagram as a heat map, with the contour where the linear bound is reached."""
    from matplotlib.colors import LogNorm

    name = "optimal_ridge" if "optimal_ridge" in data else "test_error"
    y, x = data[name].dims
    values = data[name].to_numpy()
    with drawing(ax, size=(6.4, 4.6)) as (axes, _):
        logarithmic = values.min() > 0 and values.max() > 3 * values.min()
        mesh = axes.pcolormesh(
            data[x], data[y], values, cmap="viridis", shading="nearest",
            norm=LogNorm() if logarithmic else None,
        )  # fmt: skip
        label = r"optimal $\lambda$" if name == "optimal_ridge" else "test error"
        axes.figure.colorbar(mesh, ax=axes, label=label)
        best = float(data["linear_bound"])
        errors = data["test_error"].to_numpy()
        if errors.min() < best < errors.max() and min(errors.shape) > 1:
            axes.contour(data[x], data[y], errors, levels=[best], colors="white", linewidths=1.6)
            axes.plot([], [], color="white", label=f"linear bound {best:.3g}")
            legend_on_map(axes)
        for set_scale, set_label, axis in (
            (axes.set_xscale, axes.set_xlabel, x),
            (axes.set_yscale, axes.set_ylabel, y),
        ):
            grid = data[axis].to_numpy()
            if len(grid) > 2 and grid[0] > 0 and grid[-1] > 20 * grid[0]:
                set_scale("log")
            set_label(AXES[str(axis)])
        student, teacher = (plain_text(str(data.attrs[k])) for k in ("student", "teacher"))
        axes.set_title(f"student {student}, teacher {teacher}", loc="left")
    return axes
