"""Many digits of one point of the spiked-random-features model: seconds of whole processes.

Each measurement starts a Python of its own, with the derivation and the exact constants of the step
in the cache and without, and with python-flint blocked and, if it is installed, not: digits are
computed by mpmath alone, so it should make no difference. Run it by
``python benchmarks/digits.py [DIGITS …]``; a file ``digits.json`` with the results is written where
``--out`` says.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAIRS = (("tanh", "sin"), ("erf", "erf"))
# Digits and seconds that a warm process may take, without python-flint and with it.
TARGETS = {50: (8.0, 2.0), 200: (60.0, 60.0)}

_SCRIPT = """
import sys
if {blocked}:
    sys.modules["flint"] = None
from giantstep import SpikedRandomFeatures
model = SpikedRandomFeatures({student!r}, {teacher!r}, step_size=1, alpha0=2, noise_variance=0.1)
solution = model.solve(alpha=2, ridge=0.1, digits={digits}, progress=False)
error = solution.errors["test_error"]
print(str(solution).splitlines()[0].split()[-1], solution.nodes, error, sep="\\n")
"""


def process(student: str, teacher: str, digits: int, *, flint: bool, cache: Path) -> dict:
    """Return seconds and results of one process."""
    script = _SCRIPT.format(student=student, teacher=teacher, digits=digits, blocked=not flint)
    environment = {**os.environ, "GIANTSTEP_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    seconds = time.perf_counter() - start
    text, nodes, error = done.stdout.splitlines()
    return {
        "student": student, "teacher": teacher, "digits": digits, "flint": flint,
        "seconds": round(seconds, 3), "test_error": text, "nodes": int(nodes), "error": error,
    }  # fmt: skip


def main() -> None:
    """Measure, print a table, and tell which targets are met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("digits", nargs="*", type=int, default=[15, 50, 100, 200])
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    arguments = parser.parse_args()
    backends = [False, True] if importlib.util.find_spec("flint") else [False]
    rows, missed = [], 0
    print("pair            digits  flint   cold s   warm s   nodes  target")
    for student, teacher in PAIRS:
        for digits in arguments.digits:
            with tempfile.TemporaryDirectory() as folder:
                cache = Path(folder)
                cold = process(student, teacher, digits, flint=False, cache=cache)
                for flint in backends:
                    row = process(student, teacher, digits, flint=flint, cache=cache)
                    if row["test_error"] != cold["test_error"]:
                        raise AssertionError(f"{row} differs from {cold}")
                    row["cold_seconds"] = cold["seconds"]
                    rows.append(row)
                    goal = TARGETS.get(digits, (None, None))[flint]
                    word = "" if goal is None else f"{goal:g} s"
                    if goal is not None and row["seconds"] > goal:
                        word += ", MISSED"
                        missed += 1
                    print(
                        f"{student + ' ' + teacher:<15} {digits:>6}  {flint!s:<5} "
                        f"{cold['seconds']:>8.2f} {row['seconds']:>8.2f} {row['nodes']:>7}  {word}",
                        flush=True,
                    )
    if arguments.out is not None:
        document = {"python": platform.python_version(), "machine": platform.processor()}
        arguments.out.write_text(json.dumps({**document, "results": rows}, indent=2))
    if missed:
        sys.exit(f"{missed} targets missed")


if __name__ == "__main__":
    main()
