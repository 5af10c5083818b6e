"""Loading with objects that do not fit: one line that names them."""

from pathlib import Path

import pytest
import torch
from torch import nn

import sgfn
from sgfn.noise import Noise


def scores(texts: list[str]) -> list[int]:
    return [1 + text.count("A") for text in texts]


def letters(noise: float | Noise | None = None) -> sgfn.Sequences:
    return sgfn.Sequences("AC", 3, noise=noise)


def fit(env: sgfn.Sequences, **settings) -> sgfn.Model:
    return sgfn.fit(env, reward=scores, steps=2, batch=4, progress=False, **settings)


def test_the_saved_noise_is_used_and_no_other_is_passed_over(tmp_path: Path) -> None:
    model = fit(letters(0.3))
    model.save(tmp_path / "m")
    for env in (None, letters(), letters(0.3)):
        again = sgfn.load(tmp_path / "m", env=env, reward=scores)
        assert again.env.noise.summary == "uniform slip 0.3"
        assert torch.equal(again.sample(20, seed=0).tokens, model.sample(20, seed=0).tokens)
    with pytest.raises(ValueError, match=r"another noise than uniform slip 0.1 of the environment that is given"):
        sgfn.load(tmp_path / "m", env=letters(0.1), reward=scores)
    assert sgfn.load(tmp_path / "m", noise=0.1, reward=scores).env.noise.summary == "uniform slip 0.1"
    assert sgfn.load(tmp_path / "m", env=letters(0.1), noise=0.1, reward=scores).env.noise.summary == "uniform slip 0.1"


class Sticky(sgfn.Sequences):
    """Noise that reads the state."""

    def kernel(self, state, dtype=torch.float32, rate=None):
        letter = torch.eye(self.vocab, dtype=dtype)
        return letter.expand(*state.shape[:-1], *letter.shape)


def test_an_environment_that_writes_its_noise_is_given_again(tmp_path: Path) -> None:
    fit(Sticky("AC", 3)).save(tmp_path / "m")
    assert len(sgfn.load(tmp_path / "m", env=Sticky("AC", 3), reward=scores).sample(3, seed=0)) == 3


def test_a_wrong_encoder_is_named(tmp_path: Path) -> None:
    env = letters()
    fit(env, encoder=nn.Linear(env.features, 4)).save(tmp_path / "m")
    with pytest.raises(
        ValueError, match=r"has the shape \[4, \d+\], not .*; or is encoder= another one than that of the training\?"
    ):
        sgfn.load(tmp_path / "m", reward=scores, encoder=nn.Linear(env.features, 5))
    fit(env).save(tmp_path / "plain")
    with pytest.raises(ValueError, match=r"was trained without encoder= of its own: leave encoder out"):
        sgfn.load(tmp_path / "plain", reward=scores, encoder=nn.Linear(env.features, 4))


def test_save_twice_speaks_python(tmp_path: Path) -> None:
    model = fit(letters())
    model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"already holds a run: save\(\.\.\., overwrite=True\) replaces it"):
        model.save(tmp_path / "m")
    model.save(tmp_path / "m", overwrite=True)
