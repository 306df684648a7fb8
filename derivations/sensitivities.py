"""Derivatives of any model's answers with respect to its parameters: one question, one answer.

A model with derivatives (:class:`HasSensitivities`) has a kernel and says how the kernel's
parameters move with its own (:class:`Directions`). The rest is the tangent program of kernels
(:mod:`.kernels.sensitivities`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..digits import checked_digits
from ..errors import ParameterError
from ..numeric.arguments import LEAST_MODERATE, moderate_number
from .curves import HasCurves
from .kernels.sensitivities import along, chosen_names
from .penalties import readout_penalty

if TYPE_CHECKING:
    from .kernels.kernel import Kernel
    from .kernels.sensitivities import Rates, Sensitivities

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


class HasSensitivities(HasCurves):
    """A model whose answers can be differentiated."""

    @abstractmethod
    def kernel(self) -> Kernel:
        """Return the kernel, with the parameters of the model as defaults."""

    @abstractmethod
    def _directions(self, *, exact: bool) -> Directions:
        """Return how parameters move: in floats, or as exact numbers and functions of them."""

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
