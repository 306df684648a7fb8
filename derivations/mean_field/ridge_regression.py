r"""Ridge regression on isotropic Gaussian data, stated by its free energy.

Inputs x of n = αd samples are standard normal in d dimensions, labels
:math:`y = \theta\cdot x/\sqrt d + \sqrt\Delta\,\varepsilon` with :math:`|\theta|^2/d = \rho`, and
the estimator minimises :math:`\sum (y - w\cdot x/\sqrt d)^2 + \lambda |w|^2`. With the overlaps
:math:`q = |w|^2/d`, :math:`m = w\cdot\theta/d`, the response V and their conjugates, the free
energy (half the regularised loss per dimension at its saddle point) is

.. math::
    f = \frac\alpha2\,\frac{\rho + \Delta - 2m + q}{1 + V} + \frac{V\hat q - q\hat V}{2} + m\hat m
        - \frac{\hat q + \rho\,\hat m^2}{2(\lambda + \hat V)} .

It is the isotropic case of Loureiro et al., arXiv 2102.08127 (square loss), in the normalisation
above. The solution is known in closed form: V is the Stieltjes transform of the Marchenko–Pastur
law, V = E 1/(λ + αX) with X of aspect ratio 1/α (there, eigenvalues of XᵀX/n), as in Dobriban
and Wager, arXiv 1507.03003, and Hastie et al., arXiv 1903.08560.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.systems.equations import FreeEnergy
from ...symbolic.systems.random_matrix import Resolvent
from ...symbolic.systems.saddle_point import SaddlePointSystem

alpha, ridge = sp.symbols("alpha lambda", positive=True)
signal, noise = sp.Symbol("rho", positive=True), sp.Symbol("Delta", nonnegative=True)
V, q, m = sp.symbols("V q m", positive=True)
V_hat, q_hat, m_hat = sp.symbols("Vhat qhat mhat", positive=True)

SOURCE = (
    "Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mezard, Zdeborova, arXiv 2102.08127 "
    "(square loss, isotropic Gaussian inputs)"
)
IDENTIFIERS = {
    alpha: "alpha", ridge: "ridge", signal: "signal_power", noise: "noise_variance",
    V: "V", q: "q", m: "m", V_hat: "V_hat", q_hat: "q_hat", m_hat: "m_hat",
}  # fmt: skip


def residual_variance() -> sp.Expr:
    """Return the mean squared error on a fresh noisy label, ρ + Δ − 2m + q."""
    return signal + noise - 2 * m + q


def ridge_regression() -> SaddlePointSystem:
    """Return ridge regression on isotropic Gaussian data as a saddle-point system.

    Returns
    -------
    SaddlePointSystem
        Parameters α = n/d, λ, ρ and Δ; outputs `test_error` (mean squared error against the
        noise-free target) and `training_error` (against the noisy labels).

    Examples
    --------
    >>> print(ridge_regression().structure)
    3 blocks: 1 unknown Newton {V}, then Vhat; explicit: mhat, m; 1 unknown linear {q}, then qhat
    """
    spectral = (q_hat + signal * m_hat**2) / (ridge + V_hat)
    free_energy = FreeEnergy(
        expression=alpha * residual_variance() / (1 + V) / 2
        + (V * q_hat - q * V_hat) / 2
        + m * m_hat
        - spectral / 2,
        order_parameters=(V, m, q),
        conjugates=(V_hat, m_hat, q_hat),
        parameters=(alpha, ridge, signal, noise),
        source=SOURCE,
    )
    return SaddlePointSystem.from_free_energy(
        free_energy,
        name="ridge_regression",
        outputs={
            "test_error": signal - 2 * m + q,
            "training_error": residual_variance() / (1 + V) ** 2,
        },
        identifiers=IDENTIFIERS,
        title="Ridge regression on isotropic Gaussian data",
    )


def closed_form() -> dict[str, sp.Expr]:
    r"""Return V, test and training error as functions of α, λ, ρ and Δ.

    Notes
    -----
    Derived here: the two equations of V and its conjugate say
    :math:`V(\lambda + \alpha/(1+V)) = 1`, solved by the resolvent at a = λ, b = α and aspect
    ratio 1/α. With :math:`a = \alpha V^2/(1+V)^2 < 1` the linear equations give

    .. math:: E = \frac{\rho\lambda^2V^2 + a\Delta}{1 - a} , \qquad
        E_\text{training} = \frac{E + \Delta}{(1 + V)^2} .

    The optimal penalty is λ = Δ/ρ, where the estimator is the posterior mean, and E = ΔV there.
    """
    response = Resolvent(ridge, alpha, 1 / alpha).rewrite(sp.Piecewise)
    gain = alpha * response**2 / (1 + response) ** 2
    # 1 − a without a difference of nearly equal numbers, by the equation of V.
    remainder = (1 + ridge * response**2) / (1 + response)
    test_error = (signal * ridge**2 * response**2 + gain * noise) / remainder
    return {
        "V": response,
        "test_error": test_error,
        "training_error": (test_error + noise) / (1 + response) ** 2,
    }
