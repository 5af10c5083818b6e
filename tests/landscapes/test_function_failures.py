"""Function rewards that fail: repeated, skipped or stopped, logged, kept on disk, and with gradients inside."""

import json
import math
from pathlib import Path

import pytest
import torch

from sgfn.cli import main
from sgfn.config import TrainConfig
from sgfn.landscapes.function import FunctionLandscape, letters
from sgfn.landscapes.function_files import LOG, SCORES, append_scores, read_scores
from sgfn.landscapes.tasks import make_task

ROWS = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]])  # AA AC CA CC


class Flaky:
    """Scores by the number of A; fails in the first calls, and always on one string."""

    __qualname__ = "Flaky"

    def __init__(self, failures: int, never: str = "", wrong: float | None = None) -> None:
        self.failures, self.never, self.wrong, self.calls = failures, never, wrong, 0

    def __call__(self, texts: list[str]) -> list[float]:
        self.calls += 1
        if self.failures > 0:
            self.failures -= 1
            raise RuntimeError("the server is busy")
        if self.never in texts and self.wrong is None:
            raise KeyError(self.never)
        return [self.wrong if t == self.never and self.wrong is not None else float(t.count("A")) for t in texts]


def landscape(function: Flaky, **options: object) -> FunctionLandscape:
    return FunctionLandscape(function, letters("AC"), None, math.inf, **options)  # pyright: ignore[reportArgumentType]


def test_a_failed_call_is_repeated() -> None:
    found = landscape(Flaky(2, "-"), on_error="retry")
    assert found.trouble() == ""
    assert found.scores(ROWS).tolist() == [2, 1, 1, 0]
    assert found.trouble().endswith("failed: 1 calls were repeated, 0 objects skipped with score 0")
    with pytest.raises(ValueError, match=r"the server is busy"):
        landscape(Flaky(9, "-"), on_error="retry", retries=1).scores(ROWS)
    with pytest.raises(ValueError, match=r"failed on"):
        landscape(Flaky(5, "-")).scores(ROWS)  # by default nothing is repeated


@pytest.mark.parametrize("wrong", [None, math.nan, -1.0])
def test_what_fails_alone_is_skipped_and_asked_again(wrong: float | None, tmp_path: Path) -> None:
    flaky = Flaky(0, "AC", wrong)
    found = landscape(flaky, on_error="skip", retries=1, keep_scores=True)
    found.attach(tmp_path, resumed=False)
    assert found.scores(ROWS).tolist() == [2, 0, 1, 0]
    assert found.skipped == 1
    assert "1 calls were repeated, 1 objects skipped" in found.trouble()
    assert str(tmp_path / LOG) in found.trouble()
    assert "AC" not in found.known
    assert "AC" not in (tmp_path / SCORES).read_text()
    calls = flaky.calls
    assert found.scores(ROWS[[0, 2]]).tolist() == [2, 1]
    assert flaky.calls == calls  # remembered
    flaky.never = "-"
    assert found.scores(ROWS).tolist() == [2, 1, 1, 0]
    with pytest.raises(ValueError, match=r"AC"):
        landscape(Flaky(0, "AC", wrong), on_error="retry").scores(ROWS)


def test_tracebacks_are_in_the_log(tmp_path: Path) -> None:
    found = landscape(Flaky(0, "CA"), on_error="retry", retries=1)
    found.attach(tmp_path, resumed=False)
    with pytest.raises(ValueError, match=r"'CA'") as caught:
        found.scores(ROWS)
    log = (tmp_path / LOG).read_text()
    assert "attempt 1" in log
    assert "attempt 2" in log
    assert "KeyError: 'CA'" in log
    assert "raise KeyError(self.never)" in log
    assert str(tmp_path / LOG) in caught.value.__notes__[0]


def test_scores_are_kept_for_a_resumed_run(tmp_path: Path) -> None:
    first = landscape(Flaky(0, "-"), keep_scores=True)
    first.attach(tmp_path, resumed=False)
    first.scores(ROWS)
    silent = Flaky(99)
    again = landscape(silent, keep_scores=True)
    again.attach(tmp_path, resumed=True)
    assert again.scores(ROWS).tolist() == [2, 1, 1, 0]
    assert silent.calls == 0
    fresh = landscape(Flaky(99), keep_scores=True)
    fresh.attach(tmp_path, resumed=False)
    with pytest.raises(ValueError, match=r"busy"):
        fresh.scores(ROWS)


def test_damaged_scores_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / SCORES
    append_scores(path, "mine:f", {"A": 1.0, "C": 0.5})
    with path.open("a") as file:
        file.write('["G", "x"]\n["T", -1]\n["U", NaN]\n[[[\n["AA", 2.0')
    assert read_scores(path, "mine:f", 10) == {"A": 1.0, "C": 0.5}
    assert read_scores(path, "mine:f", 1) == {"A": 1.0}
    assert read_scores(path, "other:f", 10) == {}
    assert json.loads(path.read_text().splitlines()[0]) == {"function": "mine:f"}


def by_gradient(texts: list[str]) -> list[float]:
    """A score that is made of a gradient: d/dx of n x squared at 1."""
    found = []
    for text in texts:
        x = torch.ones((), requires_grad=True)
        (text.count("A") * x.square()).backward()
        assert x.grad is not None
        found.append(float(x.grad))
    return found


def test_gradients_are_allowed_inside() -> None:
    found = FunctionLandscape(by_gradient, letters("AC"), None, math.inf)
    with torch.no_grad():
        assert found.scores(ROWS).tolist() == [4, 2, 2, 0]
    with torch.inference_mode():
        assert FunctionLandscape(by_gradient, letters("AC"), None, math.inf).scores(ROWS).tolist() == [4, 2, 2, 0]


def test_modes_only_where_a_level_is_known() -> None:
    config = TrainConfig().with_(callable__function=f"{__name__}:by_gradient", callable__length=3)
    assert make_task("callable", config).landscape.mode_level == math.inf
    assert make_task("callable", config.with_(callable__maximum=2.0)).landscape.mode_level == 1.8
    assert make_task("callable", config.with_(callable__mode_level=0.5)).landscape.mode_level == 0.5


def sometimes(texts: list[str]) -> list[float]:
    """Fails on one string."""
    if "AAA" in texts:
        raise RuntimeError("no answer")
    return [1.0 + text.count("C") for text in texts]


def test_a_run_tells_at_its_end_what_was_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"train callable --callable.function {__name__}:sometimes --callable.length 3 --callable.alphabet AC"
    words += " --callable.on-error skip --callable.retries 0 --steps 3 --batch 16 --net.hidden 8 --dynamics.hidden 8"
    assert main([*words.split(), "--device", "cpu", "--json", "--out", str(tmp_path / "run")]) == 0
    told = capsys.readouterr()
    assert "objects skipped with score 0; the tracebacks are in" in told.out + told.err
