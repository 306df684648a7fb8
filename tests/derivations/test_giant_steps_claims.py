"""Claims about giant steps: options of their checks, and that their evidence can fail."""

from __future__ import annotations

import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from giantstep.__main__ import main
from giantstep.derivations import claims as registry
from giantstep.derivations.claims import (
    Check,
    Claim,
    EvidenceKind,
    Finding,
    Option,
    Status,
    claims,
    verify,
)
from giantstep.derivations.giant_steps import (
    claims_equivalence as claims_conjectures,
    claims_staircases as evidence,
)
from giantstep.derivations.giant_steps.conjectures import Outcome
from giantstep.errors import ParameterError
from giantstep.symbolic.leaps.staircase import staircase
from giantstep.symbolic.targets.projections import residual_norms
from giantstep.symbolic.targets.subspaces import Subspace
from giantstep.symbolic.targets.target import target


def claim_named(identifier):
    return next(claim for claim in claims() if claim.identifier == identifier)


# ------------------------------------------------------------------ options


@pytest.fixture
def recorded(monkeypatch):
    """A registry of two claims, the first with options, and what its checks are called with."""
    calls = []

    def compute(**given):
        calls.append(given)
        return Finding(True, "done")

    def with_a_bar(progress, **given):
        return compute(progress=progress, **given)

    options = (
        Option("targets", "how many", 3),
        Option("dimension", "input dimension", 100, 40, 2),
        Option("store", "folder", None, None),
    )
    sized = Check(EvidenceKind.SIMULATION, "sized", with_a_bar, False, options)
    plain = Check(EvidenceKind.EXACT, "plain", compute)
    both = tuple(
        Claim(name, "title", "$x$", "nowhere", Status.CONJECTURE, checks)
        for name, checks in (("with", (plain, sized)), ("without", (plain,)))
    )
    third = claim_named("conjecture-3")
    monkeypatch.setattr(registry, "claims", lambda: (*both, third))
    return calls


def test_options_reach_the_checks_that_know_them(recorded, tmp_path):
    store = str(tmp_path / "new" / "folder")
    verify(["with"], targets=np.int64(7), store=store, progress=False)
    assert recorded == [
        {}, {"targets": 7, "dimension": 100, "store": store, "progress": False},
    ]  # fmt: skip


def test_simulations_of_claims_have_the_seed_that_nobody_chose():
    for name in ("staircase-algorithm", "readout-clusters", "activation-masks"):
        for check in claim_named(name).checks:
            if check.kind is EvidenceKind.SIMULATION:
                parameters = inspect.signature(check.compute).parameters
                assert parameters["seed"].default == evidence.SEED == 2305_18270
    for name in ("conjecture-1", "conjecture-3"):
        assert claim_named(name).options["seed"].default == evidence.SEED


