"""Networks of the forecaster: a causal transformer over context and forecast that gives the law of the next bin."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sgfn.config import NetConfig
from sgfn.envs.base import Env
from sgfn.nets.encoders import Reader
from sgfn.nets.heads import small
from sgfn.nets.transformer import Cache, CausalTransformer, Drop
from sgfn.series.windows import LARGEST_INPUT, Inputs

REACHES = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Length scales, in mean sizes of a scaled value, at which a law may fall off around an anchor."""
ANCHORS = 2
"""Number of anchors of a law: the last value, and the linear extrapolation of the last two."""


class SeriesNet(nn.Module):
    r"""The outcome policy c(k|s) of a window, from the value before each step and the covariates known at it.

    The law may be concentrated near an anchor: near the last observed value v, or near its linear extrapolation $v + (v
    - u)$ from the value u before. Series that hardly change, or hardly bend, from step to step need that. With x
    running over the anchors that are known,

    .. math:: \log c(k|s) = (W h)_k + \sum_x \Big( a_{x0}(h)\,(c_k - x) - \sum_j a_{xj}(h)\,\frac{|c_k - x|}{r_j} \Big)

    up to a constant.

    Rows 0 to L-1 are the context, row L + t is the state after t forecast steps. Bins are read by their centres. With
    `deviation` the measurement error, in units of the data, is a parameter with that initial value.
    """

    centres: Float[Tensor, " N"]  # of the K bins, and a zero for a bin that is not known

    def __init__(
        self,
        config: NetConfig,
        *,
        features: int,
        context: int,
        horizon: int,
        centres: Float[Tensor, " K"],
        deviation: float | None = None,
    ) -> None:
        super().__init__()
        self.context, self.horizon, self.width = context, horizon, config.hidden + 2 * ANCHORS
        self.register_buffer("centres", torch.cat([centres.float(), torch.zeros(1)]), persistent=False)
        self.row = nn.Linear(features, config.hidden)
        self.value = nn.Linear(2, config.hidden, bias=False)
        self.core = CausalTransformer(
            width=config.hidden, layers=config.layers, heads=config.heads, length=context + horizon
        )
        with torch.no_grad():
            self.core.positions.mul_(0.1)  # at first a row's content counts more than its position
        self.outcome = small(nn.Linear(config.hidden, len(centres)))
        self.cling = small(nn.Linear(config.hidden, ANCHORS * (1 + len(REACHES))))  # weights of anchors, in checkpoints
        self.log_deviation = None if deviation is None else nn.Parameter(torch.tensor(deviation).log())

    def log_law(self, hidden: Float[Tensor, "*batch H"]) -> Float[Tensor, "*batch K"]:
        """log c(.|s) from the representation of a state: its row, its anchors, and which of them are known."""
        row, anchors, known = hidden.split([self.width - 2 * ANCHORS, ANCHORS, ANCHORS], -1)
        apart = self.centres[:-1] - anchors[..., None]  # X K
        near = torch.stack([apart, *(-apart.abs() / reach for reach in REACHES)], -1)  # X K J
        pull = self.cling(row).unflatten(-1, (ANCHORS, -1)) * known[..., None]  # X J
        return torch.log_softmax(self.outcome(row) + torch.einsum("...xkj,...xj->...k", near, pull), -1)

    def forward(
        self,
        inputs: Inputs,
        bins: Int[Tensor, "B T"],
        drop: Drop | None = None,
        hide: Bool[Tensor, "B M"] | None = None,
    ) -> Float[Tensor, "B N H"]:
        """Representations of the states along a path: row t has read t of the bins (K where a bin is not known).

        There are as many states as bins, and one more while the horizon is not reached. Where no bin is known, row t
        stands for the state after t unobserved steps: its law is the marginal one.
        """
        steps = min(bins.shape[1], self.horizon - 1)
        values, seen = self._before(inputs, bins[:, :steps])
        if hide is not None:
            seen = seen & ~hide[:, : seen.shape[1]]
        items = self.row(inputs.rows[:, : seen.shape[1]]) + self._value(values, seen)
        items = items if drop is None else drop(items)
        return self._state(self.core(items, drop), values, seen)[:, self.context :]

    def start(self, inputs: Inputs) -> tuple[Cache, Float[Tensor, "B H"]]:
        """Cache filled with the context, and representation of the state before the first step."""
        values, seen = self._before(inputs, torch.zeros_like(inputs.seen[:, :0], dtype=torch.int64))
        items = self.row(inputs.rows[:, : self.context + 1]) + self._value(values, seen)
        cache = self.core.start(len(items), items.device, items.dtype)
        return cache, self._state(self.core.fill(items, cache), values, seen)[:, -1]

    def step(
        self, row: Float[Tensor, "B W"], values: Float[Tensor, "B 2"], seen: Bool[Tensor, "B 2"], cache: Cache, t: int
    ) -> Float[Tensor, "B H"]:
        """Representation of the state after t steps, from its embedded row and the two values before, older first."""
        found = self.core.step(row + self._value(values[:, 1], seen[:, 1]), cache, self.context + t)
        return self._state(found[:, None], values, seen)[:, 0]

    def _state(
        self, rows: Float[Tensor, "B M W"], values: Float[Tensor, "B N"], seen: Bool[Tensor, "B N"]
    ) -> Float[Tensor, "B M H"]:
        """Rows with their anchors, computed from the last observed value before each and the one before that."""
        known, count = nn.functional.pad(seen, (1, 0)), rows.shape[1]
        values = nn.functional.pad(values, (1, 0))
        place = torch.arange(known.shape[1], device=known.device)
        last = torch.where(known, place, 0).cummax(1).values[:, -count:]  # column 0 is padding, and never known
        older = (last - 1).clamp(min=0)
        any_, both = known.gather(1, last), known.gather(1, last) & known.gather(1, older)
        line = (2 * values.gather(1, last) - values.gather(1, older)).clamp(-LARGEST_INPUT, LARGEST_INPUT)
        anchors = [values.gather(1, last) * any_, line * both, any_.to(rows.dtype), both.to(rows.dtype)]
        return torch.cat([rows, torch.stack(anchors, -1)], -1)

    def _before(self, inputs: Inputs, bins: Int[Tensor, "B T"]) -> tuple[Tensor, Tensor]:
        """Value before each row and whether it is known; no value comes before the first row."""
        none = torch.zeros_like(inputs.values[:, :1])
        values = torch.cat([none, inputs.values, self.centres[bins]], 1)
        known = bins < len(self.centres) - 1
        return values, torch.cat([none > 0, inputs.seen, known], 1)

    def _value(self, values: Float[Tensor, "*batch"], seen: Bool[Tensor, "*batch"]) -> Float[Tensor, "*batch H"]:
        known = seen.to(values.dtype)
        return self.value(torch.stack([values * known, known], -1))


