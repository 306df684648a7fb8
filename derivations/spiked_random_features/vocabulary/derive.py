"""The symbolic half: free energy → derivatives → vectorised sources, kept as text."""

from __future__ import annotations

import sympy as sp

from ....errors import ExpressionError
from ....symbolic.activations import Activation, activation
from ....symbolic.activations import z as activation_variable
from ....symbolic.equivalence import (
    mean_definition,
    residual_variance_definition,
    slope_definition,
)
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.lowering.targets.table_source import mpmath_table_source, table_source
from ....symbolic.parser import parse_target
from ....symbolic.printing.compiled import Formula, function_source
from ..bulk_law import BULKS
from . import free_energy as f
from .derivation import Derivation

# A table is a function of where the argument of an activation is centred.
_CENTRE = sp.Symbol("centre", real=True)
_BULK_VARIANCE = sp.Symbol("bulk_variance", positive=True)
_SPREAD = sp.Symbol("orthogonal_alignment", positive=True)
_INNER = sp.Symbol("s", real=True)


def derive(student: str, teacher: str, *, teacher_kind: str) -> Derivation:
    """Derive everything that numbers need, as text; see :class:`.derivation.Derivation`."""
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
        student_source=_of_z("student", student_.expr),
        derivative_source="" if student_.jumps else _of_z("derivative", student_.derivative),
        teacher_source=teacher_source,
        equations={bulk: equation_source(bulk) for bulk in BULKS},
    )


def equation_source(bulk: str) -> str:
    """Return the module of all derivatives of the free energy that the solver asks for.

    Nothing in it depends on the number of letters: each function takes arrays over the values of κ
    or over the letters.
    """
    potential, letter = f.node_potential(), f.letter_potential(bulk)
    energy, cost = f.node_energy(bulk), f.letter_cost(bulk)
    error = f.conditional_error(bulk)
    # The derivatives by what f is quadratic in, taken at zero.
    at_zero = dict.fromkeys((f.C, f.W, f.D_squared, f.Q), sp.S.Zero)
    # A quadratic function at its optimum has half of its linear part; q drops out, because f is
    # stationary in it. So this is f of one value of κ at the saddle point, costs included.
    a, b, v, x, v2 = f.alpha, f.beta, f.V, f.X, f.V2
    at_optimum = (
        energy.xreplace(at_zero) + sum(y * energy.diff(y).xreplace(at_zero) for y in (f.C, f.W)) / 2
    )
    functions = {
        "node_potential": ((a, b, v), [potential, potential.diff(v), potential.diff(v, 2)]),
        "letter_potential": (
            (b, f.ridge, f.fraction, x, v2),
            [letter, letter.diff(x), letter.diff(v2), letter.diff(x, v2), letter.diff(v2, 2)],
        ),
        "weights": ((b,), [f.determinant_weight(bulk), f.psi_weight(bulk)]),
        # By C, C twice, W and D_l twice: D_squared is the sum of the squares of D_l.
        "node_linear": (
            (a, b, v, f.T0),
            [
                energy.diff(f.C).xreplace(at_zero),
                energy.diff(f.C, 2),
                energy.diff(f.W),
                2 * energy.diff(f.D_squared),
            ],
        ),
        "node_response": (
            (a, b, v, f.C, f.W, f.D_squared, f.T0, f.T2),
            [energy.diff(v).xreplace({f.Q: sp.S.Zero})],
        ),
        "letter_linear": (
            (b, f.inverse_width, v2),
            [2 * cost.diff(x) for x in (f.m_squared, f.theta_squared, f.psi_squared)],
        ),
        "letter_response": (
            (b, f.inverse_width, v2, f.m_squared, f.theta_squared, f.psi_squared),
            [cost.diff(v2)],
        ),
        "errors": (
            (a, b, v, f.C, f.W, f.D_squared, f.Q, f.T0, f.T2),
            [error, error / (1 + v) ** 2, 2 * b / a * at_optimum],
        ),
    }  # fmt: skip
    return function_source({name: Formula(*given) for name, given in functions.items()})


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
