"""Functions of arrays from two texts: shapes, kinds of numbers, a cache that cannot be written."""

import logging

import numpy as np
import pytest

from giantstep.errors import ParameterError
from giantstep.numeric.elementwise import ElementwiseFunction

PLAIN = """
def values(z):
    return z * z / 2.0


def slopes(z):
    return z


def values_and_slopes(z):
    return z * z / 2.0, z
"""
KERNEL = """from numba import njit


@njit(cache=True, nogil=True)
def values(z, out):
    for i in range(z.size):
        out[i] = z[i] * z[i] / 2.0


@njit(cache=True, nogil=True)
def slopes(z, out):
    for i in range(z.size):
        out[i] = z[i]


@njit(cache=True, nogil=True)
def values_and_slopes(z, out, slopes):
    for i in range(z.size):
        out[i] = z[i] * z[i] / 2.0
        slopes[i] = z[i]
"""
BOTH = [ElementwiseFunction(PLAIN, text, "z**2/2", True) for text in (KERNEL, "")]
CONSTANT = ElementwiseFunction("def values(z):\n    return 2.0\n", "", "2", False)


@pytest.mark.parametrize("made", BOTH, ids=["numba", "numpy"])
@pytest.mark.parametrize(
    "z",
    [np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, np.arange(12.0)[::3], 1.5,
     [2, 3], np.zeros((3, 0)), np.array([True, False]), np.arange(4.0).astype(">f8"),
     np.float32(3)],
    ids=["C", "transposed", "strided", "number", "integers", "empty", "bools", "swapped", "single"],
)  # fmt: skip
def test_shape_and_precision_are_those_of_the_argument(made, z):
    given = np.array(z)
    values, slopes = made.values_and_slopes(z)
    for found, wanted in ((values, given * given / 2.0), (slopes, given), (made(z), values)):
        assert found.shape == given.shape
        assert found.dtype == (np.float32 if given.dtype == np.float32 else np.float64)
        assert np.array_equal(found, np.asarray(wanted, float))
    assert np.array_equal(given, np.array(z))


@pytest.mark.parametrize("made", BOTH, ids=["numba", "numpy"])
def test_results_are_arrays_of_their_own(made):
    z = np.arange(3.0)
    z.flags.writeable = False
    made.slopes(z)[:] = 7.0
    assert z.tolist() == [0.0, 1.0, 2.0]


def test_a_constant_fills_its_array():
    assert CONSTANT(np.zeros((2, 2))).tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("made", BOTH, ids=["numba", "numpy"])
@pytest.mark.parametrize("z", [np.array([1j]), ["a"], np.array([None]), np.zeros(1, "m8[s]")])
def test_what_is_no_real_number_is_refused(made, z):
    with pytest.raises(ParameterError, match=r"of 'z\*\*2/2' must be an array of real numbers"):
        made(z)


def test_without_a_folder_for_machine_code_numpy_computes_and_says_so(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    made = ElementwiseFunction(PLAIN, KERNEL, "z**2/2", True, str(tmp_path / "file" / "folder"))
    with caplog.at_level(logging.WARNING):
        assert made(np.array([2.0, 4.0])).tolist() == [2.0, 8.0]
        made.slopes(np.zeros(2))
    assert [r.getMessage()[:31] for r in caplog.records] == ["'z**2/2' is computed by NumPy, "]
