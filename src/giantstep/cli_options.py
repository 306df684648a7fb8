"""What commands share: numbers and axes, read strictly and refused by their flag; the model."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .digits import MOST_DIGITS

_MOST_POINTS = 100_000
_LONGEST = 18


def real(flag: str, text: str, example: object) -> float:
    """Return a number that may be infinite; refuse NaN and what is not a number."""
    try:
        # float() also takes "1_000" and digits of other scripts, which here are slips.
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"{_shown(text)} is not a number; use {flag} {example}")
    return value


def positive(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of positive, finite numbers."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not 0 < value < math.inf:
            raise _refusal(flag, "positive and finite", text, example)
        return value

    return read


def positive_or_infinite(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of positive numbers or inf."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not value > 0:
            raise _refusal(flag, "positive (inf is allowed)", text, example)
        return value

    return read


def nonnegative(flag: str, example: object) -> Callable[[str], float]:
    """Return a reader of finite numbers >= 0."""

    def read(text: str) -> float:
        value = real(flag, text, example)
        if not 0 <= value < math.inf:
            raise _refusal(flag, ">= 0 and finite", text, example)
        return value

    return read


def whole(
    flag: str, minimum: int, example: int, *, most: int | None = None
) -> Callable[[str], int]:
    """Return a reader of whole numbers, from `minimum` to `most`."""

    def read(text: str) -> int:
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit()):
            raise argparse.ArgumentTypeError(
                f"{_shown(text)} is not a whole number; use {flag} {example}"
            )
        # 18 digits at most: int() of longer texts is slow or refused.
        value = int(text) if len(digits) <= _LONGEST else None
        if text.startswith("-") if value is None else value < minimum:
            raise _refusal(flag, f">= {minimum}", text, example)
        if most is not None and (value is None or value > most):
            raise _refusal(flag, f"at most {most}", text, example)
        if value is None:
            wanted = f"a whole number of at most {_LONGEST} digits"
            raise _refusal(flag, wanted, text, example)
        return value

    return read


def digits(example: int) -> Callable[[str], int]:
    """Return a reader of ``--digits``."""
    return whole("--digits", 1, example, most=MOST_DIGITS)


def sample_complexities(flag: str, *, zero: bool = False) -> Callable[[str], list[float]]:
    """Return a reader of ``0.5,1,2`` and of ``START:STOP:COUNT``, evenly spaced, ends included.

    Values are positive, or >= 0 with `zero`.
    """
    example = "0.5,1,2 or 0.2:3:15"

    def read(text: str) -> list[float]:
        if ":" in text:
            return spaced(text)
        if not text.strip(" ,"):
            raise argparse.ArgumentTypeError(f"no number is given; use {flag} {example}")
        values = [one(part.strip()) for part in text.split(",")]
        # The same network cannot be measured twice at one place; order is kept in the table.
        return list(dict.fromkeys(values))

    def one(part: str) -> float:
        value = real(flag, part, example)
        if not (0 < value < math.inf or (zero and value == 0)):
            wanted = ">= 0 and finite" if zero else "positive and finite"
            raise _refusal(flag, wanted, part, example)
        return value

    def spaced(text: str) -> list[float]:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) != 3:
            raise argparse.ArgumentTypeError(
                f"{_shown(text)} is not START:STOP:COUNT; use {flag} 0.2:3:15"
            )
        start, stop = one(parts[0]), one(parts[1])
        count = whole(flag, 1, 15)(parts[2])
        if count > _MOST_POINTS:
            raise argparse.ArgumentTypeError(
                f"{count} points are too many; use at most {_MOST_POINTS}, such as {flag} 0.2:3:15"
            )
        if not start < stop and count > 1:
            raise argparse.ArgumentTypeError(
                f"START has to be below STOP in {_shown(text)}; use {flag} 0.2:3:15"
            )
        steps = max(count - 1, 1)
        # Twelve digits: 0.6, not 0.6000000000000001, so that tables and files say what was asked.
        values = [start + (stop - start) * k / steps for k in range(count)]
        return list(dict.fromkeys(float(f"{value:.12g}") for value in values))

    return read


def _refusal(flag: str, wanted: str, text: str, example: object) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {wanted}, got {_shown(text)}; use {flag} {example}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


# A diagram of 400 x 400 points takes minutes.
_MOST_VALUES = 400

Axis = tuple[str, list[float] | None]
"""Name of a parameter in the library, and its values; None where a name alone was given."""


def axis(
    flag: str,
    example: str,
    names: Mapping[str, str],
    *,
    from_zero: Collection[str],
    bare: bool = False,
) -> Callable[[str], Axis]:
    """Return a reader of ``NAME=LOW:HIGH:COUNT``.

    Parameters
    ----------
    flag, example : str
        For messages.
    names : mapping from str to str
        Names on the command line, and in the library.
    from_zero : collection of str
        Those of the library whose values may be 0; the others are positive.
    bare : bool
        A name alone is taken, too.
    """

    def read(text: str) -> Axis:
        name, equals, values = text.partition("=")
        parts = values.split(":")
        if bare and name in names and not equals:
            return names[name], None
        if name not in names or len(parts) != 3:
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not NAME=LOW:HIGH:COUNT with NAME one of {', '.join(names)}; "
                f"use {flag} {example}"
            )
        low, high = (real(flag, part, example) for part in parts[:2])
        count = whole("COUNT =", 2, 12)(parts[2])
        least = 0.0 if names[name] in from_zero else math.ulp(0.0)
        if not least <= low < high < math.inf or count > _MOST_VALUES:
            zeros = ", ".join(n for n, known in names.items() if known in from_zero)
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} must have positive, finite LOW < HIGH ({zeros} may start at 0) and "
                f"at most {_MOST_VALUES} values; use {flag} {example}"
            )
        return names[name], spaced(low, high, count)

    return read


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return values with both ends, in the logarithm if the upper end is 20 times the lower."""
    steps = [k / max(count - 1, 1) for k in range(count)]
    if low > 0 and high > 20 * low:
        result = [low * (high / low) ** t for t in steps]
    else:
        result = [low + (high - low) * t for t in steps]
    # Twelve digits: 0.6, not 0.6000000000000001; the ends are what was asked for.
    return [float(f"{value:.12g}") for value in result]


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written and leaves room for the names of flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=96)


def add_command(
    group: argparse._SubParsersAction[Any],
    name: str,
    summary: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command whose help begins with its summary and ends with `epilog`."""
    result: argparse.ArgumentParser = group.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    return result


def add_activations(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the two activations; where they are not `required`, what is not given stays None."""
    group = parser.add_argument_group("activations")
    for name, default in (("student", "tanh"), ("teacher", "sin")):
        group.add_argument(
            f"--{name}",
            default=default if required else None,
            metavar="F",
            help=f"activation of the {name}: a name, or an expression in z [{default}]",
        )


def add_model(parser: argparse.ArgumentParser, *, ridge: bool = True, width: bool = True) -> None:
    """Add the arguments of the model; without those that a command does not depend on."""
    add_activations(parser)
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
        "--leading-order",
        choices=("published", "complete"),
        default="published",
        help="Result 3.1 as published, or with the terms of the same order that it leaves out: "
        "correlated norms and stretched rows, as networks have them [published]",
    )
    group.add_argument(
        "--correlated-norms",
        dest="leading_order",
        action="store_const",
        const="complete",
        help="former name of --leading-order complete",
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
