r"""Gaussian expectations of polynomials times steps and error functions.

For jointly Gaussian variables x and affine functions u_a of them,
:math:`\mathbb{E}[P(x) \prod_a g_a(u_a)]` with g_a the unit step or erf. An error function is the
sign of its argument blurred by a Gaussian of variance 1/2, :math:`\operatorname{erf}(u) =
\mathbb{E}_n \operatorname{sign}(u + n)`, so both are jumps. Stein's lemma

.. math:: \mathbb{E}[x_i R] = m_i \mathbb{E}[R] + \sum_j \Sigma_{ij}\, \mathbb{E}[\partial_j R]

removes the polynomial; the derivative of a jump is a point mass: the density at u_a = 0 times an
expectation under the law conditional on u_a = 0, with one jump less. Nothing is divided by
:math:`1 - \rho^2`, as in derivatives of the closed form for P = 1, so that sums such as the
arc-cosine kernels come out short and keep their values at perfect correlation. What remains are
orthant probabilities: arcsines where the means vanish (Sheppard 1899; up to three jumps), else
:math:`\Phi_2` (two jumps).

The law is handed over as the mean and covariance of the vector (x, u), jumps last, blur included.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import sympy as sp
from sympy.polys.rings import PolyElement, ring

from ..expressions.bivariate_normal import BivariateNormalCDF, normal_cdf
from ..expressions.factors import factored
from ..expressions.functions import HALF, OwenT

Polynomial = Mapping[tuple[int, ...], sp.Expr]
"""A polynomial in the variables: coefficients by exponents."""
Vector = tuple[sp.Expr, ...]
Matrix = tuple[Vector, ...]

_MOST_ARCSINES = 3
# Operations; longer sums gain nothing from being factored, and it takes long.
_LONGEST_FACTORED = 150


def jump_moment(
    polynomial: Polynomial, mean: Vector, covariance: Matrix, steps: tuple[bool, ...]
) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}[P(x) \prod_a g_a(u_a)]`, or None where no rule applies.

    Parameters
    ----------
    polynomial : mapping
        P, exponents of the n variables to coefficients.
    mean, covariance
        Of the n variables followed by the arguments of the jumps. Means may be complex if there is
        at most one jump and its mean is purely imaginary.
    steps : tuple of bool
        For each jump whether it is the step H(u); else it is the sign of u. The sign with variance
        1/2 added is erf.

    Returns
    -------
    Expr or None
        None for more than two jumps (three, with zero means), and for two steps of which SymPy
        cannot tell which comes first.

    Examples
    --------
    The arc-cosine kernel of degree 1, E[x H(x) y H(y)]:

    >>> r = sp.Symbol("rho", real=True)
    >>> k = ((1, r, 1, r), (r, 1, r, 1), (1, r, 1, r), (r, 1, r, 1))
    >>> k = tuple(tuple(map(sp.sympify, row)) for row in k)
    >>> jump_moment({(1, 1): sp.S.One}, (sp.S.Zero,) * 4, k, (True, True))
    rho*asin(rho)/(2*pi) + rho/4 + sqrt(1 - rho**2)/(2*pi)
    """
    n = len(mean) - len(steps)
    for a, b in itertools.combinations(range(len(steps)), 2):
        if steps[a] and steps[b] and _is_degenerate(covariance, n + a, n + b):
            return _one_of_two_steps(polynomial, mean, covariance, steps, a, b)
    constant, remainders = _without_polynomial(polynomial, mean, covariance, steps)
    if not steps:
        return constant
    total = []
    if constant != 0:
        probability = _orthant(mean[n:], tuple(row[n:] for row in covariance[n:]), steps)
        if probability is None:
            return None
        total += [constant * part for part in sp.Add.make_args(probability)]
    for a, remainder in enumerate(remainders):
        if not remainder:
            continue
        inner = jump_moment(
            remainder, *without(n + a, *condition(mean, covariance, n + a)), _but(a, steps)
        )
        if inner is None:
            return None
        height = 1 if steps[a] else 2
        total.append(height * density_at_zero(mean[n + a], covariance[n + a][n + a]) * inner)
    return collected(total)


