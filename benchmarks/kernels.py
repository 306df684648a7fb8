"""Generated kernels against a numba kernel of the same algorithm written by hand.

Two targets, for the tanh student and the sin teacher at step size 3 and alpha0 = 20. The generated
numba kernel and the export to C take at most 1.15 times as long, on the same tables and points.
Where the file in C computes tables, a call in a workspace takes at most 1.15 times as long as a row
of an array; a call without one is printed beside them.

All sides run in one process on one thread, in turns; the CPU time of the thread counts, which other
load on the machine hardly changes. C is compiled with -O3 -march=native, because numba compiles for
this machine too; without a C compiler that line is left out. What a process chooses once,
presumably where stack and tables lie in memory, moves a side by several per cent (C took 1.09 to
1.19 of the hand-written kernel in 30 processes, 1.13 or 1.14 in most, more than 1.15 in three): a
missed limit is measured anew in other processes.

    python benchmarks/kernels.py [--quick] [--attempts 3]
"""

from __future__ import annotations

import argparse
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hand_written import HAND_OUTPUTS, hand_batch
from measuring import cpu_seconds
from numpy.typing import NDArray

from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.numeric.kernel_arrays import KernelArrays
from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.languages import c as c_files

HAND_TARGET = 1.15
CALL_TARGET = 1.15
C_FLAGS = ("-std=c99", "-O3", "-march=native", "-fPIC", "-shared")

Array = NDArray[np.float64]


def random_points(n: int) -> tuple[Array, Array]:
    """Return sample complexities in [0.1, 10] and ridge penalties in [1e-3, 10]."""
    rng = np.random.default_rng(0)
    return 10 ** rng.uniform(-1, 1, n), 10 ** rng.uniform(-3, 1, n)


def verdict(good: bool) -> str:
    """Return what the table says."""
    return "PASS" if good else "FAIL"


def files_with_tables(model: SpikedRandomFeatures, tables: Sequence[Array]) -> Mapping[str, str]:
    """Return the export to C that holds fine, medium and coarse rule: weights, nodes, tables."""
    lowered = model.symbolic().lowered
    names = ("weight", *map(str, lowered.program.tables))
    given = model._parameter_values()
    fixed = [lowered.identifiers[p] for p in lowered.table_parameters]
    levels = tuple(
        {name: tuple(row.tolist()) for name, row in zip(names, rule, strict=True)}
        for rule in tables
    )
    baked = BakedTables({name: float(given[name]) for name in fixed}, levels)
    return c_files.files(lowered, baked, "kernel")


