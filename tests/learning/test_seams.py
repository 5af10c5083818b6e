"""What a user brings goes through every way of running: noise of the state, objectives, raw states, environments."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from own_noise import AllOrNothing, Rotation
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, TabulatedEnv, laws
from sgfn.envs.base import Env
from sgfn.envs.trajectories import Episodes
from sgfn.evaluation import exact
from sgfn.evaluation.orders import expectation, scored_by
from sgfn.landscapes import Landscape
from sgfn.landscapes.tasks import Task, make_task
from sgfn.learning.forms import FORMS, FormEntry
from sgfn.learning.general import GeneralBackend
from sgfn.learning.kernels.fixed_length import FixedLengthBackend
from sgfn.learning.rollout import rollout
from sgfn.learning.scoring import score_marginal, score_published
from sgfn.learning.trainer import Trainer
from sgfn.noise import Mixtures, Noise, UniformSlip
from sgfn.objectives.scores import Scores

CPU = torch.device("cpu")


class Ones(Landscape):
    """The share of the last letter."""

    maximum, mode_level = 1.0, 1.0

    def scores(self, objects: Tensor) -> Tensor:
        return (objects == objects.amax(-1, keepdim=True)).float().mean(-1)


class AfterA(SequenceEnv):
    """Noise that reads the letter before: after an A nine in ten letters slip, else one in ten."""

    def kernel(self, state: Tensor, dtype: torch.dtype = torch.float32, rate: Any = None) -> Tensor:
        written = self.written(state)
        last = state.gather(-1, (written - 1).clamp(min=0)[..., None])[..., 0]
        alpha = torch.where((written > 0) & (last == 0), 0.9, 0.1).to(dtype)[..., None, None]
        eye = torch.eye(self.vocab, dtype=dtype, device=state.device)
        found = (1 - alpha) * eye + alpha / self.vocab
        return torch.where(self.done(state)[..., None, None], eye, found)


def task_of(env: Env, **changes: Any) -> Task:
    config = TrainConfig().with_(**{"batch": 64, "net__hidden": 32, "dynamics__hidden": 16, **changes})
    return Task(name="own", summary="own", env=env, landscape=Ones(), beta=1.0, config=config)


def after_a(length: int = 3) -> AfterA:
    return AfterA(length=length, alphabet="AB", noise=UniformSlip(alpha=0.5))


# finding 1: noise that depends on the state


def test_noise_of_the_state_is_what_is_simulated_tabulated_and_evaluated() -> None:
    env = after_a()
    trainer = Trainer(task_of(env), CPU)
    assert isinstance(trainer.backend, GeneralBackend)  # the quick way knows noise by position only
    assert isinstance(trainer.env, TabulatedEnv)
    states = torch.cat(list(env.levels()))
    coded = trainer.env.embed(states)
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(trainer.env.kernel(coded, dtype), env.kernel(states, dtype))
        assert_close(trainer.env.operator(coded, dtype).matrix(), env.kernel(states, dtype))
    batch = rollout(trainer.env, trainer.actor(), trainer.task.log_reward, batch=20000, generator=torch.Generator())
    after = batch.realised[:, 0] == 0
    slipped = (batch.intended != batch.realised).double()[:, 1]
    assert float(slipped[after].mean()) == pytest.approx(0.45, abs=0.02)
    assert float(slipped[~after].mean()) == pytest.approx(0.05, abs=0.01)
    plain = SequenceEnv(length=3, alphabet="AB", noise=UniformSlip(alpha=0.5))  # and what its noise object says is not
    assert not torch.allclose(plain.kernel(states), env.kernel(states))


def test_noise_of_the_state_has_its_own_law_floor_and_samples() -> None:
    env = after_a()
    trainer = Trainer(task_of(env), CPU)
    wanted = laws.law(env, trainer.policy)
    assert_close(trainer.law(), wanted, atol=1e-6, rtol=1e-5)
    assert_close(
        trainer.env.law(trainer._policy_table(trainer.env, trainer.nets.log_policy)), wanted, atol=1e-6, rtol=1e-5
    )
    drawn = trainer.draw(40000, seed=0)
    counts = env.object_index(drawn.objects).bincount(minlength=env.num_objects).double() / 40000
    assert float((counts - wanted).abs().max()) < 0.01
    objects = env.all_objects()
    known = exact.reference(env, trainer.task.landscape.scores(objects), trainer.task.log_reward(objects), 1.0)
    assert known.floor is not None
    assert exact.total_variation(known.floor, known.target) <= exact.total_variation(known.uniform, known.target)
    orders = env.parse(["AAA", "BBB"])
    found = expectation(env, orders, scored_by(trainer.task.landscape), draws=4096, limit=0)
    values, exactly_too = found.mean[:, 0], expectation(env, orders, scored_by(trainer.task.landscape)).mean[:, 0]
    exactly = [float((ordered_law(env, order) * trainer.task.landscape.scores(objects)).sum()) for order in orders]
    assert values.tolist() == pytest.approx(exactly, abs=0.02)
    assert exactly_too.tolist() == pytest.approx(exactly, abs=1e-6)


def ordered_law(env: SequenceEnv, order: Tensor) -> Tensor:
    """The law of what comes out of one order, by following every outcome."""

    def policy(states: Tensor) -> Tensor:
        place = env.written(states).clamp(max=env.length - 1)
        return torch.nn.functional.one_hot(order[place], env.actions).double()

    return laws.law(env, policy)


def test_noise_of_the_state_is_learned() -> None:
    trainer = Trainer(task_of(after_a(2), dynamics__lr=4e-2, steps=200), CPU)
    for _ in range(400):
        trainer.step()
    assert trainer.calibrated(2048, 0)["dynamics_tv"] < 0.05


# finding 1, the quick way: a noise and an objective of one's own go through it, or it is not taken


class Louder(UniformSlip):
    """A uniform slip that says one rate and writes a kernel of another."""

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        return UniformSlip(alpha=0.8).kernel(slippable, dtype, position)


def mine(scores: Scores, batch: Episodes) -> Tensor:
    """An objective of a user's that reads flows, policies and steps."""
    assert scores.log_flow is not None
    assert scores.log_policy is not None
    entropy = -(scores.log_policy.exp() * scores.log_policy).sum((1, 2))
    residual = scores.log_z + scores.log_pf.sum(1) - batch.log_reward
    return residual.square() + 0.1 * entropy + scores.log_flow[:, 1:-1].square().mean(1)


