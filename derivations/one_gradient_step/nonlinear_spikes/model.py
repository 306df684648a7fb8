"""One gradient step at a finite width: the model, its risk in three forms, its spikes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import sympy as sp
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ....digits import checked_digits
from ....errors import AssumptionError, ParameterError
from ....numeric.arguments import is_one_of, positive_number, whole_number
from ....numeric.networks.network import Network
from ....numeric.networks.sizes import sample_count
from ....numeric.saddle_point_solver import BatchSolution
from ....numeric.smoothed import Smoothed, resolved_panels
from ....pages import Block, Table
from ....result import Number, Result, quantity
from ....runtime.quadrature import REACH, gauss_hermite_rule, legendre_panels, normal_density
from ....symbolic.expressions.activations import activation
from ....symbolic.gaussian.enclosed_formulas import FormulaBalls
from ....symbolic.gaussian.enclosures import INTERMEDIATE_DIGITS
from ....symbolic.gaussian.zero_test import is_exactly_zero
from ....symbolic.hermite.coefficients import hermite_coefficients
from ....symbolic.lowering.lowered import LoweredSystem, lower
from ....symbolic.printing.compiled import compiled
from ....symbolic.systems.equations import Equation
from ....symbolic.systems.saddle_point import SaddlePointSystem
from ...activation_functions import elementwise
from ...certificates.certificate import Certificate, certificate_wanted
from ...curves import Columns, Curve, Names, solve_groups
from ...derived import derived
from ...expansions.expansion import Expansion, checked_name
from ...figures import BLUE, GREEN, GREY, VERMILLION, drawing
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
from ..expansion import LinearEquations, Question, checked_question, expanded, explicit_resolvent
from ..kernel_equations import kappa, place
from ..kernel_spectrum import curve_of
from ..model import NO_LANDSCAPE, OneGradientStep
from ..risk import (
    STEP,
    Readout,
    RiskDerivation,
    covariance,
    exact_parameters,
    exact_penalty,
    in_symbols,
    kernel_columns,
    model_parameters,
    nu,
    proven_parameters,
    resolvent,
    ridge_readout,
    risk_system,
)
from ..symbols import IDENTIFIERS, alpha, beta, label_square, linear, noise
from . import physics

if TYPE_CHECKING:
    import xarray as xr

    from ...spiked_random_features.vocabulary.model import VocabularyFeatures


# ----------------------------------------------------------------------
# Expansions of the risk at a finite width: the spikes of all degrees, order by order.
# The effective ridge and the companion of the resolvent are those of the strict limit. What the
# features explain by their spikes follows from linear equations with series as coefficients.

# Digits of the coefficients of student and teacher beyond those of the series.
_GUARD = 25
_SYMBOLS = {
    "risk": "R",
    "training_error": r"E_\mathrm{train}",
    "leading": r"R_{N\to\infty}",
    "linear": r"R_\mathrm{GD}",
    "initial": "R_0",
    "small": r"\theta^2/N",
    "effective_ridge": r"\nu",
}
_EXPANDED = {"leading": "risk_leading", "linear": "risk_trained", "initial": "risk_initial"}


@one_penalty
def expansion(
    model: StepAtWidth, name: str, order: int = 2, *, ridge: object = None, digits: int = 30
) -> Expansion:
    r"""Return the risk at this width as a series: many samples, no penalty, or short steps.

    Parameters
    ----------
    name : {"large_alpha", "small_ridge", "small_step"}
        In 1/α (the samples of the step follow, unless the model has its own `alpha0`), in λ,
        or in the step size.
    order, ridge, digits
        As for :meth:`giantstep.OneGradientStep.expansion`; the fixed penalty is positive.

    Returns
    -------
    Expansion
        Of the form of powers, with the linear theory and that without a step beside it. Its radius
        of convergence is not known.

    Raises
    ------
    ParameterError
        If there is no such expansion, an argument is outside its range, or not exactly the
        penalties are given that are held fixed.
    ConvergenceError
        If parameters differ by so many orders of magnitude that digits cancel without end.

    Examples
    --------
    >>> import giantstep as gs
    >>> step = gs.OneGradientStep("erf", "erf", alpha=4, beta=1.5, noise_variance=0.05)
    >>> print(step.at_width(600).expansion("small_step", 4, ridge=0.1).latex("risk"))
    R = 0.145693 - 0.00865625\,\eta^{2} + 0.00118751\,\eta^{4} + O(\eta^{6})
    """
    step, wanted = model.step, checked_digits(digits)
    asked = checked_question(step, checked_name(name), ridge)
    if asked[1] is not None and not given_penalty(asked[1])[1]:
        raise ParameterError(f"the fixed penalty must be positive, got {ridge!r}")
    return expanded(_QuestionAtWidth(step, *asked, wanted, model), order, formulas=False)


@dataclass(frozen=True)
class _QuestionAtWidth(Question):
    """Which expansion of which model at a width."""

    at: StepAtWidth

    @cached_property
    def known(self) -> dict[sp.Symbol, sp.Expr]:
        digits = self.digits + _GUARD

        def number(value: sp.Expr) -> sp.Expr:
            return sp.Rational(str(value.evalf(digits)))

        result = {**super().known, physics.width: sp.Integer(self.at.width)}
        kinds = {"student": physics.student_coefficient, "teacher": physics.teacher_coefficient}
        for name, value in self.at.exact_coefficients.items():
            layer, _, degree = name.partition("_")
            result[kinds[layer](int(degree))] = number(value)
        moments = self.at._moments()
        result |= {
            readout_moment(k): sp.Rational(repr(moments[f"readout_moment_{k}"]))
            for k in range(len(moments))
        }
        return result

    @property
    def stride(self) -> int:
        return 1

    @property
    def has_radius(self) -> bool:
        return False

    @property
    def outputs(self) -> Mapping[str, sp.Expr]:
        system, _ = _explicit(tuple(self.at.degrees or ()), self.at.letters is None)
        return {name: system[_EXPANDED.get(name, name)] for name in self.symbols}

    @property
    def linear_equations(self) -> LinearEquations:
        return _explicit(tuple(self.at.degrees or ()), self.at.letters is None)[1]

    @property
    def symbols(self) -> Mapping[str, str]:
        normal = self.at.letters is None
        return {k: v for k, v in _SYMBOLS.items() if normal or k != "leading"}

    @property
    def fixed(self) -> dict[str, Any]:
        return {**super().fixed, "width": self.at.width}

    @property
    def rests_on(self) -> str:
        return (
            f"deterministic equivalent of Gaussian features with degrees "
            f"{', '.join(map(str, self.at.degrees or ()))} of the step, d → ∞ at this width; what "
            f"is left out is of relative size {self.at.left_out_per_small:.2g} times θ²/N"
        )

    def exact(self, value: Any, digits: int | None) -> Mapping[str, Any]:
        moved, ridge = self.moved(self.at, float(value))
        penalty = exact_penalty(moved.step, *given_penalty(ridge))
        asked = float(penalty) if digits is None else penalty
        found = moved.kernel().solve(ridge=asked, digits=digits)
        names = {name: _EXPANDED.get(name, name) for name in self.symbols}
        return {name: found[source] for name, source in names.items()}


@cache
def _explicit(degrees: tuple[int, ...], normal: bool) -> tuple[dict[str, sp.Expr], LinearEquations]:
    """Return the outputs in ν and h, and the equations of the spikes."""
    system = width_system(degrees, normal=normal)
    rule = {resolvent: explicit_resolvent()}
    outputs = {name: value.xreplace(rule) for name, value in system.outputs.items()}
    own = [e for e in system.equations if str(e.unknown).startswith("v_")]
    unknowns = [e.unknown for e in own]
    matrix, column = sp.linear_eq_to_matrix([e.residual for e in own], unknowns)
    equations = unknowns, matrix.xreplace(rule), column.xreplace(rule)
    return {**outputs, "effective_ridge": nu}, equations


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
        steps = np.atleast_1d(np.asarray(step_size, dtype=float))
        if steps.ndim != 1 or len(steps) < 2 or not (np.diff(steps) > 0).all() or steps[0] < 0:
            raise ParameterError(f"step_size must be increasing numbers >= 0, got {step_size!r}")
        seeds = whole_number("seeds", seeds, minimum=0)
        if options and not seeds:
            raise ParameterError(f"{next(iter(options))} is for networks; give seeds, too")
        data = self.curve(ridge=ridge, step_size=steps, progress=False).to_dataset()
        letters, runs = [], []
        # A step size takes seconds: shown where that adds up.
        for step in tqdm(steps.tolist(), desc="step sizes", leave=False, delay=1, disable=None):
            at = self.at(step_size=step)
            letters.append(
                at.solve(ridge=ridge, form="letters").risk if step else data["risk_initial"][0]
            )
            if seeds:
                runs.append(at.simulate(ridge=ridge, seeds=seeds, progress=False, **options))
        result: dict[str, Any] = {"risk_letters": ("step_size", np.array(letters, dtype=float))}
        if seeds:
            result |= {
                "risk_mean": ("step_size", np.array([float(r.mean().squeeze()) for r in runs])),
                "risk_standard_error": (
                    "step_size",
                    np.array([float(r.standard_error().squeeze()) for r in runs]),
                ),
            }
        data = data.assign(result)
        data.attrs["shown"] = "risk_operator risk_letters risk_linear small"
        if self.letters is None:
            data.attrs.update(self.spikes().step_sizes)
        return RiskOverSteps(data)

    # ------------------------------------------------------------------ over parameters

    _asked: ClassVar[tuple[str, ...]] = ("ridge",)
    _no_landscape: ClassVar[str] = NO_LANDSCAPE

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
        As for :class:`.StepAtWidth`.

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


# ----------------------------------------------------------------------
# Risk over the step size: no step, every window of degrees, giant steps, and networks across.

_EDGE = "step size, "
"""Before the degree, in the attributes of datasets: where it has strength one."""

_LINES = {
    "risk_operator": ("all degrees", BLUE, "-"),
    "risk_letters": ("spiked random features", GREEN, "-"),
    "risk_linear": ("linear spike", GREY, "--"),
    "risk_leading": ("large widths", GREY, ":"),
}


@dataclass(frozen=True, eq=False, repr=False)
class RiskOverSteps(Curve):
    """The risk of every form of the theory over the step size.

    Of :attr:`~Curve.dataset`: ``risk_operator``, ``risk`` (powers), ``risk_letters``,
    ``risk_linear``, ``risk_leading``, ``risk_initial``, ``small`` (θ²/N) and, of networks,
    ``risk_mean`` and ``risk_standard_error``.
    """

    _document = "risk over step sizes"

    @property
    def edges(self) -> dict[str, float]:
        """Step sizes at which a degree has strength one."""
        given = self.dataset.attrs.items()
        return {str(name): value for name, value in given if str(name).startswith(_EDGE)}

    def plot(
        self,
        of: str | Sequence[str] | None = None,
        *,
        simulation: xr.Dataset | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw all forms, solid where they hold, with the edges of the windows and networks.

        With `of` or `simulation` as :meth:`Curve.plot`.
        """
        if of is not None or simulation is not None:
            return super().plot(of, simulation=simulation, ax=ax, **style)
        data = self.dataset
        steps = data["step_size"].to_numpy()
        left_out = data["small"].to_numpy() * float(data.attrs["left_out_per_small"])
        trusted = left_out <= float(data.attrs["trusted"])
        with drawing(ax, style) as (axes, pen):
            for name, (label, colour, dashes) in _LINES.items():
                if name not in data or not np.isfinite(data[name]).any():
                    continue
                values = data[name].to_numpy()
                if name == "risk_operator":
                    # Continued thinly where networks are known to deviate.
                    thin = {"color": pen.colour or colour, "linewidth": 0.8, "alpha": 0.5}
                    axes.plot(steps, values, **thin)
                    values = np.where(trusted, values, np.nan)
                axes.plot(steps, values, **pen(label, several=True, color=colour, linestyle=dashes))
            if "risk_mean" in data:
                axes.errorbar(
                    steps,
                    data["risk_mean"],
                    data["risk_standard_error"],
                    fmt="o",
                    markersize=3.5,
                    color=VERMILLION,
                    label="networks",
                )
            for name, edge in self.edges.items():
                if steps[0] < edge < steps[-1]:
                    axes.axvline(edge, color=GREY, linewidth=0.6)
                    axes.annotate(
                        name.removeprefix(_EDGE),
                        (edge, 1.0),
                        xycoords=("data", "axes fraction"),
                        xytext=(3, -10),
                        textcoords="offset points",
                        fontsize="small",
                        color=GREY,
                    )
            axes.set_xlabel(r"step size $\eta$")
            axes.set_ylabel("risk")
            axes.legend()
        return axes


