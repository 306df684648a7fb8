r"""Conditional Gaussian equivalence: the features of a network after a giant step, given the spike.

After a step the rows are :math:`w_i = m_i v + w_i^\perp`, \|v\| = 1. Given :math:`x_v = \langle v,
x\rangle`, training and test errors of ridge regression on :math:`\varphi(x) = \sigma(Wx)` are those
on

.. math:: \mu(x_v) + \mathrm{diag}(\beta(x_v))\, W^\perp x^\perp + \Psi(x_v)^{1/2}\, \xi,
          \qquad \xi \sim \mathcal{N}(0, I_p),

(Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270) where, with :math:`c = m_i x_v` and
:math:`\rho = |w_i^\perp|`,

.. math:: \mu_i = \mathbb{E}\,\sigma(c + \rho z), \quad \beta_i = \mathbb{E}\,\sigma'(c + \rho z),
   \quad \Psi_{ii} = \mathbb{E}\,(\sigma - \mu_i - \rho z \beta_i)^2, \quad
   \Psi_{ij} = \sum_{k \ge 2} b_{i,k} b_{j,k} \frac{c_{ij}^k}{k!},

:math:`b_{i,k} = \mathbb{E}[\sigma(c + \rho z)\,\mathrm{He}_k(z)] = \rho^k \partial_c^k \mu_i`, and
:math:`c_{ij}`, of order :math:`d^{-1/2}`, the correlation of :math:`w_i^\perp` and
:math:`w_j^\perp`: Ψ is diagonal up to entries of order 1/d. Where σ jumps, :math:`\beta =
\mathbb{E}[z\sigma]/\rho`. Result 3.2 of Cui et al., arXiv 2402.04980, is the same with :math:`c =
r\kappa` and the bulk variance :math:`\rho^2`. For actual neurons closed forms are enclosed until
the digits are known; without one the defining integrals are evaluated, Ψ_ii as a mean of squares.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from ... import pages
from ...digits import checked_digits
from ...errors import ConvergenceError, ParameterError
from ...pages import Block, shorten
from ...result import Result, quantity
from ..exact.constant_enclosures import NoEnclosure, enclosure
from ..expressions.activations import Activation, activation, z
from ..expressions.arguments import as_expression
from ..expressions.bivariate_normal import with_far_tails
from ..expressions.exact_numbers import require_exact
from ..expressions.factors import factored
from ..expressions.regularity import require_square_integrable
from ..expressions.standing import Standing
from ..gaussian.expectation import GaussianExpectation, require_one_meaning
from ..gaussian.hermite_polynomials import checked_order, hermite_polynomial

# Digits that are added, in turn, to those asked for; as many may cancel.
_GUARD_DIGITS = (10, 40, 120, 320)
_NEGLIGIBLE = sp.Rational(1, 10**300)
_WIDEST = 100
"""Spread up to which integrals take seconds; poles are as close to the real line as its inverse."""


@dataclass(frozen=True)
class ConditionalFeatures(Result):
    r"""μ, β and the diagonal of Ψ of some neurons, as numbers.

    Attributes
    ----------
    projection : Expr
        :math:`x_v`.
    overlaps, spreads : tuple of Expr
        m_i and ρ_i.
    mean, slope, residual_variance : tuple of Float
        μ_i, β_i and Ψ_ii.
    digits : int
    """

    _document = "conditional features"

    projection: sp.Expr = field(metadata=quantity("projection", "x_v"))
    overlaps: tuple[sp.Expr, ...] = field(metadata=quantity("overlaps", "m_i"))
    spreads: tuple[sp.Expr, ...] = field(metadata=quantity("spreads", r"\rho_i"))
    mean: tuple[sp.Float, ...] = field(metadata=quantity("mean", r"\mu_i"))
    slope: tuple[sp.Float, ...] = field(metadata=quantity("slope", r"\beta_i"))
    residual_variance: tuple[sp.Float, ...] = field(
        metadata=quantity("residual variance", r"\Psi_{ii}")
    )
    digits: int


def features_at(
    student: Activation,
    projection: sp.Expr | float,
    overlaps: Sequence[sp.Expr | float],
    spreads: Sequence[sp.Expr | float],
    *,
    digits: int = 15,
) -> ConditionalFeatures:
    r"""Return μ, β and the diagonal of Ψ of neurons at a projection of the input.

    Parameters
    ----------
    student : Activation
        σ.
    projection : number
        :math:`x_v`.
    overlaps, spreads : sequence of numbers
        m_i and ρ_i of each neuron, as :func:`spiked_rows` gives them; a float counts as the binary
        number that it is.
    digits : int
        Significant digits, 1 to 1000. Values below 10**-300, such as Ψ_ii of relu far from the
        kink, are returned as 0, and so are integrals of what vanishes to the working precision, as
        Ψ_ii of tanh where it is saturated.

    Raises
    ------
    ParameterError
        If a number is not real, a spread not positive, or above 100 where σ has no closed forms,
        or the sequences differ in length.
    AssumptionError
        If E σ² is infinite at the largest spread.
    ConvergenceError
        If a value is too large to be computed.

    Examples
    --------
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> features_at(activation("tanh"), sp.Rational(1, 2), [1], [1], digits=20).mean
    (0.29545287705173737015,)
    """
    digits = checked_digits(digits)
    x = _number(projection, "projection")
    m, rho = _numbers(overlaps, "overlaps"), _numbers(spreads, "spreads")
    if len(m) != len(rho):
        raise ParameterError(
            f"overlaps are {len(m)} and spreads {len(rho)}; give one of each per neuron"
        )
    for i, entry in enumerate(rho):
        if not entry.is_positive:
            raise ParameterError(f"spreads[{i}] has to be positive, not {entry}")
    if rho:
        widest = max(rho, key=lambda entry: entry.evalf(30))
        require_square_integrable(
            student(widest * z), z, argument="student at the largest of spreads,"
        )
        general = ConditionalEquivalence(student, CENTRE, SPREAD).residual_variance
        if widest > _WIDEST and general.closed_form is None:
            raise ParameterError(
                f"spreads[{rho.index(widest)}] = {widest} is above {_WIDEST}: the integrals of "
                f"student {student.name!r}, which has no closed forms, would take too long there"
            )
    rows = []
    for i, (a, b) in enumerate(zip(m, rho, strict=True)):
        try:
            rows.append(_values(student, a * x, b, digits))
        except ConvergenceError as error:
            raise ConvergenceError(
                f"neuron {i}, c = {a * x}, rho = {b}: {error}; moderate overlaps and spreads can "
                "be computed"
            ) from None
    mean, slope, residual = zip(*rows, strict=True) if rows else ((), (), ())
    return ConditionalFeatures(x, m, rho, mean, slope, residual, digits)


def spiked_rows(
    scales: Sequence[sp.Expr | float],
    initial_overlaps: Sequence[sp.Expr | float] | None = None,
    initial_norms: Sequence[sp.Expr | float] | None = None,
) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    r"""Return (m_i) and (ρ_i) of the rows :math:`w_i = w_i^0 + \lambda_i v`, |v| = 1.

    .. math:: m_i = \langle w_i^0, v\rangle + \lambda_i, \qquad
              \rho_i^2 = |w_i^0|^2 - \langle w_i^0, v\rangle^2 .

    `scales`: λ_i, the step along the spike. `initial_overlaps`, `initial_norms`: :math:`\langle
    w_i^0, v\rangle` and :math:`|w_i^0|`; by default 0 and 1, the limit of unit rows that know
    nothing of v in high dimension. Raises ParameterError if the lengths differ, or a row has no
    part outside the spike.

    Examples
    --------
    >>> spiked_rows([2, -1])
    ((2, -1), (1, 1))
    >>> spiked_rows([2], [sp.Rational(3, 5)])
    ((13/5,), (4/5,))
    """
    steps = _numbers(scales, "scales")
    overlaps = (sp.S.Zero,) * len(steps)
    if initial_overlaps is not None:
        overlaps = _numbers(initial_overlaps, "initial_overlaps")
    norms = (sp.S.One,) * len(steps)
    if initial_norms is not None:
        norms = _numbers(initial_norms, "initial_norms")
    for values, name in ((overlaps, "initial_overlaps"), (norms, "initial_norms")):
        if len(values) != len(steps):
            raise ParameterError(f"{name} are {len(values)} and scales {len(steps)}; one per row")
    for i, (norm, overlap) in enumerate(zip(norms, overlaps, strict=True)):
        if not (norm - abs(overlap)).is_positive:
            raise ParameterError(
                f"initial_norms[{i}] = {norm} has to be above the overlap {overlap} in modulus: "
                "the row has no part outside the spike"
            )
    return (
        tuple(o + s for o, s in zip(overlaps, steps, strict=True)),
        tuple(sp.sqrt(n**2 - o**2) for n, o in zip(norms, overlaps, strict=True)),
    )


def _values(
    student: Activation, centre: sp.Expr, spread: sp.Expr, digits: int
) -> tuple[sp.Float, ...]:
    result = ConditionalEquivalence(student, centre, spread)
    coefficients = (result.mean, result.slope, result.residual_variance)
    return tuple(_value(coefficient, digits) for coefficient in coefficients)


def _value(coefficient: ConditionalCoefficient, digits: int) -> sp.Float:
    closed = coefficient.closed_form
    if closed is not None:
        enclosed = _enclosed(with_far_tails(closed), digits)
        if enclosed is not None:
            return enclosed
    value = _integrated(coefficient.definition, digits)
    return sp.Float(0, digits) if abs(value) < _NEGLIGIBLE else value


def _integrated(definition: sp.Expr, digits: int) -> sp.Float:
    """Integrate with more digits where the integrand cancels, as 1 - tanh² does far out."""
    for guard in _GUARD_DIGITS[:-1]:
        try:
            return sp.Float(definition.evalf(digits + guard), digits)
        except ConvergenceError:
            continue
    return sp.Float(definition.evalf(digits + _GUARD_DIGITS[-1]), digits)


def _enclosed(number: sp.Expr, digits: int) -> sp.Float | None:
    """Return the digits of a number by proven intervals of growing precision; None if they fail."""
    for guard in _GUARD_DIGITS:
        bits = math.ceil((digits + guard) * math.log2(10))
        try:
            interval = enclosure(number, bits)
        except NoEnclosure:
            continue
        low, high = (sp.Float(end, precision=bits) for end in interval.real._mpi_)
        largest = max(abs(low), abs(high))
        if largest < _NEGLIGIBLE:
            return sp.Float(0, digits)
        if 2 * (high - low) < largest * sp.Float(10, precision=bits) ** -digits:
            return sp.Float((low + high) / 2, digits)
    return None


def _number(value: Any, name: str) -> sp.Expr:
    number = as_expression(value, name)
    number = number.xreplace({x: sp.Rational(x) for x in number.atoms(sp.Float)})
    if number.free_symbols or not (number.is_real and number.is_finite):
        raise ParameterError(f"{name} has to be a finite real number, not {shorten(repr(value))}")
    return number


def _numbers(values: Any, name: str) -> tuple[sp.Expr, ...]:
    if isinstance(values, str | bytes | sp.Basic) or not hasattr(values, "__iter__"):
        raise ParameterError(f"{name} has to be a sequence of numbers, not {shorten(repr(values))}")
    return tuple(_number(value, f"{name}[{i}]") for i, value in enumerate(values))


_ROWS = (
    ("mean", "mean mu_i", r"\mu_i", r"\mathbb{E}\,\sigma(c + \rho z)"),
    ("slope", "slope beta_i", r"\beta_i", r"\mathbb{E}\,\sigma'(c + \rho z)"),
    (
        "residual_variance",
        "residual variance Psi_ii",
        r"\Psi_{ii}",
        r"\mathbb{E}\,\sigma(c + \rho z)^2 - \mu_i^2 - \rho^2\beta_i^2",
    ),
)
_FEATURES = (
    r"\sigma(Wx) \simeq \mu(x_v) + \operatorname{diag}(\beta(x_v))\, W^\perp x^\perp"
    r" + \Psi(x_v)^{1/2}\, \xi"
)
_OFF_DIAGONAL = r"\Psi_{ij} = \tfrac{1}{2}\, b_{i,2}\, b_{j,2}\, c_{ij}^2 + O(d^{-3/2})"
_LONGEST = 400


def _kind(coefficient: ConditionalCoefficient) -> str:
    return "integral" if coefficient.closed_form is None else "closed form"


def _shown(coefficient: ConditionalCoefficient) -> str:
    return shorten(str(coefficient.expr), _LONGEST)


def _latex(coefficient: ConditionalCoefficient) -> str:
    text: str = sp.latex(coefficient.expr)
    return text


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
class ConditionalEquivalence(Result):
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

    _document = "conditional equivalence"
    _derived = ("standing", "source", "mean", "slope", "residual_variance", "second_moment")

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

        `k`: order, 0 to 32; b_0 = μ and b_1 = ρβ.
        """
        k = checked_order(k)
        if k > HIGHEST_ORDER:
            raise ParameterError(f"k must be at most {HIGHEST_ORDER}, got {k}")
        value = self.student(self.centre + self.spread * z)
        definition = GaussianExpectation(value * hermite_polynomial(k, z), z)
        return self._with_closed_form(definition, _closed_coefficient(self.student, k))

    def residual_covariance(self, order: int = 2) -> sp.Expr:
        r"""Return the off-diagonal :math:`\Psi_{ij}` as a polynomial in the correlation c_ij.

        `order`: K, at least 2: :math:`\sum_{k=2}^K b_{i,k} b_{j,k} c_{ij}^k/k!`. What is left out
        is at most :math:`|c_{ij}|^{K+1} \sqrt{\Psi_{ii}\Psi_{jj}}`, by the Cauchy–Schwarz
        inequality. The result: in c_i, rho_i, c_j, rho_j and c_ij; for order 2 of the size 1/d.
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

        See :func:`features_at`.
        """
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

    def page(self) -> Iterable[Block]:
        """Return the coefficients."""
        yield (
            f"conditional Gaussian equivalence of sigma = {self.student} "
            f"({self.standing.value}: {self.source})"
        )
        yield "sigma(W x) ~ mu(x_v) + diag(beta(x_v)) W_perp x_perp + Psi(x_v)^(1/2) xi"
        yield f"centre c = m_i x_v = {self.centre}, spread rho = |w_i_perp| = {self.spread}"
        for name, title, *_ in _ROWS:
            yield f"  {title} = {_shown(getattr(self, name))}"
        yield (
            "  off the diagonal b_i b_j c_ij^2/2 + O(d^(-3/2)), "
            f"b_2 = {_shown(self.coefficient(2))}"
        )

    def __repr__(self) -> str:
        return (
            f"ConditionalEquivalence({self.student.name!r}, c = {self.centre}, rho = {self.spread})"
        )

    def latex(self) -> str:
        """Return the equations in LaTeX, aligned."""
        rows = [_FEATURES.replace(r"\simeq", r"&\simeq")]
        for name, _, symbol, meaning in _ROWS:
            rows.append(rf"{symbol} &= {meaning} = {_latex(getattr(self, name))}")
        rows.append(_OFF_DIAGONAL.replace(" = ", " &= ", 1))
        rows.append(rf"b_2 &= {_latex(self.coefficient(2))}")
        rows.append(rf"c &= {sp.latex(self.centre)},\ \rho = {sp.latex(self.spread)}")
        return r"\begin{aligned} " + r" \\ ".join(rows) + r" \end{aligned}"

    def _repr_html_(self) -> str:
        coefficients = [(symbol, getattr(self, name)) for name, _, symbol, _ in _ROWS]
        rows = [
            (f"${symbol}$", rf"$\displaystyle {_latex(one)}$", _kind(one))
            for symbol, one in (*coefficients, ("b_2", self.coefficient(2)))
        ]
        title = (
            f"Conditional Gaussian equivalence of {self.student.name} ({self.standing.value}; "
            rf"{self.source}): $\displaystyle {_FEATURES}$"
        )
        return pages.as_html([title, pages.Table(rows)])


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
    sigma = activation(student, parameters=True, argument="student")
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
    result = _closed(GaussianExpectation(value * hermite_polynomial(k, z), z))
    return _collected(result) if result is not None and k <= _MOST_COLLECTED else result


