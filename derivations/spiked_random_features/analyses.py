"""What else can be asked of a model: each method delegates to the module that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...deprecations import by_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import xarray as xr

    from ..certificates.certified_values import CertifiedValues
    from ..expansions.expansion import Expansion
    from ..one_gradient_step.model import OneGradientStep
    from .bounds.bounds import Asymptotics, Bounds
    from .convex.readout import ConvexReadout
    from .model import SpikedRandomFeatures
    from .spectrum.spectrum import FeatureSpectrum
    from .vocabulary.learned_bias import LearnedBias


class Analyses:
    """Spectra, bounds, limits and other readouts of a model of spiked random features."""

    @property
    def _model(self) -> SpikedRandomFeatures:
        return cast("SpikedRandomFeatures", self)

    def bounds(self, *, digits: int | None = None, certify: bool = False) -> Bounds:
        r"""Return bounds of the test error: L ≤ E_∞ ≤ U, and the error of linear predictors.

        Parameters
        ----------
        digits : int, optional
            Refine to so many digits with mpmath.
        certify : bool
            Also prove intervals of L, E_∞ and U, ``certificate``, to 15 digits or `digits`; needs
            python-flint.

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

        return bounds(self._model, digits=digits, certify=certify)

    @by_name("digits")
    def certified_spike(self, *, digits: int = 15) -> CertifiedValues:
        """Return proven intervals of r, c, γ and ρ after the step.

        Raises
        ------
        ParameterError
            If the spike was given, so that there is nothing to prove.
        AssumptionError
            If the student jumps.
        CertificationError
            If a number cannot be enclosed.
        MissingDependencyError
            If python-flint is not installed.
        """
        from .precise import certified_spike

        return certified_spike(self._model, digits)

    def certified_coefficients(self, node: float, digits: int = 15) -> CertifiedValues:
        r"""Return proven intervals of the conditional coefficients at κ = `node`.

        Of the student μ0, μ1 and μ2² (``mu0``, ``mu1``, ``mu2_square``), of the teacher T0, T1 and
        T2, which holds the label noise. The floats of the spike mean the decimal numbers that they
        print as.

        Raises
        ------
        ParameterError
            If `node` is not finite.
        CertificationError
            If a number cannot be enclosed.
        MissingDependencyError
            If python-flint is not installed.
        """
        from .precise import certified_coefficients

        return certified_coefficients(self._model, node, digits)

    def asymptotics(self, *, digits: int | None = None) -> Asymptotics:
        """Return the limits of the test error: α → ∞, then β → ∞, and λ → ∞.

        Parameters
        ----------
        digits : int, optional
            Refine to so many digits with mpmath.
        """
        from .bounds.bounds import asymptotics

        return asymptotics(self._model, digits=digits)

    def expansion(
        self,
        name: str,
        order: int = 2,
        *,
        alpha: float | None = None,
        ridge: float | None = None,
        digits: int = 30,
        width: int | None = None,
    ) -> Expansion:
        r"""Return the solution as a series in a small quantity.

        Parameters
        ----------
        name : str
            "large_alpha" (α → ∞ in powers of 1/α, at fixed λ), "small_ridge" (λ → 0 at fixed α, in
            powers of λ, of √λ at the interpolation threshold α = β) or "small_step" (s → 0 in
            powers of the step size, at fixed α and λ; the step size of the model plays no role).
        order : int
            Last exponent that is kept.
        alpha, ridge : float
            What is held fixed: `ridge` for "large_alpha", `alpha` for "small_ridge", both for
            "small_step".
        digits : int
            Of the coefficients.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model.

        Returns
        -------
        Expansion
            Of the errors, all order parameters and their conjugates. Its `formulas` and
            `equations` have the coefficients and what determines them in symbols, derived when
            they are asked for.

        Raises
        ------
        ParameterError
            If an argument is missing, superfluous or outside its range.
        AssumptionError
            If the limit does not exist or the coefficients diverge, as those of the ridgeless limit
            of a saturating student do; the message has the condition.
        ConvergenceError
            If two quadrature rules never agree.

        Notes
        -----
        The saddle-point equations are scaled with the leading balance (V ∝ 1/α; V ∝ 1/λ for
        α < β; V, q ∝ 1/√λ for α = β) and solved order by order: the leading system by Newton's
        method, each further order linearly; coefficients are averages over κ of expanded
        integrands.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("sin", "sin", step_size=1, alpha0=4)
        >>> print(model.expansion("small_step", 0, alpha=2, ridge=0.1, digits=10).remainder_order)
        2
        """
        from .expansions.expand import expansion

        return expansion(
            self._model, name, order, alpha=alpha, ridge=ridge, digits=digits, width=width
        )

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
        from .bounds.bounds import realised_functions

        return realised_functions(self._model, kappa=kappa, alpha=alpha, ridge=ridge)

    @by_name("alpha", "points")
    def spectrum(
        self,
        *,
        alpha: float,
        points: int = 500,
        covariance: str = "sample",
    ) -> FeatureSpectrum:
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
        FeatureSpectrum
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

    @by_name("alpha", "ridge")
    def learned_bias(
        self,
        *,
        alpha: float,
        ridge: float,
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
        given._refuse_law("learned biases")
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

    def as_gradient_step(self, *, alpha: float) -> OneGradientStep:
        """Return this model, if it has no spike, as one gradient step of length zero.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout, which is a parameter of that model.

        Raises
        ------
        AssumptionError
            If there is a spike, a finite width, or a mean of the teacher that the features cannot
            fit.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> plain = SpikedRandomFeatures("erf", "tanh", step_size=0, beta=1.5)
        >>> step = plain.as_gradient_step(alpha=2)
        >>> print(step.at(step_size=1).solve(ridge=0.1).improvement > 0)
        True
        """
        from ..bridge import step_from_spiked

        return step_from_spiked(self._model, alpha)

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
