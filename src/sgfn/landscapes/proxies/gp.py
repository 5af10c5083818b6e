r"""Exact Gaussian process over sequences: similar letters at each position make similar scores.

$k(x, x') = s\,e^{-|z(x) - z(x')|^2} + u(x)\cdot u(x')$, where z and u hold a code of each letter times a weight of its
position, and the composition where lengths differ. Weights, s and the noise maximise the marginal likelihood with weak
priors. References: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning (sections 2.3 and 5.4.2);
Wilson et al. (2020), Efficiently sampling functions from Gaussian process posteriors, ICML (draws).
"""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.landscapes.proxies.base import DRAWS, FittedModel, ProxyModel, TrainingSet, blocks
from sgfn.landscapes.proxies.letters import code_parts, composition, letter_codes

MOST_ROWS = 5_000
"""Sequences at most: time grows with the cube of their number."""
TUNED_ON = 300
"""Rows on which weights are tuned; the posterior takes all of them."""
STEPS, RATE = 40, 0.1
WAVES = 512
"""Random cosines that make one prior draw."""
FLOOR = 1e-3
"""Least variance of the noise in units of the scores' variance; it keeps the matrix well conditioned."""

Parameters = dict[str, Tensor]


def first_parameters(length: int) -> Parameters:
    """Logarithms of weights at which tuning starts, and around which the priors lie."""
    return {
        "near": torch.full(
            (length + 1,), math.log(2.0 / length), dtype=torch.float64
        ),  # weights in z, composition last
        "linear": torch.full((length + 1,), math.log(0.5 / length), dtype=torch.float64),  # weights in u
        "signal": torch.tensor(-0.5, dtype=torch.float64),
        "noise": torch.tensor(-2.0, dtype=torch.float64),
        "similar": torch.tensor(0.0, dtype=torch.float64),  # logit of the share of amino acids' similarity
    }


