"""Measurements from a file: what is read, and the one line that each mistake gets."""

import csv
import io
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from table_kinds import WRITERS, first_row, write_kind

from sgfn.config.tasks import Duplicates
from sgfn.landscapes.measurements import ALPHABETS, MERGE, Measurements, read_measurements, resolve_alphabet


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def pairs(found: Measurements) -> list[tuple[str, float]]:
    return list(zip(found.sequences, found.scores.tolist(), strict=True))


def complaint(file: Path, alphabet: str = "dna", **options: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read_measurements(file, alphabet, **options)  # pyright: ignore[reportArgumentType]
    return str(caught.value)


# Alphabets


@pytest.mark.parametrize(
    ("text", "letters"),
    [("dna", "ACGT"), ("RNA", "ACGU"), ("Protein", "ACDEFGHIKLMNPQRSTVWY"), ("01", "01"), ("TGCA", "TGCA")],
)
def test_alphabets_by_name_or_by_letters(text: str, letters: str) -> None:
    assert resolve_alphabet(text) == letters
    assert resolve_alphabet(letters) == letters
    assert len(set(ALPHABETS["protein"])) == 20


MANY = "".join(map(chr, range(0x4E00, 0x4E00 + 257)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "'' is too short"),
        ("A", "'A' is too short"),
        ("ACGA", "'ACGA' repeats 'A'"),
        ("protien", "'protien' is unknown, did you mean protein"),
        ("Proteins", "'Proteins' is unknown, did you mean protein"),
        ("A C", "'A C' holds ' ', which is no visible letter"),
        (MANY, f"'{MANY[:37]}...' has 257 letters, more than 256"),
        ("A\tC", r"'A\tC' holds '\t', which is no visible letter"),
    ],
)
def test_alphabets_that_are_wrong(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=r"^table\.alphabet ") as caught:
        resolve_alphabet(text)
    assert str(caught.value) == f"table.alphabet {what}; give dna, rna, protein, or two or more different letters"


# Files that are right

PLAIN = "sequence,score\nACG,1\nTT,0.25\n"
RIGHT: dict[str, tuple[str, str | bytes]] = {
    "plain": ("a.csv", PLAIN),
    "no line end": ("a.csv", PLAIN.rstrip()),
    "windows": ("a.csv", PLAIN.replace("\n", "\r\n")),
    "old mac": ("a.csv", PLAIN.replace("\n", "\r")),
    "byte order mark": ("a.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
    "quotes": ("a.csv", '"sequence","score"\n"ACG","1"\n"TT","0.25"\n'),
    "empty lines": ("a.csv", "\n" + PLAIN.replace("TT", "\n\nTT") + "\n  \n,\n\n"),
    "blanks": ("a.csv", "sequence, score\nACG , 1.0\n TT,\t+2.5e-1\n"),
    "more columns": ("a.csv", 'id,score,note,sequence\n1,1,"a, ""b""\nand c",ACG\n2,.25,,TT\n'),
    "lower case": ("a.csv", "sequence,score\nacG,1\ntt,0.25\n"),
    "tabs": ("a.TSV", PLAIN.replace(",", "\t")),
    "tabs, with commas in a note": ("a.tsv", "note\tsequence\tscore\na,b\tACG\t1\n\tTT\t.25\n"),
    "semicolons": ("a.csv", PLAIN.replace(",", ";")),
    "tabs in a .txt": ("a.txt", PLAIN.replace(",", "\t")),
    "commas in a .tsv": ("a.tsv", PLAIN),
    "any name": ("measured", PLAIN),
}


@pytest.mark.parametrize("name", RIGHT)
def test_files_that_are_right(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, RIGHT[name][1], RIGHT[name][0])
    found = read_measurements(file, "dna")
    assert pairs(found) == [("ACG", 1.0), ("TT", 0.25)]
    assert (found.file, found.alphabet, found.min_length, found.max_length) == (file, "ACGT", 2, 3)
    assert found.scores.dtype == np.float64
    assert "not in the alphabet ACT" in complaint(file, "ACT")


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    """Numbers may be numbers, and letters digits; the place of a mistake is told as the file counts."""
    frame = pd.DataFrame({"note": ["x", None], "score": [1, 0.25], "sequence": [101, 11]})
    file = write_kind(tmp_path, frame, kind)
    assert pairs(read_measurements(file, "01")) == [("101", 1.0), ("11", 0.25)]
    assert complaint(file).startswith(
        f"table.file {file}, {first_row(kind)}, column 'sequence': '101' holds '1', '0', not in the alphabet ACGT"
    )
    file = write_kind(tmp_path, pd.DataFrame({"sequence": ["A", "a"], "score": [1, 2]}), kind)
    assert f"'A' is on {first_row(kind)} already, with another score" in complaint(file)


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, "peptide,score,kd\nACD,7,0.5\nWY,8,0.125\n")
    found = read_measurements(file, "protein", sequence_column="peptide", score_column="kd")
    assert pairs(found) == [("ACD", 0.5), ("WY", 0.125)]
    assert complaint(file, "protein", sequence_column="peptide", score_column="KD") == (
        f"table.file {file}, line 1, column 'KD': not in the header (peptide, score, kd); "
        "did you mean 'kd'? Choose it with --table.score-column"
    )


