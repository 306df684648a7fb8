r"""What a two-layer network fits after giant steps, and what error is left.

With :math:`n \asymp d^{\kappa_1}` samples per step, :math:`p \asymp d^{\kappa_2}` neurons and T
giant steps, the first layer knows a subspace U, and the second layer fits, of everything else, the
degrees up to :math:`\kappa = \min(\kappa_1, \kappa_2)`:

.. math:: \hat f \approx P_{U,\le\kappa} f, \qquad
          \mathbb{E}(f - \hat f)^2 \approx \|P_{U,>\kappa} f\|^2 .

U is that of the staircase with all orders up to :math:`\kappa_1`; after one step the sum of the
ranges of the Hermite tensors :math:`C_1, \dots, C_{\lfloor\kappa_1\rfloor}`. Parts of this are
theorems, parts conjectures and parts extrapolations; each prediction says which covers the case at
hand, and what has to be known beside it.

Sources: Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270 (learned subspaces; lower
bound for p = O(1); Conjectures 1 and 3; the five regimes of their example); Mei, Misiakiewicz and
Montanari, Appl. Comput. Harmon. Anal. 59 (2022), and Ghorbani, Mei, Misiakiewicz and Montanari,
Ann. Statist. 49 (2021), for U = {0}, random features.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, cast

import sympy as sp

from ...errors import AssumptionError, ParameterError, UndecidedError
from ...pages import Block, Table, shorten
from ...pictures import Bars
from ...result import Result
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.expressions.parser import Parameters
from ...symbolic.expressions.standing import Standing
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.expansion import expansion_latex
from ...symbolic.leaps.leap_index import leap_index
from ...symbolic.targets.activation_mask import DegreeMask, activation_mask
from ...symbolic.targets.projections import (
    Projection,
    digits_of,
    function_text,
    number_text,
    project,
)
from ...symbolic.targets.ridge_terms import ridge_terms
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import Target, target as read_target

_DANDI = "Dandi et al., arXiv 2305.18270"
_RANDOM_FEATURES = "Mei, Misiakiewicz, Montanari, Appl. Comput. Harmon. Anal. 59 (2022)"
_LOWER_BOUND = "Ghorbani, Mei, Misiakiewicz, Montanari, Ann. Statist. 49 (2021)"


@dataclass(frozen=True)
class Statement:
    """What one part of a prediction rests on."""

    standing: Standing
    source: str
    caveats: tuple[str, ...] = ()

    def with_caveat(self, caveat: str) -> Statement:
        """Return the same with one more thing to be known."""
        return Statement(self.standing, self.source, (*self.caveats, caveat))


@functools.lru_cache(maxsize=256)
def learned_subspace(f: Target, order: int, steps: int, mask: DegreeMask) -> tuple[Subspace, bool]:
    """Return the subspace after T steps of orders ≤ κ1, and whether it was decided."""
    subspace, decided = Subspace.zero(f.dimension), True
    for t in range(1, steps + 1 if order else 0):
        result = spans_of(f, mask, step=min(t, 2)).grow(subspace, order)
        decided = decided and result.decided
        # What a student sees differs between the first step and later ones only.
        if t > 1 and result.subspace == subspace:
            break
        subspace = result.subspace
    return subspace, decided or subspace.is_whole


def origin_of_subspace(
    f: Target, order: int, steps: int, mask: DegreeMask, subspace: Subspace, decided: bool
) -> Statement:
    """Say what the learned subspace rests on."""
    if steps == 0:
        return Statement(Standing.THEOREM, "no step: the first layer is random")
    if not decided:
        return Statement(
            Standing.HEURISTIC,
            _DANDI,
            ("the rank is not decided: U may be larger, and the error then smaller",),
        )
    masked = not mask.is_whole and learned_subspace(f, order, steps, DegreeMask())[0] != subspace
    if masked:
        weakest = Standing.CONJECTURE if order == 1 else Standing.EXTRAPOLATION
        return Statement(
            Standing.DERIVED_HERE if steps == order == 1 else weakest,
            f"{_DANDI}, for the degrees that the student sees",
            (f"the student {mask.activation} does not see all degrees of the target",),
        )
    if subspace.is_zero:
        what = f"{_DANDI}: with n = O(d^(l - eps)), l the leap index, nothing is learned"
        return Statement(Standing.THEOREM if steps == 1 else Standing.CONJECTURE, what)
    if steps == 1:
        return _one_step(f, order, subspace)
    if learned_subspace(f, 1, steps, mask) == (subspace, True):
        if steps == 2:
            return Statement(
                Standing.THEOREM, f"{_DANDI}, two steps", ("proven for the expected gradient",)
            )
        return Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 1")
    return Statement(
        Standing.EXTRAPOLATION,
        f"{_DANDI}, Conjecture 1 taken to orders up to {order}",
        (_LOWER_ORDERS_FIRST,),
    )


_LOWER_ORDERS_FIRST = (
    "directions of several orders in one step: higher orders are visible only beside, or without, "
    "the lower ones"
)


def _one_step(f: Target, order: int, subspace: Subspace) -> Statement:
    spans = spans_of(f)
    lowest = spans.grow(Subspace.zero(f.dimension), order, strict=True)
    leap = lowest.lowest_order
    if lowest.subspace != subspace:
        return Statement(
            Standing.EXTRAPOLATION,
            f"all orders up to {order}, as in the five regimes of {_DANDI}",
            (_LOWER_ORDERS_FIRST,),
        )
    if leap == 1 or _is_separable(f):
        return Statement(Standing.THEOREM, f"{_DANDI}, one step at leap index {leap}")
    return Statement(
        Standing.DERIVED_HERE,
        f"range of C_{leap}; theorem of {_DANDI} for sums of functions of one coordinate each",
    )


def _is_separable(f: Target) -> bool:
    """Whether f is a sum of functions of one coordinate each."""
    if f.is_polynomial:
        indices = f.expansion.he_coefficients()
        return all(sum(map(bool, alpha)) <= 1 for alpha in indices)
    for term in ridge_terms(f.expr, f.variables, radial=True):
        if term.radials:
            return False
        used = [i for i, n in enumerate(term.powers) if n]
        used += [i for ridge in term.ridges for i, a in enumerate(ridge.direction) if a != 0]
        if len(set(used)) > 1:
            return False
    return True


def origin_of_error(
    projection: Projection, kappa1: sp.Rational, kappa2: sp.Rational, steps: int, mask: DegreeMask
) -> tuple[str, Statement]:
    """Say how the error is related to the residual, and what that rests on."""
    kappa = min(kappa1, kappa2)
    if kappa2 == 0:
        return "≥", Statement(
            Standing.THEOREM,
            f"{_DANDI}: E Var(f | x_U) for p = O(1)",
            ("for bounded readout weights",),
        )
    degree = projection.degree
    caveats = []
    if kappa.is_Integer and projection.has_degree(degree):
        caveats.append(
            f"at the whole exponent {kappa} the part of degree {kappa} outside U is fitted in "
            "part only"
        )
    if not projection.onto.is_zero:
        return "≥", Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 3", tuple(caveats))
    if kappa.is_Integer:
        caveats.append(f"the limit itself is proven for exponents that are not whole, not {kappa}")
    if kappa1 == kappa2:
        caveats.append("n and p of one order: the limit is proven where they are a power apart")
    unseen = [
        k for k in range(1, degree + 1) if projection.has_degree(k) and not mask.admits(k, step=1)
    ]
    if unseen:
        caveats.append(
            f"features of the student {mask.activation} have no part of degree "
            f"{', '.join(map(str, unseen))}, which is not fitted"
        )
    if steps:
        caveats.append(
            "a theorem for a first layer that is not trained; here training finds nothing"
        )
        return "≥", Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 3", tuple(caveats))
    exact = not caveats
    source = _RANDOM_FEATURES if exact else f"{_LOWER_BOUND}; {_RANDOM_FEATURES}"
    return "→" if exact else "≥", Statement(Standing.THEOREM, source, tuple(caveats))


Exponent: TypeAlias = int | float | Fraction | sp.Rational

FIVE_REGIMES: tuple[tuple[int, int], ...] = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
"""(κ1, κ2) of the example of Dandi et al.: n = d or d², p = 1, d or d²."""

MOST_STEPS = 100
HIGHEST_EXPONENT = 64

# From the best to the weakest.
_RANKS = (
    Standing.THEOREM,
    Standing.DERIVED_HERE,
    Standing.CONJECTURE,
    Standing.EXTRAPOLATION,
    Standing.HEURISTIC,
)


@dataclass(frozen=True, repr=False)
class FitPrediction(Result):
    r"""The predicted fit for one scaling of samples and neurons with the dimension.

    Made by :func:`predict_fit`.

    Attributes
    ----------
    samples_exponent, width_exponent : Rational
        κ1 and κ2: n ≍ d^κ1 samples in each step, p ≍ d^κ2 neurons.
    steps : int
        T.
    student : Activation or None
        None for a generic one.
    projection : Projection
        Of the target on U, up to degree ⌊κ⌋ outside it: fitted function and residual.
    relation : str
        "→" if the error converges to the residual, "≥" if that is a lower bound of its limit.
    subspace_basis, error_basis : Statement
        What U, and the error given U, rest on.
    decided : bool
        Whether the staircase was decided to its end; else U may be larger.

    Examples
    --------
    >>> fit = predict_fit("x1 + x1*x2 + He(2, x2)", 1, 1)
    >>> fit.subspace, fit.fitted, fit.residual, str(fit.standing)
    (Subspace ⟨e1⟩ of R^2, x1*x2 + x1, 2, 'conjecture')
    """

    _document = "predicted fit"
    _derived = ("kappa", "subspace", "residual", "standing", "source", "caveats")

    samples_exponent: sp.Rational
    width_exponent: sp.Rational
    steps: int
    student: Activation | None
    projection: Projection
    relation: str
    subspace_basis: Statement
    error_basis: Statement
    decided: bool

    @property
    def target(self) -> Target:
        """The target f."""
        return self.projection.target

    @property
    def kappa(self) -> sp.Rational:
        """κ = min(κ1, κ2)."""
        return min(self.samples_exponent, self.width_exponent)

    @property
    def subspace(self) -> Subspace:
        """U, the subspace that the first layer has learned."""
        return self.projection.onto

    @property
    def fitted(self) -> sp.Expr:
        r""":math:`P_{U,\le\kappa} f`, the function that is fitted."""
        return self.projection.fitted

    @property
    def residual(self) -> sp.Expr:
        r""":math:`\|P_{U,>\kappa} f\|^2`, the error that is left."""
        return self.projection.residual_norm

    @property
    def standing(self) -> Standing:
        """The weakest of the standings of U and of the error."""
        parts = (self.subspace_basis.standing, self.error_basis.standing)
        return max(parts, key=_RANKS.index)

    @property
    def source(self) -> str:
        """Where both parts are from."""
        parts = dict.fromkeys((self.subspace_basis.source, self.error_basis.source))
        return "; ".join(parts)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What has to be known beside the numbers."""
        return (*self.subspace_basis.caveats, *self.error_basis.caveats)

    def page(self) -> Iterable[Block]:
        """Return the prediction, and what its parts rest on."""
        degree = self.projection.degree
        n, p = _power(self.samples_exponent), _power(self.width_exponent)
        student = "" if self.student is None else f", student {self.student}"
        return [
            f"f = {self.target}; n ~ {n}, p ~ {p}, steps {self.steps}{student}",
            f"learned subspace U = {self.subspace}"
            f" ({self.subspace_basis.standing.value}: {self.subspace_basis.source})",
            f"fitted P_U,<={degree} f = {function_text(self.projection)}",
            f"error {self.relation} {number_text(self.residual)}"
            f" of E f^2 = {number_text(self.projection.norm_squared)}"
            f" ({self.error_basis.standing.value}: {self.error_basis.source})",
            *(f"note: {caveat}" for caveat in self.caveats),
        ]

    def __repr__(self) -> str:
        return (
            f"FitPrediction(n ~ d^{self.samples_exponent}, p ~ d^{self.width_exponent}, "
            f"T = {self.steps}: U = {self.subspace}, error {self.relation} {self.residual}, "
            f"{self.standing.value})"
        )

    def latex(self) -> str:
        """Return the prediction as a table of one row in LaTeX, without delimiters."""
        return table_latex([self])

    def picture(self) -> Bars:
        """Return the error as a bar."""
        return _bars(self.target, [self])


