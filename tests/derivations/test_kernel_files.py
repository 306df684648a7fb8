"""Files of kernels in other programs: self-checks, Fortran, workspaces in C, compiled callers."""

import functools
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.mean_field.gaussian_covariates import gaussian_covariates
from giantstep.derivations.mean_field.logistic_regression import logistic_regression
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick

from ..symbolic.lowering.compiled_c import (
    COMPILER,
    FLAGS,
    CompiledKernel,
    compile_c,
    require_compiler,
)
from ..symbolic.lowering.compiled_fortran import run_fortran
from ..symbolic.lowering.product_systems import POINTS


def overlap_in_an_interval():
    z, (q, snr) = sp.Symbol("z", real=True), sp.symbols("q snr", positive=True)
    signal = sp.tanh(sp.sqrt(snr * q) * z + snr * q)
    return gs.SaddlePointSystem.from_fixed_point(
        {q: gs.GaussianExpectation(signal, z)}, name="signs", parameters=(snr,),
        domains={q: sp.Interval.open(0, 1)},
    )  # fmt: skip


MODELS = {
    "interval": lambda: gs.lower(overlap_in_an_interval()),
    "panels": lambda: gs.lower(sherrington_kirkpatrick()),
    "data": lambda: gs.lower(gaussian_covariates()),
    "root": lambda: gs.lower(logistic_regression()),
    "grid": lambda: gs.lower(POINTS["tabulated"][0]()),
    "tables": lambda: gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20).kernel(),
    "kink": lambda: gs.SpikedRandomFeatures(
        "relu", "sin", step_size=1, alpha0=2, allow_non_odd=True
    ).kernel(),
}


# The others take seconds.
QUICK = ("interval", "panels", "data", "tables")
EACH = [pytest.param(m, marks=[] if m in QUICK else pytest.mark.slow) for m in MODELS]


@functools.cache
def kernel_of(model):
    return MODELS[model]()


