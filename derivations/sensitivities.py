"""Derivatives of any model's answers with respect to its parameters: one question, one answer.

A model with derivatives (:class:`HasSensitivities`) has a kernel and says how the kernel's
parameters move with its own (:class:`Directions`). The rest is the tangent program of kernels
(:mod:`.kernels.sensitivities`).
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..digits import checked_digits
from ..errors import AssumptionError, ParameterError
from ..numeric.arguments import LEAST_MODERATE, moderate_number
from ..numeric.optimum import Axis, Differenced, Objective
from .curves import HasCurves
from .kernels.sensitivities import KernelObjective, along, chosen_names, tangent_code
from .optima import Question, optimum
from .penalties import readout_penalty

if TYPE_CHECKING:
    from ..numeric.kernel_code import KernelCode
    from .kernels.kernel import Kernel
    from .kernels.sensitivities import Rates, Sensitivities

Array = NDArray[np.float64]

# A scan takes rough solutions.
_DIFFERENCED_RTOL, _SCANNED_RTOL, _ROUNDING = 1e-10, 1.0, 1e-12
_SYMBOLS = {"step_size": "s", "alpha0": r"\alpha_0", "width": "p"}


@dataclass(frozen=True)
class Directions:
    """How the parameters of a kernel move with those of a model.

    Attributes
    ----------
    moving : mapping from str to mapping
        Rates of parameters of the kernel, by the parameter of the model that moves. Those that
        the kernel has not play no part.
    excluded : mapping from str to str
        Parameters without a derivative here, with the reason.
    """

    moving: Mapping[str, Rates]
    excluded: Mapping[str, str] = field(default_factory=dict)


class HasOptima(HasCurves):
    """A model whose answers can be optimised."""

    _error: ClassVar[str] = "test_error"
    """What :meth:`optimum` makes small unless it is told."""

    def optimum(
        self,
        *,
        over: str | Sequence[str] = "ridge",
        of: str | None = None,
        bounds: object = None,
        maximum: bool = False,
        digits: int | None = None,
        progress: bool = True,
        **parameters: Any,
    ) -> Any:
        """Return the parameters at which an output is smallest.

        A scan of the bounds, then descents from all of its minima to where the gradient vanishes;
        of several local minima the best, the others are listed. A minimum at an end of the bounds
        is reported as such (``kind``). The gradient is exact; of convex losses and of letters,
        whose equations take minutes to differentiate along a search, it is that of extrapolated
        differences of values, with estimated errors (exact ones: ``kernel().optimum``). All
        penalties of one gradient step with stationary risk are roots of one polynomial: they are
        found without a search, and the best of them is the best of all.

        Parameters
        ----------
        over : str or sequence of str
            Parameters that are optimised, any that :meth:`curve` can be over but the width:
            ``alpha``, ``ridge``, ``beta``, ``noise_variance``, ``step_size``, ``alpha0``, or those
            of a spike that is given (``spike_strength``, ``bulk_variance``, ``alignment``).
        of : str, optional
            An error or another output of :meth:`curve` or of :meth:`kernel`; default: the test
            error, the risk of one gradient step.
        bounds : mapping from str to (float, float), or a pair for one parameter
            Positive parameters are searched in their logarithms. Default: 1e-6 to 1e6 for
            ``ridge``, 0.05 to 20 for ``step_size``; others have none.
        maximum : bool
            Look for the largest value instead.
        digits : int, optional
            So many digits of a ridge penalty that minimises the test error, of spiked random
            features with the square loss and of one gradient step. A bound that is best is exact,
            and what is there are floats: ``found.digits`` is None.
        progress : bool
            Show a bar over several optima that take longer than a second.
        **parameters
            What :meth:`solve` needs and is not optimised; others replace those of the model, its
            ``width`` among them. Arrays are axes of a grid of optima. Of one gradient step also
            ``trained=False``, for the risk before the step.

        Returns
        -------
        Optimum, OptimalRidge or xarray.Dataset
            The second for the penalty of one gradient step: 0 or inf where the risk falls towards
            that end. A dataset where a parameter is an array: parameters and output of the best
            optimum, estimated errors, the norm of the ``gradient`` in the coordinates of the
            search, whether the optimum is inside the bounds, and the number of local ``minima``.

        Raises
        ------
        ParameterError
            If a name is unknown, a parameter is missing, has no derivative or is both given and
            optimised, or bounds are no range inside of the parameter's domain.
        ConvergenceError
            If a point of a descent has no solution, or `digits` cannot be reached.

        Examples
        --------
        >>> import giantstep as gs
        >>> model = gs.SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
        >>> best = model.optimum(over="ridge", alpha=1.5)
        >>> print(f"{best.ridge:.12f} {best.test_error:.12f}, {best.kind}")
        0.197687294208 0.078106277426, interior minimum
        >>> step = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2,
        ...                           noise_variance=0.25)
        >>> print(f"{step.optimum().paper_ridge:.12f}")
        0.272826395556
        """
        width = parameters.pop("width", None)
        model = self if width is None else self.at(width=width)
        asked = {
            "of": self._error if of is None else of, "over": over, "bounds": bounds,
            "maximum": maximum, "progress": progress, "fixed": parameters,
        }  # fmt: skip
        return model._optimum(None if digits is None else checked_digits(digits), asked)

    def _optimum(self, digits: int | None, asked: dict[str, Any]) -> Any:
        """Answer :meth:`optimum`; `asked` are its other arguments."""
        if digits is not None:
            raise ParameterError(
                "digits refine the best ridge penalty of spiked random features with the square "
                f"loss, and of one gradient step, not of {type(self).__name__}; leave digits out"
            )
        return optimum(self._question(), **asked)

    def _question(self) -> Question:
        """Return the model as what optima are asked of."""
        return ValuesQuestion(self)


class HasSensitivities(HasOptima):
    """A model whose answers can be differentiated."""

    @abstractmethod
    def kernel(self) -> Kernel:
        """Return the kernel, with the parameters of the model as defaults."""

    @abstractmethod
    def _directions(self, *, exact: bool) -> Directions:
        """Return how parameters move: in floats, or as exact numbers and functions of them."""

    def _question(self) -> Question:
        """Return the model as what optima are asked of."""
        return ModelQuestion(self)

    def _start(self, kernel: Kernel, point: Mapping[str, Any]) -> Mapping[str, float] | None:
        """Return first values of the kernel's unknowns, where it has none that lead anywhere."""
        return None

    def _named(self, kernel: Kernel) -> Mapping[str, str]:
        """Return the results of the kernel by the names that answers of the model have."""
        return {name: name for name in (*self._names().outputs, *kernel.outputs)}

    def sensitivities(
        self,
        *,
        wrt: str | Sequence[str] | None = None,
        digits: int | None = None,
        progress: bool = True,
        **parameters: Any,
    ) -> Sensitivities:
        """Return derivatives of errors and order parameters with respect to parameters.

        Exact derivatives of the equations, by the implicit function theorem. Parameters of a
        gradient step act through the spike that it makes, and one that others follow from brings
        them along: a new alignment its orthogonal part. The derivatives of the equations are
        derived when they are first asked for, which takes seconds, for losses with proximal
        operators minutes, and kept in the cache.

        Parameters
        ----------
        wrt : str or sequence of str, optional
            Parameters to differentiate by; default: all that have a derivative here. Fewer are
            derived sooner.
        digits : int, optional
            So many digits with mpmath. Floats are then read as the decimal numbers that they
            print as.
        progress : bool
            Show a bar over digits that take longer than a second.
        **parameters
            Where, by name: what :meth:`solve` needs, `ridge` also as
            :func:`giantstep.paper_ridge`, and any parameters of :meth:`at`.

        Returns
        -------
        Sensitivities
            ``found["test_error", "ridge"]``; ``found.error(...)`` estimates its absolute error,
            and ``found.excluded`` says why a parameter has no derivative here.

        Raises
        ------
        ParameterError
            If a parameter is unknown, missing, outside its range or so extreme that only rounding
            would be seen; if `wrt` names one that has no derivative here; if the model has no
            kernel.
        ConvergenceError
            If there is no solution, or its derivatives are not finite.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, step_size=2, noise_variance=0.25)
        >>> found = model.sensitivities(ridge=0.1, beta=1.5, wrt="step_size")
        >>> print(f"{found['risk_trained', 'step_size']:.10f}")
        -0.0164576107
        """
        digits = None if digits is None else checked_digits(digits)
        missing = [name for name in self._asked if parameters.get(name) is None]
        if missing:
            raise ParameterError(f"{missing[0]} is missing: give {missing[0]}=...")
        point = {name: parameters.pop(name) for name in self._asked}
        model = self.at(**parameters) if parameters else self
        kernel = model.kernel()
        beta, noise = kernel.defaults["beta"], kernel.defaults.get("noise_variance", 0.0)
        moderate_number("beta", beta)
        if noise > 1 / LEAST_MODERATE:
            moderate_number("noise_variance", noise)
        if "alpha" in point:
            point["alpha"] = moderate_number("alpha", point["alpha"])
        alpha = point["alpha"] if "alpha" in point else kernel.defaults["alpha"]
        ridge = readout_penalty(point["ridge"], alpha, beta, exact=digits is not None)
        point["ridge"] = moderate_number("ridge", ridge)

        result = model._directions(exact=digits is not None)
        known = [*result.moving, *(name for name in result.excluded if name not in result.moving)]
        chosen = chosen_names(wrt, [*result.moving], type(self).__name__, known)
        for name in chosen:
            if name not in result.moving:
                raise ParameterError(
                    f"there is no derivative with respect to {name}: {result.excluded[name]}"
                )
        excluded = result.excluded if wrt is None else {}
        start = model._start(kernel, point)
        options = {**point, "digits": digits, "progress": progress, "start": start}
        moving = {name: result.moving[name] for name in chosen}
        return model._renamed(kernel, along(kernel, options, moving, excluded))

    def _renamed(self, kernel: Kernel, found: Sensitivities) -> Sensitivities:
        """Return derivatives under the names of the model; what a special case lacks is zero."""
        there, names = set(found.outputs), self._named(kernel)
        zero = 0 * next(iter(found.derivatives.values()))

        def renamed(values: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], Any]:
            return {
                (name, p): values[source, p] if source in there else zero
                for name, source in names.items()
                for p in found.parameters
            }

        labels = {name: found.labels[source] for name, source in names.items()
                  if source in found.labels}  # fmt: skip
        return replace(
            found,
            derivatives=renamed(found.derivatives),
            errors=renamed(found.errors),
            labels={**_SYMBOLS, **found.labels, **labels},
        )


