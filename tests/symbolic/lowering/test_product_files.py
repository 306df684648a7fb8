"""Files of systems with unknowns under averages over several Gaussian variables."""

import functools

import numpy as np
import pytest

from giantstep.derivations.kernels.code import wanted_tables
from giantstep.derivations.kernels.lower import lower as kernel_of
from giantstep.errors import EmissionError
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.lowered import lower

from . import compiled_c, product_systems as systems
from .generated_code import module_of, names_in
from .target_files import TargetFile

# Of three variables plain Python and C without optimisation take seconds.
NAMES = ("smooth", "jumping", "tabulated", "tilted")
# In these languages each of them takes seconds.
SCALAR = ("python", "numba")


@functools.cache
def lowered(name):
    return lower(systems.POINTS[name][0]())


@functools.cache
def in_process(name):
    build, point = systems.POINTS[name]
    found = kernel_of(build()).solve(**point)
    return {output: float(getattr(found, output)) for output in outputs_of(name)}


def outputs_of(name):
    program = lowered(name).program
    return [str(x) for x in program.outputs if x not in set(program.magnitudes.values())]


def python_file(name, target):
    return module_of(lowered(name).source(target))


SOLVERS = ("python", "numpy", "numba", "c", "jax")


def solved(target, name, folder, tables=None, point=None):
    """Solve by the file of a target, at the point of the system if no other is given."""
    if target == "jax":
        pytest.importorskip("jax")
    file = TargetFile(lowered(name), target, folder, tables, flags=("-O0", "-pedantic"))
    return file.solve(point or systems.POINTS[name][1])


def check(found, expected, slack=0.0):
    assert set(found) == set(expected)
    for output, (value, error) in found.items():
        size = max(abs(expected[output]), 1e-3)
        assert abs(value - expected[output]) <= error + slack, output
        assert error <= 1e-10 * size, output


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param(
            t, name, marks=[pytest.mark.slow] * (t == "numba" or (t, name) == ("python", "tilted"))
        )
        for t in SOLVERS
        for name in (("smooth", "tilted") if t in SCALAR else NAMES)
    ],
)
def test_files_agree_with_the_kernel_in_process(target, name, tmp_path):
    check(solved(target, name, tmp_path), in_process(name), slack=1e-12)


@pytest.mark.parametrize("name", systems.EXACT)
def test_values_are_those_of_averages_done_otherwise(name, tmp_path):
    value, error = solved("numpy", name, tmp_path)["x"]
    assert abs(value - systems.EXACT[name]) <= error + 1e-13 * value
    assert error <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("target", ["c", "numba", "jax"])
def test_three_variables(target, tmp_path):
    value, error = solved(target, "deep", tmp_path)["x"]
    assert abs(value - systems.EXACT["deep"]) <= error + 1e-12
    assert error <= 1e-9


def baked(name):
    build, point = systems.POINTS[name]
    kernel = kernel_of(build())
    held = [kernel.lowered.identifiers[p] for p in kernel.lowered.table_parameters]
    tables = wanted_tables(kernel, "baked", {p: point[p] for p in held})
    return tables, {p: value for p, value in point.items() if p not in held}


@pytest.mark.parametrize("target", ["python", "numpy", "c", "jax"])
def test_baked_tables_hold_the_grid(target, tmp_path):
    tables, point = baked("tabulated")
    assert set(point) == {"g"}
    found = solved(target, "tabulated", tmp_path, tables, point)
    check(found, in_process("tabulated"), 1e-12)


def test_baked_tables_of_any_size_are_refused():
    program = lowered("deep").program
    names = ("weight", *map(str, program.tables))
    column = (0.5,) * 400_000
    tables = BakedTables({}, tuple(dict.fromkeys(names, column) for _ in range(3)))
    with pytest.raises(EmissionError, match=r"hold \d+ numbers, more than .* leave out tables="):
        lowered("deep").files("c", tables=tables)


