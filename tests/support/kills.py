"""Processes that are killed at the n-th change they make to the disk."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

CHANGES = ("replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "link")
"""Functions of `os` that change the disk, or make sure that it is changed; files are opened and written in between."""


def killed_at(change: int, action: Callable[[], object]) -> bool:
    """Run an action in a process that is killed before its n-th change of the disk; False where it makes fewer.

    Nothing is cleaned up in it, as nothing is after a SIGKILL from outside.
    """
    child = os.fork()
    if child == 0:
        _run(change, action)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _run(change: int, action: Callable[[], object]) -> None:
    left = [change]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    os.fsync = lambda handle: None  # a killed process loses nothing that it has written
    for name in CHANGES:
        setattr(os, name, counted(getattr(os, name)))
    try:
        action()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        os._exit(1)
    os._exit(0)
