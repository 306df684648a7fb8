"""``giantstep optimal``: the ridge penalty or the step size with the smallest test error."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .cli_curve import model_from
from .cli_files import add_output, checked_out, deliver
from .cli_options import add_model, digits, positive, real, sample_complexities
from .errors import ParameterError
from .pages import aligned

if TYPE_CHECKING:
    from .derivations.optima import Optimum

RIDGE, STEP = "ridge", "step-size"
_RIDGE = 0.1
_SYMBOLS = {RIDGE: "λ", STEP: "s"}

EPILOG = """\
The optimum is a zero of the exact derivative of the test error, by the implicit function theorem
from the saddle-point equations. From every minimum of a scan of the bounds a descent leads to the
zero of the derivative; of several minima the lowest is returned; the others are named. Two minima
closer than one point of the scan (4 for each factor of ten of a ridge penalty, 8 of a step size)
are not told apart.

  interior minimum   the derivative vanishes; the estimated error of the optimum is that of the
                     derivative, divided by the second derivative (differences of the first).
  at the boundary    the test error falls towards an end of --bounds: wider bounds may do better.
                     Without noise the best ridge penalty may well be 0, and with much noise inf.

--what ridge      takes no --ridge; --digits asks for more digits of the optimum and its error.
--what step-size  takes no --step-size, and needs a finite --alpha0 or a teacher with a linear part:
                  else no step leaves a spike. alpha0, noise and ridge stay what they are.

--joint           both at once: takes neither --step-size nor --ridge; --bounds are those of the
                  ridge penalty, --step-bounds those of the step size.

conventions: as for giantstep curve --help.

examples:
  giantstep optimal --student tanh --teacher sin --noise 0.25 --alpha 2
  giantstep optimal --student erf --teacher erf --noise 0.1 --alpha 0.5:4:8
  giantstep optimal --student erf --teacher erf --noise 0.1 --alpha 2 --digits 30
  giantstep optimal --what step-size --student erf --teacher erf --ridge 0.05 --bounds 0.5:10
  giantstep optimal --joint --student erf --teacher erf --noise 0.1 --alpha 0.5:4:8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model(parser)
    # What is optimised has no value: one that is given is refused, not ignored.
    parser.set_defaults(run=run, ridge=None, step_size=None)
    parser.add_argument("--what", choices=(RIDGE, STEP), help="what is optimised [ridge]")
    parser.add_argument(
        "--joint", action="store_true", help="optimise ridge penalty and step size together"
    )
    parser.add_argument(
        "--alpha",
        type=sample_complexities("--alpha"),
        default=[2.0],
        metavar="LIST",
        help="sample complexities n/d: 0.5,1,2 or START:STOP:COUNT [2]; several give a table",
    )
    parser.add_argument(
        "--bounds",
        type=_bounds,
        metavar="LOW:HIGH",
        help="where to look [1e-6:1e6 for ridge, 0.05:20 for step-size]",
    )
    parser.add_argument(
        "--step-bounds",
        type=_bounds,
        metavar="LOW:HIGH",
        help="where to look for a step size with --joint [0.05:20]",
    )
    parser.add_argument("--digits", type=digits(30), metavar="N", help="refine a ridge to N digits")
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the optimum at each sample complexity."""
    _check(arguments)
    out = checked_out(arguments, "optimum")
    if arguments.joint:
        return _joint(arguments, out)
    ridge = _RIDGE if arguments.ridge is None else arguments.ridge
    model = model_from(arguments)
    bounds = {} if arguments.bounds is None else {"bounds": arguments.bounds}
    result: list[Optimum] = []
    for alpha in arguments.alpha:
        if arguments.what == RIDGE:
            result.append(
                model.optimum(over="ridge", alpha=alpha, digits=arguments.digits, **bounds)
            )
        else:
            result.append(model.optimum(over="step_size", alpha=alpha, ridge=ridge, **bounds))
    # All is computed before anything is printed: an error leaves the output empty.
    _deliver(arguments, out, result, ridge, _table)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, before anything is derived."""
    stepping = [
        flag
        for flag in ("step_size", "learning_rate", "convention")
        if getattr(arguments, flag) is not None
    ]
    if arguments.joint:
        given = [
            f"--{name.replace('_', '-')}"
            for name in (*stepping, "ridge", "what", "digits")
            if name in stepping or getattr(arguments, name) is not None
        ]
        if given:
            raise ParameterError(
                f"--joint optimises ridge penalty and step size; leave out {', '.join(given)}"
            )
        return
    if arguments.step_bounds is not None:
        raise ParameterError("--step-bounds belongs to --joint; use --bounds")
    if arguments.what is None:
        arguments.what = RIDGE
    if arguments.what == RIDGE and arguments.ridge is not None:
        raise ParameterError(
            "--ridge is what is optimised; leave it out, give --bounds, or use --what step-size"
        )
    if arguments.what == STEP:
        if stepping:
            raise ParameterError(
                f"--{stepping[0].replace('_', '-')} is what is optimised; leave it out, give "
                "--bounds, or use --what ridge"
            )
        if arguments.digits is not None:
            raise ParameterError("--digits refines a ridge penalty; leave it out for a step size")


