"""Tables of the studies of design, from the committed results alone."""

import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.exploration_tables import Rows, groups, rows_of, table

OURS = {"p1": ("default", "ucb"), "p4": ("thompson", "benchmarks.design_recipes:thompson")}
"""Methods that others are compared with, the first of them that was played: the default."""
STILL = "benchmarks.design_recipes:ucb_still"
"""The default of searches before their reach grew."""
AWARE = ("greedy", "greedy-unaware")
"""Methods that know the noise and do not."""
TIE = 1e-3
"""Differences below this are ties."""
NAMES = {
    "default": "ours, as by default",
    "cross-validated": "ucb, ours, proxy by cross-validation",
    "pooled-mixed": "mixed, ours, proxy by cross-validation",
    "mixed": "mixed, ours",
    "ucb": "ucb, ours (default)",
    "thompson": "thompson, ours",
    "greedy": "greedy, ours",
    "members": "members, ours",
    "genetic": "genetic algorithm",
    "adalead": "AdaLead (described anew)",
    "evolution": "genetic algorithm without a proxy",
    "cma-es": "CMA-ES (described anew)",
    "default-flow": "default with a flow network",
    "random": "random",
    "benchmarks.design_rivals:flexs_adalead": "AdaLead (flexs)",
    "benchmarks.design_rivals:cma_package": "CMA-ES (cma)",
    "benchmarks.design_rivals:botorch_thompson": "one-hot GP, Thompson (BoTorch)",
    "benchmarks.design_recipes:gp_thompson": "thompson on our Gaussian process",
    "benchmarks.design_recipes:thompson": "thompson, ours",
    "benchmarks.design_recipes:tempered": "tempered, new reach (default)",
    "benchmarks.design_recipes:quarter": "draws at a quarter, new reach",
    STILL: "ucb, reach of a first plate",
    "benchmarks.design_recipes:thompson_still": "thompson, reach of a first plate",
    "benchmarks.design_recipes:ucb1_still": "ucb, `--kappa 1`, reach of a first plate",
    "benchmarks.design_recipes:ucb": "ucb, reach that grows",
    "benchmarks.design_recipes:members": "members, reach that grows",
    "benchmarks.design_recipes:ucb1_free": "ucb, `--kappa 1 --reach 0`",
    "benchmarks.design_recipes:members_free": "members, `--reach 0`",
    "benchmarks.design_recipes:thompson_free": "thompson, `--reach 0`",
}
LANDSCAPES = {
    "gb1": "GB1, four sites",
    "mpsa": "splice sites (MPSA)",
    "mpsa-within": "splice sites, errors among the table's letters",
    "tfbind8": "TFBind8 SIX6",
    "peptides": "peptides",
}


