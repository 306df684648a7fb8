"""The report of a learning curve of spiked features, with its derivation and how to repeat it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy as sp
from markupsafe import Markup

from ..atomic_files import write_atomically
from ..errors import ParameterError
from .curve_figure import plot_curve
from .figures import off_screen
from .formulas import math_element, mathml_row
from .report import Formulas, Part, inline_svg, rendered
from .spiked_random_features.bulk_law import BulkLaw
from .spiked_random_features.model import LARGE_SPREAD, quality_text
from .spiked_random_features.presentation import sections
from .tables import (
    COMPLETE,
    COMPLETE_COLUMNS,
    COMPLETE_INCLUDED,
    FINITE_SIZE,
    FINITE_WIDTH_INCLUDED,
    SIMULATION_COLUMNS,
    THEORY_COLUMNS,
    complete_cells,
    simulation_cells,
    simulation_rests_on,
    theory_cells,
    theory_rests_on,
    uninformative,
)

if TYPE_CHECKING:
    import xarray as xr

    from .spiked_random_features.model import SpikedRandomFeatures

_REMARK = (
    "Printed from the expressions that the numbers come from: the activations and the free energy "
    "of Result 3.3 went in, equations follow by differentiation. Their dependency graph falls into "
    "blocks that are solved one after the other."
)
_CITE = Markup(
    "The theory is that of H. Cui, L. Pesce, Y. Dandi, F. Krzakala, Y. M. Lu, L. Zdeborová and "
    "B. Loureiro, <em>Asymptotics of feature learning in two-layer networks after one "
    'gradient-step</em>, <a href="https://arxiv.org/abs/2402.04980">arXiv:2402.04980</a> (2024): '
    "Result 3.1 for the step, Results 3.2 and 3.3 for the error. Cite it for the results, and "
    "giantstep for the numbers."
)


def write_report(
    model: SpikedRandomFeatures,
    path: str | os.PathLike[str],
    curve: xr.Dataset,
    simulation: xr.Dataset | None = None,
    *,
    rows: Sequence[float] | None = None,
    figure: Any = None,
    command: str = "",
    seconds: float | None = None,
) -> Path:
    """Write :func:`html_report` to a file; a reader sees all of it or none.

    Parameters
    ----------
    path : path-like
    curve, simulation, rows, figure, command, seconds
        As for :func:`html_report`.

    Returns
    -------
    Path
    """
    text = html_report(
        model, curve, simulation, rows=rows, figure=figure, command=command, seconds=seconds
    )
    result = Path(path)
    write_atomically(result, text)
    return result


def html_report(
    model: SpikedRandomFeatures,
    curve: xr.Dataset,
    simulation: xr.Dataset | None = None,
    *,
    rows: Sequence[float] | None = None,
    figure: Any = None,
    command: str = "",
    seconds: float | None = None,
) -> str:
    """Return a learning curve with everything that is needed to judge and to repeat it.

    Parameters
    ----------
    model : SpikedRandomFeatures
    curve : xarray.Dataset
        As ``model.curve(...).to_dataset()`` returns it, over ``alpha``.
    simulation : xarray.Dataset, optional
        As ``model.simulate`` returns it; its sample complexities have to occur in `curve`.
    rows : sequence of float, optional
        Sample complexities for the table; default: those of the simulation, else all.
    figure : matplotlib.figure.Figure, optional
        Default: drawn from the datasets.
    command : str
        Command line that made the result.
    seconds : float, optional
        Time it took.

    Returns
    -------
    str
        HTML without any reference to other files.

    Raises
    ------
    MissingDependencyError
        Without Jinja2 or matplotlib.
    """
    columns, cells = result_table(curve, simulation, rows)
    result = model.derivation
    if figure is None:
        with off_screen():
            figure = plot_curve(curve, simulation=simulation).figure
    part = Part(
        figure=inline_svg(figure),
        caption=_caption(curve, simulation),
        columns=columns,
        rows=cells,
        rests_on=rests_on(curve, simulation),
        parameters=_parameters(model, curve),
        remark=_REMARK,
        sections=_sections(model),
    )
    return rendered(
        f"{result.student} network, {result.teacher} teacher: {_first_layer(model)[0]}",
        [part],
        lead="Generalisation error of a two-layer network whose first layer "
        f"{_first_layer(model)[1]} and whose readout was then trained by ridge regression, in "
        "the proportional limit n, p, d → ∞.",
        warnings=_warnings(model, simulation),
        command=command,
        code=_code(model, curve, simulation),
        run=_run(simulation),
        seconds=seconds,
        cite=_CITE,
    )


def result_table(
    curve: xr.Dataset, simulation: xr.Dataset | None = None, rows: Sequence[float] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return headings and formatted cells: theory, simulation, their difference.

    Parameters
    ----------
    curve, simulation : xarray.Dataset
    rows : sequence of float, optional
        Sample complexities; default: those of the simulation, else all of the curve.

    Returns
    -------
    headings : list of str
    cells : list of list of str
        One row per sample complexity. The difference is in standard errors of the simulation
        and in per cent of the theory.

    Raises
    ------
    ParameterError
        If a sample complexity does not occur in a dataset.
    """
    corrected = simulation is not None and "test_error_complete" in curve.variables
    headings = [
        *THEORY_COLUMNS,
        *(SIMULATION_COLUMNS if simulation is not None else ()),
        *(COMPLETE_COLUMNS if corrected else ()),
    ]
    if rows is None:
        rows = (curve if simulation is None else simulation)["alpha"].to_numpy().tolist()
    cells = []
    for alpha in rows:
        point = _at(curve, alpha, "curve")
        theory = float(point["test_error"])
        row = theory_cells(alpha, theory, float(point["quadrature_error"]))
        if simulation is not None:
            measured = _at(simulation, alpha, "simulation")
            error = float(measured["test_error_standard_error"])
            mean = float(measured["test_error_mean"])
            row += simulation_cells(theory, mean, error)
            if corrected:
                row += complete_cells(float(point["test_error_complete"]), mean, error)
        cells.append(row)
    return headings, cells


