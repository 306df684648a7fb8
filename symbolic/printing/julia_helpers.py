"""Helpers in Julia, with nothing but Base and its libm; see :mod:`.scalar_helpers` for sources."""

from __future__ import annotations

from collections.abc import Mapping

from .scalar_helpers import ERFCX_FAR, ERFCX_MIDDLE, LEGENDRE_NODES, LEGENDRE_WEIGHTS, listed

JULIA_HELPERS: Mapping[str, str] = {
    "fn_erf": "fn_erf(x) = ccall((:erf, Base.Math.libm), Float64, (Float64,), x)\n",
    "fn_erfc": "fn_erfc(x) = ccall((:erfc, Base.Math.libm), Float64, (Float64,), x)\n",
    "fn_relu": "fn_relu(x) = x < 0.0 ? 0.0 : x\n",
    "fn_step": "fn_step(x) = x > 0.0 ? 1.0 : (x < 0.0 ? 0.0 : 0.5 + x)\n",
    "fn_sigmoid": """function fn_sigmoid(x)
    # exp of a non-positive number on both sides: no overflow
    e = exp(-abs(x))
    return (x < 0.0 ? e : 1.0) / (1.0 + e)
end
""",
    "fn_softplus": "fn_softplus(x) = (x < 0.0 ? 0.0 : x) + log1p(exp(-abs(x)))\n",
    "fn_sech": """function fn_sech(x)
    # cosh overflows from 711 on
    e = exp(-abs(x))
    return 2.0 * e / (1.0 + e * e)
end
""",
    "fn_log_cosh": """function fn_log_cosh(x)
    a = abs(x)
    # cosh x = 1 + 2 sinh(x/2)^2; beyond 20 it is exp(|x|)/2
    if a > 20.0
        return a - 0.6931471805599453
    end
    s = sinh(0.5 * a)
    return log1p(2.0 * s * s)
end
""",
    "fn_exp_square": """function fn_exp_square(s, x)
    # exp(s*x*x) for s = 1, -1/2, -1
    a = abs(x)
    if !(a < 40.0)
        return s > 0.0 ? Inf : exp(-20.0 * a)
    end
    z = floor(a * 65536.0) / 65536.0
    return exp(s * z * z) * exp(s * (a - z) * (a + z))
end
""",
    "fn_erfcx": f"""function fn_erfcx(x)
    a = abs(x)
    if a < 0.46875
        return exp(x * x) * fn_erfc(x)
    end
    if x < -26.62873571375148
        return Inf
    end
    if a <= 4.0
        value = {ERFCX_MIDDLE}
    else
        y = 1.0 / a / a
        value = {ERFCX_FAR}
    end
    return x < 0.0 ? 2.0 * fn_exp_square(1.0, a) - value : value
end
""",
    "fn_normal_cdf": """function fn_normal_cdf(x)
    tail = 0.5 * fn_exp_square(-0.5, x) * fn_erfcx(abs(x) * 0.7071067811865476)
    return x > 0.0 ? 1.0 - tail : tail
end
""",
    "fn_log_normal_cdf": """function fn_log_normal_cdf(x)
    # far out the square is all there is, and erfcx may be zero
    if x < -1e10
        return -0.5 * x * x
    end
    if x < 0.0
        return log(0.5 * fn_erfcx(-x * 0.7071067811865476)) - 0.5 * x * x
    end
    return log1p(-0.5 * fn_exp_square(-0.5, x) * fn_erfcx(x * 0.7071067811865476))
end
""",
    "fn_erf_difference": f"""function fn_erf_difference(a, b)
    if a == b
        return 0.0
    end
    if (a > 0.0) != (b > 0.0)
        return fn_erf(a) - fn_erf(b)
    end
    sign = a > b ? 1.0 : -1.0
    near = min(abs(a), abs(b))
    width = abs(a - b)
    if width * (near + width) > 1.0
        return sign * (fn_erfc(near) - fn_erfc(near + width))
    end
    # exp(-near^2) times the integral of exp(-s^2 - 2*near*s) over [0, width]
    total = 0.0
    for (x, w) in zip(({listed(LEGENDRE_NODES)}), ({listed(LEGENDRE_WEIGHTS)}))
        s = 0.5 * width * (1.0 - x)
        t = 0.5 * width * (1.0 + x)
        total += w * (exp(-s * (s + 2.0 * near)) + exp(-t * (t + 2.0 * near)))
    end
    return sign * 0.5641895835477563 * fn_exp_square(-1.0, near) * width * total
end
""",
    "fn_owen_t_inner": f"""function fn_owen_t_inner(h, a)
    # h >= 0, 0 <= a <= 1; beyond 9/h the integrand is zero to all digits
    if h > 40.0
        return 0.0
    end
    stop = a * h <= 9.0 ? a : 9.0 / h
    panels = 1 + floor(Int, 0.5 * h * stop)
    half = 0.5 * stop / panels
    total = 0.0
    for k in 1:panels
        middle = (2 * k - 1) * half
        for (x, w) in zip(({listed(LEGENDRE_NODES)}), ({listed(LEGENDRE_WEIGHTS)}))
            s = middle - half * x
            t = middle + half * x
            total += w * exp(-0.5 * h * s * h * s) / (1.0 + s * s)
            total += w * exp(-0.5 * h * t * h * t) / (1.0 + t * t)
        end
    end
    return 0.15915494309189535 * fn_exp_square(-0.5, h) * half * total
end
""",
    "fn_owen_t": """function fn_owen_t(h, a)
    if isnan(h) || isnan(a)
        return h + a
    end
    # beyond these the function is at its limits
    h = min(abs(h), 1000.0)
    slope = min(abs(a), 1e300)
    if slope <= 1.0
        value = fn_owen_t_inner(h, slope)
    else
        p = fn_exp_square(-0.5, h) * fn_erfcx(h * 0.7071067811865476)
        q = fn_exp_square(-0.5, slope * h) * fn_erfcx(slope * h * 0.7071067811865476)
        value = 0.25 * (p + q * (1.0 - p)) - fn_owen_t_inner(slope * h, 1.0 / slope)
    end
    return a > 0.0 ? value : -value
end
""",
}
