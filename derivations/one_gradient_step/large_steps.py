r"""Large steps, η of order √N: what the network can represent then, and the bound of its risk.

With :math:`\tau_* = \inf_h J(h)` of :mod:`.amplitude_minimum`, for a bounded student, a ridge
penalty with :math:`n^{\varepsilon - 1} < \lambda_B/N < n^{-\varepsilon}` and
:math:`\alpha > \alpha_*`,

.. math:: R \le 16\,\tau_* + C\Big(\sqrt{\tau_*/\alpha} + 1/\alpha\Big)

with constants C and α_* that are not known (Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445,
section 4.2). Kernel methods, and steps of order one, stay above :math:`\|P_{>1}f_*\|^2`.

Risks of networks after such steps are simulated by
:meth:`.OneGradientStep.simulate` with ``exponent=0.5``, for :math:`\eta \propto N^{1/2}`, and
with ``conditional=True`` beside the prediction of Gaussian features on the trained weights.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray

from ...deprecations import by_name, renamed
from ...digits import checked_digits
from ...errors import ParameterError
from ...labelled import described
from ...numeric.arguments import checked_switch, is_one_of
from ...numeric.cache import FileCache
from ...numeric.scaled_distance import ScaledDistance
from ...pages import Block, Listing, Table
from ...result import Result, quantity
from ...symbolic.expressions.activations import activation
from ..activation_functions import activation_text
from ..certificates.certificate import certificate_wanted
from ..figures import BLUE, GREEN, GREY, VERMILLION, Pen, draw_level, drawing, plain_text
from ..formulas import latex
from ..teachers import refuse_directions, teacher_text
from .amplitude_minimum import (
    AmplitudeError,
    AmplitudeMinimum,
    certified_tau_star,
    float_distance,
    least_error,
    precise_minimum,
)
from .equivalence import Assumption, all_hold, boundedness
from .moments import Moments, moments, require_centred

if TYPE_CHECKING:
    import xarray as xr

    from ..certificates.certificate import CertifiedValues
    from .model import OneGradientStep

Array = NDArray[np.float64]

SOURCE = "Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445"
CONSTANT = 16
"""In front of τ_* in the bound."""


def risk_bound() -> sp.Expr:
    r"""Return :math:`16\tau_* + C(\sqrt{\tau_*/\alpha} + 1/\alpha)`, which bounds the risk."""
    tau = sp.Symbol("tau_*", nonnegative=True)
    alpha, constant = sp.symbols("alpha C", positive=True)
    return CONSTANT * tau + constant * (sp.sqrt(tau / alpha) + 1 / alpha)


_RIDGE_WINDOW = "the ridge penalty has n^(ε-1) < λ_B/N < n^(-ε) for some ε > 0"


@dataclass(frozen=True, repr=False)
class LargeStepLimit(Result):
    r"""What neurons of one amplitude can represent of a teacher after a large step.

    Attributes
    ----------
    tau_star : float
        :math:`\tau_* = \inf_h J(h)`.
    amplitude : float
        The h where J is least, how strongly the best neurons see the teacher's coordinate; the
        positive one of several, infinite if the infimum is approached only.
    best_linear_error : float
        :math:`\|P_{>1}f_*\|^2`, below which no kernel gets in this limit.
    linear_part : float
        :math:`\mu_1^*` of the teacher.
    error : float
        Estimated absolute error of `tau_star`; zero if algebra knows it.
    basis : str
        "closed form" or "quadrature": where J comes from.
    texts : tuple of str, or None
        `amplitude` and `tau_star` to the digits asked for.
    assumptions : tuple of Assumption
        Those of the bound.
    certificate : CertifiedValues or None
        τ_* as a proven interval, or a proven upper bound of it; see :mod:`.amplitude_minimum`.
    """

    _document = "limit of large steps"
    _derived = ("ratio", "searched_to", "exact")

    student: str
    teacher: str
    centre: bool
    tau_star: float = field(metadata=quantity("tau star", r"\tau_*"))
    amplitude: float = field(metadata=quantity("best amplitude", "h"))
    best_linear_error: float = field(metadata=quantity("best linear error", r"\|P_{>1}f_*\|^2"))
    linear_part: float
    error: float
    basis: str
    texts: tuple[str, str] | None
    assumptions: tuple[Assumption, ...]
    minimum: AmplitudeMinimum
    certificate: CertifiedValues | None = None
    cache_folder: str | None = field(default=None, compare=False)

    @property
    def errors(self) -> dict[str, float]:
        """The estimated error of τ_*."""
        return {"tau_star": self.error}

    @cached_property
    def _amplitude_error(self) -> AmplitudeError:
        sigma = activation(self.student, argument="student")
        target = activation(self.teacher, argument="teacher")
        return AmplitudeError(sigma, target, self.centre, self.cache_folder)

    @cached_property
    def _distance(self) -> ScaledDistance:
        return float_distance(self._amplitude_error)

    @property
    def ratio(self) -> float | None:
        r""":math:`\tau_*/\|P_{>1}f_*\|^2`; None for a linear teacher."""
        return self.tau_star / self.best_linear_error if self.best_linear_error else None

    @property
    def exact(self) -> tuple[sp.Expr, sp.Expr] | None:
        """Amplitude and τ_* as exact numbers, where algebra knows them."""
        return self.minimum.exact

    @property
    def searched_to(self) -> float:
        """The largest distance of h from zero at which J was searched."""
        return self.minimum.farthest

    @property
    def rests_on(self) -> str:
        """What supports that no other amplitude is better, in words."""
        return f"least of {self.minimum.searched}; {self.minimum.beyond}"

    @property
    def applies(self) -> bool | None:
        """Whether the assumptions of the bound on the functions hold; None if not known."""
        return all_hold(self.assumptions)

    def below_kernel_bound(self, constant: float = CONSTANT) -> bool:
        r"""Whether :math:`c\,\tau_* < \|P_{>1}f_*\|^2`, so the bound beats kernels for large α.

        Parameters
        ----------
        constant : float
            c; 16 in the theorem, 10 in lecture notes on it.
        """
        if isinstance(constant, bool) or not isinstance(constant, int | float) or not constant > 0:
            raise ParameterError(f"constant must be positive, got {constant!r}")
        return constant * self.tau_star < self.best_linear_error

    def error_at(self, amplitudes: ArrayLike) -> Array:
        """Return J at amplitudes."""
        h = _finite("amplitudes", amplitudes)
        return np.array([self._distance.value(float(x)) for x in h.ravel()]).reshape(h.shape)

    def realised(self, coordinates: ArrayLike) -> Array:
        """Return g_h at the best amplitude, the function of t that approximates the teacher.

        Raises
        ------
        ParameterError
            If `coordinates` are not finite numbers, or no amplitude is best.
        """
        if math.isinf(self.amplitude):
            raise ParameterError("no amplitude is best: J approaches its infimum for h to infinity")
        return np.asarray(self._distance.smoothed(self.amplitude * _finite("t", coordinates)))

    def teacher_values(self, coordinates: ArrayLike) -> Array:
        """Return the (centred) teacher at t."""
        return np.asarray(self._distance.function(_finite("t", coordinates)))

    def error_expression(self) -> sp.Expr:
        """Return J as an expression in h: its closed form, or expectations."""
        return self._amplitude_error.expression()

    def realised_expression(self) -> sp.Expr:
        """Return g_h(t) as an expression in h and t."""
        return self._amplitude_error.realised

    def bound(self) -> sp.Expr:
        r"""Return the theorem's bound; its C stays a symbol, because nobody knows it."""
        return risk_bound()

    def latex(self) -> str:
        """Return J, the realised function and the bound in LaTeX, without delimiters."""
        where = rf"h = {self._shown(0)}" if math.isfinite(self.amplitude) else r"h \to \infty"
        rows = [
            rf"g_h(t) &= {latex(self.realised_expression())}",
            rf"J(h) &= {latex(self.error_expression())}",
            rf"\tau_* &= {self._shown(1)} \quad ({where})",
            rf"R &\le {latex(self.bound())} "
            r"\quad (\alpha > \alpha_*,\ C, \alpha_*\ \text{unknown})",
        ]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def _shown(self, which: int) -> str:
        if self.exact is not None:
            return str(sp.latex(self.exact[which]))
        if self.texts is not None:
            return self.texts[which]
        return f"{(self.amplitude, self.tau_star)[which]:.10g}"

    def _cells(self) -> list[tuple[str, str]]:
        exact = "" if self.exact is None else f" = {self.exact[0]}"
        amplitude_text, tau_text = self.texts or (f"{self.amplitude:.12g}", f"{self.tau_star:.12g}")
        ratio = "–" if self.ratio is None else f"{self.ratio:.4g}"
        beats = ", ".join(
            f"{c} τ*: {'yes' if self.below_kernel_bound(c) else 'no'}" for c in (16, 10)
        )
        return [
            ("best amplitude h", amplitude_text + exact),
            ("τ* = J(h)", tau_text),
            ("estimated error of τ*", f"{self.error:.0e}" if self.error else "exact"),
            ("J from", self.basis),
            ("best linear error", f"{self.best_linear_error:.12g}"),
            ("ratio", ratio),
            ("below the best linear error", beats),
        ]

    def page(self) -> Iterable[Block]:
        """Return the numbers, the bound and its assumptions."""
        head = f"large steps, student {self.student}, teacher {self.teacher}"
        yield head + (", both centred" if self.centre else "")
        yield Table(self._cells(), ("quantity", "value"))
        yield self.rests_on if self.certificate is None else self.certificate
        yield "R <= 16 τ* + C (sqrt(τ*/α) + 1/α) for α > α*; C and α* are not known"
        yield Listing([*map(str, self.assumptions), f"{_RIDGE_WINDOW}: to be chosen so"], mark="")

    def __repr__(self) -> str:
        return (
            f"LargeStepLimit({self.student!r} on {self.teacher!r}: tau_star = "
            f"{self.tau_star:.6g} at h = {self.amplitude:.6g})"
        )

    def to_dataset(self) -> xr.Dataset:
        """Return the functions and the errors that figures of large steps show.

        Returns
        -------
        xarray.Dataset
            ``teacher``, ``linear_part`` and, where an amplitude is best, ``realised`` over ``t``;
            the error ``J`` over amplitudes ``h``; ``tau_star``, the best ``amplitude`` and
            ``best_linear_error``.
        """
        t = np.linspace(-_REACH, _REACH, _POINTS)
        amplitudes = self._amplitudes()
        columns: dict[str, Any] = {
            "teacher": ("t", self.teacher_values(t)),
            "linear_part": ("t", self.linear_part * t),
            "J": ("h", self.error_at(amplitudes)),
        }
        if math.isfinite(self.amplitude):
            columns["realised"] = ("t", self.realised(t))
        return described(super().to_dataset().assign_coords(t=t, h=amplitudes).assign(columns))

    def plot(self, of: str = "functions", *, ax: Any = None, **style: Any) -> Any:
        """Draw the functions against t, or the error J against the amplitude h.

        Parameters
        ----------
        of : {"functions", "errors"}
            Teacher, realised function and the teacher's linear part; or J with the best linear
            error as a line.
        """
        if not is_one_of(of, _DRAWN):
            raise ParameterError(f"of must be one of {', '.join(_DRAWN)}, got {of!r}")
        with drawing(ax, style) as (axes, pen):
            (self._draw_functions if of == "functions" else self._draw_errors)(axes, pen)
            title = f"student {plain_text(self.student)}, teacher {plain_text(self.teacher)}"
            axes.set_title(title)
            axes.legend(frameon=False)
        return axes

    def _draw_functions(self, axes: Any, pen: Pen) -> None:
        t = np.linspace(-_REACH, _REACH, _POINTS)
        axes.plot(t, self.teacher_values(t), color=BLUE, label=r"teacher $\sigma_*(t)$")
        if math.isfinite(self.amplitude):
            label = rf"$\mathbb{{E}}\,\sigma(ht + \xi)$, $h = {self.amplitude:.3g}$"
            axes.plot(t, self.realised(t), **pen(label, color=VERMILLION, linestyle="--"))
        axes.plot(t, self.linear_part * t, color=GREY, linestyle=":", label="linear part")
        axes.set_xlabel(r"$t = \langle\beta_*, x\rangle$")

    def _draw_errors(self, axes: Any, pen: Pen) -> None:
        h = self._amplitudes()
        errors = self.error_at(h)
        # Amplitudes of the wrong sign, say, are soon worse than no step at all.
        top = 1.05 * max(float(self.error_at(np.zeros(1))[0]), self.best_linear_error)
        seen = errors <= top
        axes.plot(h[seen], errors[seen], **pen(r"$J(h)$", color=BLUE))
        draw_level(axes, self.best_linear_error, "best linear predictor")
        if math.isfinite(self.amplitude):
            label = rf"$\tau_* = {self.tau_star:.3g}$"
            axes.plot([self.amplitude], [self.tau_star], "o", color=GREEN, label=label)
        axes.set_ylim(0, top)
        axes.set_xlabel("amplitude $h$")

    def _amplitudes(self) -> Array:
        """Return amplitudes around the best one, as figures and tables have them."""
        best = abs(self.amplitude) if math.isfinite(self.amplitude) else 0.0
        end = max(_LEAST_RANGE, 2 * best)
        return math.copysign(1.0, self.amplitude) * np.linspace(-end / 2, end, _POINTS)

    @renamed("plot('errors')")
    def plot_amplitudes(self, *, ax: Any = None) -> Any:
        """Draw J against the amplitude, as the last release did; return the figure."""
        return self.plot("errors", ax=ax).figure


