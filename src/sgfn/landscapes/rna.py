"""RNA scored by ViennaRNA: how stably a sequence folds, or how strongly it binds to a target.

Energies are minimum free energies at 37 degrees (kcal/mol, lower is stabler) under ViennaRNA's default parameters.

References: Lorenz et al. (2011), ViennaRNA Package 2.0, Algorithms Mol. Biol. 6:26. Mathews et al. (2004),
Incorporating chemical modification constraints into a dynamic programming algorithm for prediction of RNA secondary
structure, PNAS 101:7287 (the parameters). Sinai et al. (2020), AdaLead, arXiv:2010.02141 (FLEXS: binding landscapes).
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any, Literal

from sgfn.landscapes.function import FunctionLandscape, letters
from sgfn.noise import Noise

ALPHABET = "ACGU"
SHORTEST = 8
"""Least length at which an RNA folds: a loop of four letters and a stem of two pairs."""
TARGETS = {
    "rna1": "GAACGAGGCACAUUCCGGCUCGCCCGGCCCAUGUGAGCAUGGGCCGGACCCCGUCCGCGCGGGGCCCCCGCGCGGACGGGGGCGAGCCGGAAUGUGCCUC",
    "rna2": "GAGGCACAUUCCGGCUCGCCCCCGUCCGCGCGGGGGCCCCGCGCGGACGGGGUCCGGCCCGCGCGGGGCCCCCGCGCGGGAGCCGGAAUGUGCCUCGUUC",
    "rna3": "CCGGUGAUACUGUUAGUGGUCACGGUGCAUUUAUAGCGCUAAAGUACAGUCUUCCCCUGUUGAACGGCGCCAUUGCAUACAGGGCCAGCCGCGUAACGCC",
    "rna4": "UAAGAGAGCGUAAAAAUAGAGAUAUGUUCUUGGGUCAGGGCUAUGCGUACCCCAUGAGAGUAAAUCAUACCCCCAAUGGGCUUCGGCGGAAAUUCACUUA",
}
"""The four published binding targets of 100 letters (FLEXS 0.2.8, Apache-2.0)."""


class Rna(FunctionLandscape):
    r"""Stability of an RNA over a scale, $R(x) = \max(0, -E(x)) / scale$.

    `fold`: E is the minimum free energy of x; the scale is that of the stablest RNA of the length, so that the highest
    score is 1. `bind`: E is the energy of the duplex of x and the target without pairs inside either; the scale is the
    one of FLEXS, $-E(\text{reverse complement of the target}) L / |target|$, which a strong stretch can exceed.
    `maximum` is the score of `best`, the best perfect hairpin or helix: equal to the true optimum wherever that was
    computed by enumeration.
    """

    def __init__(
        self,
        *,
        length: int,
        mode: Literal["fold", "bind"] = "fold",
        target: str = "rna1",
        scale: float | None = None,
        mode_level: float | None = None,
        workers: int = 1,
    ) -> None:
        vienna()
        target = checked_target(target) if mode == "bind" else ""
        self.length, self.mode, self.target = length, mode, target
        energies = ENERGIES[mode](target)
        self.best = best_binder(target, length) if mode == "bind" else best_hairpin(length)
        self.scale = checked_scale(scale, target, length, -energies([self.best])[0])
        function = partial(stability, energies=energies, scale=self.scale)
        maximum = function([self.best])[0]
        level = 0.9 * maximum if mode_level is None else mode_level
        super().__init__(function, letters(ALPHABET), maximum, level, name=f"rna ({mode})", workers=workers)

    def facts(self, beta: float, noise: Noise) -> dict[str, Any]:
        """The best perfect hairpin or helix, under `optimum`."""
        return {"optimum": self.best}


def vienna() -> Any:
    """Import and return ViennaRNA's module; a ValueError says how to install it."""
    try:
        import RNA  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError("task 'rna' needs ViennaRNA: install it with pip install 'sgfn[rna]'") from error
    return RNA


def fold_energies(texts: list[str]) -> list[float]:
    """Minimum free energy of each sequence, as RNAfold prints it."""
    rna = vienna()
    return [round(rna.fold(text)[1], 2) for text in texts]  # energies are whole hundredths, in single precision


def bind_energies(texts: list[str], *, target: str) -> list[float]:
    """Energy of each sequence's best duplex with the target, as RNAduplex prints it."""
    rna = vienna()
    return [round(rna.duplexfold(target, text).energy, 2) for text in texts]


def stability(texts: list[str], *, energies: Callable[[list[str]], list[float]], scale: float) -> list[float]:
    """How stable each sequence is, in units of a scale."""
    return [max(0.0, -energy) / scale for energy in energies(texts)]


ENERGIES: dict[str, Callable[[str], Callable[[list[str]], list[float]]]] = {
    "fold": lambda target: fold_energies,
    "bind": lambda target: partial(bind_energies, target=target),
}


def checked_target(target: str) -> str:
    """Sequence of a target that is given by its letters or by its name."""
    sequence = TARGETS.get(target.lower(), target)
    wrong = sorted(set(sequence) - set(ALPHABET))
    if wrong or not sequence:
        names = ", ".join(TARGETS)
        raise ValueError(f"target {target!r}: letters {wrong} are not in {ALPHABET}; give an RNA or one of {names}")
    return sequence


