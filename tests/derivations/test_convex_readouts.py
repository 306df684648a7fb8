"""General convex losses on spiked random features: equations, numbers, limits and refusals."""

from __future__ import annotations

import pickle
import re
import time

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.core.function import AppliedUndef
from tests.derivations.vocabulary_cases import TWO, make

import giantstep as gs
from giantstep.derivations.spiked_random_features import physics, physics as symbols
from giantstep.derivations.spiked_random_features.convex.claims import REFERENCE
from giantstep.derivations.spiked_random_features.convex.energy import convex_free_energy
from giantstep.derivations.spiked_random_features.convex.labels import label_channel
from giantstep.derivations.spiked_random_features.convex.losses import (
    convex_loss,
    delta,
    read_metrics,
    simulated_loss,
    x,
    y,
)
from giantstep.derivations.spiked_random_features.convex.readout import readout_directions
from giantstep.derivations.spiked_random_features.convex.smoothing import (
    LabelledEnvelope,
    closed_moments,
    smoothed_envelope,
    smoothed_loss,
)
from giantstep.derivations.spiked_random_features.convex.solver import _corners_of, _separated
from giantstep.errors import (
    AssumptionError,
    CertificationError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.gaussian.ramp_moments import RampAverage
from giantstep.symbolic.losses.convex_losses import without_cases
from giantstep.symbolic.losses.proximal import MoreauEnvelope
from giantstep.symbolic.systems.equations import stationarity

a = sp.Symbol("a", real=True)
v, V = sp.symbols("v V", positive=True)
HALF = sp.Rational(1, 2)
PIECEWISE = {
    "square": 0, "huber(0.3)": 0, "absolute": 0, "relu(abs(y - x) - 1/5)": 0,
    "3*relu(y - x)/4 + relu(x - y)/4": 0, "quantile(0.3)": 0, "insensitive(0.2)": 0,
    "hinge": 1, "relu(1 - y*x)**2/2": -1, "relu(y - x) + relu(y - x - 1)": 0,
}  # fmt: skip


def features(student="erf", teacher="sin", **changes):
    given = {"spike_strength": 1.2, "bulk_variance": 1.1, "alignment": 0.9, **changes}
    return gs.SpikedRandomFeatures.from_parameters(student, teacher, **given)


# ------------------------------------------------------------------ the smoothed envelope


@pytest.mark.parametrize(
    ("loss", "corners"),
    [("hinge", [(1, -1), (1, 0)]), ("absolute", [(0, -1), (0, 1)]), ("logistic", [])],
)
def test_kinks_of_a_loss_have_the_slopes_of_both_sides(loss, corners):
    assert list(_corners_of(convex_loss(loss).at_label(int(loss != "absolute")))) == corners


def written_out(expr):
    """Write ramps and moments by the normal density and distribution function."""
    return closed_moments(
        expr.replace(lambda e: isinstance(e, RampAverage), lambda e: e.closed_form())
    )


@pytest.mark.parametrize(("loss", "label"), PIECEWISE.items())
def test_the_smoothed_envelope_is_the_gaussian_average_of_the_envelope(loss, label):
    # Against composite Gauss-Legendre quadrature of the envelope's defining minimum.
    numbers = convex_loss(loss).exact_values
    expr = without_cases(convex_loss(loss).at_label(label), x).xreplace(numbers)
    point = {a: sp.Rational(7, 10), v: sp.Rational(3, 5), V: sp.Rational(13, 10)}
    closed = written_out(smoothed_envelope(
        without_cases(convex_loss(loss).at_label(label), x), x, a, v, V
    )).xreplace({**numbers, **point})  # fmt: skip
    envelope = sp.lambdify(
        a, MoreauEnvelope(expr, x, a, V).doit().xreplace({V: point[V]}),
        [{"relu": lambda u: max(u, 0)}, "mpmath"],
    )  # fmt: skip
    deviation = mpmath.sqrt(mpmath.mpf(3) / 5)
    breaks = (-3.6, -2.3, -1.6, -1.5, -1.3, -1, -0.69, -0.3, 0, 0.3, 0.69, 1, 1.3, 1.5)
    edges = [-9, *((k - mpmath.mpf("0.7")) / deviation for k in breaks), 9]
    wanted = mpmath.quad(
        lambda t: mpmath.npdf(t) * envelope(mpmath.mpf("0.7") + deviation * t), edges
    )
    assert float(closed.evalf(15)) == pytest.approx(float(wanted), rel=1e-9)


@pytest.mark.parametrize(("loss", "label"), PIECEWISE.items())
def test_the_envelope_tends_to_the_loss(loss, label):
    expr = without_cases(convex_loss(loss).at_label(label), x)
    given = {**convex_loss(loss).exact_values, a: sp.Rational(-2, 5), v: sp.Rational(3, 5)}
    plain = written_out(smoothed_loss(expr, x, a, v)).xreplace(given).evalf(20)
    envelope = written_out(smoothed_envelope(expr, x, a, v, V))
    near = envelope.xreplace({**given, V: sp.Rational(1, 10**12)}).evalf(20)
    assert float(near - plain) == pytest.approx(0, abs=2e-12)


@pytest.mark.parametrize(("loss", "label"), PIECEWISE.items())
def test_smoothing_obeys_the_heat_equation_and_the_envelope_theorem(loss, label):
    expr = without_cases(convex_loss(loss).at_label(label), x)
    found = smoothed_envelope(expr, x, a, v, V)
    assert sp.expand(found.diff(v) - found.diff(a, 2) / 2) == 0
    # ∂_V E M = -E M'^2/2 ≤ 0, and E M'^2 ≥ (E M')².
    given = {**convex_loss(loss).exact_values, a: sp.Rational(2, 5), v: HALF, V: sp.Rational(6, 5)}
    square = -2 * written_out(found.diff(V)).xreplace(given).evalf(20)
    assert square >= written_out(found.diff(a)).xreplace(given).evalf(20) ** 2


# ------------------------------------------------------------------ the free energy

CASES = [
    ("square", "teacher", "sin", 0.1),
    ("huber(0.3)", "teacher", "sin", 0.1),
    ("hinge", "sign", "sign", 0.0),
    ("logistic", "sign", "sign", 0.0),
    ("logistic", "probit", "sign", 0.4),
    ("hinge", "logistic", "sign", 0.0),
    ("cosh(x - y) - 1", "teacher", "sin", 0.1),
]


def energy(loss, labels, teacher, noise, **flags):
    return convex_free_energy(
        convex_loss(loss), label_channel(labels, teacher, noise), activation("erf"), **flags
    )


@pytest.mark.parametrize("case", CASES)
def test_a_loss_enters_the_free_energy_through_its_envelope_alone(case):
    found = energy(*case).free_energy
    square = symbols.spiked_free_energy(activation("erf"), activation("sin")).free_energy
    assert len(found.expression.atoms(LabelledEnvelope)) == 1
    # Every stationarity condition gives one equation.
    conditions = stationarity(found)
    assert set(conditions) == set(found.variables)
    unknowns = {e.unknown for e in energy(*case).equations}
    assert unknowns == (set(conditions) - {symbols.q1}) | {symbols.Q1}
    rest = [
        sp.Add(*(t for t in sp.Add.make_args(f.expression) if not t.has(symbols.alpha)))
        for f in (found, square)
    ]
    assert sp.expand(rest[0] - rest[1]) == 0


def test_averages_of_signs_do_without_moments_of_a_teacher():
    found = energy("square", "sign", "sin", 0.0)
    tables = {x for e in found.equations for x in e.residual.atoms(AppliedUndef) if x.args}
    assert tables <= found.free_energy.definitions.keys()


def gauss(n=80):
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("channel", ["sign", "probit", "logistic"])
def test_label_probabilities_add_up(channel):
    labels = label_channel(channel, "sign", 0.3 if channel == "probit" else 0.0)
    total = sum(labels.probability(k, sp.Rational(2, 3)) for k in (1, -1))
    assert float(total.subs(symbols.noise, 0.3).evalf()) == pytest.approx(1)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_noise_has_a_derivative_where_labels_have_noise(noise):
    readout = features(noise_variance=noise).with_loss("huber(0.5)")
    found = readout_directions(readout, exact=False)
    assert ("noise_variance" in found.moving) == bool(noise)
    assert ("labels have none" in found.excluded.get("noise_variance", "")) != bool(noise)


@pytest.mark.parametrize(
    ("loss", "labels", "noise", "error", "words"),
    [
        ("sin(x)", "teacher", 0, ParameterError, "convex"),
        ("x**2*y", "teacher", 0, ParameterError, "y = -1"),
        ("(x - y)**4 - (x - y)**2", "teacher", 0, ParameterError, "convex"),
        ("exp(-x**2)", "teacher", 0, ParameterError, "x = "),
        ("logistic", "teacher", 0, ParameterError, "labels ±1"),
        ("hinge", "teacher", 0, ParameterError, "labels ±1"),
        ("hinge", "sign", 0.2, ParameterError, "probit"),
        ("hinge", "signs", 0, ParameterError, "labels must be one of"),
        ("hubber", "teacher", 0, ParameterError, "loss must be one of"),
        ("huber", "teacher", 0, ParameterError, "huber(0.5)"),
        ("huber(0)", "teacher", 0, ParameterError, "positive"),
        ("huber(x)", "teacher", 0, ParameterError, "number"),
        ("y**2", "teacher", 0, ParameterError, "depend on the prediction"),
        ("(y - x", "teacher", 0, ExpressionError, "loss"),
        ("(y - x)**2 + t", "teacher", 0, ExpressionError, "t"),
        ("__import__(1)", "teacher", 0, ExpressionError, "loss"),
        ("abs(y - x)**3", "teacher", 0, UnsupportedExpressionError, "kinks"),
        ("(y - x)**2/2 + x**4", "teacher", 0.2, UnsupportedExpressionError, "noise_variance=0"),
        (None, "teacher", 0, ParameterError, "loss must be one of"),
        ("", "teacher", 0, ParameterError, "loss must be one of"),
        (np.nan, "teacher", 0, ParameterError, "loss must be one of"),
        (lambda y, x: x, "teacher", 0, ParameterError, "loss must be one of"),
        ("huber(nan)", "teacher", 0, ParameterError, "number"),
        ("quantile", "teacher", 0, ParameterError, "quantile(0.9)"),
        ("quantile(1.5)", "teacher", 0, ParameterError, "inside (0, 1)"),
        ("insensitive(-1)", "teacher", 0, ParameterError, "positive"),
        ("hinge(0.5)", "teacher", 0, ExpressionError, "hinge"),
        ("exp(x**2/5)", "teacher", 0, ParameterError, "more slowly"),
        ("exp(exp(x))", "teacher", 0, ParameterError, "more slowly"),
        ("(y - x)**2*(1 - 1e-9*x**2)", "teacher", 0, ParameterError, "x = 1e+06"),
        ("log(x)", "teacher", 0, ParameterError, "finite"),
        (f"{'(' * 300}x{')' * 300}", "teacher", 0, ExpressionError, "nested"),
        ("a" * 10**5, "teacher", 0, ParameterError, "loss must be one of"),
        (sp.Symbol("t") ** 2, "teacher", 0, ExpressionError, "y and x alone"),
        (sp.Function("f")(sp.Symbol("x")), "teacher", 0, ExpressionError, "without a definition"),
        (sp.Derivative(sp.Function("f")(x), x), "teacher", 0, ParameterError, "unevaluated"),
        (sp.gamma(sp.Symbol("x")), "teacher", 0, ExpressionError, "gamma"),
        (sp.I * sp.Symbol("x"), "teacher", 0, ExpressionError, "imaginary"),
        ("square", None, 0, ParameterError, "labels must be one of"),
    ],
)
def test_what_cannot_be_solved_is_refused_by_name(loss, labels, noise, error, words):
    with pytest.raises(error, match=re.escape(words)) as caught:
        gs.ConvexReadout(features(noise_variance=noise), loss, labels)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_other_arguments_are_checked():
    with pytest.raises(ParameterError, match="features"):
        gs.ConvexReadout("erf", "square")
    with pytest.raises(ParameterError, match="width"):
        gs.ConvexReadout(features(), "square", width=0)
    readout = features().with_loss("square")
    for alpha, ridge in ((0, 0.1), (1, 0), (1, -1), (np.nan, 0.1), ("1", 0.1)):
        with pytest.raises(ParameterError):
            readout.solve(alpha=alpha, ridge=ridge)


@pytest.mark.parametrize(
    ("metrics", "error", "words"),
    [
        ({"a": "step(-y*x)"}, ParameterError, "continuous"),
        ({"a b": "x"}, ParameterError, "identifier"),
        ({"é": "x"}, ParameterError, "identifier"),
        ({"class": "x"}, ParameterError, "identifier"),
        ({"loss": "x"}, ParameterError, "result already"),
        (["x"], ParameterError, "mapping"),
        (np.array([]), ParameterError, "mapping"),
        ({"a": 3}, ParameterError, "text or a SymPy expression"),
        ({"a": lambda y, x: x}, ParameterError, "text or a SymPy expression"),
        ({"a": "3"}, ParameterError, "depend on"),
        ({"a": "1/x"}, ParameterError, "finite"),
        ({"a": "log(x)"}, ParameterError, "finite"),
        ({"a": "exp(x**2)"}, ParameterError, "more slowly"),
        ({"a": "z"}, ExpressionError, "unknown name"),
        ({"a": sp.Symbol("q")}, ExpressionError, "y and x alone"),
    ],
)
def test_metrics_are_functions_with_a_mean(metrics, error, words):
    with pytest.raises(error, match=words):
        gs.ConvexReadout(features(), "square", metrics=metrics)


# ------------------------------------------------------------------ losses with parameters

PINBALL = "t*relu(y - x) + (1 - t)*relu(x - y)"


@pytest.mark.slow
def test_one_kernel_serves_all_values_of_the_parameters_of_a_loss():
    model = features(noise_variance=0.1)
    own = [model.with_loss(gs.convex_loss(PINBALL, t=t)) for t in (0.3, 0.9)]
    assert own[0]._case == own[1]._case
    # The same loss by name, swept over its parameter.
    kernel = model.with_loss("quantile(0.3)").kernel()
    swept = kernel.curve(tau=[0.3, 0.9], alpha=2.0, ridge=0.1, progress=False).to_dataset()
    for readout, known in zip(own, swept.test_error.values, strict=True):
        assert readout.solve(alpha=2.0, ridge=0.1).test_error == pytest.approx(known, rel=1e-12)
    assert own[1].kernel().parameters[-1] == "t"
    with pytest.raises(ParameterError, match=r"tau must be inside \(0, 1\)"):
        kernel.solve(alpha=2.0, ridge=0.1, tau=1.5)


@pytest.mark.slow
def test_labels_that_are_nearly_functions_of_the_mean_field_have_a_width_on_the_line():
    # Labels jump in κ on the width ρ/γ, which no averages over s are there to show.
    model = features("erf", "sign", alignment=0.9999).with_loss("hinge", labels="sign")
    found = model.kernel().solve(alpha=2.0, ridge=0.1)
    own = model.solve(alpha=2.0, ridge=0.1)
    assert found["test_error"] == pytest.approx(own.test_error, rel=1e-9)
    assert found.errors["test_error"] < 1e-9


@pytest.mark.slow
def test_digits_of_a_margin_loss_on_signs():
    model = features("erf", "sign").with_loss("hinge", labels="sign")
    refined = model.solve(alpha=1.5, ridge=0.1, digits=18)
    assert refined.errors["test_error"] < 1e-18
    found = model.solve(alpha=1.5, ridge=0.1)
    assert float(refined.test_error) == pytest.approx(found.test_error, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "parameters", "error", "words"),
    [
        (PINBALL, {}, ExpressionError, "unknown name"),
        (PINBALL, {"t": 0.3, "u": 1.0}, ParameterError, "no parameter 'u'"),
        (PINBALL, {"t": "0.3"}, ParameterError, "must be a number"),
        (PINBALL, {"t": 0.0}, ParameterError, "leave it out"),
        (PINBALL, {"t": np.inf}, ParameterError, "finite"),
        ("ridge*(y - x)**2", {"ridge": 1.0}, ParameterError, "another one"),
        ("digits*(y - x)**2", {"digits": 1.0}, ParameterError, "another one"),
        ("huber(0.5)", {"delta": 0.5}, ParameterError, "in its name"),
        ("(x - y)**2*(1 - a*x)", {"a": 1e-3}, ParameterError, "a = "),
        ("a*(y - x)**2", {"a": -1.0}, ParameterError, "convex"),
        # Convex at the given value, but not at all positive ones.
        ("(x - y)**4 + (1 - a)*(x - y)**2", {"a": 0.5}, ParameterError, "a = "),
    ],
)
def test_parameters_of_losses_are_checked(loss, parameters, error, words):
    with pytest.raises(error, match=re.escape(words)):
        gs.convex_loss(loss, **parameters)


