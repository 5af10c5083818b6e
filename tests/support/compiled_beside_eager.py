"""Trains each case as it is, compiled, and with another seed, and prints the metrics of all as JSON.

Run it as `python tests/support/compiled_beside_eager.py FOLDER '{"tb": {"objective": "tb"}}'`. A process of its own, as
a compiler does not follow the checks of types that tests add; one for all cases, which share what the compiler keeps.
Sequences are short: what is compiled holds every step of a rollout.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sgfn import TrainConfig, train

TABLE = "sequence,score\nAC,1\nCA,0.5\nTA,0.2\nGG,0.7\n"
SIZES = {"batch": 8, "net__hidden": 16, "dynamics__hidden": 8, "steps": 40, "log__every": 5}


def metrics(folder: Path, accelerate: str, seed: int, changes: dict[str, Any]) -> list[dict[str, float]]:
    """The lines that a run of this kind writes."""
    config = TrainConfig().with_(**SIZES | changes, seed=seed, table__file=folder / "table.csv")
    return train(
        "table", config, folder / f"{accelerate}{seed}", device="cpu", accelerate=accelerate, overwrite=True
    ).rows()


if __name__ == "__main__":
    place, cases = Path(sys.argv[1]), json.loads(sys.argv[2])
    (place / "table.csv").write_text(TABLE)
    kinds = {"plain": ("eager", 0), "compiled": ("compile", 0), "other": ("eager", 1)}
    found = {
        case: {name: metrics(place, *kind, changes) for name, kind in kinds.items()} for case, changes in cases.items()
    }
    print(json.dumps(found))  # noqa: T201
