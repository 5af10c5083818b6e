"""GB1 and MPSA: known facts of the embedded tables, and what a damaged file gets."""

from pathlib import Path

import numpy as np
import pytest
import torch

from sgfn.config import TrainConfig
from sgfn.landscapes import complete_tables
from sgfn.landscapes.complete_tables import gb1_counts, gb1_fitness, mpsa_activity, pack, read_complete
from sgfn.landscapes.tasks import make_task


def test_facts_of_gb1() -> None:
    fitness = gb1_fitness()
    task = make_task("gb1", TrainConfig())
    parse = task.env.parse
    assert np.isfinite(fitness).sum() == 149_361
    best = int(np.nanargmax(fitness))
    assert task.env.decode(task.env.all_objects()[best : best + 1]) == ["FWAA"]
    assert abs(fitness[best] - 8.76196565571) < 1e-6
    wild, other = task.env.object_index(parse(["VDGV", "CDGV"])).tolist()
    assert fitness[wild] == 1.0
    assert abs(fitness[other] - 0.242237277886) < 1e-6
    scores = task.landscape.scores(parse(["FWAA", "VDGV"]))
    assert torch.allclose(scores, torch.tensor([1.0, 1 / 8.76196565571]))
    missing = int(np.isnan(fitness).argmax())
    assert task.landscape.scores(task.env.all_objects()[missing]) == 0.0
    assert task.env.num_objects == 160_000
    before, after = gb1_counts("input"), gb1_counts("selected")
    assert (before[wild], after[wild]) == (92_735, 338_346)
    assert (np.isfinite(before) == np.isfinite(fitness)).all()
    often = before >= 50  # fitness is the rise of the share of reads, relative to the wild type
    rise = after[often] / before[often] / (after[wild] / before[wild])
    assert np.corrcoef(rise, fitness[often])[0, 1] > 0.99


def test_facts_of_mpsa() -> None:
    one, two = mpsa_activity(1), mpsa_activity(2)
    there = np.isfinite(one)
    assert there.sum() == 30_483
    task = make_task("mpsa", TrainConfig())
    texts = task.env.decode(task.env.all_objects()[torch.from_numpy(there)])
    assert {text[3:5] for text in texts} == {"GU", "GC"}
    both = there & np.isfinite(two)
    assert 0.75 < np.corrcoef(one[both], two[both])[0, 1] < 0.85
    consensus = task.env.parse(["CAGGUAAGU", "CAGAUAAGU"])
    scores = task.landscape.scores(consensus)
    assert scores[0] > 0.8
    assert scores[1] == 0.0  # no splice site
    assert abs(task.landscape.maximum - 10 ** np.nanmax(one) / 100) < 1e-6


def test_a_damaged_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete_tables, "DATA", tmp_path)
    (tmp_path / "own").mkdir()
    blob = pack(["AC", "CA"], np.array([0.5, -1.25]), "AC")
    record = tmp_path / "own" / "provenance.json"
    (tmp_path / "own" / "x.bin").write_bytes(blob)
    record.write_text(f'{{"sha256": {{"x.bin": "{complete_tables.sha256(blob)}"}}}}')
    np.testing.assert_array_equal(read_complete("own", "x", 4), [np.nan, 0.5, -1.25, np.nan])
    with pytest.raises(ValueError, match=r"4 scores instead of 8"):
        read_complete("own", "x", 8)
    (tmp_path / "own" / "x.bin").write_bytes(blob + b"x")
    with pytest.raises(ValueError, match=r"checksum mismatch"):
        read_complete("own", "x", 4)
    with pytest.raises(ValueError, match=r"AC is there twice"):
        pack(["AC", "AC"], np.array([0.5, 1.0]), "AC")
