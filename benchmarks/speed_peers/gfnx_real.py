"""gfnx at its bit sequences and at peptides: its environments and its rollout in a compiled loop, without noise.

Its bit sequences are filled in any order (an action is a place and a word), so that a backward policy, uniform over the
places written, is part of the balance. Its peptides (AMP) end where they like; the trained proxy of its scripts is
replaced by a sum over positions, and they are as long as the job says.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import math
from importlib.metadata import version
from typing import Any

import gfnx
import jax
import jax.numpy as jnp
from jax import random

from benchmarks.contest import Job, serve
from benchmarks.jax_reference import ACTIVATIONS, EXPLORE, Weights, linear
from benchmarks.speed_peers.gfnx import GfnxLoop


class Additive(gfnx.EqxProxyAMPRewardModule):
    """A sum over positions in place of gfnx's proxy, whose weights are a download."""

    def __init__(self, length: int, tokens: int) -> None:
        self.shape = (length, tokens)

    def init(self, rng_key: Any, dummy_state: Any) -> Any:
        """A number for every token at every position."""
        return {"table": random.normal(rng_key, self.shape) / math.sqrt(self.shape[0])}

    def log_reward(self, state: Any, env_params: Any) -> Any:
        """Their sum."""
        table = env_params.reward_params["table"]
        return jnp.take_along_axis(table[None], state.tokens[..., None], -1)[..., 0].sum(-1)

    def reward(self, state: Any, env_params: Any) -> Any:
        """Its exponential."""
        return jnp.exp(self.log_reward(state, env_params))


def environment(job: Job) -> Any:
    """gfnx's environment of the job's task."""
    if job["task"] == "bits":
        bits = round(math.log2(job["vocab"]))
        size = {"k": bits, "reward_exponent": job["beta"]}
        reward = gfnx.BitseqRewardModule(sentence_len=bits * job["length"], **size)
        return gfnx.BitseqEnvironment(reward, n=bits * job["length"], k=bits)
    env = gfnx.AMPEnvironment(Additive(job["length"], 0))
    env.max_length, env.reward_module.shape = job["length"], (job["length"], env.ntoken)
    return env


def network(key: Any, job: Job, env: Any) -> Weights:
    """Layers on one-hot tokens by position."""
    sizes = [(job["length"] + 1) * env.ntoken, *[job["hidden"]] * job["layers"]]
    keys = random.split(key, len(sizes))
    body = [linear(k, a, b) for k, a, b in zip(keys[:-1], sizes[:-1], sizes[1:], strict=True)]
    return [*body, linear(keys[-1], sizes[-1], env.action_space.n, 0.1)]


class Gfnx(GfnxLoop):
    """gfnx's environment of a task, with an MLP on its tokens."""

    def __init__(self, job: Job) -> None:
        env, log_z = environment(job), jnp.asarray(job["length"] * math.log(job["vocab"]), jnp.float32)
        policy = network(random.split(random.key(job["seed"]))[0], job, env)
        super().__init__(job, env, policy, log_z)

    def _logits(self, weights: Weights, obs: Any) -> Any:
        hidden = jax.nn.one_hot(obs, self.env.ntoken).reshape(*obs.shape[:-1], -1)
        for weight, bias in weights[:-1]:
            hidden = ACTIVATIONS[self.job["activation"]](hidden @ weight + bias)
        return hidden @ weights[-1][0] + weights[-1][1]

    def _act(self, key: Any, obs: Any, weights: Weights) -> Any:
        explores = random.bernoulli(key, EXPLORE, (obs.shape[0],))
        return jnp.where(explores[:, None], 0.0, self._logits(weights, obs)), {}

    def _loss(self, parts: Any, batch: Any) -> Any:
        invalid = jax.vmap(self.env.get_invalid_mask, in_axes=(1, None), out_axes=1)(batch.state, self.params)
        logits = jnp.where(invalid, -jnp.inf, self._logits(parts["policy"], batch.obs))
        taken = jnp.take_along_axis(jax.nn.log_softmax(logits), batch.action[..., None], -1)[..., 0]
        forward, reward = jnp.where(batch.pad, 0.0, jnp.stack([taken, batch.log_gfn_reward]))
        backward = -math.lgamma(self.job["length"] + 1) if self.job["task"] == "bits" else 0.0
        return jnp.square(parts["log_z"] + forward.sum(1) - reward.sum(1) - backward).mean()


if __name__ == "__main__":
    serve(Gfnx, f"gfnx {version('gfnx')}, JAX {jax.__version__} on {jax.devices()[0].device_kind}")
