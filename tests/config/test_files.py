"""Files are whole or absent, whatever happens while they are written."""

import errno
import json
from pathlib import Path

import pytest

from sgfn.config.files import naming, read_json, replacing, write_json, write_text

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [FULL, ValueError("a bug"), KeyboardInterrupt()], ids=["full disk", "bug", "Ctrl-C"])
@pytest.mark.parametrize("before", ["old", None])
def test_a_failed_write_leaves_what_was_there(tmp_path: Path, error: BaseException, before: str | None) -> None:
    path = tmp_path / "file.txt"
    if before is not None:
        path.write_text(before)

    def write() -> None:
        with replacing(path) as aside:
            aside.write_text("half of the n")
            raise error

    with pytest.raises(type(error)):
        write()
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == ({} if before is None else {"file.txt": before})
    write_text(path, "new")  # and without the error the same call does replace
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"file.txt": "new"}


def test_the_old_file_is_read_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "file.txt"
    write_text(path, "old")
    with replacing(path) as aside:
        aside.write_text("new")
        assert path.read_text() == "old"
        assert aside.parent == path.parent  # a rename across file systems would not be atomic
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o644


def test_errors_of_the_disk_name_the_file(tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for context in (naming(tmp_path / "a"), replacing(tmp_path / "a")):
        with pytest.raises(OSError, match="No space left") as caught, context:
            full()
        assert caught.value.filename == str(tmp_path / "a")
    with pytest.raises(OSError, match="No space left") as caught:
        full()
    assert caught.value.filename is None
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(OSError, match=r"Not a directory|File exists") as caught:
        write_text(blocked / "inside", "")
    assert caught.value.filename == str(blocked / "inside")


def test_json_comes_back(tmp_path: Path) -> None:
    path, data = tmp_path / "a.json", {"a": [1, 2.5, None], "b": {"c": "é"}}
    write_json(path, data)
    assert read_json(path) == data
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == data
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("content", "line"), [(b"", 1), (b"nonsense", 1), (b'{"a": 1,\n\n "b": }', 3), (b'{"a": 1}\n}', 2)]
)
def test_wrong_json_is_named_with_its_line(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"not valid JSON") as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert not isinstance(caught.value, json.JSONDecodeError)
    path.write_text('{"a": 1,\n\n "b": 2}')
    assert read_json(path) == {"a": 1, "b": 2}


def test_binary_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"a\.json: not a text file"):
        read_json(path)
