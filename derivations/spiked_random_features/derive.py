"""From a pair of activations to all that numbers need, kept as text once it was derived.

Free energy → equations → blocks → program → source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from ...errors import AssumptionError, ConvergenceError
from ...numeric.cache import FileCache
from ...numeric.kernel_code import KernelCode, LoadedKernel
from ...pages import InLatex
from ...runtime.generated import PreciseKernel
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.gaussian.expectation import GaussianExpectation
from ...symbolic.lowering.driver import precise_driver
from ...symbolic.lowering.lowered import LoweredSystem, lower
from ...symbolic.lowering.program import Program
from ...symbolic.lowering.solver import solver_source
from ...symbolic.lowering.tables import evaluated_forms, mpmath_table_source, table_source
from ...symbolic.printing.compiled import Formula, function_source
from ...symbolic.systems.equations import BlockStructure
from ...symbolic.systems.saddle_point import (
    Equation,
    FreeEnergy,
    SaddlePointSystem,
    complement,
    stationarity,
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
from ..kernels.code import column_names, deriving, parameter_domains
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
    table_source, solver_source, plain_source : str
        Generated modules: tables in NumPy, the solver in numba and its twin in plain Python.
    parameters, table_parameters, tables, outputs : tuple of str
        Names in the order of the generated functions.
    results, measured : tuple of str
        Outputs meant for users, and those with an error estimate of their own.
    even : bool
        Half of the quadrature line suffices.
    unknowns : tuple of str
        Outputs that Newton's method starts from.
    domains : tuple of (str, str)
        Which numbers each parameter and each Newton unknown may be.
    structure : str
        The block structure in words.
    functions : tuple of (str, str)
        Name and value of each tabulated function.
    data : tuple of (str, tuple of str)
        Data sets and their columns.
    """

    student: str
    teacher: str
    odd_student: bool
    mapping_source: str
    mapping_error: str
    leap_index: int
    best_linear_error: float
    table_source: str
    solver_source: str
    plain_source: str
    parameters: tuple[str, ...]
    table_parameters: tuple[str, ...]
    tables: tuple[str, ...]
    outputs: tuple[str, ...]
    results: tuple[str, ...]
    measured: tuple[str, ...]
    even: bool
    unknowns: tuple[str, ...]
    domains: tuple[tuple[str, str], ...]
    structure: str
    functions: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class SymbolicModel(InLatex):
    """The chain as SymPy objects.

    Attributes
    ----------
    student, teacher : Activation
    free_energy : SpikedFreeEnergy
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
    student: str | sp.Expr | Activation,
    teacher: str | Teacher,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
) -> SymbolicModel:
    """Derive the saddle-point equations of the model and lower them.

    Parameters
    ----------
    student : str, Expr or Activation
    teacher : str, Activation or DirectionalTeacher
    unspiked, aligned : bool
        Exactly r = 0, exactly \\|γ\\| = 1.
    correlated_norms : bool
        Include the correlation of norms and overlaps of the rows.
    stretched : bool
        Include the stretch of the rows in the plane of the spike and of the teacher.
    finite_width : bool
        Include what the mean direction costs at a finite width.
    bulk : {"iid", "isotropic", "overlaps"}
        As for :func:`.physics.spiked_free_energy`.
    """
    student_ = activation(student, argument="student")
    teacher_ = read_teacher(teacher)
    energy = spiked_free_energy(
        student_,
        teacher_,
        unspiked=unspiked,
        aligned=aligned,
        correlated_norms=correlated_norms,
        stretched=stretched,
        finite_width=finite_width,
        bulk=bulk,
    )
    system = saddle_point_system(energy, _title(correlated_norms, stretched, finite_width, bulk))
    return SymbolicModel(student_, teacher_, energy, system)


def saddle_point_system(energy: SpikedFreeEnergy, title: str) -> SaddlePointSystem:
    """Return the saddle-point equations of a free energy, ready to be lowered."""
    return SaddlePointSystem.from_free_energy(
        _determined(energy.free_energy),
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


def derive(
    student: str,
    teacher: str,
    *,
    unspiked: bool,
    aligned: bool,
    correlated_norms: bool = False,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
) -> Derivation:
    """Derive everything that numbers need, as text; see :class:`Derivation`."""
    model = symbolic_model(
        student,
        teacher,
        unspiked=unspiked,
        aligned=aligned,
        correlated_norms=correlated_norms,
        stretched=stretched,
        finite_width=finite_width,
        bulk=bulk,
    )
    definitions = model.free_energy.free_energy.definitions
    scales = set(model.program.magnitudes.values())
    mapping_source = mapping_error = ""
    try:
        mapping_source = mapping_functions(model.student, model.teacher)
    except AssumptionError as error:
        mapping_error = str(error)
    return Derivation(
        student=model.student.name,
        teacher=model.teacher.name,
        odd_student=is_odd(model.student),
        mapping_source=mapping_source,
        mapping_error=mapping_error,
        leap_index=leap_index(model.teacher),
        best_linear_error=float(best_linear_error(model.teacher).evalf(20)),
        table_source=table_source(
            definitions,
            node=symbols.kappa,
            identifiers=IDENTIFIERS,
            parameters=TABLE_PARAMETERS,
        ),
        solver_source=solver_source(model.program),
        plain_source=solver_source(model.program, "python"),
        parameters=tuple(str(p) for p in model.program.parameters),
        table_parameters=tuple(IDENTIFIERS[p] for p in TABLE_PARAMETERS),
        tables=tuple(str(t) for t in model.program.tables[1:]),
        outputs=tuple(str(x) for x in model.program.outputs),
        results=tuple(str(x) for x in model.program.outputs if x not in scales),
        measured=tuple(str(x) for x in model.program.magnitudes),
        even=model.program.even,
        unknowns=tuple(str(x) for x in model.program.newton_unknowns),
        domains=tuple(parameter_domains(model.lowered).items()),
        structure=model.structure.describe(),
        functions=tuple((str(f), str(v)) for f, v in evaluated_forms(definitions).items()),
        data=tuple((d.name, column_names(d)) for d in model.program.data),
    )


def derivation(
    student: str,
    teacher: str,
    *,
    unspiked: bool,
    aligned: bool,
    correlated_norms: bool,
    stretched: bool = False,
    finite_width: bool = False,
    bulk: str = IID,
    cache: FileCache,
) -> Derivation:
    """Return the derivation for a pair of activations, from the cache where it is there.

    Parameters
    ----------
    student, teacher : str
        Catalogue names or expressions in z.
    unspiked, aligned : bool
        Exactly r = 0, exactly \\|γ\\| = 1.
    correlated_norms : bool
        Include the correlation of norms and overlaps of the rows.
    stretched : bool
        Include the stretch of the rows in the plane of the spike and of the teacher.
    finite_width : bool
        Include what the mean direction costs at a finite width.
    bulk : {"iid", "isotropic", "overlaps"}
        As for :func:`.physics.spiked_free_energy`.
    cache : FileCache
        Where derivations are kept between processes.
    """
    flags = {
        "unspiked": unspiked,
        "aligned": aligned,
        "correlated_norms": correlated_norms,
        "stretched": stretched,
        "finite_width": finite_width,
        "bulk": bulk,
    }
    return _derivation(cache, student, teacher, **flags)


@derived("spiked_random_features", Derivation)
def _derivation(student: str, teacher: str, **flags: Any) -> Derivation:
    with deriving(f"{student} features", 1):
        return derive(student, teacher, **flags)


# ------------------------------------------------------------------ loading


def kernel_code(found: Derivation) -> KernelCode:
    """Return what a derivation says about its kernel."""
    return KernelCode(
        table_source=found.table_source,
        solver_source=found.solver_source,
        plain_source=found.plain_source,
        parameters=found.parameters,
        table_parameters=found.table_parameters,
        names=found.tables,
        outputs=found.outputs,
        results=found.results,
        measured=found.measured,
        even=found.even,
        unknowns=found.unknowns,
        data=found.data,
    )


def load_kernel(found: Derivation, cache: FileCache) -> LoadedKernel:
    """Load tables and the solver in plain Python; the compiled solver waits until it is needed."""
    return kernel_code(found).load(cache)


# ------------------------------------------------------------------ parts


def flags_of(model: SpikedRandomFeatures) -> dict[str, Any]:
    """Return which case of the equations holds for a model."""
    return {
        **model._case,
        "finite_width": model.width is not None,
        "bulk": model._bulk.equations,
    }


def _determined(energy: FreeEnergy) -> FreeEnergy:
    """Leave out variables on which the free energy of a special case does not depend."""
    stays = set(stationarity(energy))
    return replace(
        energy,
        order_parameters=tuple(x for x in energy.order_parameters if x in stays),
        conjugates=tuple(x for x in energy.conjugates if x in stays),
    )


def _title(correlated_norms: bool, stretched: bool, finite_width: bool, bulk: str) -> str:
    remarks = (
        ", with correlated norms of the rows (the terms in chi)" if correlated_norms else "",
        ", with stretched rows (the terms in t)" if stretched else "",
        ", at a finite width (the terms in p_inv)" if finite_width else "",
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
        mapping.spike_strength,
        mapping.bulk_variance,
        mapping.alignment,
        mapping.orthogonal_alignment,
        mapping.norm_overlap,
    )


def scalar_functions(
    functions: Mapping[str, Formula], names: Mapping[sp.Expr, str] | None = None
) -> str:
    """Source of functions of floats; exact constants become numbers."""
    numbers = {
        name: replace(f, values=[_with_numbers(value) for value in f.values])
        for name, f in functions.items()
    }
    return function_source(numbers, "python", names={**STEP_ARGUMENTS, **(names or {})})


def precise_kernel(model: SymbolicModel) -> PreciseKernel:
    """Print the model's program for mpmath."""
    scales = set(model.program.magnitudes.values())
    return PreciseKernel(
        table_source=mpmath_table_source(
            model.free_energy.free_energy.definitions,
            node=symbols.kappa,
            identifiers=IDENTIFIERS,
            parameters=TABLE_PARAMETERS,
        ),
        driver_source=precise_driver(),
        solver_source=solver_source(model.program, "mpmath"),
        parameters=tuple(str(p) for p in model.program.parameters),
        table_parameters=tuple(IDENTIFIERS[p] for p in TABLE_PARAMETERS),
        outputs=tuple(str(x) for x in model.program.outputs),
        results=tuple(str(x) for x in model.program.outputs if x not in scales),
        unknowns=tuple(str(x) for x in model.program.newton_unknowns),
        even=model.program.even,
        data=tuple(d.name for d in model.program.data),
    )


def precise_mapping(
    student: Activation, teacher: Teacher, values: dict[str, sp.Rational], digits: int
) -> tuple[sp.Float, ...]:
    """Return r, c, γ, ρ and the norm overlap a to `digits` digits.

    `values` holds step_size, alpha0 and noise_variance as exact numbers.
    """
    found = spike_mapping(student, teacher)
    given = {
        step_size: values["step_size"],
        alpha0: values["alpha0"],
        noise: values["noise_variance"],
    }
    expressions = (
        found.spike_strength,
        found.bulk_variance,
        found.alignment,
        found.orthogonal_alignment,
        found.norm_overlap,
    )
    return tuple(e.xreplace(given).evalf(digits) for e in expressions)


def _with_numbers(expr: sp.Expr) -> sp.Expr:
    """Replace exact constants by 20-digit numbers; integers and rationals stay."""
    if isinstance(expr, sp.Rational | sp.Symbol):
        return expr
    if not expr.free_symbols:
        return expr.evalf(20)
    return expr.func(*map(_with_numbers, expr.args))
