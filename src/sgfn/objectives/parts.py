"""Parts of a loss: named means over a batch that say what an objective's value is made of, for the log."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.trajectories import Episodes, WholeEpisodes
from sgfn.objectives.scores import Objective, Scores

Parts = dict[str, Tensor]
"""Scalars by name, each a mean over the batch."""
MEANINGS = {
    "log_flow": "log F(s), mean over steps",
    "log_pf": "forward log-probability of a step, mean: log Pbar(k|s), log pi(a|s), log pi(k|s) or log c(k|s) by form",
    "log_dynamics": "log P^(k|s,a), mean over steps; published form",
    "log_pb": "backward log-probability of a step, mean: log P_B(s|s'), or log pi_B(s,a|s') in the published form",
    "end_flow": "log R(x)^beta, mean over trajectories",
    "log_policy": "log pi(a|s), mean over legal intentions and steps; expected flows",
    "log_expected": "log of the flow expected after an intention, mean over legal intentions and steps; expected flows",
    "flow_loss": "loss of the outcome flow, the first term of `kl`",
    "projection_kl": "KL(c || Pbar), mean over steps: the second term of `kl`, before its weight",
    "base_loss": "loss of what `kl-entropy` is built on",
    "policy_kl_term": "policy_kl - log r_gamma: the policy KL as `kl-entropy` adds it, before its weight",
    "policy_kl": "KL(pi(.|s) || pi_B(.|s')), mean over steps",
    "dynamics_balance": "-H [log rho + (1-gamma)(1-H) log(1-rho)], mean over steps, before its weight",
    "H_high": "high end of the normalised entropies of the policy, mean over steps",
    "H_low": "low end of them",
    "H_mean": "normalised entropy of the policy, mean over steps",
    "r_gamma": "entropy ratio H_high / (gamma H_high + (1-gamma) H_low), mean over steps",
    "rho": "gamma r_gamma",
    "reward_minus_kl": "mean reward before its exponent, less policy_kl",
    "log_z": "log Z as learned, or as the batch tells it (`vargrad`)",
}
"""What each name of a part stands for."""
BESIDE = {
    "dynamics_nll": "-log P^(k|s,a), mean over valid steps: the loss of the noise model",
    "reward": "R before the exponent, mean of a batch",
    "length": "valid steps of a trajectory, mean",
    "best_reward": "R before the exponent of the best object so far; ways to explore",
    "lag": "updates between asking for a batch and training on it, mean; where batches are made ahead",
    "acceptance": "share of the proposals that are taken; `mh` and `mars`",
    "entropy": "entropy of the policy in nats, mean over steps; `a2c`, `ppo` and `sac`",
    "value_error": "squared error of the critic, mean over steps; `a2c`, `ppo` and `sac`",
}
"""What each name of a figure stands for that is logged beside the loss and is no part of it."""
TAKEN = frozenset(
    {*MEANINGS, *BESIDE, "step", "trajectories", "loss", "log_reward", "tv", "beta", "rate"}
    | {"entropy_high", "entropy_low", "ratio", "mu", "notice"}
)
"""Names that another's objective may not give to its parts: ours, and those of older run folders."""


class Explained(NamedTuple):
    """Losses of a batch, one for each trajectory, and the parts they are made of."""

    loss: Float[Tensor, " B"]
    parts: Parts


def explain(objective: Objective, scores: Scores, batch: Episodes) -> Explained:
    """Losses and parts of any objective; one that tells nothing of itself has no parts."""
    teller = getattr(objective, "explain", None)
    return Explained(objective(scores, batch), {}) if teller is None else teller(scores, batch)


