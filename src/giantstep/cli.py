"""Arguments in, exit codes out: the entry of the command line.

Bad input ends with exit code 2 and one line on the standard error stream that names the argument,
says why it cannot be and what would work. Commands import what they need when they run, so that
help and errors are immediate.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from . import (
    __version__,
    cli_claims,
    cli_conjecture,
    cli_curve,
    cli_dynamics,
    cli_exact,
    cli_expand,
    cli_explore,
    cli_giant_steps,
    cli_kernel,
    cli_multi_index,
    cli_one_step,
    cli_optimal,
    cli_srf,
    cli_targets,
)
from .cli_files import run_python
from .cli_options import Command, Formatter, Group
from .errors import GiantstepError
from .json_document import json_text

COMMANDS: tuple[Command, ...] = (
    cli_curve.CURVE,
    cli_curve.SOLVE,
    cli_optimal.OPTIMAL,
    cli_explore.EXPLORE,
    cli_kernel.KERNEL,
    cli_srf.SRF,
    cli_one_step.ONE_STEP,
    cli_expand.EXPAND,
    cli_claims.CLAIMS,
    cli_claims.VERIFY,
    cli_conjecture.CONJECTURE,
    *cli_exact.COMMANDS,
    *cli_targets.COMMANDS,
    cli_giant_steps.GIANT_STEPS,
    cli_dynamics.DYNAMICS,
    cli_multi_index.MULTI_INDEX,
)

# Names of arguments in the library, which its messages use, and here.
FLAGS = {
    "step_size": "--step-size",
    "learning_rate": "--learning-rate",
    "noise_variance": "--noise",
    "cache_folder=": "--cache-folder",
    r"allow_non_odd=True \(--allow-non-odd\)": "--allow-non-odd",
    'leading_order="complete"': "--leading-order complete",
    'leading_order="published"': "--leading-order published",
    "leading_order": "--leading-order",
    "seeds >=": "--seeds >=",
    r"centre=True \(--centre\)": "--centre",
    "paper_ridge": "--paper-ridge",
}


def error_text(error: GiantstepError | OSError, flags: Mapping[str, str]) -> str:
    """Return the text of an error; `flags` says what to write for which regular expression."""
    if isinstance(error, OSError) and not isinstance(error, GiantstepError):
        place = f" {os.fspath(error.filename)!r}" if error.filename is not None else ""
        reason = (error.strerror or str(error)).lower()
        return f"cannot use{place}: {reason}; choose another file or folder"
    text = str(error)
    for name, flag in flags.items():
        text = re.sub(name, flag, text)
    return text


def report(message: str) -> None:
    """Print a message to the standard error stream, as one line."""
    lines = [line.strip() for line in message.splitlines()]
    text = lines[0]
    for line in filter(None, lines[1:]):
        text += f"{'' if text.endswith((';', ':', ',')) else ';'} {line}"
    # Text of users may hold control characters; a terminal would obey them.
    printable = "".join(c if c.isprintable() else "?" for c in text)
    print(f"giantstep: {printable}", file=sys.stderr)


_EPILOG = """\
examples:
  giantstep curve --student tanh --teacher sin --simulate
  giantstep curve --student erf --teacher "sin(z) + He(3, z)/6" --alpha 0.5,1,2
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --certify
  giantstep expand srf large-alpha --student tanh --teacher sin --ridge 0.1
  giantstep optimal --student erf --teacher erf --noise 0.1 --alpha 0.5:4:8
  giantstep kernel sherrington-kirkpatrick --target c --out sk.c
  giantstep one-step risk --student erf --teacher erf --over alpha --out risk.png
  giantstep hermite "erf(z)" --order 9 --closed-form
  giantstep expect "erf(u)*erf(v)" --joint rho
  giantstep gradient "x1*x2 + He(3, x1)" --student relu
  giantstep complexity "x1*x2 + x1**2"
  giantstep verify
  giantstep conjecture "x**4 + 1 >= 2*x**2" --over x=real

With pip install "giantstep[completion]", eval "$(register-python-argcomplete giantstep)" completes
commands and flags in bash and zsh.

