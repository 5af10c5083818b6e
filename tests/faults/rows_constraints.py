"""Constraints that nothing satisfies, that say nothing, or that come from files which hold no sequence."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, bomb, row, unreadable


def bound(name: str, flags: str, *says: str, task: str = "words", **more: object) -> Row:
    """`train` on sequences under constraints."""
    return row(f"constraint: {name}", f"train {task} {flags} {{tiny}} --out run", *says, **more)


def descended(name: str, content: Content, *says: str, file: str = "p.txt", **more: object) -> Row:
    """The same, near a parent whose sequence a file holds."""
    return bound(f"parent {name}", f"--parent {file} --max-mutations 2", *says, files={file: content}, **more)


ROWS = [
    bound("gc in words", "--gc some", "gc must be LOW:HIGH", "'some'"),
    bound("gc the wrong way round", "--gc 0.6:0.4", "gc must be LOW:HIGH"),
    bound("gc of nan", "--gc nan:1", "gc must be LOW:HIGH"),
    bound("gc of three numbers", "--gc 0:0.5:1", "gc must be LOW:HIGH"),
    bound("gc above one", "--gc 0.5:2", "gc must be LOW:HIGH"),
    bound("gc beyond floats", "--gc 0:1e999", "gc must be LOW:HIGH"),
    row("constraint: gc of nothing", ["train", "words", "--gc", ""], "gc"),
    row("constraint: motifs of nothing", ["train", "words", "--forbid", ""], "forbid"),
    bound("motifs with an empty one", "--forbid A,,C", "forbid"),
    bound("a motif of a letter that is none", "--forbid AZZ", "forbid"),
    bound("a motif of control characters", "--forbid A\x07", "forbid"),
    bound("a motif of 100,000 letters", f"--forbid {'A' * 100_000}", "forbid", limit=20),
    bound("motifs that forbid all", "--forbid A,C,G,T", "forbid"),
    bound("motifs without end", f"--forbid {','.join('ACGT' * 3 for _ in range(20_000))}", "forbid", limit=20),
    bound("runs of none", "--max-run 0", "--max-run"),
    bound("runs below zero", "--max-run -1", "--max-run"),
    bound("runs in words", "--max-run few", "max-run"),
    bound("a pattern of another length", "--pattern AC", "pattern", task="tfbind8"),
    bound("a pattern of letters that are none", "--pattern ZZZZZZZ", "pattern"),
    bound("a pattern of 100,000 letters", f"--pattern {'N' * 100_000}", "pattern", limit=20),
    bound("a pattern that another forbids", "--pattern AAAAAAA --forbid AAA", ""),
    row("constraint: a pattern of nothing", ["train", "words", "--pattern", ""], "pattern"),
    bound("more letters than there are", "--max-length 600", "--max-length"),
    bound("fewer letters than none", "--min-length 0", "--min-length"),
    bound("more at least than at most", "--min-length 5 --max-length 3", "length"),
    bound("mutations of nobody", "--max-mutations 2", "mutations"),
    bound("mutations below zero", "--parent ACGTACG --max-mutations -1", "--max-mutations"),
    bound("of a grid", "--forbid AC", "forbid", task="grid"),
    bound("of a grid, to look at", "--gc 0:1", "gc", task="grid"),
    bound("parent not there", "--parent p.txt --max-mutations 2", "p.txt"),
    bound("parent a device", "--parent /dev/zero --max-mutations 2", "/dev/zero", limit=20),
    descended("a folder", a_folder, "p.txt"),
    descended("a pipe", a_pipe, "p.txt", limit=20),
    descended("a link to itself", a_link("p.txt"), "p.txt"),
    descended("without permission", unreadable, "p.txt"),
    descended("empty", "", "p.txt"),
    descended("two sequences", ">a\nACGTACG\n>b\nCCCCCCC\n", "p.txt"),
    descended("random bytes", bytes(range(128, 256)), "p.txt"),
    descended("a letter that is none", "ACGTACZ\n", "Z"),
    descended("too long", "A" * 100_000 + "\n", "parent"),
    descended("a bomb", lambda path: bomb(path, 2), "p.txt.gz", file="p.txt.gz"),
]
