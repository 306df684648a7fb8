"""What commands share: options, each declared once, and values, refused by their flag."""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


Reader = Callable[[str], Callable[[str], Any]]
"""Takes a flag, for messages, and returns what reads its value."""


def _number(example: object, wanted: str, admitted: Callable[[float], bool]) -> Reader:
    def reader(flag: str) -> Callable[[str], float]:
        def read(text: str) -> float:
            value = real(flag, text, example)
            if not admitted(value):
                raise _refusal(flag, wanted, text, example)
            return value

        return read

    return reader


def positive(example: object) -> Reader:
    """Return a reader of positive, finite numbers."""
    return _number(example, "positive and finite", lambda value: 0 < value < math.inf)


def positive_or_infinite(example: object) -> Reader:
    """Return a reader of positive numbers or inf."""
    return _number(example, "positive (inf is allowed)", lambda value: value > 0)


def nonnegative(example: object) -> Reader:
    """Return a reader of finite numbers >= 0."""
    return _number(example, ">= 0 and finite", lambda value: 0 <= value < math.inf)


def whole(minimum: int, example: int, *, most: int | None = None) -> Reader:
    """Return a reader of whole numbers, from `minimum` to `most`."""

    def reader(flag: str) -> Callable[[str], int]:
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

    return reader


def digits(example: int) -> Reader:
    """Return a reader of numbers of digits."""
    return whole(1, example, most=MOST_DIGITS)


def numbers(example: str, *, least: float = -math.inf, zero: bool = True) -> Reader:
    """Return a reader of ``0.5,1,2``, and of ``START:STOP:COUNT``, ends included, if positive.

    Values are finite and above `least`, or equal to it with `zero`.
    """

    def reader(flag: str) -> Callable[[str], list[float]]:
        bounded = least == 0
        wanted = "finite" if not bounded else f"{'>= 0' if zero else 'positive'} and finite"

        def one(part: str) -> float:
            value = real(flag, part, example)
            if not (math.isfinite(value) and (value >= least if zero else value > least)):
                raise _refusal(flag, wanted, part, example)
            return value

        def read(text: str) -> list[float]:
            if ":" in text and bounded:
                return evenly(text)
            if not text.strip(" ,"):
                raise argparse.ArgumentTypeError(f"no number is given; use {flag} {example}")
            return [one(part.strip()) for part in text.split(",")]

        def evenly(text: str) -> list[float]:
            parts = [part.strip() for part in text.split(":")]
            if len(parts) != 3:
                raise argparse.ArgumentTypeError(
                    f"{_shown(text)} is not START:STOP:COUNT; use {flag} 0.2:3:15"
                )
            start, stop = one(parts[0]), one(parts[1])
            count = whole(1, 15)(flag)(parts[2])
            if count > _MOST_POINTS:
                raise argparse.ArgumentTypeError(
                    f"{count} points are too many; use at most {_MOST_POINTS}, such as {flag} "
                    "0.2:3:15"
                )
            if not start < stop and count > 1:
                raise argparse.ArgumentTypeError(
                    f"START has to be below STOP in {_shown(text)}; use {flag} 0.2:3:15"
                )
            steps = max(count - 1, 1)
            # Twelve digits: 0.6, not 0.6000000000000001: tables and files say what was asked.
            return [float(f"{start + (stop - start) * k / steps:.12g}") for k in range(count)]

        return read

    return reader


def sample_complexities(*, zero: bool = False) -> Reader:
    """Return a reader of positive numbers, or >= 0 with `zero`, each once in the order given."""
    several = numbers("0.5,1,2 or 0.2:3:15", least=0.0, zero=zero)
    # The same network cannot be measured twice at one place.
    return lambda flag: lambda text: list(dict.fromkeys(several(flag)(text)))


def _refusal(flag: str, wanted: str, text: str, example: object) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {wanted}, got {_shown(text)}; use {flag} {example}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


# A diagram of 400 x 400 points takes minutes.
_MOST_VALUES = 400

_FORMER_AXES = {"noise-variance": "noise"}

Axis = tuple[str, list[float] | None]
"""Name of a parameter in the library, and its values; None where a name alone was given."""


def axis(
    example: str, names: Mapping[str, str], *, from_zero: Collection[str], bare: bool = False
) -> Reader:
    """Return a reader of ``NAME=LOW:HIGH:COUNT``.

    Parameters
    ----------
    example : str
        For messages.
    names : mapping from str to str
        Names on the command line, and in the library.
    from_zero : collection of str
        Those of the library whose values may be 0; the others are positive.
    bare : bool
        A name alone is taken, too.
    """

    def reader(flag: str) -> Callable[[str], Axis]:
        def read(text: str) -> Axis:
            name, equals, values = text.partition("=")
            name = _FORMER_AXES.get(name, name)
            parts = values.split(":")
            if bare and name in names and not equals:
                return names[name], None
            if name not in names or len(parts) != 3:
                raise argparse.ArgumentTypeError(
                    f"{text[:40]!r} is not NAME=LOW:HIGH:COUNT with NAME one of "
                    f"{', '.join(names)}; use {flag} {example}"
                )
            low, high = (real(flag, part, example) for part in parts[:2])
            count = whole(2, 12)("COUNT =")(parts[2])
            least = 0.0 if names[name] in from_zero else math.ulp(0.0)
            if not least <= low < high < math.inf or count > _MOST_VALUES:
                zeros = ", ".join(n for n, known in names.items() if known in from_zero)
                raise argparse.ArgumentTypeError(
                    f"{text[:40]!r} must have positive, finite LOW < HIGH ({zeros} may start at 0) "
                    f"and at most {_MOST_VALUES} values; use {flag} {example}"
                )
            return names[name], spaced(low, high, count)

        return read

    return reader


