"""Bad time series: stamps, values, names, covariates, and settings that do not fit the data."""

from datetime import date, timedelta

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, bomb, flipped, packed, row, unreadable


def days(count: int = 40, ids: tuple[str, ...] = ("a",), head: str = "unique_id,ds,y", more: str = "") -> str:
    """A table of daily waves."""
    first = date(2024, 1, 1)
    lines = [f"{name},{first + timedelta(days=day)},{20 + day * 7 % 5}{more}" for name in ids for day in range(count)]
    return "\n".join([head, *lines]) + "\n"


GOOD = days()


def series(name: str, content: Content, *says: str, file: str = "s.csv", flags: str = "", **more: object) -> Row:
    """`forecast` of one file."""
    words = f"forecast {file} {{short}} {flags} --out run"
    return row(f"series: {name}", words, *says, files={file: content}, **({"talks": True} | more))


def changed(line: int, text: str, table: str = GOOD) -> str:
    """A table with one line of it replaced."""
    lines = table.splitlines()
    lines[line - 1] = text
    return "\n".join(lines) + "\n"


FILES = [
    row("series: not there", "forecast s.csv {short}", "s.csv", "no such file"),
    row("series: no name", ["forecast", ""], ""),
    row("series: a device", "forecast /dev/zero {short}", "/dev/zero"),
    row("series: nothing of that name", "forecast weathr {short}", "DATA 'weathr'", "did you mean 'weather'?"),
    series("a folder", a_folder, "s.csv", "folder"),
    series("a pipe", a_pipe, "s.csv", "pipe"),
    series("a link to itself", a_link("s.csv"), "s.csv"),
    series("without permission", unreadable, "s.csv", "ermission"),
    series("empty", "", "s.csv", "empty"),
    series("a header alone", "unique_id,ds,y\n", "s.csv", "no rows"),
    series("random bytes", bytes(range(128, 256)), "s.csv", "UTF-8"),
    series("UTF-16", GOOD.encode("utf-16"), "s.csv", "UTF-8"),
    series("NUL bytes", GOOD.encode()[:-30] + b"\0\n", "s.csv", "0x00"),
    series("a byte flipped in gzip", flipped(packed(GOOD), 40), "s.csv.gz", file="s.csv.gz"),
    series("a bomb", bomb, "s.csv.gz", file="s.csv.gz"),
    series("a field of 200,000 letters", changed(5, "a" * 200_000 + ",2024-01-04,1"), "s.csv, line 5"),
    series("an unknown ending", GOOD, "s.json", file="s.json"),
    series("ragged", changed(5, "a,2024-01-04"), "s.csv, line 5", "fields"),
    series("no parquet", GOOD, "s.parquet", "Parquet", file="s.parquet"),
]

COLUMNS = [
    series("times by another name", days(head="unique_id,when,y"), code=0),
    series("times by another name, one in words", changed(5, "a,yesterday,1", days(head="unique_id,date,y")),
           "s.csv, line 5", "'yesterday'"),
    series("no times, and two series", days(ids=("a", "b"), head="unique_id,when,y").replace("2024-", "x"), code=0),
    series("values by another name", days(head="unique_id,ds,sales"), code=0),
    series("two columns that may be values", days(head="unique_id,ds,left,right", more=",1"), "'y'", "--target-col"),
    series("two columns of one name", days(head="unique_id,ds,y,y", more=",1"), "s.csv", "columns"),
    series("names by another name", days(ids=("a", "b")).replace("unique_id", "shop"), code=0),
    series("two columns that may be names", days(ids=("a,c", "b,d"), head="colour,town,ds,y"), "s.csv"),
    series("an id column that is not there", GOOD, "'zz'", flags="--id-col zz"),
    series("a time column that is not there", GOOD, "'zz'", flags="--time-col zz"),
    series("a target column that is not there", GOOD, "'zz'", flags="--target-col zz"),
    series("a covariate that is not there", GOOD, "'zz'", flags="--known zz"),
    series("an ignored column that is not there", GOOD, "'zz'", flags="--ignore zz"),
    series("one column with two roles", GOOD, "'y'", "one role", flags="--known y"),
    series("a known column that is ignored", days(head="unique_id,ds,y,x", more=",1"), "'x'", flags="--known x --ignore x"),
    series("a covariate in words", days(head="unique_id,ds,y,x", more=",red"), code=0),
    series("a covariate that is not known ahead", days(head="unique_id,ds,y,x", more=",1"), "x must be known 4 steps",
           flags="--known x"),
    series("a known covariate that is empty", days(head="unique_id,ds,y,x", more=","), "column 'x'", flags="--known x"),
    series("an infinite covariate", days(head="unique_id,ds,y,x", more=",inf"), "column 'x'", "not finite"),
]

