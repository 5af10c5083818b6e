"""File formats of tables that are written: the format that a name asks for, and the library for Parquet."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sgfn.config.extras import optional


def kind_of(path: Path, kinds: Iterable[str]) -> str:
    """The one of the endings `kinds` that a path has; raises where it has none of them."""
    kinds = list(kinds)
    found = [kind for kind in kinds if path.name.lower().endswith(kind)]
    if not found:
        wanted = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise ValueError(f"{path}: tables are written as {wanted}, not as {path.suffix or 'a bare name'!r}")
    if found[0] == ".parquet":
        import_pyarrow(path)  # raise before the work is done, not after
    return found[0]


def import_pyarrow(path: Path) -> Any:
    """Import and return pyarrow; a ValueError says how to install it."""
    optional("pyarrow.parquet", f"{path}: Parquet", "write .csv")
    return optional("pyarrow", f"{path}: Parquet")
