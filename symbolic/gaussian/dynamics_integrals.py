r"""The Gaussian averages in the learning dynamics of two-layer networks.

For jointly Gaussian local fields x of zero mean and an activation g, online gradient descent closes
on the averages (Saad and Solla, Phys. Rev. E 52 (1995) 4225, with g(x) = erf(x/√2); Goldt, Advani,
Saxe, Krzakala and Zdeborová, arXiv 1906.08632)

.. math::

   I_2 = \mathbb{E}[g(x_i) g(x_j)], \quad
   I_3 = \mathbb{E}[g'(x_i)\, x_j\, g(x_n)], \quad
   I_4 = \mathbb{E}[g'(x_i) g'(x_j) g(x_n) g(x_m)],

here together with :math:`J_2 = \mathbb{E}[g'(x_i) g'(x_j)]`, the derivative of I2 by the
covariance.
Nothing is typed in: for error functions g' is the exponential of a square, which changes the
measure, and the arcsine law does the rest; polynomials follow by Wick's theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp

from ...errors import AssumptionError, ClosedFormNotFoundError
from ..expressions.activations import Activation, activation
from .expectation import GaussianExpectation, GaussianVector, JointExpectation, expect_joint


def two_point_integral(g: str | sp.Expr | Activation, covariance: Any) -> sp.Expr:
    r"""Return :math:`I_2 = \mathbb{E}[g(x_1) g(x_2)]`.

    `g`: the activation, as :func:`.activations.activation` takes it. `covariance`: of (x_1, x_2),
    shape (2, 2), entries symbolic; the mean is 0. Variances that are symbols have to be declared
    positive. The result: closed form. Raises ClosedFormNotFoundError if no rule applies.

    Examples
    --------
    >>> q, t = sp.symbols("Q T", positive=True)
    >>> r = sp.Symbol("R", real=True)
    >>> x = sp.Symbol("x", real=True)
    >>> two_point_integral(sp.erf(x / sp.sqrt(2)), [[q, r], [r, t]])
    2*asin(R/(sqrt(Q + 1)*sqrt(T + 1)))/pi
    """
    return _integral(g, covariance, "I2", lambda g, _, x: g(x[0]) * g(x[1]), 2)


def two_point_derivative_integral(g: str | sp.Expr | Activation, covariance: Any) -> sp.Expr:
    r"""Return :math:`J_2 = \mathbb{E}[g'(x_1) g'(x_2)]`; parameters as for I2.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> two_point_derivative_integral(x**3, [[2, 1], [1, 1]])
    36
    """
    return _integral(g, covariance, "J2", lambda _, slope, x: slope(x[0]) * slope(x[1]), 2)


def three_point_integral(g: str | sp.Expr | Activation, covariance: Any) -> sp.Expr:
    r"""Return :math:`I_3 = \mathbb{E}[g'(x_1)\, x_2\, g(x_3)]`, covariance of shape (3, 3).

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> three_point_integral(sp.erf(x / sp.sqrt(2)), sp.eye(3) + sp.ones(3))
    sqrt(2)/(3*pi)
    """
    return _integral(g, covariance, "I3", lambda g, slope, x: slope(x[0]) * x[1] * g(x[2]), 3)


def four_point_integral(g: str | sp.Expr | Activation, covariance: Any) -> sp.Expr:
    r"""Return :math:`I_4 = \mathbb{E}[g'(x_1) g'(x_2) g(x_3) g(x_4)]`, covariance of shape (4, 4).

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> four_point_integral(x**2, sp.eye(4) + sp.ones(4))
    88
    """

    def integrand(g: Activation, slope: Activation, x: Sequence[sp.Symbol]) -> sp.Expr:
        return slope(x[0]) * slope(x[1]) * g(x[2]) * g(x[3])

    return _integral(g, covariance, "I4", integrand, 4)


def _integral(
    g: str | sp.Expr | Activation,
    covariance: Any,
    name: str,
    integrand: Callable[[Activation, Activation, Sequence[sp.Symbol]], sp.Expr],
    count: int,
) -> sp.Expr:
    """Return the average of a function of the activation, its slope and so many fields."""
    fields = sp.symbols(f"x1:{count + 1}", cls=sp.Dummy, real=True)
    g, law = activation(g, argument="g"), GaussianVector(fields, covariance=covariance)
    if name != "I2" and g.jumps:
        raise AssumptionError(f"the activation {g.name!r} jumps: its derivative is no function")
    slope = g if name == "I2" else Activation(f"d/dz {g.name}", g.derivative)
    result = expect_joint(integrand(g, slope, fields), law)
    if result.has(JointExpectation, GaussianExpectation):
        raise ClosedFormNotFoundError(
            f"no rule gives {name} in closed form for this activation: closed forms exist for "
            "polynomials and error functions\n"
            "  expect_joint gives the unevaluated expectation, which has digits for two fields"
        )
    return result
