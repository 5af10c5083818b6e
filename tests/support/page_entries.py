"""Runs that were never trained: what their files would say, for tests of the page."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sgfn.config import TrainConfig
from sgfn.reports.pages import Entry
from sgfn.reports.sources import Source

VOID = {"meta", "link", "br"}
RESULTS: dict[str, Any] = {
    "tv": 0.3,
    "tv_floor": 0.01,
    "tv_blind": 0.1,
    "tv_uniform": 0.4,
    "expected_reward": 0.5,
    "target_expected_reward": 0.6,
    "sample_mean": 0.51,
    "top100_mean": 0.9,
    "modes_greedy": 3,
    "modes_greedy_rule": "score >= 0.9, hamming distance > 2",
    "modes_reference": 2,
    "modes_reference_total": 5,
    "dynamics_tv": 0.005,
    "alphabet": "ACGT",
    "designs": [["ACGT", 0.9], ["ACGA", 0.8]],
    "modes": [["ACGT", 0.9], ["TTTT", 0.95]],
    "orders": [{"order": "ACGT", "expected": 0.7, "intact": 0.25, "score": 0.9}],
    "histogram": {"edges": [0.0, 0.5, 1.0], "target": [0.2, 0.8], "law": [0.4, 0.6], "samples": [0.5, 0.5]},
}


def entry(
    label: str = "tb",
    *,
    noise: str = "25% noise",
    seed: int = 0,
    error: str = "",
    path: Path | str = "run",
    task: str = "tfbind8",
    beta: float | None = None,
    tvs: list[tuple[int, float | None]] | None = None,
    **results: Any,
) -> Entry:
    """A run with two lines of metrics, or those given, and the results above, changed."""
    points = [(100, 0.4), (200, 0.3)] if tvs is None else tvs
    rows = [{"step": x // 10, "trajectories": x, "log_reward": -1.0, "tv": tv} for x, tv in points]
    config = TrainConfig().with_(beta=beta, seed=seed, steps=20)
    source = Source(path=Path(path), task=task, config=config, rows=rows, results=RESULTS | results)
    return Entry(label=label, source=source, noise=noise, seed=seed, error=error)


class Page(HTMLParser):
    """A page taken to pieces; tags that do not match are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute stands twice in {tag}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.rows[-1][-1] = self.rows[-1][-1].strip()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            return
        if data.strip():
            self.texts.append(data.strip())
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += re.sub(r"\s+", " ", data) if "small" not in self.open else f" [{data}]"

    def count(self, tag: str) -> int:
        """How many elements of a kind there are."""
        return sum(name == tag for name, _ in self.tags)

    def values(self, attribute: str) -> list[str | None]:
        """All values of an attribute."""
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]

    @property
    def text(self) -> str:
        """Everything that can be read."""
        return " ".join(self.texts)
