"""Files for mpmath: the test vectors to their digits, their own context, bad input."""

from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from giantstep.symbolic.expressions.functions import log_normal_cdf
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.equations import Equation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .generated_code import names_in
from .vectors import MEAN_FIELD


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


@pytest.mark.parametrize("digits", [0, -3, 2.5])
def test_bad_digits_are_refused(glass, digits):
    with pytest.raises(ValueError, match="digits must be a positive integer"):
        names_in(glass.source("mpmath"))["solve_point"]({"beta": 1, "h": 1}, digits=digits)


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
