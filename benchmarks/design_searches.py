"""Searches on one fixed proxy at equal calls of it: the best that each finds, its 100 best, and how far they differ.

The proxy is fitted once, to sequences that are random (of Ehrlich functions: feasible); no search sees the truth. What
differs between methods is the search alone.
"""

import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks import cells as pool
from benchmarks.common import command
from benchmarks.design_games import LARGE, Cell, first_of, task_of
from sgfn.design.playing import fit_history
from sgfn.design.proposal import choose
from sgfn.design.rivals import SEARCHES, History
from sgfn.design.search import SearchConfig
from sgfn.design.settings import DesignConfig
from sgfn.design.simulate import LEADERS, Truth, first_history, mean_difference
from sgfn.design.space import OrderSpace
from sgfn.landscapes.proxies import Proxy

CALLS, START, PROXY = 20_000, 1000, "ensemble"
METHODS = ("ours", "ours, apart", "genetic", "adalead", "cma-es", "random")


class SpentError(Exception):
    """All calls were made."""


@dataclass(eq=False)
class Asked:
    """A proxy that answers so many calls, sequence by sequence, and keeps what it was asked about."""

    proxy: Proxy
    calls: int = 0
    seen: list[Int[Tensor, "N L"]] = field(default_factory=list)

    def __call__(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Mean score."""
        if self.calls + len(tokens) > CALLS:
            raise SpentError
        self.calls += len(tokens)
        self.seen.append(tokens)
        return self.proxy.mean_tokens(tokens)


def ours(space: OrderSpace, proxy: Proxy, history: History, method: str, seed: int) -> tuple[Int[Tensor, "N L"], int]:
    """A plate of this package for the highest mean, and its calls; `apart`: a fifth of the letters differs."""
    search = SearchConfig(scored=2 * CALLS, children=CALLS // 80, elite=CALLS // 320, patience=CALLS, seconds=1e9)
    config = DesignConfig(
        alphabet=space.alphabet,
        acquisition="greedy",
        reach=0,
        sampler="off",
        distance=1 if method == "ours" else space.max_length // 5,
        search=search,
    )
    ranked = history.tokens[history.scores.argsort(descending=True)]
    choice = choose(space, proxy.member_tokens, config, LEADERS, ranked, ranked[:0], seed)
    return choice.tokens, choice.found.scored


def theirs(space: OrderSpace, proxy: Proxy, history: History, method: str, seed: int) -> tuple[Int[Tensor, "N L"], int]:
    """All that a rival asks the proxy about, and how many calls that took."""
    generator = torch.Generator().manual_seed(seed)
    if method == "random":
        return space.random(CALLS, generator), CALLS
    asked, search = Asked(proxy), SEARCHES[method]
    longest = "queries" if method == "adalead" else "generations"
    with suppress(SpentError):
        search(space, asked, history, generator, **{longest: 2 * CALLS})
    return torch.cat(asked.seen), asked.calls


def searched(cell: Cell, method: str, seed: int) -> dict[str, Any]:
    """Figures of one search on the proxy of a cell and a seed."""
    with tempfile.TemporaryDirectory() as folder:
        task = task_of(cell, seed, Path(folder))
    truth, first = Truth(task), first_of(task, cell, seed)
    history = first_history(truth, START, seed) if first is None else first
    proxy = fit_history(truth.space, PROXY, history, seed)
    began = time.process_time()
    found, calls = (ours if method.startswith("ours") else theirs)(truth.space, proxy, history, method, seed)
    seconds = time.process_time() - began
    found = found[truth.space.allowed(found)].unique(dim=0)
    mean = proxy.mean_tokens(found)
    leading = mean.topk(min(LEADERS, len(found))).indices
    figures = {"best": float(mean.max()), "top": float(mean[leading].mean())}
    figures |= {"diversity": mean_difference(found[leading]), "start": float(proxy.mean_tokens(history.tokens).max())}
    figures |= {"spearman": proxy.report.spearman, "true_best": float(truth.scores(found[leading]).max())}
    told = {name: float(f"{value:.5g}") for name, value in figures.items()}
    return told | {"calls": calls, "seconds": round(seconds, 2)}


def searches_study(
    seeds: Iterable[int], out: Path, methods: Iterable[str] = METHODS, only: str | None = None
) -> pool.Study:
    """All searches on all spaces that nobody can list, seed by seed."""
    some = [Cell(task=name, size="10 x 128", start=START) for name in LARGE if only is None or only in name]
    wanted = [
        pool.Cell(
            key={"cell": cell.task, "method": method, "seed": seed}, function=searched, arguments=(cell, method, seed)
        )
        for seed in seeds
        for cell in some
        for method in methods
    ]
    about = {"calls": CALLS, "start": START, "proxy": PROXY}
    return pool.Study(out=out, command=command("design"), cells=wanted, about=lambda rows: about)