def test_case_is_kept_where_the_alphabet_has_both(tmp_path: Path) -> None:
    file = write(tmp_path, "sequence,score\naA,1\nAA,2\naa,3\n")
    assert pairs(read_measurements(file, "aA")) == [("aA", 1.0), ("AA", 2.0), ("aa", 3.0)]
    assert "'aA' is on line" not in complaint(file, "AC")
    assert "'AA' is on line 2 already" in complaint(file, "AC")


@pytest.mark.parametrize("letter", ["ß", "\u0131", "\u017f"])  # upper-cased: SS, I, S
def test_upper_case_is_for_plain_letters_only(tmp_path: Path, letter: str) -> None:
    file = write(tmp_path, f"sequence,score\nsi,1\nA{letter},2\n")
    assert complaint(file, "protein") == (
        f"table.file {file}, line 3, column 'sequence': 'A{letter}' holds '{letter}', not in the alphabet "
        "ACDEFGHIKLMNPQRSTVWY; correct or remove the row, or set --table.alphabet to other letters"
    )
    assert pairs(read_measurements(file, f"SIA{letter}")) == [("SI", 1.0), (f"A{letter}", 2.0)]


def test_duplicates_merge_before_scores_are_scaled(tmp_path: Path) -> None:
    file = write(tmp_path, "sequence,score\nA,-1\nC,3\na,2\nG,7\nA,2\n")
    merged = {
        ("mean", "minmax"): [("A", 0.0), ("C", 2 / 6), ("G", 1.0)],
        ("max", "minmax"): [("A", 0.0), ("C", 1 / 5), ("G", 1.0)],
    }
    for (duplicates, scale), wanted in merged.items():
        found = read_measurements(file, "dna", duplicates=duplicates, scale=scale)
        assert list(zip(found.sequences, found.values.tolist(), strict=True)) == wanted
    assert complaint(file, scale="minmax") == (
        f"table.file {file}, line 4, column 'sequence': 'A' is on line 2 already, with another score; "
        "remove one, or merge them with --table.duplicates mean"
    )
    assert set(get_args(Duplicates)) == {"error", *MERGE}


# Files that are wrong: after the file's name, the whole of the one line