# ---------------------------------------------------------------------- optima

# Ends of domains at which a model has no derivative.
_OPEN = {"step_size": "positive", "alignment": "(-1, 1)"}


def searched_domains(model: HasCurves) -> dict[str, str]:
    """Return where parameters are searched: without ends at which there is no derivative."""
    return {
        name: _OPEN.get(name, domain) for name, domain in model._axes().items() if name != "width"
    }


def places(
    model: HasCurves, axes: Sequence[Axis], fixed: Mapping[str, Any]
) -> Callable[[Array], tuple[Any, dict[str, float]]]:
    """Return what takes a point to the model that has its parameters, and to the others.

    Raises
    ------
    ParameterError
        If a parameter is missing, or so large or small that nothing but rounding would be seen.
    """
    names = [axis.name for axis in axes]
    for name in model._asked:
        if name not in names and name not in fixed:
            raise ParameterError(f"{name} is missing: give {name}=..., or optimise over it, too")
    # Those of a readout are its features'.
    features = getattr(model, "features", model)
    own = {x: getattr(features, x) for x in ("beta", "noise_variance") if hasattr(features, x)}
    for name in (*model._asked, "beta"):
        if name in fixed or name in own:
            moderate_number(name, fixed.get(name, own.get(name)))
    noise = fixed.get("noise_variance", own.get("noise_variance", 0.0))
    if noise > 1 / LEAST_MODERATE:
        moderate_number("noise_variance", noise)
    known: dict[tuple[float, ...], Any] = {}

    def place(point: Array) -> tuple[Any, dict[str, float]]:
        given = {**fixed, **dict(zip(names, point.tolist(), strict=True))}
        asked = {name: float(given.pop(name)) for name in model._asked}
        values = {name: float(x) for name, x in given.items()}
        key = tuple(values.values())
        if key not in known:
            known[key] = model.at(**values) if values else model
        return known[key], asked

    return place


