"""Outputs of models as SymPy expressions, of which statements about models are made.

``model.outputs["test_error"]`` is an expression in the parameters of the model, symbols by name. It
adds, multiplies and compares as any other, and is evaluated where a value is asked for:
:meth:`ModelOutput.value` in floats, :mod:`.conjectures` with proven intervals. A model whose
outputs are rational in quantities with signs says so by :class:`ClosedForms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from ..errors import ParameterError
from ..numeric.arguments import real_number
from ..symbolic.exact.enclosures import Enclosure
from .kernels.arguments import known_names

BEST = sp.Symbol("best")
"""Stands for the value of a penalty with the smallest error, instead of a number."""


def parameter(name: str) -> sp.Symbol:
    """Return the symbol of a parameter or variable in statements."""
    return sp.Symbol(name, real=True)


@dataclass(frozen=True)
class ClosedForms:
    """Outputs of a model as rational functions of symbols whose signs are known.

    Attributes
    ----------
    outputs : mapping from str to Expr
        In `coordinates`, symbols of `abbreviations` and those of `direct`.
    direct : mapping from str to Symbol
        Parameters of the model that are coordinates themselves, by name.
    implicit : mapping from str to Expr
        The other parameters, as functions of the coordinates: positive ones take every value that
        is possible, and none twice.
    coordinates : tuple of Symbol
        What `implicit` are functions of; as many, with `constants`.
    abbreviations : mapping from Symbol to Expr
        Definitions of symbols in the outputs, in coordinates and in those before.
    constants : mapping from Symbol to Expr
        Symbols for numbers of this model, which derivatives hold fixed: functions of the
        coordinates, or the symbol itself.
    meanings : mapping from Symbol to str
    """

    outputs: Mapping[str, sp.Expr]
    direct: Mapping[str, sp.Symbol]
    implicit: Mapping[str, sp.Expr]
    coordinates: tuple[sp.Symbol, ...]
    abbreviations: Mapping[sp.Symbol, sp.Expr]
    constants: Mapping[sp.Symbol, sp.Expr]
    meanings: Mapping[sp.Symbol, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExplicitOutputs:
    """Outputs of a model in its parameters and one unknown, which are enclosed over boxes.

    Attributes
    ----------
    outputs : mapping from str to Expr
        In parameters by name (:func:`parameter`), the unknown, assigned symbols and numbers.
    unknown : Symbol
        A positive number.
    equation : Expr
        Likewise; it vanishes at the unknown, is positive below and negative above.
    assignments : mapping from Symbol to Expr
        In order, in parameters, the unknown, numbers and those before.
    numbers : callable
        Of a number of digits: enclosures of numbers of the model by symbol.
    """

    outputs: Mapping[str, sp.Expr]
    unknown: sp.Symbol
    equation: sp.Expr
    assignments: Mapping[sp.Symbol, sp.Expr]
    numbers: Callable[[int], Mapping[sp.Symbol, Enclosure]]


class Quantity(sp.Atom):  # type: ignore[misc]
    """An output of a model, by name: what :class:`ModelOutput` evaluates."""

    model: Any
    name: str

    def __new__(cls, model: Any, name: str) -> Quantity:
        result: Quantity = super().__new__(cls)
        result.model, result.name = model, name
        return result

    def _hashable_content(self) -> tuple[str, ...]:
        return type(self.model).__name__, self.model.to_json(), self.name

    def __reduce__(self) -> Any:
        return type(self), (self.model, self.name)

    def sort_key(self, order: Any = None) -> Any:
        """Order by class, model and name."""
        return self.class_key(), (1, self._hashable_content()), sp.S.One.sort_key(), sp.S.One


class ModelOutput(sp.Expr):  # type: ignore[misc]
    """The value of a quantity at parameters, which are expressions.

    Parameters
    ----------
    quantity : Quantity
    bindings : Tuple of Tuple
        Name, as a text of SymPy, and value of each parameter; the model has the others.
    """

    is_commutative = True
    is_extended_real = True

    def __new__(cls, quantity: Quantity, bindings: sp.Tuple) -> ModelOutput:
        result: ModelOutput = sp.Expr.__new__(cls, quantity, bindings)
        return result

    @property
    def name(self) -> str:
        """Name of the output."""
        return str(self.args[0].name)

    @property
    def model(self) -> Any:
        """The model whose output it is."""
        return self.args[0].model

    @property
    def bindings(self) -> dict[str, sp.Expr]:
        """Values of parameters by name."""
        return {str(name): value for name, value in self.args[1]}

    def at(self, **parameters: Any) -> ModelOutput:
        """Return the output at other values of parameters: numbers or expressions.

        Raises
        ------
        ParameterError
            If the model has no such parameter.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> step = OneGradientStep("erf", "erf", alpha=2)
        >>> risk = step.outputs["risk_trained"]
        >>> risk.at(step_size=2) - risk.at(step_size=1)
        -risk_trained(step_size=1) + risk_trained(step_size=2)
        """
        known_names(parameters, self.bindings, "parameter of this output")
        return bound(self, parameters)

    def value(self, **parameters: Any) -> float:
        """Return the value at numbers.

        Parameters
        ----------
        **parameters
            By name; parameters of the model itself are as they are unless given here. A penalty may
            be "best": that with the smallest error.

        Raises
        ------
        ParameterError
            If a parameter is unknown, missing or outside its range.

        Examples
        --------
        >>> from giantstep import OneGradientStep
        >>> step = OneGradientStep("erf", "erf", alpha=2)
        >>> f"{step.outputs['improvement'].value(ridge=0.1, alpha=1):.10f}"
        '0.0249838668'
        """
        known_names(parameters, self.bindings, "parameter of this output")
        given: dict[str, Any] = {}
        for name, expr in self.bindings.items():
            if name in parameters:
                given[name] = BEST if parameters[name] == BEST.name else parameters[name]
            elif not expr.free_symbols or expr == BEST:
                given[name] = expr if expr == BEST else float(expr)
        return float(values_at(self.model, given)[self.name])

    def _sympystr(self, printer: Any) -> str:
        given = {k: v for k, v in self.bindings.items() if v != parameter(k)}
        shown = ", ".join(f"{k}={printer._print(v)}" for k, v in given.items())
        return f"{self.name}({shown})" if shown else self.name

    _sympyrepr = _sympystr

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        name = rf"\mathrm{{{self.name}}}".replace("_", r"\_")
        given = {k: v for k, v in self.bindings.items() if v != parameter(k)}
        shown = ", ".join(
            rf"\mathrm{{{k}}}=".replace("_", r"\_") + printer._print(v) for k, v in given.items()
        )
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"{name}{power}\left({shown}\right)" if shown else f"{name}{power}"


def bound(output: ModelOutput, values: Mapping[str, Any]) -> ModelOutput:
    """Return an output with some of its parameters replaced."""
    pairs = []
    for name, old in output.bindings.items():
        new = values.get(name, old)
        if isinstance(new, str) and new == BEST.name:
            new = BEST
        if isinstance(new, float):
            new = sp.Rational(repr(real_number(name, new)))
        pairs.append(sp.Tuple(sp.core.symbol.Str(name), sp.sympify(new, strict=True)))
    return ModelOutput(output.args[0], sp.Tuple(*pairs))


class Outputs(Mapping[str, ModelOutput]):
    """What a model answers, by name, as expressions in its parameters."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getitem__(self, name: str) -> ModelOutput:
        if name not in self._model._names().outputs:
            known_names([name], self._model._names().outputs, "output of this model")
        pairs = [
            sp.Tuple(sp.core.symbol.Str(axis), parameter(axis)) for axis in self._model._axes()
        ]
        return ModelOutput(Quantity(self._model, name), sp.Tuple(*pairs))

    def __contains__(self, name: object) -> bool:
        return name in self._model._names().outputs

    def __iter__(self) -> Iterator[str]:
        return iter(self._model._names().outputs)

    def __len__(self) -> int:
        return len(self._model._names().outputs)

    def __repr__(self) -> str:
        return f"Outputs({', '.join(self)})"


