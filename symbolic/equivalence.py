r"""Conditional Gaussian equivalence: the features of a network after a giant step, given the spike.

After a step the rows are :math:`w_i = m_i v + w_i^\perp`, |v| = 1. Given :math:`x_v = \langle v,
x\rangle`, training and test errors of ridge regression on :math:`\varphi(x) = \sigma(Wx)` are those
on

.. math:: \mu(x_v) + \mathrm{diag}(\beta(x_v))\, W^\perp x^\perp + \Psi(x_v)^{1/2}\, \xi,
          \qquad \xi \sim \mathcal{N}(0, I_p),

(Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270) where, with :math:`c = m_i x_v` and
:math:`\rho = |w_i^\perp|`,

.. math:: \mu_i = \mathbb{E}\,\sigma(c + \rho z), \quad \beta_i = \mathbb{E}\,\sigma'(c + \rho z),
   \quad \Psi_{ii} = \mathbb{E}\,(\sigma - \mu_i - \rho z \beta_i)^2, \quad
   \Psi_{ij} = \sum_{k \ge 2} b_{i,k} b_{j,k} \frac{c_{ij}^k}{k!},

:math:`b_{i,k} = \mathbb{E}[\sigma(c + \rho z)\,\mathrm{He}_k(z)] = \rho^k \partial_c^k \mu_i`, He_k
the probabilists' polynomials, and :math:`c_{ij}` the correlation of :math:`w_i^\perp` and
:math:`w_j^\perp`, of order :math:`d^{-1/2}`: Ψ is diagonal up to entries of order 1/d. Result 3.2
of Cui et al., arXiv 2402.04980, is the same with :math:`c = r\kappa` and the bulk variance
:math:`\rho^2`; both use the definitions of this module.

Where σ jumps, β is written by Stein's lemma as :math:`\mathbb{E}[z\sigma]/\rho`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from ..errors import ParameterError
from ..pages import Typeset
from .activations import Activation, activation, z
from .exact_numbers import require_exact
from .gaussian import GaussianExpectation, require_one_meaning
from .hermite_polynomials import checked_order, hermite_polynomial
from .standing import Standing

if TYPE_CHECKING:
    from .equivalence_values import ConditionalFeatures

SOURCE = "Dandi et al., arXiv 2305.18270, conditional Gaussian equivalence"
HIGHEST_ORDER = 32

CENTRE = sp.Symbol("c", real=True)
"""c = m_i x_v, where the argument of a neuron is centred given the spike."""
SPREAD = sp.Symbol("rho", positive=True)
r"""ρ = \|w_i^⊥\|, its standard deviation."""
CORRELATION = sp.Symbol("c_ij", real=True)
"""Correlation of two rows outside the spike."""


def mean_definition(student: Activation, centre: sp.Expr, spread: sp.Expr) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_z\,\sigma(c + \rho z)`, not evaluated."""
    return GaussianExpectation(student(centre + spread * z), z)


def slope_definition(student: Activation, centre: sp.Expr, spread: sp.Expr) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_z\,\sigma'(c + \rho z)`, not evaluated."""
    if student.jumps:
        return GaussianExpectation(z * student(centre + spread * z) / spread, z)
    return GaussianExpectation(student.derivative.xreplace({z: centre + spread * z}), z)


