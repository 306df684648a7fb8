r"""Evidence by simulation: networks and random features of finite size.

A simulated mean is compared with the limit d → ∞ to 4 standard errors plus a stated finite-size
bias of the form b/d. The constants b were measured with 400, 200 and 100 networks at d = 100, 200
and 300, and with 1500, 500 and 100 random features at d = 100, 200 and 400; they are stated with a
margin of some 50 %. Each comparison reports ``scaled_deviation`` = d (mean/theory − 1), so that
they can be measured again. Seeds are fixed, so every number is reproducible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from ...numeric.simulation import simulate
from ...runtime.generated import GeneratedFunction
from ..claims import Finding
from ..comparison import Comparison, compare, finding
from .model import SpikedRandomFeatures
from .simulated import network_setup

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NetworkCase:
    """A network whose errors are compared with the theory at two sizes.

    Attributes
    ----------
    model : mapping
        Arguments of the model.
    alpha, ridge : float
    test_bias, training_bias : float
        Stated bias of the errors, relative to the theory, times the dimension.
    """

    model: Mapping[str, Any]
    alpha: float
    ridge: float
    test_bias: float
    training_bias: float

    @property
    def name(self) -> str:
        """Student and teacher, with what is special."""
        extras = [
            f"{name} = {self.model[name]:g}"
            for name in ("beta", "noise_variance")
            if name in self.model
        ]
        return ", ".join([f"{self.model['student']}/{self.model['teacher']}", *extras])

    def build(self) -> SpikedRandomFeatures:
        """Return the model."""
        return SpikedRandomFeatures(**self.model)


# Bulk variances 1.021, 1.031, 1.030: what spiked random features neglect is of the order c − 1
# times a few per cent, below the standard errors here.
NETWORKS = (
    NetworkCase(
        {"student": "tanh", "teacher": "sin", "step_size": 2.0, "alpha0": 8.0},
        alpha=1.5, ridge=0.1, test_bias=3.0, training_bias=9.0,
    ),
    NetworkCase(
        {"student": "erf", "teacher": "erf", "step_size": 1.5, "alpha0": 6.0, "beta": 0.5,
         "noise_variance": 0.1},
        alpha=2.0, ridge=0.1, test_bias=6.0, training_bias=4.0,
    ),
    NetworkCase(
        {"student": "sin", "teacher": "tanh", "step_size": 1.5, "alpha0": 6.0, "beta": 1.5},
        alpha=1.0, ridge=0.1, test_bias=14.0, training_bias=14.0,
    ),
)  # fmt: skip

# Stated bias of the realised r, c, γ, times the dimension.
SPIKE_BIAS = {"spike_strength": 2.5, "bulk_variance": 1.2, "alignment": 1.2}


# ------------------------------------------------------------------ the gradient step


def realised_spike(
    sizes: Sequence[tuple[int, int]] = ((150, 24), (300, 8)), seed: int = 20
) -> Finding:
    """r, c, γ of networks after the step against Result 3.1.

    A circulated variant, with an extra h_1² in c − 1, has to be excluded by the same data.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Dimension and number of networks.
    seed : int
    """
    comparisons: list[Comparison] = []
    variant: dict[str, float] = {}
    excluded = True
    for case in NETWORKS:
        model = case.build()
        spike = model.spike
        for dimension, networks in sizes:
            # One readout sample for each ten inputs: the readout does not matter here.
            found = simulate(
                network_setup(model, dimension), [0.1], ridge=1.0, seeds=networks, seed=seed,
                n_test=1, progress=False,
            )  # fmt: skip
            for name, constant in SPIKE_BIAS.items():
                comparisons.append(
                    compare(
                        f"{name} of {case.name}", getattr(spike, name), getattr(found, name),
                        constant / dimension, dimension,
                    )
                )  # fmt: skip
        last = next(c for c in reversed(comparisons) if c.quantity.startswith("bulk_variance"))
        other = 1 + (spike.bulk_variance - 1) * _first_coefficient(model) ** 2
        variant[case.name] = abs(last.mean - other) / last.tolerance
        excluded &= variant[case.name] > 1
    found_all = finding(comparisons, "values of r, c, γ")
    return Finding(
        found_all.passed and excluded,
        found_all.summary
        + f"; c with a factor h1² misses by {min(variant.values()):.1f} tolerances or more",
        {**found_all.details, "variant_of_c_in_tolerances": variant},
    )


def _first_coefficient(model: SpikedRandomFeatures) -> float:
    """h_1 of the student."""
    from ...symbolic.activations import activation
    from ...symbolic.hermite import hermite_coefficient

    return float(hermite_coefficient(activation(model.student), 1).evalf(17))


# ------------------------------------------------------------------ conditional equivalence


def conditional_features(
    dimension: int = 300, matrices: int = 6, samples: int = 2000, seed: int = 3
) -> Finding:
    r"""Moments of the features given κ, at a finite random matrix, against μ_0, μ_1, μ_2².

    With :math:`t_j = b_j\cdot v` and :math:`x_\perp` across v, Result 3.2 says that given κ
    feature j has mean :math:`\mu_0 + \mu_1\kappa t_j`, covariance :math:`\mu_1 |b_{j\perp}|^2`
    with :math:`b_j\cdot x_\perp`, variance :math:`\mu_1^2|b_{j\perp}|^2 + \mu_2^2`, and that
    different features have covariance :math:`\mu_1^2\, b_{i\perp}\cdot b_{j\perp}`. Corrections
    are of the order 1/d: at most 0.7/d was measured, 1.2/d is allowed.
    """
    comparisons: list[Comparison] = []
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(matrices)]
    width = dimension
    for student, r, c in (("tanh", 1.1, 1.2), ("relu", 0.8, 1.1), ("sin", 1.0, 1.5)):
        model = SpikedRandomFeatures.from_parameters(
            student, "sin", spike_strength=r, bulk_variance=c, alignment=0.5
        )
        function = _function(model, "student")
        for kappa in (-1.5, 0.7):
            mu0, mu1, mu2_squared = _coefficients(model, kappa)
            with threadpoolctl.threadpool_limits(1, user_api="blas"):
                rows = [
                    _conditional_moments(g, function, r, c, kappa, width, dimension, samples)
                    for g in generators
                ]
            mean, along, spread, coupling = np.array(rows).T
            where = f"{student}, κ = {kappa:g}"
            scale = 1.2 / dimension
            comparisons += [
                compare(f"μ0, {where}", mu0, mean, scale, dimension),
                compare(f"μ1, {where}", mu1, along, scale, dimension),
                compare(
                    f"c μ1² + μ2², {where}", c * mu1**2 + mu2_squared, spread, scale, dimension
                ),
                compare(f"μ1², {where}", mu1**2, coupling, scale, dimension),
            ]
    return finding(comparisons, "conditional moments of features")


def _conditional_moments(
    generator: np.random.Generator, function: Callable[[Array], Any], r: float, c: float,
    kappa: float, width: int, dimension: int, samples: int,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Estimates of μ_0, μ_1, c μ_1² + μ_2² and μ_1² from one matrix and its own inputs."""
    bulk = generator.standard_normal((width, dimension))
    bulk *= math.sqrt(c) / np.linalg.norm(bulk, axis=1)[:, None]
    across = bulk.copy()
    across[:, 0] = 0.0  # the spike direction is the first axis
    inputs = generator.standard_normal((samples, dimension))
    inputs[:, 0] = 0.0
    projections = inputs @ across.T
    features = np.asarray(function(r * kappa + kappa * bulk[:, 0] + projections))
    gram = across @ across.T
    norms = np.diag(gram)
    centred = features - features.mean(axis=0)
    slopes = (centred * projections).mean(axis=0) / norms
    covariance = centred.T @ centred / (samples - 1)
    off = gram - np.diag(norms)
    # t_j averages to almost zero; what is left of it is taken out of the mean.
    mean = features.mean() - slopes.mean() * kappa * bulk[:, 0].mean()
    coupling = float((covariance * off).sum() / (off * off).sum())
    return float(mean), float(slopes.mean()), float(np.diag(covariance).mean()), coupling


