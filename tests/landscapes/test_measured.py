"""MeasuredLandscape landscapes against a dictionary and against brute force."""

import itertools
import math
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from sgfn.config.tasks import TableUnseen
from sgfn.envs import SequenceEnv
from sgfn.landscapes import measured
from sgfn.landscapes.measured import MULTIPLIERS, UNSEEN, MeasuredLandscape, distinct_weights, row_hash
from sgfn.landscapes.measured import Rule as Unseen
from sgfn.landscapes.measurements import ALPHABETS, Measurements
from sgfn.landscapes.proxies import fit_proxy
from sgfn.landscapes.proxies.files import read_proxy
from sgfn.noise import UniformSlip

FILE = Path("table.csv")


BY_TABLE: tuple[Unseen, ...] = ("lowest", "nearest")
"""Rules that need nothing but the table."""


def measurements(table: dict[str, float], alphabet: str) -> Measurements:
    scores = np.array(list(table.values()), dtype=np.float64)
    return Measurements(file=FILE, alphabet=alphabet, sequences=list(table), scores=scores)


def environment(alphabet: str, shortest: int, longest: int) -> SequenceEnv:
    noise = UniformSlip(alpha=0.0)
    return SequenceEnv(length=longest, alphabet=alphabet, stop=True, min_length=shortest, noise=noise)


def by_hand(text: str, table: dict[str, float], unseen: Unseen, decay: float, length: int) -> float:
    """The rule, one string at a time, in float64."""
    if text in table:
        return table[text]
    if unseen == "lowest":
        return min(table.values())
    far = {x: sum(a != b for a, b in zip(x.ljust(length), text.ljust(length), strict=True)) for x in table}
    near = min(far.values())
    return decay**near * max(score for x, score in table.items() if far[x] == near)


@cache
def peptides(count: int, seed: int = 0) -> dict[str, float]:
    """Random peptides of 5 to 12 letters."""
    random = np.random.default_rng(seed)
    letters, found = np.array(list(ALPHABETS["protein"])), {}
    while len(found) < count:
        found["".join(random.choice(letters, random.integers(5, 13)))] = float(random.random())
    return found


# Look-up


@pytest.mark.parametrize("unseen", BY_TABLE)
def test_every_string_of_a_small_space(unseen: Unseen) -> None:
    """Mixed lengths, 2 to 4: all 336 strings, a third of them measured, against a dictionary."""
    env = environment("ACGT", 2, 4)
    objects = env.all_objects()
    texts = env.decode(objects)
    random = np.random.default_rng(0)
    table = {texts[i]: float(random.random()) + 0.1 for i in random.permutation(len(texts))[:112]}
    landscape = MeasuredLandscape(measurements(table, "ACGT"), length=4, unseen=unseen)
    wanted = torch.tensor([by_hand(text, table, unseen, 0.5, 4) for text in texts])
    found = landscape.scores(objects)
    assert_close(found, wanted, rtol=1e-6, atol=0)
    seen = landscape.measured(objects)
    assert seen.tolist() == [text in table for text in texts]
    assert torch.equal(found[seen], wanted[seen])  # a measured score comes back to the last bit of float32
    assert not torch.equal(landscape.scores(objects.roll(1, 0)), found)
    assert torch.equal(landscape.scores(objects.reshape(2, -1, 4)), found.reshape(2, -1))
    assert landscape.scores(objects[:0]).shape == (0,)
    assert found.dtype == torch.float32


def test_a_prefix_is_another_sequence() -> None:
    landscape = MeasuredLandscape(measurements({"AC": 0.5, "ACA": 0.75, "C": 0.25}, "AC"), length=4, unseen="lowest")
    rows = torch.tensor([[0, 1, 2, 2], [0, 1, 0, 2], [0, 1, 0, 0], [0, 2, 2, 2], [1, 2, 2, 2]])
    assert landscape.scores(rows).tolist() == [0.5, 0.75, 0.25, 0.25, 0.25]
    assert landscape.measured(rows).tolist() == [True, True, False, False, True]


