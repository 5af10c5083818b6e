"""Any enumerable environment, compiled into look-up tables: every question becomes one gather."""

from collections.abc import Callable, Iterator
from functools import cached_property
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Enumerable, Env
from sgfn.noise.operators import SMALL, DenseKernel, Identity, Kernel, TableKernel

MAX_ENTRIES = 64_000_000


class TabulatedEnv(Enumerable):
    """The same environment with states numbered: unfinished ones by `Enumerable.index`, then the objects.

    A state is a row with one integer, and that numbering is private to whoever made the table: raw states come in
    through `embed`, and every other method refuses them. Made from another environment's own methods, so it cannot
    disagree with them.
    """

    width = 1

    def __init__(self, env: Enumerable, device: torch.device | str = "cpu") -> None:
        self.env, self.device = env, torch.device(device)
        copied = ("actions", "outcomes", "horizon", "object_width", "features", "tree", "unmasked", "distance", "noise")
        for name in (*copied, "num_states", "num_objects"):
            setattr(self, name, getattr(env, name))
        self.level_rows = [env.index(states).to(device) for states in env.levels()]
        self.level_sizes = [rows.shape[0] for rows in self.level_rows]
        raw = self._raw_states()
        tables = {
            "raw": raw,
            "following": self._following(raw),
            "legal_table": env.legal(raw),
            "feature_table": env.encode(raw),
            "object_table": env.objects(raw),
        }
        for name, table in tables.items():
            setattr(self, name, table.to(device))

    raw: Int[Tensor, "R S"]
    following: Int[Tensor, "R K"]
    legal_table: Bool[Tensor, "R A"]
    feature_table: Float[Tensor, "R F"]
    object_table: Int[Tensor, "R O"]

    # tables that only some runs read are made when they are first asked for

    def _made(self, question: Callable[[Tensor], Tensor]) -> Tensor:
        """What a method of the original environment says of every state."""
        return question(self.raw.cpu()).to(self.device)

    @cached_property
    def possible_table(self) -> Bool[Tensor, "R K"]:
        """Which outcomes may happen, by state."""
        same = self.env.intends_outcomes and self.env.automaton is None
        return self.legal_table if same else self._made(self.env.possible)

    @cached_property
    def slippable_table(self) -> Bool[Tensor, "R A"]:
        """Where noise acts, by state."""
        return self._made(self.env.slippable)

    @cached_property
    def position_table(self) -> Int[Tensor, " R"]:
        """Steps made, by state."""
        return self._made(self.env.position)

    @cached_property
    def parents_table(self) -> Bool[Tensor, "R K"]:
        """Outcomes that may have led to each state."""
        return self._made(self.env.parents)

    @cached_property
    def support_table(self) -> Bool[Tensor, "R K A"]:
        """Pairs of outcome and intention that may have led to each state."""
        return self._made(self.env.support)

    @cached_property
    def kernel_table(self) -> Float[Tensor, "R A K"]:
        """The kernel of the original environment at each state, in single precision."""
        return self._made(self.env.kernel)

    @cached_property
    def preceding(self) -> Int[Tensor, "R K"]:
        """The number of the parent by each outcome."""
        return self._preceding(self.following.cpu(), torch.arange(self.raw.shape[0])).to(self.device)

    def _raw_states(self) -> Int[Tensor, "R S"]:
        """Unfinished states in order, then for each object the finished state that stands for it."""
        raw = torch.zeros(self.num_states + self.num_objects, self.env.width, dtype=torch.int64)
        for states in self.env.levels():
            raw[self.env.index(states)] = states
            possible = self.env.possible(states)
            for k in range(self.outcomes):
                reached = self._moved(states[possible[:, k]], k)
                reached = reached[self.env.done(reached)]
                if reached.shape[0]:
                    raw[self.num_states + self.env.object_index(self.env.objects(reached))] = reached
        return raw

    def number(self, raw: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Row of a state of the original environment, which numbers unfinished states and objects apart."""
        done = self.env.done(raw)
        rows = torch.zeros(raw.shape[:-1], dtype=torch.int64, device=raw.device)
        if bool(done.any()):
            rows[done] = self.num_states + self.env.object_index(self.env.objects(raw[done]))
        if not bool(done.all()):
            rows[~done] = self.env.index(raw[~done])
        return rows

    def _moved(self, states: Int[Tensor, "N S"], outcome: int) -> Int[Tensor, "N S"]:
        """The states after one outcome, which is possible at each."""
        if not states.shape[0]:
            return states
        return self.env.apply(states, torch.full((states.shape[0],), outcome))

    def _following(self, raw: Int[Tensor, "R S"]) -> Int[Tensor, "R K"]:
        """Row after each outcome; where one is not possible, and once the object is done, the state stays."""
        following = torch.arange(raw.shape[0])[:, None].repeat(1, self.outcomes)
        unfinished = raw[: self.num_states]
        possible = self.env.possible(unfinished)
        for k in range(self.outcomes):
            rows = possible[:, k].nonzero()[:, 0]
            following[rows, k] = self.number(self._moved(unfinished[rows], k))
        return following

    def _preceding(self, following: Int[Tensor, "R K"], numbers: Int[Tensor, " R"]) -> Int[Tensor, "R K"]:
        back = numbers[:, None].repeat(1, self.outcomes)
        for k in range(self.outcomes):
            moved = following[:, k] != numbers
            back[following[moved, k], k] = numbers[moved]
        return back

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B 1"]:
        """The root is state 0."""
        return torch.zeros(batch, 1, dtype=torch.int64, device=device)

    def row(self, state: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch"]:
        """The number of a numbered state; a raw state, which is wider, is refused."""
        if state.shape[-1] != 1:
            raise ValueError(f"states here are numbers, got a row of {state.shape[-1]}: `embed` raw states first")
        return state[..., 0]

    def done(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch"]:
        """Whether the number is that of an object: objects come after the states."""
        return self.row(state) >= self.num_states

    def legal(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch A"]:
        """Which actions may be intended, looked up."""
        return self.legal_table[self.row(state)]

    def possible(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch K"]:
        """Which outcomes may happen, looked up."""
        return self.possible_table[self.row(state)]

    def slippable(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch A"]:
        """Where noise acts, looked up."""
        return self.slippable_table[self.row(state)]

    def position(self, state: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch"]:
        """Steps made, looked up."""
        return self.position_table[self.row(state)]

    @property
    def noise_by_state(self) -> bool:
        """Whether the original environment has overridden `kernel`."""
        return self.env.noise_by_state

    def kernel(
        self,
        state: Int[Tensor, "*batch _"],
        dtype: torch.dtype = torch.float32,
        rate: float | Float[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch A K"]:
        """Looked up in single precision, else asked of the original; the table holds the kernel of the mean rate."""
        if dtype == torch.float32 and rate is None:
            return self.kernel_table[self.row(state)]
        return self.env.kernel(self.raw[self.row(state)], dtype, rate)

    def operator(
        self,
        state: Int[Tensor, "*batch _"],
        dtype: torch.dtype = torch.float32,
        rate: float | Float[Tensor, "*batch"] | None = None,
    ) -> Kernel:
        """The kernel as an operator: by table where matrices are small or differ by state, else as the noise has it."""
        if dtype == torch.float32 and rate is None and (self.noise_by_state or self._small):
            return TableKernel(self.kernel_table, self.row(state))
        if self.noise_by_state:
            return DenseKernel(self.kernel(state, dtype, rate))
        return self._by_noise(state, dtype, rate)

    @property
    def _small(self) -> bool:
        """Whether matrices are so small that a look-up beats computing them; without noise there is nothing to gain."""
        return not self.noise_free and self.actions * self.outcomes <= SMALL

    @cached_property
    def noise_free(self) -> bool:
        """Whether what is intended happens in every state, so that no table of kernels is made."""
        if self.noise_by_state or not self._silent(self.initial(1, self.device)):
            return False
        return self._silent(torch.arange(self.raw.shape[0], device=self.device)[:, None])

    def _silent(self, state: Int[Tensor, "N 1"]) -> bool:
        return isinstance(self._by_noise(state, torch.float32, None), Identity)

    @property
    def intends_outcomes(self) -> bool:
        """As in the original environment."""
        return self.env.intends_outcomes

    @property
    def counts_steps(self) -> bool:
        """Whether the original environment does."""
        return self.env.counts_steps

    def apply(self, state: Int[Tensor, "*batch _"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch 1"]:
        """The next state's number, looked up."""
        return self.following[self.row(state), outcome][..., None]

    def parents(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch K"]:
        """Outcomes that may have led here, looked up."""
        return self.parents_table[self.row(state)]

    def parent(self, state: Int[Tensor, "*batch _"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch 1"]:
        """The parent's number, looked up."""
        return self.preceding[self.row(state), outcome][..., None]

    def support(self, state: Int[Tensor, "*batch _"]) -> Bool[Tensor, "*batch K A"]:
        """Pairs of outcome and intention that may have led here, looked up."""
        return self.support_table[self.row(state)]

    def encode(self, state: Int[Tensor, "*batch _"]) -> Float[Tensor, "*batch F"]:
        """Features, looked up."""
        return self.feature_table[self.row(state)]

    def toward(self, state: Int[Tensor, "*batch _"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """A law over outcomes that lead to the goal, asked of the original environment."""
        return self.env.toward(self.raw[self.row(state)], goal)

    def objects(self, state: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch O"]:
        """The objects of finished states, looked up."""
        return self.object_table[self.row(state)]

    def embed(self, raw: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch 1"]:
        """A raw state by its number; a number, which is narrower than any raw state here, is its own."""
        return raw if raw.shape[-1] == 1 else self.number(raw)[..., None]

    def law(self, policy: Float[Tensor, "M A"]) -> Float[Tensor, " N"]:
        """Probability of each object under a policy given for all unfinished states: `laws.law`, on any device."""
        rates = self.noise.rates(self.horizon)
        return torch.stack([weight * self._law(policy, rate) for rate, weight in rates]).sum(0)

    def _law(self, policy: Float[Tensor, "M A"], rate: float | None) -> Float[Tensor, " N"]:
        rows = torch.arange(self.num_states, device=policy.device)
        moved = self.operator(rows[:, None], torch.float64, rate).outcome_probabilities(policy.double())
        mass = torch.zeros(self.raw.shape[0], dtype=torch.float64, device=policy.device)
        mass[0] = 1.0
        for level in self.level_rows:
            mass.index_add_(0, self.following[level].flatten(), (mass[level][:, None] * moved[level]).flatten())
        return mass[self.num_states :]

    def levels(self) -> Iterator[Int[Tensor, "N 1"]]:
        """The original's levels, numbered."""
        for states in self.env.levels():
            yield self.embed(states)

    def index(self, state: Int[Tensor, "*batch _"]) -> Int[Tensor, "*batch"]:
        """The number itself."""
        return self.row(state)

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """Number of an object, as the original counts."""
        return self.env.object_index(objects)

    def all_objects(self) -> Int[Tensor, "N O"]:
        """Every object of the original."""
        return self.env.all_objects()

    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """Objects as text, by the original."""
        return self.env.decode(objects)

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """Text as objects, by the original."""
        return self.env.parse(texts)


TABLES: WeakKeyDictionary[Env, WeakValueDictionary[str, TabulatedEnv]] = WeakKeyDictionary()
"""Tables made before, for as long as somebody holds them: trainers of one task share theirs."""


def tabulate(env: Env, device: torch.device | str) -> Env:
    """The environment as tables where it can be enumerated and they are small enough, else the environment itself.

    States of one integer are left alone: a number could not be told from them.
    """
    if not isinstance(env, Enumerable) or env.width == 1:
        return env
    per_state = env.features + env.width + env.object_width + 3 * env.actions * env.outcomes + 6 * env.outcomes
    if (env.num_states + env.num_objects) * per_state > MAX_ENTRIES:
        return env
    made = TABLES.setdefault(env, WeakValueDictionary())
    found = made.get(str(device))
    if found is None:
        found = made[str(device)] = TabulatedEnv(env, device)
    return found
