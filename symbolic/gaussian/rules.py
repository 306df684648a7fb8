r"""Closed forms of Gaussian expectations, by rules.

For one variable one rule carries all: with :math:`S_g(b, v) = \mathbb{E}\,g(b + \sqrt v z)`,
Stein's lemma gives for the probabilists' Hermite polynomials

.. math:: \mathbb{E}[\mathrm{He}_k(z)\, g(az + b)] = a^k\, \partial_b^k S_g(b, a^2),

so that a table of the smoothed functions of sin, cos, erf, the step and erf² yields every
polynomial times any of them. relu, abs and sign are polynomials times steps, products of sines sums
of sines. Over several variables an integrand is multiplied out into polynomials times the
exponential of a quadratic form and sines, error functions, steps and point masses of affine
combinations, and variables that nothing couples are averaged separately. Exponentials :math:`e^{k +
l^\top x + x^\top G x}` change the measure, to the covariance :math:`(\Sigma^{-1} - 2G)^{-1}`
written without :math:`\Sigma^{-1}` (eigenvalues of :math:`1 - 2\Sigma G` have to be positive); a
sine shifts the means by :math:`i\operatorname{Cov}(x, u)`; a point mass conditions the law; several
steps and error functions are left to :mod:`.gaussian.step_moments`.

Sources: Owen, *Tables for computing bivariate normal probabilities* (1956), for erf and erf²;
Price, IRE Trans. Inform. Theory 4 (1958); the arcsine law of erf is Williams, *Computing with
infinite networks*, NIPS 9 (1996), the arc-cosine kernels are Cho and Saul, NIPS 22 (2009).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp
from sympy.polys.polyerrors import BasePolynomialError

from ...errors import AssumptionError
from ..exact.constant_enclosures import enclosed_sign
from ..expressions.bivariate_normal import is_far_below
from ..expressions.functions import HALF, OwenT
from ..expressions.piecewise_polynomials import by_steps
from ..expressions.textbook_forms import with_arcsines
from .integrand_kernels import (
    affine_or_quadratic,
    group_by_kernel,
    multiplied_out,
    reduce_trigonometric,
    split_kernel,
)
from .power_rules import has_special_kernels, power_closed_form
from .step_moments import (
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

JUMPS = (sp.erf, sp.Heaviside)
_KNOWN = (*JUMPS, sp.sin, sp.cos, sp.DiracDelta)


@dataclass(frozen=True)
class Affine:
    """A function of an affine combination of the variables."""

    function: type
    shift: sp.Expr
    slopes: Vector


@dataclass(frozen=True)
class Quadratic:
    """Exponent k + lᵀx + xᵀGx."""

    constant: sp.Expr
    linear: Vector
    matrix: Matrix


@dataclass(frozen=True)
class Term:
    """A polynomial times an exponential and functions, over variables with a law."""

    polynomial: Polynomial
    exponent: Quadratic
    functions: tuple[Affine, ...]
    mean: Vector
    covariance: Matrix


def read_terms(
    integrand: sp.Expr, variables: Sequence[sp.Symbol], mean: Vector, covariance: Matrix
) -> list[Term] | None:
    """Return the terms of an integrand, one for each kernel; None if it holds anything else.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> law = ((sp.S.Zero, sp.S.Zero), ((sp.S.One, sp.S.Zero), (sp.S.Zero, sp.S.One)))
    >>> (term,) = read_terms(u * sp.erf(v) + 2 * u**3 * sp.erf(v), (u, v), *law)
    >>> term.polynomial, term.functions
    ({(1, 0): 1, (3, 0): 2}, (Affine(function=erf, shift=0, slopes=(0, 1)),))
    """
    integrand = by_steps(integrand, variables)
    if integrand.has(sp.Piecewise):
        return None
    pieces = multiplied_out(integrand)
    if pieces is None:
        return None
    groups: dict[sp.Expr, dict[tuple[int, ...], sp.Expr]] = {}
    for piece in pieces:
        constant, rest = piece.as_independent(*variables, as_Add=False)
        exponents, kernel = _monomial_and_kernel(rest, variables)
        result = groups.setdefault(kernel, {})
        result[exponents] = result.get(exponents, sp.S.Zero) + constant
    terms = []
    for kernel, polynomial in groups.items():
        read = _read_kernel(kernel, variables)
        if read is None:
            return None
        terms.append(Term(polynomial, *read, tuple(mean), tuple(map(tuple, covariance))))
    return terms


def quadratic_form(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> Quadratic | None:
    """Coefficients of a polynomial of degree at most 2 in the variables; None for any other."""
    n = len(variables)
    constant: sp.Expr = sp.S.Zero
    linear = [sp.S.Zero] * n
    matrix = [[sp.S.Zero] * n for _ in range(n)]
    for term in sp.Add.make_args(sp.expand(expr)):
        if term == 0:
            continue
        coefficient, rest = term.as_independent(*variables, as_Add=False)
        exponents, kernel = _monomial_and_kernel(rest, variables)
        if kernel != 1 or sum(exponents) > 2:
            return None
        used = [i for i, power in enumerate(exponents) for _ in range(power)]
        if not used:
            constant += coefficient
        elif len(used) == 1:
            linear[used[0]] += coefficient
        else:
            i, j = used
            matrix[i][j] += coefficient / 2
            matrix[j][i] += coefficient / 2
    return Quadratic(constant, tuple(linear), tuple(map(tuple, matrix)))


def _monomial_and_kernel(
    product: sp.Expr, variables: Sequence[sp.Symbol]
) -> tuple[tuple[int, ...], sp.Expr]:
    exponents, others = [0] * len(variables), []
    for factor in sp.Mul.make_args(product):
        base, power = factor.as_base_exp()
        if base in variables and power.is_Integer and power > 0:
            exponents[variables.index(base)] += int(power)
        else:
            others.append(factor)
    return tuple(exponents), sp.Mul(*others)


def _read_kernel(
    kernel: sp.Expr, variables: Sequence[sp.Symbol]
) -> tuple[Quadratic, tuple[Affine, ...]] | None:
    exponent: sp.Expr = sp.S.Zero
    functions: list[Affine] = []
    for factor in sp.Mul.make_args(kernel):
        if factor == 1:
            continue
        base, power = factor.as_base_exp()
        if base is sp.S.Exp1:
            exponent += power
            continue
        if isinstance(base, sp.exp):
            exponent += base.exp * power
            continue
        if not (isinstance(base, _KNOWN) and power.is_Integer and power > 0):
            return None
        if isinstance(base, sp.DiracDelta) and (len(base.args) > 1 or power > 1):
            return None
        affine = quadratic_form(base.args[0], variables)
        if affine is None or any(map(any, affine.matrix)):
            return None
        if not all(x.is_extended_real for x in (affine.constant, *affine.linear)):
            return None
        count = 1 if isinstance(base, sp.Heaviside) else int(power)
        functions += [Affine(type(base), affine.constant, affine.linear)] * count
    quadratic = quadratic_form(exponent, variables)
    return None if quadratic is None else (quadratic, tuple(functions))


def components(term: Term) -> list[list[int]]:
    """Sets of variables, by their places, that nothing in the law or the term couples."""
    n = len(term.mean)
    coupled: list[Iterable[int]] = [
        (i, j)
        for i, j in itertools.combinations(range(n), 2)
        if term.covariance[i][j] != 0 or term.exponent.matrix[i][j] != 0
    ]
    coupled += [[i for i, slope in enumerate(f.slopes) if slope != 0] for f in term.functions]
    return blocks(n, coupled)


def blocks(count: int, coupled: Iterable[Iterable[int]]) -> list[list[int]]:
    """Sets of 0, ..., count - 1 that the given sets do not join.

    Examples
    --------
    >>> blocks(4, [(0, 2), (2,)])
    [[0, 2], [1], [3]]
    """
    label = list(range(count))
    for indices in coupled:
        result = {label[i] for i in indices}
        label = [min(result) if x in result else x for x in label]
    return [[i for i in range(count) if label[i] == x] for x in dict.fromkeys(label)]


def restricted(term: Term, part: Sequence[int], powers: tuple[int, ...], *, first: bool) -> Term:
    """Return the part of a term that holds some of the variables, with powers of them.

    The constant of the exponent goes with the `first` part.
    """

    def pick(values: Sequence[sp.Expr]) -> Vector:
        return tuple(values[i] for i in part)

    exponent = term.exponent
    return Term(
        {powers: sp.S.One},
        Quadratic(
            exponent.constant if first else sp.S.Zero,
            pick(exponent.linear),
            tuple(pick(exponent.matrix[i]) for i in part),
        ),
        tuple(
            replace(f, slopes=pick(f.slopes))
            for f in term.functions
            if any(f.slopes[i] != 0 for i in part)
        ),
        pick(term.mean),
        tuple(pick(term.covariance[i]) for i in part),
    )


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
    return with_arcsines(collected(total))


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

    Raises AssumptionError if the expectation of the exponential is infinite or not known to be
    finite.
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
    result: dict[sp.Symbol, sp.Expr] = {}
    for i, j in itertools.combinations(range(covariance.rows), 2):
        largest = sp.sqrt(covariance[i, i]) * sp.sqrt(covariance[j, j])
        factor, symbol = covariance[i, j].as_independent(sp.Symbol, as_Add=False)
        if symbol.is_Symbol and factor.is_number and largest.is_number:
            bound = largest / abs(factor)
            if symbol not in result or (result[symbol] - bound).is_positive:
                result[symbol] = bound
    return result


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


_B = sp.Dummy("b", real=True)

_HIGHEST_POWER = 130


def closed_form(integrand: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}_z[f(z)]`, z standard normal, or None where no rule applies.

    Parameters
    ----------
    integrand : Expr
        Sums and products of: polynomials in `z`; ``exp`` of at most a quadratic; one of ``sin``,
        ``cos``, ``erf``, ``erfc``, ``Heaviside``, ``sign``, ``Abs``, ``relu``, ``DiracDelta``
        of an affine function of `z`; products of two out of these from ``erf`` to ``relu``;
        products of sines and cosines; of these and one of ``erf`` to ``relu`` that is centred at 0.
        Except for sines, slopes have to be declared real; steps need a slope that cannot be zero,
        and of two steps it must be known which comes first.
    z : Symbol
        The standard normal variable.

    Returns
    -------
    Expr or None
        Valid for all admitted values of the parameters; None also if the expectation diverges.
    """
    if not integrand.has(z):
        return integrand
    integrand = by_steps(integrand, (z,))
    if integrand.has(sp.Piecewise):
        return None
    if has_special_kernels(integrand, z):
        return power_closed_form(integrand, z)
    terms = multiplied_out(integrand)
    if terms is None:
        return None
    total = []
    # Terms that differ only in their power of z share the smoothed function and its derivatives.
    for kernel, coefficients in group_by_kernel(terms, z).items():
        value = _polynomial_times(kernel, coefficients, z)
        if value is None:
            return None
        total.append(value)
    return with_arcsines(sp.Add(*total))


