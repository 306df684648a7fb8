"""Text is never evaluated, wherever a user may hand it in."""

from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.symbolic.expressions.exact_numbers import require_exact
from giantstep.symbolic.expressions.expression_documents import read_expression_document
from giantstep.symbolic.expressions.expression_text import expression_text
from giantstep.symbolic.expressions.latex_text import parse_latex
from giantstep.symbolic.gaussian.dynamics_integrals import two_point_integral
from giantstep.symbolic.gaussian.expectation import GaussianExpectation, JointExpectation
from giantstep.symbolic.gaussian.hermite_polynomials import affine_argument, hermite_polynomial
from giantstep.symbolic.gaussian.zero_test import is_exactly_zero
from giantstep.symbolic.hermite.equivalence import spiked_rows
from giantstep.symbolic.systems import random_matrix

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

F = "x1 + x1*x2 + He(3, x2)"
ERF = gs.conditional_equivalence("erf")
USES |= {
    "leap_index": lambda text: gs.leap_index(text),
    "leap_filtration": lambda text: gs.leap_filtration(text),
    "leaps": lambda text: gs.leaps(text),
    "coordinate_leap": lambda text: gs.coordinate_leap(text),
    "isotropic_leap": lambda text: gs.isotropic_leap(text),
    "generative_leap": lambda text: gs.generative_leap(text),
    "staircase": lambda text: gs.staircase(text),
    "staircase, order": lambda text: gs.staircase(F, text),
    "staircase, student": lambda text: gs.staircase(F, student=text),
    "staircase, readout": lambda text: gs.staircase(F, student="relu", readout=[1, text]),
    "staircase, one readout": lambda text: gs.staircase(F, student="relu", readout=text),
    "staircase, variant": lambda text: gs.staircase(F, variant=text),
    "project": lambda text: gs.project(text, [[1, 0]]),
    "project, onto": lambda text: gs.project(F, [[1, text]]),
    "project, one text": lambda text: gs.project(F, text),
    "project, degree": lambda text: gs.project(F, [[1, 0]], text),
    "residual_norms": lambda text: gs.residual_norms(text, [[1, 0]]),
    "residual_norms, onto": lambda text: gs.residual_norms(F, [[text, 0]]),
    "regimes": lambda text: gs.regimes(text),
    "predict_fit": lambda text: gs.predict_fit(text, 1, 1, 1),
    "predict_fit, exponent": lambda text: gs.predict_fit(F, text, 1, 1),
    "giant_step": lambda text: gs.giant_step(text),
    "giant_step, student": lambda text: gs.giant_step(F, text),
    "giant_step, noise": lambda text: gs.giant_step(F, noise_variance=text),
    "simulate_giant_steps": lambda text: gs.simulate_giant_steps(text, dimension=8),
    "simulated student": lambda text: gs.simulate_giant_steps(F, text, dimension=8),
    "simulated readout": lambda text: gs.simulate_giant_steps(F, dimension=8, readout=text),
    "simulated noise": lambda text: gs.simulate_giant_steps(F, dimension=8, noise_variance=text),
    "conditional_equivalence": lambda text: gs.conditional_equivalence(text),
    "centre": lambda text: gs.conditional_equivalence("erf", text),
    "spread": lambda text: gs.conditional_equivalence("erf", 0, text),
    "features, projection": lambda text: ERF.at(text, [1], [1]),
    "features, overlaps": lambda text: ERF.at(1, [text], [1]),
    "features, spreads": lambda text: ERF.at(1, [1], [text]),
    "spiked_rows": lambda text: spiked_rows([text]),
    "ridge_target": lambda text: gs.ridge_target(text, [[1, 0]]),
    "ridge functions": lambda text: gs.ridge_target([text], [[1, 0]]),
    "ridge directions": lambda text: gs.ridge_target("erf", [[1, text]]),
    "ridge coefficients": lambda text: gs.ridge_target("erf", [[1, 0]], [text]),
    "rationalized": lambda text: gs.rationalized([1, text]),
    "rationalized, tolerance": lambda text: gs.rationalized(0.5, tolerance=text),
    "rationalized, constants": lambda text: gs.rationalized(0.5, constants=[text]),
    "require_exact": lambda text: require_exact(text, "a number"),
    "Subspace": lambda text: gs.Subspace.spanned_by([[1, text]]),
    "Subspace, one text": lambda text: gs.Subspace.spanned_by(text, 2),
    "rotated": lambda text: gs.target(F).rotated([[1, 0], [0, text]]),
}

