"""`order`: runs that have nothing to order, plates that are none, files that cannot be written."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, read_only_folder, row

ORDER = "order run -n 4 --samples 8 --device cpu"


def ordered(name: str, flags: str, *says: str, **more: object) -> Row:
    """`order` on a run of words, with further flags."""
    return row(f"order: {name}", f"{ORDER} {flags}", *says, **({"base": "words"} | more))


def written(name: str, file: str, *says: str, files: dict[str, Content] | None = None, **more: object) -> list[Row]:
    """A bad place for the plate, and for the sequences."""
    return [
        ordered(f"{name}, {flag}", f"--{flag} {file}", *says, files=files or {}, **more) for flag in ("out", "fasta")
    ]


ROWS = [
    row("order: no run", "order", "RUN"),
    row("order: a run that is not there", "order nowhere", "nowhere does not exist"),
    row("order: a run that is a link to itself", "order x", "x", files={"x": a_link("x")}),
    row("order: a file for a run", "order t.csv", "t.csv", files={"t.csv": "x"}),
    row("order: on a grid", ORDER, "sequences", base="grid"),
    row("order: of a forecast", ORDER, "run holds a forecast", base="forecast"),
    row("order: of a comparison", ORDER, "run is not a run folder", base="compare"),
    row("order: of a function that only the run names", ORDER, "scores:gc", base="callable"),
    ordered("none", "-n 0", "-n"),
    ordered("fewer than none", "-n -5", "-n"),
    ordered("more than anybody makes", "-n 999999999999", "-n", limit=20),
    ordered("more than any integer", f"-n {'9' * 400}", "-n", limit=20),
    ordered("in words", "-n many", "-n"),
    ordered("half of one", "-n 1.5", "-n", "1.5"),
    ordered("a plate of 95", "--plate 95", "plate"),
    ordered("a plate in words", "--plate large", "plate"),
    ordered("a distance below zero", "--distance -1", "distance"),
    ordered("a distance beyond the length", "--distance 99", "distance must lie in [0, "),
    ordered("a distance in words", "--distance far", "distance"),
    ordered("a trade-off of nan", "--tradeoff nan", "tradeoff"),
    ordered("a trade-off above one", "--tradeoff 2", "tradeoff"),
    ordered("no draws", "--samples 0", "samples"),
    ordered("more draws than fit", "--samples 999999999999", "samples", limit=20),
    ordered("a seed below zero", "--seed -1", "seed"),
    ordered("a huge seed", "--seed 99999999999999999999", "seed"),
    ordered("a device that is none", "--device tpu", "--device 'tpu'"),
    ordered("one file for both", "--out x.csv --fasta ./x.csv", "x.csv", "--fasta"),
    *written("there already", "x.txt", "x.txt exists", files={"x.txt": "mine"}),
    *written("a folder", "x.csv", "x.csv", files={"x.csv": a_folder}),
    *written("a pipe", "x.csv", "x.csv", files={"x.csv": a_pipe}),
    *written("below a file", "x/y.csv", "x", files={"x": "hello"}),
    *written("a device", "/dev/full --overwrite", "/dev/full"),
    *written("in a folder that cannot be written", "x/y.csv", "x", files={"x": read_only_folder}),
    *written("a name that is too long", f"{'x' * 300}.csv", "x" * 20),
    *written("the configuration", "run/config.json --overwrite", "config.json", "made of"),
    *written("the checkpoint", "run/checkpoint/state.safetensors --overwrite", "state.safetensors", "made of"),
    ordered("plate on a full disk", "", "run/orders.csv", file_size=10),
    ordered("sequences on a full disk", "--out /dev/null --fasta x.fasta --overwrite", "", file_size=10, code=2),
    ordered("config cut", "", "config.json", files={"run/config.json": "{"}),
    ordered("checkpoint cut", "", "state.safetensors", files={"run/checkpoint/state.safetensors": b"x"}),
    ordered("its own plate is there", "", "orders.csv exists", files={"run/orders.csv": "mine"}),
]
