"""Libraries on GB1 (four sites, all measured): what is chosen with the whole table known, and after 96 measurements.

    python -m benchmarks.libraries known    every search with the whole table known, over seeds; percentages
    python -m benchmarks.libraries pools    pools of 1 to 8 libraries near p*, and the stochastic flow network
    python -m benchmarks.libraries rounds   96 clones of NNK measured, a library chosen from a proxy, 96 of its clones

Each cell is written as soon as it is there; the same command again goes on where it was cut off.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import cells as pool
from benchmarks.common import RESULTS, add_cluster, command, positive
from sgfn.design.libraries.codons import RESIDUES, STOP, Supply, standard_menu
from sgfn.design.libraries.designing import design_library
from sgfn.design.libraries.flow import FlowConfig, draw_libraries, stepwise_law
from sgfn.design.libraries.library import Library, make_library, parse_library
from sgfn.design.libraries.mixture import choose_pool, divergence, log_target, variation
from sgfn.design.libraries.percent import improve_in_percent
from sgfn.design.libraries.scores import TableScore
from sgfn.design.libraries.search import FoundLibrary, Goal, choose_library, feasible, search
from sgfn.design.libraries.values import value_library
from sgfn.landscapes.complete_tables import gb1_fitness

CLONES = 96
SEARCHES = ("coordinate", "pairs", "flow", "flow+pairs", "percent")
POOLS = (1, 2, 4, 8)
ROUNDS: dict[str, dict[str, Any]] = {
    "NNK": {},
    "NDT": {},
    "22c": {},
    "best of 96": {"goal": "best"},
    "mean, size 96": {"goal": "mean", "size": 96.0},
    "mean, size 400": {"goal": "mean", "size": 400.0},
}
"""Second libraries by name, with the settings of `design_library`."""
TABLE = {"proxy": "ridge"}
"""Proxy after the first 96 clones; looked at on seed 100 beforehand."""
STARTS, BETA = 16, 3.0
FIGURES: dict[str, tuple[str, tuple[str, ...]]] = {
    "known": ("how", ("expected", "cpu_seconds")),
    "pools": ("libraries", ("kl", "tv", "cpu_seconds")),
    "rounds": ("library", ("best", "expected", "size", "clones_best", "all_best", "cpu_seconds")),
}
"""Figures of each study of which means are told, and by what."""


def gb1_score() -> TableScore:
    """Fitness over its maximum; what was not measured, and whatever has a stop, scores 0."""
    fitness = np.nan_to_num(gb1_fitness())
    return TableScore((fitness / fitness.max()).reshape([20] * 4), stop=0.0)


def told(library: Library, score: TableScore) -> dict[str, Any]:
    """Exact figures of a library."""
    value = value_library(library, score, CLONES)
    names = ("expected", "no_stop", "size", "best", "variants", "screened")
    return {"codons": library.text} | {name: round(float(getattr(value, name)), 6) for name in names}


# The whole table known


def known(how: str, seed: int, starts: int) -> dict[str, Any]:
    """One search for the highest E[f] at an effective size of 96 or more."""
    score, goal, menu = gb1_score(), Goal(kind="mean", size=96.0), standard_menu()
    began = time.process_time()
    found = _known(how, score, goal, seed, starts)
    seconds = time.process_time() - began
    assert feasible(found.library.laws, goal)
    row = {"how": how, "seed": seed, "starts": found.starts, "cpu_seconds": round(seconds, 2)}
    return row | {"codons_to_choose_from": len(menu.codons)} | told(found.library, score)


def _known(how: str, score: TableScore, goal: Goal, seed: int, starts: int) -> FoundLibrary:
    menu = standard_menu()
    if how == "coordinate":  # a start takes a hundredth of the time that two sites at once take
        return search(score, menu, goal, "coordinate", 100 * starts, seed)
    if how == "pairs":
        return search(score, menu, goal, "pairs", starts, seed)
    if how == "percent":
        first = search(score, menu, goal, "pairs", starts, seed)
        begun = [first.library, *(library for _, library in first.others[:3])]
        return improve_in_percent(score, Supply(), goal, begun, 10)
    drawn = [make_library(codons) for codons in draw_libraries(score, Supply(), goal, FlowConfig(steps=400), seed)]
    kept = [library for library in drawn if feasible(library.laws, goal)]
    if how == "flow":
        best = max(kept, key=lambda library: float(score.expected(library.laws[None])[0]))
        value = float(score.expected(best.laws[None])[0])
        return FoundLibrary(library=best, value=value, how=how, starts=len(drawn), hits=1)
    places = [[int(np.abs(menu.laws - law).sum(1).argmin()) for law in library.laws] for library in kept[:8]]
    return choose_library(score, menu, goal, starts=len(places), seed=seed, first=[np.array(one) for one in places])


# Pools


def pooled(count: int, seed: int, beta: float) -> dict[str, Any]:
    """The nearest pool of so many libraries, from four starts; of 0, the network that sees each residue."""
    score, menu = gb1_score(), standard_menu()
    target, began = log_target(score, beta), time.process_time()
    row: dict[str, Any] = {"libraries": count, "seed": seed, "beta": beta}
    if count == 0:
        config = FlowConfig(steps=600, hidden=128, batch=64)
        network = stepwise_law(menu, target, config, seed)
        row |= {"steps": config.steps, "kl": divergence(network.law, target), "tv": variation(network.law, target)}
        row["expected"] = float((network.law * score.table).sum())
        return row | {"cpu_seconds": round(time.process_time() - began, 2)}
    found = choose_pool(score, menu, count, beta, starts=4, seed=seed)
    row |= {"kl": found.kl, "tv": found.tv, "kl_of_starts": list(found.all_kl)}
    row |= {"codons": [library.text for library in found.libraries], "shares": [round(w, 4) for w in found.weights]}
    return row | {"cpu_seconds": round(time.process_time() - began, 2)}


# After 96 measurements


def first_clones(seed: int, score: TableScore, generator: np.random.Generator) -> pd.DataFrame:
    """Measured clones of NNK that have no stop: residues and scores."""
    rows = parse_library("NNK", 4).draw(CLONES, generator)
    whole = rows[~(rows == STOP).any(1)]
    texts = ["".join(RESIDUES[k] for k in row) for row in whole]
    return pd.DataFrame({"sequence": texts, "score": score.table[tuple(whole.T)]})


def played(name: str, seed: int, table: dict[str, Any], starts: int) -> dict[str, Any]:
    """A second library after 96 clones of NNK, and what 96 of its clones bring; the true figures are exact."""
    score, generator = gb1_score(), np.random.default_rng([seed, 96])
    measured = first_clones(seed, score, generator)
    began, settings = time.process_time(), ROUNDS[name]
    facts: dict[str, Any] = {}
    if settings:
        found = design_library(
            measured, **settings, table=table, compare=(), starts=starts, seed=seed, clones=CLONES, stop_score=0.0
        )
        library = found.libraries[0]
        facts = {
            "promised": round(found.values[0].best, 4),
            "spearman": round(float((found.proxy or {})["spearman"]), 3),
        }
    else:
        library = parse_library(name, 4)
    seconds = time.process_time() - began
    clones = library.draw(CLONES, np.random.default_rng([seed, 97]))
    best = float(score.table[tuple(clones.T)].max())
    row = {"library": name, "seed": seed, "first_best": round(float(measured.score.max()), 4)} | facts
    row |= told(library, score) | {"clones_best": round(best, 4), "cpu_seconds": round(seconds, 1)}
    return row | {"all_best": max(row["clones_best"], row["first_best"])}


# Files


def summary(rows: list[dict[str, Any]], key: str, figures: tuple[str, ...]) -> list[dict[str, Any]]:
    """Means over seeds with 95 % intervals (normal), medians and ranges, for each value of a key."""
    made = []
    for value in dict.fromkeys(row[key] for row in rows):
        own = [row for row in rows if row[key] == value]
        line: dict[str, Any] = {key: value, "seeds": len(own)}
        for figure in figures:
            numbers = np.array([row[figure] for row in own if figure in row])
            if len(numbers):
                half = 1.96 * numbers.std(ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else float("nan")
                line[figure] = round(float(numbers.mean()), 4)
                line[f"{figure}_interval"] = [
                    round(float(numbers.mean() - half), 4),
                    round(float(numbers.mean() + half), 4),
                ]
                line[f"{figure}_median"] = round(float(np.median(numbers)), 4)
                line[f"{figure}_range"] = [round(float(numbers.min()), 4), round(float(numbers.max()), 4)]
        made.append(line)
    return made


def study_of(name: str, out: Path, cells: list[pool.Cell], **more: Any) -> pool.Study:
    """Cells of a study of that name, with means over seeds beside them."""
    key, figures = FIGURES[name]
    return pool.Study(
        out=out,
        command=command("libraries"),
        cells=cells,
        about=lambda rows: more | {"summary": summary(rows, key, figures)},
    )


def known_study(seeds: Iterable[int], out: Path, names: Iterable[str] = SEARCHES, starts: int = STARTS) -> pool.Study:
    """Searches with the whole table known."""
    cells = [
        pool.Cell(key={"how": name, "seed": seed}, function=known, arguments=(name, seed, starts))
        for seed in seeds
        for name in names
    ]
    score = gb1_score()
    bar = {name: told(parse_library(name, 4), score) for name in ("NNK", "NDT", "22c", "NTN,WDB,TGC,GSA")}
    return study_of("known", out, cells, compared=bar)


def pools_study(seeds: Iterable[int], out: Path, counts: Iterable[int] = (*POOLS, 0), beta: float = BETA) -> pool.Study:
    """Pools of libraries, and the network that sees each residue."""
    cells = [
        pool.Cell(key={"libraries": count, "seed": seed}, function=pooled, arguments=(count, seed, beta))
        for seed in seeds
        for count in counts
    ]
    return study_of("pools", out, cells)


def rounds_study(
    seeds: Iterable[int],
    out: Path,
    names: Iterable[str] = tuple(ROUNDS),
    proxy: str = TABLE["proxy"],
    starts: int = STARTS,
) -> pool.Study:
    """Second libraries after 96 clones."""
    cells = [
        pool.Cell(
            key={"library": name, "seed": seed}, function=played, arguments=(name, seed, {"proxy": proxy}, starts)
        )
        for seed in seeds
        for name in names
    ]
    return study_of("rounds", out, cells, proxy=proxy)


def main() -> None:
    """Play one study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("known", "pools", "rounds"))
    parser.add_argument("--seeds", type=positive, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed; 100 was looked at beforehand")
    parser.add_argument("--only", nargs="+", default=None, help="searches or libraries of the study")
    parser.add_argument("--proxy", default=TABLE["proxy"])
    parser.add_argument("--starts", type=positive, default=STARTS)
    parser.add_argument("--beta", type=float, default=BETA)
    parser.add_argument("--jobs", type=positive, default=1, help="cells at once, a process each")
    parser.add_argument("--out", type=Path, default=None)
    add_cluster(parser)
    given = parser.parse_args()
    out = given.out or RESULTS / f"libraries_{given.study}.json"
    seeds = range(given.first, given.first + given.seeds)
    if given.study == "known":
        study = known_study(seeds, out, given.only or SEARCHES, given.starts)
    elif given.study == "pools":
        study = pools_study(seeds, out, [int(word) for word in given.only] if given.only else (*POOLS, 0), given.beta)
    else:
        study = rounds_study(seeds, out, given.only or tuple(ROUNDS), given.proxy, given.starts)
    return pool.perform([study], given.jobs, cluster=given.cluster)


if __name__ == "__main__":
    main()
