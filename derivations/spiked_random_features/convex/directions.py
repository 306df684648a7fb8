"""How the parameters of the equations of a convex readout move with its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sensitivities import Directions

if TYPE_CHECKING:
    from .readout import ConvexReadout


def readout_directions(readout: ConvexReadout, *, exact: bool) -> Directions:
    """Return those of the features, and the parameters of the loss."""
    given = readout.equivalent
    found = readout._rows.directions(exact=exact)
    moving, excluded = dict(found.moving), dict(found.excluded)
    if readout.channel.is_binary:
        # The labels have the variance that follows from their law, which the noise is a part of.
        moving["noise_variance"] = {"noise_variance": 1}
        if readout.labels == "probit" and given.direct_parameters is None and given.step_size:
            del moving["noise_variance"]
            excluded["noise_variance"] = (
                "the mean of the labels that the step sees depends on it, whose derivative is not "
                "derived; give the features by from_parameters of their model"
            )
    if not readout.channel.has_noise:
        moving.pop("noise_variance", None)
        excluded["noise_variance"] = (
            "labels have none, and the equations are those without; take noise_variance > 0"
        )
    moving |= {name: {name: 1} for name in dict(readout.convex_loss.values)}
    moving.pop("inverse_width", None)
    if readout.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)
