r"""Functions of all entries of an array as loops that LLVM turns into vector instructions.

For the innermost loops of simulators: values and slopes of activations at millions of entries.
NumPy takes one pass through memory for each operation, and its sin, cos and SciPy's erf compute one
number at a time. Here a loop computes value and slope of an entry together, common subexpressions
once. Elementary functions are polynomials and quotients without branches: both sides of a case are
computed and one is selected, so loops stay vectorisable.

Sources of coefficients: exp is its Taylor polynomial of degree 13 at \|r\| ≤ log(2)/2, and
log(1 + t) the series of 2 artanh(t/(2 + t)). erf up to 0.84375: K. C. Ng, s_erf.c and e_asin.c
(Sun Microsystems, 1993); beyond, Cody's erfcx (:mod:`.scalar_helpers`). sin and cos at
\|r\| ≤ π/4, and tanh up to 0.625: S. L. Moshier, Cephes Mathematical Library, release 2.8 (2000).
Tests compare all with mpmath: no error exceeds two units in the last place. sin and tanh of -0 are
0.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import factorial
from typing import ClassVar

import sympy as sp

from ...errors import EmissionError
from .compiled import Formula, function_text
from .printers import ScalarPrinter, helper_definitions
from .scalar_helpers import MIDDLE_DENOMINATOR, MIDDLE_NUMERATOR, PYTHON_HELPERS, horner

# From the highest power down. Of (erf(x)/x - 1) in x².
_ERF_NUMERATOR = (
    -2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02,
    -3.25042107247001499370e-01, 1.28379167095512558561e-01,
)  # fmt: skip
_ERF_DENOMINATOR = (
    -3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03,
    6.50222499887672944485e-02, 3.97917223959155352819e-01, 1.0,
)  # fmt: skip
# Of (tanh(x)/x - 1)/x² in x².
_TANH_NUMERATOR = (
    -9.64399179425052238628e-01, -9.92877231001918586564e01, -1.61468768441708447952e03,
)  # fmt: skip
_TANH_DENOMINATOR = (
    1.0, 1.12811678491632931402e02, 2.23548839060100448583e03, 4.84406305325125486048e03,
)  # fmt: skip
# Of (asin(x)/x - 1)/x², in x² up to 1/4.
_ARCSINE_NUMERATOR = (
    3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
    2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01,
)  # fmt: skip
_ARCSINE_DENOMINATOR = (
    7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e+00,
    -2.40339491173441421878e+00, 1.0,
)  # fmt: skip
# Of (sin(r) - r)/r³ and (cos(r) - 1 + r²/2)/r⁴ in r².
_SINE = (
    1.58962301576546568060e-10, -2.50507477628578072866e-08, 2.75573136213857245213e-06,
    -1.98412698295895385996e-04, 8.33333333332211858878e-03, -1.66666666666666307295e-01,
)  # fmt: skip
_COSINE = (
    -1.13585365213876817300e-11, 2.08757008419747316778e-09, -2.75573141792967388112e-07,
    2.48015872888517045348e-05, -1.38888888888730564116e-03, 4.16666666666665929218e-02,
)  # fmt: skip
_EXP = tuple(1 / factorial(k) for k in range(13, -1, -1))
# Of (2 artanh(s) - 2 s)/s³ in s².
_LOG = tuple(2 / (2 * k + 3) for k in range(15, -1, -1))

# π/2 in three parts, the first two of 37 bits: their products with integers up to 2¹⁶ are exact.
HALF_PI_PARTS = (1.5707963267923333, 2.5633441515839558e-12, 1.0562999066987428e-23)
LARGEST_ANGLE = 1e5
"""Beyond it, sin and cos are those of the C library, one number at a time."""

_ABOUT = '"""Values and slopes of a function at every entry of an array."""\n\n'
HEADER = """import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

_INLINED = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
_LOOP = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True, "cache": True}


@intrinsic
def bits_of(typing_context, x):
    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), code


@intrinsic
def number_of(typing_context, bits):
    def code(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), code


