"""Threads that begin with a cold cache, each with another model, and processes of all kinds.

Rounds of fresh processes, each with an empty cache: eight threads derive, compile and solve eight
models at once; then the sweep of one runs in a pool of processes, made by fork (while another
thread derives), by spawn and by a fork server. All numbers have to be those of a process without
threads, bit for bit.

    python benchmarks/cold_threads.py [--rounds N] [--pools N]

Exit code 1 if a thread fails, a process waits for ever, or a bit differs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from measuring import fresh_environment

LONGEST_SECONDS = 300.0


def spiked(student: str, teacher: str, noise_variance: float = 0.0) -> list[float]:
    import giantstep as gs

    model = gs.SpikedRandomFeatures(
        student, teacher, step_size=2, alpha0=4, noise_variance=noise_variance
    )
    return [model.solve(alpha=alpha, ridge=0.1).test_error for alpha in (0.5, 2.0)]


def batch() -> list[float]:
    import numpy as np

    import giantstep as gs

    model = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4)
    found = model.solve_many(alpha=np.linspace(0.5, 2, 500), ridge=[0.1]).values["test_error"]
    return [float(value) for value in found]


def sweep(executor: ProcessPoolExecutor | None = None) -> list[float]:
    import numpy as np

    import giantstep as gs

    model = gs.SpikedRandomFeatures("erf", "sin", step_size=2, alpha0=4)
    found = model.kernel().curve(
        alpha=np.geomspace(0.2, 5, 70), ridge=np.geomspace(1e-3, 1, 40),
        executor=executor, progress=False,
    ).to_dataset()  # fmt: skip
    return [float(value) for value in found["test_error"].values.ravel()]


def equations() -> list[float]:
    import numpy as np
    import sympy as sp

    import giantstep as gs

    x, a = sp.symbols("x a", positive=True)
    z = sp.Symbol("z", real=True)
    mean = gs.GaussianExpectation(sp.tanh(z * sp.sqrt(x) + a) ** 2, z)
    system = gs.SaddlePointSystem.from_fixed_point({x: mean}, name="system", parameters=(a,))
    found = gs.lower(system).curve(a=np.linspace(0.1, 3, 600), progress=False).to_dataset()
    return [float(value) for value in found["x"].values]


def letters() -> list[float]:
    import giantstep as gs

    model = gs.VocabularyFeatures("tanh", "sin", [1, -0.5], [0.5, 0.5], step_size=3, alpha0=8)
    return [model.solve(alpha=2, ridge=0.1).test_error]


def one_step() -> list[float]:
    import giantstep as gs

    step = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
    return [step.risk(ridge=0.1).trained]


def averages() -> list[float]:
    import giantstep as gs

    found = gs.hermite_coefficients("erf", 5)
    return [float(found[k]) for k in range(6)]


# The sweep comes first: pools of processes run it, too.
MODELS: tuple[Callable[[], list[float]], ...] = (
    sweep,
    equations,
    lambda: spiked("erf", "erf"),
    averages,
    lambda: spiked("sin", "tanh", noise_variance=0.1),
    letters,
    one_step,
    batch,
)


def alone(count: int) -> list[list[float]]:
    """Return the numbers of the first models, one after the other."""
    return [model() for model in MODELS[:count]]


def together(count: int) -> list[list[float]]:
    """Return the same from threads that begin at once."""
    found: list[list[float]] = [[] for _ in range(count)]
    gate = threading.Barrier(count)

    def work(k: int) -> None:
        gate.wait()
        found[k] = MODELS[k]()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def pools(_: int) -> list[list[float]]:
    """Return the numbers of a sweep from pools of processes, after threads and beside one."""
    found = []
    for method in ("fork", "forkserver", "spawn"):
        if method not in multiprocessing.get_all_start_methods():
            continue
        # It holds locks while processes are forked.
        other = threading.Thread(target=lambda: (letters(), one_step(), equations()))
        other.start()
        with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as executor:
            found.append(sweep(executor))
        other.join()
    return found


def fresh(part: str, count: int, cache: Path) -> list[list[float]]:
    """Return what a part of this file computes in a process of its own."""
    environment = fresh_environment(GIANTSTEP_CACHE_DIR=str(cache))
    command = [sys.executable, __file__, "--part", part, "--models", str(count)]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    if run.returncode or run.stderr:
        raise RuntimeError(f"{part}: exit code {run.returncode}\n{run.stderr}")
    found: list[list[float]] = json.loads(run.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what fails or differs; return 0 if nothing does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="of eight threads")
    parser.add_argument("--pools", type=int, default=3, metavar="N", help="rounds of processes")
    most = len(MODELS)
    parser.add_argument(
        "--models", type=int, default=most, choices=range(1, most + 1), help="threads of a round"
    )
    parser.add_argument("--part", choices=("alone", "together", "pools"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        parts = {"alone": alone, "together": together, "pools": pools}
        print(json.dumps(parts[options.part](options.models)))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        wanted = fresh("alone", options.models, Path(name) / "alone")
        for k, part in enumerate(["together"] * options.rounds + ["pools"] * options.pools):
            try:
                found = fresh(part, options.models, Path(name) / f"cold{k}")
                expected = wanted if part == "together" else wanted[:1] * len(found)
                good = found == expected
                reason = "" if good else "numbers differ from those of one thread"
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                reason = str(error)
            failed += bool(reason)
            if reason:
                print(f"round {k}, {part}: {reason}")
    print(
        f"{options.rounds} rounds of {options.models} threads, {options.pools} rounds of pools of "
        f"processes, all from cold: {failed} failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
