"""Files that commands write: whether they can be is found out before anything is computed.

The suffix says what a file is: a figure with its data next to it, a page, or data alone.
"""

from __future__ import annotations

import html
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .atomic_files import replacing, write_atomically
from .errors import GiantstepError, ParameterError
from .json_document import json_text

if TYPE_CHECKING:
    import xarray as xr

PICTURES, PAGES, DATA = (".png", ".pdf", ".svg"), (".html", ".htm"), (".nc", ".json", ".csv")

_STYLE = (
    "body{font-family:sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "pre{overflow-x:auto;background:#f5f5f5;padding:1em}svg{max-width:100%;height:auto}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.3em .6em;text-align:left}"
)


def run_python(text: str, what: str) -> str:
    """Run a Python file of the user, such as one with claims; return the name it ran under.

    Modules beside the file can be imported, as where Python itself is given the file.

    Parameters
    ----------
    text : str
        Path of the file.
    what : str
        How messages begin if there is none: "GIANTSTEP_EXTENSIONS must list Python files".

    Raises
    ------
    ParameterError
        If there is no such file, or running it raises; the message says in which line.
    """
    path = Path(text).expanduser()
    if not path.is_file():
        raise ParameterError(f"{what}, and {text!r} is none")
    name = str(path.resolve())
    sys.path.insert(0, str(path.resolve().parent))
    try:
        runpy.run_path(name, run_name=name)
    except Exception as error:
        own = [line for line in traceback.extract_tb(error.__traceback__) if line.filename == name]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
        kind = "" if isinstance(error, GiantstepError) else f"{type(error).__name__}: "
        where = text if line is None else f"{text}, line {line}"
        raise ParameterError(f"{where}: {kind}{error}") from error
    return name


def checked_file(
    text: str | None,
    flag: str,
    suffixes: Sequence[str],
    name: str,
    *,
    unnamed: Sequence[str] = (),
) -> Path | None:
    """Find out now, not after the computation, whether a file can be written.

    Parameters
    ----------
    text : str, optional
        What the user gave; None for no file.
    flag : str
    suffixes : sequence of str
        Those that are known.
    name : str
        Of a file in an example.
    unnamed : sequence of str
        Suffixes that are taken, too, without being listed.

    Raises
    ------
    ParameterError
        If the suffix is unknown, or the place is a folder or cannot be written to.
    """
    if text is None:
        return None
    path = Path(text).expanduser()
    example = f"{flag} {path.stem or name}{suffixes[0]}"
    if path.suffix.lower() not in (*suffixes, *unnamed):
        raise ParameterError(
            f"{flag} must end in {', '.join(suffixes)}, got {text!r}; use {example}"
        )
    check_folder(path.parent, flag)
    if path.is_dir():
        raise ParameterError(f"{flag} {text!r} is a folder; use {flag} {text}/{name}{suffixes[0]}")
    return path


def check_folder(folder: Path, flag: str) -> None:
    """Find out now, not after the simulation, whether files can be written."""
    probe = folder / f".giantstep-{os.urandom(4).hex()}.tmp"
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise ParameterError(unusable(folder, flag, error)) from None


def unusable(folder: Path, flag: str, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{flag}: cannot write to folder {str(folder)!r}: {reason}; choose another place"


def write(
    out: Path,
    data: xr.Dataset,
    *,
    text: str = "",
    title: str = "",
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
    suffix = out.suffix.lower()
    written = [out]
    if suffix == ".json":
        write_json(out, data.to_dict() if document is None else document)
    elif suffix == ".csv":
        write_atomically(out, _csv(data))
    elif suffix == ".nc":
        save_data(data, out)
    elif suffix in PAGES:
        drawing = svg_of(draw()) if draw is not None else ""
        write_page(
            out, title, f"<h1>{html.escape(title)}</h1>{drawing}<pre>{html.escape(text)}</pre>"
        )
    else:
        from .derivations.figures import save_figure

        assert draw is not None
        save_figure(draw(), out)
        written.append(save_data(data, out.with_suffix(".nc")))
    print(f"\nWrote {', '.join(map(os.fspath, written))}")


def write_json(out: Path, document: Any) -> None:
    """Write plain values; infinity and not-a-number are texts."""
    write_atomically(out, f"{json_text(document)}\n")


def write_page(out: Path, title: str, body: str) -> None:
    """Write a page that stands alone.

    Parameters
    ----------
    out : Path
    title : str
        As text.
    body : str
        As HTML.
    """
    write_atomically(
        out,
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n",
    )


def svg_of(figure: Any) -> str:
    """Return a figure to be put into a page: without the declarations of a file of its own."""
    from .derivations.figures import svg_text

    text = svg_text(figure)
    return text[text.index("<svg") :]


def save_data(data: xr.Dataset, path: Path) -> Path:
    """Write a dataset; a reader sees all of it or none."""
    with replacing(path) as temporary:
        # SciPy comes with giantstep; it writes netCDF 3, which every reader knows.
        data.to_netcdf(temporary, engine="scipy")
    return path


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
