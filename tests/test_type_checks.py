"""Types and shapes are checked while tests run: in the first calls of a test, of functions and of dataclasses."""

import jaxtyping
import pytest
import torch
import type_checks

from sgfn.config.checks import require
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import make_task
from sgfn.noise.operators import UniformSlipKernel

WRONG = pytest.raises(jaxtyping.TypeCheckError)


def test_a_wrong_type_is_noticed_in_the_first_calls_of_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_checks, "FIRST", 2)
    for _ in range(2):
        with WRONG:
            require(True, 3, "be", 0)  # pyright: ignore[reportArgumentType]
    require(True, 3, "be", 0)  # pyright: ignore[reportArgumentType] -- the price of tests that end
    type_checks.new_test()
    with WRONG:
        require(True, 3, "be", 0)  # pyright: ignore[reportArgumentType]


def test_shapes_and_kinds_of_numbers_count() -> None:
    landscape = TableLandscape(torch.ones(4), vocab=2, mode_level=0.5)
    assert landscape.scores(torch.zeros(3, 2, dtype=torch.int64)).shape == (3,)
    with WRONG:
        landscape.scores(torch.zeros(3, 2))


def test_axes_of_one_name_have_one_size() -> None:
    objects, scores = torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3)
    assert Samples(objects=objects, scores=scores, intended=objects)
    type_checks.new_test()
    with WRONG:
        Samples(objects=objects, scores=torch.zeros(4), intended=objects)


def test_signatures_with_shapes_are_known_by_whatever_name_they_have() -> None:
    for fn, wanted in {
        TableLandscape.scores: True,
        UniformSlipKernel.__init__: True,  # a rate, which may be one for each trajectory
        Samples.__init__: True,
        require: False,
        make_task: False,
    }.items():
        assert type_checks.has_shapes(fn) == wanted, fn
