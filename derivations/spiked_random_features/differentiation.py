"""The methods of models that differentiate: sensitivities and optima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ...deprecations import by_name, renamed
from ...digits import checked_digits
from ...numeric.arguments import positive_array
from ..optima import DEFAULT_BOUNDS, Optimum
from ..sensitivities import Directions, HasSensitivities

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures


class Differentiation(HasSensitivities):
    """Derivatives of a model's errors, and the minima that they lead to."""

    sensitivities = by_name("alpha", "ridge")(HasSensitivities.sensitivities)

    def _directions(self, *, exact: bool) -> Directions:
        from .directions import directions

        return directions(cast("SpikedRandomFeatures", self), exact=exact)

    def optimum(
        self,
        *,
        over: str | Sequence[str],
        of: str = "test_error",
        bounds: object = None,
        maximum: bool = False,
        digits: int | None = None,
        width: int | None = None,
        progress: bool = True,
        **parameters: Any,
    ) -> Any:
        """Return the parameters at which an output is smallest, by exact derivatives.

        A scan of the bounds, then descents from all of its minima to where the gradient vanishes;
        of several local minima the best, the others are listed. A minimum at an end of the bounds
        is reported as such (``kind``).

        Parameters
        ----------
        over : str or sequence of str
            Parameters that are optimised: ``alpha``, ``ridge``, ``beta``, ``noise_variance``;
            ``step_size`` and ``alpha0`` of a step, or ``spike_strength``, ``bulk_variance`` and
            ``alignment`` of a model that is given by its spike.
        of : str
            An error or an order parameter: any output of :meth:`kernel`.
        bounds : mapping from str to (float, float), or a pair for one parameter
            Positive parameters are searched in their logarithms. Default: 1e-6 to 1e6 for
            ``ridge``, 0.05 to 20 for ``step_size``; others have none.
        maximum : bool
            Look for the largest value instead.
        digits : int, optional
            Refine a ridge penalty that minimises the test error to so many digits.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model.
        progress : bool
            Show a bar over several optima that take longer than a second.
        **parameters
            ``alpha`` and ``ridge`` unless they are optimised; others replace those of the model.
            Arrays are axes of a grid of optima.

        Returns
        -------
        Optimum or xarray.Dataset
            A dataset where a parameter is an array: parameters and output of the best optimum,
            estimated errors, the norm of the ``gradient`` in the coordinates of the search,
            whether the optimum is inside the bounds, and the number of local ``minima``.

        Raises
        ------
        ParameterError
            If a name is unknown, a parameter is missing or both given and optimised, or bounds
            are no range inside of the parameter's domain.
        ConvergenceError
            If `digits` cannot be reached.

        Examples
        --------
        >>> from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
        >>> best = model.optimum(over="ridge", alpha=1.5)
        >>> print(f"{best.ridge:.12f} {best.test_error:.12f}, {best.kind}")
        0.197687294208 0.078106277426, interior minimum
        """
        from .optimal import spiked_optimum

        asked = {
            "of": of, "over": over, "bounds": bounds, "maximum": maximum, "progress": progress,
            "fixed": parameters,
        }  # fmt: skip
        digits = None if digits is None else checked_digits(digits)
        return spiked_optimum(_at_width(self, width), digits, asked)

    @renamed("optimum(over='ridge', alpha=...)")
    def optimal_ridge(
        self,
        alpha: float,
        bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        *,
        digits: int | None = None,
        width: int | None = None,
    ) -> Optimum:
        """Return the ridge penalty with the smallest test error, as :meth:`optimum` does."""
        found = self.optimum(over="ridge", alpha=alpha, bounds=bounds, digits=digits, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over='step_size', alpha=..., ridge=...)")
    def optimal_step_size(
        self,
        alpha: float,
        ridge: float,
        bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        *,
        width: int | None = None,
    ) -> Optimum:
        """Return the step size with the smallest test error, as :meth:`optimum` does."""
        found = self.optimum(over="step_size", alpha=alpha, ridge=ridge, bounds=bounds, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over=['ridge', 'step_size'], alpha=...)")
    def optimal_hyperparameters(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        step_bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        width: int | None = None,
    ) -> Optimum:
        """Return ridge penalty and step size together, as :meth:`optimum` does."""
        bounds = {"ridge": ridge_bounds, "step_size": step_bounds}
        found = self.optimum(over=[*bounds], alpha=alpha, bounds=bounds, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over=['ridge', 'step_size'], alpha=[...])")
    def optimal_curve(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        step_bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        width: int | None = None,
    ) -> xr.Dataset:
        """Return them over sample complexities, as :meth:`optimum` does."""
        bounds = {"ridge": ridge_bounds, "step_size": step_bounds}
        alphas = positive_array("alpha", alpha)
        found = self.optimum(over=[*bounds], alpha=alphas, bounds=bounds, width=width)
        return cast("xr.Dataset", found)


def _at_width(model: Differentiation, width: int | None) -> SpikedRandomFeatures:
    found = cast("SpikedRandomFeatures", model)
    return found if width is None else found.at_width(width)


class DifferencedOptimum(HasSensitivities):
    """Optima of models whose equations take minutes to differentiate along a search."""

    def optimum(
        self,
        *,
        over: str | Sequence[str],
        of: str = "test_error",
        bounds: object = None,
        maximum: bool = False,
        progress: bool = True,
        **parameters: Any,
    ) -> Any:
        """Return the parameters at which an output is smallest.

        As :meth:`giantstep.SpikedRandomFeatures.optimum`, by extrapolated differences of values,
        with estimated errors. Exact gradients, where they are worth it: ``kernel().optimum``.

        Parameters
        ----------
        over : str or sequence of str
            Any parameters that :meth:`curve` can be over, but for the width.
        of : str
            Any output of :meth:`curve`.
        bounds, maximum, progress, **parameters
            As there.

        Returns
        -------
        Optimum or xarray.Dataset

        Raises
        ------
        ParameterError
            If a name is unknown, a parameter is missing or both given and optimised, or bounds
            are no range inside of the parameter's domain.
        ConvergenceError
            If a point of a descent has no solution.
        """
        from .optimal import differenced_optimum

        asked = {
            "of": of, "over": over, "bounds": bounds, "maximum": maximum, "progress": progress,
            "fixed": parameters,
        }  # fmt: skip
        return differenced_optimum(self, asked)
