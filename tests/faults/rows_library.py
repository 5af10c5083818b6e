"""`design library`: codons that are none, templates out of frame, tables and supplies that cannot be used."""

from benchmarks.soak.rows import Content, Row, a_folder, a_link, a_pipe, row, unreadable

GOOD = "sequence,score\nAC,1\nCA,0.5\nTA,0.2\nGG,0.7\nWT,0.1\nAY,0.4\nKK,0.3\nMV,0.9\n"
BIAS = "letter,A,C,G,T\n"
FAST = "--unseen lowest --starts 1 --clones 2"


def chosen(name: str, flags: str, *says: str, table: Content = GOOD, file: str = "t.csv", **more: object) -> Row:
    """`design library` on a table of two sites."""
    files = {file: table} | more.pop("files", {})  # type: ignore[operator]
    return row(
        f"library: {name}", f"design library {file} {FAST} {flags}", *says, files=files, **({"limit": 60} | more)
    )


def supplied(name: str, rows: str, *says: str) -> Row:
    """`design library` with a table of a supplier's bias."""
    return chosen(f"bias, {name}", "--bias b.csv", *says, files={"b.csv": rows})


ROWS = [
    row("library: nothing", "design library", "TABLE|TASK"),
    row("library: a table that is not there", "design library t.csv", "t.csv"),
    row("library: an unknown task", "design library gb2", "gb2"),
    row("library: a task of DNA", "design library tfbind8", "proteins"),
    row("library: a task of no sequences", "design library grid", "proteins"),
    row("library: a task with other sites", "design library gb1 --template ATGGCT --positions 1,2", "4 sites"),
    row("library: a task with columns", "design library gb1 --score-column x", "score_column"),
    row("library: an unknown flag", "design library gb1 --clonse 3", "--clonse"),
    row("library: a device", "design library /dev/zero", "/dev/zero", limit=30),
    chosen("a table of genes", "", "all letters are among A, C, G and T", "--alphabet protein",
           table="sequence,score\nACG,1\nCCT,0.5\nGGA,0.2\n"),
    chosen("an alphabet that is none of proteins", "--alphabet dna", "--alphabet", "'dna'"),
    chosen("a letter that is none", "--compare NNX", "NNX", "'X'"),
    chosen("a codon of two letters", "--compare NN", "'NN'"),
    chosen("codons of three sites", "--compare NNK,NNK,NNK", "3 codons", "2 sites"),
    chosen("a mixture of 90 percent", "--compare NN[A50G40]", "sum 100"),
    chosen("a weight that is none", "--compare NNK*0", "weight"),
    chosen("codons to choose from that are none", "--codons NNJ", "'J'"),
    chosen("codons to choose from, all of them stops", "--codons TAA TAG", "stop"),
    chosen("positions without a template", "--positions 1,2", "--template"),
    chosen("a template without positions", "--template ATGGCT", "--positions"),
    chosen("a template that is no file", "--template g.fasta --positions 1,2", "g.fasta"),
    chosen("a template out of frame", "--template ATGGC --positions 1,2", "5 bases", "out of frame"),
    chosen("a template with a stop inside", "--template ATGTAAGCT --positions 1,3", "codon 2"),
    chosen("a template of other letters", "--template ATGNNK --positions 1,2", "base 4"),
    chosen(
        "a template of two sequences",
        "--template g.fasta --positions 1,2",
        "g.fasta",
        files={"g.fasta": ">a\nATG\n>b\nATG\n"},
    ),
    chosen("an empty template", "--template g.txt --positions 1,2", "g.txt", files={"g.txt": ""}),
    chosen("a template that is a folder", "--template g --positions 1,2", "g", files={"g": a_folder}),
    chosen("positions outside", "--template ATGGCT --positions 1,9", "position 9", "1 to 2"),
    chosen("a position of zero", "--template ATGGCT --positions 0,1", "position 0"),
    chosen("a position named twice", "--template ATGGCT --positions 1,1", "twice"),
    chosen("positions that fall", "--template ATGGCT --positions 2,1", "rise"),
    chosen("positions in words", "--template ATGGCT --positions one,two", "one,two"),
    chosen("no positions", "--template ATGGCT --positions=", "positions"),
    chosen("other positions than the table has", "--template ATGGCTGCTGCT --positions 1,2,3", "t.csv", "4 residues"),
    chosen("flanks of other letters", "--left-flank ACGX", "flank", "'X'"),
    chosen("a size below one", "--size 0", "size"),
    chosen("a size in words", "--size large", "size"),
    chosen("a size that no library has", "--size 1e9 --goal mean", "--size", "largest"),
    chosen("a size of nan", "--size nan", "size"),
    chosen("a chance above one", "--no-stop 1.5", "no_stop"),
    chosen("no clones", "--clones 0", "clones"),
    chosen("clones in words", "--clones many", "clones"),
    chosen("an unknown goal", "--goal most", "goal"),
    chosen("a percentage that does not divide", "--percent 30", "30"),
    chosen("percentages of zero", "--percent 0", "step"),
    chosen("percentages for a pool", "--percent 50 --libraries 2", "percent"),
    chosen("no libraries", "--libraries 0", "libraries"),
    chosen("too many libraries", "--libraries 1000", "libraries"),
    chosen("an exponent below zero", "--libraries 2 --beta -1", "beta"),
    chosen("no starts", "--starts 0", "starts"),
    chosen("steps below zero", "--flow -1", "flow"),
    chosen("a network with codons of one's own", "--flow 5 --codons NNK NDT", "flow"),
    chosen("a seed below zero", "--seed -1", "seed"),
    chosen("a score of stops in words", "--stop-score low", "stop-score"),
    chosen("an unknown rule", "--unseen highest", "unseen"),
    chosen("an unknown proxy", "--unseen proxy --proxy rigde", "rigde"),
    chosen("into a folder", "--out x", "x", files={"x": a_folder}),
    chosen("into a pipe", "--out x.csv", "x.csv", files={"x.csv": a_pipe}),
    chosen("into a file that is there", "--out x.csv", "x.csv exists", files={"x.csv": "mine"}),
    chosen("below a file", "--out x/y.csv", "x", files={"x": "mine"}),
    chosen("a page that is there", "--page p.html", "p.html exists", files={"p.html": "mine"}),
    chosen("one file for both", "--out x --page ./x", "--page"),
    chosen("a sheet on a full disk", "--codons NNK NDT --goal mean", "library.csv", file_size=10),
    chosen("an empty table", "", "t.csv", "empty", table=""),
    chosen("a header alone", "", "t.csv", "no rows", table="sequence,score\n"),
    chosen("a letter that is no residue", "", "t.csv, line 3", "B", table="sequence,score\nAC,1\nAB,2\n"),
    chosen("a score in words", "", "t.csv, line 3", "high", table="sequence,score\nAC,1\nAD,high\n"),
    chosen("two lengths", "", "t.csv", "one length", table="sequence,score\nAC,1\nACD,2\n"),
    chosen(
        "whole proteins without a template",
        "",
        "t.csv",
        "--template",
        table=f"sequence,score\n{'A' * 60},1\n{'W' * 60},2\n",
    ),
    chosen("too many sites for a table as it is", "", "--unseen", table="sequence,score\nACDEFG,1\nCCDEFG,2\n"),
    chosen("every score alike", "--unseen proxy", "score", table="sequence,score\nAC,1\nAD,1\nAE,1\n"),
    chosen("a link to itself", "", "t.csv", table=a_link("t.csv")),
    chosen("a table without permission", "", "t.csv", table=unreadable),
    chosen("a table of an unknown ending", "", "t.json", file="t.json"),
    supplied("sums of 110", f"{BIAS}N,40,20,20,30\n", "b.csv, line 2", "110"),
    supplied("sums of 0", f"{BIAS}N,0,0,0,0\n", "b.csv, line 2"),
    supplied("a letter that is none", f"{BIAS}J,25,25,25,25\n", "b.csv, line 2", "'J'"),
    supplied("a base that the letter does not hold", f"{BIAS}K,10,0,50,40\n", "b.csv, line 2", "A must be 0"),
    supplied("a letter twice", f"{BIAS}N,25,25,25,25\nN,25,25,25,25\n", "b.csv, line 3", "twice"),
    supplied("a proportion in words", f"{BIAS}N,a,25,25,50\n", "b.csv, line 2", "'a'"),
    supplied("a column is missing", "letter,A,C,G\nN,30,30,40\n", "b.csv", "'T'"),
    supplied("an empty file", "", "b.csv", "empty"),
    chosen("bias, not there", "--bias b.csv", "b.csv"),
]
