import pytest
import sympy as sp

from giantstep.errors import UndecidedError, UnsupportedExpressionError
from giantstep.symbolic.exact.ball_functions import BallEvaluator
from giantstep.symbolic.expressions.functions import relu
from giantstep.symbolic.gaussian.enclosures import Branch, analytic_branches

flint = pytest.importorskip("flint")

z = sp.Symbol("z", real=True)
R = sp.Rational


def branches(f, **options):
    return analytic_branches(f, z, BallEvaluator(), **options)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (sp.tanh(z), [(sp.tanh(z), None, None)]),
        (relu(z), [(0, None, 0), (z, 0, None)]),
        (sp.Abs(z - 1), [(1 - z, None, 1), (z - 1, 1, None)]),
        (relu(z) - relu(-z), [(z, None, None)]),
        (sp.sign(1 / z), [(-1, None, 0), (1, 0, None)]),
        (relu(1 - sp.Abs(z)), [(0, None, -1), (z + 1, -1, 0), (1 - z, 0, 1), (0, 1, None)]),
        (sp.Max(z, 1), [(1, None, 1), (z, 1, None)]),
        (sp.Heaviside(z**2 - 2, R(1, 2)), [(1, None, -sp.sqrt(2)), (0, -sp.sqrt(2), sp.sqrt(2)),
                                           (1, sp.sqrt(2), None)]),
    ],
)  # fmt: skip
def test_branches_and_their_ends(f, expected):
    assert [(sp.expand(b.expr), b.left, b.right) for b in branches(f)] == expected


def test_zero_is_an_end_once_if_asked_for():
    assert branches(sp.cos(z), cut_at_zero=True) == [
        Branch(sp.cos(z), None, sp.S.Zero), Branch(sp.cos(z), sp.S.Zero, None)
    ]  # fmt: skip
    assert [b.left for b in branches(sp.Abs(z), cut_at_zero=True)] == [None, 0]


def test_branches_are_equal_to_the_function_between_their_ends():
    f = relu(z**3 - z - R(1, 9)) * sp.sign(relu(z + 1) - R(1, 2)) + sp.Abs(sp.Abs(z) - 2)
    found = branches(f)
    assert [b.right for b in found[:-1]] == [b.left for b in found[1:]]
    for point in (R(k, 7) + R(1, 100) for k in range(-25, 26)):
        inside = [b for b in found if (b.left is None or b.left < point)
                  and (b.right is None or point < b.right)]  # fmt: skip
        assert len(inside) == 1
        assert sp.expand(f.subs(z, point) - inside[0].expr.subs(z, point)) == 0


def test_equal_kinks_are_one_and_undecidable_ones_are_refused():
    twice = sp.Abs(z - sp.sqrt(2) - sp.sqrt(3)) + sp.Abs(z - sp.sqrt(5 + 2 * sp.sqrt(6)))
    assert len(branches(twice)) == 2
    with flint.ctx.workprec(20):
        close = sp.Abs(z - sp.pi) + sp.Abs(z - sp.pi - R(1, 10**30))
        with pytest.raises(UndecidedError, match="kinks at"):
            branches(close)


def test_unknown_kinks_are_refused():
    with pytest.raises(UnsupportedExpressionError, match="are not known"):
        branches(sp.Abs(sp.cos(z)))
