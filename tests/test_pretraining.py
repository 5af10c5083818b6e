"""Series that the pretrained network learns from, and its training in small."""

import sys
from pathlib import Path

import benchmarks.pretraining.__main__ as pretraining
import pytest
import torch
from benchmarks.pretraining.simulated import Draw, autoregression, gaussian_process, season, simulate
from safetensors.torch import load_file

from sgfn.series.pretrained import PretrainedNet
from sgfn.series.quantile_laws import GRID
from sgfn.series.shown import CONTEXT


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_series_are_those_of_their_seed() -> None:
    processes = torch.zeros(2, 60)
    one, other = (simulate(50, 60, seeded(seed), processes) for seed in (0, 0))
    torch.testing.assert_close(one, other)
    assert torch.isfinite(one[0]).all()
    assert (simulate(50, 60, seeded(1), processes)[0] != one[0]).any()


def test_a_season_repeats_where_it_does_not_drift() -> None:
    length = torch.full((400,), 12)
    found = season(Draw(400, seeded(0)), 120, length)
    repeats = ((found[:, 12:24] - found[:, :12]).abs().amax(1) < 0.01).float().mean()
    assert 0.4 < repeats < 0.65  # six in ten patterns do not drift, some of them grow
    shifted = ((found[:, 11:23] - found[:, :12]).abs().amax(1) < 0.01).float().mean()
    assert shifted < 0.05


def test_parts_have_mean_square_one() -> None:
    draw = Draw(30, seeded(0))
    for part in (autoregression(draw, 200), gaussian_process(draw, 80, torch.full((30,), 7))):
        torch.testing.assert_close(part.std(1), torch.ones(30), atol=0.02, rtol=0.02)


def test_the_loss_is_least_at_the_quantiles_of_the_law() -> None:
    values = torch.randn(20_000, 1, generator=seeded(0))
    right = torch.distributions.Normal(0.0, 1.0).icdf(torch.tensor(GRID)).float().expand(20_000, 1, -1)
    found = [float(pretraining.pinball(law, values).mean()) for law in (right, 1.2 * right, 0.8 * right, right + 0.2)]
    assert found[0] == min(found)


def test_histories_end_where_what_is_asked_begins() -> None:
    """Of series that count their places, steps ahead are so many places after the end."""
    straight = torch.arange(pretraining.STEPS, dtype=torch.float32).expand(16, -1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretraining, "simulate", lambda *_: (straight, torch.full((16,), 4)))
        found = pretraining.tasks(seeded(0), torch.zeros(1, 1), 16)
    torch.testing.assert_close(found.truth, found.values[:, -1:] + 1 + found.steps)
    assert found.values.shape == (16 * pretraining.CUTS, CONTEXT)
    assert (found.count >= pretraining.SHORTEST).all()


@pytest.mark.slow
def test_training_writes_weights_that_the_network_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "DRAWN", 4)
    small, weights = ["--device", "cpu", "--batch", "64", "--series", "32", "--processes", "6"], []
    for run, steps in enumerate((4, 4, 8)):
        out = tmp_path / f"{run}.safetensors"
        monkeypatch.setattr(sys, "argv", ["pretraining", *small, "--steps", str(steps), "--out", str(out)])
        pretraining.main()
        weights.append(load_file(out))
        PretrainedNet().load_state_dict({name: value.float() for name, value in weights[-1].items()})
    torch.testing.assert_close(weights[0], weights[1])
    assert any((weights[0][name] != weights[2][name]).any() for name in weights[0])


def test_a_batch_of_more_than_is_drawn_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole batches alone are learned from: nothing would be, for ever."""
    monkeypatch.setattr(sys, "argv", ["pretraining", "--batch", "97", "--series", "32", "--out", "unused"])
    with pytest.raises(SystemExit, match="2"):
        pretraining.main()
    assert "--batch must be at most 3 times --series, got 97 and 32" in capsys.readouterr().err
