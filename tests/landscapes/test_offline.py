"""Objects from a file: what is read, and how each error names the file and the line."""

import gzip
from pathlib import Path

import pandas as pd
import pytest
import torch
from small_runs import ANYWHERE, complaint
from table_kinds import WRITERS, first_row, write_kind
from torch import Tensor

from sgfn.config import TrainConfig
from sgfn.envs import Env, GridEnv, SequenceEnv
from sgfn.landscapes.offline import read_objects
from sgfn.landscapes.tasks import make_task
from sgfn.noise import UniformSlip

QUIET = UniformSlip(alpha=0.0)
FIXED = SequenceEnv(length=3, alphabet="ACGT", noise=QUIET)
FREE = SequenceEnv(length=3, alphabet="ACGT", noise=QUIET, stop=True)
GRID = GridEnv(ndim=2, side=4, noise=QUIET)


def write(tmp_path: Path, text: str | bytes, name: str = "known.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("env", "name", "text", "objects"),
    [
        (FIXED, "a.txt", "ACG\n\n  TTT  \n", ["ACG", "TTT"]),
        (FIXED, "a.csv", "sequence\nACG\nTTT\n", ["ACG", "TTT"]),
        (FIXED, "a.txt", "score,sequence\n1,ACG\n\n2,TTT", ["ACG", "TTT"]),
        (FIXED, "a.csv", b"\xef\xbb\xbfsequence,score\r\nACG,1\r\n", ["ACG"]),  # as a spreadsheet writes it
        (FREE, "a.txt", "A\nAC\nACG\n", ["A", "AC", "ACG"]),
        (GRID, "a.txt", "0,3\n2, 1\n", ["0,3", "2,1"]),
        (GRID, "a.csv", 'sequence,score\n"0,3",1.5\n', ["0,3"]),
    ],
)
def test_files_that_are_right(tmp_path: Path, env: Env, name: str, text: str | bytes, objects: list[str]) -> None:
    found = env.decode(read_objects(env, write(tmp_path, text, name)))
    assert found == objects
    assert found != env.decode(env.all_objects()[: len(objects)])


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_kind_of_table(tmp_path: Path, kind: str) -> None:
    file = write_kind(tmp_path, pd.DataFrame({"score": [1.5, 2.0], "sequence": ["ACG", "TTT"]}), kind)
    assert FIXED.decode(read_objects(FIXED, file)) == ["ACG", "TTT"]
    file = write_kind(tmp_path, pd.DataFrame({"score": [1.5], "sequence": ["AXG"]}), kind)
    with pytest.raises(ValueError, match=rf"^offline\.file \S+, {first_row(kind)}: \('AXG'\): letters \['X'\]"):
        read_objects(FIXED, file)


def test_plain_text_that_is_packed(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(b"ACG\nTTT\n"), "a.txt.gz")
    assert FIXED.decode(read_objects(FIXED, path)) == ["ACG", "TTT"]
    path = write(tmp_path, gzip.compress(b"ACG\nTT\n"), "a.gz")
    with pytest.raises(ValueError, match=r"^offline\.file \S+, line 2: \('TT'\): length 2, this task needs 3"):
        read_objects(FIXED, path)


@pytest.mark.parametrize(
    ("env", "name", "text", "message"),
    [
        (FIXED, "a.txt", "", ": the file is empty; write one line for each object"),
        (FIXED, "a.txt", "\n  \n", ": the file is empty; write one line for each object"),
        (FIXED, "a.csv", "sequence\n", ": a header and no rows; add one row for each object"),
        (FIXED, "a.txt", "ACG\n\nAXG\n", ", line 3: ('AXG'): letters ['X'] are not in the alphabet ACGT"),
        (FIXED, "a.csv", "sequence\nacg\n", ", line 2: ('acg'): letters ['a', 'c', 'g'] are not in"),
        (FIXED, "a.txt", "ACG\nAC\n", ", line 2: ('AC'): length 2, this task needs 3"),
        (FIXED, "a.txt", "A" * 10**6, f", line 1: ('{'A' * 37}...'): length 1000000, this task needs 3"),
        (FREE, "a.txt", "ACG\nACGT\n", ", line 2: ('ACGT'): length 4, this task needs 1 to 3"),
        (FIXED, "a.csv", "seq,score\nACG,1\n", ", line 1: the header has no column 'sequence'"),
        (
            FIXED,
            "a.csv",
            "sequence,score\nACG,1\nTTT\n",
            ", line 3: 1 field where the header has 2; fill in what is missing",
        ),
        (FIXED, "a.csv", "sequence,score\nACG,1,2\n", ", line 2: 3 fields where the header has 2; put a field that"),
        (FIXED, "a.csv", "score,sequence\n1,ACG\n2,\n", ", line 3: (''): length 0, this task needs 3"),
        (GRID, "a.txt", "1,1\n1,4\n", ", line 2: ('1,4'): this task needs 2 coordinates in 0..3 joined by commas"),
        (GRID, "a.txt", "1,1,1\n", ", line 1: ('1,1,1'): this task needs 2 coordinates"),
        (GRID, "a.txt", "1,-1\n", ", line 1: ('1,-1'): this task needs 2 coordinates"),
        (FIXED, "a.txt", b"ACG\n\xff\xfe\n", ", line 2: byte 0xff is not UTF-8 text"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, env: Env, name: str, text: str | bytes, message: str) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(ValueError, match=r"^offline\.file ") as caught:
        read_objects(env, path)
    assert str(caught.value).startswith(f"offline.file {path}{message}")


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.csv", "no such file"), (tmp_path, "a folder, not a file")):
        with pytest.raises(ValueError, match=rf"^offline\.file \S+: {message}"):
            read_objects(FIXED, path)


def test_the_command_line_says_the_same_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path, "sequence\nCAT\nDOG\n"), tmp_path / "run"
    words = ["train", "words", *ANYWHERE, "--out", str(out), "--offline.file", str(path), "--offline.share", "0.5"]
    assert complaint(capsys, words).startswith(f"offline.file {path}, line 3: ('DOG'): letters ['D', 'O']")
    assert not out.exists()
    missing = [*words[:-4], "--offline.share", "0.5"]
    assert complaint(capsys, missing) == (
        "offline.share is positive but offline.file is not given: name a file of objects"
    )
    path.write_text("sequence\nCAT\nTAGA\n")
    task = make_task("words", TrainConfig())
    assert task.env.decode(read_objects(task.env, path)) == ["CAT", "TAGA"]


class NoParse(SequenceEnv):
    """An environment that reads its own texts, or none."""

    parse = Env.parse


class OwnWords(SequenceEnv):
    def parse(self, texts: list[str]) -> Tensor:
        return torch.tensor([["AC".index(letter) for letter in text] for text in texts])


def test_what_an_own_parse_says_is_not_cut(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("AC\nAX\n")
    options = {"length": 2, "alphabet": "AC", "noise": UniformSlip(alpha=0.0)}
    with pytest.raises(ValueError, match=r"line 2: \('AX'\): substring not found"):
        read_objects(OwnWords(**options), file)
    with pytest.raises(ValueError, match=r"^reading objects needs a method `parse` of NoParse"):
        read_objects(NoParse(**options), file)
    with pytest.raises(ValueError, match=r"line 2: \('AX'\): letters \['X'\] are not"):
        read_objects(SequenceEnv(**options), file)
