r"""Bounds of the test error of a model, and its limit for many samples, as numbers.

The expressions are those of :func:`bound_system`; here they become a kernel, which is cached like
every other, and answers with floats and estimated errors or with any number of digits.

**Bounds of the test error, and its limit for many samples, as projections in :math:`L^2(\kappa)`.**
Given its projection κ on the spike the network predicts :math:`m\mu_0(\kappa) +
\vartheta\kappa\mu_1(\kappa) + \psi\mu_1(\kappa)s` and noise, s being the projection of the input on
the part of the teacher's direction that is orthogonal to the spike. Of the target, whose
conditional moments are T_0 and T_1 (Result 3.2, :mod:`.physics`), an error

.. math::
    E(k) = \langle\tau_2^2\rangle
      + \min_{m,\vartheta,\psi}\big[\langle (T_0 - m\mu_0 - \vartheta g)^2\rangle
      + \langle (T_1 - \psi\mu_1)^2\rangle + k\,(\vartheta^2 + \psi^2)\big]

is left, with :math:`g = \kappa\mu_1` less its projection on :math:`\mu_0` and
:math:`\tau_2^2 = \mathbb{E}_s(\sigma_* - T_0 - T_1 s)^2`. In these terms (Cui et al., arXiv
2402.04980, equations (26)–(28))

- E(0) = L, a lower bound for all α, β and λ;
- E(∞) = U, an upper bound of the error at the best λ: for λ → ∞ only m, which costs nothing,
  survives;
- E(k) with :math:`k = 1/(\beta c V_2^\circ)`,
  :math:`V_2^\circ = \mathbb{E}[1/(\langle\mu_2^2\rangle + \langle\mu_1^2\rangle cX)]`, is the
  limit α → ∞ at any fixed λ (derived here, in the section on limits).

So L ≤ E_∞ ≤ U without any computation, and the limit of E_∞ for β → ∞, where k → 0, is L. Every
term is a mean of squares, so that a bound of 1e-20 is as accurate as one of order one.

**The limit of many samples, α → ∞ at fixed ridge penalty, derived from the free energy.** With
:math:`\varepsilon = \beta/\alpha` the conjugates grow like 1/ε and the responses V shrink like ε.
In the scaled variables ε times the free energy of :mod:`.physics` has the limit

.. math::
    f_0 = \tfrac12\langle\mathrm{err}\rangle - \tfrac12(q_1\hat V_1 + q_2\hat V_2)
    + \vartheta\hat\vartheta + \psi\hat\psi - \tfrac\beta2\big(c\,\hat\vartheta^2\,
    \mathbb{E}[1/S] + \hat\psi^2\,\mathbb{E}[D/S]\big), \qquad S = \hat V_2 + \hat V_1 D,

from which λ has gone. It is stationary where the readout minimises the error itself, under the
penalty :math:`\vartheta^2/(\beta c V_2) + \psi^2/(\beta V_1)`: overlaps with p directions of the
bulk come at a price even with infinitely many samples. Derived here; for β → ∞ the price vanishes
and the error is the lower bound L of :func:`bound_system`.

**Tables of the functions along the spike: the target, what networks realise, spans of letters.**
All are printed from the conditional coefficients and from the prediction :math:`m\,\mu_0(\kappa) +
\vartheta\,\kappa\mu_1(\kappa)` of :mod:`.physics`. The best linear predictor :math:`h^*_0 +
h^*_1\,\theta\cdot x` is :math:`h^*_0 + h^*_1\gamma\kappa` on average.

**The functions of the projection on the spike that a network realises, beside the target.** A
network predicts :math:`m\,\mu_0(\kappa) + \vartheta\,\kappa\mu_1(\kappa)` on average over inputs
with a given projection κ on the spike (Result 3.2 of Cui et al., arXiv 2402.04980), the target is
:math:`T_0(\kappa)` there. The coefficients are those of the bounds (:mod:`.bounds`) or of a saddle
point; the functions come from generated tables (in the section on shape tables).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import sympy as sp

from ....digits import checked_digits, error_text
from ....errors import ConvergenceError, ParameterError
from ....labelled import labelled
from ....numeric.arguments import positive_number
from ....numeric.cache import FileCache
from ....numeric.kernel_code import KernelCode
from ....pages import Block
from ....result import Number, Result, quantity
from ....runtime.levels import Tables
from ....runtime.precision import local_context
from ....symbolic.expressions.activations import Activation, activation
from ....symbolic.expressions.regularity import Parity
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.lowering import lowered as lowering
from ....symbolic.systems.equations import FreeEnergy, determined
from ....symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent
from ....symbolic.systems.saddle_point import SaddlePointSystem
from ...certificates.certificate import Certificate, certificate_wanted
from ...derived import derived
from ...first_gradient.spike_mapping import best_linear_error
from ...kernels.code import deriving, kernel_code
from ...kernels.kernel import Kernel
from ...kernels.precise import promise
from ...teachers import refuse_directions
from .. import physics as fe
from ..derive import Case
from ..physics import (
    IDENTIFIERS,
    T0,
    T1,
    average,
    beta,
    c,
    chi,
    conditional_mean,
    gamma,
    kappa,
    mu0,
    mu1,
    mu2_squared,
    norm_overlap,
    r,
    rho,
    theta,
    z,
)
from ..precise import exact_parameters, proven_parameters
from .letter_bounds import bound_definitions, realised_table_source, span_bounds, tau2_squared

if TYPE_CHECKING:
    import xarray as xr

    from ....symbolic.lowering.lowered import LoweredSystem
    from ...kernels.solution import KernelSolution
    from ..model import SpikedRandomFeatures

# Digits of an exact number beyond those asked for.
_SPARE_DIGITS = 15
_NAMES = ("lower", "limit", "upper")
# Errors of a float above which other ways are tried; and a tolerance that no rule exceeds.
_RELATIVE, _ABSOLUTE = 1e-10, 1e-20
_ANY = 1e3
TITLE = "Bounds of the test error of spiked random features"


@dataclass(frozen=True, repr=False)
class Bounds(Result):
    r"""What no readout of a model can beat, and what the best one reaches.

    Attributes
    ----------
    lower : float or mpmath number
        L ≤ test error for every α, β and ridge penalty λ (equation (27) for γ = ±1).
    limit : float or mpmath number
        E_∞, the test error for α → ∞ at the model's β and any fixed λ.
    upper : float or mpmath number
        U ≥ test error at the best λ, for every α and β (26); at another λ the error may be larger.
    linear : float or mpmath number
        Error of the best linear predictor, below which no plain random features (r = 0), no kernel
        and no neural tangent kernel get with n = O(d) samples.
    upper_coefficient : float
        m of the function m μ_0(κ) that has the error U.
    lower_coefficients, limit_coefficients : tuple of float
        (m, ϑ, ψ) of the functions m μ_0 + ϑ κ μ_1 + ψ μ_1 s that have the errors L and E_∞.
    errors : mapping from str to float
        Estimated absolute error of ``lower``, ``limit`` and ``upper``.
    digits : int or None
        Digits asked for.
    certificate : Certificate or None
        Proven intervals of ``lower``, ``limit`` and ``upper``, where a proof was asked for.
    """

    _document = "bounds of the test error"

    lower: Number = field(metadata=quantity("L", "L", meaning="below every test error"))
    limit: Number = field(
        metadata=quantity("E_∞", r"E_\infty", meaning="test error for α → ∞ at fixed λ")
    )
    upper: Number = field(metadata=quantity("U", "U", meaning="above the test error at the best λ"))
    linear: Number = field(
        metadata=quantity("linear", meaning="best linear predictor: kernels, random features")
    )
    upper_coefficient: Number
    lower_coefficients: tuple[Number, Number, Number]
    limit_coefficients: tuple[Number, Number, Number]
    errors: Mapping[str, Number]
    digits: int | None = None
    certificate: Certificate | None = None

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.certificate is not None:
            widest = max(float(2 * self.certificate[name].radius) for name in _NAMES)
            return f"certified intervals, {widest:.1e} wide at most"
        if self.digits is not None:
            return promise(self.digits, self.errors, self.estimated())
        return f"float with error estimates of at most {max(self.errors.values()):.1e}"


def bounds(
    model: SpikedRandomFeatures, *, digits: int | None = None, certify: bool = False
) -> Bounds:
    r"""Return bounds of the test error: L ≤ E_∞ ≤ U, and the error of linear predictors.

    Parameters
    ----------
    digits : int, optional
        Refine to so many digits with mpmath.
    certify : bool
        Also prove intervals of L, E_∞ and U, ``certificate``, to 15 digits or `digits`; needs
        python-flint.

    Returns
    -------
    Bounds
        L holds for every α, β and λ, U for every α and β at the best λ only; E_∞ is the limit
        α → ∞ at this β and any fixed λ. All three are for p → ∞ (no cost of m).

    Raises
    ------
    ConvergenceError
        If two quadrature rules never agree.

    Examples
    --------
    >>> from giantstep import SpikedRandomFeatures
    >>> print(SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4).bounds().upper < 0.2)
    True
    """
    refuse_directions(model.teacher, "bounds")
    if digits is not None:
        digits = checked_digits(digits)
    if certificate_wanted(certify):
        solution = bound_kernel(model).solve(digits=digits, certify=True)
        return replace(_bounds_from(solution, model, digits), certificate=solution.certificate)
    if digits is not None:
        return _bounds_from(bound_kernel(model).solve(digits=digits), model, digits)
    return _bounds_from(_floats(model), model, None)


def _floats(model: SpikedRandomFeatures) -> KernelSolution:
    """Return the bounds with the smallest estimated errors that floats give."""
    kernel = bound_kernel(model)
    found = kernel.solve(rtol=_ANY)
    if _good(found):
        return found
    if model.spike.spike_strength == 0:
        return kernel.solve()
    # Shapes that nearly coincide, as for a small spike: averages of squares lose their difference.
    # No finer rule brings it back, and a model without μ_1 has no cost.
    spans = span_bounds(model, found.values.get("cost", 1.0))
    if not spans.resolved:
        found = kernel.solve()
    values, errors = dict(found.values), dict(found.errors)
    for name in _NAMES:
        if not errors[name] <= spans.errors[name]:
            values |= {
                key: spans.values[key]
                for key in (f"{part}{name}" for part in ("", "m_", "theta_", "psi_"))
                if key in values
            }
            errors[name] = spans.errors[name]
    return replace(found, values=values, errors=errors)


def _good(found: KernelSolution) -> bool:
    return all(found.errors[n] <= max(_RELATIVE * abs(found[n]), _ABSOLUTE) for n in _NAMES)


def _bounds_from(found: KernelSolution, model: SpikedRandomFeatures, digits: int | None) -> Bounds:
    def triple(name: str) -> tuple[Any, Any, Any]:
        m, theta, psi = (found[f"{part}_{name}"] for part in ("m", "theta", "psi"))
        return m, theta, psi

    linear: Any = model.best_linear_error
    if digits is not None:
        linear = precise_linear_error(model.teacher, digits)
    return Bounds(
        lower=found["lower"],
        limit=found["limit"],
        upper=found["upper"],
        linear=linear,
        upper_coefficient=found["m_upper"],
        lower_coefficients=triple("lower"),
        limit_coefficients=triple("limit"),
        errors={name: found.errors[name] for name in _NAMES},
        digits=digits,
    )


def precise_linear_error(teacher: str, digits: int) -> Any:
    """Return the error of the best linear predictor to so many digits, as an mpmath number."""
    expression = best_linear_error(activation(teacher, argument="teacher"))
    return local_context(digits).mpf(str(expression.evalf(digits + _SPARE_DIGITS)))


def bound_expressions(
    student: str, teacher: str, *, unspiked: bool = False, aligned: bool = False
) -> dict[str, sp.Expr]:
    r"""Return L, E_∞ and U as SymPy expressions in r, c, γ, ρ and β, with 𝔼 nodes."""
    student_ = activation(student, argument="student")
    teacher_ = activation(teacher, argument="teacher")
    system = bound_system(student_, teacher_, unspiked=unspiked, aligned=aligned)
    found = {name: system.outputs[name] for name in _NAMES}
    for equation in reversed(system.equations):
        found = {name: e.subs(equation.unknown, equation.value) for name, e in found.items()}
    for function, definition in reversed(list(system.definitions.items())):
        found = {name: e.subs(function, definition) for name, e in found.items()}
    return {**found, "linear": best_linear_error(teacher_)}


def bound_kernel(model: SpikedRandomFeatures, *, slopes: bool = False) -> Kernel:
    """Return the bounds of a model as a kernel, its parameters as defaults."""
    refuse_directions(model.teacher, "bounds")
    model._refuse_other_rows("bounds")
    kernel = activation_bounds(
        model.student, model.teacher, cache=model._cache, slopes=slopes, **_case(model)
    )
    return with_defaults(kernel, model)


def _case(model: SpikedRandomFeatures) -> Case:
    """Return the case of the equations; that rows are not stretched goes without saying."""
    return cast("Case", {key: x for key, x in model._case.items() if key != "stretched"})


def with_defaults(kernel: Kernel, model: SpikedRandomFeatures) -> Kernel:
    """Return a kernel with the parameters of a model as its defaults."""
    known = model._parameter_values()
    return replace(
        kernel,
        defaults={name: known[name] for name in kernel.parameters},
        exact_defaults=partial(_exact_defaults, model, kernel.parameters),
        proven_defaults=partial(_proven_defaults, model, kernel.parameters),
    )


def activation_bounds(
    student: str, teacher: str, *, cache: FileCache, slopes: bool = False, **case: Unpack[Case]
) -> Kernel:
    """Return the bounds of a pair of activations as a kernel, without values of its parameters."""
    case = {"correlated_norms": False, **case}
    return Kernel(
        name="spiked_random_features_bounds",
        title=f"{TITLE}, student {student}, teacher {teacher}",
        code=_code(cache, student, teacher, **case, slopes=slopes),
        domains=spike_domains(**case),
        make=partial(_lowered, bound_system, student, teacher, **case, slopes=slopes),
        cache_folder=cache.folder,
    )


def spike_domains(**case: Unpack[Case]) -> dict[str, str]:
    """Return which numbers the parameters of a spike may be."""
    return {
        "beta": "positive",
        "spike_strength": "zero" if case["unspiked"] else "real",
        "bulk_variance": "positive",
        "alignment": "unit" if case["aligned"] else "real",
        "orthogonal_alignment": "zero" if case["aligned"] else "positive",
        **({"norm_overlap": "real"} if case["correlated_norms"] else {}),
    }


@derived("spiked_random_features/bounds/bounds", KernelCode)
def _code(student: str, teacher: str, **flags: Any) -> KernelCode:
    return code_of_bounds(lambda: _lowered(bound_system, student, teacher, **flags))


def code_of_bounds(make: Callable[[], LoweredSystem]) -> KernelCode:
    """Return the code of a system of bounds, with a bar while it is lowered and printed."""
    with deriving("the bounds", 2) as done:
        lowered = make()
        done()
        return kernel_code(lowered)


def _lowered(
    system: Callable[..., SaddlePointSystem], student: str, teacher: str, **flags: Any
) -> LoweredSystem:
    functions = activation(student, argument="student"), activation(teacher, argument="teacher")
    return lowering.lower(system(*functions, **flags))


def _exact_defaults(
    model: SpikedRandomFeatures, names: tuple[str, ...], ctx: Any
) -> dict[str, Any]:
    exact = exact_parameters(model, ctx)
    return {name: exact[name] for name in names}


def _proven_defaults(
    model: SpikedRandomFeatures, names: tuple[str, ...], digits: int
) -> dict[str, Any]:
    proven = proven_parameters(model, digits)
    return {name: proven[name] for name in names}


# ------------------------------------------------------------------ bound system

mean_square, tilt, overlap = sp.symbols("A_00 t y_0", real=True)
along_square, along_overlap = sp.symbols("B y_1", real=True)
slope_square, slope_overlap = sp.symbols("b h", real=True)
# Derivative of χ with respect to the centre rκ of the student's argument.
chi_slope = sp.Function("chi_1", real=True)(kappa)
residual_square, unexplained = sp.symbols("a u", nonnegative=True)
along_size = sp.Symbol("A_11", real=True)
cost = sp.Symbol("k", nonnegative=True)

# Below this part of its square, what is left of κμ_1 after the projection on μ_0 is rounding: the
# two are proportional, as for a linear student.
_PROPORTIONAL = sp.Rational(1, 10**26)

SOURCE = "Cui et al., arXiv 2402.04980, equations (26)-(28); the limit is derived here"
_IDENTIFIERS = {
    mean_square: "mean_square", tilt: "tilt", overlap: "overlap",
    along_square: "along_square", along_overlap: "along_overlap", along_size: "along_size",
    slope_square: "slope_square", slope_overlap: "slope_overlap",
    residual_square: "residual_square", unexplained: "unexplained", cost: "cost",
}  # fmt: skip


def error(penalty: sp.Expr | None, shape: sp.Expr = kappa * mu1) -> sp.Expr:
    """Return E(k) in the unknowns of :func:`bound_system`; without a penalty it is E(∞)."""
    along, across = coefficients(penalty)
    along_shape = shape - tilt * mu0
    kept = average((T0 - overlap / mean_square * mu0 - along * along_shape) ** 2)
    kept += average((T1 - across * mu1) ** 2)
    return unexplained + kept + (penalty or 0) * (along**2 + across**2)


def coefficients(penalty: sp.Expr | None) -> tuple[sp.Expr, sp.Expr]:
    """Return ϑ and ψ at the minimum E(k)."""
    if penalty is None:
        return sp.S.Zero, sp.S.Zero
    along = sp.Piecewise(
        (0, along_square <= _PROPORTIONAL * along_size),
        (along_overlap / (along_square + penalty), True),
    )
    return along, slope_overlap / (slope_square + penalty)


def bound_system(
    student: Activation, teacher: Activation, *, slopes: bool = False, **case: Unpack[Case]
) -> SaddlePointSystem:
    r"""Return the bounds and the limit as a system whose unknowns are explicit averages.

    Parameters
    ----------
    slopes : bool
        Give the derivatives of U and L with respect to r and c instead of the coefficients;
        without correlated norms, for students that do not jump.

    Returns
    -------
    SaddlePointSystem
        Parameters β, r, c, γ, ρ; outputs ``upper``, ``lower``, ``limit``, the coefficients of the
        functions that realise them (``m_upper``, ``m_lower``, ``theta_lower``, ``psi_lower``,
        ``m_limit``, ``theta_limit``, ``psi_limit``) or, with `slopes`, ``upper_slope`` and
        ``lower_slope`` (with respect to r), ``upper_widening`` and ``lower_widening`` (c).

    Notes
    -----
    Derivatives by the envelope theorem: of a minimum over m, ϑ, ψ only the explicit dependence on
    r and c counts, :math:`\partial_r\mu_0 = \kappa\mu_1`, :math:`\partial_r\mu_1 = \kappa\chi`
    and, by the heat equation, :math:`\partial_c\mu_0 = \chi/2` and
    :math:`\partial_c\mu_1 = \chi_1/2`, with χ_1 the derivative of χ by its centre. So
    :math:`\mathrm{d}U/\mathrm{d}r = -2m\langle\kappa\mu_1(T_0 - m\mu_0)\rangle`: where U is
    stationary the residual is orthogonal to :math:`\kappa\mu_1`, and, with γ = ±1, L = E_∞ = U.
    """
    correlated_norms = case.get("correlated_norms", False)
    definitions = bound_definitions(
        student, teacher, unspiked=case.get("unspiked", False), aligned=case.get("aligned", False),
        curved=correlated_norms or slopes,
    )  # fmt: skip
    if slopes:
        inside = student.derivative.xreplace({z: r * kappa + sp.sqrt(c) * z})
        definitions[chi_slope] = GaussianExpectation((z**2 - 1) * inside / c, z)
    shape = sp.diff(conditional_mean(correlated_norms=correlated_norms), theta)
    along_shape = shape - tilt * mu0
    left_over = T0 - overlap / mean_square * mu0
    values = {
        mean_square: average(mu0**2),
        overlap: average(mu0 * T0),
        tilt: average(mu0 * shape) / mean_square,
        along_size: average(shape**2),
        along_square: average(along_shape**2),
        along_overlap: average(along_shape * left_over),
        slope_square: average(mu1**2),
        slope_overlap: average(mu1 * T1),
        residual_square: average(mu2_squared),
        unexplained: average(tau2_squared),
        cost: _inverse_resolvent(residual_square, c * slope_square) / (beta * c),
    }
    if {student.parity, teacher.parity} == {Parity.EVEN, Parity.ODD}:
        # Nothing is learnt. Left to quadrature, zeros would have no relative accuracy.
        values |= dict.fromkeys((overlap, along_overlap, slope_overlap), sp.S.Zero)
    outputs = {
        name: error(penalty, shape)
        for name, penalty in (("upper", None), ("lower", sp.S.Zero), ("limit", cost))
    }
    # Of a number that vanishes, as ϑ where U is stationary, every digit is rounding: next to
    # slopes, which are there to find such points, it would spoil the error estimates.
    outputs |= _slopes() if slopes else _overlaps()
    return _without_vanishing(definitions, values, outputs, correlated_norms)


def _overlaps() -> dict[str, sp.Expr]:
    best = overlap / mean_square
    found = {"m_upper": best}
    for name, penalty in (("lower", sp.S.Zero), ("limit", cost)):
        along, across = coefficients(penalty)
        found |= {
            f"m_{name}": best - tilt * along, f"theta_{name}": along, f"psi_{name}": across
        }  # fmt: skip
    return found


def _slopes() -> dict[str, sp.Expr]:
    found = {}
    moved_by = {"slope": (kappa * mu1, kappa * chi), "widening": (chi / 2, chi_slope / 2)}
    for name, penalty in (("upper", None), ("lower", sp.S.Zero)):
        along, across = coefficients(penalty)
        mean = overlap / mean_square - tilt * along
        residual = T0 - mean * mu0 - along * kappa * mu1
        for change, (of_mu0, of_mu1) in moved_by.items():
            moved = mean * of_mu0 + along * kappa * of_mu1
            found[f"{name}_{change}"] = -2 * average(residual * moved) - 2 * across * average(
                (T1 - across * mu1) * of_mu1
            )
    return found


def _inverse_resolvent(a: sp.Expr, b: sp.Expr) -> sp.Expr:
    """Return 1/E[1/(a + bX)], which is finite where a vanishes."""
    branches = Resolvent(a, b, beta).rewrite(sp.Piecewise).args
    return sp.Piecewise(*((1 / value, condition) for value, condition in branches))


def _without_vanishing(
    definitions: dict[sp.Expr, sp.Expr],
    values: dict[sp.Symbol, sp.Expr],
    outputs: dict[str, sp.Expr],
    correlated_norms: bool,
) -> SaddlePointSystem:
    """Leave out functions that vanish, and the shapes that they would span."""
    zero = {f: sp.S.Zero for f, value in definitions.items() if value == 0}
    gone: dict[sp.Expr, sp.Expr] = dict(zero)
    if mu0 in zero:
        gone |= {mean_square: sp.S.One, overlap: sp.S.Zero, tilt: sp.S.Zero}
    if mu1 in zero:
        gone |= {
            along_square: sp.S.One, along_size: sp.S.One, along_overlap: sp.S.Zero,
            slope_square: sp.S.One, slope_overlap: sp.S.Zero, cost: sp.S.One,
        }  # fmt: skip
    while True:
        values = {x: value.subs(gone) for x, value in values.items() if x not in gone}
        more = {x: value for x, value in values.items() if value == 0}
        if not more:
            break
        gone |= more
    outputs = {
        name: sp.sympify(value, strict=True).subs(gone).doit() for name, value in outputs.items()
    }
    used = set(values) & set().union(
        *(e.free_symbols for e in outputs.values()), *(e.free_symbols for e in values.values())
    )
    kept = {
        f: value.subs(zero) if zero else value for f, value in definitions.items() if f not in zero
    }
    parameters = (beta, r, c, gamma, rho, *((norm_overlap,) if correlated_norms else ()))
    names = {**IDENTIFIERS, norm_overlap: "norm_overlap", **_IDENTIFIERS}
    return SaddlePointSystem.from_fixed_point(
        {x: value for x, value in values.items() if x in used},
        name="spiked_random_features_bounds",
        parameters=parameters,
        outputs=outputs,
        definitions=kept,
        node=kappa,
        identifiers={x: name for x, name in names.items() if x in used or x in parameters},
        source=SOURCE,
        title="Bounds of the test error of spiked random features, and its limit for many samples",
    )


# ------------------------------------------------------------------ limits

_OVERLAPS = ("m", "theta", "psi", "q1", "q2")


@dataclass(frozen=True, repr=False)
class Asymptotics(Result):
    r"""Where the test error of a model goes.

    Attributes
    ----------
    many_samples : float or mpmath number
        α → ∞ at fixed β and any fixed λ > 0: E_∞.
    many_samples_and_neurons : float or mpmath number
        β → ∞ after α → ∞: the lower bound L.
    strong_ridge : float or mpmath number
        λ → ∞ at fixed α and β: the upper bound U. Only m survives, which costs nothing.
    order_parameters : mapping from str to float
        m, ϑ, ψ, q_1 and q_2 for α → ∞, and the rescaled responses ``V1_scaled``, ``V2_scaled``:
        V_i → (β/α) times them. Empty where V_2 diverges, for an affine student at β ≥ 1.
    error : float
        Estimated error of `many_samples`.
    """

    _document = "limits of the test error"
    _column = 31

    many_samples: Number = field(metadata=quantity("test error, α → ∞", r"E_\infty"))
    many_samples_and_neurons: Number = field(
        metadata=quantity("test error, α → ∞, then β → ∞", "L")
    )
    strong_ridge: Number = field(metadata=quantity("test error, λ → ∞", "U"))
    order_parameters: Mapping[str, Number]
    error: Number
    digits: int | None = None

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        if self.digits is not None:
            return (
                f"{self.digits} digits asked for; estimated error of the limit "
                f"{error_text(self.error)}; digits cut off, not rounded"
            )
        return f"float with an error estimate of {self.error:.1e}"

    def page(self) -> Iterable[Block]:
        """Return the limits and the order parameters of the first."""
        numbers, rests_on = super().page()
        yield numbers
        overlaps = ", ".join(f"{k} = {float(v):.6g}" for k, v in self.order_parameters.items())
        yield f"for α → ∞: {overlaps or 'V_2 diverges, the features are affine'}"
        yield rests_on


def asymptotics(model: SpikedRandomFeatures, *, digits: int | None = None) -> Asymptotics:
    """Return the limits of the test error: α → ∞, then β → ∞, and λ → ∞.

    Parameters
    ----------
    digits : int, optional
        Refine to so many digits with mpmath.
    """
    refuse_directions(model.teacher, "asymptotics")
    digits = None if digits is None else checked_digits(digits)
    bound = bounds(model, digits=digits)
    names = {**{name: name for name in _OVERLAPS}, "V1_scaled": "V1", "V2_scaled": "V2"}
    try:
        values = limit_kernel(model).solve(digits=digits).values
        found = {label: values.get(name, 0.0) for label, name in names.items()}
    except ConvergenceError:
        # An affine student has no conditional noise: for β >= 1 V_2 is infinite then.
        found = {}
    return Asymptotics(
        many_samples=bound.limit,
        many_samples_and_neurons=bound.lower,
        strong_ridge=bound.upper,
        order_parameters=found,
        error=bound.errors["limit"],
        digits=digits,
    )


def limit_kernel(model: SpikedRandomFeatures) -> Kernel:
    """Return the saddle point for α → ∞ as a kernel, the parameters of a model as defaults."""
    refuse_directions(model.teacher, "the limit of infinitely many samples")
    case = _case(model)
    kernel = Kernel(
        name="spiked_random_features_limit",
        title=f"Infinitely many samples, student {model.student}, teacher {model.teacher}",
        code=_limit_code(model._cache, model.student, model.teacher, **case),
        domains={**spike_domains(**case), "noise_variance": "nonnegative"},
        make=partial(_lowered, limit_system, model.student, model.teacher, **case),
        cache_folder=model._cache.folder,
    )
    return with_defaults(kernel, model)


@derived("spiked_random_features/limit", KernelCode)
def _limit_code(student: str, teacher: str, **flags: Any) -> KernelCode:
    return code_of_bounds(lambda: _lowered(limit_system, student, teacher, **flags))


# ------------------------------------------------------------------ limit system

# Without λ the resolvent needs a positive one: features that are not linear in the input.
V2_HAT = sp.Symbol("Vhat_2", positive=True)


def limit_free_energy(student: Activation, teacher: Activation, **case: Unpack[Case]) -> FreeEnergy:
    r"""Return :math:`f_0 = \lim_{\varepsilon \to 0} \varepsilon f` in the scaled variables.

    The variables keep their names: V and the conjugates are those of the model divided or
    multiplied by ε = β/α. V and \hat q do not occur in the limit.
    """
    found = fe.spiked_free_energy(student, teacher, **case).free_energy
    epsilon = sp.Symbol("epsilon", positive=True)
    positive = {fe.V2_hat: V2_HAT}
    scaled = {x: x / epsilon for x in found.conjugates} | {
        fe.V1: fe.V1 * epsilon,
        fe.V2: fe.V2 * epsilon,
        fe.alpha: fe.beta / epsilon,
    }

    marks: dict[sp.Expr, sp.Expr] = {}
    limits: dict[sp.Expr, sp.Expr] = {}
    for node in found.expression.atoms(GaussianExpectation, MarchenkoPasturAverage):
        inside, *bound = node.args
        inside, mark = inside.xreplace(scaled).xreplace(positive), sp.Dummy()
        if isinstance(node, MarchenkoPasturAverage):
            # 1/S is ε over something that has a limit.
            inside = sp.cancel(inside / epsilon)
            marks[node] = epsilon * mark
        else:
            marks[node] = mark
        limits[mark] = node.func(inside.subs(epsilon, 0), *bound)
    whole = (epsilon * found.expression.xreplace(marks).xreplace(scaled)).expand()
    expression = whole.subs(epsilon, 0).xreplace({**limits, **positive})
    kept = expression.free_symbols
    return FreeEnergy(
        expression=expression,
        order_parameters=tuple(x for x in found.order_parameters if x in kept),
        conjugates=tuple(x for x in (positive.get(x, x) for x in found.conjugates) if x in kept),
        parameters=tuple(x for x in found.parameters if x not in (fe.alpha, fe.ridge)),
        definitions=found.definitions,
        source="derived here from the free energy of Result 3.3 of Cui et al., arXiv 2402.04980",
    )


def limit_system(
    student: Activation, teacher: Activation, **case: Unpack[Case]
) -> SaddlePointSystem:
    """Return the saddle point for α → ∞, with the test error, V1 and V2 as outputs."""
    energy = fe.spiked_free_energy(student, teacher, **case)
    resolvent = 1 / (V2_HAT + fe.V1_hat * fe.c * fe.eigenvalue)
    return SaddlePointSystem.from_free_energy(
        determined(limit_free_energy(student, teacher, **case)),
        name="spiked_random_features_limit",
        node=fe.kappa,
        identifiers={**fe.IDENTIFIERS, V2_HAT: "V2_hat", fe.norm_overlap: "norm_overlap"},
        outputs={
            "test_error": energy.test_error,
            "V1": MarchenkoPasturAverage(fe.c * fe.eigenvalue * resolvent, fe.eigenvalue, fe.beta),
            "V2": MarchenkoPasturAverage(resolvent, fe.eigenvalue, fe.beta),
        },
        title="Spiked random features with infinitely many samples",
    )


# ------------------------------------------------------------------ realised functions

_REACH, _POINTS = 3.5, 281


def realised_functions(
    model: SpikedRandomFeatures,
    *,
    kappa: object = None,
    alpha: float | None = None,
    ridge: float | None = None,
) -> xr.Dataset:
    """Return, along the spike, the target and the functions that have the errors L, E_∞ and U.

    Parameters
    ----------
    kappa : array-like (n,), optional
        Projections on the spike; default 281 points from -3.5 to 3.5.
    alpha, ridge : float, optional
        Both: add the function that is learnt at this sample complexity and ridge penalty.
    """
    refuse_directions(model.teacher, "realised functions")
    if (alpha is None) != (ridge is None):
        raise ParameterError("alpha and ridge go together: give both for the learnt function")
    x = np.linspace(-_REACH, _REACH, _POINTS) if kappa is None else _checked(kappa)
    found = bounds(model)
    sets = {
        "upper": (found.upper_coefficient, 0.0),
        "lower": found.lower_coefficients[:2],
        "limit": found.limit_coefficients[:2],
    }
    if alpha is not None and ridge is not None:
        solution = model.solve(
            alpha=positive_number("alpha", alpha), ridge=positive_number("ridge", ridge)
        )
        sets["learnt"] = (solution.m, solution.theta)
    columns: dict[str, Any] = {}
    attributes: dict[str, Any] = {"student": model.student, "teacher": model.teacher}
    for name, (mean, overlap) in sets.items():
        tables = _tables(model, x, mean, overlap)
        columns[name] = ("kappa", tables["realised"])
        attributes |= {f"m_{name}": float(mean), f"theta_{name}": float(overlap)}
    spread = np.sqrt(tables["target_variance"])
    given = "at this projection"
    columns = {
        "target": ("kappa", tables["target"], {"long_name": f"mean target {given}"}),
        "target_spread": ("kappa", spread, {"long_name": f"standard deviation {given}"}),
        "linear": ("kappa", tables["linear"], {"long_name": f"best linear predictor {given}"}),
        **columns,
    }
    errors = {
        "error_upper": found.upper, "error_lower": found.lower, "error_limit": found.limit,
        "error_linear": found.linear,
    }  # fmt: skip
    return labelled(columns, {"kappa": x}, {**attributes, **errors})


def _tables(model: SpikedRandomFeatures, x: Any, m: float, theta: float) -> dict[str, Any]:
    """Return the functions at given projections, the prediction with overlaps m and ϑ."""
    spike, cache = model.spike, model._cache
    source = _source(cache, model.student, model.teacher, **_case(model))
    values = (
        spike.spike_strength, spike.bulk_variance, spike.alignment, spike.orthogonal_alignment,
        spike.norm_overlap, m, theta,
    )  # fmt: skip
    module = cache.load_module("realised_functions", source)
    found = Tables(module, values)(x)
    names = ("target", "target_variance", "linear", "realised")
    # Functions that vanish have no table, and constants have one value.
    return {name: np.broadcast_to(found.get(name, 0.0), x.shape).copy() for name in names}


@derived("spiked_random_features/realised", str)
def _source(student: str, teacher: str, **flags: Any) -> str:
    return realised_table_source(
        activation(student, argument="student"), activation(teacher, argument="teacher"), **flags
    )


def _checked(kappa: object) -> Any:
    try:
        x = np.atleast_1d(np.asarray(kappa, dtype=float))
    except (TypeError, ValueError):
        x = np.zeros((0, 0))
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise ParameterError(
            f"kappa must be finite numbers in one dimension, such as [-1, 0, 1], got {kappa!r}"
        )
    return x
