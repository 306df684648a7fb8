r"""What is to be simulated: a network, its training, and the prediction, all checked.

Everything that can be refused is refused here, before the networks are trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp

from ...errors import AssumptionError, ParameterError, UnsupportedExpressionError
from ...numeric.arguments import positive_number, real_number, whole_number
from ...numeric.networks.directions import require_room
from ...numeric.networks.network import Network, check_draws
from ...numeric.networks.readout import FEWEST_HELD_OUT, RidgeReadout, bytes_needed
from ...numeric.networks.samples import Function
from ...numeric.networks.sizes import check_memory
from ...numeric.projection_sampling import sample_residual
from ...symbolic.activations import Activation, activation
from ...symbolic.leaps.spans import spans_of
from ...symbolic.leaps.staircase import Staircase, staircase
from ...symbolic.projections import number_text, residual_norms
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import Target
from ...symbolic.targets import target as read_target
from ..hermite_gradients.network_functions import network_functions

_REPLICAS = 4
"""Pairs of equal readout in a network: what they share is told from their fluctuations."""

_TEST_SAMPLES = 10_000
"""Fresh samples that the final ridge regression is tested on."""


@dataclass(frozen=True)
class NetworkSettings:
    """How the networks were made and trained.

    Attributes
    ----------
    student, target : str
        σ and f.
    dimension, samples, width, steps : int
        d, n for each step, p and T.
    sample_exponent : int
        κ: n counts as d^κ.
    step_size : float
        s.
    readout : str or tuple of float
        "gaussian", "signs", or the values.
    biases, preprocess : bool
    noise_variance : float
    ridge_samples : int
        Fresh samples of the final ridge regression; 0 without one.
    ridge : float or None
        The penalty asked for; None if held-out samples chose it.
    """

    student: str
    target: str
    dimension: int
    samples: int
    width: int
    steps: int
    sample_exponent: int
    step_size: float
    readout: str | tuple[float, ...]
    biases: bool
    preprocess: bool
    noise_variance: float
    ridge_samples: int
    ridge: float | None

    @property
    def samples_factor(self) -> float:
        """C of n = C d^κ."""
        return float(self.samples / self.dimension**self.sample_exponent)

    @property
    def fitted_degree(self) -> int:
        """Degree outside U that the readout fits: the lower exponent of its n and of p in d."""
        sizes = (self.width, self.ridge_samples)
        # A little more than the logarithm: rounding must not turn d^2 into d^1.
        return min(int(math.log(size) / math.log(self.dimension) + 1e-9) for size in sizes)


@dataclass(frozen=True)
class GiantStepsPlan:
    """A simulation that only has to be run.

    Attributes
    ----------
    settings : NetworkSettings
    network : Network
    readout : RidgeReadout or None
        The final ridge regression.
    staircase : Staircase
        The prediction for this network.
    relevant_subspace : Subspace
        V*, of the whole target.
    predicted_residual : str or None
        What the readout cannot fit: exact for polynomials, sampled for others; None without a
        readout.
    description : str
        Stands for the functions in `network`.
    """

    settings: NetworkSettings
    network: Network
    readout: RidgeReadout | None
    staircase: Staircase
    relevant_subspace: Subspace
    predicted_residual: str | None
    description: str


def plan_giant_steps(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation,
    *,
    dimension: int,
    samples: int | None = None,
    sample_exponent: int = 1,
    samples_factor: float | None = None,
    width: int = 100,
    steps: int = 2,
    step_size: float = 1.0,
    readout: str | Sequence[float] = "gaussian",
    biases: bool = False,
    preprocess: bool = False,
    noise_variance: float = 0.0,
    ridge_samples: int = 0,
    ridge: float | None = None,
) -> GiantStepsPlan:
    """Return what :func:`.simulated.simulate_giant_steps` would run, with its arguments and errors.

    Examples
    --------
    >>> plan = plan_giant_steps("x1 + x1*x2", "relu", dimension=100, samples_factor=20)
    >>> plan.settings.samples, plan.network.rate, plan.staircase.final
    (2000, 1.0, Subspace R^2 of R^2)
    """
    sigma = activation(student, argument="student")
    f = read_target(target)
    dimension = whole_number("dimension", dimension)
    exponent = whole_number("sample_exponent", sample_exponent)
    count = _samples(samples, samples_factor, dimension, exponent)
    size = positive_number("step_size", step_size)
    values = readout if isinstance(readout, str) else _values(readout)
    for name, flag in (("biases", biases), ("preprocess", preprocess)):
        if not isinstance(flag, bool):
            raise ParameterError(f"{name} must be True or False, got {flag!r}")
    functions = network_functions(sigma, f)
    steps, width = whole_number("steps", steps), whole_number("width", width)
    fitted = whole_number("ridge_samples", ridge_samples, minimum=0)
    require_room(dimension, f.dimension)
    for name, drawn in (("samples", count), ("ridge_samples", fitted)):
        check_draws(name, drawn, dimension)
    penalty = None if ridge is None else positive_number("ridge", ridge)
    if penalty is None and 0 < fitted < FEWEST_HELD_OUT:
        raise ParameterError(
            f"ridge_samples={fitted} are too few to hold out a fifth\n"
            f"  give a ridge, or ridge_samples >= {FEWEST_HELD_OUT}"
        )
    network = Network(
        student=functions.student,
        student_derivative=functions.student_derivative,
        teacher=functions.target,
        directions=f.dimension,
        dimension=dimension,
        width=width,
        steps=steps,
        step_samples=count,
        step_size=size * _power(dimension, (exponent - 1) / 2),
        readout=values,
        biases="gaussian" if biases else "none",
        paired=True,
        replicas=max(1, min(_REPLICAS, width // 2)),
        preprocess=preprocess,
        noise_variance=noise_variance,
    )
    regression = None
    if fitted:
        regression = RidgeReadout(fitted, penalty, intercept=True, test_samples=_TEST_SAMPLES)
    check_memory(
        f"width={width} and dimension={dimension}",
        network.bytes_needed + bytes_needed(network, regression),
        workers=1,
    )
    predicted = _prediction(f, sigma, network, exponent)
    settings = NetworkSettings(
        student=str(sigma),
        target=str(f),
        dimension=dimension,
        samples=count,
        width=width,
        steps=steps,
        sample_exponent=exponent,
        step_size=size,
        readout=network.readout if isinstance(network.readout, str) else tuple(network.readout),
        biases=biases,
        preprocess=preprocess,
        noise_variance=network.noise_variance,
        ridge_samples=fitted,
        ridge=penalty,
    )
    return GiantStepsPlan(
        settings,
        network,
        regression,
        predicted,
        spans_of(f).relevant_subspace,
        _residual(f, predicted, settings, functions.target) if settings.ridge_samples else None,
        f"{sp.srepr(sigma.expr)} on {sp.srepr(f.expr)} of {f.variables}",
    )


def _samples(samples: int | None, factor: float | None, dimension: int, exponent: int) -> int:
    if (samples is None) == (factor is None):
        raise ParameterError(
            "samples or samples_factor must be given, and not both: n for each step, or C of "
            "n = C d^sample_exponent"
        )
    if samples is not None:
        return whole_number("samples", samples)
    assert factor is not None
    count = positive_number("samples_factor", factor) * _power(dimension, exponent)
    if not 0.5 <= count < 2**53:
        raise ParameterError(
            f"samples_factor * dimension^{exponent} = {count:.3g} is no number of samples; "
            "change samples_factor"
        )
    return round(count)


def _power(dimension: int, exponent: float) -> float:
    try:
        return float(dimension) ** exponent
    except OverflowError:
        raise ParameterError(
            f"dimension^{exponent:g} is beyond all numbers; lower dimension or sample_exponent"
        ) from None


def _values(readout: Sequence[float]) -> tuple[float, ...]:
    try:
        given = tuple(readout)
    except TypeError:
        raise ParameterError(
            f"readout must be 'gaussian', 'signs' or a sequence of numbers, got {readout!r}"
        ) from None
    return tuple(real_number("readout", value) for value in given)


def _prediction(f: Target, sigma: Activation, network: Network, exponent: int) -> Staircase:
    seen = _without_linear_part(f) if network.preprocess else f
    values: list[sp.Expr] | None = None
    biases = network.biases != "none"
    if network.readout != "gaussian" and exponent == 1 and not biases:
        given = (1.0,) if network.readout == "signs" else tuple(map(float, network.readout))
        # A float is the fraction it stands for: which of them are equal is all that counts.
        exact = [sp.Rational(*Fraction(value).as_integer_ratio()) for value in given]
        values = [sign * value for value in exact for sign in (1, -1)]
    return staircase(
        seen, exponent, student=sigma, biases=biases, readout=values, max_steps=network.steps
    )


def _without_linear_part(f: Target) -> Target:
    rest = f.expr - f.symbol_part(0) - f.symbol_part(1)
    if rest.expand() == 0:
        raise AssumptionError(
            f"preprocess leaves nothing of target {f.name!r}: it is affine; leave it out"
        )
    return read_target(rest, f.variables)


def _residual(
    f: Target, predicted: Staircase, settings: NetworkSettings, function: Function
) -> str:
    """Squared norm of f beyond the degree that the readout fits outside of the last subspace."""
    degree, learned = settings.fitted_degree, predicted.final
    # The integrals of other targets may take minutes, or have no closed form.
    if f.is_polynomial:
        try:
            return number_text(residual_norms(f, learned, highest=degree)[degree])
        except UnsupportedExpressionError:  # Too many terms.
            pass
    if learned.is_whole:
        return "0"
    mean, error = sample_residual(function, learned.numeric(), degree, dimension=f.dimension)
    return f"{max(mean, 0.0):.4g} ± {error:.1g} by sampling"
