"""Every Python block of docs/library.md runs by itself, and so does the notebook, in a kernel of its own."""

import re
from functools import cache
from pathlib import Path

import matplotlib as mpl
import nbformat
import pytest
import torch
from nbclient import NotebookClient

import sgfn
from sgfn.envs import Env

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "library.md").read_text()
NOTEBOOK = ROOT / "examples" / "own_reward.ipynb"


def blocks() -> dict[str, str]:
    """Python blocks by the heading above them."""
    sections = re.split(r"^#+ (.*)$", PAGE, flags=re.MULTILINE)[1:]
    found = zip(sections[::2], sections[1::2], strict=True)
    return {title: code for title, text in found for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)}


@cache
def ran(title: str) -> dict[str, object]:
    """The names that the block below a heading defines, which is run once."""
    return run(blocks()[title])


def run(code: str) -> dict[str, object]:
    """The names that a block defines."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, "docs/library.md", "exec"), names)
    return names


@pytest.mark.parametrize("title", blocks())
def test_every_block_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ran(title)
    assert isinstance(names["model"], sgfn.Model)
    with pytest.raises(NameError):
        run(blocks()[title].replace("import sgfn", "import math", 1))


def test_the_page_has_the_promised_blocks_and_names() -> None:
    titles = ["The library", "An own reward", "An own noise", "A noise class", "An own objective"]
    titles += ["An own objective with parts", "An own objective with flows", "An own encoder"]
    titles += ["The policy as a module", "Save, load, sample tensors", "An own environment"]
    assert list(blocks()) == titles
    assert PAGE.count("```python") == len(titles)
    for kind in (sgfn.Model, sgfn.Samples):
        for name in (name for name in vars(kind) if not name.startswith("_")):
            assert re.search(rf"`{name}[`(]|, `{name}|{name}\(\)`", PAGE), name


def test_an_environment_needs_eight_methods_and_the_page_writes_them() -> None:
    needed = Env.__abstractmethods__
    assert len(needed) == 8
    written = set(re.findall(r"    def ([a-z]\w*)\(self", blocks()["An own environment"]))
    assert written == needed


def test_the_module_block_raises_what_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = blocks()["The policy as a module"]
    after = ran("The policy as a module")["model"]
    before = run(code.replace("range(30)", "range(0)"))["model"]
    assert isinstance(after, sgfn.Model)
    assert isinstance(before, sgfn.Model)
    known = ["GATTACA", "GATTA"]
    assert bool((after.log_prob(known) > before.log_prob(known) + 1.0).all())


def test_the_objective_block_is_balance_inside_the_unit_circle() -> None:
    """Half the square plus a half inside, the absolute value outside: continuous, with the same slope at one."""
    code = blocks()["An own objective"].partition("model = ")[0]
    balance = run(code)["huber_balance"]
    assert callable(balance)
    gap = torch.tensor([0.0, 0.5, 1.0, 3.0], requires_grad=True)
    zeros = torch.zeros(4, 1)
    scores = type("S", (), {"log_pf": gap[:, None], "log_dynamics": zeros, "log_pb": zeros, "log_z": torch.zeros(())})
    loss = balance(scores, type("B", (), {"log_reward": torch.zeros(4)}))
    assert loss.tolist() == [0.5, 0.625, 1.0, 3.0]
    loss.sum().backward()
    assert gap.grad is not None
    assert gap.grad.tolist() == [0.0, 0.5, 1.0, 1.0]


def test_the_flow_block_is_detailed_balance_and_reads_the_reward() -> None:
    code = blocks()["An own objective with flows"]
    settings = {"noise": 0.1, "steps": 8, "log__every": 8, "net__hidden": 16, "progress": False, "log__exact_every": 0}
    wrong = code.replace("torch.where(batch.final, batch.log_reward[:, None], scores.log_flow)", "scores.log_flow")
    losses = []
    for objective in ("db", *(run(text.partition("model = ")[0])["detailed_balance"] for text in (code, wrong))):
        model = sgfn.fit("words", objective=objective, **settings)  # pyright: ignore[reportArgumentType]
        losses.append(float(model.metrics["loss"].iloc[-1]))
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] != pytest.approx(losses[0], rel=1e-2)


def test_the_noise_block_gives_a_law() -> None:
    model = ran("A noise class")["model"]
    assert isinstance(model, sgfn.Model)
    assert model.law()["probability"].sum() == pytest.approx(1.0)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run notebooks in, with a kernel that finds this package and leaves the user's folders alone."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("MPLCONFIGDIR", mpl.get_configdir())
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_runs_and_shows_one_bar(kernel: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(kernel)}}
    ).execute()
    shown = outputs(notebook)
    assert not [output for output in shown if output.output_type in ("error", "stream")]  # nothing on stderr either
    bars = [output for output in shown if "<progress" in output.get("data", {}).get("text/html", "")]
    assert len(bars) == 1
    assert "600/600" in bars[0].data["text/plain"]
    assert [
        len(outputs(nbformat.from_dict({"cells": [cell]}))) for cell in notebook.cells if cell.cell_type == "code"
    ] == [*(0, 1, 1, 1, 1, 1)]


def test_a_wrong_notebook_fails(kernel: Path) -> None:
    cells = [nbformat.v4.new_code_cell("raise ValueError('sequences has no reward')")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = NotebookClient(
        notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(kernel)}}
    )
    with pytest.raises(Exception, match="sequences has no reward"):
        client.execute()
