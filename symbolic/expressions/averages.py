r"""Expressions that bind symbols, and averages over a bound random variable.

A node with the arguments ``(body, bound, *outside)`` gives its bound symbol, or tuple of symbols, a
meaning inside of `body` only: substitution neither reaches a bound symbol nor captures one. An
average holds a function, the bound variable and the parameters of its law, and factors that do not
depend on the variable stand outside. ``DataAverage(f, (omega, t), "spectrum")`` is the mean over
the rows of a user's table with the columns ω and t, :math:`\frac1n \sum_i f(\omega_i, t_i)` or the
weighted one; the table is given when numbers are asked for.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.core.symbol import Str

from ...errors import ParameterError
from .arguments import as_expression
from .shared_parts import first_derivative, free_symbols


class Binding(sp.Expr):
    """A node with bound symbols, as SymPy's Integral is one."""

    is_commutative = True

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        """The bound symbols."""
        bound = self.args[1]
        return list(bound) if isinstance(bound, sp.Tuple) else [bound]

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Symbols of the body that are not bound in it, and those outside."""
        return set(_free_symbols(self))

    @property
    def is_number(self) -> bool:
        """Whether no symbol is free."""
        return not self.free_symbols

    @property
    def _outside(self) -> Sequence[sp.Basic]:
        return self.args[2:]

    @property
    def _shielded(self) -> Sequence[sp.Basic]:
        """Where symbols of the names of bound ones must not come from elsewhere."""
        return self.args[:1]

    def _rebuilt(self, body: sp.Expr, outside: Sequence[sp.Basic]) -> sp.Expr:
        return self.func(body, self.args[1], *outside)

    def _eval_subs(self, old: sp.Expr, new: sp.Expr) -> sp.Expr:
        if self._is_captured(old, new):
            return self._with_fresh_symbols().subs(old, new)
        body = self.args[0]
        # The bound symbol is another one than that in `old`; but a function that only has a name,
        # such as mu_0(kappa), is replaced by its meaning (as in SymPy's Integral).
        if isinstance(old, AppliedUndef) or not old.free_symbols & set(self.bound_symbols):
            body = body.subs(old, new)
        outside = [x.subs(old, new) for x in self._outside]
        if body == self.args[0] and outside == list(self._outside):
            return self
        return self._rebuilt(body, outside)

    def _xreplace(self, rule: Mapping[sp.Basic, sp.Basic]) -> tuple[sp.Basic, bool]:
        if not isinstance(rule, Mapping):
            # SymPy's own transformations, as of floats to rationals, know no symbols.
            return super()._xreplace(rule)
        if self in rule:
            return rule[self], True
        # A rule for a bound symbol means the free symbol of that name, which may stand outside.
        inside = rule
        if any(x in rule for x in self.bound_symbols):
            inside = {old: new for old, new in rule.items() if old not in self.bound_symbols}
        body, changed = self.args[0]._xreplace(inside)
        outside = [x._xreplace(rule) for x in self._outside]
        if not changed and not any(moved for _, moved in outside):
            return self, False
        if any(self._is_captured(old, new) for old, new in inside.items()):
            return self._with_fresh_symbols()._xreplace(rule)[0], True
        return self._rebuilt(body, [x for x, _ in outside]), True

    def _is_captured(self, old: sp.Basic, new: sp.Basic) -> bool:
        bound = set(self.bound_symbols)
        return (
            bool(bound & new.free_symbols)
            and not bound & old.free_symbols
            and any(x.has(old) for x in self._shielded)
        )

    def _with_fresh_symbols(self) -> Self:
        fresh = {x: sp.Dummy(x.name, **x.assumptions0) for x in self.bound_symbols}
        body, bound = (x.xreplace(fresh) for x in self.args[:2])
        result: Self = sp.Expr.__new__(type(self), body, bound, *self.args[2:])
        return result


# SymPy asks again and again, and a system has the same few nodes everywhere.
@lru_cache(maxsize=1024)
def _free_symbols(node: Binding) -> frozenset[sp.Symbol]:
    inside = free_symbols(node.args[0]) - set(node.bound_symbols)
    return frozenset(inside.union(*(x.free_symbols for x in node._outside)))


class Average(Binding):
    """A linear functional of a function of one bound variable; ``args[2:]`` are its parameters."""

    # SymPy would integrate, unasked, to learn a sign.
    is_number = False

    @classmethod
    def _build(cls, function: sp.Expr, variable: sp.Symbol, *parameters: sp.Expr) -> sp.Expr:
        """Return the node with constant factors pulled out; a constant is its own average."""
        if variable not in free_symbols(function):
            return function
        if function.is_Mul and any(variable not in free_symbols(f) for f in function.args):
            outer, inner = function.as_independent(variable, as_Add=False)
            return outer * cls._build(inner, variable, *parameters)
        return sp.Expr.__new__(cls, function, variable, *parameters)

    @property
    def variable(self) -> sp.Symbol:
        """The bound variable."""
        return self.args[1]

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.args[0].is_extended_nonnegative else None

    def _mathml_presentation(self, printer: Any) -> Any:
        row = printer.dom.createElement("mrow")
        head = printer.dom.createElement("msub")
        head.appendChild(mathml_leaf(printer, "mi", "𝔼"))
        head.appendChild(self._mathml_law(printer))
        row.appendChild(head)
        row.appendChild(mathml_leaf(printer, "mo", "["))
        row.appendChild(printer._print(self.args[0]))
        row.appendChild(mathml_leaf(printer, "mo", "]"))
        return row

    def _mathml_law(self, printer: Any) -> Any:
        """Print what stands below the 𝔼: the variable."""
        return printer._print(self.variable)


class LineAverage(Average):
    """An average over one standard normal variable; its class makes another one of its kind."""

    @property
    def integrand(self) -> sp.Expr:
        """The function under the average."""
        return self.args[0]


def outermost(expr: sp.Basic, *kinds: type[sp.Basic]) -> list[sp.Expr]:
    """Return the nodes of some kinds, averages by default, that no other one encloses, each once.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> outermost(sp.exp(x) + sp.cos(sp.exp(x)) * sp.exp(sp.cos(x)), sp.exp)
    [exp(x), exp(cos(x))]
    """
    result: dict[sp.Expr, None] = {}
    seen: set[sp.Basic] = set()

    def visit(part: sp.Basic) -> None:
        if isinstance(part, kinds or Average):
            result[part] = None
        elif part.args and part not in seen:
            seen.add(part)
            for argument in part.args:
                visit(argument)

    visit(expr)
    return list(result)


def mathml_leaf(printer: Any, tag: str, text: str) -> Any:
    """Return a MathML element that holds a text."""
    leaf = printer.dom.createElement(tag)
    leaf.appendChild(printer.dom.createTextNode(text))
    return leaf


# The key of a table under which its weights stand.
WEIGHT = "weight"


class DataAverage(Binding):
    r"""The mean of a function over the rows of a table that the user gives.

    Parameters
    ----------
    integrand : Expr
        f; factors without a column are pulled out, an integrand without one is returned unchanged.
    columns : Symbol or sequence of Symbol
        The columns of the table. Their assumptions are the domains of the data: a positive symbol
        takes positive numbers only.
    name : str
        Of the table, an identifier; two averages over the same table have the same name and the
        same columns.

    Examples
    --------
    >>> omega = sp.Symbol("omega", positive=True)
    >>> V, a = sp.symbols("V a", positive=True)
    >>> node = DataAverage(a * omega / (1 + V * omega), omega, "spectrum")
    >>> node
    a*<omega/(V*omega + 1)>_spectrum
    >>> node.diff(V)
    -a*<omega**2/(V*omega + 1)**2>_spectrum
    >>> DataAverage(omega**2, omega, "spectrum").evaluate({"omega": [1, 3]})
    5
    """

    def __new__(cls, integrand: Any, columns: Any, name: Any = "data") -> sp.Expr:  # type: ignore[misc]
        integrand = as_expression(integrand, "integrand")
        symbols = _columns(columns)
        text = str(name)
        if not text.isidentifier() or keyword.iskeyword(text):
            raise ParameterError(f"name must be an identifier such as 'spectrum', got {name!r}")
        outer, inner = integrand.as_independent(*symbols, as_Add=False)
        if not inner.has(*symbols):
            return integrand
        if outer != 1:
            return outer * cls(inner, symbols, text)
        return sp.Expr.__new__(cls, integrand, sp.Tuple(*symbols), Str(text))

    @property
    def integrand(self) -> sp.Expr:
        """The averaged function of the columns."""
        return self.args[0]

    @property
    def columns(self) -> tuple[sp.Symbol, ...]:
        """The bound symbols, one for each column."""
        return tuple(self.args[1])

    @property
    def data_name(self) -> str:
        """Name of the table."""
        return str(self.args[2].name)

    @property
    def is_number(self) -> bool:
        """False: without its table it is none."""
        return False

    def _eval_is_extended_real(self) -> bool | None:
        return True if self.integrand.is_extended_real else None

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return True if self.integrand.is_extended_nonnegative else None

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.integrand.is_extended_positive else None

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        if symbol in self.columns:
            return sp.S.Zero
        return DataAverage(first_derivative(self.integrand, symbol), self.columns, self.data_name)

    def doit(self, **hints: Any) -> sp.Expr:
        """Return the node with its inside done: only data can evaluate it."""
        integrand = self.integrand.doit(**hints) if hints.get("deep", True) else self.integrand
        return DataAverage(integrand, self.columns, self.data_name)

    def _eval_evalf(self, prec: int) -> None:
        return None

    def evaluate(self, data: Mapping[str, Iterable[Any]]) -> sp.Expr:
        """Return the mean over a table, exactly.

        Parameters
        ----------
        data : mapping from str to sequence of numbers
            One sequence for each column, by its name, all of the same length; optionally "weight",
            non-negative numbers that are divided by their sum. Floats are read as the decimals
            that they print as.

        Returns
        -------
        Expr
            A sum over the rows, for tables that are small enough to be looked at; a kernel takes
            large ones.

        Raises
        ------
        ParameterError
            If a column is missing, or has the wrong length or values outside its domain.
        """
        rows, weights = read_table(data, self.columns, self.data_name)
        terms = (
            weight * self.integrand.xreplace(dict(zip(self.columns, row, strict=True)))
            for row, weight in zip(rows, weights, strict=True)
        )
        return sp.Add(*terms)

    def _sympystr(self, printer: Any) -> str:
        return f"<{printer._print(self.integrand)}>_{self.data_name}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name = self.data_name.replace("_", r"\_")
        text = rf"\left\langle {printer._print(self.integrand)}\right\rangle_{{\text{{{name}}}}}"
        return text if exp is None else rf"{text}^{{{exp}}}"


def read_table(
    data: Mapping[str, Iterable[Any]], columns: Sequence[sp.Symbol], name: str
) -> tuple[list[tuple[sp.Expr, ...]], list[sp.Expr]]:
    """Return the rows of a table as exact numbers, and their weights, which sum to one."""
    if not isinstance(data, Mapping):
        raise ParameterError(f"data of {name!r} must map column names to sequences, got {data!r}")
    names = [column.name for column in columns]
    missing = [n for n in names if n not in data]
    if missing:
        raise ParameterError(f"data of {name!r} has no column {missing[0]!r}; columns: {names}")
    unknown = sorted(set(data) - {*names, WEIGHT})
    if unknown:
        raise ParameterError(f"data of {name!r} has a column {unknown[0]!r}, columns are {names}")
    table = {
        column.name: [_number(x, column, name) for x in data[column.name]] for column in columns
    }
    lengths = {n: len(values) for n, values in table.items()}
    size = lengths[names[0]]
    if size == 0 or set(lengths.values()) != {size}:
        raise ParameterError(f"columns of {name!r} need one common length > 0, got {lengths}")
    domain = sp.Dummy(WEIGHT, nonnegative=True)
    weights = [_number(x, domain, name) for x in data.get(WEIGHT, [1] * size)]
    total = sp.Add(*weights)
    if len(weights) != size or total == 0:
        raise ParameterError(
            f"{WEIGHT} of {name!r} needs {size} non-negative numbers that are not all zero"
        )
    return list(zip(*table.values(), strict=True)), [w / total for w in weights]


def _columns(columns: Any) -> tuple[sp.Symbol, ...]:
    symbols = (columns,) if isinstance(columns, sp.Symbol) else tuple(columns)
    if not symbols:
        raise ParameterError("columns must hold at least one symbol")
    for x in symbols:
        if not isinstance(x, sp.Symbol) or x.is_real is not True:
            raise ParameterError(f"columns must be SymPy Symbols that are declared real, got {x!r}")
    names = [x.name for x in symbols]
    repeated = [n for k, n in enumerate(names) if n in names[:k] or n == WEIGHT]
    if repeated:
        raise ParameterError(f"columns: {repeated[0]!r} is the name of something else, too")
    return symbols


def _number(value: Any, column: sp.Symbol, name: str) -> sp.Expr:
    try:
        if isinstance(value, sp.Expr):
            number = value
        elif isinstance(value, int | str) and not isinstance(value, bool):
            number = sp.Rational(value)
        else:
            # NumPy's floats, too, print as decimals once they are Python's.
            number = sp.nan if isinstance(value, bool) else sp.Rational(repr(float(value)))
    except (TypeError, ValueError):
        number = sp.nan
    if not (number.is_number and number.is_finite and number.is_real):
        raise ParameterError(f"{column} of {name!r} must be finite real numbers, got {value!r}")
    if (
        (column.is_positive and not number.is_positive)
        or (column.is_nonnegative and not number.is_nonnegative)
        or (column.is_negative and not number.is_negative)
    ):
        domain = "positive" if column.is_positive else "nonnegative"
        domain = "negative" if column.is_negative else domain
        raise ParameterError(f"{column} of {name!r} must be {domain}, got {value}")
    return number