def _coefficients(model: SpikedRandomFeatures, kappa: float) -> tuple[float, float, float]:
    from ...numeric.kernel_arrays import converged_tables

    kernel, values = model._kernel, model._parameter_values()
    node = np.array([kappa])
    assert kernel.tables is not None
    tables = converged_tables(kernel.tables, [values[p] for p in kernel.table_parameters], node)
    mu0, mu1, mu2_squared = (float(tables[n][0]) for n in ("mu_0", "mu_1", "mu_2_squared"))
    return mu0, mu1, mu2_squared


def _function(model: SpikedRandomFeatures, name: str) -> GeneratedFunction:
    return GeneratedFunction(model.derivation.activation_source, name)


# ------------------------------------------------------------------ the saddle point


@dataclass(frozen=True)
class FeatureCase:
    """Spiked random features that are compared with the theory at two sizes.

    Attributes
    ----------
    model : mapping
        Arguments of ``from_parameters``.
    alpha, ridge : float
    biases : mapping
        Stated bias of each quantity, absolute, times the dimension.
    """

    model: Mapping[str, Any]
    alpha: float
    ridge: float
    biases: Mapping[str, float]

    @property
    def name(self) -> str:
        """Student and teacher."""
        return f"{self.model['student']}/{self.model['teacher']}"