STAMPS = [
    series("a stamp in words", changed(5, "a,yesterday,1"), "s.csv, line 5", "'yesterday'"),
    series("an empty stamp", changed(5, "a,,1"), "s.csv, line 5", "empty"),
    series("a stamp twice", changed(5, "a,2024-01-03,1"), "s.csv, line 5", "on line 4 already"),
    series("a month of 13", changed(5, "a,2024-13-01,1"), "s.csv, line 5"),
    series("the 30th of February", changed(5, "a,2024-02-30,1"), "s.csv, line 5"),
    series("the year 9999", changed(41, "a,9999-01-01,1"), "s.csv, line 41"),
    series("the year 1", changed(2, "a,0001-01-01,1"), "s.csv, line 2"),
    series("years far apart", changed(41, "a,2261-01-01,1"), "s.csv", code=(0, 2), leaves=True),
    series("nanoseconds apart", "ds,y\n" + "".join(f"2024-01-01 00:00:00.{n:09},{n % 5}\n" for n in range(9))
           + "2024-06-01,1\n", "s.csv"),
    series("days or months", "ds,y\n" + "".join(f"0{d}/0{d}/2024,{d}\n" for d in range(1, 9)), "day/month"),
    series("numbers for stamps", "ds,y\n" + "".join(f"{n},{n % 5}\n" for n in range(40)), code=0),
    series("offsets in some rows", changed(5, "a,2024-01-04T00:00+02:00,1"), "s.csv, line", "offset"),
    series("an escape sequence", changed(5, "a,\x1b[2J,1"), "s.csv, line 5"),
]

VALUES = [
    series("a value in words", changed(5, "a,2024-01-04,lots"), "s.csv, line 5", "column 'y'", "'lots'"),
    series("a decimal comma", changed(5, 'a,2024-01-04,"1,5"'), "s.csv, line 5", "decimal comma"),
    series("an infinite value", changed(5, "a,2024-01-04,inf"), "s.csv, line 5", "not finite"),
    series("a value that is too large", changed(5, "a,2024-01-04,1e31"), "s.csv, line 5", "too large"),
    series("a value beyond floats", changed(5, "a,2024-01-04,1e999"), "s.csv, line 5"),
    series("constant", "ds,y\n" + "".join(f"2024-01-{d:02},5\n" for d in range(1, 31)), code=0),
    series("no values", "ds,y\n" + "".join(f"2024-01-{d:02},\n" for d in range(1, 31)), "0 values"),
    series("one value", "ds,y\n2024-01-01,1\n", "1 value", "2 are needed"),
    series("two values", "ds,y\n2024-01-01,1\n2024-01-02,2\n", "s.csv"),
    series("shorter than the horizon", days(5), "s.csv"),
    series("an empty name", changed(5, ",2024-01-04,1"), "s.csv, line 5", "empty"),
]

