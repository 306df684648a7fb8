"""Questions about gradient and spectra; each method delegates to the module that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...deprecations import by_name
from .analysed import Analysed

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    import xarray as xr
    from numpy.typing import ArrayLike

    from ..hermite_gradients.first_step import FirstStep
    from .kernel_spectrum import ConjugateKernel
    from .population_gradient import PopulationGradient
    from .weight_spike import WeightSpike


class SpectrumAnalyses(Analysed):
    """Gradient, spike of the first layer, conjugate kernel and their simulation."""

    @by_name("digits", "certify")
    def weight_spike(self, *, digits: int | None = None, certify: bool = False) -> WeightSpike:
        r"""Return the spike of the first layer after the step: sizes, outlier and overlaps.

        Parameters
        ----------
        digits : int, optional
            So many digits with mpmath. Floats are then read as the decimal numbers that they
            print as.
        certify : bool
            Also prove intervals of the numbers, ``certificate``, to 15 digits or `digits`; needs
            python-flint.

        Raises
        ------
        ParameterError
            If `digits` is no positive whole number, or the spike is too large for a float.
        CertificationError
            If an interval cannot be proven, as at the threshold of the outlier.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> spike = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2).weight_spike()
        >>> spike.supercritical, round(spike.critical_step_size, 4), round(spike.alignment, 4)
        (False, 2.0963, 0.8039)
        """
        from .weight_spike import weight_spike

        return weight_spike(self._model, digits, certify)

    def weight_spike_curve(self, step_size: object) -> xr.Dataset:
        """Return the spike of the first layer over step sizes.

        Parameters
        ----------
        step_size : array-like
            Step sizes >= 0, in the `loss` of the model; that of the model itself plays no part.

        Returns
        -------
        Dataset
            ``theta1``, ``theta2``, ``singular_value``, ``alignment_spike``,
            ``alignment_teacher``, ``alignment_readout`` and ``supercritical`` over
            ``step_size``; see :class:`.weight_spike.WeightSpike`.

        Raises
        ------
        ParameterError
            If step sizes are no nonnegative finite numbers, or a spike is too large for a float.
        AssumptionError
            If the student jumps and a step is not zero.
        """
        from .weight_spike import weight_spike_curve

        return weight_spike_curve(self._model, step_size)

    @by_name("trained", "digits", "certify")
    def conjugate_kernel(
        self, *, trained: bool = True, digits: int | None = None, certify: bool = False
    ) -> ConjugateKernel:
        r"""Return the spectrum of the conjugate kernel: bulk, edges, outlier, label alignment.

        Parameters
        ----------
        trained : bool
            After the step; else at initialisation.
        digits : int, optional
            So many digits of the scalars with mpmath. Floats are then read as the decimal numbers
            that they print as.
        certify : bool
            Also prove intervals of the numbers, ``certificate``, to 15 digits or `digits`; needs
            python-flint.

        Raises
        ------
        ParameterError
            If `digits` is no positive whole number, `trained` no boolean, or the outlier is too
            large for a float.
        CertificationError
            If an interval cannot be proven, as where a gap of the bulk closes.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
        >>> kernel = model.conjugate_kernel()
        >>> kernel.supercritical, round(kernel.bulk_edge, 6), round(kernel.eigenvalue, 6)
        (True, 4.213821, 4.935209)
        """
        from .kernel_spectrum import conjugate_kernel

        return conjugate_kernel(self._model, trained, digits, certify)

    def gradient(self) -> FirstStep:
        r"""Derive the limits of the three parts of the first gradient, G = A + B + C.

        A is the spike, B the residual and C what the network's own output contributes. Of the
        result, ``values(alpha=model.step_samples, noise_variance=model.noise_variance)`` are
        numbers and ``population_spike`` is the leading term with infinitely many samples.

        Raises
        ------
        AssumptionError
            If the student jumps: its gradient is not defined.
        """
        from ...symbolic.activations import activation
        from ..hermite_gradients.first_step import first_step

        model = self._model
        return first_step(model.student, activation(model.teacher), centre=model.centre)

    def population_gradient(
        self, weights: ArrayLike, readout: ArrayLike, *, direction: ArrayLike | None = None
    ) -> PopulationGradient:
        r"""Return the first gradient of given weights with infinitely many samples.

        Parameters
        ----------
        weights : array-like (d, N)
            W, a column of any length for each neuron.
        readout : array-like (N,)
            a of the network :math:`N^{-1/2}\,a\cdot\sigma(W^\top x)`.
        direction : array-like (d,), optional
            The teacher's direction β_*; default: the first axis.

        Returns
        -------
        PopulationGradient
            The average of G with :math:`W_1 = W_0 + \eta\sqrt N\,G`, and its two parts. Without a
            closed form, functions that both have kinks take some milliseconds for each pair of
            neurons.

        Raises
        ------
        ParameterError
            If shapes do not fit, or a value is not finite.
        AssumptionError
            If the student jumps.
        ConvergenceError
            If there is no closed form and the functions are too steep for quadrature.
        """
        from .population_gradient import population_gradient

        return population_gradient(self._model, weights, readout, direction)

    def plot_singular_values(
        self, dimension: int | None = None, *, seeds: int = 1, seed: int = 0, ax: Any = None
    ) -> Any:
        """Draw the singular values of the first layer: theory and a simulated histogram.

        Parameters
        ----------
        dimension : int, optional
            Input dimension d of the simulated networks; default: theory alone.
        seeds, seed : int
            Number of networks, and entropy.
        ax : matplotlib.axes.Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from .weight_spike import plot_model

        return plot_model(self._model, dimension, seeds=seeds, seed=seed, ax=ax)

    def simulate_spectra(
        self,
        dimension: int,
        *,
        seeds: int = 5,
        matrices: Sequence[str] = ("weights", "kernel", "linearised"),
        layer: str = "gradient",
        steps: object = 1,
        fresh: bool = False,
        exponent: float = 0.0,
        seed: int = 0,
        workers: int | None = None,
        store: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> xr.Dataset:
        r"""Train networks of finite size and return spectra of first layers and kernels.

        Parameters
        ----------
        dimension : int
        seeds : int
        matrices : sequence of str
            "weights", the first layer; "kernel", :math:`\Phi\Phi^\top` of the features of α d
            samples; "linearised", the same of their Gaussian equivalent.
        layer, steps, fresh, exponent, seed, workers, store, progress
            As for :meth:`simulate`.

        Returns
        -------
        xarray.Dataset
            Over ``seed`` and ``step``: ``singular_values`` (descending, over ``mode``), squared
            cosines ``teacher_alignment``, ``spike_alignment`` (with X^T y of the steps so far, zero
            before the first) and ``readout_alignment``;
            ``kernel_eigenvalues`` (descending, over ``sample``) with ``label_alignment``, and the
            same with names that begin with ``linearised``.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or the dimension is too small.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
        >>> found = model.simulate_spectra(40, seeds=2, matrices=["weights"])
        >>> dict(found.singular_values.sizes)
        {'seed': 2, 'step': 2, 'mode': 40}
        """
        from .simulated import simulate_spectra

        return simulate_spectra(
            self._model, dimension, seeds=seeds, matrices=matrices, layer=layer, steps=steps,
            fresh=fresh, exponent=exponent, seed=seed, workers=workers, store=store,
            progress=progress,
        )  # fmt: skip
