"""Things by the name `module:name`: finding them, and the name under which a later process finds one again."""

import difflib
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


def function_label(thing: Callable[..., Any]) -> str:
    """What to call a function or class in a message."""
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    return f"{getattr(thing, '__module__', None) or type(thing).__module__}:{name}"


def importable_name(thing: Callable[..., Any]) -> str:
    """The `module:name` under which a later process finds a function or class again.

    >>> importable_name(function_label)
    'sgfn.config.importing:function_label'
    """
    name, home = function_label(thing), getattr(thing, "__module__", None)
    if "<" in name or not hasattr(thing, "__qualname__"):
        raise ValueError(f"{name} cannot be found again by name: define it with def at the top level of a module")
    if home == "__main__":
        raise ValueError(f"{name} is part of the script that runs: move it to a module of its own and import it")
    found: Any = sys.modules.get(home or "")
    for part in thing.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not thing and found != thing:  # a bound method is a new object each time
        raise ValueError(
            f"{name} means something else by now: define the function once, at the top level of its module"
        )
    return name


def find(name: str, what: str) -> Any:
    """What `module:name` names, looked for in the current folder too; `what` says in messages what is looked for."""
    home, colon, path = name.partition(":")
    if not colon or not all(part.isidentifier() for part in f"{home}.{path}".split(".")):
        raise ValueError(f"{what} {name!r}: must be module:{what}, such as scores:affinity for affinity in scores.py")
    found: Any = _import(home, f"{what} {name!r}")
    for part in path.split("."):
        found = _attribute(found, part, f"{what} {name!r}")
    return found


def _import(home: str, who: str) -> ModuleType:
    importlib.invalidate_caches()  # a module may be younger than the folder's listing
    try:
        with _current_folder_first():
            return importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name and f"{home}.".startswith(f"{error.name}."):
            where = f"no module {error.name!r} here or installed; run from the folder that holds {error.name}.py"
            raise ValueError(f"{who}: {where}") from None
        raise ValueError(f"{who}: {home} needs {error.name!r}, which is not installed") from error
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise ValueError(f"{who}: {place}: {error.msg}") from error
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{who}: importing {home} failed ({why})") from error


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Let imports look in the current folder first, as `python -m` does."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _attribute(owner: Any, part: str, who: str) -> Any:
    if hasattr(owner, part):
        return getattr(owner, part)
    public = [known for known in dir(owner) if not known.startswith("_")]
    near = difflib.get_close_matches(part, public, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(public[:8]) or 'nothing'}"
    where = getattr(owner, "__file__", None) or getattr(owner, "__name__", owner)
    if getattr(owner, "__name__", "") == "__main__":
        hint = "it was part of the script that ran: move it to a module of its own and name that"
    raise ValueError(f"{who}: no {part} in {where}; {hint}")
