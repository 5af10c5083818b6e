"""Files are whole or absent, whatever happens while they are written."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sgfn.config import reading
from sgfn.config.files import check_writable, naming, read_json, replacing, resolved, sweep, write_json, write_text

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


# Writers beside each other, living and dead

KILLED = """
import os, signal, sys
from pathlib import Path
from sgfn.config.files import replacing
with replacing(Path(sys.argv[1])) as aside:
    aside.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_writer(path: Path) -> list[Path]:
    """Kill a process while it writes a file; returns what it left."""
    before = set(path.parent.iterdir())
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == -signal.SIGKILL
    return sorted(set(path.parent.iterdir()) - before)


def test_what_a_killed_writer_left_is_swept_by_the_next_one_in_the_folder(tmp_path: Path) -> None:
    mine = {".notes.txt", ".samples.csv.bak", ".samples.csv", ".sgfn-abcdefgh"}
    for name in mine:
        (tmp_path / name).write_text("mine")
    assert len(kill_writer(tmp_path / "samples.csv")) == 1
    write_text(tmp_path / "other.txt", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"other.txt", *mine}


def test_what_a_living_writer_writes_is_not_swept(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    with replacing(path) as aside:
        aside.write_text("half")
        write_text(tmp_path / "other.txt", "new")
        assert sweep(tmp_path, ["samples.csv"]) == [aside]
        assert aside.read_text() == "half"
        aside.write_text("whole")
    assert path.read_text() == "whole"


def test_two_writers_of_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    with replacing(path) as aside:
        with pytest.raises(ValueError, match=r"another process is writing .*samples\.csv: wait for it, or give"):
            write_text(path, "second")
        aside.write_text("first")
    assert path.read_text() == "first"
    write_text(path, "second")
    assert path.read_text() == "second"


@pytest.mark.parametrize("name", ["a" * 251 + ".csv", "\N{EURO SIGN}" * 83 + ".csv", "a." + "b" * 253, "x" * 255])
def test_names_as_long_as_they_may_be(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert len(kill_writer(path)) == 1
    write_text(path, "new")
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_a_name_that_is_too_long_is_told_at_once(tmp_path: Path) -> None:
    for call in (check_writable, lambda path: write_text(path, "")):
        with pytest.raises(OSError, match="File name too long"):
            call(tmp_path / ("x" * 256))


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "pipe"):
        with pytest.raises(OSError, match="not a regular file, give another name"):
            check_writable(path)
    with pytest.raises(OSError, match="Not a directory") as caught:
        check_writable(tmp_path / "file" / "deep" / "x.csv")
    assert caught.value.filename == str(tmp_path / "file" / "deep" / "x.csv")
    check_writable(tmp_path / "new" / "deep" / "x.csv")
    check_writable(tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("[" * 100_000, "not valid JSON for sgfn: more than 64 arrays and objects inside each other"),
        ('{"a":' * 65 + "1" + "}" * 65, "not valid JSON for sgfn: more than 64 arrays and objects inside each other"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON (Exceeds the limit (4300 digits) for integer string conversion)"),
    ],
    ids=["brackets", "objects", "digits"],
)
def test_json_that_no_one_needs(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"not valid JSON") as caught:
        read_json(path)
    assert str(caught.value) == f"{path}: {what}"


def test_json_of_the_depth_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" * 64 + "1" + "]" * 64)
    data, depth = read_json(path), 0
    while isinstance(data, list):
        (data,), depth = data, depth + 1
    assert (depth, data) == (64, 1)


def test_json_in_what_is_no_file_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "long").write_text("[1, 2, 3]")
    monkeypatch.setattr(reading, "LARGEST_JSON", 8)
    for name, what in {"pipe": "a pipe", "loop": "cannot be read", "none": "no such file", "long": "more than"}.items():
        with pytest.raises(ValueError, match=what) as caught:
            read_json(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")


def test_where_a_path_leads(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "there").symlink_to("folder")
    (tmp_path / "folder").mkdir()
    assert resolved(tmp_path / "there" / "x") == tmp_path.resolve() / "folder" / "x"
    assert resolved(tmp_path / "circle").name == "circle"


@pytest.mark.parametrize("text", [r'["\ud800"]', r'{"\udfff": 1}', r'["\ud83d x"]'])
def test_half_a_character_is_refused(text: str) -> None:
    assert reading.parse_json(r'["\ud83d\ude00 \\ud800"]') == ["\U0001f600 \\ud800"]
    with pytest.raises(ValueError, match="which is no character of a text"):
        reading.parse_json(text, "x.json")
