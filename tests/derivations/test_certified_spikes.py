"""Proven intervals of spikes, thresholds and coefficients against independent 40-digit values."""

import importlib.util
import math
from dataclasses import replace
from decimal import Decimal

import pytest
import sympy as sp

from giantstep import OneGradientStep, SpikedRandomFeatures
from giantstep.derivations.one_gradient_step import reference
from giantstep.derivations.spiked_random_features.precise import exact_spike
from giantstep.errors import CertificationError, ParameterError

from .one_step_cases import FIRST_LAYER

needs_flint = pytest.mark.skipif(
    importlib.util.find_spec("flint") is None, reason="python-flint is not installed"
)
QUICK = ("13",)
CASES = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.slow)
        for case in reference.reference_cases()
    ],
)


def rounds_to(interval, text):
    """Whether the interval is within half a unit of the 16th digit of a rounded number."""
    if Decimal(text) == 0:
        return interval.is_exact and interval.midpoint == 0
    half = sp.Rational(str(Decimal(5).scaleb(Decimal(text).adjusted() - 16)))
    return abs(interval.midpoint - sp.Rational(text)) + interval.radius <= half


@needs_flint
@CASES
def test_reference_values_lie_in_their_intervals(case):
    model = case.build()
    weights, kernel = (
        found.certificate
        for found in (model.weight_spike(certify=True), model.conjugate_kernel(certify=True))
    )
    for listed, name in FIRST_LAYER.items():
        assert rounds_to(weights[name], case.values[listed]), name
    for name in ("threshold", "bulk_edge"):
        assert rounds_to(kernel[name], case.values[name]), name
    has_outlier = case.values["label_alignment"] != "0"
    assert ("outlier" in kernel.values) == has_outlier
    if has_outlier:
        assert rounds_to(kernel["outlier"], case.values["kernel_eigenvalue"])
        assert rounds_to(kernel["label_alignment"], case.values["label_alignment"])
    assert weights.width < 1e-15 and kernel.width < 1e-15


@needs_flint
@pytest.mark.slow
def test_every_edge_of_the_bulk_is_proven():
    model = OneGradientStep("tanh", "tanh", alpha=4, beta=2, step_size=4, centre=True)
    kernel = model.conjugate_kernel(certify=True, digits=30)
    edges = [float(e) for pair in model.conjugate_kernel().edges for e in pair]
    proven = [kernel.certificate[f"inner edge {k}"] for k in (1, 2, 3)]
    proven.append(kernel.certificate["bulk_edge"])
    assert len(edges) == 4
    assert [float(e.midpoint) for e in proven] == pytest.approx(edges, rel=1e-14)


@needs_flint
def test_both_losses_and_the_population_gradient():
    given = {"alpha": 2.0, "beta": 1.5, "noise_variance": 0.25}
    half = OneGradientStep("erf", "erf", step_size=4.0, **given).weight_spike(certify=True)
    full = OneGradientStep("erf", "erf", step_size=2.0, loss="full", **given)
    spike = full.weight_spike(certify=True)
    assert spike.certificate["theta1"] == half.certificate["theta1"]
    assert spike.critical_step_size == pytest.approx(half.critical_step_size / 2, rel=1e-15)
    kernel = full.conjugate_kernel(certify=True).certificate
    half_kernel = replace(full, step_size=4.0, loss="half").conjugate_kernel(certify=True)
    twice = 2 * kernel["critical_step_size"].midpoint
    assert half_kernel.certificate["critical_step_size"].contains(twice)
    assert half_kernel.certificate["outlier"] == kernel["outlier"]
    endless = OneGradientStep("erf", "erf", step_size=4.0, alpha0=math.inf, **given)
    found = endless.weight_spike(certify=True).certificate
    assert found["alignment"].contains(1) and found["theta1"].contains(sp.Rational(16, 3) / sp.pi)


@needs_flint
@pytest.mark.parametrize(("student", "step", "says"), [("-erf(z)", 4, "an"), ("erf", 1, "no")])
def test_certificates_say_whether_there_is_an_outlier(student, step, says):
    model = OneGradientStep(student, "erf", alpha=2, beta=1.5, step_size=step)
    weights, kernel = (
        found.certificate
        for found in (model.weight_spike(certify=True), model.conjugate_kernel(certify=True))
    )
    assert f"{says} outlier" in weights.statement and f"{says} outlier" in kernel.statement
    assert ("outlier" in kernel) == (says == "an")
    # Along the teacher if the student rises with it.
    assert (weights["alignment"].lower > 0) == (student == "erf")
    if says == "no":
        assert weights["singular_value"].contains(1 + sp.sqrt(sp.Rational(3, 2)))


