"""From equations to text that runs: program, printers, the three targets, the tables."""

import importlib.util
import math
import re
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.spiked_random_features import free_energy as model
from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.errors import EmissionError
from giantstep.symbolic.equations import Equation, FreeEnergy, saddle_point_equations
from giantstep.symbolic.gaussian import GaussianExpectation
from giantstep.symbolic.lowering.parity import sums_are_even
from giantstep.symbolic.lowering.program import Assign, LinearSolve, Newton, NodeLoop, Program
from giantstep.symbolic.lowering.targets.renaming import renamed
from giantstep.symbolic.lowering.targets.solver_source import solver_source
from giantstep.symbolic.random_matrix import MarchenkoPasturAverage, Resolvent
from giantstep.symbolic.saddle_point import SaddlePointSystem, lower

kappa = model.kappa
x, y = sp.symbols("x y", real=True)
z = sp.Symbol("z", real=True)
HALF = sp.Rational(1, 2)


# -- running generated text


def load_python(source):
    namespace = {}
    exec(compile(source, "generated", "exec"), namespace)
    return namespace


def load_mpmath(source, digits=40):
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    namespace = {"ctx": ctx}
    exec(compile(source, "generated", "exec"), namespace)
    return namespace


def load_numba(source, folder):
    # A file, because numba caches no functions made from strings.
    path = folder / "generated_kernel.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("generated_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def run(namespace, program, parameters, columns, starts, convert=float):
    """Call solve; `columns` holds weight and node and every table."""
    out = [0.0] * len(program.outputs)
    info = [0.0] * 3
    if convert is None:  # arrays for numba
        out, info = np.zeros(len(out)), np.zeros(3)
        columns, convert = [np.ascontiguousarray(c) for c in columns], float
    else:
        columns = [[convert(v) for v in column] for column in columns]
    namespace["solve"](
        *(convert(p) for p in parameters), *columns, *(convert(s) for s in starts), out, info
    )
    return dict(zip(map(str, program.outputs), out, strict=True)), info


def nodes(step=0.1, reach=9.0):
    at = step * np.arange(-round(reach / step), round(reach / step) + 1)
    return step * np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi), at


def lowered(energy, equations=None, **options):
    options = {"outputs": {}, "start": {}, "safeguarded": False} | options
    system = SaddlePointSystem(
        name="toy",
        equations=tuple(saddle_point_equations(energy) if equations is None else equations),
        parameters=energy.parameters,
        definitions=energy.definitions,
        node=kappa,
        **options,
    )
    return lower(system).program


# -- the program of the model


@pytest.fixture(scope="module")
def program():
    return symbolic_model("tanh", "sin").program


def test_passes_over_the_nodes(program):
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    assert [str(u) for u in newton.unknowns] == ["V1", "V2"]
    # residual and Jacobian come out of one pass
    assert sum(isinstance(s, NodeLoop) for s in newton.body) == 1
    solves = [s for s in program.steps if isinstance(s, LinearSolve)]
    assert [set(map(str, s.unknowns)) for s in solves] == [{"m", "theta"}, {"q1", "q2"}]
    # one before each linear solve (what they need is known one after the other), one for errors
    assert len(list(program.loops())) == 4


def test_every_value_is_defined_before_it_is_used(program):
    known = {*program.parameters, *program.tables}

    def check(steps, known):
        for step in steps:
            if isinstance(step, NodeLoop):
                inside = set(known)
                for a in step.locals:
                    assert a.value.free_symbols <= inside
                    inside.add(a.target)
                for a in step.sums:
                    assert a.value.free_symbols <= inside
                known |= {a.target for a in step.sums}
            elif isinstance(step, Assign):
                assert step.value.free_symbols <= known
                known.add(step.target)
            elif isinstance(step, LinearSolve):
                assert {e for row in step.matrix for e in row} | set(step.right_hand_side) <= known
                known |= set(step.unknowns)
            else:
                known |= set(step.unknowns)
                check(step.body, known)
                assert {*step.residual, *(e for row in step.jacobian for e in row)} <= known
        return known

    assert set(program.outputs) <= check(program.steps, known)


