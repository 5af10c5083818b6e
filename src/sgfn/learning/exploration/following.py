"""Rollouts that follow a plan: wanted outcomes are intended, the noise decides, and the policy fills the gaps."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env, all_known, one_hot
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.rollout import Actor, LogReward, RolloutDraws, behaviour, clocks, draw, stack
from sgfn.noise.operators import Identity, Kernel

Guide = Callable[[int, Int[Tensor, "B S"]], Float[Tensor, "B K"]]
"""(Step, states) to a law over wanted outcomes; zeros where the policy decides."""


def planned(plan: Int[Tensor, "B T"], kept: Bool[Tensor, "B T"], outcomes: int) -> Guide:
    """The guide of a plan of outcomes, where it is kept."""
    return lambda t, state: one_hot(plan[:, t], outcomes) * kept[:, t, None]


def toward(env: Env, goals: Int[Tensor, "B O"]) -> Guide:
    """The guide to given objects, from whatever state the noise has led to."""
    return lambda t, state: env.toward(state, goals)


def orders_at_once(env: Env) -> bool:
    """Whether orders can be made in one call: sequences of one length, all legal, under noise by position alone."""
    fixed = isinstance(env, SequenceEnv) and type(env).apply is SequenceEnv.apply and env.unmasked
    return fixed and not env.noise_by_state and env.intends_outcomes


@torch.no_grad()
def order_sequences(
    env: SequenceEnv, goals: Int[Tensor, "B O"], log_reward: LogReward, generator: torch.Generator
) -> Trajectories:
    """Sequences ordered through the noise, all steps at once: the law of `follow` with `toward`.

    What is intended at a position does not depend on what came out before it, and neither does the noise.
    """
    rate = env.noise.draw_rates(len(goals), generator)
    rate = None if rate is None else rate[:, None].expand(goals.shape)
    kernel = env.operator(prefixes(env, goals)[:, :-1], rate=rate)
    silent = isinstance(kernel, Identity)  # most of the time would go into random numbers that nobody reads
    realised = goals if silent else kernel.sample(goals, clocks((*goals.shape, env.outcomes), generator))
    valid = torch.ones_like(goals, dtype=torch.bool)
    states, reward = prefixes(env, realised), log_reward(realised)
    return Trajectories(intended=goals, realised=realised, valid=valid, states=states, log_reward=reward)


def prefixes(env: SequenceEnv, objects: Int[Tensor, "B T"]) -> Int[Tensor, "B T+1 T"]:
    """The states that sequences of one length pass through."""
    place = torch.arange(env.length, device=objects.device)
    written = place < torch.arange(env.length + 1, device=objects.device)[:, None]
    return torch.where(written, objects[:, None], env.blank)


@torch.no_grad()
def follow(
    env: Env, guide: Guide, log_reward: LogReward, draws: RolloutDraws, actor: Actor | None = None
) -> Trajectories:
    """Trajectories in the noisy environment whose intentions aim at wanted outcomes.

    Where none is wanted, or it cannot be intended, the actor decides, and without an actor any legal intention. Every
    outcome comes from the true kernel, so these are trajectories like all others: off-policy, and fit to learn from.
    """
    clock = draws.clock
    state = env.initial(clock.shape[2], clock.device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        done = env.done(state)
        if all_known(done):
            break
        kernel, legal = env.operator(state, rate=draws.rate), env.legal(state)
        law = aim(guide(t, state), legal, kernel)
        free = law.sum(-1, keepdim=True) == 0
        own = legal.float() if actor is None else actor.log_policy(t, state)
        own = own if actor is None else behaviour(own, legal, draws.explore, draws.temperature)
        action = draw(torch.where(free, own, law), clock[t, 0, :, : env.actions])
        outcome = kernel.sample(action, clock[t, 1, :, : env.outcomes])
        if actor is not None:
            actor.observe(t, action, outcome)
        valid.append(~done)
        intended.append(action)
        realised.append(outcome)
        state = env.apply(state, outcome)
        states.append(state)
    return stack(env, states, intended, realised, valid, log_reward)


def aim(wanted: Float[Tensor, "B K"], legal: Bool[Tensor, "B A"], kernel: Kernel) -> Float[Tensor, "B A"]:
    r"""Weights of intentions that aim at wanted outcomes; zeros where none that is legal does.

    Where intentions are the outcomes themselves, what is wanted is intended; else an intention weighs
    $\sum_k w_k P(k|s,a)$, the probability that what is wanted comes of it.
    """
    same = wanted.shape[-1] == legal.shape[-1]
    return (wanted if same else kernel.expected(wanted)) * legal
