r"""The first gradient of given weights, averaged over infinitely many samples.

For a network :math:`f(x) = N^{-1/2}\sum_i a_i\sigma(w_i\cdot x)` and the labels of a teacher along
a unit vector β_*, Stein's lemma gives

.. math:: \mathbb{E}\,G_{\cdot j} = \frac{a_j}{\sqrt N}\Big(\nabla k(w_j) -
    \frac{1}{\sqrt N}\sum_i a_i \nabla_2 K(w_i, w_j)\Big), \quad
    k(w) = \mathbb{E}[f_*(x)\sigma(w\cdot x)], \quad
    K(u, w) = \mathbb{E}[\sigma(u\cdot x)\,\sigma(w\cdot x)]

with the gradient in the second argument only. Every average depends on :math:`p = |u|^2`,
:math:`q = |w|^2` and :math:`c = u\cdot w`, so its gradient is :math:`\partial_c F\,u +
2\,\partial_q F\,w`. Closed forms come from the rules for Gaussian pairs (for erf the arcsine law);
where there are none, and for neurons that are all but parallel, the averages are computed by
quadrature. (Derived here; the leading term is that of Ba et al., arXiv 2205.01445, section 3.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.pair_gradients import pair_averages
from ...runtime.generated import defined
from ...symbolic.expressions.activations import activation
from ..derived import derived
from ..teachers import refuse_directions
from .pair_kernels import label_source, output_source
from .simulated import network_functions

if TYPE_CHECKING:
    from .model import OneGradientStep

Array = NDArray[np.float64]

CLOSED_FORM = "closed form"
QUADRATURE = "quadrature in two dimensions"

# Of inner products: columns closer than this are the same neuron.
_ROUNDING = 1e-13
# Of 1 - cos²: there closed forms with square roots of it lose half of their digits or more.
_NEARLY_PARALLEL = 1e-6


@dataclass(frozen=True, eq=False)
class PopulationGradient:
    """The averaged gradient with its sign turned, as the step uses it.

    Attributes
    ----------
    gradient : array (d, N)
        E G, the difference of the next two.
    labels, output : array (d, N)
        What the labels and what the network's own output contribute.
    rests_on : str
        "closed form", or "quadrature in two dimensions" if one of the parts needs it anywhere.
    """

    gradient: Array = field(repr=False)
    labels: Array = field(repr=False)
    output: Array = field(repr=False)
    rests_on: str


def population_gradient(
    model: OneGradientStep,
    weights: ArrayLike,
    readout: ArrayLike,
    *,
    direction: ArrayLike | None = None,
) -> PopulationGradient:
    r"""Return the first gradient of given weights with infinitely many samples.

    Parameters
    ----------
    weights : array-like (d, N)
        W, a column of any length for each neuron.
    readout : array-like (N,)
        a of the network :math:`N^{-1/2}\,a\cdot\sigma(W^\top x)`.
    direction : array-like (d,), optional
        The teacher's direction β_*; default: the first axis.

    Returns
    -------
    PopulationGradient
        The average of G with :math:`W_1 = W_0 + \eta\sqrt N\,G`, and its two parts. Without a
        closed form, functions that both have kinks take some milliseconds for each pair of
        neurons.

    Raises
    ------
    ParameterError
        If shapes do not fit, or a value is not finite.
    AssumptionError
        If the student jumps.
    ConvergenceError
        If there is no closed form and the functions are too steep for quadrature.
    """
    refuse_directions(model.teacher, "the population gradient of each neuron")
    if model.student_moments.jumps:
        raise AssumptionError(
            f"student {model.student!r} jumps: its gradient is not defined; choose a continuous "
            "activation such as erf or tanh"
        )
    matrix, a, teacher = _checked(weights, readout, direction)
    width = matrix.shape[1]
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->j", matrix, matrix)
        usable = (squares > 0) & np.isfinite(squares**2)
    if not usable.all():
        raise ParameterError(
            "weights must have columns whose squared lengths are within the range of floats; "
            "lengths of about one are usual"
        )
    result = _Averages(model)
    one = np.ones(1)
    root = math.sqrt(width)
    # What is not finite is reported below, as what it is.
    with np.errstate(all="ignore"):
        along, own = result.labels(one[:, None], squares[None, :], (teacher @ matrix)[None, :])
        labels = (np.outer(teacher, along[0]) + matrix * own[0]) * (a / root)
        first, second = result.output(squares[:, None], squares[None, :], matrix.T @ matrix)
        output = matrix @ (a[:, None] * first) + matrix * (a @ second)
        output = output / root * (a / root)
    if not (np.isfinite(labels).all() and np.isfinite(output).all()):
        raise ParameterError(
            "weights or readout are too large: the population gradient is not finite in "
            "floating-point numbers; columns of length about one are usual"
        )
    return PopulationGradient(labels - output, labels, output, result.rests_on)


class _Averages:
    """Coefficients of u and w in the gradients of k and K."""

    def __init__(self, model: OneGradientStep) -> None:
        self.model = model
        self.student, self.slope, self.teacher = network_functions(model)
        document = _sources(model.cache, model.student, model.teacher, model.centre)
        self.kinks = document["kinks"]
        self.closed = {
            name: defined(document[name]) if document[name] else None
            for name in ("labels", "output")
        }
        self.rests_on = CLOSED_FORM if all(self.closed.values()) else QUADRATURE

    def labels(self, p: Array, q: Array, c: Array) -> tuple[Array, Array]:
        closed = self.closed["labels"]
        if closed is None:
            return self._quadrature("teacher", p, q, c)
        return self._where_exact("teacher", closed, p, q, c)

    def output(self, p: Array, q: Array, c: Array) -> tuple[Array, Array]:
        closed = self.closed["output"]
        if closed is None:
            return self._quadrature("student", p, q, c)
        # Of a neuron with itself: half the gradient of K(w, w), a function of q alone.
        same = np.abs(p + q - 2 * c) <= _ROUNDING * (p + q)
        first, second = self._where_exact("student", closed, p, q, c, same)
        with np.errstate(all="ignore"):
            own = closed.own(q)
        return np.where(same, 0.0, first), np.where(same, own, second)

    def _where_exact(
        self, name: str, closed: Any, p: Array, q: Array, c: Array, known: Any = False
    ) -> tuple[Array, Array]:
        """Take closed forms, but not next to parallel, where some are differences of infinities."""
        first, second = _broadcast(closed.pair, p, q, c)
        p, q, c = np.broadcast_arrays(p, q, c)
        near = ~(np.isfinite(first) & np.isfinite(second)) | (
            1 - (c / p) * (c / q) < _NEARLY_PARALLEL
        )
        near &= ~np.asarray(known)
        if near.any():
            first[near], second[near] = self._quadrature(name, p[near], q[near], c[near])
        return first, second

    def _quadrature(self, name: str, p: Array, q: Array, c: Array) -> tuple[Array, Array]:
        function = self.teacher if name == "teacher" else self.student
        self.rests_on = QUADRATURE
        try:
            return pair_averages(
                function, self.slope, p, q, c,
                first_kinks=self.kinks[name], second_kinks=self.kinks["student"],
            )  # fmt: skip
        except ConvergenceError as error:
            part = "labels" if name == "teacher" else "output"
            raise ConvergenceError(
                f"the {part} part of the population gradient has no closed form for student "
                f"{self.model.student!r}"
                + (f" and teacher {self.model.teacher!r}" if part == "labels" else "")
                + f", and quadrature fails: {error}. Choose functions that are less steep, shorter "
                "columns of weights, or a pair with closed forms such as erf or relu"
            ) from None


def _broadcast(function: Any, p: Array, q: Array, c: Array) -> tuple[Array, Array]:
    shape = np.broadcast_shapes(p.shape, q.shape, c.shape)
    with np.errstate(all="ignore"):
        first, second = function(p, q, c)
    return np.array(np.broadcast_to(first, shape)), np.array(np.broadcast_to(second, shape))


def _checked(
    weights: ArrayLike, readout: ArrayLike, direction: ArrayLike | None
) -> tuple[Array, Array, Array]:
    matrix = _real_array("weights", weights, 2, "of shape (d, N), a column for each neuron")
    a = _real_array("readout", readout, 1, "of shape (N,)")
    if len(a) != matrix.shape[1]:
        raise ParameterError(
            f"readout must have one entry for each of the {matrix.shape[1]} columns of weights, "
            f"got {len(a)}"
        )
    if not (matrix != 0).any(axis=0).all():
        raise ParameterError("weights must have no column of zeros")
    if direction is None:
        teacher = np.zeros(len(matrix))
        teacher[0] = 1.0
        return matrix, a, teacher
    teacher = _real_array("direction", direction, 1, "of shape (d,)")
    length = float(np.linalg.norm(teacher))
    if len(teacher) != len(matrix) or not length > 0:
        raise ParameterError(
            f"direction must be a vector of {len(matrix)} entries that is not zero, got "
            f"{len(teacher)} entries of length {length:g}"
        )
    return matrix, a, teacher / length


def _real_array(name: str, values: ArrayLike, dimensions: int, wanted: str) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.ndim != dimensions or not array.size or array.dtype.kind not in "fiu":
        raise ParameterError(
            f"{name} must be an array of real numbers {wanted}; got {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite")
    return array.astype(float)


@derived("one_gradient_step/population", dict)
def _sources(student: str, teacher: str, centre: bool) -> dict[str, Any]:
    """Return source of closed forms, empty where there is none, and where functions have kinks."""
    names = {"student": student, "teacher": teacher}
    return {
        "labels": label_source(student, teacher, centre) or "",
        "output": output_source(student, centre) or "",
        "kinks": {k: [float(x) for x in activation(v).kinks] for k, v in names.items()},
    }
