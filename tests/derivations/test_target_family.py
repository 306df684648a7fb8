"""Random targets: what they are, that they read back, and that no two are the same."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from giantstep.derivations.conjectures.random_targets import (
    COEFFICIENTS,
    TargetFamily,
    canonical_form,
    target_text,
)
from giantstep.errors import ParameterError
from giantstep.symbolic.targets.target import target

FAMILIES = (
    TargetFamily(),
    TargetFamily(dimension=2, degree=3, terms=3, seed=5),
    TargetFamily(dimension=5, degree=6, terms=6, seed=7),
    TargetFamily(dimension=3, degree=1, terms=3, seed=2),
)


def he_terms(f):
    return {
        alpha: Fraction(int(c.p), int(c.q)) for alpha, c in f.expansion.he_coefficients().items()
    }


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_targets_keep_to_the_bounds_of_their_family(family):
    for f in family.draw(25 if family.degree > 1 else 4):
        terms = he_terms(f)
        assert 2 <= f.dimension <= family.dimension
        assert f.degree <= family.degree and 1 <= len(terms) <= family.terms
        assert f.mean == 0
        assert all(any(alpha[i] for alpha in terms) for i in range(f.dimension))
        assert target(str(f)) == f


def test_the_seed_fixes_the_targets_and_more_of_them_extend_the_list():
    few, many = TargetFamily(seed=3).draw(10), TargetFamily(seed=3).draw(30)
    assert few == many[:10]
    assert TargetFamily(seed=4).draw(10) != few


def test_no_two_targets_are_the_same_up_to_axes_signs_and_factors():
    forms = [canonical_form(he_terms(f)) for f in TargetFamily(seed=11).draw(120)]
    assert len(set(forms)) == len(forms)


indices = st.tuples(*[st.integers(0, 3)] * 3).filter(any)
sparse = st.dictionaries(indices, st.sampled_from(COEFFICIENTS), min_size=1, max_size=4)


@given(sparse, st.permutations(range(3)), st.tuples(*[st.sampled_from([1, -1])] * 3))
def test_canonical_forms_forget_axes_signs_and_factors(terms, order, signs):
    moved = {}
    for alpha, c in terms.items():
        sign = 1
        for s, n in zip(signs, alpha, strict=True):
            sign *= s**n
        moved[tuple(alpha[i] for i in order)] = Fraction(-5, 7) * sign * c
    assert canonical_form(moved) == canonical_form(terms)


@given(sparse, sparse)
def test_canonical_forms_tell_different_targets_apart(first, second):
    # By brute force: is there a map of axes and signs, and a factor, that takes one to the other?
    def related():
        for order in itertools.permutations(range(3)):
            for signs in itertools.product((1, -1), repeat=3):
                image = {}
                for alpha, c in first.items():
                    for s, n in zip(signs, alpha, strict=True):
                        c *= s**n
                    image[tuple(alpha[i] for i in order)] = c
                if image.keys() == second.keys():
                    ratios = {second[alpha] / image[alpha] for alpha in image}
                    if len(ratios) == 1:
                        return True
        return False

    assert (canonical_form(first) == canonical_form(second)) == related()


@given(sparse)
def test_texts_read_back(terms):
    used = max(i for alpha in terms for i, n in enumerate(alpha) if n)
    found = he_terms(target(target_text(terms)))
    assert found == {alpha[: used + 1]: c for alpha, c in terms.items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension must be >= 1, got 0"),
        ({"dimension": 6}, "dimension must be at most 5, got 6"),
        ({"degree": 9}, "degree must be at most 8"),
        ({"terms": 0}, "terms must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"dimension": True}, "dimension must be a whole number"),
    ],
)
def test_bad_bounds_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        TargetFamily(**arguments)
    with pytest.raises(ParameterError, match="holds only 2 different targets, not 5"):
        TargetFamily(dimension=1, degree=2, terms=1).draw(5)
    with pytest.raises(ParameterError, match="count must be"):
        TargetFamily().draw(-1)
