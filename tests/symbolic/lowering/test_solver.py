"""Newton's method, panels, data and roots from programs made by hand, in Python and mpmath."""

import ast
import math
import re
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from giantstep.errors import EmissionError
from giantstep.symbolic.lowering.program import (
    Assign,
    Data,
    Newton,
    NodeLoop,
    Panels,
    Program,
    ScalarRoot,
)
from giantstep.symbolic.lowering.solver import (
    RESERVED,
    array_parameters,
    scalar_functions,
    solver_source,
    solver_twins,
)
from giantstep.symbolic.printing.language import Function, Kind, Parameter
from giantstep.symbolic.printing.printers import ScalarPrinter
from giantstep.symbolic.printing.spellings import PythonLanguage

from .generated_code import mpmath_names_in, names_in

a, b, c = sp.symbols("a b c", real=True)
u, v, w = sp.symbols("u v w", real=True)
p = sp.Symbol("p", positive=True)
z = sp.Symbol("z", real=True)
f, g, h = sp.symbols("f g h", real=True)


def program(steps, outputs, parameters=(a,), **options):
    options = {"tables": (), "magnitudes": {}, "even": False} | options
    return Program("toy", "", tuple(parameters), steps=tuple(steps), outputs=outputs, **options)


def on_mpmath(text, digits):
    names = mpmath_names_in(text, digits)
    return names["ctx"], names


def solve(found, *arguments, target="python", digits=30, **options):
    """Return outputs and info of one solve."""
    text = solver_source(found, target)
    convert, namespace = float, None
    if target == "mpmath":
        ctx, namespace = on_mpmath(text, digits)
        convert = ctx.mpf
    namespace = namespace or names_in(text)
    out, info = [0.0] * len(found.outputs), [0.0] * 3
    values = [
        [convert(x) for x in value] if isinstance(value, list) else convert(value)
        for value in arguments
    ]
    unknowns = len(found.newton_unknowns)
    inverse = [[0.0] * unknowns**2] if unknowns else []
    namespace["solve"](*values, out, info, *inverse, **options)
    return out, info


def newton(unknown, residual, *, positive=False, move=None, **options):
    """Newton's method for one unknown with the derivative of its residual by its coordinate."""
    slope = residual.diff(unknown) * (unknown if positive else 1)
    body = [Assign(f, residual), Assign(g, slope)]
    if move is not None:
        body.append(Assign(h, move))
    return Newton(
        (unknown,), (sp.Integer(1),), tuple(body), (f,), ((g,),), (positive,),
        fixed_point=() if move is None else (h,), **{"safeguarded": True, **options},
    )  # fmt: skip


# -- Newton's method


def test_fixed_point_moves_come_first_and_choose_the_branch():
    # q = tanh(2 q) has the solutions 0 and ±0.957504024…; from 0.3 Newton's method leaves upwards.
    target = sp.tanh(2 * u)
    found = program([newton(u, u - target, move=u - target)], (u,), ())
    (x,), info = solve(found, 0.3)
    # mpmath.findroot(lambda x: x - mpmath.tanh(2*x), 0.9)
    assert x == pytest.approx(0.95750402407728742, rel=1e-15) and info[0] > 0
    (x,), _ = solve(program([newton(u, u - target)], (u,), ()), 0.3)
    assert x < 1e-12


def test_more_moves_where_halving_does_not_help():
    # The residual jumps to larger values on the way that Newton's method wants to take.
    bump = sp.Piecewise((1000 * (u - 2), u > sp.Rational(21, 10)), (0, True))
    residual = (u - a) / 10 + bump
    found = program([newton(u, residual, move=(u - a) / 10)], (u,))
    (x,), info = solve(found, 1.0, 50.0)
    assert x == pytest.approx(1.0, rel=1e-14) and info[0] > 0


def test_a_step_is_not_zero_because_a_slope_is_infinite():
    # As where the square of a large quotient is beyond all floats, at an error of 1e-7.
    moved = Newton(
        (u,), (sp.Integer(1),), (Assign(f, u - 1), Assign(g, a)), (f,), ((g,),), (False,),
        fixed_point=(f,), safeguarded=True,
    )  # fmt: skip
    (x,), info = solve(program([moved], (u,)), math.inf, 1 + 1e-7)
    assert abs(x - 1) < 1e-13 and info[0] > 0
    _, info = solve(program([replace(moved, fixed_point=())], (u,)), math.inf, 1 + 1e-7)
    assert info[0] < 0


