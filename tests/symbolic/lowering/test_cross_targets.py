"""The files of all targets agree pairwise, on the same test vectors."""

import importlib.util
import math
from itertools import combinations

import mpmath
import pytest
import sympy as sp

from giantstep.derivations.kernels.lower import lower as lower_to_kernel
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick
from giantstep.symbolic.lowering.lowered import TARGETS, lower
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .compiled_c import CompiledKernel, require_compiler
from .vectors import SPIKED_VECTORS, VECTORS

DIGITS = 18
# What mpmath solves in about a second; of C, one of each kind of program, compiled without
# optimisation.
MPMATH = {
    "ridge, nearly interpolating", "ridge, at the threshold", "covariates", "covariates, matched",
    "SK, paramagnet",
}  # fmt: skip
C = {
    "ridge, nearly interpolating", "covariates, matched", "logistic", "hinge", "SK, glass",
    "spiked A1", "spiked A6",
}  # fmt: skip
# One spiked model is as good as six where time is short.
SLOW = {v.name for v in SPIKED_VECTORS} - {"spiked A1"}


def module_of(lowered, target, folder):
    """Write the file of a Python target and import it as a user would."""
    (path,) = lowered.write(folder / f"{target}_kernel.py", target)
    # As plain as it gets: the module is not in sys.modules, as where files are loaded by path.
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_file(lowered, vector, target, folder):
    """Solve by the file of a Python target."""
    module = module_of(lowered, target, folder)
    if target == "mpmath":
        return module.solve_point(vector.parameters, vector.data, digits=DIGITS)
    return module.solve_point(vector.floats, vector.float_data)


def of_library(lowered, vector, target, folder):
    """Compile the C files and solve."""
    require_compiler()
    kernel = CompiledKernel(lowered.files("c"), folder, flags=("-O0",))
    found = kernel.solve(vector.floats, vector.float_data)
    assert found.status == 0, found.message
    return {name: (value, found.errors[name]) for name, value in found.values.items()}


SOLVERS = {"python": of_file, "numpy": of_file, "mpmath": of_file, "c": of_library}


def targets_of(vector):
    chosen = {"mpmath": MPMATH, "c": C}
    return [t for t in SOLVERS if t not in chosen or vector.name in chosen[t]]


@pytest.mark.parametrize(
    "vector",
    [pytest.param(v, id=v.name, marks=[pytest.mark.slow] * (v.name in SLOW)) for v in VECTORS],
)
def test_targets_agree_pairwise(vector, tmp_path):
    lowered = lower(vector.system())
    found = {}
    for target in targets_of(vector):
        try:
            found[target] = SOLVERS[target](lowered, vector, target, tmp_path)
        except pytest.skip.Exception:
            # Without a compiler the others are compared all the same.
            continue
    assert len(found) >= 2
    for (one, left), (other, right) in combinations(found.items(), 2):
        assert set(left) == set(right), (one, other)
        for name in left:
            (a, first), (b, second) = left[name], right[name]
            # mpmath takes parameters as the decimals that floats round.
            rounding = 4e-15 * abs(float(a)) if "mpmath" in (one, other) else 0.0
            allowed = float(first) + float(second) + rounding
            assert abs(float(a) - float(b)) <= allowed, (name, one, other)
            # An estimate that is far too large must not hide anything.
            assert abs(float(a) - float(b)) <= 1e-11 * max(abs(float(a)), 1e-3), (name, one, other)


@pytest.mark.parametrize("name", ["covariates, matched", "logistic, noisy labels", "SK, glass"])
def test_arrays_of_rows_estimate_the_errors_that_single_rows_do(name, tmp_path):
    (vector,) = (v for v in VECTORS if v.name == name)
    lowered = lower(vector.system())
    rows, arrays = (of_file(lowered, vector, t, tmp_path) for t in ("python", "numpy"))
    for output, (value, error) in rows.items():
        # What is left of a difference of two rules that agree is rounding.
        assert arrays[output][1] == pytest.approx(error, rel=1e-5, abs=1e-14 * abs(value)), output


# One driver: panels; nodes of the line, in a field, too; an unknown that vanishes; tables.
KINDS = ("hinge", "SK, glass", "SK, paramagnet", "SK, paramagnet without a field", "spiked A1")


