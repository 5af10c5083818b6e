"""Series drawn by a programme: trends, seasons, cycles, breaks, growth, counts and outliers of many kinds, in batches.

A series is a level with a damped slope, plus a season that may drift, plus an autoregression with real or complex
roots, plus noise; or a draw of a Gaussian process. It may then be made multiplicative, be counted, or have holes.
Every part has a scale of its own, drawn on a logarithmic scale, and is often absent.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

SEASONS = (
    (1, 0.27),
    (4, 0.2),
    (12, 0.28),
    (7, 0.07),
    (5, 0.02),
    (24, 0.05),
    (52, 0.04),
    (6, 0.01),
    (48, 0.02),
    (0, 0.04),
)
"""Seasons and how often each is drawn; 0 is any one up to 26."""
LONGEST = 56


class Draw:
    """Random numbers of one batch of series."""

    def __init__(self, count: int, generator: torch.Generator) -> None:
        self.count, self.generator, self.device = count, generator, generator.device

    def uniform(self, low: float = 0.0, high: float = 1.0, *shape: int) -> Tensor:
        """Uniform numbers, one for each series, or more."""
        return low + (high - low) * torch.rand(self.count, *shape, generator=self.generator, device=self.device)

    def log_uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Numbers whose logarithm is uniform."""
        return self.uniform(math.log(low), math.log(high), *shape).exp()

    def normal(self, *shape: int) -> Tensor:
        """Normal numbers."""
        return torch.randn(self.count, *shape, generator=self.generator, device=self.device)

    def chance(self, probability: float, *shape: int) -> Bool[Tensor, "..."]:
        """True with a probability."""
        return self.uniform(0, 1, *shape) < probability

    def sometimes(self, probability: float, values: Tensor) -> Tensor:
        """Values, or zero, for each series."""
        return torch.where(self.chance(probability), values, 0.0)


def drawn_seasons(draw: Draw) -> Int[Tensor, " B"]:
    """A season for each series."""
    chances = torch.tensor([share for _, share in SEASONS], device=draw.device)
    place = torch.multinomial(chances, draw.count, replacement=True, generator=draw.generator)
    named = torch.tensor([steps for steps, _ in SEASONS], device=draw.device)[place]
    return torch.where(named > 0, named, draw.uniform(2, 27).long())


def trend(draw: Draw, steps: int) -> Float[Tensor, "B T"]:
    """A level with a damped slope, both with shocks; rarely with breaks of either."""
    slope = draw.sometimes(0.6, draw.normal() * draw.log_uniform(0.003, 0.3))
    drift, bend = draw.sometimes(0.6, draw.log_uniform(0.02, 1.0)), draw.sometimes(0.3, draw.log_uniform(0.002, 0.1))
    damping = torch.where(draw.chance(0.5), 1.0, draw.uniform(0.8, 1.0))
    rest = torch.where(draw.chance(0.5), 0.0, slope * draw.uniform(0, 1))  # what the slope returns to
    shift = draw.sometimes(0.15, draw.log_uniform(0.5, 6.0))
    turn = draw.sometimes(0.2, draw.log_uniform(0.02, 0.5))
    shocks = draw.normal(4, steps)
    shocks[:, 0] = unsteady(draw, shocks[:, 0])
    events = draw.chance(1 / 80, 2, steps)
    moves = drift[:, None] * shocks[:, 0] + shift[:, None] * shocks[:, 2] * events[:, 0]
    bends = bend[:, None] * shocks[:, 1] + turn[:, None] * shocks[:, 3] * events[:, 1]
    found = []
    for at in range(steps):
        slope = rest + damping * (slope - rest) + bends[:, at]
        found.append(slope + moves[:, at])
    return torch.stack(found, 1).cumsum(1)


def autoregression(draw: Draw, steps: int) -> Float[Tensor, "B T"]:
    """An autoregression of order two with real roots, or complex ones: cycles; of mean square one."""
    size, angle = draw.uniform(0.2, 0.99), 2 * torch.pi / draw.log_uniform(3, 60)
    cycles = draw.chance(0.4)
    other = draw.sometimes(0.5, draw.uniform(-0.7, 0.9))
    first = torch.where(cycles, 2 * size * angle.cos(), size + other)
    second = torch.where(cycles, -size.square(), -size * other)
    shocks = draw.normal(steps)
    one, two, found = draw.normal() * 0, draw.normal() * 0, []
    for at in range(steps):
        one, two = first * one + second * two + shocks[:, at], one
        found.append(one)
    found = torch.stack(found, 1)
    return found / found.std(1, keepdim=True).clamp(min=1e-6)


