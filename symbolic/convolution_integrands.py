r"""One expectation of a definition on its way to Gaussian convolutions.

An integrand becomes a polynomial in z, in the argument :math:`u = A'\kappa + Bz` and in functions
of u alone, these as large as can be, so that few functions have to be convolved. It expands into
terms :math:`z^j F(u)`; see :mod:`.gaussian_convolutions` for the meaning of what results, and for
what is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sp

from ..errors import UnsupportedExpressionError
from ._singularities import NONSMOOTH, expanded, find_kinks
from .ball_functions import is_known_function
from .gaussian import GaussianExpectation

ARGUMENT = sp.Symbol("u", real=True)
"""The argument of the functions that are convolved."""
_MOST_TERMS = 4000
# Stein's lemma is applied to F' z^j with j below.
_HIGHEST = 4


@dataclass
class AffineForm:
    """An affine form A'κ + Bz with what is convolved along it."""

    slope: sp.Expr
    spread: sp.Expr
    functions: list[sp.Expr]
    values: dict[tuple[int, int], sp.Symbol]
    # Functions of which whole tables are the means, for Stein's lemma.
    means: dict[sp.Expr, _Marked]


class FormStore:
    """The affine forms of all tables, and what is convolved along them.

    Attributes
    ----------
    node : Symbol
        κ.
    forms : list of AffineForm
    marks : dict from applied function to Symbol
        Tables as plain symbols, which integrands may hold.
    """

    def __init__(self, node: sp.Symbol) -> None:
        self.node = node
        self.forms: list[AffineForm] = []
        self.marks: dict[sp.Expr, sp.Symbol] = {}
        self.count = 0

    def symbol(self, letter: str) -> sp.Symbol:
        self.count += 1
        return sp.Dummy(f"{letter}{self.count - 1}", real=True)

    def form(self, slope: sp.Expr, spread: sp.Expr) -> AffineForm:
        """Return the form with these coefficients up to a number, made where there is none."""
        for form in self.forms:
            ratio = sp.cancel(spread / form.spread)
            if ratio.is_number and expanded(slope - ratio * form.slope) == 0:
                return form
        # A number in front, as in E tanh(2u), belongs to the function.
        number = spread.as_independent(*spread.free_symbols, as_Add=False)[0]
        if not spread.free_symbols:
            number = sp.S.One
        form = AffineForm(slope / number, spread / number, [], {}, {})
        self.forms.append(form)
        return form

    def value(self, form: AffineForm, function: sp.Expr, power: int) -> sp.Symbol:
        """Return the symbol of E[F z^j]."""
        if function not in form.functions:
            form.functions.append(function)
        key = (form.functions.index(function), power)
        if key not in form.values:
            form.values[key] = self.symbol("t")
        return form.values[key]


