r"""Ehrlich functions: sequence landscapes with motifs, spacings and forbidden neighbours, and a known optimum.

Our own construction of the published family. What the definition fixes: a transition matrix with banned entries decides
which sequences are feasible, and repeating a letter is always allowed; c motifs of k letters, each with a spacing; the
score is a product over motifs of the best match found anywhere, quantised to q steps. What it leaves open, we draw so:

- banned transitions: V // 5 per letter, at least one, never on the diagonal nor on one cycle through all letters, so
  that every letter leads to every other (the reference code bans about as many, by a shuffled band);
- motifs: one walk of c k letters along allowed transitions that never stays, cut into c pieces (in a small
  alphabet two pieces may be alike);
- spacings: every motif has a window of L // c places, and its letters any places in it, all choices equally likely.

So a feasible sequence with score 1 always exists: window after window, hold each letter until the next is due.
Instances differ from those of the reference code with the same seed. Infeasible sequences score 0 here (the reference
code returns minus infinity). Its later option of epistasis is not built.

Reference: Stanton et al. (2024), Closed-form test functions for biophysical sequence optimization algorithms,
arXiv:2407.00236 (reference code: prescient-design/holo-bench).
"""

import string
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sgfn.config.checks import in_range, require
from sgfn.landscapes.base import Landscape
from sgfn.noise import Noise

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""Letters for alphabets of more than 20 symbols, which have no biological meaning."""


class Ehrlich(Landscape):
    r"""Product over motifs a with offsets s of the quantised best match, 0 where a transition is banned.

    .. math:: f(x) = 1[x \in F] \prod_{i=1}^c \max_l \frac{1}{q}
        \Big\lfloor \frac{q}{k} \sum_{j=1}^k 1[x_{l + s_{ij}} = a_{ij}] \Big\rfloor

    Reference: Stanton et al. (2024), arXiv:2407.00236.

    >>> landscape = Ehrlich(vocab=20, length=32, motifs=4, motif_length=4, quantisation=4)
    >>> landscape.scores(landscape.optimum()).item()
    1.0
    """

    traceable = True
    motifs: tuple[tuple[int, ...], ...]
    """c motifs of k letters."""
    offsets: tuple[tuple[int, ...], ...]
    """For each motif, where its letters stand after the first: 0 = s_1 < s_2 < ..."""
    start: Int[Tensor, "1 O"]
    """A feasible sequence to begin a search with."""
    allowed: Bool[Tensor, "V+1 V+1"]
    """Which letter may follow which; the blank of a sequence too short may follow, and precede, none."""

    def __init__(
        self, *, vocab: int, length: int, motifs: int, motif_length: int, quantisation: int, seed: int = 0
    ) -> None:
        check(vocab, length, motifs, motif_length, quantisation)
        self.vocab, self.length, self.motif_length, self.quantisation = vocab, length, motif_length, quantisation
        self.alphabet = (AMINO_ACIDS if vocab <= len(AMINO_ACIDS) else LETTERS)[:vocab]
        generator = torch.Generator().manual_seed(seed)
        allowed = draw_allowed(vocab, generator)
        walk = draw_walk(allowed, motifs * motif_length, generator)
        self.motifs = tuple(walk[i : i + motif_length] for i in range(0, len(walk), motif_length))
        self.offsets = tuple(draw_offsets(length // motifs, motif_length, generator) for _ in range(motifs))
        self.allowed = torch.nn.functional.pad(allowed, (0, 1, 0, 1))
        self.start = torch.tensor(draw_walk(allowed, length, generator, stays=True))[None]
        self.maximum, self.mode_level = 1.0, 1.0

    def scores(self, objects: Int[Tensor, "*batch O"]) -> Float[Tensor, "*batch"]:
        """Scores of objects, in whole quantisation steps until the end, so that the optimum is exactly 1."""
        require(objects.shape[-1] == self.length, "objects", f"hold {self.length} letters", objects.shape[-1])
        hits = [best_match(objects, *pair) for pair in zip(self.motifs, self.offsets, strict=True)]
        steps = torch.stack(hits, -1) * self.quantisation // self.motif_length
        return (steps.double() / self.quantisation).prod(-1).float() * self.feasible(objects)

    def feasible(self, objects: Int[Tensor, "*batch O"]) -> Bool[Tensor, "*batch"]:
        """Whether each object has allowed transitions only."""
        return self.allowed[objects[..., :-1], objects[..., 1:]].all(-1)

    def facts(self, beta: float, noise: Noise) -> dict[str, Any]:
        """One best sequence, under `optimum`."""
        return {"optimum": "".join(self.alphabet[i] for i in self.optimum().tolist())}

    def start_objects(self) -> Int[Tensor, "1 O"]:
        """One feasible sequence, a walk along allowed transitions, as the reference code's search begins with one."""
        return self.start

    def optimum(self) -> Int[Tensor, " O"]:
        """A feasible sequence with score 1; there are others."""
        window, letters = self.length // len(self.motifs), []
        for motif, offsets in zip(self.motifs, self.offsets, strict=True):
            letters += [motif[sum(o <= place for o in offsets) - 1] for place in range(window)]
        return torch.tensor(letters + letters[-1:] * (self.length - len(letters)), device=self.allowed.device)


