r"""The symbolic side of an expansion: equations of every order, coefficients as formulas.

For many samples two identities shorten the error. The free energy f is stationary, and up to what
the labels bring homogeneous of degree one if overlaps count half and self-overlaps, with their
conjugates, once (Euler); its explicit dependence on α is linear in an average. So the regularised
training loss per sample, :math:`L = 2\beta f/\alpha`, obeys

.. math::
    L = \mathbb{E}_\kappa\frac{e - \sum_x w_x\,x\,\partial_x e}{1 + V}, \qquad
    \frac{\partial(\alpha L)}{\partial\alpha} = \mathbb{E}_\kappa\frac{e}{1 + V},

with the squared error e and the variance V at κ. The first gives the limit α → ∞ without
self-overlaps, since L, training error and noisy test error coincide there; the second gives
:math:`0 = \mathbb{E}[e_1] - \mathbb{E}[e_0v_0]` at order 1/α, and with it the correction of both
errors from leading quantities alone. Derived here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from ....symbolic.gaussian import GaussianExpectation
from ...expansions.expansion import LARGE_ALPHA, SymbolicSeries
from .. import physics as fe
from .order_equations import OrderEquations, coefficient
from .scaling import Balance, ScaledSystem, scaled_system, small_step_balance

if TYPE_CHECKING:
    from ..derive import SymbolicModel
    from ..model import SpikedRandomFeatures

_WEIGHTS = {
    **dict.fromkeys((fe.m, fe.theta, fe.psi), sp.Rational(1, 2)),
    **dict.fromkeys((fe.q1, fe.q2), sp.S.One),
}
# The equations of an order are twice as long as those of the one before.
_MOST_ORDERS = 6
_UNKNOWNS = {identifier: x for x, identifier in fe.IDENTIFIERS.items()}


def line_series(
    model: SpikedRandomFeatures,
    name: str,
    balance: Balance,
    exponents: Sequence[Fraction],
    outputs: Sequence[str],
) -> SymbolicSeries:
    """Return the symbolic side of an expansion of a model in α or λ; see :func:`series_of`."""
    return series_of(model.symbolic(), name, balance, exponents, outputs)


def series_of(
    symbolic: SymbolicModel,
    name: str,
    balance: Balance,
    exponents: Sequence[Fraction],
    outputs: Sequence[str],
) -> SymbolicSeries:
    """Return the symbolic side of an expansion in α or λ.

    Parameters
    ----------
    symbolic : SymbolicModel
    name : str
    balance : Balance
    exponents : sequence of Fraction
        Of the expansion, the last of them the last that is kept.
    outputs : sequence of str
    """
    # Exponent of the small quantity that one power of ε is.
    unit = Fraction(1, 2) if balance.threshold else Fraction(1)
    system = scaled_system(symbolic, balance)
    orders = OrderEquations(system, _last(system, exponents[-1] / unit))
    powers = [int(e / unit) for e in exponents]
    formulas = _formulas(orders, system, powers, outputs)
    quantity = fe.ridge ** sp.Rational(str(unit))
    if name == LARGE_ALPHA:
        quantity = 1 / fe.alpha
        shorter = _many_samples(orders, system)
        begin = powers.index(0)
        for output, values in shorter.items():
            whole = (*formulas[output][:begin], *values, *formulas[output][begin + len(values) :])
            formulas[output] = whole[: len(powers)]
    return _collected(orders, system, formulas, quantity, {})


def step_series(
    model: SpikedRandomFeatures, exponents: Sequence[Fraction], outputs: Sequence[str]
) -> SymbolicSeries:
    """Return the symbolic side of an expansion in the size of the step."""
    from ..mapping import step_size
    from .small_step import step_models, vanishing_mean
    from .step_symbols import step_symbols

    symbolic, mapping = step_models(model)
    mean_order = vanishing_mean(model, symbolic, mapping)
    system = scaled_system(symbolic, small_step_balance(mean_order))
    last = _last(system, exponents[-1])
    known, definitions = step_symbols(model, symbolic, mapping, mean_order, last)
    orders = OrderEquations(system, last, known)
    formulas = _formulas(orders, system, [int(e) for e in exponents], outputs)
    return _collected(orders, system, formulas, step_size, definitions)


def _last(system: ScaledSystem, kept: Fraction) -> int:
    """Return the order up to which the test error asks for the unknowns, within reason."""
    start, _ = system.outputs["test_error"]
    return min(int(kept) - start, _MOST_ORDERS)


def _formulas(
    orders: OrderEquations, system: ScaledSystem, powers: Sequence[int], outputs: Sequence[str]
) -> dict[str, tuple[sp.Expr, ...]]:
    found: dict[str, tuple[sp.Expr, ...]] = {}
    for name in outputs:
        if name in system.outputs:
            start, values = orders.output(name)
        elif (x := _UNKNOWNS[name]) in system.exponents:
            start = system.exponents[x]
            values = tuple(coefficient(x, k) for k in range(orders.last + 1))
        else:
            # Nothing depends on it in a special case.
            found[name] = tuple(sp.S.Zero for _ in powers)
            continue
        known = [j for j in powers if j - start <= orders.last]
        found[name] = tuple(values[j - start] if j >= start else sp.S.Zero for j in known)
    return found


def _collected(
    orders: OrderEquations,
    system: ScaledSystem,
    formulas: Mapping[str, tuple[sp.Expr, ...]],
    quantity: sp.Expr,
    definitions: Mapping[sp.Expr, sp.Expr],
) -> SymbolicSeries:
    count = orders.last + 1
    return SymbolicSeries(
        formulas=formulas,
        definitions={**orders.definitions, **definitions},
        equations=orders.equations,
        unknowns=tuple(
            tuple(coefficient(x, k) for x in orders.unknowns) for k in range(count)
        ),
        scalings={
            x: sp.Add(*(coefficient(x, k) * quantity ** (k + start) for k in range(count)))
            for x, start in system.exponents.items()
        },
    )  # fmt: skip


def _many_samples(orders: OrderEquations, system: ScaledSystem) -> dict[str, tuple[sp.Expr, ...]]:
    """Return both errors to order 1/α in terms of leading quantities."""
    (test,) = system.outputs["test_error"][1].atoms(GaussianExpectation)
    (training,) = system.outputs["training_error"][1].atoms(GaussianExpectation)
    error = test.integrand
    spread = (error / training.integrand).as_base_exp()[0]
    euler = sp.Add(*(w * x * error.diff(x) for x, w in _WEIGHTS.items()))
    limit = orders.expanded(fe.average(sp.expand(error - euler))).coefficient(0)
    growth = orders.expanded(fe.average(error / spread))
    found: dict[str, tuple[sp.Expr, ...]] = {}
    for name, noise in (("test_error", fe.noise), ("training_error", sp.S.Zero)):
        _, values = orders.output(name)
        found[name] = (limit - noise, *(v - growth.coefficient(1) for v in values[1:2]))
    return found
