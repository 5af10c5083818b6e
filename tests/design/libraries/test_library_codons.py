"""Laws of degenerate codons against plain codons counted by hand, named libraries, supplies, and what is refused."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.design.libraries.codons import (
    LETTERS,
    RESIDUES,
    Menu,
    Supply,
    all_codons,
    codon_table,
    degeneracy,
    entropy,
    parse_shares,
    spell_shares,
    standard_menu,
)
from sgfn.design.libraries.library import parse_library
from sgfn.design.libraries.supplies import read_supply

codons = st.text("".join(LETTERS), min_size=3, max_size=3)


def by_hand(codon: str) -> np.ndarray:
    plain = ["".join(bases) for bases in product(*(LETTERS[letter] for letter in codon))]
    found = np.zeros(21)
    for one in plain:
        found[RESIDUES.index(codon_table()[one])] += 1 / len(plain)
    return found


@given(codons)
@settings(max_examples=40, deadline=None)
def test_the_law_of_a_codon_counts_its_plain_codons(codon: str) -> None:
    law = Supply().codon_law(codon)
    np.testing.assert_allclose(law, by_hand(codon), atol=1e-12)
    assert degeneracy(codon) == np.prod([len(LETTERS[letter]) for letter in codon])


def test_there_are_1482_laws() -> None:
    assert len(all_codons()) == 15**3 == 3375
    menu = standard_menu()
    assert len(menu.codons) == len(menu.laws) == 1482
    np.testing.assert_allclose(menu.laws.sum(1), 1.0)
    assert len(Menu.of(["GCA", "GCC", "GCT", "TGG"]).codons) == 2  # alanine once
    biased = Supply(rates=np.array([0.4, 0.1, 0.2, 0.3]))
    assert len(Menu.of(["RCA", "GCN", "NNK", "NNS"], biased).codons) == 4
    assert len(Menu.of(["NNK", "NNS"]).codons) == 1  # equal in equal shares alone


def test_laws_of_named_libraries() -> None:
    nnk = Supply().codon_law("NNK") * 32
    counts = {residue: round(float(nnk[RESIDUES.index(residue)])) for residue in RESIDUES}
    assert {r for r in counts if counts[r] == 3} == {*"LRS"}
    assert {r for r in counts if counts[r] == 2} == {*"AGPTV"}
    assert counts["*"] == 1
    mixed = parse_library("22c", 1).laws[0] * 22
    np.testing.assert_allclose(sorted(mixed), [0] + [1] * 18 + [2] * 2, atol=1e-12)
    assert {RESIDUES[k] for k in np.flatnonzero(mixed > 1.5)} == {*"LV"}
    assert abs(float(entropy(Supply().codon_law("NDT"))) - np.log(12)) < 1e-12


@given(st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(lambda parts: sum(parts) > 0))
def test_shares_are_read_as_they_are_spelled(parts: list[int]) -> None:
    shares = np.array(parts) / sum(parts)
    np.testing.assert_allclose(parse_shares(spell_shares(shares)), shares, atol=1e-4)


def test_percentages_make_a_law() -> None:
    law = Supply().codon_law("[G75T25]GG")
    assert law[RESIDUES.index("G")] == 0.75
    assert law[RESIDUES.index("W")] == 0.25


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("NNX", "'X' is no letter of IUPAC"),
        ("NN", "is no codon"),
        ("NNKK", "is no codon"),
        ("", "is no codon"),
        ("NN[A50]", "sum 100"),
        ("NN[A50B50]", "sum 100"),
        ("NNK*0", "no weight above 0"),
        ("NNK*x", "no weight above 0"),
        ("NNK,NNK,NNK", "3 codons and there are 2 sites"),
    ],
)
def test_what_is_no_library_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_library(text, 2)


def bias(tmp_path: Path, text: str) -> Path:
    (tmp_path / "bias.csv").write_text(f"letter,A,C,G,T\n{text}\n")
    return tmp_path / "bias.csv"


def test_a_supply_changes_the_laws(tmp_path: Path) -> None:
    supply = read_supply(bias(tmp_path, "N,40,20,20,20\nK,0,0,0.7,0.3"))
    np.testing.assert_allclose(supply.law("R"), [2 / 3, 0, 1 / 3, 0])  # in proportion to N
    np.testing.assert_allclose(supply.law("K"), [0, 0, 0.7, 0.3])
    np.testing.assert_allclose(supply.law("[A50G50]"), [2 / 3, 0, 1 / 3, 0])
    law = supply.codon_law("RGK")  # A 2/3: AGG R .7, AGT S .3; G 1/3: glycine
    assert law[RESIDUES.index("R")] == pytest.approx(2 / 3 * 0.7)
    assert law[RESIDUES.index("G")] == pytest.approx(1 / 3)
    assert not np.allclose(law, Supply().codon_law("RGK"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("N,40,20,20,30", "line 2.*sum to 110"),
        ("N,.4,.2,.2,.3", "line 2.*sum to 1.1"),
        ("J,25,25,25,25", "line 2.*'J' is no letter"),
        ("K,10,0,50,40", "line 2.*A must be 0"),
        ("K,0,0,100,0", "line 2.*T must be above 0"),
        ("N,a,25,25,50", "line 2.*'a' is no proportion"),
        ("N,-1,26,25,50", "no proportion"),
        ("N,25,25,25,25\nN,25,25,25,25", "line 3.*twice"),
    ],
)
def test_a_supply_that_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_supply(bias(tmp_path, text))
