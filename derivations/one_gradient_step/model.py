"""The model that users build: one gradient step in the proportional limit.

Nothing here imports SymPy, xarray or matplotlib before it is needed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...atomic_files import write_atomically
from ...errors import AssumptionError, ParameterError
from ...numeric.cache import FileCache
from ...pages import Table, as_html
from ..curves import Columns, Names, solve_groups
from ..derived import derived
from ..json_text import from_json, to_json
from ..kernels.arguments import known_names
from ..sensitivities import Directions, HasSensitivities
from .analyses import Analyses
from .arguments import checked_arguments, require_centred
from .moments import Moments, moments

if TYPE_CHECKING:
    from ...numeric.saddle_point_solver import BatchSolution
    from ..nonlinear_spikes.model import StepAtWidth

_MODEL = "one_gradient_step"


@dataclass(frozen=True)
class OneGradientStep(Analyses, HasSensitivities):
    r"""A two-layer network after one gradient step on its first layer, in the proportional limit.

    The network :math:`f(x) = N^{-1/2}\sum_i a_i\sigma(w_i\cdot x)` starts from
    :math:`w_i \sim \mathcal{N}(0, I/d)` and :math:`a_i \sim \mathcal{N}(0, 1/N)`. With n0 = α0 d
    samples it takes the step :math:`W_1 = W_0 + \eta\sqrt N\,G`, η of order one; then a ridge
    readout is fitted on n = α d fresh samples. Results hold for d → ∞ at fixed ratios.

    Parameters
    ----------
    student, teacher : str
        Activations σ and σ_*: catalogue names ("tanh", "erf", …) or expressions in z.
    alpha : float
        Sample complexity n/d of the readout (ψ1 of the paper).
    beta : float
        Aspect ratio N/d (ψ2).
    step_size : float
        η ≥ 0; zero gives random features.
    noise_variance : float
        Variance Δ of the label noise, in the step and in the readout.
    alpha0 : float, optional
        Sample complexity n0/d of the step; default: `alpha`, as in the paper. ``math.inf`` for the
        population gradient.
    loss : {"half", "full"}
        Whose gradient the step takes: of :math:`\frac{1}{2n}\sum(f - y)^2`, for which the formulas
        hold as printed, or of :math:`\frac1n\sum(f - y)^2`, which is twice as long.
    centre : bool
        Replace student and teacher by themselves minus their means.
    cache_folder : path, optional
        Where derivations and kernels are kept; default: the user's cache directory.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range.
    ExpressionError
        If `student` or `teacher` cannot be read.
    AssumptionError
        If student or teacher is not centred, without `centre`; if the student jumps and the step
        is not zero.

    Notes
    -----
    Students and teachers outside the theorem of Gaussian equivalence behind the risk are allowed;
    :attr:`standing` says so, and which of its assumptions fail.

    References
    ----------
    Ba, Erdogdu, Suzuki, Wang, Wu, Yang, arXiv 2205.01445.

    Examples
    --------
    >>> model = OneGradientStep("erf", "tanh", alpha=2.5, beta=1.2, step_size=3)
    >>> model.student_moments.odd, model.teacher_moments.mean
    (True, 0.0)
    """

    student: str
    teacher: str
    alpha: float
    beta: float = 1.0
    step_size: float = 1.0
    noise_variance: float = 0.0
    alpha0: float | None = None
    loss: str = "half"
    centre: bool = False
    cache_folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        for name, value in checked_arguments(**given).items():
            object.__setattr__(self, name, value)
        if not self.centre:
            require_centred(self.student_moments, self.teacher_moments)
        if self.student_moments.jumps and self.step_size:
            raise AssumptionError(
                f"student {self.student!r} jumps: its gradient step is not defined; choose a "
                "continuous activation such as erf or tanh, or step_size=0 for random features"
            )

    def __getstate__(self) -> dict[str, Any]:
        # Loaded kernels stay behind; the other process loads its own.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def cache(self) -> FileCache:
        """Where derivations and kernels are kept."""
        return FileCache(self.cache_folder)

    @cached_property
    def student_moments(self) -> Moments:
        """Mean, linear part and residual variance of the student."""
        return moments(self.student, argument="student", cache=self.cache)

    @cached_property
    def teacher_moments(self) -> Moments:
        """Mean, linear part and residual variance of the teacher."""
        return moments(self.teacher, argument="teacher", cache=self.cache)

    @property
    def step_samples(self) -> float:
        """Sample complexity n0/d of the step: `alpha0`, or `alpha` where it is not given."""
        return self.alpha if self.alpha0 is None else self.alpha0

    @property
    def effective_step_size(self) -> float:
        """η of the formulas, which are for the gradient of half the squared loss."""
        return self.step_size * self.loss_factor

    @property
    def loss_factor(self) -> int:
        """η over the step size: 2 for the gradient of the full squared loss, 1 for half of it."""
        return 2 if self.loss == "full" else 1

    @property
    def label_square(self) -> float:
        """Y = E y² of the (centred) noisy labels."""
        return self.teacher_moments.square + self.noise_variance

    @property
    def best_linear_error(self) -> float:
        r""":math:`\|P_{>1}f_*\|^2`, which no kernel beats in this limit."""
        return self.teacher_moments.residual

    @property
    def standing(self) -> str:
        """What the risk of the trained network rests on at positive ridge penalties.

        The verdict of :meth:`equivalence` on steps of order one.
        """
        return self.standing_at(vanishing_ridge=False)

    def standing_at(self, *, vanishing_ridge: bool) -> str:
        """Return what the risk rests on, at positive penalties or in the limit of none."""
        positive, vanishing = self._standings
        return vanishing if vanishing_ridge else positive

    @cached_property
    def _standings(self) -> list[str]:
        # Kept as text, so that a run that finds them imports no SymPy.
        @derived("one_gradient_step/standing", list)
        def standings(student: str, teacher: str, centre: bool) -> list[str]:
            from .equivalence import standing

            return [standing(self, vanishing_ridge=limit) for limit in (False, True)]

        return standings(self.cache, self.student, self.teacher, self.centre)

    def paper_ridge(self, ridge: float) -> float:
        r"""Return the penalty of the paper, β/α times that of the toolkit.

        There the readout minimises :math:`\frac1n|y - \Phi a|^2 + \frac{\lambda_B}{N}|a|^2`.
        """
        return ridge * self.beta / self.alpha

    def at_width(
        self,
        width: int,
        *,
        degrees: Sequence[int] | None = None,
        letters: Sequence[float] | None = None,
        fractions: Sequence[float] | None = None,
    ) -> StepAtWidth:
        """Return the model at a finite number of neurons, where a step shows higher degrees, too.

        Parameters
        ----------
        width, degrees, letters, fractions
            As for :class:`~giantstep.derivations.nonlinear_spikes.model.StepAtWidth`.

        Examples
        --------
        >>> step = OneGradientStep("erf", "erf", alpha=4, beta=1.5, step_size=4)
        >>> step.at_width(600).degrees
        (1, 3, 5)
        """
        from ..nonlinear_spikes.model import StepAtWidth

        return StepAtWidth(self, width, degrees, letters, fractions)

    # ------------------------------------------------------------------ over parameters

    _asked: ClassVar[tuple[str, ...]] = ("ridge",)

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters, arguments of the class by name.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.
        """
        known_names(parameters, [f.name for f in fields(self)], "parameter of this model")
        return replace(self, **parameters)

    def _axes(self) -> Mapping[str, str]:
        from .risk import DOMAINS

        return DOMAINS

    def _names(self) -> Names:
        from .risk import NAMES

        return NAMES

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        from .risk import curve_attributes

        return curve_attributes(self, columns)

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        from .risk import solved_rows

        return solve_groups(
            self, columns, solved_rows, outputs=self._names().outputs, raising=raising,
            together=tuple(columns),
        )  # fmt: skip

    def _directions(self, *, exact: bool) -> Directions:
        moving = {name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")}
        # The gradient of the full squared loss takes steps that are twice as long.
        moving["step_size"] = {"step_size": self.loss_factor}
        if self.alpha0 is None:
            moving["alpha"]["alpha0"] = 1
            return Directions(moving)
        if self.alpha0 == math.inf:
            return Directions(moving, {"alpha0": "alpha0 is infinite"})
        return Directions({**moving, "alpha0": {"alpha0": 1}})

    # ------------------------------------------------------------------ files

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the model as plain values, those at their defaults left out."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cache_folder"}
        optional = {"alpha0": None, "loss": "half", "centre": False}
        return {k: v for k, v in found.items() if k not in optional or v != optional[k]}

    def to_json(self) -> str:
        """Return the model as JSON; :meth:`from_json` reads it."""
        return to_json(_MODEL, self.parameters())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the model that :meth:`to_json` wrote.

        Raises
        ------
        ParameterError
            If the text is not such a model.
        """
        try:
            return cls(**from_json(_MODEL, text))
        except TypeError as error:
            raise ParameterError(f"text is not a model written by to_json: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file as JSON."""
        write_atomically(path, self.to_json() + "\n")

    def __str__(self) -> str:
        shown = ", ".join(f"{k} = {_shown(v)}" for k, v in self.parameters().items())
        return f"one gradient step: {shown}"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), _shown(v)) for name, v in self.parameters().items()]
        for layer, known in (("student", self.student_moments), ("teacher", self.teacher_moments)):
            rows.append((f"{layer}, linear part", f"{known.linear:.12g}"))
            rows.append((f"{layer}, variance of the rest", f"{known.residual:.12g}"))
        return as_html([Table(rows), self.standing])


def _shown(value: object) -> str:
    return "inf" if value == math.inf else str(value)
