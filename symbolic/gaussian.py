r"""The Gaussian expectation as a SymPy node.

``GaussianExpectation(f, z)`` is :math:`\mathbb{E}_z[f(z)]` with :math:`z \sim \mathcal{N}(0, 1)`;
every other symbol in `f` is a parameter. The node stays as it is until somebody asks for more:
``doit()`` looks for a closed form by rules (:mod:`.gaussian_rules`), ``diff`` differentiates under
the integral, ``evalf(n)`` integrates to `n` digits, and it prints as 𝔼.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from .averages import Average
from .gaussian_quadrature import expectation_value
from .gaussian_rules import closed_form

_PRECISION_STEP = 32


class GaussianExpectation(Average):
    r"""The expectation :math:`\mathbb{E}_z[f(z)]` over a standard normal variable z.

    Parameters
    ----------
    integrand : Expr
        f; factors that do not depend on `variable` are pulled out, an integrand that does not
        depend on it at all is returned unchanged.
    variable : Symbol
        The bound Gaussian variable z, declared real.

    Examples
    --------
    >>> z, a = sp.Symbol("z", real=True), sp.Symbol("a", positive=True)
    >>> GaussianExpectation(sp.erf(a * z) ** 2, z).doit().subs(a, 1)
    -4*atan(sqrt(5)/5)/pi + 1
    >>> GaussianExpectation(sp.tanh(a * z) * z, z).diff(a)
    E_z[z**2*(1 - tanh(a*z)**2)]
    >>> GaussianExpectation(sp.tanh(z) * z, z).evalf(25)
    0.6057055096021588255835402
    """

    def __new__(cls, integrand: Any, variable: Any) -> sp.Expr:  # type: ignore[misc]
        integrand = sp.sympify(integrand)
        if not isinstance(variable, sp.Symbol) or not _ranges_over_the_line(variable):
            raise TypeError(
                f"variable must be a SymPy Symbol declared real and nothing else, got {variable!r}"
            )
        return cls._build(integrand, variable)

    @property
    def integrand(self) -> sp.Expr:
        """The function under the expectation."""
        return self.args[0]

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        if symbol == self.variable:
            return sp.S.Zero
        return GaussianExpectation(self.integrand.diff(symbol), self.variable)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the closed form if a rule gives one; else the node with its inside done."""
        integrand = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        found = closed_form(integrand, self.variable)
        return GaussianExpectation(integrand, self.variable) if found is None else found

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        # SymPy asks for a few bits more or less each time; few precisions are few computations.
        rounded = -(-prec // _PRECISION_STEP) * _PRECISION_STEP
        value = expectation_value(self.integrand, self.variable, rounded)
        return sp.Float(value, precision=prec)

    def _sympystr(self, printer: Any) -> str:
        return f"E_{printer._print(self.variable)}[{printer._print(self.integrand)}]"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm

        inside = printer._print(self.integrand)
        head = prettyForm(f"𝔼_{self.variable.name}")
        return prettyForm(*head.right(prettyForm(*inside.parens("[", "]"))))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = (
            rf"\mathbb{{E}}_{{{printer._print(self.variable)}}}"
            rf"\left[{printer._print(self.integrand)}\right]"
        )
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"


def _ranges_over_the_line(variable: sp.Symbol) -> bool:
    # SymPy simplifies by assumptions: Abs(t) is t for a positive t, but not under this average.
    excluded = (variable.is_nonnegative, variable.is_nonpositive, variable.is_nonzero)
    return bool(variable.is_real) and all(x is None for x in (*excluded, variable.is_integer))


def expect(integrand: sp.Expr, variable: sp.Symbol) -> sp.Expr:
    r"""Return :math:`\mathbb{E}_z[f(z)]` in closed form if a rule gives one, else as a node.

    Examples
    --------
    >>> z, x = sp.symbols("z x", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> expect(sp.sin(x + sp.sqrt(c) * z), z)
    exp(-c/2)*sin(x)
    """
    return GaussianExpectation(integrand, variable).doit()
