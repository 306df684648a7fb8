"""Kernels in C: compiled without warnings, called through cffi, against independent digits."""

import functools
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_array_equal

from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.errors import EmissionError
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.languages import c as c_files
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

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


def compile_system(system, folder, flags=("-O0",), tables=None):
    require_compiler()
    return CompiledKernel(c_files.files(lower(system), tables, "kernel"), folder, flags)


# ---------------------------------------------------------------- numbers


CASES = {
    "no spike": ("tanh", "sin", {"step_size": 0.0}),
    "even": ("z**2", "z**2", {"allow_non_odd": True}),
    "neither odd nor even": ("softplus", "He(3, z)", {"allow_non_odd": True}),
    "kink at a moving place": ("relu", "sin", {"allow_non_odd": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_agrees_with_the_numba_solver(name, tmp_path):
    student, teacher, options = CASES[name]
    model = SpikedRandomFeatures(student, teacher, **{"step_size": 3, "alpha0": 20, **options})
    agree(model, tmp_path)


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


def test_digits_that_the_tables_lose_show_in_the_errors(tmp_path):
    # At bulk variance 1e-8 the residual variance of tanh is 1e-17: the square of a difference of
    # numbers of size one, whose rounding is 1e-8 of it. V2_hat is proportional to it.
    require_compiler()
    spike = {"spike_strength": 0.6, "bulk_variance": 1e-8, "alignment": 0.5}
    model = SpikedRandomFeatures.from_parameters("tanh", "sin", **spike)
    kernel = CompiledKernel(c_files.files(model.symbolic().lowered, name="k"), tmp_path, ("-O0",))
    found = kernel.solve({**model._parameter_values(), "alpha": 1.0, "ridge": 0.1})
    assert found.status == kernel.constant("OK")
    # E[2 c^2 sech(r kappa)^4 tanh(r kappa)^2] (1 + O(c)) with V = 1/(1 + V_1 mu_1^2) = 1 - O(1e-7).
    with mpmath.workdps(30):
        leading = mpmath.quad(
            lambda t: mpmath.npdf(t) * 2e-16 * mpmath.sech(0.6 * t) ** 4
            * mpmath.tanh(0.6 * t) ** 2,
            range(-12, 13),
        )  # fmt: skip
    error = abs(found.values["V2_hat"] - float(leading))
    assert error <= found.errors["V2_hat"] + 3e-7 * float(leading)
    assert found.errors["V2_hat"] <= 1e-6 * float(leading)


@pytest.mark.slow
def test_labels_with_a_jump_on_the_spike_agree_with_the_numba_solver(tmp_path):
    spike = {"spike_strength": 1.2, "bulk_variance": 1.1, "alignment": 1.0}
    agree(SpikedRandomFeatures.from_parameters("erf", "sign", **spike), tmp_path)


def agree(model, folder):
    require_compiler()
    kernel = CompiledKernel(c_files.files(model.symbolic().lowered, name="k"), folder, ("-O0",))
    alpha, ridge = np.array([0.2, 1.0, 2.5]), np.array([1e-3, 0.1, 1.0])
    given = {**model._parameter_values(), "alpha": alpha, "ridge": ridge}
    rows = np.stack([np.broadcast_to(given[p], 3) for p in kernel.parameters], axis=1)
    found = kernel.solve_many(rows)
    reference = model.solve_many(alpha, ridge)
    assert found.status == kernel.constant("OK")
    for k, name in enumerate(kernel.outputs):
        # Only errors of the two errors are estimated there; 1e-11 is the tolerance of both.
        other = reference.errors.get(name, 1e-11 * np.abs(reference.values[name]) + 1e-13)
        difference = np.abs(found.values[:, k] - reference.values[name])
        assert np.all(difference <= found.errors[:, k] + other), name


def test_an_integrand_that_grows_is_followed_as_far_as_it_matters(tmp_path):
    # E[exp(a z) sigmoid(z - 1)]: at a = 6 the mass sits around z = 6, and reaches to 15.
    slope = sp.Symbol("a", real=True)
    value = GaussianExpectation(sp.exp(slope * z) / (1 + sp.exp(1 - z)) * sp.tanh(x + z) ** 2, z)
    system = SaddlePointSystem.from_fixed_point(
        {x: 1 + 0 * slope}, name="growth", parameters=(slope,), outputs={"mean": value}
    )
    kernel = compile_system(system, tmp_path)
    for a in (0.5, 3.0, 6.0):
        found = kernel.solve({"a": a})
        with mpmath.workdps(30):
            exact = mpmath.quad(
                lambda t, a=a: mpmath.npdf(t) * mpmath.exp(a * t) / (1 + mpmath.exp(1 - t))
                * mpmath.tanh(1 + t) ** 2,
                range(-20, 31),
            )  # fmt: skip
            error = float(abs(mpmath.mpf(found.values["mean"]) - exact))
        assert error <= found.errors["mean"] <= 1e-10 * float(exact)


def step_equation():
    """y = 1/(1 + y) + E sigmoid(s (z - y)): almost a jump at z = y."""
    s = sp.Symbol("s", positive=True)
    y = sp.Symbol("y", positive=True)
    rise = GaussianExpectation(1 / (1 + sp.exp(-s * (z - y))), z)
    return SaddlePointSystem.from_fixed_point({y: 1 / (1 + y) + rise}, name="k", parameters=(s,))


def test_rules_do_not_step_over_a_narrow_integrand(tmp_path):
    kernel = compile_system(step_equation(), tmp_path)
    for s, bound in ((400, 1e-10), (2000, 1e-8)):
        found = kernel.solve({"s": float(s)})
        with mpmath.workdps(25):
            # By parts: P(z > y + t/s) for t of the logistic law.
            def rise(y, s=s):
                def integrand(t):
                    return mpmath.ncdf(-y - t / s) * mpmath.sech(t / 2) ** 2 / 4

                return mpmath.quad(integrand, [-60, -10, 0, 10, 60])

            exact = mpmath.findroot(lambda y: y - 1 / (1 + y) - rise(y), mpmath.mpf("0.8"))
            error = float(abs(mpmath.mpf(found.values["y"]) - exact))
        assert error <= found.errors["y"] <= bound
    # One that no rule resolves is no number.
    found = kernel.solve({"s": 1e7})
    assert found.status == kernel.constant("UNRESOLVED") and "scale" in found.message
    assert np.isnan(found.values["y"]) and np.isinf(found.errors["y"])


def test_what_vanishes_by_symmetry_does_so_exactly(tmp_path):
    require_compiler()
    spike = {"spike_strength": 0.03, "bulk_variance": 31.4, "alignment": 0.0}
    model = SpikedRandomFeatures.from_parameters("He1", "atan", **spike)
    kernel = CompiledKernel(c_files.files(model.symbolic().lowered, name="k"), tmp_path, ("-O0",))
    found = kernel.solve({**model._parameter_values(), "alpha": 0.12, "ridge": 3.1})
    assert abs(found.values["m"]) <= found.errors["m"] <= 1e-15


# ---------------------------------------------------------------- tables in the file


@pytest.fixture(scope="module")
def tanh_sin():
    return symbolic_model("tanh", "sin").lowered


def tables_of(lowered, parameters):
    """Tabulate tanh and sin by a dense rule, on three nested outer rules."""
    step, n = 0.1, 120
    nodes = step * np.arange(n + 1)
    inner = 0.1 * np.arange(-130, 131)
    density = 0.1 * np.exp(-(inner**2) / 2) / np.sqrt(2 * np.pi)
    c, r, rho = (parameters[k] for k in ("bulk_variance", "spike_strength", "orthogonal_alignment"))
    value = np.tanh(np.sqrt(c) * inner + r * nodes[:, None])
    label = np.sin(parameters["alignment"] * nodes[:, None] + rho * inner)
    mu_0, mu_1 = value @ density, (1 - value**2) @ density
    rest = value - mu_0[:, None] - np.sqrt(c) * mu_1[:, None] * inner
    columns = {
        "kappa": nodes, "mu_0": mu_0, "mu_1": mu_1, "mu_2_squared": rest**2 @ density,
        "T_0": label @ density, "T_1": (label * inner) @ density,
        "T_2": label**2 @ density + parameters["noise_variance"],
    }  # fmt: skip
    weight = 2 * step * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    weight[0] /= 2
    columns["weight"] = weight
    levels = []
    for stride in (1, 2, 4):
        level = {k: tuple(v[::stride].tolist()) for k, v in columns.items()}
        level["weight"] = tuple((stride * weight[::stride]).tolist())
        levels.append(level)
    names = {lowered.identifiers[p] for p in lowered.table_parameters}
    return BakedTables({k: v for k, v in parameters.items() if k in names}, tuple(levels))


def test_tables_in_the_file_give_the_same_numbers(tanh_sin, compiled, tmp_path):
    point = {k: float(v) for k, v in SPIKED_VECTORS[0].parameters.items()}
    tables = tables_of(tanh_sin, point)
    baked = CompiledKernel(c_files.files(tanh_sin, tables, "baked"), tmp_path, ("-O0",))
    # noise_variance is in the table T_2, so it is fixed too.
    assert baked.parameters == ("alpha", "beta", "ridge")
    text = c_files.files(tanh_sin, name="computed")
    (tmp_path / "computed").mkdir()
    computed = CompiledKernel(text, tmp_path / "computed", ("-O0",)).solve(point)
    found = baked.solve(point)
    for name, value in found.values.items():
        bound = found.errors[name] + computed.errors[name]
        assert abs(value - computed.values[name]) <= bound, name


def test_tables_without_the_parameters_that_they_were_made_for_are_refused(tanh_sin):
    tables = tables_of(tanh_sin, {k: float(v) for k, v in SPIKED_VECTORS[0].parameters.items()})
    with pytest.raises(EmissionError, match=r"the tables depend on .*bulk_variance"):
        c_files.files(tanh_sin, BakedTables({}, tables.levels))
    with pytest.raises(EmissionError, match="not_there, which the system has not"):
        c_files.files(tanh_sin, BakedTables({**tables.parameters, "not_there": 1.0}, tables.levels))
    broken = tuple(
        {**level, "mu_0": (float("nan"),) * len(level["mu_0"])} for level in tables.levels
    )
    with pytest.raises(EmissionError, match="'mu_0' of the tables holds a number not finite"):
        c_files.files(tanh_sin, BakedTables(tables.parameters, broken))


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


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (x**7, "pow(x, 7.0)"),
        (x**-3, "(1.0 / (x * x * x))"),
        (x ** sp.Rational(3, 2), "pow(x, (3.0 / 2.0))"),
        (sp.sqrt(x), "sqrt(x)"),
        (sp.Abs(sp.Symbol("y", real=True)), "fabs(y)"),
        (sp.Piecewise((x, x > 1), (2, True)), "((x > 1.0) ? (x) : (2.0))"),
    ],
)
def test_prints_expressions_in_c(expr, text):
    from giantstep.symbolic.printing.printers import CPrinter

    assert CPrinter().print(expr) == text
