r"""Networks of finite size after gradient steps, beside the theory, as labelled arrays.

The population risk of a readout needs no test samples: covariances of a network's features,
:math:`\mathbb{E}\,\sigma_i\sigma_j` and :math:`\mathbb{E}\,f_*\sigma_j`, are closed forms of
:math:`\mathbb{E}[f(s)\,\sigma(t)]` for Gaussian pairs, at the actual lengths and angles of the
weights.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ... import __version__
from ...errors import AssumptionError, ClosedFormNotFoundError, EmissionError, ParameterError
from ...numeric.arguments import checked_switch, is_one_of, whole_number
from ...numeric.elementwise import ElementwiseFunction
from ...numeric.networks.measure import Measurement
from ...numeric.networks.network import Network
from ...numeric.networks.readout import GaussianFeatures, Readout, RidgeReadout
from ...numeric.networks.run import Networks, simulate as run_networks
from ...numeric.networks.samples import finite_values
from ...numeric.networks.sizes import sample_count
from ...numeric.networks.spectra import KernelEigenvalues
from ...runtime.generated import GeneratedFunction
from ...symbolic.expressions.activations import Activation, activation, z as variable
from ...symbolic.gaussian.expectation import GaussianExpectation, expect
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.printing.compiled import Formula, function_source
from ..activation_functions import cached_elementwise
from ..derived import derived
from ..penalties import items_of, one_penalty, penalties
from ..teachers import refuse_directions, teacher_function
from .conditional_risk import conditional_prediction
from .pair_kernels import c, p, pair_kernel, q

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

Array = NDArray[np.float64]


class FeatureCovariances:
    """Covariances of features of a first layer; can be sent to another process.

    Parameters
    ----------
    source : str
        Source of the functions ``features(p, q, c)`` and ``teacher(p, q, c)``.
    square : float
        Mean square of the teacher.
    """

    def __init__(self, source: str, square: float) -> None:
        self.square = square
        self._features = GeneratedFunction(source, "features")
        self._teacher = GeneratedFunction(source, "teacher")

    def __call__(self, rows: Array) -> tuple[Array, Array, float]:
        r"""Return :math:`\mathbb{E}\,\sigma\sigma^\top`, (N, N), E f_* σ, (N,), and E f_*².

        Parameters
        ----------
        rows : ndarray, shape (N, d)
            A row for each neuron, with the teacher along the first axis.
        """
        squares = np.einsum("ji,ji->j", rows, rows)
        first, second = squares[:, None], squares[None, :]
        inner = _inside(rows @ rows.T, first, second)
        along = _inside(rows[:, 0], np.ones(1), squares)
        features = np.broadcast_to(self._features(first, second, inner), inner.shape)
        cross = np.broadcast_to(self._teacher(1.0, squares, along), along.shape)
        return features, cross, self.square


def _inside(inner: Array, first: Array, second: Array) -> Array:
    """Keep inner products below the product of the lengths, which rounding may exceed."""
    largest = np.sqrt(first * second) * (1 - 4 * np.finfo(float).eps)
    return np.clip(inner, -largest, largest)


def feature_covariances(model: OneGradientStep) -> FeatureCovariances:
    """Return the covariances of a model's features, without the means of its functions."""
    refuse_directions(model.teacher, "the exact risk of a network")
    source = _derived_source(model.cache, model.student, model.teacher)
    if not source:
        raise ClosedFormNotFoundError(
            f"the covariances of features of student {model.student!r} and teacher "
            f"{model.teacher!r} have no closed form, by rule and in functions of arrays; leave out "
            "exact_risk to measure the risk on test samples"
        )
    return FeatureCovariances(source, model.teacher_moments.square)


@derived("one_gradient_step/feature_covariance", str)
def _derived_source(student: str, teacher: str) -> str:
    return _source(activation(student), activation(teacher))


