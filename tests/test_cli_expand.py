"""Series on the command line: table, LaTeX, coefficients and figure."""

from __future__ import annotations

import pytest

from giantstep.cli_expand import MOST_ORDERS
from giantstep.derivations.expansions import expansion
from giantstep.derivations.expansions.expansion import Expansion

ERF = ("--student", "erf", "--teacher", "erf")


def rows(text):
    """Return the rows of the table against the exact solution."""
    begin = next(k for k, line in enumerate(text.splitlines()) if "exact solution" in line)
    found = []
    for line in text.splitlines()[begin + 2 :]:
        cells = line.split("│")
        if len(cells) != 5:
            break
        found.append([float(cell) for cell in cells])
    return found


def test_the_peak_of_one_step(run, tmp_path):
    pytest.importorskip("matplotlib")
    stored, plot = tmp_path / "peak.json", tmp_path / "peak.svg"
    asked = (
        "expand", "one-step", "small-ridge", *ERF, "--alpha", 1.5, "--beta", 1.5, "--order", 2,
        "--noise-variance", 0.25, "--at", "1e-4,1e-6", "--output", "trained",
    )  # fmt: skip
    code, text, err = run(*asked, "--latex", "--out", stored)
    assert (code, err) == (0, "") and run(*asked, "--plot", plot)[0] == 0
    assert run(*asked, "--plot", plot, "--out", stored)[0] == 2
    (first, *_), second = rows(text)
    assert first == 1e-4 and second[0] == 1e-6
    for _, series, exact, difference, estimate in rows(text):
        # The next term of the series is 5/2 powers of the penalty smaller than one.
        assert abs(series - exact) <= 2 * estimate + 1e-12 * exact
        assert difference == pytest.approx(series - exact, abs=1e-11 * exact)
    assert "\\lambda" in text and text.rstrip().endswith(f"Wrote {stored}")
    found = Expansion.load(stored)
    assert found.parameter == "ridge" and found.terms("trained")[0][0] < 0
    assert plot.read_text().startswith("<?xml")
    assert {path.name for path in tmp_path.iterdir()} == {"peak.json", "peak.nc", "peak.svg"}


@pytest.mark.parametrize(
    ("series", "given"), [("large-alpha", ("--order", 3)), ("small-step", ("--order", 4))]
)
def test_places_are_chosen_where_the_series_is_good(run, series, given):
    code, text, err = run("expand", "one-step", series, *ERF, *given)
    assert (code, err) == (0, "")
    table = rows(text)
    assert len(table) == 4
    # Towards the point the difference falls, down to the rounding of floats.
    assert abs(table[-1][3]) <= max(abs(table[0][3]), 1e-13)


def test_formulas_of_coefficients(run):
    given = ("expand", "one-step", "small-ridge", "--beta", 2, "--order", 0, "--formulas")
    code, text, err = run(*given, *ERF)
    assert (code, err) == (0, "")
    assert r"\begin{aligned} R_\mathrm{GD} &= " in text.splitlines()[-1] and "s_{0}" in text
    # A student without nonlinear part has none.
    code, text, err = run(*given, "--student", "z", "--teacher", "erf")
    assert (code, err) == (0, "")
    assert "there are no formulas for trained here" in text


@pytest.mark.slow
@pytest.mark.parametrize("series", ["large-alpha", "small-ridge", "small-step"])
def test_spiked_random_features(run, series):
    code, text, err = run(
        "expand", "srf", series, "--digits", 15, "--order", 1, "--latex", "--formulas"
    )
    assert (code, err) == (0, "")
    assert text.rstrip().endswith(r"\end{aligned}") and r"\text{order 1:}" in text
    assert r"\mathbb{E}_{\kappa}\left[e_{0}" in text
    last = rows(text)[-1]
    assert last[1] == pytest.approx(last[2], rel=1e-2)


def test_the_largest_order_is_that_of_the_library():
    assert MOST_ORDERS == expansion.MOST_ORDERS
