"""The model that users build: a convex readout on spiked random features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import mpmath
import sympy as sp

from ....deprecations import by_name
from ....errors import ParameterError
from ....numeric.arguments import positive_pairs, whole_number
from ....numeric.cache import FileCache
from ....numeric.saddle_point_solver import BatchSolution
from ....symbolic.expressions.activations import activation, z as variable
from ....symbolic.gaussian.expectation import expect
from ....symbolic.gaussian.ramp_moments import RAMP_DIGITS
from ....symbolic.losses.convex_losses import without_cases
from ....symbolic.systems.saddle_point import SaddlePointSystem
from ...certificates.certificate import refuse_certificate
from ...curves import Columns, Names, solve_groups, varied
from ...json_text import SavedModel
from ...kernels.arguments import Tie
from ...kernels.kernel import Kernel
from ...sensitivities import Directions
from ...teachers import refuse_directions
from ..arguments import checked_width
from ..differentiation import DifferencedOptimum
from ..model import SpikedRandomFeatures, orthogonal
from ..solution import CONJUGATES, ORDER_PARAMETERS, Solution, solution_from
from ..spike import SpikeParameters
from ..vocabulary.arguments import VocabularyParameters
from ..vocabulary.kernel import letter_places
from ..vocabulary.model import VocabularyFeatures
from .derivation import ConvexCase, ConvexDerivation, convex_derivation
from .features import Rows, features_from_json, rows_of
from .labels import Labels, label_channel, takes_signs_only
from .losses import ConvexLoss, convex_loss, read_metrics, simulated_loss, x as prediction
from .smoothing import is_linear_between_kinks
from .solver import ReadoutSolver

if TYPE_CHECKING:
    from ....numeric.networks.convex import Loss
    from ...expansions.expansion import Expansion
    from ..spectrum.spectrum import FeatureSpectrum

_RTOL = 1e-10
_OWN = ("features", "loss", "labels", "width", "metrics")
_SHOWN = ("test_error", "test_loss", "training_loss")


@dataclass(frozen=True)
class ConvexReadout(SavedModel, DifferencedOptimum[Solution]):
    r"""A readout that minimises any convex loss on spiked random features.

    The readout of f(x) = φ·w/√p minimises
    :math:`\sum_\mu\ell(y_\mu, \varphi_\mu\cdot w/\sqrt p) + \frac\lambda2|w|^2`.

    Parameters
    ----------
    features : SpikedRandomFeatures or VocabularyFeatures
        The features: given by a gradient step, or by (r, c, γ); of one kind of rows, or of two or
        three letters with a spike of rank one.
    loss : str, Expr or ConvexLoss
        "square" (half the squared residual, so that λ is that of the ridge readout),
        "huber(δ)", "absolute", "quantile(τ)", "insensitive(ε)", "logistic", "hinge", or a text or
        SymPy expression in y and x that is convex in x; one with parameters is made by
        :func:`giantstep.convex_loss`.
    labels : {"teacher", "sign", "probit", "logistic"}
        "teacher": :math:`y = \sigma_*(\theta\cdot x) + \sqrt\Delta\,\xi`. The others have labels
        ±1 of the field θ·x itself, and the teacher of `features` plays no part: its sign; the sign
        of the field with noise of variance Δ; or :math:`P(y = 1) = 1/(1 + e^{-\theta\cdot x})`.
        The gradient step sees the same labels.
    width : int, optional
        Number p of neurons, for the correction of order 1/p; default: that of `features`, or the
        strict limit.
    metrics : mapping from str to str or Expr, optional
        Functions of y and x, averaged on fresh samples (``test_NAME``) and on the training set
        (``training_NAME``).

    Raises
    ------
    ParameterError
        If an argument is of the wrong kind, the loss is not convex, or the labels do not fit it:
        losses of the margin y x need labels ±1.
    ExpressionError
        If a text cannot be read.
    UnsupportedExpressionError
        If the loss has kinks and is not quadratic between them, or its average takes more than
        three integrals.

    Notes
    -----
    Results are replica-symmetric and hold in the limit d → ∞ at fixed ratios.

    References
    ----------
    Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980, Appendix C.

    Examples
    --------
    >>> from giantstep import SpikedRandomFeatures
    >>> features = SpikedRandomFeatures.from_parameters(
    ...     "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, noise_variance=0.1
    ... )
    >>> found = ConvexReadout(features, loss="huber(0.3)").solve(alpha=2, ridge=0.1)
    >>> round(found.test_error, 10), round(found.training_loss, 10)
    (0.1025158213, 0.0371129246)
    """

    _model: ClassVar[str] = "convex_readout"
    _rtol: ClassVar[float] = _RTOL
    _no_landscape: ClassVar[str] = (
        "its equations are solved with averages over proximal operators in place of the "
        "conjugates, and convex losses have one solution; features without with_loss() have a "
        "landscape"
    )

    features: SpikedRandomFeatures | VocabularyFeatures
    loss: str | sp.Expr | ConvexLoss = "square"
    labels: str = "teacher"
    width: int | None = None
    metrics: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        rows_of(self.features)  # refuses what has no equations
        width = checked_width(self.width)
        object.__setattr__(self, "width", self.features.width if width is None else width)
        loss, labels = self.convex_loss, self.channel
        if labels.channel == "teacher" and loss.needs_binary_labels:
            if not takes_signs_only(labels.teacher):
                raise ParameterError(
                    f"loss {loss.name!r} is one of the margin y x and needs labels ±1, but the "
                    f"teacher {labels.teacher.name!r} has other values; use labels='sign', "
                    "'probit' or 'logistic', a teacher such as sign, or a loss of the residual"
                )
            if labels.has_noise:
                raise ParameterError(
                    f"loss {loss.name!r} needs labels ±1, and noise_variance="
                    f"{self.features.noise_variance:g} adds to them; use labels='probit', or "
                    "noise_variance=0"
                )
        _ = self._metric_texts
        self._case.check()

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OWN}

    def __hash__(self) -> int:
        return hash((self.features, str(self.loss), self.labels, self.width, self._metric_texts))

    # ------------------------------------------------------------------ what is derived

    @cached_property
    def convex_loss(self) -> ConvexLoss:
        """The loss."""
        return convex_loss(self.loss)

    @cached_property
    def channel(self) -> Labels:
        """The label channel."""
        return label_channel(self.labels, self.features.teacher, self.features.noise_variance)

    @property
    def is_classification(self) -> bool:
        """Whether labels are ±1, and the test error is a fraction of wrong signs."""
        return self.channel.is_binary or self.convex_loss.needs_binary_labels

    @cached_property
    def _metric_texts(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, str(value)) for name, value in read_metrics(self.metrics).items())

    @cached_property
    def equivalent(self) -> SpikedRandomFeatures | VocabularyFeatures:
        """The features with a teacher that has the conditional mean and variance of the labels.

        What a gradient step, or the square loss, sees of labels ±1 is E[y | z] and E y² = 1.
        """
        if not self.channel.is_binary:
            return self.features

        text = self.channel.mean.replace("Delta", repr(self.features.noise_variance))
        square = float(expect(activation(text).expr ** 2, variable).evalf(20))
        noise = 0.0 if self.channel.channel == "sign" else max(0.0, 1.0 - square)
        return replace(self.features, teacher=text, noise_variance=noise)

    @cached_property
    def _rows(self) -> Rows:
        return rows_of(self.equivalent, self.width)

    @property
    def spike(self) -> SpikeParameters | VocabularyParameters:
        """Spike strengths, bulk variances and alignment, after a step on the same labels."""
        return self._rows.parameters

    @cached_property
    def _case(self) -> ConvexCase:
        loss, labels = self.convex_loss, self.channel
        return ConvexCase(
            loss=loss.name,
            signs=loss.signs,
            channel=labels.channel,
            student=self.features.student,
            teacher=self.features.teacher if labels.channel == "teacher" else "identity",
            has_noise=labels.has_noise,
            metrics=self._metric_texts,
            **{"finite_width": self.width is not None, **self._rows.case},
        )

    @cached_property
    def _cache(self) -> FileCache:
        return FileCache(self.features.cache_folder)

    @cached_property
    def _derivation(self) -> ConvexDerivation:
        return convex_derivation(self._cache, self._case)

    @property
    def structure(self) -> str:
        """How the saddle-point equations are solved."""
        return self._derivation.structure

    def symbolic(self) -> SaddlePointSystem:
        """Return the saddle-point system in SymPy."""
        return self._case.system()

    @cached_property
    def _values(self) -> dict[str, float]:
        found = {
            "beta": self.features.beta,
            "noise_variance": self.features.noise_variance,
            **self._rows.values,
        }
        found |= self.convex_loss.values
        if self.width is not None:
            found["inverse_width"] = 1.0 / self.width
        return found

    def kernel(self) -> Kernel:
        """Return the kernel: sweeps over all parameters, inspection, files for other languages."""
        found, values = self._derivation, self._values
        domains = dict(found.domains)
        special = self.convex_loss.domains
        if self._case.aligned:
            special |= {"alignment": "unit"}
        if self._case.unspiked:
            special |= {"spike_strength": "zero"}
        parameters = found.code.parameters
        ties = {}
        if {"alignment", "orthogonal_alignment"} <= {*parameters}:
            ties["orthogonal_alignment"] = Tie("alignment", orthogonal, constraint=True)
        return Kernel(
            name="convex_readout",
            title=f"{found.title}; student {self.features.student}",
            code=found.code,
            domains={**domains, **{k: v for k, v in special.items() if k in parameters}},
            make=partial(ConvexCase.lowered, self._case, constrained=self.spike),
            make_solved=partial(ConvexCase.lowered, self._case),
            defaults={name: values[name] for name in parameters if name in values},
            exact_defaults=partial(exact_values, self),
            ties=ties,
            labels=dict(found.labels),
            cache_folder=self.features.cache_folder,
            data=self._rows.bulk.columns,
            exact_data=self._rows.bulk.exact,
            check=self._rows.bulk.check,
            **bound_of_digits(self),
        )

    # ------------------------------------------------------------------ solving

    @cached_property
    def _solver(self) -> ReadoutSolver:
        return ReadoutSolver(
            case=self._case,
            loss=self.convex_loss,
            channel=self.channel,
            rows=self._rows,
            values=self._values,
            cache=self._cache,
        )

    @by_name("alpha", "ridge")
    def solve_many(
        self, *, alpha: object, ridge: object, rtol: float = _RTOL, workers: int | None = None
    ) -> BatchSolution:
        """Solve at many sample complexities, ridge penalties or pairs of both.

        Parameters
        ----------
        alpha : float or array-like (n,)
            Sample complexities, all positive.
        ridge : float or array-like (n,)
            Ridge penalties λ > 0.
        rtol : float
            Wanted relative quadrature error of the test error.
        workers : int, optional
            Threads.

        Raises
        ------
        AssumptionError
            If the mean direction separates the labels, and nothing keeps m finite.
        ConvergenceError
            If a point has no solution that is found; names the first.
        """
        alphas, ridges = positive_pairs(("alpha", "ridge"), alpha, ridge)
        if workers is not None:
            workers = whole_number("workers", workers)
        return self._solver.solve(alphas, ridges, rtol=rtol, workers=workers)

    @property
    def _aspect(self) -> float:
        return self.features.beta

    def _certificate_wanted(self, certify: object) -> bool:
        refuse_certificate(
            certify, "convex readouts", "their proximal operators are roots inside of the integrals"
        )
        return False

    def _solved(
        self, alpha: float, ridge: Any, digits: int | None, certify: bool, progress: bool
    ) -> Solution:
        batch = self.solve_many(alpha=[alpha], ridge=ridge)
        values: dict[str, Any] = {name: float(v[0]) for name, v in batch.values.items()}
        errors: dict[str, Any] = {name: float(v[0]) for name, v in batch.errors.items()}
        if digits is not None:
            start = {name: values[name] for name in self._derivation.code.unknowns}
            refined = self.kernel().solve(
                alpha=alpha, ridge=ridge, digits=digits, start=start, progress=progress
            )
            values, errors = picklable(refined.values), picklable(refined.errors)
        letters = self._case.letters
        return solution_from(
            values,
            errors=errors,
            metrics=self._metric_results,
            order_parameters=ORDER_PARAMETERS
            if letters is None
            else [x for name in ORDER_PARAMETERS for x, _ in letter_places(name, letters)],
            conjugates=() if letters else CONJUGATES,
            alpha=alpha,
            ridge=ridge,
            width=self.width,
            residual=float(batch.residual[0]),
            iterations=int(batch.iterations[0]),
            quadrature_error=float(errors["test_error"]),
            nodes=int(batch.nodes[0]),
            digits=digits,
        )

    def _directions(self, *, exact: bool) -> Directions:
        return readout_directions(self, exact=exact)

    def _start(self, kernel: Kernel, point: Mapping[str, Any]) -> Mapping[str, float]:
        batch = self.solve_many(alpha=[point["alpha"]], ridge=point["ridge"])
        return {name: float(batch.values[name][0]) for name in kernel.code.unknowns}

    @property
    def _metric_results(self) -> tuple[str, ...]:
        names = [name for name, _ in self._metric_texts]
        return tuple(f"{kind}_{name}" for name in names for kind in ("test", "training"))

    # ------------------------------------------------------------------ over parameters

    def at(self, **parameters: Any) -> Self:
        """Return this readout with other parameters: its own, of its features, of its loss.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> huber = SpikedRandomFeatures("erf", "erf").with_loss("huber(0.3)")
        >>> print(huber.at(delta=0.5).convex_loss)
        huber(0.5)
        """
        values = dict(self.convex_loss.values)
        own = {name: parameters.pop(name) for name in _OWN if name in parameters}
        of_loss = {name: parameters.pop(name) for name in values if name in parameters}
        if of_loss:
            own["loss"] = self.convex_loss.at(**of_loss)
        features = own.pop("features", self.features)
        return replace(self, features=features.at(**parameters), **own)

    def _axes(self) -> Mapping[str, str]:
        loss = self.convex_loss
        return {
            **self.features._axes(),
            **{
                name: loss.domains.get(name, "positive" if positive else "negative")
                for name, positive in loss.signs
            },
        }

    def _names(self) -> Names:
        results = self._derivation.code.results
        first = [name for name in _SHOWN if name in results]
        return Names(
            outputs=(*first, *(name for name in results if name not in first)),
            errors=("quadrature_error",),
            shown=tuple(first),
            drawn=_SHOWN[:1],
            meanings={},
        )

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        left_out = varied(columns)
        left_out |= {"loss"} if left_out & {*dict(self.convex_loss.values)} else set()
        return {k: v for k, v in self._attributes().items() if k not in left_out}

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        def solve(model: ConvexReadout, at: Columns) -> BatchSolution:
            return model.solve_many(alpha=at["alpha"], ridge=at["ridge"], rtol=rtol, workers=1)

        return solve_groups(self, columns, solve, outputs=self._names().outputs, raising=raising)

    def _attributes(self) -> dict[str, Any]:
        given = self._rows.attributes
        width = {} if self.width is None else {"width": self.width}
        return {
            "model": self.to_json(), **given, "loss": str(self.convex_loss), "labels": self.labels,
            **width,
        }  # fmt: skip

    def _arguments(self) -> dict[str, Any]:
        return {
            "features": json.loads(self.features.to_json()),
            "loss": self._loss_as_json(),
            "labels": self.labels,
            "width": self.width,
            "metrics": {
                name: given if isinstance(given := (self.metrics or {})[name], str) else text
                for name, text in self._metric_texts
            }
            or None,
        }

    def _loss_as_json(self) -> Any:
        if isinstance(self.loss, str):
            return self.loss
        loss = self.convex_loss
        own = loss.values and not loss.in_catalogue
        return {"expression": loss.name, "parameters": dict(loss.values)} if own else str(loss)

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        features = features_from_json(arguments.pop("features"))
        if isinstance(given := arguments.get("loss"), dict):
            arguments["loss"] = convex_loss(given["expression"], **given["parameters"])
        return cls(features, **arguments)

    def _expanded(
        self, name: str, order: int, alpha: float | None, ridge: float | None, digits: int
    ) -> Expansion:
        if self.convex_loss.name != "square" or self.channel.is_binary:
            raise ParameterError(
                f"expansion({name!r}) does not combine with loss={str(self.convex_loss)!r} and "
                f"labels={self.labels!r}: series are known of the equations of the square loss, "
                "whose averages are rational in the unknowns, and those of other envelopes are cut "
                "at places that move with the small quantity; use loss='square' with "
                "labels='teacher', or curve() towards the limit"
            )
        given = {} if self.width is None else {"width": self.width}
        return self.features.expansion(
            name, order, alpha=alpha, ridge=ridge, digits=digits, **given
        )

    def spectrum(
        self, *, alpha: float, points: int = 500, covariance: str = "sample"
    ) -> FeatureSpectrum:
        """Return the spectrum of the features, on which no loss acts but that of their step.

        Parameters
        ----------
        alpha, points, covariance
            As for :meth:`giantstep.SpikedRandomFeatures.spectrum`.

        Raises
        ------
        ParameterError
            If the features are letters, or an argument is outside its range.
        """
        return self.equivalent.spectrum(alpha=alpha, points=points, covariance=covariance)

    # ------------------------------------------------------------------ checking

    def _drawn(self) -> tuple[Any, str | None, Loss | None]:
        if self.channel.is_binary:
            features, labels = replace(self.features, teacher="identity"), self.channel.channel
        else:
            features = self.features
            labels = "sign" if self.is_classification else "regression"
        square = self.convex_loss.name == "square"
        loss = None if square else simulated_loss(self.convex_loss)
        return rows_of(features, self.width).features, labels, loss

    def __str__(self) -> str:
        width = "" if self.width is None else f", width = {self.width}"
        return f"{self.convex_loss} loss, labels {self.labels}{width}, on {self.features}"

    def __repr__(self) -> str:
        return (
            f"ConvexReadout(loss={str(self.convex_loss)!r}, labels={self.labels!r}, "
            f"width={self.width}, features={self.features!r})"
        )


def picklable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers of mpmath in its own context, where their digits stay."""
    return {name: mpmath.mp.make_mpf(x._mpf_) for name, x in values.items()}


