"""What follows from the declaration of fields, for every class of results there is."""

import importlib
import json
import math
import pickle
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

import mpmath
import pytest
import sympy as sp

import giantstep as gs
import giantstep.derivations
from giantstep import (
    FreeEnergy,
    MultiIndex,
    OneGradientStep,
    OverlapDynamics,
    SaddlePointSystem,
    SpikedRandomFeatures,
    VocabularyFeatures,
    bounds_over_step,
    lower,
)
from giantstep.derivations.certificates.certificate import Certificate, CertifiedValues
from giantstep.derivations.conjectures.conjecture import ConjectureVerdict, Counterexample, Verdict
from giantstep.derivations.conjectures.proofs import Proof
from giantstep.derivations.first_gradient.statistical_queries import CorrelationalQueryBound
from giantstep.derivations.first_gradient.training import Estimate, TrainedNetworks
from giantstep.derivations.giant_steps.conjectures import (
    ConjectureReport,
    Figure,
    Outcome,
    TargetOutcome,
)
from giantstep.derivations.multi_index.directions import direction_classes
from giantstep.derivations.multi_index.optimum import OptimumBeside
from giantstep.derivations.one_gradient_step.conditional_risk import ConditionalRisk
from giantstep.derivations.one_gradient_step.properties import nonnegative_improvement
from giantstep.derivations.optima import LocalOptimum, Optimum
from giantstep.derivations.spiked_random_features.bounds.letter_bounds import LearnedBiasBound
from giantstep.derivations.spiked_random_features.solution import Solution
from giantstep.errors import ParameterError
from giantstep.labelled import labelled
from giantstep.pages import Indented, Listing, Page, Table
from giantstep.result import Number, Result, quantity
from giantstep.runtime.precision import local_context
from giantstep.symbolic.exact.enclosures import Enclosure

STEP = OneGradientStep("erf", "erf", alpha=2.5, beta=1.2, step_size=3.0, noise_variance=0.16)
SPIKED = SpikedRandomFeatures("erf", "erf")
OVERLAPS = OverlapDynamics(student="erf", teacher="erf(x1)", step_size=0.5, alpha0=3)
SIGNS = MultiIndex("sign")
LETTERS = VocabularyFeatures.from_parameters(
    "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02], fractions=[0.4, 0.6],
    alignment=0.9, beta=0.7,
)  # fmt: skip
RHO = sp.Symbol("rho", real=True)
THIRD = Enclosure(sp.Rational(1365, 4096), sp.Rational(1, 4096))
ABOUT = Estimate(0.25, 0.01)
SEEN = TargetOutcome(
    "x1", ("⟨e1⟩",), (Figure("rank", "step 1", 2.0, 1.0, 0.1, Outcome.DISAGREES),), True
)
NUMBER = local_context(20).mpf(2) / 3
M, H, BETA = sp.Symbol("m", real=True), sp.Symbol("h", real=True), sp.Symbol("beta", positive=True)
MAGNET = lower(
    SaddlePointSystem.from_fixed_point(
        {M: sp.tanh(BETA * (M + H))}, name="magnet", parameters=(BETA, H)
    )
)


ISING = lower(
    SaddlePointSystem.from_free_energy(
        FreeEnergy(M**2 / 2 - sp.log(2 * sp.cosh(BETA * (M + H))) / BETA, (M,), (), (BETA, H)),
        name="ising",
    )
)


@cache
def diagram():
    return MAGNET.branches("h", (-0.5, 0.5), bounds={"m": (-1, 1)}, starts=4, points=20, beta=1.5)


@cache
def plane():
    return MAGNET.phase_diagram(
        ("h", -0.3, 0.3), ("beta", 0.6, 2), bounds={"m": (-1, 1)}, cuts=1, starts=4, points=20
    )


