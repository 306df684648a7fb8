r"""Averages over inner nodes at each node, for inner expectations inside other functions.

In :math:`\mathbb{E}_\kappa\, G\big(\mathbb{E}_s F(\kappa, s), \dots\big)` with a G that is no
polynomial, the inner expectation has to be known at a node κ before G is taken there: an
:class:`InnerAverage`. Its nodes are the inner nodes of :mod:`.product_measures`, and its law is
standard normal; any other law is a density in F, as in one step of replica-symmetry breaking, where
quotients of :math:`\mathbb{E}_s \cosh^m` and :math:`\mathbb{E}_s \cosh^m \tanh` are averages over a
tilted law.

Such densities grow and fall like exponentials, and their quotients do not. Where G is homogeneous
in its averages, up to logarithms, all of them are divided by the same :class:`InnerScale`, the
largest exponential at the node: then nothing overflows, and nothing vanishes that is divided by.
Derivatives are what they would be if the scale were a constant, because nothing depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy as sp
from sympy.core.function import AppliedUndef

from ..expressions.functions import log_cosh, log_normal_cdf, normal_cdf, sigmoid, softplus
from ..expressions.shared_parts import first_derivative
from ..gaussian.accuracy import is_tail, rewrite_for_accuracy

# An exponent, and what its exponential is a factor of.
_Part = tuple[sp.Expr, sp.Expr]
# What grows or falls like exponentials.
_EXPONENTIAL = (sp.exp, sp.cosh, sp.sinh, sp.erf, sp.erfc, normal_cdf, sigmoid)


class InnerAverage(sp.Expr):
    """The average of a function over inner nodes at one node.

    Parameters
    ----------
    function : Expr
        In the node, inner nodes, tables and parameters. Factors that hold neither inner nodes nor
        tables are pulled out.
    variables : Tuple
        Inner nodes, as symbols or as applied functions of the node.
    """

    is_commutative = True

    def __new__(cls, function: sp.Expr, variables: sp.Tuple) -> sp.Expr:  # type: ignore[misc]
        function = sp.sympify(function, strict=True)
        factors = sp.Mul.make_args(function)
        # A reflection of the nodes turns the signs of these, too.
        symbols = variables.free_symbols
        outside = [f for f in factors if not (f.free_symbols & symbols or f.atoms(AppliedUndef))]
        if len(outside) == len(factors):
            return function
        inside = sp.Mul(*(f for f in factors if f not in outside))
        return sp.Mul(*outside, sp.Expr.__new__(cls, inside, variables))

    @property
    def function(self) -> sp.Expr:
        """What is averaged."""
        return self.args[0]

    @property
    def variables(self) -> sp.Tuple:
        """The inner nodes."""
        return self.args[1]

    def _eval_is_extended_real(self) -> bool | None:
        return self.function.is_extended_real

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.function.is_extended_nonnegative else None

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.function.is_extended_positive else None

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        return InnerAverage(first_derivative(self.function, symbol), self.variables)


class InnerScale(sp.Expr):
    """The largest of some exponents at one node over the inner nodes, that of their law included.

    Parameters
    ----------
    exponents : Tuple
    variables : Tuple
        Inner nodes.
    """

    is_commutative = True
    is_extended_real = True

    @property
    def exponents(self) -> sp.Tuple:
        """Functions of the inner nodes."""
        return self.args[0]

    @property
    def variables(self) -> sp.Tuple:
        """The inner nodes."""
        return self.args[1]

    @property
    def value(self) -> sp.Expr:
        """What is the largest where the inner nodes are best."""
        squares = sp.Add(*(x**2 for x in self.variables)) / 2
        return sp.Max(*(exponent - squares for exponent in self.exponents))

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        # Nothing depends on it.
        return sp.S.Zero


def scaled(integrand: sp.Expr) -> sp.Expr:
    """Return an integrand whose inner averages are divided by what grows in them, if that cancels.

    Each term has a scale of its own.
    """
    return sp.Add(*map(_scaled_term, sp.Add.make_args(integrand)))


def _scaled_term(term: sp.Expr) -> sp.Expr:
    averages = sorted(term.atoms(InnerAverage), key=sp.default_sort_key)
    if not averages:
        return term
    variables = sp.Tuple(*dict.fromkeys(x for a in averages for x in a.variables))
    parts = {a: _apart(a.function, variables) for a in averages}
    exponents = dict.fromkeys(e for found in parts.values() for e, _ in found)
    if not any(exponents):
        return term
    marks = {a: sp.Dummy(real=True) for a in averages}
    scale = sp.Dummy(real=True)
    worker = _Homogeneous(dict.fromkeys(marks.values(), 1), scale)
    marked = term.xreplace(marks)
    found = None if marked.is_polynomial(*marks.values()) else worker.visit(marked)
    if found is None:
        return term
    if worker.raised:
        exponents[sp.S.Zero] = None
    rough = dict.fromkeys(map(_rough, exponents))
    largest = InnerScale(sp.Tuple(*rough), variables)
    divided = {
        marks[a]: InnerAverage(
            sp.Add(*(factor * sp.exp(e - largest) for e, factor in parts[a])), a.variables
        )
        for a in averages
    }
    value, degree = found
    return (value * sp.exp(degree * scale)).xreplace({**divided, scale: largest})


def _rough(exponent: sp.Expr) -> sp.Expr:
    """Return what differs from an exponent by a few units at most and costs next to nothing."""
    exponent = exponent.replace(log_cosh, sp.Abs)
    exponent = exponent.replace(softplus, lambda u: sp.Max(u, 0))
    return exponent.replace(log_normal_cdf, lambda u: -(sp.Min(u, 0) ** 2) / 2)


class _Homogeneous:
    """Finds the degree of expressions in marked averages, which are divided by exp(scale)."""

    def __init__(self, marks: Mapping[sp.Symbol, int], scale: sp.Symbol) -> None:
        self._marks, self._scale = marks, scale
        self.raised = False

    def visit(self, expr: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
        """Return e and n with exp(n*scale)*e equal to the expression; None if there are none."""
        if expr in self._marks:
            return expr, sp.Integer(self._marks[expr])
        if not expr.free_symbols & set(self._marks):
            return expr, sp.S.Zero
        if isinstance(expr, sp.Pow):
            base = None if expr.exp.free_symbols & set(self._marks) else self.visit(expr.base)
            return None if base is None else (base[0] ** expr.exp, base[1] * expr.exp)
        found = [self.visit(a) for a in expr.args if isinstance(a, sp.Expr)]
        if len(found) < len(expr.args):
            return None
        pairs = [pair for pair in found if pair is not None]
        if len(pairs) < len(found):
            return None
        if isinstance(expr, sp.Mul):
            return sp.Mul(*(e for e, _ in pairs)), sp.Add(*(n for _, n in pairs))
        if isinstance(expr, sp.Add):
            return self._sum(pairs)
        if isinstance(expr, sp.log):
            ((inside, degree),) = pairs
            return sp.log(inside) + degree * self._scale, sp.S.Zero
        if any(n != 0 for _, n in pairs):
            return None
        return expr.func(*(e for e, _ in pairs)), sp.S.Zero

    def _sum(self, pairs: Sequence[tuple[sp.Expr, sp.Expr]]) -> tuple[sp.Expr, sp.Expr] | None:
        degrees = {n for _, n in pairs}
        if len(degrees) == 1:
            return sp.Add(*(e for e, _ in pairs)), pairs[0][1]
        if not all(n.is_Integer for n in degrees):
            return None
        highest = max(degrees)
        self.raised = True
        terms = (e * sp.exp((n - highest) * self._scale) for e, n in pairs)
        return sp.Add(*terms), highest


def _apart(function: sp.Expr, variables: sp.Tuple) -> list[_Part]:
    """Return exponents and factors whose sum of exp(exponent)*factor is a function."""
    found: dict[sp.Expr, sp.Expr] = {}
    for exponent, factor in _parts(function, variables):
        found[exponent] = found.get(exponent, sp.S.Zero) + factor
    return [(exponent, factor) for exponent, factor in found.items() if factor != 0]


def _parts(function: sp.Expr, variables: sp.Tuple) -> Iterator[_Part]:
    if not function.has(*variables) or not function.has(*_EXPONENTIAL):
        yield sp.S.Zero, function
        return
    known = _exponential(function)
    if known is not None:
        yield known
    elif isinstance(function, sp.Add):
        for term in function.args:
            yield from _parts(term, variables)
    elif isinstance(function, sp.Mul):
        yield from _products(function.args, variables)
    elif isinstance(function, sp.Pow) and function.exp.is_Integer and function.exp > 1:
        yield from _products([function.base] * int(function.exp), variables)
    else:
        yield sp.S.Zero, function


def _products(factors: Sequence[sp.Expr], variables: sp.Tuple) -> Iterator[_Part]:
    found: list[_Part] = [(sp.S.Zero, sp.S.One)]
    for f in factors:
        parts = list(_parts(f, variables))
        found = [(e + d, a * b) for e, a in found for d, b in parts]
    yield from found


def _exponential(function: sp.Expr) -> _Part | None:
    """Return exponent and factor of what grows or falls like one exponential."""
    base, power = function.as_base_exp()
    if isinstance(function, sp.exp):
        return function.args[0], sp.S.One
    if isinstance(base, sp.cosh):
        return power * log_cosh(base.args[0]), sp.S.One
    if isinstance(function, sp.sinh):
        return log_cosh(function.args[0]), sp.tanh(function.args[0])
    if isinstance(function, sigmoid):
        return -softplus(-function.args[0]), sp.S.One
    if base.is_Add and len(base.args) == 2 and power.is_number and power < 0:
        one, exponential = base.args
        if one == 1 and isinstance(exponential, sp.exp):
            return power * softplus(exponential.args[0]), sp.S.One
    if not is_tail(function):
        return None
    number, tail = rewrite_for_accuracy(function).as_coeff_Mul()
    u = tail.args[0]
    if isinstance(tail, sp.erfc):
        number, u = 2 * number, -sp.sqrt(2) * u
    return log_normal_cdf(u), number
