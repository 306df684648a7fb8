"""Arguments in, exit codes out: the parser of the command line and the form of its errors.

Bad input ends with exit code 2 and one line on the standard error stream that names the argument,
says why it cannot be and what would work. Commands import what they need when they run, so that
help and errors are immediate.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from . import (
    __version__,
    cli_exact,
    cli_expand,
    cli_giant_steps,
    cli_kernel,
    cli_leap,
    cli_one_step,
    cli_optimal,
    cli_project,
    cli_srf,
    cli_staircase,
)
from .cli_numbers import (
    digits,
    nonnegative,
    positive,
    positive_or_infinite,
    sample_complexities,
    whole,
)
from .errors import GiantstepError

# Names of arguments in the library, which its messages use, and here.
_FLAGS = {
    "step_size": "--step-size",
    "learning_rate": "--learning-rate",
    "noise_variance": "--noise",
    "cache_folder=": "--cache-folder",
    "allow_non_odd=True (--allow-non-odd)": "--allow-non-odd",
    "correlated_norms": "--correlated-norms",
    "seeds >=": "--seeds >=",
    "centre=True (--centre)": "--centre",
    "paper_ridge": "--paper-ridge",
}
_NEGATIVE = re.compile(r"-(?!h$|-)")
# Flags without a value: what follows them is an argument of its own.
_SWITCHES = {
    "--allow-non-odd", "--centre", "--certified", "--certify", "--closed-form",
    "--correlated-norms", "--formulas", "--fresh", "--joint", "--latex", "--list", "--simulate",
    "--slow", "--table-only", "--tune-step",
}  # fmt: skip

_EPILOG = """\
examples:
  giantstep curve --student tanh --teacher sin --simulate
  giantstep curve --student erf --teacher "sin(z) + He(3, z)/6" --alpha 0.5,1,2 --table-only
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --certify
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1
  giantstep optimal --student erf --teacher erf --noise 0.1 --alpha 0.5:4:8
  giantstep kernel sherrington-kirkpatrick --target c --out sk.c
  giantstep one-step risk --student erf --teacher erf --over alpha --out risk.png
  giantstep hermite "erf(z)" --order 9 --closed-form
  giantstep expect "erf(u)*erf(v)" --joint rho
  giantstep gradient relu "x1*x2 + He(3, x1)"
  giantstep complexity "x1*x2 + x1**2"
  giantstep verify

Activations are names (tanh, erf, sin, relu, softplus, ...) or expressions in z such as
"tanh(2*z) + z/4" or "He(3, z)/6", with probabilists' Hermite polynomials.
"""

_CURVE_EPILOG = """\
conventions:
  d inputs, p = BETA d neurons, n = ALPHA d samples for the readout, n0 = ALPHA0 d for the step.
  step     every row moves by STEP_SIZE times its gradient (1/n0) sum (y - f0) sigma'(w.x) x;
           in the convention W <- W + eta sqrt(p) G of the papers, STEP_SIZE = eta/sqrt(p).
           0 takes no step: plain random features.
  rate     --learning-rate R in one of three conventions, which agree at BETA = 1:
             sqrt-width      W <- W + eta sqrt(p) G, eta = R sqrt(p): STEP_SIZE = R
             sqrt-dimension  W <- W + eta sqrt(p) G, eta = R sqrt(d): STEP_SIZE = R/sqrt(BETA)
             dimension       W <- W + eta G,         eta = R d:       STEP_SIZE = R/BETA
  width    the theory is the limit of many neurons; --width P adds what the ridge penalty takes
           for the mean of P readout weights, the correction of order 1/P that matters.
  ridge    the readout minimises sum (y - phi.w/sqrt(p))^2 + RIDGE |w|^2.
  noise    variance of the Gaussian label noise, in both training sets.
  errors   test error against the noise-free target on fresh inputs.

files:
  --out curve.html writes curve.html (report), curve.png and curve.pdf (figure), curve.nc (theory)
  and, with --simulate, curve-simulation.nc (every network). Finished networks are kept at once
  in the folder .giantstep-simulations next to it (--store chooses another one): the same command
  resumes after an interruption, and more --seeds extend a run.

examples:
  giantstep curve --student tanh --teacher sin --simulate
  giantstep curve --student tanh --teacher sin --alpha 0.1:10:40 --ridge 0.01 --table-only
  giantstep curve --student relu --teacher tanh --allow-non-odd --noise 0.25 --out relu.html
