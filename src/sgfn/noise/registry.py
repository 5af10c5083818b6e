"""Noises by name: how each is made from a configuration, what it reads, and how it is called."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sgfn.config import NoiseConfig
from sgfn.config.reads import Reads, reads
from sgfn.config.registry import Entry, Registry, refuse_uncallable
from sgfn.noise.files import read_confusion, read_rates
from sgfn.noise.kinds import HiddenRate, Noise, UniformSlip

Maker = Callable[[NoiseConfig, str | None, int], Noise]
"""From a configuration, the task's letters (None where actions have none) and its number of positions."""


@dataclass(frozen=True, kw_only=True)
class NoiseEntry(Entry):
    """A kind of noise."""

    make: Maker

    def needs(self, field: str) -> bool:
        """Whether a field of the noise's settings is read."""
        return any(line.covers(f"noise.{field}") for line in self.reads)

    @property
    def has_level(self) -> bool:
        """Whether `noise.alpha` sets how strong it is: `compare` then keeps its levels apart."""
        return self.needs("alpha")

    def words(self, config: NoiseConfig) -> str:
        """The noise in a few words."""
        rate = f"{100 * config.alpha:.4g}% noise" if self.has_level else "noise"
        return f"{self.title} {rate}" if self.name != "uniform" else rate


def _confusion(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    if alphabet is None:
        raise ValueError("noise.kind 'confusion' needs letters and this task has none: use uniform, position or hidden")
    assert config.file is not None
    return read_confusion(config.file, alphabet, config.stop)


def _position(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    assert config.file is not None
    return read_rates(config.file, length, config.stop)


def wrap(name: str, found: Any) -> NoiseEntry:
    """The entry of a noise that is not ours: a class whose fields are named as the settings it wants, or a maker."""
    if not (isinstance(found, type) and issubclass(found, Noise)):
        make = refuse_uncallable("noise.kind", name, found, "a Noise, or a function that makes one")
        return NoiseEntry(name=name, make=make, reads=_settings("alpha", "file", "concentration", "stop"))
    own = {part.name for part in fields(found)} if is_dataclass(found) else set()
    wanted = [part.name for part in fields(NoiseConfig) if part.name in own - {"kind"}]

    def build(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
        return found(**{part: getattr(config, part) for part in wanted})

    return NoiseEntry(name=name, make=build, reads=_settings(*wanted))


def _settings(*names: str) -> tuple[Reads, ...]:
    """Those settings of the noise; whether noise acts on stop means something only where there is one."""
    plain = reads(*(f"noise.{name}" for name in names if name != "stop"))
    return (plain, reads("noise.stop", stop=True)) if "stop" in names else (plain,)


NOISES: Registry[NoiseEntry] = Registry(
    "noise.kind",
    wrap,
    NoiseEntry(
        name="uniform",
        make=lambda config, _, __: UniformSlip(alpha=config.alpha, stop=config.stop),
        reads=_settings("alpha", "stop"),
    ),
    NoiseEntry(name="confusion", make=_confusion, reads=_settings("file", "stop")),
    NoiseEntry(name="position", make=_position, reads=_settings("file", "stop")),
    NoiseEntry(
        name="hidden",
        make=lambda config, _, __: HiddenRate(mean=config.alpha, concentration=config.concentration, stop=config.stop),
        reads=_settings("alpha", "concentration", "stop"),
    ),
)


def make_noise(config: NoiseConfig, alphabet: str | None, length: int) -> Noise:
    """The noise of a task with that alphabet (None where actions have no letters) and so many positions."""
    entry = NOISES[config.kind]
    if config.file is None and entry.needs("file") and not entry.has_level:
        raise ValueError(f"noise.kind {config.kind!r} reads a table and noise.file is not given: name one")
    if config.file is not None and not entry.needs("file"):
        choices = " or ".join(name for name in NOISES if NOISES[name].needs("file"))
        raise ValueError(f"noise.file is given and noise.kind is {config.kind!r}: choose {choices}")
    return entry.make(config, alphabet, length)


def noise_words(config: NoiseConfig) -> str:
    """The configured noise in a few words.

    >>> noise_words(NoiseConfig(alpha=0.1)), noise_words(NoiseConfig(kind="hidden", alpha=0.1))
    ('10% noise', 'hidden 10% noise')
    """
    return NOISES[config.kind].words(config)