class KernelInC:
    """A kernel in C, compiled and loaded, with a loop of calls.

    Parameters
    ----------
    files : mapping from str to str
    folder : Path
    compiler : str
    """

    # Loops in C: calls from Python would cost more than a row.
    _LOOP = """
int kernel_calls(size_t n, const double *parameters, double rtol, double *values, double *errors,
                 int with_workspace)
{
    kernel_workspace *workspace = kernel_init();
    size_t k;
    int status = 0;
    for (k = 0; k < n; k++) {
        const double *row = parameters + k * KERNEL_N_PARAMETERS;
        double *v = values + k * KERNEL_N_OUTPUTS, *e = errors + k * KERNEL_N_OUTPUTS;
        status |= with_workspace ? kernel_solve_with(workspace, row, rtol, v, e, NULL)
                                 : kernel_solve(row, rtol, v, e, NULL);
    }
    kernel_free(workspace);
    return status;
}
"""

    def __init__(self, files: Mapping[str, str], folder: Path, compiler: str) -> None:
        import cffi

        for file, text in files.items():
            loop = self._LOOP if file.endswith(".c") else ""
            (folder / file).write_text(text + loop, encoding="utf-8")
        library = str(folder / "kernel.so")
        subprocess.run(
            [compiler, *C_FLAGS, "-o", library, str(folder / "kernel.c"), "-lm"], check=True
        )
        header = re.sub(r"/\*.*?\*/", "", files["kernel.h"], flags=re.DOTALL)
        lines = [x for x in header.splitlines() if not x.startswith("#") and x != "}"]
        self._ffi: Any = cffi.FFI()
        self._ffi.cdef("\n".join(x for x in lines if 'extern "C"' not in x))
        self._ffi.cdef("int kernel_calls(size_t, const double *, double, double *, double *, int);")
        self._library: Any = self._ffi.dlopen(library)
        self.parameters = self._names("parameter", self._library.KERNEL_N_PARAMETERS)
        self.outputs = self._names("output", self._library.KERNEL_N_OUTPUTS)

    def _names(self, kind: str, n: int) -> list[str]:
        names = getattr(self._library, f"kernel_{kind}_names")
        return [str(self._ffi.string(names[k]).decode()) for k in range(n)]

    def solve(self, parameters: Array, results: Array, errors: Array) -> None:
        """Solve every row of `parameters`."""
        pointers = [
            self._ffi.cast("double *", a.ctypes.data) for a in (parameters, results, errors)
        ]
        status = self._library.kernel_solve_many(
            len(parameters), pointers[0], 1e-11, *pointers[1:], self._ffi.NULL
        )
        if status:
            raise RuntimeError(f"the kernel in C returned {status}")

    def call(self, parameters: Array, results: Array, errors: Array, workspace: bool) -> None:
        """Solve row by row, each in a call of its own."""
        pointers = [
            self._ffi.cast("double *", a.ctypes.data) for a in (parameters, results, errors)
        ]
        status = self._library.kernel_calls(
            len(parameters), pointers[0], 1e-11, *pointers[1:], workspace
        )
        if status:
            raise RuntimeError(f"the kernel in C returned {status}")


def compare_with_hand(model: SpikedRandomFeatures, n: int, rounds: int) -> bool:
    """Print and judge the claim."""
    kernel = model._kernel
    alphas, ridges = random_points(n)
    columns: dict[str, object] = {**model._parameter_values(), "alpha": alphas, "ridge": ridges}

    def rows(names: list[str]) -> Array:
        found = [np.broadcast_to(np.asarray(columns[p], dtype=float), (n,)) for p in names]
        return np.stack(found, axis=1)

    order = ["alpha", "beta", "ridge", "noise_variance", "spike_strength", "bulk_variance"]
    parameters = rows(list(kernel.parameters))
    if list(kernel.parameters[:6]) != order:
        raise RuntimeError(f"the hand-written kernel expects {order}, not {kernel.parameters}")
    values = [model._parameter_values()[p] for p in kernel.table_parameters]
    tables = KernelArrays(kernel, values)[0][:3]
    info = np.empty((n, 3))
    sides: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], object]]] = {
        "hand-written": (
            HAND_OUTPUTS,
            lambda results, errors: hand_batch(parameters, *tables, results, errors, info),
        ),
        "generated numba": (
            kernel.outputs,
            lambda results, errors: kernel.compiled().solve_batch(
                parameters, *tables, results, errors, info
            ),
        ),
    }
    compiler = shutil.which("cc") or shutil.which("gcc")
    with tempfile.TemporaryDirectory() as folder:
        if compiler is None:
            print("    no C compiler: the export to C is left out")
        else:
            in_c = KernelInC(files_with_tables(model, tables), Path(folder), compiler)
            points = rows(in_c.parameters)
            sides["generated C"] = (
                tuple(in_c.outputs),
                lambda results, errors: in_c.solve(points, results, errors),
            )
        return _judge(sides, n, rounds)


