"""The saddle-point system of a convex readout: equations, first values, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from ....symbolic.saddle_point import SaddlePointSystem
from .. import free_energy as symbols
from ..free_energy import IDENTIFIERS, average
from .energy import Q1, ConvexFreeEnergy

# Names in code of what the square loss does not have.
NAMES = {**IDENTIFIERS, Q1: "q1_orthogonal"}
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
    found = energy.free_energy
    used = {x for e in energy.equations for x in e.residual.free_symbols}
    named = (*found.parameters, *(e.unknown for e in energy.equations))
    names = {x: NAMES.get(x, x.name) for x in named}
    return SaddlePointSystem(
        name=NAME,
        equations=energy.equations,
        parameters=found.parameters,
        outputs=outputs(energy, dict(metrics or {})),
        definitions=found.definitions,
        node=symbols.kappa,
        identifiers=names,
        start={x: value for x, value in _start().items() if x in used},
        source=found.source,
        title=f"Saddle point of the {energy.loss.name} loss on spiked random features, labels "
        f"{energy.labels.channel}",
    )


def _start() -> dict[sp.Symbol, sp.Expr]:
    """First values: responses as for the square loss, overlaps of a weak readout."""
    half = sp.Rational(1, 2)
    return {
        symbols.V1: symbols.c / (symbols.ridge + symbols.alpha / 5),
        symbols.V2: 1 / (symbols.ridge + symbols.alpha / 20),
        symbols.m: half,
        symbols.theta: sp.S.Zero,
        symbols.psi: half / 2,
        Q1: half / 2,
        symbols.q2: half / 2,
    }


def outputs(energy: ConvexFreeEnergy, metrics: Mapping[str, sp.Expr]) -> dict[str, sp.Expr]:
    """Return errors, losses and metrics, the test error first."""
    averages, q1 = energy.averages, Q1 + symbols.psi**2
    training_loss = energy.training_loss()
    found = {
        "test_error": average(averages.of_error())
        if energy.is_classification
        else energy.square_error,
        "training_loss": training_loss,
        "test_loss": average(averages.of_loss()),
        "objective": training_loss
        + symbols.ridge * symbols.beta / symbols.alpha * energy.penalty(),
        "q1": q1,
    }
    for name, metric in metrics.items():
        found[f"test_{name}"] = average(averages.of_metric(metric, training=False))
        found[f"training_{name}"] = average(averages.of_metric(metric, training=True))
    return {name: value.xreplace({symbols.q1: q1}) for name, value in found.items()}
