"""Files of function rewards in a run folder: tracebacks of failed calls, and scores that need not be asked again."""

import json
import math
import os
import traceback
from collections.abc import Mapping
from pathlib import Path

from sgfn.config.files import naming
from sgfn.config.reading import LARGEST_JSON, check_file, lines_of, read_text

LOG, SCORES = "reward.log", "scores.jsonl"
LONGEST_LOG = 2**24
"""Bytes of a log after which no more tracebacks are written."""


def append(path: Path, text: str) -> None:
    """Add text to a file of the run; a link or a pipe is not followed."""
    with naming(path):
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(path, how, 0o666), "a", encoding="utf-8") as file:
            file.write(text)


def log_failure(path: Path, what: str, error: BaseException) -> None:
    """Add a failed call and its traceback to a log that stays bounded."""
    if not path.exists() or path.stat().st_size < LONGEST_LOG:
        append(path, f"{what}\n{''.join(traceback.format_exception(error))}\n")


def append_scores(path: Path, name: str, scores: Mapping[str, float]) -> None:
    """Add scores of a function to a file: a line that names the function first, then one line for each string."""
    head = "" if path.exists() else json.dumps({"function": name}) + "\n"
    if scores and (not path.exists() or path.stat().st_size < LARGEST_JSON):
        append(path, head + "".join(json.dumps([text, score]) + "\n" for text, score in scores.items()))


def read_scores(path: Path, name: str, most: int) -> dict[str, float]:
    """Scores that were kept for a function, at most so many; lines of another one or cut short are passed over."""
    if not path.is_file() or check_file(path, str(path)) > 2 * LARGEST_JSON:
        return {}
    lines = lines_of(read_text(path, str(path)))
    if _parsed(next(lines, "")) != {"function": name}:
        return {}
    found: dict[str, float] = {}
    for line in lines:
        row = _parsed(line)
        fits = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], float | int)
        if fits and math.isfinite(row[1]) and row[1] >= 0 and len(found) < most:
            found[row[0]] = float(row[1])
    return found


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
