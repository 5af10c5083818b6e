"""gfnx at TFBind8: its environment and its rollout in a compiled loop, without the metrics of its own scripts."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import math
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import gfnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gfnx.utils import forward_rollout
from jax import lax, random

from benchmarks.contest import Job, serve

LENGTH, VOCAB, SYMBOLS, EXPLORE = 8, 4, 8, 0.01
ACTIVATIONS = {"relu": jax.nn.relu, "gelu": partial(jax.nn.gelu, approximate=False)}


class TableReward(gfnx.TFBind8RewardModule):
    """gfnx's table reward, with a given table instead of a download."""

    def __init__(self, rewards: np.ndarray) -> None:
        super().__init__()
        self.rewards = rewards

    def init(self, rng_key: Any, dummy_state: Any) -> Any:
        """All rewards by number."""
        return {"rewards": jnp.asarray(self.rewards)}


def network(key: Any, hidden: int, layers: int) -> Any:
    """Layers drawn as PyTorch draws them."""
    sizes = [LENGTH * SYMBOLS, *[hidden] * layers, VOCAB]
    weights = []
    for k, (inputs, outputs) in zip(random.split(key, layers + 1), pairwise(sizes), strict=True):
        bound = 1.0 / math.sqrt(inputs)
        weights.append((random.uniform(k, (inputs, outputs), minval=-bound, maxval=bound), jnp.zeros(outputs)))
    return weights


def logits(weights: Any, tokens: Any, activation: str) -> Any:
    """The policy network on one-hot symbols."""
    hidden = jax.nn.one_hot(tokens, SYMBOLS).reshape(*tokens.shape[:-1], LENGTH * SYMBOLS)
    for weight, bias in weights[:-1]:
        hidden = ACTIVATIONS[activation](hidden @ weight + bias)
    return hidden @ weights[-1][0] + weights[-1][1]


class GfnxLoop:
    """Runs so many updates per call, compiled as one; `_act` and `_loss` are those of a task."""

    _act: Any
    _loss: Any

    def __init__(self, job: Job, env: Any, policy: Any, log_z: Any) -> None:
        self.job, self.chunk, self.env, self.params = job, job["chunk"], env, env.init(random.key(0))
        parts = {"policy": policy, "log_z": log_z}
        labels = {"policy": "policy", "log_z": "log_z"}
        adams = {"policy": optax.adam(job["lr"]), "log_z": optax.adam(20 * job["lr"])}
        self.adam = optax.multi_transform(adams, labels)
        self.carry = (parts, self.adam.init(parts), random.split(random.key(job["seed"]))[1])
        self.many = jax.jit(lambda carry: lax.scan(self._update, carry, None, self.chunk))

    def _update(self, carry: Any, _: None) -> Any:
        parts, moments, key = carry
        key, now = random.split(key)
        batch, _ = forward_rollout(now, self.job["batch"], self._act, parts["policy"], self.env, self.params)
        loss, gradient = jax.value_and_grad(self._loss)(parts, batch)
        moved, moments = self.adam.update(gradient, moments, parts)
        return (optax.apply_updates(parts, moved), moments, key), loss

    def advance(self) -> int:
        """So many updates, done when this returns."""
        self.carry, loss = self.many(self.carry)
        self.loss = float(loss[-1])
        return self.chunk

    def memory(self) -> int:
        """Peak bytes on the device, where it counts them; else 0."""
        return int((jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0))


class Gfnx(GfnxLoop):
    """gfnx's TFBind8 with a given table."""

    def __init__(self, job: Job) -> None:
        rewards = np.load(job["table"]) ** job["beta"]
        policy = network(random.split(random.key(job["seed"]))[0], job["hidden"], job["layers"])
        env = gfnx.TFBind8Environment(TableReward(rewards))
        super().__init__(job, env, policy, jnp.log(rewards.mean() * 65536))

    def _act(self, key: Any, obs: Any, weights: Any) -> Any:
        found = logits(weights, obs[:, 1:], self.job["activation"])
        explores = random.bernoulli(key, EXPLORE, (obs.shape[0],))
        return jnp.where(explores[:, None], 0.0, found), {}

    def _loss(self, parts: Any, batch: Any) -> Any:
        log_policy = jax.nn.log_softmax(logits(parts["policy"], batch.obs[:, :LENGTH, 1:], self.job["activation"]))
        log_pf = jnp.take_along_axis(log_policy, batch.action[:, :LENGTH, None], -1)[..., 0]
        reward = jnp.where(batch.pad, 0.0, batch.log_gfn_reward).sum(1)
        return jnp.square(parts["log_z"] + log_pf.sum(1) - reward).mean()

    def law(self) -> np.ndarray:
        """Exact law of the policy network over all sequences."""
        law = np.ones(1)
        for depth in range(LENGTH):
            number = np.arange(VOCAB**depth)
            digits = [(number // VOCAB ** (depth - 1 - i)) % VOCAB for i in range(depth)]
            blanks = [np.full_like(number, self.env.pad_token)] * (LENGTH - depth)
            tokens = jnp.asarray(np.stack(digits + blanks, -1))
            policy = jax.nn.softmax(logits(self.carry[0]["policy"], tokens, self.job["activation"]))
            law = (law[:, None] * np.asarray(policy, dtype=np.float64)).reshape(-1)
        return law


if __name__ == "__main__":
    serve(Gfnx, f"gfnx {version('gfnx')}, JAX {jax.__version__} on {jax.devices()[0].device_kind}")
