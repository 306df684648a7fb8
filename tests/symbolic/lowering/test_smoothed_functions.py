"""Expectations of functions of A + B z, also where sums were multiplied out."""

import pytest
import sympy as sp

from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.expectation import GaussianExpectation
from giantstep.symbolic.lowering.smoothed_functions import is_smoothed, smoothed_functions

kappa, z, shift = sp.symbols("kappa z s", real=True)
width = sp.Symbol("c", positive=True)
AFFINE = kappa * shift + sp.sqrt(width) * z
EXPANDED = sp.expand(1 + AFFINE**2)


@pytest.mark.parametrize(
    "integrand",
    [
        z * sp.tanh(AFFINE) ** 2, 1 / EXPANDED, z**2 / sp.sqrt(EXPANDED) + 3 * kappa,
        1 / sp.expand(EXPANDED * sp.sqrt(EXPANDED)), sp.exp(-sp.expand(AFFINE**4)),
        sp.atan(1 + AFFINE) / sp.sqrt(EXPANDED),
    ],
    ids=str,
)  # fmt: skip
def test_terms_make_up_the_integrand(integrand):
    node = GaussianExpectation(integrand, z)
    assert is_smoothed(node, [kappa])
    (group,) = smoothed_functions([node], [kappa])
    assert not any(f.has(z, kappa) for f in group.functions)
    point = {kappa: sp.Rational(3, 7), z: sp.Rational(-2, 5), shift: sp.Rational(1, 3), width: 2}
    place = {group.argument: (group.offset + group.spread * z).subs(point)}
    values = [group.functions[k].subs(place).subs(point) * z**j for k, j in group.terms]
    total = group.values[node].subs(dict(zip(group.moments, values, strict=True)))
    assert abs((total - integrand).subs(point).evalf(30)) < 1e-25


@pytest.mark.parametrize("integrand", [1 / (z**2 + kappa**2), sp.tanh(kappa * z), sp.cos(kappa)])
def test_widths_that_move_with_the_node_are_none(integrand):
    assert not is_smoothed(GaussianExpectation(integrand + z, z), [kappa])


def test_kinks_are_those_of_the_functions_wherever_they_are_smoothed():
    kinked_integrand = z * sp.Abs(AFFINE) * relu(AFFINE + 1)
    nodes = [GaussianExpectation(f, z) for f in (kinked_integrand, sp.tanh(AFFINE))]
    kinked, smooth = smoothed_functions(nodes, [kappa])
    places = {sp.expand(AFFINE + k - kinked.offset - kinked.spread * z) for k in kinked.kinks}
    assert places == {-1, 0}
    assert smooth.kinks == () and smooth.functions == (sp.tanh(smooth.argument),)