@pytest.mark.parametrize(
    "residual",
    [
        u**2 + 1,  # no root
        sp.log(u),  # not a number left of zero
        sp.sqrt(-1 - u**2),  # nowhere a number
        sp.exp(u) + a,  # no root
        sp.Integer(1),  # the slope is zero
    ],
)
@pytest.mark.parametrize("target", ["python", "mpmath"])
def test_what_has_no_solution_is_reported(residual, target):
    for move in (None, residual):
        found = program([newton(u, residual, move=move)], (u,))
        _, info = solve(found, 1.0, -2.0, target=target)
        assert info[0] < 0


def test_first_values_are_those_of_the_caller():
    # u^2 = 4 from the left and from the right; NaN stands for the start of the program, 1.
    found = program([newton(u, u**2 - a)], (u,))
    namespace = names_in(solver_source(found, "python"))
    results, errors, info = np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 3))
    starts = np.array([[-5.0], [5.0], [np.nan]])
    namespace["solve_batch"](np.full((3, 1), 4.0), results, errors, info, starts)
    assert_allclose(results[:, 0], [-2.0, 2.0, 2.0], rtol=1e-15)


# -- panels


def legendre(panels, order=16):
    x, weight = np.polynomial.legendre.leggauss(order)
    nodes = (np.arange(panels)[:, None] + (1 + x) / 2) / panels
    return np.tile(weight / (2 * panels), panels).tolist(), nodes.ravel().tolist()


def cut(integrand, *breaks):
    loop = NodeLoop((), (), (Assign(w, integrand),), Panels(z, tuple(breaks)))
    return program([loop], (w,), breaks)


_KNOWN: dict = {}


@pytest.mark.parametrize("place", [math.inf, -math.inf, 10.5, -10.5, 1e300])
def test_breaks_at_the_ends_and_beyond(place):
    (total,), _ = solve(cut(sp.Integer(1) + 0 * z, a, b, c), place, 0.0, -place, *legendre(8))
    assert total == pytest.approx(1.0, abs=1e-15)


def test_a_break_that_is_no_number_shows():
    (total,), _ = solve(cut(sp.Integer(1), a, b, c), math.nan, 0.0, 1.0, *legendre(8))
    assert math.isnan(total)


def test_a_line_without_breaks_and_its_reach():
    found = cut(sp.cosh(3 * z) / sp.exp(sp.Rational(9, 2)))
    (total,), _ = solve(found, *legendre(16))
    assert total == pytest.approx(1.0, abs=1e-13)  # what lies beyond 10.5: 6e-14
    (total,), _ = solve(found, *legendre(16), reach=14.0)
    assert total == pytest.approx(1.0, abs=1e-15)
    (total,), _ = solve(found, *legendre(16), reach=2.0)
    assert total == pytest.approx(0.16, abs=0.01)  # P(|z| < 2 shifted by 3) = 0.1587


# -- data


def test_a_factor_of_several_sums_is_weighted_once():
    x = sp.Symbol("x", real=True)
    sums = (Assign(u, 3 * x * a), Assign(v, x**2), Assign(w, -x), Assign(f, 1 / (1 + x**2)))
    found = program([NodeLoop((x,), (), sums, Data("data", (x,)))], (u, v, w, f))
    text = solver_source(found, "python")
    assert text.count("weight_j *") == 2
    # Beside a function it would gain nothing.
    slow = program(
        [NodeLoop((x,), (), (*sums[:3], Assign(f, sp.cos(x))), Data("data", (x,)))], (f,)
    )
    assert "weighted_" not in solver_source(slow, "python")
    points, weights = [0.5, -1.25, 2.0], [0.25, 0.5, 0.25]
    values = solve(found, 2.0, weights, points)[0]
    exact = [6 * x for x in points], [x**2 for x in points], [-x for x in points]
    exact = np.array([*exact, 1 / (1 + np.square(points))]) @ weights
    assert_allclose(values, exact, rtol=1e-15)


