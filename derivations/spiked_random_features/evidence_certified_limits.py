r"""Proven intervals of coefficients, bounds and single errors that claims name.

All of it needs python-flint. Two intervals that do not meet prove that numbers differ; two that
meet prove nothing, and are compared only where both are narrow.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.activations import activation
from ...symbolic.activations import z as variable
from ...symbolic.enclosed_formulas import FormulaBalls
from ...symbolic.equivalence import conditional_equivalence
from ...symbolic.gaussian import GaussianExpectation
from ..certificates.agreement import agreement, decided, overlap, proof_of
from ..claims import Finding
from .bounds.evidence import _TUNED
from .evidence_correlated_norms import _ALPHA, _MODEL, _RIDGE
from .evidence_finite_size import _CORRECTED
from .evidence_quadrature import _BOUNDS
from .model import SpikedRandomFeatures
from .published import PUBLIC_NOTEBOOK, STORED_OUTPUTS

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate

_DIGITS = 25
_NARROW = 12
_STUDENTS = ("tanh", "softplus", "erf", "relu")
_CLOSED = ("erf", "relu")
_NODES = ("0.7", "-1.3")
_SPIKE = ("1.1", "1.2")
_CORRECT = ("0.0484829", "0.0425039", "0.0373113", "0.0343047", "0.0325182")


def _solved(model: SpikedRandomFeatures, alpha: float, ridge: float, **given: Any) -> Certificate:
    found: Certificate = proof_of(model.solve(alpha=alpha, ridge=ridge, certify=True, **given))
    return found


@cache
def _bounds(
    student: str, teacher: str, r: float, c: float, gamma: float, beta: float
) -> Certificate:
    """Two claims are about the same bounds, which take some seconds each."""
    model = SpikedRandomFeatures.from_parameters(
        student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta
    )
    found: Certificate = proof_of(model.bounds(certify=True))
    return found


# ------------------------------------------------------------------ coefficients


def coefficients(students: tuple[str, ...] = _STUDENTS, nodes: tuple[str, ...] = _NODES) -> Finding:
    """Conditional coefficients of four students at two κ, by integrals that differ.

    Those of a model are averages of the student times 1, u and itself. Here μ1 is the average of
    the derivative, and μ0 and μ1 of two students are closed forms, too.

    Parameters
    ----------
    students, nodes : tuple of str
        Names, and decimal numbers κ.
    """
    require_flint()
    r, c = map(sp.Rational, _SPIKE)
    formulas = FormulaBalls({})
    results: dict[str, bool] = {}
    for name in students:
        model = SpikedRandomFeatures.from_parameters(
            name, "sin", spike_strength=float(r), bulk_variance=float(c), alignment=0.9
        )
        slope = sp.diff(activation(name).expr, variable)
        for node in nodes:
            found = model.certified_coefficients(float(node), _DIGITS)
            place = r * sp.Rational(node)
            inside = slope.xreplace({variable: place + sp.sqrt(c) * variable})
            other = {"mu1": [GaussianExpectation(inside, variable)]}
            if name in _CLOSED:
                closed = conditional_equivalence(name, place, sp.sqrt(c))
                other = {"mu0": [closed.mean.expr], "mu1": [*other["mu1"], closed.slope.expr]}
            for key, expressions in other.items():
                for k, expression in enumerate(expressions):
                    value = formulas.enclosure(expression, _DIGITS)
                    results[f"{name} at κ = {node}: {key}, {k}"] = overlap(value, found[key])
            results[f"{name} at κ = {node}: μ2² > 0"] = bool(found["mu2_square"].lower > 0)
            results[f"{name} at κ = {node}: narrow"] = all(
                found[key].digits >= _DIGITS for key in ("mu0", "mu1", "mu2_square")
            )
    return decided(results, "both ways to each coefficient meet, and μ2² is positive")


# ------------------------------------------------------------------ bounds


def bounds() -> Finding:
    """L, U and E_∞ of four models; the test error of each at α = 2 is proven to be above L."""
    require_flint()
    values: dict[str, Any] = {}
    coarse: dict[str, Any] = {}
    above: dict[str, bool] = {}
    for (student, teacher, r, c, gamma, beta), printed, _ in _BOUNDS:
        proof = _bounds(student, teacher, r, c, gamma, beta)
        name = f"{student}/{teacher}"
        into = coarse if student == "relu" else values
        into |= {
            f"{name}: {key}": (proof[key], repr(number))
            for key, number in zip(("upper", "lower", "limit"), printed, strict=True)
        }
        model = SpikedRandomFeatures.from_parameters(
            student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta
        )
        above[f"{name}: test ≥ L"] = bool(
            _solved(model, 2.0, 0.1)["test_error"].lower > proof["lower"].upper
        )
    # Double precision reached 14 of the digits that it printed.
    fine = agreement(values, 14, "bounds", proven=_NARROW)
    rough = agreement(coarse, 9, "bounds of relu", proven=_NARROW)
    signs = decided(above, "test errors are above L")
    return Finding(
        fine.passed and rough.passed and signs.passed,
        f"{fine.summary}; {rough.summary}; {signs.summary}",
        {**fine.details, **rough.details, **signs.details},
    )


def tuned_steps() -> Finding:
    """min U is at most the stored value for four pairs; sin on sin has U = 0 at r = 1."""
    require_flint()
    values = {
        f"{student}/{teacher}": (_bounds(student, teacher, r, 1.0, 1.0, 1.0)["upper"], repr(upper))
        for student, teacher, r, upper in _TUNED
    }
    result = agreement(values, 8, "values of U where it is smallest", proven=_NARROW)
    zero = _bounds("sin", "sin", 1.0, 1.0, 1.0, 1.0)["upper"]
    vanishes = zero.contains_zero and bool(zero.radius < sp.Rational(1, 10**30))
    says = f"U of sin on sin at r = 1 is {zero}"
    return Finding(result.passed and vanishes, f"{result.summary}; {says}", result.details)


def coincidence() -> Finding:
    """L ≤ E_∞ ≤ U, a relative 1e-9 apart at most, next to where U is stationary."""
    require_flint()
    results: dict[str, bool] = {}
    for student, teacher, r, _ in _TUNED:
        proof = _bounds(student, teacher, r, 1.0, 1.0, 1.0)
        lower, limit, upper = (proof[name] for name in ("lower", "limit", "upper"))
        name = f"{student}/{teacher} at r = {r}"
        results[f"{name}: close"] = bool(
            upper.upper - lower.lower < upper.lower * sp.Rational(1, 10**9)
        )
        results[f"{name}: in order"] = bool(
            lower.lower <= limit.upper and limit.lower <= upper.upper
        )
    return decided(results, "L, E_∞ and U are equal to 1e-9 at r to seven digits")


# ------------------------------------------------------------------ errors


def invariances() -> Finding:
    """Errors of two pairs of models that should be the same: their intervals meet."""
    require_flint()
    spike: dict[str, Any] = {
        "spike_strength": 1.1,
        "bulk_variance": 1.1,
        "alignment": 0.7,
        "beta": 0.8,
    }
    turned = {**spike, "spike_strength": -1.1, "alignment": -0.7}
    build = SpikedRandomFeatures.from_parameters
    one = _solved(build("erf", "erf", **spike), 1.5, 0.09)
    others = {
        "(r, γ) → (−r, −γ)": _solved(build("erf", "erf", **turned), 1.5, 0.09),
        "σ → 3σ, λ → 9λ": _solved(build("3*erf(z)", "erf", **spike), 1.5, 0.81),
    }
    results: dict[str, bool] = {}
    for name, other in others.items():
        for error in ("test_error", "training_error"):
            pair = one[error], other[error]
            results[f"{name}: {error}"] = overlap(*pair) and all(x.digits >= _NARROW for x in pair)
    return decided(results, f"errors have intervals that meet, of {_NARROW} digits at least")


def notebook() -> Finding:
    """Test errors by Results 3.1 and 3.3; none of the stored outputs lies in their intervals."""
    require_flint()
    model = SpikedRandomFeatures(
        *(PUBLIC_NOTEBOOK[name] for name in ("student", "teacher")),
        **{name: PUBLIC_NOTEBOOK[name] for name in ("step_size", "alpha0", "beta")},
    )
    values: dict[str, Any] = {}
    apart = True
    for (alpha, stored), text in zip(STORED_OUTPUTS.items(), _CORRECT, strict=True):
        error = _solved(model, alpha, PUBLIC_NOTEBOOK["ridge"])["test_error"]
        values[f"α = {alpha}"] = (error, text)
        apart = apart and bool(sp.Rational(repr(stored)) > error.upper * sp.Rational(1001, 1000))
    result = agreement(values, 6, "test errors", proven=_NARROW)
    says = "stored outputs are" if apart else "not every stored output is"
    return Finding(
        result.passed and apart,
        f"{result.summary}; {says} proven to be more than 0.1 % above",
        result.details,
    )


def finite_width() -> Finding:
    """Test error and q2 of the published example at p = 1000."""
    require_flint()
    model = SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=20)
    errors: dict[str, Any] = {}
    norms: dict[str, Any] = {}
    for alpha, (test, norm) in _CORRECTED.items():
        proof = _solved(model, alpha, 0.1, width=1000)
        # The first has four decimals, so three digits; the other one more.
        (errors if alpha > 1 else norms)[f"α = {alpha}: test error"] = (
            proof["test_error"], repr(test)
        )  # fmt: skip
        norms[f"α = {alpha}: q2"] = proof["q2"], repr(norm)
    fine = agreement(errors, 4, "test errors", proven=_NARROW)
    rough = agreement(norms, 3, "values of four decimals", proven=_NARROW)
    return Finding(
        fine.passed and rough.passed,
        f"{fine.summary}; {rough.summary}",
        {**fine.details, **rough.details},
    )


def correlated_norms() -> Finding:
    """Errors with the correlation of norms and overlaps, and without it, are proven to differ."""
    require_flint()
    with_it, without = (
        _solved(SpikedRandomFeatures(**_MODEL, leading_order=order), _ALPHA, _RIDGE)
        for order in ("complete", "published")
    )
    results = {
        name: not overlap(with_it[name], without[name]) for name in ("test_error", "training_error")
    }
    share = 1 - with_it["test_error"].midpoint / without["test_error"].midpoint
    return decided(
        results,
        f"with a ≠ 0 the errors differ from the published ones, the test error by "
        f"{100 * abs(float(share)):.1f} %",
    )
