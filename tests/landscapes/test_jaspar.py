"""JASPAR matrices against known facts, every way to name one, damaged files, and the script that rebuilds them."""

import json
import shutil
import sqlite3
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scripts import build_jaspar

from sgfn.landscapes import jaspar
from sgfn.landscapes.tfbind8_tables import sha256

FILES = ("counts.bin", "matrices.tsv")


def flip_byte(path: Path) -> None:
    """Damage one byte in the middle of a file."""
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(blob)


# Facts


def test_known_matrices() -> None:
    """CTCF is the matrix of JASPAR's page on MA0139.2; Arnt's counts are those of its first release."""
    ctcf, arnt = jaspar.find("CTCF"), jaspar.find("Arnt")
    assert (ctcf.id, ctcf.base, ctcf.version, ctcf.consensus) == ("MA0139.2", "MA0139", 2, "GCCACCAGGGGGCGC")
    assert (arnt.id, arnt.consensus) == ("MA0004.1", "CACGTG")
    assert arnt.counts[:2].tolist() == [[4, 16, 0, 0], [19, 0, 1, 0]]
    assert arnt.counts[2:].max(-1).tolist() == [20, 20, 20, 20]
    assert ctcf.counts[:3].tolist() == [[281, 49, 449, 134], [56, 800, 21, 36], [8, 903, 0, 2]]


def test_all_matrices_are_there_and_sound() -> None:
    """2,346 CORE profiles of JASPAR 2024, each once, in latest version."""
    stored = jaspar.load(jaspar.DATA)
    assert len(stored) == len(set(jaspar.ids())) == len({profile.base for profile in stored}) == 2346
    assert jaspar.ids() == sorted(jaspar.ids())
    widths = [profile.counts.shape[0] for profile in stored]
    assert (min(widths), max(widths), sum(widths)) == (4, 33, 22090)
    for profile in stored:
        assert profile.counts.dtype == np.float64
        assert np.isfinite(profile.counts).all()
        assert (profile.counts >= 0).all()
        assert (profile.counts.sum(-1) >= 5.99).all()
    assert len(jaspar.names()) == 2270
    assert {jaspar.find(name).factor for name in jaspar.names()} == set(jaspar.names())


def test_files_are_small_and_their_origin_is_told() -> None:
    record = json.loads((jaspar.DATA / "provenance.json").read_text())
    assert sum(path.stat().st_size for path in jaspar.DATA.iterdir()) < 360_000
    assert record["sha256"] == {name: sha256((jaspar.DATA / name).read_bytes()) for name in FILES}
    assert record["wheel_sha256"] == build_jaspar.WHEEL_SHA256
    assert (record["release"], record["matrices"]) == ("JASPAR 2024", 2346)
    assert record["licence"].startswith("CC BY 4.0")
    assert "Rauluseviciute" in record["citation"]


def test_counts_cannot_be_changed_by_a_reader() -> None:
    """They are shared between callers."""
    with pytest.raises(ValueError, match="read-only"):
        jaspar.find("CTCF").counts[0, 0] = 1.0


# Names


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("MA0139.2", "MA0139.2"),
        ("ma0139", "MA0139.2"),
        (" ctcf ", "MA0139.2"),  # four matrices, all of version 2: the lowest id
        ("GATA1", "MA0035.5"),  # versions 5 and 1
        ("SREBF1", "MA0829.3"),  # versions 1 and 3
        ("JUN", "MA0488.2"),  # as spelt, though Jun has version 3
        ("jun", "MA0489.3"),  # spelt like neither: the most revised
        ("fos::jun", "MA0099.4"),
    ],
)
def test_ids_and_names(name: str, found: str) -> None:
    assert jaspar.find(name).id == found


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CTFC", "nearest names: .*CTCF"),
        ("fos:jun", "nearest names: FOS::JUN"),
        ("MA0139.1", "only the latest version of each: use MA0139.2"),
        ("MA9999", "nearest names: MA"),
        ("", "names look like CTCF or MA0139"),
    ],
)
def test_unknown_name_suggests_the_nearest(name: str, hint: str) -> None:
    """One line, with names to copy."""
    with pytest.raises(ValueError, match=hint) as caught:
        jaspar.find(name)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


# Damage


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    """One flipped bit is enough, and an intact copy still loads."""
    intact, damaged = (Path(shutil.copytree(jaspar.DATA, tmp_path / folder)) for folder in ("intact", "damaged"))
    assert len(jaspar.load(intact)) == 2346
    flip_byte(damaged / name)
    with pytest.raises(ValueError, match=rf"{name}: checksum mismatch, the file is damaged; reinstall sgfn$"):
        jaspar.load(damaged)


