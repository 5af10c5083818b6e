"""A cheap reward on the host, for measuring what leaving the device costs: strings to scores by NumPy."""

import numpy as np

MOTIF = b"ACGTTGCA"


def best_match(texts: list[str]) -> np.ndarray:
    """Share of a motif's letters that the best place in each string has, plus one eighth; strings of one length.

    >>> best_match(["AACGTTGCAA", "CCCCCCCCCC"]).tolist()
    [1.125, 0.375]
    """
    letters = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)
    windows = np.lib.stride_tricks.sliding_window_view(letters, len(MOTIF), axis=1)
    return (windows == np.frombuffer(MOTIF, np.uint8)).mean(-1).max(-1) + 1 / len(MOTIF)
