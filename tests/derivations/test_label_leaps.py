"""Leaps of labels that are drawn: those of E[y|u], with the noise that the law has."""

import json

import numpy as np
import pytest
import sympy as sp

import giantstep as gs
from giantstep.errors import AssumptionError, ParameterError


def test_flips_shrink_the_labels_and_add_noise():
    found = gs.label_leaps("sign(x1*x2)", flips=0.1)
    x1, x2 = found.regression.variables
    assert found.regression.expr == sp.Rational(4, 5) * sp.sign(x1) * sp.sign(x2)
    assert found.noise_variance == 1 - sp.Rational(16, 25)
    assert found.leaps.leap_index == 2
    assert found.recovery.kind == "easy"


def test_gradients_see_less_than_transforms_of_labels():
    # E[y|u] = u³ - 3u has order 3, but the label itself shows u at first order.
    found = gs.label_leaps("He(3, x1)", noise_variance=1.0)
    assert found.leaps.leap_index == 3
    assert found.recovery.kind == "trivial"


@pytest.mark.parametrize("labels", ["probit", "sign", "logistic"])
def test_noise_and_mean_against_drawn_labels(labels):
    options = {"flips": 0.2} if labels == "sign" else {}
    options |= {"noise_variance": 0.7} if labels == "probit" else {}
    found = gs.label_leaps("x1", labels=labels, **options)
    source = np.random.default_rng(3)
    u = source.standard_normal(400_000)
    if labels == "probit":
        y = np.sign(u + np.sqrt(0.7) * source.standard_normal(u.size))
    elif labels == "sign":
        y = np.sign(u) * np.where(source.random(u.size) < 0.2, -1, 1)
    else:
        y = np.where(source.random(u.size) < 1 / (1 + np.exp(-u)), 1, -1)
    first = float(found.regression.he_coefficients(1)[(1,)].evalf())
    assert abs(np.mean(y * u) - first) < 4 / np.sqrt(u.size)
    whole = float((found.regression.norm_squared + found.noise_variance).evalf())
    assert abs(whole - 1) < 1e-12


def test_one_step_takes_the_noise_of_the_labels():
    found = gs.label_leaps("x1", labels="sign", flips=0.25)
    step = found.giant_step("relu")
    assert step.noise_variance == sp.Rational(3, 4)
    assert step.order == 1
    clean = gs.label_leaps("x1", labels="sign").giant_step("relu")
    ratio = step.ridge_constants[0] / clean.ridge_constants[0]
    assert sp.simplify(ratio - sp.Rational(1, 2)) == 0


@pytest.mark.parametrize(
    ("target", "given", "words"),
    [
        ("x1", {"labels": "counts"}, "labels must be one of"),
        ("sign(x1)", {"flips": 0.5}, "flips must be below 1/2"),
        ("x1", {"flips": 0.1}, "flips exchange two labels"),
        ("1 + 0*x1 + x1**2 - x1**2", {}, "constant"),
        ("x1", {"labels": "sign", "flips": sp.Symbol("a", real=True)}, "not known to be nonnegat"),
    ],
)
def test_bad_input(target, given, words):
    with pytest.raises((ParameterError, AssumptionError), match=words):
        gs.label_leaps(target, **given)


def test_generative_exponents_of_noisy_labels_are_numbers():
    assert int(gs.label_leaps("z**2*exp(-z**2)", noise_variance=0.3).generative) == 4
    parity = gs.label_leaps("sign(x1*x2*x3)", flips=0.1)
    assert (int(parity.generative), parity.generative.standing) == (3, "exact")
    assert int(gs.label_leaps("He(3, x1)", noise_variance=1.0).generative) == 1
    # Two thresholds: labels show z² where their mean shows nothing of first order.
    assert int(gs.label_leaps("sign(x1 - 1)*sign(x1 + 1)", flips=0.2).generative) == 2
    found = gs.label_leaps("sign(x1 - 1) + sign(x1 + 1)")
    assert int(found.generative) == 1


def test_rates_and_noise_as_symbols():
    w, noise = sp.symbols("w Delta", positive=True)
    tree = gs.label_leaps("sign(x1*x2*x3)", flips=w)
    assert [str(leaf.case) for leaf in tree.leaves] == ["2*w != 1", "2*w = 1"]
    assert "is constant" in tree.leaves[1].reason
    at = tree.at({"w": sp.Rational(1, 10)})
    numbers = gs.label_leaps("sign(x1*x2*x3)", flips=0.1)
    assert sp.simplify(at.regression.expr - numbers.regression.expr) == 0
    assert (at.noise_variance, int(at.generative)) == (numbers.noise_variance, 3)
    probit = gs.label_leaps("x1", labels="probit", noise_variance=noise, flips=w).generic
    rule = {noise: sp.Rational(7, 10), w: sp.Rational(1, 5)}
    numbers = gs.label_leaps("x1", labels="probit", noise_variance=0.7, flips=0.2)
    difference = probit.noise_variance.xreplace(rule) - numbers.noise_variance
    assert abs(sp.N(difference)) < 1e-12
    step = probit.giant_step("relu").ridge_constants[0].xreplace(rule)
    assert abs(sp.N(step - numbers.giant_step("relu").ridge_constants[0])) < 1e-12


def test_thresholds_and_functions_with_parameters():
    x1, a = sp.Symbol("x1", real=True), sp.Symbol("a", positive=True)
    wide = gs.label_leaps(sp.sign(x1 - a) * sp.sign(x1 + a))
    assert [int(leaf.value.generative) for leaf in wide.leaves] == [2]
    quantised = gs.label_leaps(sp.sign(x1 - a) + sp.sign(x1 + a)).generic
    one = gs.label_leaps("sign(x1 - 1) + sign(x1 + 1)")
    assert sp.N(quantised.noise_variance.xreplace({a: sp.S.One}) - one.noise_variance) == 0
    logistic = gs.label_leaps("a*x1", labels="logistic", parameters="a")
    assert [str(leaf.case) for leaf in logistic.leaves] == ["a != 0", "a = 0"]
    tree = gs.label_leaps("a*x1 + x1*x2", noise_variance=0.5, parameters="a")
    assert [int(leaf.value.generative) for leaf in tree.leaves] == [1, 2]
    assert json.loads(tree.to_json())["cases"][1]["equations"] == ["a"]
