"""Folders as bytes: there and back unchanged, and nothing but plain files within bounds is unpacked."""

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgfn.config import archives
from sgfn.config.archives import pack_folder, unpack_folder

NAMES = st.text("ab_.", min_size=1, max_size=4).filter(lambda name: name.strip("."))


@given(st.dictionaries(st.tuples(NAMES.map("d{}".format), NAMES), st.binary(max_size=99), max_size=5))
def test_files_travel_unchanged(tmp_path_factory: pytest.TempPathFactory, files: dict[tuple[str, str], bytes]) -> None:
    there, back = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("back")
    for parts, content in files.items():
        there.joinpath(*parts).parent.mkdir(exist_ok=True)
        there.joinpath(*parts).write_bytes(content)
    names = unpack_folder(pack_folder(there), back)
    assert sorted(names) == sorted("/".join(parts) for parts in files)
    assert {parts: back.joinpath(*parts).read_bytes() for parts in files} == files


def test_links_and_what_is_left_out_stay_behind(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "lock").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "back").mkdir()
    assert unpack_folder(pack_folder(tmp_path, keep=lambda name: name != "lock"), tmp_path / "back") == ["a"]


def packed(*entries: tarfile.TarInfo) -> bytes:
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    return found.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, target, size
    return found


@pytest.mark.parametrize(
    "bad",
    [
        entry("../a"),
        entry("a/../../b"),
        entry("/etc/x"),
        entry("a\\b"),
        entry("link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("hard", tarfile.LNKTYPE, "good"),
        entry("pipe", tarfile.FIFOTYPE),
        entry("device", tarfile.CHRTYPE),
        entry("folder", tarfile.DIRTYPE),
        entry("good"),
    ],
    ids=lambda found: found.name,
)
def test_what_is_no_plain_file_below_the_folder_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(ValueError, match="not packed by sgfn"):
        unpack_folder(packed(entry("good"), bad), tmp_path)
    assert not list(tmp_path.iterdir())


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = packed(entry("a"), entry("b"))
    monkeypatch.setattr(archives, "MOST_FILES", 1)
    with pytest.raises(ValueError, match="2 files of"):
        unpack_folder(many, tmp_path)
    with pytest.raises(ValueError, match="too much to travel"):
        unpack_folder(packed(entry("a", size=100)), tmp_path, most_bytes=99)
    (tmp_path / "a").write_bytes(b"x" * 100)
    with pytest.raises(ValueError, match="too much to travel"):
        pack_folder(tmp_path, most_bytes=99)
    for broken in (b"", b"x" * 600, many[:300]):
        with pytest.raises(ValueError, match="not packed by sgfn"):
            unpack_folder(broken, tmp_path)
