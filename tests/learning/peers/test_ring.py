"""The ring buffer against a Python list."""

from collections import deque

import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.learning.peers.ring import RingBuffer

CPU = torch.device("cpu")


@PROPERTY
@given(capacity=st.integers(1, 6), batches=st.lists(st.lists(st.booleans(), min_size=1, max_size=9), max_size=6))
def test_it_keeps_the_newest_of_the_chosen(capacity: int, batches: list[list[bool]]) -> None:
    ring, model, number = RingBuffer(capacity, CPU, twice=2, once=1), deque(maxlen=capacity), 0
    for batch in batches:
        rows = torch.arange(number, number + len(batch))
        ring.add(torch.tensor(batch), twice=torch.stack([rows, -rows], 1), once=rows[:, None])
        model.extend(row for row, chosen in zip(rows.tolist(), batch, strict=True) if chosen)
        number += len(batch)
    assert int(ring.filled) == len(model)
    assert int(ring.added) == sum(map(sum, batches))
    found = ring.read(torch.arange(len(model)))
    assert sorted(found["once"][:, 0].tolist()) == list(model)
    assert torch.equal(found["twice"], torch.cat([found["once"], -found["once"]], 1))
    drawn = ring.sample(60 * capacity, torch.Generator().manual_seed(0))["once"]
    assert set(drawn[:, 0].tolist()) == (set(model) or {0})


def test_what_is_left_out_never_enters_a_checkpoint() -> None:
    first, second = RingBuffer(3, CPU, value=1), RingBuffer(3, CPU, value=1)
    values = torch.tensor([[5], [6], [7], [8]])
    first.add(torch.tensor([True, False, True, False]), value=values)
    second.add(torch.tensor([True, True]), value=torch.tensor([[5], [7]]))
    assert all(torch.equal(value, second.state()[name]) for name, value in first.state().items())
    assert first.state()["value"][:, 0].tolist() == [5, 7, 0]
    for name, held in RingBuffer(3, CPU, value=1).state().items():
        held.copy_(first.state()[name])
    kept = second.state()
    kept["value"].zero_()  # the tensors of the state are the buffer's own
    assert second.read(torch.tensor([0]))["value"].tolist() == [[0]]
