"""Objects and scores as text, a whole block at a time: a row of bytes each, in which a zero stands for nothing."""

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from sgfn.envs import Env, GridEnv, SequenceEnv

Letters = UInt8[np.ndarray, "N _"]
COMMA, QUOTE = ord(","), ord('"')


def as_letters(texts: list[bytes]) -> Letters:
    """Texts one below the other."""
    return np.array(texts, dtype=np.bytes_).view(np.uint8).reshape(len(texts), -1)


def spell(codes: Int[np.ndarray, "N L"], tokens: list[str], between: str = "") -> Letters:
    """Tokens in a row; a code of -1, or one beyond the last token, is no token and must come after all that are.

    >>> spell(np.array([[0, 1], [1, -1]]), ["ab", "c"], "-").tobytes().replace(bytes(1), b".")
    b'.ab-c..c....'
    """
    table = as_letters([*((between + token).encode() for token in tokens), b""])
    letters = table.take(codes, 0)  # N L W
    letters[:, 0, : len(between.encode())] = 0
    return letters.reshape(len(codes), -1)


def spell_objects(env: Env, objects: Int[np.ndarray, "N O"]) -> Letters:
    """As `Env.decode` has it."""
    if isinstance(env, SequenceEnv):
        return spell(objects, list(env.alphabet))
    if isinstance(env, GridEnv):
        return spell(objects, [str(i) for i in range(env.side)], ",")
    return as_letters([text.encode() for text in env.decode(torch.from_numpy(objects))])


def spell_figures(values: Float[np.ndarray, " N"]) -> Letters:
    """Six digits, each value formatted once; by its bits, as minus zero equals zero."""
    bits, place = np.unique(values.view(np.int32), return_inverse=True)
    texts = b"%.6g\n" * len(bits) % tuple(bits.view(np.float32).tolist())
    return as_letters(texts.split(b"\n")).take(place, 0)


def quoted(letters: Letters) -> Letters:
    """With marks around texts that hold a comma."""
    commas = letters == COMMA
    if not commas.any():
        return letters
    marks = np.where(commas.any(1), QUOTE, 0).astype(np.uint8)[:, None]
    return np.concatenate([marks, letters, marks], 1)


def lines(*columns: Letters) -> bytes:
    """Rows of a CSV."""
    parts = []
    for column in columns:
        parts += [column, np.full((len(column), 1), COMMA, dtype=np.uint8)]
    parts[-1][:] = ord("\n")
    return written(np.concatenate(parts, 1))


def written(letters: Letters) -> bytes:
    """The text alone, one row after the other."""
    return letters.tobytes().translate(None, bytes(1))
