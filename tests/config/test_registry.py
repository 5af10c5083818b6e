"""Registries: names of ours, the nearest one to suggest, and things of others by `module:name`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.soak.forks import ForkServer
from small_runs import ANYWHERE, CPU, FLAGS, complaint, small, weights
from stub_workers import run as compared

import sgfn
from sgfn.cli.commands import main
from sgfn.compare.contestants import changes_of, contestant, label_of, style_of
from sgfn.compare.results import summarise
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.config.registry import PALETTE, Entry, Registry
from sgfn.landscapes.tasks import TASKS, make_task, recorded
from sgfn.learning.methods import make_learner
from sgfn.learning.trainer import Trainer
from sgfn.learning.unread import refuse_unread
from sgfn.noise import NOISES, NoiseEntry, UniformSlip, make_noise, noise_words
from sgfn.objectives import OBJECTIVES, ObjectiveEntry
from sgfn.objectives.trajectory_balance import trajectory_balance

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
PARTS = '''
from dataclasses import dataclass

import torch
from torch import nn

from sgfn.landscapes import Landscape
from sgfn.landscapes.tasks import Task, assemble, sequences
from sgfn.learning.peers.random import UniformPolicy
from sgfn.noise import UniformSlip


def doubled(scores, batch):
    return 2 * (scores.log_z + (scores.log_pf + scores.log_dynamics - scores.log_pb).sum(1) - batch.log_reward).square()


@dataclass(frozen=True, kw_only=True)
class Slippery(UniformSlip):
    pass


class Wide(nn.Module):
    def __init__(self, env, config):
        super().__init__()
        self.env, self.width, self.layer = env, 5, nn.Linear(env.features, 5)

    def forward(self, features):
        return torch.tanh(self.layer(features))


class Lazy(UniformPolicy):
    pass


class Ones(Landscape):
    maximum, mode_level = 1.0, 1.0

    def scores(self, objects):
        return (objects == 1).float().mean(-1)


def ones(name, config):
    """Pairs of letters."""
    return assemble(name, config, sequences(config, length=2, alphabet="AC"), Ones(), 2.0, "pairs of letters")


number = 3
'''


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with somebody's module in it."""
    (tmp_path / "my_parts.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(TASKS, "entries", dict(TASKS.entries))
    monkeypatch.setattr(NOISES, "entries", dict(NOISES.entries))
    yield tmp_path
    sys.modules.pop("my_parts", None)


def test_a_registry_by_hand() -> None:
    words: Registry[Entry] = Registry("word", lambda name, found: Entry(name=name), Entry(name="one"))
    assert list(words) == ["one"]
    assert words["one"].drawn.colour in PALETTE
    with pytest.raises(ValueError, match=r"^word 'oen' is unknown: choose from one; did you mean 'one'\?$"):
        words["oen"]
    words.add(Entry(name="two", label="second"))
    assert (len(words), words["two"].title, "two" in words) == (2, "second", True)
    words.remove("two")
    assert "two" not in words
    assert words["shlex:join"].name == "shlex:join"
    for wrong, message in {
        "shlex:jion": r"^word 'shlex:jion': no jion in .*; did you mean join\?$",
        "shlexx:join": r"^word 'shlexx:join': no module 'shlexx' here or installed",
        "shlex:": r"^word 'shlex:': must be module:word",
    }.items():
        with pytest.raises(ValueError, match=message):
            words[wrong]


def test_an_objective_of_somebody_else_is_trained(parts: Path) -> None:
    config = small(objective="my_parts:doubled", steps=3)
    learner, plain = (make_learner(make_task("grid", c), CPU) for c in (config, config.with_(objective="tb")))
    assert isinstance(learner, Trainer)
    assert isinstance(plain, Trainer)
    assert weights(learner).equal(weights(plain))
    learner.step()
    plain.step()
    twice, once = learner.read_meters()["loss"], plain.read_meters()["loss"]
    assert twice == pytest.approx(2 * once, rel=1e-5)
    assert once > 0
    sgfn.train("grid", config, parts / "run", device="cpu")
    assert sgfn.evaluate(parts / "run", device="cpu")["step"] == 3
    refuse_unread("grid", config.with_(form="blind"), small())
    with pytest.raises(ValueError, match=r"^--kl\.weight does nothing here"):
        refuse_unread("grid", config.with_(kl__weight=2.0), small())


def test_noise_encoder_and_method_of_somebody_else(parts: Path) -> None:
    noise = make_noise(NoiseConfig(kind="my_parts:Slippery", alpha=0.3), "AC", 3)
    assert isinstance(noise, UniformSlip)
    assert (type(noise).__name__, noise.alpha) == ("Slippery", 0.3)
    assert noise_words(NoiseConfig(kind="my_parts:Slippery", alpha=0.3)) == "my_parts:Slippery 30% noise"
    chosen = {"noise__kind": "my_parts:Slippery", "net__encoder": "my_parts:Wide"}
    sgfn.train("grid", small(steps=2, **chosen), parts / "run", device="cpu")
    assert sgfn.Run(path=parts / "run").load(CPU).nets.encoder.width == 5  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match=r"^--noise\.concentration does nothing here"):
        refuse_unread("grid", small(noise__concentration=9.0, **chosen), small())
    config = TrainConfig().with_(method="my_parts:Lazy", grid__side=3, steps=2)
    assert type(make_learner(make_task("grid", config), CPU)).__name__ == "Lazy"
    for field in ("objective", "method", "net__encoder", "noise__kind"):
        with pytest.raises(ValueError, match=r"'my_parts:number': is a int, not a"):
            make_learner(make_task("grid", small(**{field: "my_parts:number"})), CPU)