"""


_SOLVE_EPILOG = """\
--digits N   N digits, by mpmath; only digits that hold are printed.
--certify    a proof by interval arithmetic (python-flint): the equations have exactly one solution
             in a small box, and training and test error lie in the intervals that are printed;
             with --digits N as narrow as N digits [15]. It is about the equations of the theory,
             their integrals included; that they describe networks rests on the replica method.
             Where there is no proof there is no interval: the command says why, exit code 2.
--out FILE   with --certify: the intervals, exactly, and what they rest on, as .json.

examples:
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student erf --teacher erf --alpha 1 --ridge 1e-3 --certify --out proof.json
"""

_VERIFY_EPILOG = """\
giantstep claims lists every claim with its checks, and the options that these take.

--certified runs the checks that prove something by interval arithmetic: a solution exists, is
the only one in a box, and its test error is inside an interval. They need python-flint:
pip install "giantstep[flint]". Without it they are listed as not available, which counts neither
as passed nor as failed; with --certified the exit code is then 2.

exit codes: 0 all passed, 1 a claim failed, 2 bad input or a wanted proof could not be made.

examples:
  giantstep verify
  giantstep verify cui-3.1 block-structure --slow
  giantstep verify --certified
  giantstep verify conjecture-1 --targets 50 --dimension 400 --store checked --out found.json
