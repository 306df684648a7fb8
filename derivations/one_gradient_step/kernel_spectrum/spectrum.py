r"""The spectrum of a model's conjugate kernel: bulk, outlier, threshold, labels."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ConvergenceError, ParameterError
from ....numeric.arguments import whole_number
from ...spiked_random_features.arguments import checked_digits, checked_switch
from .bulk import KernelBulk, kernel_bulk, kernel_density
from .curve import Complex, KernelCurve, Real
from .derivation import spectrum_functions

if TYPE_CHECKING:
    import xarray as xr

    from ..model import OneGradientStep
    from .expected import ExpectedKernel

_FEWEST, _MOST = 50, 20_000
_FLOAT_DIGITS = 17
# Of the moments, beyond those of the results.
_SPARE_DIGITS = 30


@dataclass(frozen=True)
class ConjugateKernel:
    r"""Spectrum of :math:`K = \Phi\Phi^\top`, n × n, on α d fresh samples, for d → ∞.

    :math:`\Phi = \sigma(XW)/\sqrt N` with W before or after the step. A bulk of one or two
    intervals, zeros if K has no full rank, and at most one outlier. Scalars are floats, or mpmath
    numbers if digits were asked for.

    Attributes
    ----------
    model : OneGradientStep
    trained : bool
        After the step; else at initialisation, where there is no outlier.
    digits : int or None
        Digits asked for.
    edges : array (k, 2)
        Intervals of the bulk, ascending.
    masses : array (k,)
        Share of the eigenvalues in each interval.
    atom : float
        Share of zeros, 1 − rank/n; the rank is min(n, N), or min(n, N, d) for a linear student.
    bulk_edge : float
        Right edge of the bulk.
    threshold : float
        T_c, the :math:`\theta_1^2` above which there is an outlier; larger than √β, the threshold
        of the first layer. Infinite without a linear part of the student.
    spike : float
        :math:`\theta_1^2`, the squared length of the spike of the first layer; zero before the
        step.
    outlier : float or None
        The eigenvalue outside the bulk, :math:`\zeta(\theta_1^2)`.
    label_alignment : float
        Limit of :math:`(u_1\cdot y/|y|)^2` for fresh labels y and the outlier's eigenvector u_1;
        zero if there is no outlier.
    critical_step_size : float
        Step size from which there is an outlier, for the `loss` of the model; larger than that of
        the first layer. Infinite if there is none at any step size.

    Notes
    -----
    :attr:`rests_on` says what the results rest on.
    """

    model: OneGradientStep
    trained: bool
    digits: int | None
    edges: Real
    masses: Real
    atom: Any
    bulk_edge: Any
    threshold: Any
    spike: Any
    outlier: Any
    label_alignment: Any
    critical_step_size: Any
    _curve: KernelCurve = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Numbers of a local mpmath context cannot be pickled; the other process computes its own.
        return conjugate_kernel, (self.model, self.trained, self.digits)

    def __eq__(self, other: object) -> bool:
        # The rest follows from these.
        if not isinstance(other, ConjugateKernel):
            return NotImplemented
        mine, theirs = ((k.model, k.trained, k.digits) for k in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.model, self.trained, self.digits))

    # ------------------------------------------------------------------ numbers

    @property
    def supercritical(self) -> bool:
        """Whether there is an outlier."""
        return self.outlier is not None

    @property
    def eigenvalue(self) -> Any:
        """The largest eigenvalue: the outlier, or the edge of the bulk."""
        return self.bulk_edge if self.outlier is None else self.outlier

    @property
    def singular_value(self) -> Any:
        """The largest singular value of Φ."""
        value = self.eigenvalue
        return math.sqrt(value) if self.digits is None else self._curve.context.sqrt(value)

    @cached_property
    def expected(self) -> ExpectedKernel:
        """The covariance of the features over fresh inputs."""
        from .expected import expected_kernel

        return expected_kernel(self)

    @property
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""
        bulk = "the bulk and its edges: deterministic equivalent, derived here"
        if not self.trained:
            return bulk
        odd = self.model.student_moments.odd
        return (
            f"{bulk}; the outlier: derived here for linearised features, for those of the network "
            "a conjecture of Ba et al. (arXiv 2205.01445)"
            + ("" if odd else " that is stated for odd students")
            + ", supported by simulations"
        )

    def density(self, x: object) -> Any:
        """Return the density of the bulk at points of the real axis.

        One is the mass of all n eigenvalues, zeros included. Zero off the bulk; infinite at an
        edge at zero.

        Raises
        ------
        ParameterError
            If x are no finite real numbers.
        """
        points = _complex_array("x", x)
        if points.imag.any():
            raise ParameterError("x must be real: the density is one of real eigenvalues")
        found = kernel_density(self._curve, points.real)
        return float(found) if points.ndim == 0 else found

    def cumulative_at(self, x: object) -> Any:
        """Return the share of eigenvalues up to points x, zeros included.

        Raises
        ------
        ParameterError
            If x are no finite real numbers.
        """
        points = _complex_array("x", x)
        if points.imag.any():
            raise ParameterError("x must be real: eigenvalues are")
        flat = points.real.ravel()
        found = np.where(flat >= 0, float(self.atom), 0.0)
        share = float(self.atom)
        for (low, high), mass in zip(self._curve.float_edges, self.masses, strict=True):
            inside = (flat > low) & (flat < high)
            if inside.any():
                counted = self._curve.share_below(flat[inside])
                found[inside] = np.clip(counted, share, share + float(mass))
            share += float(mass)
            found[flat >= high] = share
        found = found.reshape(points.shape)
        return float(found) if points.ndim == 0 else found

    def stieltjes(self, z: object, digits: int | None = None) -> Any:
        r"""Return :math:`g(z) = \lim\frac1n\operatorname{tr}(K - z)^{-1}`, zeros of K included.

        Parameters
        ----------
        z : complex or array-like of complex
            Any points off the spectrum; real ones off the bulk.
        digits : int, optional
            Of one point, so many digits with mpmath; its floats are read exactly.

        Returns
        -------
        complex, array of complex, or mpmath number

        Raises
        ------
        ParameterError
            If a point lies on the spectrum, or is no finite number.
        """
        points = _complex_array("z", z)
        flat = points.ravel()
        self._refuse_spectrum(flat)
        upper = np.where(flat.imag < 0, np.conj(flat), flat)
        root = self._curve.effective_ridge(upper)
        root = np.where(flat.imag < 0, np.conj(root), root)
        if digits is not None:
            if points.ndim:
                raise ParameterError("digits are for one z at a time, not for an array")
            return self._precise_transform(complex(flat[0]), complex(root[0]), digits)
        found = (self.model.beta / self.model.alpha / root).reshape(points.shape)
        return complex(found) if points.ndim == 0 else found

    def bulk(self, points: int = 400) -> KernelBulk:
        """Return the bulk on a grid of so many points in each interval.

        Raises
        ------
        ParameterError
            If `points` is no whole number from 50 to 20000.
        """
        count = whole_number("points", points, minimum=_FEWEST)
        if count > _MOST:
            raise ParameterError(f"points must be at most {_MOST}, got {count}")
        return kernel_bulk(self._curve, count)

    @cached_property
    def mass_error(self) -> float:
        """By how much atom and integrated density together differ from one."""
        return abs(float(self.atom) + float(self.bulk(200).masses.sum()) - 1)

    def _refuse_spectrum(self, z: Complex) -> None:
        for x in z[z.imag == 0].real:
            if x == 0 and float(self.atom) > 0:
                raise ParameterError(
                    f"z = 0 is an eigenvalue of mass {float(self.atom):g}, where the transform is "
                    "infinite; give another z"
                )
            for low, high in self._curve.float_edges:
                if low <= x <= high:
                    raise ParameterError(
                        f"z = {x:g} lies on the real axis inside the bulk, between {low:g} and "
                        f"{high:g}, where the transform depends on the side from which it is "
                        f"reached; give a complex z, such as {x:g}+1e-6j, or take density({x:g})"
                    )

    def _precise_transform(self, z: complex, start: complex, digits: int) -> Any:
        """Refine a root of the quartic in mpmath."""
        count = checked_digits(digits)
        curve = _curve(self.model, count)
        ctx = curve.context
        alpha, beta, slope, floor = curve._numbers
        point, root = ctx.mpc(z), ctx.mpc(start)
        rows = list(curve.functions.precise_quartic(ctx, point, slope, floor, alpha, beta))
        for _ in range(200):
            value, rate = ctx.polyval(rows, root, derivative=True)
            step = value / rate if rate else ctx.zero
            root -= step
            if abs(step) <= abs(root) * ctx.mpf(10) ** (-count - 10):
                return _rounded_to(count).mpc(beta / alpha / root)
        raise ConvergenceError(f"the transform at z = {z} cannot be refined to {count} digits")

    # ------------------------------------------------------------------ presentation

    def plot(self, simulation: Any = None, *, ax: Any = None) -> Any:
        """Draw density, edge and outlier; see :func:`.kernel_spectrum.figure.plot_kernel_spectrum`.

        Parameters
        ----------
        simulation : Dataset or array of eigenvalues, optional
            As ``OneGradientStep.simulate_spectra`` returns it; drawn as histograms.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        from .figure import plot_kernel_spectrum

        return plot_kernel_spectrum(self, simulation, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: scalars as floats, or as text if digits were asked for."""
        from .files import kernel_values

        return kernel_values(self)

    def to_json(self) -> str:
        """Return :meth:`to_dict` as JSON; infinity is the text "inf"."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_dataset(self, points: int = 400) -> xr.Dataset:
        """Return density and cumulative share over ``eigenvalue``, with everything else beside."""
        from .files import kernel_dataset

        return kernel_dataset(self, points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the spectrum to a file as JSON; :meth:`load` reads it."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ConjugateKernel:
        """Return the spectrum that :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file holds something else.
        """
        from .files import read_kernel

        return read_kernel(path)

    def __str__(self) -> str:
        from .files import kernel_text

        return kernel_text(self)

    def _repr_latex_(self) -> str:
        from .files import kernel_latex

        return kernel_latex(self)


def conjugate_kernel(
    model: OneGradientStep, trained: object = True, digits: object = None
) -> ConjugateKernel:
    """Return the spectrum of a model's kernel; see ``OneGradientStep.conjugate_kernel``."""
    after = checked_switch("trained", trained)
    count = None if digits is None else checked_digits(digits)
    curve = _curve(model, count)
    ctx, functions = curve.context, curve.functions
    step = _step_numbers(model, curve)
    spike = functions.spike_square(ctx, *step) if after else ctx.zero
    threshold = curve.threshold
    outlier, alignment = None, ctx.zero
    if spike > threshold:
        outlier = curve.zeta(spike)
        alignment = functions.label_alignment(ctx, spike, *curve._ratios, *step)
    if not math.isfinite(float(outlier or 0)) or not math.isfinite(float(spike)):
        raise ParameterError(
            f"step_size = {model.step_size:g} makes an eigenvalue that is too large for a float; "
            "take a smaller one"
        )
    number: Any = float if count is None else _rounded_to(count).mpf
    return ConjugateKernel(
        model=model,
        trained=after,
        digits=count,
        edges=_array(curve.edges, number),
        masses=_array(curve.masses, number),
        atom=number(curve.atom),
        bulk_edge=number(curve.edges[-1][1]),
        threshold=number(threshold),
        spike=number(spike),
        outlier=None if outlier is None else number(outlier),
        label_alignment=number(alignment),
        critical_step_size=number(_critical_step_size(model, curve, step)),
        _curve=curve,
    )


def _rounded_to(digits: int) -> Any:
    """Return an mpmath context whose numbers print as so many digits."""
    import mpmath

    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx


def _array(values: Any, number: Any) -> NDArray[Any]:
    """Return nested tuples as an array of floats, or of mpmath numbers."""
    rows = [[number(x) for x in row] if isinstance(row, tuple) else number(row) for row in values]
    return np.array(rows)


def _curve(model: OneGradientStep, digits: int | None) -> KernelCurve:
    wanted = _FLOAT_DIGITS if digits is None else digits
    moments = model.student_moments.precise(wanted + _SPARE_DIGITS)
    return KernelCurve(
        spectrum_functions(model.cache),
        model.alpha,
        model.beta,
        moments["linear"],
        moments["residual"],
        wanted,
    )


def _step_numbers(model: OneGradientStep, curve: KernelCurve) -> tuple[Any, ...]:
    """Return the arguments of the functions of the step, as numbers of the context."""
    ctx = curve.context
    teacher = model.teacher_moments.precise(curve.digits + _SPARE_DIGITS)
    factor = 2 if model.loss == "full" else 1
    return (
        ctx.inf if model.step_samples == math.inf else ctx.mpf(repr(model.step_samples)),
        factor * ctx.mpf(repr(model.step_size)),
        ctx.mpf(repr(model.noise_variance)),
        ctx.mpf(curve.linear),
        ctx.mpf(teacher["linear"]),
        ctx.mpf(teacher["residual"]),
    )


def _critical_step_size(model: OneGradientStep, curve: KernelCurve, step: tuple[Any, ...]) -> Any:
    """Return it in the loss convention of the model."""
    ctx, functions = curve.context, curve.functions
    unit = functions.spike_square(ctx, step[0], ctx.one, *step[2:])
    if not unit or curve.pure_noise or model.student_moments.jumps:
        return ctx.inf
    factor = 2 if model.loss == "full" else 1
    return functions.critical_step_size(ctx, curve.threshold, *step) / factor


def _complex_array(name: str, z: object) -> Complex:
    """Return finite numbers as an array of complex ones."""
    try:
        found = np.asarray(z)
        if found.dtype.kind not in "fiuc":
            raise TypeError
        found = found.astype(complex)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, got {z!r}") from None
    if not np.isfinite(found).all():
        raise ParameterError(f"{name} must be finite")
    return found
