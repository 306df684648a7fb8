r"""The spectrum of a model's conjugate kernel: bulk, edges, outlier, threshold, labels.

Edges are few and may lie orders of magnitude apart, so they are computed with digits to spare; the
float results are rounded from them. Points of the complex plane are many: there the solution is
followed from above, in arrays. Functions are derived once and kept in the cache as text. For
proofs, edges are values of ζ at real roots of the numerator of its derivative, a polynomial in T:
all its real roots are isolated, and exactly one lies above √β, T_c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import mpmath
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...deprecations import by_name
from ...digits import checked_digits
from ...errors import CertificationError, ClosedFormNotFoundError, ParameterError
from ...numeric.arguments import checked_switch
from ...numeric.spectra.bulk import (
    Bulk,
    Complex,
    Real,
    SelfConsistency,
    arranged,
    follow,
    known_bulk,
    newton as solved,
    real_crossing,
)
from ...pages import Block
from ...result import Number, Result, quantity
from ...runtime.generated import defined
from ...runtime.precision import local_context
from ...runtime.roots import newton
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.activations import activation, z as variable
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.gaussian.expectation import expect
from ...symbolic.hermite.coefficients import hermite_coefficient
from ...symbolic.printing.compiled import Formula, compiled, function_source
from ..certificates.certificate import LIBRARIES, CertifiedValues, certificate_wanted, midpoint
from ..derived import derived
from ..figures import plain_text
from ..spectra.spectrum import Caption, SimulatedSpectrum, Spectrum, with_derivatives
from . import kernel_equations as eq, kernel_equations as equations, symbols
from .figures import loss_note
from .pair_kernels import c, p, pair_kernel, q
from .symbols import IDENTIFIERS, spike_square
from .weight_spike import (
    CERTIFIED_LIMIT,
    DEFAULT_DIGITS,
    exact_constants,
    proven_above,
    proven_sign,
    spike_length,
)

if TYPE_CHECKING:
    from .model import OneGradientStep

# Of Newton's method in extended precision.
_LAST_STEP = 1e-10
# Densities diverge at hard edges, next to which points crowd.
_NEAREST = 1e-100

# Exponents of the distance from an end of a bracket, relative to it.
_FARTHEST = 120.0


@derived("one_gradient_step/kernel_spectrum", dict)
def spectrum_sources() -> dict[str, str]:
    """Derive the functions and return their sources.

    Those of numbers, ``"precise"``, want an mpmath context: ``zeta``, ``population_place``,
    ``slope_sign``, ``slope_rate`` of (T, α, β, κ), ``noise_edges`` of (α, β), ``spike_square``,
    ``critical_step_size``, ``expected_spike``, ``label_alignment``, ``quartic`` and
    ``upper_half_plane``. Those of ``"arrays"``: ``fixed_point`` and ``counting_function``.
    """
    axis, step, plane = eq.REAL_PARAMETERS, eq.STEP_PARAMETERS, eq.PLANE_PARAMETERS
    inside = (eq.effective_ridge, *plane)
    precise = {
        "zeta": Formula(axis, eq.zeta(), "zeta(T) in units of mu_1^2"),
        "population_place": Formula(axis, eq.population_place(), "where T is in the population"),
        "slope_sign": Formula(axis, eq.slope_sign(), "what has the sign of zeta'(T)"),
        "slope_rate": Formula(axis, eq.slope_sign().diff(eq.place), "its derivative"),
        "noise_edges": Formula(
            (eq.alpha, eq.beta), eq.noise_edges(), "the edges of noise features"
        ),
        "spike_square": Formula(step, spike_square(), "theta1^2"),
        "critical_step_size": Formula(
            (eq.place, *step), eq.critical_step_size(), "eta at theta1^2 = T"
        ),
        "expected_spike": Formula((eq.second, eq.beta), eq.expected_spike(), "c_2^2 beta/2"),
        "label_alignment": Formula((*axis, *step), eq.label_alignment(), "the squared overlap"),
        "quartic": Formula(plane, eq.quartic(), "coefficients, from the highest power"),
        "upper_half_plane": Formula(inside, eq.upper_half_plane(), "three transforms"),
    }
    unknowns = (eq.inverse_ridge, eq.resolvent)
    arrays = {
        "fixed_point": Formula(
            (eq.z, *unknowns, *plane[1:]),
            with_derivatives(eq.fixed_point(), unknowns, eq.z),
            "right-hand sides with their derivatives",
        ),
        "counting_function": Formula(
            (eq.resolvent, *inside), eq.counting_function(), "what counts eigenvalues"
        ),
    }
    return {
        "precise": function_source(precise, "mpmath", names=IDENTIFIERS),
        "arrays": function_source(arrays, names=IDENTIFIERS),
    }


@dataclass(frozen=True)
class KernelCurve:
    r"""The algebraic curve of one spectrum.

    Attributes
    ----------
    sources : mapping from str to str
        From :func:`spectrum_sources`.
    linear, floor : str
        μ1 and μ_{>1}² as decimal numbers.
    digits : int
        Digits of the scalars.
    """

    sources: Mapping[str, str]
    alpha: float
    beta: float
    linear: str
    floor: str
    digits: int = 16

    @cached_property
    def context(self) -> Any:
        """The mpmath context of the scalars."""
        # A gap that nearly closes costs half of the digits, scales that differ some more.
        return local_context(self.digits + 2 * max(self.digits, 30))

    @cached_property
    def functions(self) -> SimpleNamespace:
        """The functions of numbers of the context."""
        return defined(self.sources["precise"], ctx=self.context)

    @cached_property
    def _arrays(self) -> SimpleNamespace:
        return defined(self.sources["arrays"])

    @cached_property
    def _numbers(self) -> tuple[Any, Any, Any, Any]:
        ctx = self.context
        alpha, beta = ctx.mpf(repr(self.alpha)), ctx.mpf(repr(self.beta))
        return alpha, beta, ctx.mpf(self.linear) ** 2, ctx.mpf(self.floor)

    @property
    def pure_noise(self) -> bool:
        """Features without a linear part, μ1 = 0."""
        return not self._numbers[2]

    @cached_property
    def _ratios(self) -> tuple[Any, Any, Any]:
        alpha, beta, slope, floor = self._numbers
        return alpha, beta, floor / slope

    # ------------------------------------------------------------------ the real axis

    def zeta(self, place: Any) -> Any:
        """Return ζ(T), a number of the context."""
        if not math.isfinite(place):
            return self.context.inf
        return self._numbers[2] * self.functions.zeta(place, *self._ratios)

    @cached_property
    def threshold(self) -> Any:
        """T_c, the spike's squared length above which there is an outlier; infinite for μ1 = 0."""
        if self.pure_noise:
            return self.context.inf
        root = self.context.sqrt(self._ratios[1])
        result = self._crossing(lambda x: root * (1 + self.context.exp(x)))
        if result is None:
            raise ParameterError(
                f"alpha = {self.alpha:g} and beta = {self.beta:g} are too large, too small or too "
                "far apart for a spectrum: its right edge was not found; take both between 1e-20 "
                "and 1e20"
            )
        return result

    @cached_property
    def edges(self) -> tuple[tuple[Any, Any], ...]:
        """Ends of the intervals of the bulk, ascending, as numbers of the context."""
        ctx = self.context
        alpha, beta, _, floor = self._numbers
        if self.pure_noise:
            low, high = self.functions.noise_edges(alpha, beta)
            return ((self._nonnegative(low * floor), high * floor),)
        places = [*self._left_places, self.threshold]
        # Without a critical point the bulk ends at zero.
        values = [ctx.zero if x is None else self._nonnegative(self.zeta(x)) for x in places]
        return tuple(zip(values[::2], values[1::2], strict=True))

    @cached_property
    def _left_places(self) -> list[Any | None]:
        """T at the edges but the last one, in the order of the edges."""
        ctx = self.context
        alpha, beta, kappa = self._ratios
        fewest, next_fewest, _ = sorted((alpha, beta, ctx.one))
        if not kappa and fewest == next_fewest:
            # A product of square matrices: two zeros of ζ meet in a hard edge.
            return [None]
        root = ctx.sqrt(beta)
        # A population without a bulk next to zero may have an atom there: N > d with noise.
        split = beta > 1 and kappa > 0
        end = beta if split else root
        low = self._crossing(lambda x: -end * (1 + ctx.exp(x)))
        places = [low]
        if split:
            places += self._gap_places(root, beta)
        return places

    def _gap_places(self, root: Any, beta: Any) -> list[Any]:
        """T at both ends of the gap between the two intervals of the bulk; empty without a gap."""
        ctx = self.context

        def at(x: Any) -> Any:
            share = 1 / (1 + ctx.exp(-x))
            return -(root ** (1 - share)) * beta**share

        functions, ratios = self.functions, self._ratios
        # The sign is that of a concave function: first rising, then falling.
        top = real_crossing(
            lambda x: functions.slope_rate(at(ctx.mpf(x)), *ratios),
            -_FARTHEST, _FARTHEST, "the gap in the bulk",
        )  # fmt: skip
        if top is None or functions.slope_sign(at(ctx.mpf(top)), *ratios) <= 0:
            return []
        ends = [self._crossing(at, -_FARTHEST, top), self._crossing(at, top, _FARTHEST)]
        result = [x for x in ends if x is not None]
        # ζ rises from the edge of the lower interval to that of the upper one.
        return sorted(result) if len(result) == 2 else []

    def _crossing(self, place: Any, low: float = -_FARTHEST, high: float = _FARTHEST) -> Any | None:
        """Return the T at which ζ' changes sign; T = place(x) for x between two floats."""
        ctx, functions, ratios = self.context, self.functions, self._ratios
        start = real_crossing(
            lambda x: functions.slope_sign(place(ctx.mpf(x)), *ratios),
            low, high, "an edge of the bulk",
        )  # fmt: skip
        if start is None:
            return None
        # ζ is stationary there. More digits may not be had where a gap nearly closes.
        return newton(
            lambda x: functions.slope_sign(x, *ratios) / functions.slope_rate(x, *ratios),
            place(ctx.mpf(start)), ctx.mpf(10) ** (-self.digits - 30), "an edge of the bulk",
        )  # fmt: skip

    def _nonnegative(self, value: Any) -> Any:
        """An edge at zero is zero."""
        size = sum(self._numbers[2:])
        return (
            value
            if value > size * self.context.mpf(10) ** (-self.digits - 30)
            else self.context.zero
        )

    # ------------------------------------------------------------------ shares

    @cached_property
    def atom(self) -> Any:
        """The share of zero eigenvalues, from the rank of the features."""
        alpha, beta, _, floor = self._numbers
        rank = min(beta, alpha) if floor else min(beta, alpha, self.context.one)
        return (alpha - rank) / alpha

    @cached_property
    def masses(self) -> tuple[Any, ...]:
        """The share of each interval: no eigenvalue crosses a gap, so they are those of ranks."""
        alpha, *_ = self._numbers
        whole = 1 - self.atom
        if len(self.edges) == 1:
            return (whole,)
        # Above the gap as many as the linear part has dimensions.
        upper = self.context.one / alpha
        return (whole - upper, upper)

    def bulk(self, points: int) -> Bulk:
        """Return the bulk on a grid of so many points in each interval."""
        masses = np.array([float(x) for x in self.masses])
        return known_bulk(
            self.float_edges, masses, float(self.atom), self.density, self.share_below, points
        )

    # ------------------------------------------------------------------ the complex plane

    @cached_property
    def unit(self) -> float:
        """μ1² + μ_{>1}², the unit of the computations in arrays."""
        return float(sum(self._numbers[2:]))

    @property
    def mean(self) -> float:
        """Mean of the spectrum, the mean square of the features."""
        return self.unit

    @cached_property
    def _extended(self) -> tuple[Any, ...]:
        """μ1² and μ_{>1}² in their unit, α and β; in extended precision where there is one."""
        alpha, beta, slope, floor = self._numbers
        size = slope + floor
        numbers = (slope / size, floor / size, alpha, beta)
        return tuple(np.longdouble(self.context.nstr(x, 25)) for x in numbers)

    @cached_property
    def _scaled(self) -> tuple[float, ...]:
        return tuple(map(float, self._extended))

    @cached_property
    def float_edges(self) -> Real:
        """The edges as floats, shape (k, 2)."""
        return np.array([[float(x) for x in pair] for pair in self.edges])

    def _equations(self, numbers: tuple[Any, ...]) -> SelfConsistency:
        function = self._arrays.fixed_point
        return lambda z, v: arranged(function(z, *v, *numbers), len(v))

    def _solution(self, z: Complex) -> Complex:
        """Return 1/ν and G in units of the kernel at points with Im z ≥ 0."""
        at = np.asarray(z, dtype=np.complex128) / self.unit
        if not at.size:
            return np.zeros((2, 0), dtype=complex)
        start, _ = follow(self._equations(self._scaled), at, 1.0, 2, _NEAREST)
        # Where the transform is nearly that of an atom, the density is a small part of it.
        fine, arrived = solved(
            self._equations(self._extended), at.astype(np.clongdouble), start,
            last_step=_LAST_STEP,
        )  # fmt: skip
        return np.where(arrived, fine, start).astype(complex)

    def effective_ridge(self, z: Complex) -> Complex:
        r"""Return ν at points with Im z ≥ 0; on the real axis the limit from above.

        Returns
        -------
        array (n,)
            In the unit of the kernel; :math:`\frac1n\operatorname{tr}(K - z)^{-1} =
            \beta/(\alpha\nu)`.
        """
        return np.asarray(self.unit / self._solution(z)[0])

    def transform(self, z: Complex) -> Complex:
        """Return the transform at points with Im z ≥ 0; real ones are off the spectrum."""
        return np.asarray(self.beta / self.alpha / self.effective_ridge(z))

    def precise_transform(self, z: complex, start: complex) -> Any:
        """Return the transform at a point to all digits, by Newton's method from a float."""
        ctx = self.context
        alpha, beta, slope, floor = self._numbers
        rows = list(self.functions.quartic(ctx.mpc(z), slope, floor, alpha, beta))

        def move(x: Any) -> Any:
            value, rate = ctx.polyval(rows, x, derivative=True)
            return value / rate if rate else ctx.zero

        root = newton(
            move, beta / alpha / ctx.mpc(start), ctx.mpf(10) ** (-self.digits - 10),
            f"the transform at z = {z}",
        )  # fmt: skip
        return beta / alpha / root

    def density(self, x: Real) -> Real:
        """Return the density at points inside the bulk."""
        ratio = float(self.alpha) / float(self.beta)
        with np.errstate(all="ignore"):
            root = self.effective_ridge(x.astype(complex))
            result = (1 / root).imag / (math.pi * ratio)
        # At an edge rounding decides on the sign of the last digit.
        return np.where(np.isfinite(result), np.maximum(result, 0), 0)

    def share_below(self, x: Real) -> Real:
        """Return the share of eigenvalues ≤ x at points inside the bulk, by its closed form."""
        inverse, g = self._solution(x.astype(complex))
        with np.errstate(all="ignore"):
            counted = self._arrays.counting_function(g, 1 / inverse, x / self.unit, *self._scaled)
        return np.asarray(counted.imag / math.pi)


