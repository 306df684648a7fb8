"""The command giantstep leap as users meet it."""

import json

import pytest


def test_all_leaps_with_their_proofs(run):
    code, out, _ = run("leap", "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)")
    assert code == 0
    # Catalogue P24: l = 1, Leap 3, isoLeap 3 with orders 1, 1, 3, generative leap 1.
    assert "leap index               1  E[f x1] = 1" in out
    assert "{0} –1→ ⟨(1, 2, 0)⟩ –1→ ⟨e1, e2⟩ –3→ R^3" in out
    assert "coordinate leap          3" in out and "He(3, x3) (new: x3; 3)" in out
    assert "generative leap          1  exact" in out and "y^3 shows R^3 at order 1" in out
    assert "(theorem: arXiv 2305.18270)" in out and "(conjecture: arXiv 2302.11055)" in out
    assert "its wording is not verified" in out


@pytest.mark.parametrize(
    ("target", "direction", "expected"),
    [
        ("x1 + 2*x2 + He(2, x1)/2", "1,0", "first seen at order 1, contained from order 2 on"),
        ("x1*x2", "-1,1/2", "first seen at order 2, contained from order 2 on"),
        ("x1 + x2", "1,0", "first seen at order 1, never contained"),
        ("x1 + x2", "sqrt(2),-sqrt(2)", "the target does not depend on it"),
    ],
)
def test_one_direction(run, target, direction, expected):
    code, out, _ = run("leap", target, "--direction", direction)
    assert code == 0 and expected in out.splitlines()[-1]


def test_latex_and_files(run, tmp_path):
    page, content = tmp_path / "leap.html", tmp_path / "leap.json"
    code, out, _ = run("leap", "x1*x2", "--latex", "--out", page)
    assert code == 0 and r"\mathrm{isoLeap}(f) = 2" in out and f"Wrote {page}" in out
    assert "<table>" in page.read_text(encoding="utf-8")
    code, _, _ = run("leap", "z**2*exp(-z**2)", "--out", content)
    assert code == 0
    found = json.loads(content.read_text(encoding="utf-8"))
    assert found["leap_index"]["value"] == found["generative_leap"]["lower"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x1 - x1"], "is constant"),
        (["x1", "--direction", "1,0"], "--direction needs 1 components"),
        (["x1", "--direction", "a"], "--direction"),
        (["x1", "--direction", ""], "--direction needs components with commas"),
        (["x1", "--direction", "1,,2"], "--direction needs components with commas"),
        (["x1", "--direction", "0"], "direction must not be zero"),
        (["x1", "--out", "leap.nc"], "--out: must end in .png, .pdf, .svg, .html, .json"),
    ],
)
def test_bad_input_is_one_line(run, arguments, message):
    code, out, err = run("leap", *arguments)
    assert code == 2 and out == "" and message in err
    assert len(err.splitlines()) == 1


def test_help_teaches(run):
    code, out, _ = run("leap", "--help")
    assert code == 0 and "rotation-invariant leap" in out and "examples:" in out
