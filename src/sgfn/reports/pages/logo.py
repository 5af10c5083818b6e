"""Sequence logos: letters as tall as the information they carry."""

from functools import cache
from itertools import groupby
from xml.etree.ElementTree import Element

import numpy as np
from jaxtyping import Float
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath

from sgfn.landscapes.measurements import ALPHABETS
from sgfn.reports.pages.charts import ticks
from sgfn.reports.pages.markup import tag
from sgfn.reports.sources import Source

FONT = FontProperties(family="DejaVu Sans", weight="bold")  # comes with matplotlib, so logos look the same everywhere
NUCLEOTIDES = {"A": 0, "C": 1, "G": 2, "T": 3, "U": 3}
RESIDUES = {"AVLIPWFM": 5, "GSTYC": 0, "NQ": 4, "KRH": 1, "DE": 3}
"""Amino acids by chemistry: hydrophobic, polar, amides, basic, acidic."""
INKS = 8
TALL, TOP, BOTTOM, AXIS = 110.0, 8.0, 18.0, 48.0
THINNEST = 0.4
ENDS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)


def heights(texts: list[str], alphabet: str) -> Float[np.ndarray, "L V"]:
    r"""Bits of each letter at each position, sequences aligned left; what is missing lowers a column.

    .. math:: h_{iv} = g_i\, p_{iv} \big(\log_2 V + \sum_u p_{iu} \log_2 p_{iu}\big)

    with g the share of sequences that reach position i. Reference: Schneider and Stephens (1990), Nucleic Acids
    Research; without their correction for small samples.
    """
    code = {letter: i for i, letter in enumerate(alphabet)}
    counts = np.zeros((max(map(len, texts), default=0), len(alphabet)))
    for text in texts:
        for position, letter in enumerate(text):
            if letter in code:
                counts[position, code[letter]] += 1
    here = counts.sum(-1, keepdims=True)
    shares = counts / here.clip(min=1.0)
    surprise = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits = np.log2(len(alphabet)) + (shares * surprise).sum(-1, keepdims=True)
    return here / max(len(texts), 1) * shares * bits.clip(min=0.0)


def alphabet_of(source: Source) -> str | None:
    """Letters that sequences are made of; None where objects are none, as on a grid."""
    if "alphabet" in source.results:
        return source.results["alphabet"]
    texts = [text for text, _ in source.results.get("designs") or []]
    if not texts or any("," in text for text in texts):
        return None
    seen = set("".join(texts))  # an older file: the smallest alphabet with a name, else what is there
    return next((letters for letters in ALPHABETS.values() if seen <= set(letters)), "".join(sorted(seen)))


def ink(letter: str, alphabet: str) -> int:
    """Number of a letter's colour: nucleotides as is customary, amino acids by chemistry, others in turn."""
    if set(alphabet) <= set(NUCLEOTIDES):
        return NUCLEOTIDES.get(letter, 5)
    if alphabet == ALPHABETS["protein"]:
        return next((colour for letters, colour in RESIDUES.items() if letter in letters), 5)
    return max(alphabet.find(letter), 0) % INKS


def coloured(text: str, alphabet: str | None) -> list[object]:
    """A sequence with its letters coloured, neighbours of one colour together."""
    if alphabet is None:
        return [text]
    return [tag("span", "".join(run), class_=f"k{k}") for k, run in groupby(text, lambda letter: ink(letter, alphabet))]


def glyphs(alphabets: set[str]) -> Element | None:
    """Outlines of all letters, drawn once for all logos of the page."""
    letters = sorted(set("".join(alphabets)))
    if not letters:
        return None
    shapes = [tag("path", id=name_of(letter), d=outline(letter)) for letter in letters]
    return tag("svg", tag("defs", shapes), width=0, height=0, aria_hidden="true", class_="glyphs")


def name_of(letter: str) -> str:
    """Name of a letter's outline on the page."""
    return f"g{ord(letter):x}"