HEADER = "sequence,score\n"
FIX_LETTER = "correct or remove the row, or set --table.alphabet"
WRONG: dict[str, tuple[str, str | bytes, str]] = {
    "empty": ("a.csv", "", ": the file is empty; write a header and one row for each measured sequence"),
    "empty lines": ("a.csv", "\n \n", ": the file is empty; write a header and one row for each measured sequence"),
    "header only": ("a.csv", HEADER, ": a header and no rows; add one row for each measured sequence"),
    "column, near": (
        "a.csv",
        "Sequnce,score\nACG,1\n",
        ", line 1, column 'sequence': not in the header (Sequnce, score); "
        "did you mean 'Sequnce'? Choose it with --table.sequence-column",
    ),
    "column, far, below an empty line": (
        "a.csv",
        "\nsequence,kd\nACG,1\n",
        ", line 2, column 'score': not in the header (sequence, kd); "
        "name the columns in the first line, or choose one with --table.score-column",
    ),
    "no header": (
        "a.csv",
        "ACG,1\nTT,2\n",
        ", line 1, column 'sequence': not in the header (ACG, 1); "
        "name the columns in the first line, or choose one with --table.sequence-column",
    ),
    "an ending that is not read": (
        "a.json",
        "{}",
        ": tables are not read from '.json' files; save it as .csv, .tsv, .txt (each also with .gz), .parquet or .xlsx",
    ),
    "column twice": (
        "a.csv",
        "sequence,score,score\nACG,1,2\n",
        ", line 1, column 'score': 2 columns have this name; rename all but one",
    ),
    "too long": (
        "a.csv",
        HEADER + f"{'A' * 512},1\n{'AC' * 600},1\n",
        ", line 3, column 'sequence': 1,200 letters, more than the 512 that a sequence may have; "
        "shorten or remove the row",
    ),
    "too few fields": (
        "a.csv",
        HEADER + "ACG,1\nTT\n",
        ", line 3: 1 field where the header has 2; fill in what is missing",
    ),
    "too many fields": (
        "a.csv",
        HEADER + "ACG,0,5\n",
        ", line 2: 3 fields where the header has 2; put a field that holds commas in quotes",
    ),
    "open quote": (
        "a.csv",
        HEADER + 'ACG,1\n"TT,2\nGG,3\n',
        ", line 3: not valid CSV (unexpected end of data); close each quote that is opened",
    ),
    "letter": (
        "a.csv",
        HEADER + "ACG,1\r\n\r\nAXGXZ,1\r\n",
        f", line 4, column 'sequence': 'AXGXZ' holds 'X', 'Z', not in the alphabet ACGT; {FIX_LETTER} to other letters",
    ),
    "letter after a field of two lines": (
        "a.csv",
        'note,sequence,score\n"one\ntwo",ACG,1\nthree,AxG,1\n',
        f", line 4, column 'sequence': 'AxG' holds 'x', not in the alphabet ACGT; {FIX_LETTER} to other letters",
    ),
    "another alphabet": (
        "a.csv",
        HEADER + "ACG,1\nACU,1\n",
        f", line 3, column 'sequence': 'ACU' holds 'U', not in the alphabet ACGT; {FIX_LETTER} rna",
    ),
    "a long peptide": (
        "a.csv",
        HEADER + f"{'ACGT' * 10}W,1\n",
        f", line 2, column 'sequence': '{'ACGT' * 9}A...' holds 'W', not in the alphabet ACGT; {FIX_LETTER} protein",
    ),
    "blank inside": (
        "a.csv",
        HEADER + "A CG,1\n",
        f", line 2, column 'sequence': 'A CG' holds ' ', not in the alphabet ACGT; {FIX_LETTER} to other letters",
    ),
    "empty sequence": (
        "a.csv",
        HEADER + "ACG,1\n  ,2\n",
        ", line 3, column 'sequence': the sequence is empty; fill it in or remove the row",
    ),
    "no score": (
        "a.csv",
        HEADER + "ACG,\n",
        ", column 'score': no row has a score; fill in those that were measured",
    ),
    "a word": (
        "a.csv",
        HEADER + "ACG,high\n",
        ", line 2, column 'score': 'high' is not a number; write it like 0.25 or 2.5e-3, or remove the row",
    ),
    "a decimal comma": (
        "a.csv",
        HEADER + 'ACG,"0,5"\n',
        ", line 2, column 'score': '0,5' is not a number; write it like 0.25 or 2.5e-3, or remove the row",
    ),
    "an underscore": (
        "a.csv",
        HEADER + "ACG,1_000\n",
        ", line 2, column 'score': '1_000' is not a number; write it like 0.25 or 2.5e-3, or remove the row",
    ),
    "infinite": (
        "a.csv",
        HEADER + "ACG,-inf\n",
        ", line 2, column 'score': '-inf' is not finite; write a finite number or remove the row",
    ),
    "larger than float32": (
        "a.csv",
        HEADER + "ACG,1e39\n",
        ", line 2, column 'score': '1e39' is beyond 3.4e+38 in size; divide all scores by a constant",
    ),
    "negative": (
        "a.csv",
        HEADER + "ACG,0\nTT,-0.5\n",
        ", line 3, column 'score': '-0.5' is negative; scale all scores to 0..1 with --table.scale minmax",
    ),
    "twice, same score": (
        "a.csv",
        HEADER + "ACG,1\nTT,2\nACG,1.0\n",
        ", line 4, column 'sequence': 'ACG' is on line 2 already, with the same score; "
        "remove one, or merge them with --table.duplicates mean",
    ),
    "twice, in other case and with another score": (
        "a.csv",
        HEADER + "acg,1\nTT,2\n\nACG,2\n",
        ", line 5, column 'sequence': 'ACG' is on line 2 already, with another score; "
        "remove one, or merge them with --table.duplicates mean",
    ),
    "latin letters": (
        "a.csv",
        b"sequence,score,note\r\nACG,1,\r\nTT,2,caf\xe9\r\n",
        ", line 3: byte 0xe9 is not UTF-8 text; save the table as CSV in UTF-8",
    ),
    "utf-16": (
        "a.csv",
        (HEADER + "ACG,1\n").encode("utf-16"),
        ": the text is in UTF-16; save the table as CSV in UTF-8",
    ),
    "zeros": (
        "a.csv",
        HEADER.encode() + b"ACG\0,1\n",
        ", line 2: byte 0x00 is not UTF-8 text; save the table as CSV in UTF-8",
    ),
    "a workbook": (
        "a.csv",
        b"PK\x03\x04\x14\x00\x06",
        ", line 1: byte 0x00 is not UTF-8 text; save the table as CSV in UTF-8",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_are_wrong(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, WRONG[name][1], WRONG[name][0])
    assert complaint(file) == f"table.file {file}{WRONG[name][2]}"
    assert pairs(read_measurements(write(tmp_path, PLAIN), "dna"))  # and the test can fail


def test_nothing_to_read(tmp_path: Path) -> None:
    absent = tmp_path / "none.csv"
    assert complaint(absent) == f"table.file {absent}: no such file; check the path"
    assert complaint(tmp_path) == f"table.file {tmp_path}: a folder, not a file; name the file inside it"
    below = write(tmp_path, PLAIN) / "more.csv"
    assert (
        complaint(below) == f"table.file {below}: cannot be read (Not a directory); check the path and its permissions"
    )


@pytest.mark.parametrize(
    ("rows", "score", "fix"),
    [("A,-2\nC,-2\n", "-2", ""), ("A,0.5\n", "0.5", ", or --table.scale none")],  # none takes no negative score
)
def test_equal_scores_cannot_be_scaled(tmp_path: Path, rows: str, score: str, fix: str) -> None:
    file = write(tmp_path, HEADER + rows)
    assert complaint(file, scale="minmax") == (
        f"table.file {file}, column 'score': every score is {score}, which minmax cannot scale; "
        f"choose another --table.score-column{fix}"
    )
    file = write(tmp_path, HEADER + rows + "G,6\nT,2\n")
    found = read_measurements(file, "dna", scale="minmax")
    wanted = (2 - float(score)) / (6 - float(score))
    assert pairs(found)[-2:] == [("G", 6.0), ("T", 2.0)]
    assert found.values[0] == 0.0
    assert found.values[-2:].tolist() == [1.0, pytest.approx(wanted)]


# Round trip

LETTERS = ["ACGT", "01", 'aA",;', "αβγ", ALPHABETS["protein"]]  # separators and quotes may be letters


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, dict[str, float]]:
    letters = draw(st.sampled_from(LETTERS))
    scores = st.floats(min_value=0.0, max_value=3e38)
    return letters, draw(st.dictionaries(st.text(letters, min_size=1, max_size=6), scores, min_size=1, max_size=8))


@PROPERTY
@given(
    table=tables(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.booleans(),
    suffix=st.sampled_from(["csv", "tsv"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    note=st.text(st.sampled_from('a ",;\n'), max_size=4),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[str, dict[str, float]],
    end: str,
    mark: bool,
    suffix: str,
    quoting: int,
    note: str,
) -> None:
    letters, wanted = table
    out = io.StringIO(newline="")
    delimiter = "\t" if suffix == "tsv" else ","
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)  # pyright: ignore
    writer.writerows(
        [["score", "note", "sequence"], *([repr(s), note.replace("\n", end), x] for x, s in wanted.items())]
    )
    data = out.getvalue().encode("utf-8-sig" if mark else "utf-8")
    file = write(tmp_path_factory.getbasetemp(), data, f"round.{suffix}")
    found = read_measurements(file, letters)
    assert pairs(found) == list(wanted.items())  # exact, and in order
    assert (found.min_length, found.max_length) == (min(map(len, wanted)), max(map(len, wanted)))
    file.write_bytes(data + data.removeprefix(b"\xef\xbb\xbf"))  # a second header is a row whose letters are wrong
    assert complaint(file, letters).startswith(f"table.file {file}, line ")


def table_or_message(file: Path) -> Measurements | str:
    try:
        return read_measurements(file, "dna")
    except ValueError as error:
        return str(error)


ANYTHING = st.binary(max_size=30) | st.text('AC"x,;\r\n\t 01.-\u2028\x0b', max_size=30).map(str.encode)


@PROPERTY
@given(start=st.sampled_from(["", HEADER, "sequence,score,x"]), rest=ANYTHING)
def test_whatever_is_in_the_file_the_answer_is_a_table_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, start: str, rest: bytes
) -> None:
    file = write(tmp_path_factory.getbasetemp(), start.encode() + rest, "any.csv")
    found = table_or_message(file)
    if isinstance(found, str):
        assert found.startswith(f"table.file {file}")
        assert len(found.splitlines()) == 1
        assert "; " in found  # a fix
    else:
        assert set("".join(found.sequences)) <= set("ACGT")
        assert np.isfinite(found.scores).all()
        assert len(found.sequences) == len(set(found.sequences)) == len(found.scores) > 0


@pytest.mark.parametrize("empty", ["", "NA", "nan", "n/a"])
def test_rows_without_a_score_are_left_out_and_told(tmp_path: Path, empty: str) -> None:
    found = read_measurements(write(tmp_path, HEADER + f"ACG,1\nACC,{empty}\nAAA,3\n"))
    assert (found.sequences, found.scores.tolist()) == (["ACG", "AAA"], [1.0, 3.0])
    assert found.notice == "1 row without a score (the first on line 3): left out"
    assert read_measurements(write(tmp_path, HEADER + "ACG,1\nAAA,3\n")).notice == ""


def test_decimal_commas_are_read_where_commas_separate_nothing(tmp_path: Path) -> None:
    found = read_measurements(write(tmp_path, "\ufeffsequence;score;e\nacg;0,5;0,1\nAAA;2;1e-1\n"), sd_column="e")
    assert (found.sequences, found.scores.tolist(), found.sd.tolist()) == (["ACG", "AAA"], [0.5, 2.0], [0.1, 0.1])
    with pytest.raises(ValueError, match=r"line 2, column 'score': '1,000.5' is not a number"):
        read_measurements(write(tmp_path, "sequence;score\nACG;1,000.5\nAAA;2\n"))
    assert found.notice == "columns 'score', 'e': commas are read as decimal commas"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_commas_that_may_be_between_thousands_are_refused(tmp_path: Path, mark: str) -> None:
    def rows(*scores: str) -> Path:
        lines = [f"{letter}CG{mark}{score}\n" for letter, score in zip("ACGT", scores, strict=False)]
        return write(tmp_path, "".join([f"sequence{mark}score\n", *lines]))

    with pytest.raises(ValueError, match=r"line 3, column 'score': '1,234' has .*; write 1234 or 1\.234") as caught:
        read_measurements(rows("987", "1,234", "12,500"))
    assert "\n" not in str(caught.value)
    for proof in ("0,125", "12,50", "1234,500", ",250"):  # no thousands are written so
        found = read_measurements(rows("1,234", proof, "3"))
        assert found.scores.tolist() == [1.234, float(proof.replace(",", ".")), 3.0]
        assert found.notice == "column 'score': commas are read as decimal commas"