def centred_kernel(f: Activation, sigma: Activation) -> sp.Expr | None:
    r"""Return :math:`\mathbb{E}[(f(s) - \mathbb{E}f)(\sigma(t) - \mathbb{E}\sigma)]` or None.

    The means are those at unit variance; s, t have variances p, q and covariance c.

    Examples
    --------
    >>> from giantstep.symbolic.expressions.activations import activation
    >>> centred_kernel(activation("relu"), activation("z")) == c / 2
    True
    """
    kernel = pair_kernel(f, sigma)
    if kernel is None:
        return None
    means = hermite_coefficient(f, 0), hermite_coefficient(sigma, 0)
    for mean, other, length in ((means[0], sigma, q), (means[1], f, p)):
        if mean != 0:
            kernel -= mean * expect(other(sp.sqrt(length) * variable), variable)
    kernel += means[0] * means[1]
    return None if kernel.has(GaussianExpectation) else kernel


def _source(student: Activation, teacher: Activation) -> str:
    """Return the source of both functions, empty without closed forms."""
    functions = {}
    for name, pair in (("features", (student, student)), ("teacher", (teacher, student))):
        kernel = centred_kernel(*pair)
        if kernel is None:
            return ""
        functions[name] = Formula((p, q, c), kernel)
    try:
        return function_source(functions)
    except EmissionError:
        # A closed form in functions that arrays do not have.
        return ""


LAYERS = {"gradient": "full", "rank one": "rank one", "theory": "given"}
"""How the first layer moves, and what that is called of a network of finite size."""
FEATURES = ("network", "gaussian")
LABELS = ("teacher", "gaussian")

_MEASURED = {"risk": ("test_error", 1), "training_error": ("training_error", 1),
             "objective": ("objective", 2)}  # fmt: skip
"""Columns, and of what measured quantities they are multiples: losses there are halves."""
_MEANING = {
    "risk": "mean squared distance from the noise-free target",
    "training_error": "mean squared residual of the noisy labels",
    "objective": "training error plus ridge |w|^2/n",
    "improvement": "risk before the steps minus risk after them, of the same networks and samples",
    "spike_length": "length of the mean label moment X^T y/n0 of the steps",
    "spike_overlap": "its component along the teacher",
    "ridge": "penalty of the squared norm beside the sum of squares",
    "step": "gradient steps",
    "seed": "number of the network",
}


