"""Metropolis-Hastings over finished objects: edit, order the edit in the noisy environment, accept or stay."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from sgfn.envs import laws
from sgfn.envs.base import Enumerable
from sgfn.envs.laws import check_size
from sgfn.envs.trajectories import Samples
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import SAMPLE_BLOCK, Learner, copy_into, part_of
from sgfn.learning.peers.orders import make_orders
from sgfn.learning.peers.random import uniform_intentions
from sgfn.learning.peers.ring import Ring
from sgfn.learning.rollout import LogPolicy, clocks, draw, rollout

METERS = ("log_reward", "length", "reward", "acceptance")
LARGEST_LAW = 1024
"""Objects up to which a chain's exact law is followed: each step of it costs their square, and so does its memory."""


@dataclass(frozen=True, kw_only=True)
class Chains:
    """Where each chain stands."""

    objects: Int[Tensor, "B O"]
    intended: Int[Tensor, "B T"]
    """The intentions that gave the object, -1 on padded steps."""
    log_reward: Float[Tensor, " B"]


@dataclass(frozen=True, kw_only=True)
class Moves:
    """What a step tried on each chain, and what became of it."""

    objects: Int[Tensor, "B O"]
    """Before the step."""
    edit: Int[Tensor, " B"]
    """Whose goal was ordered."""
    gain: Float[Tensor, " B"]
    """Log-reward of what came out, less that of the object before."""
    accepted: Bool[Tensor, " B"]


def log_proposal(
    log_edits: Float64[Tensor, "*batch E"], log_outcomes: Float64[Tensor, "*batch E"]
) -> Float64[Tensor, "*batch"]:
    r"""$\log q(y|x) = \log\sum_g m(g|x)\,G(y|g)$: the goal is summed out."""
    return torch.logsumexp(log_edits + log_outcomes, -1)


def log_ratio(
    gain: Float[Tensor, "*batch"], log_back: Float64[Tensor, "*batch"], log_forth: Float64[Tensor, "*batch"]
) -> Float64[Tensor, "*batch"]:
    r"""Log of the ratio $\frac{R(y)^\beta q(x|y)}{R(x)^\beta q(y|x)}$; a move is taken with probability min(1, ratio).

    Reference: Hastings (1970), Monte Carlo sampling methods using Markov chains and their applications, Biometrika.
    """
    return gain.double() + log_back - log_forth


def transition_matrix(proposals: Float64[Tensor, "N N"], log_ratios: Float64[Tensor, "N N"]) -> Float64[Tensor, "N N"]:
    """Law of the next state, from each in a row: what is not taken stays."""
    moves = torch.where(proposals > 0, proposals * log_ratios.clamp(max=0.0).exp(), 0.0).fill_diagonal_(0.0)
    return moves + torch.diag(1.0 - moves.sum(1))


