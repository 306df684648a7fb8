"""Predicted fits in print: text, LaTeX, HTML, plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...pages import Table, aligned, as_html
from ...symbolic.expression_text import expression_text
from ...symbolic.hermite_expansion import expansion_latex
from ...symbolic.projections import digits_of, function_text, number_text

if TYPE_CHECKING:
    from .regimes import FitPrediction, RegimeTable

# Cells of the table in text, which is to fit into 120 columns.
_LONGEST_SUBSPACE, _LONGEST_FUNCTION = 22, 26
_LONGEST_LATEX = 300
_HEADINGS = ("n", "p", "T", "learned U", "κ", "fitted", "error", "rests on")
_LEGEND = (
    "n samples in each of T steps, p neurons; the first layer learns U, the second one fits "
    "degrees up to κ outside U"
)


def prediction_text(prediction: FitPrediction) -> str:
    """Return one prediction as lines."""
    degree = prediction.projection.degree
    n, p = _power(prediction.samples_exponent), _power(prediction.width_exponent)
    student = "" if prediction.student is None else f", student {prediction.student}"
    lines = [
        f"f = {prediction.target}; n ~ {n}, p ~ {p}, steps {prediction.steps}{student}",
        f"learned subspace U = {prediction.subspace}"
        f" ({prediction.subspace_basis.standing.value}: {prediction.subspace_basis.source})",
        f"fitted P_U,<={degree} f = {function_text(prediction.projection)}",
        f"error {prediction.relation} {number_text(prediction.residual)}"
        f" of E f^2 = {number_text(prediction.projection.norm_squared)}"
        f" ({prediction.error_basis.standing.value}: {prediction.error_basis.source})",
        *(f"note: {caveat}" for caveat in prediction.caveats),
    ]
    return "\n".join(lines)


def table_text(table: RegimeTable) -> str:
    """Return the table, and below it the sources and caveats by number."""
    notes: dict[str, int] = {}
    cells = []
    for row in table.rows:
        marks = [notes.setdefault(note, len(notes) + 1) for note in _notes(row)]
        basis = f"{row.standing.value} [{','.join(map(str, sorted(marks)))}]"
        n, p, steps, subspace, kappa, fitted, _ = _cells(row)
        subspace = _cut(str(row.subspace), _LONGEST_SUBSPACE) + ("" if row.decided else " +")
        error = f"{row.relation} {_short_number(row.residual)}"
        cells.append([n, p, steps, subspace, kappa, _cut(fitted, _LONGEST_FUNCTION), error, basis])
    head = f"f = {table.target}, E f^2 = {number_text(table.rows[0].projection.norm_squared)}"
    if table.student is not None:
        head += f", student {table.student}"
    below = [f"[{number}] {note}" for note, number in notes.items()]
    lines = [head, aligned(_HEADINGS, cells), _LEGEND]
    if any(not row.decided for row in table.rows):
        lines.append("+: U may be larger")
    return "\n".join([*lines, *below])


def table_latex(rows: Sequence[FitPrediction]) -> str:
    """Return the rows as an array in LaTeX, without delimiters."""
    head = r"n & p & T & U & \kappa & P_{U,\le\kappa} f & \|P_{U,>\kappa} f\|^2 & \text{rests on}"
    lines = [head + r" \\ \hline"]
    for row in rows:
        relation = {"→": r"\to", "≥": r"\ge"}[row.relation]
        cells = [
            _power_latex(row.samples_exponent),
            _power_latex(row.width_exponent),
            str(row.steps),
            row.subspace.latex(),
            sp.latex(row.kappa),
            _fitted_latex(row),
            rf"{relation} {sp.latex(row.residual)}",
            rf"\text{{{row.standing.value}}}",
        ]
        lines.append(" & ".join(cells) + r" \\")
    return r"\begin{array}{llllllll}" + " ".join(lines).removesuffix(r" \\") + r"\end{array}"


def table_html(table: RegimeTable) -> str:
    """Return the table in HTML."""
    title = f"f = {table.target}, E f² = {number_text(table.rows[0].projection.norm_squared)}"
    if table.student is not None:
        title += f", student {table.student}"
    rows = [[*_cells(row), row.standing.value, "; ".join(_notes(row))] for row in table.rows]
    return as_html([title, Table(rows, (*_HEADINGS, "sources and caveats"))])


def prediction_dict(prediction: FitPrediction) -> dict[str, Any]:
    """Return plain data for JSON."""
    return {
        "samples_exponent": str(prediction.samples_exponent),
        "width_exponent": str(prediction.width_exponent),
        "steps": prediction.steps,
        "student": None if prediction.student is None else str(prediction.student),
        "subspace": prediction.subspace.to_dict(),
        "decided": prediction.decided,
        "kappa": str(prediction.kappa),
        "fitted": None if prediction.projection.bounds else expression_text(prediction.fitted),
        "residual": expression_text(prediction.residual),
        "relation": prediction.relation,
        "standing": prediction.standing.value,
        "subspace_standing": prediction.subspace_basis.standing.value,
        "error_standing": prediction.error_basis.standing.value,
        "source": prediction.source,
        "caveats": list(prediction.caveats),
    }


def _cells(row: FitPrediction) -> list[str]:
    return [
        _power(row.samples_exponent),
        _power(row.width_exponent),
        str(row.steps),
        str(row.subspace) + ("" if row.decided else " or more"),
        str(row.kappa),
        function_text(row.projection),
        f"{row.relation} {number_text(row.residual)}",
    ]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."


def _short_number(value: sp.Expr) -> str:
    """Return a rational number as it is, digits of others if there are any."""
    return str(value) if value.is_Rational else digits_of(value) or "(no digits)"


def _notes(row: FitPrediction) -> list[str]:
    parts = (("U", row.subspace_basis), ("error", row.error_basis))
    sources = [f"{name}: {part.standing.value}, {part.source}" for name, part in parts]
    return [*sources, *row.caveats]


def _fitted_latex(row: FitPrediction) -> str:
    if row.projection.bounds is not None:
        return r"\dots"
    expansion = row.projection.fitted_expansion
    if expansion is not None:
        return expansion_latex(expansion.symbol_element)
    text: str = sp.latex(row.fitted)
    return text if len(text) <= _LONGEST_LATEX else r"\dots"


def _power(exponent: sp.Rational) -> str:
    if exponent == 0:
        return "1"
    if exponent == 1:
        return "d"
    return f"d^{exponent}" if exponent.is_Integer else f"d^({exponent})"


def _power_latex(exponent: sp.Rational) -> str:
    return sp.latex(sp.Symbol("d") ** exponent, fold_frac_powers=True)
