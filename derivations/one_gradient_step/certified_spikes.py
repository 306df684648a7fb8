r"""Proven intervals for the spike of the first layer and that of the conjugate kernel.

The formulas are those that the numbers are printed from; moments of student and teacher enter as
proven enclosures, parameters as the decimal numbers that they print as. Whether there is an outlier
is proven by a sign; at the threshold itself it cannot be.

The edges of the kernel's bulk are values of ζ at real roots of the numerator of its derivative,
which is a polynomial in T: all its real roots are isolated, and exactly one lies above √β, T_c.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from ...errors import CertificationError
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.enclosures import Enclosure
from ..certificates.certified_values import LIBRARIES, CertifiedValues
from ..kernels.precise import exact_number
from . import kernel_equations as equations
from . import symbols
from .moments import exact_moments
from .symbols import spike_square
from .weight_spike import (
    aligned_length,
    alignment,
    critical_step_size,
    distance,
    ratio,
    root_beta,
    scaled_outlier,
    spike_length,
)

if TYPE_CHECKING:
    from .model import OneGradientStep

DEFAULT_DIGITS = 15
_LIMIT = "the limit formulas of Ba et al. (arXiv 2205.01445) for d → ∞; label noise derived here"
_OUTLIER = "the outlier of the kernel: derived for linearised features, a conjecture for networks"


def certified_weight_spike(model: OneGradientStep, digits: int = DEFAULT_DIGITS) -> CertifiedValues:
    """Return proven intervals of the spike of the first layer.

    Raises
    ------
    CertificationError
        If a number cannot be enclosed, or the step is at the threshold as far as can be proven.
    MissingDependencyError
        If python-flint is not installed.
    """
    formulas = FormulaBalls(_constants(model))
    length, aligned = (x * symbols.step_size for x in (spike_length(), aligned_length()))
    values = {
        "theta1": formulas.enclosure(length, digits),
        "theta2": formulas.enclosure(aligned, digits),
    }
    has_threshold = _proven_sign(formulas, spike_length(), "the spike at step size one") == 1
    if has_threshold:
        values["alignment"] = formulas.enclosure(
            alignment() * sp.sign(symbols.linear) if _has(formulas) else sp.S.Zero, digits
        )
        critical = critical_step_size().xreplace({root_beta: sp.sqrt(symbols.beta)})
        values["critical_step_size"] = formulas.enclosure(critical / model.loss_factor, digits)
    above = _above(formulas, length**2 - sp.sqrt(symbols.beta), has_threshold, model)
    if above:
        quotient = critical / symbols.step_size
        rule = {root_beta: sp.sqrt(symbols.beta), ratio: quotient, distance: 1 - quotient}
        scaled, left, right = (x.subs(rule) for x in scaled_outlier())
        values["singular_value"] = formulas.enclosure(scaled / quotient, digits)
        values["alignment_spike"] = formulas.enclosure(left, digits)
        values["alignment_teacher"] = formulas.enclosure(alignment() ** 2 * left, digits)
        values["alignment_readout"] = formulas.enclosure(right, digits)
    else:
        values["singular_value"] = formulas.enclosure(1 + sp.sqrt(symbols.beta), digits)
        for name in ("alignment_spike", "alignment_teacher", "alignment_readout"):
            values[name] = Enclosure(sp.S.Zero, sp.S.Zero)
    found = "an outlier" if above else "no outlier"
    return CertifiedValues(
        title=f"first layer after {model}",
        values=values,
        statement=(
            f"each limit lies in its interval, and its formula has {found} at this step size"
        ),
        assumptions=(*LIBRARIES, _LIMIT),
        digits=digits,
    )


def certified_kernel(
    model: OneGradientStep, trained: bool = True, digits: int = DEFAULT_DIGITS
) -> CertifiedValues:
    """Return proven intervals of edges, threshold and outlier of the conjugate kernel.

    Raises
    ------
    CertificationError
        If the roots behind the edges cannot be isolated, as where a gap of the bulk closes; if the
        step is at the threshold; if the student has no linear part.
    MissingDependencyError
        If python-flint is not installed.
    """
    constants = _constants(model)
    if constants[symbols.linear] == 0:
        raise CertificationError(
            f"the conjugate kernel of student {model.student!r} is that of pure noise, without "
            "threshold or outlier: only its edges could be proven, and they have a closed form; "
            "ask for digits instead of a proof"
        )
    slope = constants[symbols.linear] ** 2
    kappa = constants[symbols.residual] / slope
    formulas = FormulaBalls({**constants, equations.kappa: kappa})
    polynomial = _slope_numerator(kappa == 0)
    place, unit = equations.place, symbols.linear**2
    formulas.define_root(place, polynomial, above=sp.sqrt(symbols.beta))
    zeta = unit * equations.zeta()
    values = {
        "threshold": formulas.enclosure(place, digits),
        "bulk_edge": formulas.enclosure(zeta, digits),
    }
    for index, root in enumerate(_left_edges(formulas, polynomial, digits)):
        values[f"inner edge {index + 1}"] = root
    above = False
    if trained:
        spike = spike_square()
        values["spike"] = formulas.enclosure(spike, digits)
        sign = _proven_sign(formulas, spike_length(), "the spike at step size one")
        moved = sign == 1 and not model.student_moments.jumps
        if moved:
            critical = equations.critical_step_size() / model.loss_factor
            values["critical_step_size"] = formulas.enclosure(critical, digits)
        above = _above(formulas, spike - place, moved, model)
        if above:
            rule = {place: spike}
            values["outlier"] = formulas.enclosure(zeta.subs(rule), digits)
            share = equations.label_alignment().subs(rule)
            values["label_alignment"] = formulas.enclosure(share, digits)
    verdict = "an outlier" if above else "no outlier"
    return CertifiedValues(
        title=f"conjugate kernel {'after' if trained else 'before'} {model}",
        values=values,
        statement=(
            "each limit lies in its interval; T_c is the only critical point of ζ above √β, and "
            f"there is {verdict}"
        ),
        assumptions=(*LIBRARIES, _LIMIT, _OUTLIER),
        digits=digits,
    )


def _constants(model: OneGradientStep) -> dict[sp.Symbol, sp.Expr]:
    """Return the exact values of the symbols of the theory."""
    student, teacher = exact_moments(model.student), exact_moments(model.teacher)
    return {
        symbols.alpha: exact_number(model.alpha),
        symbols.beta: exact_number(model.beta),
        symbols.alpha0: exact_number(model.step_samples),
        symbols.step_size: exact_number(model.step_size) * model.loss_factor,
        symbols.noise: exact_number(model.noise_variance),
        symbols.linear: student["linear"],
        symbols.residual: student["residual"],
        symbols.teacher_linear: teacher["linear"],
        symbols.teacher_residual: teacher["residual"],
    }


def _has(formulas: FormulaBalls) -> bool:
    """Whether the teacher has a linear part; decided exactly where its moments were derived."""
    return formulas.sign(symbols.teacher_linear) != 0


def _proven_sign(formulas: FormulaBalls, formula: sp.Expr, what: str) -> int:
    sign = formulas.sign(formula)
    if sign is None:
        raise CertificationError(
            f"whether {what} is zero is not proven: it agrees with zero to 60 digits"
        )
    return sign


def _above(
    formulas: FormulaBalls, difference: sp.Expr, possible: bool, model: OneGradientStep
) -> bool:
    """Prove on which side of the threshold the step is."""
    if not possible or not model.step_size:
        return False
    sign = formulas.sign(difference)
    if not sign:
        raise CertificationError(
            f"step_size = {model.step_size:g} is at the threshold of the outlier as far as 60 "
            "digits tell: whether there is one is not proven; take another step_size"
        )
    return sign > 0


@lru_cache(maxsize=2)
def _slope_numerator(linear_student: bool) -> sp.Expr:
    """Return the polynomial in T whose real roots are the critical points of ζ."""
    slope = equations.slope_sign()
    if linear_student:
        slope = slope.subs(equations.kappa, 0)
    numerator, _ = sp.fraction(sp.cancel(sp.together(slope)))
    return numerator


def _left_edges(formulas: FormulaBalls, polynomial: sp.Expr, digits: int) -> list[Enclosure]:
    """Return the edges of the bulk but the last one, ascending, without one at zero."""
    # In a variable of its own: equations.place stands for T_c.
    variable = sp.Dummy("T", real=True)
    roots = formulas.define_roots(
        variable, polynomial.xreplace({equations.place: variable}), digits
    )
    found = []
    for root in roots:
        zeta = symbols.linear**2 * equations.zeta().xreplace({equations.place: root})
        sign = formulas.sign(root + sp.sqrt(symbols.beta))
        if sign == 1:
            continue
        edge = formulas.enclosure(zeta, digits)
        if sign is None and not edge.contains_zero:
            raise CertificationError("whether a critical point of ζ is an edge is not proven")
        if sign is not None:
            found.append(edge)
    return sorted(found, key=lambda value: value.midpoint)
