"""The arguments of a model as JSON, with infinity written as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ..errors import ParameterError


def to_json(model: str, arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a model, under the name of the model, as JSON."""
    values = {name: "inf" if value == math.inf else value for name, value in arguments.items()}
    return json.dumps({"model": model, **values}, indent=2)


def from_json(model: str, text: str) -> dict[str, Any]:
    """Return the arguments that :func:`to_json` wrote for this model.

    Raises
    ------
    ParameterError
        If the text is not such JSON.
    """
    try:
        values = json.loads(text)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"text is not a model written by to_json: {error}") from None
    if not isinstance(values, dict) or values.pop("model", "") != model:
        raise ParameterError(
            f"text is not a model written by to_json: it has no entry 'model': '{model}'"
        )
    return {name: math.inf if value == "inf" else value for name, value in values.items()}