def test_nothing_symbolic_is_left(program):
    for loop in program.loops():
        for a in (*loop.locals, *loop.sums):
            assert not a.value.has(GaussianExpectation, MarchenkoPasturAverage, Resolvent)


@pytest.mark.parametrize(
    ("student", "teacher", "even"),
    [
        ("tanh", "sin", True),
        ("erf", "He3", True),
        ("cos", "He2", True),
        ("relu", "relu", False),
        ("tanh", "relu", False),
        ("relu", "sin", False),
        # mu_0 T_0 is odd; that its mean vanishes is not made use of
        ("tanh", "cos", False),
    ],
)
def test_half_of_the_line_suffices_if_everything_has_a_parity(student, teacher, even):
    found = symbolic_model(student, teacher).program
    assert found.even is even


def test_squares_of_expectations_prove_no_parity():
    # With f = u^2 and g = u |u|, f^2 = g^2 but E[f]^2 != E[g]^2.
    f = sp.Function("f", real=True)(kappa)
    table = sp.Symbol("f", real=True)
    empty = Program("p", "", (), (kappa, table), (), (), {}, False)
    square = GaussianExpectation((z + kappa) ** 2, z)
    other = GaussianExpectation((z + kappa) * sp.Abs(z + kappa), z)
    right, left = sp.Heaviside(kappa, HALF), sp.Heaviside(-kappa, HALF)
    assert not sums_are_even(empty, kappa, {f: right * square**2 + left * other**2}, {f: table})
    assert sums_are_even(empty, kappa, {f: square}, {f: table})
    assert sums_are_even(empty, kappa, {f: other}, {f: table})  # odd is a parity


def test_text_of_a_program(program):
    text = str(program)
    assert text.startswith("program spiked_random_features(alpha, beta, ridge")
    assert "newton for log V1, log V2:" in text and "solve linear for m, theta" in text
    assert text.count("for each node") == 4 and "half of the line" in text


# -- the three targets

STAND_INS = {
    "mu_0": lambda k: np.tanh(k),
    "mu_1": lambda k: 1 / (1 + k**2),
    "mu_2_squared": lambda k: 0.1 / (1 + k**2),
    "T_0": np.sin,
    "T_1": lambda k: 0.3 * np.cos(k),
    "T_2": lambda k: 0.2 + np.sin(k) ** 2,
}
PARAMETERS = {
    "alpha": 1.5, "beta": 0.8, "ridge": 0.1, "noise_variance": 0.05, "spike_strength": 1.1,
    "bulk_variance": 1.05, "alignment": 0.9, "orthogonal_alignment": math.sqrt(0.19),
}  # fmt: skip


def model_case(program, scale=1.0):
    weight, at = nodes(0.25)
    columns = [weight, at, *(STAND_INS[str(t)](at) for t in program.tables[1:])]
    parameters = [
        PARAMETERS[str(p)] * (scale if str(p) == "alpha" else 1) for p in program.parameters
    ]
    return parameters, columns, [10.5, 10.0]


