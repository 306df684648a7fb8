"""From a pair of activations to all that numbers need, kept as text once it was derived.

Free energy → equations → blocks → program → source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import sympy as sp

from ...errors import AssumptionError, ConvergenceError
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode
from ...pages import InLatex
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.lowering.lowered import LoweredSystem, lower
from ...symbolic.lowering.program import Program
from ...symbolic.lowering.solver import solver_twins
from ...symbolic.lowering.tables import evaluated_forms, table_source
from ...symbolic.printing.compiled import Formula, function_source
from ...symbolic.systems.equations import BlockStructure, determined
from ...symbolic.systems.saddle_point import (
    Equation,
    SaddlePointSystem,
    complement,
)
from ..derived import derived
from ..first_gradient.spike_mapping import (
    SpikeMapping,
    alpha0,
    best_linear_error,
    bulk_spread,
    is_odd,
    letter,
    mean_letter,
    noise,
    spike_mapping,
    step_size,
)
from ..kernels.code import deriving, parameter_domains
from ..teachers import Teacher, leap_index, read_teacher
from . import physics as symbols
from .bulk_law import IID
from .physics import IDENTIFIERS, SpikedFreeEnergy, spiked_free_energy
from .presentation import symbolic_latex

if TYPE_CHECKING:
    from .model import SpikedRandomFeatures
    from .spike import SpikeParameters

# Arguments of the map of the step.
STEP_ARGUMENTS = {step_size: "step_size", alpha0: "alpha0", noise: "noise_variance"}
_LETTERS = {letter: "letter", mean_letter: "mean_letter"}
# Parameters of the tables; the rest enters the solver only.
TABLE_PARAMETERS = (symbols.noise, symbols.r, symbols.c, symbols.gamma, symbols.rho)


@dataclass(frozen=True)
class Derivation:
    """What was derived for one pair of activations.

    Attributes
    ----------
    student, teacher : str
        Names of the activations.
    odd_student : bool
        The assumption of Result 3.1 as published holds.
    mapping_source : str
        Source of ``mapping(step_size, alpha0, noise_variance)``; empty if the student jumps and no
        step can be taken.
    mapping_error : str
        Why there is no mapping.
    leap_index : int
        Of the teacher.
    best_linear_error : float
        Error of the best linear predictor, :math:`\\|P_{>1} f_*\\|^2`.
    code : KernelCode
        The generated modules; measured are the outputs with an error estimate of their own.
    domains : tuple of (str, str)
        Which numbers each parameter and each Newton unknown may be.
    structure : str
        The block structure in words.
    functions : tuple of (str, str)
        Name and value of each tabulated function.
    """

    student: str
    teacher: str
    odd_student: bool
    mapping_source: str
    mapping_error: str
    leap_index: int
    best_linear_error: float
    code: KernelCode
    domains: tuple[tuple[str, str], ...]
    structure: str
    functions: tuple[tuple[str, str], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Inputs of one solve."""
        return self.code.parameters


class Case(TypedDict, total=False):
    """Which case of the equations holds; what is not said is false, and rows are independent."""

    unspiked: bool
    aligned: bool
    correlated_norms: bool
    stretched: bool
    finite_width: bool
    bulk: str


_PLAIN: Case = {
    "unspiked": False, "aligned": False, "correlated_norms": False, "stretched": False,
    "finite_width": False, "bulk": IID,
}  # fmt: skip


