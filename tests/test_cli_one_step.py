"""``giantstep one-step``: each command, its files, and one line for bad input."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import numpy as np
import pytest
import xarray as xr

import giantstep as gs
import giantstep.derivations.one_gradient_step.figures as risk_figure
from giantstep.cli import main
from giantstep.numeric.networks import run

PAIR = ("--student", "erf", "--teacher", "erf", "--noise-variance", "0.25")


def _run(capsys, *arguments):
    assert main(["one-step", *arguments]) == 0
    return capsys.readouterr().out


def test_a_point(tmp_path, capsys):
    out = tmp_path / "point.json"
    text = _run(capsys, "risk", *PAIR, "--paper-ridge", "0.05", "--out", str(out))
    # 40-digit arithmetic, trapezoidal rule.
    found = json.loads(out.read_text())
    assert found["trained"] == pytest.approx(0.2826117955031127, rel=1e-12)
    assert "several_steps" not in found
    assert "best linear error" in text
    text = _run(capsys, "risk", *PAIR, "--paper-ridge", "0.05", "--digits", "30")
    assert "0.282611795503112731586192747661" in text


def test_defaults_are_those_of_the_library(tmp_path, capsys):
    out = tmp_path / "point.csv"
    _run(capsys, "risk", "--out", str(out))
    (row,) = csv.DictReader(out.read_text().splitlines())
    model = gs.OneGradientStep("tanh", "erf", alpha=2, beta=1.5, step_size=2)
    assert float(row["trained"]) == model.risk(ridge=0.1).trained


def test_an_axis_by_name_by_ends_and_by_list(tmp_path, capsys):
    tables = []
    for k, flags in enumerate((("--over", "beta=0.5:2:4"), ("--beta", "0.5,1,1.5,2"),
                               ("--over", "beta", "--beta", "0.5:2:4"))):  # fmt: skip
        out = tmp_path / f"{k}.nc"
        _run(capsys, "risk", *flags, "--table-only", "--out", str(out))
        tables.append(xr.load_dataset(out))
    for table in tables:
        assert table["beta"].values.tolist() == [0.5, 1.0, 1.5, 2.0]
        assert (table["risk_trained"] == tables[0]["risk_trained"]).all()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf", "html", "nc", "json", "csv"])
def test_files(suffix, tmp_path, capsys):
    out = tmp_path / f"risk.{suffix}"
    text = _run(capsys, "risk", "--over", "alpha", "--out", str(out))
    assert out.stat().st_size > 500
    assert str(out) in text
    if suffix in ("png", "svg", "pdf"):
        assert xr.load_dataset(out.with_suffix(".nc"))["risk_trained"].size > 200
    elif suffix == "html":
        page = out.read_text()
        assert "<svg" in page
        assert not re.search(r"(src|href)=.https?:", page)
    elif suffix == "json":
        found = json.loads(out.read_text())
        assert len(found["data_vars"]["risk_initial"]["data"]) == 12
    elif suffix == "csv":
        rows = list(csv.DictReader(out.read_text().splitlines()))
        assert len(rows) == 12
        assert float(rows[0]["risk_initial"]) > float(rows[0]["risk_trained"])


def test_networks_over_an_axis(tmp_path, capsys):
    out = tmp_path / "risk.nc"
    text = _run(
        capsys, "risk", *PAIR, "--alpha", "1,2", "--simulate", "--features", "both", "--dimension",
        "40", "--seeds", "3", "--out", str(out),
    )  # fmt: skip
    assert "3 repetitions at d = 40" in text
    data = xr.load_dataset(out)
    for features in ("gaussian", "network"):
        for name in ("risk_initial", "risk_trained", "improvement"):
            error = data[f"{features}_{name}_standard_error"].values
            mean = data[f"{features}_{name}"].values
            theory = data[name].sel(alpha=data["simulated"].values).values
            assert (error > 0).all()
            assert (np.abs(mean - theory) < 8 * error + 0.3 * theory).all()


def _two_alone(job, indices, collect, **options):
    """Stand in for `run_seeds` that is interrupted after two networks."""
    for index in indices[:2]:
        collect(index, job(index, None))
    return len(indices) > 2


def test_what_is_finished_is_written(tmp_path, capsys, monkeypatch):
    out, store = tmp_path / "risk.png", tmp_path / "store"
    command = ["one-step", "risk", *PAIR, "--alpha", "1,2", "--simulate", "--features", "both",
               "--dimension", "20", "--seeds", "2", "--store", str(store)]  # fmt: skip
    point = risk_figure._point
    done: list[Any] = []

    def interrupted(*arguments):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(arguments)
        return point(*arguments)

    monkeypatch.setattr(risk_figure, "_point", interrupted)
    assert main([*command, "--out", str(out)]) == 130
    captured = capsys.readouterr()
    assert "the same command resumes" in captured.err and str(store) in captured.err
    assert [captured.out.count(f"│ {name} │") for name in ("gaussian", " network")] == [2, 1]
    part = xr.load_dataset(out.with_suffix(".nc"))
    assert out.stat().st_size > 5000
    assert np.isfinite(part["gaussian_risk_trained"]).all()
    assert np.isnan(part["network_risk_trained"].values).tolist() == [False, True]


def test_nothing_finished_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "run_seeds", lambda *given, **more: True)
    for flags in (["risk", "--alpha", "1,2"], ["risk"], ["spectrum", "--matrix", "weights"]):
        command = ["one-step", *flags, "--simulate", "--dimension", "20", "--table-only"]
        assert main(command) == 130
        assert "before" in (error := capsys.readouterr().err) and "--store FOLDER" in error


def test_networks_that_finished_are_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run, "run_seeds", _two_alone)
    command = ["--simulate", "--dimension", "20", "--seeds", "3"]
    assert main(["one-step", "spectrum", *command, "--table-only"]) == 130
    captured = capsys.readouterr()
    assert "2 networks, d = 20" in captured.out and "2 of 3 networks" in captured.err
    out = tmp_path / "point.json"
    assert main(["one-step", "risk", *command, "--out", str(out)]) == 130
    assert "2 with network features at d = 20" in capsys.readouterr().out
    assert json.loads(out.read_text())["simulated"]["network"]["repetitions"] == 2


def test_finished_networks_are_not_trained_again(tmp_path, capsys, monkeypatch):
    commands = [
        ["risk", "--alpha", "1,2", "--table-only"], ["risk", "--steps", "2"],
        ["spectrum", "--table-only"],
    ]  # fmt: skip
    shared = ["--simulate", "--dimension", "20", "--seeds", "2", "--store", str(tmp_path / "store")]
    before = [_run(capsys, *command, *shared) for command in commands]
    monkeypatch.setattr(run, "Training", None)
    assert [_run(capsys, *command, *shared) for command in commands] == before


@pytest.mark.parametrize("fresh", [False, True])
def test_several_steps(fresh, tmp_path, capsys):
    out = tmp_path / "point.json"
    flags = ["--steps", "4", "--simulate", "--dimension", "40", "--seeds", "3", "--out", str(out)]
    text = _run(capsys, "risk", "--ridge", "0.1", *flags, *["--fresh"] * fresh)
    model = gs.OneGradientStep("tanh", "erf", alpha=2, beta=1.5, step_size=2)
    found = json.loads(out.read_text())
    assert found["trained"] == model.several_steps(4, fresh=fresh).risk(ridge=0.1).trained
    assert found["several_steps"]["fresh"] is fresh
    assert ("fresh data in each" if fresh else "the same data in all") in text
    simulated = model.simulate(40, ridge=0.1, seeds=3, steps=4, fresh=fresh, progress=False)
    assert found["simulated"]["network"]["risk_trained"] == float(simulated["risk_trained"][0])


def test_spectrum(tmp_path, capsys):
    out = tmp_path / "spectrum.png"
    text = _run(
        capsys, "spectrum", *PAIR, "--step-size", "5", "--simulate", "--dimension", "40", "--seeds",
        "2", "--out", str(out),
    )  # fmt: skip
    assert "largest eigenvalue of the kernel" in text
    data = xr.load_dataset(out.with_suffix(".nc"))
    assert float(data["weights_singular_value"]) == pytest.approx(3.3128342083, rel=1e-9)
    # The table compares with what the networks have after their step.
    after = data.isel(simulated_step=-1)
    measured = {
        "singular value": after["simulated_singular_values"][:, 0],
        "with the teacher": after["simulated_teacher_alignment"],
        "with the readout": after["simulated_readout_alignment"],
        "the kernel": after["simulated_kernel_eigenvalues"][:, 0],
        "with the labels": after["simulated_label_alignment"],
    }
    for words, values in measured.items():
        (row,) = (line for line in text.splitlines() if words in line and "│" in line)
        mean, error = map(float, row.split("│")[2].split("±"))
        first, second = values.values
        assert error == pytest.approx(abs(first - second) / 2, rel=0.1)
        assert mean == pytest.approx((first + second) / 2, abs=error / 5)


def test_the_published_example_has_an_outlier_with_the_full_loss(tmp_path, capsys):
    example = ("--student", "softplus", "--teacher", "tanh", "--centre", "--alpha", "1.5")
    found = {}
    for loss in ("half", "full"):
        out = tmp_path / f"{loss}.json"
        _run(capsys, "spectrum", *example, "--beta", "1.25", "--loss", loss, "--matrix", "kernel",
             "--table-only", "--out", str(out))  # fmt: skip
        found[loss] = json.loads(out.read_text())["kernel"]
    assert found["half"]["outlier"] is None
    # 40-digit arithmetic, trapezoidal rule.
    assert found["full"]["outlier"] == pytest.approx(2.167021668103544, rel=1e-12)
    assert found["full"]["label_alignment"] == pytest.approx(0.1352005402953518, rel=1e-12)


def test_optimal(tmp_path, capsys):
    out = tmp_path / "optimal.csv"
    text = _run(capsys, "optimal", *PAIR)
    # Where the derivative of the closed form vanishes.
    assert "0.272826395556" in text
    _run(capsys, "optimal", *PAIR, "--alpha", "1,2", "--out", str(out))
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert float(rows[1]["paper_ridge_trained"]) == pytest.approx(0.272826395555732, rel=1e-12)
