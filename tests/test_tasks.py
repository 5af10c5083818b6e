"""Tasks by name: what they are made of, and what a wrong name gets."""

import math
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs import GridEnv, SequenceEnv
from sgfn.landscapes import tfbind8
from sgfn.tasks import BUILDERS, make_task, task_names

SHIPPED = ["tfbind8", *[f"tfbind8-{n.lower()}" for n in tfbind8.EMBEDDED[1:]], "grid", "words"]


def test_names_are_the_builders_and_the_tables_at_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert task_names() == SHIPPED
    assert {name.partition("-")[0] for name in SHIPPED} == set(BUILDERS)
    monkeypatch.setenv("SGFN_CACHE", str(tmp_path))
    for name in ("PAX7_REF_R1", "NO_SUCH_TABLE"):
        (tmp_path / f"{name}.bin").write_bytes(b"")
        (tmp_path / f"{name}.json").write_bytes(b"")
    assert task_names() == [*SHIPPED[:-2], "tfbind8-pax7_ref_r1", "grid", "words"]


@pytest.mark.parametrize("name", SHIPPED)
def test_tasks_take_noise_and_exponent_from_the_configuration(name: str) -> None:
    plain, changed = (
        make_task(name, TrainConfig().with_(noise__alpha=a, beta=b)) for a, b in ((0.1, None), (0.3, 7.0))
    )
    assert (plain.env.noise.alpha, changed.env.noise.alpha) == (0.1, 0.3)
    assert (plain.beta, changed.beta) == (3.0 if name.startswith("tfbind8") else 1.0, 7.0)
    assert plain.name == name
    assert plain.summary


def test_sizes() -> None:
    config = TrainConfig().with_(grid__ndim=3, grid__side=5)
    sizes = {name: make_task(name, config).env.num_objects for name in SHIPPED}
    assert sizes == dict.fromkeys(SHIPPED, 4**8) | {"grid": 5**3, "words": sum(4**n for n in range(1, 8))}
    assert make_task("grid", TrainConfig()).env.num_objects == 64
    grid, words = make_task("grid", config).env, make_task("words", config).env
    assert isinstance(grid, GridEnv)
    assert isinstance(words, SequenceEnv)
    assert (words.stop, words.min_length) == (True, 1)


def test_tables_differ_and_the_bare_name_is_six6() -> None:
    objects = torch.randint(4, (500, 8), generator=torch.Generator().manual_seed(0))
    scores = {name: make_task(name, TrainConfig()).landscape.scores(objects) for name in SHIPPED[:-2]}
    assert_close(make_task("tfbind8-six6_ref_r1", TrainConfig()).landscape.scores(objects), scores["tfbind8"])
    assert not torch.allclose(scores["tfbind8-crx_ref_r1"], scores["tfbind8"])


def test_log_reward_is_clipped_and_divided() -> None:
    config = TrainConfig().with_(reward__minimum=0.3, reward__norm=0.5, beta=4.0)
    task = make_task("words", config)
    assert isinstance(task.env, SequenceEnv)
    near, far = task.env.parse(["CAT", "GGGGGGG"])
    assert float(task.log_reward(near)) == pytest.approx(math.log(1.0 / 0.5))  # the exponent comes later
    assert float(task.log_reward(far)) == pytest.approx(math.log(0.3 / 0.5))
    assert float(task.landscape.scores(far)) < 0.3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gird", "task 'gird' is unknown: .*did you mean 'grid'?"),
        ("grid-2", "task 'grid-2' is unknown: .*did you mean 'grid'?"),
        ("word", "task 'word' is unknown: .*did you mean 'words'?"),
        ("tfbind", "task 'tfbind' is unknown: .*did you mean 'tfbind8'?"),
        ("", "task '' is unknown: choose from tfbind8"),
        ("tfbind8-six", "unknown TFBind8 table 'six'; nearest names: SIX"),
        ("tfbind8-pax7_ref_r1", "PAX7_REF_R1 is not in .*; get it with `sgfn data fetch PAX7_REF_R1`"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_task(name, TrainConfig())
    assert make_task("grid", TrainConfig()).name == "grid"
