"""Files of samples, written a block at a time: what was realised, its score, what was intended, and whether the score
was measured or predicted where that differs."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sgfn.config.files import replacing
from sgfn.runs.spelling import TextRows, cells, csv_lines, joined_text, spell_figures
from sgfn.runs.table_files import import_pyarrow, kind_of

COLUMNS = ("sequence", "score", "intended")
ORIGIN = "origin"
"""Column that says of each score whether it was measured or predicted, where there are both."""
Write = Callable[..., None]
"""A function that writes one block: texts of objects, scores, texts of intentions, and of origins where told."""


@contextmanager
def csv_writer(path: Path, columns: tuple[str, ...] = COLUMNS) -> Iterator[Write]:
    """Open a CSV file for blocks of samples."""
    with path.open("wb") as file:
        yield _text_writer(file, columns)


@contextmanager
def gzip_writer(path: Path, columns: tuple[str, ...] = COLUMNS) -> Iterator[Write]:
    """Open a compressed CSV file for blocks of samples; equal samples give equal bytes."""
    with path.open("wb") as plain, gzip.GzipFile("", "wb", 6, plain, mtime=0) as file:
        yield _text_writer(file, columns)


def _text_writer(file: Any, columns: tuple[str, ...]) -> Write:
    file.write(",".join(columns).encode() + b"\n")

    def write(texts: TextRows, scores: Float[np.ndarray, " N"], *others: TextRows) -> None:
        file.write(csv_lines(cells(texts), spell_figures(scores), *map(cells, others)))

    return write


@contextmanager
def parquet_writer(path: Path, columns: tuple[str, ...] = COLUMNS) -> Iterator[Write]:
    """Open a Parquet file for blocks of samples; each block is a row group."""
    pa = import_pyarrow(path)
    kinds = [(name, pa.float32() if name == "score" else pa.string()) for name in columns]
    with pa.parquet.ParquetWriter(path, pa.schema(kinds)) as file:

        def write(texts: TextRows, scores: Float[np.ndarray, " N"], *others: TextRows) -> None:
            found = (_strings(texts), pa.array(scores), *map(_strings, others))
            file.write_table(pa.table(dict(zip(columns, found, strict=True))))

        def _strings(letters: TextRows) -> Any:
            ends = np.zeros(len(letters) + 1, dtype=np.int32)
            np.cumsum((letters != 0).sum(1), out=ends[1:])
            return pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends), pa.py_buffer(joined_text(letters)))

        yield write


WRITERS: dict[str, Callable[[Path, tuple[str, ...]], AbstractContextManager[Write]]] = {
    ".csv": csv_writer,
    ".csv.gz": gzip_writer,
    ".parquet": parquet_writer,
}


@contextmanager
def writing(path: Path, *, origin: bool = False) -> Iterator[Write]:
    """Open a file of samples by the ending of its name; the file is complete or absent."""
    kind, columns = kind_of(path, WRITERS), (*COLUMNS, ORIGIN) if origin else COLUMNS
    with replacing(path) as aside, WRITERS[kind](aside, columns) as write:
        yield write
