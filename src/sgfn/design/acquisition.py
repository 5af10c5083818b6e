"""Acquisitions by name: what makes an order attractive, from the values that the proxy's members give it.

An acquisition maps values of members [M, N] to rows of attractiveness [K, N]; wells of a plate take turns at the rows,
each taking the best order of its row that is still free. It is called on blocks of orders: its random numbers may
depend on the number of members, never on the orders, so that one row means the same in every block.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sgfn.config.checks import in_range, whole_number
from sgfn.config.registry import (
    DASHED,
    DOTTED,
    SOLID,
    Entry,
    Line,
    Registry,
    Style,
    called_as,
    imported,
    refuse_arguments,
)

KAPPA = 3.0
"""Standard deviations that `ucb` adds by default: of 1 and 3 the better number on development seeds of GB1."""
MOST_ROWS = 96
"""Rows at most of which each serves one well before any serves a second, which bounds memory."""
Acquire = Callable[[Any, "Request"], Any]
"""Rows of attractiveness [K, N] of orders from members' values [M, N]."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What an acquisition may depend on beside the members' values."""

    wells: int
    """How many orders are wanted."""
    seed: int = 0
    """Seed of its random numbers."""
    kappa: float = KAPPA
    """Weight of the uncertainty in `ucb`."""
    searched: bool = False
    """Whether orders are sought by a search, as not all of them can be ranked."""

    def __post_init__(self) -> None:
        whole_number("orders", self.wells, 1)
        in_range("kappa", self.kappa, 0.0, 1e6)


@dataclass(frozen=True, kw_only=True)
class AcquisitionEntry(Entry):
    """A way to weigh values against uncertainty."""

    acquire: Acquire | str
    """Ours as `module:name`."""


def wrap(name: str, found: Any) -> AcquisitionEntry:
    """The entry of a function that is not ours."""
    wanted = "a function (members [M, N], request) -> rows [K, N]"
    return AcquisitionEntry(
        name=name, acquire=refuse_arguments("acquisition", name, found, wanted, "members", "request")
    )


def _ours(name: str, function: str, label: str, about: str, colour: str, line: Line = SOLID) -> AcquisitionEntry:
    return AcquisitionEntry(
        name=name, about=about, label=label, style=Style(colour=colour, line=line), acquire=f"{__name__}:{function}"
    )


ACQUISITIONS: Registry[AcquisitionEntry] = Registry(
    "acquisition",
    wrap,
    _ours("auto", "automatic", "UCB or draws", "ucb where all orders are ranked, tempered in a search", "#b66411"),
    _ours("ucb", "upper_confidence_bound", "UCB", "mean plus --kappa standard deviations", "#b66411", DASHED),
    _ours(
        *("mixed", "mixed", "Thompson and UCB"),
        *("half of the wells as thompson, half as ucb", "#7a3fa0"),
    ),
    _ours("thompson", "thompson", "Thompson", "each well follows another draw of the proxy's members", "#224eb1"),
    _ours(
        *("tempered", "tempered", "tempered draws"),
        *("draws of the proxy's members, from its mean in the first well to draws in full in the last", "#c0392b"),
    ),
    _ours(
        *("members", "members_in_turn", "members in turn"),
        *("each well follows one member of the proxy, in turn", "#224eb1", DOTTED),
    ),
    _ours("greedy", "greedy", "greedy", "the mean alone", "#3c8b6b"),
)


def acquisition_used(name: str, *, searched: bool) -> str:
    """The acquisition that a name stands for: `auto` is another one in a search than where all orders are ranked."""
    return ("tempered" if searched else "ucb") if name == "auto" else name


def acquisition_told(name: str, kappa: float) -> str:
    """What an acquisition does, in words, with the weight of the uncertainty where it has one.

    >>> acquisition_told("ucb", 3.0), acquisition_told("mixed", 2.0)
    ('ucb (mean plus 3 standard deviations)', 'mixed (half of the wells as thompson, half as ucb, --kappa 2)')
    """
    about = ACQUISITIONS[name].about.replace("--kappa", f"{kappa:g}")
    about += f", --kappa {kappa:g}" if name == "mixed" else ""
    return f"{name} ({about})" if about else name


def automatic(members: Any, request: Request) -> Any:
    """Rows of `ucb` where all orders are ranked, of `tempered` where a search looks for them.

    A search for one row ends among neighbours of one order, which fill the plate; rows that differ keep it broad.
    """
    return (tempered if request.searched else upper_confidence_bound)(members, request)


def greedy(members: Any, request: Request) -> Any:
    """One row: the mean of the members."""
    return members.mean(0, keepdim=True)


def upper_confidence_bound(members: Any, request: Request) -> Any:
    r"""One row, $\mu(o) + \kappa\,\sigma(o)$ over the members.

    Reference: Srinivas et al. (2010), Gaussian process optimization in the bandit setting, ICML.
    """
    return (members.mean(0) + request.kappa * deviation(members))[None]


def deviation(members: Any) -> Any:
    """Standard deviation over the members, 0 where there is but one."""
    return members.std(0, correction=0) if len(members) > 1 else members[0] * 0


def members_in_turn(members: Any, request: Request) -> Any:
    """A row for each member, in random order: Thompson sampling among the members themselves."""
    import torch  # the registry is read where torch is not wanted

    generator = torch.Generator().manual_seed(request.seed)
    return members[torch.randperm(len(members), generator=generator)]


def thompson(members: Any, request: Request) -> Any:
    r"""A row for each well, up to 96 of them, drawn from the normal law that has the members' mean and covariance.

    .. math:: f_w = \bar f + (M-1)^{-1/2} \sum_m z_{wm} (f_m - \bar f), \quad z \sim N(0, 1)

    Draws of the members alone would repeat after M wells. Reference: Thompson (1933), Biometrika; covariance of an
    ensemble as in Evensen (2003), The ensemble Kalman filter, Ocean Dynamics.
    """
    rows = min(request.wells, MOST_ROWS)
    return normal_weights(rows, len(members), request.seed).to(members.dtype) @ members


def tempered(members: Any, request: Request) -> Any:
    r"""Rows of `thompson` whose deviation from the mean is cut to a share that rises from the first to the last.

    .. math:: \bar f + \tfrac{w}{W-1} (f_w - \bar f), \quad w = 0, \dots, W-1

    A plate then has what is good by what is known, and what may be: draws in full cost where few plates follow, and
    the mean alone fills a plate with neighbours of one order.
    """
    import torch

    mean, rows = members.mean(0), thompson(members, request)
    return mean + torch.linspace(0, 1, len(rows), dtype=members.dtype)[:, None] * (rows - mean)


def mixed(members: Any, request: Request) -> Any:
    r"""A row for each well, up to 96 of them: by turns $\mu + \kappa_w \sigma$ and a draw of `thompson`, where
    $\kappa_w$ rises from $\frac23\kappa$ to $\kappa$.

    What may be good by all beliefs together and what one of many beliefs takes for best share a plate, so that no
    single mistake of the proxy fills it.
    """
    import torch

    rows, spread = thompson(members, request), deviation(members)
    kappas = torch.linspace(2 / 3 * request.kappa, request.kappa, len(rows[::2]), dtype=members.dtype)
    rows[::2] = members.mean(0) + kappas[:, None] * spread
    return rows


def normal_weights(draws: int, members: int, seed: int) -> Any:
    """Weights [R, M] of members whose sums are draws of the normal law with the members' mean and covariance."""
    import torch

    drawn = torch.randn(draws, members, generator=torch.Generator().manual_seed(seed)) / max(members - 1, 1) ** 0.5
    return drawn - drawn.mean(1, keepdim=True) + 1 / members  # applied to f_m - mean, plus the mean


def acquire(name: str, members: Any, request: Request) -> Any:
    """Rows of attractiveness by a named acquisition; what a user's function gives is checked."""
    import torch

    entry = ACQUISITIONS[name]
    with called_as("acquisition", name):
        rows = imported(entry.acquire)(members, request)
    if not isinstance(rows, torch.Tensor) or rows.ndim != 2 or rows.shape[1] != members.shape[1]:
        shape = list(rows.shape) if isinstance(rows, torch.Tensor) else type(rows).__name__
        raise ValueError(f"acquisition {name!r} must return rows [K, {members.shape[1]}], got {shape}")
    if not bool(torch.isfinite(rows.sum())):  # one pass, and no table of answers
        raise ValueError(f"acquisition {name!r} gave values that are not finite: return finite numbers")
    return rows
