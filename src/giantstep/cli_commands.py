"""More commands: one point, claims."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .atomic_files import write_atomically
from .cli_curve import _check_folder, describe_model, model_from, stated
from .errors import ParameterError

if TYPE_CHECKING:
    from .derivations.claims import Verdict

VERIFY_OPTIONS = ("targets", "dimension", "steps", "networks", "seed", "store")
"""Flags of ``verify`` that are options of claims."""


def solve(arguments: argparse.Namespace) -> int:
    """Print one saddle point with all order parameters; with a proof, if that is wanted."""
    out = checked_file(arguments.out, "--out", (".json",), "proof")
    if out is not None and not arguments.certify:
        raise ParameterError("--out is for the intervals of --certify; add that, too")
    model = model_from(arguments)
    given = {"certify": True} if arguments.certify else {}
    if arguments.digits is not None:
        given["digits"] = arguments.digits
    with stated():
        solution = model.solve(alpha=arguments.alpha, ridge=arguments.ridge, **given)
    print(describe_model(model, arguments.ridge))
    print(f"\nα = {arguments.alpha:g}, λ = {arguments.ridge:g}\n{solution}")
    if arguments.certify:
        print(f"\n{solution.certificate}")
    if out is not None and solution.certificate is not None:
        write_atomically(out, f"{solution.certificate.to_json()}\n")
        print(f"\nWrote {out}")
    return 0


def list_claims(arguments: argparse.Namespace) -> int:
    """Print all claims, or those that have a proof by intervals."""
    from .derivations.claims import claims

    chosen = [claim for claim in claims() if claim.proofs or not arguments.certified]
    print("\n\n".join(map(str, chosen)))
    return 0


def verify_claims(arguments: argparse.Namespace) -> int:
    """Recompute the evidence of claims; 1 if one fails, 2 if wanted proofs are not made."""
    from .derivations.claims import to_json, verify

    given = {name: getattr(arguments, name) for name in VERIFY_OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    if arguments.certified:
        options["certified"] = True
    verdicts = verify(arguments.names or None, slow=arguments.slow, **options)
    if arguments.out is not None:
        write_atomically(Path(arguments.out).expanduser(), f"{to_json(verdicts)}\n")
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


def _proofs(verdicts: Sequence[Verdict]) -> str:
    """Return the table of proofs by intervals."""
    from .derivations.claims import claims
    from .pages import aligned

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


def checked_file(text: str | None, flag: str, suffixes: Sequence[str], name: str) -> Path | None:
    """Find out now, not after the computation, whether a file can be written.

    Parameters
    ----------
    text : str, optional
        What the user gave; None for no file.
    flag : str
    suffixes : sequence of str
        Those that are known.
    name : str
        Of a file in an example.

    Raises
    ------
    ParameterError
        If the suffix is unknown, or the place is a folder or cannot be written to.
    """
    if text is None:
        return None
    path = Path(text).expanduser()
    example = f"{flag} {path.stem or name}{suffixes[0]}"
    if path.suffix.lower() not in suffixes:
        raise ParameterError(
            f"{flag} must end in {', '.join(suffixes)}, got {text!r}; use {example}"
        )
    _check_folder(path.parent, flag)
    if path.is_dir():
        raise ParameterError(f"{flag} {text!r} is a folder; use {flag} {text}/{name}{suffixes[0]}")
    return path
