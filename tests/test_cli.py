"""The command line as users meet it: tables, files, refusals in one line, interruptions."""

import argparse
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from giantstep import __version__, cli_curve
from giantstep.cli_options import (
    axis,
    nonnegative,
    numbers,
    positive,
    positive_or_infinite,
    sample_complexities,
    spaced,
    whole,
)
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures

PAIR = ["--student", "tanh", "--teacher", "sin"]
SMALL = ["--alpha", "0.5,1", "--alpha0", "5", "--dimension", "40", "--seeds", "2"]


def run_python(code, folder):
    # Uninstalled checkouts find the package through this process's path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_too_little_memory_is_one_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulated = "curve", *PAIR, "--alpha", "1e13", "--simulate", "--dimension", "40", "--seeds", "2"
    code, _, err = run(*simulated)
    assert code == 2
    assert "alpha=1e+13 is too large for a simulation" in err.splitlines()[-1]

    def exhausted(*args, **kwargs):
        raise MemoryError("Unable to allocate 3.20 PiB")

    monkeypatch.setattr(SpikedRandomFeatures, "simulate", exhausted)
    code, _, err = run(*simulated)
    assert code == 2
    assert err.splitlines()[-1].startswith("giantstep: not enough memory: Unable to allocate")
    assert "--dimension" in err and "Traceback" not in err


# ---------------------------------------------------------------------- curve


def test_table_only_prints_the_theory_and_writes_nothing(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("curve", *PAIR, "--alpha", "0.5,2", "--table-only")
    assert (code, err) == (0, "")
    assert "alignment γ = 0.9718544445" in out
    assert "μ₁(κ)  = 𝔼_z[1 - tanh(√c z + κ r)²]" in out
    assert "T₀(κ)  = exp(-ρ²/2) sin(γ κ)" in out
    assert "3 blocks" in out
    rows = [line for line in out.splitlines() if line.strip().startswith(("0.5 │", "2 │"))]
    assert len(rows) == 2
    # As giantstep.SpikedRandomFeatures("tanh", "sin").solve(alpha=2, ridge=0.1) gives it.
    assert "0.03539371167" in rows[1]
    assert "replica method: not a theorem" in out.replace("\n  ", " ")
    assert list(tmp_path.iterdir()) == []


def test_latex_on_request(run):
    code, out, _ = run("curve", *PAIR, "--alpha", "1", "--table-only", "--latex")
    assert code == 0
    assert r"\hat{V}_{1} &= \frac{\alpha}{\beta} \mathbb{E}_{\kappa}\left[" in out
    assert out.count(r"\begin{aligned}") == out.count(r"\end{aligned}") == 8


def test_teacher_without_linear_part_is_no_error(run):
    code, out, _ = run("curve", "--student", "tanh", "--teacher", "He3", "--alpha", "1",
                       "--table-only")  # fmt: skip
    assert code == 0
    assert "leap index 3" in out and "uninformative" in out and "γ = 0" in out


def test_plain_random_features_take_no_step(run):
    code, out, _ = run("curve", *PAIR, "--step-size", "0", "--alpha", "1", "--table-only")
    assert code == 0
    assert "No step: plain random features" in out


def test_simulation_writes_report_figure_and_data(run, tmp_path):
    out_file = tmp_path / "result.html"
    code, out, err = run("curve", *PAIR, *SMALL, "--simulate", "--out", out_file)
    assert code == 0, err
    assert "difference/s.e." in out and "Finite size" in out
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "result.html", "result.png", "result.pdf", "result.nc", "result-simulation.nc",
        ".giantstep-simulations",
    }  # fmt: skip
    curve = xr.load_dataset(tmp_path / "result.nc")
    simulation = xr.load_dataset(tmp_path / "result-simulation.nc")
    assert simulation["test_error"].shape == (2, 2)
    assert {0.5, 1.0} <= set(curve["alpha"].to_numpy().tolist())
    assert json.loads(curve.attrs["model"])["alpha0"] == 5
    assert simulation.attrs["dimension"] == 40 and simulation.attrs["entropy"] == 0
    # The same command finds its networks again and reports the same numbers.
    stored = sorted((tmp_path / ".giantstep-simulations").glob("*/*.npz"))
    assert len(stored) == 2
    before = [path.stat().st_mtime_ns for path in stored]
    again = run("curve", *PAIR, *SMALL, "--simulate", "--out", out_file)[1]
    assert [path.stat().st_mtime_ns for path in stored] == before
    assert table_of(again) == table_of(out)
    options = ("--ridge", "1", "--simulate", "--table-only", "--store", stored[0].parent)
    code, _, err = run("curve", *PAIR, *SMALL, *options)
    assert code == 2 and "belongs to a run of networks with other parameters" in err
    # Another command has networks of its own beside them.
    code, _, err = run("curve", *PAIR, *SMALL, "--ridge", "1", "--simulate", "--out", out_file)
    assert code == 0, err
    assert len(sorted((tmp_path / ".giantstep-simulations").glob("*/*.npz"))) == 4


def table_of(out):
    return [line for line in out.splitlines() if "±" in line]


