r"""What predictions of fits rest on: the learned subspace, and the error given the subspace.

For both parts it is decided which theorem, conjecture or extrapolation covers the case at hand, and
what has to be known beside it. See :mod:`.regimes` for the statements and the sources.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import sympy as sp

from ...symbolic.leaps.activation_mask import DegreeMask
from ...symbolic.leaps.spans import spans_of
from ...symbolic.projections import Projection
from ...symbolic.ridge_terms import ridge_terms
from ...symbolic.standing import Standing
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import Target

_DANDI = "Dandi et al., arXiv 2305.18270"
_RANDOM_FEATURES = "Mei, Misiakiewicz, Montanari, Appl. Comput. Harmon. Anal. 59 (2022)"
_LOWER_BOUND = "Ghorbani, Mei, Misiakiewicz, Montanari, Ann. Statist. 49 (2021)"


@dataclass(frozen=True)
class Statement:
    """What one part of a prediction rests on."""

    standing: Standing
    source: str
    caveats: tuple[str, ...] = ()

    def with_caveat(self, caveat: str) -> Statement:
        """Return the same with one more thing to be known."""
        return Statement(self.standing, self.source, (*self.caveats, caveat))


@functools.lru_cache(maxsize=256)
def learned_subspace(f: Target, order: int, steps: int, mask: DegreeMask) -> tuple[Subspace, bool]:
    """Return the subspace after T steps of orders ≤ κ1, and whether it was decided."""
    subspace, decided = Subspace.zero(f.dimension), True
    for t in range(1, steps + 1 if order else 0):
        found = spans_of(f, mask, step=min(t, 2)).grow(subspace, order)
        decided = decided and found.decided
        # What a student sees differs between the first step and later ones only.
        if t > 1 and found.subspace == subspace:
            break
        subspace = found.subspace
    return subspace, decided or subspace.is_whole


def origin_of_subspace(
    f: Target, order: int, steps: int, mask: DegreeMask, subspace: Subspace, decided: bool
) -> Statement:
    """Say what the learned subspace rests on."""
    if steps == 0:
        return Statement(Standing.THEOREM, "no step: the first layer is random")
    if not decided:
        return Statement(
            Standing.HEURISTIC,
            _DANDI,
            ("the rank is not decided: U may be larger, and the error then smaller",),
        )
    masked = not mask.is_whole and learned_subspace(f, order, steps, DegreeMask())[0] != subspace
    if masked:
        weakest = Standing.CONJECTURE if order == 1 else Standing.EXTRAPOLATION
        return Statement(
            Standing.DERIVED_HERE if steps == order == 1 else weakest,
            f"{_DANDI}, for the degrees that the student sees",
            (f"the student {mask.activation} does not see all degrees of the target",),
        )
    if subspace.is_zero:
        what = f"{_DANDI}: with n = O(d^(l - eps)), l the leap index, nothing is learned"
        return Statement(Standing.THEOREM if steps == 1 else Standing.CONJECTURE, what)
    if steps == 1:
        return _one_step(f, order, subspace)
    if learned_subspace(f, 1, steps, mask) == (subspace, True):
        if steps == 2:
            return Statement(
                Standing.THEOREM, f"{_DANDI}, two steps", ("proven for the expected gradient",)
            )
        return Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 1")
    return Statement(
        Standing.EXTRAPOLATION,
        f"{_DANDI}, Conjecture 1 taken to orders up to {order}",
        (_LOWER_ORDERS_FIRST,),
    )


_LOWER_ORDERS_FIRST = (
    "directions of several orders in one step: higher orders are visible only beside, or without, "
    "the lower ones"
)


def _one_step(f: Target, order: int, subspace: Subspace) -> Statement:
    spans = spans_of(f)
    lowest = spans.grow(Subspace.zero(f.dimension), order, strict=True)
    leap = lowest.lowest_order
    if lowest.subspace != subspace:
        return Statement(
            Standing.EXTRAPOLATION,
            f"all orders up to {order}, as in the five regimes of {_DANDI}",
            (_LOWER_ORDERS_FIRST,),
        )
    if leap == 1 or _is_separable(f):
        return Statement(Standing.THEOREM, f"{_DANDI}, one step at leap index {leap}")
    return Statement(
        Standing.DERIVED_HERE,
        f"range of C_{leap}; theorem of {_DANDI} for sums of functions of one coordinate each",
    )


def _is_separable(f: Target) -> bool:
    """Whether f is a sum of functions of one coordinate each."""
    if f.is_polynomial:
        indices = f.expansion.he_coefficients()
        return all(sum(map(bool, alpha)) <= 1 for alpha in indices)
    for term in ridge_terms(f.expr, f.variables):
        used = [i for i, n in enumerate(term.powers) if n]
        used += [i for ridge in term.ridges for i, a in enumerate(ridge.direction) if a != 0]
        if len(set(used)) > 1:
            return False
    return True


def origin_of_error(
    projection: Projection,
    kappa1: sp.Rational,
    kappa2: sp.Rational,
    steps: int,
    mask: DegreeMask,
) -> tuple[str, Statement]:
    """Say how the error is related to the residual, and what that rests on."""
    kappa = min(kappa1, kappa2)
    if kappa2 == 0:
        return "≥", Statement(
            Standing.THEOREM,
            f"{_DANDI}: E Var(f | x_U) for p = O(1)",
            ("for bounded readout weights",),
        )
    degree = projection.degree
    caveats = []
    if kappa.is_Integer and projection.has_degree(degree):
        caveats.append(
            f"at the whole exponent {kappa} the part of degree {kappa} outside U is fitted in "
            "part only"
        )
    if not projection.onto.is_zero:
        return "≥", Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 3", tuple(caveats))
    if kappa.is_Integer:
        caveats.append(f"the limit itself is proven for exponents that are not whole, not {kappa}")
    if kappa1 == kappa2:
        caveats.append("n and p of one order: the limit is proven where they are a power apart")
    unseen = [
        k for k in range(1, degree + 1) if projection.has_degree(k) and not mask.admits(k, step=1)
    ]
    if unseen:
        caveats.append(
            f"features of the student {mask.activation} have no part of degree "
            f"{', '.join(map(str, unseen))}, which is not fitted"
        )
    if steps:
        caveats.append(
            "a theorem for a first layer that is not trained; here training finds nothing"
        )
        return "≥", Statement(Standing.CONJECTURE, f"{_DANDI}, Conjecture 3", tuple(caveats))
    exact = not caveats
    source = _RANDOM_FEATURES if exact else f"{_LOWER_BOUND}; {_RANDOM_FEATURES}"
    return "→" if exact else "≥", Statement(Standing.THEOREM, source, tuple(caveats))
