"""Orthonormal bases of nearly collinear columns, against exact dependences."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantstep.errors import ConvergenceError
from giantstep.numeric.column_span import column_span


def powers(ctx, step):
    nodes = [ctx.mpf(k) / 7 for k in range(-14, 15)]
    rates = [ctx.mpf(1) + k * ctx.mpf(step) for k in range(3)]
    return nodes, [[ctx.exp(r * x) for x in nodes] for r in rates]


@pytest.fixture
def ctx():
    context = mpmath.mp.clone()
    context.dps = 60
    return context


@pytest.mark.parametrize("step", ["1e-2", "1e-9"])
def test_basis_spans_the_derivatives(ctx, step):
    nodes, columns = powers(ctx, step)
    span = column_span(ctx, columns, [ctx.one / 29] * 29, 50)
    assert span.rank == 3
    assert_allclose(span.basis.T @ span.basis / 29, np.eye(3), atol=1e-14)
    x = np.array([float(n) for n in nodes])
    # exp(x), x exp(x), x² exp(x) up to order step.
    wanted = np.exp(x)[:, None] * x[:, None] ** np.arange(3)
    left = wanted - span.basis @ (span.basis.T @ wanted) / 29
    assert np.max(np.abs(left)) < 30 * float(step) + 1e-13


def test_dependent_columns_and_the_least_combination(ctx):
    _, columns = powers(ctx, "0.5")
    columns = [columns[0], columns[1], [-2 * x for x in columns[0]], [ctx.zero] * 29]
    span = column_span(ctx, columns, [ctx.one] * 29, 50)
    assert span.rank == 2
    matrix = np.array([[float(x) for x in c] for c in columns]).T
    assert_allclose(matrix @ span.null, 0, atol=1e-12)
    found = span.least(np.array([1.0, -0.5]), np.array([1.0, 1.0, 2.0, 1.0]))
    assert_allclose(matrix @ found, span.basis @ [1.0, -0.5], atol=1e-12)
    # Least in units of the scale: orthogonal to what vanishes.
    scaled = found / np.array([1.0, 1.0, 2.0, 1.0]) ** 2
    assert_allclose(span.null.T @ scaled, 0, atol=1e-12)


def test_too_close_columns_are_refused(ctx):
    _, columns = powers(ctx, "1e-20")
    with pytest.raises(ConvergenceError, match="does not tell how"):
        column_span(ctx, columns, [ctx.one / 29] * 29, 50)
    span = column_span(ctx, columns, [ctx.one / 29] * 29, 50, drop=True)
    assert span.rank == 2 and not span.complete
    assert span.without_last().rank == 1