def spaced(low: float, high: float, count: int) -> list[float]:
    """Return values with both ends, in the logarithm if the upper end is 20 times the lower."""
    steps = [k / max(count - 1, 1) for k in range(count)]
    if low > 0 and high > 20 * low:
        result = [low * (high / low) ** t for t in steps]
    else:
        result = [low + (high - low) * t for t in steps]
    # Twelve digits: 0.6, not 0.6000000000000001; the ends are what was asked for.
    return [float(f"{value:.12g}") for value in result]


# ---------------------------------------------------------------------- options and commands


@dataclass(frozen=True, slots=True)
class Option:
    """An option, a switch or an argument of a command.

    Attributes
    ----------
    names : str
        "--noise D": its flags and what its value is called, which a switch has none of; "TARGET"
        for an argument.
    help : str
        Its default follows in brackets, unless something stands there already.
    read : callable, optional
        Reader of its value.
    default : optional
    former : str
        Flags of the last release, which are taken without being shown.
    keywords : mapping
        Further ones of argparse.
    """

    names: str
    help: str
    read: Reader | None = None
    default: Any = None
    former: str = ""
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def but(self, names: str | None = None, **changes: Any) -> Option:
        """Return the option as another command has it."""
        own = {key: changes.pop(key) for key in Option.__slots__ if key in changes}
        keywords = {**self.keywords, **changes}
        return replace(self, names=names or self.names, **own, keywords=keywords)

    def add(self, parser: Any) -> None:
        """Declare the option to argparse."""
        flags = [word for word in self.names.split() if word.startswith("--")]
        metavar = " ".join(word for word in self.names.split() if not word.startswith("--"))
        given = {**self.keywords, "help": self._help()}
        if self.read is not None:
            given["type"] = self.read(flags[0] if flags else metavar)
        if not flags:
            given.setdefault("default", self.default)
            given.pop("dest", None)
            parser.add_argument(self.dest, metavar=metavar, **given)
            return
        if self.is_switch:
            parser.add_argument(*flags, action="store_true", **given)
            return
        if metavar:
            given["metavar"] = metavar
        given["dest"] = self.dest
        parser.add_argument(*flags, default=self.default, **given)
        for flag in self.former.split():
            parser.add_argument(
                flag, default=argparse.SUPPRESS, **{**given, "help": argparse.SUPPRESS}
            )

    @property
    def dest(self) -> str:
        """What the value is called in the arguments."""
        name: str = self.keywords.get("dest", self.names.split()[0].lstrip("-").lower())
        return name.replace("-", "_")

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return (
            self.names[:2] == "--"
            and " " not in self.names
            and not (self.keywords.keys() & {"choices", "action"})
        )

    def _help(self) -> str:
        default = self.default
        if default in (None, [], argparse.SUPPRESS) or "[" in self.help:
            return self.help
        shown = f"{default:g}" if isinstance(default, float) else default
        return f"{self.help} [{shown}]"


def option(
    names: str,
    help: str = "",
    read: Reader | None = None,
    default: Any = None,
    former: str = "",
    **keywords: Any,
) -> Option:
    """Declare an option; see :class:`Option`."""
    return Option(names, help, read, default, former, keywords)


