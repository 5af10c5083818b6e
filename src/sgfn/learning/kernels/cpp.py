"""Kernels in C++ for CPUs: compiled once for this processor, kept where torch keeps what it compiles."""

import ctypes
import getpass
import hashlib
import mmap
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from sgfn.learning.compilation import compiler_command

FLOATS = ctypes.c_void_p
LANES = 16
"""Widths are multiples of so many entries."""
LARGE_PAGE = 2**21
FLAGS = ("-O3", "-march=native", "-std=gnu++17", "-fopenmp", "-shared", "-fPIC", "-fno-math-errno")


REFUSED: dict[str, str] = {}
"""Why kernels could not be compiled, in a line for the user, by name."""


@cache
def library(name: str) -> ctypes.CDLL | None:
    """The compiled `NAME.cpp` of this folder; None where it cannot be compiled, as without GCC: see `refused`."""
    REFUSED.pop(name, None)
    if not sys.platform.startswith("linux"):
        return None
    source, compiler = Path(__file__).with_name(f"{name}.cpp"), compiler_command()
    try:
        return ctypes.CDLL(str(_built(compiler, source)))
    except (OSError, subprocess.CalledProcessError) as error:
        REFUSED[name] = f"no kernels in C++ for this CPU: {_why(error, shlex.join(compiler))}"
        return None


def refused() -> list[str]:
    """Lines for the user on kernels that were wanted and could not be compiled."""
    return list(dict.fromkeys(REFUSED.values()))


def _why(error: OSError | subprocess.CalledProcessError, command: str) -> str:
    """What went wrong with the compiler, in few words."""
    if isinstance(error, FileNotFoundError):
        return f"the compiler {command!r} (CXX, else g++) is not there"
    if not isinstance(error, subprocess.CalledProcessError):
        return str(error)
    said = (error.stderr or b"").decode(errors="replace").splitlines()
    return f"{command!r} failed ({next((line.strip() for line in said if 'error' in line), str(error))})"


def _built(compiler: list[str], source: Path) -> Path:
    """The shared library of a source, compiled where it is not there yet; processes never see half of one."""
    about = subprocess.run([*compiler, "--version"], check=True, capture_output=True).stdout + _processor()
    read = b"".join(path.read_bytes() for path in (source, *sorted(source.parent.glob("*.h"))))
    key = hashlib.sha256(read + about + repr((FLAGS, compiler)).encode()).hexdigest()[:24]
    target = compiled_folder() / "sgfn" / f"{source.stem}-{key}.so"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as aside:
            part = Path(aside) / target.name
            subprocess.run([*compiler, *FLAGS, str(source), "-o", str(part)], check=True, capture_output=True)
            part.replace(target)
    if target.stat().st_uid != os.getuid() or target.parent.stat().st_uid != os.getuid():
        raise PermissionError(f"{target} is somebody else's")  # who could have put any code there
    return target


def compiled_folder() -> Path:
    """Where torch keeps what it compiles; its own function of this imports the compiler, which takes two seconds."""
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if given is not None:
        return Path(given).absolute()
    try:
        user = getpass.getuser()
    except (KeyError, ImportError, OSError):
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir()) / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))


def _processor() -> bytes:
    """What tells processors apart that do not understand each other's code."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
    told = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return "\n".join([platform.machine(), *told]).encode()


class Matrix(ctypes.Structure):
    """A weight [outputs, inputs] by address and strides."""

    _fields_ = [("at", FLOATS), ("row", ctypes.c_long), ("column", ctypes.c_long)]


def matrix(weight: Float[Tensor, "A B"]) -> Matrix:
    """A weight as kernels read it, however it lies in memory."""
    return Matrix(weight.data_ptr(), weight.stride(0), weight.stride(1))


def at(tensor: Tensor) -> ctypes.c_void_p:
    """The address of a tensor's entries."""
    return FLOATS(tensor.data_ptr())


def in_large_pages(count: int) -> Float[Tensor, " N"]:
    """Zeros in large pages where the system has some: rows of a letter lie far apart, and small pages of all of them
    are more than a processor can find quickly."""
    room = mmap.mmap(-1, 4 * count + LARGE_PAGE)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        room.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(room, dtype=torch.float32)[:count]