def rests_on(curve: xr.Dataset, simulation: xr.Dataset | None = None) -> list[str]:
    """Return what each kind of number rests on, one sentence or two each."""
    result = [
        theory_rests_on(float(curve["residual"].max()), float(curve["quadrature_error"].max())),
        *([FINITE_WIDTH_INCLUDED] if "width" in curve.attrs else []),
        *([COMPLETE_INCLUDED] if "leading_order" in curve.attrs else []),
        "Closed forms are exact, found by rule; an 𝔼 that stays was integrated numerically, which "
        "the estimated error covers.",
        "Best linear predictor: exact, the teacher's second moment beyond its linear part.",
    ]
    if simulation is not None:
        result.append(
            simulation_rests_on(simulation.sizes["seed"], int(simulation.attrs["dimension"]))
        )
        result.append(FINITE_SIZE)
        if "test_error_complete" in curve.variables:
            result.append(COMPLETE)
    return result


# ---------------------------------------------------------------------- parts of the page


def _first_layer(model: SpikedRandomFeatures) -> tuple[str, str]:
    if model.direct_parameters is not None:
        return "spiked random features", "consists of spiked random features"
    if model.step_size == 0:
        return "random features", "kept its random weights"
    return "one giant step", "took one giant gradient step"


def _at(dataset: xr.Dataset, alpha: float, name: str) -> xr.Dataset:
    places = dataset["alpha"].to_numpy().tolist()
    index = min(range(len(places)), key=lambda i: abs(places[i] - alpha))
    if not math.isclose(places[index], alpha, rel_tol=1e-12):
        raise ParameterError(f"alpha = {alpha:g} does not occur in the {name}")
    return dataset.isel(alpha=index)


def _caption(curve: xr.Dataset, simulation: xr.Dataset | None) -> str:
    corrected = "test_error_complete" in curve.variables
    text = (
        "Test error against sample complexity α = n/d of the readout. Line: theory"
        f"{', complete to leading order' if 'leading_order' in curve.attrs else ''}. "
        f"{'Dotted: the theory complete to leading order. ' if corrected else ''}"
        "Dashed: the error of the best linear predictor, which random features without a step "
        "cannot beat in this regime."
    )
    if simulation is None:
        return text
    return (
        f"{text} Circles: {simulation.sizes['seed']} simulated networks of input dimension "
        f"d = {simulation.attrs['dimension']}; bars are standard errors of the mean."
    )


def _warnings(model: SpikedRandomFeatures, simulation: xr.Dataset | None) -> list[str]:
    result = []
    if model.leap_index > 1:
        result.append(uninformative(model.leap_index))
    if model.bulk_spread > LARGE_SPREAD:
        result.append(quality_text(model))
    if simulation is not None and simulation.attrs.get("interrupted"):
        result.append(
            "The simulation was interrupted; the numbers are those of the networks that had "
            "finished."
        )
    return result