@dataclass(frozen=True, repr=False)
class RegimeTable(Result):
    """Predictions for several scalings, one row each.

    Made by :func:`regimes`.
    """

    _document = "regimes"

    target: Target
    student: Activation | None
    rows: tuple[FitPrediction, ...]

    @property
    def residuals(self) -> tuple[sp.Expr, ...]:
        """The predicted errors, row by row."""
        return tuple(row.residual for row in self.rows)

    def page(self) -> Iterable[Block]:
        """Return a table of the rows with their sources and caveats."""
        notes: dict[str, int] = {}
        cells = []
        for row in self.rows:
            marks = [notes.setdefault(note, len(notes) + 1) for note in _notes(row)]
            basis = f"{row.standing.value} [{','.join(map(str, sorted(marks)))}]"
            n, p, steps, subspace, kappa, fitted, _ = _cells(row)
            subspace = shorten(str(row.subspace), _LONGEST_SUBSPACE) + ("" if row.decided else " +")
            error = f"{row.relation} {_short_number(row.residual)}"
            cells.append(
                [n, p, steps, subspace, kappa, shorten(fitted, _LONGEST_FUNCTION), error, basis]
            )
        head = f"f = {self.target}, E f^2 = {number_text(self.rows[0].projection.norm_squared)}"
        yield head if self.student is None else f"{head}, student {self.student}"
        beside = [(function_text(row.projection), number_text(row.residual)) for row in self.rows]
        yield Table(cells, (*_HEADINGS, "fitted in full", "error in full"), beside=beside)
        yield _LEGEND
        if any(not row.decided for row in self.rows):
            yield "+: U may be larger"
        yield from (f"[{number}] {note}" for note, number in notes.items())

    def __repr__(self) -> str:
        errors = ", ".join(str(value) for value in self.residuals)
        return f"RegimeTable({self.target.name!r}: residuals {errors})"

    def latex(self) -> str:
        """Return the table in LaTeX, an array without delimiters."""
        return table_latex(self.rows)

    def picture(self) -> Bars:
        """Return the errors as bars, with the subspaces that are learned."""
        return _bars(self.target, self.rows)


