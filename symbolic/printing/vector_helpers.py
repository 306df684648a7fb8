"""Helpers for arrays: NumPy, JAX and PyTorch, which differ in names only.

SciPy's functions are not used: its erfcx loses x² units for negative arguments and its Owen's T ten
digits where the slope is small. All branches are computed for all elements, so the arguments of a
branch are clipped to where it is taken: nothing overflows on the side, and derivatives that JAX
takes hold no NaN. Where branches meet (x = 0, a = b), the one is taken whose derivative is right
with |x|' = 1 at 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from .scalar_helpers import (
    ERF_NEAR,
    ERFCX_FAR,
    ERFCX_MIDDLE,
    LEGENDRE_NODES,
    LEGENDRE_WEIGHTS,
)

_RULE = f"zip({LEGENDRE_NODES!r}, {LEGENDRE_WEIGHTS!r})"

# "np" becomes "jnp". Nothing else is called: files decide by their own text what they import.
_COMMON: Mapping[str, str] = {
    "fn_relu": "def fn_relu(x):\n    return np.maximum(x, 0.0)\n",
    "fn_step": "def fn_step(x):\n    return np.heaviside(x, 0.5)\n",
    "fn_sigmoid": """def fn_sigmoid(x):
    # exp of a non-positive number on both sides: no overflow
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)
""",
    "fn_softplus": "def fn_softplus(x):\n    return np.logaddexp(0.0, x)\n",
    "fn_sech": """def fn_sech(x):
    # cosh overflows from 711 on
    e = np.exp(-np.abs(x))
    return 2.0 * e / (1.0 + e * e)
""",
    "fn_log_cosh": """def fn_log_cosh(x):
    a = np.abs(x)
    # cosh x = 1 + 2 sinh(x/2)^2; beyond 20 it is exp(|x|)/2
    s = np.sinh(0.5 * np.where(a > 20.0, 20.0, a))
    return np.where(a > 20.0, a - 0.6931471805599453, np.log1p(2.0 * s * s))
""",
    "fn_exp_square": """def fn_exp_square(s, x):
    # exp(s*x*x) for s = 1, -1/2, -1 and |x| < 40, the limit beyond
    a = np.minimum(np.abs(x), 40.0)
    z = np.floor(a * 65536.0) / 65536.0
    return np.exp(s * z * z) * np.exp(s * (a - z) * (a + z))
""",
    "fn_erf": f"""def fn_erf(x):
    a = np.abs(x)
    b = np.minimum(a, 0.46875)
    y = b * b
    near = b * {ERF_NEAR}
    a = np.maximum(a, 0.46875)
    far = 1.0 - fn_exp_square(-1.0, a) * fn_erfcx_far(a)
    return np.where(x < 0.0, -1.0, 1.0) * np.where(b < 0.46875, near, far)
""",
    "fn_erfc": """def fn_erfc(x):
    tail = fn_exp_square(-1.0, x) * fn_erfcx(np.abs(x))
    return np.where(x < 0.0, 2.0 - tail, tail)
""",
    "fn_erfcx_far": f"""def fn_erfcx_far(x):
    # from 0.46875 on
    a = np.minimum(x, 4.0)
    middle = {ERFCX_MIDDLE}
    a = np.maximum(x, 4.0)
    y = 1.0 / a / a
    return np.where(x <= 4.0, middle, {ERFCX_FAR})
""",
    "fn_erfcx": """def fn_erfcx(x):
    size = np.abs(x)
    b = np.clip(x, -0.46875, 0.46875)
    small = np.exp(b * b) * (1.0 - fn_erf(b))
    value = fn_erfcx_far(np.maximum(size, 0.46875))
    # twice the largest number is infinite; below -26.6287… so is the function
    most = np.minimum(np.abs(np.minimum(x, 0.0)), 26.62873571375148)
    reflected = 2.0 * fn_exp_square(1.0, most) - value
    value = np.where(x < 0.0, np.where(x < -26.62873571375148, np.inf, reflected), value)
    return np.where(size < 0.46875, small, value)
""",
    "fn_owen_t_inner": f"""def fn_owen_t_inner(h, a):
    # h >= 0, 0 <= a <= 1; beyond 9/h the integrand is zero to all digits; five panels
    h = np.minimum(h, 40.0)
    most = 9.0 / np.maximum(h, 9.0)
    half = 0.1 * np.where(a <= most, a, most)
    total = 0.0
    for k in range(5):
        middle = (2 * k + 1) * half
        for x, w in {_RULE}:
            for s in (middle - half * x, middle + half * x):
                total = total + w * np.exp(-0.5 * h * s * h * s) / (1.0 + s * s)
    return 0.15915494309189535 * fn_exp_square(-0.5, h) * half * total
