"""Numbers of python-flint inside passes over nodes."""

import pytest

from giantstep.numeric.fast_nodes import fast_nodes
from giantstep.runtime.precision import local_context


def test_nodes_are_balls_inside_and_the_context_is_as_before_after_it():
    flint = pytest.importorskip("flint")
    ctx = local_context(30)
    usual, bits = ctx.tanh, flint.ctx.prec
    with fast_nodes(ctx):
        x = ctx.node_number(ctx.mpf(1) / 3)
        assert isinstance(x, flint.arb) and isinstance(ctx.tanh(x), flint.arb)
        fast, slow = ctx.mpf(ctx.tanh(x)), ctx.tanh(ctx.mpf(1) / 3)
        assert isinstance(slow, ctx.mpf)
    assert abs(fast - slow) <= 4 * ctx.eps
    assert ctx.tanh == usual and flint.ctx.prec == bits
    assert isinstance(ctx.node_number(ctx.one), ctx.mpf)
