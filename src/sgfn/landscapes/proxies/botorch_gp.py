"""BoTorch's Gaussian process over one-hot letters, from the extra `sgfn[gp]`: a proxy to compare ours with.

Balandat et al. (2020), BoTorch: a framework for efficient Monte-Carlo Bayesian optimization, NeurIPS. Functions are
drawn by Matheron's rule, as Wilson et al. (2020), ICML, have it. `auto` does not try it: it is slower than `gp`.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config.extras import optional
from sgfn.landscapes.proxies.base import DRAWS, FittedModel, ProxyModel, TrainingSet, blocks
from sgfn.landscapes.proxies.letters import one_hot

MOST_ROWS = 5_000
"""Sequences at most: time grows with the cube of their number."""
PARAMETER = "parameter."


@contextmanager
def quiet() -> Iterator[None]:
    """Keep back warnings of BoTorch: of what it imports, of scales (ours are standard) and of optimiser restarts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def module(name: str) -> Any:
    """A module of BoTorch or GPyTorch, or an error that names the extra."""
    with quiet():
        return optional(name, "proxy 'botorch'", "take --proxy gp")


class BotorchProcess(ProxyModel):
    """A single-task Gaussian process, given its training rows, its parameters and the seed of its draws.

    It stays on the host, and answers on the device that it is asked on.
    """

    def __init__(self, rows: Mapping[str, Tensor], letters: int) -> None:
        self.letters, self.rows = letters, dict(rows)
        models = module("botorch.models")
        inputs, targets = self.inputs(self.rows["tokens"]), self.rows["targets"][:, None]
        with quiet():
            self.process = models.SingleTaskGP(inputs, targets, outcome_transform=None)

    def inputs(self, tokens: Int[Tensor, "N L"]) -> Float64[Tensor, "N F"]:
        """One-hot letters; the blank is a letter too."""
        return one_hot(tokens.cpu(), self.letters + 1).flatten(1).double()

    def to(self, device: torch.device | str) -> None:
        """Nothing: rows come to the host."""

    def fit(self) -> None:
        """Tune the parameters by the marginal likelihood."""
        likelihood = module("gpytorch.mlls").ExactMarginalLogLikelihood(self.process.likelihood, self.process)
        with torch.enable_grad(), quiet():
            module("botorch.fit").fit_gpytorch_mll(likelihood)
        self.process.eval()

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        """Mean and standard deviation of the posterior."""
        found = [self.process.posterior(self.inputs(part)) for part in blocks(tokens, len(self.rows["tokens"]))]
        mean, variance = (torch.cat([getattr(x, name)[:, 0] for x in found]) for name in ("mean", "variance"))
        return mean.to(tokens.device), variance.sqrt().to(tokens.device)

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Functions of the posterior, the same ones in every call."""
        pathwise = module("botorch.sampling.pathwise")
        with torch.random.fork_rng(devices=[]), quiet():
            torch.manual_seed(int(self.rows["seed"]))
            paths = pathwise.draw_matheron_paths(self.process, torch.Size([DRAWS]))
        parts = [paths(self.inputs(part)) for part in blocks(tokens, len(self.rows["tokens"]))]
        return torch.cat([part.reshape(DRAWS, -1) for part in parts], 1).to(tokens.device)

    def state(self) -> dict[str, Tensor]:
        """Training rows, the seed, and the parameters."""
        return self.rows | {f"{PARAMETER}{name}": value for name, value in self.process.state_dict().items()}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "BotorchProcess":
        """The model whose `state` was kept."""
        found = cls({name: state[name] for name in ("tokens", "targets", "seed")}, len(alphabet))
        kept = {name.removeprefix(PARAMETER): x for name, x in state.items() if name.startswith(PARAMETER)}
        found.process.load_state_dict(kept)
        found.process.eval()
        return found


def fit(data: TrainingSet) -> FittedModel:
    """Tune the parameters on all rows; predictions out of fold are exact given the parameters."""
    if (rows := data.tokens.shape[0]) > MOST_ROWS:
        raise ValueError(
            f"proxy 'botorch' takes at most {MOST_ROWS:,} sequences, got {rows:,}: choose ensemble or ridge"
        )
    kept = {"tokens": data.tokens, "targets": data.targets, "seed": torch.tensor(data.seed)}
    model = BotorchProcess(kept, len(data.alphabet))
    model.fit()
    mean, sd = out_of_fold(model, data)
    return FittedModel(model=model, mean=mean, sd=sd)


@torch.no_grad()
def out_of_fold(model: BotorchProcess, data: TrainingSet) -> tuple[Float64[Tensor, " N"], Float64[Tensor, " N"]]:
    r"""Predictions of each fold from the others, $e_f = Q_{ff}^{-1} (Q (y - m))_f$, $Q = K^{-1}$; noise left out."""
    inputs, noise = model.inputs(data.tokens), float(model.process.likelihood.noise)
    covariance = model.process.covar_module(inputs).to_dense() + noise * torch.eye(len(inputs), dtype=torch.float64)
    inverse = torch.linalg.inv(covariance)
    missed = inverse @ (data.targets - model.process.mean_module(inputs))
    mean, variance = data.targets.clone(), torch.zeros_like(data.targets)
    for number in range(data.folds):
        out = (data.fold == number).nonzero()[:, 0]
        block = torch.linalg.inv(inverse[out][:, out])
        mean[out] -= block @ missed[out]
        variance[out] = block.diagonal() - noise
    return mean, variance.clamp(min=1e-12).sqrt()
