r"""Conditional projections: the part of a target that is of low degree outside a subspace.

A network whose first layer has learned a subspace U sees :math:`x_U` as it is and everything else
as random features do. With :math:`x_\perp = x - x_U`,

.. math:: f = \sum_j P_{U,=j} f, \qquad P_{U,\le l} f = \sum_{j \le l} P_{U,=j} f,

where :math:`P_{U,=j} f` has degree j in :math:`x_\perp` and any dependence on :math:`x_U`, as
:math:`P_{U,\le 0} f = \mathbb{E}[f | x_U]` (notation of Dandi, Krzakala, Loureiro, Pesce, Stephan,
arXiv 2305.18270). Exact for polynomials, in closed form as far as rules go for other targets
(:mod:`.ridge_norms`, :mod:`.ridge_products`); what is left is an unevaluated 𝔼. Where that has no
digits, or a closed form would fill pages, norms are numbers with a proven bound from the part
:math:`f_K` of Hermite degree at most K,

.. math:: \|P_{U,=j} f_K\|^2 \le \|P_{U,=j} f\|^2 \le \|P_{U,=j} f_K\|^2 + \|f - f_K\|^2, \qquad
          \|f - f_K\| \le \sum_t \sqrt{\|t\|^2 - \|t_K\|^2},

with the terms t of f, products of functions of orthogonal forms whose norms are averages over one
variable (derived here): the work does not depend on how the functions in f are coupled.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from ... import pages
from ...errors import GiantstepError, ParameterError, UndecidedError, UnsupportedExpressionError
from ...json_document import WritesJson
from ...pages import Typeset, shorten
from ..exact.enclosures import Enclosure
from ..expressions.activations import Activation
from ..expressions.averages import Average
from ..expressions.expression_text import expression_text
from ..gaussian.enclosed_formulas import FormulaBalls
from ..gaussian.hermite_polynomials import index_factorial
from ..gaussian.zero_test import is_exactly_zero
from ..hermite.expansion import HermiteExpansion, expansion_latex, expansion_text
from .ridge_norms import degree_norms, mean_square, part_up_to, ridge_degree_norms
from .ridge_products import ridge_part_up_to
from .ridge_terms import holds_lengths, ridge_terms, rounded_symbol
from .subspaces import Subspace
from .target import Target, target as read_target

# K by the number of coordinates: some hundreds of coefficients each.
_DEGREES = {1: 40, 2: 20, 3: 12, 4: 8, 5: 6, 6: 5}
_LOWEST_DEGREE = 4
_BITS = 90
# Squares of subspace entries are in the denominators.
_BITS_OF_ENTRIES, _DIGITS_OF_ENTRIES = 50, 40
_DIGITS = 15
_ROUNDING = 1e-12


@dataclass(frozen=True)
class BoundedNorms:
    """Norms n_j from the middle of their intervals.

    `parts`: :math:`\\|P_{U,=j} f_K\\|^2` from j = 0 on. `missing`: the bound of :math:`\\|f -
    f_K\\|^2`. `hermite_degree`: K.
    """

    parts: tuple[sp.Float, ...]
    missing: sp.Float
    hermite_degree: int

    @property
    def uncertainty(self) -> sp.Float:
        """Half the length of the intervals."""
        return self.missing / 2

    @property
    def total(self) -> sp.Float:
        """Return E f² to within `uncertainty`."""
        return sp.Add(*self.parts) + self.uncertainty

    def norm(self, degree: int) -> sp.Float:
        """Return n_j to within `uncertainty`."""
        part = self.parts[degree] if degree < len(self.parts) else sp.Float(0)
        return part + self.uncertainty

    def has(self, degree: int) -> bool:
        """Whether n_j is known not to be zero."""
        return degree < len(self.parts) and bool(self.parts[degree] > _ROUNDING)

    def beyond(self, degree: int) -> sp.Float:
        """Return the sum of n_j over j > degree to within `uncertainty`."""
        return sp.Add(sp.Float(0), *self.parts[degree + 1 :]) + self.uncertainty


def bounded_norms(f: Target, subspace: Subspace) -> BoundedNorms:
    """Return the norms by degree outside a subspace, to within a bound.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
    >>> found = bounded_norms(target("tanh(x1) + relu(x2)"), Subspace.spanned_by([[1, 1]]))
    >>> found.norm(0).round(3), found.uncertainty < 0.0005
    (0.794, True)
    """
    highest = _DEGREES.get(f.dimension, _LOWEST_DEGREE)
    symbols, missing = [], sp.Float(0)
    for term in ridge_terms(f.expr, f.variables):
        symbol = rounded_symbol(term, f.variables, highest, _BITS)
        beyond = mean_square([term]).evalf(_DIGITS) - sum(
            (index_factorial(alpha) * c**2 for alpha, c in symbol.items()), sp.QQ(0)
        )
        symbols.append(symbol)
        if beyond > _ROUNDING:
            missing += sp.sqrt(beyond)
    norms = degree_norms(functools.reduce(operator.add, symbols), _rounded(subspace))
    parts = tuple(sp.Float(value, _DIGITS) for value in norms)
    return BoundedNorms(parts, missing**2, highest)


def _rounded(subspace: Subspace) -> Subspace:
    """Return a rational subspace within rounding of another."""
    scale = 2**_BITS_OF_ENTRIES
    rows = tuple(
        tuple(sp.QQ(int((entry * scale).evalf(_DIGITS_OF_ENTRIES)), scale) for entry in row)
        for row in subspace.basis
    )
    return Subspace(sp.QQ, rows, subspace.ambient_dimension)


_LONGEST = 600
"""Characters of a function in lines that are to be read."""

NOT_WRITTEN = "(no short form)"
"""For a function whose norms have no closed form in reach; on request it is an expression."""


def function_text(projection: Projection, *, fitted: bool = True) -> str:
    """Return the fitted function or the rest, by Hermite polynomials if it is a polynomial."""
    expansion = projection.fitted_expansion if fitted else projection.residual_expansion
    if expansion is not None:
        return expansion_text(expansion.symbol_element)
    if projection.bounds is not None:
        return NOT_WRITTEN
    return shorten(expression_text(projection.fitted if fitted else projection.residual), _LONGEST)


def number_text(value: sp.Expr) -> str:
    """Return an exact number, with digits if it is not rational and has some; or digits alone.

    Examples
    --------
    >>> number_text(sp.Rational(1, 2) - 1 / sp.pi)
    '1/2 - 1/pi = 0.18169'
    """
    if value.is_Float:
        return str(value.evalf(5))
    text = shorten(expression_text(value), _LONGEST)
    if value.is_Rational:
        return text
    digits = digits_of(value)
    return text if digits is None else f"{text} = {digits}"


def digits_of(value: sp.Expr) -> str | None:
    """Return five digits, or None where there are parameters or no quadrature gives them."""
    if value.free_symbols:
        return None
    try:
        return str(value.evalf(5))
    except (GiantstepError, ArithmeticError):
        return None


def _function_lines(name: str, projection: Projection, *, fitted: bool) -> list[str]:
    """Return one line, and a second one for what is the same in powers of x."""
    written = function_text(projection, fitted=fitted)
    lines = [f"{name} = {written}"]
    if projection.fitted_expansion is not None and "He(" in written:
        function = projection.fitted if fitted else projection.residual
        lines.append(f"{' ' * len(name)} = {shorten(expression_text(function), _LONGEST)}")
    return lines


def _function_latex(projection: Projection, *, fitted: bool, full: bool) -> str:
    expansion = projection.fitted_expansion if fitted else projection.residual_expansion
    if expansion is not None:
        return expansion_latex(expansion.symbol_element, full=full)
    if projection.bounds is not None:
        return r"\dots"
    text: str = sp.latex(projection.fitted if fitted else projection.residual)
    return text if full or len(text) <= 2 * _LONGEST else r"\dots"


Rows = Sequence[Sequence[sp.Expr | Fraction | int]]

HIGHEST_OPEN_DEGREE = 12
"""Degree l up to which targets that are no polynomials are projected."""

_SHOWN_DEGREE = 2


@dataclass(frozen=True, repr=False)
class Projection(Typeset, WritesJson):
    r"""A target split into its part of degree at most l outside a subspace, and the rest.

    Made by :func:`project`.

    Attributes
    ----------
    target : Target
        f.
    onto : Subspace
        U.
    degree : int
        l.
    norms : tuple of Expr
        :math:`n_j = \|P_{U,=j} f\|^2` from j = 0 on: all that are not zero for a polynomial (at
        least n_0), n_0 to n_l for another target.
    bounds : BoundedNorms or None
        Where the norms come from if they are numbers, to within its `uncertainty`.

    Examples
    --------
    >>> split = project("x1 + x1*x2 + He(2, x2)", [[1, 0]], 1)
    >>> split.fitted, split.residual, split.residual_norm
    (x1*x2 + x1, x2**2 - 1, 2)
    >>> split.fitted_expansion, split.norms, split.conditional_variance
    (HermiteExpansion(x1 + x1*x2), (1, 1, 2), 3)
    """

    target: Target
    onto: Subspace
    degree: int
    norms: tuple[sp.Expr, ...]
    bounds: BoundedNorms | None = None

    @functools.cached_property
    def norm_squared(self) -> sp.Expr:
        """E f²."""
        if self.target.is_polynomial:
            return sp.Add(*self.norms)
        return self.target.norm_squared if self.bounds is None else self.bounds.total

    @property
    def explained(self) -> sp.Expr:
        r""":math:`\|P_{U,\le l} f\|^2`, what is fitted of E f²."""
        if self.bounds is not None:
            return self.norm_squared - self.residual_norm
        return sp.Add(*self.norms[: self.degree + 1])

    @property
    def residual_norm(self) -> sp.Expr:
        r""":math:`\|P_{U,>l} f\|^2`, the predicted error."""
        return self._norm_beyond(self.degree)

    @property
    def conditional_variance(self) -> sp.Expr:
        """E Var(f | x_U), the residual for l = 0."""
        return self._norm_beyond(0)

    def enclosures(self, digits: int = 30) -> dict[str, Enclosure]:
        """Return proven enclosures of E f², of the residual and of the conditional variance.

        Raises
        ------
        CertificationError
            If one of them holds what cannot be enclosed, as an expectation over several variables.
        MissingDependencyError
            If python-flint is not installed.
        """
        formulas = FormulaBalls({})
        names = ("norm_squared", "residual_norm", "conditional_variance")
        return {name: formulas.enclosure(getattr(self, name), digits) for name in names}

    @functools.cached_property
    def fitted_expansion(self) -> HermiteExpansion | None:
        r""":math:`P_{U,\le l} f` by its Hermite coefficients; None if f is no polynomial."""
        if not self.target.is_polynomial:
            return None
        symbol = self.target.expansion.symbol_element
        return HermiteExpansion(part_up_to(symbol, self.onto, self.degree))

    @functools.cached_property
    def residual_expansion(self) -> HermiteExpansion | None:
        r""":math:`P_{U,>l} f` by its Hermite coefficients; None if f is no polynomial."""
        fitted = self.fitted_expansion
        return None if fitted is None else self.target.expansion - fitted

    @functools.cached_property
    def fitted(self) -> sp.Expr:
        r""":math:`P_{U,\le l} f` as an expression in the coordinates."""
        if self.fitted_expansion is not None:
            return self.fitted_expansion.polynomial()
        if self.onto.is_whole and holds_lengths(self.target.expr, self.target.variables):
            return self.target.expr
        return ridge_part_up_to(self.target.expr, self.target.variables, self.onto, self.degree)

    @functools.cached_property
    def residual(self) -> sp.Expr:
        r""":math:`P_{U,>l} f` as an expression in the coordinates."""
        if self.residual_expansion is not None:
            return self.residual_expansion.polynomial()
        return self.target.expr - self.fitted

    def has_degree(self, degree: int) -> bool:
        """Whether f is known to have a part of some degree ≤ l outside U."""
        if self.bounds is not None:
            return self.bounds.has(degree)
        return degree < len(self.norms) and self.norms[degree] != 0

    @property
    def basis(self) -> str:
        """Whether the norms are closed forms, and how precise they are if they are numbers."""
        if self.bounds is not None:
            return (
                f"norms within ±{self.bounds.uncertainty.evalf(2)}, by the Hermite terms up to "
                f"degree {self.bounds.hermite_degree}"
            )
        if any(value.has(Average) for value in (*self.norms, self.norm_squared)):
            return "exact, with expectations that no rule evaluates"
        return "exact"

    def _norm_beyond(self, degree: int) -> sp.Expr:
        if self.bounds is not None:
            return self.bounds.beyond(degree)
        if self.target.is_polynomial:
            return sp.Add(*self.norms[degree + 1 :])
        return _difference(self.norm_squared, self.norms[: degree + 1])

    def __str__(self) -> str:
        degree = self.degree
        lines = [
            f"f = {self.target} on U = {self.onto}, degree at most {degree} outside U",
            *_function_lines(f"fitted    P_U,<={degree} f", self, fitted=True),
            *_function_lines(f"residual  P_U,>{degree} f", self, fitted=False),
            f"residual norm squared: {number_text(self.residual_norm)}"
            f" of E f^2 = {number_text(self.norm_squared)}"
            + (", that is E Var(f | x_U)" if degree == 0 else ""),
            "norms squared by degree outside U: "
            + "; ".join(f"n_{j} = {number_text(n)}" for j, n in enumerate(self.norms)),
            self.basis,
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Projection({self.target.name!r} onto {self.onto}, degree {self.degree}: "
            f"residual {self.residual_norm})"
        )

    def latex(self, *, full: bool = False) -> str:
        """Return fitted function and residual norm in LaTeX; long functions cut unless `full`."""
        space, degree = self.onto.latex(), self.degree
        at_most, beyond = rf"P_{{U,\le {degree}}} f", rf"P_{{U,> {degree}}} f"
        lines = [
            rf"U &= {space}",
            rf"{at_most} &= {_function_latex(self, fitted=True, full=full)}",
            rf"{beyond} &= {_function_latex(self, fitted=False, full=full)}",
            rf"\|{beyond}\|^2 &= {sp.latex(self.residual_norm)}",
        ]
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"

    def to_html(self) -> str:
        """Return a table in HTML."""
        degree = self.degree
        rows = [
            ("target", str(self.target)),
            ("subspace U", str(self.onto)),
            (f"fitted, degree ≤ {degree} outside U", function_text(self)),
            ("residual", function_text(self, fitted=False)),
            (f"‖P_U,>{degree} f‖²", number_text(self.residual_norm)),
            ("E f²", number_text(self.norm_squared)),
            ("norms by degree outside U", ", ".join(map(number_text, self.norms))),
            ("basis", self.basis),
        ]
        return pages.as_html([pages.Table(rows)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; numbers and functions as exact texts."""
        bounds = self.bounds
        return {
            "target": str(self.target),
            "onto": self.onto.to_dict(),
            "degree": self.degree,
            "fitted": None if bounds else expression_text(self.fitted),
            "residual": None if bounds else expression_text(self.residual),
            "residual_norm": expression_text(self.residual_norm),
            "conditional_variance": expression_text(self.conditional_variance),
            "norm_squared": expression_text(self.norm_squared),
            "norms": [expression_text(n) for n in self.norms],
            "basis": self.basis,
            "uncertainty": None if bounds is None else float(bounds.uncertainty),
        }


