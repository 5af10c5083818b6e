"""`sgfn design library`: from a table or a task to codons, what to expect of them, and an order sheet."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from sgfn.config.checks import in_range, one_of, whole_number
from sgfn.config.files import check_target, check_writable
from sgfn.design.libraries.codons import NAMED, Menu, Supply, all_codons, standard_menu
from sgfn.design.libraries.flow import FlowConfig, draw_libraries, stepwise_law
from sgfn.design.libraries.library import Library, make_library, parse_library
from sgfn.design.libraries.mixture import FoundPool, choose_pool, divergence, log_target
from sgfn.design.libraries.percent import improve_in_percent, share_grid
from sgfn.design.libraries.scores import LibraryScore, TableScore
from sgfn.design.libraries.search import FoundLibrary, Goal, GoalKind, choose_library, feasible, goal_value, search
from sgfn.design.libraries.sheet import write_sheet
from sgfn.design.libraries.sources import ScoreSource, Unseen, is_table, table_source, task_source
from sgfn.design.libraries.supplies import read_supply
from sgfn.design.libraries.template import Template
from sgfn.design.libraries.values import LibraryValue, PoolValue, value_library, value_pool
from sgfn.design.measured import Source

COMPARED = tuple(NAMED)
PERCENT_STARTS = 4
"""Libraries of letters from which those in percent are searched for."""
FLOW_STARTS = 8
"""Draws of the flow network from which ascents begin."""


@dataclass(frozen=True, kw_only=True)
class LibraryConfig:
    """What a library is chosen for, and from what."""

    goal: GoalKind = "mean"
    """`mean`: highest E[score] of a clone; `best`: highest E[best score of `clones`]."""
    clones: int = 96
    """Clones that will be measured."""
    size: float | None = None
    """Least effective size of one library; by default as many as clones."""
    no_stop: float = 0.0
    """Least P(no stop) of one library."""
    libraries: int = 1
    """From 2 on: so many libraries as the pool nearest to the target p* proportional to R^beta."""
    beta: float = 3.0
    """Exponent of that target."""
    percent: int | None = None
    """Mix nucleotides in multiples of this percentage; by default letters of IUPAC, in equal shares."""
    codons: tuple[str, ...] = ()
    """Codons to choose from; by default all of IUPAC."""
    compare: tuple[str, ...] = COMPARED
    """Libraries that are told beside it: names, one codon for all sites, or codons with commas between them."""
    starts: int = 32
    """Starts of a search."""
    flow: int = 0
    """Steps for which a flow network over codons is trained too; 0 leaves it out."""
    seed: int = 0

    def __post_init__(self) -> None:
        one_of("goal", self.goal, get_args(GoalKind))
        self.aim  # noqa: B018 -- checks clones, size and no_stop
        whole_number("libraries", self.libraries, 1, 96)
        in_range("beta", self.beta, 0.0, 1000.0)
        whole_number("starts", self.starts, 1, 100_000)
        whole_number("flow", self.flow, 0, 10**6)
        whole_number("seed", self.seed, 0, 2**31 - 1)
        if self.percent is not None:
            share_grid(self.percent)
            if self.libraries > 1:
                raise ValueError("percent is for one library: leave it out, or libraries")

    @property
    def aim(self) -> Goal:
        """What one library is chosen for."""
        size = float(self.clones if self.size is None else self.size)
        return Goal(kind=self.goal, clones=self.clones, size=size, no_stop=self.no_stop)


@dataclass(frozen=True, kw_only=True)
class SearchReport:
    """Where a search ended: the value of the goal, or the divergence from the target for a pool."""

    how: str
    value: float
    codons: list[str]
    seconds: float
    starts: int
    hits: int
    """Starts that ended at this value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LibraryDesign:
    """Libraries to order with what to expect of them, in the units of the scores."""

    source: str
    config: LibraryConfig
    libraries: tuple[Library, ...]
    values: tuple[LibraryValue, ...]
    shares: tuple[float, ...]
    """Share of each library in the pool."""
    compared: tuple[LibraryValue, ...]
    compared_libraries: tuple[Library, ...]
    searches: tuple[SearchReport, ...]
    score: LibraryScore
    sign: float
    template: Template | None = None
    flanks: tuple[str, str] = ("", "")
    pool: PoolValue | None = None
    divergence: float | None = None
    """KL(pool || p*) in nats."""
    floor: float | None = None
    """Least divergence that any start of any search found for so many libraries; it is no proven bound."""
    stepwise: float | None = None
    """Divergence of the stochastic flow network that sees each residue before the next codon, which no order can."""
    distance: float | None = None
    """Total variation of pool and p*."""
    proxy: dict[str, Any] | None = None
    notices: list[str] = field(default_factory=list)

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.libraries[0].sites

    @property
    def positions(self) -> tuple[int, ...]:
        """Residues that are varied; counted from 1 among the sites where there is no template."""
        return tuple(range(1, self.sites + 1)) if self.template is None else self.template.positions

    def dna(self, codons: Sequence[str]) -> str:
        """What to order: the template with the codons, or the codons between the flanks; empty where neither is."""
        if self.template is not None:
            return self.template.dna(codons)
        left, right = self.flanks
        return (
            Template(codons=tuple(codons), positions=tuple(range(1, len(codons) + 1)), left=left, right=right).dna(
                codons
            )
            if left or right
            else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        chosen = [
            asdict(value) | {"share": share, "dna": self.dna(value.codons), "oversampling": value.oversampling}
            for value, share in zip(self.values, self.shares, strict=True)
        ]
        told = {
            name: getattr(self, name) for name in ("divergence", "floor", "stepwise", "distance", "proxy", "notices")
        }
        return {
            "source": self.source,
            "settings": asdict(self.config),
            "positions": list(self.positions),
            "libraries": chosen,
            "pool": None if self.pool is None else asdict(self.pool),
            "compared": [asdict(value) | {"oversampling": value.oversampling} for value in self.compared],
            "searches": [asdict(one) for one in self.searches],
            **told,
        }

    def write(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the order sheet, a row for each library; whole or absent."""
        check_target(Path(path), overwrite=overwrite)
        write_sheet(Path(path), self)


def design_library(
    source: Source,
    *,
    template: str | None = None,
    positions: Sequence[int] | None = None,
    left_flank: str = "",
    right_flank: str = "",
    bias: Path | str | Supply | None = None,
    stop_score: float | None = None,
    unseen: Unseen = "proxy",
    out: Path | str | None = None,
    overwrite: bool = False,
    table: dict[str, Any] | None = None,
    **settings: Any,
) -> LibraryDesign:
    """Choose degenerate codons for sites from a table of measured proteins, or from a task such as gb1.

    `template` is the coding DNA and `positions` the residues to vary in it. `table` has settings of `sgfn.Designer` for
    the table (score_column, minimise, transform, proxy), the others are fields of `LibraryConfig`.

    >>> table = pd.DataFrame({"sequence": ["AC", "AS", "WC"], "score": [3.0, 2.0, 1.0]})
    >>> found = design_library(table, unseen="lowest", goal="mean", size=2.0, starts=4, compare=("NNK",))
    >>> found.values[0].codons, found.values[0].expected
    (('GCA', 'TSC'), 2.5)
    """
    config = LibraryConfig(**settings)
    if out is not None:
        check_target(Path(out), overwrite=overwrite)
        check_writable(Path(out))
    one_of("unseen", unseen, get_args(Unseen))
    if stop_score is not None:
        in_range("stop_score", stop_score, -1e300, 1e300)
    placed = placed_template(template, positions, left_flank, right_flank)
    supply = bias if isinstance(bias, Supply) else Supply() if bias is None else read_supply(bias)
    menu = menu_of(config, supply)
    sites = None if placed is None else len(placed.positions)
    for text in config.compare:  # wrong ones are told before anything is fitted
        parse_library(text, sites or max(1, text.count(",") + 1), supply)
    if is_table(source):
        scores = table_source(
            source if isinstance(source, pd.DataFrame) else Path(source),
            placed,
            stop_score,
            unseen,
            {"seed": config.seed} | (table or {}),
        )
    else:
        if table:
            raise ValueError(f"{', '.join(table)}: settings of a table, and {source} is a task; leave them out")
        scores = task_source(str(source), sites, stop_score)
    found = _design(scores, menu, config, placed, (left_flank.upper(), right_flank.upper()))
    if out is not None:
        found.write(out, overwrite=overwrite)
    return found


def placed_template(template: str | None, positions: Sequence[int] | None, left: str, right: str) -> Template | None:
    """The template with its positions, which are given together."""
    if template is None:
        if positions is not None:
            raise ValueError("positions are residues of a template, which is missing: give --template, its coding DNA")
        if left or right:
            Template.of("ATG", [1], left, right)  # flanks are DNA
        return None
    if positions is None:
        raise ValueError("positions are missing: name the residues of the template to vary with --positions")
    return Template.of(template, positions, left, right)


def menu_of(config: LibraryConfig, supply: Supply) -> Menu:
    """The codons to choose from."""
    plain = not supply.named and not config.codons
    menu = standard_menu() if plain else Menu.of([codon.upper() for codon in config.codons] or all_codons(), supply)
    if (menu.laws[:, -1] >= 1.0).all():
        raise ValueError(f"every codon of {', '.join(config.codons)} is a stop: name some that make residues")
    return menu


def _design(
    source: ScoreSource, menu: Menu, config: LibraryConfig, template: Template | None, flanks: tuple[str, str]
) -> LibraryDesign:
    score, told = source.score, {}
    if config.libraries == 1:
        library, searches = choose_one(score, menu, config)
        chosen, shares = (library,), (1.0,)
    else:
        if not isinstance(score, TableScore):
            raise ValueError(f"libraries {config.libraries}: pools need all outcomes listed, 5 sites at most; choose 1")
        pool, searches, stepwise = choose_several(score, menu, config)
        chosen, shares = pool.libraries, tuple(pool.weights.tolist())
        figures = value_pool(chosen, pool.weights, score, config.clones)
        worth = {name: source.sign * getattr(figures, name) for name in ("expected", "best")}
        told = {"pool": replace(figures, **worth), "divergence": pool.kl, "distance": pool.tv, "stepwise": stepwise}
        told["floor"] = min(one.value for one in searches)
    compared = [parse_library(text, score.sites, menu.supply) for text in config.compare]
    values = [
        in_units(value_library(one, score, config.clones, config.seed), source.sign) for one in (*chosen, *compared)
    ]
    return LibraryDesign(
        source=source.name,
        config=config,
        libraries=chosen,
        values=tuple(values[: len(chosen)]),
        shares=shares,
        compared=tuple(values[len(chosen) :]),
        compared_libraries=tuple(compared),
        searches=tuple(searches),
        score=score,
        sign=source.sign,
        template=template,
        flanks=flanks,
        proxy=source.proxy,
        notices=source.notices,
        **told,
    )


def in_units(value: LibraryValue, sign: float) -> LibraryValue:
    """A value in the user's units."""
    return value if sign > 0 else replace(value, expected=-value.expected, best=-value.best)


def choose_one(score: LibraryScore, menu: Menu, config: LibraryConfig) -> tuple[Library, list[SearchReport]]:
    """The best library of all searches, and where each of them ended; coordinate ascent is there to compare with."""
    goal = config.aim
    options: dict[str, Any] = {"starts": config.starts, "seed": config.seed}
    runs = [
        _timed("coordinate ascent", lambda: search(score, menu, goal, "coordinate", **options)),
        _timed("ascent over pairs of sites", lambda: choose_library(score, menu, goal, **options)),
    ]
    if config.flow:
        runs += flow_runs(score, menu, config)
    best = max(runs, key=lambda run: run[0].value)[0]
    if config.percent is not None:
        step, begun = config.percent, [best.library, *(library for _, library in best.others)][:PERCENT_STARTS]
        runs.append(_timed("percent", lambda: improve_in_percent(score, menu.supply, goal, begun, step)))
        best = max((best, runs[-1][0]), key=lambda found: found.value)
    return best.library, [report for _, report in runs]


Run = tuple[FoundLibrary, SearchReport]


def flow_runs(score: LibraryScore, menu: Menu, config: LibraryConfig) -> list[Run]:
    """The best library that a flow network draws, as it is, and ascents that begin with its best draws."""
    if config.codons:
        raise ValueError("flow: a flow network writes all letters of IUPAC; leave out codons, or flow")
    goal, began = config.aim, time.perf_counter()
    drawn = draw_libraries(score, menu.supply, goal, FlowConfig(steps=config.flow), config.seed)
    made = [make_library(codons, menu.supply) for codons in drawn]
    kept = [library for library in made if feasible(library.laws, goal)][:FLOW_STARTS]
    if not kept:
        return []
    ranked = sorted(((goal_value(score, one.laws, goal), number) for number, one in enumerate(kept)), reverse=True)
    value, number = ranked[0]
    found = FoundLibrary(library=kept[number], value=value, how="flow", starts=len(made), hits=1)
    runs = [_reported("flow network, its best draw", found, time.perf_counter() - began)]
    first = [nearest_places(menu, library) for library in kept]
    options = {"starts": len(first), "seed": config.seed, "first": first}
    runs.append(_timed("ascent from the flow network's draws", lambda: choose_library(score, menu, goal, **options)))
    return runs


def nearest_places(menu: Menu, library: Library) -> Any:
    """Numbers of the menu's codons with the laws of a library."""
    return np.array([int(np.abs(menu.laws - law).sum(1).argmin()) for law in library.laws])


def choose_several(
    score: TableScore, menu: Menu, config: LibraryConfig
) -> tuple[FoundPool, list[SearchReport], float | None]:
    """The nearest pool, where each search ended, and how near the stepwise network comes."""
    began, starts, stepwise = time.perf_counter(), max(2, config.starts // 8), None
    options: dict[str, Any] = {"starts": starts, "seed": config.seed}
    best = choose_pool(score, menu, config.libraries, config.beta, **options)
    reports = [_pooled("coordinate descent", best, time.perf_counter() - began)]
    if config.flow:
        began, target = time.perf_counter(), log_target(score, config.beta)
        network = stepwise_law(menu, target, FlowConfig(steps=config.flow), config.seed)
        stepwise = divergence(network.law, target)
        generator = np.random.default_rng(config.seed)
        first = [generator.permutation(network.intentions)[: config.libraries] for _ in range(starts)]
        other = choose_pool(score, menu, config.libraries, config.beta, **options, first=first)
        reports.append(_pooled("descent from the stochastic flow network's codons", other, time.perf_counter() - began))
        best = min((best, other), key=lambda one: one.kl)
    return best, reports, stepwise


def _pooled(how: str, found: FoundPool, seconds: float) -> SearchReport:
    hits = sum(kl <= found.kl + 1e-6 for kl in found.all_kl)
    codons = [library.text for library in found.libraries]
    return SearchReport(how=how, value=found.kl, codons=codons, seconds=seconds, starts=found.starts, hits=hits)


def _timed(how: str, find: Any) -> Run:
    began = time.perf_counter()
    found = find()
    return _reported(how, found, time.perf_counter() - began)


def _reported(how: str, found: FoundLibrary, seconds: float) -> Run:
    codons = list(found.library.codons)
    report = SearchReport(
        how=how, value=found.value, codons=codons, seconds=seconds, starts=found.starts, hits=found.hits
    )
    return found, report
