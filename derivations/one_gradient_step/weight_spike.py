r"""The largest singular value of the first layer after the step, and where its vectors point.

Numbers come from functions printed once from the expressions here and kept as text. One
point is computed with at least 40 digits and then rounded: next to the threshold
:math:`\theta_1 = \beta^{1/4}` nothing is lost. Floats are read as the decimal numbers that they
print as; proven intervals come from the same formulas, with proven enclosures of the moments of
student and teacher. Whether there is an outlier is then proven by a sign, which at the threshold it
cannot be.

One step makes :math:`W_1 = W_0 + u\,a^\top` to leading order (:mod:`.symbols`), a matrix with a
perturbation of rank one (:mod:`giantstep.symbolic.systems.rank_one_perturbation`). Its length is
proportional to the step size, so with :math:`q = \eta_c/\eta`, the ratio to the step size at which
the largest singular value leaves the bulk, :math:`T = \theta_1^2 = \sqrt\beta/q^2`. In q the
overlaps have the factor 1 − q, which is handed in as a number of its own: nothing cancels next to
the threshold, and nothing overflows for large steps.

(Ba et al., arXiv 2205.01445, section 3; the label noise in θ1 and the overlap of the right singular
vector with the readout are derived here.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from ... import __version__
from ...deprecations import by_name
from ...digits import checked_digits
from ...errors import CertificationError, ParameterError
from ...labelled import labelled
from ...numeric.arguments import nonnegative_number
from ...pages import Block, Indented
from ...result import Number, Result, Row, quantity
from ...runtime.generated import defined
from ...runtime.precision import local_context
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.expressions.factors import factored
from ...symbolic.gaussian.enclosed_formulas import FormulaBalls
from ...symbolic.printing.compiled import Formula, function_source
from ...symbolic.systems.rank_one_perturbation import (
    RankOneOutlier,
    bulk_edge,
    gram_density,
    rank_one_outlier,
    singular_value_density,
)
from ..certificates.certificate import LIBRARIES, CertifiedValues, certificate_wanted, midpoint
from ..derived import derived
from ..figures import drawing, number_text, plain_text
from ..kernels.precise import exact_number
from ..spectra.spectrum import Caption, Drawing, draw
from . import symbols
from .figures import loss_note
from .moments import exact_moments
from .symbols import (
    IDENTIFIERS,
    aligned_square,
    alpha0,
    beta,
    linear,
    noise,
    spike_square,
    step_size,
    teacher_linear,
    teacher_residual,
)

if TYPE_CHECKING:
    import xarray as xr

    from .model import OneGradientStep

root_beta = sp.Symbol("r", positive=True)
"""√β, the value of T at the threshold."""

ratio = sp.Symbol("q", positive=True)
"""η_c/η: below one if there is an outlier."""

distance = sp.Symbol("e", nonnegative=True)
"""1 − q, known to all digits also where q is next to one."""

strength = sp.Symbol("T", positive=True)
"""θ1²."""

singular_value, eigenvalue = sp.symbols("s x", positive=True)

lower, upper = sp.Symbol("s_-", nonnegative=True), sp.Symbol("s_+", positive=True)
"""Smallest and largest singular value of the bulk."""

_STEP = (alpha0, noise, linear, teacher_linear, teacher_residual)
_NAMES = {
    **IDENTIFIERS,
    root_beta: "root_beta",
    ratio: "ratio",
    distance: "distance",
    singular_value: "singular_value",
    eigenvalue: "eigenvalue",
    lower: "lower",
    upper: "upper",
}


def direction_square() -> sp.Expr:
    r"""Return the limit of :math:`|X^\top y/n|^2`, what is left of θ1² without (η μ1)²."""
    return sp.expand(spike_square() / (step_size * linear) ** 2)


def spike_length() -> sp.Expr:
    r"""Return θ1 at unit step size."""
    return sp.Abs(linear) * sp.sqrt(direction_square())


def aligned_length() -> sp.Expr:
    """Return θ2 at unit step size; negative if μ1 and μ1* have opposite signs."""
    return linear * teacher_linear


def alignment() -> sp.Expr:
    r"""Return the cosine of :math:`X^\top y` and the teacher's direction."""
    return teacher_linear / sp.sqrt(direction_square())


