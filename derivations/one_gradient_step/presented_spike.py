"""The spike of the first layer in words, as a table and as formulas."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from ...digits import held_digits

if TYPE_CHECKING:
    from .weight_spike import WeightSpike


def spike_text(spike: WeightSpike) -> str:
    """Return the numbers as lines of text."""
    rows = spike_rows(spike)
    width = max(len(name) for name, _ in rows)
    lines = [f"first layer after {spike.model}"]
    lines += [f"  {name:<{width}}  {value}" for name, value in rows]
    return "\n".join([*lines, f"  {verdict(spike)}", f"  {spike.rests_on}"])


def spike_html(spike: WeightSpike) -> str:
    """Return the numbers as a table."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>"
        for name, value in spike_rows(spike)
    )
    return (
        f"<table>{rows}</table><p>{html.escape(verdict(spike))}. {html.escape(spike.rests_on)}</p>"
    )


def spike_latex(spike: WeightSpike) -> str:
    """Return the sizes with what they are, as one formula."""

    def number(value: Any) -> str:
        return r"\infty" if value == math.inf else f"{float(value):.6g}"

    sign = ">" if spike.supercritical else r"\leq"
    return (
        rf"$\displaystyle \theta_1 = {number(spike.theta1)} {sign} \beta^{{1/4}},\quad "
        rf"\theta_2 = {number(spike.theta2)},\quad "
        rf"s_1(W_1) \to {number(spike.singular_value)},\quad "
        rf"\langle u_1, \beta_*\rangle^2 \to {number(spike.alignment_teacher)},\quad "
        rf"\langle v_1, a\rangle^2 \to {number(spike.alignment_readout)}$"
    )


def verdict(spike: WeightSpike) -> str:
    """Say whether there is an outlier, and from which step size on."""
    critical = spike.critical_step_size
    if critical == math.inf:
        return "no step size makes an outlier"
    found = "an outlier" if spike.supercritical else "no outlier"
    return f"{found}: the critical step size is {_show(critical, spike.digits)}"


def spike_rows(spike: WeightSpike) -> list[tuple[str, str]]:
    """Return names and printed values."""
    lower, upper = (_show(edge, spike.digits) for edge in spike.bulk_edges)
    values = {
        "length of the spike theta1": spike.theta1,
        "along the teacher theta2": spike.theta2,
        "cosine with the teacher": spike.alignment,
        "critical step size": spike.critical_step_size,
        "largest singular value": spike.singular_value,
        "squared overlap with the spike": spike.alignment_spike,
        "squared overlap with the teacher": spike.alignment_teacher,
        "squared overlap with the readout": spike.alignment_readout,
    }
    rows = [(name, _show(value, spike.digits)) for name, value in values.items()]
    rows.append(("bulk of singular values", f"[{lower}, {upper}]"))
    if spike.atom:
        rows.append(("share of zeros of W W^T", _show(spike.atom, spike.digits)))
    return rows


def _show(value: Any, digits: int | None) -> str:
    if value == math.inf:
        return "inf"
    if digits is None:
        return f"{value:.12g}"
    return held_digits(value, digits)
