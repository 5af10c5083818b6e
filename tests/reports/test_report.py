"""The picture: it is one, it shows what the files say, and it needs no more than the files."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import StepPatch
from matplotlib.text import Text
from small_runs import complaint, contents, small, small_on

import sgfn
from sgfn.objectives.entropy import ENTROPY_METERS
from sgfn.reports.axes import lay_out
from sgfn.reports.figures import draw, report
from sgfn.runs.metrics import RENAMED

TERMS = ("base_loss", "policy_kl_term", "log_z", "log_pf", "log_pb", "end_flow")
"""What is drawn beside the entropy's figures of a run of `kl-entropy` on the grid; the dynamics balance is in both."""
OTHERS = ("dynamics_nll", "reward", "length")
"""What is drawn of any run of a flow network on the grid that learns its noise."""
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def picture(path: Path) -> np.ndarray:
    """Pixels of a file that must be a PNG with something drawn in each of its panels."""
    assert path.read_bytes().startswith(SIGNATURE)
    pixels = imread(path)[..., :3]
    for panel in np.array_split(pixels, 3, axis=1):
        assert panel.std() > 0.01
        assert (panel == 1.0).all(-1).mean() > 0.5  # on white
    return pixels


@pytest.fixture(scope="session")
def entropic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the grid, whose states vary in number, with the entropy in its loss; only its text files are kept."""
    folder = tmp_path_factory.mktemp("entropic") / "entropic"
    config = small(objective="kl-entropy", entropy__weight_kl=0.5, entropy__weight_dynamics=0.25)
    sgfn.train("grid", config, folder, device="cpu")
    shutil.rmtree(folder / "checkpoint")  # a picture needs no weights
    return folder


@pytest.fixture
def entropy_run(entropic: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(entropic, tmp_path / "entropic"))


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def put(run: Path, rows: list[dict[str, float]]) -> None:
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def configure(run: Path, part: str | None = None, **changes: object) -> None:
    """Edit a run's config.json."""
    data = json.loads((run / "config.json").read_text())
    (data["config"] if part is None else data["config"][part]).update(changes)
    (run / "config.json").write_text(json.dumps(data))


def curves(figure: Figure) -> dict[str, list[list[float]]]:
    """Columns of the metrics that are drawn, as pairs of step and value, the last run's where several are."""
    lines = {line.get_gid(): line for axis in figure.axes for line in axis.lines if line.get_gid()}
    return {str(name): np.asarray(line.get_xydata()).tolist() for name, line in lines.items()}


def panel(figure: Figure, column: str) -> Axes:
    """Where a column is drawn."""
    return next(axis for axis in figure.axes for line in axis.lines if line.get_gid() == column)


def names(axis: Axes) -> list[str]:
    """What the legend says."""
    return axis.get_legend_handles_labels()[1]


def test_one_run(grid_run: Path) -> None:
    sgfn.evaluate(grid_run, samples=50, device="cpu")
    path = report([grid_run])
    assert path == grid_run / "report.png"
    pixels = picture(path)
    again = picture(report([grid_run], grid_run / "again.png"))
    assert np.array_equal(pixels, again)


@pytest.mark.usefixtures("sketched")
def test_several_runs_in_one_figure(grid_run: Path, words_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "all.png"
    for runs, rows in (([words_run], 3), ([grid_run, words_run], 6)):
        height, width, _ = picture(report(runs, out)).shape
        assert round(height / width * 13.5 / 3.9) == rows
    assert not (grid_run / "report.png").exists()


@pytest.mark.usefixtures("sketched")
def test_without_exact_figures_the_panels_say_so(grid_run: Path) -> None:
    bare = picture(report([grid_run]))
    sgfn.evaluate(grid_run, samples=50, device="cpu")
    full = picture(report([grid_run]))
    assert bare.shape == full.shape
    left, middle, right = (
        np.abs(a - b).mean()
        for a, b in zip(np.array_split(bare, 3, axis=1), np.array_split(full, 3, axis=1), strict=True)
    )
    assert min(middle, right) > 1e-3  # scores, and the lines of floor, blind and uniform
    assert left < min(middle, right)  # the loss is the same


@pytest.mark.usefixtures("sketched")
def test_a_run_without_exact_evaluations(grid_run: Path) -> None:
    sgfn.evaluate(grid_run, samples=50, device="cpu", max_states=1)
    with_tv = picture(report([grid_run]))
    metrics = grid_run / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    metrics.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "tv"}) + "\n" for row in rows))
    assert not np.array_equal(picture(report([grid_run])), with_tv)