def test_simulated_table_without_files(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("curve", "--student", "-tanh(z)", "--teacher", "-z", *SMALL, "--simulate",
                       "--table-only")  # fmt: skip
    assert code == 0 and "student -tanh(z), teacher -z" in out
    assert len(table_of(out)) >= 3
    assert list(tmp_path.iterdir()) == []


def test_interrupted_simulation_reports_what_is_finished(run, tmp_path, monkeypatch):
    complete = SpikedRandomFeatures.simulate

    def interrupted(self, *arguments, **options):
        found = complete(self, *arguments, **options)
        found.attrs["interrupted"] = 1
        return found

    monkeypatch.setattr(SpikedRandomFeatures, "simulate", interrupted)
    code, out, err = run("curve", *PAIR, *SMALL, "--simulate", "--out", tmp_path / "a.html")
    assert code == 130
    # On a busy machine a bar is drawn before.
    message = err.splitlines()[-1]
    assert message.startswith("giantstep: interrupted after 2 of 2 networks; these are reported")
    assert "was interrupted" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert table_of(out)


def test_interrupted_before_anything_finished(run, tmp_path, monkeypatch):
    def interrupted(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(SpikedRandomFeatures, "simulate", interrupted)
    code, out, err = run("curve", *PAIR, *SMALL, "--simulate", "--out", tmp_path / "a.html")
    assert code == 130
    assert "the same command resumes" in err and len(err.splitlines()) == 1
    assert "test error" in out  # The theory was printed before.
    assert not (tmp_path / "a.html").exists()


def test_warm_theory_imports_nothing_heavy(tmp_path):
    arguments = ["curve", *PAIR, "--alpha", "1", "--table-only"]
    code = f"""
import json, sys
from giantstep.__main__ import main
assert main({arguments!r}) == 0
print(json.dumps(sorted(sys.modules)))
sys.exit(main([*{arguments!r}, "--ridge", "0"]))
"""
    assert run_python(code, tmp_path).returncode == 2
    warm = run_python(code, tmp_path)
    loaded = set(json.loads(warm.stdout.splitlines()[-1]))
    heavy = {"jinja2", "matplotlib", "numba", "scipy.interpolate", "scipy.optimize", "xarray"}
    assert loaded.isdisjoint(heavy)
    assert (warm.returncode, warm.stderr) == (
        2,
        "giantstep: argument --ridge: must be positive and finite, got '0'; use --ridge 0.1; "
        "see giantstep curve --help\n",
    )


def test_missing_plotting_is_found_before_any_work(run, tmp_path, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    code, out, err = run("curve", *PAIR, "--out", tmp_path / "curve.html")
    assert (code, out) == (2, "")
    assert 'pip install "giantstep[plot]"' in err and "--out curve.json" in err


# ---------------------------------------------------------------------- other commands


def test_version_and_help(run):
    assert run("--version")[:2] == (0, f"giantstep {__version__}\n")
    code, out, _ = run("--help")
    assert code == 0 and "giantstep curve --student tanh --teacher sin --simulate" in out
    code, out, _ = run("curve", "--help")
    assert code == 0
    for text in ("eta/sqrt(p)", "RIDGE |w|^2", "START:STOP:COUNT", ".giantstep-simulations"):
        assert text in out


def test_solve_prints_digits(run):
    code, out, _ = run("solve", "--student", "erf", "--teacher", "erf", "--step-size", "2",
                       "--alpha0", "4", "--alpha", "1.5", "--digits", "25")  # fmt: skip
    assert code == 0
    assert "test error     0.0798849999" in out
    assert "25 digits asked for; estimated relative errors" in out
    assert "V1_hat" in out


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5", [0.5]),
        ("0.5, 1,2", [0.5, 1.0, 2.0]),
        ("1,1,0.5", [1.0, 0.5]),
        ("0.2:3:15", [round(0.2 * k, 1) for k in range(1, 16)]),
        ("2:7:1", [2.0]),
    ],
)
def test_sample_complexities_are_read_as_documented(text, values):
    assert sample_complexities()("--alpha")(text) == values


AXIS = axis("a=1:2:3", {"a": "alpha", "n": "noise"}, from_zero={"noise"}, bare=True)


@pytest.mark.parametrize(
    ("reader", "taken", "refused"),
    [
        (positive(1), ["1e-300", "1e300"], ["0", "-1", "inf", "nan", "1_0", "x"]),
        (positive_or_infinite(1), ["1e-300", "inf"], ["0", "-1", "nan"]),
        (nonnegative(1), ["0", "1e300"], ["-1e-300", "inf", "nan"]),
        (whole(2, 3, most=5), ["2", "5", "+3"], ["1", "6", "-3", "2.0", "", "1" * 19]),
        (whole(-2, 3), ["-2", "9" * 18], ["-3", "9" * 19, "-" + "9" * 19, "--1", "\u0663"]),
        (numbers("1"), ["-1", "0, 1"], ["inf", "-inf", "1:2:3", "", " , "]),
        (numbers("1", least=0.0), ["0", "0:2:3", "1:2:100000", "3:3:1", "3:2:1"], [
            "-1", "0:inf:3", "1:2:100001", "2:1:2", "1:1:2", "1:2:0", "1:2", "1:2:3:4",
        ]),
        (numbers("1", least=0.0, zero=False), ["1e-300"], ["0", "0:1:3", "1,0"]),
        (AXIS, ["a=5e-324:2:2", "n=0:1:400", "a"], [
            "a=0:1:3", "n=-1:1:3", "a=1:1:3", "a=2:1:3", "a=1:inf:3", "a=1:2:1", "a=1:2:401", "b",
            "a=", "a=1:2", "b=1:2:3", "alpha=1:2:3",
        ]),
    ],
)  # fmt: skip
def test_readers_take_what_lies_between_their_bounds(reader, taken, refused):
    for text in taken:
        reader("--flag")(text)
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError):
            reader("--flag")(text)


