"""Types and shapes are checked while tests run: in the first calls of a test, of functions and of dataclasses."""

import beartype
import jaxtyping
import pytest
import torch
import type_checks
from jaxtyping import Int
from torch import Tensor

from sgfn.config.checks import require
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.proxies.proxy import token_rows
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


def test_sizes_that_are_arguments_count() -> None:
    assert "N {length}" in type_checks.shapes_of(token_rows)
    assert token_rows(["AC", "CA"], "AC", 2).shape == (2, 2)
    with WRONG:
        type_checks.checked(too_wide, beartype.beartype)(2)


def too_wide(length: int) -> Int[Tensor, "N {length}"]:
    return torch.zeros(3, length + 1, dtype=torch.int64)


def test_signatures_with_shapes_are_known_by_whatever_name_they_have() -> None:
    for fn, wanted in {
        TableLandscape.scores: True,
        UniformSlipKernel.__init__: True,  # a rate, which may be one for each trajectory
        Samples.__init__: True,
        require: False,
        make_task: False,
    }.items():
        assert bool(type_checks.shapes_of(fn)) == wanted, fn
