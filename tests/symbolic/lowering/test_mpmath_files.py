"""Files for mpmath: the test vectors to their digits, their own context, bad input."""

import os
import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.expressions.functions import log_normal_cdf
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.equations import Equation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import names_in
from .vectors import MEAN_FIELD, SPIKED_VECTORS

# The rest take more than a second each.
QUICK = {
    "ridge, more samples than dimensions", "ridge, nearly interpolating", "ridge, at the threshold",
    "covariates", "covariates, many samples", "covariates, matched", "SK, paramagnet",
}  # fmt: skip
# Other kinds of programs: panels, lines, tables.
SLOW = {
    "logistic", "hinge", "SK, glass", "SK, paramagnet without a field", "spiked A1", "spiked A6",
}  # fmt: skip
VECTORS = [
    pytest.param(v, id=v.name, marks=[pytest.mark.slow] * (v.name in SLOW))
    for v in (*MEAN_FIELD, *SPIKED_VECTORS)
    if v.name in QUICK | SLOW
]


@pytest.mark.parametrize("vector", VECTORS)
def test_vectors_to_all_their_digits(vector):
    module = names_in(lower(vector.system()).source("mpmath"))
    found = module["solve_point"](vector.parameters, vector.data, digits=28)
    assert set(vector.expected) <= set(found)
    deviations = vector.deviations({name: value for name, (value, _) in found.items()})
    # the vectors hold 25 digits; so does the orthogonal alignment of the spiked ones, and overlaps
    # are up to a hundred times as sensitive to it
    assert max(deviations.values()) < (1e-22 if "spiked" in vector.name else 1e-24)
    for value, error in found.values():
        assert error <= 1e-27 * max(1, abs(value))


@pytest.fixture(scope="module")
def glass():
    return lower(next(v for v in MEAN_FIELD if v.name == "SK, in a field").system())


@pytest.mark.slow
def test_fifty_digits_and_more(glass):
    solve = names_in(glass.source("mpmath"))["solve_point"]
    point = {"beta": "0.5", "h": 0}
    coarse, fine = solve(point), solve(point, digits=80)
    for name, (value, error) in coarse.items():
        assert abs(value - fine[name][0]) <= error, name
    # q = 0 above the critical temperature, where the entropy is log(2) - beta^2/4.
    with mpmath.workdps(90):
        exact = mpmath.log(2) - mpmath.mpf(1) / 16
        assert abs(fine["entropy"][0] - exact) < mpmath.mpf(10) ** -78


def test_numbers_are_read_exactly(glass):
    solve = names_in(glass.source("mpmath"))["solve_point"]
    third = solve({"beta": Fraction(1, 3), "h": "1/3"}, digits=15)["q"][0]
    assert solve({"beta": "1/3", "h": Fraction(1, 3)}, digits=15)["q"][0] == third
    tenth = solve({"beta": 0.1, "h": 1}, digits=15)["q"][0]
    assert solve({"beta": "0.1", "h": mpmath.mpf(1)}, digits=15)["q"][0] == tenth


def test_contexts_of_others_do_not_change(glass):
    before = mpmath.mp.prec, mpmath.iv.prec
    found = names_in(glass.source("mpmath"))["solve_point"]({"beta": 1, "h": 1}, digits=30)
    assert (mpmath.mp.prec, mpmath.iv.prec) == before
    value, error = found["q"]
    assert value.context is not mpmath.mp and value.context.dps >= 30 and 0 < error < 1e-29


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"beta": 1}, "no value for 'h'"),
        ({"beta": 1, "h": 1, "J": 2}, "'J' is none of them"),
        ({"beta": 0, "h": 1}, "beta must be a finite positive number, got 0"),
        ({"beta": 1, "h": "nan"}, "h must be a finite real number, got nan"),
        ({"beta": "x", "h": 1}, "beta must be a real number, got 'x'"),
        ({"beta": 1j, "h": 1}, "beta must be a real number"),
        ({"beta": True, "h": 1}, "beta must be a real number, got True"),
    ],
)
def test_bad_parameters_are_refused(glass, point, message):
    with pytest.raises(ValueError, match=message):
        names_in(glass.source("mpmath"))["solve_point"](point)


@pytest.mark.parametrize("digits", [0, -3, 2.5])
def test_bad_digits_are_refused(glass, digits):
    with pytest.raises(ValueError, match="digits must be a positive integer"):
        names_in(glass.source("mpmath"))["solve_point"]({"beta": 1, "h": 1}, digits=digits)


def test_a_point_without_solution_is_named():
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", real=True)
    value = sp.exp(x) - 1 + a
    lowered = lower(SaddlePointSystem("rootless", (Equation(x, value, x - value),), (a,)))
    solve = names_in(lowered.source("mpmath"))["solve_point"]
    with pytest.raises(RuntimeError, match=r"no solution at a = 0\.5: Newton's method failed"):
        solve({"a": "0.5"})
    y, _ = solve({"a": -1}, digits=40)["x"]
    with mpmath.workdps(50):
        both = [-2 - mpmath.lambertw(-mpmath.exp(-2), k) for k in (0, -1)]
        assert min(abs(y - mpmath.re(z)) for z in both) < mpmath.mpf(10) ** -38


