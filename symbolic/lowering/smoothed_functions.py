r"""Expectations :math:`\mathbb{E}_z[z^j f(A + B z)]` recognised in integrands.

Only A depends on the node. Functions of :math:`u = A + Bz` can then be evaluated once for all
nodes: see :class:`giantstep.runtime.precise_averages.Lattice`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ..expressions.regularity import analyse
from ..gaussian.expectation import GaussianExpectation

# More factors than a library function of a network has; expanding them would not end soon.
_MOST_TERMS = 64


@dataclass(frozen=True)
class SmoothedFunctions:
    r"""Functions that one Gaussian variable smooths, at one place and over one width.

    Attributes
    ----------
    argument : Symbol
        u.
    offset, spread : Expr
        A and B.
    functions : tuple of Expr
        Functions f of `argument`.
    terms : tuple of (int, int)
        For each expectation :math:`\mathbb{E}[z^j f_k(A + Bz)]` that is needed, k and j.
    values : mapping from GaussianExpectation to Expr
        Every expectation in terms of `moments`.
    moments : tuple of Symbol
        One for each of `terms`.
    strips, growths : tuple of Expr
        Of the integrands in z, as in :class:`.regularity.Regularity`; no finite strip, no entry.
    waves : tuple of Expr
        Highest frequencies of the integrands in z.
    kinks : tuple of Expr
        Of the functions, in `argument`.
    """

    argument: sp.Symbol
    offset: sp.Expr
    spread: sp.Expr
    functions: tuple[sp.Expr, ...]
    terms: tuple[tuple[int, int], ...]
    values: dict[GaussianExpectation, sp.Expr]
    moments: tuple[sp.Symbol, ...]
    strips: tuple[sp.Expr, ...]
    growths: tuple[sp.Expr, ...]
    waves: tuple[sp.Expr, ...]
    kinks: tuple[sp.Expr, ...]


_Parts = list[tuple[sp.Expr, int, sp.Expr]]


def is_smoothed(node: GaussianExpectation, varying: Collection[sp.Basic]) -> bool:
    """Tell whether an expectation is a sum of those that are smoothed functions."""
    base = _base(node, varying)
    return (
        base is not None
        and not analyse(node.integrand, node.variable).kinks
        and _parts(node, base, sp.Dummy(real=True), varying) is not None
    )


def smoothed_functions(
    nodes: Sequence[GaussianExpectation], varying: Collection[sp.Basic]
) -> tuple[SmoothedFunctions, ...]:
    """Sort those expectations that are smoothed functions into groups of one offset and spread.

    Parameters
    ----------
    nodes : sequence of GaussianExpectation
        Of one variable.
    varying : collection of Symbol and applied functions
        The node, and tables, which depend on it.
    """
    groups: list[
        tuple[tuple[sp.Expr, sp.Expr], bool, sp.Symbol, dict[GaussianExpectation, _Parts]]
    ] = []
    for node in nodes:
        base = _base(node, varying)
        if base is None:
            continue
        # Functions without kinks take a quicker rule.
        kinked = bool(analyse(node.integrand, node.variable).kinks)
        for other, has_kinks, argument, members in groups:
            found = _parts(node, other, argument, varying) if kinked is has_kinks else None
            if found is not None:
                members[node] = found
                break
        else:
            argument = sp.Symbol(f"argument_{node.variable}{len(groups)}", real=True)
            found = _parts(node, base, argument, varying)
            if found is not None:
                groups.append((base, kinked, argument, {node: found}))
    return tuple(
        _group(str(k), base, argument, members)
        for k, (base, _, argument, members) in enumerate(groups)
    )


def _group(
    label: str, base: tuple[sp.Expr, sp.Expr], argument: sp.Symbol,
    members: dict[GaussianExpectation, _Parts],
) -> SmoothedFunctions:  # fmt: skip
    functions: dict[sp.Expr, int] = {}
    terms: dict[tuple[int, int], sp.Symbol] = {}
    values: dict[GaussianExpectation, sp.Expr] = {}
    strips, growths, waves = [], [], []
    for node, parts in members.items():
        total = []
        for coefficient, power, function in parts:
            term = (functions.setdefault(function, len(functions)), power)
            name = f"moment_{node.variable}{label}_{len(terms)}"
            total.append(coefficient * terms.setdefault(term, sp.Symbol(name, real=True)))
        values[node] = sp.Add(*total)
        found = analyse(node.integrand, node.variable)
        if found.strip != sp.oo:
            # Where no distance is known, one, from which the rule is refined until it agrees.
            strips.append(sp.S.One if found.strip is None or found.strip == 0 else found.strip)
        growths.append(found.gaussian_coefficient or sp.S.Zero)
        waves.append(found.frequency or sp.S.Zero)
    kinks = dict.fromkeys(k for f in functions for k in analyse(f, argument).kinks)
    return SmoothedFunctions(
        argument, *base, tuple(functions), tuple(terms), values, tuple(terms.values()),
        tuple(dict.fromkeys(strips)), tuple(dict.fromkeys(growths)), tuple(dict.fromkeys(waves)),
        tuple(kinks),
    )  # fmt: skip


def _base(
    node: GaussianExpectation, varying: Collection[sp.Basic]
) -> tuple[sp.Expr, sp.Expr] | None:
    """Return A and B of the argument of the first function of the variable.

    Where sums in functions were multiplied out, as in sqrt(1 + (A + B z)**2), it is read off the
    two leading terms of the polynomial.
    """
    z = node.variable
    parts = [
        part
        for function in _functions(node.integrand, z)
        for part in sp.preorder_traversal(function)
        if part is not function and isinstance(part, sp.Expr) and part.is_polynomial(z)
    ]
    read_off = None
    for part in parts:
        if not part.has(z) or part == z:
            continue
        polynomial = sp.Poly(part, z)
        degree, leading = polynomial.degree(), polynomial.LC()
        if leading.has(*varying):
            continue
        if degree == 1:
            return polynomial.TC(), leading
        if read_off is None and (leading.is_positive or leading.is_negative):
            sign = sp.sign(leading)
            spread = sp.root(sign * leading, degree)
            second = sign * polynomial.coeff_monomial(z ** (degree - 1))
            read_off = second / (degree * spread ** (degree - 1)), spread
    return read_off or ((sp.S.Zero, sp.S.One) if z in parts else None)


def _functions(expr: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
    """Return the parts of an expression that are no polynomials in `z`."""
    if not expr.has(z) or expr == z:
        return []
    if expr.is_Add or expr.is_Mul:
        return list(dict.fromkeys(f for part in expr.args for f in _functions(part, z)))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp.is_positive:
        return _functions(expr.base, z)
    return [expr]


def _parts(
    node: GaussianExpectation, base: tuple[sp.Expr, sp.Expr], argument: sp.Symbol,
    varying: Collection[sp.Basic],
) -> _Parts | None:  # fmt: skip
    """Return (coefficient, j, f) of every term, None if it is not of that form."""
    z = node.variable
    offset, spread = base
    place = (argument - offset) / spread
    marks: dict[sp.Expr, sp.Symbol] = {}
    values: dict[sp.Expr, sp.Expr] = {}
    for function in _functions(node.integrand, z):
        value = _normal(function.xreplace({z: place}))
        if value.has(z, *varying) or value.atoms(AppliedUndef):
            return None
        marks[function] = sp.Dummy(real=True)
        values[marks[function]] = value
    terms = sp.Add.make_args(sp.expand(node.integrand.xreplace(marks)))
    if len(terms) > _MOST_TERMS:
        return None
    found: _Parts = []
    for term in terms:
        coefficient, rest = term.as_independent(z, *values, as_Add=False)
        power, function = 0, sp.S.One
        for factor in () if rest == 1 else sp.Mul.make_args(rest):
            b, exponent = factor.as_base_exp()
            if not (exponent.is_Integer and exponent.is_positive):
                return None
            if b == z:
                power = int(exponent)
            else:
                function *= values[b] ** exponent
        found.append((coefficient, power, function))
    return found


def _normal(expr: sp.Expr) -> sp.Expr:
    """Expand sums inside of functions, so that what cancels there is gone."""
    if not expr.args:
        return expr
    rebuilt = expr.func(*(_normal(a) if isinstance(a, sp.Expr) else a for a in expr.args))
    if not (rebuilt.is_Add or rebuilt.is_Mul):
        return rebuilt
    return sp.expand(rebuilt, power_base=False, power_exp=False, log=False)
