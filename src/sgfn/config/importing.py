"""Things by the name `module:name`: finding them, and the name under which a later process finds one again."""

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sgfn.config.checks import nearest
from sgfn.config.user_code import IN_COMMAND, NAMED, brief, in_user_code, libraries, note_users


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
    """What `module:name` names; `what` says in messages what is looked for.

    The module is looked for among installed packages, and then in the current folder.
    """
    home, colon, path = name.partition(":")
    if home.endswith(".py"):
        raise ValueError(
            f"{what} {name!r}: name the module without .py, as {home[:-3].replace('/', '.')}:{path.removesuffix('()')}"
        )
    if not colon or not all(part.isidentifier() for part in f"{home}.{path}".split(".")):
        raise ValueError(f"{what} {name!r}: must be module:{what}, such as scores:affinity for affinity in scores.py")
    found: Any = _import(home, f"{what} {name!r}")
    for part in path.split("."):
        found = _attribute(found, part, f"{what} {name!r}")
    return found


def _import(home: str, who: str) -> ModuleType:
    importlib.invalidate_caches()  # a module may be younger than the folder's listing
    before = set(sys.modules)
    try:
        with contextlib.nullcontext() if _is_installed(home) else _current_folder_last():
            found = importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name and f"{home}.".startswith(f"{error.name}."):
            where = f"no module {error.name!r} here or installed; run from the folder that holds {error.name}.py"
            raise ValueError(f"{who}: {where}") from None
        raise ValueError(f"{who}: {home} needs {error.name!r}, which is not installed") from error
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise ValueError(f"{who}: {place}: {error.msg}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may call sys.exit
        raise ValueError(f"{who}: importing {home} failed ({brief(error)}){in_user_code(error)}") from error
    if not home.startswith("sgfn."):
        NAMED.update([file] if (file := getattr(found, "__file__", None)) else [])  # what is built in has none
        note_users(sys.modules.get(name) for name in set(sys.modules) - before)
    return found


def _is_installed(home: str) -> bool:
    """Whether a module, or the package that holds it, lies outside of the current folder; nothing is imported."""
    root = home.partition(".")[0]
    spec = None if root in sys.modules else importlib.util.find_spec(root)
    file = getattr(sys.modules.get(root), "__file__", None) if spec is None else spec.origin
    return file is not None and not file.startswith(f"{Path.cwd()}{os.sep}")


@contextmanager
def _current_folder_last() -> Iterator[None]:
    """Let imports look in the current folder after all others, so that no file there passes for an installed package.

    It stays on the path of a command, as a function may import its neighbours when it is called.
    """
    folder = str(Path.cwd())
    sys.path.append(folder)
    try:
        yield
    finally:
        if not IN_COMMAND.get():
            sys.path.reverse()
            sys.path.remove(folder)
            sys.path.reverse()


def _own(owner: Any, name: str) -> bool:
    """Whether something was made where it was found, and not imported there from elsewhere."""
    thing = getattr(owner, name)
    home = getattr(thing, "__module__", None)
    return not isinstance(owner, ModuleType) or not (
        isinstance(thing, ModuleType) or home not in (None, owner.__name__)
    )


def _attribute(owner: Any, part: str, who: str) -> Any:
    if hasattr(owner, part):
        return getattr(owner, part)
    public = [known for known in dir(owner) if not known.startswith("_") and _own(owner, known)]
    near = nearest(part, public)
    hint = f"did you mean {near}?" if near else f"it has {', '.join(public[:8]) or 'nothing'}"
    where = getattr(owner, "__file__", None) or getattr(owner, "__name__", owner)
    if getattr(owner, "__name__", "") == "__main__":
        hint = "it was part of the script that ran: move it to a module of its own and name that"
    if (Path.cwd() / f"{(name := getattr(owner, '__name__', ''))}.py").is_file() and str(where).startswith(libraries()):
        hint = f"an installed module is called so too, and goes before {name}.py here: rename that"
    raise ValueError(f"{who}: no {part} in {where}; {hint}")
