"""`mh`, Metropolis-Hastings over finished objects.

A step edits each chain's object, orders the edited object in the noisy environment, and accepts what comes out or
stays.
"""

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
from sgfn.learning.learner import SAMPLE_BLOCK, Learner, StatesDone, copy_into, part_of
from sgfn.learning.peers.edits import check_edits, make_edits
from sgfn.learning.peers.random import uniform_intentions
from sgfn.learning.peers.ring import RingBuffer
from sgfn.learning.rollout import LogPolicy, clocks, draw, rollout

METERS = ("log_reward", "length", "reward", "acceptance")
LARGEST_LAW = 1024
"""Largest number of objects for which a chain's exact law is computed: time per step and memory grow as its square."""


@dataclass(frozen=True, kw_only=True)
class ChainStates:
    """The present state of each chain."""

    objects: Int[Tensor, "B O"]
    intended: Int[Tensor, "B T"]
    """The intentions that gave the object, -1 on padded steps."""
    log_reward: Float[Tensor, " B"]


@dataclass(frozen=True, kw_only=True)
class Moves:
    """The proposal that a step made on each chain, and whether it was accepted."""

    objects: Int[Tensor, "B O"]
    """Objects before the step."""
    edit: Int[Tensor, " B"]
    """Number of the edit whose goal was ordered."""
    gain: Float[Tensor, " B"]
    """Log-reward of the object that came out, less that of the object before."""
    accepted: Bool[Tensor, " B"]


def check_chains(task: Task) -> None:
    """Raise where the environment has no edits, before anything is built."""
    check_edits(task.env)


def log_proposal(
    log_edits: Float64[Tensor, "*batch E"], log_outcomes: Float64[Tensor, "*batch E"]
) -> Float64[Tensor, "*batch"]:
    r"""Log-probability that a step proposes y from x, $\log q(y|x) = \log\sum_g m(g|x)\,G(y|g)$, over all goals g."""
    return torch.logsumexp(log_edits + log_outcomes, -1)


def log_ratio(
    gain: Float[Tensor, "*batch"], log_back: Float64[Tensor, "*batch"], log_forth: Float64[Tensor, "*batch"]
) -> Float64[Tensor, "*batch"]:
    r"""Log of the ratio $\frac{R(y)^\beta q(x|y)}{R(x)^\beta q(y|x)}$; a move is taken with probability min(1, ratio).

    Reference: Hastings (1970), Monte Carlo sampling methods using Markov chains and their applications, Biometrika.
    """
    return gain.double() + log_back - log_forth


def transition_matrix(proposals: Float64[Tensor, "N N"], log_ratios: Float64[Tensor, "N N"]) -> Float64[Tensor, "N N"]:
    """Law of the next state in each row, with the mass of all rejected proposals on the diagonal."""
    moves = torch.where(proposals > 0, proposals * log_ratios.clamp(max=0.0).exp(), 0.0).fill_diagonal_(0.0)
    return moves + torch.diag(1.0 - moves.sum(1))


