"""Certify random models and compare each with 60 digits that were obtained without ball arithmetic.

python benchmarks/certified_sets.py --sets 1000 --log sets.jsonl

Every certified interval has to contain the value of the other route, which solves the equations
with mpmath and estimates its errors; that takes most of the time, minutes for some sets, so give
--workers as many processes as there are processors. One line is written for each set; a later run
goes on where the file ends. Exit code 1 if an interval misses a value. With --no-comparison only
intervals, widths and times are reported.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import giantstep as gs
from giantstep.errors import ApproximationWarning, GiantstepError

ODD = ("tanh", "erf", "sin", "z/sqrt(1+z**2)", "He(3, z)/6 + z")
ANY = (*ODD, "relu", "softplus", "sigmoid", "sign", "exp(z/2)", "He(2, z) + z")
TEACHERS = (*ANY, "cos", "He(2, z)", "abs")
STEP_STUDENTS = ("erf", "tanh", "softplus", "relu", "sin")
SEED = 20260


@dataclass(frozen=True)
class Outcome:
    """One set: what was asked and how it went; `error` is empty where there is a certificate."""

    number: int
    model: dict[str, Any]
    point: dict[str, float]
    main: str = ""
    midpoint: float = float("nan")
    width: float = float("nan")
    relative_width: float = float("nan")
    missed: list[str] = field(default_factory=list)
    compared: int = 0
    panels: int = 0
    bits: int = 0
    seconds: float = 0.0
    seconds_digits: float = 0.0
    error: str = ""


def random_case(rng: np.random.Generator) -> tuple[Any, dict[str, float]]:
    """Return a model and a point; parameters over several decades, special values among them."""

    def decades(low: float, high: float) -> float:
        return float(f"{10 ** rng.uniform(low, high):.4g}")

    noise = 0.0 if rng.random() < 0.3 else decades(-3, 0.3)
    beta = decades(-0.6, 0.6)
    alpha = beta if rng.random() < 0.15 else decades(-0.8, 1.2)
    ridge = decades(-6, 1) if rng.random() < 0.3 else decades(-2, 1)
    kind = rng.random()
    if kind < 0.3:
        model: Any = gs.OneGradientStep(
            str(rng.choice(STEP_STUDENTS)),
            str(rng.choice(TEACHERS)),
            alpha=alpha,
            beta=beta,
            step_size=decades(-1, 1),
            noise_variance=noise,
            centre=True,
        )
        return model, {"ridge": ridge}
    if kind < 0.65:
        samples = float("inf") if rng.random() < 0.1 else decades(0, 3)
        model = gs.SpikedRandomFeatures(
            str(rng.choice(ODD)),
            str(rng.choice(TEACHERS)),
            step_size=0.0 if rng.random() < 0.1 else decades(-0.5, 0.7),
            alpha0=samples,
            beta=beta,
            noise_variance=noise,
        )
    else:
        alignment = rng.uniform(-1, 1) if rng.random() < 0.9 else rng.choice([-1, 0, 1])
        model = gs.SpikedRandomFeatures.from_parameters(
            str(rng.choice(ANY)),
            str(rng.choice(TEACHERS)),
            spike_strength=0.0 if rng.random() < 0.1 else decades(-1, 0.4) * rng.choice([-1, 1]),
            bulk_variance=1.0 if rng.random() < 0.3 else decades(-0.3, 0.5),
            alignment=float(f"{alignment:.4g}"),
            beta=beta,
            noise_variance=noise,
        )
    return model, {"alpha": alpha, "ridge": ridge}


def solved(model: Any, point: Any, **options: Any) -> Any:
    """Return the risk or the solution of a model."""
    if isinstance(model, gs.OneGradientStep):
        return model.risk(**point, **options)
    return model.solve(**point, progress=False, **options)


def values_of(model: Any, solution: Any) -> dict[str, Any]:
    """Return numbers under the names of the certificate."""
    if isinstance(model, gs.OneGradientStep):
        names = {f"risk_{x}": x for x in ("trained", "initial")}
        found = {name: getattr(solution, attribute) for name, attribute in names.items()}
        shared = ("improvement", "ridge_derivative", "inverse_s", "effective_ridge")
        return found | {name: getattr(solution, name) for name in shared}
    return {
        "test_error": solution.test_error,
        "training_error": solution.training_error,
        **solution.order_parameters,
        **solution.conjugates,
    }


def outcome(number: int, *, digits: int, compare: bool) -> Outcome:
    """Certify one set and compare it."""
    rng = np.random.default_rng([SEED, number])
    try:
        model, point = random_case(rng)
    except GiantstepError as error:
        return Outcome(number, {}, {}, error=f"not posed: {error}")
    asked = {"kind": type(model).__name__, **model.parameters()}
    begin = time.perf_counter()
    try:
        certificate = solved(model, point, certify=True).certificate
    except GiantstepError as error:
        spent = time.perf_counter() - begin
        text = f"{type(error).__name__}: {error}"
        return Outcome(number, asked, point, error=text, seconds=spent)
    seconds = time.perf_counter() - begin
    missed, compared, begin = [], 0, time.perf_counter()
    if compare:
        reference = values_of(model, solved(model, point, digits=digits))
        names = [name for name in reference if name in certificate.values]
        missed = [n for n in names if not certificate[n].contains(reference[n])]
        compared = len(names)
    main = certificate[certificate.main]
    return Outcome(
        number, asked, point, certificate.main, float(main.midpoint), certificate.width,
        float(2 * main.radius / abs(main.midpoint)), missed, compared, certificate.panels,
        certificate.bits, seconds, time.perf_counter() - begin if compare else 0.0,
    )  # fmt: skip


def logged(path: Path | None) -> dict[int, dict[str, Any]]:
    """Return the sets in a log; a line that was cut off by an interruption is dropped."""
    found: dict[int, dict[str, Any]] = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            found[entry["number"]] = entry
    return found


def report(outcomes: list[dict[str, Any]]) -> int:
    """Print what came out and return the exit code."""
    posed = [o for o in outcomes if not o["error"].startswith("not posed")]
    proven = [o for o in posed if not o["error"]]
    missed = [o for o in proven if o["missed"]]
    compared = sum(o["compared"] for o in proven)
    print(f"{len(outcomes)} sets, {len(posed)} posed, {len(proven)} certified")
    print(f"{compared} numbers compared, {sum(len(o['missed']) for o in missed)} missed")
    for quantity in ("relative_width", "seconds", "seconds_digits", "panels", "bits"):
        numbers = [o[quantity] for o in proven] or [float("nan")]
        print(f"{quantity}: median {statistics.median(numbers):.3g}, most {max(numbers):.3g}")
    for o in missed:
        print(f"MISSED {o['missed']} in {o['model']} {o['point']}")
    for o in posed:
        if o["error"]:
            print(f"not certified ({o['seconds']:.1f} s): {o['model']} {o['point']}: {o['error']}")
    return 1 if missed else 0


def quiet() -> None:
    """Hide what models say about their approximations."""
    warnings.simplefilter("ignore", ApproximationWarning)


def outcomes(numbers: list[int], workers: int, **options: Any) -> Iterator[Outcome]:
    """Certify sets in processes, each as it is done."""
    work = partial(outcome, **options)
    if workers == 1:
        yield from map(work, numbers)
        return
    # Forks of a process whose libraries run threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=quiet) as pool:
        try:
            for future in as_completed([pool.submit(work, n) for n in numbers]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def main() -> int:
    """Certify the sets that the log does not have yet; return 1 if an interval misses a value."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--digits", type=int, default=60)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--no-comparison", action="store_true")
    options = parser.parse_args()
    quiet()
    done = logged(options.log)
    wanted = range(options.first, options.first + options.sets)
    left = [number for number in wanted if number not in done]
    found = outcomes(
        left, options.workers, digits=options.digits, compare=not options.no_comparison
    )
    for one in tqdm(found, total=len(left), unit="set", disable=None, file=sys.stderr):
        entry = asdict(one)
        done[one.number] = entry
        if options.log is not None:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(entry, default=float) + "\n")
                log.flush()
                os.fsync(log.fileno())
    return report([done[number] for number in wanted])


if __name__ == "__main__":
    sys.exit(main())