def critical_step_size() -> sp.Expr:
    r"""Return η_c, where θ1² = √β; for the gradient of half the squared loss."""
    return sp.sqrt(root_beta) / spike_length()


def outlier() -> RankOneOutlier:
    """Return largest singular value and overlaps above the threshold, in T and β."""
    return rank_one_outlier(strength, beta)


def scaled_outlier() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    r"""Return q s_1 and the squared overlaps with u and a, in √β, q and 1 − q.

    Sums and products of positive terms: :math:`q^2 s_1^2 = (r + q^2)(1 + r q^2)`, and both
    overlaps have the factor :math:`1 - q^4 = (1 - q)(1 + q)(1 + q^2)`.
    """
    result = outlier()
    rule = {strength: root_beta / ratio**2, beta: root_beta**2}
    square = factored(sp.cancel(result.square.subs(rule) * ratio**2))
    overlaps = []
    for overlap in (result.left_overlap, result.right_overlap):
        numerator, denominator = sp.fraction(sp.cancel(overlap.subs(rule)))
        # The sign of the fraction is SymPy's choice: make the denominator positive.
        if denominator.subs({root_beta: 1, ratio: 1}) < 0:
            numerator, denominator = -numerator, -denominator
        rest = factored(sp.cancel(numerator / (1 - ratio)))
        overlaps.append(distance * rest / denominator)
    return sp.sqrt(square), overlaps[0], overlaps[1]


def square_outside(spike: sp.Expr) -> sp.Expr:
    r"""Return :math:`s_1^2 - (1 + \sqrt\beta)^2 = (T - \sqrt\beta)^2/T` at T = `spike`."""
    return (spike - sp.sqrt(beta)) ** 2 / spike


def identities() -> dict[str, sp.Expr]:
    """Return what has to vanish: the scaled forms against those of the perturbed matrix."""
    result = outlier()
    rule = {ratio: sp.sqrt(root_beta / strength)}
    scaled = [
        expr.subs(distance, 1 - ratio).subs(rule).subs(root_beta, sp.sqrt(beta))
        for expr in scaled_outlier()
    ]
    q = sp.sqrt(sp.sqrt(beta) / strength)
    unit = {step_size: 1}
    return {
        "squared singular value": result.square - (scaled[0] / q) ** 2,
        "overlap with u": result.left_overlap - scaled[1],
        "overlap with a": result.right_overlap - scaled[2],
        "distance to the bulk": result.square - bulk_edge(beta, 1) ** 2 - square_outside(strength),
        "threshold": result.threshold - sp.sqrt(beta),
        "theta1": spike_length() ** 2 - spike_square().subs(unit),
        "theta2": aligned_length() ** 2 - aligned_square().subs(unit),
        "alignment": alignment() ** 2 - aligned_square() / spike_square(),
        "critical step size": spike_square().subs(
            step_size, critical_step_size().subs(root_beta, sp.sqrt(beta))
        )
        - sp.sqrt(beta),
    }


def spike_sources() -> dict[str, str]:
    """Return sources: "precise" for one point in an mpmath context, "arrays" for many in floats."""
    result = Formula(
        (root_beta, ratio, distance),
        scaled_outlier(),
        "q s_1 and the squared overlaps with u and a",
    )
    precise = {
        "lengths": Formula(
            _STEP, (spike_length(), aligned_length()), "theta1 and theta2 at unit step size"
        ),
        "alignment": Formula(_STEP, alignment(), "the cosine of X^T y and the teacher's direction"),
        "critical": Formula((root_beta, *_STEP), critical_step_size(), "eta_c for half the loss"),
        "outlier": result,
    }
    arrays = {
        "outlier": result,
        "density": Formula(
            (singular_value, lower, upper, beta),
            singular_value_density(singular_value, lower, upper, beta),
            "that of singular values",
        ),
        "gram_density": Formula(
            (eigenvalue, lower, upper),
            gram_density(eigenvalue, lower, upper),
            "that of eigenvalues of W W^T",
        ),
    }
    return {
        "precise": function_source(precise, "mpmath", names=_NAMES),
        "arrays": function_source(arrays, names=_NAMES),
    }