@needs_flint
def test_an_edge_at_zero_is_none_of_the_inner_edges():
    # Linear student, β = 1: ζ has a critical point at T = -√β, where it is zero.
    model = OneGradientStep("z", "z", alpha=2, beta=1, step_size=1)
    proof = model.conjugate_kernel(certify=True).certificate
    edges = [x for pair in model.conjugate_kernel().edges for x in pair]
    assert edges == pytest.approx([0, float(proof["bulk_edge"].midpoint)], rel=1e-14)
    assert "inner edge 1" not in proof.values


@needs_flint
def test_at_the_threshold_there_is_no_proof():
    # θ1 = s exactly for linear student and teacher with population gradient; √β = θ1² at s = 2.
    model = OneGradientStep("z", "z", alpha=2, beta=16, step_size=2, alpha0=math.inf)
    with pytest.raises(CertificationError, match="at the threshold"):
        model.weight_spike(certify=True)


@needs_flint
def test_pure_noise_and_a_given_spike_have_no_proof():
    model = OneGradientStep("z**3-3*z", "z", alpha=2, beta=1.5, step_size=1)
    with pytest.raises(CertificationError, match="pure noise"):
        model.conjugate_kernel(certify=True)
    assert model.weight_spike(certify=True).certificate["theta1"].is_exact
    given = {"spike_strength": 1, "bulk_variance": 1.1, "alignment": 0.9, "beta": 1}
    with pytest.raises(ParameterError, match="nothing to prove"):
        SpikedRandomFeatures.from_parameters("erf", "sin", **given).certified_spike()


@needs_flint
@pytest.mark.slow
def test_moments():
    found = OneGradientStep("softplus", "sign", alpha=2, step_size=0, centre=True)
    student = found.student_moments.certified(30)
    assert student["linear"].is_exact
    assert abs(student["mean"].midpoint - sp.Rational("0.8060591833474397845")) < 1e-18
    assert set(found.teacher_moments.certified()) == {"mean", "linear", "residual"}


@pytest.mark.parametrize(("r", "gamma", "rho"), [(1.5, 0.6, "4/5"), (-1.5, -0.8, "3/5")])
def test_a_given_spike_is_exact(r, gamma, rho):
    given = {"spike_strength": r, "bulk_variance": 1.25, "alignment": gamma}
    found = exact_spike(SpikedRandomFeatures.from_parameters("erf", "sin", **given))
    assert found == {
        "spike_strength": sp.Rational(str(r)),
        "bulk_variance": sp.Rational(5, 4),
        "alignment": sp.Rational(str(gamma)),
        "orthogonal_alignment": sp.Rational(rho),
        "norm_overlap": 0,
    }


@needs_flint
def test_conditional_coefficients_of_sine():
    given = {"spike_strength": 1.5, "bulk_variance": 1.25, "alignment": 0.6, "beta": 1}
    model = SpikedRandomFeatures.from_parameters("sin", "sin", **given, noise_variance=0.25)
    proof = model.certified_coefficients(0.5, digits=25)
    x, c, rho = sp.Rational(3, 4), sp.Rational(5, 4), sp.Rational(4, 5)
    mean, slope = sp.exp(-c / 2) * sp.sin(x), sp.exp(-c / 2) * sp.cos(x)
    square = (1 - sp.exp(-2 * c) * sp.cos(2 * x)) / 2
    at = sp.Rational(3, 10)
    exact = {
        "mu0": mean,
        "mu1": slope,
        "mu2_square": square - mean**2 - c * slope**2,
        "T0": sp.exp(-(rho**2) / 2) * sp.sin(at),
        "T1": rho * sp.exp(-(rho**2) / 2) * sp.cos(at),
        "T2": (1 - sp.exp(-2 * rho**2) * sp.cos(2 * at)) / 2 + sp.Rational(1, 4),
    }
    for name, value in exact.items():
        assert proof[name].contains(value) and proof[name].digits >= 25, name
    assert proof.digits == 25
    with pytest.raises(ParameterError, match="node must be finite"):
        model.certified_coefficients(math.inf)
