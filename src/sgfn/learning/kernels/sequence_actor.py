"""Acting on sequences of one length by one GPU kernel for all steps, where the environment is as the kernel has it."""

from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.sequence import SequenceEnv
from sgfn.learning.kernels.sequence_noise import SequenceNoise
from sgfn.learning.rollout import RolloutSteps
from sgfn.nets.encoders import MLP, SequenceReader, sequence_of
from sgfn.nets.heads import FlowNets

ASSUMED_METHODS = (
    "kernel",
    "operator",
    "initial",
    "done",
    "legal",
    "possible",
    "slippable",
    "apply",
    "encode",
    "objects",
    "position",
)
"""Methods of `SequenceEnv` that kernels and formulas for sequences of one length take for granted: a subclass that
overrides one is another environment."""
MOST_ENTRIES = 2**24
"""Largest table of noise, over positions, intentions and outcomes."""


def plain_sequence(env: Env, methods: tuple[str, ...] = ASSUMED_METHODS) -> SequenceEnv | None:
    """The environment of sequences of one length, behind look-up tables too, if it is as `SequenceEnv` writes it."""
    found = sequence_of(env)
    if found is None or found.stop or not found.intends_outcomes or found.automaton is not None:
        return None
    own = any(getattr(type(found), name) is not getattr(SequenceEnv, name) for name in methods)
    return None if own else found


class SequenceKernel:
    """Whole rollouts of a plain sequence environment by a network that the GPU kernels take."""

    def __init__(
        self, env: Env, sequence: SequenceEnv, nets: FlowNets, module: ModuleType, device: torch.device
    ) -> None:
        self.env = env
        noise = SequenceNoise(sequence, device)
        self.table = None if noise.noise_free else noise.table  # T A K
        if self.table is not None and bool((self.table == self.table[:1]).all()):
            self.table = self.table[:1].contiguous()
        encoder = nets.encoder
        roll = (
            partial(module.transformer_rollout, encoder.tokens)
            if isinstance(encoder, SequenceReader)
            else partial(module.mlp_rollout, encoder)
        )
        self.roll = partial(roll, nets.policy, self.table)

    @torch.no_grad()
    def whole_rollout(
        self, clock: Float[Tensor, "T 2 B A"], explore: float, temperature: float | Tensor
    ) -> RolloutSteps:
        """All steps of a batch."""
        intended, realised = self.roll(clock, temperature, explore)
        states, valid = self.env.unrolled(realised)
        return RolloutSteps(intended=intended, realised=realised, states=states, valid=valid)


@cache
def kernel_module() -> ModuleType | None:
    """The module with the GPU kernels; None without Triton."""
    return import_module("sgfn.learning.kernels.sequence_kernels") if find_spec("triton") else None


def sequence_kernel(env: Env, nets: FlowNets, device: torch.device) -> SequenceKernel | None:
    """Whole rollouts by a GPU kernel; None without a GPU or Triton, or where environment or network do not fit."""
    if device.type != "cuda" or type(nets) is not FlowNets or nets.join is not None:
        return None
    sequence, encoder, module = plain_sequence(env), nets.encoder, kernel_module()
    if sequence is None or module is None or sequence.length * sequence.vocab**2 > MOST_ENTRIES:
        return None
    if isinstance(encoder, SequenceReader):
        fits = type(encoder) is SequenceReader and module.transformer_fits(encoder.tokens, env.actions)
    else:
        fits = type(encoder) is MLP and module.mlp_fits(encoder, env.actions)
    return SequenceKernel(env, sequence, nets, module, device) if fits else None
