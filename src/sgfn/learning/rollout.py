"""Rollouts: an environment, a policy and random numbers give trajectories."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env, all_known
from sgfn.envs.trajectories import Trajectories
from sgfn.noise.operators import Kernel

LogPolicy = Callable[[Int[Tensor, "*batch S"]], Float[Tensor, "*batch A"]]
"""States to log pi(.|s), minus infinity where illegal."""
KernelOf = Callable[[Int[Tensor, "*batch S"]], Kernel]
"""States to the kernel there, known or learned."""
LogReward = Callable[[Int[Tensor, "B O"]], Float[Tensor, " B"]]


def no_reward(objects: Int[Tensor, "B O"]) -> Float[Tensor, " B"]:
    """Zero, for rollouts whose reward nobody reads."""
    return torch.zeros(len(objects), device=objects.device)


def later(objects: Int[Tensor, "B O"]) -> Float[Tensor, " B"]:
    """Memory for rewards that are put there later; what it holds until then means nothing."""
    return torch.empty(len(objects), device=objects.device)


@dataclass(frozen=True, kw_only=True)
class RolloutDraws:
    """All random numbers of a batch of rollouts, drawn before it, with exploration and temperature."""

    clock: Float[Tensor, "T 2 B W"]
    """Waiting times from which intentions and outcomes are drawn, see `draw`; W is the larger of A and K."""
    rate: Float[Tensor, " B"] | None
    """The hidden rate of each trajectory, where noise has one."""
    explore: float
    temperature: float | Float[Tensor, ""]


@runtime_checkable
class Actor(Protocol):
    """A policy at work in a rollout: asked for log pi at each step, then told what was intended and what happened."""

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) at step t."""
        ...

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Add the intention and outcome of step t to the history, where the policy has a memory."""
        ...


@dataclass(frozen=True, kw_only=True)
class RolloutSteps:
    """Intentions, outcomes and states of rollouts that were made in one call."""

    intended: Int[Tensor, "B T"]
    realised: Int[Tensor, "B T"]
    states: Int[Tensor, "B T+1 S"]
    valid: Bool[Tensor, "B T"] | None = None
    """Which steps happened; None where the states tell."""


WholeRollout = Callable[[Tensor, float, float | Tensor], RolloutSteps | None]
"""Waiting times, exploration and temperature to all steps of a batch."""


class MakesRollouts(Protocol):
    """Makes all steps of a batch in one call."""

    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B W"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """All steps; None where they have to be made one by one."""
        ...


@runtime_checkable
class WholeRolloutActor(Actor, Protocol):
    """An actor that may make all steps in one call, with the same random numbers and the same result."""

    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps | None:
        """All steps; None where they have to be made one by one."""
        ...


@dataclass(frozen=True)
class StatePolicy:
    """An actor that reads the state alone: one policy for all steps, or one for each."""

    policies: LogPolicy | list[LogPolicy]

    def log_policy(self, t: int, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """log pi(.|s) by the policy of the step."""
        return self.policies[t](state) if isinstance(self.policies, list) else self.policies(state)

    def observe(self, t: int, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"]) -> None:
        """Do nothing: the policy depends on the state alone."""


Policy = Actor | LogPolicy | list[LogPolicy]


def as_actor(policy: Policy) -> Actor:
    """The policy itself where it can act, else an actor that reads the state alone."""
    return policy if isinstance(policy, Actor) else StatePolicy(policy)


def behaviour(
    log_policy: Float[Tensor, "B A"], legal: Bool[Tensor, "B A"], explore: float, temperature: float | Tensor
) -> Float[Tensor, "B A"]:
    r"""Law of intentions in sampling: $(1-\epsilon)\,\mathrm{softmax}(\log\pi/T) + \epsilon\,\mathrm{uniform}$."""
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


def rollout_draws(
    env: Env, batch: int, generator: torch.Generator, explore: float = 0.0, temperature: float | Tensor = 1.0
) -> RolloutDraws:
    """The random numbers of a batch of rollouts."""
    clock = clocks((env.horizon, 2, batch, max(env.actions, env.outcomes)), generator)
    rate = env.noise.draw_rates(batch, generator)  # no policy sees it
    return RolloutDraws(clock=clock, rate=rate, explore=explore, temperature=temperature)


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
    """A batch of trajectories with random numbers of a generator: `rollout_draws`, then `act`."""
    return act(env, policy, log_reward, rollout_draws(env, batch, generator, explore, temperature))


@torch.no_grad()
def act(env: Env, policy: Policy, log_reward: LogReward, draws: RolloutDraws) -> Trajectories:
    """Trajectories in the noisy environment: intentions drawn from the policy, outcomes from the kernel."""
    actor, clock = as_actor(policy), draws.clock
    if draws.rate is None and isinstance(actor, WholeRolloutActor) and env.intends_outcomes:
        whole = actor.whole_rollout(clock, draws.explore, draws.temperature)
        if whole is not None:
            valid = ~env.done(whole.states[:, :-1]) if whole.valid is None else whole.valid
            reward = log_reward(env.objects(whole.states[:, -1]))
            return Trajectories(**(vars(whole) | {"valid": valid, "log_reward": reward}))
    state = env.initial(clock.shape[2], clock.device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        done = env.done(state)
        if all_known(done):
            break
        followed = behaviour(actor.log_policy(t, state), env.legal(state), draws.explore, draws.temperature)
        action = draw(followed, clock[t, 0, :, : env.actions])
        outcome = env.operator(state, rate=draws.rate).sample(action, clock[t, 1, :, : env.outcomes])
        actor.observe(t, action, outcome)
        valid.append(~done)
        intended.append(action)
        realised.append(outcome)
        state = env.apply(state, outcome)
        states.append(state)
    return stack(env, states, intended, realised, valid, log_reward)


@torch.no_grad()
def retrace(
    env: Env,
    goals: Int[Tensor, "B O"],
    policy: Policy,
    kernel: KernelOf,
    log_reward: LogReward,
    clock: Float[Tensor, "T 2 B W"],
) -> Trajectories:
    r"""Trajectories that end in known objects, with intentions from the posterior.

    .. math:: P(a|s,k) \propto \pi(a|s)\,\hat P(k|s,a)

    Data from elsewhere has realised tokens only; this supplies what could have been meant.
    """
    actor = as_actor(policy)
    state = env.initial(goals.shape[0], goals.device)
    states, intended, realised, valid = [state], [], [], []
    for t in range(env.horizon):
        done = env.done(state)
        if all_known(done):
            break
        outcome = torch.where(done, 0, draw(env.toward(state, goals), clock[t, 0, :, : env.outcomes]))
        # A learned P^ never rules anything out; pi_B does, so what cannot have been meant is left out here too.
        impossible = env.operator(state).log_column(outcome) == -torch.inf
        meant = actor.log_policy(t, state).masked_fill(impossible, -torch.inf)
        posterior = torch.softmax(meant + kernel(state).log_column(outcome), -1)
        valid.append(~done)
        intended.append(torch.where(done, 0, draw(posterior, clock[t, 1, :, : env.actions])))
        realised.append(outcome)
        actor.observe(t, intended[-1], outcome)
        state = env.apply(state, outcome)
        states.append(state)
    return stack(env, states, intended, realised, valid, log_reward)


def stack(
    env: Env,
    states: list[Tensor],
    intended: list[Tensor],
    realised: list[Tensor],
    valid: list[Tensor],
    reward: LogReward,
) -> Trajectories:
    """Trajectories of lists of steps, padded to the horizon by zeros and by the last state."""
    rest = env.horizon - len(valid)
    nothing, never = torch.zeros_like(intended[-1]), torch.zeros_like(valid[-1])
    return Trajectories(
        intended=torch.stack([*intended, *[nothing] * rest], 1),
        realised=torch.stack([*realised, *[nothing] * rest], 1),
        valid=torch.stack([*valid, *[never] * rest], 1),
        states=torch.stack([*states, *[states[-1]] * rest], 1),
        log_reward=reward(env.objects(states[-1])),
    )
