"""Folders of rounds: settings, all that was measured, the plate to order and a page, whole or absent.

A folder holds data alone. Reading one imports nothing that it names and opens nothing outside of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sgfn.config import VERSION, NoiseConfig
from sgfn.config.files import naming, nulls, read_json, write_json
from sgfn.config.staging import LOCK, NEW, PATIENCE, READY, holding, refuse_hidden_links, settle, staging, take_over
from sgfn.config.tables import read_table
from sgfn.design.designer import NOISE, Designer
from sgfn.design.measured import MEASURED
from sgfn.design.proposal import Proposal
from sgfn.design.settings import from_json, to_json
from sgfn.envs.constraints import Constraints
from sgfn.noise import Noise
from sgfn.runs.checkpoints import read_file, save_file
from sgfn.runs.copies import checksum
from sgfn.runs.table_files import write_csv
from sgfn.runs.trust import Trust, refuse_code, refuse_links, remember

FORMAT = 1
SETTINGS, MEASUREMENTS, ORDERS, FASTA, WEIGHTS, PAGE = (
    *("design.json", "measured.csv", "orders.csv", "orders.fasta"),
    *("sampler.safetensors", "page.html"),
)
FILES = (SETTINGS, MEASUREMENTS, ORDERS, FASTA, WEIGHTS, PAGE)
"""All files that a folder of ours may hold."""
TEXTS = ("sequence", "order")
LATER = ("weight",)
"""Columns that folders of earlier versions lack."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """A folder's content: the designer as it was after its proposal, and what was said of each proposal."""

    designer: Designer
    history: list[dict[str, Any]]
    """Facts of each proposal so far, as `Proposal.to_json` gives them."""

    @property
    def number(self) -> int:
        """Number of the round."""
        return self.designer.round


# Reading


def read_round_folder(folder: Path, trust: Trust = False, *, replaced: Collection[str] = ()) -> Round:
    """A round as its folder tells it; code that it names must be named again by `trust`.

    Of settings that are `replaced` nothing is used.
    """
    if trust is not True:
        refuse_hidden_links(folder)
    settle(folder, lambda: holding(folder), PATIENCE)
    if not (folder / SETTINGS).is_file():
        raise ValueError(f"{folder} holds no {SETTINGS}: give the folder of a round, or a table of measurements")
    refuse_links(folder, FILES, trust)
    data = read_json(folder / SETTINGS)
    _check_format(folder / SETTINGS, data)
    config, noise, constraints = from_json(data["settings"], str(folder / SETTINGS))
    made = designer_of(config, noise, constraints)
    refuse_code(folder, {name: value for name, value in made.code.items() if name not in replaced}, trust)
    _refuse_changed(folder / MEASUREMENTS, data.get("measured_sha256"))
    made.measured = _read_measured(folder / MEASUREMENTS)
    made.round, made.pending = data["round"], _pending(folder / SETTINGS, data["pending"])
    made.foretold = _foretold(folder / SETTINGS, data.get("foretold", {}))
    made.weights = _read_weights(folder / WEIGHTS)
    if isinstance(noise, NoiseConfig) and NOISE not in replaced:
        made.make_noise(noise)
    return Round(designer=made, history=[dict(one) for one in data["history"]])


def designer_of(config: Any, noise: Noise | NoiseConfig, constraints: Constraints | None) -> Designer:
    """A designer with settings that were checked already."""
    made = Designer(config.alphabet, noise=noise, constraints=constraints)
    made.config = config
    return made


def _check_format(file: Path, data: Any) -> None:
    wanted = {"format": int, "round": int, "settings": dict, "pending": dict, "history": list}
    if not isinstance(data, dict) or not all(isinstance(data.get(key), kind) for key, kind in wanted.items()):
        raise ValueError(f"{file} was not written by sgfn: fields {', '.join(wanted)} are expected")
    if data["format"] != FORMAT:
        raise ValueError(f"{file} has format {data['format']}, this version reads {FORMAT}: use the sgfn that wrote it")
    if data["round"] < 0 or not all(isinstance(one, dict) for one in data["history"]):
        raise ValueError(f"{file} was not written by sgfn: round and history do not fit")


def _refuse_changed(file: Path, expected: Any) -> None:
    """Raise where measurements are not those that were written; folders of earlier versions have no checksum."""
    if expected is not None and file.is_file() and checksum(file) != expected:
        fix = "correct the table that it came from, and propose again"
        raise ValueError(f"{file} was changed or damaged since it was written: {fix}")