def exact_values(readout: ConvexReadout, ctx: Any) -> dict[str, Any]:
    """Return the parameters but α and λ, every float read as the decimal that it prints as.

    Raises
    ------
    ParameterError
        If the spike comes from a step on labels that are random given the field: the mean of
        those is known in double precision.
    """
    given = readout.equivalent
    by_step = given.direct_parameters is None and given.step_size != 0
    if by_step and readout.labels in ("probit", "logistic"):
        raise ParameterError(
            f"digits: the spike of a step on labels {readout.labels!r} is known in double "
            "precision; give the features by SpikedRandomFeatures.from_parameters"
        )
    found = readout._rows.exact(ctx)
    own = {p.name: value for p, value in readout.convex_loss.exact_values.items()}
    own["noise_variance"] = sp.Rational(repr(readout.features.noise_variance))
    if readout.width is not None:
        own["inverse_width"] = sp.Rational(1, readout.width)
    return found | {name: ctx.mpf(str(sp.N(x, ctx.dps + 5))) for name, x in own.items()}


def bound_of_digits(readout: ConvexReadout) -> dict[str, Any]:
    """Return the bound of digits for a loss whose averages hold a rule of fixed accuracy."""

    losses = [without_cases(readout.convex_loss.at_label(label), prediction) for label in (-1, 1)]
    ramps = any(is_linear_between_kinks(loss, prediction) for loss in losses)
    return {"most_digits": RAMP_DIGITS} if ramps else {}


