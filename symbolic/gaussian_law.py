r"""Laws of jointly Gaussian variables.

``GaussianVector((u, v), mean, covariance)`` is a law with symbolic mean and covariance. What SymPy
can decide of symmetry, reality and positivity is checked when it is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import sympy as sp

from ..errors import AssumptionError, GiantstepError, ParameterError
from .arguments import as_expression
from .gaussian import ranges_over_the_line, require_one_meaning


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
        found: set[sp.Symbol] = self.mean.free_symbols | self.covariance.free_symbols
        return found

    def marginal(self, variables: Iterable[sp.Symbol]) -> GaussianVector:
        """Law of some of the variables, in this law's order."""
        wanted = set(variables)
        kept = [i for i, x in enumerate(self.variables) if x in wanted]
        if len(kept) < len(wanted):
            raise ParameterError(f"{wanted} are not all among the variables {self.variables}")
        return GaussianVector(
            [self.variables[i] for i in kept],
            [self.mean[i] for i in kept],
            self.covariance.extract(kept, kept),
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

    Raises
    ------
    AssumptionError
        Naming the first of them, and how to declare it.
    """
    for symbol in sorted(symbols, key=str):
        if not symbol.is_extended_real:
            raise AssumptionError(
                f"the parameter {symbol} in {where} has to be declared real: "
                f"Symbol({symbol.name!r}, real=True), or positive=True if it is"
            )