def large_step_limit(
    student: str,
    teacher: str,
    *,
    centre: bool = False,
    digits: int | None = None,
    certify: bool = False,
    progress: bool | None = None,
    cache_folder: str | os.PathLike[str] | None = None,
) -> LargeStepLimit:
    r"""Find :math:`\tau_* = \inf_h J(h)` and the best amplitude of a pair of functions.

    Parameters
    ----------
    student, teacher : str
        Activations σ and σ_*: catalogue names or expressions in z.
    centre : bool
        Take both minus their means.
    digits : int, optional
        Decimal digits of amplitude and τ_* as texts; default: floating point.
    certify : bool
        Also prove an interval for τ_*, to 15 digits or `digits`: that no amplitude is better, or,
        where that is not proven, an upper bound. Needs python-flint.
    progress : bool, optional
        Progress bars of digits and proof; by default where the error stream is a terminal.
    cache_folder : path, optional
        Where generated functions are kept; default: the user's cache directory.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind.
    ExpressionError, UnsupportedExpressionError
        If student or teacher cannot be read.
    AssumptionError
        If one is not centred, without `centre`, or the student jumps.
    ConvergenceError
        If quadrature does not reach its accuracy.
    CertificationError, MissingDependencyError
        If a proof is asked for and J cannot be enclosed, or python-flint is not installed.

    Examples
    --------
    >>> limit = large_step_limit("erf", "erf")
    >>> limit.tau_star, limit.exact
    (0.0, (sqrt(3), 0))
    >>> large_step_limit("erf", "sin", digits=20).texts
    ('1.6471962143208043265', '0.0089829993048948387742')
    """
    checked_switch("centre", centre)
    wanted = None if digits is None else checked_digits(digits)
    certify = certificate_wanted(certify)
    cache = FileCache(cache_folder)
    names = activation_text("student", student), teacher_text(teacher, cache)
    refuse_directions(names[1], "the limit of large steps")
    known = [
        moments(name, argument=argument, cache=cache)
        for name, argument in zip(names, ("student", "teacher"), strict=True)
    ]
    if not centre:
        require_centred(*known)
    result = _limit(
        names, (known[0], known[1]), bool(centre), wanted, cache_folder, progress is not False
    )
    if not certify:
        return result
    proof = certified_tau_star(
        result._amplitude_error, result.minimum, wanted or 15, progress=progress
    )
    return replace(result, certificate=proof)


