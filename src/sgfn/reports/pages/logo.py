"""Sequence logos: letters as tall as the information they carry."""

from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np
from jaxtyping import Float
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator

from sgfn.landscapes.measurements import ALPHABETS
from sgfn.reports.axes import NICE
from sgfn.reports.numbers import plain
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


@dataclass(frozen=True, kw_only=True)
class ColouredLetters:
    """Neighbouring letters of one colour; None where letters have none."""

    letters: str
    ink: int | None


def coloured(text: str, alphabet: str | None) -> list[ColouredLetters]:
    """A sequence in pieces of one colour each."""
    if alphabet is None:
        return [ColouredLetters(letters=text, ink=None)]
    runs = groupby(text, lambda letter: ink(letter, alphabet))
    return [ColouredLetters(letters="".join(letters), ink=number) for number, letters in runs]


@dataclass(frozen=True, kw_only=True)
class Glyph:
    """The outline of a letter, which all logos of a page refer to by its id."""

    id: str
    outline: str


def glyphs(alphabets: set[str]) -> list[Glyph]:
    """Outlines of all letters that some logo uses, in order."""
    letters = sorted(set("".join(alphabets)))
    return [Glyph(id=name_of(letter), outline=outline(letter)) for letter in letters]


def name_of(letter: str) -> str:
    """Id of a letter's outline on the page."""
    return f"g{ord(letter):x}"


@cache
def outline(letter: str) -> str:
    """A letter that fills the unit square, as the data of an SVG path; narrow letters keep their shape."""
    if letter.isspace():
        return ""  # matplotlib cannot outline nothing
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
    most = float(np.log2(max(len(alphabet), 2)))  # of one letter alone, which carries nothing, there is an axis too
    return next((end for end in ENDS if tallest <= end < most), most)


@dataclass(frozen=True, kw_only=True)
class Letter:
    """One letter of a logo: its outline stretched over a rectangle, and the number of its colour."""

    id: str
    x: float
    y: float
    width: float
    height: float
    ink: int


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A text beside or below a logo, and where it stands."""

    text: str
    place: float


@dataclass(frozen=True, kw_only=True)
class Logo:
    """Everything that the template draws, in pixels, and one sentence for those who cannot see it."""

    said: str
    width: float
    height: float
    letters: list[Letter]
    bits: list[Tick]
    """Heights of the thin lines, from the top."""
    positions: list[Tick]
    left: float = AXIS
    middle: float = TOP + TALL / 2
    foot: float = TOP + TALL + BOTTOM - 4


def logo(bits: Float[np.ndarray, "L V"], alphabet: str, most: float, title: str) -> Logo:
    """The logo of these heights, as wide as its sequences are long, with an axis that ends at `most` bits."""
    length = len(bits)
    step = 26.0 if length <= 20 else 18.0
    columns = [_column(row, alphabet, AXIS + step * i, step, most) for i, row in enumerate(bits)]
    return Logo(
        said=f"{title}: most frequent letters {consensus(bits, alphabet)}, {bits.sum():.1f} bits in all",
        width=AXIS + step * length + 4,
        height=TOP + TALL + BOTTOM,
        letters=[letter for column in columns for letter in column],
        bits=[Tick(text=text, place=TOP + TALL * (1 - bit / most)) for bit, text in ticks(0.0, most, most=3)],
        positions=[Tick(text=str(i), place=AXIS + step * (i - 0.5)) for i in _numbered(length)],
    )


def consensus(bits: Float[np.ndarray, "L V"], alphabet: str) -> str:
    """The letter that carries most at each position."""
    return "".join(alphabet[i] for i in bits.argmax(-1))


def _column(row: Float[np.ndarray, " V"], alphabet: str, left: float, step: float, most: float) -> list[Letter]:
    """Letters of one position, the tallest on top."""
    found, base = [], TOP + TALL
    for i in np.argsort(row, kind="stable"):
        tall = float(row[i]) / most * TALL
        if tall < THINNEST:
            continue
        base -= tall
        colour = ink(alphabet[i], alphabet)
        found.append(Letter(id=name_of(alphabet[i]), x=left + 1, y=base, width=step - 2, height=tall, ink=colour))
    return found


def _numbered(length: int) -> list[int]:
    """Positions that are numbered below a logo: all of a short one, every fifth of a long one."""
    return [i for i in range(1, length + 1) if length <= 20 or i == 1 or i % 5 == 0]


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two ends, with as many decimals as their distance asks for.

    >>> [text for _, text in ticks(0.0, 20000.0)]
    ['0', '5,000', '10,000', '15,000', '20,000']
    """
    places = MaxNLocator(most, steps=NICE).tick_values(low, high)
    places = [float(p) for p in places if low - 1e-9 <= p <= high + 1e-9]
    if len(places) < 2:
        return [(p, plain(p)) for p in places]
    step = places[1] - places[0]
    decimals = next((d for d in range(12) if abs(round(step, d) - step) < 1e-6 * step), 12)
    return [(p, plain(p, decimals)) for p in places]