def checked_scale(scale: float | None, target: str, length: int, best: float) -> float:
    """The given scale, or the default of the mode; `best` is the highest stability of any RNA of the length."""
    if best <= 0.0:
        what = f"binds to {target}" if target else "folds"
        raise ValueError(f"length {length}: no RNA that short {what}; give a greater length")
    if scale is None:
        scale = -bind_energies([complement(target)], target=target)[0] * length / len(target) if target else best
        if scale <= 0.0:
            raise ValueError(f"target {target!r}: even its complement does not bind; give a longer target or a scale")
    if not scale > 0.0:
        raise ValueError(f"scale must be above 0, got {scale}")
    return scale


def complement(sequence: str) -> str:
    """Reverse complement of a sequence: the strand that pairs with every letter of it.

    >>> complement("GGAU")
    'AUCC'
    """
    return sequence[::-1].translate(str.maketrans("ACGU", "UGCA"))


# Optima: nearest-neighbour energies are read off small structures, and added up by dynamic programming.

PAIRS = ("AU", "UA", "GC", "CG", "GU", "UG")
PARTNERS = {letter: [pair[1] for pair in PAIRS if pair[0] == letter] for letter in ALPHABET}


@cache
def structure_energy(sequence: str, structure: str) -> int:
    """Free energy of a sequence in a given structure, in hundredths of kcal/mol."""
    return round(100 * vienna().eval_structure_simple(sequence, structure))


@cache
def end_energy(a: str, b: str, before: str = "", after: str = "") -> int:
    """Energy of a helix end with the pair ab, with its unpaired neighbours before a and after b."""
    dots = "." * len(before) + "(&)" + "." * len(after)
    bare = structure_energy(
        f"{a}&{b}", "(&)"
    )  # two ends and the energy of bringing two strands together; GC ends cost nothing
    return (bare - structure_energy("G&C", "(&)")) // 2 + structure_energy(f"{before}{a}&{b}{after}", dots) - bare


@cache
def stack_energy(a: str, b: str, c: str, d: str) -> int:
    """Energy of the pair cd stacked on the pair ab."""
    ends = end_energy(a, b) + end_energy(c, d) + structure_energy("G&C", "(&)")
    return structure_energy(f"{a}{c}&{d}{b}", "((&))") - ends


@cache
def loop_energy(a: str, b: str, size: int) -> tuple[int, str]:
    """Energy and letters of the best hairpin loop closed by ab; of 5 and 6 letters, only the first and last matter."""
    inner = product(ALPHABET, repeat=size) if size < 5 else product(ALPHABET, *["A"] * (size - 2), ALPHABET)
    loops = map("".join, inner)
    return min((structure_energy(f"{a}{loop}{b}", f"({'.' * size})") - end_energy(a, b), loop) for loop in loops)


@cache
def best_hairpin(length: int) -> str:
    """The stablest perfect hairpin: a stem, a loop of 3 to 6, at most one unpaired letter on either side."""
    if length < SHORTEST:
        raise ValueError(f"length must be {SHORTEST} or more, got {length}: no shorter RNA folds")
    found = []
    for before, after in product(["", *ALPHABET], repeat=2):
        stems = {(a, b): (end_energy(a, b, before, after), before + a, b + after) for a, b in PAIRS}
        for paired in range(2, length - len(before + after) - 2, 2):
            size = length - len(before + after) - paired
            if 3 <= size <= 6:
                found += [_closed(stem, *loop_energy(a, b, size)) for (a, b), stem in stems.items()]
            stems = {(c, d): min(_stacked(stems, c, d)) for c, d in PAIRS}
    return min(found)[1]


def _closed(stem: tuple[int, str, str], energy: int, loop: str) -> tuple[int, str]:
    return stem[0] + energy, stem[1] + loop + stem[2]


def _stacked(stems: dict[tuple[str, str], tuple[int, str, str]], c: str, d: str) -> list[tuple[int, str, str]]:
    return [(e + stack_energy(a, b, c, d), left + c, d + right) for (a, b), (e, left, right) in stems.items()]


@cache
def best_binder(target: str, length: int) -> str:
    """The strand with the strongest gapless helix on the target; GU pairs are allowed, as some stack better."""
    if length < 1:
        raise ValueError(f"length must be 1 or more, got {length}")
    found = []
    for start, loose in product(range(len(target)), (False, True)):
        before, first = target[:start][-1:], target[start]
        beside = ALPHABET if loose else [""]
        helix = {b: min((end_energy(first, b, before, y), b + y) for y in beside) for b in PARTNERS[first]}
        for position in range(start, min(len(target), start + length - loose)):
            if position > start:
                a, c = target[position - 1 : position + 1]
                helix = {d: min(_grown(helix, a, c, d)) for d in PARTNERS[c]}
            room = length - loose - (position - start + 1)
            found += [_finished(target, position, b, helix[b], room, loose) for b in helix]
    return min(found)[1]


def _grown(helix: dict[str, tuple[int, str]], a: str, c: str, d: str) -> list[tuple[int, str]]:
    return [(energy + stack_energy(a, b, c, d), d + strand) for b, (energy, strand) in helix.items()]


def _finished(target: str, position: int, b: str, helix: tuple[int, str], room: int, loose: bool) -> tuple[int, str]:
    """Energy and letters of a strand whose helix ends at a position, filled up to its length.

    Letters left over go outside the helix; only the one beside it has an energy, and it may be missing if there is one
    at the other end.
    """
    after = target[position + 1 : position + 2]
    beside = [*ALPHABET[: 4 * bool(room)], *[""][: loose or not room]]
    energy, y = min((end_energy(b, target[position], y, after), y) for y in beside)
    fill = "A" * (room - len(y))
    return helix[0] + energy, fill + y + helix[1] if y else helix[1] + fill
