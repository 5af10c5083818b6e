"""`mars`: Metropolis-Hastings whose proposed edits come from a network that learns which edits raise the reward."""

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import seeded
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.peers.edits import LocalEdits, check_edits
from sgfn.learning.peers.metropolis import METERS, MetropolisHastings, Moves
from sgfn.learning.peers.ring import RingBuffer
from sgfn.nets.encoders import MLP, masked_log_softmax
from sgfn.nets.heads import small


def check_proposals(task: Task) -> None:
    """Raise where the environment has no edits or the encoder is no MLP, before anything is built."""
    if task.config.net.encoder != "mlp":
        raise ValueError("method 'mars' reads whole objects: use --net.encoder mlp")
    check_edits(task.env)


class EditNet(nn.Module):
    """A network from the one-hot code of an object to a log-probability for each of its edits."""

    def __init__(self, edits: LocalEdits, config: NetConfig) -> None:
        super().__init__()
        self.edits = edits
        self.encoder = MLP(edits.features, config.hidden, config.layers, config.activation)
        self.head = small(nn.Linear(self.encoder.width, edits.count))

    def forward(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch E"]:
        """Log-probabilities of the edits, minus infinity where an edit is illegal."""
        logits = self.head(self.encoder(self.edits.encode(objects)))
        return masked_log_softmax(logits, self.edits.legal(objects))


class Mars(MetropolisHastings):
    r"""Metropolis-Hastings with edits from a network, mixed with a share of uniform ones.

    .. math:: m_\theta(g|x) = (1-\epsilon)\,\mathrm{softmax}_\theta(g|x) + \epsilon/|N(x)|

    The network is fitted, by maximum likelihood, to the newest edits that were accepted and raised the reward. The
    acceptance ratio uses the present proposals; while they change the target is not exactly stationary, so the learning
    rate fades to zero by its schedule.

    Reference: Xie et al. (2021), MARS: Markov molecular sampling for multi-objective drug discovery, ICLR.
    """

    def __init__(self, task: Task, device: torch.device) -> None:
        check_proposals(task)
        super().__init__(task, device, ("loss", *METERS))
        chain = self.config.chain
        with seeded(self.config.seed):
            self.network = EditNet(self.edits, self.config.net).to(device)
        self.optimiser = Optimiser([(list(self.network.parameters()), chain.learn)], self.config.optim.clip, device)
        self.successes = RingBuffer(chain.successes, device, objects=self.env.object_width, edit=1)

    def log_edits(self, objects: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log m(.|x): the network's edits mixed with uniform ones, which keeps every acceptance ratio bounded."""
        learned = torch.log_softmax(self.network(objects).double(), -1)  # sums to one in double precision too
        share = self.config.chain.floor
        return ((1.0 - share) * learned.exp() + share * self.edits.log_uniform(objects).exp()).log()

    def learn(self, moves: Moves) -> tuple[Tensor, ...]:
        """Fit the network, in one update, to a batch of past edits that were accepted and raised the reward."""
        self.successes.add(moves.accepted & (moves.gain > 0), objects=moves.objects, edit=moves.edit[:, None])
        past = self.successes.sample(self.config.batch, self.generator)
        log_chance = self.network(past["objects"]).gather(-1, past["edit"])
        loss = -torch.where(self.successes.added > 0, log_chance, 0.0).mean()
        self.optimiser.step(loss, schedule(self.index, self.config.steps, self.config.optim))
        return (loss,)

    @property
    def has_law(self) -> bool:
        """False: proposals depend on all that was learned before, so no fixed transition matrix describes a chain."""
        return False

    def modules(self) -> dict[str, nn.Module]:
        """The proposal network by name, for checkpoints."""
        return {"network": self.network}

    def optimisers(self) -> dict[str, Optimiser]:
        """The proposal network's optimiser by name, for checkpoints."""
        return {"optimiser": self.optimiser}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The chains and the successful edits, for checkpoints."""
        return super().memory() | {"successes": self.successes.state()}
