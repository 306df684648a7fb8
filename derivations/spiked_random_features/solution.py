"""One solved saddle point: its errors, its order parameters, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...digits import held_digits
from ...numeric.packed_numbers import SentWithDigits

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate

ORDER_PARAMETERS = ("V1", "V2", "m", "theta", "psi", "q1", "q2")
CONJUGATES = ("V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")

_NUMBERS = ("test_error", "training_error")
_GROUPS = ("order_parameters", "conjugates")
_LABELS = {"test_error": "test error", "training_error": "training error"}


@dataclass(frozen=True)
class Solution(SentWithDigits):
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

    test_error: Any
    training_error: Any
    order_parameters: Mapping[str, Any]
    conjugates: Mapping[str, Any]
    alpha: float
    ridge: float
    residual: float
    iterations: int
    quadrature_error: float
    nodes: int
    digits: int | None = None
    errors: Mapping[str, Any] = field(default_factory=dict, repr=False)
    budget: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.certificate is not None:
            return self.certificate.rests_on
        if self.digits is not None:
            from ..kernels.precise import promise

            return promise(self.digits, self.errors, self._values())
        return (
            f"float with error estimate {self.quadrature_error:.1e}, residual {self.residual:.1e}"
        )

    def _values(self) -> dict[str, Any]:
        """Return all values by the names that `errors` has."""
        found = {name: getattr(self, name) for name in _NUMBERS}
        found |= {**self.order_parameters, **self.conjugates}
        return {name: found[name] for name in self.errors if name in found}

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1_hat.
        for group in _GROUPS:
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        names = (*_NUMBERS, *self.order_parameters, *self.conjugates)
        lines = [f"{_LABELS.get(name, name):<14} {self._shown(name)}" for name in names]
        return "\n".join([*lines, self.rests_on])

    def __repr__(self) -> str:
        return (
            f"Solution(alpha={self.alpha:g}, ridge={self.ridge:g}, "
            f"test_error={self._shown('test_error')}, "
            f"training_error={self._shown('training_error')})"
        )

    def _repr_html_(self) -> str:
        names = (*_NUMBERS, *self.order_parameters, *self.conjugates)
        rows = "".join(
            f"<tr><th>{_LABELS.get(name, name)}</th><td>{self._shown(name)}</td></tr>"
            for name in names
        )
        return f"<table>{rows}</table><p>{self.rests_on}</p>"

    def _shown(self, name: str) -> str:
        value = getattr(self, name)
        if self.digits is None:
            return f"{float(value):.12g}"
        return held_digits(value, self.digits, self.errors.get(name))


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
