"""The command ``giantstep giant-steps``: what giant steps learn, predicted and simulated."""

from __future__ import annotations

import argparse
import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_files import deliver, is_picture, output, show
from .cli_options import Command, Group, flag_of, option, positive, real, whole
from .errors import (
    ParameterError,
    UndecidedError,
    UnsupportedExpressionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from .derivations.giant_steps.simulated import GiantStepsPlan, SimulatedGiantSteps

EPILOG = """\
The network is (1/p) sum_i a_i s(<w_i, x> [+ b_i]); its rows start on the unit sphere, and each
step of the first layer uses n = C d^K fresh samples and the learning rate S p d^((K-1)/2).
TARGET is a function of Gaussian coordinates x1, x2, ...; He(k, x) are the probabilists' Hermite
polynomials.

Without --simulate three exact answers are printed: what one step learns, with its constants; the
staircase of the subspaces that successive steps learn; and what the second layer then fits, for
several sizes of n and p. Each says what it rests on: theorem, conjecture, extrapolation.

With --simulate networks are trained, too. For each step and direction of the staircase a table
shows how large the weights are along it, and what neurons with the same readout have in common,
beside the noise of directions that the target does not depend on. --out draws the neurons in the
plane of the first two directions, step by step. Few samples (C) mean noise; a direction that is
predicted but not seen may need more of them, or another step size.

What a network cannot do is part of the prediction: relu without biases uses the first and the even
Hermite degrees only (--biases helps), and readouts of +-1 make two clusters of neurons, which see
fewer directions (--readout gaussian helps).

examples:
  giantstep giant-steps "x1 + x1*x2 + x1*x2*x3" --steps 3
  giantstep giant-steps "x1 + x1*x2" --simulate --out stairs.png
  giantstep giant-steps "x1 + He(2, x1)*x2" --simulate --biases --steps 3 --samples-factor 100
  giantstep giant-steps "x1 + x1*x2 + He(3, x1)*x3" --simulate --readout signs \\
      --samples-factor 1000 --out clusters.html
  giantstep giant-steps "x1 + He(2, x2)" --simulate --exponent 2 --samples-factor 3 \\
      --dimension 100 --preprocess
"""

_SIMULATION = {
    "dimension": 200, "samples_factor": 20.0, "width": 100, "step_size": 1.0,
    "readout": "gaussian", "preprocess": False, "ridge_samples": 0, "ridge": None, "seeds": 5,
    "seed": 0, "workers": None, "store": None,
}  # fmt: skip
"""Options that belong to --simulate, with their defaults."""

_RUN = ("seeds", "seed", "workers", "store")
"""Those of them that say how, not what."""


def run(arguments: argparse.Namespace) -> int:
    """Print the exact answers; with --simulate train networks, and draw them."""
    given = {name: getattr(arguments, name) for name in _SIMULATION}
    if not arguments.simulate:
        for name, value in given.items():
            if value is not None:
                raise ParameterError(
                    f"{flag_of(name)} belongs to --simulate; add --simulate, or leave it out"
                )
    if arguments.ridge is not None and not arguments.ridge_samples:
        raise ParameterError("--ridge is the penalty of a regression; give --ridge-samples, too")
    # All is derived and checked before anything is printed: an error leaves the output empty.
    parts = _exact(arguments)
    chosen = {name: _SIMULATION[name] if v is None else v for name, v in given.items()}
    plan = _planned(arguments, chosen) if arguments.simulate else None
    if arguments.store is not None:
        _check_store(Path(arguments.store))
    show("\n\n".join(map(str, parts)))
    result = None
    if plan is not None:
        result = _simulated(plan, chosen)
        show(f"\nSimulation\n\n{result}")
    known = [part for part in parts if not isinstance(part, str)]
    shown = [*known, *([] if result is None else [result])]
    drawn = result or next((part for part in known if hasattr(part, "plot")), known[0])
    deliver(
        arguments, *shown, text="", title=f"Giant steps on {arguments.target}",
        draw=drawn.plot if is_picture(arguments.out) else None,
    )  # fmt: skip
    if result is not None and result.result.interrupted:
        networks = len(result.result.completed)
        raise KeyboardInterrupt(f"after {networks} networks; these are reported")
    return 0


def _exact(arguments: argparse.Namespace) -> list[Any]:
    from .derivations.giant_steps.one_step import giant_step
    from .derivations.giant_steps.regimes import regimes
    from .symbolic.leaps.staircase import staircase

    target, student, biases = arguments.target, arguments.student, arguments.biases
    # The decimal that was typed, exactly.
    noise = Fraction(repr(arguments.noise_variance))
    result: list[Any] = [giant_step(target, student, noise_variance=noise, biases=biases)]
    # A table for students without biases says too little of those with them.
    mask = None if biases else student
    others: tuple[tuple[str, Callable[[], Any]], ...] = (
        (
            "The staircase",
            lambda: staircase(
                target, arguments.exponent, student=student, biases=biases,
                max_steps=arguments.steps,
            ),
        ),
        ("What is fitted", lambda: regimes(target, steps=arguments.steps, student=mask)),
    )  # fmt: skip
    for what, derive in others:
        try:
            result.append(derive())
        except (UnsupportedExpressionError, UndecidedError) as error:
            result.append(f"{what} is not known: {str(error).splitlines()[0]}")
    return result


def _planned(arguments: argparse.Namespace, chosen: dict[str, Any]) -> GiantStepsPlan:
    from .derivations.giant_steps.simulated import plan_giant_steps

    return plan_giant_steps(
        arguments.target, arguments.student, sample_exponent=arguments.exponent,
        steps=arguments.steps, biases=arguments.biases, noise_variance=arguments.noise_variance,
        **{name: value for name, value in chosen.items() if name not in _RUN},
    )  # fmt: skip


def _simulated(plan: GiantStepsPlan, chosen: dict[str, Any]) -> SimulatedGiantSteps:
    from .derivations.giant_steps.simulated import run_plan

    try:
        return run_plan(plan, **{name: chosen[name] for name in _RUN})
    except KeyboardInterrupt:
        selected = f"; what is done is kept in {chosen['store']!r}" if chosen["store"] else ""
        raise KeyboardInterrupt(
            f"before two networks had finished, so there is nothing to average{selected}"
        ) from None


def _readout(flag: str) -> Callable[[str], str | tuple[float, ...]]:
    def read(text: str) -> str | tuple[float, ...]:
        if text.strip() in ("gaussian", "signs"):
            return text.strip()
        return tuple(real(flag, part.strip(), "0.5,1,2") for part in text.split(","))

    return read


def _check_store(folder: Path) -> None:
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ParameterError(f"--store: folder {str(folder)!r} cannot be written to")


_NAMES = (*_SIMULATION, "steps", "biases")
GIANT_STEPS = Command(
    "giant-steps", "what giant steps learn, predicted and simulated", run, (
        opts.TARGET, opts.STUDENT.but(default="relu"), opts.STEPS.but(default=2),
        option("--exponent K", "n = Theta(d^K) samples for each step", whole(1, 2), 1),
        option("--biases", "neurons have random biases, standard normal"), opts.NOISE,
        *output(data=False), opts.SIMULATE,
        Group("with --simulate", (
            opts.DIMENSION.but(help=f"{opts.DIMENSION.help} [200]", default=None),
            option("--samples-factor C", "C of n = C d^K [20]", positive(20)),
            option("--width P", "number p of neurons, even [100]", whole(2, 100)),
            opts.STEP_SIZE.but(help="S of the learning rate [1]", read=positive(1)),
            option(
                "--readout LAW", "gaussian, signs (+-1), or values such as 0.5,1,2 [gaussian]",
                _readout,
            ),
            option(
                "--ridge-samples N",
                "train the second layer at last by ridge regression on N fresh samples [0: no]",
                whole(0, 5000),
            ),
            opts.RIDGE.but(help="its penalty [chosen on a fifth of its samples]", default=None),
            opts.SEEDS.but(help=f"{opts.SEEDS.help} [5]", read=whole(1, 5), default=None),
            opts.SEED.but(help=f"{opts.SEED.help} [0]", default=None), opts.WORKERS,
            option(
                "--preprocess",
                "take mean and linear part, estimated on each batch, off its labels",
                action="store_true",
            ),
            opts.STORE.but(help="keep finished networks and steps there; resume from it"),
        )),
    ), EPILOG,
    # Of one word, a name is a name at the start alone.
    flags={
        "^order": "--exponent", **{rf"\b{n}=": f"{flag_of(n)} " for n in _NAMES},
        **{rf"(?<!-)\b{n}\b" if "_" in n else rf"^{n}\b": flag_of(n) for n in _NAMES},
    },
)  # fmt: skip
