"""One gradient step at a finite width: the model, its risk in three forms, its spikes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ....digits import checked_digits
from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import is_one_of, positive_number, whole_number
from ....numeric.networks.network import Network
from ....numeric.networks.sizes import sample_count
from ....numeric.saddle_point_solver import BatchSolution
from ....pages import Block, Table
from ....result import Number, Result, quantity
from ....symbolic.expressions.activations import activation
from ....symbolic.gaussian.enclosed_formulas import FormulaBalls
from ....symbolic.gaussian.enclosures import INTERMEDIATE_DIGITS
from ....symbolic.gaussian.zero_test import is_exactly_zero
from ....symbolic.hermite.coefficients import hermite_coefficients
from ....symbolic.lowering.lowered import LoweredSystem, lower
from ....symbolic.printing.compiled import compiled
from ...activation_functions import elementwise
from ...certificates.certificate import Certificate, certificate_wanted
from ...curves import Columns, Names, solve_groups
from ...derived import derived
from ...json_text import SavedModel
from ...kernels.arguments import known_names
from ...kernels.certified import enclosed_parameter
from ...kernels.kernel import Kernel
from ...kernels.precise import exact_number
from ...late import given_by
from ...networks import SimulatedNetworks, simulate
from ...penalties import given_penalty, one_penalty, readout_penalty
from ...sensitivities import Directions, HasSensitivities
from ...teachers import refuse_directions
from ..kernel_equations import kappa, place
from ..kernel_spectrum import curve_of
from ..model import OneGradientStep
from ..risk import (
    RiskDerivation,
    exact_parameters,
    exact_penalty,
    kernel_columns,
    model_parameters,
    proven_parameters,
)
from ..symbols import IDENTIFIERS, alpha, beta, linear
from . import physics
from .expansion import expansion
from .mean_features import MeanFeatures
from .over_steps import RiskOverSteps, risk_over_steps
from .system import width_system

if TYPE_CHECKING:
    from ...spiked_random_features.vocabulary.model import VocabularyFeatures
    from ..model import OneGradientStep

Array = NDArray[np.float64]

TRUSTED = 0.05
r"""Largest :math:`(|\mu_3/\mu_1| + \mathrm{Var}\,\sigma'/\mu_1^2)\,\theta^2/N`, the size of what
the operator form leaves out, at which networks were seen to agree with it."""

MOST_DEGREE = 9
_DEGREES = 5
_DIGITS = 60
FORMS = ("operator", "powers", "letters")

_MEANINGS = {
    "risk": "mean squared error against the noise-free teacher, powers of the step at this width",
    "risk_operator": "the same, all degrees of the step at once",
    "training_error": "mean squared error on the readout's data, powers of the step",
    "risk_leading": "the same error for large widths at the strengths of this one",
    "risk_linear": "the same error with the linear spike alone",
    "risk_initial": "the same error without a step",
    "small": "theta^2/N, the parameter of the theory",
}
_SOURCES = {"risk_linear": "risk_trained"}


@dataclass(frozen=True, repr=False)
class RiskAtWidth(Result):
    r"""Errors of a ridge readout after one step at a finite width.

    Attributes
    ----------
    ridge : float or mpmath number
        Penalty λ of :math:`\sum(y - \varphi\cdot w/\sqrt N)^2 + \lambda|w|^2`.
    risk : float or mpmath number
        Mean squared error on fresh inputs against the noise-free teacher, in the form `form`.
    form : str
        Which form `risk` and `training_error` have.
    training_error : float or mpmath number
        Mean squared error on the readout's data, noise included; NaN for letters.
    leading : float or mpmath number
        Risk for N → ∞ at the strengths of this width, whose corrections are of order θ²/N with
        large factors; NaN if the readout of the step is not normal.
    linear, initial : float or mpmath number
        With the linear spike alone (steps of order one), and without a step.
    small : float or mpmath number
        θ²/N.
    left_out : float
        :math:`(|\mu_3/\mu_1| + \mathrm{Var}\,\sigma'/\mu_1^2)\,\theta^2/N`, the size of what powers
        and operator leave out.
    trusted : bool
        Whether that is at most 0.05, where simulated networks agree; letters of odd students are.
    strengths, left, rungs : mapping from str to number
        Of each degree k ≥ 2 the squared strength :math:`a_k^2` and the share Λ of its energy that
        stays bias; risks inside of the windows in which the degrees up to k are free.
    errors : mapping from str to float
        Estimated absolute errors.
    rests_on : str
        What the numbers rest on.
    digits : int or None
        Digits asked for; None for floats.
    certificate : Certificate or None
        Proven intervals of the form of powers.
    """

    _document = "risk at a width"
    _column = 25

    ridge: Number = field(metadata=quantity("ridge", r"\lambda"))
    risk: Number = field(metadata=quantity("risk", "R"))
    form: str = field(metadata=quantity("form"))
    training_error: Number = field(metadata=quantity("training error", r"E_\mathrm{train}"))
    leading: Number = field(metadata=quantity("leading order", r"R_{N\to\infty}"))
    linear: Number = field(metadata=quantity("linear spike alone", r"R_\mathrm{GD}"))
    initial: Number = field(metadata=quantity("initial", "R_0"))
    small: Number = field(metadata=quantity("theta^2/N", r"\theta^2/N"))
    left_out: float = field(metadata=quantity("size of what is left out", significant=3))
    trusted: bool = field(metadata=quantity("inside of the range of agreement"))
    strengths: Mapping[str, Number] = field(metadata=quantity("strengths"))
    left: Mapping[str, Number] = field(metadata=quantity("left"))
    rungs: Mapping[str, Number] = field(metadata=quantity("rungs"))
    errors: Mapping[str, Number]
    rests_on: str
    digits: int | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True, repr=False)
class DegreeSpikes(Result):
    r"""The spikes of each degree k ≥ 2 in the kernel of the readout's samples.

    Attributes
    ----------
    edge : float
        Right edge of the kernel's bulk.
    critical_strength : float
        :math:`a_k^2` above which a degree has an outlier, :math:`\mu_1^2(\beta + T_c)`. The risk
        falls long before.
    strengths : mapping from str to float
        :math:`a_k^2`.
    outliers : mapping from str to float
        Eigenvalues after lower degrees are projected out; only where there is one.
    alignments : mapping from str to float
        Squared overlaps of their eigenvectors with :math:`\mathrm{He}_k(\kappa)`, 0 without.
    step_sizes : mapping from str to float
        Where :math:`a_k^2 = 1` at this width, the edges of the windows.
    exponents : mapping from str to float
        :math:`(k - 1)/(2k)`: these edges are of order :math:`N^s`.
    """

    _document = "spikes at a width"

    edge: float = field(metadata=quantity("right edge of the bulk"))
    critical_strength: float = field(metadata=quantity("strength of an outlier"))
    strengths: Mapping[str, float] = field(metadata=quantity("strengths"))
    outliers: Mapping[str, float] = field(metadata=quantity("outliers"))
    alignments: Mapping[str, float] = field(metadata=quantity("alignments"))
    step_sizes: Mapping[str, float] = field(metadata=quantity("step sizes"))
    exponents: Mapping[str, float] = field(metadata=quantity("exponents"))
    step: str
    rests_on: str = "linearised features with powers of the step's projection, for d → ∞"

    def page(self) -> Iterable[Block]:
        """Return the degrees as a table."""
        rows = []
        for name in self.strengths:
            degree = name.removeprefix("strength, ")
            outlier = self.outliers.get(f"outlier, {degree}")
            rows.append((
                degree.removeprefix("degree "),
                self.text(self.strengths[name], significant=6),
                "none" if outlier is None else self.text(outlier, significant=6),
                self.text(self.alignments[f"alignment, {degree}"], significant=6),
                self.text(self.step_sizes[f"step size, {degree}"], significant=6),
                self.text(self.exponents[f"exponent, {degree}"], significant=3),
            ))  # fmt: skip
        yield Table(
            rows, ["degree", "strength", "outlier", "alignment", "step of strength 1", "exponent"]
        )
        yield (
            f"bulk to {self.text(self.edge, significant=6)}; outliers from strength "
            f"{self.text(self.critical_strength, significant=6)}"
        )
        yield self.rests_on

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Draw the bulk of the kernel and mark the outlier of each degree."""
        kernel = OneGradientStep.from_json(self.step).conjugate_kernel(trained=False)
        axes = kernel.plot(ax=ax, **style)
        axes.set_title("outliers of single degrees")
        marks = self.outliers.items()
        for number, (name, value) in enumerate(marks):
            axes.axvline(value, color=f"C{number + 1}", linestyle="--", label=name)
        if marks:
            low, high = axes.get_xlim()
            axes.set_xlim(low, max(high, 1.08 * max(self.outliers.values())))
            axes.legend()
        return axes


