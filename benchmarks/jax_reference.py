"""A hand-written JAX loop of the same algorithm, to measure ours against: rollout and update in one `lax.scan`.

    python -m benchmarks.jax_reference --objective stochastic --batch 256

Trajectory balance on TFBind8 with an MLP: `tb` without noise, `stochastic` in the marginal form under uniform slip with
a learned noise model. Features, layers, exploration, clips, schedule and Adam are those of `sgfn train`. It needs JAX
and NumPy and nothing of this package, so that it runs in an environment of its own; scores come from a file.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from benchmarks.contest import Job, serve

LENGTH, VOCAB = 8, 4
FEATURES = LENGTH * VOCAB + LENGTH + 1
EXPLORE, LOG_Z_FACTOR, CLIP, DYNAMICS_CLIP = 0.01, 20.0, 10.0, 1.0
DYNAMICS_RATE, DYNAMICS_HIDDEN, WARMUP, FINAL = 2e-3, 64, 100, 0.01
ACTIVATIONS = {"relu": jax.nn.relu, "gelu": partial(jax.nn.gelu, approximate=False)}

Weights = list[tuple[jax.Array, jax.Array]]


def linear(key: jax.Array, inputs: int, outputs: int, scale: float = 1.0) -> tuple[jax.Array, jax.Array]:
    """Weights of a layer, drawn as PyTorch draws them; a head is ten times smaller, without bias."""
    bound = 1.0 / math.sqrt(inputs)
    first, second = random.split(key)
    weight = random.uniform(first, (inputs, outputs), minval=-bound, maxval=bound)
    bias = random.uniform(second, (outputs,), minval=-bound, maxval=bound)
    return (weight, bias) if scale == 1.0 else (scale * weight, jnp.zeros_like(bias))


def network(key: jax.Array, hidden: int, layers: int) -> Weights:
    """Encoder and policy head."""
    keys = random.split(key, layers + 1)
    sizes = [FEATURES] + [hidden] * layers
    body = [linear(k, a, b) for k, a, b in zip(keys[:-1], sizes[:-1], sizes[1:], strict=True)]
    return [*body, linear(keys[-1], hidden, VOCAB, 0.1)]


def noise_model(key: jax.Array) -> Weights:
    """One hidden layer, and a matrix that starts near the identity."""
    bias = 2.0 * jnp.eye(VOCAB).flatten()
    return [linear(key, FEATURES, DYNAMICS_HIDDEN), (jnp.zeros((DYNAMICS_HIDDEN, VOCAB**2)), bias)]


def forward(weights: Weights, features: jax.Array, activation: str) -> jax.Array:
    """Layers in turn, an activation after all but the last."""
    for weight, bias in weights[:-1]:
        features = ACTIVATIONS[activation](features @ weight + bias)
    return features @ weights[-1][0] + weights[-1][1]


def encode(tokens: jax.Array, written: jax.Array) -> jax.Array:
    """One-hot tokens by position (blanks are zeros), and one-hot length."""
    symbols = jax.nn.one_hot(tokens, VOCAB).reshape(*tokens.shape[:-1], LENGTH * VOCAB)
    return jnp.concatenate([symbols, jax.nn.one_hot(written, LENGTH + 1)], -1)


def rollout(weights: Weights, key: jax.Array, batch: int, alpha: float, activation: str) -> tuple[jax.Array, ...]:
    """Features before each step, intentions and outcomes, steps first."""
    keys = random.split(key, 4)
    gumbel = random.gumbel(keys[0], (LENGTH, batch, VOCAB))
    follows = random.uniform(keys[1], (LENGTH, batch, 1)) >= EXPLORE
    slips = random.uniform(keys[2], (LENGTH, batch)) < alpha
    others = random.randint(keys[3], (LENGTH, batch), 0, VOCAB)

    def act(tokens: jax.Array, drawn: Any) -> Any:
        t, g, follow, slip, other = drawn
        features = encode(tokens, jnp.full((batch,), t))
        intended = jnp.argmax(forward(weights, features, activation) * follow + g, -1)
        realised = jnp.where(slip, other, intended) if alpha else intended
        return tokens.at[:, t].set(realised), (features, intended, realised)

    blank = jnp.full((batch, LENGTH), VOCAB)
    return lax.scan(act, blank, (jnp.arange(LENGTH), gumbel, follows, slips, others))[1]


def losses(parts: Any, data: Any, job: Job, activation: str) -> tuple[jax.Array, jax.Array]:
    """Balance loss plus the noise model's negative log-likelihood; each has a gradient in its own parameters only."""
    features, intended, realised, target = data
    log_policy = jax.nn.log_softmax(forward(parts["policy"], features, activation))  # T B A
    nll = jnp.zeros(())
    if job["objective"] == "stochastic":
        logits = forward(parts["noise"], features, "relu").reshape(*realised.shape, VOCAB, VOCAB)
        log_kernel = jax.nn.log_softmax(logits)  # T B A K
        column = jnp.take_along_axis(log_kernel, realised[..., None, None], -1)[..., 0]  # T B A
        nll = -jnp.take_along_axis(column, intended[..., None], -1).mean()
        steps = jax.nn.logsumexp(log_policy + lax.stop_gradient(column), -1)
    else:
        steps = jnp.take_along_axis(log_policy, realised[..., None], -1)[..., 0]
    loss = jnp.square(parts["log_z"] + steps.sum(0) - target).mean()
    return loss + nll, loss


