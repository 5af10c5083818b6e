"""Results of an evaluation: by attribute, by name, and as JSON."""

import json
from dataclasses import FrozenInstanceError, fields, replace

import pytest

import sgfn
from sgfn.evaluation.result import Evaluation
from sgfn.landscapes.ehrlich import Ehrlich


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return sgfn.fit("grid", progress=False, steps=2, batch=4, grid__side=3).evaluate(samples=16)


def test_figures_have_names_and_types_and_are_read_as_json_has_them(found: Evaluation) -> None:
    assert found.tv == found["tv"] is not None
    assert (found.task, found.step, found.samples) == ("grid", 2, 16)
    assert list(found) == [field.name for field in fields(found) if field.name in found]
    assert json.loads(json.dumps(dict(found))) == found
    assert json.loads(json.dumps(dict(found))) != replace(found, tv=0.5)
    with pytest.raises(FrozenInstanceError):
        found.tv = 0.0  # pyright: ignore


def test_what_is_printed_fits_on_a_screen(found: Evaluation) -> None:
    assert repr(found).startswith("Evaluation(task='grid', step=2, samples=16, ")
    assert f"tv={found.tv:.4g}" in repr(found)
    assert "designs=..." in repr(found)
    assert len(repr(found)) < 1000 < len(str(dict(found)))


def test_what_a_task_does_not_have_is_left_out_or_none(found: Evaluation) -> None:
    assert "kl_error" in Evaluation.seldom
    assert "kl_error" not in found
    assert found.kl_error is None
    assert found["diversity"] is None
    with pytest.raises(KeyError, match="tvv"):
        found["tvv"]


def test_facts_of_a_task_are_read_both_ways_and_leave_out_what_is_unknown() -> None:
    facts = sgfn.describe("grid", sgfn.TrainConfig().with_(grid__side=3))
    assert facts.objects == facts["objects"] == 9
    assert facts.exact
    assert "log_z" not in facts
    assert facts.log_z is None
    assert dict(facts) == json.loads(json.dumps(dict(facts)))
    with pytest.raises(FrozenInstanceError):
        facts.objects = 0  # pyright: ignore


def test_the_list_of_tasks_has_rows_with_names() -> None:
    rows = {row.task: row for row in sgfn.catalogue(sgfn.TrainConfig())}
    assert rows["grid"].exact == rows["grid"]["exact"] == "yes"
    assert rows["table"].exact is None
    assert not rows["table"].ready


def test_what_a_landscape_of_ones_own_tells_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ehrlich, "facts", lambda *_: {"optimum": "A", "source": "a paper"})
    facts = sgfn.describe("ehrlich", sgfn.TrainConfig())
    assert (facts.optimum, facts.further) == ("A", {"source": "a paper"})
