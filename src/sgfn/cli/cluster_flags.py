"""Flags of commands that can use a cluster."""

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import arg


@dataclass(frozen=True, kw_only=True)
class OnCluster:
    """Where jobs run, and what each takes."""

    cluster: Annotated[str | None, arg(metavar="local|auto|HOST:PORT")] = None
    """Run as jobs of Ray (pip install 'sgfn[ray]'): `local` starts one here, `auto` takes the one that runs here."""
    cluster_cpus: float = 1.0
    """CPUs, and threads, of each job."""
    cluster_gpus: float | None = None
    """GPUs of each job; by default one where the cluster has some and --device allows it."""


ClusterFlags = Annotated[OnCluster, arg(name="")]


def cluster_options(flags: OnCluster) -> dict[str, Any]:
    """The flags as arguments of a function."""
    return {name: getattr(flags, name) for name in ("cluster", "cluster_cpus", "cluster_gpus")}