def test_expressions_of_sympy_may_hold_cases():
    # The Huber loss with δ = 1, and a pinball loss with a decimal.
    u = sp.Symbol("x") - sp.Symbol("y")
    cases = sp.Piecewise((u**2 / 2, sp.Abs(u) < 1), (sp.Abs(u) - HALF, True))
    model = gs.ConvexReadout(features(), cases)
    at = {x: sp.Rational(7, 3), y: sp.Rational(1, 4), delta: 1}
    assert model.convex_loss.expr.subs(at) == convex_loss("huber(1)").expr.subs(at)
    assert convex_loss(model.convex_loss.name).expr == model.convex_loss.expr
    assert str(gs.ConvexReadout(features(), 0.1 * sp.Max(u, 0)).convex_loss) == "relu(x - y)/10"


# ------------------------------------------------------------------ the step sees the labels


def test_the_step_sees_the_mean_of_the_labels():
    # h*_1 = E[y z] = sqrt(2/π) for signs, and E y² = 1: Result 3.1 with these.
    given = {"step_size": 2.0, "alpha0": 4.0}
    signs = gs.SpikedRandomFeatures("erf", "sign", **given)
    assert gs.ConvexReadout(gs.SpikedRandomFeatures("erf", "tanh", **given), "hinge",
                            "sign").spike == signs.spike  # fmt: skip
    probit = gs.ConvexReadout(
        gs.SpikedRandomFeatures("erf", "sign", noise_variance=0.7, **given), "hinge", "probit"
    )
    slope = np.sqrt(2 / np.pi / 1.7)  # E[z sign(z + sqrt(Δ) ξ)]
    assert probit.spike.alignment == pytest.approx(slope / np.hypot(slope, 0.5), rel=1e-12)
    nodes, weights = gauss()
    slope = weights @ (nodes * np.tanh(nodes / 2))
    logistic = gs.ConvexReadout(
        gs.SpikedRandomFeatures("erf", "sign", **given), "hinge", "logistic"
    )
    assert logistic.spike.alignment == pytest.approx(slope / np.hypot(slope, 0.5), rel=1e-10)


