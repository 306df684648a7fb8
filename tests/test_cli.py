"""The command line as users meet it: tables, files, refusals in one line, interruptions."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

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
    # Another command has networks of its own beside them.
    code, _, err = run("curve", *PAIR, *SMALL, "--ridge", "1", "--simulate", "--out", out_file)
    assert code == 0, err
    assert len(sorted((tmp_path / ".giantstep-simulations").glob("*/*.npz"))) == 4


def test_a_store_that_is_named_belongs_to_one_run(run, tmp_path):
    options = ("--simulate", "--table-only", "--store", tmp_path / "kept")
    assert run("curve", *PAIR, *SMALL, *options)[0] == 0
    code, _, err = run("curve", *PAIR, *SMALL, "--ridge", "1", *options)
    assert code == 2 and "belongs to a run of networks with other parameters" in err


def table_of(out):
    return [line for line in out.splitlines() if "±" in line]


def test_simulated_table_without_files(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("curve", *PAIR, *SMALL, "--simulate", "--table-only")
    assert code == 0
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
"""
    assert run_python(code, tmp_path).returncode == 0
    warm = run_python(code, tmp_path)
    assert warm.returncode == 0, warm.stderr
    loaded = set(json.loads(warm.stdout.splitlines()[-1]))
    heavy = {"jinja2", "matplotlib", "numba", "scipy.interpolate", "scipy.optimize", "xarray"}
    assert loaded.isdisjoint(heavy)


# ---------------------------------------------------------------------- refusals

BAD_CURVES = [
    pytest.param(["--student", "tanhh"], ["student 'tanhh'", "did you mean 'tanh'"], id="unknown"),
    pytest.param(["--teacher", "sin(z"], ["teacher 'sin(z'"], id="no-expression"),
    pytest.param(["--teacher", "2z"], ["teacher '2z'", "write 2*z"], id="no-operator"),
    pytest.param(["--student", "__import__('os').getcwd()"], ["student"], id="code"),
    pytest.param(["--student", "z.__class__"], ["student"], id="attribute"),
    pytest.param(["--student", "\x1b[31mz"], ["student"], id="control-character"),
    pytest.param(["--ridge", "0"], ["--ridge", "positive", "--ridge 0.1"], id="ridge-zero"),
    pytest.param(["--ridge", "-1e-3"], ["--ridge", "-1e-3"], id="ridge-negative"),
    pytest.param(["--ridge", "nan"], ["--ridge", "not a number"], id="ridge-nan"),
    pytest.param(["--ridge", "ten"], ["--ridge", "'ten'"], id="ridge-text"),
    pytest.param(["--alpha", "0.5,-1"], ["--alpha", "'-1'"], id="alpha-negative"),
    pytest.param(["--alpha", "0"], ["--alpha", "positive"], id="alpha-zero"),
    pytest.param(["--alpha", "nan,1"], ["--alpha", "not a number"], id="alpha-nan"),
    pytest.param(["--alpha", "inf"], ["--alpha", "finite"], id="alpha-infinite"),
    pytest.param(["--alpha", ","], ["--alpha", "no number"], id="alpha-empty"),
    pytest.param(["--alpha", "1:2"], ["--alpha", "START:STOP:COUNT"], id="alpha-range"),
    pytest.param(["--alpha", "2:1:5"], ["--alpha", "below"], id="alpha-backwards"),
    pytest.param(["--alpha", "1:2:9999999"], ["--alpha", "too many"], id="alpha-many"),
    pytest.param(["--beta", "-2"], ["--beta", "positive"], id="beta-negative"),
    pytest.param(["--alpha0", "0"], ["--alpha0", "positive"], id="alpha0-zero"),
    pytest.param(["--noise", "-1"], ["--noise", ">= 0"], id="noise-negative"),
    pytest.param(["--step-size", "-inf"], ["--step-size", "-inf"], id="step-negative"),
    pytest.param(["--seeds", "1"], ["--seeds", ">= 2"], id="one-seed"),
    pytest.param(["--seeds", "2.5"], ["--seeds", "whole number"], id="half-a-seed"),
    pytest.param(["--dimension", "9" * 30], ["--dimension", "whole number"], id="huge-dimension"),
    pytest.param(["--student", "relu"], ["relu", "odd", "--allow-non-odd"], id="non-odd"),
    pytest.param(["--student", "sign"], ["sign", "jumps"], id="jump"),
    pytest.param(["--teacher", "exp(z**2)"], ["teacher exp(z**2)", "< oo"], id="too-fast"),
    pytest.param(["--simulate", "--dimension", "3"], ["--dimension"], id="small-dimension"),
    pytest.param(["--simulate", "--alpha0", "inf"], ["--alpha0", "simulated"], id="population"),
    pytest.param(["--cache-folder", "{file}/cache"], ["cache folder"], id="cache-folder"),
    pytest.param(["--out", "{file}/curve.html"], ["--out"], id="out-below-a-file"),
    pytest.param(["--out", "{folder}/missing/curve.html"], ["--out"], id="out-missing-folder"),
    pytest.param(["--out", "{folder}/curve.txt"], ["--out", ".html"], id="out-suffix"),
    pytest.param(["--simulate", "--store", "{file}/store"], ["--store"], id="store-below-a-file"),
    pytest.param(["--frobnicate"], ["--frobnicate"], id="unknown-flag"),
    pytest.param(["--stud", "tanh"], ["--stud"], id="abbreviated-flag"),
]


