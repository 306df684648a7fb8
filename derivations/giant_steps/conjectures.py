r"""Conjectures of Dandi et al. (arXiv 2305.18270) held against networks, target by target.

Conjecture 1: with n = Θ(d) samples a step and a rate of order p, the first layer has learned
exactly U_t after t steps. Conjecture 3: what ridge regression on p features leaves of the target is
at least :math:`\|P_{U,>\kappa} f\|^2 + o(1)`. Random targets are drawn, U_t is computed by row
reduction, and networks are trained at two sizes, d/2 and d, with the same n/d. Every disagreement
is reported with its target.

The rules:

- The student is :math:`\sin(z + \pi/4)`: bounded, and with Hermite coefficients that vanish at no
  degree and no length of the weights. Relu misses odd degrees, odd activations even ones. Readouts
  are 8 quantiles of a Gaussian and their negatives, for 4 pairs of neurons each: with ±1 fewer
  directions are reached. The rate is 2p/‖f‖, so that learned overlaps are of order one.
- Measured along a direction are mean squares of updates, at most 1/d above their limit. Twice the
  value at d less that at d/2 is free of 1/d: the *signal*, with a standard error over networks. The
  *resolution* is the `LEVEL` quantile of Student's distribution, in standard errors, and what the
  extrapolation from d added or took off, for 1/d is not all that depends on d where starts grow
  from step to step. The signal is *seen* if it exceeds the resolution.
- "rank": the rank that :mod:`.population_dynamics` proves on the population loss. Less than dim U_t
  after t steps is disagreement: what is not learned there is too weak for "inside".
- "inside": the axes, within U_t, of the overlaps that the exact population dynamics of the same
  network predict (:mod:`.population_dynamics`), with the squares predicted. Measured are products
  of the updates of different neurons with the same readout ("shared" of
  :mod:`...numeric.networks.directions`), in which starts drop out. If less than `CLEAR`
  resolutions were predicted, the signal is too weak for this size: undecided, whatever was seen.
  Otherwise seen is agreement and not seen disagreement.
- "outside": an orthonormal basis of V* beyond U_t, and the squares of all updates, which see also
  what neurons do not share. Seen is disagreement. Not seen is agreement if the resolution is at
  most `VISIBLE`, a root mean square overlap of 0.1; else undecided.
- "residual": the error of ridge regression, twice that at d less that at d/2, lower than the bound
  by more than the resolution is disagreement. Otherwise it is agreement if the resolution is at
  most `FINE` ‖f‖² and the bound more than `CLEAR` resolutions, for a bound near zero says nothing;
  else undecided.
- A target with a disagreement is run again once, with other seeds and twice as many networks, and
  only what that run says counts: to 50 targets there are some hundred figures that chance may err
  on.

The rules were made while looking at targets and networks of seeds between 1000 and 5100, and of 0,
101, 113 and 123, which were those of the claims before. The claims now have a seed of which nothing
had been looked at when the rules were fixed: the number of the preprint.

Targets are drawn from :class:`.TargetFamily`.
"""

from __future__ import annotations

import itertools
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...errors import AssumptionError, ParameterError
from ...numeric.arguments import whole_number
from ...numeric.networks.directions import PARTS
from ...numeric.networks.network import Network
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import progress_bar
from ...pages import Block, Listing
from ...result import Result, quantity
from ...symbolic.expressions.activations import activation
from ...symbolic.leaps.staircase import staircase
from ...symbolic.targets.projections import residual_norms
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.subspaces import Subspace
from ...symbolic.targets.target import Target, closed_target as read_target
from ..claims import Finding
from ..conjectures.random_targets import TargetFamily
from ..conjectures.store import PieceStore
from ..first_gradient.training import network_functions
from .learned_directions import GiantStepsResult, take_giant_steps
from .population_dynamics import (
    PopulationStudent,
    gaussian_readouts,
    population_overlaps,
    population_ranks,
)


