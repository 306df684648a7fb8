"""Solve convex readouts at random parameters and count those that fail.

python benchmarks/convex_readout_sets.py --count 2000 --loss "huber(0.5)" --loss logistic

With --log a line is written for every set, and a later run goes on where that file ends.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import giantstep as gs
from giantstep.derivations.spiked_random_features.spike import SpikeParameters
from giantstep.errors import GiantstepError

CASES = {
    "huber(0.5)": "teacher",
    "logistic": "sign",
    "hinge": "sign",
    "absolute": "teacher",
    "quantile(0.3)": "teacher",
    "insensitive(0.1)": "teacher",
    "square": "teacher",
}


@dataclass(frozen=True)
class Outcome:
    """One set: what was asked, how it went; `error` is empty where there is a solution."""

    number: int
    alpha: float
    beta: float
    ridge: float
    spike: float
    variance: float
    alignment: float
    noise: float
    test_error: float
    estimate: float
    residual: float
    nodes: int
    seconds: float
    error: str


def random_readout(loss: str, rng: np.random.Generator) -> tuple[gs.ConvexReadout, float, float]:
    """Return a readout, a sample complexity and a ridge penalty over several decades."""
    labels = CASES[loss]
    gamma = float(rng.choice([rng.uniform(-0.999, 0.999), 1 - 10 ** rng.uniform(-4, -1)]))
    features = gs.SpikedRandomFeatures.from_parameters(
        "erf",
        "sin" if labels == "teacher" else "sign",
        spike_strength=float(rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 0.6)),
        bulk_variance=float(1 + 10 ** rng.uniform(-4, 0.5)),
        alignment=gamma,
        beta=float(10 ** rng.uniform(-0.7, 0.7)),
        noise_variance=float(10 ** rng.uniform(-3, 0.3)) if labels == "teacher" else 0.0,
    )
    at_peak = rng.random() < 0.2
    alpha = features.beta if at_peak else float(10 ** rng.uniform(-1, 1.5))
    return gs.ConvexReadout(features, loss, labels), alpha, float(10 ** rng.uniform(-8, 2))


def outcome(
    number: int, readout: gs.ConvexReadout, alpha: float, ridge: float, rtol: float
) -> Outcome:
    """Solve one set."""
    value = estimate = residual = float("nan")
    nodes, error = 0, ""
    begin = time.process_time()
    try:
        batch = readout.solve_many(alpha=[alpha], ridge=ridge, rtol=rtol)
        value, estimate = (float(x["test_error"][0]) for x in (batch.values, batch.errors))
        residual, nodes = float(batch.residual[0]), int(batch.nodes[0])
    except GiantstepError as found:
        error = str(found)
    spike = readout.spike
    assert isinstance(spike, SpikeParameters)
    return Outcome(
        number, alpha, readout.features.beta, ridge, spike.spike_strength, spike.bulk_variance,
        spike.alignment, readout.features.noise_variance, value, estimate, residual, nodes,
        time.process_time() - begin, error,
    )  # fmt: skip


def summary(loss: str, found: list[Outcome]) -> str:
    """Return counts, times and estimates of the sets of one loss."""
    failed = [o for o in found if o.error]
    solved = [o for o in found if not o.error]
    seconds = np.array([o.seconds for o in found])
    # Seconds of the processor, so that other programs do not count.
    lines = [
        f"{loss}: {len(failed)} of {len(found)} failed; median {1e3 * np.median(seconds):.1f} ms, "
        f"99 % within {np.quantile(seconds, 0.99):.2f} s, slowest {seconds.max():.2f} s"
    ]
    if solved:
        relative = np.array([o.estimate / abs(o.test_error) for o in solved])
        known = relative[np.isfinite(relative)]
        lines.append(
            f"    worst residual {max(o.residual for o in solved):.1e}, nodes up to "
            f"{max(o.nodes for o in solved)}; relative estimate: median {np.median(known):.1e}, "
            f"within 1e-8 in {np.mean(relative <= 1e-8):.1%}, "
            f"{int((relative > 1e-6).sum())} above 1e-6, {len(relative) - len(known)} unknown"
        )
    lines += [f"    set {o.number}: {o.error}" for o in failed[:20]]
    return "\n".join(lines)


def run(loss: str, arguments: argparse.Namespace) -> list[Outcome]:
    """Solve the sets of one loss, those in the log left out."""
    log = None
    found: list[Outcome] = []
    if arguments.log is not None:
        log = Path(f"{arguments.log}_{loss.partition('(')[0]}_{arguments.seed}.jsonl")
        if log.exists():
            found = [Outcome(**json.loads(line)) for line in log.read_text().splitlines()]
    rng = np.random.default_rng(arguments.seed)
    shown = time.monotonic()
    for number in range(arguments.count):
        readout, alpha, ridge = random_readout(loss, rng)
        if number < len(found):
            continue
        if number == 0:
            # Deriving and compiling are no part of what is measured.
            outcome(number, readout, alpha, ridge, arguments.rtol)
        found.append(outcome(number, readout, alpha, ridge, arguments.rtol))
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(found[-1])) + "\n")
        if time.monotonic() > shown + 10.0:
            shown = time.monotonic()
            print(f"... {loss}: {number + 1} sets", flush=True)
    return found


def main() -> None:
    """Run the sets and print counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="sets of each loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rtol", type=float, default=1e-8, help="wanted relative error")
    parser.add_argument("--log", help="first part of the names of files that keep every set")
    parser.add_argument("--loss", action="append", choices=list(CASES))
    arguments = parser.parse_args()
    for loss in arguments.loss or ["hinge", "logistic", "absolute", "huber(0.5)", "quantile(0.3)"]:
        print(summary(loss, run(loss, arguments)), flush=True)


if __name__ == "__main__":
    main()
