"""The methods of models that differentiate: sensitivities and optima.

**The kernel of an output with its derivative, and the derivative of the map of Result 3.1.** A
parameter of the gradient step moves several parameters of the spike at once.

**How the parameters of the equations move with those of a model of spiked features.** Parameters of
the gradient step act through the spike that they produce, by the chain rule through the map of
Result 3.1.

**Parameters at which an output of spiked random features is smallest.** The gradient is that of the
saddle-point equations (:mod:`..kernels.optima`); parameters of the gradient step act through the
spike that they produce. Convex readouts and vocabularies, whose equations take
longer to differentiate than a search by extrapolated differences of their values, are searched by
these.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ...deprecations import by_name, renamed
from ...digits import checked_digits
from ...errors import ParameterError
from ...numeric.arguments import checked_switch, is_one_of, positive_array, positive_number
from ...numeric.kernel_code import KernelCode
from ...numeric.networks.convex import Loss
from ...numeric.networks.network import Network
from ...runtime.generated import defined
from ...symbolic.expressions.activations import activation
from ...symbolic.printing.compiled import Formula
from ..certificates.certificate import certificate_wanted
from ..dataset_result import Simulation
from ..derived import derived
from ..expansions.expansion import Expansion, checked_name, checked_order
from ..first_gradient import spike_mapping as m
from ..kernels.sensitivities import derivative_code
from ..optima import DEFAULT_BOUNDS, Optimum, Question, optimum
from ..penalties import PaperRidge, readout_penalty
from ..sensitivities import (
    Directions,
    HasSensitivities,
    ModelQuestion,
    ValuesQuestion,
    searched_domains,
)
from ..teachers import read_teacher
from .arguments import SPIKE, STEP, STRETCH
from .derive import STEP_ARGUMENTS, flags_of, scalar_functions, symbolic_model
from .precise import precise_ridge
from .simulated import has_letters, network_of, simulate_model
from .solution import Solution, model_attributes

if TYPE_CHECKING:
    import xarray as xr

    from ...symbolic.systems.saddle_point import SaddlePointSystem
    from ..kernels.kernel import Kernel
    from .model import SpikedRandomFeatures


# ----------------------------------------------------------------------
# What is asked of every model on spiked features, whatever its readout and its letters.

Answer = TypeVar("Answer")


class FeatureModel(HasSensitivities, Generic[Answer]):
    """A model of spiked features, or of a readout on them."""

    _dimension: ClassVar[int] = 400
    _rtol: ClassVar[float] = 1e-11

    @property
    @abstractmethod
    def _aspect(self) -> float:
        """p/d of the features."""

    @abstractmethod
    def _solved(
        self, alpha: float, ridge: Any, digits: int | None, certify: bool, progress: bool
    ) -> Answer:
        """Answer :meth:`solve` at checked arguments."""

    @by_name("alpha", "ridge")
    def solve(
        self,
        *,
        alpha: float,
        ridge: float | PaperRidge,
        digits: int | None = None,
        certify: bool = False,
        progress: bool = True,
        width: int | None = None,
    ) -> Answer:
        """Return the saddle point at one sample complexity and ridge penalty.

        Parameters
        ----------
        alpha : float
            Sample complexity n/d of the readout.
        ridge : float
            Ridge penalty λ > 0, or :func:`giantstep.paper_ridge`.
        digits : int, optional
            Refine to so many digits with mpmath. Floats are then read as the decimal numbers that
            they print as. Of several letters: up to three, on a spike of rank one, given by
            :meth:`VocabularyFeatures.from_parameters`.
        certify : bool
            Prove `digits` digits (default: 15) with ball arithmetic: the solution holds a
            certificate with proven intervals, and its numbers are their midpoints. Of the square
            loss, and of letters for which digits can be asked; needs python-flint.
        progress : bool
            Show a progress bar if the digits take longer than a second.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model. With
            letters the solution holds the strict limit beside it.

        Raises
        ------
        ParameterError
            If an argument is outside its range, or a continuous law of letters comes without width.
        ConvergenceError
            If no solution is found: never seen for the square loss of one letter; letters that
            hardly differ leave no digits in the strict limit.
        CertificationError
            If a proof is wanted and does not succeed, or is known for the square loss only.
        UnsupportedExpressionError
            If a proof is wanted and an activation is outside of what can be enclosed.
        MissingDependencyError
            If a proof is wanted and python-flint is not installed.

        Warns
        -----
        ApproximationWarning
            If a network may deviate visibly from the spiked random features that stand for it
            (see :attr:`SpikedRandomFeatures.bulk_spread`), or networks of a thousand neurons from
            the limit of infinite width.
        """
        model = self if width is None else self.at(width=width)
        certify = model._certificate_wanted(certify)
        alpha = positive_number("alpha", alpha)
        digits = None if digits is None else checked_digits(digits)
        penalty = readout_penalty(ridge, alpha, self._aspect, exact=certify or digits is not None)
        return model._solved(alpha, penalty, digits, certify, progress)

    def _certificate_wanted(self, certify: object) -> bool:
        return certificate_wanted(certify)

    @abstractmethod
    def _expanded(
        self, name: str, order: int, alpha: float | None, ridge: float | None, digits: int
    ) -> Expansion:
        """Answer :meth:`expansion` at a checked name, order and digits."""

    def expansion(
        self,
        name: str,
        order: int = 2,
        *,
        alpha: float | None = None,
        ridge: float | None = None,
        digits: int = 30,
        width: int | None = None,
    ) -> Expansion:
        r"""Return the solution of the square loss as a series in a small quantity.

        Of letters: of up to three on a spike of rank one, given by
        :meth:`VocabularyFeatures.from_parameters`, without "small_step" and formulas.

        Parameters
        ----------
        name : str
            "large_alpha" (α → ∞ in powers of 1/α, at fixed λ), "small_ridge" (λ → 0 at fixed α, in
            powers of λ, of √λ at the interpolation threshold α = β) or "small_step" (s → 0 in
            powers of the step size, at fixed α and λ; the step size of the model plays no role).
        order : int
            Last exponent that is kept.
        alpha, ridge : float
            What is held fixed: `ridge` for "large_alpha", `alpha` for "small_ridge", both for
            "small_step".
        digits : int
            Of the coefficients.
        width : int, optional
            Number of neurons p, for the finite-width correction; default: that of the model.

        Returns
        -------
        Expansion
            Of the errors, all order parameters and their conjugates, of letters all entries of the
            former, ``V1_12`` and such. Its `formulas` and `equations` have the coefficients and
            what determines them in symbols, derived when they are asked for.

        Raises
        ------
        ParameterError
            If an argument is missing, superfluous or outside its range, or letters, another loss
            or labels that are ±1 have no such expansion.
        AssumptionError
            If the limit does not exist or the coefficients diverge, as those of the ridgeless limit
            of a saturating student do; the message has the condition.
        ConvergenceError
            If two quadrature rules never agree.

        Examples
        --------
        >>> from giantstep import SpikedRandomFeatures
        >>> model = SpikedRandomFeatures("sin", "sin", step_size=1, alpha0=4)
        >>> print(model.expansion("small_step", 0, alpha=2, ridge=0.1, digits=10).remainder_order)
        2
        """
        model = self if width is None else self.at(width=width)
        return model._expanded(
            checked_name(name), checked_order(order), alpha, ridge, checked_digits(digits)
        )

    @renamed("curve(alpha=..., ridge=...)")
    def learning_curve(
        self, alpha: object, ridge: float, *, width: int | None = None
    ) -> xr.Dataset:
        """Return :meth:`curve` over sample complexities as a dataset, as the last release did."""
        alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
        model = self if width is None else self.at(width=width)
        found = model.curve(alpha=np.atleast_1d(alphas), ridge=ridge, rtol=self._rtol).to_dataset()
        return found.drop_vars(["ridge", "converged"]).assign_attrs(ridge=ridge)

    def _drawn(self) -> tuple[Any, str | None, Loss | None]:
        """Return the features, how labels are made of the target, and the loss if not square."""
        return self, None, None

    @by_name("labels", first=1)
    def network(
        self,
        dimension: int | None = None,
        *,
        labels: str | Callable[..., Any] | None = None,
        equivalent: bool = False,
    ) -> Network:
        """Return the network of the model at a finite dimension, for :func:`giantstep.simulate`.

        Parameters
        ----------
        dimension : int, optional
            Input dimension d; α0 d and β d have to be (close to) whole numbers. Default: 1000,
            with letters and for other losses 400.
        labels : {"regression", "sign", "probit", "logistic"} or callable, optional
            How labels are made from the target; default: "regression", or those of the readout.
        equivalent : bool
            The spiked random features instead of the network whose step makes them; a model that
            is given by its parameters always has these.

        Returns
        -------
        Network
            With its gradient step; of a model that is given by its parameters, their rows.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples and rows, a network after
            its step cannot have such rows, or the readout has labels of its own.
        AssumptionError
            If the student jumps and a step is to be taken.

        Examples
        --------
        >>> import giantstep as gs
        >>> model = gs.SpikedRandomFeatures("tanh", "sin", step_size=2, alpha0=4)
        >>> network = model.network(50)
        >>> network.width, network.step_samples, network.rate
        (50, 200, 2.0)
        """
        features, own, _ = self._drawn()
        if own is not None and labels is not None:
            raise ParameterError(f"labels are those of the readout, {own!r}; leave them out")
        return network_of(
            features, self._dimension if dimension is None else dimension,
            own or labels or "regression", equivalent=checked_switch("equivalent", equivalent),
        )  # fmt: skip

    @by_name("alpha", "ridge", first=1)
    def simulate(
        self,
        dimension: int | None = None,
        *,
        alpha: object = (0.5, 1.0, 2.0),
        ridge: float = 0.1,
        equivalent: bool = False,
        control_variate: bool = False,
        seeds: int = 10,
        seed: int = 0,
        workers: int | None = None,
        progress: bool = True,
        store: str | os.PathLike[str] | None = None,
        executor: Executor | None = None,
    ) -> Simulation:
        """Train networks of finite size, or readouts of given features, and measure their errors.

        Parameters
        ----------
        dimension : int, optional
            Input dimension d; α d, α0 d and β d have to be (close to) whole numbers. Default: 1000,
            with letters and for other losses 400.
        alpha : float or sequence of float
            Sample complexities; the training sets of one network are nested.
        ridge : float
        equivalent : bool
            Draw the spiked random features instead of taking the step; a model that is given by
            its parameters always does.
        control_variate : bool
            Subtract the conditional error that the theory predicts at the projection of each
            sample on the spike, and add its mean: less scatter, the same expectation.
        seeds, seed, workers, executor, store, progress
            See :func:`giantstep.numeric.networks.run.simulate`.

        Returns
        -------
        Simulation
            Dimensions ``seed`` and ``alpha``; errors of every network, their mean and standard
            error, and the realised spike strength, bulk variance and alignment of each network.
            Also losses, the objective and the order parameters of each readout; metrics are those
            of the theory alone.

        Raises
        ------
        ParameterError
            If the dimension is too small for whole numbers of samples, or nothing says how such
            rows are drawn; if a control variate is asked for with letters or another loss.
        """
        features, labels, loss = self._drawn()
        control_variate = checked_switch("control_variate", control_variate)
        if control_variate and (loss is not None or labels is not None or has_letters(features)):
            raise ParameterError(
                "control_variate is the conditional error of the square loss on features of one "
                "letter; leave it out for letters, other losses and labels"
            )
        found = simulate_model(
            features, self._dimension if dimension is None else dimension, alpha, ridge, loss=loss,
            labels=labels or "regression", equivalent=checked_switch("equivalent", equivalent),
            control_variate=control_variate, seeds=seeds, seed=seed, workers=workers,
            progress=progress, store=store, executor=executor,
        )  # fmt: skip
        if features is not self:
            found.attrs["model"] = self.to_json()
        return Simulation(found)


class Differentiation(FeatureModel[Solution]):
    """Derivatives of a model's errors, and the minima that they lead to."""

    sensitivities = by_name("alpha", "ridge")(FeatureModel.sensitivities)

    def _directions(self, *, exact: bool) -> Directions:
        return directions(cast("SpikedRandomFeatures", self), exact=exact)

    def _optimum(self, digits: int | None, asked: dict[str, Any]) -> Any:
        return spiked_optimum(cast("SpikedRandomFeatures", self), digits, asked)

    @renamed("optimum(over='ridge', alpha=...)")
    def optimal_ridge(
        self,
        alpha: float,
        bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        *,
        digits: int | None = None,
        width: int | None = None,
    ) -> Optimum:
        """Return the ridge penalty with the smallest test error, as :meth:`optimum` does."""
        found = self.optimum(over="ridge", alpha=alpha, bounds=bounds, digits=digits, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over='step_size', alpha=..., ridge=...)")
    def optimal_step_size(
        self,
        alpha: float,
        ridge: float,
        bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        *,
        width: int | None = None,
    ) -> Optimum:
        """Return the step size with the smallest test error, as :meth:`optimum` does."""
        found = self.optimum(over="step_size", alpha=alpha, ridge=ridge, bounds=bounds, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over=['ridge', 'step_size'], alpha=...)")
    def optimal_hyperparameters(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        step_bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        width: int | None = None,
    ) -> Optimum:
        """Return ridge penalty and step size together, as :meth:`optimum` does."""
        bounds = {"ridge": ridge_bounds, "step_size": step_bounds}
        found = self.optimum(over=[*bounds], alpha=alpha, bounds=bounds, width=width)
        return cast("Optimum", found)

    @renamed("optimum(over=['ridge', 'step_size'], alpha=[...])")
    def optimal_curve(
        self,
        alpha: object,
        *,
        ridge_bounds: tuple[float, float] = DEFAULT_BOUNDS["ridge"],
        step_bounds: tuple[float, float] = DEFAULT_BOUNDS["step_size"],
        width: int | None = None,
    ) -> xr.Dataset:
        """Return them over sample complexities, as :meth:`optimum` does."""
        bounds = {"ridge": ridge_bounds, "step_size": step_bounds}
        alphas = positive_array("alpha", alpha)
        found = self.optimum(over=[*bounds], alpha=alphas, bounds=bounds, width=width)
        return cast("xr.Dataset", found)


