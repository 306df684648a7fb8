"""Plain formulas as functions or text in every language: one value for all of them."""

import ctypes
import importlib
import subprocess

import mpmath
import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import EmissionError, ExpressionError, MissingDependencyError, ParameterError
from giantstep.symbolic.expressions.functions import log_normal_cdf, relu, softplus

from ..lowering.compiled_c import COMPILER, FLAGS, require_compiler
from ..lowering.compiled_fortran import run_fortran
from .test_special_functions import EXPRESSIONS, _compare, _points, x, y

FORMULA = sp.Piecewise((sp.exp(-(x**2)) * softplus(y), x > y), (relu(x) + sp.sqrt(1 + y**2), True))
POINT = (0.75, -1.25)


def exact():
    with mpmath.workdps(30):
        a, b = map(mpmath.mpf, POINT)
        return float(mpmath.exp(-(a**2)) * mpmath.log1p(mpmath.exp(b)))


@pytest.mark.parametrize("target", ["numpy", "python", "numba"])
def test_functions_of_one_formula_agree(target):
    found = gs.compiled([FORMULA, x * y], (x, y), target)
    assert found(*POINT) == pytest.approx((exact(), -0.9375), rel=1e-15)


def test_numba_functions_are_called_by_compiled_ones():
    numba = pytest.importorskip("numba")
    inner = gs.compiled(log_normal_cdf(x), (x,), "numba")

    @numba.njit
    def twice(value):
        return 2 * inner(value)

    assert twice(-40.0) == pytest.approx(2 * float(mpmath.log(mpmath.ncdf(-40))), rel=1e-14)


def test_digits():
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    found = gs.compiled(sp.sqrt(x) + sp.pi, (x,), ctx)(2)
    assert abs(found - (ctx.sqrt(2) + ctx.pi)) < ctx.mpf(10) ** -38


def test_numbers_of_many_digits_are_read_once_for_each_precision(monkeypatch):
    ctx, read = mpmath.mp.clone(), []
    from_str = mpmath.ctx_mp_python.from_str
    monkeypatch.setattr(
        mpmath.ctx_mp_python, "from_str", lambda *text: read.append(text) or from_str(*text)
    )
    function = gs.compiled(x + sp.Float("0.1", 60), (x,), ctx)
    for digits in (15, 50, 15, 50):
        ctx.dps = digits
        assert abs(function(ctx.mpf(2)) - ctx.mpf(21) / 10) <= ctx.ldexp(1, 1 - ctx.prec)
    assert len(read) == 2


@pytest.mark.parametrize("several", [False, True])
def test_text_in_c_is_complete(several, tmp_path):
    require_compiler()
    values = [FORMULA, sp.Max(x, y)] if several else FORMULA
    text = gs.compiled(values, (x, y), "c")
    head = "void formula(double x, double y, double *out)" if several else "double formula(double x"
    assert head in text
    (tmp_path / "formula.c").write_text(text)
    library = tmp_path / "formula.so"
    flags = [f for f in FLAGS if f != "-Wextra"]
    subprocess.run(
        [COMPILER, *flags, "-shared", "-fPIC", "-o", library, tmp_path / "formula.c", "-lm"],
        check=True,
    )
    function = ctypes.CDLL(str(library)).formula
    arguments = list(map(ctypes.c_double, POINT))
    if several:
        out = (ctypes.c_double * 2)()
        function(*arguments, out)
        assert list(out) == pytest.approx([exact(), 0.75], rel=1e-15)
    else:
        function.restype = ctypes.c_double
        assert function(*arguments) == pytest.approx(exact(), rel=1e-15)


def test_fortran_has_every_function(tmp_path):
    text = gs.compiled(EXPRESSIONS, (x, y), "fortran")
    points = [p for e in EXPRESSIONS for p in _points(e)]
    per = len(points) // len(EXPRESSIONS)
    listed = [f"{1 + k // per} {a!r} {b!r}" for k, (a, b) in enumerate(points)]
    # Read and not written out: that many calls take the compiler seconds.
    (tmp_path / "points").write_text("\n".join(listed), encoding="utf-8")
    program = f"""program main
use formula_module
use, intrinsic :: iso_fortran_env, only: dp => real64
implicit none
real(dp) :: out({len(EXPRESSIONS)}), a, b
integer :: k, which
out = 0
open (10, file= &
'{tmp_path / "points"}')
do k = 1, {len(points)}
    read (10, *) which, a, b
    call formula(a, b, out)
    print '(es25.16e3)', out(which)
end do
end program
"""
    found = iter(run_fortran(tmp_path, text, program).split())
    for expr in EXPRESSIONS:
        _compare("fortran", lambda at: [float(next(found)) for _ in at], expr)


