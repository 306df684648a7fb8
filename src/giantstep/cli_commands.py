"""More commands: one point, a kernel as text, claims."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .cli_curve import describe_model, model_from
from .errors import ParameterError

VERIFY_OPTIONS = ("targets", "dimension", "steps", "networks", "seed", "store")
"""Flags of ``verify`` that are options of claims."""


def solve(arguments: argparse.Namespace) -> int:
    """Print one saddle point with all order parameters."""
    model = model_from(arguments)
    solution = model.solve(arguments.alpha, arguments.ridge, digits=arguments.digits)
    print(describe_model(model, arguments.ridge))
    print(f"\nα = {arguments.alpha:g}, λ = {arguments.ridge:g}\n{solution}")
    return 0


def kernel(arguments: argparse.Namespace) -> int:
    """Print or write a generated kernel, or a stage on the way to it."""
    from .derivations.spiked_random_features.model import SpikedRandomFeatures

    stage = arguments.stage
    if arguments.target is not None and stage != "source":
        raise ParameterError(
            f"--target {arguments.target} has no meaning for --stage {stage}, which is the same "
            "for all targets; leave out one of them"
        )
    # Parameters enter a kernel as arguments; the general one is that of a nonzero spike.
    model = SpikedRandomFeatures.from_parameters(
        arguments.student,
        arguments.teacher,
        spike_strength=1.0,
        bulk_variance=1.0,
        alignment=0.5,
        cache_folder=arguments.cache_folder,
    )
    found = model.kernel()
    text = found.source(arguments.target or "numba") if stage == "source" else found.inspect(stage)
    if arguments.out is None:
        print(text)
        return 0
    write_text(Path(arguments.out).expanduser(), text.rstrip("\n") + "\n")
    print(f"Wrote {arguments.out}")
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
