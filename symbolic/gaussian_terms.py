"""Integrands of several Gaussian variables, read as sums of terms.

A term is a polynomial, the exponential of a quadratic form, and sines, error functions, steps and
point masses of affine combinations. Reading it, and finding the sets of variables that neither the
law nor a factor couples, is done here; :mod:`.gaussian_vector_rules` averages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from .gaussian_kernels import multiplied_out
from .gaussian_step_moments import Matrix, Polynomial, Vector

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
    if integrand.has(sp.Piecewise):
        return None
    pieces = multiplied_out(integrand)
    if pieces is None:
        return None
    groups: dict[sp.Expr, dict[tuple[int, ...], sp.Expr]] = {}
    for piece in pieces:
        constant, rest = piece.as_independent(*variables, as_Add=False)
        exponents, kernel = _monomial_and_kernel(rest, variables)
        found = groups.setdefault(kernel, {})
        found[exponents] = found.get(exponents, sp.S.Zero) + constant
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
        found = {label[i] for i in indices}
        label = [min(found) if x in found else x for x in label]
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
