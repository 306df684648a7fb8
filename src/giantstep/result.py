r"""Results whose fields are declared once: text, HTML, LaTeX, JSON and datasets follow.

A result is a frozen dataclass. Fields that people read are declared by :func:`quantity`, with
words and a symbol; the annotation of every field says how it is read from JSON. What applies:

- Numbers of the theory are annotated :data:`Number`. They are floats, or numbers of mpmath if the
  result has a field `digits` that is not None, and are then shown as the digits that hold.
- A field or property `errors` maps names of numbers to estimated absolute errors.
- A field or property `rests_on` says in words what the numbers rest on; it ends every page.
- Expressions of SymPy stand in documents as text that reads back equal; the entry "symbols" says
  what their symbols are declared as.

The module lies below symbolic/, numeric/ and derivations/, so that all of them can stand on it.
"""

from __future__ import annotations

import json
import math
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from .digits import checked_digits, error_text, held_digits
from .errors import GiantstepError, ParameterError
from .json_document import JsonDocument
from .labelled import labelled
from .packed_numbers import SentWithDigits
from .pages import Block, Page, Table, Typeset, latex_text
from .pictures import Bars, Drawn, Picture

if TYPE_CHECKING:
    import xarray as xr

_NUMBER = "a float, or a number of mpmath where digits were asked for"
Number = Annotated[Any, _NUMBER]
"""Annotation of fields that hold numbers of the theory."""
if TYPE_CHECKING:
    Scalar: TypeAlias = float
else:
    Scalar = Number
"""The same for numbers that type checkers see as floats."""

