"""Our Adam over one buffer beside torch's fused one with `clip_grad_norm_`: time of an update alone, MLP 256 x 2.

python -m benchmarks.adam --device cpu
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.common import RESULTS, arguments, write_results
from sgfn.config import TrainConfig
from sgfn.landscapes.tasks import make_task
from sgfn.learning.optimisation import Optimiser
from sgfn.nets.heads import FlowNets

ROUNDS, UPDATES = 9, 200


def networks(device: torch.device) -> nn.Module:
    """The networks of the default run."""
    task = make_task("tfbind8", TrainConfig())
    return FlowNets(task.env, TrainConfig().net).to(device)


def ours(device: torch.device) -> Callable[[], None]:
    """An update of ours along fixed gradients."""
    parameters = list(networks(device).parameters())
    optimiser, factor = Optimiser([(parameters, 1e-3)], 10.0, device), torch.ones((), device=device)
    gradients = [torch.randn_like(p) for p in optimiser.parameters]
    return lambda: optimiser.apply(gradients, factor)


def theirs(device: torch.device) -> Callable[[], None]:
    """The same update by torch: fused, capturable where there is a GPU."""
    parameters = list(networks(device).parameters())
    optimiser = torch.optim.Adam(parameters, lr=1e-3, fused=True, capturable=device.type == "cuda")
    gradients = [torch.randn_like(p) for p in parameters]

    def update() -> None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()  # as autograd gives them: clipping changes them in place
        nn.utils.clip_grad_norm_(parameters, 10.0, foreach=True)
        optimiser.step()

    return update


def seconds(update: Callable[[], None], device: torch.device) -> float:
    """Of one update."""
    started = time.perf_counter()
    for _ in range(UPDATES):
        update()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - started) / UPDATES


def main() -> None:
    """Both in turns."""
    args = arguments(__doc__ or "", None)
    device = torch.device(args.device)
    torch.set_num_threads(1)
    updates = {"ours": ours(device), "torch": theirs(device)}
    found: dict[str, list[float]] = {name: [] for name in updates}
    for round_ in range(ROUNDS + 1):
        for name, update in updates.items():
            value = seconds(update, device)
            if round_:
                found[name].append(value)
    rows = [{"who": name, "microseconds": round(1e6 * statistics.median(v), 1)} for name, v in found.items()]
    ratio = statistics.median(t / o for o, t in zip(found["ours"], found["torch"], strict=True))
    print(rows, f"torch takes {ratio:.2f} times as long")
    write_results(args.out or RESULTS / f"adam_{device.type}.json", "adam", device, rows, torch_takes=round(ratio, 3))


if __name__ == "__main__":
    main()
