"""Every model answers to every verb: with a result that shows itself, or with a reason."""

import inspect
from typing import Any

import numpy as np
import pytest
import xarray as xr

import giantstep as gs
from giantstep.derivations.json_text import saved_model
from giantstep.errors import GiantstepError, ParameterError

STEP = gs.OneGradientStep("erf", "erf", alpha=2, beta=1.5, step_size=3, noise_variance=0.1)
FEATURES = gs.SpikedRandomFeatures.from_parameters(
    "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, noise_variance=0.1
)
LETTERS = gs.VocabularyFeatures("erf", "sin", [1, -0.5], [0.5, 0.5], step_size=2, alpha0=8)
MODELS = {
    "features": FEATURES,
    "letters": LETTERS,
    "loss": FEATURES.with_loss("square"),
    "step": STEP,
    "width": STEP.at_width(600),
    "index": gs.MultiIndex("sign"),
    "overlaps": gs.OverlapDynamics(
        student="erf", teacher="erf(x1)", teacher_overlaps=[[0.1]], step_size=0.5, alpha0=3
    ),
}
READOUTS = [name for name in MODELS if name not in ("index", "overlaps")]
WHERE = {name: {"alpha": 2.0, "ridge": 0.1} for name in ("features", "letters", "loss")}
WHERE |= {name: {"ridge": 0.1} for name in ("step", "width")}
WHERE |= {"index": {"alpha": 2.0}, "overlaps": {"steps": 3}}
# What is asked where there is no penalty.
ASKED: dict[type, dict[str, dict[str, Any]]] = {
    gs.MultiIndex: {
        "curve": {"alpha": [1.0, 2.0]},
        "optimum": {"over": "noise_variance", "of": "overlap", "bounds": (0.1, 1)},
        "sensitivities": {"wrt": "alpha"},
    },
    gs.OverlapDynamics: {
        "curve": {"steps": [1, 2], "step_size": [0.1, 0.5]},
        "optimum": {"over": "step_size", "bounds": (0.05, 3)},
        "sensitivities": {"wrt": "step_size"},
    },
}


def asked(model, verb, default):
    return ASKED.get(type(model), {}).get(verb, default)


VERBS = {
    "solve": lambda m, at: m.solve(**at),
    "digits": lambda m, at: m.solve(**at, digits=18),
    "certify": lambda m, at: m.solve(**at, certify=True),
    "curve": lambda m, at: m.curve(
        **{**at, **asked(m, "curve", {"ridge": [0.1, 0.2]})}, progress=False
    ),
    "optimum": lambda m, at: m.optimum(
        **{k: v for k, v in at.items() if k != "ridge"},
        **asked(m, "optimum", {"over": "ridge"}),
        progress=False,
    ),
    "digits of an optimum": lambda m, at: m.optimum(
        over="ridge", digits=18, **{k: v for k, v in at.items() if k != "ridge"}
    ),
    "sensitivities": lambda m, at: m.sensitivities(
        **at, **asked(m, "sensitivities", {"wrt": "noise_variance"})
    ),
    "expansion": lambda m, at: m.expansion("large_alpha", 1, ridge=0.1, digits=15),
}
REFUSED = {
    ("letters", "digits"): "letters after a step are known as floats",
    ("letters", "certify"): "letters after a step are outside of what can be certified",
    ("letters", "digits of an optimum"): "not of VocabularyFeatures",
    ("letters", "expansion"): "letters after a step are known as floats",
    ("loss", "certify"): "outside of what can be certified",
    ("loss", "digits of an optimum"): "not of ConvexReadout",
    ("width", "digits of an optimum"): "not of StepAtWidth",
    ("index", "digits of an optimum"): "not of MultiIndex",
    ("index", "certify"): "outside of what can be certified",
    ("index", "expansion"): "begin at thresholds",
    ("overlaps", "digits"): "iterated in floating point",
    ("overlaps", "certify"): "nothing is certified",
    ("overlaps", "digits of an optimum"): "not of OverlapDynamics",
    ("overlaps", "expansion"): "have no expansion here; short steps are flow",
}
# Equations that are derived and compiled first.
SLOW = {("width", "sensitivities"), ("features", "digits of an optimum")}
SLOW |= {("loss", verb) for verb in VERBS if ("loss", verb) not in REFUSED}
# Derivatives that take longer still, in tests of their own.
ELSEWHERE = {("letters", "sensitivities"), ("loss", "sensitivities")}
RENDERINGS = ("plot", "to_dataset", "to_json", "latex", "_repr_html_")


@pytest.mark.parametrize(
    ("model", "verb"),
    [
        pytest.param(model, verb, marks=[pytest.mark.slow] * ((model, verb) in SLOW))
        for model in MODELS
        for verb in VERBS
        if (model, verb) not in ELSEWHERE
    ],
)
def test_every_model_answers_to_every_verb(model, verb):
    if verb == "certify":
        pytest.importorskip("flint")
    ask = VERBS[verb]
    if (model, verb) in REFUSED:
        with pytest.raises(GiantstepError, match=REFUSED[model, verb]):
            ask(MODELS[model], WHERE[model])
        return
    found = ask(MODELS[model], WHERE[model])
    assert [name for name in RENDERINGS if not hasattr(found, name)] == []
    assert isinstance(found.to_dataset(), xr.Dataset)
    assert found.latex() and found._repr_html_().startswith("<")
    assert str(type(found).from_json(found.to_json())) == str(found)


