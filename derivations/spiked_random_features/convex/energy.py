r"""The free energy of a convex loss on spiked random features, and the equations that follow.

Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Appendix C. The readout
minimises :math:`\sum_\mu \ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + \frac\lambda2|w|^2`. Its free
energy is that of the square loss with the term :math:`\frac12\langle\mathrm{err}/(1+V)\rangle`
replaced by the average :math:`\langle\mathbb{E}\,M(y, \omega; V)\rangle` of the Moreau envelope of
the loss; nothing else changes.

The unknown :math:`Q_1 = q_1 - \psi^2` stands for :math:`q_1`: it is the squared norm of a part of
:math:`B^\top w`, so it is positive, and the variance of ω that is left when the label is known,
:math:`v = \mu_1^2 Q_1 + \mu_2^2 q_2`, is no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from ....symbolic.expressions.activations import Activation
from ....symbolic.expressions.averages import DataAverage
from ....symbolic.expressions.regularity import Parity
from ....symbolic.systems.equations import (
    Equation,
    FreeEnergy,
    determined,
    saddle_point_equations,
    stationarity,
)
from ....symbolic.systems.saddle_point import SaddlePointSystem, complement
from .. import physics
from ..bulk_law import IID
from ..physics import (
    IDENTIFIERS,
    Q1,
    Prediction,
    SpikedFreeEnergy,
    average,
    beta,
    letters_free_energy,
    m,
    psi,
    q1,
    spiked_free_energy,
)
from .averages import LabelAverages
from .labels import Labels
from .losses import ConvexLoss

SOURCE = "Cui et al., arXiv 2402.04980, Appendix C"


@dataclass(frozen=True)
class ConvexFreeEnergy:
    """The free energy of one loss and label channel.

    Attributes
    ----------
    loss : ConvexLoss
    labels : Labels
    free_energy : FreeEnergy
        Its loss term holds :class:`.smoothing.LabelledEnvelope`.
    averages : LabelAverages
        What these nodes are.
    base : SpikedFreeEnergy
        That of the features, with what it says about their predictions.
    """

    loss: ConvexLoss
    labels: Labels
    free_energy: FreeEnergy
    averages: LabelAverages
    base: SpikedFreeEnergy

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """The saddle-point equations, with all averages written out."""
        if not self.free_energy.conjugates:
            conditions = stationarity(self.free_energy)
            return tuple(Equation(x, None, self.written_out(e)) for x, e in conditions.items())
        return tuple(self._written_out(e) for e in self._abstract_equations())

    def written_out(self, expr: sp.Expr) -> sp.Expr:
        """Return an expression in the unknowns of the equations, as averages of known functions."""
        return self.averages.written_out(expr).xreplace(self.orthogonal)

    @property
    def orthogonal(self) -> dict[sp.Expr, sp.Expr]:
        """q_1 in the unknown that stands for it; letters have Q_1 from the beginning."""
        return {q1: Q1 + psi**2} if self.base.letters is None else {}

    def _abstract_equations(self) -> list[Equation]:
        found = []
        for e in saddle_point_equations(self.free_energy):
            if e.unknown == q1:
                # ψ² by its own equation, so that both sides are functions of conjugates.
                parallel = physics.psi_hat * beta * self._bulk_trace()
                value = e.value - parallel**2
                found.append(Equation(Q1, value, Q1 - value))
            elif e.unknown == m:
                # Nothing is solved for m by a division; the slope is measured by its terms.
                found.append(Equation(m, None, self.free_energy.expression.diff(m)))
            else:
                found.append(e)
        return found

    def _bulk_trace(self) -> sp.Expr:
        """Return E[D/S], the coefficient of the conjugate in the equation for ψ."""
        return -self.free_energy.expression.diff(physics.psi_hat, 2) / beta

    def _written_out(self, e: Equation) -> Equation:
        if e.value is None:
            return Equation(e.unknown, None, self.written_out(e.residual))
        value = self.written_out(e.value)
        return Equation(e.unknown, value, e.unknown - value)

    @property
    def is_classification(self) -> bool:
        """Whether labels are ±1 and errors are wrong signs."""
        return self.labels.is_binary or self.loss.needs_binary_labels

    # ------------------------------------------------------------------ outputs

    def penalty(self) -> sp.Expr:
        r"""Return half of the squared norm of the readout, as its penalty measures it, over p.

        Where that penalty is a law's, :math:`w^\top P w`, it is the derivative of the free energy
        by λ, which is where the penalty stands.
        """
        energy = self.free_energy.expression
        return energy.diff(physics.ridge) if energy.has(DataAverage) else self.base.norm / 2


def convex_free_energy(
    loss: ConvexLoss,
    labels: Labels,
    student: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    finite_width: bool = False,
    letters: int | None = None,
    bulk: str = IID,
    correlated_norms: bool = False,
    stretched: bool = False,
) -> ConvexFreeEnergy:
    r"""Return the free energy of a convex loss.

    Parameters
    ----------
    loss : ConvexLoss
    labels : Labels
    student : Activation
    unspiked, aligned, finite_width : bool
        As for :func:`.physics.spiked_free_energy`.
    letters : int, optional
        Number of kinds of rows of :func:`.physics.letters_free_energy`, which have a width always;
        by default one, as the paper prints it.
    bulk : str
        As for the function of :mod:`.physics` that has so many letters.
    correlated_norms, stretched : bool
        As for :func:`.physics.letters_free_energy`.

    Raises
    ------
    UnsupportedExpressionError
        If the averages of the loss over these labels take more than three integrals.
    """

    def averages_of(prediction: Prediction) -> LabelAverages:
        return LabelAverages(loss, labels, aligned, prediction, odd=student.parity is Parity.ODD)

    def loss_term(prediction: Prediction) -> sp.Expr:
        return averages_of(prediction).node()

    if letters is None:
        base = spiked_free_energy(
            student, labels.teacher, unspiked=unspiked, aligned=aligned, finite_width=finite_width,
            bulk=bulk, loss_term=loss_term,
        )  # fmt: skip
    else:
        base = letters_free_energy(
            student, labels.teacher, letters, bulk, aligned=aligned,
            correlated_norms=correlated_norms, stretched=stretched, loss_term=loss_term,
        )  # fmt: skip
    averages, given = averages_of(base.prediction), base.free_energy
    # Without noise Δ is no parameter, and the square of a label is that of the target.
    silent = {} if labels.has_noise else {physics.noise: sp.S.Zero}
    absent = {physics.rho} if aligned else set()
    absent |= set() if labels.has_noise else {physics.noise}
    binary = labels.is_binary or loss.needs_binary_labels
    unused = {physics.T0, physics.T1, physics.T2} if binary else set()
    energy = replace(
        given,
        parameters=(*(p for p in given.parameters if p not in absent), *loss.parameters),
        definitions={
            **{f: v.xreplace(silent) for f, v in given.definitions.items() if f not in unused},
            **averages.definitions,
        },
        source=SOURCE,
    )
    energy = determined(energy)
    base = replace(base, test_error=base.test_error.xreplace(silent))
    return ConvexFreeEnergy(loss, labels, energy, averages, base)


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
    training_loss = average(averages.of_loss(training=True))
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
