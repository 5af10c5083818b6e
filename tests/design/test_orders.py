"""Values of orders against enumeration: our noises, a user's own, a confusion file, and noise that reads states."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from own_noise import AllOrNothing, Rotation

from sgfn.config import NoiseConfig
from sgfn.design.orders import OrderValue, PairwiseScore, channel_of, to_frame, value_orders, values_in
from sgfn.envs import Constraints, SequenceEnv, laws
from sgfn.evaluation.orders import expectation, order_draws, order_policy, realised
from sgfn.noise import ByPosition, HiddenRate, Noise, UniformSlip, make_noise

DNA = "ACGT"


def predict(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Any function will do: letters count by position, and the deviation by the number of A."""
    mean = [sum((i + 1) * DNA.index(c) for i, c in enumerate(text)) ** 1.5 for text in texts]
    return np.array(mean), np.array([0.1 + text.count("A") for text in texts])


def confusion(folder: Path) -> Noise:
    file = folder / "confusion.csv"
    file.write_text("letter,A,C,G,T\nA,0.9,0.1,0,0\nC,0,0.8,0.1,0.1\nG,0.05,0,0.9,0.05\nT,0,0,0,1\n")
    return make_noise(NoiseConfig(kind="confusion", file=file), DNA, 4)


NOISES = {
    "slip": UniformSlip(alpha=0.2),
    "none": UniformSlip(alpha=0.0),
    "position": ByPosition(alphas=(0.0, 0.1, 0.2, 0.3)),
    "hidden": HiddenRate(mean=0.2, concentration=3.0),
    "own": Rotation(),
    "own hidden": AllOrNothing(),
}


def by_enumeration(env: SequenceEnv, order: str, accepted: set[str]) -> dict[str, float]:
    """Value, uncertainty and chances of one order from the law of everything that may come out."""
    row = env.parse([order])
    law = laws.law(env, lambda states: order_policy(env, row.expand(len(states), -1))(states).exp()).numpy()
    texts = env.decode(env.all_objects())
    mean, sd = predict(texts)
    broken = np.array([text not in accepted for text in texts])
    found = {"expected": law @ mean, "sd": law @ sd, "intact": law[texts.index(order)], "violates": law @ broken}
    return {name: float(value) for name, value in found.items()}


@pytest.mark.parametrize("name", [*NOISES, "confusion"])
def test_values_are_those_of_enumeration(name: str, tmp_path: Path) -> None:
    noise = confusion(tmp_path) if name == "confusion" else NOISES[name]
    made = Constraints(forbid=("AC", "GG"), max_run=2).compile(DNA, 4, 4)
    accepted = set(made.texts(made.all_rows()))
    orders = ["AGTC", "CATG", "AAGT"]
    env = SequenceEnv(length=4, alphabet=DNA, noise=noise)
    known = ["AGTT", "TTTT"]
    found = value_orders(orders, predict, noise=noise, alphabet=DNA, automaton=made, measured=known)
    drawn = value_orders(orders, predict, noise=noise, alphabet=DNA, samples=4000, exact_up_to=0)
    for value, guess in zip(found, drawn, strict=True):
        wanted = by_enumeration(env, value.order, accepted)
        assert {field: getattr(value, field) for field in wanted} == pytest.approx(wanted, rel=1e-6, abs=1e-12)
        assert value.error == 0.0
        assert value.score, value.score_sd == pytest.approx([float(part[0]) for part in predict([value.order])])
        assert guess.violates == 0.0
        assert guess.expected == pytest.approx(value.expected, abs=5 * guess.error + 1e-9)
        assert (guess.error > 0) == (name != "none")
        assert guess.error < 1.0
    assert [(value.nearest, value.distance) for value in found] == [("AGTT", 1), ("AGTT", 3), ("AGTT", 2)]
    if name != "none":
        assert found[0].expected != pytest.approx(found[0].score, abs=1e-3)


@pytest.mark.parametrize("noise", [UniformSlip(alpha=0.3), UniformSlip(alpha=0.3, stop=True)])
def test_orders_of_several_lengths(noise: UniformSlip) -> None:
    made = Constraints(max_run=2).compile("ACGT", 2, 4)
    env = SequenceEnv(length=4, alphabet=DNA, noise=noise, stop=True, min_length=2)
    accepted = set(made.texts(made.all_rows()))
    found = value_orders(["AC", "ACGT", "TTA"], predict, noise=noise, alphabet=DNA, automaton=made, measured=["ACG"])
    for value in found:
        wanted = by_enumeration(env, value.order, accepted)
        assert {field: getattr(value, field) for field in wanted} == pytest.approx(wanted, rel=1e-6)
    assert [value.distance for value in found] == [1, 1, 3]


class AfterA(SequenceEnv):
    """After an A every second letter is replaced by a T."""

    def kernel(self, state, dtype=torch.float32, rate=None):
        last = self.last(state)
        wrong = ((last == 0) & (self.written(state) > 0)).to(dtype)[..., None, None] * 0.5
        eye = torch.eye(self.actions, dtype=dtype)
        return (1 - wrong) * eye + wrong * torch.eye(self.actions, dtype=dtype)[3].expand_as(eye)


