"""Samples as a table, a block at a time: what was realised, its score, and what was intended."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from sgfn.config.files import replacing
from sgfn.runs.spelling import Letters, lines, quoted, spell_figures, written
from sgfn.runs.table_files import arrow, kind_of

COLUMNS = ("sequence", "score", "intended")
Write = Callable[[Letters, Float[np.ndarray, " N"], Letters], None]
"""Takes a block: texts, scores, and what was meant."""


@contextmanager
def csv_writer(path: Path) -> Iterator[Write]:
    """Plain text."""
    with path.open("wb") as file:
        yield _text_writer(file)


@contextmanager
def gzip_writer(path: Path) -> Iterator[Write]:
    """Compressed text, the same bytes for the same samples."""
    with path.open("wb") as plain, gzip.GzipFile("", "wb", 6, plain, mtime=0) as file:
        yield _text_writer(file)


def _text_writer(file: Any) -> Write:
    file.write(",".join(COLUMNS).encode() + b"\n")
    return lambda texts, scores, meant: file.write(lines(quoted(texts), spell_figures(scores), quoted(meant)))


@contextmanager
def parquet_writer(path: Path) -> Iterator[Write]:
    """A row group for each block."""
    pa = arrow(path)
    kinds = zip(COLUMNS, (pa.string(), pa.float32(), pa.string()), strict=True)
    with pa.parquet.ParquetWriter(path, pa.schema(kinds)) as file:

        def write(texts: Letters, scores: Float[np.ndarray, " N"], meant: Letters) -> None:
            columns = (_strings(texts), pa.array(scores), _strings(meant))
            file.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))))

        def _strings(letters: Letters) -> Any:
            ends = np.zeros(len(letters) + 1, dtype=np.int32)
            np.cumsum((letters != 0).sum(1), out=ends[1:])
            return pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends), pa.py_buffer(written(letters)))

        yield write


WRITERS: dict[str, Callable[[Path], AbstractContextManager[Write]]] = {
    ".csv": csv_writer,
    ".csv.gz": gzip_writer,
    ".parquet": parquet_writer,
}


@contextmanager
def writing(path: Path) -> Iterator[Write]:
    """A table by the ending of its name, whole or absent."""
    kind = kind_of(path, WRITERS)
    with replacing(path) as aside, WRITERS[kind](aside) as write:
        yield write