def test_means_over_two_data_sets():
    x, y = sp.symbols("rows_x rows_y", real=True)
    t = sp.Symbol("other_t", positive=True)
    first = NodeLoop((x, y), (), (Assign(v, x * y + a),), Data("rows", (x, y)))
    second = NodeLoop((t,), (), (Assign(w, sp.log(t)),), Data("other", (t,)))
    found = program([second, first], (v, w))
    names = [p.name for p in array_parameters(found)]
    assert names == ["weight_other", "other_t", "weight_rows", "rows_x", "rows_y"]
    arrays = [[1.0], [math.e], [0.25, 0.75], [1.0, 2.0], [3.0, 4.0]]
    out, info = solve(found, 10.0, *arrays)
    assert out == pytest.approx([16.75, 1.0]) and info[0] == 0
    # Rules do not differ: one solve, errors of rounding only.
    results, errors, state = np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 3))
    namespace = names_in(solver_source(found, "python"))
    namespace["solve_batch"](
        np.array([[10.0]]), np.array(arrays[:2]), np.array(arrays[2:]), results, errors, state
    )
    assert_allclose(results, [[16.75, 1.0]])
    # 8e-15 for a sum, 32 times of which are the margin of outputs that follow from others.
    assert np.all((errors > 0) & (errors < 3e-13 * results))


# -- roots

PROXIMAL = sp.Function("prox", real=True)
center, step, root = sp.symbols("center step root", real=True)


def proximal(loss):
    """Root of x - center + step * loss'(x)."""
    residual = root - center + step * loss.diff(root)
    return ScalarRoot("prox", root, (center, step), residual, residual.diff(root), center)


def root_program(loss):
    return program([Assign(w, PROXIMAL(a, b))], (w,), (a, b), roots=(proximal(loss),))


@given(st.floats(-1e3, 1e3), st.floats(0, 1e6))
def test_proximal_operator_of_the_logistic_loss(x, t):
    namespace = _root_namespace()
    out = [0.0]
    namespace["solve"](x, t, out, [0.0] * 3)
    y = out[0]
    with mpmath.workdps(30):
        exact = y - mpmath.mpf(x) - t / (1 + mpmath.exp(y))
        slope = 1 + t * mpmath.sech(mpmath.mpf(y) / 2) ** 2 / 4
        # Rounding of the three terms, divided by the slope, and of the root: exp, 1 + exp, the
        # quotient, two sums and the last step take half an ulp or one each (4.3 units seen).
        size = abs(y) + abs(x) + t / (1 + mpmath.exp(y))
    assert abs(exact / slope) <= 6 * 2.3e-16 * max(size / slope, abs(y)) + 1e-300


def _root_namespace():
    if "root" not in _KNOWN:
        loss = sp.log(1 + sp.exp(-root))
        residual = root - center - step / (1 + sp.exp(root))
        assert sp.simplify(root - center + step * loss.diff(root) - residual) == 0
        made = ScalarRoot("prox", root, (center, step), residual, residual.diff(root), center)
        found = program([Assign(w, PROXIMAL(a, b))], (w,), (a, b), roots=(made,))
        # exp overflows beyond 709: the start may be that far, the root is not
        text = solver_source(found, "python").replace("math.exp(", "exp(")
        _KNOWN["root"] = names_in(text)
        _KNOWN["root"]["exp"] = lambda x: math.exp(x) if x < 709 else math.inf
    return _KNOWN["root"]


def test_roots_at_a_kink_are_bracketed():
    # Soft threshold: the slope of |x| jumps where the root is.
    loss = sp.Abs(root)
    made = ScalarRoot(
        "prox", root, (center, step), root - center + step * sp.sign(root), sp.S.One, center
    )
    assert sp.simplify(loss.diff(root).subs(root, 2)) == 1
    found = program([Assign(w, PROXIMAL(a, b))], (w,), (a, b), roots=(made,))
    for x, expected in ((3.0, 2.0), (-3.0, -2.0), (0.5, 0.0), (-1.0, 0.0), (0.0, 0.0)):
        (y,), _ = solve(found, x, 1.0)
        assert y == pytest.approx(expected, abs=2e-15)


@pytest.mark.parametrize("x", [math.nan, math.inf])
def test_a_root_that_is_not_found_is_no_number(x):
    (y,), _ = solve(root_program(root**2), x, 1.0)
    assert math.isnan(y)


def test_names_in_roots_are_free():
    names = {center: sp.Symbol("low", real=True), root: sp.Symbol("value", real=True)}
    made = proximal(root**4 / 4)
    made = ScalarRoot(
        "prox", names[root], (names[center], step), made.residual.xreplace(names),
        made.slope.xreplace(names), names[center],
    )  # fmt: skip
    found = program([Assign(w, PROXIMAL(a, b))], (w,), (a, b), roots=(made,))
    assert solve(found, 3.0, 2.0)[0][0] == pytest.approx(1.0, rel=1e-15)


