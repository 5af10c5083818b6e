"""The page in a real browser: sorting, toggles, themes, narrow screens, colours, and nothing fetched."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from browser import Browser, find_browser, need_browser
from forecast_tables import outcome, small_panel
from page_entries import entry

from sgfn.reports.looks import PALETTE
from sgfn.reports.pages import Entry, write_page
from sgfn.reports.pages.forecast import write_forecast_page

LONG = "ACGT" * 20
LABELS = """[...document.querySelectorAll('.sortable tbody')].map(body =>
  [...body.rows].slice(1).map(row => row.cells[0].dataset.value))"""
SORTED = (
    "[...document.querySelectorAll('.sortable [aria-sort]')].map(th => [th.dataset.key, th.getAttribute('aria-sort')])"
)
SHOWN = """[...document.querySelectorAll('.chart [class^=series-]')].map(g =>
  [g.querySelector('title').textContent.split(':')[0], g.getBoundingClientRect().width > 0])"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
WIDTHS = "[innerWidth, document.documentElement.scrollWidth]"
COLOURS = """(() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, holder = text.parentElement, style = getComputedStyle(holder);
    if (!text.data.trim() || ['STYLE', 'SCRIPT', 'title'].includes(holder.tagName)) continue;
    let behind = holder;
    const solid = (e) => getComputedStyle(e).backgroundColor !== 'rgba(0, 0, 0, 0)';
    while (behind !== document.body && !solid(behind)) behind = behind.parentElement;
    const ink = holder.closest('svg') ? style.fill : style.color;
    found.add(`${ink} on ${getComputedStyle(behind).backgroundColor}`);
  }
  return [...found];
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten labels at two noise levels, long names, long sequences, a failure."""
    designs = {"designs": [[LONG, 0.9]], "modes": [[LONG, 0.9]]}
    designs["orders"] = [{"order": LONG, "expected": 0.5, "intact": 0.1, "score": 0.9}]
    runs = []
    for noise in ("50% noise", "25% noise"):
        for label, tv in (("tb", 0.3), ("db", 0.2), ("kl", 0.1)):
            runs += [entry(label, noise=noise, seed=seed, tv=tv + seed / 100, **designs) for seed in range(2)]
        runs.append(entry("unknown", noise=noise, tv=None))
        runs += [entry(f"m{i:02}", noise=noise, tv=0.5, top100_mean=i / 10) for i in range(5)]
    runs.append(entry("a name that is rather long, " * 3 + "a" * 60, noise="50% noise", tv=0.6))
    runs.append(Entry(label="tb", source=None, noise="25% noise", seed=2, error="e" * 200))
    return write_page(tmp_path_factory.mktemp("page") / "page.html", "A comparison", runs)


