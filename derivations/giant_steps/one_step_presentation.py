"""One giant step in print: its statements, each with what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...pages import Block, Table
from ...symbolic.expression_text import expression_text
from ...symbolic.standing import Standing
from ...symbolic.stein import DIMENSION, Direction
from ..readable import readable
from .one_step_values import STEP, Prefactor

if TYPE_CHECKING:
    from .one_step import GiantStep

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"
_EXPANSION = "leading term of the gradient expansion"
_AGAINST_NOISE = "gradient expansion against its noise"
_MOST_CHARACTERS = 72
"""Longer formulas are shown by their letters alone: the table has 120 columns at most."""

_TEXT_WIDTH = 100


@dataclass(frozen=True)
class Statement:
    """One row: what is said of the step, and what it rests on.

    Attributes
    ----------
    subject, text, latex : str
    standing : Standing
    source : str
    remark : str
        Under which conditions, and what else has to be known.
    """

    subject: str
    text: str
    latex: str
    standing: Standing
    source: str
    remark: str = ""


def statements(step: GiantStep) -> tuple[Statement, ...]:
    """Return what holds of a step, the most important first; nothing if nothing is learned."""
    if step.order is None:
        return ()
    found = [*_thresholds(step), *_spike(step), *_sizes(step)]
    if step.order == 1:
        found += _rank_one(step)
    return tuple(found)


def _thresholds(step: GiantStep) -> list[Statement]:
    order = step.order or 0
    proven = not _why_not_proven(step)
    standing = Standing.THEOREM if proven else Standing.DERIVED_HERE
    source = _DKLPS if proven else _AGAINST_NOISE
    remark = _why_not_proven(step)
    power = _power(order)
    rates = [readable(str(step.step_size(name))) for name in Prefactor]
    others = zip(rates[1:], list(Prefactor)[1:], strict=True)
    eta = sp.latex(step.step_size())
    dimension = step.learned.dimension
    return [
        Statement(
            "samples", f"n ≍ {power}", rf"n \asymp d^{{{order}}}", standing, source,
            remark or f"from n = O(d^({order} - ε)) no step of any size learns a constant share",
        ),
        Statement(
            "learned subspace", f"{step.learned}, dimension {dimension}",
            rf"\mathrm{{range}}\,C_{{{order}}} = {step.learned.latex()}", standing, source,
            "" if step.basis == "exact" else step.basis,
        ),
        Statement(
            "by p neurons", f"at most min(p, {dimension}) directions",
            rf"\min(p, {dimension})\ \text{{directions}}", Standing.DERIVED_HERE, _EXPANSION,
            f"neuron i moves along {_contraction(order)}",
        ),
        Statement(
            "learning rate", f"η ≍ {rates[0]}", rf"\eta \asymp {eta}", standing, source,
            f"for the prefactor {Prefactor.MEAN.value}; "
            + "; ".join(f"{rate} for {name.value}" for rate, name in others),
        ),
        Statement(
            "detectable", f"n ≫ {_power(order - 1)}", rf"n \gg d^{{{order - 1}}}",
            Standing.DERIVED_HERE, _AGAINST_NOISE,
            f"in a fixed direction the spike, of order {_power(sp.Rational(1 - order, 2))}, "
            "exceeds the noise of order n^(-1/2)",
        ),
    ]  # fmt: skip


def _spike(step: GiantStep) -> list[Statement]:
    order, constants = step.order or 0, step.ridge_constants
    found = [
        Statement(
            "spike of a neuron", _shown(step.leading_vector, readable(_letters(order))),
            sp.latex(step.leading_vector.T), Standing.DERIVED_HERE, _EXPANSION,
            f"{readable(_letters(order))} in the components w1, w2, … of the neuron; its part in "
            "the relevant space moves by η a/p times this",
        )
    ]  # fmt: skip
    # Of order 1 the spike itself is constant.
    if constants is not None and order > 1:
        power = "w_k" if order == 2 else f"w_k^{order - 1}"
        found.append(
            Statement(
                "by direction", _shown(sp.Matrix(constants), f"μ_{order} μ*_{order}/{order - 1}!"),
                ",\\ ".join(map(sp.latex, constants)), Standing.DERIVED_HERE, _EXPANSION,
                f"the component k of the spike is this times {power}",
            )
        )  # fmt: skip
    return found


def _sizes(step: GiantStep) -> list[Statement]:
    order = step.order or 0
    power = _power(order)
    signal = f"{f'{_power(order - 1)} ' if order > 1 else ''}|spike|²"
    along = "" if step.along == 0 else " + A²"
    return [
        Statement(
            "signal of a neuron, c", _shown(step.signal, signal),
            sp.latex(step.signal), Standing.DERIVED_HERE, _EXPANSION,
            signal + ("" if order == 1 else " in u = √d w, standard Gaussian for random neurons"),
        ),
        Statement(
            "noise of a neuron, V", _shown(step.noise, "E y² E σ'²"), sp.latex(step.noise),
            Standing.DERIVED_HERE, _AGAINST_NOISE, "mean square of the noise is V d/n",
        ),
        Statement(
            "best alignment", _shown(step.mean_alignment, f"c/(c{along} + V {power}/n)"),
            sp.latex(step.mean_alignment), Standing.DERIVED_HERE, _AGAINST_NOISE,
            f"share c/(c{along} + V {power}/n) of the spike in the squared step, which is its "
            "squared cosine to the spike, for η → ∞, from means over neurons" + _along_remark(step),
        ),
        Statement(
            "squared norm", _shown(step.squared_norm, "|w + s G|² + s² V d/n"),
            sp.latex(step.squared_norm), Standing.DERIVED_HERE, _AGAINST_NOISE,
            "mean of |w|² after the step, s = η a/p",
        ),
    ]  # fmt: skip


def _rank_one(step: GiantStep) -> list[Statement]:
    overlap, growth = step.label_overlap, step.bulk_growth
    assert overlap is not None and growth is not None
    bulk = (1 + STEP * step.along) ** 2 + STEP**2 * growth
    return [
        Statement(
            "overlap of X^T y", _shown(overlap, "|C_1|²/(|C_1|² + (d/n) E y²)"),
            sp.latex(overlap), Standing.DERIVED_HERE, "E|X^T v/n|² = |E v x|² + (d/n) E v²",
            "squared cosine with C_1",
        ),
        Statement(
            "bulk variance", _shown(bulk, "(1 + s A)² + s² (d/n) E y² Var σ'"), sp.latex(bulk),
            Standing.DERIVED_HERE,
            "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445, section 3, for E y = 0",
            "rank one: all the rest of the step lies along X^T y, for all neurons",
        ),
    ]  # fmt: skip


def _why_not_proven(step: GiantStep) -> str:
    """In what a step is not that of the theorems; empty if it is."""
    if step.along_exceeds:
        return "a constant share of what is orthogonal to the old w; see the best alignment"
    if step.order != step.leap_index:
        return "the source has the leap index, which this student does not see"
    if step.biases:
        return "the source has no biases"
    if step.order != 1 and not step.is_separable:
        return "the source has sums of functions of orthonormal directions"
    return ""


def _along_remark(step: GiantStep) -> str:
    along = [term for term in step.expansion.terms if term.direction is Direction.ALONG]
    if not along:
        return ""
    text = f"; A is the part along w, {readable(', '.join(term.name for term in along))}"
    if step.along_exceeds:
        text += ", longer than the spike: the share goes to 0, the cosine to that of w itself"
    if any(term.k == 0 for term in along):
        text += "; the mean of the target is in it: take it off the labels"
    return text


def headline(step: GiantStep) -> str:
    """Return student, target and orders in a line."""
    order = "none" if step.order is None else str(step.order)
    noise = "" if step.noise_variance == 0 else f", label noise {step.noise_variance}"
    return (
        f"one giant step: student {step.student}, target {step.target}{noise}; "
        f"leap index {step.leap_index}, order seen {order}"
    )


def page(step: GiantStep) -> Iterable[Block]:
    """Return the statements as a table with their remarks below."""
    yield _wrapped(headline(step))
    if step.obstruction:
        yield _wrapped(_advice(step))
    rows = statements(step)
    if not rows:
        return
    yield Table(
        [(row.subject, row.text, row.standing.value) for row in rows],
        ("what", "is", "rests on", "source"),
        beside=[(row.source,) for row in rows],
    )
    yield from (_wrapped(f"{row.subject}: {row.remark}") for row in rows if row.remark)
    sources = dict.fromkeys(row.source for row in rows if row.standing is Standing.THEOREM)
    yield from (_wrapped(f"theorem: {source}") for source in sources)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _TEXT_WIDTH, subsequent_indent="  ", break_long_words=False)


def _advice(step: GiantStep) -> str:
    if step.biases:
        return step.obstruction
    return f"{step.obstruction}; random biases take the obstruction away, if σ is no polynomial"


def as_latex(step: GiantStep) -> str:
    """Return the statements as an array in LaTeX, without delimiters."""
    lines = [
        rf"\text{{{_escaped(row.subject)}}} & {row.latex} & \text{{{row.standing.value}}}"
        for row in statements(step)
    ] or [rf"\text{{{_escaped(step.obstruction)}}}"]
    return r"\begin{array}{lll}" + r" \\ ".join(lines) + r"\end{array}"


def as_dict(step: GiantStep) -> dict[str, Any]:
    """Return plain values: texts, numbers, lists and dictionaries."""
    from .one_step import student_text

    return {
        "target": expression_text(step.target.expr),
        "variables": [x.name for x in step.target.variables],
        "student": student_text(step),
        "biases": step.biases,
        "noise_variance": expression_text(step.noise_variance),
        "leap_index": step.leap_index,
        "order": step.order,
        "learned": step.learned.to_dict(),
        "basis": step.basis,
        "unseen": list(step.unseen),
        "statements": [asdict(row) | {"standing": row.standing.value} for row in statements(step)],
    }


def _shown(formula: sp.Expr | sp.MatrixBase, letters: str) -> str:
    """Return a formula as text, or the letters that stand for it if it is long."""
    if isinstance(formula, sp.MatrixBase):
        text = ", ".join(map(str, formula))
        text = f"({text})" if len(formula) > 1 else text
    else:
        text = str(formula)
    return readable(text) if len(text) <= _MOST_CHARACTERS else letters


def _letters(order: int) -> str:
    factorial = f"/{order - 1}!" if order > 2 else ""
    return f"mu_{order}{factorial} {_contraction(order)}"


def _contraction(order: int) -> str:
    slots = {1: "", 2: "[w, .]"}.get(order, f"[w^{order - 1}, .]")
    return f"C_{order}{slots}"


def _power(exponent: int | sp.Rational) -> str:
    return readable(str(DIMENSION**exponent))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\backslash ").replace("_", r"\_").replace("^", r"\hat{}")
