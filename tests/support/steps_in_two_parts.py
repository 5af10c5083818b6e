"""Steps as a GPU runs them when compiled, in two parts, the second left for later: how far they are from plain ones.

Run it as `python tests/support/steps_in_two_parts.py '[{"noise__alpha": 0.3}]'`. A process of its own, as a compiler
does not follow the checks of types that tests add. Sequences are short: what is traced holds every step of a rollout.
"""

import json
import sys
from typing import Any

import torch
from small_runs import small, tiny_task

from sgfn.learning import trainer
from sgfn.learning.kernels.fixed_length_rollout import SequenceRollouts
from sgfn.learning.trainer import Trainer


class Deferred:
    """Stands in for a second stream: what is left for it is done only when somebody waits for it."""

    def __init__(self) -> None:
        self.left: tuple[Any, Any] | None = None

    def do(self, work: Any, given: Any) -> None:
        self.settle()
        self.left = (work, given)

    def settle(self) -> None:
        (work, given), self.left = self.left or (lambda _: None, None), None
        work(given)


def furthest(first: Trainer, second: Trainer) -> float:
    """Largest difference of two states."""
    pairs = zip(first.state().values(), second.state().values(), strict=True)
    return max(float((a.double() - b.double()).abs().max()) for a, b in pairs)


STAND_INS: dict[str, Any] = {
    "compiled": lambda function, _: torch.compile(function, backend="aot_eager", fullgraph=True),
    "KernelSequenceRollouts": SequenceRollouts,
    "SideStream": Deferred,
}


def compare(changes: dict[str, Any]) -> dict[str, float]:
    """A few steps of both kinds, traced but left as they are: the compiler's own part is tested elsewhere."""
    plain, other = (Trainer(tiny_task(small(**changes), length=2), torch.device("cpu")) for _ in range(2))
    torch.compiler.reset()
    other.compile()
    for _ in range(4):
        plain.step()
        other.step()
    other.settle()
    assert isinstance(other.side_stream, Deferred)
    apart = furthest(plain, other)
    other.optimiser.advance_count()
    return {"apart": apart, "counted twice": furthest(plain, other)}


if __name__ == "__main__":
    for name, value in STAND_INS.items():
        setattr(trainer, name, value)
    print(json.dumps([compare(changes) for changes in json.loads(sys.argv[1])]))  # noqa: T201
