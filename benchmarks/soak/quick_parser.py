"""The parser of command lines without what it does anew for every line of a process that reads hundreds of them.

It reads the source of every class of settings again for each line, makes all flags of a command from it, and where
pytest is loaded it makes a tenth of what it remembers anew, to test itself. None of this changes what it answers.
"""

import functools
from types import SimpleNamespace
from typing import Any

from tyro import _docstrings, _parsers, _resolver, _unsafe_cache

from sgfn.cli import commands

KEPT = (
    (_docstrings, "get_class_tokenization_with_field"),
    (_docstrings, "get_callable_description"),
    (_resolver, "resolved_fields"),
)
"""Functions of a class alone, which is the same from line to line."""
MOST = 64
"""Commands whose flags are remembered, each with the defaults of one configuration."""


def install() -> None:
    """Let the parser remember the sources of classes and the flags of commands, and not test itself."""
    _unsafe_cache.sys = SimpleNamespace(modules={})  # pyright: ignore[reportAttributeAccessIssue, reportPrivateImportUsage]
    for module, name in KEPT:
        kept = getattr(module, name)
        setattr(module, name, functools.cache(getattr(kept, "__wrapped__", kept)))
    commands.with_default = functools.lru_cache(MOST)(commands.with_default)
    specification = _parsers.ParserSpecification
    specification.from_callable_or_type = staticmethod(remembering(specification.from_callable_or_type))


def remembering(make: Any) -> Any:
    """A maker of flags that remembers those of whole commands; parts of them have prefixes that are not told here."""
    made = functools.lru_cache(MOST)(lambda kind, **how: make(kind, markers=set(), parent_classes=set(), **how))

    @functools.wraps(make)
    def from_callable_or_type(kind: Any, markers: set, parent_classes: set, **how: Any) -> Any:
        if markers or parent_classes:
            return make(kind, markers=markers, parent_classes=parent_classes, **how)
        return made(kind, **how)

    return from_callable_or_type
