"""Heights of letters against information content worked out by hand."""

import numpy as np
import pytest
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from page_entries import entry

from sgfn.landscapes.measurements import ALPHABETS
from sgfn.reports.pages.logo import (
    FONT,
    RESIDUES,
    ColouredLetters,
    Logo,
    alphabet_of,
    axis_end,
    coloured,
    consensus,
    glyphs,
    heights,
    ink,
    logo,
    name_of,
    outline,
)

DNA, PROTEIN = ALPHABETS["dna"], ALPHABETS["protein"]


@pytest.mark.parametrize(
    ("column", "bits"),
    [
        ("ACGT", [0.0, 0.0, 0.0, 0.0]),  # even: no information
        ("GGGG", [0.0, 0.0, 2.0, 0.0]),  # constant: log2 4
        ("AATT", [0.5, 0.0, 0.0, 0.5]),  # two by halves: 2 - 1, shared
        ("AAAC", [0.75 * 1.188722, 0.25 * 1.188722, 0.0, 0.0]),  # 2 - 0.811278
    ],
)
def test_one_column(column: str, bits: list[float]) -> None:
    assert heights(list(column), DNA)[0] == pytest.approx(bits, abs=1e-6)


def test_columns_stand_for_themselves() -> None:
    found = heights(["AA", "AC", "AG", "AT"], DNA)
    assert found == pytest.approx(np.array([[2.0, 0, 0, 0], [0, 0, 0, 0]]))
    assert heights(["AA", "CA", "GA", "TA"], DNA) == pytest.approx(found[::-1])


@pytest.mark.parametrize("letters", ["01", "ABC", DNA, PROTEIN])
def test_the_most_is_log2_of_the_number_of_letters(letters: str) -> None:
    assert heights([letters[1]] * 3, letters).sum() == pytest.approx(np.log2(len(letters)))
    assert heights(list(letters), letters).sum() == pytest.approx(0.0, abs=1e-12)


def test_what_is_missing_lowers_a_column() -> None:
    found = heights(["ACG", "AC", "A", "A"], DNA).sum(-1)
    assert found == pytest.approx([2.0, 2.0 * 2 / 4, 2.0 * 1 / 4])
    assert heights(["ACG", "AC", "A"], DNA).sum(-1) != pytest.approx(found)
    assert heights(["A?", "AC"], DNA).sum(-1) == pytest.approx([2.0, 1.0])  # no letter is as good as none
    assert heights([], DNA).shape == (0, 4)


def test_the_axis_ends_where_the_tallest_column_fits() -> None:
    full, faint = heights(["A"], DNA), heights(list("AAACCGT"), DNA)
    assert axis_end([faint], DNA) == 0.25
    assert faint.sum() <= 0.25
    assert axis_end([faint, full], DNA) == 2.0
    assert axis_end([heights(["A"], PROTEIN)], PROTEIN) == pytest.approx(np.log2(20))
    assert axis_end([], DNA) == 0.25
    assert axis_end([heights([], "01")], "01") == 0.25


@pytest.mark.parametrize("letter", ["A", "G", "W", "I", "1", "&", "\N{HANGUL SYLLABLE GA}"])
def test_outlines_fill_the_unit_square(letter: str) -> None:
    data = outline(letter)
    numbers = [float(x) for x in "".join(c if c in "0123456789.-" else " " for c in data).split()]
    x, y = np.array(numbers).reshape(-1, 2).T
    assert (y.min(), y.max()) == pytest.approx((0.0, 1.0), abs=0.02)
    assert (x.min() + x.max()) / 2 == pytest.approx(0.5, abs=0.02)
    assert x.max() - x.min() == pytest.approx(0.5 if letter in "I" else 1.0, abs=0.26 if letter in "I1" else 0.02)


def test_outlines_are_the_letters() -> None:
    path = TextPath((0, 0), "T", size=100, prop=FONT)
    assert outline("T").count("L") == sum(code == Outline.LINETO for code in path.codes)
    assert outline("T") != outline("A")
    assert outline("\N{HANGUL SYLLABLE GA}") == outline("\N{REPLACEMENT CHARACTER}")  # not in the font


def uses(logo: Logo) -> list[tuple[str, list[float]]]:
    """Letters of a logo with their places: left, top, width, height."""
    return [(letter.id, [letter.x, letter.y, letter.width, letter.height]) for letter in logo.letters]


def test_letters_are_drawn_as_tall_as_they_should_be() -> None:
    texts = ["AC", "AC", "AG", "AG"]
    bits = heights(texts, DNA)
    (first, a), (lower, c), (upper, g) = uses(logo(bits, DNA, 2.0, "x"))
    assert [first, lower, upper] == [name_of(letter) for letter in "ACG"]
    assert a[3] == pytest.approx(2 * (c[3] + g[3]))  # 2 bits beside 1
    assert c[3] == pytest.approx(g[3])
    assert a[1] + a[3] == pytest.approx(c[1] + c[3])  # one base line
    assert g[1] + g[3] == pytest.approx(c[1])  # on top of each other
    assert uses(logo(bits, DNA, 4.0, "x"))[0][1][3] == pytest.approx(a[3] / 2)  # another axis
    assert uses(logo(heights(list(DNA), DNA), DNA, 2.0, "x")) == []


def test_long_sequences_make_wide_logos() -> None:
    short, long = (logo(heights(["A" * n], DNA), DNA, 2.0, "x") for n in (8, 80))
    assert long.width > 1280 > 390 > short.width
    assert len(uses(long)) == 80
    assert "most frequent letters " + "A" * 80 in long.said


def test_only_letters_that_are_used_have_outlines() -> None:
    assert [glyph.id for glyph in glyphs({DNA, "01"})] == [name_of(letter) for letter in "01ACGT"]
    assert glyphs(set()) == []


def test_consensus() -> None:
    assert consensus(heights(["ACG", "ACT", "ACT"], DNA), DNA) == "ACT"


def test_colours() -> None:
    assert [ink(letter, DNA) for letter in DNA] == [0, 1, 2, 3]
    assert ink("U", ALPHABETS["rna"]) == ink("T", DNA)
    assert sorted("".join(RESIDUES)) == sorted(PROTEIN)
    assert ink("K", PROTEIN) == ink("R", PROTEIN) != ink("D", PROTEIN)
    assert [ink(letter, "abcdefghij") for letter in "abij"] == [0, 1, 0, 1]
    assert ink("?", DNA) == ink("?", PROTEIN) == 5
    runs = [(one.ink, one.letters) for one in coloured("AACA", DNA)]
    assert runs == [(0, "AA"), (1, "C"), (0, "A")]
    assert coloured("1,2", None) == [ColouredLetters(letters="1,2", ink=None)]


def test_the_alphabet_is_the_one_on_file_or_the_smallest_that_fits() -> None:
    def found(**results: object) -> str | None:
        source = entry(**results).source
        assert source is not None
        if results.get("alphabet") == "":
            del source.results["alphabet"]
        return alphabet_of(source)

    assert found(alphabet="AC") == "AC"
    assert found(alphabet=None) is None
    assert found(alphabet="", designs=[["AC", 1.0]]) == DNA
    assert found(alphabet="", designs=[["ACU", 1.0]]) == ALPHABETS["rna"]
    assert found(alphabet="", designs=[["ACW", 1.0]]) == PROTEIN
    assert found(alphabet="", designs=[["<&0", 1.0]]) == "&0<"
    assert found(alphabet="", designs=[["3,4", 1.0]]) is None
    assert found(alphabet="", designs=[]) is None
