r"""Activations: the catalogue, and those a user writes as an expression in z.

Each is a function of one standard Gaussian variable with finite second moment. What derivations and
quadrature need of it, parity, kinks, jumps and the strip of analyticity, follows from its
expression (:mod:`.regularity`), for the catalogue just as for a user's own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import sympy as sp

from ...errors import AssumptionError, ExpressionError, ParameterError, UnsupportedExpressionError
from ...pages import InLatex, shorten
from .arguments import as_expression, is_array, on_arrays, text_of_function
from .exact_numbers import require_evaluated
from .expression_reader import OTHER_WORDS
from .expression_text import (
    CONSTANTS,
    FUNCTIONS,
    FUNCTIONS_OF_SEVERAL,
    PARTIAL_FUNCTIONS,
    SHAPED,
)
from .functions import relu
from .parser import Parameters, may_be_an_input, named_symbols, parse_expression
from .piecewise_polynomials import by_steps, without_extrema
from .regularity import Parity, Regularity, analyse, require_square_integrable

z = sp.Symbol("z", real=True)
"""The standard Gaussian variable that every activation is a function of."""

_NAME = re.compile(r"[^\W\d]\w*")
_HERMITE_NAME = re.compile(r"He[0-9]*")
# A name with its number, as "elu(1/2)", in place of "elu(z, 1/2)".
_SHAPED = re.compile(rf"({'|'.join(SHAPED)})\(([^,()z]+)\)")


@dataclass(frozen=True, repr=False)
class Activation(InLatex):
    r"""A function of a standard Gaussian variable with finite second moment.

    Made by :func:`activation`; the constructor does not check anything.

    Attributes
    ----------
    name : str
        Name in the catalogue, or the text the user gave; not part of the value.
    expr : Expr
        The function as an exact expression in `z`.

    Examples
    --------
    >>> relu = activation("relu")
    >>> relu, relu.kinks, relu.jumps, relu.derivative
    (Activation('relu': relu(z)), (0,), (), Heaviside(z))
    >>> activation("tanh(2*z) + z/4").pole_distance
    pi/4
    >>> activation("erf")(sp.Symbol("x"))
    erf(x)
    """

    name: str = field(compare=False)
    expr: sp.Expr

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """The other symbols of the expression, which stand for real numbers."""
        return tuple(sorted(self.expr.free_symbols - {z}, key=str))

    @property
    def regularity(self) -> Regularity:
        """All that is known about analyticity; the properties below are its parts."""
        return analyse(self.expr, z)

    @property
    def parity(self) -> Parity:
        """Even or odd if provable."""
        return self.regularity.parity

    @property
    def kinks(self) -> tuple[sp.Expr, ...]:
        """Points of the real line where the function is not analytic, in ascending order."""
        return self.regularity.kinks

    @property
    def jumps(self) -> tuple[sp.Expr, ...]:
        """Those of the kinks where the function is discontinuous."""
        return self.regularity.jumps

    @property
    def pole_distance(self) -> sp.Expr | None:
        """Lower bound of the distance of complex singularities from the real axis.

        oo for entire pieces, None if unknown.
        """
        return self.regularity.strip

    @property
    def derivative(self) -> sp.Expr:
        """Weak derivative as an expression in z.

        Raises
        ------
        AssumptionError
            If the function jumps: its derivative is then a distribution.
        """
        if self.jumps:
            points = ", ".join(map(str, self.jumps))
            raise AssumptionError(
                f"activation {self.name!r} has no weak derivative: it jumps at z = {points}\n"
                "  choose a continuous activation, such as erf or tanh for sign"
            )
        # A continuous function has no point masses; SymPy writes those of its parts, as in
        # (z*sign(z))' = sign(z) + 2*z*DiracDelta(z).
        return self.expr.diff(z).replace(sp.DiracDelta, lambda *_: sp.S.Zero)

    def __call__(self, argument: Any) -> Any:
        """Return the function at a SymPy expression, a number, or each entry of a NumPy array.

        Examples
        --------
        >>> import numpy as np
        >>> activation("relu")(np.array([-1.0, 0.5]))
        array([0. , 0.5])
        """
        if is_array(argument):
            return on_arrays(self.expr, [z], [argument])
        if isinstance(argument, str):
            raise ParameterError(
                f"an activation takes a SymPy expression, not the text {argument!r}; "
                "use sympy.Symbol or giantstep.symbolic.expressions.parser.parse_expression"
            )
        return self.expr.xreplace({z: as_expression(argument, "argument")})

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Activation({self.name!r}: {shorten(str(self.expr))})"

    def latex(self) -> str:
        """Return the function in LaTeX, without delimiters."""
        return rf"\sigma(z) = {sp.latex(self.expr)}"


def _catalogue() -> dict[str, Activation]:
    names = (
        "erf", "tanh", "sin", "cos", "relu", "sign", "abs", "step", "softplus", "sigmoid", "gelu",
        "swish", "mish", "leaky_relu", "elu", "celu", "selu", "hardtanh", "Phi", "atan", "exp",
    )  # fmt: skip
    expressions = {name: FUNCTIONS[name](z) for name in names}
    expressions["identity"] = z
    expressions |= {f"He{k}": parse_expression(f"He{k}", [z]) for k in range(1, 9)}
    return {name: Activation(name, expr) for name, expr in expressions.items()}


_KNOWN = _catalogue()
CATALOGUE: Mapping[str, Activation] = MappingProxyType(_KNOWN)
"""Activations by name. Hermite polynomials of higher order are known by name too, up to He64."""
_DECLARED: dict[str, Activation] = {}


def declare_activation(name: str, expression: str | sp.Expr) -> Activation:
    """Give an activation a name, by which everything that reads expressions knows it from then on.

    ``"name"`` is a student or a teacher of every model, and ``name(...)`` a function in
    expressions, losses and targets. Models keep the expression that the name stands for, so that
    their files and caches mean the same where the name is not declared. Commands know the
    declarations of the Python files that the environment variable GIANTSTEP_EXTENSIONS lists.

    Parameters
    ----------
    name : str
        A word that nothing else has.
    expression : str or Expr
        As for :func:`activation`.

    Raises
    ------
    ParameterError
        If the name is no word, or stands for something else.
    ExpressionError, AssumptionError, UnsupportedExpressionError
        As for :func:`activation`.

    Examples
    --------
    >>> declare_activation("bent", "z + tanh(z)/2")
    Activation('bent': z + tanh(z)/2)
    >>> activation("bent(2*z)").expr
    2*z + tanh(2*z)/2
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _HERMITE_NAME.fullmatch(name):
        raise ParameterError(f"name must be a word of letters, digits and _, got {name!r}")
    result = Activation(name, activation(expression, argument=f"activation {name}").expr)
    if _DECLARED.get(name) == result:
        return _DECLARED[name]
    if name == str(z) or name in CATALOGUE or name in _words():
        raise ParameterError(f"name must be new, and {name!r} stands for something else already")
    _DECLARED[name] = _KNOWN[name] = FUNCTIONS[name] = result
    return result


