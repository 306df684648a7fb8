r"""The normal law far out: scaled tails, the logarithm of Φ, and differences of erf.

Functions that the lowering rewrites to where products and differences of erf, erfc and exp would
overflow, underflow or cancel. They differentiate, evaluate to any precision and rewrite back.
"""

from __future__ import annotations

import sympy as sp

from ..runtime import precise_functions
from .functions import HALF, _NumericFunction


class erfcx(_NumericFunction):
    r"""Scaled complementary error function :math:`e^{x^2}\operatorname{erfc} x`.

    Of order :math:`1/x` where the two factors overflow and underflow.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> erfcx(x).diff(x), erfcx(0), erfcx(30).evalf(15)
    (2*x*erfcx(x) - 2/sqrt(pi), 1, 0.0187958888614168)
    """

    nargs = 1
    _precise = precise_functions.fn_erfcx

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return sp.S.One
        return {sp.nan: sp.nan, sp.oo: sp.S.Zero, -sp.oo: sp.oo}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return 2 * self.args[0] * self - 2 / sp.sqrt(sp.pi)

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_erfc(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.exp(x**2) * sp.erfc(x)


class normal_cdf(_NumericFunction):
    r"""Distribution function :math:`\Phi(x)` of the standard normal law.

    The same as ``erfc(-x/sqrt(2))/2``, which SymPy turns into ``1 - erfc(x/sqrt(2))/2``: zero in
    floating point from x = -8 on.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> normal_cdf(x).diff(x), normal_cdf(0), normal_cdf(-10).evalf(15)
    (sqrt(2)*exp(-x**2/2)/(2*sqrt(pi)), 1/2, 7.61985302416053e-24)
    """

    nargs = 1
    _precise = precise_functions.fn_normal_cdf

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return HALF
        return {sp.nan: sp.nan, sp.oo: sp.S.One, -sp.oo: sp.S.Zero}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.exp(-(self.args[0] ** 2) / 2) / sp.sqrt(2 * sp.pi)

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_erf(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (1 + sp.erf(x / sp.sqrt(2))) / 2

    def _latex_name(self) -> str:
        return r"\Phi"


class log_normal_cdf(_NumericFunction):
    r"""Logarithm :math:`\log\Phi(x)` of the distribution function of the standard normal law.

    Its derivative is the inverse Mills ratio :math:`\varphi/\Phi`, of order :math:`-x` where both
    vanish.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> log_normal_cdf(x).diff(x), log_normal_cdf(0), log_normal_cdf(-40).evalf(15)
    (sqrt(2)/(sqrt(pi)*erfcx(-sqrt(2)*x/2)), -log(2), -804.608442013754)
    """

    nargs = 1
    _precise = precise_functions.fn_log_normal_cdf

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return -sp.log(2)
        return {sp.nan: sp.nan, sp.oo: sp.S.Zero, -sp.oo: -sp.oo}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.sqrt(2 / sp.pi) / erfcx(-self.args[0] / sp.sqrt(2))

    def _eval_is_negative(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_erfc(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.log(sp.erfc(-x / sp.sqrt(2)) / 2)

    def _latex_name(self) -> str:
        return r"\log\Phi"


class erf_difference(_NumericFunction):
    r"""Difference :math:`\operatorname{erf} a - \operatorname{erf} b` as one function.

    Nearly equal values of the error function are subtracted without loss; so is the probability of
    an interval far out.

    Examples
    --------
    >>> a, b = sp.symbols("a b", real=True)
    >>> erf_difference(a, b).diff(a), erf_difference(a, a), erf_difference(6, 5).evalf(15)
    (2*exp(-a**2)/sqrt(pi), 0, 1.53743827469132e-12)
    """

    nargs = 2
    _precise = precise_functions.fn_erf_difference

    @classmethod
    def eval(cls, a: sp.Expr, b: sp.Expr) -> sp.Expr | None:
        if a is sp.nan or b is sp.nan:
            return sp.nan
        if a == b:
            return sp.S.Zero
        if any(x.is_zero or x.is_infinite for x in (a, b)):
            return sp.erf(a) - sp.erf(b)
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        sign = 1 if argindex == 1 else -1
        return sign * 2 * sp.exp(-(self.args[argindex - 1] ** 2)) / sp.sqrt(sp.pi)

    def _eval_rewrite_as_erf(self, a: sp.Expr, b: sp.Expr, **hints: object) -> sp.Expr:
        return sp.erf(a) - sp.erf(b)

    def _latex(self, printer: sp.printing.latex.LatexPrinter, exp: str | None = None) -> str:
        a, b = (printer._print(argument) for argument in self.args)
        text = rf"\operatorname{{erf}}\left({a}\right) - \operatorname{{erf}}\left({b}\right)"
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"\left({text}\right){power}"
