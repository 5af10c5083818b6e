"""Balance objectives vanish at the exact solution, for every trajectory, and nowhere near it."""

from dataclasses import replace

import pytest
import torch
from balances import BALANCE
from exact_tables import TINY, balanced, every_trajectory, look_up, random_table
from torch import Tensor
from torch.testing import assert_close

from sgfn import config
from sgfn.envs import laws
from sgfn.envs.trajectories import Trajectories
from sgfn.evaluation import exact
from sgfn.learning.forms import FORMS
from sgfn.learning.registry import check_names, choices
from sgfn.learning.scoring import score
from sgfn.noise.operators import DenseKernel
from sgfn.objectives.detailed_balance import detailed_balance
from sgfn.objectives.making import make_objective
from sgfn.objectives.scores import Scores
from sgfn.objectives.subtrajectory_balance import subtrajectory_balance
from sgfn.objectives.trajectory_balance import trajectory_balance

every_env = pytest.mark.parametrize("name", TINY)
every_alpha = pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
every_form = pytest.mark.parametrize("form", FORMS)
every_objective = pytest.mark.parametrize("objective", BALANCE)


def shifted(scores: Scores, field: str, t: int, where: Tensor, by: float = 0.1) -> Scores:
    """Scores with one term changed at step t of some trajectories."""
    values = getattr(scores, field).clone()
    values[where, t] += by
    return replace(scores, **{field: values})