@dataclass(frozen=True)
class SymbolicModel(InLatex):
    """The chain as SymPy objects.

    Attributes
    ----------
    system : SaddlePointSystem
        The saddle-point equations with their parameters and outputs.
    """

    student: Activation
    teacher: Teacher
    free_energy: SpikedFreeEnergy
    system: SaddlePointSystem

    @cached_property
    def lowered(self) -> LoweredSystem:
        """The saddle-point equations on their way to code."""
        return lower(self.system)

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The saddle-point equations."""
        return self.system.equations

    @property
    def structure(self) -> BlockStructure:
        """The blocks in which the equations are solved."""
        return self.system.structure

    @property
    def program(self) -> Program:
        """The solver in the intermediate form."""
        return self.lowered.program

    def __repr__(self) -> str:
        blocks = self.structure.blocks
        return (
            f"SymbolicModel(student={self.student.name!r}, teacher={self.teacher.name!r}, "
            f"{len(self.equations)} equations in {len(blocks)} blocks)"
        )

    def latex(self) -> str:
        """Return coefficients, saddle-point equations and errors in LaTeX, without delimiters."""
        return symbolic_latex(self)


def symbolic_model(
    student: str | sp.Expr | Activation, teacher: str | Teacher, **case: Unpack[Case]
) -> SymbolicModel:
    """Derive the saddle-point equations of the model and lower them.

    The case is told by the keywords of :func:`.physics.spiked_free_energy`.
    """
    student_, teacher_ = activation(student, argument="student"), read_teacher(teacher)
    energy = spiked_free_energy(student_, teacher_, **case)
    return SymbolicModel(student_, teacher_, energy, saddle_point_system(energy, _title(case)))


def saddle_point_system(energy: SpikedFreeEnergy, title: str) -> SaddlePointSystem:
    """Return the saddle-point equations of a free energy, ready to be lowered."""
    return SaddlePointSystem.from_free_energy(
        determined(energy.free_energy),
        name="spiked_random_features",
        title=title,
        node=symbols.kappa,
        identifiers=IDENTIFIERS,
        # Newton in log V gets to the solution from any positive start. (c/λ, 1/λ) is the one
        # without data; a rough guess of what data add to λ saves half an iteration on average.
        start={
            symbols.V1: symbols.c / (symbols.ridge + symbols.alpha / 5),
            symbols.V2: 1 / (symbols.ridge + symbols.alpha / 20),
        },
        outputs={
            "test_error": energy.test_error,
            "training_error": energy.training_error,
            **energy.eliminated,
        },
        safeguarded=False,
    )


def with_constraints(system: SaddlePointSystem, spike: SpikeParameters) -> SaddlePointSystem:
    r"""Return the equations with what their parameters have to do with each other.

    :math:`\rho = \sqrt{1 - \gamma^2}`; equations of a special case hold for its values only. Models
    know both γ and ρ from the step, and the second one better where :math:`\gamma \to 1`; users of
    a kernel give γ.
    """
    derived: dict[sp.Symbol, sp.Expr] = {}
    parameters = system.parameters
    if spike.orthogonal_alignment == 0:
        parameters = tuple(p for p in parameters if p != symbols.rho)
        derived[symbols.gamma] = sp.Integer(1 if spike.alignment > 0 else -1)
    elif symbols.rho in parameters:
        derived[symbols.rho] = complement(symbols.gamma)
    if spike.spike_strength == 0:
        derived[symbols.r] = sp.S.Zero
    derived = {p: value for p, value in derived.items() if p in parameters}
    return replace(system, parameters=parameters, derived=derived)


def derivation(student: str, teacher: str, *, cache: FileCache, **case: Unpack[Case]) -> Derivation:
    """Return the derivation for a pair of activations, from the cache where it is there.

    Parameters
    ----------
    student, teacher : str
        Catalogue names or expressions in z.
    cache : FileCache
        Where derivations are kept between processes.
    **case
        As for :func:`.physics.spiked_free_energy`.
    """
    return _derivation(cache, student, teacher, **{**_PLAIN, **case})


@derived("spiked_random_features", Derivation)
def _derivation(student: str, teacher: str, **case: Any) -> Derivation:
    with deriving(f"{student} features", 1):
        model = symbolic_model(student, teacher, **case)
        program, definitions = model.program, model.free_energy.free_energy.definitions
        mapping_source = mapping_error = ""
        try:
            mapping_source = mapping_functions(model.student, model.teacher)
        except AssumptionError as error:
            mapping_error = str(error)
        tables = table_source(
            definitions, node=symbols.kappa, identifiers=IDENTIFIERS, parameters=TABLE_PARAMETERS
        )
        compiled, plain = solver_twins(program)
        code = KernelCode(
            table_source=tables,
            solver_source=compiled,
            plain_source=plain,
            parameters=tuple(map(str, program.parameters)),
            table_parameters=tuple(IDENTIFIERS[p] for p in TABLE_PARAMETERS),
            names=tuple(map(str, program.tables[1:])),
            outputs=tuple(map(str, program.outputs)),
            results=tuple(model.lowered.results),
            measured=tuple(map(str, program.magnitudes)),
            even=program.even,
            unknowns=tuple(map(str, program.newton_unknowns)),
            data=tuple((d.name, d.given_names) for d in program.data),
        )
        return Derivation(
            student=model.student.name,
            teacher=model.teacher.name,
            odd_student=is_odd(model.student),
            mapping_source=mapping_source,
            mapping_error=mapping_error,
            leap_index=leap_index(model.teacher),
            best_linear_error=float(best_linear_error(model.teacher).evalf(20)),
            code=code,
            domains=tuple(parameter_domains(model.lowered).items()),
            structure=model.structure.describe(),
            functions=tuple((str(f), str(v)) for f, v in evaluated_forms(definitions).items()),
        )


# ------------------------------------------------------------------ parts


def flags_of(model: SpikedRandomFeatures) -> dict[str, Any]:
    """Return which case of the equations holds for a model."""
    return {**model._case, "finite_width": model.width is not None, "bulk": model._bulk.equations}


def _title(case: Case) -> str:
    bulk = case.get("bulk", IID)
    remarks = (
        ", with correlated norms of the rows (the terms in chi)" * case.get("correlated_norms", 0),
        ", with stretched rows (the terms in t)" * case.get("stretched", 0),
        ", at a finite width (the terms in p_inv)" * case.get("finite_width", 0),
        "" if bulk == IID else f", with the law of the bulk as the data {symbols.BULK!r}",
    )
    return f"Saddle point of ridge regression on spiked random features{''.join(remarks)}"


def mapping_functions(student: Activation, teacher: Teacher) -> str:
    """Source of the map of the step, of (s, α0, Δ).

    ``mapping`` returns r, c, γ, ρ and the norm overlap a, ``letter_mapping`` those of the neurons
    with one letter of a vocabulary, ``bulk`` the relative spread of the bulk covariance.
    """
    one = spike_mapping(student, teacher, letter=letter, mean_letter=mean_letter)
    try:
        spread = _with_numbers(bulk_spread(student, teacher))
    except ConvergenceError:
        # Labels without a fourth moment.
        spread = sp.oo
    arguments = tuple(STEP_ARGUMENTS)
    return scalar_functions(
        {
            "mapping": Formula(arguments, _fields(spike_mapping(student, teacher))),
            "letter_mapping": Formula((*arguments, letter, mean_letter), _fields(one)),
            "bulk": Formula(arguments, [spread]),
        },
        _LETTERS,
    )


def stretch_function(student: Activation, teacher: Teacher) -> str:
    """Source of the map of (s, 1/α0, Δ, letter, mean letter) to the entries vv, vζ, ζζ of T."""
    found = spike_mapping(student, teacher, letter=letter, mean_letter=mean_letter, stretched=True)
    # Powers of α0 overflow where those of 1/α0 vanish.
    inverse = sp.Symbol("inverse_alpha0", nonnegative=True)
    entries = sp.Tuple(found.stretch_along, found.stretch_mixed, found.stretch_across)
    # Power by power of the mean letter: an average that does not exist says so.
    values = entries.xreplace({e: _by_powers(e) for e in entries.atoms(GaussianExpectation)})
    arguments = (step_size, inverse, noise, letter, mean_letter)
    formula = Formula(arguments, [v.subs(alpha0, 1 / inverse) for v in values])
    return scalar_functions({"stretch": formula}, _LETTERS)


def _by_powers(average: GaussianExpectation) -> sp.Expr:
    """Return an average of a polynomial in the mean letter, its coefficients as numbers."""
    powers = sp.collect(sp.expand(average.args[0]), mean_letter, evaluate=False)
    return sp.Add(*(
        power * sp.sympify(GaussianExpectation(part, average.args[1]), strict=True).evalf(20)
        for power, part in powers.items()
    ))  # fmt: skip


def _fields(mapping: SpikeMapping) -> tuple[sp.Expr, ...]:
    return (
        mapping.spike_strength, mapping.bulk_variance, mapping.alignment,
        mapping.orthogonal_alignment, mapping.norm_overlap,
    )  # fmt: skip


def scalar_functions(
    functions: Mapping[str, Formula], names: Mapping[sp.Expr, str] | None = None
) -> str:
    """Source of functions of floats; exact constants become numbers."""
    numbers = {
        name: replace(f, values=[_with_numbers(value) for value in f.values])
        for name, f in functions.items()
    }
    return function_source(numbers, "python", names={**STEP_ARGUMENTS, **(names or {})})


def precise_mapping(
    student: Activation, teacher: Teacher, values: dict[str, sp.Rational], digits: int
) -> tuple[sp.Float, ...]:
    """Return r, c, γ, ρ and the norm overlap a to `digits` digits.

    `values` holds step_size, alpha0 and noise_variance as exact numbers.
    """
    given = {symbol: values[name] for symbol, name in STEP_ARGUMENTS.items()}
    fields = _fields(spike_mapping(student, teacher))
    return tuple(e.xreplace(given).evalf(digits) for e in fields)


def _with_numbers(expr: sp.Expr) -> sp.Expr:
    """Replace exact constants by 20-digit numbers; integers and rationals stay."""
    if isinstance(expr, sp.Rational | sp.Symbol):
        return expr
    if not expr.free_symbols:
        return expr.evalf(20)
    return expr.func(*map(_with_numbers, expr.args))
