"""Samples follow the exact law; orders come with exact expectations; the CSV can be read by anyone."""

import csv
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exact_tables import KINDS, Drift, chi_square
from scipy import stats
from small_runs import complaint, contents, tiny_task, tiny_trainer
from small_runs import small as configured
from torch import Tensor
from torch.testing import assert_close

import sgfn
from sgfn.cli.commands import main
from sgfn.envs import SequenceEnv
from sgfn.evaluation import orders
from sgfn.evaluation.orders import as_orders, best_orders, expectation, scored_by
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.offline import read_objects
from sgfn.learning import learner
from sgfn.learning.trainer import Trainer
from sgfn.noise import HiddenRate, UniformSlip
from sgfn.runs.folder import Run
from sgfn.runs.sampling import sample


def by_enumeration(env: SequenceEnv, landscape: Landscape, order: str) -> float:
    """E[R(x) | order], one outcome after the other; a hidden rate on a fine grid of its quantiles."""
    total, intended, rates = 0.0, [env.alphabet.index(letter) for letter in order], rates_of(env)
    prefixes = torch.where(torch.arange(env.length) < torch.arange(env.length)[:, None], 0, env.blank)
    copies = prefixes[:, None].expand(-1, len(rates) if rates is not None else 1, -1)  # L J S
    kernels = env.kernel(copies, torch.float64, None if rates is None else rates.expand(env.length, -1))
    for letters in product(range(env.vocab), repeat=len(order)):
        steps = enumerate(zip(intended, letters, strict=True))
        chance = torch.stack([kernels[t, :, a, k] for t, (a, k) in steps]).prod(0).mean()
        realised = env.parse(["".join(env.alphabet[k] for k in letters)])
        total += float(chance) * float(landscape.scores(realised)[0])
    return total


RATES = (np.arange(400) + 0.5) / 400


def rates_of(env: SequenceEnv) -> Tensor | None:
    if not isinstance(env.noise, HiddenRate):
        return None
    a, c = env.noise.mean * env.noise.concentration, env.noise.concentration
    return torch.from_numpy(stats.beta(a, c - a).ppf(RATES))


def expected_scores(env: SequenceEnv, landscape: Landscape, orders: Tensor) -> Tensor:
    """Expected scores, which are exact in these small spaces."""
    found = expectation(env, orders, scored_by(landscape))
    assert found.exact
    assert not found.error.any()
    return found.mean[:, 0].float()


def mean_of_draws(env: SequenceEnv, landscape: Landscape, orders: Tensor) -> Tensor:
    """4,000 draws of each order, without any table."""
    found = expectation(env, orders, scored_by(landscape), draws=4000, limit=0)
    assert not found.exact
    return found.mean[:, 0].float()


@pytest.mark.parametrize("stop", [False, True])
def test_samples_follow_the_exact_law(stop: bool) -> None:
    trainer = tiny_trainer(stop=stop, noise__alpha=0.4, optim__lr=0.05, optim__warmup=0)
    untrained = trainer.law()
    for _ in range(20):
        trainer.step()
    drawn = trainer.draw(20000, seed=1)
    env = trainer.task.env
    counts = env.object_index(drawn.objects).bincount(minlength=env.num_objects)
    assert chi_square(counts, trainer.law()) > 1e-3
    assert chi_square(counts, untrained) < 1e-9
    assert_close(drawn.scores, trainer.task.landscape.scores(drawn.objects))


def test_blocks_and_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = tiny_trainer()
    whole = trainer.draw(20, seed=0)
    assert torch.equal(trainer.draw(20, seed=0).objects, whole.objects)
    assert not torch.equal(trainer.draw(20, seed=1).objects, whole.objects)
    monkeypatch.setattr(learner, "SAMPLE_BLOCK", 7)
    parts = trainer.draw(20, seed=0)
    assert parts.objects.shape == (20, 3)
    assert torch.equal(parts.objects[:7], trainer.draw(7, seed=0).objects)
    assert not torch.equal(parts.objects[:7], parts.objects[7:14])  # blocks go on where the last one stopped


