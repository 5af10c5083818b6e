"""Memory: what a thought encoder may be combined with, that its runs continue, and exact laws over histories."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.thought import FREE, build, configuration, filter_law, state_law, target_of
from exact_tables import chi_square, look_up, random_table
from small_runs import CPU, collected, same_runs, same_tensors, small, small_on, tiny_task
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import NetConfig, OfflineConfig, ThoughtConfig, TrainConfig
from sgfn.envs import Env, GridEnv, SequenceEnv, histories, laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import measure
from sgfn.learning.dynamics import negative_log_likelihood
from sgfn.learning.methods import check_objective
from sgfn.learning.rollout import clocks, rollout
from sgfn.learning.trainer import Trainer
from sgfn.learning.trajectory_scorer import CachedActor, TrajectoryScorer
from sgfn.nets.dynamics import FullNoiseModel
from sgfn.noise import HiddenRate, Noise, UniformSlip, bayes_filter, slip_project
from sgfn.noise.operators import DenseKernel
from sgfn.runs.train import train

HIDDEN = HiddenRate(mean=0.4, concentration=1.0)
THOUGHT: dict[str, Any] = {"thought__layers": 1, "thought__width": 8}
TRANSFORMER: dict[str, Any] = {"net__encoder": "transformer", "net__heads": 2}
SPACES = {
    "fixed": lambda noise: SequenceEnv(length=3, alphabet="AB", noise=noise),
    "stop": lambda noise: SequenceEnv(length=3, alphabet="AB", noise=noise, stop=True),
    "grid": lambda noise: GridEnv(ndim=2, side=3, noise=noise),
}
every_space = pytest.mark.parametrize("space", SPACES)
every_noise = pytest.mark.parametrize("noise", [HIDDEN, UniformSlip(alpha=0.3)], ids=["hidden", "uniform"])


def hidden_trainer(goals: Tensor | None = None, stop: bool = False, **changes: Any) -> Trainer:
    """Strings of three letters under a hidden rate."""
    task = tiny_task(small(**changes), "AB", 3, stop)
    env = SequenceEnv(length=3, alphabet="AB", noise=HIDDEN, stop=stop)
    return Trainer(replace(task, env=env), CPU, goals)


def advance(trainer: Trainer, steps: int) -> dict[str, Tensor]:
    for _ in range(steps):
        trainer.step()
        trainer.done += 1
    return {name: value.clone() for name, value in trainer.state().items()}


def stir(trainer: Trainer) -> Trainer:
    """Weights with contrast, as after training."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in trainer.modules().values():
            for parameter in module.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return trainer


# Configuration


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"dynamics__mode": "known"},
            "thought.layers needs a learned noise model: set dynamics.mode to batch or replay",
        ),
        (
            {"form": "published"},
            "thought.layers does not go with form 'published' (its backward policy sees no history)",
        ),
        ({"form": "blind"}, "thought.layers does not go with form 'blind' (it has no use for what was intended)"),
        ({"objective": "eflow"}, "thought.layers: objective 'eflow' has no history of the children it imagines"),
        ({"objective": "kl-entropy", "form": "published"}, "thought.layers does not go with form 'published'"),
    ],
)
def test_what_a_memory_does_not_go_with(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="thought") as caught:
        check_objective(TrainConfig().with_(**changes, **THOUGHT))
    assert str(caught.value).startswith(message)
    assert "use " in str(caught.value) or "set " in str(caught.value)
    assert "\n" not in str(caught.value)
    TrainConfig().with_(**changes)  # without a memory each of them is fine
    TrainConfig().with_(objective="kl", form="published", **THOUGHT)  # the form of kl is its own


def test_heads_divide_widths() -> None:
    with pytest.raises(
        ValueError, match=r"^net\.heads must divide net\.hidden 12, got 5: choose from 1, 2, 3, 4, 6, 12$"
    ):
        NetConfig(encoder="transformer", hidden=12, heads=5)
    with pytest.raises(ValueError, match=r"^thought\.heads must divide thought\.width 9, got 2: choose from 1, 3, 9$"):
        ThoughtConfig(layers=1, width=9)
    assert NetConfig(hidden=12, heads=5).heads == 5  # an mlp has none
    assert ThoughtConfig(width=9).layers == 0


