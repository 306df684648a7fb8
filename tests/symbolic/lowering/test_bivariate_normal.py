"""Equations with the bivariate normal distribution: solved, and in the files of every target."""

import pytest
import sympy as sp

import giantstep as gs
from giantstep.symbolic.expressions.bivariate_normal import BivariateNormalCDF
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .compiled_c import CompiledKernel, require_compiler
from .generated_code import names_in

x, z = sp.symbols("x z", real=True)
a = sp.Symbol("a", positive=True)
# By iteration to thirty digits: x = Φ₂(x, 1; 1/2), x = Φ₂(1, -1; x/2), both with a = 1.
EQUATIONS = {
    "level": (BivariateNormalCDF(x, a, sp.Rational(1, 2)), 0.67741447538705214589),
    "correlation": (BivariateNormalCDF(a, -1, x / 2), 0.13736685099215672558),
}


def kernel(name):
    return gs.lower(SaddlePointSystem.from_fixed_point({x: EQUATIONS[name][0]}, name="normal",
                                                       parameters=(a,)))  # fmt: skip


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_are_solved_in_floats_and_to_digits(name):
    expected = EQUATIONS[name][1]
    found = kernel(name).solve(a=1)
    assert abs(found.x - expected) < 1e-13
    right, value = EQUATIONS[name][0], sp.Float("0.5", 30)
    for _ in range(80):
        value = right.subs({x: value, a: 1}).evalf(30)
    digits = kernel(name).solve(a=1, digits=24).x
    assert abs(sp.Float(str(digits), 30) - value) < sp.Float("1e-23")


@pytest.mark.parametrize("name", EQUATIONS)
def test_files_of_four_languages_agree(name, tmp_path):
    require_compiler()
    made = kernel(name)
    found = CompiledKernel(made.files("c"), tmp_path, ("-O0",)).solve({"a": 1})
    assert abs(found.values["x"] - EQUATIONS[name][1]) < 1e-13
    value, _ = names_in(made.source("mpmath"))["solve_point"]({"a": 1}, digits=18)["x"]
    assert abs(value - EQUATIONS[name][1]) < 1e-15
    for target in ("python", "numpy"):
        value, _ = names_in(made.source(target))["solve_point"]({"a": 1.0})["x"]
        assert abs(value - EQUATIONS[name][1]) < 1e-13


@pytest.mark.parametrize("target", ["numba", "python", "numpy", "jax", "julia"])
def test_every_target_has_a_text(target):
    assert all("owen" in text.lower() for text in [kernel("level").source(target)])


def test_averages_of_it_are_integrated():
    node = GaussianExpectation(BivariateNormalCDF(z + x, a, x / 2) * z, z)
    system = SaddlePointSystem.from_fixed_point(
        {x: node + sp.Rational(1, 10)}, name="averaged", parameters=(a,)
    )
    value = gs.lower(system).solve(a=1).x
    expected = node.subs({x: sp.Float(value, 25), a: 1}).evalf(15) + 0.1
    assert abs(value - expected) < 1e-12
