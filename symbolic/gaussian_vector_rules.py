r"""Closed forms of expectations over jointly Gaussian variables, by rules.

An integrand is multiplied out into terms: a polynomial, the exponential of a quadratic form, and
sines, cosines, error functions, steps and point masses of affine combinations. Variables that
neither the law nor a factor couples are averaged separately. Then

- the exponential is absorbed by a change of measure: with :math:`e^{k + l^\top x + x^\top G x}` the
  covariance becomes :math:`(\Sigma^{-1} - 2G)^{-1}`, written without :math:`\Sigma^{-1}`, so that Σ
  may be singular; eigenvalues of :math:`1 - 2\Sigma G` have to be positive;
- a point mass conditions the law on its argument being 0;
- products of sines become one sine, whose exponential :math:`e^{iu}` shifts the means by
  :math:`i \operatorname{Cov}(x, u)`;
- steps and error functions times polynomials are left to :mod:`.gaussian_step_moments`.

Source: Price, *A useful theorem for nonlinear devices having Gaussian inputs*, IRE Trans. Inform.
Theory 4 (1958); the arcsine law of erf is Williams, NIPS 9 (1996); the arc-cosine kernels are Cho
and Saul, NIPS 22 (2009).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from ..errors import AssumptionError
from .constant_enclosures import enclosed_sign
from .functions import HALF
from .gaussian_kernels import reduce_trigonometric
from .gaussian_step_moments import (
    Matrix,
    Polynomial,
    Vector,
    collected,
    combined,
    condition,
    density_at_zero,
    jump_moment,
    root,
    without,
)
from .gaussian_terms import JUMPS, Affine, Quadratic, Term, components, read_terms, restricted

_BITS = 200


def joint_closed_form(
    integrand: sp.Expr, variables: Sequence[sp.Symbol], mean: Vector, covariance: Matrix
) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}f(x)`, x jointly Gaussian, or None where no rule applies.

    Parameters
    ----------
    integrand : Expr
        Sums and products of polynomials, ``exp`` of a quadratic form, and of functions of affine
        combinations: any number of ``sin``, ``cos`` and ``DiracDelta``; two (with zero means
        three) out of ``erf``, ``erfc``, ``Heaviside``, ``sign``, ``Abs``, ``relu`` for each set of
        coupled variables; one of these, of mean zero, together with sines.
    variables : sequence of Symbol
    mean : tuple of Expr
    covariance : tuple of tuples of Expr

    Raises
    ------
    AssumptionError
        If the expectation of an exponential diverges, or it cannot be told from the assumptions on
        the parameters that it does not.
    """
    terms = read_terms(integrand, variables, mean, covariance)
    if terms is None:
        return None
    total = []
    for term in terms:
        value = _by_components(term)
        if value is None:
            return None
        total.append(value)
    return collected(total)


def _by_components(term: Term) -> sp.Expr | None:
    """Average sets of variables that nothing couples one by one."""
    parts = components(term)
    if len(parts) <= 1:
        return _coupled(term)
    known: dict[tuple[int, tuple[int, ...]], sp.Expr | None] = {}
    total = []
    for exponents, coefficient in term.polynomial.items():
        product = coefficient
        for k, part in enumerate(parts):
            powers = tuple(exponents[i] for i in part)
            if (k, powers) not in known:
                known[k, powers] = _coupled(restricted(term, part, powers, first=k == 0))
            value = known[k, powers]
            if value is None:
                return None
            product *= value
        total.append(product)
    return sp.Add(*total)


def _coupled(term: Term) -> sp.Expr | None:
    for f in term.functions:
        # A step that may not depend on the variables at all would divide by a slope that may be 0.
        if f.function in (sp.Heaviside, sp.DiracDelta) and not any(a.is_nonzero for a in f.slopes):
            return None
    factor, mean, covariance = change_of_measure(term.exponent, term.mean, term.covariance)
    n = len(mean)
    sines = [f for f in term.functions if f.function in (sp.sin, sp.cos)]
    masses = [f for f in term.functions if f.function is sp.DiracDelta]
    jumps = [f for f in term.functions if f.function in JUMPS]
    mean, covariance = _extended([*masses, *jumps, *sines], mean, covariance)
    for _ in masses:
        variance = covariance[n][n]
        if variance.is_zero:
            return None
        factor *= density_at_zero(mean[n], variance)
        mean, covariance = without(n, *condition(mean, covariance, n))
    for a in range(len(jumps) - 1, -1, -1):
        if jumps[a].function is sp.Heaviside and covariance[n + a][n + a].is_zero:
            factor *= sp.Heaviside(mean[n + a], HALF)
            mean, covariance = without(n + a, mean, covariance)
            del jumps[a]
    steps = tuple(f.function is sp.Heaviside for f in jumps)
    covariance = tuple(
        tuple(
            x + HALF if i == j and n <= i < n + len(steps) and not steps[i - n] else x
            for j, x in enumerate(row)
        )
        for i, row in enumerate(covariance)
    )
    if sines:
        kinds = [f.function for f in sines]
        value = _with_sines(term.polynomial, mean, covariance, steps, kinds)
    else:
        value = jump_moment(term.polynomial, mean, covariance, steps)
    return None if value is None else factor * value