Real = NDArray[np.float64]

LOSS_FACTORS = {"half": 1, "full": 2}
"""Length of the gradient of a loss, in units of that of half the squared loss."""

_DIGITS = 40
# Of the moments; the formulas lose none.
_SPARE = 5


class SpikePoint:
    """The parameters of a model in many digits, and the printed functions at them."""

    def __init__(self, model: OneGradientStep, digits: int | None) -> None:
        wanted = digits or _DIGITS
        self.ctx = ctx = local_context(wanted)
        self.model = model
        self.functions = defined(_sources(model.cache)["precise"], ctx=ctx)
        student = model.student_moments.precise(wanted + _SPARE)
        teacher = model.teacher_moments.precise(wanted + _SPARE)
        self.slope = ctx.mpf(student["linear"])
        self.given = (
            ctx.inf if model.step_samples == math.inf else self._decimal(model.step_samples),
            self._decimal(model.noise_variance),
            self.slope,
            ctx.mpf(teacher["linear"]),
            ctx.mpf(teacher["residual"]),
        )
        self.root_beta = ctx.sqrt(self._decimal(model.beta))
        self.factor = LOSS_FACTORS[model.loss]
        self.critical = self._critical()

    def _decimal(self, value: float) -> Any:
        return self.ctx.mpf(repr(value))

    def unit_lengths(self) -> tuple[Any, Any]:
        length, aligned = self.functions.lengths(*self.given)
        return length, aligned

    def lengths(self) -> tuple[Any, Any]:
        eta = self.factor * self._decimal(self.model.step_size)
        length, aligned = self.unit_lengths()
        return eta * length, eta * aligned

    def alignment(self) -> Any:
        samples, noise, _, linear, residual = self.given
        if not linear and (samples == self.ctx.inf or not (noise or residual)):
            return self.ctx.zero
        gamma: Any = self.functions.alignment(*self.given)
        return -gamma if self.slope < 0 else gamma

    def _critical(self) -> Any:
        if not self.unit_lengths()[0]:
            return self.ctx.inf
        result: Any = self.functions.critical(self.root_beta, *self.given)
        return result / self.factor

    def edges(self) -> tuple[Any, Any]:
        return abs(1 - self.root_beta), 1 + self.root_beta

    def position(self, step_size: float) -> tuple[Any, Any]:
        """η_c/η and 1 − η_c/η; without a step or a threshold (inf, −inf)."""
        eta = self._decimal(step_size)
        if not eta or self.critical == self.ctx.inf:
            return self.ctx.inf, -self.ctx.inf
        return self.critical / eta, (eta - self.critical) / eta

    def outlier(self, ratio: Any, distance: Any) -> tuple[Any, Any, Any]:
        if not distance > 0:
            return self.edges()[1], self.ctx.zero, self.ctx.zero
        top, left, right = self.functions.outlier(self.root_beta, ratio, distance)
        return top / ratio, left, right


@derived("one_gradient_step/weight_spike", dict)
def _sources() -> dict[str, str]:

    return spike_sources()


def array_functions(model: OneGradientStep) -> SimpleNamespace:
    return defined(_sources(model.cache)["arrays"])


def outlier_at(model: OneGradientStep, spike_square: ArrayLike) -> tuple[Real, Real, Real]:
    r"""Return largest singular value and squared overlaps of its vectors with u/|u| and a/|a|.

    `spike_square` holds :math:`T = |u|^2 |a|^2`, nonnegative; of the model β alone counts.
    """
    squares = np.asarray(spike_square, dtype=float)
    root = math.sqrt(model.beta)
    above = squares > root
    top = np.full(squares.shape, 1 + root)
    left, right = np.zeros(squares.shape), np.zeros(squares.shape)
    ratio = np.sqrt(root / squares[above])
    distance = (squares[above] - root) / (squares[above] * (1 + ratio))
    scaled, left[above], right[above] = array_functions(model).outlier(root, ratio, distance)
    top[above] = scaled / ratio
    return top, left, right


