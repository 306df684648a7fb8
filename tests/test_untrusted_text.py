"""Text is never evaluated, wherever a user may hand it in."""

from pathlib import Path

import pytest
import sympy as sp

import giantstep as gs
from giantstep.symbolic import random_matrix
from giantstep.symbolic.dynamics_integrals import two_point_integral
from giantstep.symbolic.expression_text import expression_text
from giantstep.symbolic.gaussian import GaussianExpectation
from giantstep.symbolic.gaussian_vector import JointExpectation
from giantstep.symbolic.hermite_polynomials import affine_argument, hermite_polynomial
from giantstep.symbolic.latex_text import parse_latex
from giantstep.symbolic.zero_test import is_exactly_zero

z, u, v = sp.symbols("z u v", real=True)
PAIR = gs.correlated_pair(u, v, sp.Rational(1, 2))


@pytest.fixture
def attack(tmp_path):
    """A text that leaves a file behind if Python or SymPy evaluates it."""
    mark = tmp_path / "evaluated"
    yield f"__import__('pathlib').Path({str(mark)!r}).touch() or 1"
    assert not mark.exists(), "the text was evaluated"


USES = {
    "activation": lambda text: gs.activation(text),
    "target": lambda text: gs.target(text),
    "expect": lambda text: gs.expect(text, z),
    "expect, pair": lambda text: gs.expect(text, PAIR),
    "GaussianExpectation": lambda text: GaussianExpectation(text, z),
    "JointExpectation": lambda text: JointExpectation(text, PAIR),
    "covariance": lambda text: gs.GaussianVector([u, v], covariance=[[1, text], [text, 1]]),
    "correlation": lambda text: gs.correlated_pair(u, v, text),
    "variances": lambda text: gs.correlated_pair(u, v, 0, variances=(text, 1)),
    "means": lambda text: gs.correlated_pair(u, v, 0, means=(text, 0)),
    "hermite_coefficients": lambda text: gs.hermite_coefficients(text, 2),
    "hermite_coefficients, variable": lambda text: gs.hermite_coefficients(text, 2, variable=z),
    "even orders": lambda text: gs.hermite_coefficients("erf", 2).require_closed_form().even(text),
    "information_exponent": lambda text: gs.information_exponent(text),
    "hermite_polynomial": lambda text: hermite_polynomial(3, text),
    "affine_argument": lambda text: affine_argument(2, text, 1),
    "HermiteExpansion": lambda text: gs.HermiteExpansion.from_polynomial(text, [u, v]),
    "he coefficients": lambda text: gs.HermiteExpansion.from_he_coefficients(
        {(1, 0): text}, [u, v]
    ),
    "dual_activation": lambda text: gs.dual_activation("erf", u, text),
    "dual value": lambda text: gs.dual_activation("erf", u).value(text),
    "two_point_integral": lambda text: two_point_integral("erf", [[1, text], [text, 1]]),
    "gradient_expansion": lambda text: gs.gradient_expansion("relu", text),
    "norm": lambda text: gs.gradient_expansion("relu", "x1", norm=text),
    "weights": lambda text: gs.gradient_expansion("relu", "x1").inside([text]),
    "contract": lambda text: gs.target("x1").contract(1, [text]),
    "symbol_part": lambda text: gs.target("x1").symbol_part(1, [text]),
    "first_step": lambda text: gs.first_step(text, "x1"),
    "sample_complexity": lambda text: gs.sample_complexity("relu", text),
    "parse_expression": lambda text: gs.parse_expression(text, [z]),
    "parse_latex": lambda text: parse_latex(text, [z]),
    "is_exactly_zero": lambda text: is_exactly_zero(text, "a number"),
    "expression_text": lambda text: expression_text(text),
    "moment": lambda text: random_matrix.moment(1, text),
}


@pytest.mark.parametrize("use", USES)
def test_text_is_read_by_the_parser_or_refused(use, attack):
    with pytest.raises((gs.errors.GiantstepError, sp.SympifyError, TypeError)):
        USES[use](attack)


def test_no_module_calls_the_evaluating_reader():
    # SymPy's sympify evaluates texts unless it is strict.
    root = Path(__file__).resolve().parents[1]
    for room in ("symbolic", "numeric", "derivations"):
        for file in (root / room).rglob("*.py"):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if "sympify(" in line:
                    assert "strict=True" in line, f"{file.name}:{number}: {line.strip()}"
