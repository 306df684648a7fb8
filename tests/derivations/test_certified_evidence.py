"""Evidence by proven intervals: it compares what it says, and finds what is wrong."""

import dataclasses
import importlib

import pytest
import sympy as sp

from giantstep import OneGradientStep, SpikedRandomFeatures
from giantstep.derivations.certificates.agreement import agreement, decided, is_rounded, overlap
from giantstep.derivations.certificates.certificate import ASSUMPTIONS, CertifiedValues
from giantstep.derivations.claims import EvidenceKind, claims
from giantstep.derivations.one_gradient_step import claims_risk
from giantstep.errors import MissingDependencyError
from giantstep.symbolic.exact.enclosures import Enclosure


def interval(text, places):
    """An interval around a decimal, with ends that are dyadic."""
    scale = sp.Integer(2) ** (4 * places + 8)
    return Enclosure(
        sp.Integer(sp.floor(sp.Rational(text) * scale)) / scale,
        sp.Integer(sp.ceiling(scale / sp.Integer(10) ** places)) / scale,
    )


@pytest.mark.parametrize("text", ["0.3333333333333333", "-2.718281828459045", "4.4e-12", "1e20"])
def test_the_number_before_rounding_is_meant(text):
    # The interval is far narrower than the rounding of the decimal, so it need not contain it.
    exact = sp.Rational(text) * (1 + sp.Rational(3, 10**17))
    found = interval(exact, 60)
    assert not found.contains(text) and is_rounded(text, found, 16)
    assert not is_rounded(text, interval(sp.Rational(text) * (1 + sp.Rational(1, 10**14)), 60), 16)


def test_an_interval_that_says_nothing_does_not_pass():
    wide = agreement({"x": (interval("0.5", 3), "0.5")}, 16, "numbers", proven=12)
    assert not wide.passed and "are wide: x" in wide.summary
    assert not agreement({}, 16, "numbers", proven=12).passed
    outside = agreement({"x": (interval("0.5", 20), "0.6")}, 16, "numbers", proven=12)
    assert not outside.passed and "are outside: x" in outside.summary
    good = agreement({"x": (interval("0.5", 20), "0.5")}, 16, "numbers", proven=12)
    assert good.passed and "at least 19 digits" in good.summary
    # A number that vanishes has places and no digits.
    assert agreement({"x": (interval("0", 20), "0")}, 16, "numbers", proven=12).passed
    assert not agreement({"x": (interval("0", 3), "0")}, 16, "numbers", proven=12).passed


@pytest.mark.parametrize("place", [8, 15])
def test_a_wrong_stored_risk_is_found(flint, monkeypatch, place):
    case = claims_risk.reference_cases()[0]
    text = case.values["trained"]
    digit = str((int(text[place + 1]) + 1) % 10)
    wrong = {**case.values, "trained": text[: place + 1] + digit + text[place + 2 :]}
    changed = dataclasses.replace(case, values=wrong)
    monkeypatch.setattr(claims_risk, "reference_cases", lambda: (changed,))
    found = claims_risk.risks()
    assert not found.passed and "1: trained" in found.summary


def test_intervals_that_touch_do_not_prove_a_difference():
    half = sp.Rational(1, 2)
    left, right = Enclosure(-half, half), Enclosure(half, half)
    assert overlap(left, right) and overlap(right, left)
    assert not overlap(left, Enclosure(sp.Integer(1), half / 2))


def test_comparisons_say_what_is_not_proven():
    assert not decided({}, "x < y").passed
    found = decided({"x < y": True, "y < z": False}, "an order")
    assert not found.passed and found.summary == "1 of 2 are not proven: y < z"
    assert decided({"x < y": True}, "an order").passed


def test_the_width_of_values_is_a_whole_interval_relative_to_its_number():
    values = {
        "x": Enclosure(sp.Integer(-2), sp.Rational(1, 4)),
        "y": Enclosure(sp.S.One, sp.S.Zero),
    }
    assert CertifiedValues("a title", values, "a statement").width == 0.25
    zero = Enclosure(sp.S.Zero, sp.Rational(1, 8))
    assert CertifiedValues("a title", {"x": zero}, "a statement").width == 0.25


def test_a_wrong_penalty_or_effective_ridge_is_found_by_integrals(flint, monkeypatch):
    case = claims_risk.reference_cases()[0]
    assert claims_risk.equivalents(("1",)).passed
    proof = claims_risk.certified_risk(case.build(), float(case.paper_ridge))
    changed = dataclasses.replace(case, paper_ridge="0.0500000000000001")
    monkeypatch.setattr(claims_risk, "reference_cases", lambda: (changed,))
    monkeypatch.setattr(claims_risk, "certified_risk", lambda *given: proof)
    found = claims_risk.equivalents(("1",))
    assert not found.passed and found.summary == "1 of 4 are not proven: 1: λ_B"


def test_without_the_package_all_of_it_is_not_available(monkeypatch):
    real = importlib.import_module

    def refuse(name, package=None):
        if name == "flint":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    checks = [
        check
        for claim in claims()
        for check in claim.proofs
        # Ranks are proven by whole numbers.
        if check.compute.__name__ != "ranks_of_population_dynamics"
    ]
    assert len(checks) >= 40
    assert sum(bool(claim.proofs) for claim in claims()) >= 31
    for check in checks:
        assert check.kind is EvidenceKind.CERTIFIED
        with pytest.raises(MissingDependencyError, match=r"giantstep\[flint\]"):
            check.run()


def test_certificates_of_models_say_what_their_equations_rest_on(flint):
    for name, words in (
        ("erf", "Gaussian equivalence is a theorem"),
        ("relu", "outside the theor"),
    ):
        model = OneGradientStep(name, "erf", alpha=2, beta=1.5, centre=True)
        *known, last = model.risk(ridge=0.1, certify=True).certificate.assumptions
        assert words in last and tuple(known) == ASSUMPTIONS


@pytest.mark.slow
def test_a_saddle_point_says_that_the_replica_method_is_assumed():
    pytest.importorskip("flint")
    model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
    certificate = model.solve(alpha=1.5, ridge=0.1, certify=True).certificate
    *known, equations, step = certificate.assumptions
    assert tuple(known) == ASSUMPTIONS
    assert "replica symmetry" in equations and "Gaussian equivalence" in step
    assert "replica symmetry" in str(certificate)