class DifferencedOptimum(FeatureModel[Answer]):
    """Optima of models whose equations take minutes to differentiate along a search."""

    def _question(self) -> Question:
        return ValuesQuestion(self)


# ------------------------------------------------------------------ tangents

OF_STEP = ("step_size", "alpha0", "noise_variance")
"""Arguments of the map."""
STEP_MOVES = (
    "spike_strength", "bulk_variance", "norm_overlap",
    "stretch_along", "stretch_mixed", "stretch_across",
)  # fmt: skip


def derivative_kernel(
    model: SpikedRandomFeatures, of: str, parameters: Iterable[str]
) -> KernelCode:
    """Return the kernel of one output and its derivative along a direction."""
    moving = tuple(dict.fromkeys(parameters))
    return _derivative_code(
        model._cache, model.student, model.teacher, of, moving, **flags_of(model)
    )


@derived("spiked_random_features/derivatives", KernelCode)
def _derivative_code(
    student: str, teacher: str, of: str, moving: tuple[str, ...], **flags: Any
) -> KernelCode:
    system = symbolic_model(student, teacher, **flags).system
    there = _moving_parameters(system)
    return derivative_code(system, of, [name for name in moving if name in there])


def _moving_parameters(system: SaddlePointSystem) -> list[str]:
    """Return the parameters in which the equations can be differentiated."""
    present = set().union(
        *(e.residual.free_symbols for e in system.equations),
        *(d.free_symbols for d in system.definitions.values()),
        # Noise is added to what the test error is measured against.
        *(value.free_symbols for value in system.outputs.values()),
    )
    names = [system.identifiers[p] for p in system.parameters if p in present]
    if "orthogonal_alignment" not in names:
        # Exactly aligned: the end of the range of the alignment, where nothing is differentiated.
        names = [name for name in names if name != "alignment"]
    return names