@dataclass(frozen=True)
class StepAtWidth(SavedModel, HasSensitivities):
    r"""A network of N neurons after one step, between steps of order one and giant ones.

    Made by :meth:`giantstep.OneGradientStep.at_width`. Features keep the student's mean, by which
    the readout learns constants; the teacher is centred.

    Parameters
    ----------
    step : OneGradientStep
        Student, teacher, samples, step size η and noise.
    width : int
        N.
    degrees : sequence of int, optional
        Powers of the step that count; default: all degrees up to 5 of which the student has a
        Hermite coefficient, decided exactly.
    letters, fractions : sequence of float, optional
        Values of the step's readout :math:`\sqrt N a_j` with mean square 1, and their shares; a
        normal one by default.

    Raises
    ------
    ParameterError
        If an argument is outside its range, or a degree has no coefficient.
    AssumptionError
        If the student is neither odd nor has a mean: constants then have no feature, and
        :math:`|x|^2/d` counts.

    Examples
    --------
    >>> import giantstep as gs
    >>> step = gs.OneGradientStep("erf", "sin(3*z/2)", alpha=4, beta=1.5, step_size=12,
    ...                           noise_variance=0.05)
    >>> found = step.at_width(6000).solve(ridge=gs.paper_ridge(0.05))
    >>> print(f"{found.risk:.12f} {found.form} {found.trusted}")
    0.351697149804 operator True
    """

    _model: ClassVar[str] = "one gradient step at a width"
    _error: ClassVar[str] = "risk"

    step: OneGradientStep
    width: int
    degrees: Sequence[int] | None = None
    letters: Sequence[float] | None = None
    fractions: Sequence[float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", whole_number("width", self.width, minimum=2))
        self._check_letters()
        known = self._nonzero
        if self.degrees is None:
            chosen = tuple(k for k in known if k <= _DEGREES)
        else:
            chosen = self._checked_degrees(known)
        object.__setattr__(self, "degrees", chosen)
        if 0 not in known and any(k % 2 == 0 for k in known):
            raise AssumptionError(
                f"student {self.step.student!r} is not odd and has mean 0: then its even degrees "
                "have no constant beside them, and the length of the inputs counts, which is "
                "outside of the theory\n"
                "  add a constant to the student, or take an odd one"
            )

    def _checked_degrees(self, known: Sequence[int]) -> tuple[int, ...]:
        given = self.degrees
        if isinstance(given, str) or not isinstance(given, Sequence) or not len(given):
            raise ParameterError(f"degrees must be whole numbers, such as [1, 3], got {given!r}")
        result = sorted({whole_number("degrees", k, minimum=0, maximum=MOST_DEGREE) for k in given})
        for k in result:
            if k not in known:
                raise ParameterError(
                    f"degrees: the student {self.step.student!r} has no coefficient of degree "
                    f"{k}; it has {', '.join(map(str, known))}"
                )
        if 1 not in result:
            raise ParameterError("degrees must hold 1, the linear spike")
        return tuple(result)

    def _check_letters(self) -> None:
        if self.letters is None:
            if self.fractions is not None:
                raise ParameterError("fractions are those of letters; give letters, too")
            return
        letters = tuple(float(x) for x in self.letters)
        given = (1 / len(letters),) * len(letters) if self.fractions is None else self.fractions
        shares = tuple(float(x) for x in given)
        if len(letters) != len(shares) or abs(sum(shares) - 1) > 1e-12 or min(shares) <= 0:
            raise ParameterError(
                "fractions must be positive, one for each letter, and sum to one, got "
                f"{self.fractions!r}"
            )
        square = sum(p * x**2 for p, x in zip(shares, letters, strict=True))
        if abs(square - 1) > 1e-9:
            raise ParameterError(
                f"letters must have mean square 1, as sqrt(N) a of a readout of length 1, got "
                f"{square:g}"
            )
        object.__setattr__(self, "letters", letters)
        object.__setattr__(self, "fractions", shares)

    # ------------------------------------------------------------------ what is known

    @cached_property
    def _coefficients(self) -> Mapping[str, tuple[str, ...]]:
        """Coefficients of student and teacher as texts of 60 digits, "0" where they vanish."""
        most = _DEGREES if self.degrees is None else max(map(int, self.degrees), default=0)
        most = max(_DEGREES, min(most, MOST_DEGREE))
        return {
            layer: tuple(_coefficient_texts(self.step.cache, name, most))
            for layer, name in (("student", self.step.student), ("teacher", self.step.teacher))
        }

    @property
    def exact_coefficients(self) -> dict[str, sp.Expr]:
        """Hermite coefficients beyond the linear ones, exactly: ``student_3`` and such."""
        most = len(self._coefficients["student"]) - 1
        return {
            f"{layer}_{k}": value
            for layer, name in (("student", self.step.student), ("teacher", self.step.teacher))
            for k, value in enumerate(_exact_coefficients(name, most))
            if k != 1
        }

    @property
    def _nonzero(self) -> tuple[int, ...]:
        """Degrees of which the student has a coefficient."""
        return tuple(k for k, text in enumerate(self._coefficients["student"]) if text != "0")

    @property
    def _normal(self) -> bool:
        return self.letters is None

    def kernel(self) -> Kernel:
        """Return the kernel of the form of powers, with the parameters of the model as defaults."""
        assert self.degrees is not None
        found = _derivation(self.step.cache, tuple(self.degrees), self._normal)
        return replace(found, domains={**found.domains, "width": "positive"}).kernel(
            self.step,
            make=partial(_lowered, tuple(self.degrees), self._normal),
            defaults=self._parameters(),
            exact_defaults=partial(_exact_defaults, self),
            proven_defaults=partial(_proven_defaults, self),
        )

    def _parameters(self) -> dict[str, float]:
        result = {**model_parameters(self.step), "width": float(self.width)}
        for layer, texts in self._coefficients.items():
            result |= {f"{layer}_{k}": float(text) for k, text in enumerate(texts) if k != 1}
        result |= self._moments()
        return {name: result[name] for name in self._wanted if name in result}

    def _moments(self) -> dict[str, float]:
        if self.letters is None or self.fractions is None:
            return {}
        assert self.degrees is not None
        most = 2 * max(self.degrees)
        powers = np.power(np.array(self.letters)[:, None], np.arange(most + 1))
        values = np.array(self.fractions) @ powers
        return {f"readout_moment_{k}": float(value) for k, value in enumerate(values)}

    @property
    def _wanted(self) -> tuple[str, ...]:
        assert self.degrees is not None
        return _derivation(self.step.cache, tuple(self.degrees), self._normal).code.parameters

    @property
    def left_out_per_small(self) -> float:
        r""":math:`|\mu_3/\mu_1| + \mathrm{Var}\,\sigma'/\mu_1^2`; see :class:`RiskAtWidth`."""
        known = self.step.student_moments
        third = float(self._coefficients["student"][3])
        if not known.linear:
            return 0.0
        return abs(third / known.linear) + known.slope_variance / known.linear**2

    # ------------------------------------------------------------------ the risk

    @one_penalty
    def solve(
        self,
        *,
        ridge: object = None,
        form: str | None = None,
        digits: int | None = None,
        certify: bool = False,
    ) -> RiskAtWidth:
        r"""Return the risk of the ridge readout, with all that it is to be compared with.

        Parameters
        ----------
        ridge : float
            λ > 0, or :func:`giantstep.paper_ridge`.
        form : {"operator", "powers", "letters"}
            All degrees of the step at once (default); the powers in `degrees`, which have digits,
            proofs and kernels; or spiked random features whose letters are those of the step's
            readout (:meth:`as_letters`), which hold at all step sizes.
        digits : int, optional
            So many digits of the form of powers.
        certify : bool
            Prove `digits` digits (default: 15) of the form of powers.

        Raises
        ------
        ParameterError
            If the penalty is missing or not positive, or another form than powers is asked for
            digits.
        ConvergenceError
            If parameters are so large or small that their products are no floats.
        """
        certify = certificate_wanted(certify)
        precise = certify or digits is not None
        if form is None:
            form = "powers" if precise else "operator"
        if not is_one_of(form, FORMS):
            raise ParameterError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
        if precise and form != "powers":
            raise ParameterError(
                f"digits and proofs are those of the form of powers, not of {form!r}; use "
                "form='powers', or leave out digits and certify"
            )
        digits = None if digits is None else checked_digits(digits)
        name, value = given_penalty(ridge)
        penalty = exact_penalty(self.step, name, positive_number(name, value))
        if not precise:
            penalty = float(penalty)
        solution = self.kernel().solve(ridge=penalty, digits=digits, certify=certify)
        values: dict[str, Any] = {
            "risk": solution["risk"],
            "training_error": solution["training_error"],
        }
        errors = {"risk": solution.errors["risk"], "training_error": solution.errors[
            "training_error"]}  # fmt: skip
        if form == "operator":
            risk, training, error = self._by_operator(solution)
            values = {"risk": risk, "training_error": training}
            errors = {"risk": error, "training_error": error}
        elif form == "letters":
            other = self.as_letters().solve(alpha=self.step.alpha, ridge=float(penalty))
            values = {"risk": other.test_error, "training_error": other.training_error}
            errors = {"risk": other.quadrature_error, "training_error": other.quadrature_error}
        small = float(solution["small"])
        if form != "letters" and small > 1:
            raise ParameterError(
                f"width = {self.width} is too small for the form {form!r} of this step: θ²/N is "
                f"{small:.3g}, and the forms of single degrees need it to be small\n"
                "  use form='letters', a larger width or a shorter step"
            )
        left_out = self.left_out_per_small * small
        # The published leading order of letters leaves out how rows of uneven students stretch.
        letters_hold = form == "letters" and self.step.student_moments.odd
        trusted = letters_hold or (form != "letters" and left_out <= TRUSTED)
        degrees = [k for k in self.degrees or () if k > 1]
        nan = math.nan
        normal = self._normal
        for name, source in (("linear", "risk_trained"), ("initial", "risk_initial")):
            values[name], errors[name] = solution[source], solution.errors[source]
        values["leading"] = solution["risk_leading"] if normal else nan
        if normal:
            errors["leading"] = solution.errors["risk_leading"]
        listed: dict[str, dict[str, Any]] = {"strengths": {}, "left": {}, "rungs": {}}
        if normal:
            for k in degrees:
                listed["strengths"][f"strength, degree {k}"] = solution[f"strength_{k}"]
                listed["left"][f"left, degree {k}"] = solution[f"left_{k}"]
            listed["rungs"] = {f"rung {k}": solution[f"rung_{k}"] for k in (1, *degrees)}
        return RiskAtWidth(
            ridge=solution.parameters["ridge"] if digits is None else _number(solution, penalty),
            form=form,
            small=solution["small"],
            left_out=left_out,
            trusted=trusted,
            errors=errors,
            rests_on=self._basis(form, left_out, trusted),
            digits=digits,
            certificate=solution.certificate,
            **values,
            **listed,
        )

    risk = solve
    """The field's word for :meth:`solve`."""

    def _basis(self, form: str, left_out: float, trusted: bool) -> str:
        if form == "letters":
            return (
                "spiked random features with a continuous law of letters at this width; replica "
                "theory for d → ∞, published leading order"
            )
        words = "all degrees of the step" if form == "operator" else (
            f"degrees {', '.join(map(str, self.degrees or ()))} of the step"
        )  # fmt: skip
        where = (
            f"networks agree where that is at most {TRUSTED:g}"
            if trusted
            else f"above {TRUSTED:g}, where networks deviate: use form='letters'"
        )
        return (
            f"deterministic equivalent of Gaussian features with {words}, d → ∞ at this width; "
            f"what is left out is of relative size {left_out:.2g}, {where}"
        )

    def _by_operator(self, solution: Any) -> tuple[float, float, float]:
        """Return risk, training error and the estimated error of the operator form."""
        at = {name: float(solution[name]) for name in solution.values}
        result = solution.parameters
        return self._operator.risk(
            _Readout(at["shrinkage"], at["ridge_derivative"]),
            physics.Bulk(
                at["aligned"], at["isotropic"], at["aligned_slope"], at["isotropic_slope"]
            ),
            (at["outside"], at["outside_slope"]),
            effective_ridge=at["effective_ridge"],
            label_square=self.step.teacher_moments.square + result["noise_variance"],
            noise=result["noise_variance"],
            small=at["spike_length"] / math.sqrt(result["width"]),
            width=result["width"],
            alignment=at["alignment"],
        )

    @cached_property
    def _operator(self) -> MeanFeatures:
        letters = None if self.letters is None else tuple(self.letters)
        return MeanFeatures(
            self.step.student, self.step.teacher, letters,
            None if self.fractions is None else tuple(self.fractions),
        )  # fmt: skip

    # ------------------------------------------------------------------ spikes

    def spikes(self) -> DegreeSpikes:
        """Return strengths and outliers of the degrees from the second on, and their windows.

        Raises
        ------
        ParameterError
            If the readout of the step is not normal.
        """
        if not self._normal:
            raise ParameterError(
                "strengths of single degrees are those of a normal readout of the step; leave out "
                "letters"
            )
        law = curve_of(self.step, None)
        known = self.step.student_moments
        critical = known.linear**2 * (self.step.beta + float(law.threshold))
        strengths, outliers, alignments, edges = {}, {}, {}, {}
        place_of, share_of = _outlier_functions()
        for k in self.degrees or ():
            if k < 2:
                continue
            degree = f"degree {k}"
            name = f"strength, {degree}"
            strengths[name] = self._strength(k, self.step.effective_step_size)
            at_one = self._strength(k, 1.0)
            edges[f"step size, {degree}"] = at_one ** (-1 / (2 * k)) / self.step.loss_factor
            alignments[f"alignment, {degree}"] = 0.0
            if strengths[name] > critical:
                place = float(place_of(strengths[name], known.linear, self.step.beta))
                outliers[f"outlier, {degree}"] = float(law.zeta(law.context.mpf(place)))
                alignments[f"alignment, {degree}"] = float(
                    share_of(
                        place, self.step.alpha, self.step.beta, known.residual / known.linear**2
                    )
                )
        return DegreeSpikes(
            edge=float(law.edges[-1][1]),
            critical_strength=critical,
            strengths=strengths,
            outliers=outliers,
            alignments=alignments,
            step_sizes=edges,
            exponents={
                f"exponent, degree {k}": float(physics.window_edge(k))
                for k in self.degrees or ()
                if k > 1
            },
            step=self.step.to_json(),
        )

    def _strength(self, degree: int, step_size: float) -> float:
        function, names = _strength_function(degree, tuple(self.degrees or ()))
        given = {**self._parameters(), "step_size": step_size}
        return float(function(*(given[name] for name in names)))

    as_letters = cast(
        "Callable[..., VocabularyFeatures]", given_by("giantstep.derivations.bridge", "as_letters")
    )

    def network(self) -> Network:
        """Return the network of the model at its width, for :func:`giantstep.simulate`.

        Raises
        ------
        ParameterError
            If N/β, the dimension, is far from a whole number.
        """
        dimension = sample_count("width / beta", self.width / self.step.beta, 1)
        result = self.step.network(dimension)
        # Features keep the student's mean.
        function = elementwise(activation(self.step.student))
        readout: Any = "gaussian" if self.letters is None else self.letters
        return replace(
            result,
            student=function,
            student_derivative=function.slopes,
            readout=readout,
            fractions=self.fractions,
            description=f"{result.description} at a width",
        )

    @one_penalty
    def simulate(self, *, ridge: object = None, **options: Any) -> SimulatedNetworks:
        """Train networks of this width and measure the errors of their ridge readouts.

        Parameters
        ----------
        ridge : float
            λ, or :func:`giantstep.paper_ridge`.
        **options
            ``seeds``, ``n_test``, ``store``, … of :func:`giantstep.simulate`.

        Raises
        ------
        ParameterError
            As :meth:`network` and :func:`giantstep.simulate`.
        """
        penalty = readout_penalty(ridge, self.step.alpha, self.step.beta, exact=False)
        return simulate(self.network(), alpha=self.step.alpha, ridge=float(penalty), **options)

    expansion = expansion

    def over_steps(
        self, *, step_size: object, ridge: object = None, seeds: int = 0, **options: Any
    ) -> RiskOverSteps:
        """Return the risk over the step size, from none through all windows to giant steps.

        Parameters
        ----------
        step_size : sequence of float
            η, increasing.
        ridge : float
            λ, or :func:`giantstep.paper_ridge`.
        seeds : int
            Networks at each step size.
        **options
            Of :meth:`simulate`.

        Returns
        -------
        RiskOverSteps
            Every form of the theory, with networks beside them; ``.plot()``.
        """
        return risk_over_steps(self, step_size, ridge, seeds, options)

    # ------------------------------------------------------------------ over parameters

    _asked: ClassVar[tuple[str, ...]] = ("ridge",)

    @property
    def beta(self) -> float:
        """Aspect ratio N/d."""
        return self.step.beta

    @property
    def noise_variance(self) -> float:
        """Variance of the label noise."""
        return self.step.noise_variance

    def at(self, **parameters: Any) -> Self:
        """Return this model with other parameters: its own, or those of the step.

        Raises
        ------
        ParameterError
            If there is no such parameter, or its value cannot be.
        """
        own = {f.name for f in fields(self)} - {"step"}
        known_names(
            parameters, [*own, *(f.name for f in fields(self.step))], "parameter of this model"
        )
        mine = {name: value for name, value in parameters.items() if name in own}
        others = {name: value for name, value in parameters.items() if name not in own}
        return replace(self, step=self.step.at(**others) if others else self.step, **mine)

    def _axes(self) -> Mapping[str, str]:
        return {**self.step._axes(), "ridge": "positive", "width": "positive"}

    def _names(self) -> Names:
        outputs = tuple(name for name in _MEANINGS if self._normal or name != "risk_leading")
        return Names(
            outputs=outputs,
            errors=(),
            shown=("risk_operator", "risk", "risk_linear", "small"),
            drawn=("risk_operator", "risk", "risk_linear", "risk_initial"),
            meanings={**self.step._names().meanings, **_MEANINGS},
        )

    def _curve_attributes(self, columns: Columns) -> dict[str, Any]:
        result = self.step._curve_attributes(columns)
        if "width" not in columns:
            result["width"] = self.width
        return {
            **result,
            "model": self.to_json(),
            "left_out_per_small": self.left_out_per_small,
            "trusted": TRUSTED,
            "rests_on": (
                "deterministic equivalents at a finite width; what powers and operator leave out "
                f"is of relative size {self.left_out_per_small:.3g} times 'small', networks agree "
                f"where that is at most {TRUSTED:g}"
            ),
        }

    def _solve_rows(self, columns: Columns, rtol: float, raising: bool) -> BatchSolution:
        return solve_groups(
            self, columns, partial(_solved_rows, rtol=rtol), outputs=self._names().outputs,
            raising=raising, together=tuple(columns),
        )  # fmt: skip

    def _directions(self, *, exact: bool) -> Directions:
        result = self.step._directions(exact=exact)
        return Directions({**result.moving, "width": {"width": 1}}, result.excluded)

    def _named(self, kernel: Kernel) -> Mapping[str, str]:
        names = [name for name in self._names().outputs if name != "risk_operator"]
        return {name: _SOURCES.get(name, name) for name in names}

    # ------------------------------------------------------------------ files

    def _arguments(self) -> dict[str, Any]:
        own = {
            f.name: list(value) if isinstance(value := getattr(self, f.name), tuple) else value
            for f in fields(self)
            if f.name != "step"
        }
        return {"step": self.step.parameters(), **own}

    @classmethod
    def _from_arguments(cls, arguments: dict[str, Any]) -> Self:
        return cls(step=OneGradientStep(**arguments.pop("step")), **arguments)

    def __str__(self) -> str:
        degrees = ", ".join(map(str, self.degrees or ()))
        return f"{self.step}, width = {self.width}, degrees = {degrees}"


def at_width(
    model: OneGradientStep,
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
        As for :class:`StepAtWidth`.

    Examples
    --------
    >>> step = OneGradientStep("erf", "erf", alpha=4, beta=1.5, step_size=4)
    >>> step.at_width(600).degrees
    (1, 3, 5)
    """
    refuse_directions(model.teacher, "the crossover between short and giant steps")
    return StepAtWidth(model, width, degrees, letters, fractions)


@dataclass(frozen=True)
class _Readout:
    """Numbers of a readout, as :class:`.physics.ErrorsOfSpikes` asks for them."""

    shrinkage: float
    derivative: float


def _solved_rows(model: StepAtWidth, columns: Columns, *, rtol: float) -> BatchSolution:
    """Return all outputs at many points."""
    own = {name: values for name, values in columns.items() if name != "width"}
    kernel = model.kernel()
    result, _ = kernel_columns(model.step, own)
    n = len(next(iter(columns.values())))
    known = {name: np.full(n, value) for name, value in kernel.defaults.items()}
    table = {**known, **{k: v for k, v in result.items() if k in kernel.parameters}}
    table["width"] = np.broadcast_to(np.asarray(columns.get("width", known["width"]), float), (n,))
    rows = np.stack([table[name] for name in kernel.parameters], axis=1)
    batch = kernel.job(None, None, rtol, n)(rows)
    values = {
        name: batch.values[_SOURCES.get(name, name)]
        for name in model._names().outputs
        if name != "risk_operator"
    }
    values["risk_operator"] = np.array([
        model._by_operator(_Row(rows[i], kernel.parameters, batch.values, i))[0]
        if batch.converged[i] else np.nan
        for i in range(n)
    ])  # fmt: skip
    return replace(batch, values=values, errors={})


class _Row:
    """One row of a batch, as a solution of a kernel shows itself."""

    def __init__(
        self, row: Array, names: Sequence[str], values: Mapping[str, Array], index: int
    ) -> None:
        self.parameters = dict(zip(names, row.tolist(), strict=True))
        self.values = {name: float(column[index]) for name, column in values.items()}

    def __getitem__(self, name: str) -> float:
        return self.values[name]


# ---------------------------------------------------------------------- what is derived once


@derived("nonlinear_spikes/coefficients", list)
def _coefficient_texts(name: str, most: int) -> list[str]:
    return [
        "0" if value == 0 else str(value.evalf(_DIGITS))
        for value in _exact_coefficients(name, most)
    ]


@lru_cache(maxsize=64)
def _exact_coefficients(name: str, most: int) -> tuple[sp.Expr, ...]:
    """Hermite coefficients, zeros decided exactly."""
    result = hermite_coefficients(name, most)
    return tuple(
        sp.S.Zero if is_exactly_zero(result[k], f"coefficient {k} of {name}") else result[k]
        for k in range(most + 1)
    )


@derived("nonlinear_spikes/kernel", RiskDerivation)
def _derivation(degrees: tuple[int, ...], normal: bool) -> RiskDerivation:
    return RiskDerivation.of(_lowered(degrees, normal))


@lru_cache(maxsize=8)
def _lowered(degrees: tuple[int, ...], normal: bool) -> LoweredSystem:
    return lower(width_system(degrees, normal=normal))


def _exact_defaults(model: StepAtWidth, ctx: Any) -> dict[str, Any]:
    result = {name: ctx.mpf(repr(value)) for name, value in model._parameters().items()}
    result |= {k: v for k, v in exact_parameters(model.step, ctx).items() if k in result}
    for name, value in model.exact_coefficients.items():
        if name in result:
            result[name] = ctx.mpf(str(value.evalf(ctx.dps + 5)))
    return result


def _proven_defaults(model: StepAtWidth, digits: int) -> dict[str, Any]:
    wanted = model._wanted
    result: dict[str, Any] = {
        name: enclosed_parameter(exact_number(value), digits)
        for name, value in model._parameters().items()
    }
    result |= {k: v for k, v in proven_parameters(model.step, digits).items() if k in wanted}
    formulas = FormulaBalls({})
    for name, value in model.exact_coefficients.items():
        if name in result:
            result[name] = formulas.enclosure(value, digits, most=INTERMEDIATE_DIGITS)
    return result


@lru_cache(maxsize=64)
def _strength_function(degree: int, degrees: tuple[int, ...]) -> tuple[Any, tuple[str, ...]]:
    expr = physics.spike_strength(degree, degrees)
    names = {**IDENTIFIERS, physics.width: "width"}
    for k in degrees:
        names.setdefault(physics.student_coefficient(k), f"student_{k}")
    used = [x for x in names if x in expr.free_symbols]
    return compiled(expr, used), tuple(names[x] for x in used)


@lru_cache(maxsize=1)
def _outlier_functions() -> tuple[Any, Any]:
    result = physics.degree_outlier()
    return (
        compiled(result.place, [physics.strength, linear, beta]),
        compiled(result.alignment, [place, alpha, beta, kappa]),
    )


def _number(solution: Any, value: Any) -> Any:
    ctx = solution["risk"].context
    return ctx.mpf(str(sp.N(value, ctx.dps + 5)))