def without_declared(text: str) -> str:
    """Return the text of an expression with declared activations written out.

    Parameters
    ----------
    text : str
        An activation, or an expression in whatever variables.
    """
    words = {*_NAME.findall(text)}
    if not words & _DECLARED.keys():
        return text
    if text.strip() in _DECLARED:
        return str(_DECLARED[text.strip()].expr)
    free = sorted(words - _words())
    return str(parse_expression(text, [sp.Symbol(word, real=True) for word in free]))


def _words() -> set[str]:
    return {*CONSTANTS, *FUNCTIONS, *PARTIAL_FUNCTIONS, *FUNCTIONS_OF_SEVERAL, "He"}


def activation(
    spec: str | sp.Expr | Activation,
    *,
    parameters: Parameters = False,
    argument: str = "activation",
) -> Activation:
    r"""Return the activation that a name, a text or an expression stands for.

    Parameters
    ----------
    spec : str, Expr or Activation
        A name of the `CATALOGUE`, the text of an expression in z (see
        :func:`.parser.parse_expression`), or a SymPy expression with exactly one free symbol, of
        any name; it is replaced by the real symbol `z`, and floating-point numbers by the decimal
        numbers they print as. Beside parameters the variable has to be z.
    parameters : bool, str, sequence or mapping
        Symbols that stand for real numbers: True for all but z in an expression, names or symbols,
        which a text may hold only if they are named, or kinds by name. None by default.
    argument : str
        How the user knows the activation; error messages begin with it or name it.

    Returns
    -------
    Activation
        That of the catalogue if the expression is in the catalogue.

    Raises
    ------
    ExpressionError
        If a text is not an expression in z, or the expression does not depend on exactly one
        variable.
    ParameterError
        If `spec` is of another type.
    AssumptionError
        If :math:`\mathbb{E}\sigma(z)^2` is not finite, or the function is not real or singular on
        the real line.
    UnsupportedExpressionError
        If its kinks or its growth are not known.

    Examples
    --------
    >>> activation("He(3, z)/6")
    Activation('He(3, z)/6': z**3/6 - z/2)
    >>> activation("leaky_relu"), activation("leaky_relu(1/5)").derivative
    (Activation('leaky_relu': -relu(-z)/100 + relu(z)), Heaviside(-z)/5 + Heaviside(z))
    >>> activation(sp.tanh(sp.Symbol("t")))
    Activation('tanh': tanh(z))
    >>> activation("tanh(z) + a*z", parameters={"a": "positive"}).parameters
    (a,)
    """
    if isinstance(spec, Activation):
        if spec.parameters and parameters is False:
            raise _without_values(spec.expr, spec.parameters, argument)
        return spec
    named = named_symbols(parameters)
    if isinstance(spec, str):
        name = spec.strip()
        if name in CATALOGUE:
            return CATALOGUE[name]
        expr = _read(name, named, argument)
    elif isinstance(spec, sp.Expr):
        expr = _in_z(spec, parameters, named, argument)
        name = str(expr)
    else:
        raise ParameterError(
            f"{argument} has to be a name, a text or a SymPy expression, not {spec!r}; "
            f"{text_of_function(spec) or 'names are ' + ', '.join(CATALOGUE)}"
        )
    if z not in expr.free_symbols:
        raise ExpressionError(
            f"{argument} {name!r} is the constant {expr}; give a function that depends on z"
        )
    for known in CATALOGUE.values():
        if known.expr == expr and known.name not in _DECLARED:
            return known
    require_square_integrable(expr, z, argument=argument)
    try:
        analyse(expr, z)
    except UnsupportedExpressionError as error:
        raise UnsupportedExpressionError(f"{argument} {name!r} is not supported: {error}") from None
    return Activation(name, expr)