def test_logarithms_of_negative_numbers_are_no_solution():
    # Without the refusal of complex values Newton's method would find one of log(x) = x.
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    value = sp.log(x) / a
    lowered = lower(SaddlePointSystem("complex", (Equation(x, value, x - value),), (a,)))
    with pytest.raises(RuntimeError, match="no solution at a = 1"):
        names_in(lowered.source("mpmath"))["solve_point"]({"a": 1}, digits=15)


def test_outputs_without_unknowns_and_no_parameters():
    x = sp.Symbol("x", positive=True)
    outputs = {"circle": sp.pi, "nothing": sp.Integer(0), "half": sp.Rational(1, 2)}
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.exp(-x)}, name="omega", parameters=(), outputs=outputs
    )
    found = names_in(lower(system).source("mpmath"))["solve_point"]({}, digits=30)
    assert mpmath.nstr(found["circle"][0], 30) == "3.14159265358979323846264338328"
    assert (found["nothing"][0], found["half"][0]) == (0, 0.5)
    assert mpmath.nstr(found["x"][0], 30) == "0.56714329040978387299996866221"  # OEIS A030178


def test_a_value_that_vanishes_has_an_honest_error():
    # e^x = a at a = 1
    x, a = sp.Symbol("x", real=True), sp.Symbol("a", positive=True)
    system = SaddlePointSystem.from_fixed_point({x: sp.Eq(sp.exp(x), a)}, name="l", parameters=(a,))
    value, error = names_in(lower(system).source("mpmath"))["solve_point"]({"a": 1}, digits=30)["x"]
    assert 0 < abs(value) <= error < 1e-30 or value == 0


def test_newton_comes_back_from_complex_arguments():
    # log Phi(sqrt(1 - x)) = -3/5: the first step from 1/10 leads beyond 1, where the argument of
    # log Phi is imaginary.
    x, a = sp.symbols("x a", positive=True)
    left = log_normal_cdf(sp.sqrt(1 - x))
    system = SaddlePointSystem.from_fixed_point(
        {x: sp.Eq(left, -a)}, name="beyond", parameters=(a,), start={x: sp.Rational(1, 10)}
    )
    found, _ = names_in(lower(system).source("mpmath"))["solve_point"]({"a": "0.6"}, digits=30)["x"]
    with mpmath.workdps(40):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.exp(-mpmath.mpf("0.6")) - 1)
        assert abs(mpmath.mpf(found) - (1 - quantile**2)) < mpmath.mpf(10) ** -30


def test_baked_tables_are_refused(glass):
    level = {"weight": [1.0], "z": [0.0]}
    with pytest.raises(EmissionError, match="baked tables are floats"):
        glass.source("mpmath", tables=BakedTables({}, (level, level, level)))


@pytest.mark.parametrize("names", [("lambda", "ctx"), ("rule", "width"), ("tables", "mean_u0")])
def test_any_names(names):
    from giantstep.symbolic.gaussian.expectation import GaussianExpectation

    first, second = (sp.Symbol(name, positive=True) for name in names)
    z, u = sp.symbols("z u", real=True)
    inner = GaussianExpectation(sp.exp(-((u + z) ** 2) * second / 8), u)
    value = GaussianExpectation(inner**2 / (1 + first * inner), z)
    system = SaddlePointSystem("names", (Equation(first, value, first - value),), (second,))
    module = names_in(lower(system).source("mpmath"))
    twin = names_in(lower(system).source("python"))
    ((name,),) = (module["PARAMETERS"],)
    found = module["solve_point"]({name: "0.75"}, digits=15)
    other = twin["solve_point"]({name: 0.75})
    key = module["OUTPUTS"][0]
    assert float(found[key][0]) == pytest.approx(other[key][0], rel=1e-14)


def test_files_run_without_giantstep_sympy_and_numpy(glass, tmp_path):
    glass.write(tmp_path / "digits.py", "mpmath")
    text = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
for name in ("giantstep", "sympy", "numpy", "numba"):
    sys.modules[name] = None
import digits
print(digits.solve_point({{"beta": "1", "h": "0.3"}}, digits=25)["q"][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = names_in(glass.source("mpmath"))["solve_point"]({"beta": "1", "h": "0.3"}, digits=25)
    assert done.stdout.strip() == str(here["q"][0])


def test_header_and_text(glass):
    text = glass.source("mpmath")
    documentation = names_in(text)["__doc__"]
    assert "without conditions" in documentation and "beta: " in documentation
    assert "giantstep" not in text.replace("Generated by giantstep", "")
    assert not any(line != line.rstrip() for line in text.splitlines()) and text.endswith("\n")
