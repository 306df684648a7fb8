"""Expansions of the risk: orders of their errors, independent limits, refusals."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep import OneGradientStep
from giantstep.derivations.expansions.expansion import Expansion, _broken
from giantstep.derivations.formulas import latex
from giantstep.derivations.one_gradient_step import expansion as expansion_module
from giantstep.derivations.one_gradient_step.expansion import paper_ridge, start_nu
from giantstep.derivations.one_gradient_step.symbols import teacher_linear, teacher_residual
from giantstep.derivations.penalties import PaperRidge
from giantstep.errors import ApproximationWarning, AssumptionError, ParameterError
from giantstep.runtime.precision import local_context

CTX = mpmath.mp.clone()
CTX.dps = 60

BASE = {"step_size": 2, "noise_variance": 0.25}


def model(student="erf", teacher="erf", **arguments):
    return OneGradientStep(student, teacher, **{**BASE, "alpha": 2, "beta": 1.5, **arguments})


@cache
def simple(name="small_ridge", order=1, alpha=2, **fixed):
    """Expansions that several tests look at."""
    return model(alpha=alpha).expansion(name, order, **fixed)


def closed_form(given, *, alpha=None, ridge=None, step_size=None):
    """The paper's closed form in s, its ν by bisection: none of the expansion's equations."""
    to = lambda v: CTX.mpf(repr(v)) if isinstance(v, int | float) else v  # noqa: E731
    a, b = to(given.alpha if alpha is None else alpha), to(given.beta)
    a0 = a if given.alpha0 is None else to(given.alpha0)
    factor = 2 if given.loss == "full" else 1
    eta = to(given.step_size if step_size is None else step_size) * factor
    student, teacher = given.student_moments.precise(55), given.teacher_moments.precise(55)
    slope, floor = CTX.mpf(student["linear"]) ** 2, CTX.mpf(student["residual"])
    signal, rest = CTX.mpf(teacher["linear"]) ** 2, CTX.mpf(teacher["residual"])
    noise = to(given.noise_variance)
    of_paper = isinstance(ridge, PaperRidge)
    penalty = to(ridge.value) if of_paper else b / a * to(ridge)
    t2 = eta**2 * slope * signal
    t1 = t2 + eta**2 * slope * (signal + rest + noise) / a0

    def shrinkage(nu):
        if not slope:
            return 1 - b / a * floor / (floor + nu)
        s = largest(nu)
        return 1 - b / a * (1 / s + (floor / slope / (s - b) if floor else 0))

    def largest(nu):
        middle = 1 + b + (floor + nu) / slope
        return (middle + CTX.sqrt(middle**2 - 4 * b)) / 2

    low, high = CTX.log(penalty) - 1, CTX.log(penalty + b / a * (slope + floor)) + 1
    for _ in range(230):
        middle = (low + high) / 2
        nu = CTX.exp(middle)
        low, high = (middle, high) if nu * shrinkage(nu) < penalty else (low, middle)
    nu = CTX.exp((low + high) / 2)
    q = shrinkage(nu)
    if not slope:
        pace, before, after = 1 - b / a * (floor / (floor + nu)) ** 2, signal, signal
    else:
        s, x, kappa = largest(nu), nu / slope, floor / slope
        spread = s * (s - b) / (s**2 - b)
        used = 1 / s**2 + (kappa / (s - b) ** 2 if floor else 0)
        pace = q + x * b / a * used / (1 - b / s**2)
        before = signal / (s - 1) * (kappa + x * spread)
        after = kappa * (1 - t2 / (s + t1))
        after += x * spread * (1 - t2 * (2 * s - 1 + t1) / (s + t1) ** 2)
        after *= signal / (s - 1)
    found = {"effective_ridge": nu}
    for layer, bias in (("initial", before + rest), ("trained", after + rest)):
        fresh = (bias + noise) / pace
        found[layer] = fresh - noise
        found[f"bias_{layer}"] = bias
        found[f"variance_{layer}"] = fresh * (1 - pace)
        found[f"training_error_{layer}"] = q**2 * fresh
    found["improvement"] = found["initial"] - found["trained"]
    return found


def slopes(given, series, decades, **fixed):
    """Return how many powers of ten the error falls by in each of three decades."""
    points = [CTX.mpf(10) ** -d for d in decades]
    errors = {}
    for point in points:
        value = 1 / point if series.point else point
        exact = closed_form(given, **{series.parameter: value}, **fixed)
        for name, number in exact.items():
            errors.setdefault(name, []).append(abs(number - CTX.convert(series(value, name))))
    width = decades[1] - decades[0]
    return {
        name: [float(CTX.log10(a / b)) / width if a and b else None for a, b in pairwise(e)]
        for name, e in errors.items()
    }


def assert_order(given, series, decades=(6, 7, 8, 9), **fixed):
    for name, found in slopes(given, series, decades, **fixed).items():
        left = series.neglected[name]
        if left is None:
            # The series ends: what is left is the rounding of 50-digit coefficients.
            exact = closed_form(given, **{series.parameter: _at(series, decades[0])}, **fixed)
            assert abs(series(_at(series, decades[0]), name) - exact[name]) < 1e-40, name
            continue
        assert found == pytest.approx([float(left[0])] * 3, abs=0.03), name


def _at(series, decade):
    return CTX.mpf(10) ** (decade if series.point else -decade)


# ---------------------------------------------------------------------- orders

RIDGES = [
    # n > N, n = N, n < N.
    ("erf", {"alpha": 2}, (0, 1, 2)),
    ("erf", {"alpha": 1.5}, (Fraction(-1, 2), 0, Fraction(1, 2))),
    ("erf", {"alpha": 1}, (0, 1, 2)),
    ("relu", {"alpha": 1.5, "centre": True, "alpha0": math.inf}, (Fraction(-1, 2), 0)),
    # Linear students: fewer neurons than dimensions, as many, more.
    ("z", {"alpha": 0.5, "beta": 0.5}, (Fraction(-1, 2), 0)),
    ("z", {"alpha": 3, "beta": 2}, (0, 1)),
    ("z", {"alpha": 2, "beta": 2}, (0, 1)),
    ("z", {"alpha": 1, "beta": 2}, (Fraction(-1, 2), 0)),
    ("z", {"alpha": 2, "beta": 1}, (0, Fraction(1, 2))),
    ("z", {"alpha": 1, "beta": 1}, (Fraction(-1, 3), 0, Fraction(1, 3))),
    ("z", {"alpha": 0.5, "beta": 1}, (0, 1)),
    # Without linear part.
    ("He(2,z)", {"alpha": 2}, (0, 1)),
    ("He(2,z)", {"alpha": 1.5}, (Fraction(-1, 2), 0)),
    ("He(2,z)", {"alpha": 1}, (0, 1)),
    # A long step.
    ("erf", {"alpha": 2, "step_size": 1e4}, (0, 1)),
]


# A few of each kind every time, all of them among the slow tests.
@pytest.mark.parametrize(
    ("student", "arguments", "exponents"),
    [
        pytest.param(*case, marks=() if k in (1, 12) else pytest.mark.slow, id=str(case[:2]))
        for k, case in enumerate(RIDGES)
    ],
)
def test_small_penalties_have_the_stated_order(student, arguments, exponents):
    given = model(student, **arguments)
    series = given.expansion("small_ridge", 1)
    assert (*series.exponents, series.remainder_order)[: len(exponents)] == tuple(
        map(Fraction, exponents)
    )[: len(series.exponents) + 1]
    assert_order(given, series, decades=(8, 9, 10, 11))


SAMPLES = [
    ("erf", {}, {"ridge": 0.1}),
    ("erf", {"alpha0": 3}, {"ridge": PaperRidge(0.1)}),
    ("relu", {"centre": True}, {"ridge": PaperRidge(2.0)}),
    ("z", {"beta": 0.5}, {"ridge": 0.1}),
    ("z", {"beta": 1}, {"ridge": 0.1}),
    ("z", {"beta": 2, "alpha0": 1}, {"ridge": 0.1}),
    ("He(2,z)", {}, {"ridge": 0.1}),
]


@pytest.mark.parametrize(
    ("student", "arguments", "fixed"),
    [
        pytest.param(*case, marks=() if k == 0 else pytest.mark.slow, id=str(case))
        for k, case in enumerate(SAMPLES)
    ],
)
def test_many_samples_have_the_stated_order(student, arguments, fixed):
    given = model(student, **arguments)
    assert_order(given, given.expansion("large_alpha", 2, **fixed), **fixed)


@pytest.mark.parametrize(
    ("arguments", "fixed"),
    [
        pytest.param({"alpha": 1}, {"ridge": 0.1}, marks=pytest.mark.slow),
        ({"loss": "full", "alpha0": 3}, {"ridge": PaperRidge(0.1)}),
    ],
    ids=str,
)
def test_short_steps_have_the_stated_order(arguments, fixed):
    given = model(**arguments)
    series = given.expansion("small_step", 3, **fixed)
    # Even in the step; odd powers are none.
    assert series.exponents == (0, 2)
    assert series.remainder_order == 4
    assert_order(given, series, decades=(2, 3, 4, 5), **fixed)


# ---------------------------------------------------------------------- limits known otherwise


def test_without_a_penalty():
    # α → ∞ and η → 0 at λ = 0, from the closed form of that limit.
    given = model(alpha0=3)
    series = given.expansion("large_alpha", 8, ridge=0)
    exact = replace(given, alpha=1e3).ridgeless(digits=30)
    # The ninth power of 10^-3 times its coefficient.
    left = series.estimate_of_remainder(1e3)
    assert 0 < left < 1e-23
    assert abs(series(CTX.mpf(1000)) - exact.trained) < 2 * left
    with pytest.raises(AssumptionError, match="interpolation peak"):
        model(alpha=1.5).expansion("small_step", ridge=0)


@pytest.mark.parametrize(
    ("student", "arguments"),
    [
        ("erf", {"alpha": 2, "alpha0": 3}),
        ("erf", {"alpha": 1}),
        ("z", {"alpha": 3}),
        ("z", {"alpha": 0.7, "beta": 0.9}),
    ],
    ids=str,
)
def test_short_steps_without_a_penalty(student, arguments):
    # The closed forms of the limit differ for fewer samples than neurons and for linear students.
    given = model(student, **arguments)
    short = given.expansion("small_step", 4, ridge=0)
    exact = replace(given, step_size=1e-3).ridgeless(digits=30)
    left = 2 * short.estimate_of_remainder(1e-3) + 1e-28
    assert abs(short(CTX.mpf("1e-3")) - exact.trained) < left


# ---------------------------------------------------------------------- digits and region


def test_coefficients_that_vanish_are_zero():
    # At ν = 0 the bias is stationary: its first coefficient is zero.
    assert simple(order=2).coefficients["bias_initial"][1] == 0
    # n < N fits its own data: the training error begins with λ².
    assert model(alpha=1).expansion("small_ridge", 2).terms("training_error_trained")[0][0] == 2


@pytest.mark.parametrize(
    ("arguments", "name", "fixed"),
    [
        pytest.param({"alpha": 0.7}, "small_ridge", {}, marks=pytest.mark.slow),
        pytest.param({"alpha": 1.4}, "small_ridge", {}, marks=pytest.mark.slow),
        pytest.param({}, "large_alpha", {"ridge": 0.1}, marks=pytest.mark.slow),
        pytest.param({}, "large_alpha", {"ridge": PaperRidge(10.0)}, marks=pytest.mark.slow),
        pytest.param({}, "small_step", {"ridge": 0.1}),
    ],
    ids=str,
)
def test_the_radius_is_where_the_coefficients_say(arguments, name, fixed):
    # Root test with the last two of many coefficients, whose sign and angle oscillate.
    series = model(**arguments).expansion(name, 14, digits=10, **fixed)
    terms = series.terms()[-3:]
    found = [float(abs(c)) ** (-1 / float(e)) for e, c in terms]
    assert float(series.radius) == pytest.approx(np.median(found), rel=0.35)


def test_inside_the_radius_the_estimate_is_honest_and_beyond_it_is_infinite():
    given = model(alpha=1)
    series = given.expansion("small_ridge", 5)
    edge = float(series.radius)
    for part in (0.01, 0.1, 0.3):
        error = abs(series(part * edge) - given.risk(ridge=part * edge).trained)
        assert error < 3 * series.estimate_of_remainder(part * edge) + 1e-14
    assert series.estimate_of_remainder(2 * edge) == math.inf
    with pytest.warns(ApproximationWarning, match=r"convergence is known for ridge < .* only"):
        series(2 * edge)
    assert 0 < series.trusted_up_to < edge
    at = series.trusted_up_to
    assert abs(series(at) / given.risk(ridge=at).trained - 1) < 0.05


# ---------------------------------------------------------------------- formulas


@pytest.mark.parametrize(
    ("arguments", "name", "fixed"),
    [
        pytest.param({"alpha": 1.5}, "small_ridge", {}, marks=pytest.mark.slow),
        ({}, "large_alpha", {"ridge": 0.1}),
        pytest.param({"alpha": 2}, "small_ridge", {}, marks=pytest.mark.slow),
        pytest.param(
            {"alpha0": 3, "loss": "full"}, "small_step", {"ridge": 0.1}, marks=pytest.mark.slow
        ),
        pytest.param({"alpha": 1}, "small_ridge", {}, marks=pytest.mark.slow),
        pytest.param({}, "large_alpha", {"ridge": PaperRidge(0.1)}, marks=pytest.mark.slow),
        pytest.param({"alpha0": 3}, "large_alpha", {"ridge": 0.1}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_formulas_have_the_values_of_the_coefficients(arguments, name, fixed):
    given = model(**arguments)
    series = given.expansion(name, 2, formulas=True, **fixed)
    question = expansion_module.Question(given, name, fixed.get("ridge"), 30)
    known = dict(question.known)
    known[start_nu] = sp.Float(str(series.coefficients["effective_ridge"][0]), 40)
    known[paper_ridge] = sp.Rational(repr(question.penalty if question.of_paper else 1.0))
    assert set(series.formulas) >= {"trained", "initial", "training_error_trained"}
    for output, formulas in series.formulas.items():
        assert formulas
        for formula, number in zip(formulas, series.coefficients[output], strict=False):
            for _ in range(2):
                formula = formula.xreplace(series.definitions)
            found = CTX.mpf(str(formula.xreplace(known).evalf(40)))
            assert abs(found - CTX.convert(number)) < 1e-28 * (1 + abs(number)), output
    assert "s_{0}" in series.latex("initial", formulas=True)


def test_the_peak_in_latex():
    series = model(alpha=1.5).expansion("small_ridge", 1, formulas=True)
    # Two lines, for it is wider than a text.
    first, last = series.latex().split(r" \\ ")
    assert first.endswith(r"\lambda") and last == r"&\quad + O(\lambda^{3/2})\end{aligned}"
    assert r"R_\mathrm{GD} &= 0.0514974\,\lambda^{-1/2} + 0.0859879 + " in first
    shown = series.latex("initial", formulas=True)
    assert r"\lambda^{-1/2}" in shown
    assert shown.count(r"O(\lambda^{1/2})") == 1
    # θ belongs to the trained layer only.
    assert "theta" not in shown
    assert "theta" in series.latex("trained", formulas=True)
    with pytest.raises(ParameterError, match="expansion with formulas=True"):
        simple().latex(formulas=True)


# ---------------------------------------------------------------------- the object


def test_json_and_pickle_return_the_same(tmp_path):
    series = model(alpha0=math.inf).expansion("large_alpha", 2, ridge=0.1, formulas=True)
    series.save(tmp_path / "series.json")
    found = Expansion.load(tmp_path / "series.json")
    assert found == series
    assert found.fixed["alpha0"] == math.inf
    assert found(10.0) == series(10.0)
    assert str(found) == str(series)
    with pytest.raises(ParameterError, match="no exact solution to compare with"):
        found.plot()
    again = pickle.loads(pickle.dumps(series))
    assert again == series
    assert again.exact(5.0, None)["trained"] == series.exact(5.0, None)["trained"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(name="small_rigde"), "did you mean 'small_ridge'"),
        (lambda d: d.update(digits=0), "digits must be"),
        (lambda d: d.update(exponents=["1/0"]), "ZeroDivisionError"),
        (lambda d: d.update(exponents=["0"]), "do not fit"),
        (lambda d: d.update(more=1), "it has an entry 'more'"),
        *((lambda d, k=k: d.pop(k), f"there is no '{k}'") for k in ("coefficients", "region")),
        *((lambda d, k=k: d.pop(k), f"there is no '{k}'") for k in ("neglected", "symbols")),
        (lambda d: d["coefficients"].update(trained=["x", "1", "2"]), "ValueError"),
    ],
)
def test_damaged_files_are_refused(change, message):
    values = simple(order=2).to_dict()
    change(values)
    with pytest.raises(ParameterError, match=message):
        Expansion.from_dict(values)


def test_values_come_back_in_the_kind_that_was_given():
    series = simple("large_alpha", ridge=0.1)
    assert isinstance(series(50), float)
    assert isinstance(series(CTX.mpf(50)), type(series.coefficients["trained"][0]))
    array = series(np.array([[50.0, 100.0]]))
    assert array.shape == (1, 2)
    assert array[0, 0] == series(50.0)
    with pytest.raises(ParameterError, match="alpha is too large for a float"):
        series(10**400)
    # The limit itself.
    assert series(math.inf) == float(series.coefficients["trained"][0])
    assert series.output(None) == "trained"


def test_figures():
    axes = simple(alpha=1.5).plot("initial")
    assert len(axes) == 2
    assert axes[1].get_yscale() == "log"
    assert axes[0].get_ylabel() == "$R_0$"
    single = simple("large_alpha", ridge=0.1).plot(exact=False)
    assert single.get_xscale() == "log"
    # Nothing is kept of a training error that begins with λ².
    empty = model(alpha=1).expansion("small_ridge", 1).plot("training_error_trained")
    assert len(empty) == 2
    with pytest.raises(ParameterError, match="ax must be two axes"):
        simple().plot(ax=single)
    for wrong in ({"exact": "yes"}, {"exact": None}):
        with pytest.raises(ParameterError, match="exact must be True or False"):
            simple().plot(**wrong)


def test_errors_of_a_figure_are_those_of_the_exact_solution():
    """Also far below the rounding of floats: 1/α is no float."""
    series = simple("large_alpha", ridge=0.1, order=6)
    errors = series.plot("initial", digits=30)[1]
    points = [line for line in errors.lines if line.get_marker() == "s"][-1]
    alpha, size = points.get_xdata()[-1], points.get_ydata()[-1]
    assert size < 1e-18
    assert size == pytest.approx(float(series.estimate_of_remainder(alpha, "initial")), rel=0.1)
    # Exponents stand at the ends of their slopes, beside the points.
    assert errors.get_xlim()[1] > 2 * alpha
    slopes = [line for line in errors.lines if line.get_marker() == "None"]
    assert len(slopes) == len(errors.texts) > 3
    for text, line in zip(errors.texts, slopes, strict=True):
        assert text.get_position() == (line.get_xdata()[-1], line.get_ydata()[-1])
        (begin, *_, end), (first, *_, last) = line.get_xdata(), line.get_ydata()
        power = math.log(last / first) / math.log(begin / end)
        assert power == pytest.approx(float(Fraction(text.get_text().strip())), rel=1e-9)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "small_rigde"}, "did you mean 'small_ridge'"),
        ({"name": None}, "there are 'large_alpha', 'small_ridge', 'small_step'"),
        ({"name": "small_ridge", "order": -1}, "order must be >= 0"),
        ({"name": "small_ridge", "order": 10**9}, "order must be at most 20"),
        ({"name": "small_ridge", "order": 1.5}, "order must be a whole number"),
        ({"name": "small_ridge", "order": True}, "order must be a whole number"),
        ({"name": "small_ridge", "digits": 0}, "digits must be >= 1"),
        ({"name": "small_ridge", "digits": 10**6}, "digits must be at most 1000"),
        ({"name": "small_ridge", "ridge": 0.1}, "what 'small_ridge' expands in"),
        ({"name": "small_ridge", "ridge": PaperRidge(0.1)}, "what 'small_ridge' expands in"),
        ({"name": "large_alpha"}, "ridge must be given"),
        ({"name": "small_step"}, "ridge must be given"),
        ({"name": "large_alpha", "ridge": 1, "paper_ridge": 1}, "give the penalty once"),
        ({"name": "large_alpha", "ridge": -1}, "ridge must be >= 0"),
        ({"name": "large_alpha", "ridge": math.nan}, "ridge must be a number"),
        ({"name": "large_alpha", "ridge": "0.1"}, "ridge must be a number"),
        ({"name": "large_alpha", "ridge": 0.1, "formulas": "yes"}, "formulas must be"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        model().expansion(**arguments)


@pytest.mark.parametrize("value", [-1, math.nan, "0.1", True, None, [], ["a"], [[1], [1, 2]], 1j])
def test_values_that_are_no_numbers_are_refused(value):
    for ask in (simple(), simple().estimate_of_remainder):
        with pytest.raises(ParameterError, match="ridge must be"):
            ask(value)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ((0,), r"trained diverges for ridge = 0: .* power -1/2"),
        ((0.1, "traned"), "did you mean 'trained'"),
        ((math.inf,), "ridge must be positive and finite"),
    ],
)
def test_points_without_a_value_are_refused(point, message):
    with pytest.raises(ParameterError, match=message):
        simple(alpha=1.5)(*point)


def test_a_student_that_jumps_has_no_expansion_in_the_step():
    with pytest.raises(AssumptionError, match="no expansion in the step size"):
        OneGradientStep("sign", "erf", alpha=2, step_size=0).expansion("small_step", ridge=0.1)


def test_powers_of_starred_letters_keep_their_star():
    assert latex(teacher_linear**2) == r"\left(\mu_{1}^{*}\right)^{2}"
    assert latex(teacher_residual) == r"\mu_{>1}^{*2}"


# ------------------------------------------------------- the object, on the geometric series


ONE = local_context(30).one
SERIES = Expansion(
    name="small_ridge",
    parameter="ridge",
    point=0.0,
    exponents=tuple(map(Fraction, (0, 1, 2))),
    coefficients={"test_error": (ONE, ONE, ONE)},
    neglected={"test_error": (Fraction(3), ONE)},
    remainder_order=Fraction(3),
    digits=30,
    fixed={"alpha": math.inf},
    symbols={"test_error": "E"},
    region="for small x",
    rests_on="the geometric series",
    radius=ONE,
)
# In 1/alpha, which converges for alpha > 1.
FAR = replace(SERIES, name="large_alpha", parameter="alpha", point=math.inf)


@pytest.mark.parametrize(("series", "x"), [(SERIES, 0.5), (FAR, 2.0)])
def test_values_and_remainder(series, x):
    assert series(x) == 1.75
    assert series.estimate_of_remainder(x) == 0.25 == 2 - series(x)
    assert series.order == 2


@pytest.mark.parametrize(("series", "outside"), [(SERIES, 1.0), (FAR, 1.0), (FAR, 0.5)])
def test_outside_of_the_radius_nothing_is_known(series, outside):
    assert series.estimate_of_remainder(outside) == math.inf
    with pytest.warns(ApproximationWarning):
        series(outside)


def test_without_a_radius_the_next_term_is_the_estimate():
    series = replace(SERIES, radius=None)
    assert series.estimate_of_remainder(0.5) == 0.125
    assert series.estimate_of_remainder(2.0) == 8.0
    with pytest.warns(ApproximationWarning):
        series(3.0)


def test_trusted_where_the_next_term_is_a_percent():
    assert SERIES.trusted_up_to == pytest.approx(0.01 ** (1 / 3), rel=1e-14)
    assert FAR.trusted_up_to == pytest.approx(100 ** (1 / 3), rel=1e-14)
    # A series that ends is exact within its radius.
    assert replace(SERIES, neglected={"test_error": None}).trusted_up_to == 1.0


def test_floats_are_decimal_numbers():
    steep = replace(SERIES, exponents=tuple(map(Fraction, (0, 1, 200))))
    tenth = ONE / 10
    assert steep(tenth) == ONE + tenth + tenth**200
    huge = replace(steep, coefficients={"test_error": (-1 * ONE, 10 * ONE, 0 * ONE)})
    assert huge(0.1) == 0.0


def test_sums_in_equations_are_broken_between_terms():
    a, b = sp.symbols("a b")
    assert _broken(b - a**2) == latex(b - a**2)
    powers = sp.Add(*((-1) ** k * a**k / (k + 1) for k in range(60)))
    lines = _broken(powers).split(" \\\\\n&\\quad ")
    terms = powers.as_ordered_terms()
    assert len(lines) > 4 and max(map(len, lines)) <= 162
    assert "".join(lines).replace(" ", "").lstrip("+") == "".join(
        text if text.startswith("-") else f"+{text}"
        for text in (latex(term).replace(" ", "") for term in terms)
    ).lstrip("+")
    assert all(line[0] in "+-" for line in lines[1:])
    product = sp.Mul(*(b + a**k for k in range(2, 40)))
    assert len(latex(product)) > 162 and _broken(product) == latex(product)