def check(vocab: int, length: int, motifs: int, motif_length: int, quantisation: int) -> None:
    """Raise unless all motifs fit into a sequence and a transition can be banned."""
    in_range("vocab", vocab, 3, len(LETTERS))
    in_range("motifs", motifs, 1)
    in_range("motif_length", motif_length, 1)
    needed = motifs * motif_length
    require(length >= needed, "length", f"be at least motifs * motif_length = {needed}", length)
    in_range("quantisation", quantisation, 1, motif_length)
    require(motif_length % quantisation == 0, "quantisation", f"divide motif_length ({motif_length})", quantisation)


def best_match(
    objects: Int[Tensor, "*batch O"], motif: tuple[int, ...], offsets: tuple[int, ...]
) -> Int[Tensor, "*batch"]:
    """Most letters of a motif that any placement of it in the object gets right."""
    places = objects.shape[-1] - offsets[-1]
    hits = [objects[..., o : o + places] == letter for letter, o in zip(motif, offsets, strict=True)]
    return torch.stack(hits).sum(0).amax(-1)


def draw_allowed(vocab: int, generator: torch.Generator) -> Bool[Tensor, "V V"]:
    """Allowed transitions: all but V // 5 per letter, always repetition and one cycle through all letters."""
    cycle = torch.randperm(vocab, generator=generator)
    order = torch.rand(vocab, vocab, generator=generator)
    order[cycle, cycle.roll(-1)] = 2.0  # above every draw, so never among the lowest, which are banned
    order.fill_diagonal_(2.0)
    banned = order.argsort(-1)[:, : max(1, vocab // 5)]
    return torch.ones(vocab, vocab, dtype=torch.bool).scatter_(1, banned, False)


def draw_walk(
    allowed: Bool[Tensor, "V V"], steps: int, generator: torch.Generator, *, stays: bool = False
) -> tuple[int, ...]:
    """A random walk along allowed transitions, all equally likely; unless it `stays`, no letter follows itself."""
    moves = allowed.float() if stays else allowed.float().fill_diagonal_(0.0)
    letters = [int(torch.randint(len(allowed), (), generator=generator))]
    while len(letters) < steps:
        letters.append(int(torch.multinomial(moves[letters[-1]], 1, generator=generator)))
    return tuple(letters)


def draw_offsets(window: int, letters: int, generator: torch.Generator) -> tuple[int, ...]:
    """Places of a motif's letters in its window: the first at 0, the others anywhere behind it, in order."""
    others = torch.randperm(window - 1, generator=generator)[: letters - 1] + 1
    return (0, *sorted(others.tolist()))
