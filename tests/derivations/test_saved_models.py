"""Every model is written as its arguments, and made of them again."""

import json
import math

import pytest

import giantstep as gs
from giantstep.errors import ParameterError

STEP = gs.OneGradientStep("erf", "erf", alpha=2.0, beta=1.5, step_size=4.0)
SPIKED = gs.SpikedRandomFeatures("tanh", "sin", step_size=3, alpha0=math.inf)
MODELS = [
    SPIKED,
    gs.SpikedRandomFeatures.from_parameters(
        "erf", "sin", spike_strength=1.2, bulk_variance=1.1, alignment=0.9, bulk="orthonormal"
    ),
    gs.VocabularyFeatures("tanh", "sin", [1, -0.5], [0.5, 0.5], step_size=3, alpha0=8, width=600),
    SPIKED.with_loss("huber(0.5)"),
    STEP,
    STEP.at_width(600),
    gs.MultiIndex("sin", 0.1),
    gs.OverlapDynamics(student="erf", teacher="erf(x1)", alpha0=math.inf, step_size=0.5),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_model_is_written_and_read(model, tmp_path):
    text = model.to_json()
    assert type(model).from_json(text) == model
    model.save(tmp_path / "model.json")
    assert type(model).from_json((tmp_path / "model.json").read_text("utf-8")) == model


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_what_is_no_such_model_is_refused(model):
    kind, document = type(model), json.loads(model.to_json())
    for text, words in (
        ("{", "not a model written by to_json"),
        (json.dumps({**document, "model": "something"}), "has no entry 'model'"),
        (json.dumps({**document, "colour": "red"}), "not a model written by to_json.*colour"),
    ):
        with pytest.raises(ParameterError, match=words):
            kind.from_json(text)


def test_arguments_outside_their_range_are_refused_as_such():
    document = {**json.loads(SPIKED.to_json()), "alpha0": -1}
    with pytest.raises(ParameterError, match="alpha0 must be positive"):
        gs.SpikedRandomFeatures.from_json(json.dumps(document))
