"""Probability that what comes out of an order breaks a constraint, exact by dynamic programming (method, 14)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.envs.automaton import START, Automaton
from sgfn.envs.sequence import SequenceEnv
from sgfn.noise import Noise
from sgfn.noise.indel import Indel

LARGEST_BLOCK = 8_000_000
"""Numbers in one block of probabilities, orders times nodes, which bounds memory."""


def violation_probability(automaton: Automaton, order: str, noise: Noise) -> float:
    """P(what comes out breaks a constraint) when one sequence is ordered: see `violation_probabilities`."""
    return float(violation_probabilities(automaton, automaton.rows([order]), noise)[0])


def violation_probabilities(automaton: Automaton, orders: Int[Tensor, "N L"], noise: Noise) -> Float[Tensor, " N"]:
    r"""P(what comes out of each order breaks a constraint), with orders as rows of letters, V behind them.

    The law over nodes is carried from position to position,

    .. math:: p_{t+1}(n') = \sum_n p_t(n) \sum_{v: n \to n'} P_t(v|o_t),

    and what ends in a node where a sequence may end satisfies the constraints, all else breaks one. Under a hidden rate
    it is the mean over rates, which the quadrature of the noise makes exact. Orders are those of a task with the
    automaton's lengths: where they vary an order ends by stop, on which noise acts if `noise.stop` says so.
    """
    varies = automaton.min_length < automaton.max_length
    least = {"stop": True, "min_length": automaton.min_length} if varies else {}
    channel = SequenceEnv(length=automaton.max_length, alphabet=automaton.alphabet, noise=noise, **least)
    if channel.actions != channel.outcomes:
        raise ValueError("violations are of orders letter by letter: mixtures have none")
    widest = max(stop - start for start, stop in zip(automaton.offsets, automaton.offsets[1:], strict=False))
    block = max(1, LARGEST_BLOCK // max(1, widest))
    parts = [_accepted(automaton, channel, part) for part in orders[:, : automaton.max_length].split(block)]
    return (1.0 - torch.cat(parts)).clamp(0.0, 1.0) if parts else torch.zeros(0, dtype=torch.float64)


def _accepted(automaton: Automaton, channel: SequenceEnv, orders: Int[Tensor, "N L"]) -> Float[Tensor, " N"]:
    """Probability that what comes out satisfies the constraints, averaged over hidden rates."""
    found = torch.zeros(orders.shape[0], dtype=torch.float64)
    for rate, weight in channel.noise.rates(channel.horizon):
        found += weight * _accepted_at(automaton, channel, orders, rate)
    return found


def _accepted_at(
    automaton: Automaton, channel: SequenceEnv, orders: Int[Tensor, "N L"], rate: float | None
) -> Float[Tensor, " N"]:
    count, vocab = orders.shape[0], automaton.vocab
    found = torch.zeros(count, dtype=torch.float64)
    mass = torch.ones(count, 1, dtype=torch.float64)  # over the nodes of prefixes of the present length: the root
    intended = orders.clamp(max=channel.actions - 1)  # what is no letter has the code of stop
    prefix = channel.initial(1)
    for length in range(automaton.max_length):
        here, after = automaton.level(length), automaton.level(length + 1)
        law = channel.operator(prefix.expand(count, -1), torch.float64, rate).row(intended[:, length])  # N K
        if channel.stop:
            found += law[:, vocab] * (mass * automaton.final[here]).sum(-1)
        moved = torch.zeros(count, after.stop - after.start, dtype=torch.float64)
        for letter in range(vocab):
            target = automaton.following[here, letter].long()
            kept = target > 0
            moved.index_add_(1, target[kept] - after.start, mass[:, kept] * law[:, letter, None])
        mass = moved
        prefix = channel.apply(prefix, torch.zeros(1, dtype=torch.int64))  # noise depends on the position alone
    ends = automaton.final[automaton.level(automaton.max_length)]
    return found + (mass * ends).sum(-1)


def violations_in_cycles(automaton: Automaton, orders: Int[Tensor, "N L"], noise: Indel) -> Float[Tensor, " N"]:
    """P(what comes out of each order breaks a constraint, or lacks letters) where letters are skipped and inserted.

    The law over all nodes is carried from cycle to cycle: nothing moves it, a letter moves it once, two twice. Letters
    beyond the longest sequence are not read, and a flank is read behind the last one.
    """
    block = max(1, LARGEST_BLOCK // max(1, automaton.states))
    parts = [_accepted_in_cycles(automaton, part, noise) for part in orders.split(block)]
    return (1.0 - torch.cat(parts)).clamp(0.0, 1.0) if parts else torch.zeros(0, dtype=torch.float64)


def _accepted_in_cycles(automaton: Automaton, orders: Int[Tensor, "N L"], noise: Indel) -> Float[Tensor, " N"]:
    (law, lost, added), vocab = noise.tables(), automaton.vocab
    following = automaton.following.long().clone()
    last = automaton.level(automaton.max_length)
    following[last] = torch.arange(last.start, last.stop)[:, None]  # what is full is read no further
    mass = torch.zeros(orders.shape[0], automaton.states, dtype=torch.float64)
    mass[:, START] = 1.0

    def moved(mass: Tensor, letters: Tensor) -> Tensor:
        """The law after one more letter, each with its probability, a row for each order."""
        after = torch.zeros_like(mass)
        for letter in range(vocab):
            after.index_add_(1, following[:, letter], mass * letters[:, letter, None])
        return after

    for t, letter in enumerate(orders.T):
        cycle, intended = min(t, len(lost) - 1), letter.clamp(max=vocab - 1)
        out, more = lost[cycle, intended][:, None], added[cycle, intended][:, None]
        once = moved(mass, law[cycle, intended])
        after = out * mass + (1.0 - out - more) * once
        if noise.inserts:
            after = after + more * moved(once, noise.inserted.expand(orders.shape[0], -1))
        mass = torch.where((letter < vocab)[:, None], after, mass)
    for letter in noise.flank:
        mass = moved(mass, torch.eye(vocab, dtype=torch.float64)[letter].expand(orders.shape[0], -1))
    return (mass * automaton.final).sum(-1)