def clipped(gradient: Any, bound: float) -> Any:
    """Gradients scaled down to a largest norm."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, bound / (norm + 1e-6)), gradient)


def adam(parts: Any, moments: Any, gradient: Any, rates: Any, step: jax.Array) -> Any:
    """One update with bias correction."""
    one, two = 1.0 - 0.9 ** (step + 1.0), 1.0 - 0.999 ** (step + 1.0)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradient)
    moved = jax.tree.map(
        lambda p, m, v, rate: p - rate * (m / one) / (jnp.sqrt(v / two) + 1e-8), parts, first, second, rates
    )
    return moved, (first, second)


def update(job: Job, table: jax.Array, carry: Any, _: None) -> Any:
    """One batch of rollouts and the update that follows from it."""
    parts, moments, key, step = carry
    key, now = random.split(key)
    activation, alpha = job["activation"], job["alpha"] if job["objective"] == "stochastic" else 0.0
    features, intended, realised = rollout(parts["policy"], now, job["batch"], alpha, activation)
    number = (realised * (VOCAB ** jnp.arange(LENGTH - 1, -1, -1))[:, None]).sum(0)
    data = (features, intended, realised, table[number])
    (_, loss), gradient = jax.value_and_grad(losses, has_aux=True)(parts, data, job, activation)
    main = clipped({"policy": gradient["policy"], "log_z": gradient["log_z"]}, CLIP)
    gradient = {**main, "noise": clipped(gradient["noise"], DYNAMICS_CLIP)}
    cosine = (1.0 + jnp.cos(jnp.pi * step / job["steps"])) / 2.0
    factor = jnp.minimum(1.0, (step + 1.0) / WARMUP) * (FINAL + (1.0 - FINAL) * cosine)
    base = {"policy": job["lr"], "log_z": job["lr"] * LOG_Z_FACTOR, "noise": DYNAMICS_RATE}
    rates = {name: jax.tree.map(lambda _, name=name: base[name] * factor, part) for name, part in parts.items()}
    parts, moments = adam(parts, moments, gradient, rates, step)
    return (parts, moments, key, step + 1.0), loss


class Scan:
    """Runs so many updates per call, compiled as one."""

    def __init__(self, job: Job) -> None:
        self.job, self.chunk = job, job["chunk"]
        scores = jnp.asarray(np.load(job["table"]))
        self.table = job["beta"] * jnp.log(scores)
        keys = random.split(random.key(job["seed"]), 3)
        parts: Any = {"policy": network(keys[0], job["hidden"], job["layers"]), "noise": noise_model(keys[1])}
        parts["log_z"] = self.table.mean() + LENGTH * math.log(VOCAB)  # where a uniform policy balances on average
        moments = (jax.tree.map(jnp.zeros_like, parts), jax.tree.map(jnp.zeros_like, parts))
        self.carry: Any = (parts, moments, keys[2], jnp.zeros(()))
        many = lambda carry: lax.scan(partial(update, job, self.table), carry, None, self.chunk)  # noqa: E731
        self.many = jax.jit(many, donate_argnums=0)

    def advance(self) -> int:
        """So many updates, done when this returns."""
        self.carry, loss = self.many(self.carry)
        self.loss = float(loss[-1])
        return self.chunk

    def law(self) -> np.ndarray:
        """Exact law of the policy over all sequences, without noise."""
        law = np.ones(1)
        for depth in range(LENGTH):
            number = np.arange(VOCAB**depth)
            digits = [(number // VOCAB ** (depth - 1 - i)) % VOCAB for i in range(depth)]
            blanks = [np.full_like(number, VOCAB)] * (LENGTH - depth)
            features = encode(jnp.asarray(np.stack(digits + blanks, -1)), jnp.full(len(number), depth))
            policy = jax.nn.softmax(forward(self.carry[0]["policy"], features, self.job["activation"]))
            law = (law[:, None] * np.asarray(policy, dtype=np.float64)).reshape(-1)
        return law

    def memory(self) -> int:
        """Peak bytes on the device, where it counts them; else 0."""
        stats = jax.devices()[0].memory_stats() or {}
        return int(stats.get("peak_bytes_in_use", 0))


if __name__ == "__main__":
    serve(Scan, f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