def residual_variance_definition(
    student: Activation, centre: sp.Expr, spread: sp.Expr, mean: sp.Expr, slope: sp.Expr
) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_z(\sigma(c + \rho z) - \mu - \rho z \beta)^2`, not evaluated.

    As a mean of squares: the difference of second moments cancels where σ is nearly affine.
    """
    return GaussianExpectation((student(centre + spread * z) - mean - spread * z * slope) ** 2, z)


def norm_response_definition(student: Activation, centre: sp.Expr, spread: sp.Expr) -> sp.Expr:
    r"""Return :math:`2\,\partial_{\rho^2}\mu = \mathbb{E}\,\sigma'' = \mathbb{E}[z\sigma']/\rho`.

    The form on the right needs no second derivative.
    """
    inside = student.derivative.xreplace({z: centre + spread * z})
    return GaussianExpectation(z * inside / spread, z)


@dataclass(frozen=True)
class ConditionalCoefficient:
    """One coefficient, as the integral that defines it and in closed form.

    Attributes
    ----------
    definition : Expr
        With unevaluated 𝔼 nodes, which evaluate to any number of digits.
    closed_form : Expr or None
    """

    definition: sp.Expr
    closed_form: sp.Expr | None

    @property
    def expr(self) -> sp.Expr:
        """The closed form if there is one, else the definition."""
        return self.definition if self.closed_form is None else self.closed_form


@dataclass(frozen=True, repr=False)
class ConditionalEquivalence(Typeset):
    r"""The coefficients μ, β, Ψ of the equivalent features, as functions of c and ρ.

    Made by :func:`conditional_equivalence`.

    Attributes
    ----------
    student : Activation
    centre, spread : Expr
        c and ρ, symbols unless others were given.

    Examples
    --------
    >>> found = conditional_equivalence("sin")
    >>> found.mean.expr, found.slope.expr
    (exp(-rho**2/2)*sin(c), exp(-rho**2/2)*cos(c))
    >>> found.residual_covariance()
    c_ij**2*rho_i**2*rho_j**2*exp(-rho_i**2/2)*exp(-rho_j**2/2)*sin(c_i)*sin(c_j)/2
    >>> conditional_equivalence("tanh").at(sp.Rational(1, 2), [1], [1], digits=20).mean
    (0.29545287705173737015,)
    """

    student: Activation
    centre: sp.Expr
    spread: sp.Expr

    standing = Standing.THEOREM
    source = SOURCE

    @property
    def mean(self) -> ConditionalCoefficient:
        r"""μ = E σ(c + ρz)."""
        definition = mean_definition(self.student, self.centre, self.spread)
        return self._with_closed_form(definition, _closed_forms(self.student).mean)

    @property
    def slope(self) -> ConditionalCoefficient:
        r"""β = E σ'(c + ρz), with Φ(x_v) = diag(β) W^⊥."""
        definition = slope_definition(self.student, self.centre, self.spread)
        return self._with_closed_form(definition, _closed_forms(self.student).slope)

    @property
    def second_moment(self) -> ConditionalCoefficient:
        r"""E σ(c + ρz)²."""
        square = self.student(self.centre + self.spread * z) ** 2
        closed = _closed_forms(self.student).square
        return self._with_closed_form(GaussianExpectation(square, z), closed)

    @property
    def residual_variance(self) -> ConditionalCoefficient:
        r"""Ψ_ii = E (σ − μ − ρzβ)² = E σ² − μ² − ρ²β², the diagonal of Ψ."""
        definition = residual_variance_definition(
            self.student,
            self.centre,
            self.spread,
            mean_definition(self.student, self.centre, self.spread),
            slope_definition(self.student, self.centre, self.spread),
        )
        return self._with_closed_form(definition, _closed_forms(self.student).residual)

    def coefficient(self, k: int) -> ConditionalCoefficient:
        r"""Return :math:`b_k = \mathbb{E}[\sigma(c + \rho z)\,\mathrm{He}_k(z)]`.

        Parameters
        ----------
        k : int
            Order, 0 to 32; b_0 = μ and b_1 = ρβ.
        """
        k = checked_order(k)
        if k > HIGHEST_ORDER:
            raise ParameterError(f"k must be at most {HIGHEST_ORDER}, got {k}")
        value = self.student(self.centre + self.spread * z)
        definition = GaussianExpectation(value * hermite_polynomial(k, z), z)
        return self._with_closed_form(definition, _closed_coefficient(self.student, k))

    def residual_covariance(self, order: int = 2) -> sp.Expr:
        r"""Return the off-diagonal :math:`\Psi_{ij}` as a polynomial in the correlation c_ij.

        Parameters
        ----------
        order : int
            K, at least 2: :math:`\sum_{k=2}^K b_{i,k} b_{j,k} c_{ij}^k/k!`. What is left out is at
            most :math:`|c_{ij}|^{K+1} \sqrt{\Psi_{ii}\Psi_{jj}}`, by the Cauchy–Schwarz inequality.

        Returns
        -------
        Expr
            In c_i, rho_i, c_j, rho_j and c_ij; for order 2 of the size 1/d.
        """
        order = checked_order(order, "K")
        if not 2 <= order <= HIGHEST_ORDER:
            raise ParameterError(f"order must be from 2 to {HIGHEST_ORDER}, got {order}")
        first, second = (
            ConditionalEquivalence(
                self.student, sp.Symbol(f"c_{i}", real=True), sp.Symbol(f"rho_{i}", positive=True)
            )
            for i in "ij"
        )
        return sp.Add(
            *(
                first.coefficient(k).expr
                * second.coefficient(k).expr
                * CORRELATION**k
                / sp.factorial(k)
                for k in range(2, order + 1)
            )
        )

    def at(
        self,
        projection: sp.Expr | float,
        overlaps: Sequence[sp.Expr | float],
        spreads: Sequence[sp.Expr | float],
        *,
        digits: int = 15,
    ) -> ConditionalFeatures:
        r"""Return μ, β and the diagonal of Ψ of neurons at a projection of the input.

        See :func:`.equivalence_values.features_at`.
        """
        from .equivalence_values import features_at

        return features_at(self.student, projection, overlaps, spreads, digits=digits)

    def _with_closed_form(
        self, definition: sp.Expr, closed: sp.Expr | None
    ) -> ConditionalCoefficient:
        if closed is not None:
            closed = closed.xreplace({CENTRE: _C, SPREAD: _R})
            closed = closed.xreplace({_C: self.centre, _R: self.spread})
        elif (self.centre, self.spread) != (CENTRE, SPREAD):
            # At c = 0, say, parity alone may decide.
            closed = _closed(definition)
        return ConditionalCoefficient(definition, closed)

    def __str__(self) -> str:
        from .equivalence_text import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return (
            f"ConditionalEquivalence({self.student.name!r}, c = {self.centre}, rho = {self.spread})"
        )

    def latex(self) -> str:
        """Return the equations in LaTeX, aligned."""
        from .equivalence_text import as_latex

        return as_latex(self)

    def _repr_html_(self) -> str:
        from .equivalence_text import as_html

        return as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: definitions and closed forms as texts."""
        from .equivalence_text import as_dict

        return as_dict(self)


def conditional_equivalence(
    student: str | sp.Expr | Activation,
    centre: sp.Expr | int = CENTRE,
    spread: sp.Expr | int = SPREAD,
) -> ConditionalEquivalence:
    r"""Return the Gaussian features that are equivalent to those of a student, given the spike.

    Parameters
    ----------
    student : str, Expr or Activation
        σ, as :func:`.activations.activation` takes it.
    centre : Expr
        :math:`c = m_i x_v`, an exact real expression; such as r κ.
    spread : Expr
        :math:`\rho = |w_i^\perp|`, an exact positive one; such as the root of a bulk variance.

    Raises
    ------
    ParameterError
        If they hold floats, `centre` is not declared real or `spread` not positive.
    AssumptionError
        If two of their symbols have one name.

    Examples
    --------
    >>> r, kappa = sp.symbols("r kappa", real=True)
    >>> b = sp.Symbol("b", positive=True)
    >>> conditional_equivalence("erf", r * kappa, sp.sqrt(b)).mean.expr
    erf(kappa*r/sqrt(2*b + 1))
    """
    sigma = activation(student, argument="student")
    where, width = require_exact(centre, "centre"), require_exact(spread, "spread")
    for value, name in ((where, "centre"), (width, "spread")):
        if value.has(z):
            raise ParameterError(f"{name} {value} holds z, the variable of the expectations")
    if not where.is_real:
        raise ParameterError(
            f"centre {where} is not known to be real; declare its symbols with real=True"
        )
    _require_positive(width, "spread")
    require_one_meaning({z, *where.free_symbols, *width.free_symbols})
    return ConditionalEquivalence(sigma, where, width)


# ------------------------------------------------------------------ closed forms

# Coefficients of higher order are sums that are shorter as the rules leave them.
_MOST_COLLECTED = 4
# Stand-ins, so that a centre or a spread may itself hold symbols named c or rho.
_C, _R = sp.Dummy("c", real=True), sp.Dummy("rho", positive=True)


@dataclass(frozen=True)
class _ClosedForms:
    mean: sp.Expr | None
    slope: sp.Expr | None
    square: sp.Expr | None
    residual: sp.Expr | None


@functools.lru_cache(maxsize=64)
def _closed_forms(student: Activation) -> _ClosedForms:
    """Closed forms in CENTRE and SPREAD."""
    mean = _closed(mean_definition(student, CENTRE, SPREAD))
    slope = _closed(slope_definition(student, CENTRE, SPREAD))
    slope = None if slope is None else _collected(slope)
    square = _closed(GaussianExpectation(student(CENTRE + SPREAD * z) ** 2, z))
    residual = None
    if mean is not None and slope is not None and square is not None:
        residual = square - mean**2 - SPREAD**2 * slope**2
        if residual.is_polynomial(CENTRE, SPREAD):
            residual = sp.expand(residual)
    return _ClosedForms(mean, slope, square, residual)


@functools.lru_cache(maxsize=512)
def _closed_coefficient(student: Activation, k: int) -> sp.Expr | None:
    """b_k in CENTRE and SPREAD."""
    if k == 0:
        return _closed_forms(student).mean
    value = student(CENTRE + SPREAD * z)
    found = _closed(GaussianExpectation(value * hermite_polynomial(k, z), z))
    return _collected(found) if found is not None and k <= _MOST_COLLECTED else found


def _closed(node: sp.Expr) -> sp.Expr | None:
    found = node.doit()
    return None if found.has(GaussianExpectation) else found


def _collected(expr: sp.Expr) -> sp.Expr:
    """Gather the factors of each exponential or special function; polynomials are expanded."""
    expr = expr.replace(sp.exp, lambda exponent: sp.exp(sp.factor(exponent)))
    marks = {node: sp.Dummy() for node in sorted(expr.atoms(sp.Function), key=sp.default_sort_key)}
    marked = expr.xreplace(marks)
    if not marks or not marked.is_polynomial(*marks.values()):
        return sp.expand(expr) if expr.is_polynomial(CENTRE, SPREAD) else expr
    total = []
    for powers, coefficient in sp.Poly(marked, *marks.values(), domain=sp.EXRAW).terms():
        above, below = sp.fraction(sp.together(coefficient))
        functions = (node**n for node, n in zip(marks, powers, strict=True))
        total.append(sp.factor(sp.expand(above)) / sp.factor(below) * sp.Mul(*functions))
    return sp.Add(*total)


def _require_positive(value: sp.Expr, name: str) -> None:
    if value.is_positive and value.is_finite is not False:
        return
    hint = "" if value.is_number else "; declare its symbols with positive=True"
    raise ParameterError(f"{name} has to be positive, not {value}{hint}")