def require_finite(model: OneGradientStep, largest: float) -> None:
    if not math.isfinite(largest):
        raise ParameterError(
            "the spike is too large for a float; use a smaller step_size or noise_variance, or "
            f"digits=20 (step_size={model.step_size:g}, noise_variance={model.noise_variance:g})"
        )


# Instead of zero, where a density has its limit from above; its inverse is a float.
_SMALLEST = 1e-300


@dataclass(frozen=True, repr=False)
class WeightSpike(Result):
    r"""Spectrum of the first layer after one step, for d → ∞: a bulk and at most one outlier.

    Numbers are floats, or mpmath numbers if digits were asked for.

    Attributes
    ----------
    theta1, theta2 : float
        Length of the spike u of :math:`W_1 = W_0 + u\,a^\top`, |a| = 1, and its part along the
        teacher's direction. θ1 holds the label noise.
    alignment : float
        γ, the cosine of u and the teacher's direction; for η → 0 or μ1 → 0 its limit (from above),
        and zero where no limit is.
    critical_step_size : float
        Step size from which there is an outlier, for the `loss` of the model; inf if there is none
        at any step size.
    supercritical : bool
        Whether the step is larger: then :math:`\theta_1 > \beta^{1/4}`.
    singular_value : float
        Largest singular value; the edge of the bulk if there is no outlier.
    bulk_edges : tuple of float
        Smallest and largest singular value of the bulk, |1 − √β| and 1 + √β.
    alignment_spike, alignment_teacher, alignment_readout : float
        Squared overlaps of the largest singular value's left vector with u/|u| and with the
        teacher's direction, and of its right vector with the readout a of the step; zero if there
        is no outlier.
    atom : float
        Share of zeros among the eigenvalues of the d × d matrix :math:`WW^\top`, max(0, 1 − β).
    digits : int or None
        Digits asked for.
    certificate : CertifiedValues or None
        Proven intervals of these numbers, which are then their midpoints.
    """

    _document = "first layer after one step"

    model: OneGradientStep
    theta1: Number = field(metadata=quantity("length of the spike theta1", r"\theta_1"))
    theta2: Number = field(metadata=quantity("along the teacher theta2", r"\theta_2"))
    alignment: Number = field(metadata=quantity("cosine with the teacher", r"\gamma"))
    critical_step_size: Number = field(metadata=quantity("critical step size", r"\eta_c"))
    supercritical: bool
    singular_value: Number = field(metadata=quantity("largest singular value", "s_1(W_1)"))
    alignment_spike: Number = field(
        metadata=quantity("squared overlap with the spike", r"\langle u_1, u\rangle^2/|u|^2")
    )
    alignment_teacher: Number = field(
        metadata=quantity("squared overlap with the teacher", r"\langle u_1, \beta_*\rangle^2")
    )
    alignment_readout: Number = field(
        metadata=quantity("squared overlap with the readout", r"\langle v_1, a\rangle^2")
    )
    bulk_edges: tuple[Number, Number] = field(
        metadata=quantity("bulk of singular values", r"[s_\mathrm{min}, s_\mathrm{max}]")
    )
    atom: Number = field(metadata=quantity("share of zeros of W W^T", r"\max(0, 1 - \beta)"))
    digits: int | None = None
    certificate: CertifiedValues | None = None

    @property
    def spike_strength(self) -> Any:
        """θ1."""
        return self.theta1

    @property
    def aligned_strength(self) -> Any:
        """θ2."""
        return self.theta2

    @property
    def beta(self) -> float:
        """Aspect ratio N/d."""
        return self.model.beta

    @property
    def rests_on(self) -> str:
        """What the numbers rest on."""
        precision = "float" if self.digits is None else f"{self.digits} digits"
        if self.certificate is not None:
            precision = self.certificate.rests_on
        return (
            f"{precision}, from closed forms; largest singular value of a random matrix with a "
            "perturbation of rank one (Ba et al., arXiv 2205.01445; label noise derived here)"
        )

    @property
    def verdict(self) -> str:
        """Whether there is an outlier, and from which step size on."""
        if self.critical_step_size == math.inf:
            return "no step size makes an outlier"
        result = "an outlier" if self.supercritical else "no outlier"
        return f"{result}: the critical step size is {self.text(self.critical_step_size)}"

    def entries(self) -> list[Row]:
        """Return the numbers; the share of zeros only where there are some."""
        return [row for row in super().entries() if row.name != "atom" or self.atom]

    def page(self) -> Iterable[Block]:
        """Return the numbers, whether there is an outlier, and what they rest on."""
        numbers, rests_on = super().page()
        yield f"first layer after {self.model}"
        yield Indented([numbers, self.verdict, rests_on])

    def density(self, x: ArrayLike) -> Any:
        """Return the density of the singular values, without the outlier, at points x.

        Normalised to the min(d, N) singular values of the d × N matrix: its mass is one.

        Raises
        ------
        ParameterError
            If x are no real numbers.
        """
        result = array_functions(self.model)
        lower, upper = map(float, self.bulk_edges)
        return _inside(x, lower, upper, lambda s: result.density(s, lower, upper, self.beta))

    def gram_density(self, x: ArrayLike) -> Any:
        r"""Return the density of the eigenvalues of :math:`WW^\top`, squared singular values.

        Normalised to the d eigenvalues: its mass is min(1, β), and :attr:`atom` is at zero. At
        β = 1 it is infinite at zero.

        Raises
        ------
        ParameterError
            If x are no real numbers.
        """
        result = array_functions(self.model)
        lower, upper = map(float, self.bulk_edges)
        values = _inside(x, lower**2, upper**2, lambda v: result.gram_density(v, lower, upper))
        if lower == 0:
            values = np.where(np.asarray(x) == 0, math.inf, values)[()]
        return values

    def plot(self, singular_values: Any = None, *, ax: Any = None, **style: Any) -> Any:
        """Draw density and outlier of the first layer's singular values.

        Parameters
        ----------
        singular_values : array-like or Dataset, optional
            Simulated ones, of one network or of several (a row each), or what
            ``OneGradientStep.simulate_spectra`` returns; drawn as a histogram. Those
            beyond the bulk are marked.
        """
        samples = []
        if singular_values is not None:
            samples = [("simulation", _rows(singular_values).ravel())]
        lower, upper = map(float, self.bulk_edges)
        # Nodes that crowd at the edges, where the density has roots.
        points = lower + (upper - lower) * np.sin(np.linspace(0, np.pi / 2, _POINTS)) ** 2
        drawn = Drawing(
            points, self.density(points), np.zeros(_POINTS, dtype=np.int64), (lower, upper),
            (float(self.singular_value),) if self.supercritical else (),
        )  # fmt: skip
        with drawing(ax, style) as (axes, pen):
            draw(axes, drawn, samples, _caption(self), pen)
        return axes