def _parameters(
    model: SpikedRandomFeatures, curve: xr.Dataset
) -> list[list[tuple[Markup, str, str]]]:
    def row(symbol: str, meaning: str, value: Any) -> tuple[Markup, str, str]:
        letter = Markup(math_element(mathml_row(sp.Symbol(symbol)), display=False))
        shown = "∞" if value == math.inf else f"{value:.10g}".replace("-", "−")
        return letter, meaning, shown

    chosen = []
    if model.direct_parameters is None:
        chosen += [
            row("s", "step size, per neuron", model.step_size),
            row("alpha_0", "samples of the step, n₀/d", model.alpha0),
        ]
    chosen += [
        row("beta", "aspect ratio p/d", model.beta),
        row("lambda", "ridge penalty", curve.attrs["ridge"]),
        row("Delta", "variance of the label noise", model.noise_variance),
        *([] if model.width is None else [row("p", "width, in a correction", model.width)]),
    ]
    spike = model.spike
    result = [
        row("r", "spike strength", spike.spike_strength),
        row("c", "bulk variance", spike.bulk_variance),
        row("gamma", "alignment with the teacher", spike.alignment),
        *(
            [row("a", "norm overlap, a correction", spike.norm_overlap)]
            if "norm_overlap" in curve.attrs
            else []
        ),
        *(
            row(symbol, f"stretch of the rows {where}, a correction", value)
            for symbol, where, value in zip(
                ("t_vv", "t_vzeta", "t_zetazeta"),
                ("along the spike", "mixed", "across the spike"),
                spike.stretch,
                strict=True,
            )
            if "stretch_along" in curve.attrs
        ),
        *(
            []
            if model.direct_parameters is not None or not model.step_size
            else [row("delta_c", "relative spread of the bulk covariance", model.bulk_spread)]
        ),
        row("ell", "leap index of the teacher", model.leap_index),
        row("E_lin", "best linear predictor's error", model.best_linear_error),
    ]
    return [chosen, result]


def _sections(model: SpikedRandomFeatures) -> list[Formulas]:
    return [
        Formulas(section.title, section.remark, [Markup(f.mathml()) for f in section.formulas])
        for section in sections(model)
    ]


def _code(model: SpikedRandomFeatures, curve: xr.Dataset, simulation: xr.Dataset | None) -> str:
    places = curve["alpha"].to_numpy()
    ridge = curve.attrs["ridge"]
    given = {k: v for k, v in model.parameters().items() if k not in ("student", "teacher")}
    # Left out where it says nothing: the default, and models that need no assumption.
    for flag, usual in (("allow_non_odd", False), ("leading_order", "published")):
        if given.get(flag) == usual:
            del given[flag]
    build = "SpikedRandomFeatures"
    if model.direct_parameters is not None:
        build += ".from_parameters"
    infinity = "math.inf" if math.inf in given.values() else ""
    texts = {k: infinity if v == math.inf else repr(v) for k, v in given.items()}
    if isinstance(law := given.get("bulk"), BulkLaw):
        texts["bulk"] = f"gs.BulkLaw.from_dict({law.to_dict()!r})"
    arguments = "".join(f", {name}={text}" for name, text in texts.items())
    lines = [
        *(["import math", ""] if infinity else []),
        "import giantstep as gs",
        "import numpy as np",
        "",
        f"model = gs.{build}({model.student!r}, {model.teacher!r}{arguments})",
        f"curve = model.curve(alpha=np.linspace({places.min():g}, {places.max():g}, 100), "
        f"ridge={ridge!r})",
    ]
    if simulation is not None:
        lines.append(
            f"simulation = model.simulate(dimension={simulation.attrs['dimension']}, "
            f"alpha={[round(a, 12) for a in simulation['alpha'].to_numpy().tolist()]}, "
            f"ridge={ridge!r}, seeds={simulation.sizes['seed']}, "
            f"seed={simulation.attrs['entropy']})"
        )
    return "\n".join(lines)


def _run(simulation: xr.Dataset | None) -> list[tuple[str, str]]:
    if simulation is None:
        return []
    return [
        ("seed", str(simulation.attrs["entropy"])),
        ("networks", str(simulation.sizes["seed"])),
        ("dimension d", str(simulation.attrs["dimension"])),
    ]
