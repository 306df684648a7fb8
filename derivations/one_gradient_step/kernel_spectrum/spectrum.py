r"""The spectrum of a model's conjugate kernel: bulk, outlier, threshold, labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ....digits import checked_digits
from ....errors import ParameterError
from ....pages import Block
from ....result import Number, quantity
from ...certificates.certified_values import CertifiedValues
from ...certificates.wanted import certificate_wanted
from ...figures import plain_text
from ...spectra.spectrum import Caption, SimulatedSpectrum, Spectrum
from ...spiked_random_features.arguments import checked_switch
from ..figures.axes import loss_note
from .curve import KernelCurve, Real, spectrum_sources

if TYPE_CHECKING:
    from ..model import OneGradientStep
    from .expected import ExpectedKernel

_FLOAT_DIGITS = 17
# Of the moments, beyond those of the results.
_SPARE_DIGITS = 30
# Numbers of another release may differ by rounding.
_AGREEMENT = 1e-9
_SIMULATED = {"kernel_eigenvalues": "network", "linearised_eigenvalues": "linearised features"}


@dataclass(frozen=True, eq=False, repr=False)
class ConjugateKernel(Spectrum):
    r"""Spectrum of :math:`K = \Phi\Phi^\top`, n × n, on α d fresh samples, for d → ∞.

    :math:`\Phi = \sigma(XW)/\sqrt N` with W before or after the step. A bulk of one or two
    intervals, zeros if K has no full rank, and at most one outlier. Scalars are floats, or mpmath
    numbers if digits were asked for.

    Attributes
    ----------
    model : OneGradientStep
    trained : bool
        After the step; else at initialisation, where there is no outlier.
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
    digits : int or None
        Digits asked for.
    certificate : CertifiedValues or None
        Proven intervals of these scalars, which are then their midpoints.
    edges, masses, soft, atoms
        As of every :class:`.spectra.spectrum.Spectrum`. The rank is min(n, N), or min(n, N, d) for
        a linear student.

    Notes
    -----
    :attr:`rests_on` says what the results rest on.
    """

    _document = "conjugate kernel of one gradient step"
    _kind = "kernel spectrum"
    _where = ("trained",)
    _asked = ("model", "trained", "digits")
    _derived = ("atom", "bulk_edge", "eigenvalue", "singular_value")

    model: OneGradientStep
    trained: bool
    threshold: Number = field(metadata=quantity("threshold", "T_c"))
    spike: Number = field(metadata=quantity("squared length of the spike", r"\theta_1^2"))
    outlier: Number | None = field(metadata=quantity("outlier", r"\zeta(\theta_1^2)"))
    label_alignment: Number = field(
        metadata=quantity("squared overlap with labels", r"\langle u_1, y/|y|\rangle^2")
    )
    critical_step_size: Number = field(metadata=quantity("critical step size", r"\eta_c"))
    digits: int | None = None
    certificate: CertifiedValues | None = None

    @classmethod
    def _imported(cls) -> dict[str, Any]:
        from ..model import OneGradientStep

        return {"OneGradientStep": OneGradientStep}

    # ------------------------------------------------------------------ numbers

    @cached_property
    def _law(self) -> KernelCurve:
        return curve_of(self.model, self.digits)

    @property
    def outliers(self) -> tuple[Any, ...]:
        """The outlier, if there is one."""
        return () if self.outlier is None else (self.outlier,)

    @property
    def singular_value(self) -> Any:
        """The largest singular value of Φ."""
        value = self.eigenvalue
        return math.sqrt(value) if self.digits is None else self._law.context.sqrt(value)

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

    density = Spectrum.density_at

    def _share_below(self, x: Real) -> Real:
        return self._law.share_below(x)

    def _precise(self, z: complex, start: complex, digits: int) -> Any:
        return rounded_to(digits).mpc(curve_of(self.model, digits).precise_transform(z, start))

    # ------------------------------------------------------------------ networks

    def simulate(
        self,
        dimension: int = 400,
        *,
        seeds: int = 3,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
    ) -> SimulatedSpectrum:
        """Return the eigenvalues of K of networks, trained if this kernel is.

        Parameters
        ----------
        dimension : int
            Input dimension d; α d and β d have to be (close to) whole numbers.
        seeds, seed : int
            Number of networks, and entropy.
        workers : int, optional
        progress : bool
        """
        found = self.model.simulate_spectra(
            dimension, seeds=seeds, seed=seed, matrices=("kernel",), workers=workers,
            progress=progress,
        )  # fmt: skip
        (_, descending), *_ = self._simulated(found)
        width = round(self.model.beta * dimension)
        return SimulatedSpectrum(descending[:, ::-1], None, width, dimension, self.trained)

    def _simulated(self, simulation: Any) -> list[tuple[str, Any]]:
        variables = getattr(simulation, "data_vars", None)
        if variables is None:
            return super()._simulated(simulation)
        step = 1 if self.trained else 0
        found = []
        for name in _SIMULATED.keys() & set(variables):
            if step not in simulation[name].step:
                raise ParameterError(
                    f"simulation holds no eigenvalues after {step} steps; the kernel is the one "
                    f"{self._when}"
                )
            found.append((_SIMULATED[name], simulation[name].sel(step=step).to_numpy()))
        if not found:
            raise ParameterError(
                "simulation must hold eigenvalues of kernels, as simulate_spectra(d, "
                "matrices=['kernel']) returns them"
            )
        return sorted(found, key=lambda pair: pair[0] != "network")

    # ------------------------------------------------------------------ presentation

    @property
    def _when(self) -> str:
        return "after the step" if self.trained else "before the step"

    def _caption(self, width: int | None) -> Caption:
        model, when = self.model, self._when
        if self.trained:
            when = rf"$\eta={model.step_size:.4g}${loss_note(model)}"
        title = (
            f"{plain_text(model.student)}/{plain_text(model.teacher)}, "
            rf"$\alpha={model.alpha:.4g}$, $\beta={model.beta:.4g}$, {when}"
        )
        return Caption(r"eigenvalue of $\Phi\Phi^\top$", title + self._atoms_text())

    def _scalars(self) -> dict[str, Any]:
        names = ("threshold", "spike", "label_alignment", "critical_step_size")
        return {"trained": int(self.trained), **{k: float(getattr(self, k)) for k in names}}

    def page(self) -> Iterable[Block]:
        """Return the bulk, the outlier and what they rest on, line by line."""
        shown = self._shown
        yield f"conjugate kernel {self._when}"
        yield self._bulk_text()
        if self.atom:
            yield f"zeros: {shown(self.atom)} of all eigenvalues"
        if self.outlier is None:
            yield "outlier: none"
        else:
            yield f"outlier: {shown(self.outlier)}"
            yield (
                "squared overlap of its eigenvector with fresh labels: "
                f"{shown(self.label_alignment)}"
            )
        yield (
            f"squared length of the spike: {shown(self.spike)}, threshold T_c = "
            f"{shown(self.threshold)}"
        )
        yield f"critical step size: {shown(self.critical_step_size)}"
        yield f"rests on: {self.rests_on}"

    def _latex_rows(self) -> list[str]:
        threshold = r"\infty" if self.threshold == math.inf else f"{float(self.threshold):.6g}"
        sign = ">" if self.supercritical else r"\le"
        return [
            rf"\theta_1^2 = {float(self.spike):.6g} &{sign} T_c = {threshold}",
            rf"s_1(\Phi)^2 &= {float(self.eigenvalue):.6g}",
        ]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the spectrum that :meth:`to_dict` wrote; its numbers must be those of its model.

        Raises
        ------
        ParameterError
            If the values are no such spectrum.
        """
        kept = super().from_dict(values)
        certify = kept.certificate is not None
        found: Any = conjugate_kernel(kept.model, kept.trained, kept.digits, certify)
        for row in found.rows():
            before = getattr(kept, row.name)
            if before is None or not math.isclose(
                float(before), float(row.value), rel_tol=_AGREEMENT, abs_tol=_AGREEMENT
            ):
                raise ParameterError(
                    f"the content is no {cls._document} written by to_dict or to_json: its "
                    f"{row.name} is {before}, that of its model {row.text}"
                )
        return found


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
    step = _step_numbers(model, curve)
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
    edges = np.array([[number(x) for x in pair] for pair in curve.edges])
    return ConjugateKernel(
        model=model,
        trained=after,
        digits=count,
        edges=edges,
        masses=np.array([number(x) for x in curve.masses]),
        soft=np.zeros(edges.shape, dtype=bool),
        atoms=((number(0), number(curve.atom)),) if curve.atom else (),
        threshold=number(threshold),
        spike=number(spike),
        outlier=None if outlier is None else number(outlier),
        label_alignment=number(alignment),
        critical_step_size=number(_critical_step_size(model, curve, step)),
    )


