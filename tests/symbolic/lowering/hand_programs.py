"""Programs written by hand, each for one thing that a target has to emit; with their solutions."""

import functools
from types import SimpleNamespace

import sympy as sp

from giantstep.symbolic.expressions.functions import sigmoid
from giantstep.symbolic.lowering.languages import c as c_files, jax, mpmath, numpy, python
from giantstep.symbolic.lowering.program import (
    Assign,
    Data,
    LinearSolve,
    Newton,
    NodeLoop,
    Panels,
    Program,
    ScalarRoot,
)

a, b, c, t, y, w, z = sp.symbols("a b c t y w z", real=True)
x = sp.Symbol("x", positive=True)
r1, r2, r3, j1, j2, j3, j4, j5 = sp.symbols("r1 r2 r3 j1 j2 j3 j4 j5", real=True)
zero, one, total = sp.symbols("zero one total", real=True)
LANGUAGES = {
    "python": functools.partial(python.files, target="python"), "numpy": numpy.files,
    "c": c_files.files, "mpmath": mpmath.files, "jax": jax.files,
}  # fmt: skip


def program(name, parameters, steps, outputs, **options):
    """Return a program without tables."""
    options = {"tables": (), "magnitudes": {}, "even": False} | options
    return Program(
        name=name,
        documentation="By hand.",
        parameters=parameters,
        steps=steps,
        outputs=outputs,
        **options,
    )


def lowered(found, **options):
    """Return what a target reads of a LoweredSystem, for a program without tables."""
    system = SimpleNamespace(name=found.name, equations=(), outputs={}, parameters=(), unknowns=())
    options = {
        "definitions": {}, "node": z, "identifiers": {}, "table_parameters": (), "system": system,
        "product": None, "documentation": found.documentation,
        "results": {
            str(x): k for k, x in enumerate(found.outputs) if x not in found.sizes.values()
        },
        **options,
    }  # fmt: skip
    made = SimpleNamespace(program=found, **options)
    made.files = lambda target, tables=None: LANGUAGES[target](made, tables)
    return made


def triangular(safeguarded=False):
    """x = a, y = b x, w = y + x**2; the second equation times c, so singular at c = 0."""
    newton = Newton(
        unknowns=(x, y, w),
        start=(sp.S.One, sp.S.One, sp.S.One),
        body=(
            Assign(r1, sp.log(x / a)),
            Assign(r2, c * (y - b * x)),
            Assign(r3, w - y - x**2),
            Assign(j1, -b * c * x),
            Assign(j2, -2 * x**2),
            Assign(zero, sp.S.Zero),
            Assign(one, sp.S.One),
            Assign(j3, -one),
        ),
        residual=(r1, r2, r3),
        jacobian=((one, zero, zero), (j1, c, zero), (j2, j3, one)),
        logarithmic=(True, False, False),
        safeguarded=safeguarded,
    )
    return program("triangular", (a, b, c), (newton,), (x, y, w))


def arctangent(safeguarded):
    """atan(y - a) = 0 from a + b: full steps of Newton's method diverge from b = 1.4 on."""
    newton = Newton(
        unknowns=(y,),
        start=(a + b,),
        body=(Assign(r1, sp.atan(y - a)), Assign(j1, 1 / (1 + (y - a) ** 2))),
        residual=(r1,),
        jacobian=((j1,),),
        logarithmic=(False,),
        safeguarded=safeguarded,
    )
    return program("arctangent", (a, b), (newton,), (y,))


def cosine():
    """y = cos y with a Jacobian of the wrong sign: only fixed-point moves get anywhere."""
    newton = Newton(
        unknowns=(y,),
        start=(a,),
        body=(Assign(r1, y - sp.cos(y)), Assign(j1, -1 - sp.sin(y) / 2)),
        residual=(r1,),
        jacobian=((j1,),),
        logarithmic=(False,),
        fixed_point=(r1,),
        safeguarded=True,
    )
    return program("cosine", (a,), (newton,), (y,))


def linear(n):
    """(a + 1) y_k + sum_i y_i = k, singular at a = -1."""
    unknowns = tuple(sp.Symbol(f"y{k}", real=True) for k in range(n))
    right = tuple(sp.Symbol(f"right{k}", real=True) for k in range(n))
    steps = (
        *([Assign(one, sp.S.One)] if n > 1 else []),
        Assign(r1, a + 2),
        *(Assign(r, sp.Integer(k)) for k, r in enumerate(right, start=1)),
        LinearSolve(
            unknowns,
            tuple(tuple(r1 if i == k else one for i in range(n)) for k in range(n)),
            right,
        ),
    )
    return program("linear", (a,), steps, unknowns)


def linear_solution(n, value):
    """Sum all equations: (a + 1 + n) sum y = n (n + 1)/2."""
    whole = n * (n + 1) / 2 / (value + 1 + n)
    return [(k - whole) / (value + 1) for k in range(1, n + 1)]


def cut():
    """P(t > a) and E|t - b| exp(t), cut at a and b."""
    loop = NodeLoop(
        tables=(),
        locals=(Assign(w, sp.Piecewise((1, t > a), (0, True))),),
        sums=(Assign(y, w), Assign(total, sp.Abs(t - b) * sp.exp(t))),
        measure=Panels(t, (a, b)),
    )
    return program("cut", (a, b), (loop,), (y, total))


def growing():
    """E exp(a z) on the nodes of the line, which end where the normal law does."""
    size = sp.Symbol("y_magnitude", positive=True)
    loop = NodeLoop((z,), (), (Assign(y, sp.exp(a * z)), Assign(size, sp.exp(a * z))))
    return program("growing", (a,), (loop,), (y, size), tables=(z,), magnitudes={y: size})


def proximal():
    """Mean over data of the x with x - center - a sigmoid(-x) = 0."""
    center, step, root = sp.symbols("center step root", real=True)
    column = sp.Symbol("sample_center", real=True)
    logistic = ScalarRoot(
        name="proximal",
        unknown=root,
        arguments=(center, step),
        residual=root - center - step * sigmoid(-root),
        slope=1 + step * sigmoid(-root) * sigmoid(root),
        start=center,
    )
    call = sp.Function("proximal")(column, x)
    loop = NodeLoop((column,), (), (Assign(y, call),), measure=Data("sample", (column,)))
    return program("proximal", (x,), (loop,), (y,), roots=(logistic,))


def unlucky_names():
    """Names that mean something in the text of every target or in its support code."""
    words = (
        "np math arrays like solve rough state newton start_1 equations_1 known jnp total".split()
    )
    symbols = sp.symbols(words, real=True)
    newton = Newton(
        unknowns=(sp.Symbol("residual", positive=True),),
        start=(symbols[0],),
        body=(
            Assign(sp.Symbol("size", real=True), sp.log(sp.Symbol("residual", positive=True) / 2)),
            Assign(sp.Symbol("jacobian", real=True), sp.S.One),
        ),
        residual=(sp.Symbol("size", real=True),),
        jacobian=((sp.Symbol("jacobian", real=True),),),
        logarithmic=(True,),
    )
    steps = (newton, Assign(sp.Symbol("report", real=True), sp.Add(*symbols)))
    outputs = (sp.Symbol("report", real=True), sp.Symbol("residual", positive=True))
    return program("unlucky", tuple(symbols), steps, outputs)