def _read(text: str, parameters: Mapping[str, sp.Symbol], argument: str) -> sp.Expr:
    is_name = _NAME.fullmatch(text) and text != "z" and not _HERMITE_NAME.fullmatch(text)
    if is_name and text not in FUNCTIONS:
        word = OTHER_WORDS.get(text.lower(), text.lower())
        close = [word] if word in CATALOGUE else difflib.get_close_matches(text, CATALOGUE, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "it is not in the catalogue"
        raise ExpressionError(
            f"unknown {argument} {shorten(text)!r}; {hint}\n"
            f"  catalogue: {', '.join(CATALOGUE)}\n"
            "  or give an expression in z, such as 'tanh(2*z) + z/4'"
        )
    if text in FUNCTIONS:
        text = f"{text}(z)"
    text = _SHAPED.sub(r"\1(z, \2)", text)
    try:
        return parse_expression(text, [*parameters.values(), z], argument=argument)
    except ExpressionError as error:
        if "unknown name" not in str(error):
            raise
        raise ExpressionError(
            f"{error}\n  a parameter has to be named: "
            f"giantstep.activation({shorten(text)!r}, parameters='a')"
        ) from None


def _in_z(
    spec: sp.Expr, parameters: Parameters, named: Mapping[str, sp.Symbol], argument: str
) -> sp.Expr:
    require_evaluated(spec, argument)
    symbols = sorted(spec.free_symbols - set(named.values()), key=str)
    if parameters is not False and len(symbols) > 1:
        symbols = _variable(spec, symbols, parameters, argument)
    if len(symbols) != 1:
        names = ", ".join(map(str, symbols)) or "none"
        raise ExpressionError(
            f"{argument} {spec} has to have exactly one free symbol, but has {names}; "
            "substitute numbers for parameters"
        )
    # Floats print as the decimals that were meant; the expression has to be exact.
    exact = {number: sp.Rational(str(number)) for number in spec.atoms(sp.Float)}
    expr = spec.xreplace({symbols[0]: z, **exact})
    expr = by_steps(expr.replace(sp.Max, _rectified), (z,))
    return without_extrema(expr, argument)


def _variable(
    spec: sp.Expr, symbols: Sequence[sp.Symbol], parameters: Parameters, argument: str
) -> list[sp.Symbol]:
    """Return the symbol z of an expression with parameters; refuse what may be either."""
    variables = [symbol for symbol in symbols if symbol.name == z.name]
    others = [symbol for symbol in symbols if symbol not in variables]
    names = [x.name for x in others if may_be_an_input(x) or parameters is not True]
    if len(variables) == 1 and not names:
        return variables
    asked = ", ".join(names or map(str, symbols))
    raise ExpressionError(
        f"{argument} {shorten(str(spec))} holds {asked}: the variable or a parameter?\n"
        "  the variable is z; say which symbols are parameters, as "
        f"parameters=[{', '.join(map(str, others))}]"
    )


def _without_values(
    expr: sp.Expr, parameters: Sequence[sp.Symbol], argument: str
) -> ExpressionError:
    return ExpressionError(
        f"{argument} {shorten(str(expr))} holds {', '.join(map(str, parameters))}: numbers are "
        "needed here, not parameters; substitute numbers for them"
    )


def _rectified(*operands: sp.Expr) -> sp.Expr:
    """Return relu(u) for Max(0, u), the usual spelling of it in SymPy."""
    others = [operand for operand in operands if operand != 0]
    return relu(others[0]) if len(operands) == 2 and len(others) == 1 else sp.Max(*operands)