# What to_dict wrote, to be read again with any of its texts replaced.
WRITTEN = {
    "Subspace": (gs.Subspace, gs.Subspace.spanned_by([[1, sp.sqrt(2)]])),
    "Staircase": (gs.Staircase, gs.staircase(F, student="relu", readout=[1, -1])),
    "GiantStep": (gs.GiantStep, gs.giant_step(F, "gelu", noise_variance="1/4")),
    "HermiteCoefficients": (gs.HermiteCoefficients, gs.hermite_coefficients("relu", 3)),
    "GradientExpansion": (gs.GradientExpansion, gs.gradient_expansion("relu", F)),
}
WRITTEN |= {
    type(value).__name__: (type(value), value)
    for value in (
        ERF, gs.first_step("erf", F), gs.sample_complexity("relu", F), gs.regimes(F),
        gs.project(F, [[1, 0]]), gs.leaps(F), gs.generative_leap(F), gs.coordinate_leap(F),
        gs.label_leaps("x1*x2"), gs.dual_activation("erf", u), gs.predict_fit(F, 1, 2, 1),
    )
}  # fmt: skip
# Trees of expressions in documents, around a text.
TREES = [
    "sin({})", "Tuple({})", "Pow({}, Integer(2))", "Lambda(Symbol('x'), {})", "Integral({})",
    "Matrix([[{}]])", "MutableDenseMatrix([[{}]])", "Function('f')({})", "Function({})(Integer(1))",
    "Symbol({})", "Symbol('x', real={})", "Float({})", "Float('1', precision={})", "Str({})",
    "Range({})", "FiniteSet({})", "Piecewise(ExprCondPair({}, true))", "sympify({})", "{}",
    "parse_expr({})", "Basic({})", "GaussianExpectation({}, Symbol('z'))", "MatrixSymbol({}, 2, 2)",
]  # fmt: skip


def with_one_text(content, text):
    """Yield the content with one text after the other replaced."""
    if isinstance(content, str):
        yield text
    elif isinstance(content, dict):
        for key, value in content.items():
            for changed in with_one_text(value, text):
                yield {**content, key: changed}
    elif isinstance(content, list | tuple):
        for i, value in enumerate(content):
            for changed in with_one_text(value, text):
                yield [*content[:i], changed, *content[i + 1 :]]


@pytest.mark.parametrize("name", WRITTEN)
def test_no_text_of_a_saved_result_is_evaluated(name, attack):
    kind, value = WRITTEN[name]
    content = value.to_dict()
    assert kind.from_dict(content) == value
    count = sum(1 for _ in with_one_text(content, attack))
    for text in (attack, f"tree: sin({attack!r})"):
        read = 0
        for changed in with_one_text(content, text):
            try:
                # Words that are only shown, as the name of a target, are taken.
                kind.from_dict(changed)
                read += 1
            except gs.errors.GiantstepError:
                pass
        assert count > 1 and read < count


@pytest.mark.parametrize("tree", TREES)
def test_no_text_in_the_tree_of_an_expression_is_evaluated(tree, attack):
    for text in (repr(attack), attack):
        with pytest.raises(gs.errors.ExpressionError, match="tree of an expression"):
            read_expression_document(f"tree: {tree.format(text)}", {})


@pytest.mark.parametrize("content", [None, 3, "x1", [], [1], {}, np.zeros(2), np.float64(1)])
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_no_saved_result_is_refused(name, content):
    with pytest.raises(gs.errors.GiantstepError):
        WRITTEN[name][0].from_dict(content)


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
