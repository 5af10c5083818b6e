r"""An ensemble of networks and a ridge regression, weighed by their errors out of fold.

$f = (1 - r) f_e + r f_r$ with the share r of the ridge that has the least squared error out of fold, less one standard
error of it, within 0 and 1: where few rows cannot tell the two apart the ensemble is kept. Member m of the draws mixes
member m of the ensemble with draw m of the posterior of the ridge. Reference: Breiman (1996), Stacked regressions,
Machine Learning 24.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.landscapes.proxies import ensemble, ridge
from sgfn.landscapes.proxies.base import FittedModel, ProxyModel, TrainingSet

CAUTION = 1.0
"""Standard errors that are taken off the ridge's share."""
PARTS = ("networks.", "linear.")


class Stacked(ProxyModel):
    """The weighted mean of an ensemble and a ridge regression."""

    def __init__(self, networks: ProxyModel, linear: ProxyModel, share: float) -> None:
        self.networks, self.linear, self.share = networks, linear, share

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """Weighted mean, and the standard deviation of a draw."""
        return mixed(self.networks.moments(tokens), self.linear.moments(tokens), self.share)

    def mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Weighted mean."""
        return torch.lerp(self.networks.mean(tokens).double(), self.linear.mean(tokens).double(), self.share)

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Each member of the ensemble with a draw of the ridge's weights."""
        members, drawn = self.networks.draws(tokens).double(), self.linear.draws(tokens).double()
        return torch.lerp(members, drawn[torch.arange(len(members)) % len(drawn)], self.share)

    def state(self) -> dict[str, Tensor]:
        """States of both, and the share."""
        both = zip(PARTS, (self.networks.state(), self.linear.state()), strict=True)
        found = {part + name: value for part, state in both for name, value in state.items()}
        return found | {"share": torch.tensor(self.share, dtype=torch.float64)}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "Stacked":
        """The model whose `state` was kept."""
        networks, linear = (
            {name.removeprefix(part): value for name, value in state.items() if name.startswith(part)} for part in PARTS
        )
        share = float(state["share"])
        return cls(ensemble.Ensemble.restore(networks, alphabet), ridge.Ridge.restore(linear, alphabet), share)

    def to(self, device: torch.device | str) -> None:
        """Move both to a device."""
        self.networks.to(device)
        self.linear.to(device)


Moments = tuple[Float[Tensor, " N"], Float[Tensor, " N"]]


def mixed(networks: Moments, linear: Moments, share: float) -> Moments:
    """Mean and standard deviation of a weighted sum of independent draws.

    >>> one, other = (torch.tensor([0.0]), torch.tensor([3.0])), (torch.tensor([1.0]), torch.tensor([4.0]))
    >>> [round(value.item(), 2) for value in mixed(one, other, 0.5)]
    [0.5, 2.5]
    """
    mean = torch.lerp(networks[0].double(), linear[0].double(), share)
    return mean, ((1 - share) ** 2 * networks[1].double().square() + share**2 * linear[1].double().square()).sqrt()


def share_of(
    networks: Float64[Tensor, " N"],
    linear: Float64[Tensor, " N"],
    targets: Float64[Tensor, " N"],
    weights: Float64[Tensor, " N"],
) -> float:
    r"""Share of the second of two predictions out of fold: least squares, less its standard error, within 0 and 1.

    $r = \sum \omega d e / \sum \omega d^2$ with $d$ the difference of the two and $e$ the error of the first; its
    variance is $\sum (\omega d (e - r d))^2 / (\sum \omega d^2)^2$, whatever the errors' variances are.
    """
    apart, error = linear - networks, targets - networks
    size = (weights * apart.square()).sum().clamp(min=1e-12)
    share = (weights * apart * error).sum() / size
    doubt = (weights * apart * (error - share * apart)).square().sum().sqrt() / size
    return float((share - CAUTION * doubt).clamp(0, 1))


def fit(data: TrainingSet) -> FittedModel:
    """Fit both to all rows, and weigh them by what they predicted out of fold."""
    networks, linear = ensemble.fit_letters(data), ridge.fit(data)
    share = share_of(networks.mean, linear.mean, data.targets, data.reliability)
    mean, sd = mixed((networks.mean, networks.sd), (linear.mean, linear.sd), share)
    return FittedModel(model=Stacked(networks.model, linear.model, share), mean=mean, sd=sd)
