"""Source code that tabulates the functions of the node: closed forms, or quadrature in NumPy.

The quadrature of each inner expectation is chosen from its integrand (:mod:`..regularity`):
Gauss–Hermite for entire functions of exponential type, the trapezoidal rule for other analytic
ones with the step from the distance of the nearest pole, split rules at kinks. All of them know the
highest frequency of the integrands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import sympy as sp
from sympy.core.function import AppliedUndef

from ...errors import EmissionError
from ..expressions.bivariate_normal import BivariateNormalCDF
from ..expressions.functions import OwenT, relu
from ..expressions.regularity import ImaginaryGrowth, analyse, highest_frequency
from ..gaussian.accuracy import rewrite_for_accuracy
from ..gaussian.expectation import GaussianExpectation
from ..printing.printers import MpmathPrinter, NumpyPrinter, helper_definitions
from .lower import table_name
from .product_measures import ProductMeasure, even_nodes, fading_poles
from .smoothed_functions import SmoothedFunctions, is_smoothed, smoothed_functions

# Entire functions of exponential type: 48 nodes integrate exp(i w z) to 1e-16 up to w = 5; the
# caller checks against 96 nodes and refines where that is not enough.
_HERMITE_NODES = 48
# Of sin(kappa): at a sixth of it for a step, there are ten nodes to a period of 2*pi.
_WIDTH_OF_SINE = 4


@dataclass(frozen=True)
class InnerMeasure:
    """How an inner expectation is summed, from its integrands.

    Attributes
    ----------
    variable : Symbol
    kinks : tuple of Expr
        Break points of a split rule; empty for the trapezoidal rule.
    strips : tuple of Expr
        Distances of poles from the real axis; empty where there are none.
    growths : tuple of Expr
        Coefficients a of a growth like exp(a*y**2) in the imaginary direction.
    waves : tuple of Expr
        Highest frequencies of the integrands, without those that are zero or not known: rules are
        refined until two agree where they are not known, or depend on the node.
    entire : bool
        All integrands are entire functions of exponential type.
    """

    variable: sp.Symbol
    kinks: tuple[sp.Expr, ...]
    strips: tuple[sp.Expr, ...]
    growths: tuple[sp.Expr, ...]
    waves: tuple[sp.Expr, ...]
    entire: bool

    @classmethod
    def of(
        cls, variable: sp.Symbol, integrands: Iterable[sp.Expr], node: sp.Symbol | None = None
    ) -> InnerMeasure:
        """Return the measure of integrands; waves that depend on `node` are left out."""
        found = [analyse(f, variable) for f in integrands]
        kinks = dict.fromkeys(k for a in found for k in a.kinks)
        others = [
            a
            for a in found
            if not (a.strip == sp.oo and a.imaginary_growth is ImaginaryGrowth.EXPONENTIAL)
            and not a.kinks
        ]
        # Where no distance is known, one, from which the rule is refined until it agrees.
        strips = [sp.S.One if a.strip is None or a.strip == 0 else a.strip for a in others]
        growths = [a.gaussian_coefficient or sp.S.Zero for a in others]
        known = [a.frequency for a in found if a.frequency is not None and a.frequency != 0]
        return cls(
            variable,
            tuple(kinks),
            tuple(dict.fromkeys(s for s in strips if s != sp.oo)),
            tuple(dict.fromkeys(g for g in growths if g != 0)),
            tuple(dict.fromkeys(w for w in known if node is None or not w.has(node))),
            not others and not kinks,
        )


def closed_or_node(definition: sp.Expr, tables: Mapping[sp.Expr, sp.Expr] | None = None) -> sp.Expr:
    """Return a table's definition in the form in which it is evaluated.

    Closed forms are taken where a rule gives one, except for expectations that refer to other
    tables: those are residual variances, whose closed form subtracts nearly equal numbers; as an
    integral of a square they lose nothing. Where the other tables are polynomials, as for a
    polynomial activation, everything cancels exactly and a polynomial remains.
    """
    closed = {}
    for n in definition.atoms(GaussianExpectation):
        integrand = n.integrand
        if not integrand.atoms(AppliedUndef):
            closed[n] = _emittable(n)
            continue
        integrand = integrand.xreplace(dict(tables or {}))
        if integrand.is_polynomial(n.variable) and not integrand.atoms(AppliedUndef):
            closed[n] = sp.factor_terms(
                sp.expand(GaussianExpectation(integrand, n.variable).doit())
            )
    return definition.xreplace(closed)


def evaluated_forms(definitions: Mapping[sp.Expr, sp.Expr]) -> dict[sp.Expr, sp.Expr]:
    """Return :func:`closed_or_node` of every table, each in the light of the ones before it."""
    forms: dict[sp.Expr, sp.Expr] = {}
    for function, definition in definitions.items():
        forms[function] = closed_or_node(definition, forms)
    return forms


def table_source(
    definitions: Mapping[sp.Expr, sp.Expr],
    *,
    node: sp.Symbol,
    identifiers: Mapping[sp.Symbol, str],
    parameters: Sequence[sp.Symbol],
    printer: type[NumpyPrinter] = NumpyPrinter,
    product: ProductMeasure | None = None,
) -> str:
    """Return the source of ``inner_rules``, ``outer_scale``, ``breaks`` and ``tables``.

    With inner nodes also of ``product_scales``, ``product_tables``, ``NESTED`` and, for each inner
    node S, ``product_breaks_S``.

    Parameters
    ----------
    definitions : mapping from applied function to Expr
        Tables in an order in which each refers to earlier ones only.
    node : Symbol
        The outer variable.
    identifiers : mapping from Symbol to str
        Code names of the parameters.
    parameters : sequence of Symbol
        Signature of the generated functions after the node.
    printer : type of NumpyPrinter
        Prints for arrays, of NumPy or of a module with the same functions.
    product : ProductMeasure, optional

    Raises
    ------
    EmissionError
        If an inner expectation mixes two Gaussian variables.
    """
    code = {p: sp.Symbol(identifiers[p], **p.assumptions0) for p in parameters}
    forms = evaluated_forms(definitions)
    source = _ArrayText(node, code, [str(code[p]) for p in parameters], printer())
    widths, kinks = outer_widths(definitions, node), outer_breaks(definitions, node)
    if product is not None:
        widths = tuple(dict.fromkeys((*widths, *product.outer_scales)))
        kinks = tuple(dict.fromkeys((*kinks, *product.outer_breaks)))
    body = [source.rules(forms), source.scale(widths), source.breaks(kinks), source.tables(forms)]
    if product is not None:
        body += source.product(product)
    text = "\n\n".join(body)
    header = "import math\n\nimport numpy as np\n"
    if "scipy.special" in text:
        header += "import scipy.special\n"
    helpers = helper_definitions(printer, text)
    return header + "\n\n" + (helpers + "\n\n" if helpers else "") + text


def mpmath_table_source(
    definitions: Mapping[sp.Expr, sp.Expr],
    *,
    node: sp.Symbol,
    identifiers: Mapping[sp.Symbol, str],
    parameters: Sequence[sp.Symbol],
    product: ProductMeasure | None = None,
) -> str:
    """Return the source of ``tables(node, …, rule)`` at one node, in an mpmath context `ctx`.

    With inner nodes also of ``product_breaks_S(node, …)`` for each of them, which returns a list,
    of ``product_tables(node, inner nodes, …, tables)`` at one point, which takes and returns
    tuples, of what :func:`.fading_poles` returns, ``POWER`` and ``FADING``, functions of parameters
    and unknowns by name, and of the names of :func:`.even_nodes`, ``EVEN``.

    ``rule(slot, function, kinks)`` returns the expectations of all values of ``function(slot)``,
    ``rule.smoothed(slot, functions, A, B, terms, extent, kinks)`` those of
    :mod:`.smoothed_functions`; the caller supplies it. Closed forms are taken wherever a rule gives
    one, and squares are multiplied out so that each inner variable is integrated over once: spare
    digits pay for the cancellation.
    """
    code = {p: sp.Symbol(identifiers[p], **p.assumptions0) for p in parameters}
    printer = MpmathPrinter()
    signature = ", ".join([str(node), *(str(code[p]) for p in parameters)])
    lines = [f"def tables({signature}, rule):"]
    varying = (node, *definitions)
    forms = {
        f: d.xreplace({n: _multiplied_out(n, varying) for n in d.atoms(GaussianExpectation)})
        for f, d in definitions.items()
    }
    marks: dict[sp.Expr, sp.Expr] = {}
    nodes = {n for form in forms.values() for n in form.atoms(GaussianExpectation)}
    for variable in sorted({n.variable for n in nodes}, key=str):
        members = sorted((n for n in nodes if n.variable == variable), key=str)
        for k, group in enumerate(smoothed_functions(members, varying)):
            lines += _smoothed_lines(f"{variable}{k}", group, node, code, printer)
            marks |= {n: value.xreplace(code) for n, value in group.values.items()}
        members = [n for n in members if n not in marks]
        if not members:
            continue
        integrands = [n.integrand.xreplace(code) for n in members]
        names = [sp.Symbol(f"mean_{variable}{k}", real=True) for k in range(len(members))]
        marks |= dict(zip(members, names, strict=True))
        kinks = dict.fromkeys(k for f in integrands for k in analyse(f, variable).kinks)
        shared, values = sp.cse(
            integrands, symbols=sp.numbered_symbols("shared_"), optimizations=[], order="none"
        )
        lines.append(f"    def integrands_{variable}({variable}):")
        lines += [f"        {x} = {printer.print(value)}" for x, value in shared]
        lines.append(f"        return ({', '.join(map(printer.print, values))},)")
        lines.append(
            f"    {', '.join(map(str, names))}, = rule({str(variable)!r}, integrands_{variable}, "
            f"[{', '.join(map(printer.print, kinks))}])"
        )
    tables: dict[sp.Expr, sp.Symbol] = {}
    for function, form in forms.items():
        value = form.xreplace(marks).xreplace({**tables, **code})
        tables[function] = sp.Symbol(table_name(function), real=True)
        text = printer.print(value)
        # A variance, written as a difference, is positive but for rounding.
        text = f"max({text}, ctx.zero)" if function.is_nonnegative else text
        lines.append(f"    {tables[function]} = {text}")
    lines.append(f"    return ({''.join(f'{t}, ' for t in tables.values())})")
    if product is not None:
        names = [str(code[p]) for p in parameters]
        lines += _mpmath_product(product, node, code, identifiers, names, tables)
    body = "\n".join(lines) + "\n"
    helpers = helper_definitions(MpmathPrinter, body)
    return (helpers + "\n\n" if helpers else "") + body


def _smoothed_lines(
    slot: str, group: SmoothedFunctions, node: sp.Symbol, code: Mapping[sp.Expr, sp.Symbol],
    printer: MpmathPrinter,
) -> list[str]:  # fmt: skip
    shared, values = sp.cse(
        [f.xreplace(dict(code)) for f in group.functions],
        symbols=sp.numbered_symbols("shared_"), optimizations=[], order="none",
    )  # fmt: skip
    slope = sp.diff(group.offset, node) if group.offset.is_polynomial(node) else sp.S.Zero
    slope = sp.S.Zero if slope.has(node) or slope.atoms(AppliedUndef) else slope
    offset, spread, slope = (
        printer.print(x.xreplace(dict(code))) for x in (group.offset, group.spread, slope)
    )
    extent = [
        ", ".join([first, *(printer.print(x.xreplace(dict(code))) for x in found)])
        for first, found in (
            ("ctx.inf", group.strips),
            ("ctx.zero", group.growths),
            ("ctx.zero", group.waves),
        )
    ]
    places = ", ".join(printer.print(k.xreplace(dict(code))) for k in group.kinks)
    kinks = f", [{places}]" if places else ""
    return [
        f"    def functions_{slot}({group.argument}):",
        *(f"        {x} = {printer.print(value)}" for x, value in shared),
        f"        return ({', '.join(map(printer.print, values))},)",
        f"    {', '.join(map(str, group.moments))}, = rule.smoothed({slot!r}, functions_{slot}, "
        f"{offset}, {spread}, {list(group.terms)!r}, "
        f"lambda: (min([{extent[0]}]), max([{extent[1]}]), max([{extent[2]}]), {slope}){kinks})",
    ]


def _mpmath_product(
    product: ProductMeasure, node: sp.Symbol, code: Mapping[sp.Expr, sp.Symbol],
    identifiers: Mapping[sp.Symbol, str], parameters: Sequence[str],
    tables: Mapping[sp.Expr, sp.Symbol],
) -> list[str]:  # fmt: skip
    printer = MpmathPrinter()
    lines = [f"NESTED = {product.nested}"]
    fading, power = fading_poles(product, node)
    for inner, distances in fading.items():
        # The unknowns are not known before there is a solution.
        known = {x: sp.Symbol(f"known[{name!r}]") for x, name in identifiers.items()}
        texts = ", ".join(printer.print(d.xreplace(known)) for d in distances)
        lines += [f"def product_poles_{inner}(known):", f"    return [{texts}]"]
    poles = ", ".join(f"{str(inner)!r}: product_poles_{inner}" for inner in fading)
    even = tuple(map(str, even_nodes(product)))
    lines += [f"FADING = {{{poles}}}", f"POWER = {power}", f"EVEN = {even!r}"]
    for depth, (inner, places) in enumerate(zip(product.symbols, product.breaks, strict=True)):
        earlier = map(str, product.symbols[:depth])
        texts = ", ".join(printer.print(p.xreplace(dict(code))) for p in places)
        signature = ", ".join([str(node), *earlier, *parameters])
        lines += [f"def product_breaks_{inner}({signature}):", f"    return [{texts}]"]
    inner_names = map(str, product.symbols)
    lines.append(
        f"def product_tables({', '.join([str(node), *inner_names, *parameters])}, tables):"
    )
    if tables:
        lines.append(f"    {', '.join(map(str, tables.values()))}, = tables")
    for function, value in product.definitions.items():
        text = printer.print(value.xreplace({**tables, **code}))
        lines.append(f"    {table_name(function)} = {text}")
    made = "".join(f"{table_name(f)}, " for f in product.definitions)
    lines.append(f"    return ({made})")
    return lines


def _multiplied_out(node: GaussianExpectation, varying: Collection[sp.Basic]) -> sp.Expr:
    """Write an expectation as a sum of closed forms and of nodes free of tables."""
    closed = _precise_form(node, varying)
    if not closed.has(GaussianExpectation):
        return closed
    terms = sp.Add.make_args(sp.expand(node.integrand))
    total = sp.Add(*(GaussianExpectation(term, node.variable) for term in terms))
    return total.xreplace({n: _precise_form(n, varying) for n in total.atoms(GaussianExpectation)})


def _precise_form(node: GaussianExpectation, varying: Collection[sp.Basic]) -> sp.Expr:
    """Return the closed form unless it holds an integral that takes longer than the node."""
    closed = _emittable(node)
    return node if closed.has(OwenT) and is_smoothed(node, varying) else closed


def _emittable(node: GaussianExpectation) -> sp.Expr:
    """Return the closed form, or the node if that needs the bivariate normal distribution.

    By Owen's T it takes as long as the integral, and has no digits beside a value of 1.
    """
    closed = node.doit()
    return node if closed.has(BivariateNormalCDF) else closed


def inner_integrands(forms: Mapping[sp.Expr, sp.Expr]) -> dict[sp.Symbol, list[sp.Expr]]:
    """Inner variables with the integrands over them, other tables held constant."""
    slots: dict[sp.Symbol, list[sp.Expr]] = {}
    for form in forms.values():
        for n in sorted(form.atoms(GaussianExpectation), key=str):
            if n.integrand.atoms(GaussianExpectation):
                raise EmissionError(f"nested inner expectations in {n}: give the inner one a name")
            constants = {f: sp.Dummy(real=True) for f in n.integrand.atoms(AppliedUndef)}
            slots.setdefault(n.variable, []).append(n.integrand.xreplace(constants))
    return slots


@dataclass(frozen=True)
class _ArrayText:
    """The functions of a module that tabulates on arrays, as text."""

    node: sp.Symbol
    code: Mapping[sp.Expr, sp.Symbol]
    parameters: Sequence[str]
    printer: NumpyPrinter

    def function(self, name: str, arguments: Sequence[object], about: str, *lines: str) -> str:
        signature = ", ".join(map(str, (self.node, *arguments)))
        head = f'def {name}({signature}):\n    """{about}"""\n'
        return head + "".join(f"    {line}\n" for line in lines)

    def text(self, expr: sp.Expr) -> str:
        found: str = self.printer.print(expr.xreplace(dict(self.code)))
        return found

    def rules(self, forms: Mapping[sp.Expr, sp.Expr]) -> str:
        entries = []
        for variable, integrands in inner_integrands(forms).items():
            measure = InnerMeasure.of(variable, integrands, self.node)
            zero = [sp.S.Zero]
            fastest = self.extreme("maximum", zero, measure.waves)
            if measure.kinks:
                rule = f'("split", ({self.columns(measure.kinks)}, {fastest}))'
            elif measure.entire:
                degree = max((_degree(f, variable) for f in integrands), default=0)
                rule = f'("hermite", ({max(_HERMITE_NODES, degree // 2 + 1)}, {fastest}))'
            else:
                strip = self.extreme("minimum", [] if measure.strips else [sp.oo], measure.strips)
                growth = self.extreme("maximum", [] if measure.growths else zero, measure.growths)
                rule = f'("trapezoidal", ({strip}, {growth}, {fastest}))'
            entries.append(f'"{variable}": {rule}')
        about = "Return {inner variable: (kind of rule, its argument)}, from the integrands."
        value = f"return {{{', '.join(entries)}}}"
        return self.function("inner_rules", self.parameters, about, value)

    def columns(self, places: Sequence[sp.Expr]) -> str:
        arrays = self.printer.arrays
        found = ", ".join(
            f"{arrays}.broadcast_to({self.text(p)}, {self.node}.shape)" for p in places
        )
        return f"{arrays}.stack([{found}], axis=1)"

    def extreme(self, name: str, least: Sequence[sp.Expr], values: Sequence[sp.Expr]) -> str:
        texts = dict.fromkeys("math.inf" if v == sp.oo else self.text(v) for v in (*least, *values))
        return reduce(lambda one, other: f"{self.printer.arrays}.{name}({one}, {other})", texts)

    def smallest(self, widths: Sequence[sp.Expr]) -> str:
        texts = [f"{self.printer.arrays}.abs({self.text(w)})" for w in widths]
        return f"min({', '.join(['1.0', *texts])})" if texts else "1.0"

    def scale(self, widths: Sequence[sp.Expr]) -> str:
        about = "Return the width in the node over which the tables vary, at most 1."
        value = f"return {self.smallest(widths)}"
        return self.function("outer_scale", self.parameters, about, value)

    def breaks(self, kinks: Sequence[sp.Expr]) -> str:
        about = "Return the nodes at which a table has a kink or a jump."
        value = f"return [{', '.join(map(self.text, kinks))}]"
        return self.function("breaks", self.parameters, about, value)

    def tables(self, forms: Mapping[sp.Expr, sp.Expr]) -> str:
        node, printer = self.node, self.printer
        slots = inner_integrands(forms)
        lines = [f"one = {printer.arrays}.ones_like({node})"]
        column = sp.Symbol(f"{node}_column", real=True)
        if slots:
            lines.append(f"{column} = {node}[:, None]")
        lines += [f"{v}, weight_{v} = rules[{str(v)!r}]" for v in slots]
        names: dict[sp.Expr, sp.Symbol] = {}
        columns: dict[sp.Expr, sp.Symbol] = {}
        shared: dict[sp.Expr, sp.Symbol] = {}
        for function, form in forms.items():
            value = form
            for count, n in enumerate(sorted(form.atoms(GaussianExpectation), key=str)):
                mark = sp.Symbol(f"{table_name(function)}_part{count}", real=True)
                integrand = n.integrand.xreplace(columns).xreplace({node: column, **self.code})
                integrand = rewrite_for_accuracy(integrand)
                # The expensive functions of the inner variable are computed once for all tables.
                for f in sorted(integrand.atoms(sp.Function), key=sp.default_sort_key):
                    if f.has(n.variable) and f not in shared:
                        shared[f] = sp.Symbol(f"value_{len(shared)}", real=True)
                        lines.append(f"{shared[f]} = {printer.print(f)}")
                text = printer.print(integrand.xreplace(shared))
                lines.append(
                    f"{mark} = {printer.arrays}.sum(weight_{n.variable} * ({text}), axis=1)"
                )
                value = value.xreplace({n: mark})
            names[function] = sp.Symbol(table_name(function), real=True)
            columns[function] = sp.Symbol(f"{table_name(function)}[:, None]", real=True)
            text = printer.print(rewrite_for_accuracy(value.xreplace(names).xreplace(self.code)))
            lines.append(f"{names[function]} = ({text}) * one")
        entries = ", ".join(f'"{name}": {name}' for name in names.values())
        about = f"""Return {{{{table: its values at the nodes}}}}; `{node}` has shape (K,).

    `rules` holds nodes and weights, of shape (1, n) or (K, n), for each inner variable.
    """
        about = about.replace("{{", "{").replace("}}", "}")
        made = f"return {{{entries}}}"
        return self.function("tables", [*self.parameters, "rules"], about, *lines, made)

    def product(self, product: ProductMeasure) -> list[str]:
        """Return the functions that make a grid of inner nodes and tabulate on it."""
        scales = ", ".join(map(self.smallest, product.scales))
        functions = [
            f"# Whether averages over the inner nodes are taken at each node.\n"
            f"NESTED = {product.nested}\n",
            self.function(
                "product_scales", self.parameters,
                "Return the widths in the inner nodes over which integrands vary, at most 1.",
                f"return [{scales}]",
            ),
        ]  # fmt: skip
        arrays = self.printer.arrays
        for depth, (inner, places) in enumerate(zip(product.symbols, product.breaks, strict=True)):
            value = self.columns(places) if places else f"{arrays}.empty((len({self.node}), 0))"
            functions.append(
                self.function(
                    f"product_breaks_{inner}", [*product.symbols[:depth], *self.parameters],
                    f"Return where integrands have kinks or jumps in {inner}, a row for a node.",
                    f"return {value}",
                )
            )  # fmt: skip
        lines = [f"one = {arrays}.ones_like({self.node})"]
        names: dict[sp.Expr, sp.Symbol] = {}
        for value in product.definitions.values():
            for f in sorted(value.atoms(AppliedUndef), key=str):
                if f not in names:
                    names[f] = sp.Symbol(table_name(f), real=True)
                    lines.append(f"{names[f]} = tables[{table_name(f)!r}]")
        for function, value in product.definitions.items():
            accurate = rewrite_for_accuracy(value.xreplace(names).xreplace(dict(self.code)))
            lines.append(f"{table_name(function)} = ({self.printer.print(accurate)}) * one")
        made = ", ".join(f'"{table_name(f)}": {table_name(f)}' for f in product.definitions)
        about = """Return {table: its values on the grid}; all arrays have one shape.

    `tables` holds the functions of the node at the same points.
    """
        arguments = [*product.symbols, *self.parameters, "tables"]
        made = f"return {{{made}}}"
        return [*functions, self.function("product_tables", arguments, about, *lines, made)]


def _degree(integrand: sp.Expr, variable: sp.Symbol) -> int:
    return int(sp.degree(integrand, variable)) if integrand.is_polynomial(variable) else 0


def outer_widths(definitions: Mapping[sp.Expr, sp.Expr], node: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return the widths in the node over which the smoothed functions vary, up to their signs.

    A kink is smoothed over the ratio of inner and outer slope of its argument, and so is at least
    an exponential of a polynomial, however narrow; tanh and erf have a width of their own
    besides. A sine has its period, and the square of a product of sines half that of the product:
    nodes further apart than that see it as a slower one, all three rules the same. Polynomials and
    their products with exp(a*kappa) set no scale. A table that is stated
    as linear in the node is the argument of functions, which vary where it does by one.
    """
    widths = []
    for definition in definitions.values():
        explicit = not definition.has(AppliedUndef, GaussianExpectation)
        slope = definition.diff(node) if explicit else sp.S.Zero
        if slope != 0 and not slope.has(node):
            widths.append(1 / slope)
        for n in definition.atoms(GaussianExpectation):
            for f in n.integrand.atoms(sp.Function):
                if isinstance(f, AppliedUndef):
                    continue
                inner, outer = f.args[0].diff(n.variable), f.args[0].diff(node)
                ratio = sp.cancel(inner / outer) if outer != 0 else sp.S.Zero
                if ratio == 0 or ratio.has(node, n.variable):
                    continue
                affine = not inner.has(node, n.variable)
                if isinstance(f, sp.sin | sp.cos):
                    width = _WIDTH_OF_SINE / outer if affine else ratio
                elif isinstance(f, sp.exp) and affine:
                    continue
                else:
                    kinked = isinstance(f, relu | sp.Abs | sp.sign | sp.Heaviside | sp.exp)
                    width = ratio if kinked or not affine else sp.sqrt(1 + inner**2) / outer
                widths.append(width)
            fastest = highest_frequency(n.integrand, node)
            if fastest:
                widths.append(2 * _WIDTH_OF_SINE / fastest)
    return tuple(dict.fromkeys(widths))


def outer_breaks(definitions: Mapping[sp.Expr, sp.Expr], node: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return the kinks of tables that no inner expectation smooths."""
    kinks: list[sp.Expr] = []
    for definition in definitions.values():
        if not definition.has(GaussianExpectation):
            kinks += analyse(definition, node).kinks
    return tuple(dict.fromkeys(kinks))
