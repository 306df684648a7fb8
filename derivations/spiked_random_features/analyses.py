"""What else can be asked of a model: each method delegates to the module that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import xarray as xr

    from .bounds.bounds import Bounds
    from .bounds.limits import Asymptotics
    from .convex.readout import ConvexReadout
    from .model import SpikedRandomFeatures
    from .spectrum.spectrum import Spectrum
    from .vocabulary.learned_bias import LearnedBias


class Analyses:
    """Spectra, bounds, limits and other readouts of a model of spiked random features."""

    @property
    def _model(self) -> SpikedRandomFeatures:
        return cast("SpikedRandomFeatures", self)

    def bounds(self, *, digits: int | None = None) -> Bounds:
        r"""Return bounds of the test error: L ≤ E_∞ ≤ U, and the error of linear predictors.

        Parameters
        ----------
        digits : int, optional
            Refine to so many digits with mpmath.

        Returns
        -------
        Bounds
            L holds for every α, β and λ, U for every α and β at the best λ only; E_∞ is the limit
            α → ∞ at this β and any fixed λ. All three are for p → ∞ (no cost of m).

        Raises
        ------
        ConvergenceError
            If two quadrature rules never agree.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> print(SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4).bounds().upper < 0.2)
        True
        """
        from .bounds.bounds import bounds

        return bounds(self._model, digits=digits)

    def asymptotics(self, *, digits: int | None = None) -> Asymptotics:
        """Return the limits of the test error: α → ∞, then β → ∞, and λ → ∞.

        Parameters
        ----------
        digits : int, optional
            Refine to so many digits with mpmath.
        """
        from .bounds.limits import asymptotics

        return asymptotics(self._model, digits=digits)

    def realised_functions(
        self,
        *,
        kappa: object = None,
        alpha: float | None = None,
        ridge: float | None = None,
    ) -> xr.Dataset:
        """Return, along the spike, the target and the functions that have the errors L, E_∞ and U.

        Parameters
        ----------
        kappa : array-like (n,), optional
            Projections on the spike; default 281 points from -3.5 to 3.5.
        alpha, ridge : float, optional
            Both: add the function that is learnt at this sample complexity and ridge penalty.
        """
        from .bounds.realised_functions import realised_functions

        return realised_functions(self._model, kappa=kappa, alpha=alpha, ridge=ridge)

    def spectrum(
        self,
        alpha: float,
        points: int = 500,
        *,
        covariance: str = "sample",
    ) -> Spectrum:
        r"""Return the spectrum of the features on a training set of n = α d samples.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d.
        points : int
            Grid points of the density.
        covariance : {"sample", "empirical", "kernel", "population"}
            :math:`K = \frac1p\sum_\mu\varphi_\mu\varphi_\mu^\top`; the same divided by n
            instead of p; the n × n matrix :math:`\varphi_\mu\cdot\varphi_\nu/p`;
            :math:`\mathbb{E}\,\varphi\varphi^\top`, which does not depend on α.

        Returns
        -------
        Spectrum
            Bulk, atoms, outliers, Stieltjes transform; ``plot``, ``simulate``, ``save``.

        Raises
        ------
        ParameterError
            If an argument is outside its range.
        ConvergenceError
            If a density cannot be resolved: activations that vary fast along a long spike.

        References
        ----------
        Cui et al., arXiv 2402.04980, appendix on the spectrum of the features. The outliers are
        derived here.
        """
        from .spectrum.spectrum import model_spectrum

        return model_spectrum(self._model, alpha, points, covariance)

    def learned_bias(
        self,
        alpha: float,
        ridge: float,
        *,
        interval: tuple[float, float] = (-6.0, 6.0),
        points: int = 61,
    ) -> LearnedBias:
        """Return the biases of the rows at which the training objective has its local minima.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout.
        ridge : float
            Ridge penalty λ > 0.
        interval : (float, float)
            Where to look.
        points : int
            Grid on which local minima are told apart.

        Returns
        -------
        LearnedBias
            All local minima with their errors; the bias is added after the step, and trained with
            the readout.
        """
        from .vocabulary.learned_bias import learned_bias
        from .vocabulary.model import VocabularyFeatures

        given, spike = self._model, self._model.spike
        model = VocabularyFeatures.from_parameters(
            given.student,
            given.teacher,
            spike_strengths=[spike.spike_strength],
            bulk_variances=[spike.bulk_variance],
            fractions=[1.0],
            alignment=spike.alignment,
            beta=given.beta,
            noise_variance=given.noise_variance,
            width=given.width,
            cache_folder=given.cache_folder,
        )
        return learned_bias(model, alpha, ridge, interval=interval, points=points, width=None)

    def with_loss(
        self,
        loss: Any,
        *,
        labels: str = "teacher",
        width: int | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> ConvexReadout:
        """Return a readout of these features that minimises another convex loss.

        Parameters
        ----------
        loss, labels, width, metrics
            As for :class:`.convex.readout.ConvexReadout`.

        Raises
        ------
        ParameterError
            If the loss is not convex, or the labels do not fit it.
        """
        from .convex.readout import ConvexReadout

        return ConvexReadout(self._model, loss, labels, width, metrics)
