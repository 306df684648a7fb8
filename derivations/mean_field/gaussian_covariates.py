r"""Ridge regression in the Gaussian covariate model.

Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mézard and Zdeborová, arXiv 2102.08127: teacher and
student see different features u ∈ ℝᵖ and v ∈ ℝᵈ of a sample, jointly Gaussian with covariances
Ψ = E uuᵀ, Φ = E uvᵀ and Ω = E vvᵀ. The label is :math:`y = \theta\cdot u/\sqrt p + \sqrt\Delta\,
\varepsilon`, and the estimator minimises :math:`\sum (y - w\cdot v/\sqrt d)^2 + \lambda|w|^2` over
n = αd samples.

For ridge regression, three things about the covariances matter: the power of the label
:math:`\rho = \theta^\top\Psi\theta/p`, the eigenvalues :math:`\omega_i` of Ω, and how the vector
:math:`\Phi^\top\theta/\sqrt p`, the covariance of label and student features, lies in the
eigenvectors :math:`e_i` of Ω: :math:`t_i = d\,(e_i\cdot\Phi^\top\theta)^2/p`. With
:math:`\langle\cdot\rangle` the mean over i the free energy is

.. math::
    f = \frac\alpha2\,\frac{\rho + \Delta - 2m + q}{1 + V} + \frac{V\hat q - q\hat V}{2} + m\hat m
      - \frac12\Big\langle\frac{\hat q\,\omega + \hat m^2\,t}{\lambda + \hat V\omega}\Big\rangle .

Compared with the paper, :math:`\hat m` here is theirs divided by :math:`\sqrt{p/d}`, and t takes
the place of the matrix :math:`\Phi^\top\theta\theta^\top\Phi`. The joint law of (ω, t) is given as
data, one row for each eigenvalue. :math:`\Omega = 1` and t = ρ is :mod:`.ridge_regression`.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.expressions.averages import DataAverage
from ...symbolic.systems.equations import FreeEnergy
from ...symbolic.systems.saddle_point import SaddlePointSystem
from .ridge_regression import (
    IDENTIFIERS,
    V,
    V_hat,
    alpha,
    m,
    m_hat,
    noise,
    q,
    q_hat,
    residual_variance,
    ridge,
    signal,
)

SPECTRUM = "spectrum"
omega, t, theta_squared = sp.symbols("omega t theta_squared", nonnegative=True)
SOURCE = (
    "Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mezard, Zdeborova, arXiv 2102.08127 (square loss)"
)


def gaussian_covariates(*, matched: bool = False) -> SaddlePointSystem:
    r"""Return ridge regression in the Gaussian covariate model as a saddle-point system.

    Parameters
    ----------
    matched : bool
        Teacher and student see the same features, Φ = Ψ = Ω. Then the data `spectrum` has the
        columns `omega`, the eigenvalues, and `theta_squared`, the squares of the components of
        the teacher in the eigenvectors, and :math:`\rho = \langle\omega\,\theta^2\rangle` is
        no parameter.

    Returns
    -------
    SaddlePointSystem
        Parameters α = n/d, λ, ρ and Δ; data `spectrum` with the columns `omega` and `t`; outputs
        `test_error` (mean squared error against the noise-free label) and `training_error`.

    Notes
    -----
    ρ cannot be smaller than :math:`\langle t/\omega\rangle`, the part of the label that is linear
    in the student's features; what exceeds it acts as noise.

    Examples
    --------
    >>> print(gaussian_covariates().structure)
    3 blocks: 1 unknown Newton {V}, then Vhat; explicit: mhat, m; 1 unknown linear {q}, then qhat
    """
    columns = (omega, theta_squared) if matched else (omega, t)
    alignment = omega**2 * theta_squared if matched else t
    spectral = DataAverage(
        (q_hat * omega + m_hat**2 * alignment) / (ridge + V_hat * omega), columns, SPECTRUM
    )
    power = DataAverage(omega * theta_squared, columns, SPECTRUM) if matched else signal
    residual = residual_variance().xreplace({signal: power})
    free_energy = FreeEnergy(
        expression=alpha * residual / (1 + V) / 2
        + (V * q_hat - q * V_hat) / 2
        + m * m_hat
        - spectral / 2,
        order_parameters=(V, m, q),
        conjugates=(V_hat, m_hat, q_hat),
        parameters=(alpha, ridge, noise) if matched else (alpha, ridge, signal, noise),
        source=SOURCE,
    )
    return SaddlePointSystem.from_free_energy(
        free_energy,
        name="gaussian_covariates",
        outputs={
            "test_error": residual - noise,
            "training_error": residual / (1 + V) ** 2,
        },
        identifiers={x: name for x, name in IDENTIFIERS.items() if not (matched and x == signal)},
        title="Ridge regression in the Gaussian covariate model",
    )