@pytest.mark.parametrize("name", [*FILES, "provenance.json"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(jaspar.DATA, tmp_path / "data"))
    (folder / name).unlink()
    with pytest.raises(ValueError, match=rf"cannot be read .*{name}.*reinstall sgfn$") as caught:
        jaspar.load(folder)
    assert "\n" not in str(caught.value)


# The script

ROWS = {
    1: ("CORE", "MA0002", 1, "Old"),
    2: ("CORE", "MA0002", 2, "New"),
    3: ("CORE", "MA0001", 10, "Ten"),
    4: ("CORE", "MA0001", 9, "Nine"),
    5: ("UNVALIDATED", "UN0001", 1, "Not"),
}


def make_wheel(folder: Path, monkeypatch: pytest.MonkeyPatch, *edits: str) -> Path:
    """A wheel with five matrices of one or two positions; matrix i counts 4 i, 4 i + 1, ... from A at position 1."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE MATRIX (ID integer, COLLECTION text, BASE_ID text, VERSION integer, NAME text)")
    connection.execute("CREATE TABLE MATRIX_DATA (ID integer, row text, col integer, val float)")
    for number, row in ROWS.items():
        connection.execute("INSERT INTO MATRIX VALUES (?, ?, ?, ?, ?)", (number, *row))
        cells = [(number, "ACGT"[i % 4], i // 4 + 1, 4 * number + i) for i in range(4 * (1 + number % 2))]
        connection.executemany("INSERT INTO MATRIX_DATA VALUES (?, ?, ?, ?)", cells)
    for edit in edits:
        connection.execute(edit)
    connection.commit()
    wheel = folder / build_jaspar.WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(build_jaspar.MEMBER, connection.serialize())
    connection.close()
    monkeypatch.setattr(build_jaspar, "WHEEL_SHA256", sha256(wheel.read_bytes()))
    return wheel


def test_build_keeps_the_latest_core_matrices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 10 is later than 9, other collections stay out, and order is by id."""
    build_jaspar.build(make_wheel(tmp_path, monkeypatch), tmp_path / "data")
    first, second = jaspar.load(tmp_path / "data")
    assert (first.id, first.factor, first.counts.tolist()) == ("MA0001.10", "Ten", [[12, 13, 14, 15], [16, 17, 18, 19]])
    assert (second.id, second.factor, second.counts.tolist()) == ("MA0002.2", "New", [[8, 9, 10, 11]])


def test_check_finds_any_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An equal folder passes; one changed count, consistently stored, does not."""
    wheel = make_wheel(tmp_path, monkeypatch)
    build_jaspar.build(wheel, tmp_path / "data")
    build_jaspar.check(wheel, tmp_path / "data")
    other = make_wheel(tmp_path, monkeypatch, "UPDATE MATRIX_DATA SET val = 99 WHERE ID = 2 AND row = 'A'")
    with pytest.raises(ValueError, match=r"data: counts\.bin, provenance\.json differ from a rebuild"):
        build_jaspar.check(other, tmp_path / "data")
    flip_byte(tmp_path / "data" / "matrices.tsv")
    jaspar.load.cache_clear()
    with pytest.raises(ValueError, match="checksum mismatch"):
        build_jaspar.check(wheel, tmp_path / "data")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("DELETE FROM MATRIX_DATA WHERE ID = 3 AND row = 'T' AND col = 2", "matrix MA0001.10 has 7 cells"),
        ("DELETE FROM MATRIX_DATA WHERE ID = 3", "matrix MA0001.10 has 0 cells"),
        (
            "UPDATE MATRIX_DATA SET val = -1 WHERE ID = 3 AND row = 'T'",
            "MA0001.10 has a count that is no",
        ),
        (
            "UPDATE MATRIX_DATA SET val = NULL WHERE ID = 3 AND row = 'T'",
            "MA0001.10 has a count that is no",
        ),
        ("UPDATE MATRIX_DATA SET val = 0 WHERE ID = 3 AND col = 2", "an empty position"),
    ],
)
def test_malformed_matrix_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: str, message: str) -> None:
    """Nothing is written."""
    with pytest.raises(ValueError, match=message):
        build_jaspar.build(make_wheel(tmp_path, monkeypatch, edit), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_other_wheels_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong checksum, no such file, and a pip that fails."""
    wheel = make_wheel(tmp_path, monkeypatch)
    flip_byte(wheel)
    with pytest.raises(ValueError, match="its checksum differs"):
        build_jaspar.build(wheel, tmp_path / "data")
    with pytest.raises(ValueError, match=rf"absent\.whl: no {build_jaspar.MEMBER} can be read"):
        build_jaspar.build(tmp_path / "absent.whl", tmp_path / "data")
    failed = subprocess.CompletedProcess([], 1, "", "noise\nERROR: no such index\n")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(
        ValueError, match=r"^pip could not download pyjaspar==4\.0\.0 \(ERROR: no such index\); get .*$"
    ):
        build_jaspar.download_wheel(tmp_path)
