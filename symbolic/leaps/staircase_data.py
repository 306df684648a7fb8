"""Staircases as plain data for JSON, and back; numbers are exact texts (:mod:`.number_data`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...errors import ExpressionError
from ..activations import Activation, activation
from ..expression_text import expression_text
from ..parser import parse_expression
from ..standing import Standing
from ..targets import Target
from ..targets import target as read_target
from .activation_mask import DegreeMask, activation_mask
from .number_data import read_open_number, read_subspace
from .readout_clusters import ReadoutClusters

if TYPE_CHECKING:
    from .staircase import Staircase, StaircaseStep


def staircase_to_dict(found: Staircase) -> dict[str, Any]:
    """Return plain data for JSON: numbers are exact texts."""
    f, mask, clusters = found.target, found.mask, found.clusters
    student = mask.activation
    return {
        "target": {
            "name": f.name,
            # In parts: texts that are read have a limited length.
            "summands": [expression_text(part) for part in sp.Add.make_args(f.expr)],
            "variables": [x.name for x in f.variables],
        },
        "order": found.order,
        "variant": found.variant.value,
        "student": None
        if student is None
        else {
            "name": student.name,
            "expression": expression_text(student.expr),
            "biases": mask.biases,
        },
        "relevant_subspace": found.relevant_subspace.to_dict(),
        "steps": [_step_to_dict(step) for step in found.steps],
        "has_ended": found.has_ended,
        "saturates": found.saturates,
        "stuck_order": found.stuck_order,
        "student_order": found.student_order,
        "basis": found.basis,
        "clusters": None if clusters is None else clusters.to_dict(),
    }


def _step_to_dict(step: StaircaseStep) -> dict[str, Any]:
    return {
        "number": step.number,
        "before": step.before.to_dict(),
        "after": step.after.to_dict(),
        "directions": [
            {
                "vector": [expression_text(entry) for entry in direction.row.vector],
                "order": direction.row.order,
                "inside": list(direction.row.inside),
                "outside": list(direction.row.outside),
                "sources": [list(alpha) for alpha in direction.row.sources],
                "term": direction.term,
            }
            for direction in step.directions
        ],
        "explanations": list(step.explanations),
        "standing": step.standing.value,
        "remark": step.remark,
        "decided": step.decided,
        "basis": step.basis,
    }


def staircase_from_dict(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a staircase, its steps as plain dictionaries.

    Raises
    ------
    ExpressionError
        If the content is not what `staircase_to_dict` writes.
    """
    try:
        clusters = content["clusters"]
        return {
            "target": _target(content["target"]),
            "order": int(content["order"]),
            "variant": str(content["variant"]),
            "mask": _mask(content["student"]),
            "relevant_subspace": read_subspace(content["relevant_subspace"]),
            "steps": [_step(step) for step in content["steps"]],
            "has_ended": bool(content["has_ended"]),
            "stuck_order": _count(content["stuck_order"]),
            "student_order": _count(content["student_order"]),
            "basis": str(content["basis"]),
            "clusters": None if clusters is None else ReadoutClusters.from_dict(clusters),
        }
    except (LookupError, TypeError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(
            "the content is not that of a staircase as to_dict writes it"
        ) from None


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _target(content: Mapping[str, Any]) -> Target:
    variables = [sp.Symbol(str(name), real=True) for name in content["variables"]]
    parts = [parse_expression(text, variables, argument="target") for text in content["summands"]]
    return replace(read_target(sp.Add(*parts), variables), name=str(content["name"]))


def _mask(content: Mapping[str, Any] | None) -> DegreeMask:
    if content is None:
        return DegreeMask()
    read = activation(str(content["expression"]), argument="student")
    return activation_mask(Activation(str(content["name"]), read.expr), bool(content["biases"]))


def _step(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": int(content["number"]),
        "before": read_subspace(content["before"]),
        "after": read_subspace(content["after"]),
        "directions": [
            (
                {
                    "vector": tuple(map(read_open_number, entry["vector"])),
                    "order": int(entry["order"]),
                    "inside": tuple(map(int, entry["inside"])),
                    "outside": tuple(map(int, entry["outside"])),
                    "sources": tuple(tuple(map(int, alpha)) for alpha in entry["sources"]),
                },
                str(entry["term"]),
            )
            for entry in content["directions"]
        ],
        "standing": Standing(content["standing"]),
        "remark": str(content["remark"]),
        "decided": bool(content["decided"]),
        "basis": str(content["basis"]),
    }
