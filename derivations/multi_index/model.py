"""Gaussian index models: what Bayes, AMP and the estimators beside them reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...digits import checked_digits
from ...errors import GiantstepError, ParameterError, UnsupportedExpressionError
from ...numeric.arguments import positive_number, real_array, whole_number
from ...numeric.networks.message_passing import MessagePassing, Spectral
from ...numeric.networks.run import simulate as run
from ...numeric.networks.sizes import sample_count
from ...numeric.saddle_point_solver import BatchSolution
from ...pages import Block, Table
from ...result import Result, quantity
from ...symbolic.expressions.activations import z
from ...symbolic.expressions.parser import parse_expression
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.losses.convex_losses import is_kinked
from ...symbolic.printing.compiled import compiled
from ..certificates.certificate import CertifiedValues, certificate_wanted
from ..curves import Columns, Names, solve_groups
from ..json_text import SavedModel
from ..kernels.arguments import known_names
from ..kernels.families import numbers_of
from ..kernels.kernel import Kernel
from ..kernels.landscape import MINIMUM, Landscape, Section, StationaryPoint, kind_on
from ..kernels.lower import lower
from ..kernels.sensitivities import Sensitivities
from ..kernels.solution import KernelSolution
from ..networks import Network, SimulatedNetworks
from ..sensitivities import HasOptima
from . import physics
from .certified import certified_threshold
from .channels import (
    Channel,
    channel_of_density,
    channel_of_law,
    names_coordinates,
    read_channel,
)
from .fixed_points import FixedPoints, MatrixFixedPoints
from .line_averages import LineAverages
from .plane_averages import PlaneAverages
from .thresholds import EASY, TRIVIAL, Threshold, label_moments, specialising, weak_recovery

Array = NDArray[np.float64]

_START = 1e-3
# Shares of the largest information that quadrature does not tell from none.
_HIDDEN = 1e-6
_TRAJECTORY = 25
_FARTHEST_OVERLAP = 0.999


@dataclass(frozen=True, repr=False)
class OptimalEstimation(Result):
    r"""What the best estimators reach at one sample complexity.

    Attributes
    ----------
    alpha : float
        n/d.
    overlap, amp_overlap : float
        Squared cosine q of the angle between estimate and teacher, to be compared with γ², of the
        posterior mean and of approximate message passing. For several directions the smallest
        eigenvalue of the overlap matrix.
    error, amp_error : float
        Mean squared error of the posterior mean of the function against f, without noise; NaN for
        laws without a function.
    classification_error, amp_classification_error : float
        Of the sign of the projection, arccos(√q)/π, for labels of two values; NaN for others.
    first_iterate : float
        q of the first iteration of AMP from q = 0: a giant step on the labels E[u|y].
    free_entropy : float
        Φ at the overlap of Bayes; infinite where recovery is exact.
    fixed_points : tuple of float
        All overlaps at which the equations hold, 0 left out; of one direction.
    overlaps, amp_overlaps : tuple of float
        The overlap matrices row by row, of several directions.
    regime : str
        Whether AMP reaches what Bayes does.
    errors : mapping from str to float
        Estimated absolute errors.
    rests_on : str
    """

    _document = "optimal estimation"
    _column = 34

    alpha: float = field(metadata=quantity("sample complexity", r"\alpha"))
    overlap: float = field(metadata=quantity("overlap, Bayes", "q"))
    amp_overlap: float = field(metadata=quantity("overlap, AMP", r"q_\mathrm{AMP}"))
    error: float = field(metadata=quantity("error, Bayes", "E"))
    amp_error: float = field(metadata=quantity("error, AMP", r"E_\mathrm{AMP}"))
    classification_error: float = field(
        metadata=quantity("classification error, Bayes", r"\varepsilon")
    )
    amp_classification_error: float = field(
        metadata=quantity("classification error, AMP", r"\varepsilon_\mathrm{AMP}")
    )
    first_iterate: float = field(metadata=quantity("overlap after one iteration", "q_1"))
    free_entropy: float = field(metadata=quantity("free entropy", r"\Phi"))
    fixed_points: tuple[float, ...] = field(metadata=quantity("fixed points"))
    overlaps: tuple[float, ...] = field(metadata=quantity("overlap matrix, Bayes", "Q"))
    amp_overlaps: tuple[float, ...] = field(
        metadata=quantity("overlap matrix, AMP", r"Q_\mathrm{AMP}")
    )
    regime: str = field(metadata=quantity("regime"))
    errors: Mapping[str, float]
    rests_on: str


@dataclass(frozen=True, repr=False)
class WeakRecovery(Result):
    r"""From how many samples labels show the directions.

    Attributes
    ----------
    difficulty : {"trivial", "easy", "hard"}
        Of the directions that are shown first: for every α, above α_c, or not for n ∝ d.
    threshold : float
        α_c: 0 if trivial, infinite if hard.
    formula : str
        α_c exactly; empty if it is known by quadrature only.
    specialisation : tuple of float
        Of directions of which labels show some at first order, and the others at second order given
        those: the overlaps along the former, and α, at which the others begin to be learned.
    spinodals : tuple of float
        α at the stationary points of α(q), where branches begin or end.
    first_order : float
        α at which the optimum jumps, the information-theoretic transition; NaN without a jump.
    exact_recovery : float
        α above which noise-free labels determine the direction for AMP, too; NaN with noise.
    errors : mapping from str to float
    rests_on : str
        How the kind was decided.
    certificate : CertifiedValues or None
        The proven interval of α_c, where it was asked for.
    """

    _document = "weak recovery"
    _column = 34

    difficulty: str = field(metadata=quantity("first directions are"))
    threshold: float = field(metadata=quantity("threshold", r"\alpha_c", significant=16))
    formula: str = field(metadata=quantity("exactly"))
    specialisation: tuple[float, ...] = field(
        metadata=quantity("specialisation, overlap and alpha")
    )
    spinodals: tuple[float, ...] = field(metadata=quantity("spinodals"))
    first_order: float = field(metadata=quantity("first-order transition", r"\alpha_\mathrm{IT}"))
    exact_recovery: float = field(metadata=quantity("exact recovery by AMP", r"\alpha_\mathrm{PR}"))
    errors: Mapping[str, float]
    rests_on: str
    certificate: CertifiedValues | None = None


@dataclass(frozen=True, repr=False)
class EstimatorLadder(Result):
    r"""Squared cosines of the estimators of one direction, on the same n = αd samples.

    Attributes
    ----------
    alpha : float
    giant_step : float
        :math:`\sum y_\mu x_\mu`, the first giant step: γ².
    giant_step_transformed : float
        The same on the labels E[u|y].
    ridge, ridge_transformed : float
        Ridge regression at its best penalty, on y and on E[u|y].
    amp, bayes : float
    efficiency : float
        :math:`h_1^2/(Y I_1)\le 1`, of a giant step at small α; 1 if E[u|y] ∝ y.
    rests_on : str
    """

    _document = "estimators"
    _column = 34

    alpha: float = field(metadata=quantity("sample complexity", r"\alpha"))
    giant_step: float = field(metadata=quantity("giant step", r"\gamma^2"))
    giant_step_transformed: float = field(metadata=quantity("giant step on E[u|y]", r"\gamma_T^2"))
    ridge: float = field(metadata=quantity("ridge", r"q_\mathrm{ridge}"))
    ridge_transformed: float = field(metadata=quantity("ridge on E[u|y]", r"q_{\mathrm{ridge},T}"))
    amp: float = field(metadata=quantity("AMP", r"q_\mathrm{AMP}"))
    bayes: float = field(metadata=quantity("Bayes", "q"))
    efficiency: float = field(metadata=quantity("efficiency of a giant step", "e"))
    rests_on: str = "closed forms in quadrature values; replica-symmetric, d → ∞"


@dataclass(frozen=True, repr=False)
class ConvexEstimate(Result):
    r"""The minimiser of a convex loss on the labels of one direction.

    Attributes
    ----------
    alpha, ridge : float
    squared_cosine : float
        :math:`m^2/q`, to be compared with γ² and with the overlap of Bayes.
    errors : mapping from str to float
    rests_on : str
    """

    _document = "convex estimate"

    alpha: float = field(metadata=quantity("sample complexity", r"\alpha"))
    ridge: float = field(metadata=quantity("ridge", r"\lambda"))
    squared_cosine: float = field(metadata=quantity("squared cosine", r"m^2/q"))
    errors: Mapping[str, float]
    rests_on: str


@dataclass(frozen=True, repr=False)
class StateEvolution(Result):
    """Overlaps of AMP after each iteration.

    Attributes
    ----------
    alpha : float
    start : float
        First overlap; of several directions the smallest eigenvalue of the overlap matrix.
    overlaps : tuple of float
        The same after each iteration.
    matrices : tuple of tuple of float
        Overlap matrices row by row, the start first, of several directions.
    growth : float
        α/α_c, by which small overlaps grow where labels show nothing at first order; else NaN.
    rests_on : str
    """

    _document = "state evolution"

    alpha: float = field(metadata=quantity("sample complexity", r"\alpha"))
    start: float = field(metadata=quantity("start", "q_0"))
    overlaps: tuple[float, ...] = field(metadata=quantity("overlaps", "q_t"))
    matrices: tuple[tuple[float, ...], ...] = field(metadata=quantity("overlap matrices", "Q_t"))
    growth: float = field(metadata=quantity("growth of small overlaps", r"\alpha/\alpha_c"))
    rests_on: str = "state evolution, d → ∞"

    def page(self) -> Iterable[Block]:
        """Return the iterations as a table."""
        overlaps = enumerate((self.start, *self.overlaps))
        if self.matrices:
            rows = [(str(k), self.text(q), self.text(self.matrices[k])) for k, q in overlaps]
            yield Table(rows, ["iteration", "least overlap", "overlap matrix"])
        else:
            yield Table([(str(k), self.text(q)) for k, q in overlaps], ["iteration", "overlap"])
        yield self.rests_on


@dataclass(frozen=True)
class MultiIndex(SavedModel, HasOptima):
    r"""Labels of a few directions of Gaussian inputs, and the best that can be learned from them.

    Parameters
    ----------
    target : str
        f: a name or an expression in z for one direction, in x1, x2, x3 for several.
    noise_variance : float
        Δ, of :math:`y = f(u) + \sqrt\Delta\xi`; of signs inside of the sign.
    labels : {"regression", "sign", "probit", "logistic"}
        As for :class:`giantstep.Network`.
    flips : float
        Share of labels of two values that are exchanged.
    directions : int, optional
        How many directions the law has at most; a law of more is refused.
    law : tuple, optional
        Set by :meth:`from_law` and :meth:`from_density`.

    Raises
    ------
    ParameterError
        If an argument is outside of its range.
    UnsupportedExpressionError
        If preimages of a label cannot be located.

    Examples
    --------
    >>> model = MultiIndex("abs")
    >>> print(f"{model.thresholds().threshold:g} {model.solve(alpha=0.8).overlap:.12f}")
    0.5 0.216227490296
    """

    _model: ClassVar[str] = "multi_index"

    target: str
    noise_variance: float = 0.0
    labels: str = "regression"
    flips: float = 0.0
    directions: int | None = None
    law: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            object.__setattr__(self, "target", str(self.target))
        if isinstance(self.law, list):
            object.__setattr__(self, "law", tuple(self.law))
        channel = self.channel
        object.__setattr__(self, "noise_variance", channel.noise_variance)
        object.__setattr__(self, "directions", channel.directions)

    @classmethod
    def from_law(cls, law: Mapping[Any, str], *, directions: int = 1) -> Self:
        """Return the model of finitely many labels with probabilities given the projections.

        Parameters
        ----------
        law : mapping from number to str
            Probabilities in z, or in x1, x2, … of several directions; they add up to 1.
        directions : int

        Raises
        ------
        ParameterError
            If it is no law, not normalised, or one of more directions.

        Examples
        --------
        >>> MultiIndex.from_law({1: "(1 + erf(z))/2", -1: "(1 - erf(z))/2"}).thresholds().difficulty
        'trivial'
        """
        channel = channel_of_law(law, directions=directions)
        kept = tuple((str(y), str(p)) for y, p in channel.probabilities.items())
        return cls(channel.name, directions=directions, law=("probabilities", kept))

    @classmethod
    def from_density(
        cls, density: str, *, label_range: Sequence[float], directions: int = 1
    ) -> Self:
        """Return the model of a label with a density given the projections.

        Parameters
        ----------
        density : str
            In y and z, or x1, x2, …; smooth in y.
        label_range : (float, float)
            Range of y outside of which nothing is left of it.
        directions : int

        Raises
        ------
        ParameterError
            If it is not normalised, or depends on more directions.
        """
        channel = channel_of_density(density, label_range, directions=directions)
        found = cls(
            channel.name, directions=directions, law=("density", str(channel.density), label_range)
        )
        found._check_density()
        return found

    def _check_density(self) -> None:
        averages = LineAverages(self.channel, 1) if self.channel.directions == 1 else None
        if averages is None:
            return
        y, w = averages._labels
        points = np.array([-2.5, -0.7, 0.4, 1.9])
        total = averages.law(points, y) @ w
        worst = int(np.argmax(np.abs(total - 1)))
        if abs(total[worst] - 1) > 1e-8:
            raise ParameterError(
                f"density is not normalised: its integral over label_range is {total[worst]:.8g} "
                f"at u = {points[worst]:g}"
            )

    @cached_property
    def channel(self) -> Channel:
        """The law of labels."""
        if self.law is None:
            return read_channel(
                self.target, noise_variance=self.noise_variance, labels=self.labels,
                flips=self.flips, directions=self.directions,
            )  # fmt: skip
        kind, *rest = self.law
        if kind == "density":
            return channel_of_density(
                rest[0], rest[1], directions=self.directions or 1, name=self.target
            )
        given = {float(sp.Rational(y)): p for y, p in rest[0]}
        return channel_of_law(given, directions=self.directions or 1, name=self.target)

    # ------------------------------------------------------------------ the optimum

    @cached_property
    def _threshold(self) -> Threshold:
        return weak_recovery(self.channel)

    @cached_property
    def fixed_points(self) -> FixedPoints:
        """The curve α(q) of one direction.

        Raises
        ------
        ParameterError
            For several directions.
        """
        self._require_one("alpha(q)")
        return FixedPoints(self.channel, starts=self._threshold.kind == TRIVIAL)

    def _require_one(self, what: str) -> None:
        if self.channel.directions > 1:
            raise ParameterError(
                f"{what} is that of one direction, this law has {self.channel.directions}; solve, "
                "thresholds and state_evolution take several"
            )

    def solve(
        self, *, alpha: object, digits: int | None = None, certify: bool = False
    ) -> OptimalEstimation | KernelSolution:
        """Return overlaps and errors of Bayes and of AMP.

        Parameters
        ----------
        alpha : float
            n/d.
        digits : int, optional
            So many digits of the overlap of Bayes, and of its free entropy, with mpmath.
        certify : bool
            Prove them by intervals; both return the solution of :meth:`kernel`.

        Raises
        ------
        ParameterError
            If it is not positive.
        ConvergenceError
            If the overlap is too close to 1, or α too close to a threshold.
        UnsupportedExpressionError
            Of several directions without noise that take a continuum of values.
        """
        ratio = positive_number("alpha", alpha)
        if digits is not None or certify:
            option = "digits" if digits is not None else "certify"
            self._require_one(f"the solution with {option}=")
            kernel, start = self._kernel_near(ratio)
            return kernel.solve(alpha=ratio, start=start, digits=digits, certify=certify)
        if self.channel.directions > 1:
            return self._solved_matrix(ratio)
        reached = self.fixed_points.reached(ratio)
        points, bayes, amp = self.fixed_points, reached.bayes, reached.amp
        error, amp_error = (self.function_error(q) for q in (bayes, amp))
        accuracy = points.error(bayes)
        amp_accuracy = accuracy if amp == bayes else points.error(amp)
        two = len(self.channel.probabilities) == 2
        angles = [math.acos(min(math.sqrt(q), 1.0)) / math.pi if two else math.nan for q in
                  (bayes, amp)]  # fmt: skip
        at_start = points.at(0.0)[0] if points.starts else 0.0
        return OptimalEstimation(
            alpha=ratio, overlap=bayes, amp_overlap=amp, error=error, amp_error=amp_error,
            classification_error=angles[0], amp_classification_error=angles[1],
            first_iterate=ratio * at_start / (1 + ratio * at_start),
            free_entropy=points.free_entropy(bayes, ratio), fixed_points=reached.overlaps,
            overlaps=(), amp_overlaps=(), regime=self._regime(bayes, amp),
            errors={"overlap": accuracy, "amp_overlap": amp_accuracy},
            rests_on=(
                "stationarity of the replica-symmetric free entropy, proven for one index; "
                f"quadrature, two levels compared; {self._threshold.reason}"
            ),
        )  # fmt: skip

    def _landscape(self, of: str, within: Any, points: int, asked: Mapping[str, Any]) -> Landscape:
        self._require_one("the free energy over an overlap")
        if "alpha" not in asked:
            raise ParameterError("alpha is missing: give alpha=...")
        known_names((of,), self._with_landscape(), "order parameter")
        ratio = positive_number("alpha", asked["alpha"])
        low, high = numbers_of((0.0, _FARTHEST_OVERLAP) if within is None else within, "within")
        if not 0 <= low < high < 1:
            raise ParameterError(f"within must be a range of q in [0, 1), got {(low, high)}")
        found = self.fixed_points
        q = np.linspace(low, high, whole_number("points", points, minimum=8))
        entropies = [found.free_entropy(x, ratio, rough=True) for x in q.tolist()]
        line = Section.of(q, -np.array(entropies))
        roots = [*found.reached(ratio).overlaps, *([] if found.starts else [0.0])]
        solutions = []
        for x in sorted(x for x in roots if low <= x <= high):
            energy = -found.free_entropy(x, ratio)
            kind = kind_on([line], x, -found.free_entropy(x, ratio, rough=True))
            solutions.append(
                StationaryPoint(x, found.error(x), energy, kind, kind == MINIMUM, {of: x})
            )
        return Landscape(
            name="index_model", title=f"Minus the free entropy of labels of {self.channel.name}",
            of=of, within=(low, high), parameters={"alpha": ratio}, sections=(line,),
            points=tuple(solutions),
            stability=(
                "stable: a minimum, which state evolution runs to; the least is that of Bayes; the "
                "line by a coarser quadrature than its points"
            ),
            labels={},
        )  # fmt: skip

    def _with_landscape(self) -> tuple[str, ...]:
        return ("q",) if self.channel.directions == 1 else ()

    def _kernel_near(self, alpha: float) -> tuple[Kernel, dict[str, float]]:
        """Return the kernel, and the overlap of Bayes as first value of its unknowns."""
        kernel = self.kernel()
        overlap = self.fixed_points.reached(alpha).bayes
        if not 0 < overlap < 1:
            raise ParameterError(
                f"the overlap at alpha = {alpha:g} is {overlap:g} exactly, an end of its range: it "
                "has no further digits and no derivatives; take alpha above thresholds().threshold"
            )
        return kernel, {"q": overlap}

    def sensitivities(
        self, *, wrt: str | Sequence[str] | None = None, digits: int | None = None,
        progress: bool = True, **parameters: Any,
    ) -> Sensitivities:  # fmt: skip
        """Return exact derivatives of overlap and free entropy of Bayes with respect to alpha.

        Parameters
        ----------
        wrt : "alpha", optional
        digits : int, optional
        progress : bool
        **parameters
            Where: ``alpha``, and any of :meth:`at`.

        Raises
        ------
        ParameterError
            If `alpha` is missing, or the overlap is 0 or 1 exactly.
        UnsupportedExpressionError
            If the model has no kernel.
        """
        if parameters.get("alpha") is None:
            raise ParameterError("alpha is missing: give alpha=...")
        ratio = positive_number("alpha", parameters.pop("alpha"))
        kernel, start = self.at(**parameters)._kernel_near(ratio)
        first = kernel.solve(alpha=ratio, start=start)
        found: Sensitivities = kernel.sensitivities(
            wrt=wrt, digits=digits, progress=progress, start=first, alpha=ratio
        )
        return found

    def expansion(self, *_: Any, **__: Any) -> Any:
        """Refuse: overlaps are no power series in one of the parameters.

        Raises
        ------
        ParameterError
        """
        raise ParameterError(
            "overlaps of the best estimators have no expansion here: they begin at thresholds, "
            "which thresholds() returns exactly, and end at 1 exponentially; curve(alpha=...) "
            "follows them"
        )

    @staticmethod
    def _regime(bayes: float, amp: float) -> str:
        if abs(bayes - amp) < 1e-9:
            return "AMP reaches the optimum" if bayes else "nothing can be learned with n ∝ d here"
        return "hard: AMP stays below the optimum"

    def function_error(self, overlap: float | Array) -> float:
        r"""Return :math:`D_f(1) - D_f(Q)`, of the posterior mean of the function; NaN without one.

        Of an estimate that uses one direction with γ² it is the bound at q = γ²; of several
        directions the overlap is a matrix, or a number times the unit matrix.
        """
        if self.channel.function is None:
            return math.nan
        size = self.channel.directions
        if size == 1:
            q = float(np.asarray(overlap).item())
            found = self.fixed_points.averages.dual(q) if q < 1 else self._square
        else:
            matrix = overlap * np.eye(size) if np.ndim(overlap) == 0 else np.asarray(overlap)
            found = self._matrices.dual(matrix)
        return max(self._square - found, 0.0)

    @cached_property
    def _square(self) -> float:
        """E f²."""
        if self.channel.directions == 1:
            return self.fixed_points.averages.dual(1.0)
        return self._matrices.dual(np.eye(self.channel.directions))

    @cached_property
    def _matrices(self) -> MatrixFixedPoints:
        return MatrixFixedPoints(self.channel)

    def _solved_matrix(self, alpha: float) -> OptimalEstimation:
        points, size, nan = self._matrices, self.channel.directions, math.nan
        # From 0⁺, the symmetry of directions broken; and from the solution with information.
        low = _START * np.diag(1 + 0.3 * np.arange(size))
        starts = [points.informed * np.eye(size) - low / 10]
        threshold = self._threshold
        shown = threshold.kind == TRIVIAL
        # Where labels show nothing at first order, 0 is a fixed point, stable up to the threshold.
        nothing = not shown and alpha <= threshold.value
        reached = points.reached(alpha, starts if nothing else [low, *starts])
        amp = np.zeros((size, size)) if nothing else reached[0]
        bayes = max((amp, *reached), key=lambda matrix: points.free_entropy(matrix, alpha))
        least = [float(np.linalg.eigvalsh(matrix)[0]) for matrix in (bayes, amp)]
        first = points.at(1, np.zeros((size, size))).information if shown else amp * 0
        strongest = alpha * float(np.linalg.eigvalsh(first)[-1])
        different = (bayes,) if bayes is amp else (bayes, amp)
        errors = [self.function_error(x) for x in different]
        accuracy = [max(points.error(x, alpha), 1e-11) for x in different]
        return OptimalEstimation(
            alpha=alpha, overlap=least[0], amp_overlap=least[1],
            error=errors[0], amp_error=errors[-1],
            classification_error=nan, amp_classification_error=nan,
            first_iterate=strongest / (1 + strongest),
            free_entropy=points.free_entropy(bayes, alpha), fixed_points=(),
            overlaps=tuple(bayes.ravel().tolist()), amp_overlaps=tuple(amp.ravel().tolist()),
            regime=self._regime(*least) if max(least) > 1e-6 else "some direction is not learned",
            errors={
                "overlap": accuracy[0], "overlaps": accuracy[0],
                "amp_overlap": accuracy[-1], "amp_overlaps": accuracy[-1],
            },
            rests_on=(
                "replica-symmetric free entropy; iterated from small overlaps of broken symmetry "
                "and from large ones, the larger free entropy is Bayes; quadrature, two levels "
                f"compared; large ones begin at {points.informed:g}; {threshold.reason}"
            ),
        )  # fmt: skip

    def state_evolution(
        self, *, alpha: object, start: object = None, steps: object = _TRAJECTORY
    ) -> StateEvolution:
        """Return the overlap of AMP after each iteration.

        Parameters
        ----------
        alpha : float
        start : float or array (K, K), optional
            First overlap, of several directions a number times the unit matrix, or the overlap
            matrix; by default 0 in directions that labels show at first order and 0.001 in the
            others, where 0 is a fixed point.
        steps : int
        """
        ratio, count = positive_number("alpha", alpha), whole_number("steps", steps)
        threshold = self._threshold
        overlap = self._first_overlap() if start is None else self._checked_overlap(start)
        one, found = np.eye(self.channel.directions), [overlap]
        for _ in range(count):
            conjugate = ratio * self._information(found[-1])
            found.append(one - np.linalg.inv(one + conjugate))
        growth = ratio / threshold.value if threshold.kind == EASY else math.nan
        least = [float(np.linalg.eigvalsh(matrix)[0]) for matrix in found]
        matrices = tuple(tuple(x.ravel().tolist()) for x in found) if len(one) > 1 else ()
        return StateEvolution(ratio, least[0], tuple(least[1:]), matrices, growth)

    def _first_overlap(self) -> Array:
        one = np.eye(self.channel.directions)
        if self._threshold.kind != TRIVIAL:
            return _START * one
        shown, vectors = np.linalg.eigh(self._information(0 * one))
        hidden = vectors[:, shown < _HIDDEN * shown[-1]]
        return np.asarray(_START * hidden @ hidden.T)

    def _information(self, overlap: Array) -> Array:
        if self.channel.directions > 1:
            return self._matrices.levels[1].at(overlap).information
        return np.array([[self.fixed_points.averages.at(float(overlap[0, 0]))[0]]])

    def _checked_overlap(self, value: Any) -> Array:
        size = self.channel.directions
        found = real_array("start", value)
        if not found.ndim:
            found = found * np.eye(size)
        symmetric = found.shape == (size, size) and np.allclose(found, found.T)
        inside = np.linalg.eigvalsh(found) if symmetric else np.array([math.nan])
        if not (inside[0] > -1e-12 and inside[-1] < 1):
            raise ParameterError(
                "start must be an overlap q = cos² in [0, 1)"
                + (f" or a symmetric {size} × {size} matrix between 0 and 1" if size > 1 else "")
                + f", got {value!r}"
            )
        return found

    def thresholds(self, *, certify: bool = False, digits: int | None = None) -> WeakRecovery:
        """Return how the directions are learned: weak recovery, spinodals and transitions.

        Parameters
        ----------
        certify : bool
            Prove `digits` digits (default: 12) of α_c with ball arithmetic: of closed forms, of
            products of two directions, and of functions of one direction with noise.
        digits : int, optional

        Raises
        ------
        ParameterError
            If digits are given without a proof.
        UndecidedError
            If whether labels show a direction at first order cannot be decided.
        UnsupportedExpressionError
            If a proof is wanted of a number that is not known as such an integral.
        CertificationError
            If a proof does not succeed.
        """
        if certificate_wanted(certify):
            wanted = 12 if digits is None else checked_digits(digits)
            proof = certified_threshold(self.channel, self._threshold, digits=wanted)
        elif digits is not None:
            raise ParameterError("digits are those of a proof: thresholds(certify=True, digits=20)")
        else:
            proof = None
        found = self._threshold
        nan, errors = math.nan, {"threshold": found.error} if found.error else {}
        spinodals: tuple[float, ...] = ()
        joint: tuple[float, ...] = ()
        reason = found.reason
        transition, exact = nan, nan
        if self.channel.directions == 1:
            points = self.fixed_points
            spinodals = tuple(a for _, a in points.spinodals)
            transition = nan if points.first_order is None else points.first_order
            if self.channel.is_certain:
                exact = max((points.recovery, *spinodals))
        elif found.kind == TRIVIAL:
            try:
                joint = self._specialisation()
            except GiantstepError as error:
                # What is known of the first directions does not hang on it.
                reason += f"; where the others are learned is not known: {error}"
        return WeakRecovery(
            difficulty=found.kind, threshold=found.value,
            formula="" if found.exact is None else str(found.exact),
            specialisation=joint, spinodals=spinodals, first_order=transition,
            exact_recovery=exact, errors=errors, rests_on=reason, certificate=proof,
        )  # fmt: skip

    def _specialisation(self) -> tuple[float, ...]:
        known = specialising(self.channel)
        if known is None or self.channel.is_certain:
            return ()
        return self._matrices.specialisation(np.array(known.evalf(17).tolist(), float))

    @property
    def exact_threshold(self) -> sp.Expr | None:
        """α_c as a SymPy number or integral; None if it is known by quadrature only."""
        return self._threshold.exact

    # ------------------------------------------------------------------ equations

    def kernel(self) -> Kernel:
        """Return the fixed-point equations as a kernel: digits, branches, proofs, files.

        Raises
        ------
        UnsupportedExpressionError
            If the partition function of a label has no closed form.
        """
        self._require_one("the kernel")
        known = self.channel.closed_labels()
        if known is None:
            raise UnsupportedExpressionError(
                f"the labels {self.target!r} have no partition function in closed form, so that "
                "there is no kernel; solve, curve and state_evolution use quadrature"
            )
        return lower(physics.bayes_system(*known, name="index_model"))

    # ------------------------------------------------------------------ other estimators

    def estimators(self, *, alpha: object) -> EstimatorLadder:
        """Return the squared cosines of giant step, ridge regression, AMP and Bayes.

        Parameters
        ----------
        alpha : float

        Raises
        ------
        ParameterError
            For several directions, or laws without a linear coefficient.
        """
        self._require_one("the ladder of estimators")
        ratio = positive_number("alpha", alpha)
        (h,), square = self.linear_part
        shown = self.fixed_points.at(0.0)[0] if self.fixed_points.starts else 0.0
        reached = self.fixed_points.reached(ratio)
        given = (ratio, h, square, shown)
        # Without a linear part, or labels that show nothing at first order, they see nothing.
        needed = (h, h, shown, shown)
        values = [
            float(f(*given)) if seen else 0.0
            for f, seen in zip(_ESTIMATORS[:-1], needed, strict=True)
        ]
        values.append(float(_ESTIMATORS[-1](*given)) if shown else math.nan)
        return EstimatorLadder(
            ratio, values[0], values[2], values[1], values[3], reached.amp, reached.bayes, values[4]
        )

    @cached_property
    def linear_part(self) -> tuple[Array, float]:
        """E[u y] (K,) and E[y²], by which giant steps and linear estimators see labels.

        Raises
        ------
        ParameterError
            Of a density of one's own.
        """
        channel, size = self.channel, self.channel.directions
        if channel.probabilities:
            moments = dict(zip(channel.probabilities, label_moments(channel), strict=True))
            first = sp.zeros(size, 1)
            for y, (_, shown, _) in moments.items():
                first += y * shown
            second = sp.Add(*(y**2 * p for y, (p, *_) in moments.items()))
            name = f"E[u y] of {self.target}"
            h = [0.0 if is_exactly_zero(x, name) else float(x.evalf(17)) for x in first]
            return np.array(h), float(second.evalf(17))
        if channel.function is None:
            raise ParameterError(
                "linear estimators need a function or finitely many labels, this law is a density"
            )
        square = self._square + channel.noise_variance
        if size > 1:
            moment, rows = self._matrices.levels[1].function_moment, np.eye(size, dtype=int)
            return np.array([moment(row) for row in rows.tolist()]), square
        if not self.fixed_points.starts:
            return np.zeros(1), square
        node = GaussianExpectation(channel.function * z, z).doit()
        if is_exactly_zero(node, f"E[u f(u)] of {self.target}"):
            return np.zeros(1), square
        averages = self.fixed_points.averages
        u, w = averages._line(1.0, 1.0)
        return np.array([w @ (u * averages.function(u))]), square

    def convex(self, *, loss: str = "square", alpha: object, ridge: object) -> ConvexEstimate:
        r"""Return the squared cosine of the minimiser of a convex loss with a ridge penalty.

        Parameters
        ----------
        loss : str
            "square", "logistic", "hinge", or an expression in the label y and the prediction x.
        alpha, ridge : float
            λ of :math:`\sum\ell(y_\mu, w\cdot x_\mu) + \frac\lambda2|w|^2`.

        Raises
        ------
        UnsupportedExpressionError
            For losses with kinks, unless labels take finitely many values.
        """
        self._require_one("the squared cosine")
        ratio, penalty = positive_number("alpha", alpha), positive_number("ridge", ridge)
        channel, x = self.channel, sp.Symbol("x", real=True)
        text = _LOSSES.get(loss, loss)
        expr = parse_expression(text, [physics.label, x], argument="loss")
        at = {z: physics.index}
        labels = {y: p.xreplace(at) for y, p in channel.probabilities.items()}
        if labels and (known := channel.closed_labels()) is not None:
            labels = known[0]
        if not labels and channel.function is None:
            raise ParameterError("convex losses need a function or finitely many labels")
        if not labels and is_kinked(expr, x):
            raise UnsupportedExpressionError(
                f"loss {loss!r} has kinks, which is supported for finitely many labels, such as "
                f"signs; {self.target!r} has a continuum of them: give a smooth loss"
            )
        regression = None if labels else channel.function.xreplace(at)  # type: ignore[union-attr]
        kernel = lower(physics.erm_system(expr, x, labels, regression, name="convex_estimate"))
        given: dict[str, Any] = {"alpha": ratio, "ridge": penalty}
        if not labels:
            given["noise_variance"] = channel.noise_variance
        found = kernel.solve(**given)
        return ConvexEstimate(
            ratio, penalty, found["squared_cosine"],
            {"squared_cosine": found.errors["squared_cosine"]},
            "saddle-point equations of a convex loss, replica-symmetric; quadrature",
        )  # fmt: skip

    # ------------------------------------------------------------------ simulation

    def network(self, dimension: int, student: str = "tanh", **options: Any) -> Network:
        """Return a network that learns these labels, for :func:`giantstep.simulate`."""
        if self.law is not None or self.flips:
            raise ParameterError("networks take functions with labels of a name, without flips")
        # Of coordinates only as many directions are drawn as labels depend on.
        teacher = self.channel.function if names_coordinates(self.target) else self.target
        return Network(
            student, teacher, dimension=dimension, labels=self.labels,
            noise_variance=self.noise_variance, **{"width": 1, **options},
        )  # fmt: skip

    def message_passing(
        self, *, alpha: float, dimension: int, steps: int = _TRAJECTORY, start: Any = 0.0
    ) -> MessagePassing:
        """Return AMP as a measurement of :func:`giantstep.simulate`, on αd samples of a network.

        Parameters
        ----------
        alpha : float
        dimension : int
        steps : int
        start : float or array (K, K)
            Overlap of the first estimate with the teacher; 0 starts without information.

        Raises
        ------
        UnsupportedExpressionError
            Of labels of three directions that jump.
        """
        samples = sample_count("alpha", positive_number("alpha", alpha), dimension)
        first = tuple(map(tuple, self._checked_overlap(start).tolist()))
        return MessagePassing(
            self._posteriors.posterior, samples, whole_number("steps", steps), first
        )

    @property
    def _posteriors(self) -> LineAverages | PlaneAverages:
        """What labels say of u; finite networks need no more than the rough level of planes."""
        one = self.channel.directions == 1
        return LineAverages(self.channel, 1) if one else PlaneAverages(self.channel, 0)

    def spectral(self, *, alpha: float, dimension: int) -> Spectral:
        r"""Return the spectral estimator :math:`\sum T(y)\otimes xx^\top` as a measurement.

        :math:`T(y) = 1 - \mathbb{E}[uu^\top|y]^{-1}` has the lowest threshold, α_c.
        """
        samples = sample_count("alpha", positive_number("alpha", alpha), dimension)
        return Spectral(_Preprocessing(self._posteriors, self.channel.directions), samples)

    def simulate(
        self, dimension: int = 1000, *, alpha: float, steps: int = _TRAJECTORY, start: Any = 0.0,
        **options: Any,
    ) -> SimulatedNetworks:  # fmt: skip
        """Run AMP on samples of finite dimension, and the spectral estimator of easy directions.

        Parameters
        ----------
        dimension : int
        alpha : float
        steps : int
            Iterations of AMP.
        start : float or array (K, K)
            As for :meth:`message_passing`.
        **options
            ``seeds``, ``seed``, ``workers``, ``store``, … of :func:`giantstep.simulate`.

        Returns
        -------
        SimulatedNetworks
            ``amp_overlap`` after each iteration; ``spectral_overlap`` of labels that show nothing
            at first order.
        """
        network = self.network(dimension)
        measures: list[Any] = [
            self.message_passing(alpha=alpha, dimension=dimension, steps=steps, start=start)
        ]
        if self._threshold.kind == EASY:
            measures.append(self.spectral(alpha=alpha, dimension=dimension))
        result = run(network, measures, **options)
        return SimulatedNetworks.of(network, None, result.seed, result)

    # ------------------------------------------------------------------ curves and files

    _asked: ClassVar[tuple[str, ...]] = ("alpha",)

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters."""
        known_names(parameters, [f.name for f in fields(self)], "parameter of this model")
        return replace(self, **parameters)

    def _axes(self) -> Mapping[str, str]:
        return {"alpha": "positive", "noise_variance": "nonnegative", "flips": "nonnegative"}

    def _names(self) -> Names:
        outputs = ("overlap", "amp_overlap", "giant_step", "ridge_overlap", "test_error",
                   "amp_error")  # fmt: skip
        drawn = ("overlap", "amp_overlap", "ridge_overlap", "giant_step")
        meanings = {
            "overlap": "squared cosine of the Bayes-optimal estimate",
            "amp_overlap": "squared cosine of approximate message passing",
            "giant_step": "squared cosine of the first giant step",
            "ridge_overlap": "squared cosine of ridge regression at its best penalty",
            "test_error": "mean squared error of the posterior mean of the function",
            "amp_error": "the same of approximate message passing",
        }
        return Names(outputs, (), drawn, drawn, meanings)

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        return {
            "model": self.to_json(),
            "rests_on": "replica-symmetric free entropy, proven for one index; quadrature",
        }

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        return solve_groups(
            self, columns, _solved_rows, outputs=self._names().outputs, raising=raising,
            together=("alpha",),
        )  # fmt: skip


