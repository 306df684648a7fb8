"""The command ``giantstep dynamics``: overlaps of narrow networks after every giant step."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .cli_files import add_output, checked_out, deliver
from .cli_options import nonnegative, positive, positive_or_infinite, real, whole
from .errors import ParameterError
from .pages import aligned

if TYPE_CHECKING:
    from .derivations.networks import SimulatedNetworks
    from .derivations.overlap_dynamics.model import OverlapDynamics, Trajectory

EPILOG = """\
A network of a few neurons, f(x) = sum_j a_j s(<w_j, x>), learns a function of a few directions of
its inputs. Each step takes n = ALPHA0 d fresh samples; w_j moves by S times the mean of
a_j s'(<w_j, x>) (y - f(x)) x. As d grows, the overlaps Q = W W^T and M = W Theta^T after every step
follow one exact map, without anything fitted. It holds

  population gradient descent   --alpha0 inf
  giant steps                   --alpha0 and --step-size of order one
  online learning               --flow: short steps at a fixed S/ALPHA0 (Saad and Solla, 1995)

TEACHER is a function of x1, x2, ...; STUDENT of z. Closed forms exist for erf, polynomials and
small relu networks; others take quadrature, and the answer says how accurate.

--start gives M row by row, neurons divided by semicolons: "0.3,0.1; 0,0.2". Without it M is zero,
and the staircase of the target says which direction comes in which step; the picture marks it.
--self gives Q in the same way (the identity without).

--growth prints how small overlaps grow at the start, and how long they take to escape at
--dimension. --simulate trains networks of that dimension, too.

examples:
  giantstep dynamics "erf(x1) + erf(x2)" --readout 1,1 --start "0.3,0.1; 0,0.2" --steps 10
  giantstep dynamics "x1 + x1*x2" --student "z + He(2, z)/2" --readout 1,-0.5 --step-size 0.2 \\
      --steps 20 --simulate --dimension 500 --out stairs.png
  giantstep dynamics "erf(x1)" --start 0.1 --step-size 0.1 --flow --steps 100 --json
  giantstep dynamics "He(2, x1)" --student "He(2, z)" --readout 0.3 --growth --dimension 1000
