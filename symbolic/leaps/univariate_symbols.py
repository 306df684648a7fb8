r"""Symbols of functions of one Gaussian variable, :math:`S(t) = \mathbb{E}\, g(z + t)`.

They come from the rules for Gaussian expectations and are combinations of polynomials, quadratic
exponentials, sines and error functions. Where no rule gives one, S stays open; what is exact about
it is used: tanh and softplus(u) - u/2 have a parity, the derivative of the latter is tanh(u/2)/2,
the logistic function is (1 + tanh(u/2))/2, powers of tanh reduce by tanh' = 1 - tanh², and a power
of z before a kernel becomes an operator, :math:`\mathbb{E}(z+t)^n κ(z+t) = (t + \partial)^n S(t)`
(derived here from Stein's lemma).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ...errors import GiantstepError, UnsupportedExpressionError
from ...pages import shorten
from ..activations import z as _z
from ..averages import Average
from ..functions import HALF, sigmoid, softplus
from ..gaussian import expect
from ..gaussian_kernels import (
    LONGEST_SUM,
    PRODUCTS_ONLY,
    affine_or_quadratic,
    as_steps_and_exponentials,
    group_by_kernel,
    multiplied_out,
)
from ..hermite import hermite_coefficient
from ..regularity import Parity, analyse
from ..ridge_terms import T
from .symbol_normal_form import OpenKernel, binomial_operator

_XI = sp.Dummy("xi", real=True)
_PARITY = {Parity.EVEN: 1, Parity.ODD: -1, Parity.NEITHER: 0}


@dataclass(frozen=True)
class Piece:
    """One term c t^n e^{pt² + qt} cos or sin(kt) Π erf(at + b) Π S^{(m)}(±t) of a symbol.

    Attributes
    ----------
    coefficient : Expr
        c.
    power : int
        n.
    exponent : (Expr, Expr)
        q and p.
    frequency : Expr
        k, 0 if there is no sine.
    is_sine : bool
    erfs : tuple of (Expr, Expr)
        a and b of each error function.
    kernels : tuple of (OpenKernel, int, int)
        Kernel, order m of the derivative, and sign of the argument, of each open symbol.
    """

    coefficient: sp.Expr
    power: int = 0
    exponent: tuple[sp.Expr, sp.Expr] = (sp.S.Zero, sp.S.Zero)
    frequency: sp.Expr = sp.S.Zero
    is_sine: bool = False
    erfs: tuple[tuple[sp.Expr, sp.Expr], ...] = ()
    kernels: tuple[tuple[OpenKernel, int, int], ...] = ()

    def numbers(self) -> Iterator[sp.Expr]:
        """Yield the constants that have to be in the field."""
        yield from (self.coefficient, *self.exponent, self.frequency)
        for a, b in self.erfs:
            yield from (a, b, density(b))
        for kernel, _, _ in self.kernels:
            yield from (scale for scale, _ in derivatives(kernel))


@functools.lru_cache(maxsize=256)
def univariate_symbol(g: sp.Expr) -> tuple[Piece, ...]:
    r"""Return :math:`S(t) = \mathbb{E}\, g(z + t)` as a sum of pieces.

    Parameters
    ----------
    g : Expr
        Function of :data:`.ridge_terms.T`.

    Examples
    --------
    >>> for piece in univariate_symbol(sp.Abs(T)):
    ...     print(piece.coefficient, piece.power, piece.exponent, piece.erfs)
    1 1 (0, 0) ((sqrt(2)/2, 0),)
    sqrt(2)/sqrt(pi) 0 (0, -1/2) ()
    """
    expr = g.replace(sigmoid, lambda u: HALF + sp.tanh(u / 2) / 2)
    terms = multiplied_out(expr)
    if terms is None:
        raise UnsupportedExpressionError(
            f"{shorten(str(g))} has more than {LONGEST_SUM} terms when multiplied out; shorten it"
        )
    found: list[Piece] = []
    for kernel, coefficients in group_by_kernel(terms, T).items():
        inside = kernel * sp.Add(*(c * T**n for n, c in coefficients.items()))
        closed = _closed(inside)
        if closed is not None:
            found += closed
            continue
        for weight, power, open_kernel, order, sign in _open_terms(kernel):
            found += _under_powers(weight, power, open_kernel, order, sign, coefficients)
    return tuple(_merged(found))


def _under_powers(
    weight: sp.Expr,
    power: int,
    kernel: OpenKernel | None,
    order: int,
    sign: int,
    coefficients: dict[int, sp.Expr],
) -> Iterator[Piece]:
    """Yield Σ c_n (t + ∂)^{n + power} of weight times a derivative of an open symbol, or of 1."""
    for n, c in coefficients.items():
        for (k, m), count in binomial_operator(n + power).items():
            if kernel is not None:
                # A derivative of S(-t) changes sign.
                kernels = ((kernel, order + m, sign),)
                yield Piece(c * weight * count * sign**m, k, kernels=kernels)
            elif m == 0:
                yield Piece(c * weight * count, k)


def _closed(inside: sp.Expr) -> list[Piece] | None:
    """Return the symbol of a function by rules, or None."""
    found = expect(inside.xreplace({T: _z + _XI}), _z)
    if found.has(Average, sp.Piecewise):
        return None
    found = as_steps_and_exponentials(found).replace(_is_shifted_sine, _without_shift)
    terms = sp.Add.make_args(found.expand(**PRODUCTS_ONLY))
    pieces = [_classified(term) for term in terms]
    return None if None in pieces else [piece for piece in pieces if piece is not None]


def _is_shifted_sine(node: sp.Basic) -> bool:
    return isinstance(node, sp.sin | sp.cos) and bool(node.has(_XI))


def _without_shift(node: sp.Expr) -> sp.Expr:
    """Write sin(at + b) by sin(at) and cos(at)."""
    affine = affine_or_quadratic(node.args[0], _XI)
    if affine is None or affine[2] != 0:
        return node
    b, u = affine[0], affine[1] * _XI
    if isinstance(node, sp.sin):
        return sp.sin(u) * sp.cos(b) + sp.cos(u) * sp.sin(b)
    return sp.cos(u) * sp.cos(b) - sp.sin(u) * sp.sin(b)


def _classified(term: sp.Expr) -> Piece | None:
    """Read one term of a closed form; None if it holds another function."""
    constant, rest = term.as_independent(_XI, as_Add=False)
    power, linear, quadratic = 0, sp.S.Zero, sp.S.Zero
    erfs: list[tuple[sp.Expr, sp.Expr]] = []
    frequency, is_sine = sp.S.Zero, False
    for factor in sp.Mul.make_args(rest):
        if factor == 1:
            continue
        base, exponent = factor.as_base_exp()
        if isinstance(factor, sp.exp):
            affine = affine_or_quadratic(factor.exp, _XI)
            if affine is None:
                return None
            constant *= sp.exp(affine[0])
            linear, quadratic = linear + affine[1], quadratic + affine[2]
            continue
        if not exponent.is_Integer or exponent < 0:
            return None
        if base == _XI:
            power += int(exponent)
            continue
        affine = affine_or_quadratic(base.args[0], _XI) if base.args else None
        if affine is None or affine[2] != 0:
            return None
        if isinstance(base, sp.erf):
            erfs += [(affine[1], affine[0])] * int(exponent)
        elif isinstance(base, sp.sin | sp.cos) and exponent == 1 and affine[0] == 0:
            if frequency != 0:
                return None
            frequency, is_sine = affine[1], isinstance(base, sp.sin)
        else:
            return None
    return Piece(constant, power, (linear, quadratic), frequency, is_sine, tuple(erfs))


def _open_terms(
    kernel: sp.Expr,
) -> Iterator[tuple[sp.Expr, int, OpenKernel | None, int, int]]:
    """Yield (weight, power, κ, order, sign): the kernel is Σ weight t^power ∂^order κ(±t)."""
    base, exponent = kernel.as_base_exp()
    affine = affine_or_quadratic(base.args[0], T) if len(base.args) == 1 else None
    if affine is not None and affine[2] == 0 and affine[1].is_extended_real:
        b, a, _ = affine
        if isinstance(base, sp.tanh) and exponent.is_Integer and exponent > 0:
            for order, weight in _power_of_tanh(int(exponent), a).items():
                if order < 0:
                    yield weight, 0, None, 0, 1
                else:
                    sign, side, found = tanh_kernel(a, b)
                    yield weight * sign * side**order, 0, found, order, side
            return
        if isinstance(base, softplus) and exponent == 1:
            yield a / 2, 1, None, 0, 1
            yield b / 2, 0, None, 0, 1
            side, found = softplus_kernel(a, b)
            yield sp.S.One, 0, found, 0, side
            return
    yield sp.S.One, 0, _generic_kernel(kernel), 0, 1


def _power_of_tanh(n: int, a: sp.Expr) -> dict[int, sp.Expr]:
    """Return {m: c} with tanh(at + b)^n = Σ c ∂^m tanh(at + b), c of 1 at m = -1.

    From (tanh^{n-1})' = (n - 1) a (tanh^{n-2} - tanh^n).
    """
    if n == 0:
        return {-1: sp.S.One}
    if n == 1:
        return {0: sp.S.One}
    found = dict(_power_of_tanh(n - 2, a))
    for m, c in _power_of_tanh(n - 1, a).items():
        if m >= 0:
            found[m + 1] = found.get(m + 1, sp.S.Zero) - c / ((n - 1) * a)
    return found


def tanh_kernel(a: sp.Expr, b: sp.Expr) -> tuple[int, int, OpenKernel]:
    """Return (sign, side, κ) with tanh(at + b) = sign κ(side t), κ = tanh(|a| t + |b|)."""
    sign = side = 1
    if _is_negative(a):
        a, b, sign = -a, -b, -1
    if _is_negative(b):
        # tanh(at - |b|) = -tanh(a(-t) + |b|).
        b, sign, side = -b, -sign, -1
    return sign, side, _kernel(sp.tanh(a * T + b), -1 if b == 0 else 0)


def softplus_kernel(a: sp.Expr, b: sp.Expr) -> tuple[int, OpenKernel]:
    """Return (side, κ) with softplus(at + b) - (at + b)/2 = κ(side t), even for b = 0."""
    side = 1
    if _is_negative(a):
        a, b = -a, -b
    if _is_negative(b):
        b, side = -b, -1
    form = a * T + b
    _, _, tanh = tanh_kernel(a / 2, b / 2)
    kernel = _kernel(softplus(form) - form / 2, 1 if b == 0 else 0)
    return side, OpenKernel(kernel.name, kernel.parity, kernel.moment, (a / 2, tanh))


def _generic_kernel(kernel: sp.Expr) -> OpenKernel:
    try:
        parity = _PARITY[analyse(kernel.xreplace({T: _z}), _z).parity]
    except GiantstepError:
        parity = 0
    return _kernel(kernel, parity)


def _kernel(expr: sp.Expr, parity: int) -> OpenKernel:
    return OpenKernel(expr, parity, functools.partial(_moment, expr, parity))


@functools.lru_cache(maxsize=4096)
def _moment(expr: sp.Expr, parity: int, n: int) -> sp.Expr:
    if parity and parity != (-1) ** n:
        return sp.S.Zero
    return hermite_coefficient(expr.xreplace({T: _z}), n, variable=_z)


def _is_negative(number: sp.Expr) -> bool:
    known = number.is_negative
    return bool(number.could_extract_minus_sign()) if known is None else bool(known)


def _merged(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces with equal functions added up."""
    groups: dict[tuple[Any, ...], sp.Expr] = {}
    for p in pieces:
        key = (p.power, p.exponent, p.frequency, p.is_sine, p.erfs, p.kernels)
        groups[key] = groups.get(key, sp.S.Zero) + p.coefficient
    for key, coefficient in groups.items():
        if coefficient != 0:
            yield Piece(coefficient, *key)


def density(b: sp.Expr) -> sp.Expr:
    """Return erf'(b)."""
    return 2 * sp.exp(-(b**2)) / sp.sqrt(sp.pi)


def derivatives(kernel: OpenKernel) -> Iterator[tuple[sp.Expr, OpenKernel]]:
    """Yield (c, λ) with κ' = c λ, then the same for λ, as long as they are known."""
    while kernel.derivative is not None:
        yield kernel.derivative
        kernel = kernel.derivative[1]
