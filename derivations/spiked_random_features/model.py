"""The model that users build: parameters in, learning curves, solutions and simulations out."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, cast

import numpy as np

from ...deprecations import by_name, renamed
from ...errors import ApproximationWarning, AssumptionError, ParameterError
from ...numeric.arguments import positive_number, positive_pairs, whole_number
from ...numeric.cache import FileCache
from ...numeric.kernel_code import LoadedKernel
from ...numeric.saddle_point_solver import BatchSolution, solve_many
from ...pages import InLatex
from ...symbolic.lowering.lowered import lower
from ..curve_figure import plot_curve
from ..curves import PAPER_RIDGE, Columns, Names, solve_groups, varied
from ..json_text import SavedModel
from ..kernels.arguments import Tie, known_names
from ..kernels.kernel import Kernel
from ..late import given_by
from ..teachers import refuse_directions, teacher_text
from .arguments import (
    COMPLETE,
    DIRECT,
    PUBLISHED,
    READOUT_DOMAINS,
    SPIKE_DOMAINS,
    STEP,
    STEP_DOMAINS,
    checked_arguments,
    checked_folder,
    checked_width,
    with_alias,
)
from .bulk_law import IID, BulkData, BulkLaw, checked_bulk
from .derive import Case, Derivation, derivation, flags_of, symbolic_model, with_constraints
from .differentiation import Differentiation
from .precise import certified, exact_parameters, proven_parameters, refine
from .presentation import model_latex
from .solution import SYMBOLS, Solution, curve_attributes, curve_names, solution_from
from .spike import (
    SpikeParameters,
    checked_spike,
    per_neuron_step,
    rechecked_spike,
    relative_bulk_spread,
    require_odd,
    spike_after_step,
    stretched_after_step,
)
from .vocabulary.learned_bias import learned_bias
from .vocabulary.model import VocabularyFeatures

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from ...symbolic.lowering.lowered import LoweredSystem
    from ..certificates.certificate import CertifiedValues
    from ..multi_index.optimum import OptimumBeside
    from ..one_gradient_step.model import OneGradientStep
    from .bounds.bounds import Asymptotics, Bounds
    from .convex.readout import ConvexReadout
    from .derive import SymbolicModel
    from .realised import RealisedNetwork
    from .spectrum.spectrum import FeatureSpectrum
    from .vocabulary.learned_bias import LearnedBias


_HERE = __package__
_COMMON = ("student", "teacher", "beta", "noise_variance")
_OPTIONS = ("allow_non_odd", "leading_order")
LARGE_SPREAD = 0.3
"""Relative spread of the bulk covariance above which networks deviate visibly."""
TRAINABLE_WIDTH = 1000
"""Neurons of a network that is easily trained; the strict limit should describe it."""
NOTICEABLE = 0.2
"""Relative change of the test error by the width of which users are told."""
# Of the squared norm of a readout. Of 1,800 drawn points 300 change noticeably, five of these by up
# to 40 % where the share is smaller than this.
_SMALL_SHARE = 0.1
_MOST_TOLD = 100


@with_alias
@dataclass(frozen=True)
class SpikedRandomFeatures(InLatex, SavedModel, Differentiation):
    r"""A two-layer network after one giant gradient step, with a ridge readout.

    Parameters
    ----------
    student, teacher : str
        Activations: catalogue names ("tanh", "erf", "relu", …) or expressions in z
        ("He(3, z)/6"). The student has to be odd (Result 3.1) unless `allow_non_odd`. A teacher
        may also be a function of inputs x1, x2, … ("x1*x2 + x1"), of up to five directions: the
        spike then is along :math:`\mathbb{E}[xf_*]`, equation (81) of the paper.
    step_size : float
        Per-neuron step s: each row moves by s times its gradient,
        :math:`\frac{1}{n_0}\sum_\mu (y_\mu - f_0)\sigma'(w\cdot x_\mu)x_\mu`. s = η/√p in the
        convention W ← W + η√p G. Zero gives plain random features.
    alpha0 : float
        Sample complexity n0/d of the step; ``math.inf`` for the population gradient.
    beta : float
        Aspect ratio p/d.
    noise_variance : float
        Variance Δ of the label noise, in the step and in the training set of the readout.
    allow_non_odd : bool
        Use the extension of Result 3.1 to students that are not odd.
    leading_order : {"published", "complete"}
        "complete" includes what Result 3.1 leaves out although it changes the errors in the limit,
        up to the relative order c - 1: norms of the rows that are correlated with their overlap
        with the spike (students with h_3 ≠ 0; -3 % for tanh and sin at s = 3), and rows that are
        stretched in the plane of the spike and of the teacher (students that are not odd,
        h_2 ≠ 0; relu and relu at s = 2, alpha0 = inf: .1053 becomes .0851, networks .0866(14)).
        This is what networks do. "published" is the default: it is the theory whose name the
        results carry, with which published numbers and figures are compared, and convex losses,
        letters and bounds over the step are known for it only. Simulations are compared with both.
    width : int, optional
        Number of neurons p whose finite-width correction is included: what the ridge penalty takes
        for the mean of the readout weights, of order 1/p. Default: the strict limit p → ∞.
        Methods that solve take a `width` of their own.
    cache_folder : path, optional
        Where generated kernels are kept; default: the user's cache directory.
    direct_parameters : SpikeParameters, optional
        Set by :meth:`from_parameters`, and so is `bulk`.
    bulk : {"iid", "orthonormal"} or BulkLaw
        The law of eigenvalues and overlaps of the bulk. A step leaves independent rows.

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind or outside its range.
    ExpressionError
        If `student` or `teacher` cannot be read.
    AssumptionError
        If the student is not odd, without `allow_non_odd`, or jumps; with "complete" if labels
        that an uneven student sees have no third moment.

    Notes
    -----
    Convention of the ridge penalty λ: the readout minimises
    :math:`\sum_\mu (y_\mu - \varphi_\mu\cdot w/\sqrt p)^2 + \lambda |w|^2`. The test error is the
    mean squared error against the noise-free target. Results are replica-symmetric and hold in
    the limit d → ∞ at fixed ratios.

    `correlated_norms` is the former name of `leading_order`: True means "complete". It gives a
    DeprecationWarning and goes with the next release.

    References
    ----------
    Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Results 3.1–3.3.

    Examples
    --------
    >>> model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
    >>> model.solve(alpha=1.5, ridge=0.1)
    Solution(alpha=1.5, ridge=0.1, test_error=0.0798849999786, training_error=0.0235758584822)
    """

    _model: ClassVar[str] = "spiked_random_features"
    _dimension: ClassVar[int] = 1000
    _maxima: ClassVar[tuple[str, ...]] = ("V",)

    student: str
    teacher: str
    step_size: float = 3.0
    alpha0: float = 20.0
    beta: float = 1.0
    noise_variance: float = 0.0
    allow_non_odd: bool = False
    leading_order: str = PUBLISHED
    width: int | None = None
    cache_folder: str | os.PathLike[str] | None = None
    direct_parameters: SpikeParameters | None = None
    bulk: str | BulkLaw = IID

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        direct, bulk = given.pop("direct_parameters"), given.pop("bulk")
        given["teacher"] = teacher_text(
            given["teacher"], FileCache(checked_folder(given["cache_folder"]))
        )
        for name, value in checked_arguments(**given).items():
            object.__setattr__(self, name, value)
        if direct is not None:
            object.__setattr__(self, "direct_parameters", rechecked_spike(direct))
            if self.leading_order != PUBLISHED:
                raise ParameterError(
                    'leading_order="complete" is about a gradient step, and a model that is given '
                    "by its spike takes none; leave it out, or give step_size and alpha0"
                )
            spike = self.spike
            law = checked_bulk(bulk, spike.bulk_variance, self.beta, stretched=any(spike.stretch))
            object.__setattr__(self, "bulk", law)
        elif bulk != IID:
            raise ParameterError(
                "the law of the bulk of a model that takes a step follows from the step; leave "
                "bulk out, or give spike and bulk by SpikedRandomFeatures.from_parameters"
            )
        found = self._derivation()
        if self.direct_parameters is None:
            require_odd(found, self.allow_non_odd)
        _ = self.spike  # refuses a student that jumps and a step that is too small, now

    @classmethod
    def from_parameters(
        cls,
        student: str,
        teacher: str,
        *,
        spike_strength: float,
        bulk_variance: float,
        alignment: float,
        beta: float = 1.0,
        noise_variance: float = 0.0,
        width: int | None = None,
        bulk: str | BulkLaw = IID,
        norm_overlap: float = 0.0,
        stretch: tuple[float, float, float] = (0.0, 0.0, 0.0),
        cache_folder: str | os.PathLike[str] | None = None,
    ) -> SpikedRandomFeatures:
        """Return the model of given spiked random features, without a gradient step.

        Parameters
        ----------
        student, teacher, beta, noise_variance, width, cache_folder
            As for the class; the student need not be odd.
        spike_strength : float
            r, of either sign.
        bulk_variance : float
            c > 0, squared norm of the bulk rows.
        alignment : float
            γ in [-1, 1].
        bulk : {"iid", "orthonormal"} or BulkLaw
            The law of eigenvalues and overlaps of the bulk rows: independent rows (eigenvalues of
            Marchenko and Pastur), an orthonormal frame (beta <= 1), or any
            :class:`~giantstep.BulkLaw` of mean c. Over `bulk_variance` a law keeps its shape.
        norm_overlap : float
            a: the squared norm of a bulk row b is c + 2 a b·v.
        stretch : (float, float, float)
            Entries T_vv, T_vζ and T_ζζ of the stretch 1 + T of independent rows in the plane of
            the spike and of the teacher's direction across it.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or the law does not fit: another mean than c, a
            rank larger than the dimension, or a stretch beside it.
        """
        return cls(
            student=student,
            teacher=teacher,
            step_size=0.0,
            alpha0=math.inf,
            beta=beta,
            noise_variance=noise_variance,
            width=width,
            cache_folder=cache_folder,
            direct_parameters=checked_spike(
                spike_strength, bulk_variance, alignment, norm_overlap, stretch
            ),
            bulk=bulk,
        )

    @classmethod
    def from_learning_rate(
        cls,
        student: str,
        teacher: str,
        *,
        learning_rate: float,
        convention: str = "sqrt-width",
        beta: float = 1.0,
        **others: Any,
    ) -> SpikedRandomFeatures:
        """Return the model of a step that is given by its learning rate.

        Parameters
        ----------
        student, teacher, beta
            As for the class.
        learning_rate, convention
            As for :func:`~giantstep.per_neuron_step`.
        **others
            Further arguments of the class.
        """
        if "step_size" in others:
            raise ParameterError("give either step_size or learning_rate, not both")
        step = per_neuron_step(learning_rate, convention, beta=beta)
        return cls(student, teacher, step_size=step, beta=beta, **others)

    # ------------------------------------------------------------------ what was derived

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self.cache_folder)

    def _derivation(self, **case: Unpack[Case]) -> Derivation:
        settled: Case = {"finite_width": self.width is not None, **case}
        return derivation(self.student, self.teacher, cache=self._cache, **settled)

    @cached_property
    def _case(self) -> dict[str, bool]:
        """Which special case the equations are, and which terms Result 3.1 leaves out they have."""
        spike = self.spike
        unspiked = spike.spike_strength == 0
        odd = self._derivation().odd_student
        complete = self.leading_order == COMPLETE and not unspiked
        given = self.direct_parameters is not None and not unspiked and spike.norm_overlap != 0
        return {
            "unspiked": unspiked,
            "aligned": spike.orthogonal_alignment == 0,
            "correlated_norms": given or (complete and (odd or spike.norm_overlap != 0)),
            "stretched": any(spike.stretch),
        }

    @cached_property
    def _bulk(self) -> BulkData:
        return BulkData.of(self)

    @cached_property
    def derivation(self) -> Derivation:
        """What was derived for this model, as text."""
        return self._derivation(**flags_of(self))

    @cached_property
    def spike(self) -> SpikeParameters:
        """Spike strength, bulk variance and alignment after the step (Result 3.1).

        Raises
        ------
        AssumptionError
            If the student jumps, so that its gradient step is not defined.
        """
        if self.direct_parameters is not None:
            return self.direct_parameters
        if self.step_size == 0:
            return SpikeParameters(0.0, 1.0, 0.0, 1.0)
        found = self._derivation()
        step = (self.step_size, self.alpha0, self.noise_variance)
        spike = spike_after_step(found, *step)
        if found.odd_student or self.leading_order == PUBLISHED:
            return spike
        return stretched_after_step(spike, self.student, self.teacher, self._cache, *step)

    @property
    def correlated_norms(self) -> bool:
        """Former name of ``leading_order == "complete"``; goes with the next release."""
        warnings.warn(
            'correlated_norms is now leading_order == "complete"', DeprecationWarning, stacklevel=2
        )
        return self.leading_order == COMPLETE

    def complete(self) -> SpikedRandomFeatures | None:
        """Return this model with ``leading_order="complete"``; None where that changes nothing."""
        if self.direct_parameters is not None or self.leading_order == COMPLETE:
            return None
        try:
            found = replace(self, leading_order=COMPLETE)
        except AssumptionError:
            return None
        case, spike = found._case, found.spike
        changes = case["stretched"] or (case["correlated_norms"] and spike.norm_overlap != 0)
        return found if changes else None

    def _refuse_law(self, what: str) -> None:
        """Refuse what is derived for independent rows only.

        Raises
        ------
        ParameterError
        """
        if self.bulk != IID:
            raise ParameterError(
                f"{what} {'are' if what.endswith('s') else 'is'} known for independent bulk rows "
                f"only, bulk='iid', and not for bulk={self.bulk!r}; solve, curve, optimum, "
                "sensitivities, kernels and convex losses take any law"
            )

    def _refuse_other_rows(self, what: str) -> None:
        """Refuse what is derived for independent rows without a stretch only.

        Raises
        ------
        ParameterError
        """
        self._refuse_law(what)
        if self._case["stretched"]:
            raise ParameterError(
                f'{what} with leading_order="complete" {"are" if what.endswith("s") else "is"} '
                f"derived for odd students only, and rows of {self.derivation.student!r} are "
                'stretched; use leading_order="published"'
            )

    def at_width(self, width: int | None) -> SpikedRandomFeatures:
        """Return this model at a width p; None for the strict limit p → ∞."""
        width = checked_width(width)
        return self if width == self.width else replace(self, width=width)

    @property
    def structure(self) -> str:
        """How the saddle-point equations are solved, found from their dependency graph."""
        return self.derivation.structure

    @property
    def leap_index(self) -> int:
        """Leap index (information exponent) of the teacher."""
        return self.derivation.leap_index

    @property
    def best_linear_error(self) -> float:
        r"""Error of the best linear predictor, :math:`\|P_{>1} f_*\|^2`."""
        return self.derivation.best_linear_error

    def symbolic(self) -> SymbolicModel:
        """Return the model as SymPy objects: free energy, equations, blocks, program."""
        return symbolic_model(self.student, self.teacher, **flags_of(self))

    def kernel(self) -> Kernel:
        """Return the kernel: sweeps over all parameters, inspection, files for other languages."""
        return model_kernel(self)

    # ------------------------------------------------------------------ solving

    @cached_property
    def _kernel(self) -> LoadedKernel:
        return self.derivation.code.load(self._cache)

    def _parameter_values(self) -> dict[str, float]:
        # Fields of a spike are named like the parameters of kernels.
        given = {"beta": self.beta, "noise_variance": self.noise_variance}
        if self.width is not None:
            given["inverse_width"] = 1 / self.width
        return {**given, **asdict(self.spike)}

    @by_name("alpha", "ridge")
    def solve_many(
        self,
        *,
        alpha: object,
        ridge: object,
        rtol: float = 1e-11,
        workers: int | None = None,
        width: int | None = None,
    ) -> BatchSolution:
        """Solve at many points given as two arrays of equal length.

        Parameters
        ----------
        alpha, ridge : array-like (n,)
            Sample complexities and ridge penalties, all positive.
        rtol : float
            Wanted relative quadrature error of the test error.
        workers : int, optional
            Threads.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model.

        Raises
        ------
        ConvergenceError
            Never seen for the square loss; names the first point that failed.
        """
        if width is not None:
            return self.at_width(width).solve_many(
                alpha=alpha, ridge=ridge, rtol=rtol, workers=workers
            )
        alphas, ridges = positive_pairs(("alpha", "ridge"), alpha, ridge)
        if workers is not None:
            workers = whole_number("workers", workers)
        rtol = positive_number("rtol", rtol)
        columns: dict[str, Any] = {**self._parameter_values(), "alpha": alphas, "ridge": ridges}
        kernel = self._kernel
        parameters = np.stack(
            [np.broadcast_to(columns[name], alphas.shape) for name in kernel.parameters], axis=1
        ).astype(float)
        values = [float(columns[name]) for name in kernel.table_parameters]
        return solve_many(
            kernel, values, parameters, data=self._bulk.arrays, rtol=rtol, workers=workers
        )

    @property
    def _aspect(self) -> float:
        return self.beta

    def _solved(
        self, alpha: float, ridge: Any, digits: int | None, certify: bool, progress: bool
    ) -> Solution:
        warn_about_quality(self, outer=1)
        batch = self.solve_many(alpha=[alpha], ridge=[ridge])
        columns = {"alpha": np.array([alpha]), "ridge": np.array([float(ridge)])}
        warn_about_width(self, batch.values, columns, outer=1)
        if certify:
            return certified(self, alpha, ridge, digits, batch, progress=progress)
        if digits is not None:
            return refine(self, alpha, ridge, digits, batch, show_progress=progress)
        return solution_from(
            {name: float(v[0]) for name, v in batch.values.items()},
            alpha=alpha,
            ridge=ridge,
            residual=float(batch.residual[0]),
            iterations=int(batch.iterations[0]),
            quadrature_error=float(batch.errors["test_error"][0]),
            nodes=int(batch.nodes[0]),
        )

    # ------------------------------------------------------------------ over parameters

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters.

        Parameters
        ----------
        **parameters
            Arguments of the class by name; of a model that is given by its spike also
            `spike_strength`, `bulk_variance` and `alignment`.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.

        Examples
        --------
        >>> model = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=4)
        >>> print(model.at(beta=0.5).beta)
        0.5
        """
        known = [f.name for f in fields(self) if f.name != "direct_parameters"]
        direct = self.direct_parameters
        if direct is not None:
            known = [*(name for name in known if name not in STEP), *DIRECT]
        known_names(parameters, known, "parameter of this model")
        given = {name: parameters.pop(name) for name in DIRECT if name in parameters}
        if given:
            assert direct is not None
            rest = {"norm_overlap": direct.norm_overlap, "stretch": direct.stretch}
            spike = {name: getattr(direct, name) for name in DIRECT}
            parameters["direct_parameters"] = checked_spike(**{**spike, **rest, **given})
            if isinstance(self.bulk, BulkLaw) and "bulk_variance" in given:
                parameters.setdefault("bulk", self.bulk.scaled(given["bulk_variance"]))
        return replace(self, **parameters)

    def _axes(self) -> Mapping[str, str]:
        own = SPIKE_DOMAINS if self.direct_parameters is not None else STEP_DOMAINS
        return {**READOUT_DOMAINS, **own}

    def _names(self) -> Names:
        return curve_names(self.derivation.code.outputs)

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        warn_about_quality(self)
        return curve_attributes(self, varied(columns))

    def _arranged(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return the dataset as it is, with a warning if a point of it is far from networks."""
        shape = dataset["test_error"]
        columns = {
            str(name): values.broadcast_like(shape).transpose(*shape.dims).values.ravel()
            for name, values in dataset.coords.items()
        }
        fixed = {x: dataset.attrs[x] for x in (*self._asked, PAPER_RIDGE) if x in dataset.attrs}
        columns |= {name: np.full(shape.size, value) for name, value in fixed.items()}
        warn_about_width(self, {str(k): v.values.ravel() for k, v in dataset.items()}, columns)
        return dataset

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        def solve(model: SpikedRandomFeatures, at: Columns) -> BatchSolution:
            if model is not self:
                warn_about_quality(model)
            return model.solve_many(alpha=at["alpha"], ridge=at["ridge"], rtol=rtol, workers=1)

        return solve_groups(self, columns, solve, outputs=self._names().outputs, raising=raising)

    # ------------------------------------------------------------------ analyses

    write_curve_report = cast(
        "Callable[..., Path]", given_by("giantstep.derivations.curve_report", "write_report")
    )

    bounds = cast("Callable[..., Bounds]", given_by(f"{_HERE}.bounds.bounds", "bounds"))

    certified_spike = cast(
        "Callable[..., CertifiedValues]", given_by(f"{_HERE}.precise", "certified_spike")
    )

    certified_coefficients = cast(
        "Callable[..., CertifiedValues]", given_by(f"{_HERE}.precise", "certified_coefficients")
    )

    asymptotics = cast(
        "Callable[..., Asymptotics]", given_by(f"{_HERE}.bounds.bounds", "asymptotics")
    )

    _expanded = given_by(f"{_HERE}.expansions.expand", "expansion")

    realised_functions = cast(
        "Callable[..., xr.Dataset]", given_by(f"{_HERE}.bounds.bounds", "realised_functions")
    )

    optimum_bayes = cast(
        "Callable[..., OptimumBeside]",
        given_by("giantstep.derivations.multi_index.optimum", "optimum_bayes"),
    )

    def learned_bias(
        self,
        *,
        alpha: float,
        ridge: float,
        interval: tuple[float, float] = (-6.0, 6.0),
        points: int = 61,
    ) -> LearnedBias:
        """Return the biases of the rows at which the training objective has its local minima.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout.
        ridge : float
            Ridge penalty λ > 0.
        interval : (float, float)
            Where to look.
        points : int
            Grid on which local minima are told apart.

        Returns
        -------
        LearnedBias
            All local minima with their errors; the bias is added after the step, and trained with
            the readout.
        """
        refuse_directions(self.teacher, "learned biases")
        self._refuse_law("learned biases")
        model = VocabularyFeatures.of_one_kind(self)
        return learned_bias(model, alpha, ridge, interval=interval, points=points, width=None)

    as_gradient_step = cast(
        "Callable[..., OneGradientStep]",
        given_by("giantstep.derivations.bridge", "as_gradient_step"),
    )
    spectrum = cast(
        "Callable[..., FeatureSpectrum]", given_by(f"{_HERE}.spectrum.spectrum", "spectrum")
    )
    with_loss = cast(
        "Callable[..., ConvexReadout]", given_by(f"{_HERE}.convex.readout", "with_loss")
    )

    # ------------------------------------------------------------------ networks

    @cached_property
    def bulk_spread(self) -> float:
        r"""Relative spread of the bulk covariance, which spiked random features neglect.

        Standard deviation over mean of the eigenvalues of the covariance that the trained bulk
        rows have in common, given the samples of the step:
        :math:`\frac{c-1}{c}\sqrt{\mathbb{E}\,y^4/(\alpha_0 Y^2)}` for odd students. Spiked random
        features have none. Zero for a model that is given by its spike, infinite if the labels
        have no fourth moment. Derived here.
        """
        if self.direct_parameters is not None or self.step_size == 0:
            return 0.0
        found = self._derivation()
        return relative_bulk_spread(found, self.step_size, self.alpha0, self.noise_variance)

    realised = cast(
        "Callable[..., RealisedNetwork]", given_by(f"{_HERE}.realised", "realised_network")
    )

    @renamed("curve(...).plot(simulation=...)")
    def plot(
        self, curve: xr.Dataset, simulation: xr.Dataset | None = None, *, ax: Any = None
    ) -> Any:
        """Draw a learning curve, simulations with error bars, and the best linear predictor.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingDependencyError
            Without matplotlib.
        """
        return plot_curve(curve, simulation=simulation, ax=ax)

    # ------------------------------------------------------------------ files and text

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of the model as plain values."""
        spike = self.direct_parameters
        if spike is None:
            found = {name: getattr(self, name) for name in (*_COMMON[:2], *STEP, *_COMMON[2:])}
            found |= {name: getattr(self, name) for name in _OPTIONS}
        else:
            found = {name: getattr(self, name) for name in _COMMON}
            found |= {name: getattr(spike, name) for name in DIRECT}
            # What independent rows of one norm are goes without saying.
            if spike.norm_overlap:
                found["norm_overlap"] = spike.norm_overlap
            if any(spike.stretch):
                found["stretch"] = list(spike.stretch)
            if self.bulk != IID:
                found["bulk"] = self.bulk
        # The strict limit is the theory of the paper and goes without saying.
        return found if self.width is None else {**found, "width": self.width}

    def _arguments(self) -> dict[str, Any]:
        arguments = self.parameters()
        if isinstance(law := arguments.get("bulk"), BulkLaw):
            arguments["bulk"] = law.to_dict()
        return arguments

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        if isinstance(law := arguments.get("bulk"), dict):
            arguments["bulk"] = BulkLaw.from_dict(law)
        build: Any = cls.from_parameters if "spike_strength" in arguments else cls
        model: Self = build(**arguments)
        return model

    def __str__(self) -> str:
        arguments = ", ".join(f"{k} = {v}" for k, v in self.parameters().items())
        quality = quality_text(self)
        return f"spiked random features: {arguments}" + (f"\n{quality}" if quality else "")

    def latex(self) -> str:
        """Return spike and conditional coefficients in LaTeX, without delimiters."""
        return model_latex(self)


def quality_text(model: SpikedRandomFeatures) -> str:
    """Return what the bulk covariance of the network lets expect; empty without a step."""
    if model.direct_parameters is not None or model.step_size == 0:
        return ""
    spread = model.bulk_spread
    text = (
        f"Bulk of the network: c − 1 = {model.spike.bulk_variance - 1:.3g}; its covariance, which "
        f"spiked random features take as isotropic, has a relative spread of {spread:.2g}. "
    )
    if spread <= LARGE_SPREAD:
        return text + f"Up to {LARGE_SPREAD:g} no effect of it on the errors was resolved."
    return text + (
        f"Above {LARGE_SPREAD:g} networks deviate by some per cent at any size: compare with "
        "simulations, or take a smaller step or more alpha0."
    )


def warn_about_quality(model: SpikedRandomFeatures, outer: int = 0) -> None:
    """Warn where networks deviate visibly from the theory; `outer` calls are between."""
    if model.bulk_spread > LARGE_SPREAD:
        # Points at the line that called the method of the model, through a wrapper of it.
        warnings.warn(quality_text(model), ApproximationWarning, stacklevel=4 + outer)


def warn_about_width(
    model: SpikedRandomFeatures, solved: Mapping[str, Any], columns: Columns, outer: int = 0
) -> None:
    """Warn if networks that can be trained are far from the strict limit, solved at some points.

    The readout along the mean of the features adds m²/p to its squared norm, which the limit
    drops. Points at which that is no small share are solved at a width, too.
    """
    if model.width is not None or "m" not in solved or "width" in columns:
        return
    added = solved["m"] ** 2 / TRAINABLE_WIDTH
    far = np.flatnonzero(added > _SMALL_SHARE * solved["q2"])
    if not len(far):
        return
    far = far[:: 1 + len(far) // _MOST_TOLD]
    at = {name: values[far] for name, values in columns.items()}
    limit = solved["test_error"][far]
    batch = model.at_width(TRAINABLE_WIDTH)._solve_rows(at, 1e-11, False)
    finite = batch.values["test_error"]
    change = np.where(batch.converged, abs(finite - limit) - NOTICEABLE * limit, 0.0)
    worst = int(np.argmax(change / np.maximum(limit, sys.float_info.min)))
    if change[worst] > 0:
        place = ", ".join(f"{name}={values[worst]:g}" for name, values in at.items())
        warnings.warn(
            f"The limit of infinite width is far away: at {place} its test error is "
            f"{limit[worst]:.3g}, that of p = {TRAINABLE_WIDTH} neurons {finite[worst]:.3g}. "
            "Give the number of neurons as width=.",
            ApproximationWarning,
            stacklevel=4 + outer,
        )


# ----------------------------------------------------------------------
# The model as a :class:`~giantstep.derivations.kernels.kernel.Kernel`: all targets, sweeps.

_LABELS = {
    **SYMBOLS, "test_error": r"\varepsilon_{\mathrm{test}}",
    "training_error": r"\varepsilon_{\mathrm{train}}", "alpha": r"\alpha", "beta": r"\beta",
    "ridge": r"\lambda", "noise_variance": r"\Delta", "spike_strength": "r", "bulk_variance": "c",
    "alignment": r"\gamma", "norm_overlap": "a", "inverse_width": "p^{-1}",
}  # fmt: skip
TITLE = "Saddle point of ridge regression on spiked random features"


def orthogonal(alignment: Any, sqrt: Callable[[Any], Any]) -> Any:
    """ρ of γ, as :func:`.derive.with_constraints` states it, for floats and exact numbers."""
    return sqrt((1 - alignment) * (1 + alignment))


def model_kernel(model: SpikedRandomFeatures) -> Kernel:
    """Return the kernel: sweeps over all parameters, inspection, files for other languages."""
    found = model.derivation
    values = model._parameter_values()
    return Kernel(
        name="spiked_random_features",
        title=f"{TITLE}, student {found.student}, teacher {found.teacher}",
        # Every result with its error, unlike the learning curves of the model.
        code=replace(found.code, measured=found.code.results),
        domains={**dict(found.domains), **_special_domains(model)},
        make=partial(_lowered, model),
        make_solved=partial(_solved, model),
        defaults={name: values[name] for name in found.parameters if name in values},
        exact_defaults=partial(exact_parameters, model),
        proven_defaults=partial(proven_parameters, model),
        # A new alignment brings its orthogonal part along.
        ties={"orthogonal_alignment": Tie("alignment", orthogonal, constraint=True)}
        if {"alignment", "orthogonal_alignment"} <= {*found.parameters}
        else {},
        labels=_LABELS,
        cache_folder=model.cache_folder,
        data=model._bulk.columns,
        exact_data=model._bulk.exact,
        check=model._bulk.check,
    )


def _special_domains(model: SpikedRandomFeatures) -> dict[str, str]:
    """Return the values to which a special case of the equations is restricted."""
    spike = model.spike
    found: dict[str, str] = {}
    if spike.orthogonal_alignment == 0:
        found |= {"alignment": "unit", "orthogonal_alignment": "zero"}
    if spike.spike_strength == 0:
        found |= {"spike_strength": "zero"}
    return found


def _lowered(model: SpikedRandomFeatures) -> LoweredSystem:
    return lower(with_constraints(model.symbolic().system, model.spike))


def _solved(model: SpikedRandomFeatures) -> LoweredSystem:
    return model.symbolic().lowered
