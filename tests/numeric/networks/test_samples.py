"""Blocks of samples: drawn again, extended, and of a size that follows from the dimension."""

import numpy as np
from numpy.testing import assert_array_equal

from giantstep.numeric.networks import samples
from giantstep.numeric.networks.samples import Samples, checked_channel


def product(x):
    """Return a target of two coordinates."""
    return x[:, 0] * x[:, 1]


def made(dimension=3, seed=11, **options):
    """Return samples with noise."""
    return Samples(
        product, np.eye(2, dimension), checked_channel("regression", 0.5), seed, **options
    )


def drawn(stream, count, purpose=0, start=0):
    """Return all inputs and labels."""
    blocks = [
        (block.inputs.copy(), block.labels) for block in stream.blocks(purpose, count, start=start)
    ]
    return np.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])


def test_blocks_do_not_change_what_follows():
    stream = made()
    whole, labels = drawn(stream, 2500)
    fewer, fewer_labels = drawn(stream, 1300)
    assert stream.block_rows == 1024
    assert_array_equal(whole[:1300], fewer)
    assert_array_equal(labels[:1300], fewer_labels)
    later, later_labels = drawn(stream, 2500, start=1299)
    assert_array_equal(later, whole[1299:])
    assert_array_equal(later_labels, labels[1299:])
    other, _ = drawn(stream, 1300, purpose=1)
    assert abs(np.corrcoef(other[:, 0], fewer[:, 0])[0, 1]) < 0.15


def test_a_block_of_a_large_dimension_stays_small():
    assert made(10**6).block_rows * 10**6 <= samples.BLOCK_ENTRIES


def test_single_precision_has_the_same_numbers_rounded():
    wide, labels = drawn(made(), 1500)
    narrow, same = drawn(made(single=True), 1500)
    assert narrow.dtype == np.float32
    assert_array_equal(narrow, wide.astype(np.float32))
    assert_array_equal(labels, same)


def test_checkpoints_and_progress_see_every_block():
    seen = []
    stream = made(checkpoint=lambda: seen.append("block"), drawn=seen.append)
    drawn(stream, 2500)
    assert seen == ["block", 1024, "block", 1024, "block", 452]
