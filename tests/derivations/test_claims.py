"""The registry of claims, and every claim whose evidence is quick to recompute."""

import functools
import json
import math
import sys
from dataclasses import replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from giantstep.derivations import claims as registry
from giantstep.derivations.claims import (
    Check,
    Claim,
    EvidenceKind,
    Finding,
    Option,
    Status,
    Verdict,
    claims,
    declare_claim,
    evidence,
    to_json,
    verify,
)
from giantstep.derivations.comparison import Comparison, finding
from giantstep.derivations.first_gradient.spike_mapping import spike_mapping
from giantstep.derivations.identities import equal, vanishes
from giantstep.derivations.one_gradient_step import claims_kernel, claims_risk, claims_spike
from giantstep.derivations.overlap_dynamics import claims as overlap_claims
from giantstep.derivations.spiked_random_features import (
    claims_bounds,
    claims_finite_size,
    claims_limits,
    claims_mapping,
    claims_mapping as claims_errors,
    physics as fe,
)
from giantstep.derivations.spiked_random_features.convex import claims as convex_claims
from giantstep.derivations.spiked_random_features.derive import symbolic_model
from giantstep.derivations.spiked_random_features.model import SpikedRandomFeatures
from giantstep.derivations.spiked_random_features.published import written_out
from giantstep.derivations.spiked_random_features.vocabulary import claims as vocabulary_claims
from giantstep.errors import MissingDependencyError, ParameterError
from giantstep.symbolic.expressions.activations import activation, z
from giantstep.symbolic.gaussian.expectation import expect
from giantstep.symbolic.hermite.coefficients import hermite_coefficient
from giantstep.symbolic.systems.random_matrix import resolvent_moment

REFERENCE = Path(__file__).parents[1] / "reference"
IDENTIFIERS = [claim.identifier for claim in claims()]


def claim_of(*checks):
    return Claim("test-1", "a <title>", r"$x < 1$", "nowhere", Status.CONJECTURE, checks)


def check_of(compute, *, slow=False):
    return Check(EvidenceKind.EXACT, "a check", compute, slow)


@pytest.fixture
def only(monkeypatch):
    """Replace the registry by one claim."""

    def replace(*checks):
        claim = claim_of(*checks)
        monkeypatch.setattr(registry, "claims", lambda: (claim,))
        return claim

    return replace


def passing():
    return Finding(True, "as it should be", {"value": 1.0})


@pytest.mark.parametrize("claim", claims(), ids=IDENTIFIERS)
def test_a_claim_is_complete(claim):
    assert claim.title and claim.source
    assert claim.statement.count("$") % 2 == 0 and "$" in claim.statement
    # Something stronger than simulation, and something to run without asking for slow checks or
    # for a package that is not installed with this one.
    assert any(check.kind is not EvidenceKind.SIMULATION for check in claim.checks)
    assert any(
        not check.slow and check.kind is not EvidenceKind.CERTIFIED for check in claim.checks
    )
    descriptions = [check.description for check in claim.checks]
    assert len(set(descriptions)) == len(descriptions)
    assert claim.identifier in str(claim) and claim.statement in claim._repr_latex_()


# The same values, more of them and to more digits, in test_convex_readouts.py, test_large_steps.py
# and test_overlap_dynamics.py; proofs, step by step, in test_one_step_properties.py; and two
# simulations of minutes, of which test_convex_readouts.py and a quicker evidence are smaller ones.
ELSEWHERE = {
    claims_risk.properties,
    claims_risk.optimum_property,
    convex_claims.reference_values,
    convex_claims.simulated_readouts,
    claims_finite_size.deviations,
    overlap_claims.large_batches,
}


