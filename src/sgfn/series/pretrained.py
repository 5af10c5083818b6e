r"""A network that forecasts short series without being trained on them: it was trained once on simulated series.

Its input is the end of a history and the season; its output is, for each step ahead, quantiles at the levels of `GRID`
as $q_{h\tau} = b_h + u\,o_{h\tau}$ with b the seasonal naive forecast and u the mean change over a season, so that it
is the same for a series in other units. It was fitted by quantile loss over u to series that a programme draws
(`python -m benchmarks.pretraining`), which have trends, seasons, cycles, breaks, growth and outliers of many kinds; no
series of anybody is in it.

Reference: Dooley et al. (2023), ForecastPFN: synthetically-trained zero-shot forecasting, NeurIPS.
"""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from safetensors.torch import load
from torch import Tensor, nn

from sgfn.landscapes.tfbind8_tables import sha256
from sgfn.series.quantile_laws import GRID
from sgfn.series.shown import ANCHORS, CONTEXT, FACTS, QUERIES, show

HORIZON = 64
"""Steps that the network forecasts at most."""
WIDTH, DEPTH = 512, 3
"""Width of the network, and its layers for each history, and for each step ahead."""
AT_ONCE = 256
"""Histories that are read at once, to bound memory."""
WEIGHTS = Path(__file__).parent / "data" / "pretrained.safetensors"


class PretrainedNet(nn.Module):
    """Quantiles of what comes next, over units and beside seasonal naive."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.whole, self.ahead, self.join = nn.Linear(FACTS, width), nn.Linear(QUERIES, width), nn.Linear(width, width)
        self.of_history = nn.ModuleList(nn.Linear(width, width) for _ in range(DEPTH - 1))
        self.of_step = nn.ModuleList(nn.Linear(width, width) for _ in range(DEPTH - 1))
        self.head = nn.Linear(width, len(GRID) + ANCHORS)

    def forward(
        self, whole: Float[Tensor, "B F"], ahead: Float[Tensor, "B H G"], anchors: Float[Tensor, "B H A"]
    ) -> Float[Tensor, "B H Q"]:
        """Quantiles over units, beside seasonal naive: the median, and what lies between neighbouring levels."""
        series = F.gelu(self.whole(whole))
        for layer in self.of_history:
            series = series + F.gelu(layer(series))
        items = F.gelu(self.join(series)[:, None] + self.ahead(ahead))
        for layer in self.of_step:
            items = items + F.gelu(layer(items))
        found = self.head(items).float()
        middle = len(GRID) // 2
        below, median, above, shares = found.split([middle, 1, len(GRID) - middle - 1, ANCHORS], -1)
        median = median + (shares * anchors).sum(-1, keepdim=True)
        below = median - F.softplus(below).flip(-1).cumsum(-1).flip(-1)
        return torch.cat([below, median, median + F.softplus(above).cumsum(-1)], -1)


@lru_cache(1)
def pretrained_net() -> PretrainedNet:
    """The network with the weights that come with the package."""
    net = PretrainedNet()
    net.load_state_dict({name: value.float() for name, value in load(checked_weights(WEIGHTS)).items()})
    return net.eval().requires_grad_(False)


def checked_weights(path: Path) -> bytes:
    """A file of weights, after its checksum is verified against the one beside it."""
    try:
        raw, expected = path.read_bytes(), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path}: the weights or their checksum cannot be read ({error!r}); reinstall sgfn") from error
    if sha256(raw) != expected:
        raise ValueError(f"{path}: checksum mismatch, the file is damaged; reinstall sgfn")
    return raw


def pretrained_quantiles(
    histories: Sequence[Float64[np.ndarray, " T"]],
    seasons: Sequence[int],
    horizon: int,
    net: PretrainedNet | None = None,
) -> Float64[np.ndarray, "B H Q"]:
    """Quantiles at the levels of the grid, of what comes after each history, which has no gaps."""
    found = np.empty((len(histories), horizon, len(GRID)))
    for start in range(0, len(histories), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        found[some] = _quantiles(histories[some], seasons[some], horizon, net or pretrained_net())
    return found


def _quantiles(
    histories: Sequence[Float64[np.ndarray, " T"]], seasons: Sequence[int], horizon: int, net: PretrainedNet
) -> Float64[np.ndarray, "B H Q"]:
    """The same of histories that are read at once, each over a power of two near its greatest value."""
    values, scales = np.zeros((len(histories), CONTEXT)), np.empty((len(histories), 1, 1))
    for row, scale, history in zip(values, scales, histories, strict=True):
        read = history[-CONTEXT:]
        scale[:] = np.ldexp(1.0, np.frexp(np.abs(read).max())[1] - 1)
        row[-len(read) :] = read / scale[0]
    counts = torch.tensor([min(len(one), CONTEXT) for one in histories])
    steps = torch.arange(horizon).expand(len(histories), -1)
    with torch.no_grad():
        shown = show(torch.from_numpy(values), counts, torch.tensor(list(seasons)), steps)
        found = net(shown.whole, shown.ahead, shown.anchors).double()
    return scales * (shown.base[..., None] + shown.unit[:, None, None] * found).numpy()
