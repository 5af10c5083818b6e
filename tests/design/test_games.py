"""Games of a study in this process and on a real Ray: the same, but for the time that they took."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sgfn.config import TrainConfig
from sgfn.config.files import read_json
from sgfn.design import games as module
from sgfn.design.game_files import game_of
from sgfn.design.games import Games, play_all
from sgfn.design.simulate import Game
from sgfn.runs.train import absolute

SIZES = {"rounds": 2, "orders": 4, "start": 6}


def untimed(game: Game) -> dict[str, Any]:
    plain = game.to_json()
    return plain | {"rounds": [{**one, "seconds": 0.0} for one in plain["rounds"]]}


def table_config(folder: Path) -> TrainConfig:
    rows = [f"{''.join(word)},{i}" for i, word in enumerate(product("AC", repeat=3))]
    (folder / "t.csv").write_text("sequence,score\n" + "\n".join(rows) + "\n")
    return absolute(TrainConfig().with_(noise__alpha=0.1, table__file=folder / "t.csv"))


def test_games_come_in_order_and_are_told(tmp_path: Path) -> None:
    told: list[Game] = []
    found = play_all("table", table_config(tmp_path), ["random", "evolution"], range(2), **SIZES, told=told.append)
    asked = [("random", 0), ("random", 1), ("evolution", 0), ("evolution", 1)]
    assert [(game.method, game.seed) for game in found.games] == asked
    assert told == found.games
    assert game_of(found.games[0].to_json()) == found.games[0]
    with pytest.raises(ValueError, match="nonsense"):
        play_all("table", table_config(tmp_path), ["nonsense"], range(1), **SIZES)
    with pytest.raises(ValueError, match="are read with --cluster"):
        play_all("table", table_config(tmp_path), ["random"], range(1), cluster_cpus=2.0)


def test_what_failed_is_told() -> None:
    assert Games(games=[], failed={"mine, seed 0": "why"}).complaint == "1 of 1 games failed: mine, seed 0 (why)"


def test_a_study_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """What a killed one leaves is a whole file of the games that were over."""
    config, out, told = table_config(tmp_path), tmp_path / "games.json", list[Game]()
    methods, seeds = ["random", "evolution"], [0, 1]

    def stop(game: Game) -> None:
        told.append(game)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"after 3 of 4 games; the same command goes on in .*games.json"):
        play_all("table", config, methods, seeds, **SIZES, told=stop, out=out)
    assert read_json(out)["games"] == [game.to_json() for game in told]
    (tmp_path / "t.csv").rename(tmp_path / "u.csv")  # the content counts, not its place
    moved = config.with_(table__file=tmp_path / "u.csv")
    whole = play_all("table", moved, methods, seeds, **SIZES, told=told.append, out=out)
    assert [(game.method, game.seed) for game in told[3:]] == [("evolution", 1)]
    alone = play_all("table", moved, methods, seeds, **SIZES)
    assert [untimed(game) for game in whole.games] == [untimed(game) for game in alone.games]
    more = play_all("table", moved, ["random"], [1, 2], **SIZES, told=told.append, out=out)
    assert [(game.seed, game in whole.games) for game in more.games] == [(1, True), (2, False)]
    assert len(read_json(out)["games"]) == 5
    assert {row["method"]: row["seeds"] for row in read_json(out)["summary"]} == {"random": 3, "evolution": 2}


def test_a_file_of_other_games_is_refused(tmp_path: Path) -> None:
    config, out = table_config(tmp_path), tmp_path / "games.json"
    how: Any = {**SIZES, "out": out}
    play_all("table", config, ["random"], [0], **how)
    for changed, flags in (({"orders": 5}, "--orders"), ({"proxy": "ridge"}, "--proxy")):
        with pytest.raises(ValueError, match=rf"holds games of other settings \({flags}\): give --out another name"):
            play_all("table", config, ["random"], [1], **{**how, **changed})
    with pytest.raises(ValueError, match=r"\(--noise.alpha\)"):
        play_all("table", config.with_(noise__alpha=0.2), ["random"], [1], **how)
    with (tmp_path / "t.csv").open("a") as file:
        file.write("AGA,3\n")
    with pytest.raises(ValueError, match=r"\(--table.file\)"):
        play_all("table", config, ["random"], [1], **how)
    play_all("table", config, ["random"], [1], **how, overwrite=True)
    assert [game["seed"] for game in read_json(out)["games"]] == [1]
    for text in ("mine", "[]", '{"games": []}', '{"settings": {}, "games": 3}'):
        out.write_text(text)
        with pytest.raises(ValueError, match=r"games.json exists: add --overwrite"):
            play_all("table", config, ["random"], [0], **how)
        assert out.read_text() == text


@pytest.mark.slow
def test_a_study_goes_on_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    config, out, told = table_config(tmp_path), tmp_path / "games.json", list[Game]()
    here = play_all("table", config, ["random"], [0], **SIZES, out=out).games
    options: Any = {**SIZES, "told": told.append, "out": out, "cluster": "auto"}
    there = play_all("table", config, ["random"], [0, 1], **options).games
    assert [game.seed for game in told] == [1]
    assert there[0] == here[0]
    assert len(read_json(out)["games"]) == 2
    assert play_all("table", config, ["random"], [0, 1], **options).games == there  # no job is left to give out


@pytest.mark.slow
def test_games_of_a_cluster_are_those_of_this_process(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a file that travels, and a player in a module that does; one game fails, the other does not."""
    config = table_config(tmp_path)
    (tmp_path / "own_player.py").write_text(
        "class Player:\n"
        "    def __init__(self, space, proxy):\n"
        "        self.space = space\n"
        "    def propose(self, history, count, seed):\n"
        "        if seed >= 1000:\n"
        "            raise ValueError('no more')\n"
        "        return history.tokens[:count]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    methods = ["random", "own_player:Player"]
    here = [play_all("table", config, [name], [0], **SIZES).games[0] for name in methods]
    (tmp_path / "t.csv").rename(tmp_path / "moved.csv")
    shared = module._travelling
    monkeypatch.setattr(module, "make_task", lambda *_: None)  # nodes alone make it, from the copy
    monkeypatch.setattr(module, "_travelling", lambda *given: moved(shared, tmp_path, *given))
    found = play_all("table", config, methods, [0, 1], **SIZES, cluster="auto", cluster_cpus=2.0)
    assert [untimed(game) for game in found.games if game.seed == 0] == [untimed(game) for game in here]
    assert list(found.failed) == ["own_player:Player, seed 1"]
    assert "no more" in found.complaint


def moved(shared: Any, folder: Path, *given: Any) -> dict[str, Any]:
    """What travels, with the file where its name says for as long as it is read."""
    (folder / "moved.csv").rename(folder / "t.csv")
    try:
        return shared(*given)
    finally:
        (folder / "t.csv").rename(folder / "moved.csv")