def test_without_noise_what_is_meant_is_what_comes_out() -> None:
    for alpha, same in ((0.0, True), (0.5, False)):
        trainer = tiny_trainer(stop=True, noise__alpha=alpha)
        drawn, env = trainer.draw(200, seed=0), trainer.task.env
        assert isinstance(env, SequenceEnv)
        assert torch.equal(as_orders(env, drawn.intended), drawn.objects) == same


@pytest.mark.parametrize("noise", [UniformSlip, Drift])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_expected_scores_equal_enumeration(noise: type[UniformSlip], alpha: float) -> None:
    task = tiny_task(configured())
    env = SequenceEnv(length=3, alphabet="ABC", noise=noise(alpha=alpha))
    orders = env.all_objects()
    found = expected_scores(env, task.landscape, orders)
    wanted = [by_enumeration(env, task.landscape, order) for order in env.decode(orders)]
    assert_close(found, torch.tensor(wanted))
    other = SequenceEnv(length=3, alphabet="ABC", noise=noise(alpha=alpha + 0.1))
    assert not torch.allclose(expected_scores(other, task.landscape, orders), found, atol=1e-3)


@pytest.mark.parametrize("name", ["confusion-L3-V3", "position-L3-V2", "hidden-L3-V2"])
def test_expected_scores_under_every_noise(name: str) -> None:
    alphabet = "ABC" if "V3" in name else "AB"
    noise = KINDS[name](0.4).noise
    env = SequenceEnv(length=3, alphabet=alphabet, noise=noise)
    landscape = tiny_task(configured(), alphabet=alphabet).landscape
    orders = env.all_objects()
    found = expected_scores(env, landscape, orders)
    wanted = [by_enumeration(env, landscape, order) for order in env.decode(orders)]
    assert_close(found, torch.tensor(wanted), atol=1e-3 if "hidden" in name else 1e-6, rtol=0)
    slip = SequenceEnv(length=3, alphabet=alphabet, noise=UniformSlip(alpha=0.4))
    assert not torch.allclose(expected_scores(slip, landscape, orders), found, atol=2e-3)
    assert_close(mean_of_draws(env, landscape, orders), found, atol=0.03, rtol=0)


def test_the_chance_to_stay_intact_is_a_mean_over_hidden_rates() -> None:
    """Two letters: E[(1 - alpha/2)^3] = 1 - 3/2 m1 + 3/4 m2 - m3/8, with the moments of Beta(1.2, 1.8)."""
    env = KINDS["hidden-L3-V2"](0.4)
    assert isinstance(env, SequenceEnv)
    first, second, third = 1.2 / 3, 1.2 * 2.2 / (3 * 4), 1.2 * 2.2 * 3.2 / (3 * 4 * 5)
    wanted = 1 - 1.5 * first + 0.75 * second - third / 8
    assert orders.intact(env, env.all_objects()).tolist() == pytest.approx([wanted] * 8, abs=1e-12)
    assert wanted != pytest.approx(0.8**3, abs=1e-2)


def test_an_order_ends_at_the_first_stop_even_if_it_slipped() -> None:
    env = KINDS["slip-stop-L3-V2"](0.3)
    assert isinstance(env, SequenceEnv)
    intended = torch.tensor([[0, 2, 1], [0, 1, 2], [1, -1, -1], [0, 1, 1]])
    assert env.decode(as_orders(env, intended)) == ["A", "AB", "B", "ABB"]


def test_expected_scores_by_draws_come_near_the_exact_ones() -> None:
    task = tiny_task(configured(noise__alpha=0.3))
    env, orders = task.env, task.env.all_objects()
    assert isinstance(env, SequenceEnv)
    exact = expected_scores(env, task.landscape, orders)
    drawn = mean_of_draws(env, task.landscape, orders)
    assert not torch.equal(drawn, exact)
    assert_close(drawn, exact, atol=0.03, rtol=0)  # four standard errors at the very most
    assert (drawn - task.landscape.scores(orders)).abs().max() > 0.1