_LOSSES = {"square": "(y - x)**2/2", "logistic": "softplus(-y*x)", "hinge": "relu(1 - y*x)"}
_GIVEN = (physics.alpha, physics.linear, physics.square, physics.information)
_ESTIMATORS = tuple(
    compiled(expr, _GIVEN, "python")
    for expr in (
        physics.giant_step_overlap(), physics.ridge_overlap(),
        physics.transformed(physics.giant_step_overlap()),
        physics.transformed(physics.ridge_overlap()), physics.efficiency(),
    )
)  # fmt: skip


@dataclass(frozen=True)
class _Preprocessing:
    """Labels as weights of the spectral estimator."""

    averages: LineAverages | PlaneAverages
    directions: int

    def __call__(self, y: Array) -> Array:
        one = np.eye(self.directions)
        score, slope = self.averages.posterior(y)(np.zeros((len(y), self.directions)), one)
        # E[uuᵀ|y] = 1 − (−∂g) + ggᵀ at ω = 0 and V = 1; a label that says u = 0 has none.
        second = one - slope + score[:, :, None] * score[:, None, :]
        values, vectors = np.linalg.eigh(second)
        weights = _spectral_transform(np.maximum(values, 1e-3))
        return np.asarray(np.einsum("nij,nj,nkj->nik", vectors, weights, vectors))


_second = sp.Symbol("m2", positive=True)
_spectral_transform = compiled(physics.spectral_transform(_second), (_second,))


def _solved_rows(model: MultiIndex, columns: Columns) -> BatchSolution:
    rows = []
    for alpha in columns["alpha"].tolist():
        ladder = model.estimators(alpha=alpha)
        rows.append((
            ladder.bayes, ladder.amp, ladder.giant_step, ladder.ridge,
            model.function_error(ladder.bayes), model.function_error(ladder.amp),
        ))  # fmt: skip
    table = np.array(rows)
    n = len(table)
    return BatchSolution(
        values=dict(zip(model._names().outputs, table.T, strict=True)),
        errors={},
        iterations=np.zeros(n, dtype=np.int64),
        residual=np.zeros(n),
        nodes=np.zeros(n, dtype=np.int64),
        converged=np.ones(n, dtype=bool),
    )
