"""Causal transformers: the library's numbers, a cache that agrees with the full pass, and nothing from the future."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from sgfn.nets.transformer import Block, CausalTransformer, PairEncoder, PrefixEncoder, TokenEncoder

DTYPES = {torch.float64: 1e-10, torch.float32: 1e-5}
every_dtype = pytest.mark.parametrize("dtype", DTYPES)
FEWER = settings(PROPERTY, max_examples=25)
SYMBOLS = 5
Net = TypeVar("Net", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of a network and of the batch it reads: `length` items at most, `count` there are."""

    batch: int = 3
    count: int = 4
    length: int = 4
    head: int = 3
    heads: int = 2
    layers: int = 2

    def shape(self) -> dict[str, int]:
        """Arguments of every network here."""
        return {"width": self.head * self.heads, "layers": self.layers, "heads": self.heads, "length": self.length}


@st.composite
def any_sizes(draw: st.DrawFn, fewest: int = 0) -> Sizes:
    length = draw(st.integers(1, 7))
    return Sizes(
        batch=draw(st.integers(1, 5)),
        count=draw(st.integers(fewest, length)),
        length=length,
        head=draw(st.integers(1, 5)),
        heads=draw(st.integers(1, 4)),
        layers=draw(st.integers(1, 3)),
    )