"""

_MODEL = {
    "student": "erf", "alpha0": 3.0, "step_size": 1.0, "noise_variance": 0.0, "weight_decay": 0.0,
    "second_layer_step": 0.0, "averages": "auto",
}  # fmt: skip


_DESTINATIONS = {"noise": "noise_variance"}
_FLAGS = {
    "teacher_overlaps": "--start", "self_overlaps": "--self", "readout": "--readout",
    "second_layer_step": "--second-layer-step", "weight_decay": "--weight-decay",
    "alpha0": "--alpha0", "dimension": "--dimension",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.set_defaults(run=run)
    parser.add_argument("teacher", metavar="TEACHER", help="expression in x1, x2, ...")
    parser.add_argument("--student", default="erf", metavar="F", help="activation [erf]")
    parser.add_argument(
        "--readout", type=_numbers("--readout", "1,-0.5"), default=[1.0], metavar="A",
        help="second layer, one number for each neuron, at most 6 [1]",
    )  # fmt: skip
    parser.add_argument(
        "--start", type=_matrix("--start"), metavar="M", help="overlaps with the teacher [0]"
    )
    parser.add_argument(
        "--self", type=_matrix("--self"), metavar="Q", dest="own",
        help="overlaps of the neurons [identity]",
    )  # fmt: skip
    for name, kind, metavar, text in (
        ("step-size", positive("--step-size", 1), "S", "step size of the first layer [1]"),
        ("alpha0", positive_or_infinite("--alpha0", 3), "R", "samples of a step over d [3]"),
        ("noise", nonnegative("--noise", 0.1), "V", "variance of the label noise [0]"),
        ("weight-decay", nonnegative("--weight-decay", 0.01), "W", "rows shrink by 1 - W [0]"),
        ("second-layer-step", nonnegative("--second-layer-step", 0.1), "S2",
         "step size of the second layer [0: it stays]"),
    ):  # fmt: skip
        dest = _DESTINATIONS.get(name, name.replace("-", "_"))
        parser.add_argument(
            f"--{name}", type=kind, default=_MODEL[dest], dest=dest, metavar=metavar, help=text
        )
    parser.add_argument(
        "--averages", choices=("auto", "quadrature"), default="auto",
        help="closed forms where they exist, or quadrature for all [auto]",
    )  # fmt: skip
    parser.add_argument(
        "--steps", type=whole("--steps", 1, 10), default=10, metavar="T", help="[10]"
    )
    parser.add_argument("--flow", action="store_true", help="the limit of short steps, too")
    parser.add_argument("--growth", action="store_true", help="growth of small overlaps, too")
    parser.add_argument("--simulate", action="store_true", help="train networks, too")
    parser.add_argument(
        "--dimension", type=whole("--dimension", 2, 500), metavar="D",
        help="d of --simulate and --growth [500]",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=whole("--seeds", 2, 10), metavar="N", help="networks of --simulate [10]"
    )
    parser.add_argument(
        "--seed", type=whole("--seed", 0, 1), metavar="N", help="fixes their numbers [0]"
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the trajectory; with flags its limit of short steps, its start, and networks."""
    if not (arguments.simulate or arguments.growth) and arguments.dimension is not None:
        raise ParameterError("--dimension is that of --simulate and --growth; add one of them")
    if not arguments.simulate:
        for name in ("seeds", "seed"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} belongs to --simulate; add it")
    out = checked_out(arguments, "overlaps")
    model = _model(arguments)
    dimension = arguments.dimension or 500
    found = model.trajectory(steps=arguments.steps)
    parts: dict[str, Any] = {"trajectory": found}
    if arguments.flow:
        parts["flow"] = model.flow(steps=arguments.steps)
    if arguments.growth:
        parts["growth"] = model.early_growth(dimension=dimension)
    networks = None
    if arguments.simulate:
        networks = model.simulate(
            steps=arguments.steps, dimension=dimension, seeds=arguments.seeds or 10,
            seed=arguments.seed or 0,
        )  # fmt: skip
    document = {name: part.to_dict() for name, part in parts.items()}
    text = "\n\n".join([str(model), *map(str, parts.values())])
    if networks is not None:
        means = {
            name: {
                "mean": networks.mean(name).tolist(),
                "standard_error": networks.standard_error(name).tolist(),
            }
            for name in networks.quantities
        }
        document["networks"] = means
        text += f"\n\n{_compared(found, networks)}\n{networks.rests_on}"
    deliver(
        arguments, out, *parts.values(), text=text, title=str(model), document=document,
        data=found.to_dataset(),
        draw=lambda: found.plot(networks=networks, flow=parts.get("flow")),
    )  # fmt: skip
    return 0


def _model(arguments: argparse.Namespace) -> OverlapDynamics:
    from .derivations.overlap_dynamics.model import OverlapDynamics

    given = {name: getattr(arguments, name) for name in _MODEL}
    try:
        return OverlapDynamics(
            teacher=arguments.teacher, readout=arguments.readout, self_overlaps=arguments.own,
            teacher_overlaps=arguments.start, **given,
        )  # fmt: skip
    except ParameterError as error:
        text = str(error)
        for name, flag in _FLAGS.items():
            text = re.sub(rf"(?<!-)\b{name}\b", flag, text)
        raise ParameterError(text) from None


def _compared(found: Trajectory, networks: SimulatedNetworks) -> str:
    """Return a table of the last overlaps with the teacher: theory, networks, their error."""
    theory = found.teacher_overlaps[-1]
    mean = networks.mean("teacher_overlap")[-1]
    error = networks.standard_error("teacher_overlap")[-1]
    rows = [
        [f"M_{j + 1}_{k + 1}", f"{theory[j, k]:.6g}", f"{mean[j, k]:.6g}", f"{error[j, k]:.2g}"]
        for j in range(theory.shape[0])
        for k in range(theory.shape[1])
    ]
    return aligned(["at the end", "theory", "networks", "standard error"], rows)


def _numbers(flag: str, example: str) -> Callable[[str], list[float]]:
    def read(text: str) -> list[float]:
        values = [real(flag, part.strip(), example) for part in text.split(",")]
        if not all(map(math.isfinite, values)):
            raise argparse.ArgumentTypeError(f"must be finite numbers; use {flag} {example}")
        return values

    return read


def _matrix(flag: str) -> Callable[[str], list[list[float]]]:
    row = _numbers(flag, '"0.3,0.1; 0,0.2"')

    def read(text: str) -> list[list[float]]:
        rows = [row(part) for part in text.split(";")]
        if len({len(x) for x in rows}) > 1:
            raise argparse.ArgumentTypeError(
                f'rows must have one length; use {flag} "0.3,0.1; 0,0.2"'
            )
        return rows

    return read
