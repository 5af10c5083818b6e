"""Run folders that are damaged, forged, or not what the command is for."""

import itertools
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.soak.folders import COMMANDS
from benchmarks.soak.outcomes import MARK
from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, row

STRANGER = f"from pathlib import Path\nPath({MARK!r}).write_text('x')\n\n\ndef f(*args, **more):\n    return [1.0] * 9\n"
VERBS = {
    "evaluate": "evaluate run --samples 8 --device cpu",
    "sample": "sample run -n 4 --device cpu",
    "report": "report run",
    "resume": "train grid --resume --device cpu --out run",
}
LOADERS = ("evaluate", "resume")
TURN = itertools.cycle(("evaluate", "sample", "resume"))
EITHER = (0, 2)
"""Codes of what may be refused, and may also be answered rightly."""


def each(name: str, files: dict[str, Content], *says: str, verbs: tuple[str, ...] = (), **more: object) -> list[Row]:
    """One damaged folder for several verbs; where they are not told, for one of them after the other."""
    task = str(more.pop("task", "grid"))
    flags = f" {more.pop('flags', '')}"
    verbs = verbs or (next(TURN),)
    words = {verb: VERBS[verb].replace("train grid", f"train {task}") + flags for verb in verbs}
    return [row(f"{verb}: {name}", words[verb], *says, files=files, **({"base": "grid"} | more)) for verb in verbs]


def in_json(change: Callable[[Any], object]) -> Callable[[Path], None]:
    """Change a JSON file."""

    def write(path: Path) -> None:
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))

    return write


def set_to(dotted: str, value: Any) -> Callable[[Path], None]:
    """Set one field of a JSON file, by its dotted name."""

    def change(data: Any) -> None:
        *parts, last = dotted.split(".")
        for part in parts:
            data = data[part]
        data[last] = value

    return in_json(change)


def without(dotted: str) -> Callable[[Path], None]:
    """Remove one field of a JSON file."""

    def change(data: Any) -> None:
        *parts, last = dotted.split(".")
        for part in parts:
            data = data[part]
        del data[last]

    return in_json(change)