def run_python(path):
    return subprocess.run(
        [sys.executable, "-I", path], capture_output=True, text=True, check=False, timeout=120
    )


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- self-checks


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("interval", "python"),
        ("panels", "python"),
        ("data", "python"),
        ("tables", "numpy"),
        ("data", "mpmath"),
    ],
)
def test_files_for_python_check_themselves(model, target, tmp_path):
    (path,) = kernel_of(model).write(tmp_path / "kernel.py", target)
    done = run_python(path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 points: all values agree\n"


def test_a_wrong_file_says_so(tmp_path):
    kernel = kernel_of("panels")
    text = kernel.source("python")
    assert text.count("VECTORS = [") == 1
    (path,) = kernel.write(tmp_path / "kernel.py", "python")
    broken = text.replace("out[2] = ", "out[2] = 1e-9 + ", 1)
    assert broken != text
    path.write_text(broken)
    done = run_python(path)
    assert done.returncode == 1 and "AssertionError: free_energy is" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("model", ["panels", "data"])
def test_numba_files_check_themselves(model, tmp_path):
    (path,) = kernel_of(model).write(tmp_path / "kernel.py", "numba")
    assert run_python(path).stdout == "3 points: all values agree\n"


@pytest.mark.parametrize("model", EACH)
def test_files_in_c_check_themselves(model, tmp_path):
    require_compiler()
    kernel_of(model).write(tmp_path / "kernel.c")
    program = tmp_path / "check"
    compile_c(["-DKERNEL_SELFCHECK", "-O0", str(tmp_path / "kernel.c"), "-lm", "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith("0 of "), done.stdout


@pytest.mark.parametrize("model", EACH)
def test_files_in_fortran_check_themselves(model, tmp_path):
    text = kernel_of(model).source("fortran")
    name = text[text.index("\nmodule ") + 8 :].split("\n")[0]
    program = f"program main\nuse {name}\nprint *, selfcheck()\nend program\n"
    assert run_fortran(tmp_path, text, program).split() == ["0"]


@pytest.mark.parametrize("model", ["tables", pytest.param("kink", marks=pytest.mark.slow)])
def test_tables_in_a_file_are_checked_too(model, tmp_path):
    # Those of a kink hold thousands of numbers, more than a statement of Fortran.
    kernel = kernel_of(model)
    point = dict.fromkeys(("spike_strength", "bulk_variance"), 1.0)
    point |= {"alignment": 0.5, "noise_variance": 0.25}
    text = kernel.source("fortran", tables="baked", **point)
    name = text[text.index("\nmodule ") + 8 :].split("\n")[0]
    program = f"program main\nuse {name}\nprint *, selfcheck(), n_parameters\nend program\n"
    assert run_fortran(tmp_path, text, program).split() == ["0", "3"]


def test_known_results_are_those_of_the_kernel():
    kernel = kernel_of("tables")
    found = kernel.known_results()
    assert len(found.points) == 3 and found.data is None
    assert all(set(r) <= set(kernel.outputs) for r in found.results)
    for point, result in zip(found.points, found.results, strict=True):
        value, error = result["test_error"]
        exact = kernel.solve(**point, digits=20).values["test_error"]
        assert 0 < error < 1e-10 and abs(value - float(exact)) <= error


# ---------------------------------------------------------------- Fortran


def test_fortran_refuses_what_is_outside_of_the_domain(tmp_path):
    text = kernel_of("data").source("fortran")
    program = """program main
use gaussian_covariates_kernel
use, intrinsic :: iso_fortran_env, only: dp => real64
implicit none
type(solve_info) :: info(2)
type(data_set) :: data(1)
real(dp) :: values(n_outputs, 2), errors(n_outputs, 2), parameters(n_parameters, 2)
parameters = 0.5_dp
parameters(1, 2) = -1.0_dp
call solve_many(parameters, data, 1e-11_dp, values, errors, info)
print *, info%status
data(1)%columns = reshape([1.0_dp, 2.0_dp, 1.0_dp, -0.5_dp], [2, 2])
call solve_many(parameters, data, 1e-11_dp, values, errors, info)
print *, info%status
data(1)%columns = reshape([1.0_dp, 2.0_dp, 1.0_dp, 0.5_dp], [2, 2])
call solve_many(parameters, data, 1e-11_dp, values, errors, info)
print *, info%status, info%iterations > 0
end program
"""
    assert run_fortran(tmp_path, text, program).split() == [
        "4", "4", "4", "4", "0", "4", "T", "F",
    ]  # fmt: skip


# ---------------------------------------------------------------- C: a workspace


@pytest.fixture(scope="module")
def in_c(tmp_path_factory):
    require_compiler()
    files = kernel_of("tables").files("c", name="k")
    return CompiledKernel(files, tmp_path_factory.mktemp("c"), ("-O0",))


def solve_with(kernel, workspace, row, rtol=1e-11):
    row = np.array(row, dtype=float)
    values, errors = (np.full(len(kernel.outputs), np.nan) for _ in range(2))
    info = kernel.ffi.new("k_info *")
    status = kernel.function("solve_with")(
        workspace,
        kernel._pointer(row),
        rtol,
        kernel._pointer(values),
        kernel._pointer(errors),
        info,
    )
    return status, values, errors, info[0]


def test_a_workspace_gives_the_bits_of_single_calls(in_c):
    kernel = in_c
    rng = np.random.default_rng(3)
    first = [dict(kernel_of("tables").known_results().points[0])[p] for p in kernel.parameters]
    rows = np.array(first) * rng.uniform(0.7, 1.2, (12, len(first)))
    # Rows that share tables, rows that do not, and one that is refused in between.
    tables = [kernel.parameters.index(p) for p in ("spike_strength", "bulk_variance", "alignment")]
    rows[:4, tables], rows[8:, tables] = rows[0, tables], rows[0, tables]
    rows[5, 0] = -1.0
    workspace = kernel.function("init")()
    for row in rows:
        status, values, errors, info = solve_with(kernel, workspace, row)
        alone = kernel.solve_many([row])
        assert status == alone.status == info.status == alone.info[0].status
        np.testing.assert_array_equal(values, alone.values[0])
        np.testing.assert_array_equal(errors, alone.errors[0])
        assert (info.iterations, info.nodes) == (alone.info[0].iterations, alone.info[0].nodes)
    kernel.function("free")(workspace)
    kernel.function("free")(kernel.ffi.NULL)


@pytest.mark.slow
def test_the_workspace_leaks_nothing(tmp_path):
    require_compiler()
    kernel_of("grid").write(tmp_path / "kernel.c")
    (tmp_path / "main.c").write_text(
        """
#include "kernel.h"
int main(void)
{
    double values[KERNEL_N_OUTPUTS], parameters[2] = {0.7, 0.4};
    int k, status = 0;
    kernel_workspace *workspace = kernel_init();
    for (k = 0; k < 4; k++) {
        parameters[0] += 0.1 * (k % 2);
        status |= kernel_solve_with(workspace, parameters, 1e-6, values, NULL, NULL);
    }
    kernel_free(workspace);
    return status;
}
""",
        encoding="utf-8",
    )
    program = tmp_path / "main"
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [str(tmp_path / "main.c"), str(tmp_path / "kernel.c"), "-lm", "-o", str(program)]
    probe = subprocess.run([COMPILER, *FLAGS, *sanitizers, "-O1", *sources], capture_output=True)
    if probe.returncode:
        pytest.skip("this compiler has no sanitizers")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- compiled callers


@pytest.mark.slow
def test_compiled_functions_call_the_solver(tmp_path):
    from numba import njit

    (path,) = kernel_of("tables").write(tmp_path / "kernel.py", "numba")
    module = loaded(path)
    point = dict(kernel_of("tables").known_results().points[0])
    rules, solution = module.quadrature(point), module.solution
    row = np.array([point[p] for p in module.PARAMETERS])
    ridge = module.PARAMETERS.index("ridge")

    @njit
    def best(row, ridges, rules):
        lowest, place = np.inf, -1.0
        for value in ridges:
            row[ridge] = value
            values, _, solved = solution(row, rules)
            if solved and values[0] < lowest:
                lowest, place = values[0], value
        return lowest, place

    grid = np.linspace(0.1, 2, 12)
    lowest, place = best(row.copy(), grid, rules)
    rows = np.tile(row, (len(grid), 1))
    rows[:, ridge] = grid
    errors = module.solve_many(rows)[0][:, 0]
    assert lowest == pytest.approx(errors.min(), rel=1e-12) and place == grid[errors.argmin()]
    # What has no solution is told, not raised.
    row[ridge] = np.nan
    values, errors, solved = solution(row, rules)
    assert not solved and np.all(np.isnan(values)) and np.all(np.isinf(errors))


@pytest.mark.slow
def test_jax_files_change_no_setting(tmp_path):
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    (path,) = kernel_of("panels").write(tmp_path / "kernel.py", "jax")
    module = loaded(path)
    point = {"beta": 1.5, "h": 0.25}
    q, error = module.solve_point(point)["q"]
    assert jax.config.jax_enable_x64 == before and error < 1e-10
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="numbers of 64 bits"):
        module.solution(point, module.quadrature(point))
    with jax.enable_x64(True):
        rules = module.quadrature(point)

        def overlap(beta, h):
            return module.solution({"beta": beta, "h": h}, rules)["q"]

        values = jax.jit(jax.vmap(overlap, (0, None)))(np.array([1.4, 1.5]), 0.25)
        slope = jax.jit(jax.grad(overlap))(1.5, 0.25)
        forward = jax.jacfwd(overlap)(1.5, 0.25)
    assert float(values[1]) == pytest.approx(q, rel=1e-12)
    assert float(slope) == pytest.approx(float(forward), rel=1e-12)
    ends = [module.solve_point({**point, "beta": 1.5 + s})["q"][0] for s in (1e-5, -1e-5)]
    assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7)


# ---------------------------------------------------------------- names


def test_names_of_users_mean_nothing_else_in_fortran(tmp_path):
    names = ("real", "end", "solve", "p", "Rules", "rules", "If", "if", "columns", "dp", "nan", "Q")
    names = (*names, "size", "count_", "q_cap0", "_x", "selfcheck", "tabulate", "Larger")
    symbols = {name: sp.Symbol(f"s{k}", positive=True) for k, name in enumerate(names)}
    unknown = sp.Symbol("y", positive=True)
    z = sp.Symbol("z", real=True)
    mean = gs.GaussianExpectation(sp.tanh(sum(symbols.values()) * z) ** 2, z)
    system = gs.SaddlePointSystem.from_fixed_point(
        {unknown: mean / (1 + unknown) + 1},
        name="kernel",
        parameters=tuple(symbols.values()),
        identifiers={**{s: name for name, s in symbols.items()}, unknown: "function"},
    )
    text = gs.lower(system).source("fortran")
    program = (
        "program main\nuse kernel_kernel\nprint *, selfcheck()\n"
        "print *, parameter_names(5), parameter_names(6)\nend program\n"
    )
    assert run_fortran(tmp_path, text, program).split() == ["0", "Rules", "rules"]