def lively(make: Callable[[], Net], dtype: torch.dtype = torch.float64) -> Net:
    """Weights as large as after training, every bias and norm with contrast."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = make().to(dtype)
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.4 * torch.randn_like(parameter))
    return net


def token_encoder(sizes: Sizes, dtype: torch.dtype = torch.float64) -> TokenEncoder:
    return lively(lambda: TokenEncoder(SYMBOLS, **sizes.shape()), dtype)


def pair_encoder(sizes: Sizes, dtype: torch.dtype = torch.float64) -> PairEncoder:
    return lively(lambda: PairEncoder(SYMBOLS, SYMBOLS + 1, **sizes.shape()), dtype)


def tokens(sizes: Sizes, seed: int = 0, symbols: int = SYMBOLS) -> Tensor:
    return torch.randint(symbols, (sizes.batch, sizes.count), generator=torch.Generator().manual_seed(seed))


def items(sizes: Sizes, dtype: torch.dtype = torch.float64) -> Tensor:
    shape = (sizes.batch, sizes.count, sizes.head * sizes.heads)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def steps(net: PrefixEncoder, *columns: Tensor) -> Tensor:
    """A whole sequence through the cache, one step after another."""
    cache, row = net.start(columns[0].shape[0], "cpu")
    rows = [row]
    for t in range(1, columns[0].shape[1] + 1):
        rows.append(net.step(*(column[:, t - 1] for column in columns), cache, t))
    return torch.stack(rows, 1)


# A known library


def library_layer(block: Block, width: int, heads: int) -> nn.TransformerEncoderLayer:
    """Torch's own pre-norm layer with the block's weights."""
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True, dtype=torch.float64
    )
    pairs = {
        "self_attn.in_proj_": block.attention.read,
        "self_attn.out_proj.": block.attention.write,
        "linear1.": block.feed_forward.read,
        "linear2.": block.feed_forward.write,
        "norm1.": block.attention_norm,
        "norm2.": block.forward_norm,
    }
    layer.load_state_dict({there + name: value for there, m in pairs.items() for name, value in m.state_dict().items()})
    return layer


def library(net: CausalTransformer, rows: Tensor, mask: Tensor) -> Tensor:
    rows = rows + net.positions[: rows.shape[1]]
    for block in net.blocks:
        assert isinstance(block, Block)
        rows = library_layer(block, net.width, net.heads)(rows, src_mask=mask)
    return net.norm(rows)


@FEWER
@given(any_sizes(fewest=1))
def test_the_full_pass_is_that_of_torch_layers_with_the_same_weights(sizes: Sizes) -> None:
    net, rows = lively(lambda: CausalTransformer(**sizes.shape())), items(sizes)
    hidden = torch.ones(sizes.count, sizes.count, dtype=torch.bool).triu(1)
    assert_close(net(rows), library(net, rows, hidden), rtol=0, atol=1e-10)
    if sizes.count > 1 and net.width > 2:  # a norm over one or two numbers leaves signs only
        assert not torch.allclose(net(rows), library(net, rows, torch.zeros_like(hidden)), atol=1e-6)  # not causal


def test_one_item_by_hand() -> None:
    """With one item attention returns its value; the feed-forward layers are switched off here."""
    net = CausalTransformer(width=2, layers=1, heads=1, length=1).double()
    eye, none = torch.eye(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    block = net.blocks[0]
    assert isinstance(block, Block)
    with torch.no_grad():
        net.positions.copy_(torch.tensor([[1.0, 0.0]]))
        block.attention.read.weight.copy_(torch.cat([none, none, eye]))
        block.attention.write.weight.copy_(3 * eye)
        block.feed_forward.write.weight.zero_()
    # item (1, 0) + position (1, 0) = (2, 0), normalised (1, -1), times 3 and added: (5, -3), normalised (1, -1)
    found = block(torch.tensor([[[2.0, 0.0]]], dtype=torch.float64))
    assert_close(found, torch.tensor([[[5.0, -3.0]]], dtype=torch.float64), rtol=0, atol=1e-4)  # epsilon of the norm
    final = net(torch.tensor([[[1.0, 0.0]]], dtype=torch.float64))
    assert_close(final, torch.tensor([[[1.0, -1.0]]], dtype=torch.float64), rtol=0, atol=1e-4)
    assert not torch.allclose(block(torch.tensor([[[0.0, 2.0]]], dtype=torch.float64)), found, atol=1e-1)


# The cache


@every_dtype
@FEWER
@given(sizes=any_sizes())
def test_cached_steps_agree_with_the_full_pass(dtype: torch.dtype, sizes: Sizes) -> None:
    net, rows = lively(lambda: CausalTransformer(**sizes.shape()), dtype), items(sizes, dtype)
    cache = net.start(sizes.batch, "cpu", dtype)
    assert cache.keys.shape == (sizes.layers, sizes.batch, sizes.heads, sizes.length, sizes.head)
    for t in range(sizes.count):
        assert_close(net.step(rows[:, t], cache, t), net(rows)[:, t], rtol=0, atol=DTYPES[dtype])


@every_dtype
@FEWER
@given(sizes=any_sizes())
def test_encoders_step_through_the_rows_of_their_full_pass(dtype: torch.dtype, sizes: Sizes) -> None:
    first, second = tokens(sizes), tokens(sizes, 1, SYMBOLS + 1)
    one, two = token_encoder(sizes, dtype), pair_encoder(sizes, dtype)
    assert one(first).shape == (sizes.batch, sizes.count + 1, sizes.head * sizes.heads)
    assert_close(steps(one, first), one(first), rtol=0, atol=DTYPES[dtype])
    assert_close(steps(two, first, second), two(first, second), rtol=0, atol=DTYPES[dtype])


def test_the_cache_must_have_seen_the_same_prefix() -> None:
    """What lies behind the present position is never read; what lies before it is."""
    sizes = Sizes()
    net, first, second = token_encoder(sizes), tokens(sizes), tokens(sizes, 1)
    cache, _ = net.start(sizes.batch, "cpu")
    for t in range(1, 5):
        net.step(first[:, t - 1], cache, t)
    again = [net.step(second[:, t - 1], cache, t) for t in range(1, 5)]  # a used cache, from the first token on
    assert_close(torch.stack(again, 1), net(second)[:, 1:], rtol=0, atol=1e-10)
    fresh, _ = net.start(sizes.batch, "cpu")
    assert not torch.allclose(net.step(second[:, 3], fresh, 4), again[3], atol=1e-3)  # three tokens were left out


def test_steps_carry_no_gradient() -> None:
    sizes = Sizes()
    net = token_encoder(sizes)
    assert not steps(net, tokens(sizes)).requires_grad
    assert net(tokens(sizes)).requires_grad


# Causality and padding


@FEWER
@given(sizes=any_sizes(fewest=1), at=st.integers(0, 6))
def test_a_later_token_changes_no_earlier_row(sizes: Sizes, at: int) -> None:
    at, net, first = at % sizes.count, token_encoder(sizes), tokens(sizes)
    other = first.clone()
    other[:, at] = (first[:, at] + 1) % SYMBOLS
    before, after = net(first), net(other)
    assert_close(before[:, : at + 1], after[:, : at + 1], rtol=0, atol=1e-12)  # row t has read tokens 0..t-1
    if net.width > 2:  # a norm over one or two numbers leaves signs only
        assert ((before - after)[:, at + 1].abs().amax(-1) > 1e-6).all()


@FEWER
@given(sizes=any_sizes(), seed=st.integers(0, 99))
def test_padding_needs_no_mask(sizes: Sizes, seed: int) -> None:
    """Rows of a shorter sequence are the same alone and with any symbols behind its end, and those stay finite."""
    net, long = token_encoder(sizes), tokens(sizes)
    ends = torch.randint(sizes.count + 1, (sizes.batch,), generator=torch.Generator().manual_seed(seed))
    behind = torch.arange(sizes.count) >= ends[:, None]
    found = net(torch.where(behind, tokens(sizes, seed), long))
    assert found.isfinite().all()
    for row, end in enumerate(ends.tolist()):
        assert_close(found[row, : end + 1], net(long[row : row + 1, :end])[0], rtol=0, atol=1e-10)


def test_padding_sends_no_gradient() -> None:
    """An objective that reads the rows up to the end leaves the blank's embedding alone; one that reads on does not."""
    net, row = token_encoder(Sizes()), torch.tensor([[0, 1, 4, 4]])
    for upto, moved in ((3, False), (5, True)):
        net.zero_grad(set_to_none=True)
        (net(row)[:, :upto] * torch.arange(6)).sum().backward()
        gradient = net.token.weight.grad
        assert gradient is not None
        assert bool(gradient[4].any()) == moved
        assert bool(gradient[:2].any(-1).all())


