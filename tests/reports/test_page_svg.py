"""Matplotlib figures inside a page: nothing lost, nothing of their own styles or ids, the page's colours."""

import re
from importlib.resources import files
from xml.etree.ElementTree import fromstring

from matplotlib.figure import Figure
from page_entries import entry

from sgfn.reports.axes import add_panel, name_axes, new_figure
from sgfn.reports.learning_figures import draw_learning
from sgfn.reports.looks import INK, PALETTE, look_of
from sgfn.reports.pages.drawings import learning_figure
from sgfn.reports.pages.entries import grouped
from sgfn.reports.pages.svg import VARIABLES, Drawing, drawing

NASTY = "<script>alert(1)</script>\"'&"
STYLE = files("sgfn.reports.pages").joinpath("page.css").read_text()


def plain_figure(label: str = "x", colour: str = INK) -> Figure:
    figure = new_figure(4.0, 3.0)
    axes = add_panel(figure)
    name_axes(axes, label, "y")
    axes.plot([0.0, 1.0], [0.0, 1.0], color=colour, gid="series-3", marker="o")
    return figure


def elements(made: Drawing) -> list[tuple[str, dict[str, str]]]:
    return [(node.tag, node.attrib) for node in fromstring(f"<svg>{made.body}</svg>").iter()]


def test_a_figure_has_one_text_however_often_it_is_drawn() -> None:
    first, again, other = (drawing(plain_figure(label), key="a", said="") for label in ("x", "x", "z"))
    assert first == again
    assert first.body != other.body
    assert (first.width, first.height) == (4 * 72, 3 * 72)


def test_what_is_referred_to_is_there_under_the_keys_own_names() -> None:
    made = drawing(plain_figure(), key="mine", said="")
    names = [attributes["id"] for _, attributes in elements(made) if "id" in attributes]
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', made.body))
    assert referred == set(names)
    assert len(names) == len(set(names)) > 1
    assert all(name.startswith("mine-") for name in names)
    other = drawing(plain_figure(), key="other", said="")
    assert not referred & set(re.findall(r'id="([^"]+)"', other.body))


def test_styles_are_attributes_in_the_pages_colours() -> None:
    (group,) = grouped([entry(seed=0), entry(seed=1), *[entry(f"m{i}") for i in range(8)]])
    found = elements(drawing(learning_figure(group, "tv"), key="a", said=""))
    assert not [tag for tag, attributes in found if tag in ("style", "metadata") or "style" in attributes]
    colours = {about[name] for _, about in found for name in ("fill", "stroke") if name in about} - {"none"}
    assert {f"var(--c{number})" for number in range(8)} <= colours
    assert all(colour.startswith("var(--") for colour in colours)
    unknown = drawing(plain_figure(colour="#123456"), key="a", said="").body
    assert "#123456" in unknown  # a colour that the page does not know stays as it is


def test_light_colours_of_the_page_are_those_of_the_files() -> None:
    light = dict(re.findall(r"--(\w+): light-dark\((#\w{6})", STYLE))
    assert {name: light[name] for name in VARIABLES.values()} == {
        name: colour for colour, name in VARIABLES.items() if colour != "#000000"
    }


def test_text_is_text_and_titles_belong_to_their_curves() -> None:
    made = drawing(plain_figure(NASTY), key="a", said="", titles={"series-3": NASTY, "series-4": "none"})
    root = fromstring(f"<svg>{made.body}</svg>")
    assert NASTY in [node.text for node in root.iter("text")]
    (curve,) = (node for node in root.iter() if node.get("class") == "series-3")
    title = curve.find("title")
    assert title is not None
    assert title.text == NASTY
    assert "none" not in [node.text for node in root.iter("title")]
    assert "<script" not in made.body


def test_an_empty_panel_can_be_drawn() -> None:
    figure = new_figure(4.0, 3.0)
    draw_learning(add_panel(figure), [], [], "log_reward")
    assert "mean log-reward of a batch" in drawing(figure, key="a", said="").body


def test_looks_differ_until_colours_and_dashes_have_run_out() -> None:
    looks = [look_of(number) for number in range(3 * len(PALETTE))]
    assert len(set(looks)) == len(looks)
    assert look_of(len(looks)) == looks[0]
    assert [looks[0].dashes, looks[8].dashes] == ["", "10 4"]
