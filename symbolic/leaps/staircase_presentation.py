"""Staircases in print: lines of text, LaTeX and HTML.

Terms of the target are Hermite terms as the parser reads them, ``He(2, x1)*x2``; s1, s2, … are the
coordinates along the rows of the basis that is printed for the subspace before. Long vectors are
printed rounded; the objects hold the exact ones. Lines have at most 120 characters.
"""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp
from sympy.polys.rings import PolyElement

from ..expression_text import expression_text
from ..hermite_expansion import expansion_text
from ..standing import Standing
from ..subspaces import Subspace, vector_text

if TYPE_CHECKING:
    from .conditional_spans import SpanRow
    from .readout_clusters import ReadoutClusters
    from .staircase import NewDirection, Staircase, StaircaseStep

_MOST_TERMS = 4
_WIDTH = 120
# Longer vectors, subspaces and names of targets are rounded or cut.
_LONG_VECTOR, _LONG_SUBSPACE, _LONG_NAME = 44, 72, 70


def terms_text(names: Sequence[str], symbol: PolyElement | None, row: SpanRow) -> str:
    """Return the Hermite terms of a target that contribute to a vector.

    Parameters
    ----------
    names : sequence of str
        Those of the coordinates.
    symbol : PolyElement or None
        The symbol of a polynomial target, which gives the terms their coefficients. Of other
        targets the multi-indices are those of the expansion of the symbol, whose coefficients are
        numbers without a short form.
    row : SpanRow
        The vector.
    """
    sources = row.sources[:_MOST_TERMS]
    left_out = len(row.sources) - len(sources)
    more = f"... ({left_out} more)"
    if symbol is not None:
        text = expansion_text(symbol.ring.from_dict({m: symbol[m] for m in sources}))
        return text + (f" + {more}" if left_out else "")
    ring = sp.ring(list(names), sp.QQ)[0]
    texts = [expansion_text(ring.from_dict({m: sp.QQ(1)})) for m in sources]
    noun = "term" if len(row.sources) == 1 else "terms"
    return f"{noun} {', '.join([*texts, *([more] if left_out else [])])}"


def explanation(direction: NewDirection, step: StaircaseStep) -> str:
    """Return in words which terms of the target move the weights where, and by what."""
    row = direction.row
    moves = f"{direction.term}: moves along {_direction(row.vector)}"
    parts = []
    factors = [_power(f"s{i}", n) for i, n in enumerate(row.inside, 1) if n]
    if factors:
        noun = "the coordinate " if len(factors) == 1 and sum(row.inside) == 1 else ""
        parts.append(f"{noun}{'*'.join(factors)} of U_{step.number - 1}")
    outside = [_power(f"q{i}", n) for i, n in enumerate(row.outside, 1) if n]
    if outside:
        parts.append(f"{'*'.join(outside)} outside")
    words = f" with {' and '.join(parts)}" if parts else " by its mean gradient"
    return moves + words + (f", at order {row.order}" if row.order > 1 else "")


def _direction(vector: Sequence[sp.Expr]) -> str:
    """Write what a vector spans: an axis by its name, a long one rounded."""
    used = [i for i, entry in enumerate(vector) if entry != 0]
    if len(used) == 1:
        return f"e{used[0] + 1}"
    return short_vector_text(vector)


def short_vector_text(vector: Sequence[sp.Expr]) -> str:
    """Write a vector, rounded if it is long.

    Examples
    --------
    >>> short_vector_text([0, 1]), short_vector_text([sp.Rational(10**40, 3**60), 1])
    ('e2', '≈(2.359e+11, 1)')
    """
    text = vector_text(vector)
    if len(text) <= _LONG_VECTOR:
        return text
    entries = (e if sp.sympify(e, strict=True).is_Integer else sp.N(e, 4) for e in vector)
    return f"≈({', '.join(map(str, entries))})"


def subspace_text(subspace: Subspace) -> str:
    """Write a subspace, with long basis vectors rounded.

    Examples
    --------
    >>> long = sp.Rational(7**60, 10**50)
    >>> subspace_text(Subspace.spanned_by([[1, long, 1 / long], [0, 0, 0]]))
    '⟨≈(1, 5.080, 0.1968)⟩'
    """
    text = str(subspace)
    if len(text) <= _LONG_SUBSPACE:
        return text
    return f"⟨{', '.join(map(short_vector_text, subspace.basis))}⟩"


def name_text(name: str) -> str:
    """Cut the name of a long target."""
    return name if len(name) <= _LONG_NAME else f"{name[: _LONG_NAME - 4]} ..."


