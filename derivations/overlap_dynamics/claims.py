"""Claims: one map of overlaps, its limits, its zeros, and networks that follow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from ...symbolic.expressions.activations import activation, z
from ...symbolic.leaps.staircase import staircase
from ..claims import Finding, Status, declare_claim, evidence
from ..first_gradient import spike_mapping as mapping
from ..identities import equal, identities_hold
from ..spiked_random_features.model import SpikedRandomFeatures
from . import physics
from .model import OverlapDynamics

# As they are shown; the checks take these.
_TEACHER = physics.step_rules().teacher
_SELF = physics.step_rules().self
_FLOW = physics.flow_rules().self

declare_claim(
    "overlap-map",
    title="Giant steps of narrow networks follow one map of overlaps",
    statement=(
        r"For $p, K = O(1)$ and $n = \alpha_0 d$ fresh samples in each step, as $d \to \infty$, "
        r"$M \leftarrow$ «teacher» and $Q_{jl} \leftarrow$ «self», X the old overlap, A and B "
        r"entries of $E[\psi r]$ and its transpose, G of $AC^{-1}A^\top$, S of "
        r"$E[\psi\psi^\top]$ with the noise of labels, $\kappa = 1/\alpha_0$, $\nu = 1$."
    ),
    source=physics.SOURCE,
    status=Status.DERIVED_HERE,
    formulas={"teacher": _TEACHER, "self": _SELF},
)


@evidence("overlap-map", "exact", "scalar products of rows after a step, pairs of samples counted")
def counted_pairs() -> Finding:
    r"""Means over batches of scalar products of rows with the teacher and with each other."""
    n, d = sp.symbols("n d", positive=True)
    x, a, b = physics.overlap, physics.gradient, physics.reverse
    shrunk, unit = 1 - physics.weight_decay, physics.step_size / n
    sizes = {physics.sampling: d / n, physics.pairs: 1 - 1 / n}
    # n (n - 1) pairs of different samples, whose inputs meet in population gradients, and n equal
    # ones, whose inputs have the squared length d.
    squares = unit**2 * (n * (n - 1) * physics.drift + n * d * physics.squares)
    results = {
        "with the teacher": sp.expand(_TEACHER - shrunk * x - unit * n * a) == 0,
        "of two rows": sp.expand(
            _SELF.subs(sizes) - shrunk**2 * x - shrunk * unit * n * (a + b) - squares
        ) == 0,
    }  # fmt: skip
    return identities_hold(results, "means over batches of n samples")


@evidence("overlap-map", "quadrature", "closed forms of erf neurons against grids of two variables")
def closed_forms() -> Finding:
    """Three steps of one neuron with averages in closed form, and by quadrature."""
    model = OverlapDynamics(
        student="erf", teacher="erf(x1)", teacher_overlaps=[[0.3]], alpha0=2.0, step_size=0.5,
        noise_variance=0.1,
    )  # fmt: skip
    exact, grids = (model.at(averages=how).trajectory(steps=3) for how in ("auto", "quadrature"))
    gap = max(
        float(np.max(np.abs(exact.column(name) - grids.column(name)))) for name in exact.columns
    )
    return Finding(gap < 1e-12, f"they differ by {gap:.1e}", {"difference": gap})


_SEEDS, _STANDARD_ERRORS = 16, 4.0


@evidence("overlap-map", "simulation", "two neurons, both layers trained, d = 800", slow=True)
def networks(*, progress: bool = False) -> Finding:
    """Overlaps and readouts of networks after 1, 3 and 6 steps against the map."""
    model = OverlapDynamics(
        student="erf", teacher="erf(x1) + erf(x2)", readout=[1.0, 1.0],
        self_overlaps=[[1, 0.1], [0.1, 1]], teacher_overlaps=[[0.3, 0.1], [0.0, 0.2]],
        alpha0=3.0, noise_variance=0.1, weight_decay=0.05, second_layer_step=0.2,
    )  # fmt: skip
    steps = [1, 3, 6]
    theory = model.trajectory(steps=6)
    found = model.simulate(
        steps=steps, dimension=800, seeds=_SEEDS, seed=19954225, progress=progress
    )
    scores = {}
    for name, values in (
        ("teacher_overlap", theory.teacher_overlaps),
        ("self_overlap", theory.self_overlaps),
        ("second_layer", theory.readouts),
    ):
        gap = (found.mean(name) - values[steps]) / found.standard_error(name)
        scores[name] = float(np.max(np.abs(gap)))
    worst = max(scores.values())
    return Finding(
        worst <= _STANDARD_ERRORS and math.isfinite(worst),
        f"{_SEEDS} networks: at most {worst:.1f} standard errors away",
        {"scores": scores},
    )


declare_claim(
    "overlap-limits",
    title="The map meets one giant step, population descent and online learning",
    statement=(
        r"From unit rows without overlap and an output of zero one step gives "
        r"$Q_{jj} = r^2 + c$, $Q_{jl} = r^2$, $M_j = r\gamma$ of spiked random features. For "
        r"$s \to 0$ at fixed $\varepsilon = s/\alpha_0$ the change of an overlap per time is "
        r"«flow», the equations of online learning, with their plateau at $Q = 1/3$, "
        r"$M = 1/\sqrt 6$ for two neurons $\mathrm{erf}(h/\sqrt 2)$ that learn two."
    ),
    source="Saad, Solla, Phys. Rev. E 52 (1995) 4225, for the plateau; meeting points derived here",
    status=Status.DERIVED_HERE,
    formulas={"flow": _FLOW},
)


@evidence("overlap-limits", "exact", "short steps, and the plateau of two neurons")
def plateau() -> Finding:
    """The limit of the map, and A = 0 at the published overlaps, by closed averages."""
    rules = physics.flow_rules()
    a, b, x = physics.gradient, physics.reverse, physics.overlap
    results = {
        "short steps of M": sp.expand(rules.teacher - a + physics.decay_rate * x) == 0,
        "short steps of Q": sp.expand(
            _FLOW - a - b + 2 * physics.decay_rate * x
            - physics.sampling_rate * physics.squares
        ) == 0,
    }  # fmt: skip
    model = OverlapDynamics(
        student="erf(z/sqrt(2))", teacher="erf(x1/sqrt(2)) + erf(x2/sqrt(2))", readout=[1, 1],
        self_overlaps=[[1, 0], [0, 1]], alpha0=math.inf,
    )  # fmt: skip
    third, root = sp.Rational(1, 3), 1 / sp.sqrt(6)
    gradients, error = model.system.exact_gradients(
        sp.Matrix([[third, third], [third, third]]), sp.Matrix([[root, root], [root, root]]), (1, 1)
    )
    published = 4 / sp.pi * (sp.pi / 6 - 2 * sp.asin(sp.Rational(1, 4)))
    results["no gradient on the plateau"] = all(sp.simplify(g) == 0 for g in gradients)
    results["its error"] = sp.simplify(error - published) == 0
    return identities_hold(results, "flow rules and the plateau")


@evidence("overlap-limits", "exact", "the first step of spiked random features, two pairs")
def exact_first_step() -> Finding:
    """Overlaps after a step whose network puts out nothing, against r, c and γ as formulas."""
    results = {}
    names = {mapping.step_size: physics.step_size, mapping.noise: physics.noise}
    for student, teacher in (("erf", "z - He(3, z)/4"), ("z + He(3, z)/6", "z")):
        sigma, label = activation(student), activation(teacher)
        slope, labels, line = (sigma.derivative, (z,)), (label.expr, (z,)), (z, (z,))

        def unit_rows(kinds: Sequence[Any], *numbers: int) -> sp.Expr:
            average = physics.closed_average(tuple(kinds), numbers)
            return average.xreplace({
                physics.covariance(i, j): sp.Integer(i == j) for i in range(4) for j in range(4)
            })  # fmt: skip

        along = unit_rows((slope, labels, line), 0, 1, 1)
        # Across the teacher the gradient of a label of mean zero vanishes.
        step = {physics.weight_decay: 0, physics.sampling: 1 / mapping.alpha0, physics.pairs: 1}
        step |= {physics.gradient: 0, physics.reverse: 0, physics.drift: along**2}
        squares = physics.squared_gradients().xreplace({physics.gradient: 1, physics.reverse: 1})
        spike = mapping.spike_mapping(sigma, label)
        r, c, gamma = (
            entry.xreplace(names)
            for entry in (spike.spike_strength, spike.bulk_variance, spike.alignment)
        )
        pair = f"{student} on {teacher}"
        after = _TEACHER.xreplace({**step, physics.overlap: 0, physics.gradient: along})
        results[f"{pair}: M = r γ"] = equal(after, r * gamma)
        for name, own, places, known in (
            ("Q_jj = r² + c", 1, (0, 0), r**2 + c), ("Q_jl = r²", 0, (0, 1), r**2)
        ):  # fmt: skip
            rest = max(places) + 1
            noise_free = unit_rows((slope, slope, labels, labels), *places, rest, rest)
            moments = {
                physics.overlap: noise_free, physics.other: unit_rows((slope, slope), *places)
            }  # fmt: skip
            after = _SELF.xreplace({
                **step, physics.overlap: own, physics.squares: squares.xreplace(moments)
            })  # fmt: skip
            results[f"{pair}: {name}"] = equal(after, known)
    return identities_hold(results, "one step from unit rows is spiked random features")


@evidence("overlap-limits", "quadrature", "the first step of spiked random features")
def first_step() -> Finding:
    """Overlaps after a step whose network has an output of 1e-7."""
    small = 1e-7
    model = OverlapDynamics(
        student="erf", teacher="erf(x1)", readout=[small, small], step_size=2 / small, alpha0=2.0,
        noise_variance=0.25,
    )  # fmt: skip
    found = model.trajectory(steps=1)
    spike = SpikedRandomFeatures("erf", "erf", step_size=2, alpha0=2, noise_variance=0.25).spike
    r, c, gamma = spike.spike_strength, spike.bulk_variance, spike.alignment
    pairs = {
        "diagonal": (found.self_overlaps[1, 0, 0], r**2 + c),
        "across": (found.self_overlaps[1, 0, 1], r**2),
        "teacher": (found.teacher_overlaps[1, 0, 0], r * gamma),
    }
    gap = max(abs(mine / other - 1) for mine, other in pairs.values())
    return Finding(gap < 1e-6, f"they differ by {gap:.1e}, the size of the output", {"gap": gap})


declare_claim(
    "overlap-zeros",
    title="Overlaps vanish in the directions that the staircase has not reached",
    statement=(
        r"From $M = 0$, $M_{\cdot k}$ is zero after $t$ steps of $n \asymp d$ samples exactly if "
        r"direction $k$ is not among those of the staircase after $t$ steps; what is small grows "
        r"by $|1 - \omega + s\lambda|$ in a step, $\lambda$ an eigenvalue of "
        r"$\partial A_u/\partial M$, and escapes from $d^{-1/2}$ in "
        r"$\log d/(2\log|1 - \omega + s\lambda|)$ steps."
    ),
    source="Dandi et al., arXiv 2305.18270, for the staircase; sizes and growth derived here",
    status=Status.DERIVED_HERE,
)

_STAIRS = (
    ("z + He(2, z)/2", "x1 + x1*x2"),
    ("erf", "x1 + x1*x2"),
    ("erf", "x1 + He(2, x1)*x2"),
    ("He(2, z)", "x1 + He(2, x2)"),
)


@evidence("overlap-zeros", "exact", "four pairs of student and target, three steps")
def zeros() -> Finding:
    """Which overlaps of two neurons vanish, to the last bit."""
    results = {}
    readout = [sp.Rational(1, 2), -sp.Rational(1, 4)]
    for student, teacher in _STAIRS:
        model = OverlapDynamics(
            student=student, teacher=teacher, readout=[float(a) for a in readout], step_size=0.1,
            alpha0=3.0,
        )  # fmt: skip
        found = model.trajectory(steps=3).teacher_overlaps
        stairs = staircase(teacher, 1, student=activation(student), readout=readout, max_steps=3)
        known = sp.zeros(model.directions)
        after = {step.number: step.after.projector() for step in stairs.steps}
        for step in range(1, 4):
            known = after.get(step, known)
            for k in range(model.directions):
                same = bool(found[step, :, k].any()) == (known[k, k] != 0)
                results[f"{student} on {teacher}, step {step}, direction {k + 1}"] = same
    return identities_hold(results, f"{len(_STAIRS)} pairs, three steps")


@evidence("overlap-zeros", "exact", "growth of a square that learns a square")
def growth() -> Finding:
    r"""The growth matrix of He_2 on He_2, 4a - 4a², and what a tiny overlap does."""
    model = OverlapDynamics(
        student="He(2, z)", teacher="He(2, x1)", readout=[0.3], step_size=0.1, alpha0=3.0
    )
    a = sp.Rational(3, 10)
    grown = model.at(teacher_overlaps=[[1e-9]]).trajectory(steps=1).column("M_1_1")
    return identities_hold(
        {
            "growth matrix": model.growth_matrix() == sp.Matrix([[4 * a - 4 * a**2]]),
            "a tiny overlap": abs(grown[1] / grown[0] - 1.084) < 1e-12,
        },
        "one neuron",
    )


declare_claim(
    "overlap-reused-batch",
    title="A batch that is used again shows what a fresh one hides",
    statement=(
        r"After a second step on the batch of the first one "
        r"$M'' = (1-\omega)M' + s\,E[\psi'_j u_k]$, where ψ' is ψ at the fields "
        r"$h'_j = g_j + s\,\kappa\,\psi_j$ of a sample that the network has seen; (h, g, u) are "
        r"Gaussian, $E[g_j h_l] = (1-\omega)Q_{jl} + s\,E[\psi_j h_l]$, $\kappa = 1/\alpha_0$. "
        r"Directions of a larger information exponent, which fresh batches of $n \asymp d$ do not "
        r"show, are learned in that step."
    ),
    source=(
        "Dandi, Troiani, Arnaboldi, Pesce, Zdeborová, Krzakala, arXiv 2402.03220, for the "
        "phenomenon; sizes derived here"
    ),
    status=Status.DERIVED_HERE,
)

_CUBIC = OverlapDynamics(
    student="erf", teacher="He(3, x1)/3", readout=[1.0], step_size=2.0, alpha0=2.0
)


@evidence("overlap-reused-batch", "quadrature", "many samples, and a cubic that fresh ones hide")
def large_batches() -> Finding:
    """For many samples both batches are one; at a finite ratio the cubic is seen in one alone."""
    wide = OverlapDynamics(
        student="erf", teacher="erf(2*x1)", readout=[1.0], step_size=0.7, alpha0=1e9,
        teacher_overlaps=[[0.2]],
    ).second_step()  # fmt: skip
    gap = abs(wide.same[0] - wide.fresh[0])
    cubic = _CUBIC.second_step()
    passed = gap < 1e-7 and abs(cubic.fresh[0]) < 1e-12 and abs(cubic.same[0] + 0.152168) < 1e-6
    return Finding(
        passed,
        f"alpha0 = 1e9: they differ by {gap:.1e}; erf on He_3, alpha0 = 2: {cubic.same[0]:.6f}, "
        "on fresh batches 0",
        {"gap": gap, "same": cubic.same[0]},
    )


@evidence("overlap-reused-batch", "simulation", "erf on He_3 at d = 1000, and a second direction")
def reused_networks(*, progress: bool = False) -> Finding:
    """Networks that take two steps on one batch."""
    scores = []
    for model in (
        _CUBIC,
        OverlapDynamics(
            student="erf", teacher="He(3, x1)/3 + x2/2", readout=[1.0], step_size=1.0,
            alpha0=2.0, weight_decay=0.1, second_layer_step=0.2,
        ),
    ):  # fmt: skip
        theory = model.second_step()
        found = model.simulate(
            steps=[2], dimension=1000, seeds=24, seed=24020322, fresh=False, progress=progress
        )
        error = found.standard_error("teacher_overlap").ravel()
        means = found.mean("teacher_overlap").ravel()
        scores += list(np.abs(means - theory.same) / error)
        # Of a fresh batch nothing is seen of the cubic.
        scores.append(_STANDARD_ERRORS if abs(means[0]) < 4 * error[0] else 0.0)
    worst = max(scores)
    return Finding(
        worst < _STANDARD_ERRORS,
        f"24 networks each: at most {worst:.1f} standard errors away, the cubic 4 from zero",
        {"scores": scores},
    )