def season(draw: Draw, steps: int, length: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """A pattern of a season of mean square one: smooth, rough or of few spikes; it may drift from cycle to cycle."""
    phase = torch.arange(LONGEST, device=draw.device)
    waves = torch.arange(1, 7, device=draw.device)
    angle = 2 * torch.pi * waves[:, None] * phase / length[:, None, None] + draw.uniform(0, 2 * torch.pi, 6)[..., None]
    decay = waves ** -draw.uniform(0.3, 2.5)[:, None]
    decay = decay * (waves <= length[:, None] / 2)
    smooth = ((draw.normal(6) * decay)[..., None] * angle.cos()).sum(1)
    rough = draw.normal(LONGEST)
    spikes = torch.where(draw.chance(0.15, LONGEST), draw.normal(LONGEST) * 3, 0.1 * draw.normal(LONGEST))
    kind = draw.uniform()[:, None]
    pattern = torch.where(kind < 0.5, smooth, torch.where(kind < 0.85, rough, spikes))
    inside = phase < length[:, None]
    pattern = torch.where(inside, pattern, 0.0)
    pattern = pattern - pattern.sum(1, keepdim=True) / length[:, None] * inside
    pattern = pattern / (pattern.square().sum(1, keepdim=True) / length[:, None]).sqrt().clamp(min=1e-6)
    place = torch.arange(steps, device=draw.device)
    turned = (place + draw.uniform(0, LONGEST).long()[:, None]) % length[:, None]
    found = pattern.gather(1, turned)
    drift = draw.sometimes(0.4, draw.log_uniform(0.01, 0.3))[:, None]
    wander = torch.zeros_like(pattern)
    moved = []
    for at in range(0, steps, 4):  # the pattern takes steps, four at a time
        span = (4 / length).sqrt()[:, None]
        wander = wander + drift * span * torch.where(inside, draw.normal(LONGEST), 0.0)
        moved.append(wander.gather(1, turned[:, at : at + 4]))
    growth = 1 + draw.sometimes(0.15, draw.normal())[:, None] * (place / steps)
    return found * growth + torch.cat(moved, 1)


def noise(draw: Draw, steps: int) -> Float[Tensor, "B T"]:
    """Noise of size one: normal or with heavy tails, its size constant, or changing slowly; rarely with outliers."""
    outliers = draw.chance(0.01, steps) & draw.chance(0.15)[:, None]
    return unsteady(draw, draw.normal(steps)) + torch.where(outliers, 6 * draw.normal(steps), 0.0)


def unsteady(draw: Draw, shocks: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Normal shocks as they are, or with heavy tails; of constant size, or one that changes slowly, as of prices."""
    steps = shocks.shape[1]
    heavy = shocks / (draw.normal(3, steps).square().mean(1)).sqrt().clamp(min=0.05)
    shocks = torch.where(draw.chance(0.25)[:, None], heavy.clamp(-12, 12), shocks)
    log_size = draw.sometimes(0.25, draw.log_uniform(0.2, 1.2))[:, None] * smooth_noise(draw, steps)
    return shocks * log_size.exp()


def smooth_noise(draw: Draw, steps: int) -> Float[Tensor, "B T"]:
    """Slowly changing numbers of size one: waves of random length."""
    place = torch.arange(steps, device=draw.device)
    angle = 2 * torch.pi * place / draw.log_uniform(20, 200, 3)[..., None] + draw.uniform(0, 2 * torch.pi, 3)[..., None]
    return angle.cos().sum(1) / 1.2


def gaussian_process(draw: Draw, steps: int, length: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """A draw with a sum or product of two kernels: smooth, rough, periodic or linear; of mean square one."""
    place = torch.arange(steps, device=draw.device).double()
    apart = (place[:, None] - place).abs()

    def kernel() -> Tensor:
        scale = draw.log_uniform(3, 150).double()[:, None, None]
        wave = torch.sin(torch.pi * apart / length.double()[:, None, None])
        near = draw.log_uniform(0.3, 2.0).double()[:, None, None]
        centre = draw.uniform(0, float(steps)).double()[:, None]
        line = (place - centre) / steps
        kinds = [torch.exp(-0.5 * (apart / scale).square()), torch.exp(-apart / scale)]
        kinds += [torch.exp(-2 * (wave / near).square()), line[:, :, None] * line[:, None]]
        pick = torch.multinomial(
            torch.tensor([0.3, 0.25, 0.3, 0.15], device=draw.device),
            draw.count,
            replacement=True,
            generator=draw.generator,
        )
        return torch.stack(kinds, 1)[torch.arange(draw.count, device=draw.device), pick]

    one, two = kernel(), kernel()
    both = torch.where(draw.chance(0.6)[:, None, None], one + two, one * two)
    jitter = 1e-4 * torch.eye(steps, device=draw.device, dtype=torch.float64)
    factor = torch.linalg.cholesky_ex(both + jitter)[0]
    found = (factor @ draw.normal(steps, 1).double())[..., 0].float()
    found = torch.nan_to_num(found, nan=0.0)
    return found / found.std(1, keepdim=True).clamp(min=1e-6)


def simulate(
    count: int, steps: int, generator: torch.Generator, processes: Float[Tensor, "N T"] | None = None
) -> tuple[Float[Tensor, "B T"], Int[Tensor, " B"]]:
    """Series, and the season that a forecaster is told for each; `processes` are draws to take some series from."""
    draw = Draw(count, generator)
    length = drawn_seasons(draw)
    present = (length > 1) & draw.chance(0.72)
    size = torch.where(present, draw.log_uniform(0.3, 8.0), 0.0)[:, None]
    parts = [trend(draw, steps) * draw.sometimes(0.85, draw.log_uniform(0.2, 2.0))[:, None]]
    parts.append(size * season(draw, steps, length.clamp(min=2)))
    parts.append(draw.sometimes(0.5, draw.log_uniform(0.3, 3.0))[:, None] * autoregression(draw, steps))
    parts.append(draw.sometimes(0.85, draw.log_uniform(0.05, 1.5))[:, None] * noise(draw, steps))
    if processes is not None:
        some = processes[(draw.uniform(0, len(processes))).long()]
        parts.append(draw.sometimes(0.25, draw.log_uniform(0.5, 6.0))[:, None] * some)
    series = torch.stack(parts).sum(0)
    return reshaped(draw, series), told(draw, length, present)


def told(draw: Draw, length: Int[Tensor, " B"], present: Bool[Tensor, " B"]) -> Int[Tensor, " B"]:
    """The season that a forecaster is told: that of the series, mostly; where there is none, half of the time."""
    kept = torch.where(present, draw.chance(0.95), draw.chance(0.5))
    return torch.where(kept, length, 1)


def reshaped(draw: Draw, series: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Series as they are, or as exponentials, saturating, counted, rounded, or mostly zero."""
    steps = series.shape[1]
    centred = (series - series.mean(1, keepdim=True)) / series.std(1, keepdim=True).clamp(min=1e-6)
    kind = draw.uniform()[:, None]
    growing = torch.exp(draw.log_uniform(0.02, 1.0)[:, None] * centred)
    squares = (centred + draw.uniform(1, 4)[:, None]).square()
    rate = draw.log_uniform(0.3, 300)[:, None] * torch.exp(draw.log_uniform(0.1, 0.8)[:, None] * centred).clamp(max=50)
    counts = torch.poisson(rate.clamp(max=1e4), generator=draw.generator)
    bounded = torch.sigmoid(draw.log_uniform(0.3, 2)[:, None] * centred + draw.normal()[:, None])
    floored = (series + draw.uniform(0, 3)[:, None] * series.std(1, keepdim=True)).clamp(min=0)
    found = torch.where(kind < 0.42, series, growing)
    for limit, other in ((0.76, squares), (0.80, counts), (0.88, bounded), (0.91, floored)):
        found = torch.where(kind >= limit, other, found)
    holes = draw.chance(0.03)[:, None] & draw.chance(0.4, steps)
    found = torch.where(holes & (kind >= 0.42), 0.0, found)
    grain = found.std(1, keepdim=True) * draw.log_uniform(0.02, 0.5)[:, None]
    return torch.where(draw.chance(0.08)[:, None], (found / grain.clamp(min=1e-9)).round() * grain, found)
