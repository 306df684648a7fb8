r"""Targets: functions of a few Gaussian directions, seen through their Hermite tensors.

A target is :math:`f(x) = g(x_1, \dots, x_r)` with :math:`x \sim \mathcal{N}(0, I_d)`, written in an
orthonormal frame of the r directions. All that gradients, leaps and staircases need of it is its
*symbol* :math:`F(\xi) = \mathbb{E} f(x + \xi) = \sum_\alpha (\mu_\alpha/\alpha!)\,\xi^\alpha`, here
by homogeneous parts: degree k of it is :math:`C_k[\xi, \dots, \xi]/k!` with the Hermite tensor
:math:`C_k = \mathbb{E}\nabla^k f`. Polynomials are exact at once; other functions are sums of
products of functions of one linear form each (:mod:`.ridge_terms`), of any degree.

Convention: :math:`\mu_\alpha = \mathbb{E}[f\,\mathrm{He}_\alpha]`, divided by nothing; the
coefficients in :math:`f = \sum c_\alpha \mathrm{He}_\alpha` are
:math:`c_\alpha = \mu_\alpha/\alpha!`.

:func:`ridge_target` takes sums of functions of one linear form each,

.. math:: f(x) = \sum_k c_k\, \sigma_k(\langle w_k, x\rangle)

The directions :math:`w_k` may be of any length, not orthogonal and linearly dependent; the argument
of :math:`\sigma_k` is :math:`\langle w_k, x\rangle` as given, a Gaussian variable of variance
:math:`|w_k|^2`. Only for unit vectors are the Hermite coefficients of :math:`\sigma_k` those of the
target: :math:`C_j = \sum_k c_k \mu_j(\sigma_k)\, w_k^{\otimes j}`, in which dependent directions
can cancel.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import sympy as sp

from ...errors import AssumptionError, ExpressionError, ParameterError, UnsupportedExpressionError
from ...pages import InLatex, shorten
from ..exact.polynomial_elements import checked_variables
from ..expressions._singularities import require_few_kinks
from ..expressions.activations import Activation, activation, z as _z
from ..expressions.arguments import is_array, on_arrays, text_of_function
from ..expressions.exact_numbers import require_evaluated, require_exact
from ..expressions.parser import (
    MAX_VARIABLES,
    Parameters,
    may_be_an_input,
    named_symbols,
    parse_expression,
    parse_target,
)
from ..expressions.piecewise_polynomials import by_steps, without_extrema
from ..expressions.regularity import require_square_integrable
from ..gaussian.rules import closed_form
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.expansion import HermiteExpansion
from ..hermite.tensors import hermite_tensor, orthogonal_matrix
from .cases import Case, CaseTree, by_cases
from .conditional_spans import HIGHEST_DEGREE, MultiIndex
from .ridge_norms import second_moment
from .ridge_terms import T, ridge_terms, truncated_symbol
from .spans import spans_of
from .subspaces import Subspace


@dataclass(frozen=True)
class PolynomialSize:
    """Upper bounds; cancellations are not seen.

    `degrees`: degree in each variable that occurs. `degree`: total degree. `monomials`: number of
    monomials. `hermite_terms`: number of products of Hermite polynomials that the expansion in them
    needs.
    """

    degrees: Counter[sp.Symbol]
    degree: int
    monomials: int
    hermite_terms: int


def polynomial_size(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> PolynomialSize:
    """Bound the size of an expression that is a polynomial in `variables`.

    Examples
    --------
    >>> x = sp.symbols("x1:5", real=True)
    >>> size = polynomial_size(sum(x) ** 20 + x[0] ** 30, x)
    >>> size.degree, size.monomials, size.hermite_terms
    (30, 1772, 10642)
    """
    if expr in variables:
        return PolynomialSize(Counter({expr: 1}), 1, 1, 1)
    if expr.is_Atom or not expr.has(*variables):
        return PolynomialSize(Counter(), 0, 1, 1)
    if isinstance(expr, sp.Add):
        parts = [polynomial_size(term, variables) for term in expr.args]
        degrees: Counter[sp.Symbol] = Counter()
        for part in parts:
            degrees |= part.degrees
        return _bounded(
            degrees,
            max(part.degree for part in parts),
            sum(part.monomials for part in parts),
            sum(part.hermite_terms for part in parts),
        )
    if isinstance(expr, sp.Mul):
        parts = [polynomial_size(factor, variables) for factor in expr.args]
        return _product(
            sum((part.degrees for part in parts), Counter()),
            sum(part.degree for part in parts),
            math.prod(part.monomials for part in parts),
        )
    base, exponent = expr.as_base_exp()
    part, n = polynomial_size(base, variables), int(exponent)
    return _product(
        Counter({x: n * m for x, m in part.degrees.items()}),
        n * part.degree,
        math.comb(part.monomials + n - 1, n),
    )


def _product(degrees: Counter[sp.Symbol], degree: int, monomials: int) -> PolynomialSize:
    # x^a is a sum of a//2 + 1 Hermite polynomials, and m + 1 <= 2^m.
    each = math.prod(m // 2 + 1 for m in degrees.values())
    return _bounded(degrees, degree, monomials, monomials * min(each, 2 ** min(degree // 2, 64)))


def _bounded(
    degrees: Counter[sp.Symbol], degree: int, monomials: int, hermite_terms: int
) -> PolynomialSize:
    everything = math.comb(len(degrees) + degree, degree)
    return PolynomialSize(
        degrees, degree, min(monomials, everything), min(hermite_terms, everything)
    )


MOST_TERMS = 10_000
"""A polynomial target may have this many Hermite coefficients."""

_COORDINATE = re.compile(r"x[0-9]+")
_LETTERS = ({"x", "y", "z"}, {"u", "v", "w"})


Result = TypeVar("Result")


@dataclass(frozen=True, repr=False)
class Target(InLatex):
    r"""A function of standard Gaussian coordinates x_1..x_r with finite second moment.

    Made by :func:`target`; the constructor does not check anything.

    Attributes
    ----------
    name : str
        The text the user gave, or that of the expression; not part of the value.
    expr : Expr
        The function, exact.
    variables : tuple of Symbol
        The coordinates, real, in order.
    parameters : tuple of Symbol
        The other symbols of the function.
    case : Case or None
        Values of the parameters that are looked at; None where none are chosen yet.

    Examples
    --------
    >>> f = target("x1*x2 + He(3, x1)")
    >>> f.he_coefficients(3), f.hermite_tensor(2), f.norm_squared
    ({(3, 0): 1}, [[0, 1], [1, 0]], 7)
    >>> target("relu(x1 - x2)").mean
    1/sqrt(pi)
    """

    name: str = field(compare=False)
    expr: sp.Expr
    variables: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...] = ()
    case: Case | None = None

    @property
    def dimension(self) -> int:
        """Number of coordinates r; f may depend on fewer directions."""
        return len(self.variables)

    @property
    def has_open_parameters(self) -> bool:
        """Whether there are parameters, and no case of their values is chosen."""
        return bool(self.parameters) and self.case is None

    @functools.cached_property
    def is_polynomial(self) -> bool:
        """Whether all Hermite tensors beyond some order vanish because f is a polynomial."""
        return bool(self.expr.is_polynomial(*self.variables))

    @property
    def degree(self) -> int | None:
        """Degree of a polynomial; None for other functions."""
        return self.expansion.degree if self.is_polynomial else None

    @property
    def expansion(self) -> HermiteExpansion:
        """The whole finite expansion of a polynomial.

        Raises
        ------
        AssumptionError
            If the target is not a polynomial.
        """
        if not self.is_polynomial:
            raise AssumptionError(
                f"target {self.name!r} is not a polynomial, so its expansion does not end; "
                "use he_coefficients(k) for one degree"
            )
        return _polynomial_expansion(self.expr, self.variables, self.parameters)

    def he_coefficients(self, k: int) -> Mapping[MultiIndex, sp.Expr]:
        r"""Return the coefficients c_α of He_α with \|α\| = k; plain zeros are left out.

        Parameters
        ----------
        k : int
            Total degree, 0 to `HIGHEST_DEGREE`.

        Returns
        -------
        dict
            Multi-index to exact number, or unevaluated 𝔼 where no rule gives a closed form.
        """
        if isinstance(k, bool) or not isinstance(k, int | sp.Integer):
            raise ParameterError(f"order k must be an integer, got {k!r}")
        if not 0 <= k <= HIGHEST_DEGREE:
            raise ParameterError(f"order k must be from 0 to {HIGHEST_DEGREE}, got {k}")
        if self.is_polynomial:
            parts = _polynomial_parts(self.expr, self.variables, self.parameters)
            return dict(parts.get(k, {}))
        symbol = truncated_symbol(self.expr, self.variables, k)
        return {alpha: c for alpha, c in symbol.items() if sum(alpha) == k}

    def symbol_part(self, k: int, point: Sequence[sp.Expr] | None = None) -> sp.Expr:
        r"""Return the homogeneous part of degree k of the symbol F, :math:`C_k[w,\dots,w]/k!`.

        Parameters
        ----------
        k : int
            Degree.
        point : sequence of Expr, optional
            Where; default: the variables themselves.
        """
        where = self.variables if point is None else self._components(point)
        return sp.Add(
            *(c * _monomial(where, alpha) for alpha, c in self.he_coefficients(k).items())
        )

    def symbol_gradient(self, k: int, point: Sequence[sp.Expr] | None = None) -> sp.Matrix:
        r"""Return the gradient of :meth:`symbol_part`, :math:`C_k[w^{k-1},\cdot]/(k-1)!`.

        Parameters
        ----------
        k : int
            Degree, at least 1.
        point : sequence of Expr, optional
            Where; default: the variables themselves.

        Returns
        -------
        column Matrix of r entries
        """
        if k == 0:
            raise ParameterError("order k must be at least 1: C_0 has no slot to leave open")
        where = self.variables if point is None else self._components(point)
        entries: list[list[sp.Expr]] = [[] for _ in where]
        for alpha, c in self.he_coefficients(k).items():
            for i, n in enumerate(alpha):
                if n:
                    lower = (*alpha[:i], n - 1, *alpha[i + 1 :])
                    entries[i].append(n * c * _monomial(where, lower))
        return sp.Matrix([sp.Add(*entry) for entry in entries])

    def _components(self, point: Sequence[sp.Expr]) -> tuple[sp.Expr, ...]:
        return checked_components(point, self.dimension, "point")

    def contract(self, k: int, point: Sequence[sp.Expr], *, leave: int = 0) -> sp.Expr:
        r"""Return the scalar :math:`C_k[w,\dots,w]`, or the vector :math:`C_k[w^{k-1},\cdot]`.

        Parameters
        ----------
        k : int
            Order of the tensor.
        point : sequence of Expr
            The components w_1..w_r.
        leave : int
            0 contracts all k slots, 1 leaves one open.

        Returns
        -------
        Expr, or column Matrix of r entries
        """
        if leave not in (0, 1) or leave > k:
            raise ParameterError(f"leave must be 0 or 1 and at most k = {k}, got {leave}")
        if leave == 0:
            return sp.factorial(k) * self.symbol_part(k, point)
        return sp.factorial(k - 1) * self.symbol_gradient(k, point)

    def hermite_tensor(self, k: int) -> sp.ImmutableDenseNDimArray:
        r"""Return :math:`C_k = \mathbb{E}\nabla^k f`, symmetric, of shape (r, …, r)."""
        ring = sp.ring([x.name for x in self.variables], sp.EXRAW)[0]
        return hermite_tensor(ring.from_dict(dict(self.he_coefficients(k))), k)

    @property
    def mean(self) -> sp.Expr:
        """E f = C_0."""
        return self.he_coefficients(0).get((0,) * self.dimension, sp.S.Zero)

    @property
    def norm_squared(self) -> sp.Expr:
        r"""E f², exact or with unevaluated 𝔼 nodes."""
        if self.is_polynomial:
            return self.expansion.norm_squared
        return second_moment(self.expr, self.variables)

    @property
    def relevant_subspace(self) -> Subspace:
        r"""V*, the span of the directions that f depends on, in :math:`\mathbb{R}^r`.

        Its orthogonal complement holds the directions along which f is constant.

        Examples
        --------
        >>> target("He(2, x1 - x3)").relevant_subspace.basis
        ((1, 0, -1),)
        """
        return spans_of(self).relevant_subspace

    def rotated(self, rotation: sp.MatrixBase | Sequence[Sequence[sp.Expr | int]]) -> Target:
        r"""Return x ↦ f(Rx), over the same coordinates.

        Parameters
        ----------
        rotation : Matrix, or sequence of r rows
            R, orthogonal, of exact numbers; reflections are allowed.

        Raises
        ------
        ParameterError
            If R is not of shape (r, r), or holds a float.
        AssumptionError
            If R is not orthogonal, which is decided exactly.

        Examples
        --------
        >>> target("5*x1*x2").rotated([[0, 1], [-1, 0]])
        Target('-5*x1*x2', variables x1, x2)
        """
        matrix = orthogonal_matrix(rotation, self.dimension)
        if self.is_polynomial:
            expr = self.expansion.rotate(matrix).polynomial()
        else:
            images = (
                sp.Add(*(a * x for a, x in zip(row, self.variables, strict=True)))
                for row in matrix.tolist()
            )
            expr = self.expr.xreplace(dict(zip(self.variables, images, strict=True)))
        return target(expr, self.variables)

    def with_values(self, values: Mapping[sp.Symbol, sp.Expr]) -> Target:
        """Return the target with exact numbers for parameters.

        Parameters
        ----------
        values : mapping of Symbol to Expr or number
            Parameters that are left out stay.

        Examples
        --------
        >>> f = target("x1 + a*x1*x2", parameters="a")
        >>> f.with_values({f.parameters[0]: 2})
        Target('2*x1*x2 + x1', variables x1, x2)
        """
        foreign = [x for x in values if x not in self.parameters]
        if foreign:
            raise ParameterError(
                f"{foreign[0]} is no parameter of target {shorten(self.name)!r}, which has "
                f"{', '.join(map(str, self.parameters)) or 'none'}"
            )
        numbers = {x: require_exact(value, f"values[{x}]") for x, value in values.items()}
        return target(self.expr.xreplace(numbers), self.variables)

    def vanish(self, numbers: Sequence[sp.Expr], what: str) -> bool:
        """Whether all of some constants of the target are zero; `what` names them in errors.

        With parameters the case of the target answers.
        """
        if self.case is None:
            return all(is_exactly_zero(number, what) for number in numbers)
        return self.case.decide(numbers)

    def by_cases(self, compute: Callable[[Target], Result], subject: str) -> CaseTree[Result]:
        """Return what a computation gives for all values of the parameters, case by case.

        Parameters
        ----------
        compute : callable
            From the target in one case.
        subject : str
            What is computed.

        Raises
        ------
        UnsupportedExpressionError
            If a direction of a function depends on the parameters, as in tanh(x1 + a*x2), or a
            function of them is not known to be real.
        """
        self._require_fixed_directions()
        start = Case(self.parameters)
        for node in sp.preorder_traversal(self.expr):
            if node.is_Pow and node.exp.is_Integer and node.exp.is_negative:
                base, symbols = node.base, node.base.free_symbols
                if symbols & {*self.parameters} and not symbols & {*self.variables}:
                    start = start.where_some_do_not((base,))
        return by_cases(
            start, lambda case: compute(self.in_case(case)), f"{subject} of {self.name}"
        )

    def specialised(self) -> Target:
        """Return it with what the equations of its case say of the parameters put in.

        Examples
        --------
        >>> f = target("x1 + a*x2 + b*x1*x2", parameters="a b")
        >>> a, b = f.parameters
        >>> replace(f, case=Case((a, b)).where_all_vanish((a - b,))).specialised().expr
        b*x1*x2 + b*x2 + x1
        """
        if self.case is None or not self.case.solved:
            return self
        return replace(self, expr=self.expr.xreplace(self.case.solved))

    def in_case(self, case: Case) -> Target:
        """Return it for the values of the parameters in a case."""
        # Of a function of a parameter is not seen what it is at a value.
        expr = self.expr if self.is_polynomial else case.specialised(self.expr)
        return replace(self, expr=expr, case=case)

    def _require_fixed_directions(self) -> None:
        if self.is_polynomial:
            return
        for term in ridge_terms(self.expr, self.variables, radial=True):
            for ridge in term.ridges:
                if any(entry.free_symbols for entry in ridge.direction):
                    raise UnsupportedExpressionError(
                        f"target {shorten(self.name)!r} holds {ridge.expr.xreplace({T: _z})} of "
                        f"z = <w, x> with w = ({', '.join(map(str, ridge.direction))}), which "
                        "depends on the parameters; a function of one linear form may have "
                        "parameters, as tanh(a*x1 + b), but its direction not: give values to "
                        "them, or use coordinates in which it is an axis"
                    )

    def __call__(self, inputs: Any) -> Any:
        """Return the values at inputs.

        Parameters
        ----------
        inputs : ndarray
            Of shape (..., r): x1, ..., xr along the last axis.

        Raises
        ------
        ParameterError
            If it is no array of that shape, or the target has parameters without values.

        Examples
        --------
        >>> import numpy as np
        >>> target("x1 + x1*x2")(np.array([[1.0, 2.0], [3.0, 0.0]]))
        array([3., 3.])
        """
        names = ", ".join(map(str, self.variables))
        if self.parameters:
            raise ParameterError(
                f"target {shorten(self.name)!r} has values where its parameters have: "
                f"with_values({{{', '.join(f'{x}: ...' for x in self.parameters)}}}) first"
            )
        if not is_array(inputs) or inputs.shape[-1] != len(self.variables):
            raise ParameterError(
                f"inputs must be an array with {names} along its last axis, got one of shape "
                f"{getattr(inputs, 'shape', ())}"
            )
        columns = [inputs[..., k] for k in range(len(self.variables))]
        return on_arrays(self.expr, self.variables, columns)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        named = f", parameters {', '.join(map(str, self.parameters))}" if self.parameters else ""
        return f"Target({self.name!r}, variables {', '.join(map(str, self.variables))}{named})"

    def latex(self) -> str:
        """Return the function in LaTeX, without delimiters."""
        return f"f(x) = {sp.latex(self.expr)}"


def target(
    spec: str | sp.Expr | Activation | Target,
    variables: Sequence[sp.Symbol] | None = None,
    *,
    parameters: Parameters = True,
    argument: str = "target",
) -> Target:
    r"""Return the target that a text or an expression stands for.

    Parameters
    ----------
    spec : str, Expr, Activation or Target
        Text in x1, x2, … (see :func:`.parser.parse_target`), a SymPy expression, or an activation,
        which is taken as a function of x1.
    variables : sequence of Symbol, optional
        Coordinates in order, real or without assumptions; all other symbols are then parameters. By
        default x1, x2, …, and in an expression without these its symbols, sorted by name, if all
        are coordinates: a single symbol, symbols of one name with numbers such as w1, w2, or
        letters of x, y, z or of u, v, w.
    parameters : bool, str, sequence or mapping
        Names or symbols of parameters, as "a b" or [a, b], which a text may hold only if they are
        named; a mapping declares their kinds, as {"a": "positive"}. Of an expression the symbols
        beside x1, x2, … are parameters by themselves. False refuses them.
    argument : str
        How the user knows the target; error messages name it.

    Returns
    -------
    Target
        With real coordinates, whatever was declared of those in the expression. Parameters stay
        the symbols they are, and stand for real numbers with the signs they are declared with.

    Raises
    ------
    ExpressionError
        If a text is no expression in x1, x2, … and the parameters, two symbols have one name, or a
        symbol may be a coordinate as well as a parameter: y in x1 + y*x1*x2.
    AssumptionError
        If :math:`\mathbb{E} f^2` is not finite.
    UnsupportedExpressionError
        If f is not a sum of products of functions of one linear form each, or is too large.
    ParameterError
        If an expression holds a floating-point number: :func:`.exact_numbers.rationalized` converts
        it explicitly. Decimals in a text are exact.

    Examples
    --------
    >>> a, x1, x2 = sp.symbols("a x1 x2")
    >>> target(x1 + a * x1 * x2).parameters, target("x1 + a*x1*x2", parameters="a").variables
    ((a,), (x1, x2))
    """
    if isinstance(spec, Target):
        if spec.parameters and parameters is False:
            raise _without_values(spec.name, spec.parameters, argument)
        return spec
    declared = named_symbols(parameters)
    if isinstance(spec, Activation):
        x1 = sp.Symbol("x1", real=True)
        named = _checked_parameters(spec.expr, (_z,), parameters, declared, spec.name, argument)
        if any(parameter.name == x1.name for parameter in named):
            raise ExpressionError(
                f"{argument} {shorten(spec.name)!r} has a parameter named x1, as the coordinate "
                "that takes the place of z; rename the parameter"
            )
        return Target(spec.name, spec.expr.xreplace({_z: x1}), (x1,), named)
    if isinstance(spec, str):
        if variables is None:
            try:
                expr, coordinates = parse_target(spec, parameters=declared, argument=argument)
            except ExpressionError as error:
                if "unknown name" not in str(error):
                    raise
                hint = "a parameter has to be named: parameters='a', or --parameter a"
                if parameters is False:
                    hint = "numbers are needed here: write one in place of a parameter"
                raise ExpressionError(f"{error}\n  {hint}") from None
        else:
            coordinates = tuple(sp.Symbol(x.name, real=True) for x in checked_variables(variables))
            known = {x.name: x for x in (*declared.values(), *coordinates)}
            expr = parse_expression(spec, known, argument=argument)
        name = spec.strip()
    elif isinstance(spec, sp.Expr):
        expr, coordinates = _with_real_coordinates(spec, variables, declared, argument)
        name = str(spec)
    else:
        raise ParameterError(
            f"{argument} has to be a text such as 'x1*x2 + He(3, x1)' or a SymPy expression, "
            f"not {spec!r}{'; ' * callable(spec)}{text_of_function(spec)}"
        )
    if not coordinates:
        raise ExpressionError(
            f"{argument} {name!r} has no coordinates; use x1, x2, ... as in 'x1 + x1*x2'"
        )
    named = _checked_parameters(expr, coordinates, parameters, declared, name, argument)
    made = Target(name, expr, coordinates, named)
    _check(made, argument)
    return made


def closed_target(
    spec: str | sp.Expr | Activation | Target,
    variables: Sequence[sp.Symbol] | None = None,
    *,
    argument: str = "target",
) -> Target:
    """Return a target without parameters, as :func:`target` does, for what needs numbers."""
    return target(spec, variables, parameters=False, argument=argument)


def _checked_parameters(
    expr: sp.Expr,
    coordinates: Sequence[sp.Symbol],
    parameters: Parameters,
    declared: Mapping[str, sp.Symbol],
    name: str,
    argument: str,
) -> tuple[sp.Symbol, ...]:
    """Return the parameters of a function, in the order in which they were named."""
    used = expr.free_symbols - set(coordinates)
    if used and parameters is False:
        raise _without_values(name, sorted(used, key=_by_number), argument)
    foreign = sorted(used - set(declared.values()), key=_by_number)
    if foreign and not isinstance(parameters, bool):
        raise ExpressionError(
            f"{argument} {shorten(name)!r} holds {', '.join(map(str, foreign))}, which is neither "
            "a coordinate nor among the parameters; name it in one of them"
        )
    for symbol in used:
        if symbol.is_extended_real is False or symbol.is_zero:
            raise ParameterError(
                f"the parameter {symbol} of {argument} must stand for real numbers; "
                "declare it with real=True or a sign"
            )
    return (*(x for x in declared.values() if x in used), *foreign)


def _without_values(name: str, parameters: Sequence[sp.Symbol], argument: str) -> ExpressionError:
    names = ", ".join(map(str, parameters))
    return ExpressionError(
        f"{argument} {shorten(name)} holds {names}: numbers are needed here, not parameters\n"
        f"  inputs are x1, x2, ...; give a number for a parameter, as expr.subs({parameters[0]}, 2)"
    )


def _with_real_coordinates(
    spec: sp.Expr,
    variables: Sequence[sp.Symbol] | None,
    declared: Mapping[str, sp.Symbol],
    argument: str,
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    require_evaluated(require_exact(spec, argument), argument)
    if variables is not None:
        checked_variables(variables)
    names = [symbol.name for symbol in {*(variables or ()), *spec.free_symbols}]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ExpressionError(
            f"{argument} {spec} has two different symbols named {twice[0]!r}: same name, different "
            "assumptions; build the expression and `variables` from the same Symbol objects"
        )
    given = list(variables) if variables is not None else _coordinates(spec, declared, argument)
    foreign = {*spec.free_symbols} - {*given, *declared.values()}
    missing = sorted(x.name for x in foreign if _COORDINATE.fullmatch(x.name))
    if missing:
        raise ExpressionError(
            f"{argument} {spec} holds {', '.join(missing)}, which `variables` does not; name it "
            "there, or among the parameters"
        )
    if given:
        # Of a positive x SymPy has already written abs(x) as x.
        checked_variables(given)
    real = [sp.Symbol(symbol.name, real=True) for symbol in given]
    # A replacement by themselves rebuilds all of a long polynomial.
    expr = spec if given == real else spec.xreplace(dict(zip(given, real, strict=True)))
    return without_extrema(by_steps(expr, real), argument), tuple(real)


def _coordinates(
    spec: sp.Expr, declared: Mapping[str, sp.Symbol], argument: str
) -> list[sp.Symbol]:
    """Return the symbols of an expression that are coordinates; refuse what may be either."""
    free = sorted(spec.free_symbols - set(declared.values()), key=_by_number)
    numbered = [x for x in free if _COORDINATE.fullmatch(x.name)]
    if not numbered:
        _require_coordinates(spec, free, argument)
        return free
    unclear = [x.name for x in free if x not in numbered and may_be_an_input(x)]
    if unclear:
        raise _ambiguous(spec, unclear, [x.name for x in free], argument)
    return numbered


def _require_coordinates(spec: sp.Expr, symbols: Sequence[sp.Symbol], argument: str) -> None:
    """Refuse symbols that may be parameters: they would silently count as coordinates."""
    names = [symbol.name for symbol in symbols]
    heads = {_by_number(symbol)[0] for symbol in symbols}
    numbered = len(heads) == 1 and not heads & set(names)
    if len(names) < 2 or numbered or any(map(set(names).issubset, _LETTERS)):
        return
    raise _ambiguous(spec, names, names, argument)


def _ambiguous(
    spec: sp.Expr, unclear: Sequence[str], names: Sequence[str], argument: str
) -> ExpressionError:
    return ExpressionError(
        f"{argument} {shorten(str(spec))} holds {', '.join(unclear)}: "
        "a coordinate or a parameter?\n"
        "  inputs are x1, x2, ...; say which symbols are parameters, as "
        f"parameters=[{unclear[0]}], or name all inputs in their order, as "
        f"variables=[{', '.join(names)}]"
    )


def _by_number(symbol: sp.Symbol) -> tuple[str, int, str]:
    """Sort x10 behind x9."""
    head = symbol.name.rstrip("0123456789")
    digits = symbol.name[len(head) :]
    return head, int(digits or 0), symbol.name


def _check(made: Target, argument: str) -> None:
    name = shorten(made.name)
    if made.dimension > MAX_VARIABLES:
        raise UnsupportedExpressionError(
            f"{argument} {name!r} has {made.dimension} coordinates; use at most {MAX_VARIABLES}: "
            "write it in an orthonormal frame of the directions that it depends on"
        )
    if made.expr.has(sp.I, sp.oo, -sp.oo, sp.zoo, sp.nan):
        raise ExpressionError(f"{argument} {name!r} has to be real and finite")
    if made.is_polynomial:
        size = polynomial_size(made.expr, made.variables)
        if size.degree > HIGHEST_DEGREE or size.hermite_terms > MOST_TERMS:
            raise UnsupportedExpressionError(
                f"{argument} {name!r} is too large: degree {size.degree} and up to "
                f"{size.hermite_terms} Hermite coefficients; use at most degree {HIGHEST_DEGREE} "
                f"and {MOST_TERMS} coefficients"
            )
        _polynomial_expansion(made.expr, made.variables, made.parameters)
        return
    try:
        terms = ridge_terms(made.expr, made.variables, radial=True)
    except UnsupportedExpressionError as error:
        raise UnsupportedExpressionError(f"{argument} {name!r} is not supported: {error}") from None
    along: defaultdict[tuple[sp.Expr, ...], list[sp.Expr]] = defaultdict(list)
    for term in terms:
        if term.coefficient.is_extended_real is False:
            raise ExpressionError(
                f"{argument} {name!r} has to be real, but {term.coefficient} is not"
            )
        for ridge in term.ridges:
            require_square_integrable(ridge.expr.xreplace({T: _z}), _z, argument=argument)
            along[ridge.direction].append(ridge.expr)
        for radial in term.radials:
            # Refuse a function of a length without second moment; a pole at 0 may have one.
            inside = radial.expr.xreplace({T: sp.Abs(_z)})
            try:
                require_square_integrable(inside, _z, argument=argument)
            except AssumptionError:
                square = inside**2 * sp.Abs(_z) ** (len(radial.axes) - 1)
                if closed_form(sp.powsimp(square), _z) is None:
                    raise
    for functions in along.values():
        require_few_kinks(sp.Tuple(*functions), T)


@functools.lru_cache(maxsize=64)
def _polynomial_expansion(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], parameters: tuple[sp.Symbol, ...]
) -> HermiteExpansion:
    return HermiteExpansion.from_polynomial(expr, variables, parameters=parameters)


@functools.lru_cache(maxsize=64)
def _polynomial_parts(
    expr: sp.Expr, variables: tuple[sp.Symbol, ...], parameters: tuple[sp.Symbol, ...]
) -> dict[int, dict[MultiIndex, sp.Expr]]:
    """Return {k: {α: c_α}} with |α| = k."""
    parts: dict[int, dict[MultiIndex, sp.Expr]] = {}
    expansion = _polynomial_expansion(expr, variables, parameters)
    for alpha, c in expansion.he_coefficients().items():
        parts.setdefault(sum(alpha), {})[alpha] = c
    return parts


def _monomial(point: Sequence[sp.Expr], alpha: MultiIndex) -> sp.Expr:
    return sp.Mul(*(p**n for p, n in zip(point, alpha, strict=True) if n))


def checked_components(values: Sequence[sp.Expr], count: int, name: str) -> tuple[sp.Expr, ...]:
    """Return the components of a vector that a user gave.

    `count`: how many there have to be. `name`: how the user knows the vector. Raises ParameterError
    if they are not that many real, finite numbers or expressions.
    """
    try:
        given = tuple(sp.sympify(value, strict=True) for value in values)
    except (TypeError, sp.SympifyError):
        given = ()
    bad = not given or any(
        not isinstance(v, sp.Expr) or v.is_real is False or v.has(sp.nan) for v in given
    )
    if bad:
        raise ParameterError(
            f"{name} must be a sequence of real numbers or SymPy expressions, got {values!r}"
        )
    if len(given) != count:
        raise ParameterError(
            f"{name} has {len(given)} components, but the target has {count} coordinates"
        )
    return given


Function: TypeAlias = str | sp.Expr | Activation


def ridge_target(
    functions: Function | Sequence[Function],
    directions: Sequence[Sequence[sp.Expr | int]] | sp.MatrixBase,
    coefficients: Sequence[sp.Expr | int] | None = None,
) -> Target:
    r"""Return :math:`\sum_k c_k\,\sigma_k(\langle w_k, x\rangle)` as a target in x1, x2, …

    Parameters
    ----------
    functions : str, Expr or Activation, or a sequence of them
        σ_k, as :func:`.activations.activation` takes them; a single one is that of all directions.
    directions : sequence of sequences, or Matrix
        Rows w_k of r exact numbers each. They are not normalised.
    coefficients : sequence of exact numbers, optional
        c_k; 1 for all if left out.

    Returns
    -------
    Target
        In r coordinates.

    Raises
    ------
    ParameterError
        If there are no directions, they are of different lengths, one is zero or holds a float, or
        there are not as many functions or coefficients as directions.
    AssumptionError
        If :math:`\mathbb{E} f^2` is not finite.
    UndecidedError
        If it cannot be decided whether an entry of a direction is zero.

    Examples
    --------
    >>> half, root = sp.Rational(1, 2), sp.sqrt(3) / 2
    >>> f = ridge_target("z + He(2, z)", [[1, 0], [-half, root], [-half, -root]])
    >>> f.hermite_tensor(1), f.hermite_tensor(2)
    ([0, 0], [[3, 0], [0, 3]])
    >>> ridge_target(["erf", "tanh"], [[1, 0], [1, 2]], [1, -3])
    Target('-3*tanh(x1 + 2*x2) + erf(x1)', variables x1, x2)
    """
    rows = _checked_directions(directions)
    many = not isinstance(functions, str | sp.Basic | Activation)
    listed = _listed(functions, "functions") if many else [functions] * len(rows)
    given = [1] * len(rows) if coefficients is None else _listed(coefficients, "coefficients")
    for values, name in ((listed, "functions"), (given, "coefficients")):
        if len(values) != len(rows):
            raise ParameterError(
                f"{name} are {len(values)} and directions {len(rows)}; give one for each direction"
            )
    variables = sp.symbols(f"x1:{len(rows[0]) + 1}", real=True)
    terms = []
    for k, (function, row, coefficient) in enumerate(zip(listed, rows, given, strict=True)):
        name = f"functions[{k}]" if many else "functions"
        if isinstance(function, sp.Expr):
            require_exact(function, name)
        form = sp.Add(*(w * x for w, x in zip(row, variables, strict=True)))
        factor = _real_number(coefficient, f"coefficients[{k}]")
        terms.append(factor * activation(function, argument=name)(form))
    return target(sp.Add(*terms), variables)


def _checked_directions(directions: Any) -> list[tuple[sp.Expr, ...]]:
    rows = directions.tolist() if isinstance(directions, sp.MatrixBase) else directions
    listed = [_listed(row, f"directions[{k}]") for k, row in enumerate(_listed(rows, "directions"))]
    if not listed or not listed[0]:
        raise ParameterError("directions must be at least one vector of at least one component")
    length = len(listed[0])
    if length > MAX_VARIABLES:
        raise ParameterError(
            f"directions have {length} components; targets have at most {MAX_VARIABLES} "
            "coordinates: give the components in a frame of their span"
        )
    result = []
    for k, row in enumerate(listed):
        if len(row) != length:
            raise ParameterError(
                f"directions[{k}] has {len(row)} components, but directions[0] has {length}"
            )
        entries = [_real_number(entry, f"directions[{k}][{i}]") for i, entry in enumerate(row)]
        vector = tuple(
            sp.S.Zero if is_exactly_zero(entry, f"directions[{k}][{i}]") else entry
            for i, entry in enumerate(entries)
        )
        if not any(vector):
            raise ParameterError(f"directions[{k}] is zero; leave it out or give a direction")
        result.append(vector)
    return result


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | sp.Basic) or not hasattr(values, "__iter__"):
        raise ParameterError(f"{name} must be a sequence, got {shorten(repr(values))}")
    return list(values)


def _real_number(value: Any, name: str) -> sp.Expr:
    number = require_exact(value, name)
    if number.free_symbols or not (number.is_real and number.is_finite):
        raise ParameterError(f"{name} must be a finite real number, got {number}")
    return number
