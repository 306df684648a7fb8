"""Proven intervals for τ_*: reference values, structure of students, and honest failures."""

import mpmath
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.one_gradient_step.amplitude_minimum import (
    AmplitudeError,
    Form,
    amplitude,
    smoothing_of_a_step,
    student_shape,
)
from giantstep.derivations.one_gradient_step.large_steps import large_step_limit
from giantstep.derivations.one_gradient_step.reference import reference_document
from giantstep.errors import (
    AssumptionError,
    CertificationError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from giantstep.symbolic.expressions.activations import activation, z

pytest.importorskip("flint")

from giantstep.derivations.certificates import proof
from giantstep.derivations.one_gradient_step import amplitude_minimum as certified_amplitude
from giantstep.derivations.one_gradient_step.amplitude_minimum import amplitude_balls
from giantstep.numeric.proofs.interval_minimum import ProvenMinimum
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.gaussian.enclosures import PRECISION

QUICK = {("erf", "erf"), ("sin", "sin")}


SHAPES = [
    "tanh", "erf", "atan", "sigmoid", "relu", "softplus", "swish", "gelu", "tanh(2*z - 3)",
    "relu(1 - 3*z)", "-3*z*tanh(-z/2)", "cos(2*z + 1)",
]  # fmt: skip


def pairs():
    """Of the others, which take seconds, all are evidence of ba-tau-star."""
    rows = reference_document()["large_step_bound"]
    return [row for row in rows if (row["student"], row["teacher"]) in QUICK]


def check(row):
    found = large_step_limit(
        row["student"], row["teacher"], centre=True, certify=True, progress=False
    )
    proof = found.certificate
    for name, text in (("tau_star", row["tau"]), ("amplitude", row["argmin"])):
        value, listed = proof[name], sp.Rational(text)
        assert abs(value.midpoint - listed) <= value.radius + abs(listed) * sp.Rational(1, 10**15)
    assert proof["tau_star"].radius <= proof["tau_star"].midpoint * sp.Rational(1, 10**14)


@pytest.mark.parametrize("row", pairs(), ids=lambda row: f"{row['student']}-{row['teacher']}")
def test_reference_values(row):
    check(row)


@pytest.mark.slow
def test_more_digits():
    proof = large_step_limit("erf", "sin", digits=40, certify=True, progress=False).certificate
    text = large_step_limit("erf", "sin", digits=45).texts[1]
    assert abs(proof["tau_star"].midpoint - sp.Rational(text)) < sp.Rational(1, 10**40)
    assert proof["tau_star"].digits >= 38


@pytest.mark.parametrize("student", ["sin", pytest.param("relu", marks=pytest.mark.slow), "cos(z)"])
def test_where_one_function_is_even_two_amplitudes_are_best(student):
    teacher = "z**2-1" if student != "cos(z)" else "cos(2*z)"
    proof = large_step_limit(student, teacher, centre=True, certify=True).certificate
    assert "tau_star" in proof.values
    assert ("up to its sign" in proof.statement) == (student != "sin")


def test_a_polynomial_student():
    # G(s) = s³ + 2s, J = 1 - 2(3h³ + 2h) + 15h⁶ + 12h⁴ + 4h².
    proof = large_step_limit("z**3-z", "z", certify=True).certificate
    h = sp.Symbol("h")
    j = 1 - 2 * (3 * h**3 + 2 * h) + 15 * h**6 + 12 * h**4 + 4 * h**2
    least = min(j.subs(h, r) for r in sp.Poly(j.diff(h), h).nroots(40) if r.is_real)
    assert abs(proof["tau_star"].midpoint - least) < 1e-18


def test_a_polynomial_student_on_a_teacher_that_is_none():
    # J' has a double root at h = 0: G(ht) = h³t³.
    proof = large_step_limit("He(3, z)", "sin", certify=True).certificate
    # E sin² - 2h³ E t³ sin t + 15 h⁶, least where h³ = E t³ sin t/15, E t³ sin t = 2/√e.
    least = (1 - sp.exp(-2)) / 2 - 4 * sp.exp(-1) / 15
    assert proof["tau_star"].contains(least) and proof["tau_star"].digits >= 15


def test_an_infimum_at_infinity():
    proof = large_step_limit("erf", "sign", certify=True).certificate
    assert proof["tau_star"].is_exact and "amplitude" not in proof.values
    better = large_step_limit("erf", "sign(z) + z/100", centre=True, certify=True).certificate
    # J goes to 1/100² there; that nothing finite is better is not looked for.
    assert set(better.values) == {"tau_star_upper"}
    assert better["tau_star_upper"].contains("0.0001") and "is not proven" in better.statement


def test_an_unknown_student_has_an_upper_bound_only():
    found = large_step_limit("exp(z/2)", "z", centre=True, certify=True, progress=False)
    assert set(found.certificate.values) == {"tau_star_upper"}
    assert "is not proven" in found.certificate.statement
    upper = found.certificate["tau_star_upper"].upper
    assert found.tau_star <= float(upper) * (1 + 1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_slopes_and_rests_are_bounds(name):
    f = activation(name)
    shape = student_shape(f.expr)
    a, b = shape.ramp
    for x in (-30, -2, -sp.Rational(1, 7), sp.Rational(2, 3), 1, 25):
        assert abs(f.derivative.subs(z, x).evalf(30)) <= shape.slope.evalf(30)
        left = abs((f.expr - a * z - b * abs(z)).subs(z, x).evalf(30))
        assert left <= shape.rest.evalf(30)


def test_distances_from_a_step():
    assert float(smoothing_of_a_step()) ** 2 == pytest.approx(
        float(2 * mpmath.quad(lambda s: mpmath.ncdf(-s) ** 2, [0, mpmath.inf])), rel=1e-12
    )
    halves = {
        "tanh": lambda s: 1 - mpmath.tanh(s),
        "erf": mpmath.erfc,
        "atan": lambda s: mpmath.atan(1 / s),
    }
    for name, tail in halves.items():
        square = 2 * mpmath.quad(lambda s, f=tail: f(s) ** 2, [0, 1, 10, 1000, mpmath.inf])
        jump = {"atan": sp.pi}.get(name, sp.Integer(2))
        expected = mpmath.sqrt(square) + float(jump * smoothing_of_a_step())
        assert float(student_shape(activation(name).expr).distance) == pytest.approx(
            float(expected), rel=1e-9
        )


def test_the_distance_from_a_step_elsewhere():
    # The student itself against its step at zero, which the smoothed one is closer to than D.
    shape = student_shape(activation("tanh(z - 2)").expr)
    tail = [-40, -10, 0, 2, 10, 40]
    with mpmath.workdps(15):
        square = mpmath.quad(lambda s: (mpmath.tanh(s - 2) - mpmath.sign(s)) ** 2, tail)
    assert float(shape.distance) ** 2 > float(square)
    assert shape.sine is None and not shape.has_ramp


def test_what_has_no_shape_is_refused():
    for text in ("z**2", "z*tanh(z + 1)", "exp(z)", "tanh(z**2)", "z*sin(z)"):
        with pytest.raises(CertificationError, match="nothing is proven"):
            student_shape(activation(text).expr)


def at(student, teacher, form, h, bits, *, centre=False):
    error = AmplitudeError(activation(student), activation(teacher), centre)
    with PRECISION:
        point = BallEvaluator().real_constant(h)
        return amplitude_balls(error, [form]).at(point, bits)


@pytest.mark.parametrize("centre", [False, True])
def test_averages_with_and_without_closed_forms_agree(centre):
    h = sp.Rational(6, 5)
    one = at("erf", "tanh", Form.SMOOTHED, h, 50, centre=centre)
    other = at("erf", "tanh", Form.AVERAGED, h, 50, centre=centre)
    for first, second in zip(one, other, strict=True):
        assert first.overlaps(second) and first.rad() < 1e-12 and second.rad() < 1e-12


def test_means_without_closed_form_are_subtracted():
    # E (relu(t) - E relu - softplus-smoothed + E softplus)² at h = 0 is the variance of relu.
    value, _, _ = at("softplus", "relu", Form.AVERAGED, sp.S.Zero, 40, centre=True)
    assert value.overlaps(type(value)("0.34084505690810466423")) and value.rad() < 1e-11


@pytest.mark.parametrize(("student", "teacher"), [("erf", "erf"), ("relu", "sin")])
@pytest.mark.parametrize("form", list(Form))
def test_balls_hold_closed_forms(student, teacher, form):
    error = AmplitudeError(activation(student), activation(teacher), False)
    h = sp.Rational(7, 5)
    for order, ball in enumerate(at(student, teacher, form, h, 40)):
        exact = error.closed_form.diff(amplitude, order).subs(amplitude, h).evalf(30)
        # The search compares: a complex ball has no order.
        assert (ball > 0) == (exact > 0) and ball.rad() < 1e-11
        assert ball.contains(type(ball)(str(exact)))


def test_without_a_search_elsewhere_there_is_an_upper_bound_only(monkeypatch):
    def better(*args, **options):
        raise CertificationError("another amplitude may be better")

    monkeypatch.setattr(certified_amplitude, "minimise", better)
    proof = large_step_limit("sin", "sin", certify=True, progress=False).certificate
    assert set(proof.values) == {"tau_star_upper"} and "may be better" in proof.statement


def test_the_interval_is_that_of_the_search_and_several_places_are_said_to_be_so(monkeypatch):
    def found(function, ends, *, starts, **options):
        value = function.at(starts[0])[0]
        return ProvenMinimum((value / 2).lower(), value.upper(), (starts[0], -starts[0]), False, 1)

    monkeypatch.setattr(certified_amplitude, "minimise", found)
    proof = large_step_limit("sin", "sin", certify=True, progress=False).certificate
    assert set(proof.values) == {"tau_star"}
    assert proof["tau_star"].lower < 0.0317 < 0.0632 < proof["tau_star"].upper
    assert "one amplitude only is not proven" in proof.statement


def test_bounds_over_cells_hold_what_is_inside():
    error = AmplitudeError(activation("sin"), activation("sin"), False)
    exact = [sp.lambdify(amplitude, error.closed_form.diff(amplitude, k)) for k in range(3)]
    with PRECISION:
        balls = amplitude_balls(error)
        function = certified_amplitude._BoundedError(balls, student_shape(error.student_expr), 40)
        for centre, radius in ((1.1, 0.2), (-0.3, 0.5), (2.0, 0.01)):
            point = BallEvaluator().real_constant(sp.Rational(centre))
            for order, f in enumerate(exact):
                cell = function.over(point, radius, order)
                for x in (centre - radius, centre - radius / 3, centre, centre + radius):
                    assert cell.overlaps(type(cell)(float(f(x)), 1e-13))


def test_what_lies_beyond_the_line_counts(monkeypatch):
    monkeypatch.setattr(proof, "mass_outside", lambda bound, reach: type(reach)(1))
    assert at("erf", "erf", Form.AVERAGED, sp.Rational(7, 5), 40)[0].rad() >= 1


def test_command_line(run):
    code, out, _ = run(
        "one-step", "large-steps", "--student", "sin", "--teacher", "sin", "--certify",
        "--table-only",
    )  # fmt: skip
    assert code == 0 and "proven interval" in out and "exactly one amplitude" in out


@pytest.mark.slow
def test_command_line_of_the_spectrum(run):
    code, out, _ = run("one-step", "spectrum", "--certify", "--table-only")
    assert code == 0 and out.count("proven interval") == 2


# ---------------------------------------------------------------------- functions of users


pytest.importorskip("flint")


@pytest.mark.parametrize(
    ("function", "between", "minimum", "place"),
    [
        ("z**4 - z", (-2, 2), -3 * sp.Rational(1, 4) ** sp.Rational(4, 3), sp.cbrt(2) / 2),
        (
            "log(cosh(z)) - z/3",
            (0, 5),
            -sp.log(sp.Rational(8, 9)) / 2 - sp.log(2) / 6,
            sp.log(2) / 2,
        ),
        # At an end, and far from the minima of a grid.
        ("tanh(z)", (-1, 2), -sp.tanh(1), -1),
        ("exp(-z**2)", (-1, 3), sp.exp(-9), 3),
        ("cos(z) + z/10", (-10, 10), None, -sp.asin(sp.Rational(1, 10)) - 3 * sp.pi),
    ],
)
def test_minima_in_closed_form(function, between, minimum, place):
    proof = gs.certified_minimum(function, between, digits=30)
    if minimum is None:
        minimum = gs.activation(function).expr.subs(sp.Symbol("z", real=True), place)
    for name, wanted in (("minimum", minimum), ("place", place)):
        value = proof[name]
        assert abs(value.midpoint - wanted).evalf(50) <= value.radius + sp.Float("1e-45", 50)
    assert proof["minimum"].digits >= 30 and proof["place"].digits >= 15
    assert "exactly one point" in proof.statement


def test_two_equal_minima_are_not_told_apart():
    proof = gs.certified_minimum("z**2*(z - 1)**2", (-1, 2))
    assert set(proof.values) == {"minimum"} and proof["minimum"].contains(0)
    assert "is not proven: it may be in" in proof.statement


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("z**2", (1, 0)), ParameterError, "between must be two finite numbers"),
        (("z**2", (0, float("inf"))), ParameterError, "between must be two finite numbers"),
        (("z**2", 3), ParameterError, "between must be two numbers"),
        (("z**2", ("a", 1)), ParameterError, "between must be a number"),
        (("x**2", (0, 1)), ExpressionError, "function"),
        (("1/z", (-1, 1)), AssumptionError, "singular at z = 0"),
        (("abs(z)", (-1, 1)), UnsupportedExpressionError, "has kinks at 0 in the interval"),
    ],
)
def test_what_cannot_be_minimised_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        gs.certified_minimum(*arguments)
