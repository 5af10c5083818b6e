"""Players of a simulated design: ours around `Designer`, and rivals around the same kind of proxy."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from jaxtyping import Int
from torch import Tensor

from sgfn.design.failures import avoiding
from sgfn.design.proposal import choose
from sgfn.design.rivals import SEARCHES, EvolutionPlayer, History, Mean, ModelPlayer, Player, RandomPlayer
from sgfn.design.sampler import Weights
from sgfn.design.settings import DesignConfig
from sgfn.design.space import OrderSpace
from sgfn.landscapes.proxies import Proxy, fit_proxy
from sgfn.noise import UniformSlip


def fit_history(space: OrderSpace, kind: str, history: History, seed: int, device: str = "cpu") -> Proxy:
    """A proxy of what was measured."""
    scores = history.scores.double().numpy()
    about = {"alphabet": space.alphabet, "max_length": space.max_length}
    return fit_proxy(space.decode(history.tokens), scores, **about, kind=kind, seed=seed, device=device)


@dataclass(eq=False)
class DesignPlayer:
    """Fills plates as `Designer` does, without its tables."""

    space: OrderSpace
    proxy: str
    config: DesignConfig
    weights: Weights | None = None
    device: str = "cpu"
    """Where proxies are fitted and asked."""
    bests: list[float] = field(default_factory=list)
    """Best score before each plate."""

    def propose(self, history: History, count: int, seed: int) -> Int[Tensor, "W L"]:
        """Orders of the next plate."""
        self.bests.append(float(history.scores.max()))
        fitted = fit_history(self.space, self.proxy, history, seed, self.device).to(self.device)
        best_first = history.tokens[history.scores.argsort(descending=True)]
        chosen = choose(
            avoiding(self.space, self.config.failures, history.tokens, history.scores),
            lambda tokens: fitted.member_tokens(tokens.to(self.device)).cpu(),
            self.config,
            count,
            best_first,
            history.tokens,
            seed,
            self.weights,
            fitted.report.spearman,
            [after > before for before, after in pairwise(self.bests)],
        )
        self.weights = chosen.weights
        return chosen.tokens


def designer(
    space: OrderSpace,
    proxy: str,
    *,
    aware: bool = True,
    largest_exact: int | None = None,
    kind: str | None = None,
    **options: Any,
) -> DesignPlayer:
    """One of ours; unaware of the noise it takes every order to come out as it is. `kind` replaces the proxy's kind."""
    space = space if aware else replace(space, noise=UniformSlip(alpha=0.0))
    config = DesignConfig(alphabet=space.alphabet, **options)
    if largest_exact is not None:
        config = replace(config, search=replace(config.search, largest_exact=largest_exact))
    return DesignPlayer(space, kind or proxy, config)


def rival(space: OrderSpace, proxy: str, *, search: str) -> Player:
    """A rival by the name of its search."""

    def fit(history: History, seed: int) -> Mean:
        return fit_history(space, proxy, history, seed).mean_tokens

    return ModelPlayer(space=space, fit=fit, search=SEARCHES[search])


def random_player(space: OrderSpace, proxy: str) -> Player:
    """Random orders."""
    return RandomPlayer(space=space)


def evolution_player(space: OrderSpace, proxy: str) -> Player:
    """A genetic algorithm without a proxy."""
    return EvolutionPlayer(space=space)
