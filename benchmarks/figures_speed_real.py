"""Tables of speed on long sequences and large alphabets, and of growth; empty where nothing was measured."""

from typing import Any

from benchmarks.common import RESULTS, read_results
from benchmarks.figures_speed import AXES, rate_of

MACHINES = {"cuda": "On a GPU", "cpu": "On a CPU"}
NAMES = {
    "ours": "sgfn, compiled",
    "uncompiled": "sgfn",
    "eager": "sgfn, eager",
    "jax": "JAX, one scan",
    "gfnx": "gfnx",
    "torchgfn": "torchgfn",
}
TASKS = {
    "bits": "bits, {vocab} letters, length {length}",
    "motif": "motif, length {length}",
    "callable": "function of strings on the host, length {length}",
    "ehrlich": "Ehrlich, {vocab} letters, length {length}",
}
JAX, OURS = ("jax", "jax-loop"), ("ours", "uncompiled", "eager")
LONG_TREES = "two_trees_long_cpu.json"
LONG_RATES = ("updates_per_second", "updates_per_core_second")
LONG_NETWORKS = {"protein50": "transformer 128 x 3, 8 heads", "protein50-mlp": "MLP 256 x 2"}
LONG_WAYS = {
    "before": "at d22a10e",
    "eager": "eager",
    "compile": "compiled",
    "compile-float32": "compiled, all products in float32",
    "compile-bf16": "compiled, gradient's products in bfloat16",
}
INTRODUCTION = """\
Measured on long sequences, large alphabets and transformers: 25 % slips and a noise model to learn, trajectory balance
in the marginal form (cells without noise are for those who have none). JAX is our own scan of the same networks and
noise model (benchmarks/speed_peers/jax_real.py: key/value cache, one causal pass for the update, TF32 on a GPU), with
an additive reward of its own, which is cheaper than the tasks'; it decodes one letter in a round of its loop or
several, and the faster counts. "sgfn" is not compiled: eager on a CPU, captured on a GPU."""
SLOPES = "Slopes of these lines, both axes logarithmic; 1 is in proportion:"


def real_table() -> str:
    """Updates per second of each contestant, on the machines that were measured."""
    results = {kind: read_results(f"speed_real_{kind}.json") for kind in MACHINES if _exists(f"speed_real_{kind}.json")}
    tables = [table_of(kind, result) for kind, result in results.items()]
    return "\n\n".join([INTRODUCTION, *tables]) if tables else ""


