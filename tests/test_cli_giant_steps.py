"""``giantstep giant-steps``: exact answers, simulations, files, refusals."""

from __future__ import annotations

import re

import pytest

from giantstep import cli_giant_steps
from giantstep.numeric.networks import run as runner

SMALL = (
    "--simulate", "--dimension", "20", "--samples-factor", "30", "--width", "16", "--seeds", "2",
)  # fmt: skip


def test_exact_answers_without_a_simulation(run):
    code, out, err = run("giant-steps", "x1 + x1*x2 + x1*x2*x3", "--steps", "3")
    assert code == 0 and err == ""
    assert out.startswith("one giant step: student relu, target x1 + x1*x2 + x1*x2*x3")
    assert "staircase of x1 + x1*x2 + x1*x2*x3" in out
    assert "U_1" in out and "rests on" in out and "fitted" in out
    assert "Simulation" not in out


def test_the_exact_answers_are_those_of_the_options(run):
    masked = run("giant-steps", "x1 + He(2, x1)*x2", "--noise", "0.1")[1]
    whole = run("giant-steps", "x1 + He(2, x1)*x2", "--biases")[1]
    assert "stops" in masked and "saturates" in whole
    second = run("giant-steps", "x1*x2 + x3", "--exponent", "2", "--student", "gelu")[1]
    assert "order 2" in second


def test_a_simulation_prints_its_table(run):
    code, out, err = run("giant-steps", "x1 + x1*x2", *SMALL, "--ridge-samples", "200")
    assert code == 0 and err == ""
    table = " ".join(out[out.index("Simulation") :].split())
    assert "d = 20, n = 600 = 30 d for each of 2 steps of size 1, p = 16" in table
    assert "2 networks" in table and "verdict" in table and "test error after ridge" in table


def test_the_seed_fixes_the_numbers(run):
    command = ("giant-steps", "x1", *SMALL)
    first, again, other = run(*command), run(*command, "--workers", "1"), run(*command, "--seed", 1)
    assert first == again and first[1] != other[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--readout", "signs"), "readouts ±1"),
        (("--readout", "0.5,1,2"), "readouts ±(0.5, 1, 2)"),
        (("--biases",), "random biases"),
        (("--preprocess", "--exponent", "2", "--samples-factor", "2"), "linear part taken off"),
        (("--noise", "0.5"), "noise variance 0.5"),
        (("--step-size", "2.5"), "steps of size 2.5"),
    ],
)
def test_options_reach_the_networks(run, options, words):
    code, out, err = run("giant-steps", "x1 + x1*x2", *SMALL, *options)
    assert code == 0 and err == ""
    assert words in " ".join(out.split())


def test_pages_and_figures_are_written(run, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, _ = run("giant-steps", "x1 + x1*x2", *SMALL, "--out", tmp_path / "stairs.html")
    assert code == 0 and out.rstrip().endswith(f"Wrote {tmp_path / 'stairs.html'}")
    page = (tmp_path / "stairs.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and page.count("<svg") == 3
    assert "http-equiv" not in page and "<script" not in page
    assert page.count("<h1>") == 1 and "Simulated giant steps" in page
    run("giant-steps", "x1 + x1*x2", *SMALL, "--out", tmp_path / "stairs.png")
    assert (tmp_path / "stairs.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run("giant-steps", "x1 + x1*x2", "--out", tmp_path / "exact.html")
    page = (tmp_path / "exact.html").read_text(encoding="utf-8")
    assert code == 0 and "Simulated giant steps" not in page and "<table" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "exact.html", "stairs.html", "stairs.png",
    ]  # fmt: skip


def test_a_page_holds_no_markup_of_the_user(run, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "page.html"
    assert run("giant-steps", "x1*(2 > 1)", *SMALL, "--out", out)[0] == 2
    assert not out.exists()


def test_a_store_resumes(run, tmp_path, monkeypatch):
    command = ("giant-steps", "x1 + x1*x2", *SMALL, "--store", tmp_path)
    first = run(*command)
    assert first[0] == 0 and len(list(tmp_path.iterdir())) == 2

    def refuse(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr(runner, "_one_seed", refuse)
    assert run(*command) == first


def test_an_interrupt_says_where_to_resume(run, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_one_seed", interrupt)
    code, out, err = run("giant-steps", "x1", *SMALL, "--store", tmp_path)
    assert code == 130 and "kept in" in err and "staircase" in out


def test_help_teaches(run):
    text = cli_giant_steps.EPILOG
    assert "examples:" in text and "--simulate" in text and "relu without biases" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dimension", "50"), "--dimension belongs to --simulate; add --simulate"),
        (("--preprocess",), "--preprocess belongs to --simulate"),
        (("--steps", "1000"), "--steps must be from 0 to 100"),
        (("--exponent", "1000"), "--exponent must be from 1 to 64"),
        (("--readout", "signs"), "--readout belongs to --simulate"),
        (("--out", "nowhere/a.html"), "--out: cannot write to folder 'nowhere'"),
        ((*SMALL, "--out", "a.txt"), "--out: must end in .png, .pdf, .svg, .html, .json"),
        ((*SMALL, "--step-size", "0"), "must be positive and finite, got '0'; use --step-size 1"),
        ((*SMALL, "--step-size", "1e300"), "is not finite|use a smaller --step-size"),
        ((*SMALL, "--readout", "one"), "'one' is not a number; use --readout 0.5,1,2"),
        ((*SMALL, "--samples-factor", "1e300"), "is no number of samples; change --samples-fac"),
        ((*SMALL, "--ridge", "1"), "--ridge is the penalty of a regression; give --ridge-samples"),
        ((*SMALL, "--store", __file__), "--store: folder .* cannot be written to"),
        ((*SMALL, "--ridge-samples", "5"), "--ridge-samples 5 are too few to hold out a fif"),
        ((*SMALL, "--seeds", "0"), "must be >= 1"),
    ],
)
def test_bad_options_are_refused_in_one_go(run, options, message):
    code, out, err = run("giant-steps", "x1 + x1*x2", *options)
    assert code == 2
    assert re.search(message, err)
    if "1e300" not in options:
        assert out == ""
    assert "Traceback" not in err


def test_bad_targets_are_refused(run):
    for target in ("3", "x1 +", "1/x1", "import os"):
        code, out, err = run("giant-steps", target, *SMALL)
        assert code == 2 and out == "" and "Traceback" not in err
