r"""Parameters at which an output of spiked random features is smallest.

The gradient is that of the saddle-point equations (:mod:`..kernels.optima`); parameters of the
gradient step act through the spike that they produce (:mod:`.tangents`). Convex readouts and
vocabularies, whose equations take minutes to differentiate, are searched by extrapolated
differences of their values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import is_one_of
from ...numeric.optimum import Axis, Differenced, Objective
from ..kernels.optima import KernelObjective, Rates
from ..optima import Optimum, optimum
from .arguments import checked_point
from .spike import checked_spike
from .tangents import SPIKE, STEP_MOVES, derivative_kernel

if TYPE_CHECKING:
    from ...numeric.kernel_code import KernelCode
    from .convex.readout import ConvexReadout
    from .model import SpikedRandomFeatures
    from .vocabulary.model import VocabularyFeatures

Array = NDArray[np.float64]

# Of the values of readouts and vocabularies, where these do not say: rounding and a stop rule.
_RELATIVE = 1e-12
_POINT = {"alpha": "positive", "ridge": "positive"}
_DATA = {"beta": "positive", "noise_variance": "nonnegative"}
_STEP = {"step_size": "positive", "alpha0": "extended positive"}
_DIRECT = {"spike_strength": "real", "bulk_variance": "positive", "alignment": "(-1, 1)"}


def spiked_optimum(
    model: SpikedRandomFeatures, digits: int | None, asked: Mapping[str, Any]
) -> Any:
    """Answer :meth:`.differentiation.Differentiation.optimum`; `asked` are its arguments."""
    over, of = asked["over"], asked["of"]
    names = [over] if isinstance(over, str) else over
    if model.direct_parameters is not None and isinstance(names, Sequence):
        stepping = [name for name in names if name in _STEP]
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
    return precise_ridge(_moved(model, fixed), float(alpha), best, digits)


def _moved(model: SpikedRandomFeatures, values: Mapping[str, Any]) -> SpikedRandomFeatures:
    """Return the model with other values of parameters, those of a spike included."""
    direct = {name: float(x) for name, x in values.items() if name in _DIRECT}
    own: dict[str, Any] = {
        name: float(x) for name, x in values.items() if name in {**_DATA, **_STEP}
    }
    if not direct:
        return replace(model, **own) if own else model
    given = {name: getattr(model.spike, name) for name in _DIRECT} | direct
    return replace(model, **own, direct_parameters=checked_spike(**given))


def _domains(model: SpikedRandomFeatures) -> dict[str, str]:
    own = _STEP if model.direct_parameters is None else _DIRECT
    return {**_POINT, **_DATA, **own}


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
        from .sensitivities import directions

        names = [axis.name for axis in axes]
        place = _places(self._model, axes, fixed, partial(_moved, self._model))
        first = place(np.array([axis.low for axis in axes]))[0]
        if {*names} & {*_STEP} and first.spike.spike_strength == 0:
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

        def rates(point: Array) -> Rates:
            along, excluded = directions(place(point)[0])
            for name in names:
                if name in excluded and name not in along:
                    raise ParameterError(f"over: {name} has no derivative: {excluded[name]}")
            return [
                {key.removeprefix("rate_"): x for key, x in along[name].items()} for name in names
            ]

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
    moderate = {**_POINT, "beta": _DATA["beta"]}
    checked_point(model, **{name: fixed[name] for name in moderate if name in fixed})
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


def readout_optimum(model: ConvexReadout, asked: Mapping[str, Any]) -> Any:
    """Answer :meth:`.convex.readout.ConvexReadout.optimum`."""

    def move(values: Mapping[str, Any]) -> ConvexReadout:
        return replace(model, features=_moved(model.features, values))

    def solve(moved: ConvexReadout, of: str, alpha: float, ridge: float) -> tuple[float, float]:
        found = moved.solve_many([alpha], ridge)
        value = float(found.values[of][0])
        return value, float(found.errors[of][0]) if of in found.errors else _RELATIVE * abs(value)

    outputs = model._derivation.code.results
    return optimum(
        _ValuesQuestion(
            "a convex readout", model.features, outputs, _domains(model.features), move, solve
        ),
        **asked,
    )


def vocabulary_optimum(model: VocabularyFeatures, asked: Mapping[str, Any]) -> Any:
    """Answer :meth:`.vocabulary.model.VocabularyFeatures.optimum`."""

    def move(values: Mapping[str, Any]) -> VocabularyFeatures:
        own: dict[str, Any] = {name: float(x) for name, x in values.items()}
        return replace(model, **own) if own else model

    def solve(
        moved: VocabularyFeatures, of: str, alpha: float, ridge: float
    ) -> tuple[float, float]:
        found = moved.solve(alpha=alpha, ridge=ridge)
        value = float(getattr(found, of))
        return value, found.quadrature_error + _RELATIVE * abs(value)

    given = model.direct_parameters is not None or model.law is not None
    domains = {**_POINT, **_DATA, **({} if given else _STEP)}
    outputs = ("test_error", "training_error", "regularised_training_error")
    return optimum(_ValuesQuestion("a vocabulary", model, outputs, domains, move, solve), **asked)


@dataclass(frozen=True)
class _ValuesQuestion:
    """A model whose outputs are known without derivatives.

    Attributes
    ----------
    name : str
    model : object
        Whose parameters are moderate, and which a dataset names.
    outputs, domains
        As for :class:`..optima.Question`.
    move : callable
        Takes values of parameters and returns the model that has them.
    solve : callable
        Takes such a model, an output, α and λ, and returns the output and its error.
    """

    name: str
    model: Any
    outputs: tuple[str, ...]
    domains: Mapping[str, str]
    move: Callable[[Mapping[str, Any]], Any]
    solve: Callable[[Any, str, float, float], tuple[float, float]]

    def attributes(self) -> dict[str, Any]:
        from ... import __version__

        return {"model": self.name, "giantstep_version": __version__}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        place = _places(self.model, axes, fixed, self.move)

        def values(points: Array) -> tuple[Array, Array]:
            found = np.full((2, len(points)), np.nan)
            for k, point in enumerate(points):
                moved, at = place(point)
                with contextlib.suppress(ConvergenceError, AssumptionError):
                    found[:, k] = self.solve(moved, of, at["alpha"], at["ridge"])
            return found[0], found[1]

        return Differenced(values, axes), False
