"""Strings of variable length scored by their edit distance to a few hidden words: an example of variable length."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sgfn.landscapes.base import Landscape

WORDS = ("GATTACA", "CAT", "TAGA")


class Words(Landscape):
    r"""Score $\max_w \exp(-d(x, w))$ with d the edit distance to word w; 1 exactly at the words.

    >>> Words(alphabet="ACGT").scores(torch.tensor([[1, 0, 3, 4, 4, 4, 4]])).tolist()  # CAT
    [1.0]
    """

    def __init__(self, *, alphabet: str, words: tuple[str, ...] = WORDS) -> None:
        self.blank = len(alphabet)
        self.words = [torch.tensor([alphabet.index(c) for c in word]) for word in words]
        self.maximum, self.mode_level = 1.0, 1.0

    def to(self, device: torch.device) -> None:
        """Move the words to a device: copying them inside a step would break its capture in a CUDA graph."""
        self.words = [word.to(device) for word in self.words]

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Score of each object, by its nearest word."""
        flat = objects.reshape(-1, objects.shape[-1])
        nearest = torch.stack([edit_distance(flat, word.to(flat.device), self.blank) for word in self.words]).amin(0)
        return torch.exp(-nearest.float()).reshape(objects.shape[:-1])


def edit_distance(rows: Int[Tensor, "N L"], word: Int[Tensor, " W"], blank: int) -> Int[Tensor, " N"]:
    """Levenshtein distance of each row (up to its first blank) to one word, batched over rows."""
    length = (rows != blank).sum(-1)
    width = word.shape[0]
    line = [torch.full_like(length, j) for j in range(width + 1)]  # row 0 of the table
    table = [torch.stack(line, -1)]
    for i in range(rows.shape[1]):
        current = [torch.full_like(length, i + 1)]
        for j in range(width):
            substituted = line[j] + (rows[:, i] != word[j]).long()
            current.append(torch.minimum(torch.minimum(line[j + 1], current[j]) + 1, substituted))
        line = current
        table.append(torch.stack(line, -1))
    last = torch.stack(table, 1)[..., -1]  # N L+1: distance of each prefix to the whole word
    return last.gather(1, length[:, None])[:, 0]
