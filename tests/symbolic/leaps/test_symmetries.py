"""Symmetries of targets: found where they were put in, proven where they are found."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings, strategies as st
from scipy.special import erf, expit

from giantstep.symbolic.leaps.leap_index import isotropic_leap
from giantstep.symbolic.leaps.symmetries import find_symmetry, reflection_in
from giantstep.symbolic.targets.spans import spans_of
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target

from .test_isotropic_leap import rotated, rotations
from .test_leap_index import X, needs_flint, polynomials


def symmetry_of(f):
    f = target(f)
    return find_symmetry(f, spans_of(f).relevant_subspace)


def assert_is_symmetry(f, found):
    """By substitution of expressions, and against what makes it non-trivial."""
    relevant = spans_of(f).relevant_subspace
    assert not relevant <= found.fixed
    matrix = sp.Matrix(found.matrix)
    x = sp.Matrix(f.variables)
    if found.kind == "rotations":
        assert matrix == -matrix.T
        gradient = sp.Matrix([f.expr.diff(v) for v in f.variables])
        assert sp.expand((gradient.T * matrix * x)[0]) == 0
        assert found.fixed == Subspace.spanned_by(matrix.tolist()).orthogonal_complement()
        return
    assert matrix * matrix.T == sp.eye(len(x))
    image = f.expr.xreplace(dict(zip(f.variables, list(matrix * x), strict=True)))
    assert sp.expand(image - f.expr) == 0
    moved = (matrix - sp.eye(len(x))).tolist()
    assert found.fixed == Subspace.spanned_by(moved).orthogonal_complement()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x1*x2", "sign change"),
        ("He(2, x1) + x1*x2", "sign change"),
        ("x1*x2*x3", "sign change"),
        ("x1 + He(2, x1) + x2 + He(2, x2)", "signed permutation"),
        ("x1 - x2 + x1*x2 + He(3, x1) - He(3, x2)", "signed permutation"),
        ("x1*x2**2 + x2*x3**2 + x3*x1**2", "signed permutation"),
        ("x1*x2**2 - x2*x3**2 + x3*x1**2", "signed permutation"),
        ("3*x1 + 4*x2 + (3*x1 + 4*x2)**2 + (4*x1 - 3*x2)**2", "reflection"),
        ("x1 + 2*x2 + 3*x3 + He(2, x1) + He(2, x2) + He(2, x3)", "reflection"),
        # Without a rational reflection: lengths in the plane orthogonal to (1, sqrt(2), 0).
        ("x1 + sqrt(2)*x2 + x1**2 + x2**2 + x3**2 + x3 + sqrt(3)*x1", "rotations"),
    ],
)
def test_symmetries_of_all_kinds(text, kind):
    found = symmetry_of(text)
    assert found.kind == kind
    assert_is_symmetry(target(text), found)
    assert isotropic_leap(text) >= 2


@pytest.mark.parametrize(
    "text",
    [
        "He(3, x1) + x1*x2", "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)",
        # Swapping x2 and x3 moves nothing in V* = ⟨e1, (0, 1, 1)⟩.
        "x1 + x1*x2 + x1*x3", "(x1 + x2)**3 + x1 + x2", "He(3, x1)",
    ],
)  # fmt: skip
def test_no_symmetry_where_there_is_none(text):
    assert symmetry_of(text) is None


@settings(max_examples=15)
@given(polynomials())
def test_whatever_is_found_is_a_symmetry(expr):
    f = target(expr, X)
    found = find_symmetry(f, spans_of(f).relevant_subspace)
    if found is not None:
        assert_is_symmetry(f, found)
        # The lemma itself: the first-order signal at the fixed vectors vanishes.
        assert isotropic_leap(f) >= 2


@settings(max_examples=10)
@given(polynomials(), st.permutations([0, 1, 2]), st.tuples(*[st.sampled_from([1, -1])] * 3))
def test_signed_permutations_that_are_put_in_are_found(expr, order, signs):
    rule = {x: s * X[i] for x, i, s in zip(X, order, signs, strict=True)}
    orbit, total = expr, sp.S.Zero
    for _ in range(12):  # Orders of signed permutations of three divide 12.
        total += orbit
        orbit = orbit.xreplace(rule)
    total = sp.expand(total)
    if not total.has(*X):
        return
    f = target(total, X)
    relevant = spans_of(f).relevant_subspace
    matrix = sp.Matrix(3, 3, lambda i, j: signs[i] if order[i] == j else 0)
    fixed = Subspace.spanned_by((matrix - sp.eye(3)).tolist()).orthogonal_complement()
    found = find_symmetry(f, relevant)
    if not relevant <= fixed:
        assert found is not None
        assert_is_symmetry(f, found)


@settings(max_examples=10)
@given(rotations())
def test_reflections_are_found_in_any_frame(rotation):
    f = rotated(target("x1 + He(2, x1) + x2 + He(2, x2) + 2*x3 + x3**2*(x1 + x2)", X), rotation)
    found = find_symmetry(f, Subspace.whole(3))
    assert found is not None
    assert_is_symmetry(f, found)


def test_reflection_in_a_given_subspace():
    f = target("x1 + x2 + x1*x2")
    line = Subspace.spanned_by([[1, -1]])
    assert_is_symmetry(f, reflection_in(f, line))
    assert reflection_in(f, Subspace.spanned_by([[1, 1]])) is None
    assert reflection_in(f, Subspace.zero(2)) is None
    irrational = target("sqrt(2)*(x1 + sqrt(3)*x2) + (x1*sqrt(3) - x2)**2")
    assert reflection_in(irrational, Subspace.spanned_by([[sp.sqrt(3), -1]])) is not None


NUMERIC = [{"erf": erf, "sigmoid": expit, "relu": lambda x: np.maximum(x, 0),
            "softplus": lambda x: np.logaddexp(0, x)}, "numpy"]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "relu(x1) + abs(x2)", "sign(x1*x2*x3)", "relu(x1)*relu(x2)", "max(x1, x2)",
        "gelu(x1) - x1/2", "erf(x1) + erf(x2) + erf(x3)", "sign(x1 - x2)*tanh(x1 + x2)",
        pytest.param("swish(x1) + swish(-x1) + x2", marks=needs_flint),
        "softplus(x1) - x1/2 + tanh(x2)", "exp(x1)*x2 + exp(x2)*x3 + exp(x3)*x1",
        pytest.param("tanh(x1)*x2 - tanh(x2)*x1", marks=needs_flint),
    ],
)  # fmt: skip
def test_functions_that_are_no_polynomials(text):
    f = target(text)
    found = symmetry_of(text)
    assert found is not None
    value = sp.lambdify(f.variables, f.expr, NUMERIC)
    points = np.random.default_rng(3).standard_normal((f.dimension, 50))
    image = np.array(found.matrix, dtype=float) @ points
    np.testing.assert_allclose(value(*image), value(*points), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "text", ["sign(x1) + abs(x1)*x2", "erf(x1 + x2)", "erf(x1)", "relu(x1) + 2*relu(x2)"]
)
def test_no_symmetry_of_functions_without(text):
    # erf(x1 + x2) is invariant under the swap, which moves nothing in V*.
    assert symmetry_of(text) is None
