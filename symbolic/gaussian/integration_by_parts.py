r"""Derivatives of free energies as papers print them, by Gaussian integration by parts.

The derivative of a free energy by an overlap q, on which it depends through
:math:`\mathbb{E}\,g(\sqrt q\,z + b)`, holds :math:`z/(2\sqrt q)`, singular at q = 0 where
:math:`\tfrac12\mathbb{E}\,g''` is not. :func:`reduced` removes every such z by Stein's lemma
(:mod:`.stein_lemma`), for :math:`f = e^{Az^2 + Bz}G(z)` in the form :math:`(1 - 2A)\,\mathbb{E}[zf]
= B\,\mathbb{E}f + \mathbb{E}[e^{Az^2 + Bz}G'(z)]`, and by tilting: :math:`u = cz + c^2` has the
density :math:`e^u` times an even function, so that :math:`\mathbb{E}f(u) = \mathbb{E}[f(u)\tanh
u]` for odd f and :math:`\mathbb{E}\tanh^{2n}u = \mathbb{E}\tanh^{2n-1}u`, the Nishimori line of
Bayes-optimal models (H. Nishimori, J. Phys. C 13, 4071 (1980)). What is left is collected.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from ..expressions._singularities import expanded_terms
from ..expressions.averages import Average, outermost
from ..expressions.factors import factored
from ..expressions.functions import (
    erfcx,
    exponentials_merged,
    log_normal_cdf,
    normal_cdf,
    sigmoid,
    with_sinh,
)
from ..expressions.shared_parts import parts_of
from .expectation import GaussianExpectation
from .integrand_kernels import PRODUCTS_ONLY, affine_or_quadratic
from .stein_lemma import SMOOTH_FUNCTIONS, first_singular, power_of

# Beyond these an integrand is left as it is: nobody reads a longer equation.
_MOST_TERMS = 60
_HIGHEST_POWER = 8


def linear_by_parts(node: GaussianExpectation) -> GaussianExpectation:
    r"""Return :math:`\mathbb{E}[f + zg]` as :math:`\mathbb{E}[f + g']`, f and g as they stand.

    The z is that of the chain rule, outside of all functions; without one, or where g has kinks,
    `node` itself is returned. Functions are not multiplied out, unlike in :func:`by_parts`, nor are
    coefficients but for those over a root, which the argument of a function may cancel.

    Examples
    --------
    >>> z, a, b = sp.symbols("z a b", real=True)
    >>> linear_by_parts(GaussianExpectation((a + b * z) * sp.exp(-sp.cosh(z)), z))
    E_z[a*exp(-cosh(z)) - b*exp(-cosh(z))*sinh(z)]
    """
    z = node.variable
    # Inner averages are such functions, whatever they hold.
    inner = {n: sp.Dummy(real=True) for n in _expectations(node.integrand) if z in n.free_symbols}
    marked = node.integrand.xreplace(inner)
    functions = {f for f in marked.atoms(sp.Function) if f.free_symbols & {z, *inner.values()}}
    marks = {f: sp.Dummy(real=True) for f in functions}
    back = {mark: n for n, mark in inner.items()}
    back |= {mark: f.xreplace(back) for f, mark in marks.items()}
    marked = marked.xreplace(marks)
    factor = marked.diff(z)
    if factor == 0 or z in factor.free_symbols:
        return node
    slope = _each_over_its_root(factor).xreplace(back).diff(z)
    if slope.has(sp.DiracDelta, sp.Derivative, sp.Heaviside, sp.sign):
        return node
    return GaussianExpectation(marked.xreplace({z: sp.S.Zero}).xreplace(back) + slope, z)


def _each_over_its_root(coefficient: sp.Expr) -> sp.Expr:
    """Return a coefficient as a sum of products if it holds one over a root, which then cancels."""
    if not _divides_by_root(coefficient):
        return coefficient
    # Such as (1 - q)**2, which loses digits as a sum.
    powers = {p: sp.Dummy() for p in coefficient.atoms(sp.Pow) if p.base.is_Add}
    expanded = coefficient.xreplace(powers).expand(**PRODUCTS_ONLY)
    return expanded.xreplace({mark: p for p, mark in powers.items()})


# -- conditions of stationarity


def reduced(condition: sp.Expr, energy: sp.Expr = sp.S.Zero) -> sp.Expr:
    r"""Return a derivative of a free energy without the factors z that differentiation left.

    Parameters
    ----------
    condition : Expr
        An expression with 𝔼 nodes.
    energy : Expr
        What it is the derivative of: arguments of logarithms in it, the single-site partition
        functions, are positive on the whole line, so that quotients by them have no poles.

    Returns
    -------
    Expr
        Equal to `condition` wherever its expectations are finite. Expectations of undefined
        functions, of kinks and of anything that may be singular are left as they are.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> q = sp.Symbol("q", positive=True)
    >>> energy = GaussianExpectation(sp.log(2 * sp.cosh(sp.sqrt(q) * z + q)), z)
    >>> reduced(2 * energy.diff(q) - 1)
    E_z[tanh(sqrt(q)*z + q)]
    >>> volume = GaussianExpectation(sp.log(normal_cdf(sp.sqrt(q) * z / sp.sqrt(1 - q))), z)
    >>> reduced(volume.diff(q))
    -E_z[exp(-q*z**2/(1 - q))/normal_cdf(sqrt(q)*z/sqrt(1 - q))**2]/(4*pi*(1 - q))
    """
    marks = {n: sp.Dummy(real=True) for n in _expectations(condition)}
    marked = condition.xreplace(marks)
    weights = {n: marked.diff(mark) for n, mark in marks.items()}
    sums = {n: result for n in marks if (result := _Sum.of(n, weights[n], energy)) is not None}
    if not sums:
        return condition
    if any(w.free_symbols & set(marks.values()) for w in weights.values()):
        # A function of expectations: each by itself.
        return condition.xreplace({n: result.assembled(sp.S.Zero) for n, result in sums.items()})
    back = {mark: n for n, mark in marks.items() if n not in sums}
    outside = marked.xreplace({marks[n]: sp.S.Zero for n in sums}).xreplace(back)
    if not outside.has(Average, AppliedUndef):
        outside = min(outside, _collected(outside), key=sp.count_ops)
    by_variable: dict[sp.Symbol, _Sum] = {}
    for n, result in sums.items():
        total = by_variable.setdefault(n.variable, _Sum(n.variable, {}))
        total.add(result, weights[n])
    for total in by_variable.values():
        outside = total.assembled(outside)
    return outside


def _expectations(expr: sp.Expr) -> list[GaussianExpectation]:
    return [n for n in outermost(expr) if isinstance(n, GaussianExpectation)]


@dataclass
class _Sum:
    """The expectation of a sum of functions of one variable without factors of the variable.

    `terms`: function, and its coefficient, free of the variable.
    """

    variable: sp.Symbol
    terms: dict[sp.Expr, sp.Expr]

    @classmethod
    def of(cls, node: GaussianExpectation, weight: sp.Expr, energy: sp.Expr) -> _Sum | None:
        """Return the sum equal to an expectation; None where the node is better left alone.

        `weight` is what it is multiplied by, `energy` what it came from.
        """
        z = node.variable
        inner = node.integrand.atoms(Average)
        if node.integrand.has(AppliedUndef, sp.Piecewise) or not all(
            isinstance(n, GaussianExpectation) and not n.integrand.has(Average) for n in inner
        ):
            return None
        integrand = canonical(node.integrand, z)
        functions = {f for f in integrand.atoms(sp.Function) if z in f.free_symbols}
        if not all(isinstance(f, SMOOTH_FUNCTIONS) and _is_admitted(f, z) for f in functions):
            return None
        # As logarithms: only there, and where something is divided by them, tails are Φ.
        logarithms = (canonical(f, z) for f in energy.atoms(sp.log))
        positive = {f.args[0].primitive()[1] for f in logarithms if isinstance(f, sp.log)}
        if not functions or first_singular(integrand, z, positive) is not None:
            return None
        terms = _terms(integrand, z)
        done = None if terms is None else _without_factors(terms, z)
        if terms is None or done is None:
            return None
        result = cls(z, {})
        for function, coefficient in done.items():
            result.add(cls(z, {function: coefficient}), sp.S.One)
        # A z of the user's own costs nothing, one over a root that may vanish does.
        singular = any(k and _divides_by_root(c * weight) for (k, _), c in terms.items())
        if any(_has_own_factor(n) for n in inner):
            singular |= _divides_by_root(node.integrand * weight)
        # A sign makes it no longer.
        length = min(sp.count_ops(sign * result.assembled(sp.S.Zero)) for sign in (1, -1))
        return result if singular or length <= sp.count_ops(node) else None

    def add(self, other: _Sum, weight: sp.Expr) -> None:
        """Add a multiple of another sum over the same variable."""
        for function, coefficient in other.terms.items():
            total = _collected(self.terms.get(function, sp.S.Zero) + weight * coefficient)
            self.terms[function] = total
            if total == 0:
                del self.terms[function]

    def assembled(self, outside: sp.Expr) -> sp.Expr:
        """Return `outside` plus the sum, as few expectations as there are coefficients."""
        groups: dict[sp.Expr, dict[sp.Expr, sp.Expr]] = {}
        for function, coefficient in self.terms.items():
            number, symbols = coefficient.as_coeff_Mul()
            if symbols.could_extract_minus_sign():
                number, symbols = -number, -symbols
            groups.setdefault(symbols, {})[function] = number
        total: list[sp.Expr] = []
        for symbols, numbers in groups.items():
            constant = numbers.pop(sp.S.One, sp.S.Zero)
            if constant != 0:
                separate = sp.expand(outside)
                merged = sp.expand(outside + constant * symbols)
                if _length(merged) <= _length(separate):
                    outside, constant = merged, sp.S.Zero
                elif all(number * constant > 0 for number in numbers.values()):
                    # What cancels, as 1 − tanh², stays together.
                    outside, constant = outside + constant * symbols, sp.S.Zero
            inside = constant + sp.Add(*(number * with_sinh(f) for f, number in numbers.items()))
            if inside != 0:
                number, inside = _common_factor_outside(inside)
                total.append(number * symbols * GaussianExpectation(inside, self.variable))
        return outside + sp.Add(*total)


def _has_own_factor(node: GaussianExpectation) -> bool:
    terms = sp.Add.make_args(node.integrand.expand(**PRODUCTS_ONLY))
    return any(power_of(term, node.variable) for term in terms)


def _divides_by_root(coefficient: sp.Expr) -> bool:
    powers = coefficient.atoms(sp.Pow)
    return any(p.exp.is_negative and not p.exp.is_Integer and p.free_symbols for p in powers)


def _length(sum_: sp.Expr) -> int:
    return 0 if sum_ == 0 else len(sp.Add.make_args(sum_))


def _collected(coefficient: sp.Expr) -> sp.Expr:
    """Return a coefficient as a product of powers, of which equal bases cancel; zero if it is."""
    top, bottom = sp.fraction(sp.together(coefficient))
    return _signs_outside(factored(sp.expand(top))) / _signs_outside(factored(bottom))


def _signs_outside(product: sp.Expr) -> sp.Expr:
    """Return a product whose sums have no common number, and one of x and −x for both."""
    factors = []
    for factor in sp.Mul.make_args(product):
        base, n = factor.as_base_exp()
        if base.is_Add:
            number, base = base.primitive()
            constant, _ = base.as_coeff_Add()
            negative = constant < 0 if constant else base.could_extract_minus_sign()
            if negative and n.is_Integer:
                number, base = -number, -base
            factors += [number**n, base**n]
        else:
            factors.append(factor)
    return sp.Mul(*factors)


def _is_admitted(f: sp.Expr, z: sp.Symbol) -> bool:
    """Whether the derivatives of a function bring no new factors of the variable."""
    if isinstance(f, sp.log):
        return True
    polynomial = affine_or_quadratic(f.args[0], z)
    return polynomial is not None and (isinstance(f, sp.exp) or polynomial[2] == 0)


def _terms(f: sp.Expr, z: sp.Symbol) -> dict[tuple[int, sp.Expr], sp.Expr] | None:
    """Return the terms c·zᵏ·g(z) of a function as {(k, g): c}; None if there are too many."""
    parts = f.atoms(*SMOOTH_FUNCTIONS, GaussianExpectation)
    functions = sorted(parts, key=lambda g: (-sp.count_ops(g), str(g)))
    marks = {g: sp.Dummy(real=True) for g in functions if z in g.free_symbols}
    back = {mark: g for g, mark in marks.items()}
    # Coefficients are not multiplied out.
    remaining: dict[sp.Expr, sp.Dummy] = {}
    marked = _constants_marked(f.xreplace(marks), {z, *back}, remaining)
    if expanded_terms(marked) > _MOST_TERMS:
        return None
    constants = {mark: c for c, mark in remaining.items()}
    divisors = {
        p.base: sp.Dummy(real=True)
        for p in sorted(parts_of(marked, sp.Pow), key=sp.count_ops, reverse=True)
        if p.base.is_Add and p.exp.is_negative
    }
    marked = marked.xreplace(divisors)
    divided = {mark: base for base, mark in divisors.items()}
    result: dict[tuple[int, sp.Expr], sp.Expr] = {}
    for term in sp.Add.make_args(marked.expand(**PRODUCTS_ONLY)):
        coefficient, rest = term.as_independent(z, *back, *divided, as_Add=False)
        power = power_of(rest, z)
        function = (rest / z**power).xreplace(divided).xreplace(constants).xreplace(back)
        key = (power, exponentials_merged(function))
        result[key] = result.get(key, sp.S.Zero) + coefficient.xreplace(constants)
    return result


def _constants_marked(
    expr: sp.Expr, varying: set[sp.Symbol], marks: dict[sp.Expr, sp.Dummy]
) -> sp.Expr:
    """Replace what does not vary by symbols, each the largest that is not a number."""
    if expr.is_Number or not expr.args:
        return expr
    if not expr.free_symbols & varying:
        return marks.setdefault(expr, sp.Dummy(real=True))
    if expr.is_Mul or expr.is_Add:
        number, rest = expr.as_independent(*varying, as_Add=expr.is_Add)
        if number != expr.identity:
            inner = _constants_marked(rest, varying, marks)
            return expr.func(_constants_marked(number, varying, marks), inner)
    return expr.func(*(_constants_marked(a, varying, marks) for a in expr.args))


def _without_factors(
    terms: dict[tuple[int, sp.Expr], sp.Expr], z: sp.Symbol
) -> dict[sp.Expr, sp.Expr] | None:
    """Return {g: c} with the same expectation; None if that does not end, or in too long a sum."""
    work, done = dict(terms), dict[sp.Expr, sp.Expr]()
    for _ in range(4 * _MOST_TERMS):
        if not work:
            return _tilted_to_odd(done, z) if len(done) <= _MOST_TERMS else None
        (k, g), coefficient = work.popitem()
        if k == 0:
            done[g] = done.get(g, sp.S.Zero) + coefficient
            continue
        if k > _HIGHEST_POWER:
            return None
        following = _lowered(k, g, z)
        if following is None:
            return None
        for key, factor in following.items():
            work[key] = work.get(key, sp.S.Zero) + coefficient * factor
    return None


def _lowered(k: int, g: sp.Expr, z: sp.Symbol) -> dict[tuple[int, sp.Expr], sp.Expr] | None:
    """E[zᵏ g] by parts, with g = exp(Az² + Bz + C) G: terms of lower powers of z."""
    exponential = sp.Mul(*(f for f in sp.Mul.make_args(g) if isinstance(f, sp.exp)))
    linear = quadratic = sp.S.Zero
    if exponential != 1:
        polynomial = affine_or_quadratic(exponential.args[0], z)
        if polynomial is None:
            return None
        _, linear, quadratic = polynomial
    narrowing = sp.together(1 - 2 * quadratic)
    if narrowing == 0:
        return None
    slopes = _terms(canonical((g / exponential).diff(z), z), z)
    if slopes is None:
        return None
    result: dict[tuple[int, sp.Expr], sp.Expr] = {}
    for (j, h), coefficient in slopes.items():
        key = (k - 1 + j, exponentials_merged(exponential * h))
        result[key] = result.get(key, sp.S.Zero) + coefficient / narrowing
    for power, coefficient in ((k - 1, linear), (k - 2, sp.Integer(k - 1))):
        if coefficient != 0:
            key = (power, g)
            result[key] = result.get(key, sp.S.Zero) + coefficient / narrowing
    return {key: coefficient for key, coefficient in result.items() if coefficient != 0}


# -- equal functions in one spelling


def canonical(f: sp.Expr, z: sp.Symbol) -> sp.Expr:
    r"""Return a function of z in one spelling, so that equal parts look equal.

    The result: equal to `f`, with quotients of hyperbolic functions as tanh, and the tails of the
    normal law, where something is divided by them, as :math:`\Phi`.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> canonical(sp.sinh(z) / sp.cosh(z) - sp.sech(z) ** 4, z)
    -(1 - tanh(z)**2)**2 + tanh(z)
    >>> canonical(sp.exp(-(z**2)) / sp.erfc(z), z)
    exp(-z**2)/(2*normal_cdf(-sqrt(2)*z))
    """
    inner = [n for n in _expectations(f) if z in n.free_symbols]
    f = f.xreplace({n: _spread(n) for n in inner})
    if f.has(log_normal_cdf, erfcx) or any(
        (isinstance(p, sp.log) or bool(p.exp.is_number and p.exp.is_negative))
        and p.has(sp.erf, sp.erfc, normal_cdf)
        for p in f.atoms(sp.Pow, sp.log)
    ):
        f = _in_normal_cdf(f)
    tilted = [g for g in f.atoms(sigmoid) if _tilt(g.args[0] / 2, z)]
    f = f.xreplace({g: (1 + sp.tanh(g.args[0] / 2)) / 2 for g in tilted})
    if f.has(sp.sinh, sp.sech, sp.cosh):
        f = f.replace(sp.sinh, lambda u: sp.tanh(u) * sp.cosh(u))
        f = f.replace(sp.sech, lambda u: 1 / sp.cosh(u))
        f = f.replace(lambda e: e.is_Pow and isinstance(e.base, sp.cosh), _even_power_of_sech)
    return f


def _spread(node: GaussianExpectation) -> sp.Expr:
    """Return an inner expectation as a sum of those without factors of its variable."""
    s = node.variable
    f = canonical(node.integrand, s)
    functions = [g for g in f.atoms(sp.Function) if s in g.free_symbols]
    if not all(isinstance(g, SMOOTH_FUNCTIONS) and _is_admitted(g, s) for g in functions):
        return node
    if first_singular(f, s) is not None:
        return node
    terms = _terms(f, s)
    done = None if terms is None else _without_factors(terms, s)
    if done is None:
        return node
    return sp.Add(*(c * GaussianExpectation(g, s) for g, c in done.items()))


def collected(f: sp.Expr, z: sp.Symbol) -> sp.Expr:
    """Return a function of z in one spelling, its terms with one coefficient each.

    Examples
    --------
    >>> z = sp.Symbol("z", real=True)
    >>> q = sp.Symbol("q", positive=True)
    >>> collected(sp.tanh(z) / sp.sqrt(2 - 2 * q) - sp.sinh(z) / sp.cosh(z) / sp.sqrt(8 - 8 * q), z)
    sqrt(2)*tanh(z)/(4*sqrt(1 - q))
    """
    result: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(canonical(f, z)):
        # Signs and numbers of sums go to the coefficient.
        coefficient, rest = _signs_outside(term).as_independent(z, as_Add=False)
        result[rest] = result.get(rest, sp.S.Zero) + coefficient
    number, rest = _common_factor_outside(sp.Add(*(_collected(c) * g for g, c in result.items())))
    return number * rest


def _in_normal_cdf(f: sp.Expr) -> sp.Expr:
    root = sp.sqrt(2)
    f = f.replace(log_normal_cdf, lambda x: sp.log(normal_cdf(x)))
    f = f.replace(erfcx, lambda y: 2 * sp.exp(y**2) * normal_cdf(-root * y))
    f = f.replace(sp.erfc, lambda y: 2 * normal_cdf(-root * y))
    f = f.replace(sp.erf, lambda y: 2 * normal_cdf(root * y) - 1)
    f = f.replace(normal_cdf, lambda x: normal_cdf(_signs_outside(x)))
    f = f.replace(sp.exp, lambda w: sp.exp(sp.Add(*map(_signs_outside, sp.Add.make_args(w)))))
    return f.replace(lambda e: e.is_Add, _reflected)


def _reflected(sum_: sp.Add) -> sp.Expr:
    """c − cΦ(x) = cΦ(−x), and c + cΦ(x) − c = cΦ(x) with a c outside of the sum."""
    constant, rest = sp.expand_mul(sum_, deep=False).as_coeff_Add()
    number, base = rest.as_coeff_Mul()
    if not isinstance(base, normal_cdf):
        return sum_
    if constant == 0:
        return rest
    return constant * normal_cdf(-base.args[0]) if number == -constant else sum_


def _even_power_of_sech(power: sp.Pow) -> sp.Expr:
    if not (power.exp.is_Integer and power.exp < 0):
        return power
    half, odd = divmod(-power.exp, 2)
    return (1 - sp.tanh(power.base.args[0]) ** 2) ** half / power.base**odd


def _common_factor_outside(sum_: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return the common number of a sum, and the rest with what all terms share as a factor.

    Never over a common denominator: quotients by a tail would not be scaled functions any more.
    """
    number, sum_ = sum_.primitive()
    terms = sp.Add.make_args(sum_)
    powers = [_rational_powers(term) for term in terms]
    common: sp.Expr = sp.S.One
    for base, n in powers[0].items():
        exponents = [p.get(base, sp.S.Zero) for p in powers]
        if all(k * n > 0 for k in exponents):
            common *= base ** min(exponents, key=abs)
    return number, common * sp.Add(*(term / common for term in terms))