@pytest.mark.usefixtures("sketched")
def test_the_picture_follows_the_metrics(grid_run: Path) -> None:
    before = picture(report([grid_run]))
    metrics = grid_run / "metrics.jsonl"
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    rows[1]["loss"] *= 10
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert not np.array_equal(picture(report([grid_run])), before)


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("content", [None, "", '{"step": 5, "lo'])
def test_a_run_without_metrics_is_refused_and_the_old_picture_stays(grid_run: Path, content: str | None) -> None:
    report([grid_run])
    if content is None:
        (grid_run / "metrics.jsonl").unlink()
    else:
        (grid_run / "metrics.jsonl").write_text(content)
    before = contents(grid_run)
    with pytest.raises(ValueError, match="has no metrics yet: train it first"):
        report([grid_run])
    assert contents(grid_run) == before


@pytest.mark.usefixtures("sketched")
def test_each_figure_of_the_entropy_is_drawn_as_the_file_has_it(entropy_run: Path) -> None:
    rows = metrics(entropy_run)
    for _ in range(2):
        drawn = curves(figure := draw([entropy_run]))
        # loss, scores and distance; terms of loss and balance; log Z, rewards, noise model and length; the entropy
        assert len(figure.axes) == 3 + 2 + 4 + 3
        assert drawn.keys() == {"loss", "tv", *ENTROPY_METERS, *TERMS, *OTHERS}
        for name in ("loss", *ENTROPY_METERS, *TERMS, *OTHERS):
            assert drawn[name] == [[row["step"], row[name]] for row in rows]
        for row, name in zip(rows, ENTROPY_METERS, strict=False):  # other numbers in the file, other curves
            row[name] *= 0.75
        assert any(drawn[name] != [[row["step"], row[name]] for row in rows] for name in ENTROPY_METERS)
        put(entropy_run, rows)
    pixels = picture(report([entropy_run]))
    assert round(pixels.shape[0] / pixels.shape[1] * 13.5 / 3.9) == 4


def test_labels_say_where_curves_end_and_what_they_are(entropy_run: Path) -> None:
    figure, last = draw([entropy_run]), metrics(entropy_run)[-1]
    shown = {name: f"\N{RIGHTWARDS ARROW} {last[name]:#.3g}".replace("-", "\N{MINUS SIGN}") for name in ENTROPY_METERS}
    assert names(panel(figure, "H_mean")) == [
        f"$H_{{high}}$ (0.9 quantile) {shown['H_high']}",
        f"$H_{{low}}$ (0.1 quantile) {shown['H_low']}",
        f"H, mean under $\\mu$ {shown['H_mean']}",
    ]
    assert [label.partition(" \N{RIGHTWARDS ARROW}")[0] for label in names(panel(figure, "policy_kl"))] == [
        "policy KL",
        "dynamics balance",
        "mean R \N{MINUS SIGN} policy KL",
    ]
    assert panel(figure, "rho") is panel(figure, "r_gamma")
    terms = [label.partition(" \N{RIGHTWARDS ARROW}")[0] for label in names(panel(figure, "base_loss"))]
    assert terms == ["base", "policy KL \N{MINUS SIGN} log $r_\\gamma$, weight 0.5", "dynamics balance, weight 0.25"]
    assert names(panel(figure, "log_z")) == [
        f"log Z \N{RIGHTWARDS ARROW} {last['log_z']:#.3g}".replace("-", "\N{MINUS SIGN}")
    ]
    assert figure.axes[0].get_title("left").endswith("25% noise: kl-entropy on marginal tb")
    assert panel(figure, "policy_kl").get_title("left").endswith("\N{GREEK SMALL LETTER LAMDA} 0.5 and 0.25")
    configure(entropy_run, objective="tb", exploration="entropy")
    figure = draw([entropy_run])
    assert figure.axes[0].get_title("left").endswith("25% noise: marginal tb")
    assert panel(figure, "policy_kl").get_title("left").endswith("not in the loss")
    assert panel(figure, "r_gamma").get_title("left").startswith("Ratio that sets the temperature")


