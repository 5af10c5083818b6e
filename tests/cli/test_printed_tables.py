"""Tables of what is not known in part: dashes and reasons."""

from pathlib import Path

import pytest
from small_runs import complaint

from sgfn.cli.commands import main
from sgfn.cli.tables import fact_lines

MODULE = """
import sgfn, torch
from sgfn.landscapes.tasks import make_task

def mixed(config, letters, length):
    rows = [[.5, .5, 0, 0], [0, .5, .5, 0], [0, 0, .5, .5], [.25, .25, .25, .25], [0, 0, 0, 1]]
    return sgfn.Mixtures(matrix=torch.tensor(rows, dtype=torch.float64))

def levels(config, letters, length):
    return sgfn.UniformSlip(alpha=config.alpha / 2)

def short(name, config):
    made = make_task("callable", config.with_(callable__function="tables_own:count", callable__length=3))
    return sgfn.landscapes.tasks.replace(made, name=name)

def count(texts):
    return [1 + text.count("G") for text in texts]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of one's own."""
    (tmp_path / "tables_own.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_rectangular_noise_has_no_law_that_ignores_it(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = ["--noise.kind", "tables_own:mixed"]
    assert main(["tasks", "tables_own:short", *noise]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "ignoring the noise" in line)
    assert line.split()[-1] == "-"
    words = ["train", "tables_own:short", *noise, "--steps", "2", "--batch", "4", "--device", "cpu", "--out", "run"]
    assert main(words) == 0
    assert main(["evaluate", "run", "--samples", "50", "--device", "cpu"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "ignoring noise" in line)
    assert " - / 0." in line


def test_a_maker_that_does_not_read_alpha_has_no_level(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "tables_own:short", "--methods", "random", "--alphas", ".1", ".2", "--noise.kind"]
    said = complaint(capsys, [*words, "tables_own:mixed", "--out", "c"])
    assert said.startswith("noise.kind 'tables_own:mixed' has no level that --alphas could set: leave it out")
    assert not (own / "c").exists()
    train = ["train", "tables_own:short", "--steps", "1", "--out", "run", "--noise.kind"]
    assert "--noise.alpha does nothing" in complaint(capsys, [*train, "tables_own:mixed", "--noise.alpha", ".1"])
    said = complaint(capsys, [*train, "tables_own:levels", "--noise.concentration", "9"])
    assert said.startswith("--noise.concentration does nothing here")
    assert main([*train, "tables_own:levels", "--noise.alpha", ".1", "--batch", "2", "--device", "cpu"]) == 0


def test_an_own_builder_refuses_the_flags_of_other_tasks(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["tasks", "tables_own:short"], ["train", "tables_own:short", "--out", "run"]):
        said = complaint(capsys, [*verb, "--bits.k", "2"])
        assert said.startswith("--bits.k does nothing here: it is read with task bits")
    assert main(["tasks", "tables_own:short", "--beta", "2", "--callable.alphabet", "rna"]) == 0


def test_why_a_task_is_not_enumerated() -> None:
    facts = {"objects": None, "states": None, "horizon": 3, "maximum": None, "alphabet": None, "exact": False}
    assert dict(fact_lines(facts | {"listed": False}))["enumerated"].endswith("does not list its states and objects")
    assert dict(fact_lines(facts | {"listed": True}))["enumerated"] == "no: too many states"
