"""One line on the standard error stream for what is wrong, in the words of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from .errors import GiantstepError

# Names of arguments in the library, which its messages use, and here.
FLAGS = {
    "step_size": "--step-size",
    "learning_rate": "--learning-rate",
    "noise_variance": "--noise",
    "cache_folder=": "--cache-folder",
    "allow_non_odd=True (--allow-non-odd)": "--allow-non-odd",
    'leading_order="complete"': "--leading-order complete",
    'leading_order="published"': "--leading-order published",
    "leading_order": "--leading-order",
    "seeds >=": "--seeds >=",
    "centre=True (--centre)": "--centre",
    "paper_ridge": "--paper-ridge",
}


def error_text(error: GiantstepError | OSError, flags: Mapping[str, str]) -> str:
    """Return the text of an error, with names of arguments replaced by those in `flags`."""
    if isinstance(error, OSError) and not isinstance(error, GiantstepError):
        place = f" {os.fspath(error.filename)!r}" if error.filename is not None else ""
        reason = (error.strerror or str(error)).lower()
        return f"cannot use{place}: {reason}; choose another file or folder"
    text = str(error)
    for name, flag in flags.items():
        text = text.replace(name, flag)
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
