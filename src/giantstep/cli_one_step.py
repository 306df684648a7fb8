"""``giantstep one-step``: risk, spectra, phase diagrams and limits of one gradient step."""

from __future__ import annotations

import argparse

from .cli_axes import axis, spaced
from .cli_layout import add_command, later
from .cli_numbers import (
    digits,
    nonnegative,
    positive,
    positive_or_infinite,
    sample_complexities,
    whole,
)
from .errors import ParameterError

AXES = {
    "alpha": "alpha", "beta": "beta", "step-size": "step_size",
    "noise-variance": "noise_variance", "ridge": "ridge", "paper-ridge": "paper_ridge",
}  # fmt: skip
"""Names of axes here, and in the library."""
RANGES = {
    "alpha": (0.25, 8.0), "beta": (0.25, 8.0), "step_size": (0.0, 6.0),
    "noise_variance": (0.0, 1.0), "ridge": (1e-3, 10.0), "paper_ridge": (1e-3, 10.0),
}  # fmt: skip
"""Where an axis goes that is named without its ends."""
PENALTIES = ("ridge", "paper_ridge")
ROWS = 12
_DEFAULT_RIDGE = 0.1
_FROM_ZERO = ("step_size", "noise_variance", *PENALTIES)
_DEFAULTS = {"alpha": 2.0, "beta": 1.5, "step_size": 2.0, "noise_variance": 0.0}

EPILOG = """\
One gradient step on the first layer of a two-layer network, with a step size of order one in the
proportional limit (Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445).

  risk         risk of the ridge readout on random and on trained features
  spectrum     singular values of the first layer and eigenvalues of the conjugate kernel
  phase        what the step improves, over two parameters; where outliers appear
  optimal      ridge penalty with the smallest risk, before and after the step
  large-steps  what steps of order sqrt(N) can reach, and why kernels cannot

Each has its own help, such as giantstep one-step risk --help.

examples:
  giantstep one-step risk --student erf --teacher erf --noise-variance 0.25
  giantstep one-step risk --over alpha --simulate --out risk.png
  giantstep one-step spectrum --student tanh --teacher relu --centre --step-size 6 --alpha 4
  giantstep one-step phase --x step-size=0:6:30 --y alpha=0.3:8:30 --out phase.pdf
  giantstep one-step large-steps --student erf --teacher erf
"""

_CONVENTIONS = """\
conventions:
  d inputs, N = BETA d neurons, n = ALPHA d samples for the readout, n0 = ALPHA0 d for the step.
  step     W1 = W0 + STEP_SIZE sqrt(N) G, where G is minus the gradient of the half loss
           (1/2n) sum (f - y)^2. --loss full takes that of (1/n) sum (f - y)^2, twice as long:
           thresholds are then reached at half the step size.
  ridge    --ridge L: the readout minimises sum (y - phi.w/sqrt(N))^2 + L |w|^2;
           --paper-ridge LB: that of the paper, (1/n) sum (...)^2 + (LB/N) |w|^2. L = ALPHA/BETA LB.
  noise    variance of the Gaussian label noise, in both training sets; it lengthens the spike, too.
  risk     mean squared distance from the noise-free teacher on fresh inputs.
  centre   student and teacher have to have mean zero; --centre subtracts their means.

files:
  --out FILE is a figure for .png, .pdf or .svg, with its data next to it as .nc; a page with
  figure and table for .html; data alone for .nc, .json or .csv. --table-only draws nothing.
"""

_RISK = f"""\
Without an axis: all errors at one point. With --over NAME, or a LIST for one of the parameters: a
table over it, and a figure, with the error of the best linear predictor, below which neither
curve falls. NAME=LOW:HIGH:COUNT says where, evenly spaced in the logarithm if HIGH is more than
20 LOW; NAME is one of {", ".join(AXES)}.

--simulate trains networks and fits their readouts, at six values of an axis that is given by its
ends and at all values of a list; --features gaussian simulates the linearised model instead, for
which the theory is exact in the limit, both does both. With --store FOLDER, the same command
resumes after an interruption, and more --seeds extend a run.

--steps T takes T steps: to leading order one step, T times as long (--fresh: on T times as many
samples).

--certify, at one point, prints intervals that are proven to hold the risks of the closed form, and
says what they rest on; with --out point.json they are stored exactly.

{_CONVENTIONS}
examples:
  giantstep one-step risk --student erf --teacher erf --noise-variance 0.25 --paper-ridge 0.05
  giantstep one-step risk --student erf --teacher erf --digits 30
  giantstep one-step risk --student erf --teacher erf --certify
  giantstep one-step risk --over alpha --ridge 0.01 --out peak.png
  giantstep one-step risk --beta 0.5,1,2,4 --simulate --dimension 200 --seeds 10 --table-only
  giantstep one-step risk --over ridge=1e-4:10:40 --noise-variance 0.25 --out ridge.html
  giantstep one-step risk --alpha 3 --beta 2 --step-size 1 --steps 4 --fresh --simulate
"""

