"""Bad noise files: confusion matrices that are not stochastic, rates that are no rates."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, flipped, packed, row, unreadable

GOOD = "intended,A,C,G,T\nA,0.7,0.1,0.1,0.1\nC,0.1,0.7,0.1,0.1\nG,0.1,0.1,0.7,0.1\nT,0.1,0.1,0.1,0.7\n"


def confusion(name: str, content: Content, *says: str, file: str = "n.csv", **more: object) -> Row:
    """`train words` under a confusion matrix."""
    words = f"train words --noise.kind confusion --noise.file {file} {{tiny}} --out run"
    return row(f"confusion: {name}", words, *says, files={file: content}, **more)


def rates(name: str, content: Content, *says: str, flags: str = "", **more: object) -> Row:
    """`train words` with a rate for each position."""
    words = f"train words --noise.kind position --noise.file n.csv {flags} {{tiny}} --out run"
    return row(f"rates: {name}", words, *says, files={"n.csv": content}, **more)


def column(*values: str) -> str:
    return "alpha\n" + "\n".join(values) + "\n"


CONFUSION = [
    row("confusion: not there", "train words --noise.kind confusion --noise.file n.csv {tiny}", "n.csv", "no such file"),
    row("confusion: not there, to look at", "tasks words --noise.kind confusion --noise.file n.csv", "n.csv"),
    row("confusion: a device", "tasks words --noise.kind confusion --noise.file /dev/zero", "/dev/zero", "device"),
    confusion("a folder", a_folder, "n.csv", "folder"),
    confusion("a pipe", a_pipe, "n.csv", "pipe"),
    confusion("a link to itself", a_link("n.csv"), "n.csv"),
    confusion("without permission", unreadable, "n.csv", "ermission"),
    confusion("empty", "", "n.csv", "empty"),
    confusion("a header alone", "intended,A,C,G,T\n", "n.csv", "no rows"),
    confusion("one column", "intended\nA\n", "n.csv", "lacks"),
    confusion("random bytes", bytes(range(128, 256)), "n.csv", "UTF-8"),
    confusion("a letter that is none", GOOD.replace("T", "U"), "n.csv", "'U'"),
    confusion("a letter too few", "\n".join(line.rpartition(",")[0] for line in GOOD.splitlines()), "lacks 'T'"),
    confusion("a row too few", GOOD.rpartition("T,")[0], "the first column lacks 'T'"),
    confusion("two rows of one letter", GOOD + "A,1,0,0,0\n", "n.csv", "repeats 'A'"),
    confusion("two columns of one letter", GOOD.replace("C,G,T\n", "C,G,T,T\n", 1), "n.csv"),
    confusion("two columns of one letter, ragged no more",
              "\n".join(line + ("," + line[-3:] if line[0] != "i" else ",T") for line in GOOD.splitlines()), "n.csv"),
    confusion("the first column named as a letter", GOOD.replace("intended", "A"), "n.csv"),
    confusion("a letter in both cases", GOOD + "a,1,0,0,0\n", "n.csv", "repeats 'A'"),
    confusion("a row that sums to less", GOOD.replace("A,0.7", "A,0.6"), "n.csv, line 2", "'A' sums to 0.9"),
    confusion("a row that sums to more", GOOD.replace("G,0.1,0.1,0.7", "G,0.1,0.1,0.8"), "n.csv, line 4", "1.1"),
    confusion("a row of zeros", GOOD.replace("C,0.1,0.7,0.1,0.1", "C,0,0,0,0"), "n.csv, line 3", "sums to 0"),
    confusion("a negative entry", GOOD.replace("A,0.7,0.1", "A,0.9,-0.1"), "n.csv, line 2", "column 'C'"),
    confusion("an entry above one", GOOD.replace("A,0.7", "A,1.7"), "n.csv, line 2", "'A' sums to 2"),
    confusion("an entry of nan", GOOD.replace("A,0.7", "A,nan"), "n.csv, line 2", "column 'A'"),
    confusion("an infinite entry", GOOD.replace("A,0.7", "A,inf"), "n.csv, line 2", "column 'A'"),
    confusion("an entry in words", GOOD.replace("A,0.7", "A,most"), "n.csv, line 2", "'most' is not a number"),
    confusion("an entry in per cent", GOOD.replace("A,0.7", "A,70%"), "n.csv, line 2", "'70%'"),
    confusion("an empty entry", GOOD.replace("A,0.7", "A,"), "n.csv, line 2", "column 'A'"),
    confusion("counts in one row alone", GOOD.replace("A,0.7,0.1,0.1,0.1", "A,7,1,1,1"), "n.csv, line 2", "sums to 10"),
    confusion("ragged", GOOD.replace("A,0.7,", "A,"), "n.csv, line 2", "fields"),
    confusion("a field of 200,000 letters", GOOD.replace("0.7", "0." + "7" * 200_000), "n.csv, line 2"),
    confusion("a number of 100,000 digits", GOOD.replace("0.7", "7" * 100_000), "n.csv, line 2"),
    confusion("transposed and not stochastic", GOOD.replace("T,0.1,0.1,0.1,0.7", "T,0.7,0.7,0.7,0.7"), "n.csv, line 5"),
    confusion("a stop that is not asked for", GOOD.replace("T\n", "T,stop\n", 1), "n.csv"),
    confusion("a byte flipped in gzip", flipped(packed(GOOD * 9), 40), "n.csv.gz", file="n.csv.gz"),
    confusion("an unknown ending", GOOD, "n.npy", "'.npy' files", file="n.npy"),
    row("confusion: without a row for stop",
        "train words --noise.kind confusion --noise.file n.csv --noise.stop {tiny}", "n.csv", "'stop'",
        files={"n.csv": GOOD}),
]

RATES = [
    row("rates: not there", "train words --noise.kind position --noise.file n.csv {tiny}", "n.csv", "no such file"),
    rates("empty", "", "n.csv", "empty"),
    rates("a folder", a_folder, "n.csv"),
    rates("no column alpha", "rate\n0.1\n", "n.csv", "'alpha'"),
    rates("two columns alpha", "alpha,alpha\n0.1,0.2\n", "n.csv", "columns"),
    rates("too few", column("0.1", "0.2"), "n.csv", "2 positions", "7"),
    rates("a rate of one", column(*["1"] * 7), "n.csv, line 2", "[0, 1)"),
    rates("a negative rate", column(*["-0.1"] * 7), "n.csv, line 2"),
    rates("a rate of nan", column(*["nan"] * 7), "n.csv, line 2"),
    rates("a rate in words", column("0.1", "some", *["0.1"] * 5), "n.csv, line 3", "'some'"),
    rates("positions out of order", "position,alpha\n2,0.1\n1,0.1\n", "n.csv, line 2", "expected 1, got 2"),
    rates("positions from zero", "position,alpha\n" + "".join(f"{i},0.1\n" for i in range(8)), "line 2", "got 0"),
    rates("an alpha beside it", column(*["0.1"] * 7), "--noise.alpha", flags="--noise.alpha 0.5"),
]

ROWS = [*CONFUSION, *RATES]
