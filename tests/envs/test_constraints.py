"""Constraints against brute force: every mask, every count, every probability, and the refusals."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from own_noise import AllOrNothing, Rotation
from torch.testing import assert_close

import sgfn
from sgfn.config import NoiseConfig, TrainConfig
from sgfn.envs import Constraints, SequenceEnv, TabulatedEnv, laws
from sgfn.envs.automaton import BROKEN
from sgfn.envs.constraints import IUPAC
from sgfn.envs.violations import violation_probabilities, violation_probability
from sgfn.evaluation import exact
from sgfn.evaluation.measure import reference
from sgfn.evaluation.orders import order_policy
from sgfn.landscapes.tasks import make_task
from sgfn.learning.kernels.fixed_length import fits
from sgfn.learning.peers.random import uniform_intentions
from sgfn.learning.rollout import rollout
from sgfn.learning.trainer import Trainer
from sgfn.noise import ByPosition, HiddenRate, Noise, UniformSlip, make_noise

DNA = "ACGT"
WIDE = {**{letter: letter for letter in DNA}, **IUPAC, ".": DNA}


def every_text(alphabet: str, shortest: int, longest: int) -> list[str]:
    lengths = range(shortest, longest + 1)
    return ["".join(letters) for n in lengths for letters in itertools.product(alphabet, repeat=n)]


def edits_by_hand(one: str, other: str) -> int:
    if not one or not other:
        return len(one) + len(other)
    same = edits_by_hand(one[1:], other[1:]) + (one[0] != other[0])
    return min(same, edits_by_hand(one[1:], other) + 1, edits_by_hand(one, other[1:]) + 1)


def satisfied(rules: Constraints, text: str, fixed: bool) -> bool:
    """Whether a text satisfies all constraints, from the text of the rules."""
    written = {letter: f"[{letters}]" for letter, letters in WIDE.items()}
    if any(re.search("".join(written[c] for c in motif), text) for motif in rules.forbid):
        return False
    if rules.gc is not None:
        share = sum(c in "GC" for c in text) / len(text)
        if not rules.gc[0] - 1e-9 <= share <= rules.gc[1] + 1e-9:
            return False
    if rules.max_run is not None and any(len(list(run)) > rules.max_run for _, run in itertools.groupby(text)):
        return False
    if rules.pattern is not None and not re.fullmatch("".join(written[c] for c in rules.pattern), text):
        return False
    if rules.parent is not None and rules.max_mutations is not None:
        plain = fixed and len(text) == len(rules.parent)
        differs = sum(a != b for a, b in zip(text, rules.parent, strict=True)) if plain else 0
        if (differs if plain else edits_by_hand(text, rules.parent)) > rules.max_mutations:
            return False
    return (rules.min_length or 0) <= len(text) <= (rules.max_length or 99)


@st.composite
def rule_sets(draw: st.DrawFn) -> tuple[dict[str, Any], int, int]:
    longest = draw(st.integers(1, 5))
    shortest = draw(st.integers(1, longest))
    letters, maybe = st.sampled_from("ACGTRYSWKMBDHVN."), st.none()
    words = st.text(letters, min_size=1, max_size=3)
    gc = draw(st.none() | st.tuples(st.sampled_from([0.0, 0.25, 0.4, 0.5]), st.sampled_from([0.5, 0.6, 1.0])))
    mutated = draw(st.booleans()) and draw(st.booleans())
    rules = {
        "forbid": tuple(draw(st.lists(words, max_size=3))),
        "gc": gc,
        "max_run": draw(maybe | st.integers(1, 3)),
        "pattern": draw(maybe | maybe | st.text(letters, min_size=shortest, max_size=longest)),
        "parent": draw(st.text("ACGT", min_size=1, max_size=longest)) if mutated else None,
        "max_mutations": draw(st.integers(0, 3)) if mutated else None,
        "min_length": draw(maybe | st.integers(1, longest)),
        "max_length": draw(maybe | st.integers(longest, 6)),
    }
    return rules, shortest, longest


@settings(max_examples=30, deadline=None)
@given(st.integers(-5, 5), st.integers(0, 4), st.integers(1, 4), st.booleans())
def test_net_charge_is_that_of_brute_force(low: int, width: int, longest: int, motif: bool) -> None:
    charges = {"K": 1, "R": 1, "D": -1, "E": -1, "A": 0}
    rules = Constraints(charge=(low, low + width), forbid=("KD",) if motif else ())
    texts = every_text("ADEKR", 1, longest)
    wanted = [t for t in texts if low <= sum(map(charges.get, t)) <= low + width and not (motif and "KD" in t)]
    if not wanted:
        with pytest.raises(ValueError, match=r"--charge .* relax"):
            rules.compile("ADEKR", 1, longest)
        return
    made = rules.compile("ADEKR", 1, longest)
    assert made.texts(made.all_rows()) == wanted


def test_net_charge_is_for_proteins_in_whole_numbers() -> None:
    with pytest.raises(ValueError, match=r"--charge counts the letters K, R, D and E of proteins, .* leave it out"):
        Constraints(charge=(0, 1)).compile(DNA, 3, 3)
    for wrong in ((2, 1), (0.5, 1), (1,)):
        with pytest.raises(ValueError, match="--charge must be two whole numbers"):
            Constraints(charge=wrong)  # pyright: ignore[reportArgumentType]
    for text in ("3", "2:1", "a:b", "0.5:1", "-600:0"):
        with pytest.raises(ValueError, match=r"constraints.charge must be LOW:HIGH"):
            TrainConfig().with_(constraints__charge=text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rule_sets())
@example(({"parent": "ACA", "max_mutations": 2, "min_length": 3}, 1, 3))  # one length is left: substitutions alone
def test_masks_are_those_of_brute_force_and_never_dead_end(drawn: tuple[dict[str, Any], int, int]) -> None:
    rules, shortest, longest = Constraints(**drawn[0]), *drawn[1:]
    fixed = max(shortest, rules.min_length or 0) == min(longest, rules.max_length or longest)
    wanted = [text for text in every_text(DNA, shortest, longest) if satisfied(rules, text, fixed)]
    if not wanted:
        with pytest.raises(ValueError, match=r"satisf.*; relax one$|satisfies --.*: relax it$"):
            rules.compile(DNA, shortest, longest)
        return
    made = rules.compile(DNA, shortest, longest)
    assert made.texts(made.all_rows()) == wanted
    assert made.size == len(wanted)
    beginnings = {text[:n] for text in wanted for n in range(len(text) + 1)}
    prefixes = every_text(DNA, 0, min(longest - 1, 3))
    legal = made.legal(made.rows(prefixes))
    for prefix, mask in zip(prefixes, legal.tolist(), strict=True):
        if prefix not in beginnings:
            assert all(mask)  # broken: everything is legal
            continue
        assert mask == [prefix + letter in beginnings for letter in DNA] + [prefix in wanted]
        assert any(mask)
    generator = torch.Generator().manual_seed(0)
    assert set(made.texts(made.sample(50, generator))) <= {*wanted}


@settings(max_examples=25, deadline=None)
@given(rule_sets(), st.sampled_from([0.0, 0.3]))
def test_rollouts_without_noise_end_feasible_and_intentions_under_noise_are_legal(
    drawn: tuple[dict[str, Any], int, int], alpha: float
) -> None:
    rules, shortest, longest = Constraints(**drawn[0]), *drawn[1:]
    texts = every_text(DNA, shortest, longest)
    assume(any(satisfied(rules, text, shortest == longest) for text in texts))
    stop = {"stop": True, "min_length": shortest} if shortest < longest else {}
    env = SequenceEnv(length=longest, alphabet=DNA, noise=UniformSlip(alpha=alpha), constraints=rules, **stop)
    batch = rollout(
        env,
        uniform_intentions(env),
        lambda x: torch.zeros(len(x)),
        batch=64,
        generator=torch.Generator().manual_seed(1),
    )
    made = env.automaton
    if made is None:
        return
    legal = env.legal(batch.states[:, :-1])
    assert bool(legal.any(-1).all())
    assert bool(legal.gather(-1, batch.intended[..., None])[..., 0][batch.valid].all())
    if alpha == 0.0:
        assert bool(made.feasible(env.objects(batch.states[:, -1])).all())


def test_uniform_draws_are_uniform() -> None:
    made = Constraints(max_run=1, min_length=2).compile("AC", 1, 4)
    drawn = made.texts(made.sample(6000, torch.Generator().manual_seed(0)))
    counts = torch.tensor([drawn.count(text) for text in made.texts(made.all_rows())])
    assert counts.shape[0] == 6
    assert float(((counts - 1000.0) ** 2 / 1000).sum()) < 20.5  # chi-square, 5 degrees of freedom, 1 in 1,000


# P(violation)


def noises() -> dict[str, Noise]:
    return {
        "slip": UniformSlip(alpha=0.2),
        "position": ByPosition(alphas=(0.0, 0.1, 0.2, 0.3)),
        "hidden": HiddenRate(mean=0.2, concentration=3.0),
        "own": Rotation(),
        "own hidden": AllOrNothing(),
    }


def violations_by_hand(env: SequenceEnv, order: str, accepted: set[str]) -> float:
    row = env.parse([order])
    p = laws.law(env, lambda states: order_policy(env, row.expand(len(states), -1))(states).exp())
    return sum(float(q) for q, text in zip(p, env.decode(env.all_objects()), strict=True) if text not in accepted)


RULES = Constraints(forbid=("AC", "GGN"), gc=(0.25, 0.75), max_run=2)


@pytest.mark.parametrize("name", noises())
def test_the_chance_to_violate_is_that_of_enumeration(name: str) -> None:
    noise, made = noises()[name], RULES.compile(DNA, 4, 4)
    env = SequenceEnv(length=4, alphabet=DNA, noise=noise)
    accepted = set(made.texts(made.all_rows()))
    orders = ["AGTC", "CATG", "ACGT", "AAAA"]
    wanted = [violations_by_hand(env, order, accepted) for order in orders]
    assert_close(violation_probabilities(made, made.rows(orders), noise), torch.tensor(wanted, dtype=torch.float64))
    assert violation_probability(made, "ACGT", noise) == pytest.approx(wanted[2])
    assert wanted[2] > wanted[0] > 0.01
    assert violation_probability(made, "CATG", UniformSlip(alpha=0.0)) == 0.0
    assert violation_probability(made, "ACGT", UniformSlip(alpha=0.0)) == 1.0


@pytest.mark.parametrize("noise", [UniformSlip(alpha=0.3), UniformSlip(alpha=0.3, stop=True)])
def test_the_chance_to_violate_where_lengths_vary_and_stop_may_slip(noise: UniformSlip) -> None:
    made = Constraints(max_run=1, min_length=2).compile("AC", 1, 4)
    env = SequenceEnv(length=4, alphabet="AC", noise=noise, stop=True, min_length=1)
    accepted = set(made.texts(made.all_rows()))
    for order in ("AC", "ACA", "CACA", "A"):
        wanted = violations_by_hand(env, order, accepted)
        assert violation_probability(made, order, noise) == pytest.approx(wanted, abs=1e-12)


def test_a_confusion_file_gives_the_same_by_enumeration(tmp_path: Path) -> None:
    file = tmp_path / "confusion.csv"
    file.write_text("letter,A,C,G,T\nA,0.9,0.1,0,0\nC,0,0.8,0.1,0.1\nG,0.05,0,0.9,0.05\nT,0,0,0,1\n")
    noise = make_noise(NoiseConfig(kind="confusion", file=file), DNA, 4)
    made = RULES.compile(DNA, 4, 4)
    env, accepted = SequenceEnv(length=4, alphabet=DNA, noise=noise), set(made.texts(made.all_rows()))
    for order in ("AGTC", "CATG"):
        assert violation_probability(made, order, noise) == pytest.approx(violations_by_hand(env, order, accepted))
    assert violation_probability(made, "AGTC", noise) != pytest.approx(
        violation_probability(made, "AGTC", UniformSlip(alpha=0.1)), abs=1e-3
    )


# in training and evaluation


def constrained(**changes: object) -> TrainConfig:
    small = {"steps": 30, "batch": 16, "net__hidden": 16, "net__layers": 1, "dynamics__hidden": 8}
    return TrainConfig().with_(**small, constraints__forbid="GATA,TTT", constraints__gc="0.25:0.75", **changes)


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_exact_answers_are_restricted_to_what_is_feasible(alpha: float) -> None:
    task = make_task("tfbind8", constrained(noise__alpha=alpha))
    assert isinstance(task.env, SequenceEnv)
    made, objects = task.env.automaton, task.env.all_objects()
    assert made is not None
    feasible, known = made.feasible(objects), reference(task)
    assert made.size == int(feasible.sum())
    assert float(known.target[~feasible].sum()) == 0.0
    free = make_task("tfbind8", TrainConfig().with_(noise__alpha=alpha))
    wanted = reference(free).target * feasible
    assert_close(known.target, wanted / wanted.sum())
    assert known.floor is not None
    outside = float(known.uniform[~feasible].sum())
    assert (outside < 1e-12) == (alpha == 0.0)
    assert (exact.total_variation(known.floor, known.target) < 1e-9) == (alpha == 0.0)
    rewards = task.log_reward(objects)
    assert bool(rewards.isfinite().all())
    assert float(rewards[~feasible].max()) <= float(torch.tensor(1e-3).log()) + 1e-6
    assert torch.equal(rewards[feasible], free.log_reward(objects)[feasible])


@pytest.mark.parametrize("objective", ["tb", "kl"])
@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_training_under_constraints_keeps_them_and_never_takes_the_fixed_length_backend(
    objective: str, alpha: float
) -> None:
    config = constrained(objective=objective, noise__alpha=alpha)
    trainer = Trainer(make_task("tfbind8", config), torch.device("cpu"))
    free = Trainer(make_task("tfbind8", config.with_(constraints__forbid=None, constraints__gc=None)), trainer.device)
    assert fits(free.backend.setup)
    assert not fits(trainer.backend.setup)
    assert type(trainer.backend) is not type(free.backend)
    for _ in range(3):
        trainer.step()
    trainer.check_finite()
    law, made = trainer.law(), trainer.task.env.automaton
    assert made is not None
    broken = float(law[~made.feasible(check_env(trainer).all_objects())].sum())
    assert (broken < 1e-6) == (alpha == 0.0)
    drawn = made.feasible(trainer.draw(500, seed=0).objects).double().mean()
    assert (float(drawn) == 1.0) == (alpha == 0.0)


def check_env(trainer: Trainer) -> SequenceEnv:
    assert isinstance(trainer.task.env, SequenceEnv)
    return trainer.task.env


def test_tables_answer_as_the_environment() -> None:
    for alpha, stop in itertools.product((0.0, 0.3), (False, True)):
        own = {"stop": True, "min_length": 2} if stop else {}
        env = SequenceEnv(length=4, alphabet=DNA, noise=UniformSlip(alpha=alpha), constraints=RULES, **own)
        table = TabulatedEnv(env)
        states = torch.cat(list(env.levels()))
        for method in ("legal", "possible", "slippable"):
            assert torch.equal(getattr(table, method)(table.embed(states)), getattr(env, method)(states)), method
        uniform = laws.law(env, laws.uniform_policy(env))
        assert_close(laws.law(table, laws.uniform_policy(table)), uniform)
        assert env.automaton is not None
        outside = float(uniform[~env.automaton.feasible(env.all_objects())].sum())
        assert (outside < 1e-12) == (alpha == 0.0)


def test_a_saved_model_keeps_its_constraints(tmp_path: Path) -> None:
    env = sgfn.Sequences(DNA, 4, noise=0.1, constraints=RULES)
    model = sgfn.fit(env, reward=count_a, steps=2, batch=4, progress=False)
    model.save(tmp_path / "run")
    found = sgfn.load(tmp_path / "run", reward=count_a).env
    assert found.automaton is not None
    assert isinstance(found, SequenceEnv)
    assert found.constraints == RULES
    with pytest.raises(ValueError, match="constraints"):
        sgfn.load(tmp_path / "run", reward=count_a, env=sgfn.Sequences(DNA, 4, noise=0.1))


def count_a(texts: list[str]) -> list[float]:
    return [text.count("A") + 0.1 for text in texts]


def test_methods_that_move_by_edits_refuse() -> None:
    from sgfn.learning.peers.metropolis import MetropolisHastings

    with pytest.raises(ValueError, match="keeps no constraints"):
        MetropolisHastings(make_task("tfbind8", constrained(method="mh")), torch.device("cpu"))


# refusals


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"pattern": "NNGAATTCNN", "forbid": ("GGTCTC", "GAATTC"), "max_run": 4}, "--forbid GAATTC and --pattern NNGA"),
        ({"gc": (0.9, 1.0), "pattern": "AAAAANNNNN", "max_run": 9}, "--gc 0.9:1 and --pattern AAAAANNNNN"),
        ({"min_length": 11}, "satisfies --min-length 11: relax it"),
        ({"pattern": "NNN", "gc": (0.0, 1.0)}, "--pattern NNN has 3 letters, sequences have 10: write"),
        ({"forbid": ("GC", "CG"), "gc": (0.6, 0.6), "max_run": 1}, "--forbid GC,CG, --gc 0.6:0.6 and --max-run 1"),
        ({"parent": "AAAAAAAAAA", "max_mutations": 2, "gc": (0.5, 0.6)}, "--gc 0.5:0.6 and --max-mutations 2"),
    ],
)
def test_what_cannot_be_satisfied_is_refused_with_the_conflict(rules: dict, told: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        Constraints(**rules).compile(DNA, 10, 10)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"forbid": ("",)}, "--forbid must be motifs"),
        ({"gc": (0.6, 0.4)}, "--gc must be two shares"),
        ({"max_run": 0}, "--max-run must lie in"),
        ({"max_mutations": 1}, "--parent and --max-mutations are given together"),
        ({"pattern": ""}, "--pattern is empty"),
        ({"min_length": 3, "max_length": 2}, "--min-length must lie in"),
        ({"pattern": "NNZ"}, "--pattern NNZ: 'Z' is no letter of ACGT, nor a letter of IUPAC"),
        ({"parent": "ACN", "max_mutations": 1}, "--parent ACN: 'N' is no letter of ACGT"),
    ],
)
def test_wrong_constraints_are_named(rules: dict, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        Constraints(**rules).compile(DNA, 3, 3)


def test_letters_of_other_alphabets() -> None:
    made = Constraints(pattern="MX.K", forbid=("KK",)).compile("ACDEFGHIKLMNPQRSTVWY", 4, 4)
    assert made.accepts("MACK")
    assert not made.accepts("MAKK")
    assert Constraints(pattern="NUY").compile("ACGU", 3, 3).accepts("AUU")
    with pytest.raises(ValueError, match="counts the letters G and C"):
        Constraints(gc=(0.1, 0.2)).compile("AB", 3, 3)
    with pytest.raises(ValueError, match="of DNA or RNA, and the alphabet is ACDEFG"):  # glycine and cysteine are no GC
        Constraints(gc=(0.1, 0.2)).compile("ACDEFGHIKLMNPQRSTVWY", 3, 3)
    assert Constraints(gc=(0.5, 1.0)).compile("ACGU", 2, 2).accepts("AG")
    with pytest.raises(ValueError, match=r"entry 1 \('MBCK'\): letter 'B'"):
        made.accepts("MBCK")
    assert int(made.nodes(made.rows(["MACKA"]))[0]) == BROKEN  # longer than any


def test_too_many_states_are_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sgfn.envs.constraint_parts.MOST_STATES", 100)
    with pytest.raises(ValueError, match=r"^the constraints together need more than \d+ states, the limit is 100"):
        Constraints(gc=(0.4, 0.6), max_run=3, forbid=("GAATTC",)).compile(DNA, 30, 30)
