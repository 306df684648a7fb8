"""The saddle-point system of a convex readout: equations, first values, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from ....symbolic.saddle_point import SaddlePointSystem, complement
from .. import physics
from ..physics import IDENTIFIERS, Q1, average
from .energy import ConvexFreeEnergy

NAME = "convex_readout"


def convex_system(
    energy: ConvexFreeEnergy, metrics: Mapping[str, sp.Expr] | None = None
) -> SaddlePointSystem:
    """Return the saddle-point system of a convex readout.

    Parameters
    ----------
    energy : ConvexFreeEnergy
    metrics : mapping from str to Expr, optional
        Functions of y and x; ``test_NAME`` and ``training_NAME`` become outputs.
    """
    found, letters = energy.free_energy, energy.base.letters
    equations = energy.equations
    used = {x for e in equations for x in e.residual.free_symbols}
    named = (*found.parameters, *(e.unknown for e in equations))
    start = _start() if letters is None else letters.without_data
    return SaddlePointSystem(
        name=NAME,
        equations=equations,
        parameters=found.parameters,
        outputs=outputs(energy, dict(metrics or {})),
        definitions=found.definitions,
        node=physics.kappa,
        identifiers={x: IDENTIFIERS.get(x, x.name) for x in named},
        start={x: value for x, value in start.items() if x in used},
        source=found.source,
        title=f"Saddle point of the {energy.loss.name} loss on spiked random features"
        + (f" with {len(letters.v2)} letters" if letters else "")
        + f", labels {energy.labels.channel}",
        derived={physics.rho: complement(physics.gamma)}
        if letters and physics.rho in found.parameters
        else {},
        easier=physics.ridge if letters else None,
    )


def _start() -> dict[sp.Symbol, sp.Expr]:
    """First values of one kind of rows: responses as for the square loss, a weak readout."""
    half = sp.Rational(1, 2)
    return {
        physics.V1: physics.c / (physics.ridge + physics.alpha / 5),
        physics.V2: 1 / (physics.ridge + physics.alpha / 20),
        physics.m: half,
        physics.theta: sp.S.Zero,
        physics.psi: half / 2,
        Q1: half / 2,
        physics.q2: half / 2,
    }


def outputs(energy: ConvexFreeEnergy, metrics: Mapping[str, sp.Expr]) -> dict[str, sp.Expr]:
    """Return errors, losses and metrics, the test error first."""
    averages, base = energy.averages, energy.base
    training_loss = energy.training_loss()
    found = {
        "test_error": average(averages.of_error()) if energy.is_classification else base.test_error,
        "training_loss": training_loss,
        "test_loss": average(averages.of_loss()),
        "objective": training_loss + physics.penalty(energy.penalty()),
        **base.overlaps,
    }
    for name, metric in metrics.items():
        found[f"test_{name}"] = average(averages.of_metric(metric, training=False))
        found[f"training_{name}"] = average(averages.of_metric(metric, training=True))
    return {name: value.xreplace(energy.orthogonal) for name, value in found.items()}
