"""Components of the configuration that belong to single tasks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from sgfn.config.checks import in_range, one_of, quoted, require

Scale = Literal["none", "minmax"]
Duplicates = Literal["error", "mean", "max"]
MotifScore = Literal["sum", "best"]
BitsDistance = Literal["edit", "hamming"]
GridShape = Literal["corners", "deceptive"]
RnaMode = Literal["bind", "fold"]
TableUnseen = Literal["auto", "proxy", "nearest", "lowest"]
ScoreScale = Literal["none", "log", "rank"]
OnError = Literal["stop", "retry", "skip"]
LONGEST = 512
"""Letters of the longest sequence a task may have."""
MOST_FORBIDDEN = 8192
"""Letters of all motifs that may stand nowhere."""


@dataclass(frozen=True, kw_only=True)
class ConstraintsConfig:
    """What sequences must satisfy, in every task of sequences; each flag may be given without `constraints.`."""

    forbid: str | None = None
    """Motifs that may stand nowhere, with commas between them: GAATTC,GGTCTC; letters of IUPAC too."""
    gc: str | None = None
    """Least and greatest share of G and C, as 0.4:0.6."""
    charge: str | None = None
    """Least and greatest net charge of a peptide, as 2:6; K and R count 1, D and E count -1."""
    max_run: int | None = None
    """Most times that one letter may stand in a row."""
    pattern: str | None = None
    """What each position may hold, from the first to the last, as NNNATGNNN: letters, those of IUPAC, `.` for any."""
    parent: str | None = None
    """A sequence that is kept but for --max-mutations; a file that holds it on the command line."""
    max_mutations: int | None = None
    """Most differences from the parent."""
    min_length: int | None = None
    """Fewest letters, where the task has several lengths."""
    max_length: int | None = None
    """Most letters."""

    def __post_init__(self) -> None:
        if self.gc is not None:
            gc_range(self.gc)
        if self.charge is not None:
            charge_range(self.charge)
        for name, least in (("max_run", 1), ("max_mutations", 0), ("min_length", 1), ("max_length", 1)):
            if (value := getattr(self, name)) is not None:
                in_range(f"constraints.{name}", value, least, LONGEST)
        for name in ("pattern", "parent"):
            if (text := getattr(self, name)) is not None:
                fits = 1 <= len(text) <= LONGEST
                require(fits, f"constraints.{name}", f"have 1 to {LONGEST} letters", f"{len(text):,}")
        if self.forbid is not None:
            self._check_motifs(self.forbid)

    def _check_motifs(self, text: str) -> None:
        """Raise where a motif is empty, or all together are more than an automaton should be made of."""
        wanted = "be motifs with commas between them, such as GAATTC,GGTCTC"
        require(all(motif.strip() for motif in text.split(",")), "constraints.forbid", wanted, quoted(text))
        require(
            len(text) <= MOST_FORBIDDEN,
            "constraints.forbid",
            f"have {MOST_FORBIDDEN:,} letters at most",
            f"{len(text):,}",
        )


def gc_range(text: str) -> tuple[float, float]:
    """Least and greatest share of G and C, from LOW:HIGH.

    >>> gc_range("0.4:0.6")
    (0.4, 0.6)
    """
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0.0 <= low <= high <= 1.0:
        raise ValueError(f"constraints.gc must be LOW:HIGH with 0 <= LOW <= HIGH <= 1, such as 0.4:0.6, got {text!r}")
    return low, high


def charge_range(text: str) -> tuple[int, int]:
    """Least and greatest net charge, from LOW:HIGH.

    >>> charge_range("-1:4")
    (-1, 4)
    """
    try:
        low, high = (int(part) for part in text.split(":"))
    except ValueError:
        low, high = 1, 0
    if not -LONGEST <= low <= high <= LONGEST:
        wanted = f"LOW:HIGH, whole numbers with -{LONGEST} <= LOW <= HIGH <= {LONGEST}, such as 2:6 (--charge=-1:4)"
        raise ValueError(f"constraints.charge must be {wanted}, got {text!r}")
    return low, high


@dataclass(frozen=True, kw_only=True)
class GridConfig:
    """Size and reward of the `grid` task."""

    ndim: int = 2
    """Number of coordinates."""
    side: int = 8
    """Cells along each coordinate."""
    r0: float = 1e-3
    """Reward of the plain between the corners; the smaller, the harder they are to find. Not below reward.minimum."""
    shape: GridShape = "corners"
    """`corners`: a ring and a peak in each corner (published); `deceptive`: peaks there, and a lure in the middle."""

    def __post_init__(self) -> None:
        in_range("grid.r0", self.r0, 0.0, 1.0)
        one_of("grid.shape", self.shape, get_args(GridShape))
        in_range("grid.ndim", self.ndim, 1, 16)
        in_range("grid.side", self.side, 2, 4096)


@dataclass(frozen=True, kw_only=True)
class MotifConfig:
    """The `motif` task: DNA that a transcription factor of JASPAR CORE binds; `motif-NAME` is short for the factor."""

    factor: str = "CTCF"
    """Factor (CTCF) or matrix id (MA0139)."""
    length: int = 30
    """Letters of the DNA."""
    score: MotifScore = "sum"
    """`sum`: mean over all places, exact at any length; `best`: the best place."""

    def __post_init__(self) -> None:
        in_range("motif.length", self.length, 1, LONGEST)
        one_of("motif.score", self.score, get_args(MotifScore))


@dataclass(frozen=True, kw_only=True)
class BitsConfig:
    """The `bits` task: bit strings near a hidden set of modes."""

    length: int = 120
    """Bits, a multiple of 8."""
    k: int = 4
    """Bits written per step; divides the length."""
    modes: int = 60
    """Size of the hidden set."""
    seed: int = 0
    """Seed of the hidden set."""
    distance: BitsDistance = "edit"
    """How far a string is from a mode: edits (published), or bits that differ."""

    def __post_init__(self) -> None:
        in_range("bits.length", self.length, 8, LONGEST)
        in_range("bits.k", self.k, 1, 8)
        in_range("bits.modes", self.modes, 1, 10000)
        in_range("bits.seed", self.seed, 0, 2**31 - 1)
        one_of("bits.distance", self.distance, get_args(BitsDistance))


@dataclass(frozen=True, kw_only=True)
class EhrlichConfig:
    """The `ehrlich` task: motifs with spacings and forbidden neighbours."""

    vocab: int = 20
    """Letters of the alphabet."""
    length: int = 15
    """Letters of a sequence."""
    motifs: int = 2
    """Motifs to be placed."""
    motif_length: int = 4
    """Letters of each motif."""
    quantisation: int = 4
    """Steps in which a motif's match counts; divides the motif's length."""
    seed: int = 0
    """Seed of motifs, spacings and forbidden neighbours."""

    def __post_init__(self) -> None:
        in_range("ehrlich.vocab", self.vocab, 3, 62)
        in_range("ehrlich.length", self.length, 1, LONGEST)
        in_range("ehrlich.motifs", self.motifs, 1, LONGEST)
        in_range("ehrlich.motif_length", self.motif_length, 1, LONGEST)
        in_range("ehrlich.quantisation", self.quantisation, 1, LONGEST)
        in_range("ehrlich.seed", self.seed, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True)
class RnaConfig:
    """The `rna` task: energies by ViennaRNA (extra `sgfn[rna]`)."""

    mode: RnaMode = "bind"
    """`bind`: duplex with the target; `fold`: the sequence's own structure."""
    length: int = 14
    """Letters of the RNA."""
    target: str = "rna1"
    """What to bind: rna1 to rna4 (published), or a sequence."""
    workers: int = 1
    """Processes that compute energies, from 2 on while training goes on with other batches: see --ahead."""

    def __post_init__(self) -> None:
        one_of("rna.mode", self.mode, get_args(RnaMode))
        in_range("rna.length", self.length, 1, LONGEST)
        in_range("rna.workers", self.workers, 1, 256)


