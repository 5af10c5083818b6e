"""Checks of types and shapes in the first calls of each function in each test, not in every call.

jaxtyping and beartype take longer over a call than most of our functions: with every call checked, the tests take three
times as long. Whatever a test calls is checked in its first calls there; the thousandth step of a loop is not.
jaxtyping's own decorator checks arguments twice, to say more of what is wrong: sizes of axes are noted here as it notes
them, and beartype checks a call once.
"""

import dataclasses
import functools
import inspect
import os
import typing
from collections.abc import Callable
from types import FunctionType
from typing import Any

import beartype
import jaxtyping

FIRST = int(os.environ.get("SGFN_CHECKED_CALLS", "2"))
"""Calls of a function that are checked in a test; SGFN_CHECKED_CALLS=1000000000 checks all of them."""
CALLS: dict[int, int] = {}
"""Calls of each function in the present test by the identity of its code, up to the last that is checked."""
ALWAYS = jaxtyping.jaxtyped
"""jaxtyping's own decorator, which checks every call."""
PLAIN = beartype.beartype(conf=beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError))
"""The same without shapes."""


def checked_at_first(fn: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    """A function whose first calls in each test are checked; what is needed for that is made at the first of all."""
    code, checking = id(fn.__code__), list[Callable[..., Any]]()  # the hash of code itself takes longer than most calls

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        count = CALLS.get(code, 0)
        if count >= FIRST or jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        CALLS[code] = count + 1
        if not checking:
            checking.append(checked(fn, typechecker))
        return checking[0](*args, **kwargs)

    return call


def checked(fn: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    """A function whose every call is checked, as cheaply as its signature allows."""
    if inspect.isgeneratorfunction(fn):  # beartype would stand between it and what is thrown into it
        return ALWAYS(fn, typechecker=typechecker)
    try:
        shapes = shapes_of(fn)
    except (NameError, TypeError, AttributeError):  # a name that only a type checker knows
        return ALWAYS(fn, typechecker=typechecker)
    if any("{" in shape for shape in shapes):  # a size that is an argument, which jaxtyping reads
        return ALWAYS(fn, typechecker=typechecker)
    return with_axes(PLAIN(fn)) if shapes else PLAIN(fn)


def with_axes(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A checked function in whose calls axes of one name have one size."""
    axes = ALWAYS("context")

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with axes:
            return fn(*args, **kwargs)

    return call


def shapes_of(fn: Callable[..., Any]) -> list[str]:
    """Shapes of the arrays that a signature speaks of anywhere, whose axes must agree."""
    return shapes_in(list(typing.get_type_hints(fn).values()))


def shapes_in(hint: Any) -> list[str]:
    """Shapes in a type: its own if it is one of arrays, or those of what it is made of."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return [hint.dim_str]
    parts = hint if isinstance(hint, list | tuple) else typing.get_args(hint)
    return [shape for part in parts for shape in shapes_in(part)]


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
