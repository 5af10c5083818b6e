"""Tables that are written: the format that a name asks for, CSV of data frames, and the library for Parquet."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_object_dtype, is_string_dtype

from sgfn.config.csv_cells import marked
from sgfn.config.extras import optional


def kind_of(path: Path, kinds: Iterable[str], what: str = "tables") -> str:
    """The one of the endings `kinds` that a path has; raises where it has none of them."""
    kinds = list(kinds)
    found = [kind for kind in kinds if path.name.lower().endswith(kind)]
    if not found:
        wanted = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise ValueError(f"{path}: {what} are written as {wanted}, not as {path.suffix or 'a bare name'!r}")
    if found[0] == ".parquet":
        import_pyarrow(path)  # raise before the work is done, not after
    return found[0]


def write_csv(path: Path, table: pd.DataFrame, digits: str | None = None) -> None:
    """Write a table as CSV; text in cells and headers is marked where a spreadsheet would run it."""
    kinds = {str(name): kind for name, kind in table.dtypes.items()}
    names = [name for name, kind in kinds.items() if is_object_dtype(kind) or is_string_dtype(kind)]
    found = {name: [one for one in table[name].unique() if isinstance(one, str)] for name in names}
    safe = table.assign(**{name: _marked(table[name], texts) for name, texts in found.items()})
    safe = safe.rename(columns={name: marked(str(name)) for name in table.columns})
    # pandas puts a carriage return in quotes only where lines end with one
    returns = any("\r" in str(text) for text in (*table.columns, *chain(*found.values())))
    safe.to_csv(path, index=False, float_format=digits, lineterminator="\r\n" if returns else "\n")


def _marked(column: pd.Series, texts: list[str]) -> pd.Series:
    """A column with its texts marked; it repeats few of them, so each is looked at once."""
    changed = {text: safe for text in texts if (safe := marked(text)) != text}
    if not changed:
        return column
    return pd.Series([changed.get(one, one) for one in column.tolist()], index=column.index, dtype=object)


def import_pyarrow(path: Path) -> Any:
    """Import and return pyarrow; a ValueError says how to install it."""
    optional("pyarrow.parquet", f"{path}: Parquet", "write .csv")
    return optional("pyarrow", f"{path}: Parquet")
