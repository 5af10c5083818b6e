"""Noise from every kind of file that is read."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from table_kinds import WRITERS, first_row, write_kind
from torch.testing import assert_close

from sgfn.noise import ByPosition, read_confusion, read_rates


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_a_matrix(tmp_path: Path, kind: str) -> None:
    """Letters that are digits may be numbers in the file."""
    frame = pd.DataFrame({"": [1, 0], "1": [0.9, 0.2], "0": [0.1, 0.8]})
    noise = read_confusion(write_kind(tmp_path, frame, kind), "01")
    assert_close(noise.matrix, torch.tensor([[0.8, 0.2], [0.1, 0.9]], dtype=torch.float64))
    wrong = write_kind(tmp_path, frame.replace(0.9, 0.7), kind)
    with pytest.raises(
        ValueError, match=rf"^noise\.file \S+, {first_row(kind)}: row '1' sums to 0\.8, it must sum to 1$"
    ):
        read_confusion(wrong, "01")


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_rates(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame({"position": [1, 2, 3], "alpha": [0, 0.5, 0.25]})
    assert read_rates(write_kind(tmp_path, frame, kind), 3) == ByPosition(alphas=(0.0, 0.5, 0.25))
    for column, wrong, message in (("position", [2, 3, 4], "expected 1, got 2"), ("alpha", [1, 0, 0], "must lie in")):
        file = write_kind(tmp_path, frame.assign(**{column: wrong}), kind)
        with pytest.raises(ValueError, match=rf"^noise\.file \S+, {first_row(kind)}, column '{column}': {message}"):
            read_rates(file, 3)