MADE: dict[str, Callable[[], Any]] = {
    "RidgeRisk": lambda: STEP.risk(ridge=0.1),
    "RidgeRisk, digits": lambda: STEP.risk(ridge=0.1, digits=30),
    "RidgeRisk, no penalty": lambda: STEP.risk(ridge=0),
    "InterpolationPeak": lambda: STEP.interpolation_peak(ridge=1e-4, digits=20),
    "OptimalRidge": lambda: STEP.optimum(over="ridge"),
    "OptimalRidge, digits": lambda: STEP.optimum(over="ridge", digits=20),
    "RiskAtWidth": lambda: STEP.at_width(600).solve(ridge=0.1),
    "RiskAtWidth, digits": lambda: STEP.at_width(600).solve(ridge=0.1, digits=20),
    "DegreeSpikes": lambda: STEP.at_width(600).spikes(),
    "Trajectory": lambda: OVERLAPS.trajectory(steps=2),
    "EarlyGrowth": lambda: OVERLAPS.early_growth(dimension=100),
    "SecondStep": lambda: OVERLAPS.second_step(),
    "WeightSpike": lambda: STEP.weight_spike(),
    "WeightSpike, digits": lambda: STEP.weight_spike(digits=30),
    "WeightSpike, none": lambda: replace(STEP, student="z**3 - 3*z").weight_spike(),
    "GaussianEquivalence": lambda: STEP.equivalence(),
    "Assumption": lambda: STEP.equivalence().assumptions[-1],
    "ConditionalRisk": lambda: ConditionalRisk(0.1, 0.2, math.inf, 0.1, 0.2, 0.1, 0.2, 0.3, 0.4),
    "KernelSolution": lambda: STEP.kernel().solve(ridge=0.1),
    "Sensitivities": lambda: MAGNET.sensitivities(h=0.1, beta=1.5),
    "Sensitivities, digits": lambda: MAGNET.sensitivities(h=0.1, beta=1.5, wrt="h", digits=20),
    "Solution": lambda: SPIKED.solve(alpha=2, ridge=0.1),
    "Solution, of a loss": lambda: Solution(
        test_error=0.1, training_loss=0.2, test_loss=0.3, objective=0.4, metrics={"test_<&>": 1.0},
        order_parameters={"m": 1e-12}, conjugates={}, alpha=2.0, ridge=0.1, residual=0.0,
        iterations=3, nodes=64, errors={"test_error": math.inf}, quadrature_error=math.inf,
    ),
    "Solution, letters": lambda: LETTERS.solve(alpha=2, ridge=0.1, width=300),
    "Solution, letters, digits": lambda: LETTERS.solve(alpha=2, ridge=0.1, digits=18),
    "BranchDiagram": diagram,
    "Branch": lambda: diagram().branches[0],
    "SpecialPoint": lambda: diagram().points[0],
    "Landscape": lambda: ISING.landscape("m", (-0.99, 0.99), beta=1.5, h=0.02),
    "PhaseDiagram": plane,
    "TransitionLine": lambda: plane().lines[0],
    "Spectrum": lambda: SPIKED.spectrum(alpha=2, points=100),
    "Spectrum, one step": lambda: STEP.conjugate_kernel(),
    "Bounds": lambda: SPIKED.bounds(),
    "StepBounds": lambda: bounds_over_step("tanh", "sin", points=8),
    "OptimalEstimation": lambda: SIGNS.solve(alpha=2),
    "WeakRecovery": lambda: SIGNS.thresholds(),
    "EstimatorLadder": lambda: SIGNS.estimators(alpha=2),
    "ConvexEstimate": lambda: SIGNS.convex(alpha=2, ridge=0.5),
    "StateEvolution": lambda: SIGNS.state_evolution(alpha=2, steps=3),
    "DirectionClasses": lambda: direction_classes("x1 + x1*x2"),
    "OptimumBeside": lambda: OptimumBeside(8.0, 0.01, 0.01, 0.06, 0.12, 0.97, 0.97, 0.78),
    "Asymptotics": lambda: SPIKED.asymptotics(),
    "Optimum": lambda: Optimum(
        of="test_<&>", point={"ridge": NUMBER}, output=NUMBER, gradient={"ridge": 0 * NUMBER},
        hessian=((NUMBER,),), eigenvalues=(0.5,), eigenvalue_error=1e-9,
        errors={"ridge": NUMBER / 2**100}, bounds={"ridge": (1e-6, 1e6)}, fixed={"alpha": 2.0},
        scan=(49,), iterations=8, digits=20,
        minima=tuple(
            LocalOptimum(
                "test_<&>", {"ridge": x}, 0.1, "interior minimum", {"ridge": ""}, {"ridge": 0.0},
                {"ridge": 1e-15}, ((0.5,),), (0.5,), 1e-9, {"ridge": 1e-15},
            )
            for x in (2 / 3, 0.5)
        ),
    ),
    "Certificate": lambda: Certificate(
        system="a system", parameters={"alpha": "2"}, values={"q<": THIRD}, box={}, digits=3,
        bits=53, panels=0, contraction=0.5, statement="one solution & no other",
    ),
    "CertifiedValues": lambda: CertifiedValues("numbers", {"a": THIRD}, "they hold", ("all",), 3),
    "Proof": lambda: Proof("x > 0 & y", "sturm", ("no <root>",), "0..", True),
    "ConjectureVerdict": lambda: ConjectureVerdict(
        "x > <0>", Verdict.REFUTED, {"x": "[0, 1]"},
        counterexample=Counterexample("x > 0", {"x": "0"}, "0", "0", "algebra", "print(0)"),
        tried=3, descents=1, worst_margin=-0.5, worst_point={"x": 0.0}, seed=2,
    ),
    "TargetOutcome": lambda: SEEN,
    "ConjectureReport": lambda: ConjectureReport("dandi-1", (SEEN,), "4 networks"),
    "FirstStep": lambda: gs.first_step("erf", "x1 + He(2, x2)"),
    "SampleComplexity": lambda: gs.sample_complexity("relu", "x1*x2 + He(3, x1)"),
    "GiantStep": lambda: gs.giant_step("x1*x2 + He(3, x1)", "relu", noise_variance="1/4"),
    "FitPrediction": lambda: gs.predict_fit("x1 + x1*x2 + He(2, x2)", 1, 1),
    "RegimeTable": lambda: gs.regimes("x1 + x1*x2", student="relu"),
    "LabelLeaps": lambda: gs.label_leaps("sign(x1*x2)", flips=0.1),
    "LargeStepLimit": lambda: STEP.large_steps(),
    "SeveralSteps": lambda: STEP.several_steps(2),
    "RiskLimits": lambda: STEP.limits(ridge=0.1),
    "ExpectedKernel": lambda: STEP.conjugate_kernel().expected,
    "Property": nonnegative_improvement,
    "ClosedForm": lambda: gs.hermite_coefficients("gelu", 2).closed_form,
    "ClosedForm, parameters": lambda: gs.hermite_coefficients(
        sp.exp(-BETA * M**2 + H * M), 2, variable=M
    ).closed_form,
    "Decay": lambda: gs.hermite_coefficients("tanh", 2).decay,
    "RealisedNetwork": lambda: gs.SpikedRandomFeatures("erf", "erf", alpha0=4).realised(
        50, [1, 2], 0.1, progress=False
    ),
    "Exponent": lambda: gs.leap_index("x1*x2 + He(3, x1)"),
    "CoordinateLeap": lambda: gs.coordinate_leap("x1 + x1*x2*x3"),
    "IsotropicLeap": lambda: gs.isotropic_leap("x1 + x2*x3"),
    "GenerativeLeap": lambda: gs.generative_leap("x1*x2*x3"),
    "LeapFiltration": lambda: gs.leap_filtration("x1 + 2*x2 + He(2, x1)/2"),
    "LeapReport": lambda: gs.leaps("x1 + x2*x3"),
    "Projection": lambda: gs.project("x1 + x1*x2 + He(2, x2)", [[1, 0]], 1),
    "Projection, bounds": lambda: gs.project(
        "relu(x1)*relu(x2) + sign(x2)", [[1, sp.sqrt(2) + sp.sqrt(sp.pi)]], 1
    ),
    "Staircase": lambda: gs.staircase("x1 + x1*x2", student="relu"),
    "DualActivation": lambda: gs.dual_activation("erf", RHO),
    "DualActivation, series": lambda: gs.dual_activation("tanh", RHO),
    "GradientExpansion": lambda: gs.gradient_expansion("erf", "x1*x2", order=3),
    "GradientExpansion, removed": lambda: gs.gradient_expansion(
        "z + tanh(2*z)", "x3*relu(x1 - x2)", order=2, removed=(0, 1)
    ),
    "GradientExpansion, any student": lambda: gs.gradient_expansion(
        sp.IndexedBase("mu"), "x1*x2 + x1", norm=sp.sqrt(2) / 3
    ),
    "GradientExpansion, any norm": lambda: gs.gradient_expansion(
        "erf", "sqrt(2)*x2", norm=sp.Symbol("tau", positive=True)
    ),
    "ConditionalEquivalence": lambda: gs.conditional_equivalence("sin"),
    "ConditionalFeatures": lambda: gs.conditional_equivalence("erf").at(0.5, [1], [1]),
    "LetterBounds": lambda: gs.letter_bounds("erf", "sin", [1.2, -0.6], [1.1, 1.0], alignment=0.9),
    "LearnedBiasBound": lambda: LearnedBiasBound(0.5, 0.1, ((0.5, 0.1),), (-1.0, 1.0)),
    "Curve": lambda: SPIKED.curve(alpha=[1.0, 2.0], ridge=0.1, progress=False),
    "Simulation": lambda: SPIKED.simulate(30, alpha=[1.0, 2.0], seeds=2, progress=False),
    "Simulation, one step": lambda: STEP.simulate(30, ridge=0.1, seeds=2, progress=False),
    "SimulatedNetworks": lambda: gs.simulate(
        gs.Network("tanh", "sin", dimension=20, width=20), alpha=[1], ridge=0.1, seeds=2,
        progress=False,
    ),
    "FiniteSizeStudy": lambda: gs.finite_size_study(
        SPIKED, [20, 40], 1, seeds=2, progress=False
    ),
    "CorrelationalQueryBound": lambda: CorrelationalQueryBound(2, 100, 1e6, 0.3, 0.1),
    "TrainedNetworks": lambda: TrainedNetworks(
        "relu", "x1*x2", 8, 100, 20, 2, 1, 0.0, None, ABOUT, 0.3, (ABOUT, ABOUT), ABOUT, ABOUT,
        ABOUT,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MADE)
def result(request):
    return MADE[request.param]()


def classes(base=Result):
    for one in base.__subclasses__():
        if one.__module__.startswith("giantstep."):
            yield one
        yield from classes(one)


def test_every_class_is_among_the_examples():
    for module in pkgutil.walk_packages(giantstep.derivations.__path__, "giantstep.derivations."):
        importlib.import_module(module.name)
    for name in dir(gs):
        getattr(gs, name)
    names = {name.partition(",")[0] for name in MADE}
    # What a class has that is one of another, such as spectra of each theory, is the other's.
    found = {
        one.__name__
        for one in classes()
        if "_document" in vars(one) and not any("_document" in vars(x) for x in one.__mro__[1:])
    }
    assert found - {"JsonDocument"} <= names


class Reader(HTMLParser):
    """Checks that elements close in order; collects the text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.opened, self.read = [], []

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.read.append(data)


def read_html(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert not reader.opened
    return " ".join(reader.read)


def has_own(result, *names):
    return any(getattr(type(result), name) is not getattr(Result, name) for name in names)


def test_text_and_html_show_the_same(result):
    if has_own(result, "_repr_html_") or isinstance(result, gs.Staircase):
        # Formulas, or as wide as the page.
        assert result._repr_html_() and str(result)
        return
    shown = read_html(result._repr_html_()).split()
    for word in str(result).replace("│", " ").replace("─", " ").replace("┼", " ").split():
        assert word in shown or f"{word}:" in shown or word == "-"


def test_latex_is_balanced_and_says_all_numbers(result):
    text = result.latex()
    assert result._repr_latex_() == rf"$\displaystyle {text}$"
    assert text.count("{") == text.count("}") and text.count(r"\left") == text.count(r"\right")
    assert text.count(r"\begin") == text.count(r"\end")
    assert not any(c in text for c in "\n±")


def test_json_reads_back_equal(result):
    text = result.to_json()
    json.loads(text, parse_constant=pytest.fail)
    again = type(result).from_json(text)
    assert again == result and str(again) == str(result) and again.to_json() == text
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_dictionary_holds_all_fields_and_reads_back(result):
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    if not has_own(result, "to_dict"):
        names = {f.name for f in fields(result) if f.name != "cache_folder"}
        assert names <= set(values)
        assert str(type(result).from_dict(values)) == str(result)


def test_wrong_documents_are_refused_by_name(result):
    kind = type(result)
    values = json.loads(result.to_json())
    needed = next(f.name for f in fields(kind))
    if kind.from_dict.__func__ is not Result.from_dict.__func__:
        with pytest.raises(gs.errors.GiantstepError):
            kind.from_json(json.dumps({"kind": values["kind"]}))
        return
    for wrong, word in (
        ({**values, "surprise": 1}, "no field is named 'surprise'"),
        ({k: v for k, v in values.items() if k != needed}, f"'{needed}' is missing"),
        ({**values, needed: ["<"]}, needed),
    ):
        with pytest.raises(ParameterError, match=word):
            kind.from_json(json.dumps(wrong))
    for text in ("", "[]", "{}", "null", '{"kind": "giantstep other"}'):
        with pytest.raises(ParameterError, match="to_json"):
            kind.from_json(text)
    for value in (None, 3, "x", []):
        with pytest.raises(ParameterError, match="fields by name"):
            kind.from_dict(value)


def is_number(value):
    exact = isinstance(value, sp.Expr)
    return value.is_number if exact else not isinstance(value, str | bool | tuple)


def test_every_result_that_has_numbers_has_a_figure(result):
    numbers = [row for row in result.entries() if is_number(row.value)]
    if type(result).plot is not Result.plot or type(result).picture is not Result.picture:
        assert result.plot() is not None
    elif not numbers:
        with pytest.raises(ParameterError, match="no finite numbers to draw"):
            result.plot()
    else:
        axes = result.plot()
        named = {text.get_text() for text in axes.get_yticklabels()}
        assert named and named <= {row.words for row in numbers}
        assert result.plot(ax=axes) is axes


def test_results_with_nan_are_equal():
    ridge = replace(STEP, student="z**3 - 3*z").optimum(over="ridge")
    assert math.isnan(ridge.curvature) and ridge == pickle.loads(pickle.dumps(ridge))
    assert hash(ridge) == hash(replace(ridge, curvature=float("nan")))
    assert ridge != replace(ridge, curvature=1.0) and ridge != "a ridge"
    one = replace(FLOATS, several={"m": float("nan")}, value=NUMBER.context.nan, digits=20)
    assert one == replace(one, several={"m": -float("nan")}) != replace(one, several={"m": 1.0})


def test_dataset_holds_the_numbers(result):
    data = result.to_dataset()
    for row in result.entries():
        if isinstance(row.value, float):
            assert float(data[row.name]) == row.value
            assert data[row.name].attrs["long_name"] == row.words
    if "rests_on" in data.attrs:
        assert data.attrs["rests_on"] == result.rests_on
    for name, variable in data.variables.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs.get("units") == "1" or variable.dtype.kind not in "biufc", name


def test_numbers_have_units_and_texts_have_none():
    data = labelled({"risk": ("layer", [0.5]), "passed": ("layer", [True])}, {"layer": ["first"]})
    assert data["risk"].attrs["units"] == data["passed"].attrs["units"] == "1"
    assert "units" not in data["layer"].attrs and data["layer"].attrs["long_name"] == "layer"


# ---------------------------------------------------------------------- declarations


@dataclass(frozen=True, repr=False)
class Inner:
    share: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Example(Result):
    _document = "example"
    _where = ("count",)
    rests_on = "a < b & c"

    value: Number = field(metadata=quantity("value <v>", r"\hat{v}", meaning="what & why"))
    several: dict[str, Number] = field(metadata=quantity("several", symbols={"m": "m_0"}))
    pair: tuple[Number, Number] = field(metadata=quantity("pair", significant=3))
    found: bool | None = field(metadata=quantity("found"))
    count: int = 2
    parts: tuple[Inner, ...] = ()
    errors: dict[str, Number] = field(default_factory=dict)
    digits: int | None = None


FLOATS = Example(1.5e-7, {"m": 0.25, "none": math.nan}, (1 / 3, math.inf), True,
                 parts=(Inner(0.5, ("a",)),), errors={"value": 1e-9})  # fmt: skip


def test_page_of_an_example():
    assert str(FLOATS).splitlines() == [
        "value <v>  1.5e-07       what & why",
        "m          0.25",
        "none       nan",
        "pair       [0.333, inf]",
        "found      yes",
        "a < b & c",
    ]
    page = FLOATS._repr_html_()
    row = "<td>1.5e-07</td><td>what &amp; why</td><td>± 1.1e-09</td>"
    assert f"<th>value &lt;v&gt;</th>{row}" in page
    assert page.endswith("<p>a &lt; b &amp; c</p>")
    assert FLOATS.latex() == (
        r"\begin{aligned}\hat{v} &= 1.5 \cdot 10^{-7} \\ m_0 &= 0.25 \\ "
        r"\text{none} &= \text{nan} \\ \text{pair} &= [0.333, \infty] \\ "
        r"\text{found} &= \text{yes}\end{aligned}"
    )
    assert repr(FLOATS) == "Example(count=2, value=1.5e-07, pair=[0.333, inf], found=yes)"


def test_what_is_not_there_is_not_shown():
    shown = str(replace(FLOATS, several={}, pair=(), found=None, errors={}))
    assert shown.splitlines() == ["value <v>  1.5e-07  what & why", "a < b & c"]
    assert "±" not in replace(FLOATS, errors={})._repr_html_()


def test_floats_show_no_digit_beyond_the_first_that_their_error_changes():
    found = replace(FLOATS, value=0.123456789, pair=(1 / 3, 200 / 3),
                    errors={"value": 4e-4, "pair": 2e-2})  # fmt: skip
    shown = str(found)
    assert "value <v>  0.1235  " in shown and "[0.33, 66.7]" in shown
    assert "value=0.1235" in repr(found) and "0.1235" in found.latex()
    assert found.to_dict()["value"] == 0.123456789 and Example.from_json(found.to_json()) == found
    assert "0.1  " in str(replace(found, errors={"value": 4.0}))
    assert "0.123456789  " in str(replace(found, errors={"value": 0.0}))


def test_digits_are_those_that_hold():
    ctx = local_context(20)
    third = ctx.mpf(1) / 3
    found = replace(FLOATS, value=third, several={}, pair=(third, ctx.inf), digits=20,
                    errors={"value": ctx.mpf(10) ** -6})  # fmt: skip
    assert found.to_dict()["value"] == "0.33333" and "0.33333  " in str(found)
    assert found.to_dict()["pair"] == ["0.33333333333333333333", "inf"]
    again = Example.from_json(found.to_json())
    assert again == found and isinstance(again.value, mpmath.ctx_mp_python._mpf)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": True}, "value must be a number, got True"),
        ({"value": "1.5"}, "value must be a number, got '1.5'"),
        ({"several": [1]}, "several must hold values by name"),
        ({"several": {"m": None}}, r"several\['m'\] must be a number"),
        ({"pair": [1.0]}, "pair must have 2 entries, got 1"),
        ({"pair": 1.0}, "pair must be a list"),
        ({"found": "yes"}, "found must be true or false"),
        ({"count": 2.5}, "count must be a whole number"),
        ({"count": True}, "count must be a whole number"),
        ({"parts": [{"share": "a"}]}, "parts.share must be a number"),
        ({"parts": [{"other": 1}]}, "parts must hold share, names"),
        ({"digits": 0}, "digits must be >= 1"),
        ({"digits": "many"}, "digits must be a whole number"),
        ({"digits": 20, "value": "abc"}, "value must be a number, got 'abc'"),
    ],
)
def test_values_of_another_type_are_refused(change, message):
    with pytest.raises(ParameterError, match=f"no example written by.*{message}"):
        Example.from_dict({**FLOATS.to_dict(), **change})


def test_blocks_in_text_and_html():
    class Shown(Page):
        def page(self):
            yield "a < b"
            yield ""
            yield Table([("1", "2")], ("x", "y", "z"), beside=[("3",)])
            yield Indented([Listing(("p", "q"), beside=("r",)), "s"])

    assert str(Shown()) == "a < b\n\nx │ y\n──┼──\n1 │ 2\n    - p\n    - q\n  s"
    assert Shown()._repr_html_() == (
        "<p>a &lt; b</p><table><tr><th>x</th><th>y</th><th>z</th></tr>"
        "<tr><th>1</th><td>2</td><td>3</td></tr></table><ul><li>p: r</li><li>q</li></ul><p>s</p>"
    )


def test_documents_of_before_are_read():
    # A risk of release 0.1.0 with digits, which were cut off, and without the later entries.
    risk = STEP.risk(ridge=0.1, digits=30)
    old = {k: v for k, v in risk.to_dict().items() if k != "certificate"}
    text = json.dumps({"kind": "giantstep one-step risk", **old})
    again = type(risk).from_json(text)
    assert str(again) == str(risk) and abs(again.trained - risk.trained) < 1e-29


def test_documents_of_a_giant_step_that_was_told_by_texts_are_read():
    values = {"target": "x1*x2 + x1", "variables": ["x1", "x2"], "student": "gelu"}
    old = {**values, "biases": False, "noise_variance": "1/4", "statements": []}
    step = gs.giant_step("x1*x2 + x1", "gelu", noise_variance="1/4")
    assert type(step).from_dict(old) == step
    with pytest.raises(ParameterError, match="no giant step"):
        type(step).from_dict({**old, "student": ""})


def test_documents_of_readouts_with_results_of_their_own_are_read():
    solved = MADE["Solution, of a loss"]()
    document = json.loads(solved.to_json())
    old = {**document, "kind": "giantstep saddle point of a convex readout"}
    del old["quadrature_error"]
    assert type(solved).from_json(json.dumps(old)) == solved


@pytest.mark.parametrize("name", ["Curve", "Simulation"])
def test_results_with_other_numbers_are_others(name):
    result = MADE[name]()
    document = json.loads(result.to_json())
    column = document["dataset"]["data_vars"]["test_error"]["data"]
    while isinstance(column[0], list):
        column = column[0]
    column[0] *= 2
    assert type(result).from_json(json.dumps(document)) != result
