"""``giantstep kernel``: what is written, what is listed, what is refused in one line."""

from __future__ import annotations

import pytest

from giantstep.cli_kernel import MODELS, STAGES


def test_models_are_listed(run):
    code, out, _ = run("kernel", "--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(MODELS)
    code, _, err = run("kernel", "--list", "--out", "models.html")
    assert code == 2 and "--list writes no file" in err


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


BAKED = [MODELS[0], "--tables", "baked", "--at", "spike_strength=1", "--at", "noise_variance=0"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "MODEL is missing"),
        (["other"], "other"),
        ([MODELS[1], "--target", "pascal"], "--target"),
        ([MODELS[1], "--target", "numba", "--out", "k.f90"], "another language than numba"),
        ([MODELS[1], "--target", "fortran", "--out", "k.py"], "another language than fortran"),
        ([MODELS[1], "--out", "k.f77"], "--out must end in .py, .c, .h, .jl, .f90"),
        ([MODELS[2], "--student", "tanh"], "--student belongs to spiked-random-features"),
        ([MODELS[1], "--target", "c", "--stage", "blocks"], "no meaning for --stage blocks"),
        ([MODELS[1], "--tables", "baked", "--stage", "program"], "--tables baked has no meaning"),
        ([MODELS[0], "--at", "alignment=1"], "--tables baked"),
        ([MODELS[0], "--tables", "baked", "--at", "alignment"], "NAME=NUMBER"),
        ([MODELS[0], "--tables", "baked", "--at", "alignment=x"], "'x' is not a number"),
        ([MODELS[0], "--tables", "baked", "--at", "alignment=0.5"], "need the value of"),
        ([MODELS[1], "--out", "/no/such/folder/kernel.py"], "/no/such/folder"),
        ([MODELS[1], "--out", "/"], "is a folder"),
        ([MODELS[1], "--out", "/dev/null/k.c"], "/dev/null/k"),
        ([MODELS[1], "--target", "julia", "--out", "k.c"], "another language than julia"),
        ([MODELS[1], "--target", "c", "--out", 'a"b.c'], "cannot include each other"),
        ([MODELS[1], "--stage", "blocks", "--out", "/no/such/folder/x"], "/no/such/folder"),
        ([MODELS[0], "--tables", "baked", "--at", "no=1"], "no parameter of the tables"),
        ([*BAKED, "--at", "bulk_variance=-1", "--at", "alignment=0"], "bulk_variance must be pos"),
        ([*BAKED, "--at", "bulk_variance=1", "--at", "alignment=2"], "alignment is outside its"),
    ],
)
def test_refusals_take_one_line(run, arguments, named):
    code, out, err = run("kernel", *arguments)
    assert (code, out) == (2, "")
    assert named in err and err.count("\n") == 1
