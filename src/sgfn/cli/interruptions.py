"""Ctrl-C that lands where Python cannot raise it, or inside a library that turns it into another error."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OF_LIBRARIES = (RuntimeError, SystemError, ImportError, TypeError, AttributeError, AssertionError)
"""Errors that a library may make of an interruption; what we make of one in a user's code says so itself."""
AGAIN = 0.02
"""Seconds after which an interruption that was lost is repeated."""


@contextmanager
def whole_interruptions() -> Iterator[None]:
    """Raise KeyboardInterrupt for every Ctrl-C inside the block, also where it came as something else.

    In a finaliser or a callback Python prints an interruption with its traceback and goes on: here it is repeated a
    moment later instead. An error of a library that was raised while one was handled is one.
    """
    before = sys.unraisablehook

    def hook(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            threading.Timer(AGAIN, _interrupt).start()
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    except OF_LIBRARIES as error:
        if comes_of_interruption(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before


def _interrupt() -> None:
    """Send the main thread a signal, which also ends its waiting."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def comes_of_interruption(error: BaseException) -> bool:
    """Whether an error was raised while a KeyboardInterrupt was handled, or because of one."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        if isinstance(one, KeyboardInterrupt):
            return True
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
    return False
