"""Metrics of users: functions of a label and a prediction, averaged over samples."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

import sympy as sp

from ....errors import ParameterError
from ....symbolic.convex_losses import without_cases
from ....symbolic.parser import parse_expression
from .losses import in_label_and_prediction, require_moderate_size, require_slow_growth, x, y

_TAKEN = ("error", "loss")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")
# Labels and predictions at which a metric is looked at.
_PLACES = (*map(sp.Integer, (-20, -1, 0, 1, 20)), sp.Rational(3, 4), sp.Rational(-5, 8))


def read_metrics(metrics: Mapping[str, object] | None) -> dict[str, sp.Expr]:
    """Return metrics as expressions in y and x.

    Parameters
    ----------
    metrics : mapping from str to str or Expr, optional

    Raises
    ------
    ParameterError
        If a name is no identifier, or a metric is no function of y or x, jumps in x, is not a
        finite real number everywhere, or grows too fast to have a mean.
    ExpressionError
        If a text cannot be read.
    """
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise ParameterError(
            f"metrics must be a mapping from names to expressions, got {metrics!r}"
        )
    found = {}
    for name, value in metrics.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or keyword.iskeyword(name):
            raise ParameterError(f"metrics: the name {name!r} is no identifier of ASCII letters")
        if name in _TAKEN:
            raise ParameterError(f"metrics: test_{name} is a result already; use another name")
        argument = f"metrics[{name!r}]"
        if isinstance(value, str):
            expr = parse_expression(value, [y, x], argument=argument)
        elif isinstance(value, sp.Expr):
            expr = in_label_and_prediction(value, argument)
        else:
            raise ParameterError(
                f"{argument} must be a text or a SymPy expression in y and x, got {value!r}"
            )
        if not expr.free_symbols:
            raise ParameterError(f"{argument} must depend on y or x, and {expr} does not")
        require_moderate_size(expr, argument)
        expr = without_cases(expr, x)
        jumps = [a for a in expr.atoms(sp.sign, sp.Heaviside) if x in a.free_symbols]
        if jumps:
            raise ParameterError(
                f"{argument} must be continuous in x, but {jumps[0]} jumps; test_error is "
                "the fraction of wrong signs for labels ±1"
            )
        _require_mean(expr, argument)
        found[name] = expr
    return found


def _require_mean(metric: sp.Expr, argument: str) -> None:
    for label in _PLACES:
        at_label = metric.xreplace({y: label})
        for place in _PLACES:
            value = at_label.xreplace({x: place}).evalf()
            if not (value.is_Number and value.is_finite):
                raise ParameterError(
                    f"{argument} must be a finite real number for all y and x, but {metric} is "
                    f"not at y = {label}, x = {place}"
                )
        if x in at_label.free_symbols:
            require_slow_growth(at_label, f"{argument} {metric}")
