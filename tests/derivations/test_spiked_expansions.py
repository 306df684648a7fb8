"""Expansions of the spiked model against its exact solutions, its limits and their conditions."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from giantstep import SpikedRandomFeatures
from giantstep.derivations.spiked_random_features.expansions.expand import _settled, _zeros
from giantstep.derivations.spiked_random_features.expansions.scaling import (
    highest_moment,
    saturation_rate,
)
from giantstep.errors import ApproximationWarning, AssumptionError, ParameterError
from giantstep.symbolic.expressions.activations import activation

DIRECT = SpikedRandomFeatures.from_parameters
ALL = ("test_error", "training_error", "V1", "V2", "m", "theta", "psi", "q1", "q2",
       "V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")  # fmt: skip


def erf(strength=0.4, **others):
    given = {"bulk_variance": 1.1, "alignment": 0.85, **others}
    return DIRECT("erf", "erf", spike_strength=strength, **given)


RELU = DIRECT("relu", "relu", spike_strength=0.3, bulk_variance=1.1, alignment=0.85)
SIN_TANH = DIRECT("sin", "tanh", spike_strength=0.7, bulk_variance=1.2, alignment=0.8,
                  noise_variance=0.1)  # fmt: skip
SIGN = DIRECT("sign", "sign", spike_strength=0.3, bulk_variance=1.2, alignment=0.9)
SIN_HE = DIRECT("sin", "He(3, z)/6", spike_strength=1.3, bulk_variance=1.05, alignment=0.95,
                noise_variance=0.2)  # fmt: skip


def errors(expansion, values, digits):
    """Deviations of all outputs from exact solutions."""
    found: dict[str, list[float]] = {name: [] for name in expansion.outputs}
    assert expansion.exact is not None
    for value in values:
        exact = expansion.exact(value, digits)
        for name in found:
            number = exact[name].context.mpf(repr(value))
            with warnings.catch_warnings():
                # A series whose kept terms vanish is all remainder.
                warnings.simplefilter("ignore", ApproximationWarning)
                found[name].append(abs(exact[name] - expansion(number, name)))
    return found


def require_slopes(expansion, values, digits, tolerance=0.05, outputs=ALL, *, first=None):
    """The error of each output falls with the exponent of its first neglected term.

    `first` is the tolerance of the first interval, where the next term may still count.
    """
    assert expansion.outputs == ALL
    for name, found in errors(expansion, values, digits).items():
        left = expansion.neglected[name]
        if name not in outputs:
            continue
        if left is None:
            assert max(found) < 10.0 ** (3 - digits)
            continue
        limit = first or tolerance
        for (near, a), (far, b) in pairwise(zip(values, found, strict=True)):
            slope = math.log(float(a / b)) / math.log(near / far)
            power = -left[0] if expansion.point else left[0]
            assert abs(slope - float(power)) < limit, (name, slope)
            limit = tolerance
        # The amplitude is that of the first neglected term, too.
        x = 1 / values[-1] if expansion.point else values[-1]
        assert float(found[-1] / abs(left[1])) == pytest.approx(x ** float(left[0]), rel=tolerance)


def test_many_samples():
    model = SpikedRandomFeatures("sin", "sin", step_size=1, alpha0=4, noise_variance=0.1)
    found = model.expansion("large_alpha", 1, ridge=0.1, digits=15)
    assert found.remainder_order == 2
    require_slopes(found, [1e2, 1e3], 15)


@pytest.mark.parametrize("alpha0", [4, pytest.param(math.inf, marks=pytest.mark.slow)])
def test_small_steps_with_many_and_infinitely_many_samples(alpha0):
    model = SpikedRandomFeatures("sin", "sin", alpha0=alpha0)
    found = model.expansion("small_step", 1, alpha=1.5, ridge=0.1, digits=15)
    assert found.remainder_order == 2  # an odd student: even powers only
    require_slopes(found, [0.1, 0.02], 15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("large_alpha", RELU),
        ("small_ridge", SIN_HE),
        ("threshold", SIN_TANH),
        ("few_samples", SIGN),
    ],
    ids=str,
)
def test_three_decades_with_45_digits(name, model):
    if name == "large_alpha":
        found, at = model.expansion(name, 2, ridge=0.1, digits=40), [1e2, 1e3, 1e4, 1e5]
    else:
        alpha = {"small_ridge": 2.0, "threshold": 1.0, "few_samples": 0.5}[name]
        found = model.expansion("small_ridge", 1, alpha=alpha, digits=40)
        # Powers of √λ: neighbouring terms are farther apart for smaller λ only.
        at = [1e-8, 1e-9, 1e-10, 1e-11] if alpha == 1 else [1e-5, 1e-6, 1e-7, 1e-8]
    require_slopes(found, at, 45)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("students", "given"),
    [
        (("erf", "sin"), {"alpha0": math.inf}),
        (("He(2, z)", "tanh(z) + z**2/5"), {"alpha0": 4, "allow_non_odd": True, "beta": 0.5}),
        (("erf", "relu"), {"alpha0": 2, "leading_order": "complete"}),
        (("erf", "erf"), {"alpha0": 4, "width": 20}),
    ],
    ids=str,
)
def test_three_decades_of_small_steps(students, given):
    model = SpikedRandomFeatures(*students, **given)
    found = model.expansion("small_step", 2, alpha=1.5, ridge=0.1)
    # m = 1/s is divided by a table of order s.
    outputs = [name for name in ALL if name not in ("m", "theta", "theta_hat")]
    # Steps with a spike below 1e-5 are refused. Of odd students every second term vanishes, of
    # others the next one counts for longer steps.
    first = 0.25 if "allow_non_odd" in given else None
    require_slopes(found, [4e-2, 4e-3, 4e-4, 4e-5], 45, outputs=outputs, first=first)


@pytest.mark.slow
def test_ridge_penalty_enters_with_the_second_order():
    """The limit minimises the error, so that the bias by λ/α is quadratic in it.

    What the training error gains by fitting n samples the test error loses, to first order.
    """
    series = [
        erf(noise_variance=0.1).expansion("large_alpha", 1, ridge=ridge, digits=10)
        for ridge in (0.1, 2)
    ]
    (limit, first), (same_limit, same_first) = (
        [float(c) for _, c in e.terms("test_error")] for e in series
    )
    assert limit == pytest.approx(same_limit, rel=1e-9)
    assert first == pytest.approx(same_first, rel=1e-9)
    second, other = (float(e.neglected["test_error"][1]) for e in series)
    assert second != pytest.approx(other, rel=1e-2)
    train = [float(c) for _, c in series[0].terms("training_error")]
    assert train == pytest.approx([limit + 0.1, -first], rel=1e-9)


@pytest.mark.slow
def test_zero_steps_are_plain_random_features_at_a_width_only():
    """In the strict limit m grows without cost: a feature linear in κ stays for s → 0."""
    model = SpikedRandomFeatures("erf", "erf", alpha0=4)
    plain = SpikedRandomFeatures("erf", "erf", step_size=0).solve(alpha=1.5, ridge=0.1).test_error
    found = [
        dict(e.terms())[0]
        for e in (
            model.expansion("small_step", 0, alpha=1.5, ridge=0.1, digits=12, width=width)
            for width in (None, 1000)
        )
    ]
    assert float(found[1]) == pytest.approx(plain, rel=1e-10)
    assert float(found[0]) < plain / 2
    near = SpikedRandomFeatures("erf", "erf", step_size=1e-3, alpha0=4).solve(alpha=1.5, ridge=0.1)
    assert float(found[0]) == pytest.approx(near.test_error, rel=1e-5)


@pytest.mark.parametrize(
    ("student", "rate"),
    [("erf", 1), ("erf(z/2)", 0.25), ("tanh", 0), ("sin", 0), ("relu", math.inf),
     ("sign", math.inf), ("He(3, z)", 0), ("abs(z)", 0), ("z*erf(z)", 0)],
)  # fmt: skip
def test_rate_at_which_a_student_saturates(student, rate):
    assert saturation_rate(activation(student)) == pytest.approx(rate, abs=2e-4)


def test_ridgeless_averages_of_erf_exist_below_the_critical_spike():
    c = 1.1
    critical = math.sqrt((1 + 4 * c) / 4)
    assert highest_moment(1.0, critical, c) == pytest.approx(1)
    with pytest.raises(AssumptionError, match="diverge"):
        erf(critical * 1.01).expansion("small_ridge", 0, alpha=0.5)
    with pytest.raises(AssumptionError, match="only the amplitude"):
        erf(critical * 0.99).expansion("small_ridge", 0, alpha=1)
    with pytest.raises(AssumptionError, match="highest order is 1"):
        erf(critical * 0.7).expansion("small_ridge", 2, alpha=0.5)


@pytest.mark.slow
def test_limits_without_a_next_coefficient_have_a_remainder_of_unknown_size():
    model = erf(math.sqrt((1 + 4 * 1.1) / 6))  # E[1/v^j] is finite for j < 3/2
    found = model.expansion("small_ridge", 0, alpha=0.5, digits=12)
    assert found.remainder_order == Fraction(49, 100)
    assert found.neglected["test_error"] == (Fraction(49, 100), math.inf)
    assert math.isinf(found.estimate_of_remainder(1e-6))
    assert found.trusted_up_to == 0
    assert "not known" in found.region
    limit = found(1e-6)  # warns of nothing: there is nothing to compare with
    left = [limit - model.solve(alpha=0.5, ridge=ridge).test_error for ridge in (1e-6, 1e-8, 1e-10)]
    for near, far in pairwise(left):
        # The square root, times logarithms.
        assert math.log(near / far) / math.log(100) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("composite", "apart", "settled"),
    # A trapezoidal rule squares its error with each level, of which 10 d^1.5 is a cautious reading;
    # panels add digits, and agree when they agree.
    [(True, "9e-13", True), (True, "2e-12", False), (False, "2e-9", True), (False, "3e-9", False)],
)
def test_rules_agree_as_far_as_their_levels_tell(composite, apart, settled):
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    terms = {"q1": {0: ctx.mpf(3), 1: ctx.mpf("1e-60")}}
    previous = {"q1": {0: ctx.mpf(3) * (1 + ctx.mpf(apart)), 1: -ctx.mpf("1e-60")}}
    assert _settled(ctx, terms, previous, 12, composite) is settled


def test_enormous_coefficients_make_no_others_vanish():
    # A saturating student: 1.74 - 3e9 ridge + 1.6e28 ridge**2 with 30 digits, and the next 1e55.
    terms = {
        "test_error": {0: mpmath.mpf("1.74"), 1: mpmath.mpf("3e9"), 2: mpmath.mpf("1.6e28")},
        "V1_hat": {0: mpmath.mpf("1e-48"), 1: mpmath.mpf("1.1"), 2: mpmath.mpf("1e-46")},
    }
    zeros = _zeros(mpmath.mp, terms, 30)
    kept = {name: [abs(v) > zeros[name][j] for j, v in x.items()] for name, x in terms.items()}
    assert kept == {"test_error": [True, True, True], "V1_hat": [False, True, False]}


@pytest.mark.slow
def test_a_saturating_student_has_a_ridgeless_limit():
    model = SpikedRandomFeatures("tanh", "sin", step_size=3.0, alpha0=20.0)
    series = model.expansion("small_ridge", 1, alpha=0.5)
    # The next term is 2e9 ridge; more digits than these are of tables out to where tanh is one.
    exact = model.solve(alpha=0.5, ridge=1e-20).test_error
    assert float(series.coefficients["test_error"][1]) == pytest.approx(exact, rel=1e-9)


LINEAR = DIRECT("z", "erf", spike_strength=1.0, bulk_variance=1.0, alignment=0.9)
WIDE = DIRECT("relu", "relu", spike_strength=1.0, bulk_variance=0.9, alignment=0.9)
NOTHING = SpikedRandomFeatures("erf", "He(3, z)", alpha0=math.inf)


@pytest.mark.parametrize(
    ("model", "name", "given", "said"),
    [
        (erf(), "large_alhpa", {"ridge": 0.1}, "did you mean 'large_alpha'"),
        (erf(), "large_alpha", {}, "holds ridge fixed"),
        (erf(), "large_alpha", {"ridge": 0.1, "alpha": 2}, "alpha is what 'large_alpha' expands"),
        (erf(), "large_alpha", {"ridge": 0}, "ridge must be"),
        (erf(), "large_alpha", {"ridge": math.nan}, "ridge must be"),
        (erf(), "large_alpha", {"ridge": 0.1, "order": -1}, "order"),
        (erf(), "large_alpha", {"ridge": 0.1, "order": 1.5}, "order"),
        (erf(), "large_alpha", {"ridge": 0.1, "digits": 0}, "digits"),
        (erf(), "large_alpha", {"ridge": 0.1, "width": 0}, "width"),
        (erf(), "small_ridge", {"ridge": 0.1, "alpha": 1}, "ridge is what"),
        (erf(), "small_ridge", {"alpha": math.inf}, "alpha must be"),
        (erf(), "small_step", {"alpha": 1}, "holds ridge fixed"),
        (erf(), "small_step", {"alpha": 1, "ridge": 0.1}, "takes none"),
        # Sides of relu that are constant count; affine features of too many neurons do not.
        (WIDE, "small_ridge", {"alpha": 1.0}, r"r\^2 kappa\^2/\(2c\)"),
        (LINEAR, "large_alpha", {"ridge": 0.1}, "affine"),
        pytest.param(NOTHING, "small_step", {"alpha": 1, "ridge": 0.1}, "leap index 3",
                     marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_series_that_there_are_not(model, name, given, said):
    with pytest.raises((ParameterError, AssumptionError), match=said):
        model.expansion(name, **given)
