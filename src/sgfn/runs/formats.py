"""Formats of config.json and compare.json: what earlier versions wrote, carried over to the present format."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgfn.config.checks import quoted

FORMAT = 2
"""Of what this version writes."""


@dataclass(frozen=True, kw_only=True)
class Migration:
    """How a configuration of one format becomes one of the next; fields go by their dotted names (`noise.alpha`)."""

    version: str
    """The version of sgfn that wrote the format."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Fields that have another name now."""
    dropped: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are gone, each with the one value that the present code still stands for."""
    added: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are new and whose default is not what the version did, each with what it did."""


MIGRATIONS: dict[int, Migration] = {1: Migration(version="0.1")}
"""By the format that is carried over to the next."""


def upgraded(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The content of a JSON file of ours as the present format has it, but for the number of its own.

    Raises where it cannot be carried over.
    """
    for number in range(data["format"], FORMAT):
        files = files_of_format_1(data, folder) if number == 1 else data.get("files", {})
        data = data | {"config": migrated(data["config"], MIGRATIONS[number]), "files": files}
    return data


def migrated(config: Any, migration: Migration) -> Any:
    """A configuration as the next format has it; what is no object is left to whoever reads it."""
    if not isinstance(config, dict):
        return config
    config = deepcopy(config)
    for name, value in migration.dropped.items():
        found = _take(config, name, value)
        if found != value:
            raise ValueError(f"config.{name} is no more, and {found!r} is not what is done without it ({value!r})")
    for old, new in migration.renamed.items():
        found = _take(config, old, config)
        if found is not config:
            _put(config, new, found)
    for name, value in migration.added.items():
        _put(config, name, value)
    return config


def files_of_format_1(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Records of files that have checksums but no copies; a forecast had its copy beside config.json.

    >>> files_of_format_1({"files": {"table.file": "ab12"}, "config": {}}, Path("run"))
    {'table.file': {'sha256': 'ab12', 'copy': None}}
    """
    found = {name: {"sha256": sha256, "copy": None} for name, sha256 in file_records(data).items()}
    series = data["config"].get("series") if isinstance(data["config"], dict) else None
    file = series.get("file") if isinstance(series, dict) else None
    if isinstance(file, str) and (folder / (copy := copy_of_format_1(Path(file)))).is_file():
        found["series.file"] = {"sha256": None} | found.get("series.file", {}) | {"copy": copy}
    return found


def file_records(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a JSON file of ours says of the files that a run was begun with, by the field that names each."""
    files = data.get("files", {})
    if not isinstance(files, dict):
        raise ValueError(f"files must be an object with a record for each field, got {quoted(files)}")
    return files


def copy_of_format_1(file: Path) -> str:
    """Name of the copy that a forecast of format 1 kept of its data.

    >>> copy_of_format_1(Path("sales.2024.csv.gz"))
    'data.csv.gz'
    """
    return f"data{file.suffix if file.suffix.lower() != '.gz' else Path(file.stem).suffix + file.suffix}"


def _take(config: dict[str, Any], name: str, default: Any) -> Any:
    """Remove a field and return its value, or the default where it is not there."""
    part, _, rest = name.partition(".")
    if not rest:
        return config.pop(part, default)
    return _take(config[part], rest, default) if isinstance(config.get(part), dict) else default


def _put(config: dict[str, Any], name: str, value: Any) -> None:
    """Set a field; components that are not there are made."""
    part, _, rest = name.partition(".")
    if rest:
        _put(config.setdefault(part, {}), rest, value)
    else:
        config[part] = value
