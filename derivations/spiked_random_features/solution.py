"""One solved saddle point: its errors, its order parameters, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import __version__
from ...numeric.networks.layer import FeatureClass
from ...pages import Block, Table
from ...result import Number, Result, Row, Scalar, quantity
from ...runtime.precision import local_context
from ..certificates.certificate import Certificate
from ..curves import Names
from ..kernels.precise import promise
from ..teachers import MOST_DIRECTIONS
from .arguments import DIRECT, STEP, STRETCH

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures

ORDER_PARAMETERS = ("V1", "V2", "m", "theta", "psi", "q1", "q2")
CONJUGATES = ("V1_hat", "V2_hat", "theta_hat", "psi_hat", "q1_hat", "q2_hat")

_ACROSS = tuple(str(k) for k in range(2, MOST_DIRECTIONS + 2))
_OVERLAPS = tuple(f"psi{k}" for k in _ACROSS)
_THEIR_CONJUGATES = tuple(f"psi{k}_hat" for k in _ACROSS)

_GROUPS = ("order_parameters", "conjugates", "metrics")
SYMBOLS = {
    "V1": "V_1", "V2": "V_2", "m": "m", "theta": r"\vartheta", "psi": r"\psi", "q1": "q_1",
    "q2": "q_2", "V1_hat": r"\hat{V}_1", "V2_hat": r"\hat{V}_2",
    "theta_hat": r"\hat{\vartheta}", "psi_hat": r"\hat{\psi}", "q1_hat": r"\hat{q}_1",
    "q2_hat": r"\hat{q}_2",
    **{f"psi{k}": rf"\psi_{k}" for k in _ACROSS},
    **{f"psi{k}_hat": rf"\hat{{\psi}}_{k}" for k in _ACROSS},
}  # fmt: skip
"""Of order parameters and conjugates, in LaTeX."""


@dataclass(frozen=True, repr=False)
class Solution(Result):
    r"""The saddle point at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error : float or mpmath number
        Mean squared error on fresh inputs against the noise-free target. Of readouts of labels ±1:
        probability that the sign of the prediction is not a fresh label.
    training_error : float, mpmath number or None
        Of the square loss: mean squared error on the training set against the noisy labels.
    training_loss, test_loss : float, mpmath number or None
        Of readouts with a loss: its mean on the training set and on a fresh sample.
    objective : float, mpmath number or None
        Of readouts with a loss:
        :math:`\frac1n\min_w[\sum_\mu\ell + \frac\lambda2|w|^2]`.
    metrics : mapping
        ``test_NAME`` and ``training_NAME`` of the metrics of a readout.
    regularised_training_error : float, mpmath number or None
        Of letters: the minimum of the training objective for each sample,
        (1/n)(sum of squares + λ\|w\|²).
    order_parameters, conjugates : mapping
        V1, V2, m, theta, psi, q1, q2 and their conjugates; those that the model does not have
        (m of an odd student without a spike) are zero. Of a teacher of several directions also
        psi2, … along its directions across the spike, if labels have linear parts in them. Of K
        letters arrays, without conjugates: V1 and q1 of shape (K, K), V2, q2 and m (K,), theta
        (k, K) and psi (r, K), for bulk rows of unit length: c_a is part of what multiplies them;
        of letters with another loss numbers with indices, ``V1_12``.
        psi is along the orthonormalised parts of the r directions of the teacher outside the
        spikes, in their order (zero where nothing is left), as in simulations.
    alpha, ridge : float
        Where it was solved.
    residual : float
        Largest relative residual of the equations; of many letters the relative size of the last
        Newton step.
    iterations : int
        Newton iterations.
    quadrature_error : float
        Estimated error of `test_error` (quadrature and rounding).
    nodes : int
        Quadrature nodes.
    digits : int or None
        Digits asked for; None for a float solution.
    errors : mapping
        With digits or another loss: estimated absolute error of every value; of the square loss the
        sum of its `budget`.
    budget : mapping
        With digits: the parts "quadrature" (difference of two rules), "truncation" (ends of the
        line), "root" (last residual of Newton's method) and "rounding" of the error of every value.
    certificate : Certificate or None
        Proven intervals, where a proof was asked for; all numbers are their midpoints then, and
        `errors` are bounds.
    classes : tuple of FeatureClass
        The letters in the order of the arrays; none for a model of one kind of rows.
    width : int or None
        Of letters: number of neurons for which the errors hold to first order; None: the strict
        limit.
    strict_limit : Solution or None
        Of letters: the limit of infinite width beside a value at finite width; None where this is
        the limit, or where there is none.
    flatness : float or None
        Of letters: smallest curvature of the training objective in the overlaps m and theta
        relative to the largest; where it is tiny, the letters do nearly the same and m is large or
        undetermined.
    """

    _document = "saddle point of spiked random features"
    _formerly = ("saddle point of letters", "saddle point of a convex readout")
    _column = 15
    _where = ("alpha", "ridge", "width")

    test_error: Scalar = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    training_error: Scalar | None = field(
        default=None, kw_only=True,
        metadata=quantity("training error", r"\varepsilon_\mathrm{train}"),
    )  # fmt: skip
    training_loss: Number | None = field(
        default=None, kw_only=True, metadata=quantity("training loss", r"\ell_\mathrm{train}")
    )
    test_loss: Number | None = field(
        default=None, kw_only=True, metadata=quantity("test loss", r"\ell_\mathrm{test}")
    )
    objective: Number | None = field(
        default=None, kw_only=True, metadata=quantity("objective", r"\mathcal{L}")
    )
    metrics: Mapping[str, Number] = field(
        default_factory=dict, kw_only=True, metadata=quantity("metrics")
    )
    regularised_training_error: Number | None = field(
        default=None, kw_only=True,
        metadata=quantity("regularised training error", r"\mathcal{L}"),
    )  # fmt: skip
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
    classes: tuple[FeatureClass, ...] = ()
    width: int | None = None
    strict_limit: Solution | None = None
    flatness: float | None = None

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(values, Mapping) and "test_error" in values.get("errors", {}):
            # Readouts of a loss said so alone.
            values = {"quadrature_error": values["errors"]["test_error"], **values}
        if not isinstance(values, Mapping) or not values.get("classes"):
            return super()._read(values)
        nothing: dict[str, Any] = {"order_parameters": {}, "classes": ()}
        given = {k: nothing.get(k, value) for k, value in values.items()}
        found = super()._read({"conjugates": {}, **given})
        number: Any = float
        if found.get("digits") is not None:
            number = local_context(found["digits"]).mpf
        found["order_parameters"] = {
            name: _array(value, number) for name, value in values["order_parameters"].items()
        }
        found["classes"] = tuple(FeatureClass(**one) for one in values["classes"])
        return found

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        where = f"{self.holds_at}; " if self.classes else ""
        if self.certificate is not None:
            return where + self.certificate.rests_on
        if self.digits is not None:
            return where + promise(self.digits, self.errors, self.estimated())
        return (
            f"{where}float with error estimate {self.quadrature_error:.1e}, residual "
            f"{self.residual:.1e}"
        )

    @property
    def holds_at(self) -> str:
        """Whether this is the strict limit or a value at finite width."""
        return holds_at(self.width, len(self.classes))

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1_hat.
        for group in _GROUPS:
            values = self.__dict__.get(group, {})
            if name in values:
                return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def entries(self) -> list[Row]:
        """Return what the fields hold, number by number; arrays of letters are on the page."""
        return [row for row in super().entries() if not isinstance(row.value, np.ndarray)]

    def page(self) -> Iterable[Block]:
        """Return the numbers; of letters the errors, and each letter with its overlaps."""
        if not self.classes:
            yield from super().page()
            return
        rows = [(row.words, row.text) for row in self.entries()[:2]]
        if self.strict_limit is not None:
            rows.append(("test error, strict limit", f"{self.strict_limit.test_error:.12g}"))
        yield Table(rows)
        letters = [
            (
                f"{c.fraction:.6g}", ", ".join(f"{r:.6g}" for r in c.strengths),
                f"{c.bulk_variance:.6g}", f"{c.bias:.6g}", self.text(m, significant=8),
                self.text(q2, significant=8),
            )
            for c, m, q2 in zip(self.classes, self.m, self.q2, strict=True)
        ]  # fmt: skip
        yield Table(letters, ("fraction", "r", "c", "bias", "m", "q2"))
        yield self.rests_on


def _array(value: Any, number: Any) -> Any:
    """Return nested lists as an array of floats, or of numbers of mpmath."""
    found = np.array(value, dtype=object)
    return np.vectorize(number, otypes=[float if number is float else object])(found)


def holds_at(width: int | None, letters: int) -> str:
    """Return in words where a solution holds: in the strict limit, or at a width."""
    if width is not None:
        return f"width {width}, with the ridge cost of the overlaps m"
    if letters == 1:
        return "strict limit of infinite width"
    return (
        "strict limit of infinite width, where large overlaps m of nearly collinear letters cost "
        "nothing; give width= for a network"
    )


def solution_from(
    outputs: Mapping[str, Any], *, alpha: float, ridge: float, residual: float, iterations: int,
    quadrature_error: float, nodes: int, digits: int | None = None,
    errors: Mapping[str, Any] | None = None,
    budget: Mapping[str, Mapping[str, Any]] | None = None,
    certificate: Certificate | None = None, width: int | None = None,
    order_parameters: Iterable[str] = ORDER_PARAMETERS, conjugates: Iterable[str] = CONJUGATES,
    metrics: Iterable[str] = (),
) -> Solution:  # fmt: skip
    """Sort the outputs of a kernel into a :class:`Solution`; unknowns it has not are zero."""
    zero = 0.0 if digits is None else 0 * outputs["test_error"]
    return Solution(
        test_error=outputs["test_error"],
        training_error=outputs.get("training_error"),
        training_loss=outputs.get("training_loss"),
        test_loss=outputs.get("test_loss"),
        objective=outputs.get("objective"),
        metrics={name: outputs[name] for name in metrics},
        order_parameters={
            name: outputs.get(name, zero)
            for name in (*order_parameters, *across_names(outputs, _OVERLAPS))
        },
        conjugates={
            name: outputs.get(name, zero)
            for name in (*conjugates, *across_names(outputs, _THEIR_CONJUGATES))
        },
        width=width,
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


# ------------------------------------------------------------------ results

_MEANING = {
    "test_error": "mean squared error against the noise-free target",
    "training_error": "mean squared error on the training set against the noisy labels",
    "quadrature_error": "estimated numerical error of the test error",
    "residual": "largest relative residual of the saddle-point equations",
    "iterations": "Newton iterations",
    "alpha": "sample complexity n/d",
}


def across_names(outputs: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return which overlaps with directions of the teacher across the spike outputs have."""
    there = set(outputs)
    return tuple(name for name in names if name in there)


def curve_names(outputs: Iterable[str]) -> Names:
    """Return what a curve of a model has whose kernel has these outputs."""
    others = across_names(outputs, (*_OVERLAPS, *_THEIR_CONJUGATES))
    return replace(CURVE, outputs=(*CURVE.outputs, *others))


def model_attributes(model: SpikedRandomFeatures, ridge: float) -> dict[str, Any]:
    """Return what identifies a result: the model, its spike, versions; all plain values."""
    spike = model.spike
    # Kept only where it changes the numbers: readers of a dataset go by it.
    left_out: dict[str, Any] = {}
    if model._case["correlated_norms"] and spike.norm_overlap:
        left_out["norm_overlap"] = spike.norm_overlap
    if model._case["stretched"]:
        left_out |= {name: getattr(spike, name) for name in STRETCH}
    if left_out:
        left_out["leading_order"] = model.leading_order
    return {
        "model": model.to_json(),
        "student": model.derivation.student,
        "teacher": model.derivation.teacher,
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "ridge": ridge,
        "spike_strength": spike.spike_strength,
        "bulk_variance": spike.bulk_variance,
        "alignment": spike.alignment,
        **left_out,
        **({} if model.width is None else {"width": model.width}),
        "bulk_spread": model.bulk_spread,
        "leap_index": model.leap_index,
        "best_linear_error": model.best_linear_error,
        "structure": model.structure,
        "giantstep_version": __version__,
    }


CURVE = Names(
    outputs=("test_error", "training_error", *ORDER_PARAMETERS, *CONJUGATES),
    errors=("quadrature_error",),
    shown=("test_error", "training_error"),
    drawn=("test_error",),
    meanings=_MEANING,
)
"""What a curve of a model has."""


def curve_attributes(model: SpikedRandomFeatures, varied: set[str]) -> dict[str, Any]:
    """Return what identifies a curve, without what changes along it."""
    found = model_attributes(model, math.nan)
    left_out = {"ridge", *varied}
    if {*STEP, *DIRECT, "noise_variance"} & varied:
        left_out |= {*DIRECT, *STRETCH, "norm_overlap", "bulk_spread"}
    return {name: value for name, value in found.items() if name not in left_out}


def with_complete(model: SpikedRandomFeatures, curve: xr.Dataset) -> xr.Dataset:
    """Return a curve with ``test_error_complete``, where the complete leading order differs."""
    corrected = model.complete()
    if corrected is None:
        return curve
    batch = corrected.solve_many(alpha=curve["alpha"].to_numpy(), ridge=[curve.attrs["ridge"]])
    return curve.assign(test_error_complete=("alpha", batch.values["test_error"]))