_SPECTRUM = f"""\
  weights  singular values of W1: the bulk of W0, and an outlier once the step exceeds its
           critical size; squared overlaps of its vectors with the teacher and with the readout.
  kernel   eigenvalues of the conjugate kernel on a training set; its outlier needs a longer spike,
           theta1^2 > T_c > sqrt(BETA). For networks, and not their linearised model, a conjecture.

{_CONVENTIONS}
examples:
  giantstep one-step spectrum --teacher relu --centre --alpha 4 --beta 2 --step-size 6
  giantstep one-step spectrum --teacher relu --centre --alpha 4 --beta 2 --loss full
  giantstep one-step spectrum --matrix kernel --student softplus --teacher tanh --centre \\
      --alpha 1.5 --beta 1.25 --step-size 4 --simulate --dimension 400 --out kernel.png
"""

_PHASE = f"""\
Axes are NAME=LOW:HIGH:COUNT, evenly spaced in the logarithm if HIGH is more than 20 LOW; NAME is
one of {", ".join(AXES)}. Dashed lines are the step sizes from which the first layer and the
conjugate kernel have an outlier: the improvement does not jump there.

{_CONVENTIONS}
examples:
  giantstep one-step phase --student erf --teacher erf --noise-variance 0.25 --out phase.png
  giantstep one-step phase --x beta=0.2:8:40 --y alpha=0.2:8:40 --show relative-improvement
"""

_OPTIMAL = f"""\
The penalty with the smallest risk of all stationary points, before and after the step. With few
samples, N > n, and little noise it may be 0: the risk then falls all the way to interpolation.

{_CONVENTIONS}
examples:
  giantstep one-step optimal --student erf --teacher erf --noise-variance 0.25
  giantstep one-step optimal --alpha 0.5,1,2,4 --noise-variance 0.25 --out optimal.csv
  giantstep one-step optimal --student erf --teacher erf --noise-variance 0.25 --digits 30
"""

_LARGE = """\
Steps of size eta = Theta(sqrt(N)) leave the regime of the Gaussian equivalence. Then
R <= C tau* + C' (sqrt(tau* d/n) + d/n) with tau* = inf_h E (f*(z) - E sigma(h z + z'))^2, of which
only tau* is known; kernels stay above the error of the best linear predictor.

--certify proves an interval for tau*, that no other amplitude h is better; for students where the
toolkit cannot prove that, an upper bound, and it says so.

examples:
  giantstep one-step large-steps --student erf --teacher erf
  giantstep one-step large-steps --student relu --teacher relu --centre --digits 20
  giantstep one-step large-steps --student erf --teacher sin --certify
  giantstep one-step large-steps --student tanh --teacher erf --out large.png
"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Declare the commands of ``giantstep one-step``."""
    group = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, summary, epilog, add in (
        ("risk", "risk of the ridge readout before and after the step", _RISK, _add_risk),
        ("spectrum", "outlier and bulk of first layer and kernel", _SPECTRUM, _add_spectrum),
        ("phase", "what the step improves over two parameters", _PHASE, _add_phase),
        ("optimal", "best ridge penalty before and after the step", _OPTIMAL, _add_optimal),
        ("large-steps", "what steps of order sqrt(N) can reach", _LARGE, _add_large),
    ):
        found = add_command(group, name, summary, epilog)
        add(found)
        found.set_defaults(run=later("cli_one_step_commands", name.replace("-", "_")))