class MetropolisHastings(Learner):
    """One chain for each trajectory of a batch, started by uniform intentions; the newest states count as samples.

    The chain is told the true noise: its correction reads what ordering a goal may give. With a constant exponent the
    target is stationary, whatever the noise.
    Reference: Metropolis et al. (1953), Equation of state calculations by fast computing machines, J. Chem. Phys.
    """

    bound_by_floor = False  # a chain looks at what came out before it accepts

    def __init__(self, task: Task, device: torch.device, meters: tuple[str, ...] = METERS) -> None:
        super().__init__(task, device, meters)
        self.orders = make_orders(task.env, device)
        self.chains = self.act(uniform_intentions(self.env), self.generator)
        widths = {"objects": self.env.object_width, "intended": self.env.horizon}
        self.kept = Ring(self.config.chain.keep, device, **widths)
        self._transitions: Tensor | None = None
        self._followed: tuple[int, Tensor] | None = None

    # the chain

    def act(self, log_policy: LogPolicy, generator: torch.Generator) -> Chains:
        """One environment call per chain."""
        batch = rollout(self.env, log_policy, self.task.log_reward, batch=self.config.batch, generator=generator)
        return Chains(
            objects=self.env.objects(batch.states[:, -1]),
            intended=torch.where(batch.valid, batch.intended, -1),
            log_reward=batch.log_reward,
        )

    def log_edits(self, objects: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log m(.|x) over the edits of each object: all legal ones alike."""
        return self.orders.log_uniform(objects)

    @torch.no_grad()
    def advance(self, chains: Chains, beta: Tensor, generator: torch.Generator) -> tuple[Chains, Moves]:
        """A proposal for each chain, which is taken or not."""
        log_edits = self.log_edits(chains.objects)
        edit = draw(log_edits.exp().float(), clocks(tuple(log_edits.shape), generator))
        goals = self.orders.goals(chains.objects, edit)
        found = self.act(lambda state: self.env.toward(state, goals).log(), generator)
        log_forth = log_proposal(log_edits, self.orders.log_outcomes(chains.objects, found.objects))
        log_back = log_proposal(self.log_edits(found.objects), self.orders.log_outcomes(found.objects, chains.objects))
        gain = found.log_reward - chains.log_reward
        chance = torch.rand(gain.shape, generator=generator, device=self.device, dtype=torch.float64)
        accepted = chance.log() < log_ratio(beta * gain, log_back, log_forth)
        after = {
            name: torch.where(accepted.view(-1, *[1] * (new.ndim - 1)), new, getattr(chains, name))
            for name, new in vars(found).items()
        }
        return Chains(**after), Moves(objects=chains.objects, edit=edit, gain=gain, accepted=accepted)

    def step(self) -> None:
        """One proposal per chain, and the meters of where the chains stand."""
        after, moves = self.advance(self.chains, self.beta, self.generator)
        figures = self.learn(moves)
        for name, value in vars(after).items():
            getattr(self.chains, name).copy_(value)
        self.kept.add(torch.ones_like(moves.accepted), objects=after.objects, intended=after.intended)
        length = (after.intended >= 0).sum(1).float().mean()
        reward = after.log_reward.exp().mean()
        self.record(*figures, after.log_reward.mean(), length, reward, moves.accepted.float().mean())
        self.index.add_(1.0)

    def learn(self, moves: Moves) -> tuple[Tensor, ...]:
        """Whatever proposals may learn from a step, and the figures of it: here nothing."""
        return ()

    @property
    def beta(self) -> Float[Tensor, ""]:
        """The exponent at the present step."""
        return beta_at(self.index, self.task.beta, self.config.reward.ramp)

    # what comes out

    def stream(self, n: int, seed: int) -> Iterator[Samples]:
        """Kept states, without replacement; where they do not suffice, also what copies of the chains come to."""
        generator = torch.Generator(self.device).manual_seed(seed)
        rows = torch.randperm(int(self.kept.filled), generator=generator, device=self.device)[:n]
        for some in rows.split(SAMPLE_BLOCK) if rows.shape[0] else ():
            yield self._scored(**self.kept.read(some))
        chains, left = self.chains, n - rows.shape[0]
        while left > 0:
            objects, intended, size = [], [], min(left, SAMPLE_BLOCK)
            for _ in range(-(-size // self.config.batch)):
                chains, _ = self.advance(chains, self.beta, generator)
                objects.append(chains.objects)
                intended.append(chains.intended)
            found = self._scored(torch.cat(objects)[:left], torch.cat(intended)[:left])
            left -= found.scores.shape[0]
            yield found

    def _scored(self, objects: Int[Tensor, "N O"], intended: Int[Tensor, "N T"]) -> Samples:
        """Objects with their scores, on the host."""
        return Samples(objects=objects.cpu(), scores=self.task.landscape.scores(objects).cpu(), intended=intended.cpu())

    def memoryless(self) -> None:
        """A chain has no policy."""
        return

    @property
    def has_law(self) -> bool:
        """Where the transition matrix is small, and the same at every step."""
        small = isinstance(self.env, Enumerable) and self.env.num_objects <= LARGEST_LAW
        return small and self.config.reward.ramp == 0.0

    @cached_property
    def log_rewards(self) -> Float[Tensor, " N"]:
        """Of all objects, scored when the law is first asked for."""
        landscape = copy(self.task.landscape)  # whoever measures may have moved the task's own to the host
        landscape.to(self.device)
        return landscape.log_reward(check_size(self.env).all_objects().to(self.device), self.config.reward)

    @torch.no_grad()
    def law(self) -> Float64[Tensor, " N"]:
        r"""Exact law of where a chain stands now, $p_0 K^n$: the mean over all that might have happened so far."""
        if self._transitions is None:
            self._transitions = self.transition_matrix()
        if self._followed is None or self._followed[0] > self.done:
            self._followed = 0, laws.law(check_size(self.task.env), laws.uniform_policy(self.task.env)).to(self.device)
        start, law = self._followed
        for _ in range(start, self.done):
            before, law = law, law @ self._transitions
            if float((law - before).abs().sum()) < 1e-14:
                break  # no later step is longer: all that are left out move the law by less than n 1e-14
        self._followed = self.done, law
        return law.cpu()

    @torch.no_grad()
    def transition_matrix(self) -> Float64[Tensor, "N N"]:
        """K(y|x) over all objects, x in rows, at the present proposals and exponent."""
        proposals, value = self.proposals(), self.beta * self.log_rewards.double()
        log_forth = proposals.log()
        return transition_matrix(proposals, log_ratio(value - value[:, None], log_forth.T, log_forth))

    @torch.no_grad()
    def proposals(self) -> Float64[Tensor, "N N"]:
        """q(y|x) over all objects, x in rows."""
        env = check_size(self.env)
        objects = env.all_objects().to(self.device)
        rows, edit = self.orders.legal(objects).nonzero().unbind(1)
        goals = env.object_index(self.orders.goals(objects[rows], edit))
        chance = self.log_edits(objects)[rows, edit].exp()
        size = (objects.shape[0], objects.shape[0])
        edits = torch.sparse_coo_tensor(torch.stack([rows, goals]), chance, size, check_invariants=True)
        return edits @ self.orders.outcomes()

    # checkpoints

    @property
    def trajectories(self) -> int:
        """The chains' starts are environment calls too."""
        return (self.done + 1) * self.config.batch

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """Where the chains stand, and where they stood lately."""
        return {"chains": dict(vars(self.chains)), "kept": self.kept.state()}

    def load_networks(self, state: dict[str, Tensor]) -> None:
        """Chains are all there is to sample from, so they come along."""
        super().load_networks(state)
        for name, held in self.memory().items():
            copy_into(held, part_of(state, name), name)
        self.index.copy_(state["self.index"])
