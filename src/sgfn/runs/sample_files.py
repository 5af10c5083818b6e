"""Files of samples, written a block at a time: what was realised, its score, and what was intended."""

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
Write = Callable[[TextRows, Float[np.ndarray, " N"], TextRows], None]
"""A function that writes one block: texts of objects, scores, and texts of intentions."""


@contextmanager
def csv_writer(path: Path) -> Iterator[Write]:
    """Open a CSV file for blocks of samples."""
    with path.open("wb") as file:
        yield _text_writer(file)


@contextmanager
def gzip_writer(path: Path) -> Iterator[Write]:
    """Open a compressed CSV file for blocks of samples; equal samples give equal bytes."""
    with path.open("wb") as plain, gzip.GzipFile("", "wb", 6, plain, mtime=0) as file:
        yield _text_writer(file)


def _text_writer(file: Any) -> Write:
    file.write(",".join(COLUMNS).encode() + b"\n")
    return lambda texts, scores, meant: file.write(csv_lines(cells(texts), spell_figures(scores), cells(meant)))


@contextmanager
def parquet_writer(path: Path) -> Iterator[Write]:
    """Open a Parquet file for blocks of samples; each block is a row group."""
    pa = import_pyarrow(path)
    kinds = zip(COLUMNS, (pa.string(), pa.float32(), pa.string()), strict=True)
    with pa.parquet.ParquetWriter(path, pa.schema(kinds)) as file:

        def write(texts: TextRows, scores: Float[np.ndarray, " N"], meant: TextRows) -> None:
            columns = (_strings(texts), pa.array(scores), _strings(meant))
            file.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))))

        def _strings(letters: TextRows) -> Any:
            ends = np.zeros(len(letters) + 1, dtype=np.int32)
            np.cumsum((letters != 0).sum(1), out=ends[1:])
            return pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends), pa.py_buffer(joined_text(letters)))

        yield write


WRITERS: dict[str, Callable[[Path], AbstractContextManager[Write]]] = {
    ".csv": csv_writer,
    ".csv.gz": gzip_writer,
    ".parquet": parquet_writer,
}


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """Open a file of samples by the ending of its name; the file is complete or absent."""
    kind = kind_of(path, WRITERS)
    with replacing(path) as aside, WRITERS[kind](aside) as write:
        yield write