def density_at_zero(mean: sp.Expr, variance: sp.Expr) -> sp.Expr:
    """Density of a Gaussian variable at 0."""
    exponent = combined(mean**2 / (2 * variance))
    return sp.exp(-exponent) / (sp.sqrt(2 * sp.pi) * root(variance))


def condition(mean: Vector, covariance: Matrix, a: int) -> tuple[Vector, Matrix]:
    """Law conditional on component `a` being 0; that component stays, with mean and variance 0."""
    slopes = [row[a] / covariance[a][a] for row in covariance]
    shifted = tuple(combined(m - s * mean[a]) for m, s in zip(mean, slopes, strict=True))
    upper = {
        (i, j): combined(covariance[i][j] - slopes[i] * covariance[j][a])
        for i in range(len(mean))
        for j in range(i, len(mean))
    }
    rows = range(len(mean))
    return shifted, tuple(tuple(upper[min(i, j), max(i, j)] for j in rows) for i in rows)


def root(x: sp.Expr) -> sp.Expr:
    """Square root of a positive fraction, as roots of integer sums: sqrt(2a+1)/sqrt(2), say."""
    parts = []
    for part in _fraction(sp.together(x)):
        content, primitive = part.as_content_primitive()
        parts.append(sp.sqrt(content) * sp.sqrt(primitive))
    return parts[0] / parts[1]


def combined(x: sp.Expr) -> sp.Expr:
    """Write as one fraction, with cancellation."""
    if x.is_Atom or x.is_number:
        return x
    numerator, denominator = _fraction(sp.cancel(x))
    return numerator / denominator


