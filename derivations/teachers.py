r"""Teachers of several directions, as the theories of one spike see them.

A step in the proportional limit moves all rows along one direction, that of
:math:`C_1 = \mathbb{E}[x f_*(x)]`: :math:`\theta = C_1/|C_1|`. So what enters of a target
:math:`f_*(x_1, \dots, x_r)` are its moments given the one coordinate :math:`\theta\cdot x`, and its
linear parts along the other directions given that coordinate (Cui et al., arXiv 2402.04980,
equation (81); Ba et al., arXiv 2205.01445, for any :math:`f_*`). With
:math:`\theta\cdot x = \text{centre} + \text{spread}\,s`, :math:`s \sim \mathcal{N}(0, 1)`, and all
orthogonal coordinates standard normal,

.. math:: T_0 = \mathbb{E}f_*,\qquad T_1 = \mathbb{E}[s f_*],\qquad
          T_1^k = \mathbb{E}[(n_k\cdot x) f_*],\qquad T_2 = \mathbb{E}f_*^2 ,

where the n_k are an orthonormal basis of the relevant directions across θ. A target of one
direction is its function of that direction, and nothing else: an activation.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from ..errors import AssumptionError, UnsupportedExpressionError
from ..numeric.cache import FileCache
from ..runtime.generated import GeneratedFunction
from ..symbolic.expressions.activations import Activation, activation, z
from ..symbolic.gaussian.expectation import GaussianExpectation, expect
from ..symbolic.gaussian.zero_test import is_exactly_zero
from ..symbolic.hermite.coefficients import (
    hermite_coefficient,
    residual_variance,
)
from ..symbolic.leaps.leap_index import information_exponent
from ..symbolic.printing.compiled import Formula, function_source
from ..symbolic.targets.ridge_terms import RidgeTerm, T, ridge_terms
from ..symbolic.targets.target import Target, target
from .activation_functions import activation_text, cached_elementwise
from .derived import derived

_COORDINATE = re.compile(r"(?<![A-Za-z0-9_])x_?\{?[0-9]+\}?")
MOST_DIRECTIONS = 5
"""Each direction across the spike is one more overlap of the readout."""
_MOST_PRODUCTS = 400


_SUPPORTED = (
    "solve, curve, optimum, sensitivities, digits, proofs, kernels, spectrum and simulate take "
    "such teachers"
)


def names_coordinates(teacher: str) -> bool:
    """Tell whether the text of a teacher is in coordinates x1, x2, …."""
    return bool(_COORDINATE.search(teacher))


@dataclass(frozen=True)
class LabelMoments:
    """Moments of noise-free labels given the coordinate along the spike's direction.

    Attributes
    ----------
    mean, square : Expr
        T_0 and T_2.
    along : Expr
        T_1, with the part s of θ·x that is not in the centre.
    across : tuple of Expr
        T_1 with the coordinates n_k·x.
    """

    mean: sp.Expr
    along: sp.Expr
    across: tuple[sp.Expr, ...]
    square: sp.Expr


@dataclass(frozen=True)
class DirectionalTeacher:
    """A target of at least two directions.

    Attributes
    ----------
    target : Target
    gradient : tuple of Expr
        C_1, in the coordinates of the target.
    constants : tuple of (Symbol, Expr)
        Integrals without closed form that are symbols in `gradient` and `across`.
    across : tuple of tuple of Expr
        The n_k: orthonormal, and with C_1 a basis of the relevant directions.
    """

    target: Target
    gradient: tuple[sp.Expr, ...]
    across: tuple[tuple[sp.Expr, ...], ...]
    constants: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()

    @property
    def name(self) -> str:
        """The text the user gave."""
        return self.target.name

    @functools.cached_property
    def linear(self) -> sp.Expr:
        """\\|C_1\\|; zero is decided exactly."""
        return self._length.xreplace(dict(self.constants))

    @property
    def _length(self) -> sp.Expr:
        return sp.sqrt(sp.Add(*(x**2 for x in self.gradient)))

    @property
    def direction(self) -> tuple[sp.Expr, ...]:
        """θ.

        Raises
        ------
        AssumptionError
            If C_1 vanishes.
        UnsupportedExpressionError
            If θ has no closed form.
        """
        if not self._length:
            raise AssumptionError(
                f"teacher {self.name!r} has no linear part: C_1 = E[x f(x)] = 0, along which the "
                "step makes its spike (leap index 1 is assumed for teachers of several "
                "directions); add a linear term, as in 'x1*x2 + x1', or ask giantstep staircase "
                "for the steps that learn its directions"
            )
        theta = tuple(sp.radsimp(x / self._length) for x in self.gradient)
        if any(x.has(*(symbol for symbol, _ in self.constants)) for x in theta):
            raise UnsupportedExpressionError(
                f"the linear part C_1 of teacher {self.name!r} mixes numbers without closed form, "
                f"{', '.join(str(value) for _, value in self.constants)}, and so does the "
                "direction of the spike; use functions whose linear parts are known, such as erf, "
                "relu and sin, or put such a function along a direction of its own"
            )
        return theta

    @functools.cached_property
    def _terms(self) -> tuple[RidgeTerm, ...]:
        return ridge_terms(self.target.expr, self.target.variables)

    def moments(self, centre: sp.Expr, spread: sp.Expr) -> LabelMoments:
        """Return the moments of labels at θ·x = centre + spread s.

        Raises
        ------
        AssumptionError
            If C_1 vanishes.
        UnsupportedExpressionError
            If a product of functions of two directions has no closed form in one of them.
        """
        law, inputs = _Law.of(self.direction, centre, spread), self.target.variables

        def mean(order: int, weight: sp.Expr = sp.S.One) -> sp.Expr:
            return _sum(self._terms, order, law, inputs, weight)

        return LabelMoments(
            mean(1),
            mean(1, law.variables[-1]) if spread else sp.S.Zero,
            tuple(mean(1, _dot(n, inputs)) for n in self.across),
            mean(2),
        )

    def power(self, n: int) -> sp.Expr:
        """Return E f_*^n."""
        # At unit spread the law knows no direction.
        axis = (sp.S.One, *(sp.S.Zero for _ in self.gradient[1:]))
        law = _Law.of(axis, sp.S.Zero, sp.S.One)
        return _sum(self._terms, n, law, self.target.variables, sp.S.One).doit()


Teacher = Activation | DirectionalTeacher
"""A single-index target, as its activation, or one of several directions."""


def label_coefficient(teacher: Teacher, order: int) -> sp.Expr:
    """Return the Hermite coefficient of the target along its spike, of order 0 or 1."""
    if isinstance(teacher, Activation):
        return hermite_coefficient(teacher, order)
    return teacher.target.mean if order == 0 else teacher.linear


def label_power(teacher: Teacher, n: int) -> sp.Expr:
    """Return E f_*^n."""
    if isinstance(teacher, Activation):
        return expect(teacher.expr**n, z)
    return teacher.power(n)


def moments_of(teacher: DirectionalTeacher) -> dict[str, sp.Expr]:
    """Return mean, linear part and residual variance: all that one step of order one sees."""
    return {
        "mean": teacher.target.mean,
        "linear": teacher.linear,
        "residual": nonlinear_variance(teacher),
    }


def parity_and_jumps(teacher: DirectionalTeacher) -> tuple[bool, bool]:
    """Tell whether a target is provably odd, and whether it is discontinuous."""
    f = teacher.target
    mirrored = f.expr.xreplace({x: -x for x in f.variables})
    return sp.expand(f.expr + mirrored) == 0, f.expr.has(sp.sign, sp.Heaviside)


def leap_index(teacher: Teacher) -> int:
    """Return the lowest order of a Hermite tensor that does not vanish."""
    if isinstance(teacher, Activation):
        return information_exponent(teacher)
    if teacher.linear:
        return 1
    order = 2
    while all(
        is_exactly_zero(value, f"coefficient of {teacher.name}")
        for value in teacher.target.he_coefficients(order).values()
    ):
        order += 1
    return order


def nonlinear_variance(teacher: Teacher) -> sp.Expr:
    r"""Return :math:`\|P_{>1}f_*\|^2`, the variance less that of the linear part."""
    if isinstance(teacher, Activation):
        return residual_variance(teacher)
    square = teacher.target.norm_squared
    return sp.expand(square - teacher.target.mean**2 - teacher.linear**2)


def read_teacher(text: str | Teacher, *, argument: str = "teacher") -> Teacher:
    """Return the target that a text stands for.

    Parameters
    ----------
    text : str, Activation or DirectionalTeacher
        A catalogue name or an expression in z, which is a single-index target; or an expression
        in inputs x1, x2, ….
    argument : str
        How the user knows it.

    Raises
    ------
    ExpressionError
        If it cannot be read.
    AssumptionError
        If it is not square-integrable, or a constant.
    UnsupportedExpressionError
        If it is not a sum of products of functions of one linear form each, or depends on more
        than five directions.

    Examples
    --------
    >>> read_teacher("x1*x2 + x1").across
    ((0, 1),)
    >>> read_teacher("erf(x1 + x2)").expr
    erf(sqrt(2)*z)
    """
    if isinstance(text, Activation | DirectionalTeacher):
        return text
    if not names_coordinates(text):
        return activation(text, argument=argument)
    f = target(text, argument=argument)
    basis = f.relevant_subspace.basis
    if not basis:
        raise AssumptionError(
            f"{argument} {text!r} is a constant: it depends on no input, and a step learns nothing"
        )
    if len(basis) == 1:
        unit = _unit(basis[0])
        expr = f.expr.xreplace({x: a * z for x, a in zip(f.variables, unit, strict=True)})
        return activation(str(sp.expand(expr) if f.is_polynomial else expr), argument=argument)
    if len(basis) > MOST_DIRECTIONS:
        raise UnsupportedExpressionError(
            f"{argument} {text!r} depends on {len(basis)} directions; the equations are derived "
            f"for at most {MOST_DIRECTIONS}"
        )
    gradient = [sp.S.Zero] * f.dimension
    for alpha, value in f.he_coefficients(1).items():
        if not is_exactly_zero(value, f"coefficient of {f.variables[alpha.index(1)]} in {text}"):
            gradient[alpha.index(1)] = value
    known, constants = _with_symbols(gradient)
    others = list(basis)
    if any(known):
        # The basis is in echelon form: C_1 has the coordinates of its pivots.
        pivots = f.relevant_subspace.pivots
        others.pop(next(i for i, pivot in enumerate(pivots) if known[pivot]))
    return DirectionalTeacher(f, known, _across(known, others), constants)


def teacher_text(value: object, cache: FileCache) -> str:
    """Return a teacher as text; one of a single direction as a function of z.

    Parameters
    ----------
    value : str, Expr, Activation or Target

    Raises
    ------
    ExpressionError, AssumptionError, UnsupportedExpressionError
        As for :func:`read_teacher`.
    """
    if isinstance(value, Target):
        text = str(value.expr)
    elif isinstance(value, sp.Expr) and names_coordinates(str(value)):
        text = str(value)
    else:
        text = activation_text("teacher", value)
    return _reduced(cache, text) if isinstance(text, str) and names_coordinates(text) else text


@derived("teachers", str)
def _reduced(text: str) -> str:
    teacher = read_teacher(text)
    return text if isinstance(teacher, DirectionalTeacher) else str(teacher.name)


def has_several_directions(teacher: str) -> bool:
    """Tell whether a text that :func:`teacher_text` returned has more than one direction."""
    return names_coordinates(teacher)


def refuse_directions(teacher: str, what: str) -> None:
    """Refuse what is derived for single-index teachers only.

    Raises
    ------
    UnsupportedExpressionError
    """
    if has_several_directions(teacher):
        raise UnsupportedExpressionError(
            f"teacher {teacher!r} has several directions, and not derived for such teachers is: "
            f"{what}; {_SUPPORTED}"
        )


def _unit(vector: Sequence[sp.Expr]) -> list[sp.Expr]:
    length = sp.sqrt(sp.Add(*(a**2 for a in vector)))
    return [sp.radsimp(a / length) for a in vector]


def _with_symbols(
    gradient: Sequence[sp.Expr],
) -> tuple[tuple[sp.Expr, ...], tuple[tuple[sp.Symbol, sp.Expr], ...]]:
    """Write integrals without closed form as symbols of the same sign."""
    nodes = sorted(sp.Tuple(*gradient).atoms(GaussianExpectation), key=sp.default_sort_key)
    symbols = {
        node: sp.Symbol(f"_c{i}", **{"positive" if node.evalf(20) > 0 else "negative": True})
        for i, node in enumerate(nodes)
    }
    known = tuple(value.xreplace(symbols) for value in gradient)
    return known, tuple((symbol, node) for node, symbol in symbols.items())


def _across(
    gradient: Sequence[sp.Expr], vectors: Sequence[Sequence[sp.Expr]]
) -> tuple[tuple[sp.Expr, ...], ...]:
    """Orthonormalise vectors behind the gradient, from which they are independent."""
    frame = [list(gradient)] if any(gradient) else []
    found: list[tuple[sp.Expr, ...]] = []
    for vector in vectors:
        rest = list(vector)
        for done in frame:
            share = _dot(rest, done) / _dot(done, done)
            rest = [sp.radsimp(sp.expand(a - share * b)) for a, b in zip(rest, done, strict=True)]
        frame.append(rest)
        found.append(tuple(_unit(rest)))
    return tuple(found)


def _dot(a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Add(*(x * y for x, y in zip(a, b, strict=True)))


# ------------------------------------------------------------------ averages


@dataclass(frozen=True)
class _Law:
    """The Gaussian coordinates x and, last, s: means and covariances."""

    variables: tuple[sp.Symbol, ...]
    mean: tuple[sp.Expr, ...]
    covariance: sp.Matrix

    @classmethod
    def of(cls, theta: Sequence[sp.Expr], centre: sp.Expr, spread: sp.Expr) -> _Law:
        column = sp.Matrix(theta)
        inputs = sp.eye(len(theta)) - (1 - spread**2) * column * column.T
        own = spread * column
        matrix = sp.Matrix(sp.BlockMatrix([[inputs, own], [own.T, sp.eye(1)]]))
        s = sp.Dummy("s", real=True)
        mean = (*(a * centre for a in theta), sp.S.Zero)
        return cls((*_placeholders(len(theta)), s), mean, matrix.applyfunc(sp.expand))

    def between(self, a: Sequence[sp.Expr], b: Sequence[sp.Expr]) -> sp.Expr:
        found: sp.Expr = (sp.Matrix([*a]).T * self.covariance * sp.Matrix([*b]))[0]
        return sp.factor_terms(sp.expand(found))


@functools.lru_cache(maxsize=16)
def _placeholders(count: int) -> tuple[sp.Symbol, ...]:
    return tuple(sp.Dummy(f"x{i + 1}", real=True) for i in range(count))


def _sum(
    terms: Sequence[RidgeTerm],
    n: int,
    law: _Law,
    variables: Sequence[sp.Symbol],
    weight: sp.Expr,
) -> sp.Expr:
    """Return the mean of weight f^n, the weight a polynomial in `variables` and s."""
    if sum(1 for _ in terms) ** n > _MOST_PRODUCTS:
        raise UnsupportedExpressionError(
            f"the teacher has {len(terms)} terms, and moments of order {n} too many products of "
            "them; write it with fewer terms"
        )
    inside = dict(zip(variables, law.variables, strict=False))
    weight = weight.xreplace(inside)
    polynomial = sp.S.Zero
    others: list[sp.Expr] = []
    for chosen in itertools.combinations_with_replacement(terms, n):
        count = sp.factorial(n)
        for term in set(chosen):
            count /= sp.factorial(chosen.count(term))
        factor = count * weight
        functions: dict[tuple[sp.Expr, ...], sp.Expr] = {}
        for term in chosen:
            factor *= term.coefficient
            factor *= sp.Mul(*(x**k for x, k in zip(law.variables, term.powers, strict=False)))
            for ridge in term.ridges:
                if ridge.expr.is_polynomial(T):
                    form = _dot(ridge.direction, law.variables[:-1])
                    factor *= ridge.expr.xreplace({T: form})
                else:
                    _put(functions, ridge.direction, ridge.expr)
        if functions:
            others.append(_mean(sp.expand(factor), functions, law))
        else:
            polynomial += factor
    return sp.Add(_mean(sp.expand(polynomial), {}, law), *others)


def _put(
    functions: dict[tuple[sp.Expr, ...], sp.Expr], direction: tuple[sp.Expr, ...], g: sp.Expr
) -> None:
    """Collect factors of one direction, of either sign."""
    opposite = tuple(-a for a in direction)
    if opposite in functions:
        direction, g = opposite, g.xreplace({T: -T})
    functions[direction] = functions.get(direction, sp.S.One) * g


def _mean(
    polynomial: sp.Expr, functions: Mapping[tuple[sp.Expr, ...], sp.Expr], law: _Law
) -> sp.Expr:
    r"""Return the mean of a polynomial times functions :math:`g_j(d_j\cdot x)`.

    The forms become :math:`d_j\cdot x = m_j + \sum_{i\le j}L_{ji}t_i` with independent t. What of
    the coordinates does not follow from t is averaged over by the heat flow of a polynomial.
    """
    forms = [(*d, sp.S.Zero) for d in functions]
    axes: list[tuple[sp.Expr, ...]] = []
    t: list[sp.Symbol] = []
    arguments: list[sp.Expr] = []
    for form in forms:
        value = _dot(form, law.mean)
        rest = form
        for axis, variable in zip(axes, t, strict=True):
            share = law.between(form, axis)
            value += share * variable
            rest = tuple(a - share * b for a, b in zip(rest, axis, strict=True))
        variance = sp.simplify(law.between(rest, rest))
        if variance != 0:
            length = sp.sqrt(variance)
            axes.append(tuple(a / length for a in rest))
            t.append(sp.Symbol(f"t_{len(t) + 1}", real=True))
            value += length * t[-1]
        arguments.append(value)
    columns = [law.covariance * sp.Matrix(axis) for axis in axes]
    left = law.covariance - sum((c * c.T for c in columns), sp.zeros(len(law.mean)))
    smoothed = _heat(polynomial, law.variables, left.applyfunc(sp.expand))
    coordinates = {
        x: m + sp.Add(*(c[i] * v for c, v in zip(columns, t, strict=True)))
        for i, (x, m) in enumerate(zip(law.variables, law.mean, strict=True))
    }
    weight = sp.expand(smoothed.xreplace(coordinates))
    if not t:
        product = sp.Mul(*(
            g.xreplace({T: x}) for g, x in zip(functions.values(), arguments, strict=True)
        ))  # fmt: skip
        return weight * product
    parts = [g.xreplace({T: x}) for g, x in zip(functions.values(), arguments, strict=True)]
    return sp.Add(*(_nested(term, parts, t) for term in sp.Add.make_args(weight)))


def _heat(polynomial: sp.Expr, variables: Sequence[sp.Symbol], covariance: sp.Matrix) -> sp.Expr:
    """Return the mean of a polynomial over a centred Gaussian shift of its variables."""
    total, term, order = polynomial, polynomial, 0
    pairs = [
        (x, y, covariance[i, j])
        for i, x in enumerate(variables)
        for j, y in enumerate(variables)
        if covariance[i, j] != 0
    ]
    while term != 0:
        order += 1
        term = sp.expand(sp.Add(*(c * term.diff(x, y) for x, y, c in pairs)) / (2 * order))
        total += term
    return total


def _nested(factor: sp.Expr, parts: Sequence[sp.Expr], t: Sequence[sp.Symbol]) -> sp.Expr:
    """Average over independent variables, the last first; closed forms where rules give them."""
    factors = [*sp.Mul.make_args(factor), *parts]
    for variable in reversed(t):
        own = [f for f in factors if f.has(variable)]
        factors = [f for f in factors if not f.has(variable)]
        inner = GaussianExpectation(sp.Mul(*own), variable)
        if variable is not t[0]:
            inner = inner.doit()
            if inner.has(GaussianExpectation) and inner.free_symbols & set(t):
                raise UnsupportedExpressionError(
                    f"the teacher needs the average of {sp.Mul(*own)}, which has no closed form "
                    "in one of two directions; polynomials, and functions such as erf, relu, sin, "
                    "sign and exp of several directions, are supported, and any function of one"
                )
        factors.append(inner)
    return sp.Mul(*factors)


# ------------------------------------------------------------------ networks


def teacher_function(cache: FileCache, teacher: str) -> tuple[Any, int]:
    """Return a teacher as a function of arrays, and the number of its directions.

    A teacher of several directions is one of coordinates of which the first is along C_1.
    """
    if not names_coordinates(teacher):
        return cached_elementwise(cache, teacher), 1
    document = _sources(cache, teacher)
    return GeneratedFunction(document["source"], "teacher"), document["directions"]


@derived("teachers/functions", dict)
def _sources(text: str) -> dict[str, Any]:
    found = read_teacher(text)
    assert isinstance(found, DirectionalTeacher)
    length, values = found._length, dict(found.constants)
    frame = [*found.across]
    if length:
        frame.insert(0, tuple(x / length for x in found.gradient))
    f, u = found.target, sp.symbols(f"u1:{len(frame) + 1}", real=True)
    inside = {
        x: sp.Add(*(_number(n[i].xreplace(values)) * c for n, c in zip(frame, u, strict=True)))
        for i, x in enumerate(f.variables)
    }
    expr = f.expr.xreplace(inside)
    return {
        "source": function_source({"teacher": Formula((u,), expr)}),
        "directions": len(frame),
    }


def _number(value: sp.Expr) -> sp.Expr:
    return value if value.is_Rational else value.evalf(20)