"""

INLINE = "@njit(**_INLINED)\n"
"""What stands before helpers of a module that begins with :data:`HEADER`."""

# 1.5 * 2**52: what is added to it is rounded to an integer, which its last bits hold.
_ROUNDING = "6755399441055744.0"

_HELPERS: Mapping[str, str] = {
    "fn_relu": PYTHON_HELPERS["fn_relu"],
    "fn_step": PYTHON_HELPERS["fn_step"],
    "fn_sign": PYTHON_HELPERS["fn_sign"],
    "fn_select": "def fn_select(condition, x, y):\n    return x if condition else y\n",
    # What is not a number comes out again, from either side.
    "fn_max": "def fn_max(x, y):\n    return x if x >= y or x != x else y\n",
    "fn_min": "def fn_min(x, y):\n    return x if x <= y or x != x else y\n",
    "fn_exp": f"""def fn_exp(x):
    # comparisons, not min and max: what is not a number stays what it is
    x = 710.0 if x > 710.0 else x
    x = -746.0 if x < -746.0 else x
    shifted = x * 1.4426950408889634 + {_ROUNDING}
    k = shifted - {_ROUNDING}
    r = (x - k * 0.693145751953125) - k * 1.4286068203094173e-06
    power = bits_of(shifted) - bits_of({_ROUNDING})
    # two factors: 2**k itself overflows before the result does, and vanishes before it does
    half = power >> 1
    value = {horner(_EXP, "r")}
    return value * number_of((half + 1023) << 52) * number_of((power - half + 1023) << 52)
""",
    "fn_erf": f"""def fn_erf(x):
    size = abs(x)
    y = x * x
    # erf(6) is 1 to all digits
    a = 6.0 if size > 6.0 else size
    near = size < 0.84375
    near_numerator = {horner(_ERF_NUMERATOR, "y")}
    near_denominator = {horner(_ERF_DENOMINATOR, "y")}
    far_numerator = {horner(MIDDLE_NUMERATOR, "a")}
    far_denominator = {horner(MIDDLE_DENOMINATOR, "a")}
    numerator = near_numerator if near else far_numerator
    denominator = near_denominator if near else far_denominator
    ratio = numerator / denominator
    close = x + x * ratio
    far = 1.0 - fn_exp(-y) * ratio
    far = -far if x < 0.0 else far
    return close if near else far
""",
    "fn_asin": f"""def fn_asin(x):
    size = abs(x)
    near = size < 0.5
    # asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2)); beyond 1 the root is not a number
    y = x * x if near else 0.5 * (1.0 - size)
    a = size if near else math.sqrt(y)
    value = a + a * (y * {horner(_ARCSINE_NUMERATOR, "y")} / {horner(_ARCSINE_DENOMINATOR, "y")})
    # the rest of pi/2 beyond its double
    far = 1.5707963267948966 - (2.0 * value - 6.123233995736766e-17)
    value = value if near else far
    return -value if x < 0.0 else value
""",
    "fn_tanh": f"""def fn_tanh(x):
    size = abs(x)
    y = x * x
    near = size < 0.625
    near_numerator = y * {horner(_TANH_NUMERATOR, "y")}
    near_denominator = {horner(_TANH_DENOMINATOR, "y")}
    far_denominator = 1.0 + fn_exp(2.0 * size)
    numerator = near_numerator if near else 2.0
    denominator = near_denominator if near else far_denominator
    ratio = numerator / denominator
    close = x + x * ratio
    far = 1.0 - ratio
    far = -far if x < 0.0 else far
    return close if near else far
""",
    "fn_turns": f"""def fn_turns(x):
    # rest and number of quarter turns; not a number where the caller has to compute otherwise
    x = math.nan if abs(x) > {LARGEST_ANGLE!r} else x
    shifted = x * 0.6366197723675814 + {_ROUNDING}
    k = shifted - {_ROUNDING}
    t = x - k * {HALF_PI_PARTS[0]!r}
    w = k * {HALF_PI_PARTS[1]!r}
    r = t - w
    return r + (((t - r) - w) - k * {HALF_PI_PARTS[2]!r}), bits_of(shifted)
""",
    "fn_wave": f"""def fn_wave(r, quarters):
    y = r * r
    sine = r + r * (y * {horner(_SINE, "y")})
    cosine = 1.0 - 0.5 * y + y * y * {horner(_COSINE, "y")}
    value = cosine if quarters & 1 else sine
    return -value if quarters & 2 else value
""",
    "fn_sin": """def fn_sin(x):
    r, quarters = fn_turns(x)
    return fn_wave(r, quarters)
""",
    "fn_cos": """def fn_cos(x):
    r, quarters = fn_turns(x)
    return fn_wave(r, quarters + 1)
