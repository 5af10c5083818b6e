"""Samplers beside the policy, trained on the same trajectories, whose intentions a way to explore may borrow."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.envs.base import Env
from sgfn.envs.trajectories import Trajectories
from sgfn.learning.exploration.base import Surroundings, Way, WrappedActor
from sgfn.learning.general import GeneralBackend
from sgfn.learning.kernels.distinct_states import each_once
from sgfn.learning.learner import seeded
from sgfn.learning.optimisation import Optimiser
from sgfn.learning.rollout import Actor
from sgfn.nets.encoders import masked_log_softmax
from sgfn.nets.heads import small


class SideSampler(nn.Module):
    r"""Policies on one small network, `heads` of them, each with a log Z of its own.

    With `prior` a fixed random network is added to the logits of each head: heads agree where data has taught them, and
    differ by it elsewhere. Each is trained by trajectory balance with the intention summed out and parents uniform,

    .. math:: \log Z_h + \sum_t \big(\log\textstyle\sum_a \pi_h(a|s_t) \hat P(k_t|s_t,a) + \log|parents(s_{t+1})|\big)
              - \log R_h.

    Reference: Osband et al. (2018), Randomized prior functions for deep reinforcement learning, NeurIPS.
    """

    def __init__(self, env: Env, *, heads: int, hidden: int, prior: float = 0.0) -> None:
        super().__init__()
        self.env, self.heads, self.weight = env, heads, prior
        outputs = heads * env.actions
        self.body = nn.Sequential(nn.Linear(env.features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        self.policy = small(nn.Linear(hidden, outputs))
        self.prior = random_function(env.features, hidden, outputs) if prior else None
        self.log_z = nn.Parameter(torch.zeros(heads))

    def log_policies(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H A"]:
        """log pi_h(.|s) of every head."""
        features = self.env.encode(state)
        logits = self.policy(self.body(features))
        if self.prior is not None:
            logits = logits + self.weight * self.prior(features)
        return masked_log_softmax(logits.unflatten(-1, (self.heads, -1)), self.env.legal(state)[..., None, :])

    def residual(
        self, batch: Trajectories, backend: GeneralBackend, log_reward: Float[Tensor, "B H"]
    ) -> Float[Tensor, "B H"]:
        """What each head lacks to balance a trajectory: log Z and its steps, less a log-reward."""
        kernel = backend.kernel_along(batch)(batch.states[:, :-1]).detach()
        log_policies = each_once(self.log_policies, self.env, batch.states[:, :-1])  # B T H A
        log_pf = torch.stack([kernel.posterior(one, batch.realised)[0] for one in log_policies.unbind(-2)], -1)
        log_pb = -self.env.parents(batch.states[:, 1:]).sum(-1).clamp(min=1).float().log()
        steps = torch.where(batch.valid[..., None], log_pf - log_pb[..., None], 0.0).sum(1)
        return self.log_z + steps - log_reward


def random_function(features: int, hidden: int, outputs: int) -> nn.Sequential:
    """A fixed random network whose outputs have mean 0 and variance 1 over its weights at every state."""
    first, last = nn.Linear(features, hidden), nn.Linear(hidden, outputs, bias=False)
    nn.init.normal_(first.weight)
    nn.init.normal_(last.weight, std=hidden**-0.5)
    norm = nn.LayerNorm(hidden, elementwise_affine=False)
    return nn.Sequential(first, nn.GELU(), norm, last).requires_grad_(False)


class SideWay(Way):
    """A way to explore by a sampler beside the policy; subclasses say what it is worth and which rollouts it makes."""

    sampler: SideSampler
    reviews = True

    def __init__(self, surroundings: Surroundings, *, heads: int, hidden: int, lr: float, prior: float = 0.0) -> None:
        super().__init__(surroundings)
        with seeded(self.config.seed + 1):
            self.sampler = SideSampler(self.env, heads=heads, hidden=hidden, prior=prior)
        self.sampler.to(self.device)
        body = [*self.sampler.body.parameters(), *self.sampler.policy.parameters()]
        groups = [(body, lr), ([self.sampler.log_z], lr * self.config.optim.log_z_factor)]
        self.optimiser = Optimiser(groups, 1.0, self.device)
        self.begun = torch.zeros((), dtype=torch.bool, device=self.device)

    def targets(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> Float[Tensor, "B H"]:
        """Log-reward of each trajectory for each head."""
        raise NotImplementedError

    def learns(self, batch: Trajectories) -> Bool[Tensor, "B H"]:
        """Which heads learn from which trajectories; all by default."""
        return torch.ones(len(batch.realised), self.sampler.heads, dtype=torch.bool, device=self.device)

    def head_of(self, rows: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        """The head that makes each rollout of a batch; -1 where the policy itself does."""
        raise NotImplementedError

    def own(self, rows: Int[Tensor, " B"]) -> Bool[Tensor, " B"]:
        """Those that no head makes."""
        return self.head_of(rows) < 0

    def actor(self, actor: Actor) -> Actor:
        """The policy in some rollouts, a head in the others, from beginning to end."""
        return SideActor(actor, self)

    def observe(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Update the heads; before the first time, log Z is set so that the batch balances on average."""
        target, learns = self.targets(batch, backend, beta), self.learns(batch)
        residual = self.sampler.residual(batch, backend, target)  # B H
        with torch.no_grad():  # without a look at `begun`, for which the host would wait
            shift = torch.where(self.begun, 0.0, residual.mean(0))
            self.sampler.log_z.sub_(shift)
            self.begun.fill_(True)
        loss = (residual - shift).square() * learns
        self.optimiser.step(loss.sum() / learns.sum().clamp(min=1), torch.ones((), device=self.device))

    def review(self, batch: Trajectories, backend: GeneralBackend, beta: Tensor) -> None:
        """Update the heads on a replayed batch too: balances hold off-policy."""
        self.observe(batch, backend, beta)

    def modules(self) -> dict[str, nn.Module]:
        """The sampler, for checkpoints."""
        return {"sampler": self.sampler}

    def optimisers(self) -> dict[str, Optimiser]:
        """Its optimiser."""
        return {"sampler_optimiser": self.optimiser}

    def memory(self) -> dict[str, Tensor]:
        """Whether log Z was set."""
        return {"begun": self.begun}


class SideActor(WrappedActor):
    """An actor in whose place a head of a side sampler draws the intentions of some rollouts."""

    def __init__(self, inner: Actor, way: SideWay) -> None:
        super().__init__(inner)
        self.way = way

    @torch.no_grad()
    def changed(self, log_policy: Tensor, state: Int[Tensor, "B S"]) -> Tensor:
        """Logits of the head where there is one."""
        head = self.way.head_of(torch.arange(len(state), device=state.device))
        log_policies = self.way.sampler.log_policies(state)
        chosen = log_policies[torch.arange(len(state), device=state.device), head.clamp(min=0)]
        return torch.where(head[:, None] < 0, log_policy, chosen)
