"""Values of orders under the noise, for every member of a proxy: V_m(o) = E[f_m(x) | o].

Exact where all outcomes can be listed; else a mean over draws with common random numbers, so that two orders differ by
what they are and not by luck.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.design.space import OrderSpace
from sgfn.envs import IndelEnv, SequenceEnv
from sgfn.noise.indel import Indel
from sgfn.noise.open_loop import cycle_draws, own_first, plain_draws, realise, realise_once, table_entries

BLOCK = 65536
"""Sequences that the proxy is asked about at once."""
MOST_VALUES = 8_000_000
"""Numbers at most in the tables from which values of all orders are computed where letters are skipped."""

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
    if isinstance(space.channel, IndelEnv):
        return torch.stack([space.channel.value_table(row, space.failed) for row in table]).to(table.dtype)
    roots = [states[:1] for states in env.levels()]
    total = torch.zeros_like(table, dtype=torch.float64)
    for rate, weight in env.noise.rates(env.horizon):
        part = table.double().reshape(-1, *(env.vocab,) * env.length)
        for axis, root in enumerate(roots, start=1):
            kernel = env.operator(root, torch.float64, rate)
            part = kernel.expected(part.movedim(axis, -1)).movedim(-1, axis)
        total += weight * part.reshape(total.shape)
    return total.to(table.dtype)


def all_exact(space: OrderSpace, most: int) -> bool:
    """Whether the values of all orders can be had from scores of `most` sequences at most, all of one length."""
    if space.env.stop or space.env.num_objects > most:
        return False
    return not isinstance(space.noise, Indel) or table_entries(space.noise, space.max_length) <= MOST_VALUES


def read_by(space: OrderSpace, predict: Predict) -> Predict:
    """Members' scores of what comes out: as it is read with the flank behind it, a failure where it lacks letters."""
    channel = space.channel
    if not isinstance(channel, IndelEnv):
        return predict

    def scores(tokens: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        rows, fits = channel.read(tokens), channel.admissible(tokens)
        found = predict(torch.where(fits[:, None], rows, 0))
        return torch.where(fits, found, space.failed)

    return scores


class CycleChannel:
    """Outcomes of orders whose letters are skipped or inserted, with common random numbers."""

    def __init__(self, space: OrderSpace, draws: int, seed: int, *, even: bool = True) -> None:
        assert isinstance(space.noise, Indel)
        generator = torch.Generator().manual_seed(seed)
        self.noise, self.width, self.draws = space.noise, space.max_length, draws
        self.numbers = (cycle_draws if even else plain_draws)(draws, space.max_length, generator)

    def realise(self, orders: Int[Tensor, "N L"]) -> Int[Tensor, "S N L"]:
        """What comes out of each order at each draw."""
        return realise(self.noise, orders, self.numbers, self.width)

    def realise_once(self, orders: Int[Tensor, "S L"]) -> Int[Tensor, "S L"]:
        """What comes out of order s at draw s."""
        return realise_once(self.noise, orders, self.numbers, self.width)


def sampled_channel(space: OrderSpace, draws: int, seed: int, *, even: bool = True) -> "SampledChannel | CycleChannel":
    """Draws of what comes out of orders under the noise of a space."""
    kind = CycleChannel if space.noise.changes_length else SampledChannel
    return kind(space, draws, seed, even=even)


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
        self.ranked = own_first(space.vocab)  # A K
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
        self.space, self.predict = space, read_by(space, predict)
        self.channel = None if space.silent else sampled_channel(space, draws, seed)

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

    def _mean(self, channel: SampledChannel | CycleChannel, orders: Int[Tensor, "N L"]) -> Float[Tensor, "M N"]:
        outcomes = channel.realise(orders).flatten(0, 1)
        rows, place = torch.unique(outcomes, dim=0, return_inverse=True)  # most outcomes are the orders themselves
        scores = by_blocks(self.predict, rows)[:, place]
        return scores.view(len(scores), channel.draws, -1).mean(1)
