"""``giantstep claims`` and ``giantstep verify``: their arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import cli_options as opts
from .cli_files import deliver, output, run_python
from .cli_options import Command, Group, option, whole
from .errors import ParameterError
from .pages import aligned

if TYPE_CHECKING:
    from .derivations.claims import Claim, Verdict

EPILOG = """\
Without a NAME an index of all claims: by paper, and there by the number of the result. As a figure
(--out claims.png) a table of how many checks of each kind every claim has.

examples:
  giantstep claims
  giantstep claims cui-3.1
  giantstep claims --certified --out proofs.html
  giantstep claims my_claims.py
"""

VERIFY_EPILOG = """\
A FILE.py of your own is run first, and the claims that it declares, or has evidence for, are
verified: plain functions under giantstep.evidence(...) that return a giantstep.Finding. With names
beside it, those alone.

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
  giantstep verify my_claims.py
  giantstep verify conjecture-1 --targets 50 --dimension 400 --store checked --out found.json
"""


def list_claims(arguments: argparse.Namespace) -> int:
    """Print an index of the claims, or some of them in full."""
    from .derivations.claims import Claims, claims, named

    files = [name for name in arguments.names if name.endswith(".py")]
    known = [*_of_files(files), *named([name for name in arguments.names if name not in files])]
    chosen = Claims(
        claim
        for claim in (known if arguments.names else claims())
        if claim.proofs or not arguments.certified
    )
    full = bool(arguments.names) or arguments.full
    return deliver(
        arguments, *(chosen if full else [chosen]), title="Claims",
        text=str(chosen) if full else chosen.by_paper(),
        document=[claim.to_dict() for claim in chosen], draw=lambda: chosen.plot(),
    )  # fmt: skip


def verify_claims(arguments: argparse.Namespace) -> int:
    """Recompute the evidence of claims; 1 if one fails, 2 if wanted proofs are not made."""
    from .derivations.claims import verify

    given = {one.dest: getattr(arguments, one.dest) for one in _OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    if arguments.certified:
        options["certified"] = True
    files = [name for name in arguments.names if name.endswith(".py")]
    own = [claim.identifier for claim in _of_files(files)]
    names = [name for name in arguments.names if name not in files] or own
    verdicts = verify(names or None, slow=arguments.slow, **options)
    deliver(
        arguments, *verdicts, text="", title="Evidence of claims",
        document=[verdict.to_dict() for verdict in verdicts], draw=lambda: verdicts.plot(),
    )  # fmt: skip
    for verdict in verdicts:
        print(f"{verdict}\n")
    if arguments.certified:
        print(f"{_proofs(verdicts)}\n")
    failed = [verdict.claim.identifier for verdict in verdicts if verdict.failed]
    passed = sum(verdict.passed for verdict in verdicts)
    print(f"{passed} of {len(verdicts)} claims passed", end="")
    waiting = sum(verdict.outcome == "not run" for verdict in verdicts)
    print(f"; not run without --slow: {waiting}" if waiting else "", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "")
    missing = list(dict.fromkeys(text for verdict in verdicts for text in verdict.unavailable))
    if missing:
        print(
            f"giantstep: {'1 check was' if len(missing) == 1 else f'{len(missing)} checks were'} "
            "not made, which says nothing about the claims; "
            f"{missing[0].partition(': ')[2]}",
            file=sys.stderr,
        )
    if failed:
        return 1
    return 2 if (arguments.certified and missing) or waiting == len(verdicts) else 0


def _of_files(files: Sequence[str]) -> list[Claim]:
    """Run Python files of the user; return the claims that they declare or have evidence for.

    Raises
    ------
    ParameterError
        If a file is not there, breaks, or has no claims.
    """
    from .derivations.claims import claims_from

    result: dict[str, Claim] = {}
    for file in files:
        claims = claims_from(run_python(file, "claims are names or Python files"))
        if not claims:
            raise ParameterError(
                f"{file} has no claims: declare one by giantstep.declare_claim(...), and give it "
                "evidence by @giantstep.evidence(...) above a function that returns a "
                "giantstep.Finding"
            )
        result |= {claim.identifier: claim for claim in claims}
    return list(result.values())


def _proofs(verdicts: Sequence[Verdict]) -> str:
    """Return the table of proofs by intervals."""
    from .derivations.claims import claims

    rows = []
    for verdict in verdicts:
        name = verdict.claim.identifier
        rows += [
            [name, e.description, "proven" if e.passed else "FAILED", f"{e.seconds:.1f}"]
            for e in verdict.evidence
        ]
        rows += [[name, text.partition(": ")[0], "not available", ""]
                 for text in verdict.unavailable]  # fmt: skip
        rows += [[name, text, "skipped, slow", ""] for text in verdict.skipped]
    known = claims()
    with_proof = sum(bool(claim.proofs) for claim in known)
    return (
        f"{aligned(['claim', 'proof by intervals', 'outcome', 'seconds'], rows)}\n"
        f"{with_proof} of {len(known)} claims have a proof by intervals. It rests on the ball "
        "arithmetic\n(python-flint), on this package and on the equations; see the page "
        "certificates of the documentation."
    )


_OPTIONS = (
    option("--targets N", "how many random targets are tried", whole(1, 50)),
    opts.DIMENSION.but(
        help="input dimension d of the larger networks", read=whole(8, 400), default=None
    ),
    opts.STEPS.but(help="giant steps"),
    option("--networks N", "networks for each target and size", whole(2, 6)),
    opts.SEED.but(help="entropy of targets and networks", default=None),
    opts.STORE.but(help="where finished targets are kept, to resume"),
)
CLAIMS = Command(
    "claims", "list the published results that are held as claims", list_claims, (
        option("--certified", "those that have a proof by intervals"),
        option(
            "NAME", "claims to be shown in full, or FILE.py with claims of your own [an index of "
            "all]", nargs="*", dest="names",
        ),
        option("--full", "all claims in full"), *output(data=False),
    ), EPILOG,
)  # fmt: skip
VERIFY = Command(
    "verify", "recompute the evidence of claims; exit code 1 if one fails", verify_claims, (
        option(
            "NAME", "claims, or FILE.py with claims [all of the package]", nargs="*", dest="names"
        ),
        option("--slow", "simulations of minutes, too"),
        option("--certified", "nothing but proofs by intervals, with a table of them"),
        Group("options of the named claims", _OPTIONS),
        Group("output", output(data=False)),
    ), VERIFY_EPILOG,
)  # fmt: skip
