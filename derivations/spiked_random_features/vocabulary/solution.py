"""One solved saddle point of a vocabulary of letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .... import __version__
from ....numeric.networks.layer import FeatureClass
from ....numeric.saddle_point_solver import BatchSolution
from ....pages import Block, Table
from ....result import Number, Result, quantity
from ....runtime.precision import local_context
from ...curves import Names
from ...kernels.precise import promise

if TYPE_CHECKING:
    import xarray as xr

    from .model import VocabularyFeatures

Array = NDArray[np.float64]

MEANING = {
    "V1": "overlap of conditional fluctuations along the inputs",
    "V2": "conditional fluctuations of the rest",
    "q1": "overlap of readouts along the inputs",
    "q2": "squared norm of the readout",
    "m": "overlap of the readout with the mean direction",
    "theta": "overlap with the bulk rows along each spike",
    "psi": "overlap with the bulk rows along each direction of the teacher outside the spikes",
}


@dataclass(frozen=True, repr=False)
class VocabularySolution(Result):
    r"""The saddle point at one sample complexity and ridge penalty.

    Attributes
    ----------
    test_error, training_error : float or mpmath number
        Mean squared error against the noise-free target, and on the training set.
    regularised_training_error : float or mpmath number
        The minimum of the training objective for each sample, (1/n)(sum of squares + λ\|w\|²).
    order_parameters : mapping from str to array
        V1, q1 of shape (K, K), V2, q2, m of shape (K,), theta (k, K) and psi (r, K), for bulk rows
        of unit length: c_a is part of what multiplies them. psi is along the orthonormalised
        parts of the r directions of the teacher outside the spikes, in their order (zero where
        nothing is left), as in simulations.
    classes : tuple of FeatureClass
        The K letters in the order of the arrays.
    alpha, ridge : float
    width : int or None
        Number of neurons for which the errors hold to first order; None: the strict limit.
    strict_limit : VocabularySolution or None
        The limit of infinite width beside a value at finite width; None where this is the limit, or
        where there is none.
    quadrature_error : float
        Estimated error of `test_error`.
    residual : float
        Relative size of the last Newton step.
    iterations, nodes : int
    flatness : float
        Smallest curvature of the training objective in the overlaps m and theta relative to the
        largest; where it is tiny, the letters do nearly the same and m is large or undetermined.
    errors : mapping
        Estimated errors of the numbers, where digits were asked for.
    digits : int or None
        Digits asked for; None for floats.
    """

    _document = "saddle point of letters"
    _where = ("alpha", "ridge", "width")

    test_error: Number = field(metadata=quantity("test error", r"\varepsilon_\mathrm{test}"))
    training_error: Number = field(
        metadata=quantity("training error", r"\varepsilon_\mathrm{train}")
    )
    regularised_training_error: Number = field(
        metadata=quantity("regularised training error", r"\mathcal{L}")
    )
    order_parameters: Mapping[str, Any]
    classes: tuple[FeatureClass, ...]
    alpha: float
    ridge: float
    width: int | None
    strict_limit: VocabularySolution | None
    quadrature_error: float
    residual: float
    iterations: int
    nodes: int
    flatness: float
    errors: Mapping[str, Number] = field(default_factory=dict)
    digits: int | None = None

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            return super()._read(values)
        nothing: dict[str, Any] = {"order_parameters": {}, "classes": ()}
        found = super()._read({k: nothing.get(k, value) for k, value in values.items()})
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
        if self.digits is not None:
            return f"{self.holds_at}; {promise(self.digits, self.errors, self.estimated())}"
        return (
            f"{self.holds_at}; float with error estimate {self.quadrature_error:.1e}, residual "
            f"{self.residual:.1e}"
        )

    @property
    def holds_at(self) -> str:
        """Whether this is the strict limit or a value at finite width."""
        return holds_at(self.width, len(self.classes))

    def __getattr__(self, name: str) -> Any:
        # Order parameters as attributes: solution.m, solution.V1.
        values = self.__dict__.get("order_parameters", {})
        if name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def page(self) -> Iterable[Block]:
        """Return the errors, the letters with their overlaps, and what it rests on."""
        rows = [(row.words, row.text) for row in self.rows()[:2]]
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


# ------------------------------------------------------------------ results

_DIMENSIONS = {
    "V1": ("letter", "other_letter"),
    "q1": ("letter", "other_letter"),
    "V2": ("letter",),
    "q2": ("letter",),
    "m": ("letter",),
    "theta": ("spike", "letter"),
    "psi": ("teacher_direction", "letter"),
}


def model_attributes(model: VocabularyFeatures) -> dict[str, Any]:
    """Return what identifies a result, as plain values."""
    return {
        "model": model.to_json(),
        "student": model.derivation.student,
        "teacher": model.derivation.teacher,
        "beta": model.beta,
        "noise_variance": model.noise_variance,
        "bulk": model.bulk,
        "giantstep_version": __version__,
    }


def curve_names(model: VocabularyFeatures) -> Names:
    """Return what a curve has: components of arrays under names such as ``q1[0,1]``."""
    errors = ("test_error", "training_error")
    limits = tuple(f"{name}_strict_limit" for name in errors if _has_limit(model))
    others = ("regularised_training_error", "flatness")
    components = tuple(
        component(name, index)
        for name, shape in _shapes(model).items()
        for index in np.ndindex(*shape)
    )
    return Names(
        outputs=(*errors, *limits, *others, *components),
        errors=("quadrature_error",),
        shown=(*errors, *limits[:1]),
        drawn=errors[:1],
        meanings=MEANING,
    )


def curve_batch(
    model: VocabularyFeatures, alpha: NDArray[np.float64], ridge: NDArray[np.float64]
) -> BatchSolution:
    """Return solutions at points under the names of curves."""
    found = [model.solve(alpha=float(a), ridge=float(r)) for a, r in zip(alpha, ridge, strict=True)]
    values = {name: _column(found, name) for name in ("test_error", "training_error")}
    for name in values if _has_limit(model) else ():
        limits = [getattr(s.strict_limit, name) for s in found]
        values = {**values, f"{name}_strict_limit": np.array(limits)}
    for name in ("regularised_training_error", "flatness"):
        values[name] = _column(found, name)
    for name, shape in _shapes(model).items():
        stacked = np.stack([s.order_parameters[name] for s in found])
        for index in np.ndindex(*shape):
            values[component(name, index)] = stacked[(slice(None), *index)]
    return BatchSolution(
        values=values,
        errors={"test_error": _column(found, "quadrature_error")},
        iterations=_column(found, "iterations"),
        residual=_column(found, "residual"),
        nodes=_column(found, "nodes"),
        converged=np.ones(len(found), dtype=bool),
    )


def curve_attributes(model: VocabularyFeatures, varied: set[str]) -> dict[str, Any]:
    """Return what identifies a curve, without what changes along it."""
    found = {
        **model_attributes(model),
        "width": "limit" if model.width is None else model.width,
        "holds_at": holds_at(model.width, len(model.classes)),
    }
    left_out = varied | ({"holds_at"} if "width" in varied else set())
    return {name: value for name, value in found.items() if name not in left_out}


def arranged(model: VocabularyFeatures, dataset: xr.Dataset, *, letters_vary: bool) -> xr.Dataset:
    """Return a curve with its components as arrays over letters, and what the letters are."""
    points = dataset["test_error"].dims
    found = dataset
    for name, shape in _shapes(model).items():
        parts = [dataset[component(name, index)] for index in np.ndindex(*shape)]
        stacked = np.stack([part.to_numpy() for part in parts], axis=-1)
        values = stacked.reshape(*stacked.shape[:-1], *shape)
        found = found.drop_vars([str(part.name) for part in parts])
        found[name] = ((*points, *_DIMENSIONS[name]), values, {"long_name": MEANING[name]})
    found["fraction"] = ("letter", model.parameters.fractions)
    if letters_vary:
        return found
    found["spike_strength"] = (("letter", "spike"), model.parameters.strengths)
    found["bulk_variance"] = ("letter", np.array([c.bulk_variance for c in model.classes]))
    found["bias"] = ("letter", np.array([c.bias for c in model.classes]))
    return found


def _shapes(model: VocabularyFeatures) -> dict[str, tuple[int, ...]]:
    lengths = {
        "letter": len(model.classes),
        "other_letter": len(model.classes),
        "spike": model.parameters.rank,
        "teacher_direction": model.parameters.overlaps.shape[1],
    }
    return {name: tuple(lengths[d] for d in dims) for name, dims in _DIMENSIONS.items()}


def _has_limit(model: VocabularyFeatures) -> bool:
    return model.width is not None and model.law is None


def component(name: str, index: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, index))}]"


def _column(found: Sequence[VocabularySolution], name: str) -> NDArray[Any]:
    return np.array([getattr(s, name) for s in found])
