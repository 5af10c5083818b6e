"""Files of samples: the same bytes as a line at a time would give, whole or absent, in blocks."""

import csv
import gzip
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from benchmarks.soak.forks import ForkServer
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_runs import CPU, complaint, contents, tiny_trainer

from sgfn.cli.commands import main
from sgfn.config import TrainConfig
from sgfn.config.csv_cells import FORMULA, cell
from sgfn.config.tables import read_table
from sgfn.envs import Env, ForecastEnv, SequenceEnv
from sgfn.envs.trajectories import Samples
from sgfn.evaluation.orders import as_orders
from sgfn.landscapes.offline import read_objects
from sgfn.landscapes.tasks import make_task
from sgfn.learning import learner
from sgfn.learning.learner import Learner
from sgfn.learning.trainer import Trainer
from sgfn.runs.sample_files import WRITERS, writing
from sgfn.runs.sampling import sample, write_samples
from sgfn.runs.spelling import cells, joined_text, spell_figures, spell_objects, text_rows
from sgfn.runs.table_files import kind_of


def line_by_line(env: Env, samples: Samples) -> str:
    """What is to be written, one line after the other."""
    if isinstance(env, SequenceEnv):
        meant = env.decode(as_orders(env, samples.intended))
    else:
        meant = [" ".join(str(a) for a in row if a >= 0) for row in samples.intended.tolist()]
    marked = [f'"{text}"' if "," in text else text for text in env.decode(samples.objects)]
    rows = zip(marked, samples.scores.tolist(), meant, strict=True)
    return "sequence,score,intended\n" + "".join(f"{text},{score:.6g},{order}\n" for text, score, order in rows)


def trainer_on(task: str, **changes: object) -> Trainer:
    config = TrainConfig().with_(batch=8, net__hidden=16, dynamics__hidden=8, noise__alpha=0.3, **changes)
    return Trainer(make_task(task, config), CPU)


PROTEIN = "ACDEFGHIKLMNPQRSTVWY"
LEARNERS = {
    "tfbind8": lambda: trainer_on("tfbind8"),
    "words, of variable length": lambda: trainer_on("words"),
    "a grid, whose text has commas": lambda: trainer_on("grid", grid__ndim=3, grid__side=12),
    "a line, whose text has none": lambda: trainer_on("grid", grid__ndim=1, grid__side=5),
    "bits": lambda: trainer_on("bits"),
    "rna": lambda: trainer_on("rna", rna__length=6),
    "peptides": lambda: tiny_trainer(alphabet=PROTEIN, length=2, noise__alpha=0.3),
    "letters of two bytes": lambda: tiny_trainer(alphabet="aéß€", length=3, stop=True, noise__alpha=0.3),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_bytes_as_line_by_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 128)
    made, file = LEARNERS[name](), tmp_path / "samples.csv"
    write_samples(made.task.env, made.stream(300, 3), file)
    assert file.read_bytes() == line_by_line(made.task.env, made.draw(300, seed=3)).encode()
    assert file.read_bytes() != line_by_line(made.task.env, made.draw(300, seed=4)).encode()


def test_a_letter_that_is_a_comma_is_marked_everywhere(tmp_path: Path) -> None:
    made, file = tiny_trainer(alphabet="A,", length=2), tmp_path / "samples.csv"
    write_samples(made.task.env, made.stream(40, 0), file)
    assert '"A,"' in {line[:4] for line in file.read_text().splitlines()}
    assert '"A,"' in {line[-4:] for line in file.read_text().splitlines()}


def test_other_spaces_are_decoded_by_themselves() -> None:
    made = tiny_trainer()
    env, objects = Strange(made.task.env), made.draw(9, seed=0).objects
    assert joined_text(spell_objects(env, objects.numpy())).decode() == "".join(env.decode(objects))  # pyright: ignore
    plain = joined_text(spell_objects(made.task.env, objects.numpy()))
    assert joined_text(spell_objects(env, objects.numpy())) != plain