def test_a_grid_is_not_a_sequence() -> None:
    from sgfn.landscapes.tasks import make_task

    with pytest.raises(ValueError, match=r"^net\.encoder 'transformer' reads sequences: use mlp for grid$"):
        Trainer(make_task("grid", small(**TRANSFORMER)), CPU)


# Training

OBJECTIVES = ("tb", "db", "subtb", "kl", "kl-entropy")
VARIANTS = {"thought": THOUGHT, "transformer": TRANSFORMER, "both": THOUGHT | TRANSFORMER}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("objective", [*OBJECTIVES, "eflow", "published"])
def test_every_objective_runs(objective: str, variant: str) -> None:
    if objective in ("eflow", "published") and variant != "transformer":
        return
    chosen = {"form": "published"} if objective == "published" else {"objective": objective}
    trainer = hidden_trainer(stop=objective != "tb", **chosen, **VARIANTS[variant])
    before = advance(trainer, 0)
    after = advance(trainer, 2)
    trainer.read_meters()  # raises unless all is finite
    for part in ("nets.policy.weight", "nets.encoder", "nets.join", "dynamics.thought"):
        names = [name for name in before if name.startswith(part)]
        assert bool(names) == (part not in ("nets.join", "dynamics.thought") or variant != "transformer")
        assert not names or any(not torch.equal(before[name], after[name]) for name in names), part


OFFLINE = OfflineConfig(file=Path("known.csv"), share=0.25)
EVERYTHING = {"dynamics__mode": "replay", "dynamics__rounds": 2, "replay__updates": 1, "replay__capacity": 30}


@pytest.mark.parametrize(
    "changes", [THOUGHT, TRANSFORMER, THOUGHT | TRANSFORMER | EVERYTHING | {"offline": OFFLINE, "objective": "kl"}]
)
def test_a_run_continues_bit_for_bit(changes: dict[str, Any]) -> None:
    goals = torch.tensor([[0, 0, 0], [1, 0, 1]]) if "offline" in changes else None
    first, second = hidden_trainer(goals, **changes), hidden_trainer(goals, **changes)
    state = advance(first, 3)
    advance(second, 1)
    second.load(state)
    straight = advance(first, 2)
    assert same_tensors(advance(second, 2), straight)
    assert not same_tensors(advance(hidden_trainer(goals, **changes), 2), straight)


