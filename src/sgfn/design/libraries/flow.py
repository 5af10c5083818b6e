"""Flow networks over codons.

`draw_libraries`: a network that writes a library letter by letter, three of IUPAC for each site, and whose reward is
the value of the whole library: orders are fixed before anything is made, so outcomes are averaged in the reward.
`stepwise_law`: the stochastic network whose intentions are codons and whose outcomes are residues, a kernel of A codons
by 21 outcomes. It sees each residue before it chooses the next codon, so its intentions are no library; its law is what
any pool of libraries could reach at best.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config import RewardConfig, TrainConfig
from sgfn.config.checks import in_range, whole_number
from sgfn.design.libraries.codons import LETTERS, RESIDUES, Menu, Supply, all_codons
from sgfn.design.libraries.mixture import Target
from sgfn.design.libraries.scores import LibraryScore
from sgfn.design.libraries.search import Goal, goal_value
from sgfn.envs import SequenceEnv
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build
from sgfn.noise import Mixtures, UniformSlip

PENALTY = 4.0
"""Nats of reward, before the exponent, that each lacking nat of entropy (or of log P(no stop)) costs."""


@dataclass(frozen=True, kw_only=True)
class FlowConfig:
    """How long a network is trained, and how sharp its target is."""

    steps: int = 1000
    """Training steps."""
    batch: int = 32
    """Trajectories of each step."""
    draws: int = 2000
    """Libraries that are drawn in the end."""
    sharpness: float = 8.0
    """Exponent of the reward of a library."""
    hidden: int = 64

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "draws", "hidden"):
            whole_number(f"flow.{name}", getattr(self, name), 2 if name == "batch" else 1, 10**6)
        in_range("flow.sharpness", self.sharpness, 0.0, 1e6)


class LibraryLandscape(Landscape):
    """Rewards of libraries as rows of letters: the goal's value above that of stops, less what the library lacks."""

    maximum, mode_level, on_host = float("inf"), 0.0, True

    def __init__(self, score: LibraryScore, supply: Supply, goal: Goal, seed: int) -> None:
        self.score, self.goal = score, goal
        self.laws = np.array([supply.codon_law(codon) for codon in all_codons()])  # 3375 21
        self.sums = goal.lack(self.laws)
        drawn = np.random.default_rng(seed).integers(len(LETTERS), size=(512, 3 * score.sites))
        worth = self.worth(self.codons(drawn))
        self.low = min(float(worth.min()), score.stop)
        self.scale = max(float(worth.max()) - self.low, 1e-12)

    def codons(self, letters: Int[np.ndarray, "N L"]) -> Int[np.ndarray, "N m"]:
        """Numbers of the codons among all of them."""
        return letters.reshape(len(letters), -1, 3) @ np.array([len(LETTERS) ** 2, len(LETTERS), 1])

    def worth(self, codons: Int[np.ndarray, "N m"]) -> Float64[np.ndarray, " N"]:
        """What each library is worth to the goal."""
        laws = self.laws[codons]
        if self.goal.kind == "mean":
            return self.score.expected(laws)
        return np.array([goal_value(self.score, one, self.goal) for one in laws])

    def attraction(self, letters: Int[np.ndarray, "N L"]) -> Float64[np.ndarray, " N"]:
        """Logarithm of the value above the lowest, less a penalty for what is lacking."""
        codons = self.codons(letters)
        lacking = np.maximum(self.goal.least - self.sums[codons].sum(1), 0.0).sum(1)
        return np.log(np.maximum((self.worth(codons) - self.low) / self.scale, 1e-3)) - PENALTY * lacking

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Exponential of the attraction, between fixed bounds."""
        flat = objects.reshape(-1, objects.shape[-1]).cpu().numpy()
        found = torch.from_numpy(self.attraction(flat)).float().clamp(-30.0, 30.0).exp()
        return found.reshape(objects.shape[:-1]).to(objects.device)

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """The attraction."""
        return self.scores(objects).log()

    def to(self, device: torch.device) -> None:
        """Stay on the host."""


def draw_libraries(
    score: LibraryScore, supply: Supply, goal: Goal, config: FlowConfig | None = None, seed: int = 0
) -> list[tuple[str, ...]]:
    """Codons of libraries that a flow network draws, each once, the most attractive first."""
    config = config or FlowConfig()
    env = SequenceEnv(length=3 * score.sites, alphabet="".join(LETTERS), noise=UniformSlip(alpha=0.0))
    landscape = LibraryLandscape(score, supply, goal, seed)
    learner = _learner(env, landscape, config.sharpness, config, seed)
    for _ in range(config.steps):
        learner.step()
    drawn = torch.cat([part.objects for part in learner.stream(config.draws, seed)]).numpy()
    different = np.unique(drawn, axis=0)
    best = different[np.argsort(-landscape.attraction(different), kind="stable")]
    texts = env.decode(torch.from_numpy(best))
    return [tuple(text[i : i + 3] for i in range(0, len(text), 3)) for text in texts]


def _learner(env: SequenceEnv, landscape: Landscape, beta: float, config: FlowConfig, seed: int) -> Learner:
    settings = _settings(config, "vargrad", seed)
    settings = settings.with_(exploration="local+best", replay__updates=1, replay__capacity=2000)
    task = Task(name="library", summary="codons", env=env, landscape=landscape, beta=beta, config=settings)
    return build(task, torch.device("cpu"), None)


def _settings(config: FlowConfig, objective: str, seed: int) -> TrainConfig:
    return TrainConfig(objective=objective, steps=config.steps, batch=config.batch, seed=seed).with_(
        net__hidden=config.hidden, log__exact_every=0, explore=0.05, optim__lr=3e-3, dynamics__mode="known"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Stepwise:
    """What a stochastic flow network over codons reaches if it sees each residue before the next codon is chosen."""

    law: Float64[np.ndarray, "..."]
    """Of outcomes, one axis for each site."""
    intentions: Int[np.ndarray, "N m"]
    """Codons that it meant in some of its rollouts, by their numbers in the menu."""
    steps: int


class TargetLandscape(Landscape):
    """Log-rewards of outcomes from a table."""

    mode_level = 0.0

    def __init__(self, target: Target) -> None:
        shifted = target - target.max()
        self.table, self.outcomes, self.maximum = torch.from_numpy(shifted.ravel().copy()).float(), target.shape[0], 1.0

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """R, at most one."""
        number = objects[..., 0]
        for place in range(1, objects.shape[-1]):
            number = number * self.outcomes + objects[..., place]
        return self.table[number].exp()

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """log R."""
        return self.scores(objects).clamp(min=1e-30).log()


def stepwise_law(menu: Menu, target: Target, config: FlowConfig | None = None, seed: int = 0) -> Stepwise:
    """What the stochastic flow network over codons reaches when it is trained on p*: its law is computed exactly."""
    config = config or FlowConfig()
    env = SequenceEnv(length=target.ndim, alphabet=RESIDUES, noise=Mixtures(matrix=torch.from_numpy(menu.laws)))
    landscape = TargetLandscape(target)
    task = Task(
        name="codons", summary="residues", env=env, landscape=landscape, beta=1.0, config=_settings(config, "tb", seed)
    )
    learner = build(task, torch.device("cpu"), None)
    for _ in range(config.steps):
        learner.step()
    law = learner.law().double().cpu().numpy().reshape(target.shape)
    meant = torch.cat([part.intended for part in learner.stream(config.draws, seed)]).cpu().numpy()
    return Stepwise(law=law / law.sum(), intentions=meant, steps=config.steps)
