"""The soak: how it goes on in a folder, and that it sees what differs."""

import shutil
from pathlib import Path

import pytest
import torch
from benchmarks import soak
from safetensors.torch import load_file, save_file

from sgfn.cli.commands import Train, parse


@pytest.mark.parametrize("recipe", soak.RECIPES)
def test_recipes_are_commands(recipe: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(soak.TABLE)
    words = soak.next_command(recipe, tmp_path / "table.csv", tmp_path / "run")
    assert words[1:4] == ["-m", "sgfn", "train"]
    args = parse(Train, "train", words[4:])
    assert (args.resume, args.overwrite, args.config.steps) == (False, False, 600)


def test_a_run_goes_on_from_its_checkpoint_or_begins_again(grid_run: Path) -> None:
    table = grid_run / "table.csv"
    assert "--resume" in soak.next_command("grid", table, grid_run)
    shutil.rmtree(grid_run / "checkpoint")
    assert "--overwrite" in soak.next_command("grid", table, grid_run)
    (grid_run / "config.json").unlink()
    assert not {"--resume", "--overwrite"} & set(soak.next_command("grid", table, grid_run))


def test_the_smallest_difference_is_named(grid_run: Path, trained: Path) -> None:
    assert soak.differences(grid_run, trained / "grid") == []
    file = grid_run / "checkpoint" / "state.safetensors"
    state = load_file(file)
    name = next(name for name, value in state.items() if value.dtype == torch.float32 and value.numel())
    state[name].view(-1)[0] += 1e-3
    save_file(state, file)
    assert soak.differences(grid_run, trained / "grid") == [name]
    with (grid_run / "metrics.jsonl").open("a") as metrics:
        metrics.write("\n")
    assert soak.differences(grid_run, trained / "grid") == ["metrics.jsonl", name]
