r"""The limit of many samples, α → ∞ at fixed ridge penalty, derived from the free energy.

With :math:`\varepsilon = \beta/\alpha` the conjugates grow like 1/ε and the responses V shrink like
ε. In the scaled variables ε times the free energy of :mod:`.free_energy` has the limit

.. math::
    f_0 = \tfrac12\langle\mathrm{err}\rangle - \tfrac12(q_1\hat V_1 + q_2\hat V_2)
    + \vartheta\hat\vartheta + \psi\hat\psi - \tfrac\beta2\big(c\,\hat\vartheta^2\,
    \mathbb{E}[1/S] + \hat\psi^2\,\mathbb{E}[D/S]\big), \qquad S = \hat V_2 + \hat V_1 D,

from which λ has gone. It is stationary where the readout minimises the error itself, under the
penalty :math:`\vartheta^2/(\beta c V_2) + \psi^2/(\beta V_1)`: overlaps with p directions of the
bulk come at a price even with infinitely many samples. Derived here; for β → ∞ the price vanishes
and the error is the lower bound L of :mod:`.bound_system`.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from ....symbolic.activations import Activation
from ....symbolic.equations import FreeEnergy
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.random_matrix import MarchenkoPasturAverage
from ....symbolic.saddle_point import SaddlePointSystem
from .. import free_energy as fe
from ..derive import _determined

# Without λ the resolvent needs a positive one: features that are not linear in the input.
V2_HAT = sp.Symbol("Vhat_2", positive=True)


def limit_free_energy(
    student: Activation,
    teacher: Activation,
    *,
    unspiked: bool = False,
    aligned: bool = False,
    correlated_norms: bool = False,
) -> FreeEnergy:
    r"""Return :math:`f_0 = \lim_{\varepsilon \to 0} \varepsilon f` in the scaled variables.

    The variables keep their names: V and the conjugates are those of the model divided or
    multiplied by ε = β/α. V and \hat q do not occur in the limit.
    """
    found = fe.spiked_free_energy(
        student, teacher, unspiked=unspiked, aligned=aligned, correlated_norms=correlated_norms
    ).free_energy
    epsilon = sp.Symbol("epsilon", positive=True)
    positive = {fe.V2_hat: V2_HAT}
    scaled = {x: x / epsilon for x in found.conjugates} | {
        fe.V1: fe.V1 * epsilon,
        fe.V2: fe.V2 * epsilon,
        fe.alpha: fe.beta / epsilon,
    }

    marks: dict[sp.Expr, sp.Expr] = {}
    limits: dict[sp.Expr, sp.Expr] = {}
    for node in found.expression.atoms(GaussianExpectation, MarchenkoPasturAverage):
        inside, *bound = node.args
        inside, mark = inside.xreplace(scaled).xreplace(positive), sp.Dummy()
        if isinstance(node, MarchenkoPasturAverage):
            # 1/S is ε over something that has a limit.
            inside = sp.cancel(inside / epsilon)
            marks[node] = epsilon * mark
        else:
            marks[node] = mark
        limits[mark] = node.func(inside.subs(epsilon, 0), *bound)
    whole = (epsilon * found.expression.xreplace(marks).xreplace(scaled)).expand()
    expression = whole.subs(epsilon, 0).xreplace({**limits, **positive})
    kept = expression.free_symbols
    return FreeEnergy(
        expression=expression,
        order_parameters=tuple(x for x in found.order_parameters if x in kept),
        conjugates=tuple(x for x in (positive.get(x, x) for x in found.conjugates) if x in kept),
        parameters=tuple(x for x in found.parameters if x not in (fe.alpha, fe.ridge)),
        definitions=found.definitions,
        source="derived here from the free energy of Result 3.3 of Cui et al., arXiv 2402.04980",
    )


def limit_system(student: Activation, teacher: Activation, **flags: Any) -> SaddlePointSystem:
    """Return the saddle point for α → ∞, with the test error, V1 and V2 as outputs.

    Parameters
    ----------
    student, teacher : Activation
    **flags
        ``unspiked``, ``aligned`` and ``correlated_norms`` of :func:`limit_free_energy`.
    """
    energy = fe.spiked_free_energy(student, teacher, **flags)
    resolvent = 1 / (V2_HAT + fe.V1_hat * fe.c * fe.eigenvalue)
    return SaddlePointSystem.from_free_energy(
        _determined(limit_free_energy(student, teacher, **flags)),
        name="spiked_random_features_limit",
        node=fe.kappa,
        identifiers={**fe.IDENTIFIERS, V2_HAT: "V2_hat", fe.norm_overlap: "norm_overlap"},
        outputs={
            "test_error": energy.test_error,
            "V1": MarchenkoPasturAverage(fe.c * fe.eigenvalue * resolvent, fe.eigenvalue, fe.beta),
            "V2": MarchenkoPasturAverage(resolvent, fe.eigenvalue, fe.beta),
        },
        title="Spiked random features with infinitely many samples",
    )
