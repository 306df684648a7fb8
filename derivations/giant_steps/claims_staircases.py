r"""Claims: staircases, leaps and projections, by routes that know nothing of symbols.

Conditional expectations are taken by definition: the target is written in the coordinates of an
orthogonal frame, and monomials are averaged one by one. A frame :math:`b_1, b_2, \dots` that is not
normalised needs no roots: the coordinate along b has the variance :math:`1/|b|^2`. Targets are
those of a fixed list, and random ones of :class:`.TargetFamily`, some rotated by rational matrices.

Whether networks have learned a direction is decided by the rules of :mod:`.conjectures`: networks
of two sizes, figures free of 1/d, agreement only where something would have been seen. Seeds are
fixed, so every number is reproducible. With d = 80, and 24 and 12 networks,
`sampled_readout_clusters` and `sampled_activation_masks` were undecided, one figure each, with the
seed of the claims. The sizes here were then fixed with another seed, 5010. With that of the claims
they were run once; of the 40 networks of `sampled_readout_clusters` with d = 80 and each kind of
readout, 24 are those of the first run. `worked_traces` in two steps with d = 120 and 32 d samples
had 6 figures of networks that agreed and 6 undecided; its sizes were fixed in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import sympy as sp

from ...ball_library import require_flint
from ...errors import UndecidedError
from ...numeric.networks.directions import PARTS
from ...runtime.precision import local_context
from ...symbolic.expressions.activations import activation, z, z as variable
from ...symbolic.gaussian.expectation import expect
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import hermite_coefficients
from ...symbolic.leaps.generative_leap import generative_leap
from ...symbolic.leaps.leap_index import coordinate_leap, isotropic_leap
from ...symbolic.leaps.staircase import staircase
from ...symbolic.printing.compiled import compiled
from ...symbolic.targets.activation_mask import activation_mask
from ...symbolic.targets.projections import residual_norms
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import Target, target
from ..certificates.agreement import decided
from ..claims import Finding, Status, declare_claim, evidence
from ..conjectures.random_targets import TargetFamily
from ..first_gradient.claims_expansion import mean_of_polynomial
from ..identities import identities_hold
from .conjectures import (
    READOUTS,
    STUDENT,
    Figure,
    Outcome,
    Plan,
    axes_within,
    check_conjecture_1,
    direction_figure,
    expected_grams,
    trained_on_readouts,
)
from .population_dynamics import gaussian_readouts, population_overlaps, population_ranks

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"
SEED = 230518270
"""Of all simulations of claims: the number of the preprint, so that nobody has chosen it."""

declare_claim(
    "staircase-algorithm",
    title="Staircases by substitution into gradients of the symbol",
    statement=(
        r"With $F(\xi) = \mathbb{E} f(x+\xi)$, the subspaces $U_{t+1} = U_t \oplus \mathrm{span}"
        r"\{\mathbb{E}_{x_\perp}\nabla_\perp f(x_U + x_\perp) : x_U \in U_t\}$ of the source are "
        r"$$U_{t+1} = U_t + \mathrm{span}\{\nabla F(\xi) : \xi \in U_t\} ,$$ and they have a basis "
        r"over the field of the coefficients of $f$ in an orthonormal frame."
    ),
    source=f"{_DKLPS}, section 4, for the definition; the second form is derived here",
    status=Status.DERIVED_HERE,
)


@evidence("staircase-algorithm", "exact", "conditional expectations monomial by monomial")
def definition_of_staircases(drawn: int = 10) -> Finding:
    """Subspaces by substitution against conditional expectations of gradients, as defined."""
    results: dict[str, bool] = {}
    for f in _targets(drawn):
        chain = staircase(f, 1).subspaces
        for t, subspace in enumerate(chain):
            wanted = chain[min(t + 1, len(chain) - 1)]
            result = subspace + Subspace.spanned_by(conditional_gradients(f, subspace), f.dimension)
            results[f"U_{t + 1} of {f}"] = result == wanted
    return identities_hold(results, "subspaces by substitution are those of the definition")


def conditional_gradients(f: Target, subspace: Subspace) -> list[list[sp.Expr]]:
    r"""Span the values of :math:`\mathbb{E}_{x_\perp}\nabla_\perp f(x_U + x_\perp)`, by definition.

    Returns the coefficient vectors of this polynomial in the coordinates of x_U.
    """
    inside, outside = orthogonal_frame(subspace)
    s, q, expr = _in_frame(f, inside, outside)
    vectors: dict[tuple[int, ...], sp.Matrix] = {}
    for n, coordinate in zip(outside, q, strict=True):
        # The derivative along n, as a vector: ∂f/∂q is <∇f, n>.
        part = _averaged(sp.diff(expr, coordinate), s, q, outside)
        for powers, value in part.items():
            old = vectors.setdefault(powers, sp.zeros(f.dimension, 1))
            vectors[powers] = old + value * sp.Matrix(n) / _square(n)
    return [list(vector) for vector in vectors.values()] or [[sp.S.Zero] * f.dimension]


def orthogonal_frame(subspace: Subspace) -> tuple[list[list[sp.Expr]], list[list[sp.Expr]]]:
    """Return orthogonal vectors that span a subspace, and such that span its complement."""
    inside, outside = (
        [list(v) for v in sp.GramSchmidt([sp.Matrix(row) for row in space.basis])]
        for space in (subspace, subspace.orthogonal_complement())
    )
    return inside, outside


def _in_frame(
    f: Target, inside: Sequence[Sequence[sp.Expr]], outside: Sequence[Sequence[sp.Expr]]
) -> tuple[tuple[sp.Symbol, ...], tuple[sp.Symbol, ...], sp.Expr]:
    s = sp.symbols(f"s1:{len(inside) + 1}", real=True)
    q = sp.symbols(f"q1:{len(outside) + 1}", real=True)
    frame = list(zip((*s, *q), (*inside, *outside), strict=True))
    point = [sp.Add(*(c * v[i] for c, v in frame)) for i in range(f.dimension)]
    return s, q, sp.expand(f.expr.xreplace(dict(zip(f.variables, point, strict=True))))


def _averaged(
    expr: sp.Expr,
    kept: Sequence[sp.Symbol],
    averaged: Sequence[sp.Symbol],
    vectors: Sequence[Sequence[sp.Expr]],
) -> dict[tuple[int, ...], sp.Expr]:
    """Mean over coordinates along orthogonal vectors, as coefficients in the coordinates kept."""
    if not averaged:
        return dict(sp.Poly(expr, *kept).terms()) if kept else {(): expr}
    result: dict[tuple[int, ...], sp.Expr] = {}
    for powers, c in sp.Poly(expr, *kept, *averaged).terms():
        own, others = powers[: len(kept)], powers[len(kept) :]
        if any(n % 2 for n in others):
            continue
        moment = sp.Mul(
            *(
                sp.factorial2(n - 1) / _square(v) ** (n // 2)
                for n, v in zip(others, vectors, strict=True)
            )
        )
        result[own] = result.get(own, sp.S.Zero) + c * moment
    return {powers: value for powers, c in result.items() if (value := sp.expand(c)) != 0}


def _square(vector: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Add(*(v**2 for v in vector))


LISTED = (
    "x1 + He(2, x1) + x2 - He(2, x2)",
    "x1 + He(2, x1) + x2 + He(2, x2)",
    "x1 + x1*x2 + He(3, x1)*x3",
    "x1 + x1*x2 + x1*x2*x3",
    "x1*x2 + x3",
    "x1 + 2*x2 + 3*x3 + He(3, x1) + He(3, x2) + He(3, x3)",
    "(4*x1 + x1**2 + x2)/2",
    "x1 + x1*x2 + (x1**2 - 1)*(x2 + x3*x4)",
)
_SEED = 91


def _targets(drawn: int) -> Iterable[Target]:
    generator = random.Random(_SEED)
    yield from map(target, LISTED)
    family = TargetFamily(dimension=3, degree=4, terms=4, seed=_SEED)
    for number, f in enumerate(family.draw(drawn)):
        yield rotated(f, random_rotation(f.dimension, generator)) if number % 2 else f


def random_rotation(dimension: int, generator: random.Random) -> sp.Matrix:
    """Return a rational rotation (I - A)(I + A)⁻¹ with a small antisymmetric A (Cayley)."""
    antisymmetric = sp.zeros(dimension)
    for i in range(dimension):
        for j in range(i):
            entry = sp.Rational(generator.randrange(-2, 3), generator.randrange(1, 3))
            antisymmetric[i, j], antisymmetric[j, i] = entry, -entry
    unit = sp.eye(dimension)
    return (unit - antisymmetric) * (unit + antisymmetric).inv()


def rotated(f: Target, rotation: sp.Matrix) -> Target:
    """Return x ↦ f(Rx)."""
    return target(f.expansion.rotate(rotation).polynomial(), f.variables)


@evidence(
    "staircase-algorithm",
    "certified",
    "ranks of the overlaps of networks on the population loss are the dimensions of U_t",
)
def ranks_of_population_dynamics(drawn: int = 6, steps: int = 3) -> Finding:
    """Ranks that networks reach on the population loss, against the dimensions of U_t."""
    results: dict[str, bool] = {}
    worst = 0.0
    for f in _targets(drawn):
        chain = staircase(f, 1).subspaces
        answer = population_ranks(f, steps)
        wanted = tuple(chain[min(t, len(chain) - 1)].dimension for t in range(steps + 1))
        results[f"{f}: {answer.ranks}, predicted {wanted}"] = answer.ranks == wanted
        worst = max(worst, *answer.remainders)
    result = identities_hold(results, "ranks on the population loss are the dimensions of U_t")
    return Finding(
        result.passed,
        f"{result.summary}; minors of that size proved not to vanish, larger ones below "
        f"{worst:.0e}",
        result.details,
    )


TRACES = (
    "x1 + He(2, x1) + x2 - He(2, x2)",
    "x1 + He(2, x1) + x2 + He(2, x2)",
    "x1 + x1*x2 + x1*x3",
    "(4*x1 + x1**2 + x2)/2",
)
LONG_TRACES = (
    *TRACES,
    "x1 + x1*x2 + x1*x2*x3",
    "x1 + 2*x2 + 3*x3 + He(2, x1) + He(2, x2) + He(2, x3)",
)


@evidence(
    "staircase-algorithm",
    "simulation",
    "networks on three worked targets, two steps",
    arguments={"targets": TRACES[:3], "steps": 2, "dimension": 240},
)
@evidence(
    "staircase-algorithm",
    "simulation",
    "networks on six, three steps, d = 400",
    slow=True,
    arguments={"targets": LONG_TRACES, "steps": 3, "dimension": 400},
)
def worked_traces(
    targets: tuple[str, ...], steps: int, dimension: int, seed: int = SEED
) -> Finding:
    """Networks on worked targets against conjecture 1."""
    return check_conjecture_1(
        targets, dimension, steps, networks=12, samples_per_dimension=64, seed=seed, progress=False
    ).finding()


declare_claim(
    "readout-clusters",
    title="Readouts ±1 learn at most two directions in the second step",
    statement=(
        r"If the readouts take the values $\pm 1$ only, all overlaps are $\pm u\,C_1$ after the "
        r"first step, and the second one adds at most two directions. If $\mu_2\,\mathbb{E} f "
        r"= 0$, neurons of both signs have the same norm, and these are $$\sum_{k \text{ even}} "
        r"s_{k+1} u^k r_k \quad\text{and}\quad \sum_{k \text{ odd}} s_{k+1} u^k r_k ,\qquad "
        r"\nabla F(s\,C_1) = \sum_k s^k r_k .$$ All of $U_2$ takes a spread of $|a_i|$ or biases."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)

_RANK_TOLERANCE = 1e-10
"""Of singular values in floating point, whose rounding is 1e-15."""


@evidence("readout-clusters", "exact", "dimensions against networks on the population loss")
def readout_clusters(steps: int = 2) -> Finding:
    """Dimensions with readouts ±1 and ±1, ±2 against networks with such readouts."""
    results: dict[str, bool] = {}
    several = "x1 + x1*x2 + He(2, x1)*x3 + He(3, x1)*x4 + He(4, x1)*x5"
    for text in (LISTED[2], LISTED[3], several):
        for readouts in ([1], [1, 2], None):
            given = None if readouts is None else [s * a for a in readouts for s in (1, -1)]
            predicted = staircase(text, 1, readout=given).dimensions_at_most
            values = gaussian_readouts(16) if given is None else np.tile(given, 8).astype(float)
            overlaps = population_overlaps(text, steps, readouts=values, step_size=1.0)
            for t in range(1, steps + 1):
                # Two clusters have rank two at any time; what they have seen adds up.
                sizes = np.linalg.svd(np.vstack(overlaps[: t + 1]), compute_uv=False)
                rank = int((sizes > _RANK_TOLERANCE * sizes[0]).sum())
                wanted = predicted[min(t, len(predicted)) - 1]
                name = "spread" if given is None else ", ".join(f"±{a}" for a in readouts or ())
                results[f"{text}, readouts {name}, step {t}: {rank}, predicted {wanted}"] = (
                    rank == wanted
                )
    return identities_hold(results, "dimensions are those of networks on the population loss")


_SHARED, _UPDATES = PARTS.index("shared"), PARTS.index("updates")
_NOTHING = 1e-12
"""Squared overlaps of the population dynamics below are rounding."""

CLUSTERED = "x1 + x1*x2 + He(3, x1)*x3/2"
_RATE = 4.0
"""Of the networks with readouts ±1, in units of p/‖f‖: the second direction is weak."""


@evidence(
    "readout-clusters", "simulation", "the direction that ±1 misses, and spread readouts find"
)
def sampled_readout_clusters(
    dimension: int = 160, networks: int = 40, samples_per_dimension: int = 100, seed: int = SEED
) -> Finding:
    """Two steps show one direction of span(e2, e3) with readouts ±1, and both with spread ones.

    Axes are those of the population dynamics; the one that ±1 misses has to be seen with spread
    readouts, and its signal there has to be more than is resolved with ±1.
    """
    f = target(CLUSTERED)
    plan = Plan(dimension, 2, networks, samples_per_dimension, seed)
    plane = Subspace.spanned_by([[0, 1, 0], [0, 0, 1]])
    figures: dict[str, list[Figure]] = {}
    for name, readouts in (
        ("±1", np.ones(READOUTS)),
        ("spread", gaussian_readouts(2 * READOUTS)[::2]),
    ):
        grams = [
            trained_on_readouts(f, plan, d, readouts, rate=_RATE).grams[:, 2, _SHARED, 0]
            for d in plan.sizes
        ]
        expected = expected_grams(f, plan, readouts, _RATE)[2]
        figures[name] = [
            direction_figure("inside" if size > _NOTHING else "outside", 2, axis, size, grams)
            for axis, size in axes_within(plane, expected)
        ]
    kinds = [[figure.kind for figure in result] for result in figures.values()]
    weak = figures["spread"][-1].predicted
    passed = (
        kinds == [["inside", "outside"], ["inside", "inside"]]
        and _agree(*figures.values())
        and figures["±1"][-1].resolution < weak
    )
    return _finding(passed, f"{CLUSTERED}, {plan.description}", figures)


def _agree(*groups: list[Figure]) -> bool:
    return all(figure.outcome is Outcome.AGREES for group in groups for figure in group)


def _finding(passed: bool, what: str, figures: dict[str, list[Figure]]) -> Finding:
    lines = [f"{name}: {'; '.join(map(str, result))}" for name, result in figures.items()]
    details = {name: [asdict(figure) for figure in result] for name, result in figures.items()}
    return Finding(passed, f"{what}; {'; '.join(lines)}", details)


declare_claim(
    "activation-masks",
    title="Students miss the degrees of their vanishing Hermite coefficients",
    statement=(
        r"A Hermite degree $k$ of the target acts through $s_k(\tau) = \mathbb{E}\,\sigma^{(k)}"
        r"(\tau z)$; where it vanishes for all $\tau$, the staircase is that of the other degrees: "
        r"odd ones above 1 drop out for relu without biases, even ones for odd activations. So "
        r"relu never completes $x_1 + \mathrm{He}_2(x_1)\,x_2$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)

MASKED_STUDENTS = ("relu", "erf", "gelu", "abs(z)", "sin(z)", "z**3", "z + He(2, z)", "relu(z - 1)")


@evidence("activation-masks", "exact", "coefficients of relu and erf at lengths other than one")
def activation_masks(highest: int = 5) -> Finding:
    r"""Degrees that pass against :math:`\mathbb{E}[\sigma(\tau z)\,\mathrm{He}_j(z)]`, three τ."""
    results: dict[str, bool] = {}
    for student in MASKED_STUDENTS:
        sigma = activation(student)
        mask = activation_mask(sigma)
        for j in range(1, highest + 1):
            vanishes = {
                tau: is_exactly_zero(
                    expect(sigma.expr.subs(z, tau * z) * sp.hermite_prob(j, z), z), student
                )
                for tau in (sp.Rational(1, 2), sp.S.One, sp.Integer(2))
            }
            results[f"degree {j} of {student}, first step"] = mask.admits(j, 1) != vanishes[1]
            results[f"degree {j} of {student}, later"] = mask.admits(j, 2) != all(vanishes.values())
    return identities_hold(results, "degrees pass where averages do not vanish")


DIGITS = 20
# Students with the degrees, of the first five, that vanish.
_MASKED = {"relu": {3, 5}, "softplus": {3, 5}, "erf": {2, 4}, "tanh": {2, 4}}
_LENGTHS = (sp.Rational(1, 2), sp.Integer(2))


@evidence(
    "activation-masks", "certified", "degrees that vanish, and those that do not: four students"
)
def masks(students: tuple[str, ...] = tuple(_MASKED)) -> Finding:
    """Coefficients at lengths other than one: exactly zero, or proven not to be."""
    require_flint()
    results: dict[str, bool] = {}
    for name in students:
        sigma = activation(name)
        for tau in _LENGTHS:
            scaled = sigma.expr.xreplace({variable: tau * variable})
            result = hermite_coefficients(scaled, 5).enclosures(DIGITS)
            for k, value in enumerate(result[1:], start=1):
                if k in _MASKED[name]:
                    held = value.is_exact and value.midpoint == 0
                else:
                    held = not value.contains_zero
                results[f"degree {k} of {name} at τ = {tau}"] = held
    return decided(results, "degrees vanish exactly, or are proven not to")


MASKED = (("relu", "x1 + He(2, x1)*x2"), ("erf", "x1 + x1*x2"))


@evidence("activation-masks", "simulation", "directions that relu and erf miss, and others find")
def sampled_activation_masks(
    dimension: int = 120, networks: int = 24, samples_per_dimension: int = 64, seed: int = SEED
) -> Finding:
    """Directions that relu and erf miss in two steps, and a student of all degrees finds."""
    plan = Plan(dimension, 2, networks, samples_per_dimension, seed)
    readouts = gaussian_readouts(2 * READOUTS)[::2]
    figures: dict[str, list[Figure]] = {}
    for student, text in MASKED:
        f = target(text)
        learned = staircase(f, 1, student=student, max_steps=2).final
        ((axis, _),) = axes_within(learned.orthogonal_complement(), np.eye(f.dimension))
        expected = float(axis @ expected_grams(f, plan, readouts)[2] @ axis)
        for kind, name, part in (
            ("outside", student, _UPDATES), ("inside", STUDENT.text, _SHARED),
        ):  # fmt: skip
            grams = [
                trained_on_readouts(f, plan, d, readouts, student=name).grams[:, 2, part, 0]
                for d in plan.sizes
            ]
            predicted = expected if kind == "inside" else 0.0
            figures[f"{name} on {text}"] = [direction_figure(kind, 2, axis, predicted, grams)]
    return _finding(_agree(*figures.values()), plan.description, figures)


declare_claim(
    "rotation-invariant-leap",
    title="The largest leap over all bases, without rotations",
    statement=(
        r"With $k(U)$ the lowest degree $\ge 1$ in $U^\perp$ of $F(\xi_U + q)$, $$\max_R "
        r"\mathrm{Leap}(f \circ R) = \max_{U \not\supseteq V^*} k(U) = \max_t k(U_t) ,\qquad "
        r"U_{t+1} = U_t + \text{range of the order-}k(U_t)\text{ tensors} .$$"
    ),
    source="the leap: Abbe, Boix-Adserà, Misiakiewicz, arXiv 2302.11055; the closure: derived here",
    status=Status.DERIVED_HERE,
)


@evidence("rotation-invariant-leap", "exact", "random rational bases and subspaces; attained")
def isotropic_leap_over_rotations(drawn: int = 8, rotations: int = 4) -> Finding:
    """The rotation-invariant leap against leaps in rotated bases, and conditional orders."""
    generator = random.Random(_SEED)
    results: dict[str, bool] = {}
    for f in _targets(drawn):
        leap = isotropic_leap(f)
        source = spans_of(f)
        results[f"{f}: attained at {leap.stuck_at}"] = (
            source.conditional_order(leap.stuck_at) == leap
        )
        for _ in range(rotations):
            rotation = random_rotation(f.dimension, generator)
            turned = rotated(f, rotation)
            results[f"{f} in the basis {rotation.tolist()}"] = coordinate_leap(turned) <= leap
            results[f"{f}: the leap is invariant under {rotation.tolist()}"] = (
                isotropic_leap(turned) == leap
            )
            count = generator.randrange(f.dimension)
            subspace = Subspace.spanned_by(rotation.tolist()[:count], f.dimension)
            order = source.conditional_order(subspace)
            results[f"{f}: conditional order at {subspace}"] = order is None or order <= leap
    return identities_hold(results, "no basis and no subspace exceeds the leap, and one attains")


declare_claim(
    "generative-leap",
    title="Certificates for the generative leap",
    statement=(
        r"The lowest order $k$ with $\mathbb{E}[\mathrm{He}_k(z) \mid y] \not\equiv 0$ is 1 for a "
        r"polynomial that is not even and 2 for an even one; it is at least 2 for a target with a "
        r"symmetry that moves $V^*$, and at most the rotation-invariant leap."
    ),
    source=(
        "the exponent: Damian, Pillaud-Vivien, Lee, Bruna, arXiv 2403.05529; several directions: "
        "Damian, Lee, Bruna, arXiv 2506.05500; the certificates: derived here"
    ),
    status=Status.DERIVED_HERE,
)

UNIVARIATE = (
    "He(3, x1)", "He(3, x1) - x1", "He(4, x1)", "x1**2", "x1**4 - x1**2", "He(4, x1) + He(3, x1)",
    "He(2, x1) + x1", "x1**4 - 2*x1**2 + x1/4", "x1**6 - 3*x1**2",
)  # fmt: skip
BLIND = "x1**2*exp(-x1**2)"
r"""Its label shows nothing below order 4: the preimages of y weigh :math:`\pm 1` in t = z²."""

INVARIANT = ("x1*x2", "x1*x2*x3", "He(3, x1)*He(3, x2)", "x1 + x2 + x1*x2", "He(2, x1) - He(2, x2)")


@evidence("generative-leap", "quadrature", "sums over all preimages of a label, to 30 digits")
def generative_exponents(digits: int = 30) -> Finding:
    r"""Generative exponents against :math:`\mathbb{E}[\mathrm{He}_k(z) \mid y]` by preimages."""
    results: dict[str, bool] = {}
    for text in (*UNIVARIATE, BLIND):
        result = generative_leap(text)
        lowest = exponent_by_preimages(target(text), digits)
        results[f"{text}: {lowest}, {result}"] = (
            result.lower <= lowest and (result.upper is None or lowest <= result.upper)
        ) and (text == BLIND or result.value == lowest)
    for text in INVARIANT:
        result = generative_leap(text)
        leap = isotropic_leap(text)
        # Reflections and permutations leave each of them invariant: 2 at least.
        results[f"{text}: {result}"] = result.lower == 2 and (result.upper or leap) <= leap
    return identities_hold(results, "generative exponents are those of the preimages")


def exponent_by_preimages(f: Target, digits: int, points: int = 5) -> int:
    r"""Return the lowest k with :math:`\sum_z \mathrm{He}_k(z)\,\varphi(z)/|f'(z)| \ne 0`.

    For some y, that is; the sum runs over its preimages z. Below half of the digits it counts as 0.
    """
    (x,) = f.variables
    ctx = local_context(digits)
    slope, value = (compiled(e, [x], ctx) for e in (sp.diff(f.expr, x), f.expr))
    labels = [value(ctx.mpf(3 * i + 1) / 11) for i in range(points)]
    for k in range(1, 7):
        hermite = compiled(sp.hermite_prob(k, x), [x], ctx)
        for y in labels:
            terms = [hermite(z) * ctx.npdf(z) / abs(slope(z)) for z in _preimages(f, value, y, ctx)]
            if abs(ctx.fsum(terms)) > ctx.mpf(10) ** (-digits // 2) * max(map(abs, terms)):
                return k
    raise UndecidedError(f"no order up to 6 shows in the preimages of {f}")


def _preimages(f: Target, value: Callable[[Any], Any], y: Any, ctx: Any) -> list[Any]:
    """Real preimages of a label: between all sign changes on a fine grid."""
    grid = [ctx.mpf(i) / 64 for i in range(-64 * 8, 64 * 8 + 1)]
    signs = [value(z) - y for z in grid]
    result = []
    for a, b, below, above in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if below == 0:
            result.append(a)
        elif below * above < 0:
            result.append(ctx.findroot(lambda z: value(z) - y, (a, b), solver="anderson"))
    return result


declare_claim(
    "conditional-projections",
    title="Residual norms without orthonormal frames",
    statement=(
        r"$D = \langle (I - P_U)\xi, \nabla\rangle$ has the eigenvalue $j$ on the functions of "
        r"degree $j$ in $x_\perp$, so that the norms $n_j = \|P_{U,=j} f\|^2$ solve $\sum_j j^i "
        r"n_j = \langle F, D^i F\rangle$, and $\|P_{U,>0} f\|^2 = \mathbb{E}\,\mathrm{Var}"
        r"(f \mid P_U x)$."
    ),
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("conditional-projections", "exact", "explicit frames, and variances by definition")
def projections_in_frames(drawn: int = 8) -> Finding:
    """Residual norms by the operator method against explicit orthonormal frames."""
    generator = random.Random(_SEED + 1)
    results: dict[str, bool] = {}
    for f in _targets(drawn):
        rotation = random_rotation(f.dimension, generator)
        expansion = f.expansion.rotate(rotation)
        for count in range(f.dimension + 1):
            # Columns of the rotation are the images of the axes.
            columns = [list(rotation.col(i)) for i in range(count)]
            result = residual_norms(f, Subspace.spanned_by(columns, f.dimension))
            terms = expansion.he_coefficients()
            direct = [
                sp.Add(
                    *(
                        c**2 * sp.Mul(*map(sp.factorial, alpha))
                        for alpha, c in terms.items()
                        if sum(alpha[count:]) > degree
                    )
                )
                for degree in range(len(result))
            ]
            results[f"{f}, {count} columns of {rotation.tolist()}"] = list(result) == direct
        inside = Subspace.spanned_by([[1, *range(2, f.dimension + 1)]], f.dimension)
        variance = residual_norms(f, inside)[0]
        results[f"{f}: variance given {inside}"] = variance == conditional_variance(f, inside)
    return identities_hold(results, "residual norms agree with explicit frames")


def conditional_variance(f: Target, subspace: Subspace) -> sp.Expr:
    r"""Return :math:`\mathbb{E}\,\mathrm{Var}(f \mid P_U x)` by definition."""
    inside, outside = orthogonal_frame(subspace)
    s, q, expr = _in_frame(f, inside, outside)
    mean = _averaged(expr, s, q, outside)
    square = sp.Add(*(c * _monomial(s, powers) for powers, c in mean.items())) ** 2
    explained = _averaged(sp.expand(square), (), s, inside).get((), sp.S.Zero)
    return sp.expand(mean_of_polynomial(sp.expand(f.expr**2), f.variables) - explained)


def _monomial(symbols: Sequence[sp.Symbol], powers: Sequence[int]) -> sp.Expr:
    return sp.Mul(*(x**n for x, n in zip(symbols, powers, strict=True)))
