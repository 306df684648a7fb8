"""Derivatives of everything a kernel returns with respect to its parameters.

By the implicit function theorem, from the derivative of the equations
(:mod:`.symbolic.sensitivities`); nothing is differenced. The system with its tangent is lowered
once for each choice of parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import sympy as sp

from ...errors import ConvergenceError, ParameterError
from ...numeric.rounding import COARSE, perturbed, spreads
from ...symbolic.saddle_point import SaddlePointSystem
from ...symbolic.sensitivities import derivative_name, with_sensitivities
from .arguments import known_names
from .derivatives import Derivatives, value_of
from .kernel import RESERVED
from .precise import exact_number

if TYPE_CHECKING:
    from .kernel import Kernel
    from .solution import KernelSolution

# The kernels with tangents that were made for a kernel, by the parameters that move.
_TANGENTS: WeakKeyDictionary[Kernel, dict[tuple[str, ...], Kernel]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivities(Derivatives):
    """Derivatives at one point: ``found["test_error", "ridge"]``.

    Attributes
    ----------
    derivatives, errors, excluded, digits
        As in :class:`.derivatives.Derivatives`; outputs are those of the kernel.
    kernel : str
        Name of the system.
    point : mapping from str to float
        All parameters of the kernel, where the derivatives were taken.
    """

    kernel: str
    point: Mapping[str, float] = field(repr=False)


def with_values(system: SaddlePointSystem) -> SaddlePointSystem:
    """Return the system with its unknowns, as their equations give them, for outputs.

    Equal to the unknowns at the solution. Outputs are compared with the sizes of their terms, so
    the errors of these count cancellation, which those of an unknown alone do not show.
    """
    found = {}
    for e in system.equations:
        x = e.unknown
        value = x - e.residual / e.residual.diff(x) if e.value is None else e.value
        found[value_of(system.identifiers[x])] = value
    return replace(system, outputs={**system.outputs, **found})


def sensitivities(
    kernel: Kernel, options: Mapping[str, Any], *, wrt: str | Sequence[str] | None = None
) -> Sensitivities:
    """Do what :meth:`.kernel.Kernel.sensitivities` says; `options` are arguments of ``solve``."""
    parameters = {n: v for n, v in options.items() if n not in RESERVED}
    names = _chosen(kernel, wrt)
    infinite = [n for n in names if _is_infinite(parameters.get(n, kernel.defaults.get(n)))]
    if infinite and wrt is not None:
        raise ParameterError(
            f"{infinite[0]} is inf, where there is no derivative by it; leave it out of wrt"
        )
    names = tuple(n for n in names if n not in infinite)
    ties = {name: tie for name, tie in kernel.ties.items() if tie.source in names}
    tangent = tangent_kernel(kernel, tuple(dict.fromkeys([*names, *ties])))
    try:
        found = tangent.solve(**options)
        rounding = {} if found.digits is not None else _rounding(tangent, found, options)
    except ConvergenceError as failure:
        # Without a solution at all this one raises, and says so.
        solution = kernel.solve(**{**options, "digits": None})
        raise ConvergenceError(
            f"{kernel.name} has a solution here, but its derivatives with respect to "
            f"{', '.join(names)} are not finite: the solution branches off or jumps here, or a "
            "parameter is at an end of its range; move the parameters a little, or leave out one "
            "with wrt=",
            state=solution,
        ) from failure

    outputs = {name: name for name in kernel.code.results if name in kernel.solved.system.outputs}
    unknowns = [kernel.solved.system.identifiers[x] for x in kernel.solved.stated.unknowns]
    outputs |= {name: value_of(name) for name in unknowns}

    def derivative(output: str, parameter: str) -> tuple[Any, Any]:
        name = derivative_name(outputs[output], parameter)
        if name not in found.values:
            return 0 * next(iter(found.values.values())), 0.0
        return found.values[name], found.errors[name] + rounding.get(name, 0.0)

    values, errors = {}, {}
    excluded = dict.fromkeys(infinite, "it is inf, where there is no derivative by it")
    for output in outputs:
        for parameter in names:
            values[output, parameter], errors[output, parameter] = derivative(output, parameter)
    for name, tie in ties.items():
        source = tie.source
        given = parameters.get(source, found.parameters[source])
        slope = slope_of(tie.function, given)
        if slope is None:
            excluded[source] = f"{name}, which follows from it, has an infinite derivative here"
            for output in outputs:
                del values[output, source], errors[output, source]
            continue
        for output in outputs:
            value, error = derivative(output, name)
            factor = _like(slope, value)
            values[output, source] += factor * value
            errors[output, source] += abs(factor) * error
    return Sensitivities(
        values, errors, excluded, kernel.name, found.parameters, digits=found.digits
    )


def tangent_kernel(kernel: Kernel, names: tuple[str, ...]) -> Kernel:
    """Return the kernel of the equations together with their derivatives."""
    from .lower import lower

    known = _TANGENTS.setdefault(kernel, {})
    if names not in known:
        symbols = {code: p for p, code in kernel.solved.system.identifiers.items()}
        system = with_sensitivities(with_values(kernel.solved.system), [symbols[n] for n in names])
        moving = {name: value for name, value in system.outputs.items() if value != 0}
        system = replace(system, outputs=moving)
        tangent = lower(system, cache_folder=kernel.cache_folder)
        # Where the kernel takes more numbers than its symbols admit, such as inf, so do its
        # derivatives by others.
        wider = {n: d for n, d in kernel.domains.items() if d.startswith("extended")}
        held = {n: d for n, d in wider.items() if n not in names}
        known[names] = replace(
            tangent,
            name=kernel.name,
            domains={**tangent.domains, **held},
            defaults=kernel.defaults,
            exact_defaults=kernel.exact_defaults,
            ties=kernel.ties,
            data=kernel.data,
            exact_data=kernel.exact_data,
            check=kernel.check,
        )
    return known[names]


def _is_infinite(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isinf(value))


def _rounding(
    tangent: Kernel, found: KernelSolution, options: Mapping[str, Any]
) -> dict[str, float]:
    """Return the rounding errors of all results at the point of a solution."""
    inwards = [-1.0 if tangent.domains[n] == "nonpositive" else 1.0 for n in found.parameters]
    rows = perturbed(list(found.parameters.values()), inwards)
    given = {n: v for n, v in options.items() if n not in RESERVED}
    for name, tie in tangent.active_ties(given).items():
        target, source = (tangent.parameters.index(n) for n in (name, tie.source))
        with np.errstate(invalid="ignore"):
            moved = tie.function(rows[1:, source], np.sqrt)
        rows[1:, target] = np.where(np.isnan(moved), rows[0, target], moved)
    job = tangent.job(options.get("data"), options.get("start"), COARSE, len(rows), keep=True)
    batch = job(rows)
    return spreads({name: batch.values[name] for name in tangent.outputs})


def _chosen(kernel: Kernel, wrt: object) -> tuple[str, ...]:
    if wrt is None:
        tied = {name for name, tie in kernel.ties.items() if tie.source in kernel.parameters}
        names = tuple(name for name in kernel.parameters if name not in tied)
        if not names:
            raise ParameterError(f"{kernel.name} has no parameters to differentiate by")
        return names
    given = (wrt,) if isinstance(wrt, str) else wrt
    if not isinstance(given, Sequence) or not all(isinstance(n, str) for n in given) or not given:
        raise ParameterError(
            f"wrt must be names of parameters ({', '.join(kernel.parameters)}), got {wrt!r}"
        )
    known_names(given, kernel.parameters, f"parameter of {kernel.name}")
    for name in given:
        if name in kernel.ties and kernel.ties[name].constraint:
            source = kernel.ties[name].source
            raise ParameterError(
                f"wrt: {name} follows from {source} and does not move alone; use {source!r}"
            )
    return tuple(dict.fromkeys(given))


def slope_of(function: Any, given: Any) -> sp.Expr | None:
    """Return the derivative of a tied parameter by its source, None where it is infinite."""
    x = sp.Symbol("x", real=True)
    slope = function(x, sp.sqrt).diff(x).xreplace({x: exact_number(given)})
    return None if slope.has(sp.zoo, sp.oo, sp.nan) else slope


def _like(number: sp.Expr, value: Any) -> Any:
    """Return an exact number as one of the kind of `value`."""
    if isinstance(value, float):
        return float(number)
    context = value.context
    return context.mpf(str(sp.N(number, context.dps + 5)))
