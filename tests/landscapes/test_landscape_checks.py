"""Landscapes of others are tried once before training."""

import pytest
import torch
from torch import Tensor

import sgfn
from sgfn.landscapes import Landscape


class Own(Landscape):
    """Scores that are given."""

    maximum, mode_level = 1.0, 1.0

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def scores(self, objects: Tensor) -> Tensor:
        return self.answer(objects)  # pyright: ignore[reportCallIssue]


WRONG = {
    "shape": (
        lambda o: o.float(),
        r"Own.scores must return numbers of shape \[32\], got .* of shape \[32, 2\]",
    ),
    "nan": (lambda o: o.float().sum(-1) * torch.nan, "Own.scores must be finite and 0 or above, got nan for '[AC]{2}'"),
    "negative": (lambda o: -1.0 - o.float().sum(-1), "Own.scores must be finite and 0 or above, got -"),
    "list": (lambda o: [1.0] * len(o), "Own.scores must return numbers .* got a list"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_landscape_that_answers_wrongly_is_named(case: str) -> None:
    """Class and method, what was expected, what came."""
    answer, words = WRONG[case]
    with pytest.raises(ValueError, match=words):
        sgfn.fit(sgfn.Sequences("AC", 2), reward=Own(answer), steps=1, progress=False)


def test_a_landscape_that_fails_later_is_named() -> None:
    """Whoever trains in memory reads whose score it was."""
    calls = []

    def later(objects: Tensor) -> Tensor:
        calls.append(0)
        return objects.float().sum(-1) * (torch.nan if len(calls) > 1 else 1.0)

    with pytest.raises(RuntimeError, match="Own gave a score that is no finite number of 0 or above, mend it"):
        sgfn.fit(sgfn.Sequences("AC", 2), reward=Own(later), steps=5, log__exact_every=0, progress=False)


class Worded(Own):
    """A landscape whose own things have names that others use too."""

    @property
    def notice(self) -> None:
        raise AssertionError("nobody asks for it")


def test_a_landscape_may_call_its_own_things_transform_and_notice() -> None:
    own = Worded(lambda objects: 1.0 + (objects == 0).float().sum(-1))
    own.transform = torch.nn.Linear(2, 1)  # pyright: ignore[reportAttributeAccessIssue]
    model = sgfn.fit(sgfn.Sequences("AC", 2), reward=own, steps=1, progress=lambda *_: None)
    assert [(value.order, value.score) for value in sgfn.order(model, 1).values] == [("AA", 3.0)]
