"""``giantstep claims`` and ``giantstep verify`` with Python files of users."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import sympy as sp

from giantstep.derivations import claims as registry
from giantstep.derivations.claims import Evidence, EvidenceKind, Verdict

CLAIM = """
import sympy as sp
import giantstep as gs
from beside import SQUARE

gs.declare_claim(
    "{name}", title="A square", statement="$«square»$", source="here", status="theorem",
    formulas={{"square": SQUARE}},
)

@gs.evidence("{name}", "exact", "its root")
def root():
    return gs.Finding(sp.sqrt(SQUARE) == {root}, "the root")
"""
BESIDE = "import sympy as sp\nSQUARE = sp.Symbol('u', positive=True) ** 2\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    registry.claims()
    known = {name: replace(d, checks=dict(d.checks)) for name, d in registry._DECLARED.items()}
    monkeypatch.setattr(registry, "_DECLARED", known)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    (tmp_path / "beside.py").write_text(BESIDE)

    def write(file, text):
        path = tmp_path / file
        path.write_text(text)
        return str(path)

    return write


def test_claims_of_a_file_are_verified_alone(run, write):
    file = write("mine.py", CLAIM.format(name="square", root="sp.Symbol('u', positive=True)"))
    code, out, _ = run("verify", file)
    assert code == 0 and "$u^{2}$" not in out
    assert "passed  square: A square" in out and "1 of 1 claims passed" in out
    assert "u²" in run("claims", file)[1]
    wrong = write("wrong.py", CLAIM.format(name="wrong-square", root="0"))
    code, out, _ = run("verify", file, wrong)
    assert code == 1 and "1 of 2 claims passed; failed: wrong-square" in out
    assert run("verify", file, wrong, "square")[0] == 0


def test_a_file_may_hold_evidence_for_a_claim_of_the_package(run, write):
    file = write(
        "more.py",
        "import giantstep as gs\n"
        "@gs.evidence('nonlinear-windows', 'exact', 'nothing at all')\n"
        "def check():\n    return gs.Finding(True, 'as it should be')\n",
    )
    out = run("claims", file)[1]
    assert out.startswith("nonlinear-windows") and "nothing at all" in out


UNKNOWN = (
    "import giantstep as gs\n@gs.evidence('unknown-claim', 'exact', 'a check')\ndef check(): ...\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no claims: declare one by giantstep.declare_claim"),
        ("\nx = missing\n", "line 2: NameError: name 'missing' is not defined"),
        ("x = 1\nx = = 2\n", "line 2: SyntaxError"),
        (UNKNOWN, "line 2: no claim 'unknown-claim'"),
    ],
)
def test_files_without_claims_are_refused(run, write, text, message):
    code, out, err = run("verify", write("bad.py", text))
    assert code == 2 and not out and "Traceback" not in err
    assert err.startswith("giantstep: ") and "bad.py" in err and message in err


def test_verify_fails_with_exit_code_1(run, monkeypatch):
    claim, _ = certified(monkeypatch, Evidence(EvidenceKind.EXACT, "1 is not 2", False))
    code, out, _ = run("verify")
    assert code == 1
    assert f"0 of 1 claims passed; failed: {claim.identifier}" in out


def certified(monkeypatch, *evidence, unavailable=(), skipped=()):
    claim = registry.claims()[0]
    verdict = Verdict(
        claim, evidence, bool(evidence) and all(e.passed for e in evidence), skipped,
        unavailable,
    )  # fmt: skip
    asked = []

    def verify(names, **given):
        asked.append(given)
        return [verdict]

    monkeypatch.setattr(registry, "verify", verify)
    return claim, asked


@pytest.mark.parametrize(("passed", "outcome"), [(True, "proven"), (False, "FAILED")])
def test_verify_certified_prints_a_table_of_proofs(run, monkeypatch, passed, outcome):
    evidence = Evidence(EvidenceKind.CERTIFIED, "inside", passed, {}, "an interval", 1.25)
    claim, asked = certified(monkeypatch, evidence)
    code, out, err = run("verify", "--certified")
    assert (code, err) == (0 if passed else 1, "")
    assert asked == [{"slow": False, "certified": True}]
    (row,) = [line for line in out.splitlines() if line.strip().startswith(f"{claim.identifier} ")]
    assert [cell.strip() for cell in row.split("│")] == [
        claim.identifier, "an interval", outcome, "1.2",
    ]  # fmt: skip
    assert "claims have a proof by intervals" in out


def test_proofs_that_cannot_be_made_say_what_to_install(run, monkeypatch):
    missing = (
        'an interval: it needs python-flint; install it with: pip install "giantstep[flint]"',
    )
    certified(monkeypatch, unavailable=missing)
    code, out, err = run("verify", "--certified")
    assert code == 2 and "not available" in out and "0 of 1 claims passed\n" in out
    assert err.count("\n") == 1 and "giantstep[flint]" in err
    # Without --certified the rest of the evidence stands.
    certified(monkeypatch, Evidence(EvidenceKind.EXACT, "is", True), unavailable=missing)
    code, out, err = run("verify")
    assert code == 0 and "1 of 1 claims passed" in out and "1 check was not made" in err


def test_proofs_that_are_slow_are_asked_for(run, monkeypatch, tmp_path):
    claim, asked = certified(monkeypatch, skipped=("an interval",))
    code, out, err = run("verify", "--certified")
    assert (code, err) == (2, "") and "FAILED" not in out
    assert "skipped, slow" in out and "0 of 1 claims passed; not run without --slow: 1" in out
    run("verify", "--certified", "--slow", "--out", tmp_path / "found.json")
    assert [given["slow"] for given in asked] == [False, True]
    (stored,) = json.loads((tmp_path / "found.json").read_text())
    assert stored["identifier"] == claim.identifier and stored["skipped"] == ["an interval"]


def test_claims_with_proofs_are_listed(run):
    code, out, _ = run("claims", "--certified", "--full")
    assert code == 0 and "staircase-algorithm" in out and "  - certified" in out
    assert len(out) < len(run("claims", "--full")[1])


def test_claims_are_listed(run):
    code, out, _ = run("claims")
    assert code == 0 and "cui-3.1" in out
    # By paper, and there by the number of the result.
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("cui-3.1"))
    assert "arXiv 2402.04980" in lines[first - 1] and lines[first + 1].startswith("cui-3.2")
    code, one, _ = run("claims", "cui-3.1")
    assert code == 0 and "γ = h₁*/ν" in one and "\\" not in one and "$" not in one


# ---------------------------------------------------------------------- proofs of one point


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
