"""The page of all leaps: what it says, what it leaves open, and on what it rests."""

import importlib.util
import json

import pytest

from giantstep.errors import AssumptionError, UndecidedError
from giantstep.symbolic.expressions.activations import Activation, z
from giantstep.symbolic.expressions.standing import Standing
from giantstep.symbolic.leaps import leap_report
from giantstep.symbolic.leaps.leap_report import leaps

PARTS = ("filtration", "coordinate_leap", "isotropic_leap", "generative_leap")


def test_consequences_follow_from_the_leap_they_name():
    # Coordinate leap 3 by He3 alone; generative exponent 1; one direction.
    report = leaps("He(3, x1)")
    step, sparse, isotropic, labels = report.consequences
    assert "n ≍ d^3 samples" in step.statement and step.standing is Standing.THEOREM
    assert "d^3" in sparse.statement and sparse.standing is Standing.CONJECTURE
    assert "sparse in these coordinates" in sparse.statement
    assert "d^3" in isotropic.statement and "not verified" in isotropic.source
    assert "n ≍ d samples" in labels.statement and labels.source == "arXiv 2403.05529"


def test_the_two_forms_of_the_conjecture_may_differ():
    # In its coordinates all terms bring one new coordinate; He3 along (1, -1) is seen from there.
    report = leaps("(x1 + x2)**2 + x1 + x2 + (x1 - x2)**3 - 6*(x1 - x2)")
    assert (report.coordinate_leap, report.isotropic_leap) == (1, 3)
    texts = [c.statement for c in report.consequences]
    assert any("d^2" in text and "sparse" in text for text in texts)
    assert any("d^3" in text and "rotation-invariant" in text for text in texts)
    assert not any("one direction" in text for text in texts)


@pytest.mark.parametrize(
    ("target", "samples"), [("x1**2*exp(-x1**2)", "d^2"), ("He(4, x1)", "d"), ("relu(x1)", "d")]
)
def test_samples_for_one_direction_are_half_the_exponent(target, samples):
    (text,) = [c.statement for c in leaps(target).consequences if "one direction" in c.statement]
    assert text.endswith(f"n ≍ {samples} samples")


def test_bounds_that_do_not_meet_promise_nothing():
    # mu_2(z erf z) = mu_3(erf) + 2 mu_1(erf) = 8/(3 sqrt(3 pi)): even, and without He_2.
    report = leaps("x1*erf(x1) - 4*x1**2/(3*sqrt(3*pi))")
    assert report.leap_index == 4 and report.generative_leap.bounds == "2 to 4"
    assert not any("one direction" in c.statement for c in report.consequences)


def _refuse(_):
    raise UndecidedError("it cannot be decided\nwith details")


@pytest.mark.parametrize("part", PARTS)
def test_what_is_undetermined_leaves_the_rest(monkeypatch, part):
    name = "leap_filtration" if part == "filtration" else part
    monkeypatch.setattr(leap_report, name, _refuse)
    report = leaps("x1*x2")
    assert getattr(report, part) is None and dict(report.undetermined) == {
        part: "it cannot be decided"
    }
    assert all(getattr(report, other) is not None for other in PARTS if other != part)
    assert "?  undetermined: it cannot be decided" in str(report)
    assert "?" in repr(report) and "it cannot be decided" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))[part] is None
    assert report.latex().count(r"\\") == len(PARTS) - 1
    about = {"coordinate_leap": "sparse", "isotropic_leap": "rotation-invariant form"}
    if part in about:
        assert not any(about[part] in c.statement for c in report.consequences)


def test_a_parity():
    report = leaps("sign(x1*x2*x3*x4)")
    assert report.leap_index == report.coordinate_leap == report.isotropic_leap == 4
    assert report.generative_leap.value == 4  # two values


@pytest.mark.skipif(importlib.util.find_spec("flint") is not None, reason="needs its absence")
def test_without_python_flint_it_is_said_what_would_help():
    report = leaps("tanh(x1) + x2")
    assert report.leap_index == 1 and report.isotropic_leap is None
    assert "python-flint" in report.undetermined["isotropic_leap"]


def test_presentations():
    report = leaps("x1 + x2*x3")
    assert repr(report) == (
        "LeapReport(x1 + x2*x3: leap index 1, coordinate leap 2, rotation-invariant leap 2, "
        "generative leap 2)"
    )
    page = report._repr_html_()
    # One row for each index, and one for the second part of the last proof.
    assert page.count("<tr>") == 6 and "<ul>" in page and "→" in page
    assert r"\mathrm{genLeap}" in report.latex()


def test_names_are_escaped():
    page = leaps(Activation("<b>", z**3))._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;" in page


def test_a_constant_is_refused():
    with pytest.raises(AssumptionError, match="is constant"):
        leaps("cos(x1)**2 + sin(x1)**2")
