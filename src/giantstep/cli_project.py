"""The command ``giantstep project``: fitted parts of a target, and errors that are left."""

from __future__ import annotations

import argparse
import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .atomic_files import write_atomically
from .cli_numbers import whole
from .errors import ParameterError

if TYPE_CHECKING:
    from .derivations.giant_steps.regimes import RegimeTable
    from .symbolic.projections import Projection

EPILOG = """\
With --onto, the target is split into its part of degree at most L outside a subspace U, and the
rest. L = 0 gives E[f | x_U], and the residual norm is then E Var(f | x_U). Rows of U are exact
numbers, separated by commas, rows by semicolons; --onto 0 is U = {0}.

With --regimes, the fit is predicted for n = d^k1 samples per giant step and p = d^k2 neurons: the
first layer learns U, the second one fits degrees up to min(k1, k2) outside it. Each row says what
it rests on: theorem, conjecture (Dandi et al., arXiv 2305.18270) or extrapolation.

He(k, x1) are the probabilists' Hermite polynomials; all results are exact.

examples:
  giantstep project "x1 + x1*x2 + He(2, x2)" --onto "1,0" --degree 1
  giantstep project "relu(x1) + relu(x2)" --onto "1,1"
  giantstep project "x1 + sqrt(2)*x2 + x1*x3" --onto "1,sqrt(2),0; 0,0,1" --latex
  giantstep project "x1 + He(2, x1)*x2 + He(2, x2)*x3" --regimes --steps 3
  giantstep project "x1 + x1*x2" --regimes --exponents "1,0; 3/2,1; 2,3/2" --student relu
"""

_SUFFIXES = (".html", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--onto", metavar="ROWS", help='rows that span U, such as "1,0;0,1"')
    which.add_argument(
        "--regimes", action="store_true", help="predict the fit for several sizes of n and p"
    )
    parser.add_argument(
        "--degree",
        type=whole("--degree", 0, 1),
        metavar="L",
        help="with --onto: degree outside [0]",
    )
    parser.add_argument(
        "--steps", type=whole("--steps", 0, 2), metavar="T", help="with --regimes: giant steps [1]"
    )
    parser.add_argument(
        "--exponents",
        metavar="PAIRS",
        help='with --regimes: k1,k2 of each row ["1,0; 1,1; 2,0; 2,1; 2,2"]',
    )
    parser.add_argument(
        "--student",
        metavar="F",
        help="with --regimes: activation of the neurons",
    )
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")
    parser.add_argument("--out", metavar="FILE", help="write the result as .html or .json, too")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    out = None if arguments.out is None else _checked_path(arguments.out)
    found = _table(arguments) if arguments.regimes else _projection(arguments)
    # All is computed before anything is printed: an error leaves the output empty.
    text, latex = str(found), found.latex() if arguments.latex else None
    if out is not None:
        _write(out, found)
    print(text)
    if latex is not None:
        print(f"\n{latex}")
    if out is not None:
        print(f"\nWrote {out}")
    return 0


def _projection(arguments: argparse.Namespace) -> Projection:
    from .symbolic.projections import project
    from .symbolic.targets import target

    for name in ("steps", "exponents", "student"):
        if getattr(arguments, name) is not None:
            raise ParameterError(
                f"--{name} belongs to --regimes; leave it out, or leave out --onto"
            )
    f = target(arguments.target)
    rows = [] if arguments.onto.strip() == "0" else _rows(arguments.onto, "--onto", f.dimension)
    return project(f, rows, arguments.degree or 0)


def _table(arguments: argparse.Namespace) -> RegimeTable:
    from .derivations.giant_steps.regimes import FIVE_REGIMES, regimes

    if arguments.degree is not None:
        raise ParameterError("--degree belongs to --onto; in --regimes k1 and k2 give the degree")
    pairs: Any = FIVE_REGIMES
    if arguments.exponents is not None:
        pairs = _rows(arguments.exponents, "--exponents", 2)
        if not all(entry.is_Rational for pair in pairs for entry in pair):
            raise ParameterError(
                f"--exponents must be rational, such as 1,0; 3/2,1, got {arguments.exponents!r}"
            )
    steps = 1 if arguments.steps is None else arguments.steps
    return regimes(arguments.target, pairs, steps=steps, student=arguments.student)


def _rows(text: str, flag: str, length: int) -> list[list[Any]]:
    """Read rows of exact numbers."""
    from .symbolic.parser import parse_expression

    rows = []
    for number, row in enumerate(text.split(";"), 1):
        entries = [part.strip() for part in row.split(",")]
        if not all(entries):
            raise ParameterError(
                f'{flag} needs rows of numbers such as "1,0;0,1", but row {number} of {text!r} '
                "has an empty entry"
            )
        if len(entries) != length:
            raise ParameterError(
                f"{flag} needs rows of {length} numbers, but row {number} has {len(entries)}: "
                f"{row.strip()!r}"
            )
        rows.append([parse_expression(entry, [], argument=flag) for entry in entries])
    return rows


def _checked_path(text: str) -> Path:
    path = Path(text).expanduser()
    if path.suffix not in _SUFFIXES:
        raise ParameterError(f"--out must end in {' or '.join(_SUFFIXES)}, got {text!r}")
    return path


def _write(path: Path, found: Projection | RegimeTable) -> None:
    if path.suffix == ".json":
        content = json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n"
    else:
        title = html.escape(str(found.target))
        content = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            "<style>body{font-family:sans-serif}table{border-collapse:collapse}"
            "td,th{border:1px solid #999;padding:.3em .6em;text-align:left}</style></head>"
            f"<body>{found.to_html()}</body></html>\n"
        )
    write_atomically(path, content)
