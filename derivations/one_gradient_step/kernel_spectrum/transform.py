r"""The transform :math:`g(z) = \frac1n\operatorname{tr}(K - z)^{-1}` off the spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....digits import checked_digits
from ....errors import ParameterError
from ....numeric.arguments import complex_array
from ....runtime.roots import newton
from .curve import Complex
from .model_numbers import curve_of, rounded_to

if TYPE_CHECKING:
    from ..model import OneGradientStep
    from .spectrum import ConjugateKernel

# Squares of larger numbers overflow.
_FARTHEST = 1e100


def transform_at(kernel: ConjugateKernel, z: object, digits: int | None) -> Any:
    """Return the transform at points; see ``ConjugateKernel.stieltjes``."""
    points = complex_array("z", z)
    flat = points.ravel()
    for far in flat[np.maximum(abs(flat.real), abs(flat.imag)) > _FARTHEST]:
        raise ParameterError(
            f"z = {far:g} is too large: beyond {_FARTHEST:g} the transform is -1/z in floats"
        )
    _refuse_spectrum(kernel, flat)
    upper = np.where(flat.imag < 0, np.conj(flat), flat)
    root = kernel._curve.effective_ridge(upper)
    root = np.where(flat.imag < 0, np.conj(root), root)
    model = kernel.model
    if digits is not None:
        if points.ndim:
            raise ParameterError("digits are for one z at a time, not for an array")
        return _refined(model, complex(flat[0]), complex(root[0]), digits)
    found = (model.beta / model.alpha / root).reshape(points.shape)
    return complex(found) if points.ndim == 0 else found


def _refuse_spectrum(kernel: ConjugateKernel, z: Complex) -> None:
    for x in z[z.imag == 0].real:
        if x == 0 and float(kernel.atom) > 0:
            raise ParameterError(
                f"z = 0 is an eigenvalue of mass {float(kernel.atom):g}, where the transform is "
                "infinite; give another z"
            )
        for low, high in kernel._curve.float_edges:
            if low <= x <= high:
                raise ParameterError(
                    f"z = {x:g} lies on the real axis inside the bulk, between {low:g} and "
                    f"{high:g}, where the transform depends on the side from which it is "
                    f"reached; give a complex z, such as {x:g}+1e-6j, or take density({x:g})"
                )


def _refined(model: OneGradientStep, z: complex, start: complex, digits: int) -> Any:
    """Refine a root of the quartic in mpmath."""
    count = checked_digits(digits)
    curve = curve_of(model, count)
    ctx = curve.context
    alpha, beta, slope, floor = curve._numbers
    point, root = ctx.mpc(z), ctx.mpc(start)
    rows = list(curve.functions.quartic(point, slope, floor, alpha, beta))

    def move(x: Any) -> Any:
        value, rate = ctx.polyval(rows, x, derivative=True)
        return value / rate if rate else ctx.zero

    found = newton(move, root, ctx.mpf(10) ** (-count - 10), f"the transform at z = {z}")
    return rounded_to(count).mpc(beta / alpha / found)