SETTINGS = [
    series("a season longer than the data", GOOD, "season", flags="--season 10000", limit=10),
    series("a season below zero", GOOD, "season", flags="--season -1"),
    series("a horizon of none", GOOD, "horizon", flags="--horizon -1"),
    series("a horizon beyond the data", GOOD, "horizon", flags="--horizon 4096"),
    series("a context beyond the data", GOOD, "context", flags="--context 16384", limit=10),
    series("lags that are shorter than the horizon", GOOD, "lags", flags="--lags 2"),
    series("lags in words", GOOD, "lags", flags="--lags some"),
    series("lags beyond the data", GOOD, "lags", flags="--lags 3000"),
    series("an empty lag", GOOD, "lags", flags="--lags 5,,6"),
    series("spares that do not fit", GOOD, "spares", flags="--spares 4,4"),
    series("spares of everything", GOOD, "spare", flags="--spares 40"),
    series("more windows than fit", GOOD, "windows", flags="--windows 5000"),
    series("levels without a median", GOOD, "levels", flags="--levels 0.1 0.9"),
    series("levels out of order", GOOD, "levels", flags="--levels 0.5 0.1 0.9"),
    series("levels beyond one", GOOD, "levels", flags="--levels 0.1 0.5 0.9 1.5"),
    series("one sample", GOOD, "samples", flags="--samples 1"),
    series("samples without end", GOOD, "samples", flags="--samples 99999999"),
    series("one fold", GOOD, "folds", flags="--folds 1"),
    series("bins of one", GOOD, "bins", flags="--bins 1"),
    series("heads that do not divide", GOOD, "net.heads", flags="--net.heads 3"),
    series("known error without a deviation", GOOD, "deviation", flags="--noise known"),
    series("a reference by a wrong name", GOOD, "reference 'seson'", "'season'", flags="--reference seson"),
    series("a scaling by a wrong name", GOOD, "scaling", flags="--scaling sizes"),
    series("a country by a wrong name", GOOD, "holidays", flags="--holidays XX"),
    series("a lag of MASE beyond the data", GOOD, "lag", flags="--lag 9999"),
    series("a temperature of none", GOOD, "temperature", flags="--tilt math:fsum --temperature 0"),
    series("an encoder that reads no series", GOOD, "net.encoder", flags="--net.encoder mlp"),
    series("paths of an unknown kind", GOOD, "p.json", flags="--paths p.json"),
    row("series: paths that are there", "forecast s.csv {short} --paths p.csv", "p.csv exists",
        files={"s.csv": GOOD, "p.csv": "x"}),
]

RUNS = [
    row("forecast: a run is there", "forecast s.csv {short} --out run", "run already holds a run", base="forecast"),
    row("forecast: a run of something else", "forecast s.csv --resume --out run", "run holds a run of grid", base="grid"),
    row("forecast: nothing to resume", "forecast s.csv --resume --out nowhere", "nowhere does not exist"),
    row("forecast: another horizon", "forecast --resume --out run --horizon 5", "--horizon", base="forecast"),
    row("forecast: another file", "forecast t.csv --resume --out run", "--file", base="forecast", talks=True),
    row("forecast: more windows than were kept", "forecast --resume --out run --windows 5", "--windows", base="forecast"),
    row("forecast: resume and overwrite", "forecast --resume --overwrite --out run", "--overwrite", base="forecast"),
    row("forecast: evaluated", "evaluate run", "run holds a forecast", base="forecast"),
    row("forecast: reported", "report run", "run holds a forecast", base="forecast"),
    row(
        "forecast: trained by a flow objective",
        "train series --preset forecast --objective tb --out other",
        "does not read --objective: flow objectives match a reward",
    ),
    row("forecast: trained on as a grid", "train grid --resume --out run", "run holds a run of series", base="forecast"),
    row("forecast: sampled over its own table", "sample run --out run/history.csv --overwrite", "history.csv",
        "the forecast itself wrote", base="forecast"),
    row("forecast: sampled into an unknown kind", "sample run --out p.json", "p.json", base="forecast"),
    row("forecast: too many paths", "sample run -n 999999999999", "-n", base="forecast", memory=2**31, limit=10),
    row("forecast: its copy is gone", "sample run", "data/s.csv", base="forecast",
        files={"run/data/s.csv": lambda path: path.unlink()}),
    row("forecast: its copy has changed", "forecast --resume --out run", "s.csv has changed", base="forecast",
        files={"run/data/s.csv": GOOD}),
]

ROWS = [*FILES, *COLUMNS, *STAMPS, *VALUES, *SETTINGS, *RUNS]