FEATURES = (
    FeatureCase(
        {"student": "relu", "teacher": "relu", "spike_strength": 1.0, "bulk_variance": 1.1,
         "alignment": 0.85},
        2.0, 0.1,
        {"test_error": 0.5, "training_error": 0.1, "m": 0.8, "theta": 0.5, "psi": 0.5,
         "q1": 0.5, "q2": 1.4},
    ),
    FeatureCase(
        {"student": "sign", "teacher": "sign", "spike_strength": 1.5, "bulk_variance": 1.2,
         "alignment": 0.9},
        2.0, 0.2,
        {"test_error": 1.4, "training_error": 0.3, "m": 2.4, "theta": 1.2, "psi": 0.6,
         "q1": 1.8, "q2": 3.0},
    ),
    FeatureCase(
        {"student": "erf", "teacher": "sin", "spike_strength": 1.2, "bulk_variance": 1.15,
         "alignment": 0.8, "beta": 2.0, "noise_variance": 0.1},
        1.5, 0.05,
        {"test_error": 0.3, "training_error": 0.1, "m": 0.8, "theta": 0.9, "psi": 0.5,
         "q1": 0.6, "q2": 0.3},
    ),
)  # fmt: skip
MEASURED = ("test_error", "training_error", "m", "theta", "psi", "q1", "q2")


def spiked_features(
    sizes: Sequence[tuple[int, int]] = ((150, 60), (300, 24)), seed: int = 5
) -> Finding:
    """Errors and overlaps of ridge regression on spiked random features against Result 3.3.

    These features are the model itself, so that nothing but the finite size is between the
    simulation and the theory; students need not be odd or continuous.
    """
    comparisons: list[Comparison] = []
    for case in FEATURES:
        comparisons += spiked_feature_comparisons(case, sizes, seed)
    return finding(comparisons, "errors and overlaps")


def spiked_feature_comparisons(
    case: FeatureCase, sizes: Sequence[tuple[int, int]], seed: int, width: int | None = None
) -> list[Comparison]:
    """Compare simulated features with the theory; `width` for its finite-width correction."""
    comparisons: list[Comparison] = []
    model = SpikedRandomFeatures.from_parameters(**case.model)
    theory = model.solve(alpha=case.alpha, ridge=case.ridge, width=width)
    for dimension, draws in sizes:
        found = model.simulate(
            dimension, case.alpha, case.ridge, seeds=draws, seed=seed, progress=False
        )
        for quantity in MEASURED:
            comparisons.append(
                compare(
                    f"{quantity} of {case.name}", getattr(theory, quantity),
                    found[quantity].to_numpy()[:, 0],
                    case.biases.get(quantity, 0.0) / dimension, dimension,
                )
            )  # fmt: skip
    return comparisons


def quick_networks() -> Finding:
    """Small networks of all cases."""
    return networks(((150, 20),))


def networks(
    sizes: Sequence[tuple[int, int]] = ((300, 30), (600, 12)),
    seed: int = 7,
    cases: Sequence[NetworkCase] = NETWORKS,
) -> Finding:
    """Errors of trained networks against the theory.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Dimension and number of networks.
    seed : int
    cases : sequence of NetworkCase
    """
    comparisons: list[Comparison] = []
    for case in cases:
        model = case.build()
        theory = model.solve(alpha=case.alpha, ridge=case.ridge)
        biases = {"test_error": case.test_bias, "training_error": case.training_bias}
        for dimension, count in sizes:
            found = model.simulate(
                dimension, [case.alpha], case.ridge, seeds=count, seed=seed, progress=False
            )
            for quantity, constant in biases.items():
                limit = getattr(theory, quantity)
                comparisons.append(
                    compare(
                        f"{quantity} of {case.name}", limit, found[quantity].to_numpy()[:, 0],
                        constant * limit / dimension, dimension,
                    )
                )  # fmt: skip
    return finding(comparisons, "errors of networks")