def _deliver(
    arguments: argparse.Namespace,
    out: Path | None,
    result: list[Optimum],
    ridge: float | None,
    table: Callable[[argparse.Namespace, list[Optimum]], str],
) -> None:
    import xarray as xr

    heading = _heading(arguments, ridge)
    if len(result) == 1:
        body = f"α = {arguments.alpha[0]:g}\n{result[0]}"
    else:
        body = table(arguments, result)
    data = xr.concat([one.to_dataset() for one in result], "alpha", combine_attrs="drop_conflicts")
    deliver(
        arguments, out, *result, text=f"{heading}\n\n{body}", title=heading,
        data=data.assign_coords(alpha=arguments.alpha),
    )  # fmt: skip


def _joint(arguments: argparse.Namespace, out: Path | None) -> int:
    model = model_from(arguments)
    given = {"ridge": arguments.bounds, "step_size": arguments.step_bounds}
    bounds = {name: value for name, value in given.items() if value is not None}
    result = [model.optimum(over=[*given], alpha=x, bounds=bounds) for x in arguments.alpha]
    _deliver(arguments, out, result, None, _joint_table)
    return 0


def _joint_table(arguments: argparse.Namespace, found: list[Optimum]) -> str:
    pairs = list(zip(arguments.alpha, found, strict=True))
    rows = [
        [f"{a:.6g}", f"{x.ridge:.10g}", f"{x.step_size:.10g}", f"{x.test_error:.10g}"]
        for a, x in pairs
    ]
    notes = [f"α = {a:.6g}: {x.kind}" for a, x in pairs if not x.is_interior]
    notes += [
        f"α = {a:.6g}: other local minimum at {other}" for a, x in pairs for other in x.other_minima
    ]
    largest = max(error for x in found for error in x.errors.values())
    return "\n".join(
        [
            aligned(["α", "optimal λ", "optimal s", "test error"], rows),
            "",
            *notes,
            f"float, from exact derivatives; estimated errors of λ and s at most {largest:.0e}",
        ]
    )


def _bounds(text: str) -> tuple[float, float]:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not LOW:HIGH; use --bounds 1e-3:10")
    for part in parts:
        # In words of its own: "inf" is a number, but no end of a scan.
        if not 0 < real("--bounds", part, "1e-3:10") < math.inf:
            raise argparse.ArgumentTypeError(
                f"both ends must be positive and finite, got {part!r}; use --bounds 1e-3:10"
            )
    low, high = (positive("--bounds", "1e-3:10")(part) for part in parts)
    if not low < high:
        raise argparse.ArgumentTypeError(
            f"LOW has to be below HIGH, got {text!r}; use --bounds 1e-3:10"
        )
    return low, high


def _heading(arguments: argparse.Namespace, ridge: float | None) -> str:
    alpha0 = "∞" if arguments.alpha0 == math.inf else f"{arguments.alpha0:g}"
    if ridge is None:
        fixed = ""
    else:
        fixed = f"s = {arguments.step_size:g}, " if arguments.what == RIDGE else f"λ = {ridge:g}, "
    width = "" if arguments.width is None else f", p = {arguments.width}"
    order = ", leading order complete" if arguments.leading_order == "complete" else ""
    return (
        f"student {arguments.student}, teacher {arguments.teacher}; {fixed}α₀ = {alpha0}, "
        f"β = {arguments.beta:g}, Δ = {arguments.noise:g}{width}{order}"
    )


def _table(arguments: argparse.Namespace, found: list[Optimum]) -> str:
    symbol = _SYMBOLS[arguments.what]
    rows, notes = [], []
    for alpha, best in zip(arguments.alpha, found, strict=True):
        error = f"{best.error:.0e}" if best.is_interior else "at the boundary"
        rows.append([f"{alpha:.6g}", best.text(best.value), error, best.text(best.test_error)])
        if not best.is_interior:
            notes.append(f"α = {alpha:.6g}: {best.kind}")
        if best.other_minima:
            others = ", ".join(f"{m.point[best.over[0]]:.6g}" for m in best.other_minima)
            notes.append(f"α = {alpha:.6g}: other local minima at {symbol} = {others}")
    table = aligned(["α", f"optimal {symbol}", "estimated error", "test error"], rows)
    return "\n".join([table, "", *notes, _rests_on(found)])


def _rests_on(found: list[Optimum]) -> str:
    precise = [best for best in found if best.digits is not None]
    return (
        precise[0].rests_on
        if precise
        else (
            "float, zeros of the exact derivative; errors are estimated (quadrature and rounding)"
        )
    )
