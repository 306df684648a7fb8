"""Expansions of a model: coefficients to any number of digits, as one object."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import sympy as sp

from ....errors import ApproximationWarning, ConvergenceError, ParameterError
from ....runtime.precision import local_context
from ....symbolic.systems.equations import Equation
from ...expansions.expansion import LARGE_ALPHA, NAMES, SMALL_RIDGE, SMALL_STEP, Expansion
from ...teachers import refuse_directions
from .. import physics as fe
from ..derive import SymbolicModel
from ..precise import exact_parameters
from ..solution import CONJUGATES, ORDER_PARAMETERS
from ..vocabulary.kernel import (
    letter_places,
    letter_values,
    letters_model,
    require_direct_letters,
    require_written_out,
)
from ..vocabulary.solution import model_attributes
from .orders import LineTables, OrderByOrder
from .scaling import Balance, balance_of_letters, checked_point, line_case, scaled_system
from .small_step import step_terms
from .symbolic_side import line_series, step_series

if TYPE_CHECKING:
    from ...expansions.expansion import SymbolicSeries
    from ..model import SpikedRandomFeatures
    from ..vocabulary.model import VocabularyFeatures

_MOST_LEVELS = 6
_LATEX = {"test_error": r"E_{\mathrm{test}}", "training_error": r"E_{\mathrm{train}}"}
_LETTERS = {fe.theta: r"\vartheta", fe.theta_hat: r"\hat\vartheta", fe.psi_hat: r"\hat\psi"}
_HATS = {fe.V1_hat: r"\hat V_1", fe.V2_hat: r"\hat V_2", fe.q1_hat: r"\hat q_1",
         fe.q2_hat: r"\hat q_2"}  # fmt: skip
# Beyond the digits that are asked for, what is smaller vanishes by a symmetry.
_VANISHING = 8

Terms = dict[str, dict[int, Any]]


@dataclass(frozen=True)
class _OneKind:
    """One kind of rows, with the equations that the paper prints."""

    model: SpikedRandomFeatures
    outputs = ("test_error", "training_error", *ORDER_PARAMETERS, *CONJUGATES)

    @cached_property
    def symbolic(self) -> SymbolicModel:
        return self.model.symbolic()

    @property
    def tables(self) -> tuple[Any, tuple[str, ...], bool]:
        kernel = self.model._kernel
        return kernel.tables, kernel.table_parameters, self.model.derivation.code.even

    def exact(self, ctx: Any) -> Mapping[str, Any]:
        return exact_parameters(self.model, ctx)

    @property
    def spikes(self) -> list[tuple[float, float]]:
        return [(self.model.spike.spike_strength, self.model.spike.bulk_variance)]

    def balance(self, balance: Balance) -> Balance:
        return balance

    def near(self, alpha: float, ridge: float) -> Mapping[str, float]:
        """Return the float solution at a point by the names of unknowns."""
        found = self.model.solve_many(alpha=[alpha], ridge=[ridge]).values
        return {name: float(value[0]) for name, value in found.items()}

    def series(self, name: str, balance: Balance) -> Callable[..., SymbolicSeries] | None:
        """Return what derives the coefficients as formulas."""
        return partial(line_series, self.model, name, balance)

    @property
    def described(self) -> dict[str, Any]:
        return _described(self.model, LARGE_ALPHA)

    def solved(self, alpha: float, ridge: float, digits: int | None) -> dict[str, Any]:
        """Return the outputs of the exact solution."""
        found = self.model.solve(alpha=alpha, ridge=ridge, digits=digits, progress=False)
        errors = {"test_error": found.test_error, "training_error": found.training_error}
        return {**errors, **found.order_parameters, **found.conjugates}


@dataclass(frozen=True)
class _Letters:
    """Few letters, with the closed form of their equations."""

    model: VocabularyFeatures

    @cached_property
    def symbolic(self) -> SymbolicModel:
        found = letters_model(self.model)
        known = found.system.derived
        equations = tuple(
            Equation(e.unknown, None, e.residual.xreplace(known)) for e in found.system.equations
        )
        definitions = {f: v.xreplace(known) for f, v in found.system.definitions.items()}
        parameters = tuple(p for p in found.system.parameters if p not in known)
        system = replace(
            found.system, equations=equations, definitions=definitions, parameters=parameters,
            derived={},
        )  # fmt: skip
        return replace(found, system=system)

    @property
    def tables(self) -> tuple[Any, tuple[str, ...], bool]:
        code = self.model._kernel.code
        return code.load(self.model._cache).tables, code.table_parameters, code.even

    def exact(self, ctx: Any) -> Mapping[str, Any]:
        exact = self.model._kernel.exact_defaults
        assert exact is not None
        return exact(ctx)

    @property
    def spikes(self) -> list[tuple[float, float]]:
        return [(c.strengths[0], c.bulk_variance) for c in self.model.classes]

    def balance(self, balance: Balance) -> Balance:
        letters = self.symbolic.free_energy.letters
        assert letters is not None
        return balance_of_letters(balance, letters)

    @property
    def outputs(self) -> tuple[str, ...]:
        unknowns = self._places
        return ("test_error", "training_error", *unknowns)

    @property
    def _places(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        there = {str(x) for x in self.symbolic.system.unknowns}
        return {
            unknown: (name, index)
            for name in ORDER_PARAMETERS
            for unknown, index in letter_places(name, len(self.model.classes))
            if unknown in there
        }

    def near(self, alpha: float, ridge: float) -> Mapping[str, float]:
        return {name: float(value) for name, value in self.solved(alpha, ridge, None).items()}

    def series(self, name: str, balance: Balance) -> Callable[..., SymbolicSeries] | None:
        # Formulas of a matrix of responses, order by order, say less than they are long.
        return None

    @property
    def described(self) -> dict[str, Any]:
        found = model_attributes(self.model)
        names = ("student", "teacher", "beta", "noise_variance")
        letters = letter_values(self.model.parameters)
        width = {} if self.model.width is None else {"width": self.model.width}
        return {**{name: found[name] for name in names}, **letters, **width}

    def solved(self, alpha: float, ridge: float, digits: int | None) -> dict[str, Any]:
        found = self.model.solve(alpha=alpha, ridge=ridge, digits=digits, progress=False)
        errors = {"test_error": found.test_error, "training_error": found.training_error}
        return errors | {
            unknown: found.order_parameters[name][index]
            for unknown, (name, index) in self._places.items()
        }


def letters_expansion(
    model: VocabularyFeatures,
    name: str,
    order: int,
    alpha: float | None,
    ridge: float | None,
    digits: int,
) -> Expansion:
    """Answer :meth:`.VocabularyFeatures.expansion` at a checked name, order and digits."""
    if name == SMALL_STEP:
        raise ParameterError(
            "'small_step': as the step vanishes all letters become the same rows, and the overlaps "
            "of what tells them apart grow without a bound, so that no power series starts there; "
            "letters have 'large_alpha' and 'small_ridge', and SpikedRandomFeatures has "
            "'small_step'"
        )
    require_direct_letters(model, "expansions")
    require_written_out(model)
    alpha_, ridge_ = checked_point(name, alpha, ridge)
    if alpha_ == model.beta:
        raise ParameterError(
            "'small_ridge' of letters at the interpolation threshold alpha = beta: the leading "
            "equations leave a scale of the responses open, and what fixes it is derived for one "
            "kind of rows; take alpha above or below beta, or one letter"
        )
    return _watched(
        f"{name}, {digits} digits", model,
        lambda step: _in_line(_Letters(model), name, order, alpha_, ridge_, digits, step),
    )  # fmt: skip


def _watched(
    what: str, model: Any, expand: Callable[[Callable[[], object]], Expansion]
) -> Expansion:
    """Run an expansion beside a bar that counts orders."""
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    with tqdm(desc=what, unit="order", delay=1, leave=False, disable=None) as bar:
        try:
            return expand(bar.update)
        except ZeroDivisionError:
            raise ConvergenceError(
                f"the leading equations of {what.split(',')[0]!r} are singular for this model: "
                f"student {model.student!r}, teacher {model.teacher!r}, beta = {model.beta:g}"
            ) from None


def expansion(
    model: SpikedRandomFeatures,
    name: str,
    order: int,
    alpha: float | None,
    ridge: float | None,
    digits: int,
) -> Expansion:
    """Answer :meth:`.SpikedRandomFeatures.expansion` at a checked name, order and digits.

    The saddle-point equations are scaled with the leading balance (V ∝ 1/α; V ∝ 1/λ for α < β;
    V, q ∝ 1/√λ for α = β) and solved order by order: the leading system by Newton's method, each
    further order linearly; coefficients are averages over κ of expanded integrands.
    """
    refuse_directions(model.teacher, "expansions")
    model._refuse_law("expansions")
    alpha_, ridge_ = checked_point(name, alpha, ridge)

    def expand(progress: Callable[[], object]) -> Expansion:
        if name in (LARGE_ALPHA, SMALL_RIDGE):
            return _in_line(_OneKind(model), name, order, alpha_, ridge_, digits, progress)
        assert alpha_ is not None and ridge_ is not None
        terms, region, last = step_terms(model, order, alpha_, ridge_, digits, progress)
        return _expansion(
            _described(model, name), _OneKind.outputs, name, order, terms, last, Fraction(1),
            digits, {"alpha": alpha_, "ridge": ridge_}, region,
            f"{digits} digits: Hermite coefficients, a finite sum for each order",
            partial(step_series, model), partial(exact_outputs, model),
        )  # fmt: skip

    return _watched(f"{name}, {digits} digits", model, expand)


def _in_line(
    rows: _OneKind | _Letters, name: str, order: int, alpha: float | None, ridge: float | None,
    digits: int, progress: Callable[[], object],
) -> Expansion:  # fmt: skip
    case = line_case(rows.model, name, order, alpha, ridge, rows.spikes)
    symbolic = rows.symbolic
    system = scaled_system(symbolic, rows.balance(case.balance))
    parameters = symbolic.system.parameters
    programs = OrderByOrder(
        system,
        parameters,
        list(symbolic.system.definitions),
        case.last,
        beyond=case.remainder is None,
    )
    lines = LineTables(rows, digits, case.inverse_powers)
    ctx = lines.ctx
    near = rows.near(case.near["alpha"], case.near["ridge"])
    start = {
        x: ctx.mpf(near[fe.IDENTIFIERS.get(x, str(x))] / case.epsilon**k)
        for x, k in system.exponents.items()
    }
    fixed = {k: v for k, v in (("alpha", alpha), ("ridge", ridge)) if v is not None}
    given = {**lines.parameters, **{k: ctx.mpf(repr(v)) for k, v in fixed.items()}}
    values = [given.get(fe.IDENTIFIERS.get(p, str(p)), ctx.zero) for p in parameters]
    previous: Terms | None = None
    for level in range(_MOST_LEVELS):
        terms, start = programs.solve(ctx, *lines.rule(level), values, start, progress)
        if previous is not None and _settled(ctx, terms, previous, digits, lines.composite):
            return _expansion(
                rows.described, rows.outputs, name, order, terms, case.last, case.unit, digits,
                fixed, case.region, f"{digits} digits by two agreeing quadrature rules (estimated)",
                rows.series(name, case.balance), partial(_exact_in_line, rows), case.remainder,
            )  # fmt: skip
        previous = terms
    raise ConvergenceError(
        f"{_MOST_LEVELS} quadrature rules did not agree to {digits} digits; ask for fewer digits "
        "or a lower order"
    )


def _settled(ctx: Any, terms: Terms, previous: Terms, digits: int, composite: bool) -> bool:
    tolerance = ctx.mpf(10) ** -digits
    zeros = _zeros(ctx, terms, digits)
    for name, values in terms.items():
        for j, value in values.items():
            size = max(abs(value), abs(previous[name][j]))
            if size <= zeros[name][j]:
                continue
            difference = abs(value - previous[name][j]) / size
            # A trapezoidal rule squares its error with each level.
            if not (difference if composite else 10 * difference**1.5) <= tolerance:
                return False
    return True


def _zeros(ctx: Any, terms: Terms, digits: int) -> dict[str, dict[int, Any]]:
    """Return, for each coefficient, the size below which it vanishes by a symmetry.

    A coefficient is made of those with smaller exponents, so rounding is measured by their size:
    those of the same output, and those of all that do not vanish with the small quantity. Larger
    exponents tell nothing: asymptotic series have enormous coefficients.
    """
    unit = ctx.mpf(10) ** (-digits - _VANISHING)
    leading = [abs(v) for values in terms.values() for j, v in values.items() if j <= 0]
    scale = max(leading, default=ctx.zero)
    zeros: dict[str, dict[int, Any]] = {}
    for name, values in terms.items():
        largest, zeros[name] = scale, {}
        for j in sorted(values):
            largest = max(largest, abs(values[j]))
            zeros[name][j] = largest * unit
    return zeros


def _expansion(
    described: Mapping[str, Any], outputs: tuple[str, ...], name: str, order: int, terms: Terms,
    last: int, unit: Fraction, digits: int, fixed: Mapping[str, float], region: str, rests_on: str,
    symbolic: Callable[..., SymbolicSeries] | None, exact: Callable[..., dict[str, Any]],
    unknown_remainder: Fraction | None = None,
) -> Expansion:  # fmt: skip
    ctx = local_context(digits)
    names = {str(x): identifier for x, identifier in fe.IDENTIFIERS.items()}
    zeros = _zeros(ctx, terms, digits)
    found = {
        names.get(key, key): {
            j: ctx.mpf(value) if abs(value) > zeros[key][j] else ctx.zero
            for j, value in values.items()
        }
        for key, values in terms.items()
    }
    found = {key: found.get(key, {}) for key in outputs}
    kept = int(order / unit)
    first = min((j for values in found.values() for j, v in values.items() if v), default=0)
    exponents = range(min(first, 0), kept + 1)
    neglected: dict[str, tuple[Fraction, Any] | None] = {}
    for key, values in found.items():
        beyond = sorted(j for j, value in values.items() if j > kept and value)
        neglected[key] = (beyond[0] * unit, values[beyond[0]]) if beyond else None
        if unknown_remainder is not None:
            neglected[key] = (unknown_remainder, ctx.inf)
    remainder = neglected["test_error"]
    parameter = NAMES[name][0]
    powers = tuple(j * unit for j in exponents)
    return Expansion(
        name=name,
        parameter=parameter,
        point=math.inf if name == LARGE_ALPHA else 0.0,
        exponents=powers,
        coefficients={
            key: tuple(values.get(j, ctx.zero) for j in exponents)
            for key, values in found.items()
        },
        neglected=neglected,
        remainder_order=(kept + 1) * unit if remainder is None else remainder[0],
        digits=digits,
        fixed={**described, **fixed},
        symbols={**{key: _latex(key) for key in outputs}, "step_size": "s"},
        region=region,
        rests_on=rests_on,
        symbolic=None if symbolic is None else partial(symbolic, powers, outputs=outputs),
        exact=partial(exact, parameter, dict(fixed)),
    )  # fmt: skip


def _described(model: SpikedRandomFeatures, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"student": model.student, "teacher": model.teacher}
    if model.direct_parameters is not None:
        spike = model.direct_parameters
        found |= {
            "spike_strength": spike.spike_strength,
            "bulk_variance": spike.bulk_variance,
            "alignment": spike.alignment,
        }
        if spike.norm_overlap:
            found["norm_overlap"] = spike.norm_overlap
    else:
        if name in (LARGE_ALPHA, SMALL_RIDGE):
            found["step_size"] = model.step_size
        found["alpha0"] = model.alpha0
    found |= {"beta": model.beta, "noise_variance": model.noise_variance}
    if model.width is not None:
        found["width"] = model.width
    if model.leading_order != "published":
        found["leading_order"] = model.leading_order
    return found


def _latex(output: str) -> str:
    if output in _LATEX:
        return _LATEX[output]
    symbol = {identifier: x for x, identifier in fe.IDENTIFIERS.items()}.get(
        output, sp.Symbol(output)
    )
    return {**_LETTERS, **_HATS}.get(symbol) or str(sp.latex(symbol))


def exact_outputs(
    model: SpikedRandomFeatures,
    parameter: str,
    fixed: Mapping[str, float],
    value: Any,
    digits: int | None,
) -> dict[str, Any]:
    """Return the outputs of the exact solution at a value of the parameter."""
    if parameter == "step_size":
        moved = replace(model, step_size=float(value))
        return _solved(_OneKind(moved), fixed["alpha"], fixed["ridge"], digits)
    return _exact_in_line(_OneKind(model), parameter, fixed, value, digits)


def _exact_in_line(
    rows: _OneKind | _Letters, parameter: str, fixed: Mapping[str, float], value: Any,
    digits: int | None,
) -> dict[str, Any]:  # fmt: skip
    at = {**fixed, parameter: float(value)}
    return _solved(rows, at["alpha"], at["ridge"], digits)


def _solved(
    rows: _OneKind | _Letters, alpha: float, ridge: float, digits: int | None
) -> dict[str, Any]:
    with warnings.catch_warnings():
        # Whether a network follows these features is not what is compared here.
        warnings.simplefilter("ignore", ApproximationWarning)
        return rows.solved(alpha, ridge, digits)
