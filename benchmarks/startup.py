"""Start-up time of the theory part of the command line against that of its dependencies.

Compares, in fresh interpreters that take turns, the fastest of each, as what else runs on a machine
only adds (medians of three differ by a fifth between runs):

- ``python -c "import numba, scipy.special, sympy"``;
- ``python -m giantstep curve --student tanh --teacher sin --table-only`` with a warm cache;
- the same with an empty cache, which derives, generates and compiles anew.

Targets: warm at most 1.3 times, cold at most 3 times the first; exit code 1 if one is missed.

    python benchmarks/startup.py [--repetitions N] [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import fresh_environment

WARM_LIMIT, COLD_LIMIT = 1.3, 3.0
DEPENDENCIES = ["-c", "import numba, scipy.special, sympy"]
COMMAND = ["-m", "giantstep", "curve", "--student", "tanh", "--teacher", "sin", "--table-only"]


def run_seconds(arguments: Sequence[str], folder: str, cache_folder: str) -> float:
    """Return the wall time of one fresh interpreter."""
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=fresh_environment(GIANTSTEP_CACHE_DIR=cache_folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if run.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{run.stdout}")
    return seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shortest times and their ratios; return 0 if both are within the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=15, metavar="N")
    parser.add_argument("--quick", action="store_true", help="seven repetitions")
    options = parser.parse_args(arguments)
    repetitions = 7 if options.quick else max(1, options.repetitions)
    print(f"python {' '.join(COMMAND)}")
    seconds: dict[str, list[float]] = {"dependencies": [], "warm": [], "cold": []}
    # Not the checkout: its root would come first on the interpreter's path.
    with tempfile.TemporaryDirectory() as folder:
        warm = str(Path(folder, "warm"))
        # The first round writes bytecode and fills the warm cache; it is not counted.
        for round_ in range(repetitions + 1):
            cold = str(Path(folder, f"cold{round_}"))
            found = {
                "dependencies": run_seconds(DEPENDENCIES, folder, warm),
                "warm": run_seconds(COMMAND, folder, warm),
                "cold": run_seconds(COMMAND, folder, cold),
            }
            if round_:
                for name, value in found.items():
                    seconds[name].append(value)
    shortest = {name: min(values) for name, values in seconds.items()}
    base = shortest["dependencies"]
    print(f"import numba, scipy.special, sympy  {base:6.3f} s  (fastest of {repetitions})")
    passed = True
    for name, limit in (("warm", WARM_LIMIT), ("cold", COLD_LIMIT)):
        ratio = shortest[name] / base
        good = ratio <= limit
        passed &= good
        print(
            f"{name} cache                          {shortest[name]:6.3f} s  "
            f"ratio {ratio:.2f} <= {limit}  {'PASS' if good else 'FAIL'}"
        )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
