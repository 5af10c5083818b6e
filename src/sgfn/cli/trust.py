"""Flags by which the reader of a run trusts it, or names again the code and the files that it names."""

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg


@dataclass(frozen=True, kw_only=True)
class NamedNoise:
    """Noise of the run, named again."""

    kind: str | None = None
    """`module:Noise`."""
    file: Path | None = None
    """File of the noise, of a run that keeps no copy."""


@dataclass(frozen=True, kw_only=True)
class NamedEncoder:
    """Network of the run, named again."""

    encoder: str | None = None
    """`module:Encoder`."""


@dataclass(frozen=True, kw_only=True)
class NamedFlow:
    """Flow of the `kl` objective, named again."""

    flow: str | None = None
    """`module:function`."""


@dataclass(frozen=True, kw_only=True)
class NamedBase:
    """Base of the `kl-entropy` objective, named again."""

    base: str | None = None
    """`module:function`."""


@dataclass(frozen=True, kw_only=True)
class NamedProxy:
    """Proxy of the run, named again."""

    kind: str | None = None
    """`module:function`."""
    file: Path | None = None
    """File of the proxy, of a run that keeps no copy."""


@dataclass(frozen=True, kw_only=True)
class NamedFunction:
    """Function of the `callable` task, named again."""

    function: str | None = None
    """`module:function`."""


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """File of the run, named again."""

    file: Path | None = None
    """The file itself, of a run that keeps no copy."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """Code and files that the run names, named again by whoever reads it."""

    trust: bool = False
    """Run the code, and open the files, that the run names: only if you trust whoever made it."""
    task: str | None = None
    """Task of the run, where it is `module:builder`: to name code again is to allow it, without --trust."""
    method: str | None = None
    """`module:Learner` of the run, named again."""
    objective: str | None = None
    """`module:function` of the run, named again."""
    form: str | None = None
    """`module:function` of the run, named again."""
    exploration: str | None = None
    """Ways to explore of the run, where `module:Way` is among them, named again as they are."""
    reward: str | None = None
    """`module:function` of a model that was saved from Python, named again."""
    noise: NamedNoise = field(default_factory=NamedNoise)
    net: NamedEncoder = field(default_factory=NamedEncoder)
    kl: NamedFlow = field(default_factory=NamedFlow)
    entropy: NamedBase = field(default_factory=NamedBase)
    callable: NamedFunction = field(default_factory=NamedFunction)
    proxy: NamedProxy = field(default_factory=NamedProxy)
    table: NamedFile = field(default_factory=NamedFile)
    offline: NamedFile = field(default_factory=NamedFile)
    series: NamedFile = field(default_factory=NamedFile)


Trusting = Annotated[Named, arg(name="")]


def trust_of(named: Named) -> bool | dict[str, str]:
    """What is trusted of a run: everything, or what was named again, by field."""
    return True if named.trust else given(named)


def given(named: Any, prefix: str = "") -> dict[str, str]:
    """Flags that were given, with their values as text, those of components too."""
    found: dict[str, str] = {}
    for part in fields(named):
        value = getattr(named, part.name)
        if is_dataclass(value):
            found |= given(value, f"{prefix}{part.name}.")
        elif value is not None and not isinstance(value, bool):
            found[prefix + part.name] = str(value)
    return found