def tensors(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change the tensors of a checkpoint, and leave a file that is well-formed."""

    def write(path: Path) -> None:
        from safetensors.torch import load_file, save_file

        state = load_file(path)
        change(state)
        save_file(state, path)

    return write


def spoil(number: float) -> Callable[[dict[str, Any]], None]:
    """Put one number into a weight."""

    def change(state: dict[str, Any]) -> None:
        name = next(n for n, value in state.items() if value.is_floating_point() and value.dim() == 2 and "nets" in n)
        state[name][0, 0] = number

    return change


def replaced(**values: Any) -> Callable[[dict[str, Any]], None]:
    def change(state: dict[str, Any]) -> None:
        import torch

        for name, value in values.items():
            state[f"self.{name}"] = torch.as_tensor(value)

    return change


def removed(path: Path) -> None:
    path.unlink()


def made_a_folder(path: Path) -> None:
    path.unlink()
    a_folder(path)


def made_a_pipe(path: Path) -> None:
    path.unlink()
    a_pipe(path)


def made_a_loop(path: Path) -> None:
    path.unlink()
    a_link(path.name)(path)


def no_permission(path: Path) -> None:
    path.chmod(0)


CONFIG = "run/config.json"
CONFIGS = [
    *each("config gone", {CONFIG: removed}, "run", "config.json"),
    *each("config empty", {CONFIG: ""}, "config.json", "JSON"),
    *each("config cut", {CONFIG: lambda path: path.write_text(path.read_text()[:99])}, "config.json", "JSON"),
    *each("config of random bytes", {CONFIG: bytes(range(128, 256))}, "config.json"),
    *each("config with NUL bytes", {CONFIG: bytes(200)}, "config.json"),
    *each("config in UTF-16", {CONFIG: '{"format": 2}'.encode("utf-16")}, "config.json"),
    *each("config a list", {CONFIG: "[]"}, "config.json", "not written by sgfn"),
    *each("config null", {CONFIG: "null"}, "config.json", "not written by sgfn"),
    *each("config of 100,000 brackets", {CONFIG: "[" * 100_000}, "config.json"),
    *each("config of 100,000 braces", {CONFIG: '{"a":' * 100_000}, "config.json"),
    *each("config a folder", {CONFIG: made_a_folder}, "run", verbs=("evaluate", "sample", "report")),
    *each("config a pipe", {CONFIG: made_a_pipe}, "run", limit=10),
    *each("config a link to itself", {CONFIG: made_a_loop}, "run"),
    *each("config without permission", {CONFIG: no_permission}, "config.json", "ermission"),
    *each("config of the future", {CONFIG: set_to("format", 99)}, "config.json", "format 99"),
    *each("config of a format in words", {CONFIG: set_to("format", "two")}, "config.json"),
    *each("config of a format that is none", {CONFIG: set_to("format", None)}, "config.json"),
    *each("config of an object as format", {CONFIG: set_to("format", {})}, "config.json"),
    *each("config without a task", {CONFIG: without("task")}, "config.json", "task"),
    *each("config of an unknown task", {CONFIG: set_to("task", "gird")}, "gird"),
    *each("config whose task is a number", {CONFIG: set_to("task", 7)}, "7"),
    *each("config without a configuration", {CONFIG: without("config")}, "config.json"),
    *each("config whose configuration is text", {CONFIG: set_to("config", "x")}, "config.json", "object"),
    *each("config with an unknown field", {CONFIG: set_to("config.colour", "red")}, "config.json", "colour"),
    *each("config with a word for a number", {CONFIG: set_to("config.steps", "many")}, "config.json", "steps"),
    *each("config with no number", {CONFIG: set_to("config.steps", None)}, "config.json", "steps"),
    *each("config with a list for a number", {CONFIG: set_to("config.batch", [8])}, "config.json", "batch"),
    *each("config with a truth for a number", {CONFIG: set_to("config.batch", True)}, "config.json", "batch"),
    *each("config with half a step", {CONFIG: set_to("config.steps", 20.5)}, "config.json", "steps"),
    *each("config with a number out of range", {CONFIG: set_to("config.noise.alpha", 7)}, "config.json", "noise.alpha"),
    *each("config with nan", {CONFIG: set_to("config.noise.alpha", float("nan"))}, "config.json", "noise.alpha"),
    *each("config with a number beyond all", {CONFIG: set_to("config.seed", 10**400)}, "config.json", "seed"),
    *each("config with a number for a name", {CONFIG: set_to("config.objective", 3)}, "config.json", "objective"),
    *each("config with an unknown objective", {CONFIG: set_to("config.objective", "tbb")}, "config.json", "'tbb'"),
    *each("config with an unknown method", {CONFIG: set_to("config.method", "x")}, "config.json", "method"),
    *each("config with a component that is a list", {CONFIG: set_to("config.net", [])}, "config.json", "net"),
    *each("config with files that are text", {CONFIG: set_to("files", "x")}, "config.json", "files must be an object"),
    *each("config with a float beyond floats", {CONFIG: set_to("config.noise.alpha", 10**400)}, "config.json", "noise.alpha"),
    *each("config with NUL in a file", {CONFIG: set_to("config.noise.file", "a\0b")}, "config.json", "noise.file"),
    *each("config with half a character", {CONFIG: set_to("task", "\ud800")}, "config.json", "no character"),
    *each("config of format true", {CONFIG: set_to("format", True)}, "config.json", "format True"),
    *each("config of format 2.0", {CONFIG: set_to("format", 2.0)}, "config.json", "format 2.0"),
    *each("config of format 1 with files that are text",
          {CONFIG: in_json(lambda data: data.update(format=1, files="x"))}, "config.json"),
    *each(
        "config with a network of another size", {CONFIG: set_to("config.net.hidden", 17)}, "does not fit config.json"
    ),
    *each("config of another grid", {CONFIG: set_to("config.grid.side", 4)}, "does not fit config.json"),
    *each("config with a huge network", {CONFIG: set_to("config.net.hidden", 65536)}, "memory", memory=2**30),
]

STATE = "run/checkpoint/state.safetensors"
STATES = [
    *each("checkpoint gone", {STATE: removed}, "run", "checkpoint"),
    *each("checkpoint empty", {STATE: b""}, "state.safetensors"),
    *each("checkpoint cut", {STATE: lambda path: path.write_bytes(path.read_bytes()[:500])}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint cut by a byte", {STATE: lambda path: path.write_bytes(path.read_bytes()[:-1])}, "state.safetensors"),
    *each("checkpoint with a byte more", {STATE: lambda path: path.write_bytes(path.read_bytes() + b"x")},
          "state.safetensors"),
    *each("checkpoint of text", {STATE: "weights"}, "state.safetensors"),
    *each("checkpoint of zeros", {STATE: bytes(5000)}, "state.safetensors"),
    *each("checkpoint with a header without end", {STATE: struct.pack("<Q", 2**60) + b"{}"}, "state.safetensors"),
    *each("checkpoint whose header is a list", {STATE: struct.pack("<Q", 2) + b"[]"}, "state.safetensors"),
    *each("checkpoint of 100,000 brackets", {STATE: struct.pack("<Q", 100_000) + b"[" * 100_000}, "state.safetensors"),
    *each("checkpoint a folder", {STATE: made_a_folder}, "run"),
    *each("checkpoint a pipe", {STATE: made_a_pipe}, "run", limit=10),
    *each("checkpoint a link to itself", {STATE: made_a_loop}, "run"),
    *each("checkpoint a link to a device",
          {STATE: lambda path: (path.unlink(), path.symlink_to("/dev/zero"))}, "run", limit=10),
    *each("checkpoint without permission", {STATE: no_permission}, "state.safetensors"),
    *each("checkpoint of nothing", {STATE: tensors(lambda state: state.clear())}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint without what is done", {STATE: tensors(lambda s: s.pop("self.done"))}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint done below zero", {STATE: tensors(replaced(done=-5))}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint done beyond the end", {STATE: tensors(replaced(done=10**12))}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint done by halves", {STATE: tensors(replaced(done=3.5))}, "state.safetensors"),
    *each("checkpoint done is a list", {STATE: tensors(replaced(done=[1, 2]))}, "state.safetensors"),
    *each("checkpoint done is nan", {STATE: tensors(replaced(done=float("nan")))}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint with a weight of nan", {STATE: tensors(spoil(float("nan")))}, "nets", verbs=LOADERS),
    *each("checkpoint with an infinite weight", {STATE: tensors(spoil(float("inf")))}, "nets", verbs=LOADERS),
    *each("checkpoint lacking a weight",
          {STATE: tensors(lambda s: s.pop(next(n for n in s if "nets" in n)))}, "state.safetensors", verbs=LOADERS),
    *each("checkpoint with a stranger", {STATE: tensors(replaced(stranger=[1.0]))}, "state.safetensors", code=EITHER),
    *each("checkpoint of another kind of number",
          {STATE: tensors(lambda s: s.update({n: v.double() for n, v in s.items() if "nets" in n}))},
          "state.safetensors", code=EITHER),
    *each("checkpoint of another shape",
          {STATE: tensors(lambda s: s.update({n: v.flatten() for n, v in s.items() if "nets" in n}))},
          "state.safetensors", verbs=LOADERS),
    *each("checkpoint with a short random state",
          {STATE: tensors(lambda s: s.update({n: v[:3] for n, v in s.items() if "generator" in n and v.dim() == 1}))},
          "state.safetensors", code=EITHER, verbs=LOADERS),
]

METRICS, EXACT = "run/metrics.jsonl", "run/exact.json"
DRAWN = ("report",)
LOGS = [
    *each("metrics with a broken line", {METRICS: '{"step": 1\n{"step": 2}\n'}, "metrics.jsonl, line 1",
          verbs=("report", "resume")),
    *each("metrics of random bytes", {METRICS: bytes(range(256)) * 9}, "metrics.jsonl", verbs=("report", "resume")),
    *each("metrics without a step", {METRICS: '{"loss": 1}\n{"step": 2}\n'}, "metrics.jsonl, line 1",
          verbs=("report", "resume")),
    *each("metrics whose step is text", {METRICS: '{"step": "a"}\n{"step": "b"}\n'}, "metrics.jsonl",
          verbs=("report", "resume")),
    *each("metrics whose step is null", {METRICS: '{"step": null}\n{"step": 2}\n'}, "metrics.jsonl",
          verbs=("report", "resume")),
    *each("metrics whose step is a list", {METRICS: '{"step": [1]}\n{"step": 2}\n'}, "metrics.jsonl",
          verbs=("report", "resume")),
    *each("metrics whose step is nan", {METRICS: '{"step": NaN}\n{"step": 2}\n'}, "metrics.jsonl",
          verbs=("report", "resume")),
    *each("metrics whose figures are text", {METRICS: '{"step": 5, "loss": "x", "tv": "y"}\n' * 2}, "metrics",
          verbs=DRAWN),
    *each("metrics of 100,000 brackets", {METRICS: "[" * 100_000 + '\n{"step": 2}\n'}, "metrics.jsonl",
          verbs=("report", "resume")),
    *each("metrics a folder", {METRICS: made_a_folder}, "metrics", verbs=("report", "resume")),
    *each("metrics a pipe", {METRICS: made_a_pipe}, "metrics", verbs=("report", "resume"), limit=10),
    *each("results cut", {EXACT: '{"step": 20'}, "exact.json", verbs=DRAWN),
    *each("results of 100,000 brackets", {EXACT: "[" * 100_000}, "exact.json", verbs=DRAWN),
    *each("results whose step is text", {EXACT: set_to("step", "x")}, "exact.json", verbs=DRAWN),
    *each("results whose step is null", {EXACT: set_to("step", None)}, "exact.json", verbs=DRAWN),
    *each("results whose figure is text", {EXACT: set_to("tv", "x")}, "exact.json", verbs=DRAWN, code=EITHER),
    *each("results whose figure is nan", {EXACT: set_to("tv", float("nan"))}, "exact.json", verbs=DRAWN, code=EITHER),
    *each("results without a figure", {EXACT: without("tv")}, "exact.json", verbs=DRAWN, code=EITHER),
    *[
        made
        for what, value in {
            "no edges": {"edges": [], "target": [1.0]},
            "one edge": {"edges": [1.0]},
            "edges that stand still": {"edges": [1.0, 1.0], "target": [1.0]},
            "negative shares": {"edges": [0.0, 1.0], "target": [-1.0]},
            "no distribution of ours": {"edges": [0.0, 1.0], "<b>": [1.0]},
            "a number beyond floats": {"edges": [0.0, 10**400], "target": [1.0]},
        }.items()
        for made in each(f"results whose histogram has {what}", {EXACT: set_to("histogram", value)}, "exact.json",
                         "histogram", verbs=DRAWN)
    ],
    *each("results whose design's score is text", {EXACT: set_to("designs", [["ACG", "high"]])}, "exact.json", "designs",
          verbs=DRAWN),
    *each("results with half a character", {EXACT: set_to("designs", [["\ud800", 1.0]])}, "exact.json", "no character",
          verbs=DRAWN),
    *each("results whose alphabet has one letter", {EXACT: set_to("alphabet", "A")}, code=0, verbs=DRAWN, base="words",
          changes=True, leaves=True),
    *each("results a folder", {EXACT: made_a_folder}, "exact.json", verbs=("evaluate",)),
]

NAMED = {
    "task": "stranger:f",
    "config.objective": "stranger:f",
    "config.form": "stranger:f",
    "config.method": "stranger:f",
    "config.noise.kind": "stranger:f",
    "config.net.encoder": "stranger:f",
    "config.kl.flow": "stranger:f",
    "config.callable.function": "stranger:f",
}
HERE = {"stranger.py": STRANGER, "run/stranger.py": STRANGER}
SECRET = {"secret.csv": "the password is swordfish\nand nobody knows\n"}
STRANGERS = [
    *[
        made
        for field, value in NAMED.items()
        if field != "config.callable.function"
        for made in each(f"config that names a stranger as {field}", {**HERE, CONFIG: set_to(field, value)}, "stranger:f",
                         verbs=("evaluate", "sample", "report", "resume"), code=EITHER)
    ],
    *each("config whose function is a stranger's", {**HERE, CONFIG: set_to("config.callable.function", "stranger:f")},
          "stranger:f", verbs=("evaluate", "sample", "report", "resume"), base="callable", task="callable"),
    *each("config whose function is the shell's", {CONFIG: set_to("config.callable.function", "os:system")},
          "os:system", verbs=("evaluate", "sample", "report"), base="callable"),
    *each("config whose task is the shell's", {CONFIG: set_to("task", "subprocess:call")}, "subprocess:call",
          verbs=("evaluate", "sample", "report"), code=EITHER),
    *each("a function that only the run names", {}, "scores:gc", base="callable", task="callable", verbs=("evaluate", "sample", "resume")),
    *each("a saved model that names a stranger",
          {**HERE, "run/library.json": set_to("reward.name", "stranger:f")}, "stranger:f", verbs=("evaluate", "sample"),
          base="saved"),
    *each("a saved model whose function only the run names", {}, "scores:gc", verbs=("evaluate", "sample"),
          base="saved"),
    *each("a table that is somebody's secret",
          {**SECRET, CONFIG: in_json(lambda d: (d["config"]["table"].update(file="secret.csv"), d.pop("files")))}, "",
          hides=("swordfish",), base="table", task="table"),
    *each("a copy that is somebody's secret",
          {**SECRET, CONFIG: in_json(lambda d: d["files"]["table.file"].update(copy="../secret.csv", sha256=None))}, "",
          hides=("swordfish",), base="table", task="table"),
    *each("a copy by a full path",
          {CONFIG: in_json(lambda d: d["files"]["table.file"].update(copy="/etc/passwd", sha256=None))}, "",
          hides=("fields", "root:"), base="table", task="table"),
    *each("a copy that is a link outside",
          {"run/data/t.csv": lambda path: (path.unlink(), path.symlink_to("/etc/passwd"))}, "t.csv",
          base="table", task="table"),
    *each("a copy that has changed", {"run/data/t.csv": "sequence,score\nACG,1\nCAT,0.5\n"}, "t.csv has changed",
          base="table", task="table"),
    *each("a copy that is gone", {"run/data/t.csv": removed}, "t.csv is missing", base="table", task="table"),
    *each("noise that has changed", {"run/data/slips.csv": "x"}, "slips.csv has changed", base="table", task="table"),
    *each("noise that is gone", {"run/data/slips.csv": removed}, "slips.csv is missing", base="table", task="table"),
]

SAVED = [
    *each("a saved model cut", {"run/library.json": "{"}, "library.json", verbs=("evaluate", "sample"), base="saved"),
    *each("a saved model that is a list", {"run/library.json": "[]"}, "library.json", verbs=("evaluate", "sample"),
          base="saved"),
    *each("a saved model of the future", {"run/library.json": set_to("format", 99)}, "library.json",
          verbs=("evaluate", "sample"), base="saved"),
    *each("a saved model without an environment", {"run/library.json": without("env")}, "library.json",
          verbs=("evaluate", "sample"), base="saved"),
    *each("a saved model whose environment is text", {"run/library.json": set_to("env", "x")}, "library.json",
          verbs=("evaluate", "sample"), base="saved"),
    *each("a saved model whose length is text", {"run/library.json": set_to("env.length", "x")}, "library.json",
          verbs=("evaluate", "sample"), base="saved", flags="--trust"),
    *each("a saved model without end", {"run/library.json": set_to("env.length", 10**9)}, "length",
          verbs=("evaluate", "sample"), base="saved", flags="--trust", memory=2**31, limit=20),
    *each("a saved model whose noise is text", {"run/library.json": set_to("noise", "x")}, "library.json",
          verbs=("evaluate", "sample"), base="saved"),
    *each("a saved model to be trained on", {}, "model.save", verbs=("resume",), base="saved"),
]



def linked_out(path: Path) -> None:
    """Make a link to a folder of the reader's, with a file in it."""
    diary = path.parent.parent / "home" / "diary.txt"
    diary.parent.mkdir()
    diary.write_text("dear")
    path.symlink_to("../home")


OTHERS = [
    *[
        row(f"{verb}: {file} leads to a folder of mine", words, base="grid", files={f"run/{file}": linked_out},
            code=EITHER, changes=verb != "resume", leaves=True, talks=True)
        for verb, words in VERBS.items() if verb != "report"
        for file in (".sgfn-ready", ".sgfn-new")
    ],
    row("resume: nothing is there", "train grid --resume --out nowhere", "nowhere does not exist"),
    row("resume: an empty folder", "train grid --resume --out run", "config.json", files={"run": a_folder}),
    row("resume: another task", "train words --resume --out run", "run holds a run of grid", base="grid"),
    row("resume: another setting", "train grid --resume --batch 9 --out run", "--batch", base="grid"),
    row("resume: another file", "train table --table.file u.csv --resume --out run", "--table.file", base="table",
        files={"u.csv": "sequence,score\nACG,1\nCAT,0.5\n"}),
    row("resume: fewer steps", "train grid --resume --steps 10 --out run", "steps", base="grid"),
    row("resume: as many steps as are done, and none to do", "train grid --resume --out run", code=0, base="grid",
        changes=True),
    row("train: a run is there", "train grid {tiny} --out run", "run already holds a run", base="grid"),
    row("train: overwriting what is no run of ours", "train grid {tiny} --overwrite --out run", "config.json",
        files={"run/config.json": "{}"}),
    row("train: overwriting somebody's files", "train grid {tiny} --overwrite --out run", "not empty",
        files={"run/letter.txt": "dear"}),
    row("evaluate: two runs", "evaluate run other", "other", base="grid"),
    row("evaluate: a run below a file", "evaluate f/x", "f/x", files={"f": "x"}),
    row("sample: a run that is not there", "sample nowhere", "nowhere does not exist"),
    row("report: one run of two is not there", "report run nowhere", "nowhere does not exist", base="grid"),
    row("report: a run twice and one that is none", "report run run t.csv", "t.csv", base="grid"),
    row("report: a run without a checkpoint", "report run", "checkpoint", base="grid",
        files={STATE: removed, EXACT: removed}),
    row("compare: into a run", COMMANDS["compare"][0], "run", base="grid"),
    row("evaluate: constant rewards", "evaluate run --samples 8", code=0, changes=True,
        files={"c.csv": "sequence,score\nACG,1\nCAT,1\n"}, base="constant"),
]

ROWS = [*CONFIGS, *STATES, *LOGS, *STRANGERS, *SAVED, *OTHERS]