class Integrand:
    """One expectation on its way to convolutions."""

    def __init__(self, store: FormStore, average: GaussianExpectation, place: str) -> None:
        self.store = store
        self.place = place
        self.variable = average.variable
        self.integrand = average.integrand
        self.form: AffineForm | None = None
        # Functions of the argument u, under symbols.
        self.functions: dict[sp.Symbol, sp.Expr] = {}

    def expanded(self) -> sp.Expr:
        """Return the expectation in the node, marks of tables and values of convolutions."""
        for part in self.transcendental(self.integrand):
            self.find_form(part)
        if self.form is None:
            return _polynomial_mean(self.integrand, self.variable)
        return self.by_stein(_Marked(self.marked(self.integrand), self.functions, self.variable))

    def sum(self, integrand: _Marked, power: int) -> sp.Expr:
        """Return E[integrand z^power] as a sum of values of convolutions."""
        form, z = self.form, self.variable
        assert form is not None
        functions = integrand.functions
        expr = integrand.expr.xreplace({integrand.variable: z}) * z**power
        terms = sp.Poly(expr, z, ARGUMENT, *functions, domain=sp.EXRAW).terms()
        if len(terms) > _MOST_TERMS:
            raise refused(self.place, f"it has more than {_MOST_TERMS} terms when expanded")
        argument = form.slope * self.store.node + form.spread * z
        total = []
        for (j, m, *powers), coefficient in terms:
            if any(powers):
                factors = [f**n for f, n in zip(functions.values(), powers, strict=True)]
                value = self.store.value(form, sp.Mul(ARGUMENT**m, *factors), j)
            else:
                value = _polynomial_mean(argument**m * z**j, z)
            total.append(coefficient * value)
        return sp.Add(*total)

    def by_stein(self, integrand: _Marked) -> sp.Expr:
        """Return the expectation; that of z^j F' by averages of an F whose mean is a table."""
        form, z = self.form, self.variable
        assert form is not None
        power = next((j for j in range(_HIGHEST) if not (integrand.expr / z**j).has(z)), None)
        if power is None:
            return self.sum(integrand, 0)
        whole = (integrand.expr / z**power).xreplace(integrand.functions)
        if not self.is_function(whole) or whole in form.means:
            return self.sum(integrand, 0)
        for function, mean in form.means.items():
            ratio = _constant_ratio(whole, _weak_derivative(function))
            if ratio is not None:
                lower = power * self.sum(mean, power - 1) if power else sp.S.Zero
                return ratio * (self.sum(mean, power + 1) - lower) / form.spread
        if power == 0 and _is_continuous(whole):
            form.means[whole] = integrand
        return self.sum(integrand, 0)

    def transcendental(self, expr: sp.Expr) -> list[sp.Expr]:
        """Return the largest parts that are no polynomials in the variable."""
        if self.variable not in expr.free_symbols or expr == self.variable:
            return []
        if expr.is_Add or expr.is_Mul:
            return [part for operand in expr.args for part in self.transcendental(operand)]
        if is_power(expr):
            return self.transcendental(expr.base)
        require_known(expr, self.variable, self.place)
        return [expr]

    def find_form(self, part: sp.Expr) -> None:
        """Take the first affine form in a function; all functions have to be of one form."""
        traversal = sp.preorder_traversal(part)
        for node in traversal:
            coefficients = self.affine(node)
            if coefficients is None:
                continue
            traversal.skip()
            form = self.store.form(coefficients[0], coefficients[1])
            if self.form is None:
                self.form = form
        if self.form is None:
            raise refused(
                self.place,
                f"{short(part)} is no function of an affine form in {self.variable}",
            )

    def affine(self, expr: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
        """Return (A', B, A0) if an expression is A'κ + Bz + A0 with constants and B != 0."""
        z, node = self.variable, self.store.node
        if z not in expr.free_symbols or not expr.is_polynomial(z, node):
            return None
        poly = sp.Poly(expr, node, z, domain=sp.EXRAW)
        if poly.total_degree() > 1:
            return None
        found = (poly.coeff_monomial(node), poly.coeff_monomial(z), poly.coeff_monomial(1))
        tables = set(self.store.marks.values())
        held = set().union(*(coefficient.free_symbols for coefficient in found))
        return found if held.isdisjoint(tables | {z, node}) and found[1] != 0 else None

    def in_argument(self, expr: sp.Expr) -> sp.Expr | None:
        """Return an affine expression as a function of the argument u; None if it is none."""
        coefficients = self.affine(expr)
        if coefficients is None or self.form is None:
            return None
        slope, spread, constant = coefficients
        ratio = sp.cancel(spread / self.form.spread)
        if not ratio.is_number or expanded(slope - ratio * self.form.slope) != 0:
            return None
        return ratio * ARGUMENT + constant

    def marked(self, expr: sp.Expr) -> sp.Expr:
        """Return a polynomial in z, u and symbols for functions of u, these as large as can be."""
        if self.variable not in expr.free_symbols:
            return expr
        found = self.as_function(expr)
        if found is not None:
            return found
        if expr == self.variable:
            return expr
        if expr.is_Add:
            return self.marked_sum(expr.args)
        if expr.is_Mul:
            whole, others = self.split(expr.args)
            return sp.Mul(self.generator(sp.Mul(*whole)), *map(self.marked, others))
        if is_power(expr):
            return self.marked(expr.base) ** expr.exp
        # Expanded arguments, as z**2 + 2*z*kappa + kappa**2, show it only when z is replaced.
        assert self.form is not None
        inverse = (ARGUMENT - self.form.slope * self.store.node) / self.form.spread
        found = self.as_function(expanded(expr.xreplace({self.variable: inverse})))
        if found is None:
            affine = self.form.slope * self.store.node + self.form.spread * self.variable
            raise refused(
                self.place,
                f"{short(expr)} is no function of the one affine form {affine} with constant "
                "coefficients",
            )
        return found

    def marked_sum(self, terms: tuple[sp.Expr, ...]) -> sp.Expr:
        # σ(z) = z + tanh(z) holds the affine form in two of its terms.
        affine = [term for term in terms if self.is_linear(term)]
        argument = self.in_argument(sp.Add(*affine)) if affine else None
        if argument is None:
            affine, argument = [], sp.S.Zero
        whole, others = self.split([term for term in terms if term not in affine])
        return sp.Add(self.generator(sp.Add(argument, *whole)), *map(self.marked, others))

    def split(self, operands: Sequence[sp.Expr]) -> tuple[list[sp.Expr], list[sp.Expr]]:
        """Return those of the operands that are functions of u, in u, and the others."""
        whole, others = [], []
        for operand in operands:
            function = self.substituted(operand)
            if self.variable in operand.free_symbols and self.is_function(function):
                whole.append(function)
            else:
                others.append(operand)
        return whole, others

    def as_function(self, expr: sp.Expr) -> sp.Expr | None:
        """Return u, a polynomial in it or the symbol of a function of u; None if it is none."""
        found = self.substituted(expr)
        return self.generator(found) if self.is_function(found) else None

    def generator(self, function: sp.Expr) -> sp.Expr:
        if function.is_polynomial(ARGUMENT):
            return function
        # Constants stand outside, so that equal functions are seen to be equal.
        constant, function = function.as_independent(ARGUMENT, as_Add=True)
        factor, function = function.as_independent(ARGUMENT, as_Add=False)
        known = {f: symbol for symbol, f in self.functions.items()}
        symbol = known.get(function) or sp.Dummy("g", real=True)
        self.functions[symbol] = function
        return constant + factor * symbol

    def is_linear(self, term: sp.Expr) -> bool:
        z, node = self.variable, self.store.node
        if not term.is_polynomial(z, node):
            return False
        held = term.free_symbols & set(self.store.marks.values())
        return not held and sp.Poly(term, node, z, domain=sp.EXRAW).total_degree() <= 1

    def substituted(self, expr: sp.Expr) -> sp.Expr:
        argument = self.in_argument(expr)
        if argument is not None:
            return argument
        if self.variable not in expr.free_symbols or not expr.args:
            return expr
        return expr.func(*(self.substituted(operand) for operand in expr.args))

    def is_function(self, expr: sp.Expr) -> bool:
        excluded = {self.variable, self.store.node, *self.store.marks.values()}
        return expr.free_symbols.isdisjoint(excluded)


@dataclass(frozen=True)
class _Marked:
    """An integrand as a polynomial in z, u and symbols for functions of u."""

    expr: sp.Expr
    functions: Mapping[sp.Symbol, sp.Expr]
    variable: sp.Symbol


def _polynomial_mean(expr: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    """Return the expectation of a polynomial in z: odd moments vanish, E z^2n = (2n − 1)!!."""
    terms = sp.Poly(expr, variable, domain=sp.EXRAW).terms()
    return sp.Add(*(c * sp.factorial2(n - 1) for (n,), c in terms if n % 2 == 0))


def _weak_derivative(function: sp.Expr) -> sp.Expr:
    # A continuous function has no point masses, whatever SymPy writes for its parts.
    return function.diff(ARGUMENT).replace(sp.DiracDelta, lambda *_: sp.S.Zero)


def _constant_ratio(first: sp.Expr, second: sp.Expr) -> sp.Expr | None:
    """Return the constant q with first = q second, None if none is found."""
    above, below = _by_functions(first), _by_functions(second)
    term = next((term for term in above if term in below), None)
    if term is None:
        return None
    ratio = above[term] / below[term]
    return ratio if expanded(first - ratio * second) == 0 else None


def _by_functions(expr: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Return {function of u: its constant factor} for the terms of a sum."""
    terms = (term.as_independent(ARGUMENT) for term in sp.Add.make_args(expanded(expr)))
    return {function: constant for constant, function in terms if constant != 0}


def _is_continuous(function: sp.Expr) -> bool:
    """Whether a function has no jumps, as far as can be proven; constants are left alone."""
    try:
        return not find_kinks(function, ARGUMENT)[1]
    except UnsupportedExpressionError:
        return False


def is_power(expr: sp.Expr) -> bool:
    return bool(expr.is_Pow and expr.exp.is_Integer and expr.exp > 0)


def require_known(expr: sp.Expr, variable: sp.Symbol | None, place: str) -> None:
    """Refuse what has no continuation to complex numbers that is known."""
    for part in sp.preorder_traversal(expr):
        if part.is_Atom or part.is_Add or part.is_Mul or part.is_Pow:
            continue
        if is_known_function(part.func):
            continue
        kinked = variable is not None and isinstance(part, NONSMOOTH)
        if not kinked:
            raise refused(
                place,
                f"the function {type(part).__name__} in {short(part)} has no continuation to "
                "complex numbers that is known here",
            )


def refused(place: str, reason: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(f"{place} is refused for certification: {reason}")


def short(expr: sp.Basic) -> str:
    return str(expr)[:100]
