"""Landscapes from any Python function on a list of strings, and functions found by name, `module:function`."""

import difflib
import importlib
import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape

CACHE = 1_000_000
"""Most strings whose scores are remembered: about 300 MB at length 30."""


class FunctionLandscape(Landscape):
    """Scores given by a function on strings, which is called once per batch, on distinct strings not in the cache.

    >>> landscape = FunctionLandscape(lambda texts: [t.count("A") for t in texts], letters("AC"), 2.0, 2.0)
    >>> landscape.scores(torch.tensor([[0, 1], [0, 0], [0, 2]])).tolist()  # AC, AA, A
    [1.0, 2.0, 1.0]
    """

    on_host = True

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        decode: Callable[[Int[Tensor, "N O"]], list[str]],
        maximum: float | None,
        mode_level: float,
        *,
        name: str | None = None,
        cache: int = CACHE,
    ) -> None:
        self.function, self.decode, self.mode_level = function, decode, mode_level
        self.maximum = math.inf if maximum is None else maximum  # unknown: the one bound that always holds
        self.name, self.cache = name or function_label(function), cache
        self.known: OrderedDict[str, float] = OrderedDict()  # least recently used first

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object; each distinct object is scored once."""
        rows, place = torch.unique(objects.reshape(-1, objects.shape[-1]).cpu(), dim=0, return_inverse=True)
        answers = torch.tensor(self._look_up(self.decode(rows)), dtype=torch.float32)
        return answers[place].reshape(objects.shape[:-1]).to(objects.device)

    def _look_up(self, texts: list[str]) -> list[float]:
        """Scores of strings, from the cache where it has them, else from the function."""
        unseen = [text for text in dict.fromkeys(texts) if text not in self.known]
        found = dict(zip(unseen, self._call_function(unseen).tolist(), strict=True)) if unseen else {}
        # Read before remembering: a batch may hold more strings than the cache.
        answers = [found[text] if text in found else self.known[text] for text in texts]
        for text, score in zip(texts, answers, strict=True):
            self.known[text] = score
            self.known.move_to_end(text)
        while len(self.known) > self.cache:
            self.known.popitem(last=False)
        return answers

    def _call_function(self, texts: list[str]) -> Float64[np.ndarray, " N"]:
        """Call the function and check its answer; an exception is raised again with the string that caused it."""
        try:
            answer = self.function(list(texts))
        except Exception as error:
            culprit, reason = first_failure(self.function, texts, error)
            why = " ".join(f"{type(reason).__name__}: {reason}".split())
            raise ValueError(f"{self.name} failed on {culprit} ({why}); it must score every string") from reason
        return checked(answer, texts, self.name)


def checked(answer: Any, texts: list[str], name: str) -> Float64[np.ndarray, " N"]:
    """The answer as an array, or a ValueError: one finite score of zero or above is needed for each string."""
    count = len(texts)
    try:
        values = np.asarray(answer.detach().cpu() if isinstance(answer, Tensor) else answer, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None or values.ndim != 1:
        refuse_words(answer, texts, name)
        raise ValueError(f"{name} must return a list of floats, one per string, got {type(answer).__name__}")
    if len(values) != count:
        raise ValueError(f"{name} gave {len(values)} scores for {count} strings (first {texts[0]!r}); return one each")
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32)) | (values < 0)
    if wrong.any():
        first = int(wrong.argmax())
        fix = "return max(0.0, score) or shift the scores" if values[first] < 0 else "scores must be finite in float32"
        raise ValueError(f"{name} gave {texts[first]!r} the score {values[first]:g}, must be 0 or above: {fix}")
    return values


def refuse_words(answer: Any, texts: list[str], name: str) -> None:
    """Name the first string whose score is no number, where there is one answer for each."""
    if not hasattr(answer, "__len__") or isinstance(answer, str | dict) or len(answer) != len(texts):
        return
    for text, value in zip(texts, answer, strict=True):
        try:
            float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{name} gave {text!r} the score {value!r}, must be a number") from None


def first_failure(function: Callable[[list[str]], Any], texts: list[str], error: Exception) -> tuple[str, Exception]:
    """A string on which the function fails, and its exception, by bisection.

    Where only several strings together fail, the number of strings is named instead.
    """
    if len(texts) == 1:
        return repr(texts[0]), error
    for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
        try:
            function(list(part))
        except Exception as smaller:
            return first_failure(function, part, smaller)
    return f"{len(texts)} strings together, beginning with {texts[0]!r}", error


def letters(alphabet: str) -> Callable[[Int[Tensor, "N O"]], list[str]]:
    """Decoder of token rows to strings; the blank, token V, is left out."""
    symbols = [*alphabet, ""]
    return lambda rows: ["".join(symbols[i] for i in row) for row in rows.tolist()]


# Functions by name


def function_label(function: Callable[..., Any]) -> str:
    """Name of a function for messages: `module:qualified.name`."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}:{name}"


def importable_name(function: Callable[..., Any]) -> str:
    """The `module:function` under which a later process finds the function again; raises where none does.

    >>> importable_name(function_label)
    'sgfn.landscapes.function:function_label'
    """
    name, home = function_label(function), getattr(function, "__module__", None)
    if "<" in name or not hasattr(function, "__qualname__"):
        raise ValueError(f"{name} cannot be found again by name: define it with def at the top level of a module")
    if home == "__main__":
        raise ValueError(f"{name} is part of the script that runs: move it to a module of its own and import it")
    found: Any = sys.modules.get(home or "")
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not function and found != function:  # a bound method is a new object each time
        raise ValueError(
            f"{name} means something else by now: define the function once, at the top level of its module"
        )
    return name


def load_function(name: str) -> Callable[[list[str]], Any]:
    """The function that `module:function` names; modules in the current folder are found too."""
    home, colon, path = name.partition(":")
    if not colon or not all(part.isidentifier() for part in f"{home}.{path}".split(".")):
        raise ValueError(
            f"function {name!r}: must be module:function, such as scores:affinity for affinity in scores.py"
        )
    found: Any = _import(home, name)
    for part in path.split("."):
        found = _attribute(found, part, name)
    if not callable(found):
        raise ValueError(f"function {name!r}: is a {type(found).__name__}, not a function from strings to scores")
    return found


def _import(home: str, name: str) -> ModuleType:
    importlib.invalidate_caches()  # a module may be younger than the folder's listing
    try:
        with _current_folder_first():
            return importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name and f"{home}.".startswith(f"{error.name}."):
            where = f"no module {error.name!r} here or installed; run from the folder that holds {error.name}.py"
            raise ValueError(f"function {name!r}: {where}") from None
        raise ValueError(f"function {name!r}: {home} needs {error.name!r}, which is not installed") from error
    except SyntaxError as error:
        place = f"{error.filename}, line {error.lineno}"
        raise ValueError(f"function {name!r}: {place}: {error.msg}") from error
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"function {name!r}: importing {home} failed ({why})") from error


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """Let imports look in the current folder first, as `python -m` does."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _attribute(owner: Any, part: str, name: str) -> Any:
    if hasattr(owner, part):
        return getattr(owner, part)
    public = [known for known in dir(owner) if not known.startswith("_")]
    near = difflib.get_close_matches(part, public, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(public[:8]) or 'nothing'}"
    where = getattr(owner, "__file__", None) or getattr(owner, "__name__", owner)
    raise ValueError(f"function {name!r}: no {part} in {where}; {hint}")
