"""Train the forecasting network that comes with the package on simulated series, and write its weights.

    python -m benchmarks.pretraining --device cpu --steps 100000 --out src/sgfn/series/data/pretrained.safetensors

Series are drawn anew all the time, none is seen twice but for the Gaussian processes that some are made of.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.common import device_here, positive
from benchmarks.pretraining.simulated import Draw, drawn_seasons, gaussian_process, simulate
from sgfn.series.pretrained import CONTEXT, HORIZON, PretrainedNet, Shown, show
from sgfn.series.quantile_laws import GRID

STEPS = 320
"""Length of a simulated series."""
SHORTEST = 10
HORIZONS = (4, 6, 8, 10, 12, 13, 14, 18, 24, 30, 48, 64)
ASKED = 6
"""Steps ahead that are asked of each history."""
PROCESSES, DRAWN = 1_200, 100
SERIES, CUTS = 4_096, 6
"""Series drawn at a time, and histories taken of each."""
KEPT, TIMES = 8, 3
"""Draws that are kept to learn from, and how often each is learned from."""
LEAST_BEND = 0.1
FAR = 60.0
"""Distance from seasonal naive, in units, beyond which values count as no farther."""


def pinball(found: Float[Tensor, "B H Q"], truth: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
    """Mean quantile loss over the levels of the grid."""
    levels = torch.tensor(GRID, device=found.device, dtype=found.dtype)
    error = truth[..., None] - found
    return torch.maximum(levels * error, (levels - 1) * error).mean(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Tasks:
    """Histories that end at the last column, how long they are, their seasons, steps ahead, and what comes there."""

    values: Float[Tensor, "B C"]
    count: Int[Tensor, " B"]
    season: Int[Tensor, " B"]
    steps: Int[Tensor, "B H"]
    truth: Float[Tensor, "B H"]


def tasks(generator: torch.Generator, processes: Tensor, count: int = SERIES) -> Tasks:
    """Histories of many lengths out of simulated series, and some steps of a horizon of usual length."""
    series, season = simulate(count, STEPS, generator, processes)
    series, season = series.repeat(CUTS, 1), season.repeat(CUTS)
    order = torch.randperm(len(series), generator=generator, device=generator.device)
    series, season = series[order], season[order]
    draw = Draw(len(series), generator)
    cut = draw.uniform(SHORTEST + 2, STEPS - 4).long()
    cut = torch.maximum(cut, (2 * season + 2).clamp(max=STEPS - 4))
    count_ = torch.minimum(draw.log_uniform(SHORTEST, CONTEXT * 1.6).long().clamp(max=CONTEXT), cut)
    count_ = torch.maximum(count_, torch.minimum(2 * season + 2, cut)).clamp(max=CONTEXT)
    ends = torch.tensor(HORIZONS, device=generator.device)[draw.uniform(0, len(HORIZONS)).long()]
    ends = torch.minimum(ends, STEPS - cut)[:, None]
    steps = (draw.uniform(0, 1, ASKED) * ends).long().clamp(max=HORIZON - 1)
    place = cut[:, None] - CONTEXT + torch.arange(CONTEXT, device=generator.device)
    values = series.gather(1, place.clamp(min=0))
    return Tasks(values=values, count=count_, season=season, steps=steps, truth=series.gather(1, cut[:, None] + steps))


def losses(
    found: Float[Tensor, "B H Q"], base: Tensor, unit: Tensor, bend: Tensor, truth: Float[Tensor, "B H"]
) -> Float[Tensor, ""]:
    """Mean quantile loss in units; series that hardly bend, whose errors can be small, count for more."""
    scaled = ((truth - base) / unit[:, None]).clamp(-FAR, FAR)
    weights = 1 / bend.clamp(LEAST_BEND, 1.0)
    return (pinball(found, scaled).mean(1) * weights).sum() / weights.sum()


def usable(values: Tensor, shown: Shown) -> Tensor:
    """Series that change at all: nothing can be learned of others."""
    return torch.isfinite(shown.whole).all(1) & (shown.unit > 1e-5 * values.abs().amax(1).clamp(min=1e-6))


def main() -> None:
    """Train for some steps, tell how it goes, and write the weights in half precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=device_here, default="cuda")
    parser.add_argument("--steps", type=positive, default=100_000)
    parser.add_argument("--batch", type=positive, default=512)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    torch.manual_seed(chosen.seed)
    generator = torch.Generator(device).manual_seed(chosen.seed)
    processes = torch.cat([_processes(DRAWN, generator) for _ in range(PROCESSES // DRAWN)])
    net = PretrainedNet().to(device)
    average = {name: value.clone() for name, value in net.state_dict().items()}
    optimiser = torch.optim.AdamW(net.parameters(), lr=chosen.rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    step, told, running = 0, 0.0, None
    pool = list[tuple[Tensor, ...]]()
    while step < chosen.steps:
        pool = [*pool[-KEPT + 1 :], drawn(generator, processes)]
        for _ in range(TIMES):
            parts = pool[int(torch.randint(len(pool), (), generator=generator))]
            order = torch.randperm(len(parts[0]), generator=generator, device=device)
            for rows in order.split(chosen.batch):
                for group in optimiser.param_groups:
                    falling = 0.01 + 0.495 * (1 + math.cos(math.pi * min(step / chosen.steps, 1.0)))
                    group["lr"] = chosen.rate * min(1.0, (step + 1) / 500) * falling
                whole, ahead, anchors, *rest = (part[rows] for part in parts)
                with torch.autocast(device.type, torch.bfloat16):
                    found = net(whole, ahead, anchors)
                loss = losses(found, *rest)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimiser.step()
                step += 1
                with torch.no_grad():
                    torch._foreach_lerp_(list(average.values()), list(net.state_dict().values()), max(1 / step, 1e-3))
                last = float(loss.detach())
                running = last if running is None else 0.998 * running + 0.002 * last
        if (share := step / chosen.steps) > told:
            told += 0.01
            print(f"{share:.2f} step {step} loss {running:.4f}", flush=True)
            keep(average, chosen.out)
    keep(average, chosen.out)
    print(f"{step} steps of {chosen.batch} histories, {chosen.out}")


def drawn(generator: torch.Generator, processes: Tensor) -> tuple[Tensor, ...]:
    """What the network sees of a draw of histories, and what came."""
    many = tasks(generator, processes)
    with torch.no_grad():
        shown = show(many.values, many.count, many.season, many.steps)
        good = usable(many.values, shown)
    parts = (shown.whole, shown.ahead, shown.anchors, shown.base, shown.unit, shown.bend, many.truth)
    return tuple(part[good] for part in parts)


def _processes(count: int, generator: torch.Generator) -> Tensor:
    draw = Draw(count, generator)
    return gaussian_process(draw, STEPS, drawn_seasons(draw).clamp(min=2))


def keep(weights: dict[str, Tensor], out: Path) -> None:
    """Write weights in half precision."""
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: value.half().cpu().contiguous() for name, value in weights.items()}, out)


if __name__ == "__main__":
    main()