def test_expected_scores_of_shorter_orders() -> None:
    task = tiny_task(configured(noise__alpha=0.3), alphabet="AB", stop=True)
    env = task.env
    assert isinstance(env, SequenceEnv)
    texts = env.decode(env.all_objects())
    assert {len(text) for text in texts} == {1, 2, 3}
    found = mean_of_draws(env, task.landscape, env.all_objects())
    wanted = torch.tensor([by_enumeration(env, task.landscape, text) for text in texts])
    assert_close(found, wanted, atol=0.03, rtol=0)
    assert (found.flip(0) - wanted).abs().max() > 0.1


@pytest.mark.parametrize("stop", [False, True])
def test_best_orders_are_what_they_say(stop: bool) -> None:
    trainer = tiny_trainer(stop=stop, noise__alpha=0.3)
    task, drawn = trainer.task, trainer.draw(500, seed=0)
    assert isinstance(task.env, SequenceEnv)
    orders = best_orders(task.env, task.landscape, drawn, count=8)
    expected = [order.expected for order in orders]
    assert len(orders) == 8
    assert expected == sorted(expected, reverse=True)
    assert expected != sorted(expected)
    assert len({order.order for order in orders}) == 8
    every = set(task.env.decode(task.env.all_objects()))
    for order in orders:
        assert order.order in every
        assert order.intact == pytest.approx((1 - 0.3 + 0.3 / 3) ** len(order.order))
        assert order.score == pytest.approx(float(task.landscape.scores(task.env.parse([order.order]))[0]))
        exact = by_enumeration(task.env, task.landscape, order.order)
        assert order.expected == pytest.approx(exact, abs=1e-6)
        assert order.error == order.violates == 0.0
    everything = best_orders(task.env, task.landscape, drawn, count=10**6)
    assert {order.order for order in everything} == every
    assert max(order.expected for order in everything) == orders[0].expected


