"""A series of a solution in a small quantity: coefficients, remainder, region, and what it shows.

The small quantity x is 1/α for many samples, else the parameter itself. Exponents are fractions:
at an interpolation threshold the ridge penalty enters by its square root, and a peak starts with
a negative one.
"""

from __future__ import annotations

import difflib
import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sympy as sp
from mpmath.libmp import repr_dps
from numpy.typing import NDArray
from sympy.core.function import AppliedUndef

from ...digits import checked_digits, held_digits
from ...errors import ApproximationWarning, ParameterError
from ...json_document import JsonDocument
from ...numeric.arguments import checked_switch, real_number, whole_number
from ...packed_numbers import SentWithDigits
from ...pages import Table, Typeset, as_html
from ...runtime.precision import local_context
from ..figures import BLUE, GREEN, GREY, VERMILLION, drawing
from ..formulas import latex

if TYPE_CHECKING:
    import xarray as xr

LARGE_ALPHA, SMALL_RIDGE, SMALL_STEP = "large_alpha", "small_ridge", "small_step"
NAMES = {
    LARGE_ALPHA: ("alpha", "many samples, alpha = n/d to infinity"),
    SMALL_RIDGE: ("ridge", "a vanishing ridge penalty"),
    SMALL_STEP: ("step_size", "short steps, towards random features"),
}
"""Expansions with their parameter and what it does."""

MOST_ORDERS = 20
"""Beyond that coefficients say nothing that the exact solution does not say sooner."""


def checked_name(name: object) -> str:
    """Return the name of an expansion.

    Raises
    ------
    ParameterError
        If there is none of that name; the message has the closest one.
    """
    return chosen("name", name, NAMES, "expansion")


def chosen(argument: str, value: object, known: Iterable[str], kind: str) -> str:
    """Return a text that is one of those known; the refusal names the closest one."""
    names = list(known)
    if isinstance(value, str) and value in names:
        return value
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ParameterError(
        f"{argument} = {value!r} is no {kind}; {hint}there are {', '.join(map(repr, names))}"
    )


def checked_order(order: object) -> int:
    """Return the last order of a series, a whole number from 0 to 20."""
    result = whole_number("order", order, minimum=0)
    if result > MOST_ORDERS:
        raise ParameterError(f"order must be at most {MOST_ORDERS}, got {result}")
    return result


# Longer lines of an equation are broken.
_LINE = 160


@dataclass(frozen=True)
class SymbolicSeries:
    """The symbolic side of an expansion.

    Attributes
    ----------
    formulas : mapping from str to tuple of Expr
        The coefficients of an output, aligned with the exponents of the expansion from the left;
        perhaps fewer.
    definitions : mapping from Expr to Expr
        What formulas and equations name: symbols, and functions under averages.
    equations : tuple of tuple of Eq
        For each order, the equations of the coefficients of the unknowns at that order.
    unknowns : tuple of tuple of Symbol
        For each order, these coefficients.
    scalings : mapping from Symbol to Expr
        Unknowns in terms of the series of their coefficients, for print.
    """

    formulas: Mapping[str, tuple[sp.Expr, ...]]
    definitions: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)
    equations: tuple[tuple[sp.Eq, ...], ...] = ()
    unknowns: tuple[tuple[sp.Symbol, ...], ...] = ()
    scalings: Mapping[sp.Expr, sp.Expr] = field(default_factory=dict)

    def explicit(self, expr: sp.Expr) -> sp.Expr:
        """Return an expression without what the definitions name."""
        while named(expr) & self.definitions.keys():
            expr = expr.xreplace(dict(self.definitions))
        return expr

    def linear_system(self, order: int) -> tuple[sp.Matrix, sp.Matrix, sp.Matrix]:
        """Return J, X and b of the equations J X = b of an order from 1."""
        unknowns = self.unknowns[order]
        zero = dict.fromkeys(unknowns, sp.S.Zero)
        residuals = [self.explicit(e.lhs - e.rhs) for e in self.equations[order]]
        matrix = sp.Matrix([[r.diff(x) for x in unknowns] for r in residuals])
        return matrix, sp.Matrix(unknowns), sp.Matrix([-r.xreplace(zero) for r in residuals])


def named(expr: sp.Expr) -> set[sp.Expr]:
    """Return the symbols and functions in an expression."""
    return expr.free_symbols | expr.atoms(AppliedUndef)


