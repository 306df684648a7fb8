"""``giantstep leap``, ``staircase`` and ``project``: what steps see, learn and fit of a target."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_files import deliver, output, without_figure
from .cli_options import Command, Group, option, whole
from .errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sympy as sp

    from .derivations.giant_steps.regimes import RegimeTable
    from .symbolic.leaps.leap_report import LeapFiltration
    from .symbolic.targets.projections import Projection

_LEAP = """\
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


def leap(arguments: argparse.Namespace) -> int:
    """Print all leaps of a target."""
    from .symbolic.leaps.leap_report import leaps
    from .symbolic.targets.target import target

    f = target(arguments.target, parameters=_parameters(arguments.parameter))
    direction = None if arguments.direction is None else _direction(arguments.direction)
    if direction is not None and len(direction) != f.dimension:
        raise ParameterError(
            f"--direction needs {f.dimension} components, one for each coordinate of the target, "
            f"got {len(direction)}"
        )
    if direction is not None and f.parameters:
        raise ParameterError(
            "--direction needs a target without parameters; leave one of the two out"
        )
    result = leaps(f)
    # All is computed before anything is printed: an error leaves the output empty.
    lines = [str(result)]
    if direction is not None:
        if result.filtration is None:
            lines.append(f"direction {arguments.direction}: {result.undetermined['filtration']}")
        else:
            lines.append(_orders(arguments.direction, direction, result.filtration))
    if arguments.latex:
        lines.append(f"\n{result.latex()}")
    return deliver(arguments, result, text="\n".join(lines), title=f"Leaps of {f}")


def _direction(text: str) -> list[sp.Expr]:
    from .symbolic.expressions.parser import parse_expression

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


_STAIRCASE = """\
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
  giantstep staircase "x1 + a*x1*x2 + b*x2*x3" --parameter a --parameter b:positive
"""


def staircase(arguments: argparse.Namespace) -> int:
    """Print the staircase of a target."""
    from .symbolic.leaps.staircase import staircase

    parameters = _parameters(arguments.parameter)
    result = staircase(
        arguments.target,
        arguments.order,
        parameters=parameters,
        variant=arguments.variant,
        student=arguments.student,
        biases=arguments.biases,
        readout=None if arguments.readout is None else _numbers(arguments.readout),
        max_steps=arguments.steps,
    )
    # All is computed before anything is printed: an error leaves the output empty.
    latex = f"\n{result.latex()}" if arguments.latex else ""
    title = f"Staircase of {arguments.target}"
    return deliver(arguments, result, text=f"{result}{latex}", title=title)


def _parameters(given: Sequence[str] | None) -> dict[str, str]:
    """Return the kinds of the parameters by their names."""
    result = {}
    for text in given or ():
        name, colon, kind = text.partition(":")
        if name.strip() in result:
            raise ParameterError(f"--parameter names {name.strip()!r} twice; once is enough")
        result[name.strip()] = kind if colon else "real"
    return result


def _numbers(text: str) -> Sequence[sp.Expr]:
    from .symbolic.expressions.parser import parse_expression

    parts = text.split(",")
    if not all(part.strip() for part in parts):
        raise ParameterError(f"--readout needs numbers such as 1,-1, got {text!r}")
    return [parse_expression(part, {}, argument="--readout") for part in parts]


_PROJECT = """\
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


def project(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if not arguments.regimes:
        without_figure(arguments, "a projection has no figure; add --regimes")
    result: Any = _table(arguments) if arguments.regimes else _projection(arguments)
    # All is computed before anything is printed: an error leaves the output empty.
    text = f"{result}\n\n{result.latex()}" if arguments.latex else str(result)
    title = f"What is fitted of {getattr(result, 'target', None) or result.subject}"
    return deliver(arguments, result, text=text, title=title)


def _projection(arguments: argparse.Namespace) -> Projection:
    from .symbolic.targets.projections import project
    from .symbolic.targets.target import target

    for name in ("steps", "exponents", "student"):
        if getattr(arguments, name) is not None:
            raise ParameterError(
                f"--{name} belongs to --regimes; leave it out, or leave out --onto"
            )
    f = target(arguments.target, parameters=_parameters(arguments.parameter))
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
    return regimes(
        arguments.target,
        pairs,
        steps=steps,
        student=arguments.student,
        parameters=_parameters(arguments.parameter),
    )


def _rows(text: str, flag: str, length: int) -> list[list[Any]]:
    """Read rows of exact numbers."""
    from .symbolic.expressions.parser import parse_expression

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


_PARAMETER = opts.PARAMETER.but(
    "--parameter NAME[:KIND]",
    help="a symbol of the target that is a parameter, such as a or a:positive; the answer is then "
    "a table of cases [none]",
)
COMMANDS = (
    Command("leap", "leap index, coordinate, rotation-invariant and generative leap", leap, (
        opts.TARGET, _PARAMETER,
        option(
            "--direction U", "components with commas, such as 1,0,-1/2: at which order U is seen "
            "and contained",
        ),
        opts.LATEX, *output(data=False),
    ), _LEAP),
    Command("staircase", "subspaces that successive giant steps learn, exactly", staircase, (
        opts.TARGET, _PARAMETER,
        option("--order K", "n = Theta(d^K) samples a step, orders up to K", whole(1, 2), 1),
        option(
            "--variant", "all orders up to K in a step, or only the lowest that adds anything",
            default="all-orders", choices=("all-orders", "strict"),
        ),
        opts.STUDENT.but(
            help="activation of the neurons [one that uses all degrees]", default=None
        ),
        option("--biases", "the neurons of --student have random biases"),
        option("--readout A,B,...", "values of the second layer [a continuum of them]"),
        opts.STEPS.but(help="at most so many steps [all]"), opts.LATEX, *output(data=False),
    ), _STAIRCASE),
    Command("project", "part of a target that is fitted on a learned subspace", project, (
        opts.TARGET, _PARAMETER,
        Group("", (
            option("--onto ROWS", 'rows that span U, such as "1,0;0,1"'),
            option("--regimes", "predict the fit for several sizes of n and p"),
        ), exclusive=True),
        option("--degree L", "with --onto: degree outside [0]", whole(0, 1)),
        opts.STEPS.but(help="with --regimes: giant steps [1]", read=whole(0, 2)),
        option(
            "--exponents PAIRS",
            'with --regimes: k1,k2 of each row ["1,0; 1,1; 2,0; 2,1; 2,2"]',
        ),
        opts.STUDENT.but(help="with --regimes: activation of the neurons", default=None),
        opts.LATEX, *output(data=False),
    ), _PROJECT),
)  # fmt: skip