@by_name("digits", "certify")
def weight_spike(
    model: OneGradientStep, *, digits: int | None = None, certify: bool = False
) -> WeightSpike:
    r"""Return the spike of the first layer after the step: sizes, outlier and overlaps.

    Parameters
    ----------
    digits : int, optional
        So many digits with mpmath. Floats are then read as the decimal numbers that they
        print as.
    certify : bool
        Also prove intervals of the numbers, ``certificate``, to 15 digits or `digits`; needs
        python-flint.

    Raises
    ------
    ParameterError
        If `digits` is no positive whole number, or the spike is too large for a float.
    CertificationError
        If an interval cannot be proven, as at the threshold of the outlier.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> spike = OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=2).weight_spike()
    >>> spike.supercritical, round(spike.critical_step_size, 4), round(spike.alignment, 4)
    (False, 2.0963, 0.8039)
    """
    count = None if digits is None else checked_digits(digits)
    if certificate_wanted(certify):
        return _certified(weight_spike(model, digits=count))
    point = SpikePoint(model, count)
    theta1, theta2 = point.lengths()
    gamma = point.alignment()
    ratio, distance = point.position(model.step_size)
    top, left, right = point.outlier(ratio, distance)
    share = gamma**2 * left
    ctx = point.ctx
    values: dict[str, Any] = {
        "theta1": theta1,
        "theta2": theta2,
        "alignment": gamma,
        "critical_step_size": point.critical,
        "singular_value": top,
        "alignment_spike": left,
        "alignment_teacher": share,
        "alignment_readout": right,
        "atom": max(ctx.zero, 1 - point.root_beta**2),
    }
    edges: tuple[Any, ...] = point.edges()
    if count is None:
        values = {name: float(value) for name, value in values.items()}
        edges = tuple(map(float, edges))
        require_finite(model, values["theta1"])
    return WeightSpike(
        model=model,
        supercritical=bool(distance > 0),
        bulk_edges=(edges[0], edges[1]),
        digits=count,
        **values,
    )