@pytest.mark.parametrize(
    "noise", [UniformSlip(alpha=0.3), Rotation(), Louder(alpha=0.1)], ids=lambda n: type(n).__name__
)
@pytest.mark.parametrize("objective", [None, mine], ids=["tb", "mine"])
@pytest.mark.parametrize("mode", ["batch", "known"])
def test_both_backends_make_the_same_update(noise: Noise, objective: Any, mode: str) -> None:
    """The same trajectories, given to both as past ones, move the weights alike; others do not."""
    env = SequenceEnv(length=4, alphabet="ABC", noise=noise)
    quick, general = (
        Trainer(task_of(env, dynamics__mode=mode, net__layers=2), CPU, objective=objective) for _ in range(2)
    )
    assert isinstance(quick.backend, FixedLengthBackend)
    batch = rollout(quick.env, quick.actor(), quick.task.log_reward, batch=64, generator=torch.Generator())
    past, beta, rate = (batch.intended, batch.realised, batch.log_reward), torch.tensor(1.0), torch.tensor(1.0)
    start = quick.optimiser.values.clone()
    quick.backend.relearn(past, beta, rate)
    general.general.relearn(past, beta, rate)
    assert_close(quick.optimiser.gradient, general.optimiser.gradient, atol=1e-5, rtol=1e-4)
    assert float((quick.optimiser.values - start).abs().max()) > 1e-5
    other = Trainer(task_of(env, dynamics__mode=mode, net__layers=2), CPU, objective=objective)
    other.general.relearn((batch.intended, batch.realised, batch.log_reward + 1.0), beta, rate)
    assert not torch.allclose(other.optimiser.gradient, quick.optimiser.gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "noise", [UniformSlip(alpha=0.3), Rotation(), Louder(alpha=0.1)], ids=lambda n: type(n).__name__
)
def test_the_quick_way_draws_from_the_kernel_that_is_written(noise: Noise) -> None:
    env = SequenceEnv(length=3, alphabet="ABC", noise=noise)
    trainer = Trainer(task_of(env, batch=30000, explore=0.0), CPU)
    backend = trainer.backend
    assert isinstance(backend, FixedLengthBackend)
    sequences, _ = backend.roller.roll(backend.draw(trainer.generator, 1.0))
    for t in range(env.length):
        state = next(states for depth, states in enumerate(env.levels()) if depth == t)[:1]
        for a in range(env.vocab):
            chosen = sequences.realised[t][sequences.intended[t] == a]
            found = chosen.bincount(minlength=env.vocab).double() / len(chosen)
            assert_close(found, env.kernel(state, torch.float64)[0, a], atol=0.02, rtol=0)


