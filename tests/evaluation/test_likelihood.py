"""Probability of single objects against the law of all of them."""

import math

import pytest
import torch
from exact_tables import ENVS, log_of, look_up, random_table
from torch.testing import assert_close

from sgfn.envs import SequenceEnv, TabulatedEnv, laws
from sgfn.evaluation.likelihood import log_law, mean_and_error
from sgfn.noise import HiddenRate, UniformSlip


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("name", ENVS)
def test_log_law_equals_the_exact_law(name: str, alpha: float) -> None:
    env = ENVS[name](alpha)
    policy, other = (look_up(env, random_table(env, seed)) for seed in (1, 2))
    objects = env.all_objects()
    if not env.tree:
        with pytest.raises(ValueError, match="needs a tree"):
            log_law(env, log_of(policy), objects)
        return
    wanted = laws.law(env, policy)
    assert_close(log_law(env, log_of(policy), objects).exp(), wanted, atol=1e-7, rtol=1e-5)
    assert not torch.allclose(log_law(env, log_of(other), objects).exp(), wanted, atol=1e-5)
    table = TabulatedEnv(env)
    rows = random_table(env, 1).float().log()
    uniform = torch.full((env.num_objects, env.actions), -math.log(env.actions))
    padded = torch.cat([rows, uniform])  # finished states are asked too, and do not count
    assert_close(log_law(table, lambda s: padded[s[..., 0]], objects).exp(), wanted, atol=1e-7, rtol=1e-5)


def test_a_hidden_rate_is_averaged_over() -> None:
    noise = HiddenRate(mean=0.4, concentration=1.5)
    env = SequenceEnv(length=4, alphabet="ACGT", noise=noise)
    policy, objects = look_up(env, random_table(env, 1)), env.all_objects()
    found = log_law(env, log_of(policy), objects).exp()
    assert_close(found, laws.law(env, policy), atol=1e-7, rtol=1e-5)
    plain = SequenceEnv(length=4, alphabet="ACGT", noise=UniformSlip(alpha=0.4))
    assert not torch.allclose(found, laws.law(plain, policy), atol=1e-5)


def test_mean_and_error_by_hand() -> None:
    mean, error = mean_and_error(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert mean == 3.0
    assert error == pytest.approx(math.sqrt((4 + 1 + 0 + 9) / 3 / 4))
