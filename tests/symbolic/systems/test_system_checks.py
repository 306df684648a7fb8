"""Systems that cannot be solved are refused when they are stated."""

import pytest
import sympy as sp

from giantstep.errors import EmissionError, ExpressionError, ParameterError, StructureError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.equations import Equation, FreeEnergy
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, m, v, a = sp.symbols("q m v a", positive=True)
z, h = sp.symbols("z h", real=True)


def fixed_point(equations, parameters=(a, h), **options):
    return SaddlePointSystem.from_fixed_point(
        equations, name="model", parameters=parameters, **options
    )


def refused(kind, words, make):
    with pytest.raises(kind) as caught:
        make()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_a_free_energy_that_lacks_an_order_parameter():
    energy = FreeEnergy(a * q**2 - q, (q, m), (), (a,))
    refused(
        StructureError,
        ["does not depend on m", "order parameters"],
        lambda: SaddlePointSystem.from_free_energy(energy, name="model"),
    )


def test_a_free_energy_that_is_linear_in_a_variable():
    energy = FreeEnergy(a * q + q**2 + m, (q, m), (), (a,))
    refused(
        StructureError,
        ["not stationary in m"],
        lambda: SaddlePointSystem.from_free_energy(energy, name="model"),
    )


def test_unknowns_that_share_too_few_equations_are_named():
    equations = {q: sp.Eq(q + h, a), m: sp.Eq(q * a, 1 + h), v: sp.Eq(q + m + v, 1)}
    refused(StructureError, ["only 1 equation", "m, v"], lambda: fixed_point(equations))
    # One more equation than its unknown needs, while m and v share one.
    assert fixed_point({q: a, m: q + a, v: m}).unknowns == (q, m, v)


def test_an_unknown_that_no_equation_holds():
    refused(
        StructureError,
        ["no equation holds m"],
        lambda: fixed_point({q: a + q**2 / 4, m: sp.Eq(q, 1)}),
    )


def test_an_equation_that_says_nothing():
    refused(StructureError, ["q"], lambda: fixed_point({q: sp.Eq(a, h)}))
    refused(StructureError, ["q"], lambda: fixed_point({q: q}))


def test_symbols_without_a_meaning():
    refused(EmissionError, ["the equation for q", "v", "neither"], lambda: fixed_point({q: 1 + v}))
    refused(
        EmissionError, ["z outside of an expectation"], lambda: fixed_point({q: 1 + sp.tanh(z)})
    )
    other = sp.Symbol("a", real=True)
    refused(EmissionError, ["other assumptions"], lambda: fixed_point({q: 1 + other}))
    f = sp.Function("f", real=True)(z)
    refused(
        EmissionError,
        ["f(z) without a meaning"],
        lambda: fixed_point({q: GaussianExpectation(f / (1 + q * f), z)}),
    )
    refused(
        EmissionError,
        ["f(z) of definitions is a function of z", "give node=z"],
        lambda: fixed_point({q: a + GaussianExpectation(f, z)}, definitions={f: z}, node=h),
    )


def test_tables_hold_no_unknowns():
    f = sp.Function("f", real=True)(z)
    refused(
        EmissionError,
        ["definition of f(z) holds q"],
        lambda: fixed_point(
            {q: GaussianExpectation(f / (1 + f**2), z)}, definitions={f: sp.tanh(q * z)}
        ),
    )