def _power(name: str, n: int) -> str:
    return name if n == 1 else f"{name}**{n}"


def staircase_text(found: Staircase) -> str:
    """Return the staircase as a table, with its end and what it rests on."""
    rows = []
    for step in found.steps:
        cells = [f"U_{step.number}", _learned(step), _orders(step), _standing(step)]
        details = step.explanations or ("nothing new",)
        rows += [[*cells, details[0]], *(["", "", "", "", more] for more in details[1:])]
    lines = _wrapped([_headline(found)])
    if rows:
        lines += ["", *_table(["step", "learned", "orders", "rests on", "because"], rows)]
    lines += [*_wrapped(_legend(found)), "", *_wrapped(_statements(found))]
    return "\n".join(lines)


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [
        part for line in lines for part in textwrap.wrap(line, _WIDTH, subsequent_indent="    ")
    ]


def _learned(step: StaircaseStep) -> str:
    return ("" if step.decided else "at least ") + subspace_text(step.after)


def _legend(found: Staircase) -> list[str]:
    rows = [direction.row for step in found.steps for direction in step.directions]
    parts = []
    if any(any(row.inside) for row in rows):
        parts.append("s1, s2, ...: coordinates along the basis of the subspace before")
    if any(any(row.outside) for row in rows):
        parts.append("q1, q2, ...: coordinates along e1, e2, ... outside it")
    return [f"({'; '.join(parts)})"] if parts else []


def staircase_latex(found: Staircase) -> str:
    r"""Return the chain of subspaces in LaTeX.

    Examples
    --------
    >>> from giantstep.symbolic.leaps.staircase import staircase
    >>> print(staircase("x1*x2 + x3").latex())
    U_{0} = \{0\} \subset U_{1} = \left\langle e_{3}\right\rangle \subsetneq V^* = \mathbb{R}^{3}
    """
    chain = ""
    for t, subspace in enumerate(found.subspaces):
        if t:
            chain += r" \subset " if found.steps[t - 1].directions else " = "
        equal = "=" if t == 0 or found.steps[t - 1].decided else r"\supseteq"
        chain += f"U_{{{t}}} {equal} {subspace.latex()}"
    if found.saturates:
        return chain + " = V^*"
    if not found.decided:
        return chain + rf", \quad V^* = {found.relevant_subspace.latex()}"
    return chain + rf" \subsetneq V^* = {found.relevant_subspace.latex()}"


