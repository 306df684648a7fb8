"""What commands give back: text on the terminal, with --json a document, with --out a file.

Whether a file can be written is found out before anything is computed. Its suffix says what it is:
a figure with its data next to it, a report, or data alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import re
import runpy
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .atomic_files import replacing, write_atomically
from .cli_options import JSON, Option, option, terminal_width
from .errors import GiantstepError, MissingDependencyError, ParameterError
from .json_document import json_text

if TYPE_CHECKING:
    import xarray as xr

PICTURES, PAGES, DATA = (".png", ".pdf", ".svg"), (".html", ".htm"), (".nc", ".json", ".csv")


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
    return str(variables_of(text, what)["__name__"])


def variables_of(text: str, what: str) -> dict[str, Any]:
    """Run a Python file as :func:`run_python` does; return what it has defined."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise ParameterError(f"{what}, and {text!r} is none")
    name = str(path.resolve())
    sys.path.insert(0, str(path.resolve().parent))
    try:
        return runpy.run_path(name, run_name=name)
    except Exception as error:
        own = [line for line in traceback.extract_tb(error.__traceback__) if line.filename == name]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1].lineno if own else None
        kind = "" if isinstance(error, GiantstepError) else f"{type(error).__name__}: "
        where = text if line is None else f"{text}, line {line}"
        raise ParameterError(f"{where}: {kind}{error}") from error


def checked_file(
    text: str, flag: str, suffixes: Sequence[str], name: str, *, unnamed: Sequence[str] = ()
) -> Path:
    """Find out now, not after the computation, whether a file can be written.

    Parameters
    ----------
    text : str
        What the user gave.
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


def output(*, figure: bool = True, data: bool = True) -> tuple[Option, Option]:
    """Return ``--out`` and ``--json``, which mean the same for all commands.

    Parameters
    ----------
    figure, data : bool
        Whether there is a figure, and labelled data.
    """
    kinds = [*(["figure .png, .pdf, .svg"] if figure else []), "report .html"]
    kinds += [f"data .json{', .nc, .csv' if data else ''}"]
    suffixes = [*(PICTURES if figure else ()), ".html", *(DATA if data else (".json",))]
    read = partial(_writable, suffixes)
    return option("--out FILE", f"write a file: {'; '.join(kinds)}", read), JSON


def _writable(suffixes: Sequence[str], flag: str) -> Callable[[str], Path]:
    """Return a reader of files that can be written, and for which all is installed."""

    def read(text: str) -> Path:
        try:
            out = checked_file(text, flag, suffixes, "result", unnamed=(".htm",))
        except ParameterError as error:
            # Which argument it is, argparse says itself.
            raise argparse.ArgumentTypeError(str(error).removeprefix(flag).lstrip(": ")) from None
        suffix = out.suffix.lower()
        needed = ("matplotlib",) if suffix in PICTURES else _REPORT if suffix in PAGES else ()
        for package in needed:
            if importlib.util.find_spec(package) is None:
                raise MissingDependencyError(
                    f"figures and reports need {package}, which is not installed; use {flag} "
                    f'{out.stem}.json, or pip install "giantstep[plot]"'
                )
        return out

    return read


_REPORT = ("matplotlib", "jinja2", "docutils")


def without_figure(arguments: argparse.Namespace, why: str) -> None:
    """Refuse a figure of a result that has none.

    Raises
    ------
    ParameterError
        If ``--out`` is a figure.
    """
    if is_picture(arguments.out):
        raise ParameterError(
            f"--out {str(arguments.out)!r}: {why}, or use --out {arguments.out.stem}.json"
        )


def is_picture(out: Path | None) -> bool:
    """Say whether a file holds a figure and nothing else."""
    return out is not None and out.suffix.lower() in PICTURES


def show(text: str) -> None:
    """Print a text; on a terminal, tables that are wider than it go below each other."""
    print(fitted(text, terminal_width()) if sys.stdout.isatty() else text, flush=True)


def fitted(text: str, width: int) -> str:
    """Return a text whose tables are cut to a width, each part with the first column again."""
    result: list[str] = []
    for is_table, block in itertools.groupby(text.splitlines(), lambda line: bool(_BAR & {*line})):
        lines = list(block)
        if not is_table or max(map(len, lines)) <= width:
            result += lines
            continue
        rows = [re.split("[│┼]", line) for line in lines]
        if len({len(row) for row in rows}) > 1:
            result += lines
            continue
        sizes = [max(map(len, column)) + 1 for column in zip(*rows, strict=True)]
        parts: list[list[int]] = [[]]
        for k in range(1, len(sizes)):
            if parts[-1] and sizes[0] + sum(sizes[i] for i in parts[-1]) + sizes[k] > width:
                parts.append([])
            parts[-1].append(k)
        for number, part in enumerate(parts):
            result += [""] if number else []
            for row in rows:
                bar = "┼" if "─" in row[0] else "│"
                result.append(bar.join(row[k] for k in (0, *part)).rstrip())
    return "\n".join(result)


_BAR = {"│", "┼"}


def deliver(
    arguments: argparse.Namespace,
    *results: Any,
    text: str,
    title: str = "",
    document: Any = None,
    data: xr.Dataset | Callable[[], xr.Dataset] | None = None,
    draw: Callable[[], Any] | None = None,
) -> int:
    """Print what a command has found, and write it where that is wanted; return exit code 0.

    Parameters
    ----------
    arguments : Namespace
        With ``json`` and ``out``.
    *results
        What a report shows, and unless other arguments say so, what is drawn and kept.
    text : str
        For the terminal; empty if it stands there already.
    title : str
        Of a report.
    document : optional
        As JSON; default: what the results are as plain values.
    data : Dataset or callable, optional
        Default: the dataset of the only result.
    draw : callable, optional
        Returns axes; default: those of the first result.
    """
    if text:
        show(text)
    out: Path | None = arguments.out
    suffix = "" if out is None else out.suffix.lower()
    if document is None and (arguments.json or suffix == ".json"):
        documents = [result.to_dict() for result in results if hasattr(result, "to_dict")]
        if not documents and data is not None:
            documents = [(data() if callable(data) else data).to_dict()]
        document = documents[0] if len(documents) == 1 else documents
    arguments.document = document
    if out is None:
        return 0
    written = [out]
    if suffix == ".json":
        write_json(out, document)
    elif suffix in PAGES:
        _write_report(out, results, text, title, draw)
    else:
        labelled = data() if callable(data) else data
        if labelled is None and hasattr(results[0], "to_dataset"):
            own = results[0].to_dataset()
            labelled = own if own.data_vars or suffix in DATA else None
        if suffix == ".csv":
            assert labelled is not None
            write_atomically(out, _csv(labelled))
        elif suffix == ".nc":
            assert labelled is not None
            save_data(labelled, out)
        else:
            from .derivations.figures import save_figure

            save_figure(results[0].plot() if draw is None else draw(), out)
            if labelled is not None:
                written.append(save_data(labelled, out.with_suffix(".nc")))
    show(f"\nWrote {', '.join(map(os.fspath, written))}")
    return 0


def _write_report(
    out: Path, results: Sequence[Any], text: str, title: str, draw: Callable[[], Any] | None
) -> None:
    from .derivations.report import result_report

    command = shlex.join(["giantstep", *sys.argv[1:]])
    page = result_report(results, title=title, command=command, text=text, draw=draw)
    write_atomically(out, page)


def write_json(out: Path, document: Any) -> None:
    """Write plain values; infinity and not-a-number are texts."""
    write_atomically(out, f"{json_text(document)}\n")


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
