"""Outputs that cannot be written: names that are taken, folders that are none, disks that are full, streams closed."""

from benchmarks.soak.rows import Row, a_folder, a_link, a_pipe, read_only_folder, row

GRID = "train grid {tiny} --out"


def into(name: str, out: str, *says: str, **more: object) -> list[Row]:
    """One bad place for each verb that takes --out."""
    verbs = {
        "train": "train grid {tiny}",
        "compare": "compare grid --methods mh --seeds 1 --samples 8 {bare}",
        "forecast": "forecast s.csv {short}",
    }
    series = "ds,y\n" + "".join(f"2024-01-{day:02},{day * 7 % 5}\n" for day in range(1, 31))
    files = {"s.csv": series} | dict(more.pop("files", {}))
    return [row(f"out: {verb}, {name}", f"{words} --out {out}", *says, files=files, **more)
            for verb, words in verbs.items()]


def written(name: str, file: str, *says: str, **more: object) -> list[Row]:
    """One bad file for each verb that writes one."""
    verbs = {"sample": "sample run -n 4", "report": "report run"}
    more = {"base": "grid"} | more
    return [row(f"file: {verb}, {name}", f"{words} --out {file}", *says, **more) for verb, words in verbs.items()]


FOLDERS = [
    *into("a file", "x", "x", files={"x": "hello"}),
    *into("below a file", "x/y", "x", files={"x": "hello"}),
    *into("a pipe", "x", "x", files={"x": a_pipe}),
    *into("a device", "/dev/null", "/dev/null"),
    *into("below a device", "/dev/null/x", "/dev/null"),
    *into("a folder of somebody else", "x", "x exists, is not empty", files={"x/letter.txt": "dear"}),
    *into("a folder that cannot be written", "x", "x", files={"x": read_only_folder}),
    *into("below a folder that cannot be written", "x/y/z", "x", files={"x": read_only_folder}),
    *into("a link to itself", "x", "x", files={"x": a_link("x")}),
    *into("a link to nothing", "x", "x is a link that leads nowhere", files={"x": a_link("nowhere")}),
    *into("in a system's folder", "/proc/1/x", "/proc/1/x"),
    *into("a name that is too long", "x" * 300, "x" * 20),
]

FILES = [
    *written("there already", "x.csv", "x.csv exists", files={"x.csv": "mine"}),
    *written("a folder", "x.csv", "x.csv", files={"x.csv": a_folder}),
    *written("a pipe", "x.csv", "x.csv", files={"x.csv": a_pipe}),
    *written("below a file", "x/y.csv", "x", files={"x": "hello"}),
    *written("a device", "/dev/full --overwrite", "/dev/full"),
    *written("in a folder that cannot be written", "x/y.csv", "x", files={"x": read_only_folder}),
    *written("a name that is too long", f"{'x' * 300}.csv", "x" * 20),
    *written("a folder, to be replaced", "x.csv --overwrite", "x.csv is a folder", files={"x.csv": a_folder}),
    row("file: sample, an unknown ending", "sample run --out x.json", "x.json", ".csv", base="grid"),
    row("file: sample, no ending", "sample run --out x", "x", ".csv", base="grid"),
    row("file: sample, samples.csv is there", "sample run", "samples.csv exists", base="grid",
        files={"run/samples.csv": "mine"}),
    row("file: report, an unknown ending", "report run --out r.docx", "r.docx", base="grid"),
    row("file: report, text", "report run --out r.txt", "r.txt", base="grid"),
    row("file: sample, a run that is a link to itself", "sample x", "x does not exist", files={"x": a_link("x")}),
    row("file: report, the picture of another kind", "report run --out run/report.pdf", code=0, base="grid", leaves=True,
        changes=True, talks=True),
    row("file: sample, the data of the run", "sample run --out run/data/t.csv --overwrite", "t.csv", "made of", base="table"),
    row("file: report, the run itself", "report run --out run", "run", base="grid"),
    row("file: report, the checkpoint", "report run --out run/config.json --overwrite", "config.json", base="grid"),
    row("file: forecast, paths below a file", "forecast s.csv {short} --paths s.csv/p.csv", "s.csv",
        files={"s.csv": "ds,y\n" + "".join(f"2024-01-{d:02},{d * 7 % 5}\n" for d in range(1, 31))}),
    row("file: forecast, paths that cannot be written", "forecast s.csv {short} --paths x/p.csv", "x",
        files={"s.csv": "ds,y\n" + "".join(f"2024-01-{d:02},{d * 7 % 5}\n" for d in range(1, 31)),
               "x": read_only_folder}),
]

FULL = [
    row("full: train", "train grid {tiny} --out run", "run", file_size=0, leaves=True),
    row("full: train, a little room", "train grid {tiny} --out run", "run", file_size=100, leaves=True),
    row("full: train, room for the configuration", "train grid {tiny} --out run", "state.safetensors", file_size=6000,
        leaves=True),
    row("full: train, copies", "train table --table.file t.csv {tiny} --out run", "run", file_size=10, leaves=True,
        files={"t.csv": "sequence,score\nACG,1\nCAT,0.5\n"}),
    row("full: resume", "train grid --resume --steps 40 --out run", "run", file_size=3000, base="grid", leaves=True),
    row("full: evaluate", "evaluate run", "run/exact.json", file_size=10, base="grid"),
    row("full: sample", "sample run", "run/samples.csv", file_size=10, base="grid"),
    row("full: sample, packed", "sample run --out x.csv.gz", "x.csv.gz", file_size=10, base="grid"),
    row("full: sample, parquet", "sample run --out x.parquet", "x.parquet", file_size=10, base="grid"),
    row("full: report", "report run", "run/report.png", file_size=10, base="grid"),
    row("full: report, page", "report run --out x.html", "x.html", file_size=10, base="grid"),
    row("full: compare", "compare grid --methods mh --seeds 1 --samples 8 {bare} --out run", "run", file_size=10,
        leaves=True, talks=True),
    row("full: compare, room for the plan", "compare grid --methods mh --seeds 1 --samples 8 {bare} --out run", "run",
        file_size=9000, leaves=True, talks=True),
    row("full: forecast", "forecast s.csv {short} --out run", "run", file_size=10, leaves=True, talks=True,
        files={"s.csv": "ds,y\n" + "".join(f"2024-01-{d:02},{d * 7 % 5}\n" for d in range(1, 31))}),
    row("full: forecast, again", "forecast --resume --out run --windows 2 --baselines seasonal-naive", "run", file_size=10,
        base="forecast", talks=True),
]

ROWS = [*FOLDERS, *FILES, *FULL]