@dataclass(frozen=True, repr=False)
class ExpectedKernel(Result):
    r"""The limit of :math:`\Sigma_\Phi = \mathbb{E}_x\,\sigma(W^\top x)\,\sigma(x^\top W)`.

    For odd students :math:`\|\Sigma_\Phi - (\mu_1^2W^\top W + \mu_{>1}^2)\| \to 0` at fixed step
    size (Ba et al., arXiv 2205.01445). Larger steps break it: the cross term of the coefficients
    of degree one and three gives a difference of order η⁴/N, by power counting.

    Attributes
    ----------
    linear, residual : float
        μ1² and μ_{>1}².
    edges : tuple of float
        Smallest and largest eigenvalue of the bulk of the limit, N/d times Marchenko–Pastur.
    outlier : float or None
        Eigenvalue of the limit that the step adds, if :math:`\theta_1^2 > \sqrt\beta`.
    second : float
        :math:`c_2 = \mathbb{E}\,\sigma\,\mathrm{He}_2`.
    spike : float
        :math:`c_2^2\beta/2`: what Σ has along (1, …, 1) beyond the limit. Zero for odd students;
        for others it does not vanish with d.
    standing : str
        The verdict on the model's Gaussian equivalence.
    """

    _document = "expected kernel"

    linear: float = field(metadata=quantity("linear part", r"\mu_1^2"))
    residual: float = field(metadata=quantity("residual variance", r"\mu_{>1}^2"))
    edges: tuple[float, float] = field(metadata=quantity("edges of the bulk"))
    outlier: float | None = field(metadata=quantity("outlier of the step"))
    second: float
    spike: float = field(metadata=quantity("spike along (1, …, 1)"))
    odd: bool
    standing: str

    @property
    def difference_exponents(self) -> tuple[int, int]:
        """Powers of η and N in the order of the difference from the limit: heuristic."""
        return 4, -1

    @property
    def rests_on(self) -> str:
        """What kind of argument the result rests on."""
        if self.odd:
            return self.standing
        return (
            f"{self.standing}; the spike along (1, …, 1) is derived here from the coefficient of "
            "degree two"
        )

    def page(self) -> Iterable[Block]:
        """Return the limit, its bulk and what stands out of it."""
        yield (
            f"expected kernel: {self.linear:.6g} W^T W + {self.residual:.6g}, bulk "
            f"[{self.edges[0]:.6g}, {self.edges[1]:.6g}]"
        )
        yield "outlier of the step: " + ("none" if self.outlier is None else f"{self.outlier:.6g}")
        if not self.odd:
            yield f"spike along (1, …, 1) beyond it: {self.spike:.6g}"

    def latex(self) -> str:
        """Return the limit in LaTeX, without delimiters."""
        shown = rf"{self.linear:.6g}\,W^\top W + {self.residual:.6g}\,I"
        if self.spike:
            shown += rf" + {self.spike:.6g}\,\tfrac1N\mathbf 1\mathbf 1^\top"
        return rf"\Sigma_\Phi \to {shown}"


