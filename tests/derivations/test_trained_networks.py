"""What is measured of networks that take giant steps, against sums over all neurons."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from giantstep.derivations.giant_steps.learned_directions import PARTS, take_giant_steps
from giantstep.errors import ParameterError
from giantstep.numeric.networks import network as network_module, run as runner
from giantstep.numeric.networks.layer import FeatureClass, SpikedRows
from giantstep.numeric.networks.network import Network, Training
from giantstep.numeric.networks.readout import RidgeReadout
from giantstep.numeric.networks.samples import INITIAL


def tanh_derivative(u):
    return 1 / np.cosh(u) ** 2


def target(x):
    return 0.3 + x[:, 0] + (x[:, 0] ** 2 - 1) * x[:, 1]


SMALL = Network(
    student=np.tanh, student_derivative=tanh_derivative, teacher=target, directions=2,
    dimension=12, width=12, steps=2, step_samples=3000, step_size=1.3, readout="gaussian",
    biases="gaussian", paired=True, replicas=2, noise_variance=0.2,
)  # fmt: skip


def run(network=SMALL, readout=None, **options):
    return take_giant_steps(
        network, readout, **({"seeds": 2, "seed": 9, "progress": False} | options)
    )


def written_out(network, index, seed=9):
    """The rows after every step, which the textbook of one network checks, and what starts them."""
    training = Training(network, np.random.SeedSequence(seed, spawn_key=(index,)))
    history, excess = [training.layer.rows.copy()], [np.eye(network.directions)]
    for _ in range(network.steps):
        training.step()
        history.append(training.layer.rows.copy())
        excess.append(training.excess)
    half = network.width // 2 if network.paired else network.width
    generator = training.samples.generator(INITIAL)
    groups = half // network.replicas
    group = np.arange(half) * groups // half
    if network.readout == "gaussian":
        a = generator.standard_normal(groups)[group]
    elif network.readout == "signs":
        a = np.ones(half)
    else:
        a = np.repeat(network.readout, half // len(network.readout))
    b = np.zeros(half)
    if network.biases == "gaussian":
        b = generator.standard_normal(groups)[group]
    if network.paired:
        a, b = np.concatenate([a, -a]), np.tile(b, 2)
    return np.array(history), a, b, np.array(excess)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"preprocess": True, "biases": "none", "readout": "signs", "replicas": 1},
        {"paired": False, "width": 7, "replicas": 3},
        {"width": 10, "replicas": 2, "steps": 3},
        {"readout": (0.5, 2.0), "width": 16, "replicas": 2},
        {"directions": 1, "teacher": lambda x: x + x**2},
    ],
)
def test_steps_and_measurements_are_what_is_said(changes, monkeypatch):
    monkeypatch.setattr(network_module, "HIDDEN_ENTRIES", 2**11)  # several slices of a block
    monkeypatch.setattr(network_module, "FEWEST_ROWS", 100)
    network = replace(SMALL, **changes)
    r, blocks = network.directions, 12 // network.directions
    exactly = {"rtol": 1e-12, "atol": 1e-12}
    found = run(network)
    for index in (0, 1):
        w, a, b, excess = written_out(network, index)
        assert_array_equal(found.readout[index], a)
        assert_array_equal(found.biases[index], b)
        assert_allclose(found.overlaps[index], w[:, :, :r], **exactly)
        assert_allclose(found.squared_norms[index], (w**2).sum(axis=2), **exactly)
        assert_allclose(found.excess[index], excess, **exactly)
        updates = w - w[0]
        pairs = [
            (i, j)
            for i in range(len(a))
            for j in range(len(a))
            if i != j and a[i] == a[j] and b[i] == b[j]
        ]
        size = [sum(i == k for i, _ in pairs) for k in range(len(a))]
        products = {
            "weights": np.einsum("tji,tjk->tik", w, w) / len(a),
            "updates": np.einsum("tji,tjk->tik", updates, updates) / len(a),
            "shared": sum(
                updates[:, i, :, None] * updates[:, j, None, :] / size[i] for i, j in pairs
            ) / np.count_nonzero(size),
        }  # fmt: skip
        for k, (part, all_products) in enumerate(products.items()):
            for block in range(blocks):
                place = slice(r * block, r * (block + 1))
                gram = all_products[:, place, place]
                assert_allclose(found.grams[index, :, k, block], gram, **exactly)
            diagonals = np.diagonal(all_products, axis1=1, axis2=2)[:, r:]
            # What is shared is an estimate, of either sign.
            squares = (diagonals**2).mean(axis=1) ** 0.5 if part == "shared" else diagonals.mean(1)
            floor = np.sqrt(squares)
            assert_allclose(found.noise_floor(part)[index], floor, rtol=1e-10, atol=1e-12)


def test_projections_and_singular_values_are_those_of_the_rows():
    found = run()
    directions = np.array([[0.6, 0.8], [-0.8, 0.6]])
    expected = np.sqrt(((found.overlaps @ directions.T) ** 2).mean(axis=2))
    assert_allclose(found.projections(directions), expected, rtol=1e-9)
    singular = np.linalg.svd(found.overlaps, compute_uv=False) / math.sqrt(12)
    assert_allclose(found.singular_values(np.eye(2)), singular, rtol=1e-7)
    one = found.singular_values(directions[:1])
    assert_allclose(one[..., 0], expected[..., 0], rtol=1e-9)
    # In one direction the singular value is the root mean square there, over 5 of 10 directions.
    noise = found.noise_singular_values(2)
    assert noise.shape == (2, 3, 2) and np.all(noise[..., 0] >= noise[..., 1])
    assert_allclose(np.sqrt((noise**2).sum(axis=2) / 2), found.noise_floor(), rtol=1e-9)
    # Without an excess noise is the same along the target's coordinates; with it, larger.
    assert_allclose(found.noise_along(directions)[:, 0], np.tile(found.noise_floor()[:, :1], 2))
    excess = np.einsum("ki,stij,kj->stk", directions, found.excess, directions)
    largest = np.maximum.accumulate(np.maximum(excess, 1), axis=1)
    updates = found.noise_floor("updates")[..., None]
    assert largest.max() > 1
    assert_allclose(found.noise_along(directions, "updates"), updates * np.sqrt(largest))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"readout": "signs"}, [1] * 6 + [-1] * 6),
        ({"readout": (0.5, 2)}, [0.5] * 3 + [2] * 3 + [-0.5] * 3 + [-2] * 3),
        ({"readout": [3.0]}, [3] * 6 + [-3] * 6),
    ],
)
def test_readouts_with_few_values(changes, expected):
    found = run(replace(SMALL, biases="none", replicas=1, **changes), seeds=1)
    assert_array_equal(found.readout[0], expected)
    assert found.has_shared


def test_equal_biases_belong_to_one_letter():
    # Five letters of 3, 2, 2, 2, 2 pairs: no bias is shared by two of them.
    network = replace(SMALL, readout=(1.0, 2.0, 3.0, 4.0, 5.0), width=22, replicas=2)
    found = run(network, seeds=1)
    pairs = np.stack([found.readout[0], found.biases[0]], axis=1)
    letters, counts = np.unique(pairs, axis=0, return_counts=True)
    assert len(letters) == 10 and min(counts) == 2 and max(counts) == 3


def test_readouts_without_pairs():
    network = replace(SMALL, readout="signs", paired=False, width=500, step_samples=1, replicas=1)
    values = run(network, seeds=1).readout[0]
    assert set(values) == {-1.0, 1.0} and abs(values.mean()) < 0.25  # 4 standard errors
    single = run(replace(SMALL, replicas=1), seeds=1)
    assert not single.has_shared
    with pytest.raises(ParameterError, match="nothing is shared: no two neurons have the same"):
        single.projections(np.eye(2), "shared")


# ---------------------------------------------------------------------- what is learned


@settings(max_examples=8, deadline=None)
@given(
    st.integers(1, 3), st.integers(0, 6), st.integers(1, 12), st.integers(1, 3),
    st.sampled_from(["none", "gaussian", "later"]), st.booleans(), st.booleans(),
    st.sampled_from(["gaussian", "signs", (2.0,)]),
)  # fmt: skip
def test_any_small_network_gives_finite_numbers(
    r, more, width, steps, biases, paired, preprocess, readout
):
    network = Network(
        student=np.tanh, student_derivative=tanh_derivative,
        teacher=lambda x: x.reshape(len(x), -1).prod(axis=1), directions=r, dimension=2 * r + more,
        step_samples=5, width=2 * width if paired else width, steps=steps, step_size=0.5,
        readout=readout, biases=biases, paired=paired, preprocess=preprocess,
    )  # fmt: skip
    found = run(network, RidgeReadout(20, intercept=True, test_samples=5))
    for name in found.quantities:
        assert np.isfinite(found[name]).all()
    assert np.isfinite(found.noise_along(np.eye(r))).all()
    assert found.noise_singular_values(r).shape == (2, steps + 1, r)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 13}, "width must be even, neurons come in pairs; got 13"),
        ({"dimension": 1}, "dimension must be at least 2, the number of the teacher's directions"),
        ({"readout": "normal"}, "readout must be 'gaussian', 'signs' or finite values"),
        ({"readout": (0.0, 0.0)}, "readout must be"),
        ({"readout": (1.0, math.inf)}, "readout must be"),
        ({"readout": ("1",)}, "readout must be a number, got '1'"),
        ({"replicas": 7}, "replicas must be at most the number 6 of pairs, got 7"),
    ],
)
def test_bad_networks_are_refused_by_name(changes, message):
    with pytest.raises(ParameterError, match=message):
        replace(SMALL, **changes)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"seeds": 10**30}, "seeds must be at most 1000000"),
        ({"dimension": 3}, {}, "dimension must be at least 4, twice the number of coordinates"),
        (
            {"width": 2 * 10**6, "dimension": 10**6}, {},
            r"dimension=1000000, width=2000000 need .* GB of memory, this machine has",
        ),
        (
            {"step_size": 1e9, "student": np.exp, "student_derivative": np.exp}, {},
            r"student is not finite at .*\n  the weights may have grown too far in step 1; use",
        ),
        ({"teacher": lambda x: x[:, 0] / 0}, {}, "target is not finite at"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:overflow", "ignore:invalid")
def test_wrong_runs_are_refused(changes, options, message):
    with pytest.raises(ParameterError, match=message):
        run(replace(SMALL, **changes), **options)


def test_rows_with_a_spike_of_their_own_have_no_updates():
    network = Network(
        student=np.tanh, teacher=np.tanh, dimension=12, width=6,
        rows=SpikedRows(FeatureClass(spike=1.0), alignment=0.5),
    )  # fmt: skip
    with pytest.raises(ParameterError, match="directions are those of networks that take steps"):
        runner.simulate(network, "directions", seeds=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.projections([[1, 1]]), "directions must be orthonormal rows"),
        (lambda f: f.projections([[1, 0, 0]]), "directions must be rows of 2 numbers"),
        (lambda f: f.projections(np.eye(2), "rows"), f"part must be one of {', '.join(PARTS)}"),
        (lambda f: f.noise_singular_values(3), "count must be at most 2, got 3"),
        (lambda f: f.mean("risk"), "no quantity 'risk'"),
    ],
)
def test_wrong_questions_are_refused(call, message):
    found = run(seeds=1)
    with pytest.raises(ParameterError, match=message):
        call(found)
