r"""Minimise a function of a positive definite matrix and positive numbers by Newton's method.

The function is

.. math::
    F(V, v) = \sum_j w_j\,g(x_j^\top V x_j + y_j\cdot v) + \sum_a t_a(V_{aa}, v_a)
              - \omega\log\det V .

Steps follow curves :math:`V = Le^{\tau S}L^\top`, :math:`v_a = v_ae^{\tau s_a}` with a symmetric S:
no step leaves the domain. Along them :math:`x^\top Vx` is a sum of exponentials
:math:`e^{\tau\lambda_i}`, λ the eigenvalues of S, with factors that are not negative, so that
g = log(1 + ·) of it is a logarithm of sums of exponentials and convex, and log det V is linear.
Where t is convex along them too, Newton's method with a line search finds the minimum from
anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceError

Array = NDArray[np.float64]
# Value and derivatives (1, 2) of g at all values of κ; of t by (X, v, Xv, vv) at all letters.
NodeFunction = Callable[[Array], tuple[Array, Array, Array]]
LetterFunction = Callable[[Array, Array], tuple[Array, Array, Array, Array, Array]]

_MOST_STEPS = 200
# Logarithms of the eigenvalues change by at most this in a step.
_LONGEST_STEP = 4.0
_SMALL_STEP = 1e-4
_TOLERANCE = 1e-14
# Where rounding stops the steps earlier, they have to be this small.
_ACCEPTED = 1e-7
_ARMIJO = 1e-4
_MOST_HALVINGS = 40


@dataclass(frozen=True)
class PositiveProblem:
    """The function to minimise, on quadrature nodes.

    Attributes
    ----------
    weights : array (n,)
        w_j >= 0.
    vectors : array (n, K) or (n, 0)
        x_j; without columns there is no matrix V.
    variances : array (n, K)
        y_j >= 0.
    node : callable
        g with its first and second derivative.
    letter : callable
        t with its derivatives by X, v, X and v, v twice; it is affine in X.
    determinant_weight : float
        ω.
    """

    weights: Array
    vectors: Array
    variances: Array
    node: NodeFunction
    letter: LetterFunction
    determinant_weight: float

    @property
    def has_matrix(self) -> bool:
        """Whether V is there at all."""
        return self.vectors.shape[1] > 0


@dataclass(frozen=True)
class PositivePoint:
    """A point with what Newton's method knows there.

    Attributes
    ----------
    root : array (K, K)
        L with V = L Lᵀ.
    numbers : array (K,)
        v.
    arguments : array (n,)
        What g is evaluated at.
    gradient, hessian : array
        In the coordinates (S, s) of the module, packed by :func:`symmetric_basis`.
    features : array (n, D)
        Derivatives of `arguments` by the coordinates.
    steps : int
    residual : float
        The last Newton step, a relative change of the unknowns, in the norm of the Hessian.
    """

    root: Array
    numbers: Array
    value: float
    arguments: Array
    gradient: Array
    hessian: Array
    features: Array
    steps: int = 0
    residual: float = np.inf

    @property
    def matrix(self) -> Array:
        """V."""
        product: Array = self.root @ self.root.T
        return product


@lru_cache(maxsize=32)
def symmetric_basis(size: int) -> Array:
    """Return a basis (D, K, K) of the symmetric matrices; off the diagonal both entries are 1."""
    rows, columns, _ = _pairs(size)
    basis = np.zeros((len(rows), size, size))
    number = np.arange(len(rows))
    basis[number, rows, columns] = 1.0
    basis[number, columns, rows] = 1.0
    return basis


def minimise(problem: PositiveProblem, root: Array, numbers: Array) -> PositivePoint:
    """Return the minimum.

    Parameters
    ----------
    problem : PositiveProblem
    root : array (K, K)
        First value of L; ignored without a matrix.
    numbers : array (K,)
        First value of v.

    Raises
    ------
    ConvergenceError
        If the steps do not become small.
    """
    point = expansion(problem, root, numbers)
    previous = np.inf
    for count in range(1, _MOST_STEPS + 1):
        step = solve_positive(point.hessian, -point.gradient)
        longest = float(np.abs(step).max())
        slope = float(step @ point.gradient)
        # The length of the step in the norm of the Hessian: what hardly matters hardly counts.
        size = math.sqrt(abs(slope))
        if not np.isfinite(size):
            break
        if size < _TOLERANCE:
            return replace(point, steps=count - 1, residual=size)
        if longest > _LONGEST_STEP:
            step, slope = step * (_LONGEST_STEP / longest), slope * (_LONGEST_STEP / longest)
        best: PositivePoint | None = None
        for _ in range(_MOST_HALVINGS):
            trial = _moved(problem, point, step)
            # Close to the minimum differences of F are rounding: there Newton steps are taken.
            descends = trial.value <= point.value + _ARMIJO * slope
            if size < _SMALL_STEP or descends:
                best = trial
                break
            step, slope = step / 2, slope / 2
        if best is None:
            break
        stalled = size < _ACCEPTED and size >= previous / 2
        point = replace(best, steps=count, residual=size)
        if stalled:
            return point
        previous = size
    raise ConvergenceError(
        "no saddle point found for the conditional variances: Newton's method ended with a "
        f"relative step of {size:.1e} after {count} steps; a larger ridge penalty makes the "
        "equations easier",
        state=point,
        residual=size,
    )


def solve_positive(hessian: Array, right: Array) -> Array:
    """Solve with a positive matrix whose rows may differ in scale by many orders."""
    scale = np.sqrt(np.maximum(hessian.diagonal(), np.finfo(float).tiny))
    scaled = hessian / (scale[:, None] * scale)
    try:
        solution = np.linalg.solve(scaled, right / scale)
    except np.linalg.LinAlgError:
        # Singular up to rounding.
        solution = np.linalg.lstsq(scaled, right / scale, rcond=None)[0]
    result: Array = solution / scale
    return result


def _moved(problem: PositiveProblem, point: PositivePoint, step: Array) -> PositivePoint:
    size = len(step) - len(point.numbers)
    root = point.root
    if problem.has_matrix:
        direction = unpacked(step[:size], len(root))
        values, vectors = np.linalg.eigh(direction)
        root = root @ (vectors * np.exp(values / 2)) @ vectors.T
    return expansion(problem, root, point.numbers * np.exp(step[size:]))


def expansion(problem: PositiveProblem, root: Array, numbers: Array) -> PositivePoint:
    """Expand F to second order along the curves of the module; see :func:`minimise`."""
    weights, basis = problem.weights, symmetric_basis(problem.vectors.shape[1])
    size = len(basis)
    letters = len(numbers)
    scaled = problem.variances * numbers
    arguments = scaled.sum(axis=1)
    diagonal = np.zeros(letters)
    own = np.zeros((letters, 0))
    if problem.has_matrix:
        frame = problem.vectors @ root
        arguments = arguments + np.sum(frame * frame, axis=1)
        diagonal = np.sum(root * root, axis=1)
        own = _quadratic_features(root)
        features = np.concatenate([_quadratic_features(frame), scaled], axis=1)
    else:
        frame, features = problem.vectors, scaled
    node, node_1, node_2 = problem.node(arguments)
    letter, by_x, by_v, by_xv, by_vv = problem.letter(diagonal, numbers)
    value = float(weights @ node + np.sum(letter))
    weighted = weights * node_1
    gradient = features.T @ weighted
    hessian = features.T @ ((weights * node_2)[:, None] * features)
    by_log = by_v * numbers
    gradient[size:] += by_log
    # The second derivative by the logarithm of a linear term is the first one once more.
    hessian.flat[size * (len(hessian) + 1) :: len(hessian) + 1] += (
        gradient[size:] + by_vv * numbers**2
    )
    if problem.has_matrix:
        gradient[:size] += own.T @ by_x
        mixed = own.T * (by_xv * numbers)
        hessian[:size, size:] += mixed
        hessian[size:, :size] += mixed.T
        # exp(S) = 1 + S + S²/2: the last term of every quadratic form x·exp(S)x.
        second = (frame.T * weighted) @ frame + (root.T * by_x) @ root
        products = (basis @ second).transpose(0, 2, 1).reshape(size, -1)
        hessian[:size, :size] += basis.reshape(size, -1) @ products.T
        omega = problem.determinant_weight
        rows, columns, _ = _pairs(letters)
        gradient[:size][rows == columns] -= omega
        value -= 2 * omega * float(np.linalg.slogdet(root)[1])
    return PositivePoint(root, numbers, value, arguments, gradient, hessian, features)


def unpacked(coordinates: Array, size: int) -> Array:
    """Return the symmetric matrix with these coordinates in :func:`symmetric_basis`."""
    rows, columns, _ = _pairs(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = coordinates
    matrix[columns, rows] = coordinates
    return matrix


def _quadratic_features(vectors: Array) -> Array:
    """Return x·Ex for every basis matrix E and every row x."""
    rows, columns, factor = _pairs(vectors.shape[1])
    product: Array = vectors[:, rows] * vectors[:, columns] * factor
    return product


@lru_cache(maxsize=32)
def _pairs(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, 2.0)
