r"""Whether sums over nodes are even, so that half of the line suffices, decided by structure.

Two expressions are compared as polynomials in their functions, each written with the sign of its
argument outside: :math:`\Phi(-u) = 1 - \Phi(u)`, :math:`\operatorname{prox}_{\ell}(-c) =
-\operatorname{prox}_{\ell(-x)}(c)`. What cannot be proven like this is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from ..expressions.functions import OwenT, erf_difference, erfcx, normal_cdf
from ..expressions.regularity import REFLECTABLE
from ..expressions.shared_parts import replaced
from ..gaussian.expectation import GaussianExpectation
from ..losses.proximal import MoreauEnvelope, Proximal
from .inner_averages import InnerAverage, InnerScale

if TYPE_CHECKING:
    from .product_measures import ProductMeasure

_ODD = (sp.sin, sp.tan, sp.tanh, sp.sinh, sp.erf, sp.atan, sp.asinh, sp.sign)
_EVEN = (sp.cos, sp.cosh, sp.Abs)
# In functions whose arguments can give off their sign.
_REWRITTEN: dict[type[sp.Function], Callable[..., sp.Expr]] = REFLECTABLE | {
    normal_cdf: lambda u: (1 + sp.erf(u / sp.sqrt(2))) / 2,
    sp.erfc: lambda u: 1 - sp.erf(u),
    erfcx: lambda u: sp.exp(u**2) * (1 - sp.erf(u)),
    erf_difference: lambda a, b: sp.erf(a) - sp.erf(b),
}


def parity_under(
    value: sp.Expr,
    reflection: Mapping[sp.Expr, sp.Expr],
    comparable: Callable[[sp.Expr], sp.Expr] | None = None,
) -> int | None:
    """Return 1 or -1 if a reflection provably leaves a value or changes its sign, else None.

    Parameters
    ----------
    value : Expr
    reflection : mapping from Expr to Expr
        What each symbol or applied function becomes.
    comparable : callable, optional
        A :class:`Comparable` of values with which this one shares parts.
    """
    comparable = comparable or Comparable()
    parity = _by_parts(value, reflection, comparable)
    if parity is not None:
        return parity
    here = comparable(value)
    there = comparable(replaced(value, reflection))
    if here == there or sp.expand(here - there) == 0:
        return 1
    return -1 if sp.expand(here + there) == 0 else None


def _by_parts(
    value: sp.Expr,
    reflection: Mapping[sp.Expr, sp.Expr],
    comparable: Callable[[sp.Expr], sp.Expr],
) -> int | None:
    """Return the parity that terms and factors have each by itself; None is not known."""
    if isinstance(value, sp.Add | sp.Mul):
        found = set()
        sign = 1
        for part in value.args:
            parity = _by_parts(part, reflection, comparable)
            if parity is None:
                return None
            found.add(parity)
            sign *= parity
        return sign if value.is_Mul else found.pop() if len(found) == 1 else None
    here, there = comparable(value), comparable(replaced(value, reflection))
    return 1 if here == there else -1 if here == -there else None


class Comparable:
    """Writes expressions as polynomials in marks, one for each function of each argument."""

    def __init__(self) -> None:
        self._marks: dict[sp.Basic, sp.Symbol] = {}
        self._known: dict[sp.Basic, sp.Expr] = {}
        self._bound = sp.Dummy("x", real=True)

    def __call__(self, value: sp.Expr) -> sp.Expr:
        if value not in self._known:
            self._known[value] = self._visit(value)
        return self._known[value]

    def _visit(self, value: sp.Expr) -> sp.Expr:
        if not value.args or isinstance(value, AppliedUndef):
            return value
        if isinstance(value, Proximal | MoreauEnvelope):
            return self._proximal(value)
        if isinstance(value, InnerAverage):
            # The law of the inner nodes is the same on both sides.
            sign, function = _unsigned(self._expanded(value.function))
            return sign * self._mark(sp.Function("average", real=True)(function))
        if isinstance(value, InnerScale):
            exponents = sorted(map(self._expanded, value.exponents), key=sp.default_sort_key)
            return self._mark(sp.Tuple(*exponents))
        if isinstance(value, sp.Add | sp.Mul):
            return value.func(*map(self, value.args))
        if isinstance(value, sp.Pow):
            return self._power(self._expanded(value.base), value.exp)
        if isinstance(value, sp.Max | sp.Min):
            value = value.rewrite(sp.Abs)
            return self._mark(value) if isinstance(value, sp.Max | sp.Min) else self(value)
        if isinstance(value, sp.Function) and not isinstance(value, sp.Piecewise):
            return self._function(value)
        return self._mark(value)

    def _function(self, value: sp.Expr) -> sp.Expr:
        if type(value) in _REWRITTEN:
            return self(_REWRITTEN[type(value)](*value.args))
        arguments = [self._expanded(a) for a in value.args]
        if isinstance(value, OwenT):
            (_, h), (sign, a) = map(_unsigned, arguments)
            return sign * self._mark(OwenT(h, a))
        if isinstance(value, _ODD):
            sign, u = _unsigned(arguments[0])
            return sign * self._mark(value.func(u))
        if isinstance(value, _EVEN):
            return self._mark(value.func(_unsigned(arguments[0])[1]))
        return self._mark(value.func(*arguments))

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
        if exponent.is_Integer and exponent > 0:
            return base**exponent
        if not exponent.is_Integer:
            return self._mark(base ** self._expanded(exponent))
        sign, base = _unsigned(base)
        return sign**exponent * self._mark(1 / base) ** (-exponent)

    def _proximal(self, value: Proximal | MoreauEnvelope) -> sp.Expr:
        sign, center = _unsigned(self._expanded(value.center))
        loss = self._expanded(value.loss.xreplace({value.variable: sign * self._bound}))
        node = sp.Function(type(value).__name__, real=True)
        found = self._mark(node(loss, center, self._expanded(value.step)))
        return sign * found if isinstance(value, Proximal) else found

    def _expanded(self, value: sp.Expr) -> sp.Expr:
        return sp.expand(self(value))

    def _mark(self, value: sp.Basic) -> sp.Expr:
        if isinstance(value, sp.Number):
            return value
        return self._marks.setdefault(value, sp.Dummy(real=True))


def _unsigned(value: sp.Expr) -> tuple[int, sp.Expr]:
    """Return a sign and a value whose product is that given, the same value for both signs."""
    return (-1, -value) if value.could_extract_minus_sign() else (1, value)


def averages_are_even(
    integrands: Iterable[sp.Expr],
    node: sp.Symbol,
    definitions: Mapping[sp.Expr, sp.Expr],
    product: ProductMeasure | None,
) -> bool:
    """Tell whether every average over the line or a grid is provably even in all nodes at once.

    The integrands of the equations tell of those of the Jacobian: what is even for all values of
    the unknowns has even derivatives with respect to them.

    Parameters
    ----------
    integrands : iterable of Expr
        Of equations and outputs.
    node : Symbol
    definitions : mapping from applied function to Expr
        Tables of the node, each in the node and in other ones.
    product : ProductMeasure or None
        Of a grid.
    """
    applied: dict[sp.Expr, sp.Expr] = {node: -node}
    for function, definition in definitions.items():
        sign = _parity(definition, node, applied)
        if sign is None:
            return False
        applied[function] = sign * function
    meaning: dict[sp.Expr, sp.Expr] = {}
    if product is not None:
        applied |= {x: -x for x in product.symbols}
        # What a table on the grid stands for shows more than the table: P(y) of one label has no
        # parity, but P(y) f(y) + P(-y) f(-y) may have one.
        meaning = {**product.nodes, **product.definitions}
    # The node of a table is that of the line, whose reflection has been done by its sign.
    marks = {f: sp.Dummy(real=True, nonnegative=f.is_nonnegative) for f in definitions}
    reflection = {marks.get(f, f): value.xreplace(marks) for f, value in applied.items()}
    comparable = Comparable()
    return all(
        parity_under(replaced(replaced(f, meaning), marks), reflection, comparable) == 1
        for f in integrands
    )


def _parity(definition: sp.Expr, node: sp.Symbol, applied: Mapping[sp.Expr, sp.Expr]) -> int | None:
    """Return the parity of a table; every inner Gaussian variable, whose law is even, turns too."""
    inner = {
        n: InnerAverage(n.integrand, sp.Tuple(n.variable))
        for n in definition.atoms(GaussianExpectation)
    }
    turned = {n.variable: -n.variable for n in inner}
    return parity_under(definition.xreplace(inner), {**applied, **turned})
