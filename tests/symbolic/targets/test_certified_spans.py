"""Spans of targets that are no polynomials: worked cases, polynomials by both ways, quadrature."""

import random
import time

import mpmath
import numpy as np
import pytest
import sympy as sp
from scipy.special import erf

from giantstep.errors import MissingDependencyError, ParameterError, UndecidedError
from giantstep.symbolic.expressions.functions import relu, softplus
from giantstep.symbolic.targets.activation_mask import activation_mask
from giantstep.symbolic.targets.conditional_spans import PolynomialSpans
from giantstep.symbolic.targets.formal_fields import excludes_zero, sign_of
from giantstep.symbolic.targets.spans import ClosedSymbolSpans, spans_of
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target


def staircase(spans, order=1):
    """U_1, U_2, … until nothing is added; every span has to be decided."""
    found, U = [], Subspace.zero(spans.dimension)
    while True:
        span = spans.grow(U, order)
        assert span.decided, span
        if span.subspace == U:
            return found
        found.append(span.subspace)
        U = span.subspace


def test_rows_name_the_monomial_and_the_hermite_terms():
    spans = ClosedSymbolSpans(target("x1 + sin(x1)*x2 + cos(x1)*x3"))
    (row,) = spans.grow(Subspace.zero(3), 1).rows
    assert (row.vector, row.order, row.inside, row.outside) == (
        (1, 0, sp.exp(-sp.S.Half)),
        1,
        (),
        (0, 0, 0),
    )
    assert row.sources == ((1, 0, 0), (0, 0, 1))
    U = Subspace.spanned_by([[1, 0, sp.exp(-sp.S.Half)]])
    second = spans.grow(U, 1)
    assert second.subspace.is_whole and second.basis == "exact"
    assert [row.inside for row in second.rows] == [(1,), (2,)]
    assert second.rows[0].sources == ((1, 1, 0),)


def test_a_cancellation_that_only_the_closed_forms_show():
    # On s(1, 1) both derivatives are s erf(s/√2) + 2φ(s).
    spans = ClosedSymbolSpans(target("sign(x1) + abs(x1)*x2"))
    U = Subspace.spanned_by([[1, 1]])
    span = spans.grow(U, 1)
    assert (span.subspace, span.lowest_order, span.decided) == (U, None, True)
    assert spans.grow(U, 3, strict=True).lowest_order == spans.conditional_order(U) == 2
    # The same with x2 reflected, and one coefficient a little off.
    mirrored = ClosedSymbolSpans(target("sign(x1) - abs(x1)*x2"))
    assert staircase(mirrored) == [Subspace.spanned_by([[1, -1]])]
    other = ClosedSymbolSpans(target("sign(x1) + 1001*abs(x1)*x2/1000"))
    assert staircase(other)[-1].is_whole


def test_open_moments_are_certified_by_balls():
    pytest.importorskip("flint")
    spans = ClosedSymbolSpans(target("tanh(x1)*(1 + x2) + softplus(x1)*x3"))
    first = spans.grow(Subspace.zero(3), 1)
    assert first.basis == "certified"
    ((one, zero, slope),) = first.subspace.basis
    # E softplus / E tanh' to 16 digits, by quadrature.
    assert (one, zero) == (1, 0)
    assert float(slope) == pytest.approx(0.8060591833474398 / 0.6057055096021588, rel=1e-14)
    second = spans.grow(first.subspace, 1)
    assert second.subspace.is_whole and second.decided and second.basis == "certified"


def test_without_flint_nothing_is_guessed(monkeypatch):
    def refuse(*arguments, **options):
        raise MissingDependencyError("balls need python-flint")

    monkeypatch.setattr("giantstep.symbolic.gaussian.enclosures.require_flint", refuse)
    from giantstep.symbolic.targets.formal_fields import enclosed_number

    enclosed_number.cache_clear()
    try:
        spans = ClosedSymbolSpans(target("tanh(x1)*(1 + x2) + softplus(x1)*x3"))
        # Moments with a positive integrand need no balls: C_1, and the upper bound V*.
        first = spans.grow(Subspace.zero(3), 1)
        assert first.decided and first.subspace.dimension == 1
        assert spans.relevant_subspace.is_whole
        second = spans.grow(first.subspace, 1)
        assert not second.decided
        assert second.basis.startswith("undetermined beyond order")
        assert "giantstep[flint]" in second.basis
    finally:
        enclosed_number.cache_clear()


