r"""From an activation to the sequence of its Hermite moments, by rules.

An activation is a sum of polynomials times *kernels*; a kernel is a product of functions of affine
arguments. The moments of a kernel are the derivatives at 0 of its smoothed function

.. math:: S(\xi) = \mathbb{E}\,g(z + \xi), \qquad \mu_k = S^{(k)}(0),

and four smoothed functions carry all rules, each a Gaussian in ξ or with a Gaussian as derivative:

- exp(q z² + l z) times sin or cos(a z + b): :math:`S \propto e^{A\xi - v\xi^2/2}` with
  A = (l + ia)/w, v = -2q/w, w = 1 - 2q > 0, so that :math:`\mu_k \propto \mathrm{He}^{[v]}_k(A)`;
- erf(a z + b), with :math:`S = \mathrm{erf}((a\xi + b)/\sqrt{1 + 2a^2})`;
- the step 1{z > t}, with :math:`S = \Phi(\xi - t)`; relu, abs and sign are polynomials times steps;
- a polynomial.

Products of sines are sums of sines, products of steps are steps. A kernel outside these rules is
*open*: :mod:`.hermite` expands it order by order. Source of the method: Stein's lemma and the
generating function of He_k, as in :mod:`.gaussian_rules`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from ..errors import AssumptionError
from ._singularities import expanded_terms
from .gaussian_kernels import (
    PRODUCTS_ONLY,
    affine_or_quadratic,
    as_steps_and_exponentials,
    group_by_kernel,
    split_kernel,
)
from .hermite_sequences import Base, Polynomial, Sequence, Weight, normal
from .piecewise_polynomials import flattened

_ONE: Polynomial = (sp.S.One,)
_COSINE: Weight = (_ONE, ())
_NOTHING = Sequence({}, {})
_HALF = sp.Rational(1, 2)
_DENSITY_AT_ZERO = 1 / sp.sqrt(2 * sp.pi)

# Beyond these powers of z, for no, one and more parameters, the weights of the closed form would
# fill pages; single orders remain exact, by the multiplication rule.
_HIGHEST_POWERS = (24, 6, 2)
_LONGEST_SUM = 2000

OpenTerms = dict[sp.Expr, dict[int, sp.Expr]]
"""Kernels without a closed form in k, with the polynomials before them: {kernel: {power: c}}."""


@dataclass(frozen=True)
class Decomposition:
    """An activation, split into a part with moments in closed form and the rest.

    Attributes
    ----------
    sequence : Sequence
        Moments of the first part.
    open_terms : OpenTerms
        The rest.
    """

    sequence: Sequence
    open_terms: OpenTerms


@functools.lru_cache(maxsize=256)
def decompose(expr: sp.Expr, z: sp.Symbol) -> Decomposition:
    """Split a function of the standard normal variable `z` into closed and open parts.

    Raises
    ------
    AssumptionError
        If a rule applies only under assumptions that the parameters do not have.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> found = decompose(z * sp.erf(z) + z**2 * sp.tanh(z), z)
    >>> found.open_terms
    {tanh(z): {2: 1}}
    >>> [found.sequence.value(k) for k in range(3)]
    [2*sqrt(3)/(3*sqrt(pi)), 0, 8*sqrt(3)/(9*sqrt(pi))]
    """
    if is_too_long(expr):
        expr = flattened(expr, whole=True)
    if is_too_long(expr):
        return Decomposition(_NOTHING, {expr: {0: sp.S.One}})
    closed: list[sp.Expr] = []
    left: list[sp.Expr] = []
    for term in _terms(expr):
        resolved = _resolved(term, z)
        kernels = group_by_kernel(resolved, z)
        known = all(k == 1 or kernel_sequence(k, z) is not None for k in kernels)
        # A term that stays open stays as it was written.
        closed.extend(resolved if known else ())
        left.extend(() if known else (term,))
    total, open_terms = _NOTHING, group_by_kernel(tuple(left), z)
    for kernel, coefficients in group_by_kernel(tuple(closed), z).items():
        if kernel == 1:
            for n, c in coefficients.items():
                total += Sequence.of_power(n).scaled(c)
            continue
        plain = kernel_sequence(kernel, z)
        highest = _HIGHEST_POWERS[min(len(kernel.free_symbols - {z}), 2)]
        if plain is None or max(coefficients) > highest:
            open_terms[kernel] = coefficients
        else:
            total += plain.times_polynomial(coefficients)
    return Decomposition(total.reduced(), open_terms)


def is_too_long(expr: sp.Expr) -> bool:
    """Whether an expression has too many terms to be multiplied out."""
    return expanded_terms(expr) > _LONGEST_SUM


def _resolved(term: sp.Expr, z: sp.Symbol) -> tuple[sp.Expr, ...]:
    """Return the terms of a product after relu, abs, cosh, ... are written by steps and exp."""
    powers = {
        e: sp.exp(e.exp * sp.log(e.base))
        for e in term.atoms(sp.Pow)
        if e.exp.has(z) and e.base is not sp.S.Exp1
    }
    found = as_steps_and_exponentials(term.xreplace(powers) if powers else term)
    return (found,) if found is term or is_too_long(found) else _terms(found)


def _terms(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    if all(
        factor.is_Symbol
        or (factor.is_Function and all(argument.is_Atom for argument in factor.args))
        for factor in sp.Mul.make_args(expr)
    ):
        # Nothing to multiply out; SymPy would walk the tree to see that.
        return (expr,)
    expanded = expr.expand(**PRODUCTS_ONLY)
    return () if expanded == 0 else sp.Add.make_args(expanded)


@functools.lru_cache(maxsize=256)
def kernel_sequence(kernel: sp.Expr, z: sp.Symbol) -> Sequence | None:
    """Return the moments of a kernel, a product of functions of `z`; None without a rule."""
    parts = split_kernel(kernel, z)
    if parts is None:
        return None
    exponent, others = parts
    if all(isinstance(factor, sp.sin | sp.cos) for factor in others):
        return _oscillating_gaussian(exponent, others, z)
    if exponent is not None:
        return None
    if all(isinstance(factor, sp.Heaviside) for factor in others):
        return _steps(others, z)
    if len(others) == 1 and isinstance(others[0], sp.erf):
        return _error_function(others[0].args[0], z)
    return None


def _oscillating_gaussian(
    exponent: sp.Expr | None, waves: list[sp.Expr], z: sp.Symbol
) -> Sequence | None:
    """The moments of exp(quadratic) times a product of sines and cosines."""
    quadratic = (sp.S.Zero,) * 3 if exponent is None else affine_or_quadratic(exponent, z)
    frequencies = _sum_of_waves(waves, z)
    if quadratic is None or frequencies is None:
        return None
    offset, slope, curvature = quadratic
    width = normal(1 - 2 * curvature)
    if not width.is_positive:
        if not width.free_symbols:
            return None
        _refuse(
            width.free_symbols,
            f"E[exp({exponent})] over standard normal {z} exists only for {width} > 0",
            "declare or write parameters so that it is seen, as s positive in exp(-z**2/(2*s))",
        )
    total = _NOTHING
    for (frequency, phase), (c, s) in frequencies.items():
        if frequency == 0 and exponent is None:
            total += Sequence.of_power(0).scaled(c)
            continue
        found = _gaussian(slope, frequency, phase, curvature, width)
        if found is None:
            return None
        base, factor = found
        constant = factor * sp.exp(offset)
        weight = ((c,) if c != 0 else (), (s,) if s != 0 else ())
        total += Sequence({(base, constant): {0: weight}}, {}) if weight != ((), ()) else _NOTHING
    return total


def _gaussian(
    slope: sp.Expr, frequency: sp.Expr, phase: sp.Expr, curvature: sp.Expr, width: sp.Expr
) -> tuple[Base, sp.Expr] | None:
    """Base and constant of exp(q z² + l z) cos(a z + b), w = 1 - 2q; sin is its other weight."""
    v = normal(-2 * curvature / width)
    root = sp.sqrt(v) if not v.could_extract_minus_sign() else sp.I * sp.sqrt(-v)
    if frequency == 0:
        constant = sp.exp(normal(slope**2 / (2 * width))) / sp.sqrt(width)
        return Base(normal(slope / width), v, scale=root), constant
    if slope == 0:
        # A = ia/w, and He^[v]_k(ix) = i^k He^[-v]_k(x).
        constant = sp.exp(normal(-(frequency**2) / (2 * width))) / sp.sqrt(width)
        turn = (sp.S.Zero, sp.S.One)
        root = sp.sqrt(-v) if v.could_extract_minus_sign() else sp.I * sp.sqrt(v)
        return Base(normal(frequency / width), -v, turn, phase, root), constant
    if curvature != 0:
        return None
    require_real(slope, f"exp({slope}*z) times a sine")
    require_real(frequency, f"exp({slope}*z) times a sine")
    constant = sp.exp(normal((slope**2 - frequency**2) / 2))
    phase = normal(phase + slope * frequency)
    return Base(sp.sqrt(slope**2 + frequency**2), v, (slope, frequency), phase), constant


_Waves = dict[tuple[sp.Expr, sp.Expr], tuple[sp.Expr, sp.Expr]]


def _sum_of_waves(waves: list[sp.Expr], z: sp.Symbol) -> _Waves | None:
    """Write a product of sines and cosines as {(a, b): (c, s)}: Σ c cos(az+b) + s sin(az+b)."""
    total: _Waves = {(sp.S.Zero, sp.S.Zero): (sp.S.One, sp.S.Zero)}
    for wave in waves:
        affine = affine_or_quadratic(wave.args[0], z)
        if affine is None or affine[2] != 0:
            return None
        b, a, _ = affine
        is_sine = isinstance(wave, sp.sin)
        found: _Waves = {}
        for (a0, b0), (c, s) in total.items():
            # Product of c cos u + s sin u with cos w or sin w, at u + w and at u - w.
            above = (-s * _HALF, c * _HALF) if is_sine else (c * _HALF, s * _HALF)
            below = (s * _HALF, -c * _HALF) if is_sine else (c * _HALF, s * _HALF)
            _add_wave(found, a0 + a, b0 + b, above)
            _add_wave(found, a0 - a, b0 - b, below)
        total = found
    return {key: weight for key, weight in total.items() if weight != (0, 0)}


def _add_wave(waves: _Waves, a: sp.Expr, b: sp.Expr, weight: tuple[sp.Expr, sp.Expr]) -> None:
    c, s = weight
    a, b = normal(a), normal(b)
    if a.could_extract_minus_sign():
        a, b, s = -a, -b, -s
    if a == 0:
        c, s, b = c * sp.cos(b) + s * sp.sin(b), sp.S.Zero, sp.S.Zero
    for _ in range(3):
        # A quarter turn exchanges sine and cosine, so that sin(z + pi/2) is seen to be cos(z).
        if not (b / sp.pi * 2).is_Integer or b == 0:
            break
        c, s, b = (s, -c, b - sp.pi / 2) if b.is_positive else (-s, c, b + sp.pi / 2)
    c0, s0 = waves.get((a, b), (sp.S.Zero, sp.S.Zero))
    waves[a, b] = (normal(c0 + c), normal(s0 + s))


def _error_function(argument: sp.Expr, z: sp.Symbol) -> Sequence | None:
    affine = affine_or_quadratic(argument, z)
    if affine is None or affine[2] != 0:
        return None
    b, a, _ = affine
    require_real(argument.xreplace({z: sp.S.One}), f"erf({argument})")
    width = 1 + 2 * a**2
    slope, offset = a / sp.sqrt(width), b / sp.sqrt(width)
    constant = 2 * slope / sp.sqrt(sp.pi) * sp.exp(-(b**2) / width)
    base = Base(normal(-2 * a * b / width), normal(2 * a**2 / width), scale=sp.sqrt(2) * slope)
    return Sequence({(base, constant): {1: _COSINE}}, {0: _parts(sp.erf(offset))})


def _steps(factors: list[sp.Expr], z: sp.Symbol) -> Sequence | None:
    """The moments of a product of step functions."""
    product: dict[sp.Expr | None, sp.Expr] = {None: sp.S.One}
    for factor in factors:
        step = _one_step(factor.args[0], z)
        if step is None:
            return None
        found: dict[sp.Expr | None, sp.Expr] = {}
        for first, weight in product.items():
            for second, other in step.items():
                point = _later(first, second)
                if point is NotImplemented:
                    return None
                found[point] = found.get(point, sp.S.Zero) + weight * other
        product = found
    total = _NOTHING
    for point, weight in product.items():
        if point is None:
            total += Sequence({}, {0: {sp.S.One: weight}})
            continue
        density = _DENSITY_AT_ZERO * sp.exp(-(point**2) / 2) if point != 0 else _DENSITY_AT_ZERO
        base = Base(normal(point), sp.S.One)
        mean = {sp.S.One: _HALF}
        if point != 0:
            mean |= {e: -_HALF * c for e, c in _parts(sp.erf(point / sp.sqrt(2))).items()}
        total += Sequence({(base, density): {1: _COSINE}}, {0: mean}).scaled(weight)
    return total


def _parts(value: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Write an error function as {constant: sign}; SymPy moves the sign of its argument out."""
    sign, constant = value.as_coeff_Mul()
    return {constant: sign} if value != 0 else {}


