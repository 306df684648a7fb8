"""What a system of equations has to satisfy before a kernel is made of it.

Each refusal names the variable or the node, says what is wrong and what would be right. Whether
functions are known to a target is not decided here but at the door of the lowering.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef

from ..errors import EmissionError, ParameterError, StructureError
from .arguments import as_expression
from .equations import Equation, FreeEnergy, matched, maximum_matching, stationarity
from .gaussian import ranges_over_the_line
from .generic_rank import dependent_unknowns, symmetric_variables
from .replica_stability import SingleSite
from .structure import block_structure

if TYPE_CHECKING:
    from .saddle_point import SaddlePointSystem

_KNOWN_SYSTEMS = 32


def check_free_energy(free_energy: FreeEnergy) -> None:
    """Refuse a free energy that does not determine its variables.

    Raises
    ------
    ParameterError
        For fields of the wrong kind.
    StructureError
        If the free energy does not depend on one of its variables, or is the same along a line or
        a rescaling of some.
    """
    if not isinstance(free_energy, FreeEnergy):
        raise ParameterError(f"free_energy must be a FreeEnergy, got {free_energy!r}")
    as_expression(free_energy.expression, "the expression of the free energy")
    for name in ("order_parameters", "conjugates", "parameters"):
        given = getattr(free_energy, name)
        if not isinstance(given, list | tuple) or not all(isinstance(x, sp.Symbol) for x in given):
            raise ParameterError(
                f"{name} of a free energy must be a tuple of SymPy Symbols, got {given!r}; "
                "a tuple of one is written (q,)"
            )
    sites = free_energy.single_sites
    if not isinstance(sites, list | tuple) or not all(isinstance(s, SingleSite) for s in sites):
        raise ParameterError(
            f"single_sites of a free energy must be a tuple of SingleSite, got {sites!r}"
        )
    repeated = _repeated((*free_energy.variables, *free_energy.parameters))
    if repeated:
        raise ParameterError(f"{_names(repeated)} occurs twice among variables and parameters")
    if not free_energy.variables:
        raise StructureError("a free energy needs at least one order parameter")
    for function, value in free_energy.definitions.items():
        held = set(free_energy.variables) & as_expression(value, str(function)).free_symbols
        if held:
            raise EmissionError(_in_a_table(function, held))
    gradient = stationarity(free_energy)
    missing = [x for x in free_energy.variables if x not in gradient]
    if missing:
        raise StructureError(
            f"the free energy does not depend on {_names(missing)}, so nothing determines "
            f"{'it' if len(missing) == 1 else 'them'}: take {_names(missing)} off the list of "
            "order parameters and conjugates, or add the missing term"
        )
    symmetric = symmetric_variables(gradient)
    if symmetric:
        raise StructureError(
            f"the free energy does not determine {_names(symmetric)}: it is the same along a "
            "common shift or rescaling of them, as where they occur as a sum or a product only; "
            "take one of them as given, or put the combination in their place"
        )


def check_system(system: SaddlePointSystem) -> None:
    """Refuse a system whose symbols or structure make no sense.

    Raises
    ------
    ParameterError
        For arguments of the wrong kind.
    StructureError
        If the equations do not determine their unknowns.
    EmissionError
        If a symbol or a function in them has no meaning.
    """
    if not system.name.isidentifier() or keyword.iskeyword(system.name):
        raise ParameterError(f"name must be an identifier such as 'my_model', got {system.name!r}")
    if not system.equations:
        raise StructureError("equations must hold at least one equation")
    for x in (*system.unknowns, *system.parameters):
        if not isinstance(x, sp.Symbol):
            raise ParameterError(f"unknowns and parameters must be SymPy Symbols, got {x!r}")
        if x.is_real is not True:
            raise ParameterError(
                f"{x} must be declared real (or positive, …): Symbol({x.name!r}, real=True)"
            )
        if x.is_rational is not None and not x.is_zero:
            raise ParameterError(
                f"{x} is declared {'an integer' if x.is_integer else 'rational or irrational'}, "
                f"which no kernel can require of a floating-point number: declare it real, "
                "positive, nonnegative, negative or nonpositive"
            )
    if not isinstance(system.node, sp.Symbol) or not ranges_over_the_line(system.node):
        raise ParameterError(
            f"node must be a SymPy Symbol declared real and nothing else, got {system.node!r}"
        )
    repeated = _repeated(system.unknowns)
    if repeated:
        raise StructureError(f"two equations determine {_names(repeated)}")
    both = [x for x in system.unknowns if x in system.parameters]
    if both:
        raise ParameterError(f"{_names(both)} cannot be both an unknown and a parameter")
    for x, value in system.start.items():
        if x not in system.unknowns:
            raise ParameterError(f"start has a value for {x}, which is no unknown")
        foreign = value.free_symbols - set(system.parameters)
        if foreign:
            raise ParameterError(f"start[{x}] may hold parameters only, not {_names(foreign)}")
    _check_derived(system)
    _check_domains(system)
    for code in system.outputs:
        if not code.isidentifier() or keyword.iskeyword(code):
            raise ParameterError(f"outputs: {code!r} is no identifier")
        if unicodedata.normalize("NFKC", code) != code:
            plain = unicodedata.normalize("NFKC", code)
            raise ParameterError(f"outputs: Python reads {code!r} as {plain!r}; write it so")
    _check_symbols(system)
    if not system.tangent:
        _check_structure(tuple(system.equations))


def _check_derived(system: SaddlePointSystem) -> None:
    independent = set(system.parameters) - set(system.derived)
    for p, value in system.derived.items():
        if p not in system.parameters:
            raise ParameterError(f"derived has a value for {p}, which is no parameter")
        foreign = value.free_symbols - independent
        if foreign:
            raise ParameterError(
                f"derived[{p}] may hold parameters that are not derived only, not {_names(foreign)}"
            )
        (held,) = value.free_symbols if len(value.free_symbols) == 1 else (None,)
        if held is not None and value == sp.sqrt((1 - held) * (1 + held)):
            continue
        for sign in ("positive", "negative", "nonnegative", "nonpositive"):
            if getattr(p, f"is_{sign}") and not getattr(value, f"is_{sign}"):
                raise ParameterError(
                    f"derived[{p}] = {value} is not {sign} for all parameters, as {p} is declared: "
                    f"declare {p} real, or the parameters so that it is"
                )


def _check_domains(system: SaddlePointSystem) -> None:
    for x, domain in system.domains.items():
        if x not in system.unknowns:
            raise ParameterError(f"domains has an interval for {x}, which is no unknown")
        if not isinstance(domain, sp.Interval):
            # SymPy returns no Interval but a set where there is nothing or a single point.
            what = "is empty" if domain == sp.S.EmptySet else "must be a SymPy Interval with ends"
            raise ParameterError(
                f"the domain of {x} {what}, got {domain}; an overlap has Interval.open(0, 1)"
            )
        if not all(end.is_extended_real and end.is_number for end in domain.args[:2]):
            raise ParameterError(f"the domain of {x} must have numbers as its ends, got {domain}")
        assumed = sp.Interval(0 if x.is_nonnegative else -sp.oo, 0 if x.is_nonpositive else sp.oo)
        if not domain.is_subset(assumed):
            raise ParameterError(
                f"the domain {domain} of {x} contradicts its declaration as {x.name} "
                f"{'>' if x.is_nonnegative else '<'}= 0: declare the symbol real, or end the "
                "domain at 0"
            )
        first = system.start.get(x)
        if first is not None and first.is_number and first.evalf() not in domain.interior:
            raise ParameterError(f"start[{x}] = {first} is not inside the domain {domain} of {x}")
    if system.easier is not None and (
        system.easier not in system.parameters or not system.easier.is_positive
    ):
        raise ParameterError(
            f"easier must be one of the positive parameters, got {system.easier!r}"
        )


def _check_symbols(system: SaddlePointSystem) -> None:
    known = {*system.unknowns, *system.parameters}
    places = [(f"the equation for {e.unknown}", e.residual) for e in system.equations]
    places += [(f"the output {name!r}", value) for name, value in system.outputs.items()]
    for place, expr in places:
        if not isinstance(expr, sp.Expr):
            raise ParameterError(f"{place} must be a SymPy expression, got {expr!r}")
        # By name: importing sympy.stats takes longer than everything here.
        random = [x for x in expr.free_symbols if type(x).__name__ == "RandomSymbol"]
        if random:
            raise EmissionError(
                f"{place} holds the random variable {random[0]} of sympy.stats; averages are over "
                "standard normal variables, GaussianExpectation(…, z), Marchenko-Pastur "
                "eigenvalues or data (DataAverage): write another law as a function of a normal "
                "variable, as sqrt(v)*z + m for N(m, v)"
            )
        if expr.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            raise EmissionError(f"{place} holds {expr}, which is no number")
        foreign = expr.free_symbols - known
        if foreign == {system.node} or system.node in foreign:
            raise EmissionError(
                f"{place} holds {system.node} outside of an expectation; write "
                f"GaussianExpectation(…, {system.node}) around what is to be averaged"
            )
        if foreign:
            raise EmissionError(
                f"{place} holds {_names(foreign)}, which is neither an unknown nor a parameter; "
                "add it to parameters, or give an equation for it (symbols with the same name but "
                "other assumptions are other symbols)"
            )
        nameless = expr.atoms(AppliedUndef) - set(system.definitions)
        if nameless:
            raise EmissionError(
                f"{place} holds {_names(nameless)} without a meaning; add it to definitions"
            )
    unknowns = set(system.unknowns)
    for function, value in system.definitions.items():
        if value.free_symbols & unknowns:
            raise EmissionError(_in_a_table(function, value.free_symbols & unknowns))


def _in_a_table(function: sp.Expr, held: Iterable[sp.Symbol]) -> str:
    return (
        f"the definition of {function} holds {_names(held)}: tables are made before the equations "
        "are solved; put the expression itself into the equations"
    )


# A system is made anew, and checked, for other outputs or parameters of the same equations.
@lru_cache(maxsize=_KNOWN_SYSTEMS)
def _check_structure(equations: tuple[Equation, ...]) -> None:
    unknowns = {e.unknown for e in equations}
    empty = [e.unknown for e in equations if not e.residual.free_symbols & unknowns]
    if empty:
        raise StructureError(
            f"the equation given for {_names(empty)} holds no unknown: it is a condition on the "
            "parameters and determines nothing"
        )
    occurring = set().union(*(e.residual.free_symbols for e in equations))
    missing = [e.unknown for e in equations if e.unknown not in occurring]
    if missing:
        raise StructureError(
            f"no equation holds {_names(missing)}, so nothing determines "
            f"{'it' if len(missing) == 1 else 'them'}"
        )
    stuck, competing = _undetermined(equations)
    if stuck:
        raise StructureError(
            f"the equations do not determine their unknowns: the {len(stuck)} unknowns "
            f"{_names(stuck)} occur in only {len(competing)} equation"
            f"{'' if len(competing) == 1 else 's'}, given for {_names(competing)}; another "
            "equation that holds one of them is needed (and one of the others is redundant)"
        )
    for block in block_structure(matched(equations)).blocks:
        for component in block.components:
            _check_rank(component.core + component.eliminated)


def _check_rank(equations: Sequence[Equation]) -> None:
    moving, repeating = dependent_unknowns(
        [e.residual for e in equations], [e.unknown for e in equations]
    )
    if moving:
        given = [equations[k].unknown for k in repeating]
        raise StructureError(
            f"the equations do not determine {_names(moving)}: their Jacobian is singular "
            f"everywhere, because the equation{'' if len(given) == 1 else 's'} given for "
            f"{_names(given)} {'says' if len(given) == 1 else 'say'} nothing new, or the unknowns "
            "occur in one combination only, such as a product or a sum"
        )


def _undetermined(
    equations: Sequence[Equation],
) -> tuple[list[sp.Symbol], list[sp.Symbol]]:
    """Return unknowns that share too few equations, and the unknowns those are given for.

    A maximum matching of unknowns to equations that hold them; from an unknown that is left over,
    alternating paths reach just the unknowns that compete for the same equations.
    """
    unknowns = [e.unknown for e in equations]
    holding = {x: [k for k, e in enumerate(equations) if e.residual.has(x)] for x in unknowns}
    matching = maximum_matching(holding)
    owner = {k: x for x, k in matching.items()}
    reached = [x for x in unknowns if x not in matching][:1]
    competing: list[int] = []
    for x in reached:  # It grows while it is gone through.
        competing += [k for k in holding[x] if k not in competing]
        reached += [owner[k] for k in competing if owner[k] not in reached]
    return reached, [equations[k].unknown for k in sorted(competing)]


def code_names(
    symbols: Iterable[sp.Symbol], given: Mapping[sp.Symbol, str]
) -> dict[sp.Symbol, str]:
    """Return an identifier for each symbol: the one given, or its name made into one."""
    found = {}
    for x in symbols:
        name = given.get(x)
        if name is None:
            name = re.sub(r"\W+", "_", x.name.replace("'", "_prime")).strip("_") or "x"
            name = name if name.isidentifier() else f"x_{name}"
            name = f"{name}_" if keyword.iskeyword(name) else name
        # As Python reads names: two that look alike are one.
        found[x] = unicodedata.normalize("NFKC", name)
    return found


def check_identifiers(names: Mapping[sp.Symbol, str]) -> None:
    """Refuse two symbols with one name in code."""
    for name in _repeated(list(names.values())):
        same = [x for x, code in names.items() if code == name]
        raise ParameterError(
            f"the symbols {', '.join(map(repr, same))} would all be called {name!r} in code; "
            "give them different names with identifiers={symbol: 'name'}"
        )


def _repeated(items: Sequence[object]) -> list[object]:
    return [x for k, x in enumerate(items) if x in items[:k]]


def _names(items: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, items)))