class Outcome(StrEnum):
    """What networks say of a prediction."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Figure:
    """One measured number beside its prediction.

    Attributes
    ----------
    kind : str
        What was predicted, such as "inside": figures of one kind are counted together.
    where : str
        Step and direction.
    predicted : float
        What the networks should tend to.
    measured, resolution : float
        Free of corrections of order 1/d, and how far that can be trusted.
    """

    kind: str
    where: str
    predicted: float
    measured: float
    resolution: float
    outcome: Outcome

    def __str__(self) -> str:
        return (
            f"{self.kind}, {self.where}: predicted {self.predicted:.2g}, measured "
            f"{self.measured:.2g} ± {self.resolution:.1g}: {self.outcome.value}"
        )


@dataclass(frozen=True, repr=False)
class TargetOutcome(Result):
    """What was seen of one target.

    Attributes
    ----------
    target : str
        Text that reads back.
    chain : tuple of str
        The predicted U_1, U_2, ….
    repeated : bool
        Whether a first run disagreed and this is the second one.
    """

    _document = "outcome of a target"
    _derived = ("outcome",)

    target: str = field(metadata=quantity("target"))
    chain: tuple[str, ...]
    figures: tuple[Figure, ...]
    repeated: bool = False

    @property
    def outcome(self) -> Outcome:
        """Disagreement if any figure disagrees, agreement if all agree."""
        result = {figure.outcome for figure in self.figures}
        if Outcome.DISAGREES in result:
            return Outcome.DISAGREES
        return Outcome.AGREES if result == {Outcome.AGREES} else Outcome.UNDECIDED

    def page(self) -> Iterable[Block]:
        """Return the outcome and the figures that do not agree."""
        again = ", in a second run" if self.repeated else ""
        yield f"{self.target}: {self.outcome.value}{again}; {' ⊂ '.join(self.chain)}"
        others = [str(f) for f in self.figures if f.outcome is not Outcome.AGREES]
        if others:
            yield Listing(others, mark="")


@dataclass(frozen=True, repr=False)
class ConjectureReport(Result):
    """What all targets say of a conjecture.

    Attributes
    ----------
    conjecture : str
        Identifier of the claim.
    targets : tuple of TargetOutcome
    description : str
        Sizes and numbers of networks.
    """

    _document = "report on a conjecture"

    conjecture: str = field(metadata=quantity("conjecture"))
    targets: tuple[TargetOutcome, ...]
    description: str

    @property
    def disagreements(self) -> tuple[TargetOutcome, ...]:
        """The targets that disagree: candidates for counterexamples."""
        return tuple(t for t in self.targets if t.outcome is Outcome.DISAGREES)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of figures that occur."""
        return tuple(sorted({f.kind for t in self.targets for f in t.figures}))

    def count(self, outcome: Outcome, kind: str | None = None) -> int:
        """Return how many figures of a kind, or of all kinds, have an outcome."""
        figures = (f for t in self.targets for f in t.figures if kind in (None, f.kind))
        return Counter(f.outcome for f in figures)[outcome]

    def agreement(self, kind: str | None = None) -> float:
        """Return the share of agreement among decided figures; NaN if there are none."""
        agree = self.count(Outcome.AGREES, kind)
        decided = agree + self.count(Outcome.DISAGREES, kind)
        return agree / decided if decided else math.nan

    @property
    def summary(self) -> str:
        """The figures that decide, and every disagreement."""
        parts = [
            f"{kind}: "
            + ", ".join(f"{self.count(outcome, kind)} {_VERBS[outcome]}" for outcome in Outcome)
            for kind in self.kinds
        ]
        outcomes = Counter(t.outcome for t in self.targets)
        whole = ", ".join(f"{outcomes[outcome]} {_VERBS[outcome]}" for outcome in Outcome)
        text = f"{len(self.targets)} targets ({whole}), {self.description}; {'; '.join(parts)}"
        if self.disagreements:
            text += "; disagreements: " + ", ".join(t.target for t in self.disagreements)
        return text

    def page(self) -> Iterable[Block]:
        """Return the summary, and what was seen of each target."""
        yield self.summary
        yield from self.targets

    def finding(self) -> Finding:
        """Return the report as evidence: no disagreement, and agreement on figures of all kinds."""
        agree = all(self.count(Outcome.AGREES, kind) for kind in self.kinds)
        details = {
            "agreement": {kind: self.agreement(kind) for kind in self.kinds},
            "targets": [t.to_dict() for t in self.targets],
        }
        passed = bool(self.kinds) and agree and not self.disagreements
        return Finding(passed, self.summary, details)


