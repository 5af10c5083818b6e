"""Connection to Ray, which runs jobs on other machines; imported only where a cluster is asked for."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sgfn.config.checks import require
from sgfn.config.extras import optional

LOCAL, AUTO = "local", "auto"
REACHED = 10.0
"""Seconds in which a cluster's address must answer."""
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # nor a warning on our output
    "RAY_worker_niceness": "0",  # jobs have the rank of this process, as those of the local pool
}
"""Settings of Ray, by environment variables where the user has set none."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What one job takes of a node."""

    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        require(0 < self.cpus <= 4096, "--cluster-cpus", "be above 0 and at most 4096", self.cpus)
        require(0 <= self.gpus <= 1024, "--cluster-gpus", "be from 0 to 1024", self.gpus)


def check_cluster_settings(cluster: str | None, cluster_cpus: float, cluster_gpus: float | None, jobs: int = 1) -> None:
    """Raise for settings that cannot be, or that nothing reads; ray is not imported."""
    Needs(cpus=cluster_cpus, gpus=cluster_gpus or 0.0)
    if cluster is None and (cluster_cpus != 1.0 or cluster_gpus is not None):
        raise ValueError("--cluster-cpus and --cluster-gpus are read with --cluster: add it, or leave them out")
    if cluster is not None and jobs != 1:
        raise ValueError("--jobs is for processes of this machine: with --cluster leave it out, its CPUs decide")


def ray_module() -> Any:
    """The `ray` module; raises in one line where it is not installed."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    return optional("ray", "--cluster", "leave --cluster out")


@contextmanager
def connect(address: str, *, cpus: int | None = None) -> Iterator[Any]:
    """Connect to a cluster while the block runs; gives the `ray` module.

    `local` starts a Ray on this machine, with all its CPUs or with `cpus`, and ends it with the block; `auto` is the
    one that runs on this machine (or that RAY_ADDRESS names); anything else is the HOST:PORT of its head. A connection
    that is there already is used, and left as it was. No dashboard is started and no usage is reported.
    """
    ray = ray_module()
    if ray.is_initialized():
        yield ray
        return
    found = checked_address(address)
    _silence(ray)
    how: dict[str, Any] = {"include_dashboard": False, "num_cpus": cpus} if found == LOCAL else {}
    try:
        ray.init(
            address=found,
            log_to_driver=False,
            logging_level=logging.ERROR,
            job_config=_job_config(),
            **how,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ValueError(f"--cluster {address}: {_reason(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def device_on_node(device: str) -> str:
    """The device of a job that runs on a node: `auto` is a GPU where the job was given one."""
    return ("cuda" if ray_module().get_gpu_ids() else "cpu") if device == "auto" else device


def checked_address(address: str) -> str:
    """An address that Ray takes: `local`, `auto`, or one that answers; Ray itself would try for minutes."""
    if address in (LOCAL, AUTO):
        return address
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"--cluster {address}: must be local, auto or the HOST:PORT of a cluster's head")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACHED).close()
    except OSError as error:
        said = error.strerror or str(error) or type(error).__name__
        raise ValueError(f"--cluster {address}: nothing answers there ({said}); ray start --head starts one") from None
    return address


def _silence(ray: Any) -> None:
    """Keep Ray from printing on our output what it hears of lost workers, for which it has no setting."""
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = lambda *_, **__: None


def _job_config() -> Any:
    """Settings of our jobs: modules are looked for where this process finds them, on nodes that have such folders."""
    config = optional("ray.job_config", "--cluster").JobConfig()
    here = [folder for folder in sys.path if folder and os.path.isdir(folder)]  # noqa: PTH112 -- text, as in sys.path
    config._py_driver_sys_path.extend(reversed(here))
    return config


def _reason(error: Exception) -> str:
    """Why a connection failed, in one line."""
    text = " ".join(str(error).split())
    if "any running Ray instance" in text:
        return "no Ray runs on this machine; ray start --head starts one, --cluster local one for this command"
    return text or type(error).__name__