class SeriesReader(Reader):
    """Representations, by one network, of the states of a forecast environment whose windows have the given inputs."""

    def __init__(self, env: Env, net: SeriesNet, inputs: Inputs) -> None:
        super().__init__()
        self.env, self.net, self.inputs, self.width = env, net, inputs, net.width
        self.rows: Tensor | None = None  # embedded once, by `start`

    def forward(self, state: Int[Tensor, "*batch S"]) -> Float[Tensor, "*batch H"]:
        """Representation of each state by itself, from a whole pass of which one row is used."""
        raw = self.raw(state).flatten(0, -2)
        rows = self.net(self.inputs[raw[:, 0]], raw[:, 1:])
        written = (raw[:, 1:] < len(self.net.centres) - 1).sum(-1).clamp(max=rows.shape[1] - 1)
        found = rows.gather(1, written[:, None, None].expand(-1, 1, self.width))
        return found.view(*state.shape[:-1], self.width)

    def along(self, states: Int[Tensor, "B N S"]) -> Float[Tensor, "B N H"]:
        """Representations of the first N states of paths, from the bins of the last one."""
        raw = self.raw(states[:, -1])
        return self.net(self.inputs[raw[:, 0]], raw[:, 1 : states.shape[1]])

    def start(self, state: Int[Tensor, "B S"]) -> tuple[Cache, Float[Tensor, "B H"]]:
        """Caches and representations of initial states; each context is read once, however many paths begin there."""
        window = self.raw(state)[:, 0]
        self.rows = self.net.row(self.inputs.rows[:, self.net.context :])
        cache, hidden = self.net.start(self.inputs)
        return cache[window], hidden[window]

    def step(self, state: Int[Tensor, "B S"], cache: Cache, t: int) -> Float[Tensor, "B H"]:
        """Representation of state t of a path, from the bin written last and the value before it."""
        assert self.rows is not None
        raw = self.raw(state)
        window, last = raw[:, 0], self.net.centres[raw[:, t]]
        older, known = self.inputs.values[window, -1], self.inputs.seen[window, -1]
        if t > 1:
            older, known = self.net.centres[raw[:, t - 1]], torch.ones_like(known)
        values, seen = torch.stack([older, last], -1), torch.stack([known, torch.ones_like(known)], -1)
        return self.net.step(self.rows[window, t], values, seen, cache, t)
