"""Every symbol of a program has a kind, and programs that make no sense are refused."""

from dataclasses import replace

import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.expressions.functions import softplus
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.lowering.program import (
    Assign,
    Kind,
    LinearSolve,
    Newton,
    NodeLoop,
    validate,
)
from giantstep.symbolic.lowering.solver import scalar_functions
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

q, a, t = sp.symbols("q a t", positive=True)
x, y, z, w = sp.symbols("x y z w", real=True)


def program_of(value, **options):
    system = SaddlePointSystem.from_fixed_point(
        {q: value}, name="model", parameters=(a,), node=z, **options
    )
    return lower(system).program


LINE = program_of(
    GaussianExpectation(GaussianExpectation(sp.tanh(a * z + w), w) ** 2 / (1 + q), z)
    + GaussianExpectation(sp.tanh(q * z) ** 2, z)
)
PANELS = program_of(GaussianExpectation(sp.Abs(z - q), z) + DataAverage(t / (t + q), t, "d"))
ROOT = program_of(GaussianExpectation(Proximal(softplus(-x), x, q * z, a) ** 2, z))
LINEAR = program_of(a + q / 2)


def names(program, kind):
    return {str(s) for s, k in program.declarations.items() if k == kind}


def test_kinds():
    assert names(LINE, Kind.PARAMETER) == {"a"} and names(LINE, Kind.UNKNOWN) == {"q"}
    assert names(LINE, Kind.TABLE) == {"z", "inner_1"}
    assert names(PANELS, Kind.NODE) == {"z"} and names(PANELS, Kind.COLUMN) == {"d_t"}
    assert {k for k in Kind if k.is_array} == {Kind.TABLE, Kind.COLUMN}
    assert all(s.startswith("sum_") for s in names(LINE, Kind.SUM))
    assert names(LINE, Kind.LOCAL) and names(LINE, Kind.SCALAR)


def edited(program, change):
    """Apply a change to the steps of a program, those inside Newton included."""

    def steps(given):
        found = []
        for step in given:
            if isinstance(step, Newton):
                step = replace(step, body=tuple(steps(step.body)))
            found += change(step)
        return found

    return replace(program, steps=tuple(steps(program.steps)))


def without_loops(step):
    return [] if isinstance(step, NodeLoop) else [step]


def reading_a_table(step):
    return [step, Assign(y, z + 1)] if isinstance(step, Newton) else [step]


def summing_strangers(step):
    if isinstance(step, NodeLoop):
        step = replace(step, sums=(*step.sums, Assign(y, w)))
    return [step]


def reading_nothing(step):
    return [replace(step, tables=())] if isinstance(step, NodeLoop) else [step]


def twice(step):
    return [step, step] if isinstance(step, Assign) else [step]


def one_residual_less(step):
    return [replace(step, residual=())] if isinstance(step, Newton) else [step]


def one_equation_more(step):
    if isinstance(step, LinearSolve):
        step = replace(step, right_hand_side=(*step.right_hand_side, a))
    return [step]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (edited(LINE, without_loops), ["uses sum_", "nothing declares"]),
        (edited(LINE, reading_a_table), ["y = z + 1", "table z", "does not run over"]),
        (edited(LINE, summing_strangers), ["y = w", "nothing declares"]),
        (edited(LINE, reading_nothing), ["table", "does not run over"]),
        (edited(LINE, twice), ["has a value already"]),
        (edited(LINE, one_residual_less), ["newton for q", "as many"]),
        (edited(LINEAR, one_equation_more), ["solve linear", "as many"]),
        (replace(LINE, outputs=(*LINE.outputs, y)), ["output y is never assigned"]),
        (replace(LINE, magnitudes={q: y}), ["magnitude y"]),
        (replace(LINE, parameters=(a, q)), ["q is a parameter and a unknown"]),
        (replace(LINEAR, parameters=()), ["uses a", "nothing declares"]),
        (replace(LINE, tables=(z,)), ["inner_1", "no arrays of this pass"]),
        (replace(ROOT, roots=()), ["proximal_1", "no root"]),
        (replace(ROOT, roots=ROOT.roots * 2), ["two roots"]),
        (replace(PANELS, steps=tuple(reversed(PANELS.steps[0].body))), ["before it is assigned"]),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(program, words):
    with pytest.raises(EmissionError) as caught:
        validate(program)
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize("prefix", ["sum_", "scalar_", "node_", "residual_", "jacobian_"])
def test_generated_names_avoid_those_of_the_user(prefix):
    symbols = [sp.Symbol(f"{prefix}{k}", positive=True) for k in range(1, 12)]
    value = GaussianExpectation(sp.tanh(q * z + sp.Add(*symbols)) ** 2, z)
    system = SaddlePointSystem.from_fixed_point({q: value}, name="m", parameters=tuple(symbols))
    found = [s.name for s in lower(system).program.declarations]
    assert len(found) == len(set(found))


def test_the_name_of_a_magnitude_avoids_those_of_the_user():
    taken = sp.Symbol("o_magnitude", real=True)
    system = SaddlePointSystem.from_fixed_point(
        {q: a + 1}, name="m", parameters=(a, taken), outputs={"o": q + taken}
    )
    (size,) = lower(system).program.magnitudes.values()
    assert size.name == "o_magnitude_"


def test_what_is_done_to_neighbouring_outputs_is_said_once():
    value = GaussianExpectation(sp.tanh(q * z + a), z)
    lines = []
    for n in (2, 8):
        system = SaddlePointSystem.from_fixed_point(
            {q: value}, name="m", parameters=(a,), outputs={f"o{k}": q + k for k in range(n)}
        )
        lines.append(scalar_functions(lower(system).program)[-1].body.count("\n"))
    assert lines[0] == lines[1]
