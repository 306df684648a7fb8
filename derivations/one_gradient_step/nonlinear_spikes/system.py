"""The risk at a finite width as a system of equations: kernels, digits, certificates follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from ....symbolic.systems.equations import Equation
from ....symbolic.systems.saddle_point import SaddlePointSystem
from ..risk import (
    STEP,
    Readout,
    covariance,
    in_symbols,
    nu,
    ridge_readout,
    risk_system,
)
from ..symbols import IDENTIFIERS, label_square, noise
from . import physics


def readout_moment(order: int) -> sp.Symbol:
    r"""Return a moment of the step's readout :math:`\sqrt N a` that is not a normal one's."""
    return sp.Symbol(f"m_{order}", real=True)


def width_system(degrees: Sequence[int], *, normal: bool = True) -> SaddlePointSystem:
    r"""Return the risk of a ridge readout after a step at width N, for spikes of given degrees.

    To the equation of the effective ridge come the linear equations of Woodbury's identity, one
    for each spike and one for the direction of the step in the initial features.

    Parameters
    ----------
    degrees : sequence of int
        Those of which the student has a Hermite coefficient, increasing; 1 among them.
    normal : bool
        Whether the readout of the step is normal; else its moments are parameters, and there are
        no strengths and limits of single degrees.

    Notes
    -----
    Outputs are those of :func:`..one_gradient_step.risk.risk_system`, whose
    ``…_trained`` is the linear theory, and

    ``risk``, ``training_error``
        At the width.
    ``risk_leading``
        For N → ∞ at the strengths of the degrees.
    ``rung_l``
        Risk inside of the window in which the degrees up to l are free, for N → ∞.
    ``strength_k``, ``left_k``, ``energy_k``
        Of each degree k ≥ 2: :math:`a_k^2`, Λ and the energy of the labels that it shows.
    ``small``, ``spike_length``, ``alignment``
        :math:`\theta^2/N`, θ and γ.
    ``shrinkage``, ``aligned``, ``isotropic``, ``outside``, ``…_slope``
        q, resolvents of the bulk and the labels' part across the step with their derivatives in ν:
        what the operator form needs.
    """
    base, at, readout = risk_system(), covariance(nu), ridge_readout()
    bulk = physics.Bulk.of(at)
    spikes = bulk.spikes(
        physics.power_gram(degrees) if normal else physics.power_gram(degrees, readout_moment),
        physics.power_overlaps(degrees),
        physics.power_labels(degrees),
        sp.diag,
    )
    v = sp.Matrix([sp.Symbol(f"v_{name}", real=True) for name in ("w", *degrees)])
    outside, outside_slope = physics.outside_direction(bulk)
    errors = physics.ErrorsOfSpikes.of(
        readout,
        nu,
        label_square(),
        noise,
        outside + spikes.explained(v),
        outside_slope + spikes.derivative(v),
    )
    result = {"risk": errors.risk, "training_error": errors.training_error}
    if normal:
        result |= _one_by_one(degrees, readout, bulk)
    result |= {
        "small": physics.spike_length() ** 2 / physics.width,
        "spike_length": physics.spike_length(),
        "alignment": physics.alignment(),
        "shrinkage": readout.shrinkage,
        "aligned": bulk.aligned,
        "isotropic": bulk.isotropic,
        "aligned_slope": bulk.aligned_slope,
        "isotropic_slope": bulk.isotropic_slope,
        "outside": outside,
        "outside_slope": outside_slope,
    }
    conditions = {f"v{i}": value for i, value in enumerate(spikes.conditions(v))}
    coefficients = {
        symbol: name
        for kind, name_of in (
            (physics.student_coefficient, "student"), (physics.teacher_coefficient, "teacher"),
        )
        for k in range(max(degrees) + 1)
        if (symbol := kind(k)) not in IDENTIFIERS and (name := f"{name_of}_{k}")
    }  # fmt: skip
    coefficients |= {readout_moment(k): f"readout_moment_{k}" for k in range(2 * max(degrees) + 1)}
    used = sp.Tuple(*result.values(), *conditions.values()).free_symbols
    parameters = {physics.width: "width", **{s: n for s, n in coefficients.items() if s in used}}
    written = in_symbols({**result, **conditions}, at)
    return replace(
        base,
        name=f"{'' if normal else 'letters_'}nonlinear_spikes_{'_'.join(map(str, degrees))}",
        title="Ridge readout after one gradient step at a finite width",
        source=physics.SOURCE,
        equations=(
            *base.equations,
            *(Equation(x, w, x - w) for i, x in enumerate(v) for w in [written[f"v{i}"]]),
        ),
        parameters=(*base.parameters, *parameters),
        outputs={**{name: written[name] for name in result}, **base.outputs},
        identifiers={
            **base.identifiers,
            **parameters,
            **{x: f"solved_{name}" for x, name in zip(v, ("w", *degrees), strict=True)},
        },
    )


def _one_by_one(degrees: Sequence[int], readout: Readout, bulk: physics.Bulk) -> dict[str, sp.Expr]:
    """Return strengths, shares and the limits of large widths."""
    higher = [k for k in degrees if k > 1]
    share = physics.remaining_fraction(bulk, nu)
    energies = {k: physics.shown_energy(k, degrees) for k in degrees if k > 0}
    left = {k: share.subs(physics.strength, physics.spike_strength(k, degrees)) for k in higher}
    leading = physics.leading_bias(readout, STEP, [(energies[k], left[k]) for k in higher])
    result = {"risk_leading": physics.risk_of(leading, readout)}
    shown: list[sp.Expr] = []
    for k, energy in energies.items():
        shown.append(energy)
        result[f"rung_{k}"] = physics.risk_of(physics.rung_bias(readout, shown), readout)
    for k in higher:
        result |= {
            f"strength_{k}": physics.spike_strength(k, degrees),
            f"left_{k}": left[k],
            f"energy_{k}": energies[k],
        }
    return result