_VERBS = {Outcome.AGREES: "agree", Outcome.DISAGREES: "disagree", Outcome.UNDECIDED: "undecided"}


Array = NDArray[np.float64]

STUDENT = PopulationStudent.SHIFTED_SINE
READOUTS = 8
REPLICAS = 4
RATE = 2.0
LEVEL = 1e-3
VISIBLE = 0.01
CLEAR = 3.0


@dataclass(frozen=True)
class Plan:
    """Sizes and seeds of a run; the fields are the arguments of `check_conjecture_1`."""

    dimension: int
    steps: int
    networks: int
    samples_per_dimension: int
    seed: int

    def __post_init__(self) -> None:
        for name, least in (
            ("dimension", 40), ("steps", 1), ("networks", 2), ("samples_per_dimension", 1),
            ("seed", 0),
        ):  # fmt: skip
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        if self.dimension % 2:
            raise ParameterError(
                f"dimension must be even, the smaller size is half of it; got {self.dimension}"
            )

    @property
    def sizes(self) -> tuple[int, int]:
        """The two input dimensions."""
        return self.dimension // 2, self.dimension

    @property
    def description(self) -> str:
        """The sizes in words."""
        return (
            f"{self.steps} steps of {self.samples_per_dimension} d samples, d = {self.sizes[0]} "
            f"and {self.sizes[1]}, {self.networks} networks each"
        )

    def entropy(self, *key: object) -> int:
        """A seed that depends on nothing but the seed of the run and the key."""
        text = repr(key).encode()
        state = np.random.SeedSequence([self.seed, zlib.crc32(text), len(text)])
        return int(state.generate_state(1, np.uint64)[0])

    def again(self) -> Plan:
        """The plan of the second run of a target."""
        return replace(self, networks=2 * self.networks, seed=self.seed + 2**32)


# ------------------------------------------------------------------ what is seen


def axes_within(subspace: Subspace, gram: Array) -> list[tuple[Array, float]]:
    """Return the orthonormal axes of a quadratic form within a subspace, with its values."""
    if subspace.is_zero:
        return []
    basis = np.linalg.qr(np.array(subspace.numeric()).T)[0]
    values, vectors = np.linalg.eigh(basis.T @ gram @ basis)
    return [
        (basis @ vector, max(float(value), 0.0))
        for value, vector in zip(values[::-1], vectors.T[::-1], strict=True)
    ]


def direction_figure(
    kind: str, step: int, axis: Array, predicted: float, grams: Sequence[Array]
) -> Figure:
    """Return what was seen along an axis, by the rules of the module.

    Parameters
    ----------
    kind : {"inside", "outside"}
    axis : ndarray, shape (r,)
    predicted : float
        The mean squared overlap to be seen inside; 0 outside.
    grams : two ndarrays, shape (networks, r, r)
        Mean products of updates at the two sizes.
    """
    half, full = (np.einsum("i,sij,j->s", axis, gram, axis) for gram in grams)
    signal, resolution = extrapolated(half, full)
    seen = signal > resolution
    if kind == "inside":
        outcome = Outcome.AGREES if seen else Outcome.DISAGREES
        if not predicted > CLEAR * resolution:
            outcome = Outcome.UNDECIDED
    else:
        outcome = Outcome.AGREES if resolution <= VISIBLE else Outcome.UNDECIDED
        if seen:
            outcome = Outcome.DISAGREES
    # A sign of its own for each axis means nothing.
    sign = 1 if axis[np.argmax(abs(axis))] > 0 else -1
    where = f"step {step}, ({', '.join(f'{sign * v + 0.0:.3g}' for v in axis)})"
    return Figure(kind, where, predicted, signal, resolution, outcome)


