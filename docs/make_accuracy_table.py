"""Measure the errors of generated code and write docs/accuracy.md.

python docs/make_accuracy_table.py            some minutes; numba besides the other targets
python docs/make_accuracy_table.py --quick    the first points of each; compares with the page
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from accuracy_measurement import (
    RESIDUAL,
    Worst,
    box_points,
    c_code,
    integrands,
    line_points,
    measure,
    numpy_code,
    python_code,
    special_functions,
)

PAGE = Path(__file__).with_name("accuracy.md")
QUICK_COUNT, COUNT = 16, 300
TARGETS = ("python", "numpy", "c")
_Errors = dict[tuple[str, str, str], Worst]

HEAD = """# Accuracy of generated code

<!-- Written by docs/make_accuracy_table.py. -->

Kernels are emitted after a pass that rewrites expressions for floating point
(`giantstep.symbolic.gaussian.accuracy`), with functions that are accurate on their whole domain
(`giantstep.symbolic.printing.special_functions`). The tables state bounds on the error of the
integrands of a kernel, for every activation of the catalogue: σ is taken at x = rκ + √c z, with

- κ from −40 to 40, c from 1e-8 to 1e4, r from 0 to 10, z from −9.5 to 9.5, extremes included;
- μ₀ and μ₁ of the size of σ and its derivative at rκ.

Exact values come from mpmath with 60 to 900 digits at the same floating-point arguments, from the
expression before rewriting. Stated are the largest errors of plain Python, numba, NumPy and C at
300 points, rounded up to the next power of two above one and a half times the figure. No value is
NaN, and none is infinite that a float can represent.
"""
BEYOND = """
## Error beyond condition

The error in units of ulp(f) + ε Σ |aᵢ ∂f/∂aᵢ|, ε = 2⁻⁵²: what rounding each argument aᵢ once does
to the exact function, and one rounding of the result. A few units are as good as one can expect of
code that rounds x before the function sees it.
"""
PLAIN = """
## Error in ulp

The same in units in the last place of the exact value. It is large where the function is
ill-conditioned: near zeros of sin, cos and Hermite polynomials, and in Gaussian tails, where
x = rκ + √c z is rounded before the function sees it and a change of x by one part in 2⁵³ changes
Φ(x) by x² units. There is no column for the residual, which vanishes where σ is affine.
"""
FUNCTIONS = """
## Special functions

Error in ulp at arguments of all sizes from 1e-8 to 40, both signs, nearly equal pairs for the
functions of two arguments.
"""
TAIL = """
## What is left

- σ − μ₀ − √c μ₁z is of order c σ″ where c is small, with an absolute error of order ε|σ|. Its mean
  square μ₂² is then off by a relative ε|σ/(c σ″)|: for tanh at c = 1e-8, 6e-9 at κ = 0.7 and 7e-8
  at κ = −3. It enters equations as 1 + V₂ μ₂², where this is below rounding unless V₂ is as large
  as 1/c. The sum Σ_{k≥2} (cᵏ/k!)(E σ⁽ᵏ⁾)², which equals μ₂² where σ is smooth, has positive terms
  only and would keep all digits; it is not what kernels compute. With `digits=`, spare digits do.
- The derivative of φ/Φ far out is a difference, r(r + x) with r = φ/Φ: its relative error is of
  order x² ε, its absolute error that of x² ε as well.
- (a − b)/(pq) for 1/p − 1/q overflows in pq beyond 1e154.
"""


def bound(value: float) -> int:
    """Return a power of two with some room above a measured figure; libraries differ a little."""
    return 1 << max(2, math.ceil(math.log2(max(1.5 * value, 1.0))))


def measure_all(count: int, compiled: bool = False) -> tuple[_Errors, _Errors]:
    """Return the errors of integrands and of special functions, by row, column and target."""
    first, second = list(integrands()), list(special_functions())
    both = [*first, *second]
    with tempfile.TemporaryDirectory() as folder:
        targets: dict[str, Mapping[str, Callable]] = {"python": python_code(both)}
        targets["numpy"] = numpy_code(both)
        if shutil.which("gcc"):
            targets["c"] = c_code(both, Path(folder))
        if compiled:
            targets["numba"] = python_code(both, compiled=True)
        return (
            measure(first, lambda f: box_points(f, count), targets),
            measure(second, lambda f: line_points(f, 4 * count), targets),
        )


Table = dict[tuple[str, str], float]


def tables(errors: _Errors, functions: _Errors) -> dict[str, Table]:
    """Return the three tables of the page, as measured: {(row, column): figure}."""
    found: dict[str, Table] = {"beyond": {}, "ulp": {}, "functions": {}}
    for (row, column, _), worst in errors.items():
        for name, value in (("beyond", worst.beyond), ("ulp", worst.ulp)):
            if name == "beyond" or column != RESIDUAL:
                key = (row, column)
                found[name][key] = max(found[name].get(key, 0.0), value)
    for (row, _, target), worst in functions.items():
        if target in TARGETS:
            found["functions"][row, target] = worst.ulp
    return found


def page(found: Mapping[str, Table]) -> str:
    """Return the text of docs/accuracy.md."""
    parts = [HEAD]
    for text, name in ((BEYOND, "beyond"), (PLAIN, "ulp"), (FUNCTIONS, "functions")):
        parts += [text, _markdown(found[name])]
    return "\n".join([*parts, TAIL.rstrip()]) + "\n"


def _markdown(table: Table) -> str:
    rows = list(dict.fromkeys(row for row, _ in table))
    columns = list(dict.fromkeys(column for _, column in table))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [
            f"≤ {bound(table[row, column])}" if (row, column) in table else "" for column in columns
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def stated(text: str) -> dict[str, Table]:
    """Read the bounds of a page."""
    names = iter(("beyond", "ulp", "functions"))
    found: dict[str, Table] = {}
    columns: list[str] = []
    table: Table = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| |"):
            columns, table = cells[1:], {}
            found[next(names)] = table
        elif line.startswith("| "):
            for column, cell in zip(columns, cells[1:], strict=True):
                if cell:
                    table[cells[0], column] = float(cell.removeprefix("≤ "))
    return found


def violations(measured: Mapping[str, Table], page_text: str) -> list[str]:
    """Return where the figures are above the bounds of a page, or the page lacks one."""
    bounds = stated(page_text)
    return [
        f"{name} of {row} {column}: {value:.3g}, stated {bounds[name].get((row, column))}"
        for name, table in measured.items()
        for (row, column), value in table.items()
        if not value <= bounds[name].get((row, column), -1.0)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="compare, do not write")
    options = parser.parse_args(arguments)
    if options.quick:
        found = violations(tables(*measure_all(QUICK_COUNT)), PAGE.read_text(encoding="utf-8"))
        print("\n".join(found) or "all figures are below the bounds of the page")
        return 1 if found else 0
    PAGE.write_text(page(tables(*measure_all(COUNT, compiled=True))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
