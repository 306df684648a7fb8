"""The methods of the model that train networks of finite size, and draw them with the theory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ...deprecations import renamed
from ...numeric.arguments import checked_switch

if TYPE_CHECKING:
    import xarray as xr

    from ...numeric.networks.network import Network
    from .model import SpikedRandomFeatures
    from .realised import RealisedNetwork


class TrainedNetworks:
    """Networks of finite size beside the theory of a model."""

    @cached_property
    def bulk_spread(self) -> float:
        r"""Relative spread of the bulk covariance, which spiked random features neglect.

        Standard deviation over mean of the eigenvalues of the covariance that the trained bulk
        rows have in common, given the samples of the step:
        :math:`\frac{c-1}{c}\sqrt{\mathbb{E}\,y^4/(\alpha_0 Y^2)}` for odd students. Spiked random
        features have none. Zero for a model that is given by its spike, infinite if the labels
        have no fourth moment. Derived here.
        """
        from .spike import relative_bulk_spread

        model = cast("SpikedRandomFeatures", self)
        if model.direct_parameters is not None or model.step_size == 0:
            return 0.0
        found = model._derivation(unspiked=False, aligned=False)
        return relative_bulk_spread(found, model.step_size, model.alpha0, model.noise_variance)

    def network(
        self, dimension: int = 1000, labels: str | Callable[..., Any] = "regression"
    ) -> Network:
        """Return the network of the model at a finite dimension, for :func:`giantstep.simulate`.

        Parameters
        ----------
        dimension : int
            Input dimension d; α0 d and β d have to be (close to) whole numbers.
        labels : {"regression", "sign", "probit", "logistic"} or callable
            How labels are made from the target.

        Returns
        -------
        Network
            With its gradient step; of a model that is given by its parameters, their rows.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples and rows.
        AssumptionError
            If the student jumps and a step is to be taken.

        Examples
        --------
        >>> import giantstep as gs
        >>> model = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4)
        >>> network = model.network(50)
        >>> network.width, network.step_samples, network.rate
        (50, 200, 2.0)
        """
        from .simulated import network_of

        return network_of(cast("SpikedRandomFeatures", self), dimension, labels)

    def simulate(
        self,
        dimension: int = 1000,
        alpha: object = (0.5, 1.0, 2.0),
        ridge: float = 0.1,
        *,
        seeds: int = 10,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
        store: str | os.PathLike[str] | None = None,
        executor: Executor | None = None,
        control_variate: bool = False,
    ) -> xr.Dataset:
        """Train networks of finite size, or readouts of given features, and measure their errors.

        Parameters
        ----------
        dimension : int
            Input dimension d; α d, α0 d and β d have to be (close to) whole numbers.
        alpha : float or sequence of float
            Sample complexities; the training sets of one network are nested.
        ridge : float
        seeds : int
            Number of networks.
        seed : int
            Entropy; the result depends on it and not on `workers`.
        workers : int, optional
            Threads.
        progress : bool
        store : path, optional
            Folder for finished networks; a run that was interrupted resumes from it.
        executor : concurrent.futures.Executor, optional
            Where to run the networks instead of in threads of this process.
        control_variate : bool
            Subtract the conditional error that the theory predicts at the projection of each
            sample on the spike, and add its mean: less scatter, the same expectation.

        Returns
        -------
        xarray.Dataset
            Dimensions ``seed`` and ``alpha``; errors of every network, their mean and standard
            error, and the realised spike strength, bulk variance and alignment of each network.
            Also losses, the objective and the order parameters of each readout.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples.
        """
        from .simulated import simulate_model

        return simulate_model(
            cast("SpikedRandomFeatures", self), dimension, alpha, ridge,
            control_variate=checked_switch("control_variate", control_variate), seeds=seeds,
            seed=seed, workers=workers, progress=progress, store=store, executor=executor,
        )  # fmt: skip

    def realised(
        self,
        dimension: int = 1000,
        alpha: object = (0.5, 1.0, 2.0),
        ridge: float = 0.1,
        *,
        seed: int = 0,
        progress: bool = True,
        spectrum: bool = False,
    ) -> RealisedNetwork:
        """Train one network and return the theory at its own spike beside the asymptotic one.

        The spike strength, bulk variance and alignment of a network fluctuate around Result 3.1
        by :math:`O(d^{-1/2})`. The theory at the values that it realised has no such error.

        Parameters
        ----------
        dimension, alpha, ridge
            As for :meth:`simulate`.
        seed : int
            Fixes the network.
        progress : bool
        spectrum : bool
            Also evaluate the theory with averages over the bulk matrix of the network: the
            eigenvalues that it has, and how the spike and the teacher lie to its eigenvectors.

        Returns
        -------
        RealisedNetwork
            Realised spike, measured errors, and the theories at the network's finite width.

        Raises
        ------
        ParameterError
            As for :meth:`simulate`.
        """
        from .realised import realised_network

        return realised_network(
            cast("SpikedRandomFeatures", self), dimension, alpha, ridge, seed, progress, spectrum
        )

    @renamed("curve(...).plot(simulation=...)")
    def plot(
        self, curve: xr.Dataset, simulation: xr.Dataset | None = None, *, ax: Any = None
    ) -> Any:
        """Draw a learning curve, simulations with error bars, and the best linear predictor.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        """
        from ..curve_figure import plot_curve

        return plot_curve(curve, simulation=simulation, ax=ax)
