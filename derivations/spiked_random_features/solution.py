"""One solved saddle point: its errors, its order parameters, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...result import Number, Result, quantity
from ..certificates.certificate import Certificate

ORDER_PARAMETERS = ("V1", "V2", "m", "theta", "psi", "q1", "q2")
CONJUGATES = ("V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")

_GROUPS = ("order_parameters", "conjugates")
SYMBOLS = {
    "V1": "V_1", "V2": "V_2", "m": "m", "theta": r"\vartheta", "psi": r"\psi", "q1": "q_1",
    "q2": "q_2", "V1_hat": r"\hat{V}_1", "V2_hat": r"\hat{V}_2",
    "theta_hat": r"\hat{\vartheta}", "psi_hat": r"\hat{\psi}", "q1_hat": r"\hat{q}_1",
    "q2_hat": r"\hat{q}_2",
}  # fmt: skip
"""Of order parameters and conjugates, in LaTeX."""


@dataclass(frozen=True, repr=False)
class Solution(Result):
    """The saddle point at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error : float or mpmath number
        Mean squared error on fresh inputs against the noise-free target.
    training_error : float or mpmath number
        Mean squared error on the training set against the noisy labels.
    order_parameters, conjugates : mapping
        V1, V2, m, theta, psi, q1, q2 and their conjugates; those that the model does not have
        (m of an odd student without a spike) are zero.
    alpha, ridge : float
        Where it was solved.
    residual : float
        Largest relative residual of the equations.
    iterations : int
        Newton iterations.
    quadrature_error : float
        Estimated error of `test_error` (quadrature and rounding).
    nodes : int
        Quadrature nodes.
    digits : int or None
        Digits asked for; None for a float solution.
    errors : mapping
        With digits: estimated absolute error of every value, the sum of its `budget`.
    budget : mapping
        With digits: the parts "quadrature" (difference of two rules), "truncation" (ends of the
        line), "root" (last residual of Newton's method) and "rounding" of the error of every value.
    certificate : Certificate or None
        Proven intervals, where a proof was asked for; all numbers are their midpoints then, and
        `errors` are bounds.
    """

    _document = "saddle point of spiked random features"
    _column = 15
    _where = ("alpha", "ridge")

    test_error: Number = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    training_error: Number = field(
        metadata=quantity("training error", r"\varepsilon_\mathrm{train}")
    )
    order_parameters: Mapping[str, Number] = field(
        metadata=quantity("order parameters", symbols=SYMBOLS)
    )
    conjugates: Mapping[str, Number] = field(metadata=quantity("conjugates", symbols=SYMBOLS))
    alpha: float
    ridge: float
    residual: float
    iterations: int
    quadrature_error: float
    nodes: int
    digits: int | None = None
    errors: Mapping[str, Number] = field(default_factory=dict)
    budget: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    certificate: Certificate | None = None

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.certificate is not None:
            return self.certificate.rests_on
        if self.digits is not None:
            from ..kernels.precise import promise

            return promise(self.digits, self.errors, self.estimated())
        return (
            f"float with error estimate {self.quadrature_error:.1e}, residual {self.residual:.1e}"
        )

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1_hat.
        for group in _GROUPS:
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def solution_from(
    outputs: Mapping[str, Any], *, alpha: float, ridge: float, residual: float, iterations: int,
    quadrature_error: float, nodes: int, digits: int | None = None,
    errors: Mapping[str, Any] | None = None,
    budget: Mapping[str, Mapping[str, Any]] | None = None,
    certificate: Certificate | None = None,
) -> Solution:  # fmt: skip
    """Sort the outputs of a kernel into a :class:`Solution`."""
    zero = 0.0 if digits is None else 0 * outputs["test_error"]
    return Solution(
        test_error=outputs["test_error"],
        training_error=outputs["training_error"],
        order_parameters={name: outputs.get(name, zero) for name in ORDER_PARAMETERS},
        conjugates={name: outputs.get(name, zero) for name in CONJUGATES},
        alpha=alpha,
        ridge=ridge,
        residual=residual,
        iterations=iterations,
        quadrature_error=quadrature_error,
        nodes=nodes,
        digits=digits,
        errors=errors or {},
        budget=budget or {},
        certificate=certificate,
    )