@pytest.mark.parametrize(
    ("variant", "gamma"),
    [("quantile", 0.001), ("quantile", 0.999), ("trajectory", 0.3), ("per-state", 0.3), ("exponential", 0.3)],
)
def test_the_ratio_has_its_bounds_where_it_has_any(variant: str, gamma: float, entropy_run: Path) -> None:
    configure(entropy_run, "entropy", variant=variant, gamma=gamma)
    axis = panel(draw([entropy_run]), "r_gamma")
    bounds = [line.get_ydata()[0] for line in axis.lines if not line.get_gid()]  # type: ignore[index]
    assert bounds == ([] if variant == "exponential" else [1.0, 1 / gamma])
    low, high = axis.get_ylim()
    assert all(low < value < high for value in [*bounds, *(row["r_gamma"] for row in metrics(entropy_run))])


def test_runs_without_these_figures_have_fewer_panels(grid_run: Path, entropy_run: Path) -> None:
    plain = draw([grid_run])
    assert len(plain.axes) == 3 + 1 + 4
    assert curves(plain).keys() == {"loss", "tv", "log_z", "log_pf", "log_pb", "end_flow", *OTHERS}
    bare = [{k: v for k, v in row.items() if k not in (*TERMS, *ENTROPY_METERS)} for row in metrics(entropy_run)]
    put(grid_run, bare)  # as written before they were measured
    assert curves(draw([grid_run])).keys() == {"loss", "tv", *OTHERS}
    for missing in (ENTROPY_METERS, ENTROPY_METERS[-1:]):
        put(entropy_run, [{k: v for k, v in row.items() if k not in missing} for row in metrics(entropy_run)])
        assert "r_gamma" not in curves(draw([entropy_run]))


def test_old_names_of_figures_are_still_drawn(entropy_run: Path) -> None:
    """A folder of before: other names for entropies and ratio, and the weight mu, which is no longer logged."""
    rows, old = metrics(entropy_run), {new: name for name, new in RENAMED.items()}
    put(entropy_run, [{old.get(k, k): v for k, v in row.items() if k not in TERMS} | {"mu": 0.1} for row in rows])
    drawn = curves(draw([entropy_run]))
    assert drawn.keys() == {"loss", "tv", *ENTROPY_METERS, *OTHERS}
    assert drawn["r_gamma"] == [[row["step"], row["r_gamma"]] for row in rows]


def test_every_term_of_the_kl_objective_is_drawn_with_exponent_and_noise(tmp_path: Path) -> None:
    run = tmp_path / "kl"
    changes = {"kl__flow": "db", "kl__weight": 0.5, "reward__ramp": 2.0, "beta": 2.0}
    config = small_on("words", objective="kl", log__exact_every=0, log__entropy=True, **changes)
    sgfn.train("words", config, run, device="cpu")
    sgfn.evaluate(run, samples=50, device="cpu", max_states=1)
    figure, rows = draw([run]), metrics(run)
    drawn = curves(figure)
    wanted = ("flow_loss", "projection_kl", "log_flow", "log_pf", "end_flow", "beta", "log_z", *OTHERS)
    assert all(drawn[name] == [[row["step"], row[name]] for row in rows] for name in wanted)
    assert any(", weight 0.5" in label for label in names(panel(figure, "projection_kl")))
    assert not any("dynamics balance" in label for label in names(panel(figure, "projection_kl")))  # only watched
    entropy = json.loads((run / "exact.json").read_text())["dynamics_entropy"]
    assert names(panel(figure, "dynamics_nll"))[1] == f"entropy of the true noise {entropy:.3g}"
    titles = [axis.get_title("left") for axis in figure.axes]
    assert any(title.startswith("Noise: true and full model, mean TV") for title in titles)
    found = json.loads((run / "exact.json").read_text())["kernel"]
    assert found["intentions"] == found["outcomes"] == [*"ACGT", "stop"]
    assert found["true"][0] == pytest.approx([0.8125, 0.0625, 0.0625, 0.0625, 0.0])
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in found["learned"] if row[0] is not None)
    assert found["learned"] != found["true"]


