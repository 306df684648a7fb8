"""Claims about the risk after one step: that their evidence can fail; test_claims runs it."""

import pytest

from giantstep.derivations.one_gradient_step import claims_risk
from giantstep.derivations.one_gradient_step.reference import (
    ReferenceCase,
    reference_cases,
    reference_document,
)
from giantstep.symbolic.systems import ridge_equivalent


def test_the_reference_file_is_complete():
    document = reference_document()
    assert "40-digit" in document["provenance"]["how"]
    assert "Independent of giantstep" in document["provenance"]["how"]
    cases = reference_cases()
    assert [case.name for case in cases] == [str(k) for k in range(1, 14)]
    assert {len(case.values) for case in cases} == {17}
    assert len(document["large_step_bound"]) == 10
    assert [row["row"] for row in document["simulated_network"]] == list("ABCDEFGHI")


def test_a_wrong_reference_value_is_found(monkeypatch):
    first, *others = reference_cases()
    wrong = {**first.values, "trained": "0.2826117955031129"}
    changed = ReferenceCase(first.name, first.model, first.paper_ridge, wrong)
    monkeypatch.setattr(claims_risk, "reference_cases", lambda: (changed, *others))
    assert not claims_risk.reference_values().passed


@pytest.mark.slow
def test_a_wrong_closed_form_fails_algebra(monkeypatch):
    original = ridge_equivalent.ScalarForm.bias
    monkeypatch.setattr(
        ridge_equivalent.ScalarForm,
        "bias",
        lambda self, spike=ridge_equivalent.NO_SPIKE: original(self, spike) / self.s,
    )
    found = claims_risk.algebra()
    assert not found.passed and "squared bias" in found.summary
    assert not claims_risk.properties().passed


def test_quadrature_notices_a_wrong_woodbury_identity(monkeypatch):
    original = claims_risk.spiked_resolvent
    monkeypatch.setattr(
        claims_risk, "spiked_resolvent", lambda m, part, spike: original(m, 2 * part, spike)
    )
    assert not claims_risk.deterministic_equivalent(("1",), 20).passed


def test_a_wrong_theory_is_found_by_simulation(monkeypatch):
    # Networks with noisier labels than the theory that they are held against.
    original = claims_risk.model_of

    def noisy(given):
        model = original({**given, "noise_variance": "1.0"})
        silent = original(given)

        class Disguised:
            def simulate(self, *args, **options):
                found = model.simulate(*args, **options)
                right = silent.risk(ridge=options["ridge"]).initial
                return found.assign(risk_initial_theory=found.risk_initial_theory * 0 + right)

        return Disguised()

    monkeypatch.setattr(claims_risk, "model_of", noisy)
    assert not claims_risk.networks("A", 80, 16, "gaussian").passed


@pytest.mark.parametrize("features", ["gaussian", "network"])
def test_nothing_is_added_to_the_standard_error(features):
    details = claims_risk.networks("A", 40, 4, features).details
    for name, (mean, error, limit) in details["mean_error_limit"].items():
        assert details["scores"][name] == pytest.approx((mean - limit) / error, rel=1e-12)


@pytest.mark.parametrize("name", ["1", "6", "13"])
def test_cases_build_their_models(name):
    case = next(case for case in reference_cases() if case.name == name)
    model = case.build()
    assert model.centre and model.alpha == float(case.model["alpha"])
