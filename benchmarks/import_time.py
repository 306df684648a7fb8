"""Time of `import giantstep` against `import numpy`, in fresh interpreters.

Fails, with exit code 1, if giantstep takes more than 1.5 times as long. Both times are of the
import alone, measured inside the new interpreter, interleaved so that both sides meet the same
load of the machine.

Usage: python benchmarks/import_time.py [--repetitions N]
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from measuring import fresh_environment

LIMIT = 1.5
MEASURE = """
import sys, time
start = time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - start)
"""


def import_seconds(package: str, folder: str) -> float:
    """Return the seconds that one fresh interpreter takes to import a package."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, package],
        cwd=folder,
        env=fresh_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(run.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both medians and their ratio; return 0 if it is within the limit."""
    parser = argparse.ArgumentParser(description="import time of giantstep against numpy")
    parser.add_argument("--repetitions", type=int, default=21, metavar="N")
    repetitions = max(1, parser.parse_args(arguments).repetitions)
    seconds: dict[str, list[float]] = {"giantstep": [], "numpy": []}
    # Not the checkout: its root would come first on the interpreter's path.
    with tempfile.TemporaryDirectory() as folder:
        # The first round writes bytecode and warms the disk cache; it is not counted.
        for round_ in range(repetitions + 1):
            for package, times in seconds.items():
                time = import_seconds(package, folder)
                if round_:
                    times.append(time)
    ours, numpys = (statistics.median(times) for times in seconds.values())
    for package, median in zip(seconds, (ours, numpys), strict=True):
        print(f"import {package:9}  {1e3 * median:7.2f} ms  (median of {repetitions})")
    verdict = "PASS" if ours <= LIMIT * numpys else "FAIL"
    print(f"{verdict}: ratio {ours / numpys:.2f}, limit {LIMIT}")
    return 0 if verdict == "PASS" else 1


if __name__ == "__main__":
    sys.exit(main())
