"""The limits of a model as numbers: many samples, many neurons, a strong ridge penalty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ....digits import checked_digits, error_text
from ....errors import ConvergenceError
from ....numeric.kernel_code import KernelCode
from ....pages import Block
from ....result import Number, Result, quantity
from ...derived import derived
from ...kernels.kernel import Kernel
from .bounds import bounds, code_of_bounds, spike_domains, with_defaults

if TYPE_CHECKING:
    from ....symbolic.lowering.lowered import LoweredSystem
    from ..model import SpikedRandomFeatures

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
    digits : int or None
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
    """Return the limits of a model; see :meth:`.analyses.Analyses.asymptotics`."""
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
    flags = dict(model._case)
    del flags["stretched"]
    code = _code(model._cache, model.student, model.teacher, **flags)
    kernel = Kernel(
        name="spiked_random_features_limit",
        title=f"Infinitely many samples, student {model.student}, teacher {model.teacher}",
        code=code,
        domains={**spike_domains(**flags), "noise_variance": "nonnegative"},
        make=partial(_lowered, model.student, model.teacher, **flags),
        cache_folder=model._cache.folder,
    )
    return with_defaults(kernel, model)


@derived("spiked_random_features/limit", KernelCode)
def _code(student: str, teacher: str, **flags: bool) -> KernelCode:
    return code_of_bounds(lambda: _lowered(student, teacher, **flags))


def _lowered(student: str, teacher: str, **flags: bool) -> LoweredSystem:
    from ....symbolic.activations import activation
    from ....symbolic.lowering.lowered import lower
    from .limit_system import limit_system

    return lower(
        limit_system(
            activation(student, argument="student"),
            activation(teacher, argument="teacher"),
            **flags,
        )
    )
