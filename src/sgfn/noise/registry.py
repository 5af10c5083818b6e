"""Noises by name: how each is made from a configuration, what it reads, and how it is called."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from sgfn.config import NoiseConfig
from sgfn.config.reads import Reads, When, above, given, reads
from sgfn.config.recording import Observed
from sgfn.config.registry import Entry, Registry, imported, refuse_arguments

Maker = Callable[[NoiseConfig, str | None, int], Any]
"""A noise from a configuration, the task's letters (None where actions have none) and its number of positions."""


SETTINGS = tuple(part.name for part in fields(NoiseConfig) if part.name != "kind")
OBSERVED = Observed()
"""Settings that maker functions of others were seen to read."""


@dataclass(frozen=True, kw_only=True)
class NoiseEntry(Entry):
    """A kind of noise."""

    make: Maker | str
    """Ours as `module:name`."""
    declared: bool = True
    """Whether what it reads was written down; of a maker function it is what it is seen to read when called."""

    rates: bool = False
    """Whether it can be had from rates alone, without a table."""

    def needs(self, field: str) -> bool:
        """Whether a field of the noise's settings is read."""
        return any(line.covers(f"noise.{field}") for line in self.reads)

    @property
    def has_level(self) -> bool:
        """Whether `noise.alpha` sets how strong it is: `compare` then keeps its levels apart."""
        return self.needs("alpha")

    def words(self, config: NoiseConfig) -> str:
        """The noise in a few words."""
        known = self.declared or OBSERVED.fields(self.name) is not None
        rate = f"{100 * config.alpha:.4g}% noise" if self.has_level and known else "noise"
        return f"{self.title} {rate}" if self.name != "uniform" else rate


def wrap(name: str, found: Any) -> NoiseEntry:
    """The entry of a noise that is not ours: a class whose fields are named as the settings it wants, or a maker."""
    if not (isinstance(found, type) and issubclass(found, imported("sgfn.noise.kinds:Noise"))):
        wanted = "a Noise, or a function (config, letters, positions) that makes one"
        make = refuse_arguments("noise.kind", name, found, wanted, "config", "letters", "positions")
        seen = OBSERVED.fields(name)
        return NoiseEntry(name=name, make=make, reads=_settings(*(SETTINGS if seen is None else seen)), declared=False)
    own = {part.name for part in fields(found)} if is_dataclass(found) else set()
    wanted = [name for name in SETTINGS if name in own]
    wants = f"a class that is made from settings of the noise ({', '.join(SETTINGS)}), or a function that makes one"
    refuse_arguments("noise.kind", name, found, wants, **dict.fromkeys(wanted, ""))

    def build(config: NoiseConfig, alphabet: str | None, length: int) -> Any:
        return found(**{part: getattr(config, part) for part in wanted})

    return NoiseEntry(name=name, make=build, reads=_settings(*wanted))


def _settings(*names: str, **stop: When) -> tuple[Reads, ...]:
    """Those settings of the noise; whether noise acts on stop means something only where there is one."""
    plain = reads(*(f"noise.{name}" for name in names if name != "stop"))
    return (plain, reads("noise.stop", stop=True, **stop)) if "stop" in names else (plain,)


_NOISY = above("noise.alpha", 0)
NOISES: Registry[NoiseEntry] = Registry(
    "noise.kind",
    wrap,
    NoiseEntry(
        name="uniform",
        about="with probability --noise.alpha any letter is written",
        make="sgfn.noise.making:uniform",
        reads=_settings("alpha", "stop", level=_NOISY),
    ),
    NoiseEntry(
        name="confusion",
        about="the law of what is written for each letter, a table",
        make="sgfn.noise.making:confusion",
        reads=_settings("file", "stop"),
    ),
    NoiseEntry(
        name="position",
        about="a rate for each position, a table",
        make="sgfn.noise.making:position",
        reads=_settings("file", "stop"),
    ),
    NoiseEntry(
        name="hidden",
        about="a rate that is drawn for each sequence and not shown",
        make="sgfn.noise.making:hidden",
        reads=_settings("alpha", "concentration", "stop", level=_NOISY),
    ),
    NoiseEntry(
        name="indel",
        about="letters are skipped or written twice too: rates (--noise.deletion ...), a preset or a table",
        make="sgfn.noise.making:indel",
        rates=True,
        reads=(
            reads("noise.flank", "noise.spare", "noise.preset"),
            reads("noise.file", preset=given("noise.preset", False)),
            reads("noise.scale", preset=given("noise.preset")),
            reads("noise.scale", file=given("noise.file")),
            reads(
                *("noise.substitution", "noise.deletion", "noise.insertion"),
                preset=given("noise.preset", False),
                file=given("noise.file", False),
            ),
        ),
    ),
)


def noise_words(config: NoiseConfig) -> str:
    """The configured noise in a few words.

    >>> noise_words(NoiseConfig(alpha=0.1)), noise_words(NoiseConfig(kind="hidden", alpha=0.1))
    ('10% noise', 'hidden 10% noise')
    """
    return NOISES[config.kind].words(config)
