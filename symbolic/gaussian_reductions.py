r"""Expectations over several Gaussian variables that fewer variables carry.

A function of one linear combination needs one variable, and by independence

.. math:: \mathbb{E}[f(x_A)\, g(x_B)] = \mathbb{E}f(x_A)\, \mathbb{E}g(x_B)

where the covariance of the sets :math:`x_A` and :math:`x_B` of variables is zero. Neither needs to
know the functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from .gaussian_law import GaussianVector
from .gaussian_terms import blocks, quadratic_form


def on_a_line(integrand: sp.Expr, law: GaussianVector) -> tuple[sp.Expr, sp.Symbol] | None:
    """Write f(x) = h(α·x) as h(m + s z) and z, if it depends on one combination α·x only.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> law = GaussianVector((u, v), covariance=[[1, 0], [0, 3]])
    >>> on_a_line(sp.tanh(u + v), law)[0]
    tanh(2*z)
    """
    z = _new_symbol(integrand.free_symbols | law.free_symbols | set(law.variables))
    pivot, *others = law.variables
    if not others:
        spread = sp.sqrt(law.covariance[0, 0])
        return integrand.xreplace({pivot: law.mean[0] + spread * z}), z
    if integrand.has(sp.Piecewise):
        return None
    for function in integrand.atoms(sp.Function, sp.exp):
        if not function.free_symbols & set(law.variables) or len(function.args) > 2:
            continue
        affine = quadratic_form(function.args[0], law.variables)
        if affine is None or any(map(any, affine.matrix)):
            return None
        slopes = affine.linear
        if not slopes[0].is_nonzero or not all(slopes[1:]):
            return None
        combination = sp.Add(*(s * x for s, x in zip(slopes, law.variables, strict=True)))
        rest = combination - slopes[0] * pivot
        on_line = sp.expand(integrand.xreplace({pivot: (z - rest) / slopes[0]}))
        if on_line.has(*others):
            return None
        mean = sp.expand(combination.xreplace(dict(zip(law.variables, law.mean, strict=True))))
        spread = sp.sqrt(law.variance(combination))
        return on_line.xreplace({z: mean + spread * z}), z
    return None


def _new_symbol(others: set[sp.Symbol]) -> sp.Symbol:
    """The symbol z, so that equal expectations are equal; if there is one already, another."""
    if any(x.name == "z" for x in others):
        return sp.Dummy("z", real=True)
    return sp.Symbol("z", real=True)


def independent_factors(
    integrand: sp.Expr, law: GaussianVector
) -> list[tuple[sp.Expr, list[sp.Expr]]] | None:
    """Write f as a sum of constants times products of functions of independent sets of variables.

    Returns
    -------
    list of (constant, factors) or None
        The expectation is the sum of the constants times the products of the factors' expectations.
        None if some term couples all of its variables and has more than one.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> law = GaussianVector((u, v), covariance=[[1, 0], [0, 1]])
    >>> independent_factors(2 * sp.tanh(u) * sp.tanh(v) * sp.exp(u + v), law)
    [(2, [exp(u)*tanh(u), exp(v)*tanh(v)])]
    >>> independent_factors(sp.tanh(u) * sp.tanh(v) * sp.exp(u + v + 1), law)
    [(E, [exp(u)*tanh(u), exp(v)*tanh(v)])]
    """
    variables = law.variables
    pairs = [(i, j) for i in range(len(variables)) for j in range(i) if law.covariance[i, j] != 0]
    for whole in (integrand, sp.expand(integrand)):
        terms = []
        for term in sp.Add.make_args(whole):
            found = _one_term(term, variables, pairs)
            if found is None:
                break
            terms.append(found)
        else:
            return terms
    return None


def _one_term(
    term: sp.Expr, variables: Sequence[sp.Symbol], pairs: Sequence[tuple[int, int]]
) -> tuple[sp.Expr, list[sp.Expr]] | None:
    constant, rest = term.as_independent(*variables, as_Add=False)
    factors = [
        part
        for factor in sp.Mul.make_args(rest)
        for part in sp.Mul.make_args(
            sp.expand_power_exp(factor) if factor.is_Pow or isinstance(factor, sp.exp) else factor
        )
    ]
    used = [{i for i, x in enumerate(variables) if x in factor.free_symbols} for factor in factors]
    held = set().union(*used)
    groups = [g for g in blocks(len(variables), [*used, *pairs]) if held & set(g)]
    if len(groups) == 1 and len(held) > 1:
        return None
    # What an exponent was split into may hold no variable: that belongs to no group.
    constant *= sp.Mul(*(f for f, places in zip(factors, used, strict=True) if not places))
    split = [
        sp.Mul(*(f for f, places in zip(factors, used, strict=True) if places & set(group)))
        for group in groups
    ]
    return constant, split
