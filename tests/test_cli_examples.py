"""Every example in the help of a command runs, in a folder of its own, and writes what it says."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from dataclasses import replace

import pytest

import giantstep
from giantstep import cli_explore
from giantstep.cli import build_parser, main
from giantstep.cli_files import fitted
from giantstep.cli_kernel import MODELS, STAGES
from giantstep.derivations import claims as registry
from giantstep.pages import aligned

# Files of users that examples name.
FILES = {
    "eigenvalues.txt": "0.5\n1\n1.5\n",
    "mymodel.py": """\
import giantstep as gs
import sympy as sp
from giantstep.derivations.mean_field.sherrington_kirkpatrick import sherrington_kirkpatrick


def system():
    return sherrington_kirkpatrick()
""",
    "my_claims.py": """\
import giantstep as gs

gs.declare_claim("two", title="Two", statement="$1 + 1 = 2$", source="here", status="derived here")


@gs.evidence("two", "exact", "counted")
def count():
    return gs.Finding(1 + 1 == 2)
""",
}
# What takes seconds: networks, all claims, digits, grids, first uses of a loss.
SLOW = re.compile(
    r"--simulate|^verify|^srf (figure|phase|bounds)|--letters|--loss|--certify|--certified|--joint"
    r"|^conjecture|^dynamics|^multi-index|^one-step (phase|steps|spectrum|large-steps)|--digits"
    r"|^kernel|^expand|^optimal|^curve|^one-step|^srf"
)


def parsers(parser):
    """All parsers, of commands and of commands of commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from parsers(below)


def examples():
    """All examples, each once; a page that is served does not end, and is tested by itself."""
    found: dict[str, None] = {}
    for parser in parsers(build_parser()):
        text = re.sub(r"(?: \\)?\n {6,}", " ", parser.epilog or "")
        for line in re.findall(r"^  giantstep (.*)$", text, re.M):
            found[re.sub(r"\s+#.*", "", line).strip()] = None
    return [line for line in found if not line.startswith("explore")]


