"""``giantstep kernel``: what is written, what is listed, what is refused in one line."""

from __future__ import annotations

import pytest

from giantstep.cli_kernel import MODELS, STAGES


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