def _certified(found: WeightSpike) -> WeightSpike:

    proof = certified_weight_spike(found.model, found.digits or DEFAULT_DIGITS)
    ctx = None if found.digits is None else local_context(found.digits)
    numbers: dict[str, Any] = {name: midpoint(proof[name], ctx) for name in proof}
    return replace(
        found, **numbers, supercritical=not proof["alignment_readout"].is_exact, certificate=proof
    )


def _inside(x: ArrayLike, lower: float, upper: float, function: Callable[[Real], Any]) -> Any:
    try:
        points = np.asarray(x)
        if points.dtype.kind not in "fiu":
            raise TypeError
    except (TypeError, ValueError):
        raise ParameterError(f"x must be a real number or an array of them, got {x!r}") from None
    points = points.astype(float)
    if np.isnan(points).any():
        raise ParameterError("x must hold no nan")
    result = np.zeros(points.shape)
    inside = (points >= lower) & (points <= upper)
    # At zero, which is inside only if β = 1, the limit from above.
    result[inside] = function(np.maximum(points[inside], _SMALLEST))
    return result[()]


# Closer to the threshold than this, relative to the step size, a float would lose digits.
_NEAR = 1e-2


def weight_spike_curve(model: OneGradientStep, step_size: object) -> xr.Dataset:
    """Return the spike of the first layer over step sizes.

    Parameters
    ----------
    step_size : array-like
        Step sizes >= 0, in the `loss` of the model; that of the model itself plays no part.

    Returns
    -------
    Dataset
        ``theta1``, ``theta2``, ``singular_value``, ``alignment_spike``,
        ``alignment_teacher``, ``alignment_readout`` and ``supercritical`` over
        ``step_size``; see :class:`.weight_spike.WeightSpike`.

    Raises
    ------
    ParameterError
        If step sizes are no nonnegative finite numbers, or a spike is too large for a float.
    AssumptionError
        If the student jumps and a step is not zero.
    """
    steps = _step_sizes(step_size)
    # Refuses what the model refuses at a step size that is not zero.
    replace(model, step_size=float(steps.max()))
    point = SpikePoint(model, None)
    length, aligned = (float(x) for x in point.unit_lengths())
    critical = float(point.critical)
    root, (_, edge) = float(point.root_beta), map(float, point.edges())
    supercritical = np.zeros(steps.shape, dtype=bool)
    columns = {name: np.zeros(steps.shape) for name in ("spike", "readout")}
    top = np.full(steps.shape, edge)
    # Steps far below the threshold, zero among them, are nowhere near a division.
    candidates = np.flatnonzero(steps > critical * (1 - _NEAR))
    eta = steps[candidates]
    ratio, distance = critical / eta, (eta - critical) / eta
    for i in np.flatnonzero(np.abs(distance) < _NEAR):
        ratio[i], distance[i] = map(float, point.position(float(eta[i])))
    above = distance > 0
    chosen, ratio, distance = candidates[above], ratio[above], distance[above]
    supercritical[chosen] = True
    with np.errstate(over="ignore"):
        scaled, columns["spike"][chosen], columns["readout"][chosen] = array_functions(
            model
        ).outlier(root, ratio, distance)
        top[chosen] = scaled / ratio
        theta1 = length * (steps * LOSS_FACTORS[model.loss])
        theta2 = aligned * (steps * LOSS_FACTORS[model.loss])
    require_finite(model, float(max(theta1.max(), top.max())))
    gamma = float(point.alignment())
    variables = {
        "theta1": (theta1, "length of the spike"),
        "theta2": (theta2, "its part along the teacher's direction"),
        "singular_value": (top, "largest singular value of the first layer"),
        "alignment_spike": (columns["spike"], "squared overlap, left vector and spike"),
        "alignment_teacher": (gamma**2 * columns["spike"], "squared overlap, left and teacher"),
        "alignment_readout": (columns["readout"], "squared overlap, right vector and readout"),
        "supercritical": (supercritical, "whether it is outside the bulk"),
    }
    return labelled(
        {k: ("step_size", v, {"long_name": text}) for k, (v, text) in variables.items()},
        coords={"step_size": ("step_size", steps, {"long_name": f"step size, loss={model.loss}"})},
        attrs={
            "model": model.to_json(),
            "critical_step_size": critical,
            "bulk_edge": edge,
            "alignment": gamma,
            "kind": "theory",
            "giantstep_version": __version__,
        },
    )