def test_pi_with_e_is_certified():
    # U_1 is ⟨(√(2/π), e^{-1/2})⟩, and whether π and e are algebraically independent is open.
    spans = ClosedSymbolSpans(target("sign(x1) + sin(x2)"))
    first = spans.grow(Subspace.zero(2), 1)
    assert first.subspace.dimension == 1
    second = spans.grow(first.subspace, 1)
    assert second.subspace.is_whole and second.basis == "certified"
    # A factor that vanishes up to 300 digits.
    number = sp.pi + sp.E
    x1, x2 = sp.symbols("x1 x2", real=True)
    spans = ClosedSymbolSpans(
        target(sp.sign(x1) + (number - sp.Rational(str(number.evalf(300)))) * x2)
    )
    assert spans.grow(Subspace.spanned_by([[1, 0]]), 1).basis == "certified"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("relu((x1 + x2)/sqrt(2)) + relu((x1 - x2)/sqrt(2))", [[[1, 0]]]),
        ("erf(x1 + x2) + erf(x1 - x2) + x1*x2", [[[1, 0]], "R2"]),
        ("tanh(x1 + x2)*tanh(x1 - x2)", []),
        ("tanh(x1) + tanh(x2)", [[[1, 1]]]),
        ("swish(x1) + swish(x2) + x1*x2", [[[1, 1]]]),
        ("softplus(x1) - softplus(-x1) + x2*(sin(x3)**2 + cos(x3)**2)", [[[1, 1, 0]]]),
    ],
)
def test_stops_by_symmetry_and_by_relations(text, expected):
    spans = ClosedSymbolSpans(target(text))
    wanted = [Subspace.whole(2) if U == "R2" else Subspace.spanned_by(U) for U in expected]
    assert staircase(spans) == wanted


POLYNOMIALS = [
    "x1 + He(2, x1)*x2 + He(3, x1)*x3",
    "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)",
    "(x1 + x2)/sqrt(2) + He(2, x1 + x2)*(x1 - x2) + He(3, x1 - x2)*x3",
]


@pytest.mark.parametrize("text", POLYNOMIALS)
@pytest.mark.parametrize("student", [None, "relu", "tanh", "He3", "z**2 + z"])
def test_polynomials_give_the_same_rows_by_both_ways(text, student):
    f = target(text)
    mask = activation_mask(student)
    for step in (1, 2):
        plain, closed = spans_of(f, mask, step=step), ClosedSymbolSpans(f, mask, step)
        assert isinstance(plain, PolynomialSpans)
        assert plain.relevant_subspace == closed.relevant_subspace
        for order, strict in ((1, False), (2, False), (3, True)):
            U = Subspace.zero(f.dimension)
            for _ in range(3):
                expected, found = (s.grow(U, order, strict=strict) for s in (plain, closed))
                assert found.decided and found.basis == "exact"
                assert found.subspace == expected.subspace
                assert found.lowest_order == expected.lowest_order
                assert [row.sources for row in found.rows] == [r.sources for r in expected.rows]
                U = found.subspace


def test_masks_restrict_to_a_parity_and_single_degrees():
    # Degrees of sin(x1) x2 are even, those of cos(x1) x3 odd.
    f = target("x1 + sin(x1)*x2 + cos(x1)*x3")
    relu_mask, odd = activation_mask("relu"), activation_mask("tanh")
    axis = [1, 0, sp.exp(-sp.S.Half)]
    for mask, new in ((relu_mask, [0, 1, 0]), (odd, None)):
        first = ClosedSymbolSpans(f, mask, 1).grow(Subspace.zero(3), 1)
        assert first.subspace == Subspace.spanned_by([axis])
        second = ClosedSymbolSpans(f, mask, 2).grow(first.subspace, 1)
        assert second.decided
        if new is not None:
            assert second.subspace == Subspace.spanned_by([axis, new])
        else:
            assert second.subspace == Subspace.spanned_by([[1, 0, 0], [0, 0, 1]])
    even = ClosedSymbolSpans(f, activation_mask("cos"), 2).grow(Subspace.spanned_by([[1, 0, 0]]), 1)
    assert even.decided
    assert even.subspace == Subspace.spanned_by([[1, 0, 0], [0, 1, 0]])


def test_what_cannot_be_certified_is_undetermined():
    # The factor of x2 is zero, which no rule sees, and no interval shows to be anything else.
    spans = ClosedSymbolSpans(target("x1 + x2*(tanh(x1) - 1 + 2/(exp(2*x1) + 1))"))
    first = spans.grow(Subspace.whole(2), 1)
    assert first.decided
    start = time.process_time()
    second = spans.grow(Subspace.spanned_by([[1, 0]]), 1)
    assert not second.decided and second.checked_order >= 7
    assert second.basis.startswith(f"undetermined beyond order {second.checked_order}")
    with pytest.raises(UndecidedError, match="lowest order"):
        spans.conditional_order(Subspace.spanned_by([[1, 0]]))
    # Against hanging: measured 4 s with balls.
    assert time.process_time() - start < 60


def test_bad_arguments():
    spans = ClosedSymbolSpans(target("erf(x1)*x2"))
    with pytest.raises(ParameterError, match="order must be from 1 to 64"):
        spans.grow(Subspace.zero(2), 0)
    with pytest.raises(ParameterError, match="order must be a whole number"):
        spans.grow(Subspace.zero(2), 1.0)
    with pytest.raises(ParameterError, match=r"subspace must be of R\^2"):
        spans.grow(Subspace.zero(3), 1)


