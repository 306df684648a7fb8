"""Helpers for one number at a time: Python (and numba), C99, Julia, Fortran; coefficients for all.

Each is written once, in the neutral text of :mod:`.language`.

Sources: W. J. Cody, Rational Chebyshev approximations for the error function, Math. Comp. 23 (1969)
631-637 (erf up to 0.46875, erfcx up to 4 and beyond); D. B. Owen, Ann. Math. Statist. 27 (1956)
1075-1090, (2.3) (Owen's T with \\|a\\| > 1); the rest derived here. ``exp(s x²)`` is computed from
the square of x rounded to multiples of 2⁻¹⁶, which is exact, and the rest; exp(x*x) would lose x²
units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...runtime.rules import LEGENDRE_NODES, LEGENDRE_WEIGHTS
from .language import Function, Kind, Language, Parameter
from .spellings import CLanguage, FortranLanguage, JuliaLanguage, PythonLanguage

# Numerators and denominators from the highest power down: erf(x)/x in x², then erfcx.
NEAR_NUMERATOR = (
    1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
    3.20937758913846947e3,
)  # fmt: skip
NEAR_DENOMINATOR = (
    1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
    2.84423683343917062e3,
)  # fmt: skip
MIDDLE_NUMERATOR = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
    1.23033935479799725e3,
)  # fmt: skip
MIDDLE_DENOMINATOR = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
    1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
    1.23033935480374942e3,
)  # fmt: skip
FAR_NUMERATOR = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
FAR_DENOMINATOR = (
    1.0, 2.56852019228982242, 1.87295284992346047, 5.27905102951428412e-1, 6.05183413124413191e-2,
    2.33520497626869185e-3,
)  # fmt: skip


def horner(coefficients: Sequence[float], variable: str) -> str:
    """Return a polynomial as text that all target languages read alike."""
    text = repr(coefficients[0])
    for coefficient in coefficients[1:]:
        text = f"({text} * {variable} + {coefficient!r})"
    return text


ERF_NEAR = f"{horner(NEAR_NUMERATOR, 'y')} / {horner(NEAR_DENOMINATOR, 'y')}"
ERFCX_MIDDLE = f"{horner(MIDDLE_NUMERATOR, 'a')} / {horner(MIDDLE_DENOMINATOR, 'a')}"
# 1/sqrt(pi) is the limit of x*erfcx(x).
ERFCX_FAR = (
    f"(0.5641895835477563 - y * {horner(FAR_NUMERATOR, 'y')} / {horner(FAR_DENOMINATOR, 'y')}) / a"
)
_RULE = f"nodes = {LEGENDRE_NODES!r}\nweights = {LEGENDRE_WEIGHTS!r}\n"


_BODIES: Mapping[str, tuple[str, str]] = {
    "fn_relu": ("x", "return 0.0 if x < 0.0 else x\n"),
    "fn_step": ("x", "return 1.0 if x > 0.0 else (0.0 if x < 0.0 else 0.5 + x)\n"),
    "fn_sign": ("x", "return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x + 0.0)\n"),
    "fn_sigmoid": (
        "x",
        """
# exp of a non-positive number on both sides: no overflow
e = exp(-abs(x))
return (e if x < 0.0 else 1.0) / (1.0 + e)
""",
    ),
    "fn_softplus": ("x", "return (0.0 if x < 0.0 else x) + log1p(exp(-abs(x)))\n"),
    "fn_sech": (
        "x",
        """
# cosh overflows from 711 on
e = exp(-abs(x))
return 2.0 * e / (1.0 + e * e)
""",
    ),
    "fn_log_cosh": (
        "x",
        """
a = abs(x)
# cosh x = 1 + 2 sinh(x/2)^2; beyond 20 it is exp(|x|)/2
if a > 20.0:
    return a - 0.6931471805599453
s = sinh(0.5 * a)
return log1p(2.0 * s * s)
""",
    ),
    "fn_exp_square": (
        "s x",
        """
# exp(s*x*x) for s = 1, -1/2, -1
a = abs(x)
if not a < 40.0:
    return inf if s > 0.0 else exp(-20.0 * a)
z = floor(a * 65536.0) / 65536.0
return exp(s * z * z) * exp(s * (a - z) * (a + z))
""",
    ),
    "fn_erfcx": (
        "x",
        f"""
a = abs(x)
if a < 0.46875:
    return exp(x * x) * erfc(x)
if x < -26.62873571375148:
    return inf
if a <= 4.0:
    value = {ERFCX_MIDDLE}
else:
    y = 1.0 / a / a
    value = {ERFCX_FAR}
