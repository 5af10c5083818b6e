"""Results of an evaluation: by attribute, by name, and as JSON."""

import json
from dataclasses import FrozenInstanceError, replace

import pytest

import sgfn
from sgfn.evaluation.result import NAMES, SELDOM, Evaluation


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return sgfn.fit("grid", progress=False, steps=2, batch=4, grid__side=3).evaluate(samples=16)


def test_figures_have_names_and_types_and_are_read_as_json_has_them(found: Evaluation) -> None:
    assert found.tv == found["tv"] is not None
    assert (found.task, found.step, found.samples) == ("grid", 2, 16)
    assert list(found) == [name for name in NAMES if name in found]
    assert json.loads(json.dumps(dict(found))) == found
    assert json.loads(json.dumps(dict(found))) != replace(found, tv=0.5)
    with pytest.raises(FrozenInstanceError):
        found.tv = 0.0  # pyright: ignore


def test_what_a_task_does_not_have_is_left_out_or_none(found: Evaluation) -> None:
    assert "kl_error" in SELDOM
    assert "kl_error" not in found
    assert found.kl_error is None
    assert found["diversity"] is None
    with pytest.raises(KeyError, match="tvv"):
        found["tvv"]