def values_at(model: Any, parameters: Mapping[str, Any]) -> dict[str, float]:
    """Return all outputs of a model at numbers; a parameter may be :data:`BEST`.

    Raises
    ------
    ParameterError
        If one that the model asks for is missing.
    """
    require_asked(model, parameters)
    given = {name: value for name, value in parameters.items() if value != BEST}
    for name, value in parameters.items():
        if value == BEST:
            given[name] = best_value(model, name, given)
    columns = {name: np.array([float(value)]) for name, value in given.items()}
    found = model._solve_rows(columns, 1e-11, True)
    return {name: float(values[0]) for name, values in found.values.items()}


def require_asked(model: Any, given: Mapping[str, Any]) -> None:
    """Refuse if a parameter that the model has not itself has no value."""
    for name in model._asked:
        if name not in given:
            raise ParameterError(
                f"{name} has no value: outputs of {type(model).__name__} depend on it, so give "
                f"{name}= a number, or a range in over="
            )


def best_value(model: Any, name: str, given: Mapping[str, Any]) -> float:
    """Return the value of a parameter at which the error after the step is smallest.

    Raises
    ------
    ParameterError
        If the model has no optimum over it.
    """
    if not hasattr(model, "optimum"):
        raise ParameterError(f"{type(model).__name__} has no best {name}: give a number or a range")
    asked = {k: float(v) for k, v in given.items() if k in model._asked and k != name}
    own = {k: v for k, v in given.items() if k not in model._asked}
    found = (model.at(**own) if own else model).optimum(over=name, progress=False, **asked)
    value = getattr(found, name, None)
    return float(found.value if value is None else value)