@pytest.mark.parametrize(("bad", "named"), BAD_CURVES)
def test_bad_input_ends_in_one_line(run, tmp_path, monkeypatch, bad, named):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.touch()
    bad = [text.format(file=file, folder=tmp_path) for text in bad]
    code, out, err = run("curve", *PAIR, *bad)
    assert code == 2
    assert out == ""
    assert err.startswith("giantstep: ")
    assert len(err.splitlines()) == 1 and err.endswith("\n") and err[:-1].isprintable()
    assert "Traceback" not in err
    for text in named:
        assert text in err
    assert [path.name for path in tmp_path.iterdir()] in (["file"], [])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["frob"], "frob"),
        (["curve", "--teacher"], "--teacher"),
        (["hermite"], "EXPR"),
        (["solve", *PAIR, "--digits", "99999"], "digits"),
        (["solve", *PAIR, "--alpha", "1,2"], "--alpha"),
        (["solve", *PAIR, "--step-size", "1e9"], "smaller --step-size"),
        (["hermite", "z+1", "--order", "-1"], "--order"),
        (["verify", "no-such-claim"], "no-such-claim"),
    ],
)
def test_other_commands_refuse_in_one_line(run, arguments, named):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and named in err


def test_process_ends_with_the_same_code_and_line(tmp_path):
    code = "import sys; from giantstep.__main__ import main; sys.exit(main(sys.argv[1:]))"
    bad = ["curve", *PAIR, "--ridge", "0"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", code, *bad],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stderr == (
        "giantstep: argument --ridge: must be positive and finite, got '0'; use --ridge 0.1; "
        "see giantstep curve --help\n"
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


def test_negative_expression_is_a_value(run):
    code, out, _ = run("curve", "--student", "-tanh(z)", "--teacher", "-z", "--alpha", "1",
                       "--table-only")  # fmt: skip
    assert code == 0 and "student -tanh(z), teacher -z" in out


@pytest.mark.parametrize("stage", ["equations", "blocks", "program", "tables"])
def test_kernel_stages(run, stage):
    code, out, _ = run("kernel", "spiked-random-features", "--student", "erf", "--teacher", "erf",
                       "--stage", stage)  # fmt: skip
    assert code == 0 and out.strip()


def test_kernel_is_written_whole(run, tmp_path):
    target = tmp_path / "kernel.py"
    code, out, _ = run("kernel", "spiked-random-features", "--student", "erf", "--teacher", "erf",
                       "--target", "python", "--out", target)  # fmt: skip
    assert (code, out) == (0, f"Wrote {target}\n")
    compile(target.read_text(encoding="utf-8"), "kernel.py", "exec")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.py"]


def test_verify_fails_with_exit_code_1(run, monkeypatch):
    from giantstep.derivations import claims

    claim = claims.claims()[0]
    failed = claims.Evidence(claims.EvidenceKind.EXACT, "1 is not 2", False)
    verdict = claims.Verdict(claim, (failed,), False)
    monkeypatch.setattr(claims, "verify", lambda names, slow: [verdict])
    code, out, _ = run("verify")
    assert code == 1
    assert f"0 of 1 claims passed; failed: {claim.identifier}" in out


def certified(monkeypatch, *evidence, unavailable=(), skipped=()):
    from giantstep.derivations import claims

    claim = claims.claims()[0]
    verdict = claims.Verdict(
        claim, evidence, bool(evidence) and all(e.passed for e in evidence), skipped,
        unavailable,
    )  # fmt: skip
    asked = []

    def verify(names, **given):
        asked.append(given)
        return [verdict]

    monkeypatch.setattr(claims, "verify", verify)
    return claim, asked


@pytest.mark.parametrize(("passed", "outcome"), [(True, "proven"), (False, "FAILED")])
def test_verify_certified_prints_a_table_of_proofs(run, monkeypatch, passed, outcome):
    from giantstep.derivations.claims import Evidence, EvidenceKind

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
    from giantstep.derivations.claims import Evidence, EvidenceKind

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
    code, _, err = run("claims", "cui-3.11")
    assert code == 2 and "did you mean 'cui-3.1'" in err


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


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("conjecture x>0 --over x=0:1 --dimension 2", "belongs to random targets"),
        ("conjecture x>0 --over x=0:1 --set alpha=2", "--set belongs to --model"),
        ("conjecture test_error>0 --over alpha=1:2 --model srf --set alfa=2", "--set: "),
        ("expect cos(a*z) --parameter a:real --parameter a:positive", "a is declared twice"),
        ("expect u*v --joint 0.5 --variances 1", "needs two values with a comma"),
        ("hermite tanh(a*z) --parameter a:real --certified", "--certified needs numbers"),
        ("gradient relu x1 x2", "give one TARGET"),
        ("kernel spiked-random-features --at alpha=1 --out k.c", "--at gives values for --tables"),
        ("kernel spiked-random-features --tables baked --at a=x --out k.c", "--at a: 'x' is not"),
        ("kernel ridge-regression --student erf --out k.c", "--student belongs to"),
        ("one-step risk --ridge 1 --paper-ridge 1 --over alpha=1:2:3", "are one penalty"),
        ("one-step risk --features gaussian", "--features is about --simulate"),
        ("one-step spectrum --store here", "--store is about --simulate"),
        ("optimal --step-bounds 0.1:2", "--step-bounds belongs to --joint"),
        ("srf curve --labels probit", "--labels belongs to --loss"),
        ("srf figure 3", "a figure needs a file: add --out figure3.png"),
        ("leap a*x1 --parameter a --parameter a", "names 'a' twice"),
        ("curve --alpha ,", "no number is given"),
    ],
)
def test_options_that_do_not_go_together_are_refused(run, command, message):
    code, out, err = run(*command.split())
    assert code == 2 and not out and message in err, err


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


def test_readme_shows_the_main_command():
    readme = Path(__file__).parents[1] / "README.md"
    if not readme.exists():
        pytest.skip("an installed package has no README")
    assert "giantstep curve --student tanh --teacher sin --simulate" in readme.read_text("utf-8")


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
    code, out, error = run("curve", *PAIR, "--alpha0", "inf", "--optimal", "--table-only")
    assert code == 2 and out == "" and "use a finite alpha0" in error


def test_the_time_is_told_by_one_clock(monkeypatch):
    before = cli_curve.seconds_since_start()
    # The clock of the kernel's process table need not be that of any call.
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1e9)
    assert before <= cli_curve.seconds_since_start() < before + 5
