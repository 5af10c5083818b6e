"""Reads run folders: everything that figures and pages show comes from here."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sgfn.config import TrainConfig
from sgfn.config.files import resolved
from sgfn.landscapes.measurements import measurements_of
from sgfn.landscapes.proxies import ProxyReport
from sgfn.landscapes.proxies.files import FIELD, read_proxy
from sgfn.noise import noise_words
from sgfn.objectives import scored_as
from sgfn.objectives.entropy import ENTROPY_METERS
from sgfn.objectives.making import loss_words
from sgfn.runs.folder import Run, refuse_forecast
from sgfn.runs.metrics import LARGEST
from sgfn.runs.parts import words_of
from sgfn.runs.results import read_results
from sgfn.runs.trust import Trust

TABLE = "table.file"
Rows = list[dict[str, Any]]
"""Lines of metrics.jsonl."""


def number(value: Any) -> float | None:
    """A finite number, or None for everything else that a file may hold."""
    return float(value) if isinstance(value, int | float) and -LARGEST <= value <= LARGEST else None


@dataclass(frozen=True, kw_only=True)
class Source:
    """One run, read from its folder."""

    path: Path
    task: str
    config: TrainConfig
    rows: Rows
    """Lines of metrics that hold means over steps; of very many, some that are spread evenly."""
    results: dict[str, Any]
    """exact.json, empty where there is none."""
    own: dict[str, str] = field(default_factory=dict)
    """Words on a noise and an objective that the settings do not name."""
    proxy: ProxyReport | None = None
    """Cross-validation of the proxy that the run keeps."""

    @property
    def name(self) -> str:
        """The folder's name with a question mark for each sign that is not ASCII, which the font may lack."""
        return "".join(c if " " <= c <= "~" else "?" for c in resolved(self.path).name)

    @property
    def watched(self) -> Rows:
        """The lines of metrics that hold measurements of the entropy."""
        return [row for row in self.rows if row.keys() >= set(ENTROPY_METERS)]

    @property
    def sign(self) -> float:
        """-1 where low scores are good, else 1."""
        return -1.0 if self.results.get("minimise") else 1.0

    @property
    def terms_in_loss(self) -> bool:
        """Whether the metrics hold terms that the loss is a weighted sum of, and not merely figures beside it."""
        return "flow_loss" in self.rows[-1] or "policy_kl_term" in self.rows[-1]

    @property
    def loss_words(self) -> str:
        """What the loss is made of, in words; empty for methods that are no flow networks."""
        if self.config.method != "gfn" or "objective" in self.own:
            return ""
        return loss_words(self.config)

    @property
    def noise(self) -> str:
        """The noise in a few words."""
        noise = self.config.noise
        own = f"{noise.kind} noise (alpha {noise.alpha:g})" if ":" in noise.kind else noise_words(noise)
        return self.own.get("noise", own)

    @property
    def form(self) -> str:
        """The form of the balance; as configured where the objective is not ours, which a report does not import."""
        config = self.config
        own = any(":" in name for name in (config.objective, config.kl.flow, config.entropy.base))
        return config.form if own else scored_as(config)

    @property
    def objective(self) -> str:
        """What was trained, in a few words."""
        config = self.config
        if config.method != "gfn":
            return config.method
        if "objective" in self.own:
            return f"{self.form} {self.own['objective']}"
        plain = {"kl": f"kl, {config.kl.flow} flow", "eflow": "eflow"}
        if config.objective == "kl-entropy":
            base = config.entropy.base
            return f"kl-entropy on {plain.get(base, f'{self.form} {base}')}"
        return plain.get(config.objective, f"{self.form} {config.objective}")

    @property
    def title(self) -> str:
        """Task, noise and objective."""
        return f"{self.task}, {self.noise}: {self.objective}"


def read_source(path: Path, trust: Trust = False) -> Source:
    """Read a run folder; one without metrics is refused. Code that it names is never imported."""
    folder = Run(path=path, trust=trust)
    refuse_forecast(folder)
    task, config = folder.read_config()
    rows = [row for row in folder.thinned_rows() if "log_reward" in row]
    if not rows:
        raise ValueError(f"{path} has no metrics yet: train it first")
    found = {"results": read_results(path), "own": words_of(path), "proxy": _kept_proxy(folder)}
    return Source(path=path, task=task, config=config, rows=rows, **found)


def _kept_proxy(run: Run) -> ProxyReport | None:
    """Cross-validation of the proxy that a run keeps, in the units of its table; None where it keeps none."""
    manifest = run.manifest()
    record = manifest.files.get(FIELD)
    if record is None or record.copy is None:
        return None
    files, table = run.copies(), manifest.config.table
    found = read_proxy(files[FIELD]).report
    if not table.transformed or TABLE not in files:
        return found
    return found.told(measurements_of(replace(table, file=files[TABLE])).transform)
