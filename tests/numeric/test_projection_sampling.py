"""Squared norms of high degree outside a subspace, sampled."""

import numpy as np
import pytest

from giantstep.errors import ParameterError
from giantstep.numeric.projection_sampling import sample_residual


def product(x):
    # Degrees 0..2 outside {0}; norms 4 (mean), 1 + 1, 1.
    return 2 + x[:, 0] - x[:, 1] + x[:, 0] * x[:, 2]


RELU_SUM = 1 / 3 - np.sqrt(3) / np.pi + 1 / np.pi
"""Variance of relu(x1) + relu(x2) given x1 + x2."""


@pytest.mark.parametrize(
    ("function", "rows", "degree", "exact"),
    [
        (product, [], 0, 3),
        (product, [], 1, 1),
        (product, [], 2, 0),
        # x2, which is of degree 1, and x1 x3 outside of x1: of degree 1 as well.
        (product, [[2, 0, 0]], 0, 2),
        (product, [[2, 0, 0]], 1, 0),
        # (x1 + x2) x3/2 and (x1 - x2) x3/2, of squared norm 1/2 each: degrees 1 and 2.
        (product, [[1, 1, 0]], 0, 3),
        (product, [[1, 1, 0]], 1, 1 / 2),
        (product, np.eye(3), 0, 0),
        (lambda x: np.maximum(x, 0)[:, :2].sum(axis=1), [[1, 1, 0]], 0, RELU_SUM),
        (lambda x: abs(x[:, 1]) * np.sign(x[:, 0]), [[1, 0, 0]], 1, 1 - 2 / np.pi),
    ],
)
def test_known_norms(function, rows, degree, exact):
    found, error = sample_residual(function, rows, degree, dimension=3, samples=200_000)
    assert abs(found - exact) <= 5 * error + 1e-12
    assert error < 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": [[1, 0, 0], [2, 0, 0]]}, "rows must be linearly independent"),
        ({"degree": -1}, "degree"),
        ({"samples": 1}, "samples"),
        ({"function": 3}, "function"),
        ({"function": lambda x: 1 / (x[:, 0] - x[:, 0])}, "not finite"),
    ],
)
def test_wrong_arguments_are_refused(changes, message):
    arguments = {"function": product, "rows": [[1, 0, 0]], "degree": 0, "samples": 100} | changes
    with pytest.raises(ParameterError, match=message), np.errstate(divide="ignore"):
        sample_residual(**arguments, dimension=3)
