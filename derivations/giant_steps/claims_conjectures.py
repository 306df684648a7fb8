"""Claims: two conjectures on giant steps, hunted for counterexamples among random targets."""

from __future__ import annotations

from ..claims import Finding, Option, Status, declare_claim, evidence
from .claims_staircases import SEED, projections_in_frames, ranks_of_population_dynamics
from .conjectures import check_conjecture_1, check_conjecture_3

_DKLPS = "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270"
_STORE = Option("store", "folder for finished targets", None, None)


def _options(steps: int, networks: int, multiple: int) -> tuple[Option, ...]:
    return (
        Option("targets", "how many random targets are tried", 3),
        Option("dimension", "the larger input dimension d", 120, 40, multiple),
        Option("steps", "giant steps", steps),
        Option("networks", "networks for each target and size", networks, 2),
        Option("seed", "entropy of targets and networks", SEED, 0),
        _STORE,
    )


declare_claim(
    "conjecture-1",
    title="After t giant steps exactly U_t is learned",
    statement=(
        r"With $n = \Theta(d)$ fresh samples for each step, generic readouts and a rate of order "
        r"$p$, the neurons have overlaps of order one with all directions of $U_t$, and only with "
        r"those, after $t$ steps."
    ),
    source=f"{_DKLPS}, conjecture 1; proved there for two steps in expectation",
    status=Status.CONJECTURE,
)

evidence(
    "conjecture-1",
    "certified",
    "ranks of the overlaps of networks on the population loss are the dimensions of U_t",
)(ranks_of_population_dynamics)


@evidence(
    "conjecture-1",
    "simulation",
    "a few random targets at two sizes, or as many as the options say",
    options=_options(steps=3, networks=12, multiple=2),
)
@evidence(
    "conjecture-1",
    "simulation",
    "50 random targets, d = 200 and 400",
    slow=True,
    options=(_STORE,),
    arguments={"dimension": 400, "networks": 12, "seed": SEED, "steps": 3, "targets": 50},
)
def conjecture_1(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 1."""
    return check_conjecture_1(
        targets, dimension, steps, networks=networks, samples_per_dimension=32, seed=seed,
        store=store, progress=progress,
    ).finding()  # fmt: skip


declare_claim(
    "conjecture-3",
    title="Ridge regression on learned features leaves what is of high degree outside U",
    statement=(
        r"With $n \asymp d^{\kappa_1}$ samples and $p \asymp d^{\kappa_2}$ neurons that have "
        r"learned $U$, ridge regression of the readout has an error of at least $\|P_{U,>\kappa} "
        r"f\|^2 + o(1)$, $\kappa = \min(\kappa_1, \kappa_2)$. Checked for $\kappa = 1$."
    ),
    source=f"{_DKLPS}, conjecture 3",
    status=Status.CONJECTURE,
)

evidence("conjecture-3", "exact", "the bound itself, against explicit frames")(
    projections_in_frames
)


@evidence(
    "conjecture-3",
    "simulation",
    "a few random targets at two sizes, or as many as the options say",
    options=_options(steps=2, networks=24, multiple=4),
)
@evidence(
    "conjecture-3",
    "simulation",
    "10 random targets, d = 200 and 400",
    slow=True,
    options=(_STORE,),
    arguments={"dimension": 400, "networks": 24, "seed": SEED, "steps": 2, "targets": 10},
)
def conjecture_3(
    targets: int, dimension: int, steps: int, networks: int, seed: int,
    store: str | None = None, progress: bool = False,
) -> Finding:  # fmt: skip
    """Agreement rates and every disagreement of random targets with Conjecture 3."""
    return check_conjecture_3(
        targets, dimension, steps, networks=networks, seed=seed, store=store, progress=progress
    ).finding()
