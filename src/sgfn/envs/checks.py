"""Checks of environments and noises that are not ours, by random rollouts through their own methods.

Each refusal is one line: class and method, what was expected, what came.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import is_ours
from sgfn.envs import laws
from sgfn.envs.base import Enumerable, Env
from sgfn.noise import Noise
from sgfn.noise.operators import Kernel

ROLLOUTS = 32
MOST_STATES = 256
"""States at which kernels are looked at, at most."""
MOST_ENTRIES = 16_000_000
"""Entries of kernels that are looked at together; where one has more, kernels are not looked at."""
TOLERANCE = 1e-5
"""By how much a row of a kernel may miss the sum of one."""
KINDS: dict[str, Callable[[Tensor], bool]] = {
    "booleans": lambda found: found.dtype == torch.bool,
    "64-bit integers": lambda found: found.dtype == torch.int64,
    "integers": lambda found: not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool),
    "floating-point numbers": lambda found: found.is_floating_point(),
    "numbers": lambda found: not (found.is_complex() or found.dtype == torch.bool),
    "torch.float32": lambda found: found.dtype == torch.float32,
    "torch.float64": lambda found: found.dtype == torch.float64,
}
"""What a tensor may have to hold, in words of the messages."""

SIGNATURES: dict[str, tuple[str, ...]] = {
    "initial": ("batch", "device"),
    **dict.fromkeys(("done", "legal", "possible", "parents", "encode", "objects"), ("state",)),
    "apply": ("state", "outcome"),
    "decode": ("objects",),
}
"""Arguments that the methods of an environment are called with."""


@dataclass(frozen=True, kw_only=True)
class Visited:
    """What random rollouts have passed through."""

    states: Int[Tensor, "N B S"]
    """Every state, root and finished ones included."""
    outcomes: Int[Tensor, "T B"]
    done: Bool[Tensor, "N B"]
    objects: Int[Tensor, "B O"]


def refuse(who: str, expected: str, got: object) -> NoReturn:
    """Raise with one line on what a method or attribute must be, and what it is."""
    raise ValueError(f"{who} must {expected}, got {' '.join(str(got).split())}")


def check_env(env: Env, device: torch.device | str = "cpu") -> Visited:
    """Roll out at random and refuse what breaks the rules of `Env`, `Enumerable` or `Noise`; ours are not looked at."""
    who = type(env).__name__
    if not isinstance(env.noise, Noise):
        refuse(f"{who}.noise", "be a Noise such as sgfn.UniformSlip(alpha=0.2)", repr(env.noise))
    for name in (
        "actions",
        "horizon",
        "width",
        *(("num_states", "num_objects") if isinstance(env, Enumerable) else ()),
    ):
        value = getattr(env, name, None)
        if not isinstance(value, int) or value < 1:
            refuse(f"{who}.{name}", "be a whole number of 1 or more", repr(value))
    generator = torch.Generator(device).manual_seed(0)
    found = roll(env, device, generator)
    if not is_ours(env):
        _check_states(env, found)
        _check_numbers(env, found)
    if not is_ours(env.noise):
        _check_rates(env.noise, generator)
    if not (is_ours(env) and is_ours(env.noise)):
        _check_kernels(env, _picked(env, found, generator))
    return found


def expect(who: str, found: Any, kind: str, shape: tuple[int | None, ...], device: torch.device) -> Tensor:
    """What a method returned, if it is a tensor of that kind, shape (None where any size will do) and device."""
    wanted = f"return {kind} of shape [{', '.join('any' if size is None else str(size) for size in shape)}]"
    if not isinstance(found, Tensor):
        refuse(who, wanted, f"a {type(found).__name__}")
    fits = len(shape) == found.dim() and all(a in (None, b) for a, b in zip(shape, found.shape, strict=True))
    if not fits or not KINDS[kind](found):
        refuse(who, wanted, f"{found.dtype} of shape {list(found.shape)}")
    if found.device.type != device.type:
        refuse(who, f"return a tensor on {device.type}, where its argument is", found.device.type)
    return found


def _ask(env: Env, method: str, kind: str, last: tuple[int | None, ...], state: Tensor, *more: Tensor) -> Tensor:
    found = getattr(env, method)(state, *more)
    return expect(f"{type(env).__name__}.{method}", found, kind, (*state.shape[:-1], *last), state.device)


# rollouts


def roll(env: Env, device: torch.device | str, generator: torch.Generator) -> Visited:
    """Random rollouts in which every possible outcome is equally likely, each answer checked on the way."""
    who, device = type(env).__name__, torch.device(device)
    for method, names in SIGNATURES.items():
        _refuse_signature(f"{who}.{method}", getattr(env, method), *names)
    root = env.initial(ROLLOUTS, device)
    state = expect(f"{who}.initial", root, "64-bit integers", (ROLLOUTS, env.width), device)
    if not torch.equal(state, state[:1].expand_as(state)):
        refuse(f"{who}.initial", "return the same root in every row", "rows that differ")
    states, outcomes, done = [state], [], [_ask(env, "done", "booleans", (), state)]
    if bool(done[0].any()):
        refuse(f"{who}.done", "be false at the root", "true")
    for _ in range(env.horizon):
        outcome = _any_outcome(env, state, generator)
        state = _applied(env, state, outcome, done[-1])
        states.append(state)
        outcomes.append(outcome)
        done.append(_ask(env, "done", "booleans", (), state))
    left = int((~done[-1]).sum())
    if left:
        late = f"{env.horizon}: {left} of {ROLLOUTS} random rollouts are not done after so many steps"
        refuse(f"{who}.horizon", "be the number of steps of the longest trajectory", late)
    objects = _ask(env, "objects", "integers", (None,), state)
    return Visited(states=torch.stack(states), outcomes=torch.stack(outcomes), done=torch.stack(done), objects=objects)


def _any_outcome(env: Env, state: Int[Tensor, "B S"], generator: torch.Generator) -> Int[Tensor, " B"]:
    """One of the possible outcomes of each state, all alike."""
    _any_true(env, "legal", _ask(env, "legal", "booleans", (env.actions,), state), state)
    possible = _any_true(env, "possible", _ask(env, "possible", "booleans", (env.outcomes,), state), state)
    chance = torch.rand(possible.shape, generator=generator, device=generator.device)
    return torch.where(possible, chance, -1.0).argmax(-1)


def _any_true(env: Env, method: str, found: Bool[Tensor, "*batch A"], state: Tensor) -> Bool[Tensor, "*batch A"]:
    none = ~found.any(-1)
    if bool(none.any()):
        refuse(
            f"{type(env).__name__}.{method}", "be true somewhere in each state", f"none at {state[none][0].tolist()}"
        )
    return found


def _applied(env: Env, state: Tensor, outcome: Tensor, done: Tensor) -> Int[Tensor, "B S"]:
    """The next states, which are new ones but where the object is done."""
    who, before = f"{type(env).__name__}.apply", state.clone()
    after = _ask(env, "apply", "64-bit integers", (env.width,), state, outcome)
    if not torch.equal(state, before):
        refuse(who, "return new states", "the given ones changed in place: work on state.clone()")
    moved = done & (after != before).any(-1)
    if bool(moved.any()):
        refuse(who, "leave finished states as they are", f"{after[moved][0].tolist()} for {before[moved][0].tolist()}")
    return after


# answers at the states of rollouts


def _check_states(env: Env, found: Visited) -> None:
    """Refuse wrong answers at all states together, with two batch dimensions as in training."""
    who, states = type(env).__name__, found.states
    _ask(env, "done", "booleans", (), states)
    _any_true(env, "legal", _ask(env, "legal", "booleans", (env.actions,), states), states)
    _any_true(env, "possible", _ask(env, "possible", "booleans", (env.outcomes,), states), states)
    features = _ask(env, "encode", "torch.float32", (None,), states)
    if not bool(features.isfinite().all()):
        refuse(f"{who}.encode", "return finite numbers", "nan or infinity")
    if features.shape[-1] != env.features:
        refuse(f"{who}.features", f"be {features.shape[-1]}, the width of `encode`", env.features)
    if found.objects.shape[-1] != env.object_width:
        refuse(f"{who}.object_width", f"be {found.objects.shape[-1]}, the width of `objects`", env.object_width)
    texts = env.decode(found.objects.cpu())
    if not isinstance(texts, list) or len(texts) != ROLLOUTS or not all(isinstance(text, str) for text in texts):
        got = f"{len(texts)} entries" if isinstance(texts, list) else f"a {type(texts).__name__}"
        refuse(f"{who}.decode", f"return a list of {ROLLOUTS} texts for as many objects", got)
    _check_parents(env, found)


def _check_parents(env: Env, found: Visited) -> None:
    who = f"{type(env).__name__}.parents"
    parents = _any_true(env, "parents", _ask(env, "parents", "booleans", (env.outcomes,), found.states), found.states)
    moved, reached = ~found.done[:-1], parents[1:]
    missing = moved & ~reached.gather(-1, found.outcomes[..., None])[..., 0]
    if bool(missing.any()):
        state, outcome = found.states[1:][missing][0].tolist(), int(found.outcomes[missing][0])
        refuse(who, "be true for the outcome that led to a state", f"false for outcome {outcome}, which led to {state}")
    several = moved & (reached.sum(-1) > 1)
    if env.tree and bool(several.any()):
        refuse(who, "be true once in each state of a tree", f"more at {found.states[1:][several][0].tolist()}")


def _check_numbers(env: Env, found: Visited) -> None:
    """Refuse numbers of states and objects that are out of range, or are not those of the listed objects."""
    if not laws.enumerable(env):
        return
    who, states, device = type(env).__name__, found.states[~found.done].cpu(), torch.device("cpu")
    index = expect(f"{who}.index", env.index(states), "64-bit integers", (states.shape[0],), device)
    _in_range(f"{who}.index", index, env.num_states, "num_states")
    objects = found.objects.cpu()
    number = expect(f"{who}.object_index", env.object_index(objects), "64-bit integers", (ROLLOUTS,), device)
    _in_range(f"{who}.object_index", number, env.num_objects, "num_objects")
    width = objects.shape[-1]
    listed = expect(f"{who}.all_objects", env.all_objects(), "integers", (env.num_objects, width), device)[number]
    wrong = (listed != objects).any(-1)
    if bool(wrong.any()):
        got = f"{listed[wrong][0].tolist()} at the number of {objects[wrong][0].tolist()}"
        refuse(f"{who}.all_objects", "list objects in the order of `object_index`", got)


def _in_range(who: str, numbers: Int[Tensor, " N"], size: int, name: str) -> None:
    if bool(((numbers < 0) | (numbers >= size)).any()):
        wrong = int(numbers[(numbers < 0) | (numbers >= size)][0])
        refuse(who, f"lie in [0, {name}), which is [0, {size})", wrong)


# noise


def _picked(env: Env, found: Visited, generator: torch.Generator) -> Int[Tensor, "N S"]:
    """Some of the unfinished states; none where a kernel is too large to be looked at."""
    states = found.states[~found.done].unique(dim=0)
    most = min(MOST_STATES, MOST_ENTRIES // (env.actions * env.outcomes))
    order = torch.rand(states.shape[0], generator=generator, device=generator.device).argsort()
    return states[order[:most]]


def _check_rates(noise: Noise, generator: torch.Generator) -> None:
    """Refuse hidden rates that are no rates."""
    who = f"{type(noise).__name__}.draw_rates"
    if not noise.has_hidden_rate:
        return
    found = noise.draw_rates(ROLLOUTS, generator)
    rates = expect(who, found, "floating-point numbers", (ROLLOUTS,), generator.device)
    if not bool(((rates >= 0) & (rates <= 1)).all()):
        refuse(who, "return rates between 0 and 1", rates[~((rates >= 0) & (rates <= 1))][0].item())


def _check_kernels(env: Env, states: Int[Tensor, "N S"]) -> None:
    """Refuse a kernel whose rows are no laws over possible outcomes, in single or double precision."""
    if not states.shape[0]:
        return
    for dtype in (torch.float32, torch.float64):
        who, found = _kernel(env, states, dtype)
        shape = (states.shape[0], env.actions, env.outcomes)
        _check_rows(env, who, expect(who, found, str(dtype), shape, states.device), states)


def _kernel(env: Env, states: Int[Tensor, "N S"], dtype: torch.dtype) -> tuple[str, Any]:
    """The kernel at some states as whoever wrote it gives it, and the name of that method."""
    if env.noise_by_state:
        who = f"{type(env).__name__}.kernel"
        _refuse_signature(who, env.kernel, "state", "dtype", "rate")
        return who, env.kernel(states, dtype, None)
    noise, slippable = env.noise, env.slippable(states)
    position = env.position(states) if noise.by_position and env.counts_steps else None
    who = f"{type(noise).__name__}.kernel"
    _refuse_signature(who, noise.kernel, "slippable", "dtype", "position")
    kernel = noise.kernel(slippable, dtype, position)
    if isinstance(kernel, Tensor) and type(noise).operator is not Noise.operator:
        _check_operator(noise, kernel, slippable, position)
    return who, kernel


def _check_operator(noise: Noise, kernel: Tensor, slippable: Tensor, position: Tensor | None) -> None:
    """Refuse an operator that is another kernel."""
    who = f"{type(noise).__name__}.operator"
    _refuse_signature(who, noise.operator, "slippable", "dtype", "position", "rate")
    found = noise.operator(slippable, kernel.dtype, position, None)
    if not isinstance(found, Kernel):
        refuse(who, "return a Kernel", f"a {type(found).__name__}")
    matrix = expect(f"{who}.matrix", found.matrix(), str(kernel.dtype), tuple(kernel.shape), kernel.device)
    gap = float((matrix - kernel).abs().max())
    if not gap <= TOLERANCE:
        refuse(who, "be the same as `kernel`", f"numbers that differ by {gap:.6g}")


def _refuse_signature(who: str, method: Callable[..., Any], *names: str) -> None:
    try:
        inspect.signature(method).bind(*names)
    except TypeError:
        refuse(who, f"take ({', '.join(names)})", str(inspect.signature(method)))


def _check_rows(env: Env, who: str, kernel: Float[Tensor, "N A K"], states: Int[Tensor, "N S"]) -> None:
    _refuse_where(who, ~kernel.isfinite(), "be finite", kernel, states)
    _refuse_where(who, kernel < 0, "be 0 or above", kernel, states)
    legal, possible = env.legal(states)[..., None], env.possible(states)[:, None]
    strays = legal & ~possible & (kernel > TOLERANCE)
    _refuse_where(who, strays, "give nothing to outcomes that are not possible", kernel, states)
    total = kernel.sum(-1, keepdim=True)
    _refuse_where(who, legal & ((total - 1).abs() > TOLERANCE), "have rows that sum to one", total, states)


def _refuse_where(who: str, wrong: Bool[Tensor, "N A K"], expected: str, values: Tensor, states: Tensor) -> None:
    """Raise for the first entry that is wrong, with its intention and state."""
    if bool(wrong.any()):
        state, intention, outcome = wrong.nonzero()[0].tolist()
        value = values[state, intention, outcome].item()
        at = f"intention {intention} at the state {states[state].tolist()}"
        refuse(who, expected, f"{value:.6g} for {at}")
