"""Letters through the chain of all other models: their kernel against the vectorised solver."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.spiked_random_features.differentiation import OF_STEP
from giantstep.derivations.spiked_random_features.vocabulary.kernel import (
    first_values,
    letter_directions,
    letter_values,
)
from giantstep.errors import CertificationError, ParameterError


def letters(student, teacher, strengths, **options):
    count = len(strengths)
    given = {
        "bulk_variances": [1.1 + 0.3 * k for k in range(count)],
        "fractions": [(k + 1) * 2 / (count * (count + 1)) for k in range(count)],
        "alignment": 0.8,
        **options,
    }
    return gs.VocabularyFeatures.from_parameters(
        student, teacher, spike_strengths=strengths, **given
    )


def assert_same(model, kernel, alpha, ridge, width=None):
    found = kernel.solve(alpha=alpha, ridge=ridge, inverse_width=0 if width is None else 1 / width)
    other = model.solve(alpha=alpha, ridge=ridge, width=width)
    assert found.test_error == pytest.approx(other.test_error, rel=1e-10)
    assert found.training_error == pytest.approx(other.training_error, rel=1e-9)
    count = len(model.classes)
    overlaps = [found[f"m_{k + 1}"] for k in range(count)]
    np.testing.assert_allclose(overlaps, other.order_parameters["m"], rtol=1e-8)


@pytest.fixture(scope="module")
def pair():
    model = letters("tanh", "sin", [1.2, -0.6], biases=[0.3, 0.0], noise_variance=0.1)
    return model, model.kernel()


def test_the_structure_is_found(pair):
    _, kernel = pair
    assert kernel.inspect("blocks") == (
        "3 blocks: 5 unknowns Newton {V2_1, V2_2, V1_11, V1_12, V1_22}; "
        "6 unknowns linear {m_1, m_2, theta_1, theta_2} {psi_1, psi_2}; "
        "5 unknowns linear {q2_1, q2_2, q1_11, q1_12, q1_22}"
    )


def test_solutions_with_an_indefinite_matrix_are_none(pair):
    # From its own first values Newton's method leads to det V1 < 0, where the test error is -0.138.
    model = letters(
        "tanh", "sin", [1.316171154255575, -1.536937349141943],
        bulk_variances=[2.7078460612667583, 2.824423899657867], alignment=0.7239750625550054,
        fractions=[0.47978356359208, 0.52021643640792], beta=4.94118296807401,
        biases=[-0.36063, -0.23959], noise_variance=0.2304, width=1072,
    )  # fmt: skip
    point = {"alpha": 1.358316641812007, "ridge": 0.04011999878620595}
    given = letter_values(model.parameters) | {
        "beta": model.beta, "noise_variance": 0.2304, "inverse_width": 1 / 1072,
        "alignment": model.parameters.alignment[0][0],
    }  # fmt: skip
    found, other = pair[1].solve(**point, **given), model.solve(**point)
    assert found.test_error == pytest.approx(other.test_error, rel=1e-12)
    assert found.V1_11 * found.V1_22 > found.V1_12**2


@pytest.mark.slow
def test_certificates_hold_the_digits(pair):
    pytest.importorskip("flint")
    model, _ = pair
    digits = model.solve(alpha=2, ridge=0.1, digits=25)
    for width in (None, 400):
        found = model.solve(alpha=2, ridge=0.1, certify=True, width=width)
        proven = found.certificate.values
        assert found.rests_on.startswith(found.holds_at) and "certified" in found.rests_on
        assert {"test_error", "training_error", "V1_12", "m_2", "q1_11"} <= set(proven)
        assert found.errors["test_error"] < 1e-14
        if width is None:
            middle = proven["test_error"].midpoint
            assert abs(float(middle - sp.Rational(str(digits.test_error)))) < 1e-18
        else:
            plain = model.solve(alpha=2, ridge=0.1, width=width)
            assert found.test_error == pytest.approx(plain.test_error, rel=1e-12)
            assert found.strict_limit.test_error == pytest.approx(float(digits.test_error))
        assert gs.Solution.from_json(found.to_json()) == found


def test_documents_of_the_last_release_are_read(pair):
    found = pair[0].solve(alpha=2, ridge=0.1)
    old = json.loads(found.to_json())
    old["kind"] = "giantstep saddle point of letters"
    del old["conjugates"], old["certificate"], old["budget"]
    assert gs.Solution.from_json(json.dumps(old)) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("student", "teacher", "step"),
    [
        ("tanh", "sin", {}),  # correlated norms
        ("relu", "relu", {"step_size": 2, "alpha0": 30, "allow_non_odd": True}),  # stretched rows
    ],
)
def test_one_letter_is_one_kind_of_rows(student, teacher, step):
    """Letters with the complete leading order against the equations of one kind of rows."""
    step = {**step, "leading_order": "complete"}
    one = gs.SpikedRandomFeatures(student, teacher, **step)
    letter = gs.VocabularyFeatures.of_one_kind(one)
    assert letter == gs.VocabularyFeatures(student, teacher, **step)
    for width in (None, 300):
        found = letter.solve(alpha=2, ridge=0.1, width=width)
        other = one.solve(alpha=2, ridge=0.1, width=width)
        for name in ("test_error", "training_error"):
            assert getattr(found, name) == pytest.approx(getattr(other, name), rel=1e-12)
        assert found.q2[0] == pytest.approx(other.q2, rel=1e-12)
    assert found.strict_limit.test_error == pytest.approx(
        one.solve(alpha=2, ridge=0.1).test_error, rel=1e-12
    )
    published = gs.VocabularyFeatures(student, teacher, **step | {"leading_order": "published"})
    change = published.solve(alpha=2, ridge=0.1).test_error / found.strict_limit.test_error - 1
    assert abs(change) > 0.02


@pytest.mark.slow
def test_sensitivities_with_the_complete_leading_order():
    model = gs.VocabularyFeatures(
        "tanh", "sin", [1], [1], step_size=2.0, alpha0=30, leading_order="complete", width=300
    )
    slope = model.sensitivities(alpha=2, ridge=0.1)["test_error", "step_size"]
    step = 1e-4
    high, low = (
        model.at(step_size=2.0 + h).solve(alpha=2, ridge=0.1).test_error for h in (step, -step)
    )
    assert slope == pytest.approx((high - low) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("name", OF_STEP)
def test_rates_of_letters_are_differences(name):
    # An activation with a mean, so that the output of all letters counts.
    model: Any = gs.VocabularyFeatures(
        "relu", "sin", [0.5, 1.5], [0.3, 0.7], step_size=2.0, alpha0=30, noise_variance=0.2,
        allow_non_odd=True,
    )  # fmt: skip
    rates = letter_directions(model, exact=False).moving[name]
    value = getattr(model, name)
    high, low = (
        letter_values(model.at(**{name: value * (1 + h)}).parameters) for h in (1e-5, -1e-5)
    )
    for part in ("spike_strength_1", "bulk_variance_1", "spike_strength_2", "bulk_variance_2"):
        assert rates[part] == pytest.approx((high[part] - low[part]) / (2e-5 * value), rel=1e-6)


def random_letters(random, count):
    """Letters, a sample complexity and a penalty, of sizes over decades."""
    fractions = random.dirichlet(np.full(count, 3.0))
    alpha, beta = (10 ** random.uniform(-0.7, 0.7, 2)).tolist()
    model = letters(
        "tanh", "sin", random.normal(size=count).tolist(),
        bulk_variances=random.uniform(0.3, 3, count).tolist(), fractions=fractions.tolist(),
        alignment=random.uniform(-0.9, 0.9), beta=beta, noise_variance=random.uniform(0, 0.5),
        biases=random.normal(size=count).tolist(), width=int(random.integers(50, 2000)),
    )  # fmt: skip
    return model, alpha, float(10 ** random.uniform(-4, 1))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_letters_are_the_general_chain_at_random_points(count):
    random = np.random.default_rng(count)
    kernel = random_letters(random, count)[0].kernel()
    for _ in range(30):
        model, alpha, ridge = random_letters(random, count)
        other = model.solve(alpha=alpha, ridge=ridge)
        given = letter_values(model.parameters) | {
            "beta": model.beta, "noise_variance": model.noise_variance,
            "alignment": model.parameters.alignment[0][0], "inverse_width": 1 / model.width,
        }  # fmt: skip
        found = kernel.solve(alpha=alpha, ridge=ridge, start=first_values(kernel, other), **given)
        for name in ("test_error", "training_error"):
            assert found[name] == pytest.approx(getattr(other, name), rel=1e-12)


@pytest.mark.slow
def test_expansions_of_letters():
    one = gs.SpikedRandomFeatures.from_parameters(
        "tanh", "sin", spike_strength=1.0, bulk_variance=1.1, alignment=0.8, beta=1.5,
        noise_variance=0.1,
    )  # fmt: skip
    letter = gs.VocabularyFeatures.of_one_kind(one)
    for name, point in (("large_alpha", {"ridge": 0.1}), ("small_ridge", {"alpha": 0.7})):
        found, wanted = (m.expansion(name, 1, **point, digits=12) for m in (letter, one))
        for error in ("test_error", "training_error"):
            terms = zip(found.terms(error), wanted.terms(error), strict=True)
            for (power, value), (other_power, other) in terms:
                assert power == other_power
                assert value == pytest.approx(other, rel=1e-12)
    two = letters("tanh", "sin", [1.2, -0.6], beta=1.5, noise_variance=0.1)
    series = two.expansion("large_alpha", 1, ridge=0.1, digits=10)
    for alpha, power in ((1e3, 6), (1e4, 8)):
        exact = two.solve(alpha=alpha, ridge=0.1)
        assert exact.test_error == pytest.approx(float(series(alpha)), abs=10**-power)
        assert exact.m[0] == pytest.approx(float(series(alpha, "m_1")), rel=10 ** (2 - power))
    assert [name for name in series.outputs if name.startswith("V1")] == ["V1_11", "V1_12", "V1_22"]


@pytest.mark.slow
def test_both_solvers_agree(pair):
    for alpha, ridge, width in ((0.3, 1e-6, None), (4.0, 5.0, None), (2, 0.1, 300)):
        assert_same(*pair, alpha, ridge, width=width)
    aligned = letters("erf", "sign", [1.0, -0.4], alignment=1.0, bulk="orthonormal")
    assert_same(aligned, aligned.kernel(), 2.0, 0.1)


def complete(**given):
    given = {"leading_order": "complete", "letters": [1, -0.5], "fractions": [0.5, 0.5], **given}
    return gs.VocabularyFeatures("tanh", "sin", **given)


TWO = letters("tanh", "sin", [1.2, -0.6])
MANY = letters("tanh", "sin", [1.0, 0.5, -0.5, -1.0])
AFTER_STEP = complete(leading_order="published")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: AFTER_STEP.solve(alpha=2, ridge=0.1, certify=True),
         r"letters after a step .* they are known as floats"),
        (lambda: AFTER_STEP.expansion("large_alpha", ridge=1),
         r"VocabularyFeatures\.from_parameters"),
        (lambda: MANY.solve(alpha=2, ridge=0.1, certify=True), "at most 3 letters"),
        (lambda: MANY.kernel(), "at most 3 letters"),
        (lambda: letters("tanh", "x1*x2", [1.0, 0.5], alignment=[[0.5, 0.5]]).kernel(),
         "rank one and a teacher of one coordinate"),
        (lambda: complete(bulk="orthonormal", beta=0.5), "independent bulk rows"),
        (lambda: complete(letters=[1, 2, 3, 4], fractions=[0.25] * 4),
         "at most 3 of them, and there are 4"),
        (lambda: complete(leading_order="all"), "leading_order must be one of"),
        (lambda: replace(letters("tanh", "sin", [1.0]), leading_order="complete"),
         "is about a gradient step"),
        (lambda: TWO.expansion("small_step", alpha=1, ridge=1),
         "letters have 'large_alpha' and 'small_ridge'"),
        (lambda: TWO.expansion("small_ridge", alpha=1.0),
         "take alpha above or below beta, or one letter"),
        (lambda: TWO.expansion("large_alpha", ridge=1, alpha=1),
         "alpha is what 'large_alpha' expands in"),
        (lambda: TWO.expansion("large", ridge=1), "there are 'large_alpha'"),
    ],
)  # fmt: skip
def test_what_letters_do_not_have_is_refused(ask, message):
    with pytest.raises((ParameterError, CertificationError), match=message):
        ask()
