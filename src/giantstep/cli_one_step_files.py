"""Files of ``giantstep one-step``: figures with their data, pages, and data alone."""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import MissingDependencyError, ParameterError

if TYPE_CHECKING:
    import xarray as xr

PICTURES, PAGES, DATA = (".png", ".pdf", ".svg"), (".html", ".htm"), (".nc", ".json", ".csv")
_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "pre{overflow-x:auto;background:#f5f5f5;padding:1em}svg{max-width:100%;height:auto}"
)


def checked_out(arguments: argparse.Namespace, *, draws: bool = True) -> Path | None:
    """Find out now, not after the computation, whether the file can be written.

    Parameters
    ----------
    arguments : Namespace
    draws : bool
        Whether there is something to draw; then there is a file by default.

    Returns
    -------
    Path or None
        None for no file.

    Raises
    ------
    ParameterError
        If the suffix is unknown, wants a figure where there is none, or the place cannot be
        written to.
    MissingDependencyError
        If a figure is wanted without matplotlib.
    """
    from .cli_curve import _check_folder

    text: str | None = arguments.out
    if text is None and draws and not arguments.table_only:
        text = arguments.default_out
    if text is None:
        return None
    out = Path(text).expanduser()
    suffix = out.suffix.lower()
    if suffix not in (*PICTURES, *PAGES, *DATA):
        raise ParameterError(
            f"--out must end in {', '.join((*PICTURES, '.html', *DATA))}, got {text!r}; use --out "
            f"{out.stem or 'one-step'}.png"
        )
    if suffix in PICTURES and not draws:
        raise ParameterError(
            f"--out {text!r}: one point has no figure; add an axis such as --over alpha, or use "
            "--out point.json"
        )
    if suffix in (*PICTURES, *PAGES) and arguments.table_only:
        raise ParameterError(
            f"--out {text!r} has a figure and --table-only draws none; leave out one of the two, "
            "or use --out table.csv"
        )
    _check_folder(out.parent, "--out")
    if out.is_dir():
        raise ParameterError(f"--out {text!r} is a folder; use --out {text}/one-step.png")
    if suffix not in DATA and draws and importlib.util.find_spec("matplotlib") is None:
        raise MissingDependencyError(
            "figures need matplotlib, which is not installed; use --table-only, or "
            'pip install "giantstep[plot]"'
        )
    return out


def checked_store(arguments: argparse.Namespace) -> Path | None:
    """Return the folder of finished networks, made now, so that a run is not lost at its end.

    Raises
    ------
    ParameterError
        If there is one and no simulation, or it cannot be written to.
    """
    from .cli_curve import _checked_store

    if arguments.store is not None and not arguments.simulate:
        raise ParameterError("--store is about --simulate; add that, too")
    return _checked_store(arguments, None)


def resumed(store: Path | None) -> str:
    """Say how to resume, behind the message of an interruption."""
    from .cli_curve import _resume

    return _resume(store) or "; with --store FOLDER finished networks are kept"


def has_figure(out: Path | None) -> bool:
    """Say whether a file holds a figure."""
    return out is not None and out.suffix.lower() not in DATA


def write(
    out: Path,
    data: xr.Dataset,
    *,
    text: str,
    title: str,
    document: Mapping[str, Any] | None = None,
    draw: Callable[[], Any] | None = None,
) -> None:
    """Write a result and say where.

    Parameters
    ----------
    out : Path
        As :func:`checked_out` returned it.
    data : xarray.Dataset
        Written as .nc and .csv, next to a figure, and as .json without `document`.
    text, title : str
        What the terminal shows, for pages.
    document : mapping, optional
        Written as .json.
    draw : callable, optional
        Returns the figure.
    """
    from .atomic_files import write_atomically

    suffix = out.suffix.lower()
    written = [out]
    if suffix == ".json":
        found = plain(data.to_dict() if document is None else document)
        write_atomically(
            out, json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )
    elif suffix == ".csv":
        write_atomically(out, _csv(data))
    elif suffix == ".nc":
        _save(data, out)
    elif suffix in PAGES:
        write_atomically(out, _page(title, text, draw() if draw is not None else None))
    else:
        from .derivations.figures import save_figure

        assert draw is not None
        save_figure(draw(), out)
        written.append(_save(data, out.with_suffix(".nc")))
    print(f"\nWrote {', '.join(map(os.fspath, written))}")


def plain(value: Any) -> Any:
    """Return a value as JSON has it; infinity and not-a-number are texts."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _csv(data: xr.Dataset) -> str:
    if not data.dims:
        names = [str(name) for name in data.data_vars]
        values = [repr(data[name].item()) for name in names]
        return f"{','.join(names)}\n{','.join(values)}\n"
    # One table for each set of axes: a cell of one has no meaning in the other.
    tables: dict[tuple[Any, ...], list[Any]] = {}
    for name, column in data.data_vars.items():
        tables.setdefault(tuple(column.dims), []).append(name)
    texts = [
        data[names].reset_coords(drop=True).to_dataframe().to_csv()
        for axes, names in tables.items()
        if axes
    ]
    return "\n".join(texts)


def _save(data: xr.Dataset, path: Path) -> Path:
    from .derivations.spiked_random_features.paper_figures.drawing import save_dataset

    return save_dataset(data, path)


def _page(title: str, text: str, figure: Any) -> str:
    drawing = ""
    if figure is not None:
        from .derivations.figures import svg_text

        svg = svg_text(figure)
        drawing = svg[svg.index("<svg") :]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1>{drawing}<pre>{html.escape(text)}</pre></body></html>\n"
    )
