"""Environments of the contestants: each in a folder of its own under `benchmarks/.peers`, made where it is missing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.contest import ROOT, Contestant

FOLDER = ROOT / "benchmarks" / ".peers"
PACKAGES = {
    "jax": ["jax==0.10.2"],
    "gfnx": ["gfnx==0.0.1"],
    "torchgfn": [f"torch=={torch.__version__.partition('+')[0]}", "torchgfn==2.4.1"],
}
MODULES = {
    "ours": "benchmarks.speed_peers.ours",
    "uncompiled": "benchmarks.speed_peers.ours",
    "jax": "benchmarks.jax_reference",
    "gfnx": "benchmarks.speed_peers.gfnx",
    "torchgfn": "benchmarks.speed_peers.torchgfn",
}
"""Ours first: ratios are against it."""
OURS = {"ours": "compile", "uncompiled": "auto"}
"""Our own ways to run steps; without compiling, those of a short run: as they are, on a GPU captured in a graph."""


def python_of(name: str) -> str:
    """The interpreter of a contestant: our own, or one in an environment made for it."""
    name = {"jax-loop": "jax"}.get(name, name)
    if name in (*OURS, "eager") or (name == "jax" and find_spec("jax") is not None):
        return sys.executable
    python, stamp = FOLDER / name / "bin" / "python", FOLDER / name / "installed"
    wanted = " ".join(PACKAGES[name])
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"installing {wanted} into {python.parent.parent.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", FOLDER / name], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, *PACKAGES[name]], check=True, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def enter(name: str, modules: dict[str, str] = MODULES) -> Contestant:
    """Start a contestant's process, without the compilation caches of earlier runs."""
    here = python_of(name) == sys.executable
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]) if here else ""
    settings = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    settings["GOMP_SPINCOUNT"] = "3000"  # as the command `sgfn` sets it, for all who use torch
    environment = {**os.environ, **settings, "PYTHONPATH": source}
    return Contestant(name, python_of(name), modules[name], environment)


def present(device: str) -> list[str]:
    """Contestants that take part: all on a CPU; on a GPU ours and, where it can be imported, JAX."""
    if device == "cpu":
        return list(MODULES)
    return [*OURS, "jax"] if find_spec("jax") is not None else [*OURS]


def table_file(folder: Path) -> str:
    """Scores of TFBind8 for the contestants, those below the smallest reward raised to it."""
    import numpy as np

    from sgfn.config import RewardConfig
    from sgfn.landscapes import tfbind8

    file = folder / "tfbind8.npy"
    np.save(file, np.maximum(tfbind8.load_scores(tfbind8.DEFAULT), RewardConfig().minimum).astype(np.float32))
    return str(file)
