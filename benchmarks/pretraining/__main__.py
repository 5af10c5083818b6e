"""Train the forecasting network that comes with the package on simulated series, and write its weights.

    python -m benchmarks.pretraining --device cpu --out src/sgfn/series/data/pretrained.safetensors

Series are drawn anew all the time; each is learned from a few times, at several places. The weights that come with the
package took twelve minutes of a GPU that was shared with a study:

    python -m benchmarks.pretraining --device cuda --steps 100000000 --minutes 12.2 --times 5 --batch 4096 \\
        --series 32768 --processes 6000 --out src/sgfn/series/data/pretrained.safetensors
"""

import argparse
import math
import random
import time
from dataclasses import dataclass
from functools import lru_cache
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
DRAWN = 100
"""Gaussian processes drawn at a time."""
CUTS = 6
"""Histories taken of each series."""
KEPT, TIMES = 8, 3
"""Draws that are kept to learn from, and how often each is learned from."""
LEAST_BEND = 0.1
"""Series whose changes change by less than this, in units, count as those that do by this much."""
WARM, LAST_RATE = 500, 0.01
"""Steps of a rising rate; rate at the end, as a share of the highest."""
AVERAGED = 1e-3
"""Share of the newest weights in the mean that is kept, and of the newest loss in the one that is told."""
EAGER = 20
"""Steps on a GPU before one is captured."""
FAR = 60.0
"""Distance from seasonal naive, in units, beyond which values count as no farther."""


@lru_cache
def levels_on(device: torch.device) -> Float[Tensor, " Q"]:
    """Levels of the grid."""
    return torch.tensor(GRID, dtype=torch.float32, device=device)


def pinball(found: Float[Tensor, "B H Q"], truth: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
    """Mean quantile loss over the levels of the grid."""
    levels = levels_on(found.device)
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


def tasks(generator: torch.Generator, processes: Tensor, count: int) -> Tasks:
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
    """A network, its optimiser, and the running mean of its weights, which is what is kept.

    On a GPU a step is captured once and replayed.
    """

    def __init__(self, rate: float, steps: int, batch: int, device: torch.device, seconds: float) -> None:
        self.net = PretrainedNet().to(device)
        self.rate, self.steps, self.batch, self.device = rate, steps, batch, device
        self.parameters = [one.detach() for one in self.net.parameters()]
        self.average = [one.clone() for one in self.parameters]
        self.now, self.share = (torch.tensor(value, device=device) for value in (rate, 1.0))
        captured = {"capturable": True} if device.type == "cuda" else {}
        self.optimiser = torch.optim.AdamW(
            self.net.parameters(), lr=self.now, weight_decay=0.01, betas=(0.9, 0.98), fused=True, **captured
        )
        self.began, self.seconds = time.monotonic(), seconds
        self.done, self.loss = 0, torch.zeros((), device=device)
        self.parts: list[Tensor] = []
        self.graph: torch.cuda.CUDAGraph | None = None

    def progress(self) -> float:
        """Share of the steps, or of the time, that is over."""
        return min(max(self.done / self.steps, (time.monotonic() - self.began) / self.seconds), 1.0)

    def learn(self, *parts: Tensor) -> None:
        """One step on a batch."""
        falling = LAST_RATE + (1 - LAST_RATE) / 2 * (1 + math.cos(math.pi * self.progress()))
        self.now.fill_(self.rate * min(1.0, (self.done + 1) / WARM) * falling)
        self.done += 1
        self.share.fill_(max(1 / self.done, AVERAGED))
        if self.device.type != "cuda" or self.done <= EAGER:
            self.step(*parts)
            return
        if self.graph is None:
            self.parts, self.graph = [part.clone() for part in parts], torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.step(*self.parts)
        for place, part in zip(self.parts, parts, strict=True):
            place.copy_(part)
        self.graph.replay()

    def step(self, whole: Tensor, ahead: Tensor, anchors: Tensor, *rest: Tensor) -> None:
        """One step at the present rate."""
        with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False):
            found = self.net(whole, ahead, anchors)
        loss = losses(found, *rest)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimiser.step()
        for mean, newest in zip(self.average, self.parameters, strict=True):
            mean.lerp_(newest, self.share)
        self.loss.lerp_(loss.detach(), self.share)

    def learn_all(self, parts: tuple[Tensor, ...], generator: torch.Generator) -> None:
        """Steps on all histories of a draw, in random order; what is left over is not learned from."""
        for rows in torch.randperm(len(parts[0]), generator=generator, device=self.device).split(self.batch):
            if len(rows) == self.batch:
                self.learn(*(part[rows] for part in parts))

    def keep(self, out: Path) -> None:
        """Write the mean weights in half precision, and where they come from beside them."""
        out.parent.mkdir(parents=True, exist_ok=True)
        named = zip(self.net.state_dict(), self.average, strict=True)
        save_file({name: value.half().cpu().contiguous() for name, value in named}, out)
        told = {
            "what": "weights of sgfn.series.pretrained, fitted to series drawn by benchmarks/pretraining/simulated.py",
            "command": command("pretraining"),
            "machine": machine(self.device),
            "steps": self.done,
            "histories": self.done * self.batch,
            "loss": round(float(self.loss), 4),
            "licence": "Apache-2.0; no series of anybody was used",
            "sha256": sha256(out.read_bytes()),
        }
        write_json(out.with_suffix(".json"), told)


def drawn(generator: torch.Generator, processes: Tensor, count: int) -> tuple[Tensor, ...]:
    """What the network sees of a draw of histories, and what came."""
    many = tasks(generator, processes, count)
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
    parser.add_argument("--series", type=positive, default=4_096, help="drawn at a time")
    parser.add_argument("--processes", type=positive, default=1_200, help="Gaussian processes that series are made of")
    parser.add_argument("--times", type=positive, default=3, help="that each draw is learned from")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so many, however many steps")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    if chosen.batch > chosen.series * CUTS // 2:  # not all histories are usable, and whole batches alone are learned
        parser.error(f"--batch must be at most {CUTS // 2} times --series, got {chosen.batch} and {chosen.series}")
    device = torch.device(chosen.device)
    torch.manual_seed(chosen.seed)
    chosen_at = random.Random(chosen.seed)
    generator = torch.Generator(device).manual_seed(chosen.seed)
    parts = [_processes(DRAWN, generator) for _ in range(math.ceil(chosen.processes / DRAWN))]
    processes = torch.cat(parts)[: chosen.processes]
    training = Training(chosen.rate, chosen.steps, chosen.batch, device, 60 * chosen.minutes)
    pool, told = list[tuple[Tensor, ...]](), 0.0
    while training.progress() < 1:
        pool = [*pool[-KEPT + 1 :], drawn(generator, processes, chosen.series)]
        for _ in range(chosen.times):
            training.learn_all(pool[chosen_at.randrange(len(pool))], generator)
        if (share := training.progress()) > told:
            told += 0.01
            print(f"{share:.2f} step {training.done} loss {float(training.loss):.4f}", flush=True)
            training.keep(chosen.out)
    training.keep(chosen.out)
    print(f"{training.done} steps of {chosen.batch} histories, {chosen.out}")


if __name__ == "__main__":
    main()