@pytest.mark.parametrize("method", ["legal", "encode", "apply", "kernel", "index", "object_index", "all_objects"])
def test_an_environment_of_ones_own_is_not_taken_for_a_plain_sequence(method: str) -> None:
    own = type("Own", (SequenceEnv,), {method: lambda self, *a, **k: getattr(SequenceEnv, method)(self, *a, **k)})
    noise = UniformSlip(alpha=0.3)
    assert isinstance(Trainer(task_of(own(length=3, alphabet="AB", noise=noise)), CPU).backend, GeneralBackend)
    plain = SequenceEnv(length=3, alphabet="AB", noise=noise)
    assert isinstance(Trainer(task_of(plain), CPU).backend, FixedLengthBackend)


def tripled(heads: Any, kernel: Any, batch: Any, log_z: Tensor) -> Scores:
    """A form of a user's."""
    scores = score_marginal(heads, kernel, batch, log_z)
    return replace(scores, log_pf=3.0 * scores.log_pf)


def test_a_form_of_ones_own_is_scored_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMS, "entries", dict(FORMS.entries))
    FORMS.add(FormEntry(name="tripled", score=tripled))
    FORMS.add(FormEntry(name="copied", score=score_marginal))
    plain, own, copied = (trained(steps=20, form=form) for form in ("marginal", "tripled", "copied"))
    assert isinstance(plain.backend, FixedLengthBackend)
    assert isinstance(own.backend, GeneralBackend)
    assert not torch.allclose(own.nets.log_z, copied.nets.log_z, atol=1e-2)


def test_a_form_of_ones_own_has_the_heads_it_asks_for() -> None:
    env = SequenceEnv(length=3, alphabet="AB", noise=UniformSlip(alpha=0.3))
    entry = FormEntry(name="mine", score=score_published, joint_backward=True)
    FORMS.add(entry)
    try:
        own, published = (Trainer(task_of(env, form=form), CPU) for form in ("mine", "published"))
        for trainer in (own, published):
            trainer.step()
        assert torch.equal(own.optimiser.values, published.optimiser.values)
    finally:
        FORMS.remove("mine")


def test_a_hidden_rate_of_ones_own_is_drawn_for_each_sample() -> None:
    """Samples follow the exact law, which the kernel of the mean rate does not give."""
    env = SequenceEnv(length=4, alphabet="AB", noise=AllOrNothing())
    trainer = Trainer(task_of(env, optim__lr=2e-2), CPU)
    with torch.no_grad():
        trainer.nets.policy.bias.copy_(torch.tensor([3.0, 0.0]))
    law = trainer.law()
    mean_rate = laws.law(SequenceEnv(length=4, alphabet="AB", noise=UniformSlip(alpha=0.45)), trainer.policy)
    drawn = env.object_index(trainer.draw(40000, 0).objects).bincount(minlength=16).double() / 40000
    assert exact.total_variation(drawn, law) < 0.02
    assert exact.total_variation(mean_rate, law) > 0.1
    objects = env.all_objects()
    task = trainer.task
    known = exact.reference(env, task.landscape.scores(objects), task.log_reward(objects), task.beta)
    assert (known.floor, known.floor_kind) == (None, "not known under a hidden rate")


