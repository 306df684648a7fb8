r"""Tables of a system of equations as Gaussian convolutions, entire in the node, and their balls.

A table such as :math:`\mu_0(\kappa) = \mathbb{E}_z\,\sigma(r\kappa + \sqrt c z)` is an entire
function of κ, whatever kinks and jumps σ has. The definitions of a system are written in

.. math:: t_{F,j}(\kappa) = \mathbb{E}_z\bigl[F(A'\kappa + B z)\, z^j\bigr]

and in functions of κ itself: an integrand becomes a polynomial in z, in :math:`u = A'\kappa + Bz`
and in functions of u alone, as large as can be, so that few have to be convolved. Nested
expectations, functions of two affine forms, case distinctions and functions without a known
continuation to complex numbers are refused by name. Two identities keep the result short and its
intervals narrow: a table in the definition of another one is replaced by its meaning, and, where F
is absolutely continuous and F φ vanishes far out (the first is read from the expression, the second
proven in :func:`table_balls`), Stein's lemma writes

.. math:: \mathbb{E}[F'(A'\kappa + Bz)\,z^j]
          = \frac{\mathbb{E}[F z^{j+1}] - j\,\mathbb{E}[F z^{j-1}]}{B} .

For parameters in balls, which have to show their declared signs and B > 0, tables become functions
of complex balls with proven tails. With :math:`|F(u)| \le K (1 + |u|)^N e^{a|u| + qu^2}` on the
whole line and v = 1 − 2qB² > 0, completing the square turns the law of z into the normal one with
mean 2qBA/v and variance 1/v, A = A'κ; with t = |κ| >= 1 and a standard normal y

.. math:: |t(\kappa)| \le \frac{K}{\sqrt v} e^{qA'^2t^2/v}\, t^{N + j} e^{g|A'|t}\;
   \mathbb{E}\Bigl[(1 + g'|A'| + B|y|/\sqrt v)^N (h|A'| + |y|/\sqrt v)^j e^{aB|y|/\sqrt v}\Bigr],

h = 2qB/v, g' = 1 + hB, g = a g'. The mean is a finite sum of
:math:`\mathbb{E}|y|^m e^{b|y|} \le 2e^{b^2/2}\,\mathbb{E}(|y| + b)^m`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import (
    AssumptionError,
    CertificationError,
    UndecidedError,
    UnsupportedExpressionError,
)
from ..exact.ball_functions import (
    Ball,
    BallEvaluator,
    BallFunction,
    is_known_function,
    require_flint,
)
from ..expressions._singularities import NONSMOOTH, expanded, find_kinks
from ..expressions.averages import Average, outermost
from ..expressions.piecewise_polynomials import without_extrema
from .accuracy import rewrite_for_accuracy
from .enclosures import analytic_branches
from .expectation import GaussianExpectation
from .tail_analysis import Growth, TailAnalysis, TailBound, is_real_valued, smooth_growth

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

    `node`: κ. `marks`: tables as plain symbols, which integrands may hold.
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
        result = (poly.coeff_monomial(node), poly.coeff_monomial(z), poly.coeff_monomial(1))
        tables = set(self.store.marks.values())
        held = set().union(*(coefficient.free_symbols for coefficient in result))
        return result if held.isdisjoint(tables | {z, node}) and result[1] != 0 else None

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
        result = self.as_function(expr)
        if result is not None:
            return result
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
        result = self.as_function(expanded(expr.xreplace({self.variable: inverse})))
        if result is None:
            affine = self.form.slope * self.store.node + self.form.spread * self.variable
            raise refused(
                self.place,
                f"{short(expr)} is no function of the one affine form {affine} with constant "
                "coefficients",
            )
        return result

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
        result = self.substituted(expr)
        return self.generator(result) if self.is_function(result) else None

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


@dataclass(frozen=True)
class Convolution:
    r"""Averages :math:`\mathbb{E}_z[F_i(A'\kappa + Bz) z^j]` that share an affine form.

    `slope`, `spread`: A' and B, in the parameters. `functions`: F_i, in :data:`ARGUMENT` and
    parameters. `moments`: the pairs (i, j) that are wanted. `values`: what stands for each of them
    in the tables.
    """

    slope: sp.Expr
    spread: sp.Expr
    functions: tuple[sp.Expr, ...]
    moments: tuple[tuple[int, int], ...]
    values: tuple[sp.Symbol, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{value} = E_z[F({self.slope}*node + {self.spread}*z) z^{j}], F = {self.functions[i]}"
            for value, (i, j) in zip(self.values, self.moments, strict=True)
        )


@dataclass(frozen=True)
class GaussianTables:
    r"""Tables as expressions in Gaussian convolutions; made by :func:`gaussian_tables`.

    Attributes
    ----------
    node : Symbol
        κ.
    functions : tuple of applied functions
        The tables, in the order of the definitions.
    expressions : tuple of Expr
        What they are, in the node, the parameters and the values below.
    nonnegative : tuple of bool
        Whether a table is proven to be nonnegative by the structure of its definition, as the mean
        of a square is; what a table is declared to be counts for nothing.
    convolutions : tuple of Convolution
    directs : tuple of (Symbol, Expr)
        Functions of the node that are no averages, and the symbols that stand for them.
    """

    node: sp.Symbol
    functions: tuple[sp.Expr, ...]
    expressions: tuple[sp.Expr, ...]
    nonnegative: tuple[bool, ...]
    convolutions: tuple[Convolution, ...]
    directs: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @property
    def parameters(self) -> frozenset[sp.Symbol]:
        """Symbols that need a value."""
        parts = [*self.expressions, *(f for _, f in self.directs)]
        for convolution in self.convolutions:
            parts += [convolution.slope, convolution.spread, *convolution.functions]
        known = {self.node, ARGUMENT, *(symbol for symbol, _ in self.directs)}
        known = known.union(*(convolution.values for convolution in self.convolutions))
        return frozenset(set().union(*(part.free_symbols for part in parts)) - known)

    def balls(self, values: Mapping[sp.Symbol, Ball]) -> TableBalls:
        """Return everything as functions of balls; see :func:`table_balls`.

        `values`: of the parameters. The precision that is set now is that of all constants.
        """
        return table_balls(self, values)

    def __str__(self) -> str:
        lines = [str(convolution) for convolution in self.convolutions]
        lines += [f"{symbol} = {f}" for symbol, f in self.directs]
        lines += [f"{f} = {e}" for f, e in zip(self.functions, self.expressions, strict=True)]
        return "\n".join(lines)


def gaussian_tables(definitions: Mapping[sp.Expr, sp.Expr], node: sp.Symbol) -> GaussianTables:
    """Write tables as expressions in Gaussian convolutions.

    `definitions`: functions of the node, each referring to earlier ones only, with expectations
    that are not evaluated (:class:`.gaussian.expectation.GaussianExpectation`). `node`: κ, declared
    real. Raises UnsupportedExpressionError if a definition does not have the form that the module
    describes; the message names the table and the function.

    Examples
    --------
    >>> x, z = sp.symbols("x z", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> mean, left = sp.Function("mean", real=True)(x), sp.Function("left", real=True)(x)
    >>> f = sp.tanh(x + sp.sqrt(c) * z)
    >>> print(gaussian_tables({mean: GaussianExpectation(f, z),
    ...                        left: GaussianExpectation((f - mean)**2, z)}, x))
    _t0 = E_z[F(1*node + sqrt(c)*z) z^0], F = tanh(u)
    _t1 = E_z[F(1*node + sqrt(c)*z) z^0], F = tanh(u)**2
    mean(x) = _t0
    left(x) = -_t0**2 + _t1
    """
    worker = _Worker(node)
    for function, definition in definitions.items():
        worker.add(function, definition)
    return worker.result()


class _Worker:
    def __init__(self, node: sp.Symbol) -> None:
        self.node = node
        self.store = FormStore(node)
        self.directs: dict[sp.Expr, sp.Symbol] = {}
        # Each table as a plain real symbol while integrands are expanded, and its meaning.
        self.marks = self.store.marks
        self.meaning: dict[sp.Expr, sp.Expr] = {}
        self.nonnegative: list[bool] = []

    def add(self, function: sp.Expr, definition: sp.Expr) -> None:
        definition = without_extrema(definition)
        place = f"table {function}"
        self.nonnegative.append(_is_nonnegative(definition.xreplace(self.marks), self.node))
        expr = definition.xreplace(self.marks)
        stray = expr.atoms(AppliedUndef)
        if stray:
            raise refused(place, f"{stray.pop()} has no definition before it")
        result: dict[sp.Expr, sp.Expr] = {}
        for average in outermost(expr):
            inside = [n for n in average.args[0].atoms(Average) if n.free_symbols]
            if not isinstance(average, GaussianExpectation) or inside:
                shown = inside[0] if inside else average
                raise refused(place, f"the average {short(shown)} is nested or not Gaussian")
            result[average] = Integrand(self.store, average, place).expanded()
        values = {mark: self.meaning[f] for f, mark in self.marks.items()}
        expr = self.direct(expr.xreplace(result), place).xreplace(values)
        # What cancels exactly does not widen intervals later.
        self.meaning[function] = sp.expand(expr)
        mark = sp.Dummy(str(function.func), real=True, nonnegative=self.nonnegative[-1] or None)
        self.marks[function] = mark

    def direct(self, expr: sp.Expr, place: str) -> sp.Expr:
        """Replace functions of the node alone by symbols."""
        averages = {value for form in self.store.forms for value in form.values.values()}
        derived = averages.union(self.marks.values())
        if expr.is_Symbol or expr.free_symbols.isdisjoint(derived | {self.node}):
            return expr
        if expr.is_Add or expr.is_Mul or is_power(expr):
            return expr.func(*(self.direct(operand, place) for operand in expr.args))
        if expr.free_symbols.isdisjoint(derived):
            require_known(expr, self.node, place)
            if expr not in self.directs:
                self.directs[expr] = self.store.symbol("d")
            return self.directs[expr]
        require_known(expr, None, place)
        return expr.func(*(self.direct(operand, place) for operand in expr.args))

    def result(self) -> GaussianTables:
        expressions = tuple(self.meaning.values())
        used = set().union(*(e.free_symbols for e in expressions))
        names: dict[sp.Symbol, sp.Symbol] = {}
        convolutions = []
        for form in self.store.forms:
            keys = [key for key, value in form.values.items() if value in used]
            remaining = sorted({i for i, _ in keys})
            for key in keys:
                names[form.values[key]] = sp.Dummy(f"t{len(names)}", real=True)
            if keys:
                convolutions.append(
                    Convolution(
                        form.slope,
                        form.spread,
                        tuple(form.functions[i] for i in remaining),
                        tuple((remaining.index(i), j) for i, j in keys),
                        tuple(names[form.values[key]] for key in keys),
                    )
                )
        directs = {symbol: f for f, symbol in self.directs.items() if symbol in used}
        return GaussianTables(
            self.node,
            tuple(self.meaning),
            tuple(e.xreplace(names) for e in expressions),
            tuple(self.nonnegative),
            tuple(convolutions),
            tuple(directs.items()),
        )


def _is_nonnegative(expr: sp.Expr, variable: sp.Symbol) -> bool:
    """Whether the structure of an expression proves it: squares, means, sums, products of these."""
    if expr.is_extended_nonnegative:
        return True
    if isinstance(expr, GaussianExpectation):
        return _is_nonnegative(expr.integrand, expr.variable)
    if expr.is_Add or expr.is_Mul:
        return all(_is_nonnegative(operand, variable) for operand in expr.args)
    even = expr.is_Pow and expr.exp.is_Integer and expr.exp % 2 == 0
    return bool(even and is_real_valued(expr.base, variable))


# Beyond it, where a tail begins to be simple, the sup up to there is not looked for.
_FARTHEST = 10_000
_HALVINGS = 12


@dataclass(frozen=True)
class BranchBalls:
    """An analytic branch of a function between two points.

    `function`: ``function(ball, analytic)``, as :class:`.ball_functions.BallEvaluator` makes them.
    `left`, `right`: the ends; None for infinity.
    """

    function: BallFunction
    left: Ball | None
    right: Ball | None


@dataclass(frozen=True)
class BranchedBalls:
    """A function by its branches from left to right.

    `tails`: of its absolute value towards −∞ and +∞.
    """

    branches: tuple[BranchBalls, ...]
    tails: tuple[TailBound, TailBound]

    @property
    def ends(self) -> list[Ball]:
        """The points between the branches."""
        return [branch.left for branch in self.branches if branch.left is not None]

    def largest(self, reach: Ball) -> Ball:
        """Return an upper bound of the absolute value up to a distance from 0.

        Raises CertificationError if the function is not bounded there, as far as evaluation shows.
        """
        total = 0 * reach
        for branch in self.branches:
            left = -reach if branch.left is None else (-reach).max(branch.left)
            right = reach if branch.right is None else reach.min(branch.right)
            if not right < left:
                total = total.max(_largest(branch.function, left.lower(), right.upper()))
        return total.upper()


@dataclass(frozen=True)
class ConvolutionBalls:
    """Averages E_z[F_i(offset + slope·κ + spread·z) z^j], for the pairs (i, j) of `moments`."""

    functions: tuple[BranchedBalls, ...]
    moments: tuple[tuple[int, int], ...]
    slope: Ball
    offset: Ball
    spread: Ball


@dataclass(frozen=True)
class DirectBalls:
    """A function of the node itself."""

    function: BranchedBalls


@dataclass(frozen=True)
class TableBalls:
    """Tables as functions of balls.

    `combine`: from the values [node, moments of the convolutions one after the other, directs], all
    real or all complex balls, to [node, tables in the order of the definitions]. Where a table is
    more than a polynomial of these, the result is finite only where it is analytic. `breaks`: where
    directs have kinks. `growth`: of the tables in t = \\|node\\|, for both directions at once.
    """

    convolutions: tuple[ConvolutionBalls, ...]
    directs: tuple[DirectBalls, ...]
    combine: Callable[[Sequence[Ball]], list[Ball]]
    breaks: tuple[Ball, ...]
    growth: tuple[Growth, ...]


def table_balls(tables: GaussianTables, values: Mapping[sp.Symbol, Ball]) -> TableBalls:
    """Return tables as functions of balls, at the precision that is set.

    Parameters
    ----------
    tables : GaussianTables
    values : mapping from Symbol to real ball
        Of the parameters of the definitions.

    Raises
    ------
    CertificationError
        If the width of a convolution is not proven to be positive, a parameter may have another
        sign than it is declared with, or a function is not bounded between its tails.
    AssumptionError
        If an expectation is not known to exist.
    UnsupportedExpressionError
        If a parameter has no value, or a function cannot be enclosed or bounded.
    """
    missing = sorted(map(str, tables.parameters - values.keys()))
    if missing:
        raise UnsupportedExpressionError(f"parameters without a value: {', '.join(missing)}")
    _require_declared_signs(values)
    evaluator = BallEvaluator(values)
    convolutions = tuple(_convolution(c, evaluator) for c in tables.convolutions)
    directs = tuple(_branched(f, tables.node, evaluator) for _, f in tables.directs)
    known: dict[sp.Symbol, Growth] = {}
    for symbolic, balls in zip(tables.convolutions, convolutions, strict=True):
        bounds = [_global_bound(f) for f in balls.functions]
        for value, (i, j) in zip(symbolic.values, balls.moments, strict=True):
            size = _mean_growth(bounds[i], j, balls, symbolic.functions[i])
            known[value] = Growth(size)
    for (symbol, _), f in zip(tables.directs, directs, strict=True):
        known[symbol] = Growth(f.tails[0].union(f.tails[1]))
    one = evaluator.real_constant(sp.S.One)
    known[tables.node] = Growth(TailBound(one, one, 0 * one, 0 * one, one))
    analysis = TailAnalysis(evaluator, known)
    growth = tuple(
        Growth(analysis.size(expr), 0 * one if nonnegative else None)
        for expr, nonnegative in zip(tables.expressions, tables.nonnegative, strict=True)
    )
    return TableBalls(
        convolutions,
        tuple(DirectBalls(f) for f in directs),
        _combination(tables, evaluator),
        tuple(end for f in directs for end in f.ends),
        growth,
    )


def _require_declared_signs(values: Mapping[sp.Symbol, Ball]) -> None:
    for symbol, value in values.items():
        for sign, declared, holds in (
            ("positive", symbol.is_positive, value > 0),
            ("nonnegative", symbol.is_nonnegative, value >= 0),
            ("negative", symbol.is_negative, value < 0),
            ("nonpositive", symbol.is_nonpositive, value <= 0),
        ):
            if declared and not holds:
                raise CertificationError(
                    f"the parameter {symbol} is not proven to be {sign}: it lies in {value.str(5)}"
                )


def _convolution(convolution: Convolution, evaluator: BallEvaluator) -> ConvolutionBalls:
    spread = evaluator.real_constant(convolution.spread)
    if not spread > 0:
        raise CertificationError(
            f"the width {convolution.spread} of the Gaussian that smooths "
            f"{convolution.functions[0]} is not proven to be positive: it lies in {spread.str(5)}"
            "\n  where it is exactly zero, use the aligned or unspiked special case"
        )
    return ConvolutionBalls(
        tuple(_branched(f, ARGUMENT, evaluator) for f in convolution.functions),
        convolution.moments,
        evaluator.real_constant(convolution.slope),
        0 * spread,
        spread,
    )


def _branched(f: sp.Expr, variable: sp.Symbol, evaluator: BallEvaluator) -> BranchedBalls:
    try:
        branches = analytic_branches(f, variable, evaluator)
    except UndecidedError as error:
        raise CertificationError(f"{error}; more digits may decide it") from None
    ends = [None if b.left is None else evaluator.real_constant(b.left) for b in branches]
    tails = (
        smooth_growth(branches[0].expr, variable, -1, evaluator),
        smooth_growth(branches[-1].expr, variable, 1, evaluator),
    )
    if ends[1:]:
        # The branches far out hold beyond the last kink only.
        beyond = functools.reduce(
            lambda x, y: x.max(y), (abs(end) for end in ends[1:] if end is not None)
        ).upper()
        tails = (tails[0].since(beyond), tails[1].since(beyond))
    result = [
        BranchBalls(evaluator.function(_accurate(branch.expr), variable), left, right)
        for branch, (left, right) in zip(branches, itertools.pairwise([*ends, None]), strict=True)
    ]
    return BranchedBalls(tuple(result), tails)


@functools.lru_cache(maxsize=256)
def _accurate(expr: sp.Expr) -> sp.Expr:
    """Return an equal form in which little cancels, as erfc(−u) for 1 + erf(u)."""
    # Equal on the line, so the continuations are the same where both are analytic.
    result = rewrite_for_accuracy(expr)
    known = all(is_known_function(f.func) for f in result.atoms(sp.Function))
    return result if known and not result.has(sp.Piecewise) else expr


def _combination(
    tables: GaussianTables, evaluator: BallEvaluator
) -> Callable[[Sequence[Ball]], list[Ball]]:
    variables = [tables.node]
    variables += [value for c in tables.convolutions for value in c.values]
    variables += [symbol for symbol, _ in tables.directs]
    together = evaluator.functions(tables.expressions, variables)
    arb, acb = evaluator.flint.arb, evaluator.flint.acb

    def combine(values: Sequence[Ball]) -> list[Ball]:
        real = isinstance(values[0], arb)
        points = [acb(value) for value in values] if real else values
        result = together(points, not real)
        return [values[0], *((table.real for table in result) if real else result)]

    return combine


def _largest(function: BallFunction, left: Ball, right: Ball) -> Ball:
    """Bound a function on an interval by evaluation on its parts."""
    total = 0 * left
    pieces = math.ceil(float((right - left).upper())) * 2 + 1
    for i in range(pieces):
        a = left + (right - left) * i / pieces
        b = left + (right - left) * (i + 1) / pieces
        total = total.max(_size_between(function, a.union(b), _HALVINGS))
    return total.upper()


def _size_between(function: BallFunction, interval: Ball, halvings: int) -> Ball:
    value = function(require_flint().acb(interval), False).abs_upper()
    if value.is_finite():
        return value
    if not halvings:
        raise CertificationError(
            f"a function of the tables is not bounded near {float(interval.mid()):.6g}, as far as "
            "can be proven"
        )
    left, middle, right = interval.lower(), interval.mid(), interval.upper()
    parts = (left.union(middle), middle.union(right))
    first, second = (_size_between(function, part, halvings - 1) for part in parts)
    return first.max(second)


@dataclass(frozen=True)
class _GlobalBound:
    """\\|F(u)\\| <= constant (1 + \\|u\\|)**power exp(rate \\|u\\| + curvature u²) on the line."""

    constant: Ball
    power: int
    rate: Ball
    curvature: Ball


def _global_bound(f: BranchedBalls) -> _GlobalBound:
    tail = f.tails[0].union(f.tails[1])
    if not tail.start < _FARTHEST:
        raise CertificationError(
            f"the growth of a function of the tables is known from {tail.start.str(5)} on only"
        )
    zero = 0 * tail.constant
    power = tail.power.max(zero).upper()
    whole = math.floor(float(power))
    while not whole >= power:
        whole += 1
    return _GlobalBound(
        tail.constant.max(f.largest(tail.start)).upper(),
        whole,
        tail.rate.max(zero).upper(),
        tail.curvature.max(zero).upper(),
    )


def _mean_growth(
    bound: _GlobalBound, j: int, balls: ConvolutionBalls, function: sp.Expr
) -> TailBound:
    """Bound E[F(A'κ + Bz) z^j] in t = |κ|, as the module says."""
    slope, spread = abs(balls.slope).upper(), balls.spread
    zero, one = 0 * spread, 0 * spread + 1
    v = 1 - 2 * bound.curvature * spread * spread
    if not v > 0:
        raise AssumptionError(
            f"E[F(A + B z)] is not known to exist for F = {str(function)[:100]} and "
            f"B = {spread.str(5)}: F may grow faster than exp(u**2/(2*B**2))"
        )
    narrow = 1 / v.sqrt()
    pull = 2 * bound.curvature * spread / v
    widened = 1 + pull * spread
    argument = [1 + widened * slope, spread * narrow]
    inner = [pull * slope, narrow]
    polynomial = require_flint().arb_poly
    powers = polynomial(argument) ** bound.power * polynomial(inner) ** j
    mean = _absolute_moment(powers.coeffs(), bound.rate * spread * narrow)
    degree = bound.power + (j if slope > 0 and bound.curvature > 0 else 0)
    return TailBound(
        (bound.constant * narrow * mean).upper(),
        zero + degree if slope > 0 else zero,
        (bound.rate * widened * slope).upper(),
        (bound.curvature * slope * slope / v).upper(),
        one,
    )


def _absolute_moment(coefficients: list[Ball], rate: Ball) -> Ball:
    """Bound E[p(|y|) exp(b |y|)] for a polynomial with nonnegative coefficients."""
    if rate == 0:
        return sum((c * _absolute(m, c) for m, c in enumerate(coefficients)), 0 * rate)
    total = 0 * rate
    for m, c in enumerate(coefficients):
        shifted = sum(
            (math.comb(m, i) * rate ** (m - i) * _absolute(i, rate) for i in range(m + 1)),
            0 * rate,
        )
        total = total + c * shifted
    return 2 * (rate * rate / 2).exp() * total


def _absolute(m: int, like: Ball) -> Ball:
    """Return E|y|^m of a standard normal y."""
    # E|y|^(2n) = (2n − 1)!!, E|y|^(2n + 1) = (2n)!! sqrt(2/π).
    result = 0 * like + 1
    for k in range(m - 1, 0, -2):
        result = result * k
    return result if m % 2 == 0 else result * (2 / type(like).pi()).sqrt()
