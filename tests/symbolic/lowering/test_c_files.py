"""Kernels in C: compiled without warnings, called through cffi, against independent digits."""

import functools
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_array_equal

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.symbolic.lowering.languages import c as c_files

from .compiled_c import COMPILER, FLAGS, CompiledKernel, compile_c, require_compiler
from .target_files import lowered_of
from .vectors import MEAN_FIELD, SPIKED_VECTORS

z = sp.Symbol("z", real=True)
x = sp.Symbol("x", positive=True)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a function that compiles the kernel of a system once."""
    require_compiler()

    @functools.cache
    def kernel(build):
        # One kernel at full optimisation is enough to see its warnings; the rest compile quickly.
        flags = ("-O3",) if build is SPIKED_VECTORS[0].system else ("-O0",)
        files = c_files.files(lowered_of(build), name="kernel")
        return CompiledKernel(files, tmp_path_factory.mktemp("c"), flags)

    return kernel


# ---------------------------------------------------------------- numbers


def test_a_large_spike_on_a_kinked_student(tmp_path):
    # giantstep, SpikedRandomFeatures("relu", "relu", step_size=8, allow_non_odd=True)
    # .solve(alpha=0.2, ridge=1e-3, digits=25); the residual variance is small where kappa is large.
    require_compiler()
    model = SpikedRandomFeatures("relu", "relu", step_size=8.0, alpha0=20.0, allow_non_odd=True)
    kernel = CompiledKernel(c_files.files(model.symbolic().lowered, name="k"), tmp_path, ("-O0",))
    found = kernel.solve({**model._parameter_values(), "alpha": 0.2, "ridge": 1e-3})
    for name, exact in (
        ("test_error", 0.03539694304929162),
        ("training_error", 6.105129200409916e-7),
    ):
        assert abs(found.values[name] - exact) <= found.errors[name] <= 1e-11 * exact


# ---------------------------------------------------------------- tables in the file


# ---------------------------------------------------------------- bad input, many rows, threads


@pytest.fixture(scope="module")
def ridge(compiled):
    return compiled(MEAN_FIELD[0].system)


def test_a_row_outside_its_domain_fails_alone(ridge):
    rows = [[2.0, 0.1, 1.0, 0.25], [-2.0, 0.1, 1.0, 0.25], [2.0, np.nan, 1.0, 0.25]]
    found = ridge.solve_many([*rows, rows[0]])
    assert found.status == ridge.constant("BAD_ARGUMENT")
    assert "outside its domain" in found.message
    assert [i.status for i in found.info] == [0, 4, 4, 0]
    assert [i.iterations > 0 for i in found.info] == [True, False, False, True]
    assert_array_equal(found.values[0], found.values[3])
    assert np.all(np.isinf(found.errors[1:3])) and np.all(np.isfinite(found.errors[[0, 3]]))


def test_no_rows_are_no_error(ridge):
    assert ridge.solve_many(np.empty((0, 4))).status == ridge.constant("OK")


def test_threads_share_nothing(compiled):
    vector = SPIKED_VECTORS[0]
    kernel = compiled(vector.system)
    rng = np.random.default_rng(1)
    rows = np.tile([float(vector.parameters[p]) for p in kernel.parameters], (64, 1))
    rows[:, kernel.parameters.index("alpha")] = rng.uniform(0.2, 5, 64)
    rows[32:, kernel.parameters.index("bulk_variance")] *= 1.1
    whole = kernel.solve_many(rows).values
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda part: kernel.solve_many(part).values, np.split(rows, 4)))
    assert_array_equal(np.concatenate(parts), whole)


# ---------------------------------------------------------------- text


def test_a_kernel_may_be_called_by_a_word_of_c(tmp_path):
    files = c_files.files(lowered_of(MEAN_FIELD[0].system), name="double")
    assert set(files) == {"double_.h", "double_.c"}
    require_compiler()
    CompiledKernel(files, tmp_path, ("-O0",))


@pytest.mark.parametrize("vector", [MEAN_FIELD[0], MEAN_FIELD[3], SPIKED_VECTORS[0]], ids=str)
def test_the_example_in_the_header_runs_clean(vector, tmp_path):
    require_compiler()
    files = c_files.files(lowered_of(vector.system), name="k")
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = files["k.h"].splitlines()
    start = next(i for i, line in enumerate(lines) if "#include <stdio.h>" in line)
    stop = lines.index(" */")
    example = "\n".join(line.removeprefix(" *").removeprefix("     ") for line in lines[start:stop])
    (tmp_path / "example.c").write_text(example + "\n", encoding="utf-8")
    program = tmp_path / "example"
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    sources = [str(tmp_path / "example.c"), str(tmp_path / "k.c"), "-lm", "-o", str(program)]
    probe = subprocess.run(
        [COMPILER, *FLAGS, *sanitizers, *sources], capture_output=True, check=False
    )
    if probe.returncode:  # a compiler without its sanitizers
        compile_c(sources)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"\w+ = [-\d.e]+, error \d.\de-1\d\n", done.stdout), done.stdout


def test_sums_are_reordered_where_some_pass_calls_no_function():
    """Elsewhere no vector instruction is possible: another order only changes last bits."""
    glass = next(v for v in MEAN_FIELD if v.name == "SK, glass")
    for vector, reordered in ((glass, False), (SPIKED_VECTORS[0], True)):
        text = lowered_of(vector.system).source("c")
        assert ("associative-math" in text) == reordered
