"""Ways to fill a plate that were compared on made-up landscapes before the default was chosen.

Each is a method by name, `benchmarks.design_recipes:gp_thompson`: a proxy (ensemble, gp, both), what it is fitted to
(scores, their square roots `sqrt` or logarithms `log`), and an acquisition (`mixed`: half of the wells by each of
ucb and thompson; `spread`: the first half by rising numbers of standard deviations). `thompson`, `ucb1_still` and
`members_free` are those of a search in a space that cannot be listed: an acquisition, its kappa, and whether the reach
stays that of a first plate (`still`) or has no limit (`free`) in the place of growing with what plates brought.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.acquisition import Request, normal_weights, upper_confidence_bound
from sgfn.design.batch import take_turns
from sgfn.design.playing import designer, fit_history
from sgfn.design.rivals import History, Player
from sgfn.design.space import OrderSpace, row_keys

KINDS = {
    "ensemble": ("ensemble",),
    "gp": ("gp",),
    "ridge": ("ridge",),
    "both": ("ensemble", "gp"),
    "all": ("ensemble", "gp", "ridge"),
}
HOPEFUL = 5000


def scaled(scores: Tensor, how: str) -> Tensor:
    """What a proxy is fitted to."""
    scores = scores.double()
    if how == "sqrt":
        return (scores - scores.min()).clamp(min=0).sqrt()
    if how == "log":
        above = scores[scores > scores.min()] - scores.min()
        return (scores - scores.min() + (above.quantile(0.25) if len(above) else 1.0)).log()
    return scores


@dataclass(eq=False)
class Recipe:
    """A player that lists all orders."""

    space: OrderSpace
    kinds: tuple[str, ...]
    transform: str
    acquisition: str
    kappa: float = 3.0

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        told = History(tokens=history.tokens, scores=scaled(history.scores, self.transform))
        everything, seen = self.space.everything(), set(row_keys(history.tokens))
        parts = [fit_history(self.space, kind, told, seed).member_tokens for kind in self.kinds]
        values = torch.cat([part(everything).float() for part in parts])
        free = torch.tensor([key not in seen for key in row_keys(everything)])
        upper = (values.mean(0) + 3 * values.std(0)).masked_fill(~free, -torch.inf)
        hopeful = upper.topk(min(HOPEFUL, int(free.sum()))).indices
        values, tokens = values[:, hopeful], everything[hopeful]
        rows = self.rows(values, count, seed)
        return tokens[take_turns(rows, count, torch.ones(len(tokens), dtype=torch.bool), tokens)]

    def rows(self, values: Float[Tensor, "M N"], count: int, seed: int) -> Float[Tensor, "K N"]:
        """Rows of attractiveness."""
        upper = upper_confidence_bound(values, Request(wells=count, kappa=self.kappa))
        drawn = normal_weights(count, len(values), seed).to(values.dtype) @ values
        if self.acquisition == "ucb":
            return upper
        if self.acquisition == "members":
            return values
        if self.acquisition == "mixed":
            drawn[::2] = upper
        if self.acquisition == "spread":
            kappas = torch.linspace(0, self.kappa, len(drawn[::2]))[:, None]
            drawn[::2] = values.mean(0) + kappas * values.std(0, correction=0)
        return drawn


def recipe(kinds: str, transform: str, acquisition: str, kappa: float, space: OrderSpace, proxy: str) -> Player:
    """A player by its parts."""
    return Recipe(space, KINDS[kinds], transform, acquisition, kappa)


def searching(acquisition: str, kappa: float, reach: str | None, space: OrderSpace, proxy: str) -> Player:
    """An acquisition in a search within the default reach, within that of a first plate, or without a limit."""
    limit = 0 if reach == "_free" else None
    acquisition = "benchmarks.design_mutants:quarter" if acquisition == "quarter" else acquisition
    player = designer(space, proxy, acquisition=acquisition, kappa=kappa, reach=limit, sampler="off")
    return replace(player, bests=Forgotten()) if reach == "_still" else player


class Forgotten(list[float]):
    """A list that stays empty, so that no plate is known to have brought anything."""

    def append(self, value: float) -> None:
        """Nothing."""


NAME = re.compile(rf"({'|'.join(KINDS)})(?:_(sqrt|log))?_(ucb|members|mixed|spread|thompson)(\d*)")
"""Proxies, what they are fitted to, the acquisition, and its kappa where that is not 3."""


SEARCH = re.compile(r"(ucb|members|thompson|tempered|quarter|greedy|mixed)(\d*)(_free|_still)?")
"""An acquisition, its kappa where that is not 3, and whether the reach has no limit or stays that of a first plate."""


def __getattr__(name: str) -> Callable[[OrderSpace, str], Player]:
    """A way to fill a plate by the name that its parts make: gp_thompson, both_sqrt_thompson, gp_mixed1."""
    if searched := SEARCH.fullmatch(name):
        return partial(searching, searched[1], float(searched[2] or 3.0), searched[3])
    found = NAME.fullmatch(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kinds, transform, acquisition, kappa = found.groups()
    return partial(recipe, kinds, transform or "none", acquisition, float(kappa or 3.0))
