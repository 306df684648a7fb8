"""``giantstep srf``: each command, its files, and one line for bad input."""

from __future__ import annotations

import json

import xarray as xr

from giantstep.cli import main
from giantstep.derivations.spiked_random_features.bulk_law import BulkLaw
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures


def _run(capsys, *arguments):
    assert main(["srf", *arguments]) == 0
    return capsys.readouterr().out


def test_bounds(tmp_path, capsys):
    out = tmp_path / "bounds.png"
    text = _run(capsys, "bounds", "--student", "erf", "--teacher", "erf", "--out", str(out))
    assert "E_∞" in text
    assert out.exists()
    assert xr.load_dataset(out.with_suffix(".nc")).attrs["best_linear_error"] > 0
    text = _run(capsys, "bounds", "--student", "erf", "--teacher", "erf", "--digits", "20")
    assert "20 digits" in text


def test_curve(tmp_path, capsys):
    out = tmp_path / "curve.nc"
    text = _run(
        capsys, "curve", "--student", "erf", "--alpha", "1,2", "--simulate", "--dimension", "40",
        "--seeds", "2", "--out", str(out),
    )  # fmt: skip
    assert "linear bound" in text
    assert "simulated_test_error_mean" in xr.load_dataset(out)
    text = _run(capsys, "curve", "--letters", "1,-0.5", "--alpha", "1,2", "--width", "300")
    assert "limit p → ∞" in text


def test_phase(tmp_path, capsys):
    out = tmp_path / "phase.svg"
    text = _run(
        capsys, "phase", "--student", "erf", "--x", "alpha=0.5:4:4", "--y", "ridge=0.01:1:3",
        "--out", str(out),
    )  # fmt: skip
    assert "smallest test error" in text
    assert xr.load_dataset(out.with_suffix(".nc"))["test_error"].shape == (3, 4)


def test_a_curve_with_a_law_of_the_bulk(tmp_path, capsys):
    law = tmp_path / "law.txt"
    law.write_text("0.5 0.75\n2.5 0.25\n")
    options = ["--student", "erf", "--teacher", "erf", "--beta", "0.5", "--alpha", "2"]
    assert main(["srf", "curve", *options, "--bulk", str(law)]) == 0
    printed = capsys.readouterr().out
    step = SpikedRandomFeatures("erf", "erf", beta=0.5).spike
    bulk = BulkLaw.from_eigenvalues([0.5, 2.5], weights=[0.75, 0.25]).scaled(step.bulk_variance)
    model = SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=step.spike_strength, bulk_variance=step.bulk_variance,
        alignment=step.alignment, beta=0.5, bulk=bulk,
    )  # fmt: skip
    assert f"{model.solve(alpha=2, ridge=0.1).test_error:#.10g}" in printed
    law.write_text(json.dumps(bulk.to_dict()))
    assert main(["srf", "curve", *options, "--bulk", str(law)]) == 0
    assert capsys.readouterr().out == printed
    law.write_text("one two three")
    assert main(["srf", "curve", *options, "--bulk", str(law)]) == 2
    assert "neither JSON nor one or two columns" in capsys.readouterr().err
