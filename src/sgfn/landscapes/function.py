"""Landscapes from any Python function on a list of strings, and functions found by name, `module:function`."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config.checks import quoted
from sgfn.config.importing import find, function_label
from sgfn.config.processes import HIRE, Make, TookTooLong, WorkerLost
from sgfn.config.tasks import OnError
from sgfn.config.user_code import brief, in_user_code
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.function_files import LOG, SCORES, append_scores, log_failure, read_scores
from sgfn.landscapes.requests import Request, Requests

CACHE = 1_000_000
"""Most strings whose scores are remembered: about 300 MB at length 30."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Scores of some strings by a function, and what it took to get them."""

    scores: dict[str, float]
    failed: frozenset[str] = frozenset()
    """Strings that were skipped with score 0, and may be asked again."""
    repeated: int = 0
    """Calls that were repeated."""


class FunctionLandscape(Landscape):
    """Scores given by a function on strings, which is called once per batch, on distinct strings not in the cache.

    With several `workers` it is called in as many processes, each on a piece of the batch, and `request` asks for
    scores that are taken later; a call that takes longer than `timeout` seconds counts as failed (0 is any time).
    There the function is what `made_by` makes; by default it is sent, so it must be found by import.

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
        workers: int = 1,
        timeout: float = 0.0,
        made_by: Make | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers must be 1 or more, got {workers}")
        self.function, self.decode, self.mode_level = function, decode, mode_level
        self.on_error, self.retries, self.keep_scores = on_error, retries, keep_scores
        self.workers, self.timeout, self.made_by = workers, timeout, made_by
        self.folder: Path | None = None
        self.repeated, self.skipped = 0, 0
        self.waited, self.asked = 0.0, 0  # seconds that calls without workers took, and strings that they scored
        self.maximum = math.inf if maximum is None else maximum  # unknown: the one bound that always holds
        self.name, self.cache = name or function_label(function), cache
        self.known: OrderedDict[str, float] = OrderedDict()  # least recently used first
        self.given: Mapping[str, float] = {}  # scores of a request that has arrived, while they are read
        self.remote = Requests(self) if workers > 1 or timeout or HIRE.get() is not None else None

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object; each distinct object is scored once."""
        texts = self.decode(objects.reshape(-1, objects.shape[-1]).cpu())
        answers = torch.tensor(self._look_up(texts), dtype=torch.float32)
        return answers.reshape(objects.shape[:-1]).to(objects.device)

    def _look_up(self, texts: list[str]) -> list[float]:
        """Scores of strings, from the cache where it has them, else from the function."""
        unseen = [text for text in dict.fromkeys(texts) if text not in self.given and text not in self.known]
        found = {} if not unseen else self._ask(unseen)
        # Read before remembering: a batch may hold more strings than the cache.
        answers = [self._score(text, found) for text in texts]
        for text in texts:
            if text in self.known:
                self.known.move_to_end(text)
        self._forget()
        return answers

    def _score(self, text: str, found: Mapping[str, float]) -> float:
        return found[text] if text in found else self.given[text] if text in self.given else self.known[text]

    def _ask(self, texts: list[str]) -> dict[str, float]:
        """Scores of strings that are not known, which are waited for."""
        if self.remote is not None:
            return self.remote.request(texts).take()
        began = time.monotonic()
        found = self.call(texts)
        self.waited += time.monotonic() - began
        self.asked += len(texts)
        return self.remember(found)

    def remember(self, found: Answers) -> dict[str, float]:
        """Keep what a call has found in the cache, and on disk where that was asked for; returns its scores."""
        self.repeated += found.repeated
        self.skipped += len(found.failed)
        kept = {text: score for text, score in found.scores.items() if text not in found.failed}
        if self.keep_scores and self.folder is not None:
            append_scores(self.folder / SCORES, self.name, kept)
        self.known.update(kept)
        return found.scores

    def _forget(self) -> None:
        while len(self.known) > self.cache:
            self.known.popitem(last=False)

    def attach(self, folder: Path, *, resumed: bool) -> None:
        """Keep tracebacks, and scores where that was asked for, in a run folder; a resumed run reads its scores."""
        self.folder = folder
        if self.keep_scores and resumed:
            self.known.update(read_scores(folder / SCORES, self.name, self.cache))

    # scores that are taken later

    @property
    def scores_ahead(self) -> bool:
        """Whether there are workers, which score while something else is done."""
        return self.remote is not None

    def request(self, objects: Int[Tensor, "N O"]) -> Request:
        """Ask the workers for scores of objects, each distinct one once; `taken` then waits for them."""
        assert self.remote is not None
        return self.remote.request(list(dict.fromkeys(self.decode(objects.cpu()))))

    @contextmanager
    def taken(self, request: Request) -> Iterator[None]:
        """Wait for a request, and let `scores` read what has arrived as long as the block lasts."""
        self.given = request.take()
        try:
            yield
        finally:
            self.given = {}
            self._forget()

    def live(self) -> dict[str, float]:
        """Scores per second by the workers, and how many are waited for."""
        return {} if self.remote is None else self.remote.live()

    def close(self) -> None:
        """End the worker processes; later requests start new ones."""
        if self.remote is not None:
            self.remote.close()

    # calls of the function

    def call(self, texts: list[str], function: Callable[[list[str]], Any] | None = None) -> Answers:
        """Scores by the function; a call that fails is repeated, and then stops the run or is skipped, as asked."""
        function, repeated = self.function if function is None else function, 0
        attempts = self.retries + 1 if self.on_error != "stop" else 1
        for attempt in range(1, attempts + 1):
            try:
                return Answers(scores=self._call_once(texts, function), repeated=repeated)
            except ValueError as error:
                self._log(error, f"attempt {attempt}")
                if attempt == attempts and self.on_error != "skip":
                    self._note_log(error)
                    raise
                repeated += attempt < attempts
        scores, failed = self._scored_singly(texts, function)
        return Answers(scores=scores, failed=failed, repeated=repeated)

    def trouble(self) -> str:
        """How many calls were repeated and objects skipped, and where it is told why; empty where none was."""
        lost = 0 if self.remote is None else self.remote.replaced
        told = [f"{lost} workers were lost and replaced while they called {self.name}"] if lost else []
        if self.repeated or self.skipped:
            counts = f"{self.repeated} calls were repeated, {self.skipped} objects skipped with score 0"
            said = f"{self.name} failed: {counts}"
            told.append(said if self.folder is None else f"{said}; the tracebacks are in {self.folder / LOG}")
        return "; ".join(told)

    def _note_log(self, error: ValueError) -> None:
        if self.folder is not None:
            error.add_note(f"the traceback is in {self.folder / LOG}")

    def _log(self, error: BaseException, what: str) -> None:
        if self.folder is not None:
            log_failure(self.folder / LOG, f"{what}: {error}", error.__cause__ or error)

    def _scored_singly(
        self, texts: list[str], function: Callable[[list[str]], Any]
    ) -> tuple[dict[str, float], frozenset[str]]:
        """Scores of halves and their halves; a string that fails alone gets zero, and is among the failed."""
        if len(texts) == 1:
            return {texts[0]: 0.0}, frozenset(texts)
        scores, failed = dict[str, float](), frozenset[str]()
        for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
            try:
                scores |= self._call_once(part, function)
            except ValueError:
                more, lost = self._scored_singly(part, function)
                scores, failed = scores | more, failed | lost
        return scores, failed

    def _call_once(self, texts: list[str], function: Callable[[list[str]], Any]) -> dict[str, float]:
        """Call the function and check its answer; an exception is raised again with the string that caused it.

        Gradients are allowed inside, as a score may be made of them.
        """
        try:
            with torch.inference_mode(False), torch.enable_grad():
                answer = function(list(texts))
        except KeyboardInterrupt:
            raise
        except (WorkerLost, TookTooLong) as error:
            raise ValueError(f"{self.name}: {self._lost(error, texts)}") from error
        except BaseException as error:  # it may call sys.exit
            culprit, reason = first_failure(function, texts, error)
            why = f"({brief(reason)}){in_user_code(reason)}"
            raise ValueError(f"{self.name} failed on {culprit} {why}; it must score every string") from reason
        return dict(zip(texts, checked(answer, texts, self.name).tolist(), strict=True))

    def _lost(self, error: BaseException, texts: list[str]) -> str:
        """What to say of a worker that gave no answer."""
        which = f"{len(texts)} strings, beginning with {texts[0]!r}" if len(texts) > 1 else repr(texts[0])
        if isinstance(error, TookTooLong):
            return f"scoring {which} took longer than {self.timeout:g} s: raise callable.timeout, or use more workers"
        fix = "guard a script with if __name__ == '__main__', give workers more memory, or set workers to 1"
        return f"a worker {error} while it scored {which}: {fix}"


