"""What several windows add to the laws that every environment passes."""

import pytest
import torch
from exact_tables import chi_square, errors, inner_states, log_of, no_reward, rows_of
from torch.testing import assert_close

from sgfn.envs import ForecastEnv, laws
from sgfn.learning.rollout import rollout
from sgfn.noise import ConfusionMatrix, UniformSlip

KERNELS = torch.stack([errors(3, 0.1), errors(3, 0.6, turn=1)])


def pair(kernels: torch.Tensor = KERNELS) -> ForecastEnv:
    return ForecastEnv(horizon=2, bins=3, noise=ConfusionMatrix(matrix=kernels), windows=2)


def test_each_window_has_its_own_kernel() -> None:
    env = pair()
    states = inner_states(env)
    assert_close(env.kernel(states, torch.float64), KERNELS[states[:, 0]])
    assert not torch.equal(KERNELS[0], KERNELS[1])


def test_windows_are_numbered_apart() -> None:
    env = pair()
    states, objects = inner_states(env), env.all_objects()
    assert sorted(env.index(states).tolist()) == list(range(env.num_states)) == list(range(8))
    assert env.object_index(objects).tolist() == list(range(env.num_objects)) == list(range(18))
    assert len(env.encode(states).unique(dim=0)) == 8
    assert torch.equal(env.parse(env.decode(objects)), objects)
    assert env.decode(objects)[-1] == "1:2 2"


def test_rollouts_take_the_windows_in_turn_and_follow_their_noise() -> None:
    env = pair()
    first = log_of(lambda states: torch.eye(3, dtype=torch.float64)[0].expand(*states.shape[:-1], 3))
    batch = rollout(env, first, no_reward, batch=20000, generator=torch.Generator().manual_seed(0))
    assert batch.states[:4, 0, 0].tolist() == [0, 1, 0, 1]
    assert torch.equal(batch.states[:, 0, 0], batch.states[:, -1, 0])
    counts = torch.stack([batch.realised[window::2].flatten().bincount(minlength=3) for window in (0, 1)])
    assert chi_square(counts, KERNELS[:, 0]) > 1e-3
    assert chi_square(counts, KERNELS.flip(0)[:, 0]) < 1e-6


def test_exact_answers_speak_of_the_first_window() -> None:
    found = laws.law(pair(), laws.uniform_policy(pair()))
    alone = ForecastEnv(horizon=2, bins=3, noise=ConfusionMatrix(matrix=KERNELS[0]))
    assert_close(found[:9], laws.law(alone, laws.uniform_policy(alone)))
    assert not found[9:].any()


@pytest.mark.parametrize("wrong", [{"horizon": 0}, {"bins": 1}, {"windows": 0}])
def test_empty_forecasts_are_refused(wrong: dict[str, int]) -> None:
    settings = {"horizon": 2, "bins": 3, "windows": 1}
    assert ForecastEnv(**settings, noise=UniformSlip(alpha=0.0)).width == 3
    with pytest.raises(ValueError, match=r"^a forecast needs 1 step, 2 bins and 1 window or more"):
        ForecastEnv(**settings | wrong, noise=UniformSlip(alpha=0.0))


def test_a_kernel_for_each_window_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"^there are 2 confusion matrices, the task has 3 positions$"):
        ForecastEnv(horizon=2, bins=3, noise=ConfusionMatrix(matrix=KERNELS), windows=3)
    assert rows_of(pair().initial(3)) == [(0, 3, 3), (1, 3, 3), (0, 3, 3)]
