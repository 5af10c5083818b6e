"""Adaptive proposals: a network learns which edits raise the reward."""

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import seeded
from sgfn.learning.optimisation import Optimiser, schedule
from sgfn.learning.peers.metropolis import METERS, MetropolisHastings, Moves
from sgfn.learning.peers.orders import Orders, check_orders
from sgfn.learning.peers.ring import Ring
from sgfn.nets.encoders import MLP, masked_log_softmax
from sgfn.nets.heads import small


def check_proposals(task: Task) -> None:
    """Refuse what has no edits, and a network that reads anything but their objects; nothing is made."""
    if task.config.net.encoder != "mlp":
        raise ValueError("method 'mars' reads whole objects: use --net.encoder mlp")
    check_orders(task.env)


class EditNet(nn.Module):
    """An object's one-hot code to a logit for each of its edits."""

    def __init__(self, orders: Orders, config: NetConfig) -> None:
        super().__init__()
        self.orders = orders
        self.encoder = MLP(orders.features, config.hidden, config.layers, config.activation)
        self.head = small(nn.Linear(self.encoder.width, orders.edits))

    def forward(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch E"]:
        """log-probabilities, minus infinity for illegal edits."""
        logits = self.head(self.encoder(self.orders.encode(objects)))
        return masked_log_softmax(logits, self.orders.legal(objects))


class Mars(MetropolisHastings):
    r"""Metropolis-Hastings whose edits come from a network, with a share of uniform ones.

    .. math:: m_\theta(g|x) = (1-\epsilon)\,\mathrm{softmax}_\theta(g|x) + \epsilon/|N(x)|

    The network is fitted, by maximum likelihood, to the newest edits that were accepted and raised the reward. The
    correction uses the proposals of the moment; since they change, the target is not exactly stationary before the
    learning rate has faded, as its schedule makes it do.
    Reference: Xie et al. (2021), MARS: Markov molecular sampling for multi-objective drug discovery, ICLR.
    """

    def __init__(self, task: Task, device: torch.device) -> None:
        check_proposals(task)
        super().__init__(task, device, ("loss", *METERS))
        chain = self.config.chain
        with seeded(self.config.seed):
            self.network = EditNet(self.orders, self.config.net).to(device)
        self.optimiser = Optimiser([(list(self.network.parameters()), chain.learn)], self.config.optim.clip, device)
        self.successes = Ring(chain.successes, device, objects=self.env.object_width, edit=1)

    def log_edits(self, objects: Int[Tensor, "B O"]) -> Float64[Tensor, "B E"]:
        """log m(.|x): the network's edits, and a share of uniform ones that keeps every ratio bounded."""
        learned = torch.log_softmax(self.network(objects).double(), -1)  # sums to one in double precision too
        share = self.config.chain.floor
        return ((1.0 - share) * learned.exp() + share * self.orders.log_uniform(objects).exp()).log()

    def learn(self, moves: Moves) -> tuple[Tensor, ...]:
        """One update towards past edits that paid."""
        self.successes.add(moves.accepted & (moves.gain > 0), objects=moves.objects, edit=moves.edit[:, None])
        past = self.successes.sample(self.config.batch, self.generator)
        log_chance = self.network(past["objects"]).gather(-1, past["edit"])
        loss = -torch.where(self.successes.added > 0, log_chance, 0.0).mean()
        self.optimiser.step(loss, schedule(self.index, self.config.steps, self.config.optim))
        return (loss,)

    @property
    def has_law(self) -> bool:
        """What a chain does depends on what it has learned, and that on everything before."""
        return False

    def modules(self) -> dict[str, nn.Module]:
        """The network of the proposals."""
        return {"network": self.network}

    def optimisers(self) -> dict[str, Optimiser]:
        """Its optimiser."""
        return {"optimiser": self.optimiser}

    def memory(self) -> dict[str, dict[str, Tensor]]:
        """The chains, and the edits that paid."""
        return super().memory() | {"successes": self.successes.state()}
