r"""Parameters at which an output of spiked random features is smallest.

The gradient is that of the saddle-point equations (:mod:`..kernels.optima`); parameters of the
gradient step act through the spike that they produce (:mod:`.tangents`). Convex readouts and
vocabularies, whose equations take minutes to differentiate, are searched by extrapolated
differences of their values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import is_one_of
from ...numeric.optimum import Axis, Differenced, Objective
from ..kernels.sensitivities import KernelObjective
from ..optima import Optimum, optimum
from .arguments import STEP, checked_point
from .tangents import SPIKE, STEP_MOVES, derivative_kernel

if TYPE_CHECKING:
    from ...numeric.kernel_code import KernelCode
    from ..curves import HasCurves
    from ..kernels.sensitivities import Rates
    from .model import SpikedRandomFeatures

Array = NDArray[np.float64]

# Of the values of readouts and vocabularies, where these do not say: rounding and a stop rule.
_RELATIVE = 1e-12
_RTOL = 1e-10
_POINT = ("alpha", "ridge")
_OPEN = {"step_size": "positive", "alignment": "(-1, 1)"}


def spiked_optimum(
    model: SpikedRandomFeatures, digits: int | None, asked: Mapping[str, Any]
) -> Any:
    """Answer :meth:`.differentiation.Differentiation.optimum`; `asked` are its arguments."""
    over, of = asked["over"], asked["of"]
    names = [over] if isinstance(over, str) else over
    if model.direct_parameters is not None and isinstance(names, Sequence):
        stepping = [name for name in names if name in STEP]
        if stepping:
            raise ParameterError(
                "a model that is given by its spike takes no step; give step_size and alpha0"
            )
    alone = isinstance(names, list | tuple) and [*names] == ["ridge"]
    if digits is not None and not (alone and is_one_of(of, ("test_error",))):
        raise ParameterError(
            "digits refine the optimum of the test error over the ridge penalty; leave digits out, "
            "or ask for of='test_error' and over='ridge'"
        )
    best = optimum(_SpikedQuestion(model), **asked)
    if digits is None:
        return best
    if not isinstance(best, Optimum):
        raise ParameterError("digits refine one optimum; give numbers in place of arrays")
    if not best.is_interior or best.maximum:
        return best
    from .refine_tangents import precise_ridge

    fixed = dict(asked["fixed"])
    alpha = fixed.pop("alpha")
    return precise_ridge(_mover(model)(fixed), float(alpha), best, digits)


def _domains(model: HasCurves) -> dict[str, str]:
    """Return where parameters are searched: without ends at which nothing can be differenced."""
    return {
        name: _OPEN.get(name, domain) for name, domain in model._axes().items() if name != "width"
    }


def _mover(model: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Return what takes values of parameters to the model that has them."""

    def move(values: Mapping[str, Any]) -> Any:
        return model.at(**{name: float(x) for name, x in values.items()}) if values else model

    return move


class _SpikedQuestion:
    """Ridge regression on spiked features as what optima are asked of."""

    name = "spiked random features"

    def __init__(self, model: SpikedRandomFeatures) -> None:
        self._model = model

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._model.kernel().outputs

    @property
    def domains(self) -> Mapping[str, str]:
        return _domains(self._model)

    def attributes(self) -> dict[str, Any]:
        from .results import model_attributes

        # The step and the spike of the model are not those of the optimum.
        moved = ("ridge", *SPIKE)
        return {k: v for k, v in model_attributes(self._model, 0.0).items() if k not in moved}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        from .directions import directions

        names = [axis.name for axis in axes]
        place = _places(self._model, axes, fixed, _mover(self._model))
        first = place(np.array([axis.low for axis in axes]))[0]
        if {*names} & {*STEP} and first.spike.spike_strength == 0:
            raise ParameterError(
                f"the step of this model leaves no spike (step_size={first.step_size:g}): there is "
                "no step size to choose; take a student with E sigma' != 0 and finite alpha0"
            )
        kernel = first.kernel()

        def rows(points: Array) -> Array:
            found = []
            for point in points:
                model, values = place(point)
                given = {**model._parameter_values(), **values}
                found.append([given[name] for name in kernel.parameters])
            return np.array(found)

        def rates(point: Array) -> list[Rates]:
            found = directions(place(point)[0])
            for name in names:
                if name not in found.moving:
                    raise ParameterError(f"over: {name} has no derivative: {found.excluded[name]}")
            return [found.moving[name] for name in names]

        def code() -> KernelCode:
            takes_step = first.direct_parameters is None and first.step_size > 0
            moving = [name for k in names for name in _moving(k, takes_step=takes_step)]
            return derivative_kernel(first, of, moving)

        return KernelObjective(kernel, code, of, rows, rates, {}), True


