"""The parameters of a convex readout to any number of digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....errors import ParameterError

if TYPE_CHECKING:
    from .readout import ConvexReadout


def exact_values(readout: ConvexReadout, ctx: Any) -> dict[str, Any]:
    """Return the parameters but α and λ, every float read as the decimal that it prints as.

    Raises
    ------
    ParameterError
        If the spike comes from a step on labels that are random given the field: the mean of
        those is known in double precision.
    """
    import sympy as sp

    given = readout.equivalent
    by_step = given.direct_parameters is None and given.step_size != 0
    if by_step and readout.labels in ("probit", "logistic"):
        raise ParameterError(
            f"digits: the spike of a step on labels {readout.labels!r} is known in double "
            "precision; give the features by SpikedRandomFeatures.from_parameters"
        )
    found = readout._rows.exact(ctx)
    own = {p.name: value for p, value in readout.convex_loss.exact_values.items()}
    own["noise_variance"] = sp.Rational(repr(readout.features.noise_variance))
    if readout.width is not None:
        own["inverse_width"] = sp.Rational(1, readout.width)
    return found | {name: ctx.mpf(str(sp.N(x, ctx.dps + 5))) for name, x in own.items()}


def bound_of_digits(readout: ConvexReadout) -> dict[str, Any]:
    """Return the bound of digits for a loss whose averages hold a rule of fixed accuracy."""
    from ....symbolic.convex_losses import without_cases
    from ....symbolic.ramp_moments import RAMP_DIGITS
    from .losses import x
    from .smoothing import is_linear_between_kinks

    losses = [without_cases(readout.convex_loss.at_label(label), x) for label in (-1, 1)]
    ramps = any(is_linear_between_kinks(loss, x) for loss in losses)
    return {"most_digits": RAMP_DIGITS} if ramps else {}