def _step_sizes(values: object) -> Real:
    if isinstance(values, str):
        raise ParameterError(f"step_size must be a number or a sequence of numbers, got {values!r}")
    if getattr(values, "ndim", 1) > 1:
        raise ParameterError("step_size must be a number or a sequence of numbers, not a table")
    items: Any = np.atleast_1d(np.asarray(values)) if hasattr(values, "ndim") else values
    listed = list(items) if isinstance(items, Iterable) else [items]
    if not listed:
        raise ParameterError("step_size must hold at least one number, such as [0, 1, 2]")
    return np.array([nonnegative_number("step_size", value) for value in listed])


_POINTS = 801


def plot_model(
    model: OneGradientStep,
    dimension: int | None = None,
    *,
    seeds: int = 1,
    seed: int = 0,
    ax: Any = None,
) -> Any:
    """Draw the singular values of the first layer, as the last release did."""
    simulated = None
    if dimension is not None:
        simulated = model.simulate_spectra(dimension, seeds=seeds, matrices=("weights",), seed=seed)
    return model.weight_spike().plot(simulated, ax=ax)


def _rows(given: Any) -> NDArray[np.float64]:
    """Return singular values with one row for each network."""
    result = given
    if hasattr(given, "data_vars"):
        if "singular_values" not in given:
            raise ParameterError(
                "singular_values must be a dataset of simulate_spectra with matrices=('weights',)"
            )
        last = given["singular_values"]
        result = (last.isel(step=-1) if "step" in last.dims else last).to_numpy()
    try:
        array = np.atleast_2d(np.asarray(result, dtype=float))
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.size == 0 or array.ndim > 2 or not (np.isfinite(array) & (array >= 0)).all():
        raise ParameterError(
            "singular_values must be nonnegative numbers, one row for each network, got "
            f"{type(given).__name__}"
        )
    return array


def _caption(spike: WeightSpike) -> Caption:
    model = spike.model
    noise = rf", $\Delta={model.noise_variance:.4g}$" if model.noise_variance else ""
    title = (
        rf"{plain_text(model.student)} on {plain_text(model.teacher)}, $\beta={model.beta:.4g}$, "
        rf"$\alpha_0={number_text(model.step_samples)}$, "
        rf"$\eta={model.step_size:.4g}${loss_note(model)}{noise}"
    )
    notes = () if spike.supercritical else (r"no outlier: $\theta_1 \leq \beta^{1/4}$",)
    return Caption(r"singular value of the first layer $W_1$", title, notes)


