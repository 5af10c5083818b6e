"""What `evaluate` writes: the promised figures, each recomputed here in another way."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import CPU, complaint, contents, small, small_on, tiny_task, tiny_trainer

import sgfn
from sgfn.cli.commands import main
from sgfn.config import TrainConfig
from sgfn.envs import SequenceEnv, laws
from sgfn.evaluation import exact
from sgfn.evaluation.measure import EXACT_KEYS, measure, reference
from sgfn.landscapes.motif import Motif
from sgfn.landscapes.table import TableLandscape
from sgfn.landscapes.tasks import make_task
from sgfn.learning.trainer import Trainer
from sgfn.runs.evaluate import evaluate
from sgfn.runs.folder import Run
from sgfn.runs.train import train

PROMISED = {
    *("tv", "tv_floor", "tv_blind", "tv_uniform", "l1_mean", "js", "expected_reward", "target_expected_reward"),
    *("top100_mean", "top100_median", "modes_greedy", "modes_reference", "dynamics_tv"),
}
ALSO = {
    *("task", "step", "samples", "seed", "kl", "floor_expected_reward", "floor_kind", "histogram", "sample_mean"),
    *(
        "modes_greedy_rule",
        "modes_reference_total",
        "diversity",
        "novelty",
        "top100_count",
        "unique",
        "alphabet",
        "designs",
        "bound_by_floor",
        "minimise",
        "beta",
        "kernel",
        "modes",
        "dynamics_model",
        "dynamics_nll",
        "dynamics_entropy",
        "orders",
    ),
}


@pytest.mark.parametrize("name", ["grid_run", "words_run"])
def test_the_file_holds_exactly_what_is_promised(name: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(name)
    result = evaluate(folder, samples=32, seed=3, device="cpu")
    assert json.loads((folder / "exact.json").read_text()) == json.loads(json.dumps(dict(result)))
    assert set(result) == PROMISED | ALSO
    assert not PROMISED & ALSO
    assert all(result[key] is not None and math.isfinite(result[key]) for key in PROMISED)
    assert (result["task"], result["step"], result["samples"], result["seed"]) == (name[:-4], 20, 32, 3)


def test_the_seed_decides_the_samples(grid_run: Path) -> None:
    first, again, other = (evaluate(grid_run, samples=32, seed=seed, device="cpu") for seed in (3, 3, 4))
    assert first == again
    assert first["sample_mean"] != other["sample_mean"]
    assert first["tv"] == other["tv"]


def test_exact_figures(grid_run: Path) -> None:
    result, trainer = evaluate(grid_run, samples=10, device="cpu"), Run(path=grid_run).load(CPU)
    scores, law = trainer.task.landscape.scores(trainer.task.env.all_objects()).double(), trainer.law()
    target = scores.clamp(min=1e-3) / scores.clamp(min=1e-3).sum()
    mixture = (law + target) / 2
    uniform = laws.law(trainer.task.env, laws.uniform_policy(trainer.task.env))
    wanted = {
        "tv": (law - target).abs().sum() / 2,
        "tv_uniform": (uniform - target).abs().sum() / 2,
        "l1_mean": (law - target).abs().mean(),
        "js": ((law * (law / mixture).log()).sum() + (target * (target / mixture).log()).sum()) / 2,
        "kl": (target * (target / law).log()).sum(),
        "expected_reward": law @ scores,
        "target_expected_reward": target @ scores,
    }
    for key, value in wanted.items():
        assert result[key] == pytest.approx(float(value), rel=1e-6), key
    assert result["tv_floor"] <= min(result["tv"], result["tv_blind"], result["tv_uniform"])
    assert len({round(result[key], 6) for key in ("tv", "tv_floor", "tv_blind", "tv_uniform")}) == 4


def test_floor_and_blind_come_from_the_reference() -> None:
    trainer = tiny_trainer(noise__alpha=0.5, beta=4.0)
    result, known = measure(trainer, 10), reference(trainer.task)
    _, conditionals = exact.flows(trainer.task.env, known.target)
    for key, policy in (("tv_floor", exact.best_policy), ("tv_blind", laws.table_policy)):
        law = laws.law(trainer.task.env, policy(trainer.task.env, conditionals))
        assert result[key] == pytest.approx(exact.total_variation(law, known.target))
    quiet = measure(tiny_trainer(noise__alpha=0.0, beta=4.0), 10)
    assert quiet["tv_floor"] == pytest.approx(0.0, abs=1e-12)
    assert quiet["tv_blind"] == pytest.approx(0.0, abs=1e-12)
    assert result["tv_blind"] > result["tv_floor"] + 0.02


def test_sample_figures_by_hand() -> None:
    trainer = tiny_trainer(alphabet="ACGT", length=4, noise__alpha=0.2)
    result, drawn = measure(trainer, 400, seed=2), trainer.draw(400, seed=2)
    env, scores = trainer.task.env, drawn.scores.numpy()
    assert isinstance(env, SequenceEnv)
    score = dict(zip(env.decode(drawn.objects), scores.tolist(), strict=True))
    best = sorted(score.values(), reverse=True)[:100]
    assert result["top100_mean"] == pytest.approx(np.mean(best))
    assert result["top100_median"] == pytest.approx(np.median(best))
    assert result["top100_mean"] != pytest.approx(np.mean(sorted(scores.tolist(), reverse=True)[:100]))  # unique ones
    assert result["unique"] == len(score)
    assert result["sample_mean"] == pytest.approx(scores.mean(), rel=1e-5)
    assert result["modes_greedy"] == len(modes_by_hand(score, level=0.9))
    assert result["modes_greedy"] not in (0, len(modes_by_hand(score, level=0.5)))
    table = dict(zip(env.decode(env.all_objects()), trainer.task.landscape.table.tolist(), strict=True))
    level = sorted(table.values(), reverse=True)[2]  # ceil(1 % of 256) = 3
    maxima = [x for x, s in table.items() if s >= level and s >= max(s2 for y, s2 in table.items() if gap(x, y) <= 1)]
    assert result["modes_reference_total"] == len(maxima)
    assert result["modes_reference"] == sum(any(gap(x, m) <= 1 for x in score) for m in maxima)


def gap(x: str, y: str) -> int:
    return sum(a != b for a, b in zip(x, y, strict=True))


def modes_by_hand(score: dict[str, float], level: float) -> list[str]:
    modes: list[str] = []
    for x in sorted(score, key=lambda x: (-score[x], x)):
        if score[x] >= level - 1e-6 and all(gap(x, m) > 2 for m in modes):
            modes.append(x)
    return modes


def test_known_dynamics_are_right_and_untrained_ones_are_not() -> None:
    known = measure(tiny_trainer(noise__alpha=0.4, dynamics__mode="known"), 100)
    assert known["dynamics_tv"] == pytest.approx(0.0, abs=1e-6)
    assert known["dynamics_nll"] == pytest.approx(known["dynamics_entropy"], abs=1e-6)
    learned = measure(tiny_trainer(noise__alpha=0.4), 100)
    start = math.exp(2) / (math.exp(2) + 2)  # the model starts with a logit of 2 for what is intended
    assert learned["dynamics_tv"] == pytest.approx(abs(start - (1 - 0.4 + 0.4 / 3)), abs=1e-5)
    assert learned["dynamics_nll"] > learned["dynamics_entropy"]


@pytest.mark.parametrize("stop", [False, True])
def test_histograms_are_laws_of_the_score(stop: bool) -> None:
    result = measure(tiny_trainer(stop=stop, noise__alpha=0.5, beta=4.0), 200)
    shares, edges = result["histogram"], np.array(result["histogram"]["edges"])
    half = (edges[1] - edges[0]) / 2
    truth = {"target": "target_expected_reward", "law": "expected_reward", "samples": "sample_mean"}
    assert set(shares) == {"edges", *truth}
    for name, mean in truth.items():
        assert len(shares[name]) == len(edges) - 1
        assert sum(shares[name]) == pytest.approx(1.0)
        assert min(shares[name]) >= 0.0
        middle = float((edges[:-1] + half) @ np.array(shares[name]))
        assert abs(middle - result[mean]) <= half + 1e-6  # every score is in its bin
        wrong = result["target_expected_reward" if name != "target" else "expected_reward"]
        assert abs(middle - wrong) > half


def test_a_floor_that_is_not_computed_is_null(grid_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_floor = evaluate(grid_run, samples=20, device="cpu")
    monkeypatch.setattr(exact, "MAX_PROGRAMME", 8)
    result = evaluate(grid_run, samples=20, device="cpu")
    nulls = {"tv_floor", "floor_expected_reward"}
    assert {key for key in result if result[key] is None} - {"alphabet", "diversity", "novelty"} == nulls
    assert result["floor_kind"] == "not computed: the linear programme is limited to 8 states"
    changed = nulls | {"floor_kind"}
    assert {k: v for k, v in result.items() if k not in changed} == {
        k: v for k, v in with_floor.items() if k not in changed
    }
    assert with_floor["tv_floor"] is not None


def test_a_space_too_large_gives_nulls_and_samples(grid_run: Path) -> None:
    exactly = evaluate(grid_run, samples=50, device="cpu", max_states=18)
    assert exactly["tv"] is not None
    result = evaluate(grid_run, samples=50, device="cpu", max_states=17)
    assert all(result[key] is None for key in EXACT_KEYS)
    assert result["histogram"].keys() == {"edges", "samples"}  # samples alone: no law, no target
    assert sum(result["histogram"]["samples"]) == pytest.approx(1.0)
    left_out = {*EXACT_KEYS, "histogram", "floor_kind", "tv_absent", "modes_reference", "modes_reference_total"}
    assert {key: result[key] for key in result if key not in left_out} == {
        key: exactly[key] for key in exactly if key not in left_out
    }
    assert result["modes_reference"] is None
    assert exactly["modes_reference"] is not None


def test_the_reference_refuses_with_the_count() -> None:
    task = tiny_task(small())  # 1 + 3 + 9 states, 27 objects
    with pytest.raises(ValueError, match="needs 40 states and objects, the limit is 39: raise --max-states"):
        reference(task, max_states=39)
    assert reference(task, max_states=40).target.shape == (27,)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--samples", "0"], "samples must be at least 1, got 0"),
        (["--samples", "-1"], "samples must be at least 1, got -1"),
        (["--samples", "10000001"], "samples must lie in [1, 1e+07], got 10000001"),
        (["--max-states", "-1"], "max_states must lie in [0, 1e+08], got -1"),
        (["--max-states", "100000001"], "max_states must lie in [0, 1e+08], got 100000001"),
        (["--seed", "-1"], "seed must lie in [0, "),
        (["--seed", "9" * 30], "seed must lie in [0, "),
    ],
)
def test_wrong_numbers(flags: list[str], message: str, grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    assert complaint(capsys, ["evaluate", str(grid_run), "--device", "cpu", *flags]).startswith(message)
    assert contents(grid_run) == before


def test_samples_that_memory_would_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = tiny_trainer()  # three steps
    monkeypatch.setattr("sgfn.evaluation.measure.MOST_STEPS", 30)
    assert measure(trainer, 10)["unique"] <= 10
    with pytest.raises(ValueError, match=r"^samples must be at most 10 where objects have 3 steps, got 11$"):
        measure(trainer, 11)


@pytest.mark.parametrize("score", [0.0, 1e-30, 0.5, 1e30])
@pytest.mark.parametrize("stop", [False, True])
def test_a_plain_has_no_modes_and_can_be_measured(score: float, stop: bool) -> None:
    """Every object has the same score: the target is uniform, and there is nothing to find."""
    task = tiny_task(small(), stop=stop)
    table = torch.full_like(task.landscape.table, score)  # pyright: ignore[reportAttributeAccessIssue]
    task = replace(task, landscape=TableLandscape(table, vocab=3 + stop, mode_level=0.9))
    found = measure(Trainer(task, CPU), 20)
    assert found["tv"] == pytest.approx(found["tv_uniform"], abs=0.2)
    if not stop:
        assert (found["modes_reference"], found["modes_reference_total"]) == (None, None)
    json.dumps(dict(found), allow_nan=False)


def test_the_landscape_is_back_where_it_was_and_the_trainer_unchanged() -> None:
    trainer, twin = tiny_trainer(), tiny_trainer()
    measure(trainer, 20)
    for each in (trainer, twin):
        each.step()
    assert all(torch.equal(a, b) for a, b in zip(trainer.state().values(), twin.state().values(), strict=True))
    twin.step()
    assert not torch.equal(trainer.generator.get_state(), twin.generator.get_state())


def test_describe_tells_what_evaluate_will_compare_with(grid_run: Path) -> None:
    config = Run(path=grid_run).read_config()[1]
    facts, result = sgfn.describe("grid", config), evaluate(grid_run, samples=10, device="cpu")
    assert facts["exact"]
    for key in ("tv_floor", "tv_blind", "tv_uniform", "target_expected_reward", "floor_expected_reward", "floor_kind"):
        assert facts[key] == pytest.approx(result[key])
    assert (facts["objects"], facts["states"], facts["horizon"], facts["actions"]) == (9, 9, 5, 3)
    assert sgfn.describe("grid", config.with_(noise__alpha=0.5))["tv_blind"] != pytest.approx(facts["tv_blind"])
    limited = sgfn.describe("grid", config, max_states=17)
    assert not limited["exact"]
    assert "tv_floor" not in limited
    assert limited.keys() < facts.keys()
    assert facts["maximum"] == pytest.approx(0.501)
    assert sgfn.describe("grid", TrainConfig())["maximum"] == pytest.approx(2.501)


def test_a_motif_is_measured_by_exact_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing can be enumerated at length 20; the estimate must agree with the exact KL of a uniform policy."""
    config = small_on(
        "motif", motif__factor="Arnt", motif__length=20, beta=8.0, noise__alpha=0.0, steps=1, optim__lr=0.0
    )
    run = train("motif", config, tmp_path / "run", device="cpu").path
    found = evaluate(run, samples=4096, device="cpu")
    landscape = make_task("motif", config).landscape
    assert isinstance(landscape, Motif)
    exact_kl = landscape.kl_to(torch.full((20, 4), 0.25, dtype=torch.float64), 8.0)
    assert exact_kl > 1.0
    assert abs(found["kl"] - exact_kl) < 5 * found["kl_error"] + 0.1  # a fresh policy is nearly uniform
    assert found["kl_floor"] == pytest.approx(0.0, abs=1e-9)
    assert found["tv"] is None
    assert main(["evaluate", str(run), "--samples", "64", "--device", "cpu"]) == 0
    assert "KL from target, estimate" in capsys.readouterr().out
    best = evaluate(train("motif", config.with_(motif__score="best"), tmp_path / "b", device="cpu").path, samples=64)
    assert best["kl"] is None


def test_a_learner_of_ones_own_may_give_its_law_without_telling_how_far_it_is() -> None:
    class Own(Trainer):
        def law(self) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
            return torch.full((self.env.num_objects,), 1 / self.env.num_objects, dtype=torch.float64)

    found = measure(Own(tiny_task(small()), CPU), samples=16)
    wanted = measure(tiny_trainer(), samples=16)
    assert found.tv is not None
    assert found.tv != wanted.tv