def test_plain_python_solves_the_model(program):
    found, info = run(load_python(solver_source(program, "python")), program, *model_case(program))
    assert 0 < info[0] < 20 and info[1] < 1e-13  # quadratic convergence, rounding
    p = PARAMETERS
    weight, at = nodes(0.25)
    t = {name: f(at) for name, f in STAND_INS.items()}
    mean = lambda values: float(np.sum(weight * values))  # noqa: E731
    V = t["mu_1"] ** 2 * found["V1"] + t["mu_2_squared"] * found["V2"]
    C = t["mu_0"] * found["m"] + t["mu_1"] * at * found["theta"]
    # Section 4.1 of the theory: the energy identity, and a conjugate
    error = t["T_2"] - 2 * t["T_0"] * C - 2 * t["mu_1"] * found["psi"] * t["T_1"] + C**2
    error += t["mu_1"] ** 2 * found["q1"] + t["mu_2_squared"] * found["q2"]
    loss = mean((t["T_2"] - t["T_0"] * C - t["mu_1"] * found["psi"] * t["T_1"]) / (1 + V))
    penalty = p["ridge"] * p["beta"] / p["alpha"] * found["q2"]
    assert_allclose(found["training_error"] + penalty, loss, rtol=1e-13)  # some 1e3 roundings
    assert_allclose(found["test_error"], mean(error) - p["noise_variance"], rtol=1e-13)
    conjugate = p["alpha"] / p["beta"] * mean(t["mu_1"] ** 2 / (1 + V))
    assert_allclose(found["V1_hat"], conjugate, rtol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_plain_python_and_mpmath_agree(program, scale):
    case = model_case(program, scale)
    plain, _ = run(load_python(solver_source(program, "python")), program, *case)
    namespace = load_mpmath(solver_source(program, "mpmath"))
    precise, info = run(namespace, program, *case, convert=namespace["ctx"].mpf)
    assert info[0] > 0 and info[1] < 1e-36
    for name, value in precise.items():
        # 1e-16 times the condition of the equations, some tens here
        assert_allclose(plain[name], float(value), rtol=1e-13, err_msg=name)


def test_numba_and_its_plain_twin_agree(program, tmp_path):
    compiled = load_numba(solver_source(program), tmp_path)
    twin = load_python(solver_source(program, "python"))
    for scale in (1.0, 0.3, 4.0):
        case = model_case(program, scale)
        left, info = run(compiled, program, *case, convert=None)
        right, other = run(twin, program, *case)
        assert info[0] == pytest.approx(other[0], abs=1)
        for name, value in right.items():
            assert_allclose(left[name], value, rtol=1e-13, err_msg=name)  # reassociated sums


def test_targets_differ_in_nothing_but_their_header(program):
    plain, compiled = solver_source(program, "python"), solver_source(program)
    compiled = re.sub(r"np\.empty\((\d+)\)", r"[0.0] * \1", compiled)
    keep = lambda text: [  # noqa: E731
        line for line in text.splitlines() if not line.startswith(("@", "from numba", "_F"))
    ]
    assert [line for line in keep(compiled) if line] == [line for line in keep(plain) if line]
    with pytest.raises(ValueError, match="'numba', 'python' or 'mpmath'"):
        solver_source(program, "fortran")


def test_an_unfinished_newton_iteration_is_reported(program):
    parameters, columns, _ = model_case(program)
    source = solver_source(program, "python").replace("range(500)", "range(2)")
    _, info = run(load_python(source), program, parameters, columns, [1e9, 1e9])
    assert info[0] == -2 and info[1] > 1e-6


# -- toys

penalty = sp.Symbol("penalty", positive=True)
alpha = sp.Symbol("alpha", positive=True)


def least_squares(n):
    """min E (sum_i x_i h_i(kappa) - t(kappa))^2 / 2 + penalty |x|^2 / 2."""
    unknowns = sp.symbols(f"u:{n}", real=True)
    features = [sp.Function(f"h_{'abcde'[i]}", real=True)(kappa) for i in range(n)]
    target = sp.Function("label", real=True)(kappa)
    residual = sum(u * h for u, h in zip(unknowns, features, strict=True)) - target
    definitions = {h: sp.cos((i + 1) * kappa) for i, h in enumerate(features)} | {
        target: 1 / (1 + kappa**2)
    }
    return FreeEnergy(
        GaussianExpectation(residual**2, kappa) / 2 + penalty * sum(u**2 for u in unknowns) / 2,
        unknowns,
        (),
        (penalty,),
        definitions,
    )


def least_squares_case(n, ridge=0.01):
    weight, at = nodes()
    h = np.array([np.cos((i + 1) * at) for i in range(n)])
    label = 1 / (1 + at**2)
    columns = [weight, at, *h, label]
    gram = (h * weight) @ h.T + ridge * np.eye(n)
    return [ridge], columns, np.linalg.solve(gram, (h * weight) @ label)


@pytest.mark.parametrize(("n", "core"), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)])
def test_linear_systems_give_what_numpy_solves(n, core):
    energy = least_squares(n)
    program = lowered(energy)
    assert [len(s.unknowns) for s in program.steps if isinstance(s, LinearSolve)] == [core] * (
        core > 0
    )
    parameters, columns, expected = least_squares_case(n)
    found, info = run(
        load_python(solver_source(program, "python")), program, parameters, columns, []
    )
    # condition number of the Gram matrix 2e2 at n = 5
    assert_allclose([found[f"u{i}"] for i in range(n)], expected, rtol=1e-11)
    assert info[1] < 1e-14


