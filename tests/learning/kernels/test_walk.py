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

PACKAGE = str(Path(sgfn.__file__).parents[1])
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


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    script = Path(__file__).parent / "walk_beside_its_twin.py"
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": PACKAGE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_walk_is_a_rollout(found: dict[str, Any], case: str) -> None:
    found = found["walks"]
    assert set(found) == set(CASES)
    assert found[case]["fits"]
    assert found[case]["single"]["same"] == 1.0
    assert found[case]["single"]["error"] < 1e-5
    assert found[case]["half"]["same"] > 0.98  # rounding may decide a close race
    assert found[case]["half"]["error"] < 0.05 or found[case]["half"]["same"] < 1.0
    assert found[case]["other clock"]["same"] < 0.9


JUDGED = ("kept", "shared", "crowded", "kl, kept", "kl, shared", "detailed balance", "blind")


@pytest.mark.slow
@pytest.mark.parametrize("case", JUDGED)
def test_a_walk_is_judged_as_if_its_states_were_judged_anew(found: dict[str, Any], case: str) -> None:
    assert set(found["judged"]) == set(JUDGED)
    judged = found["judged"][case]
    assert judged["kept"] == (0.0 if case in ("shared", "crowded", "kl, shared") else 1.0)
    assert judged["same"] > 0.98  # the random numbers of a general step
    assert judged["error"] < 5e-5
    assert judged["loss"] < 1e-4
    assert judged["gradient"] < 2e-3
    assert judged["other states"] > 0.005


@pytest.mark.slow
def test_rates_that_nobody_sees_are_not_left_to_the_kernel(found: dict[str, Any]) -> None:
    assert found["rolls"] == {"uniform": True, "hidden": False}


def test_on_a_cpu_nobody_walks() -> None:
    env = tabulate(make_task("tfbind8", TrainConfig()).env, "cpu")
    assert walking_kernel(env, MLP(env.features, 8, 1, "relu"), torch.device("cpu")) is None