def _second_coefficient(model: OneGradientStep) -> str:
    return "0" if model.student_moments.odd else _second_hermite(model.cache, model.student)


@derived("one_gradient_step/second_coefficient", str)
def _second_hermite(student: str) -> str:
    return str(hermite_coefficient(activation(student, argument="student"), 2).evalf(40))


# ---------------------------------------------------------------------- of a given first layer


def expected_matrix(model: OneGradientStep, weights: Real) -> Real:
    r"""Return :math:`\mathbb{E}_x\,\sigma(W^\top x)\,\sigma(x^\top W)` of the (centred) student.

    Weights have a column for each neuron. ClosedFormNotFoundError if the rules for Gaussian pairs
    give none, as for tanh.
    """
    pair, mean = _functions(model.student)
    inner = weights.T @ weights
    square = np.diag(inner)
    # A correlation of one may be rounded to one that has no angle.
    largest = np.sqrt(np.outer(square, square)) * (1 - 4 * np.finfo(float).eps)
    result: Real = pair(square[:, None], square[None, :], np.clip(inner, -largest, largest))
    offset = model.student_moments.mean
    if model.centre and offset:
        means = np.broadcast_to(mean(square), square.shape)
        result = result - offset * (means[:, None] + means[None, :]) + offset**2
    return result