def test_rows_are_those_of_single_solves():
    module = python_file("jumping", "numpy")
    rows = [[1.3, 0.8], [0.2, 0.8], [1.3, -4.0], [1.3, 0.0]]
    values, errors, info = module.solve_many(rows)
    assert np.all(info[:, 0] >= 0) and np.all(errors < 1e-9)
    for row, value in zip(rows, values, strict=True):
        single = module.solve_point(dict(zip(module.PARAMETERS, row, strict=True)))
        assert single["x"][0] == pytest.approx(value[0], rel=1e-13)


@pytest.mark.parametrize("g", [0.0, 1e-9, 3.0, -30.0])
def test_jumps_anywhere(g, tmp_path):
    value, error = solved("numpy", "jumping", tmp_path, point={"a": 0.9, "g": g})["x"]
    assert abs(value - systems.of_a_jump(0.9, g)) <= error + 1e-12


def test_a_jump_that_no_grid_resolves_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match=r"no solution at a = 0\.9, g = 1000000\.0"):
        solved("numpy", "jumping", tmp_path, point={"a": 0.9, "g": 1e6})
    compiled_c.require_compiler()
    kernel = compiled_c.CompiledKernel(lowered("jumping").files("c"), tmp_path, flags=("-O0",))
    found = kernel.solve({"a": 0.9, "g": 1e6})
    assert found.status == kernel.constant("UNRESOLVED") and np.isnan(found.values["x"])
    assert kernel.solve({"a": 1.3, "g": 0.8}).status == 0


def test_no_solution_is_no_number():
    module = python_file("jumping", "numpy")
    with pytest.raises(ValueError, match="a must be a finite positive number"):
        module.solve_point({"a": -1.0, "g": 0.5})
    with pytest.raises(ValueError, match="g must be a finite real number"):
        module.solve_point({"a": 1.0, "g": float("nan")})


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        pytest.param(name, digits, marks=pytest.mark.slow)
        for name, digits in (("smooth", 5), ("tabulated", 13))
    ],
)
def test_mpmath_reaches_its_digits(name, digits):
    namespace = names_in(lowered(name).source("mpmath"))
    found = namespace["solve_point"](systems.POINTS[name][1], digits=digits)
    check(
        {output: (float(value), 0.0) for output, (value, _) in found.items()},
        in_process(name),
        slack=10.0**-digits + 1e-12,
    )


@pytest.mark.slow
def test_more_digits_than_a_grid_has_room_for_are_refused():
    namespace = names_in(lowered("smooth").source("mpmath"))
    with pytest.raises(RuntimeError, match="ask for fewer digits"):
        namespace["solve_point"](systems.POINTS["smooth"][1], digits=200)


@pytest.mark.parametrize("name", ["jumping", "tabulated", "tilted"])
def test_derivatives_in_jax(name):
    jax = pytest.importorskip("jax")
    module = python_file(name, "jax")
    point = systems.POINTS[name][1]
    rules = module.quadrature(point)

    def solution(point):
        return module.solution(point, rules)["x"]

    with jax.enable_x64(True):
        value, found = jax.value_and_grad(solution)(dict(point))
    assert float(value) == pytest.approx(in_process(name)["x"], rel=1e-12)
    for p, slope in found.items():
        # The third derivative of "tilted" by a is some 200: differences have to be short.
        ends = [module.solve_point({**point, p: point[p] + h})["x"][0] for h in (1e-5, -1e-5)]
        assert float(slope) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7), p


@pytest.mark.parametrize("name", systems.POINTS)
def test_julia_is_julia(name):
    tree_sitter = pytest.importorskip("tree_sitter", reason="reads the syntax of Julia")
    grammar = pytest.importorskip("tree_sitter_julia", reason="reads the syntax of Julia")
    text = lowered(name).source("julia")
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))
    assert not parser.parse(text.encode()).root_node.has_error
    assert "function product_points(" in text
