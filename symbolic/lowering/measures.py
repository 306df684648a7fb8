"""Pass 2: choose how each average over the node is computed, and on which scale integrands vary.

An integrand that is smooth in the node goes on the fixed nodes of the line, which all averages
share and on which tables are known. A kink or a jump at a place that depends on unknowns or
parameters would cost the trapezoidal rule its accuracy, so such an integrand is cut there:
:class:`~.program.Panels`. The break points come from the arguments of the functions and cases that
are not smooth; those that are affine in the node give one point each.

Three rules that all step over a narrow feature agree, and agree on a wrong number. So the distance
of the nearest pole, or the period of a sine, is an expression in parameters and unknowns, and
solvers refine until their nodes are closer than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from itertools import chain, combinations
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from ...errors import UnsupportedExpressionError
from ...runtime.rules import FARTHEST_REACH, LONGER_REACH, REACH
from ..expressions.averages import DataAverage, outermost
from ..expressions.functions import log_normal_cdf, relu
from ..expressions.regularity import highest_frequency, strip_and_growth
from ..expressions.shared_parts import free_symbols, parts_of, replaced
from ..gaussian.accuracy import rewrite_for_accuracy
from ..gaussian.expectation import GaussianExpectation, JointExpectation
from ..losses.proximal import MoreauEnvelope, Proximal
from ..printing.compiled import with_helpers
from ..printing.language import Function, Kind, Language, Parameter
from ..printing.printers import NumpyPrinter
from ..printing.spellings import ArrayLanguage
from .driver import FIRST_STEP

if TYPE_CHECKING:
    from .lowered import LoweredSystem

_KINKED = (sp.Abs, sp.sign, sp.Heaviside, relu)


def break_points(integrand: sp.Expr, node: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return where an integrand has kinks or jumps in the node, as far as they are affine.

    Parameters
    ----------
    integrand : Expr
    node : Symbol

    Returns
    -------
    tuple of Expr
        Empty for a smooth integrand, and for one that reads tables: those are known at the fixed
        nodes only, and a smooth table has no break.

    Examples
    --------
    >>> z, m = sp.symbols("z m", real=True)
    >>> break_points(sp.Abs(2 * z - m) + sp.tanh(z), z)
    (m/2,)
    """
    if parts_of(integrand, AppliedUndef):
        return ()
    found: dict[sp.Expr, None] = {}
    for argument in chain.from_iterable(map(pieces, switches(integrand))):
        if argument.has(Proximal, MoreauEnvelope):
            continue
        slope = argument.diff(node)
        if slope != 0 and not slope.has(node):
            found[_ratio(-argument.xreplace({node: sp.S.Zero}), slope)] = None
    return tuple(found)


def switches(integrand: sp.Expr) -> Iterator[sp.Expr]:
    """Iterate over the expressions at whose zeros the integrand is not smooth."""
    for f in sorted(parts_of(integrand, *_KINKED), key=sp.default_sort_key):
        yield f.args[0]
    for f in sorted(integrand.atoms(sp.Max, sp.Min), key=sp.default_sort_key):
        for a, b in combinations(sorted(f.args, key=sp.default_sort_key), 2):
            yield a - b
    for cases in sorted(integrand.atoms(sp.Piecewise), key=sp.default_sort_key):
        for _, condition in cases.args:
            for relation in sorted(condition.atoms(Relational), key=sp.default_sort_key):
                yield relation.lhs - relation.rhs


def pieces(argument: sp.Expr) -> Iterator[sp.Expr]:
    """Iterate over what an argument is in turn, where it is not smooth itself.

    A zero of the wrong piece costs one more cut.
    """
    bent = sorted(parts_of(argument, sp.Max, sp.Min, sp.Abs, relu, sp.Piecewise), key=sp.count_ops)
    if not bent:
        yield argument
        return
    inner = bent[0]
    if isinstance(inner, sp.Piecewise):
        values = [value for value, _ in inner.args]
    elif isinstance(inner, sp.Max | sp.Min):
        values = list(inner.args)
    else:
        values = [inner.args[0], -inner.args[0] if isinstance(inner, sp.Abs) else sp.S.Zero]
    for value in values:
        yield from pieces(argument.xreplace({inner: value}))


def _ratio(numerator: sp.Expr, slope: sp.Expr) -> sp.Expr:
    """Divide; a slope of zero sends the break anywhere, where one more cut does no harm."""
    if slope.is_nonzero:
        return numerator / slope
    # The division is safe to compute whatever the case. One case inside the other: SymPy would join
    # equal branches by an Or, which no target has.
    below = sp.Piecewise((sp.S.Zero, slope < 0), (sp.S.One, True))
    return numerator / (slope + sp.Piecewise((sp.S.Zero, slope > 0), (below, True)))


