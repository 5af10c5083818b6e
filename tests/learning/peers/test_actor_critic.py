"""What `a2c`, `ppo` and `sac` must all do: learn the known optimum, resume bit for bit, refuse what they cannot use."""

from pathlib import Path
from typing import Any

import pytest
import torch
from device_watch import AsOnDevice
from small_runs import CPU, complaint, flags_of, same_tensors, small, tiny_task
from torch import Tensor
from torch.testing import assert_close

from sgfn.cli.commands import main
from sgfn.config.files import read_json
from sgfn.envs import laws
from sgfn.envs.trajectories import Trajectories
from sgfn.evaluation import exact
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.learner import Learner, NonFiniteError
from sgfn.learning.methods import make_learner
from sgfn.learning.peers.a2c import A2C
from sgfn.learning.peers.actor_critic import METERS, entropy, soft_value, step_mean, step_sum, with_final_rewards
from sgfn.learning.peers.ppo import PPO
from sgfn.learning.peers.sac import SAC
from sgfn.runs.folder import Run

METHODS: dict[str, type[Learner]] = {"a2c": A2C, "ppo": PPO, "sac": SAC}
every_method = pytest.mark.parametrize("method", METHODS)
every_task = pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
RAMP: dict[str, Any] = {"noise__alpha": 0.3, "beta": 3.0, "reward__ramp": 5.0, "replay__capacity": 30}


def task_of(name: str, **changes: Any) -> Task:
    config = small(**changes)
    if name == "tiny-stop":
        return tiny_task(config, "AB", stop=True)
    return tiny_task(config) if name == "tiny" else make_task(name, config)


def build(method: str, name: str = "tiny", **changes: Any) -> Learner:
    return METHODS[method](task_of(name, method=method, **changes), CPU)


def saved(learner: Learner) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in learner.state().items()}


