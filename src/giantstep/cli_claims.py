"""``giantstep claims`` and ``giantstep verify``: their arguments."""

from __future__ import annotations

import argparse

from .cli_layout import later
from .cli_numbers import whole

VERIFY_EPILOG = """\
giantstep claims lists every claim with its checks, and the options that these take.

--certified runs the checks that prove something by interval arithmetic: a solution exists, is
the only one in a box, and its test error is inside an interval. They need python-flint:
pip install "giantstep[flint]". Without it they are listed as not available, which counts neither
as passed nor as failed; with --certified the exit code is then 2. Proofs of more than a second are
run with --slow only.

exit codes: 0 all passed, 1 a claim failed, 2 bad input or a wanted proof could not be made.

examples:
  giantstep verify
  giantstep verify cui-3.1 block-structure --slow
  giantstep verify --certified
  giantstep verify conjecture-1 --targets 50 --dimension 400 --store checked --out found.json
"""


def add_claims(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep claims``."""
    parser.add_argument(
        "--certified", action="store_true", help="those that have a proof by intervals"
    )
    parser.set_defaults(run=later("cli_commands", "list_claims"))


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep verify``."""
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
    parser.set_defaults(run=later("cli_commands", "verify_claims"))
