r"""The spectrum of a model's conjugate kernel: bulk, outlier, threshold, labels."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....atomic_files import write_atomically
from ....digits import checked_digits
from ....errors import ParameterError
from ....numeric.arguments import complex_array, whole_number
from ....pages import Block, Page, Typeset
from ...certificates.wanted import certificate_wanted
from ...spiked_random_features.arguments import checked_switch
from .bulk import KernelBulk, kernel_bulk, kernel_density
from .curve import KernelCurve, Real
from .model_numbers import critical_step_size, curve_of, rounded_to, step_numbers
from .transform import transform_at

if TYPE_CHECKING:
    import xarray as xr

    from ...certificates.certified_values import CertifiedValues
    from ..model import OneGradientStep
    from .expected import ExpectedKernel

_FEWEST, _MOST = 50, 20_000
# Of the moments, beyond those of the results.


@dataclass(frozen=True)
class ConjugateKernel(Page, Typeset):
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
    certificate : CertifiedValues or None
        Proven intervals of these scalars, which are then their midpoints.

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
    certificate: CertifiedValues | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # Numbers of a local mpmath context cannot be pickled; the other process computes its own.
        certify = self.certificate is not None
        return conjugate_kernel, (self.model, self.trained, self.digits, certify)

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
        if self.certificate is not None:
            bulk = f"{self.certificate.rests_on}; {bulk}"
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
        points = complex_array("x", x)
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
        points = complex_array("x", x)
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
            If a point lies on the spectrum, is no finite number or beyond 1e100.
        """
        return transform_at(self, z, digits)

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

    def page(self) -> Iterable[Block]:
        """Return the bulk, the outlier and what they rest on, line by line."""
        from .files import kernel_lines

        return kernel_lines(self)

    def latex(self) -> str:
        """Return the support, the threshold and the largest eigenvalue, without delimiters."""
        from .files import kernel_latex

        return kernel_latex(self)

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
        write_atomically(path, self.to_json() + "\n")

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


def conjugate_kernel(
    model: OneGradientStep,
    trained: object = True,
    digits: object = None,
    certify: object = False,
) -> ConjugateKernel:
    """Return the spectrum of a model's kernel; see ``OneGradientStep.conjugate_kernel``."""
    after = checked_switch("trained", trained)
    count = None if digits is None else checked_digits(digits)
    if certificate_wanted(certify):
        return _certified(conjugate_kernel(model, after, count))
    curve = curve_of(model, count)
    ctx, functions = curve.context, curve.functions
    step = step_numbers(model, curve)
    spike = functions.spike_square(*step) if after else ctx.zero
    threshold = curve.threshold
    outlier, alignment = None, ctx.zero
    if spike > threshold:
        outlier = curve.zeta(spike)
        alignment = functions.label_alignment(spike, *curve._ratios, *step)
    if not math.isfinite(float(outlier or 0)) or not math.isfinite(float(spike)):
        raise ParameterError(
            f"step_size = {model.step_size:g} makes an eigenvalue that is too large for a float; "
            "take a smaller one"
        )
    number: Any = float if count is None else rounded_to(count).mpf
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
        critical_step_size=number(critical_step_size(model, curve, step)),
        _curve=curve,
    )


def _certified(found: ConjugateKernel) -> ConjugateKernel:
    from ...certificates.certified_values import midpoint
    from ..certified_spikes import DEFAULT_DIGITS, certified_kernel

    proof = certified_kernel(found.model, found.trained, found.digits or DEFAULT_DIGITS)
    ctx = None if found.digits is None else rounded_to(found.digits)
    fields = ("bulk_edge", "threshold", "spike", "outlier", "label_alignment", "critical_step_size")
    numbers: dict[str, Any] = {x: midpoint(proof[x], ctx) for x in fields if x in proof.values}
    if "outlier" not in numbers:
        numbers["outlier"] = None
    return replace(found, **numbers, certificate=proof)


def _array(values: Any, number: Any) -> NDArray[Any]:
    """Return nested tuples as an array of floats, or of mpmath numbers."""
    rows = [[number(x) for x in row] if isinstance(row, tuple) else number(row) for row in values]
    return np.array(rows)