def _limit(
    names: tuple[str, str],
    known: tuple[Moments, Moments],
    centre: bool,
    digits: int | None,
    cache_folder: str | os.PathLike[str] | None,
    show_progress: bool,
) -> LargeStepLimit:
    sigma = activation(names[0], argument="student")
    # Refuses a student that jumps: its step is not defined.
    _ = sigma.derivative
    error = AmplitudeError(sigma, activation(names[1], argument="teacher"), centre, cache_folder)
    distance = float_distance(error)
    minimum = least_error(error, distance)
    result = LargeStepLimit(
        student=names[0],
        teacher=names[1],
        centre=centre,
        tau_star=minimum.value,
        amplitude=minimum.amplitude,
        best_linear_error=known[1].residual,
        linear_part=known[1].linear,
        error=minimum.error,
        basis="closed form" if error.is_closed else "quadrature",
        texts=None
        if digits is None
        else precise_minimum(error, minimum, digits, show_progress=show_progress),
        assumptions=(boundedness(sigma), _moved(*known)),
        minimum=minimum,
        cache_folder=None if cache_folder is None else os.fspath(cache_folder),
    )
    # They are known already.
    vars(result).update(_amplitude_error=error, _distance=distance)
    return result


def _moved(student: Moments, teacher: Moments) -> Assumption:
    """Whether the step moves neurons along the teacher's direction at all."""
    statement = "the step moves neurons along the teacher, μ_1 μ_1* ≠ 0"
    product = student.linear * teacher.linear
    reason = f"μ_1 = {student.linear:.4g}, μ_1* = {teacher.linear:.4g}"
    return Assumption(statement, product != 0, reason)