def staircase_html(found: Staircase) -> str:
    """Return an HTML fragment: the chain, a table of the steps, and what it rests on."""
    chain = " ⊂ ".join(
        f"U<sub>{t}</sub> = {html.escape(text)}"
        for t, text in enumerate(["{0}", *map(_learned, found.steps)])
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("step", "learned", "orders", "rests on", "because")
    )
    rows = "".join(
        f"<tr><td>{step.number}</td><td>{html.escape(_learned(step))}</td>"
        f"<td>{_orders(step)}</td><td>{html.escape(_standing(step))}</td>"
        f"<td>{'<br>'.join(map(html.escape, step.explanations)) or 'nothing new'}</td></tr>"
        for step in found.steps
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    notes = "".join(f"<p>{html.escape(line)}</p>" for line in _statements(found))
    return f"<p>{html.escape(_headline(found))}</p><p>{chain}</p>{table}{notes}"


def _headline(found: Staircase) -> str:
    samples = "Θ(d)" if found.order == 1 else f"Θ(d^{found.order})"
    orders = "order 1" if found.order == 1 else f"orders <= {found.order}, {found.variant.value}"
    student = "" if found.mask.is_whole else f", student {found.mask}"
    return (
        f"staircase of {name_text(found.target.name)}: {orders}, n = {samples} samples "
        f"a step{student}"
    )


def _orders(step: StaircaseStep) -> str:
    return ", ".join(map(str, step.orders)) or "–"


def _standing(step: StaircaseStep) -> str:
    return f"{step.standing.value}: {step.remark}"


def _statements(found: Staircase) -> list[str]:
    from .staircase import CAVEAT, SOURCE

    spread = "" if found.clusters is None else "with a continuum of readouts: "
    lines = [spread + _end(found)]
    if not found.saturates and found.has_ended:
        lines += _needs(found)
    if found.clusters is not None:
        lines += _clusters(found, found.clusters)
    lines += [f"subspaces: {found.basis}", f"source of the claim on giant steps: {SOURCE}"]
    if any(step.standing is Standing.EXTRAPOLATION for step in found.steps):
        lines.append(f"caveat: {CAVEAT}")
    return lines


def _end(found: Staircase) -> str:
    count = len(found.steps)
    steps = f"{count} step" if count == 1 else f"{count} steps"
    relevant = found.relevant_subspace
    whole = f"V* = {subspace_text(relevant)}"
    if found.saturates:
        return f"saturates: {whole} after {steps}"
    if not found.has_ended:
        return f"not at its end after {steps}: max_steps came first; {whole}"
    where = f"U_{count} = {subspace_text(found.final)}" if count else "{0}"
    if not found.decided:
        return f"not seen to go on after {steps}; {whole}, of dimension {relevant.dimension}"
    return f"stops at {where}, before {whole} of dimension {relevant.dimension}"


def _needs(found: Staircase) -> list[str]:
    if found.basis.startswith("undetermined"):
        return [f"whether a further step adds a direction is {found.basis}"]
    order = found.stuck_order
    if found.student_order is None and order is not None and not found.mask.is_whole:
        more = " or random biases" if not found.mask.biases else ""
        return [
            f"no order leads on with the degrees of the student; another activation{more} would, "
            f"at order {order}, n = Θ({_power_of_d(order)}) samples a step"
        ]
    lines = []
    if found.student_order is not None:
        lines.append(
            f"k(U) = {found.student_order}: needs order {found.student_order}, "
            f"n = Θ({_power_of_d(found.student_order)}) samples a step"
        )
    if found.student_order is not None and order is not None and order < found.student_order:
        lines.append(f"with all degrees, order {order} would do: another activation or biases")
    return lines or ["which order would lead on is not decided"]


def _power_of_d(order: int) -> str:
    return "d" if order == 1 else f"d^{order}"


def _clusters(found: Staircase, clusters: ReadoutClusters) -> list[str]:
    values = ", ".join(map(expression_text, clusters.readouts))
    size, t = len(clusters.readouts), clusters.step
    noun = "cluster" if size == 1 else "clusters"
    lines = [
        f"readouts {values}: neurons move in {size} {noun}, at most {size} new directions a step, "
        f"and their overlaps with V* have rank {size} at most (derived here)"
    ]
    bound = "" if clusters.decided else "at least "
    reachable = subspace_text(clusters.reachable)
    rank, dimension = clusters.rank_at_most, clusters.dimension
    after = f", but with overlaps of rank {rank} at most" if rank < dimension else ""
    if not clusters.is_limiting:
        lines.append(f"step {t}: the moves so far span all of {reachable}{after}")
    else:
        lines.append(
            f"step {t}: the moves so far span {bound}dimension {dimension} instead of "
            f"{clusters.reachable.dimension}, for step sizes and coefficients in general position"
            f"{after}; what they span holds {subspace_text(clusters.certain)} and lies in "
            f"{reachable}"
        )
    if not clusters.equal_norms and size > 1:
        paired = any(direction.paired for direction in clusters.directions)
        factor = ", for this student no more than a factor" if paired else ""
        lines.append(
            f"  (the mean of the target gives readouts ±a weights of different norms{factor})"
        )
    for direction in clusters.directions:
        a = expression_text(direction.readout)
        who = f"readouts ±{a}" if direction.paired else f"readout {a}"
        lines.append(f"  {who}: {direction}")
    if clusters.directions:
        lines.append(
            f"  u: overlap for readout 1 along {short_vector_text(clusters.line.basis[0])}; "
            "s_j = E σ^(j)(τz), τ the norm of the neurons"
        )
    last = max((step.number for step in found.steps), default=0)
    if last > t:
        later = ", ".join(f"{n}" for n in found.dimensions_at_most[t:])
        lines.append(f"later steps: dimension at most {later} (an upper bound)")
    return lines


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; where it is too wide, its texts are wrapped."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    room = _WIDTH - 3 * (len(widths) - 1)
    if sum(widths) > room:
        step, learned, orders, standing, _ = widths
        learned, standing = min(learned, 34), min(standing, 24)
        widths = [step, learned, orders, standing, room - step - learned - orders - standing]
    lines = ["─┼─".join("─" * width for width in widths)]
    for row in rows:
        lines += _table_row(row, widths)
    return [*_table_row(headings, widths), *lines]


def _table_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [
        textwrap.wrap(cell, width, subsequent_indent="  ", break_on_hyphens=False)
        for cell, width in zip(row, widths, strict=True)
    ]
    return [
        " │ ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in itertools.zip_longest(*cells, fillvalue="")
    ]
