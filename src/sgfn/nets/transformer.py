r"""Causal transformers: one pass represents every prefix of a sequence, a key/value cache represents the next one.

The pre-norm block (Vaswani et al. 2017, NeurIPS; Radford et al. 2019, GPT-2) on a residual stream h:

.. math:: h \leftarrow h + \mathrm{attention}(\mathrm{norm}(h)), \quad h \leftarrow h + \mathrm{mlp}(\mathrm{norm}(h))

A row reads itself and earlier rows only. The padding on the right of a shorter sequence therefore has no effect on its
rows, and no mask of valid positions is needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

StoreItems = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""A function that stores the keys and values of new items, and returns those of all items up to them."""
Drop = Callable[[Tensor], Tensor]
"""A function applied in training to what a block adds to the residual stream: see `dropout`."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Keys and values of the items read so far, every layer in one tensor whose shape never changes."""

    keys: Float[Tensor, "layers B heads M D"]
    values: Float[Tensor, "layers B heads M D"]

    def store(
        self, layer: int, position: int, key: Float[Tensor, "B heads N D"], value: Float[Tensor, "B heads N D"]
    ) -> tuple[Float[Tensor, "B heads P D"], Float[Tensor, "B heads P D"]]:
        """Store new items from a position on; returns keys and values of all items up to them."""
        here, upto = slice(position, position + key.shape[2]), slice(position + key.shape[2])
        self.keys[layer, :, :, here] = key
        self.values[layer, :, :, here] = value
        return self.keys[layer, :, :, upto], self.values[layer, :, :, upto]

    def __getitem__(self, index: Int[Tensor, " N"]) -> "Cache":
        """Caches of some of the sequences, which may be repeated."""
        return Cache(keys=self.keys[:, index], values=self.values[:, index])


KERNEL: ModuleType | None = (
    import_module("sgfn.nets.attention_kernel") if torch.cuda.is_available() and find_spec("triton") else None
)
"""The module with attention as a GPU kernel, where there is a GPU; imported ahead, as a compiler cannot."""


def attention_kernel(rows: Float[Tensor, "B M H"], heads: int) -> ModuleType | None:
    """The module with attention as a GPU kernel; None without a GPU or Triton, or where rows are too many or wide."""
    if KERNEL is None or not rows.is_cuda or rows.dtype != torch.float32:
        return None
    return KERNEL if rows.shape[1] <= KERNEL.LONGEST and rows.shape[2] <= heads * KERNEL.WIDEST else None


class Attention(nn.Module):
    r"""Multi-head self-attention, $\mathrm{softmax}(q k^\top / \sqrt D)\, v$ over a row and those before it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.read = nn.Linear(width, 3 * width)
        self.write = nn.Linear(width, width)

    def forward(self, rows: Float[Tensor, "B M H"], store: StoreItems | None = None) -> Float[Tensor, "B M H"]:
        """Attention over whole sequences; with a cache, over its first rows, or of one new row over all rows stored."""
        read = self.read(rows)
        if store is None and (kernel := attention_kernel(rows, self.heads)) is not None:
            return self.write(kernel.causal_attention(read, self.heads))
        query, key, value = read.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # B heads M D
        if store is not None:
            key, value = store(key, value)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=rows.shape[1] > 1)
        return self.write(mixed.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    """Two layers with a GELU between them, four times as wide inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.read = nn.Linear(width, 4 * width)
        self.write = nn.Linear(4 * width, width)

    def forward(self, rows: Float[Tensor, "B M H"]) -> Float[Tensor, "B M H"]:
        """Each row transformed by itself."""
        return self.write(F.gelu(self.read(rows)))


