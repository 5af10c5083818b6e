"""Conversion of objects and scores to text, a block at a time: rows of bytes, in which a zero byte is padding."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from sgfn.config.csv_cells import FORMULA, MARK, SPLITTING, marked
from sgfn.envs import Env, GridEnv, SequenceEnv
from sgfn.evaluation.orders import intended_letters

TextRows = UInt8[np.ndarray, "N _"]
COMMA, QUOTE, APOSTROPHE = ord(","), ord('"'), ord(MARK)
SPLITS = SPLITTING.encode()
"""Bytes of which a text that holds one must stand in quotes."""
ORIGINS = ("predicted", "measured")
"""What is said of a score, by whether it was measured."""
RUNS = "".join(letter for letter in FORMULA if letter.isascii()).encode()
"""Bytes with which a formula begins, to a spreadsheet."""
UNSURE = bytes({APOSTROPHE, *(letter.encode()[0] for letter in FORMULA if not letter.isascii())})
"""First bytes after which it takes more than one to tell."""


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


def spell_intended(env: Env, intended: Int[Tensor, "N T"]) -> TextRows:
    """Intentions as text, up to the first stop or wait; on a grid, or where they are no letters, their numbers."""
    if isinstance(env, SequenceEnv) and env.by_letter:
        ends = env.stop or not env.appends
        return spell_objects(env, (intended_letters(env, intended) if ends else intended).numpy())
    return spell(intended.numpy(), [str(i) for i in range(env.actions)], " ")


def texts(rows: TextRows) -> list[str]:
    """The texts of rows of bytes."""
    return [row.tobytes().translate(None, bytes(1)).decode() for row in rows]


def spell_figures(values: Float[np.ndarray, " N"]) -> TextRows:
    """Values as rows of bytes, with six digits.

    Each distinct value is formatted once; values are compared by their bits, as minus zero equals zero.
    """
    bits, place = np.unique(values.view(np.int32), return_inverse=True)
    texts = b"%.6g\n" * len(bits) % tuple(bits.view(np.float32).tolist())
    return text_rows(texts.split(b"\n")).take(place, 0)


def cells(letters: TextRows) -> TextRows:
    """Rows of bytes as cells of a CSV: marked where a spreadsheet would run them, in quotes where one would split."""
    return quoted(marked_rows(letters))


def marked_rows(letters: TextRows) -> TextRows:
    """Rows of bytes with an apostrophe before texts that a spreadsheet would run, as `csv_cells.marked` puts it."""
    first = _first(letters)
    runs = _among(first, RUNS)
    for row in np.flatnonzero(_among(first, UNSURE)).tolist():
        text = joined_text(letters[row : row + 1]).decode()
        runs[row] = marked(text) != text
    return np.concatenate([_where(runs, APOSTROPHE), letters], 1) if runs.any() else letters


def quoted(letters: TextRows) -> TextRows:
    """Rows of bytes with quotation marks around texts that hold a comma or the like, and those within doubled."""
    found = _among(letters, SPLITS)
    if not found.any():
        return letters
    splits, inner = np.asarray(found.any(1)), letters == QUOTE
    if inner.any():
        letters = np.stack([letters, _where(inner, QUOTE)[:, 0]], 2).reshape(len(letters), -1)
    return np.concatenate([_where(splits, QUOTE), letters, _where(splits, QUOTE)], 1)


def _first(letters: TextRows) -> UInt8[np.ndarray, " N"]:
    """The first byte of each text, zero of an empty one."""
    if not letters.shape[1] or letters[:, 0].all():
        return letters[:, 0] if letters.shape[1] else np.zeros(len(letters), dtype=np.uint8)
    return letters[np.arange(len(letters)), (letters != 0).argmax(1)]


def _among(letters: UInt8[np.ndarray, "*any"], wanted: bytes) -> Bool[np.ndarray, "*any"]:
    """Where one of the wanted bytes stands; mostly there is none, which is found out faster."""
    data, found = letters.tobytes(), np.zeros(letters.shape, dtype=bool)
    for byte in wanted:
        if byte in data:
            found |= letters == byte
    return found


def _where(condition: Bool[np.ndarray, " N *rest"], byte: int) -> UInt8[np.ndarray, " N 1 *rest"]:
    """A byte where something holds, padding elsewhere."""
    return np.where(condition, byte, 0).astype(np.uint8)[:, None]


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
