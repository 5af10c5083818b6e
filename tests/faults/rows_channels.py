"""Channels: names that none has, pairs that no channel has made, noise files of insertions and deletions that are none."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, flipped, packed, row, unreadable

PAIRS = "intended,realised\nACGT,ACGT\nACGT,AGT\nTTGA,TTGA\nCCGA,CCGGA\n"
LETTERS = "intended,A,C,G,T,deletion,insertion\n" + "".join(
    f"{a},{','.join('0.97' if a == b else '0.01' for b in 'ACGT')},0.02,0.01\n" for a in "ACGT"
)
UNKNOWN = (
    *("taq", "oligo", "microchp", "storage", "NNK", "nn", "epcr", "Taq", "column", "goldman", "erlich", "average"),
    *("micro-chip", "storage_average", "none", "uniform", "indel", "1", "-", "a:b", "sgfn:x", "../nnk", "nnk.csv"),
    *("storage-erlichs", "microchip-", "-microchip", "corrected", "epcr-taq2", "dna"),
)


def fitted(name: str, content: Content, *says: str, file: str = "p.csv", flags: str = "", **more: object) -> Row:
    """`design channel` on one file."""
    words = f"design channel {file} {flags} --out channel"
    return row(f"channel: {name}", words, *says, files={file: content}, **({"limit": 30} | more))


def indel(name: str, content: Content, *says: str, file: str = "n.csv", flags: str = "", **more: object) -> Row:
    """`tasks tfbind8` under a table of insertions and deletions."""
    words = f"tasks tfbind8 --noise.kind indel --noise.file {file} {flags}"
    return row(f"indel: {name}", words, *says, files={file: content}, **more)


NAMES = [
    *(row(f"noise: {name}", ["noise", name], "NAME", "choose from") for name in UNKNOWN if name[0] != "-"),
    row("noise: two names", "noise nnk microchip", "microchip"),
    row("noise: an unknown flag", "noise --jsn", "jsn"),
    row("noise: a flag of another verb", "noise --noise.alpha 0.1", "noise.alpha"),
    row("noise: an unknown name as JSON", "noise taq --json", "choose from"),
    row("noise: a name in capitals as JSON", "noise MICROCHIP --json", "choose from"),
    row("noise: a very long name", ["noise", "x" * 3000], "choose from"),
]

FITS = [
    row("channel: nothing", "design channel", "PAIRS"),
    row("channel: not there", "design channel p.csv --out channel", "p.csv", "no such file"),
    row("channel: a device", "design channel /dev/zero --out channel", "/dev/zero"),
    row("channel: a folder", "design channel d --out channel", "d", files={"d": a_folder}),
    fitted("a pipe", a_pipe, "p.csv"),
    fitted("a link to itself", a_link("p.csv"), "p.csv"),
    fitted("without permission", unreadable, "p.csv"),
    fitted("empty", "", "p.csv", "empty"),
    fitted("a header alone", "intended,realised\n", "p.csv", "no rows"),
    fitted("random bytes", bytes(range(128, 256)), "p.csv", "UTF-8"),
    fitted("an unknown ending", PAIRS, "p.npy", file="p.npy"),
    fitted("a byte flipped in gzip", flipped(packed(PAIRS * 9), 40), "p.csv.gz", file="p.csv.gz"),
    fitted("no column of what was intended", PAIRS.replace("intended", "order"), "p.csv", "'intended'"),
    fitted("no column of what came out", PAIRS.replace("realised", "read"), "p.csv", "'realised'"),
    fitted("two columns of one name", "intended,realised,realised\nA,C,G\n", "p.csv", "realised"),
    fitted("an empty cell", PAIRS + "ACGT,\n", "p.csv, line 6", "column 'realised'"),
    fitted("nothing intended", PAIRS + ",ACGT\n", "p.csv, line 6", "column 'intended'"),
    fitted("a letter that is none", PAIRS + "ACGT,AC-T\n", "p.csv, line 6", "'-'", flags="--alphabet dna"),
    fitted("a letter beside the alphabet", PAIRS, "p.csv, line 2", "'A'", flags="--alphabet CG"),
    fitted("more than twice as many letters", PAIRS + "AC,ACGTA\n", "p.csv, line 6", "twice"),
    fitted("too long a sequence", PAIRS + f"{'A' * 600},A\n", "p.csv, line 6", "512"),
    fitted("a ragged row", PAIRS + "ACGT\n", "p.csv, line 6", "field"),
    fitted("a count of nothing", "intended,realised,count\nAC,AC,0\n", "p.csv, line 2", "column 'count'"),
    fitted("a count below zero", "intended,realised,count\nAC,AC,-3\n", "p.csv, line 2", "'-3'"),
    fitted("a count of a half", "intended,realised,count\nAC,AC,0.5\n", "p.csv, line 2", "'0.5'"),
    fitted("a count in words", "intended,realised,count\nAC,AC,many\n", "p.csv, line 2", "'many'"),
    fitted("a count without end", f"intended,realised,count\nAC,AC,{'9' * 40}\n", "p.csv, line 2", "count"),
    fitted("a count that is missing", "intended,realised,count\nAC,AC,\n", "p.csv, line 2", "count"),
    fitted("an alphabet of one letter", PAIRS, "alphabet", flags="--alphabet A"),
    fitted("an alphabet that is misspelt", PAIRS, "alphabet", flags="--alphabet protien"),
    fitted("an unknown model", PAIRS, "model", flags="--model letters"),
    fitted("positions of several lengths", PAIRS + "AC,AC\n", "one length", flags="--model position"),
    fitted("a level of one", PAIRS, "level", flags="--level 1"),
    fitted("a level in words", PAIRS, "level", flags="--level high"),
    row("channel: into a file", "design channel p.csv --out f", "f", files={"p.csv": PAIRS, "f": "x"}, limit=30),
    row("channel: into somebody's folder", "design channel p.csv --out d", "d", files={"p.csv": PAIRS, "d/x": "mine"}),
]

FILES = [
    row("indel: not there", "tasks tfbind8 --noise.kind indel --noise.file n.csv", "n.csv", "no such file"),
    indel("empty", "", "n.csv", "empty"),
    indel("none of its columns", "intended,A,C,G,T\nA,1,0,0,0\n", "n.csv", "deletion"),
    indel("a letter that is none", LETTERS.replace("T,", "U,"), "n.csv"),
    indel("a row too few", LETTERS.rpartition("T,")[0], "n.csv", "lacks 'T'"),
    indel("a rate of one", LETTERS.replace("0.02,0.01\nC", "1,0\nC"), "n.csv, line 2", "[0, 1)"),
    indel("a rate above one", LETTERS.replace("0.02,0.01\nC", "2,0\nC"), "n.csv, line 2", "column 'deletion'"),
    indel("a negative rate", LETTERS.replace("0.02", "-0.02"), "n.csv, line 2", "column 'deletion'"),
    indel("rates of one together", LETTERS.replace("0.02,0.01\nC", "0.5,0.5\nC"), "n.csv, line 2", "below 1"),
    indel("a rate in words", LETTERS.replace("0.02", "some"), "n.csv, line 2", "'some'"),
    indel("a law that is none", LETTERS.replace("0.97", "0.5"), "n.csv, line 2", "sums to 0.53"),
    indel("a letter twice", LETTERS + "A,1,0,0,0,0,0\n", "n.csv", "repeats 'A'"),
    indel("nothing inserted", LETTERS + "inserted,0,0,0,0,,\n", "n.csv, line 6", "inserted"),
    indel("two laws of insertions", LETTERS + "inserted,1,0,0,0,,\n" * 2, "n.csv, line 7", "inserted"),
    indel("too few positions", "position,deletion\n1,0.1\n2,0.1\n", "n.csv", "2 positions", "8"),
    indel("positions out of order", "position,deletion\n2,0.1\n1,0.1\n", "n.csv, line 2", "expected 1"),
    indel("an unknown column by position", "position,deletion,x\n1,0.1,2\n", "n.csv", "'x'"),
    indel("an own preset too", LETTERS, "noise.", flags="--noise.preset nnk"),
    indel("a scale that is too large", LETTERS, "noise.scale", flags="--noise.scale 60"),
    indel("a flank of other letters", LETTERS, "noise.flank", flags="--noise.flank AXB"),
    row("indel: an unknown preset", "train tfbind8 --noise.preset taq {tiny} --out run", "noise.preset", "choose from"),
    row("indel: a library", "train tfbind8 --noise.preset nnk {tiny} --out run", "library"),
    row("indel: a preset of DNA on proteins", "train gb1 --noise.preset microchip {tiny} --out run", "ACGT"),
    row("indel: a deletion of everything", "tasks tfbind8 --noise.kind indel --noise.deletion 1", "noise.deletion"),
    row("indel: below zero", "tasks tfbind8 --noise.kind indel --noise.insertion -0.1", "noise.insertion"),
    row("indel: one together", "tasks mpsa --noise.kind indel --noise.insertion .5 --noise.deletion .5", "below 1"),
    row("indel: spare cycles below zero", "tasks mpsa --noise.kind indel --noise.spare -1", "noise.spare"),
    row("indel: several lengths", "train words --noise.kind indel --noise.deletion .1 {tiny} --out run", "one length"),
    row("indel: no letters", "train grid --noise.kind indel --noise.deletion .1 {tiny} --out run", "letters"),
    row("indel: a rate of another kind", "tasks tfbind8 --noise.deletion 0.1", "--noise.deletion"),
    row("indel: a slip rate", "tasks tfbind8 --noise.kind indel --noise.alpha 0.1", "--noise.alpha"),
]

ROWS = [*NAMES, *FITS, *FILES]
