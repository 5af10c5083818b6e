"""`local`: a search around the best objects, by edits and by partial rollouts, all through the noise."""

import math

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.envs.trajectories import Trajectories, concatenate
from sgfn.learning.exploration.base import Surroundings, Way
from sgfn.learning.exploration.edits import consensus, editor_of, tidied
from sgfn.learning.exploration.following import Guide, follow, order_sequences, orders_at_once, planned, toward
from sgfn.learning.general import GeneralBackend
from sgfn.learning.replay import uniform_draws
from sgfn.learning.rollout import as_actor, rollout_draws
from sgfn.noise.operators import Identity

SPARED = 0.8
"""Share of the orders that come out changed which is not edited beforehand, see `_spared`."""
VOTERS, ASKED = 15, 300
"""Objects that vote on what to order, and the best ones among which they are looked for, see `_agreed`."""
RARELY, OFTEN, SELDOM = 0.01, 0.9, 0.1
"""Least and largest share that is voted on of the orders that come out changed; share of orders that come out better
than what they are made of below which it is not told from none."""
DECAY = 1 / 6
"""Ranks, as a share of the archive, over which the chance of being edited falls by a factor e."""


class Local(Way):
    """Orders objects near the best ones; what comes out under the noise is scored, kept and replayed.

    Part of the orders are edits (`edits.py`), where the environment has some: one only says which object is wanted and
    no network is asked, so that thousands cost little. In the others a stretch of the trajectory of a good object is
    forgotten and rebuilt by the policy: of a sequence anywhere, of any other object its end. Nothing is scored that did
    not come out of the environment: an order is a plan of intentions, and noise acts on it as on any other.
    Reference: Kim et al. (2024), Local search GFlowNets, ICLR (backtracking; without noise, and without edits).
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.raw: Env = surroundings.task.env
        self.editor, self.count, self.rounds = editor_of(self.raw), self.config.local.count, self.config.local.rounds
        self.silent = isinstance(self.env.operator(self.env.initial(1, self.device)), Identity)
        self.worked = torch.zeros(2, device=self.device)  # shares that came out better, with a vote and without
        self.intact = torch.ones((), device=self.device)  # running share of the orders that came out as they were

    @property
    def rests(self) -> bool:
        """Where nothing is hidden."""
        return self.need == 0.0

    def propose(self, backend: GeneralBackend, generator: torch.Generator) -> Trajectories | None:
        """Orders near rows of the archive, and plain rollouts in their place as far as nothing comes of them."""
        count = math.ceil(self.count * self.archive.promise * self.need)
        rebuilt = count if self.editor is None else round(count * self.config.local.rebuilt)
        parts = [self._rebuilt(rebuilt, backend, generator)] if rebuilt else []
        if rebuilt < count:
            parts.append(self._edited(count - rebuilt, backend, generator))
        if count < self.count:
            parts.append(self._rebuilt(self.count - count, backend, generator, whole=True))
        return parts[0] if len(parts) == 1 else concatenate(*parts)

    def _rows(self, count: int, generator: torch.Generator) -> Int[Tensor, " B"]:
        return self.archive.rows(uniform_draws(count, generator), DECAY)

    def _edited(self, count: int, backend: GeneralBackend, generator: torch.Generator) -> Trajectories:
        """Orders of edited objects."""
        assert self.editor is not None
        rows, others = self._rows(count, generator), self.archive.objects[self._rows(count, generator)]
        objects, voted = self._agreed(self.archive.objects[rows], generator)
        goals = self._spared(self.editor(objects, others, generator), objects, generator)
        if isinstance(self.env, SequenceEnv) and orders_at_once(self.env):
            made = order_sequences(self.env, goals, self.surroundings.task.log_reward, generator)
        else:
            made = self._followed(toward(self.env, goals), count, backend, generator, by_policy=False)
        came_out = (self.env.objects(made.states[:, -1]) == goals).all(-1)
        self.intact.lerp_(came_out.float().mean(), 0.1)
        self._judge(made.log_reward > self.archive.log_reward[rows], voted)
        return made

    def _spared(self, edited: Tensor, objects: Tensor, generator: torch.Generator) -> Tensor:
        """Edited objects, of which noise spares the editor some: where orders come out changed, noise is an edit.

        Most of what would come out changed anyway is ordered as it is: with edits on top of the errors of a noisy
        environment nearly all outcomes would differ from a long good sequence in too many places.
        """
        if self.silent:
            return edited
        spared = torch.rand(len(edited), 1, generator=generator, device=self.device) < SPARED * (1.0 - self.intact)
        return torch.where(spared, objects, edited)

    def _agreed(self, objects: Tensor, generator: torch.Generator) -> tuple[Tensor, Bool[Tensor, " B"]]:
        """Objects, some of which give way to what they and their likes in the archive agree on; which ones.

        What came out of a noisy order carries errors of its own; good outcomes near each other come from like orders,
        and a vote at each place removes what one alone got wrong. Where letters need each other, a vote may break them
        up: it is taken where more orders come out better with it than without.
        """
        if self.silent or not isinstance(self.raw, SequenceEnv):
            return objects, torch.zeros(len(objects), dtype=torch.bool, device=self.device)
        with_vote, without = self.worked
        share = (1.0 - (without + SELDOM) / (with_vote + SELDOM)).clamp(RARELY, OFTEN) * (1.0 - self.intact)
        chosen = torch.rand(len(objects), generator=generator, device=self.device) < share
        known, ours = self.archive.objects[: min(self.archive.size, ASKED)], objects[chosen]
        voted = tidied(self.raw, consensus(ours, known, VOTERS), ours)
        return objects.masked_scatter(chosen[:, None], voted), chosen

    def _judge(self, better: Bool[Tensor, " B"], voted: Bool[Tensor, " B"]) -> None:
        """Remember how many orders came out better than what they were made of, with a vote and without."""
        for place, part in enumerate((voted, ~voted)):
            if part.any():
                self.worked[place].lerp_(better[part].float().mean(), 0.1)

    def memory(self) -> dict[str, Tensor]:
        """Shares of orders that came out as they were, and better, for checkpoints."""
        return {"intact": self.intact, "worked": self.worked}

    def _rebuilt(
        self, count: int, backend: GeneralBackend, generator: torch.Generator, *, whole: bool = False
    ) -> Trajectories:
        """Orders of known objects in which the policy decides over a stretch of steps, or over all."""
        plan, steps = self.archive.realised[self._rows(count, generator)], self.env.horizon
        ends = torch.randint(steps, (count, 2), generator=generator, device=self.device).sort(1).values
        step = torch.arange(steps, device=self.device)
        kept = (step < ends[:, :1]) | (step > ends[:, 1:])
        if not (isinstance(self.raw, SequenceEnv) and self.raw.appends):  # elsewhere later steps depend on earlier ones
            kept = step < ends[:, :1]
        kept = kept & (not whole)
        return self._followed(planned(plan, kept, self.env.outcomes), count, backend, generator, by_policy=True)

    def _followed(
        self, guide: Guide, count: int, backend: GeneralBackend, generator: torch.Generator, *, by_policy: bool
    ) -> Trajectories:
        config = self.config
        draws = rollout_draws(self.env, count, generator, config.explore, config.temperature)
        actor = as_actor(backend.actor()) if by_policy else None
        return follow(self.env, guide, self.surroundings.task.log_reward, draws, actor)
