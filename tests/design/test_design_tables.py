"""Tables of a design: the alphabet that they show, and mistakes that name flags of the command."""

from pathlib import Path

import pytest

from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.measured import shown_alphabet
from sgfn.design.sessions import begin


def table(folder: Path, *sequences: str) -> Path:
    file = folder / "t.csv"
    file.write_text("sequence,score\n" + "".join(f"{text},{n}.5\n" for n, text in enumerate(sequences)))
    return file


@pytest.mark.parametrize(
    ("sequences", "name"),
    [
        (("ACGT", "acca"), "dna"),
        (("ACGU",), "rna"),
        (("ACDEFGHIKL", "MKV"), "protein"),
        (("ACGT", "ACGN"), "dna"),  # more likely a mistake
        (("ACGT", "ACG1"), "dna"),
    ],
)
def test_the_alphabet_that_a_table_shows(sequences: tuple[str, ...], name: str, tmp_path: Path) -> None:
    assert shown_alphabet(table(tmp_path, *sequences), "sequence") == name


def test_a_strange_letter_is_told_with_the_flag_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 3, .*'ACGN' holds 'N', .* or set --alphabet protein"):
        begin(table(tmp_path, "ACGT", "ACGN"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())


def test_letters_of_proteins_are_found_and_told(tmp_path: Path) -> None:
    session = begin(table(tmp_path, "ACDEFGHIKL", "MNPQRSTVWY"), {}, NoiseConfig(alpha=0.0), ConstraintsConfig())
    assert session.designer.config.alphabet == "ACDEFGHIKLMNPQRSTVWY"
    assert session.notices[0].endswith("letters of protein; choose by --alphabet")
