"""What jobs on other machines read: files, and a user's own modules; both travel as bytes."""

import importlib.machinery
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sgfn.config.user_code import libraries
from sgfn.config.work_folders import own_folder

MOST_BYTES = 2 * 2**30
"""Of all files and modules of a shipment together."""


@dataclass(frozen=True, kw_only=True)
class Shipment:
    """Files by the field that names them, and sources of modules by their paths; plain bytes, of this process."""

    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)
    """Name and content of each file."""
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def place(self, folder: Path) -> dict[str, Path]:
        """Write all into a folder, files below `files/FIELD` and sources below `code`; returns paths of the files."""
        paths = {name: folder / "files" / name / file for name, (file, _) in self.files.items()}
        for name, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.files[name][1])
        for name, content in self.sources.items():
            target = code_folder(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return paths


def code_folder(folder: Path) -> Path:
    """Where `Shipment.place` puts modules."""
    return folder / "code"


STAYING = ExitStack()
"""Folders that stay as long as this worker."""


def settled(sent: Shipment) -> tuple[Path, dict[str, Path]]:
    """A folder of this worker's own with a shipment, whose modules can be imported from now on; paths of its files."""
    place = STAYING.enter_context(own_folder())
    files = sent.place(place)
    sys.path.append(str(code_folder(place)))
    return place, files


def shipment(files: Mapping[str, Path], names: Iterable[str]) -> Shipment:
    """Files and the sources of what `module:name` names, to travel to other machines."""
    sources = module_sources({name.partition(":")[0].partition(".")[0] for name in names if ":" in name})
    size = sum(file.stat().st_size for file in files.values()) + sum(file.stat().st_size for file in sources.values())
    if size > MOST_BYTES:
        most = f"at most {MOST_BYTES / 1e9:.1f} GB travel"
        raise ValueError(f"files and modules of {size / 1e9:.1f} GB are too much for a cluster's jobs: {most}")
    contents = {name: file.read_bytes() for name, file in sources.items()}
    return Shipment(files={name: (file.name, file.read_bytes()) for name, file in files.items()}, sources=contents)


def module_sources(modules: Iterable[str]) -> dict[str, Path]:
    """The .py files of a user's top-level modules by their paths; installed ones must be installed everywhere."""
    found: dict[str, Path] = {}
    for module in sorted(modules):
        spec = _spec(module)
        if spec is None or spec.origin is None or spec.origin.startswith(libraries()) or module == "sgfn":
            continue
        file = Path(spec.origin)
        if not spec.submodule_search_locations:
            found[file.name] = file
            continue
        found |= {str(one.relative_to(file.parents[1])): one for one in sorted(file.parent.rglob("*.py"))}
    return found


def _spec(module: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module is found: among installed packages, and then in the current folder."""
    known = sys.modules.get(module)
    if known is not None and known.__spec__ is not None:
        return known.__spec__
    paths = [*sys.path, str(Path.cwd())]
    return importlib.machinery.PathFinder.find_spec(module, paths)