def test_an_operator_without_its_kernel_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Own overrides operator alone: noise is written in kernel"):
        type("Own", (SequenceEnv,), {"operator": lambda self, *a, **k: None})


# finding 2: an objective of one's own


def trained(objective: Any = None, steps: int = 50, **changes: Any) -> Trainer:
    trainer = Trainer(
        make_task("tfbind8", TrainConfig().with_(net__hidden=16, dynamics__hidden=8, batch=16, **changes)), CPU
    )
    if objective is not None:
        trainer.objective = objective
    for _ in range(steps):
        trainer.step()
    return trainer


def test_an_objective_that_is_set_is_the_one_that_is_learned() -> None:
    plain, own = trained(), trained(mine)
    assert not torch.equal(plain.optimiser.values, own.optimiser.values)

    def same(scores: Scores, batch: Episodes) -> Tensor:
        steps = torch.where(batch.valid, scores.log_pf + scores.log_dynamics - scores.log_pb, 0.0)
        return (scores.log_z + steps.sum(1) - batch.log_reward).square()

    assert_close(trained(same).optimiser.values, plain.optimiser.values, atol=1e-4, rtol=1e-3)


def test_an_objective_of_the_wrong_shape_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"^objective .* must return a tensor of shape \[4\], .* got shape \[\]$"):
        trained(lambda scores, batch: scores.log_pf.mean())
    with pytest.raises(ValueError, match=r"got float$"):
        trained(lambda scores, batch: 0.0)
    with pytest.raises(ValueError, match="returned losses without a gradient"):
        trained(lambda scores, batch: batch.log_reward)


@pytest.mark.parametrize("mode", ["batch", "known"])
def test_an_objective_may_leave_outputs_out_and_sees_the_same_batch_everywhere(mode: str) -> None:
    """Neither log Z nor flows are read; states, which only some backends have, are in no batch."""
    seen: list[Episodes] = []

    def forward_only(scores: Scores, batch: Episodes) -> Tensor:
        seen.append(batch)
        return (scores.log_pf.sum(1) - batch.log_reward).square()

    for env in (SequenceEnv(length=3, alphabet="AB", noise=UniformSlip(alpha=0.3)), after_a()):
        trainer = Trainer(task_of(env, dynamics__mode=mode), CPU, objective=forward_only)
        before = trainer.optimiser.values.clone()
        trainer.step()
        assert not torch.equal(before, trainer.optimiser.values)
    assert {type(batch) for batch in seen} == {Episodes}


# finding 3: public states are raw


def test_networks_answer_for_the_raw_state_they_are_asked_about() -> None:
    trainer = trained(steps=5)
    env = trainer.task.env
    assert isinstance(env, SequenceEnv)
    assert isinstance(trainer.env, TabulatedEnv)
    raw = torch.cat(list(env.levels()))[:500]
    numbered = trainer.env.embed(raw)
    assert_close(trainer.nets.log_policy(raw), trainer.nets.log_policy(numbered))
    assert_close(trainer.nets.log_policy(raw).exp().double(), trainer.policy(raw))
    assert_close(trainer.nets.heads(raw).log_flow, trainer.nets.heads(numbered).log_flow)
    assert_close(trainer.dynamics.operator(raw).matrix(), trainer.dynamics.operator(numbered).matrix())
    assert not torch.allclose(trainer.nets.log_policy(raw[1:]), trainer.nets.log_policy(raw[:-1]))
    with pytest.raises(ValueError, match="states here are numbers, got a row of 8: `embed` raw states first"):
        trainer.env.legal(raw)
    with pytest.raises(ValueError, match="states here are numbers, got a row of 8: `embed` raw states first"):
        trainer.env.index(raw)
    with pytest.raises(ValueError, match=r"^states of SequenceEnv must have the shape \[\*, 8\], got \[1, 1\]$"):
        trainer.policy(torch.tensor([[3]]))


