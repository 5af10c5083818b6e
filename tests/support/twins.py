"""GPU kernels in Triton's interpreter beside plain PyTorch: `python tests/support/twins.py` prints what was found.

A process of its own, and one for all: the interpreter is chosen by the environment before Triton is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

SCRIPTS = Path(__file__).parents[1] / "learning" / "kernels"


def beside_their_twins() -> dict[str, Any]:
    """What a process of its own finds about each kernel."""
    import sgfn

    package = str(Path(sgfn.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def patch_once() -> None:
    """Let the interpreter put its own functions into Triton's language once, not at every call of a function."""
    from triton import language
    from triton.runtime import interpreter

    patch, patched = interpreter._patch_lang, set[bool]()

    def once(function: Any) -> Any:
        whole = language in [value for value in function.__globals__.values() if isinstance(value, ModuleType)]
        if whole not in patched:
            patch(function)
            patched.add(whole)
        return SimpleNamespace(restore=lambda: None)  # nobody else uses the language in this process

    interpreter._patch_lang = once


if __name__ == "__main__":
    patch_once()
    sys.path.insert(0, str(SCRIPTS))
    import sequence_kernels_beside_their_twins as sequences
    import whole_rollout_beside_its_twin as rollouts

    sys.stdout.write(json.dumps({"whole rollouts": rollouts.found(), "sequences": sequences.found()}))