def extrapolated(half: Array, full: Array) -> tuple[float, float]:
    """Return twice the mean at d less that at d/2, and how far that can be trusted.

    Parameters
    ----------
    half, full : ndarray
        One value for each network, at least two.
    """
    parts = (full.var(ddof=1) * 4 / len(full), half.var(ddof=1) / len(half))
    variance = float(sum(parts))
    moved = float(full.mean() - half.mean())
    value = float(full.mean()) + moved
    # Where 1/d is not all that depends on d, the rest may be as large as what was taken off.
    if variance == 0:
        return value, abs(moved)
    # Degrees of freedom after Welch and Satterthwaite.
    freedom = variance**2 / (parts[0] ** 2 / (len(full) - 1) + parts[1] ** 2 / (len(half) - 1))
    return value, float(-special.stdtrit(freedom, LEVEL)) * math.sqrt(variance) + abs(moved)


# ------------------------------------------------------------------ networks


def trained_on_readouts(
    f: Target, plan: Plan, dimension: int, readouts: Array, **options: Any
) -> GiantStepsResult:
    """Train networks with given positive readouts and their negatives, `REPLICAS` pairs each."""
    return trained(
        f, plan, dimension, width=2 * REPLICAS * len(readouts), replicas=REPLICAS,
        readout=tuple(readouts.tolist()), **options,
    )  # fmt: skip


def expected_grams(f: Target, plan: Plan, readouts: Array, rate: float = RATE) -> list[Array]:
    """Return mean products of overlaps of such networks on the population loss, for each step."""
    paired = np.repeat(readouts, 2 * REPLICAS)
    paired[1::2] *= -1
    overlaps = population_overlaps(
        f, plan.steps, readouts=paired, step_size=rate / _norm(f), student=STUDENT
    )
    return [u.T @ u / len(u) for u in overlaps]


def _norm(f: Target) -> float:
    return math.sqrt(float(f.norm_squared))


def trained(
    f: Target, plan: Plan, dimension: int, *, student: str = STUDENT.text, rate: float = RATE,
    ridge: RidgeReadout | None = None, **options: Any,
) -> GiantStepsResult:  # fmt: skip
    """Train the networks of one size, in pairs; further options are those of `Network`."""
    functions = network_functions(activation(student), f)
    network = Network(
        student=functions.student, student_derivative=functions.student_derivative,
        teacher=functions.target, directions=f.dimension, dimension=dimension, paired=True,
        steps=plan.steps, step_size=rate / _norm(f),
        step_samples=plan.samples_per_dimension * dimension, **options,
    )  # fmt: skip
    entropy = plan.entropy(str(f), dimension)
    result = take_giant_steps(network, ridge, seeds=plan.networks, seed=entropy, progress=False)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


FINE = 0.1
TEST_SAMPLES = 40_000
"""Squares of polynomials have heavy tails: with fewer, they are most of the scatter."""

RULES_VERSION = 4
"""Raised whenever the same arguments give other outcomes than before, so that files do not mix."""


