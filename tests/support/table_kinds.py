"""Tables written in every kind of file that is read."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

WRITERS: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "txt": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


def write_kind(folder: Path, frame: pd.DataFrame, kind: str) -> Path:
    """A file of that ending with the frame's columns and rows."""
    path = folder / f"table.{kind}"
    WRITERS[kind](frame, path)
    return path


def first_row(kind: str) -> str:
    """Where errors say that the first row below the header stands."""
    return {"parquet": "row 1", "xlsx": "row 2"}.get(kind, "line 2")
