"""Any enumerable environment, compiled into look-up tables: every question becomes one gather."""

from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.noise import slip_row

MAX_ENTRIES = 64_000_000


class TabulatedEnv(Env):
    """The same environment with states numbered: unfinished ones by `Env.index`, then the objects.

    A state is a row with one integer. Made from another environment's own methods, so it cannot disagree with them.
    """

    width = 1

    def __init__(self, env: Env, device: torch.device | str = "cpu") -> None:
        self.env = env
        for name in ("actions", "horizon", "object_width", "features", "tree", "num_states", "num_objects"):
            setattr(self, name, getattr(env, name))
        self.distance, self.noise = env.distance, env.noise
        self.level_rows = [env.index(states).to(device) for states in env.levels()]
        self.level_sizes = [rows.shape[0] for rows in self.level_rows]
        raw = self._raw_states()
        numbers = torch.arange(raw.shape[0])
        tables = {
            "raw": raw,
            "following": self._following(raw),
            "legal_table": env.legal(raw),
            "slippable_table": env.slippable(raw),
            "position_table": env.position(raw),
            "parents_table": env.parents(raw),
            "support_table": env.support(raw),
            "kernel_table": env.kernel(raw),
            "feature_table": env.encode(raw),
            "object_table": env.objects(raw),
        }
        tables["preceding"] = self._preceding(tables["following"], numbers)
        for name, table in tables.items():
            setattr(self, name, table.to(device))

    raw: Int[Tensor, "R S"]
    following: Int[Tensor, "R K"]
    preceding: Int[Tensor, "R K"]
    legal_table: Bool[Tensor, "R A"]
    slippable_table: Bool[Tensor, "R A"]
    position_table: Int[Tensor, " R"]
    parents_table: Bool[Tensor, "R K"]
    support_table: Bool[Tensor, "R K A"]
    kernel_table: Float[Tensor, "R A K"]
    feature_table: Float[Tensor, "R F"]
    object_table: Int[Tensor, "R O"]

    def _raw_states(self) -> Int[Tensor, "R S"]:
        """Unfinished states in order, then for each object the finished state that stands for it."""
        raw = torch.zeros(self.num_states + self.num_objects, self.env.width, dtype=torch.int64)
        for states in self.env.levels():
            raw[self.env.index(states)] = states
            for k in range(self.actions):
                reached = self.env.apply(states, torch.full((states.shape[0],), k))
                reached = reached[self.env.legal(states)[:, k] & self.env.done(reached)]
                raw[self.num_states + self.env.object_index(self.env.objects(reached))] = reached
        return raw

    def number(self, raw: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch"]:
        """Row of a state of the original environment."""
        finished = self.num_states + self.env.object_index(self.env.objects(raw))
        return torch.where(self.env.done(raw), finished, self.env.index(raw))

    def _following(self, raw: Int[Tensor, "R S"]) -> Int[Tensor, "R K"]:
        legal = self.env.legal(raw)
        columns = []
        for k in range(self.actions):
            reached = self.env.apply(raw, torch.full((raw.shape[0],), k))
            columns.append(self.number(torch.where(legal[:, k, None], reached, raw)))
        return torch.stack(columns, -1)

    def _preceding(self, following: Int[Tensor, "R K"], numbers: Int[Tensor, " R"]) -> Int[Tensor, "R K"]:
        back = numbers[:, None].repeat(1, self.actions)
        for k in range(self.actions):
            moved = following[:, k] != numbers
            back[following[moved, k], k] = numbers[moved]
        return back

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Int[Tensor, "B 1"]:
        """The root is state 0."""
        return torch.zeros(batch, 1, dtype=torch.int64, device=device)

    def done(self, state: Int[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch"]:
        """Objects come after the states."""
        return state[..., 0] >= self.num_states

    def legal(self, state: Int[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch A"]:
        """Looked up."""
        return self.legal_table[state[..., 0]]

    def slippable(self, state: Int[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch A"]:
        """Looked up."""
        return self.slippable_table[state[..., 0]]

    def position(self, state: Int[Tensor, "*batch 1"]) -> Int[Tensor, "*batch"]:
        """Looked up."""
        return self.position_table[state[..., 0]]

    def kernel(
        self,
        state: Int[Tensor, "*batch 1"],
        dtype: torch.dtype = torch.float32,
        rate: float | Float[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch A K"]:
        """Looked up in single precision, computed otherwise; the table holds the kernel of the mean rate."""
        if dtype != torch.float32 or rate is not None:
            return super().kernel(state, dtype, rate)
        return self.kernel_table[state[..., 0]]

    def kernel_row(
        self,
        state: Int[Tensor, "*batch 1"],
        action: Int[Tensor, "*batch"],
        rate: Float[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch K"]:
        """Looked up, or computed for a hidden rate."""
        if rate is not None:
            return slip_row(self.slippable_table[state[..., 0]], action, rate)
        return self.kernel_table[state[..., 0], action]

    def apply(self, state: Int[Tensor, "*batch 1"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch 1"]:
        """Looked up."""
        return self.following[state[..., 0], outcome][..., None]

    def parents(self, state: Int[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch K"]:
        """Looked up."""
        return self.parents_table[state[..., 0]]

    def parent(self, state: Int[Tensor, "*batch 1"], outcome: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch 1"]:
        """Looked up."""
        return self.preceding[state[..., 0], outcome][..., None]

    def support(self, state: Int[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch K A"]:
        """Looked up."""
        return self.support_table[state[..., 0]]

    def encode(self, state: Int[Tensor, "*batch 1"]) -> Float[Tensor, "*batch F"]:
        """Looked up."""
        return self.feature_table[state[..., 0]]

    def toward(self, state: Int[Tensor, "*batch 1"], goal: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch K"]:
        """Asked of the original environment."""
        return self.env.toward(self.raw[state[..., 0]], goal)

    def objects(self, state: Int[Tensor, "*batch 1"]) -> Int[Tensor, "*batch O"]:
        """Looked up."""
        return self.object_table[state[..., 0]]

    def embed(self, raw: Int[Tensor, "*batch S"]) -> Int[Tensor, "*batch 1"]:
        """A state of the original environment as one of this."""
        return self.number(raw)[..., None]

    def law(self, policy: Float[Tensor, "M A"]) -> Float[Tensor, " N"]:
        """Probability of each object under a policy given for all unfinished states: `exact.law`, on any device."""
        rates = self.noise.rates(self.horizon)
        return torch.stack([weight * self._law(policy, rate) for rate, weight in rates]).sum(0)

    def _law(self, policy: Float[Tensor, "M A"], rate: float | None) -> Float[Tensor, " N"]:
        rows = torch.arange(self.num_states, device=policy.device)
        moved = torch.einsum("ma,mak->mk", policy.double(), self.kernel(rows[:, None], torch.float64, rate))
        mass = torch.zeros(self.raw.shape[0], dtype=torch.float64, device=policy.device)
        mass[0] = 1.0
        for level in self.level_rows:
            mass.index_add_(0, self.following[level].flatten(), (mass[level][:, None] * moved[level]).flatten())
        return mass[self.num_states :]

    def levels(self) -> Iterator[Int[Tensor, "N 1"]]:
        """As the original's."""
        for states in self.env.levels():
            yield self.embed(states)

    def index(self, state: Int[Tensor, "*batch 1"]) -> Int[Tensor, "*batch"]:
        """The number itself."""
        return state[..., 0]

    def object_index(self, objects: Int[Tensor, "*batch O"]) -> Int[Tensor, "*batch"]:
        """As the original's."""
        return self.env.object_index(objects)

    def all_objects(self) -> Int[Tensor, "N O"]:
        """As the original's."""
        return self.env.all_objects()

    def decode(self, objects: Int[Tensor, "N O"]) -> list[str]:
        """As the original's."""
        return self.env.decode(objects)

    def parse(self, texts: list[str]) -> Int[Tensor, "N O"]:
        """As the original's."""
        return self.env.parse(texts)


TABLES: WeakKeyDictionary[Env, WeakValueDictionary[str, TabulatedEnv]] = WeakKeyDictionary()
"""Tables made before, for as long as somebody holds them: trainers of one task share theirs."""


def tabulate(env: Env, device: torch.device | str) -> Env:
    """The environment as tables where they are small enough, else the environment itself."""
    per_state = env.features + env.width + env.object_width + 3 * env.actions**2 + 6 * env.actions
    if (env.num_states + env.num_objects) * per_state > MAX_ENTRIES:
        return env
    made = TABLES.setdefault(env, WeakValueDictionary())
    found = made.get(str(device))
    if found is None:
        found = made[str(device)] = TabulatedEnv(env, device)
    return found
