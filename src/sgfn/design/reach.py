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
    """How far from what was measured orders may lie, and how far the proxy deserves."""

    measured: list[str]
    edits: int | None
    """0 for no limit; None where scores are no predictions of a proxy."""
    asked: bool = False
    """Whether somebody chose the limit: it then holds where all orders are looked at too."""
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
            return cls(measured=measured, edits=reach, asked=reach is not None)
        correlation = proxy.report.spearman
        deserved = deserved_reach(env.length, correlation, varies=env.stop)
        edits = deserved if reach is None else reach
        given = {"edits": edits, "asked": reach is not None}
        return cls(measured=measured, **given, deserved=deserved, correlation=correlation)

    def start(self, space: OrderSpace, texts: list[str]) -> Start:
        """Those of the texts that are within reach of what was measured, with their distance to it."""
        if not self.edits:
            return Start(tokens=space.parse(texts), edits=torch.zeros(len(texts), dtype=torch.int64))
        near = self._near(texts, self.edits)
        return Start(tokens=space.parse([*near]), edits=torch.tensor([*near.values()], dtype=torch.int64))

    def listed(self, texts: list[str]) -> list[str]:
        """Those of all orders that are within the limit that was asked for."""
        if not self.asked or not self.edits:
            return texts
        if not (near := self._near(texts, self.edits)):
            raise ValueError(f"no order is within --reach {self.edits} of what was measured: give a larger one")
        return [*near]

    @property
    def told(self) -> str:
        """The limit that was asked for, in words behind a number of orders; empty where there is none."""
        edits = "1 edit" if self.edits == 1 else f"{self.edits} edits"
        return f" within {edits} of what was measured" if self.asked and self.edits else ""

    def _near(self, texts: list[str], most: int) -> dict[str, int]:
        """Distance to what was measured of those of different texts where it is `most` or less."""
        apart = (0 if one is None else one for one in nearest_measured(texts, self.measured)[1])
        return {text: edits for text, edits in zip(texts, apart, strict=True) if edits <= most}

    def note(self, apart: Sequence[int | None]) -> str:
        """How far orders are from anything measured, and what to do where that is farther than the proxy deserves."""
        far = [one for one in apart if one is not None]
        if not far or self.edits is None:
            return ""
        span = f"{min(far)} to {max(far)}" if min(far) < max(far) else str(max(far))
        where = f"orders lie {span} edit{'s' * (max(far) != 1)} from the nearest measured sequence"
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
