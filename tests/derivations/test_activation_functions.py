"""Activations as functions of arrays: each is what mpmath says, at every entry, in every thread."""

import math
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
import sympy as sp

from giantstep.derivations.activation_functions import cached_elementwise, elementwise
from giantstep.errors import AssumptionError, EmissionError
from giantstep.numeric.cache import FileCache
from giantstep.symbolic.expressions.activations import Activation, activation, z
from giantstep.symbolic.printing.array_kernels import HALF_PI_PARTS, LARGEST_ANGLE

CONTEXT = mpmath.mp.clone()
CONTEXT.prec = 200

# (expression, value, slope) of functions that consist of one call.
VECTORISED = {
    "erf": (sp.erf(z), CONTEXT.erf, lambda x: 2 / CONTEXT.sqrt(CONTEXT.pi) * CONTEXT.exp(-x * x)),
    "tanh": (sp.tanh(z), CONTEXT.tanh, lambda x: CONTEXT.sech(x) ** 2),
    "sin": (sp.sin(z), CONTEXT.sin, CONTEXT.cos),
    "cos": (sp.cos(z), CONTEXT.cos, lambda x: -CONTEXT.sin(x)),
    "exp": (sp.exp(z), CONTEXT.exp, CONTEXT.exp),
    "sech": (sp.sech(z), CONTEXT.sech, None),
    "sigmoid": (activation("sigmoid").expr, lambda x: 1 / (1 + CONTEXT.exp(-x)), None),
    "softplus": (
        activation("softplus").expr,
        lambda x: CONTEXT.log1p(CONTEXT.exp(x)),
        lambda x: 1 / (1 + CONTEXT.exp(-x)),
    ),
}


def function(name):
    """An activation by its name, or a function that is not square integrable."""
    return elementwise(Activation(name, VECTORISED[name][0]))


def points(name):
    """Normal ones, all orders of magnitude, neighbourhoods of places where a form changes."""
    rng = np.random.default_rng(7)
    signs = rng.choice([-1.0, 1.0], 600)
    places = np.array([0.0, 0.625, 0.84375, 6.0, math.pi / 4, 0.3465735902799727, 18.0, 40.0])
    found = [
        3 * rng.standard_normal(1500), signs * 2.0 ** rng.uniform(-80, 10, 600),
        (places + 1e-9 * rng.standard_normal((40, 1))).ravel(), -places, rng.uniform(-1, 1, 500),
    ]  # fmt: skip
    if name in ("sin", "cos"):
        turns = np.arange(1, 63_000, 251) * (math.pi / 2)
        found += [turns, -turns, np.nextafter(turns, 0), rng.uniform(-1e5, 1e5, 500)]
        found += [LARGEST_ANGLE * np.array([1 - 1e-15, 1 + 1e-15]), rng.uniform(-1e9, 1e9, 100)]
    if name in ("exp", "sigmoid", "softplus", "sech"):
        found += [rng.uniform(-746, 711, 500), [-708.4, 709.78, 709.79, -745.2, -750.0, 1e300]]
    return np.concatenate(found)


def units(values, wanted):
    """Largest error in units in the last place; infinite ones must be the same."""
    largest = 0.0
    for value, exact in zip(values, wanted, strict=True):
        rounded = float(exact)
        if math.isinf(rounded) or math.isinf(value):
            assert value == rounded
        else:
            error = abs(CONTEXT.mpf(float(value)) - exact)
            largest = max(largest, float(error / np.spacing(abs(rounded))))
    return largest


@pytest.mark.parametrize("name", VECTORISED)
def test_values_are_right_to_two_units_in_the_last_place(name):
    made, x = function(name), points(name)
    assert made.kernel
    assert units(made(x), [VECTORISED[name][1](CONTEXT.mpf(float(v))) for v in x]) <= 2


@pytest.mark.parametrize("name", [name for name, case in VECTORISED.items() if case[2]])
def test_slopes_are_right_up_to_what_their_formulas_lose(name):
    # 1 - tanh(x)² cancels, and exp(-x*x) has x² units of the rounding of its argument.
    x = points(name)
    found = function(name).slopes(x)
    wanted = np.array([float(VECTORISED[name][2](CONTEXT.mpf(float(v)))) for v in x])
    finite = np.isfinite(wanted)
    assert np.array_equal(found[~finite], wanted[~finite])
    lost = {"tanh": 1e-15, "erf": 1e-15}.get(name, 0.0)
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-15, atol=lost)


def test_the_parts_of_a_quarter_turn_add_up_to_it_and_have_exact_multiples():
    assert abs(sum(map(CONTEXT.mpf, HALF_PI_PARTS)) - CONTEXT.pi / 2) < CONTEXT.mpf(2) ** -128
    for part in HALF_PI_PARTS[:2]:
        mantissa, _ = math.frexp(part)
        assert (mantissa * 2**37).is_integer()
    # 37 and 16 bits are the 53 of a number.
    assert LARGEST_ANGLE < 2**16 * math.pi / 2


@pytest.mark.parametrize(
    "text",
    ["gelu", "max(sin(3*z)**2, 0)*tanh(z) - z**7/9", "erf(z)*cos(z) + sqrt(1 + z**2)",
     "sign(z)*z**2*exp(-z**2/2)"],
)  # fmt: skip
def test_loops_and_numpy_give_the_same_up_to_rounding(text):
    made = elementwise(activation(text))
    assert made.kernel
    plain = type(made)(made.plain, "", made.name, made.differentiable)
    x = np.random.default_rng(1).standard_normal((50, 41)) * 3
    for part in ("__call__", "slopes"):
        ours, numpys = getattr(made, part)(x), getattr(plain, part)(x)
        # Sums cancel: relative to their terms, which are of order one and larger.
        scale = np.maximum(1.0, np.abs(x)) ** 3
        assert np.all(np.abs(ours - numpys) <= 1e-15 * np.maximum(np.abs(numpys), scale))


