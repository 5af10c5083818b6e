"""`novelty`: random distillation, by which states unlike those seen before are found more often."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sgfn.envs.trajectories import Trajectories
from sgfn.learning.exploration.base import Surroundings, Way, WrappedActor
from sgfn.learning.general import GeneralBackend
from sgfn.learning.learner import seeded
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.rollout import Actor

OUTPUTS = 16


class Novelty(Way):
    r"""Behaviour in proportion to $\pi(a|s) \exp(w\,E_{k \sim P(k|s,a)}[n(s'_k)])$.

    n(s) is the squared distance between a network with random weights and one that is fitted to it at the states that
    were visited, divided by its mean over them: 1 on average where one has been, more where one has not. The reward is
    left as it is: novelty decides what is tried, not what is worth how much.
    Reference: Burda et al. (2019), Exploration by random network distillation, ICLR.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        chosen, features = self.config.novelty, surroundings.env.features
        with seeded(self.config.seed + 1):
            self.fixed, self.fitted = small_network(features, chosen.hidden), small_network(features, chosen.hidden)
        self.fixed.to(self.device).requires_grad_(False)
        self.fitted.to(self.device)
        self.optimiser = Optimiser([(list(self.fitted.parameters()), chosen.lr)], 1.0, self.device)
        self.mean = torch.ones((), device=self.device)

    def error(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
        """Squared distance of the two networks at states."""
        features = self.env.encode(state)
        return (self.fitted(features) - self.fixed(features)).square().mean(-1)

    @torch.no_grad()
    def of_intentions(self, state: Int[Tensor, "B S"]) -> Float[Tensor, "B A"]:
        """Expected novelty of what follows each intention, under the true kernel's possible outcomes."""
        children = state[:, None].expand(-1, self.env.outcomes, -1)
        outcome = torch.arange(self.env.outcomes, device=state.device).expand(len(state), -1)
        possible = self.env.possible(state)
        novelty = self.error(
            self.env.apply(children, torch.where(possible, outcome, possible.byte().argmax(-1)[:, None]))
        )
        return self.env.operator(state).expected(torch.where(possible, novelty / self.mean, 0.0))

    def actor(self, actor: Actor) -> Actor:
        """The policy, drawn towards new states."""
        return CuriousActor(actor, self)

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Fit the second network to the first at the states that were visited."""
        error = self.error(batch.states[:, 1:][batch.valid])
        self.optimiser.step(error.mean(), torch.ones((), device=self.device))
        self.mean.lerp_(error.detach().mean().clamp(min=1e-12), 0.1)

    def modules(self) -> dict[str, nn.Module]:
        """Both networks, for checkpoints."""
        return {"fixed": self.fixed, "fitted": self.fitted}

    def optimisers(self) -> dict[str, Optimiser]:
        """The optimiser of the fitted one."""
        return {"novelty_optimiser": self.optimiser}

    def memory(self) -> dict[str, Tensor]:
        """The mean distance at visited states."""
        return {"mean": self.mean}


class CuriousActor(WrappedActor):
    """An actor whose logits are raised by the novelty of what follows."""

    def __init__(self, inner: Actor, way: Novelty) -> None:
        super().__init__(inner)
        self.way = way

    def changed(self, log_policy: Tensor, state: Int[Tensor, "B S"]) -> Tensor:
        """Logits plus the weighted novelty."""
        return log_policy + self.way.config.novelty.weight * self.way.of_intentions(state)


def small_network(features: int, hidden: int) -> nn.Sequential:
    """A network of one hidden layer."""
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, OUTPUTS))