def describe_measures(
    integrands: Mapping[sp.Expr, str],
    node: sp.Symbol,
    inner_nodes: Mapping[sp.Expr, sp.Symbol] | None = None,
) -> str:
    """Return one line for each average: its rule and its integrand."""
    inner_nodes = inner_nodes or {}
    lines = []
    for average, place in integrands.items():
        if isinstance(average, DataAverage):
            rule = f"mean over the rows of {average.data_name}"
        else:
            breaks = break_points(average.args[0], node)
            cuts = ", ".join(map(str, breaks))
            rule = f"panels between {node} = {cuts}" if breaks else "nodes of the line"
            if inner_nodes:
                names = ", ".join(map(str, (node, *inner_nodes.values())))
                rule = f"nodes of the grid ({names})"
        lines.append(f"{place}: {rule}: {average.args[0]}")
    return "\n".join(lines) if lines else "no averages"


# Of sin(w*z): with half of it, divided by w, for a step there are six nodes to a period of its
# square even on the coarsest rule, whose step is four times as long.
_WIDTH_OF_SINE = sp.Rational(1, 2)
_COMMON_WIDTH = sp.Rational(1, 2)
# Of standard deviations beyond the centre of the mass: with so many its larger part is seen, and
# the difference of two rules, of which one ends a tenth before the other, shows what is not.
_SEEN = sp.Rational(16, 5)
# Steps fall with this power of the reach: with each level one is halved, the other grows.
_STEP_BY_REACH = round(math.log(2, LONGER_REACH), 2)
# A scale that every rule resolves.
_LARGE = 10**6
# Functions that neither grow nor decay like exponentials.
_LEVEL = (sp.sin, sp.cos, sp.tanh, sp.erf, sp.sign, sp.atan, sp.log, sp.Abs)
# Where arguments are not linear in the node, their slopes are taken there.
_SAMPLES = tuple(sp.Rational(k, 2) for k in range(-10, 11))


def integrand_widths(lowered: LoweredSystem) -> tuple[sp.Expr, ...]:
    """Return scales on which integrands vary, in the code symbols of parameters and unknowns."""
    system = lowered.system
    names = {x: sp.Symbol(c, **x.assumptions0) for x, c in lowered.identifiers.items()}
    arguments = {*system.parameters, *system.unknowns}
    places = [e.sides[1] for e in system.equations]
    found: dict[sp.Expr, None] = {}
    slopes = _Slopes(arguments)
    for place in (*places, *system.outputs.values()):
        for node in _expectations(place):
            integrand = node.integrand if lowered.product is None else _flat(node)
            for width in _widths(integrand, node.variable, slopes):
                # Numbers near one are no news: every rule resolves them.
                if width.is_number and not width < _COMMON_WIDTH:
                    continue
                if width.free_symbols <= arguments:
                    found[width.xreplace(names)] = None
    return tuple(found)


def _expectations(expr: sp.Expr) -> Iterator[GaussianExpectation]:
    """Iterate over expectations and those inside of them."""
    for node in outermost(expr, GaussianExpectation):
        yield node
        yield from _expectations(node.integrand)


def _flat(node: GaussianExpectation) -> sp.Expr:
    """Return an integrand without inner expectations of its variable, as a grid sums it."""
    joint = parts_of(node.integrand, JointExpectation)
    integrand = replaced(node.integrand, {n: n.nested() for n in joint})
    nodes = parts_of(integrand, GaussianExpectation)
    inner = [n for n in nodes if node.variable in free_symbols(n)]
    found = {}
    for n in inner:
        variable = sp.Dummy(real=True)
        found[n] = replaced(_flat(n), {n.variable: variable})
    return replaced(integrand, found)


