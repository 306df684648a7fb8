"""The command ``giantstep expand``: a series, a table against the exact solution, files."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import warnings
from typing import TYPE_CHECKING, Any

from .atomic_files import write_atomically
from .cli_commands import checked_file
from .cli_expand import settle
from .errors import ApproximationWarning, MissingDependencyError

if TYPE_CHECKING:
    from pathlib import Path

    from .derivations.expansions.expansion import Expansion

_PICTURES = (".png", ".pdf", ".svg")
_COMPARED = 4
_DIGITS = 12


def expand(arguments: argparse.Namespace) -> int:
    """Print a series and compare it with the exact solution; write coefficients, draw."""
    settle(arguments)
    plot = _checked_plot(arguments.plot)
    out = checked_file(arguments.out, "--out", (".json",), "series")
    with warnings.catch_warnings():
        # Where the series says nothing the table shows it.
        warnings.simplefilter("ignore", ApproximationWarning)
        found = _expansion(arguments)
        output = found.output(arguments.output)
        # The model's own text would show a value of what is expanded in.
        held = ", ".join(f"{name} = {value}" for name, value in found.fixed.items())
        text = f"{held}\n\n{found}\n\n{_table(found, output, arguments.at)}"
        if arguments.latex:
            text += f"\n\n{found.latex(output)}"
        if arguments.formulas:
            text += f"\n\n{_formulas(found, output)}"
        # All is computed before anything is printed: an error leaves the output empty.
        figure = None if plot is None else _drawn(found, output)
    print(text)
    written = []
    if out is not None:
        write_atomically(out, f"{found.to_json()}\n")
        written.append(out)
    if plot is not None:
        from .derivations.figures import save_figure

        written.append(save_figure(figure, plot))
    if written:
        print(f"\nWrote {', '.join(map(os.fspath, written))}")
    return 0


def _expansion(arguments: argparse.Namespace) -> Expansion:
    """Return the series that the flags describe."""
    name = arguments.series.replace("-", "_")
    given: dict[str, Any] = {"order": arguments.order, "digits": arguments.digits}
    if arguments.model == "srf":
        from .cli_curve import model_from

        if arguments.series == "small-step":
            # Any step will do: the series replaces it.
            arguments.step_size = 0.0
        if arguments.series != "small-ridge":
            given["ridge"] = arguments.ridge
        if arguments.series != "large-alpha":
            given["alpha"] = arguments.alpha
        model: Any = model_from(arguments)
    else:
        from .derivations.one_gradient_step.model import OneGradientStep

        if arguments.series != "small-ridge":
            given["ridge"] = arguments.ridge
        given["formulas"] = arguments.formulas
        model = OneGradientStep(
            arguments.student,
            arguments.teacher,
            # Placeholders for what is expanded in.
            alpha=2.0 if arguments.alpha is None else arguments.alpha,
            step_size=0.0 if arguments.step_size is None else arguments.step_size,
            beta=arguments.beta,
            alpha0=arguments.alpha0,
            noise_variance=arguments.noise_variance,
            loss=arguments.loss,
            centre=arguments.centre,
            cache_folder=arguments.cache_folder,
        )
    series: Expansion = model.expansion(name, **given)
    return series


def _formulas(found: Expansion, output: str) -> str:
    if found.formulas.get(output):
        shown = found.latex(output, formulas=True)
        return f"{shown}\n\n{found.latex_equations()}" if found.has_equations else shown
    return (
        f"there are no formulas for {output} here: they need a ridge penalty that is not fixed at "
        "0, a student with linear and nonlinear part, a teacher with linear part, and coefficients "
        "that are short enough to be read"
    )


def _table(found: Expansion, output: str, values: list[float] | None) -> str:
    from .pages import aligned

    rows = []
    for value in values or _places(found):
        series, estimate = found(value, output), found.estimate_of_remainder(value, output)
        assert found.exact is not None
        exact = float(found.exact(value, None)[output])
        rows.append(
            [f"{value:.6g}", f"{series:.{_DIGITS}g}", f"{exact:.{_DIGITS}g}",
             f"{series - exact:.1e}", f"{float(estimate):.1e}"]
        )  # fmt: skip
    headings = [found.parameter.replace("_", " "), f"series of {output.replace('_', ' ')}",
                "exact solution", "difference", "estimate"]  # fmt: skip
    return (
        f"{aligned(headings, rows)}\n"
        f"exact solutions are floats: differences below {1e-13:.0e} of the value are rounding"
    )


def _places(found: Expansion) -> list[float]:
    """Return values of the parameter where the series is good, towards its point."""
    edge = found.trusted_up_to
    if not 0 < edge < math.inf:
        edge = 1.0
    factor = 10.0 if found.point else 0.1
    return [float(f"{edge * factor**k:.2g}") for k in range(_COMPARED)]


def _checked_plot(text: str | None) -> Path | None:
    plot = checked_file(text, "--plot", _PICTURES, "series")
    if plot is not None and importlib.util.find_spec("matplotlib") is None:
        raise MissingDependencyError(
            '--plot needs matplotlib, which is not installed; use pip install "giantstep[plot]"'
        )
    return plot


def _drawn(found: Expansion, output: str) -> Any:
    axes = found.plot(output)
    return (axes if hasattr(axes, "figure") else axes[0]).figure