def predict_fit(
    target: str | sp.Expr | Activation | Target,
    samples_exponent: Exponent,
    width_exponent: Exponent,
    steps: int = 1,
    *,
    student: str | sp.Expr | Activation | None = None,
    parameters: Parameters = True,
) -> FitPrediction:
    r"""Predict what is fitted after T giant steps, and the error that is left.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f. With parameters the answer is a :class:`.CaseTree` of predictions.
    samples_exponent : int, Fraction, Rational or float
        κ1 > 0: n ≍ d^κ1 samples in each step. Floats count as the decimals they print as.
    width_exponent : int, Fraction, Rational or float
        κ2 ≥ 0: p ≍ d^κ2 neurons.
    steps : int
        T ≥ 0; 0 for random features.
    student : str, Expr or Activation, optional
        Activation of the neurons; degrees of the target that it does not see are left out of the
        staircase. By default it sees all.
    parameters : optional
        Which symbols of the target are parameters; see :func:`.targets.target.target`.

    Returns
    -------
    FitPrediction

    Raises
    ------
    ParameterError
        If an exponent or `steps` is outside its range.
    AssumptionError
        If the target is constant.
    ExpressionError, UnsupportedExpressionError
        If target or student cannot be read.

    Examples
    --------
    >>> predict_fit("He(3, x1) + x1*x2", sp.Rational(5, 2), sp.Rational(3, 2), 0)
    FitPrediction(n ~ d^5/2, p ~ d^3/2, T = 0: U = {0}, error → 7, theorem)
    """
    f = read_target(target, parameters=parameters)
    kappa1 = _exponent(samples_exponent, "samples_exponent", positive=True)
    kappa2 = _exponent(width_exponent, "width_exponent", positive=False)
    count = _checked_steps(steps)
    sigma = None if student is None else activation(student, argument="student")
    if f.has_open_parameters:
        tree = f.by_cases(
            lambda g: predict_fit(g.specialised(), kappa1, kappa2, count, student=sigma),
            "predicted fit",
        )
        return cast(FitPrediction, tree)
    _refuse_constant(f)
    mask = activation_mask(sigma)
    order = int(sp.floor(kappa1))
    subspace, decided = learned_subspace(f, order, count, mask)
    projection = project(f, subspace, int(sp.floor(min(kappa1, kappa2))))
    origin = origin_of_subspace(f, order, count, mask, subspace, decided)
    relation, error = origin_of_error(projection, kappa1, kappa2, count, mask)
    if kappa2 == 0 and subspace.dimension > 1:
        few = f"p neurons learn at most p of the {subspace.dimension} directions of U"
        error = error.with_caveat(few)
    if projection.bounds is not None:
        error = error.with_caveat(projection.basis)
    return FitPrediction(kappa1, kappa2, count, sigma, projection, relation, origin, error, decided)


