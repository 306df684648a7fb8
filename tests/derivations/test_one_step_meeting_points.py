"""Where lines of work meet: they have to say the same, to the last digit or as one expression."""

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep import OneGradientStep, Spectrum, SpikedRandomFeatures, paper_ridge
from giantstep.derivations.first_gradient import spike_mapping as mapping
from giantstep.derivations.first_gradient.first_step import first_step
from giantstep.derivations.giant_steps.one_step import giant_step
from giantstep.derivations.identities import equal
from giantstep.derivations.one_gradient_step import symbols
from giantstep.derivations.one_gradient_step.moments import exact_moments
from giantstep.derivations.one_gradient_step.reference import reference_document
from giantstep.derivations.one_gradient_step.symbols import (
    aligned_square,
    orthogonal_square,
    spike_square,
)
from giantstep.derivations.spiked_random_features import physics as fe
from giantstep.errors import AssumptionError, ParameterError
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.hermite.equivalence import CENTRE, SPREAD, conditional_equivalence
from giantstep.symbolic.targets.stein import DIMENSION, SAMPLES, gradient_expansion

PAIRS = (("erf", "erf"), ("tanh", "sin"), ("sin", "z + He(3, z)/2"), ("relu", "erf"))


def _in_numbers(expr, student, teacher):
    """An expression of the one-step theory with the exact moments of a pair in it."""
    own, label = exact_moments(student), exact_moments(teacher)
    return expr.xreplace(
        {
            symbols.linear: own["linear"],
            symbols.residual: own["residual"],
            symbols.teacher_linear: label["linear"],
            symbols.teacher_residual: label["residual"],
        }
    )


# ---------------------------------------------------- 1. both quantitative theories, without a step


def test_plain_random_features_to_25_digits():
    # 40-digit arithmetic, from the equations of both papers (arXiv 2402.04980 and 2205.01445).
    entry = reference_document()["without_step"]
    alpha, beta, ridge = (float(entry[k]) for k in ("alpha", "beta", "ridge"))
    one = OneGradientStep("erf", "erf", alpha=alpha, beta=beta, step_size=0)
    other = SpikedRandomFeatures("erf", "erf", step_size=0, beta=beta)
    risk = one.risk(ridge=ridge, digits=26)
    solution = other.solve(alpha=alpha, ridge=ridge, digits=26, progress=False)
    for text, first, second in (
        (entry["test_error"], risk.initial, solution.test_error),
        (entry["training_error"], risk.training_error_initial, solution.training_error),
    ):
        ctx = mpmath.mp.clone()
        ctx.dps = 40
        expected = ctx.mpf(text)
        for value in (first, second):
            assert abs(ctx.mpf(value) - expected) <= abs(expected) * 5.1e-25
    assert risk.initial == risk.trained


@pytest.mark.parametrize(
    ("student", "teacher", "alpha", "beta", "ridge", "noise"),
    [
        pytest.param("tanh", "erf", 0.4, 3.0, 0.3, 0.0, marks=pytest.mark.slow),
        ("erf", "relu", 1.0, 1.0, 0.02, 0.1),
        pytest.param("z + He(3, z)/5", "sin", 1.7, 2.2, 4.0, 0.2, marks=pytest.mark.slow),
    ],
)
def test_plain_random_features_elsewhere(student, teacher, alpha, beta, ridge, noise):
    model = OneGradientStep(student, teacher, alpha, beta, 0, noise, centre=True)
    spiked = model.as_spiked_features()
    # The spiked features keep the mean of the teacher: they are given relu without it.
    centred = "relu(z) - 1/sqrt(2*pi)" if teacher == "relu" else teacher
    assert activation(spiked.teacher).expr == activation(centred).expr
    for penalty in (ridge, paper_ridge(ridge)):
        one, other = model.risk(ridge=penalty), spiked.solve(alpha=alpha, ridge=penalty)
        assert one.initial == pytest.approx(other.test_error, rel=1e-11)
        assert one.training_error_initial == pytest.approx(other.training_error, rel=1e-11)
    back = spiked.as_gradient_step(alpha=alpha)
    assert back.risk(ridge=ridge).initial == pytest.approx(
        model.risk(ridge=ridge).initial, rel=1e-13
    )


