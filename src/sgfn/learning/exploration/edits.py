"""Edits of finished objects by which a local search goes on: random, cheap, and blind to the reward."""

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.envs.base import Env
from sgfn.envs.grid import GridEnv
from sgfn.envs.sequence import SequenceEnv

Objects = Int[Tensor, "B O"]
Editor = Callable[[Objects, Objects, torch.Generator], Objects]
"""(Objects, other objects, generator) to edited copies of the first."""
KINDS = {"letters": 0.4, "shift": 0.2, "graft": 0.15, "cross": 0.15, "copy": 0.1}
"""Shares of the kinds of edits of a sequence, see `edit_sequences`."""


def editor_of(env: Env) -> Editor | None:
    """What edits the objects of an environment; None where there are no edits for it."""
    if isinstance(env, SequenceEnv):
        return lambda objects, others, generator: edit_sequences(env, objects, others, generator)
    if isinstance(env, GridEnv):
        return lambda objects, others, generator: edit_cells(env, objects, others, generator)
    return None


def edit_sequences(env: SequenceEnv, objects: Objects, others: Objects, generator: torch.Generator) -> Objects:
    """One edit of each sequence, of a kind drawn by `KINDS`.

    `letters` writes other letters, at least one; `shift` moves a stretch by one place, which opens a gap at one end of
    it and closes one at the other; `cross` takes a stretch of the other sequence, `graft` one from another place in it,
    `copy` one from another place of the sequence itself. All but the first write a letter now and then as well.
    """
    batch, length, device = len(objects), env.length, objects.device
    place = torch.arange(length, device=device)

    def whole(high: int, low: int = 0) -> Tensor:
        return torch.randint(low, high, (batch, 1), generator=generator, device=device)

    def uniform(width: int) -> Tensor:
        return torch.rand(batch, width, generator=generator, device=device)

    ends = torch.cat([whole(length), whole(length)], 1).sort(1).values
    inside = (place >= ends[:, :1]) & (place <= ends[:, 1:])
    aside = place + torch.where(uniform(1) < 0.5, -1, 1)
    moved = place + whole(length // 2 + 1, -(length // 2))
    there = inside & (moved >= 0) & (moved < length)
    stretches = {
        "letters": objects,
        "shift": torch.where(inside, objects.gather(1, aside.clamp(0, length - 1)), objects),
        "graft": torch.where(there, others.gather(1, moved.clamp(0, length - 1)), objects),
        "cross": torch.where(inside, others, objects),
        "copy": torch.where(there, objects.gather(1, moved.clamp(0, length - 1)), objects),
    }
    shares = torch.tensor([KINDS[name] for name in stretches], device=device)
    kind = torch.multinomial(shares.expand(batch, -1), 1, generator=generator)
    edited = torch.stack(list(stretches.values()), 1).gather(1, kind[..., None].expand(-1, 1, length))[:, 0]
    written = uniform(length) < torch.where(kind == 0, 1.5, 0.5) / length
    written = (written | ((kind == 0) & (place == whole(length)))) & (edited < env.vocab)
    letters = torch.randint(env.vocab, (batch, length), generator=generator, device=device)
    return tidied(env, torch.where(written, letters, edited), objects)


def tidied(env: SequenceEnv, edited: Objects, objects: Objects) -> Objects:
    """Edited sequences without letters behind a blank; the object itself where too few letters are left."""
    if not env.stop:
        return edited
    closed = (edited == env.blank).cummax(1).values
    edited = torch.where(closed, env.blank, edited)
    return torch.where(env.written(edited)[:, None] >= env.min_length, edited, objects)


def consensus(objects: Objects, known: Int[Tensor, "N O"], voters: int) -> Objects:
    """The letter at each place that most of the known objects nearest to each object have; its own where votes tie.

    >>> known = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 0], [0, 1, 1, 3], [2, 1, 2, 3], [3, 3, 3, 0]])
    >>> consensus(torch.tensor([[2, 1, 2, 3]]), known, 4).tolist()
    [[0, 1, 2, 3]]
    """
    same = (objects[:, None] == known).sum(-1)
    nearest = known[same.topk(min(voters, len(known)), 1).indices]
    votes = (nearest[:, :, None] == nearest[:, None]).sum(2)  # of each voter's letter, among all voters
    own = (nearest == objects[:, None]).sum(1)
    most, who = votes.max(1)
    return torch.where(most > own, nearest.gather(1, who[:, None])[:, 0], objects)


def edit_cells(env: GridEnv, objects: Objects, others: Objects, generator: torch.Generator) -> Objects:
    """Cells some steps away along one coordinate, or with some coordinates of the other cell."""
    batch, device = len(objects), objects.device

    def uniform(width: int) -> Tensor:
        return torch.rand(batch, width, generator=generator, device=device)

    steps = (1 + uniform(1).clamp(min=1e-9).log() / -0.7).floor().long().clamp(max=env.side)  # mostly one or two
    steps = torch.where(uniform(1) < 0.5, -steps, steps)
    here = torch.arange(env.ndim, device=device) == torch.randint(
        env.ndim, (batch, 1), generator=generator, device=device
    )
    near = (objects + steps * here).clamp(0, env.side - 1)
    return torch.where(uniform(1) < 0.75, near, torch.where(uniform(env.ndim) < 0.5, others, objects))
