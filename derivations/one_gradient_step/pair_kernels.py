r"""Kernels of pairs of neurons, :math:`F(p, q, c) = \mathbb{E}[f(s)\,\sigma(t)]`, and their slopes.

s and t are Gaussian with variances p, q and covariance c. The gradient of F with respect to the
weights w of t, where :math:`q = |w|^2` and :math:`c = u\cdot w`, is
:math:`\partial_c F\,u + 2\,\partial_q F\,w`; by Price's theorem :math:`\partial_c F =
\mathbb{E}[f'(s)\,\sigma'(t)]` and :math:`2\,\partial_q F = \mathbb{E}[f(s)\,\sigma''(t)]`.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from ...errors import EmissionError
from ...symbolic.expressions.activations import Activation, activation, z as variable
from ...symbolic.gaussian.expectation import (
    GaussianExpectation,
    JointExpectation,
    correlated_pair,
    expect,
    expect_joint,
)
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.printing.compiled import Formula, function_source

p, q = sp.symbols("p q", positive=True)
"""Squared lengths of the weights."""

c = sp.Symbol("c", real=True)
"""Their inner product."""


def pair_kernel(f: Activation, sigma: Activation, centre: bool = False) -> sp.Expr | None:
    """Return F in closed form, or None if the rules give none; `centre` takes f minus its mean.

    Examples
    --------
    The arcsine law:

    >>> pair_kernel(activation("erf"), activation("erf"))
    2*asin(2*c/(sqrt(2*p + 1)*sqrt(2*q + 1)))/pi
    """
    u, v = sp.symbols("u v", cls=sp.Dummy, real=True)
    pair = correlated_pair(u, v, c / sp.sqrt(p * q))
    result = expect_joint(f(sp.sqrt(p) * u) * sigma(sp.sqrt(q) * v), pair)
    if centre:
        mean = hermite_coefficient(f, 0)
        if mean != 0:
            result -= mean * expect(sigma(sp.sqrt(q) * variable), variable)
    return None if result.has(JointExpectation, GaussianExpectation) else result


def gradient_coefficients(kernel: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return the coefficients of u and w in the gradient of F with respect to w."""
    return kernel.diff(c), 2 * kernel.diff(q)


def own_coefficient(sigma: Activation, centre: bool = False) -> sp.Expr | None:
    """Return the coefficient of w in half the gradient of K(w, w); None without a closed form."""
    root = sp.sqrt(q)
    result = expect(sigma(root * variable) ** 2, variable)
    if centre:
        mean = hermite_coefficient(sigma, 0)
        if mean != 0:
            # Only the factor that is the network's output is centred: E[(σ − μ_0) σ' x].
            result -= 2 * mean * expect(sigma(root * variable), variable)
    return None if result.has(GaussianExpectation) else result.diff(q)


def label_source(student: str, teacher: str, centre: bool) -> str | None:
    """Return source of the coefficients of ∇k for arrays, or None without a closed form."""
    kernel = pair_kernel(activation(teacher), activation(student), centre)
    return None if kernel is None else _source({"pair": _gradient(kernel)})


def output_source(student: str, centre: bool) -> str | None:
    """Return source of the coefficients of ∇K, of two neurons and of a neuron with itself."""
    sigma = activation(student)
    kernel, own = pair_kernel(sigma, sigma, centre), own_coefficient(sigma, centre)
    if kernel is None or own is None:
        return None
    return _source({"pair": _gradient(kernel), "own": Formula((q,), own, "that of w")})


def _gradient(kernel: sp.Expr) -> Formula:
    return Formula((p, q, c), gradient_coefficients(kernel), "coefficients of a gradient")


def _source(functions: Mapping[str, Formula]) -> str | None:
    try:
        return function_source(functions)
    except EmissionError:
        # A closed form in functions that arrays do not have, such as erfi.
        return None