# Computed within a second, so that no other test asks for the same numbers.
COMPUTED = {
    claims_mapping.mapping_values, claims_limits.unspiked_values, claims_bounds.letters,
    claims_finite_size.finite_width_values, claims_spike.reference_spikes,
    claims_kernel.reference_values, claims_risk.optimal_values, claims_risk.peak_values,
    vocabulary_claims.stationary, vocabulary_claims.reference_values, vocabulary_claims.reductions,
    vocabulary_claims.energy_identity, vocabulary_claims.local_minima,
    vocabulary_claims.larger_rank,
}  # fmt: skip
# Exact, and not quick.
SECONDS = {claims_bounds.perfect_pairs, overlap_claims.zeros}


def all_evidence():
    """Every check once, also if several claims rest on it.

    Where the same code is evidence at small and at large sizes, or for few and for many models, the
    small ones are asked: ``giantstep verify --slow`` runs the others for minutes.
    """
    seen = []
    quick = {check.compute for claim in claims() for check in claim.checks if not check.slow}
    for claim in claims():
        for check in claim.checks:
            asked = (check.compute, check.arguments)
            repeated = check.slow and check.compute in quick
            if check.compute in ELSEWHERE or asked in seen or repeated:
                continue
            seen.append(asked)
            # What is computed takes seconds, and is asked of models and simulators by other tests.
            slow = check.slow or check.compute in SECONDS
            slow |= check.kind is EvidenceKind.SIMULATION
            slow |= check.kind is EvidenceKind.QUADRATURE and check.compute not in COMPUTED
            marks = [pytest.mark.slow] * slow
            yield pytest.param(check, id=f"{claim.identifier}: {check.description}", marks=marks)


@pytest.mark.parametrize("check", list(all_evidence()))
def test_evidence_passes(check):
    try:
        found = check.run()
    except MissingDependencyError as error:
        pytest.skip(str(error).partition("\n")[0])
    assert found.passed, str(found)


def is_number(value):
    return isinstance(value, bool | int | float) or (
        isinstance(value, tuple) and all(map(is_number, value))
    )


def test_sizes_of_evidence_change_with_intent():
    # Sizes, seeds and digits are what the words and tolerances of evidence are about.
    recorded = json.loads((REFERENCE / "evidence.json").read_text(encoding="utf-8"))
    found = {}
    for claim in claims():
        for check in claim.checks:
            parameters = signature(check.compute).parameters.values()
            taken = {p.name: p.default for p in parameters} | dict(check.arguments)
            taken |= {option.name: option.default for option in check.options}
            taken.pop("progress", None)
            numbers = {name: value for name, value in taken.items() if is_number(value)}
            if numbers:
                found[f"{claim.identifier}: {check.description}"] = numbers
    assert json.loads(json.dumps(found)) == recorded


def test_a_verdict_counts_every_check():
    (verdict,) = verify(["cui-convex-loss"], progress=False)
    assert verdict.passed, str(verdict)
    quick = [check for check in verdict.claim.checks if not check.slow]
    assert len(verdict.evidence) == len(quick) == 1
    assert verdict.skipped == tuple(c.description for c in verdict.claim.checks if c.slow)


def test_unknown_names_are_refused_with_the_nearest_one():
    with pytest.raises(ParameterError, match=r"no claim 'cui-33'; did you mean 'cui-3.3'\?") as e:
        verify(["cui-33"])
    assert all(identifier in str(e.value) for identifier in IDENTIFIERS)
    with pytest.raises(ParameterError, match=r"no claim 'xyzzy'\n  claims: cui-3\.1"):
        verify("xyzzy")


def test_names_are_verified_once_and_in_their_order(monkeypatch):
    both = tuple(replace(claim_of(check_of(passing)), identifier=name) for name in ("a", "b"))
    monkeypatch.setattr(registry, "claims", lambda: both)
    found = verify(["b", "a", "b"], progress=False)
    assert [v.claim.identifier for v in found] == ["b", "a"]


def test_an_exception_inside_a_check_is_failed_evidence(only):
    def broken():
        raise ZeroDivisionError("nothing to divide by\nsecond line")

    only(check_of(passing), check_of(broken), check_of(lambda: Finding(False, "it is not so")))
    (verdict,) = verify(progress=False)
    assert not verdict.passed and verdict.evidence[2].summary == "it is not so"
    assert [e.passed for e in verdict.evidence] == [True, False, False]
    assert verdict.evidence[1].summary == (
        "the check broke with ZeroDivisionError: nothing to divide by"
    )
    assert "second line" in verdict.evidence[1].details["error"]
    assert "FAILED" in str(verdict) and "FAILED" in verdict._repr_html_()


