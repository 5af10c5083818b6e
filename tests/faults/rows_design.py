"""`design`: tables that no plate can be proposed from, rounds that are none, simulations that cannot be run."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, row, unreadable

GOOD = "sequence,score\nACGT,1\nCATG,0.5\nTAGA,0.2\nGGAC,0.7\nTTTA,0.1\nACCA,0.4\n"


def proposed(name: str, content: Content, *says: str, file: str = "t.csv", flags: str = "", **more: object) -> Row:
    """`design propose` on one file."""
    words = f"design propose {file} --orders 4 {flags} --out round"
    return row(f"propose: {name}", words, *says, files={file: content}, **({"limit": 30} | more))


def simulated(name: str, flags: str, *says: str, **more: object) -> Row:
    """`design simulate` with flags that cannot be used."""
    return row(f"simulate: {name}", f"design simulate {flags}", *says, **({"limit": 30} | more))


ROWS = [
    row("propose: nothing", "design propose", "TABLE|FOLDER"),
    row("propose: not there", "design propose t.csv --out round", "t.csv"),
    row("propose: a number of orders in words", "design propose t.csv --orders many --out round", "orders"),
    row("propose: no orders of no table", "design propose t.csv --orders 0 --out round", "t.csv"),
    row("propose: an unknown flag", "design propose t.csv --ordres 4 --out round", "ordres"),
    row("propose: a seed in words", "design propose t.csv --seed x --out round", "seed"),
    row("propose: a folder as measured", "design propose t.csv --measured empty --out round", "--measured", files={"empty": a_folder, "t.csv": "sequence,score\nACGT,1\n"}),
    row("propose: a device", "design propose /dev/zero --out round", "/dev/zero", limit=30),
    row("propose: a folder that is no round", "design propose empty --out round", "empty", files={"empty": a_folder}),
    proposed("a pipe", a_pipe, "t.csv"),
    proposed("a link to itself", a_link("t.csv"), "t.csv"),
    proposed("without permission", unreadable, "t.csv"),
    proposed("empty", "", "t.csv", "empty"),
    proposed("a header alone", "sequence,score\n", "t.csv", "no rows"),
    proposed("random bytes", bytes(range(128, 256)), "t.csv", "UTF-8"),
    proposed("an unknown ending", GOOD, "t.json", file="t.json"),
    proposed("no score column", "sequence,value\nACGT,1\n", "t.csv", "score"),
    proposed("a score in words", "sequence,score\nACGT,1\nCATG,high\n", "t.csv, line 3", "high"),
    proposed("a score without end", "sequence,score\nACGT,1\nCATG,inf\n", "t.csv, line 3"),
    proposed("scores of nan alone", "sequence,score\nACGT,nan\nCATG,\n", "t.csv", "no row has a score"),
    proposed("a letter that is none", "sequence,score\nACGT,1\nCAZG,1\n", "t.csv, line 3", "Z"),
    proposed("an empty sequence", "sequence,score\nACGT,1\n,1\n", "t.csv, line 3"),
    proposed("too long a sequence", f"sequence,score\nACGT,1\n{'A' * 600},1\n", "t.csv, line 3"),
    proposed("no orders", GOOD, "orders", flags="--orders 0"),
    proposed("orders below zero", GOOD, "orders", flags="--orders -4"),
    proposed("orders in words", GOOD, "orders", flags="--orders many"),
    proposed("a seed below zero", GOOD, "seed", flags="--seed -1"),
    proposed("an alphabet of one letter", GOOD, "alphabet", flags="--alphabet A"),
    proposed("an unknown acquisition", GOOD, "acquisition", flags="--acquisition thomson"),
    proposed("an unknown proxy", GOOD, "proxy", flags="--proxy ensembl"),
    proposed("a proxy of nobody", GOOD, "nowhere", flags="--proxy nowhere:f"),
    proposed("a distance below zero", GOOD, "distance", flags="--distance -1"),
    proposed("gc in words", GOOD, "gc", flags="--gc some"),
    proposed("a measured table without a round", GOOD, "--measured", flags="--measured t.csv"),
    row("propose: into a file", "design propose t.csv --orders 4 --out f", "f", files={"t.csv": GOOD, "f": "x"}, limit=30),
    row("propose: a misspelt action", "design proposee t.csv", "design"),
    simulated("nothing", "", "TASK"),
    simulated("an unknown task", "gridd", "gridd"),
    simulated("a task of no sequences", "grid", "grid"),
    simulated("a task that is misspelt", "wrods", "wrods"),
    simulated("rounds of none", "words --rounds 0", "rounds"),
    simulated("rounds below zero", "words --rounds -1", "rounds"),
    simulated("rounds in words", "words --rounds many", "rounds"),
    simulated("no orders", "words --orders 0", "orders"),
    simulated("orders in words", "words --orders many", "orders"),
    simulated("a seed in words", "words --seed x", "seed"),
    simulated("no seeds", "words --seeds 0", "seeds"),
    simulated("seeds below zero", "words --seeds -1", "seeds"),
    simulated("too many seeds", "words --seeds 999999999999", "seeds"),
    simulated("a start of none", "words --start 0", "start"),
    simulated("a start in words", "words --start x", "start"),
    simulated("an unknown proxy", "words --proxy ensembl --rounds 1 --orders 2 --seeds 1", "proxy"),
    simulated("an unknown method", "words --method thomson --rounds 1 --orders 2 --seeds 1", "thomson"),
    simulated("into a folder", "words --out x", "x", files={"x": a_folder}),
    simulated("into a file that is there", "words --out x", "x exists", files={"x": "mine"}),
    simulated("below a file", "words --out x/y.json", "x", files={"x": "mine"}),
    simulated("an unknown flag", "words --stepps 3", "--stepps"),
    simulated("a task of two colons", "a:b:c", "a:b:c"),
    simulated("a task of a module that is not there", "nowhere:f", "nowhere"),
    simulated("a colon alone", ":", ":"),
    simulated("noise of nan", "words --noise.alpha nan", "noise.alpha"),
    row("design: noise above 1", "design propose t.csv --orders 2 --noise.alpha 2 --out run", "noise.alpha must lie in [0, 1)",
        base="", files={"t.csv": "sequence,score\nACG,1\nCAT,0.5\n"}, hides=("Error parsing",)),
    simulated("noise in words", "words --noise.alpha some", "noise.alpha"),
    simulated("noise of an unknown kind", "words --noise.kind unifrom", "noise.kind"),
    simulated("gc in words", "words --gc some", "gc"),
    simulated("runs of none", "words --max-run 0", "--max-run"),
    simulated("a table without a file", "table", "--table.file"),
    simulated("a function without a name", "callable", "--callable.function"),
    simulated("an unknown task with a dash", "words-8", "words-8"),
]
