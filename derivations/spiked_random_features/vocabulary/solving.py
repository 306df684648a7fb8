"""Solve a vocabulary with error control: finer rules until their estimate is good enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from ....errors import ConvergenceError, ParameterError
from ....numeric.cache import FileCache
from ....numeric.column_span import ColumnSpan
from ....numeric.letter_saddle_point import LetterArrays, LetterValues, solve_letters
from ..solution import Solution
from .arguments import VocabularyParameters
from .derive import Derivation
from .nodes import DIGITS, Functions, is_cheap, letter_arrays, mean_span, sample, teacher_frame
from .solution import MEANING

if TYPE_CHECKING:
    from .model import VocabularyFeatures

_MOST_LEVELS = 5
_RTOL = 1e-11
# What an estimate cannot fall below, relative to the mean square of the labels.
_ROUNDING = 1e-14
# Above this, relative, a result is none.
_UNRESOLVED = 0.1
# Test errors this small, relative to the mean square of the labels, need no digits.
_NEGLIGIBLE = 1e-8
# The rule that tells the error of a law of letters has this many letters less.
_FEWER_LETTERS = 2


@dataclass(frozen=True)
class LetterQuadrature:
    """What all solutions of a model share: generated modules, and tables made when first used.

    Attributes
    ----------
    derivation : Derivation
    cache : FileCache
    parameters : VocabularyParameters
    noise_variance : float
    bulk : str
    """

    derivation: Derivation
    cache: FileCache
    parameters: VocabularyParameters
    noise_variance: float
    bulk: str
    _levels: dict[int, tuple[LetterArrays, LetterArrays]] = field(default_factory=dict)
    _spans: dict[int, ColumnSpan] = field(default_factory=dict)

    @cached_property
    def functions(self) -> Functions:
        """Tables of student and teacher."""
        found, load = self.derivation, self.cache.load_module
        multi_index = not found.teacher_tables
        teacher = found.teacher_source if multi_index else found.teacher_tables
        return Functions(
            load("student_tables", found.student_tables), load("teacher", teacher), multi_index
        )

    @cached_property
    def equations(self) -> ModuleType:
        """Derivatives of the free energy."""
        return self.cache.load_module("equations", self.derivation.equations[self.bulk])

    @cached_property
    def mean_rank(self) -> int:
        """Number of functions among the means μ_0 of the letters that 50 digits tell apart."""
        fine, _ = self.arrays(0)
        chosen = sample(fine.kappa, len(self.parameters.classes))
        return mean_span(
            self.derivation.precise_means, self.functions.student, self.parameters,
            fine.kappa[chosen], np.ones(len(chosen)), progress=True, most_digits=DIGITS,
        ).rank  # fmt: skip

    def span(self, arrays: LetterArrays) -> ColumnSpan | None:
        """Return an orthonormal basis of the means, None where many digits of them are slow."""
        nodes = len(arrays.weights)
        values = nodes * len(self.parameters.classes)
        # Values of kappa in several dimensions are too many.
        if self.parameters.rank > 1 or not is_cheap(self.derivation.precise_means, values):
            return None
        if nodes not in self._spans:
            self._spans[nodes] = mean_span(
                self.derivation.precise_means, self.functions.student, self.parameters,
                arrays.kappa, arrays.weights, progress=True,
            )  # fmt: skip
        return self._spans[nodes]

    def arrays(self, level: int) -> tuple[LetterArrays, LetterArrays]:
        """Return tables on the fine and on the coarse rule of a level of refinement."""
        if level not in self._levels:
            self._levels[level] = letter_arrays(
                self.functions, self.parameters, self.noise_variance, level
            )
        return self._levels[level]


def solve_at(model: VocabularyFeatures, alpha: float, ridge: float, width: int | None) -> Solution:
    """Return the solution at one point; see :meth:`.model.VocabularyFeatures.solve`."""
    if model.law is None:
        return _solve(model, alpha, ridge, width, beside=True)
    if width is None:
        raise ParameterError(
            "a continuous law of letters has no strict limit: the means of ever more letters are "
            "collinear, and fitting them without cost is an ill-posed inversion; give width="
        )
    # The rule has a strict limit of its own, which is not that of the law.
    found = _solve(model, alpha, ridge, width, beside=False)
    fewer = max(len(model.letters) - _FEWER_LETTERS, 1)
    letters, fractions = model.law.rule(fewer)
    coarser = replace(model, law=None, letters=tuple(letters), fractions=tuple(fractions))
    change = abs(_solve(coarser, alpha, ridge, width, beside=False).test_error - found.test_error)
    return replace(found, quadrature_error=found.quadrature_error + change)


def _solve(
    model: VocabularyFeatures, alpha: float, ridge: float, width: int | None, *, beside: bool
) -> Solution:
    before = math.inf
    best: Solution | None = None
    start: LetterValues | None = None
    steps = 0
    for level in range(_MOST_LEVELS):
        try:
            fine, coarse = model.quadrature.arrays(level)
        except ParameterError:
            # Too many nodes: what there is has its error estimate.
            if best is None:
                raise
            break
        point = _Point(model, alpha, ridge, width)
        first = point.values(coarse, start)
        start = point.values(fine, first)
        steps += first.steps + start.steps
        error = point.error(fine, first, start)
        if best is not None and error > before / 2:
            break
        limit = None
        if beside and width is not None:
            endless = _Point(model, alpha, ridge, None)
            strict = endless.values(fine, same=start)
            own = endless.error(fine, endless.values(coarse, same=first), strict)
            limit = _solution(model, alpha, ridge, None, strict, None, own, len(fine.weights))
        best = _solution(model, alpha, ridge, width, start, limit, error, len(fine.weights))
        best = replace(best, iterations=steps)
        before = error
        if error <= _RTOL * abs(best.test_error) or model.parameters.rank > 1:
            break
    assert best is not None
    labels = float(fine.weights @ fine.T2)
    if best.quadrature_error > _UNRESOLVED * abs(best.test_error) + _NEGLIGIBLE * labels:
        raise ConvergenceError(
            f"the errors at alpha = {alpha:g}, ridge = {ridge:g} are not resolved: the estimated "
            f"error {best.quadrature_error:.1e} is not small against the test error "
            f"{best.test_error:.1e}; take letters that differ more, or a larger ridge penalty"
            + (", or give width=, at which nearly collinear letters do no harm" * (width is None)),
            state=best,
            residual=best.residual,
        )
    return best


@dataclass(frozen=True)
class _Point:
    model: VocabularyFeatures
    alpha: float
    ridge: float
    width: int | None

    def values(
        self, arrays: LetterArrays, start: LetterValues | None = None,
        same: LetterValues | None = None,
    ) -> LetterValues:  # fmt: skip
        """Return the saddle point on one rule."""
        quadrature = self.model.quadrature

        def solve(same: LetterValues | None, span: ColumnSpan | None) -> LetterValues:
            return solve_letters(
                quadrature.equations, arrays, self.model.parameters.fractions, alpha=self.alpha,
                beta=self.model.beta, ridge=self.ridge,
                inverse_width=0.0 if self.width is None else 1.0 / self.width,
                start=start, same=same, span=span,
            )  # fmt: skip

        found = solve(same, None)
        if self._misses_functions(found):
            span = quadrature.span(arrays)
            if span is not None:
                finer = solve(found, span)
                left_out = 0.0
                if not span.complete:
                    fewer = solve(found, span.without_last())
                    left_out = abs(fewer.test_error - finer.test_error)
                return replace(finer, flatness=found.flatness, steps=found.steps, left_out=left_out)
        return found

    def error(self, fine: LetterArrays, first: LetterValues, found: LetterValues) -> float:
        """Return the estimated error of the test error: two rules, two routes, and rounding."""
        error = abs(first.test_error - found.test_error)
        penalty = self.ridge * self.model.beta / self.alpha * float(found.q2.sum())
        error += abs(found.training_error + penalty - found.regularised_training_error)
        error += _ROUNDING * float(fine.weights @ fine.T2)
        error += found.left_out
        # Large overlaps m of nearly collinear letters magnify the rounding of their means.
        error += found.magnified_rounding * math.sqrt(abs(found.test_error))
        if self._misses_functions(found):
            # What the tables do not show may explain at most all that is left of the labels.
            error += found.test_error - self.model.noise_variance
        return error

    def _misses_functions(self, found: LetterValues) -> bool:
        """Tell whether letters span more functions than their tables show, at no cost."""
        if self.width is not None or not found.blurred:
            return False
        return self.model.quadrature.mean_rank > len(self.model.classes) - found.blurred


def _solution(
    model: VocabularyFeatures, alpha: float, ridge: float, width: int | None, found: LetterValues,
    limit: Solution | None, error: float, nodes: int,
) -> Solution:  # fmt: skip
    overlaps = {name: getattr(found, name) for name in MEANING}
    if model.quadrature.functions.multi_index:
        overlaps["psi"] = teacher_frame(model.parameters.overlaps) @ found.psi
    return Solution(
        test_error=found.test_error - model.noise_variance,
        training_error=found.training_error,
        regularised_training_error=found.regularised_training_error,
        order_parameters=overlaps,
        conjugates={},
        classes=model.classes,
        alpha=alpha,
        ridge=ridge,
        width=width,
        strict_limit=limit,
        quadrature_error=error,
        residual=found.residual,
        iterations=found.steps,
        nodes=nodes,
        flatness=found.flatness,
    )
