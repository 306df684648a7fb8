r"""The law of a kernel's spectrum: edges and thresholds in mpmath, densities in arrays.

Edges are few and may lie orders of magnitude apart, so they are computed with digits to spare; the
float results are rounded from them. Points of the complex plane are many: there the quartic is
solved in arrays. Functions are derived once and kept in the cache as text; a run that finds them
there imports no SymPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ParameterError
from ....numeric.algebraic_curves import (
    AlgebraicTransform,
    aligned_quadratic_root,
    real_crossing,
)
from ....numeric.spectral_bulk import Bulk, known_bulk
from ....runtime.generated import defined
from ....runtime.precision import local_context
from ....runtime.roots import newton
from ...derived import derived

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

# Exponents of the distance from an end of a bracket, relative to it.
_FARTHEST = 120.0


@derived("one_gradient_step/kernel_spectrum", dict)
def spectrum_sources() -> dict[str, str]:
    """Derive the functions and return their sources.

    Those of numbers, ``"precise"``, want an mpmath context: ``zeta``, ``population_place``,
    ``slope_sign``, ``slope_rate`` of (T, α, β, κ), ``noise_edges`` of (α, β), ``spike_square``,
    ``critical_step_size``, ``expected_spike``, ``label_alignment``, ``quartic`` and
    ``upper_half_plane``. Those of ``"arrays"``: ``quartic``, ``resolvent_quadratic``,
    ``equation_terms``, ``equation_slope`` and ``counting_function``.
    """
    from ....symbolic.printing.compiled import Formula, function_source
    from ..spike_sizes import spike_square
    from ..symbols import IDENTIFIERS
    from . import equations as eq

    axis, step, plane = eq.REAL_PARAMETERS, eq.STEP_PARAMETERS, eq.PLANE_PARAMETERS
    inside = (eq.effective_ridge, *plane)
    quartic = Formula(plane, eq.quartic(), "coefficients, from the highest power")
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
        "quartic": quartic,
        "upper_half_plane": Formula(inside, eq.upper_half_plane(), "three transforms"),
    }
    on_curve = (eq.resolvent, *inside)
    arrays = {
        "quartic": quartic,
        "resolvent_quadratic": Formula(
            inside, eq.resolvent_quadratic(), "of G², G, 1; a direction"
        ),
        "equation_terms": Formula(on_curve, eq.equation_terms(), "what adds up to zero"),
        "equation_slope": Formula(on_curve, eq.equation_slope(), "their derivative"),
        "counting_function": Formula(on_curve, eq.counting_function(), "what counts eigenvalues"),
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
    alpha, beta : float
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
        found = self._crossing(lambda x: root * (1 + self.context.exp(x)))
        if found is None:
            raise ParameterError(
                f"alpha = {self.alpha:g} and beta = {self.beta:g} are too large, too small or too "
                "far apart for a spectrum: its right edge was not found; take both between 1e-20 "
                "and 1e20"
            )
        return found

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
        found = [x for x in ends if x is not None]
        # ζ rises from the edge of the lower interval to that of the upper one.
        return sorted(found) if len(found) == 2 else []

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

    @cached_property
    def _root(self) -> AlgebraicTransform:
        """ν in units of the kernel's."""
        functions = self._arrays

        def on_curve(function: Any) -> Any:
            def evaluate(root: Any, z: Any) -> Any:
                numbers = self._extended if root.dtype == np.clongdouble else self._scaled
                return function(self._resolvent(root, z, numbers), root, z, *numbers)

            return evaluate

        return AlgebraicTransform(
            polynomial=lambda z: functions.quartic(z, *self._scaled),
            terms=on_curve(functions.equation_terms),
            slope=on_curve(functions.equation_slope),
            edges=self.float_edges / self.unit,
            atom=bool(self.atom),
        )

    def _resolvent(self, root: Any, z: Any, numbers: tuple[Any, ...]) -> Complex:
        """G at candidates of ν, from its own equation."""
        return aligned_quadratic_root(*self._arrays.resolvent_quadratic(root, z, *numbers))

    def effective_ridge(self, z: Complex) -> Complex:
        r"""Return ν at points with Im z ≥ 0; on the real axis the limit from above.

        Parameters
        ----------
        z : array (n,)

        Returns
        -------
        array (n,)
            In the unit of the kernel; :math:`\frac1n\operatorname{tr}(K - z)^{-1} =
            \beta/(\alpha\nu)`.
        """
        return self._root(np.asarray(z, dtype=np.complex128) / self.unit) * self.unit

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
            found = (1 / root).imag / (math.pi * ratio)
        # At an edge rounding decides on the sign of the last digit.
        return np.where(np.isfinite(found), np.maximum(found, 0), 0)

    def share_below(self, x: Real) -> Real:
        """Return the share of eigenvalues ≤ x at points inside the bulk, by its closed form."""
        points: Complex = np.asarray(x, dtype=np.complex128)
        root, scaled = self.effective_ridge(points) / self.unit, points / self.unit
        with np.errstate(all="ignore"):
            g = self._resolvent(root, scaled, self._scaled)
            counted = self._arrays.counting_function(g, root, scaled, *self._scaled)
        return np.asarray(counted.imag / math.pi)