def readout_directions(readout: ConvexReadout, *, exact: bool) -> Directions:
    """Return those of the features, and the parameters of the loss."""
    given = readout.equivalent
    found = readout._rows.directions(exact=exact)
    moving, excluded = dict(found.moving), dict(found.excluded)
    if readout.channel.is_binary:
        # The labels have the variance that follows from their law, which the noise is a part of.
        moving["noise_variance"] = {"noise_variance": 1}
        if readout.labels == "probit" and given.direct_parameters is None and given.step_size:
            del moving["noise_variance"]
            excluded["noise_variance"] = (
                "the mean of the labels that the step sees depends on it, whose derivative is not "
                "derived; give the features by from_parameters of their model"
            )
    if not readout.channel.has_noise:
        moving.pop("noise_variance", None)
        excluded["noise_variance"] = (
            "labels have none, and the equations are those without; take noise_variance > 0"
        )
    moving |= {name: {name: 1} for name in dict(readout.convex_loss.values)}
    moving.pop("inverse_width", None)
    if readout.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)


def with_loss(
    features: SpikedRandomFeatures | VocabularyFeatures,
    loss: Any,
    *,
    labels: str = "teacher",
    width: int | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> ConvexReadout:
    """Return a readout of these features that minimises another convex loss.

    Letters have a spike of rank one, and there are at most three of them.

    Parameters
    ----------
    loss, labels, width, metrics
        As for :class:`giantstep.ConvexReadout`.

    Raises
    ------
    ParameterError
        If the loss is not convex, the labels do not fit it, or there are too many letters.

    Notes
    -----
    The equations of a loss are derived and compiled when they are first solved, and kept in the
    cache: half a minute for two letters, some minutes for three.

    Examples
    --------
    >>> from giantstep import VocabularyFeatures
    >>> model = VocabularyFeatures.from_parameters(
    ...     "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02],
    ...     fractions=[0.4, 0.6], alignment=0.9, noise_variance=0.1,
    ... )
    >>> print(model.with_loss("huber(0.3)").convex_loss)
    huber(0.3)
    """
    refuse_directions(features.teacher, "readouts of other losses than the square")
    return ConvexReadout(features, loss, labels, width, metrics)
