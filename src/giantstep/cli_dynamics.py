"""The command ``giantstep dynamics``: overlaps of narrow networks after every giant step."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_files import deliver, output
from .cli_options import Command, flag_of, nonnegative, numbers, option, positive, whole
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


def run(arguments: argparse.Namespace) -> int:
    """Print the trajectory; with flags its limit of short steps, its start, and networks."""
    if not (arguments.simulate or arguments.growth) and arguments.dimension is not None:
        raise ParameterError("--dimension is that of --simulate and --growth; add one of them")
    if not arguments.simulate:
        for name in ("seeds", "seed"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"{flag_of(name)} belongs to --simulate; add it")
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
            for name in networks.networks.quantities
        }
        document["networks"] = means
        text += f"\n\n{_compared(found, networks)}\n{networks.rests_on}"
    return deliver(
        arguments, *parts.values(), text=text, title=str(model), document=document,
        data=found.to_dataset(),
        draw=lambda: found.plot(networks=networks, flow=parts.get("flow")),
    )  # fmt: skip


def _model(arguments: argparse.Namespace) -> OverlapDynamics:
    from .derivations.overlap_dynamics.model import OverlapDynamics

    return OverlapDynamics(**{one.dest: getattr(arguments, one.dest) for one in _MODEL})


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


def _matrix(flag: str) -> Callable[[str], list[list[float]]]:
    row = numbers('"0.3,0.1; 0,0.2"')(flag)

    def read(text: str) -> list[list[float]]:
        rows = [row(part) for part in text.split(";")]
        if len({len(x) for x in rows}) > 1:
            raise argparse.ArgumentTypeError(
                f'rows must have one length; use {flag} "0.3,0.1; 0,0.2"'
            )
        return rows

    return read


_MODEL = (
    opts.TARGET.but("TEACHER"), opts.STUDENT.but(default="erf"),
    option(
        "--readout A", "second layer, one number for each neuron, at most 6 [1]",
        numbers("1,-0.5"), [1.0],
    ),
    option("--start M", "overlaps with the teacher [0]", _matrix, dest="teacher_overlaps"),
    option("--self Q", "overlaps of the neurons [identity]", _matrix, dest="self_overlaps"),
    opts.STEP_SIZE.but(help="step size of the first layer", read=positive(1), default=1.0),
    opts.ALPHA0.but(help="samples of a step over d", default=3.0), opts.NOISE,
    option("--weight-decay W", "rows shrink by 1 - W", nonnegative(0.01), 0.0),
    option(
        "--second-layer-step S2", "step size of the second layer [0: it stays]", nonnegative(0.1),
        0.0,
    ),
    option(
        "--averages", "closed forms where they exist, or quadrature for all", default="auto",
        choices=("auto", "quadrature"),
    ),
)  # fmt: skip
_NAMES = {
    "teacher_overlaps": "--start", "self_overlaps": "--self", "readout": "--readout",
    "second_layer_step": "--second-layer-step", "weight_decay": "--weight-decay",
    "alpha0": "--alpha0", "dimension": "--dimension",
}  # fmt: skip
DYNAMICS = Command(
    "dynamics", "overlaps of narrow networks after every giant step, exactly", run, (
        *_MODEL, opts.STEPS.but(read=whole(1, 10), default=10),
        option("--flow", "the limit of short steps, too"),
        option("--growth", "growth of small overlaps, too"), opts.SIMULATE,
        opts.DIMENSION.but(
            help="d of --simulate and --growth [500]", read=whole(2, 500), default=None
        ),
        opts.SEEDS.but(help="networks of --simulate [10]", read=whole(2, 10), default=None),
        opts.SEED.but(help="fixes their numbers [0]", default=None), *output(),
    ), EPILOG, flags={rf"(?<!-)\b{name}\b": flag for name, flag in _NAMES.items()},
)  # fmt: skip
