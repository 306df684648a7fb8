r"""Claims: small batches, networks of many neurons on what was learned, and sums of equal links.

Of a sum of links :math:`f = \sum_{i \le r} \sigma_i(w_i\cdot x)` one step at leap index k learns
the range of :math:`C_k = \sum_i \mu_k(\sigma_i)\,w_i^{\otimes k}`. "All directions at once, always
if σ_1 = … = σ_r" is a theorem for k ≥ 2 and linearly independent w_i: with the dual basis
:math:`v_j\cdot w_i = \delta_{ij}`,

.. math:: C_k[v_j^{k-1}, \cdot] = \mu_k(\sigma)\,w_j .

It is false for k = 1, where :math:`C_1 = \mu_1 \sum_i w_i` is one
direction, and for dependent w_i.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy as sp
from numpy.polynomial.hermite_e import hermegauss

from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.projections import project
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import target
from ..claims import Finding, Status, declare_claim, evidence
from ..identities import identities_hold
from ..networks import Network, simulate
from .claims_staircases import SEED

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"

_dimension, _signal, _noise, _gap = sp.symbols("d S N epsilon", positive=True)
_leap = sp.Symbol("ell", positive=True, integer=True)


def _share(exponent: sp.Expr) -> sp.Expr:
    """Return the share of the squared gradient inside V* from n = d^exponent samples."""
    inside = _signal * _dimension ** (1 - _leap)
    return inside / (inside + _noise * _dimension ** (1 - exponent))


_SHARE = _share(_leap - _gap)

declare_claim(
    "small-batches",
    title="Small batches learn nothing in any number of giant steps",
    statement=(
        r"From $n = O(d^{\ell-\epsilon})$ fresh samples for each step, $\ell$ the leap index, the "
        r"directions of the neurons keep a vanishing share of $V^*$ after any fixed number of "
        r"giant steps: the share of the squared gradient there is $«share»$ with $S$ of signal "
        r"and $N = \mathbb{E}f^2\,\mathbb{E}\sigma'^2$ of noise."
    ),
    formulas={"share": _SHARE},
    source=f"{_DKLPS}: a theorem for one step, a conjecture for several",
    status=Status.CONJECTURE,
)


@evidence("small-batches", "exact", "the share of one gradient for small and for large batches")
def shares_of_gradients() -> Finding:
    """Limits of the share of the gradient inside V*, below and at the exponent of the theorem."""
    results = {}
    for leap in (1, 2, 3):
        for gap in (sp.Rational(1, 4), sp.S.Half, sp.S.One):
            small = _SHARE.subs({_leap: leap, _gap: gap})
            results[f"leap {leap}, n = d^({leap} - {gap}): nothing"] = (
                sp.limit(small, _dimension, sp.oo) == 0
            )
        enough = sp.limit(_SHARE.subs({_leap: leap, _gap: 0}), _dimension, sp.oo)
        results[f"leap {leap}, n = d^{leap}: a share"] = bool(
            sp.simplify(enough - _signal / (_signal + _noise)) == 0
        )
    return identities_hold(results, "the share vanishes below n = d^leap, and does not at it")


_SIZES, _STEPS, _NETWORKS = (64, 256), 3, 8


@evidence("small-batches", "simulation", "three steps from √d and d^(3/2) samples, d = 64 and 256")
def shares_of_networks() -> Finding:
    """Shares of rows inside V* after three steps: they fall with d for small batches alone."""
    shares: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for name, exponent in (("small", 0.5), ("large", 1.5)):
        for d in _SIZES:
            network = Network(
                "sin(z + pi/4)", "x1 + x1*x2", dimension=d, width=32, steps=_STEPS,
                step_samples=round(d**exponent), step_size=2.0,
            )  # fmt: skip
            found = simulate(network, _share_inside, seeds=_NETWORKS, seed=SEED, progress=False)
            shares.setdefault(name, []).append(float(np.mean(found["share"])))
            errors.setdefault(name, []).append(float(found.standard_error("share")))
    fall = shares["small"][0] - shares["small"][1]
    passed = (
        fall > 3 * math.hypot(*errors["small"])
        and shares["large"][1] > shares["large"][0] - 3 * math.hypot(*errors["large"])
        and shares["small"][1] < 0.5 * shares["large"][1]
    )
    return Finding(
        bool(passed),
        f"from sqrt(d) samples {shares['small'][0]:.3f} and {shares['small'][1]:.3f} of the rows "
        f"are inside at d = 64 and 256, from d^(3/2) {shares['large'][0]:.3f} and "
        f"{shares['large'][1]:.3f}",
        {"shares": shares, "standard_errors": errors},
    )


def _share_inside(trained: Any) -> dict[str, Any]:
    rows = trained.layer.rows
    inside = rows[:, : trained.network.directions]
    return {"share": np.array((inside**2).sum() / (rows**2).sum())}


declare_claim(
    "few-neurons-converse",
    title="Many neurons on the learned subspace attain the bound of few",
    statement=(
        r"A network of $p = O(1)$ neurons inside $U$ has an error of at least $\mathbb{E}\,"
        r"\mathrm{Var}(f\,|\,x_U)$ (theorem). Conversely the least error over readouts of generic "
        r"neurons $\sin(w\cdot x_U + b)$ tends to it as $p \to \infty$ after $d \to \infty$: these "
        r"functions are dense in $L^2$ of the Gaussian on $U$."
    ),
    source=f"the bound: {_DKLPS}; the converse is derived here",
    status=Status.DERIVED_HERE,
)


@evidence("few-neurons-converse", "quadrature", "least errors of 2 to 32 neurons on two targets")
def errors_of_many_neurons() -> Finding:
    """The part of E[f | x_U] that p neurons inside U leave, by Gauss–Hermite quadrature."""
    nodes, weights = hermegauss(60)
    weights = weights / weights.sum()
    left: dict[str, list[float]] = {}
    random = np.random.default_rng(SEED)
    slopes, offsets = random.normal(size=32) * 1.5, random.uniform(0, 2 * math.pi, 32)
    for text in ("x1 + x1*x2 + He(3, x1)/3", "He(2, x1) - x1*He(2, x2) + x1"):
        f = target(text)
        learned = Subspace.spanned_by([[1, 0]], 2)
        fitted = project(f, learned, 0).fitted
        values = compiled(fitted, f.variables)(nodes, 0 * nodes) * np.ones_like(nodes)
        size = float((weights * values**2).sum())
        root = np.sqrt(weights)[:, None]
        features = np.sin(np.outer(nodes, slopes) + offsets) * root
        for p in (2, 8, 32):
            fit = np.linalg.lstsq(features[:, :p], values * root[:, 0], rcond=1e-13)[0]
            rest = values * root[:, 0] - features[:, :p] @ fit
            left.setdefault(text, []).append(float((rest**2).sum()) / size)
    passed = all(x[0] > x[1] > x[2] and x[2] < 1e-4 for x in left.values())
    worst = max(x[2] for x in left.values())
    return Finding(
        passed,
        f"what 2, 8 and 32 neurons leave of E[f | x_U] falls, to {worst:.1e} of its square",
        {"left": left},
    )


declare_claim(
    "equal-links",
    title="One step learns all directions of a sum of equal links from leap index 2 on",
    statement=(
        r"Let $f = \sum_{i \le r} \sigma(w_i\cdot x)$ with linearly independent $w_i$ and leap "
        r"index $\ell \ge 2$. Then $C_\ell[v_j^{\ell-1}, \cdot] = \mu_\ell(\sigma)\,w_j$ for the "
        r"dual basis $v_j$, and one step learns all of $\mathrm{span}(w_i)$. Not so for $\ell = "
        r"1$, where it learns $\sum_i w_i$ alone, for dependent $w_i$, and where links differ."
    ),
    source=f"after {_DKLPS}, whose theorem is for sums of functions of one coordinate; proof here",
    status=Status.DERIVED_HERE,
)

# Directions as rows, orthonormal or not.
_FRAMES = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((1, 0, 0), (sp.Rational(3, 5), sp.Rational(4, 5), 0)),
    ((sp.Rational(2, 3), sp.Rational(2, 3), sp.Rational(1, 3)), (0, 0, 1), (0, 1, 0)),
)


@evidence("equal-links", "exact", "contractions with dual bases, and ranges of Hermite tensors")
def ranges_of_equal_links() -> Finding:
    """The range of C_k of sums of equal links is everything, and what fails where it is said."""
    results: dict[str, bool] = {}
    x = sp.symbols("x1:4", real=True)
    for frame in _FRAMES:
        rows = sp.Matrix(frame)
        dual = (rows * rows.T).inv() * rows
        for leap in (2, 3, 4):
            tensor = [
                sum(
                    ((dual.row(j) * rows.row(i).T)[0] ** (leap - 1) * rows.row(i)
                     for i in range(rows.rows)), sp.zeros(1, 3),
                )
                for j in range(rows.rows)
            ]  # fmt: skip
            results[f"contractions, {rows.rows} links, order {leap}"] = all(
                row == rows.row(j) for j, row in enumerate(tensor)
            )
            results[f"range, {rows.rows} links, order {leap}"] = _learned(
                frame, f"He({leap}, {{}})", x
            ) == Subspace.spanned_by(frame, 3)
    first = _learned(_FRAMES[0], "{}", x)
    results["leap 1: the sum of the directions alone"] = first == Subspace.spanned_by(
        [[1, 1, 1]], 3
    )
    opposite = [(1, 0, 0), (-1, 0, 0), (0, 1, 0)]
    results["dependent directions: opposite odd links cancel"] = _learned(
        opposite, "He(3, {})", x
    ) == Subspace.spanned_by([[0, 1, 0]], 3)
    other = spans_of(target("He(2, x1) + He(3, x2)")).grow(Subspace.zero(2), 2)
    results["links that differ: those of the lowest order alone"] = (
        other.subspace == Subspace.spanned_by([[1, 0]], 2)
    )
    return identities_hold(
        results, "equal links show all directions from order 2 on, and not in the three exceptions"
    )


def _learned(frame: Any, link: str, x: Any) -> Subspace:
    """Return the range of the first Hermite tensor of a sum of one link of several directions."""
    parts = []
    for row in frame:
        along = "(" + " + ".join(f"({c})*x{i + 1}" for i, c in enumerate(row)) + ")"
        parts.append(link.format(along))
    f = target(" + ".join(parts), variables=x)
    return spans_of(f).grow(Subspace.zero(3), 9, strict=True).subspace
