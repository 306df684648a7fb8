"""Public names, and the modules that they are in: read by the front door and by type checkers."""

import typing

# For type checkers only, as in any module, so that the package does not seem to need all of itself.
if typing.TYPE_CHECKING:
    from . import errors as errors
    from .derivations.certificates.certificate import (
        Certificate as Certificate,
        CertifiedValues as CertifiedValues,
    )
    from .derivations.certificates.minimum import certified_minimum as certified_minimum
    from .derivations.claims import (
        Claim as Claim,
        claims as claims,
        declare_claim as declare_claim,
        evidence as evidence,
        verify as verify,
    )
    from .derivations.conjectures.conjecture import (
        ConjectureVerdict as ConjectureVerdict,
        conjecture as conjecture,
    )
    from .derivations.conjectures.random_targets import TargetFamily as TargetFamily
    from .derivations.conjectures.statements import (
        decreasing as decreasing,
        equal as equal,
        increasing as increasing,
        independent as independent,
        nonnegative as nonnegative,
        positive as positive,
    )
    from .derivations.curves import Curve as Curve
    from .derivations.dataset_result import Simulation as Simulation
    from .derivations.evidence import (
        Check as Check,
        Finding as Finding,
    )
    from .derivations.expansions.expansion import Expansion as Expansion
    from .derivations.explore import explore as explore
    from .derivations.first_gradient.first_step import first_step as first_step
    from .derivations.first_gradient.sample_complexity import sample_complexity as sample_complexity
    from .derivations.first_gradient.statistical_queries import (
        correlational_query_bound as correlational_query_bound,
    )
    from .derivations.first_gradient.training import (
        train_by_preprocessed_step as train_by_preprocessed_step,
    )
    from .derivations.giant_steps.conjectures import (
        ConjectureReport as ConjectureReport,
        check_conjecture_1 as check_conjecture_1,
        check_conjecture_3 as check_conjecture_3,
    )
    from .derivations.giant_steps.one_step import (
        GiantStep as GiantStep,
        giant_step as giant_step,
    )
    from .derivations.giant_steps.regimes import (
        predict_fit as predict_fit,
        regimes as regimes,
    )
    from .derivations.giant_steps.simulated import simulate_giant_steps as simulate_giant_steps
    from .derivations.kernels.kernel import Kernel as Kernel
    from .derivations.kernels.landscape import Landscape as Landscape
    from .derivations.kernels.lower import lower as lower
    from .derivations.kernels.solution import KernelSolution as KernelSolution
    from .derivations.multi_index.label_leaps import (
        LabelLeaps as LabelLeaps,
        label_leaps as label_leaps,
    )
    from .derivations.multi_index.model import MultiIndex as MultiIndex
    from .derivations.networks import (
        Network as Network,
        SimulatedNetworks as SimulatedNetworks,
        simulate as simulate,
    )
    from .derivations.one_gradient_step.large_steps import large_step_limit as large_step_limit
    from .derivations.one_gradient_step.model import OneGradientStep as OneGradientStep
    from .derivations.overlap_dynamics.model import OverlapDynamics as OverlapDynamics
    from .derivations.penalties import paper_ridge as paper_ridge
    from .derivations.saved_data import plot as plot
    from .derivations.spectra.spectrum import Spectrum as Spectrum
    from .derivations.spiked_random_features.bounds.letter_bounds import (
        learned_bias_bound as learned_bias_bound,
        letter_bounds as letter_bounds,
    )
    from .derivations.spiked_random_features.bounds.step_bounds import (
        bounds_over_step as bounds_over_step,
        perfect_learning as perfect_learning,
    )
    from .derivations.spiked_random_features.bulk_law import BulkLaw as BulkLaw
    from .derivations.spiked_random_features.convex.losses import (
        ConvexLoss as ConvexLoss,
        convex_loss as convex_loss,
    )
    from .derivations.spiked_random_features.convex.readout import ConvexReadout as ConvexReadout
    from .derivations.spiked_random_features.finite_size import (
        FiniteSizeStudy as FiniteSizeStudy,
        finite_size_study as finite_size_study,
    )
    from .derivations.spiked_random_features.model import (
        SpikedRandomFeatures as SpikedRandomFeatures,
    )
    from .derivations.spiked_random_features.solution import Solution as Solution
    from .derivations.spiked_random_features.spike import (
        per_neuron_step as per_neuron_step,
    )
    from .derivations.spiked_random_features.vocabulary.model import (
        VocabularyFeatures as VocabularyFeatures,
    )
    from .symbolic.expressions.activations import (
        Activation as Activation,
        activation as activation,
        declare_activation as declare_activation,
    )
    from .symbolic.expressions.exact_numbers import rationalized as rationalized
    from .symbolic.expressions.parser import parse_expression as parse_expression
    from .symbolic.gaussian.expectation import (
        GaussianExpectation as GaussianExpectation,
        GaussianVector as GaussianVector,
        correlated_pair as correlated_pair,
        expect as expect,
    )
    from .symbolic.hermite.coefficients import (
        HermiteCoefficients as HermiteCoefficients,
        hermite_coefficient as hermite_coefficient,
        hermite_coefficients as hermite_coefficients,
    )
    from .symbolic.hermite.dual_activation import dual_activation as dual_activation
    from .symbolic.hermite.equivalence import conditional_equivalence as conditional_equivalence
    from .symbolic.hermite.expansion import HermiteExpansion as HermiteExpansion
    from .symbolic.leaps.generative_leap import generative_leap as generative_leap
    from .symbolic.leaps.leap_index import (
        coordinate_leap as coordinate_leap,
        information_exponent as information_exponent,
        isotropic_leap as isotropic_leap,
        leap_index as leap_index,
    )
    from .symbolic.leaps.leap_report import (
        leap_filtration as leap_filtration,
        leaps as leaps,
    )
    from .symbolic.leaps.staircase import (
        Staircase as Staircase,
        staircase as staircase,
    )
    from .symbolic.printing.compiled import compiled as compiled
    from .symbolic.systems.equations import FreeEnergy as FreeEnergy
    from .symbolic.systems.replica_stability import SingleSite as SingleSite
    from .symbolic.systems.saddle_point import SaddlePointSystem as SaddlePointSystem
    from .symbolic.targets.cases import (
        Case as Case,
        CaseTree as CaseTree,
    )
    from .symbolic.targets.projections import (
        Projection as Projection,
        project as project,
        residual_norms as residual_norms,
    )
    from .symbolic.targets.stein import (
        GradientExpansion as GradientExpansion,
        gradient_expansion as gradient_expansion,
    )
    from .symbolic.targets.subspaces import Subspace as Subspace
    from .symbolic.targets.target import (
        Target as Target,
        ridge_target as ridge_target,
        target as target,
    )

__all__: list[str]
__version__: str
_LOADED: float
