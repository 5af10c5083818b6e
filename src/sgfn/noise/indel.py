r"""Synthesis that skips letters and writes too many: in each cycle nothing, one letter, or a letter and one more.

.. math:: P(\varnothing|a) = d_a, \qquad P(k|a) = (1 - d_a - i_a)\,S_{ak}, \qquad P(kj|a) = i_a\,S_{ak}\,q_j

d are the rates of deletions, i of insertions, S is the law of the letter that is written where one is, q that of the
inserted one. All may depend on the letter that is intended, or on the cycle.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from sgfn.config.checks import in_range, require, whole_number
from sgfn.noise.base import OperatorNoise, are_laws, as_numbers, row_at
from sgfn.noise.operators import Kernel, Rate, TableKernel

MOST_SPARE = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Indel(OperatorNoise):
    """Deletions and insertions beside substitutions; `uniform` makes one from three rates.

    Outcomes of a cycle are the letters, then nothing, then, where there are insertions, all pairs of letters (see
    `sgfn.envs.indel.IndelEnv`). What comes out is read from its first letter on, as many letters as the task has: what
    is longer is cut off, what is shorter is followed by `flank`, or scores nothing where there is none.
    """

    substitution: Float64[Tensor, "*P V V"]
    """Law of the letter that is written, rows intended; one matrix, or one for each cycle."""
    deletion: Float64[Tensor, "*P V"]
    insertion: Float64[Tensor, "*P V"]
    inserted: Float64[Tensor, " V"]
    """Law of the inserted letter."""
    flank: tuple[int, ...] = ()
    """Letters, by their numbers, that follow the sequence in its construct."""
    spare: int = 2
    """Cycles beyond the length of a sequence that a stepwise synthesis may use."""
    stop: bool = False
    _kept: dict = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Take nested lists or arrays for tensors."""
        for name in ("substitution", "deletion", "insertion", "inserted"):
            object.__setattr__(self, name, as_numbers(getattr(self, name), f"{name} of an indel noise must be numbers"))
        object.__setattr__(self, "flank", tuple(int(letter) for letter in self.flank))
        whole_number("noise.spare", self.spare, 0, MOST_SPARE)
        self._check_shapes()
        for name in ("substitution", "inserted"):
            law = getattr(self, name)
            object.__setattr__(self, name, law / law.sum(-1, keepdim=True))
        self._kept.update(deletes=bool((self.deletion > 0).any()), inserts=bool((self.insertion > 0).any()))

    @classmethod
    def uniform(
        cls,
        vocab: int,
        *,
        substitution: float = 0.0,
        deletion: float = 0.0,
        insertion: float = 0.0,
        flank: tuple[int, ...] = (),
        spare: int = 2,
    ) -> "Indel":
        """The same rates for all letters and cycles; a wrong letter is any other alike."""
        return cls(
            substitution=wrong_letters(torch.tensor(substitution, dtype=torch.float64), vocab),
            deletion=torch.full((vocab,), deletion, dtype=torch.float64),
            insertion=torch.full((vocab,), insertion, dtype=torch.float64),
            inserted=torch.full((vocab,), 1.0 / vocab, dtype=torch.float64),
            flank=flank,
            spare=spare,
        )

    @property
    def vocab(self) -> int:
        """V: number of letters."""
        return self.substitution.shape[-1]

    @property
    def by_cycle(self) -> bool:
        """Whether rates differ by cycle."""
        return self.deletion.dim() == 2

    @property
    def by_position(self) -> bool:
        """Whether rates differ by cycle, which is the position that noise is told of."""
        return self.by_cycle

    @property
    def deletes(self) -> bool:
        """Whether deletions happen at all."""
        return self._kept["deletes"]

    @property
    def inserts(self) -> bool:
        """Whether insertions happen at all."""
        return self._kept["inserts"]

    @property
    def summary(self) -> str:
        """Mean rates over letters and cycles."""
        wrong = 1.0 - float(self.substitution.diagonal(dim1=-2, dim2=-1).mean())
        lost, added = float(self.deletion.mean()), float(self.insertion.mean())
        return f"deletions {lost:.3g}, insertions {added:.3g}, substitutions {wrong:.3g}"

    def intentions(self, outcomes: int) -> int:
        """One for each letter, and to wait."""
        return self.vocab + 1

    def check(self, slipping: int, positions: int) -> None:
        """As many letters as the task has, and a rate for each of its positions where rates differ by cycle."""
        if self.vocab != slipping:
            raise ValueError(f"insertions and deletions are of {self.vocab} letters, the task has {slipping}")
        if self.by_cycle and self.deletion.shape[0] < positions:
            raise ValueError(f"there are rates for {self.deletion.shape[0]} cycles, the task has {positions} positions")
        if any(not 0 <= letter < self.vocab for letter in self.flank):
            raise ValueError(f"noise.flank must hold letters of the task, numbered 0 to {self.vocab - 1}")

    def _check_shapes(self) -> None:
        vocab, cycles = self.substitution.shape[-1], self.substitution.shape[:-2]
        wanted = {"substitution": (*cycles, vocab, vocab), "inserted": (vocab,)}
        wanted |= dict.fromkeys(("deletion", "insertion"), (*cycles, vocab))
        for name, shape in wanted.items():
            found, what = tuple(getattr(self, name).shape), f"{name} of an indel noise"
            require(found == shape and len(cycles) < 2, what, f"have the shape {list(shape)}", list(found))
        for name in ("deletion", "insertion"):
            in_range(f"the lowest rate of {name}s", float(getattr(self, name).min()), 0.0, 1.0)
        highest = float((self.deletion + self.insertion).max())
        in_range("deletions and insertions of a letter together", highest, 0.0, 1.0, open_high=True)
        for name in ("substitution", "inserted"):
            law = getattr(self, name)
            if not are_laws(law):
                raise ValueError(f"{name} of an indel noise must hold probabilities that sum to one")

    @property
    def changes_length(self) -> bool:
        """A cycle may write no letter, or two."""
        return True

    # the kernel

    def cycle_table(self) -> Float64[Tensor, "P A K"]:
        """P(outcome|intention) in each cycle, one table where all are alike.

        Intentions are the letters and, last, to wait; outcomes the letters, nothing, and pairs of letters.
        """
        if "cycle" not in self._kept:
            law, lost, added = self.tables()
            single = (1.0 - lost - added)[..., None] * law
            parts = [single, lost[..., None]]
            if self.inserts:
                parts.append(((added[..., None] * law)[..., None] * self.inserted).flatten(-2))
            letters = torch.cat(parts, -1)
            waits = torch.zeros_like(letters[:, :1])
            waits[..., self.vocab] = 1.0
            self._kept["cycle"] = torch.cat([letters, waits], 1)
        return self._kept["cycle"]

    def tables(self) -> tuple[Float64[Tensor, "P V V"], Float64[Tensor, "P V"], Float64[Tensor, "P V"]]:
        """Laws of the written letter, rates of deletions and of insertions, by cycle; of one cycle where all are alike.

        All that is computed of this noise, step by step or of whole orders, is computed from these and `inserted`.
        """
        parts = (self.substitution, self.deletion, self.insertion)
        law, lost, added = parts if self.by_cycle else (part[None] for part in parts)
        return law, lost, added

    def _closed_form(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None, rate: Rate | None) -> Kernel:
        """Look-ups by cycle and by the outcomes that have room, which are `slippable`.

        Where pairs have none, what would write one writes its first letter; where letters have none, nothing happens.
        """
        table = self._tables(dtype, slippable.device)
        cycles = table.shape[0] // 2
        cycle = row_at(position, cycles) if self.by_cycle else 0
        open_ = torch.where(slippable[..., -1], cycle, cycles + cycle)
        return TableKernel(table, torch.where(slippable[..., 0], open_, 2 * cycles))

    def _tables(self, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "R A K"]:
        """Tables of all cycles, those of the last place in a sequence, and that of a full one."""
        key = (dtype, device)
        if key not in self._kept:
            free = self.cycle_table()
            last, full = free.clone(), torch.zeros_like(free[:1])
            pairs = free[..., self.vocab + 1 :]
            last[..., : self.vocab] += pairs.unflatten(-1, (-1, self.vocab)).sum(-1) if self.inserts else 0.0
            last[..., self.vocab + 1 :] = 0.0
            full[..., self.vocab] = 1.0
            self._kept[key] = torch.cat([free, last, full]).to(device, dtype)
        return self._kept[key]


def scaled(noise: Indel, factor: float) -> Indel:
    """The same noise with all rates of errors multiplied by a number."""
    if factor == 1.0:
        return noise
    eye = torch.eye(noise.vocab, dtype=torch.float64)
    wrong = noise.substitution * (1.0 - eye) * factor
    kept = 1.0 - wrong.sum(-1)
    if float(kept.min()) < 0.0 or float((noise.deletion + noise.insertion).max()) * factor >= 1.0:
        raise ValueError(f"noise.scale {factor:g} makes an error rate of 1 or more: lower it")
    rates = {"deletion": noise.deletion * factor, "insertion": noise.insertion * factor}
    return replace(noise, substitution=wrong + torch.diag_embed(kept), **rates)


def wrong_letters(rate: Float64[Tensor, "*P"], vocab: int) -> Float64[Tensor, "*P V V"]:
    """Matrices that keep a letter but at a rate, at which any other is written alike."""
    eye = torch.eye(vocab, dtype=torch.float64)
    rate = rate[..., None, None]
    return eye * (1.0 - rate) + (1.0 - eye) * rate / (vocab - 1)
