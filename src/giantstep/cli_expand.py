"""``giantstep expand``: series in a small quantity, against the exact solution."""

from __future__ import annotations

import argparse
import json
import math
import warnings
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_curve import model_from
from .cli_files import deliver, is_picture, output
from .cli_one_step import model_from as one_step_model_from, one_step_model
from .cli_options import (
    Command,
    Group,
    Option,
    flag_of,
    nonnegative,
    option,
    sample_complexities,
    srf_model,
    whole,
)
from .digits import MOST_DIGITS
from .errors import ApproximationWarning, ParameterError
from .pages import aligned

if TYPE_CHECKING:
    from .derivations.expansions.expansion import Expansion

SERIES = {
    "large-alpha": ("alpha", "many samples"),
    "small-ridge": ("ridge", "a vanishing ridge penalty"),
    "small-step": ("step_size", "short steps, towards random features"),
}
"""Series with the parameter that each expands in, and what that means."""
_DEFAULTS = {"alpha": 2.0, "ridge": 0.1, "step_size": 2.0}
_STEP = ("step_size", "learning_rate", "convention")
MOST_ORDERS = 20
"""That of the library, which is not loaded to print help."""
_OUTPUTS = {
    "srf": "what is compared: training_error, or an order parameter such as V1 [test_error]",
    "one-step": "what is compared: initial, improvement, bias_trained, variance_trained, ... "
    "[trained]",
}
_WORDS = {
    "alpha": "number of samples", "ridge": "ridge penalty", "step_size": "size of the step"
}  # fmt: skip

_SERIES = """\
  large-alpha   alpha -> oo in powers of 1/alpha, at a fixed ridge penalty; takes no --alpha
  small-ridge   ridge -> 0 in powers of the penalty, or of its root where the number of samples
                meets that of neurons, where the error may diverge; takes no --ridge
  small-step    step size -> 0: what a short step adds to random features; takes no --step-size
"""

EPILOG = f"""\
{_SERIES}
  srf        spiked random features (Cui et al., arXiv 2402.04980)
  one-step   one step of order one (Ba et al., arXiv 2205.01445)

Coefficients follow order by order from the equations of the theory, each from a linear system;
nothing is fitted. The first power that is left out is printed: the error falls that fast.

examples:
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1
  giantstep expand one-step small-ridge --student erf --teacher erf --alpha 1.5 --beta 1.5 --order 3
  giantstep expand one-step small-step --order 6 --at 0.1,0.2,0.4 --out steps.png
"""

_EXAMPLES = {
    "srf": """\
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1 --order 3
  giantstep expand srf small-ridge --student erf --teacher sin --alpha 2 --noise 0.1 --latex
  giantstep expand srf small-step --student erf --teacher erf --alpha 2 --out steps.pdf
""",
    "one-step": """\
  giantstep expand one-step large-alpha --student erf --teacher erf --ridge 0.1 --at 10,100,1000
  giantstep expand one-step small-ridge --alpha 1.5 --beta 1.5 --noise 0.25 --order 3
  giantstep expand one-step small-step --order 6 --digits 50 --out steps.json
""",
}

_FORMULAS = {
    "srf": """\
--formulas   coefficients as formulas, and the equations of every order that determine what they
             name: averages over the projection on the spike are not evaluated.
""",
    "one-step": """\
--formulas   coefficients as formulas, as far as they are short enough to be read.
""",
}

_MODEL = """\
{series}
The table compares the series with the exact solution. "estimate" is the size of what is left out,
from the first neglected term; it is no bound. Without --at, values are those where it is small.

--latex      the series in LaTeX, with numbers.
{options}--out FILE   .json: all coefficients of all outputs with all digits; as a figure: series,
             exact solution, errors of all orders.

examples:
{examples}"""


def settle(arguments: argparse.Namespace) -> None:
    """Refuse a value of what is expanded in; set the others to their defaults.

    Raises
    ------
    ParameterError
        The message names the flag.
    """
    parameter, _ = SERIES[arguments.series]
    for name in _STEP if parameter == "step_size" else (parameter,):
        if getattr(arguments, name, None) is not None:
            raise ParameterError(
                f"{flag_of(name)}: {arguments.series} is a series in the "
                f"{_WORDS[parameter]}; leave it out, or say with --at where to compare"
            )
    for name, default in _DEFAULTS.items():
        # The step of the spiked model may be given as a learning rate, and is settled with it.
        settled = name == "step_size" and arguments.model == "srf"
        if name != parameter and not settled and getattr(arguments, name) is None:
            setattr(arguments, name, default)


_COMPARED = 4
_DIGITS = 12


