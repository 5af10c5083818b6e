"""Why a plate from a proxy gains little from knowing the noise: scores split by how many places act together.

Uniform noise at rate a replaces each letter by a random one with probability a. It multiplies the part of a score that
k places make together by (1 - a)^k, and changes a ranking only where such parts of different orders compete. Exact
plates are chosen here from the truth, from the truth with errors of known kinds, and from fitted proxies, each with and
without knowing the noise, and valued by the truth.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from benchmarks.cells import Study, study_by_keys
from benchmarks.design_games import NOISES, TASKS, Cell, config_of
from sgfn.design.playing import fit_history
from sgfn.design.simulate import Truth, first_history
from sgfn.design.space import OrderSpace
from sgfn.design.values import by_blocks, exact_values
from sgfn.landscapes.tasks import make_task

PLATE, MEASURED = 96, 5000
WHITE = (0.5, 1.0)
"""Errors that are independent from sequence to sequence, in standard deviations of the scores."""
HIGHEST = 4
"""Places at most that act together in the parts of the truth from which plates are chosen."""


def parts_by_order(table: Float64[Tensor, "..."]) -> list[Float64[Tensor, "..."]]:
    """Parts of a table that k of its axes make together, for k from 0 on; their sum is the table.

    Part k is the sum over all sets of k axes of what is left of the table's mean over the other axes when the parts of
    smaller sets are taken away (the analysis of variance under independent uniform letters).

    >>> parts = parts_by_order(torch.tensor([[0.0, 1.0], [1.0, 4.0]], dtype=torch.float64))
    >>> [part.flatten().tolist() for part in parts]
    [[1.5, 1.5, 1.5, 1.5], [-2.0, 0.0, 0.0, 2.0], [0.5, -0.5, -0.5, 0.5]]
    """
    parts = [table]
    for axis in range(table.ndim):
        means = [part.mean(axis, keepdim=True).expand_as(part) for part in parts]
        rest = [part - mean for part, mean in zip(parts, means, strict=True)]
        none = torch.zeros_like(table)
        parts = [mean + more for mean, more in zip([*means, none], [none, *rest], strict=True)]
    return parts


def shares(table: Float64[Tensor, "..."], whole: float) -> list[float]:
    """Variance of the parts that one, two and more places make together, over a variance."""
    return [float(f"{float(part.square().mean()) / whole:.4g}") for part in parts_by_order(table)[1:]]


def as_cube(truth: Truth, scores: Float64[Tensor, " N"]) -> Float64[Tensor, "..."]:
    """Scores of all orders that are allowed, an axis for each place and an entry for each letter that it may have."""
    allowed = truth.space.allowed(truth.space.env.all_objects())
    tokens = truth.space.env.all_objects()[allowed]
    return scores[allowed].reshape([len(tokens[:, place].unique()) for place in range(tokens.shape[1])])


def believed(truth: Truth, seed: int) -> Iterator[tuple[str, Float64[Tensor, " N"]]]:
    """Names of beliefs about the scores, and the scores of all sequences by each."""
    everything = truth.space.env.all_objects()
    allowed, scores = truth.space.allowed(everything), truth.scores(everything).double()
    yield "truth", scores
    parts, generator = parts_by_order(as_cube(truth, scores)), torch.Generator().manual_seed(seed)
    for order in range(1, HIGHEST + 1):
        kept = torch.zeros_like(scores)
        kept[allowed] = torch.stack(parts[: order + 1]).sum(0).reshape(-1)
        yield f"truth, {order} places together at most", kept
    for size in WHITE:
        error = size * scores[allowed].std() * torch.randn(len(scores), generator=generator, dtype=torch.float64)
        yield f"truth and errors of {size:g} sd", torch.where(allowed, scores + error, scores)
    proxy = fit_history(truth.space, "ensemble", first_history(truth, MEASURED, seed), seed)
    yield "ensemble", by_blocks(proxy.member_tokens, everything).mean(0).double()


def plate_values(space: OrderSpace, truth: Float[Tensor, " N"], belief: Float[Tensor, " N"]) -> dict[str, float]:
    """True mean values of the best plate there is and of plates by a belief, aware and unaware of the noise."""
    allowed = space.allowed(space.env.all_objects())
    value, believed_value = (row[allowed] for row in exact_values(space, torch.stack([truth, belief])))
    chosen = {"best": value, "aware": believed_value, "unaware": belief[allowed]}
    return {name: float(f"{float(value[row.topk(PLATE).indices].mean()):.6g}") for name, row in chosen.items()}


def why_row(task: str, seed: int) -> dict[str, Any]:
    """Plates of a task by each belief under each noise, and how much of each belief is made by how many places."""
    truth = noisy(task, "0")
    scores, beliefs = truth.scores(truth.space.env.all_objects()).double(), dict(believed(truth, seed))
    whole = float(as_cube(truth, scores).var(correction=0))
    found = {name: shares(as_cube(truth, belief), whole) for name, belief in beliefs.items()}
    plates = {
        noise: {name: plate_values(noisy(task, noise).space, scores, belief) for name, belief in beliefs.items()}
        for noise in NOISES
    }
    return {"shares": found, "plates": plates}


def noisy(task: str, noise: str) -> Truth:
    """A landscape of the study under noise."""
    with tempfile.TemporaryDirectory() as folder:
        return Truth(make_task(task, config_of(Cell(task=task, noise=noise), Path(folder))))


def why_study(seeds: range, out: Path) -> Study:
    """All rows of the study."""
    return study_by_keys(out, "design", [{"task": task, "seed": seed} for seed in seeds for task in TASKS], why_row)
