"""What can be asked of a model of one step: each method delegates to the module that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...deprecations import by_name
from ..penalties import one_penalty
from .risk_analyses import RiskAnalyses
from .spectrum_analyses import SpectrumAnalyses

if TYPE_CHECKING:
    import os
    from concurrent.futures import Executor

    import xarray as xr

    from ...numeric.networks.network import Network
    from ..spiked_random_features.model import SpikedRandomFeatures
    from .equivalence import GaussianEquivalence
    from .large_steps import LargeStepLimit
    from .several_steps import SeveralSteps


class Analyses(RiskAnalyses, SpectrumAnalyses):
    """Risk, spectra, limits and simulations of one gradient step."""

    def network(
        self,
        dimension: int,
        *,
        steps: int = 1,
        fresh: bool = False,
        layer: str = "gradient",
        exponent: float = 0.0,
    ) -> Network:
        """Return the network of the model at a finite dimension, for :func:`giantstep.simulate`.

        Parameters
        ----------
        dimension, steps, fresh, layer, exponent
            As for :meth:`simulate`, with one number of steps.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or the dimension too small.

        Examples
        --------
        >>> import giantstep as gs
        >>> network = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4).network(40)
        >>> network.rows, network.scaling, network.width
        ('gaussian', 'standard', 60)
        """
        from .simulated import one_step_network

        return one_step_network(
            self._model, dimension, steps=steps, fresh=fresh, layer=layer, exponent=exponent
        )

    @one_penalty
    def simulate(
        self,
        dimension: int,
        *,
        ridge: object = None,
        seeds: int = 10,
        features: str = "network",
        labels: str = "teacher",
        layer: str = "gradient",
        steps: object = 1,
        fresh: bool = False,
        exponent: float = 0.0,
        conditional: bool = False,
        exact_risk: bool = False,
        n_test: int | None = None,
        seed: int = 0,
        workers: int | None = None,
        store: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        executor: Executor | None = None,
    ) -> xr.Dataset:
        r"""Train networks of finite size and measure the risks of their ridge readouts.

        Readouts before and after the steps are fitted to the same samples, which are independent
        of those of the steps: the improvement is a paired difference.

        Parameters
        ----------
        dimension : int
            Input dimension d; α d, α0 d and β d have to be (close to) whole numbers.
        ridge : float or sequence of float
            λ ≥ 0, or :func:`giantstep.paper_ridge`.
        seeds : int
            Number of networks.
        features : {"network", "gaussian"}
            Features of the network, whose risk is measured on test samples; or their Gaussian
            equivalent :math:`\mu_1W^\top x + \mu_{>1}z`, whose population risk is exact.
        labels : {"teacher", "gaussian"}
            ``gaussian`` replaces the nonlinear part of the teacher in the readout's labels by
            independent Gaussian numbers; for Gaussian features.
        layer : {"gradient", "rank one", "theory"}
            Full gradient steps, their rank-one parts, or the spike of the limit.
        steps : int or sequence of int
            Gradient steps; readouts are fitted at each of these numbers, and at zero.
        fresh : bool
            Whether each step has samples of its own.
        exponent : float
            Steps of size :math:`\eta N^e`, such as 1/2 for large steps: no theory beside them.
        conditional : bool
            Also predict the errors of each layer by Gaussian equivalence; see
            :meth:`conditional_risk`.
        exact_risk : bool
            Population risk of the network by closed forms of E σσᵀ and E f_*σ, which there are for
            pairs such as erf/erf, sin/sin or relu/relu, in place of test samples.
        n_test : int, optional
            Test samples; max(10000, 10 d) by default.
        seed : int
            Entropy; the result depends on it and not on `workers`.
        workers : int, optional
            Threads.
        store : path, optional
            Folder for finished networks; a run that was interrupted resumes from it.
        progress : bool, optional
            Progress bar on the standard error stream; by default where that is a terminal.
        executor : concurrent.futures.Executor, optional
            Where to run the networks instead of in threads of this process.

        Returns
        -------
        xarray.Dataset
            ``risk``, ``training_error`` and ``objective`` over ``seed``, ``step`` and ``ridge``;
            over ``ridge`` their means before and after the steps, ``risk_initial``,
            ``risk_trained``, …, and ``improvement``, with ``…_standard_error`` and, without
            `exponent`, the limit as ``…_theory``.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or the dimension is too small.
        ClosedFormNotFoundError
            With `exact_risk`, if there are no such closed forms.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
        >>> found = model.simulate(40, ridge=[0.01, 0.1], seeds=2, n_test=1000)
        >>> dict(found.risk.sizes), bool((found.risk_trained > 0).all())
        ({'seed': 2, 'step': 2, 'ridge': 2}, True)
        """
        from .simulated import simulate

        return simulate(
            self._model, dimension, ridge=ridge, seeds=seeds,
            features=features, labels=labels, layer=layer, steps=steps, fresh=fresh,
            exponent=exponent, conditional=conditional, exact_risk=exact_risk, n_test=n_test,
            seed=seed, workers=workers, store=store, progress=progress, executor=executor,
        )  # fmt: skip

    def equivalence(self, step_exponent: object = 0) -> GaussianEquivalence:
        """Say whether features are equivalent to Gaussian ones, for η ~ N^step_exponent.

        See :func:`.equivalence.gaussian_equivalence`.
        """
        from .equivalence import gaussian_equivalence

        return gaussian_equivalence(self._model, step_exponent)

    def as_spiked_features(self) -> SpikedRandomFeatures:
        """Return this model of plain random features as spiked random features without spike.

        Solutions at the same `alpha` and `ridge` are the same: its test error is the risk here.

        Raises
        ------
        AssumptionError
            If there is a step: the two theories are of steps of different order. If a mean has to
            be subtracted that has no closed form.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> plain = OneGradientStep("erf", "tanh", alpha=2, beta=1.5, step_size=0)
        >>> spiked = plain.as_spiked_features().solve(alpha=2, ridge=0.1)
        >>> abs(spiked.test_error - plain.solve(ridge=0.1).initial) < 1e-13
        True
        """
        from ..bridge import spiked_from_step

        return spiked_from_step(self._model)

    @by_name("digits", "certify")
    def large_steps(self, *, digits: int | None = None, certify: bool = False) -> LargeStepLimit:
        """Return what steps with η of order √N can represent of the teacher, τ_*.

        With `certify` and python-flint, τ_* is also a proven interval.

        See :func:`.large_steps.large_step_limit`.
        """
        from .large_steps import large_steps_of

        return large_steps_of(self._model, digits, certify)

    def several_steps(self, steps: object, fresh: object = False) -> SeveralSteps:
        """Return this model after several steps with η of order one.

        See :func:`.several_steps.several_steps`.
        """
        from .several_steps import several_steps

        return several_steps(self._model, steps, fresh)
