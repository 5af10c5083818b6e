"""Optimisers whose rates live in tensors, so that a schedule needs no host."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sgfn.config import OptimConfig

Groups = list[tuple[list[nn.Parameter], float]]


class Optimiser:
    """Adam over groups of (parameters, rate), with one gradient-norm clip."""

    def __init__(self, groups: Groups, clip: float, device: torch.device) -> None:
        self.clip = clip
        self.parameters = [p for parameters, _ in groups for p in parameters]
        self.rates = [rate for _, rate in groups]
        self.adam = torch.optim.Adam(
            [{"params": p, "lr": torch.tensor(rate, device=device)} for p, rate in groups],
            fused=True,
            capturable=device.type == "cuda",
        )

    def step(self, loss: Float[Tensor, ""], factor: Float[Tensor, ""]) -> None:
        """One update at `factor` times the base rates."""
        for group, rate in zip(self.adam.param_groups, self.rates, strict=True):
            group["lr"].copy_(rate * factor)
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.adam.step()

    def state(self) -> dict[str, Tensor]:
        """Moments and counters, named by parameter number."""
        return {
            f"{i}.{name}": value for i, p in enumerate(self.parameters) for name, value in self.adam.state[p].items()
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Put moments and counters back."""
        for i, parameter in enumerate(self.parameters):
            mine = {n.partition(".")[2]: v for n, v in state.items() if n.partition(".")[0] == str(i)}
            if mine:
                self.adam.state[parameter] = mine


def schedule(step: Float[Tensor, ""], steps: int, config: OptimConfig) -> Float[Tensor, ""]:
    r"""Linear warm-up, then cosine decay to a share f: $\min(1, (t+1)/w)\,(f + (1-f)(1+\cos(\pi t/n))/2)$.

    >>> config = OptimConfig(warmup=10, final=0.1)
    >>> [round(schedule(torch.tensor(t), 100, config).item(), 3) for t in (0.0, 50.0, 100.0)]
    [0.1, 0.55, 0.1]
    """
    warm = ((step + 1.0) / max(1, config.warmup)).clamp(max=1.0)
    cosine = (1.0 + torch.cos(math.pi * step / steps)) / 2.0
    return warm * (config.final + (1.0 - config.final) * cosine)