@FEWER
@given(sizes=any_sizes(), seed=st.integers(0, 99))
def test_a_permuted_batch_gives_permuted_rows(sizes: Sizes, seed: int) -> None:
    order = torch.randperm(sizes.batch, generator=torch.Generator().manual_seed(seed))
    net, first, second = pair_encoder(sizes), tokens(sizes), tokens(sizes, 1)
    assert_close(net(first[order], second[order]), net(first, second)[order], rtol=0, atol=1e-10)


def test_order_and_agreement_are_seen() -> None:
    sizes = Sizes(batch=1, count=2)
    net, pairs = token_encoder(sizes), pair_encoder(sizes)
    assert not torch.allclose(net(torch.tensor([[0, 1]]))[:, 2], net(torch.tensor([[1, 0]]))[:, 2], atol=1e-3)
    with torch.no_grad():
        pairs.realised.weight.zero_()  # all that is left of what was realised is whether it was meant
    same, other, third = (pairs(torch.tensor([[1, 1]]), torch.tensor([[1, k]])) for k in (1, 0, 2))
    assert torch.equal(other, third)
    assert torch.equal(same[:, :2], other[:, :2])
    assert not torch.allclose(same[:, 2], other[:, 2], atol=1e-3)


# Training


@pytest.mark.parametrize("layers", [1, 3])
def test_gradients_reach_every_parameter(layers: int) -> None:
    """Every entry, except the bias of the keys: it shifts all attention scores of a row alike."""
    sizes = Sizes(batch=16, layers=layers)
    for net, columns in ((token_encoder(sizes), 1), (pair_encoder(sizes), 2)):
        weights = torch.randn(16, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        symbols = (SYMBOLS, SYMBOLS + 1)
        (net(*(tokens(sizes, i, symbols[i]) for i in range(columns))) * weights).sum().backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None, name
            moved = parameter.grad.abs() > 1e-12
            if name.endswith("attention.read.bias"):
                assert not moved[6:12].any()
                moved[6:12] = True
            assert moved.all(), name


def test_gradients_are_those_of_finite_differences() -> None:
    net = lively(lambda: CausalTransformer(width=4, layers=2, heads=2, length=3))
    rows = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(net, (rows,))


def test_a_copying_task_is_learned() -> None:
    """The first token, asked for at the end: attention has to carry it there."""
    sizes = Sizes(batch=64, head=8, count=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net, head = TokenEncoder(SYMBOLS, **sizes.shape()), nn.Linear(16, SYMBOLS)
    optimiser = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=0.01)
    for seed in range(60):
        row = tokens(sizes, seed)
        optimiser.zero_grad()
        nn.functional.cross_entropy(head(net(row)[:, -1]), row[:, 0]).backward()
        optimiser.step()
    row = tokens(sizes, 10_000)
    with torch.no_grad():
        assert (head(net(row)[:, -1]).argmax(-1) == row[:, 0]).all()
        assert not (head(net(row)[:, 0]).argmax(-1) == row[:, 0]).all()  # the empty prefix cannot know


def test_new_weights_fit_the_width_and_residual_ones_the_depth() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = TokenEncoder(500, width=64, layers=8, heads=2, length=200)
    for name, parameter in net.named_parameters():
        if parameter.ndim == 2:
            kind = ".".join(name.split(".")[-3:])
            wanted = {
                "attention.read.weight": 1 / 8,
                "attention.write.weight": 1 / 8 / 4,  # the root of twice eight layers is four
                "feed_forward.read.weight": 1 / 8,
                "feed_forward.write.weight": 1 / 16 / 4,  # four times as many inputs
            }.get(kind, 1.0)
            assert abs(float(parameter.detach().std()) / wanted - 1) < 0.05, name
        elif name.endswith("bias"):
            assert not parameter.any(), name


# Static shapes


def test_nothing_reads_a_number_back_from_the_device() -> None:
    """Meta tensors have shapes and no numbers: a host sync or a shape made from data would raise."""
    sizes = Sizes()
    for net, columns in ((token_encoder(sizes).to("meta"), 1), (pair_encoder(sizes).to("meta"), 2)):
        row = torch.empty(3, 4, dtype=torch.int64, device="meta")
        net(*[row] * columns).sum().backward()
        cache, hidden = net.start(3, "meta")
        for t in range(1, 5):
            hidden = net.step(*[row[:, t - 1]] * columns, cache, t)
        assert hidden.shape == (3, 6)
    with pytest.raises(RuntimeError, match="meta"):
        row.sum().item()


# Errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"heads": 4}, "heads must divide width 6, got 4: choose one of [1, 2, 3, 6]"),
        ({"layers": 0}, "layers must be 1 or more, got 0"),
        ({"heads": 0}, "heads must be 1 or more, got 0"),
        ({"width": 0}, "width must be 1 or more, got 0"),
        ({"length": 0}, "length must be 1 or more, got 0"),
    ],
)
def test_wrong_sizes_are_named(wrong: dict[str, int], message: str) -> None:
    shape = Sizes().shape() | wrong
    for make in (CausalTransformer, partial(TokenEncoder, 5), partial(PairEncoder, 5, 5)):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            make(**shape)
        assert str(error.value) == message


def test_what_does_not_fit_is_named() -> None:
    sizes = Sizes()
    core, net, long = lively(lambda: CausalTransformer(**sizes.shape())), token_encoder(sizes), Sizes(count=5)
    with pytest.raises(ValueError, match=r"a sequence of 5 items does not fit: length is 4, make it 5"):
        core(items(long))
    with pytest.raises(ValueError, match=r"5 items do not fit: length is 4, make it 5"):
        net(tokens(long))
    for position in (-1, 4):
        with pytest.raises(ValueError, match=r"position must lie in 0\.\.3 \(length 4\), got"):
            core.step(items(sizes)[:, 0], core.start(3, "cpu", torch.float64), position)
    cache, _ = net.start(3, "cpu")
    for t in (0, 5):
        with pytest.raises(ValueError, match=r"t must lie in 1\.\.4"):
            net.step(tokens(sizes)[:, 0], cache, t)
    with pytest.raises(ValueError, match="one symbol or more"):
        TokenEncoder(0, **sizes.shape())
