"""Tables and the figure of docs/scale.md, from the committed measurements."""

from functools import cache
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.common import read_results, spread
from benchmarks.scale.model import CostModel, fitted

FILE = "scale.json"
PREDICTED = (64, 1024)
JOBS = {0.01: "reward of 10 ms", 0.1: "reward of 100 ms", 1.0: "reward of 1 s"}
JOBS |= {60.0: "cell of 1 min", 3600.0: "cell of 1 h"}
"""Jobs that the predictions are for, by their seconds: rewards are plain tasks, cells jobs of `compare`."""
LOOKS = {0.01: ("#c53030", "o"), 0.1: ("#0b6e99", "s"), 1.0: ("#2f855a", "^"), 60.0: ("#805ad5", "D")}
CORES = 2
"""Of the machine that was measured."""
CELLS_FROM = 10.0
"""Seconds from which on a job is a cell."""


def rows_of(part: str) -> list[dict[str, Any]]:
    """Measurements of a part."""
    return [row for row in read_results(FILE)["rows"] if row["part"] == part]


def rates(latency: float, workers: int) -> tuple[float, float, float]:
    """Median, lowest and highest rewards per second over turns."""
    found = [row for row in rows_of("rewards") if (row["latency"], row["workers"]) == (latency, workers)]
    return spread(row["per_second"] for row in found)


@cache
def reward_model() -> CostModel:
    """Costs of a reward as one task, from the medians of all latencies and numbers of workers."""
    cases = dict.fromkeys((row["workers"], row["latency"]) for row in rows_of("rewards"))
    points = [(workers, latency, rates(latency, workers)[0]) for workers, latency in cases]
    return fitted(points, spread(row["driver_cpu"] for row in rows_of("rewards"))[0])


@cache
def cell_model() -> CostModel:
    """Costs of a cell: the smallest one's CPU time is lost by its worker, that of an empty job is the driver's."""
    cell = spread(row["cell_cpu"] for row in rows_of("cells") if "cell_cpu" in row)[0]
    return CostModel(overhead=cell, driver=spread(row["driver_cpu"] for row in rows_of("jobs"))[0])


def model_of(seconds: float) -> CostModel:
    """The costs of jobs of a length."""
    return cell_model() if seconds >= CELLS_FROM else reward_model()


def rewards_table() -> str:
    """Throughput of waiting rewards, measured beside the model."""
    lines = ["| reward | workers | rewards/s, median [range] | efficiency | the model says |", "|---|---|---|---|---|"]
    for latency, workers in dict.fromkeys((row["latency"], row["workers"]) for row in rows_of("rewards")):
        middle, low, high = rates(latency, workers)
        one = rates(latency, 1)[0]
        share = f"{middle / (workers * one):.2f}"
        name = f"{1000 * latency:.0f} ms" if latency else "none"
        said = f"{reward_model().rate(workers, latency):,.0f}"
        lines.append(f"| {name} | {workers} | {middle:,.1f} [{low:,.1f}, {high:,.1f}] | {share} | {said} |")
    return "\n".join([*lines, "", f"Efficiency: rate over workers times the rate of one. {made_on()}"])


def made_on() -> str:
    """How many turns there were, and the machine, in a sentence."""
    result = read_results(FILE)
    turns = len({row["turn"] for row in rows_of("rewards")})
    _, low, high = spread(row["load"] for row in result["rows"])
    own = "the load of the study alone" if low < 2 * CORES else "which had other work to do"
    cpu = result["machine"]["device"].partition(", ")[2]
    return f"{turns} turns on {CORES} cores of {cpu}, {own}: {low:.1f} to {high:.1f}."


def costs_table() -> str:
    """What jobs and cells cost, measured and fitted."""
    rewards, cells, result = reward_model(), cell_model(), read_results(FILE)
    engines = {
        name: spread(row["seconds_per_cell"] for row in rows_of("cells") if row["engine"] == name)
        for name in ("local", "cluster")
    }
    size = spread(row["bytes"] for row in rows_of("cells"))[0]
    travel = spread(row["travel"] for row in rows_of("cells"))[0]
    lines = ["| what | seconds |", "|---|---|", f"| start of a Ray on this machine | {result['start_seconds']:.1f} |"]
    lines.append(f"| CPU time of the smallest cell: process, torch, a step, evaluation | {cells.overhead:.2f} |")
    for name, words in (("local", "local pool"), ("cluster", "Ray")):
        middle, low, high = engines[name]
        lines.append(f"| the same by the clock, {words} | {middle:.2f} [{low:.2f}, {high:.2f}] |")
    lines += [
        f"| its folder ({size / 1e3:,.0f} kB) packed and unpacked | {travel:.4f} |",
        f"| CPU time of the driver for each job of a comparison | {cells.driver:.4f} |",
        f"| a worker between two rewards, fitted | {rewards.overhead:.4f} |",
        f"| CPU time of the driver for each reward | {rewards.driver:.4f} |",
    ]
    return "\n".join(lines)


def predicted_table() -> str:
    """What the model predicts for many workers."""
    heads = [f"{workers:,} workers" for workers in PREDICTED]
    lines = ["| job | " + " | ".join(heads) + " | workers that keep the driver busy |", "|---" * (len(heads) + 2) + "|"]
    for seconds, name in JOBS.items():
        model = model_of(seconds)
        cells = [f"{model.rate(w, seconds):,.3g}/s, efficiency {model.efficiency(w, seconds):.2f}" for w in PREDICTED]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {model.enough(seconds):,.0f} |")
    return "\n".join(lines)


def scale_figure() -> Figure:
    """Measured rates and what the model says of more workers."""
    figure = Figure(figsize=(8.2, 4.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    many = [2 ** (power / 4) for power in range(4 * 12 + 1)]
    for seconds, (colour, marker) in LOOKS.items():
        model = model_of(seconds)
        axis.plot(many, [w / seconds for w in many], color=colour, linewidth=0.8, linestyle=":")
        axis.plot(many, [model.rate(w, seconds) for w in many], color=colour, linewidth=1.8, label=JOBS[seconds])
        measured = sorted({row["workers"] for row in rows_of("rewards") if row["latency"] == seconds})
        for workers in measured:
            middle, low, high = rates(seconds, workers)
            axis.errorbar(workers, middle, [[middle - low], [high - middle]], color=colour, marker=marker, capsize=3)
    for workers in PREDICTED:
        axis.axvline(workers, color="#cbd2d9", linewidth=0.8, zorder=0)
    axis.set(xscale="log", yscale="log", xlabel="workers", ylabel="jobs per second", xlim=(0.9, 4096))
    axis.set_title("Measured with 1, 2 and 4 workers, predicted beyond; dotted: nothing lost", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


TABLES = {"scale-rewards": rewards_table, "scale-costs": costs_table, "scale-predicted": predicted_table}
