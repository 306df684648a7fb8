"""A density of eigenvalues as data: a tanh-sinh rule that is good for the digits asked for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ConvergenceError, ParameterError

if TYPE_CHECKING:
    import sympy as sp

# Digits beyond those asked for.
_MARGIN = 6
# Arguments whose expressions are numbers.
_PLACES = ("domain", "atoms")
_DEGREES = range(4, 11)
# The rule has to resolve 𝔼 1/(z + D) at these z, in units of the mean.
_PENALTIES = ("1e-6", "1e-3", "1", "1e3")


@dataclass(frozen=True)
class BulkDensity:
    """A law as expressions in x, all as text: of the density and the overlaps given x."""

    density: str
    domain: tuple[str, ...]
    atoms: tuple[tuple[str, float], ...]
    columns: tuple[tuple[str, str], ...]

    def table(self, digits: int) -> dict[str, list[Any]]:
        """Return weights and columns as mpmath numbers that are good for so many digits.

        Raises
        ------
        ConvergenceError
            If no rule resolves the density.
        ParameterError
            If it is negative somewhere, or not finite.
        """
        import mpmath
        from mpmath.calculus.quadrature import TanhSinh

        ctx = mpmath.mp.clone()
        # At ends where the density diverges like a root, half of the digits are lost.
        ctx.dps = 2 * digits + 2 * _MARGIN
        functions = {
            name: self._compiled(text, ctx)
            for name, text in (("weight", self.density), *self.columns)
        }
        rule = TanhSinh(ctx)
        before: list[Any] = []
        for degree in _DEGREES:
            table = self._rule(rule, degree, functions, ctx)
            now = _summaries(table, ctx)
            tolerance = ctx.mpf(10) ** -(digits - 2)
            if before and all(
                abs(a - b) <= tolerance * abs(b) for a, b in zip(before, now, strict=True)
            ):
                return _without_tails(table, ctx, digits)
            before = now
        raise ConvergenceError(
            f"the density {self.density} is not resolved to {digits} digits between "
            f"{' and '.join(self.domain)}: name the places where it is not smooth in domain, as in "
            "domain=(0, 1, 4)"
        )

    def _rule(
        self, rule: Any, degree: int, functions: Mapping[str, Any], ctx: Any
    ) -> dict[str, list[Any]]:
        import sympy as sp

        table: dict[str, list[Any]] = {"weight": [], "D": []} | {n: [] for n, _ in self.columns}
        ends = [ctx.mpf(str(read_expression(t, "domain").evalf(ctx.dps))) for t in self.domain]
        # Closer to an end than rounding lets tell on which side a node is.
        least = ctx.eps * 10**_MARGIN
        for low, high in itertools.pairwise(ends):
            half, middle = (high - low) / 2, (high + low) / 2
            for part in range(1, degree + 1):
                # Nodes of a degree are those that coarser ones do not have.
                for node, weight in rule.calc_nodes(part, ctx.prec):
                    if weight > least:
                        self._add(table, functions, middle + half * node, half * weight, ctx)
        step = ctx.ldexp(1, -degree)
        table["weight"] = [step * w for w in table["weight"]]
        for place, weight in self.atoms:
            value = ctx.mpf(str(read_expression(place, "atoms").evalf(ctx.dps)))
            self._add(table, {**functions, "weight": lambda _: 1}, value, ctx.one, ctx)
            table["weight"][-1] = ctx.mpf(str(sp.Rational(repr(weight)).evalf(ctx.dps)))
        return table

    def _add(
        self, table: dict[str, list[Any]], functions: Mapping[str, Any], x: Any, weight: Any,
        ctx: Any,
    ) -> None:  # fmt: skip
        try:
            found = {name: f(x) for name, f in functions.items()}
            finite = all(ctx.isfinite(value) and not ctx.im(value) for value in found.values())
        except (ArithmeticError, ValueError):
            finite = False
        if not finite or found["weight"] < 0:
            raise ParameterError(
                f"density and overlaps must be finite, and the density nonnegative, inside the "
                f"domain; those of {self.density} are not at x = {ctx.nstr(x, 6)}"
            )
        table["weight"].append(weight * ctx.re(found.pop("weight")))
        table["D"].append(x)
        for name, value in found.items():
            table[name].append(ctx.re(value))

    @staticmethod
    def _compiled(text: str, ctx: Any) -> Any:
        from ...symbolic.printing.compiled import compiled

        return compiled(read_expression(text, "density"), [_variable()], ctx)


def _variable() -> sp.Symbol:
    import sympy as sp

    return sp.Symbol("x", positive=True)


def expression_text(value: Any, argument: str) -> str:
    """Return an expression in x, or a number, as text that :func:`read_expression` reads."""
    if isinstance(value, str):
        return value
    from ...symbolic.arguments import as_expression
    from ..kernels.precise import exact_number

    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return str(exact_number(value))
    return str(as_expression(value, argument))


def read_expression(text: str, argument: str) -> sp.Expr:
    """Return the expression of a text, in x or without a variable.

    Raises
    ------
    ExpressionError
        If it cannot be read; `argument` is its name in the message.
    """
    from ...symbolic.parser import parse_expression

    known = [] if argument in _PLACES else [_variable()]
    return parse_expression(text, known, argument=argument)


def _summaries(table: Mapping[str, list[Any]], ctx: Any) -> list[Any]:
    """Return total, mean and resolvents, which the rule has to resolve."""
    weights, values = table["weight"], table["D"]
    total, mean = ctx.fsum(weights), ctx.fdot(weights, values)
    return [
        total,
        mean,
        *(
            ctx.fsum(w / (ctx.mpf(z) * mean + x) for w, x in zip(weights, values, strict=True))
            for z in _PENALTIES
        ),
    ]


def _without_tails(table: dict[str, list[Any]], ctx: Any, digits: int) -> dict[str, list[Any]]:
    """Leave out nodes next to the ends whose weight is nothing."""
    least = ctx.mpf(10) ** -(digits + 6)
    kept = [k for k, w in enumerate(table["weight"]) if w > least]
    return {name: [values[k] for k in kept] for name, values in table.items()}
