"""Public names, and the modules that they are in: read by the front door and by type checkers."""

from . import errors as errors
from .derivations.certificates.certificate import (
    Certificate as Certificate,
)
from .derivations.certificates.certificate import (
    CertifiedValues as CertifiedValues,
)
from .derivations.claims import (
    Claim as Claim,
)
from .derivations.claims import (
    claims as claims,
)
from .derivations.claims import (
    declare_claim as declare_claim,
)
from .derivations.claims import (
    evidence as evidence,
)
from .derivations.claims import (
    verify as verify,
)
from .derivations.curves import Curve as Curve
from .derivations.evidence import Finding as Finding
from .derivations.expansions.expansion import Expansion as Expansion
from .derivations.giant_steps.one_step import (
    GiantStep as GiantStep,
)
from .derivations.giant_steps.one_step import (
    giant_step as giant_step,
)
from .derivations.giant_steps.regimes import (
    predict_fit as predict_fit,
)
from .derivations.giant_steps.regimes import (
    regimes as regimes,
)
from .derivations.giant_steps.simulated import simulate_giant_steps as simulate_giant_steps
from .derivations.hermite_gradients.first_step import first_step as first_step
from .derivations.hermite_gradients.sample_complexity import sample_complexity as sample_complexity
from .derivations.hermite_gradients.statistical_queries import (
    correlational_query_bound as correlational_query_bound,
)
from .derivations.hermite_gradients.training import (
    train_by_preprocessed_step as train_by_preprocessed_step,
)
from .derivations.kernels.kernel import Kernel as Kernel
from .derivations.kernels.lower import lower as lower
from .derivations.kernels.solution import KernelSolution as KernelSolution
from .derivations.networks import (
    Network as Network,
)
from .derivations.networks import (
    SimulatedNetworks as SimulatedNetworks,
)
from .derivations.networks import (
    simulate as simulate,
)
from .derivations.one_gradient_step.large_steps import large_step_limit as large_step_limit
from .derivations.one_gradient_step.model import OneGradientStep as OneGradientStep
from .derivations.penalties import paper_ridge as paper_ridge
from .derivations.spectra.spectrum import Spectrum as Spectrum
from .derivations.spiked_random_features.bounds.letter_bounds import (
    learned_bias_bound as learned_bias_bound,
)
from .derivations.spiked_random_features.bounds.letter_bounds import (
    letter_bounds as letter_bounds,
)
from .derivations.spiked_random_features.bounds.step_bounds import (
    bounds_over_step as bounds_over_step,
)
from .derivations.spiked_random_features.bounds.step_bounds import (
    perfect_learning as perfect_learning,
)
from .derivations.spiked_random_features.bulk_law import BulkLaw as BulkLaw
from .derivations.spiked_random_features.convex.losses import (
    ConvexLoss as ConvexLoss,
)
from .derivations.spiked_random_features.convex.losses import (
    convex_loss as convex_loss,
)
from .derivations.spiked_random_features.convex.readout import ConvexReadout as ConvexReadout
from .derivations.spiked_random_features.finite_size import (
    FiniteSizeStudy as FiniteSizeStudy,
)
from .derivations.spiked_random_features.finite_size import (
    finite_size_study as finite_size_study,
)
from .derivations.spiked_random_features.learning_rates import per_neuron_step as per_neuron_step
from .derivations.spiked_random_features.model import SpikedRandomFeatures as SpikedRandomFeatures
from .derivations.spiked_random_features.solution import Solution as Solution
from .derivations.spiked_random_features.vocabulary.model import (
    VocabularyFeatures as VocabularyFeatures,
)
from .symbolic.activations import (
    Activation as Activation,
)
from .symbolic.activations import (
    activation as activation,
)
from .symbolic.activations import (
    declare_activation as declare_activation,
)
from .symbolic.dual_activation import dual_activation as dual_activation
from .symbolic.equivalence import conditional_equivalence as conditional_equivalence
from .symbolic.exact_numbers import rationalized as rationalized
from .symbolic.gaussian import (
    GaussianExpectation as GaussianExpectation,
)
from .symbolic.gaussian import (
    GaussianVector as GaussianVector,
)
from .symbolic.gaussian import (
    correlated_pair as correlated_pair,
)
from .symbolic.gaussian import (
    expect as expect,
)
from .symbolic.hermite import (
    HermiteCoefficients as HermiteCoefficients,
)
from .symbolic.hermite import (
    hermite_coefficient as hermite_coefficient,
)
from .symbolic.hermite import (
    hermite_coefficients as hermite_coefficients,
)
from .symbolic.hermite import (
    information_exponent as information_exponent,
)
from .symbolic.hermite_expansion import HermiteExpansion as HermiteExpansion
from .symbolic.leaps.generative_leap import generative_leap as generative_leap
from .symbolic.leaps.isotropic_leap import isotropic_leap as isotropic_leap
from .symbolic.leaps.leap_index import (
    coordinate_leap as coordinate_leap,
)
from .symbolic.leaps.leap_index import (
    leap_index as leap_index,
)
from .symbolic.leaps.leap_report import (
    leap_filtration as leap_filtration,
)
from .symbolic.leaps.leap_report import (
    leaps as leaps,
)
from .symbolic.leaps.staircase import (
    Staircase as Staircase,
)
from .symbolic.leaps.staircase import (
    staircase as staircase,
)
from .symbolic.parser import parse_expression as parse_expression
from .symbolic.projections import (
    Projection as Projection,
)
from .symbolic.projections import (
    project as project,
)
from .symbolic.projections import (
    residual_norms as residual_norms,
)
from .symbolic.replica_stability import SingleSite as SingleSite
from .symbolic.saddle_point import (
    FreeEnergy as FreeEnergy,
)
from .symbolic.saddle_point import (
    SaddlePointSystem as SaddlePointSystem,
)
from .symbolic.stein import (
    GradientExpansion as GradientExpansion,
)
from .symbolic.stein import (
    gradient_expansion as gradient_expansion,
)
from .symbolic.subspaces import Subspace as Subspace
from .symbolic.targets import (
    Target as Target,
)
from .symbolic.targets import (
    ridge_target as ridge_target,
)
from .symbolic.targets import (
    target as target,
)

__version__: str
