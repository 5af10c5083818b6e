"""A hand-written JAX loop of the same algorithm on sequences of any length and alphabet, by a transformer or an MLP.

    python -m benchmarks.speed_peers.jax_real --encoder transformer --vocab 256 --length 15 --hidden 64 --layers 3

Rollout and update are one `lax.scan` over many updates per call. Transformers decode with a key/value cache inside an
inner scan and update by one causal pass; MLPs carry the sums of their first layer from letter to letter, and update by
sums over all prefixes. Blocks, features, exploration, clips, schedule and Adam are those of `sgfn train`, and so is the
noise model (a table that states share, or a network that gives a matrix at every state). The reward is a sum over
positions, which costs less than any task's own. On a GPU products are in TF32, as ours are. Needs JAX and NumPy alone.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, random

from benchmarks.contest import Job, serve
from benchmarks.jax_reference import (
    ACTIVATIONS,
    CLIP,
    DYNAMICS_CLIP,
    DYNAMICS_HIDDEN,
    DYNAMICS_RATE,
    EXPLORE,
    FINAL,
    LOG_Z_FACTOR,
    WARMUP,
    adam,
    clipped,
    linear,
)

SMALL, FEW, SURE = 64, 2_000_000, 2.0
"""Entries of a noise matrix up to which a network gives one at every state where states and strings are this few, and
the logit at which laws start."""


def affine(rows: jax.Array, weights: tuple[jax.Array, jax.Array]) -> jax.Array:
    """One layer."""
    return rows @ weights[0] + weights[1]


def normal(key: jax.Array, inputs: int, outputs: int, depth: int = 1) -> tuple[jax.Array, jax.Array]:
    """A layer of a block: deviation one over the root of its inputs, and of `depth` where it writes."""
    return random.normal(key, (inputs, outputs)) / math.sqrt(inputs * depth), jnp.zeros(outputs)


def norm(rows: jax.Array, weights: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Layer normalisation."""
    centred = rows - rows.mean(-1, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * weights[0] + weights[1]


class Transformer:
    """A causal transformer of pre-norm blocks over the letters written so far."""

    def __init__(self, job: Job) -> None:
        self.job, self.heads = job, job["heads"]

    def weights(self, key: jax.Array) -> Any:
        """Fresh weights, drawn as ours are."""
        width, layers = self.job["hidden"], self.job["layers"]
        keys = iter(random.split(key, 4 + 4 * layers))
        flat = lambda: (jnp.ones(width), jnp.zeros(width))  # noqa: E731  # buffers of their own, which are donated
        net: Any = {"begin": random.normal(next(keys), (width,)), "norm": flat()}
        net["token"] = random.normal(next(keys), (self.job["vocab"], width))
        net["positions"] = random.normal(next(keys), (self.job["length"], width))
        net["head"] = linear(next(keys), width, self.job["vocab"], 0.1)
        net["blocks"] = [
            {
                "mix_norm": flat(),
                "read": normal(next(keys), width, 3 * width),
                "write": normal(next(keys), width, width, 2 * layers),
                "feed_norm": flat(),
                "widen": normal(next(keys), width, 4 * width),
                "narrow": normal(next(keys), 4 * width, width, 2 * layers),
            }
            for _ in range(layers)
        ]
        return net

    def start(self, net: Any, batch: int) -> Any:
        """Empty caches, positions first so that a letter is written in one piece, and the item before all letters."""
        width, layers = self.job["hidden"], self.job["layers"]
        empty = jnp.zeros((self.job["length"], batch, width))
        return [(empty, empty) for _ in range(layers)], jnp.broadcast_to(net["begin"], (batch, width))

    def logits(self, net: Any, carry: Any, t: jax.Array) -> tuple[jax.Array, Any]:
        """Of the next letter, and the caches with the last one in them."""
        caches, item = carry
        row, kept = item + net["positions"][t], []
        for block, (keys, values) in zip(net["blocks"], caches, strict=True):
            query, key, value = jnp.split(affine(norm(row, block["mix_norm"]), block["read"]), 3, -1)
            keys = lax.dynamic_update_index_in_dim(keys, key, t, 0)
            values = lax.dynamic_update_index_in_dim(values, value, t, 0)
            row = row + affine(self._one_row(query, keys, values, t), block["write"])
            row = row + feed(row, block)
            kept.append((keys, values))
        return affine(norm(row, net["norm"]), net["head"]), kept

    def _one_row(self, query: jax.Array, keys: jax.Array, values: jax.Array, t: jax.Array) -> jax.Array:
        """Attention of one row over the rows written, as sums that fuse: heads are too narrow for matrix products."""
        split = lambda rows: rows.reshape(*rows.shape[:-1], self.heads, -1)  # noqa: E731
        scores = (split(query)[None] * split(keys)).sum(-1) / math.sqrt(query.shape[-1] // self.heads)  # M B heads
        scores = jnp.where((jnp.arange(len(keys)) <= t)[:, None, None], scores, -jnp.inf)
        return (jax.nn.softmax(scores, 0)[..., None] * split(values)).sum(0).reshape(query.shape)

    def take(self, net: Any, kept: Any, t: jax.Array, letter: jax.Array) -> Any:
        """The carry after a letter."""
        return kept, net["token"][letter]

    def along(self, net: Any, letters: jax.Array) -> jax.Array:
        """Logits before every letter, steps first, by one causal pass."""
        items = jax.nn.one_hot(letters[:-1].T, self.job["vocab"]) @ net["token"]  # a gradient by products too
        begin = jnp.broadcast_to(net["begin"], (items.shape[0], 1, items.shape[-1]))
        rows = jnp.concatenate([begin, items], 1) + net["positions"]  # B T H
        for block in net["blocks"]:
            rows = rows + affine(self._all_rows(affine(norm(rows, block["mix_norm"]), block["read"])), block["write"])
            rows = rows + feed(rows, block)
        return affine(norm(rows, net["norm"]), net["head"]).swapaxes(0, 1)

    def _all_rows(self, read: jax.Array) -> jax.Array:
        split = lambda rows: rows.reshape(*rows.shape[:-1], self.heads, -1)  # noqa: E731
        query, key, value = map(split, jnp.split(read, 3, -1))  # B T heads D
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(query.shape[-1])
        scores = jnp.where(jnp.tri(read.shape[1], dtype=bool), scores, -jnp.inf)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
        return mixed.reshape(*read.shape[:-1], -1)


def feed(rows: jax.Array, block: Any) -> jax.Array:
    """The feed-forward half of a block, with the exact GELU."""
    wide = jax.nn.gelu(affine(norm(rows, block["feed_norm"]), block["widen"]), approximate=False)
    return affine(wide, block["narrow"])


class Layers:
    """Fully connected layers on one-hot letters by position and one-hot length; the first by sums over letters."""

    def __init__(self, job: Job, sizes: list[int], outputs: int, activation: str) -> None:
        self.vocab, self.length, self.sizes, self.outputs = job["vocab"], job["length"], sizes, outputs
        self.activation = ACTIVATIONS[activation]

    def weights(self, key: jax.Array) -> Any:
        """Fresh weights; the first layer's as a table of letters by position, one of lengths, and a bias."""
        features = self.length * self.vocab + self.length + 1
        keys = random.split(key, len(self.sizes) + 1)
        first, bias = linear(keys[0], features, self.sizes[0])
        table = first[: self.length * self.vocab].reshape(self.length, self.vocab, -1)
        more = [linear(k, a, b) for k, a, b in zip(keys[1:-1], self.sizes[:-1], self.sizes[1:], strict=True)]
        head = linear(keys[-1], self.sizes[-1], self.outputs, 0.1)
        return {"letters": table, "lengths": first[self.length * self.vocab :], "bias": bias, "more": [*more, head]}

    def rest(self, net: Any, sums: jax.Array) -> jax.Array:
        """Outputs from what the first layer gives."""
        for layer in net["more"]:
            sums = affine(self.activation(sums), layer)
        return sums

    def start(self, net: Any, batch: int) -> Any:
        """The first layer's sums before any letter."""
        return jnp.broadcast_to(net["bias"], (batch, self.sizes[0]))

    def logits(self, net: Any, carry: Any, t: jax.Array) -> tuple[jax.Array, Any]:
        """Of the next letter."""
        return self.rest(net, carry + net["lengths"][t]), carry

    def take(self, net: Any, kept: Any, t: jax.Array, letter: jax.Array) -> Any:
        """The sums after a letter."""
        return kept + net["letters"][t][letter]

    def along(self, net: Any, letters: jax.Array) -> jax.Array:
        """Outputs before every letter, steps first: sums over all shorter prefixes as one triangular product."""
        codes = jax.nn.one_hot(letters[:-1], self.vocab)  # T-1 B V
        added = jnp.einsum("tbv,tvh->tbh", codes, net["letters"][:-1])
        sums = jnp.einsum("st,tbh->sbh", jnp.tri(self.length, self.length - 1, -1), added)
        return self.rest(net, sums + (net["bias"] + net["lengths"][:-1])[:, None])


class NoiseTable:
    """One law for each intention, shared by all states."""

    def __init__(self, job: Job) -> None:
        self.vocab = job["vocab"]

    def weights(self, key: jax.Array) -> Any:
        """Logits."""
        return SURE * jnp.eye(self.vocab)

    def picked(self, logits: Any, intended: jax.Array, realised: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What every intention gave to what happened, and what the true one gave; logarithms."""
        laws = jax.nn.log_softmax(logits)
        return laws.T[realised], laws[intended, realised]


class NoiseLayers:
    """A law for each intention at every state, by a network of one hidden layer."""

    def __init__(self, job: Job) -> None:
        self.vocab = job["vocab"]
        self.layers = Layers(job, [DYNAMICS_HIDDEN], self.vocab**2, "relu")

    def weights(self, key: jax.Array) -> Any:
        """Laws near the identity that do not depend on the state yet."""
        net = self.layers.weights(key)
        head = (jnp.zeros_like(net["more"][-1][0]), SURE * jnp.eye(self.vocab).flatten())
        return {**net, "more": [head]}

    def picked(self, net: Any, intended: jax.Array, realised: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What every intention gave to what happened, and what the true one gave; logarithms."""
        logits = self.layers.along(net, realised).reshape(*realised.shape, self.vocab, self.vocab)
        column = jnp.take_along_axis(jax.nn.log_softmax(logits), realised[..., None, None], -1)[..., 0]  # T B A
        return column, jnp.take_along_axis(column, intended[..., None], -1)[..., 0]


class Scan:
    """Runs so many updates per call, compiled as one."""

    def __init__(self, job: Job) -> None:
        if job["device"] == "cuda":
            jax.config.update("jax_default_matmul_precision", "tensorfloat32")
        self.job, self.chunk, vocab, length = job, job["chunk"], job["vocab"], job["length"]
        hidden = [job["hidden"]] * job["layers"]
        transformer = job["encoder"] == "transformer"
        self.net = Transformer(job) if transformer else Layers(job, hidden, vocab, job["activation"])
        self.noisy = job["objective"] == "stochastic"
        listed = sum(vocab**written for written in range(length + 1)) <= FEW
        self.noise = NoiseLayers(job) if vocab**2 <= SMALL and listed else NoiseTable(job)
        keys = random.split(random.key(job["seed"], impl="unsafe_rbg"), 4)  # the fastest numbers on a GPU
        self.table = job["beta"] * random.normal(keys[0], (length, vocab)) / math.sqrt(length)
        parts: Any = {"policy": self.net.weights(keys[1]), "noise": self.noise.weights(keys[2])}
        parts["log_z"] = self.table.mean(-1).sum() + length * math.log(vocab)
        moments = (jax.tree.map(jnp.zeros_like, parts), jax.tree.map(jnp.zeros_like, parts))
        self.carry: Any = (parts, moments, keys[3], jnp.zeros(()))
        many = lambda carry: lax.scan(self._update, carry, None, self.chunk)  # noqa: E731
        self.many = jax.jit(many, donate_argnums=0)

    def rollout(self, net: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Intentions and outcomes, steps first."""
        shape, vocab, keys = (self.job["length"], self.job["batch"]), self.job["vocab"], random.split(key, 4)
        gumbel = random.gumbel(keys[0], (*shape, vocab))
        follows = random.uniform(keys[1], (*shape, 1)) >= EXPLORE
        slips = random.uniform(keys[2], shape) < (self.job["alpha"] if self.noisy else 0.0)
        others = random.randint(keys[3], shape, 0, vocab)

        def act(carry: Any, drawn: Any) -> Any:
            t, g, follow, slip, other = drawn
            logits, kept = self.net.logits(net, carry, t)
            intended = jnp.argmax(logits * follow + g, -1)
            realised = jnp.where(slip, other, intended)
            return self.net.take(net, kept, t, realised), (intended, realised)

        drawn = (jnp.arange(shape[0]), gumbel, follows, slips, others)
        return lax.scan(act, self.net.start(net, shape[1]), drawn, unroll=min(shape[0], self.job["unroll"]))[1]

    def _losses(self, parts: Any, intended: jax.Array, realised: jax.Array) -> tuple[jax.Array, Any]:
        """Both losses in one sum, whose parts have gradients in parameters of their own; and each of them."""
        log_policy = jax.nn.log_softmax(self.net.along(parts["policy"], realised))  # T B A
        nll = jnp.zeros(())
        if self.noisy:
            column, true = self.noise.picked(parts["noise"], intended, realised)
            steps, nll = jax.nn.logsumexp(log_policy + lax.stop_gradient(column), -1), -true.mean()
        else:
            steps = jnp.take_along_axis(log_policy, realised[..., None], -1)[..., 0]
        target = jnp.take_along_axis(self.table, realised, -1).sum(0)
        loss = jnp.square(parts["log_z"] + steps.sum(0) - target).mean()
        return loss + nll, jnp.stack([loss, nll])

    def _update(self, carry: Any, _: None) -> Any:
        parts, moments, key, step = carry
        key, now = random.split(key)
        intended, realised = self.rollout(parts["policy"], now)
        (_, found), gradient = jax.value_and_grad(self._losses, has_aux=True)(parts, intended, realised)
        main = clipped({"policy": gradient["policy"], "log_z": gradient["log_z"]}, CLIP)
        gradient = {**main, "noise": clipped(gradient["noise"], DYNAMICS_CLIP)}
        cosine = (1.0 + jnp.cos(jnp.pi * step / self.job["steps"])) / 2.0
        factor = jnp.minimum(1.0, (step + 1.0) / WARMUP) * (FINAL + (1.0 - FINAL) * cosine)
        base = {"policy": self.job["lr"], "log_z": self.job["lr"] * LOG_Z_FACTOR, "noise": DYNAMICS_RATE}
        rates = {name: jax.tree.map(lambda _, name=name: base[name] * factor, part) for name, part in parts.items()}
        parts, moments = adam(parts, moments, gradient, rates, step)
        return (parts, moments, key, step + 1.0), found

    def advance(self) -> int:
        """So many updates, done when this returns."""
        self.carry, found = self.many(self.carry)
        self.found = tuple(float(value) for value in found.mean(0))  # waits for the device
        return self.chunk

    def memory(self) -> int:
        """Peak bytes on the device, where it counts them; else 0."""
        return int((jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0))


if __name__ == "__main__":
    serve(Scan, f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