def marked():
    """Examples as parameters, slow ones marked."""
    return [
        pytest.param(line, marks=pytest.mark.slow) if SLOW.search(line) else line
        for line in examples()
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files that examples name."""
    pytest.importorskip("matplotlib")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SMALL = ["--dimension", "40"]


def words(line):
    """The arguments of an example, with small networks and few claims: their own tests run all.

    Grids have three points, digits are few, and series of several seconds an order are short.
    """
    line = re.sub(r"(\S+:\S+):\d+", r"\1:3", re.sub(r"--digits \d+", "--digits 17", line))
    line = re.sub(r"--order [3-9]", "--order 2", line)
    result = shlex.split(line)
    if result[:2] == ["expand", "srf"] and "--order" not in result:
        result += ["--order", "1"]
    if result[0] == "verify":
        named = any(not word.startswith("-") for word in result[1:])
        few = ["--targets", "1", *SMALL] if "--targets" in result else []
        return [word for word in result if word != "--slow"] + few + ([] if named else QUICK)
    if result[0] == "srf" and "--loss" in result and "--student" not in result:
        # Equations of a loss take long to derive; these are derived for other tests as well.
        result += ["--student", "erf", "--teacher", "sin"]
    if "--simulate" in result:
        return [*result, "--seeds", "2", *([] if "steps" in result else SMALL)]
    return [*result, *(SMALL if result[:2] == ["srf", "figure"] else [])]


QUICK = ["gradient-expansion"]


@pytest.mark.parametrize("line", marked())
def test_examples_run(line, folder, capsys, monkeypatch):
    if "my_claims" in line:
        # Claims of a file are declared once, for all that follows.
        registry.claims()
        known = {name: replace(d, checks=dict(d.checks)) for name, d in registry._DECLARED.items()}
        monkeypatch.setattr(registry, "_DECLARED", known)
    assert main(words(line)) in (0, 1, 3), capsys.readouterr().err
    if "--certif" not in line:
        assert "Traceback" not in capsys.readouterr().err
    wanted = re.findall(r"--(?:out|plot|store) (\S+)", line)
    assert all((folder / name).exists() for name in wanted)
    written = {path.name for path in folder.iterdir()} - {*FILES, "__pycache__"}
    assert wanted or not written, written


LIGHT = (
    'hermite "erf(z)" --order 3', 'expect "erf(u)*erf(v)" --joint rho',
    'gradient "x1*x2"', 'complexity "x1*x2"', 'leap "x1 + x2*x3"', 'staircase "x1 + x1*x2"',
    'project "x1 + x1*x2" --onto "1,0"', 'project "x1 + x1*x2" --regimes', "claims cui-3.1",
    'giant-steps "x1 + x1*x2"', "kernel --list",
    "solve --student erf --teacher erf --alpha 1",
    "curve --student erf --teacher erf --alpha 0.5,1", "optimal --student erf --teacher erf",
    "srf curve --student erf --teacher erf --alpha 0.5,1",
    "one-step risk --student erf --teacher erf",
)  # fmt: skip


@pytest.mark.parametrize("line", LIGHT)
def test_json_is_all_that_is_printed(line, folder, capsys):
    assert main([*shlex.split(line), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert {path.name for path in folder.iterdir()} == {*FILES}


@pytest.mark.parametrize("line", [line for line in LIGHT if not line.startswith("kernel")])
def test_reports_stand_alone(line, folder, capsys):
    assert main([*shlex.split(line), "--out", "report.html"]) == 0
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "<script" not in text
    assert 'id="reproduce"' in text and "prefers-color-scheme" in text


def test_every_command_prints_json_and_writes_files():
    for parser in parsers(build_parser()):
        flags = parser.format_usage()
        is_leaf = not flags.rstrip().endswith("...")
        given = "--json" in flags and "--out" in flags
        assert not is_leaf or given or parser.prog.endswith("explore"), parser.prog
        assert re.search(r"^  giantstep ", parser.epilog, re.M), parser.prog


def test_shells_complete_commands_and_flags(tmp_path, monkeypatch):
    pytest.importorskip("argcomplete")
    import subprocess
    import sys

    def completed(line):
        out = tmp_path / "found"
        environment = {
            "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        }  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        subprocess.run([sys.executable, "-m", "giantstep"], check=True)
        return [word.strip() for word in out.read_text(encoding="utf-8").split("\n")]

    assert completed("giantstep sta") == ["staircase"]
    assert completed("giantstep one-step risk --noi") == ["--noise"]


def test_names_of_the_last_release_are_taken(capsys):
    new = ["one-step", "risk", "--noise", "0.25", "--step-loss", "full"]
    old = ["one-step", "risk", "--noise-variance", "0.25", "--loss", "full"]
    texts = []
    for arguments in (new, old, ["gradient", "x1*x2", "--student", "erf"],
                      ["gradient", "erf", "x1*x2"]):  # fmt: skip
        assert main(arguments) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and texts[2] == texts[3]


def test_tables_that_are_wider_than_the_terminal_are_cut():
    table = aligned(["α", "theory", "simulation"], [["0.5", "0.046", "0.0492 ± 0.0010"]])
    text = f"before\n{table}\nafter"
    assert fitted(text, 80) == text
    cut = fitted(text, 22).splitlines()
    assert max(map(len, cut)) <= 25 and cut[0] == "before" and cut[-1] == "after"
    # The first column stands in each part.
    assert sum(line.startswith("0.5") for line in cut) == 2
    assert [line for line in cut if "0.0492 ± 0.0010" in line]


def test_explore_makes_the_model_that_is_named(folder, monkeypatch):
    asked = []
    monkeypatch.setattr(
        giantstep, "explore", lambda model, **given: asked.append((model, given)), raising=False
    )
    for line in re.findall(r"^  giantstep (explore .*)$", cli_explore.EPILOG, re.M):
        assert main(shlex.split(line)) == 0
    (srf, _), (step, given), (glass, beta), (own, place) = asked
    assert (srf.student, srf.alpha0) == ("erf", 5) and "He" in srf.teacher
    assert (step.teacher, step.step_size, step.alpha) == ("erf", 3, 1.5) and given["browser"]
    assert glass.name == own.name == "sherrington_kirkpatrick" and beta["beta"] == 2
    assert place == {"port": 5006, "browser": False}


# ---------------------------------------------------------------------- kernel


def test_models_are_listed(run):
    code, out, _ = run("kernel", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_a_kernel(run, model):
    code, out, _ = run("kernel", model, "--target", "python")
    assert code == 0
    compile(out, model, "exec")
    assert "def solve_point(" in out


@pytest.mark.parametrize("stage", [s for s in STAGES if s != "source"])
def test_every_stage_has_text(run, stage):
    code, out, _ = run("kernel", "logistic-regression", "--stage", stage)
    assert code == 0 and (out.strip() or stage == "tables")


def test_suffix_chooses_the_target(run, tmp_path):
    code, out, _ = run("kernel", "sherrington-kirkpatrick", "--out", tmp_path / "sk.c")
    assert code == 0 and out.startswith("Wrote ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sk.c", "sk.h"]


def test_baked_tables_take_values(run, tmp_path):
    values = ["spike_strength=1", "bulk_variance=1.2", "alignment=0.6", "noise_variance=0"]
    flags = [flag for value in values for flag in ("--at", value)]
    path = tmp_path / "kernel.py"
    code, out, _ = run("kernel", MODELS[0], "--student", "erf", "--teacher", "erf",
                       "--tables", "baked", *flags, "--out", path)  # fmt: skip
    assert (code, out) == (0, f"Wrote {path}\n")
    compile(path.read_text(encoding="utf-8"), "kernel.py", "exec")
