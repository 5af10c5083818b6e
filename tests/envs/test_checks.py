"""What is not ours is tried once before training: each rule of `Env`, `Enumerable` and `Noise` has its own line."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

import sgfn
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, TabulatedEnv, checks
from sgfn.envs.base import Enumerable, Env
from sgfn.envs.checks import check_env
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.noise import Noise, UniformSlip


class Permutations(Env):
    """Orders of three things, written one by one; 3 is a blank."""

    tree = True
    actions = horizon = width = 3
    noise: Any = UniformSlip(alpha=0.2)

    def initial(self, batch: int, device: torch.device | str = "cpu") -> Tensor:
        return torch.full((batch, 3), 3, device=device)

    def done(self, state: Tensor) -> Tensor:
        return (state < 3).all(-1)

    def legal(self, state: Tensor) -> Tensor:
        used = (state[..., None] == torch.arange(3)).any(-2)
        return ~used | self.done(state)[..., None]

    def apply(self, state: Tensor, outcome: Tensor) -> Tensor:
        here = torch.arange(3) == (state < 3).sum(-1, keepdim=True)
        return torch.where(here, outcome[..., None], state)

    def parents(self, state: Tensor) -> Tensor:
        count = (state < 3).sum(-1)
        last = state.gather(-1, (count - 1).clamp(min=0)[..., None])
        return (last == torch.arange(3)) | (count == 0)[..., None]

    def encode(self, state: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(state, 4).float().flatten(-2)

    def objects(self, state: Tensor) -> Tensor:
        return state

    def decode(self, objects: Tensor) -> list[str]:
        return ["".join("abc?"[i] for i in row) for row in objects.tolist()]


class Listed(Permutations, Enumerable):
    """The same, listed; numbers come from dictionaries that hold nothing but what they must."""

    def __init__(self) -> None:
        self.rows = [[[*p, *[3] * (3 - n)] for p in itertools.permutations(range(3), n)] for n in range(4)]
        self.states = {tuple(row): i for i, row in enumerate(itertools.chain(*self.rows[:3]))}
        self.things = {tuple(row): i for i, row in enumerate(self.rows[3])}
        self.num_states, self.num_objects = len(self.states), len(self.things)

    def levels(self) -> Any:
        yield from (torch.tensor(rows) for rows in self.rows[:3])

    def index(self, state: Tensor) -> Tensor:
        return torch.tensor([self.states[tuple(row)] for row in state.tolist()])

    def object_index(self, objects: Tensor) -> Tensor:
        return torch.tensor([self.things[tuple(row)] for row in objects.tolist()])

    def all_objects(self) -> Tensor:
        return torch.tensor(self.rows[3])


def wrong(base: type[Env] = Permutations, **changes: Any) -> Env:
    return type("Wrong", (base,), changes)()


def bools(*sizes: int, value: bool = True) -> Any:
    return lambda self, state: torch.full((*state.shape[:-1], *sizes), value)


def in_place(self: Env, state: Tensor, outcome: Tensor) -> Tensor:
    return state.scatter_(-1, (state < 3).sum(-1, keepdim=True).clamp(max=2), outcome[..., None])


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "actions": ({"actions": None}, "Wrong.actions must be a whole number of 1 or more, got None"),
    "noise": ({"noise": 0.2}, r"Wrong.noise must be a Noise such as sgfn.UniformSlip\(alpha=0.2\), got 0.2"),
    "initial": (
        {"initial": lambda self, batch, device: torch.full((batch, 3), 3.0)},
        r"Wrong.initial must return 64-bit integers of shape \[32, 3\], got torch.float32 of shape \[32, 3\]",
    ),
    "done": ({"done": bools(value=True)}, "Wrong.done must be false at the root, got true"),
    "done-kind": (
        {"done": lambda self, state: (state < 3).all(-1).float()},
        r"Wrong.done must return booleans of shape \[32\], got torch.float32 of shape \[32\]",
    ),
    "horizon": ({"horizon": 2}, "Wrong.horizon must be .* got 2: 32 of 32 random rollouts are not done"),
    "legal": ({"legal": bools(2)}, r"Wrong.legal must return booleans of shape \[32, 3\], got .*\[32, 2\]"),
    "none-legal": ({"legal": bools(3, value=False)}, r"Wrong.legal must be true somewhere in each state, got none at"),
    "apply": ({"apply": in_place}, "Wrong.apply must return new states, got the given ones changed in place"),
    "parents": (
        {"parents": lambda self, state: Permutations.parents(self, state).roll(1, -1)},
        "Wrong.parents must be true for the outcome that led to a state, got false for outcome .* which led to",
    ),
    "no-parents": ({"parents": bools(3, value=False)}, "Wrong.parents must be true somewhere in each state"),
    "all-parents": ({"parents": bools(3)}, "Wrong.parents must be true once in each state of a tree, got more at"),
    "encode": (
        {"encode": lambda self, state: state},
        r"Wrong.encode must return torch.float32 of shape \[4, 32, any\], got torch.int64",
    ),
    "objects": ({"objects": lambda self, state: None}, "Wrong.objects must return integers .* got a NoneType"),
    "decode": ({"decode": lambda self, objects: ["a"]}, "Wrong.decode must return a list of 32 texts .* got 1 entries"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_environment_that_breaks_a_rule_is_refused_in_one_line(case: str) -> None:
    """Class and method, what was expected, what came."""
    changes, words = CASES[case]
    with pytest.raises(ValueError, match=words) as caught:
        sgfn.fit(wrong(**changes), reward=lambda texts: [1.0] * len(texts), steps=1, progress=False)
    assert "\n" not in str(caught.value)


def test_numbers_of_states_and_objects_are_checked() -> None:
    """In range, and in the order in which objects are listed."""
    check_env(Listed())
    with pytest.raises(ValueError, match=r"Wrong.index must lie in \[0, num_states\), which is \[0, 10\), got"):
        check_env(wrong(Listed, index=lambda self, state: Listed.index(self, state) + 1))
    with pytest.raises(ValueError, match=r"Wrong.all_objects must list objects in the order of `object_index`"):
        check_env(wrong(Listed, all_objects=lambda self: Listed.all_objects(self).flip(0)))


def test_numbers_are_asked_only_of_what_has_them() -> None:
    """An index that knows unfinished states alone, and objects alone, is enough for tables, laws and training."""
    env = Listed()
    tables = TabulatedEnv(env)
    assert tables.number(tables.raw).tolist() == list(range(env.num_states + env.num_objects))
    assert tables.number(tables.raw[:0]).shape == (0,)
    model = sgfn.fit(env, reward=lambda texts: [1.0 + t.startswith("a") for t in texts], steps=2, progress=False)
    assert model.law().probability.sum() == pytest.approx(1.0)
    assert 0.0 <= model.evaluate(samples=16)["tv"] < 1.0


class Own(Noise):
    """A kernel that is given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @property
    def summary(self) -> str:
        return "own"

    def check(self, slipping: int, positions: int) -> None:
        pass

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Any:
        return self.answer(torch.eye(2, dtype=dtype).expand(*slippable.shape[:-1], 2, 2))


