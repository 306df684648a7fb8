"""``giantstep expand``: series in a small quantity, against the exact solution."""

from __future__ import annotations

import argparse

from .cli_layout import add_command, later
from .cli_model import add_model
from .cli_numbers import digits, nonnegative, positive, sample_complexities, whole
from .cli_one_step import add_model as add_one_step_model
from .digits import MOST_DIGITS
from .errors import ParameterError

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
  giantstep expand one-step small-step --order 6 --at 0.1,0.2,0.4 --plot steps.png
"""

_EXAMPLES = {
    "srf": """\
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1 --order 3
  giantstep expand srf small-ridge --student erf --teacher sin --alpha 1 --noise 0.1 --latex
  giantstep expand srf small-step --student erf --teacher erf --alpha 2 --plot steps.pdf
""",
    "one-step": """\
  giantstep expand one-step large-alpha --student erf --teacher erf --ridge 0.1 --at 10,100,1000
  giantstep expand one-step small-ridge --alpha 1.5 --beta 1.5 --noise-variance 0.25 --order 3
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
{options}--plot FILE  a figure .png, .pdf or .svg: series, exact solution, errors of all orders.
--out FILE   all coefficients of all outputs with all digits, as .json.

examples:
{examples}"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Declare the commands of ``giantstep expand``."""
    group = parser.add_subparsers(title="models", metavar="MODEL", required=True)
    for name, summary in (
        ("srf", "series of spiked random features"),
        ("one-step", "series of one step of order one"),
    ):
        found = add_command(
            group,
            name,
            summary,
            _MODEL.format(series=_SERIES, options=_FORMULAS[name], examples=_EXAMPLES[name]),
        )
        found.add_argument(
            "series", choices=tuple(SERIES), metavar="SERIES", help=", ".join(SERIES)
        )
        if name == "srf":
            add_model(found, width=False)
            found.add_argument(
                "--alpha", type=positive("--alpha", 2), metavar="A",
                help="sample complexity n/d of the readout [2]",
            )  # fmt: skip
        else:
            add_one_step_model(found, lists=())
            found.add_argument(
                "--ridge", type=nonnegative("--ridge", 0.1), metavar="L",
                help="ridge penalty of the readout, >= 0 [0.1]",
            )  # fmt: skip
        # What is expanded in has no value: one that is given is refused, not ignored.
        found.set_defaults(model=name, alpha=None, ridge=None, step_size=None)
        _add_output(found, name)
        found.set_defaults(run=later("cli_expand_commands", "expand"))


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
                f"--{name.replace('_', '-')}: {arguments.series} is a series in the "
                f"{_WORDS[parameter]}; leave it out, or say with --at where to compare"
            )
    for name, default in _DEFAULTS.items():
        # The step of the spiked model may be given as a learning rate, and is settled with it.
        settled = name == "step_size" and arguments.model == "srf"
        if name != parameter and not settled and getattr(arguments, name) is None:
            setattr(arguments, name, default)


def _add_output(parser: argparse.ArgumentParser, model: str) -> None:
    group = parser.add_argument_group("series")
    group.add_argument(
        "--order", type=whole("--order", 0, 2, most=MOST_ORDERS), default=2, metavar="N",
        help=f"last power of the small quantity that is kept, up to {MOST_ORDERS} [2]",
    )  # fmt: skip
    group.add_argument(
        "--digits", type=digits(30), default=30, metavar="N",
        help=f"digits of the coefficients, up to {MOST_DIGITS} [30]",
    )  # fmt: skip
    group.add_argument("--output", metavar="NAME", help=_OUTPUTS[model])
    group.add_argument(
        "--at", type=sample_complexities("--at"), metavar="LIST",
        help="where to compare: 0.1,0.01 or START:STOP:COUNT [where the series is good]",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument("--latex", action="store_true", help="print the series in LaTeX, too")
    group.add_argument(
        "--formulas", action="store_true", help="print its coefficients as formulas, too"
    )
    group.add_argument("--plot", metavar="FILE", help="draw it: .png, .pdf or .svg")
    group.add_argument("--out", metavar="FILE", help="write all coefficients: .json")