def test_facts() -> None:
    table = {text: float(i) for i, text in enumerate(map("".join, itertools.product("AC", repeat=4)))}  # 0 to 15
    landscape = MeasuredLandscape(measurements(table, "AC"), length=4, unseen="lowest")
    assert (landscape.maximum, landscape.lowest, landscape.blank) == (15.0, 0.0, 2)
    assert landscape.mode_level == 14.0  # the 0.9 quantile lies at 13.5
    env = environment("AC", 4, 4)
    assert torch.equal(landscape.offline_objects(), env.parse(list(table)))
    assert landscape.scores(landscape.offline_objects()).tolist() == list(table.values())
    assert set(UNSEEN) | {"auto"} == set(get_args(TableUnseen))


@pytest.mark.parametrize(
    ("scores", "level"),
    [([0.0] * 30 + [0.5], 0.5), ([0.3] * 4, 0.3), ([0.1], 0.1), ([0.1, 0.7], 0.7), ([0.0] * 30 + [0.2, 0.9], 0.2)],
)
def test_an_unseen_sequence_is_no_mode(scores: list[float], level: float) -> None:
    """Most assays end in a long row of zeros; the lowest score is a mode only where there is no other."""
    texts = map("".join, itertools.product("AC", repeat=5))
    landscape = MeasuredLandscape(measurements(dict(zip(texts, scores, strict=False)), "AC"), length=5, unseen="lowest")
    assert landscape.mode_level == level
    assert (landscape.scores(landscape.offline_objects()) >= landscape.mode_level).any()


# Unseen sequences


def test_nearest_by_hand() -> None:
    table = {"ACGT": 0.8, "ACGA": 0.4, "TT": 0.1, "GGGG": 0.32}
    landscape = MeasuredLandscape(measurements(table, "ACGT"), length=5, unseen="nearest", decay=0.5)
    wanted = {
        "ACGT": 0.8,
        "ACGC": 0.4,  # one letter from two sequences: the better one counts
        "ACG": 0.4,  # a blank is a letter
        "ACGTA": 0.4,
        "ACTA": 0.2,  # one letter from the worse sequence only
        "TTA": 0.05,  # below the lowest measured one
        "GGGC": 0.16,
    }
    env = environment("ACGT", 1, 5)
    found = landscape.scores(env.parse(list(wanted)))
    assert found.tolist() == pytest.approx(list(wanted.values()), rel=1e-6)
    steep = MeasuredLandscape(measurements(table, "ACGT"), length=5, unseen="nearest", decay=0.25)
    assert steep.scores(env.parse(["ACGC", "ACGT"])).tolist() == pytest.approx([0.2, 0.8])


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, float], list[str], int]:
    texts = st.text("ABC", min_size=1, max_size=5)
    scores = st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0]) | st.floats(0.0, 100.0)  # ties wanted
    table = draw(st.dictionaries(texts, scores, min_size=1, max_size=12))
    return table, draw(st.lists(texts, min_size=1, max_size=12)), draw(st.integers(5, 7))


@PROPERTY
@given(case=cases(), decay=st.sampled_from([0.0, 0.5, 0.9, 1.0]), cells=st.sampled_from([1, 64, 100, 2**22]))
def test_nearest_equals_brute_force(case: tuple[dict[str, float], list[str], int], decay: float, cells: int) -> None:
    """Whatever the size of the blocks; without decay all neighbours are as good, with all of it none is."""
    table, texts, length = case
    rows = environment("ABC", 1, length).parse(texts)
    landscape = MeasuredLandscape(measurements(table, "ABC"), length=length, unseen="nearest", decay=decay)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "CELLS", cells)
        found = landscape.scores(rows)
    wanted = torch.tensor([by_hand(text, table, "nearest", decay, length) for text in texts])
    assert_close(found, wanted, rtol=1e-6, atol=1e-30)
    assert 0.0 <= float(found.min()) <= float(found.max()) <= landscape.maximum
    if decay == 0.0:
        assert not found[~landscape.measured(rows)].any()