def expand(arguments: argparse.Namespace) -> int:
    """Print a series and compare it with the exact solution; write coefficients, draw."""
    settle(arguments)
    if arguments.plot is not None:
        if arguments.out is not None:
            raise ParameterError("--plot is a former name of --out; give one of them")
        arguments.out = arguments.plot
    with warnings.catch_warnings():
        # Where the series says nothing the table shows it.
        warnings.simplefilter("ignore", ApproximationWarning)
        result, drawn = _expansion(arguments), None
        output = result.output(arguments.output)
        # The model's own text would show a value of what is expanded in.
        held = ", ".join(f"{name} = {value}" for name, value in result.fixed.items())
        text = f"{held}\n\n{result}\n\n{_table(result, output, arguments.at)}"
        if arguments.latex:
            text += f"\n\n{result.latex(output)}"
        if arguments.formulas:
            text += f"\n\n{_formulas(result, output)}"
        # All is computed before anything is printed: an error leaves the output empty.
        if is_picture(arguments.out):
            drawn = result.plot(output)
    return deliver(
        arguments, result, text=text, title=str(result).splitlines()[0],
        document=json.loads(result.to_json()),
        draw=lambda: result.plot(output) if drawn is None else drawn,
    )  # fmt: skip


def _expansion(arguments: argparse.Namespace) -> Expansion:
    """Return the series that the flags describe."""
    parameter, _ = SERIES[arguments.series]
    given: dict[str, Any] = {"order": arguments.order, "digits": arguments.digits}
    wanted = ("ridge", "alpha") if arguments.model == "srf" else ("ridge",)
    given |= {name: getattr(arguments, name) for name in wanted if name != parameter}
    # What is expanded in gets a value that plays no part.
    for name, value in (("step_size", 0.0), ("alpha", 2.0)):
        if name == parameter:
            setattr(arguments, name, value)
    model: Any
    if arguments.model == "srf":
        model = model_from(arguments)
    else:
        model = one_step_model_from(arguments)
        given["formulas"] = arguments.formulas
    series: Expansion = model.expansion(arguments.series.replace("-", "_"), **given)
    return series


def _formulas(found: Expansion, output: str) -> str:
    if found.formulas.get(output):
        shown = found.latex(output, formulas=True)
        return f"{shown}\n\n{found.latex_equations()}" if found.has_equations else shown
    return (
        f"there are no formulas for {output} here: they need a ridge penalty that is not fixed at "
        "0, a student with linear and nonlinear part, a teacher with linear part, and coefficients "
        "that are short enough to be read"
    )


def _table(found: Expansion, output: str, values: list[float] | None) -> str:
    rows = []
    for value in values or _places(found):
        series, estimate = found(value, output), found.estimate_of_remainder(value, output)
        assert found.exact is not None
        exact = float(found.exact(value, None)[output])
        rows.append(
            [f"{value:.6g}", f"{series:.{_DIGITS}g}", f"{exact:.{_DIGITS}g}",
             f"{series - exact:.1e}", f"{float(estimate):.1e}"]
        )  # fmt: skip
    headings = [found.parameter.replace("_", " "), f"series of {output.replace('_', ' ')}",
                "exact solution", "difference", "estimate"]  # fmt: skip
    return (
        f"{aligned(headings, rows)}\n"
        f"exact solutions are floats: differences below {1e-13:.0e} of the value are rounding"
    )


def _places(found: Expansion) -> list[float]:
    """Return values of the parameter where the series is good, towards its point."""
    edge = found.trusted_up_to
    if not 0 < edge < math.inf:
        edge = 1.0
    factor = 10.0 if found.point else 0.1
    return [float(f"{edge * factor**k:.2g}") for k in range(_COMPARED)]


_SUMMARY = {
    "srf": "series of spiked random features",
    "one-step": "series of one step of order one",
}
_OF_MODEL: dict[str, tuple[Option | Group, ...]] = {
    "srf": (*srf_model(width=False), opts.ALPHA),
    "one-step": (
        *one_step_model(),
        opts.RIDGE.but(help=opts.RIDGE.help.replace("> 0", ">= 0"), read=nonnegative(0.1)),
    ),
}  # fmt: skip


_OUTPUT = output(data=False)


def _command(name: str) -> Command:
    return Command(
        name, _SUMMARY[name], expand, (
            option("SERIES", ", ".join(SERIES), choices=tuple(SERIES)), *_OF_MODEL[name],
            Group("series", (
                option(
                    "--order N", "last power of the small quantity that is kept, up to "
                    f"{MOST_ORDERS} [2]", whole(0, 2, most=MOST_ORDERS), 2,
                ),
                opts.DIGITS.but(
                    help=f"digits of the coefficients, up to {MOST_DIGITS} [30]", default=30
                ),
                option("--output NAME", _OUTPUTS[name]),
                option(
                    "--at LIST", "where to compare: 0.1,0.01 or START:STOP:COUNT [where the "
                    "series is good]", sample_complexities(),
                ),
            )),
            Group("output", (
                opts.LATEX, option("--formulas", "print its coefficients as formulas, too"),
                *_OUTPUT, _OUTPUT[0].but("--plot FILE", help=argparse.SUPPRESS),
            )),
        ),
        _MODEL.format(series=_SERIES, options=_FORMULAS[name], examples=_EXAMPLES[name]),
        # What is expanded in has no value: one that is given is refused, not ignored.
        defaults={"model": name, "width": None, "alpha": None, "ridge": None, "step_size": None},
    )  # fmt: skip


EXPAND = Command(
    "expand", "series in a small quantity, against the exact solution", epilog=EPILOG,
    commands=tuple(map(_command, _SUMMARY)),
)  # fmt: skip
