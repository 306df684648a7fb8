"""Coefficients of the expansions of the risk, as numbers of any number of digits.

Series arithmetic in floating point with guard digits, twice; digits hold where both agree. A
coefficient that is as small as the rounding of both is zero: what makes it vanish is an identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...errors import ConvergenceError
from ...runtime.precision import local_context
from ...runtime.roots import secant
from ...symbolic.asymptotic_series import Series, solve_series, substitute
from ..expansions.expansion import LARGE_ALPHA, SMALL_RIDGE, SMALL_STEP
from .decimals import mp_number
from .expansion_balance import (
    Balance,
    companion_value,
    large_alpha_balance,
    left_ridge,
    resolvent_value,
    risk_outputs,
    small_ridge_balance,
)
from .risk_kernel import LEAST_SQUARES
from .risk_system import companion, least_squares_system, nu, nu0, resolvent, ridgeless_system
from .symbols import alpha, alpha0, beta, residual, ridge, step_size

if TYPE_CHECKING:
    from .expansion import Question

# What cancels between parameters that differ by a few orders of magnitude; then more and more.
_GUARDS = (60, 110, 220, 440, 880)
# A coefficient that shrinks by so many digits when 50 are added is zero.
_VANISHING = 25
# Terms beyond the last order, in units of the small quantity: the remainder is looked for there.
_BEYOND = 4

_Found = tuple[int, dict[str, Series]]
_Small = Callable[[int, int], dict[sp.Symbol, Series]]


@dataclass(frozen=True)
class Coefficients:
    """Series of all outputs.

    Attributes
    ----------
    exponents : tuple of Fraction
    values : mapping from str to tuple of mpf
        As many as exponents.
    neglected : mapping from str to (Fraction, mpf), or None
    remainder_order : Fraction
    """

    exponents: tuple[Fraction, ...]
    values: Mapping[str, tuple[Any, ...]]
    neglected: Mapping[str, tuple[Fraction, Any] | None]
    remainder_order: Fraction


def coefficients(question: Question, order: int, digits: int) -> Coefficients:
    """Return the coefficients up to an order, all digits of which hold.

    Raises
    ------
    ConvergenceError
        If parameters differ by so many orders of magnitude that digits cancel without end.
    """
    runs = (_Run(question, order, local_context(digits + guard)).series() for guard in _GUARDS)
    for (root, coarse), (_, fine) in pairwise(runs):
        kept = {name: _agreed(coarse[name], fine[name], digits) for name in fine}
        if None not in kept.values():
            return _collected(kept, root, order, 2 if question.name == SMALL_STEP else 1, digits)
    raise ConvergenceError(
        f"the coefficients of this expansion cannot be computed to {digits} digits: its parameters "
        "differ by too many orders of magnitude, or are too close to a threshold"
    )


class _Run:
    """One computation with so many digits."""

    def __init__(self, question: Question, order: int, ctx: Any) -> None:
        self._question, self._ctx, self._order = question, ctx, order
        self._known = question.known

    def series(self) -> _Found:
        """Return m and the outputs as series in t, known far enough beyond the last order."""
        name = self._question.name
        if name == SMALL_RIDGE:
            return self._balanced(
                small_ridge_balance(self._known),
                lambda root, terms: {ridge: Series.monomial(root, terms)},
            )
        if name == LARGE_ALPHA and self._known[ridge]:
            fixed = nu if self._question.of_paper else ridge
            return self._balanced(large_alpha_balance(self._known, fixed), self._samples)
        small = self._samples if name == LARGE_ALPHA else self._step
        return 1, self._extended(lambda terms: self._at_state(small(1, terms)), 1)

    # ------------------------------------------------------------------ what is small

    def _samples(self, root: int, terms: int) -> dict[sp.Symbol, Series]:
        follows = {alpha0} if self._question.model.alpha0 is None else set()
        rule = {x: Series.monomial(-root, terms) for x in {alpha} | follows}
        if self._question.of_paper and self._known[ridge]:
            penalty = self._number(self._known[ridge] / self._known[beta])
            rule[ridge] = Series.monomial(-root, terms, penalty)
        return rule

    def _step(self, root: int, terms: int) -> dict[sp.Symbol, Series]:
        factor = self._ctx.mpf(self._question.model.loss_factor)
        return {step_size: Series.monomial(root, terms, factor)}

    # ------------------------------------------------------------------ solutions

    def _balanced(self, balance: Balance, small: _Small) -> _Found:
        """Solve for ν and h, then insert them into the outputs."""

        def found(terms: int) -> dict[str, Any]:
            rule = small(balance.root, terms)
            fixed = {x: value for x, value in self._known.items() if x not in rule}
            leading = {x: (p, self._number(c)) for x, (p, c) in balance.leading.items()}
            equations = [e.xreplace(fixed) for e in balance.equations]
            rule |= solve_series(equations, leading, rule, terms - 1, number=self._number)
            outputs = {"effective_ridge": nu, **risk_outputs()}
            return {
                name: substitute(expr.xreplace(fixed), rule, number=self._number)
                for name, expr in outputs.items()
            }

        return balance.root, self._extended(found, balance.root)

    def _at_state(self, rule: dict[sp.Symbol, Series]) -> dict[str, Any]:
        """Insert what does not depend on the small quantity into the outputs."""
        known = {x: value for x, value in self._known.items() if x not in rule}
        if known[ridge]:
            effective = self._effective_ridge()
            state = {nu: effective, companion: companion_value(known, effective)}
            outputs = {"effective_ridge": nu, **risk_outputs()}
        else:
            system, state = self._ridgeless()
            outputs = {"effective_ridge": nu0, **system.outputs}
        few = self._question.kind is not None and self._known[alpha] < self._known[beta]
        decided = {sp.Lt(alpha, beta): sp.true if few else sp.false}
        return {
            name: substitute(
                expr.xreplace(decided).xreplace(state).xreplace(known), rule, number=self._number
            )
            for name, expr in outputs.items()
        }

    def _ridgeless(self) -> tuple[Any, dict[sp.Symbol, sp.Expr]]:
        """Return the closed form of λ → 0 and its unknowns."""
        known, kind = self._known, self._question.kind
        least = kind == LEAST_SQUARES if kind else not known[residual]
        if least:
            return least_squares_system(), {nu0: sp.S.Zero}
        few = kind is not None and known[alpha] < known[beta]
        effective = left_ridge(known) if few else sp.S.Zero
        state = {
            nu0: effective,
            resolvent: resolvent_value(known, effective),
            companion: companion_value(known, effective),
        }
        return ridgeless_system(), state

    def _effective_ridge(self) -> sp.Expr:
        """Return ν of the fixed penalty, by the secant method from the float solution."""
        from ...symbolic.printing.compiled import compiled
        from .risk_system import covariance

        known, ctx = self._known, self._ctx
        at = covariance(nu)
        penalty = (at.ridge(alpha / beta - 1) - ridge).rewrite(sp.Piecewise)
        function = compiled(penalty.xreplace(known), (nu,), ctx)
        start = ctx.mpf(self._question.float_risk().effective_ridge)
        root = secant(
            function, start, start * (1 + ctx.mpf(10) ** -9), ctx.eps ** ctx.mpf(0.75),
            "the effective ridge of the fixed penalty",
        )  # fmt: skip
        if abs(function(root)) > self._number(known[ridge]) * ctx.mpf(10) ** -self._question.digits:
            raise ConvergenceError(
                "the effective ridge of the fixed penalty cannot be computed: parameters differ by "
                "too many orders of magnitude"
            )
        return sp.Float._new(root._mpf_, ctx.prec)

    def _extended(self, found: Callable[[int], dict[str, Any]], root: int) -> dict[str, Series]:
        """Return series that are known beyond the last order, whatever leading terms cancel."""
        last = root * (self._order + _BEYOND)
        terms = last + 3
        while True:
            series = {name: self._as_series(x, last + 1) for name, x in found(terms).items()}
            missing = last + 1 - min(x.end for x in series.values())
            if missing <= 0:
                return {name: x.truncated(last + 1) for name, x in series.items()}
            terms += missing

    def _as_series(self, value: Any, terms: int) -> Series:
        if isinstance(value, Series):
            return value
        return Series.monomial(0, terms, value)

    def _number(self, value: sp.Expr) -> Any:
        """Return a constant as a number of the context."""
        return mp_number(value, self._ctx)


# ---------------------------------------------------------------------- what holds


def _agreed(coarse: Series, fine: Series, digits: int) -> Series | None:
    """Return the coefficients that two computations share; None if digits are missing."""
    found = []
    largest = max(map(abs, fine.coefficients), default=0)
    for k, value in enumerate(fine.coefficients):
        order = fine.start + k
        other = coarse.coefficient(order) if order < coarse.end else 0
        if abs(value - other) * 10 ** (digits + 5) <= abs(value):
            found.append(value)
        elif abs(value) * 10**_VANISHING <= (abs(other) or largest * 10**-digits):
            found.append(0 * value)
        else:
            return None
    return Series(tuple(found), fine.start)


def _collected(
    series: Mapping[str, Series | None], root: int, order: int, stride: int, digits: int
) -> Coefficients:
    ctx = local_context(digits)
    known = {_output(name): x for name, x in series.items() if x is not None}
    first = min([0, *(x.start for x in known.values() if x.coefficients)])
    steps = range(first, root * order + 1, stride)
    remainder = steps[-1] + stride
    return Coefficients(
        exponents=tuple(Fraction(k, root) for k in steps),
        values={
            # The sign rounds to the precision of the context.
            name: tuple(+ctx.convert(x.coefficient(k)) for k in steps)
            for name, x in known.items()
        },
        neglected={name: _first_left(x, remainder, root, ctx) for name, x in known.items()},
        remainder_order=Fraction(remainder, root),
    )


def _first_left(series: Series, start: int, root: int, ctx: Any) -> tuple[Fraction, Any] | None:
    for k in range(start, series.end):
        value = series.coefficient(k)
        if value:
            return Fraction(k, root), +ctx.convert(value)
    return None


def _output(name: str) -> str:
    """Return the name that ``RidgeRisk`` gives an output of the kernel."""
    return name.removeprefix("risk_")
