"""Simulated designs: what is known of a landscape against enumeration, and every method plays."""

import json
from itertools import product
from pathlib import Path

import pytest
import torch

from sgfn.cli import main
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.design.players import METHODS
from sgfn.design.rivals import SEARCHES, History, fill
from sgfn.design.simulate import Truth, play, summary_of
from sgfn.design.space import OrderSpace, row_keys
from sgfn.landscapes.tasks import Task, make_task


def truth_function(texts: list[str]) -> list[float]:
    return [text.count("AC") + 0.25 * text.count("A") for text in texts]


@pytest.fixture(scope="module")
def task() -> Task:
    config = TrainConfig().with_(
        noise=NoiseConfig(alpha=0.2),
        callable__function=f"{__name__}:truth_function",
        callable__alphabet="ACG",
        callable__length=5,
        callable__min_length=5,
    )
    return make_task("callable", config)


def test_truth_is_exact_and_bounds_every_plate(task: Task) -> None:
    truth = Truth(task)
    orders = truth.space.env.all_objects()
    assert truth.values is not None
    assert truth.best_batch is not None
    estimate = torch.stack([truth.scores(truth.realise(orders, seed)) for seed in range(100)]).mean(0)
    assert float((estimate - truth.values).abs().mean()) < 0.1
    assert float((truth.scores(orders) - truth.values).abs().max()) > 0.25  # the noise matters
    game = play(task, "greedy", rounds=2, orders=6, start=30, proxy="ridge")
    for one in game.rounds:
        assert one.regret is not None
        assert one.regret >= -1e-6
        assert one.expected == pytest.approx(float(truth.best_batch[:6].mean()) - one.regret)
    assert game.rounds[1].best >= game.rounds[0].best


@pytest.mark.parametrize("method", [name for name in METHODS if name != "thompson-search"])
def test_every_method_fills_plates_with_new_orders(task: Task, method: str) -> None:
    game = play(task, method, rounds=1, orders=8, start=25, seed=1, proxy="ridge")
    again = play(task, method, rounds=1, orders=8, start=25, seed=1, proxy="ridge")
    assert [vars(one) | {"seconds": 0} for one in game.rounds] == [vars(one) | {"seconds": 0} for one in again.rounds]
    assert summary_of([game, again])[0]["seeds"] == 2


@pytest.mark.parametrize("name", list(SEARCHES))
def test_rivals_climb_a_known_score(name: str) -> None:
    space = OrderSpace(alphabet="ACGT", min_length=8, max_length=8)
    generator = torch.Generator().manual_seed(0)
    start = space.random(40, generator)

    def mean(tokens: torch.Tensor) -> torch.Tensor:
        return (tokens == torch.arange(8) % 4).sum(-1).double()

    history = History(tokens=start, scores=mean(start).float())
    found = SEARCHES[name](space, mean, history, generator)
    assert float(mean(found).max()) > float(mean(start).max())
    plate = fill(found, history, 10, space, generator)
    assert not set(row_keys(plate)) & set(row_keys(start))
    assert len(set(row_keys(plate))) == 10


def test_the_command_plays_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["design", "simulate", "tfbind8", "--method", "random", "--rounds", "1", "--orders", "4", "--start", "5"]
    assert main([*words, "--seeds", "2", "--json", "--out", str(tmp_path / "games.json")]) == 0
    printed = json.loads(capsys.readouterr().out)
    kept = json.loads((tmp_path / "games.json").read_text())
    assert kept.pop("settings")["orders"] == 4
    assert printed == kept
    assert main([*words, "--seeds", "2", "--json", "--out", str(tmp_path / "games.json")]) == 0
    assert json.loads(capsys.readouterr().out) == printed  # its seconds too: nothing is played again
    assert main([*words[:-1], "6", "--out", str(tmp_path / "games.json")]) == 2
    assert "games.json holds games of other settings (--start): give --out another" in capsys.readouterr().err
    assert printed["summary"][0]["seeds"] == 2
    assert main([*words, "--proxy", "ridge", "--method", "gredy"]) == 2
    assert "did you mean 'greedy'" in capsys.readouterr().err
    assert main(["design", "simulate", "grid", "--method", "random"]) == 2
    assert "design is for sequences" in capsys.readouterr().err
    assert main(["design"]) == 2
    assert "propose, simulate" in capsys.readouterr().err


PLATES = {
    "None": "proposes a NoneType, must be a tensor of whole numbers [1 to 4, 8]",
    "[[0] * 8]": "proposes a list",
    "torch.zeros(4, 8)": "proposes a torch.float32 [4, 8]",
    "torch.zeros(8).long()": "proposes a torch.int64 [8]",
    "torch.zeros(0, 8).long()": "shape [0, 8]",
    "torch.zeros(5, 8).long()": "shape [5, 8]",
    "torch.zeros(4, 7).long()": "shape [4, 7]",
    "torch.tensor([[0] * 8, [0] * 7 + [4]])": "order 2 is [0, 0, 0, 0, 0, 0, 0, 4], must be 8 letters at",
    "torch.full((4, 8), -1)": "order 1 is [-1,",
}


def test_plates_that_are_none_are_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plates = list(PLATES)
    lines = ["import torch", "def nothing(space, proxy):", "    return None"]
    for number, plate in enumerate((*plates, "torch.zeros(4, 8).long()")):
        lines += [f"class P{number}:", "    def __init__(self, space, proxy): pass"]
        lines += ["    def propose(self, history, count, seed):", f"        return {plate}"]
    Path("own_plates.py").write_text("\n".join(lines))
    words = ["design", "simulate", "tfbind8", "--rounds", "1", "--orders", "4", "--start", "5", "--seeds", "1"]
    words = [*words, "--method"]
    assert main([*words, "own_plates:nothing"]) == 2
    assert "makes a NoneType, not a player with propose(" in capsys.readouterr().err
    for number, said in enumerate(PLATES.values()):
        assert main([*words, f"own_plates:P{number}"]) == 2
        told = capsys.readouterr().err
        assert f"method 'own_plates:P{number}': " in told
        assert said in told
        assert told.count("\n") == 1
    assert main([*words, f"own_plates:P{len(plates)}"]) == 0


def test_games_of_a_table_are_told_in_its_units(tmp_path: Path) -> None:
    """Low scores are good, from 3,000 to 9,000: the best is the lowest, and no plate has a better one than the best."""
    texts = ["".join(letters) for letters in product("ACG", repeat=5)]
    score = {text: 9000.0 - 1200 * found for text, found in zip(texts, truth_function(texts), strict=True)}
    file = tmp_path / "table.csv"
    file.write_text("sequence,score\n" + "".join(f"{text},{one}\n" for text, one in score.items()))
    flags = {"alphabet": "ACG", "minimise": True, "scale": "minmax", "unseen": "lowest"}
    config = TrainConfig().with_(noise=NoiseConfig(alpha=0.2), **{f"table__{name}": v for name, v in flags.items()})
    made = make_task("table", config.with_(table__file=file))
    truth, game = Truth(made), play(made, "greedy", rounds=2, orders=6, start=30, proxy="ridge")
    assert truth.best_batch is not None
    for one in game.rounds:
        assert min(score.values()) <= one.best <= one.top <= max(score.values())
        assert one.regret is not None
        assert one.expected - one.regret == pytest.approx(-float(truth.best_batch[:6].mean()), rel=1e-6)
        assert one.regret >= -1e-3
    assert game.rounds[1].best <= game.rounds[0].best
