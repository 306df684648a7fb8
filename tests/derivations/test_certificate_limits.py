"""A proof that cannot end in reasonable time is refused at once, not after minutes."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import sympy as sp

import giantstep as gs
from giantstep.derivations.certificates import proof
from giantstep.derivations.kernels.certified import enclosed_parameter
from giantstep.errors import CertificationError, ParameterError
from giantstep.numeric.proofs.panels import WorkLimitError

pytest.importorskip("flint")


def square_root():
    x, a = sp.symbols("x a", positive=True)
    system = gs.SaddlePointSystem.from_fixed_point(
        {x: (x + a / x) / 2}, name="root", parameters=(a,), outputs={"square": x**2}
    )
    return gs.lower(system).lowered


def proven(digits=15):
    parameters = {"a": enclosed_parameter(sp.Integer(2), 4000)}
    floats = {"x": 1.4142135623730951, "square": 2.0}
    return proof.certify(square_root(), lambda wanted: parameters, floats, digits=digits)


def test_digits_of_integrals_have_a_bound():
    lowered = SimpleNamespace(program=SimpleNamespace(tables=(sp.Symbol("node"),)))
    begin = time.process_time()
    with pytest.raises(CertificationError, match=r"at most 200 digits .* got digits=201"):
        proof.certify(lowered, None, {}, digits=proof.MOST_DIGITS_OF_INTEGRALS + 1)
    assert time.process_time() - begin < 1


def test_digits_without_integrals_have_no_such_bound():
    assert proven(digits=300)["square"].contains(2)


@pytest.mark.parametrize(
    ("value", "radius", "digits", "missing"),
    [
        ("1", "0", 20, 0),
        ("3", "2.9e-20", 20, 0),
        ("-3", "2.9e-20", 20, 0),
        ("3", "3.1e-20", 20, 1),
        ("1e-5", "1.5e-20", 20, 6),
        ("1", "1.5e-12", 20, 9),
        # Next to zero twice as many decimal places are enough.
        ("0", "0.9e-40", 20, 0),
        ("0", "1.5e-40", 20, 1),
        ("1e-30", "0.9e-40", 20, 0),
        ("0", "1.5e-37", 20, 4),
    ],
)
def test_missing_digits_are_those_of_the_size_of_a_value(value, radius, digits, missing):
    flint = pytest.importorskip("flint")
    ball = flint.arb(value) + flint.arb(0, flint.arb(radius))
    assert max(proof._missing(ball, digits), 0) == missing


@pytest.mark.parametrize(("kind", "times"), [(WorkLimitError, 1), (CertificationError, 2)])
def test_what_is_too_much_work_is_not_tried_with_more_digits(monkeypatch, kind, times):
    tried = []

    def root(*arguments, **options):
        tried.append(options["goal"])
        raise kind("too many panels")

    monkeypatch.setattr(proof, "prove_root", root)
    with pytest.raises(CertificationError, match="equations for x: too many panels"):
        proven()
    assert len(tried) == times


def test_a_certificate_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="nothing is certified"):
        replace(proven(), values={})
