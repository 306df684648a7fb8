"""What the groups of methods of a model of one step share: the model itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from .model import OneGradientStep


class Analysed:
    """Base of the groups of methods that ``OneGradientStep`` is made of."""

    @property
    def _model(self) -> OneGradientStep:
        return cast("OneGradientStep", self)