def test_defaults_are_those_that_are_listed(recorded, tmp_path, capsys):
    claim = registry.claims()[0]
    assert "option targets: how many [3]" in str(claim) and "option store: folder" in str(claim)
    claim.verify()
    assert recorded[1] == {"targets": 3, "dimension": 100, "store": None, "progress": False}
    out = tmp_path / "found.json"
    arguments = ["--targets", "5", "--dimension", "60", "--out", str(out)]
    assert main(["verify", "with", *arguments]) == 0
    assert recorded[3]["targets"] == 5 and recorded[3]["dimension"] == 60
    assert json.loads(out.read_text())[0]["identifier"] == "with"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["with"], {"target": 5}, r"no option 'target'; did you mean 'targets'\?\n  options of "
                                  "this claim: targets, dimension, store"),
        (["with", "without"], {"targets": 5}, "'without' has no option 'targets'\n.*: none"),
        (None, {"targets": 5}, "targets: options belong to claims that are named"),
        (["with"], {"targets": 0}, "targets must be >= 1, got 0"),
        (["with"], {"dimension": 39}, "dimension must be >= 40, got 39"),
        (["with"], {"targets": 2.0}, "targets must be a whole number, got 2.0"),
        (["with"], {"targets": True}, "targets must be a whole number"),
        (["with"], {"store": 3}, "store must be a folder"),
        (["with"], {"store": ""}, "store must be a folder"),
        (["with"], {"dimension": 41}, "dimension must be even, got 41"),
        (["conjecture-3"], {"dimension": 402}, "dimension must be a multiple of 4, got 402"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_before_anything_runs(recorded, names, options, message):
    with pytest.raises(ParameterError, match=message):
        verify(names, progress=False, **options)
    assert recorded == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["without", "--targets", "5"], "no option 'targets'"),
        (["with", "--store", __file__], "choose another"),
        (["--targets", "5"], "claims that are named"),
        (["with", "--targets", "many"], "is not a whole number"),
        (["with", "--targets", "-1"], "must be >= 1"),
    ],
)
def test_bad_options_on_the_command_line_end_with_two(recorded, capsys, arguments, message):
    assert main(["verify", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert recorded == []


def test_a_conjecture_takes_its_options(monkeypatch):
    seen = {}

    def check(targets, dimension, steps, **given):
        seen.update(given, targets=targets, dimension=dimension, steps=steps)
        return SimpleNamespace(finding=lambda: Finding(True, "agrees"))

    monkeypatch.setattr(claims_conjectures, "check_conjecture_1", check)
    (verdict,) = verify(["conjecture-1"], targets=50, dimension=400, seed=3, progress=False)
    assert verdict.passed
    assert (seen["targets"], seen["dimension"], seen["seed"]) == (50, 400, 3)


# ------------------------------------------------------------------ evidence that can fail


def shorter(f, order=1, **given):
    """A staircase that misses its last step."""
    found = staircase(f, order, **given)
    return SimpleNamespace(
        subspaces=found.subspaces[:-1] if len(found.subspaces) > 2 else found.subspaces,
        dimensions_at_most=tuple(max(n - 1, 1) for n in found.dimensions_at_most),
        final=found.final,
    )


def wrong_norms(f, onto):
    return tuple(2 * norm for norm in residual_norms(f, onto))


def wrong_exponent(text):
    return SimpleNamespace(lower=3, upper=3, value=3)


SABOTAGE = {
    "definition_of_staircases": ("staircase", shorter),
    "ranks_of_population_dynamics": ("staircase", shorter),
    "readout_clusters": ("staircase", shorter),
    "isotropic_leap_over_rotations": ("coordinate_leap", lambda f: 9),
    "projections_in_frames": ("residual_norms", wrong_norms),
    "generative_exponents": ("generative_leap", wrong_exponent),
    "activation_masks": (
        "activation_mask", lambda sigma: SimpleNamespace(admits=lambda degree, step: True),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SABOTAGE)
def test_exact_evidence_fails_if_something_is_wrong(name, monkeypatch):
    attribute, wrong = SABOTAGE[name]
    monkeypatch.setattr(evidence, "LISTED", evidence.LISTED[:4])
    monkeypatch.setattr(evidence, attribute, wrong)
    found = getattr(evidence, name)()
    assert not found.passed and "do not hold" in found.summary


def test_masks_are_noticed_by_simulation(monkeypatch):
    # Networks with a student that sees all degrees, in the place of relu.
    monkeypatch.setattr(evidence, "MASKED", evidence.MASKED[1:])
    right = evidence.trained_on_readouts

    def disguised(f, plan, dimension, readouts, *, student):
        return right(f, plan, dimension, readouts)

    monkeypatch.setattr(evidence, "trained_on_readouts", disguised)
    found = evidence.sampled_activation_masks(dimension=40, networks=8, seed=5006)
    assert not found.passed
    assert any(f["outcome"] is Outcome.DISAGREES for v in found.details.values() for f in v)


# ------------------------------------------------------------------ frames


def test_conditional_gradients_by_hand():
    # f = x1 + x1 x2 + He3(x1) x3 given x1 = s: the gradient outside is (0, s, s³ - 3s).
    f = target("x1 + x1*x2 + He(3, x1)*x3")
    vectors = evidence.conditional_gradients(f, Subspace.spanned_by([[1, 0, 0]]))
    assert sorted(map(tuple, vectors)) == [(0, 0, 1), (0, 1, -3)]


def test_conditional_variances_by_hand():
    # E Var(x1 x2 | x1 + x2) = 1 - Var((s² - 1)/2) with s = (x1 + x2)/√2, hence 1 - 1/2.
    found = evidence.conditional_variance(target("x1*x2"), Subspace.spanned_by([[1, 1]]))
    assert found == sp.Rational(1, 2)
