import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from giantstep.derivations.spiked_random_features.physics import (
    letters_free_energy,
    spiked_free_energy,
)
from giantstep.symbolic.expressions.activations import activation
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.systems.equations import (
    Equation,
    block_structure,
    is_linear,
    matched,
    maximum_matching,
    saddle_point_equations,
)

x, y, w, v = sp.symbols("x y w v", real=True)
a, b = sp.symbols("a b", positive=True)
z = sp.Symbol("z", real=True)


def explicit(unknown, value):
    return Equation(unknown, sp.sympify(value), unknown - value)


def implicit(unknown, residual):
    return Equation(unknown, None, sp.sympify(residual))


def structure_of(student, **flags):
    energy = spiked_free_energy(activation(student), activation("sin"), **flags)
    return block_structure(saddle_point_equations(energy.free_energy))


def names(equations):
    return {str(e.unknown) for e in equations}


@pytest.mark.parametrize(
    ("student", "cores"),
    [
        ("tanh", [["V_1", "V_2"], ["vartheta"], ["q_1", "q_2"]]),
        ("relu", [["V_1", "V_2"], ["m", "vartheta"], ["q_1", "q_2"]]),
        ("cos", [[], ["V_2"], ["m"], ["q_2"]]),  # mu_1 = 0: V_1 drives nothing
    ],
)
def test_without_spike(student, cores):
    found = structure_of(student, unspiked=True)
    assert [[str(e.unknown) for c in b.components for e in c.core] for b in found.blocks] == cores


def test_triangular_systems_need_no_solve():
    found = block_structure([explicit(y, x**2), explicit(w, x * y), explicit(x, a)])
    # y is not linear in x, but w is in y once x is known
    assert [b.unknowns for b in found.blocks] == [(x,), (y, w)]
    assert not any(c.core for b in found.blocks for c in b.components)
    assert str(found) == "2 blocks: explicit: x; explicit: y, w"
    linear = block_structure([explicit(y, a * x), explicit(w, x + y), explicit(x, a)])
    assert [b.unknowns for b in linear.blocks] == [(x, y, w)]
    assert str(linear) == "1 block: explicit: x, y, w"


def test_one_linear_block_of_three():
    system = [
        implicit(x, 3 * x + y + w - 1),
        implicit(y, x + 4 * y - w - a),
        implicit(w, x - y + 5 * w - b),
    ]
    found = block_structure(system)
    assert len(found.blocks) == 1 and found.blocks[0].linear
    assert found.describe() == "1 block: 3 unknowns linear {x, y, w}"
    # explicit forms of the same: eliminated as far as no circle closes
    explicit_system = [explicit(x, (1 - y - w) / 3), *system[1:]]
    (block,) = block_structure(explicit_system).blocks
    assert block.linear and [len(c.core) for c in block.components] == [2]


def test_separate_linear_systems_share_a_block():
    system = [
        implicit(x, 2 * x + y),
        implicit(y, x - y + 1),
        implicit(w, 3 * w - x),
        explicit(v, w),
    ]
    found = block_structure(system)
    assert [[len(c.core) for c in b.components] for b in found.blocks] == [[2, 1, 0]]
    assert str(found) == "1 block: 3 unknowns linear {x, y} {w}, then v"


def test_one_nonlinear_unknown():
    V, V_hat = sp.symbols("V Vhat", positive=True)
    mu = sp.Function("mu")(z)
    system = [
        explicit(V, 1 / (a + V_hat)),
        explicit(V_hat, b * GaussianExpectation(mu**2 / (1 + mu**2 * V), z)),
    ]
    (block,) = block_structure(system).blocks
    assert not block.linear
    assert (names(block.components[0].core), names(block.components[0].eliminated)) == (
        {"V"}, {"Vhat"},
    )  # fmt: skip
    assert block.describe() == "1 unknown Newton {V}, then Vhat"


def test_fixed_point_forms_are_not_explicit():
    # x on both sides: its value is not known from the equation, but Newton can solve it.
    (block,) = block_structure([explicit(x, sp.cos(x))]).blocks
    assert not block.linear and names(block.components[0].core) == {"x"}
    (block,) = block_structure([explicit(x, x / 2 + 1)]).blocks
    assert block.linear and names(block.components[0].core) == {"x"}


def test_nonlinear_implicit_equations_stay_in_the_core():
    system = [implicit(x, x**3 + x * y - 1), explicit(y, a * x), explicit(w, y)]
    found = block_structure(system)
    assert [b.linear for b in found.blocks] == [False, True]
    (component,) = found.blocks[0].components
    assert names(component.core) == {"x"} and names(component.eliminated) == {"y"}


