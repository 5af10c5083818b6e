"""The designer, its folders and its two-round walk through the command line."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import sgfn
from sgfn.cli import main
from sgfn.config import NoiseConfig
from sgfn.design.designer import Designer
from sgfn.design.rounds import read_round_folder
from sgfn.envs.constraints import Constraints
from sgfn.noise import UniformSlip
from sgfn.noise.operators import DenseKernel, Kernel


def truth(text: str) -> float:
    return text.count("GA") + 0.5 * text.count("T")


@pytest.fixture(scope="module")
def library() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 6)) for _ in range(80)})
    return pd.DataFrame({"sequence": texts, "score": [truth(text) for text in texts]})


def designer(**settings: object) -> Designer:
    return Designer("dna", proxy="ridge", **settings)  # pyright: ignore[reportArgumentType]


def test_a_plate_is_new_good_and_expected_as_the_proxy_says(library: pd.DataFrame) -> None:
    made = designer(acquisition="greedy").fit(library)
    plate = made.propose(12)
    orders = plate.orders.order.tolist()
    assert plate.orders.columns[0] == "order"
    assert len(set(orders)) == 12
    assert plate.how == "exact"
    assert not set(orders) & set(library.sequence)
    assert np.mean([truth(o) for o in orders]) > np.quantile(library.score, 0.9)
    assert np.allclose(plate.orders.expected, made.predict(orders).score, atol=0.2)  # believed, and noise-free
    assert plate.outlook.expected_best == sorted(plate.outlook.expected_best)


def test_pending_orders_are_not_proposed_again_and_told_ones_are_compared(library: pd.DataFrame) -> None:
    made = designer().fit(library)
    first, second = made.propose(8), made.propose(8)
    assert not set(first.orders.order) & set(second.orders.order)
    assert len(made.pending) == 16
    scores = [truth(order) for order in first.orders.order]
    made.tell(first.orders[["order"]].assign(score=scores))
    assert len(made.pending) == 8
    assert set(made.pending) == set(second.orders.order)
    told = made.measured.tail(8)
    assert np.allclose(told.predicted, first.orders.expected)
    assert (told["round"] == 2).all()
    assert not set(made.propose(8).orders.order) & {*first.orders.order, *second.orders.order}


def test_what_came_out_is_learned_and_what_was_ordered_is_done(library: pd.DataFrame) -> None:
    made = designer(noise=0.1).fit(library)
    plate = made.propose(4)
    assert plate.orders.intact.iloc[0] == pytest.approx((1 - 0.075) ** 6)
    came = pd.DataFrame({"order": plate.orders.order, "sequence": ["ACACAC"] * 4, "score": [1.0, 1.1, 0.9, 1.0]})
    made.tell(came)
    assert not made.pending
    assert made.measured.sequence.tail(4).tolist() == ["ACACAC"] * 4


def test_minimise_turns_every_figure(library: pd.DataFrame) -> None:
    turned = library.assign(score=-library.score)
    high, low = designer().fit(library).propose(6), designer(minimise=True).fit(turned).propose(6)
    assert high.orders.order.tolist() == low.orders.order.tolist()
    assert np.allclose(high.orders.expected, -low.orders.expected)
    assert np.allclose(high.orders.score, -low.orders.score)
    assert np.allclose(high.orders.sd, low.orders.sd)
    assert high.outlook.expected_best == pytest.approx([-value for value in low.outlook.expected_best])


def test_constraints_distance_and_variable_lengths_by_search(library: pd.DataFrame) -> None:
    texts = [text[: 3 + len(text) * number % 4] for number, text in enumerate(library.sequence)]
    table = pd.DataFrame({"sequence": texts, "score": [truth(text) for text in texts]}).drop_duplicates("sequence")
    made = designer(constraints=Constraints(forbid=("GAGA",)), distance=2, max_length=12, min_length=3, reach=4)
    plate = made.fit(table).propose(10)
    assert plate.how == "search"
    assert len(plate) == 10
    assert not any("GAGA" in order for order in plate.orders.order)
    rows = made.space.parse(plate.orders.order.tolist())
    from sgfn.design.distances import edit_distances

    apart = [int(edit_distances(rows[:i], row[row < 4], 4).min()) for i, row in enumerate(rows) if i]
    assert min(apart) >= 2
    assert int(plate.orders.distance.max()) <= 4


def test_wrong_input_is_told_in_one_line(library: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="call fit"):
        designer().propose(3)
    with pytest.raises(ValueError, match="row 2, column 'score'"):
        designer().fit(pd.DataFrame({"sequence": ["ACGT", "CCGT"], "score": ["1", "x"]}))
    with pytest.raises(ValueError, match="'Z'"):
        designer().fit(pd.DataFrame({"sequence": ["ACGT", "ZCGT"], "score": [1, 2]}))
    with pytest.raises(ValueError, match="column 'score'"):
        designer().fit(library).tell(pd.DataFrame({"order": ["ACGTAC"], "fitness": [1.0]}))
    with pytest.raises(ValueError, match="did you mean 'thompson'"):
        designer(acquisition="tompson")
    tiny = pd.DataFrame({"sequence": ["AA", "AC", "CA", "CC"], "score": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match="nothing is left to order"):
        Designer("AC", proxy="ridge").fit(tiny).propose(2)
    with pytest.raises(ValueError, match=r"every score is 2: nothing can be learned"):
        designer().fit(library.assign(score=2.0)).propose(3)
    assert sgfn.Designer is Designer


def test_a_proxy_that_knows_little_is_told(library: pd.DataFrame) -> None:
    assert "knows little (20 sequences" in designer().fit(library.head(20)).propose(3).note
    assert "knows little" not in designer().fit(library).propose(3).note


def test_what_is_told_of_the_proxy_comes_from_measurements_alone(library: pd.DataFrame) -> None:
    """Orders that wait for a measurement add no knowledge: not to the report, nor to the reach, nor to the note."""
    made, fresh = (designer(max_length=9).fit(library.head(25)) for _ in range(2))
    first, fresh.round = made.propose(40), 1
    second, without = made.propose(4), fresh.propose(4)
    assert second.proxy == without.proxy
    assert second.proxy["rows"] == first.proxy["rows"] == 25
    assert second.validation.sequences == without.validation.sequences
    assert [text for text in (first.note, second.note, without.note) if "knows little (25 sequences" not in text] == []


def test_the_acquisition_believes_what_is_expected_of_pending_orders(library: pd.DataFrame) -> None:
    made = Designer("dna", proxy="gp").fit(library.head(40))
    waiting = made.propose(6).orders.order.tolist()
    alone = made.fitted()
    believing = made._with_pending(alone)
    assert (believing.members(waiting).std(0) < alone.members(waiting).std(0)).all()
    made.pending = {}
    assert made._with_pending(alone) is alone


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, library: pd.DataFrame) -> Path:
    """Two rounds through the command line."""
    folder = tmp_path_factory.mktemp("walk")
    library.assign(batch=1).to_csv(folder / "data.csv", index=False)
    one = ["design", "propose", str(folder / "data.csv"), "--orders", "12", "--out", str(folder / "1")]
    assert main([*one, "--proxy", "ridge", "--noise.alpha", "0.05", "--gc", "0.1:0.9", "--seed", "3"]) == 0
    plate = pd.read_csv(folder / "1/orders.csv")
    told = plate[["order"]].assign(score=[truth(order) for order in plate.order])
    told.head(10).to_csv(folder / "new.csv", index=False)
    two = ["design", "propose", str(folder / "1"), "--measured", str(folder / "new.csv"), "--orders", "12"]
    assert main([*two, "--out", str(folder / "2")]) == 0
    return folder


def test_the_second_round_carries_everything_on(walked: Path) -> None:
    first, second = (read_round_folder(walked / name) for name in "12")
    assert second.number == 2
    assert len(second.history) == 2
    assert second.designer.config == first.designer.config
    assert second.designer.config.proxy == "ridge"
    assert second.designer.noise == first.designer.noise == sgfn.UniformSlip(alpha=0.05)
    assert second.designer.constraints == Constraints(gc=(0.1, 0.9))
    assert len(second.designer.measured) == len(first.designer.measured) + 10
    assert len(second.designer.pending) == 14
    one, two = (pd.read_csv(walked / name / "orders.csv") for name in "12")
    assert next(iter(one.columns)) == "order"
    assert not set(one.order) & set(two.order)
    page = (walked / "2/page.html").read_text()
    plain = page.replace("&#39;", "'")
    assert f"The mean of the orders' expected scores is {two.expected.mean():.4g}." in plain  # as orders.csv has them
    for words in (
        "What it should bring",
        "Plate",
        "80 % interval",
        "Marginal value",
        "Differences",
        "are darkest",
        "Chosen by ucb",
    ):
        assert words in page


def test_a_folder_is_not_overwritten_unasked(walked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["design", "propose", str(walked / "data.csv"), "--proxy", "ridge", "--orders", "2", "--out"]
    before = (walked / "1/design.json").read_bytes()
    assert main([*words, str(walked / "1")]) == 2
    assert "--overwrite" in capsys.readouterr().err
    (walked / "other").mkdir()
    (walked / "other/mine.txt").write_text("x")
    assert main([*words, str(walked / "other"), "--overwrite"]) == 2
    assert "other files" in capsys.readouterr().err
    assert (walked / "1/design.json").read_bytes() == before
    assert main([*words, str(walked / "3"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orders"] == 2
    assert main([*words, str(walked / "3"), "--overwrite"]) == 0
    assert {path.name for path in walked.rglob(".*")} == {".lock"}


def test_a_strangers_folder_names_nothing_that_is_run_or_opened(walked: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(walked / "1", tmp_path / "theirs"))
    data = json.loads((folder / "design.json").read_text())
    data["settings"]["design"]["acquisition"] = "os:system"
    (folder / "design.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="names code that would be run"):
        read_round_folder(folder)
    data["settings"]["design"]["acquisition"] = "greedy"
    data["settings"]["noise"] = {"kind": "own", "label": "evil:Noise"}
    (folder / "design.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"noise.kind 'own' is unknown"):
        read_round_folder(folder)
    data["settings"] = json.loads((walked / "1/design.json").read_text())["settings"]
    for damage in ({"settings": {}}, {"pending": {"ACGTAC": 3}}, {"format": 9}, {"round": "x"}):
        (folder / "design.json").write_text(json.dumps(data | damage))
        with pytest.raises(ValueError, match=r"design.json"):
            read_round_folder(folder)
    shutil.copy(walked / "1/design.json", folder)
    (folder / "measured.csv").unlink()
    (folder / "measured.csv").symlink_to(walked / "1/measured.csv")
    with pytest.raises(ValueError, match="a link that leads out"):
        read_round_folder(folder)


def test_save_and_load(library: pd.DataFrame, tmp_path: Path) -> None:
    made = designer(noise=0.02).fit(library)
    made.propose(4)
    made.save(tmp_path / "kept")
    again = Designer.load(tmp_path / "kept")
    assert again.config == made.config
    assert again.pending == made.pending
    assert again.round == made.round
    pd.testing.assert_frame_equal(again.measured, made.measured)
    assert again.propose(4).orders.order.tolist() == made.propose(4).orders.order.tolist()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"constraints": Constraints(pattern="NNNN")}, "--pattern NNNN has 4 letters, sequences have 6"),
        ({"constraints": Constraints(pattern="NNGATA", forbid=("GATA",))}, "--forbid GATA and --pattern NNGATA"),
        ({"distance": 7}, r"distance must lie in [1, 6], got 7"),
    ],
)
def test_what_no_order_satisfies_is_refused_before_anything_is_fitted(
    library: pd.DataFrame, settings: dict, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Designer, "fitted", lambda self: pytest.fail("fitted before the constraints were checked"))
    with pytest.raises(ValueError, match=re.escape(told)):
        designer(**settings).fit(library).propose(2)


def test_orders_of_another_length_than_all_that_was_measured(library: pd.DataFrame) -> None:
    """The best sequence known may be one that is not ordered any more."""
    plate = designer(length=7, reach=2).fit(library).propose(3)
    assert plate.orders.order.str.len().tolist() == [7, 7, 7]
    assert "so --reach limits nothing" in plate.note
    assert plate.outlook.expected_best[-1] >= plate.outlook.believed > library.score.median()


def test_a_distance_beyond_the_length_is_refused_by_order_too() -> None:
    from sgfn.config import TrainConfig
    from sgfn.design.ordering import order_sheet
    from sgfn.landscapes.tasks import make_task

    task = make_task("tfbind8", TrainConfig())
    with pytest.raises(ValueError, match=r"distance must lie in \[0, 8\], got 9"):
        order_sheet(task.env, task.landscape, 24, distance=9)


def test_a_noise_that_is_set_is_kept() -> None:
    """Also by a design that was made with the name of another."""
    designer = Designer("ACGT", noise=NoiseConfig(kind="uniform", alpha=0.1))
    designer.noise = UniformSlip(alpha=0.3)
    designer.fit(pd.DataFrame({"sequence": ["ACGT", "ACGA", "TCGT", "ACCA"], "score": [1.0, 2.0, 3.0, 2.5]}))
    assert designer.noise == UniformSlip(alpha=0.3)


class Half(UniformSlip):
    """A noise whose laws sum to a half."""

    def kernel(self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None) -> Tensor:
        return 0.5 * super().kernel(slippable, dtype, position)

    def operator(
        self, slippable: Tensor, dtype: torch.dtype, position: Tensor | None = None, rate: object = None
    ) -> Kernel:
        return DenseKernel(self.kernel(slippable, dtype, position))


def test_a_noise_that_is_no_law_is_refused() -> None:
    rows = pd.DataFrame({"sequence": ["ACGT", "ACGA", "TCGT", "ACCA"] * 3, "score": np.arange(12.0)})
    rows["sequence"] = [text[:3] + "ACGT"[i % 4] for i, text in enumerate(rows.sequence)]
    designer = Designer("ACGT", noise=Half(alpha=0.1)).fit(rows.drop_duplicates("sequence"))
    with pytest.raises(ValueError, match=r"Half\.kernel must have rows that sum to one, got 0\.5"):
        designer.propose(2)
