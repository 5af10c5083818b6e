"""Distances between sequences: one against many at a time, by Hamming or by edits."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from sgfn.landscapes.words import edit_distance

LONGEST_WORD = 62
"""Letters of a word whose edit distances are computed with the bits of one integer."""


def coded(texts: Sequence[str], alphabet: str = "") -> tuple[Int[Tensor, "N L"], int]:
    """Texts as rows of letters, and the number that fills shorter ones up; letters are numbered as they are met."""
    code = {letter: number for number, letter in enumerate(dict.fromkeys([*alphabet, *"".join(texts)]))}
    blank, width = len(code), max([1, *map(len, texts)])
    rows = torch.full((len(texts), width), blank)
    by_length: dict[int, list[int]] = {}
    for number, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(number)
    for length, numbers in by_length.items():
        letters = [[code[letter] for letter in texts[number]] for number in numbers]
        rows[torch.tensor(numbers), :length] = torch.tensor(letters).reshape(len(numbers), length)
    return rows, blank


def distances(rows: Int[Tensor, "N L"], word: Int[Tensor, " L"], blank: int, metric: str) -> Int[Tensor, " N"]:
    """Distance of each row to one: `hamming`, in which what is missing differs from a letter, or `edit`."""
    if metric == "hamming":
        return (rows != word).sum(-1)
    return edit_distances(rows, word[word != blank], blank)


def edit_distances(rows: Int[Tensor, "N L"], word: Int[Tensor, " W"], blank: int) -> Int[Tensor, " N"]:
    """Levenshtein distance of each row (up to its first blank) to one word.

    Columns of the table are kept as bits of integers, one row of the batch each (Myers 1999, Journal of the ACM 46);
    words of more letters than an integer has bits go the plain way.
    """
    size = word.shape[0]
    if size == 0:
        return (rows != blank).sum(-1)
    if size > LONGEST_WORD:
        return edit_distance(rows, word, blank)
    match = torch.zeros(blank + 1, dtype=torch.int64)
    for place, letter in enumerate(word.tolist()):
        match[letter] |= 1 << place
    match[blank] = 0
    up = torch.full((rows.shape[0],), -1, dtype=torch.int64)  # bit i: the table rises from row i to i + 1
    down = torch.zeros_like(up)
    found, last = torch.full_like(up, size), 1 << (size - 1)
    for letter in rows.unbind(1):
        there, equal = letter != blank, match[letter]
        across = (((equal & up) + up) ^ up) | equal
        rises, falls = down | ~(across | up), up & across
        step = ((rises & last) != 0).long() - ((falls & last) != 0).long()
        found += torch.where(there, step, 0)
        rises, falls = (rises << 1) | 1, falls << 1
        kept = equal | down
        up = torch.where(there, falls | ~(kept | rises), up)
        down = torch.where(there, rises & kept, down)
    return found


def nearest(
    rows: Int[Tensor, "N L"], known: Int[Tensor, "M L"], blank: int, metric: str
) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
    """Number of the nearest known row and its distance, for each row; the first one among equals."""
    best = torch.full((rows.shape[0],), torch.iinfo(torch.int64).max)
    number = torch.zeros_like(best)
    if known.shape[0] > rows.shape[0]:  # the shorter list is gone through one by one
        for at, row in enumerate(rows):
            best[at], number[at] = distances(known, row, blank, metric).min(0)
        return number, best
    for at, row in enumerate(known):
        apart = distances(rows, row, blank, metric)
        number = torch.where(apart < best, at, number)
        best = torch.minimum(apart, best)
    return number, best


def metric_of(texts: Sequence[str]) -> str:
    """The distance that fits: Hamming where all are equally long, else edits."""
    return "hamming" if len({len(text) for text in texts}) <= 1 else "edit"