def test_dense_solver_in_mpmath():
    program = lowered(least_squares(4))
    namespace = load_mpmath(solver_source(program, "mpmath"))
    parameters, columns, expected = least_squares_case(4)
    found, info = run(namespace, program, parameters, columns, [], namespace["ctx"].mpf)
    assert_allclose([float(found[f"u{i}"]) for i in range(4)], expected, rtol=1e-11)
    assert info[1] < 1e-38


def test_batches_without_newton_steps():
    program = lowered(least_squares(3), outputs={"loss": least_squares(3).expression})
    parameters, columns, expected = least_squares_case(3)
    fine = np.array(columns).tolist()
    results, errors, info = np.zeros((1, 5)), np.zeros((1, 5)), np.zeros((1, 3))
    solve_batch = load_python(solver_source(program, "python"))["solve_batch"]
    solve_batch(np.array([parameters]), fine, fine, fine, results, errors, info)
    names = list(map(str, program.outputs))
    assert_allclose([results[0, names.index(f"u{i}")] for i in range(3)], expected, rtol=1e-12)
    assert np.all(np.isfinite(errors))


def test_dense_solver_in_numba(tmp_path):
    program = lowered(least_squares(4))
    parameters, columns, expected = least_squares_case(4)
    namespace = load_numba(solver_source(program), tmp_path)
    found, _ = run(namespace, program, parameters, columns, [], None)
    assert_allclose([found[f"u{i}"] for i in range(4)], expected, rtol=1e-11)


def test_dense_solver_pivots():
    # One row is zero on the diagonal until rows are exchanged.
    source = solver_source(lowered(least_squares(4)), "python")
    a = [[0.0, 2.0, 1.0], [1e-20, 1.0, 0.0], [3.0, 0.0, 1.0]]
    right = [1.0, 2.0, 3.0]
    expected = np.linalg.solve(np.array(a), right)
    load_python(source)["solve_dense"](3, [x for row in a for x in row], right)
    assert_allclose(right, expected, rtol=1e-14)


def positive_roots(n):
    """V_i = 1/(penalty + alpha E[mu_i^2/(1 + sum_j mu_j^2 V_j)])."""
    variances = sp.symbols(f"V:{n}", positive=True)
    conjugates = sp.symbols(f"W:{n}", positive=True)
    tables = [sp.Function(f"mu_{'abc'[i]}", real=True)(kappa) for i in range(n)]
    total = sum(f**2 * v for f, v in zip(tables, variances, strict=True))
    expression = alpha * GaussianExpectation(sp.log(1 + total), kappa) / 2
    for v, w in zip(variances, conjugates, strict=True):
        expression += sp.log(penalty + w) / 2 - v * w / 2
    definitions = {f: 1 / (1 + (i + 1) * kappa**2) for i, f in enumerate(tables)}
    return FreeEnergy(expression, variances, conjugates, (alpha, penalty), definitions)


def positive_case(n, a=1.7, ridge=0.05):
    weight, at = nodes()
    mu = np.array([1 / (1 + (i + 1) * at**2) for i in range(n)])

    def residual(v):
        inside = mu**2 / (1 + v @ mu**2)
        return v * (ridge + a * inside @ weight) - 1

    return [a, ridge], [weight, at, *mu], [1 / ridge] * n, residual


