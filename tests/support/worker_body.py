"""What a worker process of a test does; nothing heavy is imported here."""

import os
import signal
import time


def behave(request: str) -> object:
    """Body of a worker of a test."""
    if request == "pid":
        return os.getpid()
    if request == "exit":
        os.kill(os.getpid(), signal.SIGKILL)
    if request == "sleep":
        time.sleep(60)
    raise RuntimeError(request)
