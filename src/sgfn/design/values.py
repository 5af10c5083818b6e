"""Values of orders under the noise, for every member of a proxy: V_m(o) = E[f_m(x) | o].

Exact where all outcomes can be listed; else a mean over draws with common random numbers, so that two orders differ by
what they are and not by luck.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.space import OrderSpace
from sgfn.envs import SequenceEnv

BLOCK = 65536
"""Sequences that the proxy is asked about at once."""

Predict = Callable[[Int[Tensor, "N L"]], Float[Tensor, "M N"]]
"""Scores of sequences by each member of a proxy."""


def by_blocks(predict: Predict, tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
    """Members' scores of any number of sequences."""
    return torch.cat([predict(block) for block in tokens.split(BLOCK)], 1)


def exact_values(space: OrderSpace, table: Float[Tensor, "M N"]) -> Float[Tensor, "M N"]:
    r"""Expected scores of all sequences of one length, in the order of `all_objects`, from a table of their scores.

    .. math:: V(o) = \sum_x \prod_t P_t(x_t | o_t)\, f(x)

    The kernel is applied to one position after the other; rates that are hidden are averaged over.
    """
    env = space.env
    if env.stop or env.noise_by_state:
        raise ValueError("exact values need sequences of one length and noise that does not read the letters")
    roots = [states[:1] for states in env.levels()]
    total = torch.zeros_like(table, dtype=torch.float64)
    for rate, weight in env.noise.rates(env.horizon):
        part = table.double().reshape(-1, *(env.vocab,) * env.length)
        for axis, root in enumerate(roots, start=1):
            kernel = env.operator(root, torch.float64, rate)
            part = kernel.expected(part.movedim(axis, -1)).movedim(-1, axis)
        total += weight * part.reshape(total.shape)
    return total.to(table.dtype)


class SampledChannel:
    """Outcomes of orders with common random numbers: draw s uses the same numbers for every order."""

    def __init__(self, space: OrderSpace, draws: int, seed: int, *, even: bool = True) -> None:
        env = space.env
        if env.noise_by_state or env.noise.stop:
            raise ValueError("orders need noise that reads neither the letters before nor acts on the end")
        generator = torch.Generator().manual_seed(seed)
        self.vocab, self.draws = space.vocab, draws
        self.uniform = (
            stratified(draws, env.length, generator) if even else torch.rand(draws, env.length, generator=generator)
        )
        self.ranked = _own_first(space.vocab)  # A K
        laws = _laws(env, draws, generator)  # S L A K, or 1 L A K where all draws have one law
        self.cumulative = laws.gather(-1, self.ranked.expand(laws.shape)).cumsum(-1)

    def realise(self, orders: Int[Tensor, "N L"]) -> Int[Tensor, "S N L"]:
        """What comes out of each order at each draw."""
        limits = self.cumulative[:, torch.arange(orders.shape[1]), orders.clamp(max=self.vocab - 1)]  # S N L K
        return self._letters(orders, self.uniform[:, None], limits)

    def realise_once(self, orders: Int[Tensor, "S L"]) -> Int[Tensor, "S L"]:
        """What comes out of order s at draw s."""
        draw = torch.arange(len(orders))[:, None].clamp(max=len(self.cumulative) - 1)
        limits = self.cumulative[draw, torch.arange(orders.shape[1]), orders.clamp(max=self.vocab - 1)]  # S L K
        return self._letters(orders, self.uniform, limits)

    def _letters(
        self, orders: Int[Tensor, "N L"], uniform: Float[Tensor, "*#draws L"], limits: Float[Tensor, "*#draws L K"]
    ) -> Int[Tensor, "*out L"]:
        rank = (uniform[..., None] > limits[..., :-1]).sum(-1)
        found = self.ranked[orders.clamp(max=self.vocab - 1).expand(rank.shape), rank]
        return torch.where(orders < self.vocab, found, orders)


def stratified(draws: int, length: int, generator: torch.Generator) -> Float[Tensor, "S L"]:
    """Uniform numbers, at each place one in each of S equal parts of the unit interval, in random order."""
    strata = torch.stack([torch.randperm(draws, generator=generator) for _ in range(length)], 1)
    return (strata + torch.rand(draws, length, generator=generator)) / draws


def _own_first(vocab: int) -> Int[Tensor, "A K"]:
    """For each letter all letters, itself first: then one number makes an error of every order, or of none."""
    return torch.stack([torch.tensor([own, *(k for k in range(vocab) if k != own)]) for own in range(vocab)])


def _laws(env: SequenceEnv, draws: int, generator: torch.Generator) -> Float[Tensor, "S L A K"]:
    """Laws of the letter that is written at each place for each letter ordered, at the rate of each draw."""
    rates = env.noise.draw_rates(draws, generator)
    some: list[float | None] = [None] if rates is None else rates.tolist()
    states = [state[:1] for state in _prefixes(env)]
    laws = [torch.cat([env.operator(s, torch.float32, rate).matrix() for s in states]) for rate in some]
    return torch.stack(laws)[..., : env.vocab, : env.vocab]


def _prefixes(env: SequenceEnv) -> list[Int[Tensor, "1 S"]]:
    """A state with each number of letters written, from none on; noise does not read which."""
    state, found = env.initial(1), []
    for _ in range(env.length):
        found.append(state)
        state = env.apply(state, torch.zeros(1, dtype=torch.int64))
    return found


class OrderValues:
    """V_m(o) of any orders: the members' scores where there is no noise, else means over sampled outcomes."""

    def __init__(self, space: OrderSpace, predict: Predict, draws: int = 16, seed: int = 0) -> None:
        self.space, self.predict = space, predict
        self.channel = None if space.silent else SampledChannel(space, draws, seed)

    @property
    def cost(self) -> int:
        """Sequences that are scored for one order."""
        return 1 if self.channel is None else self.channel.draws

    def __call__(self, orders: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        """Value of each order by each member."""
        if self.channel is None:
            return by_blocks(self.predict, orders)
        blocks = orders.split(max(1, BLOCK // self.channel.draws))
        return torch.cat([self._mean(self.channel, block) for block in blocks], 1)

    def _mean(self, channel: SampledChannel, orders: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        outcomes = channel.realise(orders).flatten(0, 1)
        rows, place = torch.unique(outcomes, dim=0, return_inverse=True)  # most outcomes are the orders themselves
        scores = by_blocks(self.predict, rows)[:, place]
        return scores.view(len(scores), channel.draws, -1).mean(1)
