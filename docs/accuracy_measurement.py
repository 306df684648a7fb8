"""Errors of generated code against mpmath at the same floating-point arguments.

Every integrand of a kernel is evaluated by the code of each target, and by mpmath at the same
arguments, read as exact numbers, from the expression before any rewriting; digits are added until
two evaluations agree. Two figures come out:

- ulp: the difference in units in the last place of the exact value;
- beyond condition: the difference over ``ulp + eps * sum |argument * derivative|``, which is what
  rounding of the arguments alone could do. Near a zero of the function, and where its logarithm is
  steep, the first is large for any code and the second is not.
"""

from __future__ import annotations

import ctypes
import math
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from giantstep.symbolic.expressions.activations import CATALOGUE
from giantstep.symbolic.expressions.functions import (
    OwenT,
    erf_difference,
    erfcx,
    log_cosh,
    log_normal_cdf,
    normal_cdf,
    sigmoid,
    softplus,
)
from giantstep.symbolic.gaussian.accuracy import rewrite_for_accuracy
from giantstep.symbolic.printing.printers import (
    CPrinter,
    MpmathPrinter,
    NumpyPrinter,
    ScalarPrinter,
    SourcePrinter,
    helper_definitions,
)

r, kappa, z, x, y, mu_0, mu_1 = sp.symbols("r kappa z x y mu_0 mu_1", real=True)
s = sp.Symbol("s", positive=True)
ARGUMENTS = (r, kappa, s, z, mu_0, mu_1)
ARGUMENT_OF_ACTIVATION = r * kappa + s * z

TINY = 1e-290
"""Below it numbers lose digits by underflow; there the error is compared with this size."""
EPSILON = 2.0**-52
RESIDUAL = "σ − μ₀ − √c μ₁z"
DERIVATIVE = "dσ/dx"

BOX = {
    "kappa": (0.0, 0.7, -1.3, 6.0, -8.5, 40.0, -40.0),
    "c": (1e-8, 1e-3, 1.0, 9.0, 1e4),
    "r": (0.0, 0.1, 0.9, 3.0, 10.0),
    "z": (0.0, 1e-6, -0.4, 1.7, -4.2, 9.5, -9.5),
}


@dataclass(frozen=True)
class Integrand:
    """An expression in named arguments, with intermediate values computed before it."""

    row: str
    column: str
    arguments: tuple[sp.Symbol, ...]
    before: tuple[tuple[sp.Symbol, sp.Expr], ...]
    expr: sp.Expr

    @property
    def name(self) -> str:
        text = f"{self.row}_{self.column}"
        return "f_" + "".join(c if c.isascii() and c.isalnum() else f"{ord(c):x}" for c in text)

    def exact(self) -> sp.Expr:
        return self.expr.subs(dict(self.before))


def integrands() -> Iterator[Integrand]:
    """Iterate over the integrands of the tables of all catalogue activations."""
    before = ((x, ARGUMENT_OF_ACTIVATION),)
    for name, activation in CATALOGUE.items():
        sigma = activation(x)
        found = {
            "σ": sigma,
            "z σ": z * sigma,
            "σ²": sigma**2,
            RESIDUAL: sigma - mu_0 - s * mu_1 * z,
        }
        if not activation.jumps:
            found[DERIVATIVE] = activation.derivative.xreplace({sp.Symbol("z", real=True): x})
        for column, expr in found.items():
            yield Integrand(name, column, ARGUMENTS, before, expr)


def special_functions() -> Iterator[Integrand]:
    """Iterate over the functions of one and two numbers that targets get from helpers."""
    for f in (softplus, sigmoid, sp.sech, log_cosh, erfcx, normal_cdf, log_normal_cdf):
        yield Integrand(f.__name__, "", (x,), (), f(x))
    for f in (erf_difference, OwenT):
        yield Integrand(f.__name__, "", (x, y), (), f(x, y))


# -- code of the targets


def _lines(integrand: Integrand, printer: SourcePrinter) -> tuple[list[str], str]:
    body = [f"{v} = {printer.print(e)}" for v, e in integrand.before]
    return body, printer.print(rewrite_for_accuracy(integrand.expr))


def _python_text(found: Sequence[Integrand], printer: SourcePrinter, decorator: str = "") -> str:
    parts = []
    for f in found:
        body, result = _lines(f, printer)
        lines = [*body, f"return {result}"]
        head = f"{decorator}def {f.name}({', '.join(map(str, f.arguments))}):\n    "
        parts.append(head + "\n    ".join(lines) + "\n")
    text = "\n".join(parts)
    return helper_definitions(printer, text, decorator) + "\n" + text


