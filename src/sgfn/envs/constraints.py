"""Constraints on sequences: what may be ordered or built, compiled into one automaton over prefixes (method, 14)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations

import numpy as np

from sgfn.config.checks import in_range, shorten, whole_number
from sgfn.config.reads import listed
from sgfn.envs.automaton import Automaton
from sgfn.envs.constraint_parts import (
    Part,
    edits,
    forbidden,
    longest_run,
    net_charge,
    positions,
    product,
    share,
    substitutions,
)

IUPAC = {
    "R": "AG",
    "Y": "CT",
    "S": "CG",
    "W": "AT",
    "K": "GT",
    "M": "AC",
    "B": "CGT",
    "D": "AGT",
    "H": "ACT",
    "V": "ACG",
    "N": "ACGT",
}
"""Letters of DNA that stand for several (Cornish-Bowden 1985, Nucleic Acids Research 13); in RNA, U stands for T."""

NUCLEOTIDES = frozenset("ACGTUN")
"""Letters of alphabets that have a share of G and C; in proteins they are glycine and cysteine."""

CHARGES = {"K": 1, "R": 1, "D": -1, "E": -1}
"""Charges of amino acids' side chains at pH 7 in whole numbers; histidine is mostly neutral there, and the ends of a
chain are not counted."""


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What sequences must satisfy.

    >>> rules = Constraints(forbid=("GAATTC",), gc=(0.4, 0.6), max_run=2).compile("ACGT", 8, 8)
    >>> rules.accepts("ACGTACGT"), rules.accepts("AAACGTCG")
    (True, False)
    """

    forbid: tuple[str, ...] = ()
    """Motifs that may stand nowhere; letters of IUPAC (or `.` for any) may stand in them."""
    gc: tuple[float, float] | None = None
    """Least and greatest share of G and C."""
    charge: tuple[int, int] | None = None
    """Least and greatest net charge of a peptide: K and R count 1, D and E count -1."""
    max_run: int | None = None
    """Most times that one letter may stand in a row."""
    pattern: str | None = None
    """What each position may hold, from the first to the last: letters, letters of IUPAC, `.` (or X) for any."""
    parent: str | None = None
    """A sequence that must be kept but for `max_mutations`."""
    max_mutations: int | None = None
    """Most differences from the parent: substitutions where all sequences are as long as it, else edits of any kind."""
    min_length: int | None = None
    """Fewest letters."""
    max_length: int | None = None
    """Most letters."""

    def __post_init__(self) -> None:
        if isinstance(self.forbid, str) or not all(isinstance(motif, str) and motif for motif in self.forbid):
            raise ValueError(f"--forbid must be motifs of one or more letters, got {self.forbid!r}")
        object.__setattr__(self, "forbid", tuple(self.forbid))
        if self.gc is not None:
            _check_share(self.gc)
        if self.charge is not None:
            _check_charge(self.charge)
        for name, least in (("max_run", 1), ("max_mutations", 0), ("min_length", 1), ("max_length", 1)):
            if (value := getattr(self, name)) is not None:
                whole_number(_flag(name), value, least)
        if (self.parent is None) != (self.max_mutations is None):
            raise ValueError("--parent and --max-mutations are given together: add the one that is missing")
        for name in ("pattern", "parent"):
            if getattr(self, name) == "":
                raise ValueError(f"{_flag(name)} is empty: leave it out, or give at least one letter")
        if self.min_length is not None and self.max_length is not None:
            in_range("--min-length", self.min_length, 1, self.max_length)

    def __bool__(self) -> bool:
        """Whether anything is constrained."""
        return any(value not in (None, ()) for value in vars(self).values())

    @property
    def told(self) -> str:
        """The constraints as one would type them.

        >>> Constraints(gc=(0.4, 0.6), forbid=("GAATTC", "GGTCTC")).told
        '--forbid GAATTC,GGTCTC, --gc 0.4:0.6'
        """
        return ", ".join(atom.told for atom in self._atoms())

    def compile(self, alphabet: str, min_length: int, max_length: int) -> Automaton:
        """The automaton over a task's letters and lengths; a set that nothing satisfies is refused, with the smallest
        part of it that cannot be satisfied."""
        made = self._compiled(alphabet, min_length, max_length)
        if made.states == 1:
            raise ValueError(self._conflict(alphabet, min_length, max_length))
        made.told = self.told
        return made

    def _compiled(self, alphabet: str, min_length: int, max_length: int) -> Automaton:
        shortest, longest = max(min_length, self.min_length or 1), min(max_length, self.max_length or max_length)
        accepted = (shortest, longest) if shortest <= longest else (1, 0)
        parts = list(self._parts(alphabet, *accepted))
        return product(parts, alphabet, (min_length, max_length), accepted)

    def _parts(self, alphabet: str, shortest: int, longest: int) -> Iterator[Part]:
        vocab = len(alphabet)
        if self.forbid:
            motifs = [[frozenset(_letters(c, alphabet, "forbid", motif)) for c in motif] for motif in self.forbid]
            yield forbidden(motifs, vocab)
        if self.gc is not None:
            if not {"G", "C"} <= {*alphabet} <= NUCLEOTIDES:
                whose = f"of DNA or RNA, and the alphabet is {shorten(alphabet)}"
                raise ValueError(f"--gc counts the letters G and C {whose}: leave it out")
            yield share(np.array([letter in "GC" for letter in alphabet]), *self.gc, longest)
        if self.charge is not None:
            if not {*CHARGES} <= {*alphabet}:
                whose = f"of proteins, and the alphabet is {shorten(alphabet)}"
                raise ValueError(f"--charge counts the letters K, R, D and E {whose}: leave it out")
            yield net_charge(np.array([CHARGES.get(letter, 0) for letter in alphabet]), *self.charge, longest)
        if self.max_run is not None:
            yield longest_run(min(self.max_run, max(longest, 1)), vocab)
        if self.pattern is not None:
            allowed = np.zeros((len(self.pattern), vocab), dtype=bool)
            for place, letter in enumerate(self.pattern):
                allowed[place, _letters(letter, alphabet, "pattern", self.pattern)] = True
            yield positions(allowed)
        if self.parent is not None and self.max_mutations is not None:
            parent = [_plain(letter, alphabet, self.parent) for letter in self.parent]
            same = shortest == longest == len(parent)
            yield (substitutions if same else edits)(parent, min(self.max_mutations, len(parent) + longest), vocab)

    # which constraints are in conflict

    def _atoms(self) -> "Iterator[_Atom]":
        """The constraints one by one, those on lengths and those on a parent together."""
        if self.forbid:
            yield _Atom(f"--forbid {','.join(self.forbid)}", ("forbid",))
        if self.gc is not None:
            yield _Atom(f"--gc {self.gc[0]:g}:{self.gc[1]:g}", ("gc",))
        if self.charge is not None:
            yield _Atom(f"--charge {self.charge[0]}:{self.charge[1]}", ("charge",))
        if self.max_run is not None:
            yield _Atom(f"--max-run {self.max_run}", ("max_run",))
        if self.pattern is not None:
            yield _Atom(f"--pattern {shorten(self.pattern)}", ("pattern",))
        if self.parent is not None:
            told = f"--max-mutations {self.max_mutations} from the parent {shorten(self.parent)}"
            yield _Atom(told, ("parent", "max_mutations"))
        lengths = [name for name in ("min_length", "max_length") if getattr(self, name) is not None]
        if lengths:
            yield _Atom(" ".join(f"{_flag(name)} {getattr(self, name)}" for name in lengths), tuple(lengths))

    def _only(self, atoms: "Sequence[_Atom]") -> "Constraints":
        kept = {name for atom in atoms for name in atom.fields}
        return Constraints(**{part.name: getattr(self, part.name) for part in fields(self) if part.name in kept})

    def _conflict(self, alphabet: str, min_length: int, max_length: int) -> str:
        """One line that names the smallest set of constraints that nothing satisfies: one, two or more of them."""

        def empty(rules: Constraints) -> bool:
            return rules._compiled(alphabet, min_length, max_length).states == 1

        atoms = list(self._atoms())
        sets = (chosen for size in range(1, len(atoms) + 1) for chosen in combinations(atoms, size))
        chosen = next(chosen for chosen in sets if empty(self._only(chosen)))
        names = [self._one_motif(chosen, empty) if atom.fields == ("forbid",) else atom.told for atom in chosen]
        letters = f"{min_length}" if min_length == max_length else f"{min_length} to {max_length}"
        if chosen[0].fields == ("pattern",) and self.pattern and not min_length <= len(self.pattern) <= max_length:
            has = f"{names[0]} has {len(self.pattern)} letters, sequences have {letters}"
            return f"{has}: write a letter for each position, . where any may stand"
        if len(names) == 1:
            return f"no sequence of {letters} letters over {shorten(alphabet)} satisfies {names[0]}: relax it"
        who = "both" if len(names) == 2 else "all of them"
        return f"{listed(names, 'and')} are in conflict: no sequence of {letters} letters satisfies {who}; relax one"

    def _one_motif(self, chosen: "Sequence[_Atom]", empty: "Callable[[Constraints], bool]") -> str:
        """The one motif that is in conflict with the other constraints chosen, or all where no single one is."""
        for motif in self.forbid if len(self.forbid) > 1 else ():
            if empty(replace(self._only(chosen), forbid=(motif,))):
                return f"--forbid {motif}"
        return f"--forbid {','.join(self.forbid)}"