@dataclass(frozen=True, kw_only=True)
class TableConfig:
    """The `table` task: your own measurements, a CSV of sequences and scores."""

    file: Path | None = None
    """Table (CSV, TSV, Parquet or Excel) with a header and a row per measured sequence, or FASTA with score=NUMBER."""
    alphabet: str = "dna"
    """dna, rna, protein, or the letters themselves."""
    sequence_column: str = "sequence"
    """Column that holds the sequence."""
    score_column: str = "score"
    """Column that holds the score, higher is better."""
    sd_column: str | None = None
    """Column that holds the standard deviation of each score, where there is one."""
    minimise: bool = False
    """Lower scores are better; needs `scale` minmax or `transform` rank, as rewards are zero or above."""
    transform: ScoreScale = "none"
    """`log` or `rank` of the scores in place of the scores."""
    scale: Scale = "none"
    """`minmax` maps the scores to 0..1; needed where some are negative."""
    duplicates: Duplicates = "error"
    """What a sequence measured twice gets."""
    unseen: TableUnseen = "auto"
    """Score of what was not measured: by a fitted `proxy`, the `nearest` measured times decay per letter, or the
    `lowest` of the table; `auto` is proxy from 20 sequences on, else nearest."""
    decay: float = 0.5
    """Factor per letter that differs from the nearest measured sequence."""

    def __post_init__(self) -> None:
        one_of("table.scale", self.scale, get_args(Scale))
        one_of("table.duplicates", self.duplicates, get_args(Duplicates))
        one_of("table.unseen", self.unseen, get_args(TableUnseen))
        one_of("table.transform", self.transform, get_args(ScoreScale))
        in_range("table.decay", self.decay, 0.0, 1.0)

    @property
    def transformed(self) -> bool:
        """Whether what is maximised is something else than the scores of the table."""
        return self.minimise or self.transform != "none" or self.scale != "none"