def project(
    target: str | sp.Expr | Activation | Target, onto: Subspace | Rows, degree: int = 0
) -> Projection:
    r"""Split a target into its part of degree at most l outside a subspace, and the rest.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f, in r coordinates of an orthonormal frame; see :func:`.targets.target.target`.
    onto : Subspace or rows
        U, or independent rows of r exact numbers that span it; none for U = {0}.
    degree : int
        l ≥ 0: the degree in :math:`x_\perp` that is still fitted. 0 gives
        :math:`\mathbb{E}[f | x_U]`.

    Returns
    -------
    Projection

    Raises
    ------
    ParameterError
        If rows are dependent, zero, of a wrong length or hold floating-point numbers, or `degree`
        is no whole number ≥ 0.
    UnsupportedExpressionError
        If a number is in no exact field, the projection has too many terms, or no norm has digits.

    Examples
    --------
    >>> project("relu(x1) + relu(x2)", [[1, 1]]).conditional_variance
    -sqrt(3)/pi + 1/pi + 1/3
    """
    f = read_target(target)
    subspace = checked_subspace(onto, f)
    degree = _checked_degree(degree, "degree", f)
    return Projection(f, subspace, degree, *_norms(f, subspace, degree))


def residual_norms(
    target: str | sp.Expr | Activation | Target,
    onto: Subspace | Rows,
    *,
    highest: int | None = None,
) -> list[sp.Expr]:
    r"""Return :math:`\|P_{U,>l} f\|^2` for l = 0, 1, …

    Exact, or floating-point numbers where :func:`project` gives those, with `bounds`.

    Parameters
    ----------
    target : str, Expr, Activation or Target
    onto : Subspace or rows
        U; see :func:`project`.
    highest : int, optional
        The last l. By default that of the first zero for a polynomial, which ends the list, and 2
        for another target.

    Raises
    ------
    ParameterError, UnsupportedExpressionError
        As :func:`project`.

    Examples
    --------
    >>> residual_norms("x1 + x2 + x1*x2", [[1, 1]])
    [1/2, 1/2, 0]
    >>> residual_norms("erf(x1) - 2*x1/sqrt(3*pi)", [], highest=1)[1]
    -4/(3*pi) + 2*asin(2/3)/pi
    """
    f = read_target(target)
    subspace = checked_subspace(onto, f)
    if highest is not None:
        highest = _checked_degree(highest, "highest", f)
    if f.is_polynomial:
        norms, _ = _norms(f, subspace, 0)
        count = len(norms) if highest is None else highest + 1
        return [sp.Add(*norms[j + 1 :]) for j in range(count)]
    highest = _SHOWN_DEGREE if highest is None else highest
    norms, bounds = _norms(f, subspace, highest)
    if bounds is not None:
        return [bounds.beyond(j) for j in range(highest + 1)]
    total = f.norm_squared
    return [_difference(total, norms[: j + 1]) for j in range(highest + 1)]