def regimes(
    target: str | sp.Expr | Activation | Target,
    exponents: Sequence[tuple[Exponent, Exponent]] = FIVE_REGIMES,
    *,
    steps: int = 1,
    student: str | sp.Expr | Activation | None = None,
    parameters: Parameters = True,
) -> RegimeTable:
    """Return the table of fitted functions and errors for several scalings.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        With parameters the answer is a :class:`.CaseTree` of tables.
    exponents : sequence of pairs
        (κ1, κ2) of each row; by default (1, 0), (1, 1), (2, 0), (2, 1) and (2, 2).
    steps : int
        T. All rows are given for one step; those with the fewest samples also for 2 to T steps.
        With 0 all rows are for random features.
    student : str, Expr or Activation, optional
    parameters : optional
        Which symbols of the target are parameters; see :func:`.targets.target.target`.

    Returns
    -------
    RegimeTable

    Examples
    --------
    >>> table = regimes("x1 + x1*x2 + (x1**2 - 1)*(x2 + x3*x4)", steps=2)
    >>> table.residuals
    (5, 2, 2, 2, 0, 2, 2)
    >>> tree = regimes("x1 + a*x1*x2", [(1, 1)], parameters="a")
    >>> [(str(leaf.case), leaf.value.residuals) for leaf in tree.leaves]
    [('all values', (0,))]
    """
    f = read_target(target, parameters=parameters)
    pairs = _checked_pairs(exponents)
    count = _checked_steps(steps)
    sigma = None if student is None else activation(student, argument="student")
    if f.has_open_parameters:
        tree = f.by_cases(
            lambda g: regimes(g.specialised(), pairs, steps=count, student=sigma), "regimes"
        )
        return cast(RegimeTable, tree)
    first = min(1, count)
    fewest = min(kappa1 for kappa1, _ in pairs)
    cases = [(kappa1, kappa2, first) for kappa1, kappa2 in pairs]
    for t in range(2, count + 1):
        cases += [(kappa1, kappa2, t) for kappa1, kappa2 in pairs if kappa1 == fewest]
    rows = tuple(predict_fit(f, kappa1, kappa2, t, student=sigma) for kappa1, kappa2, t in cases)
    return RegimeTable(f, sigma, rows)


