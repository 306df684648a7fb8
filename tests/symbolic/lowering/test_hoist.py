"""Inner expectations become tables, unknowns of their own, or a refusal."""

import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.hoist import hoist
from giantstep.symbolic.lowering.inner_averages import InnerAverage
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, v, a = sp.symbols("q v a", positive=True)
h, z, w, u = sp.symbols("h z w u", real=True)
t = sp.Symbol("t", positive=True)


def system(value, **options):
    return SaddlePointSystem.from_fixed_point(
        {q: value}, name="model", parameters=(a, h), **options
    )


def test_an_inner_expectation_without_unknowns_becomes_a_table():
    inner = GaussianExpectation(sp.tanh(a * u + w), w)
    found = hoist(system(GaussianExpectation(1 / (1 + q * inner**2), u)))
    ((function, definition),) = found.definitions.items()
    assert found.node == z
    assert function == sp.Function("inner_1", real=True)(z)
    assert definition == inner.xreplace({u: z})
    (equation,) = found.equations
    assert equation.value == GaussianExpectation(1 / (1 + q * function**2), z)


def test_equal_inner_expectations_share_one_table():
    inner = GaussianExpectation(sp.tanh(a * z + w), w)
    found = hoist(
        system(
            GaussianExpectation(1 / (1 + q * inner**2), z),
            outputs={"mean": GaussianExpectation(inner / (1 + q * inner**2), z)},
        )
    )
    assert len(found.definitions) == 1


def test_an_inner_expectation_without_the_node_becomes_an_unknown():
    inner = GaussianExpectation(sp.tanh(q * w) ** 2, w)
    found = hoist(system(GaussianExpectation(1 / (1 + z**2 + inner), z)))
    mean, equation = found.equations
    assert mean.unknown.name == "mean_1"
    assert mean.value == GaussianExpectation(sp.tanh(q * z) ** 2, z)
    assert equation.value == GaussianExpectation(1 / (1 + z**2 + mean.unknown), z)


def test_a_name_of_the_user_is_not_taken():
    mean_1 = sp.Symbol("mean_1", positive=True)
    inner = GaussianExpectation(sp.tanh(q * w) ** 2, w)
    found = hoist(
        SaddlePointSystem.from_fixed_point(
            {q: GaussianExpectation(1 / (1 + z**2 + inner), z) + mean_1},
            name="model",
            parameters=(mean_1,),
        )
    )
    assert [e.unknown.name for e in found.equations] == ["mean_1_", "q"]


def test_what_depends_on_both_is_averaged_at_each_node():
    inner = GaussianExpectation(sp.tanh(q * w + z), w)
    found = hoist(system(GaussianExpectation(1 / (1 + inner**2), z)))
    (average,) = found.equations[0].value.atoms(InnerAverage)
    (node,) = found.product.nodes
    assert average.function == sp.tanh(q * node + z) and tuple(average.variables) == (node,)
    assert found.product.nested


def test_three_levels_are_refused_with_their_node():
    inner = GaussianExpectation(sp.tanh(q * w + u + z), w)
    middle = GaussianExpectation(sp.exp(inner), u)
    with pytest.raises(EmissionError, match=r"E_w\[tanh\(.*unknown q.*three levels"):
        hoist(system(GaussianExpectation(sp.log(middle), z)))


def test_an_expectation_inside_an_average_over_data():
    data = DataAverage(1 / (t + GaussianExpectation(sp.tanh(q * w) ** 2, w)), t, "spectrum")
    found = hoist(system(data))
    assert found.equations[0].unknown.name == "mean_1"
    mixed = DataAverage(GaussianExpectation(sp.tanh(t * w) ** 2, w), t, "spectrum")
    with pytest.raises(EmissionError, match="may not depend on the columns of data"):
        hoist(system(mixed))
    with pytest.raises(EmissionError, match="over w and over data at once"):
        hoist(system(GaussianExpectation(1 / (1 + DataAverage(1 / (t + w**2), t, "d")), w)))


def test_polynomials_are_done_exactly():
    found = hoist(system(GaussianExpectation((q * w + h) ** 4, w)))
    assert sp.expand(found.equations[0].value - (3 * q**4 + 6 * q**2 * h**2 + h**4)) == 0


def test_all_outer_variables_become_one():
    value = GaussianExpectation(sp.tanh(q * w) ** 2, w) + GaussianExpectation(sp.exp(-q * u**2), u)
    found = hoist(system(value, node=u))
    assert {n.variable for n in found.equations[0].value.atoms(GaussianExpectation)} == {u}


def test_floats_are_read_as_decimals():
    found = hoist(system(0.1 * q + a))
    assert found.equations[0].value == q / 10 + a


def test_bound_variables_get_names_of_their_own():
    inner = GaussianExpectation(sp.tanh(a * u + z), z)
    found = hoist(system(GaussianExpectation(1 / (1 + q * inner**2), u)))
    (definition,) = found.definitions.values()
    assert definition.variable.name not in {"z", "q", "a", "h"}
    assert sp.N(definition.subs({z: 0.3, a: 0.7}), 15) == sp.N(inner.subs({u: 0.3, a: 0.7}), 15)


def test_signs_at_places_without_unknowns_are_tables_on_the_grid():
    """One value in place of one for each sign, of which a table picks one."""
    label = sp.sign(h * z + w)
    inner = GaussianExpectation(sp.tanh(q * (z + w) * label), w)
    found = hoist(system(GaussianExpectation(inner, z)))
    assert set(found.product.definitions.values()) == {label}
    (value,) = found.equations[0].value.atoms(sp.tanh)
    assert len(found.equations[0].value.atoms(sp.tanh)) == 1
    assert value.has(*found.product.definitions)


def test_signs_at_places_that_move_with_unknowns_are_refused():
    inner = GaussianExpectation(sp.tanh(a * (z + w) * sp.sign(z + w - q)), w)
    with pytest.raises(EmissionError, match="moves with the unknown q"):
        hoist(system(GaussianExpectation(inner, z)))