def test_an_interrupt_is_not_evidence(only):
    def interrupted():
        raise KeyboardInterrupt

    only(check_of(interrupted))
    with pytest.raises(KeyboardInterrupt):
        verify(progress=False)


def test_slow_checks_run_when_asked_for_only(only):
    only(check_of(passing), check_of(passing, slow=True))
    (quick,), (all_of_it,) = verify(progress=False), verify(slow=True, progress=False)
    assert (len(quick.evidence), quick.skipped) == (1, ("a check",))
    assert (len(all_of_it.evidence), all_of_it.skipped) == (2, ())
    assert quick.passed and all_of_it.passed


def test_no_evidence_is_no_support(only):
    claim = only(check_of(passing, slow=True))
    (verdict,) = verify(progress=False)
    assert verdict.evidence == () and not verdict.passed
    # Nothing speaks against it, either.
    assert not verdict.failed and verdict.outcome == "not run"
    assert claim.verify(slow=True).passed


def test_progress_counts_checks(only, monkeypatch):
    import tqdm.auto

    bars = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, *args, **keywords):
            super().__init__(*args, **keywords)
            bars.append((self, keywords))

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    only(check_of(passing), check_of(passing), check_of(passing, slow=True))
    verify()
    verify(progress=False)
    (shown, wanted), (_, hidden) = bars
    assert (shown.total, shown.n) == (2, 2)
    assert wanted["delay"] == 1 and not wanted["disable"] and hidden["disable"]


def test_verdicts_are_stored_as_plain_json(only):
    details = {
        "numpy": np.float64(0.5),
        "array": np.array([1, 2]),
        "sympy": sp.Rational(1, 3),
        "infinite": math.inf,
        "flag": np.bool_(True),
        3: {"nested": (1, None)},
    }
    only(check_of(lambda: Finding(True, "γ ≥ 0", details)))
    verdicts = verify(progress=False)
    (stored,) = json.loads(to_json(verdicts))
    assert stored == json.loads(verdicts[0].to_json())
    assert stored["identifier"] == "test-1" and stored["status"] == "conjecture"
    (evidence,) = stored["evidence"]
    assert evidence["kind"] == "exact" and evidence["summary"] == "γ ≥ 0"
    assert evidence["details"] == {
        "numpy": 0.5,
        "array": [1, 2],
        "sympy": "1/3",
        "infinite": "inf",
        "flag": True,
        "3": {"nested": [1, None]},
    }


def test_html_escapes_what_people_wrote():
    claim = claim_of(check_of(passing))
    assert "a &lt;title&gt;" in claim._repr_html_()
    assert "$x &lt; 1$" in Verdict(claim, (), False, ("<slow>",))._repr_html_()
    assert "<slow>" not in Verdict(claim, (), False, ("<slow>",))._repr_html_()


# ------------------------------------------------------------------ claims of one's own


@pytest.fixture
def own(monkeypatch):
    """A claim of the user's; what a test declares is forgotten after it."""
    registry.claims()
    kept = {name: replace(d, checks=dict(d.checks)) for name, d in registry._DECLARED.items()}
    monkeypatch.setattr(registry, "_DECLARED", kept)
    declare_own()
    return lambda: claims()[-1]


def declare_own(**given):
    wanted = {"title": "mine", "statement": "$x$", "source": "here", "status": "derived here"}
    declare_claim("own-1", **(wanted | given))


def test_evidence_is_a_plain_function_that_stays_as_it_is(own):
    @evidence("own-1", "exact", "first")
    def compute():
        return passing()

    assert compute() == passing()
    assert claims()[-1].identifier == "own-1" and claims()[-1].status is Status.DERIVED_HERE
    (verdict,) = verify(["own-1"], progress=False)
    assert verdict.passed and [e.description for e in verdict.evidence] == ["first"]


