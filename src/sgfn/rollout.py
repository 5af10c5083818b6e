"""Rollouts: env + policy + random numbers -> Trajectories."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.trajectories import Trajectories

LogPolicy = Callable[[Int[Tensor, "*batch S"]], Float[Tensor, "*batch A"]]
"""States to log pi(.|s), minus infinity where illegal."""
LogKernel = Callable[[Int[Tensor, "*batch S"]], Float[Tensor, "*batch A K"]]
"""States to log P(.|s,a), minus infinity where impossible."""
LogReward = Callable[[Int[Tensor, "B O"]], Float[Tensor, " B"]]


def behaviour(
    log_policy: Float[Tensor, "B A"], legal: Bool[Tensor, "B A"], explore: float, temperature: float
) -> Float[Tensor, "B A"]:
    r"""What acts while sampling: $(1-\epsilon)\,\mathrm{softmax}(\log\pi/T) + \epsilon\,\mathrm{uniform}$ on legal actions."""
    tempered = torch.softmax(log_policy / temperature, -1)
    uniform = legal.to(tempered.dtype)
    return (1.0 - explore) * tempered + explore * uniform / uniform.sum(-1, keepdim=True)


def draw(probabilities: Float[Tensor, "B A"], uniform: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Inverse-distribution sampling; an entry of probability zero is never drawn."""
    cumulative = probabilities.cumsum(-1)
    index = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(-1)
    # Rounding can put uniform * total on the total itself: fall back to the likeliest entry.
    return torch.where(index < probabilities.shape[-1], index, probabilities.argmax(-1))


@torch.no_grad()
def rollout(
    env: Env,
    log_policy: LogPolicy,
    log_reward: LogReward,
    *,
    batch: int,
    generator: torch.Generator,
    explore: float = 0.0,
    temperature: float = 1.0,
) -> Trajectories:
    """Act in the noisy environment: intend by the policy, let the kernel realise."""
    device = generator.device
    uniform = torch.rand(env.horizon, 2, batch, generator=generator, device=device)
    state, rows = env.initial(batch, device), torch.arange(batch, device=device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        action = draw(behaviour(log_policy(state), env.legal(state), explore, temperature), uniform[t, 0])
        outcome = draw(env.kernel(state)[rows, action], uniform[t, 1])
        valid.append(~env.done(state))
        intended.append(action)
        realised.append(outcome)
        state = env.apply(state, outcome)
        states.append(state)
    return _stack(env, states, intended, realised, valid, log_reward)


@torch.no_grad()
def retrace(
    env: Env,
    goals: Int[Tensor, "B O"],
    log_policy: LogPolicy,
    log_kernel: LogKernel,
    log_reward: LogReward,
    generator: torch.Generator,
) -> Trajectories:
    r"""Trajectories that end in known objects, with intentions from the posterior.

    .. math:: P(a|s,k) \propto \pi(a|s)\,\hat P(k|s,a)

    Data from elsewhere has realised tokens only; this supplies what could have been meant.
    """
    batch, device = goals.shape[0], goals.device
    uniform = torch.rand(env.horizon, 2, batch, generator=generator, device=device)
    state, rows = env.initial(batch, device), torch.arange(batch, device=device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        done = env.done(state)
        outcome = torch.where(done, 0, draw(env.toward(state, goals), uniform[t, 0]))
        posterior = torch.softmax(log_policy(state) + log_kernel(state)[rows, :, outcome], -1)
        valid.append(~done)
        intended.append(torch.where(done, 0, draw(posterior, uniform[t, 1])))
        realised.append(outcome)
        state = env.apply(state, outcome)
        states.append(state)
    return _stack(env, states, intended, realised, valid, log_reward)


def unroll(env: Env, realised: Int[Tensor, "B T"]) -> tuple[Int[Tensor, "B T+1 S"], Bool[Tensor, "B T"]]:
    """The states that a table of outcomes passes through, and which steps are valid."""
    state = env.initial(realised.shape[0], realised.device)
    states, valid = [state], []
    for outcome in realised.unbind(1):
        valid.append(~env.done(state))
        state = env.apply(state, outcome)
        states.append(state)
    return torch.stack(states, 1), torch.stack(valid, 1)


def _stack(
    env: Env, states: list[Tensor], intended: list[Tensor], realised: list[Tensor], valid: list[Tensor], reward: LogReward
) -> Trajectories:
    return Trajectories(
        intended=torch.stack(intended, 1),
        realised=torch.stack(realised, 1),
        valid=torch.stack(valid, 1),
        states=torch.stack(states, 1),
        log_reward=reward(env.objects(states[-1])),
    )
