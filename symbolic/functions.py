r"""Functions of the theory that SymPy lacks: activations, log cosh, Owen's T.

All are differentiable, evaluate exactly where an exact value exists and numerically to any number
of digits, and know on which real arguments they are real, positive or non-negative. The step
function is ``Heaviside(x, 1/2)`` throughout, so that ``2*Heaviside(x) - 1 = sign(x)`` holds at 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import mpmath
import sympy as sp

from ..runtime import precise_functions

HALF = sp.Rational(1, 2)

# Working precision beyond the requested one: exp(-x) loses log2|x| bits of relative precision,
# so 30 bits keep arguments up to 1e9 accurate.
_GUARD_BITS = 30


class _NumericFunction(sp.Function):
    """A SymPy function that evaluates itself through mpmath at its numeric arguments."""

    # Of real numbers, at the working precision of mpmath.
    _precise: ClassVar[Callable[..., Any]]

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

    def _latex_name(self) -> str:
        return rf"\operatorname{{{type(self).__name__}}}"

    def _latex(self, printer: sp.printing.latex.LatexPrinter, exp: str | None = None) -> str:
        power = "" if exp is None else f"^{{{exp}}}"
        arguments = ", ".join(printer._print(argument) for argument in self.args)
        return rf"{self._latex_name()}{power}\left({arguments}\right)"


class relu(_NumericFunction):
    r"""Rectified linear unit :math:`\max(x, 0)`.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> relu(x).diff(x), relu(-2), relu(sp.Rational(1, 3))
    (Heaviside(x), 0, 1/3)
    >>> relu(x).rewrite(sp.Heaviside)
    x*Heaviside(x)
    """

    nargs = 1
    _precise = precise_functions.fn_relu

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

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_Heaviside(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return x * sp.Heaviside(x, HALF)

    def _eval_rewrite_as_Abs(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (x + sp.Abs(x)) / 2

    def _latex_name(self) -> str:
        return r"\operatorname{ReLU}"


class sigmoid(_NumericFunction):
    r"""Logistic function :math:`1/(1 + e^{-x})`.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> sigmoid(x).diff(x), sigmoid(0)
    ((1 - sigmoid(x))*sigmoid(x), 1/2)
    >>> sigmoid(1).evalf(30)
    0.731058578630004879251159241822
    """

    nargs = 1

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return HALF
        return {sp.nan: sp.nan, sp.oo: sp.S.One, -sp.oo: sp.S.Zero}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return self * (1 - self)

    def _mpmath_value(self, x: mpmath.mpf) -> mpmath.mpf:
        return precise_functions.fn_sigmoid(x)  # of complex numbers, too

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_exp(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return 1 / (1 + sp.exp(-x))

    def _eval_rewrite_as_tanh(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return (1 + sp.tanh(x / 2)) / 2


class softplus(_NumericFunction):
    r"""Smooth rectifier :math:`\log(1 + e^x)`, whose derivative is the logistic function.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> softplus(x).diff(x), softplus(0)
    (sigmoid(x), log(2))
    """

    nargs = 1

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return sp.log(2)
        return {sp.nan: sp.nan, sp.oo: sp.oo, -sp.oo: sp.S.Zero}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sigmoid(self.args[0])

    def _mpmath_value(self, x: mpmath.mpf) -> mpmath.mpf:
        # log1p: log(1 + exp(x)) is 0 for x < -0.7*(working bits).
        return mpmath.log1p(mpmath.exp(x))

    def _eval_is_positive(self) -> bool | None:
        return True if self.args[0].is_real else None

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
        found = one == 1 and isinstance(exponential, sp.exp)
        return softplus(exponential.args[0]) if found else sp.log(argument)

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


class log_cosh(_NumericFunction):
    r"""Logarithm of the hyperbolic cosine, of order :math:`x^2/2` at 0 and :math:`|x|` at infinity.

    Examples
    --------
    >>> x = sp.Symbol("x", real=True)
    >>> log_cosh(x).diff(x), log_cosh(-x), log_cosh(0)
    (tanh(x), log_cosh(x), 0)
    """

    nargs = 1
    _precise = precise_functions.fn_log_cosh

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        if x.is_zero:
            return sp.S.Zero
        if x.could_extract_minus_sign():
            return cls(-x)
        return {sp.nan: sp.nan, sp.oo: sp.oo}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        return sp.tanh(self.args[0])

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[0].is_real else None

    def _eval_rewrite_as_cosh(self, x: sp.Expr, **hints: object) -> sp.Expr:
        return sp.log(sp.cosh(x))

    def _latex_name(self) -> str:
        return r"\log\cosh"


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

    @classmethod
    def eval(cls, h: sp.Expr, a: sp.Expr) -> sp.Expr | None:
        if h is sp.nan or a is sp.nan:
            return sp.nan
        if a.is_zero or h in (sp.oo, -sp.oo):
            return sp.S.Zero
        if h.is_zero:
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

    def _latex_name(self) -> str:
        return "T"
