"""The methods of the model that differentiate: sensitivities and optimal hyper-parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...deprecations import by_name
from ...digits import checked_digits
from .arguments import checked_point

if TYPE_CHECKING:
    import xarray as xr

    from .joint_optimum import OptimalHyperparameters
    from .model import SpikedRandomFeatures
    from .optimal import OptimalRidge, OptimalStepSize
    from .sensitivities import Sensitivities


class Differentiation:
    """Derivatives of a model's errors, and the minima that they lead to."""

    @by_name("alpha", "ridge")
    def sensitivities(
        self,
        *,
        alpha: float,
        ridge: float,
        digits: int | None = None,
        progress: bool = True,
        width: int | None = None,
    ) -> Sensitivities:
        """Return derivatives of errors and order parameters with respect to every parameter.

        Exact derivatives of the saddle-point equations, by the implicit function theorem;
        arguments as for :meth:`solve`. At a finite width p that is with respect to 1/p, too; the
        others are at fixed p.

        Examples
        --------
        >>> from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
        >>> round(model.sensitivities(alpha=1.5, ridge=0.1)["test_error", "ridge"], 9)
        -0.052830758
        """
        from .sensitivities import sensitivities

        model = _at_width(self, width)
        alpha, ridge = checked_point(model, alpha=alpha, ridge=ridge)
        digits = None if digits is None else checked_digits(digits)
        return sensitivities(model, alpha, ridge, digits=digits, show_progress=progress)

    def optimal_ridge(
        self,
        alpha: float,
        bounds: tuple[float, float] = (1e-6, 1e6),
        *,
        digits: int | None = None,
        width: int | None = None,
    ) -> OptimalRidge:
        """Return the ridge penalty within `bounds` that minimises the test error.

        The zero of the exact derivative; of several minima the lowest. An error that falls towards
        an end of the bounds is reported as such (``kind``). `digits` and `width` as for
        :meth:`solve`.
        """
        from .optimal import optimal_ridge

        digits = None if digits is None else checked_digits(digits)
        return optimal_ridge(_at_width(self, width), alpha, bounds, digits=digits)

    def optimal_step_size(
        self,
        alpha: float,
        ridge: float,
        bounds: tuple[float, float] = (0.05, 20.0),
        *,
        width: int | None = None,
    ) -> OptimalStepSize:
        """Return the step size within `bounds` that minimises the test error.

        As :meth:`optimal_ridge`, at a given ridge penalty; alpha0 and the noise stay what they are.
        """
        from .optimal import optimal_step_size

        return optimal_step_size(_at_width(self, width), alpha, ridge, bounds)

    def optimal_hyperparameters(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = (1e-6, 1e6),
        step_bounds: tuple[float, float] = (0.05, 20.0),
        width: int | None = None,
    ) -> OptimalHyperparameters:
        """Return ridge penalty and step size that jointly minimise the test error.

        By exact derivatives from every minimum of a scan; of several local minima the lowest, the
        others are listed. alpha0 and the noise stay what they are.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout. For several, :meth:`optimal_curve`.
        ridge_bounds, step_bounds : (float, float)
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model.
        """
        from .joint_optimum import optimal_hyperparameters

        return optimal_hyperparameters(_at_width(self, width), alpha, ridge_bounds, step_bounds)

    def optimal_curve(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = (1e-6, 1e6),
        step_bounds: tuple[float, float] = (0.05, 20.0),
        width: int | None = None,
    ) -> xr.Dataset:
        """Return the joint optimum over sample complexities.

        Arguments as for :meth:`optimal_hyperparameters`, `alpha` a sequence.

        Returns
        -------
        xarray.Dataset
            Dimension ``alpha``; ``ridge``, ``step_size``, ``test_error``, the norm of the
            ``gradient`` in the logarithms of both, whether the optimum is inside the bounds in
            each, and the number of local minima.
        """
        from .joint_optimum import optimal_curve

        return optimal_curve(_at_width(self, width), alpha, ridge_bounds, step_bounds)


def _at_width(model: Differentiation, width: int | None) -> SpikedRandomFeatures:
    found = cast("SpikedRandomFeatures", model)
    return found if width is None else found.at_width(width)
