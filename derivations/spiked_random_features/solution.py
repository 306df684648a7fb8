"""One solved saddle point: its errors, its order parameters, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ORDER_PARAMETERS = ("V1", "V2", "m", "theta", "psi", "q1", "q2")
CONJUGATES = ("V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")

_NUMBERS = ("test_error", "training_error")
_GROUPS = ("order_parameters", "conjugates")


@dataclass(frozen=True)
class Solution:
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

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            return f"{self.digits} digits by two agreeing quadrature rules (estimated)"
        return (
            f"float with error estimate {self.quadrature_error:.1e}, residual {self.residual:.1e}"
        )

    def __getstate__(self) -> dict[str, Any]:
        # Numbers of a local mpmath context cannot be pickled; their digits can.
        state = dict(self.__dict__)
        if self.digits is not None:
            for name, value in state.items():
                if name in _NUMBERS:
                    state[name] = value._mpf_
                elif name in _GROUPS:
                    state[name] = {x: v._mpf_ for x, v in value.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["digits"] is not None:
            from ...numeric.precision import local_context

            make = local_context(state["digits"]).make_mpf
            for name in _NUMBERS:
                state[name] = make(state[name])
            for name in _GROUPS:
                state[name] = {x: make(v) for x, v in state[name].items()}
        self.__dict__.update(state)

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1_hat.
        for group in _GROUPS:
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        values = {**self.order_parameters, **self.conjugates}
        lines = [
            f"test error     {_show(self.test_error, self.digits)}",
            f"training error {_show(self.training_error, self.digits)}",
            *(f"{name:<14} {_show(value, self.digits)}" for name, value in values.items()),
            self.rests_on,
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Solution(alpha={self.alpha:g}, ridge={self.ridge:g}, "
            f"test_error={_show(self.test_error, self.digits)}, "
            f"training_error={_show(self.training_error, self.digits)})"
        )

    def _repr_html_(self) -> str:
        values = {
            "test error": self.test_error,
            "training error": self.training_error,
            **self.order_parameters,
            **self.conjugates,
        }
        rows = "".join(
            f"<tr><th>{name}</th><td>{_show(value, self.digits)}</td></tr>"
            for name, value in values.items()
        )
        return f"<table>{rows}</table><p>{self.rests_on}</p>"


def _show(value: Any, digits: int | None) -> str:
    if digits is None:
        return f"{float(value):.12g}"
    import mpmath

    return str(mpmath.nstr(value, digits, strip_zeros=False))


def solution_from(
    outputs: Mapping[str, Any], *, alpha: float, ridge: float, residual: float, iterations: int,
    quadrature_error: float, nodes: int, digits: int | None = None,
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
    )
