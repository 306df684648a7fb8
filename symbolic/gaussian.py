r"""The Gaussian expectation as a SymPy node.

``GaussianExpectation(f, z)`` is :math:`\mathbb{E}_z[f(z)]` with :math:`z \sim \mathcal{N}(0, 1)`;
every other symbol in `f` is a parameter. The node stays as it is until somebody asks for more:
``doit()`` looks for a closed form by rules (:mod:`.gaussian_rules`), ``diff`` differentiates under
the integral, ``evalf(n)`` integrates to `n` digits, and it prints as 𝔼.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sympy as sp

from ..errors import AssumptionError, ParameterError, UnsupportedExpressionError
from .arguments import as_expression
from .averages import Average
from .gaussian_quadrature import expectation_value
from .gaussian_rules import closed_form
from .regularity import Parity, analyse, require_square_integrable

if TYPE_CHECKING:
    from .gaussian_vector import GaussianVector

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
        integrand = as_expression(integrand, "integrand")
        if not isinstance(variable, sp.Symbol) or not ranges_over_the_line(variable):
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
        if found is None and _vanishes_by_parity(integrand, self.variable):
            return sp.S.Zero
        return GaussianExpectation(integrand, self.variable) if found is None else found

    def by_parts(self, primitive: sp.Expr | None = None) -> sp.Expr:
        r"""Return the node after one Gaussian integration by parts.

        From left to right, :math:`\mathbb{E}[z f(z)] = \mathbb{E}[f'(z)]`; with `primitive`, an
        antiderivative F of the integrand, from right to left,
        :math:`\mathbb{E}[F'(z)] = \mathbb{E}[z F(z)]`. Conditions and errors:
        :func:`.integration_by_parts.by_parts`.

        Examples
        --------
        >>> z, a = sp.symbols("z a", real=True)
        >>> GaussianExpectation(z * sp.tanh(a * z), z).by_parts()
        a*E_z[1 - tanh(a*z)**2]
        """
        from .integration_by_parts import by_parts

        return by_parts(self, primitive)

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


def ranges_over_the_line(variable: sp.Symbol) -> bool:
    """Whether a symbol is declared real and nothing else."""
    # SymPy simplifies by assumptions: Abs(t) is t for a positive t, but not under this average.
    excluded = (variable.is_nonnegative, variable.is_nonpositive, variable.is_nonzero)
    return bool(variable.is_real) and all(x is None for x in (*excluded, variable.is_integer))


def _vanishes_by_parity(integrand: sp.Expr, variable: sp.Symbol) -> bool:
    """Whether the integrand is odd, and its expectation known to exist."""
    try:
        if analyse(integrand, variable).parity is not Parity.ODD:
            return False
        require_square_integrable(integrand, variable, argument="integrand")
    except (AssumptionError, UnsupportedExpressionError):
        return False
    return True


def expect(integrand: str | sp.Expr, variable: sp.Symbol | GaussianVector | None = None) -> sp.Expr:
    r"""Return :math:`\mathbb{E} f` in closed form if a rule gives one, else as a node.

    Parameters
    ----------
    integrand : Expr or str
        f, a function of the variable or of several; a text is read by
        :func:`.parser.parse_expression`, with these variables and the parameters of the law.
    variable : Symbol or GaussianVector, optional
        A standard normal variable, declared real, or the law of jointly Gaussian variables;
        default, for a text: z.

    Raises
    ------
    ExpressionError
        If a text is not an expression in the variables.
    ParameterError
        If the variable of an expression is missing.
    AssumptionError
        If two symbols have the same name but different assumptions; see also
        :func:`.gaussian_vector.expect_joint`.

    Examples
    --------
    >>> z, x = sp.symbols("z x", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> expect(sp.sin(x + sp.sqrt(c) * z), z)
    exp(-c/2)*sin(x)
    >>> expect("relu(z)*z"), expect("tanh(z)**3")
    (1/2, 0)
    >>> from giantstep.symbolic.gaussian_vector import GaussianVector
    >>> expect(sp.sign(x) * sp.sign(z), GaussianVector((x, z), covariance=[[1, c], [c, 1]]))
    2*asin(c)/pi
    """
    from .gaussian_vector import GaussianVector, expect_joint

    if isinstance(integrand, str):
        variable = sp.Symbol("z", real=True) if variable is None else variable
        integrand = _read(integrand, variable)
    if isinstance(variable, GaussianVector):
        return expect_joint(integrand, variable)
    if variable is None:
        raise ParameterError(
            "variable is missing: name the standard normal variable of the integrand, as in "
            "expect(f, z), or give the law of several"
        )
    node = GaussianExpectation(integrand, variable)
    require_one_meaning({*as_expression(integrand, "integrand").free_symbols, variable})
    return node.doit()


def _read(text: str, variable: sp.Symbol | GaussianVector) -> sp.Expr:
    from .parser import parse_expression

    if isinstance(variable, sp.Symbol):
        return parse_expression(text, [variable], argument="integrand")
    known = [*variable.variables, *sorted(variable.free_symbols, key=str)]
    return parse_expression(text, known, argument="integrand")


def require_one_meaning(symbols: Iterable[sp.Symbol]) -> None:
    """Refuse symbols of the same name but different assumptions, different objects to SymPy.

    Raises
    ------
    AssumptionError
        Naming the symbol and the assumptions in which the two differ.
    """
    known: dict[str, sp.Symbol] = {}
    for symbol in sorted((s for s in symbols if not isinstance(s, sp.Dummy)), key=repr):
        other = known.setdefault(symbol.name, symbol)
        if other == symbol:
            continue
        mine, others = symbol.assumptions0, other.assumptions0
        differing = {k for k in mine.keys() | others.keys() if mine.get(k) != others.get(k)}
        raise AssumptionError(
            f"two symbols {symbol.name!r} with the same name, different assumptions "
            f"({', '.join(sorted(differing)[:4])}): to SymPy they are different; create the symbol "
            "once and use it everywhere"
        )
