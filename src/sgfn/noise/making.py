"""The configured noise, made for a task's letters and positions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from sgfn.config import NoiseConfig
from sgfn.config.recording import plain
from sgfn.config.registry import called_as, imported, of_kind
from sgfn.noise.files import read_confusion, read_rates
from sgfn.noise.indel import Indel, scaled
from sgfn.noise.indel_files import read_indel
from sgfn.noise.kinds import HiddenRate, Noise, UniformSlip
from sgfn.noise.presets import channel_preset, substitution_rows
from sgfn.noise.registry import NOISES, OBSERVED


def make_noise(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """The noise of a task with that alphabet (None where actions have no letters) and so many positions."""
    config = plain(config)  # what is read here is said by the noise's entry, and is not the task's to say
    entry = NOISES[config.kind]
    if not entry.declared:
        with called_as("noise.kind", config.kind):
            made = OBSERVED.call(entry.name, lambda own: imported(entry.make)(own, alphabet, length), config)
        return of_kind("noise.kind", config.kind, made, Noise)
    for name in ("preset", "substitution", "deletion", "insertion", "flank"):
        if getattr(config, name) and not entry.needs(name):
            raise ValueError(f"noise.{name} is given and noise.kind is {config.kind!r}: choose --noise.kind indel")
    if config.file is None and entry.needs("file") and not (entry.has_level or entry.rates):
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


def indel(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """Insertions and deletions beside substitutions: of a preset, of a file, or at the configured rates."""
    if alphabet is None:
        raise ValueError("noise.kind 'indel' needs letters and this task has none: use uniform, position or hidden")
    more = {"flank": _letters(config.flank or "", alphabet), "spare": config.spare}
    if config.preset is not None and config.file is not None:
        raise ValueError("noise.preset and noise.file are both given: leave one of them out")
    rates = {name: getattr(config, name) for name in ("substitution", "deletion", "insertion")}
    source = "noise.file" if config.preset is None else "noise.preset"
    if (config.preset is not None or config.file is not None) and (given := [name for name in rates if rates[name]]):
        raise ValueError(f"{source} has its own rates, and noise.{given[0]} is given too: leave one of them out")
    if config.preset is not None:
        return preset_noise(config.preset, alphabet, scale=config.scale, **more)
    if config.file is not None:
        return read_indel(config.file, alphabet, length, scale=config.scale, **more)
    if rates["deletion"] + rates["insertion"] >= 1.0:
        raise ValueError("noise.deletion and noise.insertion must stay below 1 together: lower one of them")
    return Indel.uniform(len(alphabet), **rates, **more)


def preset_noise(
    name: str, alphabet: str = "ACGT", *, scale: float = 1.0, flank: tuple[int, ...] = (), spare: int = 2
) -> Indel:
    """A channel by its name, for the letters of DNA or RNA, with its rates multiplied by a number.

    >>> noise = preset_noise("storage-erlich")
    >>> round(float(noise.deletion[0]), 4), round(float(noise.substitution[0, 1]), 4)
    (0.002, 0.001)
    """
    preset = channel_preset(name)
    rows, vocab = substitution_rows(preset, alphabet), len(alphabet)
    law = torch.tensor([[rows[a].get(k, 0.0) for k in alphabet] for a in alphabet], dtype=torch.float64)
    rates = {"deletion": preset.deletion, "insertion": preset.insertion}
    even = Indel.uniform(vocab, **rates, flank=flank, spare=spare)
    return scaled(replace(even, substitution=law + torch.diag(1.0 - law.sum(-1))), scale)


def changed_indel(noise: Indel, alphabet: str, changes: Mapping[str, Any]) -> Indel | None:
    """An indel noise with another flank, other spare cycles or scaled rates; None where more is to change."""
    if not changes.keys() <= {"flank", "spare", "scale"}:
        return None
    flank = _letters(changes["flank"] or "", alphabet) if "flank" in changes else noise.flank
    return scaled(replace(noise, flank=flank, spare=changes.get("spare", noise.spare)), changes.get("scale", 1.0))


def _letters(text: str, alphabet: str) -> tuple[int, ...]:
    """Numbers of the letters of a flank."""
    text = text if set(text) <= set(alphabet) else text.upper()
    if wrong := sorted({letter for letter in text if letter not in alphabet}):
        raise ValueError(f"noise.flank holds {wrong[0]!r}, which is no letter of the task: choose from {alphabet}")
    return tuple(alphabet.index(letter) for letter in text)
