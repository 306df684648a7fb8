"""Convex readouts far from where they are easy: small penalties, large overlaps, alignment."""

from __future__ import annotations

import pytest
import sympy as sp

from giantstep.derivations.spiked_random_features import free_energy as symbols
from giantstep.derivations.spiked_random_features.convex.curvature import largest_curvature
from giantstep.derivations.spiked_random_features.convex.energy import convex_free_energy
from giantstep.derivations.spiked_random_features.convex.labels import label_channel
from giantstep.derivations.spiked_random_features.convex.losses import convex_loss
from giantstep.symbolic.activations import activation
from giantstep.symbolic.random_matrix import Resolvent


@pytest.mark.parametrize("finite_width", [False, True])
def test_for_the_square_loss_a_step_in_m_or_theta_ends_at_the_minimum(finite_width):
    energy = convex_free_energy(
        convex_loss("square"), label_channel("teacher", "sin", 0.1), activation("erf"),
        finite_width=finite_width,
    )  # fmt: skip
    values = {e.unknown: e.value for e in energy.equations}
    # Where a step ends does not depend on where it begins.
    along_m = values[symbols.m].diff(symbols.m)
    assert sp.simplify(along_m) == 0
    by_conjugate = values[symbols.theta].diff(symbols.theta_hat)
    along_theta = values[symbols.theta].diff(symbols.theta)
    along_theta += by_conjugate * values[symbols.theta_hat].diff(symbols.theta)
    # The resolvent is V_2, by its own equation.
    at_solution = sp.simplify(along_theta).replace(Resolvent, lambda *_: symbols.V2)
    assert sp.simplify(at_solution) == 0


@pytest.mark.parametrize(
    ("loss", "largest"),
    [
        ("square", 1), ("huber(0.3)", 1), ("logistic", sp.Rational(1, 4)), ("hinge", sp.oo),
        ("absolute", sp.oo), ("3*(x - y)**2 + abs(x - y)", sp.oo), ("relu(1 - y*x)**2/2", 1),
        ("log(cosh(x - y))", 1),
    ],
)  # fmt: skip
def test_the_curvature_of_a_loss_is_bounded(loss, largest):
    assert largest_curvature(convex_loss(loss)) == largest


def test_labels_jump_where_the_teacher_does():
    assert label_channel("teacher", "sin", 0.1).jumps == ()
    assert label_channel("teacher", "relu", 0.1).jumps == (0.0,)
    assert label_channel("teacher", "sign(z - 1) + tanh(z)", 0.0).jumps == (1.0,)
    assert label_channel("sign", "sin", 0.0).jumps == (0.0,)
    assert label_channel("logistic", "sin", 0.0).jumps == ()
