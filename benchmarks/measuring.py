"""What the benchmarks share: time of this thread, and fresh interpreters that see this checkout."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return the CPU time that a run takes on this thread."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def fresh_environment(**variables: str) -> dict[str, str]:
    """Return the environment of an interpreter that imports this checkout first."""
    path = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = os.environ | {"PYTHONPATH": os.pathsep.join(path), **variables}
    # Else every run would compile again what is not installed.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found