def win_tie_loss(ours: list[float], theirs: list[float]) -> dict[str, Any]:
    """How often ours is better over seeds, and the mean difference with its interval of 95 %, by Student's law."""
    from scipy.stats import t

    gap = np.array(ours) - np.array(theirs)
    width = float(t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else math.inf
    found = {"win": int((gap > TIE).sum()), "tie": int((abs(gap) <= TIE).sum()), "loss": int((gap < -TIE).sum())}
    return found | {"difference": float(gap.mean()), "interval": [float(gap.mean()) - width, float(gap.mean()) + width]}


def paired(games: Rows, ours: str, other: str, figure: str) -> tuple[list[float], list[float]]:
    """Figures of two methods over the seeds that both have played: the last of `best`, the mean of others."""
    found = {
        name: {
            game["seed"]: game[figure][-1] if figure == "best" else sum(game[figure]) / len(game[figure])
            for game in games
            if game["method"] == name
        }
        for name in (ours, other)
    }
    seeds = sorted(found[ours].keys() & found[other].keys())
    return [found[ours][seed] for seed in seeds], [found[other][seed] for seed in seeds]


def compared(ours: list[float], theirs: list[float]) -> list[str]:
    """Win/tie/loss of ours, and the mean difference with its interval."""
    said = win_tie_loss(ours, theirs)
    low, high = said["interval"]
    interval = f" ({low:+.3f} to {high:+.3f})" if len(ours) > 1 else ""  # one seed tells of no spread
    return [f"{said['win']}/{said['tie']}/{said['loss']}", f"{said['difference']:+.3f}{interval}"]


def p1_table() -> str:
    """Best fitness found on GB1 by each method, CPU seconds, and the default (where it was played) beside it."""
    games, lines = rows_of("design_p1.json"), []
    played = {game["method"] for game in games}
    ours = next(name for name in OURS["p1"] if name in played)
    for method in (name for name in NAMES if name in played):
        own = [game["best"][-1] for game in games if game["method"] == method]
        error = np.std(own, ddof=1) / math.sqrt(len(own)) if len(own) > 1 else math.nan
        spent = [sum(game["seconds"]) for game in games if game["method"] == method]
        figures = [f"{np.mean(own):.3f}", f"{error:.3f}", f"{np.median(own):.3f}", f"{min(own):.3f}"]
        both = paired(games, ours, method, "best")
        beside = ["", ""] if method == ours or not both[0] else compared(*both)
        lines.append([NAMES[method], str(len(own)), *figures, f"{np.mean(spent):.1f}", *beside])
    head = ["method", "seeds", "mean", "s.e.", "median", "lowest", "CPU s"]
    return table([*head, f"{ours} wins/ties/losses", "difference (95 %)"], lines)


def p2_table() -> str:
    """Expected realised score of plates under noise, of methods aware and unaware of it, and their regret."""
    lines = []
    for cell, here in groups(rows_of("design_p2.json"), ("cell",)).items():
        aware, unaware = paired(here, *AWARE, "expected")
        if not aware:
            continue
        plates = [f"{np.mean(own):.3f} ({ends(here, name)})" for own, name in zip((aware, unaware), AWARE, strict=True)]
        regrets = [f"{np.mean(part):.3f}" for part in paired(here, *AWARE, "regret")]
        gap = float(np.mean(aware) - np.mean(unaware))
        lines.append([*cell, str(len(aware)), *plates, *regrets, compared(aware, unaware)[0], f"{gap:+.4f}"])
    head = ["setting", "seeds", "aware (first, last plate)", "unaware (first, last)", "regret, aware", "unaware"]
    return table([*head, "aware wins/ties/losses", "difference"], lines)


def ends(games: Rows, method: str) -> str:
    """Mean expected scores of the first and the last plate."""
    own = np.array([game["expected"] for game in games if game["method"] == method])
    return f"{own[:, 0].mean():.3f}, {own[:, -1].mean():.3f}"


def p2_summary_table() -> str:
    """Gain of being aware at each noise: games with the difference in percent, its interval, and regret left."""
    settings, lines = groups(rows_of("design_p2.json"), ("cell",)), []
    noises = dict.fromkeys(noise_of(*cell) for cell in settings)
    for noise in (*noises, "all"):
        here = [games for cell, games in settings.items() if noise in (noise_of(*cell), "all")]
        pairs = [paired(games, *AWARE, "expected") for games in here]
        aware, unaware = ([value for pair in pairs for value in pair[side]] for side in (0, 1))
        regret = [value for games in here for value in paired(games, *AWARE, "regret")[0]]
        said = win_tie_loss([100 * (a / u - 1) for a, u in zip(aware, unaware, strict=True)], [0.0] * len(aware))
        gain = f"{said['difference']:+.2f} % ({said['interval'][0]:+.2f} to {said['interval'][1]:+.2f})"
        left = np.mean([100 * r / (r + value) for r, value in zip(regret, aware, strict=True)])
        lines.append([noise, str(len(aware)), compared(aware, unaware)[0], gain, f"{left:.1f} %"])
    return table(["noise", "games", "aware wins/ties/losses", "gain (95 %)", "regret, aware"], lines)


def noise_of(cell: str) -> str:
    """Noise of a setting by its name."""
    return cell.split(", ")[1].removeprefix("noise ")


def p4_table(file: str = "design_p4.json") -> str:
    """Best, mean of the 100 best and their differences in spaces that nobody can list, by each method."""
    lines, rows = [], rows_of(file)
    played = {game["method"] for game in rows}
    ours = next(name for name in (*OURS["p4"], STILL) if name in played)
    for (cell,), here in groups(rows, ("cell",)).items():
        for method in (name for name in NAMES if any(game["method"] == name for game in here)):
            own = [game for game in here if game["method"] == method]
            last = {key: [game[key][-1] for game in own] for key in ("best", "top", "diversity")}
            spent = np.mean([sum(game["seconds"]) for game in own])
            both = paired(here, ours, method, "best")
            beside = ["", ""] if method == ours or not both[0] else compared(*both)
            figures = [_range(last["best"], 3), _range(last["top"], 3), _range(last["diversity"], 1), f"{spent:.0f}"]
            lines.append([cell.split(", noise")[0], NAMES[method], str(len(own)), *figures, *beside])
    head = ["task", "method", "seeds", "best (lowest to highest)", "top 100", "differences", "CPU s"]
    return table([*head, f"{short(ours)} wins/ties/losses", "difference of best (95 %)"], lines)


def short(method: str) -> str:
    """Name of a method in a table's head.

    >>> short("benchmarks.design_recipes:ucb_still")
    'ucb'
    """
    return method.rpartition(":")[2].removesuffix("_still")


def _range(values: list[float], digits: int) -> str:
    """Mean, lowest and highest."""
    mean, low, high = (f"{x:.{digits}f}" for x in (np.mean(values), min(values), max(values)))
    return f"{mean} ({low} to {high})"


def searches_table() -> str:
    """What each search finds on one fixed proxy, in percent of the best that any finds, and its differences."""
    rows, lines = rows_of("design_searches.json"), []
    names = list(dict.fromkeys(row["method"] for row in rows))
    for (cell,), here in groups(rows, ("cell",)).items():
        most = {seed: max(row["best"] for row in own) for (seed,), own in groups(here, ("seed",)).items()}
        told = []
        for name in names:
            own = [row for row in here if row["method"] == name]
            shares = [[100 * row[key] / most[row["seed"]] for row in own] for key in ("best", "top")]
            apart = np.mean([row["diversity"] for row in own])
            told.append(f"{np.mean(shares[0]):.1f}, {np.mean(shares[1]):.1f}, {apart:.1f}")
        lines.append([cell, str(min(sum(row["method"] == name for row in here) for name in names)), *told])
    return table(["task", "seeds", *names], lines)


def development_table() -> str:
    """Means of the best score and of the 100 best on the landscapes that settings are chosen on."""
    games = rows_of("design_development.json")
    cells, lines = list(dict.fromkeys(game["cell"] for game in games)), []
    for (method,), own in groups(games, ("method",)).items():
        played = [[game for game in own if game["cell"] == cell] for cell in cells]
        told = [", ".join(f"{np.mean([g[key][-1] for g in here]):.3f}" for key in ("best", "top")) for here in played]
        name = NAMES.get(method, method.rpartition(":")[2].replace("_", " "))
        lines.append([name, str(min(map(len, played))), *told])
    return table(["recipe", "seeds", *(cell.split(",")[0] for cell in cells)], lines)


def honest_table() -> str:
    """What is told of first plates beside the truth, and the share of wells in 80 % intervals, before and after."""
    lines = []
    rows = rows_of("design_honest.json")
    for name, here in [*groups(rows, ("landscape",)).items(), (("all plates",), rows)]:
        mean = {when: float(np.mean([row[when]["mean"] for row in here])) for when in ("before", "after")}
        inside = {when: np.mean([row[when]["inside"] for row in here]) for when in ("before", "after")}
        true = f"{np.mean([row['true'] for row in here]):.2f}"
        shares = [f"{inside[when]:.0%}" for when in ("before", "after")]
        lines.append([name[0], str(len(here)), true, f"{mean['before']:.2f}", f"{mean['after']:.2f}", *shares])
    heads = ["landscape", "plates", "true mean", "predicted", "told", "in 80 % intervals, predicted", "told"]
    return table(heads, lines)


def why_table() -> str:
    """What knowing the noise gains by each belief about the scores, and its parts by places that act together."""
    rows, lines = rows_of("design_why.json"), []
    names, noises = list(rows[0]["shares"]), list(rows[0]["plates"])
    for (task,), here in groups(rows, ("task",)).items():
        for name in names:
            parts = np.mean([row["shares"][name] for row in here], 0)
            told = [f"{100 * x:.0f}" for x in (parts[0], parts[1], parts[2], parts[3:].sum())]
            gains = [_why_gain(here, name, noise) for noise in noises]
            lines.append([task, name.replace("1 places", "1 place"), str(len(here)), *told, *gains])
    head = ["landscape", "plate chosen from", "seeds", "1 place", "2", "3", "4 and more"]
    return table([*head, *(f"gain, regret at {noise}" for noise in noises)], lines)


def _why_gain(rows: Rows, name: str, noise: str) -> str:
    """Gain of a plate that knows the noise over one that does not, and what it lacks of the best, in percent."""
    plates = [row["plates"][noise][name] for row in rows]
    gain = np.mean([100 * (one["aware"] / one["unaware"] - 1) for one in plates])
    lacks = np.mean([100 * (1 - one["aware"] / one["best"]) for one in plates])
    return f"{gain:+.1f}, {lacks:.1f}"


MUTANTS = {
    "default": "tempered, new reach (default)",
    "stacked": "`--proxy stacked`",
    "former": "thompson, former reach (former default)",
    "thompson": "thompson, new reach",
    "quarter": "draws at a quarter, new reach",
    "greedy-free": "`--acquisition greedy --reach 0`",
    "mlp": "networks, hill climb",
    "ridge": "ridge, hill climb",
}
"""Methods of the study of mutants; seeds below 100 are those of development, which play one plate."""
PROXIES_OF_MUTANTS = ("stacked", "default", "mlp", "ridge")
SEARCHES_OF_MUTANTS = tuple(name for name in MUTANTS if name != "stacked")


def mutants_table(seeds: tuple[int, ...], methods: tuple[str, ...]) -> str:
    """True means of plates and the best found on some seeds, and how often the first method is ahead of the others."""
    rows, lines = [row for row in rows_of("design_mutants.json") if row["seed"] in seeds], []
    names = [name for name in methods if any(row["method"] == name for row in rows)]
    for (setting,), here in groups(rows, ("setting",)).items():
        own = [[row for row in here if row["method"] == name] for name in names]
        rho = np.mean([row["spearman"] for row in own[0]])
        lines.append([setting, f"{len(own[0])}", f"{rho:.2f}", *map(_plates_told, own)])
    for figure, name in (("mean", "first plate"), ("best", "best")):
        label = f"**first column's wins/losses, {name}**"
        lines.append([label, "", "", *(_wins(rows, names[0], other, figure) for other in names)])
    return table(["library", "seeds", "rho", *(MUTANTS[name] for name in names)], lines)


def _plates_told(rows: Rows) -> str:
    """Mean over seeds of each plate's true mean, and of the best found; a dash where none was played."""
    if not rows:
        return "-"
    means = " / ".join(f"{value:.1f}" for value in np.mean([row["mean"] for row in rows], 0))
    return f"{means}, {np.mean([row['best'][-1] for row in rows]):.1f}"


def _wins(rows: Rows, one: str, other: str, key: str) -> str:
    """In how many games one is better and worse than the other: by the first plate's mean, or the best of all."""
    found = {(row["setting"], row["seed"], row["method"]): row[key][0 if key == "mean" else -1] for row in rows}
    games = [game for *game, method in found if method == other and (*game, one) in found]
    gaps = [found[*game, one] - found[*game, other] for game in games]
    return "" if other == one else f"{sum(gap > TIE for gap in gaps)}/{sum(gap < -TIE for gap in gaps)}"


def gain_table() -> str:
    """What ranking by the value under noise gains over ranking by the score if intact."""
    rows, lines = rows_of("design_gain.json"), []
    rates = list(dict.fromkeys(row["rate"] for row in rows))
    for task in dict.fromkeys(row["task"] for row in rows):
        here = [row for row in rows if row["task"] == task]
        cells = [f"{100 * row['gain']:.1f} %" for row in here]
        lines.append([f"{LANDSCAPES[task]}, K {here[0]['orders']}", *cells])
    return table(["landscape", *(f"error rate {rate:g}" for rate in rates)], lines)


def proxies_table() -> str:
    """Rank correlation, coverage and CPU seconds of each kind of proxy on what was held out."""
    rows, lines = rows_of("design_proxies.json"), []
    names = [name for name in LANDSCAPES if any(row["table"] == name for row in rows)]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        cells = []
        for name in names:
            here = [row for row in rows if (row["kind"], row["table"]) == (kind, name)]
            mean = {key: np.mean([row[key] for row in here]) for key in ("spearman", "cpu_seconds")}
            covered = "" if here[0]["coverage"] is None else f", {np.mean([row['coverage'] for row in here]):.0%}"
            cells.append(f"{mean['spearman']:.2f}{covered}, {mean['cpu_seconds']:.1f} s")
        lines.append(["nearest times decay" if kind == "nearest" else kind, *cells])
    return table(["proxy", *(LANDSCAPES[name] for name in names)], lines)


def sampler_table() -> str:
    """True scores of plates of peptides with and without the flow network."""
    rows, lines = rows_of("design_sampler.json"), []
    for reach in dict.fromkeys(row["reach"] for row in rows):
        for sampler in ("off", "on"):
            here = [row for row in rows if (row["reach"], row["sampler"]) == (reach, sampler)]
            if not here:
                continue
            mean = {
                key: float(np.mean([row[key] for row in here])) for key in here[0] if key not in ("reach", "sampler")
            }
            where = "no limit" if reach == 0 else "default reach"
            figures = [f"{mean[key]:.3f}" for key in ("mean", "best", "predicted")]
            lines.append(
                [where, sampler, str(len(here)), *figures, f"{mean['differences']:.1f}", f"{mean['cpu_seconds']:.0f}"]
            )
    return table(
        ["search", "flow network", "seeds", "true mean", "best", "predicted mean", "differences", "CPU s"], lines
    )


TABLES = {
    "design-p1": p1_table,
    "design-p2": p2_table,
    "design-p2-summary": p2_summary_table,
    "design-p4": p4_table,
    "design-searches": searches_table,
    "design-reach": partial(p4_table, "design_reach.json"),
    "design-wide": partial(p4_table, "design_wide.json"),
    "design-gain": gain_table,
    "design-why": why_table,
    "design-proxies": proxies_table,
    "design-sampler": sampler_table,
    "design-development": development_table,
    "design-honest": honest_table,
    "design-mutants": partial(mutants_table, (200,), SEARCHES_OF_MUTANTS),
    "design-mutants-stacked": partial(mutants_table, (201, 202), PROXIES_OF_MUTANTS),
    "design-mutants-stacked-first": partial(mutants_table, (0, 1), PROXIES_OF_MUTANTS),
    "design-mutants-chosen": partial(mutants_table, (0,), SEARCHES_OF_MUTANTS),
}
