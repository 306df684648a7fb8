"""Digits that are printed: they hold, and asking for more never changes them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import assume, given, settings, strategies as st

import giantstep as gs
from giantstep.digits import MOST_DIGITS, checked_digits, error_text, held_digits
from giantstep.errors import ParameterError

STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5)

exact_numbers = st.fractions(min_value=Fraction(-(10**8)), max_value=10**8).filter(bool)


def context(digits):
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx


def approximation(exact, ctx, offset, error):
    """A number within `error` of the exact one."""
    return ctx.mpf(exact.numerator) / exact.denominator + ctx.mpf(offset) * error


def significant(text):
    return text.split("e")[0].replace(".", "").lstrip("-0")


@settings(max_examples=40)
@given(
    exact_numbers, st.integers(-20, 20), st.integers(1, 60), st.integers(1, 60),
    st.floats(-0.99, 0.99), st.floats(-0.99, 0.99),
)  # fmt: skip
def test_more_digits_begin_with_those_of_fewer(exact, power, few, more, first, second):
    exact *= Fraction(10) ** power
    few, more = sorted((few, few + more))
    # What differs from a shorter decimal number by less than its error is printed as that one.
    unit = Fraction(10) ** (math.floor(math.log10(abs(exact))) - few - 1)
    assume(exact % unit == 0 or abs(exact / unit - round(exact / unit)) > Fraction(1, 10**6))
    texts = []
    for digits, offset in ((few, first), (more, second)):
        ctx = context(digits + 25)
        error = abs(ctx.mpf(exact.numerator) / exact.denominator) * ctx.mpf(10) ** (-digits - 10)
        texts.append(held_digits(approximation(exact, ctx, offset, error), digits, error))
    assert significant(texts[1]).startswith(significant(texts[0]).rstrip("0"))
    assert len(significant(texts[0])) <= few


@settings(max_examples=40)
@given(exact_numbers, st.integers(1, 30), st.integers(2, 25), st.floats(-0.99, 0.99))
def test_printed_digits_are_those_of_the_exact_number(exact, digits, known, offset):
    # The number that is printed is no farther from the exact one than one unit of its last place.
    ctx = context(80)
    error = abs(ctx.mpf(exact.numerator) / exact.denominator) * ctx.mpf(10) ** -known
    text = held_digits(approximation(exact, ctx, offset, error), digits, error)
    if "±" in text:
        value, bound = map(ctx.mpf, text.split(" ± "))
        assert abs(value - ctx.mpf(exact.numerator) / exact.denominator) <= 10 * bound
        return
    printed = Fraction(text)
    unit = Fraction(10) ** -(len(significant(text)) - 1) * abs(printed)
    assert abs(exact - printed) <= max(unit, 2 * abs(exact) / 10**known)


@pytest.mark.parametrize(
    ("value", "digits", "error", "text"),
    [
        ("0.66666666666666666666666", 6, None, "0.666666"),  # cut off, not rounded
        ("0.66666666666666666666666", 6, "1e-4", "0.666"),
        ("0.25", 12, "1e-30", "0.250000000000"),
        ("-0.9999999999999999999999", 8, "1e-20", "-1.0000000"),
        # Eight zeros in a row are no coincidence, seven may be one.
        ("0.25", 20, "1.5e-10", "0.25000000"),
        ("0.25", 20, "1.5e-9", "0.2"),
        ("1234.5", 3, None, "1.23e+03"),
        ("1.5e-5", 3, None, "0.0000150"),
        ("1.5e-6", 3, None, "1.50e-06"),
        ("1.5e-9", 3, None, "1.50e-09"),
        ("0", 9, None, "0"),
        ("1e-40", 9, "1e-30", "0"),
        ("1e33", 9, "1e34", "1.0e+33 ± 1.0e+34"),  # not zero to nine places
        ("1e-6", 9, "2e-5", "1.0e-6 ± 2.0e-05"),
        ("1.00", 5, "0.01", "1.0 ± 1.0e-02"),
        ("0.5", 5, "inf", "0.5 ± inf"),
    ],
)
def test_texts(value, digits, error, text):
    ctx = context(60)
    assert held_digits(ctx.mpf(value), digits, None if error is None else ctx.mpf(error)) == text


def test_errors_below_the_range_of_floats_have_a_text():
    assert error_text(context(30).mpf("1.25e-400")) == "1.3e-400"
    assert error_text(0.0) == "0"
    assert error_text(float("inf")) == "inf"
    assert error_text(9.99e-5) == "1.0e-04"


@pytest.mark.parametrize("digits", [0, -3, MOST_DIGITS + 1, 10**30, 2.0, "9", True, None])
def test_digits_out_of_range_are_refused(digits):
    with pytest.raises(ParameterError, match="digits must be"):
        checked_digits(digits)
    assert (checked_digits(1), checked_digits(MOST_DIGITS)) == (1, MOST_DIGITS)


@pytest.mark.parametrize("digits", [0, MOST_DIGITS + 1, 2.5])
@pytest.mark.parametrize(
    "ask",
    [
        lambda d: gs.SpikedRandomFeatures("erf", "erf").solve(alpha=1, ridge=0.1, digits=d),
        lambda d: gs.SpikedRandomFeatures("erf", "erf").bounds(digits=d),
        lambda d: gs.SpikedRandomFeatures("erf", "erf").sensitivities(alpha=1, ridge=0.1, digits=d),
        lambda d: gs.SpikedRandomFeatures("erf", "erf").optimum(over="ridge", alpha=1, digits=d),
        lambda d: STEP.risk(ridge=0.1, digits=d),
        lambda d: STEP.optimum(over="ridge", digits=d),
        lambda d: STEP.interpolation_peak(ridge=0.1, digits=d),
        lambda d: STEP.weight_spike(digits=d),
        lambda d: STEP.conjugate_kernel(digits=d),
        lambda d: STEP.large_steps(digits=d),
    ],
)
def test_one_bound_everywhere(ask, digits):
    with pytest.raises(ParameterError, match="digits"):
        ask(digits)


# -- results

NUMBERS = ("test_error", "training_error", "V1", "V2", "m", "theta", "psi", "q1", "q2", "q1_hat")


def texts_of(found, names):
    return {row.name: row.text for row in found.entries() if row.name in names}


def agree(results):
    """All printed digits of coarser results begin those of finer ones."""
    for coarse, fine in pairwise(results):
        for name, text in coarse.items():
            assert significant(fine[name]).startswith(significant(text).rstrip("0")), name


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        ("tanh", "sin"),
        pytest.param("erf", "erf", marks=pytest.mark.slow),
        pytest.param("sin", "tanh(z) + He(3, z)/6", marks=pytest.mark.slow),
    ],
)
def test_digits_of_the_spiked_model_agree(student, teacher):
    model = gs.SpikedRandomFeatures(student, teacher, step_size=1, alpha0=4)
    found = [model.solve(alpha=1.5, ridge=0.1, digits=d, progress=False) for d in (15, 30)]
    agree([texts_of(x, NUMBERS) for x in found])
    fine = found[-1]
    for coarse in found[:-1]:
        for name, error in coarse.errors.items():
            # Honest: no error is larger than its estimate.
            assert abs(getattr(coarse, name) - getattr(fine, name)) <= error
            assert error <= abs(getattr(fine, name)) * 10.0**-coarse.digits
            parts = (part[name] for part in coarse.budget.values())
            assert sum(parts) == error
    assert set(fine.budget) == {"quadrature", "truncation", "root", "rounding"}


def test_all_digits_hold_where_a_weak_spike_is_hardly_told_from_none():
    # mu_0 is nearly r kappa mu_1: m and theta are the solution of nearly collinear equations.
    model = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=-4e-5, bulk_variance=3, alignment=1e-4
    )
    coarse, fine = (model.solve(alpha=0.8, ridge=2e-5, digits=d, progress=False) for d in (12, 24))
    agree([texts_of(x, NUMBERS) for x in (coarse, fine)])
    for name, error in coarse.errors.items():
        assert abs(getattr(coarse, name) - getattr(fine, name)) <= error
        assert error <= abs(getattr(fine, name)) * 10.0**-12


@pytest.mark.parametrize(
    "asked", [(15, 30, 45), pytest.param((60, 100, 200), marks=pytest.mark.slow)]
)
def test_digits_of_one_gradient_step_agree(asked):
    model = gs.OneGradientStep("erf", "tanh", alpha=2, beta=1.5, noise_variance=0.1)
    names = ("initial", "trained", "improvement", "training_error_trained", "effective_ridge")
    agree([texts_of(model.risk(ridge=0.1, digits=d), names) for d in asked])
    best = [model.optimum(over="ridge", digits=d) for d in (15, 30)]
    agree([{n: x.text(getattr(x, n)) for n in ("ridge", "risk")} for x in best])


@pytest.mark.parametrize("asked", [(1, 15, 30), pytest.param((3, 60, 100), marks=pytest.mark.slow)])
def test_digits_of_a_mean_field_kernel_agree(asked):
    from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick

    kernel = gs.lower(sherrington_kirkpatrick())
    found = [kernel.solve(beta=1.3, h=0.2, digits=d, progress=False) for d in asked]
    agree([texts_of(x, x.values) for x in found])
    again = type(found[-1]).from_json(found[-1].to_json())
    assert str(again) == str(found[-1])
    assert again.budget == found[-1].budget


def test_digits_of_hermite_coefficients_agree():
    coefficients = gs.hermite_coefficients("tanh", 3)
    texts = [
        {str(k): held_digits(x, d) for k, x in enumerate(coefficients.evalf(d + 15)) if x != 0}
        for d in (15, 30, 60)
    ]
    agree(texts)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.2, 5), st.sampled_from([1e-3, 0.1, 2]), st.integers(1, 40), st.integers(1, 40))
def test_more_digits_of_a_risk_begin_with_those_of_fewer(step, ridge, few, more):
    model = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=round(step, 3))
    names = ("initial", "trained", "bias_trained", "variance_trained", "training_error_initial")
    agree([texts_of(model.risk(ridge=ridge, digits=d), names) for d in sorted((few, few + more))])


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.floats(0.2, 5), st.sampled_from([1e-3, 0.1, 2]), st.integers(1, 25), st.integers(1, 25))
def test_more_digits_of_a_solution_begin_with_those_of_fewer(alpha, ridge, few, more):
    model = gs.SpikedRandomFeatures("erf", "sin")
    alpha = round(alpha, 3)
    agree(
        [
            texts_of(model.solve(alpha=alpha, ridge=ridge, digits=d, progress=False), NUMBERS)
            for d in sorted((few, few + more))
        ]
    )
