r"""The Hermite coefficients of one function, with what each of them rests on.

:math:`\mu_k = \mathbb{E}[f(z)\,\mathrm{He}_k(z)]`, z ~ N(0, 1), probabilists' polynomials, divided
by neither k! nor its root: :math:`f = \sum_k (\mu_k/k!)\,\mathrm{He}_k`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as AbstractSequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import sympy as sp

from ..digits import checked_digits
from ..errors import (
    ClosedFormNotFoundError,
    ExpressionError,
    ParameterError,
    UnsupportedExpressionError,
)
from ..pages import Table, Typeset, as_html
from .activations import Activation, activation, z
from .expression_text import expression_text
from .hermite_closed_forms import ClosedForm, closed_form_of
from .hermite_conventions import (
    he_coefficients_from_moments,
    orthonormal_coefficients_from_moments,
)
from .hermite_decay import Decay, decay_of
from .hermite_rules import Decomposition
from .parser import parse_expression
from .regularity import Parity, analyse

if TYPE_CHECKING:
    from .enclosures import Enclosure

_SHOWN_DIGITS = 15
_SHOWN_ORDERS = 12
_LONGEST_TEXT = 70


class CoefficientBasis(enum.Enum):
    """What a coefficient rests on."""

    EXACT = "exact algebra"
    PARITY_ZERO = "exact zero by parity"
    OPEN = "no closed form"


@dataclass(frozen=True, repr=False)
class HermiteCoefficients(Typeset, AbstractSequence[sp.Expr]):
    r"""The exact Hermite coefficients :math:`\mu_0, \dots, \mu_K` of a function, as a sequence.

    Made by :func:`.hermite.hermite_coefficients`; the constructor does not check anything.

    Attributes
    ----------
    function : Expr
        f as an exact expression in `variable`; its other symbols are parameters.
    variable : Symbol
        The standard normal variable.
    values : tuple of Expr
        The coefficients, free of floating-point numbers. Where no closed form is known they hold
        unevaluated expectations 𝔼.
    basis : tuple of CoefficientBasis
        What each rests on.
    name : str
        How the user called the function.

    Examples
    --------
    >>> from giantstep.symbolic.hermite import hermite_coefficients
    >>> relu = hermite_coefficients("relu", 4)
    >>> relu
    HermiteCoefficients('relu', order 4)
    >>> relu[2], relu[3], relu.parity.name
    (sqrt(2)/(2*sqrt(pi)), 0, 'NEITHER')
    >>> print(relu)
    f(z) = relu(z), mu_k = E[f(z) He_k(z)]
    k  mu_k                   basis
    0  sqrt(2)/(2*sqrt(pi))   exact algebra
    1  1/2                    exact algebra
    2  sqrt(2)/(2*sqrt(pi))   exact algebra
    3  0                      exact algebra
    4  -sqrt(2)/(2*sqrt(pi))  exact algebra
    """

    function: sp.Expr
    variable: sp.Symbol
    values: tuple[sp.Expr, ...]
    basis: tuple[CoefficientBasis, ...]
    name: str = field(compare=False)
    parts: Decomposition = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> sp.Expr: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[sp.Expr, ...]: ...
    def __getitem__(self, index: int | slice) -> sp.Expr | tuple[sp.Expr, ...]:
        return self.values[index]

    def __iter__(self) -> Iterator[sp.Expr]:
        return iter(self.values)

    @property
    def order(self) -> int:
        """The highest order K."""
        return len(self.values) - 1

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the function other than the variable, by name."""
        return tuple(sorted(self.function.free_symbols - {self.variable}, key=str))

    @property
    def activation(self) -> Activation | None:
        """The function as an activation in z; None if it has parameters or is constant."""
        if self.parameters or not self.function.has(self.variable):
            return None
        return activation(self.function.xreplace({self.variable: z}), argument="function")

    @cached_property
    def parity(self) -> Parity:
        """Even or odd if provable, for all values of the parameters."""
        try:
            return analyse(self.function, self.variable).parity
        except UnsupportedExpressionError:
            return Parity.NEITHER

    @cached_property
    def closed_form(self) -> ClosedForm | None:
        """The coefficients as an expression in a symbolic order k; None if no rule gives one."""
        if self.parts.open_terms:
            return None
        return closed_form_of(self.parts.sequence, self._names(), self.parity)

    def _names(self) -> set[str]:
        return {symbol.name for symbol in self.function.free_symbols}

    def require_closed_form(self) -> ClosedForm:
        """Return the closed form in k.

        Raises
        ------
        ClosedFormNotFoundError
            If there is none; the message names the part of the function that has none.
        """
        form = self.closed_form
        if form is None:
            kernel, powers = next(iter(self.parts.open_terms.items()))
            raise ClosedFormNotFoundError(
                f"the Hermite coefficients of {self.name} have no known closed form in k: "
                f"no rule for {self.variable ** max(powers) * kernel}\n"
                "  rules: polynomials times exp of a quadratic, sin, cos, erf, Phi, step, sign, "
                "relu or abs of an affine argument\n"
                "  single orders are exact or unevaluated expectations; evalf() gives digits"
            )
        return form

    @cached_property
    def decay(self) -> Decay | None:
        r"""Asymptotics of :math:`|\mu_k|/\sqrt{k!}`; None if unknown."""
        return decay_of(self.parts, self.variable, self._names())

    def he_coefficients(self) -> tuple[sp.Expr, ...]:
        """Return the coefficients c_k = μ_k/k! of f = Σ c_k He_k."""
        return he_coefficients_from_moments(self.values)

    def orthonormal_coefficients(self) -> tuple[sp.Expr, ...]:
        """Return μ_k/√k!, the coefficients in the orthonormal polynomials He_k/√k!."""
        return orthonormal_coefficients_from_moments(self.values)

    def evalf(self, digits: int = _SHOWN_DIGITS) -> tuple[sp.Expr, ...]:
        """Return the coefficients to a number of digits; exact zeros stay the integer 0.

        Parameters
        ----------
        digits : int
            Significant digits, 1 to 1000. Those of expectations without closed form come from
            quadrature that agrees with a finer one; for proven digits see `enclosures`.

        Raises
        ------
        ParameterError
            If `digits` is out of range or the function has parameters.
        ConvergenceError
            If a quadrature does not converge.
        """
        self._require_numbers(digits)
        return tuple(value if value == 0 else value.evalf(digits) for value in self.values)

    def enclosures(self, digits: int = _SHOWN_DIGITS) -> tuple[Enclosure, ...]:
        """Return proven enclosures of the coefficients, by ball arithmetic.

        Parameters
        ----------
        digits : int
            Significant digits to be proven, 1 to 1000.

        Raises
        ------
        MissingDependencyError
            If python-flint is not installed.
        ParameterError
            If `digits` is out of range or the function has parameters.
        GiantstepError
            If a coefficient cannot be enclosed, as in :mod:`.gaussian_enclosures`.
        """
        self._require_numbers(digits)
        from ..ball_library import require_flint
        from .enclosures import Enclosure
        from .gaussian_enclosures import enclosed_value

        require_flint()
        nothing = Enclosure(sp.S.Zero, sp.S.Zero)
        return tuple(nothing if value == 0 else enclosed_value(value, digits) for value in self)

    def _require_numbers(self, digits: int) -> None:
        checked_digits(digits)
        if self.parameters:
            names = ", ".join(map(str, self.parameters))
            raise ParameterError(
                f"the coefficients of {self.name} depend on {names}; substitute numbers in the "
                "function before asking for digits"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that JSON can hold.

        Raises
        ------
        ExpressionError
            If the function cannot be written as text that the parser reads.
        """
        symbols = [self.variable, *self.parameters]
        text = expression_text(self.function)
        if parse_expression(text, symbols, argument="function") != self.function:
            raise ExpressionError(f"function {text} does not read back as it is; rewrite it")
        return {
            "function": text,
            "variable": self.variable.name,
            "symbols": {symbol.name: dict(symbol.assumptions0) for symbol in symbols},
            "order": self.order,
            "coefficients": [str(value) for value in self.values],
            "basis": [basis.value for basis in self.basis],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HermiteCoefficients:
        """Return the coefficients that `to_dict` wrote, computed anew and compared.

        Raises
        ------
        ExpressionError
            If the dictionary is not such a one, or its coefficients are not those of its function.

        Examples
        --------
        >>> from giantstep.symbolic.hermite import hermite_coefficients
        >>> found = hermite_coefficients("gelu", 3)
        >>> HermiteCoefficients.from_dict(found.to_dict()) == found
        True
        """
        from .hermite import hermite_coefficients

        try:
            symbols = {
                str(name): sp.Symbol(str(name), **assumptions)
                for name, assumptions in data["symbols"].items()
            }
            variable, order, text = symbols[data["variable"]], data["order"], data["function"]
            stored = [str(value) for value in data["coefficients"]]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ExpressionError(
                f"the dictionary is not one of Hermite coefficients: {error!r}; "
                "give what to_dict returned"
            ) from None
        function = parse_expression(text, symbols, argument="function")
        found = hermite_coefficients(function, order, variable=variable)
        if [str(value) for value in found] != stored:
            raise ExpressionError(
                f"the stored coefficients are not those of {text}; compute them anew"
            )
        return found

    def __repr__(self) -> str:
        return f"HermiteCoefficients({self.name!r}, order {self.order})"

    def __str__(self) -> str:
        texts = [_shortened(str(value)) for value in self.values]
        wide, narrow = max(map(len, [*texts, "mu_k"])), len(str(self.order))
        lines = [
            f"f({self.variable}) = {self.function}, mu_k = E[f({self.variable}) "
            f"He_k({self.variable})]",
            f"{'k':<{narrow}}  {'mu_k':<{wide}}  basis",
        ]
        for k, (text, basis) in enumerate(zip(texts, self.basis, strict=True)):
            lines.append(f"{k:<{narrow}}  {text:<{wide}}  {basis.value}")
        return "\n".join(lines)

    def latex(self) -> str:
        """Return LaTeX: the closed form in k if there is one, else the coefficients, aligned."""
        if self.closed_form is not None:
            return self.closed_form.latex()
        rows = [rf"\mu_{{{k}}} &= {sp.latex(value)}" for k, value in enumerate(self.values)]
        if len(rows) > _SHOWN_ORDERS:
            rows = [*rows[:_SHOWN_ORDERS], r"&\;\;\vdots"]
        body = r" \\ ".join(rows)
        return rf"\begin{{aligned}} {body} \end{{aligned}}"

    def _repr_html_(self) -> str:
        rows = [
            (str(k), rf"$\displaystyle {sp.latex(value)}$", basis.value)
            for k, (value, basis) in enumerate(zip(self.values, self.basis, strict=True))
        ]
        title = f"Hermite coefficients of {self.function}"
        return as_html([title, Table(rows, ("k", "μ_k", "basis"))])


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