@pytest.mark.parametrize("n", [1, 2, 3])
def test_newton_for_positive_unknowns(n):
    energy = positive_roots(n)
    program = lowered(energy, start={v: 1 / penalty for v in energy.order_parameters})
    (newton,) = (s for s in program.steps if isinstance(s, Newton))
    assert program.newton_unknowns == newton.unknowns and len(newton.unknowns) == n
    assert sum(isinstance(s, NodeLoop) for s in newton.body) == 1
    parameters, columns, starts, residual = positive_case(n)
    found, info = run(
        load_python(solver_source(program, "python")), program, parameters, columns, starts
    )
    v = np.array([found[f"V{i}"] for i in range(n)])
    assert np.max(np.abs(residual(v))) < 1e-13 and np.all(v > 0)
    assert 0 < info[0] < 15
    assert np.isfinite(info[2]) and info[2] > 8 * 2.2e-16  # the Jacobian amplifies something


def test_rounding_errors_of_dense_newton_steps_are_estimated():
    # Three equal equations differ from one only in the amplification, which is at least 1.
    energy = positive_roots(3)
    program = lowered(energy, start={v: 1 / penalty for v in energy.order_parameters})
    source = solver_source(program, "python")
    parameters, columns, starts, residual = positive_case(3)
    namespace = load_python(source)
    found, info = run(namespace, program, parameters, columns, starts)
    v = np.log([found[f"V{i}"] for i in range(3)])
    step = 1e-6
    jacobian = np.array(
        [(residual(np.exp(v + d)) - residual(np.exp(v - d))) / (2 * step) for d in step * np.eye(3)]
    ).T
    norm = np.max(np.sum(np.abs(np.linalg.inv(jacobian)), axis=1))
    # info = eps (8 + k norm): solved for k it is a small whole number
    assert (info[2] / (4 * 2.220446049250313e-16) - 8) / norm == pytest.approx(16, rel=1e-4)


@pytest.mark.slow
def test_dense_newton_steps_in_numba(tmp_path):
    energy = positive_roots(3)
    program = lowered(energy, start={v: 1 / penalty for v in energy.order_parameters})
    parameters, columns, starts, residual = positive_case(3)
    namespace = load_numba(solver_source(program), tmp_path)
    found, _ = run(namespace, program, parameters, columns, starts, None)
    assert np.max(np.abs(residual(np.array([found[f"V{i}"] for i in range(3)])))) < 1e-13


def test_newton_from_a_fixed_point_equation():
    # The same with V on both sides of its own equation and no conjugate.
    V = sp.Symbol("V", positive=True)
    mu = sp.Function("mu_a", real=True)(kappa)
    value = 1 / (penalty + alpha * GaussianExpectation(mu**2 / (1 + mu**2 * V), kappa))
    energy = FreeEnergy(V, (V,), (), (alpha, penalty), {mu: 1 / (1 + kappa**2)})
    program = lowered(energy, [Equation(V, value, V - value)], start={V: 1 / penalty})
    parameters, columns, starts, residual = positive_case(1)
    found, _ = run(
        load_python(solver_source(program, "python")), program, parameters, columns, starts
    )
    assert abs(residual(np.array([found["V"]]))[0]) < 1e-13


def test_two_newton_steps_after_each_other():
    # W = 1/(penalty + V W) follows from V; the second does not hide that the first has failed.
    V, W = sp.symbols("V W", positive=True)
    first, second = 1 / (penalty + alpha * V), 1 / (penalty + V * W)
    energy = FreeEnergy(V, (V, W), (), (alpha, penalty))
    equations = [Equation(V, first, V - first), Equation(W, second, W - second)]
    program = lowered(energy, equations, start={V: 1 / penalty, W: 1 / penalty})
    source = solver_source(program, "python")
    found, info = run(load_python(source), program, [2.0, 0.1], [], [10.0, 10.0])
    v = (math.sqrt(0.1**2 + 4 * 2.0) - 0.1) / 4
    assert found["V"] == pytest.approx(v, rel=1e-14)
    assert found["W"] * (0.1 + v * found["W"]) == pytest.approx(1, rel=1e-14)
    assert info[0] > 0
    broken = source.replace("range(500)", "range(1)", 1)
    _, info = run(load_python(broken), program, [2.0, 0.1], [], [10.0, 10.0])
    assert info[0] < 0


