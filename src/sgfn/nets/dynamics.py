"""Learned noise models: P^(k|s,a) as one matrix for all states, one for each position, or one for each state."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.config import DynamicsConfig, ThoughtConfig
from sgfn.envs.base import Env
from sgfn.envs.laws import enumerable
from sgfn.nets.encoders import MLP, Join, masked_log_softmax
from sgfn.nets.prefixes import encode_along
from sgfn.nets.transformer import PairEncoder
from sgfn.noise.operators import LEAST, SMALL, DenseKernel, Kernel, TableKernel, floored_log

ModelKind = Literal["shared", "positional", "full"]
SURE = 2.0
"""Logit at which models start for "what is intended happens": right for the stop action, a mild prior elsewhere."""
MOST_BY_STATE = 64
"""Entries of a matrix up to which `auto` has a network give one for every state of an enumerable task, though noise
does not differ by state: that costs little there; a matrix of 20 letters costs more than the policy and is learned
better by all states, and so are small ones in spaces of which a run sees a small part."""


class NoiseModel(nn.Module):
    """A learned kernel. `operator` gives it at a batch of states."""

    kind: ModelKind
    thought: PairEncoder | None
    """What reads the history of (intended, realised) pairs; None in models of the state alone."""
    rate_factor: float = 1.0
    """Times `dynamics.lr` at which it learns."""

    def __init__(self, env: Env) -> None:
        super().__init__()
        self.env, self.thought = env, None

    def thoughts(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> Float[Tensor, "B T+1 W"] | None:
        """What each history tells: row t reads the t steps before it. None without a thought encoder."""
        return None if self.thought is None else self.thought(intended, realised)

    def operator(self, state: Int[Tensor, "*batch S"], thought: Float[Tensor, "*batch W"] | None = None) -> Kernel:
        """The learned kernel at states, and histories where the model remembers; zero for impossible outcomes."""
        raise NotImplementedError

    def along(self, states: Int[Tensor, "B N S"], thought: Float[Tensor, "B N W"] | None = None) -> Kernel:
        """`operator` of the first N states of trajectories."""
        return self.operator(states, thought)


class FullNoiseModel(NoiseModel):
    """P^(k|s,a) from a network that reads the state: one pass gives the whole matrix of each.

    With a thought encoder it is P^(k|s,a,history), and the encoder is its own: it learns where the history shows.
    """

    kind = "full"

    def __init__(self, env: Env, config: DynamicsConfig, thought: ThoughtConfig | None = None) -> None:
        super().__init__(env)
        self.encoder = MLP(env.features, config.hidden, config.layers, "relu")
        self.join = None
        if thought is not None and thought.layers > 0:
            shape = {"width": thought.width, "layers": thought.layers, "heads": thought.heads}
            self.thought = PairEncoder(env.actions, env.outcomes, **shape, length=env.horizon)
            self.join = Join(self.encoder.width, thought.width, "relu")
        self.outcome = nn.Linear(self.encoder.width, env.actions * env.outcomes)
        nn.init.zeros_(self.outcome.weight)
        with torch.no_grad():
            self.outcome.bias.copy_(SURE * torch.eye(env.actions, env.outcomes).flatten())

    def log_matrix(
        self, state: Int[Tensor, "*batch S"], thought: Float[Tensor, "*batch W"] | None = None
    ) -> Float[Tensor, "*batch A K"]:
        """log P^(.|s,a) for every intention, minus infinity for outcomes that cannot happen."""
        return self._log_matrix(self.encoder(self.env.encode(state)), state, thought)

    def _log_matrix(self, hidden: Float[Tensor, "*batch H"], state: Tensor, thought: Tensor | None) -> Tensor:
        if self.join is not None:
            if thought is None:
                raise ValueError("this noise model remembers: give it the thought of the history")
            hidden = self.join(hidden, thought)
        logits = self.outcome(hidden).unflatten(-1, (self.env.actions, self.env.outcomes))
        return masked_log_softmax(logits, self.env.possible(state)[..., None, :].expand(logits.shape))

    def operator(self, state: Int[Tensor, "*batch S"], thought: Float[Tensor, "*batch W"] | None = None) -> Kernel:
        """A matrix for every state."""
        state = self.env.embed(state)
        return DenseKernel(self.log_matrix(state, thought), log=True)

    def along(self, states: Int[Tensor, "B N S"], thought: Float[Tensor, "B N W"] | None = None) -> Kernel:
        """A matrix for every state, from codes of all prefixes at once where states are sequences."""
        return DenseKernel(self._log_matrix(encode_along(self.encoder, self.env, states), states, thought), log=True)


class TableNoiseModel(NoiseModel):
    """P^(k|a), or P^(k|t,a) by position t: logits in a table that states share."""

    rate_factor = 30.0  # one weight of a network moves many outputs, one of a table a single entry

    def __init__(self, env: Env, kind: ModelKind) -> None:
        super().__init__(env)
        self.kind = kind
        rows = env.horizon if kind == "positional" else 1
        self.logits = nn.Parameter(SURE * torch.eye(env.actions, env.outcomes).repeat(rows, 1, 1))

    def operator(self, state: Int[Tensor, "*batch S"], thought: Float[Tensor, "*batch W"] | None = None) -> Kernel:
        """Matrices of the table; where outcomes are ruled out, what is left of each row is normalised anew."""
        state, laws = self.env.embed(state), torch.log_softmax(self.logits, -1)
        if self.kind == "positional":
            table = TableKernel(laws, self.env.position(state).clamp(max=laws.shape[0] - 1), log=True)
        else:
            table = TableKernel.shared(laws[0], state.shape[:-1], log=True)
        return table if self.env.unmasked else MaskedTableKernel(table, self.env.possible(state))


class MaskedTableKernel(Kernel):
    r"""Laws of a table restricted to the outcomes S that may happen: $M_{ak} 1[k \in S] / \sum_{j \in S} M_{aj}$."""

    def __init__(self, table: TableKernel, possible: Bool[Tensor, "*batch K"]) -> None:
        self.table, self.possible = table, possible

    def row(self, intention: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch K"]:
        """The law of one intention per state."""
        kept = self.table.row(intention) * self.possible
        return kept / kept.sum(-1, keepdim=True)

    def log_column(self, outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch A"]:
        """Every intention's log-probability of one outcome per state."""
        there = self.possible.gather(-1, outcome[..., None])
        return torch.where(there, self.table.log_column(outcome) - self._log_kept(), -torch.inf)

    def log_prob(self, intention: Int[Tensor, "*batch"], outcome: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """One entry per state, normalised by its own row alone."""
        kept = (self.table.row(intention) * self.possible).sum(-1)
        there = self.possible.gather(-1, outcome[..., None])[..., 0]
        return torch.where(there, self.table.log_prob(intention, outcome) - kept.log(), -torch.inf)

    def outcome_law(self, log_policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """One product with the table, of a policy that is raised where its rows lost mass."""
        law = self.table.outcome_law(log_policy - self._log_kept())
        return torch.where(self.possible, law, LEAST[law.dtype])

    def outcome_probabilities(self, policy: Float[Tensor, "*batch A"]) -> Float[Tensor, "*batch K"]:
        """The same as probabilities."""
        return self.table.outcome_probabilities(policy / self._log_kept().exp()) * self.possible

    def expected(self, values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Expectations under the table of what may happen, over the mass of it."""
        return self.table.expected(torch.where(self.possible, values, 0.0)) / self._log_kept().exp()

    def log_expected(self, log_values: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch A"]:
        """Logarithm of the same."""
        return self.table.log_expected(torch.where(self.possible, log_values, -torch.inf)) - self._log_kept()

    def matrix(self) -> Float[Tensor, "*batch A K"]:
        """All laws at every state."""
        kept = self.table.matrix() * self.possible[..., None, :]
        return kept / kept.sum(-1, keepdim=True)

    def detach(self) -> Kernel:
        """The same numbers without gradients."""
        return MaskedTableKernel(TableKernel(self.table.table.detach(), self.table.index, log=True), self.possible)

    def _log_kept(self) -> Float[Tensor, "*batch A"]:
        """Logarithm of the mass that each intention's row keeps."""
        table, possible = self.table.table.exp(), self.possible.to(self.table.table.dtype)
        if table.shape[0] == 1:
            return floored_log(possible @ table[0].t())
        return floored_log((table[self.table.index] @ possible[..., None])[..., 0])


def model_kind(env: Env, config: DynamicsConfig, thought: ThoughtConfig | None = None) -> ModelKind:
    """Which noise model is learned: as configured, else by the alphabet, the noise and the number of states.

    A network per state where noise depends on the state, where the history is read, or where matrices are small and all
    states can be enumerated; one matrix per position where noise differs by position; one for all states else. What is
    left of a matrix where some outcomes are ruled out is only nearly right, and the mean over hidden rates is not all
    that states tell: there a network learns small matrices however many states there are.
    """
    remembers = thought is not None and thought.layers > 0
    if config.model != "auto":
        if remembers and config.model != "full":
            raise ValueError(f"dynamics.model {config.model!r} reads no history, and thought.layers is set: use full")
        return config.model
    most = MOST_BY_STATE if env.unmasked else SMALL
    by_network = enumerable(env) or not env.unmasked or env.noise.has_hidden_rate
    if remembers or env.noise_by_state or (by_network and env.actions * env.outcomes <= most):
        return "full"
    return "positional" if env.noise.by_position and env.counts_steps else "shared"


def make_noise_model(env: Env, config: DynamicsConfig, thought: ThoughtConfig | None = None) -> NoiseModel:
    """The noise model that a run learns."""
    kind = model_kind(env, config, thought)
    return FullNoiseModel(env, config, thought) if kind == "full" else TableNoiseModel(env, kind)
