"""What is known of letters and sequences before any score: similarities of amino acids, one-hot codes, compositions."""

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
BLOSUM62 = """
4
-1 5
-2 0 6
-2 -2 1 6
0 -3 -3 -3 9
-1 1 0 0 -3 5
-1 0 0 2 -4 2 5
0 -2 0 -1 -3 -2 -2 6
-2 0 1 -1 -3 0 0 -2 8
-1 -3 -3 -3 -1 -3 -3 -4 -3 4
-1 -2 -3 -4 -1 -2 -3 -4 -3 2 4
-1 2 0 -1 -3 1 1 -2 -1 -3 -2 5
-1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 5
-2 -3 -3 -3 -2 -3 -3 -3 -1 0 0 -3 0 6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4 7
1 -1 1 0 -1 0 0 0 -1 -2 -2 0 -1 -2 -1 4
0 -1 0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1 1 5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1 1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7
0 -3 -3 -3 -1 -2 -2 -3 -3 3 1 -2 1 -1 -2 -2 0 -3 -1 4
"""
"""Lower triangle in the order of `AMINO_ACIDS`. Henikoff and Henikoff (1992), Amino acid substitution matrices from
protein blocks, PNAS 89:10915."""

AXES = 8
"""Main axes of amino acids' similarities that short codes keep; they hold nine tenths of the variance."""


def is_protein(alphabet: str) -> bool:
    """Whether an alphabet is that of the twenty amino acids."""
    return set(alphabet) == set(AMINO_ACIDS)


def letter_codes(alphabet: str) -> Float64[Tensor, "S E"]:
    """A vector for each letter and for the blank, at mean squared distance 1 from each other.

    One-hot codes; for proteins followed by a part whose distances are those of BLOSUM62, so that similar amino acids
    lie together. The two parts are returned side by side, and `code_parts` says how wide the first is.
    """
    size = len(alphabet) + 1
    codes = torch.eye(size, dtype=torch.float64) / 2**0.5
    if not is_protein(alphabet):
        return codes
    similar = torch.zeros(size, size, dtype=torch.float64)
    similar[:-1, :-1] = _similarity_codes(alphabet)
    similar[-1, -1] = 0.5**0.5
    return torch.cat([codes, similar], 1)


def code_parts(alphabet: str) -> list[int]:
    """Widths of the parts of `letter_codes`."""
    return [len(alphabet) + 1] * (2 if is_protein(alphabet) else 1)


def _similarity_codes(alphabet: str) -> Float64[Tensor, "V V"]:
    """Points whose squared distances are those that BLOSUM62 implies, 1 on average (classical scaling)."""
    matrix = torch.zeros(20, 20, dtype=torch.float64)
    for row, line in enumerate(BLOSUM62.split("\n")[1:-1]):
        values = torch.tensor([float(value) for value in line.split()], dtype=torch.float64)
        matrix[row, : row + 1] = matrix[: row + 1, row] = values
    order = torch.tensor([AMINO_ACIDS.index(letter) for letter in alphabet])
    matrix = matrix[order][:, order]
    values, vectors = torch.linalg.eigh(matrix)
    points = vectors * values.clamp(min=0).sqrt()
    points = points - points.mean(0)
    distance = torch.cdist(points, points).square()
    return points / (distance.sum() / (20 * 19)).sqrt()


def short_codes(alphabet: str) -> Float64[Tensor, "S E"]:
    """A vector for each letter, and zero for the blank: one-hot, or the main axes of BLOSUM62 for amino acids."""
    size = len(alphabet)
    if not is_protein(alphabet):
        return torch.cat([torch.eye(size), torch.zeros(1, size)]).double()
    points = _similarity_codes(alphabet)
    axes = torch.linalg.eigh(points.T @ points)[1][:, -AXES:]
    found = points @ axes
    return torch.cat([found / found.square().sum(1).mean().sqrt(), torch.zeros(1, AXES)])


def one_hot(tokens: Int[Tensor, "N L"], symbols: int) -> Float[Tensor, "N L S"]:
    """One-hot codes in float32; what is not below `symbols` is zero everywhere."""
    return (tokens[..., None] == torch.arange(symbols, device=tokens.device)).float()


def composition(tokens: Int[Tensor, "N L"], letters: int) -> Float[Tensor, "N C"]:
    """Share of each letter and of each pair of neighbours, and the length over the number of columns."""
    codes = one_hot(tokens, letters)
    length = (tokens < letters).sum(1, keepdim=True).clamp(min=1)
    pairs = codes[:, :-1].transpose(1, 2) @ codes[:, 1:]  # N V V
    shares = torch.cat([codes.sum(1), pairs.flatten(1)], 1) / length
    return torch.cat([shares, length / tokens.shape[1]], 1)
