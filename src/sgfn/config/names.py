"""Names that people know from other write-ups and code, and ours for the same thing; words that tables share."""

from dataclasses import dataclass

BLIND = "a policy that solves its balance perfectly, but as if nothing ever slipped"
"""What `tv_blind` is the distance of, through the noise."""


@dataclass(frozen=True)
class Known:
    """What a name from elsewhere is called here."""

    ours: str
    """A flag that begins with two dashes, or a name of our metrics or tensors."""
    about: str


ELSEWHERE: dict[str, Known] = {
    "ll_diff": Known("loss", "the balance residual; the loss is its mean square, and its terms are logged one by one"),
    "pol_back_logits": Known("log_pb", "log pi_B(s,a|s') of the published form; others sum intentions out"),
    "real_actions": Known("realised", "outcomes k, what the environment did"),
    "thought_actions": Known("intended", "intentions a, what the agent meant; `intended` in trajectories and samples"),
    "mu_pi": Known("EntropyTerms.visits", "weight of each visited state: every trajectory of a batch counts the same"),
    "dynamics_off_pol": Known("--dynamics.mode replay", "the noise model learns off-policy, from the buffer"),
    "dynamics_lr": Known("--dynamics.lr", "learning rate of the noise model"),
    "dynamics_hidden_dim": Known("--dynamics.hidden", "width of the noise model"),
    "reward_exp": Known("--beta", "exponent of the reward"),
    "gen_reward_exp": Known("--beta", "exponent of the reward"),
    "reward_exp_ramping": Known("--reward.ramp", "k of the exponent's ramp beta_t; beta_t is logged as `beta`"),
    "gen_reward_exp_ramping": Known("--reward.ramp", "k of the exponent's ramp beta_t; beta_t is logged as `beta`"),
    "stick": Known(
        "--noise.alpha", "strength of the noise: here the probability that a uniform draw replaces an intention"
    ),
    "stochastic_level": Known(
        "--noise.alpha", "strength of the noise: here the probability that a uniform draw replaces an intention"
    ),
    "gen_partition_init": Known("log_z", "log Z begins where a first batch balances; --optim.log-z-factor is its rate"),
    "entropy_ratio": Known("--objective kl-entropy", "r_gamma; --log.entropy logs it whatever the objective"),
    "gamma_entropy": Known("--entropy.gamma", "gamma of the entropy ratio"),
    "lambda_kl": Known("--entropy.weight-kl", "weight of the policy KL"),
    "lambda_dyn": Known("--entropy.weight-dynamics", "weight of the dynamics balance"),
    "lr": Known("--optim.lr", "learning rate of policy and flow"),
    "learning_rate": Known("--optim.lr", "learning rate of policy and flow"),
    "thought": Known("--thought.layers", "blocks of the transformer over what was intended and what happened"),
    "epsilon": Known("--explore", "probability of a uniform action while sampling"),
    "random_action_prob": Known("--explore", "probability of a uniform action while sampling"),
    "batch_size": Known("--batch", "trajectories per step"),
    "num_iterations": Known("--steps", "training steps"),
    "n_iterations": Known("--steps", "training steps"),
    "hidden_dim": Known("--net.hidden", "width of the network"),
    "alpha": Known("--noise.alpha", "strength of uniform noise"),
    "horizon": Known("--grid.side", "cells of each coordinate of the grid"),
}
"""Names from elsewhere; docs/names.md holds the same table."""


def hint(word: str) -> str:
    """What a flag of another system is called here, to be added to a complaint; empty where it is not known.

    >>> hint("--lr"), hint("--steps")
    ('use --optim.lr (learning rate of policy and flow)', '')
    """
    name = word.partition("=")[0].lstrip("-").replace("-", "_")
    return words_on(name) if word.startswith("--") else ""


def words_on(name: str, dashes: str = "--") -> str:
    """What a name of another system is called here; empty where it is not known. Settings have no dashes in code.

    >>> words_on("gamma_entropy", dashes="")
    'use entropy.gamma (gamma of the entropy ratio)'
    """
    found = ELSEWHERE.get(name)
    if found is None:
        return ""
    if not found.ours.startswith("--"):
        return f"here it is {found.ours} ({found.about})"
    setting, space, value = found.ours.removeprefix("--").partition(" ")
    setting = setting if dashes else setting.replace("-", "_")
    return f"use {dashes}{setting}{space}{value} ({found.about})"
