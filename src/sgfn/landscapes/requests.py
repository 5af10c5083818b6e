"""Requests for scores: strings are handed to workers in pieces, and their scores are taken when they are needed."""

import pickle
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from sgfn.config.processes import HIRE, Make, Pool, ProcessWorker, cut, itself
from sgfn.config.user_code import brief

if TYPE_CHECKING:
    from sgfn.landscapes.function import Answers, FunctionLandscape


class Piece:
    """Strings that one worker scores in one call; several requests may wait for the same piece."""

    def __init__(self, future: "Future[Answers]") -> None:
        self.future = future
        self.scores: dict[str, float] | None = None


class Request:
    """Scores that were asked for: some known when they were, the others in pieces on their way."""

    def __init__(self, owner: "Requests", known: dict[str, float], pieces: Iterable[Piece]) -> None:
        self.owner, self.known, self.pieces = owner, known, list(pieces)

    @property
    def futures(self) -> "list[Future[Answers]]":
        """What is still waited for."""
        return [piece.future for piece in self.pieces if not piece.future.done()]

    @property
    def ready(self) -> bool:
        """Whether all has arrived, or has failed."""
        return not self.futures

    def take(self) -> dict[str, float]:
        """Scores by string, waited for; raises what the function raised."""
        for piece in self.pieces:
            self.known |= self.owner.settle(piece)
        self.pieces = []
        return self.known


class Requests:
    """The workers of a landscape, and the strings that they are scoring: one that is on its way is not asked again."""

    def __init__(self, landscape: "FunctionLandscape") -> None:
        self.landscape, self.count = weakref.ref(landscape), landscape.workers
        self.flying: dict[str, Piece] = {}
        self.pool: Pool | None = None
        self.scored, self.began, self._replaced = 0, 0.0, 0

    @property
    def replaced(self) -> int:
        """Workers that were lost so far."""
        return self._replaced + (0 if self.pool is None else self.pool.replaced)

    def request(self, texts: list[str]) -> Request:
        """Ask for the scores of distinct strings; those that are neither known nor on their way go to the workers."""
        landscape = self._owner()
        known = {text: landscape.known[text] for text in texts if text in landscape.known}
        flying = {id(piece): piece for text in texts if (piece := self.flying.get(text)) is not None}
        unseen = [text for text in texts if text not in known and text not in self.flying]
        pieces = [self._sent(landscape, part) for part in cut(unseen, self.count)] if unseen else []
        return Request(self, known, [*flying.values(), *pieces])

    def _sent(self, landscape: "FunctionLandscape", texts: list[str]) -> Piece:
        if not self.began:
            self.began = time.monotonic()
        call = landscape.call
        piece = Piece(self._started(landscape).submit(lambda ask: call(texts, ask)))
        self.flying.update(dict.fromkeys(texts, piece))
        return piece

    def settle(self, piece: Piece) -> dict[str, float]:
        """Wait for a piece and remember its scores, once."""
        if piece.scores is None:
            try:
                found = piece.future.result()
            finally:
                self.flying = {text: one for text, one in self.flying.items() if one is not piece}
            piece.scores = self._owner().remember(found)
            self.scored += len(found.scores)
        return piece.scores

    def live(self) -> dict[str, float]:
        """Scores per second since the first request, and strings that are waited for."""
        seconds = time.monotonic() - self.began
        return {"scores_per_second": self.scored / seconds if self.scored else 0.0, "waiting": len(self.flying)}

    def close(self) -> None:
        """End the workers; a later request starts new ones."""
        if self.pool is not None:
            self.pool.close()
            self._replaced += self.pool.replaced
            self.pool = None
        self.flying = {}

    def _owner(self) -> "FunctionLandscape":
        landscape = self.landscape()
        assert landscape is not None
        return landscape

    def _started(self, landscape: "FunctionLandscape") -> Pool:
        if self.pool is None:
            hire = partial(HIRE.get() or ProcessWorker, self._maker(landscape))
            self.pool = Pool(hire, self.count, retries=landscape.retries, timeout=landscape.timeout)
            weakref.finalize(landscape, self.pool.close)
        return self.pool

    def _maker(self, landscape: "FunctionLandscape") -> Make:
        """What makes the function in a worker; raises where it cannot be sent there."""
        if HIRE.get() is not None:  # they look after that themselves
            return partial(itself, landscape.function)
        make = landscape.made_by or partial(itself, landscape.function)
        try:
            pickle.dumps(make)
        except Exception as error:  # whatever an object of the user's own does when it is pickled
            fix = "define it with def at the top level of a module, or set workers to 1"
            raise ValueError(f"{landscape.name} cannot be sent to other processes ({brief(error)}): {fix}") from None
        return make
