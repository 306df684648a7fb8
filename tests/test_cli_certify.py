"""Proofs by intervals on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import sympy as sp

Run = Callable[..., tuple[int, str, str]]
RISK = ("one-step", "risk", "--student", "erf", "--teacher", "erf")


def test_risks_with_a_proof(run, tmp_path):
    pytest.importorskip("flint")
    out = tmp_path / "risk.json"
    code, text, _ = run(*RISK, "--certify", "--out", out)
    assert code == 0 and "Proven" in text and "risk_trained" in text
    document = json.loads(out.read_text())
    assert "risk_trained" in document["certificate"]["values"]


def test_solve_asks_for_the_proof_and_keeps_it(run, tmp_path, monkeypatch):
    from giantstep import cli_curve
    from giantstep.derivations.certificates.certificate import Certificate
    from giantstep.symbolic.exact.enclosures import Enclosure

    quarter = Enclosure(sp.Rational(1, 4), sp.Rational(1, 1024))
    proof = Certificate(
        "a_system", {"alpha": "2"}, {"test_error": quarter}, {"V1": quarter}, 20, 64, 3, 0.5,
        "Proven: a statement.",
    )  # fmt: skip
    asked: list[tuple[float, float, dict[str, object]]] = []

    class Model:
        def solve(self, alpha, ridge, **given):
            asked.append((alpha, ridge, given))
            return SimpleNamespace(certificate=proof if given.get("certify") else None)

    monkeypatch.setattr(cli_curve, "model_from", lambda arguments: Model())
    monkeypatch.setattr(cli_curve, "describe_model", lambda *given: "a model")
    out = tmp_path / "proof.json"
    point = ("solve", "--alpha", 2, "--ridge", 0.5)
    code, text, _ = run(*point, "--certify", "--digits", 20, "--out", out)
    assert code == 0 and "Proven: a statement." in text and "test_error  0.25" in text
    assert Certificate.load(out) == proof
    assert "Proven" not in run(*point)[1]
    assert asked == [(2.0, 0.5, {"certify": True, "digits": 20}), (2.0, 0.5, {})]


@pytest.mark.slow
def test_a_saddle_point_with_a_proof(run, tmp_path):
    pytest.importorskip("flint")
    from giantstep.derivations.certificates.agreement import is_rounded
    from giantstep.derivations.certificates.certificate import Certificate
    from giantstep.derivations.spiked_random_features.published import reference_cases

    case = reference_cases()[0]
    out = tmp_path / "proof.json"
    code, text, _ = run(
        "solve", "--student", "erf", "--teacher", "erf", "--step-size", "2", "--alpha0", "4",
        "--alpha", case.alpha, "--certify", "--out", out,
    )  # fmt: skip
    assert code == 0 and text.endswith(f"Wrote {out}\n") and "Proven" in text
    stored = Certificate.load(out)
    assert is_rounded(case.values["test_error"], stored["test_error"], 25)
    assert [path.name for path in tmp_path.iterdir()] == ["proof.json"]


@pytest.mark.parametrize("arguments", [("solve",), RISK], ids=["solve", "risk"])
def test_without_the_package_the_command_says_what_to_install(run, without_flint, arguments):
    code, out, err = run(*arguments, "--certify")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and "giantstep[flint]" in err
