"""Templates, order sheets, the command, and tables of users."""

import csv
import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sgfn.cli import main
from sgfn.design.libraries import LibraryConfig, Template, design_library
from sgfn.design.libraries.codons import LETTERS, codon_table
from sgfn.design.libraries.template import hand_mixed, parse_positions
from sgfn.reports.pages.library import write_library_page

DNA = "ATGGCTTGTGATAAATAA"  # MACDK and a stop
SMALL = ("NNK", "NDT", "TGG", "TTC", "WGG", "TKK", "KKG", "NTT", "VHG", "TKB")
LETTERS_20 = "ACDEFGHIKLMNPQRSTVWY"


def frame(count: int = 60, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice(list(LETTERS_20), 2)) for _ in range(count)]
    return pd.DataFrame(
        {"sequence": texts, "score": [2.0 * t.count("W") + t.count("F") for t in texts]}
    ).drop_duplicates()


def test_frame_and_flanks_are_kept() -> None:
    template = Template.of(DNA.lower(), (2, 4), left="ggtctc", right="GAGACC")
    assert (template.protein, template.wild_type) == ("MACDK", "AD")
    dna = template.dna(["NDT", "TGG"])
    assert dna == "GGTCTC" + "ATGNDTTGTTGGAAATAA" + "GAGACC"
    for bases in product(*(LETTERS[letter] for letter in dna)):  # every molecule differs at the sites alone
        made = "".join(bases)[6:-6]
        protein = "".join(codon_table()[made[i : i + 3]] for i in range(0, len(made), 3))
        assert (protein[0], protein[2:]) == ("M", "CWK*")
    assert hand_mixed("[A25T75]NK") == "(N1:25000075)NK"


@pytest.mark.parametrize(
    ("dna", "positions", "says"),
    [
        ("ATGGC", (1,), "5 bases.*out of frame"),
        ("ATGTAAGCT", (1,), "stop TAA as codon 2.*out of frame"),
        ("ATGNNKGCT", (1,), "base 4 is 'N'"),
        ("", (1,), "template is empty"),
        (DNA, (7,), "position 7 lies outside: the template has residues 1 to 6"),
        (DNA, (0,), "position 0 lies outside"),
        (DNA, (6,), "position 6 is the stop TAA"),
        (DNA, (2, 2), "position 2 is named twice"),
        (DNA, (3, 2), "positions must rise"),
        (DNA, (), "positions are missing"),
    ],
)
def test_a_template_that_is_none_is_refused(dna: str, positions: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Template.of(dna, positions)


def test_positions_are_numbers() -> None:
    assert parse_positions("3, 12") == (3, 12)
    with pytest.raises(ValueError, match="'3,x' are no numbers"):
        parse_positions("3,x")


def test_a_table_to_an_order_sheet(tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    found = design_library(
        frame(),
        template=DNA,
        positions=(2, 3),
        out=out,
        table={"proxy": "ridge"},
        starts=4,
        codons=SMALL,
        clones=10,
        compare=("NNK",),
    )
    assert found.values[0].best > found.compared[0].best
    assert found.proxy is not None
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert row["dna"] == DNA[:3] + row["codon_2"] + row["codon_3"] + DNA[9:]
    assert float(row["best"]) == pytest.approx(found.values[0].best, rel=1e-4)
    assert row["residues_2"].split()[0][0] in LETTERS_20
    with pytest.raises(ValueError, match=r"sheet\.csv exists"):
        found.write(out)
    worst = design_library(
        frame().assign(score=-frame().score),
        table={"proxy": "ridge", "minimise": True},
        starts=4,
        codons=SMALL,
        clones=10,
        compare=(),
    )
    plain = design_library(frame(), table={"proxy": "ridge"}, starts=4, clones=10, compare=(), codons=SMALL)
    assert worst.values[0].best == pytest.approx(-plain.values[0].best, rel=1e-6)
    assert plain.dna(plain.libraries[0].codons) == ""
    page = write_library_page(tmp_path / "page.html", found).read_text()
    assert row["codon_2"] in page
    assert "NNK" in page


def test_pools_percentages_and_draws() -> None:
    table = frame(80)
    pooled = design_library(table, table={"proxy": "ridge"}, starts=8, libraries=2, clones=10, compare=("NDT",))
    assert sum(pooled.shares) == pytest.approx(1.0)
    assert pooled.pool is not None
    assert pooled.divergence is not None
    assert pooled.floor == pytest.approx(pooled.divergence)
    mixed = design_library(
        table, table={"proxy": "ridge"}, starts=4, percent=50, goal="mean", size=8.0, clones=10, compare=()
    )
    assert [one.how for one in mixed.searches] == ["coordinate ascent", "ascent over pairs of sites", "percent"]
    assert mixed.searches[2].value >= mixed.searches[1].value - 1e-9
    assert mixed.values[0].size >= 8 - 1e-6


@pytest.mark.slow
def test_more_sites_than_can_be_listed() -> None:
    generator = np.random.default_rng(1)
    texts = ["".join(generator.choice(list(LETTERS_20), 7)) for _ in range(60)]
    table = pd.DataFrame({"sequence": texts, "score": [float(t.count("W")) for t in texts]})
    found = design_library(
        table, table={"proxy": "ridge"}, goal="mean", size=16.0, starts=1, clones=8, compare=("NNK",)
    )
    assert found.values[0].expected > found.compared[0].expected
    assert found.values[0].expected_error == 0.0
    assert found.values[0].best_error > 0
    with pytest.raises(ValueError, match="5 sites at most"):
        design_library(table, table={"proxy": "ridge"}, libraries=2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame().to_csv("t.csv", index=False)
    Path("gene.fasta").write_text(f">gene\n{DNA}\n")
    words: str = "design library t.csv --proxy ridge --starts 2 --clones 5 --compare NNK --json"
    assert main([*words.split(), "--template", "gene.fasta", "--positions", "2,3", "--page", "p.html"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["positions"] == [2, 3]
    assert told["libraries"][0]["dna"].startswith("ATG")
    assert told["compared"][0]["name"] == "NNK"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gene.fasta", "library.csv", "p.html", "t.csv"]
    assert main([*words.removesuffix(" --json").split()]) == 2
    assert "library.csv exists" in capsys.readouterr().err
    assert main([*words.removesuffix(" --json").split(), "--overwrite"]) == 0
    assert "ascent over pairs of sites" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"clones": 0}, "clones"),
        ({"size": 0.5}, "size must lie in"),
        ({"no_stop": 1.5}, "no_stop"),
        ({"percent": 30}, "step must divide 100"),
        ({"percent": 10, "libraries": 2}, "percent is for one library"),
        ({"libraries": 0}, "libraries"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LibraryConfig(**settings)


def test_a_table_of_genes_is_refused_unless_its_letters_are_residues() -> None:
    table = pd.DataFrame({"sequence": ["AC", "CT", "GG", "TA"], "score": [1.0, 0.5, 0.2, 0.1]})
    options = {"unseen": "lowest", "starts": 1, "clones": 2, "compare": ()}
    with pytest.raises(ValueError, match=r"all letters are among A, C, G and T, and residues are expected: translate"):
        design_library(table, **options)
    found = design_library(table, **options, table={"alphabet": "protein"})
    assert len(found.libraries[0].codons) == 2
    other = pd.concat([table, pd.DataFrame({"sequence": ["AW"], "score": [0.3]})])
    assert design_library(other, **options).libraries