@cache
def outline(letter: str) -> str:
    """A letter that fills the unit square, as the data of an SVG path; narrow ones keep their shape."""
    known = get_font(findfont(FONT)).get_char_index(ord(letter)) > 0
    path = TextPath((0, 0), letter if known else "\N{REPLACEMENT CHARACTER}", size=100, prop=FONT)
    box = path.get_extents()
    tall, wide = max(box.height, 1e-6), max(box.width, 0.6 * box.height, 1e-6)
    left = box.x0 - (wide - box.width) / 2
    parts = []
    for points, code in path.iter_segments(curves=True):
        pairs = np.asarray(points).reshape(-1, 2)
        unit = (pairs - [left, box.y0]) / [wide, tall]
        sign = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}.get(code, "Z")
        parts.append(sign + ("" if sign == "Z" else " ".join(f"{x:.3f} {1 - y:.3f}" for x, y in unit)))
    return "".join(parts)


def axis_end(bits: list[Float[np.ndarray, "_ V"]], alphabet: str) -> float:
    """A round number of bits that no column of some logos exceeds, so that faint ones can be read too."""
    tallest = max((float(columns.sum(-1).max()) for columns in bits if columns.size), default=0.0)
    return next((end for end in ENDS if tallest <= end < np.log2(len(alphabet))), float(np.log2(len(alphabet))))


def logo(bits: Float[np.ndarray, "L V"], alphabet: str, most: float, title: str) -> Element:
    """The drawing, as wide as its sequences are long, with an axis that ends at `most` bits."""
    length = len(bits)
    step = 26.0 if length <= 20 else 18.0
    width, height = AXIS + step * length + 4, TOP + TALL + BOTTOM
    said = f"{title}: most frequent letters {consensus(bits, alphabet)}, {bits.sum():.1f} bits in all"
    columns = [_column(row, alphabet, AXIS + step * i, step, most) for i, row in enumerate(bits)]
    parts = [tag("title", said), _scale(most, width), columns, _positions(length, step)]
    size = {"width": width, "height": height, "viewBox": f"0 0 {width:g} {height:g}"}
    return tag("svg", parts, **size, role="img", aria_label=said, class_="logo")


def consensus(bits: Float[np.ndarray, "L V"], alphabet: str) -> str:
    """The letter that carries most at each position."""
    return "".join(alphabet[i] for i in bits.argmax(-1))


def _column(row: Float[np.ndarray, " V"], alphabet: str, left: float, step: float, most: float) -> list[Element]:
    """Letters of one position, the tallest on top."""
    drawn, base = [], TOP + TALL
    for i in np.argsort(row, kind="stable"):
        tall = float(row[i]) / most * TALL
        if tall < THINNEST:
            continue
        base -= tall
        place = f"translate({left + 1:.1f} {base:.2f}) scale({step - 2:.1f} {tall:.2f})"
        letter = alphabet[i]
        drawn.append(tag("use", href=f"#{name_of(letter)}", transform=place, class_=f"k{ink(letter, alphabet)}"))
    return drawn


def _scale(most: float, width: float) -> list[Element]:
    """Bits at the left, and a thin line for each mark."""
    drawn = []
    for bit, text in ticks(0.0, most, most=3):
        y = TOP + TALL * (1 - bit / most)
        drawn.append(tag("line", x1=AXIS - 3, x2=width - 4, y1=y, y2=y, class_="rule"))
        drawn.append(tag("text", text, x=AXIS - 7, y=y + 4, text_anchor="end"))
    middle = TOP + TALL / 2
    turned = tag("text", "bits", x=10.0, y=middle, text_anchor="middle", transform=f"rotate(-90 10 {middle:g})")
    return [*drawn, turned]


def _positions(length: int, step: float) -> list[Element]:
    marks = [i for i in range(1, length + 1) if length <= 20 or i == 1 or i % 5 == 0]
    y = TOP + TALL + BOTTOM - 4
    return [tag("text", str(i), x=AXIS + step * (i - 0.5), y=y, text_anchor="middle") for i in marks]
