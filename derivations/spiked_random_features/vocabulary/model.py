"""Readouts of several letters, biases, and spikes of larger rank: the model that users build."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, cast

import numpy as np

from ....deprecations import by_name
from ....errors import ParameterError
from ....numeric.arguments import real_array
from ....numeric.cache import FileCache
from ....numeric.networks.layer import FeatureClass
from ....numeric.saddle_point_solver import BatchSolution
from ...curves import Columns, Names, solve_groups, varied
from ...json_text import SavedModel
from ...kernels.arguments import known_names
from ...late import given_by
from ...sensitivities import Directions
from ...teachers import names_coordinates
from ..arguments import PUBLISHED, READOUT_DOMAINS, STEP, STEP_DOMAINS, checked_arguments
from ..bulk_law import IID, checked_kind
from ..differentiation import DifferencedOptimum
from ..solution import Solution
from .arguments import (
    LetterLaw,
    VocabularyParameters,
    checked_letter_number,
    checked_parameters,
    letter_law,
    orthogonal_alignment,
    parameters_after_step,
    plain_biases,
    with_biases,
)
from .derive import Derivation, derivation, multi_index_source
from .kernel import (
    MOST_LETTERS,
    first_values,
    kernel_solution,
    letter_directions,
    model_kernel,
    names_on_curves,
)
from .learned_bias import learned_bias
from .nodes import student_coefficients, teacher_moments
from .solution import arranged, curve_attributes, curve_batch, curve_names
from .solving import LetterQuadrature, solve_at

if TYPE_CHECKING:
    import xarray as xr

    from ...kernels.kernel import Kernel
    from ..convex.readout import ConvexReadout
    from ..model import SpikedRandomFeatures
    from .learned_bias import LearnedBias

_HERE = "giantstep.derivations.spiked_random_features"
MODEL = "vocabulary_features"
"""Its name in documents."""


@dataclass(frozen=True)
class VocabularyFeatures(SavedModel, DifferencedOptimum[Solution]):
    r"""A two-layer network after a giant step with a readout of several letters, and its limit.

    Rows of letter ã move by ã times the step: :math:`r(\tilde a) = s\tilde ah_1\nu`,
    :math:`c(\tilde a) = 1 + s^2\tilde a^2Y\check h/\alpha_0`. Rows may have biases besides, and
    (:meth:`from_parameters`) spikes of rank up to three.

    Parameters
    ----------
    student : str
        Activation, odd unless `allow_non_odd`.
    teacher : str
        Activation of the single-index target; in :meth:`from_parameters` also an expression in x1,
        x2, ….
    letters : sequence of float
        Readouts ã of the step, times sqrt(p).
    fractions : sequence of float
        Share of the rows with each letter; they sum to one.
    step_size, alpha0, beta, noise_variance : float
        As for :class:`~giantstep.SpikedRandomFeatures`; `step_size` is that of letter 1.
    biases : float, sequence or mapping, optional
        Added to what the activation sees after the step, which is taken without them: one for all
        rows, one for each letter, or {bias: fraction} drawn independently of the letters.
    width : int, optional
        Number of neurons p. Solutions then include the ridge cost of the overlaps m, of order 1/p,
        which matters for several letters: their means are nearly collinear and m is large.
    bulk : {"iid", "orthonormal"}
        Independent bulk rows, or an orthonormal frame (p <= d; the limit p << d).
    allow_non_odd : bool
        Use the extension of Result 3.1 to students that are not odd.
    cache_folder : path, optional
    direct_parameters : VocabularyParameters, optional
        Set by :meth:`from_parameters`.
    law : LetterLaw, optional
        Set by :meth:`from_law`.
    leading_order : {"published", "complete"}
        As for :class:`~giantstep.SpikedRandomFeatures`: "complete" includes the norm overlap and
        the stretch that the step gives to the rows of each letter. For at most three letters and
        independent bulk rows; the equations are derived and compiled at first use, within a minute
        for two letters.

    Raises
    ------
    ParameterError
        If fractions do not sum to one or are not positive, lengths differ, a value is outside its
        range, or there are more orthonormal rows than dimensions.
    AssumptionError
        If the student is not odd, or jumps.

    Notes
    -----
    Letters with the same r, c and bias are one letter here, whatever their names. All order
    parameters are those of bulk rows of unit length.

    References
    ----------
    Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, C.8 and D; the closed
    form is derived in :mod:`.physics`.

    Examples
    --------
    >>> model = VocabularyFeatures.from_parameters(
    ...     "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02],
    ...     fractions=[0.4, 0.6], alignment=0.9, beta=0.7,
    ... )
    >>> print(f"{model.solve(alpha=2, ridge=0.1).test_error:.10f}")
    0.0798153728
    >>> print(f"{model.solve(alpha=2, ridge=0.1, width=600).test_error:.10f}")
    0.0835747298
    """

    _model: ClassVar[str] = MODEL
    _maxima: ClassVar[tuple[str, ...]] = ("V",)

    student: str
    teacher: str
    letters: Sequence[float] = (1.0,)
    fractions: Sequence[float] = (1.0,)
    step_size: float = 3.0
    alpha0: float = 20.0
    beta: float = 1.0
    noise_variance: float = 0.0
    # A mapping has no hash.
    biases: Any = field(default=None, hash=False)
    width: int | None = None
    bulk: str = "iid"
    allow_non_odd: bool = False
    cache_folder: str | os.PathLike[str] | None = None
    direct_parameters: VocabularyParameters | None = None
    law: LetterLaw | None = None
    leading_order: str = PUBLISHED

    def __post_init__(self) -> None:
        names = (
            "student", "teacher", "step_size", "alpha0", "beta", "noise_variance", "allow_non_odd",
            "width", "cache_folder", "leading_order",
        )  # fmt: skip
        for name, value in checked_arguments(**{x: getattr(self, x) for x in names}).items():
            object.__setattr__(self, name, value)
        for name, kind, maker in (
            ("direct_parameters", VocabularyParameters, "from_parameters"),
            ("law", LetterLaw, "from_law"),
        ):
            given_object = getattr(self, name)
            if given_object is not None and not isinstance(given_object, kind):
                raise ParameterError(
                    f"{name} must be {kind.__name__}, got {given_object!r}; use "
                    f"VocabularyFeatures.{maker}"
                )
        object.__setattr__(self, "bulk", checked_kind(self.bulk, self.beta))
        if self.direct_parameters is None and names_coordinates(self.teacher):
            raise ParameterError(
                f"teacher {self.teacher!r} has several coordinates, and one step makes a spike of "
                "rank one; give spikes by VocabularyFeatures.from_parameters"
            )
        _ = self.parameters  # refuses bad letters now
        self._check_leading_order()
        # As plain values: models from a file are equal to those that were written.
        for name in ("letters", "fractions"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        object.__setattr__(self, "biases", plain_biases(self.biases))

    def _check_leading_order(self) -> None:
        if self.leading_order == PUBLISHED:
            return
        why = ""
        if self.direct_parameters is not None:
            why = "is about a gradient step, and a model that is given by its spikes takes none"
        elif self.bulk != IID:
            why = f"is derived for independent bulk rows, and not for bulk={self.bulk!r}"
        elif not self.parameters.published and len(self.classes) > MOST_LETTERS:
            why = (
                f"is solved with the determinants of the letters written out, for at most "
                f"{MOST_LETTERS} of them, and there are {len(self.classes)}"
            )
        if why:
            raise ParameterError(
                f'leading_order="complete" {why}; use leading_order="published", which takes '
                "any letters"
            )

    @classmethod
    def from_parameters(
        cls,
        student: str,
        teacher: str,
        *,
        spike_strengths: Sequence[float] | Sequence[Sequence[float]],
        bulk_variances: Sequence[float],
        fractions: Sequence[float],
        alignment: Any,
        biases: Any = None,
        beta: float = 1.0,
        noise_variance: float = 0.0,
        width: int | None = None,
        bulk: str = "iid",
        cache_folder: str | os.PathLike[str] | None = None,
    ) -> VocabularyFeatures:
        """Return the model of given spiked random features, without a gradient step.

        Parameters
        ----------
        student, beta, noise_variance, width, bulk, cache_folder
            As for the class; the student need not be odd.
        teacher : str
            Activation, or an expression in x1, …, xr: a function of r orthonormal directions.
        spike_strengths : sequence of float, or of sequences of k of them
            r_a of each letter along one spike, or along k <= 3 orthonormal spikes.
        bulk_variances, fractions : sequence of float
            c_a and π_a.
        alignment : float, sequence or array
            Overlap γ of spike and teacher; k numbers for k spikes; k rows of r numbers for a
            teacher of r directions (k numbers are then those of spike l with direction l).
        biases : float, sequence or mapping, optional
            As for the class.

        Raises
        ------
        ParameterError
            If lengths differ, fractions do not sum to one, the rank is above three, or a value is
            outside its range.
        """
        coordinates = None
        if isinstance(teacher, str) and names_coordinates(teacher):
            coordinates = multi_index_source(teacher)[1]
        parameters = checked_parameters(
            spike_strengths, bulk_variances, fractions, biases, alignment, coordinates
        )
        return cls(
            student=student, teacher=teacher, step_size=0.0, alpha0=math.inf, beta=beta,
            noise_variance=noise_variance, width=width, bulk=bulk, cache_folder=cache_folder,
            direct_parameters=parameters,
        )  # fmt: skip

    @classmethod
    def of_one_kind(cls, features: SpikedRandomFeatures) -> VocabularyFeatures:
        """Return the model of one letter that has these features.

        Raises
        ------
        ParameterError
            If the features have a law of the bulk, or are given with a norm overlap or a stretch.
        """
        features._refuse_law("letters")
        names = ("student", "teacher", "beta", "noise_variance", "width", "cache_folder")
        shared = {name: getattr(features, name) for name in names}
        direct = features.direct_parameters
        if direct is None:
            step = ("step_size", "alpha0", "allow_non_odd", "leading_order")
            return cls(**shared, **{name: getattr(features, name) for name in step})
        if direct.norm_overlap or any(direct.stretch):
            raise ParameterError(
                "features are given with a norm overlap or a stretch, which letters have from a "
                "step only; give step_size and alpha0, or leave them out"
            )
        return cls.from_parameters(
            spike_strengths=[direct.spike_strength], bulk_variances=[direct.bulk_variance],
            fractions=[1.0], alignment=direct.alignment, **shared,
        )  # fmt: skip

    @classmethod
    def from_law(
        cls,
        student: str,
        teacher: str,
        *,
        law: Any,
        support: tuple[float, float] | None = None,
        nodes: int = 10,
        **options: Any,
    ) -> VocabularyFeatures:
        """Return the model of a continuous law of letters, as a Gauss rule for it.

        Parameters
        ----------
        law : frozen distribution of scipy.stats, or str
            Of the letters; a text is a density in a.
        support : (low, high), optional
            Interval of a density given as text.
        nodes : int
            Letters of the rule, 2 to 40. The reported error includes that of a smaller rule.
        **options
            The other arguments of the class.

        Notes
        -----
        The overlaps m then are a function of the letter, found by kernel regression with a ridge
        of order 1/p: such a model is solved at a width only, see :meth:`solve`.
        """
        own = {"student", "teacher", "letters", "fractions", "law", "direct_parameters"}
        known = {f.name for f in fields(cls)} - own
        unknown = sorted(set(options) - known)
        if unknown:
            raise ParameterError(
                f"{unknown[0]} is no argument here; known are {', '.join(sorted(known))}"
            )
        found = letter_law(law, support, FileCache(options.get("cache_folder")))
        letters, fractions = found.rule(checked_letter_number(nodes))
        return cls(
            student, teacher, letters=tuple(map(float, letters)),
            fractions=tuple(map(float, fractions)),
            law=None if found.discrete else found, **options,
        )  # fmt: skip

    # ------------------------------------------------------------------ what was derived

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self.cache_folder)

    @cached_property
    def parameters(self) -> VocabularyParameters:
        """Spikes, bulk variances, biases and fractions of the rows, and the alignment."""
        if self.direct_parameters is not None:
            return self.direct_parameters
        return parameters_after_step(self)

    @property
    def classes(self) -> tuple[FeatureClass, ...]:
        """The letters with all that distinguishes their rows; equal ones are merged."""
        return self.parameters.classes

    @cached_property
    def derivation(self) -> Derivation:
        """What was derived for this model, as text."""
        kind = "single-index"
        if names_coordinates(self.teacher):
            kind = "multi-index"
        elif orthogonal_alignment(self.parameters.overlaps) == 0:
            kind = "aligned"
        return derivation(self._cache, self.student, self.teacher, kind)

    @cached_property
    def quadrature(self) -> LetterQuadrature:
        """The conditional coefficients on quadrature nodes, and the generated equations."""
        return LetterQuadrature(
            self.derivation, self._cache, self.parameters, self.noise_variance, self.bulk
        )

    def conditional_coefficients(self, kappa: object) -> Mapping[str, np.ndarray[Any, Any]]:
        r"""Return the functions of κ that the letters span, and the moments of the labels.

        Parameters
        ----------
        kappa : array-like (n,) or (n, k)

        Returns
        -------
        mapping
            mu0, mu1 (for rows of unit length) and mu2_squared of shape (n, K); T0 and T2 (n,) of
            the noise-free target, T1 (n, U).
        """
        points = real_array("kappa", kappa)
        points = points[:, None] if points.ndim == 1 else np.atleast_2d(points)
        if points.ndim != 2 or points.shape[1] != self.parameters.rank:
            raise ParameterError(
                f"kappa must be finite numbers of shape (n, {self.parameters.rank}), got shape "
                f"{points.shape}"
            )
        functions = self.quadrature.functions
        mu0, mu1, mu2 = student_coefficients(functions, self.parameters, points)
        t0, t1, t2 = teacher_moments(functions, self.parameters, points)
        return {"mu0": mu0, "mu1": mu1, "mu2_squared": mu2, "T0": t0, "T1": t1, "T2": t2}

    # ------------------------------------------------------------------ solving

    @property
    def _aspect(self) -> float:
        return self.beta

    def _solved(
        self, alpha: float, ridge: Any, digits: int | None, certify: bool, progress: bool
    ) -> Solution:
        if digits is None and not certify and self.parameters.published:
            return solve_at(self, alpha, ridge, self.width)
        return kernel_solution(self, alpha, ridge, digits, certify=certify, progress=progress)

    def kernel(self) -> Kernel:
        """Return the saddle-point equations as a kernel: any digits, sweeps, all languages.

        For a spike of rank one and at most three letters. Its parameters are those of the model by
        default; `inverse_width` is 1/p, zero in the strict limit.

        Raises
        ------
        ParameterError
            If there are more letters, spikes of higher rank or a teacher of several coordinates.
        """
        return self._kernel

    @cached_property
    def _kernel(self) -> Kernel:
        return model_kernel(self)

    def _directions(self, *, exact: bool) -> Directions:
        return letter_directions(self, exact=exact)

    def _start(self, kernel: Kernel, point: Mapping[str, Any]) -> Mapping[str, float]:
        found = solve_at(self, point["alpha"], point["ridge"], self.width)
        return first_values(kernel, found)

    def _named(self, kernel: Kernel) -> Mapping[str, str]:
        return names_on_curves(self)

    # ------------------------------------------------------------------ over parameters

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters, arguments of the class by name.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.
        """
        left_out = {"direct_parameters", "law"}
        if self.direct_parameters is not None:
            left_out |= {*STEP, "letters", "fractions", "biases"}
        known = [f.name for f in fields(self) if f.name not in left_out]
        known_names(parameters, known, "parameter of this model")
        return replace(self, **parameters)

    def _axes(self) -> Mapping[str, str]:
        step = {} if self.direct_parameters is not None else STEP_DOMAINS
        return {**READOUT_DOMAINS, **step}

    def _names(self) -> Names:
        return curve_names(self)

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        return curve_attributes(self, varied(columns))

    def _arranged(self, dataset: xr.Dataset) -> xr.Dataset:
        return arranged(self, dataset, letters_vary=bool({*STEP} & {*dataset["test_error"].dims}))

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        letters = len(self.classes)

        def solve(model: VocabularyFeatures, at: Columns) -> BatchSolution:
            if len(model.classes) != letters:
                raise ParameterError(
                    f"at step_size = {model.step_size:g}, alpha0 = {model.alpha0:g} there are "
                    f"{len(model.classes)} different letters, elsewhere on the curve {letters}; "
                    "leave that point out"
                )
            return curve_batch(model, at["alpha"], at["ridge"])

        return solve_groups(self, columns, solve, outputs=self._names().outputs, raising=raising)

    # ------------------------------------------------------------------ networks

    with_loss = cast(
        "Callable[..., ConvexReadout]",
        given_by(f"{_HERE}.convex.readout", "with_loss"),
    )
    _expanded = given_by(f"{_HERE}.expansions.expand", "letters_expansion")

    def spectrum(self, **question: Any) -> NoReturn:
        """Refuse: the spectrum is known of features whose rows are of one kind.

        Raises
        ------
        ParameterError
            Always.
        """
        raise ParameterError(
            "the spectrum is known of one kind of rows, and these features are letters; use "
            "SpikedRandomFeatures"
        )

    # ------------------------------------------------------------------ biases

    def with_biases(self, biases: Any) -> VocabularyFeatures:
        """Return the model with other biases, given as to the class, in place of its own."""
        if self.direct_parameters is None:
            return replace(self, biases=biases)
        old = self.direct_parameters
        return replace(
            self, direct_parameters=replace(old, classes=with_biases(old.classes, biases))
        )

    @by_name("alpha", "ridge")
    def learned_bias(
        self,
        *,
        alpha: float,
        ridge: float,
        interval: tuple[float, float] = (-6.0, 6.0),
        points: int = 61,
        width: int | None = None,
    ) -> LearnedBias:
        """Return the common biases at which the training objective has its local minima.

        Parameters
        ----------
        alpha, ridge, width
            As for :meth:`solve`.
        interval : (float, float)
            Where to look.
        points : int
            Grid on which local minima are told apart.

        See Also
        --------
        giantstep.derivations.spiked_random_features.vocabulary.learned_bias
        """
        return learned_bias(self, alpha, ridge, interval=interval, points=points, width=width)

    # ------------------------------------------------------------------ files

    def _arguments(self) -> dict[str, Any]:
        names = ("cache_folder", "direct_parameters", "law")
        arguments = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in names}
        if isinstance(self.biases, Mapping):
            arguments["biases"] = list(self.biases.items())
        if self.direct_parameters is not None:
            arguments["direct_parameters"] = asdict(self.direct_parameters)
        if self.law is not None:
            arguments["law"] = {
                "points": self.law.points.tolist(), "weights": self.law.weights.tolist(),
                "discrete": self.law.discrete,
            }  # fmt: skip
        return arguments

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        biases = arguments.get("biases")
        if isinstance(biases, list) and biases and isinstance(biases[0], list):
            arguments["biases"] = dict(biases)
        if (given := arguments.get("direct_parameters")) is not None:
            arguments["direct_parameters"] = VocabularyParameters(
                tuple(FeatureClass(**one) for one in given["classes"]),
                tuple(map(tuple, given["alignment"])),
            )
        if (law := arguments.get("law")) is not None:
            points, weights = (np.array(law[name]) for name in ("points", "weights"))
            arguments["law"] = LetterLaw(points, weights, law["discrete"])
        return cls(**arguments)

    def __str__(self) -> str:
        letters = "; ".join(
            f"{c.fraction:.4g} with r = {', '.join(f'{r:.6g}' for r in c.strengths)}, "
            f"c = {c.bulk_variance:.6g}, bias = {c.bias:.6g}"
            for c in self.classes
        )
        return (
            f"spiked random features of {len(self.classes)} letters: student = {self.student}, "
            f"teacher = {self.teacher}, beta = {self.beta:g}, noise_variance = "
            f"{self.noise_variance:g}, bulk = {self.bulk}, width = {self.width}; {letters}"
        )
