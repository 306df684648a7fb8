r"""Hermite coefficients of an activation: exact values, closed form in the order, decay.

Convention, throughout giantstep: He_k has weight exp(-z²/2) and leading coefficient 1; :math:`\mu_k
= \mathbb{E}[f(z)\,\mathrm{He}_k(z)]` is divided by neither k! nor its root, so that :math:`f =
\sum_k (\mu_k/k!)\,\mathrm{He}_k`. A function is split into a part whose moments have a closed form
in k (:mod:`.hermite.rules`) and the rest, such as tanh, the logistic function ς, softplus or erf²,
which is expanded order by order; nothing is integrated, and every coefficient says what it rests
on. What is exact about the rest is used: parities, that of ς - 1/2 included; E[softplus(az+b) He_k]
= a E[ς(az+b) He_{k-1}]; E[z f He_k] = E[f He_{k+1}] + k E[f He_{k-1}], as for swish; single orders
with a closed form by :mod:`.gaussian.rules`. One unevaluated 𝔼 is left for each other order.
Variances of a function and of its slope without their constant and linear parts, and the
correlation of n values with their inputs, stand here once for all lines of work.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence as AbstractSequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import sympy as sp
from sympy.concrete.expr_with_limits import ExprWithLimits

from ...ball_library import require_flint
from ...digits import checked_digits
from ...errors import (
    AssumptionError,
    ClosedFormNotFoundError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from ...pages import Table, Typeset, as_html, columns, shorten
from ...pictures import Drawn, Line, Lines
from ..exact.enclosures import Enclosure
from ..expressions.activations import CATALOGUE, Activation, activation, z
from ..expressions.expression_text import expression_text
from ..expressions.functions import sigmoid, softplus
from ..expressions.parser import parse_expression
from ..expressions.piecewise_polynomials import by_steps, without_extrema
from ..expressions.regularity import Parity, analyse, require_square_integrable
from ..gaussian.enclosures import enclosed_value
from ..gaussian.expectation import GaussianExpectation, expect
from ..gaussian.hermite_polynomials import (
    checked_order,
    he_coefficients_from_moments,
    hermite_polynomial,
    orthonormal_coefficients_from_moments,
)
from ..gaussian.integrand_kernels import affine_or_quadratic
from ..gaussian.rules import closed_form
from .closed_forms import (
    ClosedForm,
    Decay,
    closed_form_of,
    decay_of,
    sequence_parity,
)
from .rules import Decomposition, OpenTerms, decompose, is_too_long, kernel_sequence

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
    result: list[sp.Expr] = []
    rest: dict[sp.Expr, sp.Expr] = {}
    for kernel, coefficients in terms.items():
        moment = _related_moments(kernel, z, max(coefficients))
        if moment is not None:
            result += [c * _of_power(moment, n, k) for n, c in coefficients.items()]
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
                result.append(value)
        if without_rule:
            result.append(GaussianExpectation(sp.Add(*without_rule) * polynomial, z))
    return sp.Add(*result)


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
        result: dict[int, int] = {}
        for j, weight in weights.items():
            result[j + 1] = result.get(j + 1, 0) + weight
            if j:
                result[j - 1] = result.get(j - 1, 0) + j * weight
        weights = result
    return sp.Add(*(weight * moment(j) for j, weight in weights.items()))


_SHOWN_DIGITS = 15
_SHOWN_ORDERS = 12
_LONGEST_TEXT = 70


class CoefficientBasis(enum.Enum):
    """What a coefficient rests on."""

    EXACT = "exact algebra"
    PARITY_ZERO = "exact zero by parity"
    OPEN = "no closed form"


@dataclass(frozen=True, repr=False)
class HermiteCoefficients(Typeset, Drawn, AbstractSequence[sp.Expr]):
    r"""The exact Hermite coefficients :math:`\mu_0, \dots, \mu_K` of a function, as a sequence.

    Made by :func:`.hermite.coefficients.hermite_coefficients`; the constructor does not check
    anything.

    Attributes
    ----------
    function : Expr
        f as an exact expression in `variable`; its other symbols are parameters.
    variable : Symbol
        The standard normal variable.
    values : tuple of Expr
        The coefficients, free of floating-point numbers. Where no closed form is known they hold
        unevaluated expectations 𝔼.
    basis : tuple of CoefficientBasis
        What each rests on.
    name : str
        How the user called the function.

    Examples
    --------
    >>> from giantstep.symbolic.hermite.coefficients import hermite_coefficients
    >>> relu = hermite_coefficients("relu", 4)
    >>> relu
    HermiteCoefficients('relu', order 4)
    >>> relu[2], relu[3], relu.parity.name
    (sqrt(2)/(2*sqrt(pi)), 0, 'NEITHER')
    >>> print(relu)
    f(z) = relu(z), mu_k = E[f(z) He_k(z)]
    k  mu_k                   basis
    0  sqrt(2)/(2*sqrt(pi))   exact algebra
    1  1/2                    exact algebra
    2  sqrt(2)/(2*sqrt(pi))   exact algebra
    3  0                      exact algebra
    4  -sqrt(2)/(2*sqrt(pi))  exact algebra
    """

    function: sp.Expr
    variable: sp.Symbol
    values: tuple[sp.Expr, ...]
    basis: tuple[CoefficientBasis, ...]
    name: str = field(compare=False)
    parts: Decomposition = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> sp.Expr: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[sp.Expr, ...]: ...
    def __getitem__(self, index: int | slice) -> sp.Expr | tuple[sp.Expr, ...]:
        return self.values[index]

    def __iter__(self) -> Iterator[sp.Expr]:
        return iter(self.values)

    @property
    def order(self) -> int:
        """The highest order K."""
        return len(self.values) - 1

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the function other than the variable, by name."""
        return tuple(sorted(self.function.free_symbols - {self.variable}, key=str))

    @property
    def activation(self) -> Activation | None:
        """The function as an activation in z; None if it has parameters or is constant."""
        if self.parameters or not self.function.has(self.variable):
            return None
        return activation(self.function.xreplace({self.variable: z}), argument="function")

    @cached_property
    def parity(self) -> Parity:
        """Even or odd if provable, for all values of the parameters."""
        try:
            return analyse(self.function, self.variable).parity
        except UnsupportedExpressionError:
            return Parity.NEITHER

    @cached_property
    def closed_form(self) -> ClosedForm | None:
        """The coefficients as an expression in a symbolic order k; None if no rule gives one."""
        if self.parts.open_terms:
            return None
        return closed_form_of(self.parts.sequence, self._names(), self.parity)

    def _names(self) -> set[str]:
        return {symbol.name for symbol in self.function.free_symbols}

    def require_closed_form(self) -> ClosedForm:
        """Return the closed form in k.

        Raises
        ------
        ClosedFormNotFoundError
            If there is none; the message names the part of the function that has none.
        """
        form = self.closed_form
        if form is None:
            kernel, powers = next(iter(self.parts.open_terms.items()))
            raise ClosedFormNotFoundError(
                f"the Hermite coefficients of {self.name} have no known closed form in k: "
                f"no rule for {self.variable ** max(powers) * kernel}\n"
                "  rules: polynomials times exp of a quadratic, sin, cos, erf, Phi, step, sign, "
                "relu or abs of an affine argument\n"
                "  single orders are exact or unevaluated expectations; evalf() gives digits"
            )
        return form

    @cached_property
    def decay(self) -> Decay | None:
        r"""Asymptotics of :math:`|\mu_k|/\sqrt{k!}`; None if unknown."""
        return decay_of(self.parts, self.variable, self._names())

    def he_coefficients(self) -> tuple[sp.Expr, ...]:
        """Return the coefficients c_k = μ_k/k! of f = Σ c_k He_k."""
        return he_coefficients_from_moments(self.values)

    def orthonormal_coefficients(self) -> tuple[sp.Expr, ...]:
        """Return μ_k/√k!, the coefficients in the orthonormal polynomials He_k/√k!."""
        return orthonormal_coefficients_from_moments(self.values)

    def evalf(self, digits: int = _SHOWN_DIGITS) -> tuple[sp.Expr, ...]:
        """Return the coefficients to a number of digits; exact zeros stay the integer 0.

        Parameters
        ----------
        digits : int
            Significant digits, 1 to 1000. Those of expectations without closed form come from
            quadrature that agrees with a finer one; for proven digits see `enclosures`.

        Raises
        ------
        ParameterError
            If `digits` is out of range or the function has parameters.
        ConvergenceError
            If a quadrature does not converge.
        """
        self._require_numbers(digits)
        return tuple(value if value == 0 else value.evalf(digits) for value in self.values)

    def picture(self) -> Lines:
        """Return the sizes of the orthonormal coefficients, with their asymptotic law.

        Raises
        ------
        ParameterError
            If the function has parameters.
        """
        orders = [k for k, value in enumerate(self.values) if value != 0]
        sizes = self.evalf()
        values = [float(abs(sizes[k]) / sp.sqrt(sp.factorial(k))) for k in orders]
        lines = [Line(orders, values, shorten(self.name, 30), style="", mark="o")]
        if self.decay is not None and self.decay.envelope != 0:
            places = list(range(1, self.order + 1))
            envelope = [float(self.decay.envelope.subs(self.decay.k, k)) for k in places]
            law = f"decay: {self.decay.kind.value}"
            lines.append(Line(places, envelope, law, style="--", beside=True))
        return Lines(lines, "$k$", r"$|\mu_k|/\sqrt{k!}$", logarithmic="y")

    def enclosures(self, digits: int = _SHOWN_DIGITS) -> tuple[Enclosure, ...]:
        """Return proven enclosures of the coefficients, by ball arithmetic.

        Parameters
        ----------
        digits : int
            Significant digits to be proven, 1 to 1000.

        Raises
        ------
        MissingDependencyError
            If python-flint is not installed.
        ParameterError
            If `digits` is out of range or the function has parameters.
        GiantstepError
            If a coefficient cannot be enclosed, as in :mod:`.gaussian.enclosures`.
        """
        self._require_numbers(digits)
        require_flint()
        nothing = Enclosure(sp.S.Zero, sp.S.Zero)
        return tuple(nothing if value == 0 else enclosed_value(value, digits) for value in self)

    def _require_numbers(self, digits: int) -> None:
        checked_digits(digits)
        if self.parameters:
            names = ", ".join(map(str, self.parameters))
            raise ParameterError(
                f"the coefficients of {self.name} depend on {names}; substitute numbers in the "
                "function before asking for digits"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold.

        Raises
        ------
        ExpressionError
            If the function cannot be written as text that the parser reads.
        """
        symbols = [self.variable, *self.parameters]
        text = expression_text(self.function)
        if parse_expression(text, symbols, argument="function") != self.function:
            raise ExpressionError(f"function {text} does not read back as it is; rewrite it")
        return {
            "function": text,
            "variable": self.variable.name,
            "symbols": {symbol.name: dict(symbol.assumptions0) for symbol in symbols},
            "order": self.order,
            "coefficients": [str(value) for value in self.values],
            "basis": [basis.value for basis in self.basis],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HermiteCoefficients:
        """Return the coefficients that `to_dict` wrote, computed anew and compared.

        Raises
        ------
        ExpressionError
            If the dictionary is not such a one, or its coefficients are not those of its function.

        Examples
        --------
        >>> from giantstep.symbolic.hermite.coefficients import hermite_coefficients
        >>> found = hermite_coefficients("gelu", 3)
        >>> HermiteCoefficients.from_dict(found.to_dict()) == found
        True
        """
        try:
            symbols = {
                str(name): sp.Symbol(str(name), **assumptions)
                for name, assumptions in data["symbols"].items()
            }
            variable, order, text = symbols[data["variable"]], data["order"], data["function"]
            stored = [str(value) for value in data["coefficients"]]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ExpressionError(
                f"the dictionary is not one of Hermite coefficients: {error!r}; "
                "give what to_dict returned"
            ) from None
        function = parse_expression(text, symbols, argument="function")
        result = hermite_coefficients(function, order, variable=variable)
        if [str(value) for value in result] != stored:
            raise ExpressionError(
                f"the stored coefficients are not those of {text}; compute them anew"
            )
        return result

    def __repr__(self) -> str:
        return f"HermiteCoefficients({self.name!r}, order {self.order})"

    def __str__(self) -> str:
        head = (
            f"f({self.variable}) = {self.function}, mu_k = E[f({self.variable}) "
            f"He_k({self.variable})]"
        )
        return f"{head}\n{columns([('k', 'mu_k', 'basis'), *self._rows(_shown)])}"

    def _rows(self, shown: Callable[[sp.Expr], str]) -> Iterator[tuple[str, str, str]]:
        for k, (value, basis) in enumerate(zip(self.values, self.basis, strict=True)):
            yield str(k), shown(value), basis.value

    def latex(self) -> str:
        """Return LaTeX: the closed form in k if there is one, else the coefficients, aligned."""
        if self.closed_form is not None:
            return self.closed_form.latex()
        rows = [rf"\mu_{{{k}}} &= {sp.latex(value)}" for k, value in enumerate(self.values)]
        if len(rows) > _SHOWN_ORDERS:
            rows = [*rows[:_SHOWN_ORDERS], r"&\;\;\vdots"]
        body = r" \\ ".join(rows)
        return rf"\begin{{aligned}} {body} \end{{aligned}}"

    def _repr_html_(self) -> str:
        rows = list(self._rows(lambda value: rf"$\displaystyle {sp.latex(value)}$"))
        title = f"Hermite coefficients of {self.function}"
        return as_html([title, Table(rows, ("k", "μ_k", "basis"))])


def _shown(value: sp.Expr) -> str:
    return shorten(str(value), _LONGEST_TEXT)


MAX_ORDER = 1000
"""Highest order of a coefficient."""

MAX_ORDER_WITH_PARAMETERS = 200
"""The same for functions with parameters, whose coefficients are polynomials in these."""

MAX_ORDER_WITHOUT_FORM = 200
"""The same for functions without closed form in k, whose coefficients hold He_k in full."""

HIGHEST_OPEN_ORDER = 40
"""Beyond it, a first coefficient that has not shown up is taken as a sign of a wrong expression."""


def hermite_coefficients(
    f: str | sp.Expr | Activation,
    order: int,
    *,
    variable: sp.Symbol | None = None,
    argument: str = "function",
) -> HermiteCoefficients:
    r"""Return :math:`\mu_0, \dots, \mu_K`, :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`.

    Parameters
    ----------
    f : str, Expr or Activation
        A name of the catalogue, the text of an expression in z, an activation, or a SymPy
        expression. With parameters, as in erf(a*z + b), an expression and its `variable`.
    order : int
        K, from 0 to `MAX_ORDER`, or to `MAX_ORDER_WITH_PARAMETERS` if there are parameters, or to
        `MAX_ORDER_WITHOUT_FORM` if there is no closed form in k.
    variable : Symbol, optional
        The standard normal variable; it must be given if `f` has parameters. Declared real, or
        without assumptions.
    argument : str
        How the user knows the function; error messages name it.

    Returns
    -------
    HermiteCoefficients
        A sequence of exact values, with their closed form in k and their decay.

    Raises
    ------
    ParameterError
        If `order` is not an integer in that range, or `variable` is missing, not a variable over
        the real line, or not the symbol in `f`: the same name with different assumptions is another
        symbol for SymPy.
    ExpressionError
        If a text is not an expression, or `f` does not depend on one variable.
    AssumptionError
        If :math:`\mathbb{E} f(z)^2` is not finite, or the result depends on assumptions that a
        parameter lacks; the message names it.
    UnsupportedExpressionError
        If the growth or the kinks of `f` are not known, or it holds an integral or a derivative.

    Notes
    -----
    Probabilists' polynomials. The rules are in :mod:`.hermite.rules`; coefficients without closed
    form hold unevaluated expectations 𝔼.

    Examples
    --------
    >>> hermite_coefficients("erf(z)", 3)[:]
    (0, 2*sqrt(3)/(3*sqrt(pi)), 0, -4*sqrt(3)/(9*sqrt(pi)))
    >>> a, b = sp.symbols("a b", real=True)
    >>> found = hermite_coefficients(sp.sin(a * z + b), 2, variable=z)
    >>> found[2], found.closed_form.general
    (-a**2*exp(-a**2/2)*sin(b), a**k*exp(-a**2/2)*sin(b + pi*k/2))
    >>> hermite_coefficients("tanh", 3).evalf(20)
    (0, 0.60570550960215882558, 0, -0.36359537628097414950)
    """
    last = _checked(order)
    function, variable, name = _read(f, variable, argument)
    parts = _decomposed(function, variable, last)
    parity = sequence_parity(parts.sequence)
    values, basis = [], []
    for k in range(last + 1):
        value = _moment(parts, variable, k)
        values.append(value)
        basis.append(_basis(value, k, None if parts.open_terms else parity))
    return HermiteCoefficients(function, variable, tuple(values), tuple(basis), name, parts)


def hermite_coefficient(
    f: str | sp.Expr | Activation, k: int, *, variable: sp.Symbol | None = None
) -> sp.Expr:
    r"""Return :math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, exactly.

    Parameters
    ----------
    f : str, Expr or Activation
        As in :func:`hermite_coefficients`.
    k : int
        Order, from 0 to `MAX_ORDER`, or less as there.
    variable : Symbol, optional
        As there.

    Returns
    -------
    Expr
        A number; an unevaluated 𝔼 node (evaluate it with ``evalf``) where no rule gives a closed
        form; exactly 0 where the parity of f says so.

    Raises
    ------
    GiantstepError
        As :func:`hermite_coefficients`.

    Examples
    --------
    >>> hermite_coefficient("relu", 2)
    sqrt(2)/(2*sqrt(pi))
    >>> hermite_coefficient("tanh", 2)
    0
    """
    order = _checked(k)
    function, variable, _ = _read(f, variable, "function")
    return _moment(_decomposed(function, variable, order), variable, order)


def _checked(order: int) -> int:
    order = checked_order(order)
    if order > MAX_ORDER:
        raise ParameterError(f"order {order} is too high; coefficients go up to {MAX_ORDER}")
    return order


def _decomposed(function: sp.Expr, variable: sp.Symbol, order: int) -> Decomposition:
    """Split the function if coefficients of the order can be written down."""
    if order > MAX_ORDER_WITH_PARAMETERS and function.free_symbols - {variable}:
        raise ParameterError(
            f"order {order} is too high for a function with parameters; they go up to "
            f"{MAX_ORDER_WITH_PARAMETERS}, or take the closed form in k"
        )
    parts = decompose(function, variable)
    if order > MAX_ORDER_WITHOUT_FORM and parts.open_terms:
        raise ParameterError(
            f"order {order} is too high for {function}, whose coefficients have no closed form in "
            f"k; they go up to {MAX_ORDER_WITHOUT_FORM}"
        )
    return parts


def _moment(parts: Decomposition, variable: sp.Symbol, k: int) -> sp.Expr:
    value = parts.sequence.value(k)
    return value + open_moment(parts.open_terms, variable, k) if parts.open_terms else value


def _basis(value: sp.Expr, k: int, parity: Parity | None) -> CoefficientBasis:
    """What a coefficient rests on; the parity is None if a part has no closed form."""
    if value == 0 and parity in (None, Parity.EVEN if k % 2 else Parity.ODD):
        return CoefficientBasis.PARITY_ZERO
    is_open = parity is None and value.has(GaussianExpectation)
    return CoefficientBasis.OPEN if is_open else CoefficientBasis.EXACT


def _read(
    f: str | sp.Expr | Activation, variable: sp.Symbol | None, argument: str
) -> tuple[sp.Expr, sp.Symbol, str]:
    """Return the function, its Gaussian variable and its name, all checked."""
    if variable is None:
        if isinstance(f, sp.Expr):
            _require_evaluated(f, argument)
            _require_distinct_names(f.free_symbols, argument)
            lines = [symbol for symbol in f.free_symbols if symbol.name == z.name]
            if lines:
                _require_line(lines[0])
            else:
                _require_one_variable(f, argument)
        result = activation(f, parameters=True, argument=argument)
        if result.parameters:
            return _read(result.expr, z, argument)
        return result.expr, z, result.name
    if not isinstance(variable, sp.Symbol):
        raise ParameterError(f"variable must be a SymPy Symbol, got {variable!r}")
    _require_line(variable)
    if isinstance(f, Activation) or (isinstance(f, str) and f.strip() in CATALOGUE):
        expr = activation(f).expr.xreplace({z: variable})
    elif isinstance(f, str):
        expr = parse_expression(f, [variable], argument=argument)
    elif isinstance(f, sp.Expr):
        expr = f
    else:
        raise ParameterError(
            f"{argument} has to be a name, a text or a SymPy expression, not {f!r}"
        )
    _require_evaluated(expr, argument)
    _require_distinct_names(expr.free_symbols | {variable}, argument)
    real = sp.Symbol(variable.name, real=True)
    # Floats print as the decimals that were meant; the expression has to be exact.
    exact = {number: sp.Rational(str(number)) for number in expr.atoms(sp.Float)}
    expr = expr.xreplace({variable: real, **exact})
    expr = without_extrema(by_steps(expr, (real,)), argument)
    if not expr.is_polynomial(real):
        _require_real_parameters(expr.free_symbols - {real}, argument)
        # Its own refusals name the parameter and the assumption that is missing.
        decompose(expr, real)
        require_square_integrable(expr, real, argument=argument)
    return expr, real, str(f)


def _require_evaluated(expr: sp.Expr, argument: str) -> None:
    """Refuse what is no number at a point, and what SymPy has still to work out."""
    result = expr.atoms(sp.Derivative, sp.Subs, sp.Limit, ExprWithLimits)
    if result:
        raise UnsupportedExpressionError(
            f"{argument} holds {min(map(str, result))}, which is not worked out; use doit() first"
        )
    for value in (sp.I, sp.nan, sp.oo, -sp.oo, sp.zoo):
        if expr.has(value):
            raise AssumptionError(
                f"{argument} has to be real, but {expr} holds {value}: it is not a finite real "
                "expression"
            )


def _require_one_variable(f: sp.Expr, argument: str) -> None:
    symbols = sorted(f.free_symbols, key=str)
    if len(symbols) > 1:
        _require_distinct_names(f.free_symbols, argument)
        raise ExpressionError(
            f"{argument} {f} has the symbols {', '.join(map(str, symbols))}; say which one is the "
            f"standard normal variable, as in variable={symbols[-1]}"
        )
    for symbol in symbols:
        _require_line(symbol)


def _require_line(variable: sp.Symbol) -> None:
    """Refuse a variable with assumptions that a Gaussian variable does not fulfil."""
    facts = (variable.is_nonnegative, variable.is_nonpositive, variable.is_nonzero)
    limited = any(fact is not None for fact in (*facts, variable.is_integer, variable.is_rational))
    if limited or variable.is_extended_real is False or not variable.is_commutative:
        raise ParameterError(
            f"variable {variable} is declared with assumptions that a standard normal variable "
            "does not fulfil: SymPy has simplified with them\n"
            f"  use Symbol({variable.name!r}, real=True)"
        )


def _require_distinct_names(symbols: set[sp.Symbol], argument: str) -> None:
    seen: dict[str, sp.Symbol] = {}
    for symbol in sorted(symbols, key=lambda s: (s.name, str(s.assumptions0))):
        if symbol.name in seen:
            raise ParameterError(
                f"{argument} and variable hold two symbols {symbol.name!r}: same name, different "
                "assumptions; for SymPy they are different variables\n"
                f"  declare {symbol.name} once, as Symbol({symbol.name!r}, real=True), and use "
                "it everywhere"
            )
        seen[symbol.name] = symbol


def _require_real_parameters(symbols: set[sp.Symbol], argument: str) -> None:
    unknown = sorted(symbol.name for symbol in symbols if not symbol.is_extended_real)
    if unknown:
        raise AssumptionError(
            f"the Hermite coefficients of {argument} depend on whether {', '.join(unknown)} "
            f"{'is' if len(unknown) == 1 else 'are'} real\n"
            f"  declare Symbol({unknown[0]!r}, real=True), or positive=True"
        )


def variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma^2 - \mu_0^2`."""
    return expect(function.expr**2, z) - hermite_coefficient(function, 0) ** 2


def residual_variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma^2 - \mu_0^2 - \mu_1^2`.

    For a teacher it is :math:`\|P_{>1} f_*\|^2`, the error of the best affine predictor.
    """
    return variance(function) - hermite_coefficient(function, 1) ** 2


def slope_variance(function: Activation) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\sigma'^2 - \mu_1^2` of a continuous function."""
    return expect(function.derivative**2, z) - hermite_coefficient(function, 1) ** 2


def correlation_square(linear_square: sp.Expr, square: sp.Expr, ratio: sp.Expr) -> sp.Expr:
    r"""Return the limit of :math:`|X^\top v/n|^2` for n values v of n Gaussian inputs in d.

    `linear_square`, `square`: :math:`|\mathbb{E}[v\,x]|^2` and :math:`\mathbb{E}\,v^2`. `ratio`:
    n/d, kept fixed as both grow.

    Notes
    -----
    Off the diagonal the n² products of two samples average to the first, and the n squares on it
    bring :math:`\mathbb{E}\,v^2 |x|^2/n \to \mathbb{E}\,v^2\,d/n`.
    """
    return linear_square + square / ratio