class Block(nn.Module):
    """Attention between rows, then the feed-forward layers on each, both normalised first and added to their input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.forward_norm, self.feed_forward = nn.LayerNorm(width), FeedForward(width)

    def forward(
        self, rows: Float[Tensor, "B M H"], store: StoreItems | None = None, drop: Drop | None = None
    ) -> Float[Tensor, "B M H"]:
        """Rows after the two steps of the equation above."""
        mixed = self.attention(self.attention_norm(rows), store)
        rows = rows + (mixed if drop is None else drop(mixed))
        added = self.feed_forward(self.forward_norm(rows))
        return rows + (added if drop is None else drop(added))


class CausalTransformer(nn.Module):
    """A causal transformer: embedded items plus learned positions, through blocks and a last normalisation.

    >>> net = CausalTransformer(width=8, layers=2, heads=2, length=3)
    >>> items, cache = torch.randn(5, 3, 8), net.start(5, "cpu", torch.float32)
    >>> steps = [net.step(items[:, t], cache, t) for t in range(3)]
    >>> torch.allclose(torch.stack(steps, 1), net(items), atol=1e-5)
    True
    """

    def __init__(self, *, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        _check(width=width, layers=layers, heads=heads, length=length)
        self.width, self.heads, self.length = width, heads, length
        self.positions = nn.Parameter(torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        initialise(self, layers)

    def forward(self, items: Float[Tensor, "B M H"], drop: Drop | None = None) -> Float[Tensor, "B M H"]:
        """Representations of all prefixes: row t reads items 0..t."""
        rows = self._placed(items)
        for block in self.blocks:
            rows = block(rows, None, drop)
        return self.norm(rows)

    def _placed(self, items: Float[Tensor, "B M H"]) -> Float[Tensor, "B M H"]:
        count = items.shape[1]
        if count > self.length:
            raise ValueError(f"a sequence of {count} items does not fit: length is {self.length}, make it {count}")
        return items + self.positions[:count]

    def start(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """An empty cache for `length` items."""
        shape = (len(self.blocks), batch, self.heads, self.length, self.width // self.heads)
        zeros = partial(torch.zeros, shape, device=device, dtype=dtype)
        return Cache(keys=zeros(), values=zeros())

    @torch.no_grad()
    def fill(self, items: Float[Tensor, "B M H"], cache: Cache) -> Float[Tensor, "B M H"]:
        """Representations of the first items, which are stored in the cache: `step` goes on behind them."""
        rows = self._placed(items)
        for layer, block in enumerate(self.blocks):
            rows = block(rows, partial(cache.store, layer, 0))
        return self.norm(rows)

    @torch.no_grad()  # the cache is written in place, so there is no gradient here: the full pass gives it
    def step(self, item: Float[Tensor, "B H"], cache: Cache, position: int) -> Float[Tensor, "B H"]:
        """Row `position` of the full pass, after a step for each position before it."""
        if not 0 <= position < self.length:
            raise ValueError(f"position must lie in 0..{self.length - 1} (length {self.length}), got {position}")
        row = (item + self.positions[position])[:, None]  # B 1 H
        for layer, block in enumerate(self.blocks):
            row = block(row, partial(cache.store, layer, position))
        return self.norm(row)[:, 0]

    def start_static(self, batch: int, device: torch.device) -> tuple[Tensor, ...]:
        """Empty keys [B, heads, D, M] and values [B, heads, M, D] of each layer in turn, for `step_static`."""
        each, like = self.width // self.heads, {"device": device, "dtype": self.positions.dtype}
        shapes = ((batch, self.heads, each, self.length), (batch, self.heads, self.length, each))
        return tuple(torch.zeros(shape, **like) for _ in self.blocks for shape in shapes)

    def step_static(
        self, item: Float[Tensor, "B H"], memory: tuple[Tensor, ...], position: Int[Tensor, " 1"]
    ) -> Float[Tensor, "B H"]:
        """`step` at a position that is a tensor, so that one compiled function serves all."""
        row = item + self.positions.index_select(0, position)
        later = torch.arange(self.length, device=position.device) > position
        for block, keys, values in zip(self.blocks, memory[::2], memory[1::2], strict=True):
            assert isinstance(block, Block)
            read = block.attention.read(block.attention_norm(row)).unflatten(-1, (3, self.heads, -1))
            query, key, value = read.unbind(1)  # B heads D
            keys.index_copy_(3, position, key[..., None])
            values.index_copy_(2, position, value[:, :, None])
            scores = (query[..., None] * keys).sum(2) * query.shape[-1] ** -0.5  # B heads M
            share = torch.softmax(scores.masked_fill(later, -torch.inf), -1)
            mixed = (share[..., None] * values).sum(2)
            row = row + block.attention.write(mixed.flatten(1))
            row = row + block.feed_forward(block.forward_norm(row))
        return self.norm(row)


class PrefixEncoder(nn.Module):
    """Base of token and pair encoders: a learned start item before up to `length` items, so that row t is prefix t."""

    def __init__(self, *, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        _check(width=width, layers=layers, heads=heads, length=length)
        self.width, self.length = width, length
        self.begin = nn.Parameter(torch.randn(width))
        self.core = CausalTransformer(width=width, layers=layers, heads=heads, length=length + 1)

    def prefixes(self, items: Float[Tensor, "B L H"]) -> Float[Tensor, "B L+1 H"]:
        """Representations of all prefixes in one pass, the empty one first."""
        if items.shape[1] > self.length:
            raise ValueError(f"{items.shape[1]} items do not fit: length is {self.length}, make it {items.shape[1]}")
        return self.core(torch.cat([self.begin.expand(items.shape[0], 1, -1), items], 1))

    def start(self, batch: int, device: torch.device | str) -> tuple[Cache, Float[Tensor, "B H"]]:
        """A cache, and the representation of the empty prefix."""
        cache = self.core.start(batch, device, self.begin.dtype)
        return cache, self.core.step(self.begin.expand(batch, -1), cache, 0)

    def advance(self, item: Float[Tensor, "B H"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """Representation of the prefix of t items, from its last item and the cache."""
        if not 1 <= t <= self.length:
            raise ValueError(f"t must lie in 1..{self.length}: the number of items read, this one counted; got {t}")
        return self.core.step(item, cache, t)


class TokenEncoder(PrefixEncoder):
    """Encoder of prefixes of token sequences; `symbols` counts all codes, with those of blanks and end marks.

    >>> net = TokenEncoder(6, width=8, layers=1, heads=2, length=4)
    >>> net(torch.tensor([[3, 1, 5, 4]])).shape  # two tokens, an end mark, a blank; five prefixes
    torch.Size([1, 5, 8])
    """

    def __init__(self, symbols: int, *, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__(width=width, layers=layers, heads=heads, length=length)
        self.token = _embedding(symbols, width)

    def forward(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B L+1 H"]:
        """Representations of all prefixes: row t is that of the first t tokens."""
        return self.prefixes(self.token(tokens))

    def step(self, token: Int[Tensor, " B"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """Row t of the full pass, from its last token; t = 1 follows `start`."""
        return self.advance(self.token(token), cache, t)


class PairEncoder(PrefixEncoder):
    """Encoder of histories of (intended, realised) pairs; an item embeds both, and whether they agree."""

    def __init__(self, intended: int, realised: int, *, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__(width=width, layers=layers, heads=heads, length=length)
        self.intended, self.realised = _embedding(intended, width), _embedding(realised, width)
        self.agreement = _embedding(2, width)

    def forward(self, intended: Int[Tensor, "B T"], realised: Int[Tensor, "B T"]) -> Float[Tensor, "B T+1 H"]:
        """Representations of all histories: row t is that of the first t pairs."""
        return self.prefixes(self.items(intended, realised))

    def step(
        self, intended: Int[Tensor, " B"], realised: Int[Tensor, " B"], cache: Cache, t: int
    ) -> Float[Tensor, "B H"]:
        """Row t of the full pass, from its last pair; t = 1 follows `start`."""
        return self.advance(self.items(intended, realised), cache, t)

    def items(self, intended: Int[Tensor, "*batch"], realised: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch H"]:
        """Embedding of each pair: the sum of the three embeddings."""
        agree = self.agreement((intended == realised).long())
        return self.intended(intended) + self.realised(realised) + agree


def dropout(rows: Float[Tensor, "B M H"], share: float, generator: torch.Generator) -> Float[Tensor, "B M H"]:
    """Rows with a random share of entries zero and the others scaled up in turn (Srivastava et al. 2014, JMLR)."""
    if share == 0.0:
        return rows
    kept = torch.empty_like(rows).bernoulli_(1.0 - share, generator=generator)
    return rows * kept / (1.0 - share)


def initialise(net: CausalTransformer, layers: int) -> None:
    r"""Draw weights of deviation $1/\sqrt{\text{inputs}}$, smaller where they write to the residual.

    There the factor is $1/\sqrt{2\,\text{layers}}$, as in GPT-2; the fixed deviation 0.02 of GPT-2 suits wide nets and
    is too small for narrow ones. Biases start at 0, embeddings and positions with deviation 1: the first optimiser
    steps then change them instead of replacing them.
    """
    for name, module in net.named_modules():
        if isinstance(module, nn.Linear):
            depth = 2 * layers if name.endswith("write") else 1
            nn.init.normal_(module.weight, std=(module.in_features * depth) ** -0.5)
            nn.init.zeros_(module.bias)


def _embedding(symbols: int, width: int) -> nn.Embedding:
    if symbols < 1:
        raise ValueError(f"an encoder needs one symbol or more to embed, got {symbols}")
    return nn.Embedding(symbols, width)


def _check(*, width: int, layers: int, heads: int, length: int) -> None:
    for name, value in (("width", width), ("layers", layers), ("heads", heads), ("length", length)):
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    if width % heads:
        fits = [n for n in range(1, width + 1) if width % n == 0]
        raise ValueError(f"heads must divide width {width}, got {heads}: choose one of {fits}")
