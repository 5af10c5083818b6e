"""How far from what was measured the orders of a run may be, and what to say of orders that are farther."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from sgfn.config.checks import whole_number
from sgfn.config.tasks import LONGEST
from sgfn.design.orders import nearest_measured
from sgfn.design.search import Start, deserved_reach
from sgfn.design.space import OrderSpace
from sgfn.envs import SequenceEnv
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.proxies import Proxy
from sgfn.landscapes.read_out import ReadOut


@dataclass(frozen=True, kw_only=True, eq=False)
class Reach:
    """How far from what was measured a search may go, and how far the proxy deserves."""

    measured: list[str]
    edits: int | None
    """0 for no limit; None where scores are no predictions of a proxy."""
    deserved: int = 0
    correlation: float = 0.0

    @classmethod
    def of(cls, env: SequenceEnv, landscape: Landscape, measured: list[str], reach: int | None) -> "Reach":
        """The limit that is asked for, or by default what the landscape's proxy deserves."""
        proxy = proxy_of(landscape)
        if reach is not None:
            whole_number("reach", reach, 0, LONGEST)
        if not measured and reach:
            raise ValueError("--reach counts edits from what was measured, and nothing was in this run: leave it out")
        if proxy is None:
            return cls(measured=measured, edits=reach)
        correlation = proxy.report.spearman
        deserved = deserved_reach(env.length, correlation)
        edits = deserved if reach is None else reach
        return cls(measured=measured, edits=edits, deserved=deserved, correlation=correlation)

    def start(self, space: OrderSpace, texts: list[str]) -> Start:
        """Those of the texts that are within reach of what was measured, with their distance to it."""
        if not self.edits:
            return Start(tokens=space.parse(texts), edits=torch.zeros(len(texts), dtype=torch.int64))
        apart = [0 if one is None else one for one in nearest_measured(texts, self.measured)[1]]
        near = [place for place, edits in enumerate(apart) if edits <= self.edits]
        tokens = space.parse([texts[place] for place in near])
        return Start(tokens=tokens, edits=torch.tensor([apart[place] for place in near], dtype=torch.int64))

    def note(self, apart: Sequence[int | None]) -> str:
        """How far orders are from anything measured, and what to do where that is farther than the proxy deserves."""
        far = [one for one in apart if one is not None]
        if not far or self.edits is None:
            return ""
        span = f"{min(far)} to {max(far)}" if min(far) < max(far) else str(max(far))
        where = f"orders lie {span} edits from the nearest measured sequence"
        if not self.deserved:
            return where
        trust = f"{self.deserved} that a rank correlation of {self.correlation:.2f} deserves"
        if max(far) > self.deserved:
            return f"{where}, beyond the {trust}: take expected scores for guesses, or give --reach {self.deserved}"
        return f"{where}, within the {trust} (--reach)"


def proxy_of(landscape: Landscape) -> Proxy | None:
    """The proxy whose predictions a landscape gives of what was not measured; None where it has none."""
    found = getattr(landscape.inner if isinstance(landscape, ReadOut) else landscape, "proxy", None)
    return found if isinstance(found, Proxy) else None