DEFAULT_DIGITS = 15
CERTIFIED_LIMIT = (
    "the limit formulas of Ba et al. (arXiv 2205.01445) for d → ∞; label noise derived here"
)


def certified_weight_spike(model: OneGradientStep, digits: int = DEFAULT_DIGITS) -> CertifiedValues:
    """Return proven intervals of the spike of the first layer."""
    formulas = FormulaBalls(exact_constants(model))
    length, aligned = (x * symbols.step_size for x in (spike_length(), aligned_length()))
    values = {
        "theta1": formulas.enclosure(length, digits),
        "theta2": formulas.enclosure(aligned, digits),
    }
    has_threshold = proven_sign(formulas, spike_length(), "the spike at step size one") == 1
    if has_threshold:
        values["alignment"] = formulas.enclosure(
            alignment() * sp.sign(symbols.linear) if _has(formulas) else sp.S.Zero, digits
        )
        critical = critical_step_size().xreplace({root_beta: sp.sqrt(symbols.beta)})
        values["critical_step_size"] = formulas.enclosure(critical / model.loss_factor, digits)
    above = proven_above(formulas, length**2 - sp.sqrt(symbols.beta), has_threshold, model)
    if above:
        quotient = critical / symbols.step_size
        rule = {root_beta: sp.sqrt(symbols.beta), ratio: quotient, distance: 1 - quotient}
        scaled, left, right = (x.subs(rule) for x in scaled_outlier())
        values["singular_value"] = formulas.enclosure(scaled / quotient, digits)
        values["alignment_spike"] = formulas.enclosure(left, digits)
        values["alignment_teacher"] = formulas.enclosure(alignment() ** 2 * left, digits)
        values["alignment_readout"] = formulas.enclosure(right, digits)
    else:
        values["singular_value"] = formulas.enclosure(1 + sp.sqrt(symbols.beta), digits)
        for name in ("alignment_spike", "alignment_teacher", "alignment_readout"):
            values[name] = Enclosure(sp.S.Zero, sp.S.Zero)
    result = "an outlier" if above else "no outlier"
    return CertifiedValues(
        title=f"first layer after {model}",
        values=values,
        statement=(
            f"each limit lies in its interval, and its formula has {result} at this step size"
        ),
        assumptions=(*LIBRARIES, CERTIFIED_LIMIT),
        digits=digits,
    )


def exact_constants(model: OneGradientStep) -> dict[sp.Symbol, sp.Expr]:
    """Return the exact values of the symbols of the theory."""
    student, teacher = exact_moments(model.student), exact_moments(model.teacher)
    return {
        symbols.alpha: exact_number(model.alpha),
        symbols.beta: exact_number(model.beta),
        symbols.alpha0: exact_number(model.step_samples),
        symbols.step_size: exact_number(model.step_size) * model.loss_factor,
        symbols.noise: exact_number(model.noise_variance),
        symbols.linear: student["linear"],
        symbols.residual: student["residual"],
        symbols.teacher_linear: teacher["linear"],
        symbols.teacher_residual: teacher["residual"],
    }


def _has(formulas: FormulaBalls) -> bool:
    """Whether the teacher has a linear part; decided exactly where its moments were derived."""
    return formulas.sign(symbols.teacher_linear) != 0


def proven_sign(formulas: FormulaBalls, formula: sp.Expr, what: str) -> int:
    sign = formulas.sign(formula)
    if sign is None:
        raise CertificationError(
            f"whether {what} is zero is not proven: it agrees with zero to 60 digits"
        )
    return sign


def proven_above(
    formulas: FormulaBalls, difference: sp.Expr, possible: bool, model: OneGradientStep
) -> bool:
    """Prove on which side of the threshold the step is."""
    if not possible or not model.step_size:
        return False
    sign = formulas.sign(difference)
    if not sign:
        raise CertificationError(
            f"step_size = {model.step_size:g} is at the threshold of the outlier as far as 60 "
            "digits tell: whether there is one is not proven; take another step_size"
        )
    return sign > 0