# ---------------------------------------------------------------------- the map of the step


def step_rates(
    model: Any,
    parameter: str,
    *,
    letter: float = 1.0,
    mean_letter: float = 1.0,
    stretched: bool = False,
) -> dict[str, float]:
    """Return the derivatives of the spike with respect to a parameter of the step.

    `letter` is that of the neurons, `mean_letter` the mean over all of them.
    """
    infinite = model.alpha0 == math.inf
    source = _rate_source(
        model._cache, model.student, model.teacher, infinite=infinite, stretched=stretched
    )
    module = defined(source)
    # Without noise in the labels nothing depends on a sample number that is infinite.
    samples = 1.0 if infinite else model.alpha0
    step = (model.step_size, samples, model.noise_variance)
    values = module.mapping_rates(*step, letter, mean_letter)
    start = len(SPIKE) * OF_STEP.index(parameter)
    return dict(zip(SPIKE, values[start : start + len(SPIKE)], strict=True))


@derived("spiked_random_features/letter_rates", str)
def _rate_source(student: str, teacher: str, *, infinite: bool, stretched: bool) -> str:
    mapping = m.spike_mapping(
        activation(student), read_teacher(teacher), stretched=stretched, letter=m.letter,
        mean_letter=m.mean_letter,
    )  # fmt: skip
    derivatives = mapping_derivatives(mapping, infinite)
    arguments = (*STEP_ARGUMENTS, m.letter, m.mean_letter)
    names = {m.letter: "letter", m.mean_letter: "mean_letter"}
    return scalar_functions({"mapping_rates": Formula(arguments, derivatives)}, names)


