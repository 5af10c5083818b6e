"""Tables for others to read: which kind of file a name asks for, and what Parquet needs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sgfn.config.extras import optional


def kind_of(path: Path, kinds: Iterable[str]) -> str:
    """The ending that the name has; raises where it is none of these."""
    kinds = list(kinds)
    found = [kind for kind in kinds if path.name.lower().endswith(kind)]
    if not found:
        wanted = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise ValueError(f"{path}: tables are written as {wanted}, not as {path.suffix or 'a bare name'!r}")
    if found[0] == ".parquet":
        arrow(path)  # better now than after all the work
    return found[0]


def arrow(path: Path) -> Any:
    """The library that writes Parquet."""
    optional("pyarrow.parquet", f"{path}: Parquet", "write .csv")
    return optional("pyarrow", f"{path}: Parquet")