def test_a_comparison_knows_methods_of_somebody_else(parts: Path) -> None:
    assert changes_of("published-my_parts:doubled") == {
        "method": "gfn",
        "objective": "my_parts:doubled",
        "form": "published",
    }
    assert changes_of("my_parts:Lazy")["method"] == "my_parts:Lazy"
    assert contestant(small(), "my_parts:doubled").objective == "my_parts:doubled"
    assert style_of("my_parts:doubled").colour in PALETTE
    assert style_of("blind-my_parts:doubled").colour == style_of("blind-tb").colour != style_of("tb").colour
    assert label_of("published-tb") == "published-tb"
    with pytest.raises(ValueError, match=r"^method 'my_parts:doubld': no doubld in"):
        contestant(small(), "my_parts:doubld")


def test_facts_of_an_entry_are_what_everything_else_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry: a name in compare, a style and a label, and the settings it reads."""
    monkeypatch.setattr(OBJECTIVES, "entries", dict(OBJECTIVES.entries))
    OBJECTIVES.add(ObjectiveEntry(name="mine", function=trajectory_balance, label="my own", balance=True))
    assert contestant(TrainConfig(), "mine").objective == "mine"
    assert label_of("mine") == "my own"
    with pytest.raises(ValueError, match=r"^method 'published-mine' is unknown"):  # its entry has one form
        contestant(TrainConfig(), "published-mine")
    with pytest.raises(ValueError, match=r"^--form does nothing here: .*, or --entropy.base .*mine|--objective .*mine"):
        refuse_unread("grid", TrainConfig().with_(objective="eflow", form="blind"), TrainConfig())


def test_levels_of_a_new_noise_are_kept_apart(stub: Path, parts: Path) -> None:
    """One median for each level, as for ours; a noise without a level has one for all."""
    level = NOISES["uniform"].reads
    NOISES.add(NoiseEntry(name="mine", make=lambda c, _, __: UniformSlip(alpha=c.alpha), reads=level))
    found = compared(stub, ["tb"], seeds=1, config=small(noise__kind="mine"), alphas=[0.1, 0.2])
    assert [row["alpha"] for row in summarise(found.rows)] == [0.1, 0.2]
    assert NOISES["mine"].words(NoiseConfig(kind="mine", alpha=0.1)) == "mine 10% noise"
    assert not NOISES["confusion"].has_level


# Tasks


def test_a_task_by_its_place_is_trained_compared_and_evaluated(
    parts: Path, server: ForkServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "my_parts:ones"]) == 0
    assert "pairs of letters" in capsys.readouterr().out
    assert main(["train", "my_parts:ones", *ANYWHERE]) == 0
    assert sgfn.Run(path=Path("runs/my_parts-ones")).read_config()[0] == "my_parts:ones"
    assert main(["evaluate", "runs/my_parts-ones", "--device", "cpu"]) == 0
    words = ["compare", "my_parts:ones", *ANYWHERE, "--methods", "my_parts:doubled", "--seeds", "1"]
    assert server.run(words, parts).code == 0
    assert Path("runs/compare-my_parts-ones/my_parts-doubled/alpha0.25/seed0/exact.json").is_file()
    assert "no onse in" in complaint(capsys, ["train", "my_parts:onse"])


def test_a_registered_task_is_found_again(parts: Path) -> None:
    import my_parts  # pyright: ignore[reportMissingImports]

    sgfn.register_task("ones", my_parts.ones)
    assert "ones" in sgfn.task_names()
    assert recorded("ones") == recorded("my_parts:ones", elsewhere=True) == "my_parts:ones"
    config = small(steps=2).with_(grid=TrainConfig().grid)
    sgfn.train("ones", config, parts / "run", device="cpu")
    TASKS.remove("ones")
    assert sgfn.evaluate(parts / "run", device="cpu")["task"] == "my_parts:ones"
    sgfn.train("my_parts:ones", config.with_(steps=3), parts / "run", resume=True, device="cpu")


def test_a_task_that_nobody_else_can_find_is_trained_but_not_compared(parts: Path) -> None:
    import my_parts  # pyright: ignore[reportMissingImports]

    sgfn.register_task("here", lambda name, config: my_parts.ones(name, config))
    config = small(steps=2).with_(grid=TrainConfig().grid)
    sgfn.train("here", config, parts / "run", device="cpu")
    assert sgfn.evaluate(parts / "run", device="cpu")["task"] == "here"
    with pytest.raises(ValueError, match=r"^task 'here' is unknown to other processes: .* the top level of a module$"):
        sgfn.compare("here", config, parts / "out", methods=["tb"])
    assert not (parts / "out").exists()
    for name in ("a:b", "", "a b", "../a", ".a", "a/b", 5):
        with pytest.raises(ValueError, match=r"^the name of a task must be of letters, digits, "):
            sgfn.register_task(name, my_parts.ones)  # pyright: ignore[reportArgumentType]
    for name in ("tfbind8", "words", "motif-CTCF"):
        with pytest.raises(ValueError, match=rf"^task '{name}' is one of sgfn: register yours under another name$"):
            sgfn.register_task(name, my_parts.ones)


def test_a_saved_model_of_a_registered_task_is_found_again(parts: Path, server: ForkServer) -> None:
    import my_parts  # pyright: ignore[reportMissingImports]

    sgfn.register_task("ones", my_parts.ones)
    sgfn.fit("ones", steps=2, batch=4, progress=False, device="cpu").save(parts / "saved")
    assert sgfn.load(parts / "saved").task.name == "my_parts:ones"
    assert sgfn.Run(path=parts / "saved").read_config()[0] == "my_parts:ones"
    words = ["evaluate", "saved", "--task", "my_parts:ones", "--samples", "8", "--device", "cpu"]
    assert server.run(words, parts).code == 0


def test_the_recipe_of_the_guide_works_as_written(parts: Path, server: ForkServer) -> None:
    """In processes of their own, as is each cell of the comparison."""
    text = GUIDE.read_text().partition("## A new objective")[2]
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    commands = re.search(r"```bash\n(.*?)```", text, re.DOTALL)
    assert code is not None
    assert commands is not None
    Path("myobjective.py").write_text(code[1])
    train, evaluate, compare = (line.partition("#")[0].split()[1:] for line in commands[1].splitlines())
    for words in ([*train, *FLAGS], [*evaluate, "--samples", "8"], [*compare, *FLAGS, "--seeds", "1"]):
        ended = server.run(words, parts)
        assert ended.code == 0, ended.err
    assert sgfn.Run(path=Path("runs/grid")).read_config()[1].objective == "myobjective:absolute_balance"
    assert len(list(Path("runs/compare-grid").rglob("exact.json"))) == 3