# ------------------------------------------------------------------ numbers


@pytest.mark.slow
@pytest.mark.parametrize(("case", "known"), REFERENCE)
def test_reference_solutions(case, known):
    loss, labels, student, teacher, noise, beta = case
    model = features(student, teacher, noise_variance=noise, beta=beta)
    found = gs.ConvexReadout(model, loss, labels).solve(alpha=2, ridge=0.1)
    for name, value in known.items():
        # The last digit of a small value is its eleventh decimal.
        assert getattr(found, name) == pytest.approx(value, rel=2e-9, abs=6e-12), name
    assert found.residual < 1e-12
    # λw = Σ φf/√p times w: an identity of the minimum, 2·objective − 2·loss = λβq2/α.
    assert found.objective - found.training_loss == pytest.approx(
        0.1 * beta * found.q2 / 4, rel=1e-12
    )


# Of reference values, so that each is derived once.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "changes", "left_alone"),
    [
        # Both signs of the spike; without a step the alignment does not matter.
        (("hinge", "sign", "tanh", "sign", 0.0),
         ({"spike_strength": 1.2, "alignment": 0.9}, {"spike_strength": -1.2, "alignment": -0.9}),
         {}),
        (("huber(0.5)", "teacher", "erf", "sin", 0.1), ({"alignment": 0.3}, {"alignment": -0.8}),
         {"spike_strength": 0.0, "bulk_variance": 1.0}),
    ],
    ids=["sign", "no step"],
)  # fmt: skip
def test_symmetries_of_solutions(case, changes, left_alone):
    loss, labels, student, teacher, noise = case
    first, second = (
        gs.ConvexReadout(
            features(student, teacher, noise_variance=noise, **left_alone, **change), loss, labels
        ).solve(alpha=1.5, ridge=0.2)
        for change in changes
    )
    for name in ("test_error", "training_loss", "test_loss", "q2"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-8)


