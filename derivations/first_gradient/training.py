r"""Train networks by one preprocessed gradient step: students and targets by name.

Algorithm 1 of Damian, Lee & Soltanolkotabi (arXiv 2206.15144) for the network :math:`\hat f(x) =
\frac1m \sum_j a_j\,\sigma(\langle w_j, x\rangle + b_j)`:

1. Rows uniform on the unit sphere in pairs with :math:`a = \pm1`, no biases: no output.
2. Labels without their mean :math:`\alpha = \frac1n\sum y` and linear part
   :math:`\beta = \frac1n\sum y\,x`.
3. One step with weight decay :math:`1/\eta_1`, so that :math:`W = -\eta_1 \nabla_W L` with
   :math:`L = \frac1{2n}\sum(\hat f - y)^2`, and new biases :math:`b_j \sim \mathcal{N}(0, 1)`.
4. Ridge regression for a on the same samples.

Two liberties: the ridge problem is solved in closed form, which is where the gradient descent of
the source converges to, and label noise is Gaussian. The target depends on the first r coordinates;
nothing but the measurements knows that.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sympy as sp

from ...errors import ParameterError
from ...numeric.arguments import positive_number, whole_number
from ...numeric.networks.network import Network, check_draws
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import Networks, simulate
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.target import Target, closed_target as read_target
from ..activation_functions import elementwise
from .sample_complexity import sample_complexity

TEST_SAMPLES = 10_000


@dataclass(frozen=True)
class PreprocessedNetworks:
    """Networks that only have to be trained.

    Attributes
    ----------
    random_features : Network
        Rows uniform on the sphere, of the same width, with biases of the same law.
    readout : RidgeReadout
        Fitted to the samples of the step without their mean and linear part, for both.
    """

    network: Network
    random_features: Network
    readout: RidgeReadout

    def train(self, *, seeds: int = 5, seed: int = 0, progress: bool = True) -> Networks:
        r"""Train them, each on samples of its own, and random features on the same samples.

        Parameters
        ----------
        seeds : int
            Number of networks; more of them extend a smaller run.
        seed : int
            Entropy of the run, >= 0; fixes all numbers.
        progress : bool
            Show a progress bar on the standard error stream if the run takes longer than a second.

        Returns
        -------
        Networks
            With ``relevant_share`` of :math:`|\nabla_W L|^2` and ``principal_angles``, see
            :func:`giantstep.numeric.networks.directions.subspace`; ``test_error``,
            ``random_features_error`` and ``linear_error``, that of :math:`\alpha + \beta\cdot x`
            alone, mean squared distances from the noise-free target on fresh samples;
            ``step_size``, ``ridge`` and ``random_features_ridge``, what was used.

        Raises
        ------
        ParameterError
            If an argument is outside its range, a function returns a wrong shape or a value that
            is not finite, or the gradient vanishes.
        KeyboardInterrupt
            If it is interrupted.
        """
        run = partial(simulate, readout=self.readout, seeds=seeds, seed=seed, progress=progress)
        result = run(self.network, ("subspace", "linear_part", "step_size", "errors"))
        if result.interrupted:
            raise KeyboardInterrupt
        random = run(self.random_features, "errors")
        if random.interrupted:
            raise KeyboardInterrupt
        names = ("relevant_share", "principal_angles", "linear_error", "step_size")
        values = {name: result[name] for name in names}
        for name, of_random in (
            ("test_error", "random_features_error"), ("ridge", "random_features_ridge"),
        ):  # fmt: skip
            values |= {name: result[name][:, 0, 0], of_random: random[name][:, 0, 0]}
        return Networks(values, result.completed, seed=result.seed)


def preprocessed_networks(
    student: Activation,
    target: Target,
    *,
    dimension: int,
    samples: int,
    width: int,
    noise_variance: float = 0.0,
    ridge: float | None = None,
    step_size: float | None = None,
    n_test: int | None = None,
) -> PreprocessedNetworks:
    """Return the networks of a student and a target.

    Parameters
    ----------
    dimension, samples : int
        d, at least the number of coordinates of the target, and n >= 2.
    width : int
        Number m of neurons, even: they come in pairs.
    noise_variance : float
        Variance of the label noise.
    ridge : float, optional
        Penalty λ > 0. By default a fifth of the samples is held out of all stages, and λ is the one
        of 15 values with the smallest error there, from 10⁻⁴ to 10³ times the mean diagonal entry
        of the Gram matrix of the features; random features choose theirs in the same way. Test
        samples are never looked at.
    step_size : float, optional
        η₁ > 0. By default the one that gives the rows a mean squared length of 1.
    n_test : int, optional
        Test samples for each network; 10000 by default.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the student jumps.
    """
    functions = network_functions(student, target)
    samples = whole_number("samples", samples, minimum=2)
    dimension = whole_number("dimension", dimension)
    check_draws("samples", samples, dimension)
    tests = TEST_SAMPLES if n_test is None else whole_number("n_test", n_test)
    penalty = None if ridge is None else positive_number("ridge", ridge)
    size = None if step_size is None else positive_number("step_size", step_size)
    readout = RidgeReadout(samples, penalty, step_samples=True, test_samples=tests)
    network = Network(
        student=functions.student, student_derivative=functions.student_derivative,
        teacher=functions.target, directions=target.dimension, dimension=dimension, width=width,
        noise_variance=noise_variance, readout="signs", paired=True, biases="later", steps=1,
        step_samples=readout.fitted(samples), step_size=1.0 if size is None else size,
        weight_decay=1.0, normalise=size is None, preprocess=True,
    )  # fmt: skip
    # Without pairs, all rows differ.
    return PreprocessedNetworks(network, replace(network, steps=0, paired=False), readout)


@dataclass(frozen=True)
class Estimate:
    """A simulated mean over networks and its standard error."""

    mean: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.standard_error:.2g}"


@dataclass(frozen=True, repr=False)
class TrainedNetworks(Result):
    r"""What one preprocessed step and ridge regression achieved, simulated.

    Attributes
    ----------
    dimension, samples, width, seeds, seed : int
        d, n, m, number of networks and entropy of the run.
    ridge : float or None
        The penalty asked for; None if held-out samples chose it.
    relevant_share : Estimate
        Share of the squared gradient inside the relevant space.
    predicted_share : float
        The same from the gradient expansion, for :math:`d \to \infty`.
    principal_angles : tuple of Estimate
        Angles in radians between the relevant space and the leading right singular vectors of W.
    test_error : Estimate
        Mean squared error against the noise-free target.
    random_features_error, linear_error : Estimate
        The same for random features of the same width and for the linear part alone.
    """

    _document = "networks trained on Hermite gradients"

    student: str
    target: str
    dimension: int
    samples: int
    width: int
    seeds: int
    seed: int
    noise_variance: float
    ridge: float | None
    relevant_share: Estimate = field(metadata=quantity("relevant share of the gradient"))
    predicted_share: float = field(metadata=quantity("predicted share, d → ∞", significant=4))
    principal_angles: tuple[Estimate, ...]
    test_error: Estimate = field(metadata=quantity("test error"))
    random_features_error: Estimate = field(metadata=quantity("test error of random features"))
    linear_error: Estimate = field(metadata=quantity("test error of the linear part"))

    def __repr__(self) -> str:
        return (
            f"TrainedNetworks({self.student!r} on {self.target!r}, d = {self.dimension}, "
            f"n = {self.samples}, test error {self.test_error}, random features "
            f"{self.random_features_error})"
        )

    def page(self) -> Iterable[Block]:
        """Return what was trained, and the means with their standard errors."""
        yield self._headline()
        rows = [(row.words, row.text) for row in self.entries()]
        angles = enumerate(self.principal_angles, start=1)
        # Behind both shares.
        rows[2:2] = [(f"principal angle {i}", str(angle)) for i, angle in angles]
        yield Table(rows, ("quantity", "mean ± s.e."))

    def _headline(self) -> str:
        chosen = "ridge held out" if self.ridge is None else f"ridge {self.ridge:g}"
        return (
            f"{self.student} on {self.target}: d = {self.dimension}, n = {self.samples}, "
            f"m = {self.width}, noise variance {self.noise_variance:g}, {chosen}; simulated, "
            f"{self.seeds} networks"
        )


def train_by_preprocessed_step(
    student: str | sp.Expr | Activation,
    target: str | sp.Expr | Activation | Target,
    *,
    dimension: int,
    samples: int,
    width: int,
    noise_variance: float = 0.0,
    ridge: float | None = None,
    step_size: float | None = None,
    seeds: int = 5,
    seed: int = 0,
    n_test: int | None = None,
    progress: bool = True,
    cache_folder: str | os.PathLike[str] | None = None,
) -> TrainedNetworks:
    """Train networks of finite size, with random features beside them.

    Parameters
    ----------
    student : str, Expr or Activation
        σ, continuous.
    target : str, Expr, Activation or Target
        f, in x1, x2, …
    dimension, samples, width : int
        d, n and the even number m of neurons.
    noise_variance : float
        Variance of the label noise.
    ridge, step_size : float, optional
        See :mod:`.training` for what happens without them: a fifth of the samples is
        held out to choose the ridge, and rows get a mean squared length of 1.
    seeds : int
        Number of networks, at least 2.
    seed : int
        Entropy of the run; fixes all numbers.
    n_test : int, optional
        Test samples for each network; 10000 by default.
    progress : bool
        Show a progress bar on the standard error stream if it takes longer than a second.
    cache_folder : path-like, optional
        Deprecated and without effect.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the student jumps, or is linear and the target has no linear part.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.

    Examples
    --------
    >>> result = train_by_preprocessed_step("relu", "x1*x2", dimension=12, samples=2000, width=60,
    ...                                     seeds=2, n_test=1000)
    >>> result.test_error.mean < result.random_features_error.mean
    True
    """
    if cache_folder is not None:
        warnings.warn(
            "cache_folder has no effect and goes with the next release: no source is written",
            DeprecationWarning,
            stacklevel=2,
        )
    if whole_number("seeds", seeds) < 2:
        raise ParameterError("seeds must be >= 2: one network has no standard error")
    sigma = activation(student, argument="student")
    f = read_target(target)
    planned = preprocessed_networks(
        sigma, f, dimension=dimension, samples=samples, width=width, noise_variance=noise_variance,
        ridge=ridge, step_size=step_size, n_test=n_test,
    )  # fmt: skip
    network = planned.network
    # Before the simulation, which may take long: it refuses students that show nothing.
    share = sample_complexity(sigma, f).relevant_share(
        network.dimension, network.step_samples, network.noise_variance
    )
    result = planned.train(seeds=seeds, seed=seed, progress=progress)
    angles = zip(
        result.mean("principal_angles"), result.standard_error("principal_angles"), strict=True
    )
    return TrainedNetworks(
        student=str(sigma),
        target=str(f),
        dimension=network.dimension,
        samples=planned.readout.sizes[0],
        width=network.width,
        seeds=seeds,
        seed=result.seed,
        noise_variance=network.noise_variance,
        ridge=None if ridge is None else float(ridge),
        relevant_share=_estimate(result, "relevant_share"),
        predicted_share=share,
        principal_angles=tuple(Estimate(float(mean), float(error)) for mean, error in angles),
        test_error=_estimate(result, "test_error"),
        random_features_error=_estimate(result, "random_features_error"),
        linear_error=_estimate(result, "linear_error"),
    )


def _estimate(found: Networks, quantity: str) -> Estimate:
    return Estimate(float(found.mean(quantity)), float(found.standard_error(quantity)))


# ----------------------------------------------------------------------
# Students and targets as functions of arrays, through source from our own printers.


@dataclass(frozen=True)
class NetworkFunctions:
    """Vectorised functions of float arrays; they can be sent to other processes.

    Attributes
    ----------
    student, student_derivative : callable
        Values of the same shape as the argument.
    target : callable
        Takes an array of shape (n, r), returns n values, or one number for all.
    """

    student: Callable[..., Any]
    student_derivative: Callable[..., Any]
    target: Callable[..., Any]


def network_functions(student: Activation, target: Target) -> NetworkFunctions:
    """Return student, its derivative and target for a simulation.

    Examples
    --------
    >>> import numpy as np
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> from giantstep.symbolic.targets.target import target
    >>> made = network_functions(activation("relu"), target("x1*x2 + sign(x1)"))
    >>> made.target(np.array([[2.0, 3.0], [-1.0, 4.0]])).tolist()
    [7.0, -5.0]
    """
    made = elementwise(student)
    made.require_slope()
    return NetworkFunctions(made, made.slopes, compiled(target.expr, (target.variables,)))