@by_name("digits", "certify")
def large_steps(
    model: OneGradientStep, *, digits: int | None = None, certify: bool = False
) -> LargeStepLimit:
    """Return what steps with η of order √N can represent of the teacher, τ_*.

    With `certify` and python-flint, τ_* is also a proven interval.

    See :func:`.large_steps.large_step_limit`.
    """
    refuse_directions(model.teacher, "the limit of large steps")
    return large_step_limit(
        model.student,
        model.teacher,
        centre=model.centre,
        digits=digits,
        certify=certify,
        cache_folder=model.cache_folder,
    )


def _finite(name: str, values: ArrayLike) -> Array:
    try:
        result = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        result = np.array(np.nan)
    if not np.all(np.isfinite(result)):
        raise ParameterError(f"{name} must be finite numbers, got {values!r}")
    return result


_REACH = 3.0
_POINTS = 241
_LEAST_RANGE = 4.0
_DRAWN = ("functions", "errors")
_SIZE = (10.4, 4.0)


def plot_large_steps(limit: LargeStepLimit, *, ax: Any = None) -> Any:
    """Draw teacher and realised function, and the error over the amplitude, side by side."""
    with drawing(ax, size=_SIZE, panels=2) as (axes, _):
        limit.plot("functions", ax=axes[0])
        limit.plot("errors", ax=axes[1])
    return axes
