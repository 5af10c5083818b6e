"""The kernel that walks whole rollouts, in Triton's interpreter: the same steps as plain PyTorch takes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import sgfn
from sgfn.config import TrainConfig
from sgfn.envs.tabulated import tabulate
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.layered import walking_kernel
from sgfn.nets.encoders import MLP

CASES = (
    "tfbind8",
    "one layer, exploring",
    "grid, relu",
    "variable length, silu",
    "heated",
    "heated by a tensor",
    "not exploring",
    "not exploring, heated, not all is legal",
    "many actions",
    "many actions, not exploring",
)


JUDGED = ("kept", "shared", "crowded", "kl, kept", "kl, shared", "detailed balance", "blind")


def beside_its_twin() -> dict[str, Any]:
    """What the script finds; it takes as long as two hundred other tests, so one test asks for all of it."""
    script = Path(__file__).parent / "walk_beside_its_twin.py"
    package = str(Path(sgfn.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.slow
def test_a_walk_is_a_rollout_and_judged_as_if_its_states_were_judged_anew() -> None:
    found = beside_its_twin()
    assert set(found["walks"]) == set(CASES)
    for case, walk in found["walks"].items():
        check_walk(case, walk)
    assert set(found["judged"]) == set(JUDGED)
    for case, judged in found["judged"].items():
        check_judged(case, judged)
    assert found["rolls"] == {"uniform": True, "hidden": False}  # rates that nobody sees are not left to the kernel


def check_walk(case: str, walk: dict[str, Any]) -> None:
    assert walk["fits"], case
    assert walk["single"]["same"] == 1.0, case
    assert walk["single"]["error"] < 1e-5, case
    assert walk["half"]["same"] > 0.98, case  # rounding may decide a close race
    assert walk["half"]["error"] < 0.05 or walk["half"]["same"] < 1.0, case
    assert walk["other clock"]["same"] < 0.9, case


def check_judged(case: str, judged: dict[str, float]) -> None:
    assert judged["kept"] == (0.0 if case in ("shared", "crowded", "kl, shared") else 1.0), case
    assert judged["same"] > 0.98, case  # the random numbers of a general step
    assert judged["error"] < 5e-5, case
    assert judged["loss"] < 1e-4, case
    assert judged["gradient"] < 2e-3, case
    assert judged["other states"] > 0.005, case


def test_on_a_cpu_nobody_walks() -> None:
    env = tabulate(make_task("tfbind8", TrainConfig()).env, "cpu")
    assert walking_kernel(env, MLP(env.features, 8, 1, "relu"), torch.device("cpu")) is None
