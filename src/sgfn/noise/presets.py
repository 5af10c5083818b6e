"""Channels by name: error rates of ways to make DNA, with the sources they were read from."""

from dataclasses import asdict, dataclass, field
from typing import Any, cast

from sgfn.config.checks import one_of

TAQ_SHARES = {
    **{"AG": 0.321, "TC": 0.321, "AT": 0.097, "TA": 0.097, "GA": 0.0225, "CT": 0.0225},
    **{"AC": 0.0075, "TG": 0.0075, "GT": 0.0075, "CA": 0.0075, "GC": 0.0, "CG": 0.0},
}
"""Share of all mutations of error-prone PCR that each substitution has, complements alike; the rest are frameshifts."""
SPLIT = {"substitution": 0.0048 / 0.0137, "insertion": 0.0011 / 0.0137, "deletion": 0.0078 / 0.0137}
"""Shares of the kinds of errors in the average storage pool: those of sources that tell nothing but a total."""
NNK = dict.fromkeys("LRS", 3 / 32) | dict.fromkeys("AGPTV", 2 / 32) | dict.fromkeys("CDEFHIKMNQWY*", 1 / 32)
"""Law of the residue, stop included, of a codon N N K (K: G or T)."""


@dataclass(frozen=True, kw_only=True)
class ChannelPreset:
    """A channel with its rates per base: how often another letter is written, one too many, none."""

    name: str
    about: str
    source: str
    substitution: float = 0.0
    insertion: float = 0.0
    deletion: float = 0.0
    shares: dict[str, float] = field(default_factory=dict)
    """Share of each substitution, intended and realised letter, among all errors; empty where all are alike."""
    residues: dict[str, float] = field(default_factory=dict)
    """Law of the residue, where what is ordered is a mixture and not a letter."""
    note: str = ""
    """What the source does not tell and is assumed."""

    @property
    def per_kilobase(self) -> float:
        """Errors of all kinds in a thousand bases."""
        return 1000.0 * (self.substitution + self.insertion + self.deletion)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        kind = "library" if self.residues else "channel"
        return asdict(self) | {"kind": kind, "per_kilobase": self.per_kilobase}


def _of_total(total: float, **facts: str) -> ChannelPreset:
    """A channel of which the source tells the total alone."""
    rates = {name: share * total for name, share in SPLIT.items()}
    return ChannelPreset(**facts, note=_ASSUMED, **cast(dict[str, Any], rates))


_ASSUMED = "the source tells the total; kinds are split as in the average storage pool"
_HECKEL = "Heckel et al. (2019), Scientific Reports 9:9663, figure 3"
CHANNELS: dict[str, ChannelPreset] = {
    preset.name: preset
    for preset in (
        _of_total(
            1 / 200,
            name="column-oligo",
            about="oligos from columns",
            source="PMC4797260",
        ),
        _of_total(
            0.01425,
            name="microchip",
            about="microchip oligos before correction",
            source="Scientific Reports 7:6119 (2017)",
        ),
        _of_total(
            0.00053,
            name="microchip-corrected",
            about="microchip oligos after correction",
            source="Scientific Reports 7:6119 (2017)",
        ),
        ChannelPreset(
            name="epcr-taq",
            about="error-prone PCR, Taq (--noise.scale)",
            source="BMC Biology 5:29 (2007)",
            substitution=0.01 * sum(TAQ_SHARES.values()),
            deletion=0.01 * (1.0 - sum(TAQ_SHARES.values())),
            shares=TAQ_SHARES,
            note="the source tells shares of 9 % frameshifts, taken as deletions, and substitutions; the protocol sets "
            "the rate: one in 100 here, --noise.scale 10 makes it one in 10",
        ),
        ChannelPreset(
            name="storage-average",
            about="DNA storage pools, average",
            source=_HECKEL,
            substitution=0.0048,
            insertion=0.0011,
            deletion=0.0078,
        ),
        ChannelPreset(
            name="storage-erlich",
            about="DNA storage pool of Erlich",
            source=_HECKEL,
            substitution=0.003,
            insertion=0.002,
            deletion=0.002,
        ),
        ChannelPreset(
            name="storage-goldman",
            about="DNA storage pool of Goldman",
            source=_HECKEL,
            substitution=0.001,
            insertion=0.0005,
            deletion=0.005,
        ),
        ChannelPreset(
            name="nnk",
            about="a degenerate codon: a library",
            source="genetic code",
            residues=NNK,
        ),
    )
}


def channel_preset(name: str) -> ChannelPreset:
    """The channel of a name; an unknown one gets the nearest suggested."""
    one_of("noise.preset", name, CHANNELS)
    return CHANNELS[name]


def substitution_rows(preset: ChannelPreset, letters: str = "ACGT") -> dict[str, dict[str, float]]:
    """Probability of each other letter, by the letter intended; letters of RNA have U for T.

    Shares are of all errors in DNA whose letters are equally frequent.
    """
    named = {letter: letter.replace("U", "T") for letter in letters}
    if set(named.values()) != set("ACGT"):
        raise ValueError(f"noise.preset {preset.name!r} is of the letters ACGT or ACGU, and the task has {letters}")
    if preset.residues:
        raise ValueError(f"noise.preset {preset.name!r} is a library, not a channel of orders: choose another preset")
    rate = preset.substitution + preset.insertion + preset.deletion
    even = dict.fromkeys((x + y for x in "ACGT" for y in "ACGT"), preset.substitution / 3.0)
    chances = {pair: 4.0 * rate * share for pair, share in preset.shares.items()} or even
    return {a: {k: chances[x + y] for k, y in named.items() if k != a} for a, x in named.items()}