# -- the part of Python

EXAMPLES = [
    program([newton(u, u**2 - a, move=u - a)], (u,)),
    program([newton(p, sp.log(p) - a, positive=True, safeguarded=False)], (p,)),
    cut(sp.Abs(z - a), a, b, c),
    root_program(root**4 / 4),
]


@pytest.mark.parametrize("found", EXAMPLES)
def test_all_names_in_bodies_are_reserved(found):
    # A parameter with the name of a local variable would be overwritten without notice.
    own = {*(str(s) for s in (a, b, c, u, v, w, p, f, g, h)), "z_"}
    made = re.compile(
        r"(expression|start|entries|solution|edges)_\d+_?|(start|near|step|saved)_[up]"
    )
    for function in scalar_functions(found):
        if function.name in ("prox", "solve_dense"):
            continue
        for node in ast.walk(ast.parse(function.body)):
            if isinstance(node, ast.Name) and not made.fullmatch(node.id):
                name = re.sub(r"^(fine|medium|coarse)_", "", node.id)
                assert name in RESERVED | own, node.id


@pytest.mark.parametrize("found", EXAMPLES)
def test_no_loop_index_is_changed_inside_its_loop(found):
    # C and Julia would not come out of such a loop.
    for function in scalar_functions(found):
        for loop in ast.walk(ast.parse(function.body)):
            if isinstance(loop, ast.For):
                inside = [n for s in loop.body for n in ast.walk(s)]
                stored = [n.id for n in inside if isinstance(n, ast.Name) and _is_stored(n)]
                assert loop.target.id not in stored


def _is_stored(name):
    return isinstance(name.ctx, ast.Store)


def test_kinds_of_local_values():
    function = Function(
        "f",
        (Parameter("x"), Parameter("n", Kind.WHOLE), Parameter("t", Kind.ARRAY, counted=True)),
        "k = n - 1\nm = 2 * k\nflag = x < 1.0\ny = m / 2\nfor i in range(len(t)):\n"
        "    y = t[i]\nbuffer = array(3)\ndone = not flag\nk = k + 1\n",
    )
    assert function.local_values == {
        "k": Kind.WHOLE, "m": Kind.WHOLE, "flag": Kind.FLAG, "y": Kind.REAL, "i": Kind.WHOLE,
        "done": Kind.FLAG,
    }  # fmt: skip
    assert function.local_arrays == {"buffer": 3}


@pytest.mark.parametrize(
    "body", ["x = [1]\n", "x = y ** 2\n", "try:\n    x = 1\nfinally:\n    x = 2\n"]
)
def test_other_python_is_refused(body):
    with pytest.raises(EmissionError, match="that every target can say"):
        PythonLanguage().source(Function("f", (), body))


def test_bodies_survive_the_translation():
    body = (
        "y = (a - (b - c)) * (a + b) / (c * (a / b)) - -a\n"
        "z = a if a > b and not (b > c or a > c) else -(a + b)\n"
        "# why\n"
        "if y > 1.0:\n    y = 1.0\nelif y < -1.0:\n    y = -1.0\nelse:\n    y = y / 2\n"
        "return y + z\n"
    )
    function = Function("f", tuple(map(Parameter, "abc")), body, returns=Kind.REAL)
    text = PythonLanguage().source(function)
    assert "    # why" in text
    translated = names_in(text)["f"]
    original = names_in("def f(a, b, c):\n" + "".join(f"    {x}\n" for x in body.splitlines()))["f"]
    for arguments in ((1.5, -0.25, 3.0), (0.1, 0.2, -0.3), (3.0, 1.0, 2.0)):
        assert translated(*arguments) == original(*arguments)


def test_twins_are_printed_once(monkeypatch):
    steps = [Assign(b, sp.sin(a) + a), Assign(c, sp.sin(a) + b**2)]
    toy = program(steps, (b, c))
    apart = solver_source(toy), solver_source(toy, "python")
    printed, print_ = [], ScalarPrinter._print

    def counted(printer, expr, **settings):
        printed.append(expr)
        return print_(printer, expr, **settings)

    monkeypatch.setattr(ScalarPrinter, "_print", counted)
    assert solver_twins(toy) == apart
    assert printed.count(steps[0].value) == printed.count(steps[1].value) == 1