def mapping_derivatives(mapping: m.SpikeMapping, infinite: bool = False) -> list[Any]:
    """Return the derivative of each field of the spike, for each argument of the map in turn.

    `infinite` takes the limit of infinite alpha0 first.
    """
    fields = [getattr(mapping, name) for name in SPIKE]
    if infinite:
        fields = [f.xreplace({m.alpha0: sp.oo}) for f in fields]
        # Without a gradient the direction of the spike is a convention, which does not move.
        fields = [sp.S.Zero if f.has(sp.nan, sp.zoo) else f for f in fields]
    return [f.diff(argument) for argument in (m.step_size, m.alpha0, m.noise) for f in fields]


# ------------------------------------------------------------------ directions

NO_SPIKE = (
    "errors jump where the spike vanishes, because the mean of the features along it, however "
    "small, is fitted without a penalty; take a spike of finite strength"
)
ALIGNED = (
    "alignment is at the end of its range, where the labels are a function of the projection on "
    "the spike; take |alignment| < 1"
)


def directions(model: SpikedRandomFeatures, *, exact: bool = False) -> Directions:
    """Return the rates of kernel parameters for each parameter, and those that have none.

    `noise_variance` acts in the step and in the training set of the readout; those of the spike
    (`spike_strength`, `bulk_variance`, `alignment`, `norm_overlap`) and, at a finite width, its
    inverse 1/p (`inverse_width`) move with everything else fixed.
    """
    spike = model.spike
    moving: dict[str, dict[str, Any]] = {
        name: {name: 1} for name in ("alpha", "beta", "ridge", "noise_variance")
    }
    excluded: dict[str, str] = {}
    if model.direct_parameters is None:
        excluded |= fixed_step_parameters(model)
        of_step = _exact_step_rates(model) if exact else None
        for name in OF_STEP if model.step_size > 0 else ():
            if name not in excluded:
                moved = (
                    step_rates(model, name, stretched=model._case["stretched"])
                    if of_step is None else of_step(name)
                )  # fmt: skip
                moving[name] = {**moving.get(name, {}), **moved}
    if spike.spike_strength == 0:
        excluded["spike_strength"] = NO_SPIKE
    else:
        moving["spike_strength"] = {"spike_strength": 1}
    moving["bulk_variance"] = {"bulk_variance": 1}
    if spike.orthogonal_alignment == 0:
        excluded["alignment"] = ALIGNED
    else:
        slope: Any = _across if exact else -spike.alignment / spike.orthogonal_alignment
        moving["alignment"] = {"alignment": 1, "orthogonal_alignment": slope}
    if model._case["correlated_norms"]:
        moving["norm_overlap"] = {"norm_overlap": 1}
    if model._case["stretched"]:
        moving |= {name: {name: 1} for name in STRETCH}
    if model.width is not None:
        moving["inverse_width"] = {"inverse_width": 1}
    return Directions(moving, excluded)


