r"""What is lost when the readouts take few values: neurons that move together.

After the first step that learns anything with n = Θ(d), all overlaps are proportional to C_1,
:math:`u_i = a_i\,u\,b` with b spanning U_1, one length u and the readout a_i of the neuron. Neurons
with one readout a form a cluster with one overlap, and by the gradient of :mod:`.activation_mask`
the next step moves all of it along

.. math:: g_a = \sum_k s_{k+1}(\tau_a)\,(a u)^k\, r_k, \qquad
    \nabla F(s b) = \sum_k s^k r_k, \qquad s_j(\tau) = \mathbb{E}\,\sigma^{(j)}(\tau z),

with τ_a the norm of its neurons. A step therefore adds at most as many directions as there are
clusters. Readouts ±a share the norm unless the mean of f tells them apart: the gradient has a part
μ_2(σ) E[f] w, which makes the neurons of one longer and of the other shorter. Where they share it,
a pair ±a adds a vector of the even k and one of the odd k, and other readouts one of all k each.
Other norms change the sum of the even k, or of the odd k, only by a factor if σ keeps the ratios of
its s_j (:meth:`.DegreeMask.keeps_ratios`), as exp, sin and cos do; if it is so for both sums, the
pair spans the same two vectors as with equal norms, and if for one, that vector drops out of a
difference: a vector of the other k and one of all k are left. With R_e, R_o the spans of the r_k of
even and of odd k modulo U_1, and n_e, n_o, n of the vectors in R_e, in R_o, and in their sum, the
step adds

.. math:: \min\{n_e + n_o + n,\ \dim R_e + n_o + n,\ \dim R_o + n_e + n,\ \dim(R_e + R_o)\}

directions for step sizes and coefficients in general position: no vectors have a larger rank, and
by Rado's theorem some attain it. Later the overlaps of different clusters are no longer parallel,
and only the number of clusters bounds what a step adds. It also bounds the rank of the overlaps of
all neurons with V* after every step: what is counted here is the span of all moves so far.

Derived here; readouts do not change while the first layer is trained, and the output of the network
is 0 at its start.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import sympy as sp

from ...errors import ParameterError
from ..exact.fields import common_field
from ..expressions.exact_numbers import require_exact
from ..expressions.expression_text import expression_text, plain_fields
from ..expressions.regularity import Parity
from ..gaussian.zero_test import is_exactly_zero
from ..targets.activation_mask import DegreeMask
from ..targets.formal_fields import in_atoms, read_data, reading
from ..targets.spans import spans_of
from ..targets.subspaces import Number, Subspace, vector_latex, vector_text
from ..targets.target import Target

_MOST_READOUTS = 64
_LONG_VECTOR = 44
_OVERLAP = sp.Symbol("u", positive=True)


def short_vector_text(vector: Sequence[sp.Expr]) -> str:
    """Write a vector, rounded if it is long.

    Examples
    --------
    >>> short_vector_text([0, 1]), short_vector_text([sp.Rational(10**40, 3**60), 1])
    ('e2', '≈(2.359e+11, 1)')
    """
    text = vector_text(vector)
    if len(text) <= _LONG_VECTOR:
        return text
    entries = (e if sp.sympify(e, strict=True).is_Integer else sp.N(e, 4) for e in vector)
    return f"≈({', '.join(map(str, entries))})"


def coefficient_symbol(j: int) -> sp.Symbol:
    r"""Return the symbol of :math:`s_j(\tau) = \mathbb{E}\,\sigma^{(j)}(\tau z)`."""
    return sp.Symbol(f"s_{j}", real=True)


@dataclass(frozen=True)
class ClusterDirection:
    r"""A vector :math:`\sum_k s_{k+1}(\tau)\,(|a| u)^k r_k` that the clusters of one \|a\| add.

    Attributes
    ----------
    readout : Expr
        a; of a pair ±a the positive one.
    paired : bool
        Whether -a is a readout, too.
    parity : Parity
        That of the k in the sum: EVEN or ODD for pairs, NEITHER for single readouts.
    terms : tuple of (int, tuple of Expr)
        The k with their vectors r_k, those in U_1 left out.
    """

    readout: sp.Expr
    paired: bool
    parity: Parity
    terms: tuple[tuple[int, tuple[sp.Expr, ...]], ...]

    @property
    def vector(self) -> tuple[sp.Expr, ...]:
        """The sum, in the symbols u > 0 and s_1, s_2, …"""
        columns = zip(*([c * entry for entry in r] for c, r in self._weighted()), strict=True)
        return tuple(sp.Add(*column) for column in columns)

    def _weighted(self) -> Iterator[tuple[sp.Expr, tuple[sp.Expr, ...]]]:
        for k, r in self.terms:
            yield coefficient_symbol(k + 1) * (self.readout * _OVERLAP) ** k, r

    def __str__(self) -> str:
        terms = [f"{expression_text(c)}*{short_vector_text(r)}" for c, r in self._weighted()]
        return " + ".join(terms).replace(" + -", " - ")

    def latex(self) -> str:
        """Return the sum in LaTeX."""
        terms = [rf"{sp.latex(c)}\,{vector_latex(r)}" for c, r in self._weighted()]
        return " + ".join(terms).replace(" + -", " - ")


@dataclass(frozen=True)
class ReadoutClusters:
    """What a network with few readout values reaches beside one with a continuum of them.

    Attributes
    ----------
    readouts : tuple of Expr
        The different values, without zero: neurons with readout 0 do not move.
    step : int
        The step in which neurons of one readout move together for the first time.
    line : Subspace
        U_1, spanned by b.
    certain : Subspace
        What this step reaches for all lengths and coefficients in general position.
    reachable : Subspace
        What it reaches with a continuum of readouts.
    dimension : int
        The dimension of U_1 and all that it adds, for step sizes and coefficients in general
        position.
    directions : tuple of ClusterDirection
        What is added; empty if the target is no polynomial, where the sums do not end.
    equal_norms : bool
        Whether neurons with readouts ±a have the same norm.
    decided : bool
        Whether `reachable` and the dimensions are more than lower bounds.
    """

    readouts: tuple[sp.Expr, ...]
    step: int
    line: Subspace
    certain: Subspace
    reachable: Subspace
    dimension: int
    directions: tuple[ClusterDirection, ...]
    equal_norms: bool = True
    decided: bool = True

    @property
    def is_limiting(self) -> bool:
        """Whether the step reaches less than with a continuum of readouts."""
        return self.dimension < self.reachable.dimension

    @property
    def rank_at_most(self) -> int:
        """Bound on the rank of the overlaps of all neurons with V* after the step."""
        return min(self.dimension, len(self.readouts))

    def dimension_at_most(self, step: int, reachable: Subspace) -> int:
        """Bound the dimension of what all steps up to one have reached.

        `step`: t; the bound is exact, in general position, up to `self.step`. `reachable`: U_t of a
        continuum of readouts.
        """
        later = max(0, step - self.step)
        before = self.line.dimension if step < self.step else self.dimension
        return min(reachable.dimension, before + later * len(self.readouts))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return plain_fields(self, *(f.name for f in fields(self)))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ReadoutClusters:
        """Return the clusters that `to_dict` wrote.

        Raises ExpressionError if the content is not what `to_dict` writes.
        """
        return reading("readout clusters", lambda: cast(ReadoutClusters, read_data(cls, content)))


def checked_readouts(readout: Sequence[Number]) -> tuple[sp.Expr, ...]:
    """Return the different values of a readout, without zero.

    `readout`: the values that the readouts of the neurons take. Raises ParameterError if it is no
    sequence of exact real numbers, or all of them are zero.

    Examples
    --------
    >>> checked_readouts([1, -1, 0, 1])
    (1, -1)
    """
    expected = "readout must be a sequence of exact real numbers such as [1, -1]"
    if isinstance(readout, str | bytes | Mapping):
        raise ParameterError(f"{expected}, got {readout!r}")
    try:
        values = list(itertools.islice(iter(readout), _MOST_READOUTS + 1))
    except TypeError:
        raise ParameterError(f"{expected}, got {readout!r}") from None
    if len(values) > _MOST_READOUTS:
        raise ParameterError(
            f"readout has more than {_MOST_READOUTS} values; leave it out for a continuum of them"
        )
    result: list[sp.Expr] = []
    for value in values:
        number = require_exact(value, "readout")
        if number.free_symbols or number.is_real is False or number.has(sp.nan, sp.oo, sp.zoo):
            raise ParameterError(f"{expected}; {number} is not a real number")
        if not any(_equal(number, other) for other in (sp.S.Zero, *result)):
            result.append(number)
    if not result:
        raise ParameterError(f"{expected}, of which at least one is not zero: with 0 nothing moves")
    return tuple(result)


def readout_clusters(
    target: Target, mask: DegreeMask, line: Subspace, step: int, readouts: Sequence[sp.Expr]
) -> ReadoutClusters:
    """Return what the step after the first learned direction reaches with few readout values.

    `mask`: degrees that the activation uses. `line`: U_1, of dimension 1. `step`: number of the
    step, at least 2. `readouts`: as :func:`checked_readouts` returns them.

    Examples
    --------
    >>> from giantstep.symbolic.targets.target import target
    >>> found = readout_clusters(target("x1 + x1*x2 + He(3, x1)*x3"), DegreeMask(),
    ...     Subspace.spanned_by([[1, 0, 0]]), 2, checked_readouts([1, -1]))
    >>> found.dimension, found.reachable.dimension, str(found.directions[0])
    (2, 3, 's_2*u*e2 + s_4*u**3*e3')
    """
    equal_norms = _have_equal_norms(target, mask, step)
    # The gradient of degree k + 1 has degree k along the line.
    keeps_even, keeps_odd = (
        equal_norms or mask.keeps_ratios(parity) for parity in (Parity.ODD, Parity.EVEN)
    )
    pairs, singles = _pairs_and_singles(readouts)
    n_even = len(pairs) if keeps_odd else 0
    n_odd = len(pairs) if keeps_even else 0
    n = len(readouts) - n_even - n_odd
    spans = {
        parity: spans_of(target, mask.of_parity(parity), step=step).grow(line, 1)
        for parity in (Parity.ODD, Parity.EVEN)
    }
    even, odd = (in_atoms(spans[parity].subspace) for parity in (Parity.ODD, Parity.EVEN))
    both = even + odd
    dim_even, dim_odd, dim_both = (space.dimension - 1 for space in (even, odd, both))
    added = min(n_even + n_odd + n, dim_even + n_odd + n, dim_odd + n_even + n, dim_both)
    certain = line
    if n_even >= dim_even:
        certain = certain + even
    if n_odd >= dim_odd:
        certain = certain + odd
    if added == dim_both:
        certain = both
    shown = (pairs, singles) if keeps_even and keeps_odd else ([], list(readouts))
    return ReadoutClusters(
        tuple(readouts),
        step,
        line,
        certain,
        both,
        1 + added,
        tuple(_directions(target, mask, line, step, *shown)),
        equal_norms,
        all(span.decided for span in spans.values()),
    )


def _equal(a: sp.Expr, b: sp.Expr) -> bool:
    return a == b or is_exactly_zero(a - b, "the difference of two readouts")


def _have_equal_norms(target: Target, mask: DegreeMask, step: int) -> bool:
    """Whether the steps before this one lengthen neurons of readouts ±a alike."""
    if not any(mask.admits(2, earlier) for earlier in range(1, min(step, 3))):
        return True
    return target.vanish([target.mean], f"the mean of {target.name}")


def _pairs_and_singles(readouts: Sequence[sp.Expr]) -> tuple[list[sp.Expr], list[sp.Expr]]:
    pairs: list[sp.Expr] = []
    singles: list[sp.Expr] = []
    for number, a in enumerate(readouts):
        if any(_equal(a, -other) for other in readouts[:number]):
            continue
        if any(_equal(a, -other) for other in readouts[number + 1 :]):
            pairs.append(sp.Abs(a))
        else:
            singles.append(a)
    return pairs, singles


def _directions(
    target: Target,
    mask: DegreeMask,
    line: Subspace,
    step: int,
    pairs: Sequence[sp.Expr],
    singles: Sequence[sp.Expr],
) -> Iterator[ClusterDirection]:
    if not target.is_polynomial:
        return
    vectors = _along(target, mask, line, step)
    groups = [(a, True, parity) for a in pairs for parity in (Parity.ODD, Parity.EVEN)]
    for a, paired, parity in (*groups, *((a, False, Parity.NEITHER) for a in singles)):
        rests = {Parity.EVEN: (0,), Parity.ODD: (1,), Parity.NEITHER: (0, 1)}[parity]
        terms = tuple((k, r) for k, r in vectors if k % 2 in rests)
        if terms:
            yield ClusterDirection(a, paired, parity, terms)


def _along(
    target: Target, mask: DegreeMask, line: Subspace, step: int
) -> list[tuple[int, tuple[sp.Expr, ...]]]:
    """Return (k, r_k) of the gradient along the line, those in the line left out."""
    symbol = mask.restrict(target.expansion.symbol_element, step)
    field, of_symbol, of_line = common_field(symbol.ring.domain, line.field)
    (b,) = line.over(field, of_line).rows
    result: dict[int, list[Any]] = {}
    for alpha, c in symbol.items():
        k = sum(alpha) - 1
        for i, n in enumerate(alpha):
            if n:
                value = of_symbol(c) * n
                for j, power in enumerate(alpha):
                    if power > (i == j):  # fields of rational functions know no 0**0
                        value *= b[j] ** (power - (i == j))
                row = result.setdefault(k, [field.zero] * len(b))
                row[i] += value
    rows = {
        k: Subspace.from_elements([row], field, len(b), target.case) for k, row in result.items()
    }
    return [
        (k, tuple(map(field.to_sympy, result[k]))) for k in sorted(result) if not rows[k] <= line
    ]