def test_noise_that_reads_the_state() -> None:
    env = AfterA(length=4, alphabet=DNA, noise=UniformSlip(alpha=0.0), constraints=Constraints(forbid=("TT",)))
    assert env.automaton is not None
    accepted = set(env.automaton.texts(env.automaton.all_rows()))
    (value,) = values_in(env, ["AACT"], predict)
    wanted = by_enumeration(env, "AACT", accepted)
    assert value.expected == pytest.approx(wanted["expected"])
    assert value.intact == pytest.approx(0.25)
    assert value.violates == pytest.approx(wanted["violates"], abs=0.05)
    assert wanted["violates"] > 0.05


def test_orders_meet_the_same_errors_however_many_there_are() -> None:
    env = channel_of(["AAAA"], UniformSlip(alpha=0.5), DNA)
    draws = order_draws(env, 40, seed=3)
    rows = env.parse(["AAAA", "CCCC", "AAAA"])
    together, alone = realised(env, rows, draws), realised(env, rows[:1], draws)
    assert torch.equal(together[:, 0], together[:, 2])
    assert torch.equal(together[:, :1], alone)
    assert not torch.equal(together[:, 0], together[:, 1])
    parts = torch.cat([realised(env, rows, part) for part in draws.split(7)])
    assert torch.equal(parts, together)
    score = lambda rows: rows[:, :1].double()  # noqa: E731
    first = expectation(env, rows, score, draws=64, seed=1, limit=0).mean
    assert torch.equal(first[0], expectation(env, rows[:1], score, draws=64, seed=1, limit=0).mean[0])


@pytest.mark.parametrize("name", ["slip", "hidden", "own"])
def test_pairwise_scores_are_exact_at_any_length(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    single, pair = torch.randn(4, 4, generator=generator), torch.randn(4, 4, 4, 4, generator=generator)
    score = PairwiseScore(DNA, single, pair, 0.5)
    orders = ["ACGT", "TTAC"]
    options = {"noise": NOISES[name], "alphabet": DNA}
    found = value_orders(orders, score, **options)
    wanted = value_orders(orders, lambda texts: score(texts), **options)  # opaque: by a table
    assert [v.expected for v in found] == pytest.approx([v.expected for v in wanted], abs=1e-9)
    assert [v.expected for v in found] != pytest.approx([v.score for v in found], abs=1e-2)


def test_long_orders_of_an_additive_score() -> None:
    long = PairwiseScore(DNA, torch.randn(24, 4, generator=torch.Generator().manual_seed(0)))
    (value,) = value_orders(["ACGT" * 6], long, noise=UniformSlip(alpha=0.1), alphabet=DNA)
    (guess,) = value_orders(["ACGT" * 6], lambda t: long(t), noise=UniformSlip(alpha=0.1), alphabet=DNA, samples=500)
    assert value.error == 0.0
    assert guess.expected == pytest.approx(value.expected, abs=5 * guess.error)


def test_predictions_of_any_kind_and_wrong_ones() -> None:
    options = {"noise": UniformSlip(alpha=0.1), "alphabet": DNA}

    class Prediction:
        mean, sd = np.array([2.0]), np.array([0.5])

    (value,) = value_orders(["AC"], lambda texts: (np.full(len(texts), 2.0), np.full(len(texts), 0.5)), **options)
    assert (round(value.expected, 9), round(value.sd, 9), value.nearest) == (2.0, 0.5, None)
    (same,) = value_orders(["AC"], lambda texts: Prediction(), noise=UniformSlip(alpha=0.0), alphabet=DNA)
    assert (same.expected, same.sd) == (2.0, 0.5)
    for wrong in ([1.0], [float("nan")] * 16):
        with pytest.raises(ValueError, match="predict must give"):
            value_orders(["AC"], lambda texts, wrong=wrong: wrong, **options)
    with pytest.raises(ValueError, match=r"entry 1 \('AZ'\)"):
        value_orders(["AZ"], predict, **options)
    assert value_orders([], predict, **options) == []


def test_the_table_has_the_order_first() -> None:
    frame = to_frame(value_orders(["AC", "GT"], predict, noise=UniformSlip(alpha=0.1), alphabet=DNA))
    assert list(frame.columns)[:2] == ["order", "expected"]
    assert list(frame["order"]) == ["AC", "GT"]
    measured = OrderValue(
        order="A", expected=0, error=0, sd=0, intact=1, violates=0, score=0, score_sd=0, nearest="A", distance=0
    )
    assert measured.measured


def test_the_best_order_need_not_be_the_best_sequence() -> None:
    """A lone peak loses to a broad hill once one in three letters slips."""

    def hill(texts: list[str]) -> list[float]:
        return [1.0 if text == "AAAA" else 0.9 * (text[:2] == "CC") for text in texts]

    orders = ["".join(letters) for letters in itertools.product(DNA, repeat=4)]
    found = value_orders(orders, hill, noise=UniformSlip(alpha=1 / 3), alphabet=DNA)
    assert max(found, key=lambda v: v.score).order == "AAAA"
    assert max(found, key=lambda v: v.expected).order.startswith("CC")