def used_definitions(
    definitions: Mapping[sp.Expr, sp.Expr], expressions: Sequence[sp.Expr]
) -> dict[sp.Expr, sp.Expr]:
    """Return the definitions that expressions need, also for what these name."""
    wanted = {x for e in expressions for x in named(e)} & definitions.keys()
    while more := {x for w in wanted for x in named(definitions[w]) & definitions.keys()} - wanted:
        wanted |= more
    return {x: value for x, value in definitions.items() if x in wanted}


def equations_latex(series: SymbolicSeries, orders: Sequence[int]) -> str:
    """Return equations as an aligned environment, with what they name below."""
    lines = [rf"{latex(x)} &= {latex(value)}" for x, value in series.scalings.items()]
    for k in orders:
        lines.append(rf"&\text{{order {k}:}}")
        lines += [rf"{latex(e.lhs)} &= {_broken(e.rhs)}" for e in series.equations[k]]
    sides = [side for k in orders for e in series.equations[k] for side in e.args]
    definitions = used_definitions(series.definitions, sides)
    if definitions:
        lines.append(r"&\text{where}")
        lines += [rf"{latex(x)} &= {_broken(value)}" for x, value in definitions.items()]
    body = " \\\\\n".join(lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"


def _broken(expr: sp.Expr) -> str:
    """Return LaTeX with long sums on several lines."""
    whole = latex(expr)
    if len(whole) <= _LINE or not expr.is_Add:
        return whole
    lines = [""]
    for term in expr.as_ordered_terms():
        text = latex(term)
        sign = "" if text.startswith("-") or lines == [""] else "+ "
        if lines[-1] and len(lines[-1]) + len(text) > _LINE:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{sign}{text}"
    return " \\\\\n&\\quad ".join(lines)


def _checked(order: object, first: int, result: SymbolicSeries) -> int:
    number = whole_number("order", order, minimum=first)
    last = len(result.equations) - 1
    if number > last:
        raise ParameterError(
            f"order must be at most {last}, the last one of the equations here, got {number}"
        )
    return number


# A series is trusted where the first neglected term is at most this part of its value.
_TRUSTED = 0.01

Term = tuple[Fraction, Any]
Exact = Callable[[Any, int | None], Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class Expansion(SentWithDigits, Typeset, JsonDocument):
    r"""A truncated series :math:`\sum_k c_k x^{e_k} + O(x^e)` of every output of a solution.

    Attributes
    ----------
    name : str
        "large_alpha", "small_ridge" or "small_step".
    parameter : str
        "alpha", "ridge" or "step_size".
    point : float
        What the parameter tends to: inf or 0.
    exponents : tuple of Fraction
        e_k, ascending, the same for all outputs.
    coefficients : mapping from str to tuple of mpmath numbers
        c_k of every output; the first output is the default one.
    neglected : mapping from str to (Fraction, mpmath number), or None
        The first term of every output that was left out and does not vanish; None where none was
        found: the series ends. An infinite coefficient says that only the exponent is known: the
        remainder is no power series.
    remainder_order : Fraction
        e: the first exponent that was left out.
    digits : int
        Of the coefficients.
    fixed : mapping
        The model's parameters and what is held fixed, as plain values.
    symbols : mapping from str to str
        LaTeX of the outputs.
    region : str
        Where the series holds.
    rests_on : str
        What the coefficients rest on.
    radius : mpmath number or None
        The series converges for x below it (inf: everywhere); None where that is not known.
    symbolic : SymbolicSeries or callable, optional
        Coefficients as formulas, or what derives them when they are first asked for; None where
        there are none, as for an expansion that was read from a file.
    exact : callable, optional
        Returns the outputs of the exact solution at a value of the parameter, with so many digits
        or as floats; None for an expansion that was read from a file.
    """

    _document = "expansion"

    name: str
    parameter: str
    point: float
    exponents: tuple[Fraction, ...]
    coefficients: Mapping[str, tuple[Any, ...]]
    neglected: Mapping[str, Term | None]
    remainder_order: Fraction
    digits: int
    fixed: Mapping[str, Any]
    symbols: Mapping[str, str]
    region: str
    rests_on: str
    radius: Any = None
    symbolic: SymbolicSeries | Callable[[], SymbolicSeries] | None = field(
        default=None, compare=False
    )
    exact: Exact | None = field(default=None, compare=False)

    # ------------------------------------------------------------------ what it holds

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what is expanded."""
        return tuple(self.coefficients)

    @property
    def order(self) -> Fraction:
        """The last exponent that is kept."""
        return self.exponents[-1]

    def output(self, name: str | None) -> str:
        """Return the name of an output, by default the first.

        Raises
        ------
        ParameterError
            If there is none of that name; the message has the closest one.
        """
        return self.outputs[0] if name is None else chosen("output", name, self.outputs, "output")

    def terms(self, output: str | None = None) -> tuple[Term, ...]:
        """Return exponents and coefficients of the terms that do not vanish."""
        values = self.coefficients[self.output(output)]
        return tuple((e, c) for e, c in zip(self.exponents, values, strict=True) if c)

    @property
    def trusted_up_to(self) -> float:
        """The value of the parameter up to which the first neglected term is at most 1 %.

        Of the default output, compared with its leading term, and within the radius; the smallest
        such value for an expansion towards infinity, the largest for one towards zero.
        """
        limit = math.inf if self.radius is None else float(self.radius)
        terms, left = self.terms(), self.neglected[self.outputs[0]]
        if terms and left is not None:
            power, first = terms[0]
            ratio = abs(first / left[1]) * _TRUSTED
            limit = min(limit, float(ratio ** (1 / self._number(left[0] - power))))
        return limit if self.point == 0 else 1 / limit if limit else math.inf

    # ------------------------------------------------------------------ values

    def __call__(self, value: Any, output: str | None = None) -> Any:
        """Return the truncated series.

        Parameters
        ----------
        value : float, mpmath number or array of float
            Of the parameter; a float is read as the decimal that it prints as.
        output : str, optional
            Default: the first.

        Returns
        -------
        float, mpmath number or array of float
            As `value`.

        Raises
        ------
        ParameterError
            If the value is no positive number, or the series diverges there; if there is no such
            output.

        Warns
        -----
        ApproximationWarning
            Outside the radius of convergence, or where the estimated remainder is larger than the
            value.
        """
        name = self.output(output)
        terms = self.terms(name)

        def total(x: Any) -> Any:
            if not x and terms and terms[0][0] < 0:
                raise ParameterError(
                    f"{name} diverges for {self.parameter} = {self.point:g}: its series begins "
                    f"with the power {terms[0][0]}"
                )
            return sum((c * self._power(x, e) for e, c in terms), self._context.zero)

        result = self._mapped(value, total)
        self._warn(value, result, name)
        return result

    def estimate_of_remainder(self, value: Any, output: str | None = None) -> Any:
        """Return the estimated size of what the series leaves out.

        The first neglected term, times the sum of a geometric series if the radius of convergence
        is known; infinite beyond that, and 0 for a series that ends. An estimate, no bound.
        """
        name = self.output(output)
        left = self.neglected[name]

        def estimate(x: Any) -> Any:
            if self.radius is not None and x >= self.radius:
                return self._context.inf
            if left is None:
                return self._context.zero
            if self._context.isinf(left[1]):
                return self._context.inf if x else self._context.zero
            size = abs(left[1]) * self._power(x, left[0])
            if self.radius is None:
                return size
            return size / (1 - self._power(x / self.radius, self._spacing))

        return self._mapped(value, estimate)

    @property
    def _context(self) -> Any:
        return next(iter(self.coefficients.values()))[0].context

    @property
    def _spacing(self) -> Fraction:
        return self.remainder_order - self.exponents[-1]

    def _number(self, fraction: Fraction) -> Any:
        return self._context.mpf(fraction.numerator) / fraction.denominator

    def _power(self, x: Any, exponent: Fraction) -> Any:
        if exponent == 0:
            return self._context.one
        return x ** (int(exponent) if exponent.denominator == 1 else self._number(exponent))

    def _mapped(self, value: Any, function: Callable[[Any], Any]) -> Any:
        """Return a function of the small quantity, in the kind of number that was given."""
        if hasattr(value, "_mpf_"):
            return function(self._small(self._context.convert(value), value))
        if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
            number = real_number(self.parameter, value)
            return float(function(self._small(self._context.mpf(repr(number)), value)))
        if isinstance(value, np.ndarray | list | tuple):
            try:
                array = np.asarray(value)
            except ValueError:
                array = np.array(None)
            if array.dtype.kind in "fiu" and array.size:
                items = [self._mapped(x, function) for x in array.ravel().tolist()]
                return np.array(items).reshape(array.shape)
        raise ParameterError(
            f"{self.parameter} must be a positive number or an array of them, got {value!r}"
        )

    def _small(self, number: Any, given: Any) -> Any:
        """Return the small quantity of a value of the parameter."""
        if self.point:
            if not number > 0:
                raise ParameterError(f"{self.parameter} must be positive, got {given!r}")
            return 1 / number
        if not 0 <= number < self._context.inf:
            raise ParameterError(f"{self.parameter} must be positive and finite, got {given!r}")
        return number

    def _warn(self, value: Any, result: Any, name: str) -> None:
        left = np.asarray(self.estimate_of_remainder(value, name), dtype=float)
        size = np.abs(np.asarray(result, dtype=float))
        # Of a series that has not begun the order is all that is known.
        bad = left > (size if self.terms(name) else np.full_like(size, np.finfo(float).max))
        unknown = self.neglected[name]
        if self.radius is None and unknown is not None and self._context.isinf(unknown[1]):
            # Nothing is known that could be compared with the value.
            bad = np.zeros_like(bad)
        if not bad.any():
            return
        at = float(np.asarray(value, dtype=float)[bad].flat[0])
        why = f"the estimated remainder is {float(left[bad].flat[0]):.2g}"
        if math.isinf(left[bad].flat[0]):
            limit = float(self.radius)
            edge = f"{'> ' if self.point else '< '}{1 / limit if self.point else limit:.4g}"
            why = f"convergence is known for {self.parameter} {edge} only"
        warnings.warn(
            f"the expansion of {name} says nothing at {self.parameter} = {at:g}: {why}; solve "
            "there instead",
            ApproximationWarning,
            stacklevel=3,
        )

    # ------------------------------------------------------------------ formulas

    @cached_property
    def _derived(self) -> SymbolicSeries | None:
        return self.symbolic() if callable(self.symbolic) else self.symbolic

    @property
    def has_derived_formulas(self) -> bool:
        """Whether formulas are known without a derivation: a file then holds them as LaTeX."""
        return "_derived" in self.__dict__ or not (self.symbolic is None or callable(self.symbolic))

    @property
    def formulas(self) -> Mapping[str, tuple[sp.Expr, ...]]:
        r"""The coefficients of outputs as formulas, aligned with the exponents from the left.

        Derived when they are first asked for; empty where there are none, and fewer than exponents
        where they would fill pages. They name coefficients of order parameters,
        :math:`V_{1,0}` and so on, that :attr:`equations` determine, and functions of κ under
        averages, such as the conditional variance :math:`v_0(\kappa)`, which :attr:`definitions`
        has.
        """
        return {} if self._derived is None else self._derived.formulas

    @property
    def definitions(self) -> Mapping[sp.Expr, sp.Expr]:
        """What formulas and equations name: symbols, and functions under averages."""
        return {} if self._derived is None else self._derived.definitions

    @property
    def equations(self) -> tuple[tuple[sp.Eq, ...], ...]:
        """The equations of every order, derived when they are first asked for.

        Of order 0 the leading system; of an order k from 1 equations that are linear in the
        coefficients of order k, with those of lower orders given.

        Raises
        ------
        ParameterError
            If there are none: the coefficients are closed formulas, or were read from a file.
        """
        return self._system().equations

    @property
    def unknowns(self) -> tuple[tuple[sp.Symbol, ...], ...]:
        """The coefficients that the equations of every order determine."""
        return self._system().unknowns

    def linear_system(self, order: int) -> tuple[sp.Matrix, sp.Matrix, sp.Matrix]:
        r"""Return J, X and b of the linear equations :math:`J(X_0)\,X_k = b` of an order.

        Parameters
        ----------
        order : int
            k, from 1.

        Raises
        ------
        ParameterError
            If there are no equations, or none of that order.
        """
        result = self._system()
        return result.linear_system(_checked(order, 1, result))

    def explicit(self, expr: sp.Expr) -> sp.Expr:
        """Return a formula with everything that :attr:`definitions` name written out."""
        return expr if self._derived is None else self._derived.explicit(expr)

    def latex_equations(self, order: int | None = None) -> str:
        """Return the equations in LaTeX, as an environment ``aligned``.

        Parameters
        ----------
        order : int, optional
            Of this order only; default: of all.

        Raises
        ------
        ParameterError
            If there are no equations, or none of that order.
        """
        result = self._system()
        if order is None:
            return equations_latex(result, range(len(result.equations)))
        return equations_latex(result, [_checked(order, 0, result)])

    @property
    def has_equations(self) -> bool:
        """Whether there are equations of every order."""
        return self._derived is not None and bool(self._derived.equations)

    def _system(self) -> SymbolicSeries:
        if self._derived is None or not self._derived.equations:
            why = (
                "it was read from a file, or its model has closed formulas of the coefficients, "
                "if any (formulas=True)"
                if self._derived is None
                else "its coefficients are closed formulas: see formulas"
            )
            raise ParameterError(f"this expansion has no equations of each order: {why}")
        return self._derived

    # ------------------------------------------------------------------ presentation

    def latex(self, output: str | None = None, *, formulas: bool = False, digits: int = 6) -> str:
        """Return the series in LaTeX, without delimiters.

        Parameters
        ----------
        output : str, optional
            Default: the first.
        formulas : bool
            The coefficients as formulas, as far as they are known, instead of numbers.
        digits : int
            Of the numbers.
        """
        name = self.output(output)
        if checked_switch("formulas", formulas):
            return _formulas_latex(self, name)
        return _series_latex(self, name, checked_digits(digits))

    def _repr_html_(self) -> str:
        rows = [
            (f"${self.symbols.get(o, o)}$", *(held_digits(c, min(10, self.digits)) for c in cs))
            for o, cs in self.coefficients.items()
        ]
        head = ("", *(f"${power(self, e) or '1'}$" for e in self.exponents))
        return as_html([Table(rows, head), self.region, self.rests_on])

    def __str__(self) -> str:
        name = self.parameter
        width = max(map(len, self.outputs)) + 2
        lines = [self.region]
        for output in self.outputs:
            parts = []
            for exponent, value in self.terms(output):
                shown = -exponent if self.point else exponent
                factor = "" if not shown else f" {name}" if shown == 1 else f" {name}^({shown})"
                parts.append(held_digits(value, min(12, self.digits)) + factor)
            left = self.neglected[output]
            if left is not None:
                shown = -left[0] if self.point else left[0]
                parts.append(f"O({name}^({shown}))")
            lines.append(f"{output:<{width}}{' + '.join(parts) or '0'}".replace("+ -", "- "))
        limit = self.trusted_up_to
        if math.isfinite(limit) and limit:
            side = ">=" if self.point else "<="
            lines.append(
                f"first neglected term of {self.outputs[0]} below 1 % for {name} {side} {limit:.4g}"
            )
        return "\n".join([*lines, self.rests_on])

    def __repr__(self) -> str:
        return (
            f"Expansion({self.name!r}, outputs={len(self.outputs)}, orders "
            f"{self.exponents[0]}..{self.order}, remainder O({self.remainder_order}))"
        )

    def plot(
        self,
        output: str | None = None,
        *,
        exact: bool = True,
        digits: int | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Any:
        """Draw the series, the exact solution, and how the error falls.

        Parameters
        ----------
        output : str, optional
            Default: the first.
        exact : bool
            With the exact solution, and a second panel: errors of all orders, with the slopes that
            the remainders have.
        digits : int, optional
            Of the exact solution, so that errors below 1e-16 show; default: floats.
        ax : matplotlib.axes.Axes, or two of them, optional
            Where to draw; default: a new figure, found as ``axes.figure``.
        style : optional
            Keywords of matplotlib's lines, for the exact solution.

        Returns
        -------
        matplotlib.axes.Axes, or an array of two with `exact`

        Raises
        ------
        ParameterError
            If an expansion that was read from a file is to be compared with the exact solution.
        """
        exact, output = checked_switch("exact", exact), self.output(output)
        if digits is not None:
            checked_digits(digits)
        if exact and self.exact is None:
            raise ParameterError(
                "an expansion that was read from a file has no exact solution to compare with; use "
                "exact=False, or ask the model for the expansion again"
            )
        values = _grid(self)
        small = [_small(self, v) for v in values]
        size = _SIZE if exact else (6.0, 4.0)
        with drawing(ax, style, size=size, panels=2 if exact else None) as (axes, pen):
            axes = np.atleast_1d(axes)
            _draw_series(axes[0], self, output, values, small)
            if exact and self.exact is not None:
                true = [self.exact(float(v), digits)[output] for v in values]
                curve = [float(t) for t in true]
                look = pen("exact", color=BLUE, alpha=0.6, linewidth=3, zorder=2)
                axes[0].plot(values, curve, **look)
                _draw_errors(axes[1], self, output, values, small, true)
            axes[0].legend(frameon=False)
        return axes if exact else axes[0]

    # ------------------------------------------------------------------ storage

    def to_dataset(self) -> xr.Dataset:
        """Return the coefficients of every output over the exponents, as floats."""
        import xarray as xr

        values = {
            name: ("exponent", [float(c) for c in known], {"symbol": self.symbols[name]})
            for name, known in self.coefficients.items()
        }
        about = {"expansion": self.name, "parameter": self.parameter, "region": self.region}
        return xr.Dataset(
            values, {"exponent": [float(e) for e in self.exponents]},
            {**about, "remainder_order": float(self.remainder_order), "rests_on": self.rests_on},
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the expansion as plain values; numbers as text with all their digits."""
        result = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_STORED}
        return {
            **result,
            "point": "inf" if self.point else 0,
            "exponents": [str(e) for e in self.exponents],
            "remainder_order": str(self.remainder_order),
            "coefficients": {k: [_text(c) for c in v] for k, v in self.coefficients.items()},
            "neglected": {
                k: None if v is None else [str(v[0]), _text(v[1])]
                for k, v in self.neglected.items()
            },
            "radius": None if self.radius is None else _text(self.radius),
            "fixed": {k: "inf" if v == math.inf else v for k, v in self.fixed.items()},
            "symbols": dict(self.symbols),
            _FORMULAS: _formula_texts(self) if self.has_derived_formulas else {},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the expansion of :meth:`to_dict`, without formulas and exact solution.

        Raises
        ------
        ParameterError
            If the values are no expansion.
        """
        return cls(**_arguments(values))

    def __getstate__(self) -> dict[str, Any]:
        # Derived again where they are wanted: functions of SymPy cannot be pickled.
        return {name: x for name, x in super().__getstate__().items() if name != "_derived"}


_LETTERS = {"alpha": r"\alpha", "ridge": r"\lambda", "step_size": r"\eta"}
# Longer formulas fill more than a page.
_LONGEST = 2000


def _series_latex(expansion: Expansion, output: str, digits: int) -> str:
    """Return the series with numbers."""
    parts: list[str] = []
    for exponent, value in expansion.terms(output):
        shown = _number(value, min(digits, expansion.digits))
        sign = "-" if shown.startswith("-") else "+" if parts else ""
        factor = power(expansion, exponent)
        product = rf"{shown.lstrip('-')}\,{factor}" if factor else shown.lstrip("-")
        parts.append(f"{sign} {product}" if parts else f"{sign}{product}")
    return _finished(expansion, output, parts or ["0"])


def _formulas_latex(expansion: Expansion, output: str) -> str:
    """Return the series with formulas, as far as they are known, and what they name."""
    texts = _formula_texts(expansion).get(output, [])
    if not texts:
        raise ParameterError(
            f"there are no formulas of {output}: after one gradient step, ask the model for the "
            "expansion with formulas=True, or for the numbers without it (students and teachers "
            "without linear part and linear students have none); a file keeps none"
        )
    parts: list[str] = []
    for exponent, text in zip(expansion.exponents, texts, strict=False):
        if text == "0":
            continue
        factor = power(expansion, exponent)
        product = rf"\left({text}\right){factor}" if factor else text
        parts.append(f"+ {product}" if parts else product)
    left = expansion.exponents[len(texts) :]
    shown = _finished(expansion, output, parts or ["0"], left[0] if left else None)
    return shown + _definitions_latex(expansion, output, len(texts))


def _definitions_latex(expansion: Expansion, output: str, count: int) -> str:
    """Return what the formulas name, after a comma."""
    used = used_definitions(expansion.definitions, expansion.formulas[output][:count])
    return "".join(rf",\quad {latex(symbol)} = {latex(value)}" for symbol, value in used.items())


def _formula_texts(expansion: Expansion) -> dict[str, list[str]]:
    """Return the formulas as LaTeX, those of readable size."""
    if not expansion.formulas:
        return {}
    result: dict[str, list[str]] = {}
    for output, formulas in expansion.formulas.items():
        texts: list[str] = []
        for formula in formulas:
            text = latex(formula)
            if len(text) > _LONGEST:
                break
            texts.append(text)
        result[output] = texts
    return result


def _finished(
    expansion: Expansion, output: str, parts: list[str], order: Fraction | None = None
) -> str:
    """Return "letter = sum + O(…)"; a series that ends has no remainder."""
    left = expansion.neglected[output]
    if order is None and left is not None:
        order = left[0]
    if order is not None:
        parts = [*parts, f"+ O({power(expansion, order)})"]
    return f"{expansion.symbols.get(output, output)} = {' '.join(parts)}"


def power(expansion: Expansion, exponent: Fraction) -> str:
    """Return a power of the small quantity; nothing for the power 0."""
    shown = -exponent if expansion.point else exponent
    letter = expansion.symbols.get(expansion.parameter, _LETTERS[expansion.parameter])
    if shown == 0:
        return ""
    if shown == 1:
        return letter
    if shown.denominator == 1:
        return f"{letter}^{{{shown.numerator}}}"
    return f"{letter}^{{{shown.numerator}/{shown.denominator}}}"


def _number(value: Any, digits: int) -> str:
    text = held_digits(value, digits)
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


_NOT_STORED = ("exact", "symbolic")
_FORMULAS = "formulas_latex"


def _arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the expansion that :func:`plain_values` wrote.

    Raises
    ------
    ParameterError
        If the values are no expansion.
    """
    try:
        given = {k: v for k, v in values.items() if k not in ("kind", _FORMULAS)}
        expected = {"name", "coefficients", "exponents", "neglected", "digits", "symbols"}
        if not expected <= set(given):
            raise ValueError(f"there is no {min(expected - set(given))!r}")
        chosen("name", given["name"], NAMES, "expansion")
        given["digits"] = checked_digits(given["digits"])
        make = local_context(given["digits"]).mpf
        given["point"] = math.inf if given["point"] == "inf" else 0.0
        given["exponents"] = tuple(map(Fraction, given["exponents"]))
        given["remainder_order"] = Fraction(given["remainder_order"])
        given["coefficients"] = {k: tuple(map(make, v)) for k, v in given["coefficients"].items()}
        given["neglected"] = {
            k: None if v is None else (Fraction(v[0]), make(v[1]))
            for k, v in given["neglected"].items()
        }
        if given["radius"] is not None:
            given["radius"] = make(given["radius"])
        given["fixed"] = {k: math.inf if v == "inf" else v for k, v in given["fixed"].items()}
        known = set(given["coefficients"])
        sizes = {len(v) for v in given["coefficients"].values()}
        if sizes != {len(given["exponents"])} or set(given["neglected"]) != known:
            raise ValueError("coefficients, exponents and neglected terms do not fit")
    except ParameterError as error:
        raise ParameterError(f"this is no expansion written by to_dict: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise ParameterError(
            f"this is no expansion written by to_dict: {type(error).__name__}: {error}"
        ) from None
    names = {"region", "rests_on", "parameter", "point", "remainder_order", "radius", "fixed"}
    if unknown := set(given) - expected - names:
        raise ParameterError(
            f"this is no expansion written by to_dict: it has an entry {min(unknown)!r}"
        )
    if missing := names - set(given):
        raise ParameterError(
            f"this is no expansion written by to_dict: there is no {min(missing)!r}"
        )
    return given


def _text(number: Any) -> str:
    """Return a number with all digits that its context has, so that it reads back the same."""
    return str(number.context.nstr(number, repr_dps(number.context.prec)))


_COLOURS = (VERMILLION, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
_POINTS = 25
_DECADES = 3.0
_DECADE = 10.0
# From the edge of where the series converges or is trusted, whichever is farther.
_EDGE = 3.0
_SIZE = (9.5, 4.0)
# Decades beside the points: room for the exponents, and a margin.
_ROOM, _MARGIN = 0.45, 0.1
# Beyond five orders colours repeat, with another dash and another mark.
_DASHES = ((4, 2), (1, 1.2), (6, 1.5, 1, 1.5), (2, 2))
_MARKS = "osv^"


def _grid(expansion: Expansion) -> NDArray[np.float64]:
    """Return values of the parameter, three decades from where the series is worth nothing."""
    edge = 1 / expansion.trusted_up_to if expansion.point else expansion.trusted_up_to
    edge *= _EDGE
    if expansion.radius is not None:
        edge = min(edge, 0.95 * float(expansion.radius))
    edge = edge if np.isfinite(edge) and edge > 0 else 1.0
    small = np.geomspace(edge, edge * 10**-_DECADES, _POINTS)
    return 1 / small if expansion.point else small


def _small(expansion: Expansion, value: float) -> Any:
    """Return the small quantity of the decimal number that is solved for: no float 1/α."""
    ctx = next(iter(expansion.coefficients.values()))[0].context
    number = ctx.mpf(repr(float(value)))
    return 1 / number if expansion.point else number


def _partial(expansion: Expansion, output: str, small: list[Any], end: int) -> list[Any]:
    """Return the sum of the first terms, as numbers with all digits."""
    terms = expansion.terms(output)[:end]
    ctx = expansion.coefficients[output][0].context
    result = []
    for x in small:
        powers = (x ** (ctx.mpf(e.numerator) / e.denominator) for e, _ in terms)
        result.append(ctx.fdot((c for _, c in terms), powers))
    return result


def _draw_series(
    axes: Any, expansion: Expansion, output: str, values: NDArray[np.float64], small: list[Any]
) -> None:
    terms = expansion.terms(output)
    for k in range(len(terms)):
        shown = power(expansion, terms[k][0])
        axes.plot(
            values,
            [float(v) for v in _partial(expansion, output, small, k + 1)],
            color=_COLOURS[k % len(_COLOURS)],
            linestyle=(0, _DASHES[k // len(_COLOURS) % len(_DASHES)]),
            linewidth=1.4,
            zorder=3,
            label=f"to ${shown}$" if shown else "leading term" if k == 0 else "to the constant",
        )
    axes.set_xscale("log")
    axes.set_xlabel(_label(expansion))
    total = np.array(_partial(expansion, output, small, len(terms)), dtype=float)
    if total.min() > 0 and total.max() > _DECADE * total.min():
        axes.set_yscale("log")
    axes.set_ylabel(f"${expansion.symbols.get(output, output)}$")
    axes.grid(True, color="#e4e4e4", linewidth=0.6)


def _draw_errors(
    axes: Any,
    expansion: Expansion,
    output: str,
    values: NDArray[np.float64],
    small: list[Any],
    true: list[Any],
) -> None:
    """Draw the errors of all partial sums, each with the slope of what it leaves out."""
    terms = expansion.terms(output)
    left = expansion.neglected[output]
    following = [(e, float(abs(c))) for e, c in terms[1:]]
    if left is not None:
        following.append((left[0], float(abs(left[1]))))
    for k in range(len(terms)):
        partial = _partial(expansion, output, small, k + 1)
        ctx = partial[0].context
        errors = np.array(
            [float(abs(ctx.convert(t) - p)) for t, p in zip(true, partial, strict=True)]
        )
        colour = _COLOURS[k % len(_COLOURS)]
        seen = errors > 0
        mark = _MARKS[k // len(_COLOURS) % len(_MARKS)]
        axes.plot(values[seen], errors[seen], mark, color=colour, markersize=3.5)
        if k < len(following) and np.isfinite(following[k][1]):
            exponent, size = following[k]
            slope = [size * float(x) ** float(exponent) for x in small]
            axes.plot(values, slope, color=GREY, linewidth=1, zorder=1)
            axes.text(
                values[-1], slope[-1], f"  {exponent}  ",
                color=colour, fontsize=10, va="center",
                ha="left" if expansion.point else "right",
            )  # fmt: skip
    axes.set_xscale("log")
    before, after = (_MARGIN, _ROOM) if expansion.point else (_ROOM, _MARGIN)
    axes.set_xlim(values.min() * 10**-before, values.max() * 10**after)
    with warnings.catch_warnings():
        # Errors that are all zero leave nothing to draw.
        warnings.simplefilter("ignore", UserWarning)
        axes.set_yscale("log")
    axes.set_xlabel(_label(expansion))
    axes.set_ylabel("error of the truncated series")
    axes.grid(True, color="#e4e4e4", linewidth=0.6)


def _label(expansion: Expansion) -> str:
    return {
        "alpha": r"sample complexity $\alpha = n/d$",
        "ridge": r"ridge penalty $\lambda$",
        "step_size": "step size",
    }[expansion.parameter]