@dataclass(frozen=True)
class _Atom:
    """A constraint as one would type it, and the fields that it is made of."""

    told: str
    fields: tuple[str, ...]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_share(gc: tuple[float, float]) -> None:
    if len(gc) != 2 or not 0.0 <= gc[0] <= gc[1] <= 1.0:
        raise ValueError(f"--gc must be two shares LOW:HIGH with 0 <= LOW <= HIGH <= 1, got {gc}")


def _check_charge(charge: tuple[int, int]) -> None:
    if len(charge) != 2 or not all(isinstance(part, int) for part in charge) or charge[0] > charge[1]:
        raise ValueError(f"--charge must be two whole numbers LOW:HIGH with LOW <= HIGH, got {charge}")


def _letters(letter: str, alphabet: str, name: str, text: str) -> list[int]:
    """The numbers of the letters that one letter of a pattern stands for."""
    for form in (letter, letter.upper()):
        if form in alphabet:
            return [alphabet.index(form)]
    wide = letter.upper()
    if {*alphabet} in ({*"ACGT"}, {*"ACGU"}) and wide in IUPAC:
        bases = IUPAC[wide] if "T" in alphabet else IUPAC[wide].replace("T", "U")
        return [alphabet.index(base) for base in bases]
    if wide in (".", "X"):
        return list(range(len(alphabet)))
    known = "a letter of IUPAC or ." if {*alphabet} in ({*"ACGT"}, {*"ACGU"}) else ". or X for any"
    what = f"{letter!r} is no letter of {shorten(alphabet)}, nor {known}"
    raise ValueError(f"--{name} {shorten(text)}: {what}")


def _plain(letter: str, alphabet: str, text: str) -> int:
    """The number of a letter of the parent."""
    for form in (letter, letter.upper()):
        if form in alphabet:
            return alphabet.index(form)
    raise ValueError(f"--parent {shorten(text)}: {letter!r} is no letter of {shorten(alphabet)}")