def test_where_expectations_are_drawn_the_best_intact_scores_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete table needs no shortlist; without one, few orders are looked at, but as many as are asked for."""
    for stop in (False, True):
        trainer = tiny_trainer(stop=stop, noise__alpha=0.3)
        task, drawn = trainer.task, trainer.draw(500, seed=0)
        all_orders = best_orders(task.env, task.landscape, drawn, count=10**6)
        monkeypatch.setattr("sgfn.evaluation.orders.SHORTLIST", 3)
        monkeypatch.setattr("sgfn.evaluation.orders.LARGEST_TABLE", 0 if stop else 10**6)
        short = best_orders(task.env, task.landscape, drawn, count=3)
        best_intact = sorted((order.score for order in all_orders), reverse=True)[:3]
        assert (sorted((order.score for order in short), reverse=True) == best_intact) == stop
        assert len(best_orders(task.env, task.landscape, drawn, count=5)) == 5
        monkeypatch.undo()


def test_a_grid_has_no_orders(grid_run: Path) -> None:
    trainer, tiny = Run(path=grid_run).load(torch.device("cpu")), tiny_trainer()
    for each, empty in ((trainer, True), (tiny, False)):
        drawn = each.draw(50, seed=0)
        assert (best_orders(each.task.env, each.task.landscape, drawn) == []) == empty


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def scores_of(trainer: Trainer, objects: Tensor) -> list[float]:
    return trainer.task.landscape.scores(objects).tolist()


@pytest.mark.parametrize("name", ["grid_run", "words_run"])
def test_the_csv_is_well_formed(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run, out = request.getfixturevalue(name), tmp_path / "deep" / "samples.csv"
    assert sample(run, 60, out, device="cpu") == 60
    rows, trainer = read(out), Run(path=run).load(torch.device("cpu"))
    assert len(rows) == 60
    assert all(list(row) == ["sequence", "score", "intended"] and None not in row.values() for row in rows)
    objects = trainer.task.env.parse([row["sequence"] for row in rows])
    assert [float(row["score"]) for row in rows] == pytest.approx(scores_of(trainer, objects), rel=1e-5)
    assert [float(row["score"]) for row in rows] != pytest.approx(scores_of(trainer, objects.flip(0)), rel=1e-5)
    assert torch.equal(read_objects(trainer.task.env, out), objects)  # what comes out can go in again
    intended = [row["intended"] for row in rows]
    if name == "grid_run":
        assert all(row.startswith('"') for row in out.read_text().splitlines()[1:])
        assert all(set(text.split()) <= {"0", "1", "2"} and text.split().count("2") == 1 for text in intended)
    else:
        assert trainer.task.env.parse(intended).shape == (60, 7)
        assert intended != [row["sequence"] for row in rows]


def test_seeds_decide_the_csv(grid_run: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for path, seed in zip(paths, (0, 0, 1), strict=True):
        sample(grid_run, 30, path, seed=seed, device="cpu")
    first, second, third = (path.read_bytes() for path in paths)
    assert first == second
    assert first != third


@pytest.mark.parametrize("changed", [{"temperature": 0.5}, {"temperature": 3.0}, {"greedy": True}])
def test_the_file_holds_the_draws_of_the_model(changed: dict[str, Any], words_run: Path, tmp_path: Path) -> None:
    model = sgfn.load(words_run)
    for options in (dict[str, Any](), changed):
        file = tmp_path / f"{len(options)}.csv"
        sample(words_run, 40, file, seed=3, device="cpu", **options)
        drawn = model.sample(40, seed=3, **options)
        assert [(row["sequence"], row["intended"]) for row in read(file)] == list(
            zip(drawn.sequences, drawn.intended, strict=True)
        )
    assert read(tmp_path / "0.csv") != read(tmp_path / "1.csv")


def test_the_flags_of_a_changed_policy(words_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", str(words_run), "-n", "20", "--device", "cpu", "--out"]
    for name, flags in {
        "plain": [],
        "one": ["--temperature", "1"],
        "cold": ["--temperature", ".01"],
        "best": ["--greedy"],
    }.items():
        assert main([*words, str(tmp_path / f"{name}.csv"), *flags]) == 0
    plain, one, cold, best = (read(tmp_path / f"{name}.csv") for name in ("plain", "one", "cold", "best"))
    assert plain == one
    assert plain != cold
    assert plain != best
    said = complaint(capsys, [*words, str(tmp_path / "no.csv"), "--greedy", "--temperature", "2"])
    assert said.startswith("greedy intends what is most probable, at any temperature: leave temperature out")
    said = complaint(capsys, [*words, str(tmp_path / "no.csv"), "--temperature", "0"])
    assert said.startswith("temperature must lie in [0.001, 1000], got 0")
    assert not (tmp_path / "no.csv").exists()


def test_a_chain_has_no_policy_to_change() -> None:
    model = sgfn.fit("words", method="mh", steps=2, batch=4, log__exact_every=0, progress=False)
    assert len(model.sample(5, seed=0)) == 5
    with pytest.raises(ValueError, match="method 'mh' has no policy to change: leave temperature and greedy out"):
        model.sample(5, greedy=True)


def test_an_existing_file_is_kept_unless_told(grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", str(grid_run), "-n", "5", "--device", "cpu"]
    mine = grid_run / "samples.csv"
    mine.write_text("mine")
    before = contents(grid_run)
    assert "exists: add --overwrite" in complaint(capsys, words)
    assert contents(grid_run) == before
    sample(grid_run, 5, mine, device="cpu", overwrite=True)
    assert len(read(mine)) == 5


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-n", "0"], "-n must be at least 1, got 0"),
        (["-n", "-3"], "-n must be at least 1, got -3"),
        (["-n", "1000000001"], "-n must lie in [1, 1e+09], got 1000000001"),
        (["--seed", "-1"], "seed must lie in [0, "),
        (["--seed", "9" * 30], "seed must lie in [0, "),
    ],
)
def test_wrong_numbers(flags: list[str], message: str, grid_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(grid_run)
    assert complaint(capsys, ["sample", str(grid_run), "--device", "cpu", *flags]).startswith(message)
    assert contents(grid_run) == before
