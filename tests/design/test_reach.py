"""How far from what was measured the orders of a run may be, where all of them are ranked."""

import numpy as np
import pandas as pd
import pytest

import sgfn
from sgfn.design.ordering import order_sheet
from sgfn.landscapes.measured import MeasuredLandscape
from sgfn.landscapes.measurements import read_measurements
from sgfn.landscapes.proxies import fit_proxy


@pytest.fixture(scope="module")
def landscape() -> MeasuredLandscape:
    """Scores of 40 sequences near AAAAA, so that the best of all orders are far from them."""
    generator = np.random.default_rng(0)
    texts = sorted({"".join(generator.choice(list("ACGT"), 5, p=[0.7, 0.1, 0.1, 0.1])) for _ in range(40)})
    scores = np.array([10.0 + text.count("G") - text.count("T") for text in texts])
    found = read_measurements(pd.DataFrame({"sequence": texts, "score": scores}), "dna")
    proxy = fit_proxy(texts, scores, alphabet="ACGT", kind="ridge")
    return MeasuredLandscape(found, length=5, unseen="proxy", proxy=proxy)


def test_a_reach_that_is_given_holds_where_all_orders_are_ranked(landscape: MeasuredLandscape) -> None:
    env, known = sgfn.Sequences("dna", 5), landscape.offline_objects()
    everything = env.all_objects()
    apart = (everything[:, None] != known).sum(-1).amin(-1)
    free, near = order_sheet(env, landscape, 12), order_sheet(env, landscape, 12, reach=1)
    assert (free.listed, free.reach, free.considered) == (True, None, 4**5)
    assert (near.listed, near.reach, near.considered) == (True, 1, int((apart <= 1).sum()))
    assert max(value.distance or 0 for value in free.values) > 1
    assert {value.distance for value in near.values} == {1}
    worth = landscape.scores(everything[apart == 1]).sort(descending=True).values[:12]
    found = landscape.scores(env.parse([value.order for value in near.values]))
    np.testing.assert_allclose(found.sort(descending=True).values, worth, rtol=1e-6)
    assert near.how == f"all {near.considered} orders within 1 edit of what was measured"
    assert near.note.startswith("orders lie 1 edit from the nearest measured sequence")
    assert "edits from the nearest measured sequence" in free.note
    assert order_sheet(env, landscape, 12, reach=0).values == free.values


def test_a_reach_in_which_there_is_no_order_is_refused(landscape: MeasuredLandscape) -> None:
    rules = sgfn.Constraints(pattern="TTTTT")
    env = sgfn.Sequences("dna", 5, constraints=rules)
    assert order_sheet(env, landscape, 1, reach=5).reach == 5
    with pytest.raises(ValueError, match="no order is within --reach 1 of what was measured: give a larger one"):
        order_sheet(env, landscape, 1, reach=1)


def near_library(lengths: tuple[int, int]) -> pd.DataFrame:
    """Sequences of mostly A, of which the best orders are far."""
    generator = np.random.default_rng(1)
    sizes = generator.integers(lengths[0], lengths[1] + 1, size=30)
    texts = sorted({"".join(generator.choice(list("ACGT"), size, p=[0.7, 0.1, 0.1, 0.1])) for size in sizes})
    return pd.DataFrame({"sequence": texts, "score": [text.count("G") - text.count("T") for text in texts]})


@pytest.mark.parametrize("lengths", [(5, 5), (3, 5)])
def test_a_plate_of_a_list_keeps_to_the_reach_that_is_given(lengths: tuple[int, int]) -> None:
    frame = near_library(lengths)
    free = sgfn.Designer("dna", proxy="ridge").fit(frame).propose(10)
    near = sgfn.Designer("dna", proxy="ridge", reach=1).fit(frame).propose(10)
    assert free.how == near.how == "exact"
    assert free.orders.distance.astype(int).max() > 1
    assert {*near.orders.distance.astype(int)} == {1}
    assert "orders within 1 edit of what was measured were ranked" in near.note
    same = sgfn.Designer("dna", proxy="ridge", reach=0).fit(frame).propose(10)
    assert same.orders.order.tolist() == free.orders.order.tolist()
    rules = sgfn.Constraints(pattern="T" * 5)
    with pytest.raises(ValueError, match="no order is within --reach 1 of what was measured: give a larger one"):
        sgfn.Designer("dna", length=5, proxy="ridge", reach=1, constraints=rules).fit(frame).propose(1)


def test_a_flow_network_that_takes_no_part_is_told() -> None:
    plate = sgfn.Designer("dna", proxy="ridge", sampler="on").fit(near_library((5, 5))).propose(3)
    assert "no flow network takes part where all orders are ranked" in plate.note