def checked(answer: Any, texts: list[str], name: str) -> Float64[np.ndarray, " N"]:
    """The answer as an array, or a ValueError: one finite score of zero or above is needed for each string."""
    count = len(texts)
    try:
        values = np.asarray(answer.detach().cpu() if isinstance(answer, Tensor) else answer, dtype=np.float64)
    except Exception:  # whatever an object of the user's own does when it is asked for numbers
        values = None
    if values is None or values.ndim != 1:
        refuse_words(answer, texts, name)
        shape = f" of shape {list(values.shape)}" if values is not None and values.ndim > 1 else ""
        raise ValueError(f"{name} must return a list of floats, one per string, got {type(answer).__name__}{shape}")
    if len(values) != count:
        raise ValueError(f"{name} gave {len(values)} scores for {count} strings (first {texts[0]!r}); return one each")
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32)) | (values < 0)
    if wrong.any():
        refuse_words(answer, texts, name)  # None has become nan
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
    """Decoder of token rows to strings; the blank, token V, is left out.

    >>> letters("AC")(torch.tensor([[0, 1, 1], [2, 0, 2]]))
    ['ACC', 'A']
    """
    symbols = np.array([*alphabet, "\0"])

    def decode(rows: Int[Tensor, "N O"]) -> list[str]:
        if 0 in rows.shape:
            return [""] * len(rows)
        texts = np.ascontiguousarray(symbols[rows.numpy()]).view(f"U{rows.shape[1]}")[:, 0].tolist()
        return [text.replace("\0", "") for text in texts] if bool((rows == len(alphabet)).any()) else texts

    return decode


# Functions by name


def load_function(name: str) -> Callable[[list[str]], Any]:
    """The function that `module:function` names, looked for in the current folder too."""
    found = find(name, "function")
    if not callable(found):
        raise ValueError(f"function {name!r}: is a {type(found).__name__}, not a function from strings to scores")
    return found