def check_conjecture_1(
    targets: int | Iterable[Target | str] = 50,
    dimension: int = 400,
    steps: int = 3,
    *,
    networks: int = 12,
    samples_per_dimension: int = 32,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> ConjectureReport:
    r"""Hold Conjecture 1 against networks: after t steps exactly U_t is learned.

    Parameters
    ----------
    targets : int, or iterable of Target or str
        How many are drawn from :class:`.TargetFamily` with this seed; or polynomials of one's own.
    dimension : int
        The larger size d, even, at least 40; the smaller one is half of it.
    steps : int
        Number T of giant steps.
    networks : int
        Networks for each target and size, at least 2.
    samples_per_dimension : int
        n/d of every step.
    seed : int
        Fixes targets and networks. What is measured of a target does not depend on the others.
    store : path, optional
        Folder for finished targets: the same call resumes after an interruption, and more targets
        extend a run.
    progress : bool
        Show a progress bar, from the second second on.

    Returns
    -------
    ConjectureReport
        With figures of the kinds "rank", "inside" and "outside".

    Raises
    ------
    ParameterError
        If an argument is out of range.
    AssumptionError
        If a target is not a polynomial, or constant.
    """
    plan = Plan(dimension, steps, networks, samples_per_dimension, seed)
    return _report("conjecture-1", learned_directions, targets, plan, store, progress)


def check_conjecture_3(
    targets: int | Iterable[Target | str] = 20,
    dimension: int = 400,
    steps: int = 2,
    *,
    networks: int = 24,
    samples_per_dimension: int = 16,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> ConjectureReport:
    r"""Hold Conjecture 3 against networks, for κ = 1: error at least :math:`\|P_{U,>1} f\|^2`.

    The first layer takes T steps, as for Conjecture 1 but with p = d neurons; ridge regression of
    the readout has as many fresh samples as a step, and its penalty is chosen on a fifth of them.

    Parameters and errors are those of :func:`check_conjecture_1`; targets that are drawn have a
    bound of more than `CLEAR` times `FINE`. The figures are of the kind "residual", divided by
    ‖f‖².
    """
    plan = Plan(dimension, steps, networks, samples_per_dimension, seed)
    if plan.dimension % 4:
        raise ParameterError(
            f"dimension must be a multiple of 4, of pairs at both sizes; got {plan.dimension}"
        )
    return _report(
        "conjecture-3", ridge_residual, targets, plan, store, progress, _has_visible_bound
    )


def _report(
    conjecture: str,
    examine: Callable[[Target, Plan], TargetOutcome],
    targets: int | Iterable[Target | str],
    plan: Plan,
    store: str | os.PathLike[str] | None,
    progress: bool,
    admits: Callable[[Target, int], bool] = lambda f, steps: True,
) -> ConjectureReport:
    chosen = _chosen(targets, plan, admits)
    keeper = None
    if store is not None:
        key = {"conjecture": conjecture, "rules_version": RULES_VERSION, **asdict(plan)}
        keeper = PieceStore(store, key, "target")
    outcomes: list[TargetOutcome] = []
    try:
        with progress_bar(progress, len(chosen), "target") as bar:
            for f in chosen:
                outcome = None
                if keeper is not None:
                    outcome = keeper.load(str(f), TargetOutcome.from_dict)
                if outcome is None:
                    outcome = examine(f, plan)
                    if outcome.outcome is Outcome.DISAGREES:
                        outcome = replace(examine(f, plan.again()), repeated=True)
                    if keeper is not None:
                        keeper.save(str(f), outcome.to_dict())
                outcomes.append(outcome)
                bar.update()
    except KeyboardInterrupt:
        selected = (
            "the same call resumes there" if store is not None else "without a store, none kept"
        )
        raise KeyboardInterrupt(
            f"after {len(outcomes)} of {len(chosen)} targets; {selected}"
        ) from None
    return ConjectureReport(conjecture, tuple(outcomes), plan.description)


def _chosen(
    targets: int | Iterable[Target | str], plan: Plan, admits: Callable[[Target, int], bool]
) -> tuple[Target, ...]:
    if isinstance(targets, Target | str):
        targets = (targets,)
    if not isinstance(targets, Iterable):
        drawn = (f for f in TargetFamily(seed=plan.seed) if admits(f, plan.steps))
        return tuple(itertools.islice(drawn, whole_number("targets", targets)))
    result = tuple(read_target(f, argument="targets") for f in targets)
    if not result:
        raise ParameterError("targets must hold at least one target, or be their number")
    for f in result:
        if f.expansion.degree < 1:
            raise AssumptionError(f"target {f.name!r} is constant: there is nothing to learn")
    return result


def predicted_chain(f: Target, steps: int) -> tuple[Subspace, ...]:
    """Return U_1, …, U_T; the last of a shorter staircase is repeated."""
    result = staircase(f, 1, max_steps=steps).subspaces[1 : steps + 1]
    last = result[-1] if result else Subspace.zero(f.dimension)
    return (*result, *(last for _ in range(steps - len(result))))


# ------------------------------------------------------------------ conjecture 1


def learned_directions(f: Target, plan: Plan) -> TargetOutcome:
    """Train networks on a target, and hold every direction against the prediction."""
    chain = predicted_chain(f, plan.steps)
    readouts = gaussian_readouts(2 * READOUTS)[::2]
    results = [trained_on_readouts(f, plan, d, readouts) for d in plan.sizes]
    expected = expected_grams(f, plan, readouts)
    relevant = spans_of(f).relevant_subspace
    figures = rank_figures(f, chain)
    for t, learned in enumerate(chain, start=1):
        shared, updates = (
            [result.grams[:, t, PARTS.index(part), 0] for result in results]
            for part in ("shared", "updates")
        )
        for axis, size in axes_within(learned, expected[t]):
            figures.append(direction_figure("inside", t, axis, size, shared))
        rest = relevant.intersection(learned.orthogonal_complement())
        for axis, _ in axes_within(rest, np.eye(f.dimension)):
            figures.append(direction_figure("outside", t, axis, 0.0, updates))
    return TargetOutcome(str(f), tuple(map(str, chain)), tuple(figures))


def rank_figures(f: Target, chain: Sequence[Subspace]) -> list[Figure]:
    """Hold dimensions against the ranks that networks on the population loss have for certain."""
    try:
        result = population_ranks(f, len(chain))
    except ParameterError:
        # Exponential neurons explode on a steep target, or after many steps.
        seen = [(0, float(f.dimension), Outcome.UNDECIDED)] * len(chain)
    else:
        seen = [
            (rank, left, Outcome.AGREES if rank == learned.dimension else Outcome.DISAGREES)
            for rank, left, learned in zip(
                result.ranks[1:], result.remainders[1:], chain, strict=True
            )
        ]
    return [
        Figure("rank", f"step {t}", learned.dimension, *figure)
        for t, (learned, figure) in enumerate(zip(chain, seen, strict=True), start=1)
    ]


# ------------------------------------------------------------------ conjecture 3


def ridge_residual(f: Target, plan: Plan) -> TargetOutcome:
    """Train first and second layers on a target, and hold the error against its bound."""
    chain = predicted_chain(f, plan.steps)
    size = float(f.norm_squared)
    bound = residual_bound(f, chain[-1])
    half, full = (
        trained(
            f, plan, d, width=d, readout="gaussian", ridge=RidgeReadout(
                plan.samples_per_dimension * d, intercept=True, test_samples=TEST_SAMPLES
            ),
        ).test_error / size
        for d in plan.sizes
    )  # fmt: skip
    error, resolution = extrapolated(half, full)
    if error < bound - resolution:
        outcome = Outcome.DISAGREES
    elif resolution <= FINE and bound > CLEAR * resolution:
        outcome = Outcome.AGREES
    else:
        outcome = Outcome.UNDECIDED
    figure = Figure("residual", f"step {plan.steps}", bound, error, resolution, outcome)
    return TargetOutcome(str(f), tuple(map(str, chain)), (figure,))


def residual_bound(f: Target, learned: Subspace) -> float:
    r"""Return :math:`\|P_{U,>1} f\|^2/\|f\|^2`."""
    norms = residual_norms(f, learned)
    return float(norms[1] / f.norm_squared) if len(norms) > 1 else 0.0


def _has_visible_bound(f: Target, steps: int) -> bool:
    """Whether the finest resolution that is asked for decides."""
    return residual_bound(f, predicted_chain(f, steps)[-1]) > CLEAR * FINE
