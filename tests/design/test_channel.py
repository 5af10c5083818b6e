"""A channel from the lab, and orders under it: fitted rates, files, expected scores, violations, plates."""

import json
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
import torch
from benchmarks.channels import simulated, true_rate
from indel_by_hand import law_by_hand, random_noise, read_by_hand
from torch.testing import assert_close

import sgfn
from sgfn.cli import main
from sgfn.config import NoiseConfig
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design import value_orders
from sgfn.design.channel import fit_channel, read_pairs
from sgfn.design.orders import channel_of
from sgfn.design.sessions import begin
from sgfn.design.space import OrderSpace
from sgfn.design.values import OrderValues, exact_values
from sgfn.envs import Constraints, IndelEnv
from sgfn.evaluation.orders import expectation, intact, violations
from sgfn.noise import Indel
from sgfn.noise.fitting import PairRows, fit_model, intervals
from sgfn.noise.indel import scaled
from sgfn.noise.indel_files import read_indel
from sgfn.noise.pairs import log_probability


def texts_of(pairs: PairRows) -> pd.DataFrame:
    rows = [["".join("ACGT"[i] for i in row if i < 4) for row in part.tolist()] for part in (pairs.orders, pairs.found)]
    return pd.DataFrame({"intended": rows[0], "realised": rows[1]})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    noise = Indel.uniform(4, substitution=0.03, deletion=0.02, insertion=0.01)
    return texts_of(simulated(noise, 200, 12, 0))


# the fit


def test_rates_of_simulated_pairs_are_found() -> None:
    noise = Indel.uniform(4, substitution=0.03, deletion=0.02, insertion=0.01)
    pairs = simulated(noise, 400, 12, 0)
    fit = fit_model(pairs, "uniform")
    found = {one.kind: one for one in intervals(fit, "ACGT")}
    for kind, one in found.items():
        assert one.low < true_rate(noise, kind, "") < one.high
        assert one.low < one.rate < one.high
        assert not one.low < 2.5 * true_rate(noise, kind, "") < one.high
    narrow = {one.kind: one for one in intervals(fit, "ACGT", 0.5)}
    assert all(narrow[kind].high - narrow[kind].low < one.high - one.low for kind, one in found.items())


def test_the_fit_has_the_highest_likelihood_and_simpler_channels_less(table: pd.DataFrame) -> None:
    fit = fit_channel(table)
    assert fit.model == "uniform"
    likelihood = {one.model: one.log_likelihood for one in fit.models}
    assert likelihood["none"] == likelihood["confusion"] == -torch.inf  # lengths differ
    assert likelihood["letter"] > likelihood["uniform"]
    assert min(one.bic for one in fit.models) == next(one.bic for one in fit.models if one.model == fit.model)
    _, rows = read_pairs(table)
    for factor in (0.9, 1.1):
        moved = float(log_probability(scaled(fit.noise, factor), rows.orders, rows.found) @ rows.counts)
        assert moved < likelihood["uniform"]


def test_equal_pairs_may_be_counted_and_letters_be_small(table: pd.DataFrame) -> None:
    small = table.head(40)
    counted = small.groupby(["intended", "realised"]).size().reset_index(name="count")
    wanted = fit_channel(small, model="uniform")
    for source in (counted, small.map(str.lower), counted.to_numpy().tolist()):
        found = fit_channel(source, model="uniform")
        assert [one.rate for one in found.rates] == pytest.approx([one.rate for one in wanted.rates], rel=1e-6)
        assert found.pairs == wanted.pairs == 40