def _judge(
    sides: dict[str, tuple[tuple[str, ...], Callable[[Array, Array], object]]], n: int, rounds: int
) -> bool:
    found = {name: np.empty((2, n, len(outputs))) for name, (outputs, _) in sides.items()}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(rounds + 1):
        for name, (_, solve) in sides.items():
            elapsed = cpu_seconds(functools.partial(solve, *found[name]))
            if round_:
                # The first round compiles.
                seconds[name].append(elapsed)
    by_hand = min(seconds["hand-written"])
    print(f"(c) hand-written numba {1e6 * by_hand / n:.3f} us a row")
    passed = True
    for name, (outputs, _) in list(sides.items())[1:]:
        shared = [x for x in HAND_OUTPUTS if x in outputs]
        ours = found[name][0][:, [outputs.index(x) for x in shared]]
        theirs = found["hand-written"][0][:, [HAND_OUTPUTS.index(x) for x in shared]]
        # What may vanish is compared with the size of its neighbours in the same row.
        difference = float(np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-3)))
        ratio = min(seconds[name]) / by_hand
        good = ratio <= HAND_TARGET and difference <= 1e-12
        passed = passed and good
        print(
            f"    {name} {1e6 * min(seconds[name]) / n:.3f} us: "
            f"ratio {ratio:.2f} <= {HAND_TARGET}  {verdict(good)}\n"
            f"        {len(shared)} outputs, largest difference {difference:.0e} <= 1e-12"
        )
    return passed


def compare_calls(model: SpikedRandomFeatures, n: int, rounds: int) -> bool:
    """Print and judge what a call costs where the file computes its tables."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return True
    alphas, ridges = random_points(n)
    columns: dict[str, object] = {**model._parameter_values(), "alpha": alphas, "ridge": ridges}
    with tempfile.TemporaryDirectory() as folder:
        files = c_files.files(model.symbolic().lowered, None, "kernel")
        in_c = KernelInC(files, Path(folder), compiler)
    found = [np.broadcast_to(np.asarray(columns[p], dtype=float), (n,)) for p in in_c.parameters]
    rows = np.stack(found, axis=1)
    results = np.empty((3, 2, n, len(in_c.outputs)))
    few = max(1, n // 200)
    sides: list[tuple[int, Callable[[], object]]] = [
        (n, lambda: in_c.solve(rows, *results[0])),
        (n, lambda: in_c.call(rows, results[1, 0], results[1, 1], workspace=True)),
        (
            few,
            lambda: in_c.call(
                rows[:few], results[2, 0, :few], results[2, 1, :few], workspace=False
            ),
        ),
    ]
    in_turns = [[cpu_seconds(solve) / m for m, solve in sides] for _ in range(rounds)]
    row, with_workspace, alone = (1e6 * min(s) for s in zip(*in_turns, strict=True))
    same = bool(np.array_equal(results[0], results[1]))
    good = with_workspace <= CALL_TARGET * row and same
    print(
        f"(d) C with tables of its own: a row {row:.3f} us, a call in a workspace "
        f"{with_workspace:.3f} us (ratio {with_workspace / row:.2f} <= {CALL_TARGET}, "
        f"{'the same bits' if same else 'other bits'}), without one {alone:.1f} us  {verdict(good)}"
    )
    return good


def main() -> int:
    """Measure, print, return 1 if the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer points in a turn")
    parser.add_argument("--attempts", type=int, default=3, help="processes that may try")
    chosen = parser.parse_args()
    quick = chosen.quick
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    print("tanh / sin, step size 3, alpha0 = 20, beta = 1")
    # Many short turns: the best of each side is one that nothing else has disturbed. Tables are
    # computed once in a call, so more rows share them.
    n, rounds = (1_000, 200) if quick else (5_000, 200)
    good = [compare_with_hand(model, n, rounds), compare_calls(model, 5 * n, rounds // 4)]
    if all(good):
        return 0
    if chosen.attempts <= 1:
        return 1
    print("again in a new process", flush=True)
    again = [sys.executable, __file__, f"--attempts={chosen.attempts - 1}"]
    return subprocess.run([*again, "--quick"] if quick else again, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