@pytest.mark.parametrize("magnitude", [1e-30, 1e-6, 1.0, 1e30])
def test_float32_keeps_six_digits(magnitude: float) -> None:
    table = {text: score * magnitude for text, score in peptides(40).items()}
    texts = [*table, *peptides(40, seed=1)]
    for unseen in BY_TABLE:
        landscape = MeasuredLandscape(measurements(table, ALPHABETS["protein"]), length=12, unseen=unseen, decay=0.9)
        found = landscape.scores(environment(ALPHABETS["protein"], 5, 12).parse(texts)).double()
        wanted = torch.tensor([by_hand(text, table, unseen, 0.9, 12) for text in texts], dtype=torch.float64)
        assert_close(found, wanted, rtol=1e-6, atol=0)


# Hashes


def test_hash_equals_the_polynomial() -> None:
    rows = torch.randint(0, 21, (50, 12), generator=torch.Generator().manual_seed(0))
    found = row_hash(rows, distinct_weights(rows))
    wanted = [sum(x * MULTIPLIERS[0] ** (i + 1) for i, x in enumerate(row)) % 2**64 for row in rows.tolist()]
    assert [value % 2**64 for value in found.tolist()] == wanted
    assert all(multiplier % 2 == 1 and multiplier < 2**64 for multiplier in MULTIPLIERS)


def test_an_unseen_row_with_a_measured_hash_gets_no_measured_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """With multiplier 1 all permutations collide; what is compared in the end is the row."""
    monkeypatch.setattr(measured, "MULTIPLIERS", (1,))
    landscape = MeasuredLandscape(measurements({"AAC": 0.9, "C": 0.2, "CCC": 0.4}, "ACG"), length=3, unseen="lowest")
    rows = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 2]])
    assert landscape.weights.tolist() == [1, 1, 1]
    assert row_hash(rows, landscape.weights).tolist() == [1, 1, 1, 3, 3]
    assert landscape.scores(rows).tolist() == pytest.approx([0.9, 0.2, 0.2, 0.4, 0.2])


def test_measured_rows_that_collide_get_another_multiplier(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"AC": 0.5, "CA": 0.25, "CC": 1.0}
    monkeypatch.setattr(measured, "MULTIPLIERS", (1, 3))
    landscape = MeasuredLandscape(measurements(table, "AC"), length=2, unseen="lowest")
    assert landscape.weights.tolist() == [3, 9]
    assert landscape.scores(environment("AC", 1, 2).parse([*table, "A"])).tolist() == [0.5, 0.25, 1.0, 0.25]
    monkeypatch.setattr(measured, "MULTIPLIERS", (1,))
    with pytest.raises(ValueError, match="hold a sequence twice"):
        MeasuredLandscape(measurements(table, "AC"), length=2, unseen="lowest")


# Speed and devices