@dataclass(frozen=True)
class ValuesQuestion:
    """A model whose outputs are known without derivatives, as what optima are asked of."""

    model: Any

    @property
    def name(self) -> str:
        """What the model is."""
        return str(type(self.model).__name__)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Those of its curves."""
        return tuple(self.model._names().outputs)

    @property
    def domains(self) -> Mapping[str, str]:
        """Those of the parameters."""
        return searched_domains(self.model)

    def attributes(self) -> dict[str, Any]:
        """Return the model, and the release."""
        return {"model": self.model.to_json(), "giantstep_version": __version__}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        """Return an output with its gradient by extrapolated differences."""
        place = places(self.model, axes, fixed)

        def values(points: Array, rtol: float = _DIFFERENCED_RTOL) -> tuple[Array, Array]:
            found = np.full((2, len(points)), np.nan)
            models, asked = zip(*map(place, points), strict=True)
            # Points of one model are solved together.
            for one in {id(model): model for model in models}.values():
                rows = [k for k, model in enumerate(models) if model is one]
                columns = {name: np.array([asked[k][name] for k in rows]) for name in asked[0]}
                with contextlib.suppress(AssumptionError):
                    solved = one._solve_rows(columns, rtol, raising=False)
                    value, error = solved.values[of], solved.errors[of]
                    known = np.where(np.isfinite(error), error, 0.0)
                    found[0, rows] = np.where(solved.converged, value, np.nan)
                    found[1, rows] = known + _ROUNDING * np.abs(value)
            return found[0], found[1]

        return Differenced(values, axes, partial(values, rtol=_SCANNED_RTOL)), False


class ModelQuestion:
    """A model that has derivatives, as what optima are asked of."""

    def __init__(self, model: HasSensitivities) -> None:
        self._model = model
        self._names = model._named(model.kernel())
        self.name = type(model).__name__

    @property
    def outputs(self) -> tuple[str, ...]:
        """Outputs of the kernel by the names that the model has for them."""
        return tuple(self._names)

    @property
    def domains(self) -> Mapping[str, str]:
        """Those of the parameters; a vanishing penalty has no derivative."""
        return {**searched_domains(self._model), "ridge": "positive"}

    def attributes(self) -> dict[str, Any]:
        """Return the model, and the release."""
        return {"model": self._model.to_json(), "giantstep_version": __version__}

    def objective(
        self, of: str, axes: Sequence[Axis], fixed: Mapping[str, Any]
    ) -> tuple[Objective, bool]:
        """Return an output with its exact gradient.

        Raises
        ------
        ParameterError
            If a parameter is missing, or has no derivative.
        """
        names = [axis.name for axis in axes]
        place = places(self._model, axes, fixed)
        first, _ = place(np.array([axis.low for axis in axes]))
        kernel = self._kernel(first, names)

        def moving(model: HasSensitivities) -> list[Rates]:
            known = model._directions(exact=False)
            for name in names:
                if name not in known.moving:
                    reason = known.excluded.get(name, "it is none of the equations")
                    raise ParameterError(f"over: {name} has no derivative: {reason}")
            return [known.moving[name] for name in names]

        def rows(points: Array) -> Array:
            found = []
            for point in points:
                model, asked = place(point)
                given = {**self._values(model), **asked}
                found.append([given[name] for name in kernel.parameters])
            return np.array(found)

        source = self._names.get(of, of)
        return KernelObjective(
            kernel, partial(self._code, first, kernel, source, names), source, rows,
            lambda point: moving(place(point)[0]), {},
        ), True  # fmt: skip

    def _kernel(self, model: Any, names: Sequence[str]) -> Kernel:
        """Return the kernel, if there is an optimum over these parameters."""
        kernel: Kernel = model.kernel()
        return kernel

    def _values(self, model: Any) -> Mapping[str, float]:
        """Return the parameters of the kernel at a model."""
        values: Mapping[str, float] = model.kernel().defaults
        return values

    def _code(self, model: Any, kernel: Kernel, of: str, names: Sequence[str]) -> KernelCode:
        """Return the code of an output of the kernel and its derivative."""
        known = model._directions(exact=False).moving
        moved = dict.fromkeys(n for name in names for n in known[name] if n in kernel.parameters)
        return tangent_code(kernel, of, tuple(moved))