_ABOUT = "giantstep"
_NOT_FINITE = ("inf", "+inf", "-inf", "nan")
_SYMBOLS = "symbols"
_CACHE = "cache_folder"
_IN_REPR = 4
# Of names that are a key together.
_BETWEEN = ", "
_TYPE_NAMES = {
    float: "a number", int: "a whole number", bool: "true or false", str: "a text",
    type(None): "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _About:
    words: str
    symbol: str
    meaning: str
    symbols: Mapping[str, str]
    significant: int


def quantity(
    words: str,
    symbol: str = "",
    *,
    meaning: str = "",
    symbols: Mapping[str, str] | None = None,
    significant: int = 12,
) -> Mapping[str, Any]:
    """Return the metadata of a field that people read: ``field(metadata=quantity(...))``.

    Parameters
    ----------
    words : str
        What the field is, in few words. The numbers of a mapping are named by its keys instead.
    symbol : str
        In LaTeX; by default the words.
    meaning : str
        What stands behind the value, where the words are no more than a name.
    symbols : mapping from str to str, optional
        Those of the numbers of a mapping.
    significant : int
        Digits of floats that are shown.
    """
    return {_ABOUT: _About(words, symbol, meaning, symbols or {}, significant)}


@dataclass(frozen=True, slots=True)
class Row:
    """One number, text or truth value as people read it.

    Attributes
    ----------
    name : str
        Of the field, or the key in it.
    words, symbol, meaning : str
    value : number, str, bool or tuple
    text : str
        The value.
    error : str
        Of the value; empty if none is known.
    """

    name: str
    words: str
    symbol: str
    meaning: str
    value: Any
    text: str
    error: str


class Result(SentWithDigits, Page, Typeset, Drawn, JsonDocument):
    """A frozen dataclass whose renderings follow from the declaration of its fields."""

    _column: ClassVar[int] = 0
    """Where values start in a terminal, if the words are short enough."""
    _where: ClassVar[tuple[str, ...]] = ()
    """Fields that :func:`repr` shows before the numbers."""
    _relation: ClassVar[str] = "="
    """What stands between a symbol and its value in LaTeX."""
    _derived: ClassVar[tuple[str, ...]] = ()
    """Properties that documents hold, too; they are not read."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # What a class has, the decorator of dataclasses leaves alone; it would compare NaN.
        for name in ("__eq__", "__hash__"):
            if cls.__dict__.get(name) is None:
                setattr(cls, name, getattr(cls, name) or getattr(Result, name))

    def __eq__(self, other: object) -> bool:
        """Tell whether another result has the same fields, NaN where this one has it."""
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __getstate__(self) -> dict[str, Any]:
        # What is derived when it is asked for is derived again.
        own = {f.name for f in fields(self)}  # type: ignore[arg-type]
        return {name: x for name, x in super().__getstate__().items() if name in own}

    def _compared(self) -> tuple[Any, ...]:
        return tuple(_with_equal_nan(getattr(self, f.name)) for f in fields(self) if f.compare)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ what people read

    @classmethod
    def _declared(cls) -> dict[str, _About]:
        return {f.name: f.metadata[_ABOUT] for f in fields(cls) if _ABOUT in f.metadata}  # type: ignore[arg-type]

    def entries(self) -> list[Row]:
        """Return what the fields hold, number by number; what is None, empty or NaN is left out."""
        result = []
        for name, about in self._declared().items():
            value = getattr(self, name)
            if isinstance(value, Mapping):
                for key, one in value.items():
                    symbol = about.symbols.get(key, "")
                    result.append(self._row(key, replace(about, words=key, symbol=symbol), one))
            elif not (value is None or _is_empty(value) or _is_nan(value)):
                result.append(self._row(name, about, value))
        return result

    def _row(self, key: Any, about: _About, value: Any) -> Row:
        error = self._error_of(key)
        return Row(
            name=_key_text(key),
            words=about.words,
            symbol=about.symbol or latex_text(about.words),
            meaning=about.meaning,
            value=value,
            text=self.text(value, error, significant=about.significant),
            error="" if error is None else f"± {error_text(error)}",
        )

    def _error_of(self, key: Any) -> Any:
        return getattr(self, "errors", {}).get(key)

    def estimated(self) -> dict[str, Any]:
        """Return the numbers whose error is estimated, by name."""
        return {
            row.name: row.value for row in self.entries() if self._error_of(row.name) is not None
        }

    def text(self, value: Any, error: Any = None, *, significant: int = 12) -> str:
        """Return a number of the result with the digits that hold, other values in words.

        Parameters
        ----------
        value : number, tuple of numbers, str or bool
        error : number, optional
            Estimated absolute error, which decides how many of the digits asked for hold.
        significant : int
            Digits of floats; fewer where the error reaches into them.
        """
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return f"[{', '.join(self.text(x, error, significant=significant) for x in value)}]"
        if hasattr(value, "free_symbols") or not isinstance(value, float) | hasattr(value, "_mpf_"):
            return str(value)
        digits = getattr(self, "digits", None)
        if digits is None or isinstance(value, float) or not math.isfinite(value):
            return f"{float(value):.{_shown_digits(float(value), error, significant)}g}"
        return held_digits(value, digits, error)

    def page(self) -> Iterable[Block]:
        """Return the numbers as a table, errors beside it, and what they rest on."""
        rows = self.entries()
        beside = [(row.error,) for row in rows] if any(row.error for row in rows) else ()
        meanings = any(row.meaning for row in rows)
        cells = [(row.words, row.text, *([row.meaning] if meanings else [])) for row in rows]
        yield Table(cells, beside=beside, column=self._column)
        if rests_on := getattr(self, "rests_on", ""):
            yield rests_on

    def latex(self) -> str:
        """Return the numbers with their symbols in LaTeX, aligned, without delimiters."""
        rows = [rf"{x.symbol} &{self._relation} {_latex_value(x)}" for x in self.entries()]
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def picture(self) -> Picture:
        """Return the numbers as bars with their errors."""
        shown = [
            (row, _with_error(row.value, self._error_of(row.name))) for row in self._own_rows()
        ]
        return Bars({row.words: one for row, one in shown if one is not None}, self._document)

    def _own_rows(self) -> list[Row]:
        """Return the rows of fields; numbers of mappings only where there are no others."""
        rows = self.entries()
        return [row for row in rows if row.name in self._declared()] or rows

    def __repr__(self) -> str:
        own = self._own_rows()
        where = {name: getattr(self, name) for name in self._where}
        shown = [f"{name}={_short(x)}" for name, x in where.items() if x is not None]
        shown += [f"{row.name}={row.text}" for row in own[:_IN_REPR]]
        more = ["…"] if len(own) > _IN_REPR else []
        return f"{type(self).__name__}({', '.join([*shown, *more])})"

    # ------------------------------------------------------------------ documents

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values; numbers with digits as text, those that hold."""
        return self._plain_fields(lambda name, number: self.text(number, self._error_of(name)))

    def _fields(self) -> dict[str, Any]:
        # Documents hold so many digits that the same binary numbers are read back.
        digits = getattr(self, "digits", None)
        return self._plain_fields(lambda _, number: _exact_text(number, digits))

    def _plain_fields(self, number: Callable[[str, Any], str]) -> dict[str, Any]:
        digits = getattr(self, "digits", None)
        declared = self._declared()
        names = [f.name for f in fields(self) if f.init and f.name != _CACHE]  # type: ignore[arg-type]
        names += [name for name in (*self._derived, "rests_on") if name not in names]
        symbols: dict[str, str] = {}
        result: dict[str, Any] = {}
        for name in (name for name in names if hasattr(self, name)):
            # Errors are no numbers of which digits hold.
            text = number if name in declared else lambda _, x: _exact_text(x, digits)
            result[name] = _Writer(text, symbols).plain(getattr(self, name), name)
        return {**result, _SYMBOLS: symbols} if symbols else result

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the result that :meth:`to_dict` wrote.

        Raises
        ------
        ParameterError
            If the values are no such result; the message names the field.
        """
        try:
            return cls(**cls._read(values))
        except (GiantstepError, TypeError, ValueError) as error:
            raise ParameterError(
                f"the content is no {cls._document} written by to_dict or to_json: {error}"
            ) from None

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            raise TypeError(f"it must hold fields by name, got {type(values).__name__}")
        known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
        symbols = {} if _SYMBOLS in known else values.get(_SYMBOLS, {})
        given = {k: v for k, v in values.items() if k in known or not cls._is_derived(k)}
        if unknown := [name for name in given if name not in known]:
            raise ValueError(f"no field is named {unknown[0]!r}; there are: {', '.join(known)}")
        needed = {
            name
            for name, f in known.items()
            if f.default is MISSING and f.default_factory is MISSING
        }
        if missing := sorted(needed - set(given)):
            raise ValueError(f"field {missing[0]!r} is missing")
        make: Callable[[Any], Any] = float
        if given.get("digits") is not None:
            from .runtime.precision import local_context

            make = local_context(checked_digits(given["digits"])).mpf
        hints, reader = _hints(cls), _Reader(make, symbols)
        return {name: reader.value(value, hints[name], name) for name, value in given.items()}

    @classmethod
    def _is_derived(cls, name: str) -> bool:
        return name in (*cls._derived, _SYMBOLS) or (name == "rests_on" and hasattr(cls, name))

    def to_dataset(self) -> xr.Dataset:
        """Return the numbers as a dataset without dimensions but those of tuples.

        Words, symbols and estimated errors are attributes of the variables; what is no number is
        an attribute of the dataset. Numbers with digits become floats, proven intervals their
        midpoints with the radius as error, means keep their standard error.
        """
        data: dict[str, Any] = {}
        about: dict[str, Any] = {"result": self._document}
        for row in self.entries():
            several = isinstance(row.value, tuple)
            parts = row.value if several else (row.value,)
            given = [_with_error(part, self._error_of(row.name)) for part in parts]
            result = [one for one in given if one is not None]
            if len(result) < len(given):
                about[row.name] = row.text
                continue
            attributes: dict[str, Any] = {"long_name": row.words, "symbol": row.symbol}
            if result[0][1] is not None:
                attributes["error"] = float(result[0][1])
            dimensions = (f"{row.name}_number",) if several else ()
            number = [x for x, _ in result] if several else result[0][0]
            data[row.name] = (dimensions, number, attributes)
        if rests_on := getattr(self, "rests_on", ""):
            about["rests_on"] = rests_on
        return labelled(data, attrs=about)


def _with_error(value: Any, error: Any) -> tuple[float, Any] | None:
    """Return a number and its error, None for what is no number.

    The errors of proven intervals and means are their own.
    """
    if isinstance(value, str | bool) or getattr(value, "free_symbols", None):
        return None
    for centre, spread in (("midpoint", "radius"), ("mean", "standard_error")):
        if hasattr(value, centre):
            return float(getattr(value, centre)), getattr(value, spread)
    try:
        return float(value), error
    except TypeError:
        return None


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown_digits(value: float, error: Any, significant: int) -> int:
    """Return how many digits of a float to show: none beyond the first that the error changes."""
    size = abs(float(error)) if error is not None else 0.0
    if not (value and 0 < size < math.inf and math.isfinite(value)):
        return significant
    places = math.floor(math.log10(abs(value))) - math.floor(math.log10(size))
    return min(max(places + 1, 1), significant)


def _is_empty(value: object) -> bool:
    return isinstance(value, str | tuple) and not value


def _is_nan(value: Any) -> bool:
    return (isinstance(value, float) or hasattr(value, "_mpf_")) and value != value


def _with_equal_nan(value: Any) -> Any:
    """Return a value as one that is equal to another one with NaN at the same places."""
    if isinstance(value, Mapping):
        return frozenset((key, _with_equal_nan(v)) for key, v in value.items())
    if isinstance(value, tuple):
        return tuple(map(_with_equal_nan, value))
    if hasattr(value, "tolist"):
        return _nested(value.tolist())
    return math.nan if _is_nan(value) else value


def _nested(value: Any) -> Any:
    return tuple(map(_nested, value)) if isinstance(value, list) else _with_equal_nan(value)


def _latex_value(row: Row) -> str:
    """Return a value as LaTeX, printed numbers with powers of ten and the sign of an error."""
    if hasattr(row.value, "latex"):
        return str(row.value.latex())
    if hasattr(row.value, "free_symbols"):
        from .derivations.formulas import latex

        return latex(row.value)
    is_number = _with_error(row.value, None) is not None or isinstance(row.value, tuple)
    return latex_number(row.text) if is_number else latex_text(row.text)


def latex_number(text: str) -> str:
    r"""Return a printed number as LaTeX, with powers of ten and the sign of an error.

    Examples
    --------
    >>> print(latex_number("1.5e-07"))
    1.5 \cdot 10^{-7}
    """
    text = text.replace("inf", r"\infty").replace("nan", r"\text{nan}").replace("±", r"\pm")
    number, _, power = text.partition("e")
    return rf"{number} \cdot 10^{{{int(power)}}}" if power.lstrip("+-").isdigit() else text


# ---------------------------------------------------------------------- plain values and back


@dataclass(frozen=True, slots=True)
class _Writer:
    """Makes values as JSON has them.

    Attributes
    ----------
    number : callable
        Returns the text of a number of mpmath of the given name.
    symbols : dict
        To which those of expressions are added, with what they are declared as.
    """

    number: Callable[[str, Any], str]
    symbols: dict[str, str]

    def plain(self, value: Any, name: str) -> Any:
        """Return a value of the given name."""
        if isinstance(value, Enum):
            return value.value
        if value is None or isinstance(value, bool | str):
            return value
        if hasattr(value, "to_dict"):
            return value.to_dict()
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, Mapping):
            return {(k := _key_text(key)): self.plain(v, k) for key, v in value.items()}
        if hasattr(value, "tolist"):
            return self.plain(value.tolist(), name)
        if isinstance(value, tuple | list):
            return [self.plain(v, name) for v in value]
        if hasattr(value, "free_symbols"):
            from .symbolic.expressions.expression_documents import expression_document

            return expression_document(value, self.symbols)
        if hasattr(value, "_mpf_"):
            return self.number(name, value)
        if hasattr(value, "to_json"):
            return json.loads(value.to_json())
        if is_dataclass(value):
            return {f.name: self.plain(getattr(value, f.name), f.name) for f in fields(value)}
        return str(value)


def _key_text(key: Any) -> str:
    return _BETWEEN.join(key) if isinstance(key, tuple) else str(key)


def _key_of(text: Any) -> tuple[str, ...]:
    return tuple(str(text).split(_BETWEEN))


def _exact_text(value: Any, digits: int | None) -> str:
    from mpmath import libmp

    from .runtime.precision import local_context

    bits = max(value._mpf_[3], local_context(digits or 1).prec)
    return str(libmp.to_str(value._mpf_, libmp.repr_dps(bits), strip_zeros=False))


def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of the fields; those imported for type checkers only are public."""
    known: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(cls, localns=known, include_extras=True)
        except NameError as error:
            name = str(error.name)
            known[name] = getattr(import_module(__package__), name)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes values of JSON what annotations ask for; attributes as those of the writer."""

    number: Callable[[Any], Any]
    symbols: Mapping[str, str]

    def value(self, value: Any, hint: Any, name: str) -> Any:
        """Return a value of JSON as what an annotation asks for."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is Any:
            return value
        if origin is Annotated and _NUMBER in arguments:
            return _number(value, self.number, name)
        if origin in (typing.Union, types.UnionType):
            return self._one_of(value, arguments, name)
        if origin is tuple:
            if not isinstance(value, list | tuple):
                raise TypeError(f"{name} must be a list, got {value!r}")
            one = arguments[1:] == (...,)
            if not one and len(value) != len(arguments):
                raise ValueError(f"{name} must have {len(arguments)} entries, got {len(value)}")
            kinds = (arguments[0],) * len(value) if one else arguments
            return tuple(self.value(v, k, name) for v, k in zip(value, kinds, strict=True))
        if hasattr(origin, "__value__"):
            # From NumPy 2.5 on NDArray is the name of a type.
            return self.value(value, origin.__value__[arguments], name)
        if origin is not None and hasattr(origin, "__array_finalize__"):
            return _array(value, typing.get_args(arguments[1])[0], name)
        if origin is not None and issubclass(origin, Mapping):
            if not isinstance(value, Mapping):
                raise TypeError(f"{name} must hold values by name, got {value!r}")
            key = _key_of if typing.get_origin(arguments[0]) is tuple else arguments[0]
            return {key(k): self.value(v, arguments[1], f"{name}[{k!r}]") for k, v in value.items()}
        if hint in _TYPE_NAMES:
            if hint is float:
                return _number(value, float, name)
            if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
                raise TypeError(f"{name} must be {_TYPE_NAMES[hint]}, got {value!r}")
            return value
        if hasattr(hint, "from_dict") or hasattr(hint, "from_json"):
            try:
                if hasattr(hint, "from_dict"):
                    return hint.from_dict(value)
                return hint.from_json(json.dumps(value))
            except GiantstepError as error:
                raise ValueError(f"{name}: {error}") from None
        if is_dataclass(hint):
            hints = _hints(hint)
            if not isinstance(value, Mapping) or not set(value) <= set(hints):
                raise TypeError(f"{name} must hold {', '.join(hints)}, got {value!r}")
            made: Any = hint
            return made(**{k: self.value(v, hints[k], f"{name}.{k}") for k, v in value.items()})
        if _is_symbolic(hint):
            return self._expression(value, hint, name)
        try:
            return hint(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def _one_of(self, value: Any, hints: Iterable[Any], name: str) -> Any:
        if value is None:
            return value
        first: Exception | None = None
        for hint in (x for x in hints if x is not type(None)):
            try:
                return self.value(value, hint, name)
            except (GiantstepError, TypeError, ValueError) as error:
                first = first or error
        assert first is not None
        raise first

    def _expression(self, value: Any, hint: Any, name: str) -> Any:
        from .symbolic.expressions.expression_documents import read_expression_document

        if isinstance(value, list) and hasattr(hint, "tolist"):
            return hint([[self._expression(x, object, name) for x in row] for row in value])
        if not isinstance(value, str | int):
            raise TypeError(f"{name} must be an expression, got {value!r}")
        result = read_expression_document(str(value), self.symbols)
        if not isinstance(result, hint):
            raise TypeError(f"{name} must be of the kind {hint.__name__}, got {value!r}")
        return result


def _is_symbolic(hint: Any) -> bool:
    return str(getattr(hint, "__module__", "")).partition(".")[0] == "sympy"


def _array(value: Any, kind: Any, name: str) -> Any:
    """Return nested lists of numbers as an array."""
    import numpy as np

    if not isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a list, got {value!r}")
    try:
        return np.array(value, dtype=kind)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must hold numbers, all rows of one length") from None


def _number(value: Any, make: Callable[[Any], Any], name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, float | int | str):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if make is float and isinstance(value, str) and value not in _NOT_FINITE:
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        return make(value)
    except ValueError:
        raise TypeError(f"{name} must be a number, got {value!r}") from None