class CentredFunction:
    """A function minus its mean; can be sent to another process.

    Parameters
    ----------
    name : str
        For error messages.
    """

    def __init__(self, function: ElementwiseFunction, name: str, mean: float) -> None:
        self.function, self.name, self.mean = function, name, mean

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the function at every entry of an array."""
        return finite_values(self.function, self.name, values) - self.mean

    def slopes(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative at every entry of an array."""
        return self.function.slopes(values)

    def values_and_slopes(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return both, in one turn."""
        result, slopes = self.function.values_and_slopes(values)
        return result - self.mean, slopes


class CentredTarget(CentredFunction):
    """A function of several directions minus its mean: one value for each row."""

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the function at every row; the network checks that it is finite."""
        result: NDArray[np.float64] = self.function(values) - self.mean
        return result


def one_step_network(
    model: OneGradientStep,
    dimension: int,
    *,
    steps: int = 1,
    fresh: bool = False,
    layer: str = "gradient",
    exponent: float = 0.0,
) -> Network:
    """Return the network of the model at a finite dimension, for :func:`giantstep.simulate`.

    Parameters
    ----------
    dimension, steps, fresh, layer, exponent
        As for :meth:`simulate`, with one number of steps.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the dimension too small.

    Examples
    --------
    >>> import giantstep as gs
    >>> network = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4).network(40)
    >>> network.rows, network.scaling, network.width
    ('gaussian', 'standard', 60)
    """
    dimension = whole_number("dimension", dimension, minimum=2)
    if not is_one_of(layer, LAYERS):
        raise ParameterError(f"layer must be one of {', '.join(LAYERS)}, got {layer!r}")
    width = sample_count("beta", model.beta, dimension)
    given = layer == "theory"
    # The population gradient has no samples; none are drawn where the spike is given or no step is.
    drawn = not given and bool(steps)
    samples = sample_count("alpha0", model.step_samples, dimension) if drawn else 1
    student, derivative, teacher = network_functions(model)
    _, directions = teacher_function(model.cache, model.teacher)
    network = Network(
        directions=directions,
        student=student, student_derivative=derivative, teacher=teacher,
        dimension=dimension, width=width, rows="gaussian", readout="gaussian", scaling="standard",
        noise_variance=model.noise_variance, steps=min(steps, 1) if given else steps, fresh=fresh,
        step_samples=samples, step_size=model.effective_step_size, exponent=exponent,
        gradient=LAYERS[layer], slope=model.student_moments.linear,
        description=json.dumps([model.student, model.teacher]),
    )  # fmt: skip
    if not (given and steps):
        return network
    step_size = network.step_size * width**network.exponent
    limit = replace(model, step_size=step_size, loss="half")
    return replace(network, spike=_spike(limit, steps, network.fresh))


def gaussian_features(model: OneGradientStep, *, labels: bool = False) -> GaussianFeatures:
    """Return the Gaussian counterparts of a model's features, and of its labels if asked for."""
    student, teacher = model.student_moments, model.teacher_moments
    return GaussianFeatures(
        student.linear, student.residual, teacher.linear, teacher.residual, labels
    )


def network_functions(
    model: OneGradientStep,
) -> tuple[CentredFunction, Callable[..., Any], CentredFunction]:
    """Return student, its derivative and teacher as functions of arrays, without their means."""
    student = cached_elementwise(model.cache, model.student)
    teacher, directions = teacher_function(model.cache, model.teacher)
    kind = CentredFunction if directions == 1 else CentredTarget
    centred = CentredFunction(student, "student", model.student_moments.mean)
    return (
        centred,
        # A student that jumps has no derivative; the model then takes no step.
        centred.slopes if student.differentiable else centred,
        kind(teacher, "teacher", model.teacher_moments.mean),
    )


def after_steps(model: OneGradientStep, steps: int, fresh: bool) -> OneGradientStep:
    """Return the model of one step that has the limit of several."""
    if not steps:
        return replace(model, step_size=0.0)
    return model if steps == 1 else model.several_steps(steps, fresh=fresh).model


def _spike(model: OneGradientStep, steps: int, fresh: bool) -> tuple[float, float]:
    """Return the spike of the limit, along the teacher and across it."""
    spike = after_steps(model, steps, fresh).weight_spike()
    return spike.theta2, math.sqrt(max(spike.theta1**2 - spike.theta2**2, 0.0))


@one_penalty
def simulate(
    model: OneGradientStep,
    dimension: int,
    *,
    ridge: object = None,
    seeds: int = 10,
    features: str = "network",
    labels: str = "teacher",
    layer: str = "gradient",
    steps: object = 1,
    fresh: bool = False,
    exponent: float = 0.0,
    conditional: bool = False,
    exact_risk: bool = False,
    n_test: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> xr.Dataset:
    r"""Train networks of finite size and measure the risks of their ridge readouts.

    Readouts before and after the steps are fitted to the same samples, which are independent
    of those of the steps: the improvement is a paired difference.

    Parameters
    ----------
    dimension : int
        Input dimension d; α d, α0 d and β d have to be (close to) whole numbers.
    ridge : float or sequence of float
        λ ≥ 0, or :func:`giantstep.paper_ridge`.
    features : {"network", "gaussian"}
        Features of the network, whose risk is measured on test samples; or their Gaussian
        equivalent :math:`\mu_1W^\top x + \mu_{>1}z`, whose population risk is exact.
    labels : {"teacher", "gaussian"}
        ``gaussian`` replaces the nonlinear part of the teacher in the readout's labels by
        independent Gaussian numbers; for Gaussian features.
    layer : {"gradient", "rank one", "theory"}
        Full gradient steps, their rank-one parts, or the spike of the limit.
    steps : int or sequence of int
        Gradient steps; readouts are fitted at each of these numbers, and at zero.
    fresh : bool
        Whether each step has samples of its own.
    exponent : float
        Steps of size :math:`\eta N^e`, such as 1/2 for large steps: no theory beside them.
    conditional : bool
        Also predict the errors of each layer by Gaussian equivalence; see
        :meth:`conditional_risk`.
    exact_risk : bool
        Population risk of the network by closed forms of E σσᵀ and E f_*σ, which there are for
        pairs such as erf/erf, sin/sin or relu/relu, in place of test samples.
    n_test : int, optional
        Test samples; max(10000, 10 d) by default.
    seeds, seed, workers, executor, store, progress
        See :func:`giantstep.numeric.networks.run.simulate`.

    Returns
    -------
    xarray.Dataset
        ``risk``, ``training_error`` and ``objective`` over ``seed``, ``step`` and ``ridge``;
        over ``ridge`` their means before and after the steps, ``risk_initial``,
        ``risk_trained``, …, and ``improvement``, with ``…_standard_error`` and, without
        `exponent`, the limit as ``…_theory``.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the dimension is too small.
    ClosedFormNotFoundError
        With `exact_risk`, if there are no such closed forms.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2)
    >>> found = model.simulate(40, ridge=[0.01, 0.1], seeds=2, n_test=1000)
    >>> dict(found.risk.sizes), bool((found.risk_trained > 0).all())
    ({'seed': 2, 'step': 2, 'ridge': 2}, True)
    """
    record = recorded_steps(steps, layer)
    network = one_step_network(
        model, dimension, steps=record[-1], fresh=fresh, layer=layer, exponent=exponent
    )
    samples = sample_count("alpha", model.alpha, network.dimension)
    ridges = penalties(ridge, network.width / samples)
    if len(set(ridges.tolist())) < len(ridges):
        raise ParameterError("the penalties must differ, they label the results")
    n_test = None if n_test is None else whole_number("n_test", n_test)
    for name, value, known in (("features", features, FEATURES), ("labels", labels, LABELS)):
        if not is_one_of(value, known):
            raise ParameterError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    if labels == "gaussian" and features == "network":
        raise ParameterError(
            "labels='gaussian' are not a function of the inputs, which network features see; "
            "use features='gaussian', or labels='teacher'"
        )
    covariances = None
    if checked_switch("exact_risk", exact_risk):
        covariances = feature_covariances(model)
    gaussian = None
    if features == "gaussian":
        gaussian = gaussian_features(model, labels=labels == "gaussian")
    readout = RidgeReadout(
        samples, ridges.tolist(), gaussian=gaussian, covariances=covariances, test_samples=n_test
    )
    measured: list[str | Measurement] = ["errors"]
    if checked_switch("conditional", conditional):
        measured.append(conditional_prediction(model, samples, ridges.tolist()))
    networks = measured_networks(
        network, readout, measured, record,
        seeds=seeds, seed=seed, workers=workers, store=store, progress=progress, executor=executor,
    )  # fmt: skip
    dataset = _dataset(networks, record, ridges, network.width / samples)
    if not exponent:
        finite = replace(
            model, alpha=samples / network.dimension, beta=network.width / network.dimension,
            alpha0=_step_ratio(model, network),
        )  # fmt: skip
        _add_theory(dataset, after_steps(finite, record[-1], fresh), ridges)
    dataset.attrs |= {
        **attributes(model, network, networks),
        "samples": samples, "features": features, "labels": labels, "layer": layer,
        "fresh": int(bool(fresh)), "exponent": float(exponent),
    }  # fmt: skip
    return dataset


def _step_ratio(model: OneGradientStep, network: Network) -> float:
    drawn = network.draws_steps
    return network.step_samples / network.dimension if drawn else model.step_samples


def recorded_steps(steps: object, layer: str) -> tuple[int, ...]:
    """Return numbers of steps, zero among them, increasing."""
    result = {whole_number("steps", step, minimum=0) for step in items_of("steps", steps)}
    if layer == "theory" and len(result - {0}) > 1:
        raise ParameterError(
            f"layer='theory' has one layer after all its steps; steps must be one number, got "
            f"{steps!r}"
        )
    return tuple(sorted(result | {0}))


def measured_networks(
    network: Network, readout: Readout | None,
    measured: Sequence[str | Measurement], record: Sequence[int], **options: Any,
) -> Networks:  # fmt: skip
    """Train networks of a model and measure at each step of a record.

    The moments of the labels are of the last one. A store is that of many runs.
    """
    taken = tuple(min(step, network.steps) for step in record)
    return run_networks(
        network, {**dict.fromkeys(measured, taken), "label_moment": network.steps},
        readout=readout, shared=True, **options,
    )  # fmt: skip


def attributes(model: OneGradientStep, network: Network, networks: Networks) -> dict[str, Any]:
    """Return what identifies a simulation, as plain values."""
    return {
        "model": model.to_json(),
        "kind": "simulation",
        "dimension": network.dimension,
        "width": network.width,
        "step_samples": network.step_samples,
        "entropy": networks.seed,
        "interrupted": int(networks.interrupted),
        "rests_on": f"mean and standard error of {len(networks.completed)} networks",
        "giantstep_version": __version__,
    }


def mean_and_error(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean over the first axis and its standard error, infinite for one network."""
    count = len(values)
    error = np.full(values.shape[1:], np.inf)
    if count > 1:
        error = np.asarray(values.std(axis=0, ddof=1)) / math.sqrt(count)
    return np.asarray(values.mean(axis=0)), error


def _dataset(
    networks: Networks, record: tuple[int, ...], ridges: NDArray[np.float64], ratio: float
) -> xr.Dataset:
    import xarray as xr

    columns: dict[str, Any] = {}
    every = ("seed", "step", "ridge")
    for name, (quantity, multiple) in _MEASURED.items():
        # One size of samples.
        values = multiple * networks[quantity][:, :, 0]
        columns[name] = (every, values)
        if f"predicted_{name}" in networks.quantities:
            columns[f"{name}_conditional"] = (every, networks[f"predicted_{name}"])
        parts = {f"{name}_initial": values[:, 0], f"{name}_trained": values[:, -1]}
        if name == "risk":
            parts["improvement"] = values[:, 0] - values[:, -1]
        for part, rows in parts.items():
            columns[part], columns[f"{part}_standard_error"] = (
                ("ridge", result) for result in mean_and_error(rows)
            )
    for name in ("spike_length", "spike_overlap"):
        columns[name] = ("seed", networks[name])
    dataset = xr.Dataset(
        columns,
        coords={
            "ridge": ridges,
            "paper_ridge": ("ridge", ridges * ratio),
            "step": np.asarray(record, dtype=np.int32),
            "seed": np.asarray(networks.completed, dtype=np.int32),
        },
    )
    for name, meaning in _MEANING.items():
        dataset[name].attrs["long_name"] = meaning
    return dataset


def _add_theory(dataset: xr.Dataset, model: OneGradientStep, ridges: NDArray[np.float64]) -> None:
    """Add what the limit says beside every simulated mean."""
    try:
        curve = model.curve(ridge=ridges).to_dataset()
    except AssumptionError:
        # No limit: as many samples as neurons, and no penalty.
        return
    for name in [str(name) for name in dataset.data_vars]:
        mean = name.removesuffix("_standard_error")
        if mean != name and mean in curve:
            dataset[f"{mean}_theory"] = ("ridge", curve[mean].to_numpy().ravel())


MATRICES = ("weights", "kernel", "linearised")
"""First layer, kernel of the network's features, kernel of their Gaussian counterparts."""

_AXES = {
    "singular_values": "mode",
    "kernel_eigenvalues": "sample",
    "linearised_eigenvalues": "sample",
}
_SPECTRA_MEANING = {
    "singular_values": "singular values of the first layer, descending",
    "teacher_alignment": "squared cosine of its first left singular vector and the teacher",
    "spike_alignment": "squared cosine of the former and X^T y of the steps so far, zero before",
    "readout_alignment": "squared cosine of its first right singular vector and the readout",
    "kernel_eigenvalues": "eigenvalues of the kernel of n samples, descending, zeros included",
    "label_alignment": "squared cosine of the kernel's first eigenvector and the labels",
    "linearised_eigenvalues": "the same of the kernel of Gaussian features",
    "linearised_label_alignment": "the same of the kernel of Gaussian features",
}


def simulate_spectra(
    model: OneGradientStep,
    dimension: int,
    *,
    seeds: int = 5,
    matrices: Sequence[str] = ("weights", "kernel", "linearised"),
    layer: str = "gradient",
    steps: object = 1,
    fresh: bool = False,
    exponent: float = 0.0,
    seed: int = 0,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    r"""Train networks of finite size and return spectra of first layers and kernels.

    Parameters
    ----------
    matrices : sequence of str
        "weights", the first layer; "kernel", :math:`\Phi\Phi^\top` of the features of α d
        samples; "linearised", the same of their Gaussian equivalent.
    layer, steps, fresh, exponent, seed, workers, store, progress
        As for :meth:`simulate`.

    Returns
    -------
    xarray.Dataset
        Over ``seed`` and ``step``: ``singular_values`` (descending, over ``mode``), squared
        cosines ``teacher_alignment``, ``spike_alignment`` (with X^T y of the steps so far, zero
        before the first) and ``readout_alignment``;
        ``kernel_eigenvalues`` (descending, over ``sample``) with ``label_alignment``, and the
        same with names that begin with ``linearised``.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the dimension is too small.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
    >>> found = model.simulate_spectra(40, seeds=2, matrices=["weights"])
    >>> dict(found.singular_values.sizes)
    {'seed': 2, 'step': 2, 'mode': 40}
    """
    import xarray as xr

    record = recorded_steps(steps, layer)
    chosen = _checked_matrices(matrices)
    network = one_step_network(
        model, dimension, steps=record[-1], fresh=fresh, layer=layer, exponent=exponent
    )
    samples = sample_count("alpha", model.alpha, network.dimension)
    measured: dict[str, str | Measurement] = {
        "weights": "singular_values",
        "kernel": "kernel_eigenvalues",
        "linearised": KernelEigenvalues(gaussian_features(model)),
    }
    networks = measured_networks(
        network,
        # Without a penalty: its memory is that of singular values. It is not fitted.
        RidgeReadout(samples, 0.0) if set(chosen) != {"weights"} else None,
        [measured[name] for name in chosen], record,
        seeds=seeds, seed=seed, workers=workers, store=store, progress=progress,
    )  # fmt: skip
    columns: dict[str, Any] = {}
    for name, values in networks.values.items():
        axes = ("seed", "step", _AXES[name]) if name in _AXES else ("seed", "step")
        columns[name] = (axes[: values.ndim], values)
    dataset = xr.Dataset(
        columns,
        coords={
            "step": np.asarray(record, dtype=np.int32),
            "seed": np.asarray(networks.completed, dtype=np.int32),
        },
        attrs={
            **attributes(model, network, networks), "samples": samples, "layer": layer,
            "fresh": int(bool(fresh)), "exponent": float(exponent),
        },
    )  # fmt: skip
    for name, meaning in _SPECTRA_MEANING.items():
        if name in dataset:
            dataset[name].attrs["long_name"] = meaning
    return dataset


def _checked_matrices(matrices: Sequence[str]) -> list[str]:
    """Return names of matrices in their own order, each once."""
    listed = isinstance(matrices, Sequence) and not isinstance(matrices, str) and len(matrices)
    if not listed or not all(is_one_of(name, MATRICES) for name in matrices):
        raise ParameterError(f"matrices must be some of {', '.join(MATRICES)}, got {matrices!r}")
    return [name for name in MATRICES if name in matrices]