def test_names_without_case_stay_different_in_fortran(tmp_path):
    capital, small, word = sp.symbols("Q q exp", real=True)
    text = gs.compiled(capital - 2 * small + sp.exp(word), (capital, small, word), "fortran")
    program = (
        "program main\nuse formula_module\nprint *, formula(1.0d0, 3.0d0, 0.0d0)\nend program\n"
    )
    assert float(run_fortran(tmp_path, text, program)) == -4


def test_long_formulas_are_continued_in_fortran(tmp_path):
    names = sp.symbols("parameter_of_a_long_name_1:20", real=True)
    value = sp.Mul(*(sp.sin(n) + sp.cos(n) for n in names)) + sp.Add(*names)
    text = gs.compiled(value, names, "fortran")
    assert max(map(len, text.splitlines())) <= 132
    arguments = ", ".join(f"{0.1 * k:.1f}d0" for k in range(len(names)))
    program = f"program main\nuse formula_module\nprint *, formula( &\n{arguments})\nend program\n"
    expected = gs.compiled(value, names, "python")(*(0.1 * k for k in range(len(names))))
    assert float(run_fortran(tmp_path, text, program)) == pytest.approx(expected, rel=1e-13)


def test_text_in_julia_is_well_formed():
    parser = pytest.importorskip("tree_sitter")
    language = pytest.importorskip("tree_sitter_julia")
    text = gs.compiled([FORMULA, sp.sqrt(x)], (x, y), "julia")
    tree = parser.Parser(parser.Language(language.language())).parse(text.encode())
    assert not tree.root_node.has_error
    assert "function formula(x, y, out)" in text and "sqrt(x) = x >= 0.0" in text


@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
def test_torch(expr):
    torch = pytest.importorskip("torch")
    function = gs.compiled(expr, (x, y), "torch")

    def called(points):
        return function(*torch.tensor(points, dtype=torch.float64).T).numpy()

    _compare("jax", called, expr)


def test_gradients_of_tensors():
    torch = pytest.importorskip("torch")
    points = [torch.tensor([v], dtype=torch.float64, requires_grad=True) for v in POINT]
    gs.compiled(FORMULA, (x, y), "torch")(*points).sum().backward()
    for symbol, point in zip((x, y), points, strict=True):
        slope = gs.compiled(FORMULA.diff(symbol), (x, y), "python")(*POINT)
        assert float(point.grad) == pytest.approx(slope, rel=1e-13)


def test_traced_arrays():
    jax = pytest.importorskip("jax")
    function = gs.compiled(FORMULA, (x, y), "jax")
    with jax.enable_x64(True):
        slope = float(jax.jit(jax.grad(function))(*POINT))
    assert slope == pytest.approx(-1.5 * exact(), rel=1e-14)


def test_the_packages_of_other_targets_are_imported_only_where_they_are_used():
    for target in ("jax", "torch"):
        if importlib.util.find_spec(target) is None:
            with pytest.raises(MissingDependencyError, match=f"pip install {target}"):
                gs.compiled(sp.exp(x), (x,), target)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((FORMULA, (x,), "numpy"), ParameterError, "hold y, which is not among the arguments"),
        ((FORMULA, (x,), "c"), ParameterError, "hold y, which is not among the arguments"),
        (([], (x,)), ParameterError, "expressions must be one or more"),
        ((None, (x,)), ParameterError, "expressions has to be a SymPy expression"),
        ((FORMULA, "xy"), ParameterError, "arguments must be symbols"),
        ((FORMULA, (x, y, x)), ParameterError, "different, and x is there twice"),
        ((FORMULA, (x, "y")), ParameterError, "'y' is none"),
        ((FORMULA, (x, y), None), ParameterError, "a name or a context of mpmath"),
        (("exp(x)", x), ExpressionError, "parse_expression reads texts"),
        ((FORMULA, (x, y), "pascal"), EmissionError, "target must be one of python, numba"),
        ((FORMULA, ((x, y),), "c"), EmissionError, "give symbols as arguments"),
        ((sp.gamma(x), (x,), "fortran"), EmissionError, "'fortran' has no rule for gamma"),
        ((sp.gamma(x), (x,), "torch"), EmissionError, "'torch' has no rule for gamma"),
    ],
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        gs.compiled(*arguments)


def test_columns_of_an_array():
    found = gs.compiled(x - 2 * y, ((x, y),))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(found, [-3, -5])
