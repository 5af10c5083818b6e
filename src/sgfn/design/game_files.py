"""The file of a study of games: written after each, so that the same command goes on with those that are missing."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgfn.config import TrainConfig, differing, from_dict, to_dict
from sgfn.config.files import check_target, check_writable, read_json, write_json
from sgfn.design.simulate import Game, RoundResult, summary_of
from sgfn.runs.copies import checksums, files_there, with_files

Key = tuple[str, int]
"""Method and seed, by which a game is known."""


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """What all games of a file have in common."""

    task: str
    config: TrainConfig
    rounds: int
    orders: int
    start: int
    proxy: str

    def to_json(self) -> dict[str, Any]:
        """Plain data, with the checksums of files that the configuration names."""
        plain = {name: getattr(self, name) for name in ("task", "rounds", "orders", "start", "proxy")}
        return plain | {"config": to_dict(self.config), "files": checksums(files_there(self.config))}

    def differences(self, kept: dict[str, Any]) -> list[str]:
        """Flags in which a file's games differ from these; of files the content counts, not the place."""
        mine = self.to_json()
        found = [f"--{name}" for name in ("task", "rounds", "orders", "start", "proxy") if kept[name] != mine[name]]
        there = with_files(from_dict(TrainConfig, kept["config"]), files_there(self.config))
        changed = [f"--{name}" for name, digest in mine["files"].items() if kept["files"].get(name) != digest]
        return ["TASK" if flag == "--task" else flag for flag in found + differing(self.config, there) + changed]


class GameFile:
    """Games of one setting in a JSON file that is whole after each."""

    def __init__(self, path: Path, settings: GameSettings, *, overwrite: bool = False) -> None:
        """Read what is there; raises where it is of other settings or no such file, unless it shall be replaced."""
        check_target(path, overwrite=True)
        check_writable(path)
        self.path, self.settings, self.plain = path, settings, settings.to_json()
        there = path.exists() or path.is_symlink()
        self.games: dict[Key, Game] = {} if overwrite or not there else self._kept()

    def _kept(self) -> dict[Key, Game]:
        """Games that are there; of a file that is none of ours nothing is read."""
        try:
            plain = read_json(self.path)
            differences, games = self.settings.differences(plain["settings"]), [game_of(one) for one in plain["games"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            check_target(self.path, overwrite=False)
            raise
        if differences:
            flags = ", ".join(dict.fromkeys(differences))
            raise ValueError(
                f"{self.path} holds games of other settings ({flags}): give --out another name, or add --overwrite"
            )
        return {(game.method, game.seed): game for game in games}

    def add(self, game: Game) -> None:
        """One more game, written with all others."""
        self.games[game.method, game.seed] = game
        write_json(self.path, {"settings": self.plain} | results_of(self.games.values()))


def results_of(games: Iterable[Game]) -> dict[str, Any]:
    """Plain data of games, with their summary."""
    listed = list(games)
    return {"summary": summary_of(listed), "games": [game.to_json() for game in listed]}


def game_of(plain: dict[str, Any]) -> Game:
    """A game from what its `to_json` gave."""
    rounds = [from_dict(RoundResult, one, "round") for one in plain["rounds"]]
    return Game(**{name: value for name, value in plain.items() if name != "rounds"}, rounds=rounds)
