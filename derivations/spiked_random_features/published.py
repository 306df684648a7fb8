"""Result 3.3 as the paper prints it, to compare with; nothing is computed from it.

The equations that the toolkit solves come from the free energy (:mod:`.free_energy`) by
differentiation. Here they stand once more, in the paper's form, for the checks that both agree.

Source: Cui et al., arXiv 2402.04980, Results 3.2 and 3.3; conjugates carry the prefactor α/β.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.random_matrix import MarchenkoPasturAverage
from . import free_energy as fe


def conditionals() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """Return V(κ), C(κ) and err(κ)."""
    variance = fe.mu1**2 * fe.V1 + fe.mu2_squared * fe.V2
    mean = fe.mu0 * fe.m + fe.mu1 * fe.kappa * fe.theta
    error = fe.T2 - 2 * fe.T0 * mean - 2 * fe.mu1 * fe.psi * fe.T1 + mean**2
    error += fe.mu1**2 * fe.q1 + fe.mu2_squared * fe.q2
    return variance, mean, error


def right_hand_sides() -> dict[sp.Symbol, sp.Expr]:
    """Return the right-hand side of each of the 13 equations; for m, what has to vanish."""
    variance, mean, error = conditionals()
    ratio = fe.alpha / fe.beta
    shrink = 1 / (1 + variance)
    D = fe.c * fe.eigenvalue
    S = fe.ridge + fe.V2_hat + fe.V1_hat * D

    def spectral(weight: sp.Expr) -> sp.Expr:
        return MarchenkoPasturAverage(weight, fe.eigenvalue, fe.beta)

    # F is independent of D with mean c, H has the conditional mean D.
    source = fe.q1_hat * D + fe.q2_hat
    source += fe.beta * fe.theta_hat**2 * fe.c + fe.beta * fe.psi_hat**2 * D
    return {
        fe.V1: spectral(D / S),
        fe.V2: spectral(1 / S),
        fe.m: fe.average(fe.mu0 * (fe.T0 - mean) * shrink),
        fe.theta: fe.beta * fe.theta_hat * fe.c * spectral(1 / S),
        fe.psi: fe.beta * fe.psi_hat * spectral(D / S),
        fe.q1: spectral(D * source / S**2),
        fe.q2: spectral(source / S**2),
        fe.V1_hat: ratio * fe.average(fe.mu1**2 * shrink),
        fe.V2_hat: ratio * fe.average(fe.mu2_squared * shrink),
        fe.theta_hat: ratio * fe.average(fe.kappa * fe.mu1 * (fe.T0 - mean) * shrink),
        fe.psi_hat: ratio * fe.average(fe.mu1 * fe.T1 * shrink),
        fe.q1_hat: ratio * fe.average(fe.mu1**2 * error * shrink**2),
        fe.q2_hat: ratio * fe.average(fe.mu2_squared * error * shrink**2),
    }