def test_evidence_on_evidence_is_listed_from_the_top_to_the_bottom(own):
    @evidence("own-1", "simulation", "few", arguments={"count": 2})
    @evidence("own-1", "simulation", "many", slow=True, options=[Option("count", "how many", 9)])
    def counted(count, progress):
        return Finding(True, f"{count}, {progress}")

    evidence("own-1", EvidenceKind.EXACT, "none", arguments={"count": 0, "progress": None})(counted)
    few, many, none = own().checks
    assert (few.slow, many.slow, none.kind) == (False, True, EvidenceKind.EXACT)
    assert few.run(progress=True).summary == "2, True" and many.run().summary == "9, False"
    assert many.run({"count": 5}).summary == "5, False"


def test_a_notebook_may_run_a_cell_again(own):
    for text in ("as it was", "as it is"):

        @evidence("own-1", "exact", "the only one")
        def compute(text=text):
            return Finding(True, text)

    assert [check.run().summary for check in own().checks] == ["as it is"]
    declare_own(title="another")
    assert own().title == "another" and own().checks == ()
    assert own().verify().outcome == "FAILED"


def test_evidence_can_be_added_to_a_published_claim(own):
    evidence("bounds", "exact", "mine")(passing)
    (claim,) = (claim for claim in claims() if claim.identifier == "bounds")
    assert claim.checks[-1].description == "mine" and len(claim.checks) > 1
    with pytest.raises(ParameterError, match="has a check 'mine' by another function"):
        evidence("bounds", "exact", "mine")(no_package)


def test_what_is_no_finding_is_no_evidence(own):
    assert "no evidence: give it some by @giantstep.evidence" in str(own().verify())
    for k, (made, message) in enumerate([
        (True, "it returned bool, not a Finding"),
        (Finding("False", "a text is true"), "must be true or false, not 'False'"),
    ]):  # fmt: skip
        evidence("own-1", "exact", str(k), arguments={"made": made})(lambda made: made)
        assert message in str(own().verify())


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: evidence("own-2", "exact", "x")(passing), r"no claim 'own-2'; did you mean 'own"),
        (lambda: evidence("own-1", "guess", "x"), "kind must be one of 'exact', .*got 'guess'"),
        (lambda: evidence("own-1", "exact", "x")(functools.partial(passing)),
         "must be a plain function, got functools.partial.*arguments="),
        (lambda: declare_own(status="proven"), "status must be one of 'theorem', .*got 'proven'"),
        (lambda: declare_own(statement="$«x»$"), "shows the formulas x, and given are none"),
        (lambda: declare_own(formulas={"x": z}), "shows the formulas none, and given are x"),
        (lambda: declare_own(statement="$«x»$", formulas={"x": 1.5}), "SymPy, got 1.5"),
        (lambda: declare_claim("cui-3.1", title="", statement="", source="", status="theorem"),
         "title of a claim must be a text, got ''"),
        (lambda: declare_claim("cui-3.1", title="t", statement="s", source="me", status="theorem"),
         "'cui-3.1' is there already, in giantstep.*claims_mapping; choose another"),
    ],
)  # fmt: skip
def test_what_cannot_be_declared_is_refused(own, declare, message):
    with pytest.raises(ParameterError, match=message):
        declare()


def test_a_statement_shows_the_formulas_that_are_checked(own):
    x = sp.Symbol("x")
    law = sp.Eq(sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x), evaluate=False)
    declare_own(statement=r"$$«law»,\quad «half»$$", formulas={"law": law, "half": x / 2})
    assert own().formulas["law"] is law
    assert own().statement == (
        r"$$\sin\left(2 x\right) = 2 \cos\left(x\right) \sin\left(x\right),\quad \frac{x}{2}$$"
    )


def shown_formulas():
    """Every formula that a statement shows, with the claim."""
    for claim in claims():
        for name in claim.formulas:
            yield pytest.param(claim, name, id=f"{claim.identifier}: {name}")