def _rational_powers(term: sp.Expr) -> dict[sp.Expr, sp.Rational]:
    """The factors of a product and their powers, numbers left out."""
    result: dict[sp.Expr, sp.Rational] = {}
    for factor in sp.Mul.make_args(term):
        base, n = factor.as_base_exp()
        if not n.is_Rational:
            base, n = factor, sp.S.One
        if not base.is_Rational:
            result[base] = n
    return result


# -- tilted measures


def _tilt(u: sp.Expr, z: sp.Symbol) -> int:
    """Return ±1 where u = cz ± c², the place where exp(±u) tilts an even measure; else 0."""
    polynomial = affine_or_quadratic(u, z)
    if polynomial is None or polynomial[2] != 0 or polynomial[1] == 0:
        return 0
    b, c, _ = polynomial
    for sign in (1, -1):
        if sp.expand(sp.together(b - sign * c**2)) == 0:
            return sign
    return 0


def _tilted_to_odd(terms: dict[sp.Expr, sp.Expr], z: sp.Symbol) -> dict[sp.Expr, sp.Expr]:
    """Write even powers of tanh at a tilted argument as the odd ones below."""
    result: dict[sp.Expr, sp.Expr] = {}
    for function, coefficient in terms.items():
        base, n = function.as_base_exp()
        if isinstance(base, sp.tanh) and n.is_Integer and n > 0 and n % 2 == 0:
            sign = _tilt(base.args[0], z)
            if sign:
                function, coefficient = base ** (n - 1), sign * coefficient
        result[function] = result.get(function, sp.S.Zero) + coefficient
    return result