def change_of_measure(
    exponent: Quadratic, mean: Vector, covariance: Matrix
) -> tuple[sp.Expr, Vector, Matrix]:
    r"""Return c, m', Σ' with :math:`\mathbb{E}[e^{q(x)} f(x)] = c\, \mathbb{E}'f(x)`.

    Raises
    ------
    AssumptionError
        If the expectation of the exponential is infinite or not known to be finite.
    """
    support = [i for i, row in enumerate(exponent.matrix) if any(row)]
    m, sigma = sp.Matrix(mean), sp.Matrix(covariance)
    linear, form = sp.Matrix(exponent.linear), sp.Matrix(exponent.matrix)
    weight: sp.Expr = sp.S.One
    level = exponent.constant + (linear.T * m)[0]
    if support:
        block = form.extract(support, support)
        contraction = sp.eye(len(support)) - 2 * sigma.extract(support, support) * block
        _require_finite(contraction, block, _bounds(sigma))
        columns = sigma.extract(list(range(len(mean))), support)
        sigma = sigma + columns * 2 * block * contraction.adjugate() * columns.T / (
            contraction.det(method="berkowitz")
        )
        sigma = sigma.applyfunc(combined)
        weight = 1 / root(contraction.det(method="berkowitz"))
        level += (m.T * form * m)[0]
        linear = linear + 2 * form * m
    if any(linear):
        # Cancelled, because the terms nearly are where the exponential is small.
        level += (linear.T * sigma * linear)[0] / 2
        m = (m + sigma * linear).applyfunc(combined)
    factor = weight * sp.exp(combined(sp.expand(level)))
    return factor, tuple(m), tuple(tuple(row) for row in sigma.tolist())


def _require_finite(
    contraction: sp.Matrix, form: sp.Matrix, bounds: Mapping[sp.Symbol, sp.Expr]
) -> None:
    """Eigenvalues of 1 - 2ΣG are real; all are positive iff their symmetric polynomials are."""
    size = contraction.rows
    if all(sp.expand(minor).is_nonnegative for minor in _principal_minors(-form)):
        return
    sums = []
    for k in range(1, size + 1):
        blocks = itertools.combinations(range(size), k)
        sums.append(
            sp.expand(sp.Add(*(contraction.extract(b, b).det() for b in map(list, blocks))))
        )
    if any(x.is_nonpositive for x in sums):
        raise AssumptionError(
            "the expectation diverges: the exponential grows as fast as the Gaussian density "
            "decays, or faster; its curvature has to stay below 1/2 in units of the variance"
        )
    unknown = [
        x
        for x in sums
        # SymPy does not always see the sign of a sum of roots.
        if not (x.is_positive or enclosed_sign(x, _BITS) > 0 or _is_positive_within(x, bounds))
    ]
    if unknown:
        names = ", ".join(sorted({str(s) for x in unknown for s in x.free_symbols}))
        raise AssumptionError(
            f"the expectation of the exponential is finite only for {unknown[0]} > 0, which does "
            f"not follow from the assumptions on {names}\n"
            "  declare signs, as in Symbol('c', positive=True) for exp(-c*u**2), or insert numbers"
        )


def _bounds(covariance: sp.Matrix) -> dict[sp.Symbol, sp.Expr]:
    """Largest absolute values of covariances that are symbols times numbers: correlations, say."""
    found: dict[sp.Symbol, sp.Expr] = {}
    for i, j in itertools.combinations(range(covariance.rows), 2):
        largest = sp.sqrt(covariance[i, i]) * sp.sqrt(covariance[j, j])
        factor, symbol = covariance[i, j].as_independent(sp.Symbol, as_Add=False)
        if symbol.is_Symbol and factor.is_number and largest.is_number:
            bound = largest / abs(factor)
            if symbol not in found or (found[symbol] - bound).is_positive:
                found[symbol] = bound
    return found


