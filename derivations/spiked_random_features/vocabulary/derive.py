"""The symbolic half: free energy → derivatives → vectorised sources, kept as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from ....errors import ExpressionError
from ....symbolic.expressions.activations import Activation, activation, z as activation_variable
from ....symbolic.expressions.parser import parse_target
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.hermite.equivalence import (
    mean_definition,
    residual_variance_definition,
    slope_definition,
)
from ....symbolic.lowering.tables import mpmath_table_source, table_source
from ....symbolic.printing.compiled import Formula, function_source
from ...derived import derived
from .. import physics
from ..bulk_law import BULKS

# One letter: V_1^aa, V_2^a, π_a and squares of its overlaps, summed over directions.
_X, _V2, _FRACTION = sp.symbols("X V2 fraction", positive=True)
_M2, _THETA2, _PSI2 = sp.symbols("m_squared theta_squared psi_squared", nonnegative=True)
# One value of κ: the conditional variance, the prediction along the mean, sum_u T_1^u P_u,
# sum_l (theta_l . mu_1)^2, the variance from q, and the moments of the labels.
_V = sp.Symbol("V", positive=True)
_C, _W, _Q, _T0, _T2 = sp.symbols("C W Q T0 T2", real=True)
_D2 = sp.Symbol("D_squared", nonnegative=True)
# A table is a function of where the argument of an activation is centred.
_CENTRE = sp.Symbol("centre", real=True)
_BULK_VARIANCE = sp.Symbol("bulk_variance", positive=True)
_SPREAD = sp.Symbol("orthogonal_alignment", positive=True)
_INNER = sp.Symbol("s", real=True)


def equation_source(bulk: str) -> str:
    """Return the module of all derivatives of the free energy that the solver asks for.

    Nothing in it depends on the number of letters: each function takes arrays over the values of κ
    or over the letters.
    """
    a, b, penalty, width = physics.alpha, physics.beta, physics.ridge, physics.inverse_width
    error = physics.square_error(_T0, _T2, _C, _W, _Q - (_D2 if bulk == "orthonormal" else 0))
    energy = a / b * physics.square_envelope(error, _V)
    potential = a / b * sp.log(1 + _V)
    letter = physics.letter_potential(bulk, _X, _V2, _FRACTION)
    # The square of ψ is in q_1 for independent rows, and costs what its matrix says.
    cost = physics.overlap_cost(_V2, _M2, _THETA2, _PSI2 if bulk == "orthonormal" else 0)
    # The derivatives by what f is quadratic in, taken at zero.
    at_zero = dict.fromkeys((_C, _W, _D2, _Q), sp.S.Zero)
    # A quadratic function at its optimum has half of its linear part; q drops out, because f is
    # stationary in it. So this is f of one value of κ at the saddle point, costs included.
    at_optimum = (
        energy.xreplace(at_zero) + sum(y * energy.diff(y).xreplace(at_zero) for y in (_C, _W)) / 2
    )
    functions = {
        "node_potential": ((a, b, _V), [potential, potential.diff(_V), potential.diff(_V, 2)]),
        "letter_potential": (
            (b, penalty, _FRACTION, _X, _V2),
            [letter, letter.diff(_X), letter.diff(_V2), letter.diff(_X, _V2), letter.diff(_V2, 2)],
        ),
        "weights": ((b,), [physics.determinant_weight(bulk), physics.psi_weight(bulk)]),
        # By C, C twice, W and D_l twice: D_squared is the sum of the squares of D_l.
        "node_linear": (
            (a, b, _V, _T0),
            [
                energy.diff(_C).xreplace(at_zero),
                energy.diff(_C, 2),
                energy.diff(_W),
                2 * energy.diff(_D2),
            ],
        ),
        "node_response": (
            (a, b, _V, _C, _W, _D2, _T0, _T2),
            [energy.diff(_V).xreplace({_Q: sp.S.Zero})],
        ),
        "letter_linear": ((b, width, _V2), [2 * cost.diff(x) for x in (_M2, _THETA2, _PSI2)]),
        "letter_response": ((b, width, _V2, _M2, _THETA2, _PSI2), [cost.diff(_V2)]),
        "errors": (
            (a, b, _V, _C, _W, _D2, _Q, _T0, _T2),
            [error, error / (1 + _V) ** 2, 2 * b / a * at_optimum],
        ),
    }  # fmt: skip
    return function_source(
        {name: Formula(*given) for name, given in functions.items()},
        names={x: physics.IDENTIFIERS[x] for x in (a, b, penalty, width)},
    )


def _of_z(name: str, expr: sp.Expr) -> str:
    return function_source({name: Formula((activation_variable,), expr)})


def multi_index_source(teacher: str) -> tuple[str, int]:
    """Return the source of a teacher of several coordinates, and how many there are.

    Raises
    ------
    ExpressionError
        If the text is not an expression in x1, x2, ….
    """
    expr, variables = parse_target(teacher, argument="teacher")
    if not variables:
        raise ExpressionError(f"teacher {teacher!r} has no coordinates; use x1, x2, …")
    return function_source({"teacher": Formula((tuple(variables),), expr)}), len(variables)


def _student_tables(student: Activation) -> str:
    r"""μ_0, √c μ_1 and μ_2² of Result 3.2 as functions of the centre and of c."""
    spread = sp.sqrt(_BULK_VARIANCE)
    mu0, slope, mu1, mu2 = (
        sp.Function(name, real=True)(_CENTRE) for name in ("mu0", "slope", "mu1", "mu2_squared")
    )
    definitions = {
        mu0: mean_definition(student, _CENTRE, spread),
        slope: slope_definition(student, _CENTRE, spread),
        mu1: spread * slope,
        mu2: residual_variance_definition(student, _CENTRE, spread, mu0, slope),
    }
    return table_source(
        definitions,
        node=_CENTRE,
        identifiers={_BULK_VARIANCE: "bulk_variance"},
        parameters=(_BULK_VARIANCE,),
    )


def _precise_means(student: Activation) -> str:
    """μ_0 for mpmath, as a function of the centre and of c."""
    return mpmath_table_source(
        {
            sp.Function("mu0", real=True)(_CENTRE): mean_definition(
                student, _CENTRE, sp.sqrt(_BULK_VARIANCE)
            )
        },
        node=_CENTRE,
        identifiers={_BULK_VARIANCE: "bulk_variance"},
        parameters=(_BULK_VARIANCE,),
    )


def _teacher_tables(teacher: Activation, *, aligned: bool) -> str:
    """T_0, T_1 and T_2 without noise, as functions of γ·κ and ρ."""
    label = teacher(_CENTRE + (0 if aligned else _SPREAD * _INNER))
    t0, t1, t2 = (sp.Function(name, real=True)(_CENTRE) for name in ("T0", "T1", "T2"))
    definitions = {
        t0: GaussianExpectation(label, _INNER),
        t1: sp.S.Zero if aligned else GaussianExpectation(_INNER * label, _INNER),
        t2: GaussianExpectation(label**2, _INNER),
    }
    return table_source(
        definitions,
        node=_CENTRE,
        identifiers={_SPREAD: "orthogonal_alignment"},
        parameters=(_SPREAD,),
    )


# ------------------------------------------------------------------ derivation


@dataclass(frozen=True)
class Derivation:
    """Generated sources for one student and one teacher, for any number of letters.

    Attributes
    ----------
    student, teacher : str
        Names.
    coordinates : int
        Of the teacher: 1 for a single-index one.
    student_tables : str
        Tables of μ_0, √c μ_1 and μ_2² in the centre and the bulk variance.
    precise_means : str
        The table of μ_0 for mpmath.
    teacher_tables : str
        Tables of T_0, T_1, T_2 in γ·κ and ρ; empty for a teacher of several coordinates.
    teacher_source : str
        The vectorised function ``teacher``.
    equations : mapping from str to str
        For each kind of bulk rows, the derivatives of the free energy.
    """

    student: str
    teacher: str
    coordinates: int
    student_tables: str
    precise_means: str
    teacher_tables: str
    teacher_source: str
    equations: Mapping[str, str]


@derived("spiked_random_features/vocabulary", Derivation)
def derivation(student: str, teacher: str, teacher_kind: str) -> Derivation:
    """Derive everything that numbers need, as text.

    Parameters
    ----------
    student, teacher : str
    teacher_kind : {"single-index", "aligned", "multi-index"}
        "aligned": the labels are a function of κ, exactly.
    """
    student_ = activation(student, argument="student")
    if teacher_kind == "multi-index":
        teacher_name, teacher_tables = teacher, ""
        teacher_source, coordinates = multi_index_source(teacher)
    else:
        teacher_ = activation(teacher, argument="teacher")
        teacher_name, coordinates = teacher_.name, 1
        teacher_tables = _teacher_tables(teacher_, aligned=teacher_kind == "aligned")
        teacher_source = _of_z("teacher", teacher_.expr)
    return Derivation(
        student=student_.name,
        teacher=teacher_name,
        coordinates=coordinates,
        student_tables=_student_tables(student_),
        precise_means=_precise_means(student_),
        teacher_tables=teacher_tables,
        teacher_source=teacher_source,
        equations={bulk: equation_source(bulk) for bulk in BULKS},
    )