def fixed_step_parameters(model: Any) -> dict[str, str]:
    """Return parameters of the step of a model that have no derivative, with the reason."""
    if model.step_size == 0:
        return {
            "step_size": "errors jump at step_size = 0, where the spike vanishes",
            "alpha0": "no step is taken",
        }
    return {"alpha0": "alpha0 is infinite"} if model.alpha0 == math.inf else {}


def _across(known: Any) -> Any:
    """The derivative of the orthogonal alignment by the alignment."""
    return -known["alignment"] / known["orthogonal_alignment"]


def _exact_step_rates(model: SpikedRandomFeatures) -> Callable[[str], dict[str, Any]]:
    """Return what takes a parameter of the step to functions of numbers of mpmath."""
    infinite, symbolic = model.alpha0 == math.inf, model.symbolic()
    derivatives = mapping_derivatives(
        m.spike_mapping(symbolic.student, symbolic.teacher, stretched=model._case["stretched"]),
        infinite,
    )
    given = {
        m.step_size: sp.Rational(repr(model.step_size)),
        m.alpha0: sp.S.One if infinite else sp.Rational(repr(model.alpha0)),
        m.noise: sp.Rational(repr(model.noise_variance)),
    }

    def number(value: sp.Expr, known: Any) -> Any:
        ctx = known["beta"].context
        return ctx.mpf(str(value.evalf(ctx.dps)))

    def rates(parameter: str) -> dict[str, Any]:
        start = len(SPIKE) * OF_STEP.index(parameter)
        values = [x.xreplace(given) for x in derivatives[start : start + len(SPIKE)]]
        return {
            name: lambda known, value=value: number(value, known)
            for name, value in zip(SPIKE, values, strict=True)
        }

    return rates


