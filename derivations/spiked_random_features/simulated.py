"""Models as networks of finite size, and what was measured of these as labelled arrays.

**Conditional errors given κ, predicted by the theory, as control variates of simulations.** The
free energy's test and training errors are averages over κ; their integrands at the saddle point are
what a simulated sample with projection κ has on average. Errors of simulated samples have heavy
tails in κ: the prediction e(κ) is subtracted at each sample, and its exact mean added again. The
expectation stays what it is, for any e.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numeric.arguments import positive_array, positive_number, whole_number
from ...numeric.networks.convex import Loss
from ...numeric.networks.layer import FeatureClass, SpikedRows
from ...numeric.networks.measure import Measurement, errors
from ...numeric.networks.network import Network
from ...numeric.networks.readout import ConvexReadout, RidgeReadout, TrainedNetwork
from ...numeric.networks.run import simulate
from ...numeric.networks.samples import READOUT, TEST
from ...numeric.networks.sizes import sample_count
from ...runtime.generated import GeneratedFunction
from ...runtime.levels import Tables
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.printing.compiled import compiled
from ..activation_functions import cached_elementwise
from ..network_dataset import network_dataset
from ..teachers import teacher_function
from . import physics as symbols
from .bulk_law import BulkLaw
from .solution import model_attributes
from .vocabulary.solution import model_attributes as letter_attributes

if TYPE_CHECKING:
    import xarray as xr
    from scipy.interpolate import CubicSpline
    from typing_extensions import TypeIs

    from .model import SpikedRandomFeatures
    from .vocabulary.model import VocabularyFeatures

_ERRORS = (
    "test_error", "training_error", "test_loss", "training_loss", "objective", "certificate",
)  # fmt: skip
_QUANTITIES = (
    *_ERRORS, "m", "theta", "psi", "q1", "q2", "spike_strength", "bulk_variance", "alignment",
)  # fmt: skip


def network_of(
    model: SpikedRandomFeatures | VocabularyFeatures,
    dimension: int,
    labels: str | Callable[..., Any] = "regression",
    *,
    equivalent: bool = False,
) -> Network:
    """Return a model at a finite dimension: a network with its step, or rows that are given.

    With `equivalent` spiked random features are drawn instead of taking the step, as for a model
    that is given by its parameters in any case. `labels`: see :class:`.samples.Channel`.
    """
    dimension = whole_number("dimension", dimension)
    width = sample_count("beta", model.beta, dimension)
    drawn = equivalent or model.direct_parameters is not None
    fields = _letters(model, drawn) if has_letters(model) else _one_kind(model, drawn)
    if "student_derivative" in fields:
        fields |= {
            "steps": 1,
            "step_size": model.step_size,
            "step_samples": sample_count("alpha0", model.alpha0, dimension),
        }
    return Network(
        dimension=dimension, width=width, noise_variance=model.noise_variance, labels=labels,
        description=json.dumps(
            {"student": model.student, "teacher": model.teacher, "labels": _named(labels)},
            sort_keys=True,
        ),
        **fields,
    )  # fmt: skip


def _one_kind(model: SpikedRandomFeatures, drawn: bool) -> dict[str, Any]:
    """Functions of a model of one letter, and its rows if they are given."""
    student = cached_elementwise(model._cache, model.derivation.student)
    teacher, directions = teacher_function(model._cache, model.derivation.teacher)
    functions: dict[str, Any] = {
        "student": student, "teacher": teacher, "directions": directions
    }  # fmt: skip
    if model.step_size and not drawn:
        student.require_slope()
        functions["student_derivative"] = student.slopes
    if not drawn:
        return dict(functions)
    spike = model.spike
    if isinstance(model.bulk, BulkLaw):
        raise ParameterError(
            "a law of the bulk does not say how rows are drawn; simulate bulk='iid' or "
            "'orthonormal', or draw rows of your own"
        )
    if model.direct_parameters is not None and (spike.norm_overlap or any(spike.stretch)):
        raise ParameterError(
            "rows with a norm overlap or a stretch are made by a gradient step only; simulate "
            "the model of the step, with leading_order='complete'"
        )
    kind = FeatureClass(1.0, spike.spike_strength, spike.bulk_variance)
    alignment: Any = spike.alignment
    if directions > 1:
        # The first direction is that of the spike.
        alignment = np.array([[spike.alignment] + [0.0] * (directions - 1)])
    return {**functions, "rows": SpikedRows(kind, alignment, bulk=model.bulk)}


def _letters(model: VocabularyFeatures, drawn: bool) -> dict[str, Any]:
    """Functions of a model of several letters, and its rows or letters."""
    found = model.derivation
    student = cached_elementwise(model._cache, found.student)
    functions: dict[str, Any] = {
        "student": student,
        "teacher": GeneratedFunction(found.teacher_source, "teacher"),
    }
    if drawn:
        overlaps = model.parameters.overlaps
        return {
            **functions,
            "rows": SpikedRows(model.classes, overlaps, bulk=model.bulk),
            "directions": overlaps.shape[1],
        }
    if model.bulk != "iid" or any(c.bias for c in model.classes) or model.law is not None:
        raise ParameterError(
            "a network after its step has no biases, no orthonormal bulk rows and finitely many "
            "letters; pass equivalent=True to draw the spiked random features"
        )
    letters, fractions = tuple(model.letters), tuple(model.fractions)
    if len(set(letters)) < len(letters):
        raise ParameterError(f"letters must differ, got {letters}; add up their fractions")
    # The letter 0 alone takes no step.
    if not any(letters):
        return dict(functions)
    # Without a step nothing asks for a derivative; a student that jumps has none.
    if model.step_size:
        student.require_slope()
        functions["student_derivative"] = student.slopes
    return {**functions, "readout": letters, "fractions": fractions}


def simulate_model(
    model: SpikedRandomFeatures | VocabularyFeatures,
    dimension: int,
    alpha: object,
    ridge: float,
    *,
    loss: Loss | None = None,
    labels: str | Callable[..., Any] = "regression",
    equivalent: bool = False,
    control_variate: bool = False,
    seed: int = 0,
    **run: Any,
) -> xr.Dataset:
    """Fit readouts on networks of a model, or on its rows; see :func:`network_of`.

    Half of λ times the squared norm of the readout is added to the sum of losses. The control
    variate is :func:`control_variate_of`; without effect on means. Errors and losses, with mean and
    standard error, are over ``seed`` and ``alpha``, and over classes, spikes and teachers where
    there are several.
    """
    alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
    network = network_of(model, dimension, labels, equivalent=equivalent)
    sizes = [sample_count("alpha", ratio, network.dimension) for ratio in alphas.tolist()]
    readout = (
        RidgeReadout(sizes, ridge) if loss is None else ConvexReadout(sizes, ridge, loss)
    )  # fmt: skip
    errors: str | Measurement = "errors"
    if control_variate:
        errors = control_variate_of(model, alphas.tolist(), ridge) or "errors"  # type: ignore[arg-type]
    found = simulate(
        network, [errors, "overlaps", "spike"], readout=readout, seed=seed, **{"seeds": 10, **run}
    )
    name = "square" if loss is None else loss.name
    attributes = {**_attributes(model, ridge), "labels": _named(labels), "loss": name}
    # Equations for letters are for bulk rows of norm one.
    kinds = model.classes if has_letters(model) else ()
    scale = np.array([kind.bulk_variance**-0.5 for kind in kinds]) if kinds else np.ones(1)
    return network_dataset(
        found, {"alpha": alphas},
        {**attributes, "dimension": network.dimension, "entropy": found.seed},
        names=_QUANTITIES, averaged=_ERRORS[:-1],
        units={"theta": scale, "psi": scale, "q1": np.outer(scale, scale)},
    )  # fmt: skip


def has_letters(model: SpikedRandomFeatures | VocabularyFeatures) -> TypeIs[VocabularyFeatures]:
    # Models know this module; it asks what they have instead of what they are.
    return hasattr(model, "letters")


def _attributes(model: SpikedRandomFeatures | VocabularyFeatures, ridge: float) -> dict[str, Any]:
    if has_letters(model):
        return {**letter_attributes(model), "ridge": ridge}
    return model_attributes(model, ridge)


def _named(labels: str | Callable[..., Any]) -> str:
    if isinstance(labels, str):
        return labels
    return f"{getattr(labels, '__module__', '')}.{getattr(labels, '__qualname__', 'function')}"


# ------------------------------------------------------------------ conditional errors

Array = NDArray[np.float64]

_FUNCTIONS = {
    symbols.mu0: "mu_0", symbols.mu1: "mu_1", symbols.mu2_squared: "mu_2_squared",
    symbols.chi: "chi", symbols.T0: "T_0", symbols.T1: "T_1", symbols.T2: "T_2",
    **{a.moment: a.moment.func.__name__ for a in symbols.ACROSS},
}  # fmt: skip
_LARGEST, _STEP = 9.0, 1 / 16
"""Grid of κ: sharper features of a prediction are not worth following."""
_REFINEMENT = 8
"""Points of the average for each interval of the grid: the average is that of the interpolant."""


@dataclass(frozen=True, eq=False)
class ConditionalPrediction:
    """Predicted conditional errors on a grid.

    Parameters
    ----------
    kappa : array-like (g,)
        Increasing, equally spaced, covering at least [-6, 6].
    test, training : array-like (g,)
        Predicted conditional test and training error at these points.

    Raises
    ------
    ParameterError
        If shapes differ, values are not finite, or the grid is none of this kind.
    """

    kappa: Array
    test: Array
    training: Array

    def __post_init__(self) -> None:
        for name in ("kappa", "test", "training"):
            values = np.array(getattr(self, name), dtype=float)
            if values.ndim != 1 or values.shape != np.shape(self.kappa):
                raise ParameterError(f"{name} must hold one number for each point of kappa")
            if not np.isfinite(values).all():
                raise ParameterError(f"{name} holds a value that is not finite")
            object.__setattr__(self, name, values)
        gaps = np.diff(self.kappa)
        if len(gaps) < 3 or gaps.min() <= 0 or np.ptp(gaps) > 1e-9 * gaps.max():
            raise ParameterError("kappa must increase in equal steps")
        if self.kappa[0] > -6 or self.kappa[-1] < 6:
            raise ParameterError(
                f"kappa must cover [-6, 6], got [{self.kappa[0]:g}, {self.kappa[-1]:g}]"
            )

    @cached_property
    def _splines(self) -> tuple[CubicSpline, CubicSpline]:
        # All of scipy.optimize comes with it, a fifth of what starting a command takes.
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.kappa, self.test), CubicSpline(self.kappa, self.training)

    @cached_property
    def means(self) -> tuple[float, float]:
        """Averages of both over a standard normal κ."""
        points = np.linspace(self.kappa[0], self.kappa[-1], _REFINEMENT * (len(self.kappa) - 1) + 1)
        weights = np.exp(-(points**2) / 2)
        weights /= weights.sum()
        test, training = (float(weights @ spline(points)) for spline in self._splines)
        return test, training

    def at(self, kappa: Array) -> tuple[Array, Array]:
        """Return both at given points; those beyond the grid count as its ends."""
        inside = np.clip(kappa, self.kappa[0], self.kappa[-1])
        test, training = (np.asarray(spline(inside)) for spline in self._splines)
        return test, training

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        content = b"".join(np.ascontiguousarray(a).tobytes() for a in (self.kappa, self.test))
        return sha256(content + self.training.tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ControlVariate:
    """Measures ``errors`` of a network, with predictions in the place of their scatter.

    Parameters
    ----------
    predictions : sequence of ConditionalPrediction
        One for each sample size of the readout.
    """

    predictions: Sequence[ConditionalPrediction]

    @property
    def digest(self) -> str:
        """What distinguishes it from others in stored results."""
        return " ".join(prediction.digest for prediction in self.predictions)

    def __call__(self, trained: TrainedNetwork) -> dict[str, Array]:
        """Measure."""
        found = {name: values.copy() for name, values in errors(trained).items()}
        sizes = trained.readout.sizes
        for row, (prediction, size) in enumerate(zip(self.predictions, sizes, strict=True)):
            test, training = prediction.means
            fresh, fitted = trained.projections(TEST), trained.projections(READOUT, size)
            found["test_error"][row] += test - prediction.at(fresh)[0].mean()
            found["training_error"][row] += training - prediction.at(fitted)[1].mean()
        return found


def control_variate_of(
    model: SpikedRandomFeatures, alphas: Sequence[float], ridge: float
) -> ControlVariate | None:
    """Return that of the theory; None without a spike, when errors do not depend on κ."""
    found = [conditional_prediction(model, alpha, ridge) for alpha in alphas]
    known = [prediction for prediction in found if prediction is not None]
    return ControlVariate(tuple(known)) if known else None


def conditional_prediction(
    model: SpikedRandomFeatures, alpha: float, ridge: float
) -> ConditionalPrediction | None:
    r"""Return the conditional errors at the saddle point; None where they do not depend on κ.

    Notes
    -----
    ``test`` is :math:`\mathbb{E}[(y - \hat y)^2 | \kappa] - \Delta` of a fresh sample,
    ``training`` that of a training sample.
    """
    if model.spike.spike_strength == 0:
        return None
    energy = model.symbolic().free_energy
    values = {
        **model._parameter_values(),
        **{
            k: float(v[0]) for k, v in model.solve_many(alpha=[alpha], ridge=[ridge]).values.items()
        },
        "alpha": alpha,
        "ridge": ridge,
    }
    kernel = model._kernel
    assert kernel.tables is not None
    count = round(2 * _LARGEST / _STEP) + 1
    kappa = np.linspace(-_LARGEST, _LARGEST, count)
    tables = Tables(kernel.tables, [values[p] for p in kernel.table_parameters])(kappa)
    columns = {**values, **tables, "kappa": kappa}
    names = {**_FUNCTIONS, **symbols.IDENTIFIERS, symbols.kappa: "kappa"}
    known = {x: name for x, name in names.items() if name in columns}
    both = compiled([_integrand(e) for e in (energy.test_error, energy.training_error)], [*known])
    found = both(*(columns[name] for name in known.values()))
    return ConditionalPrediction(
        kappa, *(np.broadcast_to(x, kappa.shape).astype(float) for x in found)
    )


def _integrand(average: sp.Expr) -> sp.Expr:
    """Return what is averaged over κ; the rest of the expression does not depend on it."""
    averages = average.atoms(GaussianExpectation)
    return average.xreplace(
        {node: node.args[0] for node in averages if node.args[1] == symbols.kappa}
    )