Activations are names (tanh, erf, sin, relu, softplus, ...) or expressions in z such as
"tanh(2*z) + z/4" or "He(3, z)/6", with probabilists' Hermite polynomials.
"""


_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)$")
_UNKNOWN = re.compile(r"unrecognized arguments: .*?(?P<given>--[\w-]+)")


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, with what was probably meant."""

    # The command whose arguments were read last: it knows the flags that there are.
    _latest: ClassVar[argparse.ArgumentParser]

    def parse_known_args(self, *given: Any, **options: Any) -> Any:
        """Read arguments, as argparse does."""
        Parser._latest = self
        return super().parse_known_args(*given, **options)

    def error(self, message: str) -> NoReturn:
        if match := _CHOICE.search(message):
            known = re.findall(r"[\w-]+", match["known"])
        elif match := _UNKNOWN.search(message):
            known = ["--help", *re.findall(r"--[\w-]+", Parser._latest.format_usage())]
        else:
            report(f"{message}; see {self.prog} --help")
            raise SystemExit(2)
        # Without dashes, which all flags share.
        names = {name.lstrip("-"): name for name in known}
        close = difflib.get_close_matches(match["given"].lstrip("-"), names, n=1)
        hint = f"; did you mean {names[close[0]]}?" if close else ""
        report(f"{message}{hint}; see {self.prog} --help")
        raise SystemExit(2)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its result holds the command's function in ``run``."""
    parser = Parser(
        prog="giantstep",
        description="Theory of feature learning in the first giant gradient steps: exact "
        "derivations, solved\nto any precision, checked against finite networks.",
        epilog=_EPILOG,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"giantstep {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    for command in COMMANDS:
        command.add(commands)
    return parser


EXTENSIONS = "GIANTSTEP_EXTENSIONS"
"""Environment variable: files that are run before a command, as PATH is written."""
_NEGATIVE = re.compile(r"-(?!h$|-)")


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
        _run_extensions()
        parser = build_parser()
        if "_ARGCOMPLETE" in os.environ:
            # Set by the shell that asks what could follow; ends the process.
            import argcomplete

            argcomplete.autocomplete(parser)
        arguments = parser.parse_args(_with_negative_values(argv))
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except KeyboardInterrupt as interruption:
        report(" ".join(["interrupted", *map(str, interruption.args)]))
        return 130
    except BrokenPipeError:
        # The reader of our output, such as head, has gone. Python would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (GiantstepError, OSError) as error:
        flags = getattr(arguments, "flags", {})
        report(error_text(error, {} if flags is None else {**flags, **FLAGS}))
        return 2
    except MemoryError as error:
        reason = str(error) or "the run needs more than there is"
        report(f"not enough memory: {reason}; use a smaller --dimension, --alpha or --alpha0")
        return 2


def _run(arguments: argparse.Namespace) -> int:
    """Run a command; with --json its document is all that stands on the standard output."""
    command: Callable[[argparse.Namespace], int] = arguments.run
    if not getattr(arguments, "json", False):
        return command(arguments)
    with contextlib.redirect_stdout(io.StringIO()):
        code = command(arguments)
    print(json_text(arguments.document))
    return code


def _run_extensions() -> None:
    """Run the Python files in which users declare activations and claims of their own."""
    for path in filter(None, os.environ.get(EXTENSIONS, "").split(os.pathsep)):
        run_python(path, f"{EXTENSIONS} must list Python files")


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
    result: list[str] = []
    switches = set(_switches(COMMANDS))
    for text in sys.argv[1:] if argv is None else argv:
        previous = result[-1] if result else ""
        takes_value = previous.startswith("--") and "=" not in previous
        if _NEGATIVE.match(text) and takes_value and previous not in switches:
            result[-1] = f"{previous}={text}"
        elif _NEGATIVE.match(text) and len(text) > 2:
            result.append(f" {text}")
        else:
            result.append(text)
    return result


def _switches(commands: Sequence[Command]) -> Iterator[str]:
    """Return flags without a value: what follows them is an argument of its own."""
    for command in commands:
        yield from _switches(command.commands)
        groups = [one.options if isinstance(one, Group) else (one,) for one in command.options]
        for one in itertools.chain.from_iterable(groups):
            if one.is_switch:
                yield one.names