class _Slopes:
    """Slopes of the arguments of integrands, each worked out once: integrands share most."""

    def __init__(self, known: Set[sp.Basic]) -> None:
        self._known = known
        self._seen: set[tuple[sp.Expr, sp.Symbol]] = set()
        self._constants: dict[sp.Basic, sp.Dummy] = {}

    def constant(self, table: sp.Basic) -> sp.Dummy:
        """Return what stands for a table of the node, the same in all integrands."""
        return self._constants.setdefault(table, sp.Dummy(positive=True))

    def knows(self, expr: sp.Expr) -> bool:
        """Whether a scale may be made of `expr`, which then holds no tables."""
        return expr.free_symbols <= self._known

    def new_widths(self, argument: sp.Expr, z: sp.Symbol) -> list[sp.Expr]:
        """Return the scales of an argument at the samples of `z`; none if it was met before."""
        if (argument, z) in self._seen:
            return []
        self._seen.add((argument, z))
        slope = argument.diff(z)
        # What stands around a loss follows its argument: both proximal operator and envelope
        # have slopes of at most one in it.
        if slope == 0 or slope.has(sp.Derivative, sp.Subs, Proximal, MoreauEnvelope):
            return []
        if not slope.has(z):
            slopes = [slope]
        else:
            # What is beside the node in a slope that no scale can hold is gone at zero at most.
            samples = _SAMPLES if slope.free_symbols <= {*self._known, z} else (0,)
            slopes = [slope.subs(z, x) for x in samples]
        # Before `Abs` has looked for signs, which takes seconds.
        usable = [s for s in dict.fromkeys(slopes) if self.knows(s)]
        return [1 / sp.Abs(s) for s in usable if s not in (0, sp.nan, sp.zoo)]


def _widths(integrand: sp.Expr, z: sp.Symbol, slopes: _Slopes) -> list[sp.Expr]:
    # Tables of the node are constants here: their own scale is known to the rule already.
    tables = parts_of(integrand, AppliedUndef, GaussianExpectation, JointExpectation)
    integrand = replaced(integrand, {f: slopes.constant(f) for f in tables})
    losses = sorted(integrand.atoms(Proximal, MoreauEnvelope), key=str)
    strip, growth = _strip_and_growth(integrand, z)
    found: list[sp.Expr] = []
    if losses or strip is None:
        bells = {f: c for f in parts_of(integrand, sp.exp) if (c := curvature(f, z)) is not None}
        # Far out, where the exponent of a bell is steep, it is next to nothing.
        usable = dict.fromkeys(c for c in bells.values() if slopes.knows(c))
        found += [1 / sp.sqrt(sp.Abs(c)) for c in sorted(usable, key=str)]
        bent = [f for f in parts_of(integrand, sp.Function) if f not in bells and f.has(z)]
        arguments = [a for f in bent for a in _varying(f) if isinstance(a, sp.Expr)]
        for argument in [*arguments, *(loss.center for loss in losses)]:
            found += slopes.new_widths(argument, z)
    elif strip not in (0, sp.oo):
        found.append(strip)
    if growth not in (None, 0):
        found.append(1 / sp.sqrt(1 + 2 * sp.Abs(growth)))
    found += _scales_of_growth(integrand, z, slopes)
    for f in sorted(integrand.atoms(sp.sin, sp.cos), key=str):
        slope = f.args[0].diff(z)
        if slope != 0 and not slope.has(z):
            found.append(_WIDTH_OF_SINE / sp.Abs(slope))
    fastest = highest_frequency(integrand, z)
    if fastest and not fastest.has(z):
        # Of a product of more than two.
        found.append(2 * _WIDTH_OF_SINE / fastest)
    return found


def _scales_of_growth(integrand: sp.Expr, z: sp.Symbol, slopes: _Slopes) -> list[sp.Expr]:
    """Return scales that ask for rules which go as far as the mass of an integrand.

    With exp(a*z**2 + b*z) the mass is around b/(1 - 2*a). Where no rule reaches it, and where there
    is none since the expectation is infinite, the scale is zero: rules that all end before agree.
    """
    found = []
    for term in sp.Add.make_args(integrand):
        powers = _growth_of_product(term, z)
        # Signs are looked for in what becomes a scale alone, which takes long in what is long.
        if powers is None or not all(map(slopes.knows, powers)):
            continue
        a, b = powers
        if b == 0 and a.is_nonpositive:
            continue
        rest = sp.Max(0, 1 - 2 * a)
        far = sp.Abs(b) + _SEEN * sp.sqrt(rest)
        # The scale that asks for the level whose rules reach so far.
        scale = 2 * FIRST_STEP * (REACH * rest / far) ** _STEP_BY_REACH
        found += [scale, _LARGE * sp.Max(0, FARTHEST_REACH * rest - far)]
    return found


