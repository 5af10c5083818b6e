"""The parser of command lines without what it does anew for every line of a process that reads hundreds of them.

It reads the source of every class of settings again for each line, and where pytest is loaded it makes a tenth of what
it remembers anew, to test itself. Neither changes what it answers.
"""

import functools
from types import SimpleNamespace

from tyro import _docstrings, _resolver, _unsafe_cache

KEPT = (
    (_docstrings, "get_class_tokenization_with_field"),
    (_docstrings, "get_callable_description"),
    (_resolver, "resolved_fields"),
)
"""Functions of a class alone, which is the same from line to line."""


def install() -> None:
    """Let the parser remember the sources of classes, and not test itself."""
    _unsafe_cache.sys = SimpleNamespace(modules={})  # pyright: ignore[reportAttributeAccessIssue, reportPrivateImportUsage]
    for module, name in KEPT:
        kept = getattr(module, name)
        setattr(module, name, functools.cache(getattr(kept, "__wrapped__", kept)))