def test_names():
    lam = sp.Symbol("lambda", positive=True)
    system = fixed_point({q: 1 / (lam + q)}, parameters=(lam,))
    assert system.identifiers[lam] == "lambda_"
    hat = sp.Symbol(r"\hat{q}", positive=True)
    assert fixed_point({hat: 1 / (a + hat)}).identifiers[hat] == "hat_q"
    twin = sp.Symbol("q", real=True)
    refused(
        ParameterError, ["'q'", "identifiers="], lambda: fixed_point({q: 1 + twin, twin: q / 3})
    )
    refused(ParameterError, ["name"], lambda: SaddlePointSystem("two words", (), ()))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fixed_point({}), ["at least one equation"]),
        (lambda: fixed_point({a: 1 + a}), ["both an unknown and a parameter"]),
        (lambda: fixed_point({q: 1 / (1 + q)}, start={m: 1}), ["start", "m"]),
        (lambda: fixed_point({q: 1 / (1 + q)}, start={q: q}), ["start[q]"]),
        (lambda: fixed_point({q: 1 / (1 + q)}, outputs={"a b": q}), ["outputs", "'a b'"]),
        (lambda: SaddlePointSystem("model", (Equation(q, a, q - a), Equation(q, h, q - h)), (a, h)),
         ["two equations determine q"]),
        (lambda: fixed_point({sp.Symbol("w"): a}), ["w must be declared real"]),
        (lambda: fixed_point({q: "a"}), ["equations[q]", "not the text 'a'"]),
        (lambda: fixed_point({q: a}, outputs={"m": "a"}), ["outputs[m]", "not the text 'a'"]),
        (lambda: fixed_point({q: a}, start={q: [1]}), ["start[q]", "not [1]"]),
    ],
)  # fmt: skip
def test_arguments(make, words):
    with pytest.raises((ExpressionError, ParameterError, StructureError)) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: None, ["must be a FreeEnergy"]),
        (lambda: FreeEnergy("q**2", (q,), (), (a,)), ["expression", "SymPy", "q**2"]),
        (lambda: FreeEnergy(q**2, q, (), (a,)), ["order_parameters", "tuple of symbols"]),
        (lambda: FreeEnergy(q**2, ("q",), (), (a,)), ["order_parameters", "Symbols"]),
        (lambda: FreeEnergy(q**2, (q,), (), (1.5,)), ["parameters", "1.5"]),
        (lambda: FreeEnergy(q**2 - q, (q,), (q,), (a,)), ["q occurs twice"]),
        (lambda: FreeEnergy(a, (), (), (a,)), ["at least one order parameter"]),
    ],
)
def test_free_energies_of_the_wrong_kind(make, words):
    kinds = (ExpressionError, ParameterError, StructureError)
    refused(kinds, words, lambda: SaddlePointSystem.from_free_energy(make(), name="model"))


def test_a_variable_inside_a_table_only():
    f = sp.Function("f", real=True)(z)
    energy = FreeEnergy(
        a * m**2 - m + GaussianExpectation(f**2, z), (q, m), (), (a,),
        definitions={f: sp.tanh(q * z)},
    )  # fmt: skip
    refused(
        EmissionError,
        ["definition of f(z) holds q"],
        lambda: SaddlePointSystem.from_free_energy(energy, name="model"),
    )


def test_random_variables_of_sympy_are_refused_by_name():
    from sympy.stats import Expectation, Probability, Uniform

    u = Uniform("U", 0, 1)
    for value in (u * q, Expectation(u * q), Probability(u > q), GaussianExpectation(u * z**4, z)):
        refused(EmissionError, ["random variable U", "normal"], lambda v=value: fixed_point({q: v}))


def test_domains_that_cannot_be_checked_are_refused():
    n = sp.Symbol("n", integer=True, positive=True)
    refused(ParameterError, ["n is declared an integer", "positive"],
            lambda: fixed_point({q: n + 1}, parameters=(n,)))  # fmt: skip


def test_kinds_of_arguments():
    refused(ParameterError, ["keys of equations"], lambda: fixed_point({"q": a}))
    refused(ParameterError, ["equations[q]"], lambda: fixed_point({q: sp.Matrix([q])}))
    refused(ParameterError, ["node"], lambda: fixed_point({q: a}, node="z"))
    refused(ParameterError, ["node"], lambda: fixed_point({q: a}, node=m))
    for value in (sp.nan, sp.zoo, sp.oo):
        refused(EmissionError, ["no number"], lambda v=value: fixed_point({q: v}))


def test_constant_branches_do_not_make_an_equation_linear():
    cases = sp.Piecewise((a, q > 1), (2 * a, True))
    assert "Newton" in str(fixed_point({q: cases}).structure)
    assert "linear" in str(fixed_point({q: q * sp.Piecewise((a, h > 1), (0, True)) + 1}).structure)


def test_equations_print_in_latex():
    text = fixed_point({q: GaussianExpectation(sp.tanh(q * z) ** 2, z)}).latex()
    assert text.startswith(r"\begin{aligned}") and r"\mathbb{E}" in text


def test_jacobian_holds_all_derivatives():
    found = fixed_point({q: m * a, m: sp.exp(-q)}).jacobian()
    assert found == sp.Matrix([[1, -a], [sp.exp(-q), 1]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": 3}, "name must be an identifier"),
        ({"title": 3}, "title must be a text"),
        ({"parameters": a}, "parameters must be a tuple of symbols"),
        ({"outputs": {3: a}}, "outputs: 3 is no identifier"),
        ({"identifiers": {a: 3}}, "identifiers[a] must be a text"),
    ],
)
def test_names_are_texts(given, words):
    options = {"name": "model", "parameters": (a,)} | given
    refused(
        ParameterError,
        [words],
        lambda: SaddlePointSystem.from_fixed_point({q: a * sp.exp(-q)}, **options),
    )