def _growth_of_product(term: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | None:
    """Return a and b of exp(a*z**2 + b*z) if a product grows or decays so, else None."""
    a = b = steepness = sp.S.Zero
    for factor in sp.Mul.make_args(term):
        base, power = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            powers = _quadratic(factor.args[0], z)
            if powers is None:
                return None
            a += powers[0]
            b += powers[1]
        elif isinstance(base, sp.cosh | sp.sinh) and power.is_Integer and power > 0:
            slope = base.args[0].diff(z)
            if slope.has(z):
                return None
            steepness += power * sp.Abs(slope)
        elif factor.has(z) and not (
            factor.is_polynomial(z) or (isinstance(base, _LEVEL) and power.is_positive)
        ):
            return None
    return a, sp.Abs(b) + steepness


def _varying(function: sp.Expr) -> tuple[sp.Basic, ...]:
    """Return that whose slopes say how fast a function varies: of most functions, the arguments."""
    if not isinstance(function, sp.log):
        return function.args
    # A logarithm varies with the relative change of its argument, such as a sum of cosh. That of
    # a Gaussian tail is smooth at any height, but where the tail is lost in 1 + erf, its slope
    # would be one over nothing.
    accurate = rewrite_for_accuracy(function)
    tails = accurate.atoms(log_normal_cdf)
    return tuple(tail.args[0] for tail in tails) if tails else (accurate,)


def curvature(function: sp.Expr, z: sp.Symbol) -> sp.Expr | None:
    """Return the second derivative of an exponent that is quadratic; None if it is not."""
    powers = _quadratic(function.args[0], z)
    return None if powers is None or powers[0] == 0 else 2 * powers[0]


def _quadratic(exponent: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, sp.Expr] | None:
    """Return a and b if an exponent is a*z**2 + b*z and a constant, else None.

    By derivatives: exponents of derivatives of a system are sums of products of long factors, which
    nothing here multiplies out.
    """
    if not exponent.is_polynomial(z):
        return None
    slope = exponent.diff(z)
    second = slope.diff(z)
    if second.has(z):
        second = sp.expand(second)
    return None if second.has(z) else (second / 2, slope.xreplace({z: sp.S.Zero}))


def _strip_and_growth(integrand: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr | None, sp.Expr | None]:
    try:
        return strip_and_growth(integrand, z)
    except UnsupportedExpressionError:
        # Case distinctions whose places move with the unknowns, where panels are cut.
        return None, None


def width_function(lowered: LoweredSystem, language: Language) -> Function | None:
    """Return ``integrand_width`` of all parameters and unknowns; None if nothing sets a scale.

    Scales that hold functions which the language lacks are left out.
    """
    program = lowered.program
    if not (program.tables or program.has_panels):
        return None
    unknowns = [lowered.identifiers[x] for x in lowered.system.unknowns]
    names = {str(p): sp.Symbol(f"p_{p}") for p in program.parameters}
    names |= {x: sp.Symbol(f"u_{x}") for x in unknowns}
    widths = [
        width.xreplace({x: names[str(x)] for x in width.free_symbols})
        for width in integrand_widths(lowered)
        if language.prints(width)
    ]
    if not widths:
        return None
    lines = ["width = inf"]
    for k in range(len(widths)):
        # A width that is no number tells nothing.
        lines += [f"value = abs(width_{k}_)", "width = value if value < width else width"]
    return Function(
        name="integrand_width",
        parameters=tuple(Parameter(str(x)) for x in names.values()),
        body="\n".join([*lines, "return width"]) + "\n",
        expressions={f"width_{k}_": w for k, w in enumerate(widths)},
        returns=Kind.REAL,
        documentation="Smallest scale in the node on which integrands vary at a solution.",
    )


def width_source(lowered: LoweredSystem) -> str:
    """Return :func:`width_text` as a module that NumPy runs; empty if nothing sets a scale."""
    text = width_text(lowered, {})
    return with_helpers(text, NumpyPrinter) if text else ""


def width_text(lowered: LoweredSystem, fixed: Mapping[str, float]) -> str:
    """Return ``width_at(rows, values)`` of parameters and outputs; empty if nothing sets a scale.

    Parameters
    ----------
    lowered : LoweredSystem
    fixed : mapping from str to float
        Parameters that rows do not have.
    """
    language = ArrayLanguage(NumpyPrinter())
    function = width_function(lowered, language)
    if function is None:
        return ""
    free = [str(p) for p in lowered.program.parameters if str(p) not in fixed]
    outputs = [str(x) for x in lowered.program.outputs]
    arguments = [
        repr(fixed[str(p)]) if str(p) in fixed else f"rows[:, {free.index(str(p))}]"
        for p in lowered.program.parameters
    ]
    arguments += [
        f"values[:, {outputs.index(lowered.identifiers[x])}]" for x in lowered.system.unknowns
    ]
    return f'''{language.source(function)}

def width_at(rows, values):
    """Return the smallest scale on which integrands vary at solutions of rows."""
    return integrand_width(
        {", ".join(arguments)},
    )
'''
