"""What tests of numbers share."""

import pytest


@pytest.fixture
def precision():
    """The working precision of python-flint, which is one for all threads."""
    flint = pytest.importorskip("flint")
    from giantstep.symbolic.gaussian.enclosures import PRECISION

    from .proofs.certified_cases import BITS

    with PRECISION, flint.ctx.workprec(BITS):
        yield
