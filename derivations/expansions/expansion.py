"""A series of a solution in a small quantity: coefficients, remainder, region, and what it shows.

The small quantity x is 1/α for many samples, else the parameter itself. Exponents are fractions:
at an interpolation threshold the ridge penalty enters by its square root, and a peak starts with
a negative one.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...digits import checked_digits
from ...errors import ApproximationWarning, ParameterError
from ...json_document import JsonDocument
from ...numeric.arguments import checked_switch, real_number
from ...pages import Typeset
from ...runtime.precision import local_context
from .formula_access import FormulaAccess
from .names import chosen

if TYPE_CHECKING:
    from .symbolic_series import SymbolicSeries

# A series is trusted where the first neglected term is at most this part of its value.
_TRUSTED = 0.01

Term = tuple[Fraction, Any]
Exact = Callable[[Any, int | None], Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class Expansion(Typeset, FormulaAccess, JsonDocument):
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

        found = self._mapped(value, total)
        self._warn(value, found, name)
        return found

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

    def _warn(self, value: Any, found: Any, name: str) -> None:
        left = np.asarray(self.estimate_of_remainder(value, name), dtype=float)
        size = np.abs(np.asarray(found, dtype=float))
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
        from .presentation import formulas_latex, series_latex

        name = self.output(output)
        if checked_switch("formulas", formulas):
            return formulas_latex(self, name)
        return series_latex(self, name, checked_digits(digits))

    def _repr_html_(self) -> str:
        from .presentation import html_table

        return html_table(self)

    def __str__(self) -> str:
        from .presentation import text

        return text(self)

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

        Returns
        -------
        matplotlib.axes.Axes, or a pair of them with `exact`

        Raises
        ------
        ParameterError
            If an expansion that was read from a file is to be compared with the exact solution.
        """
        from .figure import plot_expansion

        exact = checked_switch("exact", exact)
        return plot_expansion(self, self.output(output), exact=exact, digits=digits, ax=ax)

    # ------------------------------------------------------------------ storage

    def to_dict(self) -> dict[str, Any]:
        """Return the expansion as plain values; numbers as text with all their digits."""
        from .storage import plain_values

        return plain_values(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the expansion of :meth:`to_dict`, without formulas and exact solution.

        Raises
        ------
        ParameterError
            If the values are no expansion.
        """
        from .storage import arguments

        return cls(**arguments(values))

    def __getstate__(self) -> dict[str, Any]:
        # Numbers of a local mpmath context cannot be pickled; their bits can.
        state = dict(self.__dict__)
        # Derived again where they are wanted: functions of SymPy cannot be pickled.
        state.pop("_derived", None)
        state["coefficients"] = {k: tuple(c._mpf_ for c in v) for k, v in self.coefficients.items()}
        state["neglected"] = {
            k: None if v is None else (v[0], v[1]._mpf_) for k, v in self.neglected.items()
        }
        state["radius"] = None if self.radius is None else self.radius._mpf_
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        make = local_context(state["digits"]).make_mpf
        state["coefficients"] = {k: tuple(map(make, v)) for k, v in state["coefficients"].items()}
        state["neglected"] = {
            k: None if v is None else (v[0], make(v[1])) for k, v in state["neglected"].items()
        }
        state["radius"] = None if state["radius"] is None else make(state["radius"])
        self.__dict__.update(state)
