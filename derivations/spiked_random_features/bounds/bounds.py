"""Bounds of the test error of a model, and its limit for many samples, as numbers.

The expressions are those of :mod:`.bound_system`; here they become a kernel, which is cached like
every other, and answers with floats and estimated errors or with any number of digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ....digits import checked_digits
from ....numeric.cache import FileCache
from ....numeric.kernel_code import KernelCode
from ....result import Number, Result, quantity
from ...certificates.certificate import Certificate
from ...certificates.wanted import certificate_wanted
from ...derived import derived
from ...kernels.kernel import Kernel

if TYPE_CHECKING:
    import sympy as sp

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
            from ...kernels.precise import promise

            return promise(self.digits, self.errors, self.estimated())
        return f"float with error estimates of at most {max(self.errors.values()):.1e}"


def bounds(
    model: SpikedRandomFeatures, *, digits: int | None = None, certify: bool = False
) -> Bounds:
    """Return the bounds of a model; see :meth:`.analyses.Analyses.bounds`."""
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
    from .span_bounds import span_bounds

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
    from ....runtime.precision import local_context
    from ....symbolic.activations import activation
    from ..mapping import best_linear_error

    expression = best_linear_error(activation(teacher, argument="teacher"))
    return local_context(digits).mpf(str(expression.evalf(digits + _SPARE_DIGITS)))


def bound_expressions(
    student: str, teacher: str, *, unspiked: bool = False, aligned: bool = False
) -> dict[str, sp.Expr]:
    r"""Return L, E_∞ and U as SymPy expressions in r, c, γ, ρ and β, with 𝔼 nodes.

    Parameters
    ----------
    student, teacher : str
        Activations.
    unspiked, aligned : bool
        Exactly r = 0, exactly \|γ\| = 1.

    Returns
    -------
    dict of str to Expr
        ``lower``, ``limit``, ``upper``, and ``linear``, which holds no parameter.
    """
    from ....symbolic.activations import activation
    from ..mapping import best_linear_error
    from .bound_system import bound_system

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
    """Return the bounds of a model as a kernel, its parameters as defaults.

    Parameters
    ----------
    model : SpikedRandomFeatures
    slopes : bool
        With the derivatives of U and L with respect to r.
    """
    model._refuse_other_rows("bounds")
    flags = dict(model._case)
    del flags["stretched"]
    kernel = activation_bounds(
        model.student, model.teacher, **flags, slopes=slopes, cache=model._cache
    )
    return with_defaults(kernel, model)


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
    student: str,
    teacher: str,
    *,
    unspiked: bool,
    aligned: bool,
    correlated_norms: bool = False,
    slopes: bool = False,
    cache: FileCache,
) -> Kernel:
    """Return the bounds of a pair of activations as a kernel, without values of its parameters."""
    flags = {
        "unspiked": unspiked,
        "aligned": aligned,
        "correlated_norms": correlated_norms,
        "slopes": slopes,
    }
    return Kernel(
        name="spiked_random_features_bounds",
        title=f"{TITLE}, student {student}, teacher {teacher}",
        code=_code(cache, student, teacher, **flags),
        domains=spike_domains(
            unspiked=unspiked, aligned=aligned, correlated_norms=correlated_norms
        ),
        make=partial(_lowered, student, teacher, **flags),
        cache_folder=cache.folder,
    )


def spike_domains(*, unspiked: bool, aligned: bool, correlated_norms: bool) -> dict[str, str]:
    """Return which numbers the parameters of a spike may be."""
    return {
        "beta": "positive",
        "spike_strength": "zero" if unspiked else "real",
        "bulk_variance": "positive",
        "alignment": "unit" if aligned else "real",
        "orthogonal_alignment": "zero" if aligned else "positive",
        **({"norm_overlap": "real"} if correlated_norms else {}),
    }


@derived("spiked_random_features/bounds/bounds", KernelCode)
def _code(student: str, teacher: str, **flags: bool) -> KernelCode:
    return code_of_bounds(lambda: _lowered(student, teacher, **flags))


def code_of_bounds(make: Callable[[], LoweredSystem]) -> KernelCode:
    """Return the code of a system of bounds, with a bar while it is lowered and printed."""
    from ...kernels.code import deriving, kernel_code

    with deriving("the bounds", 2) as done:
        lowered = make()
        done()
        return kernel_code(lowered)


def _lowered(student: str, teacher: str, **flags: bool) -> LoweredSystem:
    from ....symbolic.activations import activation
    from ....symbolic.lowering.lowered import lower
    from .bound_system import bound_system

    return lower(
        bound_system(
            activation(student, argument="student"),
            activation(teacher, argument="teacher"),
            **flags,
        )
    )


def _exact_defaults(
    model: SpikedRandomFeatures, names: tuple[str, ...], ctx: Any
) -> dict[str, Any]:
    from ..refine import exact_parameters

    exact = exact_parameters(model, ctx)
    return {name: exact[name] for name in names}


def _proven_defaults(
    model: SpikedRandomFeatures, names: tuple[str, ...], digits: int
) -> dict[str, Any]:
    from ..certified import proven_parameters

    proven = proven_parameters(model, digits)
    return {name: proven[name] for name in names}
