"""The trainer: what a step changes, what its state must hold, and that it learns what can be learned."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from balances import BALANCE
from exact_tables import MIXED
from small_runs import CPU, balance, collected, same_tensors, small, tiny_task, tiny_trainer, weights
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import OfflineConfig
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.landscapes.base import beta_at
from sgfn.landscapes.tasks import make_task
from sgfn.learning.forms import FORMS
from sgfn.learning.kernels.shared_states import SharedStateScorer
from sgfn.learning.learner import NonFiniteError
from sgfn.learning.trainer import METERS, Trainer
from sgfn.nets.heads import FlowNets
from sgfn.objectives import OBJECTIVES
from sgfn.objectives.entropy import ENTROPY_METERS
from sgfn.objectives.parts import MEANINGS

EVERYTHING: dict[str, Any] = {
    "noise__alpha": 0.3,
    "objective": "subtb",
    "dynamics__mode": "replay",
    "dynamics__rounds": 2,
    "replay__updates": 1,
    "replay__capacity": 30,
    "reward__ramp": 5.0,
    "beta": 3.0,
    "temperature": 1.5,
    "exploration": "entropy",
    "entropy__variant": "exponential",  # its ratio is far from one at any entropy
}


def saved(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.state().items()}


def build(task: str, **changes: Any) -> Trainer:
    if task.startswith("tiny"):
        return tiny_trainer("AB" if task == "tiny-stop" else "ABC", stop=task == "tiny-stop", **changes)
    return Trainer(make_task(task, small(**changes)), CPU)


def advance(trainer: Trainer, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        trainer.step()
        trainer.done += 1
    return saved(trainer)


# State


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("tiny", {}),
        ("tiny", {"dynamics__mode": "known", "form": "blind", "objective": "db"}),
        ("tiny", EVERYTHING),
        ("tiny-stop", {"net__encoder": "transformer", "form": "published", "net__heads": 2}),
        ("grid", {"form": "published"}),
        ("grid", EVERYTHING),
        ("grid", EVERYTHING | {"thought__layers": 1, "thought__width": 8}),
    ],
)
def test_a_trainer_continues_from_the_state_of_another(task: str, changes: dict[str, Any]) -> None:
    first, second = build(task, **changes), build(task, **changes)
    state = advance(first, 5)
    advance(second, 2)  # it has a past of its own, which must go
    second.load({name: value.clone() for name, value in state.items()})
    assert same_tensors(saved(second), state)
    assert second.done == 5
    straight = advance(first, 4)
    assert same_tensors(advance(second, 4), straight)
    assert not same_tensors(advance(build(task, **changes), 4), straight)


PARTS = ("nets", "dynamics", "optimiser", "dynamics_optimiser", "buffer", "self.generator", "self.index")
PARTS += ("self.meters", "exploration.heat")


def test_no_part_of_the_state_is_superfluous() -> None:
    """Whatever is left as it was in a new trainer, the run goes another way (a seed where heat decides some race)."""
    first, other = (build("tiny", **EVERYTHING, optim__lr=0.1, optim__warmup=0, seed=1) for _ in range(2))
    untouched, state = saved(other), advance(first, 5)
    straight = advance(first, 3)
    assert {name.partition(".")[0] for name in state} == {name.partition(".")[0] for name in PARTS}
    for part in (None, *PARTS):
        left = {name for name in state | untouched if part and f"{name}.".startswith(f"{part}.")}
        mixed = {n: v for n, v in state.items() if n not in left} | {n: v for n, v in untouched.items() if n in left}
        other.load({name: value.clone() for name, value in mixed.items()})
        assert same_tensors(advance(other, 3), straight) == (part is None), part


def test_a_state_that_does_not_fit_is_refused() -> None:
    plain, state = tiny_trainer(), saved(tiny_trainer())
    for name in ("nets.log_z", "dynamics.outcome.bias", "self.index", "self.generator"):
        with pytest.raises((RuntimeError, KeyError)):
            plain.load({key: value for key, value in state.items() if key != name})
    wider, buffered = tiny_trainer(net__hidden=17), tiny_trainer(replay__updates=1, replay__capacity=9)
    with pytest.raises(RuntimeError):
        wider.load(state)
    with pytest.raises(RuntimeError, match="the buffer differs"):
        buffered.load(state)
    with pytest.raises(RuntimeError, match="the buffer differs"):
        plain.load(saved(buffered))
    with pytest.raises(RuntimeError, match="the buffer differs"):
        buffered.load(saved(tiny_trainer(replay__updates=1, replay__capacity=1)))  # would broadcast
    plain.load(state)


def test_the_seed_decides_everything() -> None:
    first, same, other = (advance(tiny_trainer(seed=seed), 3) for seed in (4, 4, 5))
    assert same_tensors(first, same)
    assert not same_tensors(first, other)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    assert same_tensors(advance(tiny_trainer(seed=4), 3), first)
    assert torch.equal(torch.get_rng_state(), before)  # and nothing else is touched


# Gradients


@pytest.mark.parametrize(("mode", "learns"), [("known", False), ("batch", True), ("replay", True)])
def test_the_dynamics_model_learns_only_where_it_is_used(mode: str, learns: bool) -> None:
    trainer = tiny_trainer(dynamics__mode=mode)
    before = weights(trainer, "dynamics"), weights(trainer, "nets")
    advance(trainer, 3)
    assert torch.equal(weights(trainer, "dynamics"), before[0]) != learns
    assert not torch.equal(weights(trainer, "nets"), before[1])


@pytest.mark.parametrize("form", FORMS)
def test_policy_and_dynamics_do_not_share_gradients(form: str) -> None:
    trainer = tiny_trainer(form=form, noise__alpha=0.3)
    states, _, batch = collected(trainer)
    kernel = trainer.general.noise_kernel(batch.states[:, :-1])
    assert kernel.log_matrix().requires_grad
    balance(trainer, states, batch, 1.0, kernel).backward()
    assert all(p.grad is None for p in trainer.dynamics.parameters())
    assert trainer.nets.policy.weight.grad is not None
    trainer.general.fit_noise_model(batch, torch.tensor(1.0))
    assert all(gradient.any() for gradient in trainer.dynamics_optimiser.gradients[-2:])
    assert not trainer.optimiser.gradient.any()


def test_a_rate_of_zero_holds_one_model_and_not_the_other() -> None:
    for changes, still, moving in (
        ({"dynamics__lr": 0.0}, "dynamics", "nets"),
        ({"optim__lr": 0.0}, "nets", "dynamics"),
    ):
        trainer = tiny_trainer(**changes)
        before = weights(trainer, still), weights(trainer, moving)
        advance(trainer, 3)
        assert torch.equal(weights(trainer, still), before[0])
        assert not torch.equal(weights(trainer, moving), before[1])


# Batches


def test_the_guess_of_log_z_spares_the_first_losses() -> None:
    trainer = tiny_trainer(reward__norm=1e-4)  # rewards far from one
    _, own, batch = collected(trainer)
    kernel = trainer.general.noise_kernel(batch.states[:, :-1])

    def loss() -> float:
        return float(balance(trainer, trainer.general.state_scorer(8), own, 1.0, kernel).detach())

    guessed = loss()
    with torch.no_grad():
        trainer.nets.log_z.zero_()
    assert loss() > 50 * guessed


def test_the_ramp_of_the_exponent_reaches_the_loss() -> None:
    trainer = tiny_trainer(beta=5.0, reward__ramp=3.0)
    states, _, batch = collected(trainer)
    kernel = trainer.general.noise_kernel(batch.states[:, :-1])
    losses = [
        float(balance(trainer, states, batch, beta_at(torch.tensor(t), 5.0, 3.0), kernel).detach())
        for t in (0.0, 0.0, 3.0, 1e9)
    ]
    assert losses[0] == losses[1]
    assert len(set(losses)) == 3


def test_the_offline_share_comes_from_the_file() -> None:
    goals = torch.tensor([[0, 0, 0], [2, 1, 2]])
    task = tiny_task(small(batch=40, noise__alpha=0.3, offline=OfflineConfig(file=Path("known.csv"), share=0.25)))
    trainer = Trainer(task, CPU, goals)
    _, own, batch = collected(trainer, 40)
    assert own.valid.shape[0] == 30
    assert batch.valid.shape[0] == 40
    assert torch.equal(batch.states[:30], own.states)
    objects = trainer.env.objects(batch.states[:, -1])
    known = (objects[:, None] == goals).all(-1).any(-1)
    assert known[30:].all()
    assert not known[:30].all()
    assert len(objects[30:].unique(dim=0)) == 2
    assert_close(batch.log_reward[30:], trainer.task.log_reward(objects[30:]))
    _, alone, together = collected(Trainer(task, CPU), 40)
    assert alone is together
    assert alone.valid.shape[0] == 40


def test_known_objects_are_learned_from() -> None:
    config = small(offline=OfflineConfig(file=Path("known.csv"), share=0.5))
    goals = torch.tensor([[0, 0, 0]])
    trained, plain = Trainer(tiny_task(config), CPU, goals), Trainer(tiny_task(config), CPU)
    assert not same_tensors(advance(trained, 3), advance(plain, 3))
    assert torch.isfinite(weights(trained)).all()


def test_replay_makes_further_updates() -> None:
    plain, replayed = tiny_trainer(), tiny_trainer(replay__updates=2, replay__capacity=20)
    assert torch.equal(weights(plain), weights(replayed))
    advance(plain, 3)
    advance(replayed, 3)
    assert not torch.equal(weights(plain), weights(replayed))
    assert plain.buffer is None
    assert replayed.buffer is not None
    assert int(replayed.buffer.added) == 24
    assert float(replayed.optimiser.state()["0.step"]) == 9.0
    assert float(plain.optimiser.state()["0.step"]) == 3.0


def test_replayed_batches_have_their_own_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for batch, wanted in ((0, 8), (33, 33)):
        trainer = tiny_trainer(replay__updates=1, replay__batch=batch)
        assert trainer.buffer is not None
        sizes, pick = [], trainer.buffer.pick
        monkeypatch.setattr(trainer.buffer, "pick", lambda u, s=pick, z=sizes: z.append(len(u)) or s(u))
        trainer.step()
        assert sizes == [wanted]


@pytest.mark.parametrize(("batch", "levels"), [(1, 1), (3, 2), (8, 2), (9, 3), (50, 3)])
@pytest.mark.parametrize("form", ["marginal", "blind"])
def test_shared_states_give_the_same_loss_and_gradients(form: str, batch: int, levels: int) -> None:
    trainer = tiny_trainer(form=form, batch=batch, noise__alpha=0.3)
    advance(trainer, 2)
    states, _, rollouts = collected(trainer, batch)
    assert isinstance(states, SharedStateScorer)
    assert states.levels == levels
    kernel = trainer.general.noise_kernel(rollouts.states[:, :-1])
    assert_close(kernel.log_matrix(), trainer.dynamics.operator(rollouts.states[:, :-1]).log_matrix())

    def gradients(scorer: FlowNets | SharedStateScorer, beta: float = 1.0) -> Tensor:
        trainer.nets.zero_grad()
        balance(trainer, scorer, rollouts, beta, kernel).backward()
        return torch.cat([p.grad.flatten() for p in trainer.nets.parameters() if p.grad is not None])

    shared = gradients(states)
    assert_close(shared, gradients(trainer.nets), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(shared, gradients(trainer.nets, beta=2.0), atol=1e-5, rtol=1e-4)


def test_graphs_and_the_published_form_share_no_levels() -> None:
    for trainer in (build("grid"), tiny_trainer(form="published"), tiny_trainer()):
        states = trainer.general.state_scorer(100)
        assert isinstance(states, SharedStateScorer)
        assert (states.levels > 0) == (states.table is not None) == (trainer.env.tree and not trainer.nets.reads_final)
    reader = tiny_trainer(net__encoder="transformer", net__heads=2)
    assert isinstance(reader.general.state_scorer(100), FlowNets)


@pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
@pytest.mark.parametrize("form", FORMS)
def test_an_update_reuses_what_its_rollout_computed(task: str, form: str) -> None:
    trainer = build(task, form=form, noise__alpha=0.3)
    advance(trainer, 2)
    states, general = SharedStateScorer(trainer.env, trainer.nets), trainer.general
    batch = general.collect(states, general.draw(trainer.generator, trainer.temperature))[1]
    assert states.actor.sums()[0].shape[:2] == (8, int(batch.length.max()))  # none is made once all have ended
    kernel = general.noise_kernel(batch.states[:, :-1])

    def gradients(scorer: FlowNets | SharedStateScorer) -> Tensor:
        loss = balance(trainer, scorer, batch, 1.0, kernel)
        found = torch.autograd.grad(loss, trainer.optimiser.parameters, materialize_grads=True)
        return torch.cat([g.flatten() for g in found])

    plain = gradients(trainer.nets)
    assert_close(gradients(states), plain, atol=1e-5, rtol=1e-4)
    for kept in states.actor.steps:
        kept[0] += 0.1  # so the sums are read, and right
    assert not torch.allclose(gradients(states), plain, atol=1e-5, rtol=1e-4)
    states.forget()
    assert_close(gradients(states), plain, atol=1e-5, rtol=1e-4)


# Every combination


COMBINATIONS = [*product(FORMS, BALANCE), *[("marginal", name) for name in OBJECTIVES if name not in BALANCE]]
"""What is not a balance has a form of its own."""


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("task", ["tiny", "tiny-stop", "grid"])
@pytest.mark.parametrize(("form", "objective"), COMBINATIONS)
def test_every_combination_runs(task: str, form: str, objective: str, alpha: float) -> None:
    if (objective, task) == ("eflow", "grid"):
        with pytest.raises(ValueError, match=r"^objective 'eflow' needs a tree"):
            build(task, form=form, objective=objective, noise__alpha=alpha)
        return
    trainer = build(task, form=form, objective=objective, noise__alpha=alpha)
    before = weights(trainer)
    advance(trainer, 3)
    meters = trainer.read_meters()  # raises unless all is finite
    entropy = ENTROPY_METERS if objective == "kl-entropy" else ()
    assert {*METERS, *entropy, "log_z", "beta"} <= set(meters)
    assert set(meters) - {*METERS, *MEANINGS, "beta"} == set()
    assert not torch.equal(weights(trainer), before)


@pytest.mark.parametrize(("task", "objective"), [("words", "tb"), ("words", "kl"), ("tfbind8", "subtb")])
def test_the_larger_tasks_run(task: str, objective: str) -> None:
    trainer = build(task, objective=objective)
    before = weights(trainer)
    advance(trainer, 3)
    trainer.read_meters()
    assert not torch.equal(weights(trainer), before)


@pytest.mark.parametrize("mode", ["batch", "replay", "known"])
@pytest.mark.parametrize("task", ["tiny", "grid"])
@pytest.mark.parametrize(("objective", "alpha"), [("tb", 0.25), ("kl", 0.25), ("kl", 0.0), ("kl-entropy", 0.0)])
def test_every_way_to_have_the_dynamics_runs(task: str, mode: str, objective: str, alpha: float) -> None:
    trainer = build(task, dynamics__mode=mode, objective=objective, noise__alpha=alpha, replay__updates=1)
    before = weights(trainer)
    advance(trainer, 2)
    trainer.read_meters()
    assert not torch.equal(weights(trainer), before)


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize(
    "changes",
    [
        *[{"objective": objective} for objective in OBJECTIVES],
        {"form": "published"},
        {"dynamics__mode": "known"},
        {"dynamics__mode": "replay", "replay__updates": 1},
        {"dynamics__model": "positional"},
        {"thought__layers": 1, "thought__width": 8},
        {"net__encoder": "transformer", "net__heads": 2},
    ],
)
def test_intentions_may_be_another_set_than_outcomes(name: str, changes: dict[str, Any]) -> None:
    task = tiny_task(small(**changes), "ABC", 2)
    trainer = Trainer(replace(task, env=MIXED[name](0.3)), CPU)
    before = weights(trainer)
    advance(trainer, 2)
    trainer.read_meters()
    assert not torch.equal(weights(trainer), before)
    assert float(trainer.law().sum()) == pytest.approx(1.0, abs=1e-6)
    assert trainer.calibrated(64, 0)["dynamics_nll"] > 0.0
    assert int(trainer.draw(100, 0).intended.max()) == trainer.env.actions - 1
    with pytest.raises(ValueError, match=r"^form 'blind' takes outcomes for intentions, which are another set here"):
        Trainer(replace(trainer.task, config=small(form="blind")), CPU)


# Meters


def test_meters_are_means_since_the_last_reading() -> None:
    often, seldom = tiny_trainer(), tiny_trainer()
    readings = []
    for _ in range(3):
        often.step()
        readings.append(often.read_meters())
        seldom.step()
    means = seldom.read_meters()
    for name in ("loss", "dynamics_nll", "log_reward", "length", "reward"):
        assert means[name] == pytest.approx(sum(r[name] for r in readings) / 3, rel=1e-5)
    assert means["log_z"] == readings[-1]["log_z"] == float(seldom.nets.log_z.detach())
    assert means["length"] == 3.0
    assert len({r["loss"] for r in readings}) == 3


@pytest.mark.parametrize("part", ["nets", "dynamics"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_noticed(part: str, value: float) -> None:
    trainer = tiny_trainer()
    trainer.step()
    trainer.check_finite()
    trainer.read_meters()
    with torch.no_grad():
        list(trainer.modules()[part].parameters())[-1][0] = value
    with pytest.raises(NonFiniteError, match=r"near step 0 .*lower --optim\.lr"):
        trainer.check_finite()
    with pytest.raises(NonFiniteError):
        trainer.read_meters()


def test_a_loss_that_is_no_number_is_noticed() -> None:
    trainer = tiny_trainer()
    trainer.step()
    trainer.meters[METERS.index("loss")] = torch.nan
    with pytest.raises(NonFiniteError, match="loss nan"):
        trainer.read_meters()
    assert trainer.read_meters()["loss"] == 0.0  # the reading has cleared it


# Learning


RECIPE: dict[str, Any] = {"noise__alpha": 0.5, "steps": 150, "batch": 64, "net__hidden": 32, "optim__warmup": 10}
RECIPE |= {"optim__lr": 0.03, "dynamics__lr": 0.03}


@pytest.mark.parametrize("task", ["tiny", "tiny-stop"])
def test_the_marginal_form_comes_to_the_floor(task: str) -> None:
    trainer = build(task, **RECIPE)
    known, root = reference(trainer.task), trainer.env.initial(1)
    assert known.floor is not None

    def tv() -> float:
        return exact.total_variation(trainer.law(), known.target)

    def noise_gap() -> float:
        """At the root, over letters: a stop cannot be meant there."""
        gap = trainer.general.noise_kernel(root).matrix() - trainer.env.kernel(root)
        return float(gap[:, :2, :2].detach().abs().max())

    floor, ignoring = (exact.total_variation(law, known.target) for law in (known.floor, known.blind))
    assert min(tv(), ignoring) > floor + 0.05
    assert noise_gap() > 0.1
    advance(trainer, 150)
    assert tv() < floor + 0.03
    assert noise_gap() < 0.1


def test_the_blind_form_stays_above_it() -> None:
    trainer = build("tiny", form="blind", **RECIPE)
    known = reference(trainer.task)
    assert known.floor is not None
    advance(trainer, 150)
    found = exact.total_variation(trainer.law(), known.target)
    assert found > exact.total_variation(known.floor, known.target) + 0.05
    assert found == pytest.approx(exact.total_variation(known.blind, known.target), abs=0.01)  # as theory says
