"""Tables over the nodes: which rule is chosen, and what the generated code computes."""

import math

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.spiked_random_features import physics as model
from giantstep.derivations.spiked_random_features.derive import TABLE_PARAMETERS
from giantstep.runtime.precise_averages import InnerRule
from giantstep.runtime.quadrature import inner_rule
from giantstep.symbolic.lowering.tables import mpmath_table_source, table_source

from .generated_code import mpmath_names_in, names_in

kappa = model.kappa
z = sp.Symbol("z", real=True)


# -- tables

VALUES = {"noise_variance": 0.05, "spike_strength": 1.1, "bulk_variance": 1.3, "alignment": 0.8,
          "orthogonal_alignment": 0.6}  # fmt: skip
AT = np.array([-2.0, -0.3, 0.0, 1.7])


def tables_of(student, teacher="sin"):
    energy = model.spiked_free_energy(*(symbolic(name) for name in (student, teacher)))
    definitions = energy.free_energy.definitions
    source = table_source(
        definitions, node=kappa, identifiers=model.IDENTIFIERS, parameters=TABLE_PARAMETERS
    )
    return definitions, names_in(source)


def symbolic(name):
    from giantstep.symbolic.expressions.activations import activation

    return activation(name)


root = math.sqrt(VALUES["bulk_variance"])


@pytest.mark.parametrize(
    ("student", "kind", "argument"),
    [
        # Tables hold squares, which oscillate twice as fast.
        ("sin", "hermite", (48, 2 * root)),
        ("sin(2*z) + exp(z/2)", "hermite", (48, 4 * root)),
        ("exp(z/2)", "hermite", (48, 0.0)),
        ("tanh", "trapezoidal", (math.pi / 2 / root, 0.0, 0.0)),
        ("tanh(2*z) + z/4", "trapezoidal", (math.pi / 4 / root, 0.0, 0.0)),
        ("tanh(z)*cos(9*z)*sin(2*z)", "trapezoidal", (math.pi / 2 / root, 0.0, 22 * root)),
        ("sigmoid", "trapezoidal", (math.pi / root, 0.0, 0.0)),
        ("erf", "trapezoidal", (math.inf, 2 * VALUES["bulk_variance"], 0.0)),
        ("relu", "split", None),
        ("abs(z - 1) + tanh(z)", "split", None),
        ("sign", "split", None),
    ],
)
def test_rules_are_chosen_from_the_integrand(student, kind, argument):
    _, generated = tables_of(student)
    rules = generated["inner_rules"](AT, *VALUES.values())
    assert set(rules) == {"z"}  # the sine of the teacher has closed forms
    found, value = rules["z"]
    assert found == kind
    if kind == "split":
        kink = 1.0 if student.startswith("abs") else 0.0
        expected = (kink - VALUES["spike_strength"] * AT) / root
        assert_allclose(value[0], expected[:, None], rtol=1e-14)
        assert value[1] == 0
    else:
        assert_allclose(value, argument, rtol=1e-14)


@pytest.mark.parametrize("student", ["He3", "z + z**2/3", "identity"])
def test_polynomials_need_no_quadrature(student):
    _, generated = tables_of(student, "He2")
    assert generated["inner_rules"](AT, *VALUES.values()) == {}


def test_outer_scale_and_breaks():
    _, smooth = tables_of("tanh")
    scale = smooth["outer_scale"](AT, *VALUES.values())
    assert scale == pytest.approx(min(1, math.sqrt(1 + 1.3) / 1.1))
    assert smooth["breaks"](AT, *VALUES.values()) == []
    _, kinked = tables_of("relu", "sign")
    scale = kinked["outer_scale"](AT, *VALUES.values())
    assert scale == pytest.approx(min(1, root / 1.1, 0.6 / 0.8))
    energy = model.spiked_free_energy(symbolic("tanh"), symbolic("sign"), aligned=True)
    source = table_source(
        energy.free_energy.definitions, node=kappa, identifiers=model.IDENTIFIERS,
        parameters=TABLE_PARAMETERS,
    )  # fmt: skip
    assert names_in(source)["breaks"](AT, *VALUES.values()) == [0.0]  # nothing smooths sign


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        ("sin", "sin"),
        ("tanh", "He3"),
        ("erf", "relu"),
        ("relu", "sign"),
        ("He3", "erf"),
        ("tanh(2*z) + z/4", "tanh"),
        ("asinh(z) + sech(z)", "softplus"),
        ("erf(z) + erf(z/2)", "erf(z + 1) + erf(2*z)"),  # closed forms hold Φ₂, which no target has
    ],
)
def test_tables_are_the_defined_expectations(student, teacher):
    definitions, generated = tables_of(student, teacher)
    arguments = (AT, *VALUES.values())
    kinds = generated["inner_rules"](*arguments)
    rules = {slot: inner_rule(kind, argument, 1) for slot, (kind, argument) in kinds.items()}
    found = generated["tables"](*arguments, rules)
    values = {p: sp.Rational(VALUES[model.IDENTIFIERS[p]]) for p in TABLE_PARAMETERS}
    for k in (0, 3):
        position, exact = AT[k], {}
        for function, definition in definitions.items():
            value = definition.subs(exact).subs({kappa: sp.Rational(position), **values}).evalf(20)
            exact[function] = value
            name = str(function.func).replace("^2", "_squared")
            # quadrature to 4e-16 of the largest value, which is of order 10 for He3
            assert found[name][k] == pytest.approx(float(value), rel=1e-13, abs=3e-14), name


def test_tables_in_mpmath_agree():
    energy = model.spiked_free_energy(symbolic("erf"), symbolic("tanh"))
    definitions = energy.free_energy.definitions
    source = mpmath_table_source(
        definitions, node=kappa, identifiers=model.IDENTIFIERS, parameters=TABLE_PARAMETERS
    )
    namespace = mpmath_names_in(source, 40)
    ctx = namespace["ctx"]

    rule = InnerRule(ctx, 20, {})
    found = namespace["tables"](ctx.mpf(AT[1]), *map(ctx.mpf, VALUES.values()), rule)
    _, floats = tables_of("erf", "tanh")
    kinds = floats["inner_rules"](AT, *VALUES.values())
    rules = {slot: inner_rule(kind, argument, 1) for slot, (kind, argument) in kinds.items()}
    expected = floats["tables"](AT, *VALUES.values(), rules)
    for value, name in zip(found, expected, strict=True):
        assert float(value) == pytest.approx(expected[name][1], rel=1e-13)


def test_a_table_that_is_linear_in_the_node_varies_by_one_on_its_width():
    slope, names = sp.Symbol("a", positive=True), ("field", "bend", "product")
    field, bend, product = (sp.Function(name, real=True)(kappa) for name in names)
    source = table_source(
        {field: 1 - slope * kappa, bend: kappa**2, product: kappa * field},
        node=kappa, identifiers={slope: "a"}, parameters=(slope,),
    )  # fmt: skip
    scale = names_in(source)["outer_scale"]
    assert abs(scale(np.zeros(1), 50.0)) == pytest.approx(0.02)
    assert scale(np.zeros(1), 0.5) == 1