# One interval with zeros; two intervals; no zeros; a linear student; a student with a mean.
SPECTRA = [
    pytest.param("erf", 2.0, 1.5, id="zeros"),
    pytest.param("tanh", 4.0, 2.0, id="gap", marks=pytest.mark.slow),
    pytest.param("relu", 0.7, 1.2, id="mean", marks=pytest.mark.slow),
    pytest.param("z", 2.0, 3.0, id="linear", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("student", "alpha", "beta"), SPECTRA)
def test_kernels_of_plain_random_features_have_one_spectrum(student, alpha, beta):
    """Closed forms of the one theory, equations from the free energy of the other."""
    step = OneGradientStep(student, "erf", alpha, beta, 0, centre=True)
    one = step.conjugate_kernel()
    other = step.as_spiked_features().spectrum(alpha=alpha, points=200, covariance="kernel")
    assert isinstance(one, Spectrum) and isinstance(other, Spectrum)
    np.testing.assert_allclose(other.edges, one.edges, rtol=1e-13)
    np.testing.assert_allclose(other.masses, one.masses, rtol=1e-9)
    np.testing.assert_allclose(
        np.reshape(other.atoms, (-1, 2)), np.reshape(one.atoms, (-1, 2)), rtol=1e-14
    )
    assert other.mean == pytest.approx(one.mean, rel=1e-14)
    assert one.outliers == other.outliers == () and other.bulk_edge == pytest.approx(one.eigenvalue)
    (low, high), size = one.edges.ravel()[[0, -1]], one.bulk_edge
    x = np.linspace(low - 0.1 * size, high + 0.1 * size, 43)
    np.testing.assert_allclose(other.density_at(x), one.density_at(x), rtol=1e-11, atol=1e-14)
    # That of the spiked features is interpolated in its grid.
    np.testing.assert_allclose(other.cumulative_at(x), one.cumulative_at(x), atol=1e-4)
    z = np.array([-0.1, 0.4 + 0.1j, 1 - 0.3j, 1e-3j, 3 * size])
    np.testing.assert_allclose(other.stieltjes(z), one.stieltjes(z), rtol=1e-12)


@pytest.mark.slow
def test_digits_of_both_transforms():
    """The n × n kernel has |n − p| more zeros than the p × p covariance, or fewer."""
    step = OneGradientStep("erf", "erf", 2, 1.5, 0)
    covariance = step.as_spiked_features().spectrum(alpha=2, points=50)
    with mpmath.workdps(30):
        share = mpmath.mpf(1.5) / 2
        expected = share * covariance.stieltjes(-0.25, digits=25) + (1 - share) / mpmath.mpf(0.25)
        found = step.conjugate_kernel().stieltjes(-0.25, digits=25).real
        assert abs(found / expected - 1) < 1e-24
    for z in (0.1j, 9.0):
        with pytest.raises(ParameterError, match="digits are for the covariance 'sample' and z <"):
            covariance.stieltjes(z, digits=25)


@pytest.mark.parametrize(("student", "teacher"), [("relu", "relu"), ("cos", "tanh")])
def test_features_with_a_mean_fit_that_of_the_teacher(student, teacher):
    model = OneGradientStep(student, teacher, 2, 1.5, 0, 0.1, centre=True)
    spiked = model.as_spiked_features()
    assert spiked.teacher == teacher
    expected = model.risk(ridge=0.1).initial
    assert spiked.solve(alpha=2, ridge=0.1).test_error == pytest.approx(expected, rel=1e-11)
    back = spiked.as_gradient_step(alpha=2)
    assert back.centre and back.risk(ridge=0.1).initial == pytest.approx(expected, rel=1e-13)


def test_samples_of_the_step_cross_the_bridge():
    plain = SpikedRandomFeatures("tanh", "sin", step_size=0, alpha0=20)
    step = plain.as_gradient_step(alpha=2)
    assert step.step_samples == 20 and step.as_spiked_features() == plain
    given = SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=0, bulk_variance=1, alignment=0
    )
    assert given.as_gradient_step(alpha=2).alpha0 is None


def test_theories_of_different_steps_are_not_one():
    step = OneGradientStep("erf", "erf", 2, step_size=1)
    with pytest.raises(AssumptionError, match=r"step_size = 1: .* take at\(step_size=0\)"):
        step.as_spiked_features()
    spiked = SpikedRandomFeatures("erf", "erf", step_size=1, alpha0=6)
    with pytest.raises(AssumptionError, match="rows have a spike of length 0"):
        spiked.as_gradient_step(alpha=2)
    plain = spiked.at(step_size=0)
    with pytest.raises(AssumptionError, match="width = 100: "):
        plain.at(width=100).as_gradient_step(alpha=2)
    with pytest.raises(ParameterError, match="alpha must be a number"):
        plain.as_gradient_step(alpha=[])
    with pytest.raises(AssumptionError, match=r"'relu' has the mean 0\.398942, which features"):
        plain.at(teacher="relu").as_gradient_step(alpha=2)


# ---------------------------------------------------- 2. the alignment, three formulas


@pytest.mark.parametrize(("student", "teacher"), PAIRS)
def test_alignment_is_one_expression(student, teacher):
    label_noise = symbols.noise
    here = _in_numbers(aligned_square() / spike_square(), student, teacher)
    gradient = first_step(student, activation(teacher)).alignment
    # Of the linear neuron, as the mapping of the spiked features has it for odd students.
    spiked = mapping.spike_mapping(activation("erf"), activation(teacher)).alignment ** 2
    leaps = giant_step(activation(teacher), student, noise_variance=label_noise).label_overlap
    leaps = leaps.subs(SAMPLES, DIMENSION * symbols.alpha0)
    assert equal(sp.simplify(here), gradient)
    assert equal(gradient, spiked)
    assert equal(gradient, sp.simplify(leaps))


