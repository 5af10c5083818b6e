"""Conversion of objects and scores to text, a block at a time: rows of bytes, in which a zero byte is padding."""

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from sgfn.envs import Env, GridEnv, SequenceEnv

TextRows = UInt8[np.ndarray, "N _"]
COMMA, QUOTE = ord(","), ord('"')


def text_rows(texts: list[bytes]) -> TextRows:
    """Texts as rows of bytes, padded with zeros."""
    return np.array(texts, dtype=np.bytes_).view(np.uint8).reshape(len(texts), -1)


def spell(codes: Int[np.ndarray, "N L"], tokens: list[str], between: str = "") -> TextRows:
    """Rows of bytes that spell rows of codes, with `between` between tokens.

    A code of -1, or one beyond the last token, is no token; such codes must come after all others.

    >>> spell(np.array([[0, 1], [1, -1]]), ["ab", "c"], "-").tobytes().replace(bytes(1), b".")
    b'.ab-c..c....'
    """
    table = text_rows([*((between + token).encode() for token in tokens), b""])
    letters = table.take(codes, 0)  # N L W
    letters[:, 0, : len(between.encode())] = 0
    return letters.reshape(len(codes), -1)


def spell_objects(env: Env, objects: Int[np.ndarray, "N O"]) -> TextRows:
    """Objects as rows of bytes, with the text that `Env.decode` gives."""
    if isinstance(env, SequenceEnv):
        return spell(objects, list(env.alphabet))
    if isinstance(env, GridEnv):
        return spell(objects, [str(i) for i in range(env.side)], ",")
    return text_rows([text.encode() for text in env.decode(torch.from_numpy(objects))])


def spell_figures(values: Float[np.ndarray, " N"]) -> TextRows:
    """Values as rows of bytes, with six digits.

    Each distinct value is formatted once; values are compared by their bits, as minus zero equals zero.
    """
    bits, place = np.unique(values.view(np.int32), return_inverse=True)
    texts = b"%.6g\n" * len(bits) % tuple(bits.view(np.float32).tolist())
    return text_rows(texts.split(b"\n")).take(place, 0)


def quoted(letters: TextRows) -> TextRows:
    """Rows of bytes with quotation marks around texts that hold a comma."""
    commas = letters == COMMA
    if not commas.any():
        return letters
    marks = np.where(commas.any(1), QUOTE, 0).astype(np.uint8)[:, None]
    return np.concatenate([marks, letters, marks], 1)


def csv_lines(*columns: TextRows) -> bytes:
    """Lines of a CSV from its columns, as bytes."""
    parts = []
    for column in columns:
        parts += [column, np.full((len(column), 1), COMMA, dtype=np.uint8)]
    parts[-1][:] = ord("\n")
    return joined_text(np.concatenate(parts, 1))


def joined_text(letters: TextRows) -> bytes:
    """Text of the rows, one after the other, without padding."""
    return letters.tobytes().translate(None, bytes(1))