@pytest.mark.slow
def test_a_readout_is_used_from_files_and_other_processes(tmp_path):
    metrics = {"spread": "(y - x)**2"}
    readout = features(noise_variance=0.1).with_loss("square", metrics=metrics)
    found = readout.solve(alpha=2, ridge=0.1)
    # On a fresh sample that is the error with the noise of the label.
    assert found.metrics["test_spread"] == pytest.approx(found.test_error + 0.1, rel=1e-9)
    assert found.test_spread == found.metrics["test_spread"]
    copies = pickle.loads(pickle.dumps((readout, found)))
    assert copies == (readout, found)
    assert f"<td>{found.test_error:.12g}" in found._repr_html_()
    curve = readout.curve(alpha=[1.0, 2.0], ridge=0.1).to_dataset()
    curve.to_netcdf(tmp_path / "curve.nc")
    assert float(curve.test_error[1]) == pytest.approx(found.test_error, rel=1e-12)
    assert curve.attrs["loss"] == "square"


# Independent code: trapezoidal sums over κ, s and η and Newton's method for proximal points, which
# confirm every equation at these order parameters to 1e-11 and more.
OTHER_CHANNELS = [
    ("logistic", "probit", "tanh", {"spike_strength": -0.8, "bulk_variance": 1.2, "alignment": 0.6,
     "beta": 0.8, "noise_variance": 0.4}, None, (1.5, 0.05),
     {"test_error": 0.312394797072, "training_loss": 0.32149319036, "m": -3.03289781199,
      "q1": 6.59295301605}),
    ("sqrt(1 + (y - x)**2) - 1", "sign", "erf", {"spike_strength": 1.5, "bulk_variance": 1.3,
     "alignment": 0.7, "beta": 0.7}, 150, (2.5, 0.2),
     {"test_error": 0.216268839098, "training_loss": 0.149996697944, "m": 0.999414863039,
      "q1": 0.847944882869}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "labels", "student", "given", "width", "at", "known"), OTHER_CHANNELS
)
def test_other_channels_and_losses(loss, labels, student, given, width, at, known):
    found = gs.ConvexReadout(features(student, **given), loss, labels, width=width)
    found = found.solve(alpha=at[0], ridge=at[1])
    for name, value in known.items():
        assert getattr(found, name) == pytest.approx(value, rel=3e-9), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+".join(f"abs(x - {k}*y)" for k in range(40)), "more than 16 kinked functions"),
        ("*".join(f"(1 + (x - {k}*y)**2)" for k in range(40)), "product of 40 functions of x"),
        ("*".join(f"softplus(x - {k})" for k in range(40)), "product of 40 functions of x"),
        ("exp(exp(exp(x)))", "beyond 2"),
        ("cosh(exp(exp(x*y)))", "beyond 2"),
        ("sin(exp(exp(x**2))) + x**2", "beyond 2"),
    ],
)
def test_losses_and_metrics_that_are_too_large_are_refused_by_counts(text, message):
    start = time.process_time()
    for read in (convex_loss, lambda t: read_metrics({"m": t})):
        with pytest.raises(UnsupportedExpressionError, match=message):
            read(text)
    assert time.process_time() - start < 3