def _certified(found: ConjugateKernel) -> ConjugateKernel:
    from ...certificates.certified_values import midpoint
    from ..certified_spikes import DEFAULT_DIGITS, certified_kernel

    proof = certified_kernel(found.model, found.trained, found.digits or DEFAULT_DIGITS)
    ctx = None if found.digits is None else rounded_to(found.digits)
    fields = ("threshold", "spike", "outlier", "label_alignment", "critical_step_size")
    numbers: dict[str, Any] = {x: midpoint(proof[x], ctx) for x in fields if x in proof.values}
    edges: NDArray[Any] = found.edges.copy()
    if "bulk_edge" in proof.values:
        edges[-1, 1] = midpoint(proof["bulk_edge"], ctx)
    if "outlier" not in numbers:
        numbers["outlier"] = None
    return replace(found, edges=edges, **numbers, certificate=proof)


def curve_of(model: OneGradientStep, digits: int | None) -> KernelCurve:
    """Return ζ and the edges of the bulk of a model, for so many digits or for floats."""
    wanted = _FLOAT_DIGITS if digits is None else digits
    moments = model.student_moments.precise(wanted + _SPARE_DIGITS)
    return KernelCurve(
        spectrum_sources(model.cache),
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
    return (
        ctx.inf if model.step_samples == math.inf else ctx.mpf(repr(model.step_samples)),
        model.loss_factor * ctx.mpf(repr(model.step_size)),
        ctx.mpf(repr(model.noise_variance)),
        ctx.mpf(curve.linear),
        ctx.mpf(teacher["linear"]),
        ctx.mpf(teacher["residual"]),
    )


def _critical_step_size(model: OneGradientStep, curve: KernelCurve, step: tuple[Any, ...]) -> Any:
    """Return it in the loss convention of the model."""
    ctx, functions = curve.context, curve.functions
    unit = functions.spike_square(step[0], ctx.one, *step[2:])
    if not unit or curve.pure_noise or model.student_moments.jumps:
        return ctx.inf
    return functions.critical_step_size(curve.threshold, *step) / model.loss_factor


def rounded_to(digits: int) -> Any:
    """Return an mpmath context whose numbers print as so many digits."""
    import mpmath

    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx
