"""A process that trains and evaluates one cell: `python -m sgfn.compare.worker_process`, with the job on its input.

If it fails, its last line of output is the reason. When its input ends, its parent is gone: it stops as after Ctrl-C.
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
from sgfn.config.user_code import user_errors
from sgfn.learning.learner import NonFiniteError
from sgfn.runs.evaluate import evaluate
from sgfn.runs.folder import Run
from sgfn.runs.train import train
from sgfn.runs.trust import named


def work(
    task: str,
    config: TrainConfig,
    path: Path,
    device: str,
    accelerate: str,
    samples: int,
    copies: dict[str, Path] | None = None,
) -> None:
    """Train into the folder, from its checkpoint if there is one, and evaluate.

    Steps run unaccelerated where the method does not allow the wanted acceleration.
    """
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
    evaluate(path, samples=samples, device=device, trust=named(task, config))  # as the parent was told


def stop_with_parent() -> None:
    """Wait until the parent closes our input or ends, then terminate this process."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def outcome(job: dict[str, Any]) -> int | str:
    """Do a job; returns 0, the exit status of one that was stopped, or the reason of a failure."""
    try:
        config = from_dict(TrainConfig, job["config"])
        copies = {name: Path(file) for name, file in job["copies"].items()}
        with user_errors(notes=False):  # the comparison itself says how to go on
            work(job["task"], config, Path(job["path"]), job["device"], job["accelerate"], job["samples"], copies)
    except KeyboardInterrupt:
        return STOPPED
    except (ValueError, NonFiniteError) as error:
        return str(error)
    except Exception as error:  # the parent shows one line; the rest is kept in error.txt
        traceback.print_exc()
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    return 0


def main() -> int | str:
    """Exit status, or the reason of a failure, of the job on the input."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=stop_with_parent, daemon=True).start()
    return outcome(job)


if __name__ == "__main__":
    sys.exit(main())