def _pending(file: Path, data: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Orders that were not measured yet, with expected score and standard deviation."""
    try:
        return {str(order): (_figure(mean), _figure(sd)) for order, (mean, sd) in data.items()}
    except (TypeError, ValueError):
        raise ValueError(f"{file} was not written by sgfn: pending must be orders with two numbers each") from None


def _foretold(file: Path, data: Any) -> dict[str, float]:
    """Predicted score of each order of the last plate; folders of earlier versions have none."""
    try:
        return {str(order): _figure(score) for order, score in data.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{file} was not written by sgfn: foretold must be orders with a number each") from None


def _figure(value: Any) -> float:
    return np.nan if value is None else float(value)


def _read_measured(file: Path) -> pd.DataFrame:
    """All that was measured so far."""
    table = read_table(file, each="measured sequence")
    missing = [name for name in MEASURED if name not in (*table.columns, *LATER)]
    if missing:
        raise table.header_problem(f"column {missing[0]!r} is missing; this file was not written by sgfn")
    columns: dict[str, Any] = {name: table.texts(name) for name in TEXTS}
    for name in (name for name in MEASURED if name not in TEXTS and name in table.columns):
        columns[name] = [_number(table, row, name, text) for row, text in enumerate(table.texts(name))]
    found = pd.DataFrame(columns).reindex(columns=list(MEASURED))
    if found.score.isna().any() or not np.isfinite(found["round"]).all() or (found.sequence == "").any():
        raise table.problem("a sequence, score or round is missing; this file was not written by sgfn")
    return found.astype(MEASURED)


def _number(table: Any, row: int, name: str, text: str) -> float:
    try:
        return float(text) if text else np.nan
    except ValueError:
        raise table.problem(f"{text[:40]!r} is not a number; propose from the table again", row, name) from None


def _read_weights(file: Path) -> dict[str, Any] | None:
    """Weights of the sampler; None where there are none."""
    return read_file(file) if file.is_file() else None


# Writing


def save_round(
    out: Path,
    designer: Designer,
    proposal: Proposal | None = None,
    history: Sequence[dict[str, Any]] = (),
    *,
    overwrite: bool = False,
    page: Callable[[Path], object] | None = None,
) -> Path:
    """Write a round's folder; an existing one is refused unless it may be replaced.

    Without a proposal it holds what the designer knows, and no plate. `page` writes the page there.
    """
    check_folder(out, overwrite=overwrite)
    data = {
        "format": FORMAT,
        "sgfn": VERSION,
        "round": designer.round,
        "settings": to_json(designer.config, designer.noise, designer.constraints, designer.noise_settings),
        "pending": nulls(designer.pending),
        "foretold": nulls(designer.foretold),
        "history": [*history, *([] if proposal is None else [nulls(proposal.to_json())])],
    }
    remember(designer.code)
    with writing(out) as folder:
        write_csv(folder / MEASUREMENTS, designer.measured)
        write_json(folder / SETTINGS, data | {"measured_sha256": checksum(folder / MEASUREMENTS)})
        if proposal is not None:
            write_csv(folder / ORDERS, proposal.orders)
            (folder / FASTA).write_text(fasta(proposal.orders), encoding="utf-8")
        if designer.weights is not None:
            save_file(designer.weights, folder / WEIGHTS)
        if page is not None:
            page(folder / PAGE)
    return out


def check_folder(out: Path, *, overwrite: bool, known: str = SETTINGS, what: str = "a round") -> None:
    """Raise unless a round can be written to a folder: it is not there, is empty, or holds a round to be replaced.

    `known` is the file that every folder of that kind has.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ValueError(f"{out} is not a folder: give --out another name")
    refuse_hidden_links(out)
    settle(out, lambda: holding(out), PATIENCE)
    held = sorted(path.name for path in out.iterdir() if path.name not in (LOCK, NEW, READY)) if out.is_dir() else []
    if held and known not in held:
        raise ValueError(f"{out} holds other files ({held[0]}, ...): give --out a new folder")
    if held and not overwrite:
        raise ValueError(f"{out} already holds {what}: add --overwrite to replace it, or give --out another folder")


@contextmanager
def writing(out: Path, files: Sequence[str] = FILES) -> Iterator[Path]:
    """A hidden folder to write to, whose files take their places in `out` together when the block ends well.

    Whoever is killed on the way leaves the round before, or none; the next writer removes the rest. `files` are those
    that such a folder may hold.
    """
    made = not out.exists()
    with naming(out):
        out.mkdir(parents=True, exist_ok=True)
    try:
        with holding(out), staging(out) as new:
            yield new
            take_over(out, files)
    except BaseException:
        if made and not any(path.name != LOCK for path in out.iterdir()):
            (out / LOCK).unlink(missing_ok=True)
            out.rmdir()
        raise


def fasta(orders: pd.DataFrame) -> str:
    """Orders as FASTA, named by plate and well as `write_fasta` names them."""
    names = zip(orders.plate, orders.well, orders.order, strict=True)
    return "".join(f">plate{plate}_{well}\n{order}\n" for plate, well, order in names)