u = sp.Symbol("u", real=True)
FUNCTIONS = [
    (relu(u), lambda x: np.maximum(x, 0)),
    (sp.Abs(u), np.abs),
    (sp.sign(u), np.sign),
    (sp.erf(u), erf),
    (sp.sin(u), np.sin),
    (sp.cos(u), np.cos),
    (sp.tanh(u), np.tanh),
    (softplus(u), lambda x: np.logaddexp(0, x)),
    (u**2 - 1, lambda x: x**2 - 1),
    (sp.exp(-(u**2) / 2), lambda x: np.exp(-(x**2) / 2)),
]
FRAMES = [sp.eye(2), sp.Matrix([[1, 1], [1, -1]]) / sp.sqrt(2), sp.Matrix([[3, 4], [4, -3]]) / 5]
legendre, legendre_weights = np.polynomial.legendre.leggauss(40)
# Panels of length 1 with a border at the kink.
points = np.concatenate([left + (legendre + 1) / 2 for left in range(-12, 12)])
point_weights = np.tile(legendre_weights / 2, 24)


def derivative_of_symbol(function, t, order):
    """E[g(z + t) He_m(z)] for m = 0, 1, the kink in the border of a panel."""
    shift = points[None, :] - t[:, None]
    density = np.exp(-(shift**2) / 2) / np.sqrt(2 * np.pi)
    values = point_weights * function(points) * density
    return (values * (shift if order else 1)).sum(axis=1)


def random_target(generator):
    x = sp.symbols("x1:3", real=True)
    pool = generator.sample(FUNCTIONS, 2)
    expr, terms = sp.S.Zero, []
    for _ in range(generator.choice([1, 2, 3])):
        frame, c = generator.choice(FRAMES), generator.choice([1, -1, 2])
        axes = generator.sample([0, 1], generator.choice([1, 2]))
        ridges = [(frame.row(i), generator.choice(pool)) for i in axes]
        factors = (
            g.xreplace({u: sp.Add(*(a * b for a, b in zip(d, x, strict=True)))})
            for d, (g, _) in ridges
        )
        expr += c * sp.Mul(*factors)
        terms.append((c, [(np.array(d, dtype=float).ravel(), g) for d, (_, g) in ridges]))
    return expr, x, terms


def gradients(terms, xi):
    total = np.zeros_like(xi)
    for c, ridges in terms:
        values = [[derivative_of_symbol(g, xi @ d, m) for m in (0, 1)] for d, g in ridges]
        for i, (direction, _) in enumerate(ridges):
            product = float(c) * np.ones(len(xi))
            for j in range(len(ridges)):
                product = product * values[j][int(i == j)]
            total += product[:, None] * direction
    return total


@pytest.mark.parametrize("seed", range(12))
def test_decided_ranks_are_those_of_gradients_by_quadrature(seed):
    generator = random.Random(seed)
    expr, x, terms = random_target(generator)
    if expr.is_polynomial(*x):
        pytest.skip("a polynomial")
    pytest.importorskip("flint")
    spans = ClosedSymbolSpans(target(expr, x))
    U = Subspace.zero(2)
    for _ in range(2):
        span = spans.grow(U, 1)
        assert span.decided
        basis = np.array(U.numeric()).reshape(-1, 2)
        s = np.random.default_rng(seed).normal(size=(20, max(len(basis), 1)))
        xi = s @ basis if len(basis) else np.zeros((1, 2))
        found = gradients(terms, xi)
        # Quadrature leaves 1e-13; ranks here have singular values beyond 1e-4.
        rank = np.linalg.matrix_rank(np.vstack([basis, found]), tol=1e-9)
        assert rank == span.subspace.dimension
        inside = np.vstack([np.array(span.subspace.numeric()).reshape(-1, 2), found])
        assert np.linalg.matrix_rank(inside, tol=1e-9) == rank
        U = span.subspace


def test_values_of_erfi_have_intervals():
    # E |z| sin z = sqrt(2/pi)..., by erfi: U_1 = <(1, c)>, and all of R^2 by its first derivative.
    spans = ClosedSymbolSpans(target("sin(x1)*sign(x1)*x2 + x1"))
    first = spans.grow(Subspace.zero(2), 1)
    assert first.decided and first.subspace.dimension == 1
    assert spans.grow(first.subspace, 1).decided


@pytest.mark.parametrize(
    ("ends", "sign"), [((1, 2), 1), ((-2, -1), -1), ((0, 1), 0), ((-1, 0), 0), ((-1, 1), 0)]
)
def test_an_interval_that_holds_zero_has_no_sign(ends, sign):
    interval = mpmath.iv.mpf(ends)
    assert sign_of(interval) == sign and excludes_zero(interval) == bool(sign)
