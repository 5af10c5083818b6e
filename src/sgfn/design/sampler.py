"""A flow network that draws orders in proportion to what the acquisition promises: it brings variety to a search.

It is trained for seconds, half of each batch on the best orders known, with local search around the best that it meets,
and goes on in the next round from the weights of the last one.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.config import RewardConfig, TrainConfig
from sgfn.config.checks import in_range, whole_number
from sgfn.design.search import Rows
from sgfn.design.space import OrderSpace
from sgfn.design.values import Predict
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.tasks import Task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import build

WAYS, KEPT = "local+best", 2000
"""How it explores: edits of the best, stretches of their trajectories that the policy takes back and builds anew, and
replay of the best; and how many trajectories are kept for that."""
Weights = dict[str, Tensor]
"""Tensors of the networks by name, as a safetensors file holds them."""


@dataclass(frozen=True, kw_only=True)
class SamplerConfig:
    """How long the flow network is trained, and how sharp its target is."""

    steps: int = 100
    """Training steps in each round; 0 leaves the network out."""
    batch: int = 64
    """Trajectories of each step, half of them from the best orders known."""
    draws: int = 2000
    """Orders drawn from it to start the search with."""
    sharpness: float = 6.0
    """Exponent: log-reward is this many times the attraction in standard deviations."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("batch", 2), ("draws", 1)):
            whole_number(f"flow.{name}", getattr(self, name), least, 10**6)
        in_range("flow.sharpness", self.sharpness, 0.0, 1e6)


class AcquisitionLandscape(Landscape):
    """Log-rewards from an acquisition: the mean of its rows, in standard deviations of the orders known so far."""

    maximum, mode_level, on_host = float("inf"), 0.0, True

    def __init__(self, predict: Predict, rows: Rows, known: Int[Tensor, "N L"]) -> None:
        self.predict, self.rows, self.known = predict, rows, known
        reference = self._mean(known)
        self.centre, self.scale = float(reference.mean()), max(float(reference.std(correction=0)), 1e-6)

    def _mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        return self.rows(self.predict(tokens)).mean(0).float()

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Attraction in standard deviations, as a positive number."""
        flat = objects.reshape(-1, objects.shape[-1]).cpu()
        found = (self._mean(flat) - self.centre) / self.scale
        return found.clamp(-8.0, 8.0).exp().reshape(objects.shape[:-1]).to(objects.device)

    def log_reward(self, objects: Int[Tensor, "*batch O"], config: RewardConfig) -> Float[Tensor, "*batch"]:
        """Logarithm of the scores, which lies between -8 and 8."""
        return self.scores(objects).log()

    def offline_objects(self) -> Int[Tensor, "N O"]:
        """The best orders known."""
        return self.known

    def to(self, device: torch.device) -> None:
        """Stay where the proxy is."""


def draw_orders(
    space: OrderSpace,
    predict: Predict,
    rows: Rows,
    known: Int[Tensor, "N L"],
    config: SamplerConfig,
    seed: int = 0,
    weights: Weights | None = None,
) -> tuple[Int[Tensor, "D L"], Weights]:
    """Orders drawn by a flow network that was trained on an acquisition, and its weights for the next round.

    `known` are good orders to learn from; weights of another space are passed over.
    """
    learner = _learner(space, AcquisitionLandscape(predict, rows, known), config, seed)
    if weights is not None:
        _load(learner, weights)
    for _ in range(config.steps):
        learner.step()
    drawn = torch.cat([part.objects for part in learner.stream(config.draws, seed)])
    return drawn[space.allowed(drawn)], _weights(learner)


def _learner(space: OrderSpace, landscape: Landscape, config: SamplerConfig, seed: int) -> Learner:
    settings = TrainConfig(objective="vargrad", steps=max(config.steps, 1), batch=config.batch, seed=seed).with_(
        offline__share=0.5, net__hidden=64, log__exact_every=0, explore=0.05, optim__lr=3e-3, dynamics__mode="known"
    )
    settings = settings.with_(exploration=WAYS, replay__updates=1, replay__capacity=KEPT, replay__batch=config.batch)
    env = space.order_env()
    task = Task(name="design", summary="orders", env=env, landscape=landscape, beta=config.sharpness, config=settings)
    return build(task, torch.device("cpu"), landscape.offline_objects())


def _weights(learner: Learner) -> Weights:
    """Copies of the networks' tensors."""
    parts = {f"{name}.{key}": value for name, m in learner.modules().items() for key, value in m.state_dict().items()}
    return {name: value.detach().clone().contiguous() for name, value in parts.items()}


def _load(learner: Learner, weights: Weights) -> None:
    """Begin with these weights, if they fit and are finite."""
    mine = _weights(learner)
    fits = mine.keys() == weights.keys() and all(weights[name].shape == value.shape for name, value in mine.items())
    if fits and all(bool(value.isfinite().all()) for value in weights.values()):
        for name, module in learner.modules().items():
            own = {key.removeprefix(f"{name}."): v for key, v in weights.items() if key.startswith(f"{name}.")}
            module.load_state_dict(own)