def settle_axis(arguments: argparse.Namespace) -> None:
    """Set ``axis`` to its name, ``rows`` to its values, and all parameters to numbers.

    An axis is what --over names or what has several values. The penalty gets its default.

    Raises
    ------
    ParameterError
        If two parameters are an axis, or flags contradict each other.
    """
    several = [n for n in AXES.values() if len(getattr(arguments, n) or ()) > 1]
    axis, rows = arguments.over or (None, None)
    if axis is not None and getattr(arguments, axis) is not None:
        if rows is not None or axis not in several:
            raise ParameterError(
                f"{_flag(axis)} is the axis of --over; leave it out, or give the values of the "
                f"axis once, as in {_flag(axis)} 0.5,1,2"
            )
    wanted = {axis, *several} - {None}
    if len(wanted) > 1:
        flags = " and ".join(map(_flag, sorted(map(str, wanted))))
        raise ParameterError(f"{flags} have several values; an axis is one of them")
    arguments.axis = wanted.pop() if wanted else None
    arguments.listed = bool(several)
    if several:
        rows = sorted(getattr(arguments, several[0]))
    elif arguments.axis is not None and rows is None:
        # Three digits: these values were chosen by nobody.
        rows = [float(f"{v:.3g}") for v in spaced(*RANGES[arguments.axis], ROWS)]
    arguments.rows = rows
    _settle_numbers(arguments)


def check_penalty(arguments: argparse.Namespace, axes: tuple[str | None, ...]) -> None:
    """Set the default of the penalty; refuse two of them.

    Raises
    ------
    ParameterError
        If more than one of --ridge, --paper-ridge and an axis of theirs is given.
    """
    given = [
        name for name in PENALTIES if name in axes or getattr(arguments, name, None) is not None
    ]
    if len(given) > 1 or any(getattr(arguments, n) is not None and n in axes for n in given):
        raise ParameterError(
            "--ridge and --paper-ridge are one penalty, given or an axis; leave out all but one"
        )
    if not given:
        arguments.ridge = _DEFAULT_RIDGE


def _settle_numbers(arguments: argparse.Namespace) -> None:
    for name in AXES.values():
        values = getattr(arguments, name)
        if name == arguments.axis:
            values = None
        setattr(arguments, name, values[0] if values else None)
    check_penalty(arguments, (arguments.axis,))
    for name, default in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# ---------------------------------------------------------------------- arguments


def _add_pair(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("activations")
    for name, default in (("student", "tanh"), ("teacher", "erf")):
        group.add_argument(
            f"--{name}", default=default, metavar="F",
            help=f"activation of the {name}: a name, or an expression in z [{default}]",
        )  # fmt: skip
    group.add_argument(
        "--centre", action="store_true", help="use student and teacher minus their means"
    )
    group.add_argument("--cache-folder", metavar="FOLDER", help="where derivations are kept")


def add_model(parser: argparse.ArgumentParser, *, lists: tuple[str, ...]) -> None:
    """Add the arguments of the model; those in `lists` take several values."""
    _add_pair(parser)
    group = parser.add_argument_group("model (defaults in brackets)")
    for name, letter, summary in (
        ("alpha", "A", "samples of the readout, n/d"),
        ("beta", "B", "neurons, N/d"),
        ("step_size", "S", "step size eta of order one; 0 for random features"),
        ("noise_variance", "D", "variance of the label noise"),
    ):
        flag, several = _flag(name), name in lists
        # The name of the same parameter in the other commands is taken, too.
        names = (flag, "--noise") if name == "noise_variance" else (flag,)
        zero = name in _FROM_ZERO
        one = (nonnegative if zero else positive)(flag, 2)
        group.add_argument(
            *names, dest=name, type=sample_complexities(flag, zero=zero) if several else one,
            default=None if several else _DEFAULTS[name], metavar="LIST" if several else letter,
            help=f"{summary} [{_DEFAULTS[name]:g}]",
        )  # fmt: skip
    group.add_argument(
        "--alpha0", type=positive_or_infinite("--alpha0", 2), metavar="A",
        help="samples of the step, n0/d; inf for the population gradient [alpha]",
    )  # fmt: skip
    group.add_argument(
        "--loss", choices=("half", "full"), default="half",
        help="whose gradient the step takes: (1/2n) sum (f - y)^2 or (1/n) sum (f - y)^2 [half]",
    )  # fmt: skip


def _add_penalty(parser: argparse.ArgumentParser, *, lists: bool) -> None:
    group = parser.add_argument_group("ridge penalty of the readout, one of")
    for name, summary in (
        ("ridge", f"in the convention of the toolkit [{_DEFAULT_RIDGE:g}]; 0 for the limit"),
        ("paper_ridge", "in that of the paper, BETA/ALPHA times as large"),
    ):
        flag = _flag(name)
        group.add_argument(
            flag, type=sample_complexities(flag, zero=True) if lists else nonnegative(flag, 0.1),
            metavar="LIST" if lists else "L", help=summary,
        )  # fmt: skip


def _add_out(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--out", metavar="FILE",
        help="figure .png, .pdf or .svg with its data, page .html, or data .nc, .json, .csv"
        + (f" [{default}]" if default else ""),
    )  # fmt: skip
    parser.set_defaults(default_out=default)
    parser.add_argument("--table-only", action="store_true", help="draw nothing")


def _add_networks(parser: argparse.ArgumentParser, dimension: int, seeds: int) -> None:
    group = parser.add_argument_group("networks")
    group.add_argument("--simulate", action="store_true", help="train networks and compare")
    group.add_argument(
        "--dimension", type=whole("--dimension", 2, dimension), default=dimension, metavar="D",
        help=f"input dimension d [{dimension}]",
    )  # fmt: skip
    group.add_argument(
        "--seeds", type=whole("--seeds", 1, seeds), default=seeds, metavar="N",
        help=f"networks [{seeds}]",
    )  # fmt: skip
    group.add_argument(
        "--seed", type=whole("--seed", 0, 0), default=0, metavar="N", help="entropy [0]"
    )
    group.add_argument(
        "--store", metavar="FOLDER", help="keep finished networks there; resume from it"
    )


def _add_digits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--digits", type=digits(30), metavar="N", help="so many digits, up to 1000")


def _add_certify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--certify", action="store_true",
        help="prove intervals by interval arithmetic (python-flint), as narrow as N digits [15]",
    )  # fmt: skip


