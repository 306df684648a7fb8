"""Index models against independent values, published numbers, simulations, and each other."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field.logistic_regression import margin_classifier
from giantstep.derivations.multi_index.channels import channel_of_law, read_channel
from giantstep.derivations.multi_index.directions import direction_classes
from giantstep.derivations.multi_index.fixed_points import FixedPoints
from giantstep.derivations.multi_index.line_averages import LineAverages
from giantstep.derivations.multi_index.model import MultiIndex
from giantstep.derivations.multi_index.plane_averages import PlaneAverages
from giantstep.derivations.multi_index.thresholds import weak_recovery
from giantstep.errors import GiantstepError, ParameterError

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "multi_index_optimal.json").read_text()
)
ROWS = REFERENCE["single_index"]


def channel(row):
    name = {"He(2)": "He(2, z)"}.get(row["teacher"], row["teacher"])
    if name == "sign" and row["noise_variance"]:
        return read_channel("z", labels="sign", noise_variance=row["noise_variance"])
    return read_channel(name, noise_variance=row["noise_variance"])


def named(row):
    return f"{row['teacher']} {row['noise_variance']}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_averages_are_the_reference_values(row):
    averages = LineAverages(channel(row), 2)
    q, alpha = row["overlap"], row["alpha"]
    information, entropy = averages.at(q)
    assert information == pytest.approx(row["I"], rel=2e-13)
    assert averages.at(0.0)[0] == pytest.approx(row["I_at_0"], rel=1e-12, abs=1e-25)
    assert q / ((1 - q) * information) == pytest.approx(alpha, rel=1e-12)
    if "free_entropy" in row:
        phi = q / 2 + math.log(1 - q) / 2 + alpha * entropy
        assert phi == pytest.approx(row["free_entropy"], rel=1e-13)
    if "function_error" in row:
        # The reference's own series are known to 3e-12.
        found = averages.dual(1.0) - averages.dual(q)
        assert found == pytest.approx(row["function_error"], abs=3e-12)
    if "alpha_c" in row:
        assert 1 / averages.second_information() == pytest.approx(row["alpha_c"], rel=2e-13)


FAST = ("sign 0.0", "sign 0.5", "relu 0.0", "abs 0.0")


@pytest.mark.parametrize(
    "row",
    [pytest.param(r, marks=[pytest.mark.slow] * (named(r) not in FAST), id=named(r)) for r in ROWS],
)
def test_fixed_points_and_iterations(row):
    points = FixedPoints(channel(row), starts=row["I_at_0"] > 1e-9)
    reached = points.reached(row["alpha"])
    assert reached.amp == pytest.approx(row["overlap"], rel=1e-12)
    assert reached.bayes == reached.amp
    q = row["amp_iterates_from"]
    for wanted in row["amp_iterates"]:
        conjugate = row["alpha"] * points.averages.at(q)[0]
        q = conjugate / (1 + conjugate)
        assert q == pytest.approx(wanted, rel=1e-12)


THRESHOLDS = {
    "abs(u) or u^2, no noise": "abs", "sign(u1*u2)": "sign(x1*x2)", "u1*u2": "x1*x2",
    "u1^2+...+u2^2": "x1**2 + x2**2", "sign(abs(u)-1)": "sign(abs(z) - 1)",
    "He(4,u), no noise": "He(4, z)",
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCE["thresholds_alpha_c"])
def test_thresholds_are_the_reference_values(name):
    wanted = sp.Float(REFERENCE["thresholds_alpha_c"][name], 22)
    found = weak_recovery(read_channel(THRESHOLDS[name]))
    assert found.value == pytest.approx(float(wanted), rel=1e-14)
    if found.exact is not None and not found.exact.has(sp.Integral):
        assert abs(found.exact.evalf(30) - wanted) < 1e-21


def test_the_committee_specialises_at_the_reference_values():
    wanted = REFERENCE["committee_sign_u1_plus_sign_u2"]
    found = MultiIndex("sign(x1) + sign(x2)").thresholds().specialisation
    expected = wanted["specialisation_q_plus"], wanted["specialisation_alpha"]
    assert found == pytest.approx(expected, rel=1e-12)


def test_densities_of_labels_are_computed_where_they_are_seen(monkeypatch):
    """All of a law whose values reach far beyond its noise, whose matrix is sparse."""
    averages, sizes = LineAverages(read_channel("z**3", noise_variance=1)), []
    law = averages.law

    def counted(u, y):
        sizes.append(len(u) * len(y))
        return law(u, y)

    monkeypatch.setattr(averages, "law", counted)
    u, _, seen = averages._matrix(1.0)
    whole = law(u, averages._labels[0])
    assert sum(sizes) < whole.size / 4
    assert np.array_equal(seen.toarray(), np.where(whole < 1e-40, 0.0, whole))


def test_thresholds_without_a_closed_form_say_nothing_of_one():
    assert "exactly" not in str(MultiIndex("abs(z) - 1", noise_variance=0.05).thresholds())


@pytest.mark.parametrize("alpha", [1.128, 1.12847])
def test_amp_stays_below_a_spinodal_between_two_points_of_the_curve(alpha):
    """Both roots lie next to the spinodal, α = 1.128471406672 at q = .84664572."""
    model = MultiIndex("abs")
    found = model.solve(alpha=alpha)
    assert found.overlap == 1
    below, above = found.fixed_points[:2]
    assert 0.82 < found.amp_overlap == below < 0.84664572 < above < 0.87
    assert [model.fixed_points.alpha(q) for q in (below, above)] == pytest.approx([alpha] * 2)
    # The error of the sample complexity, 1e-15, over its slope there.
    assert found.errors["amp_overlap"] > 3 * found.errors["overlap"] + 3e-14


LADDER = {
    "tanh, noise .1": ("tanh", 0.1), "erf, noise .25": ("erf", 0.25), "sin, noise .1": ("sin", 0.1),
    "sign, no noise": ("sign", 0.0), "relu (raw), no noise": ("relu", 0.0),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * bool(x[1])) for n, x in LADDER.items()]
)
def test_estimators(name):
    model = MultiIndex(*LADDER[name])
    for row in REFERENCE["estimator_ladder"]:
        if row["teacher"] != name:
            continue
        found = model.estimators(alpha=row["alpha"])
        for key in ("giant_step", "giant_step_transformed", "ridge", "ridge_transformed", "bayes"):
            # Linear coefficients of the reference hold twelve digits.
            assert getattr(found, key) == pytest.approx(row[key], rel=3e-12)
        assert found.efficiency == pytest.approx(row["efficiency_small_alpha"], rel=3e-12)


def test_the_first_iteration_is_a_giant_step_on_conditional_means():
    model = MultiIndex("relu")
    found = model.estimators(alpha=0.7)
    assert model.solve(alpha=0.7).first_iterate == pytest.approx(found.giant_step_transformed)
    assert model.state_evolution(alpha=0.7, steps=1).overlaps[0] == pytest.approx(
        found.giant_step_transformed, rel=1e-13
    )


# In other units; in the usual ones they are evidence of the claim index-thresholds, as are those by
# integrals and the committee of two signs.
EXACT = {"3*sign(x1*x2)": sp.pi**2 / 4, "-abs(z)": sp.Rational(1, 2)}


@pytest.mark.parametrize("target", EXACT)
def test_thresholds_are_sympy_numbers(target):
    found = weak_recovery(read_channel(target))
    assert (found.kind, found.error) == ("easy", 0.0)
    assert sp.simplify(found.exact - EXACT[target]) == 0


KINDS = {
    "tanh": "trivial", "He(3, z)": "trivial", "sign(x1*x2*x3)": "hard",
    "z**2*exp(-z**2)": "hard", "cos(z)": "easy",
}  # fmt: skip


@pytest.mark.parametrize("target", KINDS)
def test_what_labels_show_is_decided_by_algebra(target):
    assert weak_recovery(read_channel(target)).kind == KINDS[target]


@pytest.mark.parametrize("noise", [1e-3, 0.5])
def test_a_small_first_order_is_no_zero(noise):
    # E[u y] is 1e-9 here, far below what would be called zero by size.
    assert weak_recovery(read_channel("z**2 + z/10**9", noise_variance=noise)).kind == "trivial"


def test_a_jump_from_and_to_known_directions():
    # E log Z and I(q) of cos(2u) and noise by trapezoidal sums over both fields and the label
    found = MultiIndex("cos(2*z)", noise_variance=0.1).thresholds()
    assert found.threshold == pytest.approx(1.8922, abs=2e-4)
    assert sorted(found.spinodals) == pytest.approx([1.82997673, 2.16783232], rel=1e-7)
    assert found.first_order == pytest.approx(1.90296307, rel=1e-8)


def test_phase_retrieval():
    model = MultiIndex("abs")
    found = model.thresholds()
    ((q, alpha),) = model.fixed_points.spinodals
    assert (q, alpha) == pytest.approx(REFERENCE["spinodals"]["abs, no noise (q, alpha)"], rel=2e-9)
    assert alpha == pytest.approx(1.1284714066722, rel=1e-12)
    assert (found.threshold, found.first_order, found.formula) == (0.5, 1.0, "1/2")
    hard = model.solve(alpha=1.05)
    assert (hard.overlap, hard.error, hard.free_entropy) == (1.0, 0.0, math.inf)
    assert hard.amp_overlap == pytest.approx(0.568449305704, rel=1e-9)
    assert hard.regime.startswith("hard")
    assert model.solve(alpha=0.4).amp_overlap == 0.0
    assert model.solve(alpha=1.2).amp_overlap == 1.0


def test_parity_of_two_directions():
    averages = PlaneAverages(read_channel("sign(x1*x2)"))
    for row in REFERENCE["parity_sign_u1u2"]:
        q = row["q"]
        information = averages.at(q * np.eye(2)).information
        assert q / (1 - q) / np.diag(information) == pytest.approx(row["alpha"], rel=1e-12)
        assert abs(information[0, 1]) < 1e-13


def test_information_is_the_slope_of_the_average_for_two_directions():
    averages = PlaneAverages(read_channel("x1*x2 + x1", noise_variance=1))
    overlap = np.array([[0.3, 0.1], [0.1, 0.2]])
    informed = averages.at(overlap).information
    change = np.array([[1e-3, 2e-3], [2e-3, -1e-3]])
    slope = (
        averages.at(overlap + change).free_energy - averages.at(overlap - change).free_energy
    ) / 2
    assert slope == pytest.approx(np.sum(informed * change) / 2, rel=1e-4)


@pytest.mark.slow
def test_directions_of_a_committee_are_learned_beyond_the_threshold():
    model = MultiIndex("sign(x1) + sign(x2)")
    above = model.solve(alpha=3.0)
    assert above.amp_overlap > 0.4
    assert np.array(above.overlaps).reshape(2, 2) == pytest.approx(
        np.array([[0.65291565, 0.16146172], [0.16146172, 0.65291565]]), rel=1e-6
    )


# ---------------------------------------------------------------------- meeting points


@pytest.mark.parametrize(
    ("target", "alpha"),
    [("sign", 2.0), ("relu", 1.0), pytest.param("abs", 0.8, marks=pytest.mark.slow)],
)
def test_kernels_solve_the_same_equations(target, alpha):
    model = MultiIndex(target)
    found, solved = model.kernel().solve(alpha=alpha), model.solve(alpha=alpha)
    assert found["q"] == pytest.approx(solved.overlap, rel=1e-9)
    if target != "relu":
        assert found["free_entropy"] == pytest.approx(solved.free_entropy, rel=1e-9)


@pytest.mark.slow
def test_digits_of_the_perceptron():
    found = MultiIndex("sign").kernel().solve(alpha=2, digits=25)
    assert str(found["q"]).startswith("0.72829817397071")


@pytest.mark.parametrize(
    "loss", ["logistic", *(pytest.param(x, marks=pytest.mark.slow) for x in ("square", "hinge"))]
)
def test_convex_losses_meet_the_classifiers(loss):
    kernel = gs.lower(margin_classifier(loss))
    other = kernel.solve(alpha=2, ridge=0.5, signal_power=1, noise_variance=0)
    found = MultiIndex("sign").convex(loss=loss, alpha=2, ridge=0.5)
    wanted = math.cos(math.pi * other.generalisation_error) ** 2
    assert found.squared_cosine == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
def test_the_square_loss_is_ridge_regression_at_its_best_penalty():
    model = MultiIndex("tanh", noise_variance=0.1)
    (h,), square = model.linear_part
    best = float(square / h**2 - 1)
    found = model.convex(alpha=2, ridge=best).squared_cosine
    assert found == pytest.approx(model.estimators(alpha=2).ridge, rel=1e-9)


@pytest.mark.slow
def test_the_optimum_beside_a_giant_step():
    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=5, noise_variance=0.1)
    found = model.optimum_bayes(alpha=3)
    assert found.bayes == pytest.approx(0.014684, abs=1e-6)
    assert found.best_linear == pytest.approx(model.best_linear_error, rel=1e-12)
    assert found.direction_only == pytest.approx(0.117549, abs=1e-6)
    assert found.alignment_squared == pytest.approx(model.spike.alignment**2, rel=1e-12)
    step = gs.OneGradientStep("erf", "sin", alpha=3, noise_variance=0.1, alpha0=5)
    assert step.optimum_bayes().bayes == found.bayes
    assert model.solve(alpha=3, ridge=0.1).test_error > found.bayes


@pytest.mark.slow
def test_other_published_numbers():
    optimum = MultiIndex("sin", 0.1)
    for alpha, error in ((3, 0.051181), (5, 0.025912), (8, 0.014684)):
        assert optimum.solve(alpha=alpha).error == pytest.approx(error, abs=6e-7)
    assert MultiIndex("sin").thresholds().exact_recovery == pytest.approx(1.0330276, abs=6e-8)
    signs = MultiIndex("sign").solve(alpha=50)
    # By mpmath's adaptive quadrature of q/(1 − q) = 50 I(q); at α = 500 it is 0.4417, in the limit
    # 0.442 of the literature.
    assert 50 * signs.classification_error == pytest.approx(0.44145454921884, rel=1e-11)


# ---------------------------------------------------------------------- simulation


def test_message_passing_follows_state_evolution():
    model = MultiIndex("sign")
    found = model.simulate(600, alpha=2, steps=5, seeds=6, seed=3, progress=False)
    limit = model.state_evolution(alpha=2, steps=5).overlaps
    mean, error = found.mean("amp_overlap"), found.standard_error("amp_overlap")
    assert np.abs((mean - limit) / error).max() < 4
    projection = found.mean("amp_projection")
    assert projection == pytest.approx(mean, abs=0.06)


def test_the_spectral_estimator_sees_directions_above_the_threshold():
    model = MultiIndex("abs")
    network = model.network(400)
    found = gs.simulate(network, [model.spectral(alpha=3, dimension=400)], seeds=4)
    assert found.mean("spectral_overlap") > 0.5
    nothing = MultiIndex("sign")
    with pytest.raises(ParameterError, match="nothing at second order"):
        gs.simulate(nothing.network(50), [nothing.spectral(alpha=2, dimension=50)], seeds=2)


# ---------------------------------------------------------------------- directions


def test_classes_of_directions():
    found = direction_classes("x1 + x1*x2")
    assert found.giant_steps == ("1", "2") and found.classes == ("trivial", "trivial")
    assert direction_classes("x1**2").samples == ("α > α_c = 0.5",)
    assert direction_classes("sign(x1*x2*x3)").samples[0] == "n ≍ d^(3/2)"
    assert direction_classes("x1**2*exp(-x1**2)").samples == ("n ≍ d^2",)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MultiIndex("tanh", -1), "noise_variance"),
        (lambda: MultiIndex("tanh", labels="probably"), "labels must be one of"),
        (lambda: MultiIndex("tanh", 0.1, labels="logistic"), "their own noise"),
        (lambda: MultiIndex("tanh", flips=0.1), "flips exchange two labels"),
        (lambda: MultiIndex("sign", flips=0.5), "below 1/2"),
        (lambda: MultiIndex("x1*x2", directions=1), "depends on x1, x2: give 2"),
        (lambda: MultiIndex("x1*x2*x3*x4"), "at most 3 directions"),
        (lambda: MultiIndex.from_law({1: "(1 + erf(z))/2", -1: "1/2"}), "not normalised"),
        (lambda: MultiIndex.from_law({1: "1 + z**2", -1: "-z**2"}), "negative"),
        (lambda: MultiIndex.from_law({1: "(1 + erf(x2))/2", -1: "(1 - erf(x2))/2"}), "directions"),
        (lambda: MultiIndex.from_law({1: "1"}), "two or more labels"),
        (lambda: MultiIndex.from_density("exp(-(y - z)**2/2)", label_range=(-18, 18)),
         "not normalised"),
        (lambda: MultiIndex("sin(1/z)"), "sin"),
        (lambda: MultiIndex("sin(exp(z))").solve(alpha=1), "preimages"),
        (lambda: MultiIndex("tanh").solve(alpha=-1), "alpha"),
        (lambda: MultiIndex("abs").state_evolution(alpha=1, start=1.5), r"q = cos²"),
        (lambda: MultiIndex("x1*x2").solve(alpha=1), "infinitely many preimages"),
        (lambda: MultiIndex("x1*x2", 0.5).estimators(alpha=1), "one direction"),
        (lambda: MultiIndex("sin").kernel(), "no partition function in closed form"),
        (lambda: MultiIndex("sin", 1e-12).solve(alpha=1), "too small"),
        (lambda: MultiIndex("relu", 0.2).convex(loss="Abs(y - x)", alpha=1, ridge=1), "has kinks"),
        (lambda: gs.SpikedRandomFeatures("tanh", "sin", alpha0=math.inf).optimum_bayes(alpha=2),
         "alpha0 is infinite"),
        (lambda: gs.SpikedRandomFeatures.from_parameters(
            "tanh", "sin", spike_strength=1, bulk_variance=1.1, alignment=0.9
        ).optimum_bayes(alpha=2), "given by its spike"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(GiantstepError, match=words):
        make()


@pytest.mark.slow
def test_a_density_of_ones_own_is_the_gaussian_channel():
    model = MultiIndex.from_density("exp(-(y - z)**2/2)/sqrt(2*pi)", label_range=(-18, 18))
    assert MultiIndex.from_json(model.to_json()).to_json() == model.to_json()
    # 1/(V + Δ) of linear labels.
    assert model.fixed_points.averages.at(0.4)[0] == pytest.approx(1 / 1.6, rel=1e-10)
    law = channel_of_law({1: "(1 + erf(z))/2", -1: "(1 - erf(z))/2"})
    probit = read_channel("z", labels="sign", noise_variance=0.5)
    assert LineAverages(law, 1).at(0.3)[0] == pytest.approx(
        LineAverages(probit, 1).at(0.3)[0], rel=1e-12
    )


@pytest.mark.slow
def test_labels_of_a_far_kink_need_a_finer_level_at_overlap_zero():
    # E[E[u|y]²] of y = relu(u - 2) + noise: the branches of the posterior are cut Gaussians.
    noise = 0.01
    scale = math.sqrt(noise / (1 + noise))

    def normal(x, variance=1.0):
        return math.exp(-(x**2) / 2 / variance) / math.sqrt(2 * math.pi * variance)

    def information(y):
        centre = (y + 2) / (1 + noise)
        share = scipy.special.ndtr((centre - 2) / scale)
        flat, rising = normal(y, noise), normal(y + 2, 1 + noise)
        mass = scipy.special.ndtr(2) * flat + share * rising
        mean = centre * share + scale * normal((centre - 2) / scale)
        return (mean * rising - normal(2) * flat) ** 2 / mass

    wanted, _ = scipy.integrate.quad(
        information, -1.2, 9, points=[-0.3, 0, 0.3, 0.6, 1, 2], epsabs=1e-15, epsrel=1e-13
    )
    found = MultiIndex("relu(z - 2)", noise).fixed_points.averages.at(0.0)[0]
    assert found == pytest.approx(wanted, rel=1e-10)


def test_curves_go_over_samples_and_noise():
    curve = MultiIndex("sign").curve(alpha=[0.5, 2.0], progress=False)
    assert curve["overlap"].values == pytest.approx([0.28032573437064223, 0.7282981739707121])
    assert (curve["giant_step"] <= curve["ridge_overlap"]).all()
    assert curve.plot() is not None


@pytest.mark.parametrize(
    ("target", "noise", "digits", "value"),
    [
        ("sign(x1*x2)", 0.0, 30, "2.46740110027233965470862274997"),
        pytest.param("x1*x2", 0.0, 15, "0.5937510982222571995536", marks=pytest.mark.slow),
        pytest.param("He(2, z)", 0.5, 5, "0.5779870614190", marks=pytest.mark.slow),
        pytest.param("He(4, z)", 0.0, 12, "0.6448504699023041264264", marks=pytest.mark.slow),
        ("abs", 1.0, 6, None),
    ],
)
def test_thresholds_are_proven(target, noise, digits, value):
    pytest.importorskip("flint")
    model = MultiIndex(target, noise)
    proven = model.thresholds(certify=True, digits=digits).certificate["threshold"]
    assert proven.radius < abs(proven.midpoint) / 10**digits
    # Printed digits, or quadrature in floating point.
    wanted = sp.Rational(value or repr(model._threshold.value))
    assert abs(proven.midpoint - wanted) <= proven.radius + abs(wanted) * sp.Rational(1, 10**12)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MultiIndex("cos(z)"), "polynomials with rational coefficients"),
        (MultiIndex("tanh"), "trivial"),
        (MultiIndex("x1*x2", 0.5), "2 directions"),
    ],
)
def test_thresholds_without_a_proof_are_refused_by_name(model, words):
    pytest.importorskip("flint")
    with pytest.raises(GiantstepError, match=words):
        model.thresholds(certify=True)
    with pytest.raises(ParameterError, match="digits are those of a proof"):
        model.thresholds(digits=20)
