"""From equations to text that runs: program, printers, the three targets, the tables."""

import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose

from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.parity import averages_are_even
from giantstep.symbolic.lowering.program import Assign, LinearSolve, Newton, NodeLoop
from giantstep.symbolic.lowering.solver import solver_source
from giantstep.symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent

from .generated_code import mpmath_names_in, names_in
from .lowered_cases import kappa, nodes, run

z = sp.Symbol("z", real=True)
HALF = sp.Rational(1, 2)


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
    square = GaussianExpectation((z + kappa) ** 2, z)
    other = GaussianExpectation((z + kappa) * sp.Abs(z + kappa), z)
    right, left = sp.Heaviside(kappa, HALF), sp.Heaviside(-kappa, HALF)
    assert not averages_are_even([], kappa, {f: right * square**2 + left * other**2}, None)
    assert averages_are_even([], kappa, {f: square}, None)
    assert averages_are_even([], kappa, {f: other}, None)  # odd is a parity


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
    found, info = run(names_in(solver_source(program, "python")), program, *model_case(program))
    assert 0 < info[0] < 20 and info[1] < 1e-13  # quadratic convergence, rounding
    p = PARAMETERS
    weight, at = nodes(0.25)
    t = {name: f(at) for name, f in STAND_INS.items()}
    mean = lambda values: float(np.sum(weight * values))  # noqa: E731
    V = t["mu_1"] ** 2 * found["V1"] + t["mu_2_squared"] * found["V2"]
    C = t["mu_0"] * found["m"] + t["mu_1"] * at * found["theta"]
    # the energy identity, and a conjugate
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
    plain, _ = run(names_in(solver_source(program, "python")), program, *case)
    namespace = mpmath_names_in(solver_source(program, "mpmath"))
    precise, info = run(namespace, program, *case, convert=namespace["ctx"].mpf)
    assert info[0] > 0 and info[1] < 1e-36
    for name, value in precise.items():
        # 1e-16 times the condition of the equations, some tens here
        assert_allclose(plain[name], float(value), rtol=1e-13, err_msg=name)


def test_targets_differ_in_nothing_but_their_header(program):
    plain, compiled = solver_source(program, "python"), solver_source(program)
    compiled = re.sub(r"np\.empty\((\d+)\)", r"[0.0] * \1", compiled)
    # Where numba goes on with infinities, plain Python leaves a block.
    header, blocks = ("@", "from numba", "_F"), ("try:", "except (Arithmetic", "pass")

    def lines(text):
        # How rows are run differs: plain Python marks those at which it raises.
        text = text.partition("def solve_batch")[0]
        stripped = (x.strip() for x in text.splitlines() if not x.startswith(header))
        return [x for x in stripped if x and not x.startswith(blocks)]

    assert lines(compiled) == lines(plain)
    with pytest.raises(ValueError, match="'numba', 'python' or 'mpmath'"):
        solver_source(program, "fortran")


def test_an_unfinished_newton_iteration_is_reported(program):
    parameters, columns, _ = model_case(program)
    source = solver_source(program, "python").replace("range(500)", "range(2)")
    _, info = run(names_in(source), program, parameters, columns, [1e9, 1e9])
    assert info[0] == -2 and info[1] > 1e-6


_MANY_EQUAL_PARTS = """
import sympy as sp
import giantstep as gs
from giantstep import GaussianExpectation as E

z = sp.Symbol("z", real=True)
q, r, s = sp.symbols("q r s", positive=True)
parts = [(k + z**2 * q) * (k + r + sp.cos(z * s) ** 2) ** 2 for k in range(1, 4)]
bumps = sp.Add(*(sp.tanh(z * q) / part for part in parts))
edge = E(abs(z - q) / (r + q * z**2 + s), z)
system = gs.SaddlePointSystem.from_fixed_point(
    {q: E(bumps**2, z) + s / 10, r: 1 + edge / (q + s)}, name="bumps", parameters=(s,)
)
lowered = gs.lower(system)
print(lowered.inspect("program"), lowered.inspect("numba"), lowered.inspect("c"))
"""


@pytest.mark.slow
def test_texts_are_the_same_in_each_process():
    # Python orders sets anew in each process.
    texts = [
        subprocess.run(
            [sys.executable, "-c", _MANY_EQUAL_PARTS], check=True, capture_output=True, text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2")
    ]  # fmt: skip
    assert len({*texts}) == 1 and "inverse" in texts[0]