def python_code(found: Sequence[Integrand], compiled: bool = False) -> dict[str, Callable]:
    namespace: dict[str, Any] = {"math": math}
    if compiled:
        from numba import njit

        namespace["njit"] = njit
    exec(_python_text(found, ScalarPrinter(), "@njit\n" if compiled else ""), namespace)
    return {f.name: namespace[f.name] for f in found}


def numpy_code(found: Sequence[Integrand]) -> dict[str, Callable]:
    import scipy.special

    namespace: dict[str, Any] = {"np": np, "scipy": scipy}
    exec(_python_text(found, NumpyPrinter()), namespace)
    return {f.name: namespace[f.name] for f in found}


def c_code(found: Sequence[Integrand], folder: Path) -> dict[str, Callable]:
    """Compile one C file with all integrands; a call takes and returns doubles."""
    printer = CPrinter()
    parts = []
    for f in found:
        body, result = _lines(f, printer)
        lines = [*(f"double {b};" for b in body), f"return {result};"]
        arguments = ", ".join(f"double {a}" for a in f.arguments)
        parts.append(f"double {f.name}({arguments})\n{{\n    " + "\n    ".join(lines) + "\n}\n")
    text = "\n".join(parts)
    source, library = folder / "integrands.c", folder / "integrands.so"
    header = "#include <math.h>\n#include <stddef.h>\n\n"
    source.write_text(header + helper_definitions(printer, text) + "\n" + text, encoding="utf-8")
    flags = ["-std=c99", "-O2", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, source, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    calls = {}
    for f in found:
        calls[f.name] = getattr(loaded, f.name)
        calls[f.name].restype = ctypes.c_double
        calls[f.name].argtypes = [ctypes.c_double] * len(f.arguments)
    return calls


# -- exact values


class Reference:
    """Exact value and condition of an integrand at floating-point arguments."""

    def __init__(self, integrand: Integrand) -> None:
        self.ctx = mpmath.mp.clone()
        exact = integrand.exact()
        slopes = [
            rewrite_for_accuracy(exact.diff(a).replace(sp.DiracDelta, lambda *_: sp.S.Zero))
            for a in integrand.arguments
        ]
        self._value = self._function(integrand.arguments, [exact])
        self._slopes = self._function(integrand.arguments, slopes)

    def _function(self, arguments: Sequence[sp.Symbol], values: Sequence[sp.Expr]) -> Callable:
        printer = MpmathPrinter()
        shared, results = sp.cse(values, symbols=sp.numbered_symbols("t_"), optimizations=[])
        lines = [f"{t} = {printer.print(e)}" for t, e in shared]
        lines.append(f"return [{', '.join(map(printer.print, results))}]")
        text = f"def f({', '.join(map(str, arguments))}):\n    " + "\n    ".join(lines) + "\n"
        namespace: dict[str, Any] = {"ctx": self.ctx}
        exec(helper_definitions(printer, text) + "\n" + text, namespace)
        return namespace["f"]

    def at(self, point: Sequence[float]) -> tuple[Any, float]:
        """Return the exact value and the effect of one relative rounding of each argument."""
        ctx = self.ctx
        before = None
        for digits in (60, 400, 900):
            ctx.dps = digits
            arguments = [ctx.mpf(v) for v in point]
            (value,) = self._value(*arguments)
            if before is not None and (
                abs(value - before) <= abs(value) * ctx.mpf(10) ** -25 or abs(value) < 1e-320
            ):
                break
            # Nothing of 60 digits can have cancelled down to a value of this size.
            if before is None and abs(value) > ctx.mpf(10) ** -20:
                break
            before = value
        slopes = self._slopes(*arguments)
        effect = sum(abs(float(a * b)) for a, b in zip(arguments, slopes, strict=True))
        return value, EPSILON * effect


@dataclass
class Worst:
    """The largest errors seen."""

    ulp: float = 0.0
    beyond: float = 0.0
    where: tuple[float, ...] = ()

    def record(self, value: float, exact: Any, effect: float, point: tuple[float, ...]) -> None:
        size = float(exact)
        if math.isinf(size):
            # No float is near; infinity is right, NaN is not.
            error, unit = (math.inf if math.isnan(value) else 0.0), 1.0
        else:
            unit = math.ulp(max(abs(size), TINY))
            error = float(abs(mpmath.mpf(value) - exact)) if math.isfinite(value) else math.inf
        beyond = error / (unit + effect) if math.isfinite(effect) else 0.0
        self.ulp = max(self.ulp, error / unit)
        if not beyond <= self.beyond:
            self.beyond, self.where = beyond, point


def measure(
    found: Sequence[Integrand],
    points: Callable[[Integrand], Sequence[tuple[float, ...]]],
    targets: Mapping[str, Mapping[str, Callable]],
) -> dict[tuple[str, str, str], Worst]:
    """Return the largest errors by (row, column, target)."""
    worst: dict[tuple[str, str, str], Worst] = {}
    for f in found:
        reference = Reference(f)
        at = list(points(f))
        exact = [reference.at(p) for p in at]
        for target, calls in targets.items():
            values = _values(calls[f.name], at, vectorised=target == "numpy")
            entry = worst.setdefault((f.row, f.column, target), Worst())
            for p, v, (e, effect) in zip(at, values, exact, strict=True):
                entry.record(v, e, effect, p)
    return worst


def _values(
    call: Callable, points: Sequence[tuple[float, ...]], vectorised: bool
) -> list[float]:  # fmt: skip
    if vectorised:
        columns = [np.array(column) for column in zip(*points, strict=True)]
        with np.errstate(over="ignore", under="ignore"):
            return [float(v) for v in np.broadcast_to(call(*columns), len(points))]
    found = []
    for p in points:
        try:
            found.append(float(call(*p)))
        except OverflowError:  # math.exp raises where compiled code returns infinity
            found.append(math.inf)
    return found


# -- points


def box_points(f: Integrand, count: int) -> list[tuple[float, ...]]:
    """Return points of the box, half of them corners; fewer points are the first of more."""
    generator = random.Random(f.name)
    found: list[tuple[float, ...]] = []
    for k in range(count):
        if k % 2:
            p = {name: generator.choice(values) for name, values in BOX.items()}
        else:
            p = {
                "kappa": generator.gauss(0.0, 3.0),
                "c": 10.0 ** generator.uniform(-8.0, 4.0),
                "r": generator.uniform(0.0, 10.0) ** generator.choice([1, 3]) / 10.0,
                "z": generator.gauss(0.0, 2.0),
            }
        spread, centre = math.sqrt(p["c"]), p["r"] * p["kappa"]
        mean, slope = _coefficients(CATALOGUE[f.row].expr, centre, spread)
        found.append((p["r"], p["kappa"], spread, p["z"], mean, slope))
    return found


def _coefficients(sigma: sp.Expr, centre: float, spread: float) -> tuple[float, float]:
    """Values of the size of μ₀ and μ₁ for the residual: those of the tangent at the centre."""
    f = NUMERIC.setdefault(sigma, (_plain(sigma), _plain(_slope(sigma))))
    values = []
    for g in f:
        try:
            values.append(float(g(centre)))
        except OverflowError:
            values.append(0.0)
    return values[0], values[1]


def _slope(sigma: sp.Expr) -> sp.Expr:
    return sigma.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)


def _plain(expr: sp.Expr) -> Callable:
    printer = ScalarPrinter()
    text = f"def f(z):\n    return {printer.print(rewrite_for_accuracy(expr))}\n"
    namespace: dict[str, Any] = {"math": math}
    exec(helper_definitions(printer, text) + "\n" + text, namespace)
    return namespace["f"]


NUMERIC: dict[sp.Expr, tuple[Callable, Callable]] = {}


def line_points(f: Integrand, count: int) -> list[tuple[float, ...]]:
    """Return arguments of special functions: all sizes and signs, and nearly equal pairs."""
    generator = random.Random(f.name)
    found: list[tuple[float, ...]] = []
    for k in range(count):
        sizes = [generator.choice((-1, 1)) * 10 ** generator.uniform(-8, 1.6) for _ in range(2)]
        if k % 3 == 1:
            sizes = [generator.uniform(-8.0, 8.0) for _ in range(2)]
        if k % 3 == 2 and len(f.arguments) == 2:
            sizes[1] = sizes[0] * (1 + 10 ** generator.uniform(-12, 0))
        found.append(tuple(sizes[: len(f.arguments)]))
    return found
