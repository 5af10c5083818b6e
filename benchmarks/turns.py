"""Turns of contestants at one job: each a process of its own, all measured in the same rounds."""

import statistics
from typing import Any

from benchmarks.contest import Contestant
from benchmarks.speed_peers.environments import MODULES, OURS, enter

WAYS: dict[str, dict[str, Any]] = {name: {"accelerate": way} for name, way in OURS.items()}


class Turns:
    """Contestants at one job, each in a process of its own."""

    def __init__(
        self,
        job: dict[str, Any],
        names: list[str],
        shown: tuple[str, ...] = ("objective", "batch", "hidden"),
        modules: dict[str, str] = MODULES,
        own: dict[str, dict[str, Any]] = WAYS,
    ) -> None:
        """`shown` are the fields of the job in each row, `own` fields that differ between contestants."""
        self.job, self.names, self.modules, self.own = job, names, modules, own
        self.shown = {key: job[key] for key in shown}
        self.entered: list[Contestant] = []
        self.ready: dict[str, dict[str, Any]] = {}

    def prepare(self, name: str) -> None:
        """Let one contestant build and compile what the job needs."""
        contestant = enter(name, self.modules)
        self.entered.append(contestant)
        self.ready[name] = contestant.ask(do="prepare", job=self.job | self.own.get(name, {}))

    def take(self, rounds: int, seconds: float) -> list[dict[str, Any]]:
        """One row for each contestant: rates over the rounds, and how many times as fast ours is."""
        contestants = sorted(self.entered, key=lambda contestant: self.names.index(contestant.name))
        turns: dict[str, list[dict[str, Any]]] = {name: [] for name in self.names}
        for _ in range(rounds):
            for contestant in contestants:
                if "error" not in self.ready[contestant.name]:
                    turns[contestant.name].append(contestant.ask(do="run", seconds=seconds))
        for contestant in contestants:
            contestant.leave()
        return [row_of(c, self.shown, self.ready[c.name], turns) for c in contestants]


def row_of(who: Contestant, shown: dict[str, Any], ready: dict[str, Any], turns: dict[str, Any]) -> dict[str, Any]:
    """Row of a contestant: medians over the rounds."""
    failed = next((turn["error"] for turn in [ready, *turns[who.name]] if "error" in turn), None)
    if failed:
        return {"who": who.name, "about": who.about, **shown, "error": failed}
    mine, ours = ([t["updates"] / t["seconds"] for t in turns[name] if "error" not in t] for name in (who.name, "ours"))
    times = [o / m for o, m in zip(ours, mine, strict=False)]
    rate = statistics.median(mine)
    per_core = statistics.median(turn["updates"] / turn["core_seconds"] for turn in turns[who.name])
    return {
        "who": who.name,
        "about": who.about,
        **shown,
        "updates_per_second": round(rate, 2),
        "lowest": round(min(mine), 2),
        "highest": round(max(mine), 2),
        "trajectories_per_second": round(rate * shown["batch"]),
        "ours_is_times": round(statistics.median(times), 3) if times else None,
        "updates_per_core_second": round(per_core, 2),
        "memory_mib": turns[who.name][-1]["memory"],
        "device_memory_mib": turns[who.name][-1]["device_memory"],
        "start_seconds": round(ready["seconds"], 2),
    }
