"""torchgfn at its append-only bit sequences, with its own reward and sampler, without noise."""

# pyright: reportMissingImports=false
import math
from importlib.metadata import version

import torch
from gfn.gym.bitSequence import BitSequence

from benchmarks.contest import Job, serve
from benchmarks.speed_peers.torchgfn import OneHot, TorchLoop

MODES = 60


def bit_sequences(job: Job) -> TorchLoop:
    """The loop of a job; a ReLU in place of the GELU, which torchgfn's layers do not have."""
    bits = round(math.log2(job["vocab"]))
    env = BitSequence(word_size=bits, seq_size=bits * job["length"], n_modes=MODES)
    return TorchLoop({**job, "activation": "relu"}, env, OneHot(job["length"], job["vocab"] + 2))


if __name__ == "__main__":
    serve(bit_sequences, f"torchgfn {version('torchgfn')}, torch {torch.__version__}")
