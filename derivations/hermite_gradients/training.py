r"""Train networks by one preprocessed gradient step: students and targets by name.

Algorithm 1 of Damian, Lee & Soltanolkotabi (arXiv 2206.15144). What is simulated, and how it
differs from the source, is stated in :mod:`.preprocessed_networks`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

import sympy as sp

from ...errors import ParameterError
from ...numeric.arguments import whole_number
from ...numeric.networks.run import Networks
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.activations import Activation, activation
from ...symbolic.targets import Target
from ...symbolic.targets import target as read_target
from .preprocessed_networks import preprocessed_networks
from .sample_complexity import sample_complexity


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
    student, target : str
    dimension, samples, width, seeds, seed : int
        d, n, m, number of networks and entropy of the run.
    noise_variance : float
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
        rows = [(row.words, row.text) for row in self.rows()]
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
        See :func:`.preprocessed_networks` for what happens without them: a fifth of the samples is
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
    found = planned.train(seeds=seeds, seed=seed, progress=progress)
    angles = zip(
        found.mean("principal_angles"), found.standard_error("principal_angles"), strict=True
    )
    return TrainedNetworks(
        student=str(sigma),
        target=str(f),
        dimension=network.dimension,
        samples=planned.readout.sizes[0],
        width=network.width,
        seeds=seeds,
        seed=seed,
        noise_variance=network.noise_variance,
        ridge=None if ridge is None else float(ridge),
        relevant_share=_estimate(found, "relevant_share"),
        predicted_share=share,
        principal_angles=tuple(Estimate(float(mean), float(error)) for mean, error in angles),
        test_error=_estimate(found, "test_error"),
        random_features_error=_estimate(found, "random_features_error"),
        linear_error=_estimate(found, "linear_error"),
    )


def _estimate(found: Networks, quantity: str) -> Estimate:
    return Estimate(float(found.mean(quantity)), float(found.standard_error(quantity)))