@dataclass(frozen=True, slots=True)
class Group:
    """Options under a heading of their own; one of them alone may be given if they exclude."""

    title: str
    options: Sequence[Option]
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a heading over commands.

    Attributes
    ----------
    name, summary : str
    options : sequence of Option or Group
    run : callable, optional
        Takes the arguments and returns the exit code.
    epilog : str
        What its help ends with: conventions and examples.
    commands : sequence of Command
        Those below it.
    flags : mapping from str to str, optional
        What messages of the library say, as regular expressions, and what they say here; None for
        a command whose messages stay as they are.
    defaults : mapping
        Further values of the arguments.
    """

    name: str
    summary: str
    run: Callable[[argparse.Namespace], int] | None = None
    options: Sequence[Option | Group] = ()
    epilog: str = ""
    commands: Sequence[Command] = ()
    flags: Mapping[str, str] | None = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def add(self, group: Any) -> None:
        """Declare the command, and those below it, to argparse."""
        parser = group.add_parser(
            self.name,
            help=self.summary,
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=self.epilog,
            formatter_class=Formatter,
            allow_abbrev=False,
        )
        if self.commands:
            below = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
            for command in self.commands:
                command.add(below)
            return
        for one in self.options:
            if isinstance(one, Option):
                one.add(parser)
                continue
            part: Any = parser
            if one.exclusive:
                part = parser.add_mutually_exclusive_group(required=True)
            elif one.title:
                part = parser.add_argument_group(one.title)
            for inner in one.options:
                inner.add(part)
        parser.set_defaults(run=self.run, flags=self.flags, **self.defaults)


def flag_of(name: str) -> str:
    """Return the flag of an argument."""
    return f"--{name.replace('_', '-')}"


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps examples as they are written and leaves room for the names of flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(96, terminal_width() - 2))


def terminal_width() -> int:
    """Return how many characters a line has."""
    return max(shutil.get_terminal_size((100, 24)).columns, 40)


_ACTIVATION = "a name, or an expression in z"
STUDENT = option("--student F", f"activation of the student: {_ACTIVATION}", default="tanh")
TEACHER = option("--teacher F", f"activation of the teacher: {_ACTIVATION}", default="sin")
ACTIVATIONS = Group("activations", (STUDENT, TEACHER))
TARGET = option("TARGET", "expression in x1, x2, ...")
ALPHA = option("--alpha A", "sample complexity n/d of the readout", positive(2), 2.0)
ALPHAS = option(
    "--alpha LIST", "sample complexities n/d: 0.5,1,2 or START:STOP:COUNT", sample_complexities()
)
ALPHA0 = option(
    "--alpha0 A", "samples of the step, n0/d; inf for the population gradient",
    positive_or_infinite(20), 20.0,
)  # fmt: skip
BETA = option("--beta B", "neurons, p/d", positive(1), 1.0)
STEP_SIZE = option("--step-size S", "step size; 0 for no step", nonnegative(3))
RIDGE = option("--ridge L", "ridge penalty of the readout, > 0", positive(0.1), 0.1)
NOISE = option(
    "--noise D", "variance of the label noise", nonnegative(0.25), 0.0, dest="noise_variance"
)
WIDTH = option(
    "--width P",
    "number of neurons, for the finite-width correction of the theory [none: p = inf]",
    whole(1, 1000),
)
DIGITS = option("--digits N", "refine to N digits, up to 1000", digits(30))
CERTIFY = option(
    "--certify",
    "prove intervals by interval arithmetic (python-flint), as narrow as N digits [15]",
)
LATEX = option("--latex", "print LaTeX, too")
SIMULATE = option("--simulate", "train networks of finite size and compare")
DIMENSION = option("--dimension D", "input dimension d", whole(2, 200), 200)
SEEDS = option("--seeds N", "number of networks", whole(1, 4), 4)
SEED = option("--seed N", "entropy of all random numbers", whole(0, 0), 0)
WORKERS = option(
    "--workers N", "threads, without effect on the numbers [one per processor]", whole(1, 2)
)
STORE = option("--store FOLDER", "keep finished networks there; resume from it")
STEPS = option("--steps T", "number of steps", whole(1, 3))
PARAMETER = option(
    "--parameter NAME:KIND",
    "declare a parameter; KIND is real, positive, nonnegative, integer, ...",
    default=[], action="append",
)  # fmt: skip
CACHE_FOLDER = option("--cache-folder FOLDER", "where derivations are kept")
JSON = option("--json", "print the result as JSON, no text")
# The last release wrote files unless it was told not to.
TABLE_ONLY = option("--table-only", argparse.SUPPRESS, action="store_const", dest="out", const=None)


def srf_model(*, ridge: bool = True, width: bool = True) -> tuple[Group, ...]:
    """Return the options of spiked random features; without those that play no part."""
    options = (
        STEP_SIZE.but(help="step per neuron, s = eta/sqrt(p) [3]; 0 for no step"),
        option(
            "--learning-rate R", "learning rate in the convention of --convention, instead of "
            "--step-size", nonnegative(3),
        ),
        option(
            "--convention NAME", "sqrt-width (S = R), sqrt-dimension (S = R/sqrt(B)) or dimension "
            "(S = R/B) [sqrt-width]",
        ),
        ALPHA0, BETA, *((RIDGE,) if ridge else ()), NOISE,
        option(
            "--allow-non-odd",
            "use the extension of the theory to students that are not odd functions",
        ),
        option(
            "--leading-order", "Result 3.1 as published, or with the terms of the same order that "
            "it leaves out: correlated norms and stretched rows, as networks have them",
            default="published", choices=("published", "complete"),
        ),
        option(
            "--correlated-norms", "former name of --leading-order complete",
            action="store_const", const="complete", dest="leading_order",
            default=argparse.SUPPRESS,
        ),
        *((WIDTH,) if width else ()), CACHE_FOLDER,
    )  # fmt: skip
    return ACTIVATIONS, Group("model (defaults in brackets)", options)