def test_rates_by_letter_and_by_position_are_told_apart() -> None:
    by_letter = Indel(
        substitution=torch.eye(2, dtype=torch.float64),
        deletion=torch.tensor([0.2, 0.0], dtype=torch.float64),
        insertion=torch.zeros(2, dtype=torch.float64),
        inserted=torch.full((2,), 0.5, dtype=torch.float64),
    )
    pairs = simulated(by_letter, 150, 8, 1)
    texts = [["".join("ab"[i] for i in row if i < 2) for row in part.tolist()] for part in (pairs.orders, pairs.found)]
    rows = list(zip(*texts, strict=True))
    fit = fit_channel(rows)
    assert fit.model == "letter"
    rates = {(one.kind, one.of): one for one in fit.rates}
    assert rates["deletion", "a"].low < 0.2 < rates["deletion", "a"].high
    assert rates["deletion", "b"].rate < 0.02
    with pytest.raises(ValueError, match=r"^model 'position' needs intended sequences of one length"):
        fit_channel([*rows, ("ab", "ab")], model="position")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"^pairs must be rows"),
        ([("ACGT",)], r"^pairs must be rows"),
        ([("ACGT", "ACGT"), ("ACGT", "")], r"row 2, column 'realised': nothing is written here"),
        ([("ACGT", "ACGTACGTA")], r"row 1, column 'realised': 9 letters came out of 4, more than twice"),
        ([("ACGT", "ACGT", 0)], r"row 1, column 'count': '0' is no whole number"),
        ([("ACGT", "ACGT", 1.5)], r"row 1, column 'count': '1.5' is no whole number"),
        ([("AAAA", "AA!A")], r"row 1, column 'realised': 'AA!A' holds '!'"),
    ],
)
def test_pairs_that_no_channel_has_made_are_refused(rows: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_channel(rows, "dna")


# orders


def test_expected_scores_violations_and_intact_equal_enumeration() -> None:
    noise, flank = random_noise(2, 3, 4, flank=(1, 0)), (1, 0)
    rules = Constraints(forbid=("AAB",)).compile("AB", 3, 3)
    scores = {"".join(text): float(n) for n, text in enumerate(product("AB", repeat=3))}

    def predict(texts: list[str]) -> list[float]:
        return [scores[text] for text in texts]

    orders = ["ABA", "BBB", "AAA"]
    found = value_orders(orders, predict, noise=noise, alphabet="AB", automaton=rules, failed=-5.0)
    for value in found:
        order = tuple("AB".index(letter) for letter in value.order)
        expected = broken = 0.0
        law = law_by_hand(noise, order)
        for text, chance in law.items():
            read = "".join("AB"[i] for i in read_by_hand(text, 3, flank))
            expected += chance * scores.get(read, -5.0)
            broken += chance * (len(read) < 3 or "AAB" in read)
        assert value.expected == pytest.approx(expected)
        assert (value.error, value.violates) == (0.0, pytest.approx(broken))
        assert value.intact == pytest.approx(law[order])
    drawn = value_orders(orders, predict, noise=noise, alphabet="AB", failed=-5.0, exact_up_to=1, samples=4096)
    for one, other in zip(found, drawn, strict=True):
        assert other.error > 0.0
        assert abs(one.expected - other.expected) < 5 * other.error


def test_values_are_the_same_from_laws_tables_and_draws() -> None:
    noise = Indel.uniform(4, substitution=0.05, deletion=0.1, insertion=0.05)
    space = OrderSpace(alphabet="ACGT", min_length=4, max_length=4, noise=noise, failed=0.25)
    scores = torch.rand(1, 256, generator=torch.Generator().manual_seed(0))
    everything = space.env.all_objects()
    exact = exact_values(space, scores)[0]

    def predict(tokens: torch.Tensor) -> torch.Tensor:
        return scores[:, space.env.object_index(tokens)]

    drawn = OrderValues(space, predict, draws=512)(everything[::16])[0]
    assert (drawn - exact[::16]).abs().max() < 0.05
    assert isinstance(space.channel, IndelEnv)

    def score(rows: torch.Tensor) -> torch.Tensor:
        whole = space.channel.written(rows) == 4
        found = predict(torch.where(whole[:, None], rows, 0))[0]
        return torch.where(whole, found, 0.25)[:, None]

    few = expectation(space.channel, everything[::16], score)
    assert_close(few.mean[:, 0].float(), exact[::16], atol=1e-6, rtol=1e-5)
    assert few.exact


def test_orders_of_several_lengths_come_out_as_they_are_read() -> None:
    noise = Indel.uniform(2, deletion=0.2)
    channel = channel_of(["AB", "ABB"], noise, "AB")
    rows = channel.parse(["AB", "ABB"])
    assert intact(channel, rows).tolist() == pytest.approx([0.8**2, 0.8**3])
    found = expectation(channel, rows, lambda rows: channel.written(rows)[:, None].double())
    assert found.mean[:, 0].tolist() == pytest.approx([1.6, 2.4])
    rules = Constraints(max_run=1).compile("AB", 2, 3)
    broken = violations(channel, rows, rules)  # of AB one letter lacks; of ABB also AB, and BB breaks the rule
    assert broken.tolist() == pytest.approx([1 - 0.64, 1 - 2 * 0.8**2 * 0.2])


def test_a_plate_under_deletions_is_ranked_by_what_comes_out(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(4, (60, 4), generator=generator).unique(dim=0)
    texts = ["".join("ACGT"[i] for i in row) for row in rows.tolist()]
    table = pd.DataFrame({"sequence": texts, "score": [text.count("G") + 0.1 * text.count("A") for text in texts]})
    noise = Indel.uniform(4, deletion=0.1, insertion=0.02, flank=(2, 2, 2))
    designer = sgfn.Designer("dna", noise=noise, proxy="ridge").fit(table)
    plate = designer.propose(5)
    assert (plate.orders.expected < plate.orders.score).any()
    assert (plate.orders.error == 0).all()
    assert plate.orders.intact.between(0.88**4, 0.88**4 + 0.01).all()  # a letter lost may be one inserted
    designer.save(tmp_path / "1")
    again = sgfn.Designer.load(tmp_path / "1")
    assert isinstance(again.noise, Indel)
    assert again.noise.flank == (2, 2, 2)
    assert_close(again.noise.deletion, noise.deletion)


# the command line


def test_the_command_writes_a_noise_file_that_the_next_round_reads(
    table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table.to_csv(tmp_path / "pairs.csv", index=False)
    words = ["design", "channel", str(tmp_path / "pairs.csv"), "--out", str(tmp_path / "c")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"] == 200
    assert [row["kind"] for row in told["rates"][:3]] == ["substitution", "deletion", "insertion"]
    assert {path.name for path in (tmp_path / "c").iterdir()} >= {"channel.csv", "channel.json", "channel.png"}
    noise = read_indel(tmp_path / "c/channel.csv", "ACGT")
    assert float(noise.deletion[0]) == pytest.approx(told["rates"][1]["rate"], rel=1e-3)
    assert main(words) == 2  # a channel that is there is not replaced
    assert "add --overwrite" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert "BIC" in said
    assert f"--noise.kind indel --noise.file {tmp_path / 'c/channel.csv'}" in said
    flags = ["--noise.kind", "indel", "--noise.file", str(tmp_path / "c/channel.csv"), "--noise.spare", "0"]
    assert main(["tasks", "tfbind8", *flags, "--max-states", "10"]) == 0


def test_a_channel_of_few_letters_is_told_where_it_is_fitted_and_where_it_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.csv").write_text("intended,realised\nACGTACGT,ACGTACT\n")
    assert main(["design", "channel", str(tmp_path / "pairs.csv"), "--out", str(tmp_path / "c"), "--json"]) == 0
    told = capsys.readouterr()
    few = "fitted to 1 pair with 8 intended letters, fewer than 1,000: its rates are guesses"
    assert few in json.loads(told.out)["notice"]
    assert few in told.err
    file = tmp_path / "c" / "channel.csv"
    assert read_indel(file, "ACGT").notice.startswith(f"{file} was {few}")
    assert read_indel(file, "ACGT", flank=(0, 1), scale=2.0).notice  # whatever else is asked of it
    (tmp_path / "t.csv").write_text(
        "sequence,score\n" + "".join(f"{a}{b}CA,{i}\n" for i, (a, b) in enumerate(product("ACGT", repeat=2)))
    )
    session = begin(tmp_path / "t.csv", {}, NoiseConfig(kind="indel", file=file), ConstraintsConfig())
    assert any(few in notice for notice in session.notices)
    (tmp_path / "c" / "channel.json").write_text("[1]")  # of somebody else
    assert read_indel(file, "ACGT").notice == ""
    enough = fit_channel([("ACGT" * 5, "ACGT" * 5, 50)])
    assert (enough.letters, enough.notice) == (1000, "")
    assert "notice" not in enough.to_json()


def test_channels_are_listed_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["noise", "--json"]) == 0
    listed = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert listed["storage-goldman"]["deletion"] == 0.005
    assert main(["noise"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{name}: {row['about']}\n" in shown for name, row in listed.items())  # a line each, at any width
    assert max(map(len, shown.splitlines())) <= 100
    for name in ("epcr-taq", "nnk", "microchip"):
        assert main(["noise", name]) == 0
        assert listed[name]["source"] in capsys.readouterr().out
    assert main(["noise", "taq"]) == 2
    assert capsys.readouterr().err.startswith("sgfn: NAME 'taq' is unknown: choose from")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("ACGT", "AC-T")], "row 1, column 'realised': holds '-', and gaps are no letters"),
        ([("ACGT", "ACGT"), ("ACGT", "ACNT")], "row 2, column 'realised': holds 'N', and an unread base is no letter"),
        ([("ACGT", "ACGU")], "T and U are mixed"),
    ],
)
def test_signs_of_sequencers_are_no_letters(rows: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_channel(rows)