def _is_positive_within(polynomial: sp.Expr, bounds: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether a polynomial of one covariance is positive between, not at, the bounds of that."""
    symbols = polynomial.free_symbols
    if len(symbols) != 1:
        return False
    (symbol,) = symbols
    if symbol not in bounds or not polynomial.xreplace({symbol: sp.S.Zero}).is_positive:
        return False
    try:
        poly = sp.Poly(polynomial, symbol, extension=True)
        # Over algebraic numbers: the norm has the roots, and those of the conjugates.
        roots = (poly.norm() if poly.domain.is_Algebraic else poly).real_roots()
    except (BasePolynomialError, NotImplementedError):
        return False
    return all((bounds[symbol] - abs(x)).is_nonpositive for x in roots)


def _principal_minors(matrix: sp.Matrix) -> Iterable[sp.Expr]:
    for k in range(1, matrix.rows + 1):
        for block in itertools.combinations(range(matrix.rows), k):
            yield matrix.extract(list(block), list(block)).det()


def _extended(
    functions: Sequence[Affine], mean: Vector, covariance: Matrix
) -> tuple[Vector, Matrix]:
    """Law of the variables followed by the arguments of the functions."""
    n = len(mean)
    rows = [[sp.S.One if i == j else sp.S.Zero for j in range(n)] for i in range(n)]
    rows += [list(f.slopes) for f in functions]
    images = [
        [combined(sp.Add(*(s * covariance[i][j] for i, s in enumerate(row) if s != 0)))
         for j in range(n)]
        for row in rows
    ]  # fmt: skip
    between = tuple(
        tuple(
            combined(sp.Add(*(s * image[j] for j, s in enumerate(row) if s != 0))) for row in rows
        )
        for image in images
    )
    shifts = [sp.S.Zero] * n + [f.shift for f in functions]
    means = tuple(
        combined(sp.Add(shift, *(s * mean[j] for j, s in enumerate(row) if s != 0)))
        for shift, row in zip(shifts, rows, strict=True)
    )
    return means, between


def _with_sines(
    polynomial: Polynomial,
    mean: Vector,
    covariance: Matrix,
    steps: tuple[bool, ...],
    kinds: Sequence[type],
) -> sp.Expr | None:
    """Sines stand last in the law; their product is a sum of sines of sums of their arguments."""
    first = len(mean) - len(kinds)
    centred = all(m == 0 for m in mean[first:])
    flat = all(sum(exponents) == 0 for exponents in polynomial)
    if len(kinds) == 2 and centred and flat and not steps:
        (a, c), (_, b) = (row[first:] for row in covariance[first:])
        if kinds[0] is not kinds[1]:
            return sp.S.Zero
        even = sp.cosh(c) if kinds[0] is sp.cos else sp.sinh(c)
        return sp.Add(*polynomial.values()) * sp.exp(-(a + b) / 2) * even
    if steps and (len(steps) > 1 or mean[first - 1] != 0):
        return None
    if any(c.has(sp.I) for c in polynomial.values()):
        return None
    phases = sp.symbols(f"phase:{len(kinds)}", cls=sp.Dummy, real=True)
    reduced = reduce_trigonometric([k(x) for k, x in zip(kinds, phases, strict=True)])
    total = []
    for weight, kernel in reduced or ():
        if not isinstance(kernel, sp.sin | sp.cos):
            return None
        signs = [kernel.args[0].coeff(x) for x in phases]
        shift = sp.Add(*(s * m for s, m in zip(signs, mean[first:], strict=True)))
        along = [sp.Add(*(s * row[first + k] for k, s in enumerate(signs))) for row in covariance]
        variance = sp.expand(sp.Add(*(s * along[first + k] for k, s in enumerate(signs))))
        tilted = tuple(m + sp.I * c for m, c in zip(mean[:first], along, strict=False))
        inner = tuple(row[:first] for row in covariance[:first])
        value = jump_moment(polynomial, tilted, inner, steps)
        if value is None:
            return None
        value = sp.expand(value)
        real = value.xreplace({sp.I: sp.S.Zero})
        imaginary = sp.expand((value - real) / sp.I)
        even, odd = sp.cos(shift), sp.sin(shift)
        if isinstance(kernel, sp.cos):
            wave = even * real - odd * imaginary
        else:
            wave = odd * real + even * imaginary
        total.append(weight * sp.exp(-variance / 2) * wave)
    return sp.Add(*total)
