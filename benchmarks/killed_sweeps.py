"""Sweeps that are killed at random times and resumed, against one that was left alone.

Each round begins with an empty cache: the sweep is killed a few times, while it derives, compiles,
solves or writes, and resumed until it ends. All values have to be those of a cold run without
interruption, bit for bit, and no file of a killed process may be left beside the output, among the
finished blocks or in the cache.

    python benchmarks/killed_sweeps.py [--kills N] [--points N] [--formats nc zarr] [--seed N]

Exit code 1 if a bit differs or a file is left. Needs POSIX signals.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import fresh_environment

KILLS_PER_ROUND = 3
SWEEP = """
import sys
import numpy as np
import giantstep as gs
rows = int(int(sys.argv[3]) ** 0.5)
model = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
model.kernel().curve(
    alpha=np.geomspace(0.1, 10, rows), ridge=np.geomspace(1e-4, 10, rows),
    outputs=["test_error", "q1"], out=sys.argv[1], store=sys.argv[2] or None, progress=False,
).to_dataset().close()
"""


def begin(out: Path, store: Path | None, cache: Path, points: int) -> subprocess.Popen[bytes]:
    """Start the sweep in a process of its own."""
    arguments = [str(out), str(store or ""), str(points)]
    environment = fresh_environment(GIANTSTEP_CACHE_DIR=str(cache))
    return subprocess.Popen([sys.executable, "-c", SWEEP, *arguments], env=environment)


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of all variables of a file."""
    import xarray as xr

    engine = "zarr" if path.suffix == ".zarr" else "netcdf4"
    with xr.open_dataset(path, engine=engine, chunks=None) as found:
        return {str(name): found[name].values.tobytes() for name in found.variables}


def killed(folder: Path, suffix: str, points: int, longest: float, most: int) -> tuple[int, Path]:
    """Kill and resume a sweep, then let it end; return how often it was killed, and its file."""
    out, count = folder / "out" / f"sweep{suffix}", 0
    out.parent.mkdir(parents=True)
    while True:
        process = begin(out, folder / "store", folder / "cache", points)
        # What an earlier attempt has compiled makes the next one shorter.
        patience = random.uniform(0, longest / (1 if count == 0 else 2)) if count < most else None
        try:
            if process.wait(patience):
                raise RuntimeError("the sweep failed")
            return count, out
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            count += 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs and what is left; return 0 if nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=30, metavar="N", help="of each format")
    parser.add_argument("--points", type=int, default=250_000, metavar="N")
    parser.add_argument("--formats", nargs="+", choices=("nc", "zarr"), default=["nc", "zarr"])
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args(arguments)
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as name:
        start = time.monotonic()
        alone = Path(name) / "alone.nc"
        if begin(alone, None, Path(name) / "cache", options.points).wait():
            return 1
        longest, wanted = time.monotonic() - start, contents(alone)
        # What was compiled by this process the first time is read the second time.
        if begin(alone, None, Path(name) / "cache", options.points).wait():
            return 1
        good = contents(alone) == wanted
        print(f"sweep of {options.points} points from a warm cache: {'same' if good else 'OTHER'}")
        for suffix in options.formats:
            kills = rounds = differing = left = 0
            while kills < options.kills:
                folder, rounds = Path(name) / f"{suffix}{rounds}", rounds + 1
                most = min(KILLS_PER_ROUND, options.kills - kills)
                count, out = killed(folder, f".{suffix}", options.points, longest, most)
                kills += count
                differing += contents(out) != wanted
                left += len([p for p in folder.rglob("*") if p.suffix in (".part", ".lock")])
            print(
                f".{suffix}: {kills} kills, {rounds} sweeps of {options.points} points resumed; "
                f"{differing} differ from one left alone, {left} files left behind"
            )
            good &= not differing and not left
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
