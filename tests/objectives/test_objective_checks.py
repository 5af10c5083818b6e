"""Objectives of others are checked alike, by name or as functions."""

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

import sgfn
from sgfn.envs.trajectories import Episodes
from sgfn.objectives.scores import Scores

WRONG: dict[str, tuple[Any, str]] = {
    "scalar": (lambda s, b: s.log_pf.sum(), r"must return a tensor of shape \[[48]\], one loss each, got shape \[\]"),
    "steps": (lambda s, b: s.log_pf, r"got shape \[[48], 7\]"),
    "list": (lambda s, b: [0.0] * 8, "got list"),
    "fixed": (lambda s, b: b.log_reward, "returned losses without a gradient"),
    "nan": (lambda s, b: s.log_pf.sum(1) * torch.nan, "gave a loss of nan for finite scores"),
}

ABSENT: dict[str, tuple[Any, str]] = {
    "slip": (lambda s, b: s.log_flows.sum(1), r"reads scores\.log_flows in .*, line \d+.*; did you mean log_flow\?"),
    "none such": (lambda s, b: s.energy, r"reads scores\.energy in .*: choose from log_pf, [^;]*, log_intention$"),
    "states": (lambda s, b: b.states.sum(), r"reads trajectories\.states in .*: choose from intended, [^;]*, length$"),
    "a method": (lambda s, b: s.projection.sum(1), r"failed in .*'sum'\): of .* log_expected are None; "),
    "an operand": (lambda s, b: 0.5 * s.projection, r"failed in .*Type'\): of .* log_expected are None; "),
}
"""Objectives that read what is not there."""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = ModuleType("own_objectives")
    found.__file__ = __file__
    for name, (function, _) in WRONG.items():
        setattr(found, name, function)
    monkeypatch.setitem(sys.modules, "own_objectives", found)
    return found


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("way", ["name", "function", "base"])
def test_a_wrong_objective_is_refused_however_it_is_given(module: ModuleType, name: str, way: str) -> None:
    """One line that names it; as the base of another objective too, which is tried with a few trajectories first."""
    function, words = WRONG[name]
    ways: dict[str, dict[str, Any]] = {
        "name": {"objective": f"own_objectives:{name}"},
        "function": {"objective": function},
        "base": {"objective": "kl", "kl__flow": f"own_objectives:{name}"},
    }
    if way == "base" and name == "nan":
        pytest.skip("only the sum of both is looked at")
    with pytest.raises(ValueError, match=words) as caught:
        sgfn.fit("words", steps=1, batch=8, progress=False, net__hidden=8, **ways[way])
    label = "<lambda>" if way == "function" else f"own_objectives:{name}"
    assert str(caught.value).startswith("objective ")
    assert label in str(caught.value)


@pytest.mark.parametrize("name", ABSENT)
def test_an_objective_that_reads_what_is_not_there_is_told_what_is(name: str) -> None:
    """In one line that names the objective too."""
    function, words = ABSENT[name]
    with pytest.raises(ValueError, match=words) as caught:
        sgfn.fit("words", objective=function, steps=1, batch=8, progress=False, net__hidden=8)
    assert str(caught.value).startswith("objective <lambda> ") or ":<lambda> " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_errors_of_an_objective_are_its_own() -> None:
    """They keep their kind and their traceback."""
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'summe'"):
        sgfn.fit("words", objective=lambda s, b: s.log_pf.summe(1), steps=1, batch=8, progress=False, net__hidden=8)


def test_losses_that_get_lost_later_are_told_without_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory there are none, and settings have no dashes."""
    calls = []

    def later(scores: Scores, batch: Episodes) -> torch.Tensor:
        calls.append(0)
        return scores.log_pf.sum(1) * (torch.nan if len(calls) > 2 else 1.0)

    with pytest.raises(RuntimeError, match=r"near step \d+ \(loss nan\): lower optim__lr or beta") as caught:
        sgfn.fit("words", objective=later, steps=3, batch=8, progress=False, net__hidden=8)
    assert "checkpoint" not in str(caught.value)
    assert "--" not in str(caught.value)