@pytest.mark.parametrize("safeguarded", [False, True])
def test_implicit_equations_of_positive_unknowns(safeguarded):
    V = sp.Symbol("V", positive=True)
    energy = FreeEnergy(V**3 / 3 - alpha * V, (V,), (), (alpha,))
    assert saddle_point_equations(energy)[0].value is None
    program = lowered(energy, start={V: alpha}, safeguarded=safeguarded)
    found, info = run(load_python(solver_source(program, "python")), program, [7.0], [], [7.0])
    assert found["V"] == pytest.approx(math.sqrt(7.0), rel=1e-15) and info[0] > 0


@pytest.mark.parametrize("safeguarded", [False, True])
def test_unknowns_without_a_sign(safeguarded):
    # The root of V = cos(V), from mpmath.findroot(lambda v: v - mpmath.cos(v), 0.7).
    V = sp.Symbol("V", real=True)
    energy = FreeEnergy(V, (V,), (), (alpha,))
    value = sp.cos(V) / alpha
    program = lowered(energy, [Equation(V, value, V - value)], safeguarded=safeguarded)
    found, _ = run(load_python(solver_source(program, "python")), program, [1.0], [], [-1.0])
    assert found["V"] == pytest.approx(0.73908513321516064, rel=1e-15)


def test_undefined_symbols_are_refused():
    V = sp.Symbol("V", real=True)
    energy = FreeEnergy(V, (V,), (), ())
    with pytest.raises(EmissionError, match="alpha"):
        lowered(energy, [Equation(V, 2 * alpha, V - 2 * alpha)])


NAMES = ["lambda", "for", "weight", "out", "math", "sum_1", "node_3", "x", "j", "kappa_j", "size"]
NAMES += ["converged", "solve", "ctx", "fine_weight", "np", "abs", "nan", "expression_0_", "fn_erf"]
NAMES += ["solution_3", "entries_3", "start_u0", "h_a_j", "int", "weight_", "size_", "\u03bb"]


@pytest.fixture(scope="module")
def programs():
    energy = positive_roots(2)
    start = {v: 1 / penalty for v in energy.order_parameters}
    return lowered(least_squares(4)), lowered(energy, start=start, safeguarded=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ["python", "mpmath"])
def test_parameters_may_have_any_name(name, target, programs):
    program = renamed(programs[0], {penalty: sp.Symbol(name, positive=True)})
    parameters, columns, expected = least_squares_case(4)
    load = load_mpmath if target == "mpmath" else load_python
    namespace = load(solver_source(program, target))
    convert = namespace["ctx"].mpf if target == "mpmath" else float
    found, _ = run(namespace, program, parameters, columns, [], convert)
    assert_allclose([float(found[f"u{i}"]) for i in range(4)], expected, rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_unknowns_may_have_any_name(name, programs):
    unknown = sp.Symbol("V0", positive=True)
    program = renamed(programs[1], {unknown: sp.Symbol(name, positive=True)})
    parameters, columns, starts, residual = positive_case(2)
    namespace = load_python(solver_source(program, "python"))
    found, _ = run(namespace, program, parameters, columns, starts)
    assert np.max(np.abs(residual(np.array([found[name], found["V1"]])))) < 1e-13
    results, errors, info = np.zeros((1, 4)), np.zeros((1, 4)), np.zeros((1, 3))
    levels = [np.array(columns).tolist()] * 3
    namespace["solve_batch"](np.array([parameters]), *levels, results, errors, info)
    assert_allclose(results[0], list(found.values())[:4], rtol=1e-13)


def test_names_of_computed_values_are_refused(programs):
    (total, *_) = (a.target for loop in programs[0].loops() for a in loop.sums)
    clash = replace(programs[0], parameters=(penalty, total))
    with pytest.raises(EmissionError, match="is the name of a value that the program computes"):
        solver_source(clash, "python")


def test_names_that_are_none_are_refused():
    with pytest.raises(EmissionError, match='"V\'" cannot be a name in code'):
        solver_source(lowered(least_squares(2), identifiers={penalty: "V'"}), "python")


def test_documentation_may_hold_anything():
    program = replace(lowered(least_squares(1)), documentation=r'\alpha "quoted" """ and \n')
    assert load_python(solver_source(program, "python"))["__doc__"].strip() == (
        r'\alpha "quoted" """ and \n'
    )
