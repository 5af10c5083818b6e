"""Damaged files of every kind of folder: the answer is the right one, or one line and exit code 2."""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from benchmarks.soak import corruption
from benchmarks.soak.corruption import QUESTIONS, Corruptions, an_edit, corrupt
from benchmarks.soak.folders import Bases
from benchmarks.soak.forks import ForkServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QUICK, MORE = 2, 8
"""Damaged folders for each question, in `make test` and beside it in `make faults`."""


@pytest.fixture(scope="session")
def corruptions(server: ForkServer, bases: Bases) -> Corruptions:
    return Corruptions(server, bases)


@pytest.mark.parametrize("examples", [QUICK, pytest.param(MORE, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_damaged_folder_gets_the_right_answer_or_a_line(
    name: str, examples: int, corruptions: Corruptions, tmp_path: Path
) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**32))
    def one(seed: int) -> None:
        chance = random.Random(f"{name} {seed}")
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        try:
            how, found = corruptions.corrupted(name, folder, chance)
        finally:
            shutil.rmtree(folder)
        assert found == [], how

    one()


@pytest.mark.parametrize("how", corruption.DAMAGE)
@pytest.mark.parametrize("data", [b"", b'{"a": [1, {"b": null}]}', b'{"step": 1}\n{"step": 2}\n', bytes(range(256))])
def test_damage_is_done(how: str, data: bytes) -> None:
    made = [corruption.DAMAGE[how](data, random.Random(seed)) for seed in range(20)]
    assert any(one != data for one in made) or not data


def test_every_kind_of_damage_comes_up(tmp_path: Path) -> None:
    file, seen = tmp_path / "run" / "config.json", set[str]()
    for seed in range(200):
        shutil.rmtree(file.parent, ignore_errors=True)
        file.parent.mkdir()
        file.write_text('{"format": 2}')
        seen.add(corrupt(file, random.Random(seed)))
    assert seen == corruption.DAMAGE.keys() | corruption.ODD.keys()


def test_what_is_still_json_is_an_edit(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    for text, edit in (('{"a": 2}', True), ("{", False), ("", False), ('{"a": 1}', True)):
        file.write_text(text)
        assert an_edit(b'{"a": 1}', file) is edit
    file.unlink()
    assert not an_edit(b"{}", file)