def _closed(node: sp.Expr) -> sp.Expr | None:
    result = node.doit()
    return None if result.has(GaussianExpectation) else result


def _collected(expr: sp.Expr) -> sp.Expr:
    """Gather the factors of each exponential or special function; polynomials are expanded."""
    expr = expr.replace(sp.exp, lambda exponent: sp.exp(factored(exponent)))
    marks = {node: sp.Dummy() for node in sorted(expr.atoms(sp.Function), key=sp.default_sort_key)}
    marked = expr.xreplace(marks)
    if not marks or not marked.is_polynomial(*marks.values()):
        return sp.expand(expr) if expr.is_polynomial(CENTRE, SPREAD) else expr
    total = []
    for powers, coefficient in sp.Poly(marked, *marks.values(), domain=sp.EXRAW).terms():
        above, below = sp.fraction(sp.together(coefficient))
        functions = (node**n for node, n in zip(marks, powers, strict=True))
        total.append(factored(sp.expand(above)) / factored(below) * sp.Mul(*functions))
    return sp.Add(*total)


def _require_positive(value: sp.Expr, name: str) -> None:
    if value.is_positive and value.is_finite is not False:
        return
    hint = "" if value.is_number else "; declare its symbols with positive=True"
    raise ParameterError(f"{name} has to be positive, not {value}{hint}")