def _one_step(argument: sp.Expr, z: sp.Symbol) -> dict[sp.Expr | None, sp.Expr] | None:
    """Write 1{az + b > 0} as {t: weight of 1{z > t}, None: constant}."""
    affine = affine_or_quadratic(argument, z)
    if affine is None or affine[2] != 0:
        return None
    b, a, _ = affine
    require_real(argument.xreplace({z: sp.S.One}), f"the step at {argument} = 0")
    if not a.is_nonzero:
        _refuse(
            a.free_symbols,
            f"the step at {argument} = 0 does not depend on {z} if {a} = 0",
            "declare the slope with positive=True, or real=True and nonzero=True",
        )
    sign = sp.sign(a)
    return {None: (1 - sign) / 2, -b / a: sign}


def _later(first: sp.Expr | None, second: sp.Expr | None) -> sp.Expr | None:
    """Return the point of the product of two steps; NotImplemented if the order is not known."""
    if first is None or second is None:
        return second if first is None else first
    difference = normal(first - second)
    if difference.is_nonnegative:
        return first
    return second if difference.is_negative else NotImplemented


def require_real(value: sp.Expr, what: str) -> None:
    """Refuse parameters that are not known to be real where the result depends on that."""
    if value.is_extended_real:
        return
    unknown = {s for s in value.free_symbols if not s.is_extended_real} or value.free_symbols
    _refuse(unknown, f"{what} has a real argument only for real parameters", "declare it real=True")


def _refuse(symbols: Iterable[sp.Symbol], reason: str, remedy: str) -> None:
    names = ", ".join(sorted(symbol.name for symbol in symbols))
    raise AssumptionError(f"the result depends on assumptions on {names}: {reason}\n  {remedy}")
