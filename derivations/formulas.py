r"""Formulas in print: SymPy expressions as LaTeX and as MathML, in the notation of the papers.

SymPy's own printers order factors by their normal form, know no hats on subscripted letters and
write 𝔼 nodes behind fractions. This one prints what a paper would: parameters first, averages last,
prefactors as one fraction, conditional coefficients without their argument. Both outputs come
from one walk over the expression, so they cannot disagree.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any, Protocol

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.printer import Printer

from ..symbolic.gaussian.expectation import GaussianExpectation
from ..symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "Gamma": "Γ", "delta": "δ", "Delta": "Δ",
    "epsilon": "ϵ", "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "Theta": "Θ",
    "vartheta": "ϑ", "kappa": "κ", "lambda": "λ", "Lambda": "Λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "Xi": "Ξ", "pi": "π", "Pi": "Π", "rho": "ρ", "sigma": "σ", "Sigma": "Σ", "tau": "τ",
    "phi": "ϕ", "Phi": "Φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "Psi": "Ψ",
    "omega": "ω", "Omega": "Ω", "ell": "\N{SCRIPT SMALL L}",
}  # fmt: skip
# Base, hat, subscript, superscript: Vhat_1, alpha_0, mu_2^2.
_SCRIPT = r"(?:([A-Za-z0-9*]+)|\{([^{}]+)\})"
_NAME = re.compile(rf"([A-Za-z]+?)(hat)?(?:_{_SCRIPT})?(?:\^{_SCRIPT})?")
# In products and sums: numbers, then these, then what is not listed, then functions and averages.
_ORDER = (
    "a", "b", "alpha", "beta", "lambda", "Delta", "r", "c", "gamma", "rho", "kappa", "V", "q", "m",
    "vartheta", "psi", "X", "z", "xi", "s",
)  # fmt: skip
_FUNCTION_ORDER = ("mu", "chi", "T", "V", "M", "varepsilon")
_FUNCTION_NAMES = {"Heaviside": "Θ", "sign": "sgn", "atan": "arctan", "asin": "arcsin"}
_LATEX_FUNCTIONS = {"sin", "cos", "tan", "tanh", "sinh", "cosh", "log", "exp", "arctan", "arcsin"}


def latex(expr: Any, *, arguments: bool = False) -> str:
    r"""Return LaTeX, without delimiters.

    Parameters
    ----------
    expr : Expr
    arguments : bool
        Write the arguments of undefined functions: :math:`\mu_1(\kappa)` instead of
        :math:`\mu_1`.

    Examples
    --------
    >>> a, b, k = sp.Symbol("alpha"), sp.Symbol("beta"), sp.Symbol("kappa", real=True)
    >>> mu = sp.Function("mu_1")(k)
    >>> print(latex(a / b * GaussianExpectation(mu**2 / (1 + mu), k)))
    \frac{\alpha}{\beta} \mathbb{E}_{\kappa}\left[\frac{\mu_{1}^{2}}{1 + \mu_{1}}\right]
    """
    return _FormulaPrinter(_Latex(), arguments).doprint(expr)


def mathml(expr: Any, *, arguments: bool = False, display: bool = True) -> str:
    """Return a MathML element ``<math>``; see :func:`latex` for the arguments."""
    return math_element(mathml_row(expr, arguments=arguments), display=display)


def mathml_row(expr: Any, *, arguments: bool = False) -> str:
    """Return presentation MathML without the element ``<math>`` around it."""
    return _FormulaPrinter(_MathML(), arguments).doprint(expr)


def math_element(row: str, *, display: bool = True) -> str:
    """Put presentation MathML into an element ``<math>``."""
    attribute = ' display="block"' if display else ""
    return f"<math{attribute}><mrow>{row}</mrow></math>"


def equation_mathml(left: Any, right: Any) -> str:
    """Return ``left = right`` as MathML; `left` with its arguments, `right` without."""
    row = f"{mathml_row(left, arguments=True)}<mo>=</mo>{mathml_row(right)}"
    return math_element(row)


def equation_latex(left: Any, right: Any, *, separator: str = "=") -> str:
    """Return ``left = right`` as LaTeX; `left` with its arguments, `right` without."""
    return f"{latex(left, arguments=True)} {separator} {latex(right)}"


def tidy(expr: sp.Expr) -> sp.Expr:
    """Return an equal expression whose averages have no factor that could stand outside.

    Factors common to all terms are taken out of each integrand, numbers out of averages and of
    sums in fractions, and a minus sign in front goes into a difference inside.

    Examples
    --------
    >>> k, t = sp.symbols("kappa t", real=True)
    >>> tidy(-GaussianExpectation(2 * k * t - 2 * k**2, k) / 2)
    E_kappa[kappa*(kappa - t)]
    """
    if not expr.args or isinstance(expr, sp.Symbol):
        return expr
    if isinstance(expr, GaussianExpectation):
        return GaussianExpectation(sp.factor_terms(expr.integrand), expr.variable)
    result = expr.func(*(tidy(a) if isinstance(a, sp.Expr) else a for a in expr.args))
    if isinstance(result, sp.Mul):
        result = _one_denominator(result)
    if isinstance(result, sp.Mul) and result.could_extract_minus_sign():
        return _sign_moved_inside(result)
    return result


def _one_denominator(product: sp.Mul) -> sp.Expr:
    """(1/2 + x/2)/a becomes (1 + x)/(2 a)."""
    parts: list[sp.Expr] = []
    for factor in product.args:
        parts += factor.primitive() if isinstance(factor, sp.Add) else [factor]
    return sp.Mul(*parts)


def _sign_moved_inside(product: sp.Mul) -> sp.Expr:
    averages = [a for a in product.args if isinstance(a, GaussianExpectation)]
    if len(averages) != 1:
        return product
    average = averages[0]
    for factor in sp.Mul.make_args(average.integrand):
        if isinstance(factor, sp.Add) and any(_is_negative(t) for t in factor.args):
            rest = sp.Mul(*(a for a in product.args if a is not average))
            turned = sp.Mul(
                *(-f if f is factor else f for f in sp.Mul.make_args(average.integrand))
            )
            return -rest * GaussianExpectation(turned, average.variable)
    return product


def _is_negative(term: sp.Expr) -> bool:
    return bool(term.as_coeff_Mul()[0].is_negative)


# ---------------------------------------------------------------------- one walk, two outputs


class _Format(Protocol):
    """The pieces that formulas are made of."""

    def name(self, base: str, hat: bool, sub: str, power: str, *, upright: bool) -> str: ...
    def number(self, digits: str) -> str: ...
    def row(self, pieces: Sequence[str]) -> str: ...
    def operator(self, sign: str) -> str: ...
    def fenced(self, inside: str, brackets: str = "()") -> str: ...
    def fraction(self, numerator: str, denominator: str) -> str: ...
    def power(self, base: str, exponent: str) -> str: ...
    def root(self, inside: str) -> str: ...
    def applied(self, function: str, arguments: Sequence[str]) -> str: ...
    def average(self, under: str, inside: str) -> str: ...
    def law(self, variable: str, beta: str) -> str: ...
    def cases(self, rows: Sequence[tuple[str, str]]) -> str: ...


class _Latex:
    def name(self, base: str, hat: bool, sub: str, power: str, *, upright: bool = False) -> str:
        if base in _GREEK:
            base = rf"\{base}"
        elif upright:
            base = rf"\{base}" if base in _LATEX_FUNCTIONS else rf"\operatorname{{{base}}}"
        if hat:
            base = rf"\hat{{{base}}}"
        if len(sub) > 1 and sub.isalpha():
            sub = rf"\mathrm{{{sub}}}"
        return base + (f"_{{{sub}}}" if sub else "") + (f"^{{{power}}}" if power else "")

    def number(self, digits: str) -> str:
        return digits

    def row(self, pieces: Sequence[str]) -> str:
        return " ".join(pieces)

    def operator(self, sign: str) -> str:
        return {"−": "-", "≤": r"\le", "≥": r"\ge"}.get(sign, sign)

    def fenced(self, inside: str, brackets: str = "()") -> str:
        return rf"\left{brackets[0]}{inside}\right{brackets[1]}"

    def fraction(self, numerator: str, denominator: str) -> str:
        return rf"\frac{{{numerator}}}{{{denominator}}}"

    def power(self, base: str, exponent: str) -> str:
        return f"{base}^{{{exponent}}}"

    def root(self, inside: str) -> str:
        return rf"\sqrt{{{inside}}}"

    def applied(self, function: str, arguments: Sequence[str]) -> str:
        return rf"{function}{self.fenced(', '.join(arguments))}"

    def average(self, under: str, inside: str) -> str:
        return rf"\mathbb{{E}}_{{{under}}}{self.fenced(inside, '[]')}"

    def law(self, variable: str, beta: str) -> str:
        return rf"{variable} \sim \mathrm{{MP}}_{{{beta}}}"

    def cases(self, rows: Sequence[tuple[str, str]]) -> str:
        lines = r" \\ ".join(f"{value} & {condition}" for value, condition in rows)
        return rf"\begin{{cases}}{lines}\end{{cases}}"


class _MathML:
    def name(self, base: str, hat: bool, sub: str, power: str, *, upright: bool = False) -> str:
        letter = html.escape(_GREEK.get(base, base))
        text = f'<mi mathvariant="normal">{letter}</mi>' if upright else f"<mi>{letter}</mi>"
        if hat:
            text = f'<mover accent="true">{text}<mo stretchy="false">^</mo></mover>'
        below, above = (self._script(s) for s in (sub, power))
        if sub and power:
            return f"<msubsup>{text}{below}{above}</msubsup>"
        if sub:
            return f"<msub>{text}{below}</msub>"
        return f"<msup>{text}{above}</msup>" if power else text

    def _script(self, text: str) -> str:
        return self.number(text) if text.isdigit() else f"<mi>{html.escape(text)}</mi>"

    def number(self, digits: str) -> str:
        return f"<mn>{digits}</mn>"

    def row(self, pieces: Sequence[str]) -> str:
        # Without the space "z tanh(z)" reads as one word.
        times = '<mo lspace="0" rspace="0.13em">\u2062</mo>'
        return f"<mrow>{times.join(pieces)}</mrow>"

    def operator(self, sign: str) -> str:
        return f"<mo>{html.escape(sign)}</mo>"

    def fenced(self, inside: str, brackets: str = "()") -> str:
        return f"<mrow><mo>{brackets[0]}</mo>{inside}<mo>{brackets[1]}</mo></mrow>"

    def fraction(self, numerator: str, denominator: str) -> str:
        return f"<mfrac><mrow>{numerator}</mrow><mrow>{denominator}</mrow></mfrac>"

    def power(self, base: str, exponent: str) -> str:
        return f"<msup><mrow>{base}</mrow><mrow>{exponent}</mrow></msup>"

    def root(self, inside: str) -> str:
        return f"<msqrt>{inside}</msqrt>"

    def applied(self, function: str, arguments: Sequence[str]) -> str:
        inside = self.fenced("<mo>,</mo>".join(arguments))
        return f"<mrow>{function}<mo>\u2061</mo>{inside}</mrow>"

    def average(self, under: str, inside: str) -> str:
        return (
            f"<mrow><msub><mi>𝔼</mi><mrow>{under}</mrow></msub>{self.fenced(inside, '[]')}</mrow>"
        )

    def law(self, variable: str, beta: str) -> str:
        law = f'<msub><mi mathvariant="normal">MP</mi>{beta}</msub>'
        return f"{variable}<mo>∼</mo>{law}"

    def cases(self, rows: Sequence[tuple[str, str]]) -> str:
        lines = "".join(
            f"<mtr><mtd>{value}</mtd><mtd>{condition}</mtd></mtr>" for value, condition in rows
        )
        return f"<mrow><mo>{{</mo><mtable>{lines}</mtable></mrow>"


class _FormulaPrinter(Printer):  # type: ignore[misc]
    """Walks over an expression and puts the pieces together in the order of a paper."""

    printmethod = ""  # Nodes print themselves for SymPy's printers, not for this one.

    def __init__(self, output: _Format, arguments: bool) -> None:
        super().__init__()
        self.out = output
        self.arguments = arguments
        # In exponents fractions are written with a stroke, or they become too small to read.
        self.raised = False

    # ------------------------------------------------------------------ sums and products

    def _print_Add(self, expr: sp.Add) -> str:
        pieces = []
        terms = sorted(expr.args, key=lambda t: (_is_negative(t), *_term_key(t)))
        for i, term in enumerate(terms):
            negative = _is_negative(term)
            if negative or i:
                pieces.append(self.out.operator("−" if negative else "+"))
            pieces.append(self._print(-term if negative else term))
        return self._line(pieces)

    def _line(self, pieces: Sequence[str]) -> str:
        return (" " if isinstance(self.out, _Latex) else "").join(pieces)

    def _print_Mul(self, expr: sp.Mul) -> str:
        number, rest = expr.as_coeff_Mul()
        if number.is_negative:
            return self._line([self.out.operator("−"), self._factor(-number * rest)])
        above, below = [], []
        for factor in sp.Mul.make_args(rest):
            base, exponent = factor.as_base_exp()
            # exp(-x) stays in the numerator.
            if exponent.is_Rational and exponent.is_negative and base != sp.E:
                below.append(base**-exponent)
            else:
                above.append(factor)
        p, q = number.as_numer_denom() if number.is_Rational else (number, sp.S.One)
        if p != 1:
            above.insert(0, p)
        if q != 1:
            below.insert(0, q)
        averages = [f for f in above if _is_average(f)]
        plain = sorted((f for f in above if not _is_average(f)), key=_factor_key)
        if not below:
            return self._product([*plain, *averages])
        fraction = self._fraction(plain or [sp.S.One], sorted(below, key=_factor_key))
        if averages:
            return self.out.row([fraction, *map(self._factor, averages)])
        return fraction

    def _fraction(self, above: Sequence[sp.Expr], below: Sequence[sp.Expr]) -> str:
        if not self.raised:
            return self.out.fraction(self._product(above), self._product(below))
        numerator = self.out.row([self._factor(f) for f in above])
        denominator = self.out.row([self._factor(f) for f in below])
        if len(below) > 1:
            denominator = self.out.fenced(denominator)
        return self._line([numerator, self.out.operator("/"), denominator])

    def _exponent(self, expr: sp.Expr) -> str:
        before, self.raised = self.raised, True
        try:
            return str(self._print(expr))
        finally:
            self.raised = before

    def _product(self, factors: Sequence[sp.Expr]) -> str:
        if len(factors) == 1:
            return str(self._print(factors[0]))
        return self.out.row([self._factor(f) for f in factors])

    def _factor(self, expr: sp.Expr) -> str:
        inside = self._print(expr)
        return self.out.fenced(inside) if isinstance(expr, sp.Add | sp.Piecewise) else str(inside)

    def _print_Pow(self, expr: sp.Pow) -> str:
        base, exponent = expr.args
        if exponent.is_Rational and exponent.is_negative:
            return self._fraction([sp.S.One], [base**-exponent])
        if exponent == sp.S.Half:
            return self.out.root(self._print(base))
        power = self._exponent(exponent)
        if isinstance(base, AppliedUndef | sp.Symbol) and "^" not in self._head(base):
            if exponent.is_Rational and (isinstance(base, sp.Symbol) or not self.arguments):
                return self._name(self._head(base), power=str(exponent))
        elif isinstance(base, sp.Function) and not isinstance(base, sp.exp | Resolvent | sp.Abs):
            head = self.out.power(self._function_name(base), power)
            return self.out.applied(head, [self._print(a) for a in base.args])
        simple = isinstance(base, sp.Symbol | sp.Integer | sp.NumberSymbol) and base != -1
        # A power of a starred letter would hide its star.
        simple = simple and not (isinstance(base, sp.Symbol) and "^" in base.name)
        inside = self._print(base)
        return self.out.power(inside if simple else self.out.fenced(inside), power)

    # ------------------------------------------------------------------ letters and numbers

    def _name(self, text: str, power: str = "", upright: bool = False) -> str:
        result = _NAME.fullmatch(text)
        if result is None:
            return self.out.name(text, False, "", power, upright=True)
        base, hat, *scripts = (part or "" for part in result.groups())
        sub, above = scripts[0] or scripts[1], scripts[2] or scripts[3]
        return self.out.name(base, bool(hat), sub, power or above, upright=upright)

    def _head(self, expr: sp.Expr) -> str:
        return str(expr.func) if isinstance(expr, AppliedUndef) else str(expr)

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return self._name(expr.name)

    _print_Dummy = _print_Symbol

    def _print_Integer(self, expr: sp.Integer) -> str:
        if expr.is_negative:
            return self._line([self.out.operator("−"), self.out.number(str(-expr))])
        return self.out.number(str(expr))

    def _print_Rational(self, expr: sp.Rational) -> str:
        if expr.is_negative:
            return self._line([self.out.operator("−"), self._print(-expr)])
        return self._fraction([sp.Integer(expr.p)], [sp.Integer(expr.q)])

    def _print_Float(self, expr: sp.Float) -> str:
        return self.out.number(str(expr))

    def _print_NumberSymbol(self, expr: sp.NumberSymbol) -> str:
        return self._name("pi" if expr is sp.pi else "e" if expr is sp.E else str(expr))

    _print_Exp1 = _print_NumberSymbol

    def _print_Infinity(self, expr: sp.Expr) -> str:
        return self.out.name("oo", False, "", "", upright=True)

    # ------------------------------------------------------------------ functions and averages

    def _function_name(self, expr: sp.Function) -> str:
        name = expr.func.__name__
        if name == "Resolvent":
            return self._name("G")
        return self.out.name(_FUNCTION_NAMES.get(name, name), False, "", "", upright=True)

    def _print_Function(self, expr: sp.Function) -> str:
        arguments = expr.args[:1] if isinstance(expr, sp.Heaviside) else expr.args
        return self.out.applied(self._function_name(expr), [self._print(a) for a in arguments])

    def _print_factorial(self, expr: sp.factorial) -> str:
        return f"{self._factor(expr.args[0])}{self.out.operator('!')}"

    def _print_AppliedUndef(self, expr: AppliedUndef) -> str:
        head = self._name(self._head(expr))
        if not self.arguments:
            return head
        return self.out.applied(head, [self._print(a) for a in expr.args])

    def _print_exp(self, expr: sp.exp) -> str:
        return self.out.power(self._name("e"), self._exponent(expr.args[0]))

    def _print_Abs(self, expr: sp.Abs) -> str:
        return self.out.fenced(self._print(expr.args[0]), "||")

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        return self.out.cases([(self._print(value), self._print(c)) for value, c in expr.args])

    def _print_Relational(self, expr: Any) -> str:
        sign = {"<=": "≤", ">=": "≥"}.get(expr.rel_op, expr.rel_op)
        return self._line([self._print(expr.lhs), self.out.operator(sign), self._print(expr.rhs)])

    def _print_BooleanTrue(self, expr: Any) -> str:
        return self.out.name("otherwise", False, "", "", upright=True)

    def _print_GaussianExpectation(self, expr: GaussianExpectation) -> str:
        return self.out.average(self._print(expr.variable), self._print(expr.integrand))

    def _print_MarchenkoPasturAverage(self, expr: MarchenkoPasturAverage) -> str:
        law = self.out.law(self._print(expr.variable), self._print(expr.beta))
        return self.out.average(law, self._print(expr.function))

    def emptyPrinter(self, expr: Any) -> str:
        """Anything else by its name: an unknown node is no reason for a report to fail."""
        return self.out.name(str(expr), False, "", "", upright=True)


def _is_average(expr: sp.Expr) -> bool:
    return isinstance(expr, GaussianExpectation | MarchenkoPasturAverage)


def _factor_key(factor: sp.Expr) -> tuple[Any, ...]:
    base, _ = factor.as_base_exp()
    if factor.is_Number:
        return (0, 0, "")
    if isinstance(base, sp.Symbol):
        result = _NAME.fullmatch(base.name)
        letter = result[1] if result else base.name
        return (1, _position(letter, _ORDER), base.name)
    if isinstance(base, sp.Add):
        return (5, 0, str(factor))
    if _is_average(base):
        return (6, 0, str(factor))
    if not factor.free_symbols:
        return (0, 1, str(factor))
    if isinstance(base, AppliedUndef):
        letter = str(base.func).partition("_")[0]
        return (3, _position(letter, _FUNCTION_ORDER), str(factor))
    return (2 if isinstance(factor, sp.exp) else 4, 0, str(factor))


def _position(letter: str, order: Sequence[str]) -> int:
    return order.index(letter) if letter in order else len(order)


def _term_key(term: sp.Expr) -> tuple[Any, ...]:
    factors = sorted(
        (f for f in sp.Mul.make_args(term.as_coeff_Mul()[1]) if f != 1), key=_factor_key
    )
    return (len(factors), tuple(_factor_key(f) for f in factors))