def _polynomial_times(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) g(z)] for P given by its monomial coefficients."""
    if max(coefficients) > _HIGHEST_POWER:
        return None
    parts = split_kernel(kernel, z)
    if parts is None:
        return None
    exponent, others = parts
    if exponent is not None:
        return _change_of_measure(exponent, others, coefficients, z)
    if not others:
        return sp.Add(*(c * _moment(n) for n, c in coefficients.items()))
    single = reduce_trigonometric(others)
    if single is None:
        return _sines_with_jumps(others, coefficients, z)
    if len(single) > 1 or single[0][0] != 1:
        total = []
        for factor, part in single:
            value = (
                _polynomial_times(part, coefficients, z)
                if part.has(z)
                else part * sp.Add(*(c * _moment(n) for n, c in coefficients.items()))
            )
            if value is None:
                return None
            total.append(factor * value)
        return sp.Add(*total)
    kernel = single[0][1]
    if kernel.is_Mul:
        return _two_jumps(kernel.args, coefficients, z)
    return _smoothed_sum(kernel, coefficients, z)


def _change_of_measure(
    exponent: sp.Expr, others: list[sp.Expr], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) e^{q z² + l z + k} g(z)] = const * E[P(m + s z) g(m + s z)]."""
    polynomial = affine_or_quadratic(exponent, z)
    if polynomial is None:
        return None
    constant, linear, quadratic = polynomial
    contraction = 1 - 2 * quadratic
    if contraction.is_positive is not True:
        return None
    spread, shift = 1 / sp.sqrt(contraction), linear / contraction
    # Cancelled, because the two terms nearly are where the exponential is small.
    factor = spread * sp.exp(sp.cancel(constant + linear**2 / (2 * contraction)))
    inside = sp.Add(*(c * z**n for n, c in coefficients.items())) * sp.Mul(*others)
    value = closed_form(inside.xreplace({z: shift + spread * z}), z)
    return None if value is None else factor * value


