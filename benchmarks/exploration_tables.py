"""Tables and sentences of docs/exploration.md, from the committed results: medians over seeds, with their range."""

import math
from typing import Any

from benchmarks.common import RESULTS, read_results, spread

Rows = list[dict[str, Any]]
CONSTANT = ("constant .01", "constant .1", "constant, start")
ENTROPY = ("entropy", "entropy-state")
PEERS = ("ppo", "sac", "mars")
BESIDE, FEWEST = (*CONSTANT, *PEERS), 3
"""Those that ways of ours are held against; seeds that one of ours must have to be called the best."""
FOUND, NEAR = "found", "near"
"""Goals: all that is hidden was hit (of bits: one of the modes; of Ehrlich functions and RNA: a score); the law is near
the target."""
HARD = ("exploration_grids.json", "exploration_rna.json")
"""Files of ways on hard tasks."""


def rows_of(name: str) -> Rows:
    """Rows of a committed result; none where it is not there yet."""
    return read_results(name)["rows"] if (RESULTS / name).is_file() else []


def ranged(values: list[float], form: str = "{:.2f}") -> str:
    """Median and range; a dash without values."""
    if not values:
        return "-"
    middle, low, high = (form.format(value) for value in spread(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def counts(rows: Rows, key: str) -> str:
    """Median and range of a count."""
    return ranged([row[key] for row in rows], "{:,.0f}")


def middle(values: list[float]) -> float:
    """The lower median, which is infinite where most values are."""
    return sorted(values)[(len(values) - 1) // 2] if values else math.inf


def calls_of(rows: Rows, key: str) -> list[float]:
    """Calls that a goal took; infinite where it was not reached."""
    return [row[key] if row.get(key) is not None else math.inf for row in rows]


def calls_to(rows: Rows, key: str) -> str:
    """Median of the calls that a goal took; runs that did not reach it count as later than all that did."""
    found = calls_of(rows, key)
    reached = sum(value < math.inf for value in found)
    said = "never" if middle(found) == math.inf else f"{middle(found):,.0f}"
    return said if reached == len(found) else f"{said} ({reached} of {len(found)})"


def table(head: list[str], lines: list[list[str]]) -> str:
    """Rows of text as a table in Markdown."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def groups(rows: Rows, keys: tuple[str, ...]) -> dict[tuple[Any, ...], Rows]:
    """Rows by the values of some keys, in the order in which they come."""
    found: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def older_note(rows: Rows) -> str:
    """A sentence on rows of an earlier state, where there are some."""
    reasons = sorted({row["older"] for row in rows if "older" in row})
    count = sum("older" in row for row in rows)
    return f"\n\n{count} of {len(rows)} runs are older: {'; '.join(reasons)}." if count else ""


# Ehrlich functions


def functions_table(ours: str, theirs: str) -> str:
    """Ours beside the genetic algorithm: best score, calls until .75 and 1, distinct objects of at least .75."""
    rivals, lines = groups(rows_of(theirs), ("cell", "alpha")), []
    for (cell, alpha), rows in groups(rows_of(ours), ("cell", "alpha")).items():
        other = rivals.get((cell, alpha), [])
        found = [ranged([row["best"] for row in rows]), *(calls_to(rows, f"calls_to_{level}") for level in (0.75, 1))]
        rival = [ranged([row["best"] for row in other]), counts(other, "kept"), counts(other, "distinct")]
        sampled = f"{middle([row['sample_mean'] for row in rows]):.3f}"
        lines.append([cell, f"{alpha:g}", str(len(rows)), *found, counts(rows, "distinct"), sampled, *rival])
    head = ["function", "noise", "seeds", "best", "calls to .75", "calls to 1", "distinct", "mean of samples"]
    return table([*head, "GA best", "GA keeps", "GA saw"], lines) + older_note(rows_of(ours))


def ehrlich_table() -> str:
    """The seeds that settings were chosen on."""
    return functions_table("exploration_ehrlich.json", "exploration_rival.json")


def validation_table() -> str:
    """Seeds that no setting was chosen on."""
    if not rows_of("exploration_validation.json"):
        return "Not run yet."
    return functions_table("exploration_validation.json", "exploration_rival_validation.json")


# ways on hard tasks


def hard_rows() -> Rows:
    """Rows of the ways on hard tasks."""
    return [row for name in HARD for row in rows_of(name)]


def goal_key(cell: str, goal: str) -> str:
    """The figure of a run that says when it reached a goal."""
    return "calls_to_goal" if goal == NEAR else "calls_to_all_modes" if " x " in cell else "calls_to_first_mode"


def values_of(cell: str, alpha: float, way: str, goal: str) -> list[float]:
    """Calls of each seed of a way to a goal."""
    rows = groups(hard_rows(), ("cell", "alpha", "way")).get((cell, alpha, way), [])
    return calls_of(rows, goal_key(cell, goal))


def reached(cell: str, alpha: float, way: str, goal: str) -> float:
    """Median calls of a way to a goal."""
    return middle(values_of(cell, alpha, way, goal))


def axes() -> tuple[list[str], list[float], list[str]]:
    """Tasks, noise levels and ways of the files."""
    rows = hard_rows()
    return tuple(list(dict.fromkeys(row[key] for row in rows)) for key in ("cell", "alpha", "way"))  # pyright: ignore


def budget(ways: list[str], cell: str, alpha: float, goal: str) -> float:
    """The fewest calls that a run of some ways made without reaching a goal; infinite where all reached it."""
    key = goal_key(cell, goal)
    rows = [row for row in hard_rows() if (row["cell"], row["alpha"]) == (cell, alpha)]
    return min(
        (row["calls"] for row in rows if row["way"] in ways and "calls" in row and row[key] is None), default=math.inf
    )


def with_range(cell: str, alpha: float, ways: list[str], goal: str) -> str:
    """Median and range of the calls of the best of some ways; where most seeds never reached a goal, how many did."""
    way, calls = first(ways, cell, alpha, goal)
    if calls == math.inf:
        return said(ways, cell, alpha, goal)
    values = values_of(cell, alpha, way, goal)
    low, high = ("never" if value == math.inf else f"{value:,.0f}" for value in (min(values), max(values)))
    return f"{calls:,.0f}" if low == high else f"{calls:,.0f} ({low} to {high})"


def first(ways: list[str], cell: str, alpha: float, goal: str) -> tuple[str, float]:
    """The way that needs the fewest calls, and how many; ways of ours with few seeds do not count, as luck would."""
    few = [way for way in ways if way not in BESIDE and len(values_of(cell, alpha, way, goal)) < FEWEST]
    counted = [way for way in ways if way not in few] or ways
    return min(((way, reached(cell, alpha, way, goal)) for way in counted), key=lambda pair: pair[1])


def said(ways: list[str], cell: str, alpha: float, goal: str) -> str:
    """Calls of the best of some ways as text; where none does, that it takes more than was tried."""
    calls = first(ways, cell, alpha, goal)[1]
    if calls < math.inf:
        return f"{calls:,.0f}"
    tried = budget(ways, cell, alpha, goal)
    return f"over {tried:,.0f}" if tried < math.inf else "not run"


def factor(cell: str, alpha: float, goal: str) -> float:
    """How many times as many calls the better constant epsilon needs as the best way of ours: at least so many."""
    ours = [way for way in axes()[2] if way not in BESIDE]
    best, constant = first(ours, cell, alpha, goal)[1], first([*CONSTANT], cell, alpha, goal)[1]
    if constant == math.inf:
        constant = budget([*CONSTANT], cell, alpha, goal)
    return 0.0 if math.inf in (best, constant) else constant / best


def best_table() -> str:
    """For each task, noise and goal: the better constant epsilon, the best way, and how many times fewer calls."""
    cells, alphas, ways = axes()
    ours, lines = [way for way in ways if way not in BESIDE], []
    for cell in cells:
        for alpha in (one for one in alphas if was_run(cell, one)):
            for goal in goals_of(cell):
                way = first(ours, cell, alpha, goal)[0]
                times = factor(cell, alpha, goal)
                least = "at least " if reached_by_none([*CONSTANT], cell, alpha, goal) and times else ""
                constant, calls = (with_range(cell, alpha, some, goal) for some in ([*CONSTANT], ours))
                best = [way if times else "-", calls, f"{least}{times:.1f}" if times else "-"]
                lines.append([cell, f"{alpha:g}", goal, constant, *best, peer_said(cell, alpha, goal)])
    head = ["task", "noise", "goal", "constant epsilon", "best way", "its calls", "times fewer", "best peer"]
    return table(head, lines)


def was_run(cell: str, alpha: float, way: str | None = None) -> bool:
    """Whether a task was run at a noise level, by a way or by any."""
    here = [row for row in hard_rows() if (row["cell"], row["alpha"]) == (cell, alpha)]
    return any(way in (None, row["way"]) for row in here)


def reached_by_none(ways: list[str], cell: str, alpha: float, goal: str) -> bool:
    """Whether no way reaches a goal in most seeds."""
    return first(ways, cell, alpha, goal)[1] == math.inf


def peer_said(cell: str, alpha: float, goal: str) -> str:
    """The best of PPO, SAC and MARS; none where none of them reached the goal, and that none was run."""
    if not any(was_run(cell, alpha, peer) for peer in PEERS):
        return "not run"
    way, calls = first([*PEERS], cell, alpha, goal)
    return "none" if calls == math.inf else f"{way} {calls:,.0f}"


def ways_table() -> str:
    """Median calls until all that is hidden was hit, by way and task, at the lowest, middle and highest noise."""
    cells, alphas, ways = axes()
    lines = [[way, *(" / ".join(call_said(cell, one, way) for one in alphas) for cell in cells)] for way in ways]
    return table(["way", *cells], lines)


def call_said(cell: str, alpha: float, way: str) -> str:
    """Median calls of a way until all was found; a dash where most seeds did not, a dot where it was not run."""
    calls = reached(cell, alpha, way, FOUND)
    return f"{calls:,.0f}" if calls < math.inf else "-" if was_run(cell, alpha, way) else "."


def thirds_line() -> str:
    """On how many tasks the best way needs at most a third of the calls, for each noise level."""
    cells, alphas, _ = axes()
    if not cells:
        return "Not run yet."
    parts = []
    for alpha in alphas:
        known = [cell for cell in cells if was_run(cell, alpha)]
        won = [cell for cell in known if max(factor(cell, alpha, goal) for goal in goals_of(cell)) >= 3]
        parts.append(
            f"at noise {alpha:g} on {len(won)} of {len(known)} tasks" + (f" ({'; '.join(won)})" if won else "")
        )
    claim = "The best way needs at most a third of the calls of the better constant epsilon for one goal or the other"
    return f"{claim} (medians; {seeds_said()}): {', '.join(parts)}." + older_note(hard_rows())


def seeds_said(ways: tuple[str, ...] = ()) -> str:
    """How many seeds the runs of a task, noise level and way have; of some ways, or of all."""
    found = groups(hard_rows(), ("cell", "alpha", "way"))
    sizes = [len(rows) for (_, _, way), rows in found.items() if not ways or way in ways]
    few, most = min(sizes), max(sizes)
    return f"{most} seed" + "s" * (most > 1) if few == most else f"{few} to {most} seeds"


def seeds_line() -> str:
    """How many seeds each way has, those with as many together."""
    together: dict[str, list[str]] = {}
    for way in axes()[2]:
        together.setdefault(seeds_said((way,)), []).append(way)
    if not together:
        return "Not run yet."
    if len(together) == 1:
        return f"Every way has {next(iter(together))} on every task and noise level where it is run."
    parts = "; ".join(f"{', '.join(f'`{way}`' for way in ways)}: {seeds}" for seeds, ways in together.items())
    return (
        f"Not all ways have all seeds on all tasks. {parts}. A way of ours with fewer than {FEWEST} is not called best."
    )


def goals_of(cell: str) -> tuple[str, ...]:
    """The goals of a task: the law only where it can be computed."""
    return (FOUND, NEAR) if " x " in cell else (FOUND,)


def entropy_lines() -> str:
    """A sentence for each task: calls of the two ways by r_gamma beside constant epsilon."""
    cells, lines = axes()[0], []
    for cell in cells:
        alphas = [alpha for alpha in axes()[1] if was_run(cell, alpha)]
        noises = "/".join(f"{alpha:g}" for alpha in alphas)
        for goal in goals_of(cell):
            shown = {}
            for name, ways in (("constant", [*CONSTANT]), *((way, [way]) for way in ENTROPY)):
                shown[name] = " / ".join(said(ways, cell, alpha, goal) for alpha in alphas)
            won = sum(
                first([*ENTROPY], cell, alpha, goal)[1] < 0.8 * first([*CONSTANT], cell, alpha, goal)[1]
                for alpha in alphas
            )
            what = "hit all that is hidden" if goal == FOUND else "bring the law near"
            lines.append(
                f"- {cell}: to {what} at noise {noises}, constant epsilon needs {shown['constant']} calls, r_gamma as "
                f"temperature {shown['entropy']}, by state {shown['entropy-state']}; "
                f"fewer by a fifth or more at {won} of {len(alphas)} noise levels."
            )
    note = f"\n\nMedians; r_gamma as temperature has {seeds_said(ENTROPY[:1])}, by state {seeds_said(ENTROPY[1:])}."
    return "\n".join(lines) + (note if lines else "")


def heat_lines() -> str:
    """What the temperature r_gamma changes in rollouts: a sentence for each grid."""
    lines = []
    for (cell,), rows in groups(rows_of("exploration_heat.json"), ("cell",)).items():
        value = {key: middle([row[key] for row in rows]) for key in rows[0] if key not in ("cell", "alpha", "seed")}
        ratio = ranged([row["r_gamma"] for row in rows])
        lengths = "{length_plain:.1f}, {length_by_ratio:.1f} and {length_hot:.1f}".format(**value)
        ends = "{distinct_plain}, {distinct_by_ratio} and {distinct_hot}".format(**value)
        lines.append(
            f"- {cell}: after 140 steps r_gamma is {ratio}; at temperature 1, r_gamma and 2 a rollout has {lengths} "
            f"steps, and 1,000 of them end in {ends} different cells (medians of {len(rows)} seeds)."
        )
    return "\n".join(lines)


def tfbind8_table() -> str:
    """Total variation on TFBind8 by way, after equal trajectories."""
    rows = rows_of("exploration_tfbind8.json")
    if not rows:
        return "Not run yet."
    alphas, found = list(dict.fromkeys(row["alpha"] for row in rows)), groups(rows, ("way", "alpha"))
    lines = [
        [way, *(ranged([row["tv"] for row in found.get((way, alpha), [])], "{:.3f}") for alpha in alphas)]
        for way in dict.fromkeys(row["way"] for row in rows)
    ]
    return table(["way", *(f"noise {alpha:g}" for alpha in alphas)], lines) + lost_line(found, alphas)


def lost_line(found: dict[tuple[Any, ...], Rows], alphas: list[float]) -> str:
    """Which ways have a median total variation above all seeds of constant epsilon .01, for each noise level."""
    parts = []
    for alpha in alphas:
        worst = max((row["tv"] for row in found.get((CONSTANT[0], alpha), [])), default=math.inf)
        tvs = {way: [row["tv"] for row in rows] for (way, one), rows in found.items() if one == alpha}
        lost = [way for way, values in tvs.items() if spread(values)[0] > worst]
        parts.append(f"at noise {alpha:g} {', '.join(lost) if lost else 'none'}")
    return f"\n\nWays whose median lies above every seed of {CONSTANT[0]}: {'; '.join(parts)}."


TABLES = {
    "explore-ehrlich": ehrlich_table,
    "explore-validation": validation_table,
    "explore-best": best_table,
    "explore-thirds": thirds_line,
    "explore-seeds": seeds_line,
    "explore-ways": ways_table,
    "explore-entropy": entropy_lines,
    "explore-heat": heat_lines,
    "explore-tfbind8": tfbind8_table,
}