@pytest.mark.parametrize("name", ["absolute", "quantile(0.3)", "insensitive(0.2)", "hinge"])
def test_proximal_points_of_kinked_losses_minimise(name):
    loss = simulated_loss(convex_loss(name))
    grid = np.linspace(-4, 4, 80_001)
    for label, center, step in ((1.0, -0.7, 0.4), (-1.0, 0.3, 1.2), (1.0, 2.5, 0.6)):
        objective = loss.value(label, grid) + (grid - center) ** 2 / (2 * step)
        best = grid[np.argmin(objective)]
        assert float(loss.proximal(label, center, step)) == pytest.approx(best, abs=2e-4)


# ---------------------------------------------------------------------- letters


ONE = {"spike_strengths": [1.2], "bulk_variances": [1.1], "fractions": [1.0], "alignment": 0.9}


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("letters", [1, 2])
def test_norms_with_and_without_the_label_give_one_free_energy(letters, aligned):
    given = activation("erf"), activation("sin"), letters
    whole = physics.letters_free_energy(*given, aligned=aligned)
    # Another function with the same values: the free energy is then in Q_1.
    orthogonal = physics.letters_free_energy(
        *given, aligned=aligned, loss_term=lambda prediction: physics.square_loss(prediction)
    )
    q1, big_q1 = (physics.Letters.of(letters, name) for name in ("q1", "Q1"))
    psi = sp.Matrix(letters, 1, lambda a, _: 0 if aligned else q1.psi[a])
    left = q1.norms - psi * psi.T
    back = {big_q1.norms[i, j]: left[i, j] for i, j in q1.upper}
    back |= dict(zip(big_q1.q2, q1.q2, strict=True))
    difference = whole.free_energy.expression - orthogonal.free_energy.expression.xreplace(back)
    (theirs, ours) = (
        {e.integrand for e in x.atoms(physics.GaussianExpectation)}
        for x in (whole.free_energy.expression, orthogonal.free_energy.expression.xreplace(back))
    )
    assert {sp.simplify(a - b) for a, b in zip(theirs, ours, strict=True)} == {0}
    assert sp.simplify(difference.replace(physics.GaussianExpectation, lambda *_: sp.S.Zero)) == 0
    assert whole.overlaps == {f"q1_{i + 1}{j + 1}": q1.norms[i, j] for i, j in q1.upper}
    for name, value in whole.overlaps.items():
        assert sp.expand(value - orthogonal.overlaps[name].xreplace(back)) == 0


