"""GPU kernels in Triton's interpreter: the same rollouts, gradients and attention as plain PyTorch makes."""

from typing import Any

import pytest
from twins import beside_their_twins

CASES = (
    "tfbind8",
    "one layer, exploring",
    "grid, relu",
    "variable length, silu",
    "heated",
    "heated by a tensor",
    "not exploring",
    "without noise",
    "without noise, many actions",
    "not exploring, heated, not all is legal",
    "many actions",
    "many actions, not exploring",
)


GRADIENT_CASES = ("kept", "shared", "crowded", "kl, kept", "kl, shared", "detailed balance", "blind")


@pytest.fixture(scope="module")
def twins() -> dict[str, Any]:
    """The interpreter is slow, so one process finds it all."""
    return beside_their_twins()


@pytest.mark.slow
def test_the_kernel_makes_the_same_rollouts_and_gradients_as_plain_pytorch(twins: dict[str, Any]) -> None:
    found = twins["whole rollouts"]
    assert set(found["rollouts"]) == set(CASES)
    for case, compared in found["rollouts"].items():
        check_rollout(case, compared)
    assert set(found["gradients"]) == set(GRADIENT_CASES)
    for case, compared in found["gradients"].items():
        check_gradients(case, compared)
    assert found["rolls"] == {"uniform": True, "hidden": False}  # rates that nobody sees are not left to the kernel


def check_rollout(case: str, compared: dict[str, Any]) -> None:
    assert compared["fits"], case
    assert compared["kernels"] == ("without noise" not in case), case
    assert compared["single"]["same"] == 1.0, case
    assert compared["single"]["error"] < 1e-5, case
    assert compared["half"]["same"] > 0.98, case  # rounding may decide a close race
    assert compared["half"]["error"] < 0.05 or compared["half"]["same"] < 1.0, case
    assert ("other clock" in compared) == (case in ("grid, relu", "heated")), case
    assert compared.get("other clock", {"same": 0.0})["same"] < 0.9, case


def check_gradients(case: str, compared: dict[str, float]) -> None:
    assert compared["kept"] == (0.0 if case in ("shared", "crowded", "kl, shared") else 1.0), case
    assert compared["same"] > 0.98, case  # the random numbers of a general step
    assert compared["error"] < 5e-5, case
    assert compared["loss"] < 1e-4, case
    assert compared["gradient"] < 2e-3, case
    assert compared["other states"] > 0.005, case


@pytest.mark.slow
def test_the_kernels_take_the_steps_of_plain_pytorch(twins: dict[str, Any]) -> None:
    found = twins["sequences"]
    assert len(found["rollouts"]) == 3
    for case, compared in found["rollouts"].items():
        assert compared["single"] == 1.0, case
        assert compared["half"] > 0.9, case  # rounding may decide a close race
        assert ("other clock" in compared) == ("mlp" in case), case
        assert compared.get("other clock", 0.0) < 0.9, case
    for compared in found["attention"]:
        assert compared["value"] < 1e-5
        assert compared["gradient"] < 1e-4