def test_alignment_of_ba_and_others_in_their_letters():
    # cos² = ψ1 μ1*²/(ψ1 μ1*² + Y) of arXiv 2205.01445.
    labels = symbols.label_square()
    printed = symbols.alpha0 * symbols.teacher_linear**2
    printed /= symbols.alpha0 * symbols.teacher_linear**2 + labels
    assert sp.cancel(aligned_square() / spike_square() - printed) == 0
    assert sp.expand(spike_square() - aligned_square() - orthogonal_square()) == 0


# ---------------------------------------------------- 3. conditional coefficients


@pytest.mark.parametrize("student", ["erf", "relu", "sin", "sign", "He(3, z) - z"])
def test_conditional_coefficients_are_the_same_functions(student):
    # Dandi et al., arXiv 2305.18270: c_i = r κ, ρ_i² = c of Cui et al., arXiv 2402.04980.
    found = conditional_equivalence(student)
    spiked = fe.conditional_coefficients(activation(student), activation("erf"))
    rule = {CENTRE: fe.r * fe.kappa, SPREAD: sp.sqrt(fe.c)}
    assert spiked[fe.mu0] == found.mean.definition.xreplace(rule)
    assert spiked[fe.mu1] == found.slope.definition.xreplace(rule)
    residual = spiked[fe.mu2_squared].xreplace({fe.mu0: spiked[fe.mu0], fe.mu1: spiked[fe.mu1]})
    assert residual == found.residual_variance.definition.xreplace(rule)
    # E σ² − M0² − c M1², in closed form, at a point.
    point = {CENTRE: sp.Rational(3, 7), SPREAD: sp.Rational(5, 4)}
    parts = (found.second_moment, found.mean, found.slope, found.residual_variance)
    square, mean, slope, rest = (x.expr.xreplace(point).evalf(25) for x in parts)
    assert abs(square - mean**2 - (point[SPREAD] * slope) ** 2 - rest) < 1e-20


# ---------------------------------------------------- 4. the leading term of the gradient


@pytest.mark.parametrize(("student", "teacher"), PAIRS)
def test_leading_term_of_the_gradient_is_the_spike_of_all(student, teacher):
    own, label = exact_moments(student), exact_moments(teacher)
    along = own["linear"] * label["linear"]
    leading = gradient_expansion(student, activation(teacher), 0).leading
    assert equal(leading.value[0], along)
    assert equal(first_step(student, activation(teacher)).population_spike[0], along)
    # θ2 = η μ1 μ1*, and |u| is no more with infinitely many samples.
    step = symbols.step_size
    here = _in_numbers(aligned_square(), student, teacher)
    assert equal(here, (step * along) ** 2)
    many = sp.limit(_in_numbers(spike_square(), student, teacher), symbols.alpha0, sp.oo)
    assert equal(many, (step * along) ** 2)
    if student != "relu":
        # r γ of the spiked features, where the output at initialisation is zero.
        spiked = mapping.spike_mapping(activation(student), activation(teacher))
        product = spiked.spike_strength * spiked.alignment
        assert equal(sp.simplify(product), mapping.step_size * along)


def test_sizes_of_the_spike_are_those_of_the_gradient_for_every_step():
    model = OneGradientStep("tanh", "relu", 4, 2, 4, 1.0, centre=True)
    limits = model.gradient().values(alpha=4, noise_variance=1.0)
    spike = model.weight_spike()
    assert spike.theta1 == pytest.approx(4 * limits["spike"], rel=1e-14)
    assert spike.alignment**2 == pytest.approx(limits["alignment"], rel=1e-14)


# ---------------------------------------------------- 5. one rule for each closed form


def test_every_moment_comes_from_one_rule(monkeypatch):
    """A wrong rule for the linear part shows up in all lines of work, in the same way."""
    from giantstep.derivations import teachers
    from giantstep.derivations.first_gradient import first_step as gradients
    from giantstep.derivations.one_gradient_step import moments
    from giantstep.symbolic.hermite import coefficients as hermite

    assert teachers.residual_variance is hermite.residual_variance
    assert mapping.slope_variance is gradients.slope_variance is hermite.slope_variance
    assert mapping.correlation_square is gradients.correlation_square
    for name in ("residual_variance", "slope_variance"):
        original = getattr(hermite, name)
        assert getattr(moments, name) is original
        monkeypatch.setattr(moments, name, lambda f, original=original: 2 * original(f))
    found = moments.exact_moments("erf")
    monkeypatch.undo()
    right = moments.exact_moments("erf")
    for name in ("residual", "slope_variance"):
        assert equal(found[name], 2 * right[name])


@pytest.mark.parametrize("name", ["erf", "tanh", "relu", "softplus", "z + He(2, z)"])
def test_moments_are_those_of_the_other_lines_of_work(name):
    function, found = activation(name), exact_moments(name)
    coefficients = first_step(name, "x1")
    assert found["linear"] == coefficients.mean_derivative
    assert found["residual"] == mapping.best_linear_error(function)
    labels = first_step("erf", function).label_square - symbols.noise
    assert equal(labels, found["residual"] + found["linear"] ** 2 + found["mean"] ** 2)
