"""What only failed sequences have in common: against counting by hand, in a search, and in a plate of a designer."""

import itertools
import random

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sgfn.design.designer import Designer
from sgfn.design.failures import avoiding, failed_neighbours
from sgfn.design.space import OrderSpace
from sgfn.noise import UniformSlip

LETTERS = "ACGT"


def pairs_of(text: str) -> set[str]:
    return {a + b for a, b in itertools.pairwise(text)}


@given(st.lists(st.tuples(st.text("AB", min_size=1, max_size=4), st.sampled_from([0.0, 0.5, 1.0])), min_size=1))
@settings(max_examples=60, deadline=None)
def test_neighbours_are_those_of_failures_alone(rows: list[tuple[str, float]]) -> None:
    space = OrderSpace(alphabet="AB", min_length=1, max_length=4, noise=UniformSlip(alpha=0.0))
    texts, scores = [text for text, _ in rows], [score for _, score in rows]
    found = failed_neighbours(space.parse(texts), torch.tensor(scores), 2)
    bad = [text for text, score in rows if score == min(scores)]
    good = [text for text, score in rows if score > min(scores)]
    wanted = set().union(*map(pairs_of, bad)) - set().union(*map(pairs_of, good))
    if len(bad) < 2 or not good or not wanted:
        assert found is None
    else:
        assert found is not None
        assert {"AB"[a] + "AB"[b] for a, b in found.nonzero().tolist()} == wanted


def test_a_search_space_knows_them_unless_they_are_ignored() -> None:
    space = OrderSpace(alphabet=LETTERS, min_length=2, max_length=3, noise=UniformSlip(alpha=0.0))
    tokens, scores = space.parse(["ACG", "GG", "AGG"]), torch.tensor([1.0, 0.0, 0.0])
    tried = space.parse(["GGA", "AGA", "ACG", "AC"])
    assert avoiding(space, "avoid", tokens, scores).promising(tried).tolist() == [False, False, True, True]
    assert avoiding(space, "ignore", tokens, scores).promising(tried).all()
    assert avoiding(space, "avoid", tokens[:0], scores[:0]).avoided is None
    assert avoiding(space, "avoid", tokens, scores).allowed(tried).all()  # they are no constraint


def measured(sign: float) -> pd.DataFrame:
    """Sequences that are the better the more G they have, and fail with two of them side by side."""
    drawn = random.Random(0)
    texts = sorted({"".join(drawn.choices(LETTERS, k=12)) for _ in range(80)})
    scores = [-20.0 if "GG" in text else text.count("G") + 0.01 * text.count("A") for text in texts]
    return pd.DataFrame({"sequence": texts, "score": sign * np.array(scores)})


@pytest.mark.parametrize("minimise", [False, True])
def test_plates_avoid_what_only_failures_have(minimise: bool) -> None:
    data = measured(-1.0 if minimise else 1.0)
    chosen = {"proxy": "ridge", "acquisition": "ucb", "kappa": 9.0, "reach": 0, "sampler": "off", "minimise": minimise}
    plates = {how: Designer("dna", failures=how, **chosen).fit(data).propose(48) for how in ("avoid", "ignore")}
    shares = {how: np.mean(["GG" in order for order in plate.orders.order]) for how, plate in plates.items()}
    assert shares["avoid"] == 0 < shares["ignore"]
    assert "without 1 pairs of neighbouring letters that only failures have" in plates["avoid"].note
    assert "failures" not in plates["ignore"].note
    with pytest.raises(ValueError, match="failures"):
        Designer("dna", failures="hide")
