"""Uniform intentions: the law is known, and nothing else changes."""

from pathlib import Path

import pytest
import torch
from chain_tasks import SPACES, NoWait, advance, saved, task_of
from exact_tables import chi_square
from small_runs import CPU, flags_of, same_runs, same_tensors, small, small_on
from torch.testing import assert_close

from sgfn.cli.commands import main
from sgfn.config.files import read_json
from sgfn.envs import laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import measure
from sgfn.landscapes.tasks import make_task
from sgfn.learning.methods import make_learner
from sgfn.learning.peers.random import METERS, UniformPolicy
from sgfn.runs.folder import Run

METHODS = ("random", "mh", "mars")


@pytest.mark.parametrize("name", SPACES)
def test_the_law_is_that_of_uniform_intentions(name: str) -> None:
    env = SPACES[name](0.3)
    learner = UniformPolicy(task_of(env, method="random"), CPU)
    wanted = laws.law(env, laws.uniform_policy(env))
    assert_close(learner.law(), wanted, atol=1e-6, rtol=0)  # policies are in single precision
    drawn = learner.draw(4000, seed=1)
    counts = env.object_index(drawn.objects).bincount(minlength=env.num_objects)
    assert chi_square(counts, wanted) > 1e-3
    assert chi_square(counts, exact.target(learner.task.log_reward(env.all_objects()), 1.0)) < 1e-6
    assert torch.equal(drawn.scores, learner.task.landscape.scores(drawn.objects))


def test_a_step_draws_a_batch_and_learns_nothing() -> None:
    learner = UniformPolicy(task_of(SPACES["stop-L3-V3"](0.3), batch=4000), CPU)
    before, law = saved(learner), learner.law()
    advance(learner, 2)
    meters = learner.read_meters()
    assert tuple(meters) == METERS
    env, scores = learner.task.env, learner.task.landscape.table
    assert meters["reward"] == pytest.approx(float(law @ scores), rel=0.03)
    steps = (env.written(env.all_objects()) + 1).clamp(max=3).double()  # the stop is one
    assert meters["length"] == pytest.approx(float(law @ steps), rel=0.03)
    assert meters["log_reward"] == pytest.approx(float(law @ scores.log()), rel=0.05)
    assert learner.trajectories == 8000
    changed = {name for name, value in saved(learner).items() if not torch.equal(value, before[name])}
    assert changed == {"self.generator", "self.index", "self.done"}


def test_it_continues_from_the_state_of_another() -> None:
    first, second = (UniformPolicy(task_of(SPACES["grid-2D-4"](0.3)), CPU) for _ in range(2))
    state = advance(first, 3)
    second.load({name: value.clone() for name, value in state.items()})
    straight = advance(first, 2)
    assert same_tensors(advance(second, 2), straight)
    assert not same_tensors(state, straight)


# What users see, of random intentions and chains alike


@pytest.mark.parametrize("task", ["words", "grid"])
@pytest.mark.parametrize("method", METHODS)
def test_runs_go_through_the_command_line(
    method: str, task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main(["train", task, "--method", method, "--out", str(run), *flags_of(method, task)]) == 0
    rows = Run(path=run).rows()
    assert [row["step"] for row in rows] == [5, 10, 15, 20]
    assert rows[-1]["trajectories"] == (160 if method == "random" else 168)
    assert ("loss" in rows[-1], "acceptance" in rows[-1]) == (method == "mars", method != "random")
    has_law = method == "random" or (method, task) == ("mh", "grid")
    assert ("tv" in rows[-1]) == has_law
    assert main(["evaluate", str(run), "--samples", "64", "--device", "cpu"]) == 0
    assert main(["sample", str(run), "-n", "300", "--device", "cpu"]) == 0  # more than a chain has kept
    assert main(["report", str(run)]) == 0
    found = read_json(run / "exact.json")
    assert (found["tv"] is not None) == has_law
    assert found["dynamics_nll"] is None
    assert found["sample_mean"] > 0
    assert bool(found["orders"]) == (task == "words")
    assert len((run / "samples.csv").read_text().splitlines()) == 301
    if has_law:
        assert found["tv"] == pytest.approx(rows[-1]["tv"], abs=1e-9)
    capsys.readouterr()


@pytest.mark.parametrize("task", ["words", "grid", "tfbind8"])
@pytest.mark.parametrize("method", METHODS)
def test_a_step_never_waits_for_the_device(method: str, task: str) -> None:
    learner = make_learner(make_task(task, small_on(task, method=method, noise__kind="hidden")), CPU)
    learner.step()
    with NoWait():
        learner.step()
        with pytest.raises(AssertionError):
            learner.draw(1, seed=0).scores.max().item()


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_run_is_the_same_run(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--method", method, *flags_of(method)]
    assert main(["train", "grid", "--out", str(tmp_path / "straight"), *words]) == 0
    halfway = tmp_path / "halfway"
    learner = make_learner(make_task("grid", small(method=method)), CPU)
    run = Run(path=halfway)
    run.create("grid", small(method=method))
    for row in Run(path=tmp_path / "straight").rows()[:2]:
        run.append(row)
    for _ in range(10):
        learner.step()
        learner.done += 1
        if learner.done % 5 == 0:
            learner.read_meters()
    run.save(learner)
    assert not same_runs(halfway, tmp_path / "straight")
    assert main(["train", "grid", "--resume", "--out", str(halfway), "--device", "cpu"]) == 0
    assert same_runs(halfway, tmp_path / "straight")
    capsys.readouterr()


@pytest.mark.parametrize("method", METHODS)
def test_a_folder_gives_the_samples_of_its_learner(method: str, tmp_path: Path) -> None:
    learner, run = make_learner(make_task("grid", small(method=method)), CPU), Run(path=tmp_path / "run")
    advance(learner, 6)
    run.create("grid", learner.config)
    run.save(learner)
    loaded = run.load(CPU)
    for n in (20, 90):
        assert torch.equal(loaded.draw(n, 1).objects, learner.draw(n, 1).objects)
    figures = measure(loaded, 64, seed=2)
    assert figures == measure(learner, 64, seed=2)
    assert figures != measure(make_learner(learner.task, CPU), 64, seed=2) or method == "random"