def test_columns_are_sorted_by_mouse_and_keys(browser: Browser, comparison: Path) -> None:
    others = [f"m{i:02}" for i in range(5)]
    browser.open(comparison)
    came = ["tb", "db", "kl", "unknown", *others]
    small, large = browser.see(LABELS)
    assert small == came
    long = large[-1]
    assert large == [*came, long]
    browser.click("th[data-key=tv] button")
    assert browser.see(SORTED) == [["tv", "ascending"]]  # the lower the better
    assert browser.see(LABELS) == [
        ["kl", "db", "tb", *others, "unknown"],
        ["kl", "db", "tb", *others, long, "unknown"],
    ]
    browser.press("Enter")  # the focus is still there
    assert browser.see(SORTED) == [["tv", "descending"]]
    assert browser.see(LABELS) == [
        [*others, "tb", "db", "kl", "unknown"],
        [long, *others, "tb", "db", "kl", "unknown"],  # what is not known stays last
    ]
    browser.press("Tab")
    browser.press("Tab")
    browser.press("Tab")
    assert browser.see("document.activeElement.closest('th').dataset.key") == "top100_mean"
    assert browser.see("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press(" ")
    assert browser.see(SORTED) == [["top100_mean", "descending"]]  # the higher the better
    assert browser.see(LABELS)[0][-5:] == others[::-1]
    browser.click("th[data-key=label] button")
    assert browser.see(LABELS)[0] == sorted(came)
    assert browser.see("[...document.querySelectorAll('.sortable tbody')].every(b => b.rows[0].className === 'group')")
    assert (browser.problems, browser.requests) == ([], [comparison.resolve().as_uri()])


def test_curves_can_be_hidden(browser: Browser, comparison: Path) -> None:
    browser.open(comparison)
    before = browser.see(SHOWN)
    assert len(before) == 2 * 9 + 1 + 2 * 3  # lines, and the bands of those with two seeds
    assert all(shown for _, shown in before)
    button = ".legend button[data-series='1']"
    browser.click(button)
    assert browser.see(f'document.querySelector("{button}").ariaPressed') == "false"
    assert [label for label, shown in browser.see(SHOWN) if not shown] == ["db"] * 4
    browser.press(" ")
    assert browser.see(SHOWN) == before
    assert browser.problems == []


def test_light_and_dark(browser: Browser, comparison: Path) -> None:
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 29)"
    for prefers, first, other in ((False, light, dark), (True, dark, light)):
        browser.open(comparison, dark=prefers)
        assert browser.see(BACKGROUND) == first
        assert browser.see("theme.textContent") == ("Light" if prefers else "Dark")
        browser.click("#theme")
        assert browser.see(BACKGROUND) == other
        browser.press("Enter")
        assert browser.see(BACKGROUND) == first
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.see(BACKGROUND) == light  # paper is white
    browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_only_boxes_scroll_sideways(width: int, browser: Browser, comparison: Path) -> None:
    browser.open(comparison, width=width)
    browser.see("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.see(WIDTHS) == [width, width]
    wide = browser.see("[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth).length")
    assert wide >= 6  # the logos of 80 letters
    browser.see("document.body.append(Object.assign(document.createElement('pre'), {textContent: 'x'.repeat(999)}))")
    assert browser.see(WIDTHS)[1] > width  # and this would be seen


def test_nothing_is_fetched_and_no_other_script_runs(browser: Browser, comparison: Path, tmp_path: Path) -> None:
    browser.open(comparison)
    assert browser.see("performance.getEntriesByType('resource').length") == 0
    assert (browser.problems, browser.requests) == ([], [comparison.resolve().as_uri()])
    bad = tmp_path / "bad.html"
    slipped_in = "<script>document.title = 'run'</script><img src='https://sgfn.invalid/x.png' onerror='alert(1)'>"
    bad.write_text(comparison.read_text().replace("<main>", f"<main>{slipped_in}"))
    browser.open(bad)
    assert browser.see("document.title") == "A comparison"
    assert sum("Content Security Policy" in problem for problem in browser.problems) >= 2


@pytest.fixture(scope="module")
def forecast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a forecast, one of whose series has a long name."""
    found = outcome(small_panel(("a", "a name that is rather long, " * 3 + "a" * 60)))
    return write_forecast_page(tmp_path_factory.mktemp("page") / "page.html", "A forecast", "seven days", found)


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_of_a_forecast(dark: bool, width: int, browser: Browser, forecast: Path) -> None:
    """It fits narrow screens (only boxes scroll), fetches nothing, and can be read by day and by night."""
    browser.open(forecast, width=width, dark=dark)
    browser.see("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.see(WIDTHS) == [width, width]
    assert (browser.problems, browser.requests) == ([], [forecast.resolve().as_uri()])
    pairs = [pair.split(" on ") for pair in browser.see(COLOURS)]
    assert {(text, behind) for text, behind in pairs if contrast(text, behind) < 4.5} == set()
    charts = browser.see("[...document.querySelectorAll('svg.wide')].map(c => c.getBoundingClientRect().width)")
    assert len(charts) == 2
    assert min(charts) >= 500


def test_what_is_folded_is_printed(browser: Browser, comparison: Path) -> None:
    browser.open(comparison)
    state = "[...document.querySelectorAll('details')].map(d => d.open)"
    before = browser.see(state)
    assert len(set(before)) == 2
    browser.see("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.see(state))
    browser.see("dispatchEvent(new Event('afterprint'))")
    assert browser.see(state) == before


def test_names_for_those_who_cannot_see(browser: Browser, comparison: Path) -> None:
    browser.open(comparison)
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    assert all(name for role, name in named if role in ("button", "image", "img", "link", "region", "heading"))
    images = [name for role, name in named if role in ("image", "img")]
    assert any("kl ends at 0.3" in name for name in images)
    assert any(f"most frequent letters {LONG}" in name for name in images)


# Colours


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb or rgb(r, g, b)."""
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def linear(colour: str) -> np.ndarray:
    parts = (
        [int(colour[i : i + 2], 16) for i in (1, 3, 5)] if colour[0] == "#" else map(int, re.findall(r"\d+", colour))
    )
    share = np.array(list(parts)[:3]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Ratio of WCAG 2."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read(dark: bool, browser: Browser, comparison: Path) -> None:
    browser.open(comparison, dark=dark)
    browser.see("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.see("document.querySelector('.legend button').click()")  # a label that is switched off is to be read too
    pairs = [pair.split(" on ") for pair in browser.see(COLOURS)]
    assert len(pairs) >= 10
    poor = {(text, behind): contrast(text, behind) for text, behind in pairs if contrast(text, behind) < 4.5}
    assert poor == {}
    assert contrast("#ffffff", "rgb(0, 0, 0)") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") < 4.5


# Machado, Oliveira and Fernandes (2009), IEEE TVCG: no red, green or blue cones
BLINDNESS = {
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
# Ottosson (2020), Oklab: about 0.02 is a difference that is just seen
CONES = [[0.4122215, 0.5363325, 0.0514460], [0.2119035, 0.6806995, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
OKLAB = [[0.2104543, 0.7936178, -0.0040720], [1.9779985, -2.4285922, 0.4505937], [0.0259040, 0.7827718, -0.8086758]]
STYLE = files("sgfn.reports.pages").joinpath("page.css").read_text()
DARK = dict(re.findall(r"light-dark\((#\w{6}), (#\w{6})\);", STYLE))
COLOURS_OF_METHODS = [(colour, DARK[colour]) for colour in PALETTE]


def nearest(colours: list[str], kind: str) -> float:
    """Distance of the two colours that are most alike to some kind of eye."""
    seen = np.clip(np.array([linear(colour) for colour in colours]) @ np.array(BLINDNESS[kind]).T, 0, 1)
    places = np.cbrt(seen @ np.array(CONES).T) @ np.array(OKLAB).T
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return float(apart[np.triu_indices(len(colours), 1)].min())


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("dark", [False, True])
def test_methods_are_told_apart_by_every_kind_of_colour_vision(dark: bool, kind: str) -> None:
    colours, page = [pair[dark] for pair in COLOURS_OF_METHODS], "#14181d" if dark else "#ffffff"
    assert len(colours) == 8
    assert nearest(colours, kind) > 0.09
    assert min(contrast(colour, page) for colour in colours) >= 3.0
    rainbow = ["#ff0000", "#00aa00", "#0000ff", "#ff8800", "#aa00aa", "#00aaaa", "#888800", "#996633"]
    assert min(nearest(rainbow, kind) for kind in BLINDNESS) < 0.09


# Where there is no browser


def test_without_a_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SGFN_BROWSER", raising=False)
    monkeypatch.delenv("CI", raising=False)
    assert find_browser() is None
    with pytest.raises(pytest.skip.Exception, match="make browser"):
        need_browser()
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="make browser"):
        need_browser()
    own = tmp_path / "mine"
    own.touch(mode=0o755)
    monkeypatch.setenv("SGFN_BROWSER", str(own))
    assert need_browser() == str(own)
