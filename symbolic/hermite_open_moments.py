r"""Hermite moments of functions without a closed form in k, order by order.

Kernels such as tanh, the logistic function ς, softplus or erf² have no closed form in the order.
What is exact about their moments stays exact:

- moments vanish where the parity of a part says so, that of ς - 1/2 included;
- E[softplus(az+b) He_k] = a E[ς(az+b) He_{k-1}], the derivative rule;
- E[z f He_k] = E[f He_{k+1}] + k E[f He_{k-1}], the multiplication rule, as for swish z ς(z);
- single orders may have a closed form, by the rules of :mod:`.gaussian_rules`, as for erf².

The rest is left as an unevaluated expectation 𝔼, one for each order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import sympy as sp

from ..errors import UnsupportedExpressionError
from .functions import sigmoid, softplus
from .gaussian import GaussianExpectation
from .gaussian_kernels import affine_or_quadratic
from .gaussian_rules import closed_form
from .hermite_polynomials import hermite_polynomial
from .hermite_rules import OpenTerms, is_too_long, kernel_sequence
from .regularity import Parity, analyse

# Powers of z that are moved into the order of an unevaluated moment: each adds a node.
_HIGHEST_POWER = 3
# Beyond this order the derivatives of Owen's T, for erf**2, take seconds each.
_HIGHEST_ORDER_BY_RULES = 16


def open_moment(terms: OpenTerms, z: sp.Symbol, k: int) -> sp.Expr:
    r"""Return :math:`\mathbb{E}[f(z)\,\mathrm{He}_k(z)]` for a sum f of open terms.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> swish = {sigmoid(z): {1: sp.S.One}}
    >>> open_moment(swish, z, 0), open_moment(swish, z, 1), open_moment(swish, z, 3)
    (E_z[z*sigmoid(z)], 1/2, 0)
    """
    found: list[sp.Expr] = []
    rest: dict[sp.Expr, sp.Expr] = {}
    for kernel, coefficients in terms.items():
        moment = _related_moments(kernel, z, max(coefficients))
        if moment is not None:
            found += [c * _of_power(moment, n, k) for n, c in coefficients.items()]
            continue
        part = kernel * sp.Add(*(c * z**n for n, c in coefficients.items()))
        if not _vanishes(part, z, k):
            rest[kernel] = part
    if rest and not _vanishes(sp.Add(*rest.values()), z, k):
        polynomial = hermite_polynomial(k, z)
        without_rule = []
        for kernel, part in rest.items():
            by_rules = k <= _HIGHEST_ORDER_BY_RULES and _has_rule(kernel, z)
            value = closed_form(part * polynomial, z) if by_rules else None
            if value is None:
                without_rule.append(part)
            else:
                found.append(value)
        if without_rule:
            found.append(GaussianExpectation(sp.Add(*without_rule) * polynomial, z))
    return sp.Add(*found)


@functools.lru_cache(maxsize=256)
def _has_rule(kernel: sp.Expr, z: sp.Symbol) -> bool:
    """Whether the rules know the kernel; a polynomial before it makes no difference."""
    return not is_too_long(kernel) and closed_form(kernel, z) is not None


@functools.lru_cache(maxsize=256)
def _parity(part: sp.Expr, z: sp.Symbol) -> Parity:
    try:
        return analyse(part, z).parity
    except UnsupportedExpressionError:
        return Parity.NEITHER


def _vanishes(part: sp.Expr, z: sp.Symbol, k: int) -> bool:
    return _parity(part, z) is (Parity.EVEN if k % 2 else Parity.ODD)


def _related_moments(kernel: sp.Expr, z: sp.Symbol, power: int) -> Callable[[int], sp.Expr] | None:
    """The moments of a kernel from which those of z^power times it follow, or None."""
    plain = kernel_sequence(kernel, z)
    if plain is not None:
        return plain.value
    if not isinstance(kernel, sigmoid | softplus) or power > _HIGHEST_POWER:
        return None
    affine = affine_or_quadratic(kernel.args[0], z)
    if affine is None or affine[2] != 0:
        return None
    offset, slope, _ = affine
    logistic = sigmoid(kernel.args[0])

    def of_logistic(k: int) -> sp.Expr:
        if offset == 0 and k % 2 == 0:
            return sp.Rational(1, 2) if k == 0 else sp.S.Zero
        return GaussianExpectation(logistic * hermite_polynomial(k, z), z)

    def of_softplus(k: int) -> sp.Expr:
        return slope * of_logistic(k - 1) if k else GaussianExpectation(kernel, z)

    return of_logistic if isinstance(kernel, sigmoid) else of_softplus


def _of_power(moment: Callable[[int], sp.Expr], n: int, k: int) -> sp.Expr:
    """The moment of order k of z^n f: z^n He_k is a sum of He_j, the rule used n times."""
    weights = {k: 1}
    for _ in range(n):
        found: dict[int, int] = {}
        for j, weight in weights.items():
            found[j + 1] = found.get(j + 1, 0) + weight
            if j:
                found[j - 1] = found.get(j - 1, 0) + j * weight
        weights = found
    return sp.Add(*(weight * moment(j) for j, weight in weights.items()))
