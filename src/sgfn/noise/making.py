"""The configured noise, made for a task's letters and positions."""

from sgfn.config import NoiseConfig
from sgfn.config.recording import plain
from sgfn.config.registry import called_as, imported, of_kind
from sgfn.noise.files import read_confusion, read_rates
from sgfn.noise.kinds import HiddenRate, Noise, UniformSlip
from sgfn.noise.registry import NOISES, OBSERVED


def make_noise(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """The noise of a task with that alphabet (None where actions have no letters) and so many positions."""
    config = plain(config)  # what is read here is said by the noise's entry, and is not the task's to say
    entry = NOISES[config.kind]
    if not entry.declared:
        with called_as("noise.kind", config.kind):
            made = OBSERVED.call(entry.name, lambda own: imported(entry.make)(own, alphabet, length), config)
        return of_kind("noise.kind", config.kind, made, Noise)
    if config.file is None and entry.needs("file") and not entry.has_level:
        raise ValueError(f"noise.kind {config.kind!r} reads a table and noise.file is not given: name one")
    if config.file is not None and not entry.needs("file"):
        choices = " or ".join(name for name in NOISES if NOISES[name].needs("file"))
        raise ValueError(f"noise.file is given and noise.kind is {config.kind!r}: choose {choices}")
    with called_as("noise.kind", config.kind):
        return of_kind("noise.kind", config.kind, imported(entry.make)(config, alphabet, length), Noise)


def uniform(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """Uniform slip of the configured rate."""
    return UniformSlip(alpha=config.alpha, stop=config.stop)


def hidden(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """Uniform slip whose rate is drawn for each trajectory."""
    return HiddenRate(mean=config.alpha, concentration=config.concentration, stop=config.stop)


def confusion(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """A confusion matrix, read from its file."""
    if alphabet is None:
        raise ValueError("noise.kind 'confusion' needs letters and this task has none: use uniform, position or hidden")
    assert config.file is not None
    return read_confusion(config.file, alphabet, config.stop)


def position(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """A slip rate for each position, read from its file."""
    assert config.file is not None
    return read_rates(config.file, length, config.stop)