def test_only_terms_of_the_loss_are_called_so(grid_run: Path, tmp_path: Path) -> None:
    """What ways to explore found, and what chains and critics tell, stands by itself."""
    explored, chain, critic = tmp_path / "explored", tmp_path / "chain", tmp_path / "critic"
    sgfn.train("grid", small(exploration="novelty"), explored, device="cpu")
    sgfn.train("grid", small(method="mh"), chain, device="cpu")
    sgfn.train("grid", small(method="ppo"), critic, device="cpu")
    for run, columns in (
        (explored, ("reward", "best_reward")),
        (chain, ("acceptance",)),
        (critic, ("entropy", "value_error")),
    ):
        figure, rows = draw([run]), metrics(run)
        titles = [axis.get_title("left") for axis in figure.axes]
        assert not any(title.startswith("Terms of the loss") for title in titles)
        assert all(curves(figure)[name] == [[row["step"], row[name]] for row in rows] for name in columns)
    put(grid_run, [row | {"mine": 1.0} for row in metrics(grid_run)])  # but the part of an objective of one's own
    assert panel(draw([grid_run]), "mine").get_title("left").startswith("Terms of the loss")


def test_terms_within_the_base_are_seen_beside_it(entropy_run: Path) -> None:
    """A base of `kl` is nearly its flow loss: two curves in one place, of which one is dashed."""
    rows = [row | {"flow_loss": row["base_loss"], "projection_kl": 0.1} for row in metrics(entropy_run)]
    put(entropy_run, rows)
    axis = panel(draw([entropy_run]), "flow_loss")
    found = {str(line.get_gid()): line.get_linestyle() != "-" for line in axis.lines if line.get_gid()}
    assert [name for name, dashed in found.items() if dashed] == ["flow_loss", "projection_kl"]
    assert next(iter(found)) == "base_loss"


def test_runs_of_both_kinds_in_one_figure(grid_run: Path, words_run: Path, entropy_run: Path) -> None:
    odd = entropy_run.rename(entropy_run.parent / "a $b$ c_\N{HIRAGANA LETTER A}")  # neither a formula nor in the font
    figure = draw([grid_run, odd, words_run])
    assert len(figure.axes) == 8 + 12 + 8
    assert figure.get_size_inches().tolist() == pytest.approx([13.5, 10 * 3.9 + 0.3])
    titles = [axis.get_title("left").replace("\n", " ") for axis in figure.axes]
    assert titles[0] == "grid: grid, 25% noise: marginal tb"
    assert titles[3] == "grid: terms of the balance, means"
    assert titles[8] == "a $b$ c_?: grid, 25% noise: kl-entropy on marginal tb"
    assert titles[11] == "a $b$ c_?: terms of the loss, before their weights"
    assert titles[20] == "words: words, 25% noise: marginal tb"
    picture(report([odd], odd / "out.png"))


def reach(axis: Axes) -> float:
    """How high, on the page, the curves, levels, bars and ticks of a panel go."""
    curved = [float(np.max(line.get_ydata())) for line in axis.lines]
    barred = [float(np.max(patch.get_data()[0])) for patch in axis.patches if isinstance(patch, StepPatch)]
    return max(axis.transData.transform((0, y))[1] for y in [*curved, *barred, *axis.get_yticks()])


