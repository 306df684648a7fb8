"""Helpers on a local mpmath context named `ctx`, accurate at whatever its precision is."""

from __future__ import annotations

from collections.abc import Mapping

# Squares of the argument inside exp and erfc lose twice its binary magnitude; so many bits more.
MPMATH_HELPERS: Mapping[str, str] = {
    "fn_relu": "def fn_relu(x):\n    return ctx.zero if x < 0 else x\n",
    "fn_step": (
        "def fn_step(x):\n"
        "    return ctx.one if x > 0 else (ctx.zero if x < 0 else ctx.one / 2 + x)\n"
    ),
    "fn_sigmoid": "def fn_sigmoid(x):\n    return 1 / (1 + ctx.exp(-x))\n",
    "fn_softplus": (
        "def fn_softplus(x):\n    return (ctx.zero if x < 0 else x) + ctx.log1p(ctx.exp(-abs(x)))\n"
    ),
    "fn_log_cosh": "def fn_log_cosh(x):\n    return ctx.log1p(2 * ctx.sinh(x / 2) ** 2)\n",
    "fn_spare_bits": (
        "def fn_spare_bits(x):\n    return max(0, 2 * int(ctx.mag(x))) if x != 0 else 0\n"
    ),
    "fn_erfcx": """def fn_erfcx(x):
    with ctx.extraprec(fn_spare_bits(x)):
        return ctx.exp(x * x) * ctx.erfc(x)
""",
    "fn_normal_cdf": """def fn_normal_cdf(x):
    with ctx.extraprec(fn_spare_bits(x)):
        return ctx.erfc(-x / ctx.sqrt(2)) / 2
""",
    "fn_log_normal_cdf": """def fn_log_normal_cdf(x):
    with ctx.extraprec(fn_spare_bits(x)):
        tail = ctx.erfc(abs(x) / ctx.sqrt(2)) / 2
        return ctx.log1p(-tail) if x > 0 else ctx.log(tail)
""",
    "fn_erf_difference": """def fn_erf_difference(a, b):
    if a == b:
        return ctx.zero
    spare = fn_spare_bits(a) + fn_spare_bits(b) + max(0, -int(ctx.mag(a - b)))
    with ctx.extraprec(spare):
        if (a > 0) != (b > 0):
            return ctx.erf(a) - ctx.erf(b)
        size = abs(ctx.erfc(abs(b)) - ctx.erfc(abs(a)))
        return size if a > b else -size
""",
    "fn_owen_t_inner": """def fn_owen_t_inner(h, a):
    # with y = h**2 (1 + a**2)/2 and x = a**2/(1 + a**2) it is exp(-y)/(2 pi) a/(1 + a**2) times the
    # sum over n of (2n)!!/(2n + 1)!! x**n (1 + y + ... + y**n/n!), here in integers over 2**bits
    square = a * a
    y, ratio = h * h * (1 + square) / 2, square / (1 + square)
    if y < 1000:
        # the sum is at least exp(ratio y), while errors of x**n meet factors of up to exp(y)
        precision = ctx.prec
        bits = precision + 30 + int(1.45 * y * (1 - ratio))
        x, step, end = int(ctx.ldexp(ratio, bits)), int(ctx.ldexp(y, bits)), int(y) + 1
        coefficient = power = partial = 1 << bits
        total, n, term = 0, 0, 1
        # until the terms are small and fall at least as fast as (3/4)**n
        while term << precision + 10 >= total or 4 * x * (n + end) >= 3 * n << bits:
            term = coefficient * partial >> bits
            total += term
            n += 1
            power = power * step // n >> bits
            partial += power
            coefficient = (coefficient * x >> bits) * 2 * n // (2 * n + 1)
        total = ctx.ldexp(ctx.mpf(total), -bits)
        return ctx.exp(-y) * a / (1 + square) * total / (2 * ctx.pi)
    # beyond `end` the factor exp(-(h*x)**2/2) is below the precision
    end = min(a, ctx.sqrt(2 * (ctx.prec + 10) * ctx.ln2) / h) if h > 0 else a
    panels = 1 + int(h * end / 2)
    weight = lambda x: ctx.exp(-((h * x) ** 2) / 2) / (1 + x * x)
    edges = [end * j / panels for j in range(panels + 1)]
    total = ctx.quad(weight, edges, method="gauss-legendre")
    return ctx.exp(-h * h / 2) * total / (2 * ctx.pi)
""",
    "fn_owen_t": """def fn_owen_t(h, a):
    h, slope = abs(h), abs(a)
    if slope <= 1:
        value = fn_owen_t_inner(h, slope)
    else:
        both = ctx.ncdf(h) * ctx.ncdf(-slope * h) + ctx.ncdf(-h) * ctx.ncdf(slope * h)
        value = both / 2
        # else below the precision: `both` falls as exp(-h**2/2), this as exp(-(slope*h)**2/2)
        if (slope * slope - 1) * h * h < 1.4 * (ctx.prec + 30) + 4 * ctx.ln(2 + h):
            value -= fn_owen_t_inner(slope * h, 1 / slope)
    return value if a > 0 else -value
""",
}