def advance(learner: Learner, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        learner.step()
        learner.done += 1
    return saved(learner)


# Learning

LESSON: dict[str, Any] = {"noise__alpha": 0.25, "net__hidden": 32, "optim__warmup": 20, "optim__clip": 1.0}
LESSONS: dict[str, dict[str, Any]] = {
    "a2c": {"steps": 120, "batch": 256, "optim__lr": 0.02},
    "a2c grid": {"optim__lr": 0.008},  # nothing but the rate keeps it from settling on one corner
    "ppo": {"steps": 40, "batch": 256, "optim__lr": 0.02},
    "sac": {"steps": 40, "batch": 512, "optim__lr": 0.03, "rl__updates": 4, "rl__average": 0.15},
}


def taught(method: str, task: str, **changes: Any) -> tuple[Task, Tensor, Tensor]:
    """A task, and the laws before and after a short training."""
    lesson = LESSON | LESSONS[method] | LESSONS.get(f"{method} {task}", {}) | changes
    learner = build(method, task, **lesson)
    before = learner.law()
    advance(learner, lesson["steps"])
    return learner.task, before, learner.law()


def optimal(task: Task, temperature: float) -> Tensor:
    """Law of the known optimum."""
    log_reward = task.beta * task.log_reward(task.env.all_objects())
    return laws.law(task.env, laws.table_policy(task.env, exact.soft_policy(task.env, log_reward, temperature)))


@pytest.mark.parametrize("changes", [{"beta": 3.0}, {"grid__side": 3, "reward__minimum": 0.05}], ids=["tiny", "grid"])
@every_method
def test_the_known_optimum_is_learned(method: str, changes: dict[str, Any]) -> None:
    task, before, after = taught(method, "grid" if "grid__side" in changes else "tiny", **changes)
    wanted = optimal(task, 1.0)
    assert exact.total_variation(after, wanted) < 0.05
    assert exact.total_variation(before, wanted) > 0.3
    assert exact.total_variation(after, optimal(task, 0.5)) > 0.05  # and not the optimum at another temperature


@every_method
def test_at_a_low_temperature_the_reward_is_nearly_the_best(method: str) -> None:
    task, before, after = taught(method, "tiny", rl__temperature=0.05)
    log_reward = task.log_reward(task.env.all_objects()).double()
    best = float(optimal(task, 0.0) @ log_reward)
    assert best - 0.08 < float(after @ log_reward) < best + 1e-6
    assert float(before @ log_reward) < best - 0.6


# State


@every_task
@every_method
def test_five_steps_saved_and_three_more_are_eight(method: str, task: str) -> None:
    first, second = build(method, task, **RAMP), build(method, task, **RAMP)
    state = advance(first, 5)
    advance(second, 2)  # it has a past of its own, which must go
    second.load({name: value.clone() for name, value in state.items()})
    assert same_tensors(saved(second), state)
    straight = advance(first, 3)
    assert same_tensors(advance(second, 3), straight)
    assert second.done == 8
    assert not same_tensors(advance(build(method, task, **RAMP), 3), straight)


@every_method
def test_no_part_of_the_state_is_superfluous(method: str) -> None:
    """Whatever is left as it was in a new learner, the run goes another way."""
    first, other = build(method, **RAMP), build(method, **RAMP)
    untouched, state = saved(other), advance(first, 5)
    straight = advance(first, 3)
    parts = [*first.modules(), *first.optimisers(), *first.memory(), "self.generator", "self.index", "self.meters"]
    assert {name.partition(".")[0] for name in state} == {name.partition(".")[0] for name in parts}
    for part in (None, *parts):
        left = {name for name in state | untouched if part and f"{name}.".startswith(f"{part}.")}
        mixed = {n: v for n, v in state.items() if n not in left} | {n: v for n, v in untouched.items() if n in left}
        other.load({name: value.clone() for name, value in mixed.items()})
        assert same_tensors(advance(other, 3), straight) == (part is None), part


@every_method
def test_the_seed_decides_everything(method: str) -> None:
    first, same, other = (advance(build(method, seed=seed), 3) for seed in (4, 4, 5))
    assert same_tensors(first, same)
    assert not same_tensors(first, other)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    assert same_tensors(advance(build(method, seed=4), 3), first)
    assert torch.equal(torch.get_rng_state(), before)  # and nothing else is touched


# A step


@every_task
@every_method
def test_a_step_moves_every_network_and_fills_the_meters(method: str, task: str) -> None:
    learner = build(method, task, noise__alpha=0.3)
    assert type(learner) is METHODS[method]
    before = saved(learner)
    advance(learner, 2)
    meters = learner.read_meters()  # raises unless all is finite
    assert tuple(meters) == METERS
    assert 0 < meters["entropy"] <= torch.tensor(float(learner.env.actions)).log()
    assert meters["value_error"] > 0
    assert learner.trajectories == 3 * 8  # one batch more: it starts the critic
    assert all(not torch.equal(before[n], v) for n, v in saved(learner).items() if n.endswith("head.weight"))
    frozen = build(method, task, optim__lr=0.0)
    start = {name: value for name, value in saved(frozen).items() if name.partition(".")[0] in frozen.modules()}
    after = advance(frozen, 2)
    assert all(torch.allclose(after[name], value, atol=1e-7) for name, value in start.items())


@pytest.mark.parametrize("task", ["words", "motif", "grid"])
@every_method
def test_other_tasks_and_noise_run(method: str, task: str) -> None:
    learner = build(method, task, noise__kind="uniform" if task == "words" else "hidden")
    before = saved(learner)
    advance(learner, 2)
    learner.read_meters()
    assert not torch.equal(saved(learner)["policy.head.weight"], before["policy.head.weight"])
    assert learner.draw(20, seed=0).objects.shape == (20, learner.env.object_width)


@every_method
def test_critics_begin_at_what_is_earned(method: str) -> None:
    """One step, reward beta log R + tau log V without any choice made yet."""
    config = small(method=method, batch=4000, beta=2.0, rl__temperature=0.5, noise__alpha=0.3)
    task = tiny_task(config, length=1)
    learner = make_learner(task, CPU)
    log_reward = task.log_reward(task.env.all_objects()).double()
    wanted = 2.0 * float(learner.law() @ log_reward) + 0.5 * float(torch.tensor(3.0).log())
    biases = [v for name, v in learner.state().items() if name.endswith("head.bias") and "policy" not in name]
    assert biases
    for bias in biases:
        assert_close(bias.mean().item(), wanted, atol=0.1, rtol=0)
    assert abs(wanted) > 0.3


@every_method
def test_the_ramp_of_the_exponent_reaches_the_critic(method: str) -> None:
    ramped, plain = build(method, beta=5.0, reward__ramp=1e9), build(method, beta=1.0)
    assert same_tensors(advance(ramped, 2), advance(plain, 2))  # the exponent has hardly left one
    assert not same_tensors(saved(build(method, beta=5.0)), saved(build(method, beta=1.0)))


@every_method
def test_exploring_is_for_methods_that_can_learn_from_it(method: str) -> None:
    plain, other = build(method), build(method, temperature=0.01)  # at first all actions are nearly alike
    assert same_tensors(advance(plain, 2), advance(other, 2)) == (method != "sac")


@every_method
def test_weights_that_are_no_numbers_are_noticed(method: str) -> None:
    learner = build(method)
    learner.check_finite()
    for module in learner.modules().values():
        weight = list(module.parameters())[-1].data
        kept, weight[0] = weight[0].clone(), float("nan")
        with pytest.raises(NonFiniteError, match=r"lower --optim\.lr"):
            learner.check_finite()
        weight[0] = kept
    learner.check_finite()


WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique")


class Watch(AsOnDevice):
    """Notes every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(str(func))
        return func(*args, **kwargs or {})


@every_task
@every_method
def test_a_step_never_waits_for_the_device(method: str, task: str) -> None:
    """No operation whose result the host must see; shapes do not depend on what happens."""
    learner = build(method, task, noise__alpha=0.3, reward__ramp=5.0)
    learner.step()
    with Watch() as watch:
        learner.step()
        learner.snapshot()
    waits = [name for name in watch.names if any(word in name for word in WAITS)]
    assert waits == []
    assert len(watch.names) > 30
    with Watch() as watch:
        learner.check_finite()  # this does
    assert any("_local_scalar_dense" in name for name in watch.names)


# Parts


def test_parts_by_hand() -> None:
    half = torch.tensor([0.5, 0.5, 0.0]).log()  # the third action is illegal
    assert float(entropy(half)) == pytest.approx(0.6931472)
    assert float(soft_value(half, torch.tensor([1.0, 3.0, 100.0]), 2.0)) == pytest.approx(2.0 + 2 * 0.6931472)
    valid = torch.tensor([[True, True], [True, False]])
    values = torch.tensor([[1.0, 2.0], [6.0, 100.0]])
    assert float(step_sum(values, valid)) == 4.5
    assert float(step_mean(values, valid)) == 3.0


def test_gradients_are_finite_where_actions_are_illegal() -> None:
    logits = torch.zeros(3, requires_grad=True)
    log_policy = torch.log_softmax(logits.masked_fill(torch.tensor([False, False, True]), -torch.inf), 0)
    soft_value(log_policy, torch.tensor([1.0, 3.0, torch.inf]), 0.5).backward()
    assert_close(logits.grad, torch.tensor([-0.5, 0.5, 0.0]))


def test_a_finished_state_is_worth_its_reward() -> None:
    batch = Trajectories(
        intended=torch.zeros(2, 2, dtype=torch.int64),
        realised=torch.zeros(2, 2, dtype=torch.int64),
        valid=torch.tensor([[True, True], [True, False]]),
        states=torch.zeros(2, 3, 1, dtype=torch.int64),
        log_reward=torch.tensor([-1.0, -2.0]),
    )
    value = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert with_final_rewards(value, batch, torch.tensor(3.0)).tolist() == [[1.0, 2.0, -3.0], [4.0, -6.0, -6.0]]


# What users see


@every_method
def test_a_transformer_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match=f"^method '{method}' reads states one by one: use --net.encoder mlp"):
        build(method, net__encoder="transformer")
    build(method)


@every_method
def test_runs_go_through_the_command_line(method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, words = tmp_path / "run", ["--method", method, *flags_of(method)]
    assert main(["train", "grid", "--out", str(run), *words]) == 0
    rows = Run(path=run).rows()
    assert [row["step"] for row in rows] == [5, 10, 15, 20]
    assert set(METERS) | {"tv"} <= rows[-1].keys()
    assert main(["evaluate", str(run), "--samples", "64", "--device", "cpu"]) == 0
    assert main(["sample", str(run), "-n", "10", "--device", "cpu"]) == 0
    assert main(["report", str(run)]) == 0
    found = read_json(run / "exact.json")
    assert found["tv"] == pytest.approx(rows[-1]["tv"], abs=1e-6)
    assert found["dynamics_tv"] is None
    learner = make_learner(Run(path=run).task(), CPU)
    Run(path=run).restore(learner)
    assert same_tensors(learner.state(), Run(path=run).load_state())
    line = complaint(capsys, ["train", "grid", "--out", str(tmp_path / "no"), *words, "--net.encoder", "transformer"])
    assert line == f"method '{method}' reads states one by one: use --net.encoder mlp"
    assert not (tmp_path / "no").exists()