def doubled(formula):
    return sp.Eq(formula.lhs, doubled(formula.rhs)) if isinstance(formula, sp.Eq) else 2 * formula


def replace_everywhere(monkeypatch, formulas):
    """Double formulas wherever a module of derivations has them, by itself or in a table."""

    def changed(value):
        return doubled(value) if any(value is formula for formula in formulas) else value

    for name, module in list(sys.modules.items()):
        if not name.startswith("giantstep.derivations."):
            continue
        for attribute, value in list(vars(module).items()):
            if type(value) is tuple:
                new = tuple(map(changed, value))
                if any(x is not y for x, y in zip(new, value, strict=True)):
                    monkeypatch.setattr(module, attribute, new)
            elif type(value) is dict:
                for key, entry in list(value.items()):
                    if changed(entry) is not entry:
                        monkeypatch.setitem(value, key, changed(entry))
            elif isinstance(value, sp.Basic) and changed(value) is not value:
                monkeypatch.setattr(module, attribute, changed(value))


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "name"), list(shown_formulas()))
def test_a_formula_that_is_shown_is_the_one_that_is_checked(monkeypatch, claim, name):
    formula = claim.formulas[name]
    sides = [formula, *(formula.args[1:] if isinstance(formula, sp.Eq) else ())]
    replace_everywhere(monkeypatch, sides)
    exact = [check for check in claim.checks if check.kind is EvidenceKind.EXACT]
    assert not all(check.run().passed for check in exact)


# Evidence that cannot fail is none: each kind of it against something that is wrong.


def test_the_zero_test_finds_what_does_not_vanish():
    zero = fe.average(fe.mu1 * fe.psi * fe.V1) - fe.psi * fe.average(fe.mu1 * fe.V1)
    assert vanishes(zero)
    assert not vanishes(zero + fe.average(fe.mu0))
    assert not vanishes(zero + fe.psi)
    assert not vanishes(fe.average(fe.mu1) * fe.average(fe.mu0))
    assert equal(sp.sin(z) ** 2, 1 - sp.cos(z) ** 2) and not equal(z, -z)


def test_a_wrong_equation_is_found(monkeypatch):
    right = claims_errors.right_hand_sides()
    # The scaling of the spike-overlap term that stored outputs of the authors' code go with.
    wrong = right | {fe.theta: right[fe.theta] / 2}
    monkeypatch.setattr(claims_errors, "right_hand_sides", lambda: wrong)
    found = claims_errors.published_equations()
    assert not found.passed
    assert "1 of 15 identities do not hold: equation of vartheta" in found.summary


def wrong_mapping(student, teacher):
    found = spike_mapping(student, teacher)
    h1 = hermite_coefficient(student, 1)
    # The spurious factor of a circulated version.
    return replace(found, bulk_variance=1 + (found.bulk_variance - 1) * h1**2)


def wrong_energy():
    right = fe.spiked_free_energy(activation("sin"), activation("sin"))
    energy = right.free_energy
    expression = energy.expression + fe.psi**3
    return replace(right, free_energy=replace(energy, expression=expression))


def wrongly_written_out(expr):
    return written_out(expr) + fe.average(fe.mu2_squared) * fe.q2


def wrong_moment(power, order, a, b, beta):
    return resolvent_moment(power, order, a, b, 2 * beta)


