"""Bad tables of measurements and of known objects: every way in which a file can be no table, or the wrong one."""

import gzip
import io
import json
import zipfile
from pathlib import Path

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, bomb, flipped, packed, row, unreadable

GOOD = "sequence,score\nACG,1\nCAT,0.5\nTAG,0.2\n"


def measured(name: str, content: Content, *says: str, file: str = "t.csv", flags: str = "", **more: object) -> Row:
    """`train table` on one file."""
    words = f"train table --table.file {file} {flags} {{tiny}} --out run"
    return row(f"table: {name}", words, *says, files={file: content}, **more)


def known(name: str, content: Content, *says: str, file: str = "o.csv", task: str = "words", **more: object) -> Row:
    """`train words` with a file of known objects."""
    words = f"train {task} --offline.file {file} --offline.share 0.5 {{tiny}} --out run"
    return row(f"offline: {name}", words, *says, files={file: content}, **more)


def parquet(**columns: list[object]) -> Content:
    def write(path: Path) -> None:
        import pandas as pd

        pd.DataFrame(columns).to_parquet(path)

    return write


def excel(**columns: list[object]) -> Content:
    def write(path: Path) -> None:
        import pandas as pd

        pd.DataFrame(columns).to_excel(path, index=False)

    return write


def zip_of(**parts: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


def scored(*rows: str) -> str:
    return "sequence,score\n" + "\n".join(rows) + "\n"


NOT_FILES = [
    row("table: not there", "train table --table.file t.csv {tiny}", "table.file", "t.csv", "no such file"),
    row("table: not there, to look at", "tasks table --table.file t.csv", "table.file", "t.csv", "no such file"),
    row("table: not there, to compare", "compare table --table.file t.csv {tiny}", "t.csv", "no such file"),
    row("table: a file that breaks off", "train table --table.file /proc/self/mem {tiny}", "/mem: Input/output error"),
    row("table: an empty name", ["train", "table", "--table.file", ""], "table.file"),
    row("table: below a file", "train table --table.file t.csv/x.csv {tiny}", "t.csv/x.csv", files={"t.csv": GOOD}),
    row("table: a name that is too long", ["tasks", "table", "--table.file", "x" * 300], "x" * 20),
    row("table: a device", "tasks table --table.file /dev/zero", "/dev/zero", "device"),
    row("table: a device of random bytes", "tasks table --table.file /dev/urandom", "/dev/urandom", "device"),
    row("table: standard input", "tasks table --table.file /dev/stdin", "/dev/stdin"),
    row("table: the process itself", "tasks table --table.file /proc/self/mem", "/proc/self/mem"),
    measured("a folder", a_folder, "table.file ", "t.csv", "folder"),
    measured("a pipe", a_pipe, "table.file ", "t.csv", "pipe"),
    measured("a link to itself", a_link("t.csv"), "t.csv"),
    measured("a link to nothing", a_link("nowhere.csv"), "table.file", "no such file"),
    measured("a link to a device", a_link("/dev/zero"), "table.file", "device"),
    measured("a link to a folder", a_link("."), "table.file", "folder"),
    measured("without permission", unreadable, "t.csv", "ermission"),
]

NOT_TABLES = [
    measured("empty", "", "t.csv", "the file is empty"),
    measured("blank lines alone", "\n\n  \n", "t.csv", "the file is empty"),
    measured("a header alone", "sequence,score\n", "t.csv", "a header and no rows"),
    measured("a byte order mark alone", b"\xef\xbb\xbf", "t.csv", "the file is empty"),
    measured("NUL bytes", b"sequence,score\nA\0G,1\n", "t.csv, line 2", "0x00"),
    measured("NUL bytes alone", b"\0" * 1000, "t.csv, line 1", "0x00"),
    measured("UTF-16", GOOD.encode("utf-16"), "t.csv", "UTF-16", "UTF-8"),
    measured("UTF-16 without a mark", GOOD.encode("utf-16-le"), "t.csv, line 1", "UTF-8"),
    measured("Latin-1", "sequence,score\nACG,1\nCAT,½\n".encode("latin-1"), "t.csv, line 3", "UTF-8"),
    measured("random bytes", bytes(range(128, 256)) * 8, "t.csv, line 1", "UTF-8"),
    measured("a picture", b"\x89PNG\r\n\x1a\n" + bytes(64), "t.csv, line 1", "UTF-8"),
    measured("a program", b"\x7fELF\x02\x01\x01" + bytes(64), "t.csv, line 1"),
    measured("a zip", zip_of(a="b"), "t.csv"),
    measured("JSON", json.dumps([{"sequence": "ACG", "score": 1}]), "t.csv"),
    measured("HTML", "<html><body>not found</body></html>\n", "t.csv"),
    measured("deeply nested JSON", "[" * 100_000, "t.csv"),
    measured("a quote that never closes", 'sequence,score\n"ACG,1\n', "t.csv, line 2", "quote"),
    measured("a stray quote", 'sequence,score\n"A"CG,1\n', "t.csv, line 2"),
    measured("a field of 200,000 letters", scored("A" * 200_000 + ",1"), "t.csv, line 2"),
    measured("a sequence of 513 letters", scored("A" * 513 + ",1", "ACG,2"), "t.csv, line 2", "512"),
    measured("a sequence of 131,000 letters", scored("A" * 131_000 + ",1"), "t.csv, line 2", limit=10),
    measured("a header of 200,000 letters", "A" * 200_000 + ",score\nACG,1\n", "t.csv"),
    measured(
        "100,000 columns",
        ",".join(f"c{i}" for i in range(100_000)) + "\n" + "," * 99_999 + "\n",
        "t.csv", "more than 16,384 columns",
    ),
    measured("an unknown ending", GOOD, "t.json", "'.json' files", file="t.json"),
    measured("an old workbook", b"\xd0\xcf\x11\xe0", "t.xls", "'.xls' files", file="t.xls"),
    measured("a packed workbook", packed("x"), "t.xlsx.gz", file="t.xlsx.gz"),
    measured("an archive", zip_of(t="x"), "t.zip", "'.zip' files", file="t.zip"),
]

PACKED = [
    measured("packed: not gzip", GOOD, "t.csv.gz", "gzip", file="t.csv.gz"),
    measured("packed: empty file", b"", "t.csv.gz", file="t.csv.gz"),
    measured("packed: empty content", packed(""), "t.csv.gz", "empty", file="t.csv.gz"),
    measured("packed: cut", packed(GOOD)[:-12], "t.csv.gz", "gzip", file="t.csv.gz"),
    measured("packed: cut in the header", packed(GOOD)[:5], "t.csv.gz", "gzip", file="t.csv.gz"),
    measured("packed: wrong checksum", flipped(packed(GOOD), -6), "t.csv.gz", "gzip", file="t.csv.gz"),
    measured("packed: a byte flipped", flipped(packed(GOOD * 50), 30), "t.csv.gz", file="t.csv.gz"),
    measured("packed: rubbish behind it", packed(GOOD) + b"rubbish", "t.csv.gz", "gzip", file="t.csv.gz"),
    measured("packed: twice", gzip.compress(packed(GOOD)), "t.csv.gz", file="t.csv.gz"),
    measured("packed: a bomb", bomb, "t.csv.gz", "unpacks to more than", file="t.csv.gz"),
    measured("workbook: no workbook", "x", "t.xlsx", "Excel", file="t.xlsx"),
    measured("workbook: a zip of something else", zip_of(a="b"), "t.xlsx", "Excel", file="t.xlsx"),
    measured("workbook: cut", zip_of(a="b")[:30], "t.xlsx", "Excel", file="t.xlsx"),
    measured("workbook: empty", excel(), "t.xlsx", "empty", file="t.xlsx"),
    measured("workbook: a header alone", excel(sequence=[], score=[]), "t.xlsx", "no rows", file="t.xlsx"),
    measured("workbook: a missing score", excel(sequence=["ACG", "CAT"], score=[1, None]), file="t.xlsx", code=0),
    measured("workbook: dates for scores", excel(sequence=["ACG"], score=["2024-01-01"]), "t.xlsx, row 2", file="t.xlsx"),
    measured("parquet: no parquet", "x", "t.parquet", "Parquet", file="t.parquet"),
    measured("parquet: empty file", b"", "t.parquet", "Parquet", file="t.parquet"),
    measured("parquet: magic alone", b"PAR1PAR1", "t.parquet", "Parquet", file="t.parquet"),
    measured("parquet: no rows", parquet(sequence=[], score=[]), "t.parquet", "no rows", file="t.parquet"),
    measured("parquet: other columns", parquet(seq=["ACG"], score=[1.0]), "t.parquet", "'seq'", file="t.parquet"),
    measured("parquet: a list in a cell", parquet(sequence=[["A"]], score=[1.0]), "t.parquet, row 1", file="t.parquet"),
    measured("parquet: bytes that are no text", parquet(sequence=[b"\xff"], score=[1.0]), "t.parquet", file="t.parquet"),
    measured("parquet: infinite score", parquet(sequence=["ACG"], score=[float("inf")]), "t.parquet, row 1", file="t.parquet"),
    measured("parquet: missing sequence", parquet(sequence=["ACG", None], score=[1.0, 2.0]), "row 2", file="t.parquet"),
]

CELLS = [
    measured("ragged, short", scored("ACG,1", "CAT"), "t.csv, line 3", "1 field where the header has 2"),
    measured("ragged, long", scored("ACG,1", "CAT,2,3"), "t.csv, line 3", "3 fields where the header has 2"),
    measured("no sequence column", "seq,score\nACG,1\n", "column 'sequence'", "did you mean 'seq'?"),
    measured("no score column", "sequence,value\nACG,1\n", "column 'score'", "--table.score-column"),
    measured("columns in capitals", "SEQUENCE,SCORE\nACG,1\n", "did you mean 'SEQUENCE'?"),
    measured("no header", "ACG,1\nCAT,2\n", "column 'sequence'", "first line"),
    measured("two columns of one name", "sequence,score,score\nACG,1,2\n", "column 'score'", "2 columns"),
    measured("two columns without a name", "sequence,score,,\nACG,1,2,3\n", "t.csv", "columns"),
    measured("the wrong delimiter", "sequence:score\nACG:1\n", "t.csv", "column 'sequence'"),
    measured("columns that are chosen and missing", GOOD, "column 'dna'", flags="--table.sequence-column dna"),
    measured("one column chosen twice", GOOD, "t.csv", flags="--table.score-column sequence"),
    measured("an empty sequence", scored("ACG,1", ",2"), "line 3", "column 'sequence'", "empty"),
    measured("a letter of another alphabet", scored("ACG,1", "AUG,2"), "line 3", "'U'", "--table.alphabet rna"),
    measured("a digit in a sequence", scored("AC1,1"), "line 2", "'1'"),
    measured("a blank in a sequence", scored("A CG,1"), "line 2", "' '"),
    measured("a gap in a sequence", scored("A-G,1"), "line 2", "'-'"),
    measured("Greek letters", scored("ΑCG,1"), "line 2", "'Α'"),
    measured("an escape sequence in a sequence", scored("A\x1b[31mG,1"), "line 2"),
    measured("a right-to-left mark", scored("A\u202eCG,1"), "line 2"),
    measured("a missing score", scored("ACG,1", "CAT,"), code=0),
    measured("no score at all", scored("ACG,", "CAT,NA"), "column 'score'", "no row has a score"),
    measured("a score in words", scored("ACG,high"), "line 2", "column 'score'", "'high' is not a number"),
    measured("a score with a decimal comma", "sequence;score\nACG;0,5\n", code=0),
    measured("a comma among thousands", "sequence;score\nACG;1,000,5\n", "line 2", "'1,000,5'"),
    measured("a score with an underscore", scored("ACG,1_000"), "line 2", "'1_000'"),
    measured("a score of nan", scored("ACG,1", "CAT,nan"), code=0),
    measured("an infinite score", scored("ACG,1", "CAT,-inf"), "line 3", "not finite"),
    measured("a score beyond float32", scored("ACG,1e39"), "line 2", "1e39"),
    measured("a score beyond float64", scored("ACG,1e400"), "line 2", "not finite"),
    measured("a score of 100,000 digits", scored("ACG," + "9" * 100_000), "line 2"),
    measured("a negative score", scored("ACG,1", "CAT,-0.5"), "line 3", "--table.scale minmax"),
    measured("a formula", scored("=1+1,1"), "line 2", "'='"),
    measured("a sequence twice", scored("ACG,1", "ACG,2"), "line 3", "on line 2 already"),
    measured("a sequence twice, in lower case", scored("ACG,1", "acg,1"), "line 3", "with the same score"),
    measured(
        "constant scores under minmax", scored("ACG,1", "CAT,1"), "every score is 1", flags="--table.scale minmax"
    ),
    measured("scores that are all zero", scored("ACG,0", "CAT,0"), "t.csv"),
    measured("a line end in a cell", 'sequence,score\n"AC\nG",1\n', "line 2"),
    measured("an alphabet of one letter", GOOD, "table.alphabet", "too short", flags="--table.alphabet A"),
    measured("an alphabet that repeats", GOOD, "table.alphabet", "repeats 'A'", flags="--table.alphabet ACGA"),
    measured("an alphabet with a blank", GOOD, "table.alphabet", flags="--table.alphabet 'A C'"),
    measured("an alphabet with a control character", GOOD, "table.alphabet", flags="--table.alphabet 'A\x07'"),
    measured("an alphabet by a wrong name", GOOD, "table.alphabet", flags="--table.alphabet proteins"),
    measured("a decay above one", GOOD, "table.decay", flags="--table.decay 2"),
    measured("a scale by a wrong name", GOOD, "table.scale 'minmx'", "'minmax'", flags="--table.scale minmx"),
    measured("duplicates by a wrong name", GOOD, "table.duplicates", flags="--table.duplicates first"),
    measured("a minimum below zero", GOOD, "reward.minimum", flags="--reward.minimum -1"),
    measured("a minimum above all scores", GOOD, "reward.minimum", flags="--reward.minimum 5"),
]

OBJECTS = [
    row("offline: not there", "train words --offline.file o.csv --offline.share 0.5 {tiny}", "o.csv", "no such file"),
    row("offline: a device", "train words --offline.file /dev/zero --offline.share 0.5 {tiny}", "/dev/zero", "device"),
    known("a folder", a_folder, "offline.file ", "o.csv", "folder"),
    known("a pipe", a_pipe, "offline.file ", "o.csv", "pipe"),
    known("a link to itself", a_link("o.csv"), "o.csv"),
    known("without permission", unreadable, "o.csv", "ermission"),
    known("empty", "", "o.csv", "empty"),
    known("empty text", "", "o.txt", "empty", file="o.txt"),
    known("a header alone", "sequence\n", "o.csv", "no rows"),
    known("no column of that name", "seq\nACG\n", "o.csv", "'sequence'"),
    known("two columns of one name", "sequence,sequence\nACG,ACG\n", "o.csv", "2 columns"),
    known("a letter that is none", "sequence\nACG\nAXG\n", "o.csv, line 3", "X"),
    known("too long", "sequence\n" + "A" * 8 + "\n", "o.csv, line 2"),
    known("an empty sequence", 'sequence,x\n,1\nACG,2\n', "o.csv, line 2"),
    known("a field of 200,000 letters", "sequence\n" + "A" * 200_000 + "\n", "o.csv, line 2"),
    known("a line of 200,000 letters", "A" * 200_000 + "\n", "o.txt, line 1", file="o.txt"),
    known("random bytes", bytes(range(128, 256)), "o.csv", "UTF-8"),
    known("NUL bytes in a text", b"ACG\nA\0G\n", "o.txt, line 2", file="o.txt"),
    known("a byte flipped in gzip", flipped(packed("sequence\n" + "ACG\n" * 99), 20), "o.csv.gz", file="o.csv.gz"),
    known("an unknown ending", "ACG\n", "o.fasta", file="o.fasta"),
    known("cells of a grid outside of it", "sequence\n9 9\n", "o.csv, line 2", task="grid"),
    known("letters on a grid", "sequence\nACG\n", "o.csv, line 2", task="grid"),
    known("numbers without end on a grid", "sequence\n" + "9" * 400 + " 1\n", "o.csv, line 2", task="grid"),
]

ROWS = [*NOT_FILES, *NOT_TABLES, *PACKED, *CELLS, *OBJECTS]
