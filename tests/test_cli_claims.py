"""``giantstep claims`` and ``giantstep verify`` with Python files of users."""

import sys
from dataclasses import replace

import pytest

from giantstep.derivations import claims as registry

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


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = 1\n", "has no claims: declare one by giantstep.declare_claim"),
        ("\nx = missing\n", "line 2: NameError: name 'missing' is not defined"),
        ("x = 1\nx = = 2\n", "line 2: SyntaxError"),
        (
            "import giantstep as gs\n@gs.evidence('unknown-claim', 'exact', 'a check')\n"
            "def check(): ...\n",
            "line 2: no claim 'unknown-claim'",
        ),
    ],
)
def test_files_without_claims_are_refused(run, write, text, message):
    code, out, err = run("verify", write("bad.py", text))
    assert code == 2 and not out
    assert err.startswith("giantstep: ") and "bad.py" in err and message in err
    assert "Traceback" not in err


def test_a_file_that_is_not_there_is_refused(run, tmp_path):
    code, _, err = run("verify", str(tmp_path / "none.py"))
    assert code == 2 and "claims are names or Python files, and" in err and "is none" in err
