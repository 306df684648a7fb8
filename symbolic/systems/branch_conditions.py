r"""Where solutions of a system meet: the conditions of special points, as systems of equations.

Newton's method acts on few unknowns x, the core of a system; the others follow from them. With
the residuals :math:`R(x, p)` of the core as functions of x and of a control parameter p,

* two solutions meet and vanish (a fold, a spinodal) where :math:`R = 0,\ \partial_x R\,v = 0`;
* branches cross where :math:`R = 0,\ w^\top\partial_x R = 0,\ w^\top\partial_p R = 0`, for k
  independent w where k eigenvalues vanish at once, as by a symmetry;
* a branch leaves solutions with x_S = 0, on which the residuals R_S vanish identically, where
  :math:`x_S = 0,\ \partial_{x_S} R_S\,w = 0`: the overlap that becomes positive at a transition.
  On the branch :math:`p = p_0 + p_1\varepsilon + p_2\varepsilon^2`; it leaves to the other side
  where p_1, or p_2 if p_1 is zero by symmetry, changes its sign: a tricritical point. Both are
  multiples of derivatives of R_S along the branch at fixed p, the :data:`BENDS`;
* a quantity E vanishes along a branch where :math:`R = 0,\ E = 0`;
* two phases coexist where :math:`R(x) = R(y) = 0,\ F(x) = F(y)` for the free energy F.

Each is a system of the same form with p among its unknowns, so that digits, other languages and
continuation in a second parameter come from what solves any system. All derivatives are total:
they go through the unknowns that follow explicitly (:mod:`.sensitivities`).

The conditions are those of Moore and Spence, SIAM J. Numer. Anal. 17, 567 (1980), for folds, and
of Moore, Numer. Funct. Anal. Optim. 2, 441 (1980), for branch points, whose unfolding μ makes an
otherwise overdetermined system regular; μ vanishes at the solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from ...errors import ParameterError, StructureError
from ..gaussian.expectation import GaussianExpectation
from ..gaussian.integration_by_parts import linear_by_parts, reduced
from ..gaussian.stein_lemma import smooth_partial
from .equations import Equation, stationarity
from .saddle_point import SaddlePointSystem
from .sensitivities import derivative_name, with_derivatives_along, with_sensitivities

# The output that decides how fine a quadrature rule has to be: of size one, so that the errors of
# residuals, which vanish at solutions, count absolutely.
SIZE = "one_plus_residuals"
FREE_ENERGY = "free_energy"
# Unknowns at an end of their domains, and which.
Held = tuple[tuple[sp.Symbol, sp.Rational], ...]
# Second and third derivative of the residual of an unknown at an end, along what leaves there.
BENDS = ("second_derivative_along", "third_derivative_along")


@dataclass(frozen=True)
class OpenSystem:
    """A system whose Newton unknowns are given, with its residuals.

    Attributes
    ----------
    system : SaddlePointSystem
        The closed system, in independent parameters.
    kept : tuple of Symbol
        Unknowns that are given although an equation determines them explicitly.
    """

    system: SaddlePointSystem
    kept: tuple[sp.Symbol, ...] = ()

    def __post_init__(self) -> None:
        if not self.core:
            raise StructureError(
                f"the equations of {self.system.name} are linear or explicit, so there is one "
                "solution and nothing to follow; use curve()"
            )

    @cached_property
    def core(self) -> tuple[Equation, ...]:
        """The equations that Newton's method solves, of all blocks."""
        blocks = (block for block in self.system.structure.blocks if not block.linear)
        result = [e for block in blocks for c in block.components for e in c.core]
        known = {e.unknown for e in result}
        result += [e for e in self.system.equations if e.unknown in {*self.kept} - known]
        return tuple(result)

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """The core unknowns x."""
        return tuple(e.unknown for e in self.core)

    @property
    def names(self) -> tuple[str, ...]:
        """The core unknowns in code."""
        return tuple(self.system.identifiers[x] for x in self.unknowns)

    @property
    def is_map(self) -> bool:
        """Whether the core is in fixed-point form, x = F(x)."""
        return all(e.value is not None for e in self.core)

    @cached_property
    def residuals(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the residuals, in the order of the core."""
        return tuple(self._new(f"residual_{name}") for name in self.names)

    def opened(self, outputs: Mapping[str, sp.Expr], *, whole: bool) -> SaddlePointSystem:
        """Return the explicit system that gives residuals and outputs at given core unknowns.

        Parameters
        ----------
        outputs : mapping from str to Expr
        whole : bool
            Keep all that follows from the core; else what the residuals need only.
        """
        core = set(self.unknowns)
        rest = [e for e in self.system.equations if e.unknown not in core]
        if not whole:
            needed = _reached(rest, (e.residual for e in self.core))
            rest = [e for e in rest if e.unknown in needed]
        given = [
            Equation(r, e.residual, r - e.residual)
            for r, e in zip(self.residuals, self.core, strict=True)
        ]
        names = dict(self.system.identifiers)
        names |= {r: r.name for r in self.residuals}
        held = {*core, *self.system.parameters, *self.residuals, *(e.unknown for e in rest)}
        return replace(
            self.system,
            equations=(*rest, *given),
            parameters=(*self.system.parameters, *self.unknowns),
            outputs={SIZE: 1 + sp.Add(*(e.residual for e in self.core)), **outputs},
            identifiers={x: name for x, name in names.items() if x in held},
            start={},
            domains={},
            easier=None,
            free_energy=None,
            varying=frozenset(core),
        )

    def linearised(self, parameters: Iterable[sp.Symbol]) -> SaddlePointSystem:
        """Return the explicit system of residuals and their derivatives by core and parameters.

        The derivatives are named by :func:`.sensitivities.derivative_name`; one that vanishes
        identically is missing. They are finite where an overlap vanishes, if the residuals are
        regular there.
        """
        system = self.opened({}, whole=False)
        unknowns = set(system.unknowns)
        result = with_sensitivities(system, (*self.unknowns, *parameters), ())
        equations = tuple(
            e if e.unknown in unknowns else self._regular(e) for e in result.equations
        )
        return replace(result, equations=equations)

    def _regular(self, e: Equation) -> Equation:
        """Return a derivative without factors z/√x of an unknown x, which vanish by parts."""
        if e.value is None or not self._divides(e.value):
            return e
        value = self._without_roots(e.value)
        return Equation(e.unknown, value, e.unknown - value)

    def _without_roots(self, value: sp.Expr) -> sp.Expr:
        result = reduced(value)
        if self._divides(result):
            # Too long a sum for `reduced`, or one that holds inner expectations: what is left of
            # the chain rule, term by term.
            result = sp.bottom_up(result, self._term_by_term)
        return result

    def _term_by_term(self, node: sp.Expr) -> sp.Expr:
        if isinstance(node, GaussianExpectation) and self._divides(node):
            # What the chain rule puts into inner averages is outside of them, linear in z.
            inner = {n: split(n) for n in node.integrand.atoms(GaussianExpectation)}
            return linear_by_parts(
                GaussianExpectation(node.integrand.xreplace(inner), node.variable)
            )
        return node

    def _divides(self, value: sp.Expr) -> bool:
        """Tell whether something is divided by a root of an unknown."""
        return any(
            p.exp.is_negative and not p.exp.is_Integer and p.base in self.system.unknowns
            for p in value.atoms(sp.Pow)
        )

    def hessian(self) -> dict[str, sp.Expr]:
        r"""Return second derivatives of the free energy by all of its variables, by name.

        Entry ``hessian_i_j``, i ≥ j, belongs to the variables i and j of the free energy.

        Raises
        ------
        ParameterError
            If the system was not made from a free energy.
        """
        free_energy = self.system.free_energy
        if free_energy is None:
            raise ParameterError(f"{self.system.name} was not made from a free energy")
        gradient = stationarity(free_energy)
        variables = [x for x in free_energy.variables if x in gradient]
        result = {
            hessian_name(i, j): smooth_partial(gradient[x], y)
            for i, x in enumerate(variables)
            for j, y in enumerate(variables[: i + 1])
        }
        return {
            name: self._without_roots(value) if self._divides(value) else value
            for name, value in result.items()
        }

    @property
    def free_energy(self) -> sp.Expr | None:
        """The free energy, or the output that is called so."""
        if self.system.free_energy is not None:
            return self.system.free_energy.expression
        return self.system.outputs.get(FREE_ENERGY)

    def on_face(self, held: Held) -> SaddlePointSystem:
        """Return the system for solutions at ends of unknowns, whose equations then hold."""
        ends = {x for x, _ in held}
        system = self.system
        return replace(
            system,
            equations=tuple(_at_ends(system.equations, held)),
            start={x: value for x, value in system.start.items() if x not in ends},
            domains={x: domain for x, domain in system.domains.items() if x not in ends},
            easier=None,
            free_energy=None,
            paired=True,
        )

    def _boundary(
        self, control: sp.Symbol, held: Held, fixed: int, others: tuple[int, ...] = ()
    ) -> SaddlePointSystem:
        ends = [x for x, _ in held]
        jacobian, rest = self._jacobian(())
        names = [self.system.identifiers[x] for x in ends]
        vector = self._vector("weight", fixed, names, zeros=others)
        places = [self.unknowns.index(x) for x in ends]
        conditions = [
            sp.Add(*(jacobian[i][j] * w for j, w in zip(places, vector, strict=True)))
            for i in places
        ]
        equations = [*self.core, *rest]
        result = self._closed("boundary", control, equations, vector, fixed, conditions)
        free = {x: domain for x, domain in result.domains.items() if x not in ends}
        return replace(result, equations=tuple(_at_ends(result.equations, held)), domains=free)

    def _bent_boundary(self, control: sp.Symbol, held: Held, fixed: int) -> SaddlePointSystem:
        """Return the same for one unknown at an end, with the outputs `BENDS`.

        Along the branch that leaves, x_S moves by ε from the end, and the others follow so that
        their own residuals vanish: what is linear and quadratic in ε are further unknowns.
        """
        ((end, _),) = held
        result = self._boundary(control, held, fixed)
        names = self.system.identifiers
        others = [x for x in self.unknowns if x != end]
        linear = {x: self._new(f"linear_{names[x]}") for x in others}
        quadratic = {x: self._new(f"quadratic_{names[x]}") for x in others}
        rates = {end: sp.S.One, **linear, **{linear[x]: quadratic[x] for x in others}}
        system = self.opened({}, whole=False)
        along = with_derivatives_along(system, rates, (), order=3)
        unknowns = set(system.unknowns)
        regular = tuple(e if e.unknown in unknowns else self._regular(e) for e in along.equations)
        along = replace(along, equations=regular)
        values, helpers = self._derivatives(
            along, [[derivative_name(r.name, *"t" * k) for k in (1, 2, 3)] for r in self.residuals]
        )
        slopes = dict(zip(self.unknowns, values, strict=True))
        known = {e.unknown for e in result.equations}
        equations = [
            *result.equations,
            *(e for e in helpers if e.unknown not in known),
            *(Equation(linear[x], None, slopes[x][0]) for x in others),
            *(Equation(quadratic[x], None, slopes[x][1]) for x in others),
        ]
        fresh = {x: x.name for x in (*linear.values(), *quadratic.values())}
        # As values of helpers, so that the end is put in; what has no value there is no output.
        bends = [
            Equation(self._new(name), value, -value)
            for name, value in zip(BENDS, slopes[end][1:], strict=True)
        ]
        *equations, second, third = _at_ends([*equations, *bends], held)
        outputs = {
            name: e.value
            for name, e in zip(BENDS, (second, third), strict=True)
            if e.value is not None and end not in e.value.free_symbols
        }
        return replace(
            result,
            equations=tuple(equations),
            outputs={**result.outputs, **outputs},
            identifiers={**result.identifiers, **fresh},
        )

    def _fold(self, control: sp.Symbol, fixed: int) -> SaddlePointSystem:
        jacobian, rest = self._jacobian(())
        vector = self._vector("direction", fixed, self.names)
        rows = [sp.Add(*(a * v for a, v in zip(row, vector, strict=True))) for row in jacobian]
        return self._closed("fold", control, [*self.core, *rest], vector, fixed, rows)

    def _branch_point(
        self, control: sp.Symbol, fixed: int, others: tuple[int, ...] = ()
    ) -> SaddlePointSystem:
        """Return the system of a crossing, with a null vector and an unfolding for each eigenvalue.

        Of k null vectors each has k components that are one or zero, so that as many of the
        equations of each are left over: one of them all determines the control.
        """
        jacobian, rest = self._jacobian((control,))
        ones = (fixed, *others)
        equations = [*self.core, *rest]
        columns: list[list[sp.Expr]] = []
        vectors: list[list[sp.Expr]] = []
        for j, one in enumerate(ones):
            label = f"{j + 1}" if j else ""
            zeros = tuple(k for k in ones if k != one)
            vectors.append(self._vector(f"weight{label}", one, self.names, zeros=zeros))
            columns.append(
                [
                    sp.Add(*(row[k] * w for row, w in zip(jacobian, vectors[j], strict=True)))
                    for k in range(len(self.core) + 1)
                ]
            )
            unfolding = self._new(f"unfolding{label}")
            e = equations[one]
            equations[one] = Equation(e.unknown, None, e.residual + unfolding)
            equations.append(Equation(unfolding, None, columns[j].pop()))
        for vector, conditions in zip(vectors[1:], columns[1:], strict=True):
            equations += [
                Equation(vector[k], None, condition)
                for k, condition in enumerate(conditions)
                if k not in ones
            ]
        return self._closed("branch_point", control, equations, vectors[0], fixed, columns[0])

    def _zero(self, control: sp.Symbol, output: str) -> SaddlePointSystem:
        condition = Equation(control, None, self.system.outputs[output])
        result = self._with_control("zero", control, [*self.system.equations, condition])
        # What Newton's method leaves of it is no value, and would be an error without bounds.
        return replace(result, outputs={**result.outputs, output: sp.S.Zero})

    def _coexistence(self, control: sp.Symbol, held: Held, held_other: Held) -> SaddlePointSystem:
        free_energy = self.free_energy
        if free_energy is None:
            raise ParameterError(f"{self.system.name} has no free energy to compare")
        other = {x: sp.Symbol(f"{x.name}_other", **x.assumptions0) for x in self.system.unknowns}
        names = {new: f"{self.system.identifiers[x]}_other" for x, new in other.items()}
        copies = [
            Equation(
                other[e.unknown],
                None if e.value is None else e.value.xreplace(other),
                e.residual.xreplace(other),
            )
            for e in _at_ends(self.system.equations, held_other)
        ]
        own = _at_ends(self.system.equations, held)
        condition = Equation(control, None, free_energy - free_energy.xreplace(other))
        equations = [*own, *copies, condition]
        result = self._with_control("coexistence", control, equations, names)
        ends = {x for x, _ in held}
        free = {x: domain for x, domain in result.domains.items() if x not in ends}
        return replace(result, domains=free)

    def _jacobian(
        self, parameters: tuple[sp.Symbol, ...]
    ) -> tuple[list[list[sp.Expr]], list[Equation]]:
        """Return derivatives of residuals as expressions, and the equations of what they hold."""
        labels = [self.system.identifiers[x] for x in (*self.unknowns, *parameters)]
        result, helpers = self._derivatives(
            self.linearised(parameters),
            [[derivative_name(r.name, label) for label in labels] for r in self.residuals],
        )
        core = set(self.unknowns)
        rest = [e for e in self.system.equations if e.unknown not in core]
        return result, [*rest, *helpers]

    def _derivatives(
        self, derived: SaddlePointSystem, names: Sequence[Sequence[str]]
    ) -> tuple[list[list[sp.Expr]], list[Equation]]:
        """Return derivatives of residuals by name, and the equations of what they hold."""
        by_name = {derived.identifiers[e.unknown]: e for e in derived.equations}
        entries = [[by_name.get(name) for name in row] for row in names]
        # Derivatives of explicit residuals are explicit.
        result: list[list[sp.Expr]] = [
            [sp.S.Zero if e is None else e.unknown - e.residual for e in row] for row in entries
        ]
        mine = {*self.system.unknowns, *self.residuals}
        mine |= {e.unknown for row in entries for e in row if e is not None}
        helpers = [e for e in derived.equations if e.unknown not in mine]
        needed = _reached(helpers, (a for row in result for a in row))
        helpers = [e for e in helpers if e.unknown in needed]
        # Other names than those of derivatives, which these equations may be given, too.
        fresh = {
            e.unknown: self._new(f"slope_{derived.identifiers[e.unknown].removeprefix('d_')}")
            for e in helpers
        }
        helpers = [
            Equation(
                fresh[e.unknown],
                None if e.value is None else e.value.xreplace(fresh),
                e.residual.xreplace(fresh),
            )
            for e in helpers
        ]
        return [[a.xreplace(fresh) for a in row] for row in result], helpers

    def _vector(
        self, kind: str, fixed: int, names: Sequence[str], *, zeros: tuple[int, ...] = ()
    ) -> list[sp.Expr]:
        """Return a null vector in new symbols, one component set to one, some to zero."""
        known = {fixed: sp.S.One, **dict.fromkeys(zeros, sp.S.Zero)}
        return [
            known[k] if k in known else self._new(f"{kind}_{name}") for k, name in enumerate(names)
        ]

    def _closed(
        self, kind: str, control: sp.Symbol, equations: list[Equation],
        vector: list[sp.Expr], fixed: int, conditions: list[sp.Expr],
    ) -> SaddlePointSystem:  # fmt: skip
        """Add the conditions, each for a component of the vector, and one for the control.

        Those of components that are set to zero follow from the rest.
        """
        for k, condition in enumerate(conditions):
            if vector[k] == 0:
                continue
            unknown = control if k == fixed else vector[k]
            equations = [*equations, Equation(unknown, None, condition)]
        return self._with_control(kind, control, equations)

    def _with_control(
        self, kind: str, control: sp.Symbol, equations: Iterable[Equation],
        names: Mapping[sp.Symbol, str] | None = None,
    ) -> SaddlePointSystem:  # fmt: skip
        system = self.system
        known = {**system.identifiers, **(names or {})}
        equations = tuple(equations)
        free = tuple(p for p in system.parameters if p != control)
        held = {*free, *(e.unknown for e in equations)}
        return replace(
            system,
            name=f"{system.name}_{kind}",
            title=f"{system.title or system.name}: {kind.replace('_', ' ')}",
            equations=equations,
            parameters=free,
            identifiers={x: name for x, name in known.items() if x in held},
            start={},
            domains={x: d for x, d in system.domains.items() if x in held},
            easier=None,
            free_energy=None,
            # Unknowns of Newton's method are those of the system and of the condition.
            paired=True,
        )

    def _new(self, name: str) -> sp.Symbol:
        taken = {*map(str, self.system.identifiers), *self.system.identifiers.values()}
        taken |= {*self.system.outputs, SIZE, FREE_ENERGY}
        while name in taken:
            name += "_"
        return sp.Symbol(name, real=True)


@dataclass(frozen=True)
class Condition:
    """What holds at a special point besides the equations, whatever parameter meets it.

    Attributes
    ----------
    of : OpenSystem
    kind : {"fold", "branch point", "boundary", "zero", "coexistence"}
    component : int
        Of the null vector at folds and branch points: the one that is set to one. The others,
        ``direction_…`` and ``weight_…``, are unknowns. At a branch point the vector is that of the
        transposed Jacobian.
    others : tuple of int
        Where further eigenvalues vanish at a branch point or a boundary, for each another
        component: zero in the null vector, one in a null vector of its own.
    output : str
        What vanishes at a zero.
    held, held_other : tuple of (Symbol, number)
        Unknowns of the core that are at an end of their domains, which, in one phase and in the
        other.
    bent : bool
        At a boundary with one unknown, whether :data:`BENDS` are among the outputs.
    """

    of: OpenSystem
    kind: str
    component: int = 0
    others: tuple[int, ...] = ()
    output: str = ""
    held: Held = ()
    held_other: Held = ()
    bent: bool = False

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the unknowns to which the components of the null vector belong."""
        names = self.of.system.identifiers
        if self.kind == "boundary":
            return tuple(names[x] for x, _ in self.held)
        ends = {x for x, _ in self.held}
        return tuple(names[x] for x in self.of.unknowns if x not in ends)

    def system(self, control: sp.Symbol) -> SaddlePointSystem:
        """Return the equations with the condition, in which a parameter is an unknown.

        The unknowns of the second phase of a coexistence have ``…_other`` names.
        """
        if self.kind == "coexistence":
            return self.of._coexistence(control, self.held, self.held_other)
        if self.kind == "boundary" and self.bent:
            return self.of._bent_boundary(control, self.held, self.component)
        if self.kind == "boundary":
            return self.of._boundary(control, self.held, self.component, self.others)
        of = replace(self.of, system=self.of.on_face(self.held)) if self.held else self.of
        if self.kind == "fold":
            return of._fold(control, self.component)
        if self.kind == "branch point":
            return of._branch_point(control, self.component, self.others)
        return of._zero(control, self.output)


def hessian_name(i: int, j: int) -> str:
    """Return the name of an entry of :meth:`OpenSystem.hessian`, in either order."""
    return f"hessian_{max(i, j)}_{min(i, j)}"


def split(node: GaussianExpectation) -> sp.Expr:
    """Return the average of a sum as a sum of averages, what holds no variable of theirs outside.

    Examples
    --------
    >>> z, s, a = sp.symbols("z s a", real=True)
    >>> split(GaussianExpectation((a - z * s) * sp.exp(s * z), s))
    a*E_s[exp(s*z)] - z*E_s[s*exp(s*z)]
    """
    result = []
    for term in sp.Add.make_args(sp.expand_mul(node.integrand, deep=False)):
        outside, inside = term.as_independent(node.variable, as_Add=False)
        result.append(outside * GaussianExpectation(inside, node.variable))
    return sp.Add(*result)


def _at_ends(equations: Iterable[Equation], held: Held) -> list[Equation]:
    """Return equations where unknowns are at an end, and what vanishes with them does.

    The end stands for them in all expressions that have a value there: the derivative of sqrt(p) by
    a parameter is 0/0 where p is zero all along.
    """
    gone: dict[sp.Symbol, sp.Expr] = dict(held)
    result = list(equations)
    while True:
        follow = [
            e.unknown
            for e in result
            if e.unknown not in gone and e.value is not None and e.value.xreplace(gone) == 0
        ]
        if not follow:
            break
        gone |= dict.fromkeys(follow, sp.S.Zero)

    def at(expr: sp.Expr) -> sp.Expr:
        value = expr.xreplace(gone)
        return expr if value.has(sp.nan, sp.zoo, sp.oo) else value

    for k, e in enumerate(result):
        if e.unknown in gone:
            result[k] = Equation(e.unknown, gone[e.unknown], e.unknown - gone[e.unknown])
        else:
            value = None if e.value is None else at(e.value)
            result[k] = Equation(e.unknown, value, at(e.residual))
    return result


def _reached(equations: Iterable[Equation], wanted: Iterable[sp.Expr]) -> set[sp.Symbol]:
    """Return the unknowns of explicit equations that expressions need."""
    by_unknown = {e.unknown: e for e in equations}
    result: set[sp.Symbol] = set()
    waiting = set().union(*(x.free_symbols for x in wanted)) & set(by_unknown)
    while waiting:
        x = waiting.pop()
        result.add(x)
        waiting |= (by_unknown[x].residual.free_symbols & set(by_unknown)) - result
    return result
