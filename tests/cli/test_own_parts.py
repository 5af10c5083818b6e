"""Parts by `module:name` that are of the wrong kind, or fail, end a command with one line and exit code 2."""

from pathlib import Path

import pytest

from sgfn.cli.commands import main

MODULE = """
import torch
from torch import nn
import sgfn
from sgfn.landscapes import Landscape
from sgfn.landscapes.tasks import Task, sequences
from sgfn.noise import Noise

class Ones(Landscape):
    maximum, mode_level = 1.0, 1.0
    def scores(self, objects):
        return torch.ones(objects.shape[:-1])

class Off(Ones):
    def scores(self, objects):
        raise RuntimeError("the sensor is off")

def task(name, config):
    env = sequences(config, length=3, alphabet="ACGT")
    return Task(name=name, summary="ones", env=env, landscape=Ones(), beta=1.0, config=config)

def off(name, config):
    env = sequences(config, length=3, alphabet="ACGT")
    return Task(name=name, summary="ones", env=env, landscape=Off(), beta=1.0, config=config)

def nothing(*arguments):
    return None

def no_beta(name, config):
    found = task(name, config)
    object.__setattr__(found, "beta", None)
    return found

def one(argument):
    return argument

def typo(scores, batch):
    return scores.log_foo

class Strong(Noise):
    def __init__(self, strength):
        self.strength = strength
    summary = "strong"
    def check(self, slipping, positions): pass
    def kernel(self, slippable, dtype, position=None): return None

class Encoder(nn.Module):
    def __init__(self): super().__init__()

def mixed(config, letters, length):
    return sgfn.Mixtures(matrix=torch.eye(4, dtype=torch.float64).repeat(2, 1))
"""
CASES = {
    "own_parts:Ones": "task 'own_parts:Ones': takes (), must be a function (name, config) -> Task",
    "own_parts:one": "task 'own_parts:one': takes (argument), must be a function (name, config) -> Task",
    "own_parts:nothing": "task 'own_parts:nothing': makes a NoneType, not a Task",
    "own_parts:no_beta": "task 'own_parts:no_beta': makes a Task whose beta is a NoneType, not a number",
    "own_parts:off": "own_parts.py, line 16: RuntimeError: the sensor is off",
    "own_parts:task --objective own_parts:Ones": "objective 'own_parts:Ones': takes (), must be a function (scores, tr",
    "own_parts:task --objective own_parts:typo": "objective own_parts:typo reads scores.log_foo in own_parts.py, line",
    "own_parts:task --objective own_parts:nothing": "objective own_parts:nothing must return a tensor of shape [8]",
    "own_parts:task --noise.kind own_parts:one": "noise.kind 'own_parts:one': takes (argument), must be a Noise, or",
    "own_parts:task --noise.kind own_parts:nothing": "noise.kind 'own_parts:nothing': makes a NoneType, not a Noise",
    "own_parts:task --noise.kind own_parts:Strong": "noise.kind 'own_parts:Strong': takes (strength), must be a class",
    "own_parts:task --net.encoder own_parts:Encoder": "net.encoder 'own_parts:Encoder': takes (), must be a module",
    "own_parts:task --net.encoder own_parts:nothing": "net.encoder 'own_parts:nothing': makes a NoneType, not a Module",
    "own_parts:task --form own_parts:one": "form 'own_parts:one': takes (argument), must be a function (heads, kernel",
    "own_parts:task --form own_parts:nothing": "form 'own_parts:nothing': makes a NoneType, not a Scores",
    "own_parts:task --method own_parts:nothing": "method 'own_parts:nothing': makes a NoneType, not a Learner",
    "own_parts:task --method own_parts:typo": "own_parts.py, line 38: AttributeError: 'Task' object has no attribute "
    "'log_foo'; called as method 'own_parts:typo'",
    "own_parts:task --method mh --noise.kind own_parts:mixed": "chains of edits order what comes out, and intentions",
    "own_parts:task --method mars --noise.kind own_parts:mixed": "chains of edits order what comes out, and intentions",
}


@pytest.mark.parametrize("words", CASES)
def test_a_wrong_part_is_one_line(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the field and the name, or the line of the user's code."""
    (tmp_path / "own_parts.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "own_parts", raising=False)
    assert main(["train", *words.split(), "--steps", "2", "--batch", "8", "--out", "run"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"sgfn: {CASES[words]}"), said
