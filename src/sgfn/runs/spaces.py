"""Environments by their few facts, and noise given as a rate or as an object."""

import copy
from numbers import Real

from sgfn.config import NoiseConfig
from sgfn.config.checks import in_range, whole_number
from sgfn.config.tasks import LONGEST
from sgfn.envs import Constraints, Env, GridEnv, SequenceEnv
from sgfn.landscapes.measurements import resolve_alphabet
from sgfn.noise import HiddenRate, Noise, UniformSlip


class Sequences(SequenceEnv):
    """Strings over an alphabet ("ACGT", or dna, rna, protein), of one length or of `min_length` to `length` letters.

    Noise is a rate (uniform slip) or a noise object; without it every letter comes out as intended. `constraints` are
    those that what is intended must satisfy.

    >>> env = Sequences("dna", 8, noise=0.1)
    >>> env.num_objects, env.noise.summary
    (65536, 'uniform slip 0.1')
    """

    def __init__(
        self,
        alphabet: str,
        length: int,
        min_length: int | None = None,
        noise: float | Noise | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        if not isinstance(alphabet, str):
            raise ValueError(f"alphabet must be a text such as 'ACGT' or 'dna', got {alphabet!r}")
        whole_number("length", length, 1, LONGEST)
        shortest = length if min_length is None else min_length
        whole_number("min_length", shortest, 1, length)
        letters, varies = resolve_alphabet(alphabet, "alphabet"), shortest < length
        super().__init__(
            length=length,
            alphabet=letters,
            noise=as_noise(noise),
            stop=varies,
            min_length=shortest if varies else 1,
            constraints=constraints,
        )


class Grid(GridEnv):
    """Cells of a hypergrid with `ndim` coordinates of `side` cells each, reached from the origin one move at a time.

    >>> Grid(2, 8).num_objects
    64
    """

    def __init__(self, ndim: int, side: int, noise: float | Noise | None = None) -> None:
        whole_number("ndim", ndim, 1, 16)
        whole_number("side", side, 2, 4096)
        super().__init__(ndim=ndim, side=side, noise=as_noise(noise))


def as_noise(noise: object) -> Noise:
    """A noise object: itself, the uniform slip of a rate, or no noise for None."""
    if isinstance(noise, Noise):
        return noise
    if noise is None:
        return UniformSlip(alpha=0.0)
    if isinstance(noise, bool) or not isinstance(noise, Real):
        raise ValueError(f"noise must be a rate such as 0.1 or an object of sgfn.noise, got {type(noise).__name__}")
    in_range("noise", float(noise), 0.0, 1.0, open_high=True)
    return UniformSlip(alpha=float(noise))


def with_noise(env: Env, noise: Noise) -> Env:
    """A copy of the environment under another noise, which must fit it."""
    if env.noise_by_state:
        raise ValueError(f"{type(env).__name__} writes its noise in kernel, which would not change: leave noise out")
    if isinstance(env, SequenceEnv):
        if noise.stop and not env.stop:
            raise ValueError("noise.stop is for sequences of variable length: this environment has no stop action")
        noise.check(env.vocab + int(noise.stop), env.length)
    elif isinstance(env, GridEnv):
        noise.check(env.ndim + int(noise.stop), env.horizon)
    else:
        noise.check(int(env.slippable(env.initial(1)).sum()), env.horizon)
    changed = copy.copy(env)
    changed.noise, changed.actions = noise, noise.intentions(env.outcomes)
    if changed.actions != env.outcomes and not (isinstance(env, SequenceEnv) and not env.stop):
        raise ValueError(f"{noise.summary}: intentions of another kind than outcomes are for sequences of one length")
    return changed


def noise_config(noise: Noise) -> NoiseConfig | None:
    """The settings that mean the same noise; None where settings would need a file."""
    if type(noise) is UniformSlip:
        return NoiseConfig(alpha=noise.alpha, stop=noise.stop)
    if type(noise) is HiddenRate:
        return NoiseConfig(kind="hidden", alpha=noise.mean, concentration=noise.concentration, stop=noise.stop)
    return None