SABOTAGE = {
    claims_mapping.mapping_relations: ("spike_mapping", wrong_mapping),
    claims_mapping.stein_identity: (
        "activation",
        lambda _: SimpleNamespace(expr=sp.sin(z), derivative=sp.cos(2 * z)),
    ),
    claims_mapping.conditional_coefficients: ("expect", lambda f, z: 2 * expect(f, z)),
    claims_errors.published_equations: ("written_out", wrongly_written_out),
    claims_errors.energy_identity: ("spiked_energy", wrong_energy),
    claims_errors.structure: (
        "symbolic_model", lambda *_: symbolic_model("erf", "erf", unspiked=True)
    ),
    claims_errors.jacobian: ("resolvent_moment", wrong_moment),
    claims_limits.unspiked_equations: ("expect", lambda f, z: 2 * expect(f, z)),
    claims_limits.invariances: ("spiked_energy", wrong_energy),
    claims_bounds.lower_bound: ("resolvent_moment", wrong_moment),
    claims_limits.linear_bound: ("best_linear_error", lambda teacher: expect(teacher.expr**2, z)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("check", SABOTAGE, ids=lambda check: check.__name__)
def test_exact_evidence_fails_if_something_is_wrong(check, monkeypatch):
    target, wrong = SABOTAGE[check]
    monkeypatch.setattr(sys.modules[check.__module__], target, wrong)
    found = check()
    assert not found.passed
    assert "identities do not hold" in found.summary


def test_sabotage_covers_all_exact_evidence_on_the_errors():
    modules = {module.__name__ for module in (claims_mapping, claims_errors, claims_limits)}
    exact = {
        check.compute
        for claim in claims()
        for check in claim.checks
        if check.kind is EvidenceKind.EXACT and check.compute.__module__ in modules
    }
    assert exact < set(SABOTAGE)


def test_a_wrong_reference_value_is_found(monkeypatch):
    cases = claims_errors.reference_cases()
    first = cases[0]
    value = first.values["psi"]
    wrong = value[:12] + str((int(value[12]) + 5) % 10) + value[13:]
    changed = type(first)(
        first.name, first.model, first.alpha, first.ridge, first.spike,
        {**first.values, "psi": wrong},
    )  # fmt: skip
    monkeypatch.setattr(claims_errors, "reference_cases", lambda: (changed, cases[1]))
    found = claims_errors.reference_values()
    assert not found.passed and "psi of A1" in found.summary


def test_a_wrong_theory_is_found_by_simulation(monkeypatch):
    case = claims_mapping.NETWORKS[1]
    noisy, silent = case.build(), SpikedRandomFeatures(**{**case.model, "noise_variance": 0.0})
    # Networks with noisy labels, held against the theory without noise.
    disguised = SimpleNamespace(simulate=noisy.simulate, solve=silent.solve)
    monkeypatch.setattr(type(case), "build", lambda self: disguised)
    found = claims_errors.networks(((100, 20),), cases=(case,))
    assert not found.passed


# A verdict of several parts falls with each of them alone.


def kernels(monkeypatch, masses=(0.25, 0.75), error=1e-12):
    """Evidence on one density of so many intervals, whose masses are off by that much."""
    bulk = SimpleNamespace(masses=masses, mass_errors=np.full(len(masses), error))
    kernel = SimpleNamespace(bulk=lambda points: bulk)
    case = SimpleNamespace(name="A", build=lambda: SimpleNamespace(conjugate_kernel=lambda: kernel))
    monkeypatch.setattr(claims_kernel, "reference_cases", lambda: (case,))
    return claims_kernel.masses()


def gradients(monkeypatch, off=0.0, rounding=1e-15, growth=1.0):
    """Evidence on parts of gradients that are so far from theory, and grow so fast with d."""
    monkeypatch.setattr(claims_spike, "PARTS", claims_spike.PARTS[-1:])

    def simulate(network, parts, **given):
        norm = (network.dimension / 60) ** (growth - 1) / math.sqrt(network.width)
        found = dict.fromkeys(claims_spike.PART_NAMES, np.zeros(2))
        return found | {
            "identity_error": np.full(2, rounding), "bulk_operator_norm": np.full(2, norm)
        }  # fmt: skip

    monkeypatch.setattr(claims_spike, "simulate", simulate)
    monkeypatch.setattr(
        claims_spike, "extrapolated", lambda name, *_: Comparison(name, 1.0, 1.0 + off, 0.01)
    )
    return claims_spike.centred_parts()


def peaks(monkeypatch, power=0.5, spectral=1e-18, stored=1e-24, trained=1.0):
    """Evidence on a peak whose relative error is that power of the penalty."""
    monkeypatch.setattr(claims_risk, "spectral_deviations", lambda *_: {"risk": spectral})
    monkeypatch.setattr(claims_risk, "peak_deviations", lambda: {"exact": stored})
    monkeypatch.setattr(
        claims_risk.OneGradientStep,
        "interpolation_peak",
        lambda self, ridge, digits=None: SimpleNamespace(
            relative_error=ridge.value**power, initial=2.0, exact_initial=2.0, trained=trained,
            exact_trained=trained,
        ),
    )  # fmt: skip
    return claims_risk.peak_values()


def equivalents(monkeypatch, spectral=1e-26):
    """Evidence on an effective ridge with that relative deviation at 28 digits."""
    monkeypatch.setattr(claims_risk, "spectral_deviations", lambda *_: {"risk": spectral})
    return claims_risk.deterministic_equivalent(cases=("1",))


def test_no_comparison_at_all_is_no_evidence():
    found = finding([], "errors of networks")
    assert not found.passed and found.summary == "no errors of networks were compared"


@pytest.mark.parametrize(
    ("evidence", "wrong"),
    [
        (kernels, {"masses": (1.0,)}),
        (kernels, {"error": 1e-8}),
        (gradients, {"off": 0.1}),
        (gradients, {"rounding": 1e-9}),
        (gradients, {"growth": 1.5}),
        (peaks, {"power": 0.6}),
        (peaks, {"spectral": 1e-15}),
        (peaks, {"stored": 1e-20}),
        (peaks, {"trained": 3.0}),
        (equivalents, {"spectral": 1e-24}),
    ],
)
def test_a_verdict_falls_with_each_of_its_parts(monkeypatch, evidence, wrong):
    assert evidence(monkeypatch).passed
    assert not evidence(monkeypatch, **wrong).passed


# ---------------------------------------------------------------------- proofs by intervals


def proof_of(compute, **given):
    return Check(EvidenceKind.CERTIFIED, "a proof", compute, **given)


def no_package():
    raise MissingDependencyError("a proof needs python-flint\n  install it with: pip install it")


def test_a_missing_package_is_neither_for_nor_against_a_claim(only):
    only(check_of(passing), proof_of(no_package))
    (verdict,) = verify(progress=False)
    assert verdict.passed and not verdict.failed and len(verdict.evidence) == 1
    assert verdict.unavailable == (
        "a proof: a proof needs python-flint; install it with: pip install it",
    )
    assert "not available: a proof" in str(verdict)
    assert "not available" in verdict._repr_html_()
    assert verdict.to_dict()["unavailable"] == list(verdict.unavailable)


def test_a_claim_of_which_nothing_could_run_has_not_passed(only):
    only(proof_of(no_package))
    (verdict,) = verify(progress=False)
    assert not verdict.passed and not verdict.failed
    assert verdict.outcome == "not available" and "not available" in repr(verdict)
    only(check_of(lambda: Finding(False, "no")), proof_of(no_package))
    (verdict,) = verify(progress=False)
    assert verdict.failed and verdict.outcome == "FAILED"


def test_certified_runs_proofs_alone(only):
    claim = only(check_of(passing), proof_of(passing), proof_of(passing, slow=True))
    (verdict,) = verify(certified=True, progress=False)
    assert [e.kind for e in verdict.evidence] == [EvidenceKind.CERTIFIED]
    assert verdict.skipped == ("a proof",)
    (verdict,) = verify(certified=True, slow=True, progress=False)
    assert len(verdict.evidence) == 2 == len(claim.verify(certified=True, slow=True).evidence)


def test_a_claim_without_a_proof_is_refused(only):
    claim = only(check_of(passing))
    with pytest.raises(ParameterError, match="no proof by intervals: test-1"):
        verify(["test-1"], certified=True, progress=False)
    with pytest.raises(ParameterError, match="no proof by intervals: test-1"):
        claim.verify(certified=True)
    assert verify(certified=True, progress=False) == []
