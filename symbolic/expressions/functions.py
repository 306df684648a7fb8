"""Functions that SymPy lacks: activations, log cosh, Owen's T, the normal law far out.

All are differentiable, evaluate exactly where an exact value exists and numerically to any number
of digits, and know on which real arguments they are real, positive or non-negative. The step
function is ``Heaviside(x, 1/2)`` throughout, so that ``2*Heaviside(x) - 1 = sign(x)`` holds at 0.
Scaled tails, the logarithm of Φ and differences of erf are what the lowering rewrites to where
products and differences of erf, erfc and exp would overflow, underflow or cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import mpmath
import sympy as sp

from ...runtime import precise_functions

HALF = sp.Rational(1, 2)

# Working precision beyond the requested one: exp(-x) loses log2|x| bits of relative precision,
# so 30 bits keep arguments up to 1e9 accurate.
_GUARD_BITS = 30


class _NumericFunction(sp.Function):
    """A SymPy function that evaluates itself through mpmath at its numeric arguments."""

    # Of real numbers, at the working precision of mpmath.
    _precise: ClassVar[Callable[..., Any]]
    # "positive", "negative" or "nonnegative" at real arguments.
    _sign: ClassVar[str] = ""
    _latex_text: ClassVar[str] = ""

    def _mpmath_value(self, *arguments: mpmath.mpf) -> mpmath.mpf | None:
        """Return the value at the working precision of mpmath; None if it is not defined."""
        real = all(isinstance(x, mpmath.mpf) for x in arguments)
        return type(self)._precise(*arguments) if real else None

    def _eval_evalf(self, prec: int) -> sp.Expr | None:
        bits = prec + _GUARD_BITS
        try:
            arguments = [argument._to_mpmath(bits, allow_ints=False) for argument in self.args]
        except ValueError:  # symbolic argument
            return None
        with mpmath.workprec(bits):
            value = self._mpmath_value(*arguments)
        return None if value is None else sp.Expr._from_mpmath(value, prec)

    def _eval_is_real(self) -> bool | None:
        return True if all(argument.is_real for argument in self.args) else None

    def _eval_is_positive(self) -> bool | None:
        return True if self._sign == "positive" and self.args[0].is_real else None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self._sign == "nonnegative" and self.args[0].is_real else None

    def _eval_is_negative(self) -> bool | None:
        return True if self._sign == "negative" and self.args[0].is_real else None

    def _latex(self, printer: sp.printing.latex.LatexPrinter, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        arguments = ", ".join(printer._print(argument) for argument in self.args)
        name = self._latex_text or rf"\operatorname{{{type(self).__name__}}}"
        return rf"{name}{power}\left({arguments}\right)"


class _FunctionOfOne(_NumericFunction):
    """One of a single argument, with exact values at zero and infinity."""

    # At zero, plus and minus infinity.
    _values: ClassVar[tuple[sp.Expr, sp.Expr, sp.Expr]]

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        """Return the value at a special point."""
        if x is sp.nan:
            return sp.nan
        special = zip((sp.S.Zero, sp.oo, -sp.oo), cls._values, strict=True)
        return dict(special).get(sp.S.Zero if _is_seen_zero(x) else x)


def _is_seen_zero(x: sp.Expr) -> bool:
    """Whether a number or a symbol is zero.

    Of a sum with symbols the question takes long, and is answered by yes hardly ever.
    """
    return bool((x.is_number or x.is_Atom) and x.is_zero)


class relu(_FunctionOfOne):
    r"""Rectified linear unit :math:`\max(x, 0)`.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> relu(x).diff(x), relu(-2), relu(sp.Rational(1, 3))
    (Heaviside(x), 0, 1/3)
    >>> relu(x).rewrite(sp.Heaviside)
    x*Heaviside(x)
    """

    _precise = precise_functions.fn_relu
    _sign = "nonnegative"
    _latex_text = r"\operatorname{ReLU}"

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x is sp.nan:
            return sp.nan
        if x.is_extended_nonnegative:
            return x
        if x.is_extended_nonpositive:
            return sp.S.Zero
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.Heaviside(self.args[0], HALF)

    def _eval_rewrite_as_Heaviside(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return x * sp.Heaviside(x, HALF)

    def _eval_rewrite_as_Abs(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (x + sp.Abs(x)) / 2


class sigmoid(_FunctionOfOne):
    r"""Logistic function :math:`1/(1 + e^{-x})`.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> sigmoid(x).diff(x), sigmoid(0)
    ((1 - sigmoid(x))*sigmoid(x), 1/2)
    >>> sigmoid(1).evalf(30)
    0.731058578630004879251159241822
    """

    _values = (HALF, sp.S.One, sp.S.Zero)
    _sign = "positive"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return self * (1 - self)

    def _mpmath_value(self, x: mpmath.mpf) -> mpmath.mpf:
        return precise_functions.fn_sigmoid(x)  # of complex numbers, too

    def _eval_rewrite_as_exp(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return 1 / (1 + sp.exp(-x))

    def _eval_rewrite_as_tanh(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (1 + sp.tanh(x / 2)) / 2


class softplus(_FunctionOfOne):
    r"""Smooth rectifier :math:`\log(1 + e^x)`, whose derivative is the logistic function.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> softplus(x).diff(x), softplus(0)
    (sigmoid(x), log(2))
    """

    _values = (sp.log(2), sp.oo, sp.S.Zero)
    _sign = "positive"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sigmoid(self.args[0])

    def _mpmath_value(self, x: mpmath.mpf) -> mpmath.mpf:
        # log1p: log(1 + exp(x)) is 0 for x < -0.7*(working bits).
        return mpmath.log1p(mpmath.exp(x))

    def _eval_rewrite_as_exp(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.log(1 + sp.exp(x))

    def _eval_rewrite_as_cosh(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return x / 2 + sp.log(2 * sp.cosh(x / 2))


def with_softplus(expr: sp.Expr) -> sp.Expr:
    """Write log(1 + exp(u)) as softplus(u), whose derivatives of any order stay finite.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> with_softplus(sp.log(1 + sp.exp(3 - x)) / 2)
    softplus(3 - x)/2
    """

    def renamed(argument: sp.Expr) -> sp.Expr:
        one, exponential = argument.as_coeff_Add()
        result = one == 1 and isinstance(exponential, sp.exp)
        return softplus(exponential.args[0]) if result else sp.log(argument)

    return expr.replace(sp.log, renamed)


def with_cosh(expr: sp.Expr) -> sp.Expr:
    """Write log(exp(u) + exp(-u)) as log(2*cosh(u)), whose derivative is a quotient of two terms.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> with_cosh(sp.log(3 * sp.exp(x - 1) + 3 * sp.exp(1 - x)))
    log(6*cosh(x - 1))
    """

    def renamed(argument: sp.Expr) -> sp.Expr:
        terms = [term.as_coeff_Mul() for term in sp.Add.make_args(argument)]
        if len(terms) == 2 and all(isinstance(f, sp.exp) for _, f in terms):
            (a, first), (b, second) = terms
            if a == b and sp.expand(first.args[0] + second.args[0]) == 0:
                return sp.log(2 * a * sp.cosh(first.args[0]))
        return sp.log(argument)

    return expr.replace(sp.log, renamed) if expr.has(sp.log) else expr


def with_real_steps(expr: sp.Expr) -> sp.Expr:
    """Write absolute values and signs of what is not seen to be real by real functions.

    All symbols are real; SymPy does not see it of sqrt(1 - q), and derives as if it were not.

    Examples
    --------
    >>> q, x = sp.symbols("q x", real=True)
    >>> with_real_steps(sp.Abs(x + sp.sqrt(1 - q)) * sp.sign(x))
    (relu(-x - sqrt(1 - q)) + relu(x + sqrt(1 - q)))*sign(x)
    """
    steps = [f for f in expr.atoms(sp.Abs, sp.sign) if not f.args[0].is_extended_real]
    if not steps:
        return expr
    rule = {}
    for f in steps:
        u = with_real_steps(f.args[0])
        rule[f] = relu(u) + relu(-u) if isinstance(f, sp.Abs) else 2 * sp.Heaviside(u, HALF) - 1
    return expr.xreplace(rule)


def with_sinh(product: sp.Expr) -> sp.Expr:
    """Write tanh(u)·cosh(u) as sinh(u).

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> with_sinh(sp.tanh(x) ** 2 * sp.cosh(x))
    sinh(x)*tanh(x)
    """
    for f in product.atoms(sp.cosh):
        whole = sp.Mul.make_args(product)
        powers = dict(g.as_base_exp() for g in whole)
        (u,) = f.args
        n = min(powers.get(f, sp.S.Zero), powers.get(sp.tanh(u), sp.S.Zero))
        if n > 0:
            product *= (sp.sinh(u) / f / sp.tanh(u)) ** n
    return product


def exponentials_merged(product: sp.Expr) -> sp.Expr:
    """Write exp(v)·exp(w) as exp(v + w).

    Examples
    --------
    >>> x, y = sp.symbols("x y", real=True)
    >>> exponentials_merged(sp.exp(x) * sp.exp(-y) * x)
    x*exp(x - y)
    """
    factors = sp.Mul.make_args(product)
    exponents = [f.args[0] for f in factors if isinstance(f, sp.exp)]
    others = [f for f in factors if not isinstance(f, sp.exp)]
    return sp.Mul(*others) * sp.exp(sp.Add(*exponents)) if len(exponents) > 1 else product


class log_cosh(_FunctionOfOne):
    r"""Logarithm of the hyperbolic cosine, of order :math:`x^2/2` at 0 and :math:`|x|` at infinity.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> log_cosh(x).diff(x), log_cosh(-x), log_cosh(0)
    (tanh(x), log_cosh(x), 0)
    """

    _precise = precise_functions.fn_log_cosh
    _sign = "nonnegative"
    _latex_text = r"\log\cosh"

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return sp.S.Zero
        if x.could_extract_minus_sign():
            return cls(-x)
        return {sp.nan: sp.nan, sp.oo: sp.oo}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.tanh(self.args[0])

    def _eval_rewrite_as_cosh(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.log(sp.cosh(x))


class OwenT(_NumericFunction):
    r"""Owen's T function.

    .. math:: T(h, a) = \frac{1}{2\pi}\int_0^a \frac{e^{-h^2 (1 + x^2)/2}}{1 + x^2}\,dx

    is the probability of :math:`X > h,\ 0 < Y < aX` for independent standard Gaussians and
    :math:`h, a \ge 0`. It gives the second moments of erf and of the Gaussian distribution
    function at a Gaussian argument.

    Notes
    -----
    Even in h, odd in a; signs are moved out of the arguments automatically. Numerical values for
    real arguments to any precision.

    References
    ----------
    D. B. Owen, *Tables for computing bivariate normal probabilities*, Ann. Math. Statist. 27
    (1956) 1075-1090; the reflection a -> 1/a is his equation (2.3).

    Examples
    --------
    >>> h, a = sp.symbols("h a", real=True)
    >>> OwenT(0, 1), OwenT(-h, a) - OwenT(h, a), OwenT(h, -a) + OwenT(h, a)
    (1/8, 0, 0)
    >>> OwenT(h, a).diff(a)
    exp(-h**2*(a**2 + 1)/2)/(2*pi*(a**2 + 1))
    >>> OwenT(1, sp.Rational(1, 2)).evalf(20)
    0.043064691120785365632
    """

    nargs = 2
    _precise = precise_functions.fn_owen_t
    _latex_text = "T"

    def _numpycode(self, printer: Any) -> str:
        called = printer._module_format("scipy.special.owens_t")
        return f"{called}({', '.join(map(printer._print, self.args))})"

    @classmethod
    def eval(cls, h: sp.Expr, a: sp.Expr) -> sp.Expr | None:
        if h is sp.nan or a is sp.nan:
            return sp.nan
        if _is_seen_zero(a) or h in (sp.oo, -sp.oo):
            return sp.S.Zero
        if _is_seen_zero(h):
            return sp.atan(a) / (2 * sp.pi)
        if a.could_extract_minus_sign():
            return -cls(h, -a)
        if h.could_extract_minus_sign():
            return cls(-h, a)
        if a is sp.oo and h.is_real:
            return sp.erfc(sp.Abs(h) / sp.sqrt(2)) / 4
        return None

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        h, a = self.args
        if argindex == 1:
            amplitude = sp.exp(-(h**2) / 2) / (2 * sp.sqrt(2 * sp.pi))
            return -amplitude * sp.erf(a * h / sp.sqrt(2))
        return sp.exp(-(h**2) * (1 + a**2) / 2) / (2 * sp.pi * (1 + a**2))

    def _eval_rewrite_as_Integral(self, h: sp.Expr, a: sp.Expr, **hints: object) -> sp.Expr:
        x = sp.Dummy("x", real=True)
        integrand = sp.exp(-(h**2) * (1 + x**2) / 2) / (1 + x**2)
        return sp.Integral(integrand, (x, 0, a)) / (2 * sp.pi)


class erfcx(_FunctionOfOne):
    r"""Scaled complementary error function :math:`e^{x^2}\operatorname{erfc} x`.

    Of order :math:`1/x` where the two factors overflow and underflow.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> erfcx(x).diff(x), erfcx(0), erfcx(30).evalf(15)
    (2*x*erfcx(x) - 2/sqrt(pi), 1, 0.0187958888614168)
    """

    _precise = precise_functions.fn_erfcx
    _values = (sp.S.One, sp.S.Zero, sp.oo)
    _sign = "positive"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return 2 * self.args[0] * self - 2 / sp.sqrt(sp.pi)

    def _eval_rewrite_as_erfc(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.exp(x**2) * sp.erfc(x)


class normal_cdf(_FunctionOfOne):
    r"""Distribution function :math:`\Phi(x)` of the standard normal law.

    The same as ``erfc(-x/sqrt(2))/2``, which SymPy turns into ``1 - erfc(x/sqrt(2))/2``: zero in
    floating point from x = -8 on.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> normal_cdf(x).diff(x), normal_cdf(0), normal_cdf(-10).evalf(15)
    (sqrt(2)*exp(-x**2/2)/(2*sqrt(pi)), 1/2, 7.61985302416053e-24)
    """

    _precise = precise_functions.fn_normal_cdf
    _values = (HALF, sp.S.One, sp.S.Zero)
    _sign = "positive"
    _latex_text = r"\Phi"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.exp(-(self.args[0] ** 2) / 2) / sp.sqrt(2 * sp.pi)

    def _eval_rewrite_as_erf(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (1 + sp.erf(x / sp.sqrt(2))) / 2


class log_normal_cdf(_FunctionOfOne):
    r"""Logarithm :math:`\log\Phi(x)` of the distribution function of the standard normal law.

    Its derivative is the inverse Mills ratio :math:`\varphi/\Phi`, of order :math:`-x` where both
    vanish.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> log_normal_cdf(x).diff(x), log_normal_cdf(0), log_normal_cdf(-40).evalf(15)
    (sqrt(2)/(sqrt(pi)*erfcx(-sqrt(2)*x/2)), -log(2), -804.608442013754)
    """

    _precise = precise_functions.fn_log_normal_cdf
    _values = (-sp.log(2), sp.S.Zero, -sp.oo)
    _sign = "negative"
    _latex_text = r"\log\Phi"

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.sqrt(2 / sp.pi) / erfcx(-self.args[0] / sp.sqrt(2))

    def _eval_rewrite_as_erfc(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.log(sp.erfc(-x / sp.sqrt(2)) / 2)


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
        if any(_is_seen_zero(x) or x in (sp.oo, -sp.oo) for x in (a, b)):
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