def _add_risk(parser: argparse.ArgumentParser) -> None:
    add_model(parser, lists=tuple(_DEFAULTS))
    _add_penalty(parser, lists=True)
    read = axis("--over", "alpha=0.25:8:12", AXES, from_zero=_FROM_ZERO, bare=True)
    parser.add_argument(
        "--over", type=read, metavar="AXIS",
        help="axis of table and figure: NAME or NAME=LOW:HIGH:COUNT",
    )  # fmt: skip
    group = parser.add_argument_group("several steps, at one point")
    group.add_argument(
        "--steps", type=whole("--steps", 1, 4), default=1, metavar="T",
        help="gradient steps of the first layer [1]",
    )  # fmt: skip
    group.add_argument(
        "--fresh", action="store_true", help="new samples in each step, not the same in all"
    )
    _add_digits(parser)
    _add_certify(parser)
    _add_networks(parser, 200, 8)
    parser.add_argument(
        "--features", choices=("network", "gaussian", "both"),
        help="what --simulate simulates [network]",
    )  # fmt: skip
    _add_out(parser, "one-step-risk.png with an axis")
    parser.set_defaults(default_out="one-step-risk.png")


def _add_spectrum(parser: argparse.ArgumentParser) -> None:
    add_model(parser, lists=())
    parser.add_argument(
        "--matrix", choices=("weights", "kernel", "both"), default="both",
        help="which spectrum [both]",
    )  # fmt: skip
    _add_digits(parser)
    _add_certify(parser)
    _add_networks(parser, 400, 2)
    _add_out(parser, "one-step-spectrum.png")


def _add_phase(parser: argparse.ArgumentParser) -> None:
    add_model(parser, lists=())
    _add_penalty(parser, lists=False)
    for flag, default in (("--x", "step-size=0:6:61"), ("--y", "alpha=0.25:8:61")):
        read = axis(flag, default, AXES, from_zero=_FROM_ZERO)
        parser.add_argument(
            flag, type=read, default=read(default),
            metavar="AXIS", help=f"NAME=LOW:HIGH:COUNT [{default}]",
        )  # fmt: skip
    parser.add_argument(
        "--show", default="improvement",
        choices=("improvement", "relative-improvement", "risk-initial", "risk-trained"),
        help="what the colours are [improvement]",
    )  # fmt: skip
    _add_out(parser, "one-step-phase.png")


def _add_optimal(parser: argparse.ArgumentParser) -> None:
    add_model(parser, lists=("alpha",))
    parser.set_defaults(alpha=[_DEFAULTS["alpha"]])
    _add_digits(parser)
    _add_out(parser, "one-step-optimal.png with several values")
    parser.set_defaults(default_out="one-step-optimal.png")


def _add_large(parser: argparse.ArgumentParser) -> None:
    _add_pair(parser)
    _add_digits(parser)
    _add_certify(parser)
    _add_out(parser, "one-step-large-steps.png")