def test_a_run_folder_resumes_and_measures_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task with too many histories for an exact law: no tv is logged, exact figures are null, nothing breaks."""
    changes = {"log__exact_every": 2, "log__checkpoint_every": 2, **THOUGHT, **TRANSFORMER}
    config = small_on("words", steps=4, noise__kind="hidden", **changes)
    whole = train("words", config, tmp_path / "whole", device="cpu")
    assert not any("tv" in row for row in whole.rows())
    stopped = tmp_path / "stopped"
    monkeypatch.setattr(Trainer, "snapshot", _stop_after(3, Trainer.snapshot))
    with pytest.raises(RuntimeError, match="enough"):
        train("words", config, stopped, device="cpu")
    monkeypatch.undo()
    train("words", config, stopped, resume=True, device="cpu")
    assert same_runs(tmp_path / "whole", stopped)
    found = measure(whole.load(CPU), samples=64)
    assert found["tv"] is None
    assert found["dynamics_nll"] > found["dynamics_entropy"]
    assert found["top100_count"] > 0


def _stop_after(step: int, snapshot: Any) -> Any:
    def until(trainer: Trainer) -> Any:
        if trainer.done >= step:
            raise RuntimeError("enough")
        return snapshot(trainer)

    return until


def test_thoughts_reach_scores_samples_and_retraced_intentions() -> None:
    trainer = stir(hidden_trainer(**THOUGHT))
    scorer, own, batch = collected(trainer)
    assert own is batch
    general = trainer.general
    thoughts = general.thoughts(batch)
    assert thoughts is not None
    states, model = batch.states[:, :-1], trainer.dynamics
    assert isinstance(model, FullNoiseModel)
    assert_close(general.kernel_along(batch)(states).log_matrix(), model.log_matrix(states, thoughts[:, :-1]))
    scorer = general.scorer(scorer, thoughts)
    assert isinstance(scorer, TrajectoryScorer)
    actor = trainer.actor()
    assert isinstance(actor, CachedActor)
    goals = torch.tensor([[0, 0, 1]]).expand(4000, -1)
    traced = general.retraced(goals, clocks((3, 2, 4000, 2), trainer.generator))
    assert torch.equal(trainer.env.objects(traced.states[:, -1]), goals)
    # The last intention follows the posterior of its own history: pi P^ there, for each of the two earlier pairs.
    first = traced.intended[:, 0]
    for a in (0, 1):
        rows = (first == a) & (traced.intended[:, 1] == 0)
        pairs = torch.tensor([[a, 0]]), torch.tensor([[0, 0]])
        policy, log_kernel = trainer.history_policy(torch.tensor([[0, 0, 2]]), *pairs)
        posterior = policy[0] * log_kernel[0, :, 1].exp()
        counts = torch.bincount(traced.intended[rows, 2], minlength=2)[None]
        assert chi_square(counts, (posterior / posterior.sum())[None]) > 1e-4
    assert trainer.draw(100, 0).objects.shape == (100, 3)


# Exact laws over histories


def remembering(env: Env, seed: int = 0) -> histories.HistoryPolicy:
    """A policy that depends on the whole history, and a noise model that does too."""

    def table(states: Tensor, intended: Tensor, realised: Tensor, size: int) -> Tensor:
        number = torch.zeros(states.shape[0], dtype=torch.int64)
        for a, k in zip(intended.unbind(1), realised.unbind(1), strict=True):
            number = number * 31 + a * env.actions + k + 1
        return torch.sin(12.9898 * (number[:, None] + 7 * torch.arange(size) + seed).double()).abs() + 0.1

    def history_policy(states: Tensor, intended: Tensor, realised: Tensor) -> tuple[Tensor, Tensor]:
        policy = table(states, intended, realised, env.actions) * env.legal(states)
        model = table(states, intended, realised, env.actions**2).unflatten(-1, (env.actions, env.actions))
        return policy / policy.sum(-1, keepdim=True), (model / model.sum(-1, keepdim=True)).log()

    return history_policy


@every_space
@every_noise
def test_without_a_memory_the_law_is_that_of_the_states(space: str, noise: Noise) -> None:
    env = SPACES[space](noise)
    policy = look_up(env, random_table(env, 1))
    found = histories.enumerate_histories(env, lambda states, a, k: (policy(states), env.kernel(states).log()))
    assert_close(found.law, laws.law(env, policy), atol=1e-12, rtol=0)
    assert float(found.law.sum()) == pytest.approx(1.0, abs=1e-12)
    if isinstance(noise, UniformSlip):
        assert found.nll == pytest.approx(found.filter_nll, rel=1e-6)  # the kernel is in single precision
    else:
        assert found.nll > found.filter_nll + 1e-3  # the mean rate is not all that a history tells
        at_the_mean = replace(env_noise(env), concentration=1e6)
        assert not torch.allclose(laws.law(SPACES[space](at_the_mean), policy), found.law, atol=1e-4)
    other = histories.enumerate_histories(env, remembering(env)).law
    assert not torch.allclose(other, found.law, atol=1e-3)


def env_noise(env: Env) -> HiddenRate:
    assert isinstance(env.noise, HiddenRate)
    return env.noise


class Remembering:
    """The policy of `remembering` in a rollout."""

    def __init__(self, env: Env) -> None:
        self.history_policy = remembering(env)

    def log_policy(self, t: int, state: Tensor) -> Tensor:
        if t == 0:
            self.pairs = state.new_zeros(2, state.shape[0], 0)
        return self.history_policy(state, *self.pairs)[0].log().float()

    def observe(self, t: int, intended: Tensor, realised: Tensor) -> None:
        self.pairs = torch.cat([self.pairs, torch.stack([intended, realised])[..., None]], -1)


@every_space
def test_a_law_with_memory_is_what_samples_show(space: str) -> None:
    env = SPACES[space](HIDDEN)
    found = histories.enumerate_histories(env, remembering(env))
    generator = torch.Generator().manual_seed(0)
    batch = rollout(env, Remembering(env), lambda x: torch.zeros(len(x)), batch=40_000, generator=generator)
    counts = torch.bincount(env.object_index(env.objects(batch.states[:, -1])), minlength=env.num_objects)
    assert chi_square(counts[None], found.law[None]) > 1e-4
    forgetful = histories.enumerate_histories(env, lambda s, a, k: remembering(env)(s, a[:, :0], k[:, :0]))
    assert chi_square(counts[None], forgetful.law[None]) < 1e-4
    slippable = env.slippable(batch.states[:, :-1])
    known = DenseKernel(bayes_filter(HIDDEN, slippable, batch.intended, batch.realised))
    assert float(negative_log_likelihood(known, batch)) == pytest.approx(found.filter_nll, abs=0.01)
    assert found.nll > found.filter_nll + 0.02


@every_space
def test_no_model_predicts_better_than_the_filter(space: str) -> None:
    env = SPACES[space](HIDDEN)

    def exact_filter(states: Tensor, intended: Tensor, realised: Tensor) -> tuple[Tensor, Tensor]:
        rows = [env.initial(states.shape[0])]
        for outcome in realised.unbind(1):
            rows.append(env.apply(rows[-1], outcome))
        blank = torch.zeros(states.shape[0], 1, dtype=torch.int64)
        slippable = env.slippable(torch.stack(rows, 1))
        pairs = torch.cat([intended, blank], 1), torch.cat([realised, blank], 1)
        policy = remembering(env)(states, intended, realised)[0]
        return policy, bayes_filter(HIDDEN, slippable, *pairs)[:, -1].log()

    found = histories.enumerate_histories(env, exact_filter)
    assert found.nll == pytest.approx(found.filter_nll, abs=1e-12)


@pytest.mark.parametrize("changes", [THOUGHT, THOUGHT | TRANSFORMER], ids=["mlp", "transformer"])
def test_a_trainer_that_ignores_its_thoughts_has_the_law_of_its_states(changes: dict[str, Any]) -> None:
    trainer = stir(hidden_trainer(stop=True, **changes))
    join = trainer.nets.join
    assert join is not None
    remembered = trainer.law()
    with torch.no_grad():
        join.layer.weight[:, trainer.nets.encoder.width :] = 0.0

    def policy(states: Tensor) -> Tensor:
        with torch.no_grad():
            inner = trainer.env.embed(states)
            nothing = torch.zeros(states.shape[0], 8)
            return trainer.nets.log_policy_of(trainer.nets.represent(inner), inner, nothing).exp().double()

    assert_close(trainer.law(), laws.law(trainer.task.env, policy), atol=1e-6, rtol=0)
    assert not torch.allclose(remembered, trainer.law(), atol=1e-4)


def test_the_trainers_law_is_what_it_samples() -> None:
    trainer = stir(hidden_trainer(**THOUGHT | TRANSFORMER))
    objects = trainer.draw(20_000, 0).objects
    counts = torch.bincount(trainer.env.object_index(objects), minlength=8)
    assert chi_square(counts[None], trainer.law()[None]) > 1e-4
    assert chi_square(counts[None], trainer.law().flip(0)[None]) < 1e-4


def test_too_many_histories_are_refused() -> None:
    env = SequenceEnv(length=8, alphabet="ACGT", noise=HIDDEN)
    assert not histories.enumerable(env)
    with pytest.raises(ValueError, match=r"^a policy with a memory has 4,294,967,296 histories here, the limit is 2,0"):
        histories.enumerate_histories(env, remembering(env))
    assert histories.enumerable(SequenceEnv(length=5, alphabet="ACGT", noise=HIDDEN))


def test_a_thought_tells_the_rate() -> None:
    """A few updates of the noise model, and it predicts better than any model of the state alone could."""
    trainer = hidden_trainer(batch=256, steps=60, dynamics__lr=0.02, optim__lr=0.0, optim__warmup=1, **THOUGHT)
    before = trainer.enumerate_histories()
    advance(trainer, 60)
    after = trainer.enumerate_histories()
    mean_rate = histories.enumerate_histories(
        trainer.task.env, lambda s, a, k: (trainer.history_policy(s, a, k)[0], trainer.task.env.kernel(s).log())
    )
    assert before.nll > mean_rate.nll
    assert after.nll < mean_rate.nll - 0.5 * (mean_rate.nll - mean_rate.filter_nll)
    assert after.nll > after.filter_nll


# The references of the study


def test_the_laws_of_the_study_agree_with_enumeration() -> None:
    env = SequenceEnv(length=4, alphabet="AB", noise=HIDDEN)
    wanted = torch.rand(16, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.3
    _, conditionals = exact.flows(env, wanted / wanted.sum())
    table = laws.table_policy(env, conditionals)

    def projecting(states: Tensor, intended: Tensor, realised: Tensor) -> tuple[Tensor, Tensor]:
        blank = torch.zeros(states.shape[0], 1, dtype=torch.int64)
        everywhere = torch.ones(states.shape[0], intended.shape[1] + 1, 2, dtype=torch.bool)
        pairs = torch.cat([intended, blank], 1), torch.cat([realised, blank], 1)
        rate = HIDDEN.posterior_rates(everywhere, *pairs)[:, -1]
        return slip_project(table(states), env.slippable(states), rate)[0], env.kernel(states).log()

    followed = histories.enumerate_histories(env, projecting).law
    assert_close(filter_law(env, conditionals), followed, atol=1e-12, rtol=0)
    mean_rate = laws.law(env, exact.best_policy(env, conditionals))
    assert not torch.allclose(followed, mean_rate, atol=1e-3)
    assert_close(state_law(env, conditionals, 1.0), mean_rate, atol=1e-12, rtol=0)  # uniform data tell nothing
    gentle = {depth: 0.5 + 0.2 * (rows - 0.5) for depth, rows in conditionals.items()}  # within reach at every state
    law = laws.law(env, laws.table_policy(env, gentle), noisy=False)
    assert_close(state_law(env, gentle, 0.0), law, atol=1e-12, rtol=0)  # on its own data a state tells enough
    assert not torch.allclose(state_law(env, gentle, 0.5), law, atol=1e-5, rtol=0)


def test_who_knows_the_rate_reaches_laws_that_others_do_not() -> None:
    """The fork of the study: A is left to the episodes without a slip so far, or taken as often without looking."""
    task = build("fork", configuration("without", 0.01, "tb", 0, 1))
    env, (target, scores) = task.env, target_of(task)
    side = env.all_objects()[:, FREE] == 0
    assert float(target[side].sum()) == pytest.approx(0.5, abs=0.005)

    def choosing(quiet: float, slipped: float) -> Tensor:
        """Free letters at random, then A with a probability that may depend on the past, then what the side asks."""

        def history_policy(states: Tensor, intended: Tensor, realised: Tensor) -> tuple[Tensor, Tensor]:
            share = torch.full((states.shape[0],), 0.5, dtype=torch.float64)
            if intended.shape[1] == FREE:
                share = torch.tensor([slipped, quiet], dtype=torch.float64)[(intended == realised).all(1).long()]
            elif intended.shape[1] > FREE:
                share[states[:, FREE] == 0] = 1.0
            return torch.stack([share, 1 - share], -1), env.kernel(states).log()

        return histories.enumerate_histories(env, history_policy).law

    knowing, never, always = choosing(1.0, 0.0), choosing(0.0, 0.0), choosing(1.0, 1.0)
    often, least, most = (float(law[side].sum()) for law in (knowing, never, always))
    share = (often - least) / (most - least)
    blindly = choosing(share, share)
    assert float(blindly[side].sum()) == pytest.approx(often, abs=1e-12)
    assert exact.total_variation(knowing, target) < exact.total_variation(blindly, target) - 0.02
    assert float((knowing * scores).sum()) > float((blindly * scores).sum()) + 0.02
