"""What is asked of every model on spiked features, whatever its readout and its letters."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from ...deprecations import by_name, renamed
from ...digits import checked_digits
from ...errors import ParameterError
from ...numeric.arguments import checked_switch, positive_array, positive_number
from ...numeric.networks.convex import Loss
from ...numeric.networks.network import Network
from ..certificates.certificate import certificate_wanted
from ..dataset_result import Simulation
from ..expansions.expansion import Expansion, checked_name, checked_order
from ..penalties import PaperRidge, readout_penalty
from ..sensitivities import HasSensitivities
from .simulated import has_letters, network_of, simulate_model

if TYPE_CHECKING:
    import xarray as xr


Answer = TypeVar("Answer")


class FeatureModel(HasSensitivities, Generic[Answer]):
    """A model of spiked features, or of a readout on them."""

    _dimension: ClassVar[int] = 400
    _rtol: ClassVar[float] = 1e-11

    @property
    @abstractmethod
    def _aspect(self) -> float:
        """p/d of the features."""

    @abstractmethod
    def _solved(
        self, alpha: float, ridge: Any, digits: int | None, certify: bool, progress: bool
    ) -> Answer:
        """Answer :meth:`solve` at checked arguments."""

    @by_name("alpha", "ridge")
    def solve(
        self,
        *,
        alpha: float,
        ridge: float | PaperRidge,
        digits: int | None = None,
        certify: bool = False,
        progress: bool = True,
        width: int | None = None,
    ) -> Answer:
        """Return the saddle point at one sample complexity and ridge penalty.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout.
        ridge : float
            Ridge penalty λ > 0, or :func:`giantstep.paper_ridge`.
        digits : int, optional
            Refine to so many digits with mpmath. Floats are then read as the decimal numbers that
            they print as. Of several letters: up to three, on a spike of rank one, given by
            :meth:`VocabularyFeatures.from_parameters`.
        certify : bool
            Prove `digits` digits (default: 15) with ball arithmetic: the solution holds a
            certificate with proven intervals, and its numbers are their midpoints. Of the square
            loss, and of letters for which digits can be asked; needs python-flint.
        progress : bool
            Show a progress bar if the digits take longer than a second.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model. With
            letters the solution holds the strict limit beside it.

        Returns
        -------
        Solution or ConvexSolution

        Raises
        ------
        ParameterError
            If an argument is outside its range, or a continuous law of letters comes without width.
        ConvergenceError
            If no solution is found: never seen for the square loss of one letter; letters that
            hardly differ leave no digits in the strict limit.
        CertificationError
            If a proof is wanted and does not succeed, or is known for the square loss only.
        UnsupportedExpressionError
            If a proof is wanted and an activation is outside of what can be enclosed.
        MissingDependencyError
            If a proof is wanted and python-flint is not installed.

        Warns
        -----
        ApproximationWarning
            If a network may deviate visibly from the spiked random features that stand for it;
            see :attr:`SpikedRandomFeatures.bulk_spread`.
        """
        model = self if width is None else self.at(width=width)
        certify = model._certificate_wanted(certify)
        alpha = positive_number("alpha", alpha)
        digits = None if digits is None else checked_digits(digits)
        penalty = readout_penalty(ridge, alpha, self._aspect, exact=certify or digits is not None)
        return model._solved(alpha, penalty, digits, certify, progress)

    def _certificate_wanted(self, certify: object) -> bool:
        return certificate_wanted(certify)

    @abstractmethod
    def _expanded(
        self, name: str, order: int, alpha: float | None, ridge: float | None, digits: int
    ) -> Expansion:
        """Answer :meth:`expansion` at a checked name, order and digits."""

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
        r"""Return the solution of the square loss as a series in a small quantity.

        Of letters: of up to three on a spike of rank one, given by
        :meth:`VocabularyFeatures.from_parameters`, without "small_step" and formulas.

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
            Of the errors, all order parameters and their conjugates, of letters all entries of the
            former, ``V1_12`` and such. Its `formulas` and `equations` have the coefficients and
            what determines them in symbols, derived when they are asked for.

        Raises
        ------
        ParameterError
            If an argument is missing, superfluous or outside its range, or letters, another loss
            or labels that are ±1 have no such expansion.
        AssumptionError
            If the limit does not exist or the coefficients diverge, as those of the ridgeless limit
            of a saturating student do; the message has the condition.
        ConvergenceError
            If two quadrature rules never agree.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("sin", "sin", step_size=1, alpha0=4)
        >>> print(model.expansion("small_step", 0, alpha=2, ridge=0.1, digits=10).remainder_order)
        2
        """
        model = self if width is None else self.at(width=width)
        return model._expanded(
            checked_name(name), checked_order(order), alpha, ridge, checked_digits(digits)
        )

    @renamed("curve(alpha=..., ridge=...)")
    def learning_curve(
        self, alpha: object, ridge: float, *, width: int | None = None
    ) -> xr.Dataset:
        """Return :meth:`curve` over sample complexities as a dataset, as the last release did."""
        alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
        model = self if width is None else self.at(width=width)
        found = model.curve(alpha=np.atleast_1d(alphas), ridge=ridge, rtol=self._rtol).to_dataset()
        return found.drop_vars(["ridge", "converged"]).assign_attrs(ridge=ridge)

    def _drawn(self) -> tuple[Any, str | None, Loss | None]:
        """Return the features, how labels are made of the target, and the loss if not square."""
        return self, None, None

    @by_name("labels", first=1)
    def network(
        self,
        dimension: int | None = None,
        *,
        labels: str | Callable[..., Any] | None = None,
        equivalent: bool = False,
    ) -> Network:
        """Return the network of the model at a finite dimension, for :func:`giantstep.simulate`.

        Parameters
        ----------
        dimension : int, optional
            Input dimension d; α0 d and β d have to be (close to) whole numbers. Default: 1000,
            with letters and for other losses 400.
        labels : {"regression", "sign", "probit", "logistic"} or callable, optional
            How labels are made from the target; default: "regression", or those of the readout.
        equivalent : bool
            The spiked random features instead of the network whose step makes them; a model that
            is given by its parameters always has these.

        Returns
        -------
        Network
            With its gradient step; of a model that is given by its parameters, their rows.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples and rows, a network after
            its step cannot have such rows, or the readout has labels of its own.
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
        features, own, _ = self._drawn()
        if own is not None and labels is not None:
            raise ParameterError(f"labels are those of the readout, {own!r}; leave them out")
        return network_of(
            features, self._dimension if dimension is None else dimension,
            own or labels or "regression", equivalent=checked_switch("equivalent", equivalent),
        )  # fmt: skip

    @by_name("alpha", "ridge", first=1)
    def simulate(
        self,
        dimension: int | None = None,
        *,
        alpha: object = (0.5, 1.0, 2.0),
        ridge: float = 0.1,
        equivalent: bool = False,
        control_variate: bool = False,
        seeds: int = 10,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
        store: str | os.PathLike[str] | None = None,
        executor: Executor | None = None,
    ) -> Simulation:
        """Train networks of finite size, or readouts of given features, and measure their errors.

        Parameters
        ----------
        dimension : int, optional
            Input dimension d; α d, α0 d and β d have to be (close to) whole numbers. Default: 1000,
            with letters and for other losses 400.
        alpha : float or sequence of float
            Sample complexities; the training sets of one network are nested.
        ridge : float
        equivalent : bool
            Draw the spiked random features instead of taking the step; a model that is given by
            its parameters always does.
        control_variate : bool
            Subtract the conditional error that the theory predicts at the projection of each
            sample on the spike, and add its mean: less scatter, the same expectation.
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

        Returns
        -------
        Simulation
            Dimensions ``seed`` and ``alpha``; errors of every network, their mean and standard
            error, and the realised spike strength, bulk variance and alignment of each network.
            Also losses, the objective and the order parameters of each readout; metrics are those
            of the theory alone.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples, or nothing says how such
            rows are drawn; if a control variate is asked for with letters or another loss.
        """
        features, labels, loss = self._drawn()
        control_variate = checked_switch("control_variate", control_variate)
        if control_variate and (loss is not None or labels is not None or has_letters(features)):
            raise ParameterError(
                "control_variate is the conditional error of the square loss on features of one "
                "letter; leave it out for letters, other losses and labels"
            )
        found = simulate_model(
            features, self._dimension if dimension is None else dimension, alpha, ridge, loss=loss,
            labels=labels or "regression", equivalent=checked_switch("equivalent", equivalent),
            control_variate=control_variate, seeds=seeds, seed=seed, workers=workers,
            progress=progress, store=store, executor=executor,
        )  # fmt: skip
        if features is not self:
            found.attrs["model"] = self.to_json()
        return Simulation(found)