KERNELS: dict[str, tuple[Any, str]] = {
    "sum": (lambda eye: 0.8 * eye, "Own.kernel must have rows that sum to one, got 0.8 for intention 0 at the state"),
    "negative": (lambda eye: 2 * eye - 0.5, "Own.kernel must be 0 or above, got -0.5"),
    "nan": (lambda eye: eye * torch.nan, "Own.kernel must be finite, got nan"),
    "dtype": (lambda eye: eye.float(), "Own.kernel must return torch.float64 .* got torch.float32"),
    "shape": (lambda eye: eye[..., :1], r"Own.kernel must return torch.float32 of shape \[.*2, 2\], got"),
    "none": (lambda eye: None, "Own.kernel must return torch.float32 .* got a NoneType"),
}


@pytest.mark.parametrize("case", KERNELS)
def test_a_kernel_that_is_no_law_is_refused(case: str) -> None:
    """Rows that are no laws would give a law that sums to something else, with a plausible distance."""
    answer, words = KERNELS[case]
    with pytest.raises(ValueError, match=words):
        check_env(SequenceEnv(length=3, alphabet="AB", noise=Own(answer)))


def test_kernels_of_an_environment_are_checked_too() -> None:
    """With the arguments that whoever asks gives, and no mass where nothing can happen."""

    def short(self: Env, state: Tensor) -> Tensor:
        return torch.eye(3).expand(*state.shape[:-1], 3, 3)

    def stray(self: Env, state: Tensor, dtype: torch.dtype = torch.float32, rate: Any = None) -> Tensor:
        return torch.full((*state.shape[:-1], 3, 3), 1 / 3, dtype=dtype)

    with pytest.raises(ValueError, match=r"Wrong.kernel must take \(state, dtype, rate\), got \(state: "):
        check_env(wrong(kernel=short))
    with pytest.raises(ValueError, match=r"Wrong.kernel must give nothing to outcomes that are not possible, got"):
        check_env(wrong(kernel=stray))


def test_a_method_without_an_argument_is_told() -> None:
    with pytest.raises(ValueError, match=r"^Wrong.initial must take \(batch, device\), got \(batch\)$"):
        check_env(wrong(initial=lambda self, batch: torch.full((batch, 3), 3)))
    with pytest.raises(ValueError, match=r"^Wrong.apply must take \(state, outcome\), got \(state\)$"):
        check_env(wrong(apply=lambda self, state: state))


def test_ours_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing gets slower."""
    monkeypatch.setattr(checks, "roll", None)
    Trainer(make_task("grid", TrainConfig().with_(grid__side=3, batch=4)), torch.device("cpu"))
