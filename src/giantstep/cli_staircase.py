"""The command ``giantstep staircase``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .cli_numbers import whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import sympy as sp

    from .symbolic.leaps.staircase import Staircase

EPILOG = """\
TARGET is a function of standard Gaussian coordinates x1, x2, ...; He(k, x) is the probabilists'
Hermite polynomial. U_t is the subspace of the coordinates that t giant steps learn, each on fresh
samples, exactly: e1, e2, ... are unit vectors, and (1, 1) is the direction of x1 + x2. With order
K a step sees n = Theta(d^K) samples and Hermite orders up to K outside of what is known already.

Each row says what it rests on: theorem, conjecture, extrapolation, or derived here (Dandi,
Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270). --student restricts what an activation can
use: relu only the first and the even Hermite degrees, tanh the odd ones. --readout says that the
second layer takes few values; then neurons move in clusters, and a step may learn less.

examples:
  giantstep staircase "x1 + x1*x2"
  giantstep staircase "x1*x2 + x3" --order 2
  giantstep staircase "x1 + He(2, x1)*x2" --student relu
  giantstep staircase "x1 + x1*x2 + He(3, x1)*x3" --readout 1,-1
  giantstep staircase "sign(x1) + abs(x1)*x2" --out staircase.html
"""

_ENDINGS = (".html", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    parser.add_argument(
        "--order",
        type=whole("--order", 1, 2),
        default=1,
        metavar="K",
        help="n = Theta(d^K) samples a step, orders up to K [1]",
    )
    parser.add_argument(
        "--variant",
        choices=("all-orders", "strict"),
        default="all-orders",
        help="all orders up to K in a step, or only the lowest that adds anything [all-orders]",
    )
    parser.add_argument(
        "--student", metavar="F", help="activation of the neurons [one that uses all degrees]"
    )
    parser.add_argument(
        "--biases", action="store_true", help="the neurons of --student have random biases"
    )
    parser.add_argument(
        "--readout", metavar="A,B,...", help="values of the second layer [a continuum of them]"
    )
    parser.add_argument(
        "--steps", type=whole("--steps", 1, 3), metavar="T", help="at most so many steps [all]"
    )
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")
    parser.add_argument("--out", metavar="FILE", help="write a page .html or data .json, too")


def run(arguments: argparse.Namespace) -> int:
    """Print the staircase of a target."""
    from .symbolic.leaps.staircase import staircase

    out = None if arguments.out is None else _checked_path(arguments.out)
    found = staircase(
        arguments.target,
        arguments.order,
        variant=arguments.variant,
        student=arguments.student,
        biases=arguments.biases,
        readout=None if arguments.readout is None else _numbers(arguments.readout),
        max_steps=arguments.steps,
    )
    # All is computed before anything is printed: an error leaves the output empty.
    latex = f"\n{found.latex()}" if arguments.latex else ""
    if out is not None:
        _write(found, out)
    print(f"{found}{latex}")
    if out is not None:
        print(f"Wrote {out}")
    return 0


def _checked_path(text: str) -> Path:
    from pathlib import Path

    from .errors import ParameterError

    path = Path(text).expanduser()
    if path.suffix not in _ENDINGS:
        raise ParameterError(f"--out must end in {' or '.join(_ENDINGS)}, got {text!r}")
    return path


def _numbers(text: str) -> Sequence[sp.Expr]:
    from .errors import ParameterError
    from .symbolic.parser import parse_expression

    parts = text.split(",")
    if not all(part.strip() for part in parts):
        raise ParameterError(f"--readout needs numbers such as 1,-1, got {text!r}")
    return [parse_expression(part, {}, argument="--readout") for part in parts]


def _write(found: Staircase, path: Path) -> None:
    import html
    import json

    from .atomic_files import write_atomically

    if path.suffix == ".json":
        content = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    else:
        title = html.escape(f"staircase of {found.target}")
        content = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            "<style>body{font-family:sans-serif;max-width:60em;margin:2em auto}"
            "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.3em .6em;"
            f"text-align:left}}</style></head><body>{found._repr_html_()}</body></html>"
        )
    write_atomically(path, content + "\n")
