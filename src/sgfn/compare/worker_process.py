"""A process that trains and evaluates one cell: `python -m sgfn.compare.worker_process`, job on its input.

What it prints last before it fails is the reason. When its input ends, its parent is gone: it stops as after Ctrl-C.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from sgfn.compare.cells import SECONDS, STOPPED, read_seconds
from sgfn.config import TrainConfig, from_dict
from sgfn.config.files import write_json
from sgfn.learning.learner import NonFiniteError
from sgfn.runs.evaluate import evaluate
from sgfn.runs.folder import Run
from sgfn.runs.train import train


def work(
    task: str,
    config: TrainConfig,
    path: Path,
    device: str,
    accelerate: str,
    samples: int,
    copies: dict[str, Path] | None = None,
) -> None:
    """Train into the folder, from the checkpoint where there is one, and evaluate; who cannot be accelerated is not."""
    run = Run(path=path)
    begun = (path / "config.json").is_file()
    if begun and run.read_config() != (task, config):
        raise ValueError(f"{path} holds another run: remove it, or give --out another name")
    resume = begun and run.checkpoint.is_file()
    before, started = (read_seconds(path) or 0.0) if resume else 0.0, time.monotonic()

    def note(step: int, row: dict[str, Any]) -> None:
        write_json(path / SECONDS, {"seconds": round(before + time.monotonic() - started, 3)})

    how = {"device": device, "accelerate": accelerate, "insist": False, "copies": copies}
    train(task, config, path, resume=resume, overwrite=not resume, progress=note, **how)
    evaluate(path, samples=samples, device=device)


def stop_with_parent() -> None:
    """Wait until nobody holds the other end of our input."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int | str:
    """0, or the reason of a failure."""
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=stop_with_parent, daemon=True).start()
    try:
        config = from_dict(TrainConfig, job["config"])
        copies = {name: Path(file) for name, file in job["copies"].items()}
        work(job["task"], config, Path(job["path"]), job["device"], job["accelerate"], job["samples"], copies)
    except KeyboardInterrupt:
        return STOPPED
    except (ValueError, NonFiniteError) as error:
        return str(error)
    except Exception as error:  # the parent shows one line; the rest is kept in error.txt
        traceback.print_exc()
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