# ------------------------------------------------------------------ optimal

Array = NDArray[np.float64]


def spiked_optimum(
    model: SpikedRandomFeatures, digits: int | None, asked: Mapping[str, Any]
) -> Any:
    """Answer :meth:`.SpikedRandomFeatures.optimum`; `asked` are its other arguments."""
    over, of = asked["over"], asked["of"]
    names = [over] if isinstance(over, str) else over
    if model.direct_parameters is not None and isinstance(names, Sequence):
        stepping = [name for name in names if name in STEP]
        if stepping:
            raise ParameterError(
                "a model that is given by its spike takes no step; give step_size and alpha0"
            )
    alone = isinstance(names, list | tuple) and [*names] == ["ridge"]
    minimum = alone and is_one_of(of, ("test_error",)) and not asked["maximum"]
    if digits is not None and not minimum:
        raise ParameterError(
            "digits refine the optimum of the test error over the ridge penalty, a minimum; leave "
            "digits out, or ask for of='test_error' and over='ridge'"
        )
    best = optimum(_SpikedQuestion(model), **asked)
    if digits is None:
        return best
    if not isinstance(best, Optimum):
        raise ParameterError("digits refine one optimum; give numbers in place of arrays")
    if not best.is_interior:
        return best

    fixed = dict(asked["fixed"])
    alpha = fixed.pop("alpha")
    return precise_ridge(model.at(**fixed), float(alpha), best, digits)


class _SpikedQuestion(ModelQuestion):
    """Ridge regression on spiked features as what optima are asked of."""

    name = "spiked random features"

    def __init__(self, model: SpikedRandomFeatures) -> None:
        self._model, self._names = model, {}

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._model.kernel().outputs

    @property
    def domains(self) -> Mapping[str, str]:
        return searched_domains(self._model)

    def attributes(self) -> dict[str, Any]:
        # The step and the spike of the model are not those of the optimum.
        moved = ("ridge", *SPIKE)
        found = model_attributes(cast("SpikedRandomFeatures", self._model), 0.0)
        return {k: v for k, v in found.items() if k not in moved}

    def _kernel(self, model: SpikedRandomFeatures, names: Sequence[str]) -> Kernel:
        if {*names} & {*STEP} and model.spike.spike_strength == 0:
            raise ParameterError(
                f"the step of this model leaves no spike (step_size={model.step_size:g}): there is "
                "no step size to choose; take a student with E sigma' != 0 and finite alpha0"
            )
        return model.kernel()

    def _values(self, model: SpikedRandomFeatures) -> Mapping[str, float]:
        return model._parameter_values()

    def _code(
        self, model: SpikedRandomFeatures, kernel: Kernel, of: str, names: Sequence[str]
    ) -> KernelCode:
        takes_step = model.direct_parameters is None and model.step_size > 0
        moving = [name for k in names for name in _moving(k, takes_step=takes_step)]
        return derivative_kernel(model, of, moving)


def _moving(name: str, *, takes_step: bool) -> tuple[str, ...]:
    """Return the parameters of the kernel that move with one of the model."""
    spike = SPIKE if takes_step else ()
    own = {
        "step_size": STEP_MOVES,
        "alpha0": spike,
        "noise_variance": ("noise_variance", *spike),
        "alignment": ("alignment", "orthogonal_alignment"),
    }
    return own.get(name, (name,))
