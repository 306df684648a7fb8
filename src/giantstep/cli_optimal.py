"""``giantstep optimal``: the ridge penalty or the step size with the smallest test error."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .cli_curve import model_from
from .cli_files import deliver, output
from .cli_options import (
    ALPHAS,
    DIGITS,
    Command,
    flag_of,
    option,
    real,
    srf_model,
)
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


def run(arguments: argparse.Namespace) -> int:
    """Print the optimum at each sample complexity."""
    import xarray as xr

    _check(arguments)
    ridge = _RIDGE if arguments.ridge is None else arguments.ridge
    model = model_from(arguments)
    given: dict[str, Any] = {}
    if arguments.joint:
        over: Any = ["ridge", "step_size"]
        bounds = zip(over, (arguments.bounds, arguments.step_bounds), strict=True)
        given["bounds"] = {name: value for name, value in bounds if value is not None}
    else:
        over = arguments.what.replace("-", "_")
        given |= {"digits": arguments.digits} if arguments.what == RIDGE else {"ridge": ridge}
        given |= {} if arguments.bounds is None else {"bounds": arguments.bounds}
    # All is computed before anything is printed: an error leaves the output empty.
    result = [model.optimum(over=over, alpha=alpha, **given) for alpha in arguments.alpha]
    heading = _heading(arguments, None if arguments.joint else ridge)
    table = _joint_table if arguments.joint else _table
    several = len(result) > 1
    body = table(arguments, result) if several else f"α = {arguments.alpha[0]:g}\n{result[0]}"
    data = xr.concat([one.to_dataset() for one in result], "alpha", combine_attrs="drop_conflicts")
    return deliver(
        arguments, *result, text=f"{heading}\n\n{body}", title=heading,
        data=data.assign_coords(alpha=arguments.alpha),
    )  # fmt: skip


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, before anything is derived."""
    stepping = [
        flag
        for flag in ("step_size", "learning_rate", "convention")
        if getattr(arguments, flag) is not None
    ]
    if arguments.joint:
        others = [n for n in ("ridge", "what", "digits") if getattr(arguments, n) is not None]
        given = [flag_of(name) for name in (*stepping, *others)]
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
                f"{flag_of(stepping[0])} is what is optimised; leave it out, give "
                "--bounds, or use --what ridge"
            )
        if arguments.digits is not None:
            raise ParameterError("--digits refines a ridge penalty; leave it out for a step size")


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


def _bounds(flag: str) -> Callable[[str], tuple[float, float]]:
    example = "1e-3:10"

    def read(text: str) -> tuple[float, float]:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) != 2:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not LOW:HIGH; use {flag} {example}")
        low, high = (real(flag, part, example) for part in parts)
        for part, value in zip(parts, (low, high), strict=True):
            # In words of its own: "inf" is a number, but no end of a scan.
            if not 0 < value < math.inf:
                raise argparse.ArgumentTypeError(
                    f"both ends must be positive and finite, got {part!r}; use {flag} {example}"
                )
        if not low < high:
            raise argparse.ArgumentTypeError(
                f"LOW has to be below HIGH, got {text!r}; use {flag} {example}"
            )
        return low, high

    return read


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
        f"β = {arguments.beta:g}, Δ = {arguments.noise_variance:g}{width}{order}"
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
    for best in found:
        if best.digits is not None:
            return best.rests_on
    return "float, zeros of the exact derivative; errors are estimated (quadrature and rounding)"


OPTIMAL = Command(
    "optimal", "ridge penalty or step size with the smallest test error", run, (
        *srf_model(),
        option("--what", "what is optimised [ridge]", choices=(RIDGE, STEP)),
        option("--joint", "optimise ridge penalty and step size together"),
        ALPHAS.but(help=f"{ALPHAS.help} [2]; several give a table", default=[2.0]),
        option(
            "--bounds LOW:HIGH", "where to look [1e-6:1e6 for ridge, 0.05:20 for step-size]",
            _bounds,
        ),
        option(
            "--step-bounds LOW:HIGH", "where to look for a step size with --joint [0.05:20]",
            _bounds,
        ),
        DIGITS.but(help="refine a ridge to N digits"), *output(),
    ), EPILOG,
    # What is optimised has no value: one that is given is refused, not ignored.
    defaults={"ridge": None, "step_size": None},
)  # fmt: skip
