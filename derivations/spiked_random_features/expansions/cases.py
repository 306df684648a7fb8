"""Which expansion applies to a model: the balance, where it holds, and what forbids it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import positive_number
from ....symbolic.activations import Activation, activation, z
from ...expansions.expansion import LARGE_ALPHA, SMALL_RIDGE
from .scaling import (
    FEW_PARAMETERS,
    INTERPOLATION,
    MANY_SAMPLES,
    MANY_SAMPLES_AT_WIDTH,
    THRESHOLD,
    Balance,
)
from .tails import highest_moment, saturation_rate

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures
    from ..spike import SpikeParameters

# Where float solutions are close enough to the limit to start Newton's method from.
_MANY = 1e6
_SMALL_RIDGE = 1e-8
# Relative accuracy of the measured decay of a student.
_MEASURED = 1e-3
# Exponents of remainders that are no powers of a series are rounded down to multiples of 1/100.
_STEPS = 100


@dataclass(frozen=True)
class LineCase:
    """An expansion in α or λ.

    Attributes
    ----------
    balance : Balance
    last : int
        Exponent of ε of the last term that is computed, the neglected one.
    unit : Fraction
        Exponent of the small quantity that one power of ε is.
    inverse_powers : int
        Highest power of the inverse conditional variance.
    near : mapping from str to float
        α and λ of the float solution to start from.
    epsilon : float
        ε there.
    region : str
        Where the series holds.
    remainder : Fraction, optional
        Exponent of the small quantity that bounds the remainder, where the next coefficient
        diverges; `last` is then that of the last term that is kept.
    """

    balance: Balance
    last: int
    unit: Fraction
    inverse_powers: int
    near: Mapping[str, float]
    epsilon: float
    region: str
    remainder: Fraction | None = None


def line_case(
    model: SpikedRandomFeatures, name: str, order: int, alpha: float | None, ridge: float | None,
) -> LineCase:  # fmt: skip
    """Return the case of an expansion in α (at fixed λ) or in λ (at fixed α).

    Raises
    ------
    AssumptionError
        If the limit does not exist, or the coefficients diverge.
    """
    # Nothing is derived before it is known that there is something to derive.
    student = activation(model.student, argument="student")
    _require_bulk_noise(model, student, name)
    if name == LARGE_ALPHA:
        assert ridge is not None
        many = _MANY * max(1.0, model.beta)
        balance = MANY_SAMPLES if model.width is None else MANY_SAMPLES_AT_WIDTH
        return LineCase(
            balance, order + 1, Fraction(1), 0, {"alpha": many, "ridge": ridge}, 1 / many,
            f"alpha = n/d to infinity at beta = {model.beta:g} and lambda = {ridge:g} fixed; the "
            "limit is E_inf of any fixed lambda",
        )  # fmt: skip
    assert alpha is not None
    near = {"alpha": alpha, "ridge": _SMALL_RIDGE}
    if alpha > model.beta:
        # The training error has no linear term: two orders hold the first neglected one.
        return LineCase(
            FEW_PARAMETERS, order + 2, Fraction(1), 0, near, _SMALL_RIDGE,
            f"lambda to 0 at alpha = {alpha:g} > beta = {model.beta:g}: n > p, the training set "
            "is not interpolated and lambda = 0 is regular",
        )  # fmt: skip
    if alpha < model.beta:
        case = LineCase(
            INTERPOLATION, order + 1, Fraction(1), order + 2, near, _SMALL_RIDGE,
            f"lambda to 0 at alpha = {alpha:g} < beta = {model.beta:g}: n < p, the training set "
            "is interpolated and the responses V grow like 1/lambda",
        )  # fmt: skip
    else:
        case = LineCase(
            THRESHOLD, 2 * order + 1, Fraction(1, 2), 2 * order + 3, near,
            math.sqrt(_SMALL_RIDGE),
            f"lambda to 0 at the interpolation threshold alpha = beta = {alpha:g}: the test error "
            "peaks like 1/sqrt(lambda)",
        )  # fmt: skip
    return _with_finite_moments(model, student, case)


def _require_bulk_noise(model: SpikedRandomFeatures, student: Activation, name: str) -> None:
    affine = student.expr.is_polynomial(z) and sp.degree(student.expr, z) <= 1
    if affine and model.beta >= 1:
        raise AssumptionError(
            f"student {student.name!r} is affine, so that its p = beta d features span only d "
            f"directions: at beta = {model.beta:g} >= 1 the response V_2 is infinite and "
            f"{name!r} does not exist; choose beta < 1 or another student"
        )


def _with_finite_moments(
    model: SpikedRandomFeatures, student: Activation, case: LineCase
) -> LineCase:
    spike = model.spike
    rate = saturation_rate(student)
    most = highest_moment(rate, spike.spike_strength, spike.bulk_variance)
    # A moment of exactly the critical power diverges; what is measured is good to 1e-3.
    if most <= (case.inverse_powers - 1) * (1 + _MEASURED):
        raise AssumptionError(_diverges(student, spike, rate, most, case))
    if most <= case.inverse_powers * (1 + _MEASURED):
        return _without_next_term(case, most)
    if rate == 0 and spike.spike_strength:
        note = (
            "; for a student that saturates, inverse powers of its conditional variance make "
            "coefficients grow fast: the series is asymptotic and holds for very small lambda"
        )
        return replace(case, region=case.region + note)
    return case


def _diverges(
    student: Activation, spike: SpikeParameters, rate: float, most: float, case: LineCase
) -> str:  # fmt: skip
    law = (
        f"its conditional variance decays like exp(-r^2 kappa^2/(2c)), r = "
        f"{spike.spike_strength:.6g}, c = {spike.bulk_variance:.6g}"
        if math.isinf(rate)
        else f"its conditional variance decays like exp(-2 g r^2 kappa^2/(1 + 4 g c)), g = "
        f"{rate:.4g}, r = {spike.spike_strength:.6g}, c = {spike.bulk_variance:.6g}"
    )
    # The power that an order needs grows by one for each power of epsilon.
    needed = case.inverse_powers - 1
    room = math.ceil(most * (1 - _MEASURED)) - 1 - (needed - (case.last - 1))
    highest = math.floor(room * case.unit)
    limit = (
        f"the highest order is {highest}; ask for that"
        if highest >= 0
        else "the ridgeless averages diverge, and there is no limit to expand about"
        if most <= 1 + _MEASURED
        else "only the amplitude of the peak exists"
    )
    return (
        f"student {student.name!r} saturates along the spike: {law}, and the mean of its "
        f"inverse to the power j is finite for j < {most:.4g} only. At alpha <= beta this "
        f"order of the expansion needs j = {needed}: {limit}; or take alpha > beta or a smaller "
        "step, or solve at a positive ridge"
    )


def _without_next_term(case: LineCase, most: float) -> LineCase:
    """Return a case whose next coefficient diverges, so that its remainder is no next term.

    Averages of 1/(ε + v) are power series up to the weight of v < ε, which is of order ε to the
    power `most`, up to logarithms: the
    exponent is rounded down, so that what is left is of that order whatever the logarithms.
    """
    exponent = case.last - (case.inverse_powers - most)
    below = math.floor(exponent * case.unit * _STEPS * (1 - _MEASURED) - _MEASURED)
    remainder = max(Fraction(below, _STEPS), (case.last - 1) * case.unit)
    return replace(
        case,
        last=case.last - 1,
        inverse_powers=case.inverse_powers - 1,
        remainder=remainder,
        region=f"{case.region}; the next coefficient diverges, since the mean of the inverse "
        f"conditional variance of the student to the power j is finite for j < {most:.4g} only: "
        f"what is left out is no power series, it is O(lambda^({remainder})) and its size is "
        "not known",
    )


def checked_point(name: str, alpha: object, ridge: object) -> tuple[float | None, float | None]:
    """Return α and λ that are held fixed; the one that is expanded in must not be given.

    Raises
    ------
    ParameterError
        If one is missing, superfluous or not positive.
    """
    wanted = {
        LARGE_ALPHA: ("ridge",),
        SMALL_RIDGE: ("alpha",),
    }.get(name, ("alpha", "ridge"))
    found: dict[str, float | None] = {}
    for argument, value in (("alpha", alpha), ("ridge", ridge)):
        if argument not in wanted:
            if value is not None:
                raise ParameterError(
                    f"{argument} is what {name!r} expands in; leave it out (got {value!r})"
                )
            found[argument] = None
            continue
        if value is None:
            raise ParameterError(f"{name!r} holds {argument} fixed; give {argument}=...")
        found[argument] = positive_number(argument, value)
    return found["alpha"], found["ridge"]
