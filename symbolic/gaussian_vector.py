r"""Jointly Gaussian variables, and expectations over them as SymPy nodes.

``GaussianVector((u, v), mean, covariance)`` is a law with symbolic mean and covariance,
``JointExpectation(f, law)`` the expectation :math:`\mathbb{E}_{u,v}[f(u, v)]`. As for one variable,
the node stays until somebody asks for more: ``doit()`` looks for a closed form by rules
(:mod:`.gaussian_vector_rules`), ``evalf(n)`` integrates, and ``diff`` differentiates with respect
to parameters of the integrand and of the law by Price's theorem (Bonnet's for the mean),

.. math:: \frac{\partial}{\partial\Sigma_{ij}} \mathbb{E}f = \frac{1 + [i \ne j]}{2}\,
          \mathbb{E}\,\partial_i \partial_j f, \qquad
          \frac{\partial}{\partial m_i} \mathbb{E}f = \mathbb{E}\,\partial_i f

(Price, IRE Trans. Inform. Theory 4 (1958); Bonnet, Ann. Télécommun. 19 (1964)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from ..errors import AssumptionError, ParameterError
from .arguments import as_expression
from .averages import Average
from .functions import relu
from .gaussian import GaussianExpectation, require_one_meaning
from .gaussian_law import GaussianVector, correlated_pair, require_real
from .gaussian_reductions import independent_factors, on_a_line
from .gaussian_rules import closed_form
from .gaussian_vector_quadrature import joint_value
from .gaussian_vector_rules import joint_closed_form

__all__ = ["GaussianVector", "JointExpectation", "correlated_pair", "expect_joint"]

# Finer than for one variable: each bit costs more.
_PRECISION_STEP = 16


class JointExpectation(Average):
    r"""The expectation :math:`\mathbb{E}[f(x)]` over jointly Gaussian variables.

    Parameters
    ----------
    integrand : Expr
        f; factors that do not depend on the variables are pulled out, an integrand that does not
        depend on them at all is returned unchanged.
    law : GaussianVector
        Variables that the integrand does not hold are left out.

    Examples
    --------
    >>> u, v, rho = sp.symbols("u v rho", real=True)
    >>> node = JointExpectation(sp.tanh(u) * sp.tanh(v), correlated_pair(u, v, rho))
    >>> node, node.diff(rho)
    (E_{u,v}[tanh(u)*tanh(v)], E_{u,v}[(1 - tanh(u)**2)*(1 - tanh(v)**2)])
    >>> node.subs(rho, sp.Rational(1, 2)).evalf(8)
    0.18632441
    """

    def __new__(cls, integrand: Any, law: GaussianVector) -> sp.Expr:  # type: ignore[misc]
        if not isinstance(law, GaussianVector):
            raise ParameterError(f"law has to be a GaussianVector, not {law!r}")
        integrand = as_expression(integrand, "integrand")
        used = [x for x in law.variables if x in integrand.free_symbols]
        if not used:
            return integrand
        outer, inner = integrand.as_independent(*used, as_Add=False)
        if outer != 1:
            return outer * cls(inner, law)
        if len(used) < len(law.variables):
            law = law.marginal(used)
        return sp.Expr.__new__(cls, integrand, law)

    @property
    def integrand(self) -> sp.Expr:
        """The function under the expectation."""
        return self.args[0]

    @property
    def law(self) -> GaussianVector:
        """Law of the variables that the integrand holds."""
        return self.args[1]

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        """The Gaussian variables."""
        return list(self.law.variables)

    @property
    def _outside(self) -> Sequence[sp.Basic]:
        return self.law.mean, self.law.covariance

    @property
    def _shielded(self) -> Sequence[sp.Basic]:
        # A law may not hold its own variables.
        return self.args

    def _rebuilt(self, body: sp.Expr, outside: Sequence[sp.Basic]) -> sp.Expr:
        return JointExpectation(body, GaussianVector(self.law.variables, *outside))

    def _with_fresh_symbols(self) -> JointExpectation:
        fresh = {x: sp.Dummy(x.name, **x.assumptions0) for x in self.law.variables}
        law = GaussianVector(fresh.values(), self.law.mean, self.law.covariance)
        found: JointExpectation = sp.Expr.__new__(
            JointExpectation, self.integrand.xreplace(fresh), law
        )
        return found

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        law, f = self.law, self.integrand
        if symbol in law.variables:
            return sp.S.Zero
        total = f.diff(symbol)
        slopes = [f.diff(x) for x in law.variables]
        for i, slope in enumerate(slopes):
            total += law.mean[i].diff(symbol) * slope
            for j, variable in enumerate(law.variables):
                change = law.covariance[i, j].diff(symbol)
                if change != 0:
                    total += change * slope.diff(variable) / 2
        return JointExpectation(total, law)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the closed form if a rule gives one; else the node with its inside done.

        A function of one linear combination becomes an expectation over one standard variable,
        products of functions of independent variables products of expectations.
        """
        integrand = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        law = self.law
        line = on_a_line(integrand, law)
        if line is not None:
            found = closed_form(*line)
            if found is not None:
                return found
        mean, rows = tuple(law.mean), tuple(map(tuple, law.covariance.tolist()))
        found = joint_closed_form(integrand, law.variables, mean, rows)
        if found is not None:
            return found
        if line is not None:
            return GaussianExpectation(*line)
        apart = _by_independence(integrand, law)
        return JointExpectation(integrand, law) if apart is None else apart.doit(**hints)

    def nested(self) -> sp.Expr:
        r"""Return it as expectations over one standard variable each, one inside the other.

        With the Cholesky factor :math:`\Sigma = LL^\top`, :math:`x = m + Lw` for independent
        standard normal w. A function of one linear combination takes one variable, products of
        functions of independent variables products of expectations.

        Examples
        --------
        >>> u, v, rho = sp.symbols("u v rho", real=True)
        >>> JointExpectation(sp.tanh(u) * sp.tanh(v), correlated_pair(u, v, rho)).nested()
        E_u[tanh(u)*E_v[tanh(rho*u + v*sqrt((1 - rho)*(rho + 1)))]]
        >>> JointExpectation(sp.tanh(u + 2 * v), correlated_pair(u, v, 0)).nested()
        E_z[tanh(sqrt(5)*z)]
        """
        integrand, law = self.integrand, self.law
        line = on_a_line(integrand, law)
        if line is not None:
            return GaussianExpectation(*line)
        apart = _by_independence(integrand, law)
        if apart is not None:
            return apart.xreplace({n: n.nested() for n in apart.atoms(JointExpectation)})
        factor = _cholesky(law.covariance)
        standard = sp.Matrix(law.variables)
        values = law.mean + factor * standard
        found = integrand.xreplace(dict(zip(law.variables, values, strict=True)))
        for variable in reversed(law.variables):
            found = GaussianExpectation(found, variable)
        return found

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        # SymPy asks for a few bits more or less each time; few precisions are few computations.
        rounded = -(-prec // _PRECISION_STEP) * _PRECISION_STEP
        line = on_a_line(self.integrand, self.law)
        if line is not None:
            return GaussianExpectation(*line)._eval_evalf(prec)
        apart = _by_independence(self.integrand, self.law)
        if apart is not None:
            return apart.evalf(sp.core.evalf.prec_to_dps(prec))
        value = joint_value(
            self.integrand, self.law.variables, self.law.mean, self.law.covariance, rounded
        )
        return sp.Float(value, precision=prec)

    def _names(self, printer: Any) -> str:
        return ",".join(printer._print(x) for x in self.law.variables)

    def _sympystr(self, printer: Any) -> str:
        return f"E_{{{self._names(printer)}}}[{printer._print(self.integrand)}]"

    def _pretty(self, printer: Any) -> Any:
        from sympy.printing.pretty.stringpict import prettyForm

        inside = printer._print(self.integrand)
        head = prettyForm("𝔼_" + ",".join(x.name for x in self.law.variables))
        return prettyForm(*head.right(prettyForm(*inside.parens("[", "]"))))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = (
            rf"\mathbb{{E}}_{{{self._names(printer)}}}"
            rf"\left[{printer._print(self.integrand)}\right]"
        )
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"

    def _mathml_law(self, printer: Any) -> Any:
        row = printer.dom.createElement("mrow")
        for x in self.law.variables:
            row.appendChild(printer._print(x))
        return row


def expect_joint(integrand: Any, law: GaussianVector) -> sp.Expr:
    r"""Return :math:`\mathbb{E}f(x)` in closed form if a rule gives one, else as a node.

    Parameters
    ----------
    integrand : Expr
        Function f of the variables of the law; its parameters have to be declared real.
    law : GaussianVector

    Raises
    ------
    AssumptionError
        If a parameter is not declared real; two symbols have the same name but different
        assumptions; the expectation of an exponential of a quadratic form diverges or is not known
        to be finite; a step's argument has a variance that may be 0.

    Notes
    -----
    Closed forms hold in the interior of the set of admissible covariances, and as limits on its
    boundary: for a perfect correlation and means that are not 0, insert the correlation into the
    law, not into the result.

    Examples
    --------
    The arc-cosine kernel of degree one (Cho and Saul, NIPS 2009):

    >>> from giantstep.symbolic.functions import relu
    >>> u, v, rho = sp.symbols("u v rho", real=True)
    >>> expect_joint(relu(u) * relu(v), correlated_pair(u, v, rho))
    rho*asin(rho)/(2*pi) + rho/4 + sqrt(1 - rho**2)/(2*pi)
    """
    if not isinstance(law, GaussianVector):
        raise ParameterError(f"law has to be a GaussianVector, not {law!r}")
    integrand = as_expression(integrand, "integrand")
    require_one_meaning(integrand.free_symbols | law.free_symbols | set(law.variables))
    require_real(integrand.free_symbols - set(law.variables), "the integrand")
    node = JointExpectation(integrand, law)
    for inner in node.atoms(JointExpectation):
        _require_spread(inner.integrand, inner.law)
    return node.doit()


def _by_independence(integrand: sp.Expr, law: GaussianVector) -> sp.Expr | None:
    """Sum of products of expectations over independent sets of variables, if it is one."""
    terms = independent_factors(integrand, law)
    if terms is None:
        return None
    return sp.Add(
        *(sp.Mul(c, *(JointExpectation(f, law) for f in factors)) for c, factors in terms)
    )


def _cholesky(covariance: sp.Matrix) -> sp.Matrix:
    """Return the lower triangular factor; columns of directions without spread are zero."""
    size = covariance.rows
    factor = sp.zeros(size)
    for j in range(size):
        rest = [
            covariance[i, j] - sp.Add(*(factor[i, k] * factor[j, k] for k in range(j)))
            for i in range(j, size)
        ]
        # In factors, 1 - rho² keeps its digits next to its zeros.
        pivot = sp.sqrt(_without_leading_minus(sp.factor(rest[0])))
        for i, value in enumerate(rest, start=j):
            factor[i, j] = pivot if i == j else sp.S.Zero if pivot == 0 else value / pivot
    return factor


def _without_leading_minus(product: sp.Expr) -> sp.Expr:
    """-(x - 1)(x + 1) = (1 - x)(x + 1)."""
    factors = list(sp.Mul.make_args(product))
    sums = [f for f in factors if f.is_Add and f.as_coeff_Add()[0].is_negative]
    if sp.S.NegativeOne not in factors or not sums:
        return product
    others = [f for f in factors if f not in (sp.S.NegativeOne, sums[0])]
    return sp.Mul(sp.expand(-sums[0]), *others)


def _require_spread(integrand: sp.Expr, law: GaussianVector) -> None:
    """Steps of a variable whose variance is a symbol that may be 0 have no one formula."""
    if not integrand.has(sp.Heaviside, sp.sign, sp.Abs, sp.DiracDelta, relu):
        return
    for variable, variance in zip(law.variables, law.covariance.diagonal(), strict=True):
        if isinstance(variance, sp.Symbol) and not variance.is_positive:
            raise AssumptionError(
                f"the variance {variance} of {variable} may be 0, where steps have another "
                f"expectation: declare it with Symbol({variance.name!r}, positive=True)"
            )
