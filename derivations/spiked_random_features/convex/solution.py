"""One solved saddle point of a convex readout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mpmath

from ....result import Number, Result, quantity
from ...kernels.precise import promise
from ..solution import CONJUGATES, ORDER_PARAMETERS, SYMBOLS
from ..vocabulary.kernel import letter_places


@dataclass(frozen=True, repr=False)
class ConvexSolution(Result):
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
        V1, V2, m, theta, psi, q1, q2 and their conjugates, zero where a model has none; those of
        letters with their indices, ``V1_12``, and without conjugates.
    alpha, ridge : float
    residual : float
        Largest relative residual of the equations.
    iterations, nodes : int
    errors : mapping
        Estimated errors (quadrature and rounding) of all results.
    digits : int or None
    """

    _document = "saddle point of a convex readout"
    _where = ("alpha", "ridge")

    test_error: Number = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    training_loss: Number = field(metadata=quantity("training loss", r"\ell_\mathrm{train}"))
    test_loss: Number = field(metadata=quantity("test loss", r"\ell_\mathrm{test}"))
    objective: Number = field(metadata=quantity("objective", r"\mathcal{L}"))
    metrics: Mapping[str, Number] = field(metadata=quantity("metrics"))
    order_parameters: Mapping[str, Number] = field(
        metadata=quantity("order parameters", symbols=SYMBOLS)
    )
    conjugates: Mapping[str, Number] = field(metadata=quantity("conjugates", symbols=SYMBOLS))
    alpha: float
    ridge: float
    residual: float
    iterations: int
    nodes: int
    errors: Mapping[str, Number]
    digits: int | None = None

    @property
    def quadrature_error(self) -> float:
        """Estimated error of the test error."""
        return self.errors["test_error"]

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            return promise(self.digits, self.errors, self.estimated())
        return (
            f"float with error estimate {self.quadrature_error:.1e}, residual {self.residual:.1e}"
        )

    def __getattr__(self, name: str) -> Any:
        for group in ("order_parameters", "conjugates", "metrics"):
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
    letters: int | None = None,
) -> ConvexSolution:
    """Return the solution with these values, order parameters it has not being zero."""
    zero = 0.0
    if digits is not None:
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
        order_parameters={name: values.get(name, zero) for name in _overlaps(letters)},
        conjugates={} if letters else {name: values.get(name, zero) for name in CONJUGATES},
        alpha=alpha,
        ridge=ridge,
        residual=residual,
        iterations=iterations,
        nodes=nodes,
        errors=errors,
        digits=digits,
    )


def _overlaps(letters: int | None) -> tuple[str, ...]:
    """Return the names of order parameters, those of letters with indices."""
    if letters is None:
        return ORDER_PARAMETERS
    return tuple(
        unknown for name in ORDER_PARAMETERS for unknown, _ in letter_places(name, letters)
    )