def random_scores(batch: int, steps: int, seed: int = 0) -> tuple[Scores, Trajectories]:
    """Numbers without a meaning, trajectories of all lengths from 1 to `steps`."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    length = torch.arange(batch) % steps + 1
    valid = torch.arange(steps) < length[:, None]
    zeros = torch.zeros(batch, steps, dtype=torch.int64)
    states = torch.zeros(batch, steps + 1, 1, dtype=torch.int64)
    log_flow, log_z = normal(batch, steps + 1), normal(1)[0]
    log_flow[:, 0] = log_z
    terms = {name: torch.where(valid, normal(batch, steps), 0.0) for name in ("log_pf", "log_dynamics", "log_pb")}
    return (
        Scores(**terms, log_flow=log_flow, log_z=log_z),
        Trajectories(intended=zeros, realised=zeros, valid=valid, states=states, log_reward=normal(batch)),
    )


@every_alpha
@every_env
def test_every_trajectory_is_enumerated(name: str, alpha: float) -> None:
    """The probabilities of all (intention, outcome) trajectories sum to one; without the last one they do not."""
    env, batch = TINY[name](alpha), every_trajectory(TINY[name](alpha))
    states = batch.states[:, :-1]
    kernel = env.kernel(states, torch.float64).flatten(-2)
    pair = batch.intended * env.actions + batch.realised
    step = look_up(env, random_table(env, 0))(states).gather(-1, batch.intended[..., None])[..., 0]
    step = torch.where(batch.valid, step * kernel.gather(-1, pair[..., None])[..., 0], 1.0)
    assert float(step.prod(1).sum()) == pytest.approx(1.0, abs=1e-12)
    assert float(step.prod(1)[1:].sum()) < 1 - 1e-9


@every_objective
@every_form
@every_alpha
@every_env
def test_balance_vanishes_only_at_the_exact_solution(name: str, alpha: float, form: str, objective: str) -> None:
    """Every policy is balanced for the reward it induces; any one wrong term is noticed wherever it matters."""
    scorer, batch, kernel = balanced(name, alpha, form)
    loss, scores = BALANCE[objective], score(scorer, batch, form, kernel)
    assert loss(scores, batch).max() < 1e-18  # squares of residuals below 1e-9

    for t in range(batch.valid.shape[1]):
        happened = batch.valid[:, t]
        for field in ("log_pf", "log_pb") + ("log_dynamics",) * (form == "published"):
            wrong = loss(shifted(scores, field, t, happened), batch)
            assert wrong[happened].min() > 1e-6
            assert (wrong[~happened] < 1e-18).all()
        if t > 0 and happened.any():  # an inner flow; trajectory balance has none
            wrong = loss(shifted(scores, "log_flow", t, happened), batch)
            assert wrong.max() < 1e-18 if objective == "tb" else wrong[happened].min() > 1e-6

    too_much = score(replace(scorer, log_z=scorer.log_z + 0.1), batch, form, kernel)  # Z and every flow
    assert loss(too_much, batch).min() > 1e-6
    wrong_z = shifted(replace(scores, log_z=scores.log_z + 0.1), "log_flow", 0, batch.valid[:, 0])
    assert loss(wrong_z, batch).min() > 1e-6
    assert loss(scores, replace(batch, log_reward=batch.log_reward + 0.1)).min() > 1e-6


@every_objective
@every_alpha
@pytest.mark.parametrize("name", [name for name in TINY if name != "grid-1D-4"])
def test_a_wrong_kernel_is_noticed_by_the_forms_that_read_it(name: str, alpha: float, objective: str) -> None:
    wrong_env = TINY[name](0.3)
    for form, reads in (("marginal", True), ("published", True), ("blind", False)):
        scorer, batch, _ = balanced(name, alpha, form)
        wrong = wrong_env.operator(batch.states[:, :-1], torch.float64)
        value = BALANCE[objective](score(scorer, batch, form, wrong), batch)
        assert (value.max() > 1e-6) == reads


@every_alpha
@pytest.mark.parametrize("name", [name for name in TINY if name != "grid-1D-4"])
def test_a_blind_solution_is_no_solution_in_noise(name: str, alpha: float) -> None:
    """Flows solved without noise do not balance the marginal form, unless there is none."""
    scorer, batch, kernel = balanced(name, alpha, "blind")
    value = detailed_balance(score(scorer, batch, "marginal", kernel), batch)
    assert (value.max() < 1e-18) == (alpha == 0.0)


@every_alpha
@every_env
def test_pi_b_of_the_published_form_is_the_posterior(name: str, alpha: float) -> None:
    """pi_B(k,a|s') = P_B(k|s') P(a|s,k): the published and the marginal residuals agree term by term."""
    scorer, batch, kernel = balanced(name, alpha, "published")
    published, marginal = (score(scorer, batch, form, kernel) for form in ("published", "marginal"))
    posterior = published.log_pf + published.log_dynamics - marginal.log_pf
    assert_close(published.log_pb, marginal.log_pb + posterior, atol=1e-12, rtol=0)
    if alpha > 0 and name != "grid-1D-4":
        assert (published.log_pb - marginal.log_pb).abs().max() > 1e-3


def test_tree_flow_solution_needs_enough_flow_in_every_child() -> None:
    """Zero residual asks F(s')/F(s) >= alpha/V (method, section 2): the marginal law never goes below it."""
    for alpha in (0.1, 0.5, 0.9):
        env = TINY["fixed-L3-V2"](alpha)
        mass, ends = laws.reach(env, look_up(env, random_table(env, 0)))
        _, conditionals = exact.flows(env, ends)
        least = min(float(c.min()) for c in conditionals.values())
        assert least > alpha / 2
        assert least < alpha / 2 + (1 - alpha)
        assert_close(exact.flows(env, ends)[0], mass)


# Values


def one_trajectory() -> tuple[Scores, Trajectories]:
    """Two steps, F = Z = e^2, then e^1, reward e^-1."""

    def row(*values: float) -> Tensor:
        return torch.tensor([values], dtype=torch.float64)

    scores = Scores(
        log_pf=row(-1.0, -2.0),
        log_dynamics=row(-0.5, -0.25),
        log_pb=row(-0.3, -0.7),
        log_flow=row(2.0, 1.0, 99.0),
        log_z=torch.tensor(2.0, dtype=torch.float64),
    )
    steps = torch.zeros(1, 2, dtype=torch.int64)
    states = torch.zeros(1, 3, 1, dtype=torch.int64)
    valid = torch.ones(1, 2, dtype=torch.bool)
    return scores, Trajectories(intended=steps, realised=steps, valid=valid, states=states, log_reward=row(-1.0)[0])


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        ("db", ((2 - 1 - 0.5 - 1 + 0.3) ** 2 + (1 - 2 - 0.25 + 1 + 0.7) ** 2) / 2),  # residuals -.2 and .45
        ("tb", (2 - 1.2 - 1.55 + 1) ** 2),  # residual .25, the sum of both
        ("subtb", (0.9 * 0.2**2 + 0.9 * 0.45**2 + 0.81 * 0.25**2) / (0.9 + 0.9 + 0.81)),
    ],
)
def test_value_by_hand(objective: str, value: float) -> None:
    scores, batch = one_trajectory()
    assert BALANCE[objective](scores, batch).tolist() == pytest.approx([value], abs=1e-12)
    wrong = BALANCE[objective](replace(scores, log_pb=-scores.log_pb), batch)
    assert wrong.tolist() != pytest.approx([value], abs=1e-3)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 1.0, 2.0])
def test_subtb_equals_the_double_loop(decay: float) -> None:
    scores, batch = random_scores(12, 5)
    wanted = []
    for b, length in enumerate(batch.length.tolist()):
        flow = [*scores.log_flow[b, :length].tolist(), float(batch.log_reward[b])]
        step = (scores.log_pf + scores.log_dynamics - scores.log_pb)[b].tolist()
        pairs = [(i, j) for i in range(length) for j in range(i + 1, length + 1)]
        weight = [decay ** (j - i - 1) for i, j in pairs]
        square = [(flow[i] + sum(step[i:j]) - flow[j]) ** 2 for i, j in pairs]
        wanted.append(sum(w * s for w, s in zip(weight, square, strict=True)) / sum(weight))
    found = subtrajectory_balance(scores, batch, decay=decay)
    assert_close(found, torch.tensor(wanted, dtype=torch.float64), atol=1e-12, rtol=1e-12)
    assert (found - subtrajectory_balance(scores, batch, decay=decay + 0.3)).abs().max() > 1e-3