def test_states_of_one_integer_are_not_numbered() -> None:
    env = SequenceEnv(length=1, alphabet="ABC", noise=UniformSlip(alpha=0.1))
    trainer = Trainer(task_of(env), CPU)
    assert trainer.env is env
    assert_close(trainer.law(), laws.law(env, trainer.policy))


# rectangular noise: intentions and outcomes are different sets


def test_mixtures_are_learned_from_and_evaluated_exactly() -> None:
    """Five mixtures of two letters: the law of a trained policy comes near the floor, which another policy does not."""
    matrix = torch.tensor([[1.0, 0.0], [0.8, 0.2], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9]], dtype=torch.float64)
    env = SequenceEnv(length=3, alphabet="AB", noise=Mixtures(matrix=matrix))
    assert (env.actions, env.outcomes) == (5, 2)
    task = task_of(env, steps=800, optim__lr=1e-2, dynamics__lr=2e-2)
    trainer = Trainer(task, CPU)
    for _ in range(800):
        trainer.step()
    objects = env.all_objects()
    known = exact.reference(env, task.landscape.scores(objects), task.log_reward(objects), task.beta)
    assert known.blind is None
    found = exact.distances(trainer.law(), known)
    assert found["tv"] < found["tv_floor"] + 0.05
    assert found["tv_uniform"] > found["tv"]
    assert trainer.calibrated(2048, 0)["dynamics_tv"] < 0.05
    with pytest.raises(ValueError, match="form 'blind' takes outcomes for intentions"):
        Trainer(replace(task, config=task.config.with_(form="blind")), CPU)


# learned noise models


@pytest.mark.parametrize("kind", ["shared", "positional", "full"])
@pytest.mark.parametrize("objective", ["tb", "kl"])
def test_every_kind_of_noise_model_learns_the_kernel(kind: str, objective: str) -> None:
    env = SequenceEnv(length=3, alphabet="ABC", noise=UniformSlip(alpha=0.4), stop=True, min_length=2)
    config: dict[str, Any] = {"dynamics__model": kind, "dynamics__lr": 4e-2, "steps": 150, "objective": objective}
    trainer = Trainer(task_of(env, **config), CPU)
    before = trainer.calibrated(1024, 0)
    for _ in range(150):
        trainer.step()
    after = trainer.calibrated(1024, 0)
    assert after["dynamics_model"] == kind
    assert after["dynamics_tv"] < 0.05 < before["dynamics_tv"]


def test_one_matrix_cannot_learn_noise_by_position_and_one_per_position_can() -> None:
    env = SequenceEnv(length=3, alphabet="ABC", noise=Rotation())
    found = {}
    for kind in ("shared", "positional"):
        trainer = Trainer(task_of(env, dynamics__model=kind, dynamics__lr=4e-2, steps=200), CPU)
        for _ in range(200):
            trainer.step()
        found[kind] = trainer.calibrated(4096, 0)["dynamics_tv"]
    assert found["positional"] < 0.03 < found["shared"]


def test_the_kind_of_noise_model_follows_from_alphabet_and_noise() -> None:
    def kind(task: str, **changes: Any) -> str:
        config = TrainConfig().with_(**{"net__hidden": 8, "dynamics__hidden": 8, "batch": 2, **changes})
        return Trainer(make_task(task, config), CPU).dynamics.kind

    assert kind("tfbind8") == "full"
    assert kind("bits", bits__k=8, bits__length=16, bits__modes=8) == "shared"
    assert kind("bits", bits__k=8, bits__length=16, bits__modes=8, dynamics__model="positional") == "positional"
    assert kind("tfbind8", dynamics__model="shared") == "shared"
    with pytest.raises(ValueError, match=r"dynamics\.model 'shared' reads no history"):
        kind("tfbind8", dynamics__model="shared", thought__layers=1)
