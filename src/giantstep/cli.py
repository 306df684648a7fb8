"""Arguments in, exit codes out: the entry of the command line.

Bad input ends with exit code 2 and one line on the standard error stream that names the argument,
says why it cannot be and what would work. Commands import what they need when they run, so that
help and errors are immediate.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
from collections.abc import Callable, Sequence

from . import cli_kernel
from .cli_messages import FLAGS, error_text, report
from .cli_parser import build_parser
from .errors import GiantstepError, ParameterError

EXTENSIONS = "GIANTSTEP_EXTENSIONS"
"""Environment variable: files that are run before a command, as PATH is written."""
_NEGATIVE = re.compile(r"-(?!h$|-)")
# Flags without a value: what follows them is an argument of its own.
_SWITCHES = {
    "--allow-non-odd", "--centre", "--certified", "--certify", "--closed-form",
    "--correlated-norms", "--formulas", "--fresh", "--joint", "--latex", "--list", "--simulate",
    "--slow", "--table-only", "--tune-step",
}  # fmt: skip


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
        arguments = build_parser().parse_args(_with_negative_values(argv))
        command: Callable[[argparse.Namespace], int] = arguments.run
        code = command(arguments)
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
        # A kernel's parameters keep their names: they are no flags there.
        of_kernel = getattr(arguments, "run", None) is cli_kernel.run
        report(error_text(error, {} if of_kernel else FLAGS))
        return 2
    except MemoryError as error:
        reason = str(error) or "the run needs more than there is"
        report(f"not enough memory: {reason}; use a smaller --dimension, --alpha or --alpha0")
        return 2


def _run_extensions() -> None:
    """Run the Python files in which users declare activations and claims of their own."""
    for path in filter(None, os.environ.get(EXTENSIONS, "").split(os.pathsep)):
        if not os.path.isfile(path):
            raise ParameterError(f"{EXTENSIONS} must list Python files, and {path!r} is none")
        runpy.run_path(path)


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