@pytest.mark.parametrize("model", MODELS)
def test_parameters_of_questions_go_by_name(model):
    for verb in ("solve", "curve", "optimum", "sensitivities"):
        known = inspect.signature(getattr(MODELS[model], verb)).parameters.values()
        kinds = {p.kind for p in known}
        assert kinds <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}, verb
    signature = inspect.signature(type(MODELS[model]).optimum)
    assert signature == inspect.signature(gs.SpikedRandomFeatures.optimum)


@pytest.mark.parametrize("model", ["features", "letters", "loss", "step"])
def test_other_names_are_told_the_known_ones(model):
    with pytest.raises(TypeError, match=r"solve\(\) has no parameter 'rige'; there are: .*ridge"):
        MODELS[model].solve(**WHERE[model], rige=1)


@pytest.mark.parametrize("model", READOUTS)
def test_models_are_networks_kernels_documents_and_pages(model):
    one = MODELS[model]
    dimension = () if model == "width" else (40,)
    assert one.network(*dimension).dimension in (40, 400)
    assert isinstance(one.kernel(), gs.Kernel)
    assert saved_model(one.to_json()) == one
    assert one._repr_html_().startswith("<")


def test_other_models_are_networks_and_documents():
    index, overlaps = MODELS["index"], MODELS["overlaps"]
    assert index.network(40).dimension == overlaps.network(steps=2, dimension=40).dimension == 40
    assert isinstance(index.kernel(), gs.Kernel) and "q" in index.latex()
    runs = overlaps.simulate(steps=2, dimension=40, seeds=2, progress=False)
    assert type(runs).from_json(runs.to_json()) == runs
    with pytest.raises(ParameterError, match="is a program of many averages"):
        overlaps.latex()
    for model in (index, overlaps):
        assert saved_model(model.to_json()) == model and model._repr_html_().startswith("<")
    with pytest.raises(ParameterError, match="is 0 exactly, an end of its range"):
        gs.MultiIndex("abs").solve(alpha=0.3, digits=15)


def test_derivatives_of_overlaps_are_those_of_the_steps():
    model, h = MODELS["overlaps"], 1e-5
    found = model.sensitivities(steps=3)
    for name in ("step_size", "alpha0", "weight_decay", "noise_variance"):
        value = getattr(model, name)
        moved = [
            model.at(**{name: value + k * h}).solve(steps=3, progress=False).column("M_1_1")[-1]
            for k in (1, 2, 0)
        ]
        slope = (4 * moved[0] - moved[1] - 3 * moved[2]) / (2 * h)
        assert found["M_1_1", name] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("model", ["features", "letters", "loss"])
def test_networks_of_all_readouts_take_the_same_options(model):
    options = {"alpha": [1.0], "ridge": 0.1, "seeds": 1, "progress": False}
    drawn = MODELS[model].simulate(40, equivalent=True, **options)
    assert np.isfinite(drawn.test_error).all()
    if model == "features":
        found = MODELS[model].simulate(40, control_variate=True, **options)
        assert np.isfinite(found.test_error).all()
        return
    if model == "letters":
        with pytest.raises(ParameterError, match="features of one letter"):
            MODELS[model].simulate(40, control_variate=True, **options)
        return
    with pytest.raises(ParameterError, match="labels are those of the readout, 'regression'"):
        MODELS[model].network(40, labels="sign")


def test_no_such_model():
    with pytest.raises(ParameterError, match="there is no model 'nothing'"):
        saved_model('{"model": "nothing"}')
    with pytest.raises(ParameterError, match="not a model written by to_json"):
        saved_model("[]")


@pytest.mark.parametrize(
    ("options", "name", "held", "near"),
    [
        ({}, "small_step", {"ridge": 0.1}, 0.02),
        ({"letters": [1, -1]}, "large_alpha", {"ridge": 0.1}, 1000.0),
        ({}, "large_alpha", {"ridge": gs.paper_ridge(0.1)}, 1000.0),
        ({}, "small_ridge", {}, 1e-5),
        ({"alpha": 1.0}, "small_ridge", {}, 1e-5),
        ({"alpha": 1.5}, "small_ridge", {}, 1e-5),
    ],
)
def test_series_at_a_width_are_those_of_the_solution(options, name, held, near):
    own = {key: value for key, value in options.items() if key == "letters"}
    step = STEP.at(alpha=options.get("alpha", 2))
    series = step.at_width(600, **own).expansion(name, 3, **held)
    exact = series.exact(near, 30)
    for output in series.outputs:
        left = abs(series(near, output) - exact[output])
        estimate = series.estimate_of_remainder(near, output)
        assert left <= 1.2 * estimate + 1e-15 * abs(exact[output]), output
        if output != "small":
            assert estimate < 1e-4 * abs(exact[output])
    again = type(series).from_json(series.to_json())
    assert again == series and again.region.endswith("the radius of convergence is not known")


@pytest.mark.parametrize(
    ("name", "ridge", "words"),
    [("large_alpha", 0.0, "fixed penalty must be positive"),
     ("small_ridge", 0.1, "cannot be held fixed"), ("small_steps", 0.1, "did you mean 'small_st")],
)  # fmt: skip
def test_series_at_a_width_that_are_refused(name, ridge, words):
    with pytest.raises(ParameterError, match=words):
        STEP.at_width(600).expansion(name, ridge=ridge)