def _fraction(x: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Numerator and denominator, the latter positive where real parameters are 0 and others 1.

    SymPy's choice is the sign of the leading coefficient, but 3 - rho**2 reads better.
    """
    numerator, denominator = sp.fraction(x)
    if not denominator.is_Add:
        return numerator, denominator
    sample = {s: sp.S.One if s.is_positive else sp.S.Zero for s in denominator.free_symbols}
    if denominator.xreplace(sample).is_negative:
        return sp.expand(-numerator), sp.expand(-denominator)
    return numerator, denominator


def collected(terms: Sequence[sp.Expr]) -> sp.Expr:
    """Sum terms; those that differ by a rational function share one fraction, factored."""
    groups: dict[sp.Expr, list[sp.Expr]] = {}
    for term in terms:
        for part in sp.Add.make_args(term):
            if any(f.is_Add and not f.has(sp.Function, sp.exp) for f in sp.Mul.make_args(part)):
                part = sp.factor_terms(part, radical=True)
            rational: list[sp.Expr] = []
            rest: list[sp.Expr] = []
            for factor in sp.Mul.make_args(part):
                (rational if _is_rational(factor) else rest).append(factor)
            groups.setdefault(sp.Mul(*rest), []).append(sp.Mul(*rational))
    return sp.Add(*(_one_fraction(rest, fractions) for rest, fractions in groups.items()))


def _one_fraction(rest: sp.Expr, fractions: list[sp.Expr]) -> sp.Expr:
    total = sp.Add(*fractions)
    roots = [f for f in sp.Mul.make_args(rest) if f.is_Pow and f.exp == -HALF and f.base.is_Add]
    if total.count_ops() > _LONGEST_FACTORED or (len(fractions) == 1 and not roots):
        return rest * total
    numerator, denominator = sp.fraction(sp.cancel(total))
    changed = len(fractions) > 1
    # A root below the fraction may go into it: (1 - x**2)/sqrt(1 - x**2).
    for factor in roots:
        if not _is_rational(factor.base):
            continue
        quotient, remainder = sp.div(numerator, factor.base)
        if remainder == 0:
            numerator, rest, changed = quotient, rest * factor.base, True
    return rest * factored(numerator) / factored(denominator) if changed else rest * total


def _is_rational(factor: sp.Expr) -> bool:
    """Whether an expression is made of rational numbers and symbols by field operations."""
    if factor.is_Atom:
        return bool(factor.is_Rational or factor.is_Symbol)
    if factor.is_Pow:
        return bool(factor.exp.is_Integer and _is_rational(factor.base))
    return (factor.is_Add or factor.is_Mul) and all(map(_is_rational, factor.args))


def _without_polynomial(
    polynomial: Polynomial, mean: Vector, covariance: Matrix, steps: Sequence[bool]
) -> tuple[sp.Expr, list[dict[tuple[int, ...], sp.Expr]]]:
    """Return c and polynomials R_a with E[P Π g] = c E[Π g] + Σ_a E[R_a δ(u_a) Π_{b≠a} g_b]."""
    n = len(mean) - len(steps)
    width = len(mean)
    entries = [*mean[:n], *(covariance[i][j] for i in range(n) for j in range(width))]
    exact, values = _in_a_ring([*entries, *polynomial.values()])
    slopes = [exact[n + width * i : n + width * (i + 1)] for i in range(n)]
    pending = dict(zip(polynomial, exact[n + n * width :], strict=True))
    zero = exact[0] * 0 if exact else sp.S.Zero
    constant = zero
    remainders: list[dict[tuple[int, ...], PolyElement]] = [{} for _ in steps]
    while pending:
        exponents = max(pending, key=sum)
        coefficient = pending.pop(exponents)
        if not any(exponents):
            constant = coefficient
            continue
        i = next(k for k, power in enumerate(exponents) if power)
        lower = _lowered(exponents, i)
        pending[lower] = pending.get(lower, zero) + coefficient * exact[i]
        for j, power in enumerate(lower):
            if power:
                twice = _lowered(lower, j)
                more = coefficient * slopes[i][j] * power
                pending[twice] = pending.get(twice, zero) + more
        for a, result in enumerate(remainders):
            result[lower] = result.get(lower, zero) + coefficient * slopes[i][n + a]

    def back(element: PolyElement) -> sp.Expr:
        return element.as_expr(*values)

    exprs = [{e: back(c) for e, c in result.items() if c} for result in remainders]
    return (back(constant) if constant else sp.S.Zero), exprs


def _in_a_ring(entries: Iterable[sp.Expr]) -> tuple[list[PolyElement], list[sp.Expr]]:
    """Elements of QQ[...] for the entries, and what its generators stand for."""
    entries = list(entries)
    values = list(dict.fromkeys(x for x in entries if not x.is_Rational)) or [sp.S.One]
    over, *generators = ring([f"g{k}" for k in range(len(values))], sp.QQ)
    known = dict(zip(values, generators, strict=True))
    exact = [over(sp.QQ(x.p, x.q)) if x.is_Rational else known[x] for x in entries]
    return exact, values


def _lowered(exponents: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*exponents[:i], exponents[i] - 1, *exponents[i + 1 :])


def _but(a: int, items: Sequence[bool]) -> tuple[bool, ...]:
    return (*items[:a], *items[a + 1 :])


def without(a: int, mean: Vector, covariance: Matrix) -> tuple[Vector, Matrix]:
    """Law of all components but `a`."""
    remaining = [i for i in range(len(mean)) if i != a]
    return (
        tuple(mean[i] for i in remaining),
        tuple(tuple(covariance[i][j] for j in remaining) for i in remaining),
    )


def _orthant(mean: Vector, covariance: Matrix, steps: tuple[bool, ...]) -> sp.Expr | None:
    """E[Π g_a(u_a)] without a polynomial."""
    if all(m == 0 for m in mean):
        return _by_arcsines(covariance, steps)
    if len(steps) == 1:
        level = mean[0] / root(covariance[0][0])
        if level.has(sp.I):
            sign = sp.I * sp.erfi(level / (sp.I * sp.sqrt(2)))
            return (1 + sign) / 2 if steps[0] else sign
        return normal_cdf(level) if steps[0] else sp.erf(level / sp.sqrt(2))
    if len(steps) > 2:
        return None
    p, q = mean
    h, k = (mean[a] / root(covariance[a][a]) for a in (0, 1))
    by_owen = _excess(p, q, covariance)
    if by_owen is not None:
        excess, same_side = by_owen
        if not any(steps):
            return (1 if same_side else -1) - 4 * excess
        both = (normal_cdf(h) + normal_cdf(k)) / 2 - excess - (0 if same_side else HALF)
    else:
        both = BivariateNormalCDF(h, k, _correlation(covariance, 0, 1))
    if all(steps):
        return both
    if any(steps):
        return 2 * both - normal_cdf(h if steps[0] else k)
    return 4 * both - 2 * normal_cdf(h) - 2 * normal_cdf(k) + 1


def _excess(p: sp.Expr, q: sp.Expr, covariance: Matrix) -> tuple[sp.Expr, bool] | None:
    """Owen's T's of two jumps with means in a ratio of known sign: their sum, and that sign.

    Only where the correlation is certainly not ±1: there T has an infinite slope.
    """
    (first, between), (_, second) = covariance
    determinant = sp.expand(first * second - between**2)
    if not determinant.is_positive or not (p.is_extended_real and q.is_extended_real):
        return None
    if p == 0 or q == 0:
        # T(0, a) is an arctangent: with the mean that is 0 on the side of the other one.
        mean, variance = (q, second) if p == 0 else (p, first)
        slope = between / root(determinant)
        return HALF * HALF - OwenT(mean / root(variance), slope), True
    ratio = sp.cancel(q / p)
    if not (ratio.is_positive or ratio.is_negative):
        return None
    spread = root(determinant)
    total = OwenT(p / root(first), combined(first * ratio - between) / spread)
    total += OwenT(q / root(second), combined(second / ratio - between) / spread)
    return total, bool(ratio.is_positive)


def _by_arcsines(covariance: Matrix, steps: tuple[bool, ...]) -> sp.Expr | None:
    """Write steps as (1 + sign)/2; products of an odd number of centred signs average to 0."""
    signs = [a for a, is_step in enumerate(steps) if not is_step]
    optional = [a for a, is_step in enumerate(steps) if is_step]
    total = []
    for size in range(len(optional) + 1):
        for chosen in itertools.combinations(optional, size):
            factors = [*signs, *chosen]
            if len(factors) > _MOST_ARCSINES:
                return None
            if not factors:
                total.append(sp.S.One)
            elif len(factors) == 2:
                total.append(2 * sp.asin(_correlation(covariance, *factors)) / sp.pi)
    return sp.Add(*(term / 2 ** len(optional) for term in total))


def _correlation(covariance: Matrix, a: int, b: int) -> sp.Expr:
    between = covariance[a][b]
    if between == 0:
        return sp.S.Zero
    value = between / (root(covariance[a][a]) * root(covariance[b][b]))
    return combined(value) if _is_rational(value) else sp.factor_terms(value, radical=True)


def _is_degenerate(covariance: Matrix, a: int, b: int) -> bool:
    determinant = covariance[a][a] * covariance[b][b] - covariance[a][b] ** 2
    return bool(determinant == 0 or sp.expand(determinant) == 0)


def _one_of_two_steps(
    polynomial: Polynomial,
    mean: Vector,
    covariance: Matrix,
    steps: tuple[bool, ...],
    a: int,
    b: int,
) -> sp.Expr | None:
    """Steps of u and of v = λu + μ: one of them, both less 1, or 0, by the signs of λ and μ."""
    n = len(mean) - len(steps)
    between = covariance[n + a][n + b]
    offset = combined(mean[n + b] - between * mean[n + a] / covariance[n + a][n + a])

    def less(*jumps: int) -> sp.Expr | None:
        law, remaining = (mean, covariance), steps
        for jump in sorted(jumps, reverse=True):
            law, remaining = without(n + jump, *law), _but(jump, remaining)
        return jump_moment(polynomial, *law, remaining)

    if between.is_positive:
        if offset.is_nonnegative:
            return less(b)
        if offset.is_nonpositive:
            return less(a)
    elif between.is_negative:
        if offset.is_nonpositive:
            return sp.S.Zero
        if offset.is_nonnegative:
            one, other, neither = less(a), less(b), less(a, b)
            if one is None or other is None or neither is None:
                return None
            return one + other - neither
    return None
