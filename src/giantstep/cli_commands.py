"""More commands: one point, claims."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .cli_curve import describe_model, model_from, stated

VERIFY_OPTIONS = ("targets", "dimension", "steps", "networks", "seed", "store")
"""Flags of ``verify`` that are options of claims."""


def solve(arguments: argparse.Namespace) -> int:
    """Print one saddle point with all order parameters."""
    model = model_from(arguments)
    with stated():
        solution = model.solve(arguments.alpha, arguments.ridge, digits=arguments.digits)
    print(describe_model(model, arguments.ridge))
    print(f"\nα = {arguments.alpha:g}, λ = {arguments.ridge:g}\n{solution}")
    return 0


def list_claims(arguments: argparse.Namespace) -> int:
    """Print all claims."""
    from .derivations.claims import claims

    print("\n\n".join(map(str, claims())))
    return 0


def verify_claims(arguments: argparse.Namespace) -> int:
    """Recompute the evidence of claims; 1 if one fails."""
    from .derivations.claims import to_json, verify

    given = {name: getattr(arguments, name) for name in VERIFY_OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    verdicts = verify(arguments.names or None, slow=arguments.slow, **options)
    if arguments.out is not None:
        write_text(Path(arguments.out).expanduser(), f"{to_json(verdicts)}\n")
    for verdict in verdicts:
        print(f"{verdict}\n")
    failed = [verdict.claim.identifier for verdict in verdicts if not verdict.passed]
    passed = len(verdicts) - len(failed)
    print(f"{passed} of {len(verdicts)} claims passed", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


def write_text(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        # Named as the user did, not by the temporary file.
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        temporary.unlink(missing_ok=True)
