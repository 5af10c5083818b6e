"""Networks of the forecaster: one pass, single states and steps with a cache agree, and rows read what they may."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from sgfn.config import NetConfig
from sgfn.envs import Env, ForecastEnv, TabulatedEnv
from sgfn.learning.rollout import rollout
from sgfn.noise import UniformSlip
from sgfn.series.ensemble import Ensemble
from sgfn.series.network import SeriesNet, SeriesReader
from sgfn.series.windows import Inputs

WINDOWS, CONTEXT, HORIZON, FEATURES, BINS = 3, 5, 3, 4, 3


def inputs(seed: int = 0) -> Inputs:
    generator = torch.Generator().manual_seed(seed)
    return Inputs(
        rows=torch.randn(WINDOWS, CONTEXT + HORIZON, FEATURES, generator=generator),
        values=torch.randn(WINDOWS, CONTEXT, generator=generator),
        seen=torch.rand(WINDOWS, CONTEXT, generator=generator) < 0.7,
        reference=torch.zeros(WINDOWS, HORIZON, dtype=torch.float64),
        unit=torch.ones(WINDOWS, dtype=torch.float64),
    )


def net(seed: int = 0) -> SeriesNet:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = SeriesNet(
            NetConfig(encoder="transformer", hidden=8, layers=2, heads=2),
            features=FEATURES,
            context=CONTEXT,
            horizon=HORIZON,
            centres=torch.tensor([-1.0, 0.5, 2.0]),
        )
        torch.nn.init.normal_(made.outcome.weight)
        return made


def env(tabulated: bool = False) -> Env:
    plain = ForecastEnv(horizon=HORIZON, bins=BINS, noise=UniformSlip(alpha=0.2), windows=WINDOWS)
    return TabulatedEnv(plain) if tabulated else plain


def states_of(where: Env, batch: int = 12) -> torch.Tensor:
    uniform = lambda state: torch.zeros(*state.shape[:-1], BINS).log_softmax(-1)  # noqa: E731
    nothing = lambda objects: torch.zeros(len(objects))  # noqa: E731
    return rollout(where, uniform, nothing, batch=batch, generator=torch.Generator().manual_seed(0)).states


@pytest.mark.parametrize("tabulated", [False, True])
def test_single_states_whole_paths_and_steps_agree(tabulated: bool) -> None:
    where = env(tabulated)
    states, reader = states_of(where)[:, :-1], SeriesReader(where, net(), inputs())
    with torch.no_grad():
        along, alone = reader.along(states), reader(states)
        cache, first = reader.start(states[:, 0])
        steps = [first, *(reader.step(states[:, t], cache, t) for t in range(1, HORIZON))]
    assert_close(alone, along, atol=1e-5, rtol=1e-5)
    assert_close(torch.stack(steps, 1), along, atol=1e-5, rtol=1e-5)
    other = SeriesReader(where, net(), inputs(seed=1)).along(states)
    assert bool(((other - along).abs() > 0.1).any())  # windows are read


def test_a_law_reads_the_past_and_what_is_known_at_its_own_step() -> None:
    made, known = net(), inputs()
    bins = torch.tensor([[0, 1, 2]] * WINDOWS)
    base = made(known, bins)
    for t in range(HORIZON):
        changed = bins.clone()
        changed[:, t] = (bins[:, t] + 1) % BINS
        moved = (made(known, changed) - base).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [row > t for row in range(HORIZON)]
        rows = known.rows.clone()
        rows[:, CONTEXT + t] += 1.0
        moved = (made(replace(known, rows=rows), bins) - base).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [row >= t for row in range(HORIZON)]


def test_missing_values_are_not_read() -> None:
    made, known = net(), inputs()
    bins = torch.full((WINDOWS, HORIZON), BINS)  # none of them known
    base = made(known, bins)
    values = torch.where(known.seen, known.values, 99.0)
    assert torch.equal(made(replace(known, values=values), bins), base)
    assert not torch.equal(made(replace(known, values=known.values + 1.0), bins), base)
    hide = torch.zeros(WINDOWS, CONTEXT + HORIZON, dtype=torch.bool)
    hide[:, 1 : CONTEXT + 1] = True
    nothing = replace(known, seen=torch.zeros_like(known.seen))
    assert_close(made(known, bins, None, hide), made(nothing, bins))


def test_an_ensemble_is_the_mean_of_its_members() -> None:
    where, members = env(), [net(0), net(1)]
    states, known = states_of(where), inputs()
    found = Ensemble(where, members, known).log_law(states[:, :-1]).exp()
    alone = [Ensemble(where, [one], known).log_law(states[:, :-1]).exp() for one in members]
    assert_close(found, (alone[0] + alone[1]) / 2)
    assert float((alone[0] - alone[1]).abs().max()) > 0.05


def test_mean_laws_are_the_marginals_of_the_paths() -> None:
    """The law of step t averaged over drawn paths tends to the exact marginal, found by enumeration."""
    where, members, known = env(), [net(0), net(1)], inputs()
    actor, nothing = Ensemble(where, members, known), lambda objects: torch.zeros(len(objects))
    rollout(where, actor, nothing, batch=3000, generator=torch.Generator().manual_seed(1))
    law = Ensemble(where, members, known)
    exact = torch.zeros(WINDOWS, HORIZON, BINS)
    kernel = where.kernel(where.initial(1))[0]
    mass = {tuple(row): 1.0 for row in where.initial(WINDOWS).tolist()}
    for t in range(HORIZON):
        states = torch.tensor(list(mass))
        weight = torch.tensor(list(mass.values()))
        found = law.log_law(states).exp() * weight[:, None]
        exact[:, t].index_add_(0, states[:, 0], found)
        mass = {}
        for state, outcomes in zip(states, found @ kernel, strict=True):
            for k, chance in enumerate(outcomes.tolist()):
                mass[tuple(where.apply(state, torch.tensor(k)).tolist())] = chance
    assert_close(actor.mean_law.float(), exact, atol=0.02, rtol=0)
    assert float((exact - 1 / BINS).abs().max()) > 0.1
