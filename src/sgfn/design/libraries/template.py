"""The DNA that a library is ordered in: reading frame, positions of the sites, and flanks that stay as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from sgfn.config.checks import shorten, whole_number
from sgfn.design.libraries.codons import BASES, codon_table, nucleotides, parse_shares

LONGEST = 100_000
"""Most bases of a template or a flank."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """Codons of a coding sequence, numbers of the residues that are varied (from 1), and flanks on both sides.

    >>> template = Template.of("ATGGTTGATGGT", (2, 3), left="GGA", right="TAA")
    >>> template.protein, template.dna(["NNK", "NDT"])
    ('MVDG', 'GGAATGNNKNDTGGTTAA')
    """

    codons: tuple[str, ...]
    positions: tuple[int, ...]
    left: str = ""
    right: str = ""

    @classmethod
    def of(cls, dna: str, positions: Sequence[int], left: str = "", right: str = "") -> "Template":
        """The template of a coding sequence, which is read from its first base on."""
        coding = plain_dna(dna, "template")
        if len(coding) % 3:
            what = f"template has {len(coding)} bases, which is not a multiple of 3: it is out of frame"
            raise ValueError(f"{what}; begin with the first base of a codon, and give what lies outside as flanks")
        codons = tuple(coding[i : i + 3] for i in range(0, len(coding), 3))
        for number, codon in enumerate(codons[:-1], start=1):
            if codon_table()[codon] == "*":
                what = f"template has the stop {codon} as codon {number} of {len(codons)}: it is out of frame"
                raise ValueError(f"{what}; begin with the first base of a codon")
        check_positions(positions, len(codons), codons)
        flanks = {
            "left": plain_dna(left, "left flank", empty=True),
            "right": plain_dna(right, "right flank", empty=True),
        }
        return cls(codons=codons, positions=tuple(positions), **flanks)

    @property
    def protein(self) -> str:
        """Residues of the template, without a stop at its end."""
        return "".join(codon_table()[codon] for codon in self.codons).removesuffix("*")

    @property
    def wild_type(self) -> str:
        """Residues of the template at the sites."""
        return "".join(codon_table()[self.codons[position - 1]] for position in self.positions)

    def dna(self, codons: Sequence[str]) -> str:
        """The whole DNA to order, with these codons at the sites and everything else as it is."""
        changed = list(self.codons)
        for position, codon in zip(self.positions, codons, strict=True):
            changed[position - 1] = hand_mixed(codon)
        return self.left + "".join(changed) + self.right


def hand_mixed(codon: str) -> str:
    """A codon with mixtures in percent as suppliers write them: (N1:AACCGGTT), two digits for each base.

    >>> hand_mixed("[A10G90]NK")
    '(N1:10009000)NK'
    """
    parts = nucleotides(codon)
    return "".join(one if one[0] != "[" else f"(N1:{_digits(one)})" for one in parts)


def _digits(mixture: str) -> str:
    return "".join(f"{round(100 * share):02d}" for share in parse_shares(mixture))


def plain_dna(text: str, what: str, *, empty: bool = False) -> str:
    """DNA in capitals; letters other than A, C, G and T are refused."""
    dna = "".join(text.split()).upper()
    if not dna and not empty:
        raise ValueError(f"{what} is empty; give its DNA")
    if len(dna) > LONGEST:
        raise ValueError(f"{what} has {len(dna):,} bases, {LONGEST:,} at most are taken")
    wrong = next((place for place, base in enumerate(dna) if base not in BASES), None)
    if wrong is not None:
        raise ValueError(f"{what} {shorten(dna)}: base {wrong + 1} is {dna[wrong]!r}; write A, C, G and T alone")
    return dna


def check_positions(positions: Sequence[int], count: int, codons: Sequence[str] = ()) -> None:
    """Raise unless positions are different residues of a protein."""
    if not positions:
        raise ValueError("positions are missing: name the residues to vary, like 39,40,41,54")
    for position in positions:
        whole_number("positions", position, -(10**12), 10**12)
        if not 1 <= position <= count:
            raise ValueError(f"position {position} lies outside: the template has residues 1 to {count}")
        if codons and codon_table()[codons[position - 1]] == "*":
            raise ValueError(
                f"position {position} is the stop {codons[position - 1]} at the template's end: leave it out"
            )
    twice = next((position for position in positions if list(positions).count(position) > 1), None)
    if twice is not None:
        raise ValueError(f"position {twice} is named twice: name each residue once")
    if list(positions) != sorted(positions):
        raise ValueError(f"positions must rise, got {','.join(map(str, positions))}")


def parse_positions(text: str) -> tuple[int, ...]:
    """Positions from text such as 39,40,41,54.

    >>> parse_positions("39,40,41,54")
    (39, 40, 41, 54)
    """
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ValueError(f"positions {shorten(text)!r} are no numbers; write them like 39,40,41,54") from None
