"""Functions in every target: the same values to a few units in the last place, and refusals."""

import ctypes
import importlib
import math
import random
import shutil
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.special
import sympy as sp
from sympy.codegen.cfunctions import expm1, log1p
from sympy.integrals.quadrature import gauss_legendre

from giantstep.errors import EmissionError, ParameterError
from giantstep.symbolic.expressions.functions import (
    OwenT,
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    relu,
    sigmoid,
    softplus,
)
from giantstep.symbolic.lowering.documentation import describe_functions
from giantstep.symbolic.lowering.program import Assign, Program
from giantstep.symbolic.printing import special_functions
from giantstep.symbolic.printing.printers import (
    CPrinter,
    MpmathPrinter,
    NumpyPrinter,
    ScalarPrinter,
    helper_definitions,
)
from giantstep.symbolic.printing.scalar_helpers import LEGENDRE_NODES, LEGENDRE_WEIGHTS
from giantstep.symbolic.printing.special_functions import (
    helper_texts,
    helpers,
    is_known,
    known_functions,
    names,
    register_function,
)

x, y = sp.symbols("x y", real=True)
HALF = sp.Rational(1, 2)
OF_ONE = [
    relu, sigmoid, softplus, sp.sech, sp.sign, log_cosh, erfcx, normal_cdf, log_normal_cdf,
    sp.Abs, sp.tan, sp.sinh, sp.cosh, sp.asinh, sp.atan, sp.tanh, sp.erf, sp.erfc, sp.exp,
    expm1, lambda u: sp.Heaviside(u, HALF), lambda u: log1p(u**2),
]  # fmt: skip
OF_TWO = [erf_difference, OwenT, sp.Max, sp.Min]
EXPRESSIONS = [f(x) for f in OF_ONE] + [f(x, y) for f in OF_TWO]
# libm's tan and erfc lose a few units themselves, those of arrays some more, JAX's sinh many.
MOST_UNITS = {"numpy": 10.0, "jax": 40.0}


def _points(expr):
    generator = random.Random(str(expr))
    points = [(0.0, 0.0), (0.0, 1.5), (-0.0, -2.0), (2.0, 2.0), (-4.0, 4.0)]
    for _ in range(25):
        size = generator.choice([-1, 1]) * 10 ** generator.uniform(-8, 1.4)
        points.append((size, generator.choice([-1, 1]) * 10 ** generator.uniform(-8, 1.4)))
        points.append((size, size * (1 + 10 ** generator.uniform(-10, -1))))
        points.append((generator.uniform(-6, 6), generator.uniform(-6, 6)))
    return points


def _exact(expr, point):
    at = {s: sp.Rational(v) for s, v in zip((x, y), point, strict=True)}
    return mpmath.mpf(str(expr.subs(at).evalf(40, maxn=2000)))


def _units(found, exact):
    size = max(abs(float(exact)), 1e-290)
    return float(abs(mpmath.mpf(float(found)) - exact)) / math.ulp(size)


def _compare(target, call, expr):
    points = _points(expr)
    for p, found in zip(points, call(points), strict=True):
        exact = _exact(expr, p)
        units = _units(found, exact)
        assert units <= MOST_UNITS.get(target, 6.0), (expr, p, found, exact, units)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_python(expr):
    text = ScalarPrinter().print(expr)
    namespace = {"math": math}
    exec(helper_definitions(ScalarPrinter, text), namespace)
    f = eval(f"lambda x, y: {text}", namespace)
    _compare("python", lambda points: [f(*p) for p in points], expr)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_numpy(expr):
    text = NumpyPrinter().print(expr)
    namespace = {"np": np, "scipy": scipy}
    exec(helper_definitions(NumpyPrinter, text), namespace)
    f = eval(f"lambda x, y: {text}", namespace)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        _compare("numpy", lambda points: f(*np.array(points).T), expr)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_mpmath(expr):
    text = MpmathPrinter().print(expr)
    ctx = mpmath.mp.clone()
    ctx.dps = 30
    namespace = {"ctx": ctx}
    exec(helper_definitions(MpmathPrinter, text), namespace)
    f = eval(f"lambda x, y: {text}", namespace)
    for p in _points(expr)[:20]:
        exact = _exact(expr, p)
        assert abs(mpmath.mpf(f(*map(ctx.mpf, p))) - exact) <= 1e-27 * abs(exact)


