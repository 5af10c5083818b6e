"""Landscapes from any Python function on a list of strings, and functions found by name, `module:function`."""

import math
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config.checks import quoted
from sgfn.config.importing import find, function_label
from sgfn.config.tasks import OnError
from sgfn.config.user_code import brief, in_user_code
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.function_files import LOG, SCORES, append_scores, log_failure, read_scores

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
        on_error: OnError = "stop",
        retries: int = 2,
        keep_scores: bool = False,
    ) -> None:
        self.function, self.decode, self.mode_level = function, decode, mode_level
        self.on_error, self.retries, self.keep_scores = on_error, retries, keep_scores
        self.folder: Path | None = None
        self.repeated, self.skipped = 0, 0
        self.maximum = math.inf if maximum is None else maximum  # unknown: the one bound that always holds
        self.name, self.cache = name or function_label(function), cache
        self.known: OrderedDict[str, float] = OrderedDict()  # least recently used first
        self.failed: set[str] = set()

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object; each distinct object is scored once."""
        rows, place = torch.unique(objects.reshape(-1, objects.shape[-1]).cpu(), dim=0, return_inverse=True)
        answers = torch.tensor(self._look_up(self.decode(rows)), dtype=torch.float32)
        return answers[place].reshape(objects.shape[:-1]).to(objects.device)

    def _look_up(self, texts: list[str]) -> list[float]:
        """Scores of strings, from the cache where it has them, else from the function."""
        unseen = [text for text in dict.fromkeys(texts) if text not in self.known]
        found = dict(zip(unseen, self._call_function(unseen).tolist(), strict=True)) if unseen else {}
        if self.keep_scores and self.folder is not None:
            append_scores(self.folder / SCORES, self.name, {t: s for t, s in found.items() if t not in self.failed})
        # Read before remembering: a batch may hold more strings than the cache.
        answers = [found[text] if text in found else self.known[text] for text in texts]
        for text, score in zip(texts, answers, strict=True):
            if text in self.failed:  # it may be asked again
                continue
            self.known[text] = score
            self.known.move_to_end(text)
        while len(self.known) > self.cache:
            self.known.popitem(last=False)
        return answers

    def attach(self, folder: Path, *, resumed: bool) -> None:
        """Keep tracebacks, and scores where that was asked for, in a run folder; a resumed run reads its scores."""
        self.folder = folder
        if self.keep_scores and resumed:
            self.known.update(read_scores(folder / SCORES, self.name, self.cache))

    def _call_function(self, texts: list[str]) -> Float64[np.ndarray, " N"]:
        """Scores by the function; a call that fails is repeated, and then stops the run or is skipped, as asked."""
        self.failed = set()
        attempts = self.retries + 1 if self.on_error != "stop" else 1
        for attempt in range(1, attempts + 1):
            try:
                return self._call_once(texts)
            except ValueError as error:
                self._log(error, f"attempt {attempt}")
                if attempt == attempts and self.on_error != "skip":
                    self._note_log(error)
                    raise
                self.repeated += attempt < attempts
        return self._scored_singly(texts)

    def trouble(self) -> str:
        """How many calls were repeated and objects skipped, and where it is told why; empty where none was."""
        if not self.repeated and not self.skipped:
            return ""
        said = f"{self.name} failed: {self.repeated} calls were repeated, {self.skipped} objects skipped with score 0"
        return said if self.folder is None else f"{said}; the tracebacks are in {self.folder / LOG}"

    def _note_log(self, error: ValueError) -> None:
        if self.folder is not None:
            error.add_note(f"the traceback is in {self.folder / LOG}")

    def _log(self, error: BaseException, what: str) -> None:
        if self.folder is not None:
            log_failure(self.folder / LOG, f"{what}: {error}", error.__cause__ or error)

    def _scored_singly(self, texts: list[str]) -> Float64[np.ndarray, " N"]:
        """Scores of halves and their halves; a string that fails alone gets zero, and is not remembered."""
        if len(texts) == 1:
            self.failed.add(texts[0])
            self.skipped += 1
            return np.zeros(1)
        parts = []
        for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
            try:
                parts.append(self._call_once(part))
            except ValueError:
                parts.append(self._scored_singly(part))
        return np.concatenate(parts)

    def _call_once(self, texts: list[str]) -> Float64[np.ndarray, " N"]:
        """Call the function and check its answer; an exception is raised again with the string that caused it.

        Gradients are allowed inside, as a score may be made of them.
        """
        try:
            with torch.inference_mode(False), torch.enable_grad():
                answer = self.function(list(texts))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it may call sys.exit
            culprit, reason = first_failure(self.function, texts, error)
            why = f"({brief(reason)}){in_user_code(reason)}"
            raise ValueError(f"{self.name} failed on {culprit} {why}; it must score every string") from reason
        return checked(answer, texts, self.name)


def checked(answer: Any, texts: list[str], name: str) -> Float64[np.ndarray, " N"]:
    """The answer as an array, or a ValueError: one finite score of zero or above is needed for each string."""
    count = len(texts)
    try:
        values = np.asarray(answer.detach().cpu() if isinstance(answer, Tensor) else answer, dtype=np.float64)
    except Exception:  # whatever an object of the user's own does when it is asked for numbers
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
        except Exception:
            raise ValueError(f"{name} gave {text!r} the score {quoted(value)}, must be a number") from None


def first_failure(
    function: Callable[[list[str]], Any], texts: list[str], error: BaseException
) -> tuple[str, BaseException]:
    """A string on which the function fails, and its exception, by bisection.

    Where only several strings together fail, the number of strings is named instead.
    """
    if len(texts) == 1:
        return repr(texts[0]), error
    for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
        try:
            function(list(part))
        except KeyboardInterrupt:
            raise
        except BaseException as smaller:
            return first_failure(function, part, smaller)
    return f"{len(texts)} strings together, beginning with {texts[0]!r}", error


def letters(alphabet: str) -> Callable[[Int[Tensor, "N O"]], list[str]]:
    """Decoder of token rows to strings; the blank, token V, is left out."""
    symbols = [*alphabet, ""]
    return lambda rows: ["".join(symbols[i] for i in row) for row in rows.tolist()]


# Functions by name


def load_function(name: str) -> Callable[[list[str]], Any]:
    """The function that `module:function` names, looked for in the current folder too."""
    found = find(name, "function")
    if not callable(found):
        raise ValueError(f"function {name!r}: is a {type(found).__name__}, not a function from strings to scores")
    return found