@pytest.mark.parametrize(
    ("text", "at"),
    [("relu", (np.nan, np.inf, 0.0)), ("erf", (np.nan, 1.0, -1.0)), ("tanh", (np.nan, 1.0, -1.0)),
     ("sigmoid", (np.nan, 1.0, 0.0)), ("sin", (np.nan, np.nan, np.nan)),
     ("softplus", (np.nan, np.inf, 0.0)),
     ("sign", (np.nan, 1.0, -1.0)), ("abs(z)", (np.nan, np.inf, np.inf))],
)  # fmt: skip
def test_what_is_not_finite_stays_so_and_leaves_its_neighbours_alone(text, at):
    made = elementwise(activation(text))
    x = np.random.default_rng(2).standard_normal(1003)
    wanted = made(x)
    x[[10, 500, 1002]] = np.nan, np.inf, -np.inf
    wanted[[10, 500, 1002]] = at
    np.testing.assert_array_equal(made(x), wanted)
    if made.differentiable:
        values, slopes = made.values_and_slopes(x)
        np.testing.assert_array_equal(values, wanted)
        assert np.isnan(slopes[10])


@pytest.mark.parametrize("text", ["erf", "tanh", "sin", "relu", "atan(z)"])
def test_an_entry_knows_nothing_of_its_neighbours_and_of_what_else_is_asked(text):
    made = elementwise(activation(text))
    x = np.random.default_rng(3).standard_normal((7, 301))
    x[2, 100] = 3e7  # far out for sin
    values, slopes = made(x), made.slopes(x)
    both = made.values_and_slopes(x)
    assert np.array_equal(both[0], values) and np.array_equal(both[1], slopes)
    for part in (np.s_[1:2, 5:6], np.s_[:, ::3], np.s_[::-1], np.s_[2, 99:108]):
        assert np.array_equal(made(x[part]), values[part])
        assert np.array_equal(made.slopes(x[part]), slopes[part])


@pytest.mark.parametrize("text", ["erf", "tanh", "sin", "relu", "gelu", "atan(z)"])
def test_single_precision_is_the_rounded_double(text):
    made = elementwise(activation(text))
    x = np.random.default_rng(4).standard_normal((20, 33)).astype(np.float32)
    values, slopes = made.values_and_slopes(x)
    assert values.dtype == slopes.dtype == np.float32
    if made.kernel:
        assert np.array_equal(values, made(x.astype(float)).astype(np.float32))
    np.testing.assert_allclose(values, made(x.astype(float)), rtol=3e-7)
    np.testing.assert_allclose(slopes, made.slopes(x.astype(float)), rtol=3e-6, atol=1e-7)


def test_threads_share_a_function():
    made = elementwise(activation("erf(z) + sin(z)/3"))
    x = np.random.default_rng(5).standard_normal((8, 2**13))
    # The first call, which compiles, is in all threads at once.
    gate = threading.Barrier(4)

    def work(k):
        gate.wait()
        return [made.values_and_slopes(row) for row in x]

    with ThreadPoolExecutor(4) as pool:
        found = [np.array(rows) for rows in pool.map(work, range(4))]
    for other in found[1:]:
        assert np.array_equal(found[0], other)


def test_another_process_gives_the_same_numbers(tmp_path):
    made = elementwise(activation("tanh"))
    x = np.linspace(-3, 3, 101)
    made(x)  # what is loaded does not travel
    program = (
        "import pickle, sys; made, x = pickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(pickle.dumps(made.values_and_slopes(x)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps((made, x)), capture_output=True, check=True, env=environment,
    )  # fmt: skip
    assert np.array_equal(pickle.loads(run.stdout), made.values_and_slopes(x))
    assert pickle.loads(pickle.dumps(made)) == made


def test_numpy_computes_what_has_no_vectorised_form():
    made = elementwise(activation("log(1 + z**2)"))
    assert made.kernel == ""
    np.testing.assert_allclose(made(np.array([1.0, -2.0])), np.log([2.0, 5.0]), rtol=1e-15)
    assert made.slopes(np.array([[1.0]])).tolist() == [[1.0]]


def test_what_neither_form_has_is_refused():
    with pytest.raises(EmissionError, match="has no rule for erfi"):
        elementwise(Activation("erfi", sp.erfi(z)))


def test_a_function_that_jumps_has_values_only():
    sign = elementwise(activation("sign"))
    assert sign(np.array([-2.0, 0.0, 3.0])).tolist() == [-1.0, 0.0, 1.0]
    for asked in (sign.slopes, sign.values_and_slopes):
        with pytest.raises(AssumptionError, match="'sign' has no weak derivative: it jumps"):
            asked(np.zeros(3))


def test_texts_are_derived_once_and_kept_with_their_machine_code(tmp_path):
    cache = FileCache(tmp_path)
    made = cached_elementwise(cache, "tanh")
    assert made(0.0) == 0.0
    assert cached_elementwise(cache, "tanh") == made
    assert {file.suffix for file in tmp_path.rglob("elementwise_*")} >= {".py", ".nbi", ".nbc"}
