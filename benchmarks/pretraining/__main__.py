"""Train the forecasting network that comes with the package on simulated series, and write its weights.

    python -m benchmarks.pretraining --device cpu --out src/sgfn/series/data/pretrained.safetensors

Series are drawn anew all the time; each is learned from about three times, at several places. An hour and a half of one
core.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import save_file
from torch import Tensor

from benchmarks.common import command, device_here, machine, positive
from benchmarks.pretraining.simulated import Draw, drawn_seasons, gaussian_process, simulate
from sgfn.config.files import write_json
from sgfn.landscapes.tfbind8_tables import sha256
from sgfn.series.pretrained import HORIZON, PretrainedNet
from sgfn.series.quantile_laws import GRID
from sgfn.series.shown import CONTEXT, Shown, show

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
"""Series whose changes change by less than this, in units, count as those that do by this much."""
WARM, LAST_RATE = 500, 0.01
"""Steps of a rising rate; rate at the end, as a share of the highest."""
AVERAGED = 1e-3
"""Share of the newest weights in the mean that is kept."""
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


class Training:
    """A network, its optimiser, and the running mean of its weights, which is what is kept."""

    def __init__(self, rate: float, steps: int, batch: int, device: torch.device) -> None:
        self.net = PretrainedNet().to(device)
        self.rate, self.steps, self.batch, self.device = rate, steps, batch, device
        self.average = {name: value.clone() for name, value in self.net.state_dict().items()}
        self.optimiser = torch.optim.AdamW(
            self.net.parameters(), lr=rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True
        )
        self.done, self.loss = 0, float("nan")

    def learn(self, whole: Tensor, ahead: Tensor, anchors: Tensor, *rest: Tensor) -> None:
        """One step on a batch."""
        falling = LAST_RATE + (1 - LAST_RATE) / 2 * (1 + math.cos(math.pi * min(self.done / self.steps, 1.0)))
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * min(1.0, (self.done + 1) / WARM) * falling
        with torch.autocast(self.device.type, torch.bfloat16):
            found = self.net(whole, ahead, anchors)
        loss = losses(found, *rest)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimiser.step()
        self.done += 1
        for name, newest in self.net.state_dict().items():
            self.average[name].lerp_(newest, max(1 / self.done, AVERAGED))
        last = float(loss.detach())
        self.loss = last if self.done == 1 else 0.998 * self.loss + 0.002 * last

    def learn_all(self, parts: tuple[Tensor, ...], generator: torch.Generator) -> None:
        """Steps on all histories of a draw, in random order."""
        for rows in torch.randperm(len(parts[0]), generator=generator, device=self.device).split(self.batch):
            self.learn(*(part[rows] for part in parts))

    def keep(self, out: Path) -> None:
        """Write the mean weights in half precision, and where they come from beside them."""
        out.parent.mkdir(parents=True, exist_ok=True)
        save_file({name: value.half().cpu().contiguous() for name, value in self.average.items()}, out)
        told = {
            "what": "weights of sgfn.series.pretrained, fitted to series drawn by benchmarks/pretraining/simulated.py",
            "command": command("pretraining"),
            "machine": machine(self.device),
            "steps": self.done,
            "histories": self.done * self.batch,
            "loss": round(self.loss, 4),
            "licence": "Apache-2.0; no series of anybody was used",
            "sha256": sha256(out.read_bytes()),
        }
        write_json(out.with_suffix(".json"), told)


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


def main() -> None:
    """Train for some steps, tell how it goes, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=device_here, default="cpu")
    parser.add_argument("--steps", type=positive, default=90_000)
    parser.add_argument("--batch", type=positive, default=512)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    device = torch.device(chosen.device)
    torch.manual_seed(chosen.seed)
    generator = torch.Generator(device).manual_seed(chosen.seed)
    processes = torch.cat([_processes(DRAWN, generator) for _ in range(PROCESSES // DRAWN)])
    training, pool, told = Training(chosen.rate, chosen.steps, chosen.batch, device), list[tuple[Tensor, ...]](), 0.0
    while training.done < chosen.steps:
        pool = [*pool[-KEPT + 1 :], drawn(generator, processes)]
        for _ in range(TIMES):
            training.learn_all(pool[int(torch.randint(len(pool), (), generator=generator))], generator)
        if (share := training.done / chosen.steps) > told:
            told += 0.01
            print(f"{share:.2f} step {training.done} loss {training.loss:.4f}", flush=True)
            training.keep(chosen.out)
    training.keep(chosen.out)
    print(f"{training.done} steps of {chosen.batch} histories, {chosen.out}")


if __name__ == "__main__":
    main()