def test_products_of_unknowns_are_not_linear():
    system = [explicit(x, a * y + 1), implicit(y, y + x * y - b)]
    (block,) = block_structure(system).blocks
    assert not block.linear and not is_linear(block.components)


def test_eliminated_unknowns_come_after_what_they_use():
    found = structure_of("relu")
    known = set()
    for block in found.blocks:
        unknowns = set(block.unknowns)
        for component in block.components:
            known |= {e.unknown for e in component.core}
            for e in component.eliminated:
                assert not e.value.free_symbols & (unknowns - known)
                known.add(e.unknown)


small = st.integers(-3, 3)


@settings(max_examples=12)
@given(st.integers(1, 6), st.data())
def test_random_triangular_linear_systems(n, data):
    unknowns = sp.symbols(f"x:{n}", real=True)
    system = [
        explicit(u, data.draw(small) + sum((data.draw(small) * e for e in unknowns[:i]), sp.S.Zero))
        for i, u in enumerate(unknowns)
    ]
    shuffled = data.draw(st.permutations(system))
    found = block_structure(shuffled)
    (block,) = found.blocks
    assert block.linear and not any(c.core for c in block.components)
    seen = set()
    for u in block.unknowns:
        value = system[unknowns.index(u)].value
        assert value.free_symbols <= seen
        seen.add(u)
    assert seen == set(unknowns)


@settings(max_examples=10)
@given(st.integers(2, 5), st.data())
def test_one_square_makes_a_full_linear_system_nonlinear(n, data):
    unknowns = sp.symbols(f"x:{n}", real=True)
    rows = [
        sum((data.draw(st.integers(1, 9)) * u for u in unknowns), sp.S.Zero) - 1 for _ in unknowns
    ]
    system = [implicit(u, row) for u, row in zip(unknowns, rows, strict=True)]
    (block,) = block_structure(system).blocks
    assert block.linear and sum(len(c.core) for c in block.components) == n
    where = data.draw(st.integers(0, n - 1))
    u = data.draw(st.sampled_from(unknowns))
    system[where] = implicit(unknowns[where], rows[where] + u**2)
    (block,) = block_structure(system).blocks
    assert not block.linear


def test_a_free_energy_without_conjugates_finds_its_structure():
    letters = 2
    energy = letters_free_energy(activation("erf"), activation("sin"), letters).free_energy
    assert not energy.conjugates
    found = block_structure(saddle_point_equations(energy))
    matrix = letters * (letters + 1) // 2
    assert [block.linear for block in found.blocks] == [False, True, True]
    assert [sum(len(c.core) for c in block.components) for block in found.blocks] == [
        matrix + letters,
        3 * letters,
        matrix + letters,
    ]
    assert all(str(u).startswith("V") for u in found.blocks[0].unknowns)
    assert all(str(u).startswith("q") for u in found.blocks[2].unknowns)


def test_conditions_go_to_the_unknowns_that_they_hold():
    # Each is given for an unknown that it does not hold.
    given = [implicit(x, y**2 - a), implicit(y, w - x**3), implicit(w, x + y**3 - b)]
    found = matched(given)
    assert all(e.residual.has(e.unknown) for e in found)
    assert [str(u) for block in block_structure(found).blocks for u in block.unknowns] == list(
        "yxw"
    )


def test_what_changes_hands_is_solved_where_it_can_be():
    by_unknown = {e.unknown: e for e in matched([explicit(x, y + 1), implicit(y, x**2 - 4)])}
    assert by_unknown[y].value == x - 1
    assert by_unknown[x].value is None and by_unknown[x].residual == x**2 - 4


def test_what_nothing_determines_is_left_as_it_is():
    given = (implicit(x, y**2 - a), implicit(y, y - b))
    assert matched(given) == given


@given(n=st.integers(1, 7), data=st.data())
@settings(max_examples=25)
def test_a_matching_is_as_large_as_any(n, data):
    edges = data.draw(
        st.lists(st.lists(st.integers(0, n - 1), unique=True), min_size=n, max_size=n)
    )
    candidates = dict(enumerate(edges))
    found = maximum_matching(candidates)
    assert len(set(found.values())) == len(found)
    assert all(right in candidates[left] for left, right in found.items())
    incidence = np.array([[right in edge for right in range(n)] for edge in edges], dtype=float)
    assert len(found) == (maximum_bipartite_matching(csr_array(incidence)) >= 0).sum()
    larger = maximum_matching(candidates, dict(list(found.items())[: len(found) // 2]))
    assert len(larger) == len(found)
