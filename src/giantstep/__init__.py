"""giantstep: symbolic-numeric theory of feature learning in the first giant gradient steps.

Public names are imported on first use, so that ``import giantstep`` costs next to nothing.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .one_thread import ONE_THREAD, prepare_thread

__version__ = "0.1.0"
_LOADED = time.perf_counter()

if TYPE_CHECKING:
    from .derivations.certificates.certificate import Certificate
    from .derivations.certificates.certified_values import CertifiedValues
    from .derivations.claims import Claim, claims, declare_claim, evidence, verify
    from .derivations.curves import Curve
    from .derivations.evidence import Finding
    from .derivations.expansions.expansion import Expansion
    from .derivations.giant_steps.one_step import GiantStep, giant_step
    from .derivations.giant_steps.regimes import predict_fit, regimes
    from .derivations.giant_steps.simulated import simulate_giant_steps
    from .derivations.hermite_gradients.first_step import first_step
    from .derivations.hermite_gradients.sample_complexity import sample_complexity
    from .derivations.hermite_gradients.statistical_queries import correlational_query_bound
    from .derivations.hermite_gradients.training import train_by_preprocessed_step
    from .derivations.kernels.kernel import Kernel
    from .derivations.kernels.lower import lower
    from .derivations.kernels.solution import KernelSolution
    from .derivations.networks import Network, SimulatedNetworks, simulate
    from .derivations.one_gradient_step.large_steps import large_step_limit
    from .derivations.one_gradient_step.model import OneGradientStep
    from .derivations.penalties import paper_ridge
    from .derivations.spectra.spectrum import Spectrum
    from .derivations.spiked_random_features.bounds.letter_bounds import (
        learned_bias_bound,
        letter_bounds,
    )
    from .derivations.spiked_random_features.bounds.perfect_learning import perfect_learning
    from .derivations.spiked_random_features.bounds.step_bounds import bounds_over_step
    from .derivations.spiked_random_features.bulk_law import BulkLaw
    from .derivations.spiked_random_features.convex.losses import ConvexLoss, convex_loss
    from .derivations.spiked_random_features.convex.readout import ConvexReadout
    from .derivations.spiked_random_features.finite_size import FiniteSizeStudy, finite_size_study
    from .derivations.spiked_random_features.learning_rates import per_neuron_step
    from .derivations.spiked_random_features.model import SpikedRandomFeatures
    from .derivations.spiked_random_features.solution import Solution
    from .derivations.spiked_random_features.vocabulary.model import VocabularyFeatures
    from .symbolic.activations import Activation, activation, declare_activation
    from .symbolic.dual_activation import dual_activation
    from .symbolic.equivalence import conditional_equivalence
    from .symbolic.exact_numbers import rationalized
    from .symbolic.gaussian import GaussianExpectation, expect
    from .symbolic.gaussian_vector import GaussianVector, correlated_pair
    from .symbolic.hermite import (
        HermiteCoefficients,
        hermite_coefficient,
        hermite_coefficients,
        information_exponent,
    )
    from .symbolic.hermite_expansion import HermiteExpansion
    from .symbolic.leaps.generative_leap import generative_leap
    from .symbolic.leaps.isotropic_leap import isotropic_leap
    from .symbolic.leaps.leap_index import coordinate_leap, leap_index
    from .symbolic.leaps.leap_report import leap_filtration, leaps
    from .symbolic.leaps.staircase import Staircase, staircase
    from .symbolic.parser import parse_expression
    from .symbolic.projections import Projection, project, residual_norms
    from .symbolic.replica_stability import SingleSite
    from .symbolic.ridge_targets import ridge_target
    from .symbolic.saddle_point import FreeEnergy, SaddlePointSystem
    from .symbolic.stein import GradientExpansion, gradient_expansion
    from .symbolic.subspaces import Subspace
    from .symbolic.targets import Target, target

_HOMES = {
    "Activation": "symbolic.activations",
    "BulkLaw": "derivations.spiked_random_features.bulk_law",
    "Certificate": "derivations.certificates.certificate",
    "CertifiedValues": "derivations.certificates.certified_values",
    "Claim": "derivations.claims",
    "ConvexLoss": "derivations.spiked_random_features.convex.losses",
    "ConvexReadout": "derivations.spiked_random_features.convex.readout",
    "Curve": "derivations.curves",
    "Expansion": "derivations.expansions.expansion",
    "Finding": "derivations.evidence",
    "FiniteSizeStudy": "derivations.spiked_random_features.finite_size",
    "FreeEnergy": "symbolic.saddle_point",
    "GaussianExpectation": "symbolic.gaussian",
    "GaussianVector": "symbolic.gaussian_vector",
    "GiantStep": "derivations.giant_steps.one_step",
    "GradientExpansion": "symbolic.stein",
    "HermiteCoefficients": "symbolic.hermite",
    "HermiteExpansion": "symbolic.hermite_expansion",
    "Kernel": "derivations.kernels.kernel",
    "KernelSolution": "derivations.kernels.solution",
    "Network": "derivations.networks",
    "OneGradientStep": "derivations.one_gradient_step.model",
    "Projection": "symbolic.projections",
    "SaddlePointSystem": "symbolic.saddle_point",
    "SimulatedNetworks": "derivations.networks",
    "SingleSite": "symbolic.replica_stability",
    "Solution": "derivations.spiked_random_features.solution",
    "Spectrum": "derivations.spectra.spectrum",
    "SpikedRandomFeatures": "derivations.spiked_random_features.model",
    "Staircase": "symbolic.leaps.staircase",
    "Subspace": "symbolic.subspaces",
    "Target": "symbolic.targets",
    "VocabularyFeatures": "derivations.spiked_random_features.vocabulary.model",
    "activation": "symbolic.activations",
    "bounds_over_step": "derivations.spiked_random_features.bounds.step_bounds",
    "claims": "derivations.claims",
    "conditional_equivalence": "symbolic.equivalence",
    "convex_loss": "derivations.spiked_random_features.convex.losses",
    "coordinate_leap": "symbolic.leaps.leap_index",
    "correlated_pair": "symbolic.gaussian_vector",
    "correlational_query_bound": "derivations.hermite_gradients.statistical_queries",
    "declare_activation": "symbolic.activations",
    "declare_claim": "derivations.claims",
    "dual_activation": "symbolic.dual_activation",
    "evidence": "derivations.claims",
    "expect": "symbolic.gaussian",
    "finite_size_study": "derivations.spiked_random_features.finite_size",
    "first_step": "derivations.hermite_gradients.first_step",
    "generative_leap": "symbolic.leaps.generative_leap",
    "giant_step": "derivations.giant_steps.one_step",
    "gradient_expansion": "symbolic.stein",
    "hermite_coefficient": "symbolic.hermite",
    "hermite_coefficients": "symbolic.hermite",
    "information_exponent": "symbolic.hermite",
    "isotropic_leap": "symbolic.leaps.isotropic_leap",
    "large_step_limit": "derivations.one_gradient_step.large_steps",
    "leap_filtration": "symbolic.leaps.leap_report",
    "learned_bias_bound": "derivations.spiked_random_features.bounds.letter_bounds",
    "leap_index": "symbolic.leaps.leap_index",
    "leaps": "symbolic.leaps.leap_report",
    "letter_bounds": "derivations.spiked_random_features.bounds.letter_bounds",
    "lower": "derivations.kernels.lower",
    "paper_ridge": "derivations.penalties",
    "parse_expression": "symbolic.parser",
    "per_neuron_step": "derivations.spiked_random_features.learning_rates",
    "perfect_learning": "derivations.spiked_random_features.bounds.perfect_learning",
    "predict_fit": "derivations.giant_steps.regimes",
    "project": "symbolic.projections",
    "rationalized": "symbolic.exact_numbers",
    "regimes": "derivations.giant_steps.regimes",
    "residual_norms": "symbolic.projections",
    "ridge_target": "symbolic.ridge_targets",
    "sample_complexity": "derivations.hermite_gradients.sample_complexity",
    "simulate": "derivations.networks",
    "simulate_giant_steps": "derivations.giant_steps.simulated",
    "staircase": "symbolic.leaps.staircase",
    "target": "symbolic.targets",
    "train_by_preprocessed_step": "derivations.hermite_gradients.training",
    "verify": "derivations.claims",
}

__all__ = [
    "Activation",
    "BulkLaw",
    "Certificate",
    "CertifiedValues",
    "Claim",
    "ConvexLoss",
    "ConvexReadout",
    "Curve",
    "Expansion",
    "Finding",
    "FiniteSizeStudy",
    "FreeEnergy",
    "GaussianExpectation",
    "GaussianVector",
    "GiantStep",
    "GradientExpansion",
    "HermiteCoefficients",
    "HermiteExpansion",
    "Kernel",
    "KernelSolution",
    "Network",
    "OneGradientStep",
    "Projection",
    "SaddlePointSystem",
    "SimulatedNetworks",
    "SingleSite",
    "Solution",
    "Spectrum",
    "SpikedRandomFeatures",
    "Staircase",
    "Subspace",
    "Target",
    "VocabularyFeatures",
    "activation",
    "bounds_over_step",
    "claims",
    "conditional_equivalence",
    "convex_loss",
    "coordinate_leap",
    "correlated_pair",
    "correlational_query_bound",
    "declare_activation",
    "declare_claim",
    "dual_activation",
    "errors",
    "evidence",
    "expect",
    "finite_size_study",
    "first_step",
    "generative_leap",
    "giant_step",
    "gradient_expansion",
    "hermite_coefficient",
    "hermite_coefficients",
    "information_exponent",
    "isotropic_leap",
    "large_step_limit",
    "leap_filtration",
    "leap_index",
    "leaps",
    "learned_bias_bound",
    "letter_bounds",
    "lower",
    "paper_ridge",
    "parse_expression",
    "per_neuron_step",
    "perfect_learning",
    "predict_fit",
    "project",
    "rationalized",
    "regimes",
    "residual_norms",
    "ridge_target",
    "sample_complexity",
    "simulate",
    "simulate_giant_steps",
    "staircase",
    "target",
    "train_by_preprocessed_step",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module(".errors", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    prepare_thread()
    with ONE_THREAD:
        value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