class Strange(ForecastEnv):
    """A space that nobody knows; its texts are those of another one with a mark."""

    def __init__(self, env: Env) -> None:
        self.other = env

    def decode(self, objects: torch.Tensor) -> list[str]:
        return [text + "!" for text in self.other.decode(objects)]


@PROPERTY
@given(arrays(np.float32, st.integers(1, 20), elements=st.floats(width=32)))
def test_figures_are_formatted_as_one_by_one(values: np.ndarray) -> None:
    found = [bytes(row).rstrip(b"\0").decode() for row in spell_figures(values)]
    assert found == [f"{value:.6g}" for value in values.tolist()]


def test_zeros_keep_their_sign() -> None:
    assert joined_text(spell_figures(np.array([0.0, -0.0], dtype=np.float32))) == b"0-0"


def test_parquet_and_gzip_hold_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 16)
    made = LEARNERS["words, of variable length"]()
    plain, packed, table = (tmp_path / name for name in ("s.csv", "S.CSV.GZ", "s.parquet"))
    for file in (plain, packed, table):
        write_samples(made.task.env, made.stream(40, 0), file)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    first = packed.read_bytes()
    write_samples(made.task.env, made.stream(40, 0), packed)
    assert packed.read_bytes() == first  # no time of day in it
    opened, drawn = pq.ParquetFile(table), made.draw(40, seed=0)
    assert [opened.metadata.row_group(i).num_rows for i in range(opened.num_row_groups)] == [16, 16, 8]
    columns, env = opened.read().to_pydict(), made.task.env
    assert list(columns) == ["sequence", "score", "intended"]
    assert columns["sequence"] == env.decode(drawn.objects)
    assert columns["score"] == drawn.scores.tolist()
    assert isinstance(env, SequenceEnv)
    assert columns["intended"] == env.decode(as_orders(env, drawn.intended))
    assert columns["intended"] != columns["sequence"]


