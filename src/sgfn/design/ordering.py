"""Orders of a run or a task: candidates, their values under the noise, and the plate of the best and different ones."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from sgfn.config.checks import whole_number
from sgfn.config.files import check_target, check_writable, resolved
from sgfn.config.tasks import ConstraintsConfig
from sgfn.design.orders import MOST_TABULATED, OrderValue, Predict, expected_orders, values_in
from sgfn.design.plate import well_names, write_fasta, write_plate
from sgfn.design.reach import Reach, proxy_of
from sgfn.design.search import SearchConfig, climb
from sgfn.design.selection import select_plate
from sgfn.design.space import OrderSpace
from sgfn.envs import Env, SequenceEnv
from sgfn.envs.constraints import Constraints
from sgfn.evaluation.orders import as_orders, is_new, separate, silent, tabulable
from sgfn.landscapes.base import Landscape
from sgfn.landscapes.proxies.honesty import ToldLaw
from sgfn.landscapes.read_out import ReadOut
from sgfn.landscapes.task import make_constraints
from sgfn.runs.folder import Run, refuse_design, refuse_forecast
from sgfn.runs.model import Model, opened
from sgfn.runs.trust import Trust

MOST_LISTED = 300_000
"""Orders that are all looked at, where their values are exact."""
MOST_DRAWN = 20_000
"""Orders that are all looked at, where values are means over draws or a function is asked for each score."""
STARTS = 2048
"""Samples of a run, the best of which a search begins with."""
ROOTS = 200
"""Best measured sequences that a search within reach of them begins with."""
SHORTLIST = 128
"""Orders at least whose values are computed again after a search."""


@dataclass(frozen=True, kw_only=True)
class OrderSheet:
    """Orders with their values, best first, and how they were found."""

    values: list[OrderValue]
    how: str
    """What was looked at, in words."""
    considered: int
    """Orders that were looked at."""
    listed: bool
    """Whether these were all that there are (within the reach that was asked for)."""
    exact: bool
    """Whether means over what comes out are exact; else their standard errors say how near they are."""
    predicted: bool
    """Whether scores are predictions of a proxy, whose standard deviations the values have."""
    distance: int | None
    """Least distance between two of them."""
    metric: str
    """What distances are: hamming or edit."""
    noise: str
    """The noise under which orders were valued, in words."""
    log: bool
    """Whether logarithms of scores were learned, of which a standard deviation is a factor of the score."""
    reach: int | None
    """Most edits between an order and a measured sequence, 0 for no limit; None where there is none to count from, or
    all orders were looked at and no limit was asked for."""
    note: str
    """What to know of how far the orders are from anything measured; empty where nothing was."""


def predictor(env: SequenceEnv, landscape: Landscape, *, told: bool = False) -> Predict:
    """The landscape as a function of texts: scores, and how uncertain they are.

    `told`: as they are told of orders, in the units of its table unless scores were logarithms or ranks there.
    """

    proxy = proxy_of(landscape)
    law = ToldLaw.of(proxy) if told and proxy is not None else None

    def predict(texts: list[str]) -> tuple[Float64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
        rows = env.parse(texts)
        parts = (landscape.scores(rows), landscape.uncertainty(rows))
        mean, sd = (part.detach().cpu().double().numpy() for part in parts)
        if not told:
            return mean, sd
        mean, sd = (mean, sd) if law is None else law(mean, sd)
        if landscape.score_transform.kind != "none":  # expectations are of these, and told in units afterwards
            return mean, sd
        shown = landscape.told(rows, torch.from_numpy(mean))
        return shown.numpy(), landscape.score_transform.predictions(mean, sd)[1]

    return predict


def order_sheet(
    env: Env,
    landscape: Landscape,
    n: int,
    *,
    starts: Sequence[str] = (),
    repeat: bool = False,
    distance: int = 1,
    tradeoff: float = 0.0,
    samples: int = 256,
    seed: int = 0,
    reach: int | None = None,
    most_listed: int | None = None,
) -> OrderSheet:
    """The n orders to make of a task: those with the best expected scores that differ by `distance` at least.

    Where there are few enough they are all ranked; else local search climbs from `starts` and from what was measured.
    Orders stay within `reach` edits of what was measured, 0 for no limit: by default a search among a proxy's
    predictions goes as far as `deserved_reach` trusts it, and a ranking of all has no limit. What was measured is
    left out unless `repeat`. Values are in units of the measured scores. Distance, trade-off: see `select_plate`.
    """
    env = _checked(env, n, distance, samples, seed)
    known = landscape.offline_objects()
    measured = [] if known is None else env.decode(known)
    predict = predictor(env, landscape)
    limit = most_listed if most_listed is not None else _most_listed(env, landscape)
    trust = Reach.of(env, landscape, measured, reach)
    begun = [*_best(measured, predict, ROOTS if trust.edits else 64), *starts]
    texts, worth = _candidates(env, predict, begun, n, limit, landscape.on_host, seed, trust)
    considered, listed = len(texts), worth is None
    if not repeat:
        kept = is_new(landscape, env.parse(texts)).numpy()
        texts, worth = [texts[i] for i in np.flatnonzero(kept)], None if worth is None else worth[kept]
    if not texts:
        raise ValueError("every order that was looked at was measured before: add --repeat to order some again")
    if worth is not None:  # searched for with few draws: a shortlist is looked at more closely
        texts = [texts[i] for i in select_plate(texts, worth, max(SHORTLIST, 2 * n), distance=distance).chosen]
    failed = landscape.lowest if isinstance(landscape, ReadOut) else 0.0
    again: dict[str, Any] = {"samples": samples, "seed": seed + 1, "failed": failed}  # other draws than a search's
    found = expected_orders(texts, predict, channel=env, **again)
    chosen = select_plate(texts, found.mean[:, 0], n, distance=distance, tradeoff=tradeoff)
    rules = (f" that satisfy {env.automaton.told}" if env.automaton is not None else "") + trust.told * listed
    transform = landscape.score_transform
    again |= {"shown": transform.predictions} if transform.kind != "none" else {"failed": transform.score(failed)}
    orders = [texts[number] for number in chosen.chosen]
    values = values_in(env, orders, predictor(env, landscape, told=True), measured=measured, **again)
    return OrderSheet(
        values=values,
        how=f"all {considered:,} orders{rules}" if listed else f"{considered:,} orders{rules} that a local search met",
        considered=considered,
        listed=listed,
        exact=found.exact,
        predicted=any(value.sd > 0 or value.score_sd > 0 for value in values),
        distance=chosen.distance,
        metric=chosen.metric,
        noise="no noise" if silent(env) else env.noise_summary,
        log=transform.kind == "log",
        reach=trust.edits if trust.asked or not listed else None,
        note=trust.note([value.distance for value in values]),
    )


def _checked(env: Env, n: int, distance: int, samples: int, seed: int) -> SequenceEnv:
    """The environment, which must make sequences letter by letter; raises where a number is out of range."""
    if not isinstance(env, SequenceEnv) or not env.by_letter:
        raise ValueError("orders are of sequences that are made letter by letter: this task has none")
    whole_number("-n", n, 1, 100_000)
    whole_number("distance", distance, 0, env.length)
    whole_number("samples", samples, 2, 10**6)
    whole_number("seed", seed, 0, 2**31 - 1)
    return env


def _candidates(
    env: SequenceEnv,
    predict: Predict,
    starts: Sequence[str],
    n: int,
    limit: int,
    slow: bool,
    seed: int,
    trust: Reach,
) -> tuple[list[str], Float64[np.ndarray, " N"] | None]:
    """Orders to choose from: all within reach, and None, or those that a search met, with what it took them for."""
    space = OrderSpace.of(env)
    if space.size <= limit:
        return trust.listed(space.decode(space.everything())), None
    keep = 64 if slow else max(128, n)
    cost: dict[str, Any] = {"children": 4 * keep, "scored": (8 if slow else 16) * 4 * keep, "seconds": math.inf}
    config = SearchConfig(elite=keep, **cost, reach=trust.edits or 0)
    start = trust.start(space, [*dict.fromkeys(starts)][: 2 * keep + (ROOTS if trust.edits else 0)])
    value = _Expected(env, predict, draws=8 if slow else 16, seed=seed)
    found, _ = climb(space, value, lambda values: values, start, torch.Generator().manual_seed(seed), config)
    best = found.values[0].argsort(descending=True, stable=True)
    return space.decode(found.tokens[best]), found.values[0, best].double().numpy()


@dataclass(frozen=True, eq=False)
class _Expected:
    """E[f(x)|o] of orders in any environment of sequences, whose noise may read the state."""

    env: SequenceEnv
    predict: Predict
    draws: int
    seed: int
    cost: int = 1

    def __call__(self, orders: Int[Tensor, "N L"]) -> Float[Tensor, "1 N"]:
        """Value of each order, one row."""
        told = {"channel": self.env, "samples": self.draws, "seed": self.seed}
        return expected_orders(self.env.decode(orders), self.predict, **told).mean[None, :, 0]


def _most_listed(env: SequenceEnv, landscape: Landscape) -> int:
    """How many orders are all looked at."""
    exact = tabulable(env) if env.noise.changes_length else separate(env)
    tabulated = silent(env) or (exact and env.vocab**env.length <= MOST_TABULATED)
    return MOST_LISTED if tabulated and not landscape.on_host else MOST_DRAWN


def _best(measured: list[str], predict: Predict, count: int = 64) -> list[str]:
    """The measured sequences with the highest scores."""
    if not measured:
        return []
    worth = np.asarray(predict(measured)[0])
    return [measured[number] for number in np.argsort(-worth, kind="stable")[:count]]


def order(
    run: Path | str | Model,
    n: int = 96,
    out: Path | str | None = None,
    *,
    fasta: Path | str | None = None,
    plate: int = 96,
    repeat: bool = False,
    distance: int = 1,
    tradeoff: float = 0.0,
    samples: int = 256,
    seed: int = 0,
    reach: int | None = None,
    constraints: Constraints | ConstraintsConfig | None = None,
    device: str = "auto",
    overwrite: bool = False,
    trust: Trust = False,
) -> OrderSheet:
    """The best orders of a run, new and different ones; written as a plate (CSV) and as FASTA where files are named.

    Nothing is trained: where not all orders can be ranked, samples of the run are where a search begins. Constraints
    that are given replace the run's own one by one. Code that only the run names is not run unless it is trusted, see
    `evaluate`.
    """
    well_names(0, plate)
    whole_number("seed", seed, 0, 2**31 - 1)  # samples of the run ask for it before the orders do
    if not isinstance(run, Model):
        refuse_design(Path(run))
    for path, flag in ((out, "--out"), (fasta, "--fasta")):
        if path is not None:
            check_target(Path(path), overwrite=overwrite, flag=flag)
            if not isinstance(run, Model):
                Run(path=Path(run)).refuse_own(Path(path), flag)
            check_writable(Path(path))
    if out is not None and fasta is not None and resolved(Path(out)) == resolved(Path(fasta)):
        raise ValueError(f"--out and --fasta both name {fasta}: give one of them another name")
    model = run if isinstance(run, Model) else _opened(Path(run), device, trust)
    env, landscape = constrained(model.env, constraints), model.task.landscape
    landscape.to(torch.device("cpu"))
    try:
        sheet = order_sheet(
            env,
            landscape,
            n,
            starts=_samples(model, seed),
            repeat=repeat,
            distance=distance,
            tradeoff=tradeoff,
            samples=samples,
            seed=seed,
            reach=reach,
        )
    finally:
        landscape.to(model.learner.device)
    if out is not None:
        write_plate(out, sheet.values, plate)
    if fasta is not None:
        write_fasta(fasta, sheet.values, plate)
    return sheet


def constrained(env: Env, given: Constraints | ConstraintsConfig | None) -> Env:
    """The environment with the constraints that are given in the place of its own, one by one."""
    rules = given if isinstance(given, Constraints) else None if given is None else make_constraints(given)
    if rules is None:
        return env
    if not isinstance(env, SequenceEnv) or not env.by_letter:
        raise ValueError("constraints are on sequences that are made letter by letter: this task has none")
    none, made = Constraints(), copy(env)
    values = {name: value for name, value in vars(rules).items() if value != getattr(none, name)}
    made.constraints = replace(env.constraints or none, **values)
    shortest = env.min_length if env.stop else env.length
    made.automaton, made.unmasked = made.constraints.compile(env.alphabet, shortest, env.length), False
    return made


def _opened(path: Path, device: str, trust: Trust) -> Model:
    folder = Run(path=path, trust=trust)
    refuse_forecast(folder, "and orders are for runs of sequences")
    return opened(folder, device)


def _samples(model: Model, seed: int) -> list[str]:
    """What came out of the run's policy and what it intended then, the best scores first: where a search may begin."""
    env = model.env
    if not isinstance(env, SequenceEnv) or not env.by_letter:
        return []
    drawn = model.learner.draw(STARTS, seed)
    best = drawn.scores.argsort(descending=True, stable=True)
    rows = torch.stack([drawn.objects[best], as_orders(env, drawn.intended[best])], 1).flatten(0, 1)
    return env.decode(rows[env.written(rows) >= (env.min_length if env.stop else env.length)])