def test_legends_cover_nothing_and_titles_keep_to_their_places(grid_run: Path, entropy_run: Path) -> None:
    sgfn.evaluate(grid_run, samples=50, device="cpu")
    shutil.copy(grid_run / "exact.json", entropy_run)
    figure = draw([grid_run, entropy_run, entropy_run])
    legends = [(axis, legend) for axis in figure.axes if (legend := axis.get_legend())]
    assert len(legends) == 7 + 11 + 11
    assert all(reach(axis) > legend.get_window_extent().y0 for axis, legend in legends)  # before room is made for them
    lay_out(figure).draw_without_rendering()
    boxes = [(axis, legend.get_window_extent()) for axis, legend in legends]
    assert all(reach(axis) <= box.y0 for axis, box in boxes)
    assert not [(axis, box) for axis, box in boxes if not axis.bbox.x0 <= box.x0 < box.x1 <= axis.bbox.x1]
    texts = [(axis.get_title("left"), axis.findobj(Text)) for axis in figure.axes]
    titles = [t.get_window_extent() for title, some in texts for t in some if t.get_text() == title != ""]  # type: ignore[attr-defined]
    assert len(titles) == 9 + 13 + 13  # with a panel for the noise model, which evaluate tells of
    assert not any(a.overlaps(b) for i, a in enumerate(titles) for b in titles[:i])
    assert all(box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in titles)


@pytest.mark.parametrize("steps", [1, 3, 20, 5000])
def test_steps_are_whole_numbers_and_single_points_are_seen(steps: int, entropy_run: Path) -> None:
    last = metrics(entropy_run)[-1] | {"step": steps}
    put(entropy_run, [last])
    figure = draw([entropy_run])
    for name in ("loss", "tv", *ENTROPY_METERS):
        axis = panel(figure, name)
        ticks = axis.get_xticks()
        assert np.array_equal(ticks, np.round(ticks))
        assert sum(0 <= tick <= steps for tick in ticks) >= 2
        assert axis.get_xlim()[0] == 0
        (line,) = (line for line in axis.lines if line.get_gid() == name)
        assert line.get_marker() == "o"
    put(entropy_run, [last | {"step": 0}, last])
    (line,) = (line for line in draw([entropy_run]).axes[0].lines if line.get_gid() == "loss")
    assert line.get_marker() != "o"


def test_a_loss_below_zero_is_not_hidden_by_a_logarithm(entropy_run: Path) -> None:
    assert draw([entropy_run]).axes[0].get_yscale() == "log"
    rows = metrics(entropy_run)
    rows[-1]["loss"] = -1.0
    put(entropy_run, rows)
    axis = draw([entropy_run]).axes[0]
    assert axis.get_yscale() == "linear"
    assert axis.get_ylim()[0] < -1.0


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="name at least one run folder"):
        report([])


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", '{"step": 1}\nnonsense\n{"step": 3}\n', "metrics.jsonl, line 2: not valid JSON"),
        ("exact.json", "{", "exact.json, line 1: not valid JSON"),
        ("config.json", "[]", "config.json was not written by sgfn"),
    ],
)
def test_broken_files_are_named(
    file: str, content: str, message: str, grid_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sgfn.evaluate(grid_run, samples=10, device="cpu")
    (grid_run / file).write_text(content)
    before = contents(grid_run)
    assert message in complaint(capsys, ["report", str(grid_run)])
    assert contents(grid_run) == before


def test_the_command_evaluates_what_is_missing_or_out_of_date(
    grid_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sgfn.cli import commands as cli

    seen: list[Path] = []
    evaluate = sgfn.evaluate
    monkeypatch.setattr(sgfn, "evaluate", lambda path, **_: seen.append(path) or evaluate(path, samples=10))
    monkeypatch.setattr(
        "sgfn.reports.figures.report", lambda runs, *_, **__: runs[0] / "report.png"
    )  # drawn in other tests
    other = Path(shutil.copytree(grid_run, tmp_path / "other"))
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other]
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other]  # nothing is new
    exact = json.loads((other / "exact.json").read_text())
    (other / "exact.json").write_text(json.dumps(exact | {"step": 10}))  # as if the run had been resumed since
    assert cli.main(["report", str(grid_run), str(other)]) == 0
    assert seen == [grid_run, other, other]
    assert json.loads((other / "exact.json").read_text()) == exact
