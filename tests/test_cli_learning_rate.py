"""Flags for learning rates, finite width and the joint optimum."""

from __future__ import annotations

import pytest

PAIR = ("--student", "tanh", "--teacher", "sin")


def test_a_learning_rate_becomes_a_step(run):
    code, out, err = run(
        "curve", *PAIR, "--learning-rate", "3", "--convention", "dimension",
        "--beta", "2", "--alpha", "1.5", "--table-only",
    )  # fmt: skip
    # Test error at s = 3/2: 0.06756.
    assert (code, err) == (0, "") and "s = 1.5," in out and "0.06756" in out


def test_a_finite_width(run):
    code, out, err = run("solve", *PAIR, "--alpha", "3", "--width", "1000")
    assert (code, err) == (0, "")
    assert "finite-width correction for p = 1000" in out and "0.03272444" in out


def test_the_quality_is_stated_without_a_python_warning(run):
    code, out, err = run(
        "solve", "--student", "sin", "--teacher", "sin", "--alpha0", "1", "--alpha", "3"
    )
    assert (code, err) == (0, "")
    assert "has a relative spread of" in " ".join(out.split()) and "deviate by some per cent" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("curve", "--convention", "dimension", "--table-only"), "give that, too"),
        (("curve", "--learning-rate", "1", "--step-size", "1"), "not both"),
        (("solve", "--learning-rate", "1", "--convention", "dim"), "sqrt-dimension"),
        (("solve", "--width", "0"), "--width"),
        (("optimal", "--joint", "--ridge", "1"), "leave out --ridge"),
        (("optimal", "--joint", "--learning-rate", "1"), "leave out --learning-rate"),
        (("optimal", "--joint", "--digits", "9"), "leave out --digits"),
        (("optimal", "--step-bounds", "1:2"), "--joint"),
        (("optimal", "--what", "step-size", "--learning-rate", "1"), "--learning-rate is what"),
    ],
)
def test_contradictions_are_refused(run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and message in err and err.count("\n") == 1


@pytest.mark.slow
def test_joint_optimum(run):
    code, out, err = run(
        "optimal", "--joint", "--student", "erf", "--teacher", "erf", "--alpha0", "4",
        "--alpha", "1.5", "--bounds", "0.01:10", "--step-bounds", "1:5",
    )  # fmt: skip
    assert (code, err) == (0, "")
    # Newton's method in both; the single optima agree with it.
    assert "optimal ridge      0.1930292717" in out and "optimal step_size  2.371059338" in out
