"""Sweeps of the spiked model over sample complexity and ridge, results written as they come.

Claims, each judged in this process:

(a) 10^6 points with all order parameters and errors, into a netCDF file and into a Zarr folder,
    take at most 2 s each on two cores, the kernel being compiled;
(b) the cost of a point is flat from 10^3 to 10^7 points: at most twice the lowest from 10^4 on,
    into a file, two outputs and their errors;
(c) so is memory: 10^7 points take no more than 600 MB beyond what 10^5 points take.

Other work on the machine spoils wall-clock times, so CPU time is printed besides; on two idle cores
it is at least half of it. ``--quick`` stops at 10^6 points.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import giantstep as gs

LARGE_SECONDS = 2.0
FLAT = 2.0
MEMORY_MB = 600.0
TWO = ("test_error", "training_error")


def verdict(good: bool) -> str:
    return "ok" if good else "NOT MET"


def memory_mb() -> float:
    """Return the largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def run(kernel: gs.Kernel, n: int, out: Path, outputs: tuple[str, ...] | None) -> tuple[float, ...]:
    """Return wall-clock and CPU seconds of a sweep over n points, close to a square grid."""
    rows = int(np.sqrt(n))
    alpha, ridge = np.geomspace(0.1, 10, rows), np.geomspace(1e-4, 10, n // rows)
    wall, cpu = time.perf_counter(), time.process_time()
    found = kernel.curve(
        alpha=alpha, ridge=ridge, outputs=outputs, out=out, progress=False
    ).to_dataset()
    found.close()
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    shutil.rmtree(out) if out.is_dir() else out.unlink()
    return seconds


def large(kernel: gs.Kernel, folder: Path, rounds: int) -> bool:
    """Print and judge claim (a)."""
    good = True
    for suffix in (".nc", ".zarr"):
        times = [run(kernel, 10**6, folder / f"sweep{suffix}", None) for _ in range(rounds)]
        wall, cpu = min(t[0] for t in times), min(t[1] for t in times)
        met = wall <= LARGE_SECONDS
        good &= met
        print(
            f"(a) 10^6 points, {len(kernel.outputs)} outputs with errors, {suffix}: {wall:.2f} s "
            f"<= {LARGE_SECONDS} s  {verdict(met)}; CPU {cpu:.2f} s"
        )
    return good


def flat(kernel: gs.Kernel, folder: Path, sizes: list[int], rounds: int) -> bool:
    """Print and judge claims (b) and (c)."""
    costs, peaks = {}, {}
    for n in sizes:
        times = [
            run(kernel, n, folder / "sweep.nc", TWO) for _ in range(rounds if n < 10**7 else 1)
        ]
        wall, cpu = min(t[0] for t in times), min(t[1] for t in times)
        costs[n], peaks[n] = cpu / n * 1e6, memory_mb()
        print(
            f"(b) {n:.0e} points: {wall / n * 1e6:.2f} us a point, CPU {costs[n]:.2f} us; "
            f"peak memory {peaks[n]:.0f} MB"
        )
    lowest = min(costs.values())
    even = all(cost <= FLAT * lowest for n, cost in costs.items() if n >= 10**4)
    grown = peaks[sizes[-1]] - peaks[10**5]
    small = grown <= MEMORY_MB
    print(f"(b) CPU time a point within a factor {FLAT} from 10^4 on  {verdict(even)}")
    print(f"(c) {grown:.0f} MB more for {sizes[-1]:.0e} points <= {MEMORY_MB} MB  {verdict(small)}")
    return even and small


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="at most 10^6 points, one round")
    quick = parser.parse_args().quick
    model = gs.SpikedRandomFeatures(student="tanh", teacher="sin", step_size=3, alpha0=20)
    kernel = model.kernel()
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Compiles, or loads what was compiled before.
        run(kernel, 50_000, folder / "sweep.nc", None)
        load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
        print(f"{os.cpu_count()} cores{load}")
        sizes = [10**3, 10**4, 10**5, 10**6, *([] if quick else [10**7])]
        # Memory first: the peak never falls.
        good = [flat(kernel, folder, sizes, rounds), large(kernel, folder, rounds)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
