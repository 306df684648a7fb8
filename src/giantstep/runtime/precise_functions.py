"""Functions that mpmath lacks, accurate at whatever its precision is.

Here they are on the context that SymPy computes with; generated files carry copies, word for word,
next to a local context of that name. Squares of the argument inside exp and erfc lose twice its
binary magnitude, so these take so many bits more.
"""

from mpmath import mp as ctx


def fn_relu(x):
    return ctx.zero if x < 0 else x


def fn_step(x):
    return ctx.one if x > 0 else (ctx.zero if x < 0 else ctx.one / 2 + x)


def fn_sigmoid(x):
    return 1 / (1 + ctx.exp(-x))


def fn_softplus(x):
    return (ctx.zero if x < 0 else x) + ctx.log1p(ctx.exp(-abs(x)))


def fn_log_cosh(x):
    return ctx.log1p(2 * ctx.sinh(x / 2) ** 2)


def fn_spare_bits(x):
    return max(0, 2 * int(ctx.mag(x))) if x != 0 else 0


def fn_erfcx(x):
    with ctx.extraprec(fn_spare_bits(x)):
        return ctx.exp(x * x) * ctx.erfc(x)


def fn_normal_cdf(x):
    with ctx.extraprec(fn_spare_bits(x)):
        return ctx.erfc(-x / ctx.sqrt(2)) / 2


def fn_log_normal_cdf(x):
    with ctx.extraprec(fn_spare_bits(x)):
        tail = ctx.erfc(abs(x) / ctx.sqrt(2)) / 2
        return ctx.log1p(-tail) if x > 0 else ctx.log(tail)


def fn_erf_difference(a, b):
    if a == b:
        return ctx.zero
    spare = fn_spare_bits(a) + fn_spare_bits(b) + max(0, -int(ctx.mag(a - b)))
    with ctx.extraprec(spare):
        if (a > 0) != (b > 0):
            return ctx.erf(a) - ctx.erf(b)
        size = abs(ctx.erfc(abs(b)) - ctx.erfc(abs(a)))
        return size if a > b else -size


def fn_owen_t_inner(h, a):
    precision, square = ctx.prec, a * a
    if h * h > 1.4 * precision + 40:
        # exp(-h**2/2) a/(2 pi) times the sum over n of (-1)**n J_n, the mean of x**(2 n)
        # exp(-(h x)**2/2) over [0, a], in integers: J_n bounds what is left out before it, and is
        # below the precision for some n < h**2/2
        scale = ctx.sqrt(ctx.pi / 2) * ctx.erf(a * h / ctx.sqrt(2)) / (a * h) if a > 0 else ctx.one
        bits = precision + 30 - int(ctx.mag(scale))
        term, step = int(ctx.ldexp(scale, bits)), int(ctx.ldexp(h * h, bits))
        edge, x = int(ctx.ldexp(ctx.exp(-((a * h) ** 2) / 2), bits)), int(ctx.ldexp(square, bits))
        total, n = 0, 0
        while term << precision + 10 > total:
            total += -term if n % 2 else term
            n += 1
            term = ((2 * n - 1) * term - edge << bits) // step
            edge = edge * x >> bits
        with ctx.extraprec(fn_spare_bits(h)):
            largest = ctx.exp(-h * h / 2)
        return largest * a * ctx.ldexp(ctx.mpf(total), -bits) / (2 * ctx.pi)
    # with y = h**2 (1 + a**2)/2 and x = a**2/(1 + a**2) it is exp(-y)/(2 pi) a/(1 + a**2) times the
    # sum over n of (2n)!!/(2n + 1)!! x**n (1 + y + ... + y**n/n!), here in integers over 2**bits
    y, ratio = h * h * (1 + square) / 2, square / (1 + square)
    # the sum is at least exp(ratio y), while errors of x**n meet factors of up to exp(y)
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


def fn_owen_t(h, a):
    # in integers, which only numbers of the context turn into
    h, slope = ctx.mpf(abs(h)), ctx.mpf(abs(a))
    if slope <= 1:
        value = fn_owen_t_inner(h, slope)
    else:
        both = ctx.ncdf(h) * ctx.ncdf(-slope * h) + ctx.ncdf(-h) * ctx.ncdf(slope * h)
        value = both / 2
        # else below the precision: `both` falls as exp(-h**2/2), this as exp(-(slope*h)**2/2)
        if (slope * slope - 1) * h * h < 1.4 * (ctx.prec + 30) + 4 * ctx.ln(2 + h):
            value -= fn_owen_t_inner(slope * h, 1 / slope)
    return value if a > 0 else -value