def test_mean_features_separate_labels_only_where_a_combination_does():
    kappa = np.linspace(-3, 3, 61)
    labels = np.sign(kappa**2 - 1)
    square, constant = kappa**2, np.ones(61)
    assert _separated(labels, np.stack([square, constant], axis=1))
    assert not _separated(labels, square[:, None])
    assert not _separated(labels, np.stack([square, kappa], axis=1))
    assert not _separated(labels, np.zeros((61, 1)))


def test_readouts_of_letters_are_stored_and_sent():
    readout = make("erf", "sin", **TWO, noise_variance=0.1, width=300).with_loss("huber(0.3)")
    assert readout.width == 300
    assert gs.ConvexReadout.from_json(readout.to_json()) == readout
    assert pickle.loads(pickle.dumps(readout)) == readout
    assert readout.at(delta=0.5, beta=2).features.beta == 2
    assert readout.spike.fractions.tolist() == [0.4, 0.6]
    own = make("erf", "sin", **ONE).with_loss(gs.convex_loss("t*abs(y - x)", t=0.3))
    again = gs.ConvexReadout.from_json(own.to_json())
    assert (
        again.to_json() == own.to_json() and str(again.convex_loss) == "t*abs(y - x) with t = 0.3"
    )


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: make(
            "tanh", "sin", spike_strengths=[1.0, 0.5, -0.5, -1.0], bulk_variances=[1.0] * 4,
            fractions=[0.25] * 4, alignment=0.9,
        ).with_loss("huber(0.3)"), ParameterError, "at most 3 letters"),
        (lambda: make(
            "tanh", "sin", spike_strengths=[[1.0, 0.2]], bulk_variances=[1.0], fractions=[1.0],
            alignment=[0.9, 0.1],
        ).with_loss("huber(0.3)"), ParameterError, "a spike of rank one"),
        (lambda: make("tanh", "sin", **TWO).with_loss("hinge"), ParameterError, "needs labels ±1"),
        *((lambda m=m: gs.ConvexReadout(m, "huber(0.3)"), ParameterError,
           "SpikedRandomFeatures or a VocabularyFeatures") for m in ("features",)),
        (lambda: make("tanh", "sin", **TWO).with_loss("square").solve(
            alpha=2, ridge=0.1, certify=True), CertificationError, "convex readouts"),
    ],
)  # fmt: skip
def test_what_has_no_equations_is_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


