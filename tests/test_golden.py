"""Public answers are those that were recorded: tests/reference/golden, tests/reference/README.md.

Each run asks a spread sample, the slow tests the rest of what two minutes allow; all that is
recorded is compared by ``python tests/reference/golden/record.py --compare``.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "reference" / "golden"


def _script():
    spec = importlib.util.spec_from_file_location("golden_record", GOLDEN / "record.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


record = _script()


def _compare(path, run):
    document = record.load(path)
    found = [
        difference
        for asked in record.chosen(document, run)
        for difference in record.differences(path.stem, asked, record.ask(asked))
    ]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("path", record.files(), ids=lambda path: path.stem)
def test_a_sample_of_answers_is_as_recorded(path):
    _compare(path, "always")


@pytest.mark.slow
@pytest.mark.parametrize("path", record.files(), ids=lambda path: path.stem)
def test_answers_are_as_recorded(path):
    _compare(path, "slow")


def test_files_are_small_and_have_headers():
    assert sum(path.stat().st_size for path in record.files()) <= 3_000_000
    for path in record.files():
        document = record.load(path)
        assert {"what", "giantstep", "seed", "tolerance", "records"} <= set(document)


def test_deviations_are_seen():
    asked = {"id": 1, "found": {"values": {"a": 1.0, "b": {"lower": "1", "upper": "1.1"}}}}

    def found(a, lower, upper):
        return {"values": {"a": a, "b": {"lower": lower, "upper": upper}}}

    def fields(new):
        return [d.field for d in record.differences("file", asked, new)]

    assert fields(found(1.0 + 5e-14, "1.05", "1.15")) == []
    assert fields(found(1.0 + 3e-13, "1.05", "1.15")) == ["a"]
    assert fields(found(1.0, "1.2", "1.3")) == ["b"]
    assert fields(found(1.0, "0.5", "1.5")) == ["b"]
    assert fields({"refused": ["ParameterError", "alpha"]}) == ["refusal"]


def test_components_are_compared_on_the_scale_of_their_vector():
    asked = {"id": 1, "found": {"values": {"order_parameters": {"theta": [[1e-3, 1.0]]}}}}

    def fields(*components):
        new = {"values": {"order_parameters": {"theta": [[*components]]}}}
        return [d.field for d in record.differences("file", asked, new)]

    assert fields(1e-3 + 9e-14, 1.0) == []
    assert fields(1e-3 + 2e-13, 1.0) == ["order_parameters.theta[0][0]"]