def _smoothed_sum(
    kernel: sp.Expr, coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """Sum over the Hermite coefficients of P: E[He_k(z) g(az+b)] = a^k d^k/db^k S_g(b, a²)."""
    base, power = kernel.as_base_exp()
    if not isinstance(base, sp.Function) or len(base.args) not in (1, 2):
        return None
    affine = affine_or_quadratic(base.args[0], z)
    if affine is None or affine[2] != 0 or affine[1] == 0:
        return None
    b, a = affine[0], affine[1]
    if not isinstance(base, sp.sin | sp.cos) and not a.is_extended_real:
        return None  # erf(i z)**2, for one, has no expectation
    if isinstance(base, sp.Heaviside | sp.DiracDelta) and not a.is_nonzero:
        return None  # a step or a point mass that may not depend on z divides by the slope
    smoothed = _smoothed(type(base), power, a**2)
    if isinstance(base, sp.Heaviside) and is_far_below(b / sp.sqrt(a**2)):
        smoothed = sp.erfc(-_B / sp.sqrt(2 * a**2)) / 2
    if smoothed is None:
        return None
    if isinstance(base, sp.DiracDelta) and len(base.args) == 2:
        # A derivative of the point mass, as Price's theorem makes them of steps.
        count = base.args[1]
        if not count.is_Integer or count > _HIGHEST_POWER:
            return None
        smoothed = smoothed.diff((_B, count))
    total, derivative = [], smoothed
    for k, weight in enumerate(_hermite_weights(coefficients)):
        if k:
            derivative = derivative.diff(_B)
        if weight != 0:
            total.append(weight * a**k * derivative.xreplace({_B: b}))
    return sp.Add(*total)


def _sines_with_jumps(
    others: list[sp.Expr], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) sin(a z + b) g(c z)], g a jump, by the rule for several variables."""
    for factor in others:
        affine = affine_or_quadratic(factor.args[0], z) if factor.args else None
        if affine is None or affine[2] != 0 or not affine[1].is_extended_real:
            return None
        if isinstance(factor, sp.Heaviside | sp.DiracDelta) and not affine[1].is_nonzero:
            return None
    polynomial = sp.Add(*(c * z**n for n, c in coefficients.items()))
    one_variable = ((z,), (sp.S.Zero,), ((sp.S.One,),))
    return joint_closed_form(polynomial * sp.Mul(*others), *one_variable)


def _two_jumps(
    factors: tuple[sp.Expr, ...], coefficients: dict[int, sp.Expr], z: sp.Symbol
) -> sp.Expr | None:
    """E[P(z) g(a1 z + b1) h(a2 z + b2)], g and h steps or error functions."""
    if len(factors) != 2:
        return None
    slopes, shifts, blurs = [sp.S.One], [sp.S.Zero], [sp.S.Zero]
    for factor in factors:
        if not isinstance(factor, sp.erf | sp.Heaviside):
            return None
        affine = affine_or_quadratic(factor.args[0], z)
        if affine is None or affine[2] != 0 or not affine[1].is_extended_real:
            return None
        is_step = isinstance(factor, sp.Heaviside)
        if is_step and not affine[1].is_nonzero:
            return None
        shifts.append(affine[0])
        slopes.append(affine[1])
        blurs.append(sp.S.Zero if is_step else HALF)
    covariance = tuple(
        tuple(a * b + (blurs[i] if i == j else 0) for j, b in enumerate(slopes))
        for i, a in enumerate(slopes)
    )
    powers: dict[tuple[int, ...], sp.Expr] = {(n,): c for n, c in coefficients.items()}
    steps = tuple(isinstance(factor, sp.Heaviside) for factor in factors)
    return jump_moment(powers, tuple(shifts), covariance, steps)


def _smoothed(function: type, power: sp.Expr, v: sp.Expr) -> sp.Expr | None:
    """S_g(b, v) = E g(b + sqrt(v) z) for g = function**power, as an expression in _B."""
    if power == 1:
        if function is sp.sin or function is sp.cos:
            return sp.exp(-v / 2) * function(_B)
        if function is sp.erf:
            return sp.erf(_B / sp.sqrt(1 + 2 * v))
        if function is sp.Heaviside:
            return (1 + sp.erf(_B / sp.sqrt(2 * v))) / 2
        if function is sp.DiracDelta:
            return sp.exp(-(_B**2) / (2 * v)) / sp.sqrt(2 * sp.pi * v)
    if power == 2 and function is sp.erf:
        return 1 - 8 * OwenT(_B * sp.sqrt(2 / (1 + 2 * v)), 1 / sp.sqrt(1 + 4 * v))
    return None


def _hermite_weights(coefficients: dict[int, sp.Expr]) -> list[sp.Expr]:
    """Coefficients in He_k of a polynomial given by monomials: z^n = Σ n!/(2^j j! (n-2j)!) He."""
    weights: list[sp.Expr] = [sp.S.Zero] * (max(coefficients) + 1)
    for n, c in coefficients.items():
        for j in range(n // 2 + 1):
            count = sp.factorial(n) / (2**j * sp.factorial(j) * sp.factorial(n - 2 * j))
            weights[n - 2 * j] += count * c
    return weights


def _moment(n: int) -> sp.Expr:
    return sp.factorial2(n - 1) if n % 2 == 0 else sp.S.Zero
