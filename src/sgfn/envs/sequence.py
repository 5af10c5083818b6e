"""Append-only sequences of fixed length, or of variable length with a stop action."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import shorten
from sgfn.envs.base import Enumerable, one_hot
from sgfn.envs.constraints import Constraints
from sgfn.noise import Noise
from sgfn.noise.operators import Identity


class SequenceEnv(Enumerable):
    """Tokens are written left to right; noise replaces tokens, and the stop action only where asked to.

    Codes in a state: 0..V-1 tokens, V not written yet, V+1 stopped here. With `stop`, action V ends the sequence
    (not before `min_length` tokens); a sequence that reaches `length` ends by itself.

    Under `constraints` only tokens are legal after which a sequence that satisfies them can still be finished, and
    stop only where one is. What is intended is masked so, what comes out is not: noise may break a constraint, and
    after that everything is legal, because nothing can be mended (`Task.log_reward` is at its floor there). Without
    noise every rollout ends in a sequence that satisfies them.
    """

    tree = True
    distance = "hamming"
    appends = True
    """Whether every step writes exactly one symbol."""

    def __init__(
        self,
        *,
        length: int,
        alphabet: str,
        noise: Noise,
        stop: bool = False,
        min_length: int = 1,
        constraints: Constraints | None = None,
    ) -> None:
        if not isinstance(noise, Noise):
            rate = "must be a noise object such as sgfn.UniformSlip(alpha=0.1); sgfn.Sequences takes a rate too"
            raise ValueError(f"noise {rate}, got {noise!r}")
        if noise.changes_length and self.appends:
            raise ValueError(f"{noise.summary}: lengths change, which sgfn.envs.IndelEnv is for")
        self.length, self.alphabet, self.noise, self.stop, self.min_length = length, alphabet, noise, stop, min_length
        self.vocab = len(alphabet)
        if self.vocab < 2 or len(set(alphabet)) < self.vocab:
            raise ValueError(f"alphabet must hold two or more different letters, got {alphabet!r}")
        if noise.stop and not stop:
            raise ValueError("noise.stop is for sequences of variable length: this task has no stop action")
        noise.check(self.vocab + int(noise.stop), length)
        self.blank, self.end = self.vocab, self.vocab + 1
        self.outcomes = self.vocab + int(stop)
        self.actions = noise.intentions(self.outcomes)
        if stop and self.actions != self.outcomes:
            raise ValueError("mixtures are for sequences of one length: a stop action has none")
        self.constraints = constraints
        shortest = min_length if stop else length
        self.automaton = constraints.compile(alphabet, shortest, length) if constraints else None
        if self.automaton is not None and self.actions != self.outcomes:
            raise ValueError("constraints are for sequences that are intended letter by letter: mixtures have none")
        self.unmasked = not stop and self.automaton is None and type(self).legal is SequenceEnv.legal
        self.horizon = self.width = self.object_width = length
        self.symbols = self.vocab + 2 * int(stop)  # blanks need a code of their own only beside an end mark
        self.features = length * self.symbols + length + 1
        self.offsets = [sum(self.vocab**d for d in range(depth)) for depth in range(length + 2)]
        self.num_states = self.offsets[length]
        lengths = range(min_length, length + 1) if stop else [length]
        self.num_objects = sum(self.vocab**d for d in lengths)

    @property
    def by_letter(self) -> bool:
        """Whether what is intended are letters, so that sequences can be ordered; mixtures are none."""
        return self.actions == self.outcomes

    @property
    def action_names(self) -> list[str]:
        """Names of the intentions, where they are letters."""
        return [*self.alphabet, *(["stop"] if self.stop else [])]

    @property
    def outcome_names(self) -> list[str]:
        """Names of the outcomes."""
        return [*self.alphabet, *(["stop"] if self.stop else [])]

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B S"]:
        """Sequences without any token, one for each trajectory."""
        return torch.full((batch, self.length), self.blank, dtype=torch.int64, device=device)

    def written(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """How many tokens the state holds."""
        return (state < self.vocab).sum(-1)

    def done(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether the sequence is full, or was stopped."""
        full = (state != self.blank).all(-1)
        return full | (state == self.end).any(-1) if self.stop else full

    def is_state(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch"]:
        """Whether tokens stand in front, then an end mark or none, then blanks; all rows where a subclass writes in
        another way."""
        return self.in_order(state) if self.writes_in_order else super().is_state(state)

    def in_order(self, symbols: Int[Tensor, "*batch L"]) -> Bool[Tensor, "*batch"]:
        """Whether nothing stands behind a blank or an end mark but blanks, and every code is known."""
        token, blank = (symbols >= 0) & (symbols < self.vocab), symbols == self.blank
        known = token | blank | (symbols == self.end) if self.stop else token | blank
        return known.all(-1) & (token[..., :-1] | blank[..., 1:]).all(-1)

    def legal(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """Every token at any time, and stop once the minimum length is reached; under constraints those of them that
        the automaton allows."""
        if self.automaton is None:
            return self._unconstrained(state)
        allowed = self.automaton.legal(state)[..., : self.actions]
        return self._unconstrained(state) & (allowed | self.done(state)[..., None])

    def _unconstrained(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """What is legal where nothing but the minimum length is asked for."""
        legal = torch.ones(*state.shape[:-1], self.actions, dtype=torch.bool, device=state.device)
        if self.stop:
            legal[..., self.vocab] = (self.written(state) >= self.min_length) | self.done(state)
        return legal

    def slippable(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch A"]:
        """All tokens, and stop where noise acts on it and it is legal; nothing once done."""
        if self.noise.stop:
            return self._unconstrained(state) & ~self.done(state)[..., None]
        tokens = torch.arange(self.outcomes, device=state.device) < self.vocab
        return tokens & ~self.done(state)[..., None]

    def possible(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """The tokens at any time, stop from the minimum length on: constraints are on what is intended, and noise may
        break them; without noise, what is legal."""
        if self.outcomes == self.actions:
            return self.legal(state) if self.automaton is None or self._silent else self._unconstrained(state)
        return torch.ones(*state.shape[:-1], self.outcomes, dtype=torch.bool, device=state.device)

    @property
    def _silent(self) -> bool:
        """Whether there is no noise anywhere."""
        return not self.noise_by_state and isinstance(self.operator(self.initial(1)), Identity)

    def position(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Number of tokens written."""
        return self.written(state)

    def apply(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """Write the outcome at the first blank."""
        symbol = outcome if not self.stop else torch.where(outcome == self.vocab, self.end, outcome)
        here = torch.arange(self.length, device=state.device) == self.written(state)[..., None]
        return torch.where(here & (state == self.blank) & ~self.done(state)[..., None], symbol[..., None], state)

    @property
    def writes_in_order(self) -> bool:
        """Whether states grow as `apply` of this class writes them, in this class and in subclasses."""
        return all(getattr(type(self), name) is getattr(SequenceEnv, name) for name in ("initial", "done", "apply"))

    def unrolled(self, realised: Int[Tensor, "B T"]) -> tuple[Int[Tensor, "B T+1 S"], Bool[Tensor, "B T"]]:
        """All states in one operation: the first t symbols of the last one, with blanks behind."""
        if not self.writes_in_order:
            return super().unrolled(realised)
        steps, device = realised.shape[1], realised.device
        if self.stop:
            stops = realised == self.vocab
            valid = stops.cumsum(1) - stops.long() == 0  # no stop before it
            symbols = torch.where(valid, torch.where(stops, self.end, realised), self.blank)
        else:
            valid, symbols = torch.ones_like(realised, dtype=torch.bool), realised
        if steps < self.length:
            blanks = torch.full((len(realised), self.length - steps), self.blank, device=device, dtype=realised.dtype)
            symbols = torch.cat([symbols, blanks], 1)
        written = torch.arange(self.length, device=device) < torch.arange(steps + 1, device=device)[:, None]
        return torch.where(written, symbols[:, None], self.blank), valid

    def last(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """The outcome that led here (action V for a stop); 0 at the root."""
        position = ((state != self.blank).sum(-1) - 1).clamp(min=0)
        symbol = state.gather(-1, position[..., None])[..., 0]
        symbol = torch.where(symbol == self.blank, 0, symbol)
        return torch.where(symbol == self.end, self.vocab, symbol)

    def parents(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K"]:
        """The last symbol written, the only outcome that may have led here."""
        root = (state == self.blank).all(-1)
        return (one_hot(self.last(state), self.outcomes) > 0) | root[..., None]

    def parent(self, state: Int[Tensor, "*batch S"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch S"]:
        """Erase the last symbol, whichever outcome is named."""
        position = (state != self.blank).sum(-1) - 1
        here = torch.arange(self.length, device=state.device) == position[..., None]
        return torch.where(here, self.blank, state)

    def support(self, state: Int[Tensor, "*batch S"]) -> Bool[Tensor, "*batch K A"]:
        """As in Env, with the one parent looked up once."""
        return self._may_lead(self.parent(state, state[..., 0])) & self.parents(state)[..., None]

    def encode(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch F"]:
        """One-hot symbols by position, and one-hot length."""
        symbols = one_hot(state, self.symbols).flatten(-2)
        return torch.cat([symbols, one_hot(self.written(state), self.length + 1)], -1)

    def toward(self, state: Int[Tensor, "*batch S"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """The next token of the goal, or stop; a blank goal at the next position is action V by its very code."""
        position = self.written(state).clamp(max=self.length - 1)
        following = goal.gather(-1, position[..., None])[..., 0]
        return one_hot(following, self.outcomes)

    def objects(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch O"]:
        """The tokens of a sequence, with blanks behind."""
        return torch.where(state == self.end, self.blank, state)

    def levels(self) -> Iterator[Int[Tensor, "N S"]]:
        """All prefixes shorter than `length`."""
        for depth in range(self.length):
            yield self._strings(depth)

    def index(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Prefixes by length, then in alphabetical order."""
        shorter = (self.vocab ** self.written(state) - 1) // (self.vocab - 1)  # how many strings are shorter
        return self._number(state) + shorter

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Objects by length, then in alphabetical order."""
        return self.index(objects) - self.offsets[self.min_length if self.stop else self.length]

    def all_objects(self) -> Int[Tensor, "N O"]:
        """All strings of the admitted lengths."""
        lengths = range(self.min_length, self.length + 1) if self.stop else [self.length]
        return torch.cat([self._strings(n) for n in lengths])

    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Token ids to letters."""
        letters = [*self.alphabet, ""]
        return ["".join(letters[i] for i in row) for row in objects.tolist()]

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Letters to token ids."""
        return self.parse_between(texts, self.min_length if self.stop else self.length)

    def parse_between(self, texts: list[str], shortest: int) -> Int[Tensor, "N O"]:
        """Letters to token ids, of texts from a least length on."""
        code = {letter: i for i, letter in enumerate(self.alphabet)}
        rows = []
        for number, text in enumerate(texts, start=1):
            wrong = sorted({c for c in text if c not in code})
            if wrong:
                what = f"letters {shorten(str(wrong))} are not in the alphabet {self.alphabet}"
                raise ValueError(f"entry {number} ({shorten(text)!r}): {what}")
            if not shortest <= len(text) <= self.length:
                wanted = str(self.length) if shortest == self.length else f"{shortest} to {self.length}"
                raise ValueError(f"entry {number} ({shorten(text)!r}): length {len(text)}, this task needs {wanted}")
            rows.append([code[c] for c in text] + [self.blank] * (self.length - len(text)))
        return torch.tensor(rows, dtype=torch.int64).reshape(-1, self.length)

    def read(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch O"]:
        """Objects as a landscape reads them: as they are, unless letters may be missing."""
        return objects

    def _strings(self, depth: int) -> Int[Tensor, "N S"]:
        number = torch.arange(self.vocab**depth)
        digits = [(number // self.vocab ** (depth - 1 - i)) % self.vocab for i in range(depth)]
        blanks = [torch.full_like(number, self.blank)] * (self.length - depth)
        return torch.stack(digits + blanks, -1)

    def _number(self, state: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        length = self.written(state)[..., None]
        position = torch.arange(self.length, device=state.device)
        power = self.vocab ** (length - 1 - position).clamp(min=0)
        return torch.where(position < length, state * power, 0).sum(-1)