def two_trees_long_table() -> str:
    """Updates per second of 50 residues at commit d22a10e and now; empty where they were not measured."""
    if not _exists(LONG_TREES):
        return ""
    result = read_results(LONG_TREES)
    heads = ["network", "steps", "updates/s", "times before", "updates/core-s", "times before"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in result["rows"]:
        pairs = [(row[rate], row[f"times_{rate}"], row[f"range_{rate}"]) for rate in LONG_RATES]
        cells = [cell for rate, times, (low, high) in pairs for cell in (f"{rate:.1f}", f"{times:.2f} [{low}, {high}]")]
        lines.append("| " + " | ".join([LONG_NETWORKS[row["cell"]], LONG_WAYS[row["who"]], *cells]) + " |")
    about = (
        f"{result['machine']['device']}, torch {result['machine']['torch']}; {result['rounds']} turns of 2 s of each"
    )
    note = f"`{result['command']}`; {about}; mean load of the machine over five minutes {result['load']}."
    return "\n".join([*lines, "", f"Medians over turns [lowest, highest]. {note}"])


def _exists(name: str) -> bool:
    return (RESULTS / name).is_file()


def table_of(kind: str, result: dict[str, Any]) -> str:
    """The table of one machine, with a line before it and one behind."""
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result["rows"]:
        keep_faster(cells.setdefault((row["cell"], row["batch"]), {}), row)
    names = {who: name for who, name in NAMES.items() if any(who in found for found in cells.values())}
    heads = ["task", "network", "batch", *(f"{name}, updates/s" for name in names.values())]
    heads += ["MiB, compiled / not / JAX", "start, s, compiled / not / JAX"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for found in cells.values():
        lines.append("| " + " | ".join(cells_of(found, list(names), kind)) + " |")
    about = f"{result['machine']['device']}, torch {result['machine']['torch']}; {abouts(result['rows'])}."
    head = f"{MACHINES[kind]}, `{result['command']}`:"
    return "\n".join(
        [head, "", *lines, "", f"[slowest, fastest turn]; (n x): compiled sgfn is n times as fast. {about}"]
    )


def keep_faster(found: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a row to those of its size, by contestant; of both ways in which JAX decodes, the faster one stays."""
    who = "jax" if row["who"] in JAX else row["who"]
    if who not in found or found[who].get("updates_per_second", 0) < row.get("updates_per_second", 0):
        found[who] = row


def cells_of(found: dict[str, Any], names: list[str], kind: str) -> list[str]:
    """Entries of one line."""
    row = next(iter(found.values()))
    task = TASKS[row["task"]].format(**row) + ("" if row["objective"] == "stochastic" else ", no noise")
    memory, trio = "device_memory_mib" if kind == "cuda" else "memory_mib", ("ours", "uncompiled", "jax")
    network = f"{ {'mlp': 'MLP'}.get(row['encoder'], row['encoder']) } {row['hidden']} x {row['layers']}"
    shown = [_rate(found[who]) if who in found else "" for who in names]
    more = [" / ".join(_number(found.get(who, {}).get(key)) for who in trio) for key in (memory, "start_seconds")]
    return [task, network, f"{row['batch']:,}", *shown, *more]


def _rate(row: dict[str, Any]) -> str:
    if "error" in row or row["ours_is_times"] is None:
        return "out of memory" if "emory" in row.get("error", "") else "failed"
    return rate_of(row)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def abouts(rows: list[dict[str, Any]]) -> str:
    """What contestants say of themselves, without our own."""
    told = dict.fromkeys(row["about"].partition(" on ")[0] for row in rows if row["who"] not in OURS)
    return ", ".join(told) or "nobody else"


def growth_table() -> str:
    """Slopes of the cost of an update on the machines whose file has both networks."""
    lines = ["| machine | network | along | slope over all sizes | between the last two |", "|---" * 5 + "|"]
    for kind in MACHINES:
        found = read_results(f"scaling_{kind}.json") if _exists(f"scaling_{kind}.json") else {}
        for row in found.get("slopes", []):
            cells = [
                found["machine"]["device"],
                row["encoder"],
                AXES[row["axis"]],
                f"{row['all']:.2f}",
                f"{row['last']:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([SLOPES, "", *lines]) if len(lines) > 2 else ""


def real_line() -> str:
    """One sentence for the README: how compiled steps stand beside the JAX scan on a GPU."""
    if not _exists("speed_real_cuda.json"):
        return ""
    cells: dict[tuple[str, int], dict[str, Any]] = {}
    for row in read_results("speed_real_cuda.json")["rows"]:
        keep_faster(cells.setdefault((row["cell"], row["batch"]), {}), row)
    times: dict[str, list[float]] = {}
    for found in (rows for rows in cells.values() if "jax" in rows):
        ratio = found["ours"]["updates_per_second"] / found["jax"]["updates_per_second"]
        times.setdefault(found["ours"]["encoder"], []).append(ratio)
    shown = {name: f"{min(found):.2f} to {max(found):.2f}" for name, found in times.items()}
    return (
        "On long sequences and large alphabets (bits of 256 letters, DNA of length 100 and 30, Ehrlich functions), one "
        "H200, compiled: "
        f"{shown['transformer']} times a JAX scan of the same transformers, {shown['mlp']} times one of the same MLPs."
    )


TABLES = {
    "speed-real": real_table,
    "two-trees-long": two_trees_long_table,
    "growth": growth_table,
    "speed-real-line": real_line,
}