class MetropolisHastings(Learner):
    """One chain for each trajectory of a batch, started by uniform intentions; the newest states are its samples.

    The acceptance ratio uses the true noise: the exact law of what ordering a goal may give. With a constant exponent
    the target is therefore stationary, whatever the noise.

    Reference: Metropolis et al. (1953), Equation of state calculations by fast computing machines, J. Chem. Phys.
    """

    bound_by_floor = False  # the floor is for policies; a chain may reject what came out

    def __init__(self, task: Task, device: torch.device, meters: tuple[str, ...] = METERS) -> None:
        if task.env.automaton is not None:
            what = f"method {task.config.method!r} moves by single edits and keeps no constraints"
            raise ValueError(
                f"{what} ({task.env.automaton.told}): choose one that builds letter by letter, such as gfn"
            )
        super().__init__(task, device, meters)
        self.edits = make_edits(task.env, device)
        self.chains = self.act(uniform_intentions(self.env), self.generator)
        widths = {"objects": self.env.object_width, "intended": self.env.horizon}
        self.kept = RingBuffer(self.config.chain.keep, device, **widths)
        self._transitions: Tensor | None = None
        self._followed: tuple[int, Tensor] | None = None

    # the chain

    def act(self, log_policy: LogPolicy, generator: torch.Generator) -> ChainStates:
        """Run one rollout per chain and return what came out as chain states."""
        batch = rollout(self.env, log_policy, self.task.log_reward, batch=self.config.batch, generator=generator)
        return ChainStates(
            objects=self.env.objects(batch.states[:, -1]),
            intended=torch.where(batch.valid, batch.intended, -1),
            log_reward=batch.log_reward,
        )

    def log_edits(self, objects: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log m(.|x) over the edits of each object: uniform over the legal ones."""
        return self.edits.log_uniform(objects)

    @torch.no_grad()
    def advance(self, chains: ChainStates, beta: Tensor, generator: torch.Generator) -> tuple[ChainStates, Moves]:
        """Make one proposal for each chain; returns the chains after accepting or rejecting, and the moves."""
        log_edits = self.log_edits(chains.objects)
        edit = draw(log_edits.exp().float(), clocks(tuple(log_edits.shape), generator))
        goals = self.edits.goals(chains.objects, edit)
        found = self.act(lambda state: self.env.toward(state, goals).log(), generator)
        log_forth = log_proposal(log_edits, self.edits.log_outcomes(chains.objects, found.objects))
        log_back = log_proposal(self.log_edits(found.objects), self.edits.log_outcomes(found.objects, chains.objects))
        gain = found.log_reward - chains.log_reward
        chance = torch.rand(gain.shape, generator=generator, device=self.device, dtype=torch.float64)
        accepted = chance.log() < log_ratio(beta * gain, log_back, log_forth)
        after = {
            name: torch.where(accepted.view(-1, *[1] * (new.ndim - 1)), new, getattr(chains, name))
            for name, new in vars(found).items()
        }
        return ChainStates(**after), Moves(objects=chains.objects, edit=edit, gain=gain, accepted=accepted)

    def step(self) -> None:
        """Advance every chain by one proposal, keep the new states and record the meters."""
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
        """Update whatever makes the proposals and return meters of that; here nothing is learned."""
        return ()

    @property
    def beta(self) -> Float[Tensor, ""]:
        """The reward exponent at the present step."""
        return beta_at(self.index, self.task.beta, self.config.reward.ramp)

    # samples and the exact law

    def stream(self, n: int, seed: int) -> Iterator[Samples]:
        """Draw kept states without replacement; where there are too few, advance copies of the chains for the rest."""
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
        """Objects with their scores, on the CPU."""
        return Samples(objects=objects.cpu(), scores=self.task.landscape.scores(objects).cpu(), intended=intended.cpu())

    def state_policy(self) -> None:
        """None: a chain has no policy."""
        return

    @property
    def has_law(self) -> bool:
        """Whether the exact law is computed: the transition matrix must be small and the same at every step."""
        small = isinstance(self.env, Enumerable) and self.env.num_objects <= LARGEST_LAW
        return small and self.config.reward.ramp == 0.0

    @cached_property
    def log_rewards(self) -> Float[Tensor, " N"]:
        """Log-rewards of all objects, computed when the law is first asked for."""
        landscape = copy(self.task.landscape)  # a measurement in progress may have moved the task's own to the CPU
        landscape.to(self.device)
        return landscape.log_reward(check_size(self.env).all_objects().to(self.device), self.config.reward)

    @torch.no_grad()
    def law(self, told: StatesDone | None = None) -> Float64[Tensor, " N"]:
        r"""Exact law of a chain's state after n steps, $p_0 K^n$, over everything that may have happened so far."""
        if self._transitions is None:
            self._transitions = self.transition_matrix()
        if self._followed is None or self._followed[0] > self.done:
            self._followed = 0, laws.law(check_size(self.task.env), laws.uniform_policy(self.task.env)).to(self.device)
        start, law = self._followed
        for _ in range(start, self.done):
            before, law = law, law @ self._transitions
            if float((law - before).abs().sum()) < 1e-14:
                break  # later steps are no longer than this one: the n left out move the law by less than n 1e-14
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
        """q(y|x) over all objects, x in rows: edits, then what the noise makes of their goals."""
        env = check_size(self.env)
        objects = env.all_objects().to(self.device)
        rows, edit = self.edits.legal(objects).nonzero().unbind(1)
        goals = env.object_index(self.edits.goals(objects[rows], edit))
        chance = self.log_edits(objects)[rows, edit].exp()
        size = (objects.shape[0], objects.shape[0])
        edits = torch.sparse_coo_tensor(torch.stack([rows, goals]), chance, size, check_invariants=True)
        return edits @ self.edits.outcomes()

    # checkpoints

    @property
    def trajectories(self) -> int:
        """Number of rollouts so far, with those that started the chains."""
        return (self.done + 1) * self.config.batch

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """States of the chains and the kept ones, for checkpoints."""
        return {"chains": dict(vars(self.chains)), "kept": self.kept.state()}

    def load_networks(self, state: dict[str, Tensor]) -> None:
        """Load a checkpoint's chains and kept states too: samples are drawn from them."""
        super().load_networks(state)
        for name, held in self.memory().items():
            copy_into(held, part_of(state, name), name)
        self.index.copy_(state["self.index"])
