"""What may become code, and how the rest is refused."""

import pytest
import sympy as sp
from sympy.stats import Expectation, Uniform

from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.door import admit

x, z = sp.symbols("x z", real=True)


@pytest.mark.parametrize(
    "expr",
    [
        x**2 + sp.sqrt(x + 3) - sp.pi,
        sp.tanh(x) * sp.erf(x) + sp.exp(-x),
        sp.Piecewise((x, x > 0), (0, True)),
        sp.Max(x, z, 1) - sp.Min(x, z),
        GaussianExpectation(sp.tanh(x * z) ** 2, z),
    ],
)
def test_known_expressions_pass_unchanged(expr):
    assert admit(expr, "the equation for x") == expr


def test_floats_are_read_as_decimals():
    assert admit(0.25 * x, "here") == x / 4


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (
            sp.zeta(x),
            ["the equation for q", "function zeta", "known functions: ", "register_function"],
        ),
        (sp.besselj(0, x), ["function besselj"]),
        (sp.Integral(sp.exp(-z), (z, 0, 1)), ["average", "standard normal"]),
        (Expectation(Uniform("u", 0, 1) * x), ["average", "standard normal"]),
        (sp.I * x, ["imaginary unit"]),
        (sp.Derivative(sp.Function("f")(x), x), ["Derivative"]),
        (sp.DiracDelta(x), ["DiracDelta"]),
        (x + sp.oo, ["no number"]),
    ],
)
def test_refusals_name_the_node_and_the_remedy(expr, words):
    with pytest.raises(EmissionError) as caught:
        admit(expr, "the equation for q")
    for word in words:
        assert word in str(caught.value)


h, a = sp.symbols("h a", real=True)


@pytest.mark.parametrize(
    "condition",
    [
        (h > 0) & (h < 1), sp.Xor(h > 0, a > 1), sp.ITE(h > 0, a > 1, a < 1), sp.Eq(h, 1),
        sp.Ne(h, 1), sp.Not((h > 0) | sp.Eq(a, 2)), sp.Equivalent(h > 0, a > 1),
    ],
)  # fmt: skip
def test_conditions_become_single_comparisons(condition):
    cases = sp.Piecewise((x, condition), (-x, True))
    found = admit(cases, "here")
    assert not found.atoms(sp.And, sp.Or, sp.Not, sp.Xor, sp.Equality, sp.Unequality)
    for at in [{h: i, a: j} for i in (-1, 0, sp.Rational(1, 2), 1, 2) for j in (0, 1, 2)]:
        assert found.subs(at) == cases.subs(at), at


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (sp.Piecewise((x, h > 0)), ["no value where none", "(value, True)"]),
        (sp.Piecewise((x, sp.Contains(h, sp.Interval(0, 1))), (0, True)), ["no comparison"]),
    ],
)
def test_cases_that_no_target_can_decide(expr, words):
    with pytest.raises(EmissionError) as caught:
        admit(expr, "the equation for q")
    for word in words:
        assert word in str(caught.value)
