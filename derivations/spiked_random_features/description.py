"""The methods of the model that write it: as text, as LaTeX, and to files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self, cast

from ...atomic_files import write_atomically
from ...errors import ParameterError
from ..json_text import from_json, to_json
from .arguments import DIRECT, STEP
from .bulk_law import IID, BulkLaw
from .quality import quality_text

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures

_MODEL = "spiked_random_features"
_COMMON = ("student", "teacher", "beta", "noise_variance")
_OPTIONS = ("allow_non_odd", "leading_order")


class Description:
    """A model as text that gives it back."""

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the model as plain values."""
        model = cast("SpikedRandomFeatures", self)
        spike = model.direct_parameters
        if spike is None:
            found = {name: getattr(model, name) for name in (*_COMMON[:2], *STEP, *_COMMON[2:])}
            found |= {name: getattr(model, name) for name in _OPTIONS}
        else:
            found = {name: getattr(model, name) for name in _COMMON}
            found |= {name: getattr(spike, name) for name in DIRECT}
            # What independent rows of one norm are goes without saying.
            if spike.norm_overlap:
                found["norm_overlap"] = spike.norm_overlap
            if any(spike.stretch):
                found["stretch"] = list(spike.stretch)
            if model.bulk != IID:
                found["bulk"] = model.bulk
        # The strict limit is the theory of the paper and goes without saying.
        return found if model.width is None else {**found, "width": model.width}

    def to_json(self) -> str:
        """Return the model as JSON; :meth:`from_json` reads it."""
        arguments = self.parameters()
        if isinstance(law := arguments.get("bulk"), BulkLaw):
            arguments["bulk"] = law.to_dict()
        return to_json(_MODEL, arguments)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the model that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the text is not such a model.
        """
        arguments = from_json(_MODEL, text)
        if isinstance(law := arguments.get("bulk"), dict):
            arguments["bulk"] = BulkLaw.from_dict(law)
        model: Any = cls
        build = model.from_parameters if "spike_strength" in arguments else model
        try:
            found: Self = build(**arguments)
        except TypeError as error:
            raise ParameterError(f"text is not a model written by to_json: {error}") from None
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file as JSON."""
        write_atomically(path, self.to_json() + "\n")

    def __str__(self) -> str:
        arguments = ", ".join(f"{k} = {v}" for k, v in self.parameters().items())
        quality = quality_text(cast("SpikedRandomFeatures", self))
        return f"spiked random features: {arguments}" + (f"\n{quality}" if quality else "")

    def _repr_latex_(self) -> str:
        from .presentation import model_latex

        return model_latex(cast("SpikedRandomFeatures", self))
