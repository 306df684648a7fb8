r"""Conditional projections: the part of a target that is of low degree outside a subspace.

A network whose first layer has learned a subspace U sees :math:`x_U` as it is and everything else
as random features do. With :math:`x_\perp = x - x_U`,

.. math:: f = \sum_j P_{U,=j} f, \qquad P_{U,\le l} f = \sum_{j \le l} P_{U,=j} f,

where :math:`P_{U,=j} f` has degree j in :math:`x_\perp` and any dependence on :math:`x_U`: in an
orthonormal basis adapted to U the Hermite terms with :math:`|\alpha_\perp| = j`. In particular

.. math:: P_{U,\le 0} f = \mathbb{E}[f | x_U], \qquad
          \|P_{U,>0} f\|^2 = \mathbb{E} \operatorname{Var}(f | x_U).

Exact for polynomials (:mod:`.projection_norms`). Other targets are treated in closed form as far as
rules go (:mod:`.ridge_norms`, :mod:`.ridge_projections`); what is left is an unevaluated 𝔼. Where
that has no digits, or a closed form would fill pages, norms are numbers with a proven bound
(:mod:`.projection_bounds`).

Source: Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270, for the notation.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sp

from ..errors import ParameterError, UndecidedError, UnsupportedExpressionError
from ..json_document import WritesJson
from ..pages import Typeset
from .activations import Activation
from .averages import Average
from .enclosed_formulas import FormulaBalls
from .enclosures import Enclosure
from .hermite_expansion import HermiteExpansion
from .projection_bounds import BoundedNorms, bounded_norms
from .projection_norms import degree_norms, part_up_to
from .projection_presentation import as_dict, as_html, as_latex, as_text
from .ridge_norms import ridge_degree_norms
from .ridge_projections import ridge_part_up_to
from .subspaces import Subspace
from .targets import Target
from .targets import target as read_target
from .zero_test import is_exactly_zero

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
        return as_text(self)

    def __repr__(self) -> str:
        return (
            f"Projection({self.target.name!r} onto {self.onto}, degree {self.degree}: "
            f"residual {self.residual_norm})"
        )

    def latex(self, *, full: bool = False) -> str:
        """Return fitted function and residual norm in LaTeX; long functions cut unless `full`."""
        return as_latex(self, full=full)

    def to_html(self) -> str:
        """Return a table in HTML."""
        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; numbers and functions as exact texts."""
        return as_dict(self)


def project(
    target: str | sp.Expr | Activation | Target, onto: Subspace | Rows, degree: int = 0
) -> Projection:
    r"""Split a target into its part of degree at most l outside a subspace, and the rest.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f, in r coordinates of an orthonormal frame; see :func:`.targets.target`.
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
    -4*atan(sqrt(5)/5)/pi - 4/(3*pi) + 1
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
