"""Checks of types and shapes in the first calls of each function in each test, not in every call.

jaxtyping and beartype take longer over a call than most of our functions: with every call checked, the tests take three
times as long. Whatever a test calls is checked in its first calls there; the thousandth step of a loop is not.
jaxtyping is asked only where a signature has shapes: beartype alone is faster over the others.
"""

import dataclasses
import functools
import inspect
import os
import typing
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import beartype
import jaxtyping

FIRST = int(os.environ.get("SGFN_CHECKED_CALLS", "2"))
"""Calls of a function that are checked in a test; SGFN_CHECKED_CALLS=1000000000 checks all of them."""
CALLS: dict[CodeType, int] = {}
"""Calls of each function in the present test, up to the last that is checked."""
ALWAYS = jaxtyping.jaxtyped
"""jaxtyping's own decorator, which checks every call."""
PLAIN = beartype.beartype(conf=beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError))
"""The same without shapes."""


def checked_at_first(fn: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    """A function whose first calls in each test are checked; what is needed for that is made at the first of all."""
    code, checking = fn.__code__, list[Callable[..., Any]]()

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        count = CALLS.get(code, 0)
        if count >= FIRST or jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        CALLS[code] = count + 1
        if not checking:
            checking.append(ALWAYS(fn, typechecker=typechecker) if has_shapes(fn) else PLAIN(fn))
        return checking[0](*args, **kwargs)

    return call


def has_shapes(fn: Callable[..., Any]) -> bool:
    """Whether a signature speaks of arrays anywhere, whose axes must agree, or cannot be left to beartype alone."""
    if inspect.isgeneratorfunction(fn):  # beartype would stand between it and what is thrown into it
        return True
    try:
        return any(map(speaks_of_arrays, typing.get_type_hints(fn).values()))
    except (NameError, TypeError, AttributeError):  # a name that only a type checker knows
        return True


def speaks_of_arrays(hint: Any) -> bool:
    """Whether a type is one of arrays, or is made of such."""
    if isinstance(hint, list | tuple):
        return any(map(speaks_of_arrays, hint))
    own = isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray)
    return own or speaks_of_arrays(typing.get_args(hint))


def jaxtyped(fn: Any = None, *, typechecker: Any = None) -> Any:
    """What jaxtyping's import hook puts around functions and dataclasses, in its place."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if isinstance(fn, classmethod | staticmethod):
        return type(fn)(jaxtyped(fn.__func__, typechecker=typechecker))
    if isinstance(fn, property):
        parts = [part and jaxtyped(part, typechecker=typechecker) for part in (fn.fget, fn.fset, fn.fdel)]
        return property(*parts)
    if inspect.isclass(fn):
        own = fn.__dict__.get("__init__")
        if dataclasses.is_dataclass(fn) and isinstance(own, FunctionType) and not hasattr(own, "__wrapped__"):
            fn.__init__ = checked_at_first(own, typechecker)
        return fn
    return checked_at_first(fn, typechecker) if isinstance(fn, FunctionType) else ALWAYS(fn, typechecker=typechecker)


def install() -> None:
    """Let the import hook use this; modules that are imported already keep what they have."""
    jaxtyping.jaxtyped = jaxtyped


def new_test() -> None:
    """Check first calls again."""
    CALLS.clear()
