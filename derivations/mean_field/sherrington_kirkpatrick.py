r"""The Sherrington–Kirkpatrick model in the replica-symmetric approximation.

Ising spins with couplings of variance 1/N and mean zero in a field h at inverse temperature β
(Sherrington and Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975)). The overlap satisfies

.. math:: q = \mathbb E_z \tanh^2\!\big(\beta\sqrt q\,z + \beta h\big) ,

and the free energy per spin is :math:`f = -\beta(1-q)^2/4 - \beta^{-1}\,\mathbb E\log 2\cosh(\beta
\sqrt q z + \beta h)`. Replica symmetry is stable where :math:`\lambda_\text{AT} = 1 - \beta^2\,
\mathbb E\operatorname{sech}^4 > 0` (de Almeida and Thouless, J. Phys. A 11, 983 (1978)).

The unknown is :math:`r = \sqrt q`, with the equation :math:`r = (\mathbb E\tanh^2(\beta r z + \beta
h))^{1/2}`. Without a field and for β ≤ 1 the solution is q = 0: a boundary at which the equation
for q is of no use to Newton's method in log q, whereas in r it is regular (slope 1 − β), so one
kernel serves both phases, and h = 0 is a value like any other. At β = 1, h = 0 the root is
threefold: r comes out small but not zero.
"""

from __future__ import annotations

import sympy as sp

from ...symbolic.expressions.functions import softplus
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.systems.saddle_point import SaddlePointSystem

beta = sp.Symbol("beta", positive=True)
h = sp.Symbol("h", real=True)
r = sp.Symbol("r", real=True)
z = sp.Symbol("z", real=True)

SOURCE = "Sherrington, Kirkpatrick, Phys. Rev. Lett. 35, 1792 (1975); de Almeida, Thouless (1978)"


def sherrington_kirkpatrick() -> SaddlePointSystem:
    r"""Return the replica-symmetric Sherrington–Kirkpatrick model as a saddle-point system.

    Returns
    -------
    SaddlePointSystem
        Parameters β and h; unknown `sqrt_q`; outputs `q`, `magnetisation`, `free_energy`,
        `entropy` per spin and `stability` :math:`\lambda_\text{AT}`, negative where replica
        symmetry is broken.

    Notes
    -----
    The entropy is :math:`s = \beta(u - f)` with :math:`u = \partial_\beta(\beta f)
    = -\beta(1 - q^2)/2 - hm`; it tends to −1/(2π) as β → ∞ at h = 0, which is why replica symmetry
    cannot hold there.

    Examples
    --------
    >>> print(sherrington_kirkpatrick().structure)
    1 block: 1 unknown Newton {r}
    """
    field = beta * (r * z + h)
    q = r**2
    magnetisation = GaussianExpectation(sp.tanh(field), z)
    # E log 2cosh(u) = E softplus(2u) − E u.
    log_cosh = GaussianExpectation(softplus(2 * field), z) - beta * h
    return SaddlePointSystem.from_fixed_point(
        {r: sp.sqrt(GaussianExpectation(sp.tanh(field) ** 2, z))},
        name="sherrington_kirkpatrick",
        parameters=(beta, h),
        outputs={
            "q": q,
            "magnetisation": magnetisation,
            "free_energy": -beta * (1 - q) ** 2 / 4 - log_cosh / beta,
            "entropy": log_cosh
            + beta**2 * ((1 - q) ** 2 / 4 - (1 - q**2) / 2)
            - beta * h * magnetisation,
            "stability": 1 - beta**2 * GaussianExpectation(sp.sech(field) ** 4, z),
        },
        node=z,
        identifiers={beta: "beta", h: "h", r: "sqrt_q"},
        # The ordered solution, where there is one, attracts from above.
        start={r: sp.S.One},
        source=SOURCE,
        title="Sherrington-Kirkpatrick model, replica-symmetric",
    )