@pytest.mark.parametrize(
    ("low", "high", "count"), [(0.2, 3, 15), (0, 7, 4), (1, 20, 5), (1, 20.5, 5), (3e-4, 9, 61)]
)
def test_values_of_a_range_are_evenly_spaced(low, high, count):
    space = np.geomspace if low and high > 20 * low else np.linspace
    expected = space(low, high, count)
    for found in (spaced(low, high, count), AXIS("--x")(f"n={low}:{high}:{count}")[1]):
        assert found == pytest.approx(expected, rel=1e-11) and {low, high} <= {*found}
    found = numbers("1", least=0.0)("--alpha")(f"{low}:{high}:{count}")
    assert found == pytest.approx(np.linspace(low, high, count), rel=1e-11)
    assert AXIS("--x")("a") == ("alpha", None)


def test_correlated_norms_reach_theory_and_comparison(run, tmp_path, monkeypatch):
    # Values for tanh and sin at alpha = 2: as published 0.03539, with the correlation 0.03438.
    monkeypatch.chdir(tmp_path)
    _, published, _ = run("curve", *PAIR, "--alpha", "2", "--table-only")
    _, corrected, _ = run(
        "curve", *PAIR, "--alpha", "2", "--table-only", "--leading-order", "complete"
    )
    assert "0.03539" in published and "0.03438" not in published
    assert "0.03438" in corrected and "norm overlap a = " in corrected
    size = ["--dimension", "20", "--seeds", "2", "--simulate", "--table-only"]
    _, both, _ = run("curve", *PAIR, "--alpha", "2", *size)
    assert " complete" in both and "0.03539" in both and "0.034382" in both


@pytest.mark.slow
def test_the_optimum_stands_beside_the_curve(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noisy = ["curve", *PAIR, "--noise", "0.1", "--alpha0", "5", "--alpha", "3", "--optimal"]
    _, out, _ = run(*noisy, "--table-only")
    # Errors of Bayes and of the direction alone at alpha0 + alpha = 8: .014684, .117549.
    assert re.search(r"3 │ 0\.01468353\d+ │ +0\.01468353\d+ │ +0\.117549\d+", out)


def test_the_time_is_told_by_one_clock(monkeypatch):
    before = cli_curve.seconds_since_start()
    # The clock of the kernel's process table need not be that of any call.
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1e9)
    assert before <= cli_curve.seconds_since_start() < before + 5


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


# ---------------------------------------------------------------------- optimal


MODEL = ("--student", "erf", "--teacher", "erf", "--step-size", "2", "--alpha0", "4")


def test_one_optimum_with_what_it_rests_on(run):
    code, out, err = run("optimal", *MODEL, "--alpha", "1.5")
    assert (code, err) == (0, "")
    # 20 digits by Newton's method in mpmath: 0.19768729420751311058.
    assert "optimal ridge  0.197687294208" in out and "interior minimum" in out
    assert "student erf, teacher erf; s = 2, α₀ = 4, β = 1, Δ = 0" in out
    assert "zero of the exact derivative with estimated error" in out


def test_several_sample_complexities_give_a_table(run):
    code, out, _ = run("optimal", *MODEL, "--alpha", "0.5,1.5", "--bounds", "0.25:10")
    assert code == 0
    assert "optimal λ" in out and "test error" in out
    # At 1.5 the optimum, 0.2, is below the bounds.
    assert "α = 1.5: at the boundary ridge = 0.25: the test error falls towards smaller" in out


@pytest.mark.slow
def test_step_size(run):
    arguments = ("--student", "erf", "--teacher", "erf", "--alpha0", "4", "--ridge", "0.05")
    code, out, _ = run(
        "optimal", "--what", "step-size", *arguments, "--alpha", "2", "--bounds", "0.5:10"
    )
    assert code == 0 and "optimal step_size" in out and "λ = 0.05" in out


@pytest.mark.slow
def test_joint_optimum(run):
    code, out, err = run(
        "optimal", "--joint", "--student", "erf", "--teacher", "erf", "--alpha0", "4",
        "--alpha", "1.5", "--bounds", "0.01:10", "--step-bounds", "1:5",
    )  # fmt: skip
    assert (code, err) == (0, "")
    # Newton's method in both; the single optima agree with it.
    assert "optimal ridge      0.1930292717" in out and "optimal step_size  2.371059338" in out