def test_subtb_has_its_neighbours_as_limits() -> None:
    """Of one step SubTB, DB and TB say the same; lambda = 0 leaves single steps (DB), a huge one the whole (TB)."""
    scores, batch = random_scores(6, 1)
    for other in (detailed_balance, trajectory_balance):
        assert_close(subtrajectory_balance(scores, batch), other(scores, batch), atol=1e-12, rtol=1e-12)
    scores, batch = random_scores(6, 3)
    db, tb = detailed_balance(scores, batch), trajectory_balance(scores, batch)
    assert_close(subtrajectory_balance(scores, batch, decay=0.0), db, atol=1e-12, rtol=1e-12)
    assert_close(subtrajectory_balance(scores, batch, decay=1e9), tb, atol=1e-6, rtol=1e-6)
    assert (db - tb).abs().max() > 0.1


def test_make_objective_binds_lambda() -> None:
    scores, batch = random_scores(6, 4)
    base = config.TrainConfig().with_(objective="subtb", subtb_lambda=0.3)
    bound = make_objective(base)(scores, batch)
    assert torch.equal(bound, subtrajectory_balance(scores, batch, decay=0.3))
    assert not torch.equal(bound, make_objective(base.with_(subtb_lambda=0.9))(scores, batch))
    assert make_objective(base.with_(objective="db")) is detailed_balance
    assert make_objective(base.with_(objective="tb")) is trajectory_balance


def test_objectives_are_built_on_balances_alone() -> None:
    balances = ["tb", "vargrad", "db", "subtb"]
    assert choices()["kl.flow"] == balances
    assert choices()["entropy.base"] == [*balances, "kl", "none"]
    with pytest.raises(ValueError, match=r"^kl\.flow 'eflow' is unknown: choose from tb, vargrad, db, subtb"):
        check_names(config.TrainConfig().with_(kl__flow="eflow"))


# Padding and gradients


def padded(batch: Trajectories, extra: int) -> Trajectories:
    """The same trajectories with more padding, of arbitrary content."""
    count = batch.valid.shape[0]
    return Trajectories(
        intended=torch.cat([batch.intended, torch.ones(count, extra, dtype=torch.int64)], 1),
        realised=torch.cat([batch.realised, torch.ones(count, extra, dtype=torch.int64)], 1),
        valid=torch.cat([batch.valid, torch.zeros(count, extra, dtype=torch.bool)], 1),
        states=torch.cat([batch.states, batch.states[:, -1:].expand(-1, extra, -1)], 1),
        log_reward=batch.log_reward,
    )


@every_objective
@every_form
@pytest.mark.parametrize("name", ["stop-L3-V2", "grid-2D-3", "fixed-L2-V3"])
def test_padding_has_no_effect(name: str, form: str, objective: str) -> None:
    scorer, batch, kernel = balanced(name, 0.5, form)
    batch = replace(batch, log_reward=batch.log_reward + 0.3 * torch.arange(len(batch.log_reward)))  # residuals differ
    longer = padded(batch, 2)
    value = BALANCE[objective](score(scorer, batch, form, kernel), batch)
    kernel = scorer.env.operator(longer.states[:, :-1], torch.float64)
    found = BALANCE[objective](score(scorer, longer, form, kernel), longer)
    assert_close(found, value, atol=1e-12, rtol=1e-12)
    mistaken = replace(longer, valid=torch.ones_like(longer.valid))  # padding taken for steps does change the value
    other = BALANCE[objective](score(scorer, mistaken, form, kernel), mistaken)
    assert not torch.allclose(other, value)


@every_form
def test_the_kernel_gets_no_gradient(form: str) -> None:
    scorer, batch, kernel = balanced("fixed-L3-V2", 0.5, form)
    log_z = scorer.log_z.clone().requires_grad_()
    scorer, log_kernel = replace(scorer, log_z=log_z), kernel.log_matrix().clone().requires_grad_()
    learned = DenseKernel(log_kernel, log=True)
    trajectory_balance(score(scorer, batch, form, learned), batch).add(log_z).sum().backward()
    assert log_kernel.grad is None
    assert log_z.grad is not None
    if form != "blind":  # called past `score`, the forms would let it through
        heads = scorer.heads(batch.states)
        scores = FORMS[form].scoring(heads, learned, batch, log_z.detach() + 1.0)
        trajectory_balance(scores, batch).sum().backward()
        assert log_kernel.grad is not None
        assert log_kernel.grad.abs().max() > 0


def test_scores_are_zero_on_padding() -> None:
    scorer, batch, kernel = balanced("stop-L3-V2", 0.5, "published")
    for form in FORMS:
        scores = score(scorer, batch, form, kernel)
        for values in (scores.log_pf, scores.log_dynamics, scores.log_pb):
            assert not values[~batch.valid].any()
        assert scores.log_pf[batch.valid].all()
