"""One solved saddle point of a convex readout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....digits import held_digits
from ..solution import CONJUGATES, ORDER_PARAMETERS


@dataclass(frozen=True)
class ConvexSolution:
    """The saddle point of a convex readout at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error : float or mpmath number
        Regression: mean squared error on fresh inputs against the noise-free target. Labels ±1:
        probability that the sign of the prediction is not a fresh label.
    training_loss, test_loss : float or mpmath number
        Mean loss on the training set and on a fresh sample.
    objective : float or mpmath number
        :math:`\\frac1n\\min_w[\\sum_\\mu\\ell + \\frac\\lambda2|w|^2]`.
    metrics : mapping
        ``test_NAME`` and ``training_NAME`` of the metrics of the readout.
    order_parameters, conjugates : mapping
        V1, V2, m, theta, psi, q1, q2 and their conjugates, zero where a model has none.
    alpha, ridge : float
    residual : float
        Largest relative residual of the equations.
    iterations, nodes : int
    errors : mapping
        Estimated errors (quadrature and rounding) of all results.
    digits : int or None
    """

    test_error: Any
    training_loss: Any
    test_loss: Any
    objective: Any
    metrics: Mapping[str, Any]
    order_parameters: Mapping[str, Any]
    conjugates: Mapping[str, Any]
    alpha: float
    ridge: float
    residual: float
    iterations: int
    nodes: int
    errors: Mapping[str, Any] = field(repr=False)
    digits: int | None = None

    @property
    def quadrature_error(self) -> float:
        """Estimated error of the test error."""
        return self.errors["test_error"]

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            from ...kernels.precise import promise

            return promise(self.digits, self.errors, self._values())
        return (
            f"float with error estimate {self.quadrature_error:.1e}, residual {self.residual:.1e}"
        )

    def __getattr__(self, name: str) -> Any:
        for group in ("order_parameters", "conjugates", "metrics"):
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _rows(self) -> list[tuple[str, str]]:
        values = {
            "test error": self.test_error,
            "training loss": self.training_loss,
            "test loss": self.test_loss,
            "objective": self.objective,
            **self.metrics,
            **self.order_parameters,
            **self.conjugates,
        }

        def shown(name: str, value: Any) -> str:
            if self.digits is None or isinstance(value, float):
                return f"{value:.12g}"
            return held_digits(value, self.digits, self.errors.get(name.replace(" ", "_")))

        return [(name, shown(name, value)) for name, value in values.items()]

    def _values(self) -> dict[str, Any]:
        """Return all values by the names that `errors` has."""
        found = {
            "test_error": self.test_error,
            "training_loss": self.training_loss,
            "test_loss": self.test_loss,
            "objective": self.objective,
            **self.metrics,
            **self.order_parameters,
            **self.conjugates,
        }
        return {name: found[name] for name in self.errors if name in found}

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self._rows())
        return "\n".join(
            [*(f"{name:<{width}} {value}" for name, value in self._rows()), self.rests_on]
        )

    def __repr__(self) -> str:
        rows = dict(self._rows())
        return (
            f"ConvexSolution(alpha={self.alpha:g}, ridge={self.ridge:g}, "
            f"test_error={rows['test error']}, training_loss={rows['training loss']})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self._rows())
        return f"<table>{rows}<caption>{self.rests_on}</caption></table>"


def solution_from(
    values: Mapping[str, Any],
    errors: Mapping[str, Any],
    metrics: tuple[str, ...],
    *,
    alpha: float,
    ridge: float,
    residual: float,
    iterations: int,
    nodes: int,
    digits: int | None = None,
) -> ConvexSolution:
    """Return the solution with these values, order parameters it has not being zero."""
    zero = 0.0
    if digits is not None:
        import mpmath

        # Numbers of mpmath's own context can be pickled; their digits stay.
        values, errors = (
            {name: mpmath.mp.make_mpf(x._mpf_) for name, x in given.items()}
            for given in (values, errors)
        )
    return ConvexSolution(
        test_error=values["test_error"],
        training_loss=values["training_loss"],
        test_loss=values["test_loss"],
        objective=values["objective"],
        metrics={name: values[name] for name in metrics},
        order_parameters={name: values.get(name, zero) for name in ORDER_PARAMETERS},
        conjugates={name: values.get(name, zero) for name in CONJUGATES},
        alpha=alpha,
        ridge=ridge,
        residual=residual,
        iterations=iterations,
        nodes=nodes,
        errors=errors,
        digits=digits,
    )
