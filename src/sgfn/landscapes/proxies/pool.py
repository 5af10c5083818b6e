r"""Several kinds of proxy side by side: their mean is the mean of the kinds', and where kinds differ is doubt.

$\mu = \frac1K \sum_k \mu_k$ and $\sigma^2 = \frac1K \sum_k (\sigma_k^2 + \mu_k^2) - \mu^2$; draws are those of all
kinds. Those kinds are pooled whose error out of fold is within a tenth of the smallest. Reference for averages in place
of choices: Breiman (1996), Stacked regressions, Machine Learning 24.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.proxies.base import FittedModel, ProxyModel, TrainingSet

WITHIN = 1.1
"""Kinds are pooled whose root mean squared error out of fold is at most so many times the smallest."""
KINDS = "kinds"


class Pool(ProxyModel):
    """Models of several kinds, all counted alike."""

    def __init__(self, models: Mapping[str, ProxyModel]) -> None:
        self.models = dict(models)
        self.on_host = any(model.on_host for model in self.models.values())

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """Mean over the kinds, and the root of the mean variance and of how far the kinds differ."""
        return pooled([model.moments(tokens) for model in self.models.values()])

    def mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Mean over the kinds."""
        return torch.stack([model.mean(tokens).double() for model in self.models.values()]).mean(0)

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Draws of every kind, one kind after the other."""
        return torch.cat([model.draws(tokens).double() for model in self.models.values()])

    def state(self) -> dict[str, Tensor]:
        """States of all kinds, each under its name, and the names."""
        names = torch.tensor(list(",".join(self.models).encode()), dtype=torch.uint8)
        parts = {f"{kind}.{name}": x for kind, model in self.models.items() for name, x in model.state().items()}
        return parts | {KINDS: names}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "Pool":
        """The model whose `state` was kept."""
        from sgfn.landscapes.proxies.registry import PROXIES  # it names this kind too

        found = {}
        for kind in bytes(state[KINDS].tolist()).decode().split(","):
            if ":" in kind or kind == "pool" or kind not in PROXIES:
                raise ValueError(f"a pool holds no {kind!r}")
            part = {name.removeprefix(f"{kind}."): x for name, x in state.items() if name.startswith(f"{kind}.")}
            found[kind] = PROXIES[kind].restore(part, alphabet)
        return cls(found)

    def to(self, device: torch.device | str) -> None:
        """Move all models to a device."""
        for model in self.models.values():
            model.to(device)


def pooled(moments: Sequence[tuple[Tensor, Tensor]]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Mean and standard deviation of a mixture in equal parts.

    >>> mean, sd = pooled([(torch.tensor([0.0]), torch.tensor([1.0])), (torch.tensor([2.0]), torch.tensor([1.0]))])
    >>> mean.item(), round(sd.item(), 4)
    (1.0, 1.4142)
    """
    means, sds = (torch.stack([one[part].double() for one in moments]) for part in (0, 1))
    return means.mean(0), (sds.square().mean(0) + means.var(0, correction=0)).sqrt()


def pool_of(fitted: Mapping[str, FittedModel], data: TrainingSet) -> FittedModel:
    """The kinds among those fitted that are good enough, as one model; with one alone, a pool of one."""
    errors = {kind: float((data.targets - one.mean).square().mean().sqrt()) for kind, one in fitted.items()}
    kept = {kind: one for kind, one in fitted.items() if errors[kind] <= WITHIN * min(errors.values())}
    mean, sd = pooled([(one.mean, one.sd) for one in kept.values()])
    return FittedModel(model=Pool({kind: one.model for kind, one in kept.items()}), mean=mean, sd=sd)


def fit(data: TrainingSet) -> FittedModel:
    """Fit every kind that suits the data, and pool the good ones."""
    from sgfn.landscapes.proxies.registry import AUTO, PROXIES, kinds_for  # it names this kind too

    return pool_of({kind: PROXIES[kind].fit(data) for kind in kinds_for(AUTO, data)}, data)
