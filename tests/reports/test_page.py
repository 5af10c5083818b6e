"""The page: what it says is what the files say, and it is one whole, safe file."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_entries import RESULTS, Page, entry
from small_runs import complaint

import sgfn
from sgfn.cli.commands import main
from sgfn.config import NoiseConfig
from sgfn.config.files import read_json
from sgfn.evaluation.seeds import spread
from sgfn.noise import noise_words
from sgfn.objectives.entropy import ENTROPY_METERS
from sgfn.reports.axes import lay_out
from sgfn.reports.curves import mean_scores, shared_edges
from sgfn.reports.looks import DASHED, PALETTE, Look, look_of
from sgfn.reports.numbers import DASH
from sgfn.reports.pages import Entry, report_html, write_page
from sgfn.reports.pages.document import folder_labels
from sgfn.reports.pages.drawings import columns_drawn, learning_drawing, learning_figure
from sgfn.reports.pages.entries import Line, grouped
from sgfn.reports.pages.logo import ticks
from sgfn.reports.sources import number

ELSEWHERE = re.compile(r"https?://|\bsrc\s*=|@import|url\((?!#)|href\s*=\s*[\"'](?!#|data:,)", re.IGNORECASE)
ALONE = {"script": 1, "style": 1, "link": 1, "iframe": 0, "img": 0, "object": 0, "form": 0}


def page(tmp_path: Path, entries: list[Entry], title: str = "Runs", note: str = "") -> Page:
    """Write a page, check that it is whole and keeps to itself, take it to pieces."""
    text = write_page(tmp_path / "page.html", title, entries, note).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    assert not ELSEWHERE.search(text)
    parsed = Page(text)
    assert {tag: parsed.count(tag) for tag in ALONE} == ALONE
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    names = parsed.values("id")
    assert len(names) == len(set(names))
    assert {f"#{name}" for name in names} >= {link for link in parsed.values("href") if link != "data:,"}
    return parsed


def line(*entries: Entry) -> Line:
    (group,) = grouped(list(entries))
    (only,) = group.lines
    return only


def cells(parsed: Page, label: str) -> list[str]:
    """The row of a label in the first table."""
    return next(row for row in parsed.rows if row[0].startswith(label))


# One file that keeps to itself


def test_the_search_for_references_finds_them() -> None:
    for text in ("see http://a", "<img src='x'>", '<a href="x">', "url(x)", "@import 'x'", "<a HREF='https://a'>"):
        assert ELSEWHERE.search(text)
    for text in ('<use href="#g41">', '<link href="data:,">', 'clip-path="url(#a)"'):
        assert not ELSEWHERE.search(text)


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("name", ["half \udc80 a sign", "bell \x07", "next\x85line", "none \uffff"])
def test_names_that_no_page_may_hold(name: str, tmp_path: Path) -> None:
    parsed = page(tmp_path, [entry(name)])
    assert cells(parsed, name[:4])[0] != name


@pytest.mark.usefixtures("sketched")
def test_the_page_is_replaced_as_a_whole(tmp_path: Path) -> None:
    page(tmp_path, [entry()], "First")
    assert "Second" in page(tmp_path, [entry()], "Second").texts
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    with pytest.raises(ValueError, match="at least one run"):
        write_page(tmp_path / "none.html", "None", [])


# Seeds taken together


@pytest.mark.usefixtures("sketched")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_medians_and_quartiles(count: int, tmp_path: Path) -> None:
    tvs = np.random.default_rng(count).uniform(size=count).tolist()
    found = spread(tvs)
    low, middle, high = np.percentile(tvs, [25, 50, 75] if count > 3 else [0, 50, 100])
    assert found is not None
    assert (found.low, found.middle, found.high, found.count) == pytest.approx((low, middle, high, count))
    parsed = page(tmp_path, [entry(seed=i, tv=tv) for i, tv in enumerate(tvs)])
    beneath = f" [{low:.4f} to {high:.4f}]" if count > 1 else ""
    assert cells(parsed, "tb")[:2] == [f"tb [{count} seed{'s' * (count > 1)}]", f"{middle:.4f}{beneath}"]
    assert repr(float(np.median(tvs))) in parsed.values("data-value")


def test_every_figure_has_its_column(tmp_path: Path) -> None:
    parsed = page(tmp_path, [entry()])
    assert parsed.rows[0] == [
        "Run",
        "Distance to target",
        "Expected score",
        "Top 100 mean",
        "Modes",
        "Known modes",
        "Noise model error",
        "Environment calls",
    ]
    assert cells(parsed, "tb")[1:] == ["0.3000", "0.500 of 0.600", "0.900", "3", "2 of 5", "0.0050", "200"]
    facts = ["best reachable 0.0100", "ignoring the noise 0.1000", "uniform policy 0.4000"]
    facts.append("target\N{RIGHT SINGLE QUOTATION MARK}s expected score 0.600")
    assert parsed.rows[1] == ["25% noise" + " \N{MIDDLE DOT} ".join(facts)]


@pytest.mark.usefixtures("sketched")
def test_what_is_not_known_is_a_dash(tmp_path: Path) -> None:
    nothing = dict.fromkeys(RESULTS) | {"sample_mean": 0.0005, "kl": 0.25, "tv": float("nan")}
    parsed = page(tmp_path, [entry(**nothing)])
    assert parsed.rows[0][2] == "KL from target"
    assert cells(parsed, "tb")[1:] == [DASH, "0.250", DASH, "0.0005", DASH, DASH, DASH, DASH, "200"]
    bare = entry()
    assert bare.source is not None
    bare.source.results.clear()  # not evaluated yet
    parsed = page(tmp_path, [bare])
    assert cells(parsed, "tb") == ["tb [0 of 1 seeds]", *[DASH] * 7]
    assert [about["href"] for name, about in parsed.tags if name == "a"] == ["#summary", "#curves", "#runs"]


@pytest.mark.parametrize("value", [None, "0.5", [], float("nan"), float("inf"), {}])
def test_only_finite_numbers_are_numbers(value: object) -> None:
    assert number(value) is None
    assert number(2) == 2.0


@pytest.mark.usefixtures("sketched")
def test_failed_runs_are_named_and_left_out(tmp_path: Path) -> None:
    runs = [entry(seed=0, tv=0.2), entry(seed=1, tv=0.9, error="out of memory: lower --batch")]
    runs.append(Entry(label="tb", source=None, noise="25% noise", seed=2, error="stopped"))
    runs.append(Entry(label="db", source=None, noise="25% noise", seed=0))  # has not begun
    parsed = page(tmp_path, runs)
    assert cells(parsed, "tb")[:2] == ["tb [1 of 3 seeds, 2 failed]", "0.2000"]
    assert cells(parsed, "db") == ["db [0 of 1 seeds]", *[DASH] * 7]
    assert "tb, 25% noise, seed 1" in parsed.texts
    assert {"out of memory: lower --batch", "stopped"} <= set(parsed.texts)
    assert "#failed" in parsed.values("href")
    found = line(*runs[:3]).learning("tv")
    assert found is not None
    assert found.count == 1
    assert "#failed" not in page(tmp_path, runs[:1]).values("href")


def test_a_page_of_failures_alone(tmp_path: Path) -> None:
    parsed = page(tmp_path, [Entry(label="tb", source=None, noise="25% noise", seed=0, error="stopped")])
    assert cells(parsed, "tb") == ["tb [0 of 1 seeds, 1 failed]", *[DASH] * 7]


@pytest.mark.usefixtures("sketched")
def test_the_best_of_each_group_is_marked(tmp_path: Path) -> None:
    def best(*runs: Entry) -> dict[str, list[str]]:
        parsed = page(tmp_path, list(runs))
        head, rows = parsed.rows[0], [row for row in parsed.rows if row[0].endswith("seed]")]
        return {row[0].split()[0]: [head[i] for i, cell in enumerate(row) if "(best)" in cell] for row in rows}

    two = best(
        entry("a", tv=0.2, expected_reward=0.55, top100_mean=0.8, modes_greedy=4, dynamics_tv=0.1),
        entry("b", tv=0.3, expected_reward=0.70, top100_mean=0.9, modes_greedy=3, dynamics_tv=0.2),
    )
    assert two["a"] == ["Distance to target", "Expected score", "Modes", "Noise model error"]  # 0.55 is nearer to 0.6
    assert two["b"] == ["Top 100 mean"]
    assert best(entry("a"), entry("b")) == {"a": [], "b": []}  # nobody is better
    tied = best(entry("a", tv=0.20001), entry("b", tv=0.20002), entry("c", tv=0.3), entry("d", tv=None))
    assert tied == {"a": ["Distance to target"], "b": ["Distance to target"], "c": [], "d": []}
    apart = best(entry("a", tv=0.2), entry("b", tv=0.3, noise="50% noise"))
    assert apart == {"a": [], "b": []}


def test_groups_in_natural_order_labels_as_they_came() -> None:
    noises = ["50% noise", "5% noise", "hidden 25% noise", "12.5% noise", "confusion noise", "0% noise"]
    runs = [entry(label, noise=noise) for noise in noises for label in ("tb", "db")]
    groups = grouped([*runs, Entry(label="aa", source=None, noise="5% noise", seed=0, error="x")])
    order = ["0% noise", "5% noise", "12.5% noise", "50% noise", "confusion noise", "hidden 25% noise"]
    assert [group.name for group in groups] == order
    assert [[line.label for line in group.lines] for group in groups] == [
        ["tb", "db"] + ["aa"] * (i == 1) for i in range(6)
    ]
    assert {line.label: line.series for line in groups[1].lines} == {"tb": 0, "db": 1, "aa": 2}


def test_runs_that_cannot_be_compared_are_kept_apart() -> None:
    names = [group.name for group in grouped([entry(), entry(task="words"), entry(beta=2.0), entry(beta=2.0, seed=1)])]
    assert names == ["tfbind8, 25% noise, beta 2", "tfbind8, 25% noise, own beta", "words, 25% noise, own beta"]
    assert [group.name for group in grouped([entry(), entry(seed=1)])] == ["25% noise"]


# Curves and distributions


def test_seeds_are_interpolated_to_shared_places() -> None:
    found = line(entry(seed=0, tvs=[(0, 1.0), (100, 0.0)]), entry(seed=1, tvs=[(0, 0.6), (50, 0.2)])).learning("tv")
    assert found is not None
    assert found.x.tolist() == [0.0, 50.0, 100.0]
    assert found.low == pytest.approx([0.6, 0.2, 0.0])
    assert found.middle == pytest.approx([0.8, 0.35, 0.0])
    assert found.high == pytest.approx([1.0, 0.5, 0.0])


def test_quartiles_of_curves_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).uniform(size=(6, 3))
    rows = enumerate(values.tolist())
    runs = [entry(seed=i, tvs=list(zip((1, 2, 3), row, strict=True))) for i, row in rows]
    found = line(*runs).learning("tv")
    assert found is not None
    assert np.stack([found.low, found.middle, found.high]) == pytest.approx(np.percentile(values, [25, 50, 75], axis=0))


def test_places_that_few_seeds_reach_are_left_out() -> None:
    some = [entry(seed=i, tvs=[(10, 0.5), (20, 0.4)]) for i in range(3)]
    found = line(*some, entry(seed=3, tvs=[(10, 0.1), (30, 0.1)])).learning("tv")
    assert found is not None
    assert found.x.tolist() == [10.0, 20.0]
    alone = line(entry(tvs=[(10, 0.1), (30, None), (20, 0.3), (20, 0.2)])).learning("tv")
    assert alone is not None
    assert (alone.x.tolist(), alone.middle.tolist()) == ([10.0, 20.0], [0.1, 0.2])
    assert line(entry(tvs=[(10, None)])).learning("tv") is None


def test_the_reward_stands_in_where_no_distance_is_known(tmp_path: Path) -> None:
    known, unknown = page(tmp_path, [entry()]), page(tmp_path, [entry(tvs=[(10, None), (20, None)])])
    assert "total variation to the target" in known.texts
    assert "best reachable 0.010" in known.texts
    assert "mean log-reward of a batch" in unknown.texts
    assert "best reachable 0.010" not in unknown.texts


@pytest.mark.parametrize("levels", [(0.05, 0.2, 0.4), (0.0, 0.001, 0.4), (None, None, 0.4)])
def test_the_figure_shows_medians_bands_and_levels(levels: tuple[float | None, ...]) -> None:
    names = dict(zip(("best reachable", "ignoring the noise", "uniform policy"), levels, strict=True))
    known = {name: value for name, value in names.items() if value is not None}
    results = dict(zip(("tv_floor", "tv_blind", "tv_uniform"), levels, strict=True))
    runs = [entry(seed=seed, **results) for seed in range(2)]
    (group,) = grouped([*runs, entry("b", tvs=[(0, 0.3)], **results)])
    figure = learning_figure(group, "tv")
    (axes,) = figure.axes
    lines = {str(line.get_gid() or line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    levels_drawn = {f"{name} {value:.3f}": [value, value] for name, value in known.items()}
    assert lines == {"series-0": [0.4, 0.3], "series-1": [0.3]} | levels_drawn
    assert [str(band.get_gid()) for band in axes.collections] == ["series-0"]  # one seed has no band
    assert all(line.get_marker() in ("o", "s") for line in axes.lines if line.get_gid())  # a single point is seen
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(levels_drawn)
    lay_out(figure)
    top = max(axes.transData.transform((0, value))[1] for value in [*known.values(), 0.4])
    assert legend.get_window_extent().y0 >= top


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((0.0, 0.44), ["0.0", "0.1", "0.2", "0.3", "0.4"]),
        (
            (-15.3, -14.2),
            [
                "\N{MINUS SIGN}15.25",
                "\N{MINUS SIGN}15.00",
                "\N{MINUS SIGN}14.75",
                "\N{MINUS SIGN}14.50",
                "\N{MINUS SIGN}14.25",
            ],
        ),
        ((-1.0, 1.0), ["\N{MINUS SIGN}1.0", "\N{MINUS SIGN}0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_numbers(ends: tuple[float, float], texts: list[str]) -> None:
    assert [text for _, text in ticks(*ends)] == texts


def test_distributions_keep_their_mass_on_shared_edges() -> None:
    narrow = {"edges": [0.2, 0.4, 0.6], "samples": [0.25, 0.75]}
    (group,) = grouped([entry("a"), entry("b", histogram=narrow), entry("c", histogram={})])
    edges = shared_edges([scores for line in group.lines for scores in line.scores])
    assert edges is not None
    assert (edges[0], edges[-1]) == (0.0, 1.0)
    wide, other = (mean_scores(line.scores, edges).known for line in group.lines[:2])
    assert wide.keys() == {"target", "law", "samples"}
    assert other.keys() == {"samples"}
    assert group.lines[2].scores == []
    assert shared_edges([]) is None
    below = (edges[1:] + edges[:-1]) / 2 < 0.5
    assert (wide["target"].sum(), wide["target"][below].sum()) == pytest.approx((1.0, 0.2))
    assert (other["samples"].sum(), other["samples"][below].sum()) == pytest.approx((1.0, 0.25 + 0.75 / 2))


# Designs, modes, orders


@pytest.mark.usefixtures("sketched")
def test_the_best_objects_of_all_seeds(tmp_path: Path) -> None:
    first, second = [["CC", 0.5], ["AA", 0.9]], [["AA", 0.9], ["GG", 0.7]]
    runs = [entry(seed=0, designs=first, modes=first), entry(seed=1, designs=second, modes=second)]
    found = [(one.text, one.score, one.seeds) for one in line(*runs).pooled("modes", 2)]
    assert found == [("AA", 0.9, 2), ("GG", 0.7, 1)]
    text = page(tmp_path, runs).text
    assert re.search(r"AA\s+0\.900\s+2 of 2 seeds\s+GG\s+0\.700\s+1 of 2 seeds\s+CC", text)
    assert "3 designs" in text


@pytest.mark.usefixtures("sketched")
def test_orders_of_all_methods_best_first(tmp_path: Path) -> None:
    def order(text: str, expected: float | None) -> dict[str, object]:
        return {"order": text, "expected": expected, "intact": 0.0625, "score": 0.75}

    runs = [
        entry("a", orders=[order("AC", 0.2), order("CC", 0.4)]),
        entry("b", orders=[order("AC", 0.2), order("GT", None)]),
    ]
    rows = page(tmp_path, runs).rows
    top = next(i for i, row in enumerate(rows) if row[0] == "Order")
    assert rows[top + 1 : top + 4] == [
        ["CC", "0.400", "6.25%", "0.750", "a"],
        ["AC", "0.200", "6.25%", "0.750", "a, b"],
        ["GT", DASH, "6.25%", "0.750", "b"],
    ]


@pytest.mark.usefixtures("sketched")
def test_objects_that_are_no_sequences_have_no_logo(tmp_path: Path) -> None:
    cell = {"alphabet": None, "designs": [["3,4", 1.0]], "modes": [["3,4", 1.0]], "orders": []}
    parsed = page(tmp_path, [entry(**cell)])
    links = parsed.values("href")
    assert "#modes" in links
    assert not {"#logos", "#orders"} & set(links)
    assert "3,4" in parsed.texts


# Folders


def test_labels_of_folders() -> None:
    paths = [Path("/a/tb/seed0"), Path("/a/tb/seed1")]
    assert folder_labels(paths) == ["seed0", "seed1"]
    assert folder_labels([*paths, Path("/a/db/seed0")]) == ["tb/seed0", "tb/seed1", "db/seed0"]


def test_a_page_of_runs(grid_run: Path, words_run: Path) -> None:
    for run in (grid_run, words_run):
        sgfn.evaluate(run, samples=20, device="cpu")
    assert report_html([grid_run]) == grid_run / "report.html"
    one = Page((grid_run / "report.html").read_text())
    assert "grid, 25% noise: marginal tb" in one.texts
    exact = read_json(grid_run / "exact.json")
    assert exact["alphabet"] is None
    assert cells(one, "marginal tb")[1] == f"{exact['tv']:.4f}"
    out = grid_run / "deep" / "all.html"
    assert report_html([grid_run, words_run, grid_run / ".." / "grid"], out) == out
    both = Page(out.read_text())
    assert "grid and words: 2 runs" in both.texts  # the same folder by another name is no third
    assert both.rows[1][0].startswith("grid, 25% noise")
    assert read_json(words_run / "exact.json")["alphabet"] == "ACGT"
    with pytest.raises(ValueError, match="name at least one run folder"):
        report_html([])


@pytest.mark.usefixtures("sketched")
def test_a_run_folder_with_a_nasty_name(grid_run: Path) -> None:
    nasty = grid_run.rename(grid_run.parent / "<script>alert(1)<")
    other = Path(shutil.copytree(nasty, nasty / "script>"))  # whose label has the slash that closes it
    text = report_html([nasty, other, Path(shutil.copytree(other, nasty.parent / "script>"))]).read_text()
    assert "<script>alert" not in text
    assert "<script>alert(1)</script>" in Page(text).texts


@pytest.mark.usefixtures("sketched")
def test_the_command(grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sgfn.evaluate(grid_run, samples=10, device="cpu")

    def told(*words: str) -> str:
        capsys.readouterr()
        assert main(["report", str(grid_run), *words]) == 0
        return capsys.readouterr().out

    assert told("--html") == f"figure in {grid_run / 'report.png'}\npage in {grid_run / 'report.html'}\n"
    assert Page((grid_run / "report.html").read_text()).count("h1") == 1
    alone, both = tmp_path / "alone.HTML", tmp_path / "both.png"
    assert told("--out", str(alone)) == f"page in {alone}\n"
    assert not alone.with_suffix(".png").exists()
    files = json.loads(told("--out", str(both), "--html", "--json"))
    assert files.keys() == {"file", "page", "runs"}
    assert (files["file"], files["page"]) == (str(both), str(tmp_path / "both.html"))
    assert both.is_file()
    both.unlink()
    words = ["report", str(grid_run), "--out", str(both), "--html"]
    assert complaint(capsys, words).startswith(f"{tmp_path / 'both.html'} exists: add --overwrite")
    assert not both.exists()  # nothing is written by halves
    assert main([*words, "--overwrite"]) == 0


@pytest.mark.usefixtures("sketched")
def test_a_label_without_a_distance_brings_a_chart_of_rewards() -> None:
    known, unknown = entry("tb"), entry("mh", tvs=[(100, None), (200, None)])
    (group,) = grouped([known])
    assert columns_drawn(group) == ["tv"]
    (group,) = grouped([known, unknown])
    assert columns_drawn(group) == ["tv", "log_reward"]
    distances, rewards = (learning_drawing(group, column, column) for column in columns_drawn(group))
    assert distances is not None
    assert rewards is not None
    assert "mh" not in distances.said
    assert "mh ends at" in rewards.said
    (group,) = grouped([unknown])
    assert columns_drawn(group) == ["log_reward"]


def test_laws_that_cannot_be_compared_stand_apart() -> None:
    first, second = entry("a"), entry("b")
    assert first.source is not None
    assert second.source is not None
    assert len(grouped([first, second])) == 1
    other = replace(second.source, config=second.source.config.with_(reward__minimum=0.5))
    assert len(grouped([first, replace(second, source=other)])) == 2
    tiny = noise_words(NoiseConfig(alpha=0.0049))
    assert tiny == "0.49% noise"


@pytest.mark.usefixtures("sketched")
def test_only_chains_are_said_to_pass_the_floor(tmp_path: Path) -> None:
    words = "are not bound by it"
    assert not any(words in text for text in page(tmp_path, [entry()]).texts)
    assert any(words in text for text in page(tmp_path, [entry(), entry("mh", bound_by_floor=False)]).texts)


def test_single_runs_show_their_loss_and_seeds_of_a_method_do_not(tmp_path: Path) -> None:
    meters = dict.fromkeys(ENTROPY_METERS, 0.5)
    runs = [entry("a"), entry("b"), entry("c")]
    for at, one in enumerate(runs[:2]):
        assert one.source is not None
        for row in one.source.rows:
            row |= {"loss": 0.25} | (meters if at else {})
    parsed = page(tmp_path, runs)
    captions = [text for text in parsed.texts if re.match(r"[abc]: [a-zA-Z]", text)]
    assert captions[:2] == ["a: loss", "b: loss"]
    assert [text.split(",")[0] for text in captions[2:4]] == ["b: Entropy of the policy", "b: Entropy ratio"]
    assert captions[4].startswith("b: Policy KL")  # c has no loss
    assert "Loss of a over steps: ends at 0.25" in parsed.values("aria-label")
    again = replace(runs[0], seed=1)
    assert "#training" not in page(tmp_path, [*runs, again]).values("href")


@pytest.mark.usefixtures("sketched")
def test_a_label_looks_as_its_entry_says(tmp_path: Path) -> None:
    own = Look(PALETTE[6], DASHED)
    (group,) = grouped([replace(entry("a"), look=own), entry("b")])
    assert [line.look for line in group.lines] == [own, look_of(1)]
    (axes,) = learning_figure(group, "tv").axes
    colours = [line.get_color() for line in axes.lines if line.get_gid()]
    assert colours == [PALETTE[6], PALETTE[1]]
    assert 'color="var(--c6)"' in write_page(tmp_path / "p.html", "", [replace(entry("a"), look=own)]).read_text()
