"""The exact commands: Hermite coefficients, Gaussian expectations, gradients, ledgers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import cli_options as opts
from .cli_files import deliver, output, without_figure
from .cli_options import Command, option, whole
from .digits import MOST_DIGITS, held_digits
from .errors import AssumptionError, ParameterError, UndecidedError
from .pages import aligned

if TYPE_CHECKING:
    import sympy as sp

    from .symbolic.targets.stein import GradientExpansion

_HERMITE = """\
conventions:
  He_k are the probabilists' Hermite polynomials, z is standard Gaussian, and
  mu_k = E[f(z) He_k(z)] is divided by neither k! nor its root: f = sum_k mu_k/k! He_k.

Coefficients are exact; 0 means zero by parity or by algebra. What has no closed form (tanh,
sigmoid, softplus, swish) is printed as E_z[...] with digits from quadrature, or, with
--certified, as a proven interval (needs python-flint: pip install "giantstep[flint]").

examples:
  giantstep hermite "erf(z)" --order 9
  giantstep hermite gelu --closed-form
  giantstep hermite "erf(a*z + b)" --parameter a:positive --parameter b:real --closed-form
  giantstep hermite tanh --order 11 --certified
"""

_EXPECT = """\
Without --joint, EXPR is a function of one standard Gaussian variable z. With --joint RHO it is a
function of two, u and v, with correlation RHO: a name, which is declared real, a number, or an
expression in names declared by --parameter.

examples:
  giantstep expect "erf(z)**2"
  giantstep expect "relu(a*z + b)" --parameter a:positive --parameter b:real
  giantstep expect "erf(u)*erf(v)" --joint rho
  giantstep expect "relu(u)*relu(v)" --joint rho --latex
  giantstep expect "erf(u)*relu(v)" --joint 1/2 --variances 2,3 --means 0,1
  giantstep expect "sin(u)*sin(v)" --joint "cos(t)" --parameter t:real
