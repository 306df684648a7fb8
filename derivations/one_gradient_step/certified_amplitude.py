r"""A proven interval for :math:`\tau_* = \inf_h J(h)`.

At any exact amplitude J is enclosed, which is a proven upper bound of τ_*. That no other amplitude
is better is proven in three parts:

* around the best one, up to a distance δ, :math:`J'' \ge m > 0` by the enclosure at one point and a
  bound of J''': there :math:`J \ge J(h_0) - J'(h_0)^2/(2m)`;
* up to \|h\| = H by branch and bound: a cell is excluded if :math:`\sqrt J` at its centre is too
  large to fall below the best value at the slope L, or if J' at its centre is too large for a
  zero of J' in it, given a bound of J'';
* beyond H by the structure of the student (:mod:`.amplitude_structure`).

Where a part fails, the upper bound stays, and the statement says what is missing. For students that
are polynomials J is one, and all its critical points are isolated.
"""

from __future__ import annotations

import math

import sympy as sp

from ...ball_library import require_flint
from ...errors import CertificationError, GiantstepError, MissingDependencyError
from ...symbolic.activations import z as variable
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.enclosures import Enclosure
from ...symbolic.gaussian import expect
from ...symbolic.gaussian_balls import NotReached
from ...symbolic.gaussian_enclosures import PRECISION, enclosure_of
from ..certificates.certified_values import LIBRARIES, CertifiedValues
from .amplitude_balls import AmplitudeBalls
from .amplitude_error import AmplitudeError, amplitude, coordinate
from .amplitude_minimum import AmplitudeMinimum, limit_at_infinity, precise_minimum
from .amplitude_search import AmplitudeSearch

_LEAST_DIGITS = 15
_GUARD_BITS = 40
_THEOREM = (
    "τ_* as Ba et al. (arXiv 2205.01445, section 4.2) define it, for exact student and teacher"
)
_STRUCTURE = (
    "the bounds of derivatives and of large amplitudes derived here from the student's form"
)


def certified_tau_star(
    error: AmplitudeError,
    minimum: AmplitudeMinimum,
    digits: int,
    *,
    progress: bool | None = None,
) -> CertifiedValues:
    """Return τ_* as a proven interval, or a proven upper bound of it where no more is proven.

    Parameters
    ----------
    error : AmplitudeError
    minimum : AmplitudeMinimum
        What was found in floating point; only where to look.
    digits : int
        Digits of the value.
    progress : bool, optional
        Progress bar; by default where the error stream is a terminal.

    Returns
    -------
    CertifiedValues
        ``tau_star`` and, if there is one best amplitude up to symmetry, ``amplitude``; or
        ``tau_star_upper``, the enclosure of J at an amplitude, whose upper end bounds τ_*.

    Raises
    ------
    CertificationError
        If not even that can be enclosed.
    MissingDependencyError
        If python-flint is not installed.
    """
    require_flint()
    title = f"τ_*, student {error.student.name}, teacher {error.teacher.name}"
    if minimum.exact is not None:
        at, zero = minimum.exact
        best = FormulaBalls({}).enclosure(at, digits)
        return _values(
            title,
            {"tau_star": Enclosure(sp.S.Zero, sp.S.Zero), "amplitude": best},
            f"τ_* = {zero}: the smoothed student at h = {at} is the teacher, and J is a square",
            digits,
        )
    if math.isinf(minimum.amplitude):
        return _at_infinity(title, error, minimum, digits)
    bits = math.ceil((digits + 2) * math.log2(10)) + _GUARD_BITS
    with PRECISION, require_flint().ctx.workprec(bits):
        return _finite(title, error, minimum, digits, progress)


def _at_infinity(
    title: str, error: AmplitudeError, minimum: AmplitudeMinimum, digits: int
) -> CertifiedValues:
    limit = limit_at_infinity(error, 1 if minimum.amplitude > 0 else -1, 0.0)
    if limit is None or limit.is_infinite:
        raise CertificationError("the limit of J for large amplitudes has no enclosure")
    if limit == 0:
        return _values(
            title,
            {"tau_star": Enclosure(sp.S.Zero, sp.S.Zero)},
            "τ_* = 0: J, which is a square, goes to zero for h to infinity, where the student is "
            "the teacher",
            digits,
        )
    return _values(
        title,
        {"tau_star_upper": FormulaBalls({}).enclosure(limit, digits)},
        "τ_* is at most the upper end: J has this limit for h to infinity; that no finite "
        "amplitude is better is not proven",
        digits,
    )


def _finite(
    title: str,
    error: AmplitudeError,
    minimum: AmplitudeMinimum,
    digits: int,
    progress: bool | None,
) -> CertifiedValues:
    balls = AmplitudeBalls(error)
    wanted = math.ceil((digits + 2) * math.log2(10))
    if digits > _LEAST_DIGITS:
        start = sp.Rational(precise_minimum(error, minimum, digits)[0])
    else:
        start = sp.Rational(minimum.amplitude)
    value, slope = (balls.at(start, k, wanted) for k in (0, 1))
    try:
        if error.smoothed.is_polynomial(error.argument):
            return _polynomial(title, error, digits)
        search = AmplitudeSearch(error, balls, start, value, slope, progress)
        lower = search.lower_bound()
        search.exclude_the_rest()
    except MissingDependencyError:
        raise
    except (GiantstepError, NotReached) as failure:
        return _values(
            title,
            {"tau_star_upper": enclosure_of(value, "J")},
            f"τ_* is at most the upper end, J at h = {float(start):.15g}; that no amplitude is "
            f"better is not proven: {failure}",
            digits,
        )
    mirrored = ", up to its sign," if search.mirrored else ""
    return _values(
        title,
        {
            "tau_star": enclosure_of(value.union(lower), "τ_*"),
            "amplitude": enclosure_of(search.amplitude(), "h"),
        },
        f"τ_* lies in its interval; J is least at exactly one amplitude{mirrored} which lies in "
        "its interval",
        digits,
    )


def _polynomial(title: str, error: AmplitudeError, digits: int) -> CertifiedValues:
    """The least of J over its critical points, all of them; J is a polynomial in h."""
    teacher = error.teacher_expr.xreplace({variable: coordinate})
    square = sp.Poly((teacher - error.realised) ** 2, amplitude)
    closed = sp.Add(
        *(expect(sp.expand(c), coordinate) * amplitude**power for (power,), c in square.terms())
    )
    formulas = FormulaBalls({})
    roots = formulas.define_roots(amplitude, closed.diff(amplitude), digits)
    if not roots:
        raise CertificationError("J has no critical point")
    values = [formulas.enclosure(closed.xreplace({amplitude: root}), digits) for root in roots]
    lower, upper = min(v.lower for v in values), min(v.upper for v in values)
    found = Enclosure((lower + upper) / 2, (upper - lower) / 2)
    return _values(
        title,
        {"tau_star": found},
        "τ_* lies in its interval: J is a polynomial, and this is the least of its values at all "
        f"{len(roots)} critical points",
        digits,
    )


def _values(
    title: str, values: dict[str, Enclosure], statement: str, digits: int
) -> CertifiedValues:
    return CertifiedValues(
        title=title,
        values=values,
        statement=statement,
        assumptions=(*LIBRARIES, _STRUCTURE, _THEOREM),
        digits=digits,
    )
