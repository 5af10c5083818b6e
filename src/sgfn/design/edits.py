"""Random edits of batches of sequences: substitutions, insertions, deletions and recombinations, without a loop.

Sequences are rows of tokens [N, L] with the number after the last letter, the blank, behind their ends.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

SHARES = (0.4, 0.35, 0.15, 0.1)
"""Of children: substitution alone, recombination, an insertion or deletion, recombination with substitution."""


def lengths_of(tokens: Int[Tensor, "N L"], vocab: int) -> Int[Tensor, " N"]:
    """Number of letters of each row."""
    return (tokens < vocab).sum(-1)


def substituted(
    tokens: Int[Tensor, "N L"], vocab: int, generator: torch.Generator, mean: float = 1.5
) -> Int[Tensor, "N L"]:
    """Rows with one or more letters replaced by others; `mean` is about how many."""
    count, length = tokens.shape
    size = lengths_of(tokens, vocab)[:, None]
    draws = torch.rand(count, length, generator=generator)
    draws = torch.where(tokens < vocab, draws, 2.0)  # a blank is never chosen
    chosen = (draws < max(mean - 1, 0) / size) | (draws == draws.amin(1, keepdim=True))
    shift = torch.randint(1, vocab, tokens.shape, generator=generator)
    return torch.where(chosen & (tokens < vocab), (tokens + shift) % vocab, tokens)


def inserted(tokens: Int[Tensor, "N L"], vocab: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
    """Rows with one random letter more, at a random place; a full row is given back as it is."""
    count, length = tokens.shape
    size = lengths_of(tokens, vocab)
    place = (torch.rand(count, generator=generator) * (size + 1)).long()[:, None]
    letter = torch.randint(vocab, (count, 1), generator=generator)
    at = torch.arange(length).expand(count, length)
    moved = tokens.gather(1, (at - (at > place).long()).clamp(min=0))
    return torch.where((size < length)[:, None], torch.where(at == place, letter, moved), tokens)


def deleted(tokens: Int[Tensor, "N L"], vocab: int, generator: torch.Generator) -> Int[Tensor, "N L"]:
    """Rows with one letter less, at a random place."""
    count, length = tokens.shape
    size = lengths_of(tokens, vocab)
    place = (torch.rand(count, generator=generator) * size).long()[:, None]
    padded = torch.cat([tokens, torch.full((count, 1), vocab)], 1)
    at = torch.arange(length).expand(count, length)
    return padded.gather(1, at + (at >= place).long())


def recombined(
    left: Int[Tensor, "N L"], right: Int[Tensor, "N L"], vocab: int, generator: torch.Generator
) -> Int[Tensor, "N L"]:
    """The beginning of one row and the end of another, cut at the same relative place of both.

    Rows of one length keep it; of different lengths the child has one in between. What would not fit is cut off.
    """
    count, length = left.shape
    sizes = torch.stack([lengths_of(left, vocab), lengths_of(right, vocab)])
    cut = torch.rand(count, generator=generator)
    here, there = ((cut * size).round().long()[:, None] for size in sizes)
    padded = torch.cat([right, torch.full((count, 1), vocab)], 1)
    at = torch.arange(length).expand(count, length)
    tail = padded.gather(1, (at - here + there).clamp(0, length))
    return torch.where(at < here, left, tail)


def mixed(left: Int[Tensor, "N L"], right: Int[Tensor, "N L"], generator: torch.Generator) -> Int[Tensor, "N L"]:
    """Each letter from one of two rows; for rows of one length."""
    return torch.where(torch.rand(left.shape, generator=generator) < 0.5, left, right)


@dataclass(frozen=True)
class Children:
    """Edited copies of parents."""

    tokens: Int[Tensor, "N L"]
    edits: Int[Tensor, " N"]
    """Upper bound of the edits between each child and the sequence that its line of parents began with."""


def children(
    parents: Int[Tensor, "P L"],
    edits: Int[Tensor, " P"],
    count: int,
    vocab: int,
    generator: torch.Generator,
    *,
    varies: bool,
) -> Children:
    """Edited copies of parents that are drawn at random; lengths change only where they may.

    `edits` is how far each parent is from where its line began.
    """
    first, second = (torch.randint(len(parents), (count,), generator=generator) for _ in range(2))
    left, right = parents[first], parents[second]
    kind = torch.rand(count, generator=generator)
    edges = torch.tensor(SHARES).cumsum(0)
    crossed = _crossed(left, right, vocab, generator, varies=varies)
    born = substituted(left, vocab, generator)
    born = _where(kind >= edges[0], crossed, born)
    resized = torch.zeros(count, dtype=torch.bool)
    if varies:
        longer = torch.rand(count, generator=generator) < 0.5
        resized = (kind >= edges[1]) & (kind < edges[2])
        born = _where(resized & longer, inserted(left, vocab, generator), born)
        born = _where(resized & ~longer, deleted(left, vocab, generator), born)
    born = _where(kind >= edges[2], substituted(crossed, vocab, generator, 1.0), born)
    away = torch.minimum(edits[first] + (born != left).sum(-1), edits[second] + (born != right).sum(-1))
    return Children(born, torch.where(resized, edits[first] + 1, away))


def _crossed(
    left: Int[Tensor, "N L"], right: Int[Tensor, "N L"], vocab: int, generator: torch.Generator, *, varies: bool
) -> Int[Tensor, "N L"]:
    """Recombinations: by one cut, or letter by letter where all rows have one length."""
    cut = recombined(left, right, vocab, generator)
    if varies:
        return cut
    return _where(torch.rand(len(left), generator=generator) < 0.5, mixed(left, right, generator), cut)


def _where(chosen: Bool[Tensor, " N"], yes: Int[Tensor, "N L"], no: Int[Tensor, "N L"]) -> Int[Tensor, "N L"]:
    return torch.where(chosen[:, None], yes, no)


def random_rows(count: int, vocab: int, lengths: tuple[int, int], generator: torch.Generator) -> Int[Tensor, "N L"]:
    """Rows of random letters, each length between the two ends as likely as another."""
    size = torch.randint(lengths[0], lengths[1] + 1, (count, 1), generator=generator)
    letters = torch.randint(vocab, (count, lengths[1]), generator=generator)
    return torch.where(torch.arange(lengths[1]) < size, letters, vocab)