""",
    "fn_owen_t": """def fn_owen_t(h, a):
    # beyond these the function is at its limits
    h = np.minimum(np.abs(h), 1000.0)
    slope = np.minimum(np.abs(a), 1e300)
    small = fn_owen_t_inner(h, np.where(slope <= 1.0, slope, 1.0))
    large = np.where(slope <= 1.0, 1.0, slope)
    p = fn_exp_square(-0.5, h) * fn_erfcx(h * 0.7071067811865476)
    q = fn_exp_square(-0.5, large * h) * fn_erfcx(large * h * 0.7071067811865476)
    reflected = 0.25 * (p + q * (1.0 - p)) - fn_owen_t_inner(large * h, 1.0 / large)
    value = np.where(slope <= 1.0, small, reflected)
    return np.where(a >= 0.0, value, -value)
""",
    "fn_normal_cdf": """def fn_normal_cdf(x):
    tail = 0.5 * fn_exp_square(-0.5, x) * fn_erfcx(np.abs(x) * 0.7071067811865476)
    return np.where(x >= 0.0, 1.0 - tail, tail)
""",
    "fn_log_normal_cdf": """def fn_log_normal_cdf(x):
    # beyond 1e10 the square is all there is, beyond 1.9e154 it is infinite
    scaled = fn_erfcx(np.minimum(np.abs(x), 1e10) * 0.7071067811865476)
    below = np.clip(x, -1.89e154, 0.0)
    square = np.where(x < -1.89e154, np.inf, 0.5 * below * below)
    inside = np.log1p(-0.5 * fn_exp_square(-0.5, x) * scaled)
    return np.where(x < 0.0, np.log(0.5 * scaled) - square, inside)
""",
    "fn_erf_difference": f"""def fn_erf_difference(a, b):
    # erf is at its limits from 6 on, erfc is zero from 28 on
    a = np.clip(a, -100.0, 100.0)
    b = np.clip(b, -100.0, 100.0)
    near = np.minimum(np.abs(a), np.abs(b))
    width = np.abs(a - b)
    far = near + width
    apart = fn_exp_square(-1.0, near) * fn_erfcx(near) - fn_exp_square(-1.0, far) * fn_erfcx(far)
    # exp(-near^2) times the integral of exp(-s^2 - 2*near*s) over [0, width]
    close = np.minimum(width, 1.0)
    total = 0.0
    for x, w in {_RULE}:
        s = 0.5 * close * (1.0 - x)
        t = 0.5 * close * (1.0 + x)
        total = total + w * (np.exp(-s * (s + 2.0 * near)) + np.exp(-t * (t + 2.0 * near)))
    total = 0.5641895835477563 * fn_exp_square(-1.0, near) * close * total
    size = np.where(width * far > 1.0, apart, total)
    opposite = (a > 0.0) != (b > 0.0)
    return np.where(opposite, fn_erf(a) - fn_erf(b), np.where(a >= b, size, -size))
""",
}

NUMPY_HELPERS: Mapping[str, str] = _COMMON
JAX_HELPERS: Mapping[str, str] = {
    "fn_size": "def fn_size(x):\n    return jnp.where(x < 0.0, -x, x)\n",
    **{
        name: text.replace("np.abs(", "fn_size(").replace("np.", "jnp.")
        for name, text in _COMMON.items()
    },
}
# Minimum and maximum of tensors take no numbers.
_OF_TENSORS = {"np.minimum(": "fn_min(", "np.maximum(": "fn_max(", "np.": "torch."}


def _of_tensors(text: str) -> str:
    for name, other in _OF_TENSORS.items():
        text = text.replace(name, other)
    return text


TORCH_HELPERS: Mapping[str, str] = {
    # What is not a number comes out again, from either side.
    "fn_max": "def fn_max(x, y):\n    return torch.where((x >= y) | (x != x), x, y)\n",
    "fn_min": "def fn_min(x, y):\n    return torch.where((x <= y) | (x != x), x, y)\n",
    **{name: _of_tensors(text) for name, text in _COMMON.items()},
    "fn_step": "def fn_step(x):\n    return torch.heaviside(x, torch.full_like(x, 0.5))\n",
    "fn_softplus": "def fn_softplus(x):\n    return torch.logaddexp(torch.zeros_like(x), x)\n",
}