@pytest.fixture(scope="module")
def c_library(tmp_path_factory):
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    printer = CPrinter()
    parts = []
    for k, expr in enumerate(EXPRESSIONS):
        unused = "" if expr.has(y) else "    (void)y;\n"
        parts.append(
            f"double f{k}(double x, double y);\n"
            f"double f{k}(double x, double y)\n{{\n{unused}    return {printer.print(expr)};\n}}\n"
        )
    text = "\n".join(parts)
    folder = tmp_path_factory.mktemp("c")
    source, library = folder / "functions.c", folder / "functions.so"
    source.write_text(
        f"#include <math.h>\n#include <stddef.h>\n\n{helper_definitions(printer, text)}\n{text}"
    )
    flags = "-std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -shared -fPIC".split()
    subprocess.run(["gcc", *flags, "-o", library, source, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("k", range(len(EXPRESSIONS)), ids=map(str, EXPRESSIONS))
def test_c(c_library, k):
    f = getattr(c_library, f"f{k}")
    f.restype, f.argtypes = ctypes.c_double, [ctypes.c_double] * 2
    _compare("c", lambda points: [f(*p) for p in points], EXPRESSIONS[k])


def test_numba_compiles_every_helper():
    numba = pytest.importorskip("numba")
    printer = ScalarPrinter()
    # One function for all: each compilation costs a tenth of a second.
    values = [printer.print(e) for e in EXPRESSIONS]
    body = "".join(f"    out[{k}] = {value}\n" for k, value in enumerate(values))
    text = f"@njit\ndef f(x, y, out):\n{body}"
    namespace = {"math": math, "njit": numba.njit}
    exec(helper_definitions(printer, text, "@njit\n") + "\n" + text, namespace)
    plain = {"math": math}
    exec(helper_definitions(printer, text) + "\n" + text.replace("@njit\n", ""), plain)
    compiled, python = np.empty(len(values)), np.empty(len(values))
    for p in _points(x)[:40]:
        namespace["f"](*p, compiled)
        plain["f"](*p, python)
        np.testing.assert_allclose(compiled, python, rtol=2e-15, atol=1e-300)


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_jax(expr):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from giantstep.symbolic.printing.printers import JaxPrinter

    text = JaxPrinter().print(expr)
    namespace = {"jax": jax, "jnp": jax.numpy}
    exec(helper_definitions(JaxPrinter, text), namespace)
    f = eval(f"lambda x, y: {text}", namespace)
    _compare("jax", lambda points: np.asarray(f(*jax.numpy.array(points).T)), expr)


@pytest.mark.parametrize(
    "f", [sigmoid, softplus, log_cosh, erfcx, normal_cdf, log_normal_cdf, sp.erf, sp.erfc]
)
def test_jax_derivatives_where_branches_meet(f):
    _compare_jax_slopes(f(x), [(0.0,), (-0.0,), (0.3,), (-2.0,), (20.0,)])


@pytest.mark.parametrize("f", [erf_difference, OwenT])
def test_jax_derivatives_of_two_arguments_where_branches_meet(f):
    points = [(0.0, 0.0), (1.0, 1.0), (-1.0, -1.0), (1.5, 0.0), (0.0, 1.0), (2.0, -2.0)]
    _compare_jax_slopes(f(x, y), points)


def _compare_jax_slopes(expr, points):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from giantstep.symbolic.printing.printers import JaxPrinter

    text = JaxPrinter().print(expr)
    namespace = {"jax": jax, "jnp": jax.numpy}
    exec(helper_definitions(JaxPrinter, text), namespace)
    arguments = (x, y)[: len(points[0])]
    columns = jax.numpy.array(points).T
    f = eval(f"lambda {', '.join(map(str, arguments))}: {text}", namespace)
    for k, s in enumerate(arguments):
        slopes = jax.vmap(jax.grad(f, k))(*columns)
        for p, slope in zip(points, slopes, strict=True):
            at = dict(zip(arguments, map(sp.Rational, p), strict=True))
            exact = float(expr.diff(s).subs(at).evalf(20))
            assert float(slope) == pytest.approx(exact, rel=1e-13, abs=1e-16)


def test_julia_helpers_are_well_formed():
    parser = pytest.importorskip("tree_sitter")
    language = pytest.importorskip("tree_sitter_julia")
    found = parser.Parser(parser.Language(language.language()))
    for name, text in helpers("julia").items():
        tree = found.parse(text.encode())
        assert not tree.root_node.has_error, name
    for called in names("julia").values():
        assert not called.startswith("fn_") or called in helpers("julia")


def test_every_target_has_every_helper():
    for target in special_functions.TARGETS:
        assert set(known_functions(target)) >= {
            "erfcx", "log_normal_cdf", "normal_cdf", "log_cosh", "erf_difference", "OwenT", "tan",
            "sinh", "cosh", "asinh", "atan", "sech", "relu", "sigmoid", "softplus", "sign",
            "Heaviside", "Max", "Min", "expm1", "log1p",
        }  # fmt: skip
        for called in names(target).values():
            assert not called.startswith("fn_") or called in helpers(target)


def test_helpers_come_after_those_they_call():
    text = "\n".join(helper_texts("c", "y = fn_log_normal_cdf(x);"))
    order = [text.index(f"double {n}(") for n in ("fn_exp_square", "fn_log_normal_cdf")]
    assert order == sorted(order)
    assert helper_texts("numba", "my_fn_relu(x)") == []


def test_the_rule_is_gauss_legendre():
    nodes, weights = gauss_legendre(16, 25)
    assert [float(v) for v in nodes[8:]] == list(LEGENDRE_NODES)
    assert [float(v) for v in weights[8:]] == list(LEGENDRE_WEIGHTS)


@pytest.mark.parametrize("f", [relu, sigmoid, softplus, sp.sign, sp.sech, log_cosh, normal_cdf])
def test_nan_stays_nan(f):
    text = ScalarPrinter().print(f(x))
    namespace = {"math": math, "x": math.nan}
    exec(helper_definitions(ScalarPrinter, text), namespace)
    assert math.isnan(eval(text, namespace))


@pytest.mark.parametrize("f", [sigmoid, softplus, sp.sech, log_cosh, erfcx, normal_cdf])
@pytest.mark.parametrize("at", [1e5, 1e300])
def test_huge_arguments(f, at):
    limits = {sigmoid: 1.0, normal_cdf: 1.0, softplus: at, log_cosh: at, sp.sech: 0.0}
    expected = limits.get(f, 1 / math.sqrt(math.pi) / at)
    for printer in (ScalarPrinter, NumpyPrinter):
        text = printer().print(f(x))
        namespace = {"math": math, "np": np, "scipy": scipy, "x": np.float64(at)}
        exec(helper_definitions(printer, text), namespace)
        with np.errstate(over="raise"):
            assert eval(text, namespace) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("expr", "at", "expected"),
    [
        (log_normal_cdf(x), (-math.inf, 0.0), -math.inf),
        (log_normal_cdf(x), (math.inf, 0.0), 0.0),
        (log_normal_cdf(x), (-1e160, 0.0), -math.inf),
        (log_normal_cdf(x), (-1e12, 0.0), -5e23),
        (erf_difference(x, y), (math.inf, math.inf), 0.0),
        (erf_difference(x, y), (1e300, -1e200), 2.0),
        (OwenT(x, y), (0.0, math.inf), 0.25),
        (OwenT(x, y), (710.0, 1.7e308), 0.0),
    ],
    ids=str,
)
def test_limits_without_warnings(expr, at, expected):
    for printer, module in ((ScalarPrinter(), {"math": math}), (NumpyPrinter(), {"np": np})):
        text = printer.print(expr)
        exec(helper_definitions(printer, text), module)
        f = eval(f"lambda x, y: {text}", module)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            arguments = at if "math" in module else map(np.array, at)
            assert float(f(*arguments)) == expected


# -- the SymPy functions


@pytest.mark.parametrize(
    ("f", "target"),
    [
        (erfcx(x), sp.erfc), (normal_cdf(x), sp.erf), (log_normal_cdf(x), sp.erfc),
        (log_cosh(x), sp.cosh),
    ],
    ids=str,
)  # fmt: skip
def test_derivatives_and_plain_forms(f, target):
    plain = f.rewrite(target)
    assert not plain.has(type(f))
    for value in (sp.Rational(-7, 3), sp.Rational(1, 5), sp.Rational(11, 4)):
        assert f.subs(x, value).evalf(40) == pytest.approx(plain.subs(x, value).evalf(40), 1e-35)
        slope = plain.diff(x).subs(x, value).evalf(40)
        assert f.diff(x).subs(x, value).evalf(40) == pytest.approx(slope, 1e-35)


def test_erf_difference_differentiates():
    plain = sp.erf(x) - sp.erf(y)
    f = erf_difference(x, y)
    assert (f.diff(x), f.diff(y)) == (plain.diff(x), plain.diff(y))
    assert f.rewrite(sp.erf) == plain
    assert erf_difference(x, 0) == sp.erf(x)


def test_latex():
    assert sp.latex(log_normal_cdf(x) ** 2) == r"\log\Phi^{2}\left(x\right)"
    assert r"\operatorname{erf}\left(y\right)" in sp.latex(erf_difference(x, y))


# -- the registry


@pytest.fixture
def registry(monkeypatch):
    """The tables as they are, restored afterwards."""
    for table in ("_NAMES", "_HELPERS"):
        copy = {k: dict(v) for k, v in getattr(special_functions, table).items()}
        monkeypatch.setattr(special_functions, table, copy)
    monkeypatch.setattr(special_functions, "_CLASSES", dict(special_functions._CLASSES))


class cube_root(sp.Function):
    nargs = 1

    def fdiff(self, argindex=1):
        return self / (3 * self.args[0])


def test_a_registered_function_is_printed_with_its_helper(registry):
    assert not is_known(cube_root)
    text = "def fn_cube_root(x):\n    return math.copysign(abs(x) ** (1.0 / 3.0), x)\n"
    register_function(cube_root, python=("fn_cube_root", text), c="cbrt")
    register_function(cube_root, python=("fn_cube_root", text), julia="cbrt")
    assert is_known(cube_root)
    assert "cube_root" in known_functions("numba")
    assert "cube_root" not in known_functions("mpmath")
    assert helper_texts("python", "fn_cube_root(2.0)") == [text]
    with pytest.raises(EmissionError, match="register_function"):
        MpmathPrinter().print(cube_root(x))


def test_a_class_that_is_defined_again_takes_the_place_of_the_first(registry):
    def again():
        return type("beta_1", (sp.Function,), {"__module__": "notebook"})

    first, second = again(), again()
    register_function(first, c="cbrt")
    register_function(second, c="cbrt")
    assert is_known(second)
    assert not is_known(first)
    elsewhere = type("beta_1", (sp.Function,), {"__module__": "other"})
    with pytest.raises(ParameterError, match="another function is known"):
        register_function(elsewhere, c="cbrt")


@pytest.mark.parametrize(
    ("function", "texts", "message"),
    [
        (cube_root(x), {"c": "cbrt"}, "the class itself"),
        (cube_root, {}, "no text for any target"),
        (cube_root, {"c": "cbrt(x); system"}, "no name of a function"),
        (cube_root, {"c": 3}, "a name or a pair"),
        (cube_root, {"python": "fn_cube_root"}, "no helper"),
        (cube_root, {"python": ("cube_root", "def cube_root(x): ...")}, "begins with"),
        (cube_root, {"python": ("fn_relu", "def fn_relu(x):\n    return x\n")}, "another helper"),
        (sp.tanh, {"pascal": "tanh"}, "knows no target pascal; give one of python="),
        (sp.tanh, {"c": "sin"}, "cannot be replaced"),
        (sp.Function("tanh"), {"c": "tanh"}, "another function is known by the name"),
    ],
)
def test_refusals_of_the_registry(registry, function, texts, message):
    with pytest.raises(ParameterError, match=message):
        register_function(function, **texts)


def test_unknown_targets_are_refused():
    with pytest.raises(EmissionError, match="target must be one of numba"):
        known_functions("pascal")


def test_functions_of_a_program():
    a, b = sp.symbols("a b", real=True)
    program = Program(
        name="p", documentation="", parameters=(a,), tables=(), outputs=(b,), magnitudes={},
        even=False, steps=(Assign(b, erfcx(a) * sp.sqrt(1 + a**2)),),
    )  # fmt: skip
    text = describe_functions(program)
    assert "erfcx:\n    python  fn_erfcx" in text
    assert "c       sqrt" in text


# -- the page


@pytest.mark.slow
def test_the_figures_of_the_page_hold(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "docs"))
    script = importlib.import_module("make_accuracy_table")
    page = script.PAGE.read_text(encoding="utf-8")
    measured = script.tables(*script.measure_all(script.QUICK_COUNT))
    assert script.violations(measured, page) == []
    assert max(script.stated(page)["beyond"].values()) <= 8
