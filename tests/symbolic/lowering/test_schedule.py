"""Order, passes and measures of a program."""

from itertools import pairwise

import pytest
import sympy as sp

from giantstep.errors import EmissionError
from giantstep.symbolic.expressions.averages import DataAverage
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.losses.proximal import Proximal
from giantstep.symbolic.lowering.fuse import Abs, FreshSymbols, Size, magnitude
from giantstep.symbolic.lowering.program import Assign, Data, Line, NodeLoop, Panels
from giantstep.symbolic.lowering.schedule import Scheduler

a, b, c, m = sp.symbols("a b c m", real=True)
v = sp.Symbol("v", positive=True)
t = sp.Symbol("t", positive=True)
z, x = sp.symbols("z x", real=True)


def E(f):
    return GaussianExpectation(f, z)


def scheduler(functions=()):
    return Scheduler(z, dict(functions), FreshSymbols())


def loops(steps):
    return [s for s in steps if isinstance(s, NodeLoop)]


def test_sums_that_are_ready_share_one_pass():
    items = [Assign(a, E(sp.tanh(z * v))), Assign(b, E(sp.cos(z * v)) + a)]
    (loop,) = loops(scheduler().order(items, {v}))
    assert len(loop.sums) == 2 and loop.measure == Line()


def test_a_sum_that_needs_another_one_waits():
    items = [Assign(b, E(sp.tanh(z * a))), Assign(a, E(sp.cos(z * v)))]
    first, second = loops(scheduler().order(items, {v}))
    assert not first.sums[0].value.has(a)
    assert {
        s
        for s in second.sums[0].value.free_symbols
        | set().union(*(i.value.free_symbols for i in second.locals))
    } & {a}


def test_a_sum_is_computed_once_over_all_calls():
    worker = scheduler()
    worker.order([Assign(a, E(sp.tanh(z * v)))], {v})
    assert loops(worker.order([Assign(b, 2 * E(sp.tanh(z * v)))], {v, a})) == []


def test_each_measure_has_its_pass():
    items = [
        Assign(a, E(sp.tanh(z * v)) + E(sp.Abs(z - m)) + DataAverage(1 / (v + t), t, "spectrum"))
    ]
    found = {type(s.measure): s for s in loops(scheduler().order(items, {v, m}))}
    assert set(found) == {Line, Panels, Data}
    assert found[Data].tables == (sp.Symbol("spectrum_t", positive=True),)
    assert len(found[Panels].measure.breaks) == 1 and found[Panels].tables == ()


def test_break_points_are_known_before_their_pass():
    steps = scheduler().order([Assign(a, E(sp.Abs(z - b))), Assign(b, m**2)], {m})
    places = [str(s.target) for s in steps if isinstance(s, Assign)]
    (loop,) = loops(steps)
    (place,) = loop.measure.breaks
    assert places.index("b") < places.index(str(place)) < len(places)
    assert steps.index(loop) > [str(getattr(s, "target", "")) for s in steps].index(str(place))


def test_a_proximal_operator_becomes_one_function():
    loss = sp.log(1 + sp.exp(-x))
    prox = Proximal(loss, x, m * z, v)
    worker = scheduler()
    steps = worker.order([Assign(a, E(prox**2)), Assign(b, E(prox * z))], {m, v})
    (root,) = worker.roots.functions
    assert len(root.arguments) == 2
    difference = root.residual.diff(root.unknown) - root.slope
    at = {root.unknown: 0.3, root.arguments[0]: -1.2, root.arguments[1]: 2.5}
    assert abs(difference.subs(at).evalf()) < 1e-14
    (loop,) = loops(steps)
    calls = [f for s in (*loop.locals, *loop.sums) for f in s.value.atoms(sp.Function)]
    assert {f.func.__name__ for f in calls if f.func.__name__.startswith("prox")} == {root.name}


def test_circles_and_strangers_are_named():
    with pytest.raises(EmissionError, match="c"):
        scheduler().order([Assign(a, E(sp.tanh(c * z)))], {v})
    with pytest.raises(EmissionError, match="a, b"):
        scheduler().order([Assign(a, b + 1), Assign(b, a + 1)], {v})


def test_sizes_are_taken_on_the_nodes_of_what_they_measure():
    items = [Assign(a, E(magnitude((z - m) * sp.cos(z)))), Assign(b, E(magnitude(sp.Abs(z - m))))]
    found = {type(s.measure): s for s in loops(scheduler().order(items, {m}))}
    assert set(found) == {Line, Panels}
    assert not found[Line].sums[0].value.has(Size)


def test_symbols_of_an_item_are_collected_once(monkeypatch):
    # A chain against the order of the list: one more item is ready in each round.
    chain = sp.symbols("c0:9", real=True)
    items = [Assign(b, a + 1) for a, b in pairwise(chain)][::-1]
    asked = []
    reads = Assign.reads.fget
    monkeypatch.setattr(Assign, "reads", property(lambda item: asked.append(item) or reads(item)))
    scheduler().order(items, chain[:1])
    assert len(asked) == len(items)


def test_sizes_become_absolute_values_that_show_reflections():
    items = [Assign(a, E(magnitude(sp.sin(z) - m * sp.tanh(m - z))))]
    (loop,) = loops(scheduler().order(items, {m}))
    sizes = loop.sums[0].value.atoms(sp.Abs)
    # |m| is the same at all nodes.
    assert {size.args[0].func for size in sizes} == {sp.sin, sp.tanh}
    assert all(type(size) is Abs for size in sizes)
    assert Abs(z - m) == Abs(m - z) and Abs(sp.Integer(-3)) == 3
