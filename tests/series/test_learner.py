"""The forecaster as a method: what it learns from, what it holds out, noise, checkpoints."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small_panels import panel, series
from torch.testing import assert_close

from sgfn.config import TrainConfig
from sgfn.config.presets import PRESETS
from sgfn.landscapes.tasks import make_task
from sgfn.learning.learner import NonFiniteError
from sgfn.learning.methods import make_learner
from sgfn.series.forecaster import Forecaster
from sgfn.series.learner import FALLS, ONE_THREAD_WIDTH, ForecastLearner
from sgfn.series.task import series_task

CPU = torch.device("cpu")
TINY: dict[str, Any] = {
    "batch": 8,
    "steps": 6,
    "net__hidden": 8,
    "net__layers": 1,
    "net__heads": 2,
    "series__laws": "network",
    "series__horizon": 3,
    "series__context": 6,
    "series__season": 1,
    "series__bins": 6,
    "series__members": 2,
    "series__folds": 4,
    "series__check": 2,
    "series__calendar": False,
}
POOL: dict[str, Any] = {"series__laws": "seasonal naive,network", "series__refresh": 0.5, "series__folds": 2}
WAVE = np.sin(np.arange(200) / 3) + 0.3 * np.random.default_rng(0).normal(size=200)


def config_of(**changes: Any) -> TrainConfig:
    return PRESETS["forecast"].with_(**TINY | changes)


def learner_of(values: np.ndarray = WAVE, **changes: Any) -> ForecastLearner:
    made = make_learner(series_task(panel(series(values)), config_of(**changes)), CPU)
    assert isinstance(made, ForecastLearner)
    return made


def advance(learner: ForecastLearner, steps: int) -> ForecastLearner:
    for _ in range(steps):
        learner.step()
        learner.done += 1
    return learner


def test_last_steps_learn_from_the_windows_of_the_weights_and_the_ones_before_do_not() -> None:
    """What is judged on those windows is the network before it learned from them; a run goes on as it would have."""
    changed = WAVE.copy()
    changed[170:] = 3.0 * WAVE[170:] + 5.0
    one, other = (advance(learner_of(values, **POOL), 6) for values in (WAVE, changed))
    assert one.data.training.series[0].values.shape[0] < 170 < len(one.data.known.series[0])
    assert not differ(one.before.state_dict(), other.before.state_dict())
    assert differ(one.best.state_dict(), other.best.state_dict())
    assert differ(one.best.state_dict(), one.before.state_dict())
    part = advance(learner_of(**POOL), 4)
    resumed = learner_of(**POOL)
    resumed.load(part.state())
    assert not differ(advance(resumed, 2).state(), one.state())


def loaded(state: dict[str, torch.Tensor], **changes: Any) -> ForecastLearner:
    learner = learner_of(**POOL | changes)
    learner.load(state)
    return learner


def test_before_the_turn_the_windows_of_the_weights_are_judged_by_what_was_learned() -> None:
    """Not by networks that wait for the turn with their initial weights."""
    learner = advance(learner_of(**POOL), 2)
    inputs = learner.data.inputs_at_ends()
    for steps in (0, 1):  # before the turn, and at it
        early = advance(learner, steps)
        assert torch.equal(early.member_laws(inputs, before=True), early.member_laws(inputs))
    assert not torch.equal(advance(learner, 3).member_laws(inputs, before=True), learner.member_laws(inputs))


def test_more_steps_after_the_turn_are_late_and_the_turn_stays() -> None:
    """What was learned of the windows of the weights cannot be unlearned; before the turn it moves with the steps."""
    early, part = advance(learner_of(**POOL), 2), advance(learner_of(**POOL), 5)
    more = loaded(part.state(), steps=14)
    assert (more.turn, more.late) == (3, True)
    assert not differ(advance(more, 9).before.state_dict(), part.before.state_dict())
    only_networks = learner_of(**POOL, steps=14)
    only_networks.load_networks(part.state())
    assert only_networks.turn == 3
    assert loaded(early.state(), steps=14).turn == 7
    assert loaded(advance(early, 1).state(), steps=4).turn == 3  # the turn of 4 steps has passed: it comes next


def test_a_run_that_does_not_tell_its_turn_goes_on() -> None:
    part = advance(learner_of(**POOL), 4)
    old = {name: value for name, value in part.state().items() if name != "refresh.turn"}
    assert not differ(advance(loaded(old), 2).state(), advance(part, 2).state())


def test_the_figure_of_held_out_windows_is_of_before_the_turn() -> None:
    """In the last steps they are learned from: the loss on them is no figure of what is held out."""
    at_turn = advance(learner_of(**POOL), 3)
    wanted = at_turn.readings()["held_out"]
    assert torch.equal(advance(at_turn, 3).readings()["held_out"], wanted)


def test_without_a_refresh_nothing_is_held_twice() -> None:
    plain = learner_of(series__laws="seasonal naive,network")
    assert plain.before is plain.best
    assert "before" not in plain.modules()


def differ(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name in one if not torch.equal(one[name], other[name])]


def test_a_continued_run_is_the_same_run() -> None:
    whole, first = advance(learner_of(), 6), advance(learner_of(), 3)
    second = learner_of()
    second.load({name: value.clone() for name, value in first.state().items()})
    assert differ(advance(second, 3).state(), whole.state()) == []
    assert differ(advance(learner_of(seed=1), 6).state(), whole.state())


def test_a_run_of_an_older_version_says_so_when_it_is_continued(tmp_path: Path) -> None:
    """Its networks still forecast."""
    made = Forecaster(config_of())
    made.learner = advance(learner_of(), 3)
    run = made.save(tmp_path / "run")
    kept = run.load_state()
    save_file({name: value for name, value in kept.items() if name != "judging.falls"}, run.checkpoint)
    with pytest.raises(ValueError, match=r"\(the judging differs\): were the two mixed, or written by another version"):
        run.restore(learner_of())
    assert Forecaster.load(tmp_path / "run").predict(samples=2).paths.shape == (1, 2, 3)


def test_what_a_member_holds_out_teaches_it_nothing() -> None:
    """Values of its own fold may be anything as targets; as what came before they are read like all others."""
    learner = learner_of(series__members=1)
    cuts = learner.cuts[40:60]
    held = learner.holds_out(0, cuts)
    assert bool(held.any())
    assert not bool(held.all())
    inputs, bins, seen = learner._batch(cuts)
    blind = torch.ones(len(cuts), dtype=torch.bool)
    other = torch.where(held, (bins + 1) % 6, bins)
    net = learner.members[0]
    counts = seen & ~held
    assert torch.equal(
        learner.loss(net, (inputs, bins, counts), blind), learner.loss(net, (inputs, other, counts), blind)
    )
    assert not torch.equal(
        learner.loss(net, (inputs, bins, seen), blind), learner.loss(net, (inputs, other, seen), blind)
    )


def test_the_folds_of_members_differ_and_are_judged() -> None:
    learner = learner_of()
    cuts = learner.cuts
    one, two = (learner.holds_out(member, cuts) for member in (0, 1))
    assert not bool((one & two).any())
    for member, batch in enumerate(learner.held_out):
        assert batch is not None
        assert bool(batch[2].any())
        assert len(batch[1]) <= int(learner.holds_out(member, cuts).any(-1).sum())


def test_the_best_weights_are_kept_and_members_come_to_rest() -> None:
    learner = advance(learner_of(steps=200, series__patience=1, optim__lr=0.5), 100)
    assert learner.falls.tolist() == [FALLS, FALLS]  # such a rate cannot go well for long
    kept = {name: value.clone() for name, value in learner.state().items()}
    advance(learner, 4)
    assert [name for name in differ(learner.state(), kept) if name.startswith(("nets", "best"))] == []
    for member, batch in enumerate(learner.held_out):
        assert batch is not None
        found = learner._score(learner.members[member], batch)
        assert found == pytest.approx(float(learner.scores[member]), abs=1e-5)


def test_without_folds_the_running_mean_is_kept() -> None:
    learner = advance(learner_of(series__folds=0), 6)
    assert learner.held_out == [None, None]
    assert differ(learner.best.state_dict(), learner.average.state_dict()) == []
    assert differ(learner.best.state_dict(), learner.nets.state_dict())
    assert "held_out" not in learner.read_meters()


def test_the_loss_is_the_cross_entropy_of_what_came() -> None:
    learner = learner_of(series__members=1)
    batch = learner._batch(learner.cuts[:16])
    inputs, bins, seen = batch
    net, blind = learner.members[0], torch.zeros(16, dtype=torch.bool)
    log_law = net.log_law(net(inputs, bins))
    wanted = [-log_law[b, t, bins[b, t]] for b in range(16) for t in range(3) if seen[b, t]]
    assert_close(learner.loss(net, batch, blind), torch.stack(wanted).mean())
    assert not torch.allclose(learner.loss(net, batch, ~blind), learner.loss(net, batch, blind))


def test_smoothed_targets_reward_near_misses() -> None:
    plain, smooth = learner_of(series__members=1), learner_of(series__members=1, series__smooth=1.0)
    batch, blind = plain._batch(plain.cuts[:16]), torch.zeros(16, dtype=torch.bool)
    net = plain.members[0]
    log_law = net.log_law(net(batch[0], batch[1]))
    wanted = -(smooth.smoothed[batch[1].clamp(max=5)] * log_law).sum(-1)
    assert_close(smooth.loss(net, batch, blind), (wanted * batch[2]).sum() / batch[2].sum())
    assert not torch.allclose(smooth.loss(net, batch, blind), plain.loss(net, batch, blind))


def test_a_known_measurement_error_is_summed_over() -> None:
    learner = learner_of(series__members=1, series__noise="known", series__deviation=0.4)
    batch, blind = learner._batch(learner.cuts[:4]), torch.zeros(4, dtype=torch.bool)
    net = learner.members[0]
    law = net.log_law(net(batch[0], batch[1])).exp().double()
    wanted = []
    for b, t in [(b, t) for b in range(4) for t in range(3)]:
        kernel = learner.bins.blur(0.4 / batch[0].unit[b : b + 1])[0]
        wanted.append(-torch.log((law[b, t] @ kernel)[batch[1][b, t]]))
    assert_close(learner.loss(net, batch, blind).double(), torch.stack(wanted).mean(), atol=1e-5, rtol=1e-5)
    env = learner.task.env
    unit = learner.data.inputs_at_ends().unit
    assert_close(env.kernel(env.initial(1), torch.float64)[0], learner.bins.blur(0.4 / unit)[0])
    drawn = env.operator(env.initial(1), torch.float64)  # paths are drawn by the noise that laws are summed over
    assert_close(
        learner.as_measured(law[:1], learner.data.inputs_at_ends())[:, 0], drawn.outcome_probabilities(law[:1, 0])
    )
    assert not torch.allclose(drawn.outcome_probabilities(law[:1, 0]), law[:1, 0])


def test_a_learned_error_is_the_widest_that_the_likelihood_admits() -> None:
    """Two exact levels, measured with error .3: all of the spread around them may be error, and no more."""
    rng = np.random.default_rng(0)
    values = 2.0 * np.where(rng.random(3000) < 0.5, -1, 1) + 0.3 * rng.normal(size=3000)
    plain = {"series__reference": "none", "series__scaling": "none", "series__absolute": False, "series__dropout": 0.0}
    noisy = {"series__noise": "learned", "series__deviation": 0.6, "series__bins": 24, "series__folds": 0}
    learner = learner_of(values, steps=250, batch=64, optim__lr=5e-3, series__members=1, **plain, **noisy)
    assert learner.deviation == pytest.approx(0.6, rel=1e-4)
    advance(learner, 250)
    assert learner.deviation == pytest.approx(0.3, abs=0.08)


def test_training_that_leaves_the_numbers_is_stopped() -> None:
    learner = learner_of()
    with torch.no_grad():
        next(learner.nets.parameters()).fill_(torch.nan)
    advance(learner, 1)
    with pytest.raises(NonFiniteError, match=r"^training left the finite numbers near step 1"):
        learner.read_meters()


def test_a_held_out_loss_that_is_no_number_stops_training() -> None:
    """Otherwise nothing would ever be better, and the first weights would be kept."""
    learner = learner_of()
    with torch.no_grad():
        next(learner.average.parameters()).fill_(torch.nan)
    with pytest.raises(NonFiniteError, match=r"^training left the finite numbers near step"):
        learner._keep_best()


def test_a_part_held_out_without_any_value_judges_nothing() -> None:
    values = WAVE.copy()
    learner = learner_of()
    held = learner.windows.folds(torch.tensor([[0, cut] for cut in range(200)]), 4)[:, 0] == 0
    values[held.numpy()] = np.nan
    found = learner_of(values)
    assert found.held_out[0] is None
    assert found.held_out[1] is not None
    advance(found, 2)
    assert float(found.scores[0]) == -torch.inf
    assert "held_out" in found.read_meters()


def test_after_a_fall_the_direction_is_forgotten() -> None:
    learner = advance(learner_of(steps=200, series__patience=1), 3)
    learner.scores.fill_(-torch.inf)  # nothing is better
    size = learner.steps[0].second.clone()
    learner._keep_best()
    assert learner.falls.tolist() == [1, 1]
    assert float(learner.steps[0].first.abs().max()) == 0.0
    assert torch.equal(learner.steps[0].second, size)
    assert float(size.max()) > 0.0


def test_narrow_networks_learn_on_one_thread() -> None:
    learner = learner_of()
    assert learner.small
    learner.config = learner.config.with_(net__hidden=ONE_THREAD_WIDTH + 2)
    assert not learner.small


def test_a_step_is_not_captured() -> None:
    assert not learner_of().capturable


def test_forecasting_is_for_series_and_series_for_forecasting() -> None:
    with pytest.raises(ValueError, match=r"^method 'forecast' learns time series, and words is none: use task series$"):
        make_learner(make_task("words", config_of()), CPU)
    with pytest.raises(ValueError, match=r"^task series is learned by method 'forecast', not by 'gfn'"):
        make_learner(series_task(panel(series(WAVE)), config_of(method="gfn")), CPU)


def test_samples_are_paths_after_the_end_of_each_series() -> None:
    two = panel(series(WAVE, "a"), series(10 + WAVE[:80], "b"))
    learner = make_learner(series_task(two, config_of()), CPU)
    found = learner.draw(7, seed=0)
    assert found.objects.shape == (7, 4)
    assert found.objects[:, 0].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert torch.equal(found.intended, found.objects[:, 1:])  # nothing is garbled
    assert float(found.scores[1::2].min()) > float(found.scores[::2].max())  # b lies higher