def _refuse_constant(f: Target) -> None:
    if f.case is not None:
        leap_index(f)
        return
    if f.is_polynomial:
        constant = f.expansion.degree < 1
    else:
        try:
            constant = is_exactly_zero(f.norm_squared - f.mean**2, "the variance of the target")
        except UndecidedError:
            constant = False
    if constant:
        raise AssumptionError(f"target {f.name!r} is constant: there is nothing to learn")


def _exponent(value: Exponent, name: str, *, positive: bool) -> sp.Rational:
    wanted = f"{name} must be a number {'> 0' if positive else '>= 0'}"
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | sp.Rational):
        raise ParameterError(f"{wanted}, such as 1, 2 or Fraction(3, 2), got {value!r}")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError(f"{wanted} and finite, got {value!r}")
        value = Fraction(str(value))
    exponent = sp.Rational(value)
    if exponent < 0 or (positive and exponent == 0):
        raise ParameterError(f"{wanted}, got {value}")
    if exponent > HIGHEST_EXPONENT:
        raise ParameterError(f"{name} must be at most {HIGHEST_EXPONENT}, got {value}")
    return exponent


def _checked_steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int | sp.Integer):
        raise ParameterError(f"steps must be a whole number >= 0, got {steps!r}")
    if not 0 <= steps <= MOST_STEPS:
        raise ParameterError(f"steps must be from 0 to {MOST_STEPS}, got {steps}")
    return int(steps)


