"""The methods of the model that differentiate: sensitivities and optimal hyper-parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...numeric.arguments import positive_number
from .arguments import checked_digits

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures
    from .optimal import OptimalRidge, OptimalStepSize
    from .sensitivities import Sensitivities


class Differentiation:
    """Derivatives of a model's errors, and the minima that they lead to."""

    def sensitivities(
        self, alpha: float, ridge: float, *, digits: int | None = None, progress: bool = True
    ) -> Sensitivities:
        """Return derivatives of errors and order parameters with respect to every parameter.

        Exact derivatives of the saddle-point equations, by the implicit function theorem;
        arguments as for :meth:`solve`.

        Examples
        --------
        >>> from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
        >>> round(model.sensitivities(alpha=1.5, ridge=0.1)["test_error", "ridge"], 9)
        -0.052830758
        """
        from .sensitivities import sensitivities

        alpha, ridge = positive_number("alpha", alpha), positive_number("ridge", ridge)
        digits = None if digits is None else checked_digits(digits)
        return sensitivities(
            cast("SpikedRandomFeatures", self), alpha, ridge, digits=digits, show_progress=progress
        )

    def optimal_ridge(
        self,
        alpha: float,
        bounds: tuple[float, float] = (1e-6, 1e6),
        *,
        digits: int | None = None,
    ) -> OptimalRidge:
        """Return the ridge penalty within `bounds` that minimises the test error.

        The zero of the exact derivative; of several minima the lowest. An error that falls towards
        an end of the bounds is reported as such (``kind``). `digits` as for :meth:`solve`.
        """
        from .optimal import optimal_ridge

        digits = None if digits is None else checked_digits(digits)
        return optimal_ridge(cast("SpikedRandomFeatures", self), alpha, bounds, digits=digits)

    def optimal_step_size(
        self, alpha: float, ridge: float, bounds: tuple[float, float] = (0.05, 20.0)
    ) -> OptimalStepSize:
        """Return the step size within `bounds` that minimises the test error.

        As :meth:`optimal_ridge`, at a given ridge penalty; alpha0 and the noise stay what they are.
        """
        from .optimal import optimal_step_size

        return optimal_step_size(cast("SpikedRandomFeatures", self), alpha, ridge, bounds)
