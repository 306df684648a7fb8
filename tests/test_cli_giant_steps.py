"""``giantstep giant-steps``: exact answers, simulations, files, refusals."""

from __future__ import annotations

import re

import pytest

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
    code, out, _ = run("giant-steps", "x1 + x1*x2", *SMALL, "--ridge-samples", "200")
    assert code == 0
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
    code, out, _ = run("giant-steps", "x1 + x1*x2", *SMALL, *options)
    assert code == 0
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


def test_a_store_resumes_and_an_interrupt_says_so(run, tmp_path, monkeypatch):
    command = ("giant-steps", "x1 + x1*x2", *SMALL, "--store", tmp_path)
    first = run(*command)
    assert first[0] == 0 and len(list(tmp_path.iterdir())) == 2

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_one_seed", interrupt)
    assert run(*command) == first
    code, out, err = run("giant-steps", "x1", *SMALL, "--store", tmp_path / "other")
    assert code == 130 and "kept in" in err and "staircase" in out


def test_a_step_whose_networks_overflow_is_refused_after_the_exact_answers(run):
    code, _, err = run("giant-steps", "x1 + x1*x2", *SMALL, "--step-size", "1e300")
    assert code == 2 and "Traceback" not in err
    assert re.search("is not finite|use a smaller --step-size", err)
