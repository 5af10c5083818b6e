"""Insertions and deletions: the pair model, whole orders and their values against enumeration by hand."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from exact_tables import chi_square
from hypothesis import given, settings
from hypothesis import strategies as st
from indel_by_hand import cycle_by_hand, law_by_hand, random_noise, read_by_hand, rows_of_texts
from torch.testing import assert_close

from sgfn.config import NoiseConfig
from sgfn.noise import Indel, make_noise
from sgfn.noise.indel import scaled
from sgfn.noise.indel_files import read_indel, write_indel
from sgfn.noise.making import preset_noise
from sgfn.noise.open_loop import cycle_draws, plain_draws, realise, realise_once, string_laws, value_table
from sgfn.noise.pairs import event_counts, log_probability
from sgfn.noise.presets import CHANNELS, substitution_rows


def every_order(vocab: int, length: int) -> list[tuple[int, ...]]:
    return list(product(range(vocab), repeat=length))


# the kernel


@pytest.mark.parametrize("cycles", [None, 3])
def test_a_cycle_is_what_its_rules_say(cycles: int | None) -> None:
    noise = random_noise(2, cycles, 0)
    open_, last, full = torch.tensor([[True] * 7, [True] * 3 + [False] * 4, [False] * 7])
    names = [(0,), (1,), (), (0, 0), (0, 1), (1, 0), (1, 1)]
    for t in range(3 if cycles else 1):
        position = torch.tensor(t)
        for letter in range(2):
            wanted = cycle_by_hand(noise, t, letter)
            row = noise.kernel(open_, torch.float64, position)[letter]
            assert_close(row, torch.tensor([wanted[name] for name in names], dtype=torch.float64))
            cut = noise.kernel(last, torch.float64, position)[letter]  # of two letters the first is written
            first = [wanted[k,] + wanted[k, 0] + wanted[k, 1] for k in range(2)]
            assert_close(cut[:3], torch.tensor([*first, wanted[()]], dtype=torch.float64))
            assert cut[3:].sum() == 0
            assert noise.kernel(full, torch.float64, position)[letter].tolist() == [0, 0, 1, 0, 0, 0, 0]
        assert noise.kernel(open_, torch.float64, position)[2].tolist() == [0, 0, 1, 0, 0, 0, 0]  # to wait
    assert (noise.kernel(open_, torch.float64, torch.tensor(0))[:2].sum(-1) - 1).abs().max() < 1e-12


# the pair model


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), vocab=st.integers(2, 3), by_cycle=st.booleans())
def test_the_pair_model_equals_enumeration(seed: int, vocab: int, by_cycle: bool) -> None:
    length = 3
    noise = random_noise(vocab, length if by_cycle else None, seed)
    order = every_order(vocab, length)[seed % vocab**length]
    law = law_by_hand(noise, order)
    texts = [*law]
    rows = rows_of_texts(texts, vocab, 2 * length)
    found = log_probability(noise, torch.tensor([order] * len(texts)), rows).exp()
    assert_close(found, torch.tensor([law[text] for text in texts], dtype=torch.float64), atol=1e-12, rtol=1e-9)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-12)
    other = random_noise(vocab, length if by_cycle else None, seed + 1)
    assert (log_probability(other, torch.tensor([order] * len(texts)), rows).exp() - found).abs().max() > 1e-4


def test_orders_of_several_lengths_and_long_ones_are_computed_together() -> None:
    noise = random_noise(3, None, 1)
    orders = [(0, 1, 2, 0), (1,), (2, 2)]
    texts = [(0, 2), (1, 1), (0, 1, 2)]
    found = log_probability(noise, rows_of_texts(orders, 3, 4), rows_of_texts(texts, 3, 5)).exp()
    wanted = [law_by_hand(noise, order)[text] for order, text in zip(orders, texts, strict=True)]
    assert_close(found, torch.tensor(wanted, dtype=torch.float64))
    impossible = log_probability(noise, torch.tensor([[0]]), torch.tensor([[0, 0, 0]]))
    assert impossible.tolist() == [-torch.inf]  # three letters out of one
    long = torch.randint(3, (2, 400), generator=torch.Generator().manual_seed(0))
    assert log_probability(noise, long, 2 - long).isfinite().all()  # far below the least number there is


def test_expected_events_equal_enumeration() -> None:
    noise, order, text = random_noise(2, 3, 3), (0, 1, 1), (1, 0)
    counts = event_counts(noise, torch.tensor([order]), torch.tensor([text]), torch.tensor([2.0]).double())
    cycles = [cycle_by_hand(noise, t, letter) for t, letter in enumerate(order)]
    total, deleted, doubled, same = 0.0, [0.0] * 3, [0.0] * 3, [0.0] * 3
    for parts in product(*cycles):
        if sum(parts, ()) != text:
            continue
        chance = float(torch.tensor([cycles[t][part] for t, part in enumerate(parts)], dtype=torch.float64).prod())
        total += chance
        for t, part in enumerate(parts):
            deleted[t] += chance * (part == ())
            doubled[t] += chance * (len(part) == 2)
            same[t] += chance * (part[:1] == (order[t],))
    assert counts.log_likelihood == pytest.approx(2 * float(torch.tensor(total).double().log()))
    for t, letter in enumerate(order):
        assert float(counts.deleted[t, letter]) == pytest.approx(2 * deleted[t] / total)
        assert float(counts.doubled[t, letter]) == pytest.approx(2 * doubled[t] / total)
        assert float(counts.written[t, letter, letter]) == pytest.approx(2 * same[t] / total)
        assert float(counts.deleted[t, 1 - letter]) == 0.0


# whole orders


@pytest.mark.parametrize("flank", [(), (1,), (1, 0, 0)])
@pytest.mark.parametrize(("length", "most"), [(1, 0.4), (3, 0.4), (3, 0.0)])
def test_values_of_all_orders_equal_enumeration(flank: tuple[int, ...], length: int, most: float) -> None:
    noise = random_noise(2, length, 5, flank=flank)
    if not most:
        noise = Indel(substitution=noise.substitution, deletion=noise.deletion, insertion=0 * noise.insertion,
                      inserted=noise.inserted, flank=flank)  # fmt: skip
    scores = torch.rand(2**length, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    orders, wanted = every_order(2, length), []
    for order in orders:
        value = 0.0
        for text, chance in law_by_hand(noise, order).items():
            read = read_by_hand(text, length, flank)
            number = sum(letter * 2 ** (length - 1 - at) for at, letter in enumerate(read))
            value += chance * (float(scores[number]) if len(read) == length else -3.0)
        wanted.append(value)
    found = value_table(noise, length, scores, -3.0)
    assert_close(found, torch.tensor(wanted, dtype=torch.float64), atol=1e-12, rtol=1e-9)
    assert (value_table(scaled(noise, 0.5), length, scores, -3.0) - found).abs().max() > 1e-3


def test_the_law_of_what_is_read_equals_enumeration_and_draws_follow_it() -> None:
    noise, order, length = random_noise(2, None, 7), (0, 1, 1), 3
    found = torch.cat(string_laws(noise, torch.tensor([order]), length), 1)[0]
    texts = [text for size in range(length + 1) for text in every_order(2, size)]
    wanted = dict.fromkeys(texts, 0.0)
    for text, chance in law_by_hand(noise, order).items():
        wanted[text[:length]] += chance
    assert_close(found, torch.tensor([wanted[text] for text in texts], dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    orders = torch.tensor([order]).repeat(20_000, 1)
    for rows in (
        realise_once(noise, orders, plain_draws(20_000, length, generator), length),
        realise(noise, orders[:1], plain_draws(20_000, length, generator), length)[:, 0],
    ):
        place = {text: number for number, text in enumerate(texts)}
        drawn = torch.tensor([place[tuple(letter for letter in row if letter < 2)] for row in rows.tolist()])
        assert chi_square(drawn.bincount(minlength=len(texts)), found) > 1e-3
        other = torch.cat(string_laws(scaled(noise, 0.8), torch.tensor([order]), length), 1)[0]
        assert chi_square(drawn.bincount(minlength=len(texts)), other) < 1e-6


def test_orders_meet_the_same_errors_in_one_draw() -> None:
    noise = Indel.uniform(4, deletion=0.3, spare=0)
    rows = realise(noise, torch.tensor([[0, 1, 2, 3], [3, 3, 3, 3]]), cycle_draws(64, 4, torch.Generator()), 4)
    assert torch.equal((rows[:, 0] < 4).sum(-1), (rows[:, 1] < 4).sum(-1))
    short = realise(noise, torch.tensor([[0, 4, 4, 4]]), cycle_draws(64, 4, torch.Generator()), 4)
    assert int((short < 4).sum(-1).max()) == 1  # blanks of an order are not made


# presets and files


def test_presets_have_the_rates_of_their_sources() -> None:
    rates = {name: (p.substitution, p.insertion, p.deletion) for name, p in CHANNELS.items()}
    assert rates["storage-average"] == (0.0048, 0.0011, 0.0078)
    assert rates["storage-erlich"] == (0.003, 0.002, 0.002)
    assert rates["storage-goldman"] == (0.001, 0.0005, 0.005)
    assert CHANNELS["column-oligo"].per_kilobase == pytest.approx(5.0)
    assert CHANNELS["microchip"].per_kilobase == pytest.approx(14.25)
    assert CHANNELS["microchip-corrected"].per_kilobase == pytest.approx(0.53)
    shares = CHANNELS["epcr-taq"].shares
    assert shares["AG"] + shares["TC"] == pytest.approx(0.642)
    assert shares["AT"] + shares["TA"] == pytest.approx(0.194)
    assert shares["GA"] + shares["CT"] == pytest.approx(0.045)
    nnk = CHANNELS["nnk"].residues
    assert sum(nnk.values()) == pytest.approx(1.0)
    assert (nnk["L"], nnk["A"], nnk["W"], nnk["*"]) == (3 / 32, 2 / 32, 1 / 32, 1 / 32)
    assert all(preset.source for preset in CHANNELS.values())


def test_a_preset_errs_as_often_as_it_says_on_dna_and_rna() -> None:
    for letters in ("ACGT", "ACGU"):
        noise = preset_noise("epcr-taq", letters, scale=10.0)
        wrong = 1.0 - noise.substitution.diagonal()
        assert float(wrong.mean() + noise.deletion.mean()) == pytest.approx(0.1, abs=1e-9)
        assert float(noise.substitution[0, 2]) == pytest.approx(4 * 0.1 * 0.321)
    assert make_noise(NoiseConfig(preset="microchip"), "ACGU", 9).summary == preset_noise("microchip").summary
    for config in (NoiseConfig(kind="uniform", preset="microchip"), NoiseConfig(kind="hidden", preset="microchip")):
        with pytest.raises(ValueError, match=r"^noise.preset is given and noise.kind is '(uniform|hidden)'"):
            make_noise(config, "ACGU", 9)
    assert replace(NoiseConfig(), preset="microchip") == NoiseConfig(preset="microchip", kind="indel")
    for wrong, message in (("nnk", "is a library"), ("microchp", "did you mean 'microchip'")):
        with pytest.raises(ValueError, match=message):
            preset_noise(wrong)
    with pytest.raises(ValueError, match=r"is of the letters ACGT or ACGU, and the task has AB$"):
        substitution_rows(CHANNELS["microchip"], "AB")
    with pytest.raises(ValueError, match=r"^noise\.scale 80 makes an error rate of 1 or more"):
        preset_noise("epcr-taq", scale=80.0)


@pytest.mark.parametrize("cycles", [None, 4])
def test_a_noise_file_is_read_as_it_was_written(cycles: int | None, tmp_path: Path) -> None:
    noise = random_noise(4, None, 2)
    if cycles:
        noise = read_indel(
            _written(tmp_path, "position,deletion,substitution\n1,.1,0\n2,.2,.3\n3,0,0\n4,.3,0\n"), "ACGT"
        )
        assert noise.deletion[:, 1].tolist() == [0.1, 0.2, 0.0, 0.3]
        assert float(noise.substitution[1, 0, 0]) == pytest.approx(0.7)
    write_indel(tmp_path / "n.csv", noise, "ACGT")
    found = make_noise(NoiseConfig(kind="indel", file=tmp_path / "n.csv"), "ACGT", 4)
    assert isinstance(found, Indel)
    for name in ("substitution", "deletion", "insertion", "inserted"):
        assert_close(getattr(found, name), getattr(noise, name), atol=1e-9, rtol=0)
    half = make_noise(NoiseConfig(kind="indel", file=tmp_path / "n.csv", scale=0.5, flank="ac"), "ACGT", 4)
    assert isinstance(half, Indel)
    assert_close(half.deletion, noise.deletion / 2, atol=1e-9, rtol=0)
    assert half.flank == (0, 1)


def _written(folder: Path, text: str) -> Path:
    (folder / "m.csv").write_text(text)
    return folder / "m.csv"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (",a,c\na,80,20\nc,10,90\n", "percentages"),
        (",A,C\nA,8,2\nC,100,900\n", "counts"),
        (",A,C\nA,0.8,0.21\nC,.1,.9\n", "rounded numbers"),
        (",A,C\nA,0.8,0.2\nC,.1,.9\n", ""),
    ],
)
def test_matrices_in_other_units_are_normalised_with_a_notice(text: str, told: str, tmp_path: Path) -> None:
    noise = make_noise(NoiseConfig(kind="confusion", file=_written(tmp_path, text)), "AC", 3)
    assert (f": {told} were made probabilities" in noise.notice) == bool(told)
    matrix = noise.kernel(torch.ones(2, dtype=torch.bool), torch.float64)
    assert_close(matrix.sum(-1), torch.ones(2).double())
    assert_close(matrix, torch.tensor([[0.8, 0.2], [0.1, 0.9]]).double(), atol=0.01, rtol=0)