# ----------------------------------------------------------------------
# Mean features after a step, as an operator between functions of κ and of the step's readout.
# Averaged over its initial row, neuron j responds to the step by
# :math:`M(\kappa, g_j) = E\,\sigma(\theta g_j\kappa/\sqrt N + z)`: all degrees at once, where the
# powers of :mod:`.physics` are its Taylor series. In orthonormal Hermite polynomials of κ the right
# vectors are :math:`r_i = E_\kappa[M\,\mathrm{he}_i]`, their Gram matrix
# :math:`\Gamma = N\,E_g[r\,r^\top]`, and the rest is as for powers.


ORDERS = (12, 16, 20)
"""Hermite polynomials that are tried; the last change of the risk is its estimated error."""

_NODES = 80


@dataclass(frozen=True)
class MeanFeatures:
    """The operator of a student, and the labels in the same basis.

    Attributes
    ----------
    letters, fractions : tuple of float, or None
        Law of the readout g; None for a normal one.
    """

    student: str
    teacher: str
    letters: tuple[float, ...] | None = None
    fractions: tuple[float, ...] | None = None

    @cached_property
    def _smoothed(self) -> Smoothed:
        result = activation(self.student)
        return Smoothed(elementwise(result), tuple(sorted(float(k) for k in result.kinks)))

    @cached_property
    def _readout(self) -> tuple[Array, Array]:
        if self.letters is not None:
            return np.array(self.letters), np.array(self.fractions)
        return gauss_hermite_rule(_NODES)

    @cached_property
    def _teacher(self) -> Array:
        """Coefficients of the teacher in orthonormal Hermite polynomials, the mean left out."""
        result = activation(self.teacher)
        function = elementwise(result)
        inner = [k for k in sorted(float(k) for k in result.kinks) if abs(k) < REACH]
        edges = np.unique([*np.arange(-math.ceil(REACH), math.ceil(REACH) + 1.0), *inner])
        scale = float(np.abs(function(np.linspace(-3.0, 3.0, 61))).max())
        nodes, weights = legendre_panels(resolved_panels(function, edges, scale))
        weighted = (weights * normal_density(nodes) * function(nodes)).ravel()
        coefficients = weighted @ _orthonormal(nodes.ravel(), ORDERS[-1])
        coefficients[0] = 0.0
        return np.asarray(coefficients)

    def gram(self, small: float, width: float) -> Array:
        r"""Return Γ, (n + 1, n + 1) for the largest order n.

        Parameters
        ----------
        small : float
            :math:`\theta/\sqrt N`.
        width : float
            N.
        """
        kappa, weights = gauss_hermite_rule(_NODES)
        basis = _orthonormal(kappa, ORDERS[-1]) * weights[:, None]
        readout, shares = self._readout
        right = self._smoothed(small * readout[:, None] * kappa) @ basis
        return np.asarray(width * (right * shares[:, None]).T @ right)

    def labels(self, alignment: float) -> Array:
        """Return the correlations of the labels with κ and with the basis, (n + 2, 1)."""
        shown = self._teacher * alignment ** np.arange(ORDERS[-1] + 1)
        return np.asarray(np.concatenate([shown[1:2], shown])[:, None])

    def risk(
        self, readout: Any, bulk: physics.Bulk, outside: tuple[float, float], *,
        effective_ridge: float, label_square: float, noise: float, small: float, width: float,
        alignment: float,
    ) -> tuple[float, float, float]:  # fmt: skip
        """Return risk and training error, and the estimated error of the risk.

        Parameters
        ----------
        readout : object
            With the shrinkage q and the derivative D of the effective ridge.
        bulk : Bulk
            In numbers.
        outside : (float, float)
            F and F' of the labels' linear part across the step's direction.
        """
        gram, labels = self.gram(small, width), self.labels(alignment)
        result = []
        for order in ORDERS:
            size = order + 2
            overlaps = np.eye(size)
            overlaps[0, 0] = 0.0
            overlaps[0, 2] = overlaps[2, 0] = 1.0  # κ itself is the polynomial of degree one
            spikes = bulk.spikes(gram[: size - 1, : size - 1], overlaps, labels[:size], _blocks)
            v = np.linalg.solve(np.eye(size) + overlaps @ spikes.resolvent, spikes.labels)
            result.append(
                physics.ErrorsOfSpikes.of(
                    readout, effective_ridge, label_square, noise,
                    outside[0] + spikes.explained(v), outside[1] + spikes.derivative(v),
                )
            )  # fmt: skip
        last, before = result[-1], result[-2]
        rounding = 64 * np.finfo(float).eps * label_square / readout.derivative
        error = abs(last.risk - before.risk) + rounding
        return float(last.risk), float(last.training_error), float(error)


