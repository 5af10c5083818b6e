"""What each method reads: the table is what the code does, and a flag that means nothing is refused."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from small_runs import CPU, FLAGS, complaint, contents, small
from stub_workers import run

import sgfn
from sgfn.config import Method, TrainConfig, differing
from sgfn.config.presets import PRESETS
from sgfn.evaluation.measure import measure
from sgfn.landscapes.tasks import make_task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import EVERYONE, LEARNERS, READS, lean, make_learner, unread

PEERS = tuple(name for name in READS if name not in ("gfn", "forecast"))
every_peer = pytest.mark.parametrize("method", PEERS)


def leaves(config: Any, prefix: str = "") -> Iterator[str]:
    """Every field of a configuration by its dotted name."""
    for part in fields(config):
        value = getattr(config, part.name)
        yield from leaves(value, f"{prefix}{part.name}.") if is_dataclass(value) else [prefix + part.name]


def named(parts: tuple[str, ...]) -> set[str]:
    """The fields that a few names of fields and components stand for."""
    return {leaf for leaf in leaves(TrainConfig()) if f"{leaf}.".startswith(tuple(f"{part}." for part in parts))}


def watched(config: Any, seen: set[str], prefix: str = "") -> Any:
    """The same configuration, which notes the names of the fields that somebody looks at."""
    names = {part.name: getattr(config, part.name) for part in fields(config)}
    inner = {n: watched(v, seen, f"{prefix}{n}.") for n, v in names.items() if is_dataclass(v)}

    def look(self: Any, name: str) -> Any:
        if name in names and name not in inner:
            seen.add(prefix + name)
        return object.__getattribute__(self, name)

    spy = type(type(config).__name__, (type(config),), {})
    made = spy(**names | inner)
    type.__setattr__(spy, "__getattribute__", look)
    return made


def looked_at(config: TrainConfig, task: str = "grid") -> set[str]:
    """Fields that are read while a learner is made, steps, draws and is looked at."""
    seen: set[str] = set()
    spied = watched(config, seen)
    seen.clear()  # checks of the configuration itself do not count

    def use(learner: Learner) -> None:
        for _ in range(2):
            learner.step()
            learner.done += 1
        learner.draw(40, 0)
        if learner.has_law:
            learner.law()
        assert learner.read_meters()
        assert learner.trajectories >= 16

    made = make_task(task, config)
    use(LEARNERS[config.method](type(made)(**vars(made) | {"config": spied}), CPU))
    return seen


# The table


def test_every_method_has_a_line_and_every_name_is_a_field() -> None:
    assert set(READS) == set(LEARNERS) == set(get_args(Method))
    parts = {part.name for part in fields(TrainConfig())} | set(leaves(TrainConfig()))
    assert {name for names in (EVERYONE, *READS.values()) for name in names} <= parts
    assert named((*EVERYONE, *(name for names in READS.values() for name in names))) == set(leaves(TrainConfig()))


@every_peer
def test_the_table_is_what_a_peer_does(method: str) -> None:
    seen = looked_at(small(method=method, noise__alpha=0.3))
    read = named(READS[method]) - {"net.heads", "net.encoder"}  # of the transformer, which peers refuse
    assert seen - named(EVERYONE) - {"net.heads", "net.encoder"} == read
    assert {"batch", "seed"} <= seen


def test_the_table_is_what_flow_networks_do() -> None:
    some = [
        *({"objective": "subtb"}, {"objective": "kl"}, {"objective": "kl-entropy", "exploration": "entropy"}),
        *({"net__encoder": "transformer"}, {"thought__layers": 1}, {"dynamics__mode": "replay", "replay__updates": 1}),
        *({"entropy__variant": "exponential", "objective": "kl-entropy"}, {"optim__final": 0.5}),
    ]
    seen = set().union(*(looked_at(small(**changes), "words") for changes in some))
    assert seen - named(EVERYONE) == named(READS["gfn"])


def test_the_table_is_what_a_forecaster_does() -> None:
    config = PRESETS["forecast"].with_(batch=8, net__hidden=8, net__layers=1, series__members=1, series__context=4)
    seen = looked_at(config.with_(series__horizon=2, series__lags="none"), "series")
    assert seen - named(EVERYONE) == named(READS["forecast"]) - {"net.encoder"}  # its networks are transformers
    assert unread(PRESETS["forecast"], "forecast") == []
    with pytest.raises(ValueError, match=r"^method 'forecast' learns time series, and grid is none"):
        make_learner(make_task("grid", TrainConfig(method="forecast")), CPU)
    with pytest.raises(ValueError, match=r"^task series is learned by method 'forecast', not by 'gfn'"):
        make_learner(make_task("series", TrainConfig()), CPU)


# What is refused


@every_peer
def test_only_what_a_method_reads_is_taken(method: str) -> None:
    changes = {"explore": 0.2, "kl__flow": "db", "replay__batch": 4, "chain__keep": 9, "rl__trace": 0.5, "beta": 2.0}
    config = TrainConfig().with_(**changes)
    ignored = [f"--{name}" for name in map(dotted, changes) if name not in named((*EVERYONE, *READS[method]))]
    assert sorted(unread(config, method)) == sorted(ignored)
    assert "--kl.flow" in ignored
    assert differing(lean(config, method), config) == unread(config, method)
    assert unread(lean(config, method), method) == []
    with pytest.raises(ValueError, match=f"^method '{method}' does not read --.*: leave them out"):
        make_learner(make_task("grid", config.with_(method=method)), CPU)
    make_learner(make_task("grid", lean(config, method).with_(method=method, grid__side=3)), CPU)


def dotted(name: str) -> str:
    return name.replace("__", ".")


REFUSED = {
    "objective": ["--objective", "kl"],
    "form": ["--form", "blind"],
    "replay.updates": ["--replay.updates", "2"],
    "thought.layers": ["--thought.layers", "1"],
    "kl.weight": ["--kl.weight", "0.5"],
    "entropy.gamma": ["--entropy.gamma", "0.3"],
    "offline.share": ["--offline.share", "0.5"],
    "exploration": ["--exploration", "entropy"],
    "dynamics.mode": ["--dynamics.mode", "known"],
    "optim.log_z_factor": ["--optim.log-z-factor", "2"],
}


@pytest.mark.parametrize("flag", REFUSED)
@every_peer
def test_the_command_line_names_flag_and_method(
    method: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "grid", "--method", method, "--out", str(tmp_path / "run"), *REFUSED[flag]]
    line = complaint(capsys, words)
    assert line == f"method {method!r} does not read --{flag}: leave it out (a preset may have set it)"
    assert not (tmp_path / "run").exists()


def test_flow_networks_do_not_read_the_settings_of_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "grid", "--out", str(tmp_path / "run"), *FLAGS, "--rl.epochs", "2", "--chain.keep", "8"]
    assert complaint(capsys, words).startswith("method 'gfn' does not read --rl.epochs, --chain.keep: leave them out")


def test_a_preset_counts_as_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "grid", "--out", str(tmp_path / "run"), "--preset", "frugal", "--method", "ppo"]
    assert complaint(capsys, words).startswith("method 'ppo' does not read --explore, --replay.capacity, ")
    with pytest.raises(ValueError, match=r"^method 'mh' does not read --net\.layers, --optim\.lr: leave them out"):
        sgfn.train("grid", PRESETS["demo"].with_(method="mh"), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    for name in ("published-tfbind8", "published-grid", "published-bits"):
        assert all(unread(PRESETS[name], method) == [] for method in READS)


def test_a_run_that_is_there_is_read_as_it_is(tmp_path: Path) -> None:
    """What an earlier version trained can still be measured, sampled and continued."""
    config = small().with_(method="mh")
    learner = LEARNERS["mh"](make_task("grid", config), CPU)
    folder = sgfn.Run(path=tmp_path)
    folder.create("grid", config, overwrite=False)
    folder.save(learner)
    assert unread(config, "mh")
    assert measure(folder.load(CPU), 8) == measure(learner, 8)
    sgfn.train("grid", config, tmp_path, resume=True, device="cpu")


# Comparisons: a flag is for those who read it


def test_a_comparison_needs_one_method_that_reads_a_flag(stub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(explore=0.1)
    words = ["compare", "grid", *FLAGS, "--out", str(stub), "--explore", "0.1", "--methods"]
    assert complaint(capsys, [*words, "ppo", "mh"]).startswith("none of ppo, mh reads --explore, --dynamics.hidden: ")
    assert not stub.exists()
    assert complaint(capsys, [*words, "random"]).startswith("method 'random' does not read --explore, --net.hidden, ")
    run(stub, ["tb", "ppo"], seeds=1, config=config)
    first, second = (sgfn.Run(path=stub / m / "alpha0.25" / "seed0").read_config()[1] for m in ("tb", "ppo"))
    assert first == config
    assert second == lean(config, "ppo").with_(method="ppo")
    before = contents(stub / "tb")
    grown = run(stub, ["mh"], seeds=1, config=config)  # of the whole comparison one still reads it
    assert [row["method"] for row in grown.rows] == ["tb", "ppo", "mh"]
    assert contents(stub / "tb") == before
