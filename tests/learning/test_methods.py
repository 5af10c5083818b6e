"""What each method reads: the table is what the code does, and a flag that means nothing is refused."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from small_runs import CPU, FLAGS, complaint, contents, small
from stub_workers import run

import sgfn
from sgfn.config import TrainConfig, differing
from sgfn.config.presets import PRESETS
from sgfn.config.tasks import ConstraintsConfig, GridConfig
from sgfn.evaluation.measure import measure
from sgfn.landscapes.tasks import make_task
from sgfn.learning.learner import Learner
from sgfn.learning.methods import METHODS, check_names, make_learner, unread, without_unread

PEERS = tuple(name for name in METHODS if name not in ("gfn", "forecast"))
every_peer = pytest.mark.parametrize("method", PEERS)


def leaves(config: Any, prefix: str = "") -> Iterator[str]:
    """Every field of a configuration by its dotted name."""
    for part in fields(config):
        value = getattr(config, part.name)
        yield from leaves(value, f"{prefix}{part.name}.") if is_dataclass(value) else [prefix + part.name]


def read(task: str, config: TrainConfig) -> set[str]:
    """The fields that the entries say are read under a configuration."""
    return set(leaves(config)) - set(unread(task, config))


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
    use(METHODS[config.method].make(type(made)(**vars(made) | {"config": spied}), CPU))
    return seen


# The entries


COMMON = {"method", "steps", "batch", "seed", "log.every", "log.exact_every", "log.checkpoint_every", "offline.file"}
COMMON |= {"beta", "reward.minimum", "reward.norm", "noise.kind", "noise.alpha", "noise.stop"}
COMMON |= {f"constraints.{part.name}" for part in fields(ConstraintsConfig)}  # as the task is made
SELECTED = {"net.encoder"}  # peers refuse any but the mlp, and do not look at it again


def test_every_method_has_an_entry_and_unknown_ones_get_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"^method 'randm' is unknown: choose from .*; did you mean 'random'\?$"):
        check_names(TrainConfig(method="randm"))
    with pytest.raises(ValueError, match=r"^net\.encoder 'transfomer' is unknown: .*; did you mean 'transformer'\?$"):
        check_names(TrainConfig().with_(net__encoder="transfomer"))
    with pytest.raises(ValueError, match=r"^kl\.flow 'subt' is unknown: .*; did you mean 'subtb'\?$"):
        check_names(TrainConfig().with_(kl__flow="subt"))
    check_names(TrainConfig().with_(objective="nowhere:mine"))  # not looked for before it is needed


@every_peer
def test_the_entry_is_what_a_peer_does(method: str) -> None:
    config = small(method=method, noise__alpha=0.3)
    seen = looked_at(config)
    wanted = {name for name in read("grid", config) - COMMON - SELECTED if not name.startswith("grid.")}
    assert seen - COMMON - SELECTED == wanted
    assert {"batch", "seed"} <= seen


FLOWS: dict[str, dict[str, Any]] = {
    "subtb": {"objective": "subtb"},
    "kl": {"objective": "kl"},
    "kl-entropy": {"objective": "kl-entropy", "exploration": "entropy"},
    "exponential": {"entropy__variant": "exponential", "objective": "kl-entropy"},
    "transformer": {"net__encoder": "transformer"},
    "thought": {"thought__layers": 1},
    "replay": {"dynamics__mode": "replay", "replay__updates": 1},
    "known": {"dynamics__mode": "known"},
    "ways": {"exploration": "local+best+surprise+novelty+entropy-state+thompson+teacher", "replay__updates": 1},
    "per state": {"entropy__variant": "per-state", "exploration": "entropy"},
}


@pytest.mark.parametrize("name", FLOWS)
def test_flow_networks_look_at_what_their_entries_say(name: str) -> None:
    """All that is said to be read is looked at; what is looked at beside it has no say (a network that nobody asks)."""
    config = small(**FLOWS[name]).with_(grid=GridConfig())
    seen, wanted = looked_at(config, "words"), read("words", config)
    assert wanted - COMMON <= seen
    everything = set().union(*(read("words", small(**changes)) for changes in FLOWS.values()))
    assert seen <= everything | COMMON | {"form", "ahead"}  # of batches on their way, where there are workers


def test_the_entry_is_what_a_forecaster_does() -> None:
    config = PRESETS["forecast"].with_(batch=8, net__hidden=8, net__layers=1, series__members=1, series__context=4)
    config = config.with_(series__horizon=2, series__lags="none")
    seen = {name for name in looked_at(config, "series") if not name.startswith("series.")}
    assert seen - COMMON == {name for name in read("series", config) - COMMON if not name.startswith("series.")}
    with pytest.raises(ValueError, match=r"^method 'forecast' learns time series, and grid is none"):
        make_learner(make_task("grid", TrainConfig(method="forecast")), CPU)
    with pytest.raises(ValueError, match=r"^task series is learned by method 'forecast', not by 'gfn'"):
        make_learner(make_task("series", TrainConfig()), CPU)


# What is refused


@every_peer
def test_only_what_a_method_reads_is_taken(method: str) -> None:
    changes = {"explore": 0.2, "kl__flow": "db", "replay__batch": 4, "chain__keep": 9, "rl__trace": 0.5, "beta": 2.0}
    config = TrainConfig().with_(method=method, **changes)
    ignored = [name for name in map(dotted, changes) if name in unread("grid", config)]
    assert "kl.flow" in ignored
    assert "beta" not in ignored
    assert sorted(flag[2:] for flag in differing(without_unread(config), config)) == sorted(ignored)
    with pytest.raises(ValueError, match=r"^--.* nothing here: .*; leave them out$") as caught:
        make_learner(make_task("grid", config), CPU)
    assert all((f"--{dotted(name)}" in str(caught.value)) == (dotted(name) in ignored) for name in changes)
    make_learner(make_task("grid", without_unread(config).with_(grid__side=3)), CPU)


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
def test_the_command_line_names_flag_and_reader(
    method: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "grid", "--method", method, "--out", str(tmp_path / "run"), *REFUSED[flag]]
    line = complaint(capsys, words)
    assert line.startswith(f"--{flag.replace('_', '-')} does nothing here: it is read with --")
    assert "--method gfn" in line
    assert line.endswith("; leave it out")
    assert not (tmp_path / "run").exists()


def test_flow_networks_do_not_read_the_settings_of_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "grid", "--out", str(tmp_path / "run"), *FLAGS, "--rl.epochs", "2", "--chain.keep", "8"]
    told = "--rl.epochs does nothing here: it is read with --method ppo; "
    told += "--chain.keep does nothing here: it is read with --method mh or mars; leave them out"
    assert complaint(capsys, words) == told


def test_what_a_preset_sets_is_not_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "grid", "--out", str(tmp_path / "run"), "--preset", "frugal", "--method", "ppo"]
    assert complaint(capsys, [*words, "--explore", "0.2"]).startswith("--explore does nothing here: ")
    with pytest.raises(ValueError, match=r"^--net\.layers does nothing here"):
        sgfn.train("grid", PRESETS["demo"].with_(method="mh", net__layers=7), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
    config = PRESETS["demo"].with_(method="random", steps=2, batch=4, grid__side=3)
    sgfn.train("grid", config, tmp_path / "run", device="cpu")


def test_a_run_that_is_there_is_read_as_it_is(tmp_path: Path) -> None:
    """What an earlier version trained can still be measured, sampled and continued."""
    config = small().with_(method="mh")
    learner = METHODS["mh"].make(make_task("grid", config), CPU)
    folder = sgfn.Run(path=tmp_path)
    folder.create("grid", config)
    folder.save(learner)
    assert without_unread(config) != config
    assert measure(folder.load(CPU), 8) == measure(learner, 8)
    sgfn.train("grid", config, tmp_path, resume=True, device="cpu")


# Comparisons: a flag is for those who read it


def test_a_comparison_needs_one_method_that_reads_a_flag(stub: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = small(explore=0.1)
    words = ["compare", "grid", *FLAGS, "--out", str(stub), "--explore", "0.1", "--methods"]
    assert complaint(capsys, [*words, "ppo", "mh"]).startswith(
        "none of ppo, mh reads --explore, --dynamics.hidden: leave"
    )
    assert not stub.exists()
    assert complaint(capsys, [*words, "random"]).startswith("method 'random' does not read --explore, --net.hidden, ")
    run(stub, ["tb", "ppo"], seeds=1, config=config)
    first, second = (sgfn.Run(path=stub / m / "alpha0.25" / "seed0").read_config()[1] for m in ("tb", "ppo"))
    assert first == config
    assert second == without_unread(config.with_(method="ppo"))
    before = contents(stub / "tb")
    grown = run(stub, ["mh"], seeds=1, config=config)  # of the whole comparison one still reads it
    assert [row["method"] for row in grown.rows] == ["tb", "ppo", "mh"]
    assert contents(stub / "tb") == before