if x < 0.0:
    return 2.0 * fn_exp_square(1.0, a) - value
return value
""",
    ),
    "fn_normal_cdf": (
        "x",
        """
tail = 0.5 * fn_exp_square(-0.5, x) * fn_erfcx(abs(x) * 0.7071067811865476)
return 1.0 - tail if x > 0.0 else tail
""",
    ),
    "fn_log_normal_cdf": (
        "x",
        """
# far out the square is all there is, and erfcx may be zero
if x < -1e10:
    return -0.5 * x * x
if x < 0.0:
    return log(0.5 * fn_erfcx(-x * 0.7071067811865476)) - 0.5 * x * x
return log1p(-0.5 * fn_exp_square(-0.5, x) * fn_erfcx(x * 0.7071067811865476))
""",
    ),
    "fn_erf_difference": (
        "a b",
        f"""
if a == b:
    return 0.0
if (a > 0.0 and not b > 0.0) or (b > 0.0 and not a > 0.0):
    return erf(a) - erf(b)
sign = 1.0 if a > b else -1.0
near = abs(a) if abs(a) < abs(b) else abs(b)
width = abs(a - b)
if width * (near + width) > 1.0:
    return sign * (erfc(near) - erfc(near + width))
{_RULE}# exp(-near^2) times the integral of exp(-s^2 - 2*near*s) over [0, width]
total = 0.0
for j in range({len(LEGENDRE_NODES)}):
    s = 0.5 * width * (1.0 - nodes[j])
    t = 0.5 * width * (1.0 + nodes[j])
    total += weights[j] * (exp(-s * (s + 2.0 * near)) + exp(-t * (t + 2.0 * near)))
return sign * 0.5641895835477563 * fn_exp_square(-1.0, near) * width * total
""",
    ),
    "fn_owen_t_inner": (
        "h a",
        f"""
# h >= 0, 0 <= a <= 1; beyond 9/h the integrand is zero to all digits
if h > 40.0:
    return 0.0
{_RULE}stop = a if a * h <= 9.0 else 9.0 / h
panels = 1 + whole(0.5 * h * stop)
half = 0.5 * stop / panels
total = 0.0
for k in range(panels):
    middle = (2 * k + 1) * half
    for j in range({len(LEGENDRE_NODES)}):
        s = middle - half * nodes[j]
        t = middle + half * nodes[j]
        total += weights[j] * exp(-0.5 * h * s * h * s) / (1.0 + s * s)
        total += weights[j] * exp(-0.5 * h * t * h * t) / (1.0 + t * t)
return 0.15915494309189535 * fn_exp_square(-0.5, h) * half * total
""",
    ),
    "fn_owen_t": (
        "h a",
        """
if not (h == h and a == a):
    return h + a
# beyond these the function is at its limits
h = abs(h)
if h > 1000.0:
    h = 1000.0
slope = abs(a)
if slope > 1e300:
    slope = 1e300
if slope <= 1.0:
    value = fn_owen_t_inner(h, slope)
else:
    p = fn_exp_square(-0.5, h) * fn_erfcx(h * 0.7071067811865476)
    q = fn_exp_square(-0.5, slope * h) * fn_erfcx(slope * h * 0.7071067811865476)
    value = 0.25 * (p + q * (1.0 - p)) - fn_owen_t_inner(slope * h, 1.0 / slope)
return value if a > 0.0 else -value
""",
    ),
}


def _helpers() -> tuple[Function, ...]:
    found: dict[str, Function] = {}
    for name, (arguments, body) in _BODIES.items():
        called = tuple(f for other, f in found.items() if f"{other}(" in body)
        parameters = tuple(map(Parameter, arguments.split()))
        found[name] = Function(name, parameters, body, returns=Kind.REAL, calls=called)
    return tuple(found.values())


HELPERS = _helpers()
"""In an order in which each calls earlier ones only."""


def written(language: Language, without: Sequence[str] = ()) -> dict[str, str]:
    """Return the definitions of the helpers in a language by name, but for some."""
    return {f.name: language.source(f) for f in HELPERS if f.name not in without}


PYTHON_HELPERS: Mapping[str, str] = written(PythonLanguage())
C_HELPERS: Mapping[str, str] = written(CLanguage())
FORTRAN_HELPERS: Mapping[str, str] = written(FortranLanguage())
JULIA_HELPERS: Mapping[str, str] = {
    **{
        f"fn_{name}": f"fn_{name}(x) = ccall((:{name}, Base.Math.libm), Float64, (Float64,), x)\n"
        for name in ("erf", "erfc")
    },
    # Base has a sign of its own.
    **written(JuliaLanguage(), without=("fn_sign",)),
}
