"""One of two processes that compute a gradient together; prints how far it is from that of one process, as JSON.

Started by tests/learning/test_parallel.py with the variables that torchrun sets. Then it is `sgfn` with the words that
it was given, as another process would be: starting takes longer than either.
"""

import json
import sys
from typing import Any

import torch
from small_runs import small, tiny_task
from torch import nn

from sgfn import cli
from sgfn.learning import optimisation
from sgfn.learning.ahead import objects_of
from sgfn.learning.parallel import ParallelTrainer, joined, launched
from sgfn.learning.trainer import Trainer

CPU = torch.device("cpu")


def compare(stop: bool, **changes: Any) -> dict[str, float]:
    """Largest differences between gradients of both ranks and of one process: reduced, and of one share alone."""
    ranks = launched()
    assert ranks is not None
    task = tiny_task(small(batch=8, **changes), stop=stop)
    whole, share = Trainer(task, CPU), ParallelTrainer(task, CPU, ranks=ranks)
    for name, one in share.optimisers().items():
        one.values.copy_(whole.optimisers()[name].values)  # a smaller batch guesses another log Z
    intended, realised = whole.general.roll(whole.general.draw(whole.generator, 1.0))
    past = (intended, realised, task.log_reward(objects_of(whole.env, realised)).double())
    beta, rate = torch.tensor(2.0), torch.ones(())
    own = slice(4 * ranks.rank, 4 * ranks.rank + 4)
    whole.general.learn_from(past, beta, rate)
    share.general.learn_from((past[0][own], past[1][own], past[2][own]), beta, rate)
    found = {}
    for name, one in whole.optimisers().items():
        found[name] = float((one.gradient - share.optimisers()[name].gradient).abs().max())
        found[f"{name} size"] = float(one.gradient.abs().max())
    alone = Trainer(task, CPU)
    twice = (past[0][own].repeat(2, 1), past[1][own].repeat(2, 1), past[2][own].repeat(2))
    alone.general.learn_from(twice, beta, rate)
    found["one share"] = float((whole.optimiser.gradient - alone.optimiser.gradient).abs().max())
    share.backend = share.general
    for _ in range(3):  # whatever each rolls out, all have the same weights afterwards
        share.step()
    mean = share.optimiser.values.clone()
    ranks.mean(mean)
    found["weights"] = float((mean - share.optimiser.values).abs().max())
    total = ranks.total(torch.tensor(float(share.meters[0])))
    found["own batches"] = abs(float(total) / 2 - float(share.meters[0]))
    return found


def main() -> None:
    torch.set_default_dtype(torch.float64)
    plain = nn.Linear.forward
    nn.Linear.forward = lambda self, input: plain(self, input.double())  # states are encoded in single precision
    adam = optimisation.fused_adam  # torch's takes its scalars in single precision alone
    optimisation.fused_adam = lambda *tensors: adam(*tensors[:4], *(one.float() for one in tensors[4:]))
    with joined(launched(), CPU):
        found = {str(stop): compare(stop, dynamics__mode="batch") for stop in (False, True)}
        sys.stdout.write(json.dumps(found) + "\n")
    nn.Linear.forward, optimisation.fused_adam = plain, adam
    torch.set_default_dtype(torch.float32)


if __name__ == "__main__":
    main()
    sys.exit(cli.main(sys.argv[1:]))
