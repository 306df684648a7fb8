"""The command ``giantstep leap``: from which order on a target shows its directions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .errors import ParameterError

if TYPE_CHECKING:
    import sympy as sp

    from .symbolic.leaps.leap_report import LeapFiltration

EPILOG = """\
TARGET f is a function of x1, x2, ..., coordinates of standard Gaussian inputs in an orthonormal
frame. With C_k = E[grad^k f], its Hermite tensors (probabilists' He_k, divided by nothing):

  leap index               lowest k >= 1 with C_k not 0; one giant step learns something from
                           n ~ d^k samples (Dandi et al., arXiv 2305.18270). With one direction it
                           is the information exponent.
  directions by order      V_k, spanned by the ranges of C_1 to C_k, as it grows.
  coordinate leap          terms of f are learned one after the other, each paying its degree in
                           coordinates that are new; the largest payment of the best order (Abbe,
                           Boix-Adsera, Misiakiewicz, arXiv 2302.11055).
  rotation-invariant leap  the largest coordinate leap over all orthonormal frames: the largest
                           order met by the run {0} -k-> U -k'-> ... that always adds the lowest
                           order that f shows, conditionally on the directions U it has.
  generative leap          the same run if the labels y may be transformed: T(y) (Damian et al.,
                           arXiv 2403.05529 and 2506.05500). Bounds with certificates; "exact" if
                           they meet, else "upper bound only".

Everything is exact; what cannot be decided is said to be undetermined. A constant has no leap.

examples:
  giantstep leap "x1 + x1*x2 + x1*x2*x3"
  giantstep leap "x1*x2 + He(3, x1)" --latex
  giantstep leap "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)" --direction 1,0,0
  giantstep leap "sign(x1) + abs(x1)*x2"
  giantstep leap "z**2*exp(-z**2)" --out leap.html
"""

_SUFFIXES = (".html", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    parser.add_argument(
        "--direction",
        metavar="U",
        help="components with commas, such as 1,0,-1/2: at which order U is seen and contained",
    )
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")
    parser.add_argument("--out", metavar="FILE", help="write FILE.html or FILE.json, too")


def run(arguments: argparse.Namespace) -> int:
    """Print all leaps of a target."""
    from .symbolic.leaps.leap_report import leaps
    from .symbolic.targets import target

    if arguments.out is not None and not arguments.out.endswith(_SUFFIXES):
        raise ParameterError(f"--out must end in .html or .json, got {arguments.out!r}")
    f = target(arguments.target)
    direction = None if arguments.direction is None else _direction(arguments.direction)
    if direction is not None and len(direction) != f.dimension:
        raise ParameterError(
            f"--direction needs {f.dimension} components, one for each coordinate of the target, "
            f"got {len(direction)}"
        )
    found = leaps(f)
    # All is computed before anything is printed: an error leaves the output empty.
    lines = [str(found)]
    if direction is not None:
        if found.filtration is None:
            lines.append(f"direction {arguments.direction}: {found.undetermined['filtration']}")
        else:
            lines.append(_orders(arguments.direction, direction, found.filtration))
    if arguments.latex:
        lines.append(f"\n{found.latex()}")
    if arguments.out is not None:
        _write(arguments.out, found)
        lines.append(f"Wrote {arguments.out}")
    print("\n".join(lines))
    return 0


def _direction(text: str) -> list[sp.Expr]:
    from .symbolic.parser import parse_expression

    if not all(map(str.strip, text.split(","))):
        raise ParameterError(
            f"--direction needs components with commas, such as 1,0,-1/2, got {text!r}"
        )
    return [parse_expression(part, [], argument="--direction") for part in text.split(",")]


def _orders(text: str, direction: list[sp.Expr], filtration: LeapFiltration) -> str:
    seen = filtration.order_seen(direction)
    contained = filtration.order_contained(direction)
    if seen is None:
        which = "does not depend on it" if filtration.is_complete else "does not show it so far"
        return f"direction ({text.strip()}): the target {which}"
    held = f"contained from order {contained} on" if contained else "never contained"
    return f"direction ({text.strip()}): first seen at order {seen}, {held}"


def _write(path: str, found: object) -> None:
    import json
    from pathlib import Path

    from .atomic_files import write_atomically
    from .symbolic.leaps.leap_report import LeapReport

    assert isinstance(found, LeapReport)
    if path.endswith(".json"):
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    else:
        text = (
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Leaps</title>'
            f"<body>{found._repr_html_()}</body></html>"
        )
    write_atomically(Path(path).expanduser(), text + "\n")
