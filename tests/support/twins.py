"""Scripts that run GPU kernels in Triton's interpreter, in a process of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import sgfn

SCRIPTS = Path(__file__).parents[1] / "learning" / "kernels"


def beside_its_twin(name: str) -> dict[str, Any]:
    """What a script finds; the interpreter is slow, so one test asks for all of it."""
    package = str(Path(sgfn.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, str(SCRIPTS / name)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)
