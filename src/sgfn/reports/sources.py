"""What the files of a run say: the one thing that figures and pages are made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.noise import noise_words
from sgfn.objectives import scored_as
from sgfn.objectives.entropy import ENTROPY_METERS
from sgfn.runs.folder import Run, refuse_forecast

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Source:
    """One run, read from its folder."""

    path: Path
    task: str
    config: TrainConfig
    rows: Rows
    """Lines of metrics that hold means over steps."""
    results: dict[str, Any]
    """exact.json, empty where there is none."""

    @property
    def name(self) -> str:
        """The folder's name; the font may lack other signs than plain ones."""
        return "".join(c if " " <= c <= "~" else "?" for c in self.path.resolve().name)

    @property
    def watched(self) -> Rows:
        """The lines of metrics that hold the figures of the entropy."""
        return [row for row in self.rows if row.keys() >= set(ENTROPY_METERS)]

    @property
    def noise(self) -> str:
        """The noise in a few words."""
        return noise_words(self.config.noise)

    @property
    def objective(self) -> str:
        """What was trained, in a few words."""
        config = self.config
        if config.method != "gfn":
            return config.method
        plain = {"kl": f"kl, {config.kl.flow} flow", "eflow": "eflow"}
        if config.objective == "kl-entropy":
            base = config.entropy.base
            return f"kl-entropy on {plain.get(base, f'{scored_as(config)} {base}')}"
        return plain.get(config.objective, f"{scored_as(config)} {config.objective}")

    @property
    def title(self) -> str:
        """Task, noise and objective."""
        return f"{self.task}, {self.noise}: {self.objective}"


def read_source(path: Path) -> Source:
    """A run folder that has been trained, if only for a while."""
    folder = Run(path=path)
    refuse_forecast(folder)
    task, config = folder.read_config()
    rows = [row for row in folder.rows() if "log_reward" in row]
    if not rows:
        raise ValueError(f"{path} has no metrics yet: train it first")
    results = read_json(path / "exact.json") if (path / "exact.json").is_file() else {}
    return Source(path=path, task=task, config=config, rows=rows, results=results)