class GaussianProcess(ProxyModel):
    """Posterior given the training rows."""

    def __init__(self, alphabet: str, state: Mapping[str, Tensor]) -> None:
        self.alphabet, self.parts = alphabet, code_parts(alphabet)
        self.codes = letter_codes(alphabet)
        self.near, self.linear, self.scale = state["near"], state["linear"], state["scale"]
        self.signal, self.noise, self.similar = state["signal"], state["noise"], state["similar"]
        self.tokens, self.composed = state["tokens"], bool(state["scale"] > 0)
        self.coded_rows: list[Tensor] = []
        self.factor, self.solved = state["factor"], state["solved"]
        self.waves, self.phases, self.start, self.slope = (state[n] for n in ("waves", "phases", "start", "slope"))

    # Kernel

    def coded(self, tokens: Int[Tensor, "N L"], weights: Tensor) -> Float64[Tensor, "N Z"]:
        """Codes of all letters, each times the root of its position's weight; the composition last."""
        share = torch.sigmoid(self.similar)
        parts = self.codes.split(self.parts, 1)
        mixed = parts[0] if len(parts) == 1 else torch.cat([parts[0] * (1 - share).sqrt(), parts[1] * share.sqrt()], 1)
        root = (0.5 * weights).exp()
        letters = (mixed[tokens] * root[:-1, None]).flatten(1)
        if not self.composed:
            return letters
        whole = composition(tokens, len(self.alphabet)).to(letters.dtype)
        return torch.cat([letters, whole * self.scale * root[-1] * math.sqrt(self.near.shape[0] - 1.0)], 1)

    def kernel(self, one: Sequence[Tensor], other: Sequence[Tensor]) -> Float64[Tensor, "N K"]:
        """Covariance of rows given by their codes z and u."""
        (z, u), (other_z, other_u) = one, other
        distance = z.square().sum(1)[:, None] + other_z.square().sum(1) - 2 * z @ other_z.T
        return self.signal.exp() * torch.exp(-distance) + u @ other_u.T

    def both(self, tokens: Int[Tensor, "N L"]) -> tuple[Tensor, Tensor]:
        """Codes z and u of rows."""
        return self.coded(tokens, self.near), self.coded(tokens, self.linear)

    def known(self) -> list[Tensor]:
        """Codes of the training rows, computed once."""
        if not self.coded_rows:
            self.coded_rows = list(self.both(self.tokens))
        return self.coded_rows

    def spread(self) -> Tensor:
        """Variance of the noise."""
        return self.noise.exp() + FLOOR

    # Posterior

    def moments(self, tokens: Int[Tensor, "N L"]) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
        r"""$k_* K^{-1} y$ and the root of $k_{**} - k_* K^{-1} k_*^T$."""
        mean, variance, known = [], [], self.known()
        for part in blocks(tokens, self.tokens.shape[0]):
            codes = self.both(part)
            shared = self.kernel(codes, known)
            mean.append(shared @ self.solved[:, 0])
            explained = torch.linalg.solve_triangular(self.factor, shared.T, upper=False).square().sum(0)
            variance.append(self.signal.exp() + codes[1].square().sum(1) - explained)
        return torch.cat(mean), torch.cat(variance).clamp(min=1e-12).sqrt()

    def mean(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
        """Mean of each row's score."""
        known = self.known()
        parts = blocks(tokens, self.tokens.shape[0])
        return torch.cat([self.kernel(self.both(part), known) @ self.solved[:, 0] for part in parts])

    def prior_draws(self, codes: tuple[Tensor, Tensor]) -> Float64[Tensor, "N M"]:
        """Functions of the prior: random cosines for the first term of the kernel, random weights for the second."""
        height = (self.signal.exp() * 2 / WAVES).sqrt()
        return height * torch.cos(codes[0] @ self.waves + self.phases) @ self.start + codes[1] @ self.slope

    def draws(self, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Functions of the posterior: those of the prior, corrected by what was measured."""
        found, known = [], self.known()
        for part in blocks(tokens, max(self.tokens.shape[0], WAVES)):
            codes = self.both(part)
            found.append(self.prior_draws(codes) + self.kernel(codes, known) @ self.solved[:, 1:])
        return torch.cat(found).T

    def state(self) -> dict[str, Tensor]:
        """Weights, training rows, and what was solved for them."""
        names = ("near", "linear", "scale", "signal", "noise", "similar", "tokens", "factor", "solved")
        return {name: getattr(self, name) for name in (*names, "waves", "phases", "start", "slope")}

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], alphabet: str) -> "GaussianProcess":
        """The model whose `state` was kept."""
        return cls(alphabet, state)


def fit(data: TrainingSet) -> FittedModel:
    """Tune the weights, then condition on all rows; predictions out of fold are exact given the weights."""
    rows = data.tokens.shape[0]
    if rows > MOST_ROWS:
        raise ValueError(f"proxy 'gp' takes at most {MOST_ROWS:,} sequences, got {rows:,}: choose ensemble or ridge")
    noise = data.noise.square() + (1.0 / data.weights - 1.0).clamp(min=0.0)
    model = _blank(data)
    _tune(model, data, noise)
    codes = model.both(data.tokens)
    matrix = model.kernel(codes, codes) + torch.diag(model.spread() + noise)
    model.factor = torch.linalg.cholesky(matrix)
    generator = torch.Generator().manual_seed(data.seed)
    _draw_prior(model, codes, generator)
    error = (
        torch.randn(rows, DRAWS, generator=generator, dtype=torch.float64) * (model.spread() + noise).sqrt()[:, None]
    )
    missed = data.targets[:, None] - model.prior_draws(codes) - error
    model.solved = torch.cholesky_solve(torch.cat([data.targets[:, None], missed], 1), model.factor)
    mean, sd = out_of_fold(model, data, model.spread() + noise)
    return FittedModel(model=model, mean=mean, sd=sd)


def _blank(data: TrainingSet) -> GaussianProcess:
    """A process that has not seen anything; the composition is scaled to a mean squared distance of 1."""
    found = composition(data.tokens, len(data.alphabet)).double()
    scale = 1.0 / (2 * found.var(0, correction=0).sum()).clamp(min=1e-6).sqrt() if data.variable else torch.zeros(())
    empty = torch.zeros(0, dtype=torch.float64)
    state = first_parameters(data.tokens.shape[1]) | {"scale": scale.double(), "tokens": data.tokens}
    names = ("factor", "solved", "waves", "phases", "start", "slope")
    return GaussianProcess(data.alphabet, state | dict.fromkeys(names, empty))


def _tune(model: GaussianProcess, data: TrainingSet, noise: Tensor) -> None:
    """Maximise the marginal likelihood of some rows, with a prior of standard deviation 2 on each logarithm."""
    first = first_parameters(data.tokens.shape[1])
    for name in first:
        setattr(model, name, first[name].clone().requires_grad_())
    tuned = [getattr(model, name) for name in first]
    chosen = torch.randperm(data.tokens.shape[0], generator=torch.Generator().manual_seed(data.seed))[:TUNED_ON]
    tokens, targets, noise = data.tokens[chosen], data.targets[chosen], noise[chosen]
    optimiser = torch.optim.Adam(tuned, lr=RATE)
    with torch.enable_grad():
        for _ in range(STEPS):
            codes = model.both(tokens)
            factor = torch.linalg.cholesky(model.kernel(codes, codes) + torch.diag(model.spread() + noise))
            solved = torch.cholesky_solve(targets[:, None], factor)[:, 0]
            loss = 0.5 * targets @ solved + factor.diagonal().log().sum()
            loss = loss + sum((getattr(model, name) - first[name]).square().sum() for name in first) / 8
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    for name in first:
        setattr(model, name, getattr(model, name).detach())


def _draw_prior(model: GaussianProcess, codes: tuple[Tensor, Tensor], generator: torch.Generator) -> None:
    """Choose the functions of the prior; $e^{-d^2}$ has Gaussian frequencies of variance 2."""
    drawn = {"generator": generator, "dtype": torch.float64}
    model.waves = torch.randn(codes[0].shape[1], WAVES, **drawn) * math.sqrt(2)
    model.phases = torch.rand(WAVES, **drawn) * 2 * math.pi
    model.start = torch.randn(WAVES, DRAWS, **drawn)
    model.slope = torch.randn(codes[1].shape[1], DRAWS, **drawn)


def out_of_fold(model: GaussianProcess, data: TrainingSet, noise: Tensor) -> tuple[Tensor, Tensor]:
    r"""Predictions of each fold from the others, $e_f = Q_{ff}^{-1} (Q y)_f$ with $Q = K^{-1}$; noise left out."""
    inverse = torch.cholesky_inverse(model.factor)
    mean, variance = data.targets.clone(), torch.zeros_like(data.targets)
    for number in range(data.folds):
        out = (data.fold == number).nonzero()[:, 0]
        block = torch.linalg.inv(inverse[out][:, out])
        mean[out] -= block @ model.solved[out, 0]
        variance[out] = block.diagonal() - noise[out]
    return mean, variance.clamp(min=1e-12).sqrt()