""",
    "fn_sigmoid": PYTHON_HELPERS["fn_sigmoid"].replace("math.exp", "fn_exp"),
    "fn_sech": PYTHON_HELPERS["fn_sech"].replace("math.exp", "fn_exp"),
    "fn_softplus": f"""def fn_softplus(x):
    e = fn_exp(-abs(x))
    s = e / (2.0 + e)
    y = s * s
    # log(1 + e) = e - s*e + rest: little of the rounding of s is left
    return (0.0 if x < 0.0 else x) + (e - s * (e - y * {horner(_LOG, "y")}))
""",
}

_CALLED: Mapping[str, str] = {
    **{name: f"fn_{name}" for name in ("exp", "erf", "asin", "tanh", "sin", "cos")},
    **{name: f"fn_{name}" for name in ("relu", "sigmoid", "softplus", "sech", "sign")},
    "Heaviside": "fn_step",
    "Max": "fn_max",
    "Min": "fn_min",
    "Abs": "abs",
    "sqrt": "math.sqrt",
}
_WAVES = (sp.sin, sp.cos)


class ArrayKernelPrinter(ScalarPrinter):
    """Scalar code without branches; only functions that are vectorised, all others are refused."""

    target = "array kernel"
    functions = _CALLED
    helpers = _HELPERS

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        exponent = expr.as_base_exp()[1]
        if not (exponent.is_Integer or abs(exponent) == sp.S.Half):
            return self.emptyPrinter(expr)
        return super()._print_Pow(expr)

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        text = self._print(self._last_branch(expr))
        for value, condition in reversed(expr.args[:-1]):
            if condition.has(*_WAVES):
                # Far out they are computed later, when the side has been chosen.
                raise EmissionError(
                    f"target {self.target!r} has no rule for sin and cos in conditions: {condition}"
                )
            text = f"fn_select({self._print(condition)}, {self._print(value)}, {text})"
        return text


class _FarPrinter(ArrayKernelPrinter):
    """The same with sin and cos of the C library, which know all angles."""

    functions: ClassVar[Mapping[str, str]] = {**_CALLED, "sin": "math.sin", "cos": "math.cos"}


def array_kernel(value: sp.Expr, slope: sp.Expr | None, variable: sp.Symbol) -> str:
    """Return the source of a module of numba with loops over arrays of one axis.

    Parameters
    ----------
    value : Expr
        A function of `variable`.
    slope : Expr or None
        Its derivative, if there is one.
    variable : Symbol

    Returns
    -------
    str
        Defines ``values(z, out)``, and with a slope ``slopes(z, out)`` and
        ``values_and_slopes(z, out, slopes)``. Arrays are float64 or float32; what is between is
        float64. The loops hold no lock of Python, and must not write where they read.

    Raises
    ------
    EmissionError
        If a function in the expressions is not vectorised here.
    """
    expressions = [value] if slope is None else [value, slope]
    formula = Formula((variable,), expressions)
    printer, names = ArrayKernelPrinter(), {variable: "x"}
    entries = [function_text("entry", formula, printer, names)]
    limited = any(e.has(*_WAVES) for e in expressions)
    if limited:
        entries.append(function_text("far_entry", formula, _FarPrinter(), names))
    text = "\n\n".join(f"{INLINE}{entry}" for entry in entries)
    helpers = helper_definitions(printer, text, INLINE)
    loops = [_loop("values", {"out": 0}, limited)]
    if slope is not None:
        loops.append(_loop("slopes", {"out": 1}, limited))
        loops.append(_loop("values_and_slopes", {"out": 0, "slopes": 1}, limited))
    return _ABOUT + HEADER + "\n\n".join([*([helpers] if helpers else []), text, *loops])


def _loop(name: str, outputs: Mapping[str, int], limited: bool) -> str:
    """Return a loop that fills arrays with parts of entries, those far out in a second turn."""
    arguments = ", ".join(outputs)
    lines = ["@njit(**_LOOP)", f"def {name}(z, {arguments}):"]
    if limited:
        lines.append("    unknown = 0")
    lines += ["    for i in range(z.size):", "        found = entry(np.float64(z[i]))"]
    for output, part in outputs.items():
        lines.append(f"        {output}[i] = found[{part}]")
        if limited:
            lines.append(f"        unknown += found[{part}] != found[{part}]")
    if limited:
        missing = " or ".join(f"{output}[i] != {output}[i]" for output in outputs)
        lines += [
            "    if unknown:",
            "        for i in range(z.size):",
            f"            if {missing}:",
            "                found = far_entry(np.float64(z[i]))",
        ]
        for output, part in outputs.items():
            lines += [
                f"                if {output}[i] != {output}[i]:",
                f"                    {output}[i] = found[{part}]",
            ]
    return "\n".join(lines) + "\n"