"""


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        _report(f"{message}; see {self.prog} --help")
        raise SystemExit(2)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written and leaves room for the names of flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; default: those of this process.

    Returns
    -------
    int
        Exit code: 0 done, 1 a claim failed, 2 bad input, 130 interrupted.
    """
    _tolerant_streams()
    arguments = argparse.Namespace()
    try:
        arguments = _parser().parse_args(_with_negative_values(argv))
        command: Callable[[argparse.Namespace], int] = arguments.run
        code = command(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except KeyboardInterrupt as interruption:
        _report(" ".join(["interrupted", *map(str, interruption.args)]))
        return 130
    except BrokenPipeError:
        # The reader of our output, such as head, has gone. Python would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (GiantstepError, OSError) as error:
        # A kernel's parameters keep their names: they are no flags there.
        of_kernel = getattr(arguments, "run", None) is cli_kernel.run
        _report(_message(error, {} if of_kernel else _FLAGS))
        return 2
    except MemoryError as error:
        reason = str(error) or "the run needs more than there is"
        _report(f"not enough memory: {reason}; use a smaller --dimension, --alpha or --alpha0")
        return 2


def _message(error: GiantstepError | OSError, flags: Mapping[str, str]) -> str:
    if isinstance(error, OSError) and not isinstance(error, GiantstepError):
        place = f" {os.fspath(error.filename)!r}" if error.filename is not None else ""
        reason = (error.strerror or str(error)).lower()
        return f"cannot use{place}: {reason}; choose another file or folder"
    text = str(error)
    for name, flag in flags.items():
        text = text.replace(name, flag)
    return text


def _report(message: str) -> None:
    """Print a message to the standard error stream, as one line."""
    lines = [line.strip() for line in message.splitlines()]
    text = lines[0]
    for line in filter(None, lines[1:]):
        text += f"{'' if text.endswith((';', ':', ',')) else ';'} {line}"
    # Text of users may hold control characters; a terminal would obey them.
    printable = "".join(c if c.isprintable() else "?" for c in text)
    print(f"giantstep: {printable}", file=sys.stderr)


def _tolerant_streams() -> None:
    """Let a terminal without Greek letters show question marks instead of a traceback."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _with_negative_values(argv: Sequence[str] | None) -> list[str]:
    """Attach values that begin with a minus, which argparse would take for flags, to their flag.

    ``--ridge -1e-3`` and ``--student -tanh(z)`` then reach our own checks. An expression of its
    own, as in ``hermite -tanh(z)``, gets a blank in front, which argparse takes for an argument.
    """
    found: list[str] = []
    for text in sys.argv[1:] if argv is None else argv:
        previous = found[-1] if found else ""
        takes_value = previous.startswith("--") and "=" not in previous
        if _NEGATIVE.match(text) and takes_value and previous not in _SWITCHES:
            found[-1] = f"{previous}={text}"
        elif _NEGATIVE.match(text) and len(text) > 2:
            found.append(f" {text}")
        else:
            found.append(text)
    return found


# ---------------------------------------------------------------------- the parser


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="giantstep",
        description="Theory of feature learning in the first giant gradient steps: exact "
        "derivations, solved\nto any precision, checked against finite networks.",
        epilog=_EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"giantstep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
        return _command(commands, name, summary, epilog)

    _add_curve(command("curve", "learning curve, theory and simulation", _CURVE_EPILOG))
    _add_solve(command("solve", "one saddle point with all order parameters", _SOLVE_EPILOG))
    optimal = command(
        "optimal", "ridge penalty or step size with the smallest test error", cli_optimal.EPILOG
    )
    _add_model(optimal)
    cli_optimal.add_arguments(optimal)
    optimal.set_defaults(run=cli_optimal.run)
    kernel = command(
        "kernel", "generated kernel of a model, for other languages and in all stages",
        cli_kernel.EPILOG,
    )  # fmt: skip
    _add_activations(kernel, required=False)
    cli_kernel.add_arguments(kernel)
    kernel.set_defaults(run=cli_kernel.run)
    cli_srf.add_commands(
        command("srf", "spiked random features: curves, bounds, spectra, figures", cli_srf.EPILOG),
        _command,
        _add_model,
        _later,
    )
    cli_one_step.add_commands(
        command(
            "one-step", "one step of order one: exact risk, spectra, phases", cli_one_step.EPILOG
        ),
        _command,
        _later,
    )
    cli_expand.add_commands(
        command("expand", "series in a small quantity, against the exact solution",
                cli_expand.EPILOG),
        _command,
        _add_model,
        _later,
    )  # fmt: skip
    _add_claims(command("claims", "list the published results that are held as claims"))
    _add_verify(
        command(
            "verify", "recompute the evidence of claims; exit code 1 if one fails", _VERIFY_EPILOG
        )
    )
    for name, summary, epilog, add in (
        (
            "hermite",
            "exact Hermite coefficients E[f(z) He_k(z)] of an activation",
            cli_exact.HERMITE_EPILOG,
            cli_exact.add_hermite,
        ),
        (
            "expect",
            "exact Gaussian expectation of one variable or of a correlated pair",
            cli_exact.EXPECT_EPILOG,
            cli_exact.add_expect,
        ),
        (
            "gradient",
            "population gradient of a neuron, expanded by Stein's lemma",
            cli_exact.GRADIENT_EPILOG,
            cli_exact.add_gradient,
        ),
        (
            "complexity",
            "how many samples the known methods need for a target",
            cli_exact.COMPLEXITY_EPILOG,
            cli_exact.add_complexity,
        ),
    ):
        exact = command(name, summary, epilog)
        add(exact)
        exact.set_defaults(run=_later("cli_exact_commands", name))
    for name, summary, module in (
        ("leap", "leap index, coordinate, rotation-invariant and generative leap", cli_leap),
        ("staircase", "subspaces that successive giant steps learn, exactly", cli_staircase),
        ("project", "part of a target that is fitted on a learned subspace", cli_project),
        ("giant-steps", "what giant steps learn, predicted and simulated", cli_giant_steps),
    ):
        steps = command(name, summary, module.EPILOG)
        module.add_arguments(steps)
        steps.set_defaults(run=module.run)
    return parser


def _command(
    group: argparse._SubParsersAction[Any],
    name: str,
    summary: str,
    epilog: str,
) -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = group.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    return found


def _add_activations(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the two activations; where they are not `required`, what is not given stays None."""
    group = parser.add_argument_group("activations")
    for name, default in (("student", "tanh"), ("teacher", "sin")):
        group.add_argument(
            f"--{name}",
            default=default if required else None,
            metavar="F",
            help=f"activation of the {name}: a name, or an expression in z [{default}]",
        )


def _add_model(parser: argparse.ArgumentParser, *, ridge: bool = True, width: bool = True) -> None:
    """Add the arguments of the model; without those that a command does not depend on."""
    _add_activations(parser)
    group = parser.add_argument_group("model (defaults in brackets)")
    group.add_argument(
        "--step-size",
        type=nonnegative("--step-size", 3),
        metavar="S",
        help="step per neuron, s = eta/sqrt(p) [3]; 0 for no step",
    )
    group.add_argument(
        "--learning-rate",
        type=nonnegative("--learning-rate", 3),
        metavar="R",
        help="learning rate in the convention of --convention, instead of --step-size",
    )
    group.add_argument(
        "--convention",
        metavar="NAME",
        help="sqrt-width (S = R), sqrt-dimension (S = R/sqrt(B)) or dimension (S = R/B) "
        "[sqrt-width]",
    )
    group.add_argument(
        "--alpha0",
        type=positive_or_infinite("--alpha0", 20),
        default=20.0,
        metavar="A",
        help="samples of the step, n0/d [20]; inf for the population gradient",
    )
    group.add_argument(
        "--beta", type=positive("--beta", 1), default=1.0, metavar="B", help="neurons, p/d [1]"
    )
    if ridge:
        group.add_argument(
            "--ridge",
            type=positive("--ridge", 0.1),
            default=0.1,
            metavar="L",
            help="ridge penalty of the readout, > 0 [0.1]",
        )
    group.add_argument(
        "--noise",
        type=nonnegative("--noise", 0.25),
        default=0.0,
        metavar="D",
        help="variance of the label noise [0]",
    )
    group.add_argument(
        "--allow-non-odd",
        action="store_true",
        help="use the extension of the theory to students that are not odd functions",
    )
    group.add_argument(
        "--correlated-norms",
        action="store_true",
        help="include that the step correlates norms and overlaps of the rows (odd students)",
    )
    if width:
        group.add_argument(
            "--width",
            type=whole("--width", 1, 1000),
            metavar="P",
            help="number of neurons, for the finite-width correction of the theory [none: p = inf]",
        )
    else:
        parser.set_defaults(width=None)
    group.add_argument("--cache-folder", metavar="FOLDER", help="where derivations are kept")


def _add_curve(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument(
        "--alpha",
        type=sample_complexities("--alpha"),
        metavar="LIST",
        help="sample complexities n/d: 0.5,1,2 or START:STOP:COUNT [0.2:3:15]",
    )
    group = parser.add_argument_group("simulation")
    group.add_argument(
        "--simulate", action="store_true", help="train networks of finite size and compare"
    )
    group.add_argument(
        "--dimension",
        type=whole("--dimension", 1, 1000),
        default=1000,
        metavar="D",
        help="input dimension d [1000]",
    )
    group.add_argument(
        "--seeds", type=whole("--seeds", 2, 10), default=10, metavar="N", help="networks [10]"
    )
    group.add_argument(
        "--seed",
        type=whole("--seed", 0, 0),
        default=0,
        metavar="N",
        help="entropy of the run [0]; the same numbers for any number of workers",
    )
    group.add_argument(
        "--workers", type=whole("--workers", 1, 2), metavar="N", help="threads [one per processor]"
    )
    group.add_argument(
        "--store",
        metavar="FOLDER",
        help="where finished networks are kept [.giantstep-simulations next to --out]",
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", default="curve.html", metavar="FILE", help="the report, .html [curve.html]"
    )
    group.add_argument("--table-only", action="store_true", help="print the table, write no files")
    group.add_argument("--latex", action="store_true", help="print the equations in LaTeX, too")
    parser.set_defaults(run=_later("cli_curve", "curve"))


def _add_solve(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument(
        "--alpha",
        type=positive("--alpha", 2),
        default=2.0,
        metavar="A",
        help="sample complexity n/d of the readout [2]",
    )
    parser.add_argument("--digits", type=digits(50), metavar="N", help="refine to N digits")
    parser.add_argument(
        "--certify", action="store_true", help="prove intervals of training and test error"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the proven intervals, .json; with --certify"
    )
    parser.set_defaults(run=_later("cli_commands", "solve"))


def _add_claims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--certified", action="store_true", help="those that have a proof by intervals"
    )
    parser.set_defaults(run=_later("cli_commands", "list_claims"))


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims [all of them]")
    parser.add_argument("--slow", action="store_true", help="simulations of minutes, too")
    parser.add_argument(
        "--certified",
        action="store_true",
        help="nothing but proofs by intervals, with a table of them",
    )
    group = parser.add_argument_group("options of the named claims")
    for flag, minimum, example, letter, summary in (
        ("--targets", 1, 50, "N", "how many random targets are tried"),
        ("--dimension", 8, 400, "D", "input dimension d of the larger networks"),
        ("--steps", 1, 3, "T", "giant steps"),
        ("--networks", 2, 6, "N", "networks for each target and size"),
        ("--seed", 0, 0, "N", "entropy of targets and networks"),
    ):
        group.add_argument(flag, type=whole(flag, minimum, example), metavar=letter, help=summary)
    group.add_argument(
        "--store", metavar="FOLDER", help="where finished targets are kept, to resume"
    )
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FILE", help="write all evidence as JSON, too")
    parser.set_defaults(run=_later("cli_commands", "verify_claims"))


def _later(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """Import a command when it runs."""

    def run(arguments: argparse.Namespace) -> int:
        from importlib import import_module

        command = getattr(import_module(f".{module}", __package__), function)
        return int(command(arguments))

    return run