@pytest.mark.slow
def test_labels_that_mean_features_separate_are_refused_without_a_width():
    readout = make("tanh", "sign", **{**TWO, "alignment": 1.0}).with_loss("hinge", labels="sign")
    with pytest.raises(AssumptionError, match="labels are the sign of the mean feature"):
        readout.solve(alpha=2, ridge=0.1)


@pytest.mark.slow
def test_one_letter_is_one_kind_of_rows():
    letter = make("erf", "sign", **ONE, beta=0.7)
    rows = gs.SpikedRandomFeatures.from_parameters(
        "erf", "sign", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, beta=0.7
    )
    found, expected = (
        x.with_loss("hinge", labels="sign").solve(alpha=2, ridge=0.1) for x in (letter, rows)
    )
    for name in ("test_error", "training_loss", "test_loss", "objective"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=2e-11)
    # Overlaps are those of rows of unit length.
    assert found.q1_11 == pytest.approx(expected.q1 / 1.1, rel=2e-11)


@pytest.mark.slow
def test_two_letters_against_readouts_of_finite_size():
    # Larger ones, and with signs as labels, are evidence of the claim cui-convex-loss.
    readout = make("erf", "sin", **TWO, noise_variance=0.1).with_loss("huber(0.3)", width=100)
    theory = readout.solve(alpha=2, ridge=0.1)
    found = readout.simulate(100, alpha=[2.0], ridge=0.1, seeds=12, progress=False)
    for name in ("test_error", "training_loss"):
        values = found[name].to_numpy().ravel()
        error = values.std(ddof=1) / len(values) ** 0.5
        assert abs(values.mean() - getattr(theory, name)) <= 4 * error, name


