"""Commands that are printed for a user to run: a name that holds blanks, quotes or `$(...)` stays one word."""

import os
import shlex
from pathlib import Path


def quoted(word: object) -> str:
    r"""A word as a shell must be given it; control characters are written out.

    >>> print(quoted("a"), quoted("a b"), quoted("$(x)'"), quoted("a\nb"))
    a 'a b' '$(x)'"'"'' $'a\x0ab'
    """
    text = str(word)
    if text.isprintable():
        return shlex.quote(text)
    plain = set(range(32, 127)) - set(b"\\'")
    escaped = (chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(text))
    return f"$'{''.join(escaped)}'"


def flag(name: str, value: object) -> str:
    """A flag with its value, joined by `=` where the value would be taken for a flag.

    >>> flag("out", "a b"), flag("out", "-x.csv")
    ("--out 'a b'", '--out=-x.csv')
    """
    return f"--{name}{'=' if str(value).startswith('-') else ' '}{quoted(value)}"


def command(*words: object, **flags: object) -> str:
    """A call of sgfn: words, of which paths may begin with a dash, then flags with their values.

    >>> command("evaluate", Path("-x")), command("train", "grid", "--resume", out=Path("a b"))
    ('sgfn evaluate ./-x', "sgfn train grid --resume --out 'a b'")
    """
    plain = [f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else word for word in words]
    return " ".join(["sgfn", *map(quoted, plain), *(flag(name, value) for name, value in flags.items())])
