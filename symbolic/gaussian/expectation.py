r"""Gaussian expectations as SymPy nodes.

``GaussianExpectation(f, z)`` is :math:`\mathbb{E}_z[f(z)]` with a standard normal z,
``GaussianVector((u, v), mean, covariance)`` a law with symbolic mean and covariance, and
``JointExpectation(f, law)`` an expectation over it; every other symbol is a parameter. A node stays
as it is until somebody asks for more: ``doit()`` looks for a closed form by rules
(:mod:`.gaussian.rules`), ``evalf(n)`` integrates to `n` digits, ``diff`` differentiates under the
integral, with respect to parameters of a law by the theorems of Price and Bonnet,

.. math:: \frac{\partial}{\partial\Sigma_{ij}} \mathbb{E}f = \frac{1 + [i \ne j]}{2}\,
          \mathbb{E}\,\partial_i \partial_j f, \qquad
          \frac{\partial}{\partial m_i} \mathbb{E}f = \mathbb{E}\,\partial_i f

(Price, IRE Trans. Inform. Theory 4 (1958); Bonnet, Ann. Télécommun. 19 (1964)). Symmetry, reality
and positivity of a law are checked when it is made, as far as SymPy can decide. An expectation is
carried by as few variables as possible: a function of one linear combination needs one, and sets of
variables whose covariance is zero are averaged separately.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import sympy as sp
from sympy.printing.pretty.stringpict import prettyForm

from ...errors import AssumptionError, GiantstepError, ParameterError, UnsupportedExpressionError
from ..expressions.arguments import as_expression
from ..expressions.averages import Average, LineAverage
from ..expressions.factors import factored
from ..expressions.functions import relu
from ..expressions.parser import parse_expression
from ..expressions.regularity import Parity, analyse, require_square_integrable
from ..expressions.shared_parts import first_derivative
from ..expressions.textbook_forms import textbook_form
from .power_rules import radial_integrand
from .quadrature import expectation_value, joint_value
from .rules import blocks, closed_form, joint_closed_form, quadratic_form
from .stein_lemma import by_parts

# SymPy asks for a few bits more or less each time; few precisions are few computations.
_PRECISION_STEP = 32


class _Expectation(Average):
    """What expectations over one and over several variables share."""

    @property
    def integrand(self) -> sp.Expr:
        """The function under the expectation."""
        return self.args[0]

    def _names(self, printer: Any) -> str:
        return ",".join(printer._print(x) for x in self.bound_symbols)

    def _pretty(self, printer: Any) -> Any:
        inside = printer._print(self.integrand)
        head = prettyForm("𝔼_" + ",".join(x.name for x in self.bound_symbols))
        return prettyForm(*head.right(prettyForm(*inside.parens("[", "]"))))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        body = (
            rf"\mathbb{{E}}_{{{self._names(printer)}}}"
            rf"\left[{printer._print(self.integrand)}\right]"
        )
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"


class GaussianExpectation(_Expectation, LineAverage):
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

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        if symbol == self.variable:
            return sp.S.Zero
        return GaussianExpectation(first_derivative(self.integrand, symbol), self.variable)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the closed form if a rule gives one; else the node with its inside done."""
        integrand = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        result = closed_form(integrand, self.variable)
        if result is None and _vanishes_by_parity(integrand, self.variable):
            return sp.S.Zero
        return GaussianExpectation(integrand, self.variable) if result is None else result

    def by_parts(self, primitive: sp.Expr | None = None) -> sp.Expr:
        r"""Return the node after one Gaussian integration by parts.

        From left to right, :math:`\mathbb{E}[z f(z)] = \mathbb{E}[f'(z)]`; with `primitive`, an
        antiderivative F of the integrand, from right to left,
        :math:`\mathbb{E}[F'(z)] = \mathbb{E}[z F(z)]`. Conditions and errors:
        :func:`.stein_lemma.by_parts`.

        Examples
        --------
        >>> z, a = sp.symbols("z a", real=True)
        >>> GaussianExpectation(z * sp.tanh(a * z), z).by_parts()
        a*E_z[1 - tanh(a*z)**2]
        """
        return by_parts(self, primitive)

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        rounded = -(-prec // _PRECISION_STEP) * _PRECISION_STEP
        value = expectation_value(self.integrand, self.variable, rounded)
        return sp.Float(value, precision=prec)

    def _sympystr(self, printer: Any) -> str:
        return f"E_{printer._print(self.variable)}[{printer._print(self.integrand)}]"


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


def expect(
    integrand: str | sp.Expr, variable: str | sp.Symbol | GaussianVector | None = None
) -> sp.Expr:
    r"""Return :math:`\mathbb{E} f` in closed form if a rule gives one, else as a node.

    Closed forms are those of a textbook (:mod:`.textbook_forms`).

    Parameters
    ----------
    integrand : Expr or str
        f, a function of the variable or of several; a text is read by
        :func:`.parser.parse_expression`, with these variables and the parameters of the law.
    variable : str, Symbol or GaussianVector, optional
        A standard normal variable, declared real, or its name, or the law of jointly Gaussian
        variables; default, for a text: z.

    Raises
    ------
    ExpressionError
        If a text is not an expression in the variables.
    ParameterError
        If the variable of an expression is missing.
    AssumptionError
        If two symbols have the same name but different assumptions; see also
        :func:`expect_joint`.

    Examples
    --------
    >>> z, x = sp.symbols("z x", real=True)
    >>> c = sp.Symbol("c", positive=True)
    >>> expect(sp.sin(x + sp.sqrt(c) * z), z)
    exp(-c/2)*sin(x)
    >>> expect("relu(z)*z"), expect("tanh(z)**3")
    (1/2, 0)
    >>> from giantstep.symbolic.gaussian.expectation import GaussianVector
    >>> expect(sp.sign(x) * sp.sign(z), GaussianVector((x, z), covariance=[[1, c], [c, 1]]))
    2*asin(c)/pi
    """
    if isinstance(variable, str):
        if not variable.isidentifier():
            raise ParameterError(f"variable must be one name, such as 'z', got {variable!r:.60}")
        variable = sp.Symbol(variable, real=True)
    if isinstance(integrand, str):
        variable = sp.Symbol("z", real=True) if variable is None else variable
        integrand = _read(integrand, variable)
    if isinstance(variable, GaussianVector):
        return _as_printed(expect_joint(integrand, variable))
    as_expression(integrand, "integrand")
    if variable is None:
        raise ParameterError(
            "variable is missing: name the standard normal variable of the integrand, as in "
            "expect(f, z), or give the law of several"
        )
    node = GaussianExpectation(integrand, variable)
    require_one_meaning({*as_expression(integrand, "integrand").free_symbols, variable})
    return _as_printed(node.doit())


def _as_printed(value: sp.Expr) -> sp.Expr:
    """Return a closed form as a textbook has it; what holds averages, as it is."""
    return value if value.has(Average) else textbook_form(value)


def _read(text: str, variable: sp.Symbol | GaussianVector) -> sp.Expr:
    if isinstance(variable, sp.Symbol):
        return parse_expression(text, [variable], argument="integrand")
    known = [*variable.variables, *sorted(variable.free_symbols, key=str)]
    return parse_expression(text, known, argument="integrand")


def require_one_meaning(symbols: Iterable[sp.Symbol]) -> None:
    """Refuse symbols of the same name but different assumptions, different objects to SymPy.

    Raises AssumptionError naming the symbol and the assumptions in which the two differ.
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


class GaussianVector(sp.Basic):
    r"""Law of jointly Gaussian variables.

    Parameters
    ----------
    variables : sequence of Symbol
        Distinct symbols, declared real and nothing else.
    mean : sequence of Expr, optional
        Zero if not given.
    covariance : Matrix or nested sequence
        Symmetric and positive semi-definite. What SymPy can decide of that is checked; entries with
        parameters, such as a correlation, are taken to be admissible.

    Raises
    ------
    ParameterError
        If shapes do not fit, the covariance is not symmetric or certainly not positive
        semi-definite, or a variable occurs among the parameters.
    AssumptionError
        If parameters are not declared real, a variance that is a symbol is not declared positive
        (or nonnegative), or two symbols have the same name but different assumptions.

    Examples
    --------
    >>> u, v, rho = sp.symbols("u v rho", real=True)
    >>> law = GaussianVector((u, v), covariance=[[1, rho], [rho, 2]])
    >>> law.mean, law.variance(u - v)
    (Matrix([
    [0],
    [0]]), 3 - 2*rho)
    """

    def __new__(
        cls, variables: Iterable[sp.Symbol], mean: Any = None, covariance: Any = None
    ) -> GaussianVector:
        given = list(variables)
        for symbol in given:
            if not isinstance(symbol, sp.Symbol) or not ranges_over_the_line(symbol):
                raise ParameterError(
                    f"variables have to be SymPy Symbols declared real and nothing else, not "
                    f"{symbol!r}"
                )
        size, symbols = len(given), sp.Tuple(*given)
        if not size or len(set(symbols)) < size:
            raise ParameterError(f"variables have to be distinct symbols, not {tuple(symbols)}")
        if covariance is None:
            raise ParameterError("covariance has to be given, as a matrix or as nested lists")
        centre = _matrix("mean", [0] * size if mean is None else mean)
        spread = _matrix("covariance", covariance)
        if centre.shape != (size, 1):
            raise ParameterError(f"mean has to have {size} entries, not shape {centre.shape}")
        if spread.shape != (size, size):
            raise ParameterError(f"covariance has to have shape {size, size}, not {spread.shape}")
        law: GaussianVector = sp.Basic.__new__(cls, symbols, centre, spread)
        _check_law(law)
        return law

    @property
    def variables(self) -> tuple[sp.Symbol, ...]:
        """The Gaussian variables."""
        return tuple(self.args[0])

    @property
    def mean(self) -> sp.ImmutableMatrix:
        """Mean, as a column."""
        return self.args[1]

    @property
    def covariance(self) -> sp.ImmutableMatrix:
        """Covariance matrix."""
        return self.args[2]

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Parameters of mean and covariance."""
        result: set[sp.Symbol] = self.mean.free_symbols | self.covariance.free_symbols
        return result

    def marginal(self, variables: Iterable[sp.Symbol]) -> GaussianVector:
        """Law of some of the variables, in this law's order."""
        wanted = set(variables)
        remaining = [i for i, x in enumerate(self.variables) if x in wanted]
        if len(remaining) < len(wanted):
            raise ParameterError(f"{wanted} are not all among the variables {self.variables}")
        return GaussianVector(
            [self.variables[i] for i in remaining],
            [self.mean[i] for i in remaining],
            self.covariance.extract(remaining, remaining),
        )

    def variance(self, combination: sp.Expr) -> sp.Expr:
        """Variance of an affine combination of the variables."""
        slopes = sp.Matrix([combination.diff(x) for x in self.variables])
        if slopes.has(*self.variables):
            raise ParameterError(f"{combination} is not an affine combination of the variables")
        return sp.expand((slopes.T * self.covariance * slopes)[0])

    def __str__(self) -> str:
        names = ", ".join(map(str, self.variables))
        return f"({names}) ~ N({list(self.mean)}, {self.covariance.tolist()})"

    __repr__ = __str__

    def _sympystr(self, printer: Any) -> str:
        return str(self)

    def _latex(self, printer: Any) -> str:
        names = ", ".join(map(printer._print, self.variables))
        mean, covariance = printer._print(self.mean), printer._print(self.covariance)
        return rf"\left({names}\right) \sim \mathcal{{N}}\left({mean}, {covariance}\right)"


def correlated_pair(
    u: sp.Symbol,
    v: sp.Symbol,
    correlation: Any,
    variances: Sequence[Any] = (1, 1),
    means: Sequence[Any] = (0, 0),
) -> GaussianVector:
    r"""Return the law of two Gaussian variables of given correlation.

    Examples
    --------
    >>> u, v, rho = sp.symbols("u v rho", real=True)
    >>> correlated_pair(u, v, rho, variances=(1, 4))
    (u, v) ~ N([0, 0], [[1, 2*rho], [2*rho, 4]])
    """
    if len(variances) != 2 or len(means) != 2:
        raise ParameterError("variances and means of a pair have to have two entries each")
    first, second = (as_expression(variance, "variances") for variance in variances)
    between = as_expression(correlation, "correlation") * sp.sqrt(first) * sp.sqrt(second)
    return GaussianVector((u, v), means, [[first, between], [between, second]])


def _matrix(name: str, entries: Any) -> sp.ImmutableMatrix:
    def converted(part: Any) -> Any:
        if isinstance(part, sp.MatrixBase):
            return part
        # Arrays of numbers, too, come as nested lists.
        part = part.tolist() if hasattr(part, "tolist") else part
        if isinstance(part, list | tuple):
            return [converted(entry) for entry in part]
        return as_expression(part, name)

    try:
        return sp.ImmutableMatrix(converted(entries))
    except (TypeError, ValueError, sp.SympifyError) as error:
        if isinstance(error, GiantstepError):
            raise
        raise ParameterError(f"{name} {entries!r} is not a matrix of expressions") from error


def _check_law(law: GaussianVector) -> None:
    variables, covariance = law.variables, law.covariance
    size = len(variables)
    require_one_meaning(law.free_symbols | set(variables))
    used = law.free_symbols & set(variables)
    if used:
        raise ParameterError(f"variables {used} must not occur in the mean or the covariance")
    require_real(law.free_symbols, "mean and covariance")
    for entry in (*law.mean, *covariance):
        if entry.is_finite is False or entry.is_extended_real is False or entry is sp.nan:
            raise ParameterError(f"mean and covariance have to be real and finite, not {entry}")
    for i, j in itertools.combinations(range(size), 2):
        if sp.expand(covariance[i, j] - covariance[j, i]) != 0:
            raise ParameterError(
                f"covariance has to be symmetric: entries {i, j} and {j, i} are "
                f"{covariance[i, j]} and {covariance[j, i]}"
            )
    for variable, variance in zip(variables, covariance.diagonal(), strict=True):
        if isinstance(variance, sp.Symbol) and variance.is_nonnegative is None:
            raise AssumptionError(
                f"the variance {variance} of {variable} has to be known to be positive: declare "
                f"it with Symbol({variance.name!r}, positive=True)"
            )
    # Minors of numbers are decided exactly; a minor with parameters may have a certain sign, too.
    for count in range(1, min(size, 4) + 1):
        for block in itertools.combinations(range(size), count):
            minor = sp.expand(covariance.extract(list(block), list(block)).det())
            if minor.is_negative:
                names = ", ".join(str(variables[i]) for i in block)
                raise ParameterError(
                    f"covariance has to be positive semi-definite, but the determinant of the "
                    f"block of {names} is {minor} < 0"
                )


def require_real(symbols: Iterable[sp.Symbol], where: str) -> None:
    """Refuse parameters that are not declared real.

    Raises AssumptionError naming the first of them, and how to declare it.
    """
    for symbol in sorted(symbols, key=str):
        if not symbol.is_extended_real:
            raise AssumptionError(
                f"the parameter {symbol} in {where} has to be declared real: "
                f"Symbol({symbol.name!r}, real=True), or positive=True if it is"
            )


def on_a_line(integrand: sp.Expr, law: GaussianVector) -> tuple[sp.Expr, sp.Symbol] | None:
    """Write f(x) = h(α·x) as h(m + s z) and z, if it depends on one combination α·x only.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> law = GaussianVector((u, v), covariance=[[1, 0], [0, 3]])
    >>> on_a_line(sp.tanh(u + v), law)[0]
    tanh(2*z)
    """
    z = _new_symbol(integrand.free_symbols | law.free_symbols | set(law.variables))
    pivot, *others = law.variables
    if not others:
        spread = sp.sqrt(law.covariance[0, 0])
        return integrand.xreplace({pivot: law.mean[0] + spread * z}), z
    if integrand.has(sp.Piecewise):
        return None
    inside = [f.args[0] for f in integrand.atoms(sp.Function, sp.exp) if len(f.args) <= 2]
    inside += [power.base for power in integrand.atoms(sp.Pow)]
    for argument in sorted(inside, key=sp.default_sort_key):
        if not argument.free_symbols & set(law.variables):
            continue
        affine = quadratic_form(argument, law.variables)
        if affine is None or any(map(any, affine.matrix)):
            continue
        slopes = affine.linear
        if not slopes[0].is_nonzero or not all(slopes[1:]):
            continue
        combination = sp.Add(*(s * x for s, x in zip(slopes, law.variables, strict=True)))
        rest = combination - slopes[0] * pivot
        on_line = sp.expand(integrand.xreplace({pivot: (z - rest) / slopes[0]}))
        if on_line.has(*others):
            return None
        mean = sp.expand(combination.xreplace(dict(zip(law.variables, law.mean, strict=True))))
        spread = sp.sqrt(law.variance(combination))
        return on_line.xreplace({z: mean + spread * z}), z
    return None


def _new_symbol(others: set[sp.Symbol]) -> sp.Symbol:
    """The symbol z, so that equal expectations are equal; if there is one already, another."""
    if any(x.name == "z" for x in others):
        return sp.Dummy("z", real=True)
    return sp.Symbol("z", real=True)


def independent_factors(
    integrand: sp.Expr, law: GaussianVector
) -> list[tuple[sp.Expr, list[sp.Expr]]] | None:
    """Write f as a sum of constants times products of functions of independent sets of variables.

    The result: the expectation is the sum of the constants times the products of the factors'
    expectations. None if some term couples all of its variables and has more than one.

    Examples
    --------
    >>> u, v = sp.symbols("u v", real=True)
    >>> law = GaussianVector((u, v), covariance=[[1, 0], [0, 1]])
    >>> independent_factors(2 * sp.tanh(u) * sp.tanh(v) * sp.exp(u + v), law)
    [(2, [exp(u)*tanh(u), exp(v)*tanh(v)])]
    >>> independent_factors(sp.tanh(u) * sp.tanh(v) * sp.exp(u + v + 1), law)
    [(E, [exp(u)*tanh(u), exp(v)*tanh(v)])]
    """
    variables = law.variables
    pairs = [(i, j) for i in range(len(variables)) for j in range(i) if law.covariance[i, j] != 0]
    for whole in (integrand, sp.expand(integrand)):
        terms = []
        for term in sp.Add.make_args(whole):
            result = _one_term(term, variables, pairs)
            if result is None:
                break
            terms.append(result)
        else:
            return terms
    return None


def _one_term(
    term: sp.Expr, variables: Sequence[sp.Symbol], pairs: Sequence[tuple[int, int]]
) -> tuple[sp.Expr, list[sp.Expr]] | None:
    constant, rest = term.as_independent(*variables, as_Add=False)
    factors = [
        part
        for factor in sp.Mul.make_args(rest)
        for part in sp.Mul.make_args(
            sp.expand_power_exp(factor) if factor.is_Pow or isinstance(factor, sp.exp) else factor
        )
    ]
    used = [{i for i, x in enumerate(variables) if x in factor.free_symbols} for factor in factors]
    held = set().union(*used)
    groups = [g for g in blocks(len(variables), [*used, *pairs]) if held & set(g)]
    if len(groups) == 1 and len(held) > 1:
        return None
    # What an exponent was split into may hold no variable: that belongs to no group.
    constant *= sp.Mul(*(f for f, places in zip(factors, used, strict=True) if not places))
    split = [
        sp.Mul(*(f for f, places in zip(factors, used, strict=True) if places & set(group)))
        for group in groups
    ]
    return constant, split


# Finer than for one variable: each bit costs more.
_JOINT_PRECISION_STEP = 16


class JointExpectation(_Expectation):
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
        result: JointExpectation = sp.Expr.__new__(
            JointExpectation, self.integrand.xreplace(fresh), law
        )
        return result

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        law, f = self.law, self.integrand
        if symbol in law.variables:
            return sp.S.Zero
        total = first_derivative(f, symbol)
        slopes = [first_derivative(f, x) for x in law.variables]
        for i, slope in enumerate(slopes):
            total += law.mean[i].diff(symbol) * slope
            for j, variable in enumerate(law.variables):
                change = law.covariance[i, j].diff(symbol)
                if change != 0:
                    total += change * first_derivative(slope, variable) / 2
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
            result = closed_form(*line)
            if result is not None:
                return result
        mean, rows = tuple(law.mean), tuple(map(tuple, law.covariance.tolist()))
        result = joint_closed_form(integrand, law.variables, mean, rows)
        if result is not None:
            return result
        if line is not None:
            return GaussianExpectation(*line)
        # Average a polynomial times a function of |x| over the length of x.
        z = _new_symbol(integrand.free_symbols | law.free_symbols | set(law.variables))
        inside = radial_integrand(integrand, law.variables, law.mean, law.covariance, z)
        radial = None if inside is None else sp.expand(expect(inside, z), deep=False)
        if radial is not None:
            return radial
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
        result = integrand.xreplace(dict(zip(law.variables, values, strict=True)))
        for variable in reversed(law.variables):
            result = GaussianExpectation(result, variable)
        return result

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        if self.free_symbols:
            return None
        rounded = -(-prec // _JOINT_PRECISION_STEP) * _JOINT_PRECISION_STEP
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

    def _sympystr(self, printer: Any) -> str:
        return f"E_{{{self._names(printer)}}}[{printer._print(self.integrand)}]"

    def _mathml_law(self, printer: Any) -> Any:
        row = printer.dom.createElement("mrow")
        for x in self.law.variables:
            row.appendChild(printer._print(x))
        return row


def expect_joint(integrand: Any, law: GaussianVector) -> sp.Expr:
    r"""Return :math:`\mathbb{E}f(x)` in closed form if a rule gives one, else as a node.

    `integrand`: function f of the variables of the law; its parameters have to be declared real.
    Raises AssumptionError if a parameter is not declared real; two symbols have the same name but
    different assumptions; the expectation of an exponential of a quadratic form diverges or is not
    known to be finite; a step's argument has a variance that may be 0.

    Notes
    -----
    Closed forms hold in the interior of the set of admissible covariances, and as limits on its
    boundary: for a perfect correlation and means that are not 0, insert the correlation into the
    law, not into the result.

    Examples
    --------
    The arc-cosine kernel of degree one (Cho and Saul, NIPS 2009):

    >>> from giantstep.symbolic.expressions.functions import relu
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
        pivot = sp.sqrt(_without_leading_minus(factored(rest[0])))
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