def difference_norm(model: OneGradientStep, weights: Real) -> float:
    r"""Return the operator norm of the difference from :math:`\mu_1^2W^\top W + \mu_{>1}^2`."""
    moments = model.student_moments
    limit = moments.linear**2 * weights.T @ weights
    limit += moments.residual * np.eye(weights.shape[1])
    return float(np.linalg.norm(expected_matrix(model, weights) - limit, 2))


@lru_cache(maxsize=32)
def _functions(student: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    sigma = activation(student, argument="student")
    kernel = pair_kernel(sigma, sigma)
    if kernel is None:
        raise ClosedFormNotFoundError(
            f"the kernel of student {student!r} has no closed form by rule; erf and relu have one"
        )
    mean = expect(sigma(sp.sqrt(q) * variable), variable)
    return compiled(kernel, (p, q, c)), compiled(mean, (q,))


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
        curve, model = self._law, self.model
        ctx, functions = curve.context, curve.functions
        alpha, beta, slope, floor = curve._numbers
        second = ctx.mpf(_second_coefficient(model))
        root = ctx.sqrt(beta)
        outlier = None
        spike = ctx.mpf(self.spike)
        if curve.pure_noise:
            edges = (floor, floor)
        else:
            kappa = floor / slope

            def place(x: Any) -> Any:
                return slope * functions.population_place(x, alpha, beta, kappa)

            low = place(-root) if beta <= 1 else floor
            edges = (low, place(root))
            outlier = float(place(spike)) if spike > root else None
        return ExpectedKernel(
            linear=float(slope),
            residual=float(floor),
            edges=(float(edges[0]), float(edges[1])),
            outlier=outlier,
            second=float(second),
            spike=float(functions.expected_spike(second, beta)),
            odd=model.student_moments.odd,
            standing=model.standing,
        )

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
        result = self.model.simulate_spectra(
            dimension, seeds=seeds, seed=seed, matrices=("kernel",), workers=workers,
            progress=progress,
        )  # fmt: skip
        (_, descending), *_ = self._simulated(result)
        width = round(self.model.beta * dimension)
        return SimulatedSpectrum(descending[:, ::-1], None, width, dimension, self.trained)

    def _simulated(self, simulation: Any) -> list[tuple[str, Any]]:
        variables = getattr(simulation, "data_vars", None)
        if variables is None:
            return super()._simulated(simulation)
        step = 1 if self.trained else 0
        result = []
        for name in _SIMULATED.keys() & set(variables):
            if step not in simulation[name].step:
                raise ParameterError(
                    f"simulation holds no eigenvalues after {step} steps; the kernel is the one "
                    f"{self._when}"
                )
            result.append((_SIMULATED[name], simulation[name].sel(step=step).to_numpy()))
        if not result:
            raise ParameterError(
                "simulation must hold eigenvalues of kernels, as simulate_spectra(d, "
                "matrices=['kernel']) returns them"
            )
        return sorted(result, key=lambda pair: pair[0] != "network")

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
        selected = super().from_dict(values)
        certify = selected.certificate is not None
        result: Any = conjugate_kernel(
            selected.model, trained=selected.trained, digits=selected.digits, certify=certify
        )
        for row in result.entries():
            before = getattr(selected, row.name)
            if before is None or not math.isclose(
                float(before), float(row.value), rel_tol=_AGREEMENT, abs_tol=_AGREEMENT
            ):
                raise ParameterError(
                    f"the content is no {cls._document} written by to_dict or to_json: its "
                    f"{row.name} is {before}, that of its model {row.text}"
                )
        return result


@by_name("trained", "digits", "certify")
def conjugate_kernel(
    model: OneGradientStep,
    *,
    trained: bool = True,
    digits: int | None = None,
    certify: bool = False,
) -> ConjugateKernel:
    r"""Return the spectrum of the conjugate kernel: bulk, edges, outlier, label alignment.

    Parameters
    ----------
    trained : bool
        After the step; else at initialisation.
    digits : int, optional
        So many digits of the scalars with mpmath. Floats are then read as the decimal numbers
        that they print as.
    certify : bool
        Also prove intervals of the numbers, ``certificate``, to 15 digits or `digits`; needs
        python-flint.

    Raises
    ------
    ParameterError
        If `digits` is no positive whole number, `trained` no boolean, or the outlier is too
        large for a float.
    CertificationError
        If an interval cannot be proven, as where a gap of the bulk closes.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> model = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=4)
    >>> kernel = model.conjugate_kernel()
    >>> kernel.supercritical, round(kernel.bulk_edge, 6), round(kernel.eigenvalue, 6)
    (True, 4.213821, 4.935209)
    """
    after = checked_switch("trained", trained)
    count = None if digits is None else checked_digits(digits)
    if certificate_wanted(certify):
        return _certified(conjugate_kernel(model, trained=after, digits=count))
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
    ctx = mpmath.mp.clone()
    ctx.dps = digits
    return ctx


_OUTLIER = "the outlier of the kernel: derived for linearised features, a conjecture for networks"


def certified_kernel(
    model: OneGradientStep, trained: bool = True, digits: int = DEFAULT_DIGITS
) -> CertifiedValues:
    """Return proven intervals of edges, threshold and outlier of the conjugate kernel."""
    constants = exact_constants(model)
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
        sign = proven_sign(formulas, spike_length(), "the spike at step size one")
        moved = sign == 1 and not model.student_moments.jumps
        if moved:
            critical = equations.critical_step_size() / model.loss_factor
            values["critical_step_size"] = formulas.enclosure(critical, digits)
        above = proven_above(formulas, spike - place, moved, model)
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
        assumptions=(*LIBRARIES, CERTIFIED_LIMIT, _OUTLIER),
        digits=digits,
    )


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
    result = []
    for root in roots:
        zeta = symbols.linear**2 * equations.zeta().xreplace({equations.place: root})
        sign = formulas.sign(root + sp.sqrt(symbols.beta))
        if sign == 1:
            continue
        edge = formulas.enclosure(zeta, digits)
        if sign is None and not edge.contains_zero:
            raise CertificationError("whether a critical point of ζ is an edge is not proven")
        if sign is not None:
            result.append(edge)
    return sorted(result, key=lambda value: value.midpoint)
