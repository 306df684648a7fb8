"""What an expansion tells in symbols: formulas, the equations of every order, LaTeX of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ...errors import ParameterError
from ...numeric.arguments import whole_number

if TYPE_CHECKING:
    import sympy as sp

    from .symbolic_series import SymbolicSeries


class FormulaAccess:
    """The symbolic side of an expansion, derived when it is first asked for."""

    symbolic: SymbolicSeries | Callable[[], SymbolicSeries] | None

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
        found = self._system()
        return found.linear_system(_checked(order, 1, found))

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
        from .symbolic_series import equations_latex

        found = self._system()
        if order is None:
            return equations_latex(found, range(len(found.equations)))
        return equations_latex(found, [_checked(order, 0, found)])

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


def _checked(order: object, first: int, found: SymbolicSeries) -> int:
    number = whole_number("order", order, minimum=first)
    last = len(found.equations) - 1
    if number > last:
        raise ParameterError(
            f"order must be at most {last}, the last one of the equations here, got {number}"
        )
    return number