class WeightedTerms:
    """An objective that is another one plus weighted terms, each of which is logged.

    `terms` gives one value per trajectory by name, and further parts. A weight of zero leaves the other objective's
    losses as they are, bit for bit.
    """

    def __init__(
        self,
        base: Objective | None,
        label: str,
        terms: Callable[[Scores, Episodes], tuple[dict[str, Tensor], Parts]],
        weights: Mapping[str, float],
    ) -> None:
        self.base, self.label, self.terms, self.weights = base, label, terms, dict(weights)

    def __call__(self, scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
        """One loss per trajectory."""
        return self.explain(scores, batch).loss

    def explain(self, scores: Scores, batch: Episodes) -> Explained:
        """Losses, the mean of what they are built on and of each term, and the parts of both."""
        terms, more = self.terms(scores, batch)
        under = None if self.base is None else explain(self.base, scores, batch)
        loss = weighted_sum(torch.zeros_like(batch.log_reward) if under is None else under.loss, terms, self.weights)
        parts = {} if under is None else {self.label: under.loss.detach().mean()} | under.parts
        return Explained(loss, parts | {name: values.detach().mean() for name, values in terms.items()} | more)


class WithParts:
    """An objective with a function beside it that tells its parts."""

    def __init__(self, loss: Objective, parts: Callable[[Scores, Episodes], Parts]) -> None:
        self.loss, self.parts = loss, parts

    def __call__(self, scores: Scores, batch: Episodes) -> Float[Tensor, " B"]:
        """One loss per trajectory."""
        return self.loss(scores, batch)

    def explain(self, scores: Scores, batch: Episodes) -> Explained:
        """Losses and parts."""
        return Explained(self.loss(scores, batch), self.parts(scores, batch))


def weighted_sum(
    base: Float[Tensor, " B"], terms: Mapping[str, Float[Tensor, " B"]], weights: Mapping[str, float]
) -> Float[Tensor, " B"]:
    """A base plus its terms, each times its weight."""
    for name, values in terms.items():
        base = base + weights[name] * values
    return base


def step_means(batch: Episodes, named: Mapping[str, Float[Tensor, "B T"]]) -> Parts:
    """Means over the steps of each trajectory, then over trajectories, of several values at once."""
    if not named:
        return {}
    if isinstance(batch, WholeEpisodes):  # fewer kernels, which join those of the loss
        return {name: values.detach().sum(1).mean() / values.shape[1] for name, values in named.items()}
    weight = batch.valid / batch.valid.sum(1, keepdim=True).clamp(min=1)  # B T
    stacked = torch.where(batch.valid, torch.stack([values.detach() for values in named.values()]), 0.0)
    return dict(zip(named, ((weight * stacked).sum((1, 2)) / weight.shape[0]).unbind(), strict=True))


def balance_parts(scores: Scores, batch: Episodes, names: tuple[str, ...]) -> Parts:
    """Means of the terms of a balance: those of `log_flow`, `log_pf`, `log_dynamics` and `log_pb` that are named.

    `end_flow`, if named, is the mean of log R^beta; `batch` has its rewards raised to the exponent.
    """
    found = {"log_pf": scores.log_pf, "log_dynamics": scores.log_dynamics, "log_pb": scores.log_pb}
    if scores.log_flow is not None:
        found["log_flow"] = scores.log_flow[:, : batch.valid.shape[1]]
    means = step_means(batch, {name: found[name] for name in names if name in found})
    return means | ({"end_flow": batch.log_reward.detach().mean()} if "end_flow" in names else {})


def expected_parts(scores: Scores, batch: Episodes) -> Parts:
    """Means of the terms of expected flows: log F, and over legal intentions log pi and the expected flow."""
    assert scores.log_flow is not None
    assert scores.log_policy is not None
    assert scores.log_expected is not None
    legal = scores.log_policy > -torch.inf
    each = {"log_policy": scores.log_policy.detach(), "log_expected": scores.log_expected.detach()}
    means = {name: torch.where(legal, values, 0.0).sum(-1) / legal.sum(-1) for name, values in each.items()}
    return step_means(batch, {"log_flow": scores.log_flow[:, : batch.valid.shape[1]]} | means)


def checked_parts(name: str, found: object) -> Parts:
    """Parts that another's objective returned beside its losses, as means; raises one line where they are none."""
    wanted = f"objective {name} returned a pair, which must be (losses, parts) with parts a dict of tensors by name"
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{wanted}; got {type(found).__name__} in second place")
    for part in found:
        if not isinstance(part, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}", part) or part in TAKEN:
            raise ValueError(f"objective {name} has a part {part!r}: choose a word of letters that is not ours")
    return {part: value.detach().float().mean() for part, value in found.items()}