@pytest.mark.slow
def test_the_square_loss_as_a_convex_one():
    given = {"beta": 0.7, "noise_variance": 0.1, "bulk": "orthonormal", "width": 500}
    model = make("tanh", "sin", **TWO, **given)
    found = model.with_loss("square").solve(alpha=2, ridge=0.1)
    expected = model.solve(alpha=2, ridge=0.1)
    assert found.test_error == pytest.approx(expected.test_error, rel=1e-11)
    assert 2 * found.training_loss == pytest.approx(expected.training_error, rel=1e-11)
    assert found.q1_12 == pytest.approx(expected.q1[0, 1], rel=1e-9)


@pytest.mark.slow
def test_a_margin_loss_that_is_quadratic_in_predictions_is_ridge_regression():
    # For signs y² = 1. All unknowns but the responses V are found by linear solves.
    found = features().with_loss("(1 - y*x)**2", labels="sign").solve(alpha=2, ridge=0.2)
    expected = features(teacher="sign").solve(alpha=2, ridge=0.1)
    assert [found.m, found.q2] == pytest.approx([expected.m, expected.q2], rel=1e-11)
    assert found.training_loss == pytest.approx(expected.training_error, rel=1e-11)


@pytest.mark.slow
def test_a_loss_that_is_square_with_the_complete_leading_order_is_ridge_regression():
    # Of an uneven student, whose rows are stretched, too. No residual is as large as 1000.
    features = gs.SpikedRandomFeatures(
        "relu", "relu", step_size=2, allow_non_odd=True, noise_variance=0.1, alpha0=30,
        leading_order="complete",
    )  # fmt: skip
    readout = features.with_loss("huber(1000)").solve(alpha=2, ridge=0.1)
    ridge = features.solve(alpha=2, ridge=0.1)
    assert readout.test_error == pytest.approx(ridge.test_error, rel=1e-9)
    assert readout.objective == pytest.approx(
        (ridge.training_error + 0.1 * features.beta / 2 * ridge.q2) / 2, rel=1e-9
    )
