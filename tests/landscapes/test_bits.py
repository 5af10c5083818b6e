"""The bit-sequence task: distances by hand and by dynamic programming, tokens and bits, rewards, modes."""

import math
import re
from typing import get_args

import pytest
import torch
from exact_tables import PROPERTY
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from sgfn.config import RewardConfig
from sgfn.envs import SequenceEnv
from sgfn.landscapes.base import log_reward
from sgfn.landscapes.bits import DISTANCES, WORDS, Bits, Distance, check, edit_distances, hamming_distances
from sgfn.noise import UniformSlip


def bits_of(*texts: str) -> Tensor:
    return torch.tensor([[int(c) for c in text] for text in texts])


def distance_by_table(x: list[int], y: list[int]) -> int:
    """Wagner and Fischer's table, cell by cell."""
    row = list(range(len(y) + 1))
    for i, a in enumerate(x, start=1):
        above, row = row, [i]
        for j, b in enumerate(y, start=1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def table_of(texts: Tensor, patterns: Tensor) -> list[list[int]]:
    return [[distance_by_table(x, y) for y in patterns.tolist()] for x in texts.tolist()]


def random_bits(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(2, shape, generator=torch.Generator().manual_seed(seed))


# Distances


@st.composite
def rows(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Some rows of one length, some of another."""
    widths = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    strings = [st.lists(st.lists(st.integers(0, 1), min_size=w, max_size=w), min_size=1, max_size=4) for w in widths]
    return torch.tensor(draw(strings[0])), torch.tensor(draw(strings[1]))


@PROPERTY
@given(pair=rows())
def test_edit_distance_equals_the_table(pair: tuple[Tensor, Tensor]) -> None:
    texts, patterns = pair
    assert edit_distances(texts, patterns).tolist() == table_of(texts, patterns)


@pytest.mark.parametrize(("n", "m"), [(59, 60), (60, 61), (120, 120), (61, 119), (121, 180), (40, 181)])
def test_edit_distance_carries_across_machine_words(n: int, m: int) -> None:
    """Patterns around multiples of 60 bits: a lost carry or a stray high bit would show."""
    patterns = torch.cat([random_bits(2, m), torch.ones(1, m).long(), torch.zeros(1, m).long()])
    texts = torch.cat([random_bits(2, n, seed=1), torch.ones(1, n).long(), torch.zeros(1, n).long()])
    found = edit_distances(texts, patterns)
    assert found.tolist() == table_of(texts, patterns)
    assert found[2:, 2:].tolist() == [[abs(n - m), max(n, m)], [max(n, m), abs(n - m)]]


HAND = [
    ("0" * 120, "0" * 120, 0, 0),
    ("0" * 120, "1" * 120, 120, 120),
    ("01" * 60, "10" * 60, 2, 120),  # drop the first bit, add one at the end
    ("1" + "0" * 119, "0" * 119 + "1", 2, 2),
    ("00001111" * 15, "0001111" + "00001111" * 14 + "1", 2, 29),  # one bit lost early, all later runs shifted
    ("0" * 60 + "1" * 60, "1" * 60 + "0" * 60, 120, 120),
    ("0" * 40 + "1" * 40 + "0" * 40, "1" * 40 + "0" * 80, 80, 80),
]


@pytest.mark.parametrize(("x", "y", "edit", "hamming"), HAND)
def test_distances_by_hand(x: str, y: str, edit: int, hamming: int) -> None:
    assert edit_distances(bits_of(x), bits_of(y)).item() == edit_distances(bits_of(y), bits_of(x)).item() == edit
    assert hamming_distances(bits_of(x), bits_of(y)).item() == hamming


@PROPERTY
@given(seed=st.integers(0, 10_000))
def test_edit_distance_is_a_metric_below_hamming(seed: int) -> None:
    x = random_bits(5, 70, seed=seed)
    d = edit_distances(x, x)
    assert torch.equal(d, d.T)
    assert not d.diagonal().any()
    assert (d[:, None] <= d[:, :, None] + d[None]).all()  # d(i, k) <= d(i, j) + d(j, k)
    assert (d <= hamming_distances(x, x)).all()
    assert torch.equal((d == 0), (x[:, None] == x).all(-1))


def test_choices_by_name_are_the_literal() -> None:
    assert set(DISTANCES) == set(get_args(Distance))


# Tokens and bits


def test_tokens_are_read_most_significant_bit_first() -> None:
    assert Bits(length=8, k=4, modes=1).bit_strings(torch.tensor([[10, 3]])) == ["10100011"]
    assert Bits(length=8, k=2, modes=1).bit_strings(torch.tensor([[2, 2, 0, 3]])) == ["10100011"]
    assert Bits(length=8, k=8, modes=1).bit_strings(torch.tensor([[0b10100011]])) == ["10100011"]
    assert Bits(length=8, k=4, modes=1).bit_strings(torch.tensor([[3, 10]])) != ["10100011"]


@PROPERTY
@given(k=st.sampled_from([1, 2, 3, 4, 5, 6, 8]), seed=st.integers(0, 1000))
def test_tokens_and_bits_go_both_ways(k: int, seed: int) -> None:
    landscape = Bits(length=120, k=k, modes=2)
    bits = random_bits(2, 3, 120, seed=seed)
    tokens = landscape.tokens_of(bits)
    assert tokens.shape == (2, 3, landscape.tokens) == (2, 3, 120 // k)
    assert 0 <= int(tokens.min()) <= int(tokens.max()) < landscape.vocab == 2**k
    assert torch.equal(landscape.bits_of(tokens), bits)
    text = "".join(str(b) for b in bits[0, 0].tolist())
    assert landscape.bit_strings(tokens[0])[0] == text
    assert tokens[0, 0].tolist() == [int(text[i : i + k], 2) for i in range(0, 120, k)]


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_alphabet_gives_one_letter_per_token(k: int) -> None:
    landscape = Bits(k=k)
    assert len(set(landscape.alphabet)) == landscape.vocab == len(landscape.alphabet)
    env = SequenceEnv(length=landscape.tokens, alphabet=landscape.alphabet, noise=UniformSlip(alpha=0.0))
    texts = env.decode(landscape.modes)
    assert torch.equal(env.parse(texts), landscape.modes)
    strings = landscape.bit_strings(landscape.modes)
    if k == 1:
        assert texts == strings
    if k == 4:
        assert texts == [f"{int(s, 2):030x}" for s in strings]  # hexadecimal
    if k == 8:
        assert texts[0][0] == chr(0x2800 + int(strings[0][:8], 2))


# Modes


def test_modes_are_words_drawn_by_the_seed() -> None:
    before = torch.get_rng_state()
    first, again, other = Bits(k=4), Bits(k=4), Bits(k=4, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.modes, again.modes)
    assert not torch.equal(first.modes, other.modes)
    texts = first.bit_strings(first.modes)
    assert len(set(texts)) == 60
    assert {text[i : i + 8] for text in texts for i in range(0, 120, 8)} == set(WORDS)
    assert Bits(k=2).bit_strings(Bits(k=2).modes) == texts  # the set does not depend on how it is written
    counts = [sum(text[8 * i : 8 * i + 8] == word for text in texts for i in range(15)) for word in WORDS]
    assert sum(counts) == 900
    assert max(abs(count - 180) for count in counts) < 60  # five standard deviations of a uniform draw


def test_all_words_are_modes_when_as_many_are_asked_for() -> None:
    landscape = Bits(length=8, k=8, modes=5)
    assert sorted(landscape.bit_strings(landscape.modes)) == sorted(WORDS)


# Rewards


@pytest.mark.parametrize("distance", get_args(Distance))
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_reward_equals_the_formula_on_every_byte(k: int, distance: Distance) -> None:
    landscape = Bits(length=8, k=k, modes=3, distance=distance)
    env = SequenceEnv(length=landscape.tokens, alphabet=landscape.alphabet, noise=UniformSlip(alpha=0.0))
    objects = env.all_objects()
    bits, modes = landscape.bits_of(objects), landscape.bits_of(landscape.modes)
    table = {"edit": table_of(bits, modes), "hamming": (bits[:, None] != modes).sum(-1).tolist()}[distance]
    wanted = [math.exp(1 - min(row) / 8) for row in table]
    scores = landscape.scores(objects)
    assert_close(scores, torch.tensor(wanted))
    best = objects[scores == scores.max()]
    assert sorted(best.tolist()) == sorted(landscape.modes.tolist())  # the maximum is reached exactly at the modes
    assert float(scores.max()) == pytest.approx(landscape.maximum) == pytest.approx(math.e)
    assert float(scores.min()) >= 1.0
    assert torch.equal(landscape.scores(objects.reshape(2, 128, -1)), scores.reshape(2, 128))
    other = Bits(length=8, k=k, modes=3, seed=2, distance=distance)
    assert not torch.equal(other.scores(objects), scores)


def test_edit_and_hamming_rewards_differ() -> None:
    """A mode with its first bit lost: two edits, but many flips."""
    edit, hamming = Bits(k=4), Bits(k=4, distance="hamming")
    bits = edit.bits_of(edit.modes)
    lost = edit.tokens_of(torch.cat([bits[:, 1:], 1 - bits[:, -1:]], 1))
    assert float(edit.scores(lost).min()) >= math.exp(1 - 2 / 120) - 1e-6
    assert float(hamming.scores(lost).max()) < math.exp(1 - 10 / 120)
    assert_close(hamming.scores(hamming.modes), edit.scores(edit.modes))


def test_log_reward_is_one_minus_the_distance() -> None:
    landscape = Bits(k=4, modes=6)
    objects = landscape.tokens_of(random_bits(5, 120))
    nearest = torch.tensor(table_of(landscape.bits_of(objects), landscape.bits_of(landscape.modes))).amin(-1)
    assert_close(log_reward(landscape.scores(objects), RewardConfig()), 1 - nearest / 120)
    assert_close(log_reward(landscape.scores(landscape.modes), RewardConfig()), torch.ones(6))


# Modes found


def test_modes_found_by_hand() -> None:
    landscape = Bits(k=1)
    modes = landscape.modes
    assert int(landscape.modes_found(modes[:7], within=0)) == 7
    assert int(landscape.modes_found(modes[[4, 4, 4]], within=0)) == 1
    assert int(landscape.modes_found(modes.reshape(6, 10, 120), within=0)) == 60
    assert int(landscape.modes_found(modes[:0], within=120)) == 0
    near = modes[:1].clone()
    near[:, [20, 60, 100]] = 1 - near[:, [20, 60, 100]]
    away = distance_by_table(near[0].tolist(), modes[0].tolist())
    assert int(landscape.modes_found(near, within=away)) == 1
    assert int(landscape.modes_found(near, within=away - 1)) == 0
    assert int(landscape.modes_found(near, within=120)) == 60
    assert int(landscape.modes_found(near)) == sum(d <= 28 for d in table_of(near, modes)[0])


def test_modes_lie_near_each_other() -> None:
    """The figures of the module's text: a count within 28 edits finds neighbours too."""
    landscape = Bits(k=4)
    apart = landscape.distances(landscape.modes)
    assert int((apart + 120 * torch.eye(60).long()).min()) == 18
    assert float((apart <= 28).sum(-1).float().mean()) == pytest.approx(2.17, abs=0.01)


@pytest.mark.parametrize(("distance", "within"), [("edit", 28), ("hamming", 30)])
def test_mode_level_is_the_published_distance(distance: Distance, within: int) -> None:
    landscape = Bits(k=4, distance=distance)
    assert landscape.within == within
    assert math.exp(1 - (within + 1) / 120) < landscape.mode_level < math.exp(1 - within / 120)
    assert bool((landscape.scores(landscape.modes) >= landscape.mode_level).all())
    objects = landscape.tokens_of(random_bits(200, 120))
    assert not bool((landscape.scores(objects) >= landscape.mode_level).any())  # not found by chance
    assert int(landscape.modes_found(objects)) == 0
    assert int(landscape.modes_found(objects, within=60)) == 60


# How it is used


def test_scoring_never_asks_for_a_value() -> None:
    """On the meta device a tensor has a shape and no values: what works there can be captured in a CUDA graph."""
    landscape = Bits(length=64, k=4)
    landscape.to(torch.device("meta"))
    objects = torch.zeros(16, 16, dtype=torch.int64, device="meta")
    assert landscape.scores(objects).shape == (16,)
    assert landscape.modes_found(objects).shape == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 12}, "length must be a multiple of 8 (modes are built of bytes), got 12"),
        ({"length": 0}, "length must lie in [8, inf), got 0"),
        ({"k": 0}, "k must lie in [1, 8], got 0"),
        ({"k": 10}, "k must lie in [1, 8], got 10"),
        ({"k": 7}, "k must divide length (120), got 7"),
        ({"modes": 0}, "modes must lie in [1, inf), got 0"),
        ({"length": 8, "modes": 6}, "modes must be at most 5 (5 words, 1 per string), got 6"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Bits(**settings)


def test_a_distance_misspelt_gets_the_nearest_name() -> None:
    """Asked of the check, since the types are checked here before."""
    check(120, 4, 60, "edit")
    with pytest.raises(ValueError, match=r"^distance 'hammin' is unknown: .* did you mean 'hamming'\?$"):
        check(120, 4, 60, "hammin")


def test_objects_of_a_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^objects must hold 30 tokens of 4 bits, got 29$"):
        Bits(k=4).scores(torch.zeros(2, 29, dtype=torch.int64))


def test_at_exponent_three_the_target_is_nearly_uniform() -> None:
    """What docs/peers.md says: no string is more than about 2.6 times as likely as a typical random one."""
    landscape = Bits(k=4)
    objects = torch.randint(16, (2000, 30), generator=torch.Generator().manual_seed(0))
    typical = float(landscape.scores(objects).mean())
    assert typical == pytest.approx(1.97, abs=0.005)
    assert (landscape.maximum / typical) ** 3 == pytest.approx(2.6, abs=0.05)
    assert (landscape.maximum / typical) ** 100 > 1e12  # an exponent that would tell strings apart


def test_how_far_chance_and_noise_are_from_a_mode() -> None:
    """What docs/results.md says of the published study: distances in edits, and that 28 is where a mode is found."""
    bits, generator = Bits(k=4), torch.Generator().manual_seed(0)
    uniform = torch.randint(bits.vocab, (400, bits.tokens), generator=generator)
    meant = bits.modes[torch.randint(60, (400,), generator=generator)]
    slips = torch.rand(meant.shape, generator=generator) < 0.5
    realised = torch.where(slips, torch.randint(bits.vocab, meant.shape, generator=generator), meant)
    near = {name: bits.distances(x).amin(-1).float() for name, x in (("uniform", uniform), ("meant", realised))}
    assert 37.5 < near["uniform"].mean() < 39.5
    assert 26.5 < near["meant"].mean() < 28.5
    assert bits.within == 28
    assert bits.distances(bits.modes[:3]).amin(-1).tolist() == [0, 0, 0]