def _orthonormal(points: Array, order: int) -> Array:
    """Hermite polynomials over √k! at points, a column each."""
    scales = [math.sqrt(math.factorial(k)) for k in range(order + 1)]
    return np.asarray(hermevander(points, order) / scales)


def _blocks(number: float, matrix: Array) -> Array:
    result = np.zeros((len(matrix) + 1, len(matrix) + 1))
    result[0, 0], result[1:, 1:] = number, matrix
    return result


# ----------------------------------------------------------------------
# The risk at a finite width as a system of equations: kernels, digits, certificates follow.


def readout_moment(order: int) -> sp.Symbol:
    r"""Return a moment of the step's readout :math:`\sqrt N a` that is not a normal one's."""
    return sp.Symbol(f"m_{order}", real=True)


def width_system(degrees: Sequence[int], *, normal: bool = True) -> SaddlePointSystem:
    r"""Return the risk of a ridge readout after a step at width N, for spikes of given degrees.

    To the equation of the effective ridge come the linear equations of Woodbury's identity, one
    for each spike and one for the direction of the step in the initial features.

    Parameters
    ----------
    degrees : sequence of int
        Those of which the student has a Hermite coefficient, increasing; 1 among them.
    normal : bool
        Whether the readout of the step is normal; else its moments are parameters, and there are
        no strengths and limits of single degrees.

    Notes
    -----
    Outputs are those of :func:`..one_gradient_step.risk.risk_system`, whose
    ``…_trained`` is the linear theory, and

    ``risk``, ``training_error``
        At the width.
    ``risk_leading``
        For N → ∞ at the strengths of the degrees.
    ``rung_l``
        Risk inside of the window in which the degrees up to l are free, for N → ∞.
    ``strength_k``, ``left_k``, ``energy_k``
        Of each degree k ≥ 2: :math:`a_k^2`, Λ and the energy of the labels that it shows.
    ``small``, ``spike_length``, ``alignment``
        :math:`\theta^2/N`, θ and γ.
    ``shrinkage``, ``aligned``, ``isotropic``, ``outside``, ``…_slope``
        q, resolvents of the bulk and the labels' part across the step with their derivatives in ν:
        what the operator form needs.
    """
    base, at, readout = risk_system(), covariance(nu), ridge_readout()
    bulk = physics.Bulk.of(at)
    spikes = bulk.spikes(
        physics.power_gram(degrees) if normal else physics.power_gram(degrees, readout_moment),
        physics.power_overlaps(degrees),
        physics.power_labels(degrees),
        sp.diag,
    )
    v = sp.Matrix([sp.Symbol(f"v_{name}", real=True) for name in ("w", *degrees)])
    outside, outside_slope = physics.outside_direction(bulk)
    errors = physics.ErrorsOfSpikes.of(
        readout,
        nu,
        label_square(),
        noise,
        outside + spikes.explained(v),
        outside_slope + spikes.derivative(v),
    )
    result = {"risk": errors.risk, "training_error": errors.training_error}
    if normal:
        result |= _one_by_one(degrees, readout, bulk)
    result |= {
        "small": physics.spike_length() ** 2 / physics.width,
        "spike_length": physics.spike_length(),
        "alignment": physics.alignment(),
        "shrinkage": readout.shrinkage,
        "aligned": bulk.aligned,
        "isotropic": bulk.isotropic,
        "aligned_slope": bulk.aligned_slope,
        "isotropic_slope": bulk.isotropic_slope,
        "outside": outside,
        "outside_slope": outside_slope,
    }
    conditions = {f"v{i}": value for i, value in enumerate(spikes.conditions(v))}
    coefficients = {
        symbol: name
        for kind, name_of in (
            (physics.student_coefficient, "student"), (physics.teacher_coefficient, "teacher"),
        )
        for k in range(max(degrees) + 1)
        if (symbol := kind(k)) not in IDENTIFIERS and (name := f"{name_of}_{k}")
    }  # fmt: skip
    coefficients |= {readout_moment(k): f"readout_moment_{k}" for k in range(2 * max(degrees) + 1)}
    used = sp.Tuple(*result.values(), *conditions.values()).free_symbols
    parameters = {physics.width: "width", **{s: n for s, n in coefficients.items() if s in used}}
    written = in_symbols({**result, **conditions}, at)
    return replace(
        base,
        name=f"{'' if normal else 'letters_'}nonlinear_spikes_{'_'.join(map(str, degrees))}",
        title="Ridge readout after one gradient step at a finite width",
        source=physics.SOURCE,
        equations=(
            *base.equations,
            *(Equation(x, w, x - w) for i, x in enumerate(v) for w in [written[f"v{i}"]]),
        ),
        parameters=(*base.parameters, *parameters),
        outputs={**{name: written[name] for name in result}, **base.outputs},
        identifiers={
            **base.identifiers,
            **parameters,
            **{x: f"solved_{name}" for x, name in zip(v, ("w", *degrees), strict=True)},
        },
    )


def _one_by_one(degrees: Sequence[int], readout: Readout, bulk: physics.Bulk) -> dict[str, sp.Expr]:
    """Return strengths, shares and the limits of large widths."""
    higher = [k for k in degrees if k > 1]
    share = physics.remaining_fraction(bulk, nu)
    energies = {k: physics.shown_energy(k, degrees) for k in degrees if k > 0}
    left = {k: share.subs(physics.strength, physics.spike_strength(k, degrees)) for k in higher}
    leading = physics.leading_bias(readout, STEP, [(energies[k], left[k]) for k in higher])
    result = {"risk_leading": physics.risk_of(leading, readout)}
    shown: list[sp.Expr] = []
    for k, energy in energies.items():
        shown.append(energy)
        result[f"rung_{k}"] = physics.risk_of(physics.rung_bias(readout, shown), readout)
    for k in higher:
        result |= {
            f"strength_{k}": physics.spike_strength(k, degrees),
            f"left_{k}": left[k],
            f"energy_{k}": energies[k],
        }
    return result