"""

_GRADIENT = """\
The population gradient of a neuron s(w.x) on a target f is
  G(w) = E[f(x) s'(w.x) x] = sum_k mu_(k+1)/k! C_(k+1)[w^k, .] + w sum_k mu_(k+2)/k! C_k[w^k]
with mu_k the Hermite coefficients of the student and C_k = E[grad^k f] (Damian, Lee and
Soltanolkotabi, arXiv 2206.15144). Each term is printed with its order in the dimension d for w
uniform on the unit sphere. --student mu keeps the coefficients mu[k] symbolic.

examples:
  giantstep gradient "x1*x2 + He(3, x1)"
  giantstep gradient "1 + x1 + x1*x2" --remove 0,1
  giantstep gradient "tanh(x1) + x2*relu(x1)" --student erf --order 3
  giantstep gradient "x1 + x1*x2" --student mu --latex
"""

_COMPLEXITY = """\
Rows say what they rest on: theorem, heuristic, or derived here, with the source.

examples:
  giantstep complexity "x1*x2 + x1**2"
  giantstep complexity "He(3, x1)" --student tanh
"""


# Digits beyond those that are printed.
_SPARE_DIGITS = 12


def hermite(arguments: argparse.Namespace) -> int:
    """Print the Hermite coefficients of an activation, exactly and in digits."""
    from .symbolic.expressions.activations import activation, z
    from .symbolic.expressions.expression_text import expression_text
    from .symbolic.hermite.coefficients import hermite_coefficients
    from .symbolic.leaps.leap_index import information_exponent

    parameters = _parameters(arguments, reserved="z")
    if parameters:
        without_figure(arguments, "a function with parameters has no figure; write numbers in EXPR")
        expr = _expression(arguments.expression, {**parameters, "z": z}, "EXPR")
        result = hermite_coefficients(expr, arguments.order, variable=z)
    else:
        result = hermite_coefficients(
            activation(arguments.expression, argument="activation"), arguments.order
        )
    # All is computed before anything is printed: an error leaves the output empty.
    closed_form = result.require_closed_form() if arguments.closed_form else None
    exponent = None if parameters else information_exponent(activation(arguments.expression))
    values = [expression_text(value) for value in result]
    digits = _digits_column(result, arguments, parameters)
    rows = [
        [str(k), *([digits[k]] if digits else []), values[k], str(result.basis[k].value)]
        for k in range(len(values))
    ]
    lines = [f"{result.name}: parity {result.parity.value}"]
    if exponent is not None:
        lines.append(f"information exponent {exponent}")
    lines += [
        "μ_k = E[f(z) He_k(z)], z ∼ N(0, 1), probabilists' He_k; f = Σ μ_k/k! He_k\n",
        aligned(["k", *(["digits"] if digits else []), "μ_k", "rests on"], rows),
    ]
    if closed_form is not None:
        lines.append(f"\n{closed_form}")
        if result.decay is not None:
            lines.append(f"{result.decay}")
    if arguments.latex:
        lines.append(f"\n{result.latex()}")
    document = {
        "function": result.name,
        "parity": result.parity.value,
        "information_exponent": exponent,
        "coefficients": [
            {"order": k, "value": value, "digits": digits[k] if digits else None, "rests_on": basis}
            for k, (value, basis) in enumerate(
                zip(values, (basis.value for basis in result.basis), strict=True)
            )
        ],
        "closed_form": None if closed_form is None else str(closed_form),
    }
    title = f"Hermite coefficients of {result.name}"
    return deliver(arguments, result, text="\n".join(lines), title=title, document=document)


def _digits_column(
    found: object, arguments: argparse.Namespace, parameters: dict[str, sp.Symbol]
) -> list[str]:
    from .symbolic.hermite.coefficients import HermiteCoefficients

    assert isinstance(found, HermiteCoefficients)
    if parameters and arguments.certified:
        raise ParameterError(
            "--certified needs numbers; leave out --parameter and write numbers in EXPR"
        )
    if parameters:
        return []
    if arguments.certified:
        return [str(ball) for ball in found.enclosures(arguments.digits)]
    more = min(arguments.digits + _SPARE_DIGITS, MOST_DIGITS)
    return [_held(value, arguments.digits) for value in found.evalf(more)]


def _held(value: sp.Expr, digits: int) -> str:
    """Return digits of a number that was evaluated to some more; what is no Float is exact."""
    return held_digits(value, digits) if value.is_Float else str(value)


def expect(arguments: argparse.Namespace) -> int:
    """Print a Gaussian expectation: its closed form, or its digits."""
    import sympy as sp

    from .symbolic.expressions.expression_text import expression_text
    from .symbolic.gaussian.expectation import expect as expectation

    parameters = _parameters(arguments, reserved="z" if arguments.joint is None else "uv")
    if arguments.joint is None:
        if arguments.variances or arguments.means:
            raise ParameterError("--variances and --means belong to --joint; give --joint RHO, too")
        from .symbolic.expressions.activations import z

        value = expectation(_expression(arguments.expression, {**parameters, "z": z}, "EXPR"), z)
        law = "z standard Gaussian"
    else:
        value, law = _joint_expectation(arguments, parameters)
    closed = not value.atoms(*_unevaluated())
    is_open_number = not value.free_symbols and not value.is_Rational
    digits = None
    if is_open_number:
        digits = _held(value.evalf(arguments.digits + _SPARE_DIGITS), arguments.digits)
    written = expression_text(value) if closed else str(value)
    if closed:
        rests_on = "exact: closed form by rules, valid for all admitted values of the parameters"
    elif value.free_symbols:
        rests_on = "no closed form is known: an unevaluated expectation"
    else:
        rests_on = "no closed form is known: digits by two quadrature rules that agree (estimated)"
    title = f"E[{arguments.expression.strip()}], {law}"
    lines = [title, f"= {written}", *([] if digits is None else [f"= {digits}"]), rests_on]
    if arguments.latex:
        lines.append(sp.latex(value))
    document = {
        "expression": arguments.expression.strip(), "law": law, "value": written,
        "digits": digits, "rests_on": rests_on,
    }  # fmt: skip
    return deliver(arguments, text="\n".join(lines), title=title, document=document)


def _joint_expectation(
    arguments: argparse.Namespace, parameters: dict[str, sp.Symbol]
) -> tuple[sp.Expr, str]:
    import sympy as sp

    from .symbolic.gaussian.expectation import correlated_pair, expect as expectation

    name = arguments.joint.strip()
    if _is_new_name(name) and name not in parameters:
        parameters = {**parameters, **_declared({name: "real"}, "--joint", "uv")}
    rho = _expression(name, parameters, "--joint")
    if rho.is_number and (1 - rho**2).is_negative:
        raise ParameterError(f"--joint must be a correlation, a number from -1 to 1, got {name}")
    u, v = sp.symbols("u v", real=True)
    variances = _pair(arguments.variances, "--variances", parameters) or (sp.S.One, sp.S.One)
    means = _pair(arguments.means, "--means", parameters) or (sp.S.Zero, sp.S.Zero)
    law = correlated_pair(u, v, rho, variances=variances, means=means)
    integrand = _expression(arguments.expression, {**parameters, "u": u, "v": v}, "EXPR")
    words = f"u, v Gaussian with means {means[0]}, {means[1]}, "
    words += f"variances {variances[0]}, {variances[1]}, correlation {rho}"
    return expectation(integrand, law), words


def _pair(
    text: str | None, flag: str, parameters: dict[str, sp.Symbol]
) -> tuple[sp.Expr, sp.Expr] | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 2:
        raise ParameterError(f"{flag} needs two values with a comma, such as {flag} 1,2")
    first, second = (_expression(part, parameters, flag) for part in parts)
    return first, second


def gradient(arguments: argparse.Namespace) -> int:
    """Print the expansion of the population gradient of a neuron."""
    import sympy as sp

    from .symbolic.targets.stein import gradient_expansion

    _settle_pair(arguments)
    student = sp.IndexedBase("mu") if arguments.student.strip() == "mu" else arguments.student
    result = gradient_expansion(
        student,
        arguments.target,
        arguments.order,
        norm=_norm(arguments.norm),
        removed=_degrees(arguments.remove),
    )
    noise = None if isinstance(student, sp.IndexedBase) else _noise(result)
    lines = [str(result), *([] if noise is None else [noise])]
    if arguments.latex:
        lines.append(f"\n{result.latex()}")
    document = {"expansion": str(result), "noise": noise, "latex": result.latex()}
    title = f"Gradient of {arguments.student} on {arguments.target}"
    return deliver(arguments, result, text="\n".join(lines), title=title, document=document)


def _settle_pair(arguments: argparse.Namespace) -> None:
    """Set student and target, which may stand in the former order."""
    *former, arguments.target = arguments.target
    if len(former) > 1 or (former and arguments.student is not None):
        raise ParameterError("give one TARGET, and the student as --student F")
    arguments.student = former[0] if former else arguments.student or "relu"


def _noise(found: GradientExpansion) -> str:
    try:
        return f"noise: E|g - G|^2 = {found.noise} (1 + O(d^(-1/2))) on n fresh samples"
    except AssumptionError as error:
        return f"noise: no gradient on samples; {str(error).splitlines()[0]}"


def _norm(text: str) -> sp.Expr:
    name = text.strip()
    if _is_new_name(name):
        return _declared({name: "positive"}, "--norm", "")[name]
    return _expression(name, {}, "--norm")


def _degrees(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise ParameterError(f"--remove needs Hermite degrees such as 0,1, got {text!r}")
    return tuple(map(int, parts))


def complexity(arguments: argparse.Namespace) -> int:
    """Print how many samples the known methods need for a target."""
    from .derivations.first_gradient.sample_complexity import sample_complexity
    from .derivations.multi_index.directions import direction_classes

    result = sample_complexity(arguments.student, arguments.target)
    try:
        classes = str(direction_classes(arguments.target, arguments.student))
    except UndecidedError as error:
        classes = f"classes of directions are not decided: {str(error).splitlines()[0]}"
    text = f"{result}\n\n{classes}"
    if arguments.latex:
        text += f"\n\n{result.latex()}"
    title = f"Samples that {arguments.target} needs"
    return deliver(arguments, result, text=text, title=title)


def _parameters(arguments: argparse.Namespace, *, reserved: str) -> dict[str, sp.Symbol]:
    kinds: dict[str, str] = {}
    for text in arguments.parameter:
        name, colon, kind = (part.strip() for part in text.partition(":"))
        if not colon or not name or not kind:
            raise ParameterError(
                f"--parameter needs NAME:KIND, such as --parameter a:positive, got {text!r}"
            )
        if kinds.setdefault(name, kind) != kind:
            raise ParameterError(f"--parameter {name} is declared twice: {kinds[name]} and {kind}")
    return _declared(kinds, "--parameter", reserved)


def _is_new_name(text: str) -> bool:
    """Whether a text is a name without a meaning, which a symbol can have."""
    from .symbolic.expressions.expression_text import (
        CONSTANTS,
        FUNCTIONS,
        FUNCTIONS_OF_SEVERAL,
        PARTIAL_FUNCTIONS,
    )

    known = {*CONSTANTS, *FUNCTIONS, *FUNCTIONS_OF_SEVERAL, *PARTIAL_FUNCTIONS}
    return text.isidentifier() and text not in known | {"nan", "inf", "oo", "zoo", "I"}


def _declared(kinds: dict[str, str], flag: str, reserved: str) -> dict[str, sp.Symbol]:
    """Return symbols by name; the letters of `reserved` are Gaussian variables."""
    from .symbolic.expressions.parser import declared_symbols

    for name in kinds:
        if name in set(reserved):
            raise ParameterError(
                f"{flag} {name}: {name!r} is a Gaussian variable here; rename the parameter"
            )
    return dict(declared_symbols(kinds))


def _expression(text: str, names: dict[str, sp.Symbol], argument: str) -> sp.Expr:
    from .symbolic.expressions.parser import parse_expression

    return parse_expression(text, names, argument=argument)


def _unevaluated() -> tuple[type, ...]:
    from .symbolic.gaussian.expectation import GaussianExpectation, JointExpectation

    return GaussianExpectation, JointExpectation


_EXPRESSION = option("EXPR", "activation, or expression in z", dest="expression")
_EXACT = (
    opts.PARAMETER, opts.DIGITS.but(help="digits of numbers", default=20), opts.LATEX
)  # fmt: skip
COMMANDS = (
    Command("hermite", "exact Hermite coefficients E[f(z) He_k(z)] of an activation", hermite, (
        _EXPRESSION, option("--order K", "highest order", whole(0, 9), 6),
        option("--closed-form", "print mu_k for symbolic k, with its parity"),
        option("--certified", "proven intervals, by ball arithmetic"), *_EXACT,
        *output(data=False),
    ), _HERMITE),
    Command("expect", "exact Gaussian expectation of a variable or of a correlated pair", expect, (
        _EXPRESSION.but(help="expression in z, or in u and v"),
        option("--joint RHO", "correlation of u and v: name, number or expression"),
        option("--variances A,B", "variances of u and v [1,1]"),
        option("--means A,B", "means of u and v [0,0]"), *_EXACT,
        *output(figure=False, data=False),
    ), _EXPECT),
    Command("gradient", "population gradient of a neuron, expanded by Stein's lemma", gradient, (
        opts.TARGET.but(
            help=f"{opts.TARGET.help}; STUDENT TARGET, as the last release had it, is taken, too",
            nargs="+",
        ),
        opts.STUDENT.but(help="activation, expression in z, or mu [relu]", default=None),
        option(
            "--order K", "largest number of contractions with w [all for polynomial targets, "
            "else 4]", whole(0, 4),
        ),
        option("--norm R", "length of w: number, or a name for a symbol", default="1"),
        option(
            "--remove LIST", "Hermite degrees taken out of the labels; 0,1 is the preprocessing "
            "of Damian et al. [none]", default="",
        ),
        opts.LATEX, *output(figure=False, data=False),
    ), _GRADIENT),
    Command("complexity", "how many samples the known methods need for a target", complexity, (
        opts.TARGET, opts.STUDENT.but(default="relu"), opts.LATEX, *output(data=False),
    ), _COMPLEXITY),
)  # fmt: skip