class Count(TorchDispatchMode):
    """Counts operations; one that reads a value on the host is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert "_local_scalar_dense" not in str(func), "a host read"
        assert not any(name in str(func) for name in ("nonzero", "masked_select", "unique")), "a shape from data"
        self.calls += 1
        return func(*args, **(kwargs or {}))


def calls(landscape: MeasuredLandscape, objects: Tensor) -> int:
    with Count() as count:
        landscape.scores(objects)
    return count.calls


@pytest.mark.parametrize("unseen", BY_TABLE)
def test_five_thousand_peptides(unseen: Unseen) -> None:
    """The work is a fixed number of operations, with no read on the host, however many objects there are."""
    table = peptides(5000)
    landscape = MeasuredLandscape(measurements(table, ALPHABETS["protein"]), length=12, unseen=unseen)
    env = environment(ALPHABETS["protein"], 5, 12)
    known = env.parse(list(table))
    assert torch.equal(landscape.scores(known), torch.tensor(list(table.values())))
    assert calls(landscape, known[:2]) == calls(landscape, known[:2000]) <= {"lowest": 20, "nearest": 100}[unseen]
    others = env.parse([text for text in peptides(200, seed=1) if text not in table])
    assert not landscape.measured(others).any()
    assert (landscape.scores(others) < landscape.maximum).all()
    with Count(), pytest.raises(AssertionError, match="a host read"):
        float(known.max())  # and the test can fail


@pytest.mark.parametrize("unseen", BY_TABLE)
def test_everything_moves(unseen: Unseen) -> None:
    """Tensors without data: whatever stayed behind on the CPU, or needs a value, fails."""
    landscape = MeasuredLandscape(measurements(peptides(10), ALPHABETS["protein"]), length=12, unseen=unseen)
    rows = landscape.offline_objects()
    landscape.to(torch.device("meta"))
    found = landscape.scores(rows.to("meta"))
    assert (found.device.type, found.shape, found.dtype) == ("meta", (10,), torch.float32)
    landscape.weights = landscape.weights.new_ones(12, device="cpu")
    with pytest.raises(RuntimeError):
        landscape.scores(rows.to("meta"))


# Mistakes


def test_wrong_lengths_and_decays() -> None:
    table = measurements({"ACG": 1.0, "A": 0.5}, "ACGT")
    with pytest.raises(ValueError, match=r"^table\.csv: the longest sequence has 3 letters, the task only 2$"):
        MeasuredLandscape(table, length=2, unseen="lowest")
    for decay in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"^table\.decay must lie in \[0, 1\], got "):
            MeasuredLandscape(table, length=3, unseen="nearest", decay=decay)
    assert MeasuredLandscape(table, length=3, unseen="nearest", decay=1.0).maximum == 1.0


def test_a_proxy_for_what_was_not_measured(tmp_path: Path) -> None:
    """Measured rows keep their score, others get the proxy's, which is kept in a file and never below zero."""
    texts = ["".join(letters) for letters in itertools.product("ACG", repeat=4)]
    truth = {text: 1.0 + text.count("A") + 2 * text.count("C") for text in texts}
    table = measurements({text: truth[text] for text in texts[::2]}, "ACG")
    proxy = fit_proxy(table.sequences, table.scores, alphabet="ACG", kind="ridge")
    landscape = MeasuredLandscape(table, length=4, unseen="proxy", proxy=proxy)
    rows = proxy.tokens(texts)
    scores, known = landscape.scores(rows), landscape.measured(rows)
    wanted = torch.tensor([truth[text] for text in texts])
    assert_close(scores[known], wanted[known])
    assert_close(scores[~known], proxy.mean_tokens(rows[~known]).float())
    assert (scores - wanted).abs().max() < 1.0
    sd = landscape.uncertainty(rows.view(3, -1, 4)).flatten()
    assert sd[known].tolist() == [0.0] * len(table.sequences)
    assert_close(
        sd[~known], torch.tensor(proxy.predict([t for t, m in zip(texts, known, strict=True) if not m]).sd).float()
    )
    assert sd[~known].min() > 0
    assert not MeasuredLandscape(table, length=4, unseen="lowest").uncertainty(rows).any()
    assert landscape.maximum == math.inf
    assert known.sum() == len(table.sequences)
    kept = landscape.fitted_files(tmp_path)
    again = read_proxy(kept["proxy.file"], table)
    assert_close(again.mean_tokens(rows), proxy.mean_tokens(rows), rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match=r"was fitted to the letters ACG, not ACGT"):
        read_proxy(kept["proxy.file"], measurements({"ACGT": 1.0}, "ACGT"))
    kept["proxy.file"].write_bytes(b"not tensors")
    with pytest.raises(ValueError, match=r"^proxy\.file .*proxy\.safetensors: no proxy of ours"):
        read_proxy(kept["proxy.file"], table)
    with pytest.raises(ValueError, match=r"needs a proxy"):
        MeasuredLandscape(table, length=4, unseen="proxy")
    low = MeasuredLandscape(
        table,
        length=4,
        unseen="proxy",
        proxy=fit_proxy(texts, -wanted.numpy().astype(float), alphabet="ACG", kind="ridge"),
    )
    assert low.scores(rows[~known]).max() == 0.0