def _moving(name: str, *, takes_step: bool) -> tuple[str, ...]:
    """Return the parameters of the kernel that move with one of the model."""
    spike = SPIKE if takes_step else ()
    own = {
        "step_size": STEP_MOVES,
        "alpha0": spike,
        "noise_variance": ("noise_variance", *spike),
        "alignment": ("alignment", "orthogonal_alignment"),
    }
    return own.get(name, (name,))


def _places(
    model: Any,
    axes: Sequence[Axis],
    fixed: Mapping[str, Any],
    move: Callable[[Mapping[str, Any]], Any],
) -> Callable[[Array], tuple[Any, dict[str, float]]]:
    """Return what takes a point to the model that `move` makes for it, and α and λ.

    Raises
    ------
    ParameterError
        If α or λ is missing, or so large or small that nothing but rounding would be seen.
    """
    names = [axis.name for axis in axes]
    for name in _POINT:
        if name not in names and name not in fixed:
            raise ParameterError(f"{name} is missing: give {name}=..., or optimise over it, too")
    moderate = [name for name in (*_POINT, "beta") if name in fixed]
    checked_point(model, **{name: fixed[name] for name in moderate})
    known: dict[tuple[float, ...], Any] = {}

    def place(point: Array) -> tuple[Any, dict[str, float]]:
        given = {**fixed, **dict(zip(names, point.tolist(), strict=True))}
        values = {name: float(given.pop(name)) for name in _POINT}
        key = tuple(map(float, given.values()))
        if key not in known:
            known[key] = move(given)
        return known[key], values

    return place


# ---------------------------------------------------------------------- without derivatives


def differenced_optimum(model: HasCurves, asked: Mapping[str, Any]) -> Any:
    """Answer :meth:`.differentiation.DifferencedOptimum.optimum`; `asked` are its arguments."""
    return optimum(_ValuesQuestion(model), **asked)


@dataclass(frozen=True)
class _ValuesQuestion:
    """A model whose outputs are known without derivatives."""

    model: Any

    @property
    def name(self) -> str:
        return str(type(self.model).__name__)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.model._names().outputs)

    @property
    def domains(self) -> Mapping[str, str]:
        return _domains(self.model)

    def attributes(self) -> dict[str, Any]:
        from ... import __version__

        return {"model": self.model.to_json(), "giantstep_version": __version__}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        features = getattr(self.model, "features", self.model)
        place = _places(features, axes, fixed, _mover(self.model))

        def values(points: Array) -> tuple[Array, Array]:
            found = np.full((2, len(points)), np.nan)
            for k, point in enumerate(points):
                moved, at = place(point)
                columns = {name: np.array([value]) for name, value in at.items()}
                with contextlib.suppress(ConvergenceError, AssumptionError):
                    solved = moved._solve_rows(columns, _RTOL, raising=True)
                    value, error = solved.values[of][0], solved.errors[of][0]
                    known = error if np.isfinite(error) else 0.0
                    found[:, k] = value, known + _RELATIVE * abs(value)
            return found[0], found[1]

        return Differenced(values, axes), False