def _checked_pairs(
    exponents: Sequence[tuple[Exponent, Exponent]],
) -> list[tuple[sp.Rational, sp.Rational]]:
    expected = "exponents must be pairs (kappa1, kappa2), such as [(1, 0), (2, 1)]"
    if isinstance(exponents, str):
        raise ParameterError(f"{expected}, got the text {exponents!r}")
    try:
        pairs = [tuple(pair) for pair in exponents]
    except TypeError:
        raise ParameterError(f"{expected}, got {exponents!r}") from None
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError(f"{expected}, got {exponents!r}")
    return [
        (
            _exponent(first, "samples exponent kappa1", positive=True),
            _exponent(second, "width exponent kappa2", positive=False),
        )
        for first, second in pairs
    ]


# Cells of the table in text, which is to fit into 120 columns.
_LONGEST_SUBSPACE, _LONGEST_FUNCTION = 22, 26
_LONGEST_LATEX = 300
_HEADINGS = ("n", "p", "T", "learned U", "κ", "fitted", "error", "rests on")
_LEGEND = (
    "n samples in each of T steps, p neurons; the first layer learns U, the second one fits "
    "degrees up to κ outside U"
)


def _bars(target: Target, rows: Sequence[FitPrediction]) -> Bars:
    numbers: dict[str, tuple[float, None]] = {}
    texts = {}
    for row in rows:
        n, p, steps, subspace, *_ = _cells(row)
        name = f"n ~ {n}, p ~ {p}, T = {steps}"
        numbers[name] = float(row.residual), None
        error = f"{row.relation} {_short_number(row.residual)}"
        texts[name] = f"{error}, U = {shorten(subspace, _LONGEST_SUBSPACE)}"
    whole = _short_number(rows[0].projection.norm_squared)
    return Bars(numbers, f"error left of E f² = {whole}", f"f = {target}", texts)


def table_latex(rows: Sequence[FitPrediction]) -> str:
    """Return the rows as an array in LaTeX, without delimiters."""
    head = r"n & p & T & U & \kappa & P_{U,\le\kappa} f & \|P_{U,>\kappa} f\|^2 & \text{rests on}"
    lines = [head + r" \\ \hline"]
    for row in rows:
        relation = {"→": r"\to", "≥": r"\ge"}[row.relation]
        cells = [
            _power_latex(row.samples_exponent),
            _power_latex(row.width_exponent),
            str(row.steps),
            row.subspace.latex(),
            sp.latex(row.kappa),
            _fitted_latex(row),
            rf"{relation} {sp.latex(row.residual)}",
            rf"\text{{{row.standing.value}}}",
        ]
        lines.append(" & ".join(cells) + r" \\")
    return r"\begin{array}{llllllll}" + " ".join(lines).removesuffix(r" \\") + r"\end{array}"


def _cells(row: FitPrediction) -> list[str]:
    return [
        _power(row.samples_exponent),
        _power(row.width_exponent),
        str(row.steps),
        str(row.subspace) + ("" if row.decided else " or more"),
        str(row.kappa),
        function_text(row.projection),
        f"{row.relation} {number_text(row.residual)}",
    ]


def _short_number(value: sp.Expr) -> str:
    """Return a rational number as it is, digits of others if there are any."""
    return str(value) if value.is_Rational else digits_of(value) or "(no digits)"


def _notes(row: FitPrediction) -> list[str]:
    parts = (("U", row.subspace_basis), ("error", row.error_basis))
    sources = [f"{name}: {part.standing.value}, {part.source}" for name, part in parts]
    return [*sources, *row.caveats]


def _fitted_latex(row: FitPrediction) -> str:
    if row.projection.bounds is not None:
        return r"\dots"
    expansion = row.projection.fitted_expansion
    if expansion is not None:
        return expansion_latex(expansion.symbol_element)
    text: str = sp.latex(row.fitted)
    return text if len(text) <= _LONGEST_LATEX else r"\dots"


def _power(exponent: sp.Rational) -> str:
    if exponent == 0:
        return "1"
    if exponent == 1:
        return "d"
    return f"d^{exponent}" if exponent.is_Integer else f"d^({exponent})"


def _power_latex(exponent: sp.Rational) -> str:
    return sp.latex(sp.Symbol("d") ** exponent, fold_frac_powers=True)