@pytest.mark.parametrize(
    "vector",
    [v for v in VECTORS if v.name in KINDS],
    ids=str,
)
def test_files_solve_on_the_nodes_of_the_solver_in_process(vector, tmp_path):
    require_compiler()
    kernel, lowered = lower_to_kernel(vector.system()), lower(vector.system())
    solved = kernel.solve(**vector.floats)
    library = CompiledKernel(lowered.files("c"), tmp_path, flags=("-O0",))
    in_c = library.solve(vector.floats)
    # What vanishes is refined until it is exactly zero, which rounding decides.
    vanishes = vector.name == "SK, paramagnet without a field"
    if not vanishes:
        assert in_c.info[0].nodes == solved.nodes
    in_python = module_of(lowered, "python", tmp_path).solve_point(vector.floats)
    for name in vector.expected:
        value = solved.values[name]
        last = 4 * math.ulp(value)
        if vanishes or vector.name == "spiked A1" or abs(value) <= solved.errors[name]:
            # Tables come from other libraries and equations magnify what that changes, as they do
            # for what vanishes; where all comes from one text nothing is left of it.
            last = max(last, solved.errors[name] / (1 if vanishes else 8))
        assert in_python[name][0] == pytest.approx(value, rel=0, abs=last), name
        assert in_c.values[name] == pytest.approx(value, rel=0, abs=last), name


@pytest.fixture(scope="module")
def quotients():
    """Quotients that are 0/0 as they stand; at v = 1/4 and Δ = 1/2 the argument is h."""
    h, q = sp.symbols("h q", real=True)
    v, noise = sp.symbols("v Delta", positive=True)
    x = h * sp.sqrt(1 - v) / sp.sqrt(noise + v)
    density, below = sp.exp(-(x**2) / 2), (1 + sp.erf(x / sp.sqrt(2))) / 2
    system = SaddlePointSystem.from_fixed_point(
        {q: x / 2},
        name="quotients",
        parameters=(h, v, noise),
        outputs={
            "square": density**2 / below,
            "mills": density / below,
            "cube": density**3 / below**3,
            "curvature": sp.log(below).diff(h, 2),
        },
    )
    return lower(system)


@pytest.mark.parametrize("target", ["numba", *SOLVERS])
def test_quotients_of_what_underflows_are_finite_everywhere(quotients, target, tmp_path):
    if target == "c":
        require_compiler()
        library = CompiledKernel(quotients.files("c"), tmp_path, flags=("-O0",))
    else:
        module = module_of(quotients, target, tmp_path)
    for h in ("-10000", "-400", "-37", "-26", "0.5", "26", "38", "10000"):
        point = {"h": h, "v": "0.25", "Delta": "0.5"}
        floats = {name: float(text) for name, text in point.items()}
        if target == "c":
            found = library.solve(floats).values
        else:
            solve, given = module.solve_point, point if target == "mpmath" else floats
            found = {name: value for name, (value, _) in solve(given).items()}
        with mpmath.workdps(60):
            x = mpmath.mpf(h)
            mills = mpmath.exp(-(x**2) / 2) / (mpmath.erfc(-x / mpmath.sqrt(2)) / 2)
            m = mills / mpmath.sqrt(2 * mpmath.pi)
            expected = {
                "square": mills * mpmath.exp(-(x**2) / 2),
                "mills": mills,
                "cube": mills**3,
                "curvature": -m * (m + x),
            }
        for name, exact in expected.items():
            allowed = 4e-15 * (1 + x**2) * abs(exact) + mpmath.mpf(10) ** -300
            assert abs(found[name] - exact) <= allowed, (name, h)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_says_what_it_holds_and_that_it_is_free(target):
    text = lower(sherrington_kirkpatrick()).source(target)
    for words in (
        "Sherrington-Kirkpatrick model, replica-symmetric",  # title
        "Phys. Rev. Lett. 35, 1792 (1975)",  # source
        "r = sqrt(E_z[tanh(beta*(h + r*z))**2])",  # equations
        "beta: positive",  # parameters with their domains
        "pure numbers, in the scaling of the source",  # units
        "used, changed and distributed by anyone without conditions (0BSD)",  # terms
    ):
        assert words in text