@pytest.mark.parametrize(("name", "kind"), [("samples", "'a bare name'"), ("s.txt", "'.txt'"), ("s.gz", "'.gz'")])
def test_other_endings_are_refused(name: str, kind: str, grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    found = complaint(capsys, ["sample", str(grid_run), "--device", "cpu", "--out", str(grid_run / name)])
    assert found == f"{grid_run / name}: tables are written as .csv, .csv.gz or .parquet, not as {kind}"
    assert contents(grid_run) == before
    assert [kind_of(Path(name), WRITERS) for name in ("a.csv", "b.CSV", "c.csv.gz")] == [".csv", ".csv", ".csv.gz"]


def test_without_pyarrow(grid_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["sample", str(grid_run), "-n", "5", "--device", "cpu", "--out", str(grid_run / "s.parquet")]
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pyarrow.parquet", None)
        found = complaint(capsys, words)
    wanted = "Parquet needs pyarrow; install it with pip install 'sgfn[parquet]', or write .csv"
    assert found == f"{grid_run / 's.parquet'}: {wanted}"
    assert not (grid_run / "s.parquet").exists()
    assert sample(grid_run, 5, grid_run / "s.parquet", device="cpu") == 5


def test_blocks_are_written_as_they_come(grid_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told of each, the file appears at the end, and what was there stays if anything goes wrong."""
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 8)
    out, told = grid_run / "deep" / "s.csv", []

    def progress(done: int) -> None:
        told.append((done, out.exists(), len(list(out.parent.iterdir()))))

    sample(grid_run, 20, out, device="cpu", progress=progress)
    assert told == [(8, False, 1), (16, False, 1), (20, False, 1)]
    before = contents(grid_run)

    def fail(done: int) -> None:
        if done > 8:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        sample(grid_run, 20, out, device="cpu", overwrite=True, seed=1, progress=fail)
    assert contents(grid_run) == before


def test_a_block_is_let_go_before_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many samples: never more than the block at hand and the one in the making."""
    alive, most = 0, 0

    class Counted:
        """A block that knows whether it still lives."""

        def __init__(self, samples: Samples) -> None:
            nonlocal alive, most
            self.objects, self.scores, self.intended = samples.objects, samples.scores, samples.intended
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    made = tiny_trainer()
    stream = made.stream
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 8)
    monkeypatch.setattr(Learner, "stream", lambda self, n, seed: map(Counted, stream(n, seed)))
    write_samples(made.task.env, made.stream(200, 0), tmp_path / "s.csv")
    assert alive == 0
    assert most <= 2


def test_an_empty_text_is_a_text(tmp_path: Path) -> None:
    texts, scores = text_rows([b"", b"ab"]), np.array([1.0, 2.0], dtype=np.float32)
    for name in ("s.csv", "s.parquet"):
        with writing(tmp_path / name) as write:
            write(texts, scores, texts)
    assert (tmp_path / "s.csv").read_text() == "sequence,score,intended\n,1,\nab,2,ab\n"
    assert pq.read_table(tmp_path / "s.parquet").to_pydict()["intended"] == ["", "ab"]


# Killed and alive

KILLED = """
import os, signal, sys
from sgfn.cli import main
from sgfn.runs import sampling

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

sampling.spell_objects = die
main(sys.argv[3:])
"""


def test_what_a_killed_command_left_is_swept_by_the_next(grid_run: Path, server: ForkServer, tmp_path: Path) -> None:
    assert server.run(["-c", KILLED, "sample", str(grid_run)], tmp_path).code == -signal.SIGKILL
    assert len([path for path in grid_run.iterdir() if path.name.startswith(".samples.csv.")]) == 1
    for words in (["sample"], ["evaluate", "--samples", "5"], ["report"], ["train", "grid", "--resume", "--out"]):
        run = shutil.copytree(grid_run, tmp_path / words[0])
        assert main([*words, str(run)]) == 0
        assert not [path for path in Path(run).iterdir() if path.name.startswith(".") and path.name != ".lock"]


def test_a_second_command_that_writes_the_same_file_is_refused(
    grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with writing(grid_run / "samples.csv"):
        line = complaint(capsys, ["sample", str(grid_run)])
        assert line == f"another process is writing {grid_run}/samples.csv: wait for it, or give another name"
        assert main(["sample", str(grid_run), "--out", str(grid_run / "other.csv")]) == 0
    assert main(["sample", str(grid_run), "--overwrite"]) == 0


def test_samples_are_not_written_over_the_data_of_a_run(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = complaint(capsys, ["sample", str(grid_run), "--out", str(grid_run / "data" / "x.csv")])
    assert line == f"{grid_run}/data/x.csv is a file that {grid_run} is made of: give --out another name"


@pytest.mark.parametrize("alphabet", ['A"', "A,;", "=+", "-A", "@'", "'=A", 'A"=,', "\uff1dA", "\u00e9'-", "\uff0ba"])
def test_samples_of_any_alphabet_are_read_back(alphabet: str, tmp_path: Path) -> None:
    """No cell begins as a formula does, every reader splits a line alike, and our own gives the sequences back."""
    made, file = tiny_trainer(alphabet=alphabet, length=3, noise__alpha=0.5), tmp_path / "samples.csv"
    write_samples(made.task.env, made.stream(60, 0), file)
    drawn = made.draw(60, seed=0)
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines, strict=True))
    assert {len(row) for row in rows} == {3}
    assert not [text for row in rows for text in (row[0], row[2]) if text[0] in FORMULA]
    table = read_table(file)
    assert table.texts("sequence") == made.task.env.decode(drawn.objects)
    assert table.texts("intended") == made.task.env.decode(as_orders(made.task.env, drawn.intended))
    assert read_objects(made.task.env, file).tolist() == drawn.objects.tolist()


@PROPERTY
@given(st.lists(st.text(st.sampled_from("ab'=-@+\uff1d\uff0b,;\"\t\u00e9"), max_size=5), min_size=1, max_size=5))
def test_cells_by_the_block_are_cells_one_by_one(texts: list[str]) -> None:
    rows = cells(text_rows([text.encode() for text in texts]))
    assert [bytes(row).replace(b"\0", b"").decode() for row in rows] == [cell(text) for text in texts]
