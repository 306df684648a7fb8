"""The command ``giantstep giant-steps``: what giant steps learn, predicted and simulated."""

from __future__ import annotations

import argparse
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .cli_files import PICTURES, add_output, checked_out, deliver
from .cli_options import nonnegative, positive, real, whole
from .errors import (
    AssumptionError,
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    parser.add_argument("--student", default="relu", metavar="F", help="activation [relu]")
    parser.add_argument(
        "--steps", type=whole("--steps", 1, 3), default=2, metavar="T", help="number of steps [2]"
    )
    parser.add_argument(
        "--exponent",
        type=whole("--exponent", 1, 2),
        default=1,
        metavar="K",
        help="n = Theta(d^K) samples for each step [1]",
    )
    parser.add_argument(
        "--biases", action="store_true", help="neurons have random biases, standard normal"
    )
    parser.add_argument(
        "--noise",
        type=nonnegative("--noise", 0.1),
        default=0.0,
        metavar="V",
        help="variance of the label noise [0]",
    )
    add_output(parser, data=False)
    parser.add_argument("--simulate", action="store_true", help="train networks, too")
    group = parser.add_argument_group("with --simulate")
    for name, kind, metavar, text in (
        ("dimension", whole("--dimension", 2, 200), "D", "input dimension d [200]"),
        ("samples-factor", positive("--samples-factor", 20), "C", "C of n = C d^K [20]"),
        ("width", whole("--width", 2, 100), "P", "number p of neurons, even [100]"),
        ("step-size", positive("--step-size", 1), "S", "S of the learning rate [1]"),
        ("readout", _readout, "LAW", "gaussian, signs (+-1), or values such as 0.5,1,2 [gaussian]"),
        ("ridge-samples", whole("--ridge-samples", 0, 5000), "N",
         "train the second layer at last by ridge regression on N fresh samples [0: no]"),
        ("ridge", positive("--ridge", 0.1), "L", "its penalty [chosen on a fifth of its samples]"),
        ("seeds", whole("--seeds", 1, 5), "N", "number of networks [5]"),
        ("seed", whole("--seed", 0, 1), "N", "fixes all random numbers [0]"),
        ("workers", whole("--workers", 1, 2), "N", "threads; no effect on the numbers"),
    ):  # fmt: skip
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--preprocess",
        action="store_true",
        default=None,
        help="take mean and linear part, estimated on each batch, off its labels",
    )
    group.add_argument(
        "--store", metavar="FOLDER", help="keep finished networks and steps there; resume from it"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the exact answers; with --simulate train networks, and draw them."""
    given = {name: getattr(arguments, name) for name in _SIMULATION}
    if not arguments.simulate:
        for name, value in given.items():
            if value is not None:
                flag = f"--{name.replace('_', '-')}"
                raise ParameterError(
                    f"{flag} belongs to --simulate; add --simulate, or leave it out"
                )
    if arguments.ridge is not None and not arguments.ridge_samples:
        raise ParameterError("--ridge is the penalty of a regression; give --ridge-samples, too")
    out = checked_out(arguments, "giant-steps", data=False)
    # All is derived and checked before anything is printed: an error leaves the output empty.
    parts = _exact(arguments)
    chosen = {name: _SIMULATION[name] if v is None else v for name, v in given.items()}
    plan = _planned(arguments, chosen) if arguments.simulate else None
    if arguments.store is not None:
        _check_store(Path(arguments.store))
    print("\n\n".join(str(part) for part in parts), flush=True)
    result = None
    if plan is not None:
        result = _simulated(plan, chosen)
        print(f"\nSimulation\n\n{result}", flush=True)
    known = [part for part in parts if not isinstance(part, str)]
    shown = [*known, *([] if result is None else [result])]
    drawn = result or next((part for part in known if hasattr(part, "plot")), known[0])
    deliver(
        arguments, out, *shown, text="", title=f"Giant steps on {arguments.target}",
        draw=drawn.plot if out is not None and out.suffix.lower() in PICTURES else None,
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
    noise = Fraction(repr(arguments.noise))
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
        except ParameterError as error:
            message = re.sub("^order", "--exponent", str(error))
            raise ParameterError(_with_flags(message)) from None
    return result


def _planned(arguments: argparse.Namespace, chosen: dict[str, Any]) -> GiantStepsPlan:
    from .derivations.giant_steps.simulated import plan_giant_steps

    try:
        return plan_giant_steps(
            arguments.target,
            arguments.student,
            sample_exponent=arguments.exponent,
            steps=arguments.steps,
            biases=arguments.biases,
            noise_variance=arguments.noise,
            **{name: value for name, value in chosen.items() if name not in _RUN},
        )
    except (ParameterError, AssumptionError) as error:
        raise type(error)(_with_flags(str(error))) from None


def _simulated(plan: GiantStepsPlan, chosen: dict[str, Any]) -> SimulatedGiantSteps:
    from .derivations.giant_steps.simulated import run_plan

    try:
        return run_plan(plan, **{name: chosen[name] for name in _RUN})
    except ParameterError as error:
        raise ParameterError(_with_flags(str(error))) from None
    except KeyboardInterrupt:
        selected = f"; what is done is kept in {chosen['store']!r}" if chosen["store"] else ""
        raise KeyboardInterrupt(
            f"before two networks had finished, so there is nothing to average{selected}"
        ) from None


def _with_flags(message: str) -> str:
    """Name arguments as the command line does."""
    for name in (*_SIMULATION, "steps", "biases"):
        flag = f"--{name.replace('_', '-')}"
        message = re.sub(rf"\b{name}=", f"{flag} ", message)
        # Of one word, a name is a name at the start alone.
        message = re.sub(rf"(?<!-)\b{name}\b" if "_" in name else rf"^{name}\b", flag, message)
    return message


def _readout(text: str) -> str | tuple[float, ...]:
    law = text.strip()
    if law in ("gaussian", "signs"):
        return law
    return tuple(real("--readout", part.strip(), "0.5,1,2") for part in text.split(","))


def _check_store(folder: Path) -> None:
    nearest = folder
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ParameterError(f"--store: folder {str(folder)!r} cannot be written to")
