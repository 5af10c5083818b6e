"""Rollouts: env + policy + random numbers -> Trajectories."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories

LogPolicy = Callable[[Int[Tensor, "*batch S"]], Float[Tensor, "*batch A"]]
"""States to log pi(.|s), minus infinity where illegal."""
LogKernel = Callable[[Int[Tensor, "*batch S"]], Float[Tensor, "*batch A K"]]
"""States to log P(.|s,a), minus infinity where impossible."""
LogReward = Callable[[Int[Tensor, "B O"]], Float[Tensor, " B"]]


@runtime_checkable
class Actor(Protocol):
    """Who acts in a rollout: asked for a policy at each step, then told what was intended and what happened."""

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) at step t."""
        ...

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """What step t brought; an actor with a memory keeps it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What an actor did that walked the whole way by itself."""

    intended: Int[Tensor, "B T"]
    realised: Int[Tensor, "B T"]
    states: Int[Tensor, "B T+1 S"]


@runtime_checkable
class WholeWalker(Actor, Protocol):
    """An actor that may do all steps at once, with the same random numbers and the same result."""

    def walk(self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor) -> Steps | None:
        """All steps; None where it has to be asked one by one."""
        ...


@dataclass(frozen=True)
class Memoryless:
    """A policy that reads the state alone, or one such policy for each step."""

    policies: LogPolicy | list[LogPolicy]

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """The policy of the step."""
        return self.policies[t](state) if isinstance(self.policies, list) else self.policies(state)

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Nothing is remembered."""


Policy = Actor | LogPolicy | list[LogPolicy]


def as_actor(policy: Policy) -> Actor:
    """Whoever can act; a plain policy acts without a memory."""
    return policy if isinstance(policy, Actor) else Memoryless(policy)


def behaviour(
    log_policy: Float[Tensor, "B A"], legal: Bool[Tensor, "B A"], explore: float, temperature: float | Tensor
) -> Float[Tensor, "B A"]:
    r"""What acts while sampling: $(1-\epsilon)\,\mathrm{softmax}(\log\pi/T) + \epsilon\,\mathrm{uniform}$."""
    plain = not isinstance(temperature, Tensor) and temperature == 1.0
    tempered = log_policy.exp() if plain else torch.softmax(log_policy / temperature, -1)
    if explore == 0.0:
        return tempered
    uniform = legal.to(tempered.dtype)
    return torch.lerp(tempered, uniform / uniform.sum(-1, keepdim=True), explore)


def clocks(shape: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    """A block of standard exponential waiting times, for `draw`."""
    times = torch.empty(shape, device=generator.device).exponential_(generator=generator)
    return times.clamp_(min=1e-30)  # a zero would win against any probability, even zero


def draw(probabilities: Float[Tensor, "B A"], clock: Float[Tensor, "B A"]) -> Int[Tensor, " B"]:
    """Exponential race: action a rings at rate p_a, the first one is drawn; an entry of probability zero never is."""
    return (probabilities / clock).argmax(-1)


@torch.no_grad()
def rollout(
    env: Env,
    policy: Policy,
    log_reward: LogReward,
    *,
    batch: int,
    generator: torch.Generator,
    explore: float = 0.0,
    temperature: float | Tensor = 1.0,
) -> Trajectories:
    """Act in the noisy environment: intend by the policy, let the kernel realise."""
    actor = as_actor(policy)
    device = generator.device
    clock = clocks((env.horizon, 2, batch, env.actions), generator)
    rate = env.noise.draw_rates(batch, generator)  # hidden from whoever acts
    whole = actor.walk(clock, explore, temperature) if rate is None and isinstance(actor, WholeWalker) else None
    if whole is not None:
        valid = ~env.done(whole.states[:, :-1])
        return Trajectories(**vars(whole), valid=valid, log_reward=log_reward(env.objects(whole.states[:, -1])))
    state = env.initial(batch, device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        action = draw(behaviour(actor.log_policy(t, state), env.legal(state), explore, temperature), clock[t, 0])
        outcome = draw(env.kernel_row(state, action, rate), clock[t, 1])
        actor.observe(t, action, outcome)
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
    policy: Policy,
    log_kernel: LogKernel,
    log_reward: LogReward,
    generator: torch.Generator,
) -> Trajectories:
    r"""Trajectories that end in known objects, with intentions from the posterior.

    .. math:: P(a|s,k) \propto \pi(a|s)\,\hat P(k|s,a)

    Data from elsewhere has realised tokens only; this supplies what could have been meant.
    """
    actor = as_actor(policy)
    batch, device = goals.shape[0], goals.device
    clock = clocks((env.horizon, 2, batch, env.actions), generator)
    state, rows = env.initial(batch, device), torch.arange(batch, device=device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        done = env.done(state)
        outcome = torch.where(done, 0, draw(env.toward(state, goals), clock[t, 0]))
        # A learned P^ never rules anything out; pi_B does, so what cannot have been meant is left out here too.
        meant = actor.log_policy(t, state).masked_fill(env.kernel(state)[rows, :, outcome] == 0, -torch.inf)
        posterior = torch.softmax(meant + log_kernel(state)[rows, :, outcome], -1)
        valid.append(~done)
        intended.append(torch.where(done, 0, draw(posterior, clock[t, 1])))
        realised.append(outcome)
        actor.observe(t, intended[-1], outcome)
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
    env: Env,
    states: list[Tensor],
    intended: list[Tensor],
    realised: list[Tensor],
    valid: list[Tensor],
    reward: LogReward,
) -> Trajectories:
    return Trajectories(
        intended=torch.stack(intended, 1),
        realised=torch.stack(realised, 1),
        valid=torch.stack(valid, 1),
        states=torch.stack(states, 1),
        log_reward=reward(env.objects(states[-1])),
    )