def checked_subspace(onto: Subspace | Rows, f: Target, argument: str = "onto") -> Subspace:
    """Return a subspace of the coordinates of a target from what a user gave."""
    if not isinstance(onto, Subspace):
        return Subspace.spanned_by(onto, f.dimension, argument=argument, independent=True)
    if onto.ambient_dimension != f.dimension:
        raise ParameterError(
            f"{argument} is a subspace of R^{onto.ambient_dimension}, but the target has "
            f"{f.dimension} coordinates"
        )
    return onto


def _checked_degree(degree: int, name: str, f: Target) -> int:
    if isinstance(degree, bool) or not isinstance(degree, int | sp.Integer) or degree < 0:
        raise ParameterError(f"{name} must be a whole number >= 0, got {degree!r}")
    if not f.is_polynomial and degree > HIGHEST_OPEN_DEGREE:
        raise ParameterError(
            f"{name} = {degree} is too high: targets that are no polynomials are projected up to "
            f"degree {HIGHEST_OPEN_DEGREE}"
        )
    return int(degree)


def _norms(
    f: Target, subspace: Subspace, degree: int
) -> tuple[tuple[sp.Expr, ...], BoundedNorms | None]:
    if f.is_polynomial:
        return degree_norms(f.expansion.symbol_element, subspace), None
    return _open_norms(f, subspace, degree)


@functools.lru_cache(maxsize=128)
def _open_norms(
    f: Target, subspace: Subspace, degree: int
) -> tuple[tuple[sp.Expr, ...], BoundedNorms | None]:
    if subspace.is_whole and holds_lengths(f.expr, f.variables):
        return (f.norm_squared, *(sp.S.Zero for _ in range(degree))), None
    try:
        return ridge_degree_norms(f.expr, f.variables, subspace, degree), None
    except (UnsupportedExpressionError, UndecidedError):
        bounds = bounded_norms(f, subspace)
    return tuple(bounds.norm(j) for j in range(degree + 1)), bounds


def _difference(total: sp.Expr, parts: Sequence[sp.Expr]) -> sp.Expr:
    """Return what is left of E f²; 0 if that can be decided."""
    rest = sp.expand(sp.Add(total, *(-part for part in parts)), deep=False)
    try:
        return sp.S.Zero if is_exactly_zero(rest, "the residual norm") else rest
    except UndecidedError:
        return rest