@dataclass(frozen=True, kw_only=True)
class ProxyConfig:
    """What predicts the scores of sequences that were not measured."""

    kind: str = "auto"
    """ensemble, convolution, ridge, gp, `module:function` of yours, or `auto`: the best in cross-validation."""
    folds: int = 5
    """Parts of cross-validation."""
    seed: int = 0
    """Seed of its fit, apart from that of training: runs of several seeds are scored alike."""
    file: Path | None = None
    """A proxy that was fitted before (.safetensors), which is taken as it is; a run keeps its own."""

    def __post_init__(self) -> None:
        in_range("proxy.folds", self.folds, 2, 100)
        in_range("proxy.seed", self.seed, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True)
class CallableConfig:
    """The `callable` task: any Python function from a list of strings to as many scores of zero or above."""

    function: str | None = None
    """`module:function`, looked for in the current folder too."""
    alphabet: str = "dna"
    """dna, rna, protein, or the letters themselves."""
    length: int = 8
    """Letters of a string, the most there may be."""
    min_length: int | None = None
    """The fewest there may be; by default all strings have the full length."""
    maximum: float | None = None
    """Highest score there can be, where it is known."""
    mode_level: float | None = None
    """Score from which on a string counts as a mode; by default 0.9 of the maximum, none where that is not known."""
    on_error: OnError = "stop"
    """What a call that fails or gives no number does: `stop` the run; `retry`, then stop; `skip`: retry, then score 0.
    Tracebacks are in reward.log of the run folder."""
    retries: int = 2
    """How often a failed call is repeated."""
    keep_scores: bool = False
    """Keep scores in scores.jsonl of the run folder, so that a resumed run need not ask for them again."""
    workers: int = 1
    """Processes that call the function, from 2 on while training goes on with other batches: see --ahead. With
    --cluster they are actors of a Ray cluster."""
    timeout: float = 0.0
    """Seconds after which a call of a worker is ended, with its worker, and counts as failed; 0 is any time."""

    def __post_init__(self) -> None:
        in_range("callable.length", self.length, 1, LONGEST)
        one_of("callable.on_error", self.on_error, get_args(OnError))
        in_range("callable.retries", self.retries, 0, 100)
        in_range("callable.workers", self.workers, 1, 4096)
        in_range("callable.timeout", self.timeout, 0.0, 1e7)
        if self.min_length is not None:
            in_range("callable.min_length", self.min_length, 1, self.length)
        for name in ("maximum", "mode_level"):
            if (value := getattr(self, name)) is not None:
                in_range(f"callable.{name}", value, 0.0)
